/* auth.c - puts a shared key signature, a SAS or a login's token on a request. */
#include "auth/auth.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "auth/token_internal.h"
#include "base/clock.h"
#include "base/hash.h"

struct auth {
    enum auth_kind kind;
    char *account;
    uint8_t *key; /* decoded */
    size_t key_len;
    char *sas; /* without '?' */
    struct tokens *tokens;
    struct token_want want;
    char *scope, *tenant; /* those of want */
};

/* --- credentials ---------------------------------------------------------------------------------------- */

/* Copied text may have white space around it; a SAS from the portal may start with '?'. */
static char *cleaned(const char *text, bool is_sas)
{
    size_t start = strspn(text, is_sas ? " \t\r\n?" : " \t\r\n"), len = strlen(text);

    while (len > start && strchr(" \t\r\n", text[len - 1]))
        len--;
    return act_strndup(text + start, len - start);
}

static int auth_take_key(struct auth *auth, const char *key, struct act_error *err)
{
    ACT_AUTOWIPE char *text = cleaned(key, false);

    auth->kind = AUTH_KEY;
    auth->key = act_base64_decode(text, &auth->key_len);
    if (!auth->key || auth->key_len == 0)
        return act_error_set(err, ACT_CONFIG, "the key of account '%s' is not valid base64", auth->account);
    if (!*auth->account)
        return act_error_set(err, ACT_CONFIG, "an account key needs the name of its account");
    return 0;
}

static int take_sas(struct auth *auth, const char *sas, struct act_error *err)
{
    auth->kind = AUTH_SAS;
    auth->sas = cleaned(sas, true);
    for (const char *c = auth->sas; *c; c++)
        if (!isgraph((unsigned char)*c) || *c == '#')
            return act_error_set(err, ACT_CONFIG, "the SAS of account '%s' has a character that no URL can have",
                                 auth->account);
    if (!act_starts_with(auth->sas, "sig=") && !strstr(auth->sas, "&sig="))
        return act_error_set(err, ACT_CONFIG, "the SAS of account '%s' has no signature (sig=)", auth->account);
    return 0;
}

int auth_new(const char *account, const char *key, const char *sas, enum auth_kind prefer, struct auth **out,
             struct act_error *err)
{
    struct auth *auth = act_calloc(1, sizeof(*auth));
    bool has_key = key && *key, has_sas = sas && *sas;
    int rc = 0;

    auth->account = act_strdup(account ? account : "");
    if (has_sas && (!has_key || prefer == AUTH_SAS))
        rc = take_sas(auth, sas, err);
    else if (has_key)
        rc = auth_take_key(auth, key, err);
    if (rc != 0) {
        auth_free(auth);
        return rc;
    }
    *out = auth;
    return 0;
}

struct auth *auth_new_login(const char *account, struct tokens *tokens, const struct token_want *want)
{
    struct auth *auth = act_calloc(1, sizeof(*auth));

    *auth = (struct auth){.kind = AUTH_LOGIN, .account = act_strdup(account), .tokens = tokens, .want = *want};
    auth->want.scope = auth->scope = act_strdup(want->scope);
    auth->want.tenant = auth->tenant = act_strdup(want->tenant);
    return auth;
}

void auth_free(struct auth *auth)
{
    if (!auth)
        return;
    act_wipe_bytes(auth->key, auth->key_len);
    act_wipe(&auth->sas);
    free(auth->account);
    free(auth->scope);
    free(auth->tenant);
    free(auth);
}

enum auth_kind auth_kind_of(const struct auth *auth)
{
    return auth->kind;
}

const char *auth_account(const struct auth *auth)
{
    return auth->account;
}

/* --- the string to sign --------------------------------------------------------------------------------- */

static void auth_to_lower(char *text)
{
    for (char *c = text; *c; c++)
        *c = (char)tolower((unsigned char)*c);
}

/* Adds a pair, and frees both strings; a name may come twice. */
static void add_pair(struct http_headers *pairs, char *name, char *value)
{
    auth_to_lower(name);
    http_header_add(pairs, name, strlen(name), value, strlen(value));
    free(name);
    free(value);
}

static int by_name_and_value(const void *a, const void *b)
{
    const struct http_header *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order ? order : strcmp(x->value, y->value);
}

