/* local.c - this machine. There is no daemon: for each run the client starts an agent ("act-node supervise") that
 * outlives it, and all information about the run is in its folder, <state>/runs/<id>/.
 *
 * A run exists from the moment its complete folder is renamed into place. supervisor.lock is locked before and stays
 * so, in the client and then in the agent, until status.json is final. So:
 *   status not final, lock taken   the run is on its way
 *   status not final, lock free    nobody will ever finish it: lost
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "base/units.h"
#include "codec/json.h"
#include "config/config.h"
#include "config/kind.h"
#include "platform/local/machine.h"
#include "platform/platform_internal.h"
#include "proc/pidfd.h"
#include "proc/proc.h"
#include "run/machines.h"
#include "site/site.h"

#define LOST        "lost: the supervisor is gone (killed, or the machine restarted)"
#define FOLDER_GONE "its folder was removed while it runs; 'a abort' ends its processes"
#define NOT_STARTED "lost: it was never started (the submission was interrupted)"
#define NOT_BEGUN   "its agent ended before it began: %s"
#define AGENT_LOG   RUN_DIR_SYSTEM "/supervisor.txt"

struct local {
    struct platform base;
    struct site *site; /* this machine's state folder */
    char *slots;
    struct local_machine machine;
    bool said_job;
    const struct config *config;
    int64_t wanted_gpu_per_node; /* from the configuration; -1: not given */
};

static struct local *local_of(struct platform *p)
{
    return (struct local *)p; /* the first member */
}

static char *local_run_file(const struct local *l, const char *id, const char *name)
{
    ACT_AUTOFREE char *dir = site_run_dir(l->site, id);

    return act_path_join(dir, name);
}

const struct local_machine *local_machine_of(struct platform *p)
{
    return &local_of(p)->machine;
}

const char *local_slots_of(struct platform *p)
{
    return local_of(p)->slots;
}

char *local_run_dir(struct platform *p, const char *id)
{
    return site_run_dir(local_of(p)->site, id);
}

static const char *slot_word(const struct local *l)
{
    return l->machine.has_gpus ? "GPUs" : "processors";
}

static int local_limits(struct platform *p, struct platform_limits *out, struct act_error *err)
{
    struct local *l = local_of(p);
    int per_node, rc = local_machine_given(&l->machine, &l->config->gpus, &per_node, err);

    if (rc < 0)
        return rc;
    if (l->wanted_gpu_per_node > per_node)
        return act_error_set(err, ACT_NO_CAPACITY,
                             "gpu_per_node is %lld, and this machine has %d %s; set gpu_per_node to at most "
                             "%d, or leave it out",
                             (long long)l->wanted_gpu_per_node, per_node, slot_word(l), per_node);
    if (l->wanted_gpu_per_node > 0)
        per_node = (int)l->wanted_gpu_per_node;
    *out = (struct platform_limits){
        .gpu_per_node = per_node,
        .num_gpu = l->machine.has_gpus ? per_node : 1, /* a laptop should not start a process per processor */
        .max_nodes = 1,
        .has_gpus = l->machine.has_gpus,
        .why_not_all = l->machine.why_not_all,
    };
    return 0;
}

/* ---- submit ---- */

static void local_describe(const struct config *config, const struct platform_asked *asked, struct run_spec *spec)
{
    (void)asked;
    act_strv_copy(&spec->gpus, config->gpus.v, config->gpus.n);
    spec->gpu_free_memory = (int)config->gpu_free_memory;
}

static void local_repeat(struct config *config, const struct run_spec *old)
{
    if (!config_is_said(config, "gpus") && old->gpus.n) {
        act_strv_release(&config->gpus);
        act_strv_copy(&config->gpus, old->gpus.v, old->gpus.n);
    }
    if (!config_is_said(config, "gpu_free_memory") && old->gpu_free_memory)
        config->gpu_free_memory = old->gpu_free_memory;
}

