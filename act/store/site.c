/* site.c - the store of files of a run's folder on a site, which can only be read. A site is for one thread at a time,
 * so calls are carried out on the loop, which waits for them. Those to read that were started in one turn of the loop
 * are one question to the site, and what came with a list is not asked for.
 */
#include <string.h>

#include "base/clock.h"
#include "base/path.h"
#include "engine/engine.h"
#include "http/http.h"
#include "site/site.h"
#include "store/store_internal.h"

/* The news that a site tells about a run that is followed. */
struct site_told {
    struct site_news *news;
    int fd; /* which the loop watches; -1: none */
};

struct site_store {
    struct store store;
    struct store_site_options options;
    struct site_files *listed; /* of each site, in order, by the last list, if it was one with ends */
    size_t n_listed;
    struct site_told *told; /* of each site, in order, of a run that is followed */
    size_t n_told;
    const struct site_files **told_files; /* as they were at the last list, if it was one that follows */
    size_t n_told_files;
    bool *has_news;              /* store_watch() */
    struct store_call **waiting; /* to be read, by a timer that is set */
    size_t n_waiting;
    bool is_far; /* sites are, as far as is known yet */
};

enum {
    FAR_WINDOW = 4096, /* calls that are worth having in flight to a far site */
    AT_ONCE = 8 << 20, /* bytes that are read while the loop waits, unless one call is for more */
};

/* ---- lists ---- */

static void site_store_forget(struct site_store *s)
{
    for (size_t i = 0; i < s->n_listed; i++)
        site_files_release(&s->listed[i]);
    free(s->listed);
    s->listed = NULL;
    s->n_listed = s->n_told_files = 0;
}

/* A descriptor may be closed, and be another one, as soon as the site is asked anything. */
static void site_store_watch_none(struct site_store *s)
{
    for (size_t i = 0; i < s->n_told; i++) {
        if (s->told[i].fd >= 0)
            engine_unwatch(http_engine(s->store.http), s->told[i].fd);
        s->told[i].fd = -1;
    }
}

static void site_store_has_news(void *arg)
{
    struct site_store *s = arg;

    site_store_watch_none(s);
    *s->has_news = true;
}

/* Has the loop notice when a site tells something. */
static void site_store_watch_told(struct site_store *s, struct site *site, struct site_told *told)
{
    int fd;

    if (site_news_have_come(site, told->news, &fd))
        *s->has_news = true;
    else if (fd >= 0 && engine_watch(http_engine(s->store.http), fd, false, site_store_has_news, s))
        told->fd = fd;
}

/* Lists what the i-th site has told. */
static int site_store_list_told(struct site_store *s, struct site *site, size_t i, size_t n_with_ends,
                                const struct site_files **out, struct act_error *err)
{
    const struct store_site_options *o = &s->options;

    while (i >= s->n_told) {
        struct site_told told = {.news = site_news_new(o->id, o->folders, o->n_folders), .fd = -1};
        ACT_PUSH(s->told, s->n_told, told);
    }
    int rc = site_news_look(site, s->told[i].news, n_with_ends, out, err);
    if (rc == 0)
        site_store_watch_told(s, site, &s->told[i]);
    if (rc == 0)
        ACT_PUSH(s->told_files, s->n_told_files, *out);
    return rc;
}

static bool site_page_has(const struct store_page *page, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(page->v[i].key, key) == 0)
            return true;
    return false;
}

/* Adds the files of a site that no site before it had. */
static void site_log_add_files(const struct site_store *s, const struct store_call *call,
                               const struct site_files *files, struct store_page *out)
{
    const int64_t now = act_now_unix_s();
    const size_t n_before = out->n;

    for (size_t i = 0; i < files->n; i++) {
        const struct site_file *file = &files->v[i];
        if (!act_starts_with(file->name, call->key) || site_page_has(out, n_before, file->name))
            continue;
        struct store_entry *entry = store_page_add(out);
        entry->key = act_strdup(file->name);
        entry->size = file->size;
        entry->last_modified_s = file->idle_s < 0 ? 0 : now - file->idle_s;
        entry->grows = s->options.grow;
        entry->came = file->end_len;
    }
}

