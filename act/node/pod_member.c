/* pod_member.c - any pod but the first: finds the first one, and does what it says. */
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "codec/json.h"
#include "node/pod.h"
#include "node/resolve.h"

#define ENV_PATIENCE "ACT_POD_PATIENCE" /* seconds */

enum { SEEK_EVERY_MS = 1000, SEND_MS = 10000 };

/* A pod that gives up counts as a failure of the Job, and the first one may have to wait for a node for days. */
static int64_t patience_ms(const struct pod *pod)
{
    enum { USUAL_S = 12 * 3600, MOST_S = 7 * 24 * 3600, MACHINE_S = 60 };
    const char *text = getenv(ENV_PATIENCE);
    int64_t s;

    if (pod->machine) /* the first one is there before the others */
        return MACHINE_S * 1000;
    return (text && act_int_from_text(text, &s) && s >= 0 && s <= MOST_S ? s : USUAL_S) * 1000;
}

static void member_leave(struct pod *pod, int exit_status)
{
    pod->exit_status = exit_status;
    pod->phase = POD_LEAVES;
}

/* Looks for the first pod anew, whose name may lead to another one next time. */
static void seek(struct pod *pod)
{
    pod->phase = POD_SEEKS;
    pod->lost_ms = act_now_monotonic_ms();
    pod->seek_ms = 0;
}

/* The first pod is gone, or this one was told to end: the ranks have lost their supervisor, or will soon. */
static void lose_group(struct pod *pod)
{
    pod_say("the first %s was lost%s", pod_noun(pod), pod->phase == POD_RUNS ? ": the attempt ends" : "");
    link_close(&pod->link);
    pod->watch.extra_fd = -1;
    if (pod->phase == POD_RUNS)
        pod_end(pod, POD_END_MS);
    else if (pod->phase == POD_WAITS && pod->machine)
        member_leave(pod, POD_EXIT_LOST);
    else if (pod->phase == POD_WAITS)
        seek(pod);
}

/* ---- what the first pod says ---- */

static void member_tell(struct pod *pod, const json_t *message)
{
    if (pod->link.fd >= 0 && (!link_send(&pod->link, message) || !link_drain(&pod->link, SEND_MS)))
        lose_group(pod);
}

static void tell_type(struct pod *pod, const char *type)
{
    CODEC_AUTOJSON json_t *message = json_pack("{s:s}", "type", type);

    member_tell(pod, message);
}

static void member_start(struct pod *pod, const json_t *message)
{
    CODEC_AUTOJSON json_t *done = pod_programs_start(pod, message);

    if (done)
        member_tell(pod, done);
}

static void member_begin(struct pod *pod, const json_t *message)
{
    struct act_error err;

    pod_has_run(pod, codec_json_int(message, "ran", 0));
    if (pod_begin(pod, codec_json_int_in(message, "attempt", 1, INT_MAX - 1, 1), codec_json_str(message, "pods", NULL),
                  NULL, &err) == 0)
        return;
    pod_say("%s", act_error_text(&err));
    member_leave(pod, POD_EXIT_LOST);
}

/* Says that this pod was told to end. */
static void tell_leaving(struct pod *pod)
{
    CODEC_AUTOJSON json_t *message =
        json_pack("{s:s, s:b}", "type", "leaving", "aborted", pod->machine && pod_machine_is_aborted(pod));

    member_tell(pod, message);
}

/* Nothing is heard meanwhile. */
static void member_take(struct pod *pod)
{
    struct act_error err;
    int rc = pod_machine_take(pod, &err);

    if (rc == 0) {
        tell_type(pod, "taken");
        return;
    }
    CODEC_AUTOJSON json_t *failed =
        json_pack("{s:s, s:o}", "type", "failed", "reason", codec_json_bytes_new(act_error_text(&err)));
    if (pod->told)
        tell_leaving(pod);
    else
        member_tell(pod, failed);
    act_str_replace(&pod->why, act_error_text(&err));
    member_leave(pod, POD_EXIT_LOST);
}

static void member_end(struct pod *pod, const json_t *message)
{
    pod->over = json_is_true(json_object_get(message, "over"));
    if (pod->machine && pod->over)
        pod_machine_judge(pod, json_object_get(message, "status"));
    pod_end(pod, POD_END_MS);
}

static void member_on_message(struct pod *pod, const json_t *message)
{
    const char *type = codec_json_str(message, "type", "");

    if (strcmp(type, "ping") == 0)
        tell_type(pod, "pong");
    else if (pod->phase == POD_LEAVES)
        return;
    else if (strcmp(type, "begin") == 0)
        member_begin(pod, message);
    else if (strcmp(type, "start") == 0)
        member_start(pod, message);
    else if (strcmp(type, "stop") == 0)
        pod_programs_stop(pod, codec_json_int_in(message, "id", 0, INT_MAX, -1));
    else if (strcmp(type, "take") == 0 && pod->machine)
        member_take(pod);
    else if (strcmp(type, "end") == 0)
        member_end(pod, message);
}

