/* headers.c - header lists: short, in order, names without case.
 *
 * The text of a list lies in few blocks. Each header is "Name: value", as it is sent, and its name once more.
 * A value that is replaced leaves its old text behind: only signing does that, once for each try.
 */
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "http/http.h"

enum { BLOCK = 1024 };

struct http_text {
    struct http_text *next;
    size_t used, cap;
    char data[];
};

static char *carve(struct http_headers *h, size_t len)
{
    struct http_text *t = h->text;

    if (!t || t->cap - t->used < len) {
        size_t cap = len > BLOCK ? len : BLOCK;
        t = act_alloc(sizeof(*t) + cap);
        *t = (struct http_text){.next = h->text, .cap = cap};
        h->text = t;
    }
    t->used += len;
    return t->data + t->used - len;
}

static void write_header(struct http_headers *h, struct http_header *header, const char *name, size_t name_len,
                         const char *value, size_t value_len)
{
    char *line = carve(h, 2 * name_len + value_len + 4), *to = line;

    header->line = line;
    to = mempcpy(mempcpy(to, name, name_len), ": ", 2);
    header->value = to;
    to = mempcpy(to, value, value_len);
    *to++ = '\0';
    header->name = to;
    to = mempcpy(to, name, name_len);
    *to = '\0';
}

static struct http_header *header_named(const struct http_headers *h, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < h->n; i++)
        if ((size_t)(h->v[i].value - h->v[i].line) == len + 2 && strncasecmp(h->v[i].line, name, len) == 0)
            return &h->v[i];
    return NULL;
}

static struct http_header *headers_append(struct http_headers *h)
{
    ACT_GROW(h->v, h->n);
    return &h->v[h->n++];
}

void http_header_add(struct http_headers *h, const char *name, size_t name_len, const char *value, size_t value_len)
{
    write_header(h, headers_append(h), name, name_len, value, value_len);
}

static void set_value(struct http_headers *h, const char *name, const char *value, size_t value_len)
{
    struct http_header *header = header_named(h, name);

    write_header(h, header ? header : headers_append(h), name, strlen(name), value, value_len);
}

void http_header_set(struct http_headers *h, const char *name, const char *value)
{
    set_value(h, name, value, strlen(value));
}

void http_header_setf(struct http_headers *h, const char *name, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    ACT_AUTOWIPE char *value = act_vsprintf(fmt, ap);
    va_end(ap);
    set_value(h, name, value, strlen(value));
}

const char *http_header_get(const struct http_headers *h, const char *name)
{
    const struct http_header *found = header_named(h, name);

    return found ? found->value : NULL;
}

void http_headers_release(struct http_headers *h)
{
    struct http_text *next;

    for (struct http_text *t = h->text; t; t = next) {
        next = t->next;
        act_free_wiping(t);
    }
    free(h->v);
    *h = (struct http_headers){0};
}
