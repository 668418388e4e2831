/* jobfile.c - turns a job file of Azure Batch AI into folders, an environment, a command and an image. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "config/config.h"
#include "flow/jobfile/build.h"

enum { FILE_MAX = 1 << 20 };

/* ---- folders ---- */

/* The part after the mount root, or the text itself if it is relative; NULL: neither. */
static const char *mounted_part(const char *path)
{
    static const char *const roots[] = {"$AZ_BATCHAI_MOUNT_ROOT/", "${AZ_BATCHAI_MOUNT_ROOT}/",
                                        "$AZ_BATCHAI_JOB_MOUNT_ROOT/", "${AZ_BATCHAI_JOB_MOUNT_ROOT}/"};

    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
        if (act_starts_with(path, roots[i]))
            return path + strlen(roots[i]);
    return strchr("/$~", *path) ? NULL : path;
}

static int jobfile_check_id(const struct job_build *b, const char *list, const char *id)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

    if (*id && strspn(id, letters) == strlen(id))
        return 0;
    return act_error_set(b->err, ACT_CONFIG,
                         "%s: 'properties.%s' has the id '%s', which cannot be part of a variable's name", b->file,
                         list, id);
}

/* Sets a variable to a path; one that is relative begins at the code root. */
static void export_path(struct job_build *b, const char *prefix, const char *id, const char *path)
{
    const char *rel = mounted_part(path);

    act_buf_addf(&b->line, "export %s_%s=", prefix, id);
    if (rel)
        act_buf_adds(&b->line, "\"$AZ_BATCHAI_MOUNT_ROOT\"/");
    job_add_quoted(&b->line, rel ? rel : path);
    act_buf_addc(&b->line, '\n');
}

static int add_inputs(struct job_build *b)
{
    static const char list[] = "inputDirectories";
    size_t i;
    json_t *item;

    json_array_foreach(json_object_get(b->job, list), i, item)
    {
        const char *id = job_text(item, "id"), *path = job_text(item, "path"), *rel = mounted_part(path);
        int rc = jobfile_check_id(b, list, id);
        if (rc < 0)
            return rc;
        export_path(b, "AZ_BATCHAI_INPUT", id, path);
        if (!rel || (!job_is_mapped(b, rel) && !job_is_in_code(b->config, rel)))
            job_note(b, "input '%s': '%s' is in no mapped folder; it must be %s", id, path,
                     rel ? "in the code" : "on the nodes");
    }
    return 0;
}

/* Each run gets its own folder, as in Batch AI, unless the job file says 'createNew': false. New string. */
static char *output_path(const json_t *item, bool is_new)
{
    const char *prefix = job_text(item, "pathPrefix"), *suffix = job_text(item, "pathSuffix");
    size_t n = strlen(prefix);

    while (n > 1 && prefix[n - 1] == '/')
        n--;
    return act_sprintf("%.*s%s%s%s", (int)n, prefix, is_new ? "/$ACT_RUN_ID" : "", suffix ? "/" : "",
                       suffix ? suffix : "");
}

/* Keeps an output that lies in no mapped folder in the run's own folder, to which the path then leads. */
static void keep_output(struct job_build *b, const char *id)
{
    act_buf_addf(
        &b->line,
        "act_kept=\"${AZ_BATCHAI_STDOUTERR_DIR%%/*}/" RUN_DIR_OUTPUTS "/%1$s\"\n"
        "mkdir -p \"$act_kept\" \"$(dirname \"$AZ_BATCHAI_OUTPUT_%1$s\")\" || exit\n"
        "[ -e \"$AZ_BATCHAI_OUTPUT_%1$s\" ] || ln -sn \"$act_kept\" \"$AZ_BATCHAI_OUTPUT_%1$s\" 2>/dev/null || "
        "[ -d \"$AZ_BATCHAI_OUTPUT_%1$s\" ] || exit\n",
        id);
}

static void note_place(struct job_build *b, const char *id, const char *prefix, bool is_kept)
{
    if (is_kept)
        job_note(b,
                 "output '%s': '%s' is in no mapped folder: it is kept with the run, in '" RUN_DIR_OUTPUTS
                 "/%s', which 'a q' does not fetch, but 'a d RUN:" RUN_DIR_OUTPUTS "/%s'",
                 id, prefix, id, id);
    else
        job_note(b, "output '%s': '%s' is in no mapped folder: what is written there stays on the node", id, prefix);
}

