/* job.c - a run as the body of a command job.
 *
 * Source: learn.microsoft.com/rest/api/azureml/jobs/create-or-update (CommandJob). What is for singularity, by a job of
 * azure-ai-ml that was recorded when the service took it (test_command_job_with_singularity; arm.h names where): the
 * virtual cluster as computeId, queueSettings, locations, camelCase in AISuperComputer. slaTier and priority in there,
 * and all that is for itp, are known from the source of azure-ai-ml only.
 */
#include <string.h>

#include "base/units.h"
#include "codec/json.h"
#include "config/config.h"
#include "platform/azureml/azureml_internal.h"

/* ---- the command ---- */

/* Folders that a run writes to are outputs of the job, the others inputs. */
static bool is_output(const struct run_folder *folder)
{
    return folder->mode == RUN_FOLDER_RW_MOUNT || folder->mode == RUN_FOLDER_UPLOAD;
}

char *azureml_job_command(const struct run_spec *spec)
{
    struct act_buf b = {0};

    act_buf_adds(&b, "a=$(mktemp /tmp/act-node.XXXXXX) && cp \"${{inputs.act_agent}}\" \"$a\" && chmod 755 \"$a\" && "
                     "exec \"$a\" job --spec \"${{inputs.act_run}}\"");
    if (spec->package_sha256[0])
        act_buf_adds(&b, " --package \"${{inputs.act_code}}\"");
    for (size_t i = 0; i < spec->n_folders; i++)
        act_buf_addf(&b, " --folder %zu=\"${{%s.act_folder_%zu}}\"", i,
                     is_output(&spec->folders[i]) ? "outputs" : "inputs", i);
    return act_buf_steal(&b);
}

/* ---- inputs and outputs ---- */

/* Sets a member, but leaves out text that is not UTF-8: azureml_job_check() has refused it where it matters. */
static void aml_job_set(json_t *object, const char *key, const char *text)
{
    if (text && act_utf8_valid(text, strlen(text)))
        json_object_set_new(object, key, json_string(text));
}

static json_t *file_input(const struct azureml_place *place)
{
    return json_pack("{s:s, s:s, s:s}", "jobInputType", "uri_file", "mode", "Download", "uri", place->uri);
}

static void aml_job_add_folder(const struct run_folder *folder, size_t i, const struct azureml_place *place,
                               json_t *inputs, json_t *outputs)
{
    static const char *const modes[] = {[RUN_FOLDER_RW_MOUNT] = "ReadWriteMount",
                                        [RUN_FOLDER_RO_MOUNT] = "ReadOnlyMount",
                                        [RUN_FOLDER_DOWNLOAD] = "Download",
                                        [RUN_FOLDER_UPLOAD] = "Upload"};
    bool output = is_output(folder);
    ACT_AUTOFREE char *name = act_sprintf("act_folder_%zu", i);

    json_object_set_new(output ? outputs : inputs, name,
                        json_pack("{s:s, s:s, s:s}", output ? "jobOutputType" : "jobInputType", "uri_folder", "mode",
                                  modes[folder->mode], "uri", place->uri));
}

static void add_data(const struct run_spec *spec, const struct azureml_job_places *places, json_t *job)
{
    json_t *inputs = json_object(), *outputs = json_object();

    json_object_set_new(inputs, "act_agent", file_input(&places->agent));
    json_object_set_new(inputs, "act_run", file_input(&places->spec));
    if (spec->package_sha256[0])
        json_object_set_new(inputs, "act_code", file_input(&places->package));
    for (size_t i = 0; i < spec->n_folders; i++)
        aml_job_add_folder(&spec->folders[i], i, &places->folders[i], inputs, outputs);
    json_object_set_new(job, "inputs", inputs);
    if (json_object_size(outputs))
        json_object_set(job, "outputs", outputs);
    json_decref(outputs);
}

