/* doctor.h - whether all is there that the runs of a cluster need. */
#ifndef ACT_FLOW_CLUSTER_DOCTOR_H
#define ACT_FLOW_CLUSTER_DOCTOR_H

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "flow/flow.h"
#include "platform/platform.h"

/* config_check(), and whether a run would be refused for what the configuration says. Asks nobody. */
int flow_check_config(const struct config_request *request, struct act_strv *out_problems,
                      struct act_error *err) ACT_NODISCARD;
/* Whether all that runs of the cluster need is there. flow is a bare one, and has the configuration afterwards if there
 * is one. Release out. */
void flow_doctor(struct flow *flow, const struct config_request *request, struct platform_findings *out);

#endif
