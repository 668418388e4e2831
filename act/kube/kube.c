/* kube.c - one request: credentials, request, response; and once more when they are refused.
 *
 *   kube_do -> begin -> kube_need_login -> kube_have_login -> answered -> end_call
 *                                 ^                                  | 401, the first time
 *                                 +----------------------------------+
 */
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/log.h"
#include "codec/json.h"
#include "engine/engine.h"
#include "kube/kube_internal.h"

enum { RESPONSE_MAX = 64 << 20 };

/* ---- the cluster ---- */

/* Returns "HOST:PORT" of an address that has been checked. New string. */
static char *host_and_port(const char *server)
{
    const char *host = strstr(server, "://") + strlen("://");
    size_t n = strcspn(host, "/");
    const char *end = *host == '[' ? strchr(host, ']') : host;
    bool has_port = end && memchr(end, ':', (size_t)(host + n - end));

    return act_sprintf("%.*s%s", (int)n, host, has_port ? "" : act_starts_with(server, "https:") ? ":443" : ":80");
}

/* Puts the name that the certificate must have into the URL; where that leads is said beside it. */
static void set_address(struct kube *kube)
{
    const struct kube_config *c = &kube->config;

    if (!c->server_name) {
        kube->base = act_strdup(c->server);
        return;
    }
    const char *host = strstr(c->server, "://") + strlen("://"), *path = host + strcspn(host, "/");
    kube->host = host_and_port(c->server);
    const char *port = strrchr(kube->host, ':');
    kube->connect_to = act_sprintf("%s%s:%s", c->server_name, port, kube->host);
    kube->base = act_sprintf("%.*s%s%s%s", (int)(host - c->server), c->server, c->server_name, port, path);
}

static void set_plugin(struct kube *kube)
{
    const struct act_strv *argv = &kube->config.exec.argv;
    struct act_buf words = {0};

    if (kube_source_of(&kube->config) != KUBE_PLUGIN)
        return;
    for (size_t i = 0; i < argv->n; i++) {
        if (i)
            act_buf_addc(&words, ' ');
        act_buf_add_quoted(&words, argv->v[i]);
    }
    kube->plugin = act_buf_steal(&words);
}

static void set_tls(struct kube *kube)
{
    static const char hint[] =
        "'certificate-authority-data' and 'tls-server-name' of the kubeconfig must be those of this server";
    const struct kube_config *c = &kube->config;

    kube->login.tls = (struct http_tls){.ca = c->ca,
                                        .cert = c->cert,
                                        .key = c->key,
                                        .connect_to = kube->connect_to,
                                        .proxy = c->proxy,
                                        .insecure = c->insecure,
                                        .hint = hint};
}

int kube_open(const struct kube_options *options, struct kube **out, struct act_error *err)
{
    struct kube *kube = act_calloc(1, sizeof(*kube));
    int rc = kube_config_read(options, &kube->config, err);

    if (rc < 0) {
        free(kube);
        return rc;
    }
    kube->http = options->http;
    set_address(kube);
    set_plugin(kube);
    set_tls(kube);
    *out = kube;
    return 0;
}

void kube_free(struct kube *kube)
{
    if (!kube)
        return;
    kube_config_release(&kube->config);
    kube_login_release(&kube->login);
    free(kube->base);
    free(kube->host);
    free(kube->connect_to);
    free(kube->plugin);
    act_strv_release(&kube->warned);
    free(kube);
}

const char *kube_namespace(const struct kube *kube)
{
    return kube->config.namespace_;
}

const char *kube_context(const struct kube *kube)
{
    return kube->config.context;
}

const char *kube_server(const struct kube *kube)
{
    return kube->config.server;
}

const char *kube_plugin(const struct kube *kube)
{
    return kube->plugin;
}

const struct act_strv *kube_plugin_env(const struct kube *kube)
{
    return &kube->config.exec.env;
}

int64_t kube_ahead_s(const struct kube *kube)
{
    return kube->ahead_s;
}

const struct act_strv *kube_named_files(const struct kube *kube)
{
    return &kube->config.files;
}

/* ---- paths ---- */

static char *join_path(const char *group_version, const char *namespace_, const char *plural, const char *name,
                       const char *query)
{
    ACT_AUTOFREE char *space = namespace_ ? http_encode(namespace_, false) : NULL;
    ACT_AUTOFREE char *coded = name ? http_encode(name, false) : NULL;
    bool core = !strchr(group_version, '/');

    return act_sprintf("/%s/%s%s%s/%s%s%s%s%s", core ? "api" : "apis", group_version, space ? "/namespaces/" : "",
                       space ? space : "", plural, coded ? "/" : "", coded ? coded : "", query ? "?" : "",
                       query ? query : "");
}

char *kube_path(const struct kube *kube, const char *group_version, const char *plural, const char *name,
                const char *query)
{
    return join_path(group_version, kube->config.namespace_, plural, name, query);
}

