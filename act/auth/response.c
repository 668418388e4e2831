/* response.c - reads the responses of token endpoints and the Azure CLI, and the claims of tokens. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "auth/token_internal.h"
#include "base/clock.h"
#include "base/dirs.h"
#include "base/hash.h"
#include "base/units.h"
#include "codec/json.h"

enum {
    MARGIN_S = 300,         /* a token is renewed so long before its end */
    LONG_LIFE_S = 2 * 3600, /* above, that of a managed identity after half of its life */
    MAX_CLAIMS = 4096,
};

bool token_tenant_is_valid(const char *tenant)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.";
    size_t n = strlen(tenant);

    return n > 0 && n <= 253 && strspn(tenant, letters) == n && tenant[0] != '.' && tenant[0] != '-';
}

void token_release(struct token *token)
{
    act_wipe(&token->text);
    *token = (struct token){0};
}

void token_grant_release(struct token_grant *grant)
{
    act_wipe(&grant->refresh_token);
    free(grant->tenant);
    free(grant->client);
    *grant = (struct token_grant){0};
}

char *token_resource(const char *scope)
{
    static const char end[] = "/.default";
    size_t n = strlen(scope);

    return act_strndup(scope, act_ends_with(scope, end) ? n - strlen(end) : n);
}

/* ---- times ---- */

int64_t token_number(const json_t *value)
{
    int64_t number = -1;

    if (json_is_integer(value))
        number = json_integer_value(value);
    else if (json_is_real(value) && json_real_value(value) > 0 && json_real_value(value) < 1e15)
        number = (int64_t)json_real_value(value);
    else if (json_is_string(value) && !act_int_from_text(json_string_value(value), &number))
        number = -1;
    return number < 0 ? -1 : number;
}

int64_t token_local_time(const char *text)
{
    struct tm tm = {.tm_isdst = -1};
    char *rest = strptime(text, "%Y-%m-%d %H:%M:%S", &tm);

    if (!rest || (*rest && *rest != '.'))
        return -1;
    return (int64_t)mktime(&tm);
}

/* A token that lives shorter than the margin is used for half of its life. */
int64_t token_refresh_time(int64_t now_s, int64_t expires_s, bool half_life)
{
    int64_t life = expires_s - now_s;

    if (half_life && life > LONG_LIFE_S)
        return now_s + life / 2;
    return life / 2 < MARGIN_S ? now_s + life / 2 : expires_s - MARGIN_S;
}

/* ---- claims ---- */

/* Decodes base64url without padding (RFC 4648 section 5), as tokens have it. Returns a new, terminated buffer; NULL: it
 * is malformed. */
static char *decode_base64url(const char *text, size_t len)
{
    struct act_buf base64 = {0};
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        act_buf_addc(&base64, (char)(text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i]));
    while (base64.len % 4)
        act_buf_addc(&base64, '=');
    ACT_AUTOFREE char *padded = act_buf_steal(&base64);
    uint8_t *bytes = act_base64_decode(padded, &n);
    if (!bytes)
        return NULL;
    char *out = act_strndup((const char *)bytes, n);
    free(bytes);
    return out;
}

/* Returns the claims of a token, a new reference; NULL: text is not a JSON web token. */
static json_t *claims_of(const char *text)
{
    const char *first = strchr(text, '.'), *second = first ? strchr(first + 1, '.') : NULL;
    json_t *claims = NULL;

    if (!second)
        return NULL;
    ACT_AUTOFREE char *json = decode_base64url(first + 1, (size_t)(second - first - 1));
    if (!json || codec_json_parse(json, strlen(json), "token", &claims, NULL) < 0)
        return NULL;
    if (json_is_object(claims))
        return claims;
    json_decref(claims);
    return NULL;
}

static char *first_claim(const json_t *claims, const char *const *names)
{
    for (; *names; names++) {
        const char *value = codec_json_str(claims, *names, NULL);
        if (value && *value)
            return act_strdup(value);
    }
    return NULL;
}

