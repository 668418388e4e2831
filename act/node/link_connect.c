/* link_connect.c - the rank's side: find the supervisor. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "codec/json.h"
#include "node/link.h"
#include "node/link_internal.h"

enum { CONNECT_MS = 3000, ANSWER_MS = 10000, ALL_TRIES_MS = 10000, PAUSE_MS = 200 };

/* Where the supervisor is: "<port> <token> <address> <address> ...". */
struct target {
    char *text;
    const char *token, *addresses; /* in text */
    uint16_t port;
};

static int read_target(struct target *t, struct act_error *err)
{
    const char *value = getenv(LINK_ENV);
    char *rest;
    int64_t port = 0;

    if (!value)
        return act_error_set(
            err, ACT_FAIL, LINK_ENV " is not in the environment: ranks are started by 'act-node supervise'");
    t->text = rest = act_strdup(value);
    unsetenv(LINK_ENV);
    const char *number = strsep(&rest, " ");
    t->token = strsep(&rest, " ");
    t->addresses = rest;
    if (!act_int_from_text(number, &port) || port < 1 || port > UINT16_MAX || !t->token || !t->addresses)
        return act_error_set(err, ACT_FAIL, "the value of " LINK_ENV " is malformed");
    t->port = (uint16_t)port;
    return 0;
}

static socklen_t parse_address(const char *text, uint16_t port, struct sockaddr_storage *out)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

    *out = (struct sockaddr_storage){0};
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        return sizeof(*v4);
    }
    if (inet_pton(AF_INET6, text, &v6->sin6_addr) != 1)
        return 0;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    return sizeof(*v6);
}

/* Returns an errno; with 0 the descriptor. */
static int open_connection(const char *address, uint16_t port, int *out_fd)
{
    struct sockaddr_storage at;
    socklen_t len = parse_address(address, port, &at), int_len = sizeof(int);
    int errnum = 0;
    int fd = len ? socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;

    if (fd < 0)
        return len ? errno : EINVAL;
    if (connect(fd, (struct sockaddr *)&at, len) < 0) {
        errnum = errno;
        if (errnum == EINPROGRESS && poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, CONNECT_MS) == 1)
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &int_len);
        else if (errnum == EINPROGRESS)
            errnum = ETIMEDOUT;
    }
    if (errnum) {
        close(fd);
        return errnum;
    }
    link_tune(fd);
    *out_fd = fd;
    return 0;
}

static json_t *wait_answer(struct link *l)
{
    int64_t deadline = act_now_monotonic_ms() + ANSWER_MS, left = ANSWER_MS;
    json_t *answer = NULL;
    int got = 0;

    for (; got == 0 && left > 0; left = deadline - act_now_monotonic_ms()) {
        poll(&(struct pollfd){.fd = l->fd, .events = POLLIN}, 1, (int)left);
        bool more = link_fill(l);
        got = link_take(l, &answer);
        if (!more)
            break;
    }
    return answer;
}

/* Whether it is our supervisor, and wants us. */
static bool greet(struct link *l, const json_t *hello, const char *token, bool *out_stop)
{
    CODEC_AUTOJSON json_t *answer = NULL;

    if (!link_send(l, hello) || !link_drain(l, ANSWER_MS))
        return false;
    answer = wait_answer(l);
    *out_stop = json_is_true(json_object_get(answer, "stop"));
    return act_streq(codec_json_str(answer, "type", ""), "accepted") &&
           act_streq(codec_json_str(answer, "token", ""), token);
}

/* Tries every address once. why: what came of it, for the error. */
static bool try_all(struct link *l, const struct target *t, const json_t *hello, bool *out_stop,
                    struct act_buf *why)
{
    ACT_AUTOFREE char *copy = act_strdup(t->addresses);
    char *rest = copy;

    why->len = 0;
    for (const char *address; (address = strsep(&rest, " "));) {
        int errnum = open_connection(address, t->port, &l->fd);
        if (errnum == 0 && greet(l, hello, t->token, out_stop))
            return true;
        act_buf_addf(why, "%s%s: %s", why->len ? ", " : "", address,
                     errnum ? strerror(errnum) : "what answers there is not the supervisor of this run");
        link_close(l);
    }
    return false;
}

int link_connect(struct link *l, json_t *hello, bool *out_stop, struct act_error *err)
{
    struct target t = {0};
    struct act_buf why = {0};
    int64_t deadline = act_now_monotonic_ms() + ALL_TRIES_MS;
    int rc = read_target(&t, err);

    *l = (struct link){.fd = -1};
    if (rc == 0) {
        json_object_set_new(hello, "type", json_string("hello"));
        json_object_set_new(hello, "token", json_string(t.token));
    }
    while (rc == 0 && !try_all(l, &t, hello, out_stop, &why)) {
        if (act_now_monotonic_ms() < deadline)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
        else
            rc = act_error_set(
                err, ACT_FAIL,
                "cannot reach the supervisor of the run at port %d (%s): the nodes of a run must be "
                "able to connect to its first node",
                t.port, why.data);
    }
    act_buf_release(&why);
    free(t.text);
    return rc;
}
