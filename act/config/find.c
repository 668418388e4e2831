/* find.c - which cluster file, and which folder is the project. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/path.h"
#include "config/config_internal.h"

static bool exists_below(const char *dir, const char *name)
{
    ACT_AUTOFREE char *path = act_path_join(dir, name);

    return access(path, F_OK) == 0;
}

bool config_go_up(char **dir)
{
    char *parent = act_path_dirname(*dir);
    bool moved = strcmp(parent, *dir) != 0;

    free(*dir);
    *dir = parent;
    return moved;
}

/* Returns the nearest folder from start upwards that holds name, or NULL. New string. */
static char *find_upwards(const char *start, const char *name)
{
    char *dir = act_strdup(start);

    do
        if (exists_below(dir, name))
            return dir;
    while (config_go_up(&dir));
    free(dir);
    return NULL;
}

/* Returns what makes dir a project. A .git above, in a folder that others may write to, that is not the user's is
 * passed over, as git does, and so is a file of a project. That an aux_data is somebody else's is a matter of trust. */
static const char *find_mark(const char *dir, const char *start)
{
    static const char *const marks[] = {"aux_data", ".git", CONFIG_PROJECT_FILE};

    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        ACT_AUTOFREE char *path = act_path_join(dir, marks[i]);
        if (access(path, F_OK) == 0 && (i == 0 || strcmp(dir, start) == 0 || !act_is_foreign(path, NULL)))
            return marks[i];
    }
    return NULL;
}

const char *config_mark_of(const char *dir)
{
    return find_mark(dir, dir);
}

/* Returns the project root where no cluster file says it: the nearest folder upwards that is marked, else the start
 * folder. Never the root of the file system, and never above the home folder. */
static char *guess_root(const char *start)
{
    ACT_AUTOFREE char *home_as_given = act_home_dir();
    ACT_AUTOFREE char *home = realpath(home_as_given, NULL);
    char *dir = act_strdup(start);

    while (strcmp(dir, "/") != 0) {
        if (find_mark(dir, start))
            return dir;
        if ((home && strcmp(dir, home) == 0) || !config_go_up(&dir))
            break;
    }
    free(dir);
    return act_strdup(start);
}

const char *config_display(const char *path, const char *root)
{
    size_t n = strlen(root);

    /* what begins with '-' or '$' would look like an option or a variable */
    return act_path_is_within(path, root) && path[n] == '/' && !strchr("-$", path[n + 1]) ? path + n + 1 : path;
}

char *config_absolute(const char *path, const char *root)
{
    ACT_AUTOFREE char *home = act_home_dir();
    ACT_AUTOFREE char *full = act_starts_with(path, "~/") ? act_path_join(home, path + 2)
                              : *path == '/'              ? act_strdup(path)
                                                          : act_path_join(root, path);

    return act_path_clean(full);
}

