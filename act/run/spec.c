/* spec.c - run.json: its members, and what they must be to one another. */
#include <string.h>

#include "base/path.h"
#include "codec/fields.h"
#include "codec/json.h"
#include "run/run_internal.h"

enum { SPEC_VERSION = 1, NODES_MAX = 1 << 16, PER_NODE_MAX = 1 << 12 };

/* ---- what texts must be ---- */

static bool spec_is_sha256(const char *text)
{
    return !*text || act_is_hex(text, ACT_SHA256_HEX - 1);
}

static bool spec_is_folder_name(const char *text)
{
    return act_path_is_safe(text, strlen(text)) && !strchr(text, '/');
}

static bool spec_is_absolute(const char *text)
{
    return text[0] == '/';
}

static bool spec_is_variable(const char *text)
{
    return *text && !strchr(text, '=');
}

/* ---- folders, outputs and variables ---- */

static int spec_check_folder(const void *record, struct act_error *err)
{
    const struct run_folder *folder = record;

    return folder->mode != RUN_FOLDER_PATH || folder->link
               ? 0
               : act_error_set(err, ACT_FAIL, "'link' must be an absolute path where 'mode' is path");
}

static const struct field folder_rows[] = {
    FIELD_TEXT(struct run_folder, name, "name", .flags = FIELD_REQUIRED, .good = spec_is_folder_name,
               .must = "a folder name without slashes"),
    FIELD_TEXT(struct run_folder, store, "store", .flags = FIELD_REQUIRED),
    FIELD_TEXT(struct run_folder, path, "path", .flags = FIELD_REQUIRED),
    FIELD_TEXT(struct run_folder, link, "link", .good = spec_is_absolute, .must = "an absolute path"),
    FIELD_TEXT(struct run_folder, datastore, "datastore"),
    FIELD_WORD(struct run_folder, mode, run_folder_mode_names, "mode", .flags = FIELD_REQUIRED,
               .must = "rw_mount, ro_mount, download, upload or path"),
};
static const struct fields folder_fields = FIELDS("folder", struct run_folder, folder_rows, spec_check_folder);

static const struct field output_rows[] = {
    FIELD_TEXT(struct run_output, id, "id", .flags = FIELD_REQUIRED),
    FIELD_TEXT(struct run_output, path, "path", .flags = FIELD_REQUIRED),
};
static const struct fields output_fields = FIELDS("output", struct run_output, output_rows, NULL);

static bool spec_hides_value(const void *record)
{
    return run_env_is_secret(record);
}

static const struct field env_rows[] = {
    FIELD_TEXT(struct run_env, name, "name", .flags = FIELD_REQUIRED, .good = spec_is_variable,
               .must = "the name of a variable, without '='"),
    FIELD_TEXT(struct run_env, value, "value", .flags = FIELD_SECRET, .left_out = spec_hides_value),
};
static const struct fields env_fields = FIELDS("variable", struct run_env, env_rows, NULL);

/* ---- the specification ---- */

static const char *const hang_words[] = {"idle", "any"};

static const struct field hang_rows[] = {
    FIELD_INT(struct run_spec, hang_s, "silent_s", .flags = FIELD_REQUIRED, .min = 1, .max = RUN_HANG_MOST_S),
    FIELD_BOOL(struct run_spec, hang_any_gpus, "gpus", .flags = FIELD_REQUIRED, .words = hang_words, .n_words = 2,
               .must = "idle or any"),
};
static const struct fields hang_fields = FIELDS("hang", struct run_spec, hang_rows, NULL);

static const struct field limit_rows[] = {
    FIELD_INT64(struct run_spec, limit_s, "seconds", .flags = FIELD_REQUIRED, .min = 1, .max = RUN_LIMIT_MOST_S),
    FIELD_INT64(struct run_spec, warn_s, "warn_seconds", .flags = FIELD_REQUIRED, .max = RUN_LIMIT_MOST_S),
};
static const struct fields limit_fields = FIELDS("limit", struct run_spec, limit_rows, NULL);

static const struct field retry_rows[] = {
    FIELD_INT(struct run_spec, retry_times, "times", .flags = FIELD_REQUIRED, .min = 1, .max = RUN_RETRY_MOST),
    FIELD_TEXTS(struct run_spec, retry_on, "on", .flags = FIELD_REQUIRED),
};
static const struct fields retry_fields = FIELDS("retry", struct run_spec, retry_rows, NULL);

