/* job_file.c - what a job file of Azure Batch AI comes to: a command, an environment, a size. */
#include "flow/job_file.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "codec/json.h"
#include "run/run.h"

enum { FILE_MAX = 1 << 20 };

/* ---- what it comes to ---- */

struct build {
    const char *file;
    const struct config *config;
    const json_t *job;
    struct flow_job_file *out;
    struct act_buf line;
    struct act_error *err;
};

static void note(struct build *b, const char *fmt, ...) ACT_PRINTF(2, 3);
static void note(struct build *b, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) >= 0)
        act_strv_take(&b->out->notes, text);
    va_end(ap);
}

static const char *text_of(const json_t *object, const char *key)
{
    return codec_json_str(object, key, NULL);
}

/* In double quotes, in which variables still stand for their values. */
static void add_quoted(struct act_buf *line, const char *text)
{
    act_buf_addc(line, '"');
    for (; *text; text++) {
        if (strchr("\"`", *text) || (*text == '\\' && text[1] != '$'))
            act_buf_addc(line, '\\');
        act_buf_addc(line, *text);
    }
    act_buf_addc(line, '"');
}

/* ---- paths ---- */

/* What stands behind the place where volumes are mounted, or the text itself when that is relative; NULL: neither. */
static const char *mounted_part(const char *path)
{
    static const char *const roots[] = {"$AZ_BATCHAI_MOUNT_ROOT/", "${AZ_BATCHAI_MOUNT_ROOT}/",
                                        "$AZ_BATCHAI_JOB_MOUNT_ROOT/", "${AZ_BATCHAI_JOB_MOUNT_ROOT}/"};

    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
        if (act_starts_with(path, roots[i]))
            return path + strlen(roots[i]);
    return strchr("/$~", *path) ? NULL : path;
}

static bool is_mapped(const struct config *config, const char *rel)
{
    for (size_t i = 0; i < config->n_folders; i++) {
        const char *name = config->folders[i].name;
        size_t n = name ? strlen(name) : 0;
        if (n && strncmp(rel, name, n) == 0 && (rel[n] == '/' || rel[n] == '\0'))
            return true;
    }
    return false;
}

static int check_id(const struct build *b, const char *list, const char *id)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

    if (*id && strspn(id, letters) == strlen(id))
        return 0;
    return act_error_set(b->err, ACT_CONFIG,
                         "%s: 'properties.%s' has the id '%s', which cannot be part of a variable's name",
                         b->file, list, id);
}

/* Sets a variable to a path; one that is relative begins at the code root. */
static void export_path(struct build *b, const char *prefix, const char *id, const char *path)
{
    const char *rel = mounted_part(path);

    act_buf_addf(&b->line, "export %s_%s=", prefix, id);
    if (rel)
        act_buf_adds(&b->line, "\"$AZ_BATCHAI_MOUNT_ROOT\"/");
    add_quoted(&b->line, rel ? rel : path);
    act_buf_addc(&b->line, '\n');
}

static int add_inputs(struct build *b)
{
    static const char list[] = "inputDirectories";
    size_t i;
    json_t *item;

    json_array_foreach(json_object_get(b->job, list), i, item)
    {
        const char *id = text_of(item, "id"), *path = text_of(item, "path"), *rel = mounted_part(path);
        int rc = check_id(b, list, id);
        if (rc < 0)
            return rc;
        export_path(b, "AZ_BATCHAI_INPUT", id, path);
        if (!rel || !is_mapped(b->config, rel))
            note(b, "input '%s': '%s' is in no mapped folder; it must be %s", id, path,
                 rel ? "in the code" : "on the nodes");
    }
    return 0;
}

/* A folder of its own for each run, as there. */
static int add_outputs(struct build *b)
{
    static const char list[] = "outputDirectories";
    size_t i;
    json_t *item;

    json_array_foreach(json_object_get(b->job, list), i, item)
    {
        const char *id = text_of(item, "id"), *prefix = text_of(item, "pathPrefix"),
                   *suffix = text_of(item, "pathSuffix"), *rel = mounted_part(prefix);
        size_t n = strlen(prefix);
        int rc = check_id(b, list, id);
        if (rc < 0)
            return rc;
        while (n > 1 && prefix[n - 1] == '/')
            n--;
        ACT_AUTOFREE char *path =
            act_sprintf("%.*s/$ACT_RUN_ID%s%s", (int)n, prefix, suffix ? "/" : "", suffix ? suffix : "");
        export_path(b, "AZ_BATCHAI_OUTPUT", id, path);
        act_buf_addf(&b->line, "mkdir -p \"$AZ_BATCHAI_OUTPUT_%s\" || exit\n", id);
        if (!rel || !is_mapped(b->config, rel))
            note(b, "output '%s': '%s' is in no mapped folder: what is written there stays on the node", id,
                 prefix);
    }
    return 0;
}

