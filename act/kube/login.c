/* login.c - the credentials of the next request: those of the kubeconfig, a token file, or a plugin. */
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "kube/kube_internal.h"

enum { TOKEN_MAX = 1 << 20, TOKEN_FILE_MS = 60000 };

void kube_login_release(struct kube_login *login)
{
    act_wipe(&login->authorization);
    act_wipe(&login->key);
    free(login->cert);
    *login = (struct kube_login){0};
}

/* ---- of the kubeconfig ---- */

static char *basic(const struct kube_config *c)
{
    ACT_AUTOWIPE char *plain = act_sprintf("%s:%s", c->user ? c->user : "", c->password ? c->password : "");
    ACT_AUTOWIPE char *coded = act_base64_encode(plain, strlen(plain));

    return act_sprintf("Basic %s", coded);
}

static void use_config(struct kube *kube)
{
    const struct kube_config *c = &kube->config;

    if (c->token)
        kube->login.authorization = act_sprintf("Bearer %s", c->token);
    else if (c->user || c->password)
        kube->login.authorization = basic(c);
    kube->login.ready = true;
}

/* Reads the token file. While there is the token read before, one that cannot be read now is not missed. */
static int kube_login_use_file(struct kube *kube, struct act_error *err)
{
    const char *path = kube->config.token_file;
    ACT_AUTOWIPE char *text = NULL;
    size_t len = 0;
    int rc = act_file_read_regular(path, TOKEN_MAX, &text, &len, err);

    kube->login.read_ms = act_now_monotonic_ms();
    if (rc < 0)
        return kube->login.ready ? 0 : act_error_prefix(err, "the token file");
    const char *start = text + strspn(text, " \t\r\n");
    size_t n = strcspn(start, " \t\r\n");
    act_wipe(&kube->login.authorization);
    kube->login.authorization = act_sprintf("Bearer %.*s", (int)n, start);
    kube->login.ready = n > 0;
    kube->login.number++;
    return n > 0 ? 0 : act_error_set(err, ACT_CONFIG, "the token file '%s' is empty", path);
}

static bool is_file_fresh(const struct kube_login *login)
{
    return login->ready && login->read_ms && act_now_monotonic_ms() - login->read_ms < TOKEN_FILE_MS;
}

/* ---- whichever it is ---- */

static bool has_own(const struct kube_config *c)
{
    return c->token || c->user || c->password;
}

enum kube_source kube_source_of(const struct kube_config *c)
{
    return c->token_file ? KUBE_FILE : has_own(c) || !c->exec.argv.n ? KUBE_CONFIG : KUBE_PLUGIN;
}

void kube_need_login(struct kube_try *t)
{
    struct kube *kube = t->kube;
    enum kube_source source = kube_source_of(&kube->config);
    struct act_error err = {0};
    int rc = 0;

    if (source == KUBE_PLUGIN && !kube_plugin_is_fresh(kube)) {
        kube_plugin_ask(t);
        return;
    }
    if (source == KUBE_FILE && !is_file_fresh(&kube->login))
        rc = kube_login_use_file(kube, &err);
    else if (source == KUBE_CONFIG && !kube->login.ready)
        use_config(kube);
    kube_have_login(t, rc, &err);
}

bool kube_login_refused(struct kube *kube, unsigned number)
{
    if (kube_source_of(&kube->config) == KUBE_CONFIG)
        return false;
    if (number == kube->login.number) /* else there is another one already */
        kube->login.ready = false;
    return true;
}
