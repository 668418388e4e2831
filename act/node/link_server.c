/* link_server.c - the supervisor's side: thousands of ranks on one epoll descriptor. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hash.h"
#include "codec/json.h"
#include "node/link.h"
#include "node/link_internal.h"

enum { BACKLOG = 4096, EVENTS = 256, STRANGERS_MAX_MORE = 64 };

/* A connection; a stranger until it has said hello. */
struct peer {
    struct link link;
    int rank; /* -1: a stranger */
    struct peer *next_stranger;
};

struct link_server {
    int epoll_fd, listen_fd[2]; /* IPv4, IPv6; -1: none */
    uint16_t port;
    char token[LINK_TOKEN_TEXT];
    char *address;
    const struct link_events *events;
    void *arg;
    struct peer **ranks; /* n_ranks; NULL: not connected */
    int n_ranks, n_connected, n_strangers;
    struct peer *strangers;
    bool stopping;
};

/* ---- listen ---- */

static int watch_fd(struct link_server *s, int fd, uint32_t events, void *what, int how)
{
    struct epoll_event e = {.events = events, .data.ptr = what};

    return epoll_ctl(s->epoll_fd, how, fd, &e);
}

static int listen_on(struct link_server *s, int i, struct sockaddr *at, socklen_t len)
{
    int one = 1, fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    if (at->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
    if (bind(fd, at, len) < 0 || listen(fd, BACKLOG) < 0 ||
        watch_fd(s, fd, EPOLLIN, &s->listen_fd[i], EPOLL_CTL_ADD) < 0) {
        close(fd);
        return -1;
    }
    s->listen_fd[i] = fd;
    return 0;
}

/* The same port for both families; without IPv6 there is only one. */
static int listen_all(struct link_server *s, bool here_only, struct act_error *err)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(here_only ? INADDR_LOOPBACK : INADDR_ANY)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
    socklen_t len = sizeof(v4);

    if (listen_on(s, 0, (struct sockaddr *)&v4, len) < 0 ||
        getsockname(s->listen_fd[0], (struct sockaddr *)&v4, &len) < 0)
        return act_error_errno(err, errno, "cannot listen for the ranks");
    s->port = ntohs(v4.sin_port);
    v6.sin6_port = v4.sin_port;
    if (!here_only)
        (void)!listen_on(s, 1, (struct sockaddr *)&v6, sizeof(v6));
    return 0;
}

/* Addresses that other machines may know this one by. */
static bool is_useful(const struct ifaddrs *i)
{
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || !(i->ifa_flags & IFF_RUNNING) ||
        (i->ifa_flags & IFF_LOOPBACK))
        return false;
    if (i->ifa_addr->sa_family == AF_INET6)
        return !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)i->ifa_addr)->sin6_addr);
    return i->ifa_addr->sa_family == AF_INET;
}

static void add_addresses(struct act_buf *text, sa_family_t family)
{
    char one[INET6_ADDRSTRLEN];
    struct ifaddrs *list = NULL;

    if (getifaddrs(&list) < 0)
        return;
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        if (!is_useful(i) || i->ifa_addr->sa_family != family)
            continue;
        const void *bytes = family == AF_INET6
                                ? (const void *)&((const struct sockaddr_in6 *)i->ifa_addr)->sin6_addr
                                : (const void *)&((const struct sockaddr_in *)i->ifa_addr)->sin_addr;
        act_buf_addf(text, " %s", inet_ntop(family, bytes, one, sizeof(one)));
    }
    freeifaddrs(list);
}

/* As numbers: names may mean something else on another node. */
static void make_address(struct link_server *s, bool here_only)
{
    struct act_buf text = {0};

    act_buf_addf(&text, "%d %s", s->port, s->token);
    if (!here_only) {
        add_addresses(&text, AF_INET);
        add_addresses(&text, AF_INET6);
    }
    act_buf_adds(&text, " 127.0.0.1");
    s->address = act_buf_steal(&text);
}

int link_listen(int n_ranks, bool here_only, const struct link_events *events, void *arg,
                struct link_server **out, struct act_error *err)
{
    uint8_t random[LINK_TOKEN_BYTES];
    struct link_server *s = act_calloc(1, sizeof(*s));

    *s = (struct link_server){.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
                              .listen_fd = {-1, -1},
                              .events = events,
                              .arg = arg,
                              .ranks = act_calloc((size_t)n_ranks, sizeof(struct peer *)),
                              .n_ranks = n_ranks};
    act_random(random, sizeof(random));
    act_hex(random, sizeof(random), s->token);
    int rc = s->epoll_fd < 0 ? act_error_errno(err, errno, "cannot wait for the ranks")
                             : listen_all(s, here_only, err);
    if (rc < 0) {
        link_server_free(s);
        return rc;
    }
    make_address(s, here_only);
    *out = s;
    return 0;
}

const char *link_address(const struct link_server *s)
{
    return s->address;
}

int link_fd(const struct link_server *s)
{
    return s->epoll_fd;
}

/* ---- peers ---- */

static void remove_stranger(struct link_server *s, struct peer *p)
{
    struct peer **at = &s->strangers;

    while (*at && *at != p)
        at = &(*at)->next_stranger;
    if (*at) {
        *at = p->next_stranger;
        s->n_strangers--;
    }
}

