/* The store of logs that are in two places: which of them answers, and under what names. Both are folders here. */
#include "unit/temp_dir.h"

#include "base/path.h"
#include "engine/engine.h"
#include "http/http.h"
#include "store/store.h"

static struct engine *engine;
static struct http *http;

static void sent_test_put(const char *path, const char *text)
{
    ACT_AUTOFREE char *file = act_path_join(dir, path);
    ACT_AUTOFREE char *folder = act_path_dirname(file);

    assert_ok(act_mkdir_all(folder, 0755, &err), err);
    assert_ok(act_file_write_quickly(file, text, strlen(text), 0644, &err), err);
}

static struct store *sent_test_open_folder(const char *name)
{
    ACT_AUTOFREE char *path = act_path_join(dir, name);
    struct store *store = NULL;

    assert_ok(store_folder_open(http, path, true, &store, &err), err);
    return store;
}

static struct store *sent_test_open_logs(int attempt)
{
    engine = engine_new(NULL);
    http = http_new(engine, &(struct http_options){0});
    return store_sent_open(http, &(struct store_sent_options){.id = "r",
                                                              .live = sent_test_open_folder("live"),
                                                              .sent = sent_test_open_folder("sent"),
                                                              .path = "runs/r",
                                                              .attempt = attempt});
}

static void sent_test_close_logs(struct store *logs)
{
    store_free(logs);
    http_free(http);
    engine_free(engine);
}

/* All names and their sizes: "a:1 b:2". New string. */
static char *sent_test_names_of(struct store *logs)
{
    struct store_call call = {.op = STORE_LIST, .key = ""};
    struct act_buf out = {0};

    assert_ok(store_do(logs, &call, &err), err);
    for (size_t i = 0; i < call.list.page.n; i++)
        act_buf_addf(&out, "%s%s:%d", i ? " " : "", call.list.page.v[i].key, (int)call.list.page.v[i].size);
    store_call_release(&call);
    return act_buf_steal(&out);
}

static void assert_text(struct store *logs, const char *name, const char *wanted)
{
    char text[64] = "";
    struct store_call call = {.op = STORE_GET, .key = name, .get = {.sink = text, .sink_cap = sizeof(text) - 1}};

    assert_ok(store_do(logs, &call, &err), err);
    assert_string_equal(text, wanted);
    assert_string_equal(call.entry.key, name);
    store_call_release(&call);
}

TEST(what_the_platform_has_comes_first)
{
    sent_test_put("live/user_logs/0.txt", "live");
    sent_test_put("sent/runs/r/attempts/1/user_logs/0.txt", "li");
    sent_test_put("sent/runs/r/attempts/1/user_logs/1.txt", "of a pod that is gone");
    sent_test_put("sent/runs/r/attempts/1/status.json", "{}");
    struct store *logs = sent_test_open_logs(1);
    ACT_AUTOFREE char *names = sent_test_names_of(logs);
    assert_string_equal(names, "user_logs/0.txt:4 user_logs/1.txt:21");
    assert_text(logs, "user_logs/0.txt", "live");
    assert_text(logs, "user_logs/1.txt", "of a pod that is gone");
    sent_test_close_logs(logs);
}

TEST(the_last_attempt_has_plain_names)
{
    sent_test_put("sent/runs/r/attempts/2/user_logs/0.txt", "two");
    struct store *logs = sent_test_open_logs(1);
    ACT_AUTOFREE char *names = sent_test_names_of(logs);
    assert_non_null(strstr(names, "attempts/1/user_logs/1.txt:21"));
    assert_text(logs, "attempts/1/user_logs/1.txt", "of a pod that is gone");
    sent_test_close_logs(logs);
    assert_ok(act_remove_tree(dir, &err), err);
    sent_test_put("sent/runs/r/attempts/2/user_logs/0.txt", "two");
    sent_test_put("sent/runs/r/attempts/x/user_logs/0.txt", "nothing of ours");
    logs = sent_test_open_logs(3); /* of which nothing was sent yet */
    ACT_AUTOFREE char *later = sent_test_names_of(logs);
    assert_string_equal(later, "attempts/2/user_logs/0.txt:3");
    sent_test_close_logs(logs);
}

TEST_MAIN(make_dir, remove_dir)
