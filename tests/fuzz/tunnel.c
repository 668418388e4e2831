/* Frames that the far end of a tunnel sends to the near one, which has some connections. */
#include "fuzz/fuzz.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tunnel/tunnel_internal.h"

enum { CONNECTIONS = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct tunnel_port port = {.fd = -1, .port = 80};
    const struct tunnel tunnel = {.ports = &port, .n_ports = 1};
    struct stream stream = {.is_ours = true};
    struct connections all = {.tunnel = &tunnel, .stream = &stream};
    struct act_error err;
    struct tunnel_frame frame;
    int fds[CONNECTIONS][2];

    for (int i = 0; i < CONNECTIONS; i++) {
        FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds[i]) == 0);
        ACT_PUSH(all.v, all.n,
                 (struct connection){.phase = CARRIES,
                                     .fd = fds[i][0],
                                     .may_send = TUNNEL_WINDOW,
                                     .expected = TUNNEL_WINDOW,
                                     .window = TUNNEL_WINDOW});
    }
    act_buf_add(&stream.got.bytes, data, size);
    while (stream_take(&stream, &frame, &err) == 1 && connections_take(&all, &frame, &err) == 0)
        for (size_t i = 0; i < all.n; i++)
            FUZZ_CHECK(queue_left(&all.v[i].queue) <= TUNNEL_WINDOW_MAX);
    connections_release(&all);
    stream_release(&stream);
    for (int i = 0; i < CONNECTIONS; i++)
        close(fds[i][1]);
    return 0;
}
