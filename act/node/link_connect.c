/* link_connect.c - the rank's side: find the supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "codec/json.h"
#include "node/link_internal.h"

enum { CONNECT_MS = 3000, NEXT_MS = 250, ANSWER_MS = 10000, ALL_TRIES_MS = 10000, PAUSE_MS = 200 };

/* The place of the supervisor: "<token> unix <dir>" or "<token> tcp <port> <address> <address> ...". */
struct connect_target {
    char *text;
    const char *token, *dir, *addresses; /* in text; dir NULL: TCP */
    uint16_t port;
};

static bool parse_target(struct connect_target *t, char *text)
{
    int64_t port = 0;

    t->token = strsep(&text, " ");
    const char *kind = strsep(&text, " ");
    if (act_streq(kind, "unix")) {
        t->dir = text;
        return text && *text == '/';
    }
    const char *number = strsep(&text, " ");
    t->addresses = text;
    if (!act_streq(kind, "tcp") || !text || !act_int_from_text(number, &port) || port < 1 || port > UINT16_MAX)
        return false;
    t->port = (uint16_t)port;
    return true;
}

static int connect_read_target(struct connect_target *t, struct act_error *err)
{
    const char *value = getenv(LINK_ENV);

    if (!value)
        return act_error_set(err, ACT_FAIL,
                             LINK_ENV " is not in the environment: ranks are started by 'act-node supervise'");
    t->text = act_strdup(value);
    unsetenv(LINK_ENV);
    return parse_target(t, t->text) && link_is_secret(t->token)
               ? 0
               : act_error_set(err, ACT_FAIL, "the value of " LINK_ENV " is malformed");
}

/* ---- a connection that comes ---- */

/* Returns an errno: 0: it has come; EINPROGRESS: it is under way, and *out_fd becomes writable with its result. Else
 * there is no descriptor. */
static int connect_begin(const struct sockaddr *at, socklen_t len, int *out_fd)
{
    int fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int errnum = fd < 0 || connect(fd, at, len) < 0 ? errno : 0;

    *out_fd = fd;
    if (errnum != 0 && errnum != EINPROGRESS && fd >= 0) {
        close(fd);
        *out_fd = -1;
    }
    return errnum;
}

static int connect_begin_tcp(const char *address, uint16_t port, int *out_fd)
{
    struct sockaddr_storage at;
    socklen_t len = link_parse_address(address, port, &at);

    *out_fd = -1;
    return len ? connect_begin((struct sockaddr *)&at, len, out_fd) : EINVAL;
}

/* Returns an errno. */
static int connect_result(int fd)
{
    socklen_t int_len = sizeof(int);
    int errnum = 0;

    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &int_len) < 0 ? errno : errnum;
}

/* Returns an errno; a Unix socket never lets one wait for the connection. */
static int connect_unix(const char *dir, int *out_fd)
{
    struct sockaddr_un at;
    int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (dir_fd < 0)
        return errno;
    link_unix_address(dir_fd, &at);
    int errnum = connect_begin((struct sockaddr *)&at, sizeof(at), out_fd);
    close(dir_fd);
    return errnum;
}

/* ---- the greeting ---- */

/* Takes no more than a line from the network: whoever polls the descriptor from now on hears of what comes behind it.
 * Returns false when the connection has ended. */
