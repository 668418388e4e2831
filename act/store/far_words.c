/* far_words.c - calls and their results as words: numbers of seven bits a byte, lowest first; texts with their length
 * before and a NUL behind, so that what is read needs no copies.
 */
#include <string.h>

#include "store/far.h"

/* ---- writing */

static void words_put(struct act_buf *b, uint64_t n)
{
    for (; n >= 0x80; n >>= 7)
        act_buf_addc(b, (char)(n | 0x80));
    act_buf_addc(b, (char)n);
}

/* Small ones of either sign stay small. */
static void words_put_signed(struct act_buf *b, int64_t n)
{
    words_put(b, ((uint64_t)n << 1) ^ (n < 0 ? UINT64_MAX : 0));
}

/* NULL is not the empty text. */
static void words_put_text(struct act_buf *b, const char *text)
{
    words_put(b, text ? strlen(text) + 1 : 0);
    if (text)
        act_buf_add(b, text, strlen(text) + 1);
}

static void words_put_flags(struct act_buf *b, const bool *const *flags, size_t n)
{
    uint64_t bits = 0;

    for (size_t i = 0; i < n; i++)
        bits |= (uint64_t)*flags[i] << i;
    words_put(b, bits);
}

/* ---- reading */

struct far_words {
    const char *at, *end;
    bool bad; /* everything that is read from now on is 0 */
};

static uint64_t words_get(struct far_words *w)
{
    uint64_t n = 0;

    for (unsigned shift = 0; shift < 64 && w->at < w->end; shift += 7) {
        uint8_t byte = (uint8_t)*w->at++;
        if (shift == 63 && byte > 1)
            break;
        n |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return n;
    }
    w->bad = true;
    w->at = w->end;
    return 0;
}

static int64_t words_get_signed(struct far_words *w)
{
    uint64_t n = words_get(w);

    return (int64_t)(n >> 1) ^ -(int64_t)(n & 1);
}

/* Returns a number of at most max. */
static uint64_t words_get_up_to(struct far_words *w, uint64_t max)
{
    uint64_t n = words_get(w);

    if (n <= max)
        return n;
    w->bad = true;
    return 0;
}

static int words_get_int(struct far_words *w)
{
    int64_t n = words_get_signed(w);

    if (n >= INT32_MIN && n <= INT32_MAX)
        return (int)n;
    w->bad = true;
    return 0;
}

static const char *words_get_text_or_null(struct far_words *w)
{
    uint64_t size = words_get(w);
    const char *text = w->at;

    if (size == 0)
        return NULL;
    if (size > (uint64_t)(w->end - w->at) || memchr(text, '\0', (size_t)size) != text + size - 1) {
        w->bad = true;
        w->at = w->end;
        return NULL;
    }
    w->at += size;
    return text;
}

static const char *words_get_text(struct far_words *w)
{
    const char *text = words_get_text_or_null(w);

    w->bad = w->bad || !text;
    return text ? text : "";
}

/* Copies a text into an array of that size. */
static void words_get_array(struct far_words *w, char *out, size_t size)
{
    const char *text = words_get_text(w);

    if (strlen(text) < size)
        memcpy(out, text, strlen(text) + 1);
    else
        w->bad = true;
}

static void words_get_bytes(struct far_words *w, void *out, size_t len)
{
    if (len <= (size_t)(w->end - w->at)) {
        memcpy(out, w->at, len);
        w->at += len;
        return;
    }
    w->bad = true;
    w->at = w->end;
}

static void words_get_flags(struct far_words *w, bool *const *flags, size_t n)
{
    uint64_t bits = words_get_up_to(w, (UINT64_C(1) << n) - 1);

    for (size_t i = 0; i < n; i++)
        *flags[i] = bits >> i & 1;
}

/* Returns how many items of at least a byte follow. */
static size_t words_get_count(struct far_words *w)
{
    return (size_t)words_get_up_to(w, (uint64_t)(w->end - w->at));
}

/* ---- what calls and results have in common */

static void words_put_sum(struct act_buf *b, const uint64_t *crc64)
{
    words_put(b, crc64 != NULL);
    if (crc64)
        act_buf_add(b, crc64, sizeof(*crc64));
}

static bool words_get_sum(struct far_words *w, uint64_t *out)
{
    if (!words_get_up_to(w, 1))
        return false;
    words_get_bytes(w, out, sizeof(*out));
    return true;
}

