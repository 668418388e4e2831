/* Frames from the other side of a connection to a site. */
#include "fuzz/fuzz.h"

#include <fcntl.h>

#include "site/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *dir = fuzz_dir();
    ACT_AUTOFREE char *path = fuzz_file(dir, "input", data, size);
    ACT_AUTOFREE struct channel *channel = act_calloc(1, sizeof(*channel));
    struct act_error err = {0};
    int rc = 0;

    channel->in_fd = open(path, O_RDONLY | O_CLOEXEC);
    channel->out_fd = -1;
    while (rc == 0) {
        struct frame frame = {0};
        rc = frame_read(channel, 4096, &frame, &err);
        FUZZ_CHECK(rc == 0 ? json_is_object(frame.head) && frame.n_parts <= FRAME_PARTS
                           : *act_error_text(&err) != '\0');
        frame_release(&frame);
    }
    close(channel->in_fd);
    return 0;
}
