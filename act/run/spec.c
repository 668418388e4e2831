/* spec.c - run.json, version 1: one writer, one reader, one table of its texts. */
#include <string.h>

#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "run/run.h"

#define SPEC_VERSION 1
#define COUNT_OF(a)  (sizeof(a) / sizeof((a)[0]))

/* A text member: any bytes, as codec_json_bytes_new() writes them. */
struct text_row {
    const char *key;
    size_t offset;
    bool required;
};

static const struct text_row spec_texts[] = {
    {"id", offsetof(struct run_spec, id), true},
    {"experiment", offsetof(struct run_spec, experiment), true},
    {"cluster", offsetof(struct run_spec, cluster), true},
    {"platform", offsetof(struct run_spec, platform), true},
    {"project_root", offsetof(struct run_spec, project_root), false},
    {"title", offsetof(struct run_spec, title), false},
    {"package_store", offsetof(struct run_spec, package_store), false},
    {"package_key", offsetof(struct run_spec, package_key), false},
    {"logs_store", offsetof(struct run_spec, logs_store), false},
    {"logs_path", offsetof(struct run_spec, logs_path), false},
    {"compile_args", offsetof(struct run_spec, compile_args), false},
    {"launcher", offsetof(struct run_spec, launcher), false},
    {"mpi", offsetof(struct run_spec, mpi), false},
    {"container", offsetof(struct run_spec, container), false},
    {"image", offsetof(struct run_spec, image), false},
    {"timeout", offsetof(struct run_spec, timeout), false},
    {"shm_size", offsetof(struct run_spec, shm_size), false},
    {"scratch", offsetof(struct run_spec, scratch), false},
    {"mount", offsetof(struct run_spec, mount), false},
    {"resubmit_of", offsetof(struct run_spec, resubmit_of), false},
    {"name", offsetof(struct run_spec, name), false},
    {"own_rules", offsetof(struct run_spec, own_rules), false},
};

static const struct text_row folder_texts[] = {
    {"name", offsetof(struct run_folder, name), true},
    {"store", offsetof(struct run_folder, store), true},
    {"path", offsetof(struct run_folder, path), true},
    {"link", offsetof(struct run_folder, link), false},
    {"datastore", offsetof(struct run_folder, datastore), false},
};

static const struct text_row output_texts[] = {
    {"id", offsetof(struct run_output, id), true},
    {"path", offsetof(struct run_output, path), true},
};

static const struct text_row env_texts[] = {
    {"name", offsetof(struct run_env, name), true},
    {"value", offsetof(struct run_env, value), false},
};

static char **spec_text_at(void *object, const struct text_row *row)
{
    return (char **)((char *)object + row->offset);
}

static char *const *const_text_at(const void *object, const struct text_row *row)
{
    return (char *const *)((const char *)object + row->offset);
}

static void release_texts(void *object, const struct text_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(*spec_text_at(object, &rows[i]));
}

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
    release_texts(spec, spec_texts, COUNT_OF(spec_texts));
    for (size_t i = 0; i < spec->n_folders; i++)
        release_texts(&spec->folders[i], folder_texts, COUNT_OF(folder_texts));
    for (size_t i = 0; i < spec->n_outputs; i++)
        release_texts(&spec->outputs[i], output_texts, COUNT_OF(output_texts));
    for (size_t i = 0; i < spec->n_env; i++)
        release_texts(&spec->env[i], env_texts, COUNT_OF(env_texts));
    free(spec->folders);
    free(spec->outputs);
    free(spec->env);
    act_strv_release(&spec->argv);
    run_setup_release(&spec->setup);
    act_strv_release(&spec->retry_on);
    act_strv_release(&spec->avoid);
    act_strv_release(&spec->after);
    json_decref(spec->config);
    json_decref(spec->tags);
    *spec = (struct run_spec){0};
}

void run_spec_add_output(struct run_spec *spec, const char *id, const char *path)
{
    ACT_PUSH(spec->outputs, spec->n_outputs, (struct run_output){.id = act_strdup(id), .path = act_strdup(path)});
}

void run_spec_add_env(struct run_spec *spec, const char *name, const char *value)
{
    ACT_PUSH(spec->env, spec->n_env, (struct run_env){.name = act_strdup(name), .value = act_strdup(value)});
}

/* ---- out ---- */

static void add_texts(json_t *json, const void *object, const struct text_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *text = *const_text_at(object, &rows[i]);
        if (text)
            json_object_set_new(json, rows[i].key, codec_json_bytes_new(text));
    }
}

