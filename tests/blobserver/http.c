#include "http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *header(const struct request *r, const char *name)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (!strcmp(r->headers[i].name, name))
            return r->headers[i].value;
    return NULL;
}

const char *param(const struct request *r, const char *name)
{
    for (size_t i = 0; i < r->n_params; i++)
        if (!strcmp(r->params[i].name, name))
            return r->params[i].value;
    return "";
}

/* Decodes a piece of the target into the request's own memory, in which there is room. */
static char *blob_http_decode(struct request *r, const char *s, size_t n, bool plus)
{
    char *out = r->decoded.s + r->decoded.n;
    long got = percent_decode(s, n, plus, out);

    if (got < 0)
        return NULL;
    r->decoded.n += (size_t)got + 1;
    return out;
}

static bool parse_query(struct request *r)
{
    for (char *s = r->query; *s;) {
        size_t n = strcspn(s, "&"), name = strcspn(s, "=&");
        const char *value = name < n ? s + name + 1 : s + n;
        if (n && r->n_params < MAX_PARAMS) {
            struct pair *p = &r->params[r->n_params++];
            p->name = blob_http_decode(r, s, name, true);
            p->value = blob_http_decode(r, value, (size_t)(s + n - value), true);
            if (!p->name || !p->value)
                return false;
            for (char *c = p->name; *c; c++)
                *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
        }
        s += n + (s[n] == '&');
    }
    return true;
}

/* Splits /account/container/blob, or /container/blob when the account is known. */
static bool parse_path(struct request *r, const char *host_account)
{
    const char *s = r->path + 1;
    const char **part[] = {&r->account, &r->container, &r->blob};
    size_t first = *host_account ? 1 : 0;

    r->account = r->host_account = host_account;
    r->container = r->blob = "";
    for (size_t i = first; i < 3 && *s; i++) {
        size_t n = i == 2 ? strlen(s) : strcspn(s, "/");
        if (!(*part[i] = blob_http_decode(r, s, n, false)))
            return false;
        s += n + (s[n] == '/');
    }
    return true;
}

bool request_target(struct request *r, const char *method, char *target, const char *host_account)
{
    char *mark = strchr(target, '?');

    r->method = method;
    r->path = target;
    r->query = mark ? mark + 1 : target + strlen(target);
    r->n_params = 0;
    text_clear(&r->decoded);
    text_room(&r->decoded, 2 * strlen(target) + 4 * (MAX_PARAMS + 4));
    if (mark)
        *mark = '\0';
    return target[0] == '/' && parse_path(r, host_account) && parse_query(r);
}

/* Ends a line at its CR LF and returns the start of the next. */
static char *blob_http_end_line(char *s)
{
    char *end = strchr(s, '\n');

    if (!end)
        return NULL;
    *end = '\0';
    if (end > s && end[-1] == '\r')
        end[-1] = '\0';
    return end + 1;
}

bool request_header(struct request *r, char *line)
{
    char *colon = strchr(line, ':');

    if (!colon || r->n_headers == MAX_HEADERS)
        return false;
    *colon = '\0';
    char *keep = strncasecmp(line, "x-ms-meta-", 10) ? colon : line + 10;
    for (char *c = line; c < keep; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
    char *value = colon + 1 + strspn(colon + 1, " \t");
    for (size_t n = strlen(value); n && (value[n - 1] == ' ' || value[n - 1] == '\t'); n--)
        value[n - 1] = '\0';
    r->headers[r->n_headers++] = (struct pair){line, value};
    return true;
}

const char *account_of_host(const char *host, char *out, size_t cap)
{
    const char *blob = host ? strstr(host, ".blob.") : NULL, *file = host ? strstr(host, ".file.") : NULL;
    const char *dot = blob ? blob : file;

    if (!dot || (size_t)(dot - host) >= cap)
        return "";
    snprintf(out, cap, "%.*s", (int)(dot - host), host);
    return out;
}

bool request_parse(struct request *r, char *head, size_t n)
{
    head[n - 1] = '\0'; /* in place of the LF of the empty line */
    r->n_headers = 0;
    r->length = 0;
    r->rights = NULL;
    r->by_key = false;
    r->page = PAGE_RIGHT;
    char *line = blob_http_end_line(head);
    char *target = strchr(head, ' ');
    if (!line || !target || strlen(head) + 1 > (size_t)(line - head))
        return false;
    *target++ = '\0';
    char *end = strchr(target, ' ');
    if (!end || strncmp(end, " HTTP/1.", 8) != 0)
        return false;
    *end = '\0';
    while (line && *line && *line != '\r') {
        char *next = blob_http_end_line(line);
        if (!request_header(r, line))
            return false;
        line = next;
    }
    const char *length = header(r, "content-length");
    if (length)
        r->length = strtoull(length, NULL, 10);
    char account[64];
    const char *known = account_of_host(header(r, "host"), account, sizeof(account));
    if (!request_target(r, head, target, known))
        return false;
    if (*known) { /* it must live as long as the request */
        char *kept = r->decoded.s + r->decoded.n;
        memcpy(kept, known, strlen(known) + 1);
        r->decoded.n += strlen(known) + 1;
        r->account = r->host_account = kept;
    }
    return true;
}

void request_free(struct request *r)
{
    data_unref(r->body);
    r->body = NULL;
    text_free(&r->decoded);
}

void reply_clear(struct reply *r)
{
    version_unref(r->version);
    r->version = NULL;
    r->status = 0;
    r->code = NULL;
    r->from = r->n = 0;
    r->no_length = false;
    text_clear(&r->head);
    text_clear(&r->body);
}

void reply_free(struct reply *r)
{
    reply_clear(r);
    text_free(&r->head);
    text_free(&r->body);
}

void reply_header(struct reply *r, const char *name, const char *value)
{
    text_str(&r->head, name);
    text_add(&r->head, ": ", 2);
    text_str(&r->head, value);
    text_add(&r->head, "\r\n", 2);
}

const char *status_text(int status)
{
    static const struct {
        int status;
        const char *text;
    } rows[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {206, "Partial Content"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {409, "Conflict"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Request Entity Too Large"},
        {416, "Range Not Satisfiable"},
        {429, "Too Many Requests"},
        {500, "Internal Server Error"},
        {503, "Service Unavailable"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].status == status)
            return rows[i].text;
    return "Unknown";
}

int reply_error(struct reply *r, int status, const char *code)
{
    version_unref(r->version);
    r->version = NULL;
    r->from = r->n = 0;
    r->status = status;
    r->code = code;
    r->no_length = false;
    text_clear(&r->body);
    reply_header(r, "x-ms-error-code", code);
    if (status == 304)
        return status;
    reply_header(r, "Content-Type", "application/xml");
    text_addf(&r->body,
              "\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>%s</Code>"
              "<Message>%s\nRequestId:00000000-0000-0000-0000-000000000000</Message></Error>",
              code, status_text(status));
    return status;
}