/* The connection is at its end. Nobody uses p after this. */
static void drop(struct link_server *s, struct peer *p, int errnum)
{
    int rank = p->rank;

    link_close(&p->link);
    if (rank < 0) {
        remove_stranger(s, p);
    } else {
        s->ranks[rank] = NULL;
        s->n_connected--;
    }
    free(p);
    if (rank >= 0)
        s->events->gone(s->arg, rank, errnum);
}

static void accept_all(struct link_server *s, int listen_fd)
{
    for (int fd; (fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
        struct peer *p = act_calloc(1, sizeof(*p));
        *p = (struct peer){.link.fd = fd, .rank = -1, .next_stranger = s->strangers};
        link_tune(fd);
        if (s->n_strangers >= s->n_ranks + STRANGERS_MAX_MORE ||
            watch_fd(s, fd, EPOLLIN, p, EPOLL_CTL_ADD) < 0) {
            close(fd);
            free(p);
            continue;
        }
        s->strangers = p;
        s->n_strangers++;
    }
}

/* Waits for room to send only when there is something to send. */
static bool send_to(struct link_server *s, struct peer *p, const json_t *message)
{
    bool good = link_send(&p->link, message);

    if (good && p->link.out.len > 0)
        good = watch_fd(s, p->link.fd, EPOLLIN | EPOLLOUT, p, EPOLL_CTL_MOD) == 0;
    return good;
}

/* The first message of a connection. False: hang up. */
static bool greet(struct link_server *s, struct peer *p, const json_t *message)
{
    int64_t rank = codec_json_int(message, "rank", -1);
    CODEC_AUTOJSON json_t *answer =
        json_pack("{s:s, s:s, s:b}", "type", "accepted", "token", s->token, "stop", s->stopping);

    if (!act_streq(codec_json_str(message, "type", ""), "hello") ||
        !act_streq(codec_json_str(message, "token", ""), s->token) || rank < 0 || rank >= s->n_ranks ||
        s->ranks[rank] || !s->events->hello(s->arg, (int)rank, message))
        return false;
    remove_stranger(s, p);
    p->rank = (int)rank;
    s->ranks[rank] = p;
    s->n_connected++;
    return send_to(s, p, answer);
}

/* False: hang up. */
static bool handle(struct link_server *s, struct peer *p)
{
    json_t *message;
    int got;

    while ((got = link_take(&p->link, &message)) > 0) {
        CODEC_AUTOJSON json_t *held = message;
        if (p->rank < 0 && !greet(s, p, held))
            return false;
        if (!act_streq(codec_json_str(held, "type", ""), "hello"))
            s->events->message(s->arg, p->rank, held);
    }
    return got == 0;
}

static void serve_peer(struct link_server *s, struct peer *p, uint32_t events)
{
    bool more = link_fill(&p->link);
    int errnum = more ? 0 : errno;

    if (!handle(s, p) || !more || !link_flush(&p->link)) {
        drop(s, p, errnum);
        return;
    }
    if ((events & EPOLLOUT) && p->link.out.len == 0 && watch_fd(s, p->link.fd, EPOLLIN, p, EPOLL_CTL_MOD) < 0)
        drop(s, p, errno);
}

void link_serve(struct link_server *s)
{
    struct epoll_event ready[EVENTS];
    int n = epoll_wait(s->epoll_fd, ready, EVENTS, 0);

    for (int i = 0; i < n; i++) {
        void *what = ready[i].data.ptr;
        if (what == &s->listen_fd[0] || what == &s->listen_fd[1])
            accept_all(s, *(int *)what);
        else
            serve_peer(s, what, ready[i].events);
    }
}

/* ---- to the ranks ---- */

void link_tell(struct link_server *s, int rank, const json_t *message)
{
    struct peer *p = s->ranks[rank];

    /* a broken connection is reported by epoll, not from here: the caller may be in the middle of something */
    if (p && !send_to(s, p, message))
        shutdown(p->link.fd, SHUT_RDWR);
}

void link_tell_all(struct link_server *s, const json_t *message)
{
    for (int rank = 0; rank < s->n_ranks; rank++)
        link_tell(s, rank, message);
}

void link_set_stopping(struct link_server *s)
{
    s->stopping = true;
}

int link_connected(const struct link_server *s)
{
    return s->n_connected;
}

void link_cut(struct link_server *s)
{
    for (int rank = 0; rank < s->n_ranks; rank++)
        if (s->ranks[rank])
            drop(s, s->ranks[rank], ETIMEDOUT);
}

void link_server_free(struct link_server *s)
{
    if (!s)
        return;
    for (int rank = 0; rank < s->n_ranks; rank++)
        if (s->ranks[rank]) {
            link_close(&s->ranks[rank]->link);
            free(s->ranks[rank]);
        }
    for (struct peer *p = s->strangers, *next; p; p = next) {
        next = p->next_stranger;
        link_close(&p->link);
        free(p);
    }
    for (int i = 0; i < 2; i++)
        if (s->listen_fd[i] >= 0)
            close(s->listen_fd[i]);
    if (s->epoll_fd >= 0)
        close(s->epoll_fd);
    free(s->ranks);
    free(s->address);
    free(s);
}
