/* object.c - what the objects of the cluster say of themselves: names, marks, times, conditions, and of pods which life
 * of their place they are. Pure.
 *
 * Source: kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/; .../concepts/workloads/pods/
 * pod-lifecycle/ (phases, container states).
 */
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "platform/kubernetes/kubernetes_internal.h"

/* ---- any object ---- */

const json_t *kubernetes_metadata(const json_t *object)
{
    return json_object_get(object, "metadata");
}

const char *kubernetes_name_of(const json_t *object)
{
    return codec_json_str(kubernetes_metadata(object), "name", "");
}

const char *kubernetes_uid_of(const json_t *object)
{
    return codec_json_str(kubernetes_metadata(object), "uid", "");
}

const char *kubernetes_label(const json_t *object, const char *key)
{
    return codec_json_str(json_object_get(kubernetes_metadata(object), "labels"), key, NULL);
}

const char *kubernetes_annotation(const json_t *object, const char *key)
{
    return codec_json_str(json_object_get(kubernetes_metadata(object), "annotations"), key, NULL);
}

int64_t kubernetes_time(const json_t *object, const char *key)
{
    int64_t ns;

    return act_time_from_iso_ns(codec_json_str(object, key, ""), &ns) ? ns / 1000000000 : 0;
}

const json_t *kubernetes_any_condition(const json_t *object, const char *type)
{
    return codec_json_find(json_object_get(json_object_get(object, "status"), "conditions"), "type", type);
}

bool kubernetes_is_true(const json_t *condition)
{
    return strcmp(codec_json_str(condition, "status", ""), "True") == 0;
}

const json_t *kubernetes_condition(const json_t *object, const char *type)
{
    const json_t *condition = kubernetes_any_condition(object, type);

    return kubernetes_is_true(condition) ? condition : NULL;
}

int kubernetes_index(const json_t *pod)
{
    const char *text = kubernetes_annotation(pod, KUBERNETES_INDEX);
    int64_t index;

    if (!text)
        text = kubernetes_label(pod, KUBERNETES_INDEX);
    return text && act_int_from_text(text, &index) && index >= 0 && index < INT32_MAX ? (int)index : -1;
}

int kubernetes_completions(const json_t *job)
{
    enum { PODS_MAX = 100000 }; /* anybody's Job may have ACT's label, and any number */
    int64_t n = codec_json_int(json_object_get(job, "spec"), "completions", 1);

    return n < 0 ? 0 : n > PODS_MAX ? PODS_MAX : (int)n;
}

/* Returns the number, from 0 on, that is the text of an annotation. */
static int noted(const json_t *pod, const char *key)
{
    enum { MOST = 1 << 20 };
    const char *text = kubernetes_annotation(pod, key);
    int64_t n;

    return text && act_int_from_text(text, &n) && n > 0 && n < MOST ? (int)n : 0;
}

int kubernetes_lives_before(const json_t *pod)
{
    return noted(pod, KUBERNETES_FAILED) + noted(pod, KUBERNETES_IGNORED);
}

const char *kubernetes_phase(const json_t *pod)
{
    return codec_json_str(json_object_get(pod, "status"), "phase", "");
}

const char *kubernetes_node_of(const json_t *pod)
{
    return codec_json_str(json_object_get(pod, "spec"), "nodeName", "");
}

static const json_t *container_state(const json_t *container, const char *state)
{
    return json_object_get(json_object_get(container, "state"), state);
}

const json_t *kubernetes_container_state(const json_t *pod, const char *state)
{
    const json_t *list = json_object_get(json_object_get(pod, "status"), "containerStatuses");

    return container_state(codec_json_find(list, "name", KUBERNETES_MAIN), state);
}

const json_t *kubernetes_told_state(const json_t *pod, const char *state)
{
    static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};
    const json_t *status = json_object_get(pod, "status");
    size_t i;
    json_t *item;

    for (size_t l = 0; l < sizeof(lists) / sizeof(lists[0]); l++)
        json_array_foreach(json_object_get(status, lists[l]), i, item)
        {
            const json_t *found = container_state(item, state);
            if (found && *codec_json_str(found, "reason", ""))
                return found;
        }
    return NULL;
}

char *kubernetes_pod_state(const json_t *pod)
{
    const json_t *waiting = kubernetes_told_state(pod, "waiting"),
                 *unscheduled = kubernetes_any_condition(pod, "PodScheduled");
    const char *why = waiting                                           ? codec_json_str(waiting, "reason", "")
                      : unscheduled && !kubernetes_is_true(unscheduled) ? codec_json_str(unscheduled, "reason", "")
                                                                        : "";

    if (kubernetes_silent_since(pod))
        return act_strdup("Unreachable");
    if (kubernetes_is_going(pod))
        return act_strdup("Terminating");
    return strcmp(kubernetes_phase(pod), "Pending") == 0 && *why ? act_sprintf("Pending: %s", why)
                                                                 : act_strdup(kubernetes_phase(pod));
}

/* ---- the pods of a run ---- */

bool kubernetes_is_going(const json_t *object)
{
    return json_object_get(kubernetes_metadata(object), "deletionTimestamp") != NULL;
}

bool kubernetes_is_over(const json_t *pod)
{
    return strcmp(kubernetes_phase(pod), "Failed") == 0 || kubernetes_is_going(pod);
}

/* Resource versions are whole numbers of any length without leading zeros: the longer one is the larger one. */
static int compare_versions(const json_t *one, const json_t *other)
{
    const char *a = codec_json_str(kubernetes_metadata(one), "resourceVersion", "");
    const char *b = codec_json_str(kubernetes_metadata(other), "resourceVersion", "");
    size_t len_a = strlen(a), len_b = strlen(b);

    return len_a != len_b ? (len_a < len_b ? -1 : 1) : strcmp(a, b);
}

int kubernetes_compare_age(const json_t *one, const json_t *other)
{
    const char *a = codec_json_str(kubernetes_metadata(one), "creationTimestamp", "");
    const char *b = codec_json_str(kubernetes_metadata(other), "creationTimestamp", "");

    return strcmp(a, b) ?: compare_versions(one, other);
}

bool kubernetes_is_newer(const json_t *pod, const json_t *than)
{
    if (!than || kubernetes_is_over(pod) != kubernetes_is_over(than))
        return !than || kubernetes_is_over(than);
    return kubernetes_compare_age(pod, than) > 0;
}

const json_t **kubernetes_pods_of(const json_t *pods, int n)
{
    const json_t **newest = act_calloc((size_t)n + 1, sizeof(json_t *));
    size_t i;
    json_t *pod;

    json_array_foreach(pods, i, pod)
    {
        int index = kubernetes_index(pod);
        if (index >= 0 && index < n && kubernetes_is_newer(pod, newest[index]))
            newest[index] = pod;
    }
    return newest;
}