/* Tells whether the folder of a run, as its nodes see it, is the one that its files are read from. */
static bool keeps_runs(const struct job_build *b)
{
    return platform_find(b->config->platform)->about.nodes_share_folder;
}

/* Sets its variable and makes it. */
static void add_output(struct job_build *b, const json_t *item)
{
    const char *id = job_text(item, "id"), *prefix = job_text(item, "pathPrefix");
    bool is_new = !json_is_false(json_object_get(item, "createNew"));
    ACT_AUTOFREE char *path = output_path(item, is_new);
    const char *rel = mounted_part(path);
    bool is_mapped = rel && job_is_mapped(b, rel),
         is_kept = rel && !is_mapped && keeps_runs(b) && !job_is_in_code(b->config, rel);
    struct run_output output = {
        .id = act_strdup(id), .path = is_kept ? act_sprintf(RUN_DIR_OUTPUTS "/%s", id) : act_strdup(rel ? rel : path)};

    ACT_PUSH(b->out->outputs, b->out->n_outputs, output);
    export_path(b, "AZ_BATCHAI_OUTPUT", id, path);
    if (is_kept)
        keep_output(b, id);
    else if (is_new)
        act_buf_addf(&b->line, "mkdir -p \"$AZ_BATCHAI_OUTPUT_%s\" || exit\n", id);
    if (!is_mapped)
        note_place(b, id, prefix, is_kept);
    if (run_is_own_folder(id, strlen(id)))
        job_note(
            b, "output '%1$s': 'RUN:%1$s' is a folder of the run itself; the output is 'RUN:" RUN_DIR_OUTPUTS "/%1$s'",
            id);
}

static int jobfile_add_outputs(struct job_build *b)
{
    static const char list[] = "outputDirectories";
    size_t i;
    json_t *item;

    json_array_foreach(json_object_get(b->job, list), i, item)
    {
        int rc = jobfile_check_id(b, list, job_text(item, "id"));
        if (rc < 0)
            return rc;
        add_output(b, item);
    }
    return 0;
}

/* ---- the environment ---- */

static int jobfile_check_name(const struct job_build *b, const char *list, size_t i, const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

    if (*name && strspn(name, letters) == strlen(name) && (*name < '0' || *name > '9'))
        return 0;
    return act_error_set(b->err, ACT_CONFIG, "%s: 'properties.%s[%zu].name' is '%s', no name of a variable", b->file,
                         list, i, name);
}

/* Reads the value of a variable, of which only a secret may be in a key vault; *out is a new string. */
static int jobfile_value_of(struct job_build *b, const char *list, size_t i, const json_t *item, char **out)
{
    int rc = jobfile_check_name(b, list, i, job_text(item, "name"));

    *out = rc < 0 ? NULL : job_secret(item, "value", "valueSecretReference");
    if (rc == 0 && !*out)
        rc = act_error_set(b->err, ACT_CONFIG, "%s: 'properties.%s[%zu].value' is missing", b->file, list, i);
    return rc;
}

/* Adds the variables of a list to out, and to expanded the names of those whose values refer to variables of Batch
 * AI. */
static int add_variables(struct job_build *b, const char *list, struct act_strv *out, struct act_strv *expanded)
{
    size_t i;
    json_t *item;

    json_array_foreach(json_object_get(b->job, list), i, item)
    {
        ACT_AUTOFREE char *value = NULL;
        int rc = jobfile_value_of(b, list, i, item, &value);
        if (rc < 0)
            return rc;
        bool in_vault = config_is_in_vault(value);
        if (in_vault)
            job_note(b, "%s: '%s' is what your login reads at '%s'", list, job_text(item, "name"),
                     value + strlen(CONFIG_KEYVAULT));
        act_strv_pushf(out, "%s=%s", job_text(item, "name"), value);
        b->out->has_secrets |= out == &b->out->secrets && !in_vault;
        if (job_has_variable(value))
            act_strv_push(expanded, job_text(item, "name"));
    }
    return 0;
}

/* On the node, since the values may be secret and are no part of the line. The last reference in a value first. */
static const char expansion[] =
    "do\nact_value=${!act_name}\n"
    "while [[ $act_value =~ ^(.*)\\$(AZ_BATCHAI_[A-Za-z0-9_]+|\\{AZ_BATCHAI_[A-Za-z0-9_]+\\})(.*)$ ]]; do\n"
    "act_variable=${BASH_REMATCH[2]//[\\{\\}]/}\n"
    "act_value=${BASH_REMATCH[1]}${!act_variable}${BASH_REMATCH[3]}\n"
    "done\nexport \"$act_name=$act_value\"\ndone\n";

