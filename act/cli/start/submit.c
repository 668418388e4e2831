#include "flow/submit/submit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/command/options.h"
#include "cli/print/ask.h"
#include "cli/print/print.h"
#include "cli/runs/runs.h"
#include "cli/start/options.h"
#include "cli/start/start.h"
#include "flow/code/code.h"
#include "flow/flow.h"

static void say_submitted(const struct run_spec *spec)
{
    int n = run_spec_processes(spec);
    ACT_AUTOFREE char *waits = spec->needs.n ? run_waits_for(&spec->needs, spec->needs_any) : NULL;

    act_note("submitted to %s: %d node%s, %d process%s%s%s%s; 'a %s %s' %s", spec->cluster, spec->nodes,
             cli_plural(spec->nodes), n, n == 1 ? "" : "es", spec->nodes == 1 ? "" : " each", waits ? "; it " : "",
             waits ? waits : "", spec->takes_input ? "attach" : "logs -f", spec->id,
             spec->takes_input ? "shows it, and types into it" : "follows it");
}

/* A run reads what is typed into 'a attach', not what this program is given. */
static void warn_of_input(const struct run_spec *spec)
{
    struct stat st;

    if (spec->takes_input && fstat(STDIN_FILENO, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode)))
        act_warn("the run does not get what 'a submit' is given as input: '... | a attach %s' brings it", spec->id);
}

int cli_check_after(const struct cli *cli, struct act_error *err)
{
    const struct cli_start_options *o = CLI_OPTIONS(cli, start);

    if (o->after_any && o->after.n == 0)
        return act_error_set(err, ACT_USAGE, "--after-any says how the runs of --after may end: name them there");
    return 0;
}

int cmd_submit(struct cli *cli, struct act_error *err)
{
    const struct cli_batch_options *o = CLI_OPTIONS(cli, batch);
    struct cli_packing packing;
    ACT_AUTO(flow_init) code = {0};
    struct flow_submit io = {.argv = &cli->words,
                             .job_file = o->job_file,
                             .storage_account = o->storage_account,
                             .storage_key = o->storage_key,
                             .own_size =
                                 CLI_OPTIONS(cli, settings)->num_gpu.most >= 0 || CLI_OPTIONS(cli, settings)->single,
                             .after = CLI_OPTIONS(cli, start)->after,
                             .after_any = CLI_OPTIONS(cli, start)->after_any,
                             .takes_input = CLI_OPTIONS(cli, start)->takes_input,
                             .dry_run = cli->options.dry_run,
                             .code = CLI_OPTIONS(cli, start)->last_package ? NULL : &code,
                             .confirm = cli_confirm_for,
                             .arg = cli};

    if (o->job_file && cli->words.n)
        return act_error_set(err, ACT_USAGE, "'%s' says what to run: there cannot be a command, '%s', as well",
                             o->job_file, cli->words.v[0]);
    if (!o->job_file && (o->storage_account || o->storage_key))
        return act_error_set(err, ACT_USAGE, "--storage-account-%s is for the volumes of a job file: give it with -f",
                             o->storage_key ? "key" : "name");
    int rc = o->job_file ? 0 : cli_check_command(cli, "a submit python3 train.py", err);
    if (rc == 0)
        rc = cli_check_after(cli, err);
    if (rc == 0)
        rc = cli_labels(cli, &io.labels, err);
    if (rc == 0)
        rc = cli_check_words(cli, err);
    if (rc < 0)
        return rc;
    cli_packing_start(&packing, cli, &code);
    rc = flow_submit(&cli->flow, &io, err);
    if (rc == 0 && io.dry_run) {
        rc = cli_print_spec(io.preview ? io.preview : run_spec_to_json(&io.spec), err);
    } else if (rc == 0) {
        say_submitted(&io.spec);
        warn_of_input(&io.spec);
        rc = cli_print_id("run", io.spec.id, cli->options.json ? cli_spec_json(&io.spec) : NULL, err);
    }
    run_spec_release(&io.spec);
    return rc;
}