/* A path that holds what the service would replace, or that JSON cannot have, is another path there. */
static int aml_job_check_folders(const struct run_spec *spec, struct act_error *err)
{
    for (size_t i = 0; i < spec->n_folders; i++) {
        const struct run_folder *f = &spec->folders[i];
        if (f->link)
            return act_error_set(err, ACT_CONFIG,
                                 "folder '%s' is in a folder store, which no node of Azure can reach: put it into "
                                 "Blob Storage",
                                 f->name);
        if (strstr(f->path, "${{"))
            return act_error_set(err, ACT_CONFIG,
                                 "folder '%s' has the path '%s': Azure Machine Learning takes '${{' for an "
                                 "expression, choose another path",
                                 f->name, f->path);
        if (!act_utf8_valid(f->path, strlen(f->path)))
            return act_error_set(err, ACT_CONFIG,
                                 "the path of folder '%s' is not UTF-8, which a job of Azure Machine Learning "
                                 "cannot have",
                                 f->name);
    }
    return 0;
}

/* ---- environment, tags, properties ---- */

/* JSON has texts only: what is none would get lost. */
static int aml_job_check_environment(const struct run_spec *spec, struct act_error *err)
{
    for (size_t i = 0; i < spec->n_env; i++) {
        const char *name = spec->env[i].name, *value = spec->env[i].value ? spec->env[i].value : "";
        if (!act_utf8_valid(name, strlen(name)))
            return act_error_set(err, ACT_CONFIG,
                                 "the name of environment variable %zu is not UTF-8, which a job of Azure "
                                 "Machine Learning cannot have",
                                 i + 1);
        if (!act_utf8_valid(value, strlen(value)))
            return act_error_set(err, ACT_CONFIG,
                                 "the value of the environment variable '%s' is not UTF-8, which a job of Azure "
                                 "Machine Learning cannot have; encode it, for example as base64",
                                 name);
    }
    return 0;
}

static bool has_mpirun(const struct run_spec *spec)
{
    return spec->nodes * spec->procs_per_node > 1;
}

/* Open MPI sends SIGCONT, SIGTERM and SIGKILL at equal intervals: a second by default, too short to save anything. How
 * long the service waits for mpirun is undocumented, so both intervals together get the ten seconds that runs have
 * elsewhere. */
static char *kill_timeout(const struct run_spec *spec)
{
    int64_t grace_s = run_abort_grace_s(run_spec_variable(spec, "ACT_ABORT_GRACE"));

    return act_sprintf("%lld", (long long)(grace_s + 1) / 2);
}

json_t *azureml_own_environment(const struct azureml *a, const struct run_spec *spec)
{
    ACT_AUTOFREE char *timeout = kill_timeout(spec);
    ACT_AUTOFREE char *world = act_sprintf("%d", spec->nodes * spec->procs_per_node);
    json_t *env = json_object();

    if (has_mpirun(spec)) { /* version 4 and 5 */
        aml_job_set(env, "OMPI_MCA_odls_base_sigkill_timeout", timeout);
        aml_job_set(env, "PRTE_MCA_odls_base_sigkill_timeout", timeout);
    }
    if (a->kind == AZUREML_SINGULARITY) { /* as the official samples; WORLD_SIZE was 1 there, sometimes */
        aml_job_set(env, "JOB_EXECUTION_MODE", "Basic");
        aml_job_set(env, "AZUREML_COMPUTE_USE_COMMON_RUNTIME", "true");
        aml_job_set(env, "WORLD_SIZE", a->config->multi_process ? world : NULL);
    }
    return env;
}

static void add_environment_variables(const struct azureml *a, const struct run_spec *spec, json_t *job)
{
    json_t *env = azureml_own_environment(a, spec);

    for (size_t i = 0; i < spec->n_env; i++)
        aml_job_set(env, spec->env[i].name, spec->env[i].value);
    if (json_object_size(env))
        json_object_set(job, "environmentVariables", env);
    json_decref(env);
}

