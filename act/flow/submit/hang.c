/* hang.c - whether a run is watched for hangs (node/hang.h). */
#include "base/log.h"
#include "base/units.h"
#include "config/config.h"
#include "flow/submit/parts.h"
#include "flow/submit/passage.h"

enum { SHORT_S = 60 };

/* Reads the time after which a silent run hangs; *out is 0 where nobody looks. */
static int read_hang(const struct config *c, int64_t *out, struct act_error *err)
{
    *out = 0;
    if (!c->hang)
        return 0;
    if (!act_duration_from_text(c->hang, out) || *out == 0)
        return act_error_set(err, ACT_CONFIG, "'hang' must be a time such as 90s, 20m or 2h, not '%s'", c->hang);
    if (*out > RUN_HANG_MOST_S)
        return act_error_set(err, ACT_CONFIG, "'hang' must be at most 30d, not '%s'", c->hang);
    if (platform_find(c->platform)->about.keeps_record)
        return 0;
    return act_error_set(err, ACT_USAGE,
                         "a run on '%s' cannot be watched for hangs (--hang, key 'hang'): on platform '%s' the service "
                         "starts the ranks, and no agent sees them all; leave it out, here with -p 'hang: ~'",
                         c->cluster, c->platform);
}

int flow_check_hang(const struct config *c, struct act_error *err)
{
    int64_t ignored;

    return read_hang(c, &ignored, err);
}

int step_take_hang(struct passage *p, struct act_error *err)
{
    const struct config *c = p->flow->config;
    int64_t seconds;
    int rc = read_hang(c, &seconds, err);

    if (rc < 0 || seconds == 0)
        return rc;
    if (seconds < SHORT_S)
        act_warn("'hang: %s' is very short: whatever is silent and idle for that long is ended, even if it only waits "
                 "for data",
                 c->hang);
    p->spec->hang_s = (int)seconds;
    p->spec->hang_any_gpus = act_streq(c->hang_gpus, "any");
    return 0;
}

int step_repeat_hang(struct passage *p, struct act_error *err)
{
    const struct config *c = p->flow->config;
    const struct run_spec *old = &p->old->spec;

    if (config_is_said(c, "hang") || !old->hang_s)
        return step_take_hang(p, err);
    if (!platform_row(p->platform)->about.keeps_record) {
        act_note("the first run was watched for hangs; this one is not, as nobody can on platform '%s'", c->platform);
        return 0;
    }
    p->spec->hang_s = old->hang_s;
    p->spec->hang_any_gpus = config_is_said(c, "hang_gpus") ? act_streq(c->hang_gpus, "any") : old->hang_any_gpus;
    return 0;
}
