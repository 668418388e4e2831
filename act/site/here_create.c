/* here_create.c - creates what is below the root: folders of runs, packages, the agent. Whatever is visible there is
 * complete: it is filled under another name and renamed (here_new.c). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "proc/proc.h"
#include "site/site_internal.h"

/* ---- files that never change ---- */

bool here_is_there(const char *path, int64_t size)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == size;
}

static int copy_whole(const struct site *site, const char *from, const char *to, mode_t mode, struct act_error *err)
{
    struct here_filling f;
    int rc = here_fill(site, act_path_basename(to), &f, err);

    if (rc == 0)
        rc = act_file_copy(from, f.path, mode, err);
    return here_publish(&f, to, rc, err);
}

int here_size_of(const char *path, int64_t *out, struct act_error *err)
{
    struct stat st;

    *out = 0;
    if (stat(path, &st) < 0)
        return act_error_errno(err, errno, "cannot read '%s'", path);
    *out = st.st_size;
    return 0;
}

/* ---- the package ---- */

char *here_package_path(const struct site *site, const char *sha256)
{
    return act_sprintf("%s/packages/%s.zip", site->root, sha256);
}

int here_keep_package(struct site *site, const char *package, const char *sha256, struct act_error *err)
{
    ACT_AUTOFREE char *kept = here_package_path(site, sha256);
    int64_t size;
    int rc = here_size_of(package, &size, err);

    return rc < 0 || here_is_there(kept, size) ? rc : copy_whole(site, package, kept, 0600, err);
}

/* A hard link costs nothing, and packages never change: they are named by their content. From another file system
 * the package is copied once for all its runs. */
static int here_create_add_package(struct site *site, const char *dir, const char *package, const char *sha256,
                                   struct act_error *err)
{
    ACT_AUTOFREE char *to = act_path_join(dir, RUN_FILE_PACKAGE);
    ACT_AUTOFREE char *kept = here_package_path(site, sha256);

    if (!package || link(package, to) == 0)
        return 0;
    if (!*sha256) /* it has no name to keep it under */
        return act_file_copy(package, to, 0600, err);
    int rc = here_keep_package(site, package, sha256, err);
    if (rc < 0 || link(kept, to) == 0)
        return rc;
    return act_file_copy(kept, to, 0600, err);
}

/* ---- runs ---- */

static int here_create_add_files(const char *dir, const struct site_new *run, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < run->n_files && rc == 0; i++) {
        const struct site_text *file = &run->files[i];
        ACT_AUTOFREE char *path = act_path_join(dir, file->name);
        rc = act_file_write(path, file->text, strlen(file->text), 0600, err);
    }
    return rc;
}

static int fill_run_dir(struct site *site, const char *dir, const struct site_new *run, struct act_error *err)
{
    const struct run_spec *spec = run->spec;
    struct run_status queued = {.state = RUN_QUEUED, .failed_rank = -1, .attempt = 1};
    ACT_AUTOFREE char *waits = run_waits_for(&spec->needs, spec->needs_any);
    ACT_AUTOFREE char *spec_path = act_path_join(dir, RUN_FILE_SPEC);
    ACT_AUTOFREE char *secrets = act_path_join(dir, RUN_FILE_SECRETS);
    ACT_AUTOFREE char *status = act_path_join(dir, RUN_FILE_STATUS);
    ACT_AUTOFREE char *logs = act_path_join(dir, RUN_DIR_SYSTEM);
    int rc = act_mkdir_all(logs, 0700, err);

    if (spec->needs.n)
        snprintf(queued.reason, sizeof(queued.reason), "%s", waits);
    if (rc == 0)
        rc = run_spec_write(spec, spec_path, err);
    if (rc == 0)
        rc = run_secrets_write(spec, secrets, err);
    if (rc == 0)
        rc = run_status_write(status, &queued, err);
    if (rc == 0)
        rc = here_create_add_package(site, dir, run->package, spec->package_sha256, err);
    return rc == 0 ? here_create_add_files(dir, run, err) : rc;
}

static int here_create_publish(const char *temp, const char *dir, bool *out_existed, struct act_error *err)
{
    if (rename(temp, dir) == 0)
        return 0;
    *out_existed = errno == EEXIST || errno == ENOTEMPTY;
    return *out_existed ? 0 : act_error_errno(err, errno, "cannot make the run's folder '%s'", dir);
}

/* Makes a folder to fill, after it has removed what others have left. */
static int make_filling(struct site *site, const char *id, struct here_filling *out, struct act_error *err)
{
    ACT_AUTOFREE char *runs = act_path_join(site->root, "runs");
    struct act_error ignored;
    int rc = act_mkdir_all(runs, 0700, err);

    *out = (struct here_filling){.lock_fd = -1};
    if (rc < 0)
        return rc;
    (void)!here_clear(site, false, NULL, &ignored); /* the next one tries again */
    rc = here_fill(site, id, out, err);
    if (rc == 0 && mkdir(out->path, 0700) < 0)
        rc = act_error_errno(err, errno, "cannot make the folder '%s'", out->path);
    return rc;
}

