/* log_files.c - where the logs of a run are read: at its platform, or in assets/<run id>/ once all of them are there.
 *
 * That a run has ended and its logs were fetched to their ends is written down beside the copies, as soon as nothing
 * more is added to them (store_entry.grows). What is changed later is no copy any more and is fetched anew. Where
 * every question is a request to a service, the copies are used from then on, until the run's state is another one, a
 * copy has changed, or the user asks for a fresh look.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text.h"
#include "codec/json.h"
#include "diagnose/diagnose.h"
#include "flow/flow_internal.h"
#include "flow/runs/logs_internal.h"
#include "platform/platform.h"
#include "run/run.h"

/* In assets/<run id>/: {"version": 2, "state": "Completed", "ended": Unix time (0: any), "logs": [{"name", "size",
 * "changed": Unix time, 0: not known}, ...]} */
#define COMPLETE_FILE ".complete"

enum { COMPLETE_MAX = 16 << 20, COMPLETE_VERSION = 2 };

char *flow_assets(const struct flow_run *run)
{
    ACT_AUTOFREE char *folder = flow_log_folder(run->row.project);

    return act_path_join(folder, run->row.id);
}

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

/* What is written down beside the copies, new, and when it was; NULL: nothing. */
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

/* The names, sizes and ages of the copies, and when they were whole; false: they are not all there. */
static bool read_complete(const struct flow_run *run, const char *root, const char *folder, struct store_page *out,
                          int64_t *out_whole_ns)
{
    size_t len = 0;
    int64_t whole_ns = 0;
    ACT_AUTOFREE char *text = complete_text(root, folder, &len, &whole_ns);
    CODEC_AUTOJSON json_t *json = NULL;
    const json_t *log, *logs;
    size_t i;
    bool good = true;

    *out = (struct store_page){0};
    if (!text || codec_json_parse(text, len, COMPLETE_FILE, &json, NULL) < 0 ||
        codec_json_int(json, "version", 0) != COMPLETE_VERSION ||
        strcmp(codec_json_str(json, "state", ""), run_state_name(run->status.state)) != 0)
        return false;
    int64_t ended = codec_json_int(json, "ended", -1);
    if (ended != 0 && ended != run->status.ended_unix_s)
        return false;
    *out_whole_ns = whole_ns;
    logs = json_object_get(json, "logs");
    json_array_foreach(logs, i, log)
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

static int log_files_open_folder(struct flow *flow, const char *root, const char *folder, struct store **out,
                                 struct act_error *err)
{
    int fd = act_folder_below(root, folder, false, err);

    if (fd < 0)
        return fd;
    ACT_AUTOFREE char *held = act_held_path(fd, ".");
    int rc = store_folder_open(flow_http(flow), held, false, out, err);
    close(fd);
    return rc;
}

/* The store of the copies, if they are all there. */
static int open_copies(struct flow *flow, const struct flow_run *run, struct flow_log_source *out,
                       struct act_error *err)
{
    ACT_AUTOFREE char *folder = flow_assets(run);
    ACT_AUTOFREE char *root = flow_log_folder(run->row.project);
    bool whole = read_complete(run, root, folder, &out->copies, &out->whole_ns);

    if (!whole || !platform_row(out->platform)->about.answers_by_request)
        return 0;
    int rc = log_files_open_folder(flow, root, folder, &out->store, err);
    out->is_copies = rc == 0;
    return rc;
}

int flow_log_source_open_here(struct flow *flow, const struct flow_run *run, struct flow_log_source *out,
                              struct act_error *err)
{
    ACT_AUTOFREE char *folder = flow_assets(run);
    ACT_AUTOFREE char *root = flow_log_folder(run->row.project);

    *out = (struct flow_log_source){.whole_ns = INT64_MAX};
    return log_files_open_folder(flow, root, folder, &out->store, err);
}

/* The platform's store, and behind it what the nodes have sent. */
static struct store *log_files_open_logs(struct flow *flow, const struct flow_run *run, struct flow_log_source *out,
                                         bool ended)
{
    struct store *live = platform_open_logs(out->platform, run->row.id, ended);
    struct act_error err;

    if (flow_sent_open(flow, run, &out->sent, &err) < 0 && ended)
        act_warn("%s", act_error_text(&err));
    if (!out->sent.store)
        return live;
    struct store *sent = out->sent.store;
    out->sent.store = NULL;
    return store_sent_open(
        flow_http(flow),
        &(struct store_sent_options){
            .id = run->row.id, .live = live, .sent = sent, .path = out->sent.path, .attempt = run->status.attempt});
}

static int open_source(struct flow *flow, const struct flow_run *run, bool copies_do, struct flow_log_source *out,
                       struct act_error *err)
{
    bool ended = run_state_is_final(run->status.state);

    *out = (struct flow_log_source){.whole_ns = INT64_MAX};
    int rc = run->status.unsubmitted ? 0 : flow_platform_of(flow, &run->row, &out->platform, err);

    if (rc == 0 && out->platform && ended && copies_do)
        rc = open_copies(flow, run, out, err);
    if (rc == 0 && out->platform && !out->is_copies)
        out->store = log_files_open_logs(flow, run, out, ended);
    return rc;
}

int flow_log_source_open(struct flow *flow, const struct flow_run *run, struct flow_log_source *out,
                         struct act_error *err)
{
    return open_source(flow, run, true, out, err);
}

int flow_log_source_open_there(struct flow *flow, const struct flow_run *run, struct flow_log_source *out,
                               struct act_error *err)
{
    return open_source(flow, run, false, out, err);
}

int flow_log_source_open_output(struct flow *flow, const struct flow_run *run, const struct flow_output *output,
                                struct flow_log_source *out, struct act_error *err)
{
    *out = (struct flow_log_source){.whole_ns = INT64_MAX, .only = act_path_join(output->folder->path, output->path)};
    int rc = flow_platform_of(flow, &run->row, &out->platform, err);

    if (rc == 0)
        rc = flow_open_project_of(flow, run, &out->sent.project, err);
    return rc < 0 ? rc : flow_open_folder_of_run(&out->sent.project, &run->spec, output->folder, &out->store, err);
}

void flow_log_source_close(struct flow_log_source *s)
{
    store_page_release(&s->copies);
    store_free(s->store);
    free(s->only);
    flow_sent_close(&s->sent);
    *s = (struct flow_log_source){0};
}

static void list_copies(const struct store_page *copies, struct store_page *out)
{
    for (size_t i = 0; i < copies->n; i++) {
        struct store_entry *entry = store_page_add(out);
        *entry = copies->v[i];
        entry->key = act_strdup(entry->key);
    }
}

/* Only where runs share a folder ACT keeps any; what has such a name elsewhere is a log of the service's. */
static void drop_outputs(const struct flow_log_source *s, struct store_page *logs)
{
    size_t n = 0;

    if (s->with_outputs || (s->platform && !platform_row(s->platform)->about.nodes_share_folder))
        return;
    for (size_t i = 0; i < logs->n; i++)
        if (act_starts_with(logs->v[i].key, RUN_DIR_OUTPUTS "/"))
            store_entry_release(&logs->v[i]);
        else
            logs->v[n++] = logs->v[i];
    logs->n = n;
}

int flow_log_source_list(const struct flow_log_source *s, struct store_page *out, struct act_error *err)
{
    struct store_call call = {.op = STORE_LIST, .key = s->only ? s->only : ""};
    int rc = s->store && !s->is_copies ? store_do(s->store, &call, err) : 0;

    *out = call.list.page;
    call.list.page = (struct store_page){0};
    store_call_release(&call);
    if (s->is_copies)
        list_copies(&s->copies, out);
    if (!s->only)
        drop_outputs(s, out);
    return rc;
}

int flow_log_source_read(const struct flow_log_source *s, const char *name, uint64_t offset, void *data, size_t len,
                         size_t *out_got, struct act_error *err)
{
    struct store_call call = {.op = STORE_GET, .key = name, .get = {.offset = offset, .sink = data, .sink_cap = len}};
    int rc = store_do(s->store, &call, err);

    *out_got = call.get.got;
    store_call_release(&call);
    return rc;
}

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

static bool are_whole(const struct flow_run *run, const struct store_page *listed, const struct flow_logs *logs)
{
    bool whole = logs->n > 0 && run_state_is_final(run->status.state);

    for (size_t i = 0; i < logs->n && whole; i++)
        whole = !listed->v[i].grows && is_copy(logs->root, logs->folder, logs->v[i].name, logs->v[i].size, INT64_MAX);
    return whole;
}

static int begin_write_back(int fd)
{
    (void)!sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    return 0;
}

static int sync_each(const struct flow_logs *logs, int (*sync)(int fd), struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < logs->n && rc == 0; i++) {
        int fd = act_open_below(logs->root, logs->v[i].path, O_RDONLY, err);
        rc = fd < 0 ? fd : 0;
        if (fd >= 0 && sync(fd) < 0)
            rc = act_error_errno(err, errno, "cannot write '%s'", logs->v[i].path);
        if (fd >= 0)
            close(fd);
    }
    return rc;
}

