/* link_server.c - the supervisor's side: thousands of ranks on one epoll descriptor. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "codec/json.h"
#include "node/link_internal.h"

enum { EVENTS = 256, ACCEPTED_AT_ONCE = 256, REST_MS = 100, HELLO_MAX = 4096 };

/* A connection; a stranger until it has proved that it knows the token. */
struct link_peer {
    struct link link;
    int rank;                     /* -1: a stranger */
    char nonce[LINK_SECRET_TEXT]; /* for the peer to answer */
    int64_t until_ms;             /* monotonic; then a stranger is disconnected */
    struct link_peer *next;       /* the next younger stranger, or the next that is gone */
};

struct link_server {
    int epoll_fd, timer_fd;
    struct link_listeners listeners;
    char token[LINK_SECRET_TEXT];
    char *address;
    const struct link_events *events;
    void *arg;
    struct link_peer **ranks; /* n_ranks; NULL: not connected */
    int n_ranks, n_connected, n_strangers;
    struct link_peer *strangers; /* the oldest */
    struct link_peer **youngest; /* where the next one is linked */
    struct link_peer *gone;      /* to be freed later: pending epoll events may refer to them */
    int64_t rests_until_ms;      /* accepting is suspended, for lack of file descriptors; 0: it is not */
    int64_t timer_ms;            /* when the timer fires; 0: it is not set */
    bool stopping;
};

/* ---- open ---- */

static int watch_fd(struct link_server *s, int fd, uint32_t events, void *what, int how)
{
    struct epoll_event e = {.events = events, .data.ptr = what};

    return epoll_ctl(s->epoll_fd, how, fd, &e);
}

/* Returns what if it is a listener, else NULL. */
static const int *listener_of(const struct link_server *s, const void *what)
{
    for (size_t i = 0; i < s->listeners.n; i++)
        if (what == &s->listeners.fds[i])
            return what;
    return NULL;
}

static int watch_listeners(struct link_server *s, uint32_t events, int how)
{
    for (size_t i = 0; i < s->listeners.n; i++)
        if (watch_fd(s, s->listeners.fds[i], events, &s->listeners.fds[i], how) < 0)
            return -1;
    return 0;
}

static int link_server_open(struct link_server *s, const struct link_where *where, struct act_error *err)
{
    if (s->epoll_fd < 0 || s->timer_fd < 0 || watch_fd(s, s->timer_fd, EPOLLIN, NULL, EPOLL_CTL_ADD) < 0)
        return act_error_errno(err, errno, "cannot wait for the ranks");
    int rc = link_listen_on(&s->listeners, where, err);
    if (rc < 0)
        return rc;
    if (watch_listeners(s, EPOLLIN, EPOLL_CTL_ADD) < 0)
        return act_error_errno(err, errno, "cannot wait for the ranks");
    s->address = act_sprintf("%s %s", s->token, s->listeners.address);
    return 0;
}

int link_listen(int n_ranks, const struct link_where *where, const struct link_events *events, void *arg,
                struct link_server **out, struct act_error *err)
{
    struct link_server *s = act_calloc(1, sizeof(*s));

