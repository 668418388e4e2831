/* open.c - what the options say of a configuration, and opening it. */
#include <unistd.h>

#include "base/path.h"
#include "cli/command/command.h"
#include "cli/command/options.h"
#include "cli/data/options.h"
#include "cli/start/options.h"
#include "config/config.h"
#include "filter/filter.h"
#include "flow/flow.h"
#include "flow/place.h"
#include "platform/platform.h"

static void push_override(struct config_override *list, size_t *n, const char *key, const char *value, const char *flag)
{
    if (value)
        list[(*n)++] = (struct config_override){.key = key, .value = value, .flag = flag};
}

enum { MAX_TRANSFERS = 500 };

static int check_transfers(const struct cli *cli, struct act_error *err)
{
    const struct cli_transfer_options *o = CLI_OPTIONS(cli, transfer);

    if (o->transfers >= -1 && o->transfers != 0 && o->transfers <= MAX_TRANSFERS)
        return 0;
    return act_error_set(err, ACT_USAGE, "--transfers takes a number from 1 to %d, not %lld", MAX_TRANSFERS,
                         (long long)o->transfers);
}

static int check_retry(const struct cli *cli, struct act_error *err)
{
    const struct cli_settings_options *o = CLI_OPTIONS(cli, settings);

    if (o->retry == 0 && o->retry_on)
        return act_error_set(err, ACT_USAGE,
                             "--retry-on says after what a run is tried again, and --retry 0 that it "
                             "is not: which one?");
    return 0;
}

/* Tells whether the project's files are packed: those of a run that is repeated are packed already. */
static bool packs_project(const struct cli *cli)
{
    const struct cli_start_options *o = CLI_OPTIONS(cli, start);

    return !o->last_package && (o->code || !cli_names(cli->command->options, "code"));
}

/* Refuses options that would change nothing on a cluster. */
static int check_idle(const struct cli *cli, const struct config *config, struct act_error *err)
{
    const struct cli_settings_options *o = CLI_OPTIONS(cli, settings);
    const struct platform_row *row = platform_find(config->platform);
    ACT_AUTOFREE char *script = act_path_join(config->project_root, "compile.aml.sh");

    if (o->use_bad_nodes && row && !row->nodes.usable)
        return act_error_set(err, ACT_USAGE,
                             "--use-bad-nodes changes nothing on the platform '%s': no run is kept "
                             "off a node there",
                             config->platform);
    if (o->here && row && !row->about.runs_in_jobs)
        return act_error_set(err, ACT_USAGE, "--here is for the platform slurm, and that of '%s' is '%s'",
                             config->cluster, config->platform);
    if (o->compile_args && !cli->command->looks_only && packs_project(cli) && access(script, F_OK) < 0)
        return act_error_set(err, ACT_USAGE, "-ca is for compile.aml.sh, and there is no '%s'", script);
    return 0;
}

/* Writes a list in YAML; whether its names are classes is checked where those are known. */
static void dispatch_write_list(const char *names, char *out, size_t size)
{
    size_t len = (size_t)snprintf(out, size, "['");

    for (; *names && len + sizeof("', '']") < size; names++) {
        const char piece[] = {*names, '\0'};
        const char *text = *names == ',' ? "', '" : *names == '\'' ? "''" : piece;
        len += (size_t)snprintf(out + len, size - len, "%s", text);
    }
    snprintf(out + len, size - len, "']");
}

