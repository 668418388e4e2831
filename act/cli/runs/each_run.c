/* each_run.c - the verbs that take several runs: all names are looked up before anything is done. */
#include <string.h>

#include "cli/command/outcome.h"
#include "cli/print/print.h"
#include "cli/runs/runs.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"
#include "flow/sweep/sweep.h"

static void each_run_find_all(struct cli *cli, const struct cli_each_run *each, struct flow_runs *runs,
                              struct cli_outcome *outcome)
{
    const char *const *words = (const char *const *)cli->words.v + each->first;
    const size_t n = cli->words.n - each->first;
    ACT_AUTOFREE struct flow_found *found = act_calloc(n + 1, sizeof(*found));

    for (size_t i = 0; i < n && each->find; i++)
        found[i].rc = each->find(&cli->flow, words[i], &found[i].run, &found[i].err);
    if (!each->find)
        flow_find_runs(&cli->flow, words, n, found);
    for (size_t i = 0; i < n; i++) {
        if (found[i].rc < 0)
            cli_outcome_add(outcome, found[i].rc, &found[i].err);
        else
            flow_runs_take(runs, &found[i].run);
    }
}

/* Tells whether a word can be a sweep: "@" is a run, and so is a whole id. */
static bool each_run_is_asked(const char *word)
{
    return *word != '@' && !run_id_valid(word);
}

int cli_take_sweeps(struct cli *cli, struct act_error *err)
{
    size_t first = cli->command->sweeps_from;
    struct act_strv words = {0};
    int rc = 0;

    for (size_t i = 0; i < cli->words.n && rc == 0; i++) {
        size_t before = words.n;
        if (i >= first && each_run_is_asked(cli->words.v[i]))
            rc = flow_runs_of_sweep(&cli->flow, cli->words.v[i], &words, err);
        cli->names_sweep = cli->names_sweep || words.n > before;
        if (words.n == before)
            act_strv_push(&words, cli->words.v[i]);
    }
    act_strv_release(&cli->words);
    cli->words = words;
    cli->words_before = words.n;
    return rc;
}

static int each_run_add_tag(struct cli *cli, const char *text, struct act_error *err)
{
    static const char of_sweep[] = FLOW_SWEEP_TAG "=";
    ACT_AUTOFREE char *id = NULL;
    bool asks = cli->command->of_runs && act_starts_with(text, of_sweep);

    int rc = asks ? flow_find_sweep(&cli->flow, text + strlen(of_sweep), &id, err) : -ACT_NOT_FOUND;
    if (rc == -ACT_NOT_FOUND) /* it may be another machine's, or a tag of the user's own */
        return run_tags_add(cli->tags, text, err);
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *tag = act_sprintf("%s%s", of_sweep, id);
    return run_tags_add(cli->tags, tag, err);
}

int cli_labels(struct cli *cli, struct flow_labels *out, struct act_error *err)
{
    int rc = cli->options.name ? run_check_name(cli->options.name, err) : 0;

    cli->tags = cli->tags ? cli->tags : json_object();
    for (size_t i = 0; rc == 0 && i < cli->options.tags.n; i++)
        rc = each_run_add_tag(cli, cli->options.tags.v[i], err);
    *out = (struct flow_labels){.name = cli->options.name, .tags = cli->tags};
    return rc;
}

int cli_check_which(const struct cli *cli, size_t first, struct act_error *err)
{
    bool labelled = cli->options.name || cli->options.tags.n > 0, named = cli->words.n > first;

    if (labelled && named)
        return act_error_set(err, ACT_USAGE, "--name and --tag say which runs: '%s' cannot be named as well",
                             cli->words.v[first]);
    return labelled || named ? 0 : cli_needs_more(cli, err);
}

void cli_oldest_first(struct flow_runs *runs)
{
    for (size_t i = 0; i < runs->n / 2; i++) {
        struct flow_run run = runs->v[i];
        runs->v[i] = runs->v[runs->n - 1 - i];
        runs->v[runs->n - 1 - i] = run;
    }
}

