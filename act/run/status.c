/* status.c - status.json, replaced as a whole so that a reader never sees a part of it. */
#include <string.h>

#include "codec/fields.h"
#include "codec/json.h"
#include "run/run_internal.h"

enum { RANK_MAX = 1 << 24 };

static const struct field bad_rows[] = {
    FIELD_CHARS(struct run_bad_node, node, "node"),
    FIELD_CHARS(struct run_bad_node, class, "class"),
    FIELD_INT64(struct run_bad_node, unix_s, "time"),
};
static const struct fields bad_fields = FIELDS("bad node", struct run_bad_node, bad_rows, NULL);

static const struct field status_rows[] = {
    FIELD_VERSION(1, 0),
    FIELD_WORD(struct run_status, state, run_state_names, "state", .usual = RUN_UNKNOWN, .flags = FIELD_ANY_WORD),
    FIELD_INT64(struct run_status, started_unix_s, "started"),
    FIELD_INT64(struct run_status, ended_unix_s, "ended"),
    FIELD_INT(struct run_status, exit_status, "exit_status", .min = -1, .max = RUN_STATUS_MOST),
    FIELD_INT(struct run_status, failed_rank, "failed_rank", .min = -1, .max = RANK_MAX, .usual = -1),
    FIELD_INT(struct run_status, attempt, "attempt", .max = RANK_MAX, .usual = 1),
    FIELD_INT64(struct run_status, heartbeat_unix_s, "heartbeat"),
    FIELD_CHARS(struct run_status, reason, "reason"),
    FIELD_BOOL(struct run_status, unsubmitted, "unsubmitted", .flags = FIELD_RARE),
    FIELD_BOOL(struct run_status, ranks_asked, "ranks_asked", .flags = FIELD_RARE),
    FIELD_BOOL(struct run_status, seen, "seen", .flags = FIELD_RARE),
    FIELD_BOOL(struct run_status, aborted, "aborted", .flags = FIELD_RARE),
    FIELD_INT(struct run_status, attempts, "attempts", .max = RANK_MAX, .flags = FIELD_RARE),
    FIELD_CHARS(struct run_status, retry, "retry", .flags = FIELD_RARE),
    FIELD_ARRAY(struct run_status, bad, n_bad, struct run_bad_node, &bad_fields, "bad_nodes", .flags = FIELD_RARE),
    FIELD_CHARS(struct run_status, class, "class", .flags = FIELD_RARE),
};
static const struct fields status_fields = FIELDS("the status", struct run_status, status_rows, NULL);

void run_status_add_bad(struct run_status *status, const struct run_bad_node *bad)
{
    for (int i = 0; i < status->n_bad; i++)
        if (strcmp(status->bad[i].node, bad->node) == 0 && strcmp(status->bad[i].class, bad->class) == 0)
            return;
    if (status->n_bad == RUN_BAD_NODES)
        memmove(status->bad, status->bad + 1, sizeof(*status->bad) * --status->n_bad);
    status->bad[status->n_bad++] = *bad;
}

json_t *run_status_to_json(const struct run_status *status)
{
    return fields_to_json(&status_fields, status);
}

int run_status_from_json(const json_t *json, struct run_status *out, struct act_error *err)
{
    return fields_from_json(&status_fields, json, out, err);
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

    return rc < 0 ? rc : run_status_from_json(json, out, err);
}