static json_t *folder_to_json(const struct run_folder *folder)
{
    json_t *json = json_object();

    add_texts(json, folder, folder_texts, COUNT_OF(folder_texts));
    json_object_set_new(json, "mode", json_string(run_folder_mode_name(folder->mode)));
    return json;
}

static json_t *folders_to_json(const struct run_spec *spec)
{
    json_t *array = json_array();

    for (size_t i = 0; i < spec->n_folders; i++)
        json_array_append_new(array, folder_to_json(&spec->folders[i]));
    return array;
}

static json_t *outputs_to_json(const struct run_spec *spec)
{
    json_t *array = json_array();

    for (size_t i = 0; i < spec->n_outputs; i++) {
        json_t *json = json_object();
        add_texts(json, &spec->outputs[i], output_texts, COUNT_OF(output_texts));
        json_array_append_new(array, json);
    }
    return array;
}

json_t *run_volumes_to_json(const struct run_spec *spec)
{
    json_t *array = json_array();

    for (size_t i = 0; i < spec->n_folders; i++)
        if (spec->folders[i].datastore)
            json_array_append_new(array, folder_to_json(&spec->folders[i]));
    return array;
}

static json_t *env_to_json(const struct run_spec *spec)
{
    json_t *array = json_array();

    for (size_t i = 0; i < spec->n_env; i++) {
        const struct run_env *e = &spec->env[i];
        bool secret = run_env_is_secret(e);
        json_t *json = json_object();
        add_texts(json, e, env_texts, secret ? 1 : COUNT_OF(env_texts)); /* a secret has only its name */
        json_array_append_new(array, json);
    }
    return array;
}

static json_t *hang_to_json(const struct run_spec *spec)
{
    return json_pack("{s:i, s:s}", "silent_s", spec->hang_s, "gpus", spec->hang_any_gpus ? "any" : "idle");
}

json_t *run_spec_to_json(const struct run_spec *spec)
{
    json_t *json = json_object();

    json_object_set_new(json, "version", json_integer(SPEC_VERSION));
    add_texts(json, spec, spec_texts, COUNT_OF(spec_texts));
    json_object_set_new(json, "created", json_integer(spec->created_unix_s));
    json_object_set_new(json, "command", codec_json_strv_new(&spec->argv));
    json_object_set_new(json, "package_sha256", json_string(spec->package_sha256));
    json_object_set_new(json, "package_bytes", json_integer(spec->package_bytes));
    json_object_set_new(json, "folders", folders_to_json(spec));
    if (spec->n_outputs)
        json_object_set_new(json, "outputs", outputs_to_json(spec));
    json_object_set_new(json, "nodes", json_integer(spec->nodes));
    json_object_set_new(json, "processes_per_node", json_integer(spec->procs_per_node));
    json_object_set_new(json, "gpus_per_node", json_integer(spec->gpus_per_node));
    if (spec->on_processors)
        json_object_set_new(json, "on_processors", json_true());
    if (run_spec_is_elastic(spec)) {
        json_object_set_new(json, "min_nodes", json_integer(spec->min_nodes));
        json_object_set_new(json, "max_nodes", json_integer(spec->max_nodes));
    }
    if (spec->started_per_node)
        json_object_set_new(json, "started_per_node", json_integer(spec->started_per_node));
    json_object_set_new(json, "env", env_to_json(spec));
    json_t *setup = run_setup_to_json(&spec->setup);
    if (setup)
        json_object_set_new(json, "setup", setup);
    json_object_set_new(json, "sleep_if_fail", json_boolean(spec->sleep_if_fail));
    json_object_set_new(json, "sleep_if_succeed", json_boolean(spec->sleep_if_succeed));
    if (spec->hang_s)
        json_object_set_new(json, "hang", hang_to_json(spec));
    if (spec->limit_s)
        json_object_set_new(
            json, "limit",
            json_pack("{s:I, s:I}", "seconds", (json_int_t)spec->limit_s, "warn_seconds", (json_int_t)spec->warn_s));
    if (spec->retry_times)
        json_object_set_new(
            json, "retry",
            json_pack("{s:i, s:o}", "times", spec->retry_times, "on", codec_json_strv_new(&spec->retry_on)));
    if (spec->avoid.n)
        json_object_set_new(json, "avoid_nodes", codec_json_strv_new(&spec->avoid));
    if (spec->after.n)
        json_object_set_new(json, "after", codec_json_strv_new(&spec->after));
    if (json_object_size(spec->tags))
        json_object_set(json, "tags", spec->tags);
    if (spec->own_image)
        json_object_set_new(json, "own_image", json_true());
    if (spec->foreign)
        json_object_set_new(json, "foreign", json_true());
    if (spec->config)
        json_object_set(json, "config", spec->config);
    return json;
}

