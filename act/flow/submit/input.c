/* input.c - whether the commands of a run read what is typed into 'a attach' (node/feed.h). */
#include "base/log.h"
#include "flow/submit/passage.h"
#include "platform/row.h"

int step_take_input(struct passage *p, struct act_error *err)
{
    bool had_input = p->old && p->old->spec.takes_input;

    if (!p->io->takes_input && !had_input)
        return 0;
    if (!platform_row(p->platform)->nodes.agent) {
        if (p->io->takes_input)
            return act_error_set(
                err, ACT_USAGE,
                "a run on '%s' can have no input (--stdin): on platform '%s' nothing leads from here to "
                "its ranks",
                p->spec->cluster, p->spec->platform);
        act_note("the first run had an input; this one has none, as nothing leads to the ranks on platform '%s'",
                 p->spec->platform);
        return 0;
    }
    p->spec->takes_input = true;
    if (p->spec->hang_s)
        act_note("the run is not watched for hangs: it may wait for its input");
    p->spec->hang_s = 0;
    return 0;
}
