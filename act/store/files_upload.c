/* files_upload.c - files of a share that are written in blocks, resumed, dropped and cleared.
 *
 * The blocks go to their places in a temporary file whose name begins with what follows from the upload's id and the
 * key. A second file beside it, the journal, has 8 bytes for each block, its length, written when the block is there:
 * what the service says of written ranges is rounded, and joins neighbours. The journal is made first and removed last,
 * and means nothing without the temporary file.
 *
 * Several processes may upload the same to the same key. Nothing locks it: a lease of a file never ends, and whoever is
 * killed would leave it. Instead no temporary name is ever used twice. Who finds one writes the same bytes to the same
 * places; who finds none makes one of its own. So a journal never tells of another file than the one beside it, and
 * what is renamed is whole, or is gone because another process was faster.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store/files.h"

enum { RECORD = 8 };

#define JOURNAL_BYTES ((uint64_t)RECORD * STORE_MAX_BLOCKS)

struct files_upload {
    char *name; /* what its temporary names begin with */
    char *temp; /* the one that is used; NULL: none */
    enum { UPLOAD_UNKNOWN, UPLOAD_ABSENT, UPLOAD_THERE } state;
    uint64_t size;  /* that the temporary file has, */
    uint64_t total; /* and will have; 0: not known */
    bool busy;      /* somebody makes it ready */
    struct azure_op *waiting;
    struct files_upload *next;
};

static struct files_upload **find_upload(struct files *files, const char *name)
{
    struct files_upload **at = &files->uploads;

    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

static struct files_upload *upload_of(struct azure_op *op)
{
    struct files_upload **at = find_upload(op->azure->files, op->file->upload);

    if (!*at) {
        *at = act_calloc(1, sizeof(**at));
        (*at)->name = act_strdup(op->file->upload);
    }
    return *at;
}

static void free_upload(struct files_upload *upload)
{
    free(upload->name);
    free(upload->temp);
    free(upload);
}

/* Nothing is known of it any more. */
static void forget_upload(struct azure_op *op)
{
    struct files_upload **at = find_upload(op->azure->files, op->file->upload), *upload = *at;

    if (!upload || upload->busy)
        return;
    *at = upload->next;
    free_upload(upload);
}

void files_free_uploads(struct files *files)
{
    while (files->uploads) {
        struct files_upload *next = files->uploads->next;
        free_upload(files->uploads);
        files->uploads = next;
    }
}

static void request_journal(struct azure_op *op, const char *method, const char *query)
{
    ACT_AUTOFREE char *journal = act_sprintf("%s" FILES_JOURNAL, op->file->temp);

    files_request(op, method, journal, query);
}

static void fail_by_answer(struct azure_op *op)
{
    files_fail(op, azure_answer_error(op));
}

void files_blocks_gone(struct azure_op *op)
{
    upload_of(op)->state = UPLOAD_UNKNOWN;
    act_error_set(&op->call->error, ACT_TEMPORARY, "%s: blocks of this upload are gone; upload it again",
                  azure_what(op));
    op->call->error.fact = ACT_FACT_BLOCKS_MISSING;
    files_fail(op, -ACT_TEMPORARY);
}

/* ---- finding its temporary file */

static void build_find(struct azure_op *op)
{
    files_request_names(op, op->file->upload);
}

/* Of several, the first one by name, so that all who look take the same. */
static void take_temp(struct files_upload *upload, const struct store_page *page)
{
    const struct store_entry *first = NULL;

    for (size_t i = 0; i < page->n; i++) {
        const struct store_entry *entry = &page->v[i];
        bool fits = entry->kind == STORE_FILE && act_starts_with(entry->key, upload->name) &&
                    files_is_temp(entry->key) && !files_is_journal(entry->key);
        if (fits && (!first || strcmp(entry->key, first->key) < 0))
            first = entry;
    }
    upload->state = first ? UPLOAD_THERE : UPLOAD_ABSENT;
    act_str_replace(&upload->temp, first ? first->key : NULL);
    upload->size = first ? first->size : 0;
}

static void answer_find(struct azure_op *op)
{
    struct store_page page = {0};
    int rc = files_take_names(op, op->file->upload, &page);

    if (rc == 0 || files_is_missing(op)) {
        take_temp(upload_of(op), &page);
        rc = 0;
    }
    store_page_release(&page);
    if (rc)
        files_fail(op, rc);
    else
        op->file->then(op);
}

static void find(struct azure_op *op, void (*then)(struct azure_op *op))
{
    op->file->then = then;
    azure_send_next(op, build_find, answer_find);
}

/* ---- making it ready: the temporary file is there, and large enough */

static void make_ready(struct azure_op *op);

static uint64_t needed(const struct azure_op *op)
{
    return op->call->block.offset + op->call->block.data.len;
}

static struct azure_op *stop_preparing(struct azure_op *op)
{
    struct files_upload *upload = op->file->preparing;
    struct azure_op *waiting = upload->waiting;

