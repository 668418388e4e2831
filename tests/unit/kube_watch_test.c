/* Lists that are kept as the server has them: what a watch brings, byte for byte, and when it is asked for anew. */
#include "unit/script_server.h"

#include "base/file.h"
#include "base/hash.h"
#include "codec/json.h"
#include "engine/engine.h"
#include "http/http.h"
#include "kube/kube_internal.h"

#define OK "HTTP/1.1 200 OK\r\n\r\n"

#define OBJECT(name, version)                                                                                          \
    "{\"metadata\": {\"namespace\": \"team\", \"name\": \"" name "\", \"resourceVersion\": \"" version "\"}}"
#define EVENT(type, object)  "{\"type\": \"" type "\", \"object\": " object "}\n"
#define LIST(version, items) OK "{\"metadata\": {\"resourceVersion\": \"" version "\"}, \"items\": [" items "]}"

/* ---- what it brings ---- */

static struct kube_mirror begun(void)
{
    struct kube_mirror mirror = {0};

    kube_mirror_begin(&mirror, json_object(), act_strdup("1"));
    return mirror;
}

static int kube_watch_test_take(struct kube_mirror *mirror, const char *text)
{
    return kube_mirror_take(mirror, text, strlen(text), &err);
}

TEST(items_come_change_and_go)
{
    struct kube_mirror mirror = begun();

    assert_ok(kube_watch_test_take(&mirror, EVENT("ADDED", OBJECT("a", "2")) EVENT("ADDED", OBJECT("b", "3"))), err);
    assert_true(mirror.changed);
    assert_int_equal(json_object_size(mirror.items), 2);
    assert_ok(kube_watch_test_take(&mirror, EVENT("MODIFIED", OBJECT("a", "5")) EVENT("DELETED", OBJECT("b", "6"))),
              err);
    assert_int_equal(json_object_size(mirror.items), 1);
    const json_t *metadata = json_object_get(json_object_get(mirror.items, "team/a"), "metadata");
    assert_string_equal(codec_json_str(metadata, "resourceVersion", ""), "5");
    assert_string_equal(mirror.version, "6");
    kube_mirror_release(&mirror);
}

TEST(a_bookmark_is_a_version_and_no_change)
{
    struct kube_mirror mirror = begun();

    assert_ok(kube_watch_test_take(&mirror, EVENT("BOOKMARK", "{\"metadata\": {\"resourceVersion\": \"9\"}}") "\n"),
              err);
    assert_ok(kube_watch_test_take(&mirror, EVENT("NEWER", "{\"metadata\": {}}")),
              err); /* what this version does not know */
    assert_false(mirror.changed);
    assert_string_equal(mirror.version, "9");
    kube_mirror_release(&mirror);
}

TEST(a_line_may_come_in_any_pieces)
{
    static const char text[] = EVENT("ADDED", OBJECT("a", "2")) EVENT("DELETED", OBJECT("a", "3"));
    struct kube_mirror mirror = begun();

    for (size_t i = 0; i < sizeof(text) - 1; i++)
        assert_ok(kube_mirror_take(&mirror, text + i, 1, &err), err);
    assert_string_equal(mirror.version, "3");
    assert_int_equal(json_object_size(mirror.items), 0);
    kube_mirror_release(&mirror);
}

TEST(half_a_line_is_forgotten_with_its_stream)
{
    struct kube_mirror mirror = begun();

    assert_ok(kube_watch_test_take(&mirror, "{\"type\": \"ADD"), err);
    kube_mirror_begin_stream(&mirror);
    assert_ok(kube_watch_test_take(&mirror, EVENT("ADDED", OBJECT("a", "2"))), err);
    assert_int_equal(json_object_size(mirror.items), 1);
    kube_mirror_release(&mirror);
}

