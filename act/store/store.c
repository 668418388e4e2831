/* store.c - what all stores share: the life of a call, and the checks made before a store sees it. */
#include "store/store.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/crc64.h"
#include "engine/engine.h"
#include "http/http.h"
#include "store/store_internal.h"

const char *store_verb(enum store_op op)
{
    static const char *const verbs[STORE_OPS] = {
        [STORE_HEAD] = "look at",
        [STORE_GET] = "get",
        [STORE_PUT] = "put",
        [STORE_BLOCK] = "put",
        [STORE_COMMIT] = "put",
        [STORE_DELETE] = "delete",
        [STORE_COPY] = "copy to",
        [STORE_LIST] = "list",
        [STORE_DROP] = "drop the upload of",
        [STORE_BLOCKS] = "list the blocks of",
        [STORE_DELETE_MANY] = "delete from",
        [STORE_PUT_FROM] = "copy to",
        [STORE_BLOCK_FROM] = "copy to",
        [STORE_CLEAR] = "clear",
        [STORE_URL] = "make a URL of",
        [STORE_SYNC] = "write to the disk",
    };

    return verbs[op];
}

void store_entry_release(struct store_entry *entry)
{
    free(entry->key);
    *entry = (struct store_entry){.mode = -1};
}

int store_entry_problem(const struct store_entry *entry, struct act_error *err)
{
    ACT_AUTOFREE char *name = act_printable(entry->key);

    if (entry->problem == EILSEQ)
        act_error_set(err, ACT_PARTIAL, "cannot read '%s': its name is not UTF-8; rename it", name);
    else if (entry->problem == ELOOP)
        act_error_set(err, ACT_PARTIAL, "cannot follow '%s': it leads back to itself or a folder that it is in", name);
    else if (entry->problem == EMLINK)
        act_error_set(err, ACT_PARTIAL,
                      "cannot follow '%s': too many links lead on behind links, maybe to the same folders", name);
    else if (entry->problem == ENXIO)
        act_error_set(err, ACT_PARTIAL, "cannot read '%s': it is neither a file, nor a folder, nor a link", name);
    else
        act_error_errno(err, entry->problem, entry->leads_out ? "cannot follow the link '%s'" : "cannot read '%s'",
                        name);
    err->code = ACT_PARTIAL;
    return -(int)ACT_PARTIAL;
}

void store_page_release(struct store_page *page)
{
    for (size_t i = 0; i < page->n; i++)
        store_entry_release(&page->v[i]);
    free(page->v);
    free(page->next);
    *page = (struct store_page){0};
}

struct store_entry *store_page_add(struct store_page *page)
{
    ACT_GROW(page->v, page->n);
    page->v[page->n] = (struct store_entry){.mode = -1};
    return &page->v[page->n++];
}

static void release_blocks(struct store_blocks *blocks)
{
    free(blocks->found);
    blocks->found = NULL;
    blocks->n_found = blocks->id_len = 0;
    blocks->uncommitted = 0;
}

/* Frees what the operation found. */
static void release_found(struct store_call *call)
{
    store_entry_release(&call->entry);
    if (call->op == STORE_GET)
        call->get.got = 0;
    else if (call->op == STORE_LIST)
        store_page_release(&call->list.page);
    else if (call->op == STORE_BLOCKS)
        release_blocks(&call->blocks);
}

static void release_url(struct store_call *call)
{
    act_wipe(&call->url.text);
    call->url.ends = call->url.only_sas = false;
}

void store_call_release(struct store_call *call)
{
    release_found(call);
    if (call->op == STORE_URL)
        release_url(call);
    call->rc = 0;
    call->error = (struct act_error){0};
}

_Static_assert(offsetof(struct store_call, kept) == offsetof(struct store_call, commit) + sizeof(struct store_commit),
               "the largest is the first of the union, so that {0} clears it all");

const struct store_condition *store_condition_of(const struct store_call *call)
{
    static const struct store_condition none;

    return call->op == STORE_PUT        ? &call->put.condition
           : call->op == STORE_COMMIT   ? &call->commit.condition
           : call->op == STORE_PUT_FROM ? &call->put_from.condition
                                        : &none;
}

const struct store_data *store_data_of(const struct store_call *call)
{
    return call->op == STORE_PUT ? &call->put.data : call->op == STORE_BLOCK ? &call->block.data : NULL;
}

void store_finish(struct store_call *call, int rc)
{
    if (rc) /* nothing half-filled */
        release_found(call);
    call->rc = rc;
    call->done(call);
}

char *store_logs_name(const char *id, const char **out_id)
{
    char *name = act_sprintf("logs:%s", id);

    *out_id = strchr(name, ':') + 1;
    return name;
}

