/* web_test.c - what a request asks for, and a server that its clients treat badly. */
#include "unit/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/engine.h"
#include "web/web_internal.h"

#define KEY  "0123456789abcdef0123456789abcdef"
#define HOST "Host: localhost\r\n"

static int web_test_status_of(const char *head, struct web_request *out)
{
    static char text[WEB_HEAD_BYTES + 1];

    snprintf(text, sizeof(text), "%s", head);
    return web_read_head(text, strlen(text), KEY, out);
}

TEST(heads_are_read)
{
    static const struct {
        const char *head;
        int status;
    } rows[] = {
        {"GET /" KEY "/ HTTP/1.1\r\n" HOST "\r\n", 200},
        {"HEAD /" KEY "/ HTTP/1.0\r\n" HOST "\r\n", 200},
        {"GET /" KEY "/ HTTP/1.1\r\nhOST:127.0.0.1:80 \t\r\nX: y: z\r\n\r\n", 200},
        {"GET /" KEY " HTTP/1.1\r\n" HOST "\r\n", 403},
        {"GET /" KEY "x/ HTTP/1.1\r\n" HOST "\r\n", 403},
        {"GET /x/" KEY "/ HTTP/1.1\r\n" HOST "\r\n", 403},
        {"GET /?/" KEY "/ HTTP/1.1\r\n" HOST "\r\n", 403},
        {"GET //" KEY "/ HTTP/1.1\r\n" HOST "\r\n", 403},
        {"POST /" KEY "/ HTTP/1.1\r\n" HOST "\r\n", 405},
        {"get /" KEY "/ HTTP/1.1\r\n" HOST "\r\n", 405},
        {"GET /" KEY "/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421},
        {"GET /" KEY "/ HTTP/1.1\r\nHost: localhost:\r\n\r\n", 421},
        {"GET /" KEY "/ HTTP/1.1\r\nHost: localhost:1a\r\n\r\n", 421},
        {"GET /" KEY "/ HTTP/1.1\r\nHost: 127.0.0.11\r\n\r\n", 421},
        {"GET /" KEY "/ HTTP/1.1\r\nHost:\r\n\r\n", 421},
        {"GET /" KEY "/ HTTP/1.1\r\n\r\n", 400},
        {"GET /" KEY "/ HTTP/1.1\r\n" HOST HOST "\r\n", 400},
        {"GET /" KEY "/ HTTP/1.1\r\n" HOST " folded\r\n\r\n", 400},
        {"GET /" KEY "/ HTTP/1.1\r\n" HOST "X : y\r\n\r\n", 400},
        {"GET /" KEY "/ HTTP/1.1\r\n" HOST "no colon\r\n\r\n", 400},
        {"GET /" KEY "/ HTTP/1.1\r\n" HOST "X: a\nHost: b\r\n\r\n", 400},
        {"GET /" KEY "/ HTTP/1.1\r\n" HOST, 400},
        {"GET  /" KEY "/ HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET /" KEY "/ HTTP/1.1 \r\n" HOST "\r\n", 400},
        {"GET http://localhost/" KEY "/ HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET /" KEY "/\x80 HTTP/1.1\r\n" HOST "\r\n", 400},
        {"G,T /" KEY "/ HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET /" KEY "/ HTTP/2.0\r\n" HOST "\r\n", 505},
        {"GET /" KEY "/ http/1.1\r\n" HOST "\r\n", 505},
        {"\r\n\r\n", 400},
        {"", 400},
    };
    struct web_request request;

    for (size_t i = 0; i < COUNT(rows); i++)
        if (web_test_status_of(rows[i].head, &request) != rows[i].status)
            fail_msg("%d, not %d: %s", web_test_status_of(rows[i].head, &request), rows[i].status, rows[i].head);
}

TEST(paths_and_queries)
{
    struct web_request request;

    assert_int_equal(web_test_status_of("HEAD /" KEY "/run/x?id=1&id=2?/ HTTP/1.1\r\n" HOST "\r\n", &request), 200);
    assert_true(request.is_head);
    assert_string_equal(request.path, "run/x");
    assert_string_equal(request.query, "id=1&id=2?/");
    assert_int_equal(web_test_status_of("GET /" KEY "/ HTTP/1.1\r\n" HOST "\r\n", &request), 200);
    assert_string_equal(request.path, "");
    assert_string_equal(request.query, "");
    assert_int_equal(web_head_end("a\r\n\r\nb", 6), 5);
    assert_int_equal(web_head_end("a\r\n\r\n", 4), 0);
}

TEST(params)
{
    static const struct {
        const char *query, *name;
        size_t nth;
        const char *value;
    } rows[] = {
        {"a=1&b=2&a=3", "a", 0, "1"},
        {"a=1&b=2&a=3", "a", 1, "3"},
        {"a=1&b=2&a=3", "a", 2, NULL},
        {"tag=x%3Dy+z%2B", "tag", 0, "x=y z+"},
        {"tag=k=v", "tag", 0, "k=v"},
        {"a=", "a", 0, ""},
        {"aa=1", "a", 0, NULL},
        {"a", "a", 0, NULL},
        {"", "a", 0, NULL},
        {"&&a=%zz%", "a", 0, "%zz%"},
        {"a=%00", "a", 0, "%00"},
    };
    static const char *const names[] = {"id", "live", NULL};

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *value = web_param(rows[i].query, rows[i].name, rows[i].nth);
        if (!act_streq(value, rows[i].value))
            fail_msg("%s of %s: %s", rows[i].name, rows[i].query, value ? value : "none");
    }
    assert_true(web_params_are("", names) && web_params_are("id=1&&live=&id=x=y&", names));
    assert_false(web_params_are("id=1&lives=1", names) || web_params_are("i=1", names) || web_params_are("=1", names));
}

