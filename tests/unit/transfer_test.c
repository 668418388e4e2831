/* Transfers between stores that fail on command: what arrives is whole, what fails is named, what was there
 * stays. */
#define TEST_SETUP    transfer_test_setup
#define TEST_TEARDOWN transfer_test_teardown
#include "unit/test.h"

#include <stdio.h>

#include "base/crc64.h"
#include "http/http.h"
#include "store/store_internal.h"
#include "transfer/copy.h"

/* A store in memory that answers from the loop and fails where it is told to. */
struct stored {
    char *key, *data;
    size_t len;
    char md5[ACT_MD5_BASE64];
    uint64_t crc64;
    bool has_crc64;
    int version;
};

struct block {
    struct store_upload_id upload;
    uint32_t index;
    uint64_t offset;
    char *data;
    size_t len;
};

struct memory {
    struct store store;
    struct stored v[64];
    size_t n;
    struct block blocks[1024]; /* of all uploads */
    size_t n_blocks;
    int versions, drops, most_under_way, under_way;
    int calls[STORE_OPS];
    bool no_md5, no_crc64; /* it does not keep them */
    bool busy;             /* somebody else has every upload */
    bool lose_a_block;     /* before the next COMMIT */
    enum store_op fail_op;
    int fail_at; /* the Nth call of fail_op fails (from 1); 0: never */
    struct act_error fail_with;
    bool corrupt_get;
    uint64_t claimed_size; /* what HEAD and LIST say of every object; 0: the truth */
    int page;
    int vanishes; /* from this LIST on there is nothing in it; 0: never */
};

static struct memory *memory_of(struct store *store)
{
    return (struct memory *)store;
}

static struct stored *transfer_test_find(struct memory *m, const char *key)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->v[i].key, key) == 0)
            return &m->v[i];
    return NULL;
}

static void transfer_test_md5_of(const void *data, size_t len, char out[ACT_MD5_BASE64])
{
    struct act_md5 h;

    act_md5_init(&h);
    act_md5_add(&h, data, len);
    act_md5_done(&h, out);
}

static int compare_objects(const void *a, const void *b)
{
    return strcmp(((const struct stored *)a)->key, ((const struct stored *)b)->key);
}

static void transfer_test_put(struct memory *m, const char *key, const void *data, size_t len)
{
    struct stored *o = transfer_test_find(m, key);

    if (!o) {
        o = &m->v[m->n++];
        *o = (struct stored){.key = act_strdup(key)};
    }
    free(o->data);
    o->data = act_alloc(len + 1);
    memcpy(o->data, data, len);
    o->len = len;
    o->version = ++m->versions;
    transfer_test_md5_of(data, len, o->md5);
    qsort(m->v, m->n, sizeof(m->v[0]), compare_objects);
}

static void transfer_test_describe(const struct memory *m, const struct stored *o, struct store_entry *e)
{
    *e =
        (struct store_entry){.key = act_strdup(o->key), .size = m->claimed_size ? m->claimed_size : o->len, .mode = -1};
    if (!m->no_md5)
        memcpy(e->md5, o->md5, sizeof(e->md5));
    e->has_crc64 = o->has_crc64 && !m->no_crc64;
    e->crc64 = o->crc64;
    e->last_modified_s = 1000; /* long ago */
    snprintf(e->etag, sizeof(e->etag), "\"%d\"", o->version);
}

static int absent(struct store_call *call)
{
    return act_error_set(&call->error, ACT_NOT_FOUND, "no '%s'", call->key);
}

/* Bytes of the blocks of an upload. */
static int get_from_upload(struct memory *m, struct store_call *call)
{
    for (size_t i = 0; i < m->n_blocks; i++) {
        const struct block *b = &m->blocks[i];
        if (memcmp(&b->upload, call->get.upload, sizeof(b->upload)) != 0 || b->offset != call->get.offset)
            continue;
        call->get.got = b->len;
        memcpy(call->get.sink, b->data, b->len);
        return 0;
    }
    return absent(call);
}

static int do_head(struct memory *m, struct store_call *call)
{
    struct stored *o = transfer_test_find(m, call->key);

    if (!o)
        return absent(call);
    transfer_test_describe(m, o, &call->entry);
    return 0;
}

