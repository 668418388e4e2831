/* programs.c - the programs of other releases that the namespace has in Secrets which no run owns: the agent, and act
 * in parts. A run needs those that its Job mounts, as long as it has not ended; whoever submits next makes its own.
 *
 * Source: kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches
 */
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "platform/kubernetes/kubernetes_internal.h"
#include "proc/proc.h"

#define ALL_PROGRAMS     "labelSelector=app.kubernetes.io%2Fmanaged-by%3Dact%2Cact%2Fprogram"
#define JOBS_OF_ACT      "labelSelector=app.kubernetes.io%2Fmanaged-by%3Dact"
#define METADATA_OF_EACH "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=1,application/json"

/* ---- what is needed */

/* Adds the label of a program of this release, by the file beside this one. */
static int k8s_programs_add_own(const char *program, struct act_strv *out, struct act_error *err)
{
    enum { MARK = 12 };
    ACT_AUTOFREE char *file = NULL;
    char hash[ACT_SHA256_HEX];
    int rc = proc_find_sibling(program, &file, err);

    if (rc == 0)
        rc = act_sha256_file(file, hash, err);
    if (rc == 0)
        act_strv_pushf(out, "%.*s", MARK, hash);
    return rc;
}

static void add_secret(const json_t *source, const char *key, struct act_strv *out)
{
    const char *name = codec_json_str(json_object_get(source, "secret"), key, NULL);

    if (name)
        act_strv_push(out, name);
}

/* Adds the Secrets that the pods of a Job mount, unless it has ended. */
static int add_mounted(void *arg, const json_t *job, struct act_error *err)
{
    const json_t *pod = json_object_get(json_object_get(json_object_get(job, "spec"), "template"), "spec");
    const json_t *volume, *source;
    size_t i, s;

    (void)err;
    if (kubernetes_condition(job, "Complete") || kubernetes_condition(job, "Failed"))
        return 0;
    json_array_foreach(json_object_get(pod, "volumes"), i, volume)
    {
        add_secret(volume, "secretName", arg);
        json_array_foreach(json_object_get(json_object_get(volume, "projected"), "sources"), s, source)
        {
            add_secret(source, "name", arg);
        }
    }
    return 0;
}

struct needed {
    struct act_strv own;     /* labels */
    struct act_strv mounted; /* names */
};

static int find_needed(struct kube *kube, struct needed *out, struct act_error *err)
{
    ACT_AUTOFREE char *path = kube_path(kube, "batch/v1", "jobs", NULL, JOBS_OF_ACT);
    int rc = k8s_programs_add_own("act-node", &out->own, err);

    if (rc == 0)
        rc = k8s_programs_add_own("act", &out->own, err);
    return rc < 0 ? rc : kube_each(kube, path, "list the Jobs", add_mounted, &out->mounted, err);
}

/* ---- removing the others */

static bool k8s_programs_may_go(struct kube *kube, const json_t *secret, const struct needed *needed, int64_t older_s)
{
    int64_t made = kubernetes_time(json_object_get(secret, "metadata"), "creationTimestamp") - kube_ahead_s(kube);
    const char *mark = kubernetes_label(secret, KUBERNETES_PROGRAM);

    return mark && !act_strv_has(&needed->own, mark) && made <= act_now_unix_s() - older_s &&
           !act_strv_has(&needed->mounted, kubernetes_name_of(secret));
}

static int remove_unused(struct kube *kube, const json_t *secrets, const struct needed *needed, int64_t older_s,
                         bool dry_run, struct platform_kept *out, struct act_error *err)
{
    const json_t *secret;
    size_t i;
    int rc = 0;

    json_array_foreach(secrets, i, secret)
    {
        if (!k8s_programs_may_go(kube, secret, needed, older_s))
            continue;
        rc = dry_run ? 0 : kubernetes_delete(kube, "v1", "secrets", secret, NULL, err);
        if (rc < 0)
            return rc;
        out->n++;
    }
    return 0;
}

/* Lists the Jobs after the Secrets, so that a run that comes in between is among them. */
int kubernetes_remove_agents(struct platform *p, int64_t older_s, bool dry_run, struct platform_kept *out,
                             struct act_error *err)
{
    struct needed needed = {0};
    struct kube *kube;
    int rc = kubernetes_kube(kubernetes_of(p), &kube, err);

    *out = (struct platform_kept){0};
    if (rc < 0)
        return rc;
    struct kube_call list = {.method = "GET",
                             .path = kube_path(kube, "v1", "secrets", NULL, ALL_PROGRAMS),
                             .accept = METADATA_OF_EACH,
                             .what = "list the Secrets of programs"};
    CODEC_AUTOJSON json_t *response = NULL;
    rc = kube_ask(kube, list, &response, err);
    const json_t *secrets = json_object_get(response, "items");
    if (json_array_size(secrets) > 0)
        rc = find_needed(kube, &needed, err);
    if (rc == 0)
        rc = remove_unused(kube, secrets, &needed, older_s, dry_run, out, err);
    act_strv_release(&needed.own);
    act_strv_release(&needed.mounted);
    return rc;
}
