/* examine.c - whether all that runs on Azure Machine Learning need is there, for "a doctor". */
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/path.h"
#include "codec/json.h"
#include "config/config.h"
#include "platform/azureml/azureml_internal.h"

static bool examine_login(struct azureml *a, struct platform_findings *findings)
{
    static const char what[] = "login";
    ACT_AUTO(token_identity) who = {0};
    char until[ACT_TIME_TEXT];
    struct act_error err;
    struct arm *arm;
    int rc = azureml_arm(a, &arm, &err);

    if (rc == 0)
        rc = arm_identify(arm, &who, &err);
    if (rc < 0) {
        platform_findings_add(findings, false, what, "%s", act_error_text(&err));
        return false;
    }
    const char *name = who.name ? who.name : who.app_id ? who.app_id : who.object_id;
    act_time_to_local(who.expires_s, until);
    platform_findings_add(findings, true, what, "%s, tenant %s, by %s, until %s",
                          name ? name : "somebody the token does not name", who.tenant ? who.tenant : "unknown",
                          who.source, until);
    return true;
}

static bool examine_workspace(struct azureml *a, struct platform_findings *findings)
{
    static const char what[] = "workspace";
    const json_t *workspace;
    struct act_error err;

    if (azureml_workspace(a, &workspace, &err) < 0) {
        platform_findings_add(findings, false, what, "%s", act_error_text(&err));
        return false;
    }
    platform_findings_add(findings, true, what, "'%s' in %s answers", aml_config_keys(a->config)->workspace_name,
                          codec_json_str(workspace, "location", "an unknown region"));
    return true;
}

static void examine_history(struct azureml *a, struct platform_findings *findings)
{
    static const char what[] = "run history";
    const char *url;
    struct act_error err;

    if (azureml_history(a, &url, &err) < 0)
        platform_findings_add(findings, false, what, "%s", act_error_text(&err));
    else
        platform_findings_add(findings, true, what, "at %s", url);
}

/* ---- the quota of a managed compute's machines */

struct wanted_usage {
    const char *family;
    int64_t used, limit; /* of processors; limit -1: not told */
};

static int take_usage(void *arg, const json_t *item, struct act_error *err)
{
    struct wanted_usage *u = arg;

    (void)err;
    if (strcasecmp(codec_json_str(json_object_get(item, "name"), "value", ""), u->family) != 0)
        return 0;
    u->used = codec_json_int(item, "currentValue", 0);
    u->limit = codec_json_int(item, "limit", -1);
    return 1;
}

static int find_usage(struct azureml *a, const char *location, struct wanted_usage *u, struct act_error *err)
{
    ACT_AUTOFREE char *region = arm_segment(location),
                      *subscription = arm_segment(aml_config_keys(a->config)->subscription_id);

    u->limit = -1;
    return azureml_each(a,
                        act_sprintf("/subscriptions/%s/providers/Microsoft.MachineLearningServices/locations/%s/usages",
                                    subscription, region),
                        "look at the quotas of the region", take_usage, u, err);
}

/* Reports whether the quota fits the nodes that the cluster may have; nothing, to who may not look at quotas. */
static void examine_quota(struct azureml *a, const json_t *compute, struct platform_findings *findings)
{
    const json_t *own = json_object_get(json_object_get(compute, "properties"), "properties");
    const char *size = codec_json_str(own, "vmSize", NULL), *location = codec_json_str(compute, "location", NULL);
    int64_t most = codec_json_int(json_object_get(own, "scaleSettings"), "maxNodeCount", 0);
    CODEC_AUTOJSON json_t *facts = NULL;
    struct act_error ignored;

    if (!size || !location || strcasecmp(codec_json_str(own, "vmPriority", ""), "LowPriority") == 0)
        return; /* those have a quota of their own, for all families together */
    if (azureml_vm_size(a, location, size, &facts, &ignored) < 0 || !facts)
        return;
    struct wanted_usage u = {.family = codec_json_str(facts, "family", "")};
    int64_t each = codec_json_int(facts, "vCPUs", 0);
    if (each <= 0 || find_usage(a, location, &u, &ignored) < 0 || u.limit < 0)
        return;
    platform_findings_add(findings, u.limit / each >= most, "quota",
                          "%lld of %lld processors of the family '%s' in %s are in use: the quota is for %lld nodes of "
                          "the size %s, and '%s' may have %lld",
                          (long long)u.used, (long long)u.limit, u.family, location, (long long)(u.limit / each), size,
                          a->config->compute_target, (long long)most);
}

/* ---- the compute */

/* Reports what the service says of the compute, in the words of the user. */
static void judge_compute(const struct azureml *a, const json_t *compute, struct platform_findings *findings)
{
    static const char what[] = "compute";
    const char *target = a->config->compute_target;
    const json_t *own = json_object_get(json_object_get(compute, "properties"), "properties"),
                 *scale = json_object_get(own, "scaleSettings");
    bool ignored;
    ACT_AUTOFREE char *fault = azureml_compute_fault(a, compute, &ignored);

    if (fault)
        platform_findings_add(findings, false, what, "%s", fault);
    else if (a->kind == AZUREML_ITP)
        platform_findings_add(findings, true, what, "'%s' is there", target);
    else
        platform_findings_add(findings, true, what, "'%s' is there: %s, at most %lld nodes", target,
                              codec_json_str(own, "vmSize", "unknown size"),
                              (long long)codec_json_int(scale, "maxNodeCount", 0));
}

static void examine_compute(struct azureml *a, struct platform_findings *findings)
{
    static const char what[] = "compute";
    bool is_virtual = a->kind == AZUREML_SINGULARITY;
    const char *target = a->config->compute_target;
    CODEC_AUTOJSON json_t *compute = NULL;
    ACT_AUTOFREE char *id = target ? azureml_compute_id(a) : NULL;
    struct act_error err;

    if (!id) {
        bool sized = a->kind == AZUREML_MANAGED && azureml_keys(a->config)->instance_type;
        platform_findings_add(findings, sized, what, "%s",
                              sized ? "serverless: there is no compute_target"
                                    : "there is no compute_target in the cluster file");
        return;
    }
    if (azureml_compute(a, &compute, &err) < 0)
        platform_findings_add(findings, false, what, "%s", act_error_text(&err));
    else if (is_virtual)
        platform_findings_add(findings, true, what, "the virtual cluster '%s' is there", act_path_basename(target));
    else
        judge_compute(a, compute, findings);
    if (compute && a->kind == AZUREML_MANAGED)
        examine_quota(a, compute, findings);
}

void azureml_examine(struct platform *p, struct platform_findings *findings)
{
    struct azureml *a = azureml_of(p);

    if (!examine_login(a, findings) || !examine_workspace(a, findings))
        return;
    examine_history(a, findings);
    examine_compute(a, findings);
}
