/* Facts are those of the REST reference of Azure Files; the operations have the names that it gives them. */
#include "files_service.h"

#include "auth.h"
#include "service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum {
    NAME_MAX_CHARACTERS = 255,
    DEPTH_MAX = 250,
    QUOTA_MAX_GIB = 102400,
};
#define FILE_MAX ((uint64_t)4 << 40)

/* ---- names and places */

static bool blob_files_service_is_reserved(const char *name)
{
    static const char *const devices[] = {"PRN", "AUX", "NUL", "CON", "CLOCK$"};
    bool numbered =
        (!strncasecmp(name, "LPT", 3) || !strncasecmp(name, "COM", 3)) && name[3] >= '1' && name[3] <= '9' && !name[4];

    for (size_t i = 0; i < COUNT(devices) && !numbered; i++)
        numbered = !strcasecmp(name, devices[i]);
    return numbered;
}

/* What is wrong with a name, or NULL. */
static const char *blob_files_service_name_problem(const char *name)
{
    size_t characters = 0;

    for (const unsigned char *s = (const unsigned char *)name; *s; s++) {
        characters += (*s & 0xc0) != 0x80;
        if (*s < 0x20 || strchr("\"\\:|<>*?", *s))
            return "InvalidResourceName";
    }
    if (!*name || blob_files_service_is_reserved(name))
        return "InvalidResourceName";
    return characters > NAME_MAX_CHARACTERS ? "InvalidFileOrDirectoryPathName" : NULL;
}

/* A name's dots at its end are dropped unless the client wants them kept. */
static bool take_name(char *out, size_t cap, const char *s, size_t n, bool keep_dots)
{
    while (!keep_dots && n && s[n - 1] == '.')
        n--;
    snprintf(out, cap, "%.*s", (int)n, s);
    return n < cap;
}

struct share *its_share(const struct request *r, struct reply *reply)
{
    struct share *s = share_find(r->account, r->container);

    if (!s)
        reply_error(reply, 404, "ShareNotFound");
    return s;
}

bool wants(const struct request *r, const char *name)
{
    const char *value = header(r, name);

    return value && !strcasecmp(value, "true");
}

bool find_place(const struct request *r, struct reply *reply, bool keep_dots, struct place *p)
{
    int depth = 0;

    *p = (struct place){.share = its_share(r, reply)};
    if (!p->share)
        return false;
    p->node = p->share->root;
    for (const char *s = r->blob; *s;) {
        size_t n = strcspn(s, "/");
        if (!p->node || !p->node->directory) {
            reply_error(reply, 404, "ParentNotFound");
            return false;
        }
        const char *problem = ++depth > DEPTH_MAX || !take_name(p->name, sizeof(p->name), s, n, keep_dots)
                                  ? "InvalidFileOrDirectoryPathName"
                                  : blob_files_service_name_problem(p->name);
        if (problem) {
            reply_error(reply, 400, problem);
            return false;
        }
        p->parent = p->node;
        p->node = node_find(p->parent, p->name);
        s += n + (s[n] == '/');
    }
    return true;
}

static bool its_place(const struct request *r, struct reply *reply, struct place *p)
{
    return find_place(r, reply, wants(r, "x-ms-allow-trailing-dot"), p);
}

/* What is there and of that kind; NULL and an error otherwise. */
static struct node *existing(const struct request *r, struct reply *reply, bool directory, struct place *p)
{
    if (!its_place(r, reply, p))
        return NULL;
    if (!p->node)
        reply_error(reply, 404, "ResourceNotFound");
    else if (p->node->directory != directory && strcmp(r->method, "GET") != 0 && strcmp(r->method, "HEAD") != 0)
        reply_error(reply, 409, "ResourceTypeMismatch");
    else if (p->node->directory != directory)
        reply_error(reply, 404, "ResourceNotFound");
    else
        return p->node;
    return NULL;
}

struct node *its_directory(const struct request *r, struct reply *reply)
{
    struct place p;

    return existing(r, reply, true, &p);
}

static struct node *its_file(const struct request *r, struct reply *reply)
{
    struct place p;

    return existing(r, reply, false, &p);
}

/* ---- times and attributes */

