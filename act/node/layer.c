#include "node/layer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"

char *layer_path(const struct node *node)
{
    struct statvfs fs;
    bool is_noexec = node->dir && node->local && statvfs(node->local, &fs) == 0 && (fs.f_flag & ST_NOEXEC);

    return is_noexec ? act_sprintf("%s/" RUN_DIR_TEMP "/python.%d.%d", node->dir, node->node_rank, node->attempt)
                     : act_sprintf("%s/python.%d", node->local, node->attempt);
}

/* Links the name to the same name in another folder. */
static int layer_link(const char *from, const char *to, const char *name, struct act_error *err)
{
    ACT_AUTOFREE char *target = act_path_join(from, name);
    ACT_AUTOFREE char *path = act_path_join(to, name);

    return symlink(target, path) == 0 ? 0 : act_error_errno(err, errno, "cannot make the link '%s'", path);
}

/* "python", "python3", "python3.11": all of them start in the layer. */
static bool layer_is_python(const char *name)
{
    static const char stem[] = "python";

    return act_starts_with(name, stem) && !name[strlen(stem) + strspn(name + strlen(stem), "0123456789.")];
}

static int layer_link_pythons(const char *env, const char *layer, struct act_error *err)
{
    ACT_AUTOFREE char *from = act_path_join(env, "bin");
    ACT_AUTOFREE char *to = act_path_join(layer, "bin");
    ACT_AUTO(act_strv) names = {0};
    int rc = act_mkdir_all(to, 0755, err);

    act_folder_names(from, &names);
    for (size_t i = 0; rc == 0 && i < names.n; i++)
        if (layer_is_python(names.v[i]))
            rc = layer_link(from, to, names.v[i], err);
    return rc;
}

/* Makes the folders of a tree, and links to its files: whoever writes a file of that name replaces the link. */
static int layer_mirror(const char *env, const char *layer, const char *name, struct act_error *err)
{
    ACT_AUTOFREE char *from = act_path_join(env, name);
    ACT_AUTOFREE char *to = act_path_join(layer, name);
    ACT_AUTO(act_strv) names = {0};
    struct stat st;

    if (lstat(from, &st) < 0)
        return 0;
    if (!S_ISDIR(st.st_mode))
        return layer_link(env, layer, name, err);
    int rc = act_mkdir_all(to, 0755, err);
    act_folder_names(from, &names);
    for (size_t i = 0; rc == 0 && i < names.n; i++)
        rc = layer_mirror(from, to, names.v[i], err);
    return rc;
}

/* Returns the folder of the packages, such as lib/python3.11/site-packages. New string; NULL: there is none. */
static char *layer_packages_of(const char *env)
{
    ACT_AUTOFREE char *lib = act_path_join(env, "lib");
    ACT_AUTO(act_strv) names = {0};

    act_folder_names(lib, &names);
    for (size_t i = 0; i < names.n; i++) {
        ACT_AUTOFREE char *packages = act_sprintf("lib/%s/site-packages", names.v[i]);
        ACT_AUTOFREE char *folder = act_path_join(lib, names.v[i]);
        ACT_AUTOFREE char *path = act_path_join(env, packages);
        struct stat st; /* conda has lib/python3.1 as a link to lib/python3.11 */
        if (lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && access(path, F_OK) == 0)
            return act_strdup(packages);
    }
    return NULL;
}

static int layer_name_packages(const char *layer, const char *packages, struct act_error *err)
{
    ACT_AUTOFREE char *dir = act_path_join(layer, packages);
    ACT_AUTOFREE char *path = act_path_join(dir, "act.pth");
    ACT_AUTOFREE char *lib64 = act_path_join(layer, "lib64");
    ACT_AUTOFREE char *text = act_sprintf(
        "import os, site, sys; site.addsitedir(os.path.join(os.readlink(os.path.join(sys.prefix, '" LAYER_BELOW
        "')), '%s'))\n",
        packages);
    int rc = act_mkdir_all(dir, 0755, err);

    if (rc == 0 && symlink("lib", lib64) < 0)
        rc = act_error_errno(err, errno, "cannot make the link '%s'", lib64);
    return rc < 0 ? rc : act_file_write_quickly(path, text, strlen(text), 0644, err);
}

/* The Python is the one that the environment was made from; that of a conda environment is its own. */
static int layer_write_config(const char *layer, const char *env, const char *its_config, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(layer, "pyvenv.cfg");
    ACT_AUTOFREE char *text =
        its_config ? act_strdup(its_config) : act_sprintf("home = %s/bin\ninclude-system-site-packages = true\n", env);

    return act_file_write_quickly(path, text, strlen(text), 0644, err);
}

int layer_make(const struct node *node, const char *env, struct act_error *err)
{
    enum { CONFIG_MAX = 64 * 1024 };
    ACT_AUTOFREE char *layer = layer_path(node);
    ACT_AUTOFREE char *below = act_path_join(layer, LAYER_BELOW);
    ACT_AUTOFREE char *config = act_path_join(env, "pyvenv.cfg");
    ACT_AUTOFREE char *packages = layer_packages_of(env);
    ACT_AUTOFREE char *text = NULL;
    int rc = act_remove_tree(layer, err);

    if (rc < 0 || !packages)
        return rc;
    bool is_venv = act_file_read_regular(config, CONFIG_MAX, &text, NULL, NULL) == 0;
    rc = layer_link_pythons(env, layer, err);
    if (rc == 0)
        rc = layer_name_packages(layer, packages, err);
    if (rc == 0 && symlink(env, below) < 0)
        rc = act_error_errno(err, errno, "cannot make the link '%s'", below);
    if (rc == 0 && is_venv) /* those of a conda environment are many, and found by CONDA_PREFIX */
        rc = layer_mirror(env, layer, "share", err);
    if (rc == 0 && is_venv)
        rc = layer_mirror(env, layer, "etc", err);
    return rc < 0 ? rc : layer_write_config(layer, env, text, err);
}
