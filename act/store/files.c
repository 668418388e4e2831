/* files.c - the store that is a share of Azure Files: which way each operation goes; looking at files and folders, and
 * deleting them. */
#include "store/files.h"

#include <string.h>

#define MAX_PUT (64U << 20) /* bytes at once, in ranges of 4 MiB */

/* ---- requests */

/* Keeps dots at the ends of names, and gives the token of a login what its role permits on all files, as other
 * credentials have it (version 2022-11-02). */
void files_set_headers(struct azure_op *op)
{
    http_header_set(&op->http.headers, "x-ms-allow-trailing-dot", "true");
    if (auth_kind_of(op->azure->auth) == AUTH_LOGIN)
        http_header_set(&op->http.headers, "x-ms-file-request-intent", "backup");
}

void files_request(struct azure_op *op, const char *method, const char *key, const char *query)
{
    ACT_AUTOFREE char *bare = act_strndup(key, strlen(key) - act_ends_with(key, "/"));

    azure_request(op, method, *bare ? bare : NULL, query);
}

void files_request_folder(struct azure_op *op, const char *method, const char *key, const char *query)
{
    ACT_AUTOFREE char *all = act_sprintf("restype=directory%s%s", query ? "&" : "", query ? query : "");

    files_request(op, method, key, all);
}

/* Sets method and URL of whichever the key of the call names. */
static void files_request_object(struct azure_op *op, const char *method)
{
    const char *key = op->call->key;

    act_ends_with(key, "/") ? files_request_folder(op, method, key, NULL) : files_request(op, method, key, NULL);
}

bool files_is_missing(const struct azure_op *op)
{
    return (op->http.status == 404 && !azure_has_code(&op->http, "ShareNotFound")) ||
           (op->http.status == 409 && azure_has_code(&op->http, "ResourceTypeMismatch"));
}

char *files_source_url(const struct azure_op *op, const char *key)
{
    ACT_AUTOFREE char *url = azure_url(op->azure, key);
    const char *sas = op->azure->sas;

    return act_sprintf("%s%s%s", url, sas ? "?" : "", sas ? sas : "");
}

/* ---- looking: a folder has no bytes */

static void answer_head_folder(struct azure_op *op)
{
    if (azure_succeeded(op))
        azure_fill(&op->call->entry, op->call->key, 0, op->http.status, &op->http.response_headers);
    if (azure_succeeded(op) && files_is_listed(op->call))
        azure_finish(op, 0);
    else
        files_next_if_succeeded(op);
}

/* The service takes small letters for capitals, and does not say which of them the name has. */
static void answer_head_file(struct azure_op *op)
{
    if (!azure_succeeded(op) || files_is_listed(op->call)) {
        azure_answer_head(op);
        return;
    }
    int rc = azure_take_head(op);
    if (rc < 0)
        files_fail(op, rc);
    else
        files_next(op);
}

static void build_head_object(struct azure_op *op)
{
    files_request_object(op, "HEAD");
}

static void files_head(struct azure_op *op)
{
    azure_send_next(op, build_head_object, act_ends_with(op->call->key, "/") ? answer_head_folder : answer_head_file);
}

/* Who may not list takes the service's word for the name. */
static void answer_exact(struct azure_op *op)
{
    int rc = files_looked_up(op);

    if (rc == 0 && op->file->found == FILES_OTHER_CASE)
        rc = files_other_name(op);
    if (rc == -ACT_DENIED)
        azure_finish(op, 0);
    else if (rc < 0)
        files_fail(op, rc);
    else
        files_next(op);
}

static void files_check_name(struct azure_op *op)
{
    if (act_ends_with(op->call->key, "/"))
        files_next(op);
    else
        files_look_up(op, op->call->key, answer_exact);
}

/* ---- conditions: a share knows none, so that somebody may still write between the look and what follows */

/* Returns the ETag that the object must have; NULL: any. */
static const char *wanted_etag(const struct azure_op *op)
{
    const struct store_call *call = op->call;

    return *op->file->at == FILES_SOURCE ? call->copy.source_match
           : call->op == STORE_DELETE    ? call->delete.if_match
                                         : store_condition_of(call)->if_match;
}

static void build_head_source(struct azure_op *op)
{
    files_request(op, "HEAD", op->call->copy.source, NULL);
}