char *kube_cluster_path(const char *group_version, const char *plural, const char *name, const char *query)
{
    return join_path(group_version, NULL, plural, name, query);
}

/* ---- the request ---- */

void kube_try_free(struct kube_try *t)
{
    http_call_release(&t->http);
    act_wipe(&t->body);
    free(t->cannot);
    free(t);
}

static void kube_end_call(struct kube_try *t, int rc)
{
    struct kube_call *call = t->call;

    *t->finished = true;
    kube_try_free(t);
    call->rc = rc;
}

static void kube_end_stream(struct kube_try *t, int rc)
{
    struct kube_stream *stream = t->stream;

    kube_try_free(t);
    stream->under_way = NULL;
    stream->rc = rc;
    stream->done(stream);
}

static struct act_error *error_of(struct kube_try *t)
{
    return t->call ? &t->call->error : t->stream ? &t->stream->error : &t->command->error;
}

static void kube_end(struct kube_try *t, int rc)
{
    if (t->call)
        kube_end_call(t, rc);
    else if (t->stream)
        kube_end_stream(t, rc);
    else
        kube_command_end(t, rc);
}

static bool is_fine(const struct kube_call *call, const struct act_error *err)
{
    if (call->status == 404)
        return call->missing_is_fine && !act_streq(err->service_code, "NoSuchApi");
    return call->status == 409 && call->exists_is_fine;
}

/* Notes what the server's clock is ahead. The time that an answer takes is no difference. */
static void read_clock(struct kube_try *t)
{
    enum { FINE_S = 30 };
    int64_t ahead = http_clock_ahead_s(&t->http.response_headers, act_now_unix_s());

    if (t->http.status)
        t->kube->ahead_s = ahead > -FINE_S && ahead < FINE_S ? 0 : ahead;
}

/* Returns the text of 299 - "...", the only form that servers send (RFC 7234, 5.5). New string; NULL: it is another. */
static char *warning_of(const char *value)
{
    enum { SHOWN_BYTES = 500 };
    const char *from = act_starts_with(value, "299 ") ? strchr(value, '"') : NULL;
    struct act_buf text = {0};

    if (!from)
        return NULL;
    for (const char *c = from + 1; *c && *c != '"' && text.len < SHOWN_BYTES; c++) {
        c += *c == '\\' && c[1];
        act_buf_addc(&text, *c);
    }
    return text.len ? act_buf_steal(&text) : NULL;
}

/* Shows each warning once, as kubectl does, and so many of them; a server may send them with every response. */
static void show_warnings(struct kube_try *t)
{
    enum { SHOWN = 10 };
    const struct http_headers *headers = &t->http.response_headers;
    struct act_strv *warned = &t->kube->warned;

    for (size_t i = 0; i < headers->n && warned->n < SHOWN; i++) {
        char *text = strcasecmp(headers->v[i].name, "Warning") == 0 ? warning_of(headers->v[i].value) : NULL;
        if (!text || act_strv_has(warned, text)) {
            free(text);
            continue;
        }
        ACT_AUTOFREE char *line = act_one_line(text, strlen(text));
        act_warn("the cluster says: %s", line);
        act_strv_take(warned, text);
    }
}

static int kube_judge(struct kube_try *t)
{
    struct kube_call *call = t->call;
    struct act_buf *body = &t->http.body_text;
    CODEC_AUTOJSON json_t *json = NULL;
    int rc = body->len ? codec_json_parse(body->data, body->len, "response", &json, NULL) : 0;

    read_clock(t);
    show_warnings(t);
    call->status = t->http.status;
    call->ambiguous = t->http.ambiguous;
    if (call->status < 200 || call->status > 299) {
        rc = kube_describe(&call->error, call->what, &t->http, json, t->kube->login.authorization);
        return is_fine(call, &call->error) ? 0 : rc;
    }
    if (rc < 0)
        call->text = act_buf_steal(body);
    else
        call->response = json_incref(json);
    return 0;
}

static int judge_stream(struct kube_try *t)
{
    const struct act_buf *body = &t->http.body_text;
    CODEC_AUTOJSON json_t *json = NULL;

    t->stream->status = t->http.status;
    if (t->http.status >= 200 && t->http.status <= 299)
        return 0;
    if (body->len && codec_json_parse(body->data, body->len, "response", &json, NULL) < 0)
        json = NULL;
    return kube_describe(&t->stream->error, t->what, &t->http, json, t->kube->login.authorization);
}

bool kube_renew(struct kube_try *t)
{
    if (t->http.status != 401 || t->renewed || t->cancelled)
        return false;
    t->renewed = true;
    return kube_login_refused(t->kube, t->login);
}

static void answered(struct http_call *http)
{
    struct kube_try *t = http->arg;

    if (http->rc < 0) {
        *error_of(t) = http->error;
        kube_end(t, http->rc);
    } else if (kube_renew(t)) {
        http_call_release(http);
        kube_need_login(t);
    } else {
        kube_end(t, t->call ? kube_judge(t) : judge_stream(t));
    }
}

