/* examine.c - whether all that runs on Azure Machine Learning need is there, for "a doctor". */
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/path.h"
#include "codec/json.h"
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

/* What the service says of the compute, in the words of the user. */
static void judge_compute(const struct azureml *a, const json_t *compute, struct platform_findings *findings)
{
    static const char *const types[] = {[AZUREML_MANAGED] = "AmlCompute", [AZUREML_ITP] = "Kubernetes"};
    static const char what[] = "compute";
    const char *target = a->config->compute_target, *wanted = types[a->kind];
    const json_t *properties = json_object_get(compute, "properties"), *own = json_object_get(properties, "properties"),
                 *scale = json_object_get(own, "scaleSettings");
    const char *type = codec_json_str(properties, "computeType", "unknown"),
               *state = codec_json_str(properties, "provisioningState", "Succeeded");

    if (strcmp(type, wanted) != 0)
        platform_findings_add(findings, false, what, "'%s' is of type '%s'; platform '%s' needs '%s'", target, type,
                              a->base.row->kind->name, wanted);
    else if (strcasecmp(state, "Succeeded") != 0 && strcasecmp(state, "Updating") != 0)
        platform_findings_add(findings, false, what, "'%s' is '%s': no run begins there", target, state);
    else if (a->kind == AZUREML_ITP)
        platform_findings_add(findings, true, what, "'%s' is there", target);
    else if (codec_json_int(scale, "maxNodeCount", 1) == 0)
        platform_findings_add(findings, false, what,
                              "'%s' may have no nodes; 'a cluster autoscale %s --max N' changes that", target, target);
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
    ACT_AUTOFREE char *doing = act_sprintf("look at the compute '%s'", act_path_basename(target));
    int rc = arm_get(a->arm, id, is_virtual ? AZUREML_VIRTUAL_CLUSTER_VERSION : a->api_version, doing, &compute, &err);
    if (rc < 0)
        platform_findings_add(findings, false, what, "%s", act_error_text(&err));
    else if (is_virtual)
        platform_findings_add(findings, true, what, "the virtual cluster '%s' is there", act_path_basename(target));
    else
        judge_compute(a, compute, findings);
}

void azureml_examine(struct platform *p, struct platform_findings *findings)
{
    struct azureml *a = azureml_of(p);

    if (!examine_login(a, findings) || !examine_workspace(a, findings))
        return;
    examine_history(a, findings);
    examine_compute(a, findings);
}