static int do_get(struct memory *m, struct store_call *call)
{
    struct stored *o = transfer_test_find(m, call->key);
    char etag[STORE_ETAG];

    if (!o)
        return absent(call);
    snprintf(etag, sizeof(etag), "\"%d\"", o->version);
    if (call->get.if_match && strcmp(call->get.if_match, etag) != 0)
        return act_error_set(&call->error, ACT_TEMPORARY, "'%s' changed", call->key);
    transfer_test_describe(m, o, &call->entry);
    call->get.got = call->get.offset >= o->len ? 0 : o->len - call->get.offset;
    if (call->get.got > call->get.sink_cap)
        call->get.got = call->get.sink_cap;
    if (call->get.got)
        memcpy(call->get.sink, o->data + call->get.offset, call->get.got);
    if (m->corrupt_get && call->get.got)
        ((char *)call->get.sink)[0] ^= 1;
    return 0;
}

/* Puts an object, and checks what the writer says of the whole. */
static void transfer_test_put_whole(struct memory *m, const char *key, const struct store_attributes *attr,
                                    const void *data, size_t len)
{
    transfer_test_put(m, key, data, len);
    struct stored *o = transfer_test_find(m, key);
    o->has_crc64 = attr->crc64 != NULL;
    o->crc64 = attr->crc64 ? *attr->crc64 : 0;
    if (attr->crc64)
        assert_true(o->crc64 == act_crc64(0, data, len));
    if (attr->md5)
        assert_string_equal(o->md5, attr->md5);
}

static struct block *transfer_test_find_block(struct memory *m, const struct store_upload_id *upload, uint32_t index)
{
    for (size_t i = 0; i < m->n_blocks; i++)
        if (m->blocks[i].index == index && memcmp(&m->blocks[i].upload, upload, sizeof(*upload)) == 0)
            return &m->blocks[i];
    return NULL;
}

static void remove_block(struct memory *m, size_t i)
{
    free(m->blocks[i].data);
    m->blocks[i] = m->blocks[--m->n_blocks];
}

static int check_data(const struct store_data *data, struct store_call *call)
{
    char md5[ACT_MD5_BASE64];

    transfer_test_md5_of(data->bytes, data->len, md5);
    if ((data->md5 && strcmp(data->md5, md5) != 0) ||
        (data->crc64 && *data->crc64 != act_crc64(0, data->bytes, data->len)))
        return act_error_set(&call->error, ACT_FAIL, "'%s' was damaged: MD5 or CRC-64", call->key);
    store_sums_add(data->sums, data->bytes, data->len);
    return 0;
}

static int do_put(struct memory *m, struct store_call *call)
{
    const struct store_put *put = &call->put;
    int rc = check_data(&put->data, call);

    if (rc == 0)
        transfer_test_put_whole(m, call->key, &put->attr, put->data.bytes, put->data.len);
    return rc;
}

static int do_block(struct memory *m, struct store_call *call)
{
    const struct store_put_block *from = &call->block;
    int rc = check_data(&from->data, call);

    if (rc)
        return rc;
    struct block *b =
        transfer_test_find_block(m, &from->upload_id, from->index); /* it takes the place of an older one */
    if (b)
        remove_block(m, (size_t)(b - m->blocks));
    b = &m->blocks[m->n_blocks++];
    assert_int_equal(from->offset % 4, 0);
    *b = (struct block){.upload = from->upload_id, .index = from->index, .len = from->data.len, .offset = from->offset};
    b->data = act_alloc(from->data.len);
    memcpy(b->data, from->data.bytes, from->data.len);
    return 0;
}

static int do_blocks(struct memory *m, struct store_call *call)
{
    if (m->busy)
        return act_error_set(&call->error, ACT_TEMPORARY, "somebody else has '%s'", call->key);
    call->blocks.found = act_calloc(m->n_blocks + 1, sizeof(*call->blocks.found));
    for (size_t i = 0; i < m->n_blocks; i++) {
        struct store_block *b = &call->blocks.found[call->blocks.n_found++];
        store_block_id(&m->blocks[i].upload, m->blocks[i].index, b->id);
        b->len = m->blocks[i].len;
        b->has_crc64 = m->store.ops->traits.sums_are_free;
        b->crc64 = act_crc64(0, m->blocks[i].data, b->len);
    }
    return 0;
}

static int do_drop(struct memory *m, struct store_call *call)
{
    m->drops++;
    for (size_t i = m->n_blocks; i-- > 0 && !call->drop.keep;)
        if (memcmp(&m->blocks[i].upload, &call->drop.upload_id, sizeof(struct store_upload_id)) == 0)
            remove_block(m, i);
    return 0;
}