    *s = (struct link_server){.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
                              .timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
                              .listeners.dir_fd = -1,
                              .events = events,
                              .arg = arg,
                              .ranks = act_calloc((size_t)n_ranks, sizeof(struct link_peer *)),
                              .n_ranks = n_ranks};
    s->youngest = &s->strangers;
    if (where->token)
        snprintf(s->token, sizeof(s->token), "%s", where->token);
    else
        link_make_secret(s->token);
    int rc = link_server_open(s, where, err);
    if (rc < 0) {
        link_server_free(s);
        return rc;
    }
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

static void remove_stranger(struct link_server *s, struct link_peer *p)
{
    struct link_peer **at = &s->strangers;

    while (*at && *at != p)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = p->next;
    if (!*at)
        s->youngest = at;
    s->n_strangers--;
}

/* A child process of this one may hold a copy of the descriptor, with which the connection, and what epoll knows of it,
 * would outlive close(). */
static void link_server_hang_up(struct link_server *s, struct link_peer *p)
{
    (void)watch_fd(s, p->link.fd, 0, NULL, EPOLL_CTL_DEL);
    shutdown(p->link.fd, SHUT_RDWR);
    link_close(&p->link);
}

/* The connection has ended. */
static void link_drop(struct link_server *s, struct link_peer *p, int errnum)
{
    int rank = p->rank;

    link_server_hang_up(s, p);
    if (rank < 0) {
        remove_stranger(s, p);
    } else {
        s->ranks[rank] = NULL;
        s->n_connected--;
    }
    p->next = s->gone;
    s->gone = p;
    if (rank >= 0)
        s->events->gone(s->arg, rank, errnum);
}

static void free_list(struct link_peer **list)
{
    while (*list) {
        struct link_peer *p = *list;
        *list = p->next;
        link_close(&p->link);
        free(p);
    }
}

/* Waits for writability only if there is something to send. */
static bool send_to(struct link_server *s, struct link_peer *p, const json_t *message)
{
    bool good = link_send(&p->link, message);

    if (good && p->link.out.len > 0)
        good = watch_fd(s, p->link.fd, EPOLLIN | EPOLLOUT, p, EPOLL_CTL_MOD) == 0;
    return good;
}

/* ---- strangers ---- */

/* The mode of a Unix socket's file already keeps others out, if its file system supports owners. */
static bool is_of_other_user(int fd)
{
    struct ucred who;
    socklen_t len = sizeof(who);
    int family = 0;
    socklen_t family_len = sizeof(family);

    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &family_len) == 0 && family != AF_UNIX)
        return false;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0 || (who.uid != geteuid() && who.uid != 0);
}

static void link_server_meet(struct link_server *s, int fd)
{
    if (is_of_other_user(fd)) {
        close(fd);
        return;
    }
    if (s->n_strangers >= s->n_ranks + LINK_STRANGERS_MORE)
        link_drop(s, s->strangers, 0);
    struct link_peer *p = act_calloc(1, sizeof(*p));
    *p = (struct link_peer){.link.fd = fd, .rank = -1, .until_ms = act_now_monotonic_ms() + LINK_STRANGER_MS};
    link_make_secret(p->nonce);
    link_tune(fd);
    *s->youngest = p;
    s->youngest = &p->next;
    s->n_strangers++;
    CODEC_AUTOJSON json_t *challenge = json_pack("{s:s, s:s}", "type", "challenge", "nonce", p->nonce);
    if (watch_fd(s, fd, EPOLLIN, p, EPOLL_CTL_ADD) < 0 || !send_to(s, p, challenge))
        link_drop(s, p, 0);
}

/* Disconnects a stranger to free its file descriptor; if there is none, suspends accepting for a moment instead of
 * retrying in a busy loop. */
static bool make_room(struct link_server *s)
{
    if (s->strangers) {
        link_drop(s, s->strangers, 0);
        return true;
    }
    s->rests_until_ms = act_now_monotonic_ms() + REST_MS;
    (void)watch_listeners(s, 0, EPOLL_CTL_MOD);
    return false;
}

/* accept4() looks for a free file descriptor before a waiting peer: without one, it fails even if nobody is waiting. */
static bool needs_room(int listen_fd, int errnum)
{
    struct pollfd waits = {.fd = listen_fd, .events = POLLIN};

    return (errnum == EMFILE || errnum == ENFILE || errnum == ENOBUFS || errnum == ENOMEM) && poll(&waits, 1, 0) == 1;
}

static bool is_passing(int errnum)
{
    return errnum == EINTR || errnum == ECONNABORTED;
}

static void link_accept_some(struct link_server *s, int listen_fd)
{
    for (int i = 0; i < ACCEPTED_AT_ONCE; i++) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            link_server_meet(s, fd);
        else if (needs_room(listen_fd, errno) ? !make_room(s) : !is_passing(errno))
            return;
    }
}

/* Takes the first message of a connection. False: hang up. */
static bool link_greet(struct link_server *s, struct link_peer *p, const json_t *message)
{
    int64_t rank = codec_json_int(message, "rank", -1);
    const char *theirs = codec_json_str(message, "nonce", "");

    if (!act_streq(codec_json_str(message, "type", ""), "hello") ||
        !link_is_proved(message, LINK_RANK, s->token, p->nonce, theirs, rank) || rank < 0 || rank >= s->n_ranks ||
        s->ranks[rank] || !s->events->hello(s->arg, (int)rank, message))
        return false;
    remove_stranger(s, p);
    p->rank = (int)rank;
    s->ranks[rank] = p;
    s->n_connected++;
    ACT_AUTOFREE char *proof = link_proof(LINK_SUPERVISOR, s->token, p->nonce, theirs, rank);
    CODEC_AUTOJSON json_t *answer =
        json_pack("{s:s, s:s, s:b}", "type", "accepted", "proof", proof, "stop", s->stopping);
    return send_to(s, p, answer);
}

