/* hand_over.c - a finished specification goes to its platform. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "codec/json.h"
#include "flow/data/data_internal.h"
#include "flow/flow_internal.h"
#include "flow/runs/watch.h"
#include "flow/source/source.h"
#include "flow/submit/parts.h"
#include "flow/submit/passage.h"
#include "flow/trust.h"

/* Notes in the ledger what became of a submission. The run matters more than this line: a failure is a warning. */
static void note_outcome(struct flow *flow, const char *id, const struct run_status *status)
{
    CODEC_AUTOJSON json_t *json = run_status_to_json(status);
    ACT_AUTOFREE char *line = codec_json_line(json);
    struct ledger_update update = {id, run_state_name(status->state), line};
    struct act_error err;

    if (ledger_update(flow->ledger, &update, 1, &err) < 0)
        act_warn("%s", act_error_text(&err));
}

/* Records in the ledger what the platform said. unclear: the platform may have the run, so it stays Queued until the
 * next query. */
static int note_submission(struct flow *flow, const struct run_spec *spec, int rc, bool unclear, struct act_error *err)
{
    enum { LONG_S = 10 };
    struct run_status status = {.state = RUN_QUEUED, .failed_rank = -1, .attempt = 1};

    if (rc < 0 && !unclear) {
        ACT_AUTOFREE char *prefix = act_sprintf("cannot submit '%s': ", spec->id);
        const char *why = act_error_text(err);
        status.state = RUN_FAILED;
        status.exit_status = -1;
        status.unsubmitted = true;
        snprintf(status.reason, sizeof(status.reason), "not submitted: %.480s",
                 act_starts_with(why, prefix) ? why + strlen(prefix) : why);
    }
    /* by now a query may have concluded that the run was never submitted */
    if (status.state == RUN_FAILED || act_now_unix_s() - spec->created_unix_s >= LONG_S)
        note_outcome(flow, spec->id, &status);
    return unclear ? act_error_hint(err, "'a q %s' will tell whether it was submitted", spec->id) : rc;
}

int flow_hand_over(struct flow *flow, struct platform *platform, struct run_spec *spec, const char *package,
                   bool *asked, struct act_error *err)
{
    const struct platform_row *row = platform_row(platform);
    ACT_AUTOWIPE char *stores = NULL;
    ACT_AUTO(flow_job_files) files = {0};
    int rc = 0;

    if (row->about.nodes_send_logs) /* the id may be another one than at first */
        flow_describe_sent(flow->config, spec);
    if (package && platform_nodes_fetch_package(row, spec))
        rc = flow_store_package(flow, spec, package, err);
    if (rc == 0 && !spec->foreign)
        rc = row->about.nodes_fetch ? flow_store_job(flow, spec, package, &files, err)
                                    : flow_run_stores(flow, spec, &stores, err);
    if (rc == 0)
        rc = platform_settle(platform, spec, err);
    if (rc == 0)
        rc = platform_prepare(platform, spec, package, err);
    if (rc == 0)
        rc = flow_remember(flow, spec, err);
    if (rc == 0) {
        struct platform_submission submission = {.spec = spec,
                                                 .package = package,
                                                 .stores = row->about.is_here ? NULL : stores, /* the project has it */
                                                 .agent_key = files.agent_key,
                                                 .spec_key = files.spec_key,
                                                 .agent_url = files.agent_url,
                                                 .spec_url = files.spec_url,
                                                 .package_url = files.package_url,
                                                 .asked = asked};
        rc = platform_submit(platform, &submission, err);
        rc = note_submission(flow, spec, rc, *asked && flow_may_pass(rc), err);
    }
    return rc;
}

int flow_start_run(struct flow *flow, struct platform *platform, struct run_spec *spec, const char *package,
                   struct act_error *err)
{
    struct flow_again again;
    bool asked = false;

    if (!platform_row(platform)->about.answers_by_request)
        return flow_hand_over(flow, platform, spec, package, &asked, err);
    asked = flow_again_begin(flow, spec, &again);
    int rc = flow_hand_over(flow, platform, spec, package, &asked, err);
    bool unclear = asked && flow_may_pass(rc);
    flow_again_end(&again, !unclear);
    return unclear ? act_error_hint(err, "the same command again is the same run") : rc;
}

/* ---- the steps */

int step_use_own_folders(struct passage *p, struct act_error *err)
{
    return flow_use_own_folders(p->flow->config, p->platform, p->spec, err);
}

int step_trust(struct passage *p, struct act_error *err)
{
    return flow_trust_submitted(p->flow->config, err);
}

/* A limit may let only one of the two be there. It does not go on if another run takes its place. */
static int say_goes_on(const char *id, int rc, struct act_error *err)
{
    if (rc == -ACT_USAGE)
        return rc;
    if (rc == -ACT_NO_CAPACITY)
        return act_error_hint(err, "'%s' goes on; if there is room for one of them only, 'a abort %s' comes first", id,
                              id);
    return act_error_hint(err, "'%s' goes on", id);
}

int step_hand_over(struct passage *p, struct act_error *err)
{
    bool goes_on = p->old && !run_state_is_final(p->old->status.state);

    if (p->hand_over)
        return p->hand_over(p->arg, err);
    int rc = flow_start_run(p->flow, p->platform, p->spec, p->package.file, err);
    return rc < 0 && goes_on ? say_goes_on(p->old->row.id, rc, err) : rc;
}
