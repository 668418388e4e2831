/* attempt.c - what a supervisor records about its attempt at the run. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "node/attempt.h"
#include "node/launcher.h"
#include "node/retry.h"
#include "node/supervisor.h"

/* Freed when the disk is full, so that the end can still be recorded. */
#define FILE_RESERVE "reserve"
#define FILE_CLAIM   "claim"
/* Slurm opens it before the attempt begins and appends to it in every attempt. */
#define NAME_SLURM_OUTPUT "slurm.txt"

enum { RESERVE_BYTES = 256 * 1024 };

/* Who submitted the run waits for it: only the step itself knows its number. */
static int write_step(const struct supervisor *s, struct act_error *err)
{
    ACT_AUTOFREE char *path = node_path(&s->node, RUN_FILE_JOB);
    ACT_AUTOFREE char *text = run_job_text(s->job.step);

    return act_file_write(path, text, strlen(text), 0644, err);
}

/* The content is on disk before the name exists, so that the loser can read who has won, even after a power cut. */
int attempt_claim(const struct supervisor *s, struct act_error *err)
{
    enum { CLAIM_MAX = 256 };
    ACT_AUTOFREE char *path = node_path(&s->node, FILE_CLAIM);
    ACT_AUTOFREE char *owner = NULL;
    bool existed;
    const char *job = s->job.step ? s->job.step : s->job.id;
    int rc = act_file_create(path, job, strlen(job), 0600, &existed, err);

    if (rc == 0)
        rc = act_file_read(path, CLAIM_MAX, &owner, NULL, err);
    if (rc == 0 && strcmp(owner, job) != 0)
        rc = act_error_set(err, ACT_FAIL, "run '%s' belongs to job %s: job %s ends", s->node.spec.id, owner, job);
    return rc < 0 || !s->job.step ? rc : write_step(s, err);
}

/* ---- which one ---- */

/* A killed controller may restart a job without remembering that it is running. Clocks of nodes differ: a supervisor
 * whose heartbeat changes is alive. */
static bool wait_for_other(struct supervisor *s, struct run_status *other)
{
    enum { LOOK_MS = 1000, SILENT_MS = 35 * 1000 };
    int64_t heartbeat = other->heartbeat_unix_s, silent_since_ms = act_now_monotonic_ms();
    int sig = 0;

    node_say("another supervisor may be at attempt %d: waits for its end", other->attempt);
    while (other->state == RUN_RUNNING && act_now_monotonic_ms() - silent_since_ms < SILENT_MS) {
        watch_wait(&s->watch, LOOK_MS, &sig);
        if (sig == SIGTERM || run_status_read(s->status_path, other, NULL) < 0)
            return false;
        if (other->heartbeat_unix_s != heartbeat)
            silent_since_ms = act_now_monotonic_ms();
        heartbeat = other->heartbeat_unix_s;
    }
    return true;
}

/* Takes over what stays known in every attempt. */
static void keep_of_earlier(struct supervisor *s, const struct run_status *last)
{
    memcpy(s->status.retry, last->retry, sizeof(last->retry));
    memcpy(s->status.bad, last->bad, sizeof(last->bad));
    s->status.n_bad = last->n_bad;
}

bool attempt_find(struct supervisor *s)
{
    bool by_slurm = s->options.where == IN_SLURM && !s->job.step;
    struct run_status last;

    s->status.attempt = by_slurm ? s->job.starts : 1;
    if (run_status_read(s->status_path, &last, NULL) == 0) {
        keep_of_earlier(s, &last);
        if (!by_slurm)
            s->status.attempt = last.attempt; /* as this process, or the first pod, has counted */
    }
    if (!by_slurm || run_status_read(s->status_path, &last, NULL) < 0 || last.attempt < s->status.attempt)
        return true;
    if (last.state == RUN_RUNNING && !wait_for_other(s, &last))
        return false;
    if (last.started_unix_s > 0 && !run_state_is_final(last.state)) /* lost, or to be started again */
        s->status.attempt = last.attempt + 1;
    if (run_state_is_final(last.state))
        s->status = last;
    return !run_state_is_final(last.state);
}

/* ---- the beginning ---- */

/* Moves the entries, and leaves those that an interrupted try has already moved. */
static int attempt_move_entries(const char *from, const char *to, struct act_error *err)
{
    DIR *dir = opendir(from);
    int rc = dir               ? act_mkdir_all(to, 0755, err)
             : errno == ENOENT ? 0
                               : act_error_errno(err, errno, "cannot read '%s'", from);

    for (const struct dirent *e; rc == 0 && dir && (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || strcmp(e->d_name, NAME_SLURM_OUTPUT) == 0)
            continue;
        ACT_AUTOFREE char *old = act_path_join(from, e->d_name);
        ACT_AUTOFREE char *new = act_path_join(to, e->d_name);
        if (rename(old, new) < 0)
            rc = act_error_errno(err, errno, "cannot move '%s' to '%s'", old, new);
    }
    if (dir)
        closedir(dir);
    return rc;
}

