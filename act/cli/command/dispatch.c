/* dispatch.c - from the words typed to one command and an exit status. */
#include <locale.h>
#include <string.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/log.h"
#include "base/terminal.h"
#include "cli/cli.h"
#include "cli/help/help.h"
#include "cli/own/own.h"
#include "cli/print/print.h"
#include "cli/runs/runs.h"
#include "flow/flow.h"
#include "flow/trust.h"
#include "platform/platform.h"

static int run_command(struct cli *cli, struct act_error *err)
{
    int rc = 0;

    act_close_own_dirs();
    if (cli->command->bare || cli->command->of_runs) {
        flow_open_bare(cli->options.cluster, &cli->flow);
        cli->flow.services = &cli->services;
        cli->flow_is_open = true;
        rc = cli->command->of_runs ? flow_check_cluster(&cli->flow, err) : 0;
        rc = rc == 0 && cli->command->sweeps ? cli_take_sweeps(cli, err) : rc;
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
    if (cli->options.no_share)
        flow_never_share();
    if (cli->options.legacy || cli->options.ignored)
        act_note("-no-wg, -no-m and -ic have no effect, as in the original ACT");
    if (cli->options.version) {
        cli_print_version(stdout);
        return 0;
    }
    if (!cli->command) {
        if (!cli->options.help) {
            cli_print_first_screen(stderr);
            return ACT_USAGE;
        }
        cli_print_overview(stdout);
        return 0;
    }
    if (cli->options.help) {
        cli_print_help(cli->command, cli->words.n ? cli->words.v[0] : NULL, stdout);
        return 0;
    }
    return run_command(cli, err);
}

/* Makes output that could not be written a failure, as when it goes to a full disk. err: what was said already. */
static int close_stdout(int status, const struct act_error *err)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    struct act_error why = {0};
    if (!act_starts_with(act_error_text(err), CLI_NO_OUTPUT)) {
        cli_output_failed(&why);
        fprintf(stderr, "act: %s\n", act_error_text(&why));
    }
    return status ? status : ACT_FAIL;
}

/* Says how patterns are given, because a word with wildcards that names nothing may be meant as one. */
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

/* Prints the error that the command ends with; a terminal breaks no word of it. */
static void print_error(const struct act_error *err)
{
    static const char PREFIX[] = "act: ";
    ACT_AUTO(act_buf) text = {0};
    int at = sizeof(PREFIX) - 1;

    act_wrap(act_error_text(err), at, at, act_terminal_width(STDERR_FILENO), &text);
    fprintf(stderr, "%s%s\n", PREFIX, text.len ? text.data : "");
}

int cli_main(int argc, char **argv)
{
    struct cli cli = {0};
    struct act_error err = {0};

    setlocale(LC_CTYPE, "");
    act_terminal_guard();
    platform_begin();
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
