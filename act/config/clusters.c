/* clusters.c - which clusters there are: those of the project, and the user's own for all projects. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/path.h"
#include "config/config_internal.h"

char *config_users_clusters(void)
{
    ACT_AUTOFREE char *dir = act_config_dir();

    return act_path_join(dir, "clusters");
}

char *config_users_cluster_file(const char *name)
{
    ACT_AUTOFREE char *dir = config_users_clusters();

    return act_sprintf("%s/%s.yaml", dir, name);
}

/* A name is that of a file and a word of a shell, and must not look like an option. */
int config_check_name(const char *name, struct act_error *err)
{
    enum { MAX_NAME = 64 };
    static const char taken[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    if (*name && *name != '.' && *name != '-' && strlen(name) <= MAX_NAME && strspn(name, taken) == strlen(name) &&
        !act_ends_with(name, ".yaml"))
        return 0;
    return act_error_set(err, ACT_USAGE,
                         "'%s' cannot be the name of a cluster, which is at most %d letters, digits, '.', '_' and '-', "
                         "begins with none of '.' and '-', and goes without '.yaml'",
                         name, MAX_NAME);
}

static bool config_clusters_has(const struct config_listing *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i].name, name) == 0)
            return true;
    return false;
}

static void config_clusters_add(struct config_listing *list, const char *name, char *file, bool is_users)
{
    struct config_named named = {
        .name = act_strdup(name), .file = file, .is_users = is_users, .is_hidden = config_clusters_has(list, name)};

    ACT_PUSH(list->v, list->n, named);
}

static void config_clusters_add_folder(struct config_listing *list, const char *dir, bool is_users)
{
    ACT_AUTO(act_strv) names = {0};
    DIR *folder = opendir(dir);

    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        size_t n = strlen(entry->d_name);
        if (entry->d_name[0] != '.' && act_ends_with(entry->d_name, ".yaml"))
            act_strv_take(&names, act_strndup(entry->d_name, n - strlen(".yaml")));
    }
    if (folder)
        closedir(folder);
    act_strv_sort(&names);
    for (size_t i = 0; i < names.n; i++)
        config_clusters_add(list, names.v[i], act_sprintf("%s/%s.yaml", dir, names.v[i]), is_users);
}

/* Tells whether two paths lead to one file, as AML_CONFIG_PATH may write it in another way. */
static bool is_same_file(const char *one, const char *other)
{
    struct stat a, b;

    if (!one || !other)
        return one == other;
    return strcmp(one, other) == 0 ||
           (stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

/* The cluster of a file that AML_CONFIG_PATH names is in none of the folders: it comes first. */
static void put_first(struct config_listing *list, const struct config_place *place)
{
    ACT_GROW(list->v, list->n);
    memmove(list->v + 1, list->v, list->n * sizeof(*list->v));
    list->v[0] =
        (struct config_named){.name = act_strdup(place->cluster), .file = act_strdup(place->file), .is_default = true};
    list->n++;
}

static void config_clusters_mark_default(const char *start_dir, struct config_listing *list)
{
    ACT_AUTO(config_place) place = {0};
    struct act_error ignored;
    bool found = false;

    if (config_find(&(struct config_request){.start_dir = start_dir}, &place, &ignored) < 0)
        return;
    for (size_t i = 0; i < list->n; i++) {
        list->v[i].is_default = !found && is_same_file(list->v[i].file, place.file);
        found = found || list->v[i].is_default;
    }
    if (!found)
        put_first(list, &place);
}

void config_list_all(const char *start_dir, struct config_listing *out)
{
    ACT_AUTOFREE char *dir = realpath(start_dir ? start_dir : ".", NULL), *users = config_users_clusters();

    *out = (struct config_listing){0};
    if (dir)
        do {
            ACT_AUTOFREE char *folder = act_path_join(dir, CONFIG_CLUSTER_DIR);
            config_clusters_add_folder(out, folder, false);
        } while (config_go_up(&dir));
    config_clusters_add_folder(out, users, true);
    if (!config_clusters_has(out, CONFIG_BUILT_IN_CLUSTER))
        config_clusters_add(out, CONFIG_BUILT_IN_CLUSTER, NULL, false);
}

void config_list(const char *start_dir, struct config_listing *out)
{
    config_list_all(start_dir, out);
    config_clusters_mark_default(start_dir, out);
}

void config_listing_release(struct config_listing *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->v[i].name);
        free(list->v[i].file);
    }
    free(list->v);
    *list = (struct config_listing){0};
}

void config_clusters(const char *start_dir, struct act_strv *out)
{
    ACT_AUTO(config_listing) all = {0};

    config_list_all(start_dir, &all);
    for (size_t i = 0; i < all.n; i++)
        if (!all.v[i].is_hidden && strcmp(all.v[i].name, CONFIG_BUILT_IN_CLUSTER) != 0)
            act_strv_push(out, all.v[i].name);
    act_strv_sort(out);
    act_strv_push(out, CONFIG_BUILT_IN_CLUSTER);
}