static int add_job_environment(struct job_build *b)
{
    ACT_AUTO(act_strv) expanded = {0};
    int rc = add_variables(b, "environmentVariables", &b->out->env, &expanded);

    if (rc == 0)
        rc = add_variables(b, "secrets", &b->out->secrets, &expanded);
    if (rc == 0 && expanded.n) {
        act_buf_adds(&b->line, "for act_name in");
        for (size_t i = 0; i < expanded.n; i++)
            act_buf_addf(&b->line, " %s", expanded.v[i]);
        act_buf_addf(&b->line, "; %s", expansion);
    }
    return rc;
}

/* ---- the preparation ---- */

/* Once on each node, before any of its processes continues. */
static void add_preparation(struct job_build *b)
{
    const char *command = job_text(json_object_get(b->job, "jobPreparation"), "commandLine");

    if (!command)
        return;
    act_buf_adds(&b->line, "act_prepared=\"$AZ_BATCHAI_JOB_TEMP/prepared-${ACT_ATTEMPT:-1}\"\n"
                           "if [ \"${LOCAL_RANK:-0}\" = 0 ]; then\n"
                           "echo \"" RUN_LOG_PREPARATION "\"\n(\n");
    act_buf_adds(&b->line, command);
    act_buf_adds(&b->line, "\n) || {\nact_status=$?\n"
                           "echo \"" RUN_LOG_AGENT "jobPreparation ended with status $act_status\" >&2\n"
                           "exit $act_status\n}\n"
                           "echo \"" RUN_LOG_AGENT "jobPreparation has ended\"\n"
                           ": >\"$act_prepared\" || exit\n"
                           "else\nwhile [ ! -e \"$act_prepared\" ]; do sleep 0.2; done\nfi\n");
}

/* ---- the image, and how long ---- */

/* The image may or may not begin with the server. */
static void take_image(struct flow_job_file *out, const char *server, const char *image)
{
    const char *scheme = server ? strstr(server, "://") : NULL;
    const char *host = scheme ? scheme + strlen("://") : server;
    int n = host ? (int)strcspn(host, "/") : 0;

    if (n == 0 || (strncmp(image, host, (size_t)n) == 0 && image[n] == '/'))
        out->image = act_strdup(image);
    else
        out->image = act_sprintf("%.*s/%s", n, host, image);
    out->registry = n > 0 ? act_strndup(host, (size_t)n) : config_image_registry(image);
}

static int jobfile_take_credentials(struct job_build *b, const json_t *credentials)
{
    const char *username = job_text(credentials, "username");
    ACT_AUTOFREE char *password = job_secret(credentials, "password", "passwordSecretReference");
    static const char place[] = "containerSettings.imageSourceRegistry.credentials";

    if (!credentials || (!username && !password))
        return 0;
    if (!username || !password)
        return act_error_set(b->err, ACT_CONFIG, "%s: 'properties.%s.%s' is missing", b->file, place,
                             username ? "password" : "username");
    b->out->username = act_strdup(username);
    b->out->has_secrets |= !config_is_in_vault(password);
    b->out->password = act_strdup(password);
    return 0;
}

static int take_shm_size(struct job_build *b, const char *text)
{
    static const char units[] = {'b', 'k', 'm', 'g'};
    uint64_t bytes;
    size_t unit = 0;

    if (!text)
        return 0;
    if (!job_bytes(text, &bytes))
        return act_error_set(b->err, ACT_CONFIG,
                             "%s: 'properties.containerSettings.shmSize' is '%s': it must be a size such as 16g",
                             b->file, text);
    for (; unit + 1 < sizeof(units) && bytes % 1024 == 0; unit++)
        bytes /= 1024;
    b->out->shm_size = act_sprintf("%llu%c", (unsigned long long)bytes, units[unit]);
    return 0;
}

static int take_container(struct job_build *b)
{
    const json_t *settings = json_object_get(b->job, "containerSettings"),
                 *registry = json_object_get(settings, "imageSourceRegistry");
    const char *image = job_text(registry, "image");

    if (!image)
        return 0;
    take_image(b->out, job_text(registry, "serverUrl"), image);
    int rc = jobfile_take_credentials(b, json_object_get(registry, "credentials"));
    return rc < 0 ? rc : take_shm_size(b, job_text(settings, "shmSize"));
}

