/* store_test.c - what every store must do, run on a folder and, when TEST_AZURE_ENDPOINT, TEST_AZURE_ACCOUNT,
 * TEST_AZURE_CONTAINER and TEST_AZURE_KEY or TEST_AZURE_SAS are set, on Azure Blob Storage, or with TEST_AZURE_SHARE in
 * place of the container on Azure Files. With TEST_FAR the folder is served by another process of this program, as one
 * of another machine is.
 *
 * Each test works below a prefix of its own. Container and share must be empty at the start. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/test.h"

#include "base/clock.h"
#include "base/crc64.h"
#include "base/file.h"
#include "engine/engine.h"
#include "http/http.h"
#include "proc/proc.h"
#include "store/store.h"
#include "unit/store_call.h"

static struct {
    struct engine *engine;
    struct http *http;
    struct store *store;
    bool azure, share, far;
    pid_t far_pid; /* of the other end that was begun last */
    char root[64];
    struct act_error err;
} t;

static int conform_store_open(void);

/* As a later process would. */
static void conform_store_reopen(void)
{
    store_free(t.store);
    if (t.far) /* until then it has locked what is under way */
        assert_int_equal(waitpid(t.far_pid, NULL, 0), t.far_pid);
    assert_ok(conform_store_open(), t.err);
}

/* For tests of what not every store can. */
static void conform_store_need(enum store_op op)
{
    if (!store_can(t.store, op))
        skip();
}

/* ---- short forms */

static int put_call(struct store_call *call, const void *data, size_t len)
{
    call->op = STORE_PUT;
    call->put.data.bytes = data;
    call->put.data.len = len;
    int rc = store_do(t.store, call, &t.err);
    store_call_release(call);
    return rc;
}

static int conform_store_put(const char *key, const void *data, size_t len)
{
    struct store_call call = call_of(STORE_PUT, key);

    return put_call(&call, data, len);
}

static void conform_store_put_text(const char *key, const char *text)
{
    assert_ok(conform_store_put(key, text, strlen(text)), t.err);
}

static int conform_store_get_range(const char *key, uint64_t offset, void *sink, size_t cap, struct store_call *call)
{
    *call = call_of(STORE_GET, key);
    call->get.offset = offset;
    call->get.sink = sink;
    call->get.sink_cap = cap;
    return store_do(t.store, call, &t.err);
}

static void conform_store_assert_content(const char *key, const void *data, size_t len)
{
    ACT_AUTO(store_call) call = {0};
    ACT_AUTOFREE char *sink = act_alloc(len + 10);

    assert_ok(conform_store_get_range(key, 0, sink, len + 10, &call), t.err);
    assert_int_equal(call.get.got, len);
    assert_int_equal(call.entry.size, len);
    if (len)
        assert_memory_equal(sink, data, len);
}

static int conform_store_head(const char *key, struct store_call *call)
{
    *call = call_of(STORE_HEAD, key);
    return store_do(t.store, call, &t.err);
}

static void one_done(struct store_call *call)
{
    ++*(int *)call->arg;
}

/* Each succeeds, and ends once. */
static void do_at_once(struct store_call *calls, int n)
{
    int done = 0;

    for (int i = 0; i < n; i++) {
        calls[i].done = one_done;
        calls[i].arg = &done;
        store_start(t.store, &calls[i]);
    }
    engine_run(t.engine, NULL);
    assert_int_equal(done, n);
    for (int i = 0; i < n; i++)
        assert_ok(calls[i].rc, calls[i].error);
}

static void release_all(struct store_call *calls, int n)
{
    for (int i = 0; i < n; i++)
        store_call_release(&calls[i]);
}

static int conform_store_delete_key(const char *key)
{
    ACT_AUTO(store_call) call = call_of(STORE_DELETE, key);

    return store_do(t.store, &call, &t.err);
}

/* All keys below prefix, read in pages of max; whole: as "key" or, of a folder with something in it, "key mode". */
static struct act_strv list_as(const char *prefix, bool delimiter, bool whole, int max)
{
    struct act_strv keys = {0};
    char *marker = NULL;
    int pages = 0;

    do {
        struct store_call call = call_of(STORE_LIST, prefix);
        call.list.delimiter = delimiter;
        call.list.whole = whole;
        call.list.ahead = true;
        call.list.max = max;
        call.list.marker = marker;
        assert_ok(store_do(t.store, &call, &t.err), t.err);
        for (size_t i = 0; i < call.list.page.n; i++)
            act_strv_pushf(&keys, call.list.page.v[i].filled ? "%s %o" : "%s", call.list.page.v[i].key,
                           (unsigned)call.list.page.v[i].mode);
        free(marker);
        marker = act_strdup(call.list.page.next);
        store_call_release(&call);
        assert_true(++pages < 5000);
    } while (marker);
    return keys;
}

static struct act_strv conform_store_list(const char *prefix, bool delimiter, int max)
{
    return list_as(prefix, delimiter, false, max);
}

static void conform_store_assert_list(const char *prefix, bool delimiter, const char *const *expected, size_t n)
{
    static const int sizes[] = {0, 1, 2, 3};

    for (size_t s = 0; s < COUNT(sizes); s++) {
        struct act_strv keys = conform_store_list(prefix, delimiter, sizes[s]);
        for (size_t i = 0; i < keys.n && i < n; i++)
            assert_string_equal(keys.v[i], expected[i]);
        assert_int_equal(keys.n, n);
        act_strv_release(&keys);
    }
}

static void conform_store_md5_of(const void *data, size_t len, char out[ACT_MD5_BASE64])
{
    struct act_md5 h;

    act_md5_init(&h);
    act_md5_add(&h, data, len);
    act_md5_done(&h, out);
}

/* ---- whole objects */

TEST(test_put_get)
{
    static const struct {
        const char *key, *data;
        size_t len;
    } rows[] = {
        {"put/text", "hello world", 11}, {"put/empty", "", 0}, {"put/zero", "\0a\0\xff\r\n\0", 7},
        {"put/deep/er/still/x", "x", 1}, {"top", "t", 1},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_ok(conform_store_put(rows[i].key, rows[i].data, rows[i].len), t.err);
        conform_store_assert_content(rows[i].key, rows[i].data, rows[i].len);
    }
    conform_store_put_text("put/text", "replaced by something longer");
    conform_store_assert_content("put/text", "replaced by something longer", 28);
    conform_store_put_text("put/text", "");
    conform_store_assert_content("put/text", "", 0);
    assert_ok(conform_store_delete_key("top"), t.err);
}

TEST(test_md5)
{
    ACT_AUTO(store_call) call = call_of(STORE_PUT, "md5/x");
    ACT_AUTO(store_call) seen = {0};
    char md5[ACT_MD5_BASE64];

    conform_store_md5_of("hello", 5, md5);
    call.put.data.md5 = md5;
    assert_ok(put_call(&call, "hello", 5), t.err);
    assert_ok(conform_store_head("md5/x", &seen), t.err);
    assert_string_equal(seen.entry.md5, t.azure || t.share ? md5 : "");
    assert_int_not_equal(put_call(&call, "hellO", 5), 0);
    conform_store_assert_content("md5/x", "hello", 5);
    call = call_of(STORE_BLOCK, "md5/b");
    call.block.data = (struct store_data){.bytes = "hellO", .len = 5, .md5 = md5};
    assert_int_not_equal(store_do(t.store, &call, &t.err), 0);
}

/* Every store takes a CRC64, whatever its service verifies. */
TEST(test_crc64)
{
    const uint64_t right = act_crc64(0, "hello", 5), wrong = right ^ 1;
    ACT_AUTO(store_call) call = call_of(STORE_PUT, "crc/x");

    call.put.data.crc64 = &right;
    assert_ok(put_call(&call, "hello", 5), t.err);
    conform_store_assert_content("crc/x", "hello", 5);
    if (t.azure || t.share)
        return; /* an emulator may not look at it, and a share does not */
    call.put.data.crc64 = &wrong;
    assert_int_not_equal(put_call(&call, "hello", 5), 0);
    call = call_of(STORE_BLOCK, "crc/x");
    call.block.data = (struct store_data){.bytes = "hello", .len = 5, .crc64 = &wrong};
    assert_int_not_equal(store_do(t.store, &call, &t.err), 0);
    conform_store_assert_content("crc/x", "hello", 5);
}

static void assert_sums(struct store_sums *sums, const void *data, size_t len)
{
    char expected[ACT_MD5_BASE64], md5[ACT_MD5_BASE64];

    conform_store_md5_of(data, len, expected);
    act_md5_done(&sums->md5, md5);
    assert_string_equal(md5, expected);
    assert_int_equal(sums->crc64, act_crc64(0, data, len));
}

static struct store_sums new_sums(void)
{
    struct store_sums sums = {.want_md5 = true};

    act_md5_init(&sums.md5);
    return sums;
}

/* Sums are chained over the calls that they are given to, and count what failed for nothing. */
TEST(test_sums)
{
    struct store_sums sums = new_sums();
    struct store_call call = call_of(STORE_PUT, "sums/x");
    char sink[20];

    conform_store_need(STORE_BLOCKS);
    call.put.data.sums = &sums;
    assert_ok(put_call(&call, "one, ", 5), t.err);
    call.put.condition.if_absent = true;
    assert_int_not_equal(put_call(&call, "no, ", 4), 0);
    call.put.condition.if_absent = false;
    call = call_of(STORE_BLOCK, "sums/x");
    call.block.data = (struct store_data){.bytes = "two", .len = 3, .sums = &sums};
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    store_call_release(&call);
    assert_sums(&sums, "one, two", 8);

    sums = new_sums();
    conform_store_put_text("sums/y", "0123456789");
    for (uint64_t at = 0; at < 20; at += 4) {
        call = call_of(STORE_GET, "sums/y");
        call.get.sums = &sums;
        call.get.offset = at;
        call.get.sink = sink;
        call.get.sink_cap = 4;
        assert_ok(store_do(t.store, &call, &t.err), t.err);
        store_call_release(&call);
    }
    assert_sums(&sums, "0123456789", 10);
}

TEST(test_missing)
{
    ACT_AUTO(store_call) call = {0};
    char sink[4];

    conform_store_put_text("missing/file", "x");
    assert_fails(conform_store_head("missing/nothing", &call), t.err, ACT_NOT_FOUND, "missing/nothing");
    assert_int_equal(conform_store_head("missing/no/such/path", &call), -ACT_NOT_FOUND);
    assert_int_equal(conform_store_head("missing/file/below", &call), -ACT_NOT_FOUND);
    assert_int_equal(conform_store_head("missing", &call), -ACT_NOT_FOUND); /* a folder is no object */
    assert_int_equal(conform_store_get_range("missing/nothing", 0, sink, 4, &call), -ACT_NOT_FOUND);
    assert_int_equal(conform_store_get_range("missing", 0, sink, 4, &call), -ACT_NOT_FOUND);
    assert_int_equal(conform_store_get_range("missing/nothing", 5, sink, 0, &call), -ACT_NOT_FOUND);
    assert_int_equal(conform_store_delete_key("missing/nothing"), -ACT_NOT_FOUND);
    assert_int_equal(conform_store_delete_key("missing/no/path"), -ACT_NOT_FOUND);
    assert_int_equal(conform_store_delete_key("missing/nofolder/"), -ACT_NOT_FOUND);
    assert_int_equal(conform_store_head("missing/nofolder/", &call), -ACT_NOT_FOUND);

    call = call_of(STORE_COPY, "missing/copy");
    call.copy.source = "missing/nothing";
    assert_fails(store_do(t.store, &call, &t.err), t.err, ACT_NOT_FOUND, "missing/nothing");
}

