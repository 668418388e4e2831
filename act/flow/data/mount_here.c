/* mount_here.c - a mapped path as a folder of this machine, for people. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth/services.h"
#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "config/config.h"
#include "flow/data/data.h"
#include "flow/data/mount.h"
#include "flow/flow_internal.h"
#include "flow/trust.h"

/* Refuses a folder with something in it, which a mount would hide. Ends a mount whose tool was killed. */
static int check_point(const char *at, struct act_error *err)
{
    DIR *d;
    const struct dirent *e;
    bool is_empty = true;

    if (mounts_is_one(at) && access(at, F_OK) < 0 && errno == ENOTCONN && mounts_end(at, true, err) < 0)
        return -ACT_FAIL;
    if (mounts_is_one(at))
        return act_error_set(err, ACT_USAGE, "something is mounted at '%s' already", at);
    if (!(d = opendir(at)))
        return errno == ENOENT ? act_error_set(err, ACT_NOT_FOUND,
                                               "cannot mount at '%s': there is no such folder; make it first", at)
                               : act_error_errno(err, errno, "cannot mount at '%s'", at);
    while ((e = readdir(d)))
        is_empty = is_empty && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0);
    closedir(d);
    return is_empty ? 0 : act_error_set(err, ACT_USAGE, "'%s' is not empty: mount at an empty folder", at);
}

static enum run_folder_mode mount_here_mode_of(bool read_only)
{
    return read_only ? RUN_FOLDER_RO_MOUNT : RUN_FOLDER_RW_MOUNT;
}

/* The container and the path in it that a mapped path is; out->path is a new string. */
static int mount_here_find_place(struct flow *flow, const char *path, bool *io_read_only, struct config_folder *out,
                                 struct act_error *err)
{
    const struct config_folder *f;
    ACT_AUTOFREE char *rest = NULL;
    int rc = config_map_path(flow->config, path, &f, &rest, err);

    if (rc == 0 && f->claim)
        rc = act_error_set(err, ACT_CONFIG, "it is on the PersistentVolumeClaim '%s', which only pods see", f->claim);
    if (rc == 0 && f->is_far)
        rc =
            act_error_set(err, ACT_CONFIG, "'%s' is behind a login node: copy it with 'a d %s', or mount it with sshfs",
                          f->name, f->name);
    if (rc == 0 && *rest && !act_path_is_safe(rest, strlen(rest)))
        rc = act_error_set(err, ACT_USAGE, "'%s' has an empty segment ('//') in its name, which a mount cannot have",
                           path);
    if (rc == 0 && *rest)
        rc = flow_trust_path(flow->config, f->name, rest, err);
    if (rc < 0)
        return rc;
    *out = *f;
    out->path = act_path_join(f->path, rest);
    *io_read_only = *io_read_only || act_streq(f->mode, "ro_mount");
    return 0;
}

/* Removes what one that was killed has left, except what is not in the store. */
static void clear_left(const char *dir)
{
    ACT_AUTOFREE char *lock = act_path_join(dir, RUN_FILE_MOUNT_LOCK);
    struct act_error err;
    int fd = act_lock(lock, false, &err);
    size_t n = fd < 0 ? 0 : run_mount_unsent(dir);

    if (fd < 0) /* it is in use */
        return;
    if (n > 0)
        act_warn(
            "%zu file%s written to an earlier mount %s not in the store but in '%s'; remove that when you have them", n,
            n == 1 ? "" : "s", n == 1 ? "is" : "are", dir);
    else if (act_remove_tree(dir, &err) < 0)
        act_warn("%s", act_error_text(&err));
    close(fd);
}

static void clear_all_left(const char *all)
{
    DIR *d = opendir(all);
    const struct dirent *e;

    while (d && (e = readdir(d))) {
        ACT_AUTOFREE char *dir = act_path_join(all, e->d_name);
        if (e->d_type == DT_DIR && e->d_name[0] != '.')
            clear_left(dir);
    }
    if (d)
        closedir(d);
}

/* A folder for what is on its way, which is in use as long as its lock is held. New string. */
static int make_locked(const char *all, char **out, int *out_lock, struct act_error *err)
{
    char *dir = act_path_join(all, "XXXXXX");

    *out = dir;
    if (!mkdtemp(dir))
        return act_error_errno(err, errno, "cannot make a folder in '%s'", all);
    ACT_AUTOFREE char *lock = act_path_join(dir, RUN_FILE_MOUNT_LOCK);
    *out_lock = act_lock(lock, true, err);
    return *out_lock < 0 ? *out_lock : 0;
}

/* Makes a private folder, one process at a time, so that nobody clears another one's new folder. */
static int mount_here_make_private(char **out, int *out_lock, struct act_error *err)
{
    ACT_AUTOFREE char *cache = act_cache_dir();
    ACT_AUTOFREE char *all = act_path_join(cache, "mounts");
    ACT_AUTOFREE char *lock = act_path_join(all, RUN_FILE_MOUNT_LOCK);
    int rc = act_mkdir_all(all, 0700, err), fd = rc < 0 ? rc : act_lock_shortly(lock, err);

    if (fd < 0)
        return fd;
    clear_all_left(all);
    rc = make_locked(all, out, out_lock, err);
    close(fd);
    return rc;
}

