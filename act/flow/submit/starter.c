/* starter.c - a command that starts the processes of a node by itself is started once on each node. */
#include "run/starter.h"
#include "base/log.h"
#include "base/units.h"
#include "flow/submit/passage.h"

/* The user's options win; a note says where they contradict the size of the run. */
static void say_contradictions(const struct run_starter *starter, const struct run_spec *spec)
{
    const struct {
        enum run_starter_number number;
        int value;
        const char *one, *several;
    } rows[] = {
        {RUN_STARTER_NODES, spec->nodes, "node", "nodes"},
        {RUN_STARTER_PER_NODE, spec->started_per_node, "process on each node", "processes on each node"},
        {RUN_STARTER_TOTAL, spec->nodes * spec->started_per_node, "process", "processes"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *option, *text = run_starter_written(starter, &spec->argv, rows[i].number, &option);
        int64_t value;
        if (text && act_int_from_text(text, &value) && value != rows[i].value)
            act_warn("'--%s %s' stays as it is written, but the run has %d %s", option, text, rows[i].value,
                     rows[i].value == 1 ? rows[i].one : rows[i].several);
    }
}

static void say_starter(const struct run_starter *starter, const struct run_spec *spec)
{
    const char *option, *text = run_starter_written(starter, &spec->argv, RUN_STARTER_PER_NODE, &option);
    ACT_AUTOFREE char *count = act_sprintf("%d", spec->started_per_node);

    act_note("%s  one on each node, %s process%s each", starter->name, text ? text : count,
             act_streq(text ? text : count, "1") ? "" : "es");
    say_contradictions(starter, spec);
}

int step_form_starter(struct passage *p, struct act_error *err)
{
    struct run_spec *spec = p->spec;
    struct platform_limits limits;
    struct run_starter starter;

    if (p->old && p->old->spec.foreign) /* the other tool starts the processes of its job */
        return 0;
    int rc = platform_limits(p->platform, &limits, err);
    if (rc < 0 || !run_starter_find(&spec->argv, limits.has_gpus, &starter))
        return rc;
    if (!spec->started_per_node)
        spec->started_per_node = spec->procs_per_node > 1  ? spec->procs_per_node
                                 : spec->gpus_per_node > 1 ? spec->gpus_per_node
                                                           : 1;
    spec->procs_per_node = 1;
    say_starter(&starter, spec);
    return 0;
}
