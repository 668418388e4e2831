/* url.c - URLs as text: encodes them, hides their secrets, finds the host they lead to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/host.h"
#include "http/http_internal.h"

static bool is_unreserved(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr("-._~", c));
}

char *http_encode(const char *text, bool keep_slash)
{
    struct act_buf out = {0};

    for (const char *c = text; *c; c++) {
        if (is_unreserved(*c) || (keep_slash && *c == '/'))
            act_buf_addc(&out, *c);
        else
            act_buf_addf(&out, "%%%02X", (unsigned char)*c);
    }
    return act_buf_steal(&out);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Invalid escapes are left as they are, and so is %00, which no string can hold. */
char *http_decode(const char *text)
{
    struct act_buf out = {0};

    for (const char *c = text; *c; c++) {
        int high = *c == '%' ? hex_value(c[1]) : -1;
        int low = high >= 0 ? hex_value(c[2]) : -1;
        if (low >= 0 && high + low > 0) {
            act_buf_addc(&out, (char)(high << 4 | low));
            c += 2;
        } else {
            act_buf_addc(&out, *c);
        }
    }
    return act_buf_steal(&out);
}

static bool is_secret_name(const char *name, size_t len)
{
    static const char *const secrets[] = {
        "sig",         "code",      "token",         "access_token", "refresh_token",
        "password",    "key",       "client_secret", "secret",       "signature",
        "id_token",    "apikey",    "api-key",       "assertion",    "client_assertion",
        "device_code", "user_code", "refreshtoken",  "accesstoken",  NULL};
    ACT_AUTOFREE char *raw = act_strndup(name, len);
    ACT_AUTOFREE char *plain = http_decode(raw);

    for (size_t i = 0; secrets[i]; i++)
        if (strcasecmp(plain, secrets[i]) == 0)
            return true;
    return false;
}

/* Appends the part before the query, without a user and password before the host. */
static void url_add_base(struct act_buf *out, const char *url, size_t len)
{
    const char *scheme_end = memmem(url, len, "://", 3);
    const char *host = scheme_end ? scheme_end + 3 : url, *end = url + len;
    const char *slash = memchr(host, '/', (size_t)(end - host));
    const char *at = memrchr(host, '@', (size_t)((slash ? slash : end) - host));

    act_buf_add(out, url, (size_t)(host - url));
    if (at)
        act_buf_adds(out, "REDACTED");
    act_buf_add(out, at ? at : host, (size_t)(end - (at ? at : host)));
}

char *http_redact_url(const char *url)
{
    struct act_buf out = {0};
    const char *p = url + strcspn(url, "?#");

    url_add_base(&out, url, (size_t)(p - url));
    while (*p) {
        act_buf_addc(&out, *p++);
        size_t name_len = strcspn(p, "=?&#"), len = strcspn(p, "&#");
        if (p[name_len] == '=' && is_secret_name(p, name_len)) {
            act_buf_add(&out, p, name_len);
            act_buf_adds(&out, "=REDACTED");
        } else {
            act_buf_add(&out, p, len);
        }
        p += len;
    }
    return act_buf_steal(&out);
}

/* Returns how many bytes at text are one token, which begins with "eyJ" as base64 of a JSON object does; 0: none. */
static size_t token_length(const char *text)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=";
    size_t n = strncmp(text, "eyJ", 3) == 0 ? strspn(text, letters) : 0;

    return n > 20 ? n : 0;
}

/* Returns how many bytes separate a name from its value here: in a query, in one that was encoded once or twice, in
 * JSON and YAML; 0: none. */
static size_t separator_length(const char *text)
{
    static const char *const all[] = {"=", "%3D", "%253D", "\\u003d", "\":\"", "\": \"", ": ", ":"};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (strncasecmp(text, all[i], strlen(all[i])) == 0)
            return strlen(all[i]);
    return 0;
}

/* Returns how many bytes at text are the name and value of a SAS's signature or of an account key; 0: none. *out_name:
 * the length of the name and its separator. */
