/* job.c - from a run to the objects that it consists of. Pure: nothing here asks the cluster.
 *
 * Source: kubernetes.io/docs/concepts/workloads/controllers/job/ (Indexed completion, pod failure policy, suspend);
 * .../concepts/configuration/secret/ (1 MiB, immutable); .../reference/kubernetes-api/workload-resources/pod-v1/;
 * kueue.sigs.k8s.io/docs/tasks/run/jobs/.
 */
#include <ctype.h>
#include <string.h>

#include "base/hash.h"
#include "base/units.h"
#include "config/config.h"
#include "platform/kubernetes/kubernetes_internal.h"

#define NODE    KUBERNETES_NODE
#define SECRET  "/run/act/secret"
#define PROGRAM "/run/act/program"
#define CLIENT  "/run/act/client"

enum {
    RETRIES = 6,        /* of each pod that lost its group, which takes half a day; what ends a run does so at once */
    GRACE_MORE_S = 20,  /* for the agent, after its processes had theirs */
    GRACE_SEND_S = 300, /* and to send what has to outlive the pod */
    TITLE_MAX = 1024,
    LABEL_MAX = 63,
    HASH_SHOWN = 12,
};

/* ---- names ---- */

/* Returns the experiment of a run id, as far as it is fit for a name, in at most max characters. New string. */
static char *name_of_experiment(const char *id, size_t len, size_t max)
{
    struct act_buf out = {0};

    for (size_t i = 0; i < len && out.len < max; i++) {
        char c = (char)tolower((unsigned char)id[i]);
        bool fits = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (out.len == 0 && c >= '0' && c <= '9')
            act_buf_addc(&out, 'r');
        if (fits || out.len > 0)
            act_buf_addc(&out, fits ? c : '-');
    }
    while (out.len > 0 && out.data[out.len - 1] == '-')
        out.data[--out.len] = '\0';
    if (out.len == 0)
        act_buf_adds(&out, "run");
    return act_buf_steal(&out);
}

char *kubernetes_name(const char *run_id)
{
    enum { EXPERIMENT_MAX = 20 };
    const char *hash = strrchr(run_id, '_'), *time = hash;

    while (time && time > run_id && *--time != '_')
        ;
    if (!time || time == run_id)
        return name_of_experiment(run_id, strlen(run_id), KUBERNETES_NAME_MAX);
    ACT_AUTOFREE char *experiment = name_of_experiment(run_id, (size_t)(time - run_id), EXPERIMENT_MAX);
    return act_sprintf("%s-%.*s-%s", experiment, (int)(hash - time - 1), time + 1, hash + 1);
}

static bool fits_label(const char *text)
{
    size_t n = strlen(text);

    return n > 0 && n <= LABEL_MAX && isalnum((unsigned char)text[0]) && isalnum((unsigned char)text[n - 1]) &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == n;
}

const char *kubernetes_run_of(const json_t *object)
{
    const char *id = kubernetes_annotation(object, KUBERNETES_RUN);

    return id ? id : kubernetes_label(object, KUBERNETES_RUN);
}

char *kubernetes_program_name(const char *hash)
{
    return act_sprintf("act-program-%.*s", HASH_SHOWN, hash);
}

/* ---- what all objects have ---- */

static json_t *labels_of(const struct run_spec *spec)
{
    json_t *labels = json_pack("{s:s}", KUBERNETES_MANAGED, "act");

    if (fits_label(spec->id))
        json_object_set_new(labels, KUBERNETES_RUN, json_string(spec->id));
    return labels;
}

static json_t *object_new(const char *version, const char *kind, const struct kubernetes_run *run, const char *name,
                          const char *uid)
{
    json_t *metadata = json_pack("{s:s, s:o, s:{s:s}}", "name", name, "labels", labels_of(run->spec), "annotations",
                                 KUBERNETES_RUN, run->spec->id);

    if (uid)
        json_object_set_new(metadata, "ownerReferences",
                            json_pack("[{s:s, s:s, s:s, s:s, s:b}]", "apiVersion", "batch/v1", "kind", "Job", "name",
                                      run->name, "uid", uid, "controller", 0));
    return json_pack("{s:s, s:s, s:o}", "apiVersion", version, "kind", kind, "metadata", metadata);
}

