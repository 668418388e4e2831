/* find.c - the run that a piece of its id means, taken into the ledger from where it is if that does not know it. */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "codec/json.h"
#include "config/config.h"
#include "flow/flow_internal.h"
#include "flow/place.h"
#include "flow/runs/rows.h"
#include "flow/runs/watch.h"
#include "flow/source/source.h"
#include "platform/platform.h"

/* The question which run is meant. */
struct question {
    const char *piece;
    int64_t last;        /* "@N": the N-th from the last one; 0: a piece */
    const char *cluster; /* of "@N"; NULL: of all */
    size_t n_known;      /* how many there are of which "@N" is none */
    char *named;         /* the id of the run whose name holds the piece */
    struct ledger_runs rows;
};

static int find_ambiguous(const char *piece, const struct ledger_runs *rows, struct act_error *err)
{
    enum { SHOWN = 5 };
    ACT_AUTO(act_buf) names = {0};

    for (size_t i = 0; i < rows->n && i < SHOWN; i++)
        act_buf_addf(&names, "%s%s", i ? ", " : "", rows->v[i].id);
    return act_error_set(err, ACT_USAGE, "'%s' could be any of %zu runs%s: %s%s", piece, rows->n,
                         rows->n == LEDGER_FOUND_MOST ? " and more" : "", names.data, rows->n > SHOWN ? ", ..." : "");
}

/* The ids that people paste have slashes around them when they come from a folder name. */
static char *clean_piece(const char *piece)
{
    size_t len;

    piece += strspn(piece, " \t/");
    len = strlen(piece);
    while (len > 0 && strchr(" \t/\n", piece[len - 1]))
        len--;
    return act_strndup(piece, len);
}

/* Checks that the cluster that the user named has the run, and records that it is there from now on. */
static int look_there(struct flow *flow, struct flow_run *run, struct act_error *err)
{
    struct platform *platform = NULL;
    struct run_status status = {0};
    int rc = flow_platform_of(flow, &run->row, &platform, err);

    if (rc == 0)
        rc = platform_status(platform, (const char *const *)&run->row.id, 1, &status, err);
    if (rc == 0 && status.state == RUN_UNKNOWN && !*status.reason)
        rc = act_error_set(err, ACT_NOT_FOUND, "cluster '%s' has no run '%s'; without -c it is asked for where it went",
                           flow->cluster, run->row.id);
    if (rc < 0)
        return rc;
    for (struct ledger *ledger = NULL; flow_next_ledger(flow, &ledger, &rc, err);)
        rc = ledger_move(ledger, &run->row, err);
    return rc;
}

/* ---- the run that took its place */

/* Goes from a run that was ended for another one to the last one of the row. */
static int find_replacement(struct flow *flow, struct flow_run *run, struct act_error *err)
{
    enum { MOST = 1000 }; /* a record that leads round in a circle ends here */
    int rc = 0;

    for (int i = 0; i < MOST && rc == 0 && run->status.state == RUN_CANCELED; i++) {
        const char *id = run->replaced_by ? run->replaced_by : run->row.id;
        ACT_AUTO(ledger_runs) rows = {0};
        for (struct ledger *ledger = NULL; flow_next_ledger(flow, &ledger, &rc, err);)
            rc = ledger_replacement(ledger, id, &rows, err);
        if (rc < 0 || rows.n == 0)
            break;
        act_str_replace(&run->replaced_by, rows.v[0].id);
    }
    return rc;
}

/* Tells whether the cluster that a run names is one of its project here. */
static bool knows_cluster(const struct run_spec *spec)
{
    struct config_request request = {.cluster = spec->cluster, .start_dir = spec->project_root};
    struct act_error ignored;

    return config_is_there(&request, &ignored) == 0;
}

/* Tells whether the project that a run names is one of the user's, on this machine. */
static bool is_project_here(const char *root)
{
    uid_t owner;

    return root && access(root, F_OK) == 0 && !act_is_foreign(root, &owner);
}

/* Others may write what a platform keeps of a run: it does not say where to log in and what to run there. That is as in
 * the configuration that the run was found with. */
