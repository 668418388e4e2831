/* Listing, removing and reading against a store in memory: what comes is complete and in order, however it is
 * fetched; what fails is told. */
#define TEST_SETUP    lists_test_setup
#define TEST_TEARDOWN lists_test_teardown
#include "unit/test.h"

#include <stdio.h>

#include "base/crc64.h"
#include "engine/engine.h"
#include "http/http.h"
#include "store/store_internal.h"
#include "transfer/transfer.h"

static struct engine *engine;
static struct http *http;

/* A store of empty objects that only has names. Keys are sorted; those of empty folders end in '/'. */
struct names {
    struct store store;
    struct act_strv keys;
    size_t page;     /* entries per page */
    int empty_every; /* each Nth page is empty; 0: none */
    int lists, under_way, most_under_way;
    int fail_at;         /* the Nth LIST fails; 0: none */
    const char *locked;  /* cannot be deleted */
    int deletes;         /* calls that delete */
    size_t largest;      /* deletions in one call */
    bool leftovers;      /* the keys are what interrupted uploads left */
    const char *content; /* of every object that is read */
    uint64_t size;       /* content is repeated up to here */
    int gets, fail_get;  /* the Nth GET fails; 0: none */
    bool wrong_sum;
};

struct pending {
    struct names *names;
    struct store_call *call;
    int turns; /* of the loop until it is answered */
};

static struct names *lists_test_names_of(struct store *store)
{
    return (struct names *)store;
}

enum { FOLDER_MODE = 0750 };

static void lists_test_add_entry(struct store_page *page, const char *key, size_t len, enum store_kind kind)
{
    struct store_entry *e = store_page_add(page);

    e->key = act_strndup(key, len);
    e->kind = kind;
    e->size = kind == STORE_FILE ? 10 : 0;
    if (kind == STORE_FOLDER || (kind == STORE_PREFIX && key[len] == '\0')) /* there is a marker */
        e->mode = FOLDER_MODE;
    strcpy(e->etag, "\"1\"");
}

/* A folder that has something else in it is not an entry. */
static bool is_full_folder(const struct names *s, size_t i)
{
    const char *key = s->keys.v[i];

    return act_ends_with(key, "/") && i + 1 < s->keys.n && act_starts_with(s->keys.v[i + 1], key);
}

/* Adds what the key at i is in this listing. Returns the index of the next key. */
static size_t list_key(const struct names *s, size_t i, struct store_call *call)
{
    const char *key = s->keys.v[i], *slash = strchr(key + strlen(call->key), '/');
    size_t len = slash ? (size_t)(slash - key) + 1 : strlen(key);

    if ((act_ends_with(key, "/") && strcmp(key, call->key) == 0) ||
        (!call->list.delimiter && !call->list.whole && is_full_folder(s, i)))
        return i + 1;
    if (!call->list.delimiter || !slash) {
        lists_test_add_entry(&call->list.page, key, strlen(key), act_ends_with(key, "/") ? STORE_FOLDER : STORE_FILE);
        call->list.page.v[call->list.page.n - 1].filled = is_full_folder(s, i);
        return i + 1;
    }
    lists_test_add_entry(&call->list.page, key, len, STORE_PREFIX);
    while (i < s->keys.n && act_starts_with(s->keys.v[i], call->list.page.v[call->list.page.n - 1].key))
        i++;
    return i;
}

static int lists_test_list(struct names *s, struct store_call *call)
{
    size_t i = call->list.marker ? strtoul(call->list.marker, NULL, 10) : 0;
    bool empty = s->empty_every && s->lists % s->empty_every == 0;

    if (call->list.leftovers != s->leftovers)
        return 0;

    if (s->fail_at && s->lists == s->fail_at)
        return act_error_set(&call->error, ACT_TEMPORARY, "told to fail");
    while (i < s->keys.n && call->list.page.n < (empty ? 0 : s->page))
        i = act_starts_with(s->keys.v[i], call->key) ? list_key(s, i, call) : i + 1;
    if (i < s->keys.n)
        call->list.page.next = act_sprintf("%zu", i);
    return 0;
}