/* ---- the pod ---- */

const char *kubernetes_gpu_resource(const struct config *config)
{
    const char *name = k8s_keys(config)->gpu_resource;

    return name && strcmp(name, "none") != 0 ? name : NULL;
}

static bool k8s_job_is_given(const char *text)
{
    return text && *text;
}

/* Tells whether k8s.image counts, and not docker.image. */
static bool is_own_image(const struct config *config)
{
    bool other = config_is_said(config, "docker.image") && !config_is_said(config, "k8s.image");

    return k8s_job_is_given(k8s_keys(config)->image) && !other;
}

char **kubernetes_image_setting(struct config *config)
{
    return is_own_image(config) ? &k8s_keys(config)->image : &config->docker.image;
}

char *kubernetes_image(const struct config *config, const struct run_spec *spec)
{
    if (spec && k8s_job_is_given(spec->image))
        return act_strdup(spec->image);
    if (is_own_image(config))
        return act_strdup(k8s_keys(config)->image);
    return k8s_job_is_given(config->docker.image) ? config_docker_image(&config->docker) : NULL;
}

/* Returns the command of the container. Whatever the shell says goes into the pod's log. New string. */
static char *k8s_job_script_of(const struct kubernetes_run *run)
{
    ACT_AUTOFREE char *client =
        run->client ? act_sprintf("cat " CLIENT "/act.gz.* | gzip -dc > " NODE "/act\n"
                                  "check " NODE "/act %s '%s-*'\n" NODE "/act --version >/dev/null || {\n"
                                  "  echo 'act: the program act, which moves files, does not run in this image'\n"
                                  "  exit %d\n"
                                  "}\n",
                                  run->client_sha256, run->client, KUBERNETES_NO_CLIENT)
                    : act_strdup("");

    return act_sprintf(
        "for program in gzip sha256sum; do\n"
        "  command -v $program >/dev/null && continue\n"
        "  echo \"act: the image has no $program, by which the agent is unpacked; add it to the image\"\n"
        "  exit %d\n"
        "done\n"
        "check() {\n"
        "  set -- \"$@\" $(sha256sum < $1)\n"
        "  [ \"$2\" = \"$4\" ] && chmod 700 $1 && return\n"
        "  echo \"act: the Secret '$3' does not hold the program that was submitted; who can delete it, "
        "should, and submit again\"\n"
        "  exit %d\n"
        "}\n"
        "gzip -dc " PROGRAM "/act-node.gz > " NODE "/act-node\n"
        "check " NODE "/act-node %s '%s'\n"
        "%sexec " NODE "/act-node pod --job %s --nodes %d --secret " SECRET " --work " NODE "\n",
        KUBERNETES_NO_GZIP, KUBERNETES_NOT_OURS, run->program_sha256, run->program, client, run->name,
        run->spec->nodes);
}

static json_t *resources_of(const struct kubernetes_run *run)
{
    const struct k8s_keys *c = k8s_keys(run->config);
    const struct {
        const char *name, *value;
    } both[] = {{"cpu", c->cpu}, {"memory", c->memory}};
    const char *gpu = kubernetes_gpu_resource(run->config);
    json_t *limits = json_object(), *requests = json_object();

    for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++) {
        if (!both[i].value)
            continue;
        json_object_set_new(limits, both[i].name, json_string(both[i].value));
        json_object_set_new(requests, both[i].name, json_string(both[i].value));
    }
    if (gpu && run->spec->gpus_per_node > 0) {
        ACT_AUTOFREE char *number = act_sprintf("%d", run->spec->gpus_per_node);
        json_object_set_new(limits, gpu, json_string(number));
    }
    return json_pack("{s:o, s:o}", "limits", limits, "requests", requests);
}

/* Adds the Secrets "<base>-<i>" to the sources of a projected volume. */
static void add_sources(const char *base, size_t n, json_t *sources)
{
    for (size_t i = 0; i < n; i++) {
        ACT_AUTOFREE char *name = act_sprintf("%s-%zu", base, i);
        json_array_append_new(sources, json_pack("{s:{s:s}}", "secret", "name", name));
    }
}

