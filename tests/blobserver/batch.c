/* batch.c - Blob Batch: many deletes in one request, each of them with its own credentials. */
#include "service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { BATCH_MAX = 256 };

/* Cuts the next line off; NULL at the end. */
static char *blob_batch_next_line(char **at)
{
    char *line = *at, *end = line ? strchr(line, '\n') : NULL;

    if (!end)
        return NULL;
    *at = end + 1;
    *end = '\0';
    if (end > line && end[-1] == '\r')
        end[-1] = '\0';
    return line;
}

/* Reads one part into a request; returns its Content-ID, or NULL when it is none. */
static const char *blob_batch_parse_part(struct request *part, const struct request *outer, char **at)
{
    const char *id = "";
    char *line;

    while ((line = blob_batch_next_line(at)) && *line)
        if (!strncasecmp(line, "content-id:", 11))
            id = line + 11 + strspn(line + 11, " ");
    line = blob_batch_next_line(at);
    char *target = line ? strchr(line, ' ') : NULL;
    char *end = target ? strchr(target + 1, ' ') : NULL;
    if (!end)
        return NULL;
    *target++ = *end = '\0';
    const char *method = line;
    part->n_headers = 0;
    part->rights = NULL;
    part->by_key = false;
    part->login_object[0] = '\0';
    while ((line = blob_batch_next_line(at)) && *line)
        if (!request_header(part, line))
            return NULL;
    return request_target(part, method, target, outer->host_account) ? id : NULL;
}

static void add_answer(struct text *out, const char *boundary, const char *id, const struct reply *answer)
{
    text_addf(out, "--%s\r\nContent-Type: application/http\r\n", boundary);
    if (*id)
        text_addf(out, "Content-ID: %s\r\n", id);
    text_addf(out, "\r\nHTTP/1.1 %d %s\r\n", answer->status, status_text(answer->status));
    if (answer->head.n)
        text_add(out, answer->head.s, answer->head.n);
    text_addf(out,
              "x-ms-request-id: 00000000-0000-0000-0000-000000000000\r\nx-ms-version: 2023-11-03\r\n"
              "Content-Length: %zu\r\n\r\n",
              answer->body.n);
    if (answer->body.n)
        text_add(out, answer->body.s, answer->body.n);
    text_str(out, "\r\n");
}

/* The start of the next part, behind the line of the boundary; NULL behind the last one. */
static char *next_part(char *at, const char *boundary)
{
    char *found = strstr(at, boundary);

    if (!found || !strncmp(found + strlen(boundary), "--", 2))
        return NULL;
    char *end = strchr(found, '\n');
    return end ? end + 1 : NULL;
}

static size_t blob_batch_count_parts(char *body, const char *boundary)
{
    size_t n = 0;

    for (char *at = body; (at = next_part(at, boundary)); n++)
        ;
    return n;
}

static void serve_parts(struct request *r, struct reply *reply, char *body, const char *boundary, const char *out)
{
    struct request *part = need(calloc(1, sizeof(*part)));
    struct reply answer = {0};
    bool scoped = *r->container;
    char *at = body;

    while ((at = next_part(at, boundary))) {
        reply_clear(&answer);
        const char *id = blob_batch_parse_part(part, r, &at);
        if (!id || (scoped && strcmp(part->container, r->container) != 0))
            reply_error(&answer, 400, "InvalidInput");
        else
            service_part(part, &answer);
        add_answer(&reply->body, out, id ? id : "", &answer);
    }
    reply_free(&answer);
    request_free(part);
    free(part);
}

int delete_batch(struct request *r, struct reply *reply)
{
    static const char out[] = "batchresponse_00000000-0000-0000-0000-000000000000";
    const char *type = header(r, "content-type"), *mark = type ? strstr(type, "boundary=") : NULL;
    char boundary[100];

    if (!mark || !r->body || !r->body->bytes)
        return reply_error(reply, 400, "InvalidInput");
    mark += 9 + (mark[9] == '"');
    snprintf(boundary, sizeof(boundary), "--%.*s", (int)strcspn(mark, "\";"), mark);
    r->body->bytes[r->body->n] = '\0'; /* there is room for it */
    char *body = (char *)r->body->bytes;
    if (blob_batch_count_parts(body, boundary) > BATCH_MAX) {
        struct reply all = {0};
        reply_error(&all, 400, "ExceedsMaxBatchRequestCount");
        add_answer(&reply->body, out, "", &all);
        reply_free(&all);
    } else {
        serve_parts(r, reply, body, boundary, out);
    }
    text_addf(&reply->body, "--%s--\r\n", out);
    text_addf(&reply->head, "Content-Type: multipart/mixed; boundary=%s\r\n", out);
    return reply->status = 202;
}