static int check_mpirun(const struct run_spec *spec, struct act_error *err)
{
    bool needed = spec->procs_per_node > 1 && !act_streq(spec->launcher, "direct");
    ACT_AUTOFREE char *mpirun = needed ? proc_find_in_path("mpirun") : NULL;

    if (!needed || mpirun)
        return 0;
    return act_error_set(err, ACT_NOT_FOUND, "mpirun not found: install Open MPI (Debian: openmpi-bin) or use -n 1");
}

/* Refuses what this machine cannot have, alone or as one of several. */
static int local_check_node(struct local *l, const struct run_spec *spec, struct act_error *err)
{
    int most, rc = local_machine_given(&l->machine, &spec->gpus, &most, err);

    if (rc < 0)
        return rc;
    if (spec->argv.n == 0)
        return act_error_set(err, ACT_USAGE, "there is no command to run");
    if (spec->gpus_per_node > most)
        return act_error_set(
            err, ACT_NO_CAPACITY, "the run needs %d %s, and this machine has %d%s%s%s; use at most -n %d",
            spec->gpus_per_node, slot_word(l), most, l->machine.why_not_all ? " (" : "",
            l->machine.why_not_all ? l->machine.why_not_all : "", l->machine.why_not_all ? ")" : "", most);
    rc = platform_check_shares(spec, "this machine", err);
    if (rc == 0)
        rc = platform_check_mounts_here(spec, err);
    return rc < 0 ? rc : check_mpirun(spec, err);
}

static int local_check(struct platform *p, const struct run_spec *spec, struct act_error *err)
{
    struct local *l = local_of(p);
    int most, rc = local_machine_given(&l->machine, &spec->gpus, &most, err);

    if (rc == 0 && spec->nodes > 1)
        return act_error_set(err, ACT_NO_CAPACITY, "the run needs %d nodes, and this machine is one; use at most -n %d",
                             spec->nodes, most);
    return rc < 0 ? rc : local_check_node(l, spec, err);
}

static int start_supervisor(const struct local *l, const char *dir, int lock_fd, struct act_error *err)
{
    ACT_AUTOFREE char *agent = NULL;
    ACT_AUTOFREE char *log = act_path_join(dir, AGENT_LOG);
    ACT_AUTO(act_strv) argv = {0};
    pid_t pid;
    int rc = proc_find_sibling("act-node", &agent, err);

    if (rc < 0)
        return rc;
    act_strv_push(&argv, agent);
    act_strv_push(&argv, "supervise");
    act_strv_push(&argv, "--slots-dir");
    act_strv_push(&argv, l->slots);
    act_strv_push(&argv, "--slots");
    act_strv_pushf(&argv, "%d", l->machine.slots);
    act_strv_push(&argv, "--lock-fd");
    act_strv_pushf(&argv, "%d", lock_fd);
    if (l->machine.has_gpus)
        act_strv_push(&argv, "--gpus");
    if (local_machine_is_whole(&l->machine))
        act_strv_push(&argv, "--shared");
    if (l->machine.job.system)
        act_strv_pushf(&argv, "--within=job %s of %s", l->machine.job.job, l->machine.job.system);
    act_strv_push(&argv, dir);
    return proc_daemon(argv.v, OF_RUN, log, lock_fd, &pid, err);
}

/* The folder already exists: this run was submitted before. It remains to start it, if the submitting client died
 * before it could. */
static int submit_again(const struct local *l, const char *dir, struct act_error *err)
{
    ACT_AUTOFREE char *lock = act_path_join(dir, RUN_FILE_LOCK);
    ACT_AUTOFREE char *status_path = act_path_join(dir, RUN_FILE_STATUS);
    struct run_status status = {.state = RUN_QUEUED};
    struct stat st;
    int rc = 0, fd = act_lock(lock, false, err);

    if (fd == -ACT_TEMPORARY) /* it is being started or running */
        return 0;
    if (fd < 0)
        return fd;
    bool begun = fstat(fd, &st) == 0 && st.st_size > 0; /* the supervisor writes its pid into it */
    if (run_status_read(status_path, &status, NULL) < 0)
        status.state = RUN_QUEUED;
    if (!begun && !run_state_is_final(status.state))
        rc = start_supervisor(l, dir, fd, err);
    close(fd);
    return rc;
}

