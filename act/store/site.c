/* site.c - the store of files of a run's folder on a site, which can only be read. A site is for one thread at a time,
 * so each call is carried out on the loop, which waits for it.
 */
#include <string.h>

#include "base/clock.h"
#include "base/path.h"
#include "site/site.h"
#include "store/store_internal.h"

struct site_store {
    struct store store;
    struct store_site_options options;
};

static bool site_page_has(const struct store_page *page, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(page->v[i].key, key) == 0)
            return true;
    return false;
}

static int site_log_list_one(const struct store_site_options *o, struct site *site, struct store_call *call,
                             struct store_page *out)
{
    struct site_files files = {0};
    int rc = site_files(site, o->id, o->folders, o->n_folders, &files, &call->error);
    int64_t now = act_now_unix_s();
    size_t n_before = out->n;

    for (size_t i = 0; rc == 0 && i < files.n; i++) {
        const struct site_file *file = &files.v[i];
        if (!act_starts_with(file->name, call->key) || site_page_has(out, n_before, file->name))
            continue;
        struct store_entry *entry = store_page_add(out);
        entry->key = act_strdup(file->name);
        entry->size = file->size;
        entry->last_modified_s = file->idle_s < 0 ? 0 : now - file->idle_s;
        entry->grows = o->grow;
    }
    site_files_release(&files);
    return rc;
}

static int site_log_list(struct store *store, struct store_call *call, struct store_page *out)
{
    const struct store_site_options *o = &((const struct site_store *)store)->options;
    struct site *site = NULL;
    int rc = o->site(o->arg, 0, &site, &call->error);

    for (size_t i = 0; rc == 0 && site;) {
        rc = site_log_list_one(o, site, call, out);
        if (rc == 0)
            rc = o->site(o->arg, ++i, &site, &call->error);
    }
    return rc;
}

static bool is_below_folders(const struct store_site_options *o, const char *key)
{
    for (size_t i = 0; i < o->n_folders; i++) {
        size_t n = strlen(o->folders[i]);
        if (strncmp(key, o->folders[i], n) == 0 && key[n] == '/')
            return act_path_is_safe(key, strlen(key));
    }
    return false;
}

/* Reads from the first site that has it. */
static int site_log_read(const struct store_site_options *o, struct store_call *call)
{
    struct site *site = NULL;
    int rc = o->site(o->arg, 0, &site, &call->error), read = -ACT_NOT_FOUND;

    for (size_t i = 0; rc == 0 && site && read == -ACT_NOT_FOUND;) {
        read = site_read(site, o->id, call->key, call->get.offset, call->get.sink, call->get.sink_cap, &call->get.got,
                         &call->error);
        if (read == -ACT_NOT_FOUND)
            rc = o->site(o->arg, ++i, &site, &call->error);
    }
    return rc < 0 ? rc : read;
}

/* Reads a log. The size in the entry is that of the file only if the reading came to its end. */
static int site_log_get(struct store *store, struct store_call *call)
{
    const struct store_site_options *o = &((const struct site_store *)store)->options;
    int rc = is_below_folders(o, call->key) ? site_log_read(o, call) : -ACT_NOT_FOUND;

    if (rc == -ACT_NOT_FOUND)
        rc = act_error_set(&call->error, ACT_NOT_FOUND, "run '%s' has no log '%s'", o->id, call->key);
    if (rc < 0)
        return rc;
    if (call->get.sums)
        store_sums_add(call->get.sums, call->get.sink, call->get.got);
    call->entry.key = act_strdup(call->key);
    call->entry.size = call->get.offset + call->get.got;
    call->entry.grows = o->grow;
    return 0;
}

static void store_site_close(struct store *store)
{
    free(store);
}

static const struct store_ops ops = {
    .operations = STORE_READS,
    .start = store_read_on_loop,
    .get = site_log_get,
    .list = site_log_list,
    .close = store_site_close,
    .traits = {.real_folders = true, .is_disk = true},
};

struct store *store_site_open(struct http *http, const struct store_site_options *options)
{
    struct site_store *s = act_calloc(1, sizeof(*s));

    s->options = *options;
    s->store = (struct store){.ops = &ops, .http = http, .name = store_logs_name(options->id, &s->options.id)};
    return &s->store;
}