void file_time(int64_t ticks, char out[FILE_TIME])
{
    time_t seconds = (time_t)(ticks / TICKS);
    struct tm tm;
    char whole[24];

    gmtime_r(&seconds, &tm);
    strftime(whole, sizeof(whole), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out, FILE_TIME, "%s.%07uZ", whole, (unsigned)(ticks % TICKS));
}

/* Ticks since 1970 of an ISO 8601 date in UTC with up to seven digits behind the point; -1: it is none. */
static int64_t parse_file_time(const char *s)
{
    struct tm tm = {0};
    const char *end = strptime(s, "%Y-%m-%dT%H:%M:%S", &tm);
    int64_t ticks = 0, unit = TICKS / 10;

    if (end && *end == '.')
        for (end++; *end >= '0' && *end <= '9' && unit; unit /= 10)
            ticks += (*end++ - '0') * unit;
    return end && !strcmp(end, "Z") ? timegm(&tm) * TICKS + ticks : -1;
}

/* "now", what is there or in the source of a copy, or a date. */
static bool take_time(const struct request *r, const char *name, int64_t *time)
{
    const char *value = header(r, name);

    if (!value || !strcasecmp(value, "preserve") || !strcasecmp(value, "source"))
        return true;
    *time = strcasecmp(value, "now") ? parse_file_time(value) : files_now();
    return *time >= 0;
}

/* Takes what SMB knows of a file; false and an error when a header is none of what it may be. */
static bool take_system(const struct request *r, struct reply *reply, struct node *node)
{
    const char *attributes = header(r, "x-ms-file-attributes");
    int64_t created = node->created, written = node->written, changed = node->changed;
    bool fine = take_time(r, "x-ms-file-creation-time", &created) &&
                take_time(r, "x-ms-file-last-write-time", &written) && take_time(r, "x-ms-file-change-time", &changed);

    if (!fine) {
        reply_error(reply, 400, "InvalidHeaderValue");
        return false;
    }
    node->created = created;
    node->written = written;
    node->changed = changed;
    if (attributes && strcasecmp(attributes, "preserve") != 0)
        snprintf(node->attributes, sizeof(node->attributes), "%s", attributes);
    return true;
}

static void reply_system(struct reply *reply, const struct node *node)
{
    static const char *const names[] = {"creation", "last-write", "change"};
    const int64_t times[] = {node->created, node->written, node->changed};
    char text[FILE_TIME];

    reply_etag(reply, node->version->etag, node->version->modified);
    for (size_t i = 0; i < COUNT(times); i++) {
        file_time(times[i], text);
        text_addf(&reply->head, "x-ms-file-%s-time: %s\r\n", names[i], text);
    }
    text_addf(&reply->head,
              "x-ms-file-attributes: %s\r\nx-ms-file-permission-key: " PERMISSION_KEY "\r\nx-ms-file-id: %llu\r\n"
              "x-ms-file-parent-id: %llu\r\n",
              node->attributes, (unsigned long long)node->id,
              (unsigned long long)(node->parent ? node->parent->id : 0));
}

static int blob_files_service_done(struct reply *reply, const struct node *node, int status)
{
    reply_system(reply, node);
    reply_header(reply, "x-ms-request-server-encrypted", "true");
    return reply->status = status;
}

static const char *const prop_headers[PROPS][2] = {
    [PROP_TYPE] = {"x-ms-content-type", "Content-Type"},
    [PROP_ENCODING] = {"x-ms-content-encoding", "Content-Encoding"},
    [PROP_LANGUAGE] = {"x-ms-content-language", "Content-Language"},
    [PROP_DISPOSITION] = {"x-ms-content-disposition", "Content-Disposition"},
    [PROP_CACHE] = {"x-ms-cache-control", "Cache-Control"},
    [PROP_MD5] = {"x-ms-content-md5", "Content-MD5"},
};

static void take_file_properties(const struct request *r, struct version *v)
{
    for (size_t i = 0; i < PROPS; i++) {
        const char *value = header(r, prop_headers[i][0]);
        free(v->props[i]);
        v->props[i] = value && *value ? need(strdup(value)) : NULL;
    }
    if (!v->props[PROP_TYPE])
        v->props[PROP_TYPE] = need(strdup("application/octet-stream"));
}