/* From now on the run exists; if its supervisor cannot be started, it is undone. */
static int start_new(const struct local *l, const struct platform_submission *submission, const char *dir, int lock_fd,
                     struct act_error *err)
{
    const char *id = submission->spec->id, *stores = submission->stores, *machines = submission->machines;
    struct act_error more;
    int rc = stores ? site_write(l->site, id, RUN_FILE_STORES, stores, NULL, err) : 0;

    if (rc == 0 && machines)
        rc = site_write(l->site, id, RUN_FILE_MACHINES, machines, NULL, err);
    if (rc == 0)
        rc = start_supervisor(l, dir, lock_fd, err);

    if (rc < 0 && site_remove_run(l->site, id, &more) < 0)
        return act_error_hint(err, "its folder '%s' is left: %s", dir, act_error_text(&more));
    return rc;
}

/* A run cannot outlive the job of a batch system in which it is submitted, whose end kills it. */
static void say_job(struct local *l)
{
    enum { ASK_S = 2 };
    const struct allocation *job = &l->machine.job;
    char time[ACT_UNIT_TEXT];

    if (!job->system || l->said_job)
        return;
    l->said_job = true;
    int64_t left = allocation_left_s(job, ASK_S);
    act_duration_to_words(left, time);
    act_note("the run is part of job %s of %s, and ends with it%s%s", job->job, job->system,
             left >= 0 ? " at the latest, in " : " at the latest", left >= 0 ? time : "");
}

static int local_submit(struct platform *p, const struct platform_submission *submission, struct act_error *err)
{
    struct local *l = local_of(p);
    const char *id = submission->spec->id;
    ACT_AUTOFREE char *dir = site_run_dir(l->site, id);
    bool existed = false;
    int lock_fd;

    *submission->asked = true;
    if (access(dir, F_OK) == 0)
        return submit_again(l, dir, err);
    int rc = submission->machines ? local_check_node(l, submission->spec, err) : local_check(p, submission->spec, err);
    if (rc == 0)
        rc = site_create_locked_run(l->site, submission->spec, submission->package, &lock_fd, &existed, err);
    if (rc == 0 && existed)
        return submit_again(l, dir, err);
    if (rc == 0) {
        rc = start_new(l, submission, dir, lock_fd, err);
        close(lock_fd);
    }
    if (rc == 0)
        say_job(l);
    return rc < 0 ? act_error_prefix(err, "cannot submit '%s'", id) : 0;
}

/* ---- its supervisor ---- */

/* The arguments of the process, each ended by a NUL byte. New string; NULL: not visible. */
static char *local_words_of(pid_t pid, size_t *out_len)
{
    enum { WORDS_MAX = 4 * 1024 * 1024 };
    ACT_AUTOFREE char *path = act_sprintf("/proc/%d/cmdline", (int)pid);
    char *text = NULL;

    return act_file_read(path, WORDS_MAX, &text, out_len, NULL) < 0 ? NULL : text;
}

static bool is_agent(pid_t pid)
{
    size_t len;
    ACT_AUTOFREE char *words = local_words_of(pid, &len);

    if (!words)                   /* where hidepid is set (proc(5)), other users and agents look the same, */
        return kill(pid, 0) == 0; /* but only this user's can be signalled */
    return strcmp(act_path_basename(words), "act-node") == 0;
}