/* ---- the rest that is no command ---- */

static void note_volumes(struct build *b)
{
    static const char *const kinds[] = {"azureFileShares", "azureBlobFileSystems", "fileServers",
                                        "unmanagedFileSystems"};
    const json_t *volumes = json_object_get(b->job, "mountVolumes");
    size_t i;
    json_t *item;

    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        json_array_foreach(json_object_get(volumes, kinds[k]), i, item)
        {
            const char *path = text_of(item, "relativeMountPath");
            note(b,
                 is_mapped(b->config, path)
                     ? "mountVolumes.%s: the mapped folder stands for the volume at '%s'"
                     : "mountVolumes.%s: the volume at '%s' is not mounted; map a folder of that name in the "
                       "cluster file",
                 kinds[k], path);
        }
}

static void add_pairs(struct build *b, const char *list, bool secret)
{
    size_t i;
    json_t *item;

    json_array_foreach(json_object_get(b->job, list), i, item)
    {
        const char *name = text_of(item, "name"), *value = text_of(item, "value");
        if (!value) {
            note(b, "secrets: '%s' is in a key vault, which is not asked: the variable is not set", name);
            continue;
        }
        act_strv_pushf(&b->out->env, "%s=%s", name, value);
        if (secret && !run_env_is_secret(name, value))
            note(b, "secrets: nothing in the name '%s' says that it is secret; it will be shown", name);
    }
}

static int check_names(const struct build *b, const char *list)
{
    size_t i;
    json_t *item;

    json_array_foreach(json_object_get(b->job, list), i, item)
    {
        const char *name = text_of(item, "name");
        if (!*name || strchr(name, '='))
            return act_error_set(b->err, ACT_CONFIG,
                                 "%s: 'properties.%s[%zu].name' is '%s', no name of a variable", b->file,
                                 list, i, name);
    }
    return 0;
}

static void take_container(struct build *b)
{
    const json_t *settings = json_object_get(b->job, "containerSettings"),
                 *registry = json_object_get(settings, "imageSourceRegistry");
    const char *server = text_of(registry, "serverUrl"), *image = text_of(registry, "image");
    const char *scheme = server ? strstr(server, "://") : NULL;

    if (!image)
        return;
    server = scheme ? scheme + strlen("://") : server;
    b->out->image = server && *server ? act_sprintf("%.*s/%s", (int)strcspn(server, "/"), server, image)
                                      : act_strdup(image);
    if (json_is_object(json_object_get(registry, "credentials")))
        note(
            b,
            "containerSettings: the credentials are not used; those of the registry are in the cluster file");
    if (text_of(settings, "shmSize"))
        note(b, "containerSettings.shmSize is not used; azureml.shm_size of the cluster file says it");
}

static void note_unused(struct build *b)
{
    static const struct {
        const char *member, *instead;
    } rows[] = {{"cluster", "the run goes to the cluster of -c"},
                {"stdOutErrPathPrefix", "'a logs' shows what is written"},
                {"experimentName", "experiment_name of the cluster file says it"},
                {"schedulingPriority", "the cluster file says it"},
                {"priority", "the cluster file says it"}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const json_t *value = json_object_get(b->job, rows[i].member);
        if (value && !json_is_null(value))
            note(b, "%s is not used: %s", rows[i].member, rows[i].instead);
    }
}

/* ---- the command ---- */

/* What the settings of a toolkit come to: a line for the shell. */
typedef int toolkit_fn(struct build *b, const json_t *settings, struct act_buf *command);

static int python(struct build *b, const json_t *settings, const char *arguments, struct act_buf *command)
{
    const char *interpreter = text_of(settings, "pythonInterpreterPath"),
               *script = text_of(settings, "pythonScriptFilePath");

    (void)b;
    if (interpreter)
        add_quoted(command, interpreter);
    else
        act_buf_adds(command, "python");
    act_buf_addc(command, ' ');
    add_quoted(command, script);
    if (arguments)
        act_buf_addf(command, " %s", arguments);
    return 0;
}

