#include "site/told.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "codec/json.h"
#include "site/site_internal.h"

enum {
    TOLD_LONGEST_MS = 60000, /* a request waits: less than its client waits for an answer */
    TOLD_LOOK_MS = 1000,
    TOLD_TOGETHER_MS = 10, /* what is written in one go is told in one answer */
};

struct told_list {
    uint64_t number;
    char *id;
    struct act_strv folders;
    struct site_files files;
    int inotify_fd; /* -1: there are none left, and looks alone must do */
};

void told_free(struct told_list *told)
{
    if (!told)
        return;
    if (told->inotify_fd >= 0)
        close(told->inotify_fd);
    free(told->id);
    act_strv_release(&told->folders);
    site_files_release(&told->files);
    free(told);
}

void told_note(struct site *site, const char *id, const struct act_strv *folders, struct site_files *files)
{
    struct told_list *told = act_calloc(1, sizeof(*told));

    told->number = (site->told ? site->told->number : 0) + 1;
    told->id = act_strdup(id);
    act_strv_copy(&told->folders, folders->v, folders->n);
    told->files = *files;
    *files = (struct site_files){.told = told->number};
    told->inotify_fd = -1;
    told_free(site->told);
    site->told = told;
}

/* ---- waiting ---- */

static void told_watch_folder(const struct told_list *told, const char *dir, const char *name)
{
    ACT_AUTOFREE char *path = act_path_join(dir, name);

    /* if it is not there yet, or too many are watched, a look finds what is new */
    (void)!inotify_add_watch(told->inotify_fd, path,
                             IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVE | IN_ONLYDIR | IN_DONT_FOLLOW);
}

/* Has changes told in all folders in which there are files. Those that are watched already stay so. */
static void told_watch(struct site *site, struct told_list *told)
{
    ACT_AUTOFREE char *dir = site_run_dir(site, told->id);
    ACT_AUTOFREE char *last = NULL;

    if (told->inotify_fd < 0)
        told->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (told->inotify_fd < 0)
        return;
    told_watch_folder(told, dir, "");
    for (size_t i = 0; i < told->folders.n; i++)
        told_watch_folder(told, dir, told->folders.v[i]);
    for (size_t i = 0; i < told->files.n; i++) {
        char *folder = act_path_dirname(told->files.v[i].name);
        if (!act_streq(folder, last))
            told_watch_folder(told, dir, folder);
        free(last);
        last = folder;
    }
}

/* Waits for a change, or for what may be one. False: a request has come, or it was long enough. */
static bool told_pause(const struct told_list *told, struct channel *channel, int64_t until_ms)
{
    char events[4096];

    if (act_now_monotonic_ms() >= until_ms || channel_is_ready(channel, told->inotify_fd, TOLD_LOOK_MS))
        return false;
    if (told->inotify_fd >= 0 && read(told->inotify_fd, events, sizeof(events)) > 0) {
        usleep(TOLD_TOGETHER_MS * 1000);
        while (read(told->inotify_fd, events, sizeof(events)) > 0)
            ;
    }
    return true;
}

/* ---- what is new ---- */

/* Adds what a file has behind its first `from` bytes. Returns how much: nothing if it does not fit. */
static size_t told_add_end(struct site *site, const struct told_list *told, const struct site_file *file, uint64_t from,
                           struct act_buf *data)
{
    struct act_error ignored;
    size_t got = 0;

    if (from >= file->size || file->size - from > SITE_ENDS_MAX_BYTES - data->len)
        return 0;
    const size_t len = (size_t)(file->size - from);
    ACT_AUTOFREE char *end = act_alloc(len);
    if (here_read(site, told->id, file->name, from, end, len, &got, &ignored) < 0 || got < len)
        return 0;
    act_buf_add(data, end, len);
    return len;
}

/* Adds the files that are new, have another size or are gone to the answer. Returns whether there are any. */
static bool told_compare(struct site *site, const struct told_list *told, const struct site_files *now, json_t *answer,
                         struct act_buf *data)
{
    const struct site_files *before = &told->files;
    json_t *rows = json_array(), *gone = json_array();

    for (size_t i = 0, k = 0; i < now->n || k < before->n;) {
        const struct site_file *new = i < now->n ? &now->v[i] : NULL, *old = k < before->n ? &before->v[k] : NULL;
        int order = !new ? 1 : !old ? -1 : strcmp(new->name, old->name);
        if (old && order > 0)
            json_array_append_new(gone, codec_json_bytes_new(old->name));
        if (new && (order < 0 || (order == 0 && old && new->size != old->size))) {
            uint64_t known = old && order == 0 && old->size < new->size ? old->size : 0;
            size_t end = told_add_end(site, told, new, known, data);
            json_array_append_new(rows, json_pack("[o, I, I, I]", codec_json_bytes_new(new->name),
                                                  (json_int_t) new->size, (json_int_t) new->idle_s, (json_int_t)end));
        }
        i += order <= 0;
        k += order >= 0;
    }
    bool is_new = json_array_size(rows) + json_array_size(gone) > 0;
    json_object_set_new(answer, "files", rows);
    json_object_set_new(answer, "gone", gone);
    return is_new;
}

int told_wait(struct site *site, struct channel *channel, const json_t *request, json_t *answer, struct act_buf *data,
              struct act_error *err)
{
    const int64_t until_ms = act_now_monotonic_ms() + TOLD_LONGEST_MS, since = codec_json_int(request, "since", 0);
    struct told_list *told = site->told;
    bool is_new = false, goes_on = true;

    if (!told || since <= 0 || told->number != (uint64_t)since)
        return 0;
    told_watch(site, told);
    while (goes_on && !is_new) {
        struct site_files now;
        int rc = here_files(site, told->id, (const char *const *)told->folders.v, told->folders.n, &now, err);
        if (rc < 0)
            return rc;
        is_new = told_compare(site, told, &now, answer, data);
        site_files_release(is_new ? &told->files : &now);
        if (is_new)
            told->files = now;
        else
            goes_on = told_pause(told, channel, until_ms);
    }
    told->number += is_new;
    json_object_set_new(answer, "told", json_integer((json_int_t)told->number));
    return 0;
}