/* Returns <dir> of "act-node supervise ... <dir>" of this user, who may signal it. New string; NULL: it is none. */
static char *local_supervised(pid_t pid)
{
    size_t len = 0;
    ACT_AUTOFREE char *words = local_words_of(pid, &len);
    const char *verb = words && len > 0 ? words + strlen(words) + 1 : NULL;

    if (!verb || verb >= words + len || words[len - 1] != '\0' || strcmp(verb, "supervise") != 0 ||
        strcmp(act_path_basename(words), "act-node") != 0 || kill(pid, 0) < 0)
        return NULL;
    const char *dir = words + len - 1;
    while (dir > words && dir[-1] != '\0')
        dir--;
    return act_strdup(dir);
}

static bool supervises(pid_t pid, const char *dir)
{
    ACT_AUTOFREE char *supervised = local_supervised(pid);

    return act_streq(supervised, dir);
}

/* Lists the folders of the runs that have a supervisor, sorted. */
static void local_list_supervised(struct act_strv *out)
{
    DIR *proc = opendir("/proc");

    for (struct dirent *e; proc && (e = readdir(proc));) {
        pid_t pid = (pid_t)atoi(e->d_name);
        char *dir = pid < 2 ? NULL : local_supervised(pid);
        if (dir)
            act_strv_take(out, dir);
    }
    if (proc)
        closedir(proc);
    act_strv_sort(out);
}

/* A pidfd of the supervisor of a run whose folder may be gone; -1: none. */
static int find_supervisor(const char *dir, pid_t *out_pid)
{
    DIR *proc = opendir("/proc");
    int fd = -1;

    for (struct dirent *e; fd < 0 && proc && (e = readdir(proc));) {
        pid_t pid = (pid_t)atoi(e->d_name);
        if (pid < 2 || !supervises(pid, dir))
            continue;
        fd = proc_pidfd_open(pid);
        if (fd >= 0 && !supervises(pid, dir)) {
            close(fd);
            fd = -1;
        }
        *out_pid = pid;
    }
    if (proc)
        closedir(proc);
    return fd;
}

/* A pidfd of the supervisor; -1: it has not recorded its pid (yet), or is gone. The pidfd is opened before the name is
 * checked, so that the process checked is the one that will be signalled. */
static int open_supervisor(const char *lock_path, pid_t *out_pid)
{
    enum { PID_TEXT_MAX = 64 };
    ACT_AUTOFREE char *text = NULL;
    int64_t pid;
    size_t len;

    if (act_file_read(lock_path, PID_TEXT_MAX, &text, &len, NULL) < 0 || len == 0 || text[len - 1] != '\n')
        return -1;
    text[len - 1] = '\0';
    if (!act_int_from_text(text, &pid) || pid < 2)
        return -1;
    int fd = proc_pidfd_open((pid_t)pid);
    if (fd >= 0 && !is_agent((pid_t)pid)) {
        close(fd);
        fd = -1;
    }
    *out_pid = (pid_t)pid;
    return fd;
}

/* ---- status ---- */

/* The folders of the runs that have a supervisor, which are looked for once for all runs of a question. */
struct local_supervised {
    struct act_strv dirs;
    bool known;
};

/* Removing the folder does not affect the run's processes; the supervisor may create it again for its status, with a
 * lock that is free. */
static bool is_cut_off(const struct local *l, const char *id, struct local_supervised *now, struct run_status *out)
{
    ACT_AUTOFREE char *dir = site_run_dir(l->site, id);

    if (!now->known)
        local_list_supervised(&now->dirs);
    now->known = true;
    if (!now->dirs.n || !bsearch(&dir, now->dirs.v, now->dirs.n, sizeof(*now->dirs.v), act_by_text))
        return false;
    out->state = RUN_RUNNING;
    snprintf(out->reason, sizeof(out->reason), "%s", FOLDER_GONE);
    return true;
}

/* Ends what the agents of a run could not end. */
static int local_sweep(const struct local *l, const char *id, struct act_error *err)
{
    enum { SWEEP_S = 60 };
    ACT_AUTOFREE char *dir = site_run_dir(l->site, id);
    ACT_AUTOFREE char *agent = NULL;
    int status, rc = proc_find_sibling("act-node", &agent, err);
    char *argv[] = {agent, (char[]){"sweep"}, dir, NULL};

    return rc < 0 ? rc : proc_run(argv, SWEEP_S, 0, NULL, &status, err);
}

