/* start.c - whether the compute could ever start a run, asked before anything is uploaded for it: one GET of the
 * compute, and once for each size of machines what it has, which does not change and is kept in the cache.
 *
 * What a change of the cluster by its owner would help against is a warning, as the run waits for it in the queue.
 *
 * Source: learn.microsoft.com/rest/api/azureml (Compute, Get; Virtual Machine Sizes, List; Usages, List); virtual
 * clusters as they were recorded (test_vc; arm.h names where).
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "codec/json.h"
#include "config/config.h"
#include "platform/azureml/azureml_internal.h"

enum { SIZE_BYTES = 4096 };

/* ---- sizes of machines */

static char *size_file(const char *location, const char *size)
{
    ACT_AUTOFREE char *cache = act_cache_dir(), *name = act_sprintf("%s@%s.json", size, location);

    for (char *c = name; *c; c++)
        *c = (char)(*c == '/' ? '_' : tolower((unsigned char)*c));
    return act_sprintf("%s/vm-sizes/%s", cache, name);
}

struct wanted_size {
    const char *name;
    json_t *found;
};

static int aml_start_take_size(void *arg, const json_t *item, struct act_error *err)
{
    struct wanted_size *wanted = arg;

    (void)err;
    if (strcasecmp(codec_json_str(item, "name", ""), wanted->name) != 0)
        return 0;
    wanted->found = json_deep_copy(item);
    return 1;
}

int azureml_vm_size(struct azureml *a, const char *location, const char *size, json_t **out, struct act_error *err)
{
    ACT_AUTOFREE char *file = size_file(location, size), *region = arm_segment(location);
    ACT_AUTOFREE char *subscription = arm_segment(aml_config_keys(a->config)->subscription_id);
    struct wanted_size wanted = {.name = size};
    struct act_error not_kept;

    *out = NULL;
    if (codec_json_read(file, SIZE_BYTES, out, &not_kept) == 0)
        return 0;
    int rc =
        azureml_each(a,
                     act_sprintf("/subscriptions/%s/providers/Microsoft.MachineLearningServices/locations/%s/vmSizes",
                                 subscription, region),
                     "list the sizes of machines", aml_start_take_size, &wanted, err);
    if (wanted.found)
        platform_remember("azureml", file, wanted.found);
    *out = wanted.found;
    return rc;
}

/* ---- what it means */

char *azureml_compute_fault(const struct azureml *a, const json_t *compute, bool *out_passes)
{
    static const char *const types[] = {[AZUREML_MANAGED] = "AmlCompute", [AZUREML_ITP] = "Kubernetes"};
    const char *target = a->config->compute_target, *wanted = types[a->kind];
    const json_t *properties = json_object_get(compute, "properties"), *own = json_object_get(properties, "properties"),
                 *scale = json_object_get(own, "scaleSettings");
    const char *type = codec_json_str(properties, "computeType", "unknown"),
               *state = codec_json_str(properties, "provisioningState", "Succeeded");

    *out_passes = false;
    if (strcmp(type, wanted) != 0)
        return act_sprintf("'%s' is of type '%s'; platform '%s' needs '%s'", target, type, a->base.row->kind->name,
                           wanted);
    if (a->kind == AZUREML_MANAGED && codec_json_int(scale, "maxNodeCount", 1) == 0)
        return act_sprintf("'%s' may have no nodes; 'a cluster autoscale %s --max N' changes that", target, target);
    if (strcasecmp(state, "Succeeded") == 0 || strcasecmp(state, "Updating") == 0)
        return NULL;
    *out_passes = strcasecmp(state, "Deleting") != 0;
    return act_sprintf("'%s' is '%s': no run begins there", target, state);
}

static int check_compute(const struct azureml *a, const json_t *compute, struct act_error *err)
{
    bool passes;
    ACT_AUTOFREE char *fault = azureml_compute_fault(a, compute, &passes);

    if (!fault)
        return 0;
    if (!passes)
        return act_error_set(err, ACT_NO_CAPACITY, "the run could never start: %s", fault);
    act_warn("the run waits: %s", fault);
    return 0;
}

static int aml_start_check_nodes(const struct azureml *a, const json_t *own, const struct run_spec *spec,
                                 struct act_error *err)
{
    const char *target = a->config->compute_target;
    int64_t most = codec_json_int(json_object_get(own, "scaleSettings"), "maxNodeCount", 0);
    int per_node = spec->gpus_per_node > 0 ? spec->gpus_per_node : 1;

    if (most <= 0 || spec->nodes <= most)
        return 0;
    return act_error_set(err, ACT_NO_CAPACITY,
                         "it needs %d nodes, and '%s' has at most %lld; use at most -n %lld, or 'a cluster autoscale "
                         "%s --max %d'",
                         spec->nodes, target, (long long)most, (long long)most * per_node, act_path_basename(target),
                         spec->nodes);
}

/* Where a machine has no GPUs, gpu_per_node is the number of its processes. has -1: not known. */
static int check_gpus(const struct run_spec *spec, const char *machine, int64_t has, struct act_error *err)
{
    if (has <= 0 || spec->gpus_per_node <= has)
        return 0;
    return act_error_set(err, ACT_NO_CAPACITY,
                         "it needs %d GPUs on each node, and %s has %lld: set gpu_per_node to %lld, or use another "
                         "compute_target",
                         spec->gpus_per_node, machine, (long long)has, (long long)has);
}

