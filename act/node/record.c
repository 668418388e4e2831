#include "node/record.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "codec/json.h"

void record_release(struct node_record *r)
{
    act_strv_release(&r->lines);
}

json_t *record_to_json(const struct node_record *r)
{
    return json_pack("{s:i, s:s, s:i, s:I, s:I, s:i, s:i, s:b, s:b, s:i, s:b, s:o, s:o}", "rank", r->rank, "node",
                     r->node, "pid", (int)r->pid, "started_unix_ns", (json_int_t)r->started_unix_ns, "ended_unix_ns",
                     (json_int_t)r->ended_unix_ns, "exit_status", r->exit_status, "signal", r->signal, "stopped",
                     r->stopped, "kept", r->kept, "no_room", r->no_room, "room_again", r->room_again, "reason",
                     codec_json_bytes_new(r->reason), "lines", codec_json_strv_new(&r->lines));
}

void record_from_json(const json_t *json, struct node_record *out)
{
    ACT_AUTOFREE char *reason = codec_json_bytes_get(json_object_get(json, "reason"));

    *out = (struct node_record){
        .rank = (int)codec_json_int(json, "rank", 0),
        .pid = (pid_t)codec_json_int(json, "pid", 0),
        .started_unix_ns = codec_json_int(json, "started_unix_ns", 0),
        .ended_unix_ns = codec_json_int(json, "ended_unix_ns", 0),
        .exit_status = (int)codec_json_int(json, "exit_status", 0) & 0xff,
        .signal = (int)codec_json_int(json, "signal", 0),
        .stopped = json_is_true(json_object_get(json, "stopped")),
        .kept = json_is_true(json_object_get(json, "kept")),
        .no_room = (int)codec_json_int(json, "no_room", 0),
        .room_again = json_is_true(json_object_get(json, "room_again")),
    };
    snprintf(out->node, sizeof(out->node), "%s", codec_json_str(json, "node", ""));
    snprintf(out->reason, sizeof(out->reason), "%s", reason ? reason : "");
    if (!codec_json_strv_get(json_object_get(json, "lines"), &out->lines))
        act_strv_release(&out->lines);
}

/* ---- the last lines ---- */

void record_tail(const char *path, struct act_strv *out)
{
    char tail[RECORD_LINES_BYTES];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    off_t from = end > (off_t)sizeof(tail) ? end - (off_t)sizeof(tail) : 0;
    ssize_t n = fd < 0 ? 0 : act_pread_all(fd, tail, sizeof(tail), from);
    const char *starts[RECORD_LINES + 1];
    int count = 0;

    if (fd >= 0)
        close(fd);
    if (n > 0 && tail[n - 1] == '\n')
        n--;
    if (n <= 0)
        return;
    const char *stop = tail + n;
    for (const char *at = stop; at && count < RECORD_LINES;) { /* backwards from the last line */
        const char *newline = memrchr(tail, '\n', (size_t)(at - tail));
        bool cut = !newline && from > 0 && count > 0; /* only the end of a line */
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

/* ---- in words ---- */

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