TEST(test_delete)
{
    struct store_call call;

    conform_store_put_text("delete/a", "a");
    conform_store_put_text("delete/b", "b");
    assert_ok(conform_store_delete_key("delete/a"), t.err);
    assert_int_equal(conform_store_head("delete/a", &call), -ACT_NOT_FOUND);
    assert_int_equal(conform_store_delete_key("delete/a"), -ACT_NOT_FOUND);
    conform_store_assert_content("delete/b", "b", 1);

    call = call_of(STORE_DELETE, "delete/b");
    call.delete.if_match = "\"0x0\"";
    assert_int_equal(store_do(t.store, &call, &t.err), -ACT_TEMPORARY);
    conform_store_assert_content("delete/b", "b", 1);
}

TEST(test_delete_many)
{
    static const struct {
        const char *key, *if_match;
        int rc;
    } rows[] = {
        {"dm/a", NULL, 0},        {"dm/none", NULL, -ACT_NOT_FOUND},         {"dm/b", "\"0x0\"", -ACT_TEMPORARY},
        {"dm/deep/c d", NULL, 0}, {"dm/no/such/path", NULL, -ACT_NOT_FOUND}, {"dm/\xc3\xa9", NULL, 0},
    };
    static const char *const left[] = {"dm/b"};
    struct store_deletion deletions[STORE_MAX_DELETIONS + 1] = {0};
    struct store_call call = call_of(STORE_DELETE_MANY, "");

    conform_store_need(STORE_DELETE_MANY);
    conform_store_put_text("dm/a", "a");
    conform_store_put_text("dm/b", "b");
    conform_store_put_text("dm/deep/c d", "c");
    conform_store_put_text("dm/\xc3\xa9", "e");
    for (size_t i = 0; i < COUNT(rows); i++)
        deletions[i] = (struct store_deletion){.key = rows[i].key, .if_match = rows[i].if_match};
    call.delete_many.v = deletions;
    call.delete_many.n = COUNT(rows);
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    store_call_release(&call);
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (deletions[i].rc != rows[i].rc)
            fail_msg("%s: %d %s", rows[i].key, deletions[i].rc, act_error_text(&deletions[i].error));
        if (rows[i].rc)
            assert_non_null(strstr(act_error_text(&deletions[i].error), rows[i].key));
    }
    ACT_AUTO(act_strv) keys = conform_store_list("dm/", false, 0);
    for (size_t i = 0; i < keys.n && i < COUNT(left); i++)
        assert_true(strcmp(keys.v[i], left[i]) == 0 || act_ends_with(keys.v[i], "/"));
    conform_store_assert_content("dm/b", "b", 1);

    call.delete_many.n = 0;
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    call.delete_many.n = COUNT(deletions);
    assert_int_equal(store_do(t.store, &call, &t.err), -ACT_USAGE);
    store_call_release(&call);
}

TEST(test_ranges)
{
    static const struct {
        const char *key;
        uint64_t offset;
        size_t cap, got;
    } rows[] = {
        {"range/ten", 0, 10, 10}, {"range/ten", 0, 4, 4},    {"range/ten", 3, 4, 4},    {"range/ten", 6, 4, 4},
        {"range/ten", 7, 4, 3},   {"range/ten", 9, 100, 1},  {"range/ten", 10, 1, 0},   {"range/ten", 10, 100, 0},
        {"range/ten", 11, 1, 0},  {"range/ten", 1000, 7, 0}, {"range/ten", 0, 100, 10}, {"range/ten", 2, 0, 0},
        {"range/none", 0, 1, 0},  {"range/none", 0, 0, 0},   {"range/none", 5, 5, 0},
    };

    conform_store_put_text("range/ten", "0123456789");
    conform_store_put_text("range/none", "");
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct store_call call;
        char sink[128] = "";
        assert_ok(conform_store_get_range(rows[i].key, rows[i].offset, sink, rows[i].cap, &call), t.err);
        assert_int_equal(call.get.got, rows[i].got);
        assert_int_equal(call.entry.size, rows[i].key[6] == 't' ? 10 : 0);
        assert_string_equal(call.entry.key, rows[i].key);
        assert_true(call.entry.etag[0] == '"');
        if (rows[i].got)
            assert_memory_equal(sink, &"0123456789"[rows[i].offset], rows[i].got);
        store_call_release(&call);
    }
}

/* ---- blocks */

enum { BLOCK = 2 << 20, TOTAL = 5 << 20 };

static void conform_store_send_block(const char *key, struct store_upload_id id, uint32_t index, const char *data,
                                     size_t total, size_t block)
{
    ACT_AUTO(store_call) call = call_of(STORE_BLOCK, key);
    size_t offset = index * block;
    char md5[ACT_MD5_BASE64];

    call.block.upload_id = id;
    call.block.index = index;
    call.block.offset = offset;
    call.block.data.bytes = data + offset;
    call.block.data.len = total - offset < block ? total - offset : block;
    conform_store_md5_of(call.block.data.bytes, call.block.data.len, md5);
    call.block.data.md5 = md5;
    assert_ok(store_do(t.store, &call, &t.err), t.err);
}

static struct store_call commit_call(const char *key, struct store_upload_id id, uint32_t n, size_t total)
{
    struct store_call call = call_of(STORE_COMMIT, key);

    call.commit.upload_id = id;
    call.commit.n_blocks = n;
    call.commit.total = total;
    return call;
}

static struct store_upload_id new_id(void)
{
    struct store_upload_id id;

    act_random(id.bytes, sizeof(id.bytes));
    return id;
}

static char *pattern(size_t len, unsigned seed)
{
    char *data = act_alloc(len);

    for (size_t i = 0; i < len; i++)
        data[i] = (char)((seed = seed * 1664525 + 1013904223) >> 24);
    return data;
}

TEST(test_blocks)
{
    static const uint32_t order[] = {2, 0, 1, 0}; /* one twice */
    ACT_AUTOFREE char *data = pattern(TOTAL, 1);
    char md5[ACT_MD5_BASE64];
    struct store_upload_id id = new_id();
    struct store_call call, seen;

    conform_store_put_text("block/x", "the old one");
    for (size_t i = 0; i < COUNT(order); i++)
        conform_store_send_block("block/x", id, order[i], data, TOTAL, BLOCK);
    conform_store_assert_content("block/x", "the old one", 11);
    static const char *const only[] = {"block/x"};
    conform_store_assert_list("block/", false, only, 1);

    conform_store_md5_of(data, TOTAL, md5);
    call = commit_call("block/x", id, 3, TOTAL);
    call.commit.attr.md5 = md5;
    call.commit.attr.mode = 0640;
    call.commit.attr.mtime_ns = 1700000000123456789;
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    assert_ok(conform_store_head("block/x", &seen), t.err);
    assert_string_equal(seen.entry.etag, call.entry.etag);
    assert_string_equal(seen.entry.md5, t.azure || t.share ? md5 : "");
    assert_int_equal(seen.entry.mode, 0640);
    assert_int_equal(seen.entry.mtime_ns, 1700000000123456789);
    store_call_release(&call);
    store_call_release(&seen);
    conform_store_assert_content("block/x", data, TOTAL);
    conform_store_assert_list("block/", false, only, 1);
}

TEST(test_two_uploads)
{
    char *one = pattern(3000, 1), *two = pattern(3000, 2);
    struct store_upload_id id1 = new_id(), id2 = new_id();
    struct store_call call;

    conform_store_send_block("two/x", id1, 0, one, 3000, 1000);
    conform_store_send_block("two/x", id2, 1, two, 3000, 1000);
    conform_store_send_block("two/x", id2, 0, two, 3000, 1000);
    conform_store_send_block("two/x", id1, 2, one, 3000, 1000);
    conform_store_send_block("two/x", id2, 2, two, 3000, 1000);
    conform_store_send_block("two/x", id1, 1, one, 3000, 1000);
    call = commit_call("two/x", id2, 3, 3000);
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    store_call_release(&call);
    conform_store_assert_content("two/x", two, 3000);

    /* A commit discards the blocks of others on Blob Storage; a folder keeps them. */
    call = commit_call("two/x", id1, 3, 3000);
    int rc = store_do(t.store, &call, &t.err);
    assert_int_equal(rc, t.azure ? -ACT_TEMPORARY : 0);
    store_call_release(&call);
    conform_store_assert_content("two/x", t.azure ? two : one, 3000);
    free(one);
    free(two);
}

static struct store_call blocks_call(const char *key, struct store_upload_id id, uint64_t total)
{
    struct store_call call = call_of(STORE_BLOCKS, key);

    call.blocks.upload_id = id;
    call.blocks.total = total;
    return call;
}

/* Begins an upload and says which of its blocks 0..n-1 are there, a letter for each: "x" or "-". */
static void assert_blocks(const char *key, struct store_upload_id id, uint64_t total, const char *expected)
{
    ACT_AUTO(store_call) call = blocks_call(key, id, total);
    char seen[16] = "";

    memset(seen, '-', strlen(expected));
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    for (size_t i = 0; i < call.blocks.n_found; i++) {
        int64_t index = store_block_index(&id, &call.blocks.found[i]);
        if (index < 0 || call.blocks.found[i].committed)
            continue;
        assert_true(index < (int64_t)strlen(expected));
        seen[index] = 'x';
    }
    assert_string_equal(seen, expected);
}

/* An upload goes on where it ended, in another process as well: here another store. */
TEST(test_resume)
{
    struct store_upload_id id = new_id(), other = new_id();
    struct store_call call;

    conform_store_need(STORE_BLOCKS);
    ACT_AUTOFREE char *data = pattern(2500, 7);
    conform_store_put_text("resume/x", "old");
    assert_blocks("resume/x", id, 2500, "---");
    conform_store_send_block("resume/x", id, 1, data, 2500, 1000);
    assert_blocks("resume/x", id, 2500, "-x-");
    conform_store_reopen();
    assert_blocks("resume/x", id, 2500, "-x-");
    conform_store_send_block("resume/x", id, 2, data, 2500, 1000);
    conform_store_reopen();
    assert_blocks("resume/x", id, 2500, "-xx");

    call = commit_call("resume/x", id, 3, 2500);
    assert_fails(store_do(t.store, &call, &t.err), t.err, ACT_TEMPORARY, "upload it again");
    conform_store_assert_content("resume/x", "old", 3);
    conform_store_send_block("resume/x", id, 0, data, 2500, 1000);
    call.commit.condition.if_absent = true;
    assert_int_equal(store_do(t.store, &call, &t.err), -ACT_PARTIAL);
    conform_store_reopen();
    assert_blocks("resume/x", id, 2500, "xxx");
    call.commit.condition.if_absent = false;
    call.commit.attr.mtime_ns = 1700000000000000000;
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    store_call_release(&call);
    conform_store_assert_content("resume/x", data, 2500);
    assert_blocks("resume/x", id, 2500, "---");

    /* The blocks of another upload are not ours, nor those of another object. */
    conform_store_send_block("resume/x", id, 0, data, 2500, 1000);
    assert_blocks("resume/y", id, 2500, "---");
    assert_blocks("resume/x", other, 2500, "---");
    static const char *const keys[] = {"resume/x", "resume/y"};
    for (size_t i = 0; i < COUNT(keys); i++)
        for (int ids = 0; ids < 2; ids++) {
            call = call_of(STORE_DROP, keys[i]);
            call.drop.upload_id = ids ? other : id;
            assert_ok(store_do(t.store, &call, &t.err), t.err);
            store_call_release(&call);
        }
    conform_store_assert_content("resume/x", data, 2500);
}

static void send_piece(const char *key, struct store_upload_id id, const char *data, size_t from, size_t to,
                       size_t total)
{
    ACT_AUTO(store_call) call = call_of(STORE_BLOCK, key);
    struct store_sums sums = {.crc64 = act_crc64(0, data, from)};

    call.block.upload_id = id;
    call.block.offset = from;
    call.block.data.bytes = data + from;
    call.block.data.len = to - from;
    call.block.data.sums = &sums;
    call.block.block_len = total;
    call.block.more = to < total;
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    assert_true(sums.crc64 == act_crc64(0, data, to));
}