int run_spec_write(const struct run_spec *spec, const char *path, struct act_error *err)
{
    CODEC_AUTOJSON json_t *json = run_spec_to_json(spec);

    return codec_json_write(path, json, 0600, err);
}

/* ---- in ---- */

static int spec_malformed(struct act_error *err, const char *key, const char *rule)
{
    return act_error_set(err, ACT_FAIL, "the run specification is malformed: '%s' must be %s", key, rule);
}

static int get_texts(const json_t *json, void *object, const struct text_row *rows, size_t n, struct act_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_object_get(json, rows[i].key);
        char **text = spec_text_at(object, &rows[i]);

        if (value && !json_is_null(value))
            *text = codec_json_bytes_get(value);
        bool absent = !value || json_is_null(value);
        if (absent ? rows[i].required : !*text)
            return spec_malformed(err, rows[i].key, "a text");
    }
    return 0;
}

static int spec_get_int(const json_t *json, const char *key, int64_t low, int64_t high, int64_t *out,
                        struct act_error *err)
{
    const json_t *value = json_object_get(json, key);

    *out = json_integer_value(value);
    if (json_is_integer(value) && *out >= low && *out <= high)
        return 0;
    return act_error_set(err, ACT_FAIL,
                         "the run specification is malformed: '%s' must be a whole number from %lld to %lld", key,
                         (long long)low, (long long)high);
}

enum { NODES_MAX = 1 << 16, PER_NODE_MAX = 1 << 12 };

static int get_counts(const json_t *json, struct run_spec *spec, struct act_error *err)
{
    int64_t nodes, procs, gpus;

    if (spec_get_int(json, "created", 0, INT64_MAX, &spec->created_unix_s, err) < 0 ||
        spec_get_int(json, "package_bytes", 0, INT64_MAX, &spec->package_bytes, err) < 0 ||
        spec_get_int(json, "nodes", 1, NODES_MAX, &nodes, err) < 0 ||
        spec_get_int(json, "processes_per_node", 1, PER_NODE_MAX, &procs, err) < 0 ||
        spec_get_int(json, "gpus_per_node", 0, PER_NODE_MAX, &gpus, err) < 0)
        return -ACT_FAIL;
    spec->nodes = (int)nodes;
    spec->procs_per_node = (int)procs;
    spec->gpus_per_node = (int)gpus;
    return 0;
}

static int spec_get_range(const json_t *json, struct run_spec *spec, struct act_error *err)
{
    int64_t min, max;

    if (!json_object_get(json, "max_nodes"))
        return 0;
    if (spec_get_int(json, "max_nodes", spec->nodes, NODES_MAX, &max, err) < 0 ||
        spec_get_int(json, "min_nodes", 1, max, &min, err) < 0)
        return -ACT_FAIL;
    spec->min_nodes = (int)min;
    spec->max_nodes = (int)max;
    return 0;
}

static int get_command(const json_t *json, struct run_spec *spec, struct act_error *err)
{
    if (!codec_json_strv_get(json_object_get(json, "command"), &spec->argv) || spec->argv.n == 0)
        return spec_malformed(err, "command", "a list of at least one text");
    return 0;
}

static int get_starter(const json_t *json, struct run_spec *spec, struct act_error *err)
{
    int64_t started;

    if (!json_object_get(json, "started_per_node"))
        return 0;
    if (spec_get_int(json, "started_per_node", 1, PER_NODE_MAX, &started, err) < 0)
        return -ACT_FAIL;
    spec->started_per_node = (int)started;
    return 0;
}

static int get_hang(const json_t *json, struct run_spec *spec, struct act_error *err)
{
    const json_t *hang = json_object_get(json, "hang");
    const char *gpus = codec_json_str(hang, "gpus", "");
    int64_t silent;

    if (!hang)
        return 0;
    if (spec_get_int(hang, "silent_s", 1, RUN_HANG_MOST_S, &silent, err) < 0)
        return -ACT_FAIL;
    spec->hang_s = (int)silent;
    spec->hang_any_gpus = strcmp(gpus, "any") == 0;
    return spec->hang_any_gpus || strcmp(gpus, "idle") == 0 ? 0 : spec_malformed(err, "gpus", "idle or any");
}

