/* submit.c - check, preview, submit, abort. A run becomes a suspended Job first, which holds nothing; then what its
 * pods need, which the Job owns; then the Job is let go. Whoever dies in between leaves a suspended Job, and submitting
 * the same run again completes it: an object that is there and ours is as good as one that was just made.
 *
 * Source: kubernetes.io/docs/reference/using-api/api-concepts/ (409 AlreadyExists, dropped fields, delete options);
 * .../docs/concepts/workloads/controllers/job/ (suspend).
 */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/units.h"
#include "base/user.h"
#include "platform/kubernetes/kubernetes_internal.h"
#include "proc/proc.h"

#define MERGE_PATCH "application/merge-patch+json"

enum {
    SECRET_MAX = 1 << 20,
    SECRET_ROOM = 900000, /* for a run's own Secret: what else is in it is small */
    AGENT_MAX = 64 << 20,
    TOKEN_BYTES = 32,
};

/* ---- the agent's Secret, shared by all runs of the namespace ---- */

static int hash_agent(char **out_path, char hash[ACT_SHA256_HEX], struct act_error *err)
{
    int rc = proc_find_sibling("act-node", out_path, err);

    return rc < 0 ? rc : act_sha256_file(*out_path, hash, err);
}

/* Whether it is there. Who may not look finds out by making it. Whoever may write Secrets could have made it, and could
 * make another one at any time: the pods check what they get of it. */
static int look_for_program(struct kubernetes *k, struct act_error *err)
{
    ACT_AUTOFREE char *agent = NULL;
    struct kube *kube;
    int rc = k->program ? 0 : hash_agent(&agent, k->program_sha256, err);

    if (rc < 0 || k->program)
        return rc;
    rc = kubernetes_kube(k, &kube, err);
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *name = kubernetes_program_name(k->program_sha256);
    struct kube_call get = {.method = "GET",
                            .path = kube_path(kube, "v1", "secrets", name, NULL),
                            .accept = KUBERNETES_METADATA_ONLY,
                            .what = "look for the agent's Secret",
                            .missing_is_fine = true};
    rc = kube_do(kube, &get, err);
    k->has_program = get.response != NULL;
    if (rc == 0 && get.response)
        rc = kubernetes_check_program(get.response, k->program_sha256, err);
    if (rc == -ACT_DENIED && get.status == 403) {
        rc = 0;
        k->has_program = kubernetes_is_name_taken(k, name);
    }
    if (rc == 0)
        k->program = act_strdup(name);
    kube_call_release(&get);
    return rc;
}

/* ---- the namespace ---- */

static int no_namespace(const struct kubernetes *k, struct act_error *err)
{
    return act_error_set(err, ACT_CONFIG,
                         "there is no namespace '%s' in the cluster of '%s'; create it, or change 'k8s.namespace'",
                         kube_namespace(k->kube), k->config->cluster);
}

/* What an object's absence says: -ACT_NOT_FOUND. Who may not look finds out later. Takes the path. */
static int look_for(struct kubernetes *k, char *path, const char *what, struct act_error *said)
{
    ACT_AUTOFREE char *looking = act_sprintf("look for the %s", what);
    struct kube_call get = {.method = "GET", .path = path, .what = looking};
    int rc = kube_do(k->kube, &get, said);

    kube_call_release(&get);
    return rc == -ACT_NOT_FOUND ? rc : 0;
}

/* Whoever has the agent's Secret has a namespace. */
static int check_namespace(struct kubernetes *k, struct act_error *err)
{
    struct act_error said;

    if (k->has_program)
        return 0;
    char *path = kube_cluster_path("v1", "namespaces", kube_namespace(k->kube), NULL);
    return look_for(k, path, "namespace", &said) < 0 ? no_namespace(k, err) : 0;
}

/* Where there is no namespace, the server says so when something is to be created there; of what is looked for, it says
 * that this is not there. */
