/* pod_group_machines.c - what is different where the members of the group are machines behind ssh: they take their
 * slots one after the other before the first attempt, and one that is lost does not come back. */
#include "base/clock.h"
#include "codec/json.h"
#include "node/pod_group.h"

static void group_take_own(struct pod *pod)
{
    struct act_error err;
    int rc = pod_machine_take(pod, &err);

    pod->group->n_taken += rc == 0;
    if (rc == -ACT_INTERRUPTED)
        group_end_attempt(pod, true);
    else if (rc < 0)
        group_fail(pod, act_error_text(&err));
}

static void group_ask_to_take(struct pod *pod, int i)
{
    CODEC_AUTOJSON json_t *take = json_pack("{s:s}", "type", "take");
    ACT_AUTOFREE char *name = pod_name(pod, i);
    ACT_AUTOFREE char *reason = act_sprintf("waits for its turn on %s", name);

    pod->group->is_asked = true;
    link_tell(pod->group->server, i, take);
    group_set_status(pod, RUN_QUEUED, 0, reason);
    group_save_status(pod);
}

/* Tells whether all have their slots; the next one takes them otherwise. */
bool group_has_slots(struct pod *pod)
{
    struct pod_group *group = pod->group;
    int next;

    if (!pod->machine || group->n_taken == pod->options.nodes)
        return true;
    if (group->is_asked)
        return false;
    next = pod_machine_turn(pod, group->n_taken);
    if (next == 0)
        group_take_own(pod);
    else
        group_ask_to_take(pod, next);
    return false;
}

/* Tells whether the machines have had the time to come: whoever starts the run starts all of them at once. */
bool group_is_interrupted(const struct pod *pod)
{
    enum { COME_MS = 5 * 60 * 1000 };

    return pod->machine && pod->attempt == 0 && act_now_monotonic_ms() - pod->group->waits_ms >= COME_MS &&
           group_count_missing(pod) > 0;
}

void group_say_interrupted(struct pod *pod)
{
    ACT_AUTOFREE char *name = pod_name(pod, group_first_missing(pod));
    ACT_AUTOFREE char *reason = act_sprintf("%s has not heard of the run: the submission was interrupted", name);

    group_fail(pod, reason);
}

/* Before an attempt a machine that goes ends the run, too. */
void group_lose_waiting(struct pod *pod, int i, const char *how)
{
    ACT_AUTOFREE char *name = pod_name(pod, i);
    ACT_AUTOFREE char *reason = act_sprintf("%s %s before the run began", name, how);

    if (pod->machine && pod->phase == POD_WAITS)
        group_fail(pod, reason);
}

void group_take_failure(struct pod *pod, int i, const json_t *message)
{
    ACT_AUTOFREE char *name = pod_name(pod, i);
    ACT_AUTOFREE char *why = codec_json_strdup(message, "reason");
    ACT_AUTOFREE char *reason = act_sprintf("%s: %s", name, why ? why : "it failed");

    if (pod->phase == POD_WAITS)
        group_fail(pod, reason);
}

/* The user aborts the run on another machine, as he does on this one at the same time. */
static void group_take_abort(struct pod *pod)
{
    pod->group->aborted = true;
    if (pod->phase == POD_RUNS && !pod->group->stopped)
        group_stop_supervisor(pod);
    if (pod->phase == POD_WAITS)
        group_end_attempt(pod, true);
}

void group_on_leaving(struct pod *pod, int i, const json_t *message)
{
    if (pod->machine && json_is_true(json_object_get(message, "aborted")))
        group_take_abort(pod);
    else
        group_lose(pod, i, "was told to end");
}
