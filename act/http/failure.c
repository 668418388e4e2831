/* failure.c - says what libcurl's results mean to the user, and whether they may pass. */
#include <stdlib.h>
#include <string.h>

#include "base/dirs.h"
#include "http/http_internal.h"

enum failure_kind { UNREACHABLE, BROKEN, SLOW, UNTRUSTED, NO_CERTIFICATES, REFUSED, OTHER };

/* Until 8.6 libcurl has no other word for a line that is longer than it takes. */
#if LIBCURL_VERSION_NUM < 0x080600
#define LINE_TOO_LONG CURLE_OUT_OF_MEMORY
#else
#define LINE_TOO_LONG CURLE_TOO_LARGE
#endif
#define NO_END "a line of its head does not end"

/* CURLE_SSL_CONNECT_ERROR is a failed handshake: a reset in its middle may pass, so it is tried again. */
static const struct {
    CURLcode code;
    enum failure_kind kind;
    const char *reason; /* NULL: libcurl's own words */
} kinds[] = {
    {CURLE_COULDNT_RESOLVE_HOST, UNREACHABLE, "its name cannot be resolved"},
    {CURLE_COULDNT_CONNECT, UNREACHABLE, NULL},
    {CURLE_SSL_CONNECT_ERROR, UNREACHABLE, NULL},
    {CURLE_OPERATION_TIMEDOUT, SLOW, NULL},
    {CURLE_ABORTED_BY_CALLBACK, SLOW, NULL}, /* look_for_stall() */
    {CURLE_SEND_ERROR, BROKEN, NULL},
    {CURLE_RECV_ERROR, BROKEN, NULL},
    {CURLE_GOT_NOTHING, BROKEN, NULL},
    {CURLE_PARTIAL_FILE, BROKEN, NULL},
    {CURLE_PEER_FAILED_VERIFICATION, UNTRUSTED, NULL},
    {CURLE_SSL_ISSUER_ERROR, UNTRUSTED, NULL},
    {CURLE_SSL_CACERT_BADFILE, NO_CERTIFICATES, NULL},
    {CURLE_WRITE_ERROR, REFUSED, NULL},
    {LINE_TOO_LONG, REFUSED, NO_END},
};

/* ---- proxies ---- */