/* The time stands first: a run that sets nothing up has none. */
static const struct field setup_rows[] = {
    FIELD_INT(struct run_spec, setup.timeout_s, "timeout_s", .flags = FIELD_REQUIRED, .min = 1,
              .max = RUN_SETUP_MOST_S),
    FIELD_BOOL(struct run_spec, setup.modules_purge, "modules_purge", .flags = FIELD_RARE),
    FIELD_TEXTS(struct run_spec, setup.modules, "modules", .flags = FIELD_RARE),
    FIELD_TEXT(struct run_spec, setup.conda, "conda"),
    FIELD_TEXT(struct run_spec, setup.venv, "venv"),
    FIELD_TEXT(struct run_spec, setup.lines, "lines"),
    FIELD_TEXT(struct run_spec, setup.rank_lines, "rank_lines"),
};
static const struct fields setup_fields = FIELDS("setup", struct run_spec, setup_rows, NULL);

static const char *const packages_words[] = {
    [RUN_PACKAGES_USUAL] = "usual", [RUN_PACKAGES_SYSTEM] = "system", [RUN_PACKAGES_OWN] = "own"};
static const char *const makes_words[] = {
    [RUN_MAKES_USUAL] = "usual", [RUN_MAKES_NODES] = "nodes", [RUN_MAKES_LOGIN] = "login"};
static const struct field environment_rows[] = {
    FIELD_BOOL(struct run_spec, environment.none, "none", .flags = FIELD_RARE),
    FIELD_WORD(struct run_spec, environment.packages, packages_words, "packages", .flags = FIELD_RARE),
    FIELD_WORD(struct run_spec, environment.where, makes_words, "where", .flags = FIELD_RARE),
    FIELD_TEXT(struct run_spec, environment.wheels, "wheels"),
    FIELD_TEXT(struct run_spec, environment.key, "key"),
};
static const struct fields environment_fields = FIELDS("environment", struct run_spec, environment_rows, NULL);

static bool has_usual_environment(const void *record)
{
    const struct run_needs *e = &((const struct run_spec *)record)->environment;

    return !e->none && e->packages == RUN_PACKAGES_USUAL && e->where == RUN_MAKES_USUAL && !e->wheels && !e->key;
}

#define SPEC_TEXT(member, ...) FIELD_TEXT(struct run_spec, member, #member, __VA_ARGS__)