/* Kills and unmounts what a killed supervisor left, best effort. */
static void end_leftovers(const struct local *l, const char *id)
{
    struct act_error ignored;

    (void)local_sweep(l, id, &ignored);
}

/* Why a run has no supervisor; begun: it had one. */
static void say_lost(const struct local *l, const char *id, bool begun, struct run_status *status)
{
    enum { LINE_MAX_BYTES = 4096 };
    ACT_AUTOFREE char *log = local_run_file(l, id, AGENT_LOG);
    ACT_AUTOFREE char *said = NULL;
    size_t len = 0;

    if (!begun && act_file_read(log, LINE_MAX_BYTES, &said, &len, NULL) == 0 && len > 0)
        snprintf(status->reason, sizeof(status->reason), NOT_BEGUN, (said[strcspn(said, "\n")] = '\0', said));
    else
        snprintf(status->reason, sizeof(status->reason), "%s", begun ? LOST : NOT_STARTED);
}

/* Only this process holds the lock now, so nobody else writes. */
static int declare_lost(const struct local *l, const char *id, int lock_fd, struct local_supervised *supervised,
                        struct run_status *status, struct act_error *err)
{
    ACT_AUTOFREE char *status_path = local_run_file(l, id, RUN_FILE_STATUS);
    struct run_status now;
    struct stat st;

    if (run_status_read(status_path, &now, NULL) == 0)
        *status = now; /* it may have just ended */
    if (run_state_is_final(status->state) || is_cut_off(l, id, supervised, status))
        return 0;
    end_leftovers(l, id);
    bool begun = fstat(lock_fd, &st) == 0 && st.st_size > 0;
    status->state = RUN_FAILED;
    status->exit_status = 128 + SIGKILL;
    status->failed_rank = -1;
    say_lost(l, id, begun, status);
    return run_status_write(status_path, status, err);
}

static int local_status_of(const struct local *l, const char *id, struct local_supervised *supervised,
                           struct run_status *out, struct act_error *err)
{
    *out = (struct run_status){.state = RUN_UNKNOWN, .failed_rank = -1, .attempt = 1};
    if (!run_id_valid(id))
        return 0;
    ACT_AUTOFREE char *path = local_run_file(l, id, RUN_FILE_STATUS);
    int rc = run_status_read(path, out, err);
    if (rc == 0 && run_state_is_final(out->state))
        return 0;
    if (rc == -ACT_NOT_FOUND) {
        out->state = RUN_UNKNOWN;
        (void)is_cut_off(l, id, supervised, out);
        return 0;
    }
    if (rc == -ACT_DENIED)
        return rc;

    ACT_AUTOFREE char *lock = local_run_file(l, id, RUN_FILE_LOCK);
    int fd = act_lock(lock, false, err);
    if (fd == -ACT_TEMPORARY)
        return 0;
    if (fd < 0)
        return fd;
    rc = declare_lost(l, id, fd, supervised, out, err);
    close(fd);
    return rc;
}

static int local_status_now(const struct local *l, const char *id, struct run_status *out, struct act_error *err)
{
    struct local_supervised supervised = {0};
    int rc = local_status_of(l, id, &supervised, out, err);

    act_strv_release(&supervised.dirs);
    return rc;
}

static int local_status(struct platform *p, const char *const *ids, size_t n, struct run_status *out,
                        struct act_error *err)
{
    struct local_supervised supervised = {0};
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = local_status_of(local_of(p), ids[i], &supervised, &out[i], err);
        if (rc < 0)
            act_error_prefix(err, "cannot find out the state of '%s'", ids[i]);
    }
    act_strv_release(&supervised.dirs);
    return rc;
}

/* ---- abort ---- */

