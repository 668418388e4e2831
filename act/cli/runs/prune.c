#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "cli/print/ask.h"
#include "cli/print/print.h"
#include "cli/print/table.h"
#include "cli/runs/options.h"
#include "cli/runs/runs.h"
#include "flow/flow.h"
#include "flow/keep/keep.h"

char *cli_sum_of_runs(const struct flow_prune *p, size_t n)
{
    ACT_AUTO(act_buf) logs = {0};

    if (p->n_copies)
        act_buf_addf(&logs, " (%zu with logs here", p->n_copies);
    if (p->n_sent)
        act_buf_addf(&logs, "%s%zu with logs in the store", logs.len ? ", " : " (", p->n_sent);
    return act_sprintf("%zu run%s%s%s", n, cli_plural(n), logs.len ? logs.data : "", logs.len ? ")" : "");
}

/* Returns "3 runs (2 with logs here), 1 package and 0 agents, 1 environment, 2 leftovers of killed commands, 1.2 MiB",
 * a new string; environments and leftovers only where there are some. */
static char *sum_of(const struct flow_prune *p, size_t n_runs)
{
    ACT_AUTOFREE char *runs = cli_sum_of_runs(p, n_runs);
    char size[ACT_UNIT_TEXT];

    act_size_to_text(p->bytes, size);
    ACT_AUTOFREE char *left = p->n_left
                                  ? act_sprintf(", %zu leftover%s of killed commands", p->n_left, cli_plural(p->n_left))
                                  : act_strdup("");
    ACT_AUTOFREE char *environments =
        p->n_environments ? act_sprintf(", %zu environment%s", p->n_environments, cli_plural(p->n_environments))
                          : act_strdup("");
    return act_sprintf("%s, %zu package%s and %zu agent%s%s%s, %s", runs, p->n_packages, cli_plural(p->n_packages),
                       p->n_agents, cli_plural(p->n_agents), environments, left, size);
}

static bool cmd_prune_is_empty(const struct flow_prune *p)
{
    return p->n + p->n_packages + p->n_agents + p->n_environments + p->n_left == 0;
}

/* Says what is old and stays all the same. */
static void cmd_prune_say_left(const struct flow_prune *p)
{
    const struct {
        size_t n;
        const char *why;
    } rows[] = {
        {p->active, "not ended"},
        {p->others, "another user's, or found on a cluster that others use too"},
        {p->service, "kept by the service itself"},
        {p->unreachable, "on a cluster that does not answer"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].n > 0)
            act_note("left: %zu run%s, %s", rows[i].n, cli_plural(rows[i].n), rows[i].why);
    if (p->busy)
        act_note("left: agents, because a run has not ended where they are");
    if (p->unknown)
        act_note("left: packages, because there are runs of others that may need them");
}

static int cmd_prune_print_json(const struct flow_prune *p, size_t n_runs, bool dry_run, struct act_error *err)
{
    struct cli_rows rows;

    cli_rows_begin(&rows,
                   json_pack("{s:b,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:{s:I,s:I,s:I,s:I}}", "dry_run", dry_run, "removed",
                             dry_run ? (json_int_t)0 : (json_int_t)n_runs, "packages", (json_int_t)p->n_packages,
                             "agents", (json_int_t)p->n_agents, "environments", (json_int_t)p->n_environments,
                             "leftovers", (json_int_t)p->n_left, "copies", (json_int_t)p->n_copies, "sent",
                             (json_int_t)p->n_sent, "bytes", (json_int_t)p->bytes, "left", "active",
                             (json_int_t)p->active, "others", (json_int_t)p->others, "service", (json_int_t)p->service,
                             "unreachable", (json_int_t)p->unreachable),
                   "runs");
    for (size_t i = 0; i < p->n; i++)
        cli_rows_add(&rows, json_pack("{s:s,s:I}", "id", p->v[i].id, "bytes", (json_int_t)p->v[i].bytes));
    return cli_rows_end(&rows, err);
}

/* Returns the row of a run among rows, which have the order of the runs that go, from *at on; NULL: it has gone. */
static const struct ledger_run *cmd_prune_row(const struct ledger_runs *rows, const char *id, size_t *at)
{
    return *at < rows->n && strcmp(rows->v[*at].id, id) == 0 ? &rows->v[(*at)++] : NULL;
}