static void answer_etag(struct azure_op *op)
{
    const char *wanted = wanted_etag(op);
    struct store_entry entry = {0};

    azure_take_etag(&entry, http_header_get(&op->http.response_headers, "ETag"));
    if (azure_succeeded(op) && (!wanted || strcmp(entry.etag, wanted) == 0)) {
        op->file->replaces = *op->file->at == FILES_TARGET;
        files_next(op);
    } else if (azure_succeeded(op) || (files_is_missing(op) && wanted && op->call->op != STORE_DELETE)) {
        files_fail(op, act_error_set(&op->call->error, ACT_TEMPORARY, "%s: it has changed", azure_what(op)));
    } else {
        files_fail_by_answer(op);
    }
}

static void files_check_source(struct azure_op *op)
{
    op->what = act_sprintf("cannot copy '%s/%s' to '%s/%s'", op->azure->container, op->call->copy.source,
                           op->azure->container, op->call->key);
    azure_send_next(op, build_head_source, answer_etag);
}

static void files_check_target(struct azure_op *op)
{
    if (wanted_etag(op))
        azure_send_next(op, build_head_object, answer_etag);
    else
        files_next(op);
}

/* ---- deleting */

static void build_delete_object(struct azure_op *op)
{
    files_request_object(op, "DELETE");
}

static void answer_delete_object(struct azure_op *op)
{
    bool is_gone = (op->http.ambiguous || op->ambiguous) && files_is_missing(op);

    if (act_ends_with(op->call->key, "/"))
        files_forget_folders(op->azure->files);
    if (is_gone)
        files_next(op);
    else
        files_next_if_succeeded(op);
}

static void files_delete(struct azure_op *op)
{
    azure_send_next(op, build_delete_object, answer_delete_object);
}

/* ---- the ways */

static const enum files_phase ways[STORE_OPS][7] = {
    [STORE_HEAD] = {FILES_HEAD, FILES_EXACT, FILES_ABOVE},
    [STORE_GET] = {FILES_HEAD, FILES_EXACT, FILES_ABOVE}, /* of a folder */
    [STORE_PUT] = {FILES_SUM, FILES_MAKE_FOLDERS, FILES_MAKE_TEMP, FILES_DATA, FILES_TARGET, FILES_NAME},
    [STORE_BLOCK] = {FILES_READY},
    [STORE_COMMIT] = {FILES_FIND, FILES_READ, FILES_SIZE, FILES_TARGET, FILES_NAME, FILES_FORGET},
    [STORE_BLOCKS] = {FILES_FIND, FILES_READ},
    [STORE_DROP] = {FILES_FIND, FILES_DROP, FILES_FORGET},
    [STORE_DELETE] = {FILES_TARGET, FILES_DELETE},
    [STORE_COPY] = {FILES_SOURCE, FILES_MAKE_FOLDERS, FILES_COPY, FILES_WATCH, FILES_TARGET, FILES_NAME},
    [STORE_LIST] = {FILES_WALK, FILES_ABOVE, FILES_PAGE},
    [STORE_CLEAR] = {FILES_DROP, FILES_FORGET},
};
static const enum files_phase way_of_folder[] = {FILES_MAKE_FOLDERS, FILES_PUT_FOLDER, FILES_END};
static const enum files_phase way_of_nothing[] = {FILES_MAKE_FOLDERS, FILES_MAKE_TEMP, FILES_TARGET,
                                                  FILES_NAME,         FILES_FORGET,    FILES_END};

static const enum files_phase *way_of(const struct store_call *call)
{
    if (call->op == STORE_PUT && call->put.attr.kind == STORE_FOLDER)
        return way_of_folder;
    return call->op == STORE_COMMIT && call->commit.n_blocks == 0 ? way_of_nothing : ways[call->op];
}

static void files_end(struct azure_op *op)
{
    azure_finish(op, 0);
}

