#include "auth.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SKEW = 15 * 60 };

static struct account {
    char *name;
    uint8_t key[128];
    size_t key_len;
} accounts[16];
static size_t n_accounts;
static bool off, of_files;

bool auth_add(const char *account, const char *key)
{
    struct account *a = &accounts[n_accounts];
    long n = base64_decode(key, a->key, sizeof(a->key));

    if (n <= 0 || n_accounts + 1 == COUNT(accounts))
        return false;
    a->name = need(strdup(account));
    a->key_len = (size_t)n;
    n_accounts++;
    return true;
}

const char *auth_account(size_t i)
{
    return i < n_accounts ? accounts[i].name : NULL;
}

void auth_off(void)
{
    off = true;
}

void auth_of_files(void)
{
    of_files = true;
}

bool auth_are_files(void)
{
    return of_files;
}

bool auth_allows(const struct request *r, const char *letters)
{
    return !r->rights || strpbrk(r->rights, letters);
}

static const struct account *blob_auth_find(const char *name)
{
    for (size_t i = 0; i < n_accounts; i++)
        if (!strcmp(accounts[i].name, name))
            return &accounts[i];
    return NULL;
}

static bool signature_fits(const struct account *a, const struct text *t, const char *signature)
{
    uint8_t digest[SHA256_DIGEST_LENGTH];
    char base64[48];

    HMAC(EVP_sha256(), a->key, (int)a->key_len, (const uint8_t *)t->s, t->n, digest, NULL);
    base64_encode(digest, sizeof(digest), base64);
    return !strcmp(base64, signature);
}

/* ---- shared key */

static int blob_auth_by_name(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    int order = strcasecmp(x->name, y->name);

    return order ? order : strcmp(x->value, y->value);
}

static void blob_auth_add_service_headers(struct text *t, const struct request *r)
{
    struct pair sorted[MAX_HEADERS];
    size_t n = 0;

    for (size_t i = 0; i < r->n_headers; i++)
        if (!strncmp(r->headers[i].name, "x-ms-", 5))
            sorted[n++] = r->headers[i];
    qsort(sorted, n, sizeof(sorted[0]), blob_auth_by_name);
    for (size_t i = 0; i < n; i++) {
        for (const char *c = sorted[i].name; *c; c++)
            text_add(t, (const char[]){(char)tolower((unsigned char)*c)}, 1);
        text_add(t, ":", 1);
        text_str(t, sorted[i].value);
        text_add(t, "\n", 1);
    }
}

static void blob_auth_add_resource(struct text *t, const struct request *r)
{
    struct pair sorted[MAX_PARAMS];

    text_add(t, "/", 1);
    text_str(t, r->account);
    text_str(t, r->path);
    memcpy(sorted, r->params, r->n_params * sizeof(sorted[0]));
    qsort(sorted, r->n_params, sizeof(sorted[0]), blob_auth_by_name);
    for (size_t i = 0; i < r->n_params; i++) {
        bool same = i && !strcmp(sorted[i].name, sorted[i - 1].name);
        text_add(t, same ? "," : "\n", 1);
        if (!same) {
            text_str(t, sorted[i].name);
            text_add(t, ":", 1);
        }
        text_str(t, sorted[i].value);
    }
}

static int blob_auth_check_key(struct request *r, struct reply *reply, const struct account *a, const char *signature)
{
    static const char *const standard[] = {
        "content-encoding",  "content-language", "content-length", "content-md5",         "content-type", "date",
        "if-modified-since", "if-match",         "if-none-match",  "if-unmodified-since", "range"};
    static _Thread_local struct text t;
    const char *date = header(r, "x-ms-date");

    text_clear(&t);
    text_str(&t, r->method);
    text_add(&t, "\n", 1);
    for (size_t i = 0; i < COUNT(standard); i++) {
        const char *value = header(r, standard[i]);
        bool skip = !value || (!strcmp(standard[i], "content-length") && !strcmp(value, "0")) ||
                    (!strcmp(standard[i], "date") && date);
        if (!skip)
            text_str(&t, value);
        text_add(&t, "\n", 1);
    }
    blob_auth_add_service_headers(&t, r);
    blob_auth_add_resource(&t, r);
    date = date ? date : header(r, "date");
    int64_t when = date ? date_parse(date) : -1;
    bool in_time = when >= blobs_now() - SKEW && when <= blobs_now() + SKEW;
    if (!in_time || !signature_fits(a, &t, signature))
        return reply_error(reply, 403, "AuthenticationFailed");
    r->by_key = true;
    return 0;
}

/* ---- shared access signatures */

static void blob_auth_add_params(struct text *t, const struct request *r, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        text_add(t, "\n", 1);
        text_str(t, param(r, names[i]));
    }
}

