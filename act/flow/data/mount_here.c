/* mount_here.c - a mapped path as a folder of this machine, for people. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "flow/data/data.h"
#include "flow/data/mount.h"
#include "flow/flow_internal.h"
#include "flow/trust.h"

/* What is there would be hidden. */
static int check_point(const char *at, struct act_error *err)
{
    DIR *d;
    const struct dirent *e;
    bool is_empty = true;

    if (mounts_is_one(at))
        return act_error_set(err, ACT_USAGE, "something is mounted at '%s' already", at);
    if (!(d = opendir(at)))
        return act_error_errno(err, errno, "cannot mount at '%s'", at);
    while ((e = readdir(d)))
        is_empty = is_empty && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0);
    closedir(d);
    return is_empty ? 0 : act_error_set(err, ACT_USAGE, "'%s' is not empty: mount at an empty folder", at);
}

/* The container and the path in it that a mapped path is. */
static int find_blob(struct flow *flow, const char *path, bool *io_read_only, struct flow_blob *out,
                     struct act_error *err)
{
    const struct config_folder *f;
    ACT_AUTOFREE char *rest = NULL;
    int rc = config_map_path(&flow->config, path, &f, &rest, err);

    if (rc == 0 && f->claim)
        rc = act_error_set(err, ACT_CONFIG, "it is on the PersistentVolumeClaim '%s', which only pods see", f->claim);
    if (rc == 0 && *rest)
        rc = flow_trust_path(&flow->config, f->name, rest, err);
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *key = act_path_join(f->path, rest);
    struct config_folder place = *f;
    place.path = key;
    *io_read_only = *io_read_only || act_streq(f->mode, "ro_mount");
    return flow_blob_of(flow, &place, *io_read_only ? RUN_FOLDER_RO_MOUNT : RUN_FOLDER_RW_MOUNT, out, err);
}

/* A folder for what is on its way. New string. */
static int make_private(char **out, struct act_error *err)
{
    ACT_AUTOFREE char *cache = act_cache_dir();
    ACT_AUTOFREE char *all = act_path_join(cache, "mounts");
    char *dir = act_path_join(all, "XXXXXX");
    int rc = act_mkdir_all(all, 0700, err);

    if (rc == 0 && !mkdtemp(dir))
        rc = act_error_errno(err, errno, "cannot make a folder in '%s'", all);
    if (rc < 0)
        free(dir);
    else
        *out = dir;
    return rc;
}

static void say_ready(void *arg)
{
    const struct mount_plan *plan = arg;

    act_note("%s  at '%s'%s, by %s; Ctrl-C sends what was written, and unmounts it", plan->name, plan->at,
             plan->read_only ? ", read-only" : "", mounts_tool_name(plan->tool));
}

static int keep(struct mount_plan *plan, struct act_error *err)
{
    ACT_AUTOFREE char *dir = NULL;
    struct act_error ignored;
    int rc = make_private(&dir, err);

    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *cache = act_path_join(dir, "cache");
    plan->dir = dir;
    struct mount_keeper k = {.plan = *plan, .ready = say_ready, .arg = plan};
    rc = act_mkdir_all(cache, 0700, err);
    if (rc == 0)
        rc = mount_keep(&k, err);
    if (run_mount_unsent(dir) == 0 && act_remove_tree(dir, &ignored) < 0)
        act_warn("%s", act_error_text(&ignored));
    return rc;
}

int flow_mount(struct flow *flow, const char *path, const char *at, bool read_only, struct act_error *err)
{
    ACT_AUTO(flow_blob) blob = {0};
    ACT_AUTOFREE char *program = NULL;
    struct mount_plan plan = {.name = path, .blob = &blob};
    int rc = find_blob(flow, path, &read_only, &blob, err);

    if (rc == 0)
        rc = mounts_find_tool(flow->config.mount, &plan.tool, &program, err);
    if (rc < 0)
        return act_error_prefix(err, "cannot mount '%s'", path);
    rc = check_point(at, err);
    if (rc == 0)
        rc = flow_blob_check(flow, &blob, err);
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *real = realpath(at, NULL);
    plan.program = program;
    plan.read_only = read_only;
    plan.at = real ? real : at;
    rc = keep(&plan, err);
    return rc < 0 ? act_error_prefix(err, "'%s'", path) : 0;
}