/* Returns what --name or --tag may have meant; NULL: nothing is close. New string. */
static char *each_run_near_label(struct cli *cli)
{
    const struct cli_common_options *o = &cli->options;
    ACT_AUTO(act_strv) names = {0};
    ACT_AUTO(act_strv) tags = {0};

    flow_known_labels(&cli->flow, &names, &tags);
    const char *near = o->name && names.n ? act_nearest(o->name, (const char *const *)names.v) : NULL;
    for (size_t i = 0; i < o->tags.n && tags.n && !near; i++)
        near = act_nearest(o->tags.v[i], (const char *const *)tags.v);
    return act_strdup(near);
}

static int each_run_none(struct cli *cli, struct act_error *err)
{
    ACT_AUTOFREE char *near = each_run_near_label(cli);
    ACT_AUTOFREE char *then = cli_did_you_mean(near);

    return act_error_set(err, ACT_NOT_FOUND, "no run of yours is tagged so, or has such a name%s'a q' lists them",
                         then);
}

int cli_labelled_runs(struct cli *cli, bool with_spec, struct flow_runs *out, struct act_error *err)
{
    struct flow_table table = {
        .cluster = cli->options.cluster, .own = true, .with_spec = with_spec, .as_known = !with_spec};
    int rc = cli_labels(cli, &table.labels, err);

    if (rc == 0)
        rc = flow_list_runs(&cli->flow, &table, out, err);
    if (rc == 0 && out->n == 0)
        rc = each_run_none(cli, err);
    cli_oldest_first(out);
    return rc;
}

/* Handles the runs, and adds to what has come of looking for them. */
static int act_on(struct cli *cli, const struct cli_each_run *each, struct flow_runs *runs, struct cli_outcome *outcome,
                  struct act_error *err)
{
    json_t *list = each->list ? json_array() : NULL;

    if (each->before)
        each->before(cli, runs);
    for (size_t i = 0; i < runs->n; i++) {
        struct act_error why = {0};
        int rc = each->act(cli, &runs->v[i], list, &why);
        cli_outcome_add(outcome, rc, &why);
    }
    if (each->after)
        each->after(cli, runs);
    return cli_print_list("runs", list, cli_outcome_end(outcome, err), err);
}

int cli_these_runs(struct cli *cli, const struct cli_each_run *each, struct flow_runs *runs, struct act_error *err)
{
    struct cli_outcome outcome = {0};

    return act_on(cli, each, runs, &outcome, err);
}

struct each_row {
    struct cli *cli;
    const struct cli_each_run *each;
    struct cli_outcome outcome;
};

static int each_run_visit(void *arg, struct flow_run *runs, size_t n, struct act_error *err)
{
    struct each_row *rows = arg;

    (void)err;
    for (size_t i = 0; i < n; i++) {
        struct act_error why = {0};
        int rc = rows->each->act(rows->cli, &runs[i], NULL, &why);
        cli_outcome_add(&rows->outcome, rc, &why);
    }
    return 0;
}

int cli_runs_of_table(struct cli *cli, const struct cli_each_run *each, const struct flow_table *table,
                      struct flow_rows_count *out, struct act_error *err)
{
    struct each_row visits = {.cli = cli, .each = each};
    struct flow_rows *rows = NULL;
    int rc = flow_rows_open(&cli->flow, table, &rows, err);

    if (rc == 0)
        rc = flow_rows_each(rows, each_run_visit, &visits, out, err);
    flow_rows_close(rows);
    return rc < 0 ? rc : cli_outcome_end(&visits.outcome, err);
}

int cli_each_run(struct cli *cli, const struct cli_each_run *each, struct act_error *err)
{
    struct cli_outcome outcome = {0};
    ACT_AUTO(flow_runs) runs = {0};

    each_run_find_all(cli, each, &runs, &outcome);
    if (each->all_or_none && outcome.n_failed > 0) {
        if (cli->words.n > 1)
            cli_outcome_hint(&outcome, "nothing was done");
        flow_runs_release(&runs);
    }
    return act_on(cli, each, &runs, &outcome, err);
}