static void words_put_attributes(struct act_buf *b, const struct store_attributes *a)
{
    words_put(b, a->kind);
    words_put_signed(b, a->mode);
    words_put_signed(b, a->mtime_ns);
}

static struct store_attributes words_get_attributes(struct far_words *w)
{
    return (struct store_attributes){.kind = (enum store_kind)words_get_up_to(w, STORE_FOLDER),
                                     .mode = words_get_int(w),
                                     .mtime_ns = words_get_signed(w)};
}

static void words_put_condition(struct act_buf *b, const struct store_condition *c)
{
    words_put_flags(b, (const bool *const[]){&c->if_absent, &c->unmarked}, 2);
    words_put_text(b, c->if_match);
}

static struct store_condition words_get_condition(struct far_words *w)
{
    struct store_condition c = {0};

    words_get_flags(w, (bool *const[]){&c.if_absent, &c.unmarked}, 2);
    c.if_match = words_get_text_or_null(w);
    return c;
}

/* The bits of the blocks of so many bytes. */
static void words_put_changed(struct act_buf *b, const struct far_changes *changed, size_t len)
{
    act_buf_add(b, changed->bits, far_bits_of(len));
}

static void words_get_changed(struct far_words *w, struct far_changes *changed, size_t len)
{
    words_get_bytes(w, changed->bits, far_bits_of(len));
}

static void words_put_data(struct act_buf *b, const struct far_request *r, const struct store_data *data)
{
    words_put(b, data->len);
    words_put_text(b, data->md5);
    words_put_sum(b, data->crc64 ? &r->crc64 : NULL);
    if (r->bytes == FAR_CHANGED)
        words_put_changed(b, &r->changed, data->len);
}

static struct store_data words_get_data(struct far_words *w, struct far_request *r)
{
    struct store_data data = {.len = (size_t)words_get_up_to(w, FAR_MAX_PUT), .md5 = words_get_text_or_null(w)};

    if (words_get_sum(w, &r->crc64))
        data.crc64 = &r->crc64;
    if (r->bytes == FAR_CHANGED)
        words_get_changed(w, &r->changed, data.len);
    return data;
}

static void words_put_error(struct act_buf *b, int rc, const struct act_error *error)
{
    words_put_signed(b, rc);
    if (rc == 0)
        return;
    words_put(b, error->fact);
    words_put_text(b, act_error_text(error));
}

static int words_get_error(struct far_words *w, struct act_error *error)
{
    int rc = words_get_int(w);

    if (rc == 0)
        return 0;
    enum act_fact fact = (enum act_fact)words_get_up_to(w, ACT_FACT_NOT_BY_SERVICE);
    const char *text = words_get_text(w);
    w->bad = w->bad || rc > 0 || rc < -ACT_TERMINATED || *text == '\0';
    act_error_set(error, w->bad ? ACT_FAIL : (enum act_code) - rc, "%s", text);
    error->fact = fact;
    return rc;
}

/* ---- requests */

static void words_put_many(struct act_buf *b, const struct store_delete_many *many)
{
    words_put(b, many->n);
    for (size_t i = 0; i < many->n; i++) {
        words_put_text(b, many->v[i].key);
        words_put_text(b, many->v[i].if_match);
    }
}

static void words_get_many(struct far_words *w, struct store_delete_many *many)
{
    size_t n = words_get_count(w);

    if (n > STORE_MAX_DELETIONS) {
        w->bad = true;
        return;
    }
    many->v = act_calloc(n + 1, sizeof(*many->v));
    many->n = n;
    for (size_t i = 0; i < n; i++) {
        many->v[i].key = words_get_text(w);
        many->v[i].if_match = words_get_text_or_null(w);
    }
}

static void words_put_list(struct act_buf *b, const struct store_list *l)
{
    words_put_text(b, l->marker);
    words_put_signed(b, l->max);
    words_put_flags(b, (const bool *const[]){&l->delimiter, &l->whole, &l->leftovers}, 3);
}

static void words_get_list(struct far_words *w, struct store_list *l)
{
    l->marker = words_get_text_or_null(w);
    l->max = words_get_int(w);
    words_get_flags(w, (bool *const[]){&l->delimiter, &l->whole, &l->leftovers}, 3);
}

static void words_put_upload(struct act_buf *b, const struct store_upload_id *id)
{
    act_buf_add(b, id->bytes, sizeof(id->bytes));
}

static struct store_upload_id words_get_upload(struct far_words *w)
{
    struct store_upload_id id = {0};

    words_get_bytes(w, id.bytes, sizeof(id.bytes));
    return id;
}