/* Tells whether another try is in vain: a server that says in its own words that it failed would fail again, a gateway
 * before it may not. */
static bool is_final(const struct http_call *http)
{
    return http->status == 500 && http->body_text.len && strstr(http->body_text.data, "\"Status\"");
}

static void kube_take(struct http_call *http, size_t at, const void *data, size_t len)
{
    struct kube_try *t = http->arg;

    (void)at;
    t->stream->status = http->status;
    if (!t->cancelled)
        t->stream->take(t->stream, data, len);
}

void kube_add_headers(struct kube_try *t, const char *accept)
{
    const struct kube *kube = t->kube;
    struct http_headers *headers = &t->http.headers;

    t->login = kube->login.number;
    if (kube->login.authorization)
        http_header_set(headers, "Authorization", kube->login.authorization);
    if (kube->host)
        http_header_set(headers, "Host", kube->host);
    http_header_set(headers, "Accept", accept);
    for (size_t i = 0; i < kube->config.as.n; i++) {
        const struct http_header *h = &kube->config.as.v[i];
        http_header_add(headers, h->name, strlen(h->name), h->value, strlen(h->value));
    }
}

static void send_call(struct kube_try *t)
{
    const struct kube_call *call = t->call;
    const char *type = call->content_type ? call->content_type : "application/json";

    t->http.method = call->method;
    t->http.url = act_sprintf("%s%s", t->kube->base, call->path);
    t->http.max_body = call->max_body ? call->max_body : (size_t)RESPONSE_MAX;
    t->http.bounded = true;
    t->http.is_final = is_final;
    t->http.peer_name = "the cluster";
    kube_add_headers(t, call->accept ? call->accept : "application/json");
    if (call->body && !t->body)
        t->body = codec_json_line(call->body);
    if (t->body) {
        http_header_set(&t->http.headers, "Content-Type", type);
        t->http.body = t->body;
        t->http.body_len = strlen(t->body);
    }
    http_start(t->kube->http, &t->http);
}

static void send_stream(struct kube_try *t)
{
    t->http.method = "GET";
    t->http.url = act_sprintf("%s%s", t->kube->base, t->stream->path);
    t->http.endless = true;
    t->http.take = kube_take;
    kube_add_headers(t, t->stream->accept ? t->stream->accept : "*/*");
    http_start(t->kube->http, &t->http);
}

void kube_have_login(struct kube_try *t, int rc, const struct act_error *err)
{
    if (t->cancelled)
        rc = act_error_set(error_of(t), ACT_INTERRUPTED, "its reader has enough");
    else if (rc < 0)
        *error_of(t) = *err;
    if (rc < 0) {
        act_error_prefix(error_of(t), "%s", t->cannot);
        kube_end(t, rc);
        return;
    }
    t->http = (struct http_call){.what = t->cannot,
                                 .direct = http_is_here(t->kube->config.server),
                                 .tls = &t->kube->login.tls,
                                 .done = answered,
                                 .arg = t};
    if (t->call)
        send_call(t);
    else if (t->stream)
        send_stream(t);
    else
        kube_command_send(t);
}

static void kube_begin(void *arg)
{
    kube_need_login(arg);
}

struct kube_try *kube_try_new(struct kube *kube, const char *what)
{
    struct kube_try *t = act_calloc(1, sizeof(*t));

    t->kube = kube;
    t->what = what;
    t->cannot = act_sprintf("cannot %s", what);
    engine_timer(http_engine(kube->http), 0, kube_begin, t);
    return t;
}

void kube_stream_start(struct kube *kube, struct kube_stream *stream)
{
    stream->under_way = kube_try_new(kube, stream->what);
    stream->under_way->stream = stream;
}

void kube_stream_cancel(struct kube_stream *stream)
{
    if (!stream->under_way)
        return;
    stream->under_way->cancelled = true;
    http_cancel(&stream->under_way->http);
}

void kube_stream_release(struct kube_stream *stream)
{
    free(stream->path);
    *stream = (struct kube_stream){0};
}

void kube_do_all(struct kube *kube, struct kube_call *const *calls, size_t n)
{
    ACT_AUTOFREE bool *finished = act_calloc(n + 1, sizeof(*finished));

    for (size_t i = 0; i < n; i++) {
        struct kube_try *t = kube_try_new(kube, calls[i]->what);
        t->call = calls[i];
        t->finished = &finished[i];
    }
    for (size_t i = 0; i < n; i++)
        engine_run(http_engine(kube->http), &finished[i]);
}

int kube_do(struct kube *kube, struct kube_call *call, struct act_error *err)
{
    kube_do_all(kube, &call, 1);
    if (call->rc < 0 && err)
        *err = call->error;
    return call->rc;
}

void kube_call_release(struct kube_call *call)
{
    free(call->path);
    act_wipe(&call->text);
    json_decref(call->body);
    json_decref(call->response);
    *call = (struct kube_call){0};
}
