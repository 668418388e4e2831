/* mount.c - a mapped folder of a run as a folder of its node. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "codec/json.h"
#include "flow/data/data.h"
#include "flow/data/mount.h"
#include "flow/flow_internal.h"
#include "proc/pidfd.h"

int flow_blob_check(struct flow *flow, const struct flow_blob *blob, struct act_error *err)
{
    struct store *store = NULL;
    ACT_AUTO(store_call) call = {.op = STORE_LIST, .key = blob->path, .list = {.delimiter = true, .max = 1}};
    int rc = flow_blob_open(flow, blob, &store, err);

    if (rc == 0)
        rc = store_do(store, &call, err);
    store_free(store);
    return rc;
}

/* ---- a run's */

struct run_mount {
    const char *run_dir, *name, *node_dir; /* node_dir: see node/place.h */
    char *dir, *at;                        /* of the mount */
    struct flow_blob blob;
    struct run_spec spec;
    int lock_fd, users_fd, ready_fd;
    int unused; /* how many times in a row no rank was there */
};

static void mount_release(struct run_mount *m)
{
    free(m->dir);
    free(m->at);
    flow_blob_release(&m->blob);
    run_spec_release(&m->spec);
}

static int make_places(struct run_mount *m, struct act_error *err)
{
    ACT_AUTOFREE char *cache = act_path_join(m->dir, "cache");
    int rc = act_mkdir_all(cache, 0700, err);

    if (rc == 0 && !mounts_end_below(m->at))
        rc = act_error_set(err, ACT_FAIL, "'%s', where an earlier attempt has mounted it, cannot be unmounted", m->at);
    if (rc == 0)
        rc = act_mkdir_all(m->at, 0700, err);
    return rc;
}

/* An earlier keeper of it may still be sending. */
static int take_lock(struct run_mount *m, struct act_error *err)
{
    ACT_AUTOFREE char *lock = act_path_join(m->dir, RUN_FILE_MOUNT_LOCK);
    ACT_AUTOFREE char *end = act_path_join(m->dir, RUN_FILE_MOUNT_END);
    ACT_AUTOFREE char *who = act_sprintf("%d %" PRId64 "\n", (int)getpid(), proc_began(getpid()));
    ACT_AUTOFREE char *users = act_path_join(m->node_dir, "users");

    m->lock_fd = act_lock(lock, true, err);
    if (m->lock_fd < 0)
        return m->lock_fd;
    m->users_fd = open(users, O_RDONLY | O_CLOEXEC);
    if (m->users_fd < 0 || ftruncate(m->lock_fd, 0) < 0 || act_pwrite_all(m->lock_fd, who, strlen(who), 0) < 0 ||
        (unlink(end) < 0 && errno != ENOENT))
        return act_error_errno(err, errno, "cannot keep '%s'", m->dir);
    return 0;
}

/* A rank that has ended in order: others may come, and nothing is locked in between. */
static bool some_have_ended(const struct run_mount *m)
{
    DIR *d = opendir(m->node_dir);
    const struct dirent *e;
    bool some = false;

    while (d && (e = readdir(d)))
        some = some || act_starts_with(e->d_name, "ended.");
    if (d)
        closedir(d);
    return some;
}

/* The last rank tells the keeper to end; this is for those that could not. */
static bool mount_is_wanted(void *arg)
{
    enum { KILLED_S = 5, ENDED_S = 600 };
    struct run_mount *m = arg;

    if (flock(m->users_fd, LOCK_EX | LOCK_NB) < 0) {
        m->unused = 0;
        return true;
    }
    flock(m->users_fd, LOCK_UN);
    m->unused++;
    return m->unused < (some_have_ended(m) ? ENDED_S : KILLED_S);
}

static void mount_say_ready(void *arg)
{
    struct run_mount *m = arg;

    close(m->ready_fd); /* which is all that the process that waits wants to see */
    m->ready_fd = -1;
}

static void write_end(const struct run_mount *m, int rc, const struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(m->dir, RUN_FILE_MOUNT_END);
    CODEC_AUTOJSON json_t *json =
        json_pack("{s:i, s:o*}", "version", 1, "error", rc < 0 ? codec_json_bytes_new(act_error_text(err)) : NULL);
    struct act_error unsaid;

    if (run_record_write(path, json, &unsaid) < 0)
        act_warn("%s", act_error_text(&unsaid));
}