/* status.json is copied, not moved: there always is one. It describes the earlier attempt until this one has written
 * its own, so that an interrupted try is repeated. */
int attempt_put_away(const struct node *node, int attempt, const struct run_status *last, struct act_error *err)
{
    static const char *const folders[] = {RUN_DIR_USER, RUN_DIR_SYSTEM, RUN_DIR_METRICS};
    ACT_AUTOFREE char *name = act_sprintf(RUN_DIR_ATTEMPTS "/%d", attempt);
    ACT_AUTOFREE char *to = node_path(node, name);
    ACT_AUTOFREE char *status = act_path_join(to, RUN_FILE_STATUS);
    int rc = act_mkdir_all(to, 0755, err);

    for (size_t i = 0; rc == 0 && i < sizeof(folders) / sizeof(folders[0]); i++) {
        ACT_AUTOFREE char *from = node_path(node, folders[i]);
        ACT_AUTOFREE char *target = act_path_join(to, folders[i]);
        rc = attempt_move_entries(from, target, err);
    }
    return rc < 0 || !last ? rc : run_status_write(status, last, err);
}

static void attempt_make_reserve(const struct supervisor *s)
{
    ACT_AUTOFREE char *path = node_path(&s->node, FILE_RESERVE);
    ACT_AUTOFREE char *bytes = act_alloc(RESERVE_BYTES);
    ACT_AUTOCLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    memset(bytes, 'r', RESERVE_BYTES); /* file systems may not store zeros */
    if (fd < 0 || act_write_all(fd, bytes, RESERVE_BYTES) < 0)
        node_say("cannot write '%s': %m", path);
}

int attempt_make_folders(const struct node *node, struct act_error *err)
{
    static const char *const folders[] = {RUN_DIR_USER, RUN_DIR_SYSTEM, RUN_DIR_TEMP};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof(folders) / sizeof(folders[0]); i++) {
        ACT_AUTOFREE char *path = node_path(node, folders[i]);
        rc = act_mkdir_all(path, 0755, err);
    }
    return rc;
}

int attempt_open_private(struct node *node, const struct rank_place *place, struct act_error *err)
{
    int rc = place_open(node, place, 1, err);

    if (rc < 0)
        return rc;
    node->dir = act_strdup(node->local);
    rc = attempt_make_folders(node, err);
    node_own_log(node);
    return rc;
}

void attempt_note_failed_nodes(struct run_status *status, const struct act_strv *nodes)
{
    struct run_bad_node bad = {.class = CLASS_NODE_FAILURE, .unix_s = act_now_unix_s()};

    for (size_t i = 0; i < nodes->n; i++) {
        snprintf(bad.node, sizeof(bad.node), "%.*s", (int)sizeof(bad.node) - 1, nodes->v[i]);
        run_status_add_bad(status, &bad);
    }
}

/* Lists the nodes that ranks have reported from. */
static void attempt_list_nodes(const struct supervisor *s, struct act_strv *out)
{
    enum { RANKS_MAX = 16 * 1024 * 1024 };
    ACT_AUTOFREE char *path = node_path(&s->node, RUN_FILE_RANKS);
    ACT_AUTOFREE char *text = NULL;
    char *rest, *line;

    if (act_file_read(path, RANKS_MAX, &text, NULL, NULL) < 0)
        return;
    for (rest = text; (line = strsep(&rest, "\n"));) {
        CODEC_AUTOJSON json_t *json = NULL;
        const char *node = codec_json_parse(line, strlen(line), RUN_FILE_RANKS, &json, NULL) == 0
                               ? codec_json_str(json, "node", "")
                               : "";
        if (*node && !act_strv_has(out, node))
            act_strv_push(out, node);
    }
}

/* Says that nodes of the earlier attempt are down, as its supervisor could not if its own node failed. */
static void explain_silence(struct supervisor *s, struct run_status *earlier)
{
    struct supervisor then = {.node = s->node, .status = *earlier};
    ACT_AUTO(act_strv) nodes = {0};

    attempt_list_nodes(s, &nodes);
    job_find_down(&nodes, &then.job.failed);
    if (then.job.failed.n > 0) {
        job_say_failed(&then.job.failed, earlier->reason, sizeof(earlier->reason));
        attempt_note_failed_nodes(&s->status, &then.job.failed);
        attempt_save_failure(&then, NULL, earlier->reason);
        earlier->state = RUN_QUEUED; /* as when it could still say so */
    }
    act_strv_release(&then.job.failed);
}

