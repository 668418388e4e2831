/* files_write.c - what all writes on a share have: the temporary file, its ranges or a copy by the service, and the
 * rename.
 *
 * Source: learn.microsoft.com/rest/api/storageservices/create-file, put-range, rename-file, copy-file.
 *
 * A share knows no conditions but one: a rename may replace what is there, or not. So a name is taken without replacing
 * anything first; what is in the way is looked at, and replaced if it has the very same name.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "store/files.h"

#define RANGE         ((size_t)4 << 20) /* the most that one request writes */
#define SMALL         (64U << 10)       /* bytes whose MD5 costs less than the way to a worker and back */
#define MAX_DAMAGED   3
#define FIRST_POLL_MS 100
#define LAST_POLL_MS  1000

/* ---- the end of what failed */

void files_build_delete_temp(struct azure_op *op)
{
    files_request(op, "DELETE", op->file->temp, NULL);
}

void files_undone(struct azure_op *op)
{
    op->call->error = op->file->refused;
    azure_finish(op, -(int)op->file->refused.code);
}

void files_undo(struct azure_op *op)
{
    op->file->made = false;
    op->file->refused = op->call->error;
    azure_send_next(op, files_build_delete_temp, files_undone);
}

/* ---- the temporary file */

/* Sets the time with seven digits, as the service has them. */
static void set_last_write(struct http_headers *headers, int64_t ns)
{
    enum { PER_S = 1000000000, STEP_NS = 100 };
    int64_t s = ns / PER_S - (ns % PER_S < 0);
    char time[ACT_TIME_TEXT];

    act_time_to_iso(s, time);
    time[strcspn(time, "Z")] = '\0';
    http_header_setf(headers, "x-ms-file-last-write-time", "%s.%07" PRId64 "Z", time, (ns - s * PER_S) / STEP_NS);
}

/* Returns what the file gets; NULL: nothing yet, as it comes in parts. It always gets a time, which tells later
 * whether its checksums are still those of its bytes. */
static const struct store_attributes *files_attributes(struct azure_op *op)
{
    const struct store_call *call = op->call;
    struct store_attributes *attr = &op->file->attr;

    if (call->op != STORE_PUT && call->op != STORE_COMMIT)
        return NULL;
    int64_t ns = attr->mtime_ns;
    *attr = call->op == STORE_PUT ? call->put.attr : call->commit.attr;
    if (attr->mtime_ns == 0)
        attr->mtime_ns = ns ? ns : act_now_unix_ns();
    return attr;
}

void files_set_times(struct azure_op *op)
{
    const struct store_attributes *attr = files_attributes(op);

    if (attr)
        set_last_write(&op->http.headers, attr->mtime_ns);
}

static void files_set_attributes(struct azure_op *op)
{
    const struct store_attributes *attr = files_attributes(op);

    if (attr)
        azure_set_attributes(&op->http.headers, attr);
    for (size_t i = 0; i < op->file->kept.n; i++)
        http_header_set(&op->http.headers, op->file->kept.v[i].name, op->file->kept.v[i].value);
}

/* Returns the MD5 of the whole, if it is known. */
static const char *whole_md5(const struct azure_op *op)
{
    const struct store_call *call = op->call;

    if (call->op == STORE_COMMIT)
        return call->commit.attr.md5;
    if (call->op != STORE_PUT)
        return NULL;
    return call->put.data.md5 ? call->put.data.md5 : call->put.data.len <= RANGE ? op->file->md5 : NULL;
}

static void build_make_temp(struct azure_op *op)
{
    struct http_headers *headers = &op->http.headers;
    const char *md5 = whole_md5(op);

    files_request(op, "PUT", op->file->temp, NULL);
    http_header_set(headers, "x-ms-type", "file");
    http_header_setf(headers, "x-ms-content-length", "%" PRIu64, op->file->size);
    http_header_set(headers, "x-ms-content-type", "application/octet-stream");
    if (md5 && *md5)
        http_header_set(headers, "x-ms-content-md5", md5);
    files_set_attributes(op);
    files_set_times(op);
}

bool files_make_folders_again(struct azure_op *op)
{
    if (op->file->again || !azure_has_code(&op->http, "ParentNotFound"))
        return false;
    op->file->again = true;
    files_forget_folders(op->azure->files);
    while (*op->file->at != FILES_MAKE_FOLDERS)
        op->file->at--;
    files_make_folders(op);
    return true;
}

void files_keep_id(struct azure_op *op)
{
    const char *id = http_header_get(&op->http.response_headers, "x-ms-file-id");

    snprintf(op->file->id, sizeof(op->file->id), "%s", id ? id : "");
}

static void answer_make_temp(struct azure_op *op)
{
    files_keep_id(op);
    op->file->made = azure_succeeded(op) && op->call->op == STORE_PUT;
    if (azure_succeeded(op) || !files_make_folders_again(op))
        files_next_if_succeeded(op);
}

void files_make_temp(struct azure_op *op)
{
    if (op->call->op == STORE_PUT)
        op->file->size = op->call->put.data.len;
    if (!op->file->temp)
        op->file->temp = files_temp(op->call->key);
    azure_send_next(op, build_make_temp, answer_make_temp);
}