/* Returns a volume of the run's own Secret and of those with the parts of its package. */
static json_t *run_volume(const struct kubernetes_run *run)
{
    ACT_AUTOFREE char *parts = act_sprintf("%s-package", run->name);
    json_t *sources = json_pack("[{s:{s:s}}]", "secret", "name", run->name);

    add_sources(parts, run->parts, sources);
    return json_pack("{s:s, s:{s:o}}", "name", "act-run", "projected", "sources", sources);
}

static json_t *client_volume(const struct kubernetes_run *run)
{
    json_t *sources = json_array();

    add_sources(run->client, run->client_parts, sources);
    return json_pack("{s:s, s:{s:o}}", "name", "act-client", "projected", "sources", sources);
}

static void k8s_job_add_mount(json_t *volumes, json_t *mounts, json_t *volume, const char *path, bool read_only)
{
    json_t *mount = json_pack("{s:s, s:s}", "name", codec_json_str(volume, "name", ""), "mountPath", path);

    if (read_only)
        json_object_set_new(mount, "readOnly", json_true());
    json_array_append_new(volumes, volume);
    json_array_append_new(mounts, mount);
}

/* Mounts /dev/shm of the size that the job file, or the configuration, gives. */
static void add_shm(const struct kubernetes_run *run, json_t *volumes, json_t *mounts)
{
    const char *size = k8s_keys(run->config)->shm_size;

    if (size)
        k8s_job_add_mount(
            volumes, mounts,
            json_pack("{s:s, s:{s:s, s:s}}", "name", "act-shm", "emptyDir", "medium", "Memory", "sizeLimit", size),
            "/dev/shm", false);
}

static void add_own_volumes(const struct kubernetes_run *run, json_t *volumes, json_t *mounts)
{
    k8s_job_add_mount(volumes, mounts,
                      json_pack("{s:s, s:{s:s}}", "name", "act-program", "secret", "secretName", run->program), PROGRAM,
                      true);
    k8s_job_add_mount(volumes, mounts, run_volume(run), SECRET, true);
    if (run->client)
        k8s_job_add_mount(volumes, mounts, client_volume(run), CLIENT, true);
    k8s_job_add_mount(volumes, mounts, json_pack("{s:s, s:{}}", "name", "act-node", "emptyDir"), NODE, false);
    add_shm(run, volumes, mounts);
}

static int64_t grace_of(const struct kubernetes_run *run)
{
    int64_t sending_s = run->client ? GRACE_SEND_S : 0;

    return run_abort_grace_s(run_spec_variable(run->spec, "ACT_ABORT_GRACE")) + GRACE_MORE_S + sending_s;
}

/* Returns a variable with the value of an annotation of the pod itself. */
static json_t *variable_of(const char *name, const char *annotation)
{
    ACT_AUTOFREE char *path = act_sprintf("metadata.annotations['%s']", annotation);

    return json_pack("{s:s, s:{s:{s:s}}}", "name", name, "valueFrom", "fieldRef", "fieldPath", path);
}

/* Adds the variables for the agent itself: those of the run, for how long a part of its pods is held, and how many pods
 * were there before it. */
static void k8s_job_add_env(const struct kubernetes_run *run, json_t *container)
{
    const struct run_spec *spec = run->spec;
    const char *gang_wait = k8s_keys(run->config)->gang_wait;
    int64_t seconds;
    static const char *const names[] = {"ACT_ABORT_GRACE", "ACT_POD_PATIENCE", "ACT_POD_SETTLE"};
    json_t *env = json_array();

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (run_spec_variable(spec, names[i]))
            json_array_append_new(
                env, json_pack("{s:s, s:s}", "name", names[i], "value", run_spec_variable(spec, names[i])));
    if (spec->nodes > 1 && gang_wait && act_duration_from_text(gang_wait, &seconds)) {
        ACT_AUTOFREE char *text = act_sprintf("%lld", (long long)seconds);
        json_array_append_new(env, json_pack("{s:s, s:s}", "name", "ACT_POD_GANG_WAIT", "value", text));
    }
    json_array_append_new(env, variable_of("ACT_POD_FAILED", KUBERNETES_FAILED));
    json_array_append_new(env, variable_of("ACT_POD_IGNORED", KUBERNETES_IGNORED));
    json_object_set_new(container, "env", env);
}