static int run_python(struct build *b, const json_t *settings, struct act_buf *command)
{
    return python(b, settings, text_of(settings, "commandLineArgs"), command);
}

/* Only the first node had it; the others were there for what it starts itself. */
static int run_custom(struct build *b, const json_t *settings, struct act_buf *command)
{
    if (b->out->nodes > 1) {
        act_buf_adds(command, "[ \"${RANK:-0}\" = 0 ] || exit 0\n");
        note(
            b,
            "customToolkitSettings: the command runs on the first node only; customMpiSettings runs it on all");
    }
    act_buf_adds(command, text_of(settings, "commandLine"));
    return 0;
}

static int run_mpi(struct build *b, const json_t *settings, struct act_buf *command)
{
    (void)b;
    act_buf_adds(command, text_of(settings, "commandLine"));
    return 0;
}

static int run_pytorch(struct build *b, const json_t *settings, struct act_buf *command)
{
    const char *backend = text_of(settings, "communicationBackend");

    if (backend) {
        act_buf_adds(command, "export AZ_BATCHAI_PYTORCH_BACKEND=\"");
        for (const char *c = backend; *c; c++)
            if (isalnum((unsigned char)*c))
                act_buf_addc(command, (char)tolower((unsigned char)*c));
        act_buf_adds(command, "\"\nexport AZ_BATCHAI_PYTORCH_INIT_METHOD="
                              "\"tcp://${MASTER_ADDR:-127.0.0.1}:${MASTER_PORT:-23456}\"\n");
    }
    return run_python(b, settings, command);
}

static int run_tensorflow(struct build *b, const json_t *settings, struct act_buf *command)
{
    if (b->out->nodes > 1 || codec_json_int(settings, "workerCount", 1) > 1)
        return act_error_set(
            b->err, ACT_CONFIG,
            "%s: 'properties.tensorFlowSettings' asks for workers and parameter servers, which "
            "nothing starts; make it a job of one node, or start the script with "
            "'customMpiSettings'",
            b->file);
    if (text_of(settings, "workerCommandLineArgs") || text_of(settings, "parameterServerCommandLineArgs"))
        note(b, "tensorFlowSettings: only the master is started, with masterCommandLineArgs");
    return python(b, settings, text_of(settings, "masterCommandLineArgs"), command);
}

/* A program that reads a configuration file, or a script. */
static int run_configured(struct build *b, const json_t *settings, const char *toolkit, const char *program,
                          struct act_buf *command)
{
    const char *config = text_of(settings, "configFilePath"),
               *arguments = text_of(settings, "commandLineArgs");

    if (!config == !text_of(settings, "pythonScriptFilePath"))
        return act_error_set(b->err, ACT_CONFIG,
                             "%s: 'properties.%s' needs either 'configFilePath' or 'pythonScriptFilePath'",
                             b->file, toolkit);
    if (!config)
        return run_python(b, settings, command);
    act_buf_adds(command, program);
    add_quoted(command, config);
    if (arguments)
        act_buf_addf(command, " %s", arguments);
    return 0;
}

static int run_cntk(struct build *b, const json_t *settings, struct act_buf *command)
{
    return run_configured(b, settings, "cntkSettings", "cntk configFile=", command);
}

static int run_caffe(struct build *b, const json_t *settings, struct act_buf *command)
{
    return run_configured(b, settings, "caffeSettings", "caffe train --solver=", command);
}

static const struct {
    const char *name;
    toolkit_fn *run;
} toolkits[] = {
    {"customToolkitSettings", run_custom},  {"customMpiSettings", run_mpi},  {"pyTorchSettings", run_pytorch},
    {"tensorFlowSettings", run_tensorflow}, {"horovodSettings", run_python}, {"cntkSettings", run_cntk},
    {"chainerSettings", run_python},        {"caffeSettings", run_caffe},    {"caffe2Settings", run_python},
};

/* Once on each node, before any of its processes goes on. */
static void add_preparation(struct build *b)
{
    const char *command = text_of(json_object_get(b->job, "jobPreparation"), "commandLine");

    if (!command)
        return;
    act_buf_adds(&b->line,
                 "prepared=\"${AZ_BATCHAI_JOB_TEMP:-.}/prepared-${NODE_RANK:-0}-${ACT_ATTEMPT:-1}\"\n"
                 "if [ \"${LOCAL_RANK:-0}\" = 0 ]; then\n"
                 "mkdir -p \"${AZ_BATCHAI_JOB_TEMP:-.}\" && (\n");
    act_buf_adds(&b->line, command);
    act_buf_adds(&b->line, "\n) || exit\n: >\"$prepared\" || exit\n"
                           "else\nwhile [ ! -e \"$prepared\" ]; do sleep 0.2; done\nfi\n");
}

