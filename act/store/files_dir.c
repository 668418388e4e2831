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

/* The table that files->folders points at is made with the first folder. */
static size_t bucket_of(const char *key, size_t len)
{
    size_t hash = 5381;

    for (size_t i = 0; i < len; i++)
        hash = hash * 33 + (unsigned char)key[i];
    return hash % BUCKETS;
}

static struct files_folder *find_folder(const struct files *files, const char *key, size_t len)
{
    struct files_folder *folder = files->folders ? files->folders[bucket_of(key, len)].next : NULL;

    while (folder && (strncmp(folder->key, key, len) != 0 || folder->key[len] != '\0'))
        folder = folder->next;
    return folder;
}

static struct files_folder *add_folder(struct files *files, const char *key, size_t len)
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

/* Those that are asked for stay: somebody waits for them. */
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

static void make_next(struct azure_op *op);

/* The folder that op asked for. */
static struct files_folder *asked_by(const struct azure_op *op)
{
    return find_folder(op->azure->files, op->file->asked, strlen(op->file->asked));
}

/* Those that waited look again: they find it there, or ask for it themselves. */
static void wake(struct azure_op *waiting)
{
    while (waiting) {
        struct azure_op *op = waiting;
        waiting = op->next_waiting;
        op->next_waiting = NULL;
        make_next(op);
    }
}

/* From now on a failure is again one of what the folder is made for. */
static void stop_asking(struct azure_op *op)
{
    op->failed = op->file->failed;
    op->file->give_up = NULL;
}

static void folder_known(struct azure_op *op, enum files_found found)
{
    struct files_folder *folder = asked_by(op);
    struct azure_op *waiting = folder->waiting;

    folder->waiting = NULL;
    folder->state = found == FILES_FOLDER ? FOLDER_THERE : FOLDER_REFUSED;
    folder->found = found;
    folder->other = act_strdup(op->file->other);
    stop_asking(op);
    make_next(op);
    wake(waiting);
}

/* Nothing is known of the folder; this op ends. */
static void folder_failed(struct azure_op *op, int rc)
{
    struct files *files = op->azure->files;
    struct files_folder *folder = asked_by(op), **at;
    struct azure_op *waiting = folder->waiting;

    for (at = &files->folders[bucket_of(folder->key, strlen(folder->key))].next; *at != folder;)
        at = &(*at)->next;
    *at = folder->next;
    free_folder(folder);
    stop_asking(op);
    files_fail(op, rc);
    wake(waiting);
}

static void no_answer(struct azure_op *op)
{
    folder_failed(op, act_error_prefix(&op->call->error, "%s", azure_what(op)));
}

static void looked(struct azure_op *op)
{
    if (op->file->found == FILES_NOTHING) /* it was removed just now, or is another thing that is no file */
        folder_failed(op, act_error_set(&op->call->error, ACT_TEMPORARY, "%s: the folder '%s' changes meanwhile",
                                        azure_what(op), op->file->asked));
    else
        folder_known(op, op->file->found);
}

static void build_folder(struct azure_op *op)
{
    files_request_folder(op, "PUT", op->file->asked, NULL);
}

static void answer_folder(struct azure_op *op)
{
    if (azure_succeeded(op)) {
        folder_known(op, FILES_FOLDER);
    } else if (op->http.status == 409 && (azure_has_code(&op->http, "ResourceAlreadyExists") ||
                                          azure_has_code(&op->http, "ResourceTypeMismatch"))) {
        files_look_up(op, op->file->asked, looked);
    } else {
        folder_failed(op, azure_answer_error(op));
    }
}

static void ask_for(struct azure_op *op, const char *key, size_t len)
{
    add_folder(op->azure->files, key, len);
    free(op->file->asked);
    op->file->asked = act_strndup(key, len);
    op->file->failed = op->failed;
    op->failed = no_answer;
    op->file->give_up = folder_failed;
    azure_send_next(op, build_folder, answer_folder);
}

/* From the share down, the first one that is not known to be there. */
static void make_next(struct azure_op *op)
{
    const char *key = op->file->folder;
    size_t whole = strlen(key), len = 0;

    for (;;) {
        len += strcspn(key + len, "/") + 1;
        if (len >= whole) { /* what is behind the last slash is not one of them */
            op->file->parents_there(op);
            return;
        }
        struct files_folder *folder = find_folder(op->azure->files, key, len);
        if (!folder) {
            ask_for(op, key, len);
            return;
        }
        if (folder->state == FOLDER_ASKED) {
            op->next_waiting = folder->waiting;
            folder->waiting = op;
            return;
        }
        if (folder->state == FOLDER_REFUSED) {
            files_fail(op, files_refuse_name(op, folder->key, folder->found, folder->other));
            return;
        }
    }
}