static void (*const phases[])(struct azure_op *op) = {
    [FILES_END] = files_end,
    [FILES_HEAD] = files_head,
    [FILES_EXACT] = files_check_name,
    [FILES_ABOVE] = files_check_folders,
    [FILES_WALK] = files_find_walk,
    [FILES_PAGE] = files_give_page,
    [FILES_SOURCE] = files_check_source,
    [FILES_TARGET] = files_check_target,
    [FILES_DELETE] = files_delete,
    [FILES_MAKE_FOLDERS] = files_make_folders,
    [FILES_PUT_FOLDER] = files_put_folder,
    [FILES_SUM] = files_sum,
    [FILES_READY] = files_get_ready,
    [FILES_FIND] = files_find,
    [FILES_MAKE_JOURNAL] = files_make_journal,
    [FILES_MAKE_TEMP] = files_make_temp,
    [FILES_SIZE] = files_resize,
    [FILES_PREPARED] = files_prepared,
    [FILES_DATA] = files_send,
    [FILES_RECORD] = files_record,
    [FILES_READ] = files_read_journal,
    [FILES_COPY] = files_copy,
    [FILES_WATCH] = files_watch,
    [FILES_NAME] = files_rename,
    [FILES_DROP] = files_drop,
    [FILES_FORGET] = files_forget,
    [FILES_UNDO] = files_undo,
};

void files_begin(struct azure_op *op, const enum files_phase *way)
{
    op->file->at = way;
    phases[*way](op);
}

void files_next(struct azure_op *op)
{
    files_begin(op, op->file->at + 1);
}

void files_next_if_succeeded(struct azure_op *op)
{
    if (azure_succeeded(op))
        files_next(op);
    else
        files_fail_by_answer(op);
}

void files_fail(struct azure_op *op, int rc)
{
    static const enum files_phase undo[] = {FILES_UNDO, FILES_END};
    struct azure_op *waiting = files_stop_asking(op);

    if (op->file->prepares)
        files_upload_failed(op);
    else if (op->file->made)
        files_begin(op, undo);
    else
        azure_finish(op, rc);
    files_wake(waiting);
}

void files_fail_by_answer(struct azure_op *op)
{
    files_fail(op, azure_answer_error(op));
}

/* Where no response comes, none would come to a request that removes the temporary file. A committed object is in
 * its place, whatever becomes of its journal, which is a leftover then. */
static void files_no_answer(struct azure_op *op)
{
    if (*op->file->at == FILES_UNDO) {
        files_undone(op);
    } else if (*op->file->at == FILES_FORGET && op->call->op == STORE_COMMIT) {
        files_next(op);
    } else {
        op->file->made = false;
        files_fail(op, act_error_prefix(&op->call->error, "%s", azure_what(op)));
    }
}

/* ---- calls */

static void release_files_op(struct azure_op *op)
{
    if (op->file->walk)
        files_abandon_walk(op->file->walk);
    free(op->file->asked);
    free(op->file->other);
    free(op->file->temp);
    free(op->file->upload);
    http_headers_release(&op->file->kept);
    free(op->file);
}

static void begin_way(void *arg)
{
    struct azure_op *op = arg;

    files_begin(op, way_of(op->call));
}

static void files_start_way(struct azure_op *op)
{
    op->file = act_calloc(1, sizeof(*op->file));
    op->release = release_files_op;
    op->of_share.failed = files_no_answer;
    engine_timer(http_engine(op->azure->store.http), 0, begin_way, op);
}

static void files_start(struct store *store, struct store_call *call)
{
    struct azure_op *op = azure_new_op(store, call);

    if (call->op == STORE_URL)
        azure_make_url(op);
    else if (call->op == STORE_DELETE_MANY)
        azure_batch(op);
    else if (call->op != STORE_GET || act_ends_with(call->key, "/"))
        files_start_way(op);
    else if (call->get.sink_cap == 0)
        azure_send_next(op, build_head_object, azure_answer_head_of_get);
    else
        azure_send_next(op, azure_build_get, azure_answer_get);
}

const struct store_ops files_ops = {
    .operations = ~(STORE_BIT(STORE_PUT_FROM) | STORE_BIT(STORE_BLOCK_FROM) | STORE_BIT(STORE_SYNC)),
    .start = files_start,
    .key_problem = files_key_problem,
    .alias_problem = files_alias_problem,
    .window = azure_window,
    .close = azure_close,
    .traits = {.max_put = MAX_PUT, .gives_pieces = true, .real_folders = true},
};

struct files *files_new(void)
{
    return act_calloc(1, sizeof(struct files));
}

void files_free(struct files *files, struct engine *engine)
{
    if (!files)
        return;
    files_free_walks(files, engine);
    files_free_folders(files);
    files_free_uploads(files);
    free(files);
}
