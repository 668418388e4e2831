/* tail.c - the ends of logs, and small ones as a whole. */
#include <string.h>

#include "base/terminal.h"
#include "codec/json.h"
#include "diagnose/diagnose.h"
#include "flow/source/source.h"

enum { FIRST_CHUNK = 64 << 10, LAST_CHUNK = 8 << 20 };

/* Drops what stands before the first end of a line. */
static void tail_begin_line(struct act_buf *text)
{
    const char *first = text->len > 0 ? memchr(text->data, '\n', text->len) : NULL;
    size_t cut = first ? (size_t)(first - text->data) + 1 : 0;

    if (cut == 0)
        return;
    memmove(text->data, text->data + cut, text->len - cut + 1);
    text->len -= cut;
}

static int tail_take(const struct store_call *call, struct act_buf *out, struct act_error *err)
{
    if (call->rc == -ACT_NOT_FOUND) /* it is gone */
        return 0;
    if (call->rc < 0) {
        *err = call->error;
        return call->rc;
    }
    act_buf_add(out, call->get.sink, call->get.got);
    if (call->get.offset > 0)
        tail_begin_line(out);
    return 0;
}

int flow_log_tails(const struct flow_source *s, const struct store_entry *const *logs, size_t n, size_t max,
                   struct act_buf *out, struct act_error *err)
{
    ACT_AUTOFREE struct store_call *calls = act_calloc(n + 1, sizeof(*calls));
    ACT_AUTOFREE size_t *of = act_calloc(n + 1, sizeof(*of));
    size_t n_calls = 0;
    int rc = 0;

    for (size_t i = 0; i < n; i++) {
        if (!logs[i])
            continue;
        uint64_t from = logs[i]->size > max ? logs[i]->size - max : 0;
        of[n_calls] = i;
        calls[n_calls++] = (struct store_call){
            .op = STORE_GET, .key = logs[i]->key, .get = {.offset = from, .sink = act_alloc(max), .sink_cap = max}};
    }
    store_do_many(s->store, calls, n_calls);
    for (size_t i = 0; i < n_calls; i++) {
        if (rc == 0)
            rc = tail_take(&calls[i], &out[of[i]], err);
        free(calls[i].get.sink);
        store_call_release(&calls[i]);
    }
    return rc;
}

int flow_log_tail(const struct flow_source *s, const struct store_entry *log, size_t max, struct act_buf *out,
                  struct act_error *err)
{
    struct act_buf text = {0};
    int rc = flow_log_tails(s, &log, 1, max, &text, err);

    if (text.len > 0)
        act_buf_add(out, text.data, text.len);
    act_buf_release(&text);
    return rc;
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
        size_t len = end - start;
        const char *last = act_last_state(text->data + start, &len);
        len = len < DIAGNOSE_LINE ? len : DIAGNOSE_LINE;
        char *line = act_alloc(len + 1);
        memcpy(line, last, len);
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
    ACT_AUTOFREE char *chunk = act_alloc(LAST_CHUNK);
    size_t most = FIRST_CHUNK;
    int64_t found = -1;

    *out = n == 0 ? end : 0;
    while (end > 0 && n > 0) {
        uint64_t start = end > most ? end - most : 0;
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
        most = most < LAST_CHUNK ? most * 2 : most;
    }
    return 0;
}