static bool has_login(const struct config_docker *docker)
{
    return docker->username && docker->password;
}

/* Returns a map of texts: values of node labels are texts, whatever YAML takes them for. */
static json_t *texts_of(json_t *map)
{
    json_t *out = json_object();
    const char *key;
    json_t *value;

    json_object_foreach(map, key, value)
    {
        ACT_AUTOFREE char *text = json_is_string(value) ? act_strdup(json_string_value(value)) : codec_json_line(value);
        json_object_set_new(out, key, json_string(text));
    }
    return out;
}

static void add_scheduling(const struct kubernetes_run *run, json_t *pod)
{
    const struct k8s_keys *c = k8s_keys(run->config);

    if (c->node_selector)
        json_object_set_new(pod, "nodeSelector", texts_of(c->node_selector));
    if (c->tolerations)
        json_object_set_new(pod, "tolerations", json_deep_copy(c->tolerations));
    if (c->priority_class)
        json_object_set_new(pod, "priorityClassName", json_string(c->priority_class));
    if (c->service_account)
        json_object_set_new(pod, "serviceAccountName", json_string(c->service_account));
    if (has_login(&run->config->docker)) {
        ACT_AUTOFREE char *name = act_sprintf("%s-registry", run->name);
        json_object_set_new(pod, "imagePullSecrets", json_pack("[{s:s}]", "name", name));
    }
}

static json_t *k8s_job_pod_of(const struct kubernetes_run *run)
{
    ACT_AUTOFREE char *script = k8s_job_script_of(run);
    ACT_AUTOFREE char *image = kubernetes_image(run->config, run->spec);
    json_t *volumes = json_array(), *mounts = json_array();

    add_own_volumes(run, volumes, mounts);
    kubernetes_add_volumes(run, volumes, mounts);
    json_t *main = json_pack("{s:s, s:s, s:[s, s, s], s:o, s:o, s:s}", "name", KUBERNETES_MAIN, "image", image,
                             "command", "/bin/sh", "-c", script, "resources", resources_of(run), "volumeMounts", mounts,
                             "terminationMessagePolicy", "FallbackToLogsOnError");
    k8s_job_add_env(run, main);
    json_t *pod = json_pack("{s:s, s:s, s:I, s:b, s:[o], s:o}", "restartPolicy", "Never", "subdomain", run->name,
                            "terminationGracePeriodSeconds", (json_int_t)grace_of(run), "enableServiceLinks", 0,
                            "containers", main, "volumes", volumes);
    add_scheduling(run, pod);
    return pod;
}

/* ---- the Job ---- */

/* Returns the rules by which a pod that ends ends the run, unless it lost its group, or the cluster took it away. */
static json_t *failure_policy(void)
{
    return json_pack("{s:[{s:s, s:[{s:s, s:s}]}, {s:s, s:{s:s, s:s, s:[i]}}]}", "rules", "action", "Ignore",
                     "onPodConditions", "type", "DisruptionTarget", "status", "True", "action", "FailJob",
                     "onExitCodes", "containerName", KUBERNETES_MAIN, "operator", "NotIn", "values",
                     KUBERNETES_LOST_GROUP);
}

/* Returns the command for people: one line of TITLE_MAX bytes at most, cut between characters. New string. */
static char *k8s_job_title_of(const struct run_spec *spec)
{
    struct act_buf words = {0};

    for (size_t i = 0; i < spec->argv.n; i++)
        act_buf_addf(&words, "%s%s", i ? " " : "", spec->argv.v[i]);
    const char *text = spec->title ? spec->title : words.data ? words.data : "";
    size_t len = strlen(text), fits = 0, n;
    ACT_AUTOFREE char *line = act_one_line(text, len);
    for (len = strlen(line); fits < len && (n = act_utf8_char(line + fits, len - fits)) && fits + n <= TITLE_MAX;)
        fits += n;
    act_buf_release(&words);
    return act_strndup(line, fits);
}

