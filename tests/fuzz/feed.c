/* Frames that 'a attach' sends, and the packets that the feeder of a rank makes of them: bytes for its command. */
#include "fuzz/fuzz.h"

#include <sys/mman.h>

#include "node/feed.c"

/* What the command reads of one frame is what the frame said. */
static void check_frame(struct feeder *f, int feeder, int command)
{
    char got[TERMINAL_PIECE];

    FUZZ_CHECK(feeder_take(f, feeder) && f->len <= TERMINAL_PIECE && f->ends == (f->len == 0));
    size_t len = f->len;
    if (len == 0)
        return;
    feeder_write(f);
    FUZZ_CHECK(f->len == 0 && read(command, got, sizeof(got)) == (ssize_t)len && memcmp(got, f->data, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int status = -1, packets[2], ends[2], in = memfd_create("input", MFD_CLOEXEC);
    struct feeder f = {.listener = -1, .from = -1};

    FUZZ_CHECK(in >= 0 && write(in, data, size) == (ssize_t)size && lseek(in, 0, SEEK_SET) == 0);
    FUZZ_CHECK(dup2(in, STDIN_FILENO) == STDIN_FILENO && pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, packets) == 0);
    f.to = ends[1];
    while (status < 0)
        if ((status = input_bring(packets[0])) <= 0)
            check_frame(&f, packets[1], ends[0]);
    FUZZ_CHECK(status == 0 || status == 128 + SIGHUP);
    for (int i = 0; i < 2; i++) {
        close(packets[i]);
        close(ends[i]);
    }
    close(in);
    return 0;
}