static int get_limit(const json_t *json, struct run_spec *spec, struct act_error *err)
{
    const json_t *limit = json_object_get(json, "limit");

    if (!limit)
        return 0;
    int rc = spec_get_int(limit, "seconds", 1, RUN_LIMIT_MOST_S, &spec->limit_s, err);
    return rc < 0 ? rc : spec_get_int(limit, "warn_seconds", 0, RUN_LIMIT_MOST_S, &spec->warn_s, err);
}

static int get_retry(const json_t *json, struct run_spec *spec, struct act_error *err)
{
    const json_t *retry = json_object_get(json, "retry"), *avoid = json_object_get(json, "avoid_nodes");
    int64_t times;

    if (avoid && !codec_json_strv_get(avoid, &spec->avoid))
        return spec_malformed(err, "avoid_nodes", "a list of texts");
    if (!retry)
        return 0;
    if (spec_get_int(retry, "times", 1, RUN_RETRY_MOST, &times, err) < 0)
        return -ACT_FAIL;
    spec->retry_times = (int)times;
    if (!codec_json_strv_get(json_object_get(retry, "on"), &spec->retry_on))
        return spec_malformed(err, "on", "a list of texts");
    return 0;
}

/* Their folders are beside that of the run. */
static int get_after(const json_t *json, struct run_spec *spec, struct act_error *err)
{
    const json_t *after = json_object_get(json, "after");
    bool good = !after || codec_json_strv_get(after, &spec->after);

    for (size_t i = 0; i < spec->after.n; i++)
        good = good && run_name_valid(spec->after.v[i]);
    return good ? 0 : spec_malformed(err, "after", "a list of run ids");
}

static int get_sha256(const json_t *json, struct run_spec *spec, struct act_error *err)
{
    const char *text = codec_json_str(json, "package_sha256", "?");

    if (*text && !act_is_hex(text, ACT_SHA256_HEX - 1))
        return spec_malformed(err, "package_sha256", "64 lower-case hex digits, or empty");
    snprintf(spec->package_sha256, sizeof(spec->package_sha256), "%s", text);
    return 0;
}

static bool is_folder_name(const char *name)
{
    return act_path_is_safe(name, strlen(name)) && !strchr(name, '/');
}

static int get_folder(const json_t *json, struct run_folder *folder, struct act_error *err)
{
    int rc = get_texts(json, folder, folder_texts, COUNT_OF(folder_texts), err);

    if (rc < 0)
        return rc;
    if (!is_folder_name(folder->name))
        return spec_malformed(err, "name", "a folder name without slashes");
    if (folder->link && folder->link[0] != '/')
        return spec_malformed(err, "link", "an absolute path");
    if (!run_folder_mode_from_name(codec_json_str(json, "mode", ""), &folder->mode))
        return spec_malformed(err, "mode", "rw_mount, ro_mount, download, upload or path");
    if (folder->mode == RUN_FOLDER_PATH && !folder->link)
        return spec_malformed(err, "link", "an absolute path");
    return 0;
}

int run_volumes_from_json(const json_t *array, struct run_spec *spec, struct act_error *err)
{
    const json_t *member;
    size_t i;
    int rc = 0;

    if (!json_is_array(array))
        return spec_malformed(err, "folders", "a list");
    json_array_foreach(array, i, member)
    {
        ACT_PUSH(spec->folders, spec->n_folders, (struct run_folder){0});
        rc = get_folder(member, &spec->folders[i], err);
        if (rc < 0)
            return act_error_prefix(err, "folder %zu", i + 1);
    }
    return 0;
}

static int spec_get_folders(const json_t *json, struct run_spec *spec, struct act_error *err)
{
    return run_volumes_from_json(json_object_get(json, "folders"), spec, err);
}

static int get_outputs(const json_t *json, struct run_spec *spec, struct act_error *err)
{
    const json_t *array = json_object_get(json, "outputs"), *member;
    size_t i;
    int rc = 0;

    if (array && !json_is_array(array))
        return spec_malformed(err, "outputs", "a list");
    json_array_foreach(array, i, member)
    {
        ACT_PUSH(spec->outputs, spec->n_outputs, (struct run_output){0});
        rc = get_texts(member, &spec->outputs[i], output_texts, COUNT_OF(output_texts), err);
        if (rc < 0)
            return act_error_prefix(err, "output %zu", i + 1);
    }
    return 0;
}

