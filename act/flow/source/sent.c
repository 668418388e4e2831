/* sent.c - the logs that the nodes of a run have sent to the store of its code, where they outlive the nodes. */
#include <string.h>

#include "codec/json.h"
#include "config/config.h"
#include "flow/data/data.h"
#include "flow/flow_internal.h"
#include "flow/source/source.h"

/* "blob:account/container" of the code; NULL: it is nowhere, or in a store of another kind. New string. */
static char *code_store(const struct config *config)
{
    ACT_AUTO(config_account) a = {0};

    if (!config_account_peek(config, &config->code, &a) || a.folder)
        return NULL;
    return act_sprintf("blob:%s/%s", a.account_name, a.container_name);
}

void flow_describe_sent(const struct config *config, struct run_spec *spec)
{
    ACT_AUTOFREE char *base = flow_code_base(config);

    free(spec->logs_store);
    free(spec->logs_path);
    spec->logs_store = base ? code_store(config) : NULL;
    spec->logs_path = spec->logs_store ? act_sprintf("%s/runs/%s", base, spec->id) : NULL;
}

/* The run's project is where the credential is. */
static int sent_open_store(struct flow *flow, const struct flow_run *run, struct flow_sent *s,
                           const struct run_spec *spec, struct act_error *err)
{
    int rc = flow_open_project_of(flow, run, &s->project, err);

    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *now = code_store(s->project.config);
    if (!act_streq(now, spec->logs_store))
        return act_error_set(err, ACT_NOT_FOUND, "the code of '%s' is not in '%s' any more, where the run's logs are",
                             spec->cluster, spec->logs_store);
    return flow_store(&s->project, &s->project.config->code, &s->store, err);
}

int flow_sent_open(struct flow *flow, const struct flow_run *run, struct flow_sent *out, struct act_error *err)
{
    ACT_AUTO(run_spec) spec = {0};

    *out = (struct flow_sent){0};
    if (!platform_find(run->row.platform)->about.nodes_send_logs || !run->row.spec)
        return 0;
    int rc = flow_spec_of_row(&run->row, &spec, err);
    if (rc < 0 || !spec.logs_path)
        return rc;
    rc = sent_open_store(flow, run, out, &spec, err);
    out->path = act_strdup(spec.logs_path);
    if (rc < 0)
        flow_sent_close(out);
    return rc < 0 ? act_error_prefix(err, "cannot read what the nodes of the run have sent") : 0;
}

void flow_sent_close(struct flow_sent *s)
{
    store_free(s->store);
    free(s->path);
    flow_close(&s->project);
    *s = (struct flow_sent){0};
}

/* ---- how it ended */

static bool sent_read_status(const struct flow_sent *s, struct run_status *out)
{
    CODEC_AUTOJSON json_t *json = NULL;
    ACT_AUTOFREE char *text = NULL;
    struct act_error ignored;
    int attempt = flow_last_sent(s->store, s->path, &ignored);

    if (attempt <= 0)
        return false;
    ACT_AUTOFREE char *key = act_sprintf("%s/" RUN_DIR_ATTEMPTS "/%d/" RUN_FILE_STATUS, s->path, attempt);
    if (flow_get_text(s->store, key, &text, &ignored) < 0 ||
        codec_json_parse(text, strlen(text), key, &json, &ignored) < 0)
        return false;
    return run_status_from_json(json, out, &ignored) == 0 && run_state_is_final(out->state);
}

void flow_add_sent_status(struct flow *flow, const struct flow_run *run, struct run_status *now)
{
    struct flow_sent s;
    struct run_status sent;
    struct act_error why;

    if (now->state != RUN_UNKNOWN || now->reason[0] || run_state_is_final(run->status.state))
        return;
    if (flow_sent_open(flow, run, &s, &why) < 0)
        return;
    if (s.store && sent_read_status(&s, &sent))
        *now = sent;
    flow_sent_close(&s);
}