static int do_commit(struct memory *m, struct store_call *call)
{
    struct act_buf whole = {0};

    if (m->lose_a_block)
        remove_block(m, 0);
    m->lose_a_block = false;
    for (uint32_t i = 0; i < call->commit.n_blocks; i++) {
        const struct block *b = transfer_test_find_block(m, &call->commit.upload_id, i);
        if (!b) {
            act_buf_release(&whole);
            act_error_set(&call->error, ACT_TEMPORARY, "block %u of '%s' is missing", i, call->key);
            call->error.fact = ACT_FACT_BLOCKS_MISSING;
            return -ACT_TEMPORARY;
        }
        act_buf_add(&whole, b->data, b->len);
    }
    assert_int_equal(whole.len, call->commit.total);
    transfer_test_put_whole(m, call->key, &call->commit.attr, whole.data, whole.len);
    act_buf_release(&whole);
    return 0;
}

static int do_delete(struct memory *m, struct store_call *call)
{
    struct stored *o = transfer_test_find(m, call->key);

    if (!o)
        return absent(call);
    free(o->key);
    free(o->data);
    *o = m->v[--m->n];
    qsort(m->v, m->n, sizeof(m->v[0]), compare_objects);
    return 0;
}

static int do_delete_many(struct memory *m, struct store_call *call)
{
    for (size_t i = 0; i < call->delete_many.n; i++) {
        struct store_deletion *d = &call->delete_many.v[i];
        struct store_call one = {.op = STORE_DELETE, .key = d->key};
        d->rc = do_delete(m, &one);
        d->error = one.error;
    }
    return 0;
}

static int transfer_test_do_list(struct memory *m, struct store_call *call)
{
    int max = call->list.max ? call->list.max : m->page;

    call->list.page.v = act_calloc((size_t)max, sizeof(*call->list.page.v));
    if (m->vanishes && m->calls[STORE_LIST] >= m->vanishes)
        return 0;
    for (size_t i = 0; i < m->n; i++) {
        if (!act_starts_with(m->v[i].key, call->key) ||
            (call->list.marker && strcmp(m->v[i].key, call->list.marker) <= 0))
            continue;
        if (call->list.page.n == (size_t)max) {
            call->list.page.next = act_strdup(call->list.page.v[max - 1].key);
            break;
        }
        transfer_test_describe(m, &m->v[i], &call->list.page.v[call->list.page.n++]);
    }
    return 0;
}

/* The URL of a memory store is the address of the object. */
static int do_url(struct memory *m, struct store_call *call)
{
    assert_string_equal(call->url.permissions, "r");
    assert_true(call->url.life_s > 0);
    call->url.text = act_sprintf("%p", (void *)transfer_test_find(m, call->key));
    return 0;
}

static int do_from(struct memory *m, struct store_call *call)
{
    struct stored *source = NULL;
    char etag[STORE_ETAG];

    assert_int_equal(sscanf(call->put_from.source.url, "%p", (void **)&source), 1);
    snprintf(etag, sizeof(etag), "\"%d\"", source->version);
    if (call->put_from.source.match && strcmp(call->put_from.source.match, etag) != 0)
        return act_error_set(&call->error, ACT_TEMPORARY, "the source has changed");
    transfer_test_put(m, call->key, source->data, source->len);
    return 0;
}

static int do_get_with_sums(struct memory *m, struct store_call *call)
{
    int rc = call->get.upload ? get_from_upload(m, call) : do_get(m, call);

    if (rc == 0)
        store_sums_add(call->get.sums, call->get.sink, call->get.got);
    return rc;
}

static int (*const operations[STORE_OPS])(struct memory *m, struct store_call *call) = {
    [STORE_HEAD] = do_head,
    [STORE_GET] = do_get_with_sums,
    [STORE_BLOCKS] = do_blocks,
    [STORE_DROP] = do_drop,
    [STORE_PUT_FROM] = do_from,
    [STORE_PUT] = do_put,
    [STORE_BLOCK] = do_block,
    [STORE_COMMIT] = do_commit,
    [STORE_DELETE] = do_delete,
    [STORE_DELETE_MANY] = do_delete_many,
    [STORE_LIST] = transfer_test_do_list,
    [STORE_URL] = do_url,
};

static int transfer_test_perform(struct memory *m, struct store_call *call)
{
    m->calls[call->op]++;
    if (call->op == m->fail_op && m->fail_at && --m->fail_at == 0) {
        call->error = m->fail_with;
        return -(int)m->fail_with.code;
    }
    if (!operations[call->op])
        fail_msg("operation %d", call->op);
    return operations[call->op](m, call);
}

struct pending {
    struct memory *memory;
    struct store_call *call;
};