static size_t signature_length(const char *text, size_t *out_name)
{
    enum { SHORTEST = 20 }; /* of 32 bytes in base64 it is 44 at least */
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/%=_-";
    static const char *const names[] = {"sig", "accountkey", "account-key", "account_key"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t name = strlen(names[i]);
        size_t between = strncasecmp(text, names[i], name) == 0 ? separator_length(text + name) : 0;
        size_t n = between ? strspn(text + name + between, letters) : 0;
        *out_name = name + between;
        if (n >= SHORTEST)
            return name + between + n;
    }
    return 0;
}

/* Returns how many bytes at text are an account key, which is 64 bytes in base64; 0: none. */
static size_t key_length(const char *text)
{
    enum { LETTERS = 86 };
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    return strspn(text, letters) == LETTERS && act_starts_with(text + LETTERS, "==") ? LETTERS + 2 : 0;
}

char *http_redact_text(const char *text)
{
    struct act_buf out = {0};

    while (*text) {
        size_t name = 0, n = token_length(text);
        n = n ? n : key_length(text);
        n = n ? n : signature_length(text, &name);
        if (n) {
            act_buf_add(&out, text, name);
            act_buf_adds(&out, "REDACTED");
        } else {
            act_buf_addc(&out, *text);
        }
        text += n ? n : 1;
    }
    return act_buf_steal(&out);
}

/* The parts of an http or https URL that say whom it leads to, as libcurl takes it when it connects. */
struct url_peer {
    char *scheme, *host, *port;
};

static bool url_take_apart(const char *url, struct url_peer *out)
{
    CURLU *u = curl_url();
    bool ok = u && curl_url_set(u, CURLUPART_URL, url, CURLU_PATH_AS_IS | CURLU_DISALLOW_USER) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_SCHEME, &out->scheme, 0) == CURLUE_OK &&
              (strcmp(out->scheme, "http") == 0 || strcmp(out->scheme, "https") == 0) &&
              curl_url_get(u, CURLUPART_HOST, &out->host, 0) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_PORT, &out->port, CURLU_DEFAULT_PORT) == CURLUE_OK;

    curl_url_cleanup(u);
    return ok;
}

static void url_peer_release(struct url_peer *peer)
{
    curl_free(peer->scheme);
    curl_free(peer->host);
    curl_free(peer->port);
}

/* Tells whether the host is a name of ASCII letters, digits, '-' and '_' between dots, or an address: a resolver may
 * read any other spelling as a different name. */
static bool is_plain_host(const char *host)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
    size_t n = strlen(host);

    if (*host == '[')
        return host[1 + strspn(host + 1, "0123456789abcdef:.")] == ']';
    return n > 0 && *host != '.' && host[strspn(host, letters)] == '\0' && !strstr(host, "..");
}

char *http_host(const char *url)
{
    struct url_peer peer = {0};
    char *host = url_take_apart(url, &peer) ? act_strdup(peer.host) : NULL;
    size_t n = host ? strlen(host) : 0;

    url_peer_release(&peer);
    if (n > 1 && host[n - 1] == '.') /* the same name, said absolutely */
        host[--n] = '\0';
    for (size_t i = 0; i < n; i++)
        if (host[i] >= 'A' && host[i] <= 'Z')
            host[i] = (char)(host[i] + 'a' - 'A');
    if (host && !is_plain_host(host)) {
        free(host);
        host = NULL;
    }
    return host;
}

int http_port(const char *url)
{
    ACT_AUTO(url_peer) peer = {0};

    return url_take_apart(url, &peer) ? atoi(peer.port) : 0;
}

bool http_is_here(const char *url)
{
    ACT_AUTO(url_peer) peer = {0};

    return url_take_apart(url, &peer) && act_host_is_loopback(peer.host);
}

bool http_is_private(const char *url)
{
    ACT_AUTO(url_peer) peer = {0};

    return url_take_apart(url, &peer) && (strcmp(peer.scheme, "https") == 0 || act_host_is_loopback(peer.host));
}

/* Addresses 169.254.x.x are those of the link: the metadata service, and identities of hosted jobs. */
char *http_peer_name(const char *url, bool *out_local)
{
    ACT_AUTO(url_peer) peer = {0};
    char *name = NULL;

    if (url_take_apart(url, &peer)) {
        name = act_sprintf("%s:%s", peer.host, peer.port);
        *out_local = act_host_is_loopback(peer.host) || act_host_is_below(peer.host, "169.254.");
    }
    return name;
}
