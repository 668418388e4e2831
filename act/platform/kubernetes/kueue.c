/* kueue.c - what Kueue says of a Job that is in one of its queues, in the Workload that it makes for it.
 *
 * When it takes the quota of a Job away, the Job is suspended and all of its pods end. The Workload's condition Evicted
 * says why; once the Job is admitted again it is False, and its message begins with "Previously: ".
 *
 * Source: kueue.sigs.k8s.io/docs/concepts/workload/ (conditions); SetQuotaReservation() in pkg/workload of Kueue.
 */
#include <string.h>

#include "platform/kubernetes/kubernetes_internal.h"

int kubernetes_list_workloads(struct kubernetes *k, bool now, json_t **out, struct act_error *err)
{
    static const char what[] = "the workloads of Kueue";
    ACT_AUTOFREE char *path = kube_path(k->kube, "kueue.x-k8s.io/v1beta1", "workloads", NULL, NULL);

    return now ? kubernetes_items_now(k, path, what, out, err) : kubernetes_items(k, path, what, out, err);
}

const json_t *kubernetes_workload_of(const json_t *workloads, const char *job_uid)
{
    json_t *workload, *owner;
    size_t i, o;

    json_array_foreach(workloads, i, workload)
    {
        json_array_foreach(json_object_get(json_object_get(workload, "metadata"), "ownerReferences"), o, owner)
        {
            if (strcmp(codec_json_str(owner, "uid", "?"), job_uid) == 0)
                return workload;
        }
    }
    return NULL;
}

char *kubernetes_eviction(const json_t *workload)
{
    static const char previously[] = "Previously: ";
    const json_t *conditions = json_object_get(json_object_get(workload, "status"), "conditions");
    const json_t *evicted = codec_json_find(conditions, "type", "Evicted");
    const char *text = codec_json_str(evicted, "message", "");

    text += act_starts_with(text, previously) ? strlen(previously) : 0;
    text = *text ? text : codec_json_str(evicted, "reason", "it does not say why");
    return evicted ? act_one_line(text, strlen(text)) : NULL;
}