static int mount_find_folder(struct run_mount *m, bool *out_read_only, struct act_error *err)
{
    ACT_AUTOFREE char *spec = act_path_join(m->run_dir, RUN_FILE_SPEC);
    struct flow flow = {0};
    int rc = run_spec_read(spec, &m->spec, err);

    if (rc < 0)
        return rc;
    const struct run_folder *f = flow_find_folder(&m->spec, m->name);
    if (!f)
        return act_error_set(err, ACT_NOT_FOUND, "'%s' is not a mapped folder of the run", m->name);
    *out_read_only = f->mode == RUN_FOLDER_RO_MOUNT;
    rc = flow_blob_of_run(&flow, m->run_dir, m->name, f->mode, &m->blob, err);
    if (rc == 0)
        rc = flow_blob_check(&flow, &m->blob, err);
    flow_close(&flow);
    return rc;
}

static int mount_renew_all(void *arg, struct flow_blob *out, struct act_error *err)
{
    const struct run_mount *m = arg;

    return flow_blob_again(m->run_dir, m->name, flow_find_folder(&m->spec, m->name)->mode, out, err);
}

static int mount_keep_going(struct run_mount *m, struct act_error *err)
{
    struct mount_keeper k = {.wanted = mount_is_wanted, .ready = mount_say_ready, .renew = mount_renew_all, .arg = m};
    ACT_AUTOFREE char *program = NULL;
    bool read_only = false;
    int rc = mount_find_folder(m, &read_only, err);

    if (rc == 0)
        rc = mounts_find_tool(m->spec.mount, &k.plan.tool, &program, err);
    if (rc == 0)
        rc = act_mkdir_all(m->dir, 0700, err);
    if (rc == 0)
        rc = take_lock(m, err);
    if (rc == 0)
        rc = make_places(m, err);
    if (rc < 0)
        return rc;
    k.plan = (struct mount_plan){.name = m->name,
                                 .blob = &m->blob,
                                 .tool = k.plan.tool,
                                 .program = program,
                                 .read_only = read_only,
                                 .dir = m->dir,
                                 .at = m->at};
    rc = mount_keep(&k, err);
    if (rc == 0 && rmdir(m->at) < 0 && (errno == ENOTEMPTY || errno == EEXIST))
        rc = act_error_set(err, ACT_FAIL, "what was written while it was not mounted is in '%s' on this node", m->at);
    write_end(m, rc, err);
    return rc;
}

/* Returns what the process that waits will say. */
static void send_error(int fd, const struct act_error *err)
{
    const char *text = act_error_text(err);

    if (act_write_all(fd, text, strlen(text)) < 0)
        return; /* nobody waits any more */
}

/* The name by which the agent knows it, and does not end it as it ends what commands leave behind. */
__attribute__((noreturn)) static void be_keeper(struct run_mount *m)
{
    struct act_error err;

    setsid();
    prctl(PR_SET_NAME, RUN_MOUNT_KEEPER);
    int rc = mount_keep_going(m, &err);
    if (rc < 0 && m->ready_fd >= 0)
        send_error(m->ready_fd, &err);
    _exit(rc < 0 ? ACT_FAIL : 0);
}

static int wait_for_keeper(int fd, struct act_error *err)
{
    char text[ACT_ERROR_TEXT] = "";
    size_t len = 0;
    ssize_t n;

    while ((n = read(fd, text + len, sizeof(text) - 1 - len)) > 0 || (n < 0 && errno == EINTR))
        len += n > 0 ? (size_t)n : 0;
    return len ? act_error_set(err, ACT_FAIL, "%s", text) : 0;
}

int flow_mount_run_folder(const char *run_dir, const char *name, const char *node_dir, struct act_error *err)
{
    struct run_mount m = {.run_dir = run_dir,
                          .name = name,
                          .node_dir = node_dir,
                          .dir = act_sprintf("%s/" RUN_DIR_MOUNTS "/%s", node_dir, name)};
    int ends[2];

    m.at = act_path_join(m.dir, RUN_DIR_MOUNT_POINT);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return act_error_errno(err, errno, "cannot make a pipe");
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        m.ready_fd = ends[1];
        be_keeper(&m);
    }
    close(ends[1]);
    int rc = pid < 0 ? act_error_errno(err, errno, "cannot start the keeper") : wait_for_keeper(ends[0], err);
    close(ends[0]);
    if (rc == 0 && !mounts_is_one(m.at))
        rc = act_error_set(err, ACT_FAIL, "the keeper of the mount was killed");
    mount_release(&m);
    return rc;
}
