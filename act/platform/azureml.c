/* azureml.c - stands in until the platform is written. */
#include "platform/platform_internal.h"

int platform_azureml_open(const struct config *config, struct platform **out, struct act_error *err)
{
    *out = NULL;
    return act_error_set(err, ACT_CONFIG,
                         "platform '%s' cannot be driven by this version of ACT; use -c local to run on this "
                         "machine",
                         config->platform);
}
