/* texts_test.c - the store of texts that their owner gathers: many of them, in pieces that come in any order. */
#include "unit/test.h"

#include <sys/resource.h>

#include "engine/engine.h"
#include "http/http.h"
#include "store/store.h"

enum { TEXTS = 3000, ROUNDS = 40, ROUND_BYTES = 300, FILES = 40 };

struct world {
    struct store_texts texts;
    int rounds;
};

static size_t texts_test_bytes_of(size_t i)
{
    return 1 + (i * 7 + 13) % ROUND_BYTES;
}

/* A round of all of them, a little of each. */
static int texts_test_gather(void *arg, struct act_error *error)
{
    struct world *w = arg;
    char piece[ROUND_BYTES];

    for (size_t i = 0; i < TEXTS; i++) {
        if (w->texts.n == i) {
            size_t at = store_texts_new(&w->texts);
            w->texts.v[at].key = act_sprintf("user_logs/%zu", at);
        }
        memset(piece, (int)('a' + (i + (size_t)w->rounds) % 26), sizeof(piece));
        assert_int_equal(store_texts_add(&w->texts, i, piece, texts_test_bytes_of(i)), 0);
    }
    w->rounds++;
    assert_int_equal(store_texts_flush(&w->texts), 0);
    (void)error;
    return 0;
}

static void texts_test_close(void *arg)
{
    store_texts_release(&((struct world *)arg)->texts);
}

static void texts_test_check_text(struct store *store, size_t i, uint64_t offset)
{
    ACT_AUTOFREE char *key = act_sprintf("user_logs/%zu", i);
    size_t n = texts_test_bytes_of(i);
    char sink[1000];
    struct store_call call = {
        .op = STORE_GET, .key = key, .get = {.offset = offset, .sink = sink, .sink_cap = sizeof(sink)}};

    assert_int_equal(store_do(store, &call, &err), 0);
    assert_int_equal(call.get.got, n * ROUNDS - offset < sizeof(sink) ? n * ROUNDS - offset : sizeof(sink));
    for (size_t k = 0; k < call.get.got; k++)
        assert_int_equal(sink[k], 'a' + (i + (offset + k) / n) % 26);
    store_call_release(&call);
}

TEST(thousands_of_texts_need_one_file)
{
    struct world w = {0};
    struct rlimit before, few = {FILES, FILES};
    struct engine *engine = engine_new(&(struct engine_options){0});
    struct http *http = http_new(engine, &(struct http_options){.max_retries = -1});
    struct store *store = store_texts_open(http, &(struct store_texts_options){.id = "run_1",
                                                                               .gather = texts_test_gather,
                                                                               .close = texts_test_close,
                                                                               .arg = &w,
                                                                               .texts = &w.texts,
                                                                               .grow = true});

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    while (w.rounds < ROUNDS)
        assert_int_equal(texts_test_gather(&w, &err), 0);
    assert_int_equal(w.texts.v[5].size, texts_test_bytes_of(5) * ROUNDS);
    for (size_t i = 0; i < TEXTS; i += 97)
        for (uint64_t offset = 0; offset < texts_test_bytes_of(i) * ROUNDS; offset += 333)
            texts_test_check_text(store, i, offset);
    struct store_call list = {.op = STORE_LIST, .key = "user_logs/29"};
    assert_int_equal(store_do(store, &list, &err), 0);
    assert_int_equal(w.rounds, ROUNDS + 1);
    assert_int_equal(list.list.page.n, 1 + 10 + 100);
    store_call_release(&list);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    store_free(store);
    http_free(http);
    engine_free(engine);
}

TEST_MAIN(NULL, NULL)
