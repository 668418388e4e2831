/* submit.c - a run becomes a suspended Job first, which holds nothing; then what its pods need, which the Job owns;
 * then the Job is let go. Whoever dies in between leaves a suspended Job, and submitting the same run again completes
 * it: an object that is there and ours is as good as one that was just made.
 *
 * Source: kubernetes.io/docs/reference/using-api/api-concepts/ (409 AlreadyExists, dropped fields, delete options);
 * .../docs/concepts/workloads/controllers/job/ (suspend).
 */
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "config/config.h"
#include "platform/kubernetes/kubernetes_internal.h"

static const char *plural_of(const json_t *object)
{
    const char *kind = codec_json_str(object, "kind", "");

    return strcmp(kind, "Job") == 0 ? "jobs" : strcmp(kind, "Secret") == 0 ? "secrets" : "services";
}

/* Refuses an object of this name that is not the run's. *out is the whole of it, or its metadata. */
static int look_whose(struct kubernetes_submission *s, const json_t *object, bool whole, json_t **out,
                      struct act_error *err)
{
    const char *kind = codec_json_str(object, "kind", ""), *name = kubernetes_name_of(object);
    ACT_AUTOFREE char *what = act_sprintf("look at the %s '%s'", kind, name);
    struct kube_call get = {
        .method = "GET",
        .path = kube_path(s->k->kube, codec_json_str(object, "apiVersion", ""), plural_of(object), name, NULL),
        .accept = whole ? NULL : KUBERNETES_METADATA_ONLY,
        .what = what};
    int rc = kube_ask(s->k->kube, get, out, err);

    if (rc == 0 && !act_streq(kubernetes_run_of(*out), s->run.spec->id))
        rc = act_error_set(err, ACT_FAIL, "the namespace has another %s of the name '%s', which is not this run's",
                           kind, name);
    return rc;
}

/* Creates an object. *out is what the server made of it; NULL: there is one of that name already. query says how its
 * fields are validated; NULL: the server drops what it does not know, as its users are used to. */
static int post(struct kubernetes_submission *s, json_t *object, const char *query, json_t **out, struct act_error *err)
{
    ACT_AUTOFREE char *what =
        act_sprintf("create the %s '%s'", codec_json_str(object, "kind", ""), kubernetes_name_of(object));
    struct kube_call call = {
        .method = "POST",
        .path = kube_path(s->k->kube, codec_json_str(object, "apiVersion", ""), plural_of(object), NULL, query),
        .body = json_incref(object),
        .what = what,
        .exists_is_fine = true};

    return kube_ask(s->k->kube, call, out, err);
}

/* Tells whether a key stands anywhere in a value. */
static bool k8s_submit_has_key(json_t *value, const char *wanted)
{
    const char *key;
    json_t *inner;
    size_t i;

    json_object_foreach((json_t *)value, key,
                        inner) if (strcmp(key, wanted) == 0 || k8s_submit_has_key(inner, wanted)) return true;
    json_array_foreach(value, i, inner) if (k8s_submit_has_key(inner, wanted)) return true;
    return false;
}

/* Returns the name of the first field that k8s.pod has and the server does not know: foo of 'unknown field
 * "spec.template.spec.foo"'. New string; NULL: they are fields of ours, which an older server does not have. */
static char *unknown_in_pod(json_t *pod, const char *text)
{
    static const char mark[] = "unknown field \"";

    for (const char *at = text; (at = strstr(at, mark));) {
        at += strlen(mark);
        ACT_AUTOFREE char *path = act_strndup(at, strcspn(at, "\""));
        const char *dot = strrchr(path, '.'), *name = dot ? dot + 1 : path;
        if (k8s_submit_has_key(pod, name))
            return act_strdup(name);
    }
    return NULL;
}

static int no_such_field(const struct kubernetes_submission *s, const char *name, struct act_error *err)
{
    ACT_AUTOFREE char *file = config_file_of(s->k->config, "k8s.pod");

    act_error_set(err, ACT_CONFIG,
                  "cannot create the Job '%s': the cluster knows no field '%s', which 'k8s.pod' in %s has", s->name,
                  name, file);
    return act_error_hint(err, "'kubectl explain pod.spec --recursive' lists those it knows");
}

/* Creates the Job with its fields validated: servers drop those that they do not know without an error, and of a typing
 * error in k8s.pod nobody would hear. Source:
 * kubernetes.io/docs/reference/using-api/api-concepts (field validation); servers before 1.25 ignore the query. */
