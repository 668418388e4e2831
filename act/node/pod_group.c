/* pod_group.c - the first pod: waits for the others, has the supervisor make attempts at the run until one of them has
 * a result, and passes on what launchers want started on which pod.
 *
 * An attempt has no result when a pod was lost in it: what its ranks and the launcher say then follows from that.
 * Whether one is lost may be known later than what follows from it, so after a failure all pods are asked whether they
 * are there.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "codec/json.h"
#include "node/folder.h"
#include "node/launcher.h"
#include "node/pod_group.h"
#include "node/retry.h"

#define FILE_OUTPUT  RUN_DIR_SYSTEM "/supervisor.txt"
#define FILE_OUTCOME "outcome.json" /* of a machine */

enum {
    CHECK_MS = 60 * 1000,          /* by then a broken connection to a pod that vanished is known, see link_tune() */
    FAREWELL_MS = 30 * 1000,       /* for the others to end what is left there */
    SENDING_MS = 24 * 3600 * 1000, /* and to send what they have; one that vanishes is known before */
};

#define ENV_SETTLE "ACT_POD_SETTLE" /* seconds */

/* ---- who is there ---- */

int group_count_missing(const struct pod *pod)
{
    int missing = 0;

    for (int i = 1; i < pod->options.nodes; i++)
        missing += !pod->group->members[i].there;
    return missing;
}

int group_first_missing(const struct pod *pod)
{
    int i = 1;

    while (i + 1 < pod->options.nodes && pod->group->members[i].there)
        i++;
    return i;
}

static bool is_elastic(const struct pod *pod)
{
    return run_spec_is_elastic(&pod->node.spec);
}

/* Tells whether no pod has come or gone for a while: pods that arrive together should not cost an attempt each. */
static bool has_settled(const struct pod *pod)
{
    enum { USUAL_S = 15, MOST_S = 3600 };
    const char *text = getenv(ENV_SETTLE);
    int64_t s;

    if (!text || !act_int_from_text(text, &s) || s < 0 || s > MOST_S)
        s = USUAL_S;
    return act_now_monotonic_ms() - pod->group->changed_ms >= s * 1000;
}

/* Tells whether as many are there as an attempt needs. */
static bool pod_group_has_enough(const struct pod *pod)
{
    int least = is_elastic(pod) ? pod->node.spec.min_nodes : pod->options.nodes;

    return pod->options.nodes - group_count_missing(pod) >= least;
}

static bool is_gathered(const struct pod *pod)
{
    return pod_group_has_enough(pod) && (!is_elastic(pod) || group_count_missing(pod) == 0 || has_settled(pod));
}

/* Counts the pods that are there, and not of the attempt. */
static int count_more(const struct pod *pod)
{
    int more = 0;

    for (int i = 1; i < pod->options.nodes; i++)
        more += pod->group->members[i].there && !pod->group->members[i].taken;
    return more;
}

/* Returns a pod that is there and has not replied; 0: all have. */
static int first_silent(const struct pod *pod)
{
    for (int i = 1; i < pod->options.nodes; i++)
        if (pod->group->members[i].there && !pod->group->members[i].answered)
            return i;
    return 0;
}

/* Tells the other pods, and no launcher. awaited: the type of their reply. */
static void tell_pods(struct pod *pod, const json_t *message, const char *awaited)
{
    pod->group->awaited = awaited;
    for (int i = 1; i < pod->options.nodes; i++) {
        pod->group->members[i].answered = false;
        link_tell(pod->group->server, i, message);
    }
}

void group_stop_supervisor(struct pod *pod)
{
    if (pod->group->supervisor > 0)
        kill(pod->group->supervisor, SIGTERM);
    pod->group->stopped = true;
}

/* Ends the attempt because pod i is gone, without which it cannot succeed. */
void group_lose(struct pod *pod, int i, const char *how)
{
    if (!pod->group->members[i].taken || pod->group->lost || (pod->phase != POD_RUNS && pod->phase != POD_CHECKS))
        return;
    pod->group->lost = i;
    pod->group->how = how;
    ACT_AUTOFREE char *name = pod_name(pod, i);
    pod_say("%s %s: attempt %d ends", name, how, pod->attempt);
    if (!pod->group->stopped)
        group_stop_supervisor(pod);
}