/* Adds the properties by which another machine reads the run back; the service takes texts only. */
static void aml_job_add_properties(const struct run_spec *spec, json_t *job)
{
    ACT_AUTOFREE char *gpus = act_sprintf("%d", spec->nodes * spec->gpus_per_node);
    CODEC_AUTOJSON json_t *argv = codec_json_strv_new(&spec->argv);
    ACT_AUTOFREE char *line = codec_json_line(argv);
    CODEC_AUTOJSON json_t *volumes = run_volumes_to_json(spec);
    ACT_AUTOFREE char *volume_line = codec_json_line(volumes);
    ACT_AUTOFREE char *tags = run_tags_line(spec->tags);
    CODEC_AUTOJSON json_t *setup = run_setup_to_json(spec);
    ACT_AUTOFREE char *setup_line = setup ? codec_json_line(setup) : NULL;
    json_t *p = json_object();

    aml_job_set(p, "act.version", ACT_VERSION);
    aml_job_set(p, "act.cmd", line);
    aml_job_set(p, "act.title", spec->title);
    aml_job_set(p, "act.name", spec->name);
    aml_job_set(p, "act.tags", tags);
    aml_job_set(p, "act.num_gpu", gpus);
    aml_job_set(p, "act.cluster", spec->cluster);
    aml_job_set(p, "act.package_key", spec->package_key);
    aml_job_set(p, "act.package_sha256", spec->package_sha256);
    aml_job_set(p, "act.resubmit_of", spec->resubmit_of);
    aml_job_set(p, "act.image", spec->image);
    aml_job_set(p, "act.timeout", spec->timeout);
    aml_job_set(p, "act.shm_size", spec->shm_size);
    aml_job_set(p, "act.volumes", json_array_size(volumes) ? volume_line : NULL);
    aml_job_set(p, "act.setup", setup_line);
    aml_job_set(p, "act.compile_args", spec->compile_args);
    aml_job_set(p, "act.sleep_if_fail", spec->sleep_if_fail ? "true" : NULL);
    aml_job_set(p, "act.sleep_if_succeed", spec->sleep_if_succeed ? "true" : NULL);
    json_object_set_new(job, "properties", p);
    json_object_set_new(job, "tags", json_pack("{s:s}", "act", "1"));
}

/* ---- where it runs ---- */

static const struct {
    int64_t least, most, usual; /* priority; most 0: there is none */
} priorities[] = {
    [AZUREML_MANAGED] = {0, 0, 0},
    [AZUREML_ITP] = {100, 200, 200},
    [AZUREML_SINGULARITY] = {1, 3, 3},
};

static int64_t priority_of(const struct azureml *a)
{
    return azureml_keys(a->config)->priority >= 0 ? azureml_keys(a->config)->priority : priorities[a->kind].usual;
}

static int check_priority(const struct azureml *a, struct act_error *err)
{
    int64_t given = azureml_keys(a->config)->priority, least = priorities[a->kind].least,
            most = priorities[a->kind].most;

    if (given < 0 || (given >= least && given <= most))
        return 0;
    if (!most)
        return act_error_set(err, ACT_CONFIG, "azureml.priority is for the platforms itp and singularity");
    return act_error_set(err, ACT_CONFIG, "azureml.priority is %lld: on the platform '%s' it is %lld to %lld",
                         (long long)given, a->config->platform, (long long)least, (long long)most);
}