/* Leaves one level of a listing: what lies deeper becomes the folder that it is in. */
static void store_fold(struct store_page *page, size_t prefix_len)
{
    size_t n = 0;

    for (size_t i = 0; i < page->n; i++) {
        struct store_entry *entry = &page->v[i];
        const char *slash = strchr(entry->key + prefix_len, '/');
        ACT_AUTOFREE char *folder = slash ? act_strndup(entry->key, (size_t)(slash - entry->key) + 1) : NULL;
        bool again = folder && n > 0 && strcmp(page->v[n - 1].key, folder) == 0;
        if (folder) {
            store_entry_release(entry);
            *entry = (struct store_entry){.key = act_strdup(folder), .kind = STORE_PREFIX, .mode = -1};
        }
        if (again)
            store_entry_release(entry);
        else
            page->v[n++] = *entry;
    }
    page->n = n;
}

/* Takes the entry of the key itself. */
static int store_take_entry(struct store *store, struct store_call *call, struct store_page *page)
{
    for (size_t i = 0; i < page->n; i++)
        if (strcmp(page->v[i].key, call->key) == 0) {
            call->entry = page->v[i];
            page->v[i] = (struct store_entry){.mode = -1};
            return 0;
        }
    return act_error_set(&call->error, ACT_NOT_FOUND, "there is no '%s' in '%s'", call->key, store->name);
}

int store_by_key(const void *a, const void *b)
{
    return strcmp(((const struct store_entry *)a)->key, ((const struct store_entry *)b)->key);
}

void store_finish_listed(struct store *store, struct store_call *call, int rc, struct store_page *page)
{
    if (page->n > 1)
        qsort(page->v, page->n, sizeof(*page->v), store_by_key);
    if (rc == 0 && call->op == STORE_HEAD)
        rc = store_take_entry(store, call, page);
    if (rc == 0 && call->op == STORE_LIST && !call->list.leftovers) {
        if (call->list.delimiter)
            store_fold(page, strlen(call->key));
        call->list.page = *page;
        *page = (struct store_page){0};
    }
    store_page_release(page);
    store_finish(call, rc);
}

struct loop_read {
    struct store *store;
    struct store_call *call;
};

static void store_carry_out(void *arg)
{
    enum { LOOK_AGAIN_MS = 20 };
    struct loop_read own = *(struct loop_read *)arg;
    const struct store_ops *ops = own.store->ops;

    if (ops->is_busy && ops->is_busy(own.store)) {
        engine_timer(http_engine(own.store->http), LOOK_AGAIN_MS, store_carry_out, arg);
        return;
    }
    free(arg);
    if (own.call->op == STORE_GET) {
        store_finish(own.call, ops->get(own.store, own.call));
        return;
    }
    struct store_page page = {0};
    int rc = ops->list(own.store, own.call, &page);
    store_finish_listed(own.store, own.call, rc, &page);
}

void store_read_on_loop(struct store *store, struct store_call *call)
{
    struct loop_read *own = act_calloc(1, sizeof(*own));

    *own = (struct loop_read){.store = store, .call = call};
    engine_timer(http_engine(store->http), 0, store_carry_out, own);
}

static void store_finish_now(void *arg)
{
    struct store_call *call = arg;

    store_finish(call, call->rc);
}

void store_finish_later(struct store *store, struct store_call *call, int rc)
{
    call->rc = rc;
    engine_timer(http_engine(store->http), 0, store_finish_now, call);
}

static bool writes(enum store_op op)
{
    return op == STORE_PUT || op == STORE_BLOCK || op == STORE_COMMIT || op == STORE_COPY || op == STORE_PUT_FROM ||
           op == STORE_BLOCK_FROM;
}

/* Returns whether the operation is about one object. */
static bool names_object(enum store_op op)
{
    return op != STORE_LIST && op != STORE_DELETE_MANY && op != STORE_SYNC;
}

static const char *store_problem_of(const struct store *store, const struct store_call *call)
{
    if (writes(call->op))
        return store_key_problem(store, call->key);
    return names_object(call->op) && store->ops->alias_problem ? store->ops->alias_problem(call->key) : NULL;
}

/* Refuses what no store can do. Returns 0, or the code of the error in call->error. */
static int check_call(const struct store *store, struct store_call *call)
{
    struct act_error *err = &call->error;
    const struct store_data *data = store_data_of(call);
    const char *verb = store_verb(call->op);
    const char *problem = store_problem_of(store, call);
    bool folder_key = act_ends_with(call->key, "/");

    if (!store_can(store, call->op))
        return act_error_set(err, ACT_USAGE, "cannot %s '%s' in '%s': this kind of store has no such operation", verb,
                             call->key, store->name);
    if (call->op == STORE_DELETE_MANY && call->delete_many.n > STORE_MAX_DELETIONS)
        return act_error_set(err, ACT_USAGE, "cannot delete %zu objects from '%s' at once", call->delete_many.n,
                             store->name);
    if (names_object(call->op) && call->op != STORE_URL && *call->key == '\0')
        return act_error_set(err, ACT_USAGE, "cannot %s an object without a name in '%s'", verb, store->name);
    if (problem)
        return act_error_set(err, ACT_FAIL, "cannot %s '%s' in '%s': the name %s", verb, call->key, store->name,
                             problem);
    if (call->op == STORE_PUT && folder_key != (call->put.attr.kind == STORE_FOLDER))
        return act_error_set(err, ACT_USAGE, "cannot put '%s': only the name of a folder ends in '/'", call->key);
    if ((call->op == STORE_COMMIT && call->commit.attr.kind != STORE_FILE) ||
        (call->op == STORE_PUT && call->put.attr.kind == STORE_PREFIX))
        return act_error_set(err, ACT_USAGE, "cannot put '%s': not this kind of object", call->key);
    if (data && data->len > store->ops->traits.max_put)
        return act_error_set(err, ACT_USAGE, "cannot put '%s': %zu bytes at once are too many", call->key, data->len);
    return 0;
}

