/* loss.c - what becomes of pods that the cluster takes away, and of those whose node says nothing any more. Pure.
 *
 * Whoever takes a pod away says why in its condition DisruptionTarget. With backoffLimitPerIndex the pod is there until
 * another one has its place, so that there is no moment in which nobody can read it.
 *
 * Of a node that does not answer, the cluster says in each of its pods that this is not ready, and leaves what the
 * kubelet said last of its containers. Nobody needs the right to look at nodes to see that.
 *
 * Source: kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions;
 * .../concepts/architecture/nodes/#node-controller; MarkPodsNotReady() in pkg/controller/util/node of Kubernetes.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "platform/kubernetes/kubernetes_internal.h"

/* ---- pods that are taken away ---- */

static const struct {
    const char *reason, *text;
    bool has_message; /* of the cluster, which says more */
} takings[] = {
    {"PreemptionByScheduler", "was preempted: its node was needed for a pod of higher priority", false},
    {"EvictionByEvictionAPI", "was evicted, as from a node that is drained", false},
    {"DeletionByTaintManager", "was taken from its node, which does not answer or has a taint", false},
    {"DeletionByPodGC", "is lost: its node is gone from the cluster", false},
    {"TerminationByKubelet", "was ended by its node", true},
};

static bool has_phase(const json_t *pod, const char *phase)
{
    return strcmp(kubernetes_phase(pod), phase) == 0;
}

/* Says why the pod went. Returns false if nobody took it. */
static bool k8s_loss_explain(const json_t *pod, struct act_buf *out)
{
    const json_t *why = kubernetes_condition(pod, "DisruptionTarget");
    const char *reason = codec_json_str(why, "reason", ""), *message = codec_json_str(why, "message", "");
    const char *text = "was taken away";
    bool has_message = true;

    if (!why && !kubernetes_is_going(pod))
        return false;
    for (size_t i = 0; i < sizeof(takings) / sizeof(takings[0]); i++)
        if (strcmp(reason, takings[i].reason) == 0) {
            text = takings[i].text;
            has_message = takings[i].has_message;
        }
    act_buf_addf(out, "pod '%s' %s", kubernetes_name_of(pod), why ? text : "was deleted by somebody");
    ACT_AUTOFREE char *line = act_one_line(message, strlen(message));
    if (has_message && *line)
        act_buf_addf(out, " (%.*s)", 120, line);
    return true;
}

char *kubernetes_loss(const json_t *pods, int n, bool only_now)
{
    ACT_AUTOFREE const json_t **newest = kubernetes_pods_of(pods, n);
    struct act_buf text = {0}, one = {0};
    const json_t *last = NULL;
    size_t i;
    json_t *pod;

    json_array_foreach(pods, i, pod)
    {
        int index = kubernetes_index(pod);
        one.len = 0;
        if (index < 0 || index >= n || (only_now && newest[index] != pod))
            continue;
        if (has_phase(pod, "Succeeded") || (!only_now && has_phase(pod, "Running")) ||
            (last && kubernetes_compare_age(pod, last) < 0) || !k8s_loss_explain(pod, &one))
            continue;
        last = pod;
        text.len = 0;
        act_buf_addf(&text, "%s", one.data);
    }
    act_buf_release(&one);
    if (last)
        return act_buf_steal(&text);
    act_buf_release(&text);
    return NULL;
}

/* Pods are called "<job>-<index>-<letters>". */
static bool is_pod_of(const char *name, const char *job)
{
    return act_starts_with(name, job) && name[strlen(job)] == '-';
}

char *kubernetes_loss_in_events(const json_t *events, const char *job)
{
    const char *last = NULL;
    int64_t last_s = -1;
    size_t i;
    json_t *event;

    json_array_foreach(events, i, event)
    {
        const char *name = codec_json_str(json_object_get(event, "involvedObject"), "name", "");
        int64_t at = kubernetes_time(event, "eventTime");
        at = at ? at : kubernetes_time(event, "lastTimestamp");
        if (at < last_s || !is_pod_of(name, job))
            continue;
        last = name;
        last_s = at;
    }
    return last ? act_sprintf("pod '%s' %s", last, takings[0].text) : NULL;
}

/* ---- nodes that do not answer ---- */

int64_t kubernetes_silent_since(const json_t *pod)
{
    const json_t *conditions = json_object_get(json_object_get(pod, "status"), "conditions");
    const json_t *ready = codec_json_find(conditions, "type", "Ready");
    bool is_marked = strcmp(codec_json_str(ready, "status", ""), "False") == 0 &&
                     strcmp(codec_json_str(ready, "reason", ""), "ReadinessGatesNotReady") != 0;

    return has_phase(pod, "Running") && is_marked && kubernetes_condition(pod, "ContainersReady")
               ? kubernetes_time(ready, "lastTransitionTime")
               : 0;
}

/* Says "node 'a' does not answer since ...". New string; NULL: it does answer. */
static char *loss_silence(const json_t *pod, int64_t ahead_s)
{
    int64_t since = kubernetes_silent_since(pod);
    char text[ACT_TIME_TEXT];

    if (!since)
        return NULL;
    act_time_to_iso(since - ahead_s, text);
    return act_sprintf("node '%s' does not answer since %s", kubernetes_node_of(pod), text);
}

char *kubernetes_silent_node(const json_t *pods, bool is_ending, int64_t ahead_s)
{
    size_t i;
    json_t *pod;

    json_array_foreach(pods, i, pod)
    {
        ACT_AUTOFREE char *silence = loss_silence(pod, ahead_s);
        const char *node = kubernetes_node_of(pod);
        if (!silence)
            continue;
        return is_ending ? act_sprintf("%s, and its pod stays until it does, or until somebody who may deletes the "
                                       "node: 'kubectl delete node %s'",
                                       silence, node)
                         : act_sprintf("%s, and nobody knows what pod '%s' does; if the node stays away, somebody who "
                                       "may has to delete it: 'kubectl delete node %s', and another pod follows",
                                       silence, kubernetes_name_of(pod), node);
    }
    return NULL;
}