static int k8s_submit_make_program(struct kubernetes *k, struct act_error *err)
{
    ACT_AUTOFREE char *agent = NULL, *bytes = NULL;
    char hash[ACT_SHA256_HEX];
    size_t len = 0, gz_len = 0;
    int rc = hash_agent(&agent, hash, err);

    if (rc == 0)
        rc = act_file_read(agent, AGENT_MAX, &bytes, &len, err);
    if (rc < 0)
        return rc;
    ACT_AUTOFREE void *gz = kubernetes_gzip(bytes, len, &gz_len);
    if (gz_len >= SECRET_MAX)
        return act_error_set(err, ACT_FAIL, "the agent '%s' has %zu bytes compressed, but a Secret holds %d", agent,
                             gz_len, SECRET_MAX);
    struct kube_call post = {.method = "POST",
                             .path = kube_path(k->kube, "v1", "secrets", NULL, NULL),
                             .body = kubernetes_program(k->program, hash, "act-node.gz", gz, gz_len),
                             .what = "create the agent's Secret",
                             .exists_is_fine = true};
    rc = kube_do(k->kube, &post, err);
    k->has_program = rc == 0;
    kube_call_release(&post);
    return rc == -ACT_NOT_FOUND && strcmp(err->service_code, "NoSuchApi") != 0 ? no_namespace(k, err) : rc;
}

/* ---- what is refused before anything is made ---- */

/* What the configuration names must be there. Takes the path. */
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
    rc = check_namespace(k, err);
    return rc < 0
               ? rc
               : act_error_set(err, ACT_CONFIG, "there is no %s '%s' in the cluster of '%s'; create it, or change '%s'",
                               what, name, k->config->cluster, key);
}

static int k8s_submit_check_names(struct kubernetes *k, struct act_error *err)
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

/* Volumes for one node only may be what the nodes of the run are to share. Source: kubernetes.io/docs/concepts/storage/
 * persistent-volumes/#access-modes */
static void doubt_claim(const char *name, const json_t *claim, const struct run_spec *spec)
{
    const json_t *modes = json_object_get(json_object_get(claim, "spec"), "accessModes");
    const char *first = json_string_value(json_array_get(modes, 0));

    if (spec->nodes > 1 && json_array_size(modes) == 1 && first && act_starts_with(first, "ReadWriteOnce"))
        act_warn("the claim '%s' is for one node (%s), and the run has %d: pods on other nodes wait for it", name,
                 first, spec->nodes);
}

static int k8s_submit_check_claim(struct kubernetes *k, const struct run_spec *spec, const struct run_folder *folder,
                                  struct act_error *err)
{
    const char *name = kubernetes_claim_of(folder);
    struct kube_call get = {.method = "GET",
                            .path = kube_path(k->kube, "v1", "persistentvolumeclaims", name, NULL),
                            .what = "look for the claim"};
    struct act_error said;
    int rc = kube_do(k->kube, &get, &said);

    if (rc == 0)
        doubt_claim(name, get.response, spec);
    kube_call_release(&get);
    if (rc != -ACT_NOT_FOUND)
        return 0;
    rc = check_namespace(k, err);
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
            rc = k8s_submit_check_claim(k, spec, &spec->folders[i], err);
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

/* Whether the pods move files, which act does for them. */
static bool needs_client(const struct run_spec *spec)
{
    for (size_t i = 0; i < spec->n_folders; i++)
        if (kubernetes_is_moved(&spec->folders[i]))
            return true;
    return spec->logs_path != NULL;
}

static int too_old(const struct run_spec *spec, int minor, struct act_error *err)
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

/* Before the first thing is made there; a server that does not say it is asked by the Job itself. */
static int k8s_submit_check_version(struct kubernetes *k, const struct run_spec *spec, struct act_error *err)
{
    ACT_AUTOFREE char *name = NULL;
    struct act_error said;
    int minor;

    return kubernetes_version(k, &name, &minor, &said) < 0 ? 0 : too_old(spec, minor, err);
}

/* ---- the objects of a run ---- */

struct submission {
    struct kubernetes *k;
    struct kubernetes_run run;
    char *name, *user, *spec_text, *secrets_text, *package;
    const char *stores; /* the caller's */
    size_t package_len;
    char token[2 * TOKEN_BYTES + 1];
    char *uid;     /* of the Job */
    bool may_undo; /* the Job was made by this try, or nothing runs of it yet */
};

static void k8s_submit_release(struct submission *s)
{
    free(s->name);
    free(s->user);
    free(s->spec_text);
    act_wipe(&s->secrets_text);
    free(s->package);
    explicit_bzero(s->token, sizeof(s->token));
    free(s->uid);
}

static void k8s_submit_describe(struct kubernetes *k, const struct run_spec *spec, struct submission *s)
{
    CODEC_AUTOJSON json_t *json = kubernetes_spec_json(spec), *secrets = run_secrets_to_json(spec);
    uint8_t random[TOKEN_BYTES];

    *s = (struct submission){.k = k, .name = kubernetes_name(spec->id), .user = act_user_name(getuid())};
    s->spec_text = codec_json_line(json);
    s->secrets_text = json_object_size(secrets) ? codec_json_line(secrets) : NULL;
    act_random(random, sizeof(random));
    act_hex(random, sizeof(random), s->token);
    s->run = (struct kubernetes_run){.config = k->config,
                                     .spec = spec,
                                     .name = s->name,
                                     .program = k->program,
                                     .program_sha256 = k->program_sha256,
                                     .client_sha256 = k->client_sha256,
                                     .user = s->user};
}

/* A package that does not fit into the run's own Secret is in parts. */
static void split_package(struct submission *s)
{
    size_t others =
        strlen(s->spec_text) + (s->secrets_text ? strlen(s->secrets_text) : 0) + (s->stores ? strlen(s->stores) : 0);

    if (s->package_len > KUBERNETES_PART || s->package_len + others > SECRET_ROOM)
        s->run.parts = (s->package_len + KUBERNETES_PART - 1) / KUBERNETES_PART;
}

/* Takes the object. */
typedef int submit_object(struct submission *s, json_t *object, void *arg, struct act_error *err);

static int each_part(struct submission *s, submit_object *each, void *arg, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < s->run.parts; i++) {
        size_t at = i * KUBERNETES_PART, left = s->package_len - at;
        size_t len = left < KUBERNETES_PART ? left : KUBERNETES_PART;
        rc = each(s, kubernetes_package(&s->run, i, s->package + at, len, s->uid), arg, err);
    }
    return rc;
}

