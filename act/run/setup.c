/* setup.c - what a run's nodes set up before the command. */
#include "base/text.h"
#include "run/run.h"

bool run_setup_is_wanted(const struct run_setup *setup)
{
    return setup->modules_purge || setup->modules.n || setup->conda || setup->venv || setup->lines;
}

void run_setup_release(struct run_setup *setup)
{
    act_strv_release(&setup->modules);
    free(setup->conda);
    free(setup->venv);
    free(setup->lines);
    free(setup->rank_lines);
    *setup = (struct run_setup){0};
}

void run_setup_copy(const struct run_setup *from, struct run_setup *to)
{
    struct run_setup copy = {
        .timeout_s = from->timeout_s,
        .modules_purge = from->modules_purge,
        .conda = act_strdup(from->conda),
        .venv = act_strdup(from->venv),
        .lines = act_strdup(from->lines),
        .rank_lines = act_strdup(from->rank_lines),
    };

    act_strv_copy(&copy.modules, from->modules.v, from->modules.n);
    run_setup_release(to);
    *to = copy;
}
