/* files_dir.c - makes the folders of a share that something is put into.
 *
 * Each is asked for once for as long as the store is open; who needs it meanwhile waits. One that is there already is
 * looked at, because it may be there in other capitals.
 */
#include <string.h>

#include "store/files.h"

#define BUCKETS 1024

struct files_folder {
    char *key; /* with its slash */
    enum { FOLDER_ASKED, FOLDER_THERE, FOLDER_REFUSED } state;
    enum files_found found; /* FOLDER_REFUSED */
    char *other;
    struct azure_op *waiting;
    struct files_folder *next;
};

/* Returns the place in the table that files->folders points at, which is made with the first folder. */
static size_t bucket_of(const char *key, size_t len)
{
    size_t hash = 5381;

    for (size_t i = 0; i < len; i++)
        hash = hash * 33 + (unsigned char)key[i];
    return hash % BUCKETS;
}

static struct files_folder *files_find_folder(const struct files *files, const char *key, size_t len)
{
    struct files_folder *folder = files->folders ? files->folders[bucket_of(key, len)].next : NULL;

    while (folder && (strncmp(folder->key, key, len) != 0 || folder->key[len] != '\0'))
        folder = folder->next;
    return folder;
}

static struct files_folder *files_add_folder(struct files *files, const char *key, size_t len)
{
    struct files_folder *folder = act_calloc(1, sizeof(*folder));

    if (!files->folders)
        files->folders = act_calloc(BUCKETS, sizeof(*files->folders));
    struct files_folder *head = &files->folders[bucket_of(key, len)];
    folder->key = act_strndup(key, len);
    folder->next = head->next;
    head->next = folder;
    return folder;
}

static void free_folder(struct files_folder *folder)
{
    free(folder->key);
    free(folder->other);
    free(folder);
}

/* Folders that somebody asks for stay: others may wait for them. */
void files_forget_folders(struct files *files)
{
    for (size_t i = 0; files->folders && i < BUCKETS; i++)
        for (struct files_folder **at = &files->folders[i].next; *at;) {
            struct files_folder *folder = *at;
            if (folder->state == FOLDER_ASKED) {
                at = &folder->next;
                continue;
            }
            *at = folder->next;
            free_folder(folder);
        }
}

void files_free_folders(struct files *files)
{
    files_forget_folders(files);
    free(files->folders);
}

/* ---- making one */

/* Returns the folder that `op` asks for. */
static struct files_folder *folder_asked_by(const struct azure_op *op)
{
    return files_find_folder(op->azure->files, op->file->asked, strlen(op->file->asked));
}

void files_wake(struct azure_op *waiting)
{
    while (waiting) {
        struct azure_op *op = waiting;
        waiting = op->next_waiting;
        op->next_waiting = NULL;
        files_make_folders(op);
    }
}

struct azure_op *files_stop_asking(struct azure_op *op)
{
    if (!op->file->asking)
        return NULL;
    struct files_folder *folder = folder_asked_by(op), **at;
    struct azure_op *waiting = folder->waiting;

    for (at = &op->azure->files->folders[bucket_of(folder->key, strlen(folder->key))].next; *at != folder;)
        at = &(*at)->next;
    *at = folder->next;
    free_folder(folder);
    op->file->asking = false;
    return waiting;
}

static void folder_known(struct azure_op *op, enum files_found found)
{
    struct files_folder *folder = folder_asked_by(op);
    struct azure_op *waiting = folder->waiting;

    folder->waiting = NULL;
    folder->state = found == FILES_FOLDER ? FOLDER_THERE : FOLDER_REFUSED;
    folder->found = found;
    folder->other = act_strdup(op->file->other);
    op->file->asking = false;
    files_make_folders(op);
    files_wake(waiting);
}

static void answer_what_is_there(struct azure_op *op)
{
    int rc = files_looked_up(op);

    if (rc == 0 && op->file->found == FILES_NOTHING) /* it was removed just now, or is another thing that is no file */
        rc = act_error_set(&op->call->error, ACT_TEMPORARY, "%s: the folder '%s' changes meanwhile", azure_what(op),
                           op->file->asked);
    if (rc < 0)
        files_fail(op, rc);
    else
        folder_known(op, op->file->found);
}

static void build_make_folder(struct azure_op *op)
{
    files_request_folder(op, "PUT", op->file->asked, NULL);
}

static bool folder_exists(const struct azure_op *op)
{
    return op->http.status == 409 &&
           (azure_has_code(&op->http, "ResourceAlreadyExists") || azure_has_code(&op->http, "ResourceTypeMismatch"));
}

static void answer_make_folder(struct azure_op *op)
{
    if (azure_succeeded(op))
        folder_known(op, FILES_FOLDER);
    else if (folder_exists(op))
        files_look_up(op, op->file->asked, answer_what_is_there);
    else
        files_fail_by_answer(op);
}

static void note_asked(struct azure_op *op, const char *key, size_t len)
{
    free(op->file->asked);
    op->file->asked = act_strndup(key, len);
}