/* Fits struct watch. */
static bool member_read_messages(void *arg)
{
    struct pod *pod = arg;
    bool more = link_fill(&pod->link);
    json_t *message;
    int got = 0;

    while (pod->link.fd >= 0 && (got = link_take(&pod->link, &message)) > 0) {
        member_on_message(pod, message);
        json_decref(message);
    }
    if (pod->link.fd >= 0 && (!more || got < 0))
        lose_group(pod);
    return true;
}

/* ---- find it ---- */

/* Returns the target of the first pod, a new string. */
static char *find_target(const struct pod *pod)
{
    ACT_AUTOFREE char *host = pod_host(pod->options.job, 0);
    ACT_AUTO(act_strv) addresses = {0};
    struct act_buf target = {0};

    if (pod->machine)
        act_strv_push(&addresses, host);
    else
        resolve_host(host, &addresses);
    act_buf_addf(&target, "%s tcp %d", pod->token, pod->options.port);
    for (size_t i = 0; i < addresses.n; i++)
        act_buf_addf(&target, " %s", addresses.v[i]);
    return act_buf_steal(&target);
}

static bool connect_to_first(struct pod *pod)
{
    CODEC_AUTOJSON json_t *hello = json_pack("{s:i, s:s, s:i, s:I}", "rank", pod->index, "node", pod->node.name,
                                             "attempt", pod->attempt, "ran", (json_int_t)pod_ran_ms(pod));
    ACT_AUTOFREE char *target = find_target(pod);
    bool stop;
    struct act_error err;

    if (link_connect_once(&pod->link, target, hello, &stop, &err) < 0) {
        if (!act_streq(pod->why, act_error_text(&err))) /* said once */
            node_say("%s", act_error_text(&err));
        act_str_replace(&pod->why, act_error_text(&err));
        return false;
    }
    pod->watch.extra_fd = pod->link.fd;
    pod->watch.extra = member_read_messages;
    pod->watch.extra_arg = pod;
    return true;
}

static void step_seek(struct pod *pod)
{
    int64_t now = act_now_monotonic_ms();

    if (now < pod->seek_ms)
        return;
    if (connect_to_first(pod)) {
        pod_say("joined the first %s", pod_noun(pod));
        pod->phase = POD_WAITS;
        return;
    }
    pod->seek_ms = act_now_monotonic_ms() + SEEK_EVERY_MS;
    bool too_long = pod_waits_too_long(pod->lost_ms);
    if (!too_long && now - pod->lost_ms < patience_ms(pod))
        return;
    ACT_AUTOFREE char *host = pod_host(pod->options.job, 0);
    pod_say("cannot find the first %s, '%s'", pod_noun(pod), host);
    member_leave(pod, too_long ? POD_EXIT_ALONE : POD_EXIT_LOST);
}

/* ---- the program ---- */

static void member_step_end(struct pod *pod)
{
    if (!pod_ended(pod))
        return;
    if (pod->over) {
        member_leave(pod, 0);
    } else if (pod->told || (pod->machine && pod->link.fd < 0)) {
        member_leave(pod, POD_EXIT_LOST);
    } else if (pod->link.fd < 0) {
        seek(pod);
    } else {
        pod->phase = POD_WAITS;
        tell_type(pod, "ended");
    }
}

/* Leaves once all is sent. The messages are there before the connection ends. */
static void step_leave(struct pod *pod)
{
    if (!pod_send_last(pod, SEND_FOLDERS | SEND_LOGS))
        return;
    if (pod->send.failed & SEND_FOLDERS)
        tell_type(pod, "unsent");
    link_finish(&pod->link, 0);
    pod->phase = POD_OVER;
}

void member_step(struct pod *pod)
{
    switch (pod->phase) {
    case POD_SEEKS:
        return step_seek(pod);
    case POD_ENDS:
        return member_step_end(pod);
    case POD_LEAVES:
        return step_leave(pod);
    case POD_RUNS:
        if (pod->told && act_now_monotonic_ms() >= pod->until_ms)
            pod_end(pod, 0);
        return;
    case POD_WAITS:
    case POD_CHECKS:
    case POD_OVER:
        return;
    }
}

void member_child_ended(struct pod *pod, pid_t pid, int wait_status)
{
    CODEC_AUTOJSON json_t *done = pod_programs_done(pod, pid, wait_status);

    if (done)
        member_tell(pod, done);
}

/* The supervisor ends the ranks of all pods, and gives them time to save; what Kubernetes told this pod is told the
 * others by it. */
void member_on_signal(struct pod *pod, int sig)
{
    if ((sig != SIGTERM && sig != SIGINT) || pod->phase == POD_LEAVES || pod->phase == POD_OVER)
        return;
    pod_say("told to end");
    if (pod->phase == POD_RUNS && pod->told == 1 && pod->link.fd >= 0) {
        pod->until_ms = act_now_monotonic_ms() + node_abort_grace_ms() + POD_END_MS;
        tell_leaving(pod);
    } else if (pod->phase == POD_RUNS) {
        pod_end(pod, 0);
    } else if (pod->phase != POD_ENDS) {
        tell_leaving(pod);
        member_leave(pod, POD_EXIT_LOST);
    }
}

void member_open(struct pod *pod)
{
    seek(pod);
    pod_say("looks for the first %s", pod_noun(pod));
}
