/* tunnel_test.c - frames of a tunnel, as they should be and as they should not: what an end says to them. */
#include "unit/temp_dir.h"
#include "unit/test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/host.h"
#include "base/path.h"
#include "tunnel/tunnel_internal.h"

static uint16_t deaf_port; /* of a socket that takes connections, and never reads */
static int deaf_fd;

static int set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    deaf_fd = act_listen_here(&deaf_port, 64);
    return deaf_fd < 0 ? -1 : make_dir(state);
}

static int tear_down(void **state)
{
    close(deaf_fd);
    return remove_dir(state);
}

/* ---- what is said */

static void say_frame(struct act_buf *b, char kind, uint32_t connection, const void *rest, size_t len)
{
    struct stream s = {0};

    stream_send(&s, (enum kind)kind, connection, rest, len);
    act_buf_add(b, s.queue.bytes.data, s.queue.bytes.len);
    queue_release(&s.queue);
}

static void say_open(struct act_buf *b, uint32_t connection, uint16_t port)
{
    uint16_t order = htons(port);

    say_frame(b, OPEN, connection, &order, sizeof(order));
}

static void say_bytes(struct act_buf *b, uint32_t connection, size_t len)
{
    ACT_AUTOFREE char *bytes = act_calloc(1, len + 1);

    say_frame(b, DATA, connection, bytes, len);
}

static void say_number(struct act_buf *b, char kind, uint32_t connection, uint32_t number)
{
    uint32_t order = htonl(number);

    say_frame(b, kind, connection, &order, sizeof(order));
}

/* Has an end read this, and then the end of the stream. */
static int hear(const struct act_buf *said, const struct tunnel *like)
{
    ACT_AUTOFREE char *path = test_path("in");
    struct tunnel tunnel = *like;

    assert_ok(act_file_write(path, said->len ? said->data : "", said->len, 0600, &err), err);
    tunnel.in = open(path, O_RDONLY | O_CLOEXEC);
    tunnel.out = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int rc = tunnel_run(&tunnel, &err);
    close(tunnel.in);
    close(tunnel.out);
    return rc;
}

static int hear_far(const struct act_buf *frames)
{
    ACT_AUTO(act_buf) said = {0};

    act_buf_adds(&said, TUNNEL_HELLO);
    act_buf_add(&said, frames->data, frames->len);
    return hear(&said, &(struct tunnel){0});
}

/* ---- the hello */

static const struct tunnel_port nowhere = {.fd = -1, .port = 80};
static const struct tunnel near_end = {.ports = &nowhere, .n_ports = 1, .silence_ms = PATIENCE_MS};

TEST(test_what_a_shell_prints_before)
{
    static const char *const noises[] = {"", "Welcome to n1!\r\n", "act-tunnel 2\nact-tunne"};

    for (size_t i = 0; i < COUNT(noises); i++) {
        ACT_AUTO(act_buf) said = {0};
        act_buf_addf(&said, "%s" TUNNEL_HELLO, noises[i]);
        assert_ok(hear(&said, &near_end), err);
    }
}

TEST(test_no_hello)
{
    ACT_AUTO(act_buf) said = {0};

    assert_fails(hear(&said, &near_end), err, ACT_TEMPORARY, "the other end did not begin");
    act_buf_adds(&said, "bash: act-node:\tnot found\n");
    assert_fails(hear(&said, &near_end), err, ACT_TEMPORARY, "begin: bash: act-node: not found");
    for (int i = 0; i < 10000; i++)
        act_buf_adds(&said, "y\nyes, ");
    assert_fails(hear(&said, &near_end), err, ACT_TEMPORARY, "what answers there is not the agent");
}

/* ---- what an end answers */

/* An end that was told something by a pipe which stays open, until it has answered with these words. */
struct heard {
    int out; /* what it writes */
    struct act_buf answer;
    const char *until;
};

static bool heard_enough(void *arg)
{
    struct heard *h = arg;
    char chunk[4096];
    ssize_t n;

    while ((n = read(h->out, chunk, sizeof(chunk))) > 0)
        act_buf_add(&h->answer, chunk, (size_t)n);
    return h->answer.len && memmem(h->answer.data, h->answer.len, h->until, strlen(h->until));
}

