/* check.c - what is wrong with a configuration: in itself, and for a run. */
#include "base/text.h"
#include "config/config.h"
#include "flow/cluster/doctor.h"
#include "flow/data/data_internal.h"
#include "flow/runs/submit_internal.h"

int flow_check_config(const struct config_request *request, struct config_report *out, struct act_error *err)
{
    struct flow flow = {0};
    int rc = config_check(request, out, err);

    if (rc < 0 || out->problems.n > 0)
        return rc;
    rc = flow_open_to_look(request, &flow, err);
    if (rc == 0)
        flow_warn_overlaps(&flow.config);
    if (rc == 0 && flow_check_run(&flow, err) < 0)
        act_strv_push(&out->problems, act_error_text(err));
    flow_close(&flow);
    return rc;
}
