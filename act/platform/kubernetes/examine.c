/* examine.c - checks that everything runs need is there.
 *
 * Source: kubernetes.io/docs/reference/access-authn-authz/authorization/ (SelfSubjectAccessReview).
 */
#include <string.h>

#include "base/units.h"
#include "platform/kubernetes/kubernetes_internal.h"
#include "proc/proc.h"

/* A command in a pod is a GET by its protocol, and later servers ask for the other right as well. Source:
 * kubernetes.io/docs/reference/command-line-tools-reference/feature-gates, of which it is
 * AuthorizePodWebsocketUpgradeCreatePermission */
enum { EXEC_CREATES = 35 };

struct right {
    const char *verb, *group, *resource;
    const char *use; /* the only thing that needs it; NULL: runs do */
    int since;       /* the minor version that asks for it */
};

/* The rights that ACT uses in the namespace. */
static const struct right rights[] = {
    {"create", "batch", "jobs", NULL, 0},
    {"get", "batch", "jobs", NULL, 0},
    {"list", "batch", "jobs", NULL, 0},
    {"patch", "batch", "jobs", NULL, 0},
    {"delete", "batch", "jobs", NULL, 0},
    {"get", "", "secrets", NULL, 0},
    {"create", "", "secrets", NULL, 0},
    {"create", "", "services", NULL, 0},
    {"list", "", "pods", NULL, 0},
    {"get", "", "pods/log", NULL, 0},
    {"list", "", "events", NULL, 0},
    {"get", "", "pods/exec", "'a ssh'", 0},
    {"create", "", "pods/exec", "'a ssh'", EXEC_CREATES},
    {"create", "", "pods", "the question, before a run is submitted, whether its pods would be let in", 0},
    {"list", "", "secrets", "'a prune', for the programs of old releases,", 0},
    {"delete", "", "secrets", "'a prune', for the programs of old releases,", 0},
};

static bool examine_server(struct kubernetes *k, int *out_minor, struct platform_findings *findings)
{
    ACT_AUTOFREE char *name = NULL;
    struct act_error err;
    int minor = 0, rc = kubernetes_version(k, &name, &minor, &err);

    *out_minor = minor;

    if (rc < 0) {
        platform_findings_add(findings, false, "server", "%s", act_error_text(&err));
        return false;
    }
    if (minor < KUBERNETES_OLDEST)
        platform_findings_add(findings, false, "server", "'%s' has Kubernetes %s; runs need 1.%d or later",
                              kube_server(k->kube), name, KUBERNETES_OLDEST);
    else
        platform_findings_add(findings, true, "server", "'%s' of the context '%s', Kubernetes %s%s",
                              kube_server(k->kube), kube_context(k->kube), name,
                              minor < KUBERNETES_WITH_POLICY ? ": losing a pod fails a run, which 1.26 and later mend"
                                                             : "");
    return true;
}

/* Returns false if the namespace is not there. */
static bool examine_namespace(struct kubernetes *k, struct platform_findings *findings)
{
    const char *name = kube_namespace(k->kube);
    ACT_AUTOFREE char *path = kube_cluster_path("v1", "namespaces", name, NULL);
    CODEC_AUTOJSON json_t *space = NULL;
    struct act_error err;
    int rc = kube_get(k->kube, path, "look for the namespace", &space, &err);

    if (rc == -ACT_NOT_FOUND)
        platform_findings_add(findings, false, "namespace",
                              "there is no namespace '%s' in this cluster; create it, or change k8s.namespace", name);
    else /* who may not look at it may use it */
        platform_findings_add(findings, true, "namespace", "'%s'", name);
    return rc != -ACT_NOT_FOUND;
}

static void add_missing(const struct right *right, struct act_buf *needed, struct act_buf *useful)
{
    if (right->use)
        act_buf_addf(useful, "%s%s %s, which only %s needs", useful->len ? "; " : "", right->verb, right->resource,
                     right->use);
    else
        act_buf_addf(needed, "%s%s %s", needed->len ? ", " : "", right->verb, right->resource);
}

/* Lists the rights that the user lacks: those that runs need, and those that are only useful. */
static int find_missing(struct kubernetes *k, int minor, struct act_buf *needed, struct act_buf *useful,
                        struct act_error *err)
{
    bool allowed;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof(rights) / sizeof(rights[0]); i++) {
        if (minor < rights[i].since)
            continue;
        rc = kube_may(k->kube, rights[i].verb, rights[i].group, rights[i].resource, &allowed, err);
        if (rc == 0 && !allowed)
            add_missing(&rights[i], needed, useful);
    }
    return rc;
}

