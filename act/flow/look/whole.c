/* whole.c - gives whole files of a run to whoever keeps them, piece by piece: its logs, and what it has written into
 * its mapped folders. Of those only its own files are given, as files.c knows them: who may look at a run may not read
 * all that is in a folder. */
#include <string.h>

#include "base/path.h"
#include "flow/data/of_run.h"
#include "flow/flow_internal.h"
#include "flow/look/parts.h"
#include "flow/source/source.h"
#include "transfer/transfer.h"

enum { WHOLE_PIECE = 1 << 20 };

/* ---- logs */

static int whole_log_bytes(const struct flow_source *source, const struct store_entry *log,
                           const struct flow_file_sink *sink, struct act_error *err)
{
    ACT_AUTOFREE char *piece = act_alloc(WHOLE_PIECE);
    uint64_t at = 0;
    size_t got = 1;
    int rc = sink->begin(sink->arg, log->size, err);

    for (; rc == 0 && at < log->size && got > 0; at += got) {
        uint64_t left = log->size - at;
        rc = flow_source_read(source, log->key, at, piece, left < WHOLE_PIECE ? (size_t)left : WHOLE_PIECE, &got, err);
        if (rc == 0 && got > 0)
            rc = sink->write(sink->arg, piece, got, err);
    }
    return rc == 0 && at < log->size ? act_error_set(err, ACT_FAIL, "'%s' became shorter", log->key) : rc;
}

/* *out_begun: some of the log may have been given to the sink. */
static int whole_log_of(struct flow_source *source, const struct flow_run *run, const char *name,
                        const struct flow_file_sink *sink, bool *out_begun, struct act_error *err)
{
    ACT_AUTO(store_page) logs = {0};

    source->with_outputs = true;
    int rc = source->store ? flow_source_list(source, &logs, err) : 0;
    for (size_t i = 0; rc == 0 && i < logs.n; i++)
        if (strcmp(logs.v[i].key, name) == 0) {
            *out_begun = true;
            return whole_log_bytes(source, &logs.v[i], sink, err);
        }
    return rc < 0 ? rc : act_error_set(err, ACT_NOT_FOUND, "run '%s' has no log '%s'", run->row.id, name);
}

int flow_read_log(struct flow *flow, const struct flow_run *run, const char *name, const struct flow_file_sink *sink,
                  struct act_error *err)
{
    struct flow_source source = {0}, here = {0};
    struct act_error ignored;
    int rc = flow_source_open(flow, run, &source, err);
    bool is_there = rc == 0, begun = false;

    if (rc == 0)
        rc = whole_log_of(&source, run, name, sink, &begun, err);
    flow_source_close(&source);
    if (rc == 0 || begun || (is_there && rc != -ACT_NOT_FOUND) || !run_state_is_final(run->status.state))
        return rc;
    if (flow_source_open_here(flow, run, &here, &ignored) == 0 &&
        whole_log_of(&here, run, name, sink, &begun, &ignored) == 0)
        rc = 0;
    flow_source_close(&here);
    return rc;
}

/* ---- files in its folders */

/* The bytes of a file on their way. The last piece waits until the checksum of all was right. */
struct whole_way {
    const struct flow_file_sink *sink;
    struct act_buf last;
    uint64_t left; /* of the size that was said */
    bool grows;    /* bytes behind it are no sign of another file */
};

static int whole_pass(struct whole_way *way, struct act_error *err)
{
    int rc = way->last.len > 0 ? way->sink->write(way->sink->arg, way->last.data, way->last.len, err) : 0;

    way->last.len = 0;
    return rc;
}

static int whole_write(void *arg, const void *data, size_t len, struct act_error *err)
{
    struct whole_way *way = arg;

    if (len > way->left && !way->grows) /* the last piece is held back, so that nobody takes what came for the whole */
        return act_error_set(err, ACT_TEMPORARY, "it was replaced while it was read; get it again");
    if (len > way->left)
        len = (size_t)way->left;
    way->left -= len;
    int rc = whole_pass(way, err);
    act_buf_add(&way->last, data, len);
    return rc;
}

/* The object at a path in a store, and whether the run wrote it. */
struct whole_found {
    struct flow_span span;
    const char *rel; /* in the folder */
    uint64_t size;
    bool is_own, grows;
};

static int whole_look(void *arg, const struct store_entry *entry, const char *rel, struct act_error *err)
{
    struct whole_found *found = arg;

    (void)rel;
    (void)err;
    found->size = entry->size;
    found->grows = entry->grows;
    found->is_own = entry->kind == STORE_FILE && flow_span_has(&found->span, entry, found->rel);
    return 0;
}

static int whole_no_output(const struct flow_run *run, const char *path, struct act_error *err)
{
    return act_error_set(err, ACT_NOT_FOUND, "run '%s' has written no file '%s'; 'a files %s' lists what it has",
                         run->row.id, path, run->row.id);
}

static int whole_file_bytes(struct flow *project, struct store *store, const struct flow_run *run,
                            const struct run_folder *f, const char *rel, const struct flow_file_sink *sink,
                            struct act_error *err)
{
    struct whole_found found = {.span = flow_span_of(run), .rel = rel};
    struct whole_way way = {.sink = sink};
    ACT_AUTOFREE char *key = act_path_join(f->path, rel), *path = act_path_join(f->name, rel);
    struct transfer_path at = {.store = store, .path = key};

    int rc = transfer_list(flow_engine(project), &at, TRANSFER_LEVEL, whole_look, &found, err);
    if (rc == -ACT_NOT_FOUND || (rc == 0 && !found.is_own))
        return whole_no_output(run, path, err);
    way.left = found.size;
    way.grows = found.grows;
    if (rc == 0)
        rc = sink->begin(sink->arg, found.size, err);
    if (rc == 0)
        rc = transfer_read(flow_engine(project), &at, NULL, 0, whole_write, &way, err);
    if (rc == 0)
        rc = whole_pass(&way, err);
    act_buf_release(&way.last);
    return rc;
}

/* Returns the folder of the run in which a path such as "output/model.pt" is, the innermost one; NULL: it is in none
 * that the run writes to. */
static const struct run_folder *whole_folder(const struct run_spec *spec, const char *path)
{
    const struct run_folder *found = NULL;

    for (size_t i = 0; i < spec->n_folders; i++) {
        const struct run_folder *f = &spec->folders[i];
        if (flow_is_written_to(f) && act_path_is_within(path, f->name) && path[strlen(f->name)] == '/' &&
            (!found || strlen(f->name) > strlen(found->name)))
            found = f;
    }
    return found;
}

int flow_read_output(struct flow *flow, const struct flow_run *run, const char *path, const struct flow_file_sink *sink,
                     struct act_error *err)
{
    const struct run_folder *f = act_path_has_dots(path) ? NULL : whole_folder(&run->spec, path);
    struct flow project = {0};
    struct store *store = NULL;

    if (!f)
        return whole_no_output(run, path, err);
    int rc = flow_open_project_of(flow, run, &project, err);
    if (rc < 0)
        return rc;
    rc = flow_open_folder_of_run(&project, &run->spec, f, &store, err);
    if (rc == 0)
        rc = whole_file_bytes(&project, store, run, f, path + strlen(f->name) + 1, sink, err);
    store_free(store);
    flow_close(&project);
    return rc;
}