void cli_request(const struct cli *cli, struct cli_request *out)
{
    const struct cli_settings_options *o = CLI_OPTIONS(cli, settings);
    struct config_request *r = &out->config;

    *out = (struct cli_request){.config = {.cluster = cli->options.cluster,
                                           .params = (const char *const *)cli->options.params.v,
                                           .overrides = out->overrides}};
    bool sized = o->num_gpu.most >= 0, elastic = o->num_gpu.least < o->num_gpu.most;

    snprintf(out->num_gpu, sizeof(out->num_gpu), "%lld", (long long)o->num_gpu.most);
    snprintf(out->range, sizeof(out->range), "[%lld, %lld]", (long long)o->num_gpu.least, (long long)o->num_gpu.most);
    snprintf(out->hang, sizeof(out->hang), "%llds", (long long)o->hang_s);
    push_override(out->overrides, &r->n_overrides, "num_gpu", sized ? out->num_gpu : NULL, "-n");
    push_override(out->overrides, &r->n_overrides, "elastic_num_gpu", elastic ? out->range : NULL, "-n");
    snprintf(out->retry, sizeof(out->retry), "%lld", (long long)o->retry);
    push_override(out->overrides, &r->n_overrides, "retry.times", o->retry >= 0 ? out->retry : NULL, "--retry");
    if (o->retry_on)
        dispatch_write_list(o->retry_on, out->retry_on, sizeof(out->retry_on));
    push_override(out->overrides, &r->n_overrides, "retry.on", o->retry_on ? out->retry_on : NULL, "--retry-on");
    push_override(out->overrides, &r->n_overrides, "multi_process", o->single ? "false" : NULL, "-single");
    push_override(out->overrides, &r->n_overrides, "compile_args", o->compile_args, "-ca");
    push_override(out->overrides, &r->n_overrides, "slurm.here", o->here ? "true" : NULL, "--here");
    push_override(out->overrides, &r->n_overrides, "hang", o->hang_s ? out->hang : NULL, "--hang");
}

/* Makes the request of the command line, and checks the options that every configuration takes. */
static int begin_request(struct cli *cli, struct cli_request *out, struct act_error *err)
{
    const struct cli_transfer_options *o = CLI_OPTIONS(cli, transfer);

    cli->services.network.max_transfers = o->transfers > 0 ? (int)o->transfers : 0;
    cli->services.network.bwlimit = o->bwlimit;
    cli_request(cli, out);
    int rc = check_transfers(cli, err);
    return rc < 0 ? rc : check_retry(cli, err);
}

int cli_open_flow(struct cli *cli, const char *cluster, struct flow *flow, struct act_error *err)
{
    struct cli_request request;
    int rc = begin_request(cli, &request, err);

    request.config.cluster = cluster;
    if (rc == 0)
        rc = (cli->command->looks_only ? flow_open_to_look : flow_open)(&request.config, flow, err);
    if (rc < 0)
        return rc;
    flow->services = &cli->services;
    flow->use_bad_nodes = CLI_OPTIONS(cli, settings)->use_bad_nodes;
    rc = check_idle(cli, flow->config, err);
    if (rc < 0) {
        flow_close(flow);
        *flow = (struct flow){0};
    }
    return rc;
}

int cli_open_of_run(struct cli *cli, const struct ledger_run *row, struct flow *flow, struct act_error *err)
{
    struct cli_request request;
    int rc = begin_request(cli, &request, err);

    if (rc == 0)
        rc = flow_open_of_run(row, &request.config, flow, err);
    if (rc >= 0)
        flow->services = &cli->services;
    flow->use_bad_nodes = CLI_OPTIONS(cli, settings)->use_bad_nodes;
    return rc;
}

int cli_open(struct cli *cli, struct act_error *err)
{
    int rc = cli_open_flow(cli, cli->options.cluster, &cli->flow, err);

    cli->flow_is_open = rc == 0;
    return rc;
}

int cli_open_to_look(struct cli *cli, struct flow *flow, struct act_error *err)
{
    struct cli_request request;

    cli_request(cli, &request);
    return flow_open_to_look(&request.config, flow, err);
}

void cli_release(struct cli *cli)
{
    cli_options_release(cli);
    act_strv_release(&cli->words);
    filter_free(cli->filter);
    json_decref(cli->tags);
    if (cli->flow_is_open)
        flow_close(&cli->flow);
    services_close(&cli->services);
}