/* A block that comes in pieces is there with the last one, and not before. */
TEST(test_pieces_taken)
{
    struct store_upload_id id = new_id();

    if (!store_traits(t.store)->takes_pieces)
        skip();
    ACT_AUTOFREE char *data = pattern(2500, 9);
    assert_blocks("pieces/x", id, 2500, "-");
    send_piece("pieces/x", id, data, 0, 1000, 2500);
    send_piece("pieces/x", id, data, 1000, 2000, 2500);
    conform_store_reopen();
    assert_blocks("pieces/x", id, 2500, "-");
    for (size_t at = 0; at < 2500; at += 500)
        send_piece("pieces/x", id, data, at, at + 500, 2500);
    conform_store_reopen();
    assert_blocks("pieces/x", id, 2500, "x");
    ACT_AUTO(store_call) call = commit_call("pieces/x", id, 1, 2500);
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    conform_store_assert_content("pieces/x", data, 2500);
}

static void conform_store_count_done(struct store_call *call)
{
    assert_ok(call->rc, call->error);
    ++*(int *)call->arg;
}

/* Whatever order they are written in, and whether one waits for another: each is done once, and all are there. */
TEST(test_blocks_at_once)
{
    enum { BLOCKS = 9, LEN = 1000 };
    struct store_upload_id id = new_id();
    struct store_call calls[BLOCKS];
    ACT_AUTOFREE char *data = pattern(BLOCKS * LEN, 5);
    int n_done = 0;

    assert_blocks("at-once/x", id, BLOCKS * LEN, "---------");
    for (uint32_t i = 0; i < BLOCKS; i++) {
        calls[i] = call_of(STORE_BLOCK, "at-once/x");
        calls[i].block.upload_id = id;
        calls[i].block.index = i;
        calls[i].block.offset = (uint64_t)i * LEN;
        calls[i].block.data.bytes = data + calls[i].block.offset;
        calls[i].block.data.len = LEN;
        calls[i].done = conform_store_count_done;
        calls[i].arg = &n_done;
        store_start(t.store, &calls[i]);
    }
    engine_run(t.engine, NULL);
    assert_int_equal(n_done, BLOCKS);
    for (size_t i = 0; i < BLOCKS; i++)
        store_call_release(&calls[i]);
    assert_blocks("at-once/x", id, BLOCKS * LEN, "xxxxxxxxx");
    ACT_AUTO(store_call) call = commit_call("at-once/x", id, BLOCKS, BLOCKS * LEN);
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    conform_store_assert_content("at-once/x", data, BLOCKS * LEN);
}

static void take_into(struct store_call *call, size_t at, const void *data, size_t len)
{
    struct act_buf *got = call->arg;

    assert_int_equal(at, got->len);
    act_buf_add(got, data, len);
}

static void conform_store_taken(struct store_call *call)
{
    assert_ok(call->rc, call->error);
}

TEST(test_pieces_given)
{
    if (!store_traits(t.store)->gives_pieces)
        skip();
    conform_store_put_text("pieces/y", "0123456789");
    ACT_AUTO(act_buf) got = {0};
    ACT_AUTO(store_call) call = call_of(STORE_GET, "pieces/y");
    call.get.offset = 3;
    call.get.sink_cap = 5;
    call.get.take = take_into;
    call.arg = &got;
    call.done = conform_store_taken;
    store_start(t.store, &call);
    engine_run(t.engine, NULL);
    assert_int_equal(call.get.got, 5);
    assert_int_equal(got.len, 5);
    assert_memory_equal(got.data, "34567", 5);
}

/* What interrupted uploads left, below a prefix. */
static struct act_strv leftovers(const char *prefix)
{
    ACT_AUTO(store_call) call = call_of(STORE_LIST, prefix);
    struct act_strv keys = {0};

    call.list.leftovers = true;
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    assert_null(call.list.page.next);
    for (size_t i = 0; i < call.list.page.n; i++) {
        assert_true(call.list.page.v[i].size >= 1000);
        assert_true(t.azure || call.list.page.v[i].last_modified_s > 0);
        act_strv_push(&keys, call.list.page.v[i].key);
    }
    return keys;
}

TEST(test_leftovers)
{
    struct store_upload_id id = new_id();

    conform_store_need(STORE_CLEAR);
    ACT_AUTOFREE char *data = pattern(2500, 8);
    conform_store_put_text("left/old", "old");
    struct act_strv none = leftovers("left/");
    assert_int_equal(none.n, 0);
    assert_blocks("left/deep/new", id, 2500, "---");
    conform_store_send_block("left/deep/new", id, 0, data, 2500, 1000);
    assert_blocks("left/new", id, 2500, "---");
    conform_store_send_block("left/new", id, 1, data, 2500, 1000);
    conform_store_reopen();
    ACT_AUTO(act_strv) all = leftovers("left/"), deep = leftovers("left/deep/");
    assert_int_equal(all.n, 2);
    assert_int_equal(deep.n, 1);
    assert_true(act_strv_has(&all, deep.v ? deep.v[0] : ""));
    for (size_t i = 0; i < all.n; i++) {
        struct store_call call = call_of(STORE_CLEAR, all.v[i]);
        assert_ok(store_do(t.store, &call, &t.err), t.err);
        assert_int_equal(store_do(t.store, &call, &t.err), -ACT_NOT_FOUND);
    }
    none = leftovers("left/");
    assert_int_equal(none.n, 0);
    struct store_call call = call_of(STORE_CLEAR, "left/old");
    assert_int_not_equal(store_do(t.store, &call, &t.err), 0);
    conform_store_assert_content("left/old", "old", 3);
}

TEST(test_commit_edges)
{
    struct store_upload_id id = new_id();
    struct store_call call = commit_call("edge/empty", id, 0, 0);

    assert_ok(store_do(t.store, &call, &t.err), t.err);
    conform_store_assert_content("edge/empty", "", 0);
    store_call_release(&call);

    conform_store_put_text("edge/kept", "kept");
    call = commit_call("edge/kept", id, 2, 2000);
    assert_fails(store_do(t.store, &call, &t.err), t.err, ACT_TEMPORARY, "upload it again");
    conform_store_assert_content("edge/kept", "kept", 4);

    conform_store_send_block("edge/kept", id, 0, "abc", 3, 3);
    call = call_of(STORE_DROP, "edge/kept");
    call.drop.upload_id = id;
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    conform_store_assert_content("edge/kept", "kept", 4);
}

/* ---- attributes */

static void assert_attributes(const struct store_entry *e, enum store_kind kind, int64_t mtime_ns, int mode)
{
    assert_int_equal(e->kind, kind);
    assert_int_equal(e->mtime_ns, mtime_ns);
    assert_int_equal(e->mode, mode);
}

/* The entry as HEAD, GET and LIST give it; all must agree. */
static void assert_everywhere(const char *key, enum store_kind kind, int64_t mtime_ns, int mode)
{
    struct store_call call;
    char sink[100];

    assert_ok(conform_store_head(key, &call), t.err);
    assert_attributes(&call.entry, kind, mtime_ns, mode);
    ACT_AUTOFREE char *etag = act_strdup(call.entry.etag);
    store_call_release(&call);

    assert_ok(conform_store_get_range(key, 0, sink, sizeof(sink), &call), t.err);
    assert_attributes(&call.entry, kind, mtime_ns, mode);
    assert_string_equal(call.entry.etag, etag);
    store_call_release(&call);

    call = call_of(STORE_LIST, key);
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    if (!act_ends_with(key, "/")) { /* how a marker is stored is the store's matter */
        assert_true(call.list.page.n >= 1);
        assert_string_equal(call.list.page.v[0].key, key);
        assert_attributes(&call.list.page.v[0], kind, mtime_ns, mode);
        assert_string_equal(call.list.page.v[0].etag, etag);
        assert_true(call.list.page.v[0].last_modified_s > 1600000000);
    }
    store_call_release(&call);
}

TEST(test_attributes)
{
    ACT_AUTO(store_call) call = call_of(STORE_PUT, "attr/exec");

    call.put.attr.mode = 0751;
    call.put.attr.mtime_ns = 1234567890987654321;
    assert_ok(put_call(&call, "#!", 2), t.err);
    assert_everywhere("attr/exec", STORE_FILE, 1234567890987654321, 0751);
    call.put.attr.mtime_ns = 1600000000000000000;
    call.put.attr.mode = 0400;
    assert_ok(put_call(&call, "", 0), t.err);
    assert_everywhere("attr/exec", STORE_FILE, 1600000000000000000, 0400);

    call = call_of(STORE_COPY, "attr/copy");
    call.copy.source = "attr/exec";
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    assert_everywhere("attr/copy", STORE_FILE, 1600000000000000000, 0400);
}

TEST(test_symlink)
{
    ACT_AUTO(store_call) call = call_of(STORE_PUT, "sym/dir/link");

    call.put.attr.kind = STORE_SYMLINK;
    call.put.attr.mtime_ns = 1500000000000000001;
    assert_ok(put_call(&call, "../target", 9), t.err);
    assert_everywhere("sym/dir/link", STORE_SYMLINK, 1500000000000000001, -1);
    conform_store_assert_content("sym/dir/link", "../target", 9);
    assert_ok(put_call(&call, "other", 5), t.err); /* replaces it */
    conform_store_assert_content("sym/dir/link", "other", 5);

    struct store_call part;
    char sink[3];
    assert_ok(conform_store_get_range("sym/dir/link", 0, NULL, 0, &part), t.err);
    assert_int_equal(part.entry.size, 5);
    store_call_release(&part);
    assert_ok(conform_store_get_range("sym/dir/link", 2, sink, 3, &part), t.err);
    assert_int_equal(part.get.got, 3);
    assert_memory_equal(sink, "her", 3);
    store_call_release(&part);

    call = call_of(STORE_COPY, "sym/dir/copied");
    call.copy.source = "sym/dir/link";
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    assert_everywhere("sym/dir/copied", STORE_SYMLINK, 1500000000000000001, -1);
    assert_ok(conform_store_delete_key("sym/dir/link"), t.err);
}

TEST(test_folders)
{
    static const char *const with[] = {"fold/a-b", "fold/a/", "fold/full/x", "fold/full0"};
    static const char *const level[] = {"fold/a-b", "fold/a/", "fold/full/", "fold/full0"};
    static const char *const without[] = {"fold/a-b", "fold/full/x", "fold/full0"};
    struct store_call call = call_of(STORE_PUT, "fold/a/");

    call.put.attr.kind = STORE_FOLDER;
    call.put.attr.mode = 0750;
    call.put.attr.mtime_ns = 1500000000000000001;
    assert_ok(put_call(&call, NULL, 0), t.err);
    call.key = "fold/full/";
    assert_ok(put_call(&call, NULL, 0), t.err);
    conform_store_put_text("fold/full/x", "x");
    conform_store_put_text("fold/a-b", "");
    conform_store_put_text("fold/full0", "");
    assert_everywhere("fold/a/", STORE_FOLDER, 1500000000000000001, 0750);
    conform_store_assert_list("fold/", false, with, COUNT(with));
    conform_store_assert_list("fold", false, with, COUNT(with));
    conform_store_assert_list("fold/", true, level, COUNT(level));
    assert_int_equal(conform_store_head("fold/a", &call), -ACT_NOT_FOUND);
    assert_ok(conform_store_delete_key("fold/a/"), t.err);
    assert_int_equal(conform_store_delete_key("fold/a/"), -ACT_NOT_FOUND);
    conform_store_assert_list("fold/", false, without, COUNT(without));
    conform_store_assert_content("fold/full/x", "x", 1);
}

