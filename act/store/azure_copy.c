/* azure_copy.c - copies inside one account: started, then watched until the service has finished. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/azure.h"

#define FIRST_POLL_MS 100
#define LAST_POLL_MS  1000
#define STUCK_MS      (10 * 60 * 1000) /* without progress */

static void build_copy(struct azure_op *op)
{
    ACT_AUTOFREE char *source = azure_url(op->azure, op->call->source);

    azure_request(op, "PUT", op->call->key, NULL);
    http_header_setf(&op->http.headers, "x-ms-copy-source", "%s%s%s", source, op->azure->sas ? "?" : "",
                     op->azure->sas ? op->azure->sas : "");
    if (op->call->source_match)
        http_header_set(&op->http.headers, "x-ms-source-if-match", op->call->source_match);
}

static void poll(void *arg)
{
    azure_send(arg);
}

/* Looks again later; -ACT_TIMEOUT when nothing has moved for too long. */
static int poll_later(struct azure_op *op)
{
    const char *progress = http_header_get(&op->http.answer_headers, "x-ms-copy-progress");
    int64_t now = act_now_monotonic_ms();

    if (!op->copy_moved_ms || (progress && !act_streq(progress, op->copy_progress))) {
        free(op->copy_progress);
        op->copy_progress = act_strdup(progress);
        op->copy_moved_ms = now;
    }
    if (now - op->copy_moved_ms > STUCK_MS)
        return act_error_set(&op->call->error, ACT_TIMEOUT, "%s: no progress for 10 minutes", azure_what(op));
    op->poll_ms = op->poll_ms == 0                 ? FIRST_POLL_MS
                  : op->poll_ms < LAST_POLL_MS / 2 ? 2 * op->poll_ms
                                                   : LAST_POLL_MS;
    engine_timer(http_engine(op->azure->store.http), op->poll_ms, poll, op);
    return 0;
}

/* Both the first answer and those of polling carry the copy's id and status. */
static void take_status(struct azure_op *op)
{
    const struct http_headers *headers = &op->http.answer_headers;
    const char *id = http_header_get(headers, "x-ms-copy-id");
    const char *status = http_header_get(headers, "x-ms-copy-status");
    const char *why = http_header_get(headers, "x-ms-copy-status-description");
    struct act_error *err = &op->call->error;
    int rc = 0;

    if (op->http.status / 100 != 2) {
        azure_finish_failed(op);
        return;
    }
    if (!op->copy_id)
        op->copy_id = act_strdup(id);
    if (!id || !status || !act_streq(id, op->copy_id))
        rc = act_error_set(err, ACT_TEMPORARY, "%s: something else was written there meanwhile",
                           azure_what(op));
    else if (strcmp(status, "pending") == 0) {
        op->build = azure_build_head;
        rc = poll_later(op);
        if (rc == 0)
            return;
    } else if (strcmp(status, "success") != 0)
        rc = act_error_set(err, ACT_FAIL, "%s: copy %s: %s", azure_what(op), status,
                           why ? why : "no reason given");
    else {
        op->call->entry.key = act_strdup(op->call->key);
        azure_take_etag(&op->call->entry, http_header_get(headers, "ETag"));
    }
    azure_finish(op, rc);
}

void azure_copy(struct azure_op *op)
{
    free(op->what);
    op->what = act_sprintf("cannot copy '%s/%s' to '%s/%s'", op->azure->container, op->call->source,
                           op->azure->container, op->call->key);
    azure_send_next(op, build_copy, take_status);
}