static void find_take_place(const struct config *found_in, struct run_spec *spec)
{
    act_str_replace(&spec->platform, found_in->platform);
    if (!spec->config)
        spec->config = json_object();
    json_object_del(spec->config, "file");
    flow_record_place(found_in, spec->config);
}

/* Takes a run into the ledger, as its platform describes it. One that was submitted on another machine belongs to this
 * project, where its own is not here, and to the cluster that it was found in, where this project has none of its name.
 * found_in NULL: on this machine. */
static int adopt(struct flow *flow, struct platform *platform, const char *id, const struct config *found_in,
                 struct act_error *err)
{
    ACT_AUTO(run_spec) spec = {0};
    int rc = platform_spec(platform, id, &spec, err);

    if (rc == 0 && !act_streq(spec.id, id))
        rc = act_error_set(err, ACT_FAIL, "the record of run '%s' is not its own: it is of '%s'", id, spec.id);
    if (rc == 0 && found_in && !is_project_here(spec.project_root))
        act_str_replace(&spec.project_root, found_in->project_root);
    if (rc == 0 && found_in && !knows_cluster(&spec))
        act_str_replace(&spec.cluster, found_in->cluster);
    if (rc == 0 && found_in) {
        find_take_place(found_in, &spec);
        rc = platform_settle(platform, &spec, err);
    }
    if (rc < 0)
        return rc;
    ACT_AUTO(ledger_run) row = flow_row_of(&spec);
    row.found = platform_row(platform)->about.keeps_list;
    for (struct ledger *ledger = NULL; flow_next_ledger(flow, &ledger, &rc, err);)
        rc = ledger_add(ledger, &row, err);
    return rc;
}

static int adopt_if_there(struct flow *flow, struct platform *platform, const char *id, const struct config *found_in,
                          struct act_error *err)
{
    int rc = adopt(flow, platform, id, found_in, err);

    return rc == -ACT_NOT_FOUND ? 0 : rc;
}

/* Takes the runs of a platform whose id holds the piece; where there are none, the one whose name does. */
static int adopt_matching(struct flow *flow, struct platform *platform, struct question *q,
                          const struct config *found_in, struct act_error *err)
{
    struct act_strv ids = {0};
    size_t n = 0;

    if (run_id_valid(q->piece)) /* need not be searched for */
        return adopt_if_there(flow, platform, q->piece, found_in, err);
    int rc = platform_list(platform, &ids, err);
    for (size_t i = 0; i < ids.n && rc == 0; i++)
        if (strstr(ids.v[i], q->piece)) {
            rc = adopt(flow, platform, ids.v[i], found_in, err);
            n++;
        }
    act_strv_release(&ids);
    if (rc < 0 || n > 0 || !platform_row(platform)->about.keeps_list)
        return rc;
    rc = flow_find_named(platform, q->piece, &q->named, err);
    return rc == 0 && q->named ? adopt_if_there(flow, platform, q->named, found_in, err) : rc;
}

static int adopt_here(struct flow *flow, struct question *q, struct act_error *err)
{
    struct platform *platform = NULL;
    int rc = flow_platform_here(flow, &platform, err);

    return rc < 0 ? rc : adopt_matching(flow, platform, q, NULL, err);
}

/* Looks on the cluster of the command line, or of this project: another machine may have submitted it. */
static int adopt_from_cluster(struct flow *flow, struct question *q, struct act_error *err)
{
    enum { PIECE_MIN = 4 }; /* shorter pieces match too much */
    struct config_request request = {.cluster = flow->cluster};
    struct platform *platform = NULL;
    ACT_AUTO(config) config = {0};
    int rc = config_load(&request, &config, err);

    if (rc < 0)
        return flow->cluster ? rc : 0; /* without a cluster there is none to look on */
    if (!platform_find(config.platform)->about.is_here && strlen(q->piece) >= PIECE_MIN) {
        rc = flow_platform_named(flow, flow->cluster, &platform, err);
        if (rc == 0)
            rc = adopt_matching(flow, platform, q, &config, err);
        if (rc < 0 && rc != -ACT_USAGE)
            act_error_prefix(err, "no run '%s' is known here, and cluster '%s' does not tell", q->piece,
                             config.cluster);
    }
    return rc;
}

