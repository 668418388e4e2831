#include "service.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { RANGE_CHECKSUM_MAX = 4 << 20, METADATA_MAX = 8 << 10, APPENDS_MAX = 50000, PENDING_MAX = 100000 };

struct container *its_container(const struct request *r, struct reply *reply)
{
    struct container *c = container_find(r->account, r->container);

    if (!c)
        reply_error(reply, 404, "ContainerNotFound");
    return c;
}

struct version *its_version(const struct request *r, struct reply *reply)
{
    struct container *c = its_container(r, reply);
    struct entry *e = c ? entry_find(c, r->blob) : NULL;

    if (c && (!e || !e->current))
        reply_error(reply, 404, "BlobNotFound");
    return e ? e->current : NULL;
}

void reply_etag(struct reply *reply, uint64_t etag, int64_t modified)
{
    char date[RFC1123];

    date_http(modified, date);
    text_addf(&reply->head, "ETag: \"0x%llX\"\r\nLast-Modified: %s\r\n", (unsigned long long)etag, date);
}

/* ---- conditions */

static bool etag_matches(const char *wanted, const struct version *v)
{
    char etag[24];

    if (!strcmp(wanted, "*"))
        return true;
    snprintf(etag, sizeof(etag), "0x%llX", (unsigned long long)v->etag);
    size_t quote = wanted[0] == '"', n = strlen(etag);
    return !strncmp(wanted + quote, etag, n) && !strcmp(wanted + quote + n, quote ? "\"" : "");
}

struct conditions {
    const char *match, *none_match, *modified, *unmodified;
};

static bool conditions_hold(const struct conditions *c, const struct version *v)
{
    return (!c->match || etag_matches(c->match, v)) && (!c->none_match || !etag_matches(c->none_match, v)) &&
           (!c->modified || v->modified > date_parse(c->modified)) &&
           (!c->unmodified || v->modified <= date_parse(c->unmodified));
}

static struct conditions conditions_of(const struct request *r)
{
    return (struct conditions){header(r, "if-match"), header(r, "if-none-match"), header(r, "if-modified-since"),
                               header(r, "if-unmodified-since")};
}

int check_read(const struct request *r, struct reply *reply, const struct version *v)
{
    struct conditions c = conditions_of(r);

    if (c.none_match && !strcmp(c.none_match, "*"))
        return reply_error(reply, 400, "UnsatisfiableCondition");
    if (conditions_hold(&c, v))
        return 0;
    c.none_match = c.modified = NULL;
    return reply_error(reply, conditions_hold(&c, v) ? 304 : 412, "ConditionNotMet");
}

int check_write(const struct request *r, struct reply *reply, const struct version *v)
{
    struct conditions c = conditions_of(r);

    if (v && c.none_match && !strcmp(c.none_match, "*"))
        return reply_error(reply, 409, "BlobAlreadyExists");
    if (v ? conditions_hold(&c, v) : !c.match)
        return 0;
    return reply_error(reply, 412, "ConditionNotMet");
}

int check_source(const struct request *r, struct reply *reply, const struct version *v)
{
    struct conditions c = {header(r, "x-ms-source-if-match"), header(r, "x-ms-source-if-none-match"),
                           header(r, "x-ms-source-if-modified-since"), header(r, "x-ms-source-if-unmodified-since")};

    return conditions_hold(&c, v) ? 0 : reply_error(reply, 412, "SourceConditionNotMet");
}

/* ---- properties and metadata */

static const char *const prop_headers[PROPS][2] = {
    [PROP_TYPE] = {"x-ms-blob-content-type", "Content-Type"},
    [PROP_ENCODING] = {"x-ms-blob-content-encoding", "Content-Encoding"},
    [PROP_LANGUAGE] = {"x-ms-blob-content-language", "Content-Language"},
    [PROP_DISPOSITION] = {"x-ms-blob-content-disposition", "Content-Disposition"},
    [PROP_CACHE] = {"x-ms-blob-cache-control", "Cache-Control"},
    [PROP_MD5] = {"x-ms-blob-content-md5", "Content-MD5"},
};

static bool is_identifier(const char *s)
{
    bool fine = isalpha((unsigned char)*s) || *s == '_';

    for (; *s && fine; s++)
        fine = isalnum((unsigned char)*s) || *s == '_';
    return fine;
}

