/* outputs.c - what a run wrote into its mapped folders, as far as their stores tell, for its report. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/path.h"
#include "flow/data/of_run.h"
#include "flow/look/parts.h"
#include "transfer/transfer.h"

enum {
    SHOWN = 100,
    LOOKED_AT = 50000, /* in each folder */
};

struct search {
    struct flow_report *out;
    const char *folder;
    struct flow_span span;
    size_t left;
};

static int outputs_look(void *arg, const struct store_entry *entry, const char *rel, struct act_error *err)
{
    struct search *s = arg;
    struct flow_report *out = s->out;

    if (s->left == 0)
        return act_error_set(err, ACT_PARTIAL, "it has more than %d files", LOOKED_AT);
    s->left--;
    if (entry->kind == STORE_FILE && flow_span_has(&s->span, entry, rel)) {
        struct flow_file file = {act_sprintf("%s/%s", s->folder, rel), entry->size};
        ACT_PUSH(out->outputs, out->n_outputs, file);
        out->output_bytes += entry->size;
    }
    return 0;
}

static int look_into(struct flow *project, const struct run_folder *f, struct search *s, struct act_error *err)
{
    struct store *store = NULL;

    if (flow_is_of_nodes(f))
        return 0;
    int rc = flow_open_folder_of_run(project, &s->out->run->spec, f, &store, err);
    if (rc == 0)
        rc = flow_list_folder_of_run(project, store, f, outputs_look, s, err);
    store_free(store);
    return rc;
}

bool flow_is_written_to(const struct run_folder *f)
{
    return f->mode == RUN_FOLDER_RW_MOUNT || f->mode == RUN_FOLDER_UPLOAD;
}

/* Tells whether a folder lies in another one that is looked into, so that its files would count twice. */
static bool is_in_another(const struct run_spec *spec, size_t at)
{
    const struct run_folder *f = &spec->folders[at];

    for (size_t i = 0; i < spec->n_folders; i++) {
        const struct run_folder *other = &spec->folders[i];
        if (i != at && flow_is_written_to(other) && strcmp(f->store, other->store) == 0 &&
            act_path_is_within(f->path, other->path) && (i < at || strcmp(f->path, other->path) != 0))
            return true;
    }
    return false;
}

static void look_into_all(struct flow *project, struct flow_report *out)
{
    const struct flow_run *run = out->run;
    struct search s = {.out = out, .span = flow_span_of(run)};
    struct act_error err;

    for (size_t i = 0; i < run->spec.n_folders; i++) {
        const struct run_folder *f = &run->spec.folders[i];
        s.folder = f->name;
        s.left = LOOKED_AT;
        if (flow_is_written_to(f) && flow_is_of_nodes(f))
            act_strv_push(&out->beyond, f->name);
        if (flow_is_written_to(f) && !is_in_another(&run->spec, i) && look_into(project, f, &s, &err) < 0)
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
        if (flow_is_written_to(&spec->folders[i]))
            return true;
    return false;
}

void flow_list_outputs(struct flow *flow, struct flow_report *out)
{
    const struct flow_run *run = out->run;
    struct flow project = {0};
    struct act_error err;

    if (!writes_anything(&run->spec))
        return;
    if (flow_open_project_of(flow, run, &project, &err) < 0) {
        act_warn("what '%s' wrote into its folders is not known: %s", run->row.id, act_error_text(&err));
        return;
    }
    look_into_all(&project, out);
    flow_close(&project);
    keep_biggest(out);
}