static void text_of_account_sas(struct text *t, const struct request *r)
{
    static const char *const names[] = {"sp", "ss", "srt", "st", "se", "sip", "spr", "sv"};

    text_str(t, r->account);
    blob_auth_add_params(t, r, names, COUNT(names));
    text_str(t, strcmp(param(r, "sv"), "2020-12-06") >= 0 ? "\n" : "");
    text_str(t, param(r, "ses"));
    text_str(t, "\n");
}

/* Of a share or a file: other lines than those of a container or a blob, and no snapshot. */
static void text_of_file_sas(struct text *t, const struct request *r)
{
    static const char *const first[] = {"st", "se"}, *const second[] = {"si", "sip", "spr", "sv"};
    static const char *const last[] = {"rscc", "rscd", "rsce", "rscl", "rsct"};
    bool file = !strcmp(param(r, "sr"), "f");

    text_str(t, param(r, "sp"));
    blob_auth_add_params(t, r, first, COUNT(first));
    text_addf(t, "\n/file/%s/%s%s%s", r->account, r->container, file ? "/" : "", file ? r->blob : "");
    blob_auth_add_params(t, r, second, COUNT(second));
    blob_auth_add_params(t, r, last, COUNT(last));
}

static void text_of_service_sas(struct text *t, const struct request *r)
{
    static const char *const first[] = {"st", "se"}, *const second[] = {"si", "sip", "spr", "sv", "sr"};
    static const char *const last[] = {"rscc", "rscd", "rsce", "rscl", "rsct"};
    bool blob = strcmp(param(r, "sr"), "c") != 0;

    text_str(t, param(r, "sp"));
    blob_auth_add_params(t, r, first, COUNT(first));
    text_addf(t, "\n/blob/%s/%s%s%s", r->account, r->container, blob ? "/" : "", blob ? r->blob : "");
    blob_auth_add_params(t, r, second, COUNT(second));
    text_str(t, strcmp(param(r, "sv"), "2020-12-06") >= 0 ? "\n\n" : "\n"); /* snapshot, encryption scope */
    text_str(t, param(r, "ses"));
    blob_auth_add_params(t, r, last, COUNT(last));
}

/* An account SAS names the kinds of resource that it is good for. */
static bool kind_is_signed(const struct request *r)
{
    char kind = *r->blob ? 'o' : *r->container ? 'c' : 's';
    bool in_container = kind == 'c' && !strcmp(param(r, "comp"), "batch"); /* whose parts are checked on their own */

    return strchr(param(r, "srt"), kind) || in_container;
}

static int check_sas(struct request *r, struct reply *reply, const struct account *a)
{
    static _Thread_local struct text t;
    bool of_account = *param(r, "srt");
    int64_t end = date_parse(param(r, "se")), start = date_parse(param(r, "st"));

    text_clear(&t);
    if (of_account)
        text_of_account_sas(&t, r);
    else if (of_files)
        text_of_file_sas(&t, r);
    else
        text_of_service_sas(&t, r);
    bool fits = *param(r, "skoid") ? login_signed(r) : signature_fits(a, &t, param(r, "sig"));
    if (end < blobs_now() || start > blobs_now() || !fits)
        return reply_error(reply, 403, "AuthenticationFailed");
    if (!strcmp(param(r, "spr"), "https"))
        return reply_error(reply, 403, "AuthorizationProtocolMismatch");
    if (of_account && !strchr(param(r, "ss"), of_files ? 'f' : 'b'))
        return reply_error(reply, 403, "AuthorizationServiceMismatch");
    if (of_account && !kind_is_signed(r))
        return reply_error(reply, 403, "AuthorizationResourceTypeMismatch");
    r->rights = param(r, "sp");
    return 0;
}

int auth_check(struct request *r, struct reply *reply)
{
    const struct account *a = blob_auth_find(r->account);
    const char *authorization = header(r, "authorization");

    if (!a)
        return reply_error(reply, 400, "InvalidUri");
    if (off)
        return 0;
    if (*param(r, "sig"))
        return check_sas(r, reply, a);
    if (!authorization)
        return of_files ? reply_error(reply, 401, "NoAuthenticationInformation")
                        : reply_error(reply, 409, "PublicAccessNotPermitted");
    if (!strncmp(authorization, "Bearer ", 7))
        return login_check(r, reply, authorization + 7);
    size_t n = strlen(a->name);
    if (strncmp(authorization, "SharedKey ", 10) != 0 || strncmp(authorization + 10, a->name, n) != 0 ||
        authorization[10 + n] != ':')
        return reply_error(reply, 403, "AuthenticationFailed");
    return blob_auth_check_key(r, reply, a, authorization + 11 + n);
}