/* Ends the attempt of an elastic run if more pods have come. */
static void step_run(struct pod *pod)
{
    int more = is_elastic(pod) && !pod->group->stopped ? count_more(pod) : 0;

    if (more == 0 || !has_settled(pod))
        return;
    pod_say("%d more pod(s) have come: attempt %d ends", more, pod->attempt);
    pod->group->grows = true;
    group_stop_supervisor(pod);
}

/* Tells whether what its ranks say of the attempt follows from a change of the group. */
static bool is_broken(const struct pod_group *group)
{
    return group->lost || group->grows;
}

/* ---- an attempt ---- */

void group_save_status(struct pod *pod)
{
    struct act_error err;

    if (run_status_write(pod->group->status_path, &pod->group->status, &err) < 0)
        node_say("%s", act_error_text(&err));
}

void group_set_status(struct pod *pod, enum run_state state, int exit_status, const char *reason)
{
    struct run_status *status = &pod->group->status;

    status->state = state;
    status->exit_status = exit_status;
    status->class[0] = '\0';
    status->ended_unix_s = run_state_is_final(state) ? act_now_unix_s() : 0;
    snprintf(status->reason, sizeof(status->reason), "%.*s", (int)sizeof(status->reason) - 1, reason);
}

/* Returns the rest of the run's time, which all attempts share; at least a second. */
static int64_t time_left_s(const struct pod *pod)
{
    int64_t left = pod->node.spec.limit_s - pod_ran_ms(pod) / 1000;

    return left > 1 ? left : 1;
}

static void supervisor_words(struct pod *pod, const char *self, const char *pods, struct act_strv *out)
{
    ACT_STRV_PUSH(out, self, "supervise", "--pods", pod->options.job);
    if (pods)
        ACT_STRV_PUSH(out, "--group", pods);
    if (pod->machine)
        ACT_STRV_PUSH(out, "--outcome", FILE_OUTCOME);
    if (pod->node.spec.limit_s) {
        act_strv_push(out, "--time-left");
        act_strv_pushf(out, "%lld", (long long)time_left_s(pod));
    }
    act_strv_push(out, pod->node.dir);
}

static int group_start_supervisor(struct pod *pod, const char *pods, struct act_error *err)
{
    ACT_AUTO(act_strv) words = {0};
    char self[PATH_MAX] = "";

    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        return act_error_errno(err, errno, "cannot find this program");
    supervisor_words(pod, self, pods, &words);
    ACT_AUTOCLOSE int fd = node_open_log(&pod->node, FILE_OUTPUT);
    pid_t pid = child_start(&(struct child){.argv = (const char *const *)words.v, .out_fd = fd});

    if (pid < 0)
        return act_error_errno(err, errno, "cannot start the supervisor");
    pod->group->supervisor = pid;
    return 0;
}

/* Takes the pods that are there as members. Returns their list, a new string, for an elastic run, else NULL. */
static char *take_members(struct pod *pod)
{
    struct pod_group *group = pod->group;
    struct act_buf pods = {0};
    int n = 0;

    act_buf_adds(&pods, "0");
    group->nodes[n++] = 0;
    for (int i = 1; i < pod->options.nodes; i++) {
        group->members[i].taken = group->members[i].there;
        if (!group->members[i].taken)
            continue;
        group->nodes[n++] = i;
        act_buf_addf(&pods, ",%d", i);
    }
    if (is_elastic(pod))
        return act_buf_steal(&pods);
    act_buf_release(&pods);
    return NULL;
}

static void tell_taken(struct pod *pod, const json_t *message)
{
    pod->group->awaited = "";
    for (int i = 1; i < pod->options.nodes; i++)
        if (pod->group->members[i].taken)
            link_tell(pod->group->server, i, message);
}