    upload->waiting = NULL;
    upload->busy = false;
    op->file->preparing = NULL;
    op->failed = NULL;
    return waiting;
}

static void wake(struct azure_op *waiting)
{
    while (waiting) {
        struct azure_op *op = waiting;
        waiting = op->next_waiting;
        op->next_waiting = NULL;
        make_ready(op);
    }
}

static void is_ready(struct azure_op *op)
{
    struct azure_op *waiting = stop_preparing(op);

    make_ready(op);
    wake(waiting);
}

void files_upload_failed(struct azure_op *op)
{
    struct azure_op *waiting = stop_preparing(op);

    while (waiting) {
        struct azure_op *next = waiting->next_waiting;
        waiting->call->error = op->call->error;
        azure_finish(waiting, -(int)op->call->error.code);
        waiting = next;
    }
    azure_finish(op, -(int)op->call->error.code);
}

static void no_answer(struct azure_op *op)
{
    act_error_prefix(&op->call->error, "%s", azure_what(op));
    files_upload_failed(op);
}

static void made(struct azure_op *op)
{
    op->file->preparing->state = UPLOAD_THERE;
    op->file->preparing->size = op->file->size;
    is_ready(op);
}

static void build_journal(struct azure_op *op)
{
    request_journal(op, "PUT", NULL);
    http_header_set(&op->http.headers, "x-ms-type", "file");
    http_header_setf(&op->http.headers, "x-ms-content-length", "%" PRIu64, JOURNAL_BYTES);
}

static void make_temp(struct azure_op *op)
{
    op->failed = no_answer;
    files_make(op, made);
}

static void answer_journal(struct azure_op *op)
{
    if (azure_succeeded(op))
        make_temp(op);
    else
        fail_by_answer(op);
}

static void make_journal(struct azure_op *op)
{
    op->failed = no_answer;
    azure_send_next(op, build_journal, answer_journal);
}

static void build_resize(struct azure_op *op)
{
    struct http_headers *headers = &op->http.headers;

    files_request(op, "PUT", op->file->temp, "comp=properties");
    http_header_setf(headers, "x-ms-content-length", "%" PRIu64, op->file->size);
    http_header_set(headers, "x-ms-content-type", "application/octet-stream");
    http_header_set(headers, "x-ms-file-permission", "preserve");
    http_header_set(headers, "x-ms-file-attributes", "preserve");
    http_header_set(headers, "x-ms-file-creation-time", "preserve");
    http_header_set(headers, "x-ms-file-last-write-time", "preserve");
    files_set_times(op);
    if (op->call->op == STORE_COMMIT && op->call->commit.attr.md5)
        http_header_set(headers, "x-ms-content-md5", op->call->commit.attr.md5);
}

static void answer_grow(struct azure_op *op)
{
    if (azure_succeeded(op))
        made(op);
    else if (files_is_missing(op))
        files_blocks_gone(op);
    else
        fail_by_answer(op);
}

static void use_temp(struct azure_op *op, const struct files_upload *upload)
{
    act_str_replace(&op->file->temp, upload->temp);
}

static void make_new(struct azure_op *op, struct files_upload *upload)
{
    free(upload->temp);
    upload->temp = files_temp_of(upload->name);
    use_temp(op, upload);
    files_make_parents(op, op->call->key, make_journal);
}

/* Takes one step, of which each ends here again. */
static void make_ready(struct azure_op *op)
{
    struct files_upload *upload = upload_of(op);

    if (upload->busy) {
        op->next_waiting = upload->waiting;
        upload->waiting = op;
        return;
    }
    use_temp(op, upload);
    if (upload->state == UPLOAD_THERE && upload->size >= needed(op)) {
        op->file->ready(op);
        return;
    }
    upload->busy = true;
    op->file->preparing = upload;
    op->failed = no_answer;
    op->file->size = needed(op) > upload->total ? needed(op) : upload->total;
    if (upload->state == UPLOAD_UNKNOWN)
        find(op, is_ready);
    else if (upload->state == UPLOAD_THERE)
        azure_send_next(op, build_resize, answer_grow);
    else
        make_new(op, upload);
}

static void with_upload(struct azure_op *op, const struct store_upload_id *id)
{
    files_state(op)->upload = files_upload_of(op->call->key, id);
}

/* ---- BLOCK */

static void put_number(uint8_t out[RECORD], uint64_t number)
{
    for (int i = 0; i < RECORD; i++)
        out[i] = (uint8_t)(number >> (56 - 8 * i));
}

static uint64_t get_number(const char *bytes)
{
    uint64_t number = 0;

    for (int i = 0; i < RECORD; i++)
        number = number << 8 | (uint8_t)bytes[i];
    return number;
}

static void build_record(struct azure_op *op)
{
    const struct store_put_block *block = &op->call->block;
    uint64_t at = (uint64_t)block->index * RECORD;
    uint8_t record[RECORD];

    put_number(record, block->data.len);
    act_buf_add(&op->body, record, sizeof(record));
    request_journal(op, "PUT", "comp=range");
    http_header_set(&op->http.headers, "x-ms-write", "update");
    http_header_setf(&op->http.headers, "x-ms-range", "bytes=%" PRIu64 "-%" PRIu64, at, at + RECORD - 1);
    op->http.body = op->body.data;
    op->http.body_len = op->body.len;
}

static void answer_record(struct azure_op *op)
{
    struct files_write *write = op->file;

    if (files_is_missing(op)) {
        files_blocks_gone(op);
        return;
    }
    if (!azure_succeeded(op)) {
        fail_by_answer(op);
        return;
    }
    if (write->summed)
        *op->call->block.data.sums = write->sums;
    azure_finish(op, 0);
}

static void block_sent(struct azure_op *op)
{
    azure_send_next(op, build_record, answer_record);
}

static void send_block(struct azure_op *op)
{
    files_send(op, block_sent);
}

static void start_ready(void *op)
{
    make_ready(op);
}

void files_block(struct azure_op *op)
{
    with_upload(op, &op->call->block.upload_id);
    op->file->ready = send_block;
    engine_timer(http_engine(op->azure->store.http), 0, start_ready, op);
}

/* ---- BLOCKS */

static void build_read_journal(struct azure_op *op)
{
    uint64_t records = op->call->op == STORE_COMMIT ? op->call->commit.n_blocks : STORE_MAX_BLOCKS;

    request_journal(op, "GET", NULL);
    http_header_setf(&op->http.headers, "x-ms-range", "bytes=0-%" PRIu64, records * RECORD - 1);
}

static size_t n_records(const struct azure_op *op)
{
    return op->http.body_text.len / RECORD;
}

static uint64_t record_at(const struct azure_op *op, size_t i)
{
    return get_number(op->http.body_text.data + i * RECORD);
}

static void take_journal(struct azure_op *op)
{
    struct store_blocks *blocks = &op->call->blocks;

    for (size_t i = 0; i < n_records(op) && i < STORE_MAX_BLOCKS; i++) {
        uint64_t len = record_at(op, i);
        if (!len)
            continue;
        ACT_GROW(blocks->found, blocks->n_found);
        blocks->found[blocks->n_found] = (struct store_block){.len = len};
        store_block_id(&blocks->upload_id, (uint32_t)i, blocks->found[blocks->n_found++].id);
    }
}

static void answer_blocks(struct azure_op *op)
{
    if (azure_succeeded(op)) {
        take_journal(op);
        azure_finish(op, 0);
    } else if (files_is_missing(op)) { /* nothing tells which of its bytes are any */
        upload_of(op)->state = UPLOAD_ABSENT;
        azure_finish(op, 0);
    } else {
        fail_by_answer(op);
    }
}

static void read_blocks(struct azure_op *op)
{
    use_temp(op, upload_of(op));
    if (op->file->temp)
        azure_send_next(op, build_read_journal, answer_blocks);
    else
        azure_finish(op, 0);
}

void files_blocks(struct azure_op *op)
{
    with_upload(op, &op->call->blocks.upload_id);
    upload_of(op)->total = op->call->blocks.total;
    find(op, read_blocks);
}

/* ---- COMMIT */

static void answer_finish(struct azure_op *op)
{
    const char *id = http_header_get(&op->http.response_headers, "x-ms-file-id");

    if (azure_succeeded(op)) {
        snprintf(op->file->file_id, sizeof(op->file->file_id), "%s", id ? id : "");
        files_put_in_place(op);
    } else if (files_is_missing(op)) {
        files_blocks_gone(op);
    } else {
        fail_by_answer(op);
    }
}

/* The whole gets its length and its properties before it gets its name. */
static void answer_are_whole(struct azure_op *op)
{
    const struct store_commit *commit = &op->call->commit;
    uint64_t total = 0;
    bool is_whole = azure_succeeded(op) && n_records(op) >= commit->n_blocks;

    for (size_t i = 0; is_whole && i < commit->n_blocks; i++) {
        uint64_t len = record_at(op, i);
        is_whole = len > 0;
        total += len;
    }
    if (!azure_succeeded(op) && !files_is_missing(op)) {
        fail_by_answer(op);
    } else if (!is_whole || total != commit->total) {
        files_blocks_gone(op);
    } else {
        op->file->size = total;
        azure_send_next(op, build_resize, answer_finish);
    }
}

static void check_whole(struct azure_op *op)
{
    use_temp(op, upload_of(op));
    if (op->file->temp)
        azure_send_next(op, build_read_journal, answer_are_whole);
    else
        files_blocks_gone(op);
}

/* Goes on once it is known whether there is a temporary file, and under which name. */
static void with_temp(struct azure_op *op, const struct store_upload_id *id, void (*then)(struct azure_op *op))
{
    with_upload(op, id);
    if (upload_of(op)->state == UPLOAD_UNKNOWN)
        find(op, then);
    else
        then(op);
}

static void start_commit(void *arg)
{
    struct azure_op *op = arg;

    with_temp(op, &op->call->commit.upload_id, check_whole);
}

void files_commit(struct azure_op *op)
{
    if (op->call->commit.n_blocks > 0) {
        engine_timer(http_engine(op->azure->store.http), 0, start_commit, op);
        return;
    }
    with_upload(op, &op->call->commit.upload_id);
    op->file->temp = files_temp(op->call->key);
    files_make(op, files_put_in_place);
}

/* ---- what is left */

static void build_delete_temp(struct azure_op *op)
{
    files_request(op, "DELETE", op->file->temp, NULL);
}

static void build_delete_journal(struct azure_op *op)
{
    request_journal(op, "DELETE", NULL);
}

/* The object is written, whatever becomes of what told of its blocks: that is a leftover then. */
static void journal_gone(struct azure_op *op)
{
    azure_finish(op, 0);
}

void files_upload_ended(struct azure_op *op)
{
    forget_upload(op);
    op->failed = journal_gone;
    azure_send_next(op, build_delete_journal, journal_gone);
}

static void answer_drop_journal(struct azure_op *op)
{
    if (azure_succeeded(op) || files_is_missing(op))
        azure_finish(op, 0);
    else
        fail_by_answer(op);
}

static void answer_drop(struct azure_op *op)
{
    if (azure_succeeded(op) || files_is_missing(op))
        azure_send_next(op, build_delete_journal, answer_drop_journal);
    else
        fail_by_answer(op);
}

static void drop_it(struct azure_op *op)
{
    use_temp(op, upload_of(op));
    forget_upload(op);
    if (op->file->temp && !op->call->drop.keep)
        azure_send_next(op, build_delete_temp, answer_drop);
    else
        azure_finish(op, 0);
}

static void start_drop(void *arg)
{
    struct azure_op *op = arg;

    if (op->call->drop.keep) {
        with_upload(op, &op->call->drop.upload_id);
        drop_it(op);
    } else {
        with_temp(op, &op->call->drop.upload_id, drop_it);
    }
}

void files_drop(struct azure_op *op)
{
    engine_timer(http_engine(op->azure->store.http), 0, start_drop, op);
}

/* ---- CLEAR */

static void answer_clear(struct azure_op *op)
{
    if (azure_succeeded(op))
        azure_send_next(op, build_delete_journal, answer_drop_journal);
    else
        fail_by_answer(op);
}

static void build_clear(struct azure_op *op)
{
    files_request(op, "DELETE", op->call->key, NULL);
}

static void refuse_clear(void *arg)
{
    struct azure_op *op = arg;

    azure_finish(op, act_error_set(&op->call->error, ACT_FAIL,
                                   "%s: it is an object, not what an interrupted upload left", azure_what(op)));
}

/* A journal alone is what is left when its file was put in its place. */
void files_clear(struct azure_op *op)
{
    files_state(op)->temp = act_strdup(op->call->key);
    if (!files_is_temp(op->call->key))
        engine_timer(http_engine(op->azure->store.http), 0, refuse_clear, op);
    else if (files_is_journal(op->call->key))
        azure_send_next(op, build_clear, answer_drop_journal);
    else
        azure_send_next(op, build_clear, answer_clear);
}