static void add_notes(const struct kubernetes_run *run, json_t *job)
{
    const struct run_spec *spec = run->spec;
    json_t *notes = json_object_get(json_object_get(job, "metadata"), "annotations");
    ACT_AUTOFREE char *title = k8s_job_title_of(spec);
    ACT_AUTOFREE char *gpus = act_sprintf("%d", spec->nodes * spec->gpus_per_node);

    json_object_set_new(notes, KUBERNETES_TITLE, json_string(title));
    json_object_set_new(notes, KUBERNETES_USER, json_string(run->user));
    json_object_set_new(notes, KUBERNETES_CLUSTER, json_string(spec->cluster));
    json_object_set_new(notes, KUBERNETES_NUM_GPU, json_string(gpus));
    ACT_AUTOFREE char *tags = run_tags_line(spec->tags);
    if (spec->name)
        json_object_set_new(notes, KUBERNETES_LABEL, json_string(spec->name));
    if (tags)
        json_object_set_new(notes, KUBERNETES_TAGS, json_string(tags));
    if (run_spec_is_elastic(spec)) {
        ACT_AUTOFREE char *least = act_sprintf("%d", spec->min_nodes);
        ACT_AUTOFREE char *each = act_sprintf("%d", spec->gpus_per_node);
        json_object_set_new(notes, KUBERNETES_MIN_NODES, json_string(least));
        json_object_set_new(notes, KUBERNETES_PER_NODE, json_string(each));
    }
}

/* Puts the Job into its queue. An elastic run begins with what this has room for: Kueue then changes both numbers.
 * Source: kueue.sigs.k8s.io/docs/tasks/run/jobs/#partial-admission, .../docs/reference/labels-and-annotations/ */
static void add_queue(const struct kubernetes_run *run, json_t *job)
{
    json_t *metadata = json_object_get(job, "metadata"), *notes = json_object_get(metadata, "annotations");

    json_object_set_new(json_object_get(metadata, "labels"), KUBERNETES_QUEUE,
                        json_string(k8s_keys(run->config)->queue));
    if (!run_spec_is_elastic(run->spec) || run->spec->min_nodes == run->spec->max_nodes)
        return;
    json_object_set(notes, "kueue.x-k8s.io/job-min-parallelism", json_object_get(notes, KUBERNETES_MIN_NODES));
    json_object_set_new(notes, "kueue.x-k8s.io/job-completions-equal-parallelism", json_string("true"));
}

/* Returns a member of an object, and makes it if it is not there. */
static json_t *member(json_t *object, const char *key, json_t *(*make)(void))
{
    if (!json_object_get(object, key))
        json_object_set_new(object, key, make());
    return json_object_get(object, key);
}

/* Keeps a pod off nodes by their names, which the labels of their host names need not be. Each requirement takes one
 * value, and the terms are alternatives. Source:
 * kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#NodeSelectorTerm */
static void keep_off(json_t *pod, const struct act_strv *nodes)
{
    json_t *affinity = member(member(pod, "affinity", json_object), "nodeAffinity", json_object);
    json_t *required = member(affinity, "requiredDuringSchedulingIgnoredDuringExecution", json_object);
    json_t *terms = member(required, "nodeSelectorTerms", json_array), *term;
    size_t i;

    if (json_array_size(terms) == 0)
        json_array_append_new(terms, json_object());
    json_array_foreach(terms, i, term)
    {
        json_t *fields = member(term, "matchFields", json_array);
        for (size_t n = 0; n < nodes->n; n++)
            json_array_append_new(fields, json_pack("{s:s, s:s, s:[s]}", "key", "metadata.name", "operator", "NotIn",
                                                    "values", nodes->v[n]));
    }
}