bool take_metadata(const struct request *r, struct reply *reply, struct text *meta)
{
    text_clear(meta);
    for (size_t i = 0; i < r->n_headers; i++) {
        const struct pair *h = &r->headers[i];
        if (strncmp(h->name, "x-ms-meta-", 10) != 0)
            continue;
        if (!is_identifier(h->name + 10)) {
            reply_error(reply, 400, "InvalidMetadata");
            return false;
        }
        text_add(meta, h->name + 10, strlen(h->name + 10) + 1);
        text_add(meta, h->value, strlen(h->value) + 1);
    }
    if (meta->n > METADATA_MAX)
        reply_error(reply, 400, "MetadataTooLarge");
    return meta->n <= METADATA_MAX;
}

bool take_properties(const struct request *r, struct reply *reply, struct version *v)
{
    for (size_t i = 0; i < PROPS; i++) {
        const char *value = header(r, prop_headers[i][0]);
        if (!value && i == PROP_TYPE)
            value = header(r, "content-type");
        if (!value && i == PROP_TYPE)
            value = "application/octet-stream";
        if (!value || !*value)
            continue;
        free(v->props[i]);
        v->props[i] = need(strdup(value));
    }
    const char *tier = header(r, "x-ms-access-tier");
    snprintf(v->tier, sizeof(v->tier), "%s", tier ? tier : v->tier);
    return take_metadata(r, reply, &v->meta);
}

void reply_metadata(struct reply *reply, const struct text *meta)
{
    for (const char *s = meta->s; s && s < meta->s + meta->n;) {
        const char *value = s + strlen(s) + 1;
        text_addf(&reply->head, "x-ms-meta-%s: %s\r\n", s, value);
        s = value + strlen(value) + 1;
    }
}

void reply_copy(struct reply *reply, const struct version *v)
{
    bool pending = monotonic_ms() < v->copy_until;
    unsigned long long n = v->content->n;

    text_addf(&reply->head,
              "x-ms-copy-id: %s\r\nx-ms-copy-status: %s\r\nx-ms-copy-source: %s\r\nx-ms-copy-progress: %llu/%llu\r\n",
              v->copy_id, pending ? "pending" : "success", v->copy_source, pending ? 0 : n, n);
}

static void reply_version(struct reply *reply, const struct version *v, bool partial)
{
    char created[RFC1123];

    date_http(v->created, created);
    reply_etag(reply, v->etag, v->modified);
    text_addf(&reply->head,
              "x-ms-blob-type: %s\r\nx-ms-creation-time: %s\r\nAccept-Ranges: bytes\r\n"
              "x-ms-lease-status: unlocked\r\nx-ms-lease-state: available\r\nx-ms-server-encrypted: true\r\n",
              v->type == APPEND_BLOB ? "AppendBlob" : "BlockBlob", created);
    for (size_t i = 0; i < PROPS; i++)
        if (v->props[i])
            reply_header(reply, i == PROP_MD5 && partial ? "x-ms-blob-content-md5" : prop_headers[i][1], v->props[i]);
    if (v->type == APPEND_BLOB)
        text_addf(&reply->head, "x-ms-blob-committed-block-count: %u\r\n", v->appended);
    else
        reply_header(reply, "x-ms-access-tier", *v->tier ? v->tier : "Hot");
    if (v->copy_id)
        reply_copy(reply, v);
    reply_metadata(reply, &v->meta);
}

/* ---- reading */

int parse_range(const char *range, uint64_t size, uint64_t *from, uint64_t *n)
{
    unsigned long long a, b = UINT64_MAX;
    char rest;

    *from = 0;
    *n = size;
    if (!range)
        return 0;
    int got = sscanf(range, "bytes=%llu-%llu%c", &a, &b, &rest);
    if (got != 1 && got != 2)
        return 0;
    if (a >= size || b < a)
        return -1;
    *from = a;
    *n = (b < size ? b + 1 : size) - a;
    return 1;
}

