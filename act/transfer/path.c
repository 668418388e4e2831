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

/* Returns 1 if there is a file with this key, 0 if there is none, or the negative code of an error. */
static int path_is_file(struct store *store, const char *key, bool *is_link, struct act_error *err)
{
    ACT_AUTO(store_call) call = {.op = STORE_HEAD, .key = key};
    int rc = store_do(store, &call, err);
    bool file = rc == 0 && call.entry.kind != STORE_FOLDER;

    *is_link = rc == 0 && call.entry.kind == STORE_SYMLINK;
    return rc == -ACT_NOT_FOUND ? 0 : rc < 0 ? rc : file;
}

static int path_is_folder(struct store *store, const char *path, struct act_error *err)
{
    ACT_AUTOFREE char *prefix = transfer_prefix(path);
    struct store_call call = {.op = STORE_LIST, .key = prefix, .list.max = 1};
    ACT_AUTOFREE char *marker = NULL;

    for (;;) {
        int rc = store_do(store, &call, err);
        bool some = call.list.page.n > 0;
        free(marker);
        marker = act_strdup(call.list.page.next);
        store_call_release(&call);
        if (rc < 0 || some || !marker)
            return rc < 0 ? rc : some;
        call.list.marker = marker; /* an empty page need not be the last one */
    }
}

int transfer_resolve(struct store *store, const char *path, struct transfer_path *out, struct act_error *err)
{
    bool wants_folder = *path == '\0' || act_ends_with(path, "/");
    ACT_AUTOFREE char *key = act_strndup(path, strlen(path) - act_ends_with(path, "/"));

    bool is_link = false;
    int file = wants_folder ? 0 : path_is_file(store, key, &is_link, err);
    if (file < 0)
        return file;
    /* on a disk a name is one thing, and a link to a folder cannot be listed */
    int folder = file && store_traits(store)->real_folders ? 0 : path_is_folder(store, key, err);
    if (folder < 0)
        return folder;
    if (!file && !folder)
        return act_error_set(err, ACT_NOT_FOUND, "no such file or folder: '%s' in %s", path, store_name(store));
    if (file && folder)
        act_warn("'%s' is a file and a folder; the file is taken, '%s/' is the folder", path, path);
    *out = (struct transfer_path){.store = store, .path = act_strdup(key), .is_folder = !file, .is_link = is_link};
    return 0;
}
