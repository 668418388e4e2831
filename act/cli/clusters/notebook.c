/* notebook.c - 'a notebook': a run whose keeper has Jupyter serve (notebook.py), and a port here that leads there. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/clusters/clusters.h"
#include "cli/clusters/kept.h"
#include "cli/clusters/options.h"
#include "cli/command/signal.h"
#include "cli/page/options.h"
#include "cli/page/page.h"
#include "cli/print/print.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"

__asm__(".pushsection .rodata\n"
        ".global notebook_script\n"
        "notebook_script:\n"
        ".incbin \"" NOTEBOOK_SCRIPT "\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char notebook_script[];

enum { TOKEN_LEN = 48, NO_JUPYTER = 86, OLD_JUPYTER = 87, NO_PYTHON = 127 };

/* ---- where it is */

struct notebook {
    const char *run, *token;
    const char *code; /* the folder that it works in; NULL: it is on a node */
    bool opens;
    bool stays;
    char *page; /* a file that leads there, for the browser */
};

static void notebook_say(void *arg, uint16_t port)
{
    struct notebook *n = arg;
    ACT_AUTOFREE char *url = act_sprintf("http://127.0.0.1:%u/?token=%s", port, n->token);

    puts(url);
    fflush(stdout);
    if (n->opens)
        n->page = page_open_browser(url, "the notebook");
    act_note("Jupyter of run %s; Ctrl-C ends %s", n->run,
             n->stays ? "the connection, and the run goes on" : "both, this command and the run");
    act_note("what is saved there is in the run's copy of the project%s%s%s; in a mapped folder it goes to the store",
             n->code ? ", '" : "", n->code ? n->code : "", n->code ? "'" : "");
}

/* Reads the token, between which and this a login shell may have said something. */
static bool notebook_is_token(const char *text)
{
    return strlen(text) == TOKEN_LEN && strspn(text, "0123456789abcdef") == TOKEN_LEN;
}

/* ---- the end */

static int notebook_say_end(const struct flow_run *run, struct act_error *err)
{
    switch (flow_exit_status(&run->status)) {
    case NO_PYTHON:
    case NO_JUPYTER:
        return act_error_set(err, ACT_NOT_FOUND,
                             "the Python of run '%s' has none of jupyterlab, notebook and jupyter_server: write "
                             "'jupyterlab' into a line of requirements.txt, or choose an image, modules, 'conda' or "
                             "'venv' with it; 'a logs %s' says which Python that was",
                             run->row.id, run->row.id);
    case OLD_JUPYTER:
        return act_error_set(err, ACT_NOT_FOUND,
                             "the Jupyter of run '%s' is too old: it needs notebook 6.1, jupyter_server 1.0, or newer",
                             run->row.id);
    default:
        return kept_report_end(run);
    }
}

/* The connection has ended: by Ctrl-C, or with the run. */
static int notebook_part(struct cli *cli, struct flow_run *run, bool stays, struct act_error *err)
{
    if (!cli_interrupted) {
        kept_look(cli, run);
        return notebook_say_end(run, err);
    }
    if (!stays) {
        (void)kept_give_up(cli, run);
        return 0;
    }
    act_note("run %s goes on: 'a notebook %s' comes back, 'a abort %s' ends it", run->row.id, run->row.id, run->row.id);
    return 0;
}

/* ---- until then */

static int notebook_forward(struct cli *cli, struct flow_run *run, const char *token, bool stays, struct act_error *err)
{
    int64_t port = CLI_OPTIONS(cli, page)->port;
    ACT_AUTOFREE char *code = run->spec.is_here ? flow_code_folder(&cli->flow, run) : NULL;
    struct notebook n = {
        .run = run->row.id, .token = token, .code = code, .stays = stays, .opens = CLI_OPTIONS(cli, page)->open};
    int rc = cli_forward_service(cli, run, port > 0 ? (uint16_t)port : 0, notebook_say, &n, err);

    page_close_browser(n.page);
    return rc < 0 ? rc : notebook_part(cli, run, stays, err);
}

