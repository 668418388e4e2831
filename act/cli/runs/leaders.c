/* leaders.c - the best of several runs as a table, on a terminal, in a file or on a page. */
#include "flow/sweep/leaders.h"
#include "base/units.h"
#include "cli/print/table.h"
#include "cli/runs/options.h"
#include "cli/runs/runs.h"
#include "codec/json.h"

int cli_check_metric(const struct cli *cli, struct act_error *err)
{
    const struct cli_metric_options *o = CLI_OPTIONS(cli, metric);

    if ((o->lowest || o->highest) && !o->metric)
        return act_error_set(err, ACT_USAGE, "%s of which number? add --metric loss", o->lowest ? "--min" : "--max");
    if (o->metric && o->lowest == o->highest)
        return act_error_set(err, ACT_USAGE, "--metric '%s' needs either --min or --max: what is better?", o->metric);
    return 0;
}

void cli_metric_look(struct cli_metric_names *names, const char *key, struct numbers *numbers)
{
    if (!numbers || names->found)
        return;
    names->found = numbers_find(numbers, key) != NULL;
    for (size_t i = 0; i < numbers_count(numbers); i++)
        if (!act_strv_has(&names->others, numbers_key(numbers, i)->name))
            act_strv_push(&names->others, numbers_key(numbers, i)->name);
}

int cli_metric_check(const struct cli_metric_names *names, const char *key, const char *where, struct act_error *err)
{
    enum { SHOWN = 20 };
    const struct act_strv *others = &names->others;
    ACT_AUTO(act_buf) text = {0};

    if (names->found)
        return 0;
    if (others->n == 0)
        return act_error_set(err, ACT_NOT_FOUND, "the log of %s has no number with a name, such as 'loss 2.31'", where);
    const char *near = act_nearest(key, (const char *const *)others->v);
    for (size_t i = 0; i < others->n && i < SHOWN; i++)
        act_buf_addf(&text, "%s%s", i ? ", " : "", others->v[i]);
    return act_error_set(err, ACT_NOT_FOUND, "no '%s' in the log of %s; %s%s%sit has %s%s", key, where,
                         near ? "did you mean '" : "", near ? near : "", near ? "'? " : "", text.data,
                         others->n > SHOWN ? ", ..." : "");
}

int cli_find_metric(const char *key, struct numbers *const *numbers, size_t n, const char *where, struct act_error *err)
{
    struct cli_metric_names names = {0};

    for (size_t i = 0; i < n; i++)
        cli_metric_look(&names, key, numbers[i]);
    int rc = cli_metric_check(&names, key, where, err);
    act_strv_release(&names.others);
    return rc;
}

void cli_leaders_heads(const struct flow_leaders *leaders, struct act_strv *out)
{
    act_strv_push(out, "ID");
    act_strv_push(out, "NAME");
    act_strv_copy(out, leaders->parameters.v, leaders->parameters.n);
    act_strv_push(out, "STATUS");
    act_strv_push(out, "AGE");
    if (!leaders->key)
        return;
    act_strv_push(out, leaders->best == FLOW_LOWEST ? "MIN" : "MAX");
    act_strv_push(out, leaders->by == NUMBERS_BY_EPOCH ? "EPOCH" : "AT");
    act_strv_push(out, "LAST");
}

/* Returns "2.31"; "-" for a value that is not there, "nan" for one that is no number. New string. */
static char *number_text(const struct flow_leader_row *row, double value, bool is_last)
{
    if (!row->has_number)
        return act_strdup("-");
    return is_last && row->ends_odd ? act_strdup("nan") : act_sprintf("%.6g", value);
}

void cli_leaders_cells(const struct flow_leaders *leaders, size_t i, int64_t now_unix_s, struct act_strv *out)
{
    const struct flow_leader_row *row = &leaders->v[i];
    CODEC_AUTOJSON json_t *tags = run_tags_parse(row->tags);
    char age[ACT_UNIT_TEXT];

    act_strv_push(out, row->id);
    cli_push_text(out, row->name);
    for (size_t k = 0; k < leaders->parameters.n; k++)
        cli_push_text(out, codec_json_str(tags, leaders->parameters.v[k], NULL));
    act_strv_push(out, run_state_name(row->state));
    act_duration_to_text(cli_age_s(row->created_unix_s, now_unix_s), age);
    act_strv_push(out, age);
    if (!leaders->key)
        return;
    act_strv_take(out, number_text(row, row->best, false));
    act_strv_take(out, number_text(row, row->best_x, false));
    act_strv_take(out, number_text(row, row->last, true));
}
