/* check.c - what is refused before anything is made: a namespace, a queue or a claim that is not there, a server that
 * is too old, more code than Secrets hold, more pods than there could ever be, and what a policy has against them.
 */
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "config/config.h"
#include "platform/kubernetes/kubernetes_internal.h"

/* ---- what cannot be a Job ---- */

/* Checks the size that a job file gives; that of a cluster file was checked when it was read. */
static int check_shm_size(const struct config *config, struct act_error *err)
{
    const char *size = k8s_keys(config)->shm_size;

    if (!size || act_quantity_from_text(size) > 0)
        return 0;
    return act_error_set(err, ACT_CONFIG, "the size of /dev/shm must be a quantity such as 16Gi, not '%s'", size);
}

/* Refuses a patch that would take the agent away: its pod would wait for ever. */
static int check_pod_patch(const struct config *config, struct act_error *err)
{
    json_t *spec = json_object_get(k8s_keys(config)->pod, "spec"), *value;
    const char *key;

    json_object_foreach(k8s_keys(config)->pod, key, value)
    {
        if (strcmp(key, "spec") != 0 && strcmp(key, "metadata") != 0)
            return act_error_set(err, ACT_CONFIG,
                                 "'k8s.pod' is merged into the pods' template, which has 'metadata' and 'spec', not "
                                 "'%s'; put it below 'spec'",
                                 key);
    }
    static const char *const lists[] = {"containers", "volumes"};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        value = json_object_get(spec, lists[i]);
        if (value && !kubernetes_has_names(value))
            return act_error_set(err, ACT_CONFIG,
                                 "'k8s.pod' would replace the %s of the pod: each of the list needs a 'name' (the "
                                 "container of a run is '" KUBERNETES_MAIN "')",
                                 lists[i]);
    }
    return 0;
}

int kubernetes_check_job(const struct config *config, const struct run_spec *spec, struct act_error *err)
{
    ACT_AUTOFREE char *image = kubernetes_image(config, spec);

    if (spec->argv.n == 0)
        return act_error_set(err, ACT_USAGE, "there is no command to run");
    if (!image)
        return act_error_set(err, ACT_CONFIG, "the platform 'k8s' needs 'k8s.image' or 'docker.image' in '%s'",
                             config->file ? config->file : config->cluster);
    int rc = check_shm_size(config, err);
    if (rc == 0)
        rc = check_pod_patch(config, err);
    return rc < 0 ? rc : kubernetes_check_folders(config, spec, err);
}

/* ---- the namespace ---- */

int kubernetes_no_namespace(const struct kubernetes *k, struct act_error *err)
{
    return act_error_set(err, ACT_CONFIG,
                         "there is no namespace '%s' in the cluster of '%s'; create it, or change 'k8s.namespace'",
                         kube_namespace(k->kube), k->config->cluster);
}

/* Returns -ACT_NOT_FOUND, with *said, if an object is not there. Who may not look finds out later. Takes the path. */
static int look_for(struct kubernetes *k, char *path, const char *what, struct act_error *said)
{
    ACT_AUTOFREE char *looking = act_sprintf("look for the %s", what);
    int rc = kube_ask(k->kube, (struct kube_call){.method = "GET", .path = path, .what = looking}, NULL, said);

    return rc == -ACT_NOT_FOUND ? rc : 0;
}

/* Whoever has the agent's Secret has a namespace. */
int kubernetes_check_namespace(struct kubernetes *k, struct act_error *err)
{
    struct act_error said;

    if (k->agent.is_there)
        return 0;
    char *path = kube_cluster_path("v1", "namespaces", kube_namespace(k->kube), NULL);
    return look_for(k, path, "namespace", &said) < 0 ? kubernetes_no_namespace(k, err) : 0;
}

/* ---- what the configuration names ---- */

/* Refuses a configuration whose key names an object that is not there. Takes the path. */
static int check_named(struct kubernetes *k, char *path, const char *what, const char *key, const char *name,
                       struct act_error *err)
{
    struct act_error said;
    int rc = look_for(k, path, what, &said);

    if (rc == 0)
        return 0;
    if (strcmp(said.service_code, "NoSuchApi") == 0)
        return act_error_set(err, ACT_CONFIG, "the cluster of '%s' does not know what '%s' is for: is Kueue installed?",
                             k->config->cluster, key);
    rc = kubernetes_check_namespace(k, err);
    return rc < 0
               ? rc
               : act_error_set(err, ACT_CONFIG, "there is no %s '%s' in the cluster of '%s'; create it, or change '%s'",
                               what, name, k->config->cluster, key);
}

static int k8s_check_names(struct kubernetes *k, struct act_error *err)
{
    const struct k8s_keys *c = k8s_keys(k->config);
    int rc = 0;

    if (c->priority_class)
        rc = check_named(k, kube_cluster_path("scheduling.k8s.io/v1", "priorityclasses", c->priority_class, NULL),
                         "priority class", "k8s.priority_class", c->priority_class, err);
    if (rc == 0 && c->queue)
        rc = check_named(k, kube_path(k->kube, "kueue.x-k8s.io/v1beta1", "localqueues", c->queue, NULL), "queue",
                         "k8s.queue", c->queue, err);
    if (rc == 0 && c->service_account)
        rc = check_named(k, kube_path(k->kube, "v1", "serviceaccounts", c->service_account, NULL), "service account",
                         "k8s.service_account", c->service_account, err);
    return rc;
}