static int each_folder(struct submission *s, submit_object *each, void *arg, struct act_error *err)
{
    const struct run_spec *spec = s->run.spec;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < spec->n_folders; i++) {
        const struct config_folder *row = config_folder_named(s->run.config, spec->folders[i].name);
        ACT_AUTO(config_account) account = {0};
        if (!row || !kubernetes_is_blob(&spec->folders[i]) || !kubernetes_is_mounted(&spec->folders[i]))
            continue;
        rc = config_account(s->run.config, row, &account, err);
        json_t *secret = rc == 0 ? kubernetes_folder_secret(&s->run, i, &account, s->uid, err) : NULL;
        rc = secret ? each(s, secret, arg, err) : -(int)err->code;
    }
    return rc;
}

/* Everything but the Job, in the order in which it is made. */
static int each_object(struct submission *s, submit_object *each, void *arg, struct act_error *err)
{
    const struct kubernetes_content content = {.spec = s->spec_text,
                                               .secrets = s->secrets_text,
                                               .stores = s->stores,
                                               .token = s->token,
                                               .package = s->run.parts ? NULL : s->package,
                                               .package_len = s->package_len};
    int rc = each_part(s, each, arg, err);

    if (rc == 0)
        rc = each_folder(s, each, arg, err);
    json_t *registry = rc == 0 ? kubernetes_registry(&s->run, s->uid) : NULL;
    if (registry)
        rc = each(s, registry, arg, err);
    if (rc == 0)
        rc = each(s, kubernetes_secret(&s->run, &content, s->uid), arg, err);
    return rc < 0 ? rc : each(s, kubernetes_service(&s->run, s->uid), arg, err);
}

/* ---- what is refused, at last ---- */

/* By the pods as they would be made. */
static int k8s_submit_check_room(struct kubernetes *k, const struct run_spec *spec, struct act_error *err)
{
    struct submission s;

    k8s_submit_describe(k, spec, &s);
    CODEC_AUTOJSON json_t *job = kubernetes_job(&s.run, true);
    k8s_submit_release(&s);
    return kubernetes_check_room(k, spec, job, err);
}

int kubernetes_check_settings(struct platform *p, const struct run_spec *spec, struct act_error *err)
{
    return kubernetes_check_job(kubernetes_of(p)->config, spec, err);
}

/* Whether there is a namespace is left to kubernetes_prepare(), as nothing is made or sent before, unless the run needs
 * a store. */
