/* files.c - the files that a run has written: its logs, and what is in its mapped folders as they were mapped then. In
 * a folder the run's are those that were written between its start and its end, or that have its id in their path;
 * where a store tells only when they came, those that came until a while later. Another run may have written there
 * meanwhile.
 */
#include <string.h>

#include "base/clock.h"
#include "base/path.h"
#include "flow/data/data.h"
#include "flow/data/data_internal.h"
#include "flow/look/parts.h"
#include "flow/source/source.h"

void flow_files_release(struct flow_files *files)
{
    for (size_t i = 0; i < files->n; i++) {
        struct flow_file_of_run *f = &files->v[i];
        act_wipe(&f->url);
        free(f->path);
    }
    free(files->v);
    *files = (struct flow_files){0};
}

/* ---- which are the run's */

struct flow_span flow_span_of(const struct flow_run *run)
{
    enum { LATE_S = 600 };
    const struct run_status *s = &run->status;
    int64_t end_s = s->ended_unix_s > 0 ? s->ended_unix_s : act_now_unix_s();

    return (struct flow_span){.id = run->row.id,
                              .from_s = s->started_unix_s > 0 ? s->started_unix_s : run->row.created_unix_s,
                              .to_s = end_s,
                              .sent_to_s = end_s + LATE_S};
}

static int64_t files_changed_s(const struct store_entry *entry)
{
    return entry->mtime_ns ? act_ns_timespec(entry->mtime_ns).tv_sec : entry->last_modified_s;
}

bool flow_span_has(const struct flow_span *span, const struct store_entry *entry, const char *rel)
{
    int64_t at_s = files_changed_s(entry);

    int64_t to_s = entry->mtime_ns ? span->to_s : span->sent_to_s;

    return (at_s >= span->from_s && at_s <= to_s) || strstr(rel, span->id);
}

/* ---- its files */

static void files_add(struct flow_files *files, char *path, const struct store_entry *entry)
{
    struct flow_file_of_run file = {.path = path, .size = entry->size, .changed_unix_s = files_changed_s(entry)};

    ACT_PUSH(files->v, files->n, file);
}

/* below: a folder among them; "": all. */
static int files_list_logs(struct flow *flow, const struct flow_run *run, const char *below, struct flow_files *out,
                           struct act_error *err)
{
    struct flow_source source;
    struct store_page page = {0};

    if (run->status.unsubmitted)
        return act_error_set(err, ACT_NOT_FOUND, "run '%s' was never submitted and has no files", run->row.id);
    int rc = flow_source_open_there(flow, run, &source, err);
    source.with_outputs = true;
    if (rc == 0)
        rc = flow_source_list(&source, &page, err);
    for (size_t i = 0; rc == 0 && i < page.n; i++)
        if (!*below || act_path_is_within(page.v[i].key, below))
            files_add(out, act_sprintf("%s:%s", run->row.id, page.v[i].key), &page.v[i]);
    store_page_release(&page);
    flow_source_close(&source);
    return rc == -ACT_NOT_FOUND ? 0 : rc; /* it has not begun */
}

struct listing {
    struct flow_files *out;
    const struct run_folder *folder;
    struct flow_span span;
    bool all;
};

static int files_take(void *arg, const struct store_entry *entry, const char *rel, struct act_error *err)
{
    struct listing *l = arg;

    (void)err;
    if (entry->kind != STORE_FILE)
        return 0;
    if (l->all || flow_span_has(&l->span, entry, rel))
        files_add(l->out, act_sprintf("%s/%s", l->folder->name, rel), entry);
    else
        l->out->n_others++;
    return 0;
}

static int sign_all(struct store *store, const struct run_folder *f, const struct flow_files_wanted *what,
                    struct flow_files *out, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < out->n; i++) {
        struct flow_file_of_run *file = &out->v[i];
        ACT_AUTOFREE char *key = act_path_join(f->path, file->path + strlen(f->name) + 1);
        struct flow_url url = {.life_s = what->life_s, .share_sas = what->share_sas};
        rc = flow_url_in(store, key, file->path, &url, err);
        file->url = url.url;
    }
    return rc;
}

static int files_list_folder(struct flow *flow, const struct flow_run *run, const struct run_folder *f,
                             const struct flow_files_wanted *what, struct flow_files *out, struct act_error *err)
{
    struct listing l = {.out = out, .folder = f, .span = flow_span_of(run), .all = what->all};
    struct flow project = {0};
    struct store *store = NULL;
    int rc = flow_open_project_of(flow, run, &project, err);

    if (rc < 0)
        return rc;
    rc = flow_open_folder_of_run(&project, &run->spec, f, &store, err);
    if (rc == 0)
        rc = flow_list_folder_of_run(&project, store, f, files_take, &l, err);
    if (rc == 0 && what->urls)
        rc = sign_all(store, f, what, out, err);
    store_free(store);
    flow_close(&project);
    return rc;
}

/* Lists an output. All that is in a folder with the run's id in its path is the run's. */
static int list_output(struct flow *flow, const struct flow_run *run, const struct flow_output *output,
                       const struct flow_files_wanted *what, struct flow_files *out, struct act_error *err)
{
    const struct run_folder *f = output->folder;
    ACT_AUTOFREE char *name = act_path_join(f->name, output->path), *path = act_path_join(f->path, output->path);
    struct run_folder at = *f;
    struct flow_files_wanted all = *what;

    at.name = name;
    at.path = path;
    all.all = what->all || strstr(output->path, run->row.id);
    return files_list_folder(flow, run, &at, &all, out, err);
}

static int files_no_folder(const struct flow_run *run, const char *name, struct act_error *err)
{
    ACT_AUTO(act_buf) names = {0};

    act_buf_adds(&names, FLOW_FILES_LOGS);
    for (size_t i = 0; i < run->spec.n_folders; i++)
        act_buf_addf(&names, ", %s", run->spec.folders[i].name);
    for (size_t i = 0; i < run->spec.n_outputs; i++)
        act_buf_addf(&names, ", %s", run->spec.outputs[i].id);
    return act_error_set(err, ACT_NOT_FOUND, "run '%s' had no folder '%s'; it has: %s", run->row.id, name, names.data);
}

int flow_list_files(struct flow *flow, const struct flow_run *run, const struct flow_files_wanted *what,
                    struct flow_files *out, struct act_error *err)
{
    const struct run_folder *f = what->folder ? flow_find_folder(&run->spec, what->folder) : NULL;

    ACT_AUTO(flow_output) output = {0};
    int known = what->folder && !f ? flow_find_output(run, what->folder, &output, err) : 0;

    *out = (struct flow_files){0};
    if (known < 0)
        return known;
    if (f || output.folder)
        return f ? files_list_folder(flow, run, f, what, out, err) : list_output(flow, run, &output, what, out, err);
    if (what->folder && !known && strcmp(what->folder, FLOW_FILES_LOGS) != 0)
        return files_no_folder(run, what->folder, err);
    if (what->all || what->life_s || what->share_sas)
        return act_error_set(err, ACT_USAGE, "--%s has no effect on logs; -d FOLDER names a mapped folder",
                             what->all      ? "all"
                             : what->life_s ? "expires"
                                            : "share-sas");
    return files_list_logs(flow, run, known ? output.path : "", out, err);
}