static int notebook_attend(struct cli *cli, struct flow_run *run, bool is_own, bool stays, struct act_error *err)
{
    cli_catch_signals(NULL);
    for (;;) {
        ACT_AUTOFREE char *token = NULL;
        int rc = kept_wait(cli, run, err);
        if (rc < 0)
            return rc;
        if (run_state_is_final(run->status.state))
            return notebook_say_end(run, err);
        int status =
            cli_interrupted ? RUN_SHELL_INTERRUPTED : kept_call(cli, run->row.id, "service", false, &token, err);
        if (status == RUN_SHELL_INTERRUPTED || cli_interrupted)
            return is_own ? kept_give_up(cli, run) : 128 + SIGINT;
        if (status == 0 && notebook_is_token(token))
            return notebook_forward(cli, run, token, stays, err);
        kept_look(cli, run);
        if (run_state_is_final(run->status.state))
            return notebook_say_end(run, err);
        if (status != RUN_SHELL_NOT_YET)
            return status != 0 ? status
                               : act_error_set(err, ACT_FAIL, "the node of run '%s' said '%s', which is not a token",
                                               run->row.id, token);
    }
}

/* ---- the verb */

static int notebook_check_words(const struct cli *cli, struct act_error *err)
{
    const struct cli_nodes_options *o = CLI_OPTIONS(cli, nodes);

    if (cli->words.n == 0)
        return 0;
    if (o->time_s || o->keep || CLI_OPTIONS(cli, managed)->idle_s || cli->options.name || cli->options.tags.n ||
        cli->options.dry_run)
        return act_error_set(err, ACT_USAGE,
                             "run '%s' is there already: with RUN, 'a notebook' takes only --port and --open",
                             cli->words.v[0]);
    return 0;
}

static int notebook_start(struct cli *cli, struct flow_run *out, struct act_error *err)
{
    int64_t idle_s = CLI_OPTIONS(cli, managed)->idle_s;
    ACT_AUTO(act_strv) command = {0};
    struct kept_run kept = {.how = {.serves = true}, .command = &command, .title = "a notebook"};

    ACT_STRV_PUSH(&command, "python3", "-c", notebook_script);
    act_strv_pushf(&command, "%lld", (long long)(idle_s ? idle_s : KEPT_IDLE_S));
    flow_close(&cli->flow);
    int rc = cli_open(cli, err);
    if (rc == 0)
        rc = kept_check(cli, "a notebook", err);
    return rc < 0 ? rc : kept_start(cli, &kept, out, err);
}

static int notebook_find(struct cli *cli, struct flow_run *out, struct run_shell *how, struct act_error *err)
{
    int rc = flow_find_run(&cli->flow, cli->words.v[0], out, err);

    if (rc < 0)
        return rc;
    if (!run_shell_of(&out->spec.argv, how) || !how->serves)
        return act_error_set(err, ACT_USAGE,
                             "run '%s' is not of 'a notebook'; 'a forward %s PORT' leads to a port of it", out->row.id,
                             out->row.id);
    if (run_state_is_final(out->status.state))
        return act_error_set(err, ACT_FAIL, "run '%s' is %s: its notebook has ended", out->row.id,
                             run_state_name(out->status.state));
    return 0;
}

int cmd_notebook(struct cli *cli, struct act_error *err)
{
    bool is_own = cli->words.n == 0;
    ACT_AUTO(flow_run) run = {0};
    struct run_shell how = {.stays = CLI_OPTIONS(cli, nodes)->keep};
    int rc = notebook_check_words(cli, err);

    if (rc == 0)
        rc = page_check_port(cli, err);
    if (rc == 0)
        rc = is_own ? notebook_start(cli, &run, err) : notebook_find(cli, &run, &how, err);
    if (rc < 0 || cli->options.dry_run)
        return rc;
    return notebook_attend(cli, &run, is_own, how.stays, err);
}