static char lists_test_byte_at(const struct names *s, uint64_t offset)
{
    return s->content[offset % strlen(s->content)];
}

/* The checksum that the store has of an object that is read. */
static void add_sum(const struct names *s, struct store_entry *e)
{
    e->has_crc64 = true;
    for (uint64_t i = 0; i < s->size; i++) {
        char c = lists_test_byte_at(s, i);
        e->crc64 = act_crc64(e->crc64, &c, 1);
    }
    e->crc64 ^= s->wrong_sum;
}

static int lists_test_head(const struct names *s, struct store_call *call)
{
    if (!act_strv_has(&s->keys, call->key))
        return act_error_set(&call->error, ACT_NOT_FOUND, "no '%s'", call->key);
    call->entry = (struct store_entry){.key = act_strdup(call->key), .mode = -1};
    call->entry.kind = act_ends_with(call->key, "/") ? STORE_FOLDER : STORE_FILE;
    strcpy(call->entry.etag, "\"1\"");
    call->entry.size = s->size;
    if (s->content)
        add_sum(s, &call->entry);
    return 0;
}

/* Keys that are deleted become empty: the order of the others stays. */
static int lists_test_delete_key(struct names *s, const char *key, const char *if_match, struct act_error *e)
{
    for (size_t i = 0; i < s->keys.n; i++)
        if (strcmp(s->keys.v[i], key) == 0) {
            if (act_streq(s->locked, key))
                return act_error_set(e, ACT_TEMPORARY, "cannot delete '%s': it changed", key);
            assert_true(s->leftovers || act_streq(if_match, "\"1\""));
            s->keys.v[i][0] = '\0';
            return 0;
        }
    return act_error_set(e, ACT_NOT_FOUND, "no '%s'", key);
}

static int delete_many(struct names *s, struct store_call *call)
{
    assert_true(call->delete_many.n <= STORE_MAX_DELETIONS);
    for (size_t i = 0; i < call->delete_many.n; i++) {
        struct store_deletion *d = &call->delete_many.v[i];
        d->rc = lists_test_delete_key(s, d->key, d->if_match, &d->error);
    }
    s->largest = call->delete_many.n > s->largest ? call->delete_many.n : s->largest;
    return 0;
}

static int lists_test_get(struct names *s, struct store_call *call)
{
    char *sink = call->get.sink;

    if (++s->gets == s->fail_get)
        return act_error_set(&call->error, ACT_TEMPORARY, "told to fail");
    assert_non_null(call->get.if_match);
    for (; call->get.got < call->get.sink_cap && call->get.offset + call->get.got < s->size; call->get.got++)
        sink[call->get.got] = lists_test_byte_at(s, call->get.offset + call->get.got);
    store_sums_add(call->get.sums, call->get.sink, call->get.got);
    return 0;
}

static int lists_test_perform(struct names *s, struct store_call *call)
{
    if (call->op == STORE_GET)
        return lists_test_get(s, call);
    if (call->op == STORE_LIST)
        return lists_test_list(s, call);
    if (call->op == STORE_HEAD)
        return lists_test_head(s, call);
    assert_int_equal(call->op == STORE_CLEAR, s->leftovers);
    s->deletes++;
    return call->op == STORE_DELETE_MANY ? delete_many(s, call)
                                         : lists_test_delete_key(s, call->key, call->delete.if_match, &call->error);
}

static void lists_test_answer(void *arg)
{
    struct pending p = *(struct pending *)arg;

    free(arg);
    p.names->under_way--;
    store_finish(p.call, lists_test_perform(p.names, p.call));
}

static void lists_test_take_turn(void *arg)
{
    struct pending *p = arg;

    engine_timer(engine, 0, p->turns-- > 0 ? lists_test_take_turn : lists_test_answer, p);
}

/* Later calls may be answered sooner. */
static void lists_test_start(struct store *store, struct store_call *call)
{
    struct names *s = lists_test_names_of(store);
    struct pending *p = act_alloc(sizeof(*p));

    *p = (struct pending){.names = s, .call = call};
    s->lists += call->op != STORE_HEAD;
    if (++s->under_way > s->most_under_way)
        s->most_under_way = s->under_way;
    p->turns = s->lists % 3;
    lists_test_take_turn(p);
}

