/* headers.c - header lists: short, in order, names without case. */
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

#include "http/http.h"

static struct http_header *find(const struct http_headers *h, const char *name)
{
    for (size_t i = 0; i < h->n; i++)
        if (strcasecmp(h->v[i].name, name) == 0)
            return &h->v[i];
    return NULL;
}

static void set_taken(struct http_headers *h, const char *name, char *value)
{
    struct http_header *old = find(h, name);

    if (old) {
        free(old->value);
        old->value = value;
        return;
    }
    h->v = act_realloc(h->v, (h->n + 1) * sizeof(*h->v));
    h->v[h->n++] = (struct http_header){.name = act_strdup(name), .value = value};
}

void http_header_set(struct http_headers *h, const char *name, const char *value)
{
    set_taken(h, name, act_strdup(value));
}

void http_header_setf(struct http_headers *h, const char *name, const char *fmt, ...)
{
    char *value;
    va_list ap;

    va_start(ap, fmt);
    int n = vasprintf(&value, fmt, ap);
    va_end(ap);
    if (n < 0)
        abort(); /* out of memory */
    set_taken(h, name, value);
}

const char *http_header_get(const struct http_headers *h, const char *name)
{
    const struct http_header *found = find(h, name);

    return found ? found->value : NULL;
}

void http_headers_release(struct http_headers *h)
{
    for (size_t i = 0; i < h->n; i++) {
        free(h->v[i].name);
        free(h->v[i].value);
    }
    free(h->v);
    *h = (struct http_headers){0};
}
