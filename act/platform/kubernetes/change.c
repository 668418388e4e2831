/* change.c - runs that are there: ending, removing and scaling them. */
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "platform/kubernetes/kubernetes_internal.h"

/* ---- ending ---- */

int kubernetes_delete(struct kube *kube, const char *version, const char *plural, const json_t *object,
                      const char *policy, struct act_error *err)
{
    const char *name = kubernetes_name_of(object);
    ACT_AUTOFREE char *what = act_sprintf("delete '%s' of the %s", name, plural);
    json_t *options = json_pack("{s:s, s:s, s:s*, s:{s:s}}", "kind", "DeleteOptions", "apiVersion", "v1",
                                "propagationPolicy", policy, "preconditions", "uid", kubernetes_uid_of(object));
    struct kube_call call = {.method = "DELETE",
                             .path = kube_path(kube, version, plural, name, NULL),
                             .body = options,
                             .what = what,
                             .missing_is_fine = true};

    return kube_ask(kube, call, NULL, err);
}

int kubernetes_delete_job(struct kubernetes *k, const json_t *job, const char *policy, struct act_error *err)
{
    return kubernetes_delete(k->kube, "batch/v1", "jobs", job, policy, err);
}

int kubernetes_no_run(const struct kubernetes *k, const char *id, struct act_error *err)
{
    return act_error_set(err, ACT_NOT_FOUND, "there is no run '%s' in the namespace '%s'", id, kube_namespace(k->kube));
}

/* Warns of a node that does not answer: the Job goes when all of its pods have, and this node tells nobody of its
 * own. */
static void warn_of_silence(struct kubernetes *k, const json_t *job)
{
    CODEC_AUTOJSON json_t *pods = NULL;
    struct act_error ignored;
    int rc = kubernetes_find_pods(k, kubernetes_name_of(job), &pods, &ignored);
    ACT_AUTOFREE char *silent = rc == 0 ? kubernetes_silent_node(pods, true, kube_ahead_s(k->kube)) : NULL;

    if (silent)
        act_warn("%s", silent);
}

int kubernetes_abort(struct platform *p, const char *id, bool *out_was_final, struct act_error *err)
{
    struct kubernetes *k = kubernetes_of(p);
    CODEC_AUTOJSON json_t *job = NULL, *pods = NULL;
    struct run_status status;
    int rc = kubernetes_find_job(k, id, &job, err);

    *out_was_final = rc == 0 && !job && act_strv_has(&k->aborted, id);
    if (rc < 0 || *out_was_final)
        return rc;
    if (!job)
        return kubernetes_no_run(k, id, err);
    if (kubernetes_is_going(job))
        rc = kubernetes_find_pods(k, kubernetes_name_of(job), &pods, err); /* which say whether any still runs */
    if (rc < 0)
        return rc;
    kubernetes_read_status(&(struct kubernetes_view){.job = job, .pods = pods}, &status);
    *out_was_final = run_state_is_final(status.state);
    if (*out_was_final)
        return 0;
    rc = kubernetes_delete_job(k, job, "Foreground", err);
    if (rc == 0)
        act_strv_push(&k->aborted, id);
    if (rc == 0)
        warn_of_silence(k, job);
    return rc;
}

/* ---- scale ---- */

/* Source: kubernetes.io/docs/concepts/workloads/controllers/job/#elastic-indexed-jobs: both change together. */
static int patch_size(struct kubernetes *k, const json_t *job, int nodes, struct act_error *err)
{
    const char *gpus = kubernetes_annotation(job, KUBERNETES_NUM_GPU);
    int64_t now = codec_json_int(json_object_get(job, "spec"), "completions", 1), num_gpu, wanted;
    json_t *notes = json_object();

    if (gpus && act_int_from_text(gpus, &num_gpu) && num_gpu >= 0 && num_gpu <= INT32_MAX && now > 0) {
        wanted = num_gpu / now * nodes;
        ACT_AUTOFREE char *text = act_sprintf("%lld", (long long)wanted);
        json_object_set_new(notes, KUBERNETES_NUM_GPU, json_string(text));
    }
    ACT_AUTOFREE char *what = act_sprintf("change the size of the Job '%s'", kubernetes_name_of(job));
    struct kube_call patch = {.method = "PATCH",
                              .path = kube_path(k->kube, "batch/v1", "jobs", kubernetes_name_of(job), NULL),
                              .body = json_pack("{s:{s:o}, s:{s:i, s:i}}", "metadata", "annotations", notes, "spec",
                                                "completions", nodes, "parallelism", nodes),
                              .content_type = KUBERNETES_MERGE_PATCH,
                              .what = what};
    return kube_ask(k->kube, patch, NULL, err);
}

/* Warns that the pods that are too many take their logs along. */
static void warn_of_logs(const json_t *job, int nodes)
{
    const json_t *template = json_object_get(json_object_get(job, "spec"), "template");
    int now = kubernetes_completions(job);

    if (nodes < now && !kubernetes_annotation(template, KUBERNETES_SENDS))
        act_warn("the logs of the last %d of its %d pods go with them; of later runs they stay, if the code is in Blob "
                 "Storage ('code_path')",
                 now - nodes, now);
}

int kubernetes_scale(struct platform *p, const char *id, int nodes, bool dry_run, struct act_error *err)
{
    struct kubernetes *k = kubernetes_of(p);
    CODEC_AUTOJSON json_t *job = NULL;
    int rc = kubernetes_find_job(k, id, &job, err);

    if (rc == 0 && !job)
        rc = kubernetes_no_run(k, id, err);
    if (rc == 0 && kubernetes_label(job, KUBERNETES_QUEUE))
        rc = act_error_set(err, ACT_USAGE,
                           "it is in the queue '%s' of Kueue, which would end all its pods and queue it anew with the "
                           "other size; it has what the queue had room for, and 'a -n MIN:MAX resubmit' changes the "
                           "range",
                           kubernetes_label(job, KUBERNETES_QUEUE));
    if (rc == 0)
        warn_of_logs(job, nodes);
    return rc < 0 || dry_run ? rc : patch_size(k, job, nodes, err);
}

int kubernetes_remove(struct platform *p, const char *id, struct act_error *err)
{
    struct kubernetes *k = kubernetes_of(p);
    CODEC_AUTOJSON json_t *job = NULL;
    struct run_status status;
    int rc = kubernetes_find_job(k, id, &job, err);

    if (rc < 0 || !job)
        return rc;
    kubernetes_read_status(&(struct kubernetes_view){.job = job}, &status);
    if (!run_state_is_final(status.state))
        return act_error_set(err, ACT_USAGE, "cannot remove '%s': it has not ended", id);
    return kubernetes_delete_job(k, job, "Background", err);
}