static void fire(void *arg)
{
    ACT_AUTOFREE struct pending *p = arg;
    struct store_call *call = p->call;
    int rc = transfer_test_perform(p->memory, call);

    p->memory->under_way--;
    store_finish(call, rc);
}

static struct engine *engine;

static void memory_start(struct store *store, struct store_call *call)
{
    struct memory *m = memory_of(store);
    struct pending *p = act_alloc(sizeof(*p));

    *p = (struct pending){m, call};
    if (++m->under_way > m->most_under_way)
        m->most_under_way = m->under_way;
    /* odd parts take longer: they arrive out of order */
    engine_timer(engine, call->op == STORE_GET && call->get.offset % 8 ? 2 : 0, fire, p);
}

static const char *no_problem(const char *key)
{
    return strstr(key, "bad") ? "is bad" : NULL;
}

static void memory_close(struct store *store)
{
    (void)store;
}

static int memory_window(const struct store *store)
{
    (void)store;
    return 3;
}

enum { SERVICE_OPERATIONS = STORE_BIT(STORE_PUT_FROM) | STORE_BIT(STORE_BLOCK_FROM) | STORE_BIT(STORE_URL) };

static const struct store_ops memory_ops = {
    .operations = ~(SERVICE_OPERATIONS | STORE_BIT(STORE_CLEAR) | STORE_BIT(STORE_SYNC)),
    .start = memory_start,
    .key_problem = no_problem,
    .window = memory_window,
    .close = memory_close,
    .traits = {.max_put = 1 << 20},
};

/* One that passes a worker anyway, as a folder does, and one whose service copies by itself. */
static struct store_ops folder_ops, service_ops;

static struct http *http;

static void memory_init(struct memory *m, const char *name)
{
    *m = (struct memory){.store = {.ops = &memory_ops, .http = http, .name = act_strdup(name)}, .page = 3};
}

static void memory_release(struct memory *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free(m->v[i].key);
        free(m->v[i].data);
    }
    for (size_t i = 0; i < m->n_blocks; i++)
        free(m->blocks[i].data);
    free(m->store.name);
}

static void transfer_test_fail_at(struct memory *m, enum store_op op, int at)
{
    m->fail_op = op;
    m->fail_at = at;
    act_error_set(&m->fail_with, ACT_FAIL, "told to fail");
}

struct pair {
    struct memory from, to;
    struct transfer_report report;
    struct act_error err;
};

static int transfer_test_setup(void **state)
{
    struct pair *p = act_calloc(1, sizeof(*p));

    memory_init(&p->from, "memory:from");
    memory_init(&p->to, "memory:to");
    *state = p;
    return 0;
}

static int transfer_test_teardown(void **state)
{
    ACT_AUTOFREE struct pair *p = *state;

    transfer_report_release(&p->report);
    memory_release(&p->from);
    memory_release(&p->to);
    return 0;
}

static int transfer_test_copy(struct pair *p, const char *from, const char *to, const struct transfer_options *options)
{
    ACT_AUTO(transfer_path) path = {0};
    int rc = transfer_resolve(&p->from.store, from, &path, &p->err);

    if (rc < 0)
        return rc;
    transfer_report_release(&p->report);
    return transfer_copy(engine, &path, &p->to.store, to, options, &p->report, &p->err);
}

static const struct transfer_options small_parts = {.part_size = 4, .memory = 16, .md5_max = 1};

static const char large[] = "twenty-three bytes long";

/* Puts it at the source. */
static void put_large(struct pair *p)
{
    transfer_test_put(&p->from, "a/f", large, strlen(large));
}

static void put_numbered(struct memory *m, const char *prefix, int number, const char *data)
{
    ACT_AUTOFREE char *key = act_sprintf("%s%02d", prefix, number);

    transfer_test_put(m, key, data, strlen(data));
}

static void transfer_test_assert_content(struct memory *m, const char *key, const char *data)
{
    struct stored *o = transfer_test_find(m, key);

    assert_non_null(o);
    assert_int_equal(o->len, strlen(data));
    assert_memory_equal(o->data, data, o->len);
}