static void start_making(void *op)
{
    make_next(op);
}

void files_make_parents(struct azure_op *op, const char *key, void (*then)(struct azure_op *op))
{
    files_state(op)->folder = key;
    op->file->parents_there = then;
    engine_timer(http_engine(op->azure->store.http), 0, start_making, op);
}

/* ---- the capitals of those that are there */

static void check_behind(struct azure_op *op, size_t len);

static void checked(struct azure_op *op)
{
    op->file->give_up = NULL;
    op->file->parents_there(op);
}

/* What follows will say so. */
static void cannot_check(struct azure_op *op, int rc)
{
    if (rc == -ACT_DENIED || rc == -ACT_NOT_FOUND)
        checked(op);
    else
        azure_finish(op, rc);
}

/* One that is being asked for is left to whoever asks. */
static void note_there(struct files *files, const char *key, size_t len)
{
    struct files_folder *folder = find_folder(files, key, len);

    if (!folder)
        add_folder(files, key, len)->state = FOLDER_THERE;
    else if (folder->state == FOLDER_REFUSED)
        folder->state = FOLDER_THERE;
}

static void seen(struct azure_op *op)
{
    const char *key = op->file->asked;

    if (op->file->found == FILES_OTHER_CASE) {
        azure_finish(op, files_other_name(op));
    } else if (op->file->found != FILES_FOLDER) {
        checked(op);
    } else {
        note_there(op->azure->files, key, strlen(key));
        check_behind(op, strlen(key));
    }
}

/* The first one whose name is not known, behind those that the first len bytes name. */
static void check_behind(struct azure_op *op, size_t len)
{
    const char *key = op->file->folder;
    size_t whole = strlen(key);

    for (;;) {
        len += strcspn(key + len, "/") + 1;
        if (len > whole) {
            checked(op);
            return;
        }
        const struct files_folder *folder = find_folder(op->azure->files, key, len);
        if (!folder || folder->state != FOLDER_THERE) {
            free(op->file->asked);
            op->file->asked = act_strndup(key, len);
            files_look_up(op, op->file->asked, seen);
            return;
        }
    }
}

void files_check_folders(struct azure_op *op, const char *key, void (*then)(struct azure_op *op))
{
    files_state(op)->folder = key;
    op->file->parents_there = then;
    op->file->give_up = cannot_check;
    check_behind(op, 0);
}

/* ---- PUT of a folder */

static void finish_folder(struct azure_op *op)
{
    struct store_entry *entry = &op->call->entry;

    entry->key = act_strdup(op->call->key);
    azure_take_etag(entry, http_header_get(&op->http.response_headers, "ETag"));
    azure_finish(op, 0);
}

static void build_description(struct azure_op *op)
{
    files_request_folder(op, "PUT", op->call->key, "comp=metadata");
    azure_set_metadata(&op->http.headers, &op->call->put.attr);
}

static void answer_description(struct azure_op *op)
{
    if (azure_succeeded(op))
        finish_folder(op);
    else
        files_fail(op, azure_answer_error(op));
}

/* One that is there gets the attributes; a request without any would take those that it has. */
static void own_name_looked_up(struct azure_op *op)
{
    const struct store_put *put = &op->call->put;
    enum files_found found = op->file->found;

    if (found == FILES_FOLDER && (put->attr.mode >= 0 || put->attr.mtime_ns))
        azure_send_next(op, build_description, answer_description);
    else if (found == FILES_FOLDER)
        finish_folder(op);
    else if (found == FILES_FILE && put->condition.if_absent)
        files_fail(
            op, act_error_set(&op->call->error, ACT_PARTIAL, "%s: a file of this name exists already", azure_what(op)));
    else
        files_fail(op, files_refuse_name(op, op->call->key, found, op->file->other));
}

static void build_own(struct azure_op *op)
{
    files_request_folder(op, "PUT", op->call->key, NULL);
    azure_set_metadata(&op->http.headers, &op->call->put.attr);
}

static void answer_own(struct azure_op *op)
{
    if (azure_succeeded(op))
        finish_folder(op);
    else if (op->http.status == 409)
        files_look_up(op, op->call->key, own_name_looked_up);
    else
        files_fail(op, azure_answer_error(op));
}

static void make_own(struct azure_op *op)
{
    azure_send_next(op, build_own, answer_own);
}

void files_put_folder(struct azure_op *op)
{
    ACT_AUTOFREE char *bare = act_strndup(op->call->key, strlen(op->call->key) - 1);

    act_str_replace(&files_state(op)->bare, bare);
    files_make_parents(op, op->file->bare, make_own);
}