/* Elastic runs have whole nodes. */
static int check_elastic(const struct azureml *a, const struct run_spec *spec, struct act_error *err)
{
    const struct act_strv *counts = &a->config->elastic_num_gpu;

    if (!counts->n || a->kind != AZUREML_ITP)
        return 0;
    if (!a->config->preemption_allowed)
        return act_error_set(err, ACT_CONFIG, "elastic_num_gpu needs 'preemption_allowed: true'");
    for (size_t i = 0; i < counts->n; i++) {
        int64_t gpus;
        if (!act_int_from_text(counts->v[i], &gpus) || spec->gpus_per_node <= 0 || gpus < spec->gpus_per_node ||
            gpus % spec->gpus_per_node)
            return act_error_set(err, ACT_CONFIG,
                                 "elastic_num_gpu has '%s': it must be a multiple of the %d GPUs that the run "
                                 "has on each node",
                                 counts->v[i], spec->gpus_per_node);
        if (i == 0 && gpus != (int64_t)spec->nodes * spec->gpus_per_node)
            return act_error_set(err, ACT_CONFIG,
                                 "elastic_num_gpu begins with %s, the number of GPUs that a run starts with, and this "
                                 "run has %d",
                                 counts->v[i], spec->nodes * spec->gpus_per_node);
    }
    return 0;
}

static json_t *node_counts(const struct azureml *a, const struct run_spec *spec)
{
    json_t *nodes = json_array();

    for (size_t i = 0; i < a->config->elastic_num_gpu.n; i++) {
        int64_t gpus;
        if (act_int_from_text(a->config->elastic_num_gpu.v[i], &gpus))
            json_array_append_new(nodes, json_integer(gpus / spec->gpus_per_node));
    }
    return nodes;
}

static json_t *itp_properties(const struct azureml *a, const struct run_spec *spec, const char *ssh_key)
{
    json_t *priority = json_pack("{s:I, s:b}", "job_priority", (json_int_t)priority_of(a), "is_preemptible",
                                 a->config->preemption_allowed);
    json_t *itp = json_pack("{s:{s:i}, s:o}", "resource_configuration", "gpu_count", spec->gpus_per_node,
                            "priority_configuration", priority);

    if (a->config->elastic_num_gpu.n) {
        json_object_set_new(priority, "node_count_set", node_counts(a, spec));
        json_object_set_new(priority, "scale_interval", json_integer(azureml_keys(a->config)->scale_interval));
    }
    if (ssh_key)
        json_object_set_new(itp, "interactive_configuration",
                            json_pack("{s:b, s:s}", "is_ssh_enabled", 1, "ssh_public_key", ssh_key));
    return json_pack("{s:o}", "itp", itp);
}

static json_t *singularity_properties(const struct azureml *a, const struct run_spec *spec)
{
    static const char *const words[] = {"Low", "Medium", "High"}; /* 1 to 3 */

    return json_pack("{s:{s:b, s:s, s:s, s:{s:i, s:i, s:i}}}", "AISuperComputer", "interactive", 0, "slaTier",
                     a->config->singularity_sla_tier, "priority", words[priority_of(a) - 1], "scalePolicy",
                     "autoScaleIntervalInSec", 36000, "maxInstanceTypeCount", spec->nodes, "minInstanceTypeCount",
                     spec->nodes);
}

/* Nodes of the service, which it takes back when they may be preempted; a cluster has its own word on that. */
static bool is_serverless(const struct azureml *a)
{
    return a->kind == AZUREML_MANAGED && (!a->config->compute_target || !*a->config->compute_target);
}

/* "512g" */
static int aml_job_check_shm_size(const struct azureml *a, struct act_error *err)
{
    const char *text = azureml_keys(a->config)->shm_size;
    size_t digits = text ? strspn(text, "0123456789") : 0;

    if (!text || (digits && text[digits] && strchr("bBkKmMgG", text[digits]) && !text[digits + 1]))
        return 0;
    return act_error_set(err, ACT_CONFIG, "azureml.shm_size is '%s': it must be a number and b, k, m or g, such as 64g",
                         text);
}

static int check_docker_args(const struct azureml *a, struct act_error *err)
{
    if (!azureml_keys(a->config)->docker_args || a->kind == AZUREML_MANAGED)
        return 0;
    return act_error_set(err, ACT_CONFIG, "azureml.docker_args is for managed clusters, not for the platform '%s'",
                         a->config->platform);
}