TEST(folder_arrives_whole)
{
    struct pair *p = *state;
    static const char *const data[] = {"", "1", "1234", "12345", "12345678901234567890123", "x"};

    for (int i = 0; i < 6; i++)
        put_numbered(&p->from, "d/voc2/f", i, data[i]);
    transfer_test_put(&p->from, "d/voc2012/other", "no", 2);
    assert_ok(transfer_test_copy(p, "d/voc2", "e", &small_parts), p->err);
    for (int i = 0; i < 6; i++) {
        char key[32];
        snprintf(key, sizeof(key), "e/f%02d", i);
        transfer_test_assert_content(&p->to, key, data[i]);
    }
    assert_int_equal(p->to.n, 6);
    assert_int_equal(p->report.total.done_objects, 6);
    assert_int_equal(p->report.total.done_bytes, 34);
    assert_true(p->from.most_under_way <= 3 + 3 + 1); /* parts, and a page */
    /* once more: nothing to do, since the MD5 agrees */
    assert_ok(transfer_test_copy(p, "d/voc2", "e", &small_parts), p->err);
    assert_int_equal(p->report.total.done_objects, 0);
    assert_int_equal(p->report.total.same_objects, 6);
}

struct foresight {
    const struct memory *to;
    uint64_t known;
    size_t there; /* when the last was known */
};

static void note_step(void *arg, const struct transfer_step *step)
{
    struct foresight *f = arg;

    (void)step;
    f->known++;
    f->there = f->to->n;
}

/* So one can say early how long it takes. */
TEST(all_objects_are_known_before_most_are_moved)
{
    struct pair *p = *state;
    struct foresight f = {.to = &p->to};
    struct transfer_options options = {.plan = note_step, .arg = &f};

    p->from.page = p->to.page = 100;
    for (int i = 0; i < 60; i++)
        put_numbered(&p->from, "d/", i, "some bytes");
    assert_ok(transfer_test_copy(p, "d", "e", &options), p->err);
    assert_int_equal(f.known, 60);
    assert_int_equal(f.there, 0);
    assert_int_equal(p->to.n, 60);
}

/* Every operation of either side fails once, at every point: no crash, no leak, the old object stays whole or
 * is replaced as a whole, and the failure is told. */
TEST(torture)
{
    struct pair *p = *state;
    static const enum store_op ops[] = {STORE_GET, STORE_LIST, STORE_PUT, STORE_BLOCK, STORE_COMMIT};
    static const char old[] = "the old one stays", new[] = "this is the new content of it";

    transfer_test_put(&p->from, "a/f", new, strlen(new));
    transfer_test_put(&p->from, "a/g", "small", 4);
    for (size_t i = 0; i < COUNT(ops); i++)
        for (int at = 1; at < 12; at++) {
            struct memory *side = ops[i] <= STORE_GET || (ops[i] == STORE_LIST && at % 2) ? &p->from : &p->to;
            transfer_test_put(&p->to, "b/f", old, strlen(old));
            transfer_test_fail_at(side, ops[i], ops[i] == STORE_LIST && side == &p->from ? at + 1 : at);
            int rc = transfer_test_copy(p, "a", "b", &small_parts);
            bool failed = side->fail_at == 0;
            side->fail_at = 0;
            assert_int_equal(rc != 0, failed);
            if (failed)
                assert_contains(act_error_text(&p->err), "told to fail");
            struct stored *o = transfer_test_find(&p->to, "b/f");
            assert_true((o->len == strlen(old) && memcmp(o->data, old, o->len) == 0) ||
                        (o->len == strlen(new) && memcmp(o->data, new, o->len) == 0));
        }
}

/* An upload that broke off goes on where it was, whichever side computes the checksums. */
TEST(interrupted_uploads_go_on)
{
    struct pair *p = *state;

    for (int variant = 0; variant < 8; variant++) {
        p->from.store.ops = variant & 1 ? &folder_ops : &memory_ops;
        p->to.store.ops = variant & 2 ? &folder_ops : &memory_ops;
        p->from.no_md5 = variant & 4; /* else the MD5 asks for every byte in order */
        char to[16], key[32];
        snprintf(to, sizeof(to), "b%d", variant);
        snprintf(key, sizeof(key), "%s/f", to);
        put_large(p);
        memset(p->to.calls, 0, sizeof(p->to.calls));
        transfer_test_fail_at(&p->to, STORE_BLOCK, 5);
        assert_true(transfer_test_copy(p, "a", to, &small_parts) < 0);
        assert_int_equal(p->report.total.resumed_bytes, 0);
        int sent = p->to.calls[STORE_BLOCK];
        assert_in_range(sent, 5, 6);
        assert_ok(transfer_test_copy(p, "a", to, &small_parts), p->err);
        transfer_test_assert_content(&p->to, key, large);
        assert_int_equal(p->report.total.done_bytes, strlen(large));
        if (variant & 3) {
            assert_int_equal(p->to.calls[STORE_BLOCK], 6 + 1);
            assert_in_range(p->report.total.resumed_bytes, (sent - 1) * 4 - 1, (sent - 1) * 4);
        } else { /* what came from afar, to where blocks cannot be asked: nothing proves it */
            assert_int_equal(p->to.calls[STORE_BLOCK], sent + 6);
            assert_int_equal(p->report.total.resumed_bytes, 0);
        }
        assert_true(transfer_test_find(&p->to, key)->has_crc64);
    }
}

