/* status.c - status.json, replaced as a whole so that a reader never sees a part of it. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "codec/json.h"
#include "run/run.h"

/* JSON takes only UTF-8; a reason may quote a program's output, cut anywhere. */
static json_t *reason_json(const char *reason)
{
    ACT_AUTOFREE char *line = act_one_line(reason, strlen(reason));

    return json_string(line);
}

static json_t *bad_to_json(const struct run_status *status)
{
    json_t *list = status->n_bad ? json_array() : NULL;

    for (int i = 0; i < status->n_bad; i++)
        json_array_append_new(list, json_pack("{s:o, s:s, s:I}", "node", reason_json(status->bad[i].node), "class",
                                              status->bad[i].class, "time", (json_int_t)status->bad[i].unix_s));
    return list;
}

void run_status_add_bad(struct run_status *status, const struct run_bad_node *bad)
{
    for (int i = 0; i < status->n_bad; i++)
        if (strcmp(status->bad[i].node, bad->node) == 0 && strcmp(status->bad[i].class, bad->class) == 0)
            return;
    if (status->n_bad == RUN_BAD_NODES)
        memmove(status->bad, status->bad + 1, sizeof(*status->bad) * --status->n_bad);
    status->bad[status->n_bad++] = *bad;
}

static void bad_from_json(const json_t *list, struct run_status *out)
{
    const json_t *member;
    size_t i;

    json_array_foreach(list, i, member)
    {
        struct run_bad_node bad = {.unix_s = codec_json_int(member, "time", 0)};
        snprintf(bad.node, sizeof(bad.node), "%s", codec_json_str(member, "node", ""));
        snprintf(bad.class, sizeof(bad.class), "%s", codec_json_str(member, "class", ""));
        run_status_add_bad(out, &bad);
    }
}

json_t *run_status_to_json(const struct run_status *status)
{
    return json_pack("{s:i, s:s, s:I, s:I, s:i, s:i, s:i, s:I, s:o, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:s*}",
                     "version", 1, "state", run_state_name(status->state), "started",
                     (json_int_t)status->started_unix_s, "ended", (json_int_t)status->ended_unix_s, "exit_status",
                     status->exit_status, "failed_rank", status->failed_rank, "attempt", status->attempt, "heartbeat",
                     (json_int_t)status->heartbeat_unix_s, "reason", reason_json(status->reason), "unsubmitted",
                     status->unsubmitted ? json_true() : NULL, "ranks_asked", status->ranks_asked ? json_true() : NULL,
                     "seen", status->seen ? json_true() : NULL, "aborted", status->aborted ? json_true() : NULL,
                     "attempts", status->attempts ? json_integer(status->attempts) : NULL, "retry",
                     status->retry[0] ? reason_json(status->retry) : NULL, "bad_nodes", bad_to_json(status), "class",
                     status->class[0] ? status->class : NULL);
}

static int bounded(const json_t *json, const char *key, int low, int high, int fallback)
{
    int64_t value = codec_json_int(json, key, fallback);

    return value < low || value > high ? fallback : (int)value;
}

void run_status_from_json(const json_t *json, struct run_status *out)
{
    enum { RANK_MAX = 1 << 24 };

    *out = (struct run_status){
        .state = run_state_from_name(codec_json_str(json, "state", "")),
        .started_unix_s = codec_json_int(json, "started", 0),
        .ended_unix_s = codec_json_int(json, "ended", 0),
        .exit_status = bounded(json, "exit_status", 0, 255, 0),
        .failed_rank = bounded(json, "failed_rank", -1, RANK_MAX, -1),
        .attempt = bounded(json, "attempt", 1, RANK_MAX, 1),
        .heartbeat_unix_s = codec_json_int(json, "heartbeat", 0),
        .unsubmitted = json_is_true(json_object_get(json, "unsubmitted")),
        .seen = json_is_true(json_object_get(json, "seen")),
        .aborted = json_is_true(json_object_get(json, "aborted")),
        .ranks_asked = json_is_true(json_object_get(json, "ranks_asked")),
        .attempts = bounded(json, "attempts", 0, RANK_MAX, 0),
    };
    snprintf(out->class, sizeof(out->class), "%s", codec_json_str(json, "class", ""));
    snprintf(out->retry, sizeof(out->retry), "%s", codec_json_str(json, "retry", ""));
    bad_from_json(json_object_get(json, "bad_nodes"), out);
    snprintf(out->reason, sizeof(out->reason), "%s", codec_json_str(json, "reason", ""));
}

/* It does not wait for the disk: after a power cut there is no supervisor any more, and a torn record counts as
 * none. */
int run_record_write(const char *path, const json_t *value, struct act_error *err)
{
    ACT_AUTOFREE char *text = codec_json_line(value);

    return act_file_write_quickly(path, text, strlen(text), 0600, err);
}

int run_status_write(const char *path, const struct run_status *status, struct act_error *err)
{
    CODEC_AUTOJSON json_t *json = run_status_to_json(status);

    if (run_state_is_final(status->state))
        return codec_json_write(path, json, 0600, err);
    return run_record_write(path, json, err);
}

int run_status_read(const char *path, struct run_status *out, struct act_error *err)
{
    enum { STATUS_MAX_BYTES = 64 * 1024 };
    CODEC_AUTOJSON json_t *json = NULL;
    int rc = codec_json_read(path, STATUS_MAX_BYTES, &json, err);

    if (rc == 0)
        run_status_from_json(json, out);
    return rc;
}
