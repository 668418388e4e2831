/* copy.c - Copy Blob, Put Blob From URL, Put Block From URL. The source is always on this server. */
#include "service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20, SYNC_COPY_MAX_MIB = 256, PUT_FROM_URL_MAX_MIB = 5000 };

static int own_port;

void service_port(int port)
{
    own_port = port;
}

/* Makes a request of the URL of a source; false when it is not of this server, which is where the port is ours, or
 * where the client sent the copy: what speaks TLS for us has another. url is changed. */
bool parse_source(const struct request *r, struct request *source, char *url, char *account, size_t cap)
{
    static char none[] = "/";
    char *host = strstr(url, "://");
    char *path = host ? strchr(host + 3, '/') : NULL;

    if (!path)
        return request_target(source, "GET", none, "") && false;
    char *colon = memchr(host + 3, ':', (size_t)(path - host) - 3);
    int port = colon ? atoi(colon + 1) : 80;
    const char *asked = header(r, "host");
    char name[300];
    snprintf(name, sizeof(name), "%.*s", (int)(path - host) - 3, host + 3);
    return (port == own_port || (asked && !strcmp(asked, name))) &&
           request_target(source, "GET", path, account_of_host(name, account, cap));
}

int source_failed(struct reply *reply, const struct reply *source, int status, const char *code)
{
    text_addf(&reply->head, "x-ms-copy-source-status-code: %d\r\nx-ms-copy-source-error-code: %s\r\n", source->status,
              source->code);
    return reply_error(reply, status, code);
}

int check_source_access(struct request *r, struct reply *reply, struct request *source, bool key_is_enough)
{
    struct reply answer = {0};

    if (key_is_enough && r->by_key && !*param(source, "sig") && !strcmp(r->account, source->account))
        return 0;
    const char *token = header(r, "x-ms-copy-source-authorization");
    char name[] = "authorization", *value = token ? need(strdup(token)) : NULL;
    if (value)
        source->headers[source->n_headers++] = (struct pair){name, value};
    int status = auth_check(source, &answer);
    source->n_headers = 0;
    free(value);
    if (!status && !auth_allows(source, "r"))
        status = reply_error(&answer, 403, "AuthorizationPermissionMismatch");
    if (status)
        status = source_failed(reply, &answer, 403, "CannotVerifyCopySource");
    reply_free(&answer);
    return status;
}

/* The version that x-ms-copy-source names, or NULL and an error in the reply. */
static struct version *blob_copy_find_source(struct request *r, struct reply *reply, bool key_is_enough)
{
    struct request *source = need(calloc(1, sizeof(*source)));
    char *url = need(strdup(header(r, "x-ms-copy-source"))), account[64];
    struct reply answer = {0};
    struct version *v = NULL;

    if (strlen(url) > 2048)
        reply_error(reply, 400, "InvalidHeaderValue");
    else if (!parse_source(r, source, url, account, sizeof(account)))
        reply_error(reply, 400, "CannotVerifyCopySource");
    else if (!check_source_access(r, reply, source, key_is_enough)) {
        v = its_version(source, &answer);
        if (!v)
            source_failed(reply, &answer, 404, "CannotVerifyCopySource");
        else if (check_source(r, reply, v))
            v = NULL;
    }
    reply_free(&answer);
    request_free(source);
    free(source);
    free(url);
    return v;
}

int check_source_content(const struct request *r, struct reply *reply, const struct content *c)
{
    const char *md5 = header(r, "x-ms-source-content-md5"), *crc = header(r, "x-ms-source-content-crc64");
    char got[25];

    if (!md5 && !crc)
        return 0;
    uint8_t *bytes = need(malloc(c->n + 1));
    content_read(c, 0, c->n, bytes);
    if (md5)
        md5_base64(bytes, c->n, got);
    else
        crc64_base64(bytes, c->n, got);
    free(bytes);
    return strcmp(md5 ? md5 : crc, got) ? reply_error(reply, 400, md5 ? "Md5Mismatch" : "Crc64Mismatch") : 0;
}