static bool fill_line(struct link *l)
{
    char chunk[4096];
    ssize_t n = recv(l->fd, chunk, sizeof(chunk), MSG_DONTWAIT | MSG_PEEK);
    const char *end = n > 0 ? memchr(chunk, '\n', (size_t)n) : NULL;

    if (end)
        n = end + 1 - chunk;
    if (n > 0)
        n = recv(l->fd, chunk, (size_t)n, MSG_DONTWAIT);
    if (n > 0)
        act_buf_add(&l->in, chunk, (size_t)n);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

/* Returns the next message; NULL: the other side hung up, or took too long. */
static json_t *wait_message(struct link *l)
{
    int64_t deadline = act_now_monotonic_ms() + ANSWER_MS, left = ANSWER_MS;
    json_t *message = NULL;
    int got = link_take(l, &message);

    for (; got == 0 && left > 0; left = deadline - act_now_monotonic_ms()) {
        poll(&(struct pollfd){.fd = l->fd, .events = POLLIN}, 1, (int)left);
        bool more = fill_line(l);
        got = link_take(l, &message);
        if (!more)
            break;
    }
    return message;
}

static void prove(json_t *hello, const char *token, const char *theirs, const char *ours, int64_t rank)
{
    ACT_AUTOFREE char *proof = link_proof(LINK_RANK, token, theirs, ours, rank);

    json_object_set_new(hello, "type", json_string("hello"));
    json_object_set_new(hello, "nonce", json_string(ours));
    json_object_set_new(hello, "proof", json_string(proof));
}

/* Tells whether it is our supervisor, and accepts us. */
static bool connect_greet(struct link *l, json_t *hello, const char *token, bool *out_stop)
{
    CODEC_AUTOJSON json_t *challenge = wait_message(l);
    CODEC_AUTOJSON json_t *answer = NULL;
    const char *theirs = codec_json_str(challenge, "nonce", "");
    int64_t rank = codec_json_int(hello, "rank", -1);
    char ours[LINK_SECRET_TEXT];

    if (!act_streq(codec_json_str(challenge, "type", ""), "challenge") || !link_is_secret(theirs))
        return false;
    link_make_secret(ours);
    prove(hello, token, theirs, ours, rank);
    if (!link_send(l, hello) || !link_drain(l, ANSWER_MS))
        return false;
    answer = wait_message(l);
    *out_stop = json_is_true(json_object_get(answer, "stop"));
    return act_streq(codec_json_str(answer, "type", ""), "accepted") &&
           link_is_proved(answer, LINK_SUPERVISOR, token, theirs, ours, rank);
}

/* Greets whoever answered at an address. errnum: of the connection, which is l->fd if that is 0. why: gets the
 * result, for the error message. */
static bool connect_try(struct link *l, const struct connect_target *t, const char *address, int errnum, json_t *hello,
                        bool *out_stop, struct act_buf *why)
{
    if (errnum == 0 && connect_greet(l, hello, t->token, out_stop))
        return true;
    act_buf_addf(why, "%s%s: %s", why->len ? ", " : "", address,
                 errnum ? strerror(errnum) : "what answers there is not the supervisor of this run");
    link_close(l);
    return false;
}

/* ---- all addresses of the supervisor: the next one is tried when one fails or does not answer at once, while that
 * one may still answer (RFC 8305) ---- */

struct connect_race {
    struct act_strv addresses;
    struct pollfd *fds; /* of the first n_begun addresses; fd -1: that one has failed */
    int64_t *begun_ms;
    size_t n_begun;
};

static void race_init(struct connect_race *r, const char *addresses)
{
    ACT_AUTOFREE char *copy = act_strdup(addresses);
    char *rest = copy;

    *r = (struct connect_race){0};
    for (const char *address; (address = strsep(&rest, " "));)
        act_strv_push(&r->addresses, address);
    r->fds = act_calloc(r->addresses.n, sizeof(*r->fds));
    r->begun_ms = act_calloc(r->addresses.n, sizeof(*r->begun_ms));
}

static void race_release(struct connect_race *r)
{
    for (size_t i = 0; i < r->n_begun; i++)
        if (r->fds[i].fd >= 0)
            close(r->fds[i].fd);
    free(r->fds);
    free(r->begun_ms);
    act_strv_release(&r->addresses);
}

/* Returns for how long nothing is to be done but to wait for answers; -1: no address is left. */
static int race_wait_ms(const struct connect_race *r)
{
    int64_t now = act_now_monotonic_ms(), until = INT64_MAX;

    for (size_t i = 0; i < r->n_begun; i++)
        if (r->fds[i].fd >= 0 && r->begun_ms[i] + CONNECT_MS < until)
            until = r->begun_ms[i] + CONNECT_MS;
    if (r->n_begun < r->addresses.n)
        until = until == INT64_MAX ? now : r->begun_ms[r->n_begun - 1] + NEXT_MS;
    return until == INT64_MAX ? -1 : until > now ? (int)(until - now) : 0;
}

/* Returns an errno. */
static int race_begin_next(struct connect_race *r, uint16_t port)
{
    size_t i = r->n_begun++;
    int errnum = connect_begin_tcp(r->addresses.v[i], port, &r->fds[i].fd);

    r->fds[i].events = POLLOUT;
    r->begun_ms[i] = act_now_monotonic_ms();
    return r->fds[i].fd >= 0 ? 0 : errnum;
}

/* Returns an errno: 0: it has come; EINPROGRESS: it may still come. */
static int race_state(const struct connect_race *r, size_t i)
{
    if (r->fds[i].revents)
        return connect_result(r->fds[i].fd);
    return act_now_monotonic_ms() < r->begun_ms[i] + CONNECT_MS ? EINPROGRESS : ETIMEDOUT;
}

/* Greets those that answered, in the order of their addresses. */
static bool race_greet(struct connect_race *r, struct link *l, const struct connect_target *t, json_t *hello,
                       bool *out_stop, struct act_buf *why)
{
    for (size_t i = 0; i < r->n_begun; i++) {
        int errnum = r->fds[i].fd < 0 ? EINPROGRESS : race_state(r, i);
        if (errnum == EINPROGRESS)
            continue;
        l->fd = r->fds[i].fd;
        r->fds[i].fd = -1;
        link_tune(l->fd);
        if (connect_try(l, t, r->addresses.v[i], errnum, hello, out_stop, why))
            return true;
    }
    return false;
}

static bool race_run(struct connect_race *r, struct link *l, const struct connect_target *t, json_t *hello,
                     bool *out_stop, struct act_buf *why)
{
    bool is_accepted = false;

    for (int wait_ms; !is_accepted && (wait_ms = race_wait_ms(r)) >= 0;) {
        poll(r->fds, r->n_begun, wait_ms);
        is_accepted = race_greet(r, l, t, hello, out_stop, why);
        if (is_accepted || r->n_begun == r->addresses.n || race_wait_ms(r) > 0)
            continue;
        int errnum = race_begin_next(r, t->port);
        if (errnum != 0)
            connect_try(l, t, r->addresses.v[r->n_begun - 1], errnum, hello, out_stop, why);
    }
    return is_accepted;
}

/* Tries every address once. */
static bool try_all(struct link *l, const struct connect_target *t, json_t *hello, bool *out_stop, struct act_buf *why)
{
    struct connect_race race;

    why->len = 0;
    if (t->dir)
        return connect_try(l, t, t->dir, connect_unix(t->dir, &l->fd), hello, out_stop, why);
    race_init(&race, t->addresses);
    bool is_accepted = race_run(&race, l, t, hello, out_stop, why);
    race_release(&race);
    return is_accepted;
}

static int report_unreachable(const struct connect_target *t, const char *why, struct act_error *err)
{
    if (t->dir)
        return act_error_set(err, ACT_FAIL, "cannot reach the supervisor of the run (%s)", why);
    return act_error_set(err, ACT_FAIL,
                         "cannot reach the supervisor of the run at port %d (%s): the nodes of a run must be "
                         "able to connect to its first node",
                         t->port, why);
}

int link_connect_once(struct link *l, const char *target, json_t *hello, bool *out_stop, struct act_error *err)
{
    struct connect_target t = {.text = act_strdup(target)};
    ACT_AUTO(act_buf) why = {0};
    int rc = 0;

    *l = (struct link){.fd = -1};
    if (!parse_target(&t, t.text))
        rc = act_error_set(err, ACT_FAIL, "no address of the first pod is known");
    else if (!try_all(l, &t, hello, out_stop, &why))
        rc = act_error_set(err, ACT_FAIL, "cannot connect to port %d (%s)", t.port, why.data);
    free(t.text);
    return rc;
}

/* ---- which addresses answer ---- */

enum { PROBES_AT_ONCE = 256 };

/* Returns the descriptor of a connection that is under way; -1: it has come or failed already. */
static int probe_begin(struct link_probe *p)
{
    int fd;

    p->errnum = connect_begin_tcp(p->address, p->port, &fd);
    if (p->errnum == EINPROGRESS)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void probe_end(struct link_probe *p, struct pollfd *pfd)
{
    p->errnum = pfd->revents ? connect_result(pfd->fd) : ETIMEDOUT;
    close(pfd->fd);
    pfd->fd = -1; /* which poll() leaves out */
}

/* Tells whether some peer's first address that answers is not known yet. */
static bool probe_is_open(const struct link_probe *probes, const struct pollfd *fds, size_t n)
{
    bool has_one = false;

    for (size_t i = 0; i < n; i++) {
        has_one = has_one && probes[i].of == probes[i - 1].of;
        if (fds[i].fd >= 0 && !has_one)
            return true;
        has_one = has_one || (fds[i].fd < 0 && probes[i].errnum == 0);
    }
    return false;
}

static void probe_some(struct link_probe *probes, size_t n)
{
    struct pollfd fds[PROBES_AT_ONCE];
    int64_t deadline = act_now_monotonic_ms() + CONNECT_MS, left = CONNECT_MS;

    for (size_t i = 0; i < n; i++)
        fds[i] = (struct pollfd){.fd = probe_begin(&probes[i]), .events = POLLOUT};
    for (; left > 0 && probe_is_open(probes, fds, n); left = deadline - act_now_monotonic_ms()) {
        poll(fds, n, (int)left);
        for (size_t i = 0; i < n; i++)
            if (fds[i].fd >= 0 && fds[i].revents)
                probe_end(&probes[i], &fds[i]);
    }
    for (size_t i = 0; i < n; i++)
        if (fds[i].fd >= 0)
            probe_end(&probes[i], &fds[i]);
}

void link_probe(struct link_probe *probes, size_t n)
{
    for (size_t i = 0; i < n; i += PROBES_AT_ONCE)
        probe_some(probes + i, n - i < PROBES_AT_ONCE ? n - i : PROBES_AT_ONCE);
}

/* ---- a connection ---- */

int link_connect(struct link *l, json_t *hello, bool *out_stop, struct act_error *err)
{
    struct connect_target t = {0};
    ACT_AUTO(act_buf) why = {0};
    int64_t deadline = act_now_monotonic_ms() + ALL_TRIES_MS;
    int rc = connect_read_target(&t, err);

    *l = (struct link){.fd = -1};
    while (rc == 0 && !try_all(l, &t, hello, out_stop, &why)) {
        if (act_now_monotonic_ms() < deadline)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
        else
            rc = report_unreachable(&t, why.data, err);
    }
    free(t.text);
    return rc;
}
