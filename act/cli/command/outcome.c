#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "cli/command/outcome.h"

void cli_outcome_add(struct cli_outcome *o, int rc, const struct act_error *err)
{
    o->n++;
    if (rc >= 0)
        return;
    ACT_PUSH(o->failed, o->n_failed, *err);
}

void cli_outcome_hint(struct cli_outcome *o, const char *hint)
{
    if (o->n_failed > 0)
        act_error_hint(&o->failed[o->n_failed - 1], "%s", hint);
}

/* Tells whether the same is said again further on, as of a project that several runs belong to. */
static bool is_said_again(const struct cli_outcome *o, size_t at)
{
    for (size_t i = at + 1; i < o->n_failed; i++)
        if (act_streq(act_error_text(&o->failed[i]), act_error_text(&o->failed[at])))
            return true;
    return false;
}

int cli_outcome_end(struct cli_outcome *o, struct act_error *err)
{
    int rc = 0;

    if (o->n_failed > 0) {
        rc = o->n_failed == o->n ? -(int)o->failed[0].code : -ACT_PARTIAL;
        for (size_t i = 0; i + 1 < o->n_failed; i++)
            if (!is_said_again(o, i))
                fprintf(stderr, "act: %s\n", act_error_text(&o->failed[i]));
        *err = o->failed[o->n_failed - 1];
    }
    free(o->failed);
    *o = (struct cli_outcome){0};
    return rc;
}
