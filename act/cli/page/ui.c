/* ui.c - 'a ui': what is asked for by a browser, and which page that is. */
#include <string.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/command/signal.h"
#include "cli/page/made.h"
#include "cli/page/options.h"
#include "cli/page/page.h"
#include "cli/page/verbs.h"
#include "cli/print/print.h"
#include "cli/runs/runs.h"
#include "cli/screen/live.h"
#include "engine/engine.h"
#include "proc/proc.h"
#include "web/web.h"

enum { LOOK_MS = 200 };

struct ui {
    struct engine *engine;
    struct web *web;
    struct made *made;
    bool stop;
};

/* ---- a request */

/* Adds the values of a name, each behind an option, if one is given. Empty fields of a form do not count. */
static void add_values(const char *query, const char *name, const char *option, struct act_strv *out)
{
    char *value;

    for (size_t i = 0; (value = web_param(query, name, i)); i++) {
        if (*value && option)
            act_strv_push(out, option);
        if (*value)
            act_strv_push(out, value);
        free(value);
    }
}

static void cmd_ui_words_of(const char *query, bool is_table, struct act_strv *out)
{
    add_values(query, "cluster", "--cluster", out);
    if (is_table) {
        add_values(query, "name", "--name", out);
        add_values(query, "tag", "--tag", out);
        add_values(query, "max", "--max", out);
        return;
    }
    act_strv_push(out, "--");
    add_values(query, "id", NULL, out);
}

static void cmd_ui_refuse(struct web_visit *visit, int status, const char *title, const char *text)
{
    ACT_AUTOFREE char *policy = page_policy(false);

    made_say(visit, &(struct web_answer){.status = status, .policy = policy}, title, text);
}

static void cmd_ui_answer(void *arg, struct web_visit *visit, const char *path, const char *query)
{
    static const char *const of_table[] = {"cluster", "name", "tag", "max", "live", NULL};
    static const char *const of_runs[] = {"cluster", "id", "live", NULL};
    struct ui *ui = arg;
    ACT_AUTO(act_strv) words = {0};
    ACT_AUTOFREE char *live = web_param(query, "live", 0);
    bool is_table = *path == '\0';

    cmd_ui_words_of(query, is_table, &words);
    if (!is_table && strcmp(path, "run") != 0)
        cmd_ui_refuse(visit, 404, "There is no such page", "The table of all runs leads to all pages that there are.");
    else if (!web_params_are(query, is_table ? of_table : of_runs))
        cmd_ui_refuse(visit, 400, "That cannot be asked", "The table is filtered by name, tag, cluster and max.");
    else if (!is_table && act_streq(words.v[words.n - 1], "--"))
        cmd_ui_refuse(visit, 400, "Which run?", "None is marked.");
    else
        made_answer(ui->made, &words, act_streq(live, "0"), visit);
}

/* ---- the address */

/* Returns the address with the filters of the command line. New string. */
static char *cmd_ui_address_of(const struct cli *cli, const struct web *web)
{
    ACT_AUTO(act_buf) query = {0};

    page_add_query(&query, "cluster", cli->options.cluster);
    page_add_query(&query, "name", cli->options.name);
    for (size_t i = 0; i < cli->options.tags.n; i++)
        page_add_query(&query, "tag", cli->options.tags.v[i]);
    return query.len > 0 ? act_sprintf("%s?%s", web_url(web), query.data) : act_strdup(web_url(web));
}

/* Opens the browser by a file that leads to the address, because all users can read the words of programs. Returns
 * its path, a new string; NULL: there is none. */
static char *open_browser(const char *address)
{
    ACT_AUTOFREE char *folder = act_state_dir();
    char *path = act_sprintf("%s/ui-%ld.html", folder, (long)getpid());
    ACT_AUTO(act_buf) page = {0}, escaped = {0};
    static char opener[] = "xdg-open";
    struct act_error err;
    pid_t pid;

    draw_escaped(&escaped, address);
    act_buf_addf(&page,
                 "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>ACT</title>"
                 "<meta name=\"referrer\" content=\"no-referrer\"><meta http-equiv=\"refresh\" content=\"0;url=%s\">"
                 "</head><body><a href=\"%s\">the runs</a></body></html>\n",
                 escaped.data, escaped.data);
    int rc = act_mkdir_all(folder, 0700, &err);
    if (rc == 0)
        rc = act_file_write(path, page.data, page.len, 0600, &err);
    if (rc == 0)
        rc = proc_daemon((char *[]){opener, path, NULL}, OF_USER, "/dev/null", -1, &pid, &err);
    if (rc == 0)
        return path;
    act_warn("no browser was opened: %s", act_error_text(&err));
    unlink(path);
    free(path);
    return NULL;
}

/* ---- until Ctrl-C */

static void look_for_signal(void *arg)
{
    struct ui *ui = arg;

    ui->stop = cli_interrupted;
    if (!ui->stop)
        engine_timer(ui->engine, LOOK_MS, look_for_signal, ui);
}

static int cmd_ui_serve(struct cli *cli, struct ui *ui, struct act_error *err)
{
    ACT_AUTOFREE char *address = cmd_ui_address_of(cli, ui->web);
    char *opened = NULL;

    cli_catch_signals(NULL);
    puts(address);
    fflush(stdout);
    int rc = cli_check_stdout(err);
    if (rc == 0 && CLI_OPTIONS(cli, page)->open)
        opened = open_browser(address);
    if (rc == 0) {
        act_note("only this machine can open it; Ctrl-C ends it");
        look_for_signal(ui);
        engine_run(ui->engine, &ui->stop);
    }
    if (opened)
        unlink(opened);
    free(opened);
    return rc;
}

static int cmd_ui_check(struct cli *cli, struct act_error *err)
{
    struct flow_labels ignored;
    int64_t port = CLI_OPTIONS(cli, page)->port;

    if (port != -1 && (port < 1 || port > 65535))
        return act_error_set(err, ACT_USAGE, "--port takes a number from 1 to 65535, not %lld", (long long)port);
    return cli_labels(cli, &ignored, err);
}

int cmd_ui(struct cli *cli, struct act_error *err)
{
    struct ui ui = {0};
    int rc = cmd_ui_check(cli, err);

    if (rc < 0)
        return rc;
    ui.engine = engine_new(NULL);
    ui.made = made_new(ui.engine);
    rc =
        web_open(&(struct web_options){.engine = ui.engine,
                                       .port = CLI_OPTIONS(cli, page)->port > 0 ? (int)CLI_OPTIONS(cli, page)->port : 0,
                                       .visit = cmd_ui_answer,
                                       .arg = &ui},
                 &ui.web, err);
    if (rc == 0)
        rc = cmd_ui_serve(cli, &ui, err);
    web_close(ui.web);
    made_free(ui.made);
    engine_forget(ui.engine, &ui);
    engine_free(ui.engine);
    return rc;
}