int kubernetes_check(struct platform *p, const struct run_spec *spec, struct act_error *err)
{
    struct kubernetes *k = kubernetes_of(p);
    int rc = look_for_program(k, err);

    if (rc == 0 && needs_client(spec))
        rc = check_namespace(k, err);
    if (rc == 0 && (!k->has_program || run_spec_is_elastic(spec)))
        rc = k8s_submit_check_version(k, spec, err);
    if (rc == 0)
        rc = k8s_submit_check_names(k, err);
    if (rc == 0)
        rc = check_claims(k, spec, err);
    if (rc == 0)
        rc = k8s_submit_check_room(k, spec, err);
    return rc < 0 ? rc : kubernetes_check_admission(k, spec, err);
}

/* ---- making them ---- */

static const char *plural_of(const json_t *object)
{
    const char *kind = codec_json_str(object, "kind", "");

    return strcmp(kind, "Job") == 0 ? "jobs" : strcmp(kind, "Secret") == 0 ? "secrets" : "services";
}

/* An object of that name is there: whether it is this run's. *out is the whole of it, or what there is to say of it. */
static int look_whose(struct submission *s, const json_t *object, bool whole, json_t **out, struct act_error *err)
{
    const char *kind = codec_json_str(object, "kind", ""), *name = kubernetes_name_of(object);
    ACT_AUTOFREE char *what = act_sprintf("look at the %s '%s'", kind, name);
    struct kube_call get = {
        .method = "GET",
        .path = kube_path(s->k->kube, codec_json_str(object, "apiVersion", ""), plural_of(object), name, NULL),
        .accept = whole ? NULL : KUBERNETES_METADATA_ONLY,
        .what = what};
    int rc = kube_do(s->k->kube, &get, err);

    if (rc == 0 && !act_streq(kubernetes_run_of(get.response), s->run.spec->id))
        rc = act_error_set(err, ACT_FAIL, "the namespace has another %s of the name '%s', which is not this run's",
                           kind, name);
    if (rc == 0)
        *out = json_incref(get.response);
    kube_call_release(&get);
    return rc;
}

/* *out: what the server made of it; NULL: there is one of that name, which exists_is_fine. query: how its fields are
 * validated; NULL: what the server does not know it drops, as its users are used to. *out_status may be NULL. */
static int post(struct submission *s, json_t *object, const char *query, int *out_status, json_t **out,
                struct act_error *err)
{
    ACT_AUTOFREE char *what =
        act_sprintf("create the %s '%s'", codec_json_str(object, "kind", ""), kubernetes_name_of(object));
    struct kube_call call = {
        .method = "POST",
        .path = kube_path(s->k->kube, codec_json_str(object, "apiVersion", ""), plural_of(object), NULL, query),
        .body = json_incref(object),
        .what = what,
        .exists_is_fine = true};
    int rc = kube_do(s->k->kube, &call, err);

    *out = rc == 0 && call.response ? json_incref(call.response) : NULL;
    if (out_status)
        *out_status = call.status;
    kube_call_release(&call);
    return rc;
}

/* Whether a key stands anywhere in a value. */
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

/* The name of the first field that k8s.pod has and the server does not know: foo of 'unknown field
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

static int no_such_field(const struct submission *s, const char *name, struct act_error *err)
{
    ACT_AUTOFREE char *file = config_file_of(s->k->config, "k8s.pod");

    act_error_set(err, ACT_CONFIG,
                  "cannot create the Job '%s': the cluster knows no field '%s', which 'k8s.pod' in %s has", s->name,
                  name, file);
    return act_error_hint(err, "'kubectl explain pod.spec --recursive' lists those it knows");
}

/* Servers drop fields that they do not know without an error: of a typing error in k8s.pod nobody would hear. Source:
 * kubernetes.io/docs/reference/using-api/api-concepts (field validation); servers before 1.25 ignore the query. */
static int post_strictly(struct submission *s, json_t *job, json_t **out, struct act_error *err)
{
    int status = 0;
    int rc = post(s, job, "fieldValidation=Strict", &status, out, err);

    if (rc == 0 || status != 400 || !strstr(act_error_text(err), "strict decoding error"))
        return rc;
    ACT_AUTOFREE char *name = unknown_in_pod(k8s_keys(s->k->config)->pod, act_error_text(err));
    return name ? no_such_field(s, name, err) : post(s, job, "fieldValidation=Ignore", NULL, out, err);
}