/* ---- a server */

struct site {
    struct engine *engine;
    struct web *web;
    int port;
    const char *path; /* with the key */
    bool stop;
    struct act_buf page;
    struct web_visit *held; /* not answered yet */
    bool holds;
    int visits, files_ended;
    uint64_t file_size;
    int pipe[2]; /* of a file */
};

static void web_test_answer(struct site *site, struct web_visit *visit)
{
    struct act_buf text = {0};

    act_buf_add(&text, site->page.data, site->page.len);
    struct web_body *body = web_body_new(&text);
    web_answer(visit,
               &(struct web_answer){.status = 200, .policy = "default-src 'none'", .refresh_s = 7, .body = body});
    web_body_drop(body);
}

static void web_test_file_ended(void *arg)
{
    ((struct site *)arg)->files_ended++;
}

/* Answers with a file whose bytes the test writes into a pipe. */
static void web_test_send_file(struct site *site, struct web_visit *visit)
{
    assert_int_equal(pipe2(site->pipe, O_CLOEXEC | O_NONBLOCK), 0);
    web_send_file(visit, &(struct web_file){.name = "m\xc3\xb6 \"1\".pt",
                                            .size = site->file_size,
                                            .fd = site->pipe[0],
                                            .ended = web_test_file_ended,
                                            .arg = site});
}

static void visited(void *arg, struct web_visit *visit, const char *path, const char *query)
{
    struct site *site = arg;

    site->visits++;
    if (strcmp(path, "file") == 0)
        web_test_send_file(site, visit);
    else if (site->holds && strcmp(path, "held") == 0 && !*query)
        site->held = visit;
    else
        web_test_answer(site, visit);
}

static void web_test_open_site(struct site *site)
{
    *site = (struct site){.engine = engine_new(NULL)};
    act_buf_adds(&site->page, "<p>here</p>");
    assert_ok(web_open(&(struct web_options){.engine = site->engine, .visit = visited, .arg = site}, &site->web, &err),
              err);
    assert_int_equal(sscanf(web_url(site->web), "http://127.0.0.1:%d/", &site->port), 1);
    site->path = strchr(web_url(site->web) + strlen("http://"), '/');
}

static void web_test_close_site(struct site *site)
{
    web_close(site->web);
    act_buf_release(&site->page);
    engine_free(site->engine);
}

static void web_test_stop(void *arg)
{
    ((struct site *)arg)->stop = true;
}

/* Lets the server do what there is to do. */
static void web_test_turn(struct site *site)
{
    site->stop = false;
    engine_timer(site->engine, 2, web_test_stop, site);
    engine_run(site->engine, &site->stop);
}

static int web_test_connect_to(const struct site *site)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)site->port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void web_test_say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void web_test_ask(const struct site *site, int fd, const char *path)
{
    ACT_AUTOFREE char *head = act_sprintf("GET %s%s HTTP/1.1\r\n" HOST "\r\n", site->path, path);

    web_test_say(fd, head);
}

/* All that comes until the server closes; at most step bytes in a turn. */
static void web_test_hear(struct site *site, int fd, size_t step, struct act_buf *out)
{
    char chunk[65536];
    ssize_t n;

    act_buf_adds(out, ""); /* a text, even if nothing comes */
    do {
        web_test_turn(site);
        n = recv(fd, chunk, step, 0);
        if (n > 0)
            act_buf_add(out, chunk, (size_t)n);
    } while (n > 0 || (n < 0 && errno == EAGAIN));
    close(fd);
}