static int find_piece(struct flow *flow, struct question *q, struct act_error *err)
{
    int rc = 0;

    for (struct ledger *ledger = NULL; flow_next_ledger(flow, &ledger, &rc, err);)
        rc = ledger_find(ledger, q->named ? q->named : q->piece, &q->rows, err);
    return rc;
}

/* A problem with one run is reported, and the others are adopted anyway. */
static int adopt_unknown(struct flow *flow, struct platform *platform, const struct act_strv *ids,
                         const struct config *config, struct act_error *err)
{
    size_t n = 0, n_failed = 0;

    for (size_t i = 0; i < ids->n; i++) {
        struct question q = {.piece = ids->v[i]};
        struct act_error why;
        int rc = find_piece(flow, &q, &why);
        if (rc == 0 && q.rows.n == 0)
            rc = adopt(flow, platform, ids->v[i], config, &why);
        if (rc == 0 && q.rows.n == 0)
            n++;
        if (rc < 0)
            act_warn("run '%s' is not in the ledger: %s", ids->v[i], act_error_text(&why));
        n_failed += rc < 0;
        ledger_runs_release(&q.rows);
    }
    act_note("%zu run%s of cluster '%s' came into the ledger", n, n == 1 ? "" : "s", config->cluster);
    return n_failed
               ? act_error_set(err, ACT_PARTIAL, "%zu of %zu runs could not be taken into the ledger", n_failed, ids->n)
               : 0;
}

int flow_rebuild(struct flow *flow, struct act_error *err)
{
    struct config_request request = {.cluster = flow->cluster};
    struct platform *platform = NULL;
    ACT_AUTO(act_strv) ids = {0};
    ACT_AUTO(config) config = {0};
    int rc = config_load(&request, &config, err);

    if (rc < 0)
        return rc;
    rc = flow_platform_named(flow, flow->cluster, &platform, err);
    if (rc == 0 && !platform_row(platform)->about.keeps_list) {
        rc = platform_list(platform, &ids, err);
        if (rc == 0)
            rc = adopt_unknown(flow, platform, &ids, &config, err);
    }
    return rc;
}

static int find_rows(struct flow *flow, struct question *q, struct act_error *err)
{
    static int (*const adopters[])(struct flow *, struct question *, struct act_error *) = {adopt_here,
                                                                                            adopt_from_cluster};
    int rc = find_piece(flow, q, err);

    for (size_t i = 0; rc == 0 && q->rows.n == 0 && i < sizeof(adopters) / sizeof(adopters[0]); i++) {
        rc = adopters[i](flow, q, err);
        if (rc == 0)
            rc = find_piece(flow, q, err);
    }
    return rc;
}

/* ---- "@": the last one */

/* "@" and "@1" are the run submitted last, "@2" is the one before. */
static int read_last(struct flow *flow, struct question *q, struct act_error *err)
{
    const char *number = q->piece + 1;

    q->last = 1;
    q->cluster = flow->cluster_is_target ? NULL : flow->cluster;
    if (!*number || (act_int_from_text(number, &q->last) && q->last > 0))
        return 0;
    return act_error_set(err, ACT_USAGE, "'%s' is not a run: @ is the one submitted last, @2 the one before", q->piece);
}

static int find_last(struct ledger *ledger, struct question *q, struct act_error *err)
{
    int rc = ledger_nth(ledger, q->cluster, q->last, &q->rows, err);

    return rc == 0 && q->rows.n == 0 ? ledger_count(ledger, q->cluster, &q->n_known, err) : rc;
}

static int find_last_row(struct flow *flow, struct question *q, struct act_error *err)
{
    int rc = read_last(flow, q, err);

    if (rc < 0)
        return rc;
    for (struct ledger *ledger = NULL; flow_next_ledger(flow, &ledger, &rc, err);)
        rc = find_last(ledger, q, err);
    return rc;
}