static void examine_rights(struct kubernetes *k, int minor, struct platform_findings *findings)
{
    ACT_AUTO(act_buf) needed = {0}, useful = {0};
    struct act_error err;

    if (find_missing(k, minor, &needed, &useful, &err) < 0)
        platform_findings_add(findings, false, "rights", "%s", act_error_text(&err));
    else if (needed.len > 0)
        platform_findings_add(findings, false, "rights",
                              "you may not: %s; ask for a role in the namespace '%s' with it", needed.data,
                              kube_namespace(k->kube));
    else
        platform_findings_add(findings, true, "rights", "you may do in '%s' what runs need", kube_namespace(k->kube));
    if (useful.len > 0)
        platform_findings_add(findings, true, "other rights", "you may not %s", useful.data);
}

/* Tells whether quotas are known, which nobody needs. */
static void examine_quotas(struct kubernetes *k, struct platform_findings *findings)
{
    struct act_error ignored;
    bool allowed;

    if (kube_may(k->kube, "list", "", "resourcequotas", &allowed, &ignored) < 0)
        return;
    platform_findings_add(findings, true, "quotas", "%s",
                          allowed ? "runs of several pods are held against them before they are made"
                                  : "not known: you may not list quotas, so no run is held against them before");
}

/* Names the watches that the user may not have. He is no worse off without, but the server is. */
static void examine_watching(struct kubernetes *k, struct platform_findings *findings)
{
    static const struct {
        const char *group, *resource;
    } watched[] = {{"batch", "jobs"}, {"", "pods"}, {"", "events"}};
    ACT_AUTO(act_buf) missing = {0};
    struct act_error ignored;
    bool allowed;

    for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++)
        if (kube_may(k->kube, "watch", watched[i].group, watched[i].resource, &allowed, &ignored) == 0 && !allowed)
            act_buf_addf(&missing, "%swatch %s", missing.len ? ", " : "", watched[i].resource);
    if (missing.len > 0)
        platform_findings_add(
            findings, true, "watch",
            "you may not: %s; so who waits for runs asks the server again and again, which that right "
            "spares it",
            missing.data);
}

struct gpus {
    const char *resource;
    int nodes, with;
};

static int k8s_examine_count_gpus(void *arg, const json_t *node, struct act_error *err)
{
    struct gpus *g = arg;
    const json_t *has = json_object_get(json_object_get(node, "status"), "allocatable");

    (void)err;
    g->nodes++;
    g->with += act_quantity_from_text(codec_json_str(has, g->resource, "0")) > 0;
    return 0;
}

static void examine_nodes(struct kubernetes *k, struct platform_findings *findings)
{
    struct gpus g = {.resource = kubernetes_gpu_resource(k->config)};
    struct act_error err;
    int rc = g.resource ? kubernetes_each_node(k, k8s_examine_count_gpus, &g, &err) : 0;

    if (!g.resource)
        platform_findings_add(findings, true, "GPUs", "none are asked for: k8s.gpu_resource is none");
    else if (rc == -ACT_DENIED)
        platform_findings_add(findings, true, "GPUs",
                              "not known: you may not list the nodes, which only 'a summary' and this check need");
    else if (rc < 0)
        platform_findings_add(findings, false, "GPUs", "%s", act_error_text(&err));
    else if (g.with == 0)
        platform_findings_add(findings, false, "GPUs",
                              "none of the %d nodes has '%s' now: runs wait unless the cluster grows; k8s.gpu_resource "
                              "names another",
                              g.nodes, g.resource);
    else
        platform_findings_add(findings, true, "GPUs", "%d of %d nodes have '%s'", g.with, g.nodes, g.resource);
}

static void examine_image(struct kubernetes *k, struct platform_findings *findings)
{
    ACT_AUTOFREE char *image = kubernetes_image(k->config, NULL);
    bool direct = act_streq(k8s_keys(k->config)->launcher, "direct");

    if (image) /* else the configuration is not sound */
        platform_findings_add(findings, true, "image", "'%s', which needs /bin/sh, gzip, sha256sum, chmod and cat%s",
                              image,
                              direct ? "" : ", and Open MPI for more than one process (k8s.launcher: direct: none)");
}

static void examine_kubectl(struct platform_findings *findings)
{
    ACT_AUTOFREE char *path = proc_find_in_path("kubectl");

    platform_findings_add(findings, true, "kubectl", "%s",
                          path ? path : "not installed; only 'a ssh' to servers before 1.30 needs it");
}

void kubernetes_examine(struct platform *p, struct platform_findings *findings)
{
    struct kubernetes *k = kubernetes_of(p);
    int minor = 0;

    examine_image(k, findings);
    examine_kubectl(findings);
    if (!examine_server(k, &minor, findings))
        return;
    if (examine_namespace(k, findings)) {
        examine_rights(k, minor, findings);
        examine_watching(k, findings);
    }
    examine_quotas(k, findings);
    examine_nodes(k, findings);
}
