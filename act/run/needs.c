/* needs.c - what is said of runs that a run is to run after. */
#include <string.h>

#include "run/run.h"

char *run_waits_for(const struct act_strv *ids, bool any_end)
{
    enum { NAMED_MAX = 3 };
    ACT_AUTO(act_buf) names = {0};
    size_t shown = ids->n > NAMED_MAX ? NAMED_MAX - 1 : ids->n;

    for (size_t i = 0; i < shown; i++)
        act_buf_addf(&names, "%s'%s'", i == 0 ? "" : i + 1 < ids->n ? ", " : " and ", ids->v[i]);
    if (shown < ids->n)
        act_buf_addf(&names, " and %zu more", ids->n - shown);
    return act_sprintf(any_end ? "waits for the end of %s" : "waits for %s to complete", names.data ? names.data : "");
}

void run_say_unmet(const char *id, const struct run_status *status, char *out, size_t size)
{
    const char *what = !status                         ? "is gone"
                       : status->state == RUN_FAILED   ? "failed"
                       : status->state == RUN_CANCELED ? "was canceled"
                                                       : "was lost";

    snprintf(out, size, "'%s', which it was to run after, %s", id, what);
}