/* The checksum of a range, when it is asked for. */
static int reply_range_checksum(const struct request *r, struct reply *reply, const struct version *v)
{
    const char *md5 = header(r, "x-ms-range-get-content-md5"), *crc = header(r, "x-ms-range-get-content-crc64");
    bool wants_md5 = md5 && !strcasecmp(md5, "true"), wants_crc = crc && !strcasecmp(crc, "true");
    char text[25];

    if (!wants_md5 && !wants_crc)
        return 0;
    if (reply->n > RANGE_CHECKSUM_MAX)
        return reply_error(reply, 400, "OutOfRangeInput");
    uint8_t *bytes = need(malloc(reply->n + 1));
    content_read(v->content, reply->from, reply->n, bytes);
    if (wants_md5)
        md5_base64(bytes, reply->n, text);
    else
        crc64_base64(bytes, reply->n, text);
    free(bytes);
    reply_header(reply, wants_md5 ? "Content-MD5" : "x-ms-content-crc64", text);
    return 0;
}

static int get_blob(struct request *r, struct reply *reply)
{
    struct version *v = its_version(r, reply);
    const char *range = header(r, "x-ms-range");

    if (!v || check_read(r, reply, v))
        return reply->status;
    int part = parse_range(range ? range : header(r, "range"), v->content->n, &reply->from, &reply->n);
    if (part < 0) {
        text_addf(&reply->head, "Content-Range: bytes */%llu\r\n", (unsigned long long)v->content->n);
        return reply_error(reply, 416, "InvalidRange");
    }
    if (part && reply_range_checksum(r, reply, v))
        return reply->status;
    reply_version(reply, v, part);
    if (part)
        text_addf(&reply->head, "Content-Range: bytes %llu-%llu/%llu\r\n", (unsigned long long)reply->from,
                  (unsigned long long)(reply->from + reply->n - 1), (unsigned long long)v->content->n);
    reply->version = version_ref(v);
    return reply->status = part ? 206 : 200;
}

static int head_blob(struct request *r, struct reply *reply)
{
    struct version *v = its_version(r, reply);

    if (!v || check_read(r, reply, v))
        return reply->status;
    reply_version(reply, v, false);
    reply->n = v->content->n; /* its length, without its bytes */
    return reply->status = 200;
}

static int get_metadata(struct request *r, struct reply *reply)
{
    int status = head_blob(r, reply);

    reply->n = 0;
    return status;
}

/* ---- writing */

int store_version(const struct request *r, struct reply *reply, struct version *v, int status)
{
    struct container *c = its_container(r, reply);
    struct entry *e = c ? entry_make(c, r->blob) : NULL;

    if (!c || check_write(r, reply, e->current)) {
        if (c)
            entry_tidy(c, e);
        version_unref(v);
        return reply->status;
    }
    if (e->current && !auth_allows(r, "w")) {
        version_unref(v);
        return reply_error(reply, 403, "UnauthorizedBlobOverwrite");
    }
    reply_etag(reply, v->etag, v->modified);
    reply_header(reply, "x-ms-request-server-encrypted", "true");
    entry_set(c, e, v);
    return reply->status = status;
}

/* Puts a version with other attributes in place of the same content; uncommitted blocks stay. */
static int update_version(const struct request *r, struct reply *reply, struct version *v)
{
    struct entry *e = entry_find(container_find(r->account, r->container), r->blob);

    version_unref(e->current);
    e->current = v;
    reply_etag(reply, v->etag, v->modified);
    return reply->status = 200;
}

struct content *take_body(struct request *r)
{
    struct data *body = r->body ? r->body : data_new(0, false);

    r->body = NULL;
    return content_of(body);
}

/* A name that the service does not take: more than 1024 characters, or more than 254 segments. */
static bool name_is_valid(const char *name)
{
    size_t characters = 0, segments = 1;

    for (; *name; name++) {
        characters += ((unsigned char)*name & 0xc0) != 0x80;
        segments += *name == '/';
    }
    return characters <= 1024 && segments <= 254;
}

