/* piece.c - a piece of a log of a run, where the log is now; of a run that has ended and is gone there, of the copy. */
#include <string.h>

#include "base/log.h"
#include "flow/look/look.h"
#include "flow/source/source.h"

static const struct store_entry *piece_find(const struct store_page *logs, const char *name, int rank)
{
    if (!name)
        return flow_find_rank_log(logs, "", rank);
    for (size_t i = 0; i < logs->n; i++)
        if (strcmp(logs->v[i].key, name) == 0)
            return &logs->v[i];
    return NULL;
}

static int piece_read(const struct flow_source *source, const struct store_entry *log, int64_t from, size_t max,
                      struct flow_piece *out, struct act_error *err)
{
    uint64_t back = from < 0 ? (uint64_t)-from : 0, begin = from < 0 ? log->size - back : (uint64_t)from;
    size_t got = 1;
    int rc = 0;

    out->name = act_strdup(log->key);
    out->size = log->size;
    out->from = back > log->size ? 0 : begin > log->size ? log->size : begin;
    uint64_t left = log->size - out->from;
    size_t len = left < max ? (size_t)left : max;
    ACT_AUTOFREE char *data = act_alloc(len + 1);
    for (size_t n = 0; n < len && got > 0 && rc == 0; n += got) {
        rc = flow_source_read(source, log->key, out->from + n, data + n, len - n, &got, err);
        if (rc == 0)
            act_buf_add(&out->bytes, data + n, got);
    }
    return rc;
}

static int piece_look(const struct flow_source *source, const struct flow_run *run,
                      const struct flow_piece_wanted *what, struct flow_piece *out, struct act_error *err)
{
    ACT_AUTO(store_page) logs = {0};
    int rc = source->store ? flow_source_list(source, &logs, err) : 0;
    const struct store_entry *log = rc == 0 ? piece_find(&logs, what->name, what->rank) : NULL;

    if (rc < 0)
        return rc;
    if (log)
        return piece_read(source, log, what->from, what->max, out, err);
    if (what->name)
        return act_error_set(err, ACT_NOT_FOUND, "run '%s' has no log '%s'", run->row.id, what->name);
    return act_error_set(err, ACT_NOT_FOUND, "rank %d of run '%s' has no log yet", what->rank, run->row.id);
}

/* Reads the piece from the copies. */
static int piece_look_here(struct flow *flow, const struct flow_run *run, const struct flow_piece_wanted *what,
                           struct flow_piece *out, struct act_error *err)
{
    struct flow_source here = {0};
    int rc = flow_source_open_here(flow, run, &here, err);

    if (rc == 0)
        rc = piece_look(&here, run, what, out, err);
    flow_source_close(&here);
    return rc;
}

int flow_read_piece(struct flow *flow, const struct flow_run *run, const struct flow_piece_wanted *what,
                    struct flow_piece *out, struct act_error *err)
{
    struct flow_source source = {0};
    struct flow_piece copy = {0};
    struct act_error ignored;
    int rc = flow_source_open(flow, run, &source, err);

    *out = (struct flow_piece){0};
    if (rc == 0)
        rc = piece_look(&source, run, what, out, err);
    flow_source_close(&source);
    if (rc == 0 || !run_state_is_final(run->status.state) || piece_look_here(flow, run, what, &copy, &ignored) < 0) {
        flow_piece_release(&copy);
        return rc;
    }
    act_warn("the log is shown as it was fetched: %s", act_error_text(err));
    flow_piece_release(out);
    *out = copy;
    return 0;
}

void flow_piece_release(struct flow_piece *piece)
{
    free(piece->name);
    act_buf_release(&piece->bytes);
    *piece = (struct flow_piece){0};
}