/* A configured API version may not know the priority, which is new in a preview: then it is sent only if configured. */
static json_t *singularity_queue(const struct azureml *a)
{
    const struct config *c = a->config;
    json_t *queue = json_pack("{s:s}", "jobTier", c->singularity_sla_tier);

    if (!azureml_keys(c)->api_version || azureml_keys(c)->priority >= 0)
        json_object_set_new(queue, "priority", json_integer(priority_of(a)));
    return queue;
}

static void add_resources(const struct azureml *a, const struct run_spec *spec, const char *ssh_key, json_t *job)
{
    const struct config *c = a->config;
    json_t *r = json_pack("{s:i}", "instanceCount", spec->nodes);

    aml_job_set(r, "shmSize", azureml_keys(c)->shm_size);
    aml_job_set(r, "dockerArgs", azureml_keys(c)->docker_args);
    aml_job_set(r, "instanceType",
                a->kind == AZUREML_SINGULARITY ? c->singularity_instance_type : azureml_keys(c)->instance_type);
    if (a->kind == AZUREML_ITP)
        json_object_set_new(r, "properties", itp_properties(a, spec, ssh_key));
    if (a->kind == AZUREML_SINGULARITY) {
        json_object_set_new(r, "properties", singularity_properties(a, spec));
        json_object_set_new(job, "queueSettings", singularity_queue(a));
    }
    if (is_serverless(a) && c->preemption_allowed)
        json_object_set_new(job, "queueSettings", json_pack("{s:s}", "jobTier", "Spot"));
    json_object_set_new(job, "resources", r);
}

/* An entrance to every node of a managed cluster; attached Kubernetes has its own way, see itp_properties(). */
static void add_services(const struct azureml *a, const char *ssh_key, json_t *job)
{
    if (ssh_key && a->kind == AZUREML_MANAGED)
        json_object_set_new(job, "services",
                            json_pack("{s:{s:s, s:{s:s}, s:{s:s}}}", "act_ssh", "jobServiceType", "SSH", "properties",
                                      "sshPublicKeys", ssh_key, "nodes", "nodesValueType", "All"));
}

static int check_ssh(const struct azureml *a, struct act_error *err)
{
    if (!azureml_keys(a->config)->ssh || a->kind != AZUREML_SINGULARITY)
        return 0;
    return act_error_set(err, ACT_CONFIG, "azureml.ssh is for the platforms aml and itp, not for '%s'",
                         a->config->platform);
}

/* Nothing starts a single process but the service itself. */
static void add_distribution(const struct run_spec *spec, json_t *job)
{
    if (has_mpirun(spec))
        json_object_set_new(
            job, "distribution",
            json_pack("{s:s, s:i}", "distributionType", "Mpi", "processCountPerInstance", spec->procs_per_node));
}

/* ---- limits and identity ---- */

/* Tells whether it is "P1DT2H3M4S" or a part of it (ISO 8601 in seconds). */
static bool is_iso_duration(const char *text)
{
    const char *unit = "DTHMS";
    bool any = false;

    if (*text++ != 'P')
        return false;
    while (*text) {
        size_t digits = strspn(text, "0123456789");
        const char *found = text[digits] ? strchr(unit, text[digits]) : NULL;
        if (!found || (digits > 0) == (*found == 'T') || (*found > 'D' && *found != 'T' && *unit == 'D'))
            return false;
        any = *found != 'T';
        unit = found + 1;
        text += digits + 1;
    }
    return any;
}

char *azureml_iso_duration(const char *text)
{
    int64_t seconds;

    if (is_iso_duration(text))
        return act_strdup(text);
    if (!act_int_from_text(text, &seconds) && !act_duration_from_text(text, &seconds))
        return NULL;
    return seconds > 0 ? act_sprintf("PT%lldS", (long long)seconds) : NULL;
}