/* Makes the cells of n of the runs that go. */
static int cmd_prune_cells(struct cli *cli, const struct flow_prune *p, size_t from, size_t n, struct act_strv *cells,
                           struct act_error *err)
{
    ACT_AUTO(ledger_runs) rows = {0};
    int rc = flow_prune_rows(&cli->flow, p, from, n, &rows, err);

    for (size_t i = from, at = 0; rc == 0 && i < from + n; i++) {
        const struct ledger_run *row = cmd_prune_row(&rows, p->v[i].id, &at);
        char size[ACT_UNIT_TEXT];
        act_size_to_text(p->v[i].bytes, size);
        if (row)
            cli_push_affected(cells, row, size);
    }
    return rc;
}

int cli_print_removed(struct cli *cli, const struct flow_prune *p, struct act_error *err)
{
    enum { MEASURE, PRINT, PASSES };
    struct cli_table *table = cli_affected_table(cli_width());
    int rc = 0;

    for (int pass = MEASURE; pass < PASSES; pass++)
        for (size_t i = 0; rc == 0 && i < p->n; i += FLOW_ROWS_FEW) {
            size_t n = p->n - i < FLOW_ROWS_FEW ? p->n - i : FLOW_ROWS_FEW;
            ACT_AUTO(act_strv) cells = {0};
            ACT_AUTO(act_buf) text = {0};
            rc = cmd_prune_cells(cli, p, i, n, &cells, err);
            if (pass == MEASURE)
                cli_table_measure(table, &cells);
            else
                cli_table_add(table, &cells, &text);
            cli_put_table(&text);
        }
    cli_table_free(table);
    return rc;
}

/* Returns "30d", as it may have been typed. New string. */
static char *cmd_prune_age_of(int64_t s)
{
    static const struct {
        int64_t s;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}};

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (s % units[i].s == 0)
            return act_sprintf("%lld%c", (long long)(s / units[i].s), units[i].unit);
    return act_sprintf("%llds", (long long)s);
}

static int cmd_prune_confirm(const struct cli *cli, const struct flow_prune *p, struct act_error *err)
{
    ACT_AUTOFREE char *sum = sum_of(p, p->n);
    ACT_AUTOFREE char *age = cmd_prune_age_of(p->older_s);
    ACT_AUTOFREE char *question = act_sprintf("Remove what ended more than %s ago for good: %s?", age, sum);

    fflush(stdout);
    return cli_confirm(cli, question, err);
}

static int remove_all(struct cli *cli, struct flow_prune *p, struct act_error *err)
{
    size_t n = 0;
    int rc = cmd_prune_confirm(cli, p, err);

    if (rc < 0)
        return rc;
    rc = flow_prune(&cli->flow, p, &n, err);
    ACT_AUTOFREE char *sum = sum_of(p, n);
    act_note("removed %s", sum);
    if (rc == 0 && cli->options.json)
        rc = cmd_prune_print_json(p, n, false, err);
    return rc;
}

int cmd_prune(struct cli *cli, struct act_error *err)
{
    struct flow_prune p = {.cluster = cli->options.cluster, .older_s = CLI_OPTIONS(cli, runs)->older_s};

    if (!CLI_OPTIONS(cli, runs)->older_s) {
        act_error_set(err, ACT_USAGE, "how old? 'a prune --older 30d' removes what ended more than 30 days ago");
        return cli_hint_help(cli, err);
    }
    int rc = flow_prune_find(&cli->flow, &p, err);
    if (rc == 0 && !cli->options.json)
        rc = cli_print_removed(cli, &p, err);
    if (rc == 0)
        cmd_prune_say_left(&p);
    if (rc == 0 && (cli->options.dry_run || cmd_prune_is_empty(&p))) {
        ACT_AUTOFREE char *sum = sum_of(&p, p.n);
        act_note(!cmd_prune_is_empty(&p) ? "would remove %s" : "nothing to remove: %s", sum);
        rc = cli->options.json ? cmd_prune_print_json(&p, 0, cli->options.dry_run, err) : 0;
    } else if (rc == 0) {
        rc = remove_all(cli, &p, err);
    }
    flow_prune_release(&p);
    return rc;
}