static int take_limit(struct job_build *b)
{
    const char *text = job_text(json_object_get(b->job, "constraints"), "maxWallClockTime");

    if (!text || job_seconds(text, &b->out->limit_s))
        return 0;
    return act_error_set(b->err, ACT_CONFIG,
                         "%s: 'properties.constraints.maxWallClockTime' is '%s': it must be a time such as "
                         "PT12H, P7D or 7.00:00:00",
                         b->file, text);
}

/* ---- all of it ---- */

static void note_unused(struct job_build *b)
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
            job_note(b, "%s is not used: %s", rows[i].member, rows[i].instead);
    }
}

/* The temporary folder of a run may be one for all nodes; Batch AI's was one of each node, and another for all. */
static const char variables[] =
    "export AZ_BATCHAI_MOUNT_ROOT=\"$PWD\" AZ_BATCHAI_JOB_MOUNT_ROOT=\"$PWD\" "
    "AZ_BATCHAI_TASK_INDEX=\"${RANK:-0}\" AZ_BATCHAI_NUM_GPUS_PER_NODE=\"$AZ_BATCHAI_NUM_GPUS\" "
    "AZ_BATCHAI_SHARED_JOB_TEMP=\"$AZ_BATCHAI_JOB_TEMP\" AZ_BATCHAI_JOB_TEMP_DIR=\"$AZ_BATCHAI_JOB_TEMP\" "
    "AZ_BATCHAI_JOB_TEMP=\"$AZ_BATCHAI_JOB_TEMP/node-${NODE_RANK:-0}\"\n"
    "mkdir -p \"$AZ_BATCHAI_JOB_TEMP\" || exit\n";

/* Nodes would start, and be paid for, to find that the program is not there. */
static int check_script(const struct job_build *b, const char *settings, const char *script)
{
    const char *rel = script ? mounted_part(script) : NULL;

    for (size_t i = 0; rel && i < b->missing.n; i++) {
        const char *path = b->missing.v[i];
        size_t n = strlen(path);
        if (strncmp(rel, path, n) == 0 && rel[n] == '/')
            return act_error_set(b->err, ACT_CONFIG,
                                 "%s: 'properties.%s.pythonScriptFilePath' is '%s', in the volume '%s', which is not "
                                 "mounted: map a folder of that name, or put the script into the code",
                                 b->file, settings, script, path);
    }
    return 0;
}

static int check_scripts(const struct job_build *b)
{
    const char *name;
    json_t *settings;
    int rc = 0;

    json_object_foreach(b->job, name, settings)
    {
        rc = rc < 0 ? rc : check_script(b, name, job_text(settings, "pythonScriptFilePath"));
    }
    return rc;
}

static int jobfile_build(struct job_build *b)
{
    static int (*const steps[])(struct job_build *) = {job_take_volumes,    add_inputs,     jobfile_add_outputs,
                                                       add_job_environment, take_container, take_limit};
    int rc = 0;

    act_buf_adds(&b->line, variables);
    for (size_t i = 0; rc == 0 && i < sizeof(steps) / sizeof(steps[0]); i++)
        rc = steps[i](b);
    if (rc < 0)
        return rc;
    add_preparation(b);
    rc = job_add_command(b);
    if (rc == 0)
        rc = check_scripts(b);
    if (rc < 0)
        return rc;
    note_unused(b);
    job_note_variables(b);
    return 0;
}

int flow_job_file_parse(json_t *json, const char *name, const struct config *config,
                        const struct flow_job_storage *storage, struct flow_job_file *out, struct act_error *err)
{
    struct job_build b = {.file = name,
                          .config = config,
                          .storage = storage,
                          .job = json_object_get(json, "properties"),
                          .out = out,
                          .err = err};

    *out = (struct flow_job_file){0};
    int rc = flow_job_file_check(json, name, err);
    if (rc == 0)
        rc = jobfile_build(&b);
    out->line = act_buf_steal(&b.line);
    act_strv_release(&b.missing);
    if (rc < 0)
        flow_job_file_release(out);
    return rc;
}

/* A job file with secrets is easily packed with the code. The package of this run leaves it out, as the account file of
 * a folder. */