static int aml_start_check_size(struct azureml *a, const char *location, const char *size, const struct run_spec *spec,
                                struct act_error *err)
{
    CODEC_AUTOJSON json_t *found = NULL;
    ACT_AUTOFREE char *machine = act_sprintf("a machine of the size '%s'", size);
    struct act_error unknown;

    if (spec->gpus_per_node <= 0)
        return 0;
    if (azureml_vm_size(a, location, size, &found, &unknown) < 0) {
        act_trace("azureml", "%s", act_error_text(&unknown));
        return 0;
    }
    return check_gpus(spec, machine, codec_json_int(found, "gpus", -1), err);
}

/* Warns of what lately kept the cluster from having the nodes it should have, such as a quota. */
static void warn_of_errors(const struct azureml *a, const json_t *own)
{
    const json_t *first = json_array_get(json_object_get(own, "errors"), 0);
    char code[64];
    ACT_AUTOFREE char *text = first ? arm_error_text(first, code, sizeof(code)) : NULL;

    if (text)
        act_warn("'%s' did not get the nodes it should have: %s", a->config->compute_target, text);
}

static int judge_managed(struct azureml *a, const json_t *compute, const struct run_spec *spec, struct act_error *err)
{
    const json_t *own = json_object_get(json_object_get(compute, "properties"), "properties");
    const char *size = codec_json_str(own, "vmSize", NULL), *location = codec_json_str(compute, "location", NULL);
    int rc = check_compute(a, compute, err);

    if (rc == 0)
        rc = aml_start_check_nodes(a, own, spec, err);
    if (rc == 0 && size && location)
        rc = aml_start_check_size(a, location, size, spec, err);
    if (rc == 0)
        warn_of_errors(a, own);
    return rc;
}

/* The instance type says what of a node a run gets. */
static int judge_attached(const struct azureml *a, const json_t *compute, const struct run_spec *spec,
                          struct act_error *err)
{
    const json_t *own = json_object_get(json_object_get(compute, "properties"), "properties");
    const char *type = azureml_keys(a->config)->instance_type;
    int rc = check_compute(a, compute, err);

    type = type ? type : codec_json_str(own, "defaultInstanceType", "");
    const json_t *limits = json_object_get(
        json_object_get(json_object_get(json_object_get(own, "instanceTypes"), type), "resources"), "limits");
    ACT_AUTOFREE char *machine = act_sprintf("the instance type '%s'", type);
    return rc < 0 ? rc : check_gpus(spec, machine, atoll(codec_json_str(limits, "nvidia.com/gpu", "-1")), err);
}

/* An administrator changes a quota without a change of the cluster: it may wait for that. */
static int judge_virtual(const struct azureml *a, const json_t *compute, const struct run_spec *spec)
{
    const char *tier = a->config->singularity_sla_tier;
    int64_t most = azureml_tier_limit(compute, tier), asked = (int64_t)spec->nodes * spec->gpus_per_node;

    if (most >= 0 && asked > most)
        act_warn("it will wait until somebody raises the quota of '%s': a run of the tier '%s' can have %lld GPUs "
                 "there, and it asks for %lld",
                 act_path_basename(a->config->compute_target), tier, (long long)most, (long long)asked);
    return 0;
}

static int aml_start_judge(struct azureml *a, const json_t *compute, const struct run_spec *spec, struct act_error *err)
{
    switch (a->kind) {
    case AZUREML_MANAGED:
        return judge_managed(a, compute, spec, err);
    case AZUREML_ITP:
        return judge_attached(a, compute, spec, err);
    case AZUREML_SINGULARITY:
        break;
    }
    return judge_virtual(a, compute, spec);
}

/* ---- asking */

/* Asks about the compute and judges it. Without an answer, the submission itself will tell. */
static int aml_start_ask_and_judge(struct azureml *a, const struct run_spec *spec, struct act_error *err)
{
    CODEC_AUTOJSON json_t *compute = NULL;
    int rc = azureml_compute(a, &compute, err);

    if (rc == -ACT_TEMPORARY || rc == -ACT_FAIL || (rc == -ACT_DENIED && err->http_status == 403)) {
        act_note("whether the run can start is not known: %s", act_error_text(err));
        return 0;
    }
    if (rc == -ACT_NOT_FOUND)
        act_error_hint(err, a->kind == AZUREML_MANAGED
                                ? "compute_target names it, and 'a cluster list' shows what is there"
                                : "compute_target names it");
    return rc < 0 ? rc : aml_start_judge(a, compute, spec, err);
}

int azureml_check_start(struct azureml *a, const struct run_spec *spec, struct act_error *err)
{
    const struct azureml_shape shape = {spec->nodes, spec->gpus_per_node};

    if (!a->config->compute_target || !*a->config->compute_target) /* serverless: there is nothing to look at */
        return 0;
    if (shape.nodes == a->could_start.nodes && shape.gpus == a->could_start.gpus) /* the runs of a sweep are alike */
        return 0;
    int rc = aml_start_ask_and_judge(a, spec, err);
    if (rc == 0)
        a->could_start = shape;
    return rc;
}