/* Warns of a claim for one node only, where the run has several. Source: kubernetes.io/docs/concepts/storage/
 * persistent-volumes/#access-modes */
static void doubt_claim(const char *name, const json_t *claim, const struct run_spec *spec)
{
    const json_t *modes = json_object_get(json_object_get(claim, "spec"), "accessModes");
    const char *first = json_string_value(json_array_get(modes, 0));

    if (spec->nodes > 1 && json_array_size(modes) == 1 && first && act_starts_with(first, "ReadWriteOnce"))
        act_warn("the claim '%s' is for one node (%s), and the run has %d: pods on other nodes wait for it", name,
                 first, spec->nodes);
}

static int k8s_check_claim(struct kubernetes *k, const struct run_spec *spec, const struct run_folder *folder,
                           struct act_error *err)
{
    const char *name = kubernetes_claim_of(folder);
    ACT_AUTOFREE char *path = kube_path(k->kube, "v1", "persistentvolumeclaims", name, NULL);
    CODEC_AUTOJSON json_t *claim = NULL;
    struct act_error said;
    int rc = kube_get(k->kube, path, "look for the claim", &claim, &said);

    if (rc == 0)
        doubt_claim(name, claim, spec);
    if (rc != -ACT_NOT_FOUND)
        return 0;
    rc = kubernetes_check_namespace(k, err);
    return rc < 0 ? rc
                  : act_error_set(err, ACT_CONFIG,
                                  "the namespace '%s' has no PersistentVolumeClaim '%s', which the path of the folder "
                                  "'%s' names; 'kubectl get pvc' lists those it has",
                                  kube_namespace(k->kube), name, folder->name);
}

/* Who may not look at claims finds out when the pods wait. */
static int check_claims(struct kubernetes *k, const struct run_spec *spec, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < spec->n_folders; i++)
        if (kubernetes_claim_of(&spec->folders[i]) && kubernetes_first_of_claim(spec, i) == i)
            rc = k8s_check_claim(k, spec, &spec->folders[i], err);
    return rc;
}

int kubernetes_check_package(const struct run_spec *spec, struct act_error *err)
{
    char packed[ACT_UNIT_TEXT], most[ACT_UNIT_TEXT];

    if (spec->package_bytes <= KUBERNETES_PACKAGE_MAX || spec->logs_path)
        return 0;
    act_size_to_text((uint64_t)spec->package_bytes, packed);
    act_size_to_text(KUBERNETES_PACKAGE_MAX, most);
    return act_error_set(err, ACT_FAIL,
                         "the code has %s packed, but Secrets bring at most %s to the pods; leave out with .actignore "
                         "what the run does not need ('a init --dry-run' lists what is in it), or have the code in "
                         "Blob Storage ('code_path'), from where the pods fetch it",
                         packed, most);
}

/* ---- the server ---- */

int kubernetes_too_old(const struct run_spec *spec, int minor, struct act_error *err)
{
    if (minor < KUBERNETES_OLDEST)
        return act_error_set(err, ACT_FAIL,
                             "the server is older than Kubernetes 1.%d: it does not know Indexed Jobs that can be "
                             "suspended; ask for an upgrade of the cluster",
                             KUBERNETES_OLDEST);
    if (run_spec_is_elastic(spec) && minor < KUBERNETES_ELASTIC)
        return act_error_set(err, ACT_FAIL,
                             "the server is older than Kubernetes 1.%d: it does not know 'successPolicy', by which an "
                             "elastic run ends; use -n N for a fixed size",
                             KUBERNETES_ELASTIC);
    return 0;
}

/* Asks the server for its version. One that does not say it is judged by what it makes of the Job. */
static int k8s_check_version(struct kubernetes *k, const struct run_spec *spec, struct act_error *err)
{
    ACT_AUTOFREE char *name = NULL;
    struct act_error said;
    int minor;

    return kubernetes_version(k, &name, &minor, &said) < 0 ? 0 : kubernetes_too_old(spec, minor, err);
}

/* ---- all of it ---- */

/* Asks with the pods as they would be made. */
static int check_pods(struct kubernetes *k, const struct run_spec *spec, struct act_error *err)
{
    struct kubernetes_submission s;

    kubernetes_submission_init(&s, k, spec);
    CODEC_AUTOJSON json_t *job = kubernetes_job(&s.run, true);
    kubernetes_submission_release(&s);
    int rc = kubernetes_check_room(k, spec, job, err);
    return rc < 0 ? rc : kubernetes_check_admission(k, spec, job, err);
}

int kubernetes_check_settings(struct platform *p, const struct run_spec *spec, struct act_error *err)
{
    return kubernetes_check_job(kubernetes_of(p)->config, spec, err);
}

/* Leaves it to kubernetes_prepare() whether there is a namespace, as nothing is made or sent before that, unless the
 * run needs a store. */
int kubernetes_check(struct platform *p, const struct run_spec *spec, struct act_error *err)
{
    struct kubernetes *k = kubernetes_of(p);
    int rc = kubernetes_look_for_agent(k, err);

    if (rc == 0 && kubernetes_needs_client(spec))
        rc = kubernetes_check_namespace(k, err);
    if (rc == 0 && (!k->agent.is_there || run_spec_is_elastic(spec)))
        rc = k8s_check_version(k, spec, err);
    if (rc == 0)
        rc = k8s_check_names(k, err);
    if (rc == 0)
        rc = check_claims(k, spec, err);
    return rc < 0 ? rc : check_pods(k, spec, err);
}