/* ---- directories */

static int create_directory(struct request *r, struct reply *reply)
{
    struct place p;
    struct text meta = {0};

    if (!its_place(r, reply, &p))
        return reply->status;
    if (p.node)
        return reply_error(reply, 409, "ResourceAlreadyExists");
    struct node *node = node_add(p.parent, p.name, true);
    if (!take_metadata(r, reply, &meta) || !take_system(r, reply, node)) {
        text_free(&meta);
        node_remove(p.share, node);
        return reply->status;
    }
    node->version->meta = meta;
    return blob_files_service_done(reply, node, 201);
}

static int get_directory(struct request *r, struct reply *reply)
{
    struct node *node = its_directory(r, reply);

    if (!node)
        return reply->status;
    reply_system(reply, node);
    reply_metadata(reply, &node->version->meta);
    reply_header(reply, "x-ms-server-encrypted", "true");
    return reply->status = 200;
}

static int delete_directory(struct request *r, struct reply *reply)
{
    struct place p;
    struct node *node = existing(r, reply, true, &p);

    if (!node)
        return reply->status;
    if (node->n)
        return reply_error(reply, 409, "DirectoryNotEmpty");
    node_remove(p.share, node);
    return reply->status = 202;
}

/* ---- files: reading */

static void reply_file(struct reply *reply, const struct node *node, bool partial)
{
    const struct version *v = node->version;

    reply_system(reply, node);
    text_str(&reply->head, "x-ms-type: File\r\nx-ms-server-encrypted: true\r\nx-ms-lease-status: unlocked\r\n"
                           "x-ms-lease-state: available\r\nAccept-Ranges: bytes\r\n");
    for (size_t i = 0; i < PROPS; i++)
        if (v->props[i])
            reply_header(reply, i == PROP_MD5 && partial ? "x-ms-content-md5" : prop_headers[i][1], v->props[i]);
    if (v->copy_id)
        reply_copy(reply, v);
    reply_metadata(reply, &v->meta);
}

/* The MD5 of the range, when it is asked for. */
static int reply_range_md5(const struct request *r, struct reply *reply, const struct version *v)
{
    char md5[25];

    if (!wants(r, "x-ms-range-get-content-md5"))
        return 0;
    if (reply->n > RANGE_MAX)
        return reply_error(reply, 400, "OutOfRangeInput");
    uint8_t *bytes = need(malloc(reply->n + 1));
    content_read(v->content, reply->from, reply->n, bytes);
    md5_base64(bytes, reply->n, md5);
    free(bytes);
    reply_header(reply, "Content-MD5", md5);
    return 0;
}

static int get_file(struct request *r, struct reply *reply)
{
    struct node *node = its_file(r, reply);
    const char *range = header(r, "x-ms-range");

    if (!node)
        return reply->status;
    struct version *v = node->version;
    int part = parse_range(range ? range : header(r, "range"), v->content->n, &reply->from, &reply->n);
    if (part < 0)
        return reply_error(reply, 416, "InvalidRange");
    if (part && reply_range_md5(r, reply, v))
        return reply->status;
    reply_file(reply, node, part);
    if (part)
        text_addf(&reply->head, "Content-Range: bytes %llu-%llu/%llu\r\n", (unsigned long long)reply->from,
                  (unsigned long long)(reply->from + reply->n - 1), (unsigned long long)v->content->n);
    reply->version = version_ref(v);
    return reply->status = part ? 206 : 200;
}

static int head_file(struct request *r, struct reply *reply)
{
    struct node *node = its_file(r, reply);

    if (!node)
        return reply->status;
    reply_file(reply, node, false);
    reply->n = node->version->content->n; /* its length, without its bytes */
    return reply->status = 200;
}

static int list_ranges(struct request *r, struct reply *reply)
{
    struct node *node = its_file(r, reply);

    if (!node)
        return reply->status;
    uint64_t n = node->version->content->n;
    text_addf(&reply->head, "x-ms-content-length: %llu\r\nContent-Type: application/xml\r\n", (unsigned long long)n);
    reply_etag(reply, node->version->etag, node->version->modified);
    text_str(&reply->body, "<?xml version=\"1.0\" encoding=\"utf-8\"?><Ranges>");
    if (n)
        text_addf(&reply->body, "<Range><Start>0</Start><End>%llu</End></Range>", (unsigned long long)n - 1);
    text_str(&reply->body, "</Ranges>");
    return reply->status = 200;
}

