/* files_copy.c - Copy File, Put Range From URL. The source is always a file of this server. */
#include "files_service.h"
#include "service.h"

#include <stdlib.h>
#include <string.h>

/* The file that x-ms-copy-source names, or NULL and an error in the reply. */
static struct node *blob_files_copy_find_source(struct request *r, struct reply *reply, bool key_is_enough)
{
    struct request *source = need(calloc(1, sizeof(*source)));
    char *url = need(strdup(header(r, "x-ms-copy-source"))), account[64];
    struct reply answer = {0};
    struct place p = {0};

    if (!parse_source(r, source, url, account, sizeof(account)))
        reply_error(reply, 400, "CannotVerifyCopySource");
    else if (!check_source_access(r, reply, source, key_is_enough)) {
        if (find_place(source, &answer, wants(r, "x-ms-source-allow-trailing-dot"), &p) &&
            (!p.node || p.node->directory))
            reply_error(&answer, 404, "ResourceNotFound");
        if (answer.status)
            source_failed(reply, &answer, answer.status, "CannotVerifyCopySource");
    }
    request_free(source);
    reply_free(&answer);
    free(source);
    free(url);
    return reply->status ? NULL : p.node;
}

int copy_file(struct request *r, struct reply *reply, const struct place *p)
{
    struct node *source = blob_files_copy_find_source(r, reply, true);

    if (!source)
        return reply->status;
    uint64_t n = source->version->content->n, freed = p->node ? p->node->stored : 0;
    if (p->share->stored - freed + n > p->share->room)
        return reply_error(reply, 403, "ShareSizeLimitReached");
    struct version *v = version_copy(source->version);
    v->created = v->modified;
    if (has_metadata(r) && !take_metadata(r, reply, &v->meta)) {
        version_unref(v);
        return reply->status;
    }
    start_copy(r, reply, v, false);
    struct node *node = replace_file(r, reply, p, v, source);
    if (!node)
        return reply->status;
    node->stored = n;
    p->share->stored += n;
    reply_etag(reply, v->etag, v->modified);
    return reply->status = 202;
}

int put_range_from_url(struct request *r, struct reply *reply, const struct place *p, uint64_t from, uint64_t n)
{
    struct node *source = blob_files_copy_find_source(r, reply, false);
    uint64_t start, length;

    if (!source)
        return reply->status;
    if (parse_range(header(r, "x-ms-source-range"), source->version->content->n, &start, &length) < 0 || length != n)
        return reply_error(reply, 416, "InvalidRange");
    if (n > RANGE_MAX)
        return reply_error(reply, 413, "RequestBodyTooLarge");
    struct content *part = content_slice(source->version->content, start, n);
    if (check_source_content(r, reply, part)) {
        content_unref(part);
        return reply->status;
    }
    return store_range(r, reply, p, from, part);
}
