/* plugin.c - the program that a kubeconfig names for credentials ("exec"): runs it and reads its output.
 *
 * It runs on a worker, in the root folder, so that it loads nothing that a project has lying about. One that may ask
 * has the terminal; what another one says on stderr is quoted when it fails, and passed on when it does not.
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "codec/json.h"
#include "engine/engine.h"
#include "kube/kube_internal.h"
#include "proc/proc.h"

enum { QUIET_S = 60, TALKING_S = 900, MAX_OUTPUT = 1 << 20, EARLY_S = 10, SAID_SHOWN = 500 };

struct question {
    struct kube *kube;
    struct act_strv argv, env;
    bool talks;
    struct proc_result result;
    int rc;
    struct act_error error;
};

/* ---- what it is told ---- */

static void kube_plugin_set_text(json_t *object, const char *key, const char *text)
{
    if (text)
        json_object_set_new(object, key, json_string(text));
}

/* Describes the cluster for the plugin. New reference. */
static json_t *cluster_info(const struct kube_config *c)
{
    json_t *info = json_pack("{s:s}", "server", c->server);
    ACT_AUTOFREE char *ca = c->ca ? act_base64_encode(c->ca, strlen(c->ca)) : NULL;

    kube_plugin_set_text(info, "tls-server-name", c->server_name);
    kube_plugin_set_text(info, "certificate-authority-data", ca);
    kube_plugin_set_text(info, "proxy-url", c->proxy);
    if (c->insecure)
        json_object_set_new(info, "insecure-skip-tls-verify", json_true());
    if (c->exec.cluster_config)
        json_object_set(info, "config", c->exec.cluster_config);
    return info;
}

/* Returns the line that the plugin gets in KUBERNETES_EXEC_INFO. New string. */
static char *exec_info(const struct kube_config *c, bool talks)
{
    CODEC_AUTOJSON json_t *info = json_pack("{s:s, s:s, s:{s:b}}", "kind", "ExecCredential", "apiVersion",
                                            c->exec.api_version, "spec", "interactive", talks);

    if (c->exec.provide_cluster)
        json_object_set_new(json_object_get(info, "spec"), "cluster", cluster_info(c));
    return codec_json_line(info);
}

static void kube_plugin_set_env(struct question *q)
{
    const struct kube_config *c = &q->kube->config;
    ACT_AUTOFREE char *info = exec_info(c, q->talks);

    act_strv_pushf(&q->env, "KUBERNETES_EXEC_INFO=%s", info);
    act_strv_copy(&q->env, c->exec.env.v, c->exec.env.n);
}

static int set_argv(struct question *q)
{
    const struct kube_exec *exec = &q->kube->config.exec;
    const char *command = exec->argv.v[0];
    char *program = strchr(command, '/') ? act_strdup(command) : proc_find_in_path(command);

    if (!program) {
        act_error_set(&q->error, ACT_NOT_FOUND,
                      "there is no program '%s' in PATH, which the kubeconfig wants for its "
                      "credentials",
                      command);
        return exec->install_hint ? act_error_hint(&q->error, "%s", exec->install_hint) : -ACT_NOT_FOUND;
    }
    act_strv_take(&q->argv, program);
    act_strv_copy(&q->argv, exec->argv.v + 1, exec->argv.n - 1);
    return 0;
}

/* ---- running it (worker) ---- */

static void run_it(void *arg)
{
    struct question *q = arg;
    struct proc_call call = {.argv = q->argv.v,
                             .sees = OF_PLUGIN,
                             .set = q->env.v,
                             .cwd = "/",
                             .timeout_s = q->talks ? TALKING_S : QUIET_S,
                             .max_bytes = MAX_OUTPUT,
                             .on_terminal = q->talks,
                             .talks = q->talks};

    q->rc = proc_call(&call, &q->result, &q->error);
}

/* ---- its output ---- */

/* Returns the last words of the plugin, as one line. New string. */
static char *kube_plugin_words_of(const struct proc_result *result)
{
    size_t n = result->err_len, start;

    while (n && strchr(" \t\r\n", result->err[n - 1]))
        n--;
    start = n > SAID_SHOWN ? n - SAID_SHOWN : 0;
    ACT_AUTOFREE char *line = act_one_line(n ? result->err + start : "", n - start);
    return http_redact_text(line);
}

static int say_failure(struct question *q)
{
    ACT_AUTOFREE char *words = kube_plugin_words_of(&q->result);
    int status = q->result.status;
    bool exited = WIFEXITED(status);

    act_error_set(&q->error, ACT_DENIED, "the plugin '%s' of the kubeconfig failed (%s %d)%s%s", q->argv.v[0],
                  exited ? "exit status" : "signal", exited ? WEXITSTATUS(status) : WTERMSIG(status),
                  *words ? ": " : "", words);
    const char *hint = q->kube->config.exec.install_hint;
    return hint ? act_error_hint(&q->error, "%s", hint) : -ACT_DENIED;
}

static int is_wrong(struct question *q, const char *what)
{
    return act_error_set(&q->error, ACT_FAIL, "the plugin '%s' of the kubeconfig %s", q->argv.v[0], what);
}