static int lock_in(const char *dir, int *out_fd, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(dir, RUN_FILE_LOCK);
    int fd = act_lock(path, false, err);

    *out_fd = fd;
    return fd < 0 ? fd : 0;
}

/* Makes the folder, or leaves the one that exists as it is. */
static int fill_and_publish(struct site *site, const struct site_new *run, const char *dir, int *out_lock_fd,
                            bool *out_existed, struct act_error *err)
{
    struct here_filling f;
    int rc = make_filling(site, run->spec->id, &f, err);
    bool made = rc == 0;

    if (rc == 0 && out_lock_fd)
        rc = lock_in(f.path, out_lock_fd, err);
    if (rc == 0)
        rc = fill_run_dir(site, f.path, run, err);
    if (rc == 0)
        rc = here_create_publish(f.path, dir, out_existed, err);
    if (made && (rc < 0 || *out_existed)) {
        struct act_error ignored;
        (void)!act_remove_tree(f.path, &ignored); /* it will be removed as left over */
    }
    here_filling_release(&f);
    return rc;
}

int here_create_run(struct site *site, const struct site_new *run, int *out_lock_fd, bool *out_existed,
                    struct act_error *err)
{
    ACT_AUTOFREE char *dir = site_run_dir(site, run->spec->id);
    int lock_fd = -1;

    *out_existed = false;
    if (!run_id_valid(run->spec->id))
        return act_error_set(err, ACT_USAGE, "'%s' is not a run id", run->spec->id);
    *out_existed = access(dir, F_OK) == 0;
    if (*out_existed)
        return 0;
    int rc = fill_and_publish(site, run, dir, out_lock_fd ? &lock_fd : NULL, out_existed, err);
    if (rc == 0 && !*out_existed && out_lock_fd)
        *out_lock_fd = lock_fd;
    else if (lock_fd >= 0)
        close(lock_fd);
    return rc;
}

/* ---- the agent ---- */

/* Puts the program of this name, which belongs to this one, beside the agent, too. */
static int keep_program(const struct site *site, const char *dir, const char *name, const char *from,
                        struct act_error *err)
{
    ACT_AUTOFREE char *to = act_path_join(dir, name);
    int64_t size;
    int rc = here_size_of(from, &size, err);

    return rc < 0 || here_is_there(to, size) ? rc : copy_whole(site, from, to, 0700, err);
}

char *site_agent_dir(const struct site *site, const char *sha256)
{
    return act_sprintf("%s/bin/%.*s", site->root, SITE_AGENT_HEX, sha256);
}

/* The programs beside this one, and the folder for them. New strings. */
struct programs {
    char *agent, *act, *dir;
};

static int here_create_find_programs(const struct site *site, struct programs *out, struct act_error *err)
{
    char sha256[ACT_SHA256_HEX];
    int rc = proc_find_sibling(SITE_AGENT, &out->agent, err);

    if (rc == 0)
        rc = proc_find_sibling(SITE_ACT, &out->act, err);
    if (rc == 0)
        rc = act_sha256_file(out->agent, sha256, err);
    if (rc == 0)
        out->dir = site_agent_dir(site, sha256);
    return rc;
}

static void programs_release(struct programs *p)
{
    free(p->agent);
    free(p->act);
    free(p->dir);
}

int here_agent(struct site *site, char **out, struct act_error *err)
{
    ACT_AUTO(programs) p = {0};
    int rc = here_create_find_programs(site, &p, err);

    *out = NULL;
    if (rc == 0) {
        rc = keep_program(site, p.dir, SITE_ACT, p.act, err);
        if (rc == 0)
            rc = keep_program(site, p.dir, SITE_AGENT, p.agent, err);
        if (rc < 0)
            act_error_prefix(err, "cannot keep the agent in '%s'", p.dir);
    }
    if (rc == 0)
        *out = act_path_join(p.dir, SITE_AGENT);
    return rc;
}

int here_find_agent(struct site *site, char **out, bool *out_there, struct act_error *err)
{
    ACT_AUTO(programs) p = {0};
    int64_t size = 0, act_size = 0;
    int rc = here_create_find_programs(site, &p, err);

    if (rc == 0)
        rc = here_size_of(p.agent, &size, err);
    if (rc == 0)
        rc = here_size_of(p.act, &act_size, err);
    ACT_AUTOFREE char *act = rc == 0 ? act_path_join(p.dir, SITE_ACT) : NULL;
    *out = rc == 0 ? act_path_join(p.dir, SITE_AGENT) : NULL;
    *out_there = rc == 0 && here_is_there(*out, size) && here_is_there(act, act_size);
    return rc;
}
