/* Kubeconfigs, as two files of KUBECONFIG: the second one is behind a line "#". */
#include "fuzz/fuzz.h"

#include "kube/kube_internal.h"

static void fuzz_kubeconfig_check(const struct kube_config *c)
{
    FUZZ_CHECK(c->context && c->namespace_ && c->server && http_is_private(c->server));
    FUZZ_CHECK(!c->cert == !c->key);
    FUZZ_CHECK(!c->exec.argv.n || c->exec.api_version);
    for (size_t i = 0; i < c->exec.env.n; i++)
        FUZZ_CHECK(strchr(c->exec.env.v[i], '=') > c->exec.env.v[i]);
}

static void try_to_open(void)
{
    struct act_error err = {0};
    struct kube *kube = NULL;
    int rc = kube_open(&(struct kube_options){0}, &kube, &err);

    FUZZ_CHECK(rc == 0 ? kube != NULL : !kube && *act_error_text(&err));
    free(rc == 0 ? kube_path(kube, "batch/v1", "jobs", "x", NULL) : NULL);
    kube_free(kube);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char mark[] = "\n#\n";
    const uint8_t *cut = size ? memmem(data, size, mark, strlen(mark)) : NULL;
    size_t n = cut ? (size_t)(cut - data) : size;
    ACT_AUTOFREE char *dir = fuzz_dir();
    ACT_AUTOFREE char *first = fuzz_file(dir, "first", data, n);
    ACT_AUTOFREE char *second = fuzz_file(dir, "second", data + n, size - n);
    ACT_AUTOFREE char *list = act_sprintf("%s:%s", first, second);
    struct kube_config config = {0};

    setenv("KUBECONFIG", list, 1);
    unsetenv("KUBERNETES_SERVICE_HOST");
    if (kube_config_read(&(struct kube_options){0}, &config, NULL) == 0) {
        fuzz_kubeconfig_check(&config);
        kube_config_release(&config);
    }
    try_to_open();
    return 0;
}
