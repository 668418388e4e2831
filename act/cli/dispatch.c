/* dispatch.c - from the words typed to one command and an exit status. */
#include <errno.h>
#include <locale.h>
#include <string.h>

#include "base/dirs.h"
#include "base/log.h"
#include "base/terminal.h"
#include "cli/cli.h"
#include "flow/flow.h"
#include "flow/place.h"
#include "flow/trust.h"
#include "platform/platform.h"

static void push_override(struct config_override *list, size_t *n, const char *key, const char *value, const char *flag)
{
    if (value)
        list[(*n)++] = (struct config_override){.key = key, .value = value, .flag = flag};
}

enum { MAX_TRANSFERS = 500 };

static int check_transfers(const struct cli_options *o, struct act_error *err)
{
    if (o->transfers >= -1 && o->transfers != 0 && o->transfers <= MAX_TRANSFERS)
        return 0;
    return act_error_set(err, ACT_USAGE, "--transfers takes a number from 1 to %d, not %lld", MAX_TRANSFERS,
                         (long long)o->transfers);
}

/* A list in YAML; what is in it is looked at where the classes are known. */
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
    const struct cli_options *o = &cli->options;
    struct config_request *r = &out->config;

    *out = (struct cli_request){
        .config = {.cluster = o->cluster, .params = (const char *const *)o->params.v, .overrides = out->overrides}};
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
    push_override(out->overrides, &r->n_overrides, "hang", o->hang_s ? out->hang : NULL, "--hang");
}

/* What the command line says of any configuration. */
static int begin_request(struct cli *cli, struct cli_request *out, struct act_error *err)
{
    const struct cli_options *o = &cli->options;

    cli->services.network.max_transfers = o->transfers > 0 ? (int)o->transfers : 0;
    cli->services.network.bwlimit = o->bwlimit;
    cli_request(cli, out);
    return check_transfers(o, err);
}

int cli_open_flow(struct cli *cli, const char *cluster, struct flow *flow, struct act_error *err)
{
    struct cli_request request;
    int rc = begin_request(cli, &request, err);

    request.config.cluster = cluster;
    if (rc == 0)
        rc = (cli->command->looks_only ? flow_open_to_look : flow_open)(&request.config, flow, err);
    if (rc == 0)
        flow->services = &cli->services;
    flow->use_bad_nodes = cli->options.use_bad_nodes;
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
    flow->use_bad_nodes = cli->options.use_bad_nodes;
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

static int run_command(struct cli *cli, struct act_error *err)
{
    int rc = 0;

    act_close_own_dirs();
    if (cli->command->bare || cli->command->of_runs) {
        flow_open_bare(cli->options.cluster, &cli->flow);
        cli->flow.services = &cli->services;
        cli->flow_is_open = true;
        rc = cli->command->of_runs ? flow_check_cluster(&cli->flow, err) : 0;
    } else {
        rc = cli_open(cli, err);
    }
    return rc < 0 ? rc : cli->command->run(cli, err);
}

static int dispatch(int argc, char **argv, struct cli *cli, struct act_error *err)
{
    int rc = cli_parse(argc, argv, cli, err);

    if (rc < 0)
        return rc;
    act_log_quiet(cli->options.quiet);
    if (cli->options.legacy || cli->options.ignored)
        act_note("-no-wg, -no-m and -ic have no effect, as in the original ACT");
    if (cli->options.version) {
        cli_print_version(stdout);
        return 0;
    }
    if (!cli->command) {
        cli_print_overview(cli->options.help ? stdout : stderr);
        return cli->options.help ? 0 : ACT_USAGE;
    }
    if (cli->options.help) {
        cli_print_help(cli->command, stdout);
        return 0;
    }
    return run_command(cli, err);
}

void cli_outcome_add(struct cli_outcome *o, int rc, const struct act_error *err)
{
    o->n++;
    if (rc >= 0)
        return;
    ACT_PUSH(o->failed, o->n_failed, *err);
}

/* Whether the same is said again further on, as of a project that several runs belong to. */
static bool is_said_again(const struct cli_outcome *o, size_t at)
{
    for (size_t i = at + 1; i < o->n_failed; i++)
        if (act_streq(act_error_text(&o->failed[i]), act_error_text(&o->failed[at])))
            return true;
    return false;
}

int cli_outcome_end(struct cli_outcome *o, struct act_error *err)
{
    int rc = 0;

    if (o->n_failed > 0) {
        rc = o->n_failed == o->n ? -(int)o->failed[0].code : -ACT_PARTIAL;
        for (size_t i = 0; i + 1 < o->n_failed; i++)
            if (!is_said_again(o, i))
                fprintf(stderr, "act: %s\n", act_error_text(&o->failed[i]));
        *err = o->failed[o->n_failed - 1];
    }
    free(o->failed);
    *o = (struct cli_outcome){0};
    return rc;
}

static const char NO_OUTPUT[] = "cannot write the output";

/* Output that could not be written is a failure too, as when redirected to a full disk. err: what was said. */
static int close_stdout(int status, const struct act_error *err)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    if (!act_starts_with(act_error_text(err), NO_OUTPUT))
        fprintf(stderr, "act: %s: %s\n", NO_OUTPUT, strerror(errno));
    return status ? status : ACT_FAIL;
}

/* A word with wildcards that names nothing may be meant as a pattern, which is an option here. */
static void hint_at_include(const struct cli *cli)
{
    const char *ignored;

    if (!cli_find_option(cli->command, "--include", &ignored))
        return;
    for (size_t i = 0; i < cli->words.n; i++) {
        const char *word = cli->words.v[i];
        size_t len = strcspn(word, "*?[");
        if (!word[len])
            continue;
        while (len > 0 && word[len - 1] != '/')
            len--;
        act_note("patterns are given by an option: a %s --include '%s' %.*s", cli->command->name, word + len,
                 len ? (int)len - 1 : 1,
                 len > 1 ? word
                 : len   ? "/"
                         : ".");
        return;
    }
}

/* What a command takes may be a long list; on a terminal no word of it is broken. */
static void print_error(const struct act_error *err)
{
    static const char PREFIX[] = "act: ";
    const char *text = act_error_text(err);
    int at = sizeof(PREFIX) - 1, width = err->code == ACT_USAGE ? cli_width_of(STDERR_FILENO) : 0;

    fputs(PREFIX, stderr);
    if (width > 2 * at)
        cli_wrap(stderr, text, strlen(text), at, at, width);
    else
        fprintf(stderr, "%s\n", text);
}

int cli_main(int argc, char **argv)
{
    struct cli cli = {0};
    struct act_error err = {0};

    setlocale(LC_CTYPE, "");
    act_terminal_guard();
    platform_begin();
    cli_options_init(&cli.options);
    flow_trust_asks(cli_ask_trust);
    int rc = dispatch(argc, argv, &cli, &err);
    int status = rc < 0 ? -rc : rc;
    if (rc < 0) {
        fflush(stdout);
        act_hint_at_own_dirs(&err);
        if (rc == -ACT_NOT_FOUND && cli.command)
            hint_at_include(&cli);
        print_error(&err);
        if (cli.command && cli.command->own_status)
            status = ACT_WRAPPER;
    }
    cli_release(&cli);
    return close_stdout(status, &err);
}