static void conform_store_put_folder(const char *key, int mode)
{
    struct store_call call = call_of(STORE_PUT, key);

    call.put.attr.kind = STORE_FOLDER;
    call.put.attr.mode = mode;
    call.put.condition.if_absent = true; /* no file */
    assert_ok(put_call(&call, NULL, 0), t.err);
}

static int sync_store(void)
{
    struct store_call call = call_of(STORE_SYNC, "");

    return store_can(t.store, STORE_SYNC) ? store_do(t.store, &call, &t.err) : 0;
}

/* Before and after something is in it, again, and read-only. */
TEST(test_modes_of_folders)
{
    static const char *const expected[] = {"modes/a-b", "modes/a/ 700", "modes/a/b/ 555",   "modes/a/b/x",
                                           "modes/a0",  "modes/empty/", "modes/later/ 775", "modes/later/x"};
    static const int sizes[] = {0, 1, 2, 3};

    conform_store_put_folder("modes/a/", 0700);
    conform_store_put_folder("modes/a/b/", 0555);
    conform_store_put_text("modes/a/b/x", "x");
    conform_store_put_text("modes/a-b", "");
    conform_store_put_text("modes/a0", "");
    conform_store_put_folder("modes/empty/", 0700);
    conform_store_put_text("modes/later/x", "x");
    conform_store_put_folder("modes/later/", 0750);
    conform_store_put_folder("modes/later/", 07777);
    assert_ok(sync_store(), t.err);
    conform_store_put_text("modes/a/b/x", "again");
    assert_ok(conform_store_delete_key("modes/a/b/x"), t.err);
    conform_store_put_text("modes/a/b/x", "again");
    conform_store_reopen();
    for (size_t s = 0; s < COUNT(sizes); s++) {
        struct act_strv keys = list_as("modes/", false, true, sizes[s]);
        assert_int_equal(keys.n, COUNT(expected));
        for (size_t i = 0; i < keys.n; i++)
            assert_string_equal(keys.v[i], expected[i]);
        act_strv_release(&keys);
    }
    conform_store_put_text("modes/file", "file");
    struct store_call call = call_of(STORE_PUT, "modes/file/");
    call.put.attr.kind = STORE_FOLDER;
    call.put.condition.if_absent = true;
    assert_int_not_equal(put_call(&call, NULL, 0), 0);
    conform_store_assert_content("modes/file", "file", 4);
}

/* ---- conditions */

TEST(test_conditions)
{
    struct store_call call = call_of(STORE_PUT, "cond/x"), seen;
    char sink[4];

    call.put.condition.if_absent = true;
    assert_ok(put_call(&call, "one", 3), t.err);
    assert_fails(put_call(&call, "two", 3), t.err, ACT_PARTIAL, "exists");
    conform_store_assert_content("cond/x", "one", 3);

    call.put.condition.if_absent = false;
    call.put.condition.if_match = "\"0x123\"";
    assert_fails(put_call(&call, "two", 3), t.err, ACT_TEMPORARY, "changed");
    assert_ok(conform_store_head("cond/x", &seen), t.err);
    call.put.condition.if_match = seen.entry.etag;
    assert_ok(put_call(&call, "two", 3), t.err);
    assert_int_equal(put_call(&call, "three", 5), -ACT_TEMPORARY);

    ACT_AUTO(store_call) get = call_of(STORE_GET, "cond/x");
    get.get.sink = sink;
    get.get.sink_cap = sizeof(sink);
    get.get.if_match = seen.entry.etag;
    assert_int_equal(store_do(t.store, &get, &t.err), -ACT_TEMPORARY);
    get.get.sink_cap = 0;
    assert_int_equal(store_do(t.store, &get, &t.err), -ACT_TEMPORARY);
    store_call_release(&seen);
    assert_ok(conform_store_head("cond/x", &seen), t.err);
    get.get.if_match = seen.entry.etag;
    get.get.sink_cap = sizeof(sink);
    assert_ok(store_do(t.store, &get, &t.err), t.err);
    assert_int_equal(get.get.got, 3);
    assert_string_equal(get.entry.etag, seen.entry.etag);
    store_call_release(&seen);
    conform_store_assert_content("cond/x", "two", 3);
}

TEST(test_commit_conditions)
{
    struct store_upload_id id = new_id();
    ACT_AUTO(store_call) call = {0};

    conform_store_put_text("ccond/x", "old");
    conform_store_send_block("ccond/x", id, 0, "new", 3, 3);
    call = commit_call("ccond/x", id, 1, 3);
    call.commit.condition.if_absent = true;
    assert_int_equal(store_do(t.store, &call, &t.err), -ACT_PARTIAL);
    call.commit.condition.if_absent = false;
    call.commit.condition.if_match = "\"0x123\"";
    assert_int_equal(store_do(t.store, &call, &t.err), -ACT_TEMPORARY);
    conform_store_assert_content("ccond/x", "old", 3);
    call.commit.condition.if_match = NULL;
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    conform_store_assert_content("ccond/x", "new", 3);
}

/* ---- listing */

TEST(test_list)
{
    static const char *const keys[] = {"ls/a-b", "ls/a.txt",   "ls/a/x",          "ls/a/y/z",     "ls/a0",
                                       "ls/voc", "ls/voc2/1x", "ls/voc2/deep/2x", "ls/voc2012/3x"};
    static const char *const top[] = {"ls/a-b", "ls/a.txt", "ls/a/", "ls/a0", "ls/voc", "ls/voc2/", "ls/voc2012/"};
    static const char *const voc2[] = {"ls/voc2/1x", "ls/voc2/deep/2x"};
    static const char *const vo[] = {"ls/voc", "ls/voc2/", "ls/voc2012/"};

    for (size_t i = COUNT(keys); i-- > 0;)
        conform_store_put_text(keys[i], "x");
    conform_store_assert_list("ls/", false, keys, COUNT(keys));
    conform_store_assert_list("ls/", true, top, COUNT(top));
    conform_store_assert_list("ls/voc2/", false, voc2, COUNT(voc2));
    conform_store_assert_list("ls/vo", false, keys + 5, 4);
    conform_store_assert_list("ls/vo", true, vo, COUNT(vo));
    conform_store_assert_list("ls/voc2", true, vo + 1, 2);
    conform_store_assert_list("ls/voc2/", true, (const char *const[]){"ls/voc2/1x", "ls/voc2/deep/"}, 2);
    conform_store_assert_list("ls/voc2/d", true, (const char *const[]){"ls/voc2/deep/"}, 1);
    conform_store_assert_list("ls/a0", false, keys + 4, 1);
    conform_store_assert_list("ls/a", false, keys, 5);
    conform_store_assert_list("ls/nothing", false, NULL, 0);
    conform_store_assert_list("ls/voc2/nothing/", false, NULL, 0);
    conform_store_assert_list("ls/voc/", false, NULL, 0);
    conform_store_assert_list("nothing/at/all", true, NULL, 0);
}

TEST(test_list_entries)
{
    ACT_AUTO(store_call) call = call_of(STORE_LIST, "entries/");

    conform_store_put_text("entries/a", "12345");
    conform_store_put_text("entries/dir/b", "");
    call.list.delimiter = true;
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    assert_int_equal(call.list.page.n, 2);
    assert_int_equal(call.list.page.v[0].kind, STORE_FILE);
    assert_int_equal(call.list.page.v[0].size, 5);
    assert_int_equal(call.list.page.v[1].kind, STORE_PREFIX);
    assert_null(call.list.page.next);
}

TEST(test_list_many)
{
    enum { N = 300 };
    static const int sizes[] = {0, 7, 100, 299, 300, 301};
    static struct store_call calls[N];
    static char keys[N][32];

    for (int i = 0; i < N; i++) {
        snprintf(keys[i], sizeof(keys[i]), "many/d%02d/obj-%05d", i / 25, (i * 7919) % N);
        calls[i] = call_of(STORE_PUT, keys[i]);
        calls[i].put.data.bytes = "any";
        calls[i].put.data.len = 3;
    }
    do_at_once(calls, N);
    release_all(calls, N);
    ACT_AUTO(act_strv) all = conform_store_list("many/", false, 0);
    assert_int_equal(all.n, N);
    for (size_t i = 1; i < all.n; i++)
        assert_true(strcmp(all.v[i - 1], all.v[i]) < 0);
    for (size_t s = 0; s < COUNT(sizes); s++) {
        struct act_strv paged = conform_store_list("many/", false, sizes[s]);
        assert_int_equal(paged.n, N);
        for (size_t i = 0; i < paged.n; i++)
            assert_string_equal(paged.v[i], all.v[i]);
        act_strv_release(&paged);
    }
    ACT_AUTO(act_strv) folders = conform_store_list("many/", true, 5);
    assert_int_equal(folders.n, 12);
}

TEST(test_awkward_names)
{
    static const char *const names[] = {
        "tab\there",
        "new\nline",
        " lead",
        "!",
        "\"double\"",
        "#hash",
        "$dollar",
        "%25",
        "%41",
        "%zz",
        "&amp;",
        "'single'",
        "(paren)",
        "*star",
        "+plus",
        ",comma",
        "-dash",
        "0x",
        ";semi",
        "<lt>",
        "=eq",
        "?quest",
        "@at",
        "A",
        "[br]",
        "^caret",
        "`tick`",
        "a",
        "a b",
        "a.b.c",
        "b ",
        "{cur}",
        "|pipe",
        "~tilde",
        "\xc3\xa9t\xc3\xa9",
        "e\xcc\x81",
        "\xe4\xb8\xad\xe6\x96\x87",
        "\xf0\x9f\x8e\x89",
    };
    char longest[201];

    memset(longest, 'n', 200);
    longest[200] = '\0';
    ACT_AUTO(act_strv) expected = {0};
    for (size_t i = 0; i < COUNT(names); i++)
        if (!t.share || (!strpbrk(names[i], "\t\n\"*<>?|") && strcmp(names[i], "A") != 0)) /* "a" is another */
            act_strv_pushf(&expected, "awk/%s", names[i]);
    act_strv_pushf(&expected, "awk/%s", longest);
    act_strv_sort(&expected);
    for (size_t i = 0; i < expected.n; i++) {
        const char *key = expected.v[i];
        assert_null(store_key_problem(t.store, key));
        assert_ok(conform_store_put(key, key, strlen(key)), t.err);
    }
    for (size_t i = 0; i < expected.n; i++)
        conform_store_assert_content(expected.v[i], expected.v[i], strlen(expected.v[i]));
    conform_store_assert_list("awk/", false, (const char *const *)expected.v, expected.n);
    for (size_t i = 0; i < expected.n; i++)
        assert_ok(conform_store_delete_key(expected.v[i]), t.err);
    conform_store_assert_list("awk/", false, NULL, 0);
}

TEST(test_key_problems)
{
    static const char *const bad[] = {"",  "/abs",  "..",  "../x",         "a/../b",     "a/..",
                                      ".", "a/./b", "./a", "\xff\xfe.txt", "a/\xc0\xaf", "a/\xed\xa0\x80"};
    ACT_AUTOFREE char *huge = act_calloc(1, 5001);

    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_non_null(store_key_problem(t.store, bad[i]));
        assert_int_not_equal(conform_store_put(bad[i], "x", 1), 0);
    }
    memset(huge, 'x', 5000);
    assert_non_null(store_key_problem(t.store, huge));
    assert_int_equal(conform_store_put(huge, "x", 1), -ACT_FAIL);
    for (size_t i = 1; i < 5000; i += 2)
        huge[i] = '/';
    assert_non_null(store_key_problem(t.store, huge));
    assert_null(store_key_problem(t.store, "a/b c/\xc3\xa9.tar.gz"));
    assert_null(store_key_problem(t.store, "folder/"));
    assert_int_equal(conform_store_put("folder/", "x", 1), -ACT_USAGE); /* not with the kind of a file */
}

