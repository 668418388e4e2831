/* check.c - finds what is wrong with a configuration, in itself and for a run. */
#include <string.h>

#include "config/config.h"
#include "config/kind.h"
#include "flow/cluster/doctor.h"
#include "flow/data/data_internal.h"
#include "flow/submit/parts.h"

/* ---- what submit would refuse */

static int check_zip_options(const struct config *config, struct act_error *err)
{
    return package_check_options(&config->zip_options, err);
}

/* The functions are those of a submission, so that both refuse the same. */
static const struct {
    const char *key; /* whose place is named */
    int (*check)(const struct config *config, struct act_error *err);
} settings[] = {
    {"hang", flow_check_hang},
    {"retry", flow_check_retry},
    {"zip_options", check_zip_options},
};

static void check_setting(const struct config *config, const char *key,
                          int (*check)(const struct config *config, struct act_error *err), struct config_findings *f)
{
    const struct yaml *at = config_value(config, key);
    struct act_error why;

    at = at ? at : config_value(config, "platform");
    if (at && !config_is_faulty(config, key, f) && check(config, &why) < 0)
        config_problem(f, at, "%s", act_error_text(&why));
}

/* Adds what is wrong with single keys, whatever else is. */
static void check_settings(const struct config *config, struct config_findings *f)
{
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        check_setting(config, settings[i].key, settings[i].check, f);
    for (const struct flow_setup_key *key = flow_setup_keys; key->name; key++)
        check_setting(config, key->name, key->check, f);
}

int flow_check_config(const struct config_request *request, struct config_report *out, struct act_error *err)
{
    struct flow flow = {0};
    int rc = config_check_more(request, check_settings, out, err);

    if (rc < 0 || out->problems.n > 0)
        return rc;
    rc = flow_open_to_look(request, &flow, err);
    if (rc == 0 && !request->quiet)
        flow_warn_overlaps(flow.config);
    if (rc == 0 && flow_check_run(&flow, err) < 0)
        act_strv_push(&out->problems, act_error_text(err));
    flow_close(&flow);
    return rc;
}
