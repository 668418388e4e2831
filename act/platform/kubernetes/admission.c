/* admission.c - whether the cluster would let the pods of a run in. The Job controller makes the pods, so that what a
 * policy has against them comes after the Job, when nobody listens: Pod Security, LimitRanges, quotas that want limits,
 * webhooks. A server-side dry run of one pod says it before anything is made. What was let in is remembered for a
 * while, so that a run like the last one costs no request.
 *
 * Source: kubernetes.io/docs/reference/using-api/api-concepts/#dry-run; .../docs/concepts/security/
 * pod-security-admission/ (workloads are only warned of), .../docs/concepts/policy/limit-range/
 */
#include <string.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "platform/kubernetes/kubernetes_internal.h"

enum { HASH_SHOWN = 16, KEEP_S = 3600, KEPT_MOST = 100, MEMORY_MAX = 64 << 10 };

/* ---- the pod */

/* Returns the first pod as the Job controller would make it. A new reference. */
static json_t *k8s_admission_pod_of(const json_t *job)
{
    const json_t *template = json_object_get(json_object_get(job, "spec"), "template");
    ACT_AUTOFREE char *name = act_sprintf("%s-0-", kubernetes_name_of(job));
    json_t *pod = json_pack("{s:s, s:s, s:O, s:O}", "apiVersion", "v1", "kind", "Pod", "metadata",
                            json_object_get(template, "metadata"), "spec", json_object_get(template, "spec"));

    json_object_set_new(json_object_get(pod, "metadata"), "generateName", json_string(name));
    return pod;
}

/* Takes every such word out of a text. */
static void k8s_admission_take_out(char *text, const char *word)
{
    size_t n = strlen(word);

    for (char *at = text; n && (at = strstr(at, word));)
        memmove(at, at + n, strlen(at + n) + 1);
}

/* Hashes what makes two pods the same to a policy: all but whose they are. */
static void shape_of(const char *id, const json_t *job, json_t *pod, char out[ACT_SHA256_HEX])
{
    ACT_AUTOFREE char *text = codec_json_line(pod);
    struct act_sha256 hash;

    k8s_admission_take_out(text, id);
    k8s_admission_take_out(text, kubernetes_name_of(job));
    act_sha256_init(&hash);
    act_sha256_add(&hash, text, strlen(text));
    act_sha256_done(&hash, out);
    out[HASH_SHOWN] = '\0';
}

/* ---- what is remembered */

/* Returns the file <act_cache_dir()>/k8s-<hash of the namespace>.json: {"<shape>": Unix time}. New string. What cannot
 * be kept costs a request. */
static char *k8s_admission_memory_path(struct kube *kube)
{
    ACT_AUTOFREE char *dir = act_cache_dir();
    struct act_sha256 hash;
    char hex[ACT_SHA256_HEX];

    act_sha256_init(&hash);
    act_sha256_add(&hash, kube_server(kube), strlen(kube_server(kube)) + 1);
    act_sha256_add(&hash, kube_namespace(kube), strlen(kube_namespace(kube)));
    act_sha256_done(&hash, hex);
    return act_sprintf("%s/k8s-%.*s.json", dir, HASH_SHOWN, hex);
}

static bool k8s_admission_is_fresh(const json_t *memory, const char *shape)
{
    int64_t now = act_now_unix_s(), at = codec_json_int(memory, shape, 0);

    return at > 0 && at <= now && now - at < KEEP_S;
}

/* Reads what is fresh. A new reference. */
static json_t *k8s_admission_read_memory(const char *path)
{
    CODEC_AUTOJSON json_t *all = NULL;
    json_t *memory = json_object(), *at;
    const char *shape;
    struct act_error ignored;

    if (codec_json_read(path, MEMORY_MAX, &all, &ignored) < 0)
        return memory;
    json_object_foreach(all, shape, at)
    {
        if (k8s_admission_is_fresh(all, shape) && json_object_size(memory) < KEPT_MOST)
            json_object_set(memory, shape, at);
    }
    return memory;
}

/* ---- the question */

static int k8s_admission_refused(const struct kubernetes *k, const struct act_error *said, struct act_error *err)
{
    const char *text = strstr(act_error_text(said), "is forbidden: ");
    ACT_AUTOFREE char *why = kubernetes_refusal(text ? text + strlen("is forbidden: ") : act_error_text(said));

    return act_error_set(err, ACT_CONFIG, "the pods could not be made in the namespace '%s': %s",
                         kube_namespace(k->kube), why);
}

/* Asks whether the pod would be let in. *out_lasts: the same question has the same answer for a while. A quota that is
 * full now is no refusal; neither is that the user may not ask, which may change at any moment. What makes the pod
 * invalid is said of the Job, too. */
static int k8s_admission_ask(struct kubernetes *k, json_t *pod, bool *out_lasts, struct act_error *err)
{
    struct kube_call post = {.method = "POST",
                             .path = kube_path(k->kube, "v1", "pods", NULL, "dryRun=All&fieldValidation=Strict"),
                             .body = json_incref(pod),
                             .what = "ask whether the pods would be let in"};
    struct act_error said = {0};

    *out_lasts = kube_ask(k->kube, post, NULL, &said) == 0;
    if (act_streq(said.service_code, KUBE_NOT_ADMITTED))
        return k8s_admission_refused(k, &said, err);
    if (act_streq(said.service_code, KUBE_NO_WEBHOOK))
        act_warn("the run's pods have to wait: %s", act_error_text(&said));
    return 0;
}

int kubernetes_check_admission(struct kubernetes *k, const struct run_spec *spec, const json_t *job,
                               struct act_error *err)
{
    CODEC_AUTOJSON json_t *pod = k8s_admission_pod_of(job);
    ACT_AUTOFREE char *path = k8s_admission_memory_path(k->kube);
    CODEC_AUTOJSON json_t *memory = k8s_admission_read_memory(path);
    char shape[ACT_SHA256_HEX];
    bool lasts = false;

    shape_of(spec->id, job, pod, shape);
    if (k8s_admission_is_fresh(memory, shape))
        return 0;
    int rc = k8s_admission_ask(k, pod, &lasts, err);
    if (rc == 0 && lasts) {
        json_object_set_new(memory, shape, json_integer(act_now_unix_s()));
        platform_remember("kubernetes", path, memory);
    }
    return rc;
}
