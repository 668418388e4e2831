/* runs.c - what became of many runs, and which there are, in few requests: the Jobs; the pods of those whose Job does
 * not say it all; and, of few runs that wait, what the cluster says of them.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/units.h"
#include "platform/kubernetes/kubernetes_internal.h"

#define ALL_OF_ACT "labelSelector=app.kubernetes.io%2Fmanaged-by%3Dact"

enum {
    FEW = 20,            /* of so many runs every reason is asked for, */
    EVENTS_OF = 4,       /* and of so many that wait, each one's events by themselves */
    SELECTOR_MAX = 3000, /* characters: a longer query may be refused */
};

/* ---- lists ---- */

/* Lists objects of the namespace. *out is a new array. */
static int k8s_runs_list(struct kubernetes *k, const char *version, const char *plural, const char *query,
                         const char *what, json_t **out, struct act_error *err)
{
    struct kube *kube;
    int rc = kubernetes_kube(k, &kube, err);

    *out = NULL;
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *path = kube_path(kube, version, plural, NULL, query);
    return kubernetes_items(k, path, what, out, err);
}

/* Returns the query for the pods of a Job. New string. */
static char *k8s_runs_pods_of(const char *job)
{
    return act_sprintf("labelSelector=job-name%%3D%s", job);
}

int kubernetes_find_job(struct kubernetes *k, const char *id, json_t **out, struct act_error *err)
{
    ACT_AUTOFREE char *name = kubernetes_name(id);
    ACT_AUTOFREE char *what = act_sprintf("look at the Job '%s'", name);
    struct kube *kube;
    int rc = kubernetes_kube(k, &kube, err);

    *out = NULL;
    if (rc < 0)
        return rc;
    struct kube_call get = {.method = "GET",
                            .path = kube_path(kube, "batch/v1", "jobs", name, NULL),
                            .what = what,
                            .missing_is_fine = true};
    rc = kube_ask(kube, get, out, err);
    if (!act_streq(kubernetes_run_of(*out), id)) {
        json_decref(*out);
        *out = NULL;
    }
    return rc;
}

/* Asks anew each time where the user may get Jobs and not list them. */
int kubernetes_know_job(struct kubernetes *k, const char *id, json_t **out, struct act_error *err)
{
    ACT_AUTOFREE char *name = kubernetes_name(id);
    ACT_AUTOFREE char *query = act_sprintf("fieldSelector=metadata.name%%3D%s", name);
    CODEC_AUTOJSON json_t *jobs = NULL;

    if (!k->news)
        return kubernetes_find_job(k, id, out, err);
    int rc = k8s_runs_list(k, "batch/v1", "jobs", query, "the Job of the run", &jobs, err);
    *out = NULL;
    if (rc == -ACT_DENIED)
        return kubernetes_find_job(k, id, out, err);
    if (rc == 0 && act_streq(kubernetes_run_of(json_array_get(jobs, 0)), id))
        *out = json_incref(json_array_get(jobs, 0));
    return rc;
}

int kubernetes_find_pods(struct kubernetes *k, const char *name, json_t **out, struct act_error *err)
{
    ACT_AUTOFREE char *query = k8s_runs_pods_of(name);
    CODEC_AUTOJSON json_t *all = NULL;
    size_t i;
    json_t *pod;

    if (!kubernetes_watches(k, "v1", "pods", ALL_OF_ACT))
        return k8s_runs_list(k, "v1", "pods", query, "the pods of the run", out, err);
    int rc = k8s_runs_list(k, "v1", "pods", ALL_OF_ACT, "the pods", &all, err);
    *out = json_array();
    json_array_foreach(all, i, pod)
    {
        if (act_streq(kubernetes_label(pod, "job-name"), name))
            json_array_append(*out, pod);
    }
    return rc;
}

/* ---- what is known of each ---- */

struct views {
    struct kubernetes *k;
    size_t n;
    json_t **jobs; /* owned; NULL: the cluster does not have it */
    json_t *pods;  /* name of a Job -> array of its pods */
    json_t *events, *workloads;
};