TEST(test_ping_and_a_port_that_nobody_has)
{
    ACT_AUTO(act_buf) said = {0};
    uint16_t port = 0;
    int in[2], out[2];

    int fd = act_listen_here(&port, 1);
    close(fd);
    act_buf_adds(&said, TUNNEL_HELLO);
    say_frame(&said, PING, 0, NULL, 0);
    say_open(&said, 7, port);
    assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(write(in[1], said.data, said.len), said.len);
    struct heard heard = {.out = out[0], .until = "Connection refused"};
    struct tunnel tunnel = {.in = in[0], .out = out[1], .stops = heard_enough, .arg = &heard};
    assert_fails(tunnel_run(&tunnel, &err), err, ACT_INTERRUPTED, "");
    assert_memory_equal(heard.answer.data, TUNNEL_HELLO "A\0\0\0\0\0\0\0\0", strlen(TUNNEL_HELLO) + 9);
    assert_non_null(memmem(heard.answer.data, heard.answer.len, "C\0\0\0\7", 5));
    act_buf_release(&heard.answer);
    for (int i = 0; i < 2; i++) {
        close(in[i]);
        close(out[i]);
    }
}

TEST(test_the_other_end_is_silent)
{
    int in[2], out[2];
    struct tunnel tunnel = near_end;

    assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(write(in[1], TUNNEL_HELLO, strlen(TUNNEL_HELLO)), strlen(TUNNEL_HELLO));
    tunnel.in = in[0];
    tunnel.out = out[1];
    tunnel.silence_ms = 1; /* it is past at once: the other end is asked all the same */
    assert_fails(tunnel_run(&tunnel, &err), err, ACT_TEMPORARY, "has been silent for");
    char asked[64];
    ssize_t n = read(out[0], asked, sizeof(asked));
    assert_true(n > (ssize_t)strlen(TUNNEL_HELLO));
    for (int i = 0; i < 2; i++) {
        close(in[i]);
        close(out[i]);
    }
}

/* ---- frames that are not allowed */

static void break_kind(struct act_buf *b)
{
    say_frame(b, 'X', 0, NULL, 0);
}

static void break_open(struct act_buf *b)
{
    say_frame(b, OPEN, 0, "abc", 3);
}

static void break_number(struct act_buf *b)
{
    say_open(b, TUNNEL_CONNECTIONS_MAX, deaf_port);
}

static void break_empty(struct act_buf *b)
{
    say_open(b, 0, deaf_port);
    say_frame(b, DATA, 0, NULL, 0);
}

static void break_length(struct act_buf *b)
{
    say_open(b, 0, deaf_port);
    act_buf_add(b, "D\0\0\0\0\xff\xff\xff\xff", 9);
}

static void break_nobody(struct act_buf *b)
{
    say_bytes(b, 3, 1);
}

static void break_twice(struct act_buf *b)
{
    say_open(b, 0, deaf_port);
    say_open(b, 0, deaf_port);
}

static void break_window(struct act_buf *b)
{
    say_open(b, 0, deaf_port);
    say_number(b, WINDOW, 0, UINT32_MAX);
}

static void break_ended(struct act_buf *b)
{
    say_open(b, 0, deaf_port);
    say_frame(b, END, 0, NULL, 0);
    say_bytes(b, 0, 1);
}

static void break_closed(struct act_buf *b)
{
    say_open(b, 0, deaf_port);
    say_frame(b, CLOSE, 0, "why", 3);
    say_bytes(b, 0, 1);
}

/* More than the kernel takes for a socket that nobody reads, and the window besides. */
static void break_full(struct act_buf *b)
{
    say_open(b, 0, deaf_port);
    for (int i = 0; i < 1024; i++)
        say_bytes(b, 0, TUNNEL_DATA_MAX);
}

TEST(test_frames_that_are_not_allowed)
{
    static const struct {
        void (*say)(struct act_buf *b);
        const char *answer;
    } rows[] = {
        {break_kind, "not a frame"},    {break_open, "not a frame"},     {break_number, "not a frame"},
        {break_empty, "not a frame"},   {break_length, "not a frame"},   {break_nobody, "connection 3, which is not"},
        {break_twice, "twice"},         {break_window, "too large"},     {break_ended, "more than it may"},
        {break_closed, "connection 0"}, {break_full, "more than it may"}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTO(act_buf) frames = {0};
        rows[i].say(&frames);
        assert_fails(hear_far(&frames), err, ACT_TEMPORARY, rows[i].answer);
    }
}