TEST(what_is_no_watch)
{
    static const struct {
        const char *text, *said;
        int status;
    } cases[] = {
        {EVENT("ERROR", "{\"code\": 410, \"message\": \"too old\"}"), "the server ends the watch: too old", 410},
        {EVENT("ERROR", "{\"reason\": \"Busy\"}"), "the server ends the watch: Busy", 0},
        {EVENT("ERROR", "7"), "the server ends the watch: it does not say why", 0},
        {EVENT("ADDED", "7"), "the server does not send a watch", 0},
        {EVENT("ADDED", "{\"metadata\": {}}"), "the server does not send a watch", 0},
        {"{\"kind\": \"PodList\"}\n", "the server does not send a watch", 0},
        {"<html>\n", "watch", 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct kube_mirror mirror = begun();
        err = (struct act_error){0};
        assert_true(kube_watch_test_take(&mirror, cases[i].text) < 0);
        assert_contains(act_error_text(&err), cases[i].said);
        assert_int_equal(err.http_status, cases[i].status);
        kube_mirror_release(&mirror);
    }
}

TEST(a_line_without_an_end)
{
    enum { PIECE = 1 << 20, PIECES = 9 };
    ACT_AUTOFREE char *piece = act_alloc(PIECE);
    struct kube_mirror mirror = begun();
    int rc = 0, i;

    memset(piece, 'x', PIECE);
    for (i = 0; i < PIECES && rc == 0; i++)
        rc = kube_mirror_take(&mirror, piece, PIECE, &err);
    assert_int_equal(rc, -ACT_FAIL);
    assert_int_equal(i, PIECES);
    assert_contains(act_error_text(&err), "a line of more than 8 MiB");
    kube_mirror_release(&mirror);
}

/* ---- when it is asked for ---- */

struct fixture {
    struct server server;
    struct step steps[MAX_STEPS];
    struct engine *engine;
    struct http *http;
    struct kube *kube;
    struct kube_watch *watch;
    bool news;
};
static struct fixture f;

static void kube_watch_test_note(void *arg)
{
    (void)arg;
    f.news = true;
}

static int make_client(void **state)
{
    (void)state;
    f = (struct fixture){0};
    f.engine = engine_new(&(struct engine_options){0});
    f.http = http_new(f.engine, &(struct http_options){.max_retries = -1});
    return 0;
}

/* A watch of a server that gives these answers in turn. */
static void kube_watch_test_begin(const char *const *answers, size_t n, enum then last)
{
    char file[] = "/tmp/act-watch-XXXXXX";
    int fd = mkstemp(file);

    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < n; i++)
        f.steps[i] = (struct step){answers[i], i + 1 < n ? CLOSE : last};
    server_start(&f.server, f.steps, n);
    ACT_AUTOFREE char *text = with_port("clusters: [{name: c, cluster: {server: 'http://127.0.0.1:{port}'}}]\n"
                                        "contexts: [{name: x, context: {cluster: c, user: u, namespace: team}}]\n"
                                        "current-context: x\nusers: [{name: u, user: {token: abc}}]\n",
                                        f.server.port);
    assert_ok(act_file_write(file, text, strlen(text), 0600, &err), err);
    assert_ok(kube_open(&(struct kube_options){.http = f.http, .kubeconfig = file}, &f.kube, &err), err);
    unlink(file);
    ACT_AUTOFREE char *path = kube_path(f.kube, "v1", "pods", NULL, "labelSelector=a");
    f.watch = kube_watch_new(f.kube, path, "the pods", kube_watch_test_note, NULL);
}

static int kube_watch_test_end(void **state)
{
    (void)state;
    kube_watch_free(f.watch);
    kube_free(f.kube);
    http_free(f.http);
    engine_free(f.engine);
    if (f.server.steps_n > 0)
        server_stop(&f.server);
    return 0;
}

#undef TEST
#define TEST(name) TEST_IN(name, make_client, kube_watch_test_end)

/* Its names, "a b", at once. New string. */
static char *kube_watch_test_names(void)
{
    ACT_AUTO(act_buf) out = {0};
    CODEC_AUTOJSON json_t *items = NULL;
    size_t i;
    json_t *item;

    assert_ok(kube_watch_items(f.watch, &items, &err), err);
    json_array_foreach(items, i, item)
    {
        act_buf_addf(&out, "%s%s", i ? " " : "", codec_json_str(json_object_get(item, "metadata"), "name", "?"));
    }
    return act_buf_steal(&out);
}

static void assert_names(const char *wanted)
{
    ACT_AUTOFREE char *found = kube_watch_test_names();

    assert_string_equal(found, wanted);
}