static void release_views(struct views *v)
{
    for (size_t i = 0; i < v->n; i++)
        json_decref(v->jobs[i]);
    free(v->jobs);
    json_decref(v->pods);
    json_decref(v->events);
    json_decref(v->workloads);
}

static struct kubernetes_view view_of(const struct views *v, size_t i)
{
    const json_t *job = v->jobs[i];

    return (struct kubernetes_view){.job = job,
                                    .pods = job ? json_object_get(v->pods, kubernetes_name_of(job)) : NULL,
                                    .events = v->events,
                                    .workload = kubernetes_workload_of(v->workloads, kubernetes_uid_of(job)),
                                    .ahead_s = kube_ahead_s(v->k->kube)};
}

static void read_one(const struct views *v, size_t i, struct run_status *out)
{
    const struct kubernetes_view view = view_of(v, i);

    kubernetes_read_status(&view, out);
}

static int find_one_job(struct views *v, const char *id, struct act_error *err)
{
    return kubernetes_know_job(v->k, id, &v->jobs[0], err);
}

/* Returns the run that a Job is of; NULL: none. By its annotation alone any Job of the namespace could pass for it. */
static const char *run_of_job(const json_t *job)
{
    const char *id = kubernetes_run_of(job);

    if (!id || !run_name_valid(id))
        return NULL;
    ACT_AUTOFREE char *name = kubernetes_name(id);
    return strcmp(name, kubernetes_name_of(job)) == 0 ? id : NULL;
}

static int find_jobs(struct views *v, const char *const *ids, struct act_error *err)
{
    CODEC_AUTOJSON json_t *jobs = NULL, *places = json_object();
    size_t i;
    json_t *job;
    int rc = k8s_runs_list(v->k, "batch/v1", "jobs", ALL_OF_ACT, "the Jobs", &jobs, err);

    for (i = 0; i < v->n; i++)
        json_object_set_new(places, ids[i], json_integer((json_int_t)i));
    json_array_foreach(jobs, i, job)
    {
        const char *id = run_of_job(job);
        int64_t at = id ? codec_json_int(places, id, -1) : -1;
        if (at < 0)
            continue;
        json_decref(v->jobs[at]);
        v->jobs[at] = json_incref(job);
    }
    return rc;
}

static bool wants_pods(const struct views *v, size_t i)
{
    return v->jobs[i] && (v->n <= FEW || kubernetes_wants_pods(v->jobs[i]));
}

/* Tells whether a Job may be seen to have ended before its last pod is, as where both are watched: then its pods are
 * asked for. */
static bool may_be_ahead(const struct views *v, size_t i)
{
    const json_t *job = v->jobs[i];
    bool is_over = kubernetes_condition(job, "Complete") || kubernetes_condition(job, "Failed");

    return v->k->news && is_over && !json_object_get(v->k->caught_up, kubernetes_uid_of(job));
}

static void note_caught_up(struct views *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (wants_pods(v, i) && may_be_ahead(v, i))
            json_object_set_new(v->k->caught_up, kubernetes_uid_of(v->jobs[i]), json_true());
}

/* Returns a selector of the Jobs whose pods are wanted: those that may be ahead of them, or the others. Where it would
 * be too long, or would change as runs end while somebody watches, it is that of all runs. New string; NULL: nobody
 * wants any. */
static char *pods_wanted(const struct views *v, bool ahead)
{
    ACT_AUTO(act_buf) names = {0};
    const char *one = NULL;
    size_t n = 0;

    for (size_t i = 0; i < v->n; i++) {
        if (!wants_pods(v, i) || may_be_ahead(v, i) != ahead)
            continue;
        one = kubernetes_name_of(v->jobs[i]);
        act_buf_addf(&names, "%s%s", n++ ? "%2C" : "", one);
    }
    if (n == 0)
        return NULL;
    if (v->n == 1)
        return k8s_runs_pods_of(one);
    return names.len > SELECTOR_MAX || (v->k->news && !ahead)
               ? act_strdup(ALL_OF_ACT)
               : act_sprintf("labelSelector=job-name+in+%%28%s%%29", names.data);
}

