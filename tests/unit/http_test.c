/* Requests against a scripted server of this process: every answer a peer may give, good and bad. */
#define TEST_TEARDOWN http_test_tear_down
#define TEST_SETUP    NULL
#include "unit/script_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "http/http.h"
#include "http/http_internal.h"

/* --- one call against it -------------------------------------------------------------------------------- */

/* The client, the server and the call of the test that runs. */
static struct {
    struct engine *engine;
    struct http *http;
    struct server server;
    struct http_call call;
} f;

static int http_test_tear_down(void **state)
{
    (void)state;
    if (!f.http)
        return 0;
    http_call_release(&f.call);
    http_free(f.http);
    engine_free(f.engine);
    server_stop(&f.server);
    f.http = NULL;
    return 0;
}

/* Begins anew: a test may do so many times. */
static void http_test_set_up(const struct step *steps, size_t steps_n, const struct http_options *options)
{
    http_test_tear_down(NULL);
    f.engine = engine_new(&(struct engine_options){.max_connections = 2});
    f.http = http_new(f.engine, options);
    server_start(&f.server, steps, steps_n);
    f.call = (struct http_call){
        .method = "GET", .url = act_sprintf("http://127.0.0.1:%d/c/b", f.server.port), .what = "cannot get 'c/b'"};
}

static void http_test_set_url(char *url)
{
    free(f.call.url);
    f.call.url = url;
}

static void http_test_set_flag(struct http_call *call)
{
    *(bool *)call->arg = true;
}

/* Runs the call to its end. */
static int http_test_do(void)
{
    bool ended = false;

    f.call.done = http_test_set_flag;
    f.call.arg = &ended;
    http_start(f.http, &f.call);
    engine_run(f.engine, &ended);
    assert_true(ended);
    err = f.call.error;
    return f.call.rc;
}

/* Runs a call that has one answer only, without retries. */
static int http_test_ask_once(const char *text, enum then then)
{
    http_test_set_up(&(struct step){text, then}, 1, NULL);
    f.call.no_retry = true;
    return http_test_do();
}

TEST(answers_table)
{
    static const struct {
        const char *answer;
        enum then then;
        int rc, status;
        const char *text; /* the body, or in the error text */
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", CLOSE, 0, 200, "hello"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", CLOSE, 0, 200,
         "hello"},
        {"HTTP/1.1 200 OK\r\n\r\nhello", CLOSE, 0, 200, "hello"},
        {"HTTP/1.1 100 Continue\r\nX-A: interim\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1", CLOSE, 0, 200,
         "1"},
        {"HTTP/1.1 204 No Content\r\n\r\n", CLOSE, 0, 204, ""},
        {"HTTP/1.1 404 Gone\r\nContent-Length: 4\r\n\r\nnope", CLOSE, 0, 404, "nope"},
        {"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy", CLOSE, 0, 503, "busy"},
        {"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n", CLOSE, 0, 302, ""},
        {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", CLOSE, -ACT_TEMPORARY, 0, "broke: "},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nl", CLOSE, -ACT_TEMPORARY, 0, "broke"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", CLOSE, -ACT_TEMPORARY, 0, "broke: "},
        {"HTTP/1.1 200 OK\r\nContent-Len", CLOSE, -ACT_TEMPORARY, 0, "broke: "},
        {"HTTP/1.1 100 Continue\r\n\r\n", CLOSE, -ACT_TEMPORARY, 0, "broke: "},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Trailer: 1\r\n\r\n", CLOSE, 0, 200,
         "hi"},
        {NULL, CLOSE, -ACT_TEMPORARY, 0, "broke: Empty reply"},
        {NULL, RESET, -ACT_TEMPORARY, 0, "broke: "},
        {"HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 0\r\n\r\n", CLOSE, -ACT_FAIL, 0, "failed: "},
        {"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", CLOSE, -ACT_FAIL, 0, "failed: "},
        {"SSH-2.0-OpenSSH_9.2\r\n", CLOSE, -ACT_FAIL, 0, "HTTP/0.9"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(http_test_ask_once(rows[i].answer, rows[i].then), rows[i].rc);
        assert_int_equal(f.call.status, rows[i].status);
        assert_int_equal(f.call.tries, 1);
        assert_null(f.call.under_way);
        if (rows[i].rc == 0) {
            assert_string_equal(f.call.body_text.data ? f.call.body_text.data : "", rows[i].text);
            assert_null(http_header_get(&f.call.response_headers, "x-a"));
        } else {
            assert_true(act_starts_with(act_error_text(&err), "cannot get 'c/b': "));
            assert_contains(act_error_text(&err), rows[i].text);
            assert_true(f.call.ambiguous || rows[i].rc == -ACT_FAIL);
        }
    }
}

TEST(answer_headers_are_found_in_any_case)
{
    assert_int_equal(http_test_ask_once("HTTP/1.1 200 OK\r\nETAG:\"1\"\r\nX-Empty:\r\nX-Spaces: \t a b \t\r\n"
                                        "Content-Length: 0\r\n\r\n",
                                        CLOSE),
                     0);
    assert_string_equal(http_header_get(&f.call.response_headers, "etag"), "\"1\"");
    assert_string_equal(http_header_get(&f.call.response_headers, "x-empty"), "");
    assert_string_equal(http_header_get(&f.call.response_headers, "x-spaces"), "a b");
}

