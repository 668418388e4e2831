/* azureml_job.c - a run as the body of a command job.
 *
 * Source: learn.microsoft.com/rest/api/azureml/jobs/create-or-update (CommandJob). What is for itp and singularity is
 * known from the source of azure-ai-ml only.
 */
#include <ctype.h>
#include <string.h>

#include "base/units.h"
#include "codec/json.h"
#include "platform/azureml_internal.h"

/* ---- the command ---- */

/* Folders that a run writes to are outputs of the job, the others inputs. */
static bool is_output(const struct run_folder *folder)
{
    return folder->mode == RUN_FOLDER_RW_MOUNT || folder->mode == RUN_FOLDER_UPLOAD;
}

char *azureml_job_command(const struct run_spec *spec)
{
    struct act_buf b = {0};

    act_buf_adds(
        &b, "a=$(mktemp /tmp/act-node.XXXXXX) && cp \"${{inputs.act_agent}}\" \"$a\" && chmod 755 \"$a\" && "
            "exec \"$a\" job --spec \"${{inputs.act_run}}\"");
    if (spec->package_sha256[0])
        act_buf_adds(&b, " --package \"${{inputs.act_code}}\"");
    for (size_t i = 0; i < spec->n_folders; i++)
        act_buf_addf(&b, " --folder %zu=\"${{%s.act_folder_%zu}}\"", i,
                     is_output(&spec->folders[i]) ? "outputs" : "inputs", i);
    return act_buf_steal(&b);
}

/* ---- inputs and outputs ---- */

static void set(json_t *object, const char *key, const char *text)
{
    if (text)
        json_object_set_new(object, key, codec_json_bytes_new(text));
}

static json_t *file_input(const struct azureml_place *place)
{
    return json_pack("{s:s, s:s, s:s}", "jobInputType", "uri_file", "mode", "Download", "uri", place->uri);
}

static void add_folder(const struct run_folder *folder, size_t i, const struct azureml_place *place,
                       json_t *inputs, json_t *outputs)
{
    static const char *const modes[] = {[RUN_FOLDER_RW_MOUNT] = "ReadWriteMount",
                                        [RUN_FOLDER_RO_MOUNT] = "ReadOnlyMount",
                                        [RUN_FOLDER_DOWNLOAD] = "Download",
                                        [RUN_FOLDER_UPLOAD] = "Upload"};
    bool output = is_output(folder);
    ACT_AUTOFREE char *name = act_sprintf("act_folder_%zu", i);

    json_object_set_new(output ? outputs : inputs, name,
                        json_pack("{s:s, s:s, s:s}", output ? "jobOutputType" : "jobInputType", "uri_folder",
                                  "mode", modes[folder->mode], "uri", place->uri));
}

static void add_data(const struct run_spec *spec, const struct azureml_job_places *places, json_t *job)
{
    json_t *inputs = json_object(), *outputs = json_object();

    json_object_set_new(inputs, "act_agent", file_input(&places->agent));
    json_object_set_new(inputs, "act_run", file_input(&places->spec));
    if (spec->package_sha256[0])
        json_object_set_new(inputs, "act_code", file_input(&places->package));
    for (size_t i = 0; i < spec->n_folders; i++)
        add_folder(&spec->folders[i], i, &places->folders[i], inputs, outputs);
    json_object_set_new(job, "inputs", inputs);
    if (json_object_size(outputs))
        json_object_set(job, "outputs", outputs);
    json_decref(outputs);
}

/* ---- environment, tags, properties ---- */

static void add_environment(const struct azureml *a, const struct run_spec *spec, json_t *job)
{
    json_t *env = json_object();

    if (a->kind == AZUREML_SINGULARITY) { /* as the official samples; WORLD_SIZE was wrong without */
        ACT_AUTOFREE char *world = act_sprintf("%d", spec->nodes * spec->procs_per_node);
        set(env, "JOB_EXECUTION_MODE", "Basic");
        set(env, "AZUREML_COMPUTE_USE_COMMON_RUNTIME", "true");
        set(env, "WORLD_SIZE", world);
    }
    for (size_t i = 0; i < spec->n_env; i++)
        set(env, spec->env[i].name, spec->env[i].value);
    if (json_object_size(env))
        json_object_set(job, "environmentVariables", env);
    json_decref(env);
}

/* By these another machine reads the run back; the service takes texts only. */
static void add_properties(const struct run_spec *spec, json_t *job)
{
    ACT_AUTOFREE char *gpus = act_sprintf("%d", spec->nodes * spec->gpus_per_node);
    CODEC_AUTOJSON json_t *argv = codec_json_strv_new(&spec->argv);
    ACT_AUTOFREE char *line = codec_json_line(argv);
    json_t *p = json_object();

    set(p, "act.version", ACT_VERSION);
    set(p, "act.cmd", line);
    set(p, "act.num_gpu", gpus);
    set(p, "act.cluster", spec->cluster);
    set(p, "act.project", spec->project_root);
    set(p, "act.package_key", spec->package_key);
    set(p, "act.package_sha256", spec->package_sha256);
    set(p, "act.resubmit_of", spec->resubmit_of);
    json_object_set_new(job, "properties", p);
    json_object_set_new(job, "tags", json_pack("{s:s}", "act", "1"));
}

/* ---- where it runs ---- */

