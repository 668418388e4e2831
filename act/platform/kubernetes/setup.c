/* setup.c - a new Kubernetes cluster: the contexts of a kubeconfig, and the namespaces of its clusters. */
#include "platform/setup.h"

#include <string.h>

#include "auth/services.h"
#include "codec/json.h"
#include "kube/kube.h"
#include "platform/kubernetes/kubernetes_internal.h"

static int look_contexts(struct platform_setup *setup, struct platform_choices *out, struct act_error *err)
{
    ACT_AUTO(kube_contexts) found = {0};
    int rc = kube_contexts_read(platform_said(setup, "kubeconfig"), &found, err);

    for (size_t i = 0; rc == 0 && i < found.names.n; i++)
        platform_offer(out, found.names.v[i], NULL, NULL, act_streq(found.names.v[i], found.current));
    return rc;
}

static int offer_namespace(void *arg, const json_t *item, struct act_error *err)
{
    struct platform_choices *out = arg;
    const char *name = codec_json_str(json_object_get(item, "metadata"), "name", NULL);

    (void)err;
    if (name && !act_starts_with(name, "kube-"))
        platform_offer(out, name, NULL, NULL, false);
    return 0;
}

/* Many users may not list them: then theirs is the one of the context, or they know another. */
static int list_namespaces(struct kube *kube, struct platform_choices *out, struct act_error *err)
{
    ACT_AUTOFREE char *path = kube_cluster_path("v1", "namespaces", NULL, NULL);
    int rc = kube_each(kube, path, "list the namespaces", offer_namespace, out, err);

    if (rc != -ACT_DENIED || err->http_status != 403)
        return rc;
    out->open = true;
    return 0;
}

static int look_namespaces(struct platform_setup *setup, struct platform_choices *out, struct act_error *err)
{
    const struct kube_options options = {.http = services_http(setup->services),
                                         .kubeconfig = platform_said(setup, "kubeconfig"),
                                         .context = platform_said(setup, "context"),
                                         .said_by = "--context"};
    struct kube *kube = NULL;
    int rc = kube_open(&options, &kube, err);

    if (rc == 0)
        rc = list_namespaces(kube, out, err);
    if (rc == 0 && out->open && !platform_offers(out, kube_namespace(kube)))
        platform_offer(out, kube_namespace(kube), NULL, NULL, false);
    for (size_t i = 0; rc == 0 && i < out->n; i++)
        out->v[i].usual = strcmp(out->v[i].value, kube_namespace(kube)) == 0;
    kube_free(kube);
    return rc;
}

/* Nodes are for all users, and not all may look at them: the number stays unknown then. */
static int kubernetes_finish_setup(struct platform_setup *setup, struct act_error *err)
{
    int rc = platform_setup_count(setup, NULL, err);

    return rc == -ACT_DENIED && err->http_status == 403 ? 0 : rc;
}

static void kubernetes_put_setup(struct act_buf *out, const struct platform_setup *setup)
{
    act_buf_adds(out, "\nk8s:\n");
    platform_put_if(out, "  kubeconfig", platform_said(setup, "kubeconfig"), NULL);
    platform_put_if(out, "  context", platform_said(setup, "context"), NULL);
    platform_put_if(out, "  namespace", platform_said(setup, "namespace"), NULL);
    platform_put_if(out, "  image", platform_said(setup, "image"), "has Open MPI and what your code needs");
    if (setup->no_gpus)
        platform_put(out, "  gpu_resource", "none", "no GPUs are asked for");
    act_buf_adds(out, "  # queue: myqueue         the local queue of Kueue\n"
                      "  # shm_size: 16Gi         of /dev/shm\n");
    platform_put_gpus(out, setup);
}

// clang-format off
static const struct platform_question questions[] = {
    {.option = "kubeconfig"},
    {.option = "context", .text = "Context of the kubeconfig", .is_quiet = true, .names = PLATFORM_NAMES,
     .look = look_contexts},
    {.option = "namespace", .text = "Namespace", .is_quiet = true, .look = look_namespaces},
    {.option = "image", .text = "Image that runs execute in", .look = platform_look_nowhere},
    {0},
};
// clang-format on

const struct platform_setup_ops kubernetes_setup = {
    .text = "a Kubernetes cluster of your kubeconfig",
    .questions = questions,
    .put = kubernetes_put_setup,
    .finish = kubernetes_finish_setup,
};