/* Adds the pods of the Jobs that may be ahead, or of the others, from a list that may have those of all runs. */
static void add_pods(struct views *v, const json_t *pods, bool ahead)
{
    CODEC_AUTOJSON json_t *own = json_object();
    const char *name;
    json_t *list_of_job, *pod;
    size_t i;

    for (i = 0; i < v->n; i++)
        if (wants_pods(v, i) && may_be_ahead(v, i) == ahead) /* there may be none */
            json_object_set_new(own, kubernetes_name_of(v->jobs[i]), json_array());
    json_array_foreach(pods, i, pod)
    {
        name = kubernetes_label(pod, "job-name");
        if (name)
            json_array_append(json_object_get(own, name), pod);
    }
    json_object_foreach(own, name, list_of_job) json_object_set(v->pods, name, list_of_job);
}

static int find_pods(struct views *v, struct act_error *err)
{
    ACT_AUTOFREE char *query = pods_wanted(v, false), *ahead = pods_wanted(v, true);
    CODEC_AUTOJSON json_t *pods = NULL, *last = NULL;
    int rc = query ? k8s_runs_list(v->k, "v1", "pods", query, "the pods", &pods, err) : 0;

    if (rc == 0 && ahead) {
        ACT_AUTOFREE char *path = kube_path(v->k->kube, "v1", "pods", NULL, ahead);
        rc = kubernetes_items_now(v->k, path, "the pods", &last, err);
    }
    v->pods = json_object();
    if (rc < 0)
        return rc;
    add_pods(v, pods, false);
    add_pods(v, last, true);
    note_caught_up(v);
    return 0;
}

/* ---- what only the events and Kueue say; users without permission to read those are told less ---- */

/* Lists the uids of what the runs wait for. */
static void list_waiting(const struct views *v, struct act_strv *out)
{
    for (size_t i = 0; v->n <= FEW && i < v->n; i++) {
        const struct kubernetes_view view = view_of(v, i);
        struct run_status status;
        if (!view.job)
            continue;
        kubernetes_read_status(&view, &status);
        const json_t *object = kubernetes_wants_events(view.job, &status) ? kubernetes_waits_for(&view) : NULL;
        const char *uid = kubernetes_uid_of(object);
        if (*uid)
            act_strv_push(out, uid);
    }
}

static void add_events(struct views *v, const char *query)
{
    CODEC_AUTOJSON json_t *events = NULL;
    struct act_error ignored;

    if (k8s_runs_list(v->k, "v1", "events", query, "the events", &events, &ignored) == 0)
        json_array_extend(v->events, events);
}

/* Asks for the events of many at once: a server reads all those of a namespace for each question. */
static void find_events(struct views *v)
{
    ACT_AUTO(act_strv) uids = {0};

    list_waiting(v, &uids);
    v->events = json_array();
    if (uids.n > EVENTS_OF)
        add_events(v, NULL);
    for (size_t i = 0; uids.n <= EVENTS_OF && i < uids.n; i++) {
        ACT_AUTOFREE char *uid = http_encode(uids.v[i], false);
        ACT_AUTOFREE char *query = act_sprintf("fieldSelector=involvedObject.uid%%3D%s", uid);
        add_events(v, query);
    }
}

static void find_workloads(struct views *v)
{
    struct act_error ignored;
    bool wanted = false;

    for (size_t i = 0; v->n <= FEW && i < v->n; i++)
        wanted = wanted || (v->jobs[i] && kubernetes_wants_workload(v->jobs[i]));
    if (wanted && kubernetes_list_workloads(v->k, false, &v->workloads, &ignored) < 0)
        json_array_clear(v->workloads);
}