static void copy_properties(struct version *to, const struct version *from)
{
    for (size_t i = 0; i < PROPS; i++)
        if (!to->props[i] && from->props[i])
            to->props[i] = need(strdup(from->props[i]));
}

bool has_metadata(const struct request *r)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (!strncmp(r->headers[i].name, "x-ms-meta-", 10))
            return true;
    return false;
}

static int put_from_url(struct request *r, struct reply *reply)
{
    const char *keep = header(r, "x-ms-copy-source-blob-properties");
    struct version *source = blob_copy_find_source(r, reply, false);

    if (!source)
        return reply->status;
    if (source->content->n > (uint64_t)PUT_FROM_URL_MAX_MIB * MIB)
        return reply_error(reply, 409, "CannotVerifyCopySource");
    if (check_source_content(r, reply, source->content))
        return reply->status;
    struct version *v = version_new(BLOCK_BLOB, content_ref(source->content));
    if (!take_properties(r, reply, v)) {
        version_unref(v);
        return reply->status;
    }
    if (!header(r, "x-ms-blob-content-type")) {
        free(v->props[PROP_TYPE]);
        v->props[PROP_TYPE] = NULL;
    }
    if (!keep || strcmp(keep, "false") != 0)
        copy_properties(v, source);
    if (source->props[PROP_MD5] && !v->props[PROP_MD5])
        v->props[PROP_MD5] = need(strdup(source->props[PROP_MD5]));
    if (!has_metadata(r))
        text_add(&v->meta, source->meta.s, source->meta.n);
    return store_version(r, reply, v, 201);
}

void start_copy(const struct request *r, struct reply *reply, struct version *v, bool at_once)
{
    char id[40];

    snprintf(id, sizeof(id), "00000000-0000-4000-8000-%012llx", (unsigned long long)v->etag & UINT64_C(0xffffffffffff));
    v->copy_id = need(strdup(id));
    v->copy_source = need(strdup(header(r, "x-ms-copy-source")));
    v->copy_source[strcspn(v->copy_source, "?")] = '\0';
    v->copy_until = monotonic_ms() + (at_once ? 0 : r->pending_ms);
    text_addf(&reply->head, "x-ms-copy-id: %s\r\nx-ms-copy-status: %s\r\n", id,
              r->pending_ms && !at_once ? "pending" : "success");
}

static int blob_copy_copy(struct request *r, struct reply *reply)
{
    const char *sync = header(r, "x-ms-requires-sync");
    bool is_sync = sync && !strcmp(sync, "true");
    struct version *source = blob_copy_find_source(r, reply, true);

    if (!source)
        return reply->status;
    if (is_sync && source->content->n > (uint64_t)SYNC_COPY_MAX_MIB * MIB)
        return reply_error(reply, 409, "CannotVerifyCopySource");
    struct version *v = version_copy(source);
    v->created = v->modified;
    if (has_metadata(r) && !take_metadata(r, reply, &v->meta)) {
        version_unref(v);
        return reply->status;
    }
    start_copy(r, reply, v, is_sync);
    if (is_sync && v->props[PROP_MD5])
        reply_header(reply, "Content-MD5", v->props[PROP_MD5]);
    return store_version(r, reply, v, 202);
}

int copy_blob(struct request *r, struct reply *reply)
{
    return header(r, "x-ms-blob-type") ? put_from_url(r, reply) : blob_copy_copy(r, reply);
}

int put_block_from_url(struct request *r, struct reply *reply)
{
    struct version *source = blob_copy_find_source(r, reply, false);
    uint64_t from, n;

    if (!source)
        return reply->status;
    if (parse_range(header(r, "x-ms-source-range"), source->content->n, &from, &n) < 0)
        return reply_error(reply, 416, "InvalidRange");
    struct content *part = content_slice(source->content, from, n);
    if (check_source_content(r, reply, part)) {
        content_unref(part);
        return reply->status;
    }
    return store_block(r, reply, part);
}
