/* ui.c - 'a ui': what is asked for by a browser, and which page that is. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/host.h"
#include "base/log.h"
#include "base/path.h"
#include "cli/command/signal.h"
#include "cli/page/download.h"
#include "cli/page/job.h"
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

enum {
    LOOK_MS = 200,
    GATHER_MS = 1000, /* until numbers are read for the next list: this one has the processors first */
};

struct ui {
    struct engine *engine;
    struct web *web;
    struct made *made;
    struct downloads *downloads;
    struct act_strv gather; /* the words of the process that reads the numbers of the list asked for last */
    bool will_gather;
    bool stop;
};

/* ---- a request */

/* Adds the values of a name, each as "name=value" or, with an option, behind that. Empty fields of a form do not count.
 * Returns how many there are. */
static size_t cmd_ui_add_values(const char *query, const char *name, const char *option, struct act_strv *out)
{
    size_t n = 0;
    char *value;

    for (size_t i = 0; (value = web_param(query, name, i)); i++) {
        if (*value && option)
            ACT_STRV_PUSH(out, option, value);
        else if (*value)
            act_strv_pushf(out, "%s=%s", name, value);
        n += *value != '\0';
        free(value);
    }
    return n;
}

/* Makes the words of "a __page". The option comes first; nothing behind "--" is one. Returns how many runs there are.
 */
static size_t cmd_ui_words_of(const struct page_route *route, const char *query, struct act_strv *out)
{
    size_t ids = 0;

    cmd_ui_add_values(query, "cluster", "--cluster", out);
    ACT_STRV_PUSH(out, "--", route->path);
    for (size_t i = 0; i < PAGE_PARAMS && route->params[i]; i++) {
        size_t n = cmd_ui_add_values(query, route->params[i], NULL, out);
        ids += strcmp(route->params[i], "id") == 0 ? n : 0;
    }
    return ids;
}

static bool cmd_ui_knows(const struct page_route *route, const char *query)
{
    const char *names[PAGE_PARAMS + 2] = {"cluster"};

    for (size_t i = 0; i < PAGE_PARAMS && route->params[i]; i++)
        names[i + 1] = route->params[i];
    return web_params_are(query, names);
}

static const struct page_route *cmd_ui_route(const char *path)
{
    const struct page_route *route = page_route(path);

    return route && route->form != MADE_NOTHING ? route : NULL;
}

/* Has the numbers of runs read that the next list shows. */
static void cmd_ui_gather(void *arg)
{
    struct ui *ui = arg;

    ui->will_gather = false;
    made_want(ui->made, &ui->gather);
}

static void cmd_ui_gather_soon(struct ui *ui, const char *query)
{
    act_strv_release(&ui->gather);
    cmd_ui_words_of(page_route(PAGE_GATHER), query, &ui->gather);
    if (!ui->will_gather)
        engine_timer(ui->engine, GATHER_MS, cmd_ui_gather, ui);
    ui->will_gather = true;
}

/* Returns why a request is refused before anything is made; status 0: it is not. */
static struct made_words cmd_ui_refusal(const struct page_route *route, const char *path, const char *query, size_t ids)
{
    if (!route)
        return (struct made_words){act_starts_with(path, "api/") ? MADE_JSON : MADE_PAGE, 404, "There is no such page",
                                   "The table of all runs leads to all pages that there are.", 0};
    if (!cmd_ui_knows(route, query))
        return (struct made_words){route->form, 400, "That cannot be asked",
                                   "The address asks for something that this page does not know.", 0};
    if (ids < route->least_ids)
        return (struct made_words){route->form, 400, "Which run?", "The address names no run, or too few.", 0};
    if (ids > route->most_ids)
        return (struct made_words){route->form, 400, "Fewer runs, please",
                                   "The address names more runs than one page shows.", 0};
    return (struct made_words){0};
}

/* Gives a file under its name without folders. */
static void cmd_ui_download(struct ui *ui, const struct act_strv *words, const char *query, struct web_visit *visit)
{
    ACT_AUTOFREE char *log = web_param(query, "name", 0), *output = web_param(query, "output", 0);
    const char *path = output ? output : log ? log : "";

    downloads_answer(ui->downloads, words, act_path_basename(path), visit);
}

static void cmd_ui_answer(void *arg, struct web_visit *visit, const char *path, const char *query)
{
    const struct page_route *route = cmd_ui_route(path);
    struct ui *ui = arg;
    ACT_AUTO(act_strv) words = {0};
    size_t ids = route ? cmd_ui_words_of(route, query, &words) : 0;
    const struct made_words refusal = cmd_ui_refusal(route, path, query, ids);

    if (refusal.status > 0) {
        ACT_AUTOFREE char *policy = page_policy();
        made_say(visit, &refusal, policy);
        return;
    }
    if (route->form == MADE_FILE) {
        cmd_ui_download(ui, &words, query, visit);
        return;
    }
    made_answer(ui->made, &(struct made_wish){.words = &words, .form = route->form, .gathers = route->gathers}, visit);
    if (route->gathers)
        cmd_ui_gather_soon(ui, query);
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

int page_check_port(const struct cli *cli, struct act_error *err)
{
    int64_t asked = CLI_OPTIONS(cli, page)->port;
    uint16_t port = (uint16_t)asked;

    if (asked == -1)
        return 0;
    if (asked < 1 || asked > UINT16_MAX)
        return act_error_set(err, ACT_USAGE, "--port takes a number from 1 to 65535, not %lld", (long long)asked);
    int fd = act_listen_here(&port, 1);
    if (fd == -EADDRINUSE)
        return act_error_set(err, ACT_USAGE,
                             "port %u of 127.0.0.1 is taken: name another one, or none, for one that is free", port);
    if (fd < 0)
        return act_error_errno(err, -fd, "cannot listen at port %u of this machine", port);
    close(fd);
    return 0;
}

char *page_open_browser(const char *address, const char *what)
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
                 "</head><body><a href=\"%s\">%s</a></body></html>\n",
                 escaped.data, escaped.data, what);
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

void page_close_browser(char *page)
{
    if (page)
        unlink(page);
    free(page);
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
        opened = page_open_browser(address, "the runs");
    if (rc == 0) {
        act_note("only this machine can open it; Ctrl-C ends it");
        look_for_signal(ui);
        engine_run(ui->engine, &ui->stop);
    }
    page_close_browser(opened);
    return rc;
}

static int cmd_ui_check(struct cli *cli, struct act_error *err)
{
    struct flow_labels ignored;
    int rc = page_check_port(cli, err);

    return rc < 0 ? rc : cli_labels(cli, &ignored, err);
}

int cmd_ui(struct cli *cli, struct act_error *err)
{
    struct ui ui = {0};
    int rc = cmd_ui_check(cli, err);

    if (rc < 0)
        return rc;
    ui.engine = engine_new(NULL);
    ui.made = made_new(ui.engine);
    ui.downloads = downloads_new(ui.engine);
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
    downloads_free(ui.downloads);
    engine_forget(ui.engine, &ui);
    engine_free(ui.engine);
    act_strv_release(&ui.gather);
    return rc;
}