static int kube_plugin_take_end(struct question *q, const char *text)
{
    struct kube_login *login = &q->kube->login;
    int64_t ends_ns = 0;

    login->ends_s = 0;
    if (!text || !*text)
        return 0;
    if (!act_time_from_iso_ns(text, &ends_ns))
        return is_wrong(q, "answers an 'expirationTimestamp' that is no time (RFC 3339)");
    login->ends_s = ends_ns / 1000000000;
    return 0;
}

static void kube_plugin_take_credentials(struct kube *kube, const char *token, const char *cert, const char *key)
{
    struct kube_login *login = &kube->login;

    act_wipe(&login->authorization);
    act_wipe(&login->key);
    act_str_replace(&login->cert, cert);
    login->key = act_strdup(key);
    login->authorization = token ? act_sprintf("Bearer %s", token) : NULL;
    login->tls.cert = cert ? login->cert : kube->config.cert;
    login->tls.key = key ? login->key : kube->config.key;
    login->ready = true;
    login->number++;
}

static int kube_plugin_take_status(struct question *q, const json_t *answer)
{
    const json_t *status = json_object_get(answer, "status");
    const char *token = codec_json_str(status, "token", ""),
               *cert = codec_json_str(status, "clientCertificateData", "");
    const char *key = codec_json_str(status, "clientKeyData", "");
    const char *version = codec_json_str(answer, "apiVersion", "");

    if (!act_streq(codec_json_str(answer, "kind", ""), "ExecCredential"))
        return is_wrong(q, "does not answer an ExecCredential");
    if (!act_streq(version, q->kube->config.exec.api_version))
        return act_error_set(&q->error, ACT_CONFIG,
                             "the plugin '%s' answers as '%s', the kubeconfig wants '%s' ('apiVersion' of 'exec')",
                             q->argv.v[0], version, q->kube->config.exec.api_version);
    if (!*token && !*cert && !*key)
        return is_wrong(q, "answers neither a token nor a certificate");
    if (!*cert != !*key)
        return is_wrong(q, "answers a certificate or a key, not both");
    if (strpbrk(token, "\r\n"))
        return is_wrong(q, "answers a token of more than one line");
    int rc = kube_plugin_take_end(q, codec_json_str(status, "expirationTimestamp", NULL));
    if (rc == 0)
        kube_plugin_take_credentials(q->kube, *token ? token : NULL, *cert ? cert : NULL, *key ? key : NULL);
    return rc;
}

static int take_answer(struct question *q)
{
    CODEC_AUTOJSON json_t *answer = NULL;

    if (q->rc < 0)
        return act_error_prefix(&q->error, "the plugin of the kubeconfig");
    if (!WIFEXITED(q->result.status) || WEXITSTATUS(q->result.status) != 0)
        return say_failure(q);
    ACT_AUTOFREE char *words = kube_plugin_words_of(&q->result);
    if (*words)
        act_note("%s", words);
    if (codec_json_parse(q->result.out, q->result.out_len, "answer", &answer, NULL) < 0)
        return is_wrong(q, "does not answer JSON");
    return kube_plugin_take_status(q, answer);
}

static void wipe_output(struct proc_result *result)
{
    act_wipe_bytes(result->out, result->out_len);
    result->out = NULL;
    proc_result_release(result);
}

static void kube_plugin_ended(void *arg)
{
    struct question *q = arg;
    struct kube *kube = q->kube;
    struct act_error err;
    int rc = take_answer(q);
    struct kube_try *t = kube->waiting, *next;

    err = q->error;
    wipe_output(&q->result);
    act_strv_release(&q->argv);
    act_strv_release(&q->env);
    free(q);
    kube->waiting = NULL;
    for (; t; t = next) {
        next = t->next;
        kube_have_login(t, rc, &err);
    }
}

/* ---- asking it ---- */

static int kube_plugin_prepare(struct question *q)
{
    enum kube_interactive mode = q->kube->config.exec.interactive;

    q->talks = mode != KUBE_NEVER && isatty(STDIN_FILENO);
    if (mode == KUBE_ALWAYS && !q->talks)
        return act_error_set(&q->error, ACT_DENIED,
                             "the plugin '%s' of the kubeconfig must ask on the terminal, and "
                             "standard input is none",
                             q->kube->config.exec.argv.v[0]);
    return set_argv(q);
}

/* The server judges by its own clock. */
bool kube_plugin_is_fresh(const struct kube *kube)
{
    const struct kube_login *login = &kube->login;

    return login->ready && (login->ends_s == 0 || act_now_unix_s() + kube->ahead_s + EARLY_S < login->ends_s);
}

void kube_plugin_ask(struct kube_try *t)
{
    struct kube *kube = t->kube;
    bool runs = kube->waiting;
    struct question *q;

    t->next = kube->waiting;
    kube->waiting = t;
    if (runs)
        return;
    q = act_calloc(1, sizeof(*q));
    q->kube = kube;
    q->rc = kube_plugin_prepare(q);
    if (q->rc < 0) {
        struct act_error err = q->error;
        kube->waiting = NULL;
        act_strv_release(&q->argv);
        free(q);
        kube_have_login(t, -(int)err.code, &err);
        return;
    }
    kube_plugin_set_env(q);
    engine_work(http_engine(kube->http), run_it, kube_plugin_ended, q);
}
