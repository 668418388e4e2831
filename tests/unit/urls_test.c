/* urls_test.c - the store of objects that are read by URLs: when it asks for them. */
#include "unit/test.h"

#include "engine/engine.h"
#include "http/http.h"
#include "store/store.h"
#include "unit/script_server.h"

enum { READERS = 5, QUESTION_MS = 60 };

struct world {
    struct engine *engine;
    struct http *http;
    struct store *store;
    int port;                             /* of the server of the only object */
    int asked, at_once, most_at_once, rc; /* rc: what becomes of a question */
    size_t left;
    bool done;
};

static void urls_test_set_flag(void *flag)
{
    *(bool *)flag = true;
}

/* Runs the loop, as a request would. */
static int urls_test_ask(void *arg, const char *id, struct store_urls *out, struct act_error *error)
{
    struct world *w = arg;
    bool answered = false;

    (void)id;
    w->asked++;
    w->at_once++;
    w->most_at_once = w->at_once > w->most_at_once ? w->at_once : w->most_at_once;
    engine_timer(w->engine, QUESTION_MS, urls_test_set_flag, &answered);
    engine_run(w->engine, &answered);
    w->at_once--;
    ACT_AUTOFREE char *url = act_sprintf("http://127.0.0.1:%d/other", w->port);
    if (w->rc == 0)
        store_urls_add(out, "other", url);
    return w->rc < 0 ? act_error_set(error, (enum act_code) - w->rc, "cannot ask for the logs") : 0;
}

static void urls_test_set_up(struct world *w, int rc)
{
    *w = (struct world){.engine = engine_new(&(struct engine_options){0}), .rc = rc, .port = 9};
    w->http = http_new(w->engine, &(struct http_options){.max_retries = -1});
    w->store = store_urls_open(w->http, &(struct store_urls_options){.id = "run_1", .ask = urls_test_ask, .arg = w});
}

static void urls_test_tear_down(struct world *w)
{
    store_free(w->store);
    http_free(w->http);
    engine_free(w->engine);
}

static void call_done(struct store_call *call)
{
    struct world *w = call->arg;

    w->done = --w->left == 0;
}

/* Starts several calls, all at once, and waits for them. */
static void run_calls(struct world *w, struct store_call *calls, size_t n)
{
    w->left = n;
    w->done = false;
    for (size_t i = 0; i < n; i++) {
        calls[i].done = call_done;
        calls[i].arg = w;
        store_start(w->store, &calls[i]);
    }
    engine_run(w->engine, &w->done);
}

static void read_at_once(struct world *w, int rc, const char *text)
{
    struct store_call calls[READERS] = {0};
    char sink[READERS][8];

    for (size_t i = 0; i < READERS; i++)
        calls[i] = (struct store_call){
            .op = STORE_GET, .key = "missing", .get = {.sink = sink[i], .sink_cap = sizeof(sink[i])}};
    run_calls(w, calls, READERS);
    for (size_t i = 0; i < READERS; i++) {
        assert_int_equal(calls[i].rc, rc);
        assert_string_equal(act_error_text(&calls[i].error), text);
        store_call_release(&calls[i]);
    }
}

TEST(a_failed_question_is_that_of_all_who_wait)
{
    struct world w;

    urls_test_set_up(&w, -ACT_TEMPORARY);
    read_at_once(&w, -ACT_TEMPORARY, "cannot ask for the logs");
    assert_int_equal(w.asked, 1);
    read_at_once(&w, -ACT_TEMPORARY, "cannot ask for the logs");
    assert_int_equal(w.asked, 2); /* later ones ask anew */
    assert_int_equal(w.most_at_once, 1);
    urls_test_tear_down(&w);
}

TEST(an_answer_is_that_of_all_who_wait)
{
    struct world w;

    urls_test_set_up(&w, 0);
    read_at_once(&w, -ACT_NOT_FOUND, "run 'run_1' has no log 'missing'");
    assert_int_equal(w.asked, 1);
    assert_int_equal(w.most_at_once, 1);
    urls_test_tear_down(&w);
}

TEST(lists_and_reads_share_a_question)
{
    struct store_call calls[] = {{.op = STORE_GET, .key = "missing"}, {.op = STORE_LIST, .key = ""}};
    char sink[8];
    struct world w;

    urls_test_set_up(&w, -ACT_DENIED);
    calls[0].get.sink = sink;
    calls[0].get.sink_cap = sizeof(sink);
    run_calls(&w, calls, COUNT(calls));
    for (size_t i = 0; i < COUNT(calls); i++) {
        assert_int_equal(calls[i].rc, -ACT_DENIED);
        assert_string_equal(act_error_text(&calls[i].error), "cannot ask for the logs");
        store_call_release(&calls[i]);
    }
    assert_int_equal(w.asked, 1);
    urls_test_tear_down(&w);
}

/* A log of which nobody knows how long it is would be an empty one, and its copy would be complete. */
TEST(a_size_that_is_not_told_is_not_zero)
{
    static const struct {
        const char *answer, *text;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
         "cannot look at log 'other' of 'run_1': the response does not tell its size"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ""},
        {"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n", ""},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct step step = {rows[i].answer, CLOSE};
        struct server server;
        struct store_call call = {.op = STORE_LIST, .key = ""};
        struct world w;

        server_start(&server, &step, 1);
        urls_test_set_up(&w, 0);
        w.port = server.port;
        run_calls(&w, &call, 1);
        assert_int_equal(call.rc, *rows[i].text ? -ACT_FAIL : 0);
        assert_string_equal(act_error_text(&call.error), rows[i].text);
        store_call_release(&call);
        urls_test_tear_down(&w);
        server_stop(&server);
    }
}

TEST_MAIN(NULL, NULL)