bool token_read_identity(const char *text, struct token_identity *out)
{
    static const char *const names[] = {"upn", "preferred_username", "unique_name", NULL};
    static const char *const apps[] = {"appid", "azp", NULL};
    static const char *const objects[] = {"oid", "sub", NULL}, *const tenants[] = {"tid", NULL};
    static const char *const audiences[] = {"aud", NULL};
    CODEC_AUTOJSON json_t *claims = claims_of(text);

    *out = (struct token_identity){0};
    if (!claims)
        return false;
    out->name = first_claim(claims, names);
    out->app_id = first_claim(claims, apps);
    out->object_id = first_claim(claims, objects);
    out->tenant = first_claim(claims, tenants);
    out->audience = first_claim(claims, audiences);
    out->expires_s = token_number(json_object_get(claims, "exp"));
    return true;
}

void token_identity_release(struct token_identity *identity)
{
    free(identity->name);
    free(identity->app_id);
    free(identity->object_id);
    free(identity->tenant);
    free(identity->audience);
    free(identity->source);
    *identity = (struct token_identity){0};
}

/* ---- responses ---- */

/* Returns when a token ends by its own claims, and *out_life_s, its whole lifetime; -1: the claims do not say. */
static int64_t claimed_times(const char *text, int64_t *out_life_s)
{
    CODEC_AUTOJSON json_t *claims = claims_of(text);
    int64_t end_s = token_number(json_object_get(claims, "exp"));
    int64_t begin_s = token_number(json_object_get(claims, "iat"));

    *out_life_s = begin_s >= 0 && end_s > begin_s ? end_s - begin_s : -1;
    return end_s;
}

/* Tells whether a token can go into a header line. */
static bool is_header_value(const char *text)
{
    for (const char *c = text; *c; c++)
        if (*c <= ' ' || *c > '~')
            return false;
    return *text != '\0';
}

/* Returns when a token ends by the clock of this machine; -1: unknown. Absolute times follow the clock of the service,
 * local times ours. IMDS hands out cached tokens with their original expires_in, so absolute times come first. */
static int64_t end_of_token(const json_t *response, const char *text, int64_t now_s, int64_t ahead_s)
{
    const char *local = codec_json_str(response, "expiresOn", NULL);
    int64_t on = token_number(json_object_get(response, "expires_on"));
    int64_t in = token_number(json_object_get(response, "expires_in"));
    int64_t life_s, claimed = claimed_times(text, &life_s), end_s = -1;

    if (on >= 0)
        end_s = on - ahead_s;
    else if (in >= 0 && in < INT32_MAX)
        end_s = now_s + in;
    else if (local)
        end_s = token_local_time(local);
    if (end_s < 0 && claimed >= 0)
        end_s = claimed - ahead_s;
    return life_s > 0 && end_s > now_s + life_s ? now_s + life_s : end_s;
}

int token_take(const json_t *response, const struct token_source *source, int64_t now_s, int64_t ahead_s,
               struct token *out, struct act_error *err)
{
    const char *text = codec_json_str(response, "access_token", codec_json_str(response, "accessToken", NULL));
    int64_t end_s = text && is_header_value(text) ? end_of_token(response, text, now_s, ahead_s) : -1;
    char then[ACT_TIME_TEXT], now[ACT_TIME_TEXT];

    if (end_s < 0)
        return act_error_set(err, ACT_FAIL, "the response has no token that can be used");
    if (end_s <= now_s) {
        act_time_to_iso(end_s, then);
        act_time_to_iso(now_s, now);
        return act_error_set(err, ACT_FAIL,
                             "the token in the response ended at %s, but the clock of this machine says %s; is "
                             "that clock right?",
                             then, now);
    }
    token_release(out);
    *out = (struct token){.text = act_strdup(text),
                          .expires_s = end_s,
                          .refresh_s = token_refresh_time(now_s, end_s, source->has_half_life)};
    return 0;
}

/* Returns the first line, without anything that could be a token. New string. */
static char *one_line(const char *text)
{
    ACT_AUTOFREE char *line = act_strndup(text, strcspn(text, "\r\n"));

    return http_redact_text(line);
}

json_t *token_json_of(const struct http_call *call)
{
    json_t *response = NULL;

    if (call->rc < 0 || call->body_text.len == 0 ||
        codec_json_parse(call->body_text.data, call->body_text.len, "response", &response, NULL) < 0)
        return NULL;
    return response;
}