/* processCount is that of all nodes together. */
static int take_size(struct build *b, const char *toolkit, const json_t *settings)
{
    int64_t nodes = codec_json_int(b->job, "nodeCount", 1),
            n = codec_json_int(settings, "processCount", nodes);

    if (n % nodes != 0)
        return act_error_set(b->err, ACT_CONFIG,
                             "%s: 'properties.%s.processCount' is %lld, which %lld nodes cannot share evenly",
                             b->file, toolkit, (long long)n, (long long)nodes);
    b->out->nodes = (int)nodes;
    b->out->procs_per_node = (int)(n / nodes);
    return 0;
}

static int find_toolkit(struct build *b, size_t *out)
{
    enum { N = sizeof(toolkits) / sizeof(toolkits[0]) };
    size_t found = N;

    for (size_t i = 0; i < N; i++) {
        if (!json_is_object(json_object_get(b->job, toolkits[i].name)))
            continue;
        if (found < N)
            return act_error_set(b->err, ACT_CONFIG,
                                 "%s: 'properties' has both '%s' and '%s': a job has one of them", b->file,
                                 toolkits[found].name, toolkits[i].name);
        found = i;
    }
    *out = found;
    return found < N
               ? 0
               : act_error_set(b->err, ACT_CONFIG,
                               "%s: 'properties' says nothing to run, such as 'customToolkitSettings' or "
                               "'pyTorchSettings'",
                               b->file);
}

static int add_command(struct build *b)
{
    size_t kit = 0;
    int rc = find_toolkit(b, &kit);

    if (rc < 0)
        return rc;
    const json_t *settings = json_object_get(b->job, toolkits[kit].name);
    rc = take_size(b, toolkits[kit].name, settings);
    return rc < 0 ? rc : toolkits[kit].run(b, settings, &b->line);
}

static int build(struct build *b)
{
    int rc = check_names(b, "environmentVariables");

    if (rc == 0)
        rc = check_names(b, "secrets");
    act_buf_adds(&b->line, "export AZ_BATCHAI_MOUNT_ROOT=\"$PWD\" AZ_BATCHAI_JOB_MOUNT_ROOT=\"$PWD\" "
                           "AZ_BATCHAI_TASK_INDEX=\"${RANK:-0}\"\n");
    if (rc == 0)
        rc = add_inputs(b);
    if (rc == 0)
        rc = add_outputs(b);
    add_preparation(b);
    if (rc == 0)
        rc = add_command(b);
    if (rc < 0)
        return rc;
    add_pairs(b, "environmentVariables", false);
    add_pairs(b, "secrets", true);
    take_container(b);
    b->out->timeout = act_strdup(text_of(json_object_get(b->job, "constraints"), "maxWallClockTime"));
    note_volumes(b);
    note_unused(b);
    return 0;
}

int flow_job_file_parse(json_t *json, const char *name, const struct config *config,
                        struct flow_job_file *out, struct act_error *err)
{
    struct build b = {
        .file = name, .config = config, .job = json_object_get(json, "properties"), .out = out, .err = err};

    *out = (struct flow_job_file){0};
    int rc = flow_job_file_check(json, name, err);
    if (rc == 0)
        rc = build(&b);
    out->line = act_buf_steal(&b.line);
    if (rc < 0)
        flow_job_file_release(out);
    return rc;
}

int flow_job_file_read(const char *path, const struct config *config, struct flow_job_file *out,
                       struct act_error *err)
{
    CODEC_AUTOJSON json_t *json = NULL;
    int rc = codec_json_read(path, FILE_MAX, &json, err);

    *out = (struct flow_job_file){0};
    return rc < 0 ? rc : flow_job_file_parse(json, path, config, out, err);
}

void flow_job_file_release(struct flow_job_file *job)
{
    free(job->line);
    free(job->image);
    free(job->timeout);
    act_strv_release(&job->env);
    act_strv_release(&job->notes);
    *job = (struct flow_job_file){0};
}
