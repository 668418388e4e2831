/* link_test.c - the connections between the supervisor and the ranks: lines in any pieces, strangers, ends. */
#include "unit/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/json.h"
#include "node/link.h"

enum { HANGS_MS = 60000 };

/* ---- lines ---- */

static struct link make_link(const char *text, size_t len)
{
    struct link l = {.fd = -1};

    act_buf_add(&l.in, text, len);
    return l;
}

/* A message is found wherever the network cuts it. */
static void test_pieces(void **state)
{
    static const char text[] = "{\"type\":\"a\",\"n\":1}\n{\"type\":\"b\"}\n{\"type\":\"c";

    (void)state;
    for (size_t cut = 1; cut < sizeof(text) - 1; cut++) {
        struct link l = make_link(text, cut);
        json_t *message;
        int found = 0, got;
        for (int part = 0; part < 2; part++) {
            while ((got = link_take(&l, &message)) > 0) {
                assert_string_equal(codec_json_str(message, "type", ""), found++ ? "b" : "a");
                json_decref(message);
            }
            assert_int_equal(got, 0);
            if (part == 0)
                act_buf_add(&l.in, text + cut, sizeof(text) - 1 - cut);
        }
        assert_int_equal(found, 2);
        act_buf_add(&l.in, "\"}\n", 3);
        assert_int_equal(link_take(&l, &message), 1);
        json_decref(message);
        link_close(&l);
    }
}

static void test_not_our_protocol(void **state)
{
    static const char *const bad[] = {"\n",    "[]\n",  "GET / HTTP/1.1\r\n", "{\"a\":1,\"a\":2}\n",
                                      "{}x\n", "\xff\n"};
    json_t *message;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct link l = make_link(bad[i], strlen(bad[i]));
        assert_int_equal(link_take(&l, &message), -1);
        assert_null(message);
        link_close(&l);
    }
    char *long_line = act_alloc(LINK_LINE_MAX);
    memset(long_line, ' ', LINK_LINE_MAX);
    struct link l = make_link(long_line, LINK_LINE_MAX - 1);
    assert_int_equal(link_take(&l, &message), 0);
    act_buf_addc(&l.in, ' ');
    assert_int_equal(link_take(&l, &message), -1);
    link_close(&l);
    free(long_line);
}

/* ---- both sides ---- */

/* What a server has told. */
struct heard {
    int hellos, messages, gone, gone_rank, last_rank;
    struct act_buf text;
};

static bool on_hello(void *arg, int rank, const json_t *message)
{
    struct heard *h = arg;

    (void)message;
    h->hellos++;
    h->last_rank = rank;
    return true;
}

static void on_message(void *arg, int rank, const json_t *message)
{
    struct heard *h = arg;

    h->messages++;
    h->last_rank = rank;
    h->text.len = 0;
    act_buf_adds(&h->text, codec_json_str(message, "text", ""));
}

static void on_gone(void *arg, int rank, int errnum)
{
    struct heard *h = arg;

    (void)errnum;
    h->gone++;
    h->gone_rank = rank;
}

static const struct link_events events = {on_hello, on_message, on_gone};

static struct link_server *open_server(int n_ranks, struct heard *heard)
{
    struct link_server *s;
    struct act_error err;

    *heard = (struct heard){0};
    assert_ok(link_listen(n_ranks, true, &events, heard, &s, &err), err);
    return s;
}

/* Serves until *count reaches value. */
static void serve_until(struct link_server *s, const int *count, int value)
{
    while (*count < value) {
        struct pollfd ready = {.fd = link_fd(s), .events = POLLIN};
        if (poll(&ready, 1, HANGS_MS) != 1)
            fail_msg("nothing comes; %d of %d", *count, value);
        link_serve(s);
    }
}

/* A rank in a process of its own: connects, runs what it is for, ends with its result. */
static pid_t start_rank(const char *address, int rank, int (*run)(struct link *l, bool stop, int rank))
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    struct link l;
    struct act_error err;
    bool stop = false;
    setenv(LINK_ENV, address, 1);
    int rc = link_connect(&l, json_pack("{s:i}", "rank", rank), &stop, &err);
    if (rc < 0) {
        fprintf(stderr, "%s\n", err.text);
        _exit(100);
    }
    if (getenv(LINK_ENV))
        _exit(101);
    _exit(run(&l, stop, rank));
}

