/* logs_test.c - what every store of a run's logs must do, which is only read: run on the folders of a site and, when
 * TEST_AZURE_ENDPOINT and its kind are set (see store_test.c), on URLs that a Blob service gives.
 *
 * Each test has a run of its own. */
#include <stdio.h>
#include <unistd.h>

static int open_run(void **state);
static int close_run(void **state);
#define TEST_SETUP    open_run
#define TEST_TEARDOWN close_run
#include "unit/test.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "engine/engine.h"
#include "http/http.h"
#include "site/site.h"
#include "store/store.h"

static struct {
    struct engine *engine;
    struct http *http;
    struct store *blobs; /* NULL: the logs are files of the site */
    struct site *site;
    char root[32];

    /* of one test */
    int runs; /* so far: its run has this number */
    char id[32];
    bool ended;
    struct store *store;
} t;

/* ---- the two worlds: a log is written, and a run ends */

static void conform_logs_write_log(const char *name, const char *text)
{
    ACT_AUTOFREE char *key = act_path_join(t.id, name);

    if (t.blobs) {
        struct store_call call = {.op = STORE_PUT, .key = key, .put.data = {.bytes = text, .len = strlen(text)}};
        assert_ok(store_do(t.blobs, &call, &err), err);
        store_call_release(&call);
        return;
    }
    ACT_AUTOFREE char *dir = site_run_dir(t.site, t.id);
    ACT_AUTOFREE char *path = act_path_join(dir, name);
    assert_ok(act_file_write_quickly(path, text, strlen(text), 0644, &err), err);
}

static int conform_logs_site_of(void *arg, size_t i, struct site **out, struct act_error *e)
{
    (void)arg;
    (void)e;
    *out = i == 0 ? t.site : NULL;
    return 0;
}

static int conform_logs_sign(const struct store_entry *blob, struct store_urls *out, struct act_error *e)
{
    struct store_call call = {
        .op = STORE_URL, .key = blob->key, .url = {.permissions = "r", .life_s = 600, .share_sas = true}};
    int rc = store_do(t.blobs, &call, e);

    if (rc == 0)
        store_urls_add(out, blob->key + strlen(t.id) + 1, call.url.text);
    store_call_release(&call);
    return rc;
}

static int conform_logs_ask(void *arg, const char *id, struct store_urls *out, struct act_error *e)
{
    ACT_AUTOFREE char *prefix = act_sprintf("%s/", t.id);
    struct store_call call = {.op = STORE_LIST, .key = prefix};
    int rc = store_do(t.blobs, &call, e);

    (void)arg;
    assert_string_equal(id, t.id);
    for (size_t i = 0; rc == 0 && i < call.list.page.n; i++)
        rc = conform_logs_sign(&call.list.page.v[i], out, e);
    store_call_release(&call);
    out->ended_unix_s = t.ended;
    return rc;
}

static void conform_logs_open(bool ended)
{
    static const char *const folders[] = {"user_logs", "system_logs"};
    ACT_AUTOFREE char *id = act_strdup(t.id); /* the store has its own */
    const struct store_urls_options urls = {.id = id, .ask = conform_logs_ask};
    const struct store_site_options files = {
        .site = conform_logs_site_of, .id = id, .folders = folders, .n_folders = COUNT(folders), .grow = !ended};

    t.ended = ended;
    store_free(t.store);
    t.store = t.blobs ? store_urls_open(t.http, &urls) : store_site_open(t.http, &files);
}

static int open_run(void **state)
{
    (void)state;
    snprintf(t.id, sizeof(t.id), "exp_1700000000_%08x", (unsigned)++t.runs);
    conform_logs_write_log("user_logs/std_log_process_0.txt", "0123456789");
    conform_logs_write_log("user_logs/std_log_process_1.txt", "");
    conform_logs_write_log("user_logs/deep/er/x", "x");
    conform_logs_write_log("system_logs/a b%41+\xc3\xa4", "words");
    conform_logs_write_log("user_logs-not.txt", "beside");
    conform_logs_open(false);
    return 0;
}