static json_t *template_of(const struct kubernetes_run *run)
{
    json_t *template =
        json_pack("{s:{s:o, s:{s:s, s:s}}, s:o}", "metadata", "labels", labels_of(run->spec), "annotations",
                  KUBERNETES_RUN, run->spec->id, KUBERNETES_USER, run->user, "spec", k8s_job_pod_of(run));
    json_t *notes = json_object_get(json_object_get(template, "metadata"), "annotations");

    if (run->spec->logs_path)
        json_object_set_new(notes, KUBERNETES_SENDS, json_string("true"));
    if (k8s_keys(run->config)->queue)
        json_object_set_new(notes, KUBERNETES_QUEUED, json_string(k8s_keys(run->config)->queue));
    kubernetes_merge(template, k8s_keys(run->config)->pod);
    if (run->spec->avoid.n)
        keep_off(json_object_get(template, "spec"), &run->spec->avoid);
    return template;
}

json_t *kubernetes_job(const struct kubernetes_run *run, bool suspended)
{
    const struct k8s_keys *c = k8s_keys(run->config);
    json_t *job = object_new("batch/v1", "Job", run, run->name, NULL);
    json_t *spec = json_pack("{s:s, s:i, s:i, s:b, s:i, s:i, s:o, s:o}", "completionMode", "Indexed", "completions",
                             run->spec->nodes, "parallelism", run->spec->nodes, "suspend", suspended || c->queue,
                             "backoffLimit", RETRIES * run->spec->nodes, "ttlSecondsAfterFinished", KUBERNETES_KEPT_S,
                             "podFailurePolicy", failure_policy(), "template", template_of(run));

    /* As many as all may fail, so it ends nothing before that does. But it has the cluster tell each pod how many were
     * there before it, and keep the last one that failed until the next one is there (Kubernetes 1.29). */
    json_object_set_new(spec, "backoffLimitPerIndex", json_integer((json_int_t)RETRIES * run->spec->nodes));
    /* The first pod has the result, and there may never be as many as the run could use. */
    if (run_spec_is_elastic(run->spec))
        json_object_set_new(spec, "successPolicy", json_pack("{s:[{s:s}]}", "rules", "succeededIndexes", "0"));
    /* The last resort: at this deadline the Job's pods are deleted, with their logs. The agent ends the run before. */
    if (run->spec->limit_s)
        json_object_set_new(spec, "activeDeadlineSeconds", json_integer(run->spec->limit_s + KUBERNETES_KEPT_S));
    add_notes(run, job);
    if (c->queue)
        add_queue(run, job);
    json_object_set_new(job, "spec", spec);
    return job;
}

json_t *kubernetes_service(const struct kubernetes_run *run, const char *uid)
{
    json_t *service = object_new("v1", "Service", run, run->name, uid);

    json_object_set_new(service, "spec",
                        json_pack("{s:s, s:b, s:{s:s}}", "clusterIP", "None", "publishNotReadyAddresses", 1, "selector",
                                  "job-name", run->name));
    return service;
}

/* ---- Secrets ---- */

static void k8s_job_put(json_t *secret, const char *key, const void *bytes, size_t len)
{
    ACT_AUTOWIPE char *text = act_base64_encode(bytes, len);

    json_object_set_new(json_object_get(secret, "data"), key, json_string(text));
}

static json_t *secret_new(const struct kubernetes_run *run, const char *name, const char *uid)
{
    json_t *secret = object_new("v1", "Secret", run, name, uid);

    json_object_set_new(secret, "type", json_string("Opaque"));
    json_object_set_new(secret, "immutable", json_true());
    json_object_set_new(secret, "data", json_object());
    return secret;
}

json_t *kubernetes_secret(const struct kubernetes_run *run, const struct kubernetes_content *content, const char *uid)
{
    json_t *secret = secret_new(run, run->name, uid);

    k8s_job_put(secret, RUN_FILE_SPEC, content->spec, strlen(content->spec));
    k8s_job_put(secret, KUBERNETES_TOKEN, content->token, strlen(content->token));
    if (content->secrets)
        k8s_job_put(secret, RUN_FILE_SECRETS, content->secrets, strlen(content->secrets));
    if (content->stores)
        k8s_job_put(secret, RUN_FILE_STORES, content->stores, strlen(content->stores));
    if (content->package)
        k8s_job_put(secret, RUN_FILE_PACKAGE, content->package, content->package_len);
    return secret;
}