/* At whatever moment: a source that is gone never empties the destination. */
TEST(a_source_that_vanishes_deletes_nothing)
{
    struct pair *p = *state;
    struct transfer_options mirror = {.part_size = 4, .memory = 16, .delete_extra = true, .max_delete = -1};

    for (int at = 1;; at++) {
        for (char c = 'a'; c < 'f'; c++) {
            char from[] = "a/ ", to[] = "b/ ";
            from[2] = to[2] = c;
            transfer_test_put(&p->from, from, &c, 1);
            transfer_test_put(&p->to, to, &c, 1);
        }
        transfer_test_put(&p->to, "b/x", "x", 1);
        p->from.calls[STORE_LIST] = 0;
        p->from.vanishes = at;
        int rc = transfer_test_copy(p, "a", "b", &mirror);
        if (p->from.calls[STORE_LIST] < at) { /* it was there all the time */
            assert_int_equal(rc, 0);
            assert_int_equal(p->to.n, 5);
            assert_true(at > 4);
            return;
        }
        assert_true(rc < 0);
        assert_true(p->to.n == 6 || (p->to.n == 5 && at > 4)); /* never more than was counted */
    }
}

/* Blocks that were damaged on the way, of an upload that broke off before the whole was compared. */
TEST(damaged_blocks_are_never_committed)
{
    struct pair *p = *state;

    for (int variant = 0; variant < 4; variant++) {
        p->to.store.ops = variant & 1 ? &folder_ops : &memory_ops;
        p->from.no_md5 = variant & 2;
        char to[16], key[32];
        snprintf(to, sizeof(to), "b%d", variant);
        snprintf(key, sizeof(key), "%s/f", to);
        put_large(p);
        if (p->from.no_md5) {
            transfer_test_find(&p->from, "a/f")->has_crc64 = true;
            transfer_test_find(&p->from, "a/f")->crc64 = act_crc64(0, large, strlen(large));
        }
        p->from.corrupt_get = true;
        transfer_test_fail_at(&p->to, STORE_BLOCK, 5);
        assert_true(transfer_test_copy(p, "a", to, &small_parts) < 0);
        p->from.corrupt_get = false;
        if (transfer_test_copy(p, "a", to, &small_parts) < 0) { /* now it is known, and nothing of it is left */
            assert_null(transfer_test_find(&p->to, key));
            assert_ok(transfer_test_copy(p, "a", to, &small_parts), p->err);
        }
        transfer_test_assert_content(&p->to, key, large);
    }
}

TEST(nothing_of_another_source_is_reused)
{
    struct pair *p = *state;

    put_large(p);
    transfer_test_fail_at(&p->to, STORE_COMMIT, 1);
    assert_true(transfer_test_copy(p, "a", "b", &small_parts) < 0);
    transfer_test_put(&p->from, "a/f", "TWENTY-THREE BYTES LONG", strlen(large));
    assert_ok(transfer_test_copy(p, "a", "b", &small_parts), p->err);
    transfer_test_assert_content(&p->to, "b/f", "TWENTY-THREE BYTES LONG");
    assert_int_equal(p->report.total.resumed_bytes, 0);
}

TEST(what_another_process_uploads_is_left_to_it)
{
    struct pair *p = *state;

    put_large(p);
    p->to.busy = true;
    assert_ok(transfer_test_copy(p, "a", "b", &small_parts), p->err);
    transfer_test_assert_content(&p->to, "b/f", large);
}

TEST(lost_blocks_are_sent_again)
{
    struct pair *p = *state;

    put_large(p);
    p->to.lose_a_block = true;
    assert_ok(transfer_test_copy(p, "a", "b", &small_parts), p->err);
    transfer_test_assert_content(&p->to, "b/f", large);
    assert_int_equal(p->to.calls[STORE_BLOCK], 6 + 1);
    assert_int_equal(p->report.total.done_bytes, strlen(large)); /* not once more */
    assert_int_equal(p->report.total.resumed_bytes, 0);
}