static void sort_pairs(struct http_headers *pairs)
{
    if (pairs->n > 1)
        qsort(pairs->v, pairs->n, sizeof(*pairs->v), by_name_and_value);
}

static void auth_add_line(struct act_buf *out, const char *text)
{
    if (text)
        act_buf_adds(out, text);
    act_buf_addc(out, '\n');
}

/* Adds the lines of every request; a length of 0 and headers that are not sent are empty lines. */
static void add_standard_headers(struct act_buf *out, const struct http_call *call)
{
    static const char *const before_length[] = {"Content-Encoding", "Content-Language"};
    static const char *const behind_length[] = {"Content-MD5",         "Content-Type", "Date",
                                                "If-Modified-Since",   "If-Match",     "If-None-Match",
                                                "If-Unmodified-Since", "Range"};

    for (size_t i = 0; i < sizeof(before_length) / sizeof(before_length[0]); i++)
        auth_add_line(out, http_header_get(&call->headers, before_length[i]));
    if (call->body_len > 0)
        act_buf_addf(out, "%zu", call->body_len);
    act_buf_addc(out, '\n');
    for (size_t i = 0; i < sizeof(behind_length) / sizeof(behind_length[0]); i++)
        auth_add_line(out, http_header_get(&call->headers, behind_length[i]));
}

static int by_header_name(const void *a, const void *b)
{
    const struct http_header *const *x = a, *const *y = b;

    return strcasecmp((*x)->name, (*y)->name);
}

/* Adds "name:value", the name in lower case, the value without white space around it. */
static void add_service_header(struct act_buf *out, const struct http_header *header)
{
    const char *value = header->value + strspn(header->value, " \t\r\n");
    size_t at = out->len, len = strlen(value);

    while (len > 0 && strchr(" \t\r\n", value[len - 1]))
        len--;
    act_buf_adds(out, header->name);
    auth_to_lower(out->data + at);
    act_buf_addc(out, ':');
    act_buf_add(out, value, len);
    act_buf_addc(out, '\n');
}

static void auth_add_service_headers(struct act_buf *out, const struct http_call *call)
{
    const struct http_header **found = act_alloc((call->headers.n + 1) * sizeof(*found));
    size_t n = 0;

    for (size_t i = 0; i < call->headers.n; i++)
        if (strncasecmp(call->headers.v[i].name, "x-ms-", 5) == 0)
            found[n++] = &call->headers.v[i];
    qsort(found, n, sizeof(*found), by_header_name);
    for (size_t i = 0; i < n; i++)
        add_service_header(out, found[i]);
    free(found);
}

static void split_query(const char *query, size_t len, struct http_headers *pairs)
{
    for (const char *p = query, *end = query + len; p < end;) {
        const char *next = memchr(p, '&', (size_t)(end - p));
        size_t part = (size_t)((next ? next : end) - p), name = part;
        const char *equals = memchr(p, '=', part);
        if (equals)
            name = (size_t)(equals - p);
        ACT_AUTOFREE char *raw_name = act_strndup(p, name);
        ACT_AUTOFREE char *raw_value = equals ? act_strndup(equals + 1, part - name - 1) : act_strdup("");
        if (part > 0)
            add_pair(pairs, http_decode(raw_name), http_decode(raw_value));
        p += part + 1;
    }
}

/* The path stays as it is on the wire; the query is decoded and sorted, one name with several values is one
 * line. */
static void auth_add_resource(struct act_buf *out, const char *account, const char *url)
{
    const char *host = strstr(url, "://");
    const char *path = host ? host + 3 + strcspn(host + 3, "/?#") : url;
    size_t path_len = strcspn(path, "?#");
    const char *query = path + path_len;
    ACT_AUTO(http_headers) pairs = {0};

    act_buf_addf(out, "/%s%.*s", account, path_len ? (int)path_len : 1, path_len ? path : "/");
    if (*query == '?')
        split_query(query + 1, strcspn(query + 1, "#"), &pairs);
    sort_pairs(&pairs);
    for (size_t i = 0; i < pairs.n; i++) {
        if (i > 0 && strcmp(pairs.v[i].name, pairs.v[i - 1].name) == 0)
            act_buf_addf(out, ",%s", pairs.v[i].value);
        else
            act_buf_addf(out, "\n%s:%s", pairs.v[i].name, pairs.v[i].value);
    }
}