static void note_secrets(const char *path, const struct config *config, struct flow_job_file *job)
{
    static const char apart[] = "aux_data/configs/";
    ACT_AUTOFREE char *real = realpath(path, NULL);
    ACT_AUTOFREE char *root = config->project_root ? realpath(config->project_root, NULL) : NULL;
    const char *rel = real && root && act_starts_with(real, root) ? real + strlen(root) : "";
    ACT_AUTOFREE char *file = *rel == '/' ? act_path_join(config->project_root, rel + 1) : act_strdup(real);

    for (size_t i = 0; i < job->n_volumes; i++)
        act_str_replace(&job->volumes[i].account_file, file);
    if (job->has_secrets && *rel == '/' && !act_starts_with(rel + 1, apart))
        act_strv_pushf(&job->notes, "'%s' holds secrets and lies in the project: in '%s' no package has it", path,
                       apart);
}

/* Other tools read these in such files; JSON does not have them. */
static const struct {
    const char *begin, *what;
} faults[] = {{"//", "a comment"}, {"/*", "a comment"}, {"#", "a comment"}, {",", "a comma with nothing behind it"}};

/* Returns which fault begins at that place, outside of a text; NULL: none. */
static const char *fault_at(const char *at)
{
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        size_t n = strlen(faults[i].begin);
        if (strncmp(at, faults[i].begin, n) != 0)
            continue;
        if (*at != ',' || strchr("]}", at[n + strspn(at + n, " \t\r\n")]))
            return faults[i].what;
    }
    return NULL;
}

/* Names the first of them in a text that is not JSON; false: there is none. */
static bool name_fault(const char *path, const char *text, struct act_error *err)
{
    bool inside = false;
    int line = 1;

    for (const char *at = text, *begin = text; *at; at++) {
        const char *fault = inside ? NULL : fault_at(at);
        if (fault) {
            act_error_set(err, ACT_CONFIG, "%s:%d:%d: this is %s, which JSON does not have: take it out", path, line,
                          (int)(at - begin) + 1, fault);
            return true;
        }
        if (*at == '"')
            inside = !inside;
        else if (*at == '\\' && inside && at[1])
            at++;
        if (*at != '\n')
            continue;
        line++;
        begin = at + 1;
    }
    return false;
}

static const char byte_order_mark[] = "\xef\xbb\xbf"; /* as editors on Windows write one */

int flow_batch_file_read(const char *path, const char *is_not, json_t **out, struct act_error *err)
{
    ACT_AUTOFREE char *text = NULL;
    size_t len;
    int rc = act_file_read(path, FILE_MAX, &text, &len, err);

    *out = NULL;
    if (rc < 0)
        return rc;
    size_t mark = act_starts_with(text, byte_order_mark) ? strlen(byte_order_mark) : 0;
    if (text[mark + strspn(text + mark, " \t\r\n")] != '{')
        return act_error_set(err, ACT_CONFIG, "'%s' is not %s", path, is_not);
    if (codec_json_parse(text + mark, len - mark, path, out, err) == 0)
        return 0;
    if (!name_fault(path, text + mark, err))
        err->code = ACT_CONFIG;
    return -ACT_CONFIG;
}

int flow_job_file_read(const char *path, const struct config *config, const struct flow_job_storage *storage,
                       struct flow_job_file *out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *json = NULL;
    int rc = flow_batch_file_read(path,
                                  "a job file, which is JSON and begins with '{'; a program of the project runs by its "
                                  "command: a submit python3 train.py",
                                  &json, err);

    *out = (struct flow_job_file){0};
    if (rc == 0)
        rc = flow_job_file_parse(json, path, config, storage, out, err);
    if (rc == 0)
        note_secrets(path, config, out);
    return rc;
}

void flow_job_file_release(struct flow_job_file *job)
{
    free(job->line);
    free(job->title);
    free(job->image);
    free(job->registry);
    free(job->username);
    act_wipe(&job->password);
    free(job->shm_size);
    for (size_t i = 0; i < job->n_volumes; i++)
        config_folder_release(&job->volumes[i]);
    free(job->volumes);
    for (size_t i = 0; i < job->n_outputs; i++) {
        free(job->outputs[i].id);
        free(job->outputs[i].path);
    }
    free(job->outputs);
    act_strv_release(&job->env);
    act_strv_release(&job->secrets);
    act_strv_release(&job->notes);
    *job = (struct flow_job_file){0};
}