/* In the middle of the object, whether its MD5 is made on the way or not. */
TEST(blocks_that_vanish_on_the_way_are_sent_again)
{
    struct pair *p = *state;
    struct transfer_options with_md5 = small_parts;

    with_md5.md5_max = 1024;
    put_large(p);
    p->to.fail_op = STORE_BLOCK;
    act_error_set(&p->to.fail_with, ACT_TEMPORARY, "gone");
    p->to.fail_with.fact = ACT_FACT_BLOCKS_MISSING;
    for (int at = 1; at <= 6; at++) {
        p->to.calls[STORE_BLOCK] = 0;
        p->to.fail_at = at;
        ACT_AUTOFREE char *to = act_sprintf("b%d", at);
        ACT_AUTOFREE char *key = act_sprintf("%s/f", to);
        assert_ok(transfer_test_copy(p, "a", to, at % 2 ? &small_parts : &with_md5), p->err);
        transfer_test_assert_content(&p->to, key, large);
        assert_int_equal(p->report.total.done_bytes, strlen(large));
        assert_int_equal(p->report.total.done_objects, 1);
    }
}

TEST(what_the_service_cannot_fetch_goes_through_the_client)
{
    struct pair *p = *state;

    p->from.store.ops = p->to.store.ops = &service_ops;
    for (int i = 0; i < 12; i++)
        put_numbered(&p->from, "a/", i, large);
    p->to.fail_op = STORE_PUT_FROM;
    p->to.fail_at = 3;
    act_error_set(&p->to.fail_with, ACT_FAIL, "HTTP 501");
    p->to.fail_with.http_status = 501;
    p->to.fail_with.fact = ACT_FACT_NOT_BY_SERVICE;
    assert_ok(transfer_test_copy(p, "a", "b", &small_parts), p->err);
    assert_int_equal(p->to.n, 12);
    assert_int_equal(p->report.total.done_objects, 12);
    assert_true(p->from.calls[STORE_GET] > 0);
}

TEST(what_no_object_can_hold_is_refused)
{
    struct pair *p = *state;

    transfer_test_put(&p->from, "a/huge", "x", 1);
    p->from.claimed_size = (uint64_t)memory_ops.traits.max_put * 50000 + 1;
    assert_fails(transfer_test_copy(p, "a", "b", &small_parts), p->err, ACT_FAIL,
                 "more than an object in memory:to can have");
    assert_int_equal(p->to.n_blocks, 0);
}

static void compared(struct walk *walk, struct sync_item *item, int rc)
{
    (void)item;
    assert_int_equal(rc, 1);
    ++*(int *)walk->arg;
}

/* Also when no byte need be read for it. */
TEST(a_comparison_ends_later)
{
    struct pair *p = *state;
    struct transfer_options options = {0};
    int calls = 0;
    struct walk walk = {.engine = engine,
                        .options = &options,
                        .from = &p->from.store,
                        .to = &p->to.store,
                        .report = &p->report,
                        .arg = &calls,
                        .stop = true};
    struct sync_item item = {.from = {.has_crc64 = true, .crc64 = 7}, .to = {.has_crc64 = true, .crc64 = 7}};

    compare_start(&walk, &item, false, compared);
    assert_int_equal(calls, 0);
    engine_run(engine, NULL);
    assert_int_equal(calls, 1);
}

static int transfer_test_open_engine(void **state)
{
    (void)state;
    engine = engine_new(&(struct engine_options){.workers = 2});
    http = http_new(engine, &(struct http_options){0});
    folder_ops = service_ops = memory_ops;
    folder_ops.traits.sums_are_free = true;
    service_ops.operations |= SERVICE_OPERATIONS;
    return 0;
}

static int transfer_test_close_engine(void **state)
{
    (void)state;
    http_free(http);
    engine_free(engine);
    return 0;
}

static void never_begun(struct walk *walk, struct sync_item *item)
{
    (void)walk;
    sync_item_release(item);
}

static struct sync_item waiting_item(int i)
{
    struct sync_item item = {.action = SYNC_COPY, .reason = SYNC_NEW};

    item.from = (struct store_entry){.key = act_sprintf("prefix/folder/name-%d", i),
                                     .size = (uint64_t)i,
                                     .mode = i % 512,
                                     .md5 = "md5",
                                     .etag = "\"0x8DC0123456789AB\""};
    if (i % 10 == 0)
        item.to = (struct store_entry){.key = act_sprintf("there/%d", i), .has_crc64 = true, .crc64 = 7};
    item.rel = item.from.key + strlen("prefix/");
    return item;
}