/* uid: of the one that is meant; policy: what becomes of what it owns. */
static int delete_object(struct kubernetes *k, const json_t *object, const char *uid, const char *policy,
                         struct act_error *err)
{
    const char *name = kubernetes_name_of(object);
    ACT_AUTOFREE char *what = act_sprintf("delete the %s '%s'", codec_json_str(object, "kind", ""), name);
    struct kube_call call = {
        .method = "DELETE",
        .path = kube_path(k->kube, codec_json_str(object, "apiVersion", ""), plural_of(object), name, NULL),
        .body = json_pack("{s:s, s:s, s:s, s:{s:s}}", "kind", "DeleteOptions", "apiVersion", "v1", "propagationPolicy",
                          policy, "preconditions", "uid", uid),
        .what = what,
        .missing_is_fine = true};
    int rc = kube_do(k->kube, &call, err);

    kube_call_release(&call);
    return rc;
}

static const char *k8s_submit_uid_of(const json_t *object)
{
    return codec_json_str(json_object_get(object, "metadata"), "uid", "");
}

/* *out: what the server made of it. */
static int create_job(struct submission *s, json_t **out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *job = kubernetes_job(&s->run, true);
    int rc = post_strictly(s, job, out, err);
    bool made = *out != NULL;

    if (rc == 0 && !made)
        rc = look_whose(s, job, true, out, err);
    if (rc < 0)
        return rc;
    s->uid = act_strdup(k8s_submit_uid_of(*out));
    s->may_undo = made || json_is_true(json_object_get(json_object_get(*out, "spec"), "suspend"));
    return 0;
}

/* The value of a Secret, which is what flow_run_stores() made, without what is signed anew each time. */
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

/* Whether both tries mean the same. The token of the ranks' link is whichever came first. */
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
static int create_other(struct submission *s, json_t *object, void *arg, struct act_error *err)
{
    CODEC_AUTOJSON json_t *owned = object, *there = NULL, *made = NULL;
    bool is_secret = strcmp(codec_json_str(object, "kind", ""), "Secret") == 0;
    int rc = post(s, owned, NULL, NULL, &made, err);

    (void)arg;
    if (rc < 0 || made)
        return rc;
    rc = look_whose(s, owned, is_secret, &there, err);
    if (rc < 0 || !is_secret || is_same_secret(owned, there))
        return rc;
    return act_error_set(err, ACT_FAIL,
                         "the Secret '%s' is there already and says something else than this run's would; 'kubectl -n "
                         "%s delete secret %s' if it is not needed, and submit again",
                         kubernetes_name_of(owned), kube_namespace(s->k->kube), kubernetes_name_of(owned));
}

/* What the run needs, or its user has written, and the server dropped without a word. */
static int check_kept(const struct submission *s, const json_t *job, struct act_error *err)
{
    const struct run_spec *run = s->run.spec;
    const json_t *spec = json_object_get(job, "spec");
    const char *dropped = kubernetes_dropped(k8s_keys(s->run.config)->pod, json_object_get(spec, "template"));

    if (!json_object_get(spec, "completionMode") || !json_object_get(spec, "suspend"))
        return too_old(run, KUBERNETES_OLDEST - 1, err);
    int rc = json_object_get(spec, "successPolicy") ? 0 : too_old(run, KUBERNETES_ELASTIC - 1, err);
    return rc == 0 && dropped ? no_such_field(s, dropped, err) : rc;
}

/* The Job may go. */
static int start_job(struct submission *s, const json_t *job, struct act_error *err)
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
                              .content_type = MERGE_PATCH,
                              .what = what};
    int rc = json_object_size(change) ? kube_do(s->k->kube, &patch, err) : 0;
    kube_call_release(&patch);
    return rc;
}

/* Whether a request that failed may have been carried out. */
static bool may_be_done(int rc, const struct act_error *err)
{
    return (rc == -ACT_TEMPORARY || rc == -ACT_TIMEOUT) && strcmp(err->service_code, KUBE_NO_WEBHOOK) != 0;
}

/* Nothing is left of what was refused; of what may have been done, the next attempt makes the rest. A Job that another
 * try has started stays. */
static void clean_up(struct submission *s, const json_t *job, bool *asked)
{
    struct act_error ignored;

    if (!*s->uid || !s->may_undo)
        return;
    if (delete_object(s->k, job, s->uid, "Background", &ignored) == 0)
        *asked = false;
}

static int k8s_submit_make_run(struct submission *s, bool *asked, struct act_error *err)
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
        rc = each_object(s, create_other, NULL, err);
    if (rc == 0)
        rc = start_job(s, job, err);
    if (rc < 0 && !may_be_done(rc, err))
        clean_up(s, job, asked);
    return rc;
}

