/* leaders.c - the best of several runs as a table, on a terminal, in a file or on a page. */
#include "flow/sweep/leaders.h"
#include "base/units.h"
#include "cli/print/table.h"
#include "cli/runs/options.h"
#include "cli/runs/runs.h"

int cli_check_metric(const struct cli *cli, struct act_error *err)
{
    const struct cli_metric_options *o = CLI_OPTIONS(cli, metric);

    if ((o->lowest || o->highest) && !o->metric)
        return act_error_set(err, ACT_USAGE, "%s of which number? add --metric loss", o->lowest ? "--min" : "--max");
    if (o->metric && o->lowest == o->highest)
        return act_error_set(err, ACT_USAGE, "--metric '%s' needs either --min or --max: what is better?", o->metric);
    return 0;
}

int cli_find_metric(const char *key, struct numbers *const *numbers, size_t n, const char *where, struct act_error *err)
{
    enum { SHOWN = 20 };
    ACT_AUTO(act_strv) names = {0};
    ACT_AUTO(act_buf) text = {0};

    for (size_t i = 0; i < n; i++) {
        if (numbers[i] && numbers_find(numbers[i], key))
            return 0;
        for (size_t k = 0; numbers[i] && k < numbers_count(numbers[i]); k++)
            if (!act_strv_has(&names, numbers_key(numbers[i], k)->name))
                act_strv_push(&names, numbers_key(numbers[i], k)->name);
    }
    if (names.n == 0)
        return act_error_set(err, ACT_NOT_FOUND, "the log of %s has no number with a name, such as 'loss 2.31'", where);
    const char *near = act_nearest(key, (const char *const *)names.v);
    for (size_t i = 0; i < names.n && i < SHOWN; i++)
        act_buf_addf(&text, "%s%s", i ? ", " : "", names.v[i]);
    return act_error_set(err, ACT_NOT_FOUND, "no '%s' in the log of %s; %s%s%sit has %s%s", key, where,
                         near ? "did you mean '" : "", near ? near : "", near ? "'? " : "", text.data,
                         names.n > SHOWN ? ", ..." : "");
}

void cli_leaders_heads(const struct flow_leaders *leaders, const char *key, enum flow_best best, struct act_strv *out)
{
    act_strv_push(out, "ID");
    act_strv_push(out, "NAME");
    act_strv_copy(out, leaders->parameters.v, leaders->parameters.n);
    act_strv_push(out, "STATUS");
    act_strv_push(out, "AGE");
    if (!key)
        return;
    act_strv_push(out, best == FLOW_LOWEST ? "MIN" : "MAX");
    act_strv_push(out, leaders->by == NUMBERS_BY_EPOCH ? "EPOCH" : "AT");
    act_strv_push(out, "LAST");
}

/* Returns "2.31"; "-" for a value that is not there, "nan" for one that is no number. New string. */
static char *number_text(const struct flow_leader_row *row, double value, bool is_last)
{
    if (!row->curve)
        return act_strdup("-");
    return is_last && row->ends_odd ? act_strdup("nan") : act_sprintf("%.6g", value);
}

void cli_leaders_cells(const struct flow_leaders *leaders, size_t i, const char *key, struct act_strv *out)
{
    const struct flow_leader_row *row = &leaders->v[i];
    char age[ACT_UNIT_TEXT];

    act_strv_push(out, row->run->row.id);
    cli_push_text(out, row->run->row.name);
    for (size_t k = 0; k < leaders->parameters.n; k++) {
        const char *value = flow_leader_value(row, leaders->parameters.v[k]);
        cli_push_text(out, value);
    }
    act_strv_push(out, run_state_name(row->run->status.state));
    act_duration_to_text(cli_age_s(row->run), age);
    act_strv_push(out, age);
    if (!key)
        return;
    act_strv_take(out, number_text(row, row->best, false));
    act_strv_take(out, number_text(row, row->best_x, false));
    act_strv_take(out, number_text(row, row->curve ? row->curve->last.y : 0, true));
}
