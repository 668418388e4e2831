/* state.c - what has become of a run: as the ledger knows it, and as its platform says now. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "codec/json.h"
#include "flow/flow_internal.h"
#include "flow/runs/watch.h"
#include "flow/source/source.h"

void flow_status_of_row(const struct ledger_run *row, struct run_status *out)
{
    struct act_error ignored;
    CODEC_AUTOJSON json_t *json = NULL;

    if (!row->status || codec_json_parse(row->status, strlen(row->status), "ledger", &json, &ignored) < 0 ||
        run_status_from_json(json, out, &ignored) < 0)
        *out = (struct run_status){.failed_rank = -1, .attempt = 1};
    out->state = run_state_from_name(row->state);
}

/* A run is written down before it is submitted. One that its platform still does not know after this time never was:
 * its 'a submit' was killed in between. */
enum { SUBMIT_GRACE_S = 30 };

/* Judges a run that was on its platform and is gone. */
static void judge_deleted(const struct flow_run *run, int64_t kept_s, struct run_status *now)
{
    bool may_have_ended = kept_s && run->row.created_unix_s + kept_s < act_now_unix_s();

    *now = run->status;
    now->state = RUN_CANCELED;
    now->ended_unix_s = act_now_unix_s();
    snprintf(now->reason, sizeof(now->reason), "%s",
             may_have_ended && !now->aborted
                 ? "it is not in the cluster any more: somebody deleted it, or it ended before, and its time there is "
                   "over"
                 : ""); /* keep_abort() knows it */
}

static void judge_unknown(const struct flow_run *run, struct run_status *now)
{
    const struct platform_row *row = platform_find(run->row.platform);

    if (row->about.deletion_ends && (run->status.aborted || run->status.seen || run->status.state == RUN_RUNNING)) {
        judge_deleted(run, row->about.kept_s, now);
        return;
    }
    if (run->status.state != RUN_QUEUED)
        return;
    *now = run->status;
    if (run->row.created_unix_s + SUBMIT_GRACE_S > act_now_unix_s())
        return;
    now->state = RUN_FAILED;
    now->exit_status = -1;
    now->unsubmitted = true;
    snprintf(now->reason, sizeof(now->reason), "never submitted: 'a submit' was interrupted%s; submit it again",
             row->about.deletion_ends ? ", or somebody deleted it from the cluster before anybody looked" : "");
}

/* A table asks the service only for its own word: what the ranks have said of the same end stays. */
static void keep_words(const struct run_status *old, struct run_status *now)
{
    if (!old->ranks_asked || now->ranks_asked || now->state != old->state || now->attempt != old->attempt)
        return;
    now->ranks_asked = true;
    now->failed_rank = old->failed_rank;
    now->exit_status = old->exit_status;
    memcpy(now->reason, old->reason, sizeof(now->reason));
}

static const char *why_canceled(const struct flow_run *run, const struct run_status *now)
{
    return now->aborted                                            ? "aborted"
           : platform_find(run->row.platform)->about.deletion_ends ? "somebody deleted it from the cluster"
                                                                   : "";
}

/* A service may say only that a run was cancelled. */
static void keep_abort(const struct flow_run *run, struct run_status *now)
{
    now->aborted = now->aborted || run->status.aborted;
    if (now->state == RUN_CANCELED && !*now->reason)
        snprintf(now->reason, sizeof(now->reason), "%s", why_canceled(run, now));
}

/* Keeps the earliest start: the pods with which the run began may be gone and replaced by others. */
static void keep_start(const struct flow_run *run, struct run_status *now)
{
    int64_t known = run->status.started_unix_s;

    if (platform_find(run->row.platform)->about.begins_once && known &&
        (!now->started_unix_s || known < now->started_unix_s))
        now->started_unix_s = known;
}

/* The count of attempts goes on as long as the same processes do. */
static void keep_attempt(const struct run_status *old, struct run_status *now)
{
    if (old->state == RUN_RUNNING && now->state == RUN_RUNNING && now->started_unix_s <= old->started_unix_s &&
        now->attempt < old->attempt)
        now->attempt = old->attempt;
}

/* Keeps why the last attempt ended after what it left is gone. */
static void keep_retry(const struct run_status *old, struct run_status *now)
{
    if (!*now->retry && now->attempt > 1 && now->attempt == old->attempt)
        memcpy(now->retry, old->retry, sizeof(now->retry));
}

int flow_saw_attempt(struct flow *flow, struct flow_run *run, int attempt, struct act_error *err)
{
    if (run->status.state != RUN_RUNNING || attempt <= run->status.attempt)
        return 0;
    run->status.attempt = attempt;
    run->changed = true;
    return flow_store_changes(flow, run, 1, err);
}