static void words_put_get(struct act_buf *b, const struct far_request *r)
{
    const struct store_get *get = &r->call.get;

    words_put(b, r->summed);
    words_put(b, get->offset);
    words_put(b, get->sink_cap);
    words_put_text(b, get->if_match);
    words_put(b, get->upload != NULL);
    if (get->upload)
        words_put_upload(b, get->upload);
}

static void words_get_get(struct far_words *w, struct far_request *r)
{
    struct store_get *get = &r->call.get;

    r->summed = (size_t)words_get_up_to(w, FAR_MAX_PUT);
    get->offset = words_get_up_to(w, INT64_MAX);
    get->sink_cap = (size_t)words_get_up_to(w, FAR_MAX_PUT);
    get->if_match = words_get_text_or_null(w);
    if (words_get_up_to(w, 1)) {
        r->upload = words_get_upload(w);
        get->upload = &r->upload;
    }
}

static void words_put_commit(struct act_buf *b, const struct store_commit *c)
{
    words_put_upload(b, &c->upload_id);
    words_put(b, c->n_blocks);
    words_put(b, c->total);
    words_put_attributes(b, &c->attr);
    words_put_condition(b, &c->condition);
}

static void words_get_commit(struct far_words *w, struct store_commit *c)
{
    c->upload_id = words_get_upload(w);
    c->n_blocks = (uint32_t)words_get_up_to(w, UINT32_MAX);
    c->total = words_get_up_to(w, INT64_MAX);
    c->attr = words_get_attributes(w);
    c->condition = words_get_condition(w);
}

static void words_put_block(struct act_buf *b, const struct far_request *r)
{
    const struct store_put_block *block = &r->call.block;

    words_put_data(b, r, &block->data);
    words_put_upload(b, &block->upload_id);
    words_put(b, block->index);
    words_put(b, block->offset);
}

static void words_get_block(struct far_words *w, struct far_request *r)
{
    struct store_put_block *block = &r->call.block;

    block->data = words_get_data(w, r);
    block->upload_id = words_get_upload(w);
    block->index = (uint32_t)words_get_up_to(w, UINT32_MAX);
    block->offset = words_get_up_to(w, INT64_MAX);
}

void far_words_of_request(const struct far_request *r, struct act_buf *b)
{
    const struct store_call *call = &r->call;

    words_put(b, r->op);
    words_put_flags(b, (const bool *const[]){&r->no_sync, &r->follow, &r->alone}, 3);
    words_put(b, r->bytes);
    words_put_text(b, call->key);
    switch (r->op) {
    case STORE_GET:
        words_put_get(b, r);
        break;
    case STORE_PUT:
        words_put_data(b, r, &call->put.data);
        words_put_attributes(b, &call->put.attr);
        words_put_condition(b, &call->put.condition);
        break;
    case STORE_BLOCK:
        words_put_block(b, r);
        break;
    case STORE_COMMIT:
        words_put_commit(b, &call->commit);
        break;
    case STORE_BLOCKS:
        words_put_upload(b, &call->blocks.upload_id);
        words_put(b, call->blocks.total);
        words_put_signed(b, call->blocks.mode);
        break;
    case STORE_DROP:
        words_put_upload(b, &call->drop.upload_id);
        words_put(b, call->drop.keep);
        break;
    case STORE_DELETE:
        words_put_text(b, call->delete.if_match);
        break;
    case STORE_DELETE_MANY:
        words_put_many(b, &call->delete_many);
        break;
    case STORE_COPY:
        words_put_text(b, call->copy.source);
        words_put_text(b, call->copy.source_match);
        break;
    case STORE_LIST:
        words_put_list(b, &call->list);
        break;
    default:
        break;
    }
}

static void words_get_call(struct far_words *w, struct far_request *r)
{
    struct store_call *call = &r->call;

    switch (r->op) {
    case STORE_GET:
        words_get_get(w, r);
        break;
    case STORE_PUT:
        call->put.data = words_get_data(w, r);
        call->put.attr = words_get_attributes(w);
        call->put.condition = words_get_condition(w);
        break;
    case STORE_BLOCK:
        words_get_block(w, r);
        break;
    case STORE_COMMIT:
        words_get_commit(w, &call->commit);
        break;
    case STORE_BLOCKS:
        call->blocks.upload_id = words_get_upload(w);
        call->blocks.total = words_get_up_to(w, INT64_MAX);
        call->blocks.mode = words_get_int(w);
        break;
    case STORE_DROP:
        call->drop.upload_id = words_get_upload(w);
        call->drop.keep = words_get_up_to(w, 1);
        break;
    case STORE_DELETE:
        call->delete.if_match = words_get_text_or_null(w);
        break;
    case STORE_DELETE_MANY:
        words_get_many(w, &call->delete_many);
        break;
    case STORE_COPY:
        call->copy.source = words_get_text(w);
        call->copy.source_match = words_get_text_or_null(w);
        break;
    case STORE_LIST:
        words_get_list(w, &call->list);
        break;
    default:
        break;
    }
}

