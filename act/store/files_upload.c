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

static struct files_upload **files_find_upload(struct files *files, const char *name)
{
    struct files_upload **at = &files->uploads;

    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

static const struct store_upload_id *upload_id_of(const struct store_call *call)
{
    return call->op == STORE_BLOCK    ? &call->block.upload_id
           : call->op == STORE_BLOCKS ? &call->blocks.upload_id
           : call->op == STORE_COMMIT ? &call->commit.upload_id
                                      : &call->drop.upload_id;
}

static const char *upload_name_of(struct azure_op *op)
{
    if (!op->file->upload)
        op->file->upload = files_upload_of(op->call->key, upload_id_of(op->call));
    return op->file->upload;
}

static struct files_upload *files_own_upload(struct azure_op *op)
{
    struct files_upload **at = files_find_upload(op->azure->files, upload_name_of(op));

    if (!*at) {
        *at = act_calloc(1, sizeof(**at));
        (*at)->name = act_strdup(op->file->upload);
    }
    return *at;
}

static void files_free_upload(struct files_upload *upload)
{
    free(upload->name);
    free(upload->temp);
    free(upload);
}

/* Forgets what is known of the upload, unless somebody is preparing it. */
static void forget_upload(struct azure_op *op)
{
    struct files_upload **at = files_find_upload(op->azure->files, upload_name_of(op)), *upload = *at;

    if (!upload || upload->busy)
        return;
    *at = upload->next;
    files_free_upload(upload);
}

void files_free_uploads(struct files *files)
{
    while (files->uploads) {
        struct files_upload *next = files->uploads->next;
        files_free_upload(files->uploads);
        files->uploads = next;
    }
}

static void request_journal(struct azure_op *op, const char *method, const char *query)
{
    ACT_AUTOFREE char *journal = act_sprintf("%s" FILES_JOURNAL, op->file->temp);

    files_request(op, method, journal, query);
}

void files_blocks_gone(struct azure_op *op)
{
    files_own_upload(op)->state = UPLOAD_UNKNOWN;
    act_error_set(&op->call->error, ACT_TEMPORARY, "%s: blocks of this upload are gone; upload it again",
                  azure_what(op));
    op->call->error.fact = ACT_FACT_BLOCKS_MISSING;
    files_fail(op, -ACT_TEMPORARY);
}

static void use_temp(struct azure_op *op, const struct files_upload *upload)
{
    act_str_replace(&op->file->temp, upload->temp);
}

/* ---- finding its temporary file */

static void build_find(struct azure_op *op)
{
    files_request_names(op, op->file->upload);
}

/* Takes the temporary file that a listing shows. If there are several, all who look take the first one by name. */
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
    bool is_known = rc == 0 || files_is_missing(op);

    if (is_known)
        take_temp(files_own_upload(op), &page);
    store_page_release(&page);
    if (is_known)
        files_next(op);
    else
        files_fail(op, rc);
}

/* BLOCKS always asks: another process may have begun the upload. A DROP that keeps what was sent need not know where
 * that is. */
void files_find(struct azure_op *op)
{
    const struct store_call *call = op->call;
    struct files_upload *upload = files_own_upload(op);
    bool is_kept = call->op == STORE_DROP && call->drop.keep;

    if (call->op == STORE_BLOCKS)
        upload->total = call->blocks.total;
    if (call->op == STORE_BLOCKS || (upload->state == UPLOAD_UNKNOWN && !is_kept))
        azure_send_next(op, build_find, answer_find);
    else
        files_next(op);
}

/* ---- making it ready: the temporary file is there, and large enough */

static uint64_t block_end(const struct azure_op *op)
{
    return op->call->block.offset + op->call->block.data.len;
}

static struct azure_op *stop_preparing(struct azure_op *op)
{
    struct files_upload *upload = files_own_upload(op);
    struct azure_op *waiting = upload->waiting;