static int get_env(const json_t *json, struct run_spec *spec, struct act_error *err)
{
    const json_t *array = json_object_get(json, "env"), *member;
    size_t i;

    if (!json_is_array(array))
        return spec_malformed(err, "env", "a list");
    json_array_foreach(array, i, member)
    {
        ACT_PUSH(spec->env, spec->n_env, (struct run_env){0});
        int rc = get_texts(member, &spec->env[i], env_texts, COUNT_OF(env_texts), err);
        if (rc < 0)
            return act_error_prefix(err, "variable %zu", i + 1);
        if (!*spec->env[i].name || strchr(spec->env[i].name, '='))
            return spec_malformed(err, "env", "a list of names without '=' and values");
    }
    return 0;
}

/* They were checked when they were given; another program that writes run.json may have put anything there. */
static int get_labels(const json_t *json, struct run_spec *spec, struct act_error *err)
{
    json_t *tags = json_object_get(json, "tags"), *value;
    const char *key;

    if (spec->name && !run_label_valid(spec->name))
        return spec_malformed(err, "name", "a name of a run");
    if (!tags)
        return 0;
    if (!json_is_object(tags))
        return spec_malformed(err, "tags", "an object");
    spec->tags = json_object();
    json_object_foreach(tags, key, value)
    {
        ACT_AUTOFREE char *tag = act_sprintf("%s=%s", key, json_is_string(value) ? json_string_value(value) : "\n");
        int rc = run_tags_add(spec->tags, tag, err);
        if (rc < 0)
            return spec_malformed(err, "tags", "an object of tags");
    }
    return 0;
}

static int get_flag(const json_t *json, const char *key, bool *out, struct act_error *err)
{
    const json_t *value = json_object_get(json, key);

    *out = json_is_true(value);
    return json_is_boolean(value) ? 0 : spec_malformed(err, key, "true or false");
}

/* Reads a flag that is only written where it is true. */
static int get_rare_flag(const json_t *json, const char *key, bool *out, struct act_error *err)
{
    return json_object_get(json, key) ? get_flag(json, key, out, err) : 0;
}

static int get_version(const json_t *json, struct act_error *err)
{
    int64_t version = codec_json_int(json, "version", 0);

    if (version > SPEC_VERSION)
        return act_error_set(err, ACT_FAIL,
                             "the run specification has version %lld, this program knows version %d; "
                             "update ACT",
                             (long long)version, SPEC_VERSION);
    return version == SPEC_VERSION ? 0 : spec_malformed(err, "version", "1");
}

static int get_setup(const json_t *json, struct run_spec *spec, struct act_error *err)
{
    const json_t *setup = json_object_get(json, "setup");

    return setup ? run_setup_from_json(setup, &spec->setup, err) : 0;
}

static int get_all(const json_t *json, struct run_spec *spec, struct act_error *err)
{
    static int (*const parts[])(const json_t *, struct run_spec *, struct act_error *) = {
        get_counts, spec_get_range, get_command,      get_starter, get_retry, get_hang,   get_limit,
        get_after,  get_sha256,     spec_get_folders, get_outputs, get_env,   get_labels, get_setup,
    };
    int rc = get_version(json, err);

    if (rc == 0)
        rc = get_texts(json, spec, spec_texts, COUNT_OF(spec_texts), err);
    if (rc == 0 && !run_name_valid(spec->id))
        rc = spec_malformed(err, "id", "a run id");
    for (size_t i = 0; rc == 0 && i < COUNT_OF(parts); i++)
        rc = parts[i](json, spec, err);
    if (rc == 0)
        rc = get_flag(json, "sleep_if_fail", &spec->sleep_if_fail, err);
    if (rc == 0)
        rc = get_flag(json, "sleep_if_succeed", &spec->sleep_if_succeed, err);
    if (rc == 0)
        rc = get_rare_flag(json, "on_processors", &spec->on_processors, err);
    if (rc == 0)
        rc = get_rare_flag(json, "own_image", &spec->own_image, err);
    if (rc == 0)
        rc = get_rare_flag(json, "foreign", &spec->foreign, err);
    return rc;
}

int run_spec_from_json(const json_t *json, struct run_spec *out, struct act_error *err)
{
    struct run_spec spec = {0};
    int rc = get_all(json, &spec, err);

    if (rc < 0) {
        run_spec_release(&spec);
        return rc;
    }
    json_t *config = json_object_get(json, "config");
    if (json_is_object(config))
        spec.config = json_incref(config);
    *out = spec;
    return 0;
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
