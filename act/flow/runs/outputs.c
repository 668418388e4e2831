/* outputs.c - what a run wrote into its mapped folders, as far as their stores tell: the files that were written there
 * between its start and its end, or that have its id in their path. Another run may have written there meanwhile.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "flow/flow_internal.h"
#include "flow/runs/report_internal.h"
#include "run/run.h"
#include "store/store.h"
#include "transfer/transfer.h"

enum {
    SHOWN = 100,
    LOOKED_AT = 50000, /* in each folder */
    LATE_S = 600,      /* so long after its end something may still be sent */
};

struct search {
    struct flow_report *out;
    const char *folder;
    int64_t from_s, to_s;
    size_t left;
};

static bool is_of_run(const struct search *s, const struct store_entry *entry, const char *rel)
{
    int64_t at_s = entry->mtime_ns ? act_ns_timespec(entry->mtime_ns).tv_sec : entry->last_modified_s;

    return (at_s >= s->from_s && at_s <= s->to_s) || strstr(rel, s->out->run->row.id);
}

static int look(void *arg, const struct store_entry *entry, const char *rel, struct act_error *err)
{
    struct search *s = arg;
    struct flow_report *out = s->out;

    if (s->left == 0)
        return act_error_set(err, ACT_PARTIAL, "it has more than %d files", LOOKED_AT);
    s->left--;
    if (entry->kind == STORE_FILE && is_of_run(s, entry, rel)) {
        struct flow_file file = {act_sprintf("%s/%s", s->folder, rel), entry->size};
        ACT_PUSH(out->outputs, out->n_outputs, file);
        out->output_bytes += entry->size;
    }
    return 0;
}

static const struct config_folder *find_folder(const struct config *config, const struct run_folder *wanted)
{
    for (size_t i = 0; i < config->n_folders; i++)
        if (strcmp(config->folders[i].name, wanted->name) == 0 && act_streq(config->folders[i].path, wanted->path))
            return &config->folders[i];
    return NULL;
}

static int look_into(struct flow *project, const struct run_folder *f, struct search *s, struct act_error *err)
{
    const struct config_folder *folder = find_folder(&project->config, f);
    struct store *store = NULL;

    if (!folder)
        return act_error_set(err, ACT_NOT_FOUND, "cluster '%s' does not map it to '%s' any more",
                             s->out->run->row.cluster, f->path);
    if (act_starts_with(f->store, RUN_CLAIM)) /* which only the nodes reach */
        return 0;
    int rc = flow_store(project, folder, &store, err);
    if (rc < 0)
        return rc;
    struct transfer_path what = {.store = store, .path = f->path, .is_folder = true};
    rc = transfer_list(flow_engine(project), &what, TRANSFER_TREE, look, s, err);
    store_free(store);
    return rc == -ACT_NOT_FOUND ? 0 : rc;
}

static bool is_written_to(const struct run_folder *f)
{
    return f->mode == RUN_FOLDER_RW_MOUNT || f->mode == RUN_FOLDER_UPLOAD;
}

static void look_into_all(struct flow *project, struct flow_report *out)
{
    const struct flow_run *run = out->run;
    const struct run_status *status = &run->status;
    struct search s = {.out = out,
                       .from_s = status->started_unix_s > 0 ? status->started_unix_s : run->row.created_unix_s,
                       .to_s = (status->ended_unix_s > 0 ? status->ended_unix_s : act_now_unix_s()) + LATE_S};
    struct act_error err;

    for (size_t i = 0; i < run->spec.n_folders; i++) {
        const struct run_folder *f = &run->spec.folders[i];
        s.folder = f->name;
        s.left = LOOKED_AT;
        if (is_written_to(f) && look_into(project, f, &s, &err) < 0)
            act_warn("not all that '%s' wrote into '%s' is known: %s", run->row.id, f->name, act_error_text(&err));
    }
}

/* The biggest first; of one size by name. */
static int by_size(const void *a, const void *b)
{
    const struct flow_file *x = a, *y = b;

    return x->size != y->size ? (x->size < y->size ? 1 : -1) : strcmp(x->name, y->name);
}

static void keep_biggest(struct flow_report *out)
{
    out->n_all_outputs = out->n_outputs;
    if (out->n_outputs > 0)
        qsort(out->outputs, out->n_outputs, sizeof(*out->outputs), by_size);
    while (out->n_outputs > SHOWN)
        free(out->outputs[--out->n_outputs].name);
}

static bool writes_anything(const struct run_spec *spec)
{
    for (size_t i = 0; i < spec->n_folders; i++)
        if (is_written_to(&spec->folders[i]))
            return true;
    return false;
}

void flow_list_outputs(struct flow *flow, struct flow_report *out)
{
    const struct flow_run *run = out->run;
    struct config_request request = {.cluster = run->row.cluster, .start_dir = run->row.project};
    struct flow project = {0};
    struct act_error err;

    if (!writes_anything(&run->spec))
        return;
    if (flow_open(&request, &project, &err) < 0) {
        act_warn("what '%s' wrote into its folders is not known: %s", run->row.id, act_error_text(&err));
        return;
    }
    project.services = flow_services(flow);
    look_into_all(&project, out);
    flow_close(&project);
    keep_biggest(out);
}