static int window(const struct store *store)
{
    (void)store;
    return 32;
}

static const struct store_ops names_ops = {
    .operations = STORE_READS | STORE_BIT(STORE_DELETE) | STORE_BIT(STORE_DELETE_MANY) | STORE_BIT(STORE_CLEAR),
    .start = lists_test_start,
    .window = window,
};

static int lists_test_setup(void **state)
{
    struct names *s = act_calloc(1, sizeof(*s));

    *s = (struct names){.store = {.ops = &names_ops, .http = http, .name = act_strdup("names")}, .page = 30};
    *state = s;
    return 0;
}

static int lists_test_teardown(void **state)
{
    ACT_AUTOFREE struct names *s = *state;

    act_strv_release(&s->keys);
    free(s->store.name);
    return 0;
}

static int lists_test_collect(void *arg, const struct store_entry *entry, const char *rel, struct act_error *e)
{
    (void)e;
    assert_true(act_ends_with(entry->key, rel));
    assert_true(entry->kind != STORE_FOLDER || entry->mode == FOLDER_MODE || entry->mode == -1);
    assert_true(!entry->filled || entry->mode == FOLDER_MODE);
    act_strv_push(arg, entry->key);
    return 0;
}

/* The listing of prefix is exactly what the store has below it. */
static void assert_complete_in(struct names *s, const char *path, enum transfer_scope scope)
{
    ACT_AUTO(transfer_path) what = {.store = &s->store, .path = act_strdup(path), .is_folder = true};
    ACT_AUTOFREE char *prefix = act_sprintf("%s%s", path, *path ? "/" : "");
    ACT_AUTO(act_strv) got = {0};
    size_t n = 0;

    assert_ok(transfer_list(engine, &what, scope, lists_test_collect, &got, &err), err);
    for (size_t i = 0; i < s->keys.n; i++) {
        const char *key = s->keys.v[i];
        if (!act_starts_with(key, prefix) || strcmp(key, prefix) == 0 ||
            (scope == TRANSFER_TREE && is_full_folder(s, i)))
            continue;
        assert_true(n < got.n);
        assert_string_equal(got.v[n++], key);
    }
    assert_int_equal(got.n, n);
}

static void assert_complete(struct names *s, const char *path)
{
    assert_complete_in(s, path, TRANSFER_TREE);
}

/* folders folders of files files each, below prefix. */
static void add_tree(struct names *s, const char *prefix, int folders, int files)
{
    for (int d = 0; d < folders; d++)
        for (int f = 0; f < files; f++)
            act_strv_pushf(&s->keys, "%s%03d/%05d", prefix, d, f);
}

TEST(a_few_large_folders_are_listed_side_by_side)
{
    struct names *s = *state;

    add_tree(s, "a/", 20, 157);
    act_strv_sort(&s->keys);
    assert_complete(s, "a");
    assert_in_range(s->most_under_way, 2, 3); /* and a look */
    assert_true(s->lists <= 20 * 6 + 3);      /* pages of the folders, and little more */
}

TEST(the_only_folder_is_looked_into)
{
    struct names *s = *state;

    add_tree(s, "a/b/c/", 20, 157);
    act_strv_sort(&s->keys);
    assert_complete(s, "a");
    assert_true(s->most_under_way >= 2);
}

TEST(small_folders_are_listed_flat)
{
    struct names *s = *state;

    add_tree(s, "a/", 200, 3);
    act_strv_sort(&s->keys);
    assert_complete(s, "a");
    assert_int_equal(s->most_under_way, 1);
    assert_true(s->lists <= 21);
}

TEST(a_short_listing_is_not_looked_into)
{
    struct names *s = *state;

    add_tree(s, "a/", 2, 29);
    act_strv_sort(&s->keys);
    assert_complete(s, "a");
    assert_int_equal(s->lists, 2);
}