TEST(test_copy)
{
    struct store_call call = call_of(STORE_COPY, "copy/new/to & fro"), seen;
    ACT_AUTOFREE char *data = pattern(1000000, 3);

    assert_ok(conform_store_put("copy/from \xc3\xa9", data, 1000000), t.err);
    call.copy.source = "copy/from \xc3\xa9";
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    assert_ok(conform_store_head(call.key, &seen), t.err);
    assert_string_equal(call.entry.etag, seen.entry.etag);
    store_call_release(&call);
    store_call_release(&seen);
    conform_store_assert_content("copy/new/to & fro", data, 1000000);
    conform_store_put_text("copy/new/to & fro", "old");
    assert_ok(store_do(t.store, &call, &t.err), t.err); /* replaces */
    store_call_release(&call);
    conform_store_assert_content("copy/new/to & fro", data, 1000000);
}

/* None mixes with another. */
TEST(test_concurrent)
{
    enum { N = 60 };
    static struct store_call calls[N];
    static char keys[N][32];

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++) {
            snprintf(keys[i], sizeof(keys[i]), "conc/k%02d", i);
            calls[i] = call_of(round ? STORE_HEAD : STORE_PUT, keys[i]);
            if (round == 0)
                calls[i].put.data = (struct store_data){.bytes = keys[i], .len = (size_t)i % 8};
        }
        do_at_once(calls, N);
        for (int i = 0; i < N && round; i++)
            assert_int_equal(calls[i].entry.size, i % 8);
        release_all(calls, N);
    }
}

/* ---- the folder store alone */

static char *conform_store_in_root(const char *path)
{
    return act_sprintf("%s/root/%s", t.root, path);
}