/* ---- files: writing */

/* A header with a number of bytes. Returns 0 or the status of the error. */
static int take_length(const struct request *r, struct reply *reply, uint64_t *n)
{
    const char *value = header(r, "x-ms-content-length");
    char *end;

    if (!value)
        return reply_error(reply, 400, "MissingRequiredHeader");
    *n = strtoull(value, &end, 10);
    return *end || end == value || *n > FILE_MAX ? reply_error(reply, 400, "InvalidHeaderValue") : 0;
}

static bool blob_files_service_is_read_only(const struct node *node)
{
    return strstr(node->attributes, "ReadOnly");
}

/* Whether a file may be put there. Returns 0 or the status of the error. */
static int check_replaced(struct reply *reply, const struct place *p)
{
    if (p->node && p->node->directory)
        return reply_error(reply, 409, "ResourceTypeMismatch");
    return p->node && blob_files_service_is_read_only(p->node) ? reply_error(reply, 409, "ReadOnlyAttribute") : 0;
}

struct node *replace_file(const struct request *r, struct reply *reply, const struct place *p, struct version *v,
                          const struct node *times)
{
    struct node scratch = {.created = files_now(), .written = times ? times->written : files_now()};

    scratch.changed = scratch.created;
    snprintf(scratch.attributes, sizeof(scratch.attributes), "%s", times ? times->attributes : "None");
    if (!take_system(r, reply, &scratch)) {
        version_unref(v);
        return NULL;
    }
    if (p->node)
        node_remove(p->share, p->node);
    struct node *node = node_add(p->parent, p->name, false);
    node_set(node, v);
    node->created = scratch.created;
    node->written = scratch.written;
    node->changed = scratch.changed;
    memcpy(node->attributes, scratch.attributes, sizeof(node->attributes));
    return node;
}

static int create_file(struct request *r, struct reply *reply)
{
    struct place p;
    const char *type = header(r, "x-ms-type");
    uint64_t size = 0;

    if (!its_place(r, reply, &p) || check_replaced(reply, &p))
        return reply->status;
    if (header(r, "x-ms-copy-source"))
        return copy_file(r, reply, &p);
    if (take_length(r, reply, &size))
        return reply->status;
    if (!type)
        return reply_error(reply, 400, "MissingRequiredHeader");
    if (strcasecmp(type, "file") != 0 || r->length)
        return reply_error(reply, 400, "InvalidHeaderValue");
    struct version *v = version_new(BLOCK_BLOB, content_zeroes(size));
    take_file_properties(r, v);
    if (!take_metadata(r, reply, &v->meta)) {
        version_unref(v);
        return reply->status;
    }
    struct node *node = replace_file(r, reply, &p, v, NULL);
    return node ? blob_files_service_done(reply, node, 201) : reply->status;
}

static int delete_file(struct request *r, struct reply *reply)
{
    struct place p;
    struct node *node = existing(r, reply, false, &p);

    if (!node)
        return reply->status;
    if (blob_files_service_is_read_only(node))
        return reply_error(reply, 409, "ReadOnlyAttribute");
    node_remove(p.share, node);
    return reply->status = 202;
}

int store_range(const struct request *r, struct reply *reply, const struct place *p, uint64_t from,
                struct content *bytes)
{
    struct node *node = p->node;
    uint64_t size = node->version->content->n, n = bytes->n;
    uint64_t stored = node->stored + n < size ? node->stored + n : size, more = stored - node->stored;