static int site_log_list_one(struct site_store *s, struct site *site, size_t i, struct store_call *call,
                             struct store_page *out)
{
    const struct store_site_options *o = &s->options;
    const size_t n_with_ends = call->list.with_ends ? o->n_logs : 0;
    const struct site_files *told;
    struct site_files files = {0};
    int rc;

    s->is_far = site_is_far(site);
    if (call->list.follows && s->has_news && s->is_far) {
        rc = site_store_list_told(s, site, i, n_with_ends, &told, &call->error);
        if (rc == 0)
            site_log_add_files(s, call, told, out);
        return rc;
    }
    rc = site_files(site, o->id, o->folders, o->n_folders, n_with_ends, &files, &call->error);
    if (rc == 0)
        site_log_add_files(s, call, &files, out);
    if (rc == 0 && call->list.with_ends)
        ACT_PUSH(s->listed, s->n_listed, files);
    else
        site_files_release(&files);
    return rc;
}

static int site_log_list(struct store *store, struct store_call *call, struct store_page *out)
{
    struct site_store *s = (struct site_store *)store;
    const struct store_site_options *o = &s->options;
    struct site *site = NULL;
    int rc = o->site(o->arg, 0, &site, &call->error);

    site_store_forget(s);
    site_store_watch_none(s);
    for (size_t i = 0; rc == 0 && site;) {
        rc = site_log_list_one(s, site, i, call, out);
        if (rc == 0)
            rc = o->site(o->arg, ++i, &site, &call->error);
    }
    return rc;
}

/* ---- reading ---- */

static bool is_below_folders(const struct store_site_options *o, const char *key)
{
    for (size_t i = 0; i < o->n_folders; i++) {
        size_t n = strlen(o->folders[i]);
        if (strncmp(key, o->folders[i], n) == 0 && key[n] == '/')
            return act_path_is_safe(key, strlen(key));
    }
    return false;
}

static int site_log_by_name(const void *name, const void *file)
{
    return strcmp(name, ((const struct site_file *)file)->name);
}

/* Gives what came with the list. Returns whether that is all that is asked for. */
static bool site_log_has_come(const struct site_store *s, struct store_call *call)
{
    const struct site_file *file = NULL;
    struct store_get *get = &call->get;

    for (size_t i = 0; i < s->n_listed + s->n_told_files && !file; i++) {
        const struct site_files *files = i < s->n_listed ? &s->listed[i] : s->told_files[i - s->n_listed];
        file = files->n ? bsearch(call->key, files->v, files->n, sizeof(*file), site_log_by_name) : NULL;
    }
    if (!file || (file->size > 0 && !file->end) || get->offset < file->size - file->end_len)
        return false;
    uint64_t left = get->offset < file->size ? file->size - get->offset : 0;
    get->got = left < get->sink_cap ? (size_t)left : get->sink_cap;
    if (get->got)
        memcpy(get->sink, file->end + (file->end_len - left), get->got);
    return true;
}

/* Ends a call to read. The size in the entry is that of the file only if the reading came to its end. */
static void site_log_finish(const struct site_store *s, struct store_call *call, int rc)
{
    if (rc == -ACT_NOT_FOUND)
        rc = act_error_set(&call->error, ACT_NOT_FOUND, "run '%s' has no log '%s'", s->options.id, call->key);
    if (rc == 0) {
        if (call->get.sums)
            store_sums_add(call->get.sums, call->get.sink, call->get.got);
        call->entry.key = act_strdup(call->key);
        call->entry.size = call->get.offset + call->get.got;
        call->entry.grows = s->options.grow;
    }
    store_finish(call, rc);
}

/* Reads from a site what no site before it had. Returns how much no site had yet. */
static size_t site_log_read_from(struct site_store *s, struct site *site, struct store_call *const *calls, size_t n)
{
    ACT_AUTOFREE struct site_part *parts = act_calloc(n + 1, sizeof(*parts));
    size_t n_parts = 0, missing = 0;

    for (size_t i = 0; i < n; i++)
        if (calls[i]->rc == -ACT_NOT_FOUND)
            parts[n_parts++] = (struct site_part){.name = calls[i]->key,
                                                  .offset = calls[i]->get.offset,
                                                  .data = calls[i]->get.sink,
                                                  .len = calls[i]->get.sink_cap};
    s->is_far = site_is_far(site);
    site_read_parts(site, s->options.id, parts, n_parts);
    for (size_t i = 0, at = 0; i < n; i++) {
        if (calls[i]->rc != -ACT_NOT_FOUND)
            continue;
        const struct site_part *part = &parts[at++];
        calls[i]->rc = part->rc;
        calls[i]->get.got = part->got;
        if (part->rc < 0)
            calls[i]->error = part->error;
        missing += part->rc == -ACT_NOT_FOUND;
    }
    return missing;
}

