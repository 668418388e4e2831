/* complete.c - the note that the copies of an ended run are whole.
 *
 * It is written beside the copies when the logs were fetched to their ends and nothing is added to them any more
 * (store_entry.grows). A copy that is changed later is none any more, and is fetched anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "flow/flow_internal.h"
#include "flow/source/source.h"

/* In assets/<run id>/: {"version": 2, "state": "Completed", "ended": Unix time (0: any), "logs": [{"name", "size",
 * "changed": Unix time, 0: not known}, ...]} */
#define COMPLETE_FILE ".complete"

enum { COMPLETE_MAX = 16 << 20, COMPLETE_VERSION = 2 };

static bool is_copy(const char *root, const char *folder, const char *name, uint64_t size, int64_t whole_ns)
{
    ACT_AUTOFREE char *path = act_path_join(folder, name);
    struct stat st;
    int fd = act_open_below(root, path, O_PATH, NULL);
    bool is = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == size &&
              act_timespec_ns(st.st_mtim) <= whole_ns;

    if (fd >= 0)
        close(fd);
    return is;
}

/* ---- reading it */

/* Returns the note as a new string, and when it was written; NULL: there is none. */
static char *complete_text(const char *root, const char *folder, size_t *out_len, int64_t *out_ns)
{
    int fd = act_folder_below(root, folder, false, NULL);
    char *text = NULL;
    struct stat st;

    if (fd < 0)
        return NULL;
    ACT_AUTOFREE char *path = act_held_path(fd, COMPLETE_FILE);
    *out_ns = fstatat(fd, COMPLETE_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0 ? act_timespec_ns(st.st_mtim) : 0;
    if (act_file_read_regular(path, COMPLETE_MAX, &text, out_len, NULL) < 0)
        text = NULL;
    close(fd);
    return text;
}

/* Tells whether the note is about the run as it ended. */
static bool complete_is_of(const json_t *json, const struct flow_run *run)
{
    int64_t ended = codec_json_int(json, "ended", -1);

    return codec_json_int(json, "version", 0) == COMPLETE_VERSION &&
           strcmp(codec_json_str(json, "state", ""), run_state_name(run->status.state)) == 0 &&
           (ended == 0 || ended == run->status.ended_unix_s);
}

bool flow_read_complete(const struct flow_run *run, struct store_page *out, int64_t *out_whole_ns)
{
    ACT_AUTOFREE char *folder = flow_assets(run);
    ACT_AUTOFREE char *root = flow_log_folder(run->row.project);
    size_t len = 0, i;
    int64_t whole_ns = 0;
    ACT_AUTOFREE char *text = complete_text(root, folder, &len, &whole_ns);
    CODEC_AUTOJSON json_t *json = NULL;
    const json_t *log;
    bool good = true;

    *out = (struct store_page){0};
    if (!text || codec_json_parse(text, len, COMPLETE_FILE, &json, NULL) < 0 || !complete_is_of(json, run))
        return false;
    *out_whole_ns = whole_ns;
    json_array_foreach(json_object_get(json, "logs"), i, log)
    {
        const char *name = codec_json_str(log, "name", "");
        int64_t size = codec_json_int(log, "size", -1);
        good = good && act_path_is_safe(name, strlen(name)) && size >= 0 &&
               is_copy(root, folder, name, (uint64_t)size, whole_ns);
        *store_page_add(out) = (struct store_entry){
            .key = act_strdup(name), .size = (uint64_t)size, .last_modified_s = codec_json_int(log, "changed", 0)};
    }
    if (!good)
        store_page_release(out);
    return good && out->n > 0;
}

/* ---- writing it */

int flow_forget_complete(const struct flow_run *run, struct act_error *err)
{
    ACT_AUTOFREE char *folder = flow_assets(run);
    ACT_AUTOFREE char *root = flow_log_folder(run->row.project);
    int fd = act_folder_below(root, folder, false, err), rc = 0;

    if (fd < 0)
        return fd == -ACT_NOT_FOUND ? 0 : fd;
    if (unlinkat(fd, COMPLETE_FILE, 0) < 0 && errno != ENOENT)
        rc = act_error_errno(err, errno, "cannot remove '%s/" COMPLETE_FILE "'", folder);
    close(fd);
    return rc;
}

/* The copies of the logs that were listed. */
struct complete {
    const char *root, *folder;
    const struct store_page *logs;
};

static bool are_whole(const struct complete *c)
{
    bool whole = c->logs->n > 0;

    for (size_t i = 0; i < c->logs->n && whole; i++)
        whole = !c->logs->v[i].grows && is_copy(c->root, c->folder, c->logs->v[i].key, c->logs->v[i].size, INT64_MAX);
    return whole;
}

static int begin_write_back(int fd)
{
    (void)!sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    return 0;
}

static int sync_each(const struct complete *c, int (*sync)(int fd), struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < c->logs->n && rc == 0; i++) {
        ACT_AUTOFREE char *path = act_path_join(c->folder, c->logs->v[i].key);
        int fd = act_open_below(c->root, path, O_RDONLY, err);
        rc = fd < 0 ? fd : 0;
        if (fd >= 0 && sync(fd) < 0)
            rc = act_error_errno(err, errno, "cannot write '%s'", path);
        if (fd >= 0)
            close(fd);
    }
    return rc;
}

/* Logs that are noted as whole are never asked for again, so their copies have to outlast a power cut. The disk has the
 * bytes of all copies to write before any is waited for. */
static int sync_copies(const struct complete *c, struct act_error *err)
{
    int rc = sync_each(c, begin_write_back, err);

    return rc < 0 ? rc : sync_each(c, fdatasync, err);
}

static int complete_write(const struct complete *c, const struct flow_run *run, struct act_error *err)
{
    json_t *list = json_array();
    CODEC_AUTOJSON json_t *json =
        json_pack("{s:i, s:s, s:I, s:o}", "version", COMPLETE_VERSION, "state", run_state_name(run->status.state),
                  "ended", (json_int_t)run->status.ended_unix_s, "logs", list);

    for (size_t i = 0; i < c->logs->n; i++) {
        const struct store_entry *log = &c->logs->v[i];
        json_array_append_new(list, json_pack("{s:o, s:I, s:I}", "name", codec_json_bytes_new(log->key), "size",
                                              (json_int_t)log->size, "changed", (json_int_t)log->last_modified_s));
    }
    int fd = act_folder_below(c->root, c->folder, false, err);
    if (fd < 0)
        return fd;
    ACT_AUTOFREE char *path = act_held_path(fd, COMPLETE_FILE);
    int rc = codec_json_write(path, json, 0666, err);
    close(fd);
    return rc;
}

int flow_note_complete(const struct flow_source *s, const struct flow_run *run, const struct store_page *listed,
                       struct act_error *err)
{
    ACT_AUTOFREE char *folder = flow_assets(run);
    ACT_AUTOFREE char *root = flow_log_folder(run->row.project);
    const struct complete c = {.root = root, .folder = folder, .logs = listed};

    if (s->copies.n > 0 || !s->platform)
        return 0;
    if (!run_state_is_final(run->status.state) || !are_whole(&c))
        return flow_forget_complete(run, err);
    int rc = sync_copies(&c, err);
    return rc < 0 ? rc : complete_write(&c, run, err);
}