int store_folder_mode(unsigned mode)
{
    return (int)((mode & 0775) | 0500);
}

void store_start(struct store *store, struct store_call *call)
{
    store_call_release(call);
    int rc = check_call(store, call);
    if (rc)
        store_finish_later(store, call, rc);
    else
        store->ops->start(store, call);
}

static void set_finished(struct store_call *call)
{
    *(bool *)call->arg = true;
}

int store_do(struct store *store, struct store_call *call, struct act_error *err)
{
    void (*done)(struct store_call *) = call->done;
    void *arg = call->arg;
    bool finished = false;

    call->done = set_finished;
    call->arg = &finished;
    store_start(store, call);
    engine_run(http_engine(store->http), &finished);
    call->done = done;
    call->arg = arg;
    if (call->rc && err)
        *err = call->error;
    return call->rc;
}

struct store_many {
    size_t left;
    bool finished;
};

static void store_count_finished(struct store_call *call)
{
    struct store_many *many = call->arg;

    many->finished = --many->left == 0;
}

void store_do_many(struct store *store, struct store_call *calls, size_t n)
{
    struct store_many many = {.left = n, .finished = n == 0};

    for (size_t i = 0; i < n; i++) {
        calls[i].done = store_count_finished;
        calls[i].arg = &many;
        store_start(store, &calls[i]);
    }
    if (!many.finished)
        engine_run(http_engine(store->http), &many.finished);
}

int store_may_read(struct store *store, const char *key, struct act_error *err)
{
    return store->ops->may_read ? store->ops->may_read(store, key, err) : 0;
}

void store_open_up(struct store *store, const char *key)
{
    if (store->ops->open_up)
        store->ops->open_up(store, key);
}

void store_hurry(struct store *store)
{
    if (store->ops->hurry)
        store->ops->hurry(store);
}

bool store_watch(struct store *store, bool *news)
{
    return store->ops->watch && store->ops->watch(store, news);
}

void store_no_sync(struct store *store)
{
    store->no_sync = true;
}

void store_follow_links(struct store *store)
{
    store->follow = true;
}

const char *store_name(const struct store *store)
{
    return store->name;
}

const struct store_traits *store_traits(const struct store *store)
{
    return &store->ops->traits;
}

bool store_can(const struct store *store, enum store_op op)
{
    return store->ops->operations & ~store->lacks & STORE_BIT(op);
}

int store_window(const struct store *store)
{
    return store->ops->window ? store->ops->window(store) : 1;
}

void store_block_id(const struct store_upload_id *upload, uint32_t index, uint8_t out[STORE_BLOCK_ID])
{
    memcpy(out, upload->bytes, sizeof(upload->bytes));
    for (size_t i = 0; i < 4; i++)
        out[sizeof(upload->bytes) + i] = (uint8_t)(index >> (24 - 8 * i));
}

int64_t store_block_index(const struct store_upload_id *upload, const struct store_block *block)
{
    const uint8_t *index = block->id + sizeof(upload->bytes);

    if (memcmp(block->id, upload->bytes, sizeof(upload->bytes)) != 0)
        return -1;
    return (int64_t)index[0] << 24 | (int64_t)index[1] << 16 | (int64_t)index[2] << 8 | index[3];
}

void store_sums_add(struct store_sums *sums, const void *data, size_t len)
{
    if (!sums)
        return;
    sums->crc64 = act_crc64(sums->crc64, data, len);
    if (sums->want_md5)
        act_md5_add(&sums->md5, data, len);
}

const char *store_segment_problem(const char *segment, size_t len)
{
    if (len == 0)
        return "contains an empty segment ('//')";
    if (len == 1 && segment[0] == '.')
        return "contains a '.' segment";
    if (len == 2 && strncmp(segment, "..", len) == 0)
        return "contains a '..'";
    return NULL;
}

const char *store_key_problem(const struct store *store, const char *key)
{
    return store->ops->key_problem ? store->ops->key_problem(key) : NULL;
}

int store_url(struct store *store, const char *key, const char *permissions, int64_t life_s, char **out,
              struct act_error *err)
{
    struct store_call call = {
        .op = STORE_URL, .key = key ? key : "", .url = {.permissions = permissions, .life_s = life_s}};
    int rc = store_do(store, &call, err);

    if (rc == 0) {
        *out = call.url.text;
        call.url.text = NULL;
    }
    store_call_release(&call);
    return rc;
}

void store_free(struct store *store)
{
    if (!store)
        return;
    char *name = store->name;
    store->ops->close(store);
    free(name);
}
