/* compare.c - several runs side by side: what all of them have in common, then a table of what differs. */
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/print/print.h"
#include "cli/print/table.h"
#include "cli/runs/runs.h"
#include "diagnose/diagnose.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"
#include "flow/why/why.h"

static char *compare_id_of(struct flow *flow, const struct flow_run *run)
{
    (void)flow;
    return act_strdup(run->row.id);
}

static char *compare_name_of(struct flow *flow, const struct flow_run *run)
{
    (void)flow;
    return act_strdup(run->row.name);
}

static char *compare_state_of(struct flow *flow, const struct flow_run *run)
{
    (void)flow;
    return act_strdup(run_state_name(run->status.state));
}

/* Returns the class of a failure, as 'a why' finds it. */
static char *compare_cause_of(struct flow *flow, const struct flow_run *run)
{
    struct act_error ignored;
    struct flow_why why;

    if (run->status.state != RUN_FAILED || flow_why(flow, run, &why, &ignored) < 0)
        return NULL;
    char *cause = why.rule ? act_strdup(why.rule->id) : *why.class ? act_strdup(why.class) : NULL;
    flow_why_release(&why);
    return cause;
}

static char *exit_of(struct flow *flow, const struct flow_run *run)
{
    (void)flow;
    return cli_has_exit_status(&run->status) ? act_sprintf("%d", run->status.exit_status) : NULL;
}

static char *compare_cluster_of(struct flow *flow, const struct flow_run *run)
{
    (void)flow;
    return act_strdup(run->row.cluster);
}

static char *compare_gpus_of(struct flow *flow, const struct flow_run *run)
{
    (void)flow;
    return cli_gpus(run) > 0 ? act_sprintf("%lld", (long long)cli_gpus(run)) : NULL;
}

static char *compare_nodes_of(struct flow *flow, const struct flow_run *run)
{
    (void)flow;
    return run->spec.nodes > 0 ? act_sprintf("%d", run->spec.nodes) : NULL;
}

static char *compare_created_of(struct flow *flow, const struct flow_run *run)
{
    char text[ACT_TIME_TEXT];

    (void)flow;
    act_time_to_local(run->row.created_unix_s, text);
    return act_strdup(text);
}

static char *elapsed_of(struct flow *flow, const struct flow_run *run)
{
    char text[ACT_UNIT_TEXT];
    int64_t s = cli_elapsed_s(&run->status);

    (void)flow;
    act_duration_to_text(s, text);
    return s >= 0 ? act_strdup(text) : NULL;
}

static char *tags_of(struct flow *flow, const struct flow_run *run)
{
    (void)flow;
    return cli_tags_text(&run->row);
}

/* Returns as much of the package's SHA-256 as tells two packages apart. */
static char *code_of(struct flow *flow, const struct flow_run *run)
{
    enum { SHOWN = 12 };

    (void)flow;
    return *run->spec.package_sha256 ? act_strndup(run->spec.package_sha256, SHOWN) : NULL;
}

static char *command_of(struct flow *flow, const struct flow_run *run)
{
    (void)flow;
    return act_one_line(run->row.command, strlen(run->row.command));
}

static const struct fact {
    const char *name;
    struct cli_column column;
    char *(*of)(struct flow *flow, const struct flow_run *run); /* new string; NULL: it has none */
} facts[] = {
    {"id", {"ID", 'l', .rank = 0}, compare_id_of},
    {"name", {"NAME", 'l', .rank = 3, .min = 8}, compare_name_of},
    {"status", {"STATUS", 'l', .rank = 1, .is_state = true}, compare_state_of},
    {"cause", {"CAUSE", 'l', .rank = 2}, compare_cause_of},
    {"exit", {"EXIT", 'r', .rank = 8}, exit_of},
    {"cluster", {"CLUSTER", 'l', .rank = 6, .min = 8}, compare_cluster_of},
    {"nodes", {"NODES", 'r', .rank = 10}, compare_nodes_of},
    {"gpus", {"GPUS", 'r', .rank = 5}, compare_gpus_of},
    {"created", {"CREATED", 'l', .rank = 9}, compare_created_of},
    {"elapsed", {"ELAPSED", 'r', .rank = 4}, elapsed_of},
    {"tags", {"TAGS", 'l', .rank = 7, .min = 8, .cut = CLI_CUT_WORDS}, tags_of},
    {"code", {"CODE", 'l', .rank = 11}, code_of},
    {"command", {"COMMAND", 'l', .rank = 1, .pad = 80, .below = true}, command_of},
};

enum { N_FACTS = sizeof(facts) / sizeof(facts[0]) };

static bool all_equal(const struct act_strv *values)
{
    for (size_t i = 1; i < values->n; i++)
        if (strcmp(values->v[i], values->v[0]) != 0)
            return false;
    return true;
}

/* An id is always in the table, so that each row says whose it is. */
static void print_common(const struct act_strv values[N_FACTS])
{
    bool some = false;

    for (size_t k = 1; k < N_FACTS; k++) {
        if (!all_equal(&values[k]) || !*values[k].v[0])
            continue;
        if (!some)
            puts("all of them:");
        some = true;
        printf("  %-9s ", facts[k].name);
        cli_put_name(values[k].v[0]);
        putchar('\n');
    }
    if (some)
        putchar('\n');
}

static void print_differences(const struct act_strv values[N_FACTS])
{
    struct cli_column columns[N_FACTS];
    size_t shown[N_FACTS], n = 0;
    ACT_AUTO(act_strv) cells = {0};

    for (size_t k = 0; k < N_FACTS; k++)
        if (k == 0 || !all_equal(&values[k])) {
            columns[n] = facts[k].column;
            shown[n++] = k;
        }
    for (size_t i = 0; i < values[0].n; i++)
        for (size_t c = 0; c < n; c++)
            act_strv_push(&cells, *values[shown[c]].v[i] ? values[shown[c]].v[i] : "-");
    cli_print_table(columns, n, &cells);
}

void cli_compare_runs(struct cli *cli, const struct flow_runs *runs)
{
    struct act_strv values[N_FACTS] = {0};

    if (runs->n < 2) { /* of the others none was found */
        if (runs->n == 1)
            cli_print_run(&runs->v[0], NULL);
        return;
    }
    for (size_t k = 0; k < N_FACTS; k++)
        for (size_t i = 0; i < runs->n; i++) {
            char *text = facts[k].of(&cli->flow, &runs->v[i]);
            act_strv_take(&values[k], text ? text : act_strdup(""));
        }
    print_common(values);
    print_differences(values);
    for (size_t k = 0; k < N_FACTS; k++)
        act_strv_release(&values[k]);
}