/* What is written down as whole is never asked for again: so it has to outlast a power cut. The disk has the bytes of
 * all copies to write before any is waited for. */
static int sync_copies(const struct flow_logs *logs, struct act_error *err)
{
    int rc = sync_each(logs, begin_write_back, err);

    return rc < 0 ? rc : sync_each(logs, fdatasync, err);
}

int flow_log_source_complete(const struct flow_log_source *s, const struct flow_run *run,
                             const struct store_page *listed, const struct flow_logs *logs, struct act_error *err)
{
    json_t *list = json_array();
    CODEC_AUTOJSON json_t *json =
        json_pack("{s:i, s:s, s:I, s:o}", "version", COMPLETE_VERSION, "state", run_state_name(run->status.state),
                  "ended", (json_int_t)run->status.ended_unix_s, "logs", list);

    if (s->copies.n > 0 || !s->platform)
        return 0;
    if (!are_whole(run, listed, logs))
        return flow_forget_complete(run, err);
    int rc = sync_copies(logs, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < logs->n; i++) {
        json_array_append_new(list, json_pack("{s:o, s:I, s:I}", "name", codec_json_bytes_new(logs->v[i].name), "size",
                                              (json_int_t)logs->v[i].size, "changed",
                                              (json_int_t)listed->v[i].last_modified_s));
    }
    int fd = act_folder_below(logs->root, logs->folder, false, err);
    if (fd < 0)
        return fd;
    ACT_AUTOFREE char *path = act_held_path(fd, COMPLETE_FILE);
    rc = codec_json_write(path, json, 0666, err);
    close(fd);
    return rc;
}

