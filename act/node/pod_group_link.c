/* pod_group_link.c - what comes to the first pod over the link: the other pods, what they say, and launchers, whose
 * wishes are passed on to the pods that they name. */
#include <string.h>

#include "base/clock.h"
#include "codec/json.h"
#include "node/pod_group.h"

enum { EXIT_NOT_THERE = 255 }; /* as ssh has it for a host that cannot be reached */

/* ---- what launchers want ---- */

void group_answer(struct pod *pod, int from, const json_t *done)
{
    CODEC_AUTOJSON json_t *message = json_deep_copy(done);
    int nodes = pod->options.nodes;

    json_object_set_new(message, "pod", json_integer(from));
    link_tell(pod->group->server, codec_json_int_in(done, "id", nodes, 2 * nodes - 1, -1), message);
}

static void group_pass_on(struct pod *pod, int launcher, const json_t *start)
{
    CODEC_AUTOJSON json_t *message = json_deep_copy(start);
    int64_t node = codec_json_int(start, "pod", -1);
    int to = node >= 0 && node < pod->node.spec.nodes ? pod->group->nodes[node] : -1;

    json_object_set_new(message, "id", json_integer(launcher));
    if (to == 0) {
        CODEC_AUTOJSON json_t *done = pod_programs_start(pod, message);
        if (done)
            group_answer(pod, 0, done);
    } else if (to > 0 && pod->group->members[to].there) {
        link_tell(pod->group->server, to, message);
    } else {
        CODEC_AUTOJSON json_t *done = json_pack("{s:s, s:i, s:i, s:[s]}", "type", "done", "id", launcher, "status",
                                                EXIT_NOT_THERE, "lines", "act-node: that node is not there");
        group_answer(pod, to, done);
    }
}

static bool group_on_hello(void *arg, int who, const json_t *message)
{
    struct pod *pod = arg;
    int attempt = codec_json_int_in(message, "attempt", 0, POD_ATTEMPTS_MAX, 0);
    int64_t ran_ms = codec_json_int(message, "ran", 0);

    if (who == 0)
        return false;
    if (who >= pod->options.nodes)
        return pod->phase == POD_RUNS;
    pod->group->members[who] = (struct group_member){.there = true, .answered = true};
    if (attempt > pod->group->known_attempt)
        pod->group->known_attempt = attempt;
    if (ran_ms > 0)
        pod_has_run(pod, ran_ms);
    pod->group->changed_ms = act_now_monotonic_ms();
    ACT_AUTOFREE char *name = pod_name(pod, who);
    node_say("%s has come ('%s')", name, codec_json_str(message, "node", ""));
    return true;
}

static void group_on_message(void *arg, int who, const json_t *message)
{
    struct pod *pod = arg;
    const char *type = codec_json_str(message, "type", "");

    if (who >= pod->options.nodes) {
        if (strcmp(type, "start") == 0)
            group_pass_on(pod, who, message);
        return;
    }
    if (strcmp(type, "done") == 0)
        group_answer(pod, who, message);
    else if (strcmp(type, "leaving") == 0)
        group_on_leaving(pod, who, message);
    else if (strcmp(type, "failed") == 0)
        group_take_failure(pod, who, message);
    else if (strcmp(type, "taken") == 0) {
        pod->group->n_taken++;
        pod->group->is_asked = false;
    } else if (strcmp(type, "unsent") == 0)
        pod->group->unsent = true;
    else if (strcmp(type, pod->group->awaited) == 0)
        pod->group->members[who].answered = true;
}

static void group_on_gone(void *arg, int who, int errnum)
{
    struct pod *pod = arg;
    CODEC_AUTOJSON json_t *stop = json_pack("{s:s, s:i}", "type", "stop", "id", who);

    if (who < pod->options.nodes) {
        ACT_AUTOFREE char *name = pod_name(pod, who);
        node_say("%s is gone (%s)", name, errnum ? strerror(errnum) : "closed");
        pod->group->members[who].there = false;
        pod->group->changed_ms = act_now_monotonic_ms();
        group_lose(pod, who, "was lost");
        group_lose_waiting(pod, who, "was lost");
    } else {
        pod_programs_stop(pod, who);
        for (int i = 1; i < pod->options.nodes; i++)
            link_tell(pod->group->server, i, stop);
    }
}

static bool group_serve(void *arg)
{
    link_serve(((struct pod *)arg)->group->server);
    return true;
}

int group_listen(struct pod *pod, struct act_error *err)
{
    static const struct link_events events = {
        .hello = group_on_hello, .message = group_on_message, .gone = group_on_gone};
    const struct link_where where = {.port = (uint16_t)pod->options.port, .token = pod->token};
    int rc = link_listen(2 * pod->options.nodes, &where, &events, pod, &pod->group->server, err);

    if (rc < 0)
        return rc;
    pod->watch.extra_fd = link_fd(pod->group->server);
    pod->watch.extra = group_serve;
    pod->watch.extra_arg = pod;
    if (run_spec_is_elastic(&pod->node.spec))
        group_say_wait(pod);
    else if (pod->options.nodes > 1)
        pod_say("waits for %d other %s(s)", pod->options.nodes - 1, pod_noun(pod));
    return 0;
}