/* Returns the proxy that libcurl chooses from the environment, without user and password, a new string; NULL: none. */
static char *proxy_of(const struct http_call *call)
{
    static const char *const secure[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
    static const char *const open[] = {"http_proxy", "all_proxy", "ALL_PROXY"};
    bool is_secure = act_starts_with(call->url, "https://");
    size_t n = is_secure ? sizeof(secure) / sizeof(secure[0]) : sizeof(open) / sizeof(open[0]);

    if (call->tls && call->tls->proxy)
        return http_redact_url(call->tls->proxy);
    for (size_t i = 0; i < n; i++) {
        const char *value = act_env(is_secure ? secure[i] : open[i]);
        if (value)
            return http_redact_url(value);
    }
    return NULL;
}

/* Tells whether it was the proxy that could not be reached: libcurl names the host that it failed at. */
static bool is_failure_of_proxy(const struct http_try *t, CURLcode code)
{
    ACT_AUTOFREE char *host = act_strndup(t->peer->name, strcspn(t->peer->name, ":["));

    if ((t->peer->local || t->call->direct) && !(t->call->tls && t->call->tls->proxy))
        return false;
    return code == CURLE_COULDNT_RESOLVE_PROXY || (code == LINE_TOO_LONG && t->handle->sends == 0) ||
           (code == CURLE_COULDNT_CONNECT && t->handle->why[0] && !strstr(t->handle->why, host));
}

/* Says that the proxy refused a tunnel. Returns whether that may pass. */
static bool describe_refusal(struct http_try *t, const char *proxy, int status)
{
    struct act_error *err = &t->call->error;
    bool may_pass = http_may_pass(status);

    act_error_set(err, may_pass ? ACT_TEMPORARY : ACT_DENIED, "cannot reach %s: the proxy '%s' refuses: HTTP %d",
                  t->peer->name, proxy, status);
    if (status == 407)
        act_error_hint(err, "it wants a user and a password: http://USER:PASSWORD@HOST:PORT");
    err->network = true;
    return may_pass;
}

/* Describes a failure at a proxy; false: it has nothing to do with one. libcurl's own words may have the password in
 * them. */
static bool describe_proxy(struct http_try *t, CURLcode code, bool *out_may_pass)
{
    ACT_AUTOFREE char *proxy = proxy_of(t->call);
    long status = 0, errnum = 0;
    char text[128];

    curl_easy_getinfo(t->handle->easy, CURLINFO_HTTP_CONNECTCODE, &status);
    if (proxy && status >= 300) {
        *out_may_pass = describe_refusal(t, proxy, (int)status);
        return true;
    }
    if (!proxy || !is_failure_of_proxy(t, code))
        return false;
    curl_easy_getinfo(t->handle->easy, CURLINFO_OS_ERRNO, &errnum);
    act_error_set(&t->call->error, ACT_TEMPORARY, "cannot reach %s: the proxy '%s' cannot be used: %s", t->peer->name,
                  proxy,
                  code == CURLE_COULDNT_RESOLVE_PROXY ? "its name cannot be resolved"
                  : code == LINE_TOO_LONG             ? "of its response, " NO_END
                  : errnum                            ? strerror_r((int)errnum, text, sizeof(text))
                                                      : "no connection");
    t->call->error.network = true;
    *out_may_pass = true;
    return true;
}

/* ---- peers ---- */

/* Returns the system's words for a failed connection. */
static const char *connect_reason(const struct http_try *t, char *text, size_t size)
{
    long errnum = 0;

    curl_easy_getinfo(t->handle->easy, CURLINFO_OS_ERRNO, &errnum);
    return errnum ? strerror_r((int)errnum, text, size) : NULL;
}

static void describe_delay(struct http_try *t, CURLcode code)
{
    struct act_error *err = &t->call->error;

    if (t->handle->sends == 0)
        act_error_set(err, ACT_TEMPORARY, "cannot reach %s: no connection within %d s", t->peer->name,
                      t->http->options.connect_timeout_s);
    else if (code == CURLE_ABORTED_BY_CALLBACK)
        act_error_set(err, ACT_TIMEOUT, "%s sent and took nothing for %d s", t->peer->name,
                      t->http->options.stall_timeout_s);
    else
        act_error_set(err, ACT_TIMEOUT, "%s sent or took less than 1 KiB/s for %d s", t->peer->name,
                      t->http->options.stall_timeout_s);
    err->network = true;
}

bool http_describe_failure(struct http_try *t, CURLcode code)
{
    struct act_error *err = &t->call->error;
    const char *reason = NULL;
    enum failure_kind kind = OTHER;
    bool may_pass;
    char text[128];

    if (describe_proxy(t, code, &may_pass))
        return may_pass;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (kinds[i].code == code) {
            kind = kinds[i].kind;
            reason = kinds[i].reason;
        }
    if (code == CURLE_COULDNT_CONNECT)
        reason = connect_reason(t, text, sizeof(text));
    if (!reason)
        reason = t->handle->why[0] ? t->handle->why : curl_easy_strerror(code);

    switch (kind) {
    case UNREACHABLE:
        act_error_set(err, ACT_TEMPORARY, "cannot reach %s: %s", t->peer->name, reason);
        err->network = true;
        return true;
    case BROKEN:
        act_error_set(err, ACT_TEMPORARY, "the connection to %s broke: %s", t->peer->name, reason);
        err->network = true;
        return true;
    case SLOW:
        describe_delay(t, code);
        return true;
    case UNTRUSTED:
        act_error_set(err, ACT_DENIED, "cannot trust %s: %s", t->peer->name, reason);
        act_error_hint(err, "%s",
                       t->call->tls && t->call->tls->hint ? t->call->tls->hint
                       : t->http->ca_file                 ? "name a file with the certificates to trust in ACT_CA_FILE"
                                          : "there are no certificates of authorities here: install ca-certificates, "
                                            "or name a file with them in ACT_CA_FILE");
        return false;
    case NO_CERTIFICATES:
        act_error_set(err, ACT_CONFIG, "cannot use the certificates in '%s': %s",
                      t->http->ca_file ? t->http->ca_file : "(system)", reason);
        act_error_hint(err, "set ACT_CA_FILE to a file of PEM certificates");
        return false;
    case REFUSED:
        act_error_set(err, ACT_FAIL, "the response of %s is not acceptable: %s", t->peer->name,
                      t->handle->refused[0] ? t->handle->refused : reason);
        return false;
    case OTHER:
        break;
    }
    act_error_set(err, ACT_FAIL, "the request to %s failed: %s", t->peer->name, reason);
    return false;
}