static int put_blob(struct request *r, struct reply *reply)
{
    const char *type = header(r, "x-ms-blob-type");

    if (!name_is_valid(r->blob))
        return reply_error(reply, 400, "OutOfRangeInput");
    if (header(r, "x-ms-copy-source"))
        return copy_blob(r, reply);
    if (!type)
        return reply_error(reply, 400, "MissingRequiredHeader");
    bool append = !strcmp(type, "AppendBlob");
    if (!append && strcmp(type, "BlockBlob") != 0)
        return reply_error(reply, 400, "InvalidHeaderValue");
    struct version *v = version_new(append ? APPEND_BLOB : BLOCK_BLOB, take_body(r));
    if (!append && *r->md5)
        v->props[PROP_MD5] = need(strdup(r->md5));
    if (!take_properties(r, reply, v)) {
        version_unref(v);
        return reply->status;
    }
    if (*r->md5 && v->props[PROP_MD5] && !append && strcmp(v->props[PROP_MD5], r->md5) != 0) {
        version_unref(v);
        return reply_error(reply, 400, "Md5Mismatch");
    }
    return store_version(r, reply, v, 201);
}

/* What is wrong with the id of a block, or NULL. */
static const char *id_problem(const char *id, const struct entry *e)
{
    uint8_t bytes[64];

    if (!*id)
        return "InvalidQueryParameterValue";
    if (strlen(id) >= BLOCK_ID)
        return "OutOfRangeInput";
    if (base64_decode(id, bytes, sizeof(bytes)) < 1)
        return "InvalidQueryParameterValue";
    const struct blocks *old = e->pending.n ? &e->pending : e->current ? &e->current->blocks : NULL;
    if (old && old->n && strlen(old->v[0].id) != strlen(id))
        return "InvalidBlobOrBlock";
    return e->pending.n == PENDING_MAX ? "BlockCountExceedsLimit" : NULL;
}

int store_block(const struct request *r, struct reply *reply, struct content *content)
{
    const char *id = param(r, "blockid"), *problem = "OutOfRangeInput";
    struct container *c = its_container(r, reply);
    struct entry *e = c && name_is_valid(r->blob) ? entry_make(c, r->blob) : NULL;

    if (c && e && e->current && e->current->type == APPEND_BLOB) {
        content_unref(content);
        return reply_error(reply, 409, "InvalidBlobType");
    }
    if (!e || (problem = id_problem(id, e))) {
        if (c)
            reply_error(reply, 400, problem);
        if (e)
            entry_tidy(c, e);
        content_unref(content);
        return reply->status;
    }
    size_t at = blocks_seek(&e->pending, id);
    if (at < e->pending.n && !strcmp(e->pending.v[at].id, id)) {
        content_unref(e->pending.v[at].content);
        e->pending.v[at].content = content;
    } else {
        blocks_put(&e->pending, at, id, content);
    }
    reply_header(reply, "x-ms-request-server-encrypted", "true");
    return reply->status = 201;
}

static int put_block(struct request *r, struct reply *reply)
{
    if (header(r, "x-ms-copy-source"))
        return put_block_from_url(r, reply);
    return store_block(r, reply, take_body(r));
}

static int append_block(struct request *r, struct reply *reply)
{
    struct version *old = its_version(r, reply);
    const char *position = header(r, "x-ms-blob-condition-appendpos");

    if (!old || check_write(r, reply, old))
        return reply->status;
    if (old->type != APPEND_BLOB)
        return reply_error(reply, 409, "InvalidBlobType");
    if (old->appended == APPENDS_MAX)
        return reply_error(reply, 409, "BlockCountExceedsLimit");
    if (position && strtoull(position, NULL, 10) != old->content->n)
        return reply_error(reply, 412, "AppendPositionConditionNotMet");
    struct version *v = version_copy(old);
    struct content *both[] = {v->content, take_body(r)};
    text_addf(&reply->head, "x-ms-blob-append-offset: %llu\r\nx-ms-blob-committed-block-count: %u\r\n",
              (unsigned long long)old->content->n, ++v->appended);
    v->content = content_join(both, 2);
    content_unref(both[0]);
    content_unref(both[1]);
    return store_version(r, reply, v, 201);
}

static int set_metadata(struct request *r, struct reply *reply)
{
    struct version *old = its_version(r, reply);

    if (!old || check_write(r, reply, old))
        return reply->status;
    struct version *v = version_copy(old);
    if (!take_metadata(r, reply, &v->meta)) {
        version_unref(v);
        return reply->status;
    }
    return update_version(r, reply, v);
}