    if (p->share->stored + more > p->share->room) {
        content_unref(bytes);
        return reply_error(reply, 403, "ShareSizeLimitReached");
    }
    struct version *v = version_copy(node->version);
    struct content *parts[] = {content_slice(v->content, 0, from), bytes,
                               content_slice(v->content, from + n, size - from - n)};
    content_unref(v->content);
    v->content = content_join(parts, COUNT(parts));
    for (size_t i = 0; i < COUNT(parts); i++)
        content_unref(parts[i]);
    node->stored += more;
    p->share->stored += more;
    node_set(node, v);
    const char *written = header(r, "x-ms-file-last-write-time");
    if (!written || strcasecmp(written, "preserve") != 0)
        node->written = files_now();
    reply_etag(reply, v->etag, v->modified);
    char text[FILE_TIME];
    file_time(node->written, text);
    reply_header(reply, "x-ms-file-last-write-time", text);
    reply_header(reply, "x-ms-request-server-encrypted", "true");
    return reply->status = 201;
}

/* The range that is written: both ends are given. */
static bool written_range(const struct request *r, uint64_t *from, uint64_t *n)
{
    const char *range = header(r, "x-ms-range");
    unsigned long long a, b;
    char rest;

    range = range ? range : header(r, "range");
    if (!range || sscanf(range, "bytes=%llu-%llu%c", &a, &b, &rest) != 2 || b < a)
        return false;
    *from = a;
    *n = b - a + 1;
    return true;
}

static int put_range(struct request *r, struct reply *reply)
{
    const char *write = header(r, "x-ms-write");
    struct place p;
    uint64_t from, n;

    if (!existing(r, reply, false, &p))
        return reply->status;
    if (!write)
        return reply_error(reply, 400, "MissingRequiredHeader");
    bool clear = !strcasecmp(write, "clear");
    bool from_url = header(r, "x-ms-copy-source");
    if ((!clear && strcasecmp(write, "update") != 0) || !written_range(r, &from, &n) ||
        (clear || from_url ? 0 : n) != r->length)
        return reply_error(reply, 400, "InvalidHeaderValue");
    if (from + n > p.node->version->content->n)
        return reply_error(reply, 416, "InvalidRange");
    if (blob_files_service_is_read_only(p.node))
        return reply_error(reply, 409, "ReadOnlyAttribute");
    if (from_url)
        return put_range_from_url(r, reply, &p, from, n);
    return store_range(r, reply, &p, from, clear ? content_zeroes(n) : take_body(r));
}

static int set_file_metadata(struct request *r, struct reply *reply)
{
    struct node *node = its_file(r, reply);

    if (!node)
        return reply->status;
    struct version *v = version_copy(node->version);
    if (!take_metadata(r, reply, &v->meta)) {
        version_unref(v);
        return reply->status;
    }
    node_set(node, v);
    return blob_files_service_done(reply, node, 200);
}

static int set_directory_metadata(struct request *r, struct reply *reply)
{
    struct node *node = its_directory(r, reply);

    if (node && take_metadata(r, reply, &node->version->meta))
        blob_files_service_done(reply, node, 200);
    return reply->status;
}

static int set_directory_properties(struct request *r, struct reply *reply)
{
    struct node *node = its_directory(r, reply);

    if (node && take_system(r, reply, node))
        blob_files_service_done(reply, node, 200);
    return reply->status;
}

static struct content *resized(const struct content *c, uint64_t n)
{
    if (n <= c->n)
        return content_slice(c, 0, n);
    struct content *parts[] = {content_slice(c, 0, c->n), content_zeroes(n - c->n)};
    struct content *all = content_join(parts, COUNT(parts));
    content_unref(parts[0]);
    content_unref(parts[1]);
    return all;
}

/* Set File Properties: the size, when it is given; the headers, those that are not given become empty. */
static int set_file_properties(struct request *r, struct reply *reply)
{
    struct place p;
    struct node *node = existing(r, reply, false, &p);
    uint64_t size = node ? node->version->content->n : 0;

    if (!node || (header(r, "x-ms-content-length") && take_length(r, reply, &size)) || !take_system(r, reply, node))
        return reply->status;
    struct version *v = version_copy(node->version);
    take_file_properties(r, v);
    struct content *old = v->content;
    v->content = resized(old, size);
    content_unref(old);
    if (size < node->stored) {
        p.share->stored -= node->stored - size;
        node->stored = size;
    }
    node_set(node, v);
    return blob_files_service_done(reply, node, 200);
}

/* ---- renaming */

