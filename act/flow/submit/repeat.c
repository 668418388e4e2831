/* repeat.c - what a repeated run keeps of the first one besides command and size. Pure: no requests. */
#include <string.h>

#include "base/log.h"
#include "base/path.h"
#include "config/config.h"
#include "flow/data/data_internal.h"
#include "flow/submit/passage.h"

/* ---- the environment */

static struct run_env *find_variable(struct run_env *env, size_t n, const char *name)
{
    for (size_t i = n; i > 0; i--) /* the last one counts */
        if (strcmp(env[i - 1].name, name) == 0)
            return &env[i - 1];
    return NULL;
}

static bool is_variable_said(const struct config *config, const char *name)
{
    ACT_AUTOFREE char *key = act_sprintf("env.%s", name);

    return config_is_said(config, key);
}

static void set_variable(struct run_spec *spec, const char *name, const char *value)
{
    struct run_env *have = find_variable(spec->env, spec->n_env, name);

    if (have)
        act_str_replace(&have->value, value);
    else
        run_spec_add_env(spec, name, value);
}

static void release_env(struct run_env *env, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(env[i].name);
        free(env[i].value);
    }
    free(env);
}

/* Tells whether a job file said it, and not the cluster file of that time. */
static bool is_of_job_file(const struct run_spec *old, const struct run_env *env)
{
    const json_t *value = json_object_get(json_object_get(old->config, "env"), env->name);

    if (!old->config)
        return false;
    return !value || (json_is_string(value) && env->value && !run_env_is_secret(env) &&
                      strcmp(json_string_value(value), env->value) != 0);
}

static int lost_secret(const struct run_env *env, struct act_error *err)
{
    return act_error_set(err, ACT_CONFIG,
                         "the value of its environment variable '%s' is a secret and not known any more: give "
                         "it again in the cluster file, or with -p 'env: {%s: ...}'",
                         env->name, env->name);
}

/* today: what the cluster file says now. */
static int repeat_variable(const struct config *config, const struct run_env *env, const struct run_env *today,
                           struct run_spec *spec, struct act_error *err)
{
    const char *value = env->value;

    if (today && (!value || is_variable_said(config, env->name)))
        value = today->value;
    if (!value)
        return lost_secret(env, err);
    set_variable(spec, env->name, value);
    find_variable(spec->env, spec->n_env, env->name)->secret = env->secret || !env->value;
    return 0;
}

static int repeat_environment(const struct config *config, const struct run_spec *old, bool moved,
                              struct run_spec *spec, struct act_error *err)
{
    struct run_env *today = spec->env;
    size_t n = spec->n_env;
    int rc = 0;

    spec->env = NULL;
    spec->n_env = 0;
    for (size_t i = 0; i < n; i++)
        if (moved || is_variable_said(config, today[i].name))
            set_variable(spec, today[i].name, today[i].value);
    for (size_t i = 0; i < old->n_env && rc == 0; i++)
        if (!moved || is_of_job_file(old, &old->env[i]))
            rc = repeat_variable(config, &old->env[i], find_variable(today, n, old->env[i].name), spec, err);
    release_env(today, n);
    return rc;
}

/* ---- what the platform reads from the configuration */

/* The image of the first run counts elsewhere too where a job file had named it. */
static bool is_image_wanted(const struct config *config, const struct run_spec *old, bool moved)
{
    return old->image && (!moved || old->own_image) && !platform_image_is_said(config);
}

/* The registry of the cluster is that of the image, or none for it: its connection is in the workspace already. */
static void repeat_image(struct config *config, const struct run_spec *old, bool moved)
{
    struct config_docker *docker = &config->docker;
    char **named = platform_image(config);
    ACT_AUTOFREE char *today = docker->image && named == &docker->image ? config_docker_image(docker) : NULL;

    if (!is_image_wanted(config, old, moved) || act_streq(*named, old->image) || act_streq(today, old->image))
        return;
    act_note("the image is that of the first run, '%s', and not '%s'; -p 'docker: {image: ...}' names another",
             old->image, *named ? *named : "none");
    act_str_replace(named, old->image);
    if (named != &docker->image)
        return;
    ACT_AUTOFREE char *with_registry = config_docker_image(docker);
    if (strcmp(with_registry, old->image) == 0)
        return;
    act_str_replace(&docker->address, NULL);
    act_str_replace(&docker->username, NULL);
    act_str_replace(&docker->password, NULL);
}

