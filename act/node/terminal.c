#include "node/terminal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* The end of an id is what tells it from others. */
unsigned terminal_address(const char *run, struct sockaddr_un *out)
{
    enum { MOST = 80 };
    size_t len = strlen(run);

    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "act-shell-%s", len > MOST ? run + len - MOST : run);
    return (unsigned)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

uid_t terminal_peer(int fd)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t len = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 ? peer.uid : (uid_t)-1;
}

bool terminal_send(int fd, enum terminal_packet type, const void *data, size_t len)
{
    char packet[1 + TERMINAL_PIECE];
    ssize_t sent;

    if (len > TERMINAL_PIECE)
        return false;
    packet[0] = (char)type;
    memcpy(packet + 1, data, len);
    while ((sent = send(fd, packet, len + 1, MSG_NOSIGNAL)) < 0 && errno == EINTR)
        continue;
    return sent == (ssize_t)len + 1;
}