/* ---- its ranges */

static size_t range_len(const struct azure_op *op)
{
    uint64_t rest = store_data_of(op->call)->len - op->file->sent;

    return rest < RANGE ? (size_t)rest : RANGE;
}

/* Computes the MD5 of the next range and, once, the sums that the caller wants, on a worker, or for little data on
 * the loop. Of data that is more than one range, only this function can compare the MD5 of all of it. */
static void compute_range(void *arg)
{
    struct azure_op *op = arg;
    struct files_op *write = op->file;
    const struct store_data *data = store_data_of(op->call);

    if (data->sums && !write->summed) {
        write->sums = *data->sums;
        store_sums_add(&write->sums, data->bytes, data->len);
        write->summed = true;
    }
    if (data->md5 && data->len > RANGE && write->sent == 0) {
        azure_md5_of(data->bytes, data->len, write->md5);
        write->mismatch = strcmp(write->md5, data->md5) != 0;
    }
    if (data->md5 && data->len <= RANGE)
        snprintf(write->md5, sizeof(write->md5), "%s", data->md5);
    else
        azure_md5_of((const char *)data->bytes + write->sent, range_len(op), write->md5);
}

static void send_range(struct azure_op *op);

static void range_summed(void *arg)
{
    struct azure_op *op = arg;

    if (op->file->mismatch)
        files_fail(op, act_error_set(&op->call->error, ACT_FAIL,
                                     "%s: the data is not what its checksum says; check the memory of this machine",
                                     azure_what(op)));
    else if (*op->file->at == FILES_SUM)
        files_next(op);
    else
        send_range(op);
}

void files_sum(struct azure_op *op)
{
    if (store_data_of(op->call)->len <= SMALL) {
        compute_range(op);
        range_summed(op);
    } else {
        engine_work(http_engine(op->azure->store.http), compute_range, range_summed, op);
    }
}

static void build_range(struct azure_op *op)
{
    const struct store_data *data = store_data_of(op->call);
    struct http_headers *headers = &op->http.headers;
    uint64_t at = (op->call->op == STORE_BLOCK ? op->call->block.offset : 0) + op->file->sent;
    size_t len = range_len(op);

    files_request(op, "PUT", op->file->temp, "comp=range");
    http_header_set(headers, "x-ms-write", "update");
    http_header_setf(headers, "x-ms-range", "bytes=%" PRIu64 "-%" PRIu64, at, at + len - 1);
    http_header_set(headers, "Content-MD5", op->file->md5);
    http_header_set(headers, "x-ms-file-last-write-time", "preserve");
    op->http.body = (const char *)data->bytes + op->file->sent;
    op->http.body_len = len;
}

static bool range_was_damaged(const struct azure_op *op)
{
    const char *echo = http_header_get(&op->http.response_headers, "Content-MD5");

    return azure_succeeded(op) ? echo && strcmp(echo, op->file->md5) != 0
                               : op->http.status == 400 && azure_has_code(&op->http, "Md5Mismatch");
}

static void answer_range(struct azure_op *op)
{
    struct files_op *write = op->file;

    if (range_was_damaged(op) && ++write->damaged < MAX_DAMAGED) {
        azure_send(op);
    } else if (range_was_damaged(op)) {
        files_fail(op, act_error_set(&op->call->error, ACT_FAIL,
                                     "%s: the data did not arrive as it was sent, %d times; check the memory and the "
                                     "network of this machine",
                                     azure_what(op), write->damaged));
    } else if (azure_succeeded(op)) {
        write->damaged = 0;
        write->sent += range_len(op);
        if (write->sent < store_data_of(op->call)->len)
            files_sum(op);
        else
            files_next(op);
    } else if (op->call->op == STORE_BLOCK && files_is_missing(op)) {
        files_blocks_gone(op);
    } else {
        files_fail_by_answer(op);
    }
}

static void send_range(struct azure_op *op)
{
    azure_send_next(op, build_range, answer_range);
}

void files_send(struct azure_op *op)
{
    if (op->file->sent < store_data_of(op->call)->len)
        send_range(op);
    else
        files_next(op);
}

/* ---- its name */

static void build_rename(struct azure_op *op)
{
    struct http_headers *headers = &op->http.headers;
    ACT_AUTOWIPE char *source = files_source_url(op, op->file->temp);

    files_request(op, "PUT", op->call->key, "comp=rename");
    http_header_set(headers, "x-ms-file-rename-source", source);
    http_header_set(headers, "x-ms-source-allow-trailing-dot", "true");
    http_header_set(headers, "x-ms-file-rename-replace-if-exists", op->file->replaces ? "true" : "false");
    files_set_attributes(op); /* which a rename with metadata replaces */
}

static void file_in_place(struct azure_op *op)
{
    struct store_call *call = op->call;

    store_entry_release(&call->entry);
    call->entry.key = act_strdup(call->key);
    azure_take_etag(&call->entry, http_header_get(&op->http.response_headers, "ETag"));
    if (op->file->summed)
        *store_data_of(call)->sums = op->file->sums;
    files_next(op);
}

