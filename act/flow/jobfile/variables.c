/* variables.c - the variables of Batch AI that a job file uses, and those of them that nothing sets. */
#include <string.h>

#include "flow/jobfile/build.h"

#define PREFIX  "AZ_BATCHAI_"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

/* The variables that the agent or every line sets. */
static const char *const always[] = {"MOUNT_ROOT",      "JOB_MOUNT_ROOT",    "JOB_TEMP",           "JOB_TEMP_DIR",
                                     "SHARED_JOB_TEMP", "STDOUTERR_DIR",     "MPI_HOST_FILE",      "TASK_INDEX",
                                     "NUM_GPUS",        "NUM_GPUS_PER_NODE", "JOB_MASTER_NODE_IP", NULL};

/* The next "$AZ_BATCHAI_NAME" or "${AZ_BATCHAI_NAME" from text on: its name, with the length; NULL: none. */
static const char *next_variable(const char *text, size_t *out_len)
{
    for (; (text = strstr(text, PREFIX)); text += strlen(PREFIX)) {
        *out_len = strspn(text, LETTERS);
        if (text[-1] == '$' || text[-1] == '{')
            return text;
    }
    return NULL;
}

/* A place before the text is looked at. */
static const char *first_variable(const char *text, size_t *out_len)
{
    return *text ? next_variable(text + 1, out_len) : NULL;
}

bool job_has_variable(const char *text)
{
    size_t len;

    return first_variable(text, &len) != NULL;
}

static bool has_named(const json_t *list, const char *member, const char *name)
{
    size_t i;
    json_t *item;

    json_array_foreach(list, i, item) if (act_streq(job_text(item, member), name)) return true;
    return false;
}

static bool is_set_by_toolkit(const struct job_build *b, const char *name)
{
    const json_t *tensorflow = json_object_get(b->job, "tensorFlowSettings");

    if (strcmp(name, "PS_HOSTS") == 0 || strcmp(name, "WORKER_HOSTS") == 0)
        return json_is_object(tensorflow) && job_is_distributed(b, tensorflow);
    return (strcmp(name, "PYTORCH_BACKEND") == 0 || strcmp(name, "PYTORCH_INIT_METHOD") == 0) &&
           job_text(json_object_get(b->job, "pyTorchSettings"), "communicationBackend");
}

/* name: with the prefix */
static bool jobfile_variables_is_set(const struct job_build *b, const char *name)
{
    static const char input[] = "INPUT_", output[] = "OUTPUT_";
    const char *rest = name + strlen(PREFIX);

    for (size_t i = 0; always[i]; i++)
        if (strcmp(always[i], rest) == 0)
            return true;
    if (act_starts_with(rest, input) &&
        has_named(json_object_get(b->job, "inputDirectories"), "id", rest + strlen(input)))
        return true;
    if (act_starts_with(rest, output) &&
        has_named(json_object_get(b->job, "outputDirectories"), "id", rest + strlen(output)))
        return true;
    return is_set_by_toolkit(b, rest) || has_named(json_object_get(b->job, "environmentVariables"), "name", name) ||
           has_named(json_object_get(b->job, "secrets"), "name", name);
}

/* Adds a note for each variable, about the first place that has it. */
static void look_at_text(struct job_build *b, const char *place, const char *text, struct act_strv *said)
{
    size_t len;

    for (const char *at = first_variable(text, &len); at; at = next_variable(at + len, &len)) {
        ACT_AUTOFREE char *name = act_strndup(at, len);
        if (jobfile_variables_is_set(b, name) || act_strv_has(said, name))
            continue;
        act_strv_push(said, name);
        job_note(b, "%s: nothing sets '$%s'; it is empty there", place, name);
    }
}

static void look_at(struct job_build *b, const char *place, json_t *value, struct act_strv *said);

static void look_at_members(struct job_build *b, const char *place, json_t *value, struct act_strv *said)
{
    const char *name;
    json_t *member;

    json_object_foreach(value, name, member)
    {
        ACT_AUTOFREE char *at = act_sprintf("%s%s%s", place, *place ? "." : "", name);
        look_at(b, at, member, said);
    }
}

static void look_at(struct job_build *b, const char *place, json_t *value, struct act_strv *said)
{
    size_t i;
    json_t *item;

    if (json_is_string(value))
        look_at_text(b, place, json_string_value(value), said);
    else if (json_is_object(value))
        look_at_members(b, place, value, said);
    json_array_foreach(value, i, item)
    {
        ACT_AUTOFREE char *at = act_sprintf("%s[%zu]", place, i);
        look_at(b, at, item, said);
    }
}

static bool uses(const char *text, const char *variable)
{
    bool found = false;
    size_t len;

    for (const char *at = text ? first_variable(text, &len) : NULL; at && !found; at = next_variable(at + len, &len))
        found = strlen(variable) == len && strncmp(at, variable, len) == 0;
    return found;
}

/* The line sets the variable, so what refers to it is the job's. */
static bool run_uses(const struct run_spec *spec, const char *variable)
{
    bool found = false;

    for (size_t i = 0; i < spec->argv.n && !found; i++)
        found = uses(spec->argv.v[i], variable);
    for (size_t i = 0; i < spec->n_env && !found; i++)
        found = uses(spec->env[i].value, variable);
    return found;
}

int flow_check_shared_temp(struct platform *platform, const struct run_spec *spec, struct act_error *err)
{
    static const char shared[] = PREFIX "SHARED_JOB_TEMP";
    const struct platform_row *row = platform_row(platform);
    bool has_one = spec->nodes == 1 || (row->about.nodes_share_folder && !row->about.nodes_apart);

    if (!spec->title || has_one || !run_uses(spec, shared))
        return 0;
    return act_error_set(
        err, ACT_CONFIG,
        "'%.*s' uses $%s, a folder that the %d nodes of cluster '%s' do not share; name one below a mapped folder "
        "instead, such as $AZ_BATCHAI_MOUNT_ROOT/output",
        (int)strcspn(spec->title, ","), spec->title, shared, spec->nodes, spec->cluster);
}

void job_note_variables(struct job_build *b)
{
    ACT_AUTO(act_strv) said = {0};

    look_at(b, "", b->job, &said);
}