json_t *kubernetes_values_secret(const struct kubernetes_run *run, const char *name, const char *uid,
                                 const char *const *pairs)
{
    json_t *secret = secret_new(run, name, uid);

    for (; *pairs; pairs += 2)
        k8s_job_put(secret, pairs[0], pairs[1], strlen(pairs[1]));
    return secret;
}

json_t *kubernetes_package(const struct kubernetes_run *run, size_t part, const void *bytes, size_t len,
                           const char *uid)
{
    ACT_AUTOFREE char *name = act_sprintf("%s-package-%zu", run->name, part);
    ACT_AUTOFREE char *key = act_sprintf(RUN_FILE_PACKAGE ".%03zu", part);
    json_t *secret = secret_new(run, name, uid);

    k8s_job_put(secret, key, bytes, len);
    return secret;
}

json_t *kubernetes_registry(const struct kubernetes_run *run, const char *uid)
{
    const struct config_docker *docker = &run->config->docker;

    if (!has_login(docker))
        return NULL;
    ACT_AUTOFREE char *name = act_sprintf("%s-registry", run->name);
    ACT_AUTOFREE char *image = kubernetes_image(run->config, run->spec);
    ACT_AUTOFREE char *host =
        config_docker_registry(&(struct config_docker){.image = image, .address = docker->address});
    ACT_AUTOWIPE char *pair = act_sprintf("%s:%s", docker->username, docker->password);
    ACT_AUTOWIPE char *auth = act_base64_encode(pair, strlen(pair));
    CODEC_AUTOJSON json_t *login = json_pack("{s:{s:{s:s, s:s, s:s}}}", "auths", host, "username", docker->username,
                                             "password", docker->password, "auth", auth);
    ACT_AUTOWIPE char *text = codec_json_line(login);
    json_t *secret = secret_new(run, name, uid);

    json_object_set_new(secret, "type", json_string("kubernetes.io/dockerconfigjson"));
    k8s_job_put(secret, ".dockerconfigjson", text, strlen(text));
    return secret;
}

json_t *kubernetes_program(const char *name, const char *hash, const char *key, const void *gz, size_t len)
{
    ACT_AUTOFREE char *mark = act_sprintf("%.*s", HASH_SHOWN, hash);
    json_t *secret = json_pack("{s:s, s:s, s:{s:s, s:{s:s, s:s}}, s:s, s:b, s:{}}", "apiVersion", "v1", "kind",
                               "Secret", "metadata", "name", name, "labels", KUBERNETES_MANAGED, "act",
                               KUBERNETES_PROGRAM, mark, "type", "Opaque", "immutable", 1, "data");

    k8s_job_put(secret, key, gz, len);
    return secret;
}

int kubernetes_check_program(const json_t *secret, const char *hash, struct act_error *err)
{
    ACT_AUTOFREE char *mark = act_sprintf("%.*s", HASH_SHOWN, hash);

    if (act_streq(kubernetes_label(secret, KUBERNETES_MANAGED), "act") &&
        act_streq(kubernetes_label(secret, KUBERNETES_PROGRAM), mark))
        return 0;
    act_error_set(err, ACT_FAIL, "the namespace has a Secret '%s' that ACT has not made", kubernetes_name_of(secret));
    return act_error_hint(err, "find out who made it and why, and delete it: 'kubectl delete secret %s'",
                          kubernetes_name_of(secret));
}

void kubernetes_mask(json_t *secret)
{
    json_t *data = json_object_get(secret, "data"), *shown = json_object(), *value;
    const char *key;

    json_object_foreach(data, key, value)
    {
        size_t len;
        bool open = strcmp(key, RUN_FILE_SPEC) == 0;
        ACT_AUTOFREE char *text = open ? (char *)act_base64_decode(json_string_value(value), &len) : NULL;
        json_object_set_new(shown, key, text ? json_stringn(text, len) : json_string("***"));
    }
    json_object_del(secret, "data");
    json_object_set_new(secret, "stringData", shown);
}