TEST(files_and_empty_folders_keep_their_places)
{
    struct names *s = *state;
    static const char *const more[] = {"a/",    "a/000-x", "a/000.x", "a/0000", "a/003/",    "a/0035/",
                                       "a/007", "a/007x/", "a/019/~", "a/~",    "a/~empty/", "b/x"};

    add_tree(s, "a/", 20, 97);
    for (size_t i = 0; i < COUNT(more); i++)
        act_strv_push(&s->keys, more[i]);
    act_strv_sort(&s->keys);
    assert_complete(s, "a");
    assert_complete(s, "");
    assert_true(s->most_under_way >= 2);
    assert_complete_in(s, "a", TRANSFER_WHOLE);
    assert_complete_in(s, "", TRANSFER_WHOLE);
    s->empty_every = 3;
    assert_complete(s, "a");
    assert_complete_in(s, "a", TRANSFER_WHOLE);
}

/* Random trees, random page sizes: always the same as the store has. */
TEST(any_tree_is_complete)
{
    struct names *s = *state;

    srand(7);
    for (int round = 0; round < 300; round++) {
        act_strv_release(&s->keys);
        for (int i = 0, n = rand() % 800; i < n; i++) {
            static const char *const middle[] = {"/", "-", "/x/", "."}, *const end[] = {"", "/", "/y", "~"};
            ACT_AUTOFREE char *key =
                act_sprintf("%d%s%d%s%d%s", rand() % 4, middle[rand() % 4], rand() % (1 + round % 7),
                            middle[rand() % 4], rand() % 500, end[rand() % 4]);
            if (!act_strv_has(&s->keys, key))
                act_strv_push(&s->keys, key);
        }
        act_strv_sort(&s->keys);
        s->page = 1 + (size_t)rand() % 40;
        s->empty_every = rand() % 4;
        s->empty_every = s->empty_every == 1 ? 0 : s->empty_every;
        assert_complete(s, "");
        assert_complete(s, "1");
        assert_complete(s, "2/x");
    }
}

TEST(a_broken_page_is_an_error)
{
    struct names *s = *state;
    ACT_AUTO(transfer_path) what = {.store = &s->store, .path = act_strdup("a"), .is_folder = true};

    add_tree(s, "a/", 20, 157);
    act_strv_sort(&s->keys);
    for (int at = 1; at < 100; at += 3) {
        struct act_strv got = {0};
        s->lists = 0;
        s->fail_at = at;
        int rc = transfer_list(engine, &what, TRANSFER_TREE, lists_test_collect, &got, &err);
        /* a look that fails is no loss */
        assert_true(rc == -ACT_TEMPORARY || (rc == 0 && got.n == s->keys.n));
        assert_true(rc == 0 || strcmp(act_error_text(&err), "told to fail") == 0);
        for (size_t i = 0; i < got.n; i++)
            assert_string_equal(got.v[i], s->keys.v[i]);
        act_strv_release(&got);
    }
}

static int stop_at_50(void *arg, const struct store_entry *entry, const char *rel, struct act_error *e)
{
    (void)entry;
    (void)rel;
    return ++*(int *)arg < 50 ? 0 : act_error_set(e, ACT_FAIL, "enough");
}

TEST(the_caller_may_stop)
{
    struct names *s = *state;
    ACT_AUTO(transfer_path) what = {.store = &s->store, .path = act_strdup("a"), .is_folder = true};
    int n = 0;

    add_tree(s, "a/", 20, 157);
    act_strv_sort(&s->keys);
    assert_int_equal(transfer_list(engine, &what, TRANSFER_TREE, stop_at_50, &n, &err), -ACT_FAIL);
    assert_string_equal(act_error_text(&err), "enough");
    assert_int_equal(n, 50);
    assert_int_equal(s->under_way, 0);
    assert_true(s->lists < 40);
}