static int group_begin(struct pod *pod, struct act_error *err)
{
    struct pod_group *group = pod->group;
    int attempt = (group->known_attempt > pod->attempt ? group->known_attempt : pod->attempt) + 1;
    ACT_AUTOFREE char *pods = take_members(pod);
    pod_has_run(pod, 0);
    CODEC_AUTOJSON json_t *message = json_pack("{s:s, s:i, s:I, s:s*}", "type", "begin", "attempt", attempt, "ran",
                                               (json_int_t)pod_ran_ms(pod), "pods", pods);
    int rc = pod_begin(pod, attempt, pods, &group->status, err);

    if (rc < 0)
        return rc;
    if (pods)
        pod_say("%d pod(s) take part in attempt %d", pod->node.spec.nodes, attempt);
    group_set_status(pod, RUN_QUEUED, 0, "");
    group->status.failed_rank = -1;
    group->status.started_unix_s = 0;
    group->status.attempt = attempt;
    group->stopped = false;
    group->lost = 0;
    group->grows = false;
    group->again = false;
    group_save_status(pod);
    tell_taken(pod, message);
    return group_start_supervisor(pod, pods, err);
}

static int64_t farewell_of(const struct pod *pod)
{
    if (pod->told)
        return 2 * POD_END_MS;
    return pod->send.has ? SENDING_MS : FAREWELL_MS;
}

static json_t *end_message(const struct pod *pod, bool over)
{
    json_t *message = json_pack("{s:s, s:b}", "type", "end", "over", over);

    if (pod->machine && run_state_is_final(pod->group->status.state))
        json_object_set_new(message, "status", run_status_to_json(&pod->group->status));
    return message;
}

/* Tells whether the run may go on with another pod in the place of this one. */
static bool group_is_replaced(const struct pod *pod)
{
    return pod->told && !pod->machine;
}

/* The attempt is over, and perhaps the run. If this pod was told to end, the run may go on with a new one in its place:
 * then the others wait for that. */
void group_end_attempt(struct pod *pod, bool last)
{
    CODEC_AUTOJSON json_t *message = end_message(pod, last && !group_is_replaced(pod));

    pod->group->last = last;
    pod->group->farewell_ms = act_now_monotonic_ms() + farewell_of(pod);
    tell_pods(pod, message, "ended");
    pod_end(pod, POD_END_MS);
}

/* A machine that was lost does not come back. */
static void group_fail_by_loss(struct pod *pod)
{
    struct pod_group *group = pod->group;
    int lost = group->lost;
    ACT_AUTOFREE char *name = pod_name(pod, lost);
    ACT_AUTOFREE char *reason = act_sprintf("%s %s, which is one of the run's machines", name, group->how);

    retry_forget(&pod->node, pod->attempt);
    group->lost = 0;
    group->again = false;
    if (pod->told || group->aborted)
        return;
    group_set_status(pod, RUN_FAILED, ACT_WRAPPER, reason);
    snprintf(group->status.class, sizeof(group->status.class), "%s", CLASS_NODE_FAILURE);
    pod_machine_note_loss(pod, lost, reason);
}

static void group_judge(struct pod *pod)
{
    struct pod_group *group = pod->group;
    int tries = 0;

    group->again = group->status.state == RUN_FAILED && !pod->told && retry_follows(&pod->node, pod->attempt, &tries);
    if (group->again)
        group->begin_ms = act_now_monotonic_ms() + retry_pause_s(tries) * 1000;
    if (pod->machine && group->lost && group->status.state != RUN_COMPLETED) {
        group_fail_by_loss(pod);
        group_end_attempt(pod, true);
    } else if (group->status.state == RUN_COMPLETED || pod->told || pod->options.nodes == 1) {
        group_end_attempt(pod, !group->again);
    } else if (is_broken(group)) {
        group_end_attempt(pod, false);
    } else {
        CODEC_AUTOJSON json_t *ping = json_pack("{s:s}", "type", "ping");
        pod->phase = POD_CHECKS;
        pod->until_ms = act_now_monotonic_ms() + CHECK_MS;
        tell_pods(pod, ping, "pong");
    }
}

static void on_supervisor_end(struct pod *pod, int wait_status)
{
    struct pod_group *group = pod->group;

    group->supervisor = 0;
    if (run_status_read(group->outcome_path, &group->status, NULL) == 0 && run_state_is_final(group->status.state)) {
        group_judge(pod);
        return;
    }
    ACT_AUTOFREE char *reason = act_sprintf("the supervisor ended with status %d", child_exit_status(wait_status));
    group_set_status(pod, RUN_FAILED, ACT_WRAPPER, reason);
    group_judge(pod);
}

/* A failure before this pod was told to end remains one, unless a lost pod caused it. If the whole run was told to end,
 * nobody asks for its status; if only this pod was, a new one carries on. */