/* Reads from the first site that has it. */
static void site_log_read(struct site_store *s, struct store_call *const *calls, size_t n)
{
    const struct store_site_options *o = &s->options;
    struct act_error err;
    struct site *site = NULL;
    int rc = 0;

    for (size_t i = 0, missing = n; rc == 0 && missing > 0; i++) {
        rc = o->site(o->arg, i, &site, &err);
        if (rc == 0 && !site)
            break;
        if (rc == 0)
            missing = site_log_read_from(s, site, calls, n);
    }
    for (size_t i = 0; i < n; i++) {
        if (rc < 0 && calls[i]->rc == -ACT_NOT_FOUND) {
            calls[i]->rc = rc;
            calls[i]->error = err;
        }
    }
}

/* Takes so many of the calls that wait as are to be read while the loop waits. */
static size_t site_store_take(struct site_store *s, struct store_call **out)
{
    size_t n = 0, bytes = 0;

    while (n < s->n_waiting && (n == 0 || bytes + s->waiting[n]->get.sink_cap <= AT_ONCE)) {
        bytes += s->waiting[n]->get.sink_cap;
        out[n] = s->waiting[n];
        n++;
    }
    s->n_waiting -= n;
    memmove(s->waiting, s->waiting + n, s->n_waiting * sizeof(*s->waiting));
    return n;
}

static void site_store_read(void *arg)
{
    struct site_store *s = arg;
    ACT_AUTOFREE struct store_call **calls = act_calloc(s->n_waiting, sizeof(*calls));
    ACT_AUTOFREE struct store_call **asked = act_calloc(s->n_waiting, sizeof(*asked));
    size_t n = site_store_take(s, calls), n_asked = 0;

    if (s->n_waiting > 0)
        engine_timer(http_engine(s->store.http), 0, site_store_read, s);
    for (size_t i = 0; i < n; i++) {
        bool has_come = site_log_has_come(s, calls[i]);
        calls[i]->rc = has_come ? 0 : -ACT_NOT_FOUND;
        if (!has_come && is_below_folders(&s->options, calls[i]->key))
            asked[n_asked++] = calls[i];
    }
    site_log_read(s, asked, n_asked);
    for (size_t i = 0; i < n; i++)
        site_log_finish(s, calls[i], calls[i]->rc);
}

static void site_store_start(struct store *store, struct store_call *call)
{
    struct site_store *s = (struct site_store *)store;

    if (call->op != STORE_GET) {
        store_read_on_loop(store, call);
        return;
    }
    ACT_PUSH(s->waiting, s->n_waiting, call);
    if (s->n_waiting == 1)
        engine_timer(http_engine(store->http), 0, site_store_read, s);
}

static int site_store_window(const struct store *store)
{
    return ((const struct site_store *)store)->is_far ? FAR_WINDOW : 1;
}

/* Only a site to which each question is a round trip tells. */
static bool site_store_watch(struct store *store, bool *news)
{
    struct site_store *s = (struct site_store *)store;
    struct act_error ignored;
    struct site *site = NULL;

    if (s->options.site(s->options.arg, 0, &site, &ignored) < 0 || !site || !site_is_far(site))
        return false;
    s->has_news = news;
    return true;
}

static void store_site_close(struct store *store)
{
    struct site_store *s = (struct site_store *)store;

    site_store_forget(s);
    site_store_watch_none(s);
    for (size_t i = 0; i < s->n_told; i++)
        site_news_free(s->told[i].news);
    free(s->told);
    free(s->told_files);
    free(s->waiting);
    free(s);
}

static const struct store_ops ops = {
    .operations = STORE_READS,
    .start = site_store_start,
    .list = site_log_list,
    .window = site_store_window,
    .watch = site_store_watch,
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
