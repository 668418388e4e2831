#include "node/terminal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"

enum { RUN_MOST = 79, NONCE_BYTES = 8 };

/* ---- its name: other users may take names, too, so its end is random, and sessions look for the beginning */

/* Returns how the names of a run's keepers begin, a new string. The end of an id is what tells it from others. */
static char *terminal_name(const char *run)
{
    size_t len = strlen(run);

    return act_sprintf("act-shell-%s-", len > RUN_MOST ? run + len - RUN_MOST : run);
}

static socklen_t terminal_address(const char *name, struct sockaddr_un *out)
{
    size_t len = strnlen(name, sizeof(out->sun_path) - 1);

    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(out->sun_path + 1, name, len);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

int terminal_listen(const char *run)
{
    ACT_AUTOFREE char *beginning = terminal_name(run);
    uint64_t nonce;
    struct sockaddr_un at;

    if (getrandom(&nonce, NONCE_BYTES, 0) != NONCE_BYTES)
        return -1;
    ACT_AUTOFREE char *name = act_sprintf("%s%016llx", beginning, (unsigned long long)nonce);
    socklen_t len = terminal_address(name, &at);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&at, len) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static int terminal_try(const char *name)
{
    struct sockaddr_un at;
    socklen_t len = terminal_address(name, &at);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, len) == 0 &&
        (terminal_peer(fd) == getuid() || terminal_peer(fd) == 0))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Tries the sockets of /proc/net/unix, where a line ends with "@" and the abstract name. A connection is listed, too,
 * under the name of the socket that listens. */
int terminal_connect(const char *run)
{
    ACT_AUTOFREE char *beginning = terminal_name(run);
    ACT_AUTOFREE char *line = NULL;
    FILE *names = fopen("/proc/net/unix", "re");
    size_t size = 0;
    int fd = -1;

    while (fd < 0 && names && getline(&line, &size, names) > 0) {
        const char *at = strchr(line, '@');
        line[strcspn(line, "\n")] = '\0';
        if (at && act_starts_with(at + 1, beginning))
            fd = terminal_try(at + 1);
    }
    if (names)
        fclose(names);
    return fd;
}

/* ---- packets */

uid_t terminal_peer(int fd)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t len = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 ? peer.uid : (uid_t)-1;
}

union terminal_control {
    struct cmsghdr header;
    char space[CMSG_SPACE(TERMINAL_FILES * sizeof(int))];
};

bool terminal_send_files(int fd, enum terminal_packet type, const void *data, size_t len, const int *files, size_t n)
{
    char packet[1 + TERMINAL_PIECE] = {(char)type};
    struct iovec piece = {packet, len + 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    union terminal_control control = {0};
    ssize_t sent;

    if (len > TERMINAL_PIECE || n > TERMINAL_FILES)
        return false;
    if (len > 0)
        memcpy(packet + 1, data, len);
    if (n > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(n * sizeof(int));
        control.header =
            (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n * sizeof(int))};
        memcpy(CMSG_DATA(&control.header), files, n * sizeof(int));
    }
    while ((sent = sendmsg(fd, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR)
        continue;
    return sent == (ssize_t)len + 1;
}

bool terminal_send(int fd, enum terminal_packet type, const void *data, size_t len)
{
    return terminal_send_files(fd, type, data, len, NULL, 0);
}

ssize_t terminal_receive(int fd, char *packet, size_t size, int *files, size_t n)
{
    struct iovec piece = {packet, size};
    union terminal_control control = {0};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(n * sizeof(int))};

    for (size_t i = 0; i < n; i++)
        files[i] = -1;
    ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *c = got >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len <= CMSG_LEN(n * sizeof(int)))
        memcpy(files, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
    return got;
}