void token_describe_response(const struct http_call *call, const char *what, struct act_error *err)
{
    CODEC_AUTOJSON json_t *response = token_json_of(call);
    bool may_pass = call->status == 408 || call->status == 429 || call->status >= 500;
    const char *code = codec_json_str(response, "error", "");
    const char *id = codec_json_str(response, "correlation_id", codec_json_str(response, "correlationId", ""));
    ACT_AUTOFREE char *why =
        one_line(codec_json_str(response, "error_description", codec_json_str(response, "message", "")));
    act_error_set(err, may_pass ? ACT_TEMPORARY : ACT_DENIED, "%s: HTTP %d%s%s%s%s%s%s%s", what, call->status,
                  *code ? " " : "", code, *why ? ": " : "", why, *id ? " (correlation id " : "", id, *id ? ")" : "");
    err->http_status = call->status;
    snprintf(err->service_code, sizeof(err->service_code), "%s", code);
}

/* ---- challenges ---- */

/* Returns the value of name="..." or name=... in the header, a new string; NULL: it is not there. */
static char *parameter(const char *header, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = strcasestr(header, name); at; at = strcasestr(at + 1, name)) {
        bool begins = at == header || strchr(" ,\t", at[-1]);
        if (!begins || at[n] != '=')
            continue;
        const char *value = at + n + 1;
        bool quoted = *value == '"';
        return act_strndup(value + quoted, strcspn(value + quoted, quoted ? "\"" : ", \t"));
    }
    return NULL;
}

/* Returns the first segment of the path: https://login.microsoftonline.com/<tenant>/oauth2/authorize. Some names stand
 * for any tenant. */
static char *tenant_in(const char *url)
{
    static const char *const any[] = {"common", "organizations", "consumers"};
    const char *host = strstr(url, "://");
    const char *path = host ? strchr(host + 3, '/') : NULL;

    if (!path)
        return NULL;
    char *tenant = act_strndup(path + 1, strcspn(path + 1, "/"));
    bool is_one = token_tenant_is_valid(tenant);
    for (size_t i = 0; i < sizeof(any) / sizeof(any[0]); i++)
        is_one = is_one && strcasecmp(tenant, any[i]) != 0;
    if (is_one)
        return tenant;
    free(tenant);
    return NULL;
}

/* It will be shown as part of a command, so only base64 characters are allowed. */
static bool response_is_base64(const char *text)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=";
    size_t n = strlen(text);

    return n > 0 && n <= MAX_CLAIMS && strspn(text, letters) == n;
}

void token_read_challenge(const char *header, struct token_challenge *out)
{
    *out = (struct token_challenge){0};
    if (!header || strncasecmp(header, "Bearer", 6) != 0)
        return;
    char *named = parameter(header, "authorization_uri");
    ACT_AUTOFREE char *uri = named ? named : parameter(header, "authorization"); /* as key vaults call it */
    out->claims = parameter(header, "claims");
    if (out->claims && !response_is_base64(out->claims)) {
        free(out->claims);
        out->claims = NULL;
    }
    if (uri)
        out->tenant = tenant_in(uri);
}

bool token_is_of_tenant(const char *text, const char *tenant)
{
    ACT_AUTO(token_identity) who = {0};

    return token_read_identity(text, &who) && who.tenant && strcasecmp(who.tenant, tenant) == 0;
}

bool token_follows(const struct token_challenge *challenge, const struct token_want *want, const char *text)
{
    return challenge->tenant && !want->tenant && !act_env("AZURE_TENANT_ID") &&
           !token_is_of_tenant(text, challenge->tenant);
}

void token_challenge_release(struct token_challenge *challenge)
{
    free(challenge->tenant);
    free(challenge->claims);
    *challenge = (struct token_challenge){0};
}

char *token_claims_command(const struct token_challenge *challenge, const struct token_want *want)
{
    const char *tenant = challenge->tenant ? challenge->tenant : want->tenant;

    return act_sprintf("az login --claims-challenge %s --scope %s%s%s", challenge->claims, want->scope,
                       tenant ? " --tenant " : "", tenant ? tenant : "");
}