/* Finds out why the pod before was lost. One that was preempted while nobody looked is gone, but the event is there for
 * an hour. It is asked for once for each attempt: what is found is kept. Source:
 * kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/. */
static void find_loss(struct views *v, size_t i, const char *id, struct run_status *status)
{
    ACT_AUTOFREE char *key = act_sprintf("%s/%d", id, status->attempt);
    CODEC_AUTOJSON json_t *events = NULL;
    struct act_error ignored;

    if (v->n > FEW || status->state == RUN_UNKNOWN || status->attempt < 2 || *status->retry ||
        run_state_is_final(status->state) || act_strv_has(&v->k->losses, key))
        return;
    act_strv_push(&v->k->losses, key);
    if (k8s_runs_list(v->k, "v1", "events", "fieldSelector=involvedObject.kind%3DPod%2Creason%3DPreempted",
                      "list the events of preempted pods", &events, &ignored) < 0)
        return;
    ACT_AUTOFREE char *loss = kubernetes_loss_in_events(events, kubernetes_name_of(v->jobs[i]));
    snprintf(status->retry, sizeof(status->retry), "%.300s", loss ? loss : "");
}

/* Says that the run is gone by our own request. */
static void say_aborted(struct run_status *out)
{
    out->state = RUN_CANCELED;
    out->aborted = true;
    out->ended_unix_s = act_now_unix_s();
    snprintf(out->reason, sizeof(out->reason), "aborted");
}

int kubernetes_status(struct platform *p, const char *const *ids, size_t n, struct run_status *out,
                      struct act_error *err)
{
    struct views v = {.k = kubernetes_of(p), .n = n, .jobs = act_calloc(n + 1, sizeof(*v.jobs))};

    v.k->changed = false;
    kubernetes_drop_unused(v.k);
    int rc = n == 1 ? find_one_job(&v, ids[0], err) : find_jobs(&v, ids, err);
    if (rc == 0)
        rc = find_pods(&v, err);
    if (rc == 0)
        find_events(&v);
    if (rc == 0)
        find_workloads(&v);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        read_one(&v, i, &out[i]);
        find_loss(&v, i, ids[i], &out[i]);
        if (!v.jobs[i] && act_strv_has(&v.k->aborted, ids[i]))
            say_aborted(&out[i]);
    }
    release_views(&v);
    return rc;
}

/* ---- which runs there are ---- */

static int by_age(const void *a, const void *b)
{
    const struct platform_run *x = a, *y = b;

    return (x->created_unix_s < y->created_unix_s) - (x->created_unix_s > y->created_unix_s);
}

static void k8s_runs_add_run(const struct views *v, size_t i, const enum run_state *only, struct platform_runs *out)
{
    const json_t *job = v->jobs[i];
    const char *gpus = kubernetes_annotation(job, KUBERNETES_NUM_GPU);
    const char *cluster = kubernetes_annotation(job, KUBERNETES_CLUSTER);
    int64_t num_gpu = 0;
    struct run_status status;

    read_one(v, i, &status);
    int64_t created = kubernetes_time(json_object_get(job, "metadata"), "creationTimestamp");
    bool is_number = !gpus || (act_int_from_text(gpus, &num_gpu) && num_gpu >= 0 && num_gpu <= INT32_MAX);
    if ((only && status.state != *only) || !is_number)
        return;
    ACT_PUSH(out->v, out->n,
             (struct platform_run){.id = act_strdup(kubernetes_run_of(job)),
                                   .name = act_strdup(kubernetes_name_of(job)),
                                   .cluster = act_strdup(cluster ? cluster : ""),
                                   .title = act_strdup(kubernetes_annotation(job, KUBERNETES_TITLE)),
                                   .label = act_strdup(kubernetes_annotation(job, KUBERNETES_LABEL)),
                                   .tags = act_strdup(kubernetes_annotation(job, KUBERNETES_TAGS)),
                                   .created_unix_s = created ? created - kube_ahead_s(v->k->kube) : 0,
                                   .num_gpu = (int)num_gpu,
                                   .status = status,
                                   .is_partial = status.state == RUN_QUEUED && !status.reason[0]});
}

