/* files.c - the store that is a share of Azure Files: opening it, looking at files and folders, deleting them. */
#include "store/files.h"

#include <string.h>

#define MAX_PUT (64U << 20) /* bytes at once, in ranges of 4 MiB */

/* ---- requests */

/* Dots at the end of a name stay, and the token of a login has the permissions of its role on all files, as other
 * credentials do (version 2022-11-02). */
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

bool files_is_missing(const struct azure_op *op)
{
    return (op->http.status == 404 && !azure_has_code(&op->http, "ShareNotFound")) ||
           (op->http.status == 409 && azure_has_code(&op->http, "ResourceTypeMismatch"));
}

static void release_state(struct azure_op *op)
{
    if (op->file->walk)
        files_abandon_walk(op->file->walk);
    free(op->file->temp);
    free(op->file->upload);
    free(op->file->other);
    free(op->file->match);
    free(op->file->asked);
    free(op->file->bare);
    free(op->file->looked_up);
    http_headers_release(&op->file->kept);
    free(op->file);
}

struct files_write *files_state(struct azure_op *op)
{
    if (!op->file) {
        op->file = act_calloc(1, sizeof(*op->file));
        op->release = release_state;
    }
    return op->file;
}

char *files_source_url(const struct azure_op *op, const char *key)
{
    ACT_AUTOFREE char *url = azure_url(op->azure, key);
    const char *sas = op->azure->sas;

    return act_sprintf("%s%s%s", url, sas ? "?" : "", sas ? sas : "");
}

/* ---- looking */

static int take_folder(struct azure_op *op)
{
    if (!azure_succeeded(op))
        return azure_answer_error(op);
    azure_fill(&op->call->entry, op->call->key, 0, op->http.status, &op->http.response_headers);
    return 0;
}

static void build_head(struct azure_op *op)
{
    if (act_ends_with(op->call->key, "/"))
        files_request_folder(op, "HEAD", op->call->key, NULL);
    else
        files_request(op, "HEAD", op->call->key, NULL);
}

static void look_ended(struct azure_op *op)
{
    azure_finish(op, 0);
}

static void answer_folder(struct azure_op *op)
{
    int rc = take_folder(op);

    if (rc < 0 || files_is_listed(op->call))
        azure_finish(op, rc);
    else
        files_check_folders(op, op->call->key, look_ended);
}

/* Without permission to list, the service's word must do. */
static void name_not_known(struct azure_op *op, int rc)
{
    azure_finish(op, rc == -ACT_DENIED ? 0 : rc);
}

static void name_looked_up(struct azure_op *op)
{
    if (op->file->found == FILES_OTHER_CASE)
        azure_finish(op, files_other_name(op));
    else
        files_check_folders(op, op->call->key, look_ended);
}

/* The service takes small letters for capitals, and does not say which of them the name has. */
static void answer_head(struct azure_op *op)
{
    if (!azure_succeeded(op) || files_is_listed(op->call)) {
        azure_answer_head(op);
        return;
    }
    int rc = azure_take_head(op);
    if (rc < 0) {
        azure_finish(op, rc);
        return;
    }
    files_state(op)->give_up = name_not_known;
    files_look_up(op, op->call->key, name_looked_up);
}

/* A folder has no bytes. */
static void look(struct azure_op *op)
{
    const struct store_call *call = op->call;

    if (act_ends_with(call->key, "/"))
        azure_send_next(op, build_head, answer_folder);
    else if (call->op == STORE_HEAD)
        azure_send_next(op, build_head, answer_head);
    else if (call->get.sink_cap == 0)
        azure_send_next(op, build_head, azure_answer_head_of_get);
    else
        azure_send_next(op, azure_build_get, azure_answer_get);
}

/* ---- conditions: a share knows none, so that somebody may still write between the look and what follows */

static void build_check(struct azure_op *op)
{
    const char *key = op->file->looked_up;

    if (act_ends_with(key, "/"))
        files_request_folder(op, "HEAD", key, NULL);
    else
        files_request(op, "HEAD", key, NULL);
}

static void answer_check(struct azure_op *op)
{
    struct files_write *write = op->file;
    const char *etag = http_header_get(&op->http.response_headers, "ETag");
    struct store_entry entry = {0};

    azure_take_etag(&entry, etag);
    if (azure_succeeded(op) && (!write->match || strcmp(entry.etag, write->match) == 0))
        write->then(op);
    else if (azure_succeeded(op) || (files_is_missing(op) && write->match && op->call->op != STORE_DELETE))
        files_fail(op, act_error_set(&op->call->error, ACT_TEMPORARY, "%s: it has changed", azure_what(op)));
    else
        files_fail(op, azure_answer_error(op));
}

void files_check_match(struct azure_op *op, const char *key, const char *etag, void (*then)(struct azure_op *op))
{
    struct files_write *write = files_state(op);

    act_str_replace(&write->looked_up, key);
    act_str_replace(&write->match, etag);
    write->then = then;
    azure_send_next(op, build_check, answer_check);
}

/* ---- deleting */

static void build_delete(struct azure_op *op)
{
    if (act_ends_with(op->call->key, "/"))
        files_request_folder(op, "DELETE", op->call->key, NULL);
    else
        files_request(op, "DELETE", op->call->key, NULL);
}

static void answer_delete(struct azure_op *op)
{
    bool is_gone = (op->http.ambiguous || op->ambiguous) && files_is_missing(op);

    if (act_ends_with(op->call->key, "/"))
        files_forget_folders(op->azure->files);
    azure_finish(op, azure_succeeded(op) || is_gone ? 0 : azure_answer_error(op));
}

static void delete_it(struct azure_op *op)
{
    azure_send_next(op, build_delete, answer_delete);
}

static void delete_if_match(struct azure_op *op)
{
    if (op->call->delete.if_match)
        files_check_match(op, op->call->key, op->call->delete.if_match, delete_it);
    else
        delete_it(op);
}

/* ---- calls */

static void (*const starts[STORE_OPS])(struct azure_op *op) = {
    [STORE_HEAD] = look,
    [STORE_GET] = look,
    [STORE_PUT] = files_put,
    [STORE_BLOCK] = files_block,
    [STORE_COMMIT] = files_commit,
    [STORE_BLOCKS] = files_blocks,
    [STORE_DROP] = files_drop,
    [STORE_DELETE] = delete_if_match,
    [STORE_DELETE_MANY] = azure_batch,
    [STORE_COPY] = files_copy,
    [STORE_LIST] = files_list,
    [STORE_CLEAR] = files_clear,
    [STORE_URL] = azure_make_url,
};

static void start_op(struct store *store, struct store_call *call)
{
    starts[call->op](azure_new_op(store, call));
}

static const struct store_ops ops = {
    .start = {[STORE_HEAD] = start_op,
              [STORE_GET] = start_op,
              [STORE_PUT] = start_op,
              [STORE_BLOCK] = start_op,
              [STORE_COMMIT] = start_op,
              [STORE_BLOCKS] = start_op,
              [STORE_DROP] = start_op,
              [STORE_DELETE] = start_op,
              [STORE_DELETE_MANY] = start_op,
              [STORE_COPY] = start_op,
              [STORE_LIST] = start_op,
              [STORE_CLEAR] = start_op,
              [STORE_URL] = start_op},
    .key_problem = files_key_problem,
    .alias_problem = files_alias_problem,
    .window = azure_window,
    .close = azure_close,
    .max_put = MAX_PUT,
    .gives_pieces = true,
    .real_folders = true,
};

const struct store_ops *files_ops(void)
{
    return &ops;
}

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
