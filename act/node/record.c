#include "node/record.h"

#include <stdio.h>
#include <string.h>

#include "codec/fields.h"

void record_release(struct node_record *r)
{
    act_strv_release(&r->lines);
}

#define RECORD_ROW(kind, member, ...) FIELD_##kind(struct node_record, member, #member, __VA_ARGS__)

static const struct field record_rows[] = {
    RECORD_ROW(INT, rank),
    RECORD_ROW(CHARS, node),
    RECORD_ROW(INT, pid),
    RECORD_ROW(INT64, started_unix_ns),
    RECORD_ROW(INT64, ended_unix_ns),
    RECORD_ROW(INT, exit_status, .max = RUN_STATUS_MOST),
    RECORD_ROW(INT, signal, .max = RUN_STATUS_MOST),
    RECORD_ROW(BOOL, stopped),
    RECORD_ROW(BOOL, kept),
    RECORD_ROW(INT, no_room),
    RECORD_ROW(BOOL, room_again),
    RECORD_ROW(CHARS, doing, .flags = FIELD_RARE),
    RECORD_ROW(CHARS, reason),
    RECORD_ROW(TEXTS, lines),
};
static const struct fields record_fields = FIELDS("the record of a rank", struct node_record, record_rows, NULL);

json_t *record_to_json(const struct node_record *r)
{
    return fields_to_json(&record_fields, r);
}

int record_from_json(const json_t *json, struct node_record *out, struct act_error *err)
{
    return fields_from_json(&record_fields, json, out, err);
}

void record_tail(const char *path, struct act_strv *out)
{
    char all[RECORD_LINES_BYTES + 1];
    size_t n = node_read_tail(path, all, sizeof(all)), is_part = n == sizeof(all);
    const char *tail = all + is_part, *starts[RECORD_LINES + 1];
    int count = 0;

    n -= is_part;
    if (n > 0 && tail[n - 1] == '\n')
        n--;
    if (n == 0)
        return;
    const char *stop = tail + n;
    for (const char *at = stop; at && count < RECORD_LINES;) { /* backwards from the last line */
        const char *newline = memrchr(tail, '\n', (size_t)(at - tail));
        bool cut = !newline && is_part && count > 0; /* only the end of a line */
        if (!cut)
            starts[count++] = newline ? newline + 1 : tail;
        at = newline;
    }
    for (int i = count - 1; i >= 0; i--) {
        const char *line_end = i > 0 ? starts[i - 1] - 1 : stop;
        size_t len = (size_t)(line_end - starts[i]);
        len -= len > 0 && line_end[-1] == '\r';
        act_strv_take(out, act_one_line(starts[i], len));
    }
}

void record_describe(const struct node_record *r, char *out, size_t size)
{
    if (r->lost)
        snprintf(out, size, "rank %d is lost: %s", r->rank, r->reason);
    else if (r->reason[0])
        snprintf(out, size, "rank %d: %s", r->rank, r->reason);
    else if (r->signal)
        snprintf(out, size, "rank %d was killed by signal %d (%s)", r->rank, r->signal,
                 sigdescr_np(r->signal) ? sigdescr_np(r->signal) : "unknown");
    else
        snprintf(out, size, "rank %d exited with status %d", r->rank, r->exit_status);
}
