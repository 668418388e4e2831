#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/terminal.h"
#include "cli/command/signal.h"
#include "cli/print/print.h"
#include "cli/runs/options.h"
#include "cli/runs/runs.h"
#include "flow/flow.h"
#include "flow/logs/logs.h"
#include "flow/runs/runs.h"

/* How the lines of all ranks are shown: "[ 3] ...". */
struct lines {
    int width; /* of the largest rank */
    bool terminal;
};

static void print_prefix(const struct lines *lines, int rank)
{
    static const char *const colours[] = {"36", "33", "32", "35", "34", "31"};
    size_t n = sizeof(colours) / sizeof(colours[0]);

    cli_print_coloured(stdout, colours[(size_t)rank % n], "[%*d]", lines->width, rank);
    putchar(' ');
}

/* Prints a line without the states that "\r" replaced: on a terminal they would overwrite the rank's number. */
static int print_shown(const char *text, size_t len, struct act_error *err)
{
    struct act_harmless line = {.allow = ACT_SHOW_COLOURS};
    ACT_AUTO(act_buf) shown = {0};

    text = act_last_state(text, &len);
    act_harmless_add(&line, text, len, &shown);
    act_harmless_end(&line, &shown);
    act_buf_addc(&shown, '\n');
    return cli_write_stdout(NULL, shown.data, shown.len, err);
}

static int print_line(void *arg, int rank, const char *text, size_t len, struct act_error *err)
{
    const struct lines *lines = arg;

    print_prefix(lines, rank);
    if (lines->terminal)
        return print_shown(text, len, err);
    fwrite(text, 1, len, stdout);
    putchar('\n');
    return cli_check_stdout(err);
}

static int cmd_logs_check_options(const struct cli *cli, const struct flow_run *run, struct act_error *err)
{
    const struct cli_logs_options *o = CLI_OPTIONS(cli, logs);

    if (cli->options.all && (o->rank >= 0 || cli->options.name))
        return act_error_set(err, ACT_USAGE, "--all is every rank's log: it does not go with --%s",
                             o->rank >= 0 ? "rank" : "name");
    if (o->attempt == 0 || o->attempt > INT32_MAX)
        return act_error_set(err, ACT_USAGE, "attempts are counted from 1, not %lld", (long long)o->attempt);
    return cli_check_rank(cli, run, err);
}

static int cmd_logs_follow(struct cli *cli, struct flow_run *run, struct act_error *err)
{
    const struct cli_logs_options *o = CLI_OPTIONS(cli, logs);
    int world = run->spec.nodes * run->spec.procs_per_node;
    struct lines lines = {.width = snprintf(NULL, 0, "%d", world - 1), .terminal = isatty(STDOUT_FILENO)};
    struct flow_follow what = {.name = cli->options.name,
                               .rank = o->rank >= 0 ? (int)o->rank : 0,
                               .all = cli->options.all,
                               .line = print_line,
                               .attempt = o->attempt > 0 ? (int)o->attempt : 0,
                               .must_exist = true,
                               .tail = o->tail,
                               .follow = o->follow,
                               .sink = {.write = cli_write_stdout, .arg = &lines}};

    if (o->follow)
        cli_end_beside(run->row.id);
    int rc = flow_follow_log(&cli->flow, run, &what, err);
    cli_end_text();
    return rc;
}

int cli_tell_end(const struct flow_run *run)
{
    if (!run_state_is_final(run->status.state))
        return 0;
    fflush(stdout); /* keeps the end after the log if both go to one terminal */
    cli_note_end(run, "");
    return flow_exit_status(&run->status);
}

/* Tells the end only when the last attempt is followed to the end of the run: an earlier attempt's end is not the
 * run's. */
static int tell_end(const struct cli *cli, const struct flow_run *run)
{
    const struct cli_logs_options *o = CLI_OPTIONS(cli, logs);
    bool is_last = o->attempt < 0 || o->attempt == run->status.attempt;

    return o->follow && is_last ? cli_tell_end(run) : 0;
}

int cmd_logs(struct cli *cli, struct act_error *err)
{
    ACT_AUTO(flow_run) run = {0};
    const char *piece = cli->words.v[0];
    int rc = CLI_OPTIONS(cli, logs)->follow ? flow_find_watched(&cli->flow, piece, &run, err)
                                            : flow_find_run(&cli->flow, piece, &run, err);

    if (rc == 0)
        rc = cmd_logs_check_options(cli, &run, err);
    if (rc == 0)
        rc = cmd_logs_follow(cli, &run, err);
    return rc == 0 ? tell_end(cli, &run) : rc;
}
