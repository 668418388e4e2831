/* login.c - tokens of the login double, and the keys that they are given to sign URLs with. */
#include "auth.h"
#include "service.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKEW = 300, KEY_LIFE = 7 * 24 * 3600, CLAIMS_MAX = 4096, MEMBER = 256 };

#define AUDIENCE "https://storage.azure.com"

static uint8_t login_key[128];
static size_t login_key_len;
static const char *login_tenant = "";

bool login_set(const char *key, const char *tenant)
{
    long n = base64_decode(key, login_key, sizeof(login_key));

    login_key_len = n > 0 ? (size_t)n : 0;
    login_tenant = tenant;
    return n > 0;
}

static void hmac(const uint8_t *key, size_t key_len, const char *text, size_t n, uint8_t out[SHA256_DIGEST_LENGTH])
{
    HMAC(EVP_sha256(), key, (int)key_len, (const uint8_t *)text, n, out, NULL);
}

/* ---- tokens: JSON web tokens with HS256 */

/* Without padding, and with '-' and '_'. Returns the length or -1. */
static long blob_login_decode(const char *s, size_t n, uint8_t *out, size_t cap)
{
    struct text plain = {0};

    for (size_t i = 0; i < n; i++)
        text_add(&plain, (const char[]){(char)(s[i] == '-' ? '+' : s[i] == '_' ? '/' : s[i])}, 1);
    while (plain.n % 4)
        text_add(&plain, "=", 1);
    long len = plain.n ? base64_decode(plain.s, out, cap) : -1;
    text_free(&plain);
    return len;
}

/* The text or number of a claim of one line of JSON without blanks; "" when it is not there. */
static void blob_login_claim(const char *claims, const char *name, char out[MEMBER])
{
    char pattern[64];

    snprintf(pattern, sizeof(pattern), "\"%s\":", name);
    const char *at = strstr(claims, pattern);
    at = at ? at + strlen(pattern) : "";
    bool quoted = *at == '"';
    snprintf(out, MEMBER, "%.*s", (int)strcspn(at + quoted, quoted ? "\"" : ",}"), at + quoted);
}

/* The claims of a token that the login double signed; false: it is none. */
static bool blob_login_verify(const char *token, char claims[CLAIMS_MAX])
{
    const char *first = strchr(token, '.'), *second = first ? strchr(first + 1, '.') : NULL;
    uint8_t signature[64], wanted[SHA256_DIGEST_LENGTH];

    if (!second || !login_key_len ||
        blob_login_decode(second + 1, strlen(second + 1), signature, sizeof(signature)) != 32)
        return false;
    hmac(login_key, login_key_len, token, (size_t)(second - token), wanted);
    long n = blob_login_decode(first + 1, (size_t)(second - first - 1), (uint8_t *)claims, CLAIMS_MAX - 1);
    if (n < 0 || memcmp(signature, wanted, sizeof(wanted)) != 0)
        return false;
    claims[n] = '\0';
    return true;
}

static int blob_login_refuse(struct reply *reply, const char *claims)
{
    text_addf(&reply->head,
              "WWW-Authenticate: Bearer authorization_uri=https://login.microsoftonline.com/%s/oauth2/authorize "
              "resource_id=" AUDIENCE "%s%s%s\r\n",
              *login_tenant ? login_tenant : "none", *claims ? ", error=\"insufficient_claims\", claims=\"" : "",
              claims, *claims ? "\"" : "");
    return reply_error(reply, 401, "InvalidAuthenticationInfo");
}

static bool is_in_time(const char *claims)
{
    char from[MEMBER], until[MEMBER];

    blob_login_claim(claims, "nbf", from);
    blob_login_claim(claims, "exp", until);
    return atoll(until) > blobs_now() && atoll(from) <= blobs_now() + SKEW;
}

/* A token that must prove more says with what; one that may do less says what. */
int login_check(struct request *r, struct reply *reply, const char *token)
{
    char claims[CLAIMS_MAX], audience[MEMBER], tenant[MEMBER], more[MEMBER];
    const char *version = header(r, "x-ms-version");

    if (!blob_login_verify(token, claims))
        return blob_login_refuse(reply, "");
    blob_login_claim(claims, "aud", audience);
    blob_login_claim(claims, "tid", tenant);
    blob_login_claim(claims, "challenge", more);
    if (strcmp(audience, AUDIENCE) != 0 || strcmp(tenant, login_tenant) != 0 || !is_in_time(claims) || *more)
        return blob_login_refuse(reply, more);
    const char *intent = header(r, "x-ms-file-request-intent");
    if (auth_are_files() && (!intent || strcmp(intent, "backup") != 0))
        return reply_error(reply, 400, intent ? "InvalidHeaderValue" : "MissingRequiredHeader");
    const char *first = auth_are_files() ? "2022-11-02" : "2017-11-09";
    if (header(r, "host") && (!version || strcmp(version, first) < 0))
        return reply_error(reply, 400, "UnsupportedHeader");
    blob_login_claim(claims, "parts", more); /* as if it had ended before the turn of the parts of a batch */
    if (!header(r, "host") && !strcmp(more, "false"))
        return blob_login_refuse(reply, "");
    blob_login_claim(claims, "rights", r->login_rights);
    blob_login_claim(claims, "oid", r->login_object);
    blob_login_claim(claims, "delegation", more);
    r->rights = *r->login_rights ? r->login_rights : NULL;
    r->may_delegate = strcmp(more, "false") != 0;
    return 0;
}