static int close_run(void **state)
{
    (void)state;
    store_free(t.store);
    t.store = NULL;
    return 0;
}

/* ---- short forms */

static int conform_logs_look(const char *key, struct store_call *call)
{
    *call = (struct store_call){.op = STORE_HEAD, .key = key};
    return store_do(t.store, call, &err);
}

static int conform_logs_get(const char *key, uint64_t offset, char *sink, size_t cap, struct store_call *call)
{
    *call = (struct store_call){.op = STORE_GET, .key = key, .get = {.offset = offset, .sink = sink, .sink_cap = cap}};
    return store_do(t.store, call, &err);
}

/* In one page, which all stores of logs have. */
static void conform_logs_assert_list(const char *prefix, bool delimiter, const char *const *expected, size_t n)
{
    struct store_call call = {.op = STORE_LIST, .key = prefix, .list = {.delimiter = delimiter, .max = 1}};

    assert_ok(store_do(t.store, &call, &err), err);
    const struct store_page *page = &call.list.page;
    for (size_t i = 0; i < page->n && i < n; i++) {
        assert_string_equal(page->v[i].key, expected[i]);
        assert_int_equal(page->v[i].kind, act_ends_with(expected[i], "/") ? STORE_PREFIX : STORE_FILE);
    }
    assert_int_equal(page->n, n);
    assert_null(page->next);
    store_call_release(&call);
}

#define ASSERT_LIST(prefix, delimiter, ...)                                                                            \
    conform_logs_assert_list(prefix, delimiter, (const char *const[]){__VA_ARGS__},                                    \
                             COUNT(((const char *const[]){__VA_ARGS__})))

static void assert_refused(struct store_call call, enum act_code code)
{
    assert_int_equal(store_do(t.store, &call, &err), -(int)code);
    assert_true(act_error_text(&err)[0]);
    store_call_release(&call);
}

/* ---- what is there */

/* What is no log of the run, as the site has it beside them, is not listed; the service lists what it calls one. */
TEST(listing)
{
    const char *all[] = {"system_logs/a b%41+\xc3\xa4", "user_logs-not.txt", "user_logs/deep/er/x",
                         "user_logs/std_log_process_0.txt", "user_logs/std_log_process_1.txt"};

    if (!t.blobs)
        memmove(&all[1], &all[2], 3 * sizeof(all[0]));
    conform_logs_assert_list("", false, all, COUNT(all) - !t.blobs);
    ASSERT_LIST("user_logs/", false, "user_logs/deep/er/x", "user_logs/std_log_process_0.txt",
                "user_logs/std_log_process_1.txt");
    ASSERT_LIST("user_logs/std_log_process_1", false, "user_logs/std_log_process_1.txt");
    conform_logs_assert_list("user_logs/none", false, NULL, 0);
}

TEST(one_level)
{
    if (t.blobs)
        ASSERT_LIST("", true, "system_logs/", "user_logs-not.txt", "user_logs/");
    else
        ASSERT_LIST("", true, "system_logs/", "user_logs/");
    ASSERT_LIST("user_logs/", true, "user_logs/deep/", "user_logs/std_log_process_0.txt",
                "user_logs/std_log_process_1.txt");
    ASSERT_LIST("system", true, "system_logs/");
    ASSERT_LIST("user_logs/deep/", true, "user_logs/deep/er/");
}

TEST(nothing_is_left_over)
{
    struct store_call call = {.op = STORE_LIST, .key = "", .list.leftovers = true};

    assert_ok(store_do(t.store, &call, &err), err);
    assert_int_equal(call.list.page.n, 0);
    store_call_release(&call);
}

TEST(sizes_and_times)
{
    enum { AGE_S = 300 };
    struct store_call call = {.op = STORE_LIST, .key = "user_logs/std"};

    assert_ok(store_do(t.store, &call, &err), err);
    assert_int_equal(call.list.page.n, 2);
    assert_int_equal(call.list.page.v[0].size, 10);
    assert_int_equal(call.list.page.v[1].size, 0);
    for (size_t i = 0; i < 2; i++) {
        assert_in_range(act_now_unix_s() - call.list.page.v[i].last_modified_s, 0, AGE_S);
        assert_int_equal(call.list.page.v[i].mode, -1);
    }
    store_call_release(&call);
}