/* The near end is told of connections, never asked to make one. */
TEST(test_the_far_end_opens_one)
{
    ACT_AUTO(act_buf) said = {0};

    act_buf_adds(&said, TUNNEL_HELLO);
    say_open(&said, 0, deaf_port);
    assert_fails(hear(&said, &near_end), err, ACT_TEMPORARY, "opened connection 0");
}

/* A stream that ends anywhere ends the tunnel, and no more. */
TEST(test_cut_anywhere)
{
    ACT_AUTO(act_buf) all = {0};

    act_buf_adds(&all, TUNNEL_HELLO);
    say_open(&all, 0, deaf_port);
    say_bytes(&all, 0, 10);
    say_number(&all, WINDOW, 0, 100);
    say_frame(&all, END, 0, NULL, 0);
    say_frame(&all, CLOSE, 0, NULL, 0);
    for (size_t len = strlen(TUNNEL_HELLO); len <= all.len; len++) {
        struct act_buf cut = {.data = all.data, .len = len};
        assert_ok(hear(&cut, &(struct tunnel){0}), err);
    }
}

/* ---- windows */

enum { WINDOWS = 16 };

struct windows {
    struct stream stream;
    struct connections all;
    int readers[WINDOWS]; /* the other ends of their sockets */
};

static void windows_begin(struct windows *w)
{
    *w = (struct windows){.all = {.tunnel = &near_end, .stream = &w->stream}};
    for (size_t i = 0; i < WINDOWS; i++) {
        int ends[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
        ACT_PUSH(
            w->all.v, w->all.n,
            (struct connection){.phase = CARRIES, .fd = ends[0], .expected = TUNNEL_WINDOW, .window = TUNNEL_WINDOW});
        w->readers[i] = ends[1];
    }
}

static void windows_end(struct windows *w)
{
    connections_release(&w->all);
    stream_release(&w->stream);
    for (size_t i = 0; i < WINDOWS; i++)
        close(w->readers[i]);
}

/* The other end sends so much, as it may; the reader takes it at once, or never. */
static void windows_send(struct windows *w, size_t i, size_t bytes, bool is_read)
{
    static char data[TUNNEL_DATA_MAX], got[TUNNEL_DATA_MAX];
    const struct connection *c = &w->all.v[i];

    while (bytes > 0 && c->expected > 0) {
        size_t len = c->expected < sizeof(data) ? c->expected : sizeof(data);
        struct tunnel_frame frame = {.kind = DATA, .connection = (uint32_t)i, .rest = data, .len = len};
        assert_ok(connections_take(&w->all, &frame, &err), err);
        bytes -= len < bytes ? len : bytes;
        while (is_read && read(w->readers[i], got, sizeof(got)) > 0)
            connection_serve(&w->all, i, POLLOUT);
    }
}

/* A reader that keeps up gets all that a link of any length needs; one that stalls holds up the other end. */
TEST(test_a_window_grows)
{
    struct windows w;

    windows_begin(&w);
    windows_send(&w, 0, 8 * TUNNEL_WINDOW_MAX, true);
    assert_int_equal(w.all.v[0].window, TUNNEL_WINDOW_MAX);
    windows_send(&w, 1, 8 * TUNNEL_WINDOW_MAX, false);
    assert_int_equal(w.all.v[1].expected, 0);
    assert_true(w.all.v[1].window < TUNNEL_WINDOW_MAX);
    assert_true(queue_left(&w.all.v[1].queue) <= w.all.v[1].window);
    windows_end(&w);
}

/* The first ones leave something to those that come later. */
TEST(test_windows_share)
{
    struct windows w;

    windows_begin(&w);
    for (size_t i = 0; i < WINDOWS; i++)
        windows_send(&w, i, 4 * TUNNEL_WINDOW_MAX, true);
    assert_int_equal(w.all.v[0].window, TUNNEL_WINDOW_MAX);
    assert_true(w.all.v[WINDOWS - 1].window > TUNNEL_WINDOW);
    assert_true(w.all.grown <= TUNNEL_WINDOWS_MAX);
    windows_end(&w);
}

TEST_MAIN(set_up, tear_down)
