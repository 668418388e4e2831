/* host.c - compares names of hosts by their letters alone, without asking a resolver; listens for this machine. */
#include "base/host.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"

#define LOCAL       "localhost"
#define BELOW_LOCAL "." LOCAL

bool act_host_is_below(const char *host, const char *start)
{
    return act_starts_with(host, start) && host[strspn(host, "0123456789.")] == '\0';
}

bool act_host_is_loopback(const char *host)
{
    size_t n = strlen(host), below = strlen(BELOW_LOCAL);

    return strcasecmp(host, LOCAL) == 0 || (n > below && strcasecmp(host + n - below, BELOW_LOCAL) == 0) ||
           act_host_is_below(host, "127.") || strcmp(host, "[::1]") == 0;
}

int act_listen_here(uint16_t *port, int backlog)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(*port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(address);
    const int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, backlog) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) < 0) {
        int errnum = errno;
        close(fd);
        return -errnum;
    }
    *port = ntohs(address.sin_port);
    return fd;
}

/* The address and port as /proc/net/tcp (IPv6: /proc/net/tcp6) shows them. */
enum { NET_TEXT = 48 };
static void net_text(const struct sockaddr_in *at, bool is_six, char out[NET_TEXT])
{
    const uint32_t mapped[] = {0, 0, htonl(0xffff)};
    int n = 0;

    for (size_t i = 0; is_six && i < sizeof(mapped) / sizeof(mapped[0]); i++)
        n += snprintf(out + n, (size_t)(NET_TEXT - n), "%08X", mapped[i]);
    snprintf(out + n, (size_t)(NET_TEXT - n), "%08X:%04X", at->sin_addr.s_addr, ntohs(at->sin_port));
}

/* Looks for the socket of this machine that is connected from one address to another. One that its process has closed
 * has no inode, and says nothing of a user. */
static bool net_has_own(bool is_six, const struct sockaddr_in *from, const struct sockaddr_in *to)
{
    char local[NET_TEXT], remote[NET_TEXT], wanted_local[NET_TEXT], wanted_remote[NET_TEXT], line[512];
    unsigned long inode;
    unsigned uid;
    bool is_own = false;
    FILE *f = fopen(is_six ? "/proc/net/tcp6" : "/proc/net/tcp", "re");

    net_text(from, is_six, wanted_local);
    net_text(to, is_six, wanted_remote);
    while (f && !is_own && fgets(line, sizeof(line), f))
        is_own = sscanf(line, "%*s %47s %47s %*s %*s %*s %*s %u %*s %lu", local, remote, &uid, &inode) == 4 &&
                 strcmp(local, wanted_local) == 0 && strcmp(remote, wanted_remote) == 0 && inode != 0 &&
                 (uid == geteuid() || uid == 0);
    if (f)
        fclose(f);
    return is_own;
}

bool act_is_own_peer(int fd)
{
    struct sockaddr_in here = {0}, there = {0};
    socklen_t here_len = sizeof(here), there_len = sizeof(there);

    if (getsockname(fd, (struct sockaddr *)&here, &here_len) < 0 ||
        getpeername(fd, (struct sockaddr *)&there, &there_len) < 0 || here.sin_family != AF_INET ||
        there.sin_family != AF_INET)
        return false;
    return net_has_own(false, &there, &here) || net_has_own(true, &there, &here);
}