static const struct field spec_rows[] = {
    FIELD_VERSION(SPEC_VERSION, FIELD_REQUIRED),
    SPEC_TEXT(id, .flags = FIELD_REQUIRED, .good = run_name_valid, .must = "a run id"),
    SPEC_TEXT(experiment, .flags = FIELD_REQUIRED),
    SPEC_TEXT(cluster, .flags = FIELD_REQUIRED),
    SPEC_TEXT(platform, .flags = FIELD_REQUIRED),
    SPEC_TEXT(project_root),
    SPEC_TEXT(title),
    SPEC_TEXT(package_store),
    SPEC_TEXT(package_key),
    SPEC_TEXT(logs_store),
    SPEC_TEXT(logs_path),
    SPEC_TEXT(compile_args),
    SPEC_TEXT(launcher),
    SPEC_TEXT(mpi),
    SPEC_TEXT(container),
    SPEC_TEXT(image),
    SPEC_TEXT(timeout),
    SPEC_TEXT(shm_size),
    SPEC_TEXT(scratch),
    SPEC_TEXT(mount),
    SPEC_TEXT(resubmit_of),
    SPEC_TEXT(name, .good = run_label_valid, .must = "a name of a run"),
    SPEC_TEXT(own_rules),
    FIELD_INT64(struct run_spec, created_unix_s, "created", .flags = FIELD_REQUIRED),
    FIELD_TEXTS(struct run_spec, argv, "command", .flags = FIELD_REQUIRED, .min = 1,
                .must = "a list of at least one text"),
    FIELD_CHARS(struct run_spec, package_sha256, "package_sha256", .flags = FIELD_REQUIRED, .good = spec_is_sha256,
                .must = "64 lower-case hex digits, or empty"),
    FIELD_INT64(struct run_spec, package_bytes, "package_bytes", .flags = FIELD_REQUIRED),
    FIELD_LIST(struct run_spec, folders, n_folders, struct run_folder, &folder_fields, "folders",
               .flags = FIELD_REQUIRED),
    FIELD_LIST(struct run_spec, outputs, n_outputs, struct run_output, &output_fields, "outputs", .flags = FIELD_RARE),
    FIELD_INT(struct run_spec, nodes, "nodes", .flags = FIELD_REQUIRED, .min = 1, .max = NODES_MAX),
    FIELD_INT(struct run_spec, procs_per_node, "processes_per_node", .flags = FIELD_REQUIRED, .min = 1,
              .max = PER_NODE_MAX),
    FIELD_INT(struct run_spec, gpus_per_node, "gpus_per_node", .flags = FIELD_REQUIRED, .max = PER_NODE_MAX),
    FIELD_TEXTS(struct run_spec, gpus, "gpus", .flags = FIELD_RARE),
    FIELD_INT(struct run_spec, gpu_free_memory, "gpu_free_memory", .flags = FIELD_RARE, .min = 1, .max = 100),
    FIELD_BOOL(struct run_spec, on_processors, "on_processors", .flags = FIELD_RARE),
    FIELD_INT(struct run_spec, min_nodes, "min_nodes", .flags = FIELD_RARE, .min = 1, .max = NODES_MAX),
    FIELD_INT(struct run_spec, max_nodes, "max_nodes", .flags = FIELD_RARE, .min = 1, .max = NODES_MAX),
    FIELD_INT(struct run_spec, started_per_node, "started_per_node", .flags = FIELD_RARE, .min = 1,
              .max = PER_NODE_MAX),
    FIELD_LIST(struct run_spec, env, n_env, struct run_env, &env_fields, "env", .flags = FIELD_REQUIRED),
    FIELD_GROUP(&setup_fields, "setup", .flags = FIELD_RARE),
    FIELD_GROUP(&environment_fields, "environment", .left_out = has_usual_environment),
    FIELD_BOOL(struct run_spec, sleep_if_fail, "sleep_if_fail", .flags = FIELD_REQUIRED),
    FIELD_BOOL(struct run_spec, sleep_if_succeed, "sleep_if_succeed", .flags = FIELD_REQUIRED),
    FIELD_BOOL(struct run_spec, takes_input, "stdin", .flags = FIELD_RARE),
    FIELD_GROUP(&hang_fields, "hang", .flags = FIELD_RARE),
    FIELD_GROUP(&limit_fields, "limit", .flags = FIELD_RARE),
    FIELD_GROUP(&retry_fields, "retry", .flags = FIELD_RARE),
    FIELD_TEXTS(struct run_spec, avoid, "avoid_nodes", .flags = FIELD_RARE),
    FIELD_TEXTS(struct run_spec, after, "after", .flags = FIELD_RARE, .good = run_name_valid,
                .must = "a list of run ids"), /* their folders are beside that of the run */
    FIELD_TEXTS(struct run_spec, needs, "needs", .flags = FIELD_RARE, .good = run_name_valid,
                .must = "a list of run ids"),
    FIELD_BOOL(struct run_spec, needs_any, "needs_any", .flags = FIELD_RARE),
    FIELD_JSON(struct run_spec, tags, "tags", .flags = FIELD_RARE),
    FIELD_BOOL(struct run_spec, own_image, "own_image", .flags = FIELD_RARE),
    FIELD_BOOL(struct run_spec, foreign, "foreign", .flags = FIELD_RARE),
    FIELD_BOOL(struct run_spec, is_here, "is_here", .flags = FIELD_RARE),
    FIELD_BOOL(struct run_spec, agent_mounts, "agent_mounts", .flags = FIELD_RARE),
    FIELD_JSON(struct run_spec, config, "config"),
};

static int spec_check_range(const struct run_spec *spec, struct act_error *err)
{
    if (!run_spec_is_elastic(spec) && spec->min_nodes == 0)
        return 0;
    if (spec->max_nodes < spec->nodes)
        return act_error_set(err, ACT_FAIL, "'max_nodes' must be a whole number from %d to %d", spec->nodes, NODES_MAX);
    if (spec->min_nodes < 1 || spec->min_nodes > spec->max_nodes)
        return act_error_set(err, ACT_FAIL, "'min_nodes' must be a whole number from 1 to %d", spec->max_nodes);
    return 0;
}

/* They were checked when they were given; another program that writes run.json may have put anything there. */
static int spec_check(const void *record, struct act_error *err)
{
    const struct run_spec *spec = record;
    const char *key;
    json_t *value;

    json_object_foreach(spec->tags, key, value)
    {
        if (!run_tag_valid(key, value))
            return act_error_set(err, ACT_FAIL, "'tags' must be an object of tags");
    }
    return spec_check_range(spec, err);
}