static int nothing_found(struct flow *flow, const struct question *q, struct act_error *err)
{
    ACT_AUTOFREE char *where = q->cluster ? act_sprintf(" on cluster '%s'", q->cluster) : act_strdup("");

    if (q->last && q->n_known == 0)
        return act_error_set(err, ACT_NOT_FOUND, "no run '%s': there are no runs yet%s; 'a submit COMMAND' starts one",
                             q->piece, where);
    if (q->last)
        return act_error_set(err, ACT_NOT_FOUND, "no run '%s': there %s only %zu%s; 'a q' lists the runs", q->piece,
                             q->n_known == 1 ? "is" : "are", q->n_known, where);
    if (act_ends_with(q->piece, ":"))
        return act_error_set(err, ACT_NOT_FOUND, "no run '%s'; leave out the colon: it is for paths, as in 'a ls %s'",
                             q->piece, q->piece);
    ACT_AUTOFREE char *then = flow_near_run(flow, q->piece);
    return act_error_set(err, ACT_NOT_FOUND, "no run '%s'%s", q->piece, then);
}

/* ---- one run */

int flow_find_row(struct flow *flow, const char *piece, bool asked, struct flow_run *out, struct act_error *err)
{
    ACT_AUTOFREE char *wanted_piece = clean_piece(piece);
    struct question q = {.piece = wanted_piece};

    *out = (struct flow_run){0};
    if (*wanted_piece == '\0')
        return act_error_set(err, ACT_USAGE, "an empty run id");
    int rc = *wanted_piece == '@' ? find_last_row(flow, &q, err)
             : asked              ? find_rows(flow, &q, err)
                                  : find_piece(flow, &q, err);
    if (rc == 0 && q.rows.n == 0)
        rc = nothing_found(flow, &q, err);
    if (rc == 0 && q.rows.n > 1)
        rc = find_ambiguous(wanted_piece, &q.rows, err);
    if (rc == 0 && q.rows.n == 1) {
        out->row = q.rows.v[0];
        q.rows.v[0] = (struct ledger_run){0};
        flow_status_of_row(&out->row, &out->status);
    }
    ledger_runs_release(&q.rows);
    free(q.named);
    return rc;
}

int flow_knows_run(struct flow *flow, const char *piece, bool asked, struct act_error *err)
{
    struct flow_run run = {0};
    int rc = flow_find_row(flow, piece, asked, &run, err);

    flow_run_release(&run);
    return rc;
}

/* Finds a run as the ledger knows it. */
static int find_as_known(struct flow *flow, const char *piece, struct flow_run *out, struct act_error *err)
{
    int rc = flow_find_row(flow, piece, true, out, err);
    bool is_last = strchr(piece, '@') != NULL; /* of the cluster of that name, which is not one to ask then */

    if (rc == 0 && !is_last)
        rc = flow_point_at(flow, &out->row, &out->is_pointed, err);
    if (rc == 0)
        rc = flow_load_spec(out, err);
    return rc == 0 && out->is_pointed ? look_there(flow, out, err) : rc;
}

static bool find_has(struct flow_run *const *runs, size_t n, const char *id)
{
    size_t i = 0;

    while (i < n && strcmp(runs[i]->row.id, id) != 0)
        i++;
    return i < n;
}

/* Gives an error to all runs of the first one's cluster that nobody has answered about yet. */
static void find_fail_cluster(struct flow_found *found, size_t n, int rc, const struct act_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (found[i].asks && flow_rows_same_cluster(&found->run.row, &found[i].run.row)) {
            found[i].asks = false;
            found[i].rc = rc;
            found[i].err = *err;
        }
}

/* Tells whether an error is that of a whole place, which does not answer now. A row without a place may be on any
 * machine of its cluster, of which others may answer. */
static bool find_is_away(const struct flow_found *found, int rc)
{
    return flow_may_pass(rc) && found->run.row.place;
}

/* Asks about each run alone, as there is one that cannot be asked about, which fails no other. Returns the error of a
 * place that went away meanwhile. */