/* Makes a request of the URL of what is renamed. url is changed. */
static bool parse_rename_source(const struct request *r, struct request *source, char *url, char *account, size_t cap)
{
    static char none[] = "/";
    char *host = strstr(url, "://"), name[300];
    char *path = host ? strchr(host + 3, '/') : NULL;

    snprintf(name, sizeof(name), "%.*s", path ? (int)(path - host) - 3 : 0, path ? host + 3 : "");
    return request_target(source, "PUT", path ? path : none, account_of_host(name, account, cap)) && path &&
           !strcmp(source->account, r->account) && *source->blob;
}

static bool blob_files_service_lies_in(const struct node *node, const struct node *directory)
{
    while (node && node != directory)
        node = node->parent;
    return node;
}

/* Whether a rename may put something where the place is. Returns 0 or the status of the error. */
static int check_target(const struct request *r, struct reply *reply, const struct place *from, const struct place *to)
{
    if (from->node->directory != !strcmp(param(r, "restype"), "directory"))
        return reply_error(reply, 409, "ResourceTypeMismatch");
    if (from->share != to->share || !to->parent || blob_files_service_lies_in(to->parent, from->node))
        return reply_error(reply, 400, "InvalidInput");
    if (!to->node || to->node == from->node)
        return 0;
    if (!wants(r, "x-ms-file-rename-replace-if-exists"))
        return reply_error(reply, 409, "ResourceAlreadyExists");
    if (to->node->directory != from->node->directory)
        return reply_error(reply, 409, "ResourceTypeMismatch");
    if (to->node->n)
        return reply_error(reply, 409, "DirectoryNotEmpty");
    if (blob_files_service_is_read_only(to->node) && !wants(r, "x-ms-file-rename-ignore-readonly"))
        return reply_error(reply, 409, "ReadOnlyAttribute");
    return 0;
}

static int rename_node(const struct request *r, struct reply *reply, const struct place *from, const struct place *to)
{
    struct node *node = from->node;
    struct version *v = version_copy(node->version);
    const char *type = header(r, "x-ms-content-type");

    if ((has_metadata(r) && !take_metadata(r, reply, &v->meta)) || !take_system(r, reply, node)) {
        version_unref(v);
        return reply->status;
    }
    if (type) {
        free(v->props[PROP_TYPE]);
        v->props[PROP_TYPE] = need(strdup(type));
    }
    if (to->node && to->node != node)
        node_remove(to->share, to->node);
    node_move(node, to->parent, to->name);
    node_set(node, v);
    return blob_files_service_done(reply, node, 200);
}

static bool find_renamed(const struct request *source, struct reply *reply, bool keep_dots, struct place *p)
{
    if (!find_place(source, reply, keep_dots, p))
        return false;
    if (!p->node)
        reply_error(reply, 404, "ResourceNotFound");
    return p->node;
}

/* Rename File, Rename Directory */
static int rename_any(struct request *r, struct reply *reply)
{
    struct request *source = need(calloc(1, sizeof(*source)));
    const char *given = header(r, "x-ms-file-rename-source");
    char *url = need(strdup(given ? given : "")), account[64];
    struct place from, to;

    if (!given)
        reply_error(reply, 400, "MissingRequiredHeader");
    else if (!parse_rename_source(r, source, url, account, sizeof(account)))
        reply_error(reply, 400, "InvalidHeaderValue");
    else if (*param(r, "sig") && !*param(source, "sig"))
        reply_error(reply, 403, "AuthenticationFailed"); /* a signature is needed for both names */
    else if (find_renamed(source, reply, wants(r, "x-ms-source-allow-trailing-dot"), &from) &&
             its_place(r, reply, &to) && !check_target(r, reply, &from, &to))
        rename_node(r, reply, &from, &to);
    request_free(source);
    free(source);
    free(url);
    return reply->status;
}

/* ---- shares */

static bool share_name_is_valid(const char *name)
{
    size_t n = strlen(name);

    return n >= 3 && n <= 63 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == n && !strstr(name, "--") &&
           name[0] != '-' && name[n - 1] != '-';
}