/* Items that wait come out as they went in, in order, and take little memory until then. */
TEST(what_is_listed_ahead_is_packed)
{
    enum { N = 10000, LITTLE = 300 };
    walk_take *begin;
    struct ahead ahead = {0};
    struct sync_item item;

    for (int i = 0; i < N; i++) {
        item = waiting_item(i);
        ahead_put(&ahead, &item, never_begun);
    }
    assert_int_equal(ahead.n, N);
    assert_true(ahead.bytes < (size_t)N * LITTLE);
    for (int i = 0; ahead_take(&ahead, &item, &begin); i++) {
        struct sync_item same = waiting_item(i);
        assert_string_equal(item.rel, same.rel);
        assert_string_equal(item.from.md5, same.from.md5);
        assert_string_equal(item.from.etag, same.from.etag);
        assert_int_equal(item.from.size, i);
        assert_int_equal(item.from.mode, same.from.mode);
        assert_int_equal(item.reason, SYNC_NEW);
        assert_int_equal(item.to.key != NULL && item.to.crc64 == 7, i % 10 == 0);
        begin(NULL, &item);
        sync_item_release(&same);
    }
    assert_int_equal(ahead.n + ahead.bytes, 0);
    ahead_release(&ahead);
}

/* ---- pieces */

enum { PIECE_LEN = 512 << 10, PIECES_LEN = 3 * PIECE_LEN + 10 };

/* A store that has been asked to write pieces. */
struct writer {
    struct store store;
    struct store_call *calls[8];
    size_t n;
    int ended; /* how often it was said that all is over */
    bool failed;
};

static void keep_call(struct store *store, struct store_call *call)
{
    struct writer *w = (struct writer *)store;

    assert_true(w->n < COUNT(w->calls));
    w->calls[w->n++] = call;
}

static void transfer_test_end_call(struct writer *w, size_t i, int rc)
{
    struct store_call *call = w->calls[i];

    if (rc == 0)
        store_sums_add(call->block.data.sums, call->block.data.bytes, call->block.data.len);
    else
        act_error_set(&call->error, ACT_FAIL, "disk full");
    store_finish(call, rc);
}

static void note_end(void *arg, const struct act_error *error)
{
    struct writer *w = arg;

    w->ended++;
    w->failed = error != NULL;
}

static const struct store_ops writer_ops = {
    .operations = STORE_BIT(STORE_BLOCK),
    .start = keep_call,
    .key_problem = no_problem,
    .traits = {.max_put = PIECE_LEN},
};

/* A piece is with the writer as soon as it is whole: nobody has to run the loop for that. */
TEST(pieces_do_not_wait_for_one_another)
{
    ACT_AUTOFREE char *buffer = act_alloc(PIECES_LEN), *data = act_alloc(PIECES_LEN);

    for (size_t i = 0; i < PIECES_LEN; i++)
        data[i] = (char)(i * 7 + i / 1000);
    for (int fails = 0; fails < 2; fails++) {
        struct writer w = {.store = {.ops = &writer_ops, .http = http, .name = (char[]){"w"}}};
        uint64_t crc64 = 0;
        struct pieces *p = pieces_new(
            &w.store,
            &(struct pieces_setup){
                .key = "x", .buffer = buffer, .len = PIECES_LEN, .crc64 = &crc64, .done = note_end, .arg = &w});
        pieces_take(p, 0, data, PIECE_LEN - 1);
        assert_int_equal(w.n, 0);
        pieces_take(p, PIECE_LEN - 1, data + PIECE_LEN - 1, PIECES_LEN - PIECE_LEN + 1);
        assert_int_equal(w.n, 3); /* the last one waits */
        transfer_test_end_call(&w, 2, 0);
        pieces_end(p, true);
        transfer_test_end_call(&w, 0, fails ? -ACT_FAIL : 0);
        assert_int_equal(w.n, 3);
        assert_int_equal(w.ended, 0);
        transfer_test_end_call(&w, 1, 0);
        if (!fails) {
            assert_int_equal(w.n, 4);
            assert_false(w.calls[3]->block.more);
            assert_memory_equal(w.calls[3]->block.data.bytes, data + PIECES_LEN - 10, 10);
            transfer_test_end_call(&w, 3, 0);
            assert_true(crc64 == act_crc64(0, data, PIECES_LEN));
        }
        assert_int_equal(w.n, fails ? 3 : 4); /* what is not whole never becomes a block */
        assert_int_equal(w.ended, 1);
        assert_int_equal(w.failed, fails);
        pieces_free(p);
    }
}

TEST_MAIN(transfer_test_open_engine, transfer_test_close_engine)