static int wait_rank(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The next message of the supervisor; NULL at the end. */
static json_t *next_message(struct link *l)
{
    json_t *message = NULL;

    while (link_take(l, &message) == 0) {
        poll(&(struct pollfd){.fd = l->fd, .events = POLLIN}, 1, HANGS_MS);
        if (!link_fill(l))
            return link_take(l, &message) == 1 ? message : NULL;
    }
    return message;
}

/* Sends a long text, and sends back the first word it is told. */
static int talk(struct link *l, bool stop, int rank)
{
    char *text = act_calloc(1, 60001);

    (void)rank;
    memset(text, 'x', 60000);
    bool good = link_send(l, json_pack("{s:s}", "text", text)) && link_drain(l, HANGS_MS);
    json_t *told = next_message(l);
    good = good && link_send(l, json_pack("{s:s}", "text", codec_json_str(told, "word", "?")));
    link_finish(l, HANGS_MS);
    return good && !stop ? 0 : 1;
}

static void test_talk(void **state)
{
    struct heard heard;
    struct link_server *s = open_server(4, &heard);

    (void)state;
    pid_t pid = start_rank(link_address(s), 3, talk);
    serve_until(s, &heard.messages, 1);
    assert_int_equal(heard.last_rank, 3);
    assert_int_equal(heard.text.len, 60000);
    assert_int_equal(link_connected(s), 1);
    CODEC_AUTOJSON json_t *word = json_pack("{s:s}", "word", "stop");
    link_tell(s, 0, word); /* not there: nothing happens */
    link_tell_all(s, word);
    serve_until(s, &heard.gone, 1);
    assert_int_equal(heard.messages, 2);
    assert_string_equal(heard.text.data, "stop");
    assert_int_equal(heard.gone_rank, 3);
    assert_int_equal(link_connected(s), 0);
    assert_int_equal(wait_rank(pid), 0);
    act_buf_release(&heard.text);
    link_server_free(s);
}

static int say_stop(struct link *l, bool stop, int rank)
{
    (void)rank;
    link_close(l);
    return stop ? 7 : 8;
}

static void test_late_rank_is_told_to_stop(void **state)
{
    struct heard heard;
    struct link_server *s = open_server(1, &heard);

    (void)state;
    link_set_stopping(s);
    pid_t pid = start_rank(link_address(s), 0, say_stop);
    serve_until(s, &heard.gone, 1);
    assert_int_equal(wait_rank(pid), 7);
    link_server_free(s);
}

/* Until the supervisor hangs up. */
static int wait_end(struct link *l, bool stop, int rank)
{
    (void)stop;
    (void)rank;
    return next_message(l) == NULL ? 5 : 6;
}

static void test_broken_connections(void **state)
{
    struct heard heard;
    struct link_server *s = open_server(2, &heard);

    (void)state;
    pid_t killed = start_rank(link_address(s), 0, wait_end), cut = start_rank(link_address(s), 1, wait_end);
    serve_until(s, &heard.hellos, 2);
    kill(killed, SIGKILL);
    serve_until(s, &heard.gone, 1);
    assert_int_equal(heard.gone_rank, 0);
    link_cut(s);
    assert_int_equal(heard.gone, 2);
    assert_int_equal(wait_rank(killed), 128 + SIGKILL);
    assert_int_equal(wait_rank(cut), 5);
    link_server_free(s);
}

/* ---- strangers ---- */

static int connect_raw(const struct link_server *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(link_address(s))),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

/* Whoever does not know the token is hung up on, and nobody hears of it. */
static void test_strangers(void **state)
{
    static const char *const lines[] = {
        "{\"type\":\"hello\",\"token\":\"00000000000000000000000000000000\",\"rank\":0}\n",
        "{\"type\":\"hello\",\"rank\":0}\n",
        "{\"type\":\"record\",\"rank\":0}\n",
        "GET / HTTP/1.1\r\n\r\n",
    };
    struct heard heard;
    struct link_server *s = open_server(1, &heard);
    char byte;

    (void)state;
    for (size_t i = 0; i < COUNT(lines); i++) {
        int fd = connect_raw(s);
        assert_int_equal(write(fd, lines[i], strlen(lines[i])), (ssize_t)strlen(lines[i]));
        struct pollfd end = {.fd = fd, .events = POLLIN};
        while (poll(&end, 1, 1) == 0)
            link_serve(s);
        assert_true(recv(fd, &byte, 1, 0) <= 0); /* nothing was said to it */
        close(fd);
    }
    assert_int_equal(heard.hellos + heard.messages + heard.gone, 0);

    /* ranks that there are not */
    const char *token = strchr(link_address(s), ' ') + 1;
    for (int rank = -1; rank < 2; rank += 2) {
        ACT_AUTOFREE char *line =
            act_sprintf("{\"type\":\"hello\",\"token\":\"%.32s\",\"rank\":%d}\n", token, rank);
        int fd = connect_raw(s);
        assert_int_equal(write(fd, line, strlen(line)), (ssize_t)strlen(line));
        struct pollfd end = {.fd = fd, .events = POLLIN};
        while (poll(&end, 1, 1) == 0)
            link_serve(s);
        assert_true(recv(fd, &byte, 1, 0) <= 0);
        close(fd);
    }
    assert_int_equal(heard.hellos, 0);
    link_server_free(s);
}

/* A service that is not the supervisor: it says back what it hears. */
static void test_wrong_service(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct act_error err;
    struct link l;
    bool stop;

    (void)state;
    assert_int_equal(bind(listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(listener, 64), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    pid_t echo = fork();
    for (int fd; echo == 0 && (fd = accept(listener, NULL, NULL)) >= 0; close(fd)) {
        char line[4096];
        ssize_t n = read(fd, line, sizeof(line));
        if (n > 0 && write(fd, line, (size_t)n) < 0)
            _exit(1);
    }
    ACT_AUTOFREE char *value =
        act_sprintf("%d 0123456789abcdef0123456789abcdef 127.0.0.1", ntohs(at.sin_port));
    setenv(LINK_ENV, value, 1);
    CODEC_AUTOJSON json_t *hello = json_pack("{s:i}", "rank", 0);
    assert_int_equal(link_connect(&l, hello, &stop, &err), -ACT_FAIL);
    assert_non_null(strstr(err.text, "127.0.0.1: what answers there is not the supervisor of this run"));
    kill(echo, SIGKILL);
    assert_int_equal(wait_rank(echo), 128 + SIGKILL);
    close(listener);
}

static void test_environment(void **state)
{
    static const char *const bad[] = {"", "0 a b", "65536 a b", "x a b", "80", "80 token"};
    struct act_error err;
    struct link l;
    bool stop;

    (void)state;
    CODEC_AUTOJSON json_t *hello = json_object();
    unsetenv(LINK_ENV);
    assert_int_equal(link_connect(&l, hello, &stop, &err), -ACT_FAIL);
    assert_non_null(strstr(err.text, "started by 'act-node supervise'"));
    for (size_t i = 0; i < COUNT(bad); i++) {
        setenv(LINK_ENV, bad[i], 1);
        assert_int_equal(link_connect(&l, hello, &stop, &err), -ACT_FAIL);
        assert_non_null(strstr(err.text, "malformed"));
        assert_null(getenv(LINK_ENV));
    }
}

/* ---- many ---- */

/* As many ranks as descriptors allow, at once; here they are all in this process. */
static void test_many(void **state)
{
    enum { MANY = 2000 };
    struct rlimit limit;
    struct heard heard;

    (void)state;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    int n = limit.rlim_cur < 2 * MANY + 100 ? (int)(limit.rlim_cur / 2) - 100 : MANY;
    struct link_server *s = open_server(n, &heard);
    int *fds = act_alloc((size_t)n * sizeof(*fds));
    const char *token = strchr(link_address(s), ' ') + 1;

    for (int rank = 0; rank < n; rank++) {
        ACT_AUTOFREE char *lines = act_sprintf(
            "{\"type\":\"hello\",\"token\":\"%.32s\",\"rank\":%d}\n{\"text\":\"up\"}\n", token, rank);
        fds[rank] = connect_raw(s);
        assert_int_equal(write(fds[rank], lines, strlen(lines)), (ssize_t)strlen(lines));
        link_serve(s);
    }
    serve_until(s, &heard.messages, n);
    assert_int_equal(heard.hellos, n);
    assert_int_equal(link_connected(s), n);
    for (int rank = 0; rank < n; rank++)
        close(fds[rank]);
    serve_until(s, &heard.gone, n);
    assert_int_equal(link_connected(s), 0);
    free(fds);
    act_buf_release(&heard.text);
    link_server_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_not_our_protocol),
        cmocka_unit_test(test_talk),
        cmocka_unit_test(test_late_rank_is_told_to_stop),
        cmocka_unit_test(test_broken_connections),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_wrong_service),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