static int set_properties(struct request *r, struct reply *reply)
{
    struct version *old = its_version(r, reply);

    if (!old || check_write(r, reply, old))
        return reply->status;
    struct version *v = version_copy(old);
    for (size_t i = 0; i < PROPS; i++) {
        const char *value = header(r, prop_headers[i][0]);
        free(v->props[i]);
        v->props[i] = value ? need(strdup(value)) : NULL;
    }
    return update_version(r, reply, v);
}

static int set_tier(struct request *r, struct reply *reply)
{
    struct version *v = its_version(r, reply);
    const char *tier = header(r, "x-ms-access-tier");

    if (!v)
        return reply->status;
    if (!tier)
        return reply_error(reply, 400, "MissingRequiredHeader");
    snprintf(v->tier, sizeof(v->tier), "%s", tier); /* changes neither ETag nor date */
    return reply->status = 200;
}

/* Also drops a name that has only uncommitted blocks. */
static int delete_blob(struct request *r, struct reply *reply)
{
    struct container *c = its_container(r, reply);
    struct entry *e = c ? entry_find(c, r->blob) : NULL;

    if (!c)
        return reply->status;
    if (!e)
        return reply_error(reply, 404, "BlobNotFound");
    if (check_write(r, reply, e->current))
        return reply->status;
    entry_set(c, e, NULL);
    reply_header(reply, "x-ms-delete-type-permanent", "true");
    return reply->status = 202;
}

/* ---- containers and the account */

static int create_container(struct request *r, struct reply *reply)
{
    size_t n = strlen(r->container);
    bool fine = n >= 3 && n <= 63 && strspn(r->container, "abcdefghijklmnopqrstuvwxyz0123456789-$") == n &&
                !strstr(r->container, "--") && r->container[0] != '-' && r->container[n - 1] != '-';

    if (!fine)
        return reply_error(reply, 400, n < 3 || n > 63 ? "OutOfRangeInput" : "InvalidResourceName");
    if (container_find(r->account, r->container))
        return reply_error(reply, 409, "ContainerAlreadyExists");
    struct text meta = {0};
    if (!take_metadata(r, reply, &meta)) {
        text_free(&meta);
        return reply->status;
    }
    struct container *c = container_add(r->account, r->container);
    c->meta = meta;
    reply_etag(reply, c->etag, c->modified);
    return reply->status = 201;
}

static int get_container(struct request *r, struct reply *reply)
{
    struct container *c = its_container(r, reply);

    if (!c)
        return reply->status;
    reply_etag(reply, c->etag, c->modified);
    text_str(&reply->head, "x-ms-lease-status: unlocked\r\nx-ms-lease-state: available\r\n"
                           "x-ms-has-immutability-policy: false\r\nx-ms-has-legal-hold: false\r\n");
    reply_metadata(reply, &c->meta);
    return reply->status = 200;
}

static int delete_container(struct request *r, struct reply *reply)
{
    struct container *c = its_container(r, reply);

    if (!c)
        return reply->status;
    container_remove(c);
    return reply->status = 202;
}

static int get_account(struct request *r, struct reply *reply)
{
    (void)r;
    text_str(&reply->head, "x-ms-sku-name: Standard_LRS\r\nx-ms-account-kind: StorageV2\r\n"
                           "x-ms-is-hns-enabled: false\r\n");
    return reply->status = 200;
}

/* ---- which operation */

enum level { ACCOUNT, CONTAINER, BLOB };