/* A mount for people. */
struct here {
    struct flow *flow;
    struct config_folder place;
    struct mount_plan plan;
};

/* The loop of the flow is its process's. */
static int mount_here_renew(void *arg, struct flow_blob *out, struct act_error *err)
{
    const struct here *h = arg;
    struct services services = {.network = flow_services(h->flow)->network};
    struct config config = *h->flow->config;
    struct flow flow = {.config = &config, .services = &services};

    flow_use_vaults(&flow, &config);
    return flow_blob_of(&flow, &h->place, mount_here_mode_of(h->plan.read_only), out, err);
}

static void mount_here_say_slow(void *arg)
{
    const struct mount_plan *plan = &((const struct here *)arg)->plan;

    act_note("%s  waits for %s to mount it; Ctrl-C ends that", plan->name, mounts_tool_name(plan->tool));
}

static void mount_here_say_ready(void *arg)
{
    const struct mount_plan *plan = &((const struct here *)arg)->plan;
    int64_t ends_s = flow_blob_ends_s(plan->blob);
    char at[ACT_TIME_TEXT];

    act_note("%s  at '%s'%s, by %s; Ctrl-C %sunmounts it", plan->name, plan->at, plan->read_only ? ", read-only" : "",
             mounts_tool_name(plan->tool), plan->read_only ? "" : "sends what was written, and ");
    if (plan->tool == MOUNTS_BLOBFUSE2 || ends_s == INT64_MAX)
        return;
    act_time_to_iso(ends_s, at);
    act_note("%s  open until %s, when its SAS ends; mount it again to go on", plan->name, at);
}

static void say_waits(void *arg)
{
    const struct mount_plan *plan = &((const struct here *)arg)->plan;

    act_note("%s  waits for files that are still open, or on their way to the store; Ctrl-C twice more leaves them in "
             "'%s'",
             plan->name, plan->dir);
}

static int mount_here_keep(struct here *h, struct act_error *err)
{
    ACT_AUTOFREE char *dir = NULL;
    struct act_error ignored;
    int lock = -1, rc = mount_here_make_private(&dir, &lock, err);

    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *cache = act_path_join(dir, "cache");
    h->plan.dir = dir;
    struct mount_keeper k = {.plan = h->plan,
                             .slow = mount_here_say_slow,
                             .ready = mount_here_say_ready,
                             .waits = say_waits,
                             .renew = mount_here_renew,
                             .arg = h};
    rc = act_mkdir_all(cache, 0700, err);
    if (rc == 0)
        rc = mount_keep(&k, err);
    if (run_mount_unsent(dir) == 0 && act_remove_tree(dir, &ignored) < 0)
        act_warn("%s", act_error_text(&ignored));
    close(lock);
    return rc;
}

static int mount_at(struct here *h, const char *at, struct act_error *err)
{
    int rc = check_point(at, err);
    ACT_AUTOFREE char *real = realpath(at, NULL);

    if (rc == 0)
        rc = flow_blob_check(h->flow, h->plan.blob, err);
    if (rc < 0)
        return rc;
    h->plan.at = real ? real : at;
    rc = mount_here_keep(h, err);
    return rc < 0 ? act_error_prefix(err, "'%s'", h->plan.name) : 0;
}

int flow_mount(struct flow *flow, const char *path, const char *at, bool read_only, struct act_error *err)
{
    ACT_AUTO(flow_blob) blob = {0};
    ACT_AUTOFREE char *program = NULL;
    struct here h = {.flow = flow, .plan = {.name = path, .blob = &blob, .read_only = read_only}};
    int rc = mount_here_find_place(flow, path, &h.plan.read_only, &h.place, err);

    if (rc < 0)
        return act_error_prefix(err, "cannot mount '%s'", path);
    rc = flow_blob_of(flow, &h.place, mount_here_mode_of(h.plan.read_only), &blob, err);
    if (rc == 0 && blob.is_share)
        rc = act_error_set(err, ACT_CONFIG,
                           "it is in the share '%s' of Azure Files, which ACT does not mount: mount that by SMB, or "
                           "copy it with 'a d'",
                           blob.container);
    if (rc == 0 && act_streq(flow->config->mount, RUN_MOUNT_COPY))
        rc = act_error_set(err, ACT_CONFIG, "the cluster has 'mount: copy', so nothing is mounted; 'a d' copies it");
    if (rc == 0)
        rc = flow_check_rights(&blob, mount_here_mode_of(h.plan.read_only), path, err);
    if (rc == 0)
        rc = mounts_find_tool(flow->config->mount, &h.plan.tool, &program, err);
    if (rc == 0) {
        h.plan.program = program;
        rc = mount_at(&h, at, err);
    } else {
        rc = act_error_prefix(err, "cannot mount '%s'", path);
    }
    free(h.place.path);
    return rc;
}
