/* kept.c - how much ACT keeps: on this machine, and at each place that has runs of the ledger. */
#include <fts.h>
#include <string.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "flow/flow_internal.h"
#include "flow/keep/keep.h"
#include "platform/platform.h"

void flow_keeps_release(struct flow_keeps *keeps)
{
    for (size_t i = 0; i < keeps->n; i++)
        free(keeps->v[i].where);
    free(keeps->v);
    *keeps = (struct flow_keeps){0};
}

/* Takes where. */
static void kept_add(struct flow_keeps *out, const char *what, char *where, uint64_t bytes, size_t n)
{
    if (n == 0)
        free(where);
    else
        ACT_PUSH(out->v, out->n, (struct flow_kept){.what = what, .where = where, .bytes = bytes, .n = n});
}

static size_t kept_count_in(const char *path)
{
    ACT_AUTOFREE char *root = act_strdup(path);
    FTS *tree = fts_open((char *[]){root, NULL}, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    size_t n = 0;

    if (tree && fts_read(tree))
        for (FTSENT *e = fts_children(tree, FTS_NAMEONLY); e; e = e->fts_link)
            n++;
    if (tree)
        fts_close(tree);
    return n;
}

static void add_here(struct flow_keeps *out)
{
    ACT_AUTOFREE char *state = act_state_dir();
    ACT_AUTOFREE char *store = act_path_join(state, "store");
    ACT_AUTOFREE char *packages = flow_packages_dir();
    ACT_AUTOFREE char *ledger = act_path_join(state, "ledger.db");
    uint64_t bytes = act_tree_size(ledger);

    kept_add(out, "built-in store", act_strdup(store), act_tree_size(store), kept_count_in(store));
    kept_add(out, "package cache", act_strdup(packages), act_tree_size(packages), kept_count_in(packages));
    kept_add(out, "ledger", act_strdup(ledger), bytes, bytes > 0);
}

/* The copies of logs of a run, added to those of the same folder. */
static void add_copies(const struct flow_run *run, struct flow_keeps *out)
{
    ACT_AUTOFREE char *copies = flow_assets(run);
    ACT_AUTOFREE char *folder = flow_log_folder(run->row.project);
    uint64_t bytes = act_tree_size(copies);

    for (size_t i = 0; i < out->n && bytes > 0; i++)
        if (strcmp(out->v[i].where, folder) == 0) {
            out->v[i].bytes += bytes;
            out->v[i].n++;
            return;
        }
    kept_add(out, "copies of logs", act_strdup(folder), bytes, bytes > 0);
}

static void kept_add_place(struct platform *platform, const char *cluster, struct flow_keeps *out)
{
    struct platform_keeps there;
    struct act_error err;

    if (platform_keeps(platform, &there, &err) < 0)
        act_warn("cluster '%s' is not counted: %s", cluster, act_error_text(&err));
    else if (there.where) {
        ACT_AUTOFREE char *where = platform_row(platform)->about.is_here ? act_strdup(there.where)
                                                                         : act_sprintf("%s: %s", cluster, there.where);
        kept_add(out, "runs", act_sprintf("%s/runs", where), there.runs.bytes, there.runs.n);
        kept_add(out, "packages", act_sprintf("%s/packages", where), there.packages.bytes, there.packages.n);
        kept_add(out, "agents", act_sprintf("%s/bin", where), there.agents.bytes, there.agents.n);
        kept_add(out, "environments", act_sprintf("%s/environments", where), there.environments.bytes,
                 there.environments.n);
        kept_add(out, "leftovers", act_sprintf("%s/new", where), there.left.bytes, there.left.n);
    }
    free(there.where);
}

struct kept_count {
    struct flow *flow;
    struct flow_keeps *out;
    struct platform **seen; /* the places that were counted */
    size_t n_seen;
};

/* Each place once, however many runs and clusters are there. */
static void kept_add_place_of(struct kept_count *c, const struct ledger_run *row)
{
    struct platform *platform;
    struct act_error ignored;

    if (flow_platform_of(c->flow, row, &platform, &ignored) < 0)
        return;
    for (size_t i = 0; i < c->n_seen; i++)
        if (c->seen[i] == platform)
            return;
    ACT_PUSH(c->seen, c->n_seen, platform);
    kept_add_place(platform, row->cluster, c->out);
}

static int kept_visit_places(void *arg, struct flow_run *runs, size_t n, struct act_error *err)
{
    (void)err;
    for (size_t i = 0; i < n; i++)
        kept_add_place_of(arg, &runs[i].row);
    return 0;
}

static int kept_visit_copies(void *out, struct flow_run *runs, size_t n, struct act_error *err)
{
    (void)err;
    for (size_t i = 0; i < n; i++)
        add_copies(&runs[i], out);
    return 0;
}

int flow_keeps(struct flow *flow, const char *cluster, struct flow_keeps *out, struct act_error *err)
{
    const struct flow_table table = {.cluster = cluster, .as_known = true};
    struct kept_count count = {.flow = flow, .out = out};
    struct flow_rows *runs;
    int rc = flow_rows_open(flow, &table, &runs, err);

    *out = (struct flow_keeps){0};
    if (rc == 0)
        rc = flow_rows_each(runs, kept_visit_places, &count, NULL, err);
    if (rc == 0)
        rc = flow_rows_each(runs, kept_visit_copies, out, NULL, err);
    flow_rows_close(runs);
    free(count.seen);
    if (rc == 0 && !cluster)
        add_here(out);
    if (rc < 0)
        flow_keeps_release(out);
    return rc;
}
