#include <unistd.h>

#include "base/log.h"
#include "cli/command/signal.h"
#include "cli/print/ask.h"
#include "cli/print/print.h"
#include "cli/start/options.h"
#include "cli/start/start.h"
#include "flow/code/code.h"
#include "flow/flow.h"
#include "flow/submit/submit.h"

int cmd_local(struct cli *cli, struct act_error *err)
{
    const struct cli_start_options *o = CLI_OPTIONS(cli, start);
    static const char *const said[] = {"the run is asked to end; Ctrl-C again kills it", "the run is killed", NULL};
    struct cli_packing packing;
    struct flow_init code = {0};
    struct flow_local io = {.argv = &cli->words,
                            .code = o->last_package ? NULL : &code,
                            .no_container = o->no_container,
                            .stored_folders = o->mount,
                            .dry_run = cli->options.dry_run,
                            .confirm = cli_confirm_for,
                            .arg = cli,
                            .sink = {.write = cli_write_stdout},
                            .interrupted = &cli_interrupted};

    int rc = cli_check_command(cli, "a local python3 train.py", err);
    if (rc == 0)
        rc = cli_check_words(cli, err);
    if (rc < 0)
        return rc;
    cli_packing_start(&packing, cli, &code);
    rc = flow_local_start(&cli->flow, &io, err);
    flow_init_release(&code);
    cli_catch_signals(said);
    if (rc == 0)
        rc = io.dry_run ? cli_print_spec(run_spec_to_json(&io.spec), err) : flow_local_attend(&cli->flow, &io, err);
    if (rc == 0 && cli_interrupted)
        act_note("run %s was interrupted: %s; 'a q %s' shows its logs", io.spec.id, io.reason, io.spec.id);
    else if (rc == 0 && io.exit_status != 0)
        act_note("run %s ended with status %d: %s; 'a q %s' shows its logs", io.spec.id, io.exit_status, io.reason,
                 io.spec.id);
    run_spec_release(&io.spec);
    if (rc == 0 && cli_interrupted)
        return 128 + cli_interrupted;
    return rc < 0 ? rc : io.exit_status;
}