void flow_take_status(struct flow_run *run, struct run_status *now)
{
    const struct run_status *old = &run->status;

    now->seen = old->seen || (now->state != RUN_UNKNOWN && platform_find(run->row.platform)->about.deletion_ends);
    if (now->state == RUN_UNKNOWN && run_state_is_final(old->state))
        return;
    if (now->state == RUN_UNKNOWN && !now->reason[0]) /* the run is unknown, not just its state */
        judge_unknown(run, now);
    keep_start(run, now);
    keep_attempt(old, now);
    keep_retry(old, now);
    keep_words(old, now);
    keep_abort(run, now);
    run->changed = run->changed || now->state != old->state || now->seen != old->seen ||
                   now->started_unix_s != old->started_unix_s || now->ended_unix_s != old->ended_unix_s ||
                   now->attempt != old->attempt || now->ranks_asked != old->ranks_asked ||
                   strcmp(now->reason, old->reason) != 0 || now->attempts != old->attempts ||
                   now->n_bad != old->n_bad || strcmp(now->retry, old->retry) != 0;
    run->status = *now;
}

int flow_store_changes(struct flow *flow, struct flow_run *runs, size_t n, struct act_error *err)
{
    ACT_AUTOFREE struct ledger_update *updates = act_calloc(n, sizeof(*updates));
    ACT_AUTO(act_strv) lines = {0};
    int rc = 0;

    for (size_t i = 0; i < n; i++) {
        if (!runs[i].changed)
            continue;
        if (runs[i].status.n_bad > 0 && !runs[i].row.found)
            rc = flow_note_bad_nodes(flow, &runs[i], err);
        if (rc < 0)
            return rc;
        CODEC_AUTOJSON json_t *json = run_status_to_json(&runs[i].status);
        act_strv_take(&lines, codec_json_line(json));
        updates[lines.n - 1] =
            (struct ledger_update){runs[i].row.id, run_state_name(runs[i].status.state), lines.v[lines.n - 1]};
        runs[i].changed = false;
    }
    for (struct ledger *ledger = NULL; lines.n > 0 && flow_next_ledger(flow, &ledger, &rc, err);)
        rc = ledger_update(ledger, updates, lines.n, err);
    return rc;
}

int flow_refresh_all(struct flow *flow, struct platform *platform, struct flow_run *const *runs, size_t n,
                     struct act_error *err)
{
    const char **ids = act_calloc(n + 1, sizeof(*ids));
    ACT_AUTOFREE struct run_status *now = act_calloc(n + 1, sizeof(*now));

    for (size_t i = 0; i < n; i++)
        ids[i] = runs[i]->row.id;
    int rc = 0;
    for (size_t i = 0; i < n && flow->reads_logs && rc == 0; i++)
        rc = flow_expect_logs(platform, runs[i], err);
    if (rc == 0)
        rc = platform_status(platform, ids, n, now, err);
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct flow_run *run = runs[i];
        if (now[i].state == RUN_FAILED && !run->status.ranks_asked && !platform_row(platform)->about.keeps_record)
            flow_add_last_words(flow, run, &now[i]);
        flow_add_sent_status(flow, run, &now[i]);
        flow_take_status(run, &now[i]);
        rc = flow_store_changes(flow, run, 1, err);
    }
    free(ids);
    return rc;
}

int flow_refresh(struct flow *flow, struct platform *platform, struct flow_run *run, struct act_error *err)
{
    return flow_refresh_all(flow, platform, &run, 1, err);
}

int flow_ask_ranks(struct flow *flow, struct flow_run *run, struct act_error *err)
{
    struct run_status now = run->status;
    struct platform *platform;
    struct act_error why;

    if (now.state != RUN_FAILED || now.ranks_asked || now.unsubmitted)
        return 0;
    if (flow_platform_of(flow, &run->row, &platform, &why) < 0) {
        act_note("cannot find out which rank failed: %s", act_error_text(&why));
        return 0;
    }
    if (!platform_row(platform)->about.keeps_record)
        flow_add_last_words(flow, run, &now);
    flow_take_status(run, &now);
    return flow_store_changes(flow, run, 1, err);
}

void flow_load_status(struct flow_run *run)
{
    if (run->is_brief)
        flow_status_of_row(&run->row, &run->status);
    run->is_brief = false;
}

int flow_load_spec(struct flow_run *run, struct act_error *err)
{
    if (!run->row.spec) /* one that only its platform knows */
        return 0;
    run_spec_release(&run->spec); /* what a platform's list said of it */
    return flow_spec_of_row(&run->row, &run->spec, err);
}

void flow_drop_spec(struct flow_run *run)
{
    run_spec_release(&run->spec);
    run->spec = (struct run_spec){0};
    free(run->row.spec);
    run->row.spec = NULL;
}

char *flow_page(struct flow *flow, const struct flow_run *run)
{
    struct platform *platform;
    struct act_error ignored;

    if (run->status.unsubmitted || flow_platform_of(flow, &run->row, &platform, &ignored) < 0)
        return NULL;
    return platform_page(platform, run->row.id);
}

char *flow_code_folder(struct flow *flow, const struct flow_run *run)
{
    struct platform *platform;
    struct act_error ignored;

    if (!run->status.started_unix_s || flow_platform_of(flow, &run->row, &platform, &ignored) < 0)
        return NULL;
    return platform_code_folder(platform, &run->spec);
}

int flow_exit_status(const struct run_status *status)
{
    switch (status->state) {
    case RUN_COMPLETED:
        return 0;
    case RUN_CANCELED:
        return ACT_TERMINATED;
    default:
        return status->exit_status > 0 ? status->exit_status : ACT_FAIL;
    }
}
