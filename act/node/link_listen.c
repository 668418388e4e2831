/* link_listen.c - where the supervisor listens: a Unix socket in the run's folder if all ranks are on this machine,
 * else the addresses at which other nodes reach it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "node/link_internal.h"
#include "proc/proc.h"

#define SOCKET_NAME "link"
#define LOOPBACK    "127.0.0.1"

enum { BACKLOG = 4096 };

static void add_fd(struct link_listeners *l, int fd)
{
    ACT_PUSH(l->fds, l->n, fd);
}

static void close_all(struct link_listeners *l)
{
    for (size_t i = 0; i < l->n; i++)
        close(l->fds[i]);
    l->n = 0;
}

/* ---- on this machine ---- */

void link_unix_address(int dir_fd, struct sockaddr_un *out)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(out->sun_path, sizeof(out->sun_path), "/proc/self/fd/%d/" SOCKET_NAME, dir_fd);
}

/* Returns an errno: not every file system can hold a socket. */
static int listen_unix(struct link_listeners *l, const char *dir)
{
    struct sockaddr_un at;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    l->dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    link_unix_address(l->dir_fd, &at);
    if (fd >= 0 && l->dir_fd >= 0) {
        unlinkat(l->dir_fd, SOCKET_NAME, 0); /* of an attempt that was killed */
        fchmod(fd, 0600);                    /* bind() gives the file this mode */
        if (bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, BACKLOG) == 0) {
            add_fd(l, fd);
            l->address = act_sprintf("unix %s", dir);
            return 0;
        }
    }
    int errnum = errno;
    if (fd >= 0)
        close(fd);
    if (l->dir_fd >= 0)
        close(l->dir_fd);
    l->dir_fd = -1;
    return errnum;
}

/* ---- addresses ---- */

static void listen_add_address(struct act_strv *addresses, const struct sockaddr *at)
{
    char text[INET6_ADDRSTRLEN];
    const void *bytes = at->sa_family == AF_INET6 ? (const void *)&((const struct sockaddr_in6 *)at)->sin6_addr
                                                  : (const void *)&((const struct sockaddr_in *)at)->sin_addr;

    if (inet_ntop(at->sa_family, bytes, text, sizeof(text)) && !act_strv_has(addresses, text))
        act_strv_push(addresses, text);
}

/* Tells whether other machines may know this one by an address. */
static bool is_useful(const struct ifaddrs *i)
{
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || !(i->ifa_flags & IFF_RUNNING) || (i->ifa_flags & IFF_LOOPBACK))
        return false;
    if (i->ifa_addr->sa_family == AF_INET6)
        return !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)i->ifa_addr)->sin6_addr);
    return i->ifa_addr->sa_family == AF_INET;
}

static void add_interfaces(struct act_strv *addresses)
{
    static const sa_family_t families[] = {AF_INET, AF_INET6};
    struct ifaddrs *list = NULL;

    if (getifaddrs(&list) < 0)
        return;
    for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++)
        for (const struct ifaddrs *i = list; i; i = i->ifa_next)
            if (is_useful(i) && i->ifa_addr->sa_family == families[f])
                listen_add_address(addresses, i->ifa_addr);
    freeifaddrs(list);
}

/* Adds the source address that the kernel uses towards the other one; no packet is sent to find out. */
static void add_way_to(struct act_strv *addresses, const char *to)
{
    enum { ANY_PORT = 9 };
    struct sockaddr_storage at;
    socklen_t len = link_parse_address(to, ANY_PORT, &at);
    ACT_AUTOCLOSE int fd = len ? socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;

    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, len) == 0) {
        len = sizeof(at);
        if (getsockname(fd, (struct sockaddr *)&at, &len) == 0)
            listen_add_address(addresses, (struct sockaddr *)&at);
    }
}

/* Returns the output of getent(1) for the hosts, a line per address; NULL if it does not know all of them. It uses
 * the system's resolver, which a static program cannot. New string. */