/* Returns "c1" for ".../c1.yaml", or for a link to it. New string. */
static char *cluster_of_file(const char *file)
{
    ACT_AUTOFREE char *real = realpath(file, NULL);
    const char *name = act_path_basename(real ? real : file);
    const char *dot = strrchr(name, '.');

    return act_strndup(name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
}

static int find_by_variable(const char *value, struct config_place *out, struct act_error *err)
{
    out->file = config_absolute(value, out->current_dir);
    out->cluster = cluster_of_file(out->file);
    out->origin = act_strdup("$AML_CONFIG_PATH");
    if (access(out->file, F_OK) < 0) {
        act_error_errno(err, errno, "the cluster file '%s' that AML_CONFIG_PATH names", out->file);
        return act_error_hint(err, "unset AML_CONFIG_PATH, or name another cluster with -c");
    }
    const char *end = out->file + strlen(out->file);
    for (const char *c = end; c > out->file; c--)
        if (act_starts_with(c, "/aux_data/")) {
            out->root = act_strndup(out->file, (size_t)(c - out->file));
            return 0;
        }
    out->root = act_strdup(out->current_dir);
    return 0;
}

static void built_in(struct config_place *out)
{
    out->cluster = act_strdup(CONFIG_BUILT_IN_CLUSTER);
    out->root = guess_root(out->current_dir);
}

/* Tells whether there is a file for this cluster; then out is complete. */
static bool config_find_cluster(const char *cluster, struct config_place *out)
{
    ACT_AUTOFREE char *name = act_sprintf(CONFIG_CLUSTER_DIR "/%s.yaml", cluster);

    out->root = find_upwards(out->current_dir, name);
    if (!out->root)
        return false;
    out->file = act_path_join(out->root, name);
    return true;
}

/* Which clusters there are, and which one is meant: often its file is named, "aux_data/aml/c1.yaml". */
static int hint_clusters(const char *cluster, const char *current_dir, struct act_error *err)
{
    const char *base = act_path_basename(cluster);
    size_t n = strlen(base) - (act_ends_with(base, ".yaml") ? strlen(".yaml") : 0);
    ACT_AUTOFREE char *name = act_strndup(base, n);
    ACT_AUTO(act_strv) known = {0};
    ACT_AUTO(act_buf) list = {0};

    config_clusters(current_dir, &known);
    const char *near = act_nearest(name, (const char *const *)known.v);
    for (size_t i = 0; i < known.n; i++)
        act_buf_addf(&list, "%s'%s'", i ? ", " : "", known.v[i]);
    if (near)
        act_error_hint(err, "did you mean '%s'?", near);
    act_error_hint(err, "there are: %s", list.data);
    return -ACT_NOT_FOUND;
}

/* Looks for the user's own file of this cluster. Returns 1 and completes *out, or 0 if there is none. */
static int find_users(const char *cluster, struct config_place *out, struct act_error *err)
{
    ACT_AUTOFREE char *file = config_users_cluster_file(cluster);

    if (access(file, F_OK) < 0)
        return 0;
    out->cluster = act_strdup(cluster);
    out->root = guess_root(out->current_dir);
    int rc = config_check_users(file, err);
    if (rc == 0)
        out->file = act_strdup(file);
    return rc < 0 ? rc : 1;
}

/* Returns the file of a cluster that is listed, but is a link that leads nowhere. New string; NULL: it is none. */
static char *broken_link(const char *cluster, const char *current_dir)
{
    ACT_AUTO(config_listing) all = {0};
    struct stat st;

    config_list_all(current_dir, &all);
    for (size_t i = 0; i < all.n; i++)
        if (strcmp(all.v[i].name, cluster) == 0 && all.v[i].file && lstat(all.v[i].file, &st) == 0 &&
            S_ISLNK(st.st_mode))
            return act_strdup(all.v[i].file);
    return NULL;
}

static int no_cluster(const char *cluster, const struct config_place *place, struct act_error *err)
{
    ACT_AUTOFREE char *users = config_users_clusters(), *broken = broken_link(cluster, place->current_dir);

    if (broken)
        return act_error_set(err, ACT_NOT_FOUND, "no cluster '%s': '%s' is a link that leads nowhere", cluster, broken);
    act_error_set(err, ACT_NOT_FOUND,
                  "no cluster '%s': no file '" CONFIG_CLUSTER_DIR "/%s.yaml' in '%s' or above, nor in '%s'", cluster,
                  cluster, place->current_dir, users);
    if (strcmp(place->origin, "-c") != 0)
        act_error_hint(err, "%s names it%s", place->origin,
                       *place->origin == '/' ? ", and 'a cluster use NAME' another" : "");
    return hint_clusters(cluster, place->current_dir, err);
}

/* Finds the cluster that origin names. */
static int find_by_name(const char *cluster, const char *origin, struct config_place *out, struct act_error *err)
{
    size_t n = strlen(cluster);

    out->origin = act_strdup(origin);
    if (!act_path_is_safe(cluster, n) || cluster[n - 1] == '/') {
        act_error_set(err, ACT_NOT_FOUND,
                      "'%s' cannot be the name of a cluster, which is that of a file below '" CONFIG_CLUSTER_DIR
                      "' without '.yaml'; AML_CONFIG_PATH names a file elsewhere",
                      cluster);
        return hint_clusters(cluster, out->current_dir, err);
    }
    if (config_find_cluster(cluster, out)) {
        out->cluster = act_strdup(cluster);
        return 0;
    }
    int rc = find_users(cluster, out, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    if (strcmp(cluster, CONFIG_BUILT_IN_CLUSTER) != 0)
        return no_cluster(cluster, out, err);
    built_in(out);
    return 0;
}

/* Takes the file that the request names, which may not be there yet. */
static int take_file(const struct config_request *request, struct config_place *out, struct act_error *err)
{
    ACT_AUTOFREE char *aml = act_path_dirname(request->file);
    ACT_AUTOFREE char *aux_data = act_path_dirname(aml);
    bool in_project = act_ends_with(aml, "/" CONFIG_CLUSTER_DIR);

    out->file = act_strdup(request->file);
    out->text = request->text;
    out->cluster = request->cluster ? act_strdup(request->cluster) : cluster_of_file(request->file);
    out->origin = act_strdup(CONFIG_DEFAULT);
    out->root = request->project ? act_strdup(request->project)
                : in_project     ? act_path_dirname(aux_data)
                                 : guess_root(out->current_dir);
    return !request->text && config_is_users(request->file) ? config_check_users(request->file, err) : 0;
}

static int find_default(struct config_place *out, struct act_error *err)
{
    ACT_AUTOFREE char *name = NULL;

    if (config_find_cluster("aml", out) || config_find_cluster(CONFIG_BUILT_IN_CLUSTER, out)) {
        out->origin = act_strdup(CONFIG_DEFAULT);
        out->cluster = cluster_of_file(out->file);
        return 0;
    }
    int rc = config_user_default(&name, err);
    if (rc == 0 && name) {
        ACT_AUTOFREE char *file = config_user_file();
        return find_by_name(name, file, out, err);
    }
    out->origin = act_strdup(CONFIG_DEFAULT);
    if (rc == 0)
        built_in(out);
    return rc;
}

int config_find(const struct config_request *request, struct config_place *out, struct act_error *err)
{
    const char *start = request->start_dir ? request->start_dir : ".";
    const char *variable = act_env("AML_CONFIG_PATH"), *named = act_env("ACT_CLUSTER");

    *out = (struct config_place){.current_dir = realpath(start, NULL)};
    if (!out->current_dir)
        return act_error_errno(err, errno, "cannot enter the folder '%s'", start);
    if (request->file)
        return take_file(request, out, err);
    if (request->cluster)
        return find_by_name(request->cluster, "-c", out, err);
    if (named)
        return find_by_name(named, "$ACT_CLUSTER", out, err);
    if (variable)
        return find_by_variable(variable, out, err);
    return find_default(out, err);
}

int config_is_there(const struct config_request *request, struct act_error *err)
{
    ACT_AUTO(config_place) place = {0};

    return config_find(request, &place, err);
}

void config_place_release(struct config_place *place)
{
    free(place->file);
    free(place->root);
    free(place->cluster);
    free(place->origin);
    free(place->current_dir);
    *place = (struct config_place){0};
}

char *config_project_cluster_file(const char *start_dir, const char *name)
{
    ACT_AUTOFREE char *start = realpath(start_dir ? start_dir : ".", NULL);
    ACT_AUTOFREE char *root = start ? guess_root(start) : act_strdup(".");

    return act_sprintf("%s/" CONFIG_CLUSTER_DIR "/%s.yaml", root, name);
}

static void config_find_add_new(struct act_strv *out, const char *path)
{
    if (!act_strv_has(out, path))
        act_strv_push(out, path);
}

static void add_login_file(const struct config *config, const struct yaml *named, struct act_strv *out)
{
    if (yaml_is_null(named) || named->kind != YAML_SCALAR || !*named->text)
        return;
    ACT_AUTOFREE char *path = config_absolute(named->text, config->project_root);
    config_find_add_new(out, path);
}

static void add_login_files_of(const struct config *config, const char *file, struct act_strv *out)
{
    struct yaml *tree = NULL;
    struct act_error ignored;

    if (yaml_read(file, file, &tree, &ignored) < 0)
        return;
    for (const struct config_kind *const *kind = config_kinds(); *kind; kind++)
        if ((*kind)->login_file_key)
            add_login_file(config, config_tree_value(tree, (*kind)->login_file_key), out);
    yaml_tree_free(tree);
}

void config_login_files(const struct config *config, struct act_strv *out)
{
    ACT_AUTO(config_listing) clusters = {0};

    for (const struct config_kind *const *kind = config_kinds(); *kind; kind++) {
        const char *file = (*kind)->login_file_key ? config_text(config, (*kind)->login_file_key) : NULL;
        if (file)
            config_find_add_new(out, file);
    }
    config_list(config->project_root, &clusters);
    for (size_t i = 0; i < clusters.n; i++)
        if (clusters.v[i].file)
            add_login_files_of(config, clusters.v[i].file, out);
}