    upload->waiting = NULL;
    upload->busy = false;
    op->file->prepares = false;
    return waiting;
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

/* Begins the way to what is unknown or missing next. Each of these ways leads back to FILES_READY. */
static void prepare_upload(struct azure_op *op, struct files_upload *upload)
{
    static const enum files_phase ways[][5] = {
        [UPLOAD_UNKNOWN] = {FILES_FIND, FILES_READY},
        [UPLOAD_ABSENT] = {FILES_MAKE_FOLDERS, FILES_MAKE_JOURNAL, FILES_MAKE_TEMP, FILES_PREPARED, FILES_READY},
        [UPLOAD_THERE] = {FILES_SIZE, FILES_PREPARED, FILES_READY},
    };

    upload->busy = true;
    op->file->prepares = true;
    op->file->size = block_end(op) > upload->total ? block_end(op) : upload->total;
    if (upload->state == UPLOAD_ABSENT) {
        free(upload->temp);
        upload->temp = files_temp_of(upload->name);
        use_temp(op, upload);
    }
    files_begin(op, ways[upload->state]);
}

void files_prepared(struct azure_op *op)
{
    struct files_upload *upload = files_own_upload(op);

    upload->state = UPLOAD_THERE;
    upload->size = op->file->size;
    files_next(op);
}

void files_get_ready(struct azure_op *op)
{
    static const enum files_phase write_block[] = {FILES_SUM, FILES_DATA, FILES_RECORD, FILES_END};
    struct files_upload *upload = files_own_upload(op);
    struct azure_op *waiting = op->file->prepares ? stop_preparing(op) : NULL;

    if (upload->busy) {
        op->next_waiting = upload->waiting;
        upload->waiting = op;
    } else if (upload->state == UPLOAD_THERE && upload->size >= block_end(op)) {
        use_temp(op, upload);
        files_begin(op, write_block);
    } else {
        use_temp(op, upload);
        prepare_upload(op, upload);
    }
    while (waiting) {
        op = waiting;
        waiting = op->next_waiting;
        op->next_waiting = NULL;
        files_get_ready(op);
    }
}

static void build_make_journal(struct azure_op *op)
{
    request_journal(op, "PUT", NULL);
    http_header_set(&op->http.headers, "x-ms-type", "file");
    http_header_setf(&op->http.headers, "x-ms-content-length", "%" PRIu64, JOURNAL_BYTES);
}

static void answer_make_journal(struct azure_op *op)
{
    if (azure_succeeded(op) || !files_make_folders_again(op))
        files_next_if_succeeded(op);
}

void files_make_journal(struct azure_op *op)
{
    azure_send_next(op, build_make_journal, answer_make_journal);
}

/* A whole file gets its length and properties before it gets its name. */
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

/* Goes on if the request succeeded; what it names must be there while the upload lasts. */
static void next_unless_gone(struct azure_op *op)
{
    if (files_is_missing(op))
        files_blocks_gone(op);
    else
        files_next_if_succeeded(op);
}

static void answer_resize(struct azure_op *op)
{
    files_keep_id(op);
    next_unless_gone(op);
}

void files_resize(struct azure_op *op)
{
    azure_send_next(op, build_resize, answer_resize);
}

/* ---- the journal */

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
    if (azure_succeeded(op) && op->file->summed)
        *op->call->block.data.sums = op->file->sums;
    next_unless_gone(op);
}

void files_record(struct azure_op *op)
{
    azure_send_next(op, build_record, answer_record);
}

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

static void take_blocks(struct azure_op *op)
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

/* Without a journal nobody knows which bytes of the file are blocks. */
static void answer_read_blocks(struct azure_op *op)
{
    if (files_is_missing(op)) {
        files_own_upload(op)->state = UPLOAD_ABSENT;
        files_next(op);
        return;
    }
    if (azure_succeeded(op))
        take_blocks(op);
    files_next_if_succeeded(op);
}

/* Returns whether the journal has all blocks, and whether they make up the whole. */
static bool journal_is_whole(const struct azure_op *op)
{
    const struct store_commit *commit = &op->call->commit;
    uint64_t total = 0;

    if (!azure_succeeded(op) || n_records(op) < commit->n_blocks)
        return false;
    for (size_t i = 0; i < commit->n_blocks; i++) {
        if (!record_at(op, i))
            return false;
        total += record_at(op, i);
    }
    return total == commit->total;
}

static void answer_is_whole(struct azure_op *op)
{
    op->file->size = op->call->commit.total;
    if (azure_succeeded(op) && !journal_is_whole(op))
        files_blocks_gone(op);
    else
        next_unless_gone(op);
}

void files_read_journal(struct azure_op *op)
{
    bool commits = op->call->op == STORE_COMMIT;

    use_temp(op, files_own_upload(op));
    if (op->file->temp)
        azure_send_next(op, build_read_journal, commits ? answer_is_whole : answer_read_blocks);
    else if (commits)
        files_blocks_gone(op);
    else
        files_next(op);
}

/* ---- what is left */

/* A journal may stand alone: its file was put in its place. */
static void answer_drop(struct azure_op *op)
{
    bool is_journal = files_is_journal(op->file->temp);
    bool may_be_gone = is_journal || op->call->op == STORE_DROP;

    if (!azure_succeeded(op) && !(may_be_gone && files_is_missing(op)))
        files_fail_by_answer(op);
    else if (is_journal)
        azure_finish(op, 0);
    else
        files_next(op);
}

static int take_leftover(struct azure_op *op)
{
    if (!files_is_temp(op->call->key))
        return act_error_set(&op->call->error, ACT_FAIL, "%s: it is an object, not what an interrupted upload left",
                             azure_what(op));
    op->file->temp = act_strdup(op->call->key);
    return 0;
}

void files_drop(struct azure_op *op)
{
    bool is_kept = op->call->op == STORE_DROP && op->call->drop.keep;
    int rc = 0;

    if (op->call->op == STORE_CLEAR) {
        rc = take_leftover(op);
    } else {
        use_temp(op, files_own_upload(op));
        forget_upload(op);
    }
    if (rc == 0 && op->file->temp && !is_kept)
        azure_send_next(op, files_build_delete_temp, answer_drop);
    else
        azure_finish(op, rc);
}

static void build_delete_journal(struct azure_op *op)
{
    request_journal(op, "DELETE", NULL);
}

/* A committed object is in its place, whatever becomes of its journal. */
static void answer_forget(struct azure_op *op)
{
    if (files_is_missing(op) || op->call->op == STORE_COMMIT)
        files_next(op);
    else
        files_next_if_succeeded(op);
}

void files_forget(struct azure_op *op)
{
    if (op->call->op == STORE_COMMIT)
        forget_upload(op);
    azure_send_next(op, build_delete_journal, answer_forget);
}