TEST(an_answer)
{
    struct site site;
    ACT_AUTO(act_buf) heard = {0};

    web_test_open_site(&site);
    int fd = web_test_connect_to(&site);
    web_test_ask(&site, fd, "");
    web_test_hear(&site, fd, 4096, &heard);
    assert_true(act_starts_with(heard.data, "HTTP/1.1 200 OK\r\n"));
    assert_true(act_ends_with(heard.data, "\r\n\r\n<p>here</p>"));
    assert_contains(heard.data, "Refresh: 7\r\n");
    assert_contains(heard.data, "Content-Length: 11\r\n");
    assert_contains(heard.data, "Referrer-Policy: no-referrer\r\n");
    assert_lacks(heard.data, "Cookie");
    web_test_close_site(&site);
}

TEST(keys_differ)
{
    struct site one, two;

    web_test_open_site(&one);
    web_test_open_site(&two);
    assert_string_not_equal(one.path, two.path);
    assert_int_equal(strlen(one.path), 2 + 2 * WEB_KEY_BYTES);
    web_test_close_site(&one);
    web_test_close_site(&two);
}

TEST(a_port_that_is_taken)
{
    struct web *other;
    struct site site;

    web_test_open_site(&site);
    const struct web_options options = {.engine = site.engine, .port = site.port, .visit = visited, .arg = &site};
    assert_fails(web_open(&options, &other, &err), err, ACT_USAGE, "is taken");
    assert_null(other);
    web_test_close_site(&site);
}

/* A request byte by byte, a reader that takes little at a time, and one that ends what it says first. */
TEST(slow_clients)
{
    struct site site;
    ACT_AUTO(act_buf) heard = {0};

    web_test_open_site(&site);
    for (int i = 0; i < 600000; i++)
        act_buf_adds(&site.page, "0123456789");
    ACT_AUTOFREE char *head = act_sprintf("GET %s HTTP/1.1\r\n" HOST "\r\n", site.path);
    int fd = web_test_connect_to(&site);
    for (const char *c = head; *c; c++) {
        const char one[] = {*c, '\0'};
        web_test_say(fd, one);
        web_test_turn(&site);
    }
    shutdown(fd, SHUT_WR);
    web_test_hear(&site, fd, 65536, &heard);
    assert_true(heard.len > site.page.len);
    assert_int_equal(site.visits, 1);
    web_test_close_site(&site);
}

/* The page of a visit comes after others, or after the client has gone. */
TEST(answers_that_come_later)
{
    struct site site;
    ACT_AUTO(act_buf) first = {0}, second = {0};

    web_test_open_site(&site);
    site.holds = true;
    int waiting = web_test_connect_to(&site), other = web_test_connect_to(&site);
    web_test_ask(&site, waiting, "held");
    while (!site.held)
        web_test_turn(&site);
    web_test_ask(&site, other, "");
    web_test_hear(&site, other, 4096, &second);
    assert_contains(second.data, "here");
    web_test_answer(&site, site.held);
    web_test_hear(&site, waiting, 4096, &first);
    assert_contains(first.data, "here");

    site.held = NULL;
    waiting = web_test_connect_to(&site);
    web_test_ask(&site, waiting, "held");
    while (!site.held)
        web_test_turn(&site);
    close(waiting);
    web_test_turn(&site);
    web_test_answer(&site, site.held);
    web_test_turn(&site);
    site.held = NULL;
    waiting = web_test_connect_to(&site);
    web_test_ask(&site, waiting, "held");
    while (!site.held)
        web_test_turn(&site);
    close(waiting); /* and the server ends before it has answered */
    web_test_close_site(&site);
}

/* Those that say nothing make room for who has the key. */
TEST(more_clients_than_there_is_room_for)
{
    enum { MANY = 200 };
    int silent[MANY];
    struct site site;
    ACT_AUTO(act_buf) heard = {0};

    web_test_open_site(&site);
    for (int i = 0; i < MANY; i++) {
        silent[i] = web_test_connect_to(&site);
        web_test_turn(&site);
    }
    int fd = web_test_connect_to(&site);
    web_test_ask(&site, fd, "");
    web_test_hear(&site, fd, 4096, &heard);
    assert_contains(heard.data, "here");
    for (int i = 0; i < MANY; i++)
        close(silent[i]);
    web_test_turn(&site);
    web_test_close_site(&site);
}

TEST(heads_that_are_too_long)
{
    struct site site;
    ACT_AUTO(act_buf) heard = {0}, head = {0};

    web_test_open_site(&site);
    act_buf_adds(&head, "GET / HTTP/1.1\r\nX: ");
    for (int i = 0; i < 3 * WEB_HEAD_BYTES; i++)
        act_buf_addc(&head, 'x');
    int fd = web_test_connect_to(&site);
    web_test_say(fd, head.data);
    web_test_hear(&site, fd, 4096, &heard);
    assert_true(act_starts_with(heard.data, "HTTP/1.1 431 "));
    assert_int_equal(site.visits, 0);
    web_test_close_site(&site);
}

