/* Blocks of frames from the other end of a far store. */
#include "fuzz/fuzz.h"

#include <fcntl.h>

#include "engine/engine.h"
#include "store/far.h"

static char bytes_of_frames[4096];

static bool far_link_begun(void *arg, struct far_frame *frame)
{
    (void)arg;
    FUZZ_CHECK(frame->words[frame->words_len] == '\0' && frame->words_len <= FAR_MAX_WORDS);
    frame->bytes = bytes_of_frames;
    return frame->len <= sizeof(bytes_of_frames);
}

static void far_link_came(void *arg, struct far_frame *frame)
{
    (void)arg;
    free(frame->words);
}

static void far_link_broken(void *arg, const struct act_error *error)
{
    FUZZ_CHECK(*act_error_text(error) != '\0');
    *(bool *)arg = true;
}

/* Half of the bytes have come with the login. The others come over a pipe, which then ends. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { HOLDS = 64 << 10 }; /* bytes of a pipe */
    const size_t len = size < HOLDS ? size : HOLDS;
    struct engine *engine = engine_new(&(struct engine_options){0});
    ACT_AUTO(act_buf) said = {0};
    bool over = false;
    struct far_link link = {.begun = far_link_begun, .came = far_link_came, .broken = far_link_broken, .arg = &over};
    int ends[2];

    act_buf_add(&said, data, len / 2);
    FUZZ_CHECK(pipe2(ends, O_CLOEXEC) == 0);
    FUZZ_CHECK(act_write_all(ends[1], data + len / 2, len - len / 2) == 0);
    close(ends[1]);
    far_link_init(&link, engine, ends[0], open("/dev/null", O_WRONLY | O_CLOEXEC), &said);
    engine_hold(engine, true);
    engine_run(engine, &over);
    engine_hold(engine, false);
    far_link_release(&link);
    engine_free(engine);
    return 0;
}