char *auth_string_to_sign(const char *account, const struct http_call *call)
{
    struct act_buf out = {0};

    act_buf_addf(&out, "%s\n", call->method);
    add_standard_headers(&out, call);
    auth_add_service_headers(&out, call);
    auth_add_resource(&out, account, call->url);
    return act_buf_steal(&out);
}

char *auth_signature(const struct auth *auth, const char *string_to_sign)
{
    return act_hmac_sha256_base64(auth->key, auth->key_len, string_to_sign, strlen(string_to_sign));
}

/* --- signing -------------------------------------------------------------------------------------------- */

static void sign_with_key(const struct auth *auth, struct http_call *call, int64_t clock_offset_s)
{
    char date[ACT_TIME_TEXT];

    act_time_to_http(act_now_unix_s() + clock_offset_s, date);
    http_header_set(&call->headers, "x-ms-date", date);
    ACT_AUTOFREE char *text = auth_string_to_sign(auth->account, call);
    ACT_AUTOFREE char *signature = auth_signature(auth, text);
    http_header_setf(&call->headers, "Authorization", "SharedKey %s:%s", auth->account, signature);
}

/* Appends the SAS as it is: decoding and encoding it again could change what was signed. */
static void append_sas(const struct auth *auth, struct http_call *call)
{
    char before = 0;

    if (act_ends_with(call->url, auth->sas) && strlen(call->url) > strlen(auth->sas))
        before = call->url[strlen(call->url) - strlen(auth->sas) - 1];
    if (before == '?' || before == '&')
        return;
    const char *query = strchr(call->url, '?');
    const char *joint = !query ? "?" : query[1] ? "&" : "";
    char *url = act_sprintf("%s%s%s", call->url, joint, auth->sas);
    act_wipe(&call->url);
    call->url = url;
}

static int sign_with_token(const struct auth *auth, struct http_call *call, int64_t clock_offset_s,
                           struct act_error *err)
{
    const char *token = token_now(auth->tokens, &auth->want);
    char date[ACT_TIME_TEXT];

    if (!token)
        return act_error_set(err, ACT_TEMPORARY, "the login ended meanwhile");
    act_time_to_http(act_now_unix_s() + clock_offset_s, date);
    http_header_set(&call->headers, "x-ms-date", date);
    http_header_setf(&call->headers, "Authorization", "Bearer %s", token);
    return 0;
}

int auth_sign(const struct auth *auth, struct http_call *call, int64_t clock_offset_s, struct act_error *err)
{
    if (!call->url)
        return act_error_set(err, ACT_USAGE, "a request without an address cannot be signed");
    if (auth->kind == AUTH_KEY)
        sign_with_key(auth, call, clock_offset_s);
    else if (auth->kind == AUTH_SAS)
        append_sas(auth, call);
    else if (auth->kind == AUTH_LOGIN)
        return sign_with_token(auth, call, clock_offset_s, err);
    return 0;
}

/* --- the token of a login ------------------------------------------------------------------------------- */

bool auth_is_ready(const struct auth *auth)
{
    return auth->kind != AUTH_LOGIN || token_is_fresh(auth->tokens, &auth->want);
}

void auth_get_ready(const struct auth *auth, struct token_call *call)
{
    call->want = auth->want;
    token_start(auth->tokens, call);
}

char *auth_bearer(const struct auth *auth)
{
    const char *token = auth->kind == AUTH_LOGIN ? token_now(auth->tokens, &auth->want) : NULL;

    return token ? act_sprintf("Bearer %s", token) : NULL;
}

void auth_refused(struct auth *auth, const char *authorization, const struct token_challenge *challenge)
{
    static const char scheme[] = "Bearer ";

    if (!act_starts_with(authorization, scheme))
        return;
    const char *token = authorization + strlen(scheme);
    token_refused(auth->tokens, &auth->want, token);
    if (token_follows(challenge, &auth->want, token))
        auth->want.tenant = auth->tenant = act_strdup(challenge->tenant);
}

const struct token_want *auth_want(const struct auth *auth)
{
    return &auth->want;
}
