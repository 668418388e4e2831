/* check.c - what is wrong with a configuration: in itself, and for a run. */
#include <string.h>

#include "base/text.h"
#include "config/config.h"
#include "flow/cluster/doctor.h"
#include "flow/data/data_internal.h"
#include "flow/flow_internal.h"
#include "flow/submit/parts.h"
#include "package/package.h"
#include "platform/platform.h"

/* ---- what submit would refuse */

static int check_hang(struct flow *flow, struct platform *platform, struct act_error *err)
{
    return flow_check_hang(&flow->config, platform_row(platform), err);
}

static int cluster_check_retry(struct flow *flow, struct platform *platform, struct act_error *err)
{
    return flow_check_retry(&flow->config, platform_row(platform), err);
}

static int cluster_check_setup(struct flow *flow, struct platform *platform, struct act_error *err)
{
    (void)platform;
    return flow_check_setup(&flow->config, err);
}

static int check_zip_options(struct flow *flow, struct platform *platform, struct act_error *err)
{
    (void)platform;
    return package_check_options(&flow->config.zip_options, err);
}

static int cluster_check_run(struct flow *flow, struct platform *platform, struct act_error *err)
{
    (void)platform;
    return flow_check_run(flow, err);
}

/* The functions are those of a submission, so that both refuse the same. */
static const struct {
    const char *key; /* whose place is named; NULL: the problem itself says which it is */
    int (*check)(struct flow *flow, struct platform *platform, struct act_error *err);
} settings[] = {
    {"hang", check_hang},           {"retry", cluster_check_retry},
    {"setup", cluster_check_setup}, {"zip_options", check_zip_options},
    {NULL, cluster_check_run},
};

static void cluster_check_add_problem(const struct config *config, const char *key, const struct act_error *err,
                                      struct act_strv *problems)
{
    ACT_AUTOFREE char *origin = key ? config_origin(config, key) : NULL;

    if (origin && strcmp(origin, "default") != 0)
        act_strv_pushf(problems, "%s: %s", origin, act_error_text(err));
    else
        act_strv_push(problems, act_error_text(err));
}

static int check_settings(struct flow *flow, struct act_strv *problems, struct act_error *err)
{
    struct platform *platform;
    int rc = flow_platform(flow, &platform, err);

    for (size_t i = 0; rc == 0 && i < sizeof(settings) / sizeof(settings[0]); i++) {
        struct act_error why;
        if (settings[i].check(flow, platform, &why) < 0)
            cluster_check_add_problem(&flow->config, settings[i].key, &why, problems);
    }
    return rc;
}

int flow_check_config(const struct config_request *request, struct config_report *out, struct act_error *err)
{
    struct flow flow = {0};
    int rc = config_check(request, out, err);

    if (rc < 0 || out->problems.n > 0)
        return rc;
    rc = flow_open_to_look(request, &flow, err);
    if (rc == 0 && !request->quiet)
        flow_warn_overlaps(&flow.config);
    if (rc == 0 && check_settings(&flow, &out->problems, err) < 0)
        act_strv_push(&out->problems, act_error_text(err));
    flow_close(&flow);
    return rc;
}