static json_t *itp_properties(const struct azureml *a, const struct run_spec *spec)
{
    const struct config *c = a->config;
    json_t *priority = json_pack("{s:I, s:b}", "job_priority",
                                 (json_int_t)(c->azureml.priority >= 0 ? c->azureml.priority : 200),
                                 "is_preemptible", c->preemption_allowed);

    if (c->preemption_allowed && c->elastic_num_gpu.n) {
        json_t *nodes = json_array();
        for (size_t i = 0; i < c->elastic_num_gpu.n; i++) {
            int64_t gpus = 0;
            if (act_int_from_text(c->elastic_num_gpu.v[i], &gpus) && spec->gpus_per_node > 0)
                json_array_append_new(nodes, json_integer(gpus / spec->gpus_per_node));
        }
        json_object_set_new(priority, "node_count_set", nodes);
    }
    return json_pack("{s:{s:{s:i}, s:o}}", "itp", "resource_configuration", "gpu_count", spec->gpus_per_node,
                     "priority_configuration", priority);
}

static json_t *singularity_properties(const struct azureml *a, const struct run_spec *spec)
{
    static const char *const priorities[] = {"Low", "Medium", "High"};
    int64_t p = a->config->azureml.priority;

    return json_pack("{s:{s:b, s:s, s:s, s:{s:i, s:i, s:i}}}", "AISuperComputer", "interactive", 0, "slaTier",
                     a->config->singularity_sla_tier, "priority", priorities[p >= 1 && p <= 3 ? p - 1 : 1],
                     "scalePolicy", "autoScaleIntervalInSec", 36000, "maxInstanceTypeCount", spec->nodes,
                     "minInstanceTypeCount", spec->nodes);
}

static void add_resources(const struct azureml *a, const struct run_spec *spec, json_t *job)
{
    const struct config *c = a->config;
    json_t *r = json_pack("{s:i}", "instanceCount", spec->nodes);

    set(r, "shmSize", c->azureml.shm_size);
    if (a->kind == AZUREML_MANAGED)
        set(r, "dockerArgs", c->azureml.docker_args);
    set(r, "instanceType",
        a->kind == AZUREML_SINGULARITY ? c->singularity_instance_type : c->azureml.instance_type);
    if (a->kind == AZUREML_ITP)
        json_object_set_new(r, "properties", itp_properties(a, spec));
    if (a->kind == AZUREML_SINGULARITY) {
        json_object_set_new(r, "properties", singularity_properties(a, spec));
        json_t *queue = json_pack("{s:s}", "jobTier", c->singularity_sla_tier);
        if (c->azureml.priority >= 0)
            json_object_set_new(queue, "priority", json_integer(c->azureml.priority));
        json_object_set_new(job, "queueSettings", queue);
    }
    json_object_set_new(job, "resources", r);
}

/* Nothing starts a single process but the service itself. */
static void add_distribution(const struct run_spec *spec, json_t *job)
{
    if (spec->nodes * spec->procs_per_node > 1)
        json_object_set_new(job, "distribution",
                            json_pack("{s:s, s:i}", "distributionType", "Mpi", "processCountPerInstance",
                                      spec->procs_per_node));
}

/* ---- limits and identity ---- */

char *azureml_iso_duration(const char *text)
{
    int64_t seconds;

    if (text[0] == 'P' && strspn(text, "PT0123456789DHMS") == strlen(text))
        return act_strdup(text);
    if (!act_int_from_text(text, &seconds) && !act_duration_from_text(text, &seconds))
        return NULL;
    return seconds > 0 ? act_sprintf("PT%lldS", (long long)seconds) : NULL;
}

static int add_limits(const struct azureml *a, json_t *job, struct act_error *err)
{
    const char *text = a->config->azureml.timeout;
    ACT_AUTOFREE char *iso = text ? azureml_iso_duration(text) : NULL;

    if (text && !iso)
        return act_error_set(err, ACT_CONFIG,
                             "azureml.timeout is '%s': it must be a time such as 90m, 24h or 7d", text);
    if (iso)
        json_object_set_new(job, "limits",
                            json_pack("{s:s, s:s}", "jobLimitsType", "Command", "timeout", iso));
    return 0;
}

static void add_identity(const struct azureml *a, json_t *job)
{
    const char *who = a->config->azureml.identity;

    if (!who)
        return;
    json_t *identity =
        json_pack("{s:s}", "identityType", strcmp(who, "user") == 0 ? "UserIdentity" : "Managed");
    if (strcmp(who, "user") != 0 && strcmp(who, "managed") != 0)
        set(identity, "clientId", who);
    json_object_set_new(job, "identity", identity);
}

int azureml_job_body(const struct azureml *a, const struct run_spec *spec,
                     const struct azureml_job_places *places, json_t **out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *job = json_object();
    ACT_AUTOFREE char *command = azureml_job_command(spec);

    set(job, "jobType", "Command");
    set(job, "command", command);
    set(job, "environmentId", places->environment_id);
    set(job, "computeId", places->compute_id);
    set(job, "experimentName", spec->experiment);
    set(job, "displayName", spec->id);
    add_properties(spec, job);
    add_environment(a, spec, job);
    add_data(spec, places, job);
    add_distribution(spec, job);
    add_resources(a, spec, job);
    add_identity(a, job);
    int rc = add_limits(a, job, err);
    if (rc == 0)
        *out = json_pack("{s:O}", "properties", job);
    return rc;
}