int step_repeat_config(struct passage *p, struct act_error *err)
{
    struct config *config = p->flow->config;
    const struct platform_row *row = platform_find(config->platform);

    (void)err;
    repeat_image(config, &p->old->spec, passage_is_moved(p));
    if (row->settings.repeat)
        row->settings.repeat(config, &p->old->spec);
    return 0;
}

/* ---- what prepares the code */

static void repeat_hooks(const struct config *config, const struct run_spec *old, struct run_spec *spec)
{
    if (!config_is_said(config, "compile_args"))
        act_str_replace(&spec->compile_args, old->compile_args);
    if (!config_is_said(config, "mount"))
        act_str_replace(&spec->mount, old->mount);
    if (!config_is_said(config, "sleep_if_fail"))
        spec->sleep_if_fail = old->sleep_if_fail;
    if (!config_is_said(config, "sleep_if_succeed"))
        spec->sleep_if_succeed = old->sleep_if_succeed;
}

/* ---- the folders */

static void release_folder(struct run_folder *f)
{
    free(f->name);
    free(f->store);
    free(f->path);
    free(f->link);
    free(f->datastore);
}

/* The account of a folder is the cluster file's business; where it is in it is the run's. */
static void repeat_folder(const struct config *config, const struct run_folder *old, struct run_folder *f)
{
    static const char in_folder[] = "folder:";
    ACT_AUTOFREE char *path = act_sprintf("config_param.%s_folder.path", f->name);
    ACT_AUTOFREE char *mode = act_sprintf("config_param.%s_folder.mode", f->name);

    if (strcmp(f->store, old->store) != 0) {
        act_note("the folder '%s' is in '%s' now, the first run had it in '%s'", f->name, f->store, old->store);
        return;
    }
    if (!config_is_said(config, mode))
        f->mode = old->mode;
    if (config_is_said(config, path))
        return;
    act_str_replace(&f->path, old->path);
    if (f->link) {
        free(f->link);
        f->link = act_path_join(f->store + strlen(in_folder), f->path);
    }
}

static int repeat_folders(const struct config *config, const struct run_spec *old, struct run_spec *spec,
                          struct act_error *err)
{
    size_t n = 0;

    for (size_t i = 0; i < old->n_folders; i++)
        if (!flow_find_folder(spec, old->folders[i].name) && !flow_may_use_own_folders(config))
            return act_error_set(err, ACT_CONFIG, "cluster '%s' has no folder '%s' any more", config->cluster,
                                 old->folders[i].name);
    for (size_t i = 0; i < spec->n_folders; i++) {
        const struct run_folder *first = flow_find_folder(old, spec->folders[i].name);
        if (first) {
            repeat_folder(config, first, &spec->folders[i]);
            spec->folders[n++] = spec->folders[i];
        } else {
            release_folder(&spec->folders[i]);
        }
    }
    spec->n_folders = n;
    return 0;
}

/* Repeats the volumes of a job file: those that it had mounted by its keys, to which only a datastore leads now, and
 * those that it had found on the nodes, which are the same ones if the cluster is. */
static void repeat_volumes(const struct passage *p)
{
    const struct config *config = p->flow->config;
    const struct run_spec *old = &p->old->spec;
    struct run_spec *spec = p->spec;

    for (size_t i = 0; i < old->n_folders; i++) {
        const struct run_folder *f = &old->folders[i];
        if ((!f->datastore && f->mode != RUN_FOLDER_PATH) || flow_find_folder(spec, f->name))
            continue;
        if (f->datastore ? !platform_row(p->platform)->settings.datastore : passage_is_moved(p)) {
            act_note("the volume '%s', '%s', is not mounted on cluster '%s'; map it there, as a folder of that name",
                     f->name, f->store, config->cluster);
            continue;
        }
        ACT_PUSH(spec->folders, spec->n_folders,
                 (struct run_folder){.name = act_strdup(f->name),
                                     .store = act_strdup(f->store),
                                     .path = act_strdup(f->path),
                                     .link = act_strdup(f->link),
                                     .datastore = act_strdup(f->datastore),
                                     .mode = f->mode});
    }
}

int step_repeat_settings(struct passage *p, struct act_error *err)
{
    const struct config *config = p->flow->config;
    const struct run_spec *old = &p->old->spec;
    bool moved = passage_is_moved(p);

    repeat_volumes(p);
    int rc = repeat_environment(config, old, moved, p->spec, err);
    if (!moved)
        repeat_hooks(config, old, p->spec);
    /* without the configuration it comes from its platform, which does not tell all */
    return rc == 0 && !moved && old->config ? repeat_folders(config, old, p->spec, err) : rc;
}