TEST(one_entry)
{
    static const char *const others[] = {"user_logs", "user_logs/", "user_logs/std_log_process_0", "user_logs/none",
                                         "std_log_process_0.txt"};
    struct store_call call;

    assert_ok(conform_logs_look("user_logs/std_log_process_0.txt", &call), err);
    assert_string_equal(call.entry.key, "user_logs/std_log_process_0.txt");
    assert_int_equal(call.entry.kind, STORE_FILE);
    assert_int_equal(call.entry.size, 10);
    store_call_release(&call);
    for (size_t i = 0; i < COUNT(others); i++) {
        assert_int_equal(conform_logs_look(others[i], &call), -ACT_NOT_FOUND);
        store_call_release(&call);
    }
}

/* ---- bytes */

TEST(ranges)
{
    static const struct {
        uint64_t offset;
        size_t cap;
        const char *bytes;
    } rows[] = {{0, 20, "0123456789"}, {0, 10, "0123456789"}, {0, 1, "0"}, {3, 4, "3456"},
                {9, 1, "9"},           {8, 20, "89"},         {10, 5, ""}, {1000, 5, ""}};
    char sink[20];
    struct store_call call;

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_ok(conform_logs_get("user_logs/std_log_process_0.txt", rows[i].offset, sink, rows[i].cap, &call), err);
        assert_int_equal(call.get.got, strlen(rows[i].bytes));
        assert_memory_equal(sink, rows[i].bytes, call.get.got);
        store_call_release(&call);
    }
    assert_ok(conform_logs_get("user_logs/std_log_process_1.txt", 0, sink, sizeof(sink), &call), err);
    assert_int_equal(call.get.got, 0);
    store_call_release(&call);
    assert_ok(conform_logs_get("system_logs/a b%41+\xc3\xa4", 1, sink, sizeof(sink), &call), err);
    assert_int_equal(call.get.got, 4);
    assert_memory_equal(sink, "ords", 4);
    store_call_release(&call);
}

TEST(sums)
{
    struct store_sums got = {0}, expected = {0};
    char sink[20];
    struct store_call call = {.op = STORE_GET,
                              .key = "user_logs/std_log_process_0.txt",
                              .get = {.sink = sink, .sink_cap = sizeof(sink), .sums = &got}};

    store_sums_add(&expected, "0123456789", 10);
    assert_ok(store_do(t.store, &call, &err), err);
    store_call_release(&call);
    assert_true(got.crc64 == expected.crc64);
}

TEST(what_is_no_log)
{
    static const char *const names[] = {"user_logs/none",
                                        "user_logs",
                                        "run.json",
                                        "../exp_1700000000_00000001/user_logs/x",
                                        "user_logs/../../exp_1700000000_00000001/user_logs/deep/er/x",
                                        "/etc/passwd"};
    char sink[20];
    struct store_call call;

    conform_logs_write_log("secret", "s");
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_int_not_equal(conform_logs_get(names[i], 0, sink, sizeof(sink), &call), 0);
        store_call_release(&call);
    }
    assert_int_equal(conform_logs_get("user_logs/none", 0, sink, sizeof(sink), &call), -ACT_NOT_FOUND);
    store_call_release(&call);
}

static void conform_logs_count(struct store_call *call)
{
    ++*(int *)call->arg;
}

TEST(many_at_once)
{
    enum { N = 10 };
    struct store_call calls[N];
    char sinks[N];
    int done = 0;

    for (size_t i = 0; i < N; i++) {
        calls[i] = (struct store_call){.op = STORE_GET,
                                       .key = "user_logs/std_log_process_0.txt",
                                       .get = {.offset = i, .sink = &sinks[i], .sink_cap = 1},
                                       .done = conform_logs_count,
                                       .arg = &done};
        store_start(t.store, &calls[i]);
        assert_int_equal(done, 0);
    }
    engine_run(t.engine, NULL);
    assert_int_equal(done, N);
    for (size_t i = 0; i < N; i++) {
        assert_ok(calls[i].rc, calls[i].error);
        store_call_release(&calls[i]);
    }
    assert_memory_equal(sinks, "0123456789", N);
}