bool far_request_of_words(const char *words, size_t len, struct far_request *out)
{
    struct far_words w = {.at = words, .end = words + len};

    *out = (struct far_request){.op = (unsigned)words_get_up_to(&w, FAR_HURRY)};
    out->call.op = out->op < STORE_OPS ? (enum store_op)out->op : STORE_HEAD;
    words_get_flags(&w, (bool *const[]){&out->no_sync, &out->follow, &out->alone}, 3);
    out->bytes = (enum far_bytes)words_get_up_to(&w, FAR_CHANGED);
    out->call.key = words_get_text(&w);
    words_get_call(&w, out);
    if (!w.bad && w.at == w.end)
        return true;
    far_request_release(out);
    return false;
}

void far_request_release(struct far_request *r)
{
    if (r->op == STORE_DELETE_MANY)
        free(r->call.delete_many.v);
    store_call_release(&r->call);
    *r = (struct far_request){0};
}

/* ---- results */

static void words_put_entry(struct act_buf *b, const struct store_entry *e)
{
    words_put_text(b, e->key);
    words_put(b, e->kind);
    words_put(b, e->size);
    words_put_signed(b, e->mtime_ns);
    words_put_signed(b, e->last_modified_s);
    words_put_signed(b, e->mode);
    words_put_flags(b, (const bool *const[]){&e->grows, &e->slashed, &e->filled, &e->leads_out}, 4);
    words_put_signed(b, e->problem);
    words_put_sum(b, e->has_crc64 ? &e->crc64 : NULL);
    words_put_text(b, e->md5);
    words_put_text(b, e->etag);
}

static void words_get_entry(struct far_words *w, struct store_entry *e)
{
    const char *key = words_get_text_or_null(w);

    e->key = key ? act_strdup(key) : NULL;
    e->kind = (enum store_kind)words_get_up_to(w, STORE_UNREADABLE);
    e->size = words_get_up_to(w, INT64_MAX);
    e->mtime_ns = words_get_signed(w);
    e->last_modified_s = words_get_signed(w);
    e->mode = words_get_int(w);
    words_get_flags(w, (bool *const[]){&e->grows, &e->slashed, &e->filled, &e->leads_out}, 4);
    e->problem = words_get_int(w);
    e->has_crc64 = words_get_sum(w, &e->crc64);
    words_get_array(w, e->md5, sizeof(e->md5));
    words_get_array(w, e->etag, sizeof(e->etag));
}

static void words_put_page(struct act_buf *b, const struct store_page *page)
{
    words_put(b, page->n);
    for (size_t i = 0; i < page->n; i++)
        words_put_entry(b, &page->v[i]);
    words_put_text(b, page->next);
}

/* Tells whether an entry may follow the one before it: all begin with what was asked for, in order. */
static bool words_fit(const struct store_call *call, const struct store_page *page, size_t i)
{
    const char *key = page->v[i].key;

    return key && act_starts_with(key, call->key) &&
           (i == 0 || call->list.leftovers || strcmp(page->v[i - 1].key, key) < 0);
}

static void words_get_page(struct far_words *w, struct store_call *call)
{
    struct store_page *page = &call->list.page;
    size_t n = words_get_count(w);

    for (size_t i = 0; i < n && !w->bad; i++) {
        words_get_entry(w, store_page_add(page));
        w->bad = w->bad || !words_fit(call, page, i);
    }
    const char *next = words_get_text_or_null(w);
    page->next = next ? act_strdup(next) : NULL;
    w->bad = w->bad || (next && act_streq(next, call->list.marker)); /* it would go on for ever */
}

static void words_put_blocks(struct act_buf *b, const struct store_blocks *blocks)
{
    words_put(b, blocks->n_found);
    for (size_t i = 0; i < blocks->n_found; i++) {
        const struct store_block *block = &blocks->found[i];
        act_buf_add(b, block->id, sizeof(block->id));
        words_put(b, block->len);
        words_put(b, block->committed);
        words_put_sum(b, block->has_crc64 ? &block->crc64 : NULL);
    }
    words_put(b, blocks->uncommitted);
}