static int find_refresh_each(struct flow *flow, struct platform *platform, struct flow_found *const *asked, size_t n,
                             struct act_error *err)
{
    for (size_t i = 0; i < n; i++) {
        struct flow_found *found = asked[i];
        struct flow_run *run = &found->run;
        found->asks = false;
        found->rc = flow_refresh_all(flow, platform, &run, 1, &found->err);
        if (find_is_away(found, found->rc)) {
            *err = found->err;
            return found->rc;
        }
    }
    return 0;
}

/* Asks about the first run, and in the same request about others of its cluster, each of them once. */
static void find_refresh(struct flow *flow, struct flow_found *found, size_t n)
{
    struct flow_found *asked[FLOW_ROWS_FEW];
    struct flow_run *runs[FLOW_ROWS_FEW];
    struct platform *platform = NULL;
    struct act_error err;
    size_t n_asked = 0;

    for (size_t i = 0; i < n && n_asked < FLOW_ROWS_FEW; i++) {
        if (!found[i].asks || !flow_rows_same_cluster(&found->run.row, &found[i].run.row) ||
            find_has(runs, n_asked, found[i].run.row.id))
            continue;
        asked[n_asked] = &found[i];
        runs[n_asked++] = &found[i].run;
    }
    int rc = flow_platform_of(flow, &found->run.row, &platform, &err);
    if (rc == 0)
        rc = flow_refresh_all(flow, platform, runs, n_asked, &err);
    if (rc < 0 && platform && n_asked > 1 && !find_is_away(found, rc))
        rc = find_refresh_each(flow, platform, asked, n_asked, &err);
    if (rc < 0)
        find_fail_cluster(found, n, rc, &err);
    for (size_t i = 0; i < n_asked; i++)
        asked[i]->asks = false;
}

/* Asks ahead for the logs of a run that has ended, which nobody asks about. Whoever reads them says why it cannot. */
static void find_expect_logs(struct flow *flow, const struct flow_run *run)
{
    struct platform *platform = NULL;
    struct act_error ignored;

    if (flow_platform_of(flow, &run->row, &platform, &ignored) == 0)
        (void)!flow_expect_logs(platform, run, &ignored);
}

static void find_complete(struct flow *flow, struct flow_found *found)
{
    struct flow_run *run = &found->run;

    if (found->rc == 0 && found->was_final)
        found->rc = flow_ask_ranks(flow, run, &found->err);
    if (found->rc == 0)
        found->rc = find_replacement(flow, run, &found->err);
    if (found->rc < 0)
        flow_run_release(run);
    else if (!run->is_pointed && !flow->cluster_is_target)
        flow_say_elsewhere(&run->row);
}

void flow_find_runs(struct flow *flow, const char *const *pieces, size_t n, struct flow_found *out)
{
    for (size_t i = 0; i < n; i++) {
        struct flow_found *found = &out[i];
        *found = (struct flow_found){0};
        found->rc = find_as_known(flow, pieces[i], &found->run, &found->err);
        found->was_final = run_state_is_final(found->run.status.state);
        found->asks = found->rc == 0 && !found->was_final;
    }
    for (size_t i = 0; i < n && n > 1 && flow->reads_logs; i++)
        if (out[i].rc == 0 && out[i].was_final)
            find_expect_logs(flow, &out[i].run);
    for (size_t i = 0; i < n; i++)
        if (out[i].asks)
            find_refresh(flow, &out[i], n - i);
    for (size_t i = 0; i < n; i++)
        find_complete(flow, &out[i]);
}

int flow_find_run(struct flow *flow, const char *piece, struct flow_run *out, struct act_error *err)
{
    struct flow_found found;

    flow_find_runs(flow, &piece, 1, &found);
    *out = found.run;
    if (found.rc < 0)
        *err = found.err;
    return found.rc;
}

int flow_find_unasked(struct flow *flow, const char *piece, struct flow_run *out, struct act_error *err)
{
    return flow_find_row(flow, piece, false, out, err);
}

int flow_find_known(struct flow *flow, const char *piece, struct flow_run *out, struct act_error *err)
{
    int rc = flow_find_row(flow, piece, false, out, err);

    if (rc == 0)
        rc = flow_load_spec(out, err);
    if (rc < 0)
        flow_run_release(out);
    return rc;
}