static void ask_for_folder(struct azure_op *op, const char *key, size_t len)
{
    files_add_folder(op->azure->files, key, len);
    note_asked(op, key, len);
    op->file->asking = true;
    azure_send_next(op, build_make_folder, answer_make_folder);
}

/* Asks, from the share down, for the first folder that is not known to be there. */
void files_make_folders(struct azure_op *op)
{
    const char *key = op->call->key;
    size_t whole = strlen(key) - act_ends_with(key, "/"), len = strcspn(key, "/") + 1;
    struct files_folder *folder = NULL;

    for (; len < whole; len += strcspn(key + len, "/") + 1) { /* what is behind the last slash is not one of them */
        folder = files_find_folder(op->azure->files, key, len);
        if (!folder || folder->state != FOLDER_THERE)
            break;
    }
    if (len >= whole) {
        files_next(op);
    } else if (!folder) {
        ask_for_folder(op, key, len);
    } else if (folder->state == FOLDER_ASKED) {
        op->next_waiting = folder->waiting;
        folder->waiting = op;
    } else {
        files_fail(op, files_refuse_name(op, folder->key, folder->found, folder->other));
    }
}

/* ---- the capitals of those that are there */

static void check_folders_behind(struct azure_op *op, size_t len);

/* Notes that a folder is there, unless somebody is asking for it. */
static void note_there(struct files *files, const char *key, size_t len)
{
    struct files_folder *folder = files_find_folder(files, key, len);

    if (!folder)
        files_add_folder(files, key, len)->state = FOLDER_THERE;
    else if (folder->state == FOLDER_REFUSED)
        folder->state = FOLDER_THERE;
}

/* A folder that cannot be looked up is left to what follows. */
static void answer_check_folder(struct azure_op *op)
{
    const char *key = op->file->asked;
    int rc = files_looked_up(op);

    if (rc == 0 && op->file->found == FILES_OTHER_CASE) {
        azure_finish(op, files_other_name(op));
    } else if (rc == 0 && op->file->found == FILES_FOLDER) {
        note_there(op->azure->files, key, strlen(key));
        check_folders_behind(op, strlen(key));
    } else if (rc == 0 || rc == -ACT_DENIED || rc == -ACT_NOT_FOUND) {
        files_next(op);
    } else {
        azure_finish(op, rc);
    }
}

/* Looks up the first folder that is not known to be there, behind those that the first `len` bytes name. */
static void check_folders_behind(struct azure_op *op, size_t len)
{
    const char *key = op->call->key;
    size_t whole = strlen(key);

    for (len += strcspn(key + len, "/") + 1; len <= whole; len += strcspn(key + len, "/") + 1) {
        const struct files_folder *folder = files_find_folder(op->azure->files, key, len);
        if (!folder || folder->state != FOLDER_THERE) {
            note_asked(op, key, len);
            files_look_up(op, op->file->asked, answer_check_folder);
            return;
        }
    }
    files_next(op);
}

void files_check_folders(struct azure_op *op)
{
    check_folders_behind(op, 0);
}

/* ---- PUT of a folder */

static void finish_folder(struct azure_op *op)
{
    struct store_entry *entry = &op->call->entry;

    entry->key = act_strdup(op->call->key);
    azure_take_etag(entry, http_header_get(&op->http.response_headers, "ETag"));
    files_next(op);
}

static void build_describe_folder(struct azure_op *op)
{
    files_request_folder(op, "PUT", op->call->key, "comp=metadata");
    azure_set_metadata(&op->http.headers, &op->call->put.attr);
}

static void answer_describe_folder(struct azure_op *op)
{
    if (azure_succeeded(op))
        finish_folder(op);
    else
        files_fail_by_answer(op);
}

/* A folder that is there gets the attributes. Where there are none, nothing is sent, which would remove those that
 * it has. */
static void answer_is_folder_there(struct azure_op *op)
{
    const struct store_put *put = &op->call->put;
    int rc = files_looked_up(op);
    enum files_found found = op->file->found;

    if (rc < 0)
        files_fail(op, rc);
    else if (found == FILES_FOLDER && (put->attr.mode >= 0 || put->attr.mtime_ns))
        azure_send_next(op, build_describe_folder, answer_describe_folder);
    else if (found == FILES_FOLDER)
        finish_folder(op);
    else if (found == FILES_FILE && put->condition.if_absent)
        files_fail(
            op, act_error_set(&op->call->error, ACT_PARTIAL, "%s: a file of this name exists already", azure_what(op)));
    else
        files_fail(op, files_refuse_name(op, op->call->key, found, op->file->other));
}

static void build_put_folder(struct azure_op *op)
{
    files_request_folder(op, "PUT", op->call->key, NULL);
    azure_set_metadata(&op->http.headers, &op->call->put.attr);
}

static void answer_put_folder(struct azure_op *op)
{
    if (azure_succeeded(op))
        finish_folder(op);
    else if (op->http.status == 409)
        files_look_up(op, op->call->key, answer_is_folder_there);
    else
        files_fail_by_answer(op);
}

void files_put_folder(struct azure_op *op)
{
    azure_send_next(op, build_put_folder, answer_put_folder);
}
