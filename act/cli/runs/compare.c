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

/* The facts that are compared. */
enum fact_of { ID, NAME, STATUS, CAUSE, EXIT, CLUSTER, NODES, GPUS, CREATED, ELAPSED, TAGS, CODE, COMMAND, N_FACTS };

static const struct fact {
    const char *name;
    struct cli_column column;
} facts[N_FACTS] = {
    [ID] = {"id", {"ID", 'l', .rank = 0}},
    [NAME] = {"name", {"NAME", 'l', .rank = 3, .min = 8}},
    [STATUS] = {"status", {"STATUS", 'l', .rank = 1, .is_state = true}},
    [CAUSE] = {"cause", {"CAUSE", 'l', .rank = 2}},
    [EXIT] = {"exit", {"EXIT", 'r', .rank = 8}},
    [CLUSTER] = {"cluster", {"CLUSTER", 'l', .rank = 6, .min = 8}},
    [NODES] = {"nodes", {"NODES", 'r', .rank = 10}},
    [GPUS] = {"gpus", {"GPUS", 'r', .rank = 5}},
    [CREATED] = {"created", {"CREATED", 'l', .rank = 9}},
    [ELAPSED] = {"elapsed", {"ELAPSED", 'r', .rank = 4}},
    [TAGS] = {"tags", {"TAGS", 'l', .rank = 7, .min = 8, .cut = CLI_CUT_WORDS}},
    [CODE] = {"code", {"CODE", 'l', .rank = 11}},
    [COMMAND] = {"command", {"COMMAND", 'l', .rank = 1, .pad = 80, .below = true}},
};

/* Returns the class of a failure, as 'a why' finds it, a new string; NULL: it is not known. */
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

static char *compare_number(int64_t n, bool is_known)
{
    return is_known ? act_sprintf("%lld", (long long)n) : NULL;
}

/* Returns a fact of a run as text, a new string; NULL: it has none. */
static char *compare_text_of(struct flow *flow, const struct flow_run *run, enum fact_of what)
{
    enum { SHOWN_OF_HASH = 12 /* as much as tells two packages apart */ };
    const struct run_status *s = &run->status;
    char text[ACT_TIME_TEXT];

    switch (what) {
    case ID:
        return act_strdup(run->row.id);
    case NAME:
        return act_strdup(run->row.name);
    case STATUS:
        return act_strdup(run_state_name(s->state));
    case CAUSE:
        return compare_cause_of(flow, run);
    case EXIT:
        return compare_number(s->exit_status, cli_has_exit_status(s));
    case CLUSTER:
        return act_strdup(run->row.cluster);
    case NODES:
        return compare_number(run->spec.nodes, run->spec.nodes > 0);
    case GPUS:
        return compare_number(cli_gpus(run), cli_gpus(run) > 0);
    case CREATED:
        act_time_to_local(run->row.created_unix_s, text);
        return act_strdup(text);
    case ELAPSED:
        act_duration_to_text(cli_elapsed_s(s), text);
        return cli_elapsed_s(s) >= 0 ? act_strdup(text) : NULL;
    case TAGS:
        return cli_tags_text(&run->row);
    case CODE:
        return *run->spec.package_sha256 ? act_strndup(run->spec.package_sha256, SHOWN_OF_HASH) : NULL;
    case COMMAND:
        return act_one_line(run->row.command, strlen(run->row.command));
    case N_FACTS:
        break;
    }
    return NULL;
}

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
            cli_print_run(&runs->v[0], NULL, NULL, NULL);
        return;
    }
    for (size_t k = 0; k < N_FACTS; k++)
        for (size_t i = 0; i < runs->n; i++) {
            char *text = compare_text_of(&cli->flow, &runs->v[i], (enum fact_of)k);
            act_strv_take(&values[k], text ? text : act_strdup(""));
        }
    print_common(values);
    print_differences(values);
    for (size_t k = 0; k < N_FACTS; k++)
        act_strv_release(&values[k]);
}