static int upload_is_gone(struct azure_op *op)
{
    op->call->error.fact = ACT_FACT_BLOCKS_MISSING;
    return act_error_hint(&op->call->error, "what was uploaded is gone; upload it again");
}

/* If the first try of the rename succeeded after all, the object has the id of our file. */
static void answer_whose_file(struct azure_op *op)
{
    const char *id = http_header_get(&op->http.response_headers, "x-ms-file-id");

    if (azure_succeeded(op) && op->file->id[0] && act_streq(id, op->file->id)) {
        file_in_place(op);
        return;
    }
    op->call->error = op->file->refused;
    op->file->made = false;
    files_fail(op, upload_is_gone(op));
}

static void build_head_place(struct azure_op *op)
{
    files_request(op, "HEAD", op->call->key, NULL);
}

/* Only a file of the very same name is replaced. */
static void answer_in_the_way(struct azure_op *op)
{
    int rc = files_looked_up(op);
    enum files_found found = op->file->found;
    bool is_free = rc == 0 && (found == FILES_FILE || (found == FILES_NOTHING && !op->file->checked));

    if (rc == 0 && found == FILES_FILE && store_condition_of(op->call)->if_absent) {
        files_fail(op, act_error_set(&op->call->error, ACT_PARTIAL, "%s: it exists already", azure_what(op)));
    } else if (is_free) {
        op->file->replaces = found == FILES_FILE;
        op->file->checked = true;
        files_rename(op);
    } else {
        files_fail(op, rc < 0 ? rc : files_refuse_name(op, op->call->key, found, op->file->other));
    }
}

static void answer_rename(struct azure_op *op)
{
    bool taken =
        azure_has_code(&op->http, "ResourceAlreadyExists") || azure_has_code(&op->http, "ResourceTypeMismatch");

    if (azure_succeeded(op)) {
        file_in_place(op);
    } else if (op->http.status == 409 && taken && !op->file->replaces) {
        files_look_up(op, op->call->key, answer_in_the_way);
    } else if (op->http.status == 404 && (op->http.ambiguous || op->ambiguous)) {
        (void)azure_answer_error(op);
        op->file->refused = op->call->error;
        azure_send_next(op, build_head_place, answer_whose_file);
    } else if (op->http.status == 404 && op->call->op == STORE_COMMIT && files_is_missing(op)) {
        (void)azure_answer_error(op);
        op->call->error.code = ACT_TEMPORARY;
        (void)upload_is_gone(op);
        files_fail(op, -ACT_TEMPORARY);
    } else {
        files_fail_by_answer(op);
    }
}

void files_rename(struct azure_op *op)
{
    azure_send_next(op, build_rename, answer_rename);
}

/* ---- a copy by the service, which is renamed as well */

static void build_copy_file(struct azure_op *op)
{
    struct http_headers *headers = &op->http.headers;
    ACT_AUTOWIPE char *source = files_source_url(op, op->call->copy.source);

    files_request(op, "PUT", op->file->temp, NULL);
    http_header_set(headers, "x-ms-copy-source", source);
    http_header_set(headers, "x-ms-source-allow-trailing-dot", "true");
    http_header_set(headers, "x-ms-file-last-write-time", "source");
}

static void answer_copy_file(struct azure_op *op)
{
    op->file->made = azure_succeeded(op);
    files_next_if_succeeded(op);
}

void files_copy(struct azure_op *op)
{
    op->file->temp = files_temp(op->call->key);
    azure_send_next(op, build_copy_file, answer_copy_file);
}

static void build_head_temp(struct azure_op *op)
{
    files_request(op, "HEAD", op->file->temp, NULL);
}

static void keep_metadata(struct azure_op *op)
{
    const struct http_headers *headers = &op->http.response_headers;

    for (size_t i = 0; i < headers->n; i++)
        if (strncasecmp(headers->v[i].name, "x-ms-meta-", strlen("x-ms-meta-")) == 0)
            http_header_set(&op->file->kept, headers->v[i].name, headers->v[i].value);
}

static void look_at_copy(void *op)
{
    files_watch(op);
}

static void answer_watch(struct azure_op *op)
{
    int64_t *poll_ms = &op->file->poll_ms;
    const char *status = http_header_get(&op->http.response_headers, "x-ms-copy-status");

    if (!azure_succeeded(op)) {
        files_fail_by_answer(op);
    } else if (act_streq(status, "pending")) {
        *poll_ms += *poll_ms < LAST_POLL_MS ? FIRST_POLL_MS : 0;
        engine_timer(http_engine(op->azure->store.http), *poll_ms, look_at_copy, op);
    } else if (!act_streq(status, "success")) {
        files_fail(op, act_error_set(&op->call->error, ACT_FAIL, "%s: copy %s", azure_what(op),
                                     status ? status : "without a result"));
    } else {
        files_keep_id(op);
        keep_metadata(op);
        files_next(op);
    }
}

void files_watch(struct azure_op *op)
{
    azure_send_next(op, build_head_temp, answer_watch);
}