TEST(test_folder_never_through_links)
{
    ACT_AUTOFREE char *link = conform_store_in_root("evil"), *outside = act_sprintf("%s/outside", t.root);
    ACT_AUTOFREE char *victim = act_sprintf("%s/outside/victim", t.root), *to_file = conform_store_in_root("direct");
    struct store_call call;
    char sink[10];

    assert_int_equal(mkdir(outside, 0755), 0);
    assert_ok(act_file_write(victim, "safe", 4, 0644, &t.err), t.err);
    assert_int_equal(symlink(outside, link), 0);
    assert_int_equal(symlink(victim, to_file), 0);

    assert_fails(conform_store_put("evil/victim", "gone", 4), t.err, ACT_FAIL, "leads through a symbolic link");
    assert_int_equal(conform_store_put("evil/new/x", "gone", 4), -ACT_FAIL);
    assert_int_equal(conform_store_get_range("evil/victim", 0, sink, 10, &call), -ACT_FAIL);
    assert_int_equal(conform_store_head("evil/victim", &call), -ACT_FAIL);
    assert_int_equal(conform_store_delete_key("evil/victim"), -ACT_FAIL);
    call = call_of(STORE_BLOCK, "evil/victim");
    call.block.data.bytes = "gone";
    call.block.data.len = 4;
    assert_int_equal(store_do(t.store, &call, &t.err), -ACT_FAIL);
    call = call_of(STORE_LIST, "evil/");
    assert_int_equal(store_do(t.store, &call, &t.err), -ACT_FAIL);
    call = call_of(STORE_PUT, "evil/");
    call.put.attr.kind = STORE_FOLDER;
    assert_int_equal(put_call(&call, NULL, 0), -ACT_FAIL);

    conform_store_put_text("direct", "replaced, not followed");
    struct stat st;
    assert_int_equal(lstat(to_file, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    ACT_AUTOFREE char *text = NULL;
    size_t len = 0;
    assert_ok(act_file_read(victim, 100, &text, &len, &t.err), t.err);
    assert_string_equal(text, "safe");
    assert_int_equal(unlink(link), 0);
}

TEST(test_folder_link_targets)
{
    static const struct {
        const char *key, *target;
        bool fine;
    } rows[] = {
        {"l/x", "y", true},
        {"l/x", "../y", true},
        {"l/x", "../../y", false},
        {"x", "../y", false},
        {"l/x", "/etc/passwd", false},
        {"l/x", "a/../b", false},
        {"l/x", "./../y", true},
        {"l/x", "", false},
        {"l/m/x", "../..", true},
        {"l/m/x", "../../..", false},
        {"l/x", "a/..", false},
        {"l/x", "...", true},
        {"l/x", ".", true},
        {"l/x", "..", true},
        {"x", "..", false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct store_call call = call_of(STORE_PUT, rows[i].key);
        call.put.attr.kind = STORE_SYMLINK;
        int rc = put_call(&call, rows[i].target, strlen(rows[i].target));
        if (rc != (rows[i].fine ? 0 : -ACT_DENIED))
            fail_msg("%s -> %s: %d", rows[i].key, rows[i].target, rc);
    }
    struct store_call call = call_of(STORE_PUT, "l/x");
    call.put.attr.kind = STORE_SYMLINK;
    assert_int_equal(put_call(&call, "a\0b", 3), -ACT_DENIED);
}

TEST(test_folder_collisions)
{
    struct store_call call = call_of(STORE_PUT, "coll/file/");

    conform_store_put_text("coll/file", "x");
    conform_store_put_text("coll/dir/x", "x");
    assert_fails(conform_store_put("coll/file/below", "x", 1), t.err, ACT_FAIL, "is a file, not a folder");
    assert_fails(conform_store_put("coll/dir", "x", 1), t.err, ACT_FAIL, "folder of this name");
    call.put.attr.kind = STORE_FOLDER;
    assert_int_equal(put_call(&call, NULL, 0), -ACT_FAIL);
    assert_fails(conform_store_delete_key("coll/dir/"), t.err, ACT_FAIL, "not empty");
    static const char *const keys[] = {"coll/dir/x", "coll/file"};
    conform_store_assert_list("coll/", false, keys, COUNT(keys)); /* and no part file is left */
}

/* Nothing but the names that uploads give is kept for them. */
TEST(test_temporary_names)
{
#define PART ".act-part-0123456789abcdef-0123456789abcdef0123456789abcdef"
#define TEMP ".act-part-0123456789abcdef0123456789abcdef0123456789abcdef"
    static const char *const users[] = {"temp/.act-part-", "temp/" PART "x", "temp/" TEMP "x", "temp/.act-part-x",
                                        "temp/.act-part-y/z"};
    static const char *const of_folder[] = {PART, "x/" PART, "x/" PART ".map"}, *const of_share[] = {TEMP, "x/" TEMP};
    const bool is_folder = store_traits(t.store)->is_disk || store_traits(t.store)->is_far_disk;

    for (size_t i = 0; i < COUNT(of_folder) && is_folder; i++)
        assert_fails(conform_store_put(of_folder[i], "x", 1), t.err, ACT_FAIL, "ACT gives to uploads");
    for (size_t i = 0; i < COUNT(of_share) && store_traits(t.store)->real_folders && !is_folder; i++)
        assert_fails(conform_store_put(of_share[i], "x", 1), t.err, ACT_FAIL, "ACT gives to files");
    for (size_t i = 0; i < COUNT(users); i++)
        conform_store_put_text(users[i], users[i]);
    for (size_t i = 0; i < COUNT(users); i++)
        conform_store_assert_content(users[i], users[i], strlen(users[i]));
    conform_store_assert_list("temp/", false, users, COUNT(users));
    for (size_t i = 0; i < COUNT(users); i++)
        assert_ok(conform_store_delete_key(users[i]), t.err);
#undef PART
#undef TEMP
}

TEST(test_folder_odd_files)
{
    ACT_AUTOFREE char *pipe_path = conform_store_in_root("odd/pipe"), *bad = conform_store_in_root("odd/bad\xff");
    ACT_AUTOFREE char *part = conform_store_in_root("odd/.act-part-0123456789abcdef-0123456789abcdef0123456789abcdef");
    static const char *const keys[] = {"odd/x"};
    struct store_call call;

    conform_store_put_text("odd/x", "x");
    assert_int_equal(mkfifo(pipe_path, 0644), 0);
    assert_ok(act_file_write(part, "x", 1, 0644, &t.err), t.err);
    call = call_of(STORE_LIST, "odd/");
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    assert_int_equal(call.list.page.n, 2); /* the part file is none */
    assert_int_equal(call.list.page.v[0].kind, STORE_UNREADABLE);
    assert_fails(store_entry_problem(&call.list.page.v[0], &t.err), t.err, ACT_PARTIAL,
                 "'odd/pipe': it is neither a file");
    store_call_release(&call);
    assert_int_equal(conform_store_head("odd/pipe", &call), -ACT_FAIL);
    assert_int_equal(unlink(pipe_path), 0);
    conform_store_assert_list("odd/", false, keys, 1);

    assert_ok(act_file_write(bad, "x", 1, 0644, &t.err), t.err);
    call = call_of(STORE_LIST, "odd/");
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    assert_int_equal(call.list.page.n, 2); /* the rest is listed all the same */
    assert_int_equal(call.list.page.v[0].kind, STORE_UNREADABLE);
    assert_fails(store_entry_problem(&call.list.page.v[0], &t.err), t.err, ACT_PARTIAL, "odd/bad\\xff");
    store_call_release(&call);
    assert_int_equal(unlink(bad), 0);
}

TEST(test_folder_bad_prefix)
{
    static const char *const bad[] = {"../", "/etc/", "a//b", "./", "a/../b"};

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct store_call call = call_of(STORE_LIST, bad[i]);
        assert_int_equal(store_do(t.store, &call, &t.err), -ACT_FAIL);
    }
}

/* A tree deeper than any path that can be opened at once: listed, and its keys are refused elsewhere. */
TEST(test_folder_deep)
{
    enum { DEPTH = 25 };
    char name[201];
    ACT_AUTOFREE char *root = conform_store_in_root("deep");
    int fds[DEPTH + 1];

    memset(name, 'd', 200);
    name[200] = '\0';
    conform_store_put_text("deep/x", "x");
    assert_true((fds[0] = open(root, O_RDONLY | O_DIRECTORY)) >= 0);
    for (int i = 0; i < DEPTH; i++) {
        assert_int_equal(mkdirat(fds[i], name, 0755), 0);
        assert_true((fds[i + 1] = openat(fds[i], name, O_RDONLY | O_DIRECTORY)) >= 0);
    }
    ACT_AUTO(act_strv) keys = conform_store_list("deep/", false, 1);
    assert_int_equal(keys.n, 2);
    assert_int_equal(strlen(keys.v[0]), 5 + DEPTH * 201);
    assert_non_null(store_key_problem(t.store, keys.v[0]));
    assert_string_equal(keys.v[1], "deep/x");
    for (int i = DEPTH; i > 0; i--) {
        close(fds[i]);
        assert_int_equal(unlinkat(fds[i - 1], name, AT_REMOVEDIR), 0);
    }
    close(fds[0]);
}

TEST(test_folder_unreadable)
{
    ACT_AUTOFREE char *dir = conform_store_in_root("secret/dir");
    ACT_AUTO(store_call) call = call_of(STORE_LIST, "secret/");

    bool root = geteuid() == 0; /* who reads everything */
    conform_store_put_text("secret/dir/x", "x");
    conform_store_put_text("secret/z", "z");
    assert_int_equal(chmod(dir, 0), 0);
    assert_int_equal(root ? seteuid(65534) : 0, 0);
    int rc = store_do(t.store, &call, &t.err);
    struct store_call itself = call_of(STORE_LIST, "secret/dir/");
    int itself_rc = store_do(t.store, &itself, &t.err);
    assert_int_equal(root ? seteuid(0) : 0, 0);
    assert_int_equal(chmod(dir, 0755), 0);
    assert_fails(itself_rc, t.err, ACT_DENIED, "secret/dir");
    assert_int_equal(rc, 0);
    assert_int_equal(call.list.page.n, 2);
    assert_string_equal(call.list.page.v[0].key, "secret/dir/");
    assert_int_equal(call.list.page.v[0].kind, STORE_UNREADABLE);
    assert_int_equal(call.list.page.v[0].problem, EACCES);
    assert_string_equal(call.list.page.v[1].key, "secret/z");
}

/* As its owner, who may not write it before; somebody else's keeps its mode. */
TEST(test_folder_read_only)
{
    ACT_AUTOFREE char *root = conform_store_in_root("."), *ro = conform_store_in_root("ro"),
                      *sub = conform_store_in_root("ro/sub"), *its = conform_store_in_root("its");
    struct store_call link = call_of(STORE_PUT, "ro/link");
    struct stat st;
    uid_t nobody = 65534;

    if (geteuid() != 0)
        skip();
    conform_store_put_folder("ro/sub/", 0755);
    conform_store_put_folder("its/", 0750);
    assert_int_equal(chown(root, nobody, (gid_t)-1) + chown(ro, nobody, (gid_t)-1) + chown(sub, nobody, (gid_t)-1), 0);
    assert_int_equal(chmod(sub, 0555) + chmod(ro, 02555) + chmod(root, 0755), 0);
    conform_store_reopen();
    assert_int_equal(seteuid(nobody), 0);
    int refused = conform_store_put("ro/x", "x", 1);
    store_open_up(t.store, "ro/sub/");
    store_open_up(t.store, "ro/");
    store_open_up(t.store, "other/");
    int failed = conform_store_put("ro/x", "x", 1) | conform_store_put("ro/sub/new/x", "x", 1) |
                 conform_store_delete_key("ro/x");
    link.put.attr.kind = STORE_SYMLINK;
    failed |= put_call(&link, "x", 1);
    conform_store_put_folder("its/", 0700);
    failed |= sync_store();
    assert_int_equal(seteuid(0) + chown(root, 0, (gid_t)-1), 0);
    assert_int_equal(refused, -ACT_DENIED);
    assert_int_equal(failed, 0);
    assert_int_equal(stat(ro, &st) || (st.st_mode & 07777) != 02555, 0);
    assert_int_equal(stat(sub, &st) || (st.st_mode & 07777) != 0555, 0);
    assert_int_equal(stat(its, &st) || (st.st_mode & 07777) != 0750, 0);
}

TEST(test_folder_changing)
{
    ACT_AUTOFREE char *path = conform_store_in_root("chg/x");
    struct store_call call, get;
    char sink[10];

    conform_store_put_text("chg/x", "one");
    assert_ok(conform_store_head("chg/x", &call), t.err);
    assert_ok(act_file_write(path, "two", 3, 0644, &t.err), t.err);
    get = call_of(STORE_GET, "chg/x");
    get.get.sink = sink;
    get.get.sink_cap = sizeof(sink);
    get.get.if_match = call.entry.etag;
    assert_int_equal(store_do(t.store, &get, &t.err), -ACT_TEMPORARY);
    store_call_release(&call);
}

TEST(test_folder_part_length)
{
    struct store_upload_id id = new_id();
    ACT_AUTO(store_call) call = {0};

    conform_store_send_block("len/x", id, 1, "abcdefghij", 10, 5);
    conform_store_send_block("len/x", id, 0, "abcdefghij", 10, 5);
    call = commit_call("len/x", id, 2, 11);
    assert_fails(store_do(t.store, &call, &t.err), t.err, ACT_TEMPORARY, "10 of 11 bytes");
    call.commit.total = 10;
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    conform_store_assert_content("len/x", "abcdefghij", 10);
}

TEST(test_folder_url)
{
    char *url = NULL;

    assert_ok(store_url(t.store, "a b/\xc3\xa9%", "r", 60, &url, &t.err), t.err);
    assert_true(act_starts_with(url, "file:///"));
    assert_true(act_ends_with(url, "/root/a%20b/%C3%A9%25"));
    free(url);
    assert_int_equal(store_url(t.store, "a", "rw", 60, &url, &t.err), -ACT_USAGE);
    assert_true(act_starts_with(store_name(t.store), "folder:/"));
}

TEST(test_folder_open)
{
    ACT_AUTOFREE char *missing = act_sprintf("%s/nowhere", t.root), *link = act_sprintf("%s/link", t.root);
    ACT_AUTOFREE char *root = act_sprintf("%s/root", t.root), *file = conform_store_in_root("file");
    struct store *store = NULL;

    assert_int_equal(store_folder_open(t.http, missing, false, &store, &t.err), -ACT_NOT_FOUND);
    conform_store_put_text("file", "x");
    assert_int_not_equal(store_folder_open(t.http, file, false, &store, &t.err), 0);
    assert_int_equal(symlink(root, link), 0);
    assert_ok(store_folder_open(t.http, link, false, &store, &t.err), t.err); /* the root may be a link */
    ACT_AUTO(store_call) call = call_of(STORE_HEAD, "file");
    assert_ok(store_do(store, &call, &t.err), t.err);
    store_free(store);
    assert_ok(conform_store_delete_key("file"), t.err);
}

/* Files that appear and vanish while a listing is paged. */
TEST(test_folder_list_moving)
{
    struct store_call call = call_of(STORE_LIST, "mov/");

    conform_store_put_text("mov/a/1", "x");
    conform_store_put_text("mov/b/1", "x");
    conform_store_put_text("mov/b/2", "x");
    conform_store_put_text("mov/c", "x");
    call.list.max = 1;
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    assert_string_equal(call.list.page.v[0].key, "mov/a/1");
    ACT_AUTOFREE char *marker = act_strdup(call.list.page.next);
    store_call_release(&call);
    assert_ok(conform_store_delete_key("mov/b/1"), t.err);
    assert_ok(conform_store_delete_key("mov/b/2"), t.err);
    assert_ok(conform_store_delete_key("mov/b/"), t.err);
    call.list.marker = marker;
    call.list.max = 0;
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    assert_int_equal(call.list.page.n, 1);
    assert_string_equal(call.list.page.v[0].key, "mov/c");
    assert_null(call.list.page.next);
    store_call_release(&call);
}

/* ---- Azure Storage */

/* A server on this machine that the user trusts, which may so be given URLs to copy from. */
static int conform_store_open_azure(const char *key, const char *container, const char *endpoint, struct store **out)
{
    struct store_azure_options options = {.account = getenv("TEST_AZURE_ACCOUNT"),
                                          .container = container,
                                          .endpoint = endpoint,
                                          .is_share = t.share,
                                          .key = key,
                                          .sas = key ? NULL : getenv("TEST_AZURE_SAS")};

    setenv("ACT_TRUSTED_HOSTS", "127.0.0.1, *.localhost", 1);
    return store_azure_open(t.http, &options, out, &t.err);
}

static int head_there(struct store *store)
{
    ACT_AUTO(store_call) call = call_of(STORE_LIST, "");
    int rc = store_do(store, &call, &t.err);

    store_free(store);
    return rc;
}

static const char *container_name(void)
{
    return getenv(t.share ? "TEST_AZURE_SHARE" : "TEST_AZURE_CONTAINER");
}

static void assert_refusals(const char *missing)
{
    struct store *store = NULL;
    const char *endpoint = getenv("TEST_AZURE_ENDPOINT"), *container = container_name();

    assert_ok(conform_store_open_azure("bm90IHRoZSBrZXk=", container, endpoint, &store), t.err);
    assert_int_equal(head_there(store), -ACT_DENIED);
    assert_int_equal(t.err.http_status, 403);
    assert_true(t.err.service_code[0] && t.err.request_id[0]);
    assert_contains(act_error_text(&t.err), "HTTP 403");

    assert_ok(conform_store_open_azure(getenv("TEST_AZURE_KEY"), container, "http://127.0.0.1:1/x", &store), t.err);
    assert_int_equal(head_there(store), -ACT_TEMPORARY);

    if (!getenv("TEST_AZURE_KEY"))
        return; /* a SAS is for one container: another one is denied */
    assert_ok(conform_store_open_azure(getenv("TEST_AZURE_KEY"), "no-such-container", endpoint, &store), t.err);
    assert_fails(head_there(store), t.err, ACT_NOT_FOUND, missing);
    assert_int_equal(t.err.fact, ACT_FACT_CONTAINER_MISSING);
}

TEST(test_azure_refused)
{
    assert_refusals("ContainerNotFound");
}

TEST(test_share_refused)
{
    assert_refusals("ShareNotFound");
}

static void conform_store_set_flag(struct http_call *call)
{
    *(bool *)call->arg = true;
}

static void assert_fetched(struct http_call *call, int status)
{
    bool ended = false;

    call->done = conform_store_set_flag;
    call->arg = &ended;
    http_start(t.http, call);
    engine_run(t.engine, &ended);
    assert_ok(call->rc, call->error);
    assert_int_equal(call->status, status);
}

/* With whatever credential the store has. */
static int any_url(const char *key, const char *permissions, char **out)
{
    enum { LIFE_S = 600 };
    struct store_call call = {.op = STORE_URL,
                              .key = key ? key : "",
                              .url = {.permissions = permissions, .life_s = LIFE_S, .share_sas = true}};
    int rc = store_do(t.store, &call, &t.err);

    *out = act_strdup(call.url.text);
    store_call_release(&call);
    return rc;
}

static void assert_url_works(void)
{
    struct http_call call = {.method = "GET"};
    char *url = NULL;

    conform_store_put_text("url/a b&\xc3\xa9", "by url");
    assert_ok(any_url("url/a b&\xc3\xa9", "r", &url), t.err);
    call.url = url;
    assert_fetched(&call, 200);
    assert_string_equal(call.body_text.data, "by url");
    http_call_release(&call);
}

TEST(test_share_url)
{
    assert_url_works();
}

TEST(test_azure_url)
{
    struct http_call call;
    char *url = NULL;

    assert_url_works();
    if (!getenv("TEST_AZURE_KEY"))
        return;
    assert_ok(any_url(NULL, "rl", &url), t.err);
    call = (struct http_call){.method = "GET", .url = act_sprintf("%s&restype=container&comp=list", url)};
    free(url);
    assert_fetched(&call, 200);
    http_call_release(&call);
}

TEST(test_azure_stranger)
{
    /* The name is legal on Blob Storage, and a folder cannot have it. */
    conform_store_put_text("str/a", "file");
    conform_store_put_text("str/a/b", "below the file");
    static const char *const keys[] = {"str/a", "str/a/b"}, *const level[] = {"str/a", "str/a/"};
    conform_store_assert_list("str/", false, keys, 2);
    conform_store_assert_list("str/", true, level, 2);
    assert_true(act_starts_with(store_name(t.store), "blob:"));
}

/* The most that go at once, names to be encoded and folder markers among them. */
TEST(test_azure_delete_many)
{
    struct store_deletion deletions[STORE_MAX_DELETIONS] = {0};
    ACT_AUTO(store_call) call = call_of(STORE_DELETE_MANY, "");
    struct store_call puts[STORE_MAX_DELETIONS];
    ACT_AUTO(act_strv) keys = {0};
    int n = 0;

    for (size_t i = 0; i < COUNT(deletions); i++) {
        act_strv_pushf(&keys, i == 7 ? "batch/folder %zu/" : "batch/a b%%&+\xc3\xa9 %zu", i);
        deletions[i].key = keys.v[i];
        if (i % 8 == 1)
            continue;
        puts[n] = call_of(STORE_PUT, keys.v[i]);
        puts[n].put.attr.kind = i == 7 ? STORE_FOLDER : STORE_FILE;
        puts[n].put.data.bytes = "x";
        puts[n++].put.data.len = i != 7;
    }
    do_at_once(puts, n);
    release_all(puts, n);
    call.delete_many.v = deletions;
    call.delete_many.n = COUNT(deletions);
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    for (size_t i = 0; i < COUNT(deletions); i++)
        if (deletions[i].rc != (i % 8 != 1 ? 0 : -ACT_NOT_FOUND))
            fail_msg("%s: %d %s", keys.v[i], deletions[i].rc, act_error_text(&deletions[i].error));
    conform_store_assert_list("batch/", false, NULL, 0);
}

static int64_t conform_store_find_block(const struct store_call *call, const struct store_upload_id *id, bool committed)
{
    for (size_t i = 0; i < call->blocks.n_found; i++)
        if (store_block_index(id, &call->blocks.found[i]) >= 0 && call->blocks.found[i].committed == committed)
            return (int64_t)i;
    return -1;
}

/* Blocks that an object has are used for its next version without being sent again. */
TEST(test_azure_reuse_blocks)
{
    struct store_upload_id old = new_id(), new = new_id();
    struct store_call call = commit_call("reuse/x", old, 3, 9), found;
    struct store_block blocks[3];

    assert_true(store_traits(t.store)->takes_block_ids);
    for (uint32_t i = 0; i < 3; i++)
        conform_store_send_block("reuse/x", old, i, "aaabbbccc", 9, 3);
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    store_call_release(&call);
    conform_store_send_block("reuse/x", new, 1, "xxxyyyzzz", 9, 3);

    found = call_of(STORE_BLOCKS, "reuse/x");
    found.blocks.upload_id = new;
    assert_ok(store_do(t.store, &found, &t.err), t.err);
    assert_int_equal(found.blocks.n_found, 4);
    assert_true(conform_store_find_block(&found, &old, true) >= 0);
    assert_int_equal(conform_store_find_block(&found, &old, false), -1);
    int64_t sent = conform_store_find_block(&found, &new, false);
    assert_true(sent >= 0);
    assert_int_equal(store_block_index(&new, &found.blocks.found[sent]), 1);
    assert_int_equal(found.blocks.found[sent].len, 3);

    store_block_id(&old, 2, blocks[0].id);
    blocks[1] = found.blocks.found[sent];
    store_block_id(&old, 0, blocks[2].id);
    store_call_release(&found);
    call = commit_call("reuse/x", new, 3, 9);
    call.commit.blocks = blocks;
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    store_call_release(&call);
    conform_store_assert_content("reuse/x", "cccyyyaaa", 9);

    store_block_id(&old, 1, blocks[0].id); /* gone since */
    assert_int_equal(store_do(t.store, &call, &t.err), -ACT_TEMPORARY);
    assert_int_equal(t.err.fact, ACT_FACT_BLOCKS_MISSING);
    conform_store_assert_content("reuse/x", "cccyyyaaa", 9);

    struct store_call copy = call_of(STORE_COPY, "reuse/copy"); /* takes the blocks along */
    copy.copy.source = "reuse/x";
    assert_ok(store_do(t.store, &copy, &t.err), t.err);
    store_call_release(&copy);
    found = call_of(STORE_BLOCKS, "reuse/copy");
    assert_ok(store_do(t.store, &found, &t.err), t.err);
    assert_int_equal(found.blocks.n_found, 3);
    assert_true(conform_store_find_block(&found, &old, true) >= 0 && conform_store_find_block(&found, &new, true) >= 0);
    store_call_release(&found);

    found = call_of(STORE_BLOCKS, "reuse/nothing");
    assert_ok(store_do(t.store, &found, &t.err), t.err);
    assert_int_equal(found.blocks.n_found, 0);
    store_call_release(&found);
}

static struct store_call from_call(enum store_op op, struct store_source source)
{
    struct store_call call = call_of(op, "from/to");

    if (op == STORE_PUT_FROM)
        call.put_from.source = source;
    else
        call.block_from = (struct store_block_from){.source = source, .len = 9};
    return call;
}

/* The service fetches bytes by itself, or says so that the transfer knows to stream them. */
TEST(test_azure_from_url)
{
    struct store_upload_id id = new_id();
    struct store_call call = call_of(STORE_PUT, "from/source"), seen;
    char *url = NULL;

    call.put.attr.mtime_ns = 1700000000123456789;
    assert_ok(put_call(&call, "aaabbbccc", 9), t.err);
    assert_ok(conform_store_head("from/source", &seen), t.err);
    assert_ok(any_url("from/source", "r", &url), t.err);
    const struct store_source source = {.url = url, .match = seen.entry.etag};
    call = from_call(STORE_PUT_FROM, source);
    if (store_do(t.store, &call, &t.err)) {
        assert_int_equal(t.err.fact, ACT_FACT_NOT_BY_SERVICE);
        assert_lacks(act_error_text(&t.err), "sig=");
        goto end;
    }
    conform_store_assert_content("from/to", "aaabbbccc", 9);
    assert_everywhere("from/to", STORE_FILE, 1700000000123456789, -1);

    for (uint32_t i = 0; i < 3; i++) {
        store_call_release(&call);
        call = from_call(STORE_BLOCK_FROM, source);
        call.block_from.upload_id = id;
        call.block_from.index = 2 - i;
        call.block_from.offset = (uint64_t)i * 3;
        call.block_from.len = 3;
        assert_ok(store_do(t.store, &call, &t.err), t.err);
    }
    store_call_release(&call);
    call = commit_call("from/to", id, 3, 9);
    call.commit.source.url = url;
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    conform_store_assert_content("from/to", "cccbbbaaa", 9);
    assert_everywhere("from/to", STORE_FILE, 1700000000123456789, -1);

    conform_store_put_text("from/source", "something else");
    static const enum store_op ops[] = {STORE_PUT_FROM, STORE_BLOCK_FROM};
    for (size_t i = 0; i < COUNT(ops); i++) {
        store_call_release(&call);
        call = from_call(ops[i], source);
        assert_int_equal(store_do(t.store, &call, &t.err), -ACT_TEMPORARY);
        assert_int_not_equal(t.err.fact, ACT_FACT_NOT_BY_SERVICE);
    }
    conform_store_assert_content("from/to", "cccbbbaaa", 9);
end:
    store_call_release(&call);
    store_call_release(&seen);
    free(url);
}

/* A copy that is made of one version of the source, or not at all. */
TEST(test_azure_copy_of_one_version)
{
    ACT_AUTO(store_call) call = call_of(STORE_COPY, "version/copy");
    struct store_call seen;
    char etag[STORE_ETAG];

    conform_store_put_text("version/from", "one");
    assert_ok(conform_store_head("version/from", &seen), t.err);
    memcpy(etag, seen.entry.etag, sizeof(etag));
    store_call_release(&seen);
    conform_store_put_text("version/from", "two");
    call.copy.source = "version/from";
    call.copy.source_match = etag;
    assert_int_equal(store_do(t.store, &call, &t.err), -ACT_TEMPORARY);
    assert_int_equal(conform_store_head("version/copy", &seen), -ACT_NOT_FOUND);
    assert_ok(conform_store_head("version/from", &seen), t.err);
    memcpy(etag, seen.entry.etag, sizeof(etag));
    store_call_release(&seen);
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    conform_store_assert_content("version/copy", "two", 3);
}

/* Leaves a block with an id of len bytes, as another program would. */
static void leave_block(const char *key, size_t len)
{
    static const uint8_t id[64] = "another program's id of a block";
    ACT_AUTOFREE char *encoded = act_base64_encode(id, len);
    ACT_AUTOFREE char *escaped = http_encode(encoded, false);
    ACT_AUTOFREE char *url = NULL;

    assert_ok(any_url(key, "rw", &url), t.err);
    struct http_call call = {
        .method = "PUT", .url = act_sprintf("%s&comp=block&blockid=%s", url, escaped), .body = "theirs", .body_len = 6};
    http_header_set(&call.headers, "x-ms-version", "2021-12-02");
    assert_fetched(&call, 201);
    http_call_release(&call);
}

static void assert_upload(const char *key)
{
    struct store_upload_id id = new_id();
    ACT_AUTO(store_call) call = commit_call(key, id, 3, 9);

    for (uint32_t i = 0; i < 2; i++)
        conform_store_send_block(key, id, i, "aaabbbccc", 9, 3);
    assert_blocks(key, id, 9, "xx-");
    conform_store_reopen();
    assert_blocks(key, id, 9, "xx-");
    conform_store_send_block(key, id, 2, "aaabbbccc", 9, 3);
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    conform_store_assert_content(key, "aaabbbccc", 9);
}

/* Blocks of interrupted uploads of other programs, whose ids have other lengths, are in nobody's way. */
TEST(test_azure_foreign_blocks)
{
    static const size_t lengths[] = {6, 16, 20, 24, 36, 64};

    for (size_t i = 0; i < COUNT(lengths); i++) {
        ACT_AUTOFREE char *none = act_sprintf("foreign/none %zu", lengths[i]);
        ACT_AUTOFREE char *whole = act_sprintf("foreign/whole %zu", lengths[i]);
        leave_block(none, lengths[i]);
        assert_upload(none);
        assert_upload(none);
        if (lengths[i] < 8)
            continue;
        conform_store_put_text(whole, "in one piece");
        leave_block(whole, lengths[i]);
        conform_store_assert_content(whole, "in one piece", 12);
        assert_upload(whole);
    }

    conform_store_put_text("foreign/short", "kept");
    leave_block("foreign/short", 6);
    struct store_call call = call_of(STORE_BLOCK, "foreign/short");
    call.block.data.bytes = "x";
    call.block.data.len = 1;
    assert_fails(store_do(t.store, &call, &t.err), t.err, ACT_FAIL, "another program's upload are in the way");
    conform_store_assert_content("foreign/short", "kept", 4);
}

/* Several blocks of one upload meet them at once. */
TEST(test_azure_foreign_blocks_at_once)
{
    enum { N = 8 };
    struct store_call calls[N];
    struct store_upload_id id = new_id();

    leave_block("foreign/once", 36);
    for (uint32_t i = 0; i < N; i++) {
        calls[i] = call_of(STORE_BLOCK, "foreign/once");
        calls[i].block.upload_id = id;
        calls[i].block.index = i;
        calls[i].block.data.bytes = &"01234567"[i];
        calls[i].block.data.len = 1;
    }
    do_at_once(calls, N);
    release_all(calls, N);
    ACT_AUTO(store_call) call = commit_call("foreign/once", id, N, N);
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    conform_store_assert_content("foreign/once", "01234567", N);
}

/* The checksum of the whole is kept with the object, and gone with it. */
TEST(test_azure_crc64)
{
    const uint64_t crc64 = 0x8d29d5c3f6ea8ebe;
    struct store_upload_id id = new_id();
    ACT_AUTO(store_call) call = commit_call("crcs/x", id, 1, 11);
    struct store_call seen;
    char sink[11];

    conform_store_send_block("crcs/x", id, 0, "hello world", 11, 11);
    call.commit.attr.crc64 = &crc64;
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    assert_ok(conform_store_head("crcs/x", &seen), t.err);
    assert_true(seen.entry.has_crc64 && seen.entry.crc64 == crc64);
    store_call_release(&seen);
    assert_ok(conform_store_get_range("crcs/x", 0, sink, sizeof(sink), &seen), t.err);
    assert_true(seen.entry.has_crc64 && seen.entry.crc64 == crc64);
    store_call_release(&seen);
    seen = call_of(STORE_LIST, "crcs/");
    assert_ok(store_do(t.store, &seen, &t.err), t.err);
    assert_true(seen.list.page.v[0].has_crc64 && seen.list.page.v[0].crc64 == crc64);
    store_call_release(&seen);
    conform_store_put_text("crcs/x", "another");
    assert_ok(conform_store_head("crcs/x", &seen), t.err);
    assert_false(seen.entry.has_crc64);
    store_call_release(&seen);
}

/* ---- Azure Files alone */

/* What takes the place of a name in other capitals is refused, and what is there stays. */
TEST(test_share_capitals)
{
    static const char *const keys[] = {"case/Dir/Name", "case/lower"};
    struct store_call call = call_of(STORE_PUT, "case/dir/");

    conform_store_put_text("case/Dir/Name", "first");
    conform_store_put_text("case/lower", "x");
    conform_store_reopen();
    assert_fails(conform_store_put("case/Dir/name", "second", 6), t.err, ACT_FAIL, "'case/Dir/Name' is there");
    assert_fails(conform_store_put("case/dir/other", "second", 6), t.err, ACT_FAIL, "'case/Dir/' is there");
    call.put.attr.kind = STORE_FOLDER;
    assert_fails(put_call(&call, NULL, 0), t.err, ACT_FAIL, "does not tell capitals");
    assert_fails(conform_store_head("case/dir/Name", &call), t.err, ACT_NOT_FOUND, "its name there is 'case/Dir/'");
    call = call_of(STORE_LIST, "case/dir/");
    assert_fails(store_do(t.store, &call, &t.err), t.err, ACT_NOT_FOUND, "its name there is 'case/Dir/'");
    call = call_of(STORE_HEAD, "case/dir/");
    assert_fails(store_do(t.store, &call, &t.err), t.err, ACT_NOT_FOUND, "its name there is 'case/Dir/'");
    conform_store_put_text("case/Dir/Name", "third");
    conform_store_assert_content("case/Dir/Name", "third", 5);
    conform_store_assert_list("case/", false, keys, COUNT(keys));
    struct act_strv none = leftovers("case/");
    assert_int_equal(none.n, 0);
}

/* A name is a file or a folder, and neither takes the place of the other. */
TEST(test_share_kinds)
{
    static const char *const keys[] = {"kinds/dir/x", "kinds/file"};
    struct store_call call = call_of(STORE_PUT, "kinds/file/");

    conform_store_put_text("kinds/file", "x");
    conform_store_put_text("kinds/dir/x", "x");
    assert_fails(conform_store_put("kinds/file/below", "x", 1), t.err, ACT_FAIL, "is a file, not a folder");
    assert_fails(conform_store_put("kinds/dir", "x", 1), t.err, ACT_FAIL, "folder of this name");
    call.put.attr.kind = STORE_FOLDER;
    assert_int_equal(put_call(&call, NULL, 0), -ACT_FAIL);
    assert_fails(conform_store_delete_key("kinds/dir/"), t.err, ACT_FAIL, "not empty");
    conform_store_assert_list("kinds/", false, keys, COUNT(keys));
    struct act_strv none = leftovers("kinds/");
    assert_int_equal(none.n, 0);
}

/* A folder that could not be made, as a file was in its place, and that somebody else has made since. */
TEST(test_share_folder_of_others)
{
    struct store_call call;

    conform_store_put_text("made/dir", "x");
    assert_fails(conform_store_put("made/dir/x", "x", 1), t.err, ACT_FAIL, "is a file, not a folder");
    assert_ok(conform_store_delete_key("made/dir"), t.err);
    struct store *here = t.store;
    assert_ok(conform_store_open(), t.err);
    conform_store_put_text("made/dir/x", "y");
    store_free(t.store);
    t.store = here;
    assert_ok(conform_store_head("made/dir/x", &call), t.err);
    store_call_release(&call);
    conform_store_put_text("made/dir/x", "z");
}

TEST(test_share_names)
{
    static const char *const bad[] = {"a?",   "a:b",       "<x>", "\"q\"",    "p|q", "s*",
                                      "a\\b", "tab\there", "nul", "d/com1/x", "a//b"};
    static const char *const keys[] = {"names/dot.", "names/dot..", "names/space "};
    char longest[257];

    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_non_null(store_key_problem(t.store, bad[i]));
        assert_int_equal(conform_store_put(bad[i], "x", 1), -ACT_FAIL);
    }
    memset(longest, 'n', 256);
    longest[256] = '\0';
    assert_non_null(store_key_problem(t.store, longest));
    longest[255] = '\0';
    assert_null(store_key_problem(t.store, longest));
    for (size_t i = 0; i < COUNT(keys); i++)
        conform_store_put_text(keys[i], keys[i]);
    for (size_t i = 0; i < COUNT(keys); i++)
        conform_store_assert_content(keys[i], keys[i], strlen(keys[i]));
    conform_store_assert_list("names/", false, keys, COUNT(keys));
}

/* More than one range, at once and in blocks. */
TEST(test_share_ranges)
{
    enum { LEN = (9 << 20) + 17, BLOCK_LEN = 5 << 20 };
    struct store_upload_id id = new_id();
    ACT_AUTOFREE char *data = pattern(LEN, 11);
    struct store_call call = call_of(STORE_PUT, "ranges/whole");
    struct store_sums sums = new_sums();
    char md5[ACT_MD5_BASE64];

    conform_store_md5_of(data, LEN, md5);
    call.put.data.md5 = md5;
    call.put.data.sums = &sums;
    assert_ok(put_call(&call, data, LEN), t.err);
    assert_sums(&sums, data, LEN);
    conform_store_assert_content("ranges/whole", data, LEN);
    md5[0] ^= 1;
    assert_fails(put_call(&call, data, LEN), t.err, ACT_FAIL, "checksum");
    for (uint32_t i = 2; i-- > 0;)
        conform_store_send_block("ranges/blocks", id, i, data, LEN, BLOCK_LEN);
    call = commit_call("ranges/blocks", id, 2, LEN);
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    store_call_release(&call);
    conform_store_assert_content("ranges/blocks", data, LEN);
    struct act_strv none = leftovers("ranges/");
    assert_int_equal(none.n, 0);
}

static void write_as_others(const char *key, const char *text)
{
    char *url = NULL;

    assert_ok(any_url(key, "rw", &url), t.err);
    struct http_call call = {
        .method = "PUT", .url = act_sprintf("%s&comp=range", url), .body = text, .body_len = strlen(text)};
    http_header_set(&call.headers, "x-ms-version", "2021-12-02");
    http_header_set(&call.headers, "x-ms-write", "update");
    http_header_setf(&call.headers, "x-ms-range", "bytes=0-%zu", strlen(text) - 1);
    assert_fetched(&call, 201);
    http_call_release(&call);
    free(url);
}

/* Who mounts the share leaves metadata and MD5 as they are: they are not those of the new bytes. */
TEST(test_share_written_by_others)
{
    const uint64_t crc64 = 1;
    struct store_upload_id id = new_id();
    struct store_call call = commit_call("others/x", id, 1, 5), seen;

    conform_store_send_block("others/x", id, 0, "hello", 5, 5);
    call.commit.attr.crc64 = &crc64;
    call.commit.attr.md5 = "XUFAKrxLKna5cZ2REBfFkg==";
    call.commit.attr.mtime_ns = 1500000000000000001;
    assert_ok(store_do(t.store, &call, &t.err), t.err);
    store_call_release(&call);
    assert_ok(conform_store_head("others/x", &seen), t.err);
    assert_true(seen.entry.has_crc64 && seen.entry.md5[0]);
    store_call_release(&seen);
    write_as_others("others/x", "other");
    assert_ok(conform_store_head("others/x", &seen), t.err);
    assert_true(!seen.entry.has_crc64 && !seen.entry.md5[0]);
    assert_true(seen.entry.mtime_ns > 1600000000000000000);
    store_call_release(&seen);
}

/* Folders are made again when somebody removed them since. */
TEST(test_share_folders_vanish)
{
    conform_store_put_text("vanish/a/b/x", "x");
    struct store *other = t.store;
    assert_ok(conform_store_open(), t.err);
    assert_ok(conform_store_delete_key("vanish/a/b/x"), t.err);
    assert_ok(conform_store_delete_key("vanish/a/b/"), t.err);
    assert_ok(conform_store_delete_key("vanish/a/"), t.err);
    store_free(t.store);
    t.store = other;
    conform_store_put_text("vanish/a/b/x", "again");
    conform_store_assert_content("vanish/a/b/x", "again", 5);
    assert_true(act_starts_with(store_name(t.store), "file:"));
}

/* ---- */

static int setup_engine(void)
{
    t.engine = engine_new(NULL);
    t.http = http_new(t.engine, &(struct http_options){.max_retries = 2});
    return 0;
}

/* The other end of a far store, another process of this program. */
static int conform_store_open_far(const char *root, bool create, struct store **out)
{
    char self[] = "/proc/self/exe", how[] = "create", find[] = "find";
    ACT_AUTOFREE char *folder = act_strdup(root);
    char *argv[] = {self, create ? how : find, folder, NULL};
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_ok(proc_start(&(struct proc_start){.argv = argv, .in_fd = ends[1], .out_fd = ends[1], .err_fd = 2},
                         &t.far_pid, &t.err),
              t.err);
    close(ends[1]);
    return store_far_open_fds(t.http, ends[0], fcntl(ends[0], F_DUPFD_CLOEXEC, 0), out, &t.err);
}

static int conform_store_serve(const char *root, bool create)
{
    setup_engine();
    int rc = store_far_serve(t.http, root, create, NULL, dup(STDIN_FILENO), dup(STDOUT_FILENO), &t.err);
    http_free(t.http);
    engine_free(t.engine);
    return -rc;
}

static int conform_store_open(void)
{
    ACT_AUTOFREE char *root = act_sprintf("%s/root", t.root);

    if (t.azure || t.share)
        return conform_store_open_azure(getenv("TEST_AZURE_KEY"), container_name(), getenv("TEST_AZURE_ENDPOINT"),
                                        &t.store);
    return t.far ? conform_store_open_far(root, true, &t.store)
                 : store_folder_open(t.http, root, true, &t.store, &t.err);
}

static int setup_folder(void **state)
{
    const char *tmp = getenv("TMPDIR");

    (void)state;
    setup_engine();
    t.far = getenv("TEST_FAR");
    snprintf(t.root, sizeof(t.root), "%.40s/act-store-XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
    if (!mkdtemp(t.root))
        return -1;
    return conform_store_open();
}

static int setup_azure(void **state)
{
    (void)state;
    setup_engine();
    t.share = getenv("TEST_AZURE_SHARE");
    t.azure = !t.share;
    int rc = conform_store_open();
    if (rc)
        fprintf(stderr, "%s\n", act_error_text(&t.err));
    return rc;
}

static int conform_store_teardown(void **state)
{
    (void)state;
    store_free(t.store);
    http_free(t.http);
    engine_free(t.engine);
    return t.azure || t.share ? 0 : act_remove_tree(t.root, &t.err);
}

int main(int argc, char **argv)
{
    bool is_service = getenv("TEST_AZURE_ENDPOINT"), is_share = getenv("TEST_AZURE_SHARE");

    if (argc == 3)
        return conform_store_serve(argv[2], strcmp(argv[1], "create") == 0);
    if (getenv("TEST_FAR")) { /* the other process has no other user, and nobody reads a file by its URL */
        tests_leave_out("test_folder_unreadable");
        tests_leave_out("test_folder_read_only");
        tests_leave_out("test_folder_url");
    }

    if (is_service)
        tests_leave_out("test_folder_");
    if (!is_service || is_share)
        tests_leave_out("test_azure_");
    if (!is_share)
        tests_leave_out("test_share_");
    return is_service ? tests_run(setup_azure, conform_store_teardown)
                      : tests_run(setup_folder, conform_store_teardown);
}