/* Finds the Jobs of all runs. */
static int k8s_runs_find_all(struct views *v, struct act_error *err)
{
    CODEC_AUTOJSON json_t *jobs = NULL;
    size_t i;
    json_t *job;
    int rc = k8s_runs_list(v->k, "batch/v1", "jobs", ALL_OF_ACT, "the Jobs", &jobs, err);

    v->jobs = act_calloc(json_array_size(jobs) + 1, sizeof(*v->jobs));
    json_array_foreach(jobs, i, job)
    {
        if (run_of_job(job))
            v->jobs[v->n++] = json_incref(job);
    }
    return rc;
}

static void forget_behind(struct platform_runs *runs, size_t max)
{
    struct platform_runs rest = {NULL, 0};

    for (; runs->n > max; runs->n--)
        ACT_PUSH(rest.v, rest.n, runs->v[runs->n - 1]);
    platform_runs_release(&rest);
}

int kubernetes_recent(struct platform *p, const enum run_state *only, size_t max, struct platform_runs *out,
                      struct act_error *err)
{
    struct views v = {.k = kubernetes_of(p)};
    int rc = k8s_runs_find_all(&v, err);

    if (rc == 0)
        rc = find_pods(&v, err);
    for (size_t i = 0; rc == 0 && i < v.n; i++)
        k8s_runs_add_run(&v, i, only, out);
    release_views(&v);
    if (out->n > 0)
        qsort(out->v, out->n, sizeof(*out->v), by_age);
    if (max > 0)
        forget_behind(out, max);
    return rc;
}

int kubernetes_list(struct platform *p, struct act_strv *out_ids, struct act_error *err)
{
    struct views v = {.k = kubernetes_of(p)};
    int rc = k8s_runs_find_all(&v, err);

    for (size_t i = 0; rc == 0 && i < v.n; i++)
        act_strv_push(out_ids, kubernetes_run_of(v.jobs[i]));
    release_views(&v);
    return rc;
}

/* ---- run.json, from its Secret ---- */

/* Returns a value of a Secret as JSON, a new reference; NULL: it is not there, or not JSON. */
static json_t *k8s_runs_value_of(const json_t *secret, const char *key)
{
    struct act_error ignored;
    size_t len = 0;
    const char *text = codec_json_str(json_object_get(secret, "data"), key, NULL);
    uint8_t *bytes = text ? act_base64_decode(text, &len) : NULL;
    json_t *json = NULL;

    if (bytes && codec_json_parse((char *)bytes, len, key, &json, &ignored) < 0)
        json = NULL;
    act_wipe_bytes(bytes, len);
    return json;
}

int kubernetes_spec(struct platform *p, const char *id, struct run_spec *out, struct act_error *err)
{
    struct kubernetes *k = kubernetes_of(p);
    ACT_AUTOFREE char *name = kubernetes_name(id);
    ACT_AUTOFREE char *what = act_sprintf("read the Secret '%s'", name);
    CODEC_AUTOJSON json_t *secret = NULL, *json = NULL, *secrets = NULL;
    struct kube *kube;
    int rc = kubernetes_kube(k, &kube, err);

    if (rc < 0)
        return rc;
    struct kube_call get = {
        .method = "GET", .path = kube_path(kube, "v1", "secrets", name, NULL), .what = what, .missing_is_fine = true};
    rc = kube_ask(kube, get, &secret, err);
    if (act_streq(kubernetes_run_of(secret), id)) {
        json = k8s_runs_value_of(secret, RUN_FILE_SPEC);
        secrets = k8s_runs_value_of(secret, RUN_FILE_SECRETS);
    }
    if (rc == 0 && !json)
        rc = kubernetes_no_run(k, id, err);
    if (rc == 0)
        rc = run_spec_from_json(json, out, err);
    if (rc == 0)
        run_secrets_from_json(out, secrets);
    return rc;
}