/* Writes so many bytes into the pipe of a file, as it takes them, while the client reads. */
static void web_test_feed(struct site *site, int fd, size_t n, struct act_buf *heard)
{
    static const char bytes[1 << 16];
    char chunk[1 << 16];

    while (n > 0) {
        ssize_t wrote = write(site->pipe[1], bytes, n < sizeof(bytes) ? n : sizeof(bytes));
        n -= wrote > 0 ? (size_t)wrote : 0;
        web_test_turn(site);
        ssize_t got = recv(fd, chunk, sizeof(chunk), 0);
        act_buf_add(heard, chunk, got > 0 ? (size_t)got : 0);
    }
}

static void web_test_close_pipe(struct site *site)
{
    close(site->pipe[0]);
    close(site->pipe[1]);
}

/* A file comes as it is read, under its name, and is for nobody to show. */
TEST(files)
{
    struct site site;
    ACT_AUTO(act_buf) heard = {0};

    web_test_open_site(&site);
    site.file_size = 3000000;
    int fd = web_test_connect_to(&site);
    web_test_ask(&site, fd, "file");
    while (site.visits == 0)
        web_test_turn(&site);
    web_test_feed(&site, fd, site.file_size, &heard);
    web_test_hear(&site, fd, 65536, &heard);
    assert_int_equal(site.files_ended, 1);
    assert_contains(heard.data, "Content-Type: application/octet-stream\r\nContent-Length: 3000000\r\n");
    assert_contains(heard.data, "Content-Disposition: attachment; filename*=UTF-8''m%C3%B6%20%221%22.pt\r\n");
    assert_contains(heard.data, "X-Content-Type-Options: nosniff\r\n");
    assert_contains(heard.data, "Content-Security-Policy: default-src 'none'\r\n");
    assert_int_equal(heard.len, web_head_end(heard.data, heard.len) + site.file_size);
    web_test_close_pipe(&site);
    web_test_close_site(&site);
}

/* One that ends too early, one whose reader goes away, one that is only asked about, and one that the end of the server
 * meets. */
TEST(files_that_end_early)
{
    struct site site;
    ACT_AUTO(act_buf) heard = {0}, head = {0};

    web_test_open_site(&site);
    site.file_size = 1000;
    int fd = web_test_connect_to(&site);
    web_test_ask(&site, fd, "file");
    while (site.visits < 1)
        web_test_turn(&site);
    web_test_feed(&site, fd, 999, &heard);
    close(site.pipe[1]);
    web_test_hear(&site, fd, 4096, &heard);
    close(site.pipe[0]);
    assert_int_equal(site.files_ended, 1);
    assert_int_equal(heard.len, web_head_end(heard.data, heard.len) + 999);

    fd = web_test_connect_to(&site);
    web_test_ask(&site, fd, "file");
    while (site.visits < 2)
        web_test_turn(&site);
    close(fd);
    while (site.files_ended < 2) {
        (void)!write(site.pipe[1], "x", 1);
        web_test_turn(&site);
    }
    web_test_close_pipe(&site);

    fd = web_test_connect_to(&site);
    ACT_AUTOFREE char *request = act_sprintf("HEAD %sfile HTTP/1.1\r\n" HOST "\r\n", site.path);
    web_test_say(fd, request);
    web_test_hear(&site, fd, 4096, &head);
    assert_contains(head.data, "Content-Length: 1000\r\n");
    assert_int_equal(head.len, web_head_end(head.data, head.len));
    assert_int_equal(site.files_ended, 3);
    web_test_close_pipe(&site);

    fd = web_test_connect_to(&site);
    web_test_ask(&site, fd, "file");
    while (site.visits < 4)
        web_test_turn(&site);
    web_test_close_site(&site);
    assert_int_equal(site.files_ended, 4);
    web_test_close_pipe(&site);
    close(fd);
}

/* A reader that takes nothing holds up neither the server nor the process that reads the file. */
TEST(a_file_that_nobody_reads)
{
    struct site site;
    size_t written = 0, before = 1;
    char bytes[4096] = "";

    web_test_open_site(&site);
    site.file_size = 1U << 30;
    int fd = web_test_connect_to(&site);
    web_test_ask(&site, fd, "file");
    while (site.visits < 1)
        web_test_turn(&site);
    for (; written != before; web_test_turn(&site)) {
        before = written;
        for (ssize_t n = 1; n > 0; written += n > 0 ? (size_t)n : 0)
            n = write(site.pipe[1], bytes, sizeof(bytes));
    }
    assert_true(written < 1U << 26);
    close(fd);
    while (site.files_ended < 1)
        web_test_turn(&site);
    web_test_close_pipe(&site);
    web_test_close_site(&site);
}

TEST_MAIN(NULL, NULL)