static char *listen_look_up(const struct act_strv *hosts)
{
    enum { TIMEOUT_S = 10, OUTPUT_MAX = 4 * 1024 * 1024 };
    ACT_AUTO(act_strv) words = {0};
    struct act_error err;
    char *text = NULL;
    int status = 0;

    ACT_STRV_PUSH(&words, "getent", "ahosts");
    act_strv_copy(&words, hosts->v, hosts->n);
    if (proc_run(words.v, TIMEOUT_S, OUTPUT_MAX, &text, &status, &err) < 0 || status != 0) {
        free(text);
        text = NULL;
    }
    return text;
}

static void add_ways(struct act_strv *addresses, const struct act_strv *hosts)
{
    ACT_AUTOFREE char *text = hosts && hosts->n ? listen_look_up(hosts) : NULL;
    char *rest = text;

    for (char *line; rest && (line = strsep(&rest, "\n"));) {
        line[strcspn(line, " ")] = '\0';
        add_way_to(addresses, line);
    }
}

/* ---- TCP ---- */

static uint16_t *port_in(struct sockaddr_storage *at)
{
    return at->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)at)->sin6_port : &((struct sockaddr_in *)at)->sin_port;
}

/* Listens at one address. *port 0: takes any free port and stores it there. Returns an errno. */
static int listen_tcp(struct link_listeners *l, const char *address, uint16_t *port)
{
    struct sockaddr_storage at;
    socklen_t len = link_parse_address(address, *port, &at);
    int one = 1, fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return errno;
    if (at.ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
    if (*port != 0) /* connections of an earlier listener may be in TIME_WAIT */
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) < 0) {
        int errnum = errno;
        close(fd);
        return errnum;
    }
    *port = ntohs(*port_in(&at));
    add_fd(l, fd);
    return 0;
}

/* Listens on the same port of all addresses; unavailable ones are left out. Returns an errno; EADDRINUSE: the port is
 * not free on all of them. */
static int listen_at_one_port(struct link_listeners *l, const struct act_strv *addresses, uint16_t port)
{
    ACT_AUTO(act_buf) text = {0};
    int errnum = EADDRNOTAVAIL;

    for (size_t i = 0; i < addresses->n; i++) {
        errnum = listen_tcp(l, addresses->v[i], &port);
        if (errnum == EADDRINUSE)
            break;
        if (errnum == 0)
            act_buf_addf(&text, " %s", addresses->v[i]);
    }
    if (errnum != EADDRINUSE && l->n > 0) {
        l->address = act_sprintf("tcp %d%s", port, text.data);
        errnum = 0;
    } else {
        close_all(l);
    }
    return errnum;
}

int link_listen_on(struct link_listeners *l, const struct link_where *where, struct act_error *err)
{
    enum { TRIES = 64 };
    ACT_AUTO(act_strv) addresses = {0};
    int errnum = EADDRINUSE;

    *l = (struct link_listeners){.dir_fd = -1};
    if (where->dir && listen_unix(l, where->dir) == 0)
        return 0;
    if (!where->dir)
        add_ways(&addresses, where->hosts);
    if (!where->dir && addresses.n == 0)
        add_interfaces(&addresses);
    if (!act_strv_has(&addresses, LOOPBACK))
        act_strv_push(&addresses, LOOPBACK); /* for the ranks of this node, whatever the network does */
    for (int i = 0; (i == 0 || (i < TRIES && where->port == 0)) && errnum == EADDRINUSE; i++)
        errnum = listen_at_one_port(l, &addresses, where->port);
    if (errnum && where->port)
        return act_error_errno(err, errnum, "cannot listen at port %d", where->port);
    return errnum ? act_error_errno(err, errnum, "cannot listen for the ranks") : 0;
}

void link_listeners_release(struct link_listeners *l)
{
    close_all(l);
    if (l->dir_fd >= 0) {
        unlinkat(l->dir_fd, SOCKET_NAME, 0);
        close(l->dir_fd);
    }
    free(l->fds);
    free(l->address);
    *l = (struct link_listeners){.dir_fd = -1};
}