TEST(one_level_has_folders_once)
{
    struct names *s = *state;
    ACT_AUTO(transfer_path) what = {.store = &s->store, .path = act_strdup("a"), .is_folder = true};
    ACT_AUTO(act_strv) got = {0};

    add_tree(s, "a/", 25, 4);
    act_strv_push(&s->keys, "a/x");
    act_strv_sort(&s->keys);
    assert_ok(transfer_list(engine, &what, TRANSFER_LEVEL, lists_test_collect, &got, &err), err);
    assert_int_equal(got.n, 26);
    assert_string_equal(got.v[0], "a/000/");
    assert_string_equal(got.v[25], "a/x");
}

/* ---- removing */

static size_t keys_left(const struct names *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->keys.n; i++)
        n += s->keys.v[i][0] != '\0';
    return n;
}

static int remove_path(struct names *s, const char *path, bool is_folder, const struct transfer_options *options,
                       struct transfer_report *report, struct act_error *e)
{
    ACT_AUTO(transfer_path) what = {.store = &s->store, .path = act_strdup(path), .is_folder = is_folder};

    return transfer_remove(engine, &what, options, report, e);
}

static void add_voc(struct names *s)
{
    add_tree(s, "d/voc2/", 3, 300);
    act_strv_push(&s->keys, "d/voc2/empty/");
    act_strv_push(&s->keys, "d/voc2012/0");
    act_strv_push(&s->keys, "d/voc2.txt");
    act_strv_sort(&s->keys);
}

TEST(removing_takes_exactly_the_folder)
{
    struct names *s = *state;
    struct transfer_report report;

    add_voc(s);
    assert_ok(remove_path(s, "d/voc2", true, &(struct transfer_options){.dry_run = true}, &report, &err), err);
    assert_int_equal(report.total.found_objects, 901);
    assert_int_equal(report.total.found_bytes, 9000);
    assert_int_equal(s->deletes, 0);
    assert_ok(remove_path(s, "d/voc2", true, &(struct transfer_options){0}, &report, &err), err);
    assert_int_equal(report.total.done_objects, 901);
    assert_int_equal(keys_left(s), 2);
    assert_int_equal(s->deletes, 4 + 1); /* and the folder itself */
    assert_int_equal(s->largest, STORE_MAX_DELETIONS);
    assert_ok(remove_path(s, "d/voc2.txt", false, &(struct transfer_options){0}, &report, &err), err);
    assert_int_equal(report.total.done_objects, 1);
    assert_int_equal(keys_left(s), 1);
}

TEST(every_part_of_a_batch_is_checked)
{
    struct names *s = *state;
    ACT_AUTO(transfer_report) report = {0};

    add_voc(s);
    s->locked = "d/voc2/001/00077";
    assert_int_equal(remove_path(s, "d/voc2", true, &(struct transfer_options){0}, &report, &err), -ACT_PARTIAL);
    assert_int_equal(report.total.done_objects, 900);
    assert_int_equal(report.total.failed_objects, 1);
    assert_int_equal(keys_left(s), 3);
    assert_string_equal(act_error_text(&err), "cannot delete 'd/voc2/001/00077': it changed");
}

TEST(a_broken_page_ends_the_removal)
{
    struct names *s = *state;
    ACT_AUTO(transfer_report) report = {0};

    add_voc(s);
    s->fail_at = 12;
    assert_true(remove_path(s, "d/voc2", true, &(struct transfer_options){0}, &report, &err) < 0);
    assert_int_equal(report.total.failed_objects, 1);
    assert_contains(act_error_text(&err), "told to fail");
    assert_true(keys_left(s) > 3);
}

TEST(leftovers_of_a_path_are_cleared)
{
    struct names *s = *state;
    ACT_AUTO(transfer_path) what = {.store = &s->store, .path = act_strdup("d/voc2"), .is_folder = true};
    struct transfer_report report;
    ACT_AUTO(act_strv) got = {0};

    add_voc(s);
    s->leftovers = true;
    act_strv_push(&s->keys, "d/voc2"); /* of a file with this very name */
    act_strv_sort(&s->keys);
    assert_ok(transfer_list(engine, &what, TRANSFER_LEFTOVERS, lists_test_collect, &got, &err), err);
    assert_int_equal(got.n, 902);
    assert_ok(transfer_clear(engine, &s->store, "d/voc2", &(struct transfer_options){0}, &report, &err), err);
    assert_int_equal(report.total.done_objects, 902);
    assert_int_equal(keys_left(s), 2);
}

