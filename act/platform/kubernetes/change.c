/* change.c - runs that are there: ending, removing and scaling them. */
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "platform/kubernetes/kubernetes_internal.h"

/* ---- ending ---- */

/* Makes the request that deletes an object of plural. The caller frees *out_what after it. */
static struct kube_call k8s_deletion(struct kube *kube, const char *version, const char *plural, const json_t *object,
                                     const char *policy, char **out_what)
{
    const char *name = kubernetes_name_of(object);
    json_t *options = json_pack("{s:s, s:s, s:s*, s:{s:s}}", "kind", "DeleteOptions", "apiVersion", "v1",
                                "propagationPolicy", policy, "preconditions", "uid", kubernetes_uid_of(object));

    *out_what = act_sprintf("delete '%s' of the %s", name, plural);
    return (struct kube_call){.method = "DELETE",
                              .path = kube_path(kube, version, plural, name, NULL),
                              .body = options,
                              .what = *out_what,
                              .missing_is_fine = true};
}

int kubernetes_delete(struct kube *kube, const char *version, const char *plural, const json_t *object,
                      const char *policy, struct act_error *err)
{
    ACT_AUTOFREE char *what = NULL;

    return kube_ask(kube, k8s_deletion(kube, version, plural, object, policy, &what), NULL, err);
}

int kubernetes_delete_job(struct kubernetes *k, const json_t *job, const char *policy, struct act_error *err)
{
    return kubernetes_delete(k->kube, "batch/v1", "jobs", job, policy, err);
}

int kubernetes_no_run(const struct kubernetes *k, const char *id, struct act_error *err)
{
    return act_error_set(err, ACT_NOT_FOUND, "there is no run '%s' in the namespace '%s'", id, kube_namespace(k->kube));
}

/* A run that is to end: what the cluster says of it, and what it is asked now. */
struct k8s_ending {
    struct platform_end *end;
    json_t *job, *pods; /* owned */
    char *what;
    struct kube_call call; /* {0}: nothing */
};

/* A step: asks about each run that goes on to it, and takes the response. */
struct ending_step {
    void (*ask)(struct kubernetes *k, struct k8s_ending *e);
    void (*take)(struct kubernetes *k, struct k8s_ending *e);
};

static void k8s_ending_fail(struct k8s_ending *e)
{
    e->end->rc = e->call.rc;
    e->end->err = e->call.error;
}

static void ending_ask_job(struct kubernetes *k, struct k8s_ending *e)
{
    ACT_AUTOFREE char *name = kubernetes_name(e->end->id);

    e->what = act_sprintf("look at the Job '%s'", name);
    e->call = (struct kube_call){.method = "GET",
                                 .path = kube_path(k->kube, "batch/v1", "jobs", name, NULL),
                                 .what = e->what,
                                 .missing_is_fine = true};
}

static void ending_take_job(struct kubernetes *k, struct k8s_ending *e)
{
    const char *id = e->end->id;

    if (e->call.rc < 0)
        k8s_ending_fail(e);
    else if (act_streq(kubernetes_run_of(e->call.response), id))
        e->job = json_incref(e->call.response);
    else if (act_strv_has(&k->aborted, id))
        e->end->was_final = true;
    else
        e->end->rc = kubernetes_no_run(k, id, &e->end->err);
}

static void ending_ask_pods(struct kubernetes *k, struct k8s_ending *e)
{
    ACT_AUTOFREE char *query = act_sprintf("labelSelector=job-name%%3D%s", kubernetes_name_of(e->job));

    e->what = act_strdup("list the pods of the run");
    e->call =
        (struct kube_call){.method = "GET", .path = kube_path(k->kube, "v1", "pods", NULL, query), .what = e->what};
}

/* Takes the pods. While a Job is being deleted they tell whether any still runs; else only the warning needs them. */
static void ending_take_pods(struct kubernetes *k, struct k8s_ending *e)
{
    bool is_going = kubernetes_is_going(e->job);
    struct run_status status;

    (void)k;
    e->pods = json_incref(json_object_get(e->call.response, "items"));
    if (e->call.rc < 0 && is_going) {
        k8s_ending_fail(e);
        return;
    }
    kubernetes_read_status(&(struct kubernetes_view){.job = e->job, .pods = is_going ? e->pods : NULL}, &status);
    e->end->was_final = run_state_is_final(status.state);
}

static void ending_ask_deletion(struct kubernetes *k, struct k8s_ending *e)
{
    e->call = k8s_deletion(k->kube, "batch/v1", "jobs", e->job, "Foreground", &e->what);
}

/* Warns of a node that does not answer: the Job goes when all of its pods have, and this node tells nobody of its
 * own. */
static void ending_take_deletion(struct kubernetes *k, struct k8s_ending *e)
{
    if (e->call.rc < 0) {
        k8s_ending_fail(e);
        return;
    }
    act_strv_push(&k->aborted, e->end->id);
    ACT_AUTOFREE char *silent = kubernetes_silent_node(e->pods, true, kube_ahead_s(k->kube));
    if (silent)
        act_warn("%s", silent);
}

/* Takes one step with all runs that are neither at their end nor in error, at once. */
static void endings_go_on(struct kubernetes *k, struct k8s_ending *v, size_t n, const struct ending_step *step)
{
    ACT_AUTOFREE struct kube_call **calls = act_calloc(n, sizeof(*calls));
    size_t n_calls = 0;

    for (size_t i = 0; i < n; i++)
        if (v[i].end->rc == 0 && !v[i].end->was_final) {
            step->ask(k, &v[i]);
            calls[n_calls++] = &v[i].call;
        }
    kube_do_all(k->kube, calls, n_calls);
    for (size_t i = 0; i < n; i++) {
        if (v[i].call.path)
            step->take(k, &v[i]);
        kube_call_release(&v[i].call);
        free(v[i].what);
        v[i].what = NULL;
    }
}

void kubernetes_abort(struct platform *p, struct platform_end *ends, size_t n)
{
    static const struct ending_step steps[] = {{ending_ask_job, ending_take_job},
                                               {ending_ask_pods, ending_take_pods},
                                               {ending_ask_deletion, ending_take_deletion}};
    struct kubernetes *k = kubernetes_of(p);
    ACT_AUTOFREE struct k8s_ending *v = act_calloc(n, sizeof(*v));
    struct kube *kube;

    for (size_t i = 0; i < n; i++) {
        v[i].end = &ends[i];
        ends[i].rc = kubernetes_kube(k, &kube, &ends[i].err);
    }
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        endings_go_on(k, v, n, &steps[i]);
    for (size_t i = 0; i < n; i++) {
        json_decref(v[i].job);
        json_decref(v[i].pods);
    }
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
