/* link_test.c - the connections between the supervisor and the ranks: lines in any pieces, strangers, ends. */
#include "unit/temp_dir.h"
#include "unit/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "codec/json.h"
#include "node/link_internal.h"

/* ---- addresses ---- */

/* Returns a socket that listens on 127.0.0.host, at a port of its own if that is 0. Sets the port. */
static int link_test_listen_at(int host, int backlog, uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(*port),
                             .sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~0xFFu) + (unsigned)host)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    if (backlog >= 0)
        assert_int_equal(listen(fd, backlog), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static int link_test_listen(int backlog, uint16_t *out_port)
{
    *out_port = 0;
    return link_test_listen_at(1, backlog, out_port);
}

/* From now on it does not answer, as behind a firewall: the kernel drops what comes to a queue that is full. */
static void link_test_fill(const char *address, uint16_t port)
{
    struct link_probe fill = {.address = address, .port = port};

    do
        link_probe(&fill, 1);
    while (fill.errnum == 0);
    assert_int_equal(fill.errnum, ETIMEDOUT);
}

TEST(test_which_addresses_answer)
{
    enum { N = 300, FIRST = 0, NONE = 1, DEAF = 2, DEAF_END = 40, LAST = N - 1 };
    static struct link_probe probes[N];
    uint16_t open_port, deaf_port, closed_port;
    int open_fd = link_test_listen(16, &open_port), deaf_fd = link_test_listen(0, &deaf_port),
        closed_fd = link_test_listen(-1, &closed_port);

    link_test_fill("127.0.0.1", deaf_port);
    for (size_t i = 0; i < N; i++)
        probes[i] = (struct link_probe){
            .address = "127.0.0.1", .of = i, .port = i >= DEAF && i < DEAF_END ? deaf_port : closed_port};
    probes[FIRST].port = probes[LAST].port = open_port;
    probes[NONE].address = "no address";
    link_probe(probes, N);
    for (int i = DEAF; i < LAST; i++)
        assert_int_equal(probes[i].errnum, i < DEAF_END ? ETIMEDOUT : ECONNREFUSED);
    assert_int_equal(probes[FIRST].errnum, 0);
    assert_int_equal(probes[LAST].errnum, 0);
    assert_int_equal(probes[NONE].errnum, EINVAL);
    close(open_fd);
    close(deaf_fd);
    close(closed_fd);
}

/* The first that can be had is known, whatever stands before and behind it. */
TEST(test_the_first_address_that_answers)
{
    uint16_t open_port, closed_port;
    int open_fd = link_test_listen(16, &open_port), closed_fd = link_test_listen(-1, &closed_port);
    struct link_probe probes[] = {{.address = "127.0.0.1", .port = closed_port},
                                  {.address = "127.0.0.1", .port = open_port},
                                  {.address = "127.0.0.1", .port = open_port},
                                  {.address = "127.0.0.1", .of = 1, .port = closed_port},
                                  {.address = "127.0.0.1", .of = 1, .port = open_port}};

    link_probe(probes, COUNT(probes));
    assert_int_equal(probes[0].errnum, ECONNREFUSED);
    assert_int_equal(probes[1].errnum, 0);
    assert_int_equal(probes[3].errnum, ECONNREFUSED);
    assert_int_equal(probes[4].errnum, 0);
    close(open_fd);
    close(closed_fd);
}

/* ---- lines ---- */

static struct link make_link(const char *text, size_t len)
{
    struct link l = {.fd = -1};

    act_buf_add(&l.in, text, len);
    return l;
}

/* A message is found wherever the network cuts it. */
TEST(test_pieces)
{
    static const char text[] = "{\"type\":\"a\",\"n\":1}\n{\"type\":\"b\"}\n{\"type\":\"c";

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

TEST(test_not_our_protocol)
{
    static const char *const bad[] = {"\n", "[]\n", "GET / HTTP/1.1\r\n", "{\"a\":1,\"a\":2}\n", "{}x\n", "\xff\n"};
    json_t *message;

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct link l = make_link(bad[i], strlen(bad[i]));
        assert_int_equal(link_take(&l, &message), -1);
        assert_null(message);
        link_close(&l);
    }
    ACT_AUTOFREE char *long_line = act_alloc(LINK_LINE_MAX);
    memset(long_line, ' ', LINK_LINE_MAX);
    struct link l = make_link(long_line, LINK_LINE_MAX - 1);
    assert_int_equal(link_take(&l, &message), 0);
    act_buf_addc(&l.in, ' ');
    assert_int_equal(link_take(&l, &message), -1);
    link_close(&l);
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

/* On one machine, and on several nodes of which nobody knows the names. */
static const struct link_where on_unix = {.dir = "here"}, on_tcp = {.dir = NULL};
static const struct link_where *const both[] = {&on_unix, &on_tcp};

static struct link_server *link_test_open_server(int n_ranks, const struct link_where *where, struct heard *heard)
{
    const struct link_where here = {.dir = where->dir ? dir : NULL};
    struct link_server *s;

    *heard = (struct heard){0};
    assert_ok(link_listen(n_ranks, &here, &events, heard, &s, &err), err);
    return s;
}

/* Serves until *count reaches value. */
static void serve_until(struct link_server *s, const int *count, int value)
{
    while (*count < value) {
        struct pollfd ready = {.fd = link_fd(s), .events = POLLIN};
        if (poll(&ready, 1, PATIENCE_MS) != 1)
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
    bool stop = false;
    setenv(LINK_ENV, address, 1);
    int rc = link_connect(&l, json_pack("{s:i}", "rank", rank), &stop, &err);
    if (rc < 0) {
        fprintf(stderr, "%s\n", act_error_text(&err));
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
        poll(&(struct pollfd){.fd = l->fd, .events = POLLIN}, 1, PATIENCE_MS);
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
    bool good = link_send(l, json_pack("{s:s}", "text", text)) && link_drain(l, PATIENCE_MS);
    json_t *told = next_message(l);
    good = good && link_send(l, json_pack("{s:s}", "text", codec_json_str(told, "word", "?")));
    link_finish(l, PATIENCE_MS);
    return good && !stop ? 0 : 1;
}

static void on_both(void (*test)(const struct link_where *where))
{
    for (size_t i = 0; i < COUNT(both); i++)
        test(both[i]);
}

static void talk_on(const struct link_where *where)
{
    struct heard heard;
    struct link_server *s = link_test_open_server(4, where, &heard);

    pid_t pid = start_rank(link_address(s), 3, talk);
    serve_until(s, &heard.messages, 1);
    assert_int_equal(heard.last_rank, 3);
    assert_int_equal(heard.text.len, 60000);
    assert_int_equal(link_connected(s), 1);
    CODEC_AUTOJSON json_t *word = json_pack("{s:s}", "word", "stop");
    static const int not_there[] = {0, -1, 4, INT_MAX, INT_MIN};
    for (size_t i = 0; i < COUNT(not_there); i++)
        link_tell(s, not_there[i], word);
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

TEST(test_talk)
{
    on_both(talk_on);
}

static int say_stop(struct link *l, bool stop, int rank)
{
    (void)rank;
    link_close(l);
    return stop ? 7 : 8;
}

TEST(test_late_rank_is_told_to_stop)
{
    struct heard heard;
    struct link_server *s = link_test_open_server(1, &on_unix, &heard);

    link_set_stopping(s);
    pid_t pid = start_rank(link_address(s), 0, say_stop);
    serve_until(s, &heard.gone, 1);
    assert_int_equal(wait_rank(pid), 7);
    link_server_free(s);
}

/* A rank finds the address that answers among those that refuse, do not answer, or are none. */
TEST(test_addresses_that_do_not_answer)
{
    struct heard heard;
    struct link_server *s = link_test_open_server(1, &on_tcp, &heard);
    ACT_AUTO(act_strv) words = words_of(link_address(s)); /* token, "tcp", port, addresses */
    uint16_t port = (uint16_t)atoi(words.v[2]);
    int deaf_fd = link_test_listen_at(2, 0, &port);
    ACT_AUTOFREE char *target = act_sprintf("%s tcp %d 127.0.0.2 127.0.0.3 nowhere 127.0.0.2 127.0.0.2 127.0.0.2 "
                                            "127.0.0.2 127.0.0.1 127.0.0.2",
                                            words.v[0], port);

    link_test_fill("127.0.0.2", port);
    pid_t pid = start_rank(target, 0, say_stop);
    serve_until(s, &heard.gone, 1);
    assert_int_equal(wait_rank(pid), 8);
    close(deaf_fd);
    link_server_free(s);
}

/* Each is tried, and the message says of each why it is none. */
TEST(test_no_address_answers)
{
    static const char token[] = "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100";
    uint16_t closed_port, deaf_port = 0;
    int closed_fd = link_test_listen(-1, &closed_port);
    deaf_port = closed_port;
    int deaf_fd = link_test_listen_at(2, 0, &deaf_port);
    ACT_AUTOFREE char *target = act_sprintf("%s tcp %d 127.0.0.2 127.0.0.1 nowhere", token, closed_port);
    CODEC_AUTOJSON json_t *hello = json_pack("{s:i}", "rank", 0);
    struct link l;
    bool stop;

    link_test_fill("127.0.0.2", deaf_port);
    assert_int_equal(link_connect_once(&l, target, hello, &stop, &err), -ACT_FAIL);
    assert_non_null(strstr(act_error_text(&err), "127.0.0.1: Connection refused"));
    assert_non_null(strstr(act_error_text(&err), "nowhere: Invalid argument"));
    assert_non_null(strstr(act_error_text(&err), "127.0.0.2: Connection timed out"));
    close(deaf_fd);
    close(closed_fd);
}

/* Until the supervisor hangs up. */
static int link_test_wait_end(struct link *l, bool stop, int rank)
{
    (void)stop;
    (void)rank;
    return next_message(l) == NULL ? 5 : 6;
}

static void break_on(const struct link_where *where)
{
    struct heard heard;
    struct link_server *s = link_test_open_server(2, where, &heard);

    pid_t killed = start_rank(link_address(s), 0, link_test_wait_end),
          cut = start_rank(link_address(s), 1, link_test_wait_end);
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

TEST(test_broken_connections)
{
    on_both(break_on);
}

/* Whether a message waits where poll() sees it. */
static int look_at_once(struct link *l, bool stop, int rank)
{
    (void)stop;
    (void)rank;
    return poll(&(struct pollfd){.fd = l->fd, .events = POLLIN}, 1, 0) == 1 ? 7 : 8;
}

static void tell_at_once_on(const struct link_where *where)
{
    CODEC_AUTOJSON json_t *message = json_pack("{s:s}", "type", "stop");
    struct heard heard;
    struct link_server *s = link_test_open_server(1, where, &heard);
    pid_t pid = start_rank(link_address(s), 0, look_at_once);
    int status;

    while (heard.hellos == 0) {
        assert_int_equal(poll(&(struct pollfd){.fd = link_fd(s), .events = POLLIN}, 1, PATIENCE_MS), 1);
        kill(pid, SIGSTOP);
        assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
        link_serve(s);
        link_tell(s, 0, message);
        kill(pid, SIGCONT);
    }
    assert_int_equal(wait_rank(pid), 7);
    link_server_free(s);
}

/* What comes together with the acceptance is heard: nothing else may come for a long time. */
TEST(test_told_at_once)
{
    on_both(tell_at_once_on);
}

static void share_on(const struct link_where *where)
{
    struct heard heard;
    struct link_server *s = link_test_open_server(2, where, &heard);
    struct pollfd ready = {.fd = link_fd(s), .events = POLLIN};

    pid_t killed = start_rank(link_address(s), 0, link_test_wait_end),
          cut = start_rank(link_address(s), 1, link_test_wait_end);
    serve_until(s, &heard.hellos, 2);
    pid_t holder = fork();
    if (holder == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    kill(killed, SIGKILL);
    serve_until(s, &heard.gone, 1);
    assert_int_equal(poll(&ready, 1, 0), 0);
    link_serve(s);
    link_cut(s);
    assert_int_equal(wait_rank(cut), 5);
    assert_int_equal(heard.gone, 2);
    assert_int_equal(wait_rank(killed), 128 + SIGKILL);
    kill(holder, SIGKILL);
    assert_int_equal(wait_rank(holder), 128 + SIGKILL);
    link_server_free(s);
}

/* A connection that has ended is over, although a child process holds a copy of its descriptor. */
TEST(test_copies_in_a_child)
{
    on_both(share_on);
}

/* ---- strangers ---- */

/* The token, 64 digits; what follows says where. */
static char *token_of(const struct link_server *s)
{
    return act_strndup(link_address(s), LINK_SECRET_TEXT - 1);
}

static int connect_unix_at(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
        return fd;
    close(fd);
    return -1;
}

static int connect_raw(const struct link_server *s)
{
    const char *where = link_address(s) + LINK_SECRET_TEXT;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ACT_AUTOFREE char *path = act_path_join(dir, "link");

    if (act_starts_with(where, "unix ")) {
        int fd = connect_unix_at(path);
        assert_true(fd >= 0);
        return fd;
    }
    at.sin_port = htons((uint16_t)atoi(where + strlen("tcp ")));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

/* What the server says until there is a whole line, or the end (NULL). */
static json_t *next_of_server(struct link_server *s, struct link *l)
{
    json_t *message = NULL;

    while (link_take(l, &message) == 0) {
        link_serve(s);
        poll(&(struct pollfd){.fd = l->fd, .events = POLLIN}, 1, 1);
        if (!link_fill(l))
            return link_take(l, &message) == 1 ? message : NULL;
    }
    return message;
}

/* A connection of this process, and the nonce that it is to answer. */
static struct link meet_server(struct link_server *s, char nonce[LINK_SECRET_TEXT])
{
    struct link l = {.fd = connect_raw(s)};
    CODEC_AUTOJSON json_t *challenge = next_of_server(s, &l);

    assert_string_equal(codec_json_str(challenge, "type", ""), "challenge");
    assert_true(link_is_secret(codec_json_str(challenge, "nonce", "")));
    strcpy(nonce, codec_json_str(challenge, "nonce", ""));
    return l;
}

static const char ours[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

static json_t *make_hello(const char *nonce, const char *proof, int rank)
{
    return json_pack("{s:s, s:s, s:s, s:i}", "type", "hello", "nonce", nonce, "proof", proof, "rank", rank);
}

enum answer_by { BY_TOKEN, BY_OTHER_TOKEN, TOKEN_ITSELF, THEIR_NONCE, NOTHING };

/* How a challenge is answered without the right to. */
struct wrong_answer {
    enum answer_by by;                      /* what is in the place of the proof, or makes it */
    enum link_role role;                    /* that it is a proof of */
    int proved, rank;                       /* the rank that it is a proof for, and that the hello names */
    const char *their_nonce, *nonce, *type; /* NULL: as it should be */
    size_t node_bytes;                      /* of a long name */
};

/* New reference. */
static json_t *answer_wrongly(const struct wrong_answer *w, const char *token, const char *nonce)
{
    const char *mine = w->by == THEIR_NONCE ? nonce : w->nonce ? w->nonce : ours;
    ACT_AUTOFREE char *made = link_proof(w->role, w->by == BY_OTHER_TOKEN ? ours : token,
                                         w->their_nonce ? w->their_nonce : nonce, mine, w->proved);
    ACT_AUTOFREE char *node = act_sprintf("%0*d", (int)w->node_bytes, 0);
    const char *proof = w->by == TOKEN_ITSELF ? token : w->by == THEIR_NONCE ? nonce : made;
    json_t *message = make_hello(mine, proof, w->rank);

    json_object_set_new(message, "type", json_string(w->type ? w->type : "hello"));
    json_object_set_new(message, "node", json_string(node));
    if (w->by == NOTHING)
        json_object_del(message, "proof");
    return message;
}

/* Hung up on, nothing more is said to them, and nobody hears of it. */
TEST(test_strangers)
{
    static const struct wrong_answer answers[] = {
        {.by = NOTHING},
        {.by = BY_OTHER_TOKEN},
        {.by = TOKEN_ITSELF},
        {.by = THEIR_NONCE},
        {.role = LINK_SUPERVISOR},
        {.proved = 1},         /* another rank's */
        {.their_nonce = ours}, /* another connection's */
        {.nonce = "x"},
        {.proved = 2, .rank = 2}, /* there is no such rank */
        {.proved = -1, .rank = -1},
        {.type = "record"},
        {.node_bytes = 5000},
    };

    for (size_t i = 0; i < COUNT(both) * COUNT(answers); i++) {
        struct heard heard;
        struct link_server *s = link_test_open_server(2, both[i / COUNT(answers)], &heard);
        ACT_AUTOFREE char *token = token_of(s);
        char nonce[LINK_SECRET_TEXT];
        struct link l = meet_server(s, nonce);
        CODEC_AUTOJSON json_t *answer = answer_wrongly(&answers[i % COUNT(answers)], token, nonce);
        assert_true(link_send(&l, answer));
        if (next_of_server(s, &l))
            fail_msg("answer %zu is taken", i);
        assert_int_equal(heard.hellos + heard.messages + heard.gone, 0);
        link_close(&l);
        link_server_free(s);
    }
}

static void assert_hung_up(struct link_server *s, int fd)
{
    char text[256];
    ssize_t n;

    while ((n = recv(fd, text, sizeof(text), MSG_DONTWAIT)) > 0 || (n < 0 && errno == EAGAIN))
        if (n < 0) {
            poll(&(struct pollfd){.fd = link_fd(s), .events = POLLIN}, 1, 10);
            link_serve(s);
        }
    close(fd);
}

/* Who says nothing, not all of it, or all too slowly, has his second and no more. */
TEST(test_slow_strangers)
{
    static const char half[] = "{\"type\":\"hello\",\"nonce\":\"";

    for (size_t i = 0; i < COUNT(both); i++) {
        struct heard heard;
        struct link_server *s = link_test_open_server(1, both[i], &heard);
        int idle = connect_raw(s), begins = connect_raw(s), drips = connect_raw(s);
        assert_int_equal(write(begins, half, strlen(half)), (ssize_t)strlen(half));
        while (send(drips, "{", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1) {
            poll(&(struct pollfd){.fd = link_fd(s), .events = POLLIN}, 1, 10);
            link_serve(s);
        }
        close(drips);
        assert_hung_up(s, idle);
        assert_hung_up(s, begins);
        assert_int_equal(heard.hellos, 0);
        link_server_free(s);
    }
}

static void allow_many_files(void)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* However many hold a connection and say nothing, a rank comes in: the oldest give way. */
TEST(test_idle_strangers)
{
    enum { MANY = 2000, SOME = 66 };
    struct rlimit limit;
    int fds[MANY];

    allow_many_files();
    getrlimit(RLIMIT_NOFILE, &limit);
    int n = limit.rlim_cur < 2 * MANY + 100 ? SOME : MANY;
    for (size_t i = 0; i < COUNT(both); i++) {
        struct heard heard;
        struct link_server *s = link_test_open_server(1, both[i], &heard);
        for (int k = 0; k < n; k++) {
            fds[k] = connect_raw(s);
            link_serve(s);
        }
        pid_t pid = start_rank(link_address(s), 0, say_stop);
        serve_until(s, &heard.gone, 1);
        assert_int_equal(heard.hellos, 1);
        assert_int_equal(wait_rank(pid), 8);
        for (int k = 0; k < n; k++)
            assert_hung_up(s, fds[k]);
        link_server_free(s);
    }
}

/* Without descriptors nobody is accepted for a moment, and nothing spins; strangers give theirs away. */
TEST(test_no_descriptors)
{
    enum { LOOKS = 1000 };
    struct heard heard;
    struct link_server *s = link_test_open_server(1, &on_unix, &heard);
    struct rlimit limit, none;
    int free_fd = dup(0), looks = 0;

    close(free_fd);
    getrlimit(RLIMIT_NOFILE, &limit);
    none = limit;
    none.rlim_cur = (rlim_t)free_fd;
    int waiting = connect_raw(s);
    assert_int_equal(waiting, free_fd); /* so that the limit leaves no other one */
    none.rlim_cur = (rlim_t)free_fd + 1;
    setrlimit(RLIMIT_NOFILE, &none);
    link_serve(s);
    for (; looks < LOOKS && poll(&(struct pollfd){.fd = link_fd(s), .events = POLLIN}, 1, 0) != 0; looks++)
        link_serve(s);
    assert_true(looks < LOOKS);
    setrlimit(RLIMIT_NOFILE, &limit);

    pid_t pid = start_rank(link_address(s), 0, say_stop);
    serve_until(s, &heard.gone, 1);
    assert_int_equal(wait_rank(pid), 8);
    assert_hung_up(s, waiting);

    /* one descriptor, which a stranger holds */
    none.rlim_cur = (rlim_t)free_fd + 1;
    pid_t stranger = fork();
    if (stranger == 0) {
        connect_raw(s);
        pause();
    }
    while (poll(&(struct pollfd){.fd = link_fd(s), .events = POLLIN}, 1, PATIENCE_MS) != 1)
        fail_msg("no stranger comes");
    pid = start_rank(link_address(s), 0, say_stop); /* which may have more */
    setrlimit(RLIMIT_NOFILE, &none);
    serve_until(s, &heard.gone, 2);
    setrlimit(RLIMIT_NOFILE, &limit);
    assert_int_equal(wait_rank(pid), 8);
    kill(stranger, SIGKILL);
    assert_int_equal(wait_rank(stranger), 128 + SIGKILL);
    link_server_free(s);
}

/* In a process of another user; its status is what connect() and the first read gave. */
static int connect_as_nobody(const char *path)
{
    enum { NOBODY = 65534 };
    char byte;

    if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
        return 3;
    int fd = connect_unix_at(path);
    if (fd < 0)
        return errno == EACCES ? 1 : 4;
    return read(fd, &byte, 1) <= 0 ? 2 : 5; /* not even a challenge */
}

/* Neither the folder lets other users in, nor, if it did, the server. */
TEST(test_other_users)
{
    ACT_AUTOFREE char *path = act_path_join(dir, "link");
    struct heard heard;
    struct stat st;

    if (getuid() != 0)
        skip();
    mode_t before = umask(0);
    struct link_server *s = link_test_open_server(1, &on_unix, &heard);
    umask(before);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    for (int opened = 0; opened < 2; opened++) {
        if (opened) {
            assert_int_equal(chmod(dir, 0755), 0);
            assert_int_equal(chmod(path, 0666), 0);
        }
        pid_t pid = fork();
        if (pid == 0)
            _exit(connect_as_nobody(path));
        int status;
        while (waitpid(pid, &status, WNOHANG) == 0) {
            poll(&(struct pollfd){.fd = link_fd(s), .events = POLLIN}, 1, 10);
            link_serve(s);
        }
        assert_int_equal(WEXITSTATUS(status), opened ? 2 : 1);
    }
    assert_int_equal(chmod(dir, 0700), 0);
    link_server_free(s);
    assert_int_equal(access(path, F_OK), -1);
}

/* ---- where it listens ---- */

TEST(test_listeners)
{
    ACT_AUTOFREE char *deep = act_sprintf("%s/%0150d", dir, 1);
    ACT_AUTO(act_strv) here = words_of("127.0.0.1 localhost");
    const struct {
        struct link_where where;
        const char *kind;
        bool only_loopback;
    } rows[] = {
        {{.dir = dir}, "unix ", true},         {{.dir = deep}, "unix ", true},
        {{.dir = "/proc/self"}, "tcp ", true}, /* where no socket can be */
        {{.hosts = &here}, "tcp ", true},      {{.hosts = NULL}, "tcp ", false},
    };

    assert_int_equal(mkdir(deep, 0700), 0);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct link_listeners l;
        assert_ok(link_listen_on(&l, &rows[i].where, &err), err);
        assert_true(act_starts_with(l.address, rows[i].kind));
        for (size_t k = 0; k < l.n; k++) {
            struct sockaddr_in at = {0};
            socklen_t len = sizeof(at);
            assert_int_equal(getsockname(l.fds[k], (struct sockaddr *)&at, &len), 0);
            assert_int_not_equal(at.sin_addr.s_addr, at.sin_family == AF_INET ? htonl(INADDR_ANY) : 1);
            if (rows[i].only_loopback && at.sin_family == AF_INET)
                assert_int_equal(at.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
        }
        if (*rows[i].kind == 't')
            assert_non_null(strstr(l.address, " 127.0.0.1"));
        link_listeners_release(&l);
    }
}

/* ---- what is not the supervisor ---- */

/* What a false supervisor says to a rank, made from the rank's hello. New reference. */
static json_t *own_proof_sent_back(const json_t *hello)
{
    return json_pack("{s:s, s:s}", "type", "accepted", "proof", codec_json_str(hello, "proof", ""));
}

static json_t *hello_sent_back(const json_t *hello)
{
    return json_deep_copy(hello);
}

static json_t *accepted_without_proof(const json_t *hello)
{
    (void)hello;
    return json_pack("{s:s}", "type", "accepted");
}

/* Ends when it has seen the token. */
__attribute__((noreturn)) static void pretend(int listener, const char *token)
{
    static json_t *(*const answers[])(const json_t *) = {own_proof_sent_back, hello_sent_back, accepted_without_proof};
    size_t n = 0;

    for (int fd; (fd = accept(listener, NULL, NULL)) >= 0; n++) {
        struct link l = {.fd = fd};
        CODEC_AUTOJSON json_t *challenge = json_pack("{s:s, s:s}", "type", "challenge", "nonce", ours);
        CODEC_AUTOJSON json_t *hello = link_send(&l, challenge) ? next_message(&l) : NULL;
        ACT_AUTOFREE char *said = hello ? codec_json_line(hello) : NULL;
        if (!hello || strstr(said, token))
            _exit(1);
        CODEC_AUTOJSON json_t *told = answers[n % COUNT(answers)](hello);
        (void)link_send(&l, told);
        link_close(&l);
    }
    _exit(2);
}

/* Other services may have its port by now, and say back what they hear. The token is not said to anybody. */
TEST(test_wrong_service)
{
    static const char token[] = "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100";
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct link l;
    bool stop;

    assert_int_equal(bind(listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(listener, 64), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    pid_t pid = fork();
    if (pid == 0)
        pretend(listener, token);
    ACT_AUTOFREE char *value = act_sprintf("%s tcp %d 127.0.0.1", token, ntohs(at.sin_port));
    setenv(LINK_ENV, value, 1);
    CODEC_AUTOJSON json_t *hello = json_pack("{s:i}", "rank", 0);
    assert_int_equal(link_connect(&l, hello, &stop, &err), -ACT_FAIL);
    assert_non_null(strstr(act_error_text(&err), "127.0.0.1: what answers there is not the supervisor of this run"));
    kill(pid, SIGKILL);
    assert_int_equal(wait_rank(pid), 128 + SIGKILL);
    close(listener);
}

TEST(test_environment)
{
    static const char token[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    static const char *const bad[] = {"",        " tcp",  " tcp 0 a",   " tcp 65536 a", " tcp x a",
                                      " tcp 80", " unix", " unix here", " other 80 a"};
    struct link l;
    bool stop;

    CODEC_AUTOJSON json_t *hello = json_object();
    unsetenv(LINK_ENV);
    assert_fails(link_connect(&l, hello, &stop, &err), err, ACT_FAIL, "started by 'act-node supervise'");
    for (size_t i = 0; i < COUNT(bad); i++) {
        ACT_AUTOFREE char *value = act_sprintf("%s%s", token, bad[i]);
        setenv(LINK_ENV, value, 1);
        assert_fails(link_connect(&l, hello, &stop, &err), err, ACT_FAIL, "malformed");
        assert_null(getenv(LINK_ENV));
    }
    setenv(LINK_ENV, "short tcp 80 127.0.0.1", 1);
    assert_fails(link_connect(&l, hello, &stop, &err), err, ACT_FAIL, "malformed");
}

/* ---- many ---- */

/* As many ranks as descriptors allow, at once; here they are all in this process. */
TEST(test_many)
{
    enum { MANY = 2000 };
    struct rlimit limit;
    struct heard heard;

    allow_many_files();
    getrlimit(RLIMIT_NOFILE, &limit);
    int n = limit.rlim_cur < 2 * MANY + 100 ? (int)(limit.rlim_cur / 2) - 100 : MANY;
    struct link_server *s = link_test_open_server(n, &on_tcp, &heard);
    ACT_AUTOFREE char *token = token_of(s);
    ACT_AUTOFREE int *fds = act_alloc((size_t)n * sizeof(*fds));

    for (int rank = 0; rank < n; rank++) {
        char nonce[LINK_SECRET_TEXT];
        struct link l = meet_server(s, nonce);
        ACT_AUTOFREE char *proof = link_proof(LINK_RANK, token, nonce, ours, rank);
        CODEC_AUTOJSON json_t *hello = make_hello(ours, proof, rank), *up = json_pack("{s:s}", "text", "up");
        assert_true(link_send(&l, hello) && link_send(&l, up));
        fds[rank] = dup(l.fd);
        link_close(&l);
        link_serve(s);
    }
    serve_until(s, &heard.messages, n);
    assert_int_equal(heard.hellos, n);
    assert_int_equal(link_connected(s), n);
    for (int rank = 0; rank < n; rank++)
        close(fds[rank]);
    serve_until(s, &heard.gone, n);
    assert_int_equal(link_connected(s), 0);
    act_buf_release(&heard.text);
    link_server_free(s);
}

TEST_MAIN(make_dir, remove_dir)