/* Takes the messages of a peer; false: hang up. */
static bool link_handle(struct link_server *s, struct link_peer *p)
{
    json_t *message;
    int got;

    if (p->rank < 0 && p->link.in.len > HELLO_MAX)
        return false;
    while ((got = link_take(&p->link, &message)) > 0) {
        CODEC_AUTOJSON json_t *held = message;
        if (p->rank < 0 && !link_greet(s, p, held))
            return false;
        if (!act_streq(codec_json_str(held, "type", ""), "hello"))
            s->events->message(s->arg, p->rank, held);
    }
    return got == 0;
}

static void serve_peer(struct link_server *s, struct link_peer *p, uint32_t events)
{
    bool more = link_fill(&p->link);
    int errnum = more ? 0 : errno;

    if (!link_handle(s, p) || !more || !link_flush(&p->link)) {
        link_drop(s, p, errnum);
        return;
    }
    if ((events & EPOLLOUT) && p->link.out.len == 0 && watch_fd(s, p->link.fd, EPOLLIN, p, EPOLL_CTL_MOD) < 0)
        link_drop(s, p, errno);
}

/* ---- times ---- */

static void drop_late_strangers(struct link_server *s)
{
    int64_t now = act_now_monotonic_ms();

    while (s->strangers && s->strangers->until_ms <= now)
        link_drop(s, s->strangers, 0);
}

static void end_rest(struct link_server *s)
{
    if (s->rests_until_ms && s->rests_until_ms <= act_now_monotonic_ms() &&
        watch_listeners(s, EPOLLIN, EPOLL_CTL_MOD) == 0)
        s->rests_until_ms = 0;
}

static void set_timer(struct link_server *s)
{
    enum { MS = 1000, NS_PER_MS = 1000000 };
    int64_t at_ms = s->strangers ? s->strangers->until_ms : 0;

    if (s->rests_until_ms && (!at_ms || s->rests_until_ms < at_ms))
        at_ms = s->rests_until_ms;
    struct itimerspec when = {.it_value = {.tv_sec = at_ms / MS, .tv_nsec = at_ms % MS * NS_PER_MS}};
    if (at_ms != s->timer_ms && timerfd_settime(s->timer_fd, TFD_TIMER_ABSTIME, &when, NULL) == 0)
        s->timer_ms = at_ms;
}

static void clear_timer(struct link_server *s)
{
    uint64_t times;

    if (read(s->timer_fd, &times, sizeof(times)) > 0)
        s->timer_ms = 0;
}

static void link_serve_one(struct link_server *s, const struct epoll_event *event)
{
    const int *listener = listener_of(s, event->data.ptr);
    struct link_peer *p = event->data.ptr;

    if (listener)
        link_accept_some(s, *listener);
    else if (p && p->link.fd >= 0) /* not dropped meanwhile */
        serve_peer(s, p, event->events);
}

void link_serve(struct link_server *s)
{
    struct epoll_event ready[EVENTS];
    int n = epoll_wait(s->epoll_fd, ready, EVENTS, 0);

    for (int i = 0; i < n; i++)
        link_serve_one(s, &ready[i]);
    clear_timer(s);
    if (n < EVENTS) /* all arrived messages were handled: no peer is dropped because we were slow */
        drop_late_strangers(s);
    end_rest(s);
    set_timer(s);
    free_list(&s->gone);
}

/* ---- to the ranks ---- */

void link_tell(struct link_server *s, int rank, const json_t *message)
{
    struct link_peer *p = rank >= 0 && rank < s->n_ranks ? s->ranks[rank] : NULL;

    /* a broken connection is reported by epoll, not from here: the caller may be in mid-operation */
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
            link_drop(s, s->ranks[rank], ETIMEDOUT);
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
    free_list(&s->strangers);
    free_list(&s->gone);
    link_listeners_release(&s->listeners);
    if (s->timer_fd >= 0)
        close(s->timer_fd);
    if (s->epoll_fd >= 0)
        close(s->epoll_fd);
    free(s->ranks);
    free(s->address);
    free(s);
}