static void group_finish(struct pod *pod)
{
    struct run_status *status = &pod->group->status;

    if (!run_state_is_final(status->state) || (is_broken(pod->group) && status->state == RUN_FAILED))
        group_set_status(pod, RUN_CANCELED, 128 + SIGTERM, "aborted");
    if (status->state == RUN_COMPLETED && (pod->group->unsent || (pod->send.failed & SEND_FOLDERS)))
        group_set_status(pod, RUN_FAILED, ACT_WRAPPER, FOLDER_UNSENT);
    if (pod->has_begun)
        status->started_unix_s = (act_now_unix_ns() / 1000000 - pod_ran_ms(pod)) / 1000;
    group_save_status(pod);
    pod_say("%s%s%s", run_state_name(status->state), status->reason[0] ? ": " : "", status->reason);
    pod_leave_word(status);
    pod->exit_status = status->state == RUN_CANCELED ? POD_EXIT_LOST : status->exit_status;
    pod->phase = POD_LEAVES;
}

void group_say_wait(const struct pod *pod)
{
    pod_say("waits for pods: %d are there, at least %d and at most %d can be used",
            pod->options.nodes - group_count_missing(pod), pod->node.spec.min_nodes, pod->options.nodes);
}

static void group_wait_again(struct pod *pod)
{
    struct pod_group *group = pod->group;

    if (pod->machine && group_count_missing(pod) > 0) { /* it went while the attempt ended */
        group->lost = group_first_missing(pod);
        group->how = "was lost";
        group_fail_by_loss(pod);
        group_end_attempt(pod, true);
        return;
    }
    int lost = group->lost;
    ACT_AUTOFREE char *reason = lost           ? act_sprintf("pod %d was lost", lost)
                                : group->grows ? act_strdup("more pods have come")
                                               : act_strdup(group->status.retry);

    if (is_broken(group)) {
        retry_forget(&pod->node, pod->attempt);
        group->begin_ms = 0;
    } else {
        pod_say("%s; attempt %d of %d follows, in the same pods", reason, pod->attempt + 1, group->status.attempts);
    }
    group_set_status(pod, RUN_QUEUED, 0, reason);
    pod->group->status.failed_rank = -1;
    group_save_status(pod);
    pod->group->waits_ms = act_now_monotonic_ms();
    pod->phase = POD_WAITS;
    if (group_count_missing(pod) > 0 && is_elastic(pod))
        group_say_wait(pod);
    else if (group_count_missing(pod) > 0)
        pod_say("waits for pod %d to come back", lost > 0 ? lost : group_first_missing(pod));
}

static void step_check(struct pod *pod)
{
    int silent = first_silent(pod);

    if (silent > 0 && act_now_monotonic_ms() >= pod->until_ms)
        group_lose(pod, silent, "does not answer");
    if (pod->machine && pod->group->lost)
        group_fail_by_loss(pod);
    if (pod->group->lost || silent == 0)
        group_end_attempt(pod, !pod->group->lost && !pod->group->again);
}

/* Sends pods home that come only now. */
static void send_home(struct pod *pod)
{
    CODEC_AUTOJSON json_t *message = end_message(pod, true);

    for (int i = 1; i < pod->options.nodes; i++)
        if (pod->group->members[i].there && pod->group->members[i].answered) {
            pod->group->members[i].answered = false;
            link_tell(pod->group->server, i, message);
        }
}

/* Tells whether the others have ended what is left there; when the run is over, they leave. */
static bool others_ended(struct pod *pod)
{
    if (!pod->group->last || group_is_replaced(pod))
        return first_silent(pod) == 0;
    send_home(pod);
    return group_count_missing(pod) == pod->options.nodes - 1;
}

static bool group_is_over(const struct pod *pod)
{
    return pod->group->last && !pod->told;
}

static void group_step_end(struct pod *pod)
{
    bool final = pod->group->last || pod->told;

    if (pod->output.n > 0 && !pod_ended(pod))
        return;
    bool sent = !final || pod_send_last(pod, SEND_FOLDERS);
    bool quiet = others_ended(pod) || (final && act_now_monotonic_ms() >= pod->group->farewell_ms);
    if (!sent || !quiet)
        return;
    /* The Job is over with this pod, and takes away those of which the cluster does not know yet that they have ended,
     * with their logs. */
    if (is_elastic(pod) && group_is_over(pod) && !has_settled(pod))
        return;
    if (final)
        group_finish(pod);
    else
        group_wait_again(pod);
}

