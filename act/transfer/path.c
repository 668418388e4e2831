/* path.c - transfer_resolve(): whether a path in a store is a file or a folder. */
#include <string.h>

#include "base/log.h"
#include "transfer/transfer_internal.h"

char *transfer_prefix(const char *path)
{
    return *path ? act_sprintf("%s/", path) : act_strdup("");
}

void transfer_path_release(struct transfer_path *path)
{
    free(path->path);
    *path = (struct transfer_path){0};
}

/* Returns 1 if the call has found a file, 0 if there is none, or the negative code of an error. */
static int path_is_file(const struct store_call *head, bool *is_link, struct act_error *err)
{
    bool file = head->rc == 0 && head->entry.kind != STORE_FOLDER;

    *is_link = head->rc == 0 && head->entry.kind == STORE_SYMLINK;
    if (head->rc < 0)
        *err = head->error;
    return head->rc == -ACT_NOT_FOUND ? 0 : head->rc < 0 ? head->rc : file;
}

/* Does so for a folder, whose first page the call has. */
static int path_is_folder(struct store *store, struct store_call *list, struct act_error *err)
{
    ACT_AUTOFREE char *marker = NULL;

    for (;;) {
        int rc = list->rc;
        bool some = list->list.page.n > 0;
        if (rc < 0)
            *err = list->error;
        free(marker);
        marker = act_strdup(list->list.page.next);
        store_call_release(list);
        if (rc < 0 || some || !marker)
            return rc < 0 ? rc : some;
        list->list.marker = marker; /* an empty page need not be the last one */
        (void)!store_do(store, list, err);
    }
}

int transfer_resolve(struct store *store, const char *path, struct transfer_path *out, struct act_error *err)
{
    bool wants_folder = *path == '\0' || act_ends_with(path, "/");
    ACT_AUTOFREE char *key = act_strndup(path, strlen(path) - act_ends_with(path, "/"));

    ACT_AUTOFREE char *prefix = transfer_prefix(key);
    struct store_call calls[] = {{.op = STORE_LIST, .key = prefix, .list.max = 1}, {.op = STORE_HEAD, .key = key}};
    bool is_link = false;

    /* Only far away is a round trip worth two calls at once: a first one may teach a store the time or a new token. */
    bool at_once = store_traits(store)->is_far_disk && !wants_folder;
    if (at_once)
        store_do_many(store, calls, 2);
    else if (!wants_folder)
        (void)!store_do(store, &calls[1], err);
    int file = wants_folder ? 0 : path_is_file(&calls[1], &is_link, err);
    /* on a disk a name is one thing, and a link to a folder cannot be listed */
    bool may_be_folder = file == 0 || (file > 0 && !store_traits(store)->real_folders);
    if (may_be_folder && !at_once)
        (void)!store_do(store, &calls[0], err);
    int folder = may_be_folder ? path_is_folder(store, &calls[0], err) : 0;
    store_call_release(&calls[0]);
    store_call_release(&calls[1]);
    if (file < 0 || folder < 0)
        return file < 0 ? file : folder;
    if (!file && !folder)
        return act_error_set(err, ACT_NOT_FOUND, "no such file or folder: '%s' in %s", path, store_name(store));
    if (file && folder)
        act_warn("'%s' is a file and a folder; the file is taken, '%s/' is the folder", path, path);
    *out = (struct transfer_path){.store = store, .path = act_strdup(key), .is_folder = !file, .is_link = is_link};
    return 0;
}