TEST(header_floods_are_refused)
{
    struct act_buf many = {0}, large = {0};

    act_buf_adds(&many, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 400; i++)
        act_buf_addf(&many, "X-%d: y\r\n", i);
    act_buf_adds(&many, "Content-Length: 0\r\n\r\n");
    act_buf_adds(&large, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 70; i++)
        act_buf_addf(&large, "X-%d: %01000d\r\n", i, 0);
    act_buf_adds(&large, "Content-Length: 0\r\n\r\n");
    assert_fails(http_test_ask_once(many.data, CLOSE), err, ACT_FAIL, "headers");
    assert_fails(http_test_ask_once(large.data, CLOSE), err, ACT_FAIL, "headers");
    static const char endless[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: ";
    ACT_AUTOFREE char *line = act_sprintf("%s%0400000d\r\n\r\n", endless, 0);
    assert_fails(http_test_ask_once(line, CLOSE), err, ACT_FAIL, "is not acceptable: a line of its head does not end");
    act_buf_release(&many);
    act_buf_release(&large);
}

TEST(sink_takes_only_what_fits_and_only_success)
{
    static const struct {
        const char *answer;
        size_t cap, max_body;
        int rc;
        const char *sink, *text;
    } rows[] = {
        {"HTTP/1.1 206 Partial\r\nContent-Length: 5\r\n\r\nhello", 5, 0, 0, "hello", ""},
        {"HTTP/1.1 206 Partial\r\nContent-Length: 5\r\n\r\nhello", 9, 2, 0, "hello", ""},
        {"HTTP/1.1 404 Gone\r\nContent-Length: 5\r\n\r\nhello", 2, 0, 0, "", "hello"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 4, 0, -ACT_FAIL, NULL, "more than 4 bytes"},
        {"HTTP/1.1 404 Gone\r\nContent-Length: 5\r\n\r\nhello", 9, 4, -ACT_FAIL, NULL, "more than 4 bytes"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct step steps[] = {{rows[i].answer, CLOSE}};
        char *sink = act_alloc(rows[i].cap); /* its end is guarded by the sanitizer */
        http_test_set_up(steps, 1, NULL);
        f.call.sink = sink;
        f.call.sink_cap = rows[i].cap;
        f.call.max_body = rows[i].max_body;
        assert_int_equal(http_test_do(), rows[i].rc);
        if (rows[i].rc == 0) {
            assert_int_equal(f.call.sink_len, strlen(rows[i].sink));
            assert_memory_equal(sink, rows[i].sink, f.call.sink_len);
            assert_string_equal(f.call.body_text.data ? f.call.body_text.data : "", rows[i].text);
        } else {
            assert_contains(act_error_text(&err), rows[i].text);
            assert_int_equal(f.call.tries, 1);
        }
        free(sink);
    }
}

/* --- what is sent --------------------------------------------------------------------------------------- */

#define EMPTY_OK "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

TEST(put_arrives_byte_for_byte)
{
    enum { SIZE = 3 << 20 };
    const struct step steps[] = {{EMPTY_OK, CLOSE}};
    char *body = act_alloc(SIZE);

    for (size_t i = 0; i < SIZE; i++)
        body[i] = (char)(i * 31 + i / 251);
    http_test_set_up(steps, 1, NULL);
    f.call.method = "PUT";
    f.call.body = body;
    f.call.body_len = SIZE;
    http_header_set(&f.call.headers, "x-ms-meta-k", "");
    http_header_setf(&f.call.headers, "x-ms-n", "%d", 7);
    assert_ok(http_test_do(), err);
    const struct act_buf *got = &f.server.requests[0];
    const char *end = strstr(got->data, "\r\n\r\n");
    assert_non_null(end);
    size_t head = (size_t)(end + 4 - got->data);
    assert_int_equal(got->len - head, SIZE);
    assert_memory_equal(got->data + head, body, SIZE);
    got->data[head] = '\0';
    assert_true(act_starts_with(got->data, "PUT /c/b HTTP/1.1\r\n"));
    assert_non_null(strstr(got->data, "\r\nContent-Length: 3145728\r\n"));
    assert_non_null(strstr(got->data, "\r\nUser-Agent: act/" ACT_VERSION "\r\n"));
    assert_non_null(strstr(got->data, "\r\nx-ms-meta-k:\r\n"));
    assert_non_null(strstr(got->data, "\r\nx-ms-n: 7\r\n"));
    assert_null(strcasestr(got->data, "expect:"));
    assert_null(strcasestr(got->data, "accept-encoding:"));
    assert_null(strcasestr(got->data, "content-type:"));
    free(body);
}

TEST(methods_table)
{
    static const struct {
        const char *method, *body, *type;
        const char *line, *length; /* NULL: no such header */
    } rows[] = {
        {"GET", NULL, NULL, "GET ", NULL},
        {"DELETE", NULL, NULL, "DELETE ", NULL},
        {"HEAD", NULL, NULL, "HEAD ", NULL},
        {"PUT", NULL, NULL, "PUT ", "Content-Length: 0\r\n"},
        {"POST", NULL, NULL, "POST ", "Content-Length: 0\r\n"},
        {"POST", "a=b", "text/plain", "POST ", "Content-Length: 3\r\n"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct step steps[] = {{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", CLOSE}};
        http_test_set_up(steps, 1, NULL);
        f.call.method = rows[i].method;
        f.call.body = rows[i].body;
        f.call.body_len = rows[i].body ? strlen(rows[i].body) : 0;
        if (rows[i].type)
            http_header_set(&f.call.headers, "content-type", rows[i].type);
        assert_ok(http_test_do(), err);
        const char *got = f.server.requests[0].data;
        assert_true(act_starts_with(got, rows[i].line));
        const char *length = strstr(got, "Content-Length:"), *type = strcasestr(got, "content-type:");
        assert_int_equal(length != NULL, rows[i].length != NULL);
        assert_true(!length || act_starts_with(length, rows[i].length));
        assert_int_equal(type != NULL, rows[i].type != NULL);
        assert_null(strstr(got, "Transfer-Encoding"));
    }
}

TEST(head_has_a_length_but_no_body)
{
    const struct step steps[] = {{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n", CLOSE}};

    http_test_set_up(steps, 1, NULL);
    f.call.method = "HEAD";
    assert_ok(http_test_do(), err);
    assert_int_equal(f.call.status, 200);
    assert_string_equal(http_header_get(&f.call.response_headers, "Content-Length"), "5");
    assert_int_equal(f.call.body_text.len, 0);
}

TEST(path_is_sent_as_it_is)
{
    const struct step steps[] = {{EMPTY_OK, CLOSE}};
    static const char path[] = "/c/a/../x/./y//%2e%2E/%e4%20+?p=a%2Fb+c&q=/../";

    http_test_set_up(steps, 1, NULL);
    http_test_set_url(act_sprintf("http://127.0.0.1:%d%s", f.server.port, path));
    assert_ok(http_test_do(), err);
    ACT_AUTOFREE char *line = act_sprintf("GET %s HTTP/1.1\r\n", path);
    assert_true(act_starts_with(f.server.requests[0].data, line));
}

TEST(bad_requests_are_not_sent)
{
    static const struct {
        const char *url, *name, *value;
        int rc;
        const char *text;
    } rows[] = {
        {"ftp://127.0.0.1/x?sig=secret", NULL, NULL, -ACT_CONFIG, "'ftp://127.0.0.1/x?sig=REDACTED' is not"},
        {"file:///etc/passwd", NULL, NULL, -ACT_CONFIG, "is not an address"},
        {"http://user:secret@127.0.0.1/", NULL, NULL, -ACT_CONFIG, "'http://REDACTED@127.0.0.1/' is not"},
        {"http://", NULL, NULL, -ACT_CONFIG, "is not an address"},
        {"", NULL, NULL, -ACT_CONFIG, "is not an address"},
        {"http://127.0.0.1:1/", "x-a", "b\r\nX-Evil: 1", -ACT_USAGE, "'x-a' cannot be sent"},
        {"http://127.0.0.1:1/", "x-a\r\nX-Evil", "1", -ACT_USAGE, "cannot be sent"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        http_test_set_up(NULL, 0, NULL);
        http_test_set_url(act_strdup(rows[i].url));
        if (rows[i].name)
            http_header_set(&f.call.headers, rows[i].name, rows[i].value);
        assert_int_equal(http_test_do(), rows[i].rc);
        assert_contains(act_error_text(&err), rows[i].text);
        assert_lacks(act_error_text(&err), "secret");
        assert_int_equal(f.call.tries, 0);
    }
}

/* --- retries -------------------------------------------------------------------------------------------- */

#define BUSY "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy"
#define FINE "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
#define KEPT "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
#define CUT  "HTTP/1.1 200 OK\r\nretry-after-ms: 0\r\nContent-Length: 5\r\n\r\nwr"

TEST(retries_table)
{
    static const struct {
        struct step steps[4];
        size_t steps_n;
        int max_retries, rc, status, tries;
        bool ambiguous;
        const char *sink;
    } rows[] = {
        {{{FINE, CLOSE}}, 1, 0, 0, 200, 1, false, "hello"},
        {{{BUSY, CLOSE}, {FINE, CLOSE}}, 2, 0, 0, 200, 2, true, "hello"},
        {{{CUT, CLOSE}, {FINE, CLOSE}}, 2, 0, 0, 200, 2, true, "hello"},
        {{{NULL, RESET}, {FINE, CLOSE}}, 2, 0, 0, 200, 2, true, "hello"},
        {{{BUSY, CLOSE}, {BUSY, CLOSE}, {BUSY, CLOSE}, {FINE, CLOSE}}, 4, 2, 0, 503, 3, true, ""},
        {{{BUSY, CLOSE}, {FINE, CLOSE}}, 2, -1, 0, 503, 1, true, ""},
        {{{CUT, CLOSE}, {CUT, CLOSE}}, 2, 1, -ACT_TEMPORARY, 0, 2, true, NULL},
        {{{"HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n", CLOSE}}, 1, 0, 0, 409, 1, false, ""},
        {{{"HTTP/1.1 429 Slow\r\nx-ms-retry-after-ms: 1\r\nContent-Length: 0\r\n\r\n", CLOSE}, {FINE, CLOSE}},
         2,
         0,
         0,
         200,
         2,
         false,
         "hello"},
    };
    char sink[16];

    for (size_t i = 0; i < COUNT(rows); i++) {
        http_test_set_up(rows[i].steps, rows[i].steps_n, &(struct http_options){.max_retries = rows[i].max_retries});
        f.call.sink = sink;
        f.call.sink_cap = sizeof(sink);
        assert_int_equal(http_test_do(), rows[i].rc);
        assert_int_equal(f.call.status, rows[i].status);
        assert_int_equal(f.call.tries, rows[i].tries);
        assert_int_equal(f.call.ambiguous, rows[i].ambiguous);
        if (rows[i].sink) {
            assert_int_equal(f.call.sink_len, strlen(rows[i].sink));
            assert_memory_equal(sink, rows[i].sink, f.call.sink_len);
        } else {
            assert_contains(act_error_text(&err), "; tried 2 times");
        }
    }
}

/* A connection that was kept and dies under the next request: libcurl sends it again on its own. */
TEST(a_silent_repetition_is_ambiguous)
{
    const struct step steps[] = {{KEPT, KEEP}, {NULL, RESET}, {FINE, CLOSE}};

    http_test_set_up(steps, COUNT(steps), NULL);
    f.call.method = "PUT";
    f.call.body = "x";
    f.call.body_len = 1;
    assert_ok(http_test_do(), err);
    assert_false(f.call.ambiguous);
    f.call.no_retry = true;
    assert_int_equal(http_test_do(), 0);
    assert_int_equal(f.call.status, 200);
    assert_string_equal(f.call.body_text.data, "hello");
    assert_true(f.call.ambiguous);
    assert_int_equal(f.server.requests_n, 3);
}

/* The same while a body is sent; no retry is needed for it. */
TEST(a_connection_that_dies_under_a_body_is_replaced)
{
    enum { SIZE = 8 << 20 };
    const struct step steps[] = {{KEPT, KEEP}, {NULL, CUT_SHORT}, {FINE, CLOSE}, {NULL, CUT_SHORT}};
    char *body = act_calloc(1, SIZE);

    http_test_set_up(steps, COUNT(steps), &(struct http_options){.max_retries = -1});
    assert_ok(http_test_do(), err);
    f.call.method = "PUT";
    f.call.body = body;
    f.call.body_len = SIZE;
    assert_ok(http_test_do(), err);
    assert_int_equal(f.call.status, 200);
    assert_true(f.call.ambiguous);
    assert_true(f.server.requests[1].len > SIZE);
    /* a new connection that dies is a failure */
    assert_int_equal(http_test_do(), -ACT_TEMPORARY);
    assert_int_equal(f.call.tries, 1);
    free(body);
}

/* --- pace ----------------------------------------------------------------------------------------------- */

#define BUSY_CODE(status, code)                                                                                        \
    "HTTP/1.1 " status "\r\nx-ms-error-code: " code "\r\nRetry-After: 0\r\nContent-Length: 0\r\n"                      \
    "Connection: close\r\n\r\n"

/* Many more throttling answers than retries. */
TEST(throttled_calls_wait_for_their_turn)
{
    const struct step steps[] = {{FINE, CLOSE},
                                 {BUSY, CLOSE},
                                 {BUSY_CODE("503 x", "ServerBusy"), CLOSE},
                                 {BUSY_CODE("500 x", "OperationTimedOut"), CLOSE},
                                 {"HTTP/1.1 429 x\r\nretry-after-ms: 30\r\nContent-Length: 0\r\n\r\n", CLOSE},
                                 {FINE, CLOSE}};

    http_test_set_up(steps, COUNT(steps), &(struct http_options){.max_retries = 1});
    assert_ok(http_test_do(), err);
    assert_int_equal(http_window(f.http, f.call.url), 32);
    int64_t start_ms = act_now_monotonic_ms();
    assert_ok(http_test_do(), err);
    assert_true(act_now_monotonic_ms() - start_ms >= 30); /* the pause that was asked for */
    assert_int_equal(f.call.status, 200);
    assert_int_equal(f.call.tries, 5);
    assert_true(f.call.ambiguous);
    assert_true(http_window(f.http, f.call.url) < 32);
}

/* A peer that is well otherwise and answers "now" for ever gets as many tries as with any other failure. */
TEST(no_pause_asked_for_is_no_throttling)
{
    const struct step steps[] = {{FINE, CLOSE}, {BUSY, CLOSE}, {BUSY, CLOSE}, {BUSY, CLOSE}, {BUSY, CLOSE}};

    http_test_set_up(steps, COUNT(steps), &(struct http_options){.max_retries = 2});
    assert_ok(http_test_do(), err);
    assert_ok(http_test_do(), err);
    assert_int_equal(f.call.status, 503);
    assert_int_equal(f.call.tries, 3);
}

/* Whoever wants no second try gets none, and a peer that only throttles is tried as often as any other. */
TEST(throttling_may_be_the_answer)
{
    const struct step steps[] = {{BUSY, CLOSE}, {BUSY, CLOSE}, {FINE, CLOSE}, {BUSY, CLOSE}};

    http_test_set_up(steps, COUNT(steps), &(struct http_options){.max_retries = 1});
    assert_ok(http_test_do(), err);
    assert_int_equal(f.call.status, 503);
    assert_int_equal(f.call.tries, 2);
    assert_ok(http_test_do(), err);
    assert_int_equal(f.call.status, 200);
    f.call.no_retry = true;
    assert_ok(http_test_do(), err);
    assert_int_equal(f.call.status, 503);
    assert_int_equal(f.call.tries, 1);
}

TEST(windows_are_per_peer_and_limited)
{
    http_test_set_up(NULL, 0, &(struct http_options){.max_transfers = 3});
    assert_int_equal(http_window(f.http, f.call.url), 3);
    assert_int_equal(http_window(f.http, "https://other.example/x"), 3);
    assert_int_equal(http_window(f.http, "nonsense"), 1);
    setenv("ACT_MAX_TRANSFERS", "7", 1);
    http_test_set_up(NULL, 0, NULL);
    assert_int_equal(http_window(f.http, f.call.url), 7);
    unsetenv("ACT_MAX_TRANSFERS");
}

static struct act_buf order;

static void note_order(struct http_call *call)
{
    assert_int_equal(call->rc, 0);
    act_buf_addc(&order, *(char *)call->arg);
}

/* One at a time: they go out in the order in which they were started, on one connection. */
TEST(calls_wait_in_line)
{
    enum { CALLS = 5 };
    static struct step steps[CALLS];
    static char letters[] = "abcde";
    struct http_call calls[CALLS];

    for (size_t i = 0; i < CALLS; i++)
        steps[i] = (struct step){KEPT, KEEP};
    http_test_set_up(steps, CALLS, &(struct http_options){.max_transfers = 1});
    for (size_t i = 0; i < CALLS; i++) {
        calls[i] = (struct http_call){.method = "GET",
                                      .url = act_sprintf("%s/%c", f.call.url, letters[i]),
                                      .done = note_order,
                                      .arg = &letters[i]};
        http_start(f.http, &calls[i]);
    }
    engine_run(f.engine, NULL);
    assert_string_equal(order.data, letters);
    for (size_t i = 0; i < CALLS; i++) {
        char *line = act_sprintf("GET /c/b/%c HTTP/1.1\r\n", letters[i]);
        assert_true(act_starts_with(f.server.requests[i].data, line));
        free(line);
        http_call_release(&calls[i]);
    }
    act_buf_release(&order);
}

/* --- bytes per second ----------------------------------------------------------------------------------- */

static void count_put(struct http_call *call)
{
    assert_ok(call->rc, call->error);
    assert_int_equal(call->status, 200);
    assert_int_equal(call->tries, 1);
}

/* Each of two uploads gets less than what is a stall without a limit, and waits longer than the stall timeout
 * for its turn. */
TEST(a_limit_is_no_stall)
{
    enum { SIZE = 2000 };
    const struct step steps[] = {{FINE, CLOSE}, {FINE, CLOSE}};
    struct http_call calls[2];
    char body[SIZE];

    memset(body, 'b', sizeof(body));
    http_test_set_up(steps, COUNT(steps),
                     &(struct http_options){.bwlimit = 1000, .stall_timeout_s = 1, .max_retries = -1});
    int64_t start_ms = act_now_monotonic_ms();
    for (size_t i = 0; i < COUNT(calls); i++) {
        calls[i] = (struct http_call){
            .method = "PUT", .url = act_strdup(f.call.url), .body = body, .body_len = sizeof(body), .done = count_put};
        http_start(f.http, &calls[i]);
    }
    engine_run(f.engine, NULL);
    /* 4000 bytes; the last piece (1024) leaves a debt, a tenth of a second was there at first */
    assert_true(act_now_monotonic_ms() - start_ms >= 2800);
    for (size_t i = 0; i < COUNT(calls); i++) {
        const struct act_buf *got = &f.server.requests[i];
        assert_memory_equal(got->data + got->len - SIZE, body, SIZE);
        http_call_release(&calls[i]);
    }
}

/* Both ways at once, in pieces, byte for byte. */
TEST(limited_bodies_arrive)
{
    enum { SIZE = 300000 };
    ACT_AUTO(act_buf) text = {0};
    char *body = act_alloc(SIZE), *sink = act_alloc(SIZE);

    for (size_t i = 0; i < SIZE; i++)
        body[i] = (char)('a' + i * 7 % 26);
    act_buf_addf(&text, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", SIZE);
    act_buf_add(&text, body, SIZE);
    const struct step steps[] = {{text.data, CLOSE}};
    http_test_set_up(steps, 1, &(struct http_options){.bwlimit = 1000000, .stall_timeout_s = 1});
    f.call.method = "PUT";
    f.call.body = body;
    f.call.body_len = SIZE;
    f.call.sink = sink;
    f.call.sink_cap = SIZE;
    int64_t start_ms = act_now_monotonic_ms();
    assert_ok(http_test_do(), err);
    /* up, then down, each 0.3 s; but 0.1 s was there at first, and the last piece leaves a debt of 0.05 s */
    assert_true(act_now_monotonic_ms() - start_ms >= 290);
    assert_int_equal(f.call.tries, 1);
    assert_int_equal(f.call.sink_len, SIZE);
    assert_memory_equal(sink, body, SIZE);
    const struct act_buf *got = &f.server.requests[0];
    assert_memory_equal(got->data + got->len - SIZE, body, SIZE);
    free(body);
    free(sink);
}

TEST(a_stall_under_a_limit_is_noticed)
{
    const struct step steps[] = {{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", STALL}};

    http_test_set_up(steps, 1, &(struct http_options){.bwlimit = 1000000, .stall_timeout_s = 1, .max_retries = -1});
    assert_fails(http_test_do(), err, ACT_TIMEOUT, "nothing for 1 s");
}

/* A kept connection dies under a limited request: it begins anew. */
TEST(a_limited_body_is_repeated_from_its_beginning)
{
    const struct step steps[] = {{KEPT, KEEP}, {NULL, RESET}, {FINE, CLOSE}};

    http_test_set_up(steps, COUNT(steps), &(struct http_options){.bwlimit = 1000000, .max_retries = -1});
    f.call.method = "PUT";
    f.call.body = "0123456789";
    f.call.body_len = 10;
    assert_ok(http_test_do(), err);
    assert_ok(http_test_do(), err);
    assert_true(f.call.ambiguous);
    assert_int_equal(f.server.requests_n, 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(act_ends_with(f.server.requests[i].data, "\r\n\r\n0123456789"));
}

/* --- signing, failing ----------------------------------------------------------------------------------- */

static int signs;

static int sign_anew(struct http_call *call, struct act_error *e)
{
    if (call->sign_arg)
        return act_error_set(e, ACT_DENIED, "the login has expired");
    char *url = act_sprintf("%s?sig=%d", call->url, ++signs);
    free(call->url);
    call->url = url;
    http_header_setf(&call->headers, "x-ms-date", "%d", signs);
    return 0;
}

TEST(every_try_is_signed_anew)
{
    const struct step steps[] = {{BUSY, CLOSE}, {BUSY, CLOSE}, {FINE, CLOSE}};

    http_test_set_up(steps, COUNT(steps), NULL);
    ACT_AUTOFREE char *url = act_strdup(f.call.url);
    signs = 0;
    f.call.sign = sign_anew;
    assert_ok(http_test_do(), err);
    for (size_t i = 0; i < COUNT(steps); i++) {
        char *line = act_sprintf("GET /c/b?sig=%zu HTTP/1.1\r\n", i + 1);
        char *date = act_sprintf("\r\nx-ms-date: %zu\r\n", i + 1);
        assert_true(act_starts_with(f.server.requests[i].data, line));
        assert_non_null(strstr(f.server.requests[i].data, date));
        free(line);
        free(date);
    }
    assert_string_equal(f.call.url, url);
    f.call.sign_arg = &f;
    assert_int_equal(http_test_do(), -ACT_DENIED);
    assert_string_equal(act_error_text(&err), "cannot get 'c/b': the login has expired");
}

TEST(unreachable_peers_fail_soon_with_their_name)
{
    int port;

    close(listen_somewhere(&port));
    http_test_set_up(NULL, 0, NULL);
    http_test_set_url(act_sprintf("http://127.0.0.1:%d/c/b", port));
    char *wanted = act_sprintf("cannot get 'c/b': cannot reach 127.0.0.1:%d: Connection refused; tried 3 times", port);
    assert_int_equal(http_test_do(), -ACT_TEMPORARY);
    assert_string_equal(act_error_text(&err), wanted);
    assert_int_equal(f.call.tries, 3);
    assert_false(f.call.ambiguous);
    free(wanted);
    /* A label of 64 letters: the resolver refuses it without asking anybody. */
    http_test_set_url(act_sprintf("https://%064d.invalid/c/b", 0));
    f.call.no_retry = true;
    wanted = act_sprintf("cannot get 'c/b': cannot reach %064d.invalid:443: its name cannot be resolved", 0);
    assert_int_equal(http_test_do(), -ACT_TEMPORARY);
    assert_string_equal(act_error_text(&err), wanted);
    free(wanted);
}

/* The same peer gets the full number of tries once it has answered. */
TEST(a_peer_that_answered_is_tried_longer)
{
    const struct step steps[] = {{FINE, CLOSE}};

    http_test_set_up(steps, 1, &(struct http_options){.max_retries = 3});
    assert_ok(http_test_do(), err);
    server_stop(&f.server);
    assert_int_equal(http_test_do(), -ACT_TEMPORARY);
    assert_int_equal(f.call.tries, 4);
    server_start(&f.server, NULL, 0); /* for http_test_tear_down() */
}

TEST(a_stall_is_a_timeout)
{
    static const char *const starts[] = {"HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"};

    setenv("ACT_STALL_TIMEOUT", "1", 1);
    for (size_t i = 0; i < COUNT(starts); i++) {
        assert_fails(http_test_ask_once(starts[i], STALL), err, ACT_TIMEOUT, "less than 1 KiB/s for 1 s");
    }
    unsetenv("ACT_STALL_TIMEOUT");
}

TEST(tls_against_a_plain_port_fails_cleanly)
{
    const struct step steps[] = {{"HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n", SPEAK_FIRST}};

    http_test_set_up(steps, 1, NULL);
    http_test_set_url(act_sprintf("https://127.0.0.1:%d/", f.server.port));
    f.call.no_retry = true;
    assert_fails(http_test_do(), err, ACT_TEMPORARY, "cannot reach 127.0.0.1:");
    assert_false(f.call.ambiguous);
}

/* --- TLS, with the server that comes with OpenSSL ------------------------------------------------------- */

struct tls_server {
    char dir[32];
    char *cert, *key;
    pid_t pid;
    int port;
};

/* Starts a program, its standard output (and error) readable from *out. */
static pid_t start_program(const char *command, FILE **out)
{
    ACT_AUTO(act_strv) args = words_of(command);
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(fds[1], STDOUT_FILENO);
        dup2(fds[1], STDERR_FILENO);
        close(fds[0]);
        close(fds[1]);
        execvp(args.v[0], args.v);
        _exit(127);
    }
    close(fds[1]);
    *out = fdopen(fds[0], "r");
    return pid;
}

static void make_certificate(struct tls_server *s)
{
    char line[512];
    FILE *out;
    int status;

    strcpy(s->dir, "/tmp/act-tls-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    s->cert = act_sprintf("%s/cert", s->dir);
    s->key = act_sprintf("%s/key", s->dir);
    ACT_AUTOFREE char *command =
        act_sprintf("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=act "
                    "-addext subjectAltName=IP:127.0.0.1 -keyout %s -out %s",
                    s->key, s->cert);
    pid_t pid = start_program(command, &out);
    while (fgets(line, sizeof(line), out))
        ;
    fclose(out);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void tls_server_start(struct tls_server *s, FILE **out)
{
    char line[512];

    make_certificate(s);
    ACT_AUTOFREE char *command =
        act_sprintf("openssl s_server -accept 127.0.0.1:0 -www -cert %s -key %s", s->cert, s->key);
    s->pid = start_program(command, out);
    s->port = 0;
    while (s->port == 0 && fgets(line, sizeof(line), *out))
        sscanf(line, "ACCEPT 127.0.0.1:%d", &s->port);
    assert_int_not_equal(s->port, 0);
}

static void tls_server_stop(struct tls_server *s, FILE *out)
{
    kill(s->pid, SIGTERM);
    waitpid(s->pid, NULL, 0);
    fclose(out);
    assert_int_equal(act_remove_tree(s->dir, NULL), 0);
    free(s->cert);
    free(s->key);
}

TEST(certificates_are_verified)
{
    struct tls_server tls;
    FILE *out;

    if (system("openssl version >/dev/null 2>&1") != 0) {
        print_message("skipped: there is no program openssl\n");
        skip();
    }
    tls_server_start(&tls, &out);
    const struct {
        const char *host, *ca_file;
        const char *variable; /* SSL_CERT_FILE */
        int rc;
        const char *text;
    } rows[] = {
        {"127.0.0.1", tls.cert, "", 0, ""},
        {"127.0.0.1", NULL, "", -ACT_DENIED, "ACT_CA_FILE"},
        {"localhost", tls.cert, "", -ACT_DENIED, "cannot trust localhost:"},
        {"127.0.0.1", "/nonexistent", tls.cert, -ACT_CONFIG, "the certificates in '/nonexistent'"},
        {"127.0.0.1", NULL, tls.cert, 0, ""},
        {"127.0.0.1", NULL, "/nonexistent", -ACT_CONFIG, "the certificates in '/nonexistent'"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        setenv("SSL_CERT_FILE", rows[i].variable, 1);
        http_test_set_up(NULL, 0, &(struct http_options){.ca_file = rows[i].ca_file});
        http_test_set_url(act_sprintf("https://%s:%d/", rows[i].host, tls.port));
        assert_int_equal(http_test_do(), rows[i].rc);
        assert_int_equal(f.call.status, rows[i].rc == 0 ? 200 : 0);
        assert_contains(act_error_text(&err), rows[i].text);
        assert_int_equal(f.call.tries, 1);
        assert_false(f.call.ambiguous);
    }
    unsetenv("SSL_CERT_FILE");
    tls_server_stop(&tls, out);
}

/* --- around it ------------------------------------------------------------------------------------------ */

static int ended;

static void http_test_count_end(struct http_call *call)
{
    assert_int_equal(call->rc, 0);
    assert_int_equal(call->status, 200);
    ended++;
    if (call->arg) {
        struct http *http = call->arg;
        call->arg = NULL;
        http_start(http, call); /* the call is free again */
    }
}

TEST(many_calls_share_few_connections)
{
    enum { CALLS = 20 };
    static struct step steps[2 * CALLS];
    struct http_call calls[CALLS];

    for (size_t i = 0; i < COUNT(steps); i++)
        steps[i] = (struct step){FINE, CLOSE};
    http_test_set_up(steps, COUNT(steps), NULL);
    ended = 0;
    for (size_t i = 0; i < CALLS; i++) {
        calls[i] = (struct http_call){
            .method = "GET", .url = act_strdup(f.call.url), .done = http_test_count_end, .arg = f.http};
        http_start(f.http, &calls[i]);
    }
    assert_int_equal(ended, 0);
    engine_run(http_engine(f.http), NULL);
    assert_int_equal(ended, 2 * CALLS);
    for (size_t i = 0; i < CALLS; i++) {
        assert_string_equal(calls[i].body_text.data, "hello");
        http_call_release(&calls[i]);
    }
}

TEST(proxies_are_used_but_not_for_this_machine)
{
    const struct step steps[] = {{EMPTY_OK, CLOSE}};

    unsetenv("no_proxy");
    unsetenv("NO_PROXY");
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    assert_int_equal(http_test_ask_once(FINE, CLOSE), 0);
    http_test_set_up(steps, 1, NULL);
    ACT_AUTOFREE char *proxy = act_sprintf("http://127.0.0.1:%d", f.server.port);
    setenv("http_proxy", proxy, 1);
    http_test_set_url(act_strdup("http://storage.example/c/b"));
    assert_ok(http_test_do(), err);
    assert_true(act_starts_with(f.server.requests[0].data, "GET http://storage.example/c/b HTTP/1.1\r\n"));
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    f.call.no_retry = true;
    http_test_set_url(act_strdup("http://other.example/c/b"));
    assert_fails(http_test_do(), err, ACT_TEMPORARY, "cannot reach other.example:80: ");
    assert_non_null(strstr(act_error_text(&err), "the proxy 'http://127.0.0.1:1' cannot be used: Connection refused"));
    setenv("http_proxy", "http://me:pssst@nowhere.invalid:1", 1);
    assert_fails(http_test_do(), err, ACT_TEMPORARY,
                 "the proxy 'http://REDACTED@nowhere.invalid:1' cannot be used: its name");
    setenv("http_proxy", "gopher://me:pssst@127.0.0.1:1", 1);
    assert_true(http_test_do() < 0);
    assert_contains(act_error_text(&err), "127.0.0.1:1");
    assert_lacks(act_error_text(&err), "pssst");
    f.call.direct = true;
    assert_int_equal(http_test_do(), -ACT_TEMPORARY);
    assert_non_null(strstr(act_error_text(&err), "cannot reach other.example:80: its name cannot be resolved"));
    unsetenv("http_proxy");
}

TEST(trace_shows_tries_but_no_secret)
{
    const struct step steps[] = {{BUSY, CLOSE},
                                 {"HTTP/1.1 201 Created\r\nx-ms-request-id: id-7\r\nContent-Length: 0\r\n\r\n", CLOSE}};
    char text[4096];
    FILE *file = tmpfile();
    int old = dup(STDERR_FILENO);

    assert_non_null(file);
    http_test_set_up(steps, COUNT(steps), NULL);
    http_test_set_url(act_sprintf("http://127.0.0.1:%d/c/b?sv=1&sig=SECRET", f.server.port));
    http_header_set(&f.call.headers, "Authorization", "SharedKey a:SECRET");
    dup2(fileno(file), STDERR_FILENO);
    setenv("ACT_TRACE", "http", 1);
    int rc = http_test_do();
    unsetenv("ACT_TRACE");
    dup2(old, STDERR_FILENO);
    close(old);
    assert_int_equal(rc, 0);
    rewind(file);
    size_t n = fread(text, 1, sizeof(text) - 1, file);
    text[n] = '\0';
    fclose(file);
    assert_null(strstr(text, "SECRET"));
    assert_non_null(strstr(text, "/c/b?sv=1&sig=REDACTED 503 out 0 in 4 "));
    assert_non_null(strstr(text, "/c/b?sv=1&sig=REDACTED 201 out 0 in 0 "));
    assert_non_null(strstr(text, " try 1 id -\n"));
    assert_non_null(strstr(text, " try 2 id id-7\n"));
}

TEST(header_lists)
{
    struct http_headers h = {0};

    assert_null(http_header_get(&h, "a"));
    http_header_set(&h, "A", "1");
    http_header_setf(&h, "b", "%d-%s", 2, "x");
    http_header_set(&h, "a", "3");
    assert_int_equal(h.n, 2);
    assert_string_equal(http_header_get(&h, "a"), "3");
    assert_string_equal(http_header_get(&h, "B"), "2-x");
    http_headers_release(&h);
    assert_int_equal(h.n, 0);
}

/* --- pure functions ------------------------------------------------------------------------------------- */

TEST(retry_delay_table)
{
    static const struct {
        int status;
        bool network;
        int tries, max_retries;
        int64_t elapsed_ms, retry_after_ms;
        double random01;
        int64_t wanted;
    } rows[] = {
        {200, false, 1, 8, 0, -1, 0, -1},
        {404, false, 1, 8, 0, -1, 0, -1},
        {409, false, 1, 8, 0, 5, 0, -1},
        {501, false, 1, 8, 0, -1, 0, -1},
        {505, false, 1, 8, 0, -1, 0, -1},
        {0, false, 1, 8, 0, -1, 0, -1},
        {408, false, 1, 8, 0, -1, 0, 400},
        {429, false, 1, 8, 0, -1, 0, 400},
        {500, false, 1, 8, 0, -1, 0, 400},
        {502, false, 1, 8, 0, -1, 0, 400},
        {503, false, 1, 8, 0, -1, 0, 400},
        {504, false, 1, 8, 0, -1, 0, 400},
        {0, true, 1, 8, 0, -1, 0, 400},
        {0, true, 1, 8, 0, -1, 0.5, 525},
        {0, true, 2, 8, 0, -1, 0, 800},
        {0, true, 6, 8, 0, -1, 0, 12800},
        {0, true, 7, 8, 0, -1, 0, 24000}, /* 30 s from here on */
        {0, true, 1000000, 2000000, 0, -1, 0, 24000},
        {0, true, 8, 8, 0, -1, 0, 24000},
        {0, true, 9, 8, 0, -1, 0, -1}, /* 8 retries are 9 tries */
        {0, true, 1, 0, 0, -1, 0, -1},
        {503, false, 1, 8, 0, 0, 0, 80}, /* "now" still means a pause, which grows */
        {503, false, 3, 8, 0, 0, 0, 320},
        {503, false, 3, 8, 0, 10, 0, 320},
        {503, false, 3, 8, 0, 321, 0, 321},
        {503, false, 8, 8, 0, 0, 0, 1000},
        {503, false, 9, 8, 0, 0, 0, -1},
        {503, false, 1, 8, 0, 1500, 0.9, 1500},
        {503, false, 1, 8, 0, 3600000, 0.9, 60000},
        {503, false, 1, 8, INT64_MAX / 2, 3600000, 0.9, -1},
        {503, false, 1, 8, 119600, -1, 0, 400},
        {503, false, 1, 8, 119601, -1, 0, -1},
        {503, false, 1, 8, 60001, 60000, 0, -1},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t delay = http_retry_delay(rows[i].status, rows[i].network, rows[i].tries, rows[i].max_retries,
                                         rows[i].elapsed_ms, 120000, rows[i].retry_after_ms, rows[i].random01);
        if (delay != rows[i].wanted)
            fail_msg("row %zu: %lld", i, (long long)delay);
    }
}

TEST(retry_after_table)
{
    static const struct {
        const char *name, *value;
        int64_t wanted;
    } rows[] = {
        {"Retry-After", "0", 0},
        {"retry-after", "7", 7000},
        {"Retry-After", "86400", 60000},
        {"Retry-After", "9223372036854775807", 60000},
        {"Retry-After", "99999999999999999999999", -1},
        {"Retry-After", "-5", -1},
        {"Retry-After", "soon", -1},
        {"Retry-After", "", -1},
        {"Retry-After", "Fri, 20 Nov 2026 09:00:10 GMT", 10000},
        {"Retry-After", "Fri, 20 Nov 2037 09:00:10 GMT", 60000},
        {"Retry-After", "Fri, 20 Nov 2020 09:00:10 GMT", -1},
        {"x-ms-retry-after-ms", "250", 250},
        {"retry-after-ms", "9999999", 60000},
        {"retry-after-ms", "-1", -1},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct http_headers h = {0};
        http_header_set(&h, rows[i].name, rows[i].value);
        int64_t ms = http_retry_after_ms(&h, 1795165200);
        if (ms != rows[i].wanted)
            fail_msg("row %zu: %lld", i, (long long)ms);
        http_headers_release(&h);
    }
    struct http_headers none = {0};
    assert_int_equal(http_retry_after_ms(&none, 0), -1);
}

/* A clock that is a day off makes no difference: the service's own is in the answer. */
TEST(retry_after_is_by_the_clock_of_the_service)
{
    const int64_t now_s = 1795165200 + 86400;
    ACT_AUTO(http_headers) h = {0};

    http_header_set(&h, "Retry-After", "Fri, 20 Nov 2026 09:00:10 GMT");
    assert_int_equal(http_retry_after_ms(&h, now_s), -1);
    http_header_set(&h, "Date", "Fri, 20 Nov 2026 09:00:03 GMT");
    assert_int_equal(http_retry_after_ms(&h, now_s), 7000);
    http_header_set(&h, "Date", "today");
    assert_int_equal(http_retry_after_ms(&h, now_s - 86400), 10000);
}

TEST(encoding_table)
{
    static const struct {
        const char *text;
        bool keep_slash;
        const char *encoded;
    } rows[] = {
        {"", false, ""},
        {"AZaz09-._~", false, "AZaz09-._~"},
        {"a/b c", true, "a/b%20c"},
        {"a/b c", false, "a%2Fb%20c"},
        {"%+&=?#\"'*", false, "%25%2B%26%3D%3F%23%22%27%2A"},
        {"\xc3\xa9\xff\n", false, "%C3%A9%FF%0A"},
    };
    static const struct {
        const char *text, *decoded;
    } odd[] = {{"%e4%E4", "\xe4\xe4"}, {"a+b", "a+b"},     {"%", "%"},     {"%4", "%4"},
               {"%zz%4x", "%zz%4x"},   {"a%00b", "a%00b"}, {"%%41", "%A"}, {"%2541", "%41"}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        char *encoded = http_encode(rows[i].text, rows[i].keep_slash), *back = http_decode(encoded);
        assert_string_equal(encoded, rows[i].encoded);
        assert_string_equal(back, rows[i].text);
        free(encoded);
        free(back);
    }
    for (size_t i = 0; i < COUNT(odd); i++) {
        char *decoded = http_decode(odd[i].text);
        assert_string_equal(decoded, odd[i].decoded);
        free(decoded);
    }
}

TEST(redaction_table)
{
    static const struct {
        const char *url, *shown;
    } rows[] = {
        {"https://h/c/b", "https://h/c/b"},
        {"https://h/c/b?sv=1&sig=abc%2B&se=2", "https://h/c/b?sv=1&sig=REDACTED&se=2"},
        {"https://h/c?SIG=abc", "https://h/c?SIG=REDACTED"},
        {"https://h/c?%73ig=abc", "https://h/c?%73ig=REDACTED"},
        {"https://h/c?a&sig&sig=", "https://h/c?a&sig&sig=REDACTED"},
        {"https://h/c?design=x&sig=1?2=3", "https://h/c?design=x&sig=REDACTED"},
        {"https://h/c?x=1#access_token=abc&y", "https://h/c?x=1#access_token=REDACTED&y"},
        {"https://h/c?code=abc&x=1", "https://h/c?code=REDACTED&x=1"},
        {"https://h/c?device_code=abc&client_assertion=d&client_id=e",
         "https://h/c?device_code=REDACTED&client_assertion=REDACTED&client_id=e"},
        {"https://user:pw@h/c@d", "https://REDACTED@h/c@d"},
        {"", ""},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char *shown = http_redact_url(rows[i].url);
        assert_string_equal(shown, rows[i].shown);
        free(shown);
    }
}

TEST(tokens_in_texts)
{
#define SIG   "Zm9vYmFyYmF6/3F1dXhxdXV4%2Bcm9kMTIzNDU2Nzg5MDA="
#define KEY   "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
#define TOKEN "eyJhbGciOiJub25lIn0.eyJhdWQiOiJ4In0.c2ln"
    static const struct {
        const char *text, *shown;
    } rows[] = {
        {"", ""},
        {"plain", "plain"},
        {TOKEN, "REDACTED"},
        {"Bearer " TOKEN ", and " TOKEN "'", "Bearer REDACTED, and REDACTED'"},
        {"eyJust a word", "eyJust a word"},
        {"no https://a.b/c?sv=1&sig=" SIG "&sp=r at 'x'", "no https://a.b/c?sv=1&sig=REDACTED&sp=r at 'x'"},
        {"https%3A%2F%2Fa%3Fsig%3D" SIG " " SIG, "https%3A%2F%2Fa%3Fsig%3DREDACTED " SIG},
        {"sig=short, sig", "sig=short, sig"},
        {"Sig%253D" SIG "%26sp", "Sig%253DREDACTED"},
        {"{\"sig\":\"" SIG "\"}", "{\"sig\":\"REDACTED\"}"},
        {"a\\u0026sig\\u003d" SIG "\\u0026", "a\\u0026sig\\u003dREDACTED\\u0026"},
        {"sas: sig: " SIG " end", "sas: sig: REDACTED end"},
        {"AccountKey=" KEY ";X=" KEY, "AccountKey=REDACTED;X=REDACTED"},
        {"the key '" KEY "'", "the key 'REDACTED'"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char *shown = http_redact_text(rows[i].text);
        assert_string_equal(shown, rows[i].shown);
        free(shown);
    }
}

TEST(private_addresses)
{
    assert_true(http_is_private("https://login.example/x"));
    assert_true(http_is_private("http://127.0.0.1:8080"));
    assert_true(http_is_private("http://localhost/x"));
    assert_false(http_is_private("http://login.example"));
    assert_false(http_is_private("http://169.254.169.254"));
    assert_false(http_is_private("http://127.0.0.1.evil.example/"));
    assert_int_equal(http_port("http://127.1:8080/x"), 8080);
    assert_int_equal(http_port("https://[::1]"), 443);
    assert_int_equal(http_port("ftp://127.0.0.1/"), 0);
    assert_false(http_is_private("ftp://127.0.0.1/"));
    assert_false(http_is_private(""));
}

TEST(peers_table)
{
    static const struct {
        const char *url, *peer;
        bool local;
    } rows[] = {
        {"http://127.0.0.1:10000/x", "127.0.0.1:10000", true},
        {"https://h.example/x?y", "h.example:443", false},
        {"http://a.blob.localhost:1", "a.blob.localhost:1", true},
        {"http://[::1]:5/", "[::1]:5", true},
        {"http://169.254.169.254/metadata", "169.254.169.254:80", true},
        {"http://169.254.129.2:8081/msi/token", "169.254.129.2:8081", true},
        {"http://169.254.evil.example/", "169.254.evil.example:80", false},
        {"http://127.0.0.1.evil.example/", "127.0.0.1.evil.example:80", false},
        {"ftp://h/", NULL, false},
        {"h/x", NULL, false},
        {"http://h:99999/", NULL, false},
        {"http://a b/", NULL, false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        bool local = false;
        char *peer = http_peer_name(rows[i].url, &local);
        if (!act_streq(peer, rows[i].peer) || local != rows[i].local)
            fail_msg("row %zu: %s", i, peer ? peer : "(none)");
        free(peer);
    }
}

TEST_MAIN(NULL, NULL)