static void use_client(struct submission *s, const char *stores)
{
    s->stores = stores;
    s->run.client = s->k->client;
    s->run.client_parts = s->k->client_parts;
}

int kubernetes_prepare(struct platform *p, const struct run_spec *spec, struct act_error *err)
{
    struct kubernetes *k = kubernetes_of(p);
    int rc = look_for_program(k, err);

    if (rc == 0 && needs_client(spec))
        rc = kubernetes_need_client(k, true, err);
    return rc < 0 || k->has_program ? rc : k8s_submit_make_program(k, err);
}

int kubernetes_submit(struct platform *p, const struct platform_submission *submission, struct act_error *err)
{
    struct kubernetes *k = kubernetes_of(p);
    const struct run_spec *spec = submission->spec;
    struct submission s;
    int rc = kubernetes_check_job(k->config, spec, err);

    if (rc == 0)
        rc = kubernetes_check_package(spec, err);
    if (rc == 0)
        rc = kubernetes_prepare(p, spec, err);
    if (rc < 0)
        return rc;
    k8s_submit_describe(k, spec, &s);
    if (needs_client(spec))
        use_client(&s, submission->stores);
    if (submission->package && !platform_nodes_fetch_package(&platform_kubernetes, spec))
        rc = act_file_read(submission->package, KUBERNETES_PACKAGE_MAX, &s.package, &s.package_len, err);
    split_package(&s);
    if (rc == 0)
        rc = k8s_submit_make_run(&s, submission->asked, err);
    k8s_submit_release(&s);
    return rc < 0 ? act_error_prefix(err, "cannot submit '%s'", spec->id) : 0;
}

/* ---- preview ---- */

static int k8s_submit_show(struct submission *s, json_t *object, void *arg, struct act_error *err)
{
    (void)s;
    (void)err;
    if (json_object_get(object, "data"))
        kubernetes_mask(object);
    json_array_append_new(arg, object);
    return 0;
}

int kubernetes_preview(struct platform *p, const struct run_spec *spec, json_t **out, struct act_error *err)
{
    struct kubernetes *k = kubernetes_of(p);
    json_t *items = json_array();
    struct submission s;
    int rc = check_namespace(k, err);

    k8s_submit_describe(k, spec, &s);
    if (rc == 0 && needs_client(spec)) {
        rc = kubernetes_need_client(k, false, err);
        use_client(&s, "");
    }
    if (spec->package_key && !platform_nodes_fetch_package(&platform_kubernetes, spec)) { /* its bytes are not shown */
        s.package_len = (size_t)spec->package_bytes;
        s.package = act_calloc(1, s.package_len);
    }
    split_package(&s);
    *out = json_pack("{s:s, s:s, s:o}", "apiVersion", "v1", "kind", "List", "items", items);
    json_array_append_new(items, kubernetes_job(&s.run, false));
    if (rc == 0)
        rc = each_object(&s, k8s_submit_show, items, err);
    k8s_submit_release(&s);
    if (rc < 0)
        json_decref(*out);
    return rc;
}

/* ---- abort ---- */

/* The Job goes when all of its pods have, of which a node that does not answer tells nobody. */
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
        return act_error_set(err, ACT_NOT_FOUND, "there is no run '%s' in the namespace '%s'", id,
                             kube_namespace(k->kube));
    if (json_object_get(json_object_get(job, "metadata"), "deletionTimestamp"))
        rc = kubernetes_find_pods(k, kubernetes_name_of(job), &pods, err); /* which say whether any still runs */
    if (rc < 0)
        return rc;
    kubernetes_read_status(&(struct kubernetes_view){.job = job, .pods = pods}, &status);
    *out_was_final = run_state_is_final(status.state);
    if (*out_was_final)
        return 0;
    rc = delete_object(k, job, k8s_submit_uid_of(job), "Foreground", err);
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
                              .content_type = MERGE_PATCH,
                              .what = what};
    int rc = kube_do(k->kube, &patch, err);
    kube_call_release(&patch);
    return rc;
}

/* The pods that are too many go with their logs. */
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
        rc = act_error_set(err, ACT_NOT_FOUND, "there is no run '%s' in the namespace '%s'", id,
                           kube_namespace(k->kube));
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
    return delete_object(k, job, k8s_submit_uid_of(job), "Background", err);
}