/* ---- reading */

static int lists_test_append(void *arg, const void *data, size_t len, struct act_error *e)
{
    (void)e;
    act_buf_add(arg, data, len);
    return 0;
}

static int read_object(struct names *s, const struct transfer_range *range, struct act_buf *out, struct act_error *e)
{
    ACT_AUTO(transfer_path) what = {.store = &s->store, .path = act_strdup("f")};

    act_buf_release(out);
    return transfer_read(engine, &what, range, 16, lists_test_append, out, e);
}

static void set_content(struct names *s, uint64_t size)
{
    act_strv_push(&s->keys, "f");
    s->content = "0123456789abc";
    s->size = size;
}

TEST(what_is_read_comes_in_order)
{
    struct names *s = *state;
    ACT_AUTO(act_buf) out = {0};

    set_content(s, 0);
    for (s->size = 0; s->size < 100; s->size++) {
        assert_ok(read_object(s, NULL, &out, &err), err);
        assert_int_equal(out.len, s->size);
        for (size_t i = 0; i < out.len; i++)
            assert_int_equal(out.data[i], lists_test_byte_at(s, i));
    }
    assert_int_equal(s->most_under_way, 4);
    assert_ok(read_object(s, &(struct transfer_range){.first = 20}, &out, &err), err);
    assert_string_equal(out.data, "0123456789abc0123456");
    assert_ok(read_object(s, &(struct transfer_range){.first = 20, .last = 3}, &out, &err), err);
    assert_string_equal(out.data, "456");
    assert_ok(read_object(s, &(struct transfer_range){.last = 1000}, &out, &err), err);
    assert_int_equal(out.len, 100);
}

TEST(damage_is_told_at_the_end)
{
    struct names *s = *state;
    ACT_AUTO(act_buf) out = {0};

    set_content(s, 100);
    s->wrong_sum = true;
    assert_fails(read_object(s, NULL, &out, &err), err, ACT_FAIL, "do not trust it");
    assert_int_equal(out.len, 100);
    /* of a piece nobody knows a checksum */
    assert_ok(read_object(s, &(struct transfer_range){.first = 99}, &out, &err), err);
}

TEST(a_part_that_fails_ends_reading)
{
    struct names *s = *state;
    ACT_AUTO(act_buf) out = {0};

    set_content(s, 100);
    for (int at = 1; at <= 25; at++) {
        s->gets = 0;
        s->fail_get = at;
        assert_int_equal(read_object(s, NULL, &out, &err), -ACT_TEMPORARY);
        assert_string_equal(act_error_text(&err), "told to fail");
        assert_true(out.len < 100 && out.len % 4 == 0);
        for (size_t i = 0; i < out.len; i++)
            assert_int_equal(out.data[i], lists_test_byte_at(s, i));
    }
}

static int lists_test_refuse(void *arg, const void *data, size_t len, struct act_error *e)
{
    (void)arg;
    (void)data;
    (void)len;
    return act_error_set(e, ACT_FAIL, "the disk is full");
}

TEST(a_writer_may_stop_reading)
{
    struct names *s = *state;
    ACT_AUTO(transfer_path) what = {.store = &s->store, .path = act_strdup("f")};

    set_content(s, 1000);
    assert_int_equal(transfer_read(engine, &what, NULL, 16, lists_test_refuse, NULL, &err), -ACT_FAIL);
    assert_string_equal(act_error_text(&err), "the disk is full");
    assert_true(s->gets < 10);
}

static int lists_test_open_engine(void **state)
{
    (void)state;
    engine = engine_new(&(struct engine_options){.workers = 2});
    http = http_new(engine, &(struct http_options){0});
    return 0;
}

static int lists_test_close_engine(void **state)
{
    (void)state;
    http_free(http);
    engine_free(engine);
    return 0;
}

TEST_MAIN(lists_test_open_engine, lists_test_close_engine)
