/* request.c - reads requests, and refuses whatever is not exactly as RFC 9112 has it. */
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "http/http.h"
#include "web/web_internal.h"

size_t web_head_end(const char *data, size_t len)
{
    const char *end = memmem(data, len, "\r\n\r\n", 4);

    return end ? (size_t)(end - data) + 4 : 0;
}

/* Ends the line that begins at text, and returns the next one; NULL: a line feed or a return stands alone. */
static char *request_end_line(char *text)
{
    char *end = strpbrk(text, "\r\n");

    if (!end || end[0] != '\r' || end[1] != '\n')
        return NULL;
    *end = '\0';
    return end + 2;
}

static bool is_printable(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text <= ' ' || (unsigned char)*text >= 0x7f)
            return false;
    return true;
}

/* Tells whether text is a token (RFC 9110 section 5.6.2), as methods and names of headers are. */
static bool is_token(const char *text)
{
    return *text && is_printable(text) && !strpbrk(text, "\"(),/:;<=>?@[\\]{}");
}

/* Splits "GET /path HTTP/1.1". */
static int read_request_line(char *line, char **out_method, char **out_target)
{
    char *version, *rest = line;

    *out_method = strsep(&rest, " ");
    *out_target = strsep(&rest, " ");
    version = strsep(&rest, " ");
    if (!version || rest || !is_token(*out_method) || !is_printable(*out_target) || **out_target != '/')
        return 400;
    if (strlen(version) != 8 || !act_starts_with(version, "HTTP/1.") || version[7] < '0' || version[7] > '9')
        return 505;
    return 200;
}

static char *trimmed(char *value)
{
    value += strspn(value, " \t");
    size_t len = strlen(value);
    while (len > 0 && strchr(" \t", value[len - 1]))
        value[--len] = '\0';
    return value;
}

/* Reads the headers, of which only Host matters; there must be one (RFC 9112 section 3.2). */
static int read_headers(char *line, char **out_host)
{
    *out_host = NULL;
    while (*line != '\r') {
        char *next = request_end_line(line), *colon = strchr(line, ':');
        if (!next || !colon)
            return 400;
        *colon = '\0';
        if (!is_token(line))
            return 400;
        if (strcasecmp(line, "Host") == 0) {
            if (*out_host)
                return 400;
            *out_host = trimmed(colon + 1);
        }
        line = next;
    }
    return *out_host ? 200 : 400;
}

/* Takes any port, because the browser knows another one behind "ssh -L". */
static bool is_this_machine(const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t len = strlen(names[i]);
        if (strncasecmp(host, names[i], len) != 0)
            continue;
        const char *port = host + len;
        if (!*port || (*port == ':' && port[1] && strspn(port + 1, "0123456789") == strlen(port + 1)))
            return true;
    }
    return false;
}

/* Splits "/KEY/path?query". */
static int request_read_target(char *target, const char *key, struct web_request *out)
{
    char *query = target + strcspn(target, "?"), *slash;

    out->query = "";
    if (*query) {
        *query = '\0';
        out->query = query + 1;
    }
    slash = strchr(target + 1, '/');
    if (!slash)
        return 403;
    *slash = '\0';
    out->path = slash + 1;
    return act_equal_secrets(target + 1, key) ? 200 : 403;
}

int web_read_head(char *head, size_t len, const char *key, struct web_request *out)
{
    bool is_whole = strlen(head) == len && act_ends_with(head, "\r\n\r\n");
    char *method, *target, *host, *headers = is_whole ? request_end_line(head) : NULL;

    *out = (struct web_request){0};
    if (!headers)
        return 400;
    int status = read_request_line(head, &method, &target);
    if (status == 200)
        status = read_headers(headers, &host);
    if (status == 200 && !is_this_machine(host))
        return 421;
    if (status != 200)
        return status;
    out->is_head = strcmp(method, "HEAD") == 0;
    return out->is_head || strcmp(method, "GET") == 0 ? request_read_target(target, key, out) : 405;
}

char *web_param(const char *query, const char *name, size_t nth)
{
    size_t len = strlen(name);

    for (const char *at = query; *at;) {
        size_t n = strcspn(at, "&");
        if (n > len && at[len] == '=' && strncmp(at, name, len) == 0 && nth-- == 0) {
            ACT_AUTOFREE char *raw = act_strndup(at + len + 1, n - len - 1);
            for (char *c = raw; *c; c++)
                *c = *c == '+' ? ' ' : *c;
            return http_decode(raw);
        }
        at += n + (at[n] == '&');
    }
    return NULL;
}

static bool request_is_one_of(const char *const *names, const char *name, size_t len)
{
    for (; *names; names++)
        if (strlen(*names) == len && strncmp(*names, name, len) == 0)
            return true;
    return false;
}

bool web_params_are(const char *query, const char *const *names)
{
    for (const char *at = query; *at;) {
        size_t n = strcspn(at, "&"), len = strcspn(at, "&=");
        if (n > 0 && !request_is_one_of(names, at, len))
            return false;
        at += n + (at[n] == '&');
    }
    return true;
}