static const struct fields spec_fields = FIELDS("the run specification", struct run_spec, spec_rows, spec_check);

const char *run_spec_variable(const struct run_spec *spec, const char *name)
{
    const char *value = NULL;

    for (size_t i = 0; i < spec->n_env; i++)
        if (strcmp(spec->env[i].name, name) == 0)
            value = spec->env[i].value;
    return value;
}

void run_spec_release(struct run_spec *spec)
{
    fields_release(&spec_fields, spec);
}

void run_spec_add_output(struct run_spec *spec, const char *id, const char *path)
{
    ACT_PUSH(spec->outputs, spec->n_outputs, (struct run_output){.id = act_strdup(id), .path = act_strdup(path)});
}

void run_spec_add_env(struct run_spec *spec, const char *name, const char *value)
{
    ACT_PUSH(spec->env, spec->n_env, (struct run_env){.name = act_strdup(name), .value = act_strdup(value)});
}

json_t *run_spec_to_json(const struct run_spec *spec)
{
    return fields_to_json(&spec_fields, spec);
}

int run_spec_from_json(const json_t *json, struct run_spec *out, struct act_error *err)
{
    return fields_from_json(&spec_fields, json, out, err);
}

const char *const run_brief_members[] = {"version",        "title", "package_key",        "resubmit_of", "command",
                                         "package_sha256", "nodes", "processes_per_node", "needs",       NULL};

int run_brief_from_json(const json_t *json, struct run_spec *out, struct act_error *err)
{
    static const struct field rows[] = {
        FIELD_VERSION(SPEC_VERSION, FIELD_REQUIRED),
        SPEC_TEXT(title),
        SPEC_TEXT(package_key),
        SPEC_TEXT(resubmit_of),
        FIELD_TEXTS(struct run_spec, argv, "command", .flags = FIELD_REQUIRED),
        FIELD_CHARS(struct run_spec, package_sha256, "package_sha256", .flags = FIELD_REQUIRED),
        FIELD_INT(struct run_spec, nodes, "nodes", .flags = FIELD_REQUIRED, .max = NODES_MAX),
        FIELD_INT(struct run_spec, procs_per_node, "processes_per_node", .flags = FIELD_REQUIRED, .max = PER_NODE_MAX),
        FIELD_TEXTS(struct run_spec, needs, "needs", .flags = FIELD_RARE),
    };
    static const struct fields fields = FIELDS("run specification", struct run_spec, rows, NULL);

    return fields_from_json(&fields, json, out, err);
}

json_t *run_volumes_to_json(const struct run_spec *spec)
{
    json_t *array = json_array();

    for (size_t i = 0; i < spec->n_folders; i++)
        if (spec->folders[i].datastore)
            json_array_append_new(array, fields_to_json(&folder_fields, &spec->folders[i]));
    return array;
}

int run_volumes_from_json(const json_t *array, struct run_spec *spec, struct act_error *err)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        ACT_PUSH(spec->folders, spec->n_folders, (struct run_folder){0});
        int rc = fields_from_json(&folder_fields, json_array_get(array, i), &spec->folders[i], err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

json_t *run_setup_to_json(const struct run_spec *spec)
{
    return spec->setup.timeout_s ? fields_to_json(&setup_fields, spec) : NULL;
}

int run_setup_from_json(const json_t *json, struct run_spec *spec, struct act_error *err)
{
    struct run_spec read;
    int rc = fields_from_json(&setup_fields, json, &read, err);

    if (rc < 0)
        return rc;
    run_setup_release(&spec->setup);
    spec->setup = read.setup;
    return 0;
}

int run_spec_write(const struct run_spec *spec, const char *path, struct act_error *err)
{
    CODEC_AUTOJSON json_t *json = run_spec_to_json(spec);

    return codec_json_write(path, json, 0600, err);
}

int run_spec_read(const char *path, struct run_spec *out, struct act_error *err)
{
    enum { SPEC_MAX_BYTES = 32 * 1024 * 1024 };
    CODEC_AUTOJSON json_t *json = NULL;
    int rc = codec_json_read(path, SPEC_MAX_BYTES, &json, err);

    if (rc == 0)
        rc = run_spec_from_json(json, out, err);
    return rc < 0 ? act_error_prefix(err, "cannot read the run specification '%s'", path) : 0;
}
