/* tail.c - the ends of logs, and small ones as a whole. */
#include <string.h>

#include "codec/json.h"
#include "diagnose/diagnose.h"
#include "flow/source/source.h"

enum { CHUNK = 8 << 20 };

int flow_log_tail(const struct flow_source *s, const struct store_entry *log, size_t max, struct act_buf *out,
                  struct act_error *err)
{
    uint64_t from = log && log->size > max ? log->size - max : 0;
    size_t got;

    if (!log)
        return 0;
    ACT_AUTOFREE char *text = act_alloc(max);
    int rc = flow_source_read(s, log->key, from, text, max, &got, err);
    if (rc < 0)
        return rc == -ACT_NOT_FOUND ? 0 : rc;
    act_buf_add(out, text, got);
    const char *first = from > 0 && out->len > 0 ? memchr(out->data, '\n', out->len) : NULL;
    if (first) {
        size_t cut = (size_t)(first - out->data) + 1;
        memmove(out->data, out->data + cut, out->len - cut + 1);
        out->len -= cut;
    }
    return 0;
}

int flow_log_json(const struct flow_source *s, const struct store_entry *log, json_t **out, struct act_error *err)
{
    enum { JSON_MAX = 1 << 20 };
    ACT_AUTO(act_buf) text = {0};
    struct act_error ignored;
    int rc = log && log->size <= JSON_MAX ? flow_log_tail(s, log, JSON_MAX, &text, err) : 0;

    *out = NULL;
    if (text.len > 0 && codec_json_parse(text.data, text.len, log->key, out, &ignored) < 0)
        *out = NULL;
    return rc;
}

void flow_last_lines(const struct act_buf *text, size_t n, struct act_strv *out)
{
    struct act_strv found = {0};
    size_t end = text->len;

    while (end > 0 && found.n < n) {
        const char *before = memrchr(text->data, '\n', end - 1);
        size_t start = before ? (size_t)(before - text->data) + 1 : 0;
        size_t len = end - start < DIAGNOSE_LINE ? end - start : DIAGNOSE_LINE;
        char *line = act_alloc(len + 1);
        memcpy(line, text->data + start, len);
        line[diagnose_clean(line, len)] = '\0';
        if (*line)
            act_strv_take(&found, line);
        else
            free(line);
        end = start;
    }
    for (size_t i = found.n; i > 0; i--)
        act_strv_push(out, found.v[i - 1]);
    act_strv_release(&found);
}

/* Returns where the last n lines among the len bytes at text begin; 0 if there are fewer. *found counts them. */
static size_t tail_start(const char *text, size_t len, int64_t n, int64_t *found)
{
    for (size_t i = len; i > 0; i--)
        if (text[i - 1] == '\n' && (*found)++ == n)
            return i;
    return 0;
}

int flow_find_tail(const struct flow_source *from, const char *name, int64_t n, uint64_t end, uint64_t *out,
                   struct act_error *err)
{
    ACT_AUTOFREE char *chunk = act_alloc(CHUNK);
    int64_t found = -1;

    *out = n == 0 ? end : 0;
    while (end > 0 && n > 0) {
        uint64_t start = end > CHUNK ? end - CHUNK : 0;
        size_t got;
        int rc = flow_source_read(from, name, start, chunk, end - start, &got, err);
        if (rc < 0)
            return rc;
        if (found < 0) /* the line that has no end yet counts as one */
            found = got > 0 && chunk[got - 1] != '\n';
        size_t at = tail_start(chunk, got, n, &found);
        if (at > 0) {
            *out = start + at;
            return 0;
        }
        end = start;
    }
    return 0;
}
