/* aks_login.c - the login to a cluster, as the service gives it to its users, for the kubeconfig. */
#include <string.h>

#include "base/hash.h"
#include "platform/kubernetes/aks.h"

/* Returns the first of {"kubeconfigs": [{"name", "value": BASE64}]}. New string, secret; NULL: there is none. */
static char *first_of(const json_t *response)
{
    const json_t *first = json_array_get(json_object_get(response, "kubeconfigs"), 0);
    size_t len = 0;
    uint8_t *data = act_base64_decode(codec_json_str(first, "value", ""), &len);
    char *text = data && len ? act_strndup((char *)data, len) : NULL;

    act_wipe_bytes(data, len);
    return text;
}

/* Fetches the kubeconfig. format=exec gives users of the directory the program kubelogin as their exec plugin. */
static int k8s_aks_login_fetch(const struct aks *aks, char **out, struct act_error *err)
{
    ACT_AUTOFREE char *what = act_sprintf("fetch the login to the cluster '%s'", aks->config->cluster);
    struct arm_call call = {.method = "POST",
                            .what = what,
                            .url = act_sprintf("%s/listClusterUserCredential?format=exec", aks->cluster),
                            .api_version = AKS_VERSION};
    int rc = arm_do(aks->arm, &call, err);

    *out = rc == 0 ? first_of(call.response) : NULL;
    if (rc == 0 && !*out)
        rc = act_error_set(err, ACT_FAIL, "cannot %s: the service gives no kubeconfig", what);
    arm_call_release(&call);
    return aks_hint_missing(aks, rc, err);
}

static int k8s_aks_login_add(const char *added, struct platform_login *out, struct act_error *err)
{
    struct kube_addition addition = {0};
    int rc = platform_read_login_file(out->file, &out->old_text, err);

    if (rc == 0)
        rc = kube_config_add(out->old_text, out->file, added, &addition, err);
    if (rc < 0)
        return rc;
    out->text = addition.text;
    out->context = addition.context;
    out->replaced = addition.replaced;
    out->is_new = addition.is_new;
    return 0;
}

int aks_login(struct platform *p, struct platform_login *out, struct act_error *err)
{
    struct kubernetes *k = kubernetes_of(p);
    char *added = NULL;
    struct aks *aks;
    int rc = aks_open(k, &aks, err);

    if (rc == 0)
        rc = k8s_aks_login_fetch(aks, &added, err);
    if (rc == 0) {
        out->file = kube_config_file(k8s_keys(k->config)->kubeconfig);
        rc = k8s_aks_login_add(added, out, err);
    }
    act_wipe(&added);
    if (rc < 0)
        platform_login_release(out);
    return rc;
}