static const struct operation {
    const char *method, *comp, *restype;
    enum level level;
    const char *rights; /* any of these letters */
    int (*serve)(struct request *, struct reply *);
    bool reads;
} operations[] = {
    {"GET", "", "", BLOB, "r", get_blob, true},
    {"HEAD", "", "", BLOB, "r", head_blob, true},
    {"HEAD", "metadata", "", BLOB, "r", get_metadata, true},
    {"GET", "metadata", "", BLOB, "r", get_metadata, true},
    {"GET", "blocklist", "", BLOB, "r", get_block_list, true},
    {"PUT", "", "", BLOB, "cw", put_blob, false},
    {"PUT", "block", "", BLOB, "cw", put_block, false},
    {"PUT", "blocklist", "", BLOB, "cw", put_block_list, false},
    {"PUT", "appendblock", "", BLOB, "aw", append_block, false},
    {"PUT", "metadata", "", BLOB, "w", set_metadata, false},
    {"PUT", "properties", "", BLOB, "w", set_properties, false},
    {"PUT", "tier", "", BLOB, "w", set_tier, false},
    {"DELETE", "", "", BLOB, "d", delete_blob, false},
    {"GET", "list", "container", CONTAINER, "l", list_blobs, true},
    {"GET", "", "container", CONTAINER, "rl", get_container, true},
    {"HEAD", "", "container", CONTAINER, "rl", get_container, true},
    {"PUT", "", "container", CONTAINER, "cw", create_container, false},
    {"DELETE", "", "container", CONTAINER, "d", delete_container, false},
    {"POST", "batch", "container", CONTAINER, "d", delete_batch, false},
    {"POST", "batch", "", ACCOUNT, "d", delete_batch, false},
    {"GET", "list", "", ACCOUNT, "l", list_containers, true},
    {"POST", "userdelegationkey", "service", ACCOUNT, "rlw", give_delegation_key, true},
};

static enum level level_of(const struct request *r)
{
    return *r->blob ? BLOB : *r->container ? CONTAINER : ACCOUNT;
}

static const struct operation *blob_service_find_operation(const struct request *r)
{
    static const struct operation account = {.rights = "rlw", .serve = get_account, .reads = true};
    const char *comp = param(r, "comp"), *restype = param(r, "restype");

    if (!strcmp(restype, "account") && !strcmp(comp, "properties"))
        return &account;
    for (size_t i = 0; i < COUNT(operations); i++) {
        const struct operation *op = &operations[i];
        if (op->level == level_of(r) && !strcmp(op->method, r->method) && !strcmp(op->comp, comp) &&
            !strcmp(op->restype, restype))
            return op;
    }
    return NULL;
}

/* Checks the body against the checksums that were sent, and says what arrived. What was swallowed is taken on trust. */
static int blob_service_check_body(struct request *r, struct reply *reply)
{
    const char *md5 = header(r, "content-md5"), *crc = header(r, "x-ms-content-crc64");
    bool there = !r->body || r->body->bytes;
    const void *bytes = r->body && r->body->bytes ? r->body->bytes : (const void *)"";
    uint64_t n = r->body ? r->body->n : 0;
    char got[25];

    r->md5[0] = '\0';
    if (md5 && crc)
        return reply_error(reply, 400, "InvalidHeaderValue");
    bool put_blob_md5 = !strcmp(r->method, "PUT") && *r->blob && !*param(r, "comp");
    if (there && (md5 || put_blob_md5)) {
        md5_base64(bytes, n, r->md5);
        if (md5 && strcmp(md5, r->md5) != 0)
            return reply_error(reply, 400, "Md5Mismatch");
    }
    if (crc && there) {
        crc64_base64(bytes, n, got);
        if (strcmp(crc, got) != 0)
            return reply_error(reply, 400, "Crc64Mismatch");
    }
    if (crc)
        reply_header(reply, "x-ms-content-crc64", crc);
    else if (*r->md5 || md5)
        reply_header(reply, "Content-MD5", *r->md5 ? r->md5 : md5);
    return 0;
}

static const struct operation *blob_service_admit(struct request *r, struct reply *reply)
{
    if (auth_check(r, reply))
        return NULL;
    const struct operation *op = blob_service_find_operation(r);
    if (!op)
        reply_error(reply, 400, "UnsupportedHttpVerb");
    else if (!auth_allows(r, op->rights))
        reply_error(reply, 403, "AuthorizationPermissionMismatch");
    else
        return op;
    return NULL;
}

void service_part(struct request *r, struct reply *reply)
{
    const struct operation *op = blob_service_admit(r, reply);

    if (op && op->serve != delete_blob)
        reply_error(reply, 400, "InvalidInput");
    else if (op)
        op->serve(r, reply);
}

void service(struct request *r, struct reply *reply)
{
    const struct operation *op = blob_service_admit(r, reply);

    if (!op || blob_service_check_body(r, reply))
        return;
    if (op->reads)
        blobs_read();
    else
        blobs_write();
    op->serve(r, reply);
    blobs_unlock();
}