/* Takes x-ms-share-quota; false and an error when it is out of range. */
static bool take_quota(const struct request *r, struct reply *reply, unsigned *gib)
{
    const char *quota = header(r, "x-ms-share-quota");

    if (!quota)
        return true;
    *gib = (unsigned)strtoul(quota, NULL, 10);
    if (!*gib || *gib > QUOTA_MAX_GIB)
        reply_error(reply, 400, "InvalidHeaderValue");
    return *gib && *gib <= QUOTA_MAX_GIB;
}

static int create_share(struct request *r, struct reply *reply)
{
    struct text meta = {0};
    unsigned gib = 0;

    if (!share_name_is_valid(r->container))
        return reply_error(reply, 400, "InvalidResourceName");
    if (share_find(r->account, r->container))
        return reply_error(reply, 409, "ShareAlreadyExists");
    if (!take_quota(r, reply, &gib) || !take_metadata(r, reply, &meta)) {
        text_free(&meta);
        return reply->status;
    }
    struct share *s = share_add(r->account, r->container);
    s->meta = meta;
    if (gib) {
        s->quota_gib = gib;
        s->room = (uint64_t)gib << 30;
    }
    reply_etag(reply, s->etag, s->modified);
    return reply->status = 201;
}

static int get_share(struct request *r, struct reply *reply)
{
    struct share *s = its_share(r, reply);

    if (!s)
        return reply->status;
    reply_etag(reply, s->etag, s->modified);
    text_addf(&reply->head,
              "x-ms-share-quota: %u\r\nx-ms-access-tier: TransactionOptimized\r\nx-ms-enabled-protocols: SMB\r\n"
              "x-ms-lease-status: unlocked\r\nx-ms-lease-state: available\r\n",
              s->quota_gib);
    reply_metadata(reply, &s->meta);
    return reply->status = 200;
}

static int set_share_properties(struct request *r, struct reply *reply)
{
    struct share *s = its_share(r, reply);
    unsigned gib = s ? s->quota_gib : 0;

    if (!s || !take_quota(r, reply, &gib))
        return reply->status;
    s->quota_gib = gib;
    s->room = (uint64_t)gib << 30;
    s->etag = etag_new();
    reply_etag(reply, s->etag, s->modified);
    return reply->status = 200;
}

static int get_share_stats(struct request *r, struct reply *reply)
{
    struct share *s = its_share(r, reply);

    if (!s)
        return reply->status;
    reply_etag(reply, s->etag, s->modified);
    reply_header(reply, "Content-Type", "application/xml");
    text_addf(&reply->body,
              "<?xml version=\"1.0\" encoding=\"utf-8\"?><ShareStats><ShareUsageBytes>%llu</ShareUsageBytes>"
              "</ShareStats>",
              (unsigned long long)s->stored);
    return reply->status = 200;
}

static int delete_share(struct request *r, struct reply *reply)
{
    struct share *s = its_share(r, reply);

    if (!s)
        return reply->status;
    share_remove(s);
    return reply->status = 202;
}

static int get_service_properties(struct request *r, struct reply *reply)
{
    (void)r;
    reply_header(reply, "Content-Type", "application/xml");
    text_str(&reply->body, "<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties>"
                           "</StorageServiceProperties>");
    return reply->status = 200;
}

/* ---- which operation */

enum level { ACCOUNT = 1, SHARE = 2, PATH = 4 };

