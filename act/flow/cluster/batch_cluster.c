/* batch_cluster.c - a cluster as Azure Batch AI described it, made as a managed cluster of today.
 *
 * Source: the REST reference of Batch AI 2018-05-01, clusters/create (github.com/Azure/azure-rest-api-specs,
 * specification/batchai); what has no counterpart is said.
 */
#include <string.h>
#include <strings.h>

#include "codec/json.h"
#include "flow/cluster/cluster.h"
#include "flow/jobfile/jobfile.h"

static const char *batch_cluster_text_at(const json_t *object, const char *a, const char *b)
{
    return codec_json_str(json_object_get(object, a), b, NULL);
}

static bool batch_cluster_has(const json_t *object, const char *member)
{
    return !json_is_null(json_object_get(object, member)) && json_object_get(object, member);
}

/* Nodes that are always there are as many as there are at most. */
static int read_scale(const json_t *properties, const char *file, struct platform_scale *out, struct act_error *err)
{
    const json_t *scale = json_object_get(properties, "scaleSettings"), *manual = json_object_get(scale, "manual"),
                 *automatic = json_object_get(scale, "autoScale");

    if (json_is_object(manual) && json_is_object(automatic))
        return act_error_set(err, ACT_CONFIG, "%s: 'properties.scaleSettings' must have one of 'manual', 'autoScale'",
                             file);
    *out = (struct platform_scale){.min_nodes = codec_json_int(automatic, "minimumNodeCount", -1),
                                   .max_nodes = codec_json_int(automatic, "maximumNodeCount", -1)};
    if (json_is_object(manual))
        out->min_nodes = out->max_nodes = codec_json_int(manual, "targetNodeCount", -1);
    return 0;
}

static void note_machine(const json_t *properties, struct flow_batch_cluster *out)
{
    const json_t *machine = json_object_get(properties, "virtualMachineConfiguration"),
                 *image = json_object_get(machine, "imageReference");
    const char *id = codec_json_str(image, "virtualMachineImageId", codec_json_str(image, "id", NULL));

    if (id)
        out->cluster.node_image = id;
    else if (image)
        act_strv_pushf(&out->notes,
                       "the image of the nodes (%s %s) is not used: the service has its own, and "
                       "docker.image is what runs execute in",
                       codec_json_str(image, "offer", "?"), codec_json_str(image, "sku", "?"));
}

static void note_setup(const json_t *properties, struct flow_batch_cluster *out)
{
    static const struct {
        const char *member, *note;
    } rows[] = {
        {"setupTask", "nodeSetup.setupTask is not run: put what it installs into the image (docker.image), or into "
                      "'jobPreparation' of a job file"},
        {"mountVolumes", "nodeSetup.mountVolumes are not mounted on the nodes: map folders in the cluster file "
                         "(config_param), which each run has"},
        {"performanceCountersSettings", "nodeSetup.performanceCountersSettings are not used: 'a report' shows what the "
                                        "nodes of a run use"},
    };
    const json_t *setup = json_object_get(properties, "nodeSetup"),
                 *user = json_object_get(properties, "userAccountSettings");

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (batch_cluster_has(setup, rows[i].member))
            act_strv_push(&out->notes, rows[i].note);
    if (batch_cluster_has(user, "adminUserPassword"))
        act_strv_push(&out->notes, "userAccountSettings.adminUserPassword is not used: users log in with a key alone");
}

static int batch_cluster_take(const json_t *json, const char *file, struct flow_batch_cluster *out,
                              struct act_error *err)
{
    const json_t *properties = json_object_get(json, "properties");
    const char *priority = codec_json_str(properties, "vmPriority", "dedicated");
    struct platform_new_cluster *c = &out->cluster;

    c->vm_size = codec_json_str(properties, "vmSize", NULL);
    c->location = codec_json_str(json, "location", NULL);
    c->low_priority = strcasecmp(priority, "lowpriority") == 0;
    c->subnet = batch_cluster_text_at(properties, "subnet", "id");
    c->ssh_key = batch_cluster_text_at(properties, "userAccountSettings", "adminUserSshPublicKey");
    c->admin_user = batch_cluster_text_at(properties, "userAccountSettings", "adminUserName");
    if (json_is_object(json_object_get(json, "tags")))
        c->tags = json_object_get(json, "tags");
    if (!c->low_priority && strcasecmp(priority, "dedicated") != 0)
        return act_error_set(err, ACT_CONFIG, "%s: 'properties.vmPriority' must be 'dedicated' or 'lowpriority'", file);
    note_machine(properties, out);
    note_setup(properties, out);
    return read_scale(properties, file, &c->scale, err);
}

int flow_read_batch_cluster(const char *file, struct flow_batch_cluster *out, struct act_error *err)
{
    *out = (struct flow_batch_cluster){0};
    int rc = flow_batch_file_read(file, "a file of a cluster, which is JSON and begins with '{'", &out->json, err);

    if (rc == 0)
        rc = flow_batch_cluster_check(out->json, file, err);
    if (rc == 0)
        rc = batch_cluster_take(out->json, file, out, err);
    if (rc < 0)
        flow_batch_cluster_release(out);
    return rc;
}

void flow_batch_cluster_release(struct flow_batch_cluster *cluster)
{
    json_decref(cluster->json);
    act_strv_release(&cluster->notes);
    *cluster = (struct flow_batch_cluster){0};
}