static int ask_to_abort(const struct local *l, const char *id, struct act_error *err)
{
    ACT_AUTOFREE char *path = local_run_file(l, id, RUN_FILE_ABORT);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return act_error_errno(err, errno, "cannot write '%s'", path);
    close(fd);
    return 0;
}

/* Signals the supervisor. Returns a descriptor that tells its end; -1: it is still starting, or gone. */
static int local_tell(const struct local *l, const char *id)
{
    ACT_AUTOFREE char *lock = local_run_file(l, id, RUN_FILE_LOCK);
    pid_t pid;
    int fd = open_supervisor(lock, &pid);

    if (fd >= 0)
        proc_pidfd_signal(fd, pid, SIGTERM);
    return fd;
}

/* The supervisor has no folder to write to, but still ends its ranks; the agent's sweep ends what it could not. */
static int abort_without_folder(const struct local *l, const char *id, struct act_error *err)
{
    ACT_AUTOFREE char *dir = site_run_dir(l->site, id);
    pid_t pid;
    int fd = find_supervisor(dir, &pid);

    if (fd >= 0) {
        proc_pidfd_signal(fd, pid, SIGTERM);
        if (!proc_pidfd_wait(fd, (int)run_abort_wait_ms()))
            proc_pidfd_signal(fd, pid, SIGKILL);
        close(fd);
    }
    return local_sweep(l, id, err);
}

/* A run that is to end. */
struct local_ending {
    bool waits; /* it was asked to */
    int fd;     /* of local_tell() */
};

static int local_begin_abort(const struct local *l, struct platform_end *end, struct local_ending *out)
{
    struct run_status status;
    int rc = local_status_now(l, end->id, &status, &end->err);

    *out = (struct local_ending){.fd = -1};
    end->was_final = rc == 0 && run_state_is_final(status.state);
    if (rc < 0 || end->was_final)
        return rc;
    if (status.state == RUN_UNKNOWN)
        return act_error_set(&end->err, ACT_NOT_FOUND, "there is no run '%s' on this machine", end->id);
    if (strcmp(status.reason, FOLDER_GONE) == 0)
        return abort_without_folder(l, end->id, &end->err);
    rc = ask_to_abort(l, end->id, &end->err);
    if (rc == 0)
        *out = (struct local_ending){.waits = true, .fd = local_tell(l, end->id)};
    return rc;
}

/* Waits a moment, or until the supervisor has ended. One that is still starting is told as soon as that can be. */
static void local_wait(const struct local *l, const char *id, struct local_ending *e, int64_t limit_ms)
{
    enum { STARTING_MS = 2 };

    if (e->fd < 0)
        e->fd = local_tell(l, id);
    if (e->fd < 0) {
        poll(NULL, 0, STARTING_MS);
        return;
    }
    proc_pidfd_wait(e->fd, (int)limit_ms);
    close(e->fd);
    e->fd = -1;
}

static int local_await_end(const struct local *l, struct platform_end *end, struct local_ending *e, int64_t deadline_ms)
{
    struct run_status status;
    int64_t left_ms;
    int rc;

    while ((rc = local_status_now(l, end->id, &status, &end->err)) == 0 && !run_state_is_final(status.state)) {
        left_ms = deadline_ms - act_now_monotonic_ms();
        if (left_ms <= 0)
            return act_error_set(&end->err, ACT_TIMEOUT, "'%s' was told to end and has not ended yet", end->id);
        local_wait(l, end->id, e, left_ms);
    }
    return rc;
}

