/* slurm.c - stands in until the platform is written. */
#include "platform/platform_internal.h"

int platform_slurm_open(const struct config *config, struct platform **out, struct act_error *err)
{
    (void)config;
    *out = NULL;
    return act_error_set(err, ACT_CONFIG,
                         "platform 'slurm' cannot be driven by this version of ACT; use -c local");
}