static int post_strictly(struct kubernetes_submission *s, json_t *job, json_t **out, struct act_error *err)
{
    int rc = post(s, job, "fieldValidation=Strict", out, err);

    if (rc == 0 || err->http_status != 400 || !strstr(act_error_text(err), "strict decoding error"))
        return rc;
    ACT_AUTOFREE char *name = unknown_in_pod(k8s_keys(s->k->config)->pod, act_error_text(err));
    return name ? no_such_field(s, name, err) : post(s, job, "fieldValidation=Ignore", out, err);
}

/* Creates the Job, suspended. *out: what the server made of it. */
static int create_job(struct kubernetes_submission *s, json_t **out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *job = kubernetes_job(&s->run, true);
    int rc = post_strictly(s, job, out, err);
    bool made = *out != NULL;

    if (rc == 0 && !made)
        rc = look_whose(s, job, true, out, err);
    if (rc < 0)
        return rc;
    s->uid = act_strdup(kubernetes_uid_of(*out));
    s->may_undo = made || json_is_true(json_object_get(json_object_get(*out, "spec"), "suspend"));
    return 0;
}

/* Returns the value of a Secret that flow_run_stores() made, without what is signed anew each time. */
static json_t *stores_of(const char *base64)
{
    size_t len = 0;
    ACT_AUTOFREE char *text = (char *)act_base64_decode(base64, &len);
    json_t *stores = NULL, *store;
    const char *name;

    if (!text || codec_json_parse(text, len, RUN_FILE_STORES, &stores, NULL) < 0)
        return NULL;
    json_object_foreach(json_object_get(stores, "folders"), name, store) json_object_del(store, "sas_token");
    explicit_bzero(text, len);
    return stores;
}

/* Tells whether both tries mean the same. The token of the ranks' link is whichever came first. */
static bool is_same_value(const char *key, const char *ours, const char *theirs)
{
    if (strcmp(key, KUBERNETES_TOKEN) == 0)
        return *theirs != '\0';
    if (strcmp(key, RUN_FILE_STORES) != 0)
        return strcmp(ours, theirs) == 0;
    CODEC_AUTOJSON json_t *one = stores_of(ours), *other = stores_of(theirs);
    return one && other && json_equal(one, other);
}

static bool is_same_secret(const json_t *ours, const json_t *theirs)
{
    const json_t *has = json_object_get(theirs, "data");
    json_t *wanted = json_object_get(ours, "data"), *value;
    const char *key;

    if (json_object_size(has) != json_object_size(wanted))
        return false;
    json_object_foreach(wanted, key, value)
    {
        if (!is_same_value(key, json_string_value(value), codec_json_str(has, key, "")))
            return false;
    }
    return true;
}

/* Takes the object. One that is there may be what another try of this submission made, or somebody else who saw the
 * Job: a Secret must say what ours does, because it is what the pods run. */
static int create_other(struct kubernetes_submission *s, json_t *object, void *arg, struct act_error *err)
{
    CODEC_AUTOJSON json_t *owned = object, *there = NULL, *made = NULL;
    bool is_secret = strcmp(codec_json_str(object, "kind", ""), "Secret") == 0;
    int rc = post(s, owned, NULL, &made, err);

    (void)arg;
    if (rc < 0 || made)
        return rc;
    rc = look_whose(s, owned, is_secret, &there, err);
    if (rc < 0 || !is_secret || is_same_secret(owned, there))
        return rc;
    return act_error_set(
        err, ACT_FAIL,
        "there is a Secret '%s' already whose content differs from this run's; if nobody needs it, 'kubectl "
        "-n %s delete secret %s', and submit again",
        kubernetes_name_of(owned), kube_namespace(s->k->kube), kubernetes_name_of(owned));
}

/* Refuses a Job of which the server dropped, without a word, what the run needs or its user has written. */
static int check_kept(const struct kubernetes_submission *s, const json_t *job, struct act_error *err)
{
    const struct run_spec *run = s->run.spec;
    const json_t *spec = json_object_get(job, "spec");
    const char *dropped = kubernetes_dropped(k8s_keys(s->run.config)->pod, json_object_get(spec, "template"));

    if (!json_object_get(spec, "completionMode") || !json_object_get(spec, "suspend"))
        return kubernetes_too_old(run, KUBERNETES_OLDEST - 1, err);
    int rc = json_object_get(spec, "successPolicy") ? 0 : kubernetes_too_old(run, KUBERNETES_ELASTIC - 1, err);
    return rc == 0 && dropped ? no_such_field(s, dropped, err) : rc;
}

