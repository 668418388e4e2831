/* script_server.h - a server of this process that gives the answers of a script, good and bad, and keeps what it was
 * asked. */
#ifndef TESTS_UNIT_SCRIPT_SERVER_H
#define TESTS_UNIT_SCRIPT_SERVER_H

#include "unit/test.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum then {
    CLOSE,       /* answer, then close */
    KEEP,        /* answer; the next step is on the same connection */
    RESET,       /* no answer: the connection is reset */
    CUT_SHORT,   /* as RESET, but with only the beginning of the request read */
    STALL,       /* what there is of an answer, then nothing until the client goes away */
    SPEAK_FIRST, /* answer before anything was asked, then close */
};

struct step {
    const char *answer;
    enum then then;
};

enum { MAX_STEPS = 64 };

struct server {
    struct step steps[MAX_STEPS];
    size_t steps_n;
    struct act_buf requests[MAX_STEPS]; /* head and body, as they came */
    atomic_size_t requests_n;
    char upload[64]; /* the last x-ms-meta-act_upload of a request */
    int listener, port;
    pthread_t thread;
};

static inline size_t wanted_body(const char *head)
{
    const char *length = strcasestr(head, "\r\nContent-Length:");

    return length ? strtoul(length + strlen("\r\nContent-Length:"), NULL, 10) : 0;
}

static inline void read_request(int fd, struct act_buf *request)
{
    char chunk[65536];
    const char *end = NULL;
    ssize_t n;

    while (!end || request->len < (size_t)(end + 4 - request->data) + wanted_body(request->data)) {
        if ((n = recv(fd, chunk, sizeof(chunk), 0)) <= 0)
            return;
        act_buf_add(request, chunk, (size_t)n);
        end = strstr(request->data, "\r\n\r\n");
    }
}

static inline void read_some(int fd)
{
    char chunk[1024];

    if (recv(fd, chunk, sizeof(chunk), 0) <= 0)
        return;
}

/* Keeps the id by which a request marks its upload. */
static inline void note_upload(struct server *s, const struct act_buf *request)
{
    static const char header[] = "x-ms-meta-act_upload: ";
    const char *at = request->data ? strcasestr(request->data, header) : NULL;

    if (at)
        snprintf(s->upload, sizeof(s->upload), "%.*s", (int)strcspn(at + strlen(header), "\r"), at + strlen(header));
}

/* The text with `value` in place of each mark. New string. */
static inline char *with_mark(const char *text, const char *mark, const char *value)
{
    struct act_buf out = {0};
    const char *at;

    for (; (at = strstr(text, mark)); text = at + strlen(mark)) {
        act_buf_add(&out, text, (size_t)(at - text));
        act_buf_adds(&out, value);
    }
    act_buf_adds(&out, text);
    return act_buf_steal(&out);
}

static inline char *with_port(const char *text, int port)
{
    char number[16];

    snprintf(number, sizeof(number), "%d", port);
    return with_mark(text, "{port}", number);
}

/* "{port}" in an answer is the port of the server, "{upload}" its upload. */
static inline void answer(int fd, const struct server *s, const struct step *step)
{
    const struct linger reset = {.l_onoff = 1};
    char rest[4096];
    ACT_AUTOFREE char *ported = with_port(step->answer ? step->answer : "", s->port);
    ACT_AUTOFREE char *text = with_mark(ported, "{upload}", s->upload);
    size_t len = strlen(text);

    if (len > 0 && send(fd, text, len, MSG_NOSIGNAL) < 0)
        return;
    if (step->then == RESET || step->then == CUT_SHORT)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    if (step->then == CLOSE || step->then == SPEAK_FIRST)
        shutdown(fd, SHUT_WR);
    while ((step->then == STALL || step->then == SPEAK_FIRST) && recv(fd, rest, sizeof(rest), 0) > 0)
        ;
}

static inline void *serve(void *arg)
{
    struct server *s = arg;
    int fd = -1;

    for (size_t i = 0; i < s->steps_n; i++) {
        if (fd < 0 && (fd = accept(s->listener, NULL, NULL)) < 0)
            break;
        if (s->steps[i].then == CUT_SHORT) {
            read_some(fd);
        } else if (s->steps[i].then != SPEAK_FIRST) {
            struct act_buf *request = &s->requests[s->requests_n++];
            read_request(fd, request);
            note_upload(s, request);
        }
        answer(fd, s, &s->steps[i]);
        if (s->steps[i].then != KEEP) {
            close(fd);
            fd = -1;
        }
    }
    if (fd >= 0)
        close(fd);
    return NULL;
}

static inline int listen_somewhere(int *out_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *out_port = ntohs(at.sin_port);
    return fd;
}

static inline void server_start(struct server *s, const struct step *steps, size_t steps_n)
{
    assert_true(steps_n <= MAX_STEPS);
    *s = (struct server){.steps_n = steps_n};
    if (steps_n > 0)
        memcpy(s->steps, steps, steps_n * sizeof(*steps));
    s->listener = listen_somewhere(&s->port);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

/* Ends it; its requests stay until server_forget(). */
static inline void server_end(struct server *s)
{
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
}

static inline void server_forget(struct server *s)
{
    for (size_t i = 0; i < MAX_STEPS; i++)
        act_buf_release(&s->requests[i]);
}

static inline void server_stop(struct server *s)
{
    server_end(s);
    server_forget(s);
}

#endif
