/* settings.c - what a run was started with, and what it ran with, as names and values, beside those of another run. */
#include <string.h>

#include "flow/flow_internal.h"
#include "flow/look/parts.h"

enum { SETTINGS_MAX = 4096, DEPTH_MAX = 16 };

struct settings {
    struct flow_setting *v;
    size_t n;
    bool is_before; /* what is set now is of the other run */
};

static struct flow_setting *settings_find(struct settings *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->v[i].name, name) == 0)
            return &s->v[i];
    return NULL;
}

/* Takes over value. */
static void settings_set(struct settings *s, const char *name, char *value)
{
    struct flow_setting *found = settings_find(s, name);

    if (!value || (!found && s->n == SETTINGS_MAX)) {
        free(value);
        return;
    }
    if (!found) {
        ACT_PUSH(s->v, s->n, (struct flow_setting){.name = act_strdup(name)});
        found = &s->v[s->n - 1];
    }
    char **at = s->is_before ? &found->before : &found->value;
    free(*at);
    *at = value;
}

static void set_number(struct settings *s, const char *name, int64_t value)
{
    if (value > 0)
        settings_set(s, name, act_sprintf("%lld", (long long)value));
}

char *flow_setting_text(const json_t *value)
{
    return json_is_string(value) ? act_strdup(json_string_value(value))
                                 : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
}

static void set_json(struct settings *s, const char *name, json_t *value, int depth)
{
    const char *key;
    json_t *member;

    if (!json_is_object(value) || depth == DEPTH_MAX) {
        if (value && !json_is_null(value))
            settings_set(s, name, flow_setting_text(value));
        return;
    }
    json_object_foreach(value, key, member)
    {
        ACT_AUTOFREE char *below = act_sprintf("%s.%s", name, key);
        set_json(s, below, member, depth + 1);
    }
}

/* Sets what the configuration says, except of environment and size: the run's own hold for repeats, too. */
static void set_config(struct settings *s, json_t *config)
{
    const char *key;
    json_t *member;

    json_object_foreach(config, key, member)
    {
        ACT_AUTOFREE char *name = act_sprintf("config.%s", key);
        if (strcmp(key, "env") != 0 && strcmp(key, "num_gpu") != 0)
            set_json(s, name, member, 1);
    }
}

static void settings_set_env(struct settings *s, const struct run_env *env)
{
    ACT_AUTOFREE char *name = act_sprintf("env.%s", env->name);

    settings_set(s, name, act_strdup(run_env_is_secret(env) || !env->value ? "(secret)" : env->value));
}

static void set_folder(struct settings *s, const struct run_folder *folder)
{
    ACT_AUTOFREE char *name = act_sprintf("folder.%s", folder->name);

    settings_set(s, name,
                 act_sprintf("%s %s, %s", folder->store ? folder->store : "", folder->path ? folder->path : "",
                             run_folder_mode_name(folder->mode)));
}

static void settings_set_all(struct settings *s, const struct run_spec *spec)
{
    settings_set(s, "command", spec->argv.n ? flow_command_line(&spec->argv) : act_strdup(spec->title));
    settings_set(s, "cluster", act_strdup(spec->cluster));
    settings_set(s, "platform", act_strdup(spec->platform));
    set_number(s, "nodes", spec->nodes);
    set_number(s, "processes_per_node", run_spec_processes(spec));
    set_number(s, spec->on_processors ? "processors_per_node" : "gpus_per_node", spec->gpus_per_node);
    set_number(s, "min_nodes", spec->min_nodes);
    set_number(s, "max_nodes", spec->max_nodes);
    settings_set(s, "package", *spec->package_sha256 ? act_strdup(spec->package_sha256) : NULL);
    set_number(s, "package_bytes", spec->package_bytes);
    settings_set(s, "package_key", act_strdup(spec->package_key));
    settings_set(s, "image", act_strdup(spec->image));
    settings_set(s, "container", act_strdup(spec->container));
    settings_set(s, "launcher", act_strdup(spec->launcher));
    settings_set(s, "mpi", act_strdup(spec->mpi));
    settings_set(s, "compile_args", act_strdup(spec->compile_args));
    settings_set(s, "timeout", act_strdup(spec->timeout));
    settings_set(s, "shm_size", act_strdup(spec->shm_size));
    for (size_t i = 0; i < spec->n_env; i++)
        settings_set_env(s, &spec->env[i]);
    for (size_t i = 0; i < spec->n_folders; i++)
        set_folder(s, &spec->folders[i]);
    set_config(s, spec->config);
}

void flow_list_settings(const struct run_spec *spec, const struct run_spec *before, struct flow_report *out)
{
    struct settings s = {0};

    settings_set_all(&s, spec);
    s.is_before = true;
    if (before)
        settings_set_all(&s, before);
    out->settings = s.v;
    out->n_settings = s.n;
}

void flow_settings_release(struct flow_setting *settings, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(settings[i].name);
        free(settings[i].value);
        free(settings[i].before);
    }
    free(settings);
}

/* ---- software */

static const struct {
    const char *name;
    size_t offset;
    bool is_asked; /* what a run that ended soon may not know */
} software_texts[] = {
    {"conda", offsetof(struct run_environment, conda), false},
    {"cuda", offsetof(struct run_environment, cuda), false},
    {"driver", offsetof(struct run_environment, driver), false},
    {"image", offsetof(struct run_environment, image), false},
    {"image_digest", offsetof(struct run_environment, image_digest), true},
    {"mpi", offsetof(struct run_environment, mpi), true},
    {"nccl", offsetof(struct run_environment, nccl), false},
    {"python", offsetof(struct run_environment, python), false},
    {"python_version", offsetof(struct run_environment, python_version), true},
    {"system", offsetof(struct run_environment, system), false},
    {"venv", offsetof(struct run_environment, venv), false},
};

static const char *software_text(const struct run_environment *e, size_t i)
{
    return *(char *const *)((const char *)e + software_texts[i].offset);
}

static void settings_set_software(struct settings *s, const struct run_environment *e,
                                  const struct run_environment *other)
{
    struct act_buf modules = {0};

    for (size_t i = 0; i < sizeof(software_texts) / sizeof(software_texts[0]); i++)
        if (!other || !software_texts[i].is_asked || software_text(other, i))
            settings_set(s, software_texts[i].name, act_strdup(software_text(e, i)));
    for (size_t i = 0; i < e->modules.n; i++)
        act_buf_addf(&modules, "%s%s", i ? " " : "", e->modules.v[i]);
    settings_set(s, "modules", act_buf_steal(&modules));
    for (size_t i = 0; (!other || other->packages.n) && i < e->packages.n; i++) {
        const char *package = e->packages.v[i], *version = strstr(package, "==");
        ACT_AUTOFREE char *name =
            act_sprintf("packages.%.*s", (int)(version ? version - package : (long)strlen(package)), package);
        settings_set(s, name, act_strdup(version ? version + strlen("==") : "?"));
    }
}

static int settings_by_name(const void *a, const void *b)
{
    return strcmp(((const struct flow_setting *)a)->name, ((const struct flow_setting *)b)->name);
}

void flow_list_software(const struct run_environment *e, const struct run_environment *before,
                        struct flow_setting **out, size_t *out_n)
{
    struct settings s = {0};

    settings_set_software(&s, e, before);
    s.is_before = true;
    if (before)
        settings_set_software(&s, before, e);
    if (s.n > 0)
        qsort(s.v, s.n, sizeof(*s.v), settings_by_name);
    *out = s.v;
    *out_n = s.n;
}