static void add_limits(const struct azureml *a, json_t *job)
{
    const char *text = azureml_keys(a->config)->timeout;
    ACT_AUTOFREE char *iso = text ? azureml_iso_duration(text) : NULL;

    if (iso)
        json_object_set_new(job, "limits", json_pack("{s:s, s:s}", "jobLimitsType", "Command", "timeout", iso));
}

/* The job accesses storage as its submitter: the service wants a second token for that. */
static bool runs_as_user(const struct azureml *a)
{
    return act_streq(azureml_keys(a->config)->identity, "user");
}

static int check_identity(const struct azureml *a, struct act_error *err)
{
    const char *who = azureml_keys(a->config)->identity;

    if (!who || runs_as_user(a) || strcmp(who, "managed") == 0 || act_is_uuid(who) || *who == '/')
        return 0;
    return act_error_set(err, ACT_CONFIG,
                         "azureml.identity is '%s': it must be managed, user, or the client id (a UUID) or the "
                         "resource id (/subscriptions/...) of a managed identity",
                         who);
}

static void add_identity(const struct azureml *a, json_t *job)
{
    const char *who = azureml_keys(a->config)->identity;

    if (!who)
        return;
    json_t *identity = json_pack("{s:s}", "identityType", runs_as_user(a) ? "UserIdentity" : "Managed");
    if (act_is_uuid(who))
        aml_job_set(identity, "clientId", who);
    else if (*who == '/')
        aml_job_set(identity, "resourceId", who);
    json_object_set_new(job, "identity", identity);
}

/* ---- all of it ---- */

static int check_timeout(const struct azureml *a, struct act_error *err)
{
    const char *text = azureml_keys(a->config)->timeout;
    ACT_AUTOFREE char *iso = text ? azureml_iso_duration(text) : NULL;

    return !text || iso ? 0
                        : act_error_set(err, ACT_CONFIG,
                                        "azureml.timeout is '%s': it must be a time such as 90m, 24h or 7d", text);
}

int azureml_job_check(const struct azureml *a, const struct run_spec *spec, struct act_error *err)
{
    static int (*const of_config[])(const struct azureml *, struct act_error *) = {
        check_priority, aml_job_check_shm_size, check_docker_args, check_timeout, check_identity, check_ssh};
    int rc = aml_job_check_folders(spec, err);

    if (rc == 0)
        rc = aml_job_check_environment(spec, err);
    for (size_t i = 0; rc == 0 && i < sizeof(of_config) / sizeof(of_config[0]); i++)
        rc = of_config[i](a, err);
    return rc < 0 ? rc : check_elastic(a, spec, err);
}

/* Sets an id, decoded: in a body it is text, not a part of a URL. */
static void set_id(json_t *job, const char *key, const char *url)
{
    ACT_AUTOFREE char *id = url ? http_decode(url) : NULL;

    aml_job_set(job, key, id);
}

int azureml_job_body(const struct azureml *a, const struct run_spec *spec, const struct azureml_job_places *places,
                     json_t **out, struct act_error *err)
{
    ACT_AUTOFREE char *command = azureml_job_command(spec);
    int rc = azureml_job_check(a, spec, err);

    *out = NULL;
    if (rc < 0)
        return rc;
    CODEC_AUTOJSON json_t *job = json_object();
    aml_job_set(job, "jobType", "Command");
    aml_job_set(job, "command", command);
    set_id(job, "environmentId", places->environment_id);
    set_id(job, "computeId", places->compute_id);
    aml_job_set(job, "experimentName", spec->experiment);
    aml_job_set(job, "displayName", spec->id);
    aml_job_add_properties(spec, job);
    add_environment_variables(a, spec, job);
    add_data(spec, places, job);
    add_distribution(spec, job);
    add_resources(a, spec, places->ssh_key, job);
    add_services(a, places->ssh_key, job);
    add_identity(a, job);
    add_limits(a, job);
    *out = json_pack("{s:O}", "properties", job);
    return 0;
}