int attempt_begin(struct supervisor *s, struct act_error *err)
{
    struct run_status earlier;
    int rc = 0;

    bool any = s->status.attempt > 1 && run_status_read(s->status_path, &earlier, err) == 0 &&
               earlier.attempt < s->status.attempt;
    if (any && earlier.state == RUN_RUNNING && s->options.where == IN_SLURM)
        explain_silence(s, &earlier);
    if (any)
        rc = attempt_put_away(&s->node, earlier.attempt, &earlier, err);
    if (rc == 0)
        rc = attempt_make_folders(&s->node, err);
    if (rc == 0)
        attempt_make_reserve(s);
    s->status.attempts = retry_attempts(&s->node, s->status.attempt);
    return rc;
}

/* Another machine may have just written the file: NFS revalidates a folder when it is opened, not when a name is looked
 * up in it (nfs(5), "close-to-open"). */
bool attempt_abort_is_asked(const struct supervisor *s)
{
    ACT_AUTOCLOSE int dir = open(s->node.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return dir >= 0 && faccessat(dir, RUN_FILE_ABORT, F_OK, 0) == 0;
}

/* ---- the status ---- */

void attempt_drop_reserve(const struct supervisor *s)
{
    ACT_AUTOFREE char *path = node_path(&s->node, FILE_RESERVE);

    unlink(path);
}

void attempt_set_reason(struct supervisor *s, const char *reason)
{
    snprintf(s->status.reason, sizeof(s->status.reason), "%.*s", (int)sizeof(s->status.reason) - 1, reason);
}

void attempt_finish(struct supervisor *s, enum run_state state, int exit_status, const char *reason)
{
    s->status.state = state;
    s->status.exit_status = exit_status;
    s->status.ended_unix_s = run_state_is_final(state) ? act_now_unix_s() : 0;
    attempt_set_reason(s, reason);
}

void attempt_save_status(struct supervisor *s)
{
    bool is_outcome = s->options.outcome && run_state_is_final(s->status.state);
    ACT_AUTOFREE char *path = is_outcome ? node_path(&s->node, s->options.outcome) : act_strdup(s->status_path);
    struct act_error err;

    s->status.heartbeat_unix_s = act_now_unix_s();
    if (run_status_write(path, &s->status, &err) == 0)
        return;
    if (run_state_is_final(s->status.state) || s->status.state == RUN_QUEUED) {
        attempt_drop_reserve(s);
        if (run_status_write(path, &s->status, &err) == 0)
            return;
    }
    node_say("%s", act_error_text(&err));
}

/* ---- the ranks ---- */

void attempt_note(const struct supervisor *s, const char *event, const struct node_record *r)
{
    CODEC_AUTOJSON json_t *json =
        json_pack("{s:I, s:s, s:i, s:s, s:i, s:i, s:i}", "time", (json_int_t)act_now_unix_s(), "event", event, "rank",
                  r->rank, "node", r->node, "pid", (int)r->pid, "exit_status", r->exit_status, "signal", r->signal);
    ACT_AUTOFREE char *line = codec_json_line(json);
    ACT_AUTOFREE char *whole = act_sprintf("%s\n", line);
    ACT_AUTOCLOSE int fd = node_open_log(&s->node, RUN_FILE_RANKS);

    if (fd < 0 || act_write_all(fd, whole, strlen(whole)) < 0)
        node_say("cannot write '" RUN_FILE_RANKS "': %m");
}

static void attempt_describe_failure(const struct supervisor *s, const struct node_record *r, const char *reason,
                                     struct run_failure *out)
{
    ACT_AUTOFREE char *log = act_sprintf("%s/" RUN_DIR_SYSTEM "/%s.txt", s->node.dir, launcher_name(&s->node));
    const char *node = r                    ? r->node
                       : s->job.failed.n    ? s->job.failed.v[0]
                       : s->job.node_failed ? "" /* Slurm did not say which */
                                            : s->node.name;

    *out = (struct run_failure){
        .attempt = s->status.attempt,
        .rank = r ? r->rank : -1,
        .node = act_strdup(node),
        .exit_status = r ? r->exit_status : s->status.exit_status,
        .signal = r ? r->signal : 0,
        .reason = act_strdup(reason),
        .unix_s = act_now_unix_s(),
        .slurm_from = s->job.output_from,
        .class = s->status.class[0] ? act_strdup(s->status.class) : NULL,
    };
    if (r)
        act_strv_copy(&out->lines, r->lines.v, r->lines.n);
    else
        record_tail(log, &out->lines);
}

void attempt_save_failure(const struct supervisor *s, const struct node_record *r, const char *reason)
{
    ACT_AUTOFREE char *path = node_path(&s->node, RUN_FILE_FAILURE);
    ACT_AUTO(run_failure) failure = {0};
    struct act_error err;

    attempt_describe_failure(s, r, reason, &failure);
    if (run_failure_write(&failure, path, &err) == 0)
        return;
    attempt_drop_reserve(s);
    if (run_failure_write(&failure, path, &err) < 0)
        node_say("%s", act_error_text(&err));
}