/* ---- keys for URLs: made of what a URL that was signed with one says of it, so that none is kept */

static void delegated_key(const char *object, const char *tenant, const char *start, const char *expiry,
                          const char *service, const char *version, uint8_t out[SHA256_DIGEST_LENGTH])
{
    struct text t = {0};

    text_addf(&t, "%s|%s|%s|%s|%s|%s", object, tenant, start, expiry, service, version);
    hmac(login_key, login_key_len, t.s, t.n, out);
    text_free(&t);
}

/* The text of an element. */
static bool element(const struct request *r, const char *name, char out[MEMBER])
{
    char tag[64];

    snprintf(tag, sizeof(tag), "<%s>", name);
    const char *at = r->body && r->body->bytes ? strstr((const char *)r->body->bytes, tag) : NULL;
    if (!at)
        return false;
    at += strlen(tag);
    snprintf(out, MEMBER, "%.*s", (int)strcspn(at, "<"), at);
    return true;
}

int give_delegation_key(struct request *r, struct reply *reply)
{
    char start[MEMBER], expiry[MEMBER], value[64];
    const char *version = header(r, "x-ms-version");
    uint8_t key[SHA256_DIGEST_LENGTH];

    if (r->body && r->body->bytes)
        r->body->bytes[r->body->n] = '\0'; /* there is room for it */
    if (!*r->login_object)
        return reply_error(reply, 403, "AuthenticationFailed");
    if (!r->may_delegate)
        return reply_error(reply, 403, "AuthorizationPermissionMismatch");
    if (!element(r, "Start", start) || !element(r, "Expiry", expiry) || date_parse(start) < 0 ||
        date_parse(expiry) <= date_parse(start) || date_parse(expiry) > blobs_now() + KEY_LIFE + SKEW)
        return reply_error(reply, 400, "InvalidXmlNodeValue");
    delegated_key(r->login_object, login_tenant, start, expiry, "b", version, key);
    base64_encode(key, sizeof(key), value);
    text_addf(&reply->body,
              "<?xml version=\"1.0\" encoding=\"utf-8\"?><UserDelegationKey><SignedOid>%s</SignedOid><SignedTid>%s"
              "</SignedTid><SignedStart>%s</SignedStart><SignedExpiry>%s</SignedExpiry><SignedService>b</SignedService>"
              "<SignedVersion>%s</SignedVersion><Value>%s</Value></UserDelegationKey>",
              r->login_object, login_tenant, start, expiry, version, value);
    reply_header(reply, "Content-Type", "application/xml");
    return reply->status = 200;
}

/* The lines of sv 2020-12-06 up to 2025-05-05. */
bool login_signed(const struct request *r)
{
    static const char *const first[] = {"st", "se"}, *const second[] = {"skoid", "sktid", "skt",   "ske",  "sks",
                                                                        "skv",   "saoid", "suoid", "scid", "sip",
                                                                        "spr",   "sv",    "sr"},
                             *const last[] = {"", "ses", "rscc", "rscd", "rsce", "rscl", "rsct"};
    bool blob = strcmp(param(r, "sr"), "c") != 0;
    uint8_t key[SHA256_DIGEST_LENGTH], signature[SHA256_DIGEST_LENGTH];
    struct text t = {0};
    char base64[48];

    delegated_key(param(r, "skoid"), param(r, "sktid"), param(r, "skt"), param(r, "ske"), param(r, "sks"),
                  param(r, "skv"), key);
    text_str(&t, param(r, "sp"));
    for (size_t i = 0; i < COUNT(first); i++)
        text_addf(&t, "\n%s", param(r, first[i]));
    text_addf(&t, "\n/blob/%s/%s%s%s", r->account, r->container, blob ? "/" : "", blob ? r->blob : "");
    for (size_t i = 0; i < COUNT(second); i++)
        text_addf(&t, "\n%s", param(r, second[i]));
    for (size_t i = 0; i < COUNT(last); i++)
        text_addf(&t, "\n%s", *last[i] ? param(r, last[i]) : "");
    hmac(key, sizeof(key), t.s, t.n, signature);
    text_free(&t);
    base64_encode(signature, sizeof(signature), base64);
    bool known_version = strcmp(param(r, "sv"), "2020-12-06") >= 0 && strcmp(param(r, "sv"), "2025-07-05") < 0;
    return login_key_len && known_version && !strcmp(param(r, "sktid"), login_tenant) &&
           date_parse(param(r, "skt")) <= blobs_now() && date_parse(param(r, "ske")) > blobs_now() &&
           date_parse(param(r, "se")) <= date_parse(param(r, "ske")) && !strcmp(base64, param(r, "sig"));
}