/* ---- logs grow, until the run has ended */

TEST(growing)
{
    static const char log[] = "user_logs/std_log_process_1.txt", new[] = "user_logs/std_log_process_2.txt";
    struct store_call call;
    char sink[20];

    assert_ok(conform_logs_look(log, &call), err);
    assert_true(call.entry.grows);
    store_call_release(&call);
    conform_logs_write_log(log, "more");
    conform_logs_write_log(new, "n");
    assert_ok(conform_logs_get(log, 0, sink, sizeof(sink), &call), err);
    assert_int_equal(call.get.got, 4);
    store_call_release(&call);
    assert_ok(conform_logs_get(new, 0, sink, sizeof(sink), &call), err); /* without a new listing */
    assert_int_equal(call.get.got, 1);
    store_call_release(&call);
    assert_ok(conform_logs_look(log, &call), err);
    assert_int_equal(call.entry.size, 4);
    store_call_release(&call);
    ASSERT_LIST("user_logs/std", false, "user_logs/std_log_process_0.txt", log, new);
}

TEST(ended)
{
    struct store_call call = {.op = STORE_LIST, .key = ""};

    conform_logs_open(true);
    assert_ok(store_do(t.store, &call, &err), err);
    assert_true(call.list.page.n > 0);
    for (size_t i = 0; i < call.list.page.n; i++)
        assert_false(call.list.page.v[i].grows);
    store_call_release(&call);
}

/* ---- it is only read */

TEST(every_other_operation)
{
    for (enum store_op op = 0; op < STORE_OPS; op++) {
        bool reads = op == STORE_HEAD || op == STORE_GET || op == STORE_LIST;
        assert_int_equal(store_can(t.store, op), reads);
        if (!reads)
            assert_refused((struct store_call){.op = op, .key = "user_logs/std_log_process_0.txt"}, ACT_USAGE);
    }
    assert_refused((struct store_call){.op = STORE_HEAD, .key = ""}, ACT_USAGE);
    ASSERT_LIST("user_logs/std", false, "user_logs/std_log_process_0.txt", "user_logs/std_log_process_1.txt");
}

TEST(name_without_secrets)
{
    ACT_AUTOFREE char *name = act_sprintf("logs:%s", t.id);

    assert_string_equal(store_name(t.store), name);
    assert_true(store_window(t.store) >= 1);
}

/* ---- */

static int conform_logs_setup(void **state)
{
    const char *endpoint = getenv("TEST_AZURE_ENDPOINT");

    (void)state;
    t.engine = engine_new(NULL);
    t.http = http_new(t.engine, &(struct http_options){.max_retries = 2});
    snprintf(t.root, sizeof(t.root), "/tmp/act-logs-XXXXXX");
    if (!mkdtemp(t.root))
        return -1;
    if (!endpoint)
        return site_open(&(struct site_options){.root = t.root}, &t.site, &err);
    return store_azure_open(t.http,
                            &(struct store_azure_options){.account = getenv("TEST_AZURE_ACCOUNT"),
                                                          .container = getenv("TEST_AZURE_CONTAINER"),
                                                          .endpoint = endpoint,
                                                          .key = getenv("TEST_AZURE_KEY"),
                                                          .sas = getenv("TEST_AZURE_SAS")},
                            &t.blobs, &err);
}

static int conform_logs_teardown(void **state)
{
    (void)state;
    store_free(t.blobs);
    site_free(t.site);
    http_free(t.http);
    engine_free(t.engine);
    return act_remove_tree(t.root, &err);
}

int main(void)
{
    return tests_run(conform_logs_setup, conform_logs_teardown);
}
