/* setup_kubernetes.c - what a kubeconfig and its clusters have. */
#include <string.h>

#include "auth/services.h"
#include "codec/json.h"
#include "flow/cluster/setup_internal.h"
#include "kube/kube.h"

int setup_look_contexts(struct flow_setup *setup, struct flow_choices *out, struct act_error *err)
{
    ACT_AUTO(kube_contexts) found = {0};
    int rc = kube_contexts_read(setup->kubeconfig, &found, err);

    for (size_t i = 0; rc == 0 && i < found.names.n; i++)
        setup_offer(out, found.names.v[i], NULL, NULL, act_streq(found.names.v[i], found.current));
    return rc;
}

static int take_namespace(void *arg, const json_t *item, struct act_error *err)
{
    struct flow_choices *out = arg;
    const char *name = codec_json_str(json_object_get(item, "metadata"), "name", NULL);

    (void)err;
    if (name && !act_starts_with(name, "kube-"))
        setup_offer(out, name, NULL, NULL, false);
    return 0;
}

/* Many users may not list them: then theirs is the one of the context, or they know another. */
static int list_namespaces(struct kube *kube, struct flow_choices *out, struct act_error *err)
{
    ACT_AUTOFREE char *path = kube_cluster_path("v1", "namespaces", NULL, NULL);
    int rc = kube_each(kube, path, "list the namespaces", take_namespace, out, err);

    if (rc != -ACT_DENIED || err->http_status != 403)
        return rc;
    out->open = true;
    return 0;
}

int setup_look_namespaces(struct flow_setup *setup, struct flow_choices *out, struct act_error *err)
{
    const struct kube_options options = {.http = services_http(setup->services),
                                         .kubeconfig = setup->kubeconfig,
                                         .context = setup->context,
                                         .said_by = "--context"};
    struct kube *kube = NULL;
    int rc = kube_open(&options, &kube, err);

    if (rc == 0)
        rc = list_namespaces(kube, out, err);
    if (rc == 0 && !setup_has(out, kube_namespace(kube)) && out->open)
        setup_offer(out, kube_namespace(kube), NULL, NULL, false);
    for (size_t i = 0; rc == 0 && i < out->n; i++)
        out->v[i].usual = strcmp(out->v[i].value, kube_namespace(kube)) == 0;
    kube_free(kube);
    return rc;
}

/* Nodes are for all users, and not all may look at them: the number stays unknown then. */
int setup_finish_kubernetes(struct flow_setup *setup, struct act_error *err)
{
    int rc = setup_count_gpus(setup, NULL, err);

    return rc == -ACT_DENIED && err->http_status == 403 ? 0 : rc;
}

void setup_put_kubernetes(struct act_buf *out, const struct flow_setup *setup)
{
    act_buf_adds(out, "\nk8s:\n");
    setup_put_if(out, "  kubeconfig", setup->kubeconfig, NULL);
    setup_put_if(out, "  context", setup->context, NULL);
    setup_put_if(out, "  namespace", setup->namespace_, NULL);
    setup_put_if(out, "  image", setup->image, "has Open MPI and what your code needs");
    if (setup->no_gpus)
        setup_put(out, "  gpu_resource", "none", "no GPUs are asked for");
    act_buf_adds(out, "  # queue: myqueue         the local queue of Kueue\n"
                      "  # shm_size: 16Gi         of /dev/shm\n");
    setup_put_gpus(out, setup);
}