static void local_abort(struct platform *p, struct platform_end *ends, size_t n)
{
    enum { WATCHED_MOST = 256 }; /* descriptors; the others are opened again when their turn comes */
    const struct local *l = local_of(p);
    ACT_AUTOFREE struct local_ending *all = act_calloc(n, sizeof(*all));
    int64_t deadline_ms = act_now_monotonic_ms() + run_abort_wait_ms();

    for (size_t i = 0; i < n; i++) {
        ends[i].rc = local_begin_abort(l, &ends[i], &all[i]);
        if (i >= WATCHED_MOST && all[i].fd >= 0) {
            close(all[i].fd);
            all[i].fd = -1;
        }
    }
    for (size_t i = 0; i < n; i++)
        if (all[i].waits)
            ends[i].rc = local_await_end(l, &ends[i], &all[i], deadline_ms);
    for (size_t i = 0; i < n; i++)
        if (all[i].fd >= 0)
            close(all[i].fd);
}

/* ---- the rest ---- */

static int local_spec(struct platform *p, const char *id, struct run_spec *out, struct act_error *err)
{
    return platform_site_spec(local_of(p)->site, id, out, err);
}

static int local_site(struct platform *p, struct site **out, struct act_error *err)
{
    (void)err;
    *out = local_of(p)->site;
    return 0;
}

static void local_examine_setup(struct platform *p, const struct platform_trial *trial,
                                struct platform_findings *findings)
{
    ACT_AUTOFREE char *said = NULL;
    bool works = platform_try_setup(local_of(p)->site, trial, &said);

    platform_judge_setup("on this machine", works, said, trial, findings);
}

static int local_list(struct platform *p, struct act_strv *out_ids, struct act_error *err)
{
    return site_list(local_of(p)->site, out_ids, err);
}

static void local_close(struct platform *p)
{
    struct local *l = local_of(p);

    site_free(l->site);
    local_machine_release(&l->machine);
    free(l->slots);
    free(l);
}

static int local_open(const struct config *config, struct platform **out, struct act_error *err)
{
    struct local *l = act_calloc(1, sizeof(*l));
    ACT_AUTOFREE char *state = act_state_dir();
    int rc = local_machine_find(&l->machine, err);

    if (rc == 0)
        rc = site_open(&(struct site_options){.root = state}, &l->site, err);
    if (rc < 0) {
        local_machine_release(&l->machine);
        free(l);
        return rc;
    }
    l->base.row = &platform_local;
    l->config = config;
    l->wanted_gpu_per_node = config->gpu_per_node;
    l->slots = local_machine_slots_dir(&l->machine, site_root(l->site));
    *out = &l->base;
    return 0;
}

/* ---- the row ---- */

static char *local_place(const struct config *config)
{
    (void)config;
    return act_strdup("this machine");
}

static const char *const place_keys[] = {NULL};

static bool local_sees_project(const struct config *config, const struct config_folder *folder)
{
    (void)config;
    (void)folder;
    return true;
}

/* The platform of this machine, whose store is in the user's own folder. */
static const struct config_kind local_kind = {
    .name = "local",
    .is_built_in = true,
    .counts_gpus = true,
    .has_store = true,
    .runs_see_store = true,
    .has_places = true,
    .has_mount = true,
};

const struct platform_row platform_local = {
    .kind = &local_kind,
    .about = {.is_here = true,
              .keeps_record = true,
              .runs_after = true,
              .tries_again = true,
              .nodes_share_folder = true,
              .agent_mounts = true},
    .place = {.words = local_place, .keys = place_keys, .sees_project = local_sees_project},
    .settings = {.describe = local_describe, .repeat = local_repeat},
    .open = local_open,
    .close = local_close,
    .submit = {.check = local_check, .one = local_submit},
    .runs = {.status = local_status,
             .abort = local_abort,
             .abort_waits = true,
             .open_logs = platform_site_open_logs,
             .spec = local_spec,
             .list = local_list},
    .nodes = {.limits = local_limits,
              .of_run = local_nodes,
              .shell = local_shell,
              .agent = local_agent,
              .summary = local_summary,
              .gpus = local_gpus,
              .jobs = local_jobs,
              .examine = local_examine,
              .examine_mounts = local_examine_mounts,
              .examine_setup = local_examine_setup},
    .keep = {.site = local_site},
    .setup = &local_setup,
};
