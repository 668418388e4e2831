/* paths.c - paths that are typed: the mapped folder that one leads to, and the name in it. */
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "config/config_internal.h"

/* Returns the i-th of all folders that a path may lead to; NULL: there are no more. */
static const struct config_folder *config_paths_folder(const struct config *config, size_t i)
{
    if (i < config->n_folders)
        return &config->folders[i];
    return i - config->n_folders < config->n_far ? &config->far[i - config->n_folders] : NULL;
}

static const struct config_folder *config_paths_find_folder(const struct config *config, const char *name, size_t len)
{
    const struct config_folder *folder;

    for (size_t i = 0; (folder = config_paths_folder(config, i)); i++)
        if (strlen(folder->name) == len && strncmp(folder->name, name, len) == 0)
            return folder;
    return NULL;
}

/* Hints at the root of the project from a folder in it, if the path would be right there. */
static void hint_root(const struct config *config, const char *path, struct act_error *err)
{
    const char *below = config->values->current_dir + strlen(config->project_root);
    ACT_AUTO(act_buf) up = {0};

    if (!act_path_is_within(config->values->current_dir, config->project_root) ||
        !config_paths_find_folder(config, path, strcspn(path, "/")))
        return;
    for (; *below; below += strcspn(below, "/")) {
        below += strspn(below, "/");
        act_buf_adds(&up, *below ? "../" : "");
    }
    if (up.len)
        act_error_hint(err, "paths count from the current folder: did you mean '%s%s'?", up.data, path);
}

static int unknown_folder(const struct config *config, const char *path, const char *name, struct act_error *err)
{
    const struct config_folder *folder;
    ACT_AUTO(act_strv) names = {0};
    ACT_AUTO(act_buf) list = {0};

    for (size_t i = 0; (folder = config_paths_folder(config, i)); i++) {
        act_strv_push(&names, folder->name);
        act_buf_addf(&list, "%s'%s'", i ? ", " : "", folder->name);
    }
    const char *near = names.n ? act_nearest(name, (const char *const *)names.v) : NULL;
    if (*name)
        act_error_set(err, ACT_NOT_FOUND, "'%s' is in no mapped folder of cluster '%s'", path, config->cluster);
    else
        act_error_set(err, ACT_NOT_FOUND, "'%s' is the project itself, name one of its mapped folders", path);
    if (near)
        act_error_hint(err, "did you mean '%s'?", near);
    hint_root(config, path, err);
    if (list.len == 0)
        act_error_hint(err, "no folders are mapped: 'config_param' in the cluster file says which are, and where");
    else if (!near)
        act_error_hint(err, "mapped folders: %s; other files go with the code, or 'config_param' maps one more",
                       list.data);
    return -ACT_NOT_FOUND;
}

/* After a name ".." may lead anywhere, because the name may be a link. */
static bool has_inner_parent(const char *path)
{
    while (act_starts_with(path, "../") || act_starts_with(path, "./") || *path == '/')
        path += strspn(path, ".") + 1;
    return strcmp(path, "..") != 0 && act_path_has_parent(path);
}

const struct config_folder *config_folder_named(const struct config *config, const char *name)
{
    return config_paths_find_folder(config, name, strlen(name));
}

/* Returns the part of a place in the project behind its root. */
static const char *inside_project(const struct config *config, const char *place)
{
    const char *inside = place + strlen(config->project_root);

    return inside + strspn(inside, "/");
}

/* Returns the mapped folder that a place is or lies in; NULL: none. */
static const struct config_folder *folder_around(const struct config *config, const char *place)
{
    if (!act_path_is_within(place, config->project_root))
        return NULL;
    const char *inside = inside_project(config, place);
    return config_paths_find_folder(config, inside, strcspn(inside, "/"));
}

/* Goes the way to a mapped folder that a path begins with. From there on names are those of a store, in which "a//b" is
 * not "a/b". Returns the rest of the path; *out_place is where that begins, a new string. */
static const char *go_to_folder(const struct config *config, const char *path, char **out_place)
{
    char *place = act_strdup(*path == '/' ? "/" : config->values->current_dir);
    bool named = false;

    while (*path) {
        size_t n = strcspn(path, "/");
        ACT_AUTOFREE char *segment = act_strndup(path, n);
        bool is_name = n > 0 && !act_path_has_dots(segment);
        if (folder_around(config, place) && (named || n == 0 || is_name))
            break;
        ACT_AUTOFREE char *full = act_path_join(place, segment);
        free(place);
        place = act_path_clean(full);
        named = named || is_name;
        path += n + (path[n] == '/');
    }
    *out_place = place;
    return path;
}

/* Returns a path within the mapped folder: the part of the place that lies in it, then the rest. New string. */
static char *name_in_folder(const struct config *config, const char *place, const char *path, const char *rest)
{
    const char *inside = inside_project(config, place);
    const char *below = inside + strcspn(inside, "/");

    below += *below == '/';
    if (*below && !*rest && act_ends_with(path, "/"))
        return act_sprintf("%s/", below);
    return act_path_below(below, rest);
}

int config_map_path(const struct config *config, const char *path, const struct config_folder **out_folder,
                    char **out_rest, struct act_error *err)
{
    const char *root = config->project_root;
    ACT_AUTOFREE char *place = NULL;

    if (!*path)
        return act_error_set(err, ACT_USAGE, "an empty path");
    const char *rest = go_to_folder(config, path, &place);
    if (has_inner_parent(path) || act_path_has_dots(rest))
        return act_error_set(err, ACT_USAGE, "'%s': '.' and '..' are allowed only at the beginning", path);
    if (!act_path_is_within(place, root))
        return act_error_set(err, ACT_USAGE, "'%s' is outside of the project '%s'", path, root);
    *out_folder = folder_around(config, place);
    if (!*out_folder) {
        const char *inside = inside_project(config, place);
        ACT_AUTOFREE char *name = act_strndup(inside, strcspn(inside, "/"));
        return unknown_folder(config, path, name, err);
    }
    *out_rest = name_in_folder(config, place, path, rest);
    return 0;
}
