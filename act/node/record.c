#include "node/record.h"

#include <stdio.h>
#include <string.h>

#include "codec/json.h"

static char *record_path(const struct node *node, int rank)
{
    return act_sprintf("%s/" RUN_DIR_RANKS "/%d.json", node->dir, rank);
}

int record_write(const struct node *node, const struct record *r, struct act_error *err)
{
    ACT_AUTOFREE char *path = record_path(node, r->rank);
    CODEC_AUTOJSON json_t *json = json_pack(
        "{s:i, s:i, s:s, s:i, s:I, s:I, s:i, s:i, s:b, s:b, s:o}", "version", 1, "rank", r->rank, "node",
        r->node, "pid", (int)r->pid, "started_unix_ns", (json_int_t)r->started_unix_ns, "ended_unix_ns",
        (json_int_t)r->ended_unix_ns, "exit_status", r->exit_status, "signal", r->signal, "stopped",
        r->stopped, "kept", r->kept, "reason", codec_json_bytes_new(r->reason));

    return run_record_write(path, json, err);
}

bool record_read(const struct node *node, int rank, struct record *out)
{
    enum { RECORD_MAX_BYTES = 64 * 1024 };
    ACT_AUTOFREE char *path = record_path(node, rank);
    CODEC_AUTOJSON json_t *json = NULL;

    if (codec_json_read(path, RECORD_MAX_BYTES, &json, NULL) < 0)
        return false;
    ACT_AUTOFREE char *reason = codec_json_bytes_get(json_object_get(json, "reason"));
    *out = (struct record){
        .rank = rank,
        .pid = (pid_t)codec_json_int(json, "pid", 0),
        .started_unix_ns = codec_json_int(json, "started_unix_ns", 0),
        .ended_unix_ns = codec_json_int(json, "ended_unix_ns", 0),
        .exit_status = (int)codec_json_int(json, "exit_status", 0),
        .signal = (int)codec_json_int(json, "signal", 0),
        .stopped = json_is_true(json_object_get(json, "stopped")),
        .kept = json_is_true(json_object_get(json, "kept")),
    };
    snprintf(out->node, sizeof(out->node), "%s", codec_json_str(json, "node", ""));
    snprintf(out->reason, sizeof(out->reason), "%s", reason ? reason : "");
    return true;
}

void record_describe(const struct record *r, char *out, size_t size)
{
    if (r->reason[0])
        snprintf(out, size, "rank %d: %s", r->rank, r->reason);
    else if (r->signal)
        snprintf(out, size, "rank %d was killed by signal %d (%s)", r->rank, r->signal,
                 sigdescr_np(r->signal) ? sigdescr_np(r->signal) : "unknown");
    else
        snprintf(out, size, "rank %d exited with status %d", r->rank, r->exit_status);
}