const struct store_entry *flow_find_rank_log(const struct store_page *logs, const char *prefix, int rank)
{
    const struct store_entry *found = NULL;
    int best = 0, choice;

    for (size_t i = 0; i < logs->n; i++) {
        const char *name = logs->v[i].key;
        if (!act_starts_with(name, prefix) || run_log_rank(name + strlen(prefix), &choice) != rank)
            continue;
        if (!found || choice < best) {
            found = &logs->v[i];
            best = choice;
        }
    }
    return found;
}

/* ---- ends of logs */

int flow_log_tail(const struct flow_log_source *s, const struct store_entry *log, size_t max, struct act_buf *out,
                  struct act_error *err)
{
    uint64_t from = log && log->size > max ? log->size - max : 0;
    size_t got;

    if (!log)
        return 0;
    ACT_AUTOFREE char *text = act_alloc(max);
    int rc = flow_log_source_read(s, log->key, from, text, max, &got, err);
    if (rc < 0)
        return rc == -ACT_NOT_FOUND ? 0 : rc;
    act_buf_add(out, text, got);
    const char *first = from > 0 && out->len > 0 ? memchr(out->data, '\n', out->len) : NULL;
    if (first) {
        size_t cut = (size_t)(first - out->data) + 1;
        memmove(out->data, out->data + cut, out->len - cut + 1);
        out->len -= cut;
    }
    return 0;
}

void flow_last_lines(const struct act_buf *text, size_t n, struct act_strv *out)
{
    struct act_strv found = {0};
    size_t end = text->len;

    while (end > 0 && found.n < n) {
        const char *before = memrchr(text->data, '\n', end - 1);
        size_t start = before ? (size_t)(before - text->data) + 1 : 0;
        size_t len = end - start < DIAGNOSE_LINE ? end - start : DIAGNOSE_LINE;
        char *line = act_alloc(len + 1);
        memcpy(line, text->data + start, len);
        line[diagnose_clean(line, len)] = '\0';
        if (*line)
            act_strv_take(&found, line);
        else
            free(line);
        end = start;
    }
    for (size_t i = found.n; i > 0; i--)
        act_strv_push(out, found.v[i - 1]);
    act_strv_release(&found);
}