static void await_news(void)
{
    f.news = false;
    engine_run(f.engine, &f.news);
}

static void assert_asked(size_t i, const char *words)
{
    assert_true(i < f.server.requests_n);
    assert_contains(f.server.requests[i].data, words);
}

TEST(it_is_listed_once_and_then_watched)
{
    const char *answers[] = {LIST("7", OBJECT("a", "5")),
                             OK EVENT("ADDED", OBJECT("b", "8")) EVENT("DELETED", OBJECT("a", "9"))};

    kube_watch_test_begin(answers, COUNT(answers), STALL);
    assert_names("a");
    await_news();
    assert_names("b");
    assert_names("b");
    assert_int_equal(f.server.requests_n, 2);
    assert_asked(0, "GET /api/v1/namespaces/team/pods?labelSelector=a&limit=500 ");
    assert_asked(1, "pods?labelSelector=a&watch=1&resourceVersion=7&allowWatchBookmarks=true&timeoutSeconds=");
}

TEST(one_that_ends_goes_on_where_it_was)
{
    const char *answers[] = {LIST("7", OBJECT("a", "5")), OK EVENT("MODIFIED", OBJECT("a", "8")),
                             OK EVENT("ADDED", OBJECT("b", "9"))};

    kube_watch_test_begin(answers, COUNT(answers), STALL);
    assert_names("a");
    await_news();
    await_news();
    assert_names("a b");
    assert_asked(2, "&watch=1&resourceVersion=8&");
}

TEST(a_version_that_is_gone_is_listed_anew)
{
    const char *answers[] = {LIST("7", OBJECT("a", "5")), OK EVENT("ERROR", "{\"code\": 410}"),
                             LIST("20", OBJECT("b", "19")), OK EVENT("ADDED", OBJECT("c", "21"))};

    kube_watch_test_begin(answers, COUNT(answers), STALL);
    assert_names("a");
    await_news();
    assert_names("b");
    await_news();
    assert_names("b c");
    assert_asked(3, "&watch=1&resourceVersion=20&");
}

TEST(who_may_not_watch_lists_again)
{
    const char *answers[] = {LIST("7", OBJECT("a", "5")),
                             "HTTP/1.1 403 Forbidden\r\n\r\n{\"kind\": \"Status\", \"message\": \"you may not\"}",
                             LIST("8", OBJECT("b", "8")), LIST("9", OBJECT("c", "9"))};

    kube_watch_test_begin(answers, COUNT(answers), CLOSE);
    assert_names("a");
    await_news();
    assert_names("b");
    await_news();
    assert_names("c");
    assert_int_equal(f.server.requests_n, 4);
    assert_asked(3, "pods?labelSelector=a&limit=500 ");
}

TEST(one_that_is_silent_though_it_had_bookmarks_is_dead)
{
    const char *answers[] = {LIST("7", OBJECT("a", "5")),
                             OK EVENT("BOOKMARK", "{\"metadata\": {\"resourceVersion\": \"9\"}}"),
                             OK EVENT("ADDED", OBJECT("b", "12"))};

    kube_watch_test_begin(answers, COUNT(answers), STALL);
    f.steps[1].then = STALL;
    kube_silent_ms = 100;
    assert_names("a");
    await_news();
    assert_names("a b");
    assert_asked(2, "&watch=1&resourceVersion=9&");
    kube_silent_ms = 150000;
}

TEST(a_list_that_fails_is_not_asked_for_at_once)
{
    const char *answers[] = {"HTTP/1.1 403 Forbidden\r\n\r\n{\"kind\": \"Status\", \"message\": \"you may not\"}",
                             LIST("8", OBJECT("b", "8")), OK};
    CODEC_AUTOJSON json_t *first = NULL, *second = NULL;

    kube_watch_test_begin(answers, COUNT(answers), STALL);
    assert_int_equal(kube_watch_items(f.watch, &first, &err), -ACT_DENIED);
    assert_int_equal(kube_watch_items(f.watch, &second, &err), -ACT_DENIED);
    assert_contains(act_error_text(&err), "cannot list the pods: HTTP 403: you may not");
    assert_int_equal(f.server.requests_n, 1);
    await_news();
    assert_names("b");
}

TEST_MAIN(NULL, NULL)