static void words_get_blocks(struct far_words *w, struct store_blocks *blocks)
{
    size_t n = words_get_count(w);

    blocks->found = act_calloc(n + 1, sizeof(*blocks->found));
    for (size_t i = 0; i < n && !w->bad; i++) {
        struct store_block *block = &blocks->found[blocks->n_found++];
        words_get_bytes(w, block->id, sizeof(block->id));
        block->len = words_get_up_to(w, INT64_MAX);
        block->committed = words_get_up_to(w, 1);
        block->has_crc64 = words_get_sum(w, &block->crc64);
    }
    blocks->uncommitted = words_get(w);
}

static void words_get_deletions(struct far_words *w, struct store_delete_many *many)
{
    for (size_t i = 0; i < many->n; i++) {
        many->v[i].error = (struct act_error){0};
        many->v[i].rc = words_get_error(w, &many->v[i].error);
    }
}

void far_words_of_result(const struct store_call *call, const struct far_result *result, struct act_buf *b)
{
    words_put_error(b, call->rc, &call->error);
    if (call->rc < 0)
        return;
    words_put_entry(b, &call->entry);
    if (call->op == STORE_GET) {
        words_put(b, call->get.got);
        words_put(b, result->bytes);
        words_put_sum(b, &result->crc64);
        if (result->bytes == FAR_CHANGED)
            words_put_changed(b, &result->changed, call->get.got);
    } else if (call->op == STORE_LIST) {
        words_put_page(b, &call->list.page);
    } else if (call->op == STORE_BLOCKS) {
        words_put_blocks(b, &call->blocks);
    } else if (call->op == STORE_DELETE_MANY) {
        for (size_t i = 0; i < call->delete_many.n; i++)
            words_put_error(b, call->delete_many.v[i].rc, &call->delete_many.v[i].error);
    }
}

bool far_result_of_words(const char *words, size_t len, struct store_call *call, struct far_result *out)
{
    struct far_words w = {.at = words, .end = words + len};

    *out = (struct far_result){0};
    call->rc = words_get_error(&w, &call->error);
    if (call->rc < 0)
        return !w.bad && w.at == w.end;
    words_get_entry(&w, &call->entry);
    if (call->entry.key || call->op == STORE_HEAD)
        w.bad = w.bad || !act_streq(call->entry.key, call->key);
    if (call->op == STORE_GET) {
        call->get.got = (size_t)words_get_up_to(&w, call->get.sink_cap);
        out->bytes = (enum far_bytes)words_get_up_to(&w, FAR_CHANGED);
        (void)words_get_sum(&w, &out->crc64);
        if (out->bytes == FAR_CHANGED)
            words_get_changed(&w, &out->changed, call->get.got);
    } else if (call->op == STORE_LIST) {
        words_get_page(&w, call);
    } else if (call->op == STORE_BLOCKS) {
        words_get_blocks(&w, &call->blocks);
    } else if (call->op == STORE_DELETE_MANY) {
        words_get_deletions(&w, &call->delete_many);
    }
    return !w.bad && w.at == w.end;
}

/* ---- the first words */

static const char hello[] = "act-store";

void far_words_of_hello(const char *root, int rc, const struct act_error *error, struct act_buf *b)
{
    words_put_text(b, hello);
    words_put(b, FAR_VERSION);
    words_put_error(b, rc, error);
    words_put_text(b, root ? root : "");
}

int far_hello_of_words(const char *words, size_t len, char **out_root, struct act_error *err)
{
    struct far_words w = {.at = words, .end = words + len};
    const char *first = words_get_text(&w);
    uint64_t version = words_get(&w);

    if (strcmp(first, hello) != 0 || version != FAR_VERSION)
        return act_error_set(err, ACT_FAIL,
                             "the program there is not of this version of ACT (%d): it says '%s' of version %llu",
                             FAR_VERSION, first, (unsigned long long)version);
    int rc = words_get_error(&w, err);
    const char *root = words_get_text(&w);
    if (w.bad || w.at != w.end)
        return act_error_set(err, ACT_FAIL, "the program there begins with something else");
    if (rc == 0)
        *out_root = act_strdup(root);
    return rc;
}

bool far_is_zeros(const void *data, size_t len)
{
    enum { LEAST = 4096 };
    const char *bytes = data;

    return len >= LEAST && bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0;
}
