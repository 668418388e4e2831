/* doctor.h - checks that everything the runs of a cluster need is there. */
#ifndef ACT_FLOW_CLUSTER_DOCTOR_H
#define ACT_FLOW_CLUSTER_DOCTOR_H

#include "base/error.h"
#include "base/text.h"
#include "flow/flow.h"
#include "platform/platform.h"

struct config_report;
struct config_request;

/* Does what config_check() does and, where that finds nothing, adds why a run would be refused because of the
 * configuration. Contacts no host. */
int flow_check_config(const struct config_request *request, struct config_report *out,
                      struct act_error *err) ACT_NODISCARD;
/* Checks that everything the cluster's runs need is there. flow was opened bare, and afterwards has the configuration
 * if there is one. Release out. */
void flow_doctor(struct flow *flow, const struct config_request *request, struct platform_findings *out);

/* Returns a newer version than this one that a login node had when it was last connected to: "0.2.0 on me@lab", a new
 * string; NULL: none had one. Connects to nothing. */
char *flow_newer_version(void);

#endif