/* Lets the Job go. */
static int start_job(struct kubernetes_submission *s, const json_t *job, struct act_error *err)
{
    bool has_policy = json_object_get(json_object_get(job, "spec"), "podFailurePolicy") != NULL;
    bool queued = k8s_keys(s->run.config)->queue != NULL;
    json_t *change = json_object();
    ACT_AUTOFREE char *what = act_sprintf("start the Job '%s'", s->name);

    if (!queued)
        json_object_set_new(change, "suspend", json_false());
    if (!has_policy) {
        json_object_set_new(change, "backoffLimit", json_integer(0));
        act_warn("the server does not know podFailurePolicy (Kubernetes 1.26 does): losing a pod fails the run");
    }
    struct kube_call patch = {.method = "PATCH",
                              .path = kube_path(s->k->kube, "batch/v1", "jobs", s->name, NULL),
                              .body = json_pack("{s:o}", "spec", change),
                              .content_type = KUBERNETES_MERGE_PATCH,
                              .what = what};
    if (json_object_size(change))
        return kube_ask(s->k->kube, patch, NULL, err);
    kube_call_release(&patch);
    return 0;
}

/* Tells whether a request that failed may have been carried out. */
static bool may_be_done(int rc, const struct act_error *err)
{
    return (rc == -ACT_TEMPORARY || rc == -ACT_TIMEOUT) && strcmp(err->service_code, KUBE_NO_WEBHOOK) != 0;
}

/* Leaves nothing of what was refused; of what may have been done, the next attempt makes the rest. A Job that another
 * try has started stays. */
static void clean_up(struct kubernetes_submission *s, const json_t *job, bool *asked)
{
    struct act_error ignored;

    if (!*s->uid || !s->may_undo)
        return;
    if (kubernetes_delete_job(s->k, job, "Background", &ignored) == 0)
        *asked = false;
}

static int kubernetes_need_programs(struct platform *p, const struct run_spec *spec, struct act_error *err)
{
    struct kubernetes *k = kubernetes_of(p);
    int rc = kubernetes_look_for_agent(k, err);

    if (rc == 0 && kubernetes_needs_client(spec))
        rc = kubernetes_need_client(k, true, err);
    return rc < 0 ? rc : kubernetes_need_agent(k, err);
}

int kubernetes_prepare(struct platform *p, struct run_spec *spec, const char *package, struct act_error *err)
{
    (void)package;
    return kubernetes_need_programs(p, spec, err);
}

/* Whoever prunes the namespace takes the programs of other releases that no Job needs. Before ours was there, it could
 * not know of it: so what was seen long before is looked for again, and made again. */
static int keep_programs(struct kubernetes_submission *s, struct act_error *err)
{
    enum { LONG_MS = 5000 };
    struct kubernetes *k = s->k;

    if (act_now_monotonic_ms() - k->agent.seen_ms <= LONG_MS)
        return 0;
    k->agent.seen_ms = k->client.seen_ms = 0;
    return kubernetes_need_programs(&k->base, s->run.spec, err);
}

static int k8s_submit_make_run(struct kubernetes_submission *s, bool *asked, struct act_error *err)
{
    CODEC_AUTOJSON json_t *job = NULL;

    *asked = true;
    int rc = create_job(s, &job, err);
    if (rc < 0) {
        *asked = may_be_done(rc, err);
        return rc;
    }
    rc = check_kept(s, job, err);
    if (rc == 0)
        rc = kubernetes_each_object(s, create_other, NULL, err);
    if (rc == 0)
        rc = keep_programs(s, err);
    if (rc == 0)
        rc = start_job(s, job, err);
    if (rc < 0 && !may_be_done(rc, err))
        clean_up(s, job, asked);
    return rc;
}

int kubernetes_submit(struct platform *p, const struct platform_submission *submission, struct act_error *err)
{
    struct kubernetes *k = kubernetes_of(p);
    const struct run_spec *spec = submission->spec;
    struct kubernetes_submission s;
    int rc = kubernetes_check_job(k->config, spec, err);

    if (rc == 0)
        rc = kubernetes_check_package(spec, err);
    if (rc == 0)
        rc = kubernetes_need_programs(p, spec, err);
    if (rc < 0)
        return rc;
    kubernetes_submission_init(&s, k, spec);
    if (kubernetes_needs_client(spec))
        kubernetes_submission_use_client(&s, submission->stores);
    if (submission->package && !platform_nodes_fetch_package(&platform_kubernetes, spec))
        rc = act_file_read(submission->package, KUBERNETES_PACKAGE_MAX, &s.package, &s.package_len, err);
    kubernetes_submission_split(&s);
    if (rc == 0)
        rc = k8s_submit_make_run(&s, submission->asked, err);
    kubernetes_submission_release(&s);
    return rc < 0 ? act_error_prefix(err, "cannot submit '%s'", spec->id) : 0;
}