static const struct operation {
    const char *method, *comp, *restype;
    unsigned levels;
    const char *rights; /* any of these letters */
    const char *since;  /* the first version of the service that has it */
    int (*serve)(struct request *, struct reply *);
    bool reads;
} operations[] = {
    {"GET", "", "", PATH, "r", "", get_file, true},
    {"HEAD", "", "", PATH, "r", "", head_file, true},
    {"PUT", "", "", PATH, "cw", "", create_file, false},
    {"PUT", "range", "", PATH, "w", "", put_range, false},
    {"GET", "rangelist", "", PATH, "r", "", list_ranges, true},
    {"PUT", "metadata", "", PATH, "w", "", set_file_metadata, false},
    {"PUT", "properties", "", PATH, "w", "", set_file_properties, false},
    {"PUT", "rename", "", PATH, "w", "2021-04-10", rename_any, false},
    {"DELETE", "", "", PATH, "d", "", delete_file, false},
    {"PUT", "", "directory", PATH, "cw", "", create_directory, false},
    {"GET", "", "directory", SHARE | PATH, "r", "", get_directory, true},
    {"HEAD", "", "directory", SHARE | PATH, "r", "", get_directory, true},
    {"GET", "list", "directory", SHARE | PATH, "l", "", list_directory, true},
    {"PUT", "metadata", "directory", PATH, "w", "", set_directory_metadata, false},
    {"PUT", "properties", "directory", SHARE | PATH, "w", "", set_directory_properties, false},
    {"PUT", "rename", "directory", PATH, "w", "2021-04-10", rename_any, false},
    {"DELETE", "", "directory", PATH, "d", "", delete_directory, false},
    {"PUT", "", "share", SHARE, "cw", "", create_share, false},
    {"GET", "", "share", SHARE, "r", "", get_share, true},
    {"HEAD", "", "share", SHARE, "r", "", get_share, true},
    {"PUT", "properties", "share", SHARE, "w", "", set_share_properties, false},
    {"GET", "stats", "share", SHARE, "r", "", get_share_stats, true},
    {"DELETE", "", "share", SHARE, "d", "", delete_share, false},
    {"GET", "list", "", ACCOUNT, "l", "", list_shares, true},
    {"GET", "properties", "service", ACCOUNT, "r", "", get_service_properties, true},
};

static const struct operation *blob_files_service_find_operation(const struct request *r)
{
    unsigned level = *r->blob ? PATH : *r->container ? SHARE : ACCOUNT;
    const char *version = header(r, "x-ms-version");

    version = version ? version : param(r, "sv");
    for (size_t i = 0; i < COUNT(operations); i++) {
        const struct operation *op = &operations[i];
        if (op->levels & level && !strcmp(op->method, r->method) && !strcmp(op->comp, param(r, "comp")) &&
            !strcmp(op->restype, param(r, "restype")) && strcmp(version, op->since) >= 0)
            return op;
    }
    return NULL;
}

/* What the service refuses whatever is asked for: it knows no conditions, and no version that is not a date. */
static int check_headers(const struct request *r, struct reply *reply)
{
    static const char *const conditions[] = {"if-match", "if-none-match", "if-modified-since", "if-unmodified-since"};
    const char *version = header(r, "x-ms-version");

    if (!version && !*param(r, "sv"))
        return reply_error(reply, 400, "MissingRequiredHeader");
    if (version && (strlen(version) != 10 || date_parse(version) < 0))
        return reply_error(reply, 400, "InvalidHeaderValue");
    for (size_t i = 0; i < COUNT(conditions); i++)
        if (header(r, conditions[i]))
            return reply_error(reply, 400, "ConditionHeadersNotSupported");
    return 0;
}

/* Checks the body against its length and its MD5, and says what arrived. What was swallowed is taken on trust. */
static int blob_files_service_check_body(const struct request *r, struct reply *reply)
{
    const char *md5 = header(r, "content-md5");
    char got[25];

    if (r->length > RANGE_MAX)
        return reply_error(reply, 413, "RequestBodyTooLarge");
    if (!r->body || !r->body->bytes)
        return 0;
    md5_base64(r->body->bytes, r->body->n, got);
    if (md5 && strcmp(md5, got) != 0)
        return reply_error(reply, 400, "Md5Mismatch");
    reply_header(reply, "Content-MD5", got);
    return 0;
}

static const struct operation *blob_files_service_admit(struct request *r, struct reply *reply)
{
    if (auth_check(r, reply) || check_headers(r, reply))
        return NULL;
    const struct operation *op = blob_files_service_find_operation(r);
    if (!op)
        reply_error(reply, 400, "UnsupportedHttpVerb");
    else if (!auth_allows(r, op->rights))
        reply_error(reply, 403, "AuthorizationPermissionMismatch");
    else
        return op;
    return NULL;
}

void files_service(struct request *r, struct reply *reply)
{
    const struct operation *op = blob_files_service_admit(r, reply);

    if (!op || blob_files_service_check_body(r, reply))
        return;
    if (op->reads)
        blobs_read();
    else
        blobs_write();
    op->serve(r, reply);
    blobs_unlock();
}