void group_fail(struct pod *pod, const char *reason)
{
    group_set_status(pod, RUN_FAILED, ACT_WRAPPER, reason);
    group_end_attempt(pod, true);
}

/* Ends the run so that others can use what its pods hold. */
static void pod_group_give_back(struct pod *pod)
{
    ACT_AUTOFREE char *reason =
        act_sprintf("only %d of its %d pods were there at once for as long as k8s.gang_wait allows, so it gave them "
                    "back: pod %d is missing; 'a resubmit' tries again, and with fewer nodes (-n) it needs less",
                    pod->options.nodes - group_count_missing(pod), pod->options.nodes, group_first_missing(pod));

    pod->group->lost = 0;
    pod->group->grows = false;
    group_set_status(pod, RUN_FAILED, ACT_NO_CAPACITY, reason);
    group_end_attempt(pod, true);
}

void group_step(struct pod *pod)
{
    struct act_error err;

    switch (pod->phase) {
    case POD_WAITS:
        if (group_is_interrupted(pod))
            return group_say_interrupted(pod);
        if (!pod_group_has_enough(pod) && pod_waits_too_long(pod->group->waits_ms))
            return pod_group_give_back(pod);
        if (!is_gathered(pod) || act_now_monotonic_ms() < pod->group->begin_ms || !group_has_slots(pod) ||
            group_begin(pod, &err) == 0)
            return;
        return group_fail(pod, act_error_text(&err));
    case POD_CHECKS:
        return step_check(pod);
    case POD_ENDS:
        return group_step_end(pod);
    case POD_LEAVES:
        pod->phase = pod_send_last(pod, SEND_LOGS) ? POD_OVER : POD_LEAVES;
        return;
    case POD_RUNS:
        return step_run(pod);
    case POD_SEEKS:
    case POD_OVER:
        return;
    }
}

void group_child_ended(struct pod *pod, pid_t pid, int wait_status)
{
    if (pid == pod->group->supervisor)
        return on_supervisor_end(pod, wait_status);
    CODEC_AUTOJSON json_t *done = pod_programs_done(pod, pid, wait_status);
    if (done)
        group_answer(pod, 0, done);
}

/* ---- the program ---- */

int group_open(struct pod *pod, struct act_error *err)
{
    pod->group = act_calloc(1, sizeof(*pod->group));
    pod->group->members = act_calloc((size_t)pod->options.nodes, sizeof(*pod->group->members));
    pod->group->nodes = act_calloc((size_t)pod->options.nodes, sizeof(*pod->group->nodes));
    pod->group->changed_ms = act_now_monotonic_ms();
    pod->group->waits_ms = pod->group->changed_ms;
    pod->group->awaited = "";
    pod->group->known_attempt = pod->send.before;
    pod->group->status_path = node_path(&pod->node, RUN_FILE_STATUS);
    pod->group->outcome_path = node_path(&pod->node, pod->machine ? FILE_OUTCOME : RUN_FILE_STATUS);
    pod->group->status = (struct run_status){.state = RUN_QUEUED, .failed_rank = -1, .attempt = 1};
    pod->phase = POD_WAITS;
    bool alone = pod->options.nodes == 1 && strcmp(launcher_name(&pod->node), "direct") != 0;
    return alone ? 0 : group_listen(pod, err);
}

void group_close(struct pod *pod)
{
    if (!pod->group)
        return;
    link_server_free(pod->group->server);
    free(pod->group->members);
    free(pod->group->nodes);
    free(pod->group->status_path);
    free(pod->group->outcome_path);
    free(pod->group);
    pod->group = NULL;
}

void group_on_signal(struct pod *pod, int sig)
{
    struct pod_group *group = pod->group;

    if ((sig == SIGUSR1 || sig == SIGUSR2) && group->supervisor > 0)
        kill(group->supervisor, sig);
    if (sig != SIGTERM && sig != SIGINT)
        return;
    node_say("told to end");
    if (pod->phase == POD_RUNS && (!group->stopped || pod->told > 1))
        group_stop_supervisor(pod);
    if (pod->phase == POD_WAITS)
        group_end_attempt(pod, true);
}
