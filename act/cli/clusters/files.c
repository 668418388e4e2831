/* files.c - the verbs of 'a cluster' for the files that say what clusters there are. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "cli/clusters/clusters.h"
#include "cli/command/signal.h"
#include "cli/print/ask.h"
#include "cli/print/print.h"
#include "cli/print/table.h"
#include "codec/json.h"
#include "config/config.h"
#include "flow/cluster/own.h"
#include "proc/proc.h"

/* ---- list ---- */

static json_t *own_json(const struct config_named *named, const struct config_report *state)
{
    return json_pack("{s:s,s:s?,s:b,s:b,s:b,s:s?,s:b,s:o}", "name", named->name, "kind", state->platform, "default",
                     named->is_default, "yours", named->is_users, "hidden", named->is_hidden, "file", named->file, "ok",
                     state->problems.n == 0, "problems", codec_json_strv_new(&state->problems));
}

static void push_row(struct act_strv *cells, const struct config_named *named, const struct config_report *state)
{
    size_t n = state->problems.n;

    act_strv_push(cells, named->is_default ? "*" : "");
    act_strv_push(cells, named->name);
    cli_push_text(cells, state->platform);
    if (named->is_hidden)
        act_strv_push(cells, "hidden");
    else if (n)
        act_strv_pushf(cells, "%zu problem%s", n, cli_plural(n));
    else
        act_strv_push(cells, "file ok"); /* the cluster itself is not asked */
    act_strv_push(cells, named->file ? named->file : "built-in");
}

int cli_list_own(struct cli *cli, struct act_error *err)
{
    static const struct cli_column columns[] = {
        {"", 'l', .rank = 0},
        {"NAME", 'l', .rank = 0},
        {"KIND", 'l', .rank = 1},
        {"STATE", 'l', .rank = 2},
        {"FILE", 'l', .rank = 3, .below = true},
    };
    ACT_AUTO(config_listing) all = {0};
    ACT_AUTO(act_strv) cells = {0};
    json_t *list = json_array();

    config_list(NULL, &all);
    for (size_t i = 0; i < all.n; i++) {
        ACT_AUTO(config_report) state = {0};
        flow_own_state(&all.v[i], &state);
        push_row(&cells, &all.v[i], &state);
        json_array_append_new(list, own_json(&all.v[i], &state));
    }
    if (cli->options.json)
        return cli_print_pack(err, "{s:o}", "own", list);
    json_decref(list);
    cli_print_table(columns, sizeof(columns) / sizeof(columns[0]), &cells);
    return 0;
}

/* ---- changes ---- */

static int print_change(const struct cli *cli, const char *action, const char *name, const char *file,
                        struct act_error *err)
{
    if (!cli->options.json)
        return 0;
    return cli_print_pack(err, "{s:s,s:s,s:s?,s:b}", "action", action, "name", name, "file", file, "dry_run",
                          cli->options.dry_run);
}

int cli_use_cluster(struct cli *cli, const char *name, struct act_error *err)
{
    ACT_AUTOFREE char *instead = NULL;
    int rc = flow_use_cluster(name, cli->options.dry_run, &instead, err);

    if (rc < 0)
        return rc;
    act_note("'%s' %s the default cluster", name, cli->options.dry_run ? "would be" : "is now");
    if (instead)
        act_note("here '%s' comes before it; 'a -c %s' chooses it", instead, name);
    return print_change(cli, "use", name, NULL, err);
}

int cli_rename_cluster(struct cli *cli, const char *name, struct act_error *err)
{
    ACT_AUTO(config_listing) all = {0};
    const struct config_named *named;
    const char *new_name = cli->words.n > 2 ? cli->words.v[2] : NULL;

    if (!new_name)
        return act_error_set(err, ACT_USAGE, "what shall it be called? 'a cluster rename %s NAME'", name);
    config_list(NULL, &all);
    int rc = flow_find_own(&all, name, false, &named, err);
    size_t runs = rc == 0 ? flow_runs_on(&cli->flow, name) : 0;
    if (rc == 0)
        rc = flow_rename_own(named, new_name, cli->options.dry_run, err);
    if (rc < 0)
        return rc;
    act_note("'%s' %s called '%s'", name, cli->options.dry_run ? "would be" : "is now", new_name);
    if (runs)
        act_note("%zu run%s of it keep%s the old name, and %s found where %s went", runs, cli_plural(runs),
                 runs == 1 ? "s" : "", runs == 1 ? "is" : "are", runs == 1 ? "it" : "they");
    return print_change(cli, "rename", new_name, NULL, err);
}

static char *removal(const struct config_named *named, bool is_default, size_t runs)
{
    return act_sprintf("Remove '%s'?%s%s", named->file, is_default ? " It is the default cluster." : "",
                       runs ? " Its runs go on, and are found where they went."
                            : " Nothing on the cluster itself is touched.");
}

static void note_default(const struct cli *cli, const char *name)
{
    act_note("'%s' %s the default cluster: that %s 'local' now; 'a cluster use NAME' chooses another", name,
             cli->options.dry_run ? "is" : "was", cli->options.dry_run ? "would be" : "is");
}

/* Says that the account file stays: others may use it too. */
static void note_account(const struct config_named *named)
{
    ACT_AUTOFREE char *account = flow_own_account(named);

    if (account)
        act_note("its account file '%s' stays", account);
}

int cli_remove_cluster(struct cli *cli, const char *name, struct act_error *err)
{
    ACT_AUTO(config_listing) all = {0};
    const struct config_named *named;

    config_list(NULL, &all);
    int rc = flow_find_own(&all, name, false, &named, err);
    if (rc < 0)
        return rc;
    if (cli->options.dry_run && (rc = flow_remove_own(named, true, err)) < 0)
        return rc;
    if (cli->options.dry_run) {
        act_note("would remove '%s'", named->file);
        if (flow_is_default(name))
            note_default(cli, name);
        return print_change(cli, "remove", name, named->file, err);
    }
    bool is_default = flow_is_default(name);
    ACT_AUTOFREE char *question = removal(named, is_default, flow_runs_on(&cli->flow, name));
    rc = cli_confirm(cli, question, err);
    if (rc == 0)
        rc = flow_remove_own(named, false, err);
    if (rc < 0)
        return rc;
    act_note("'%s' is removed", named->file);
    if (is_default)
        note_default(cli, name);
    note_account(named);
    return print_change(cli, "remove", name, named->file, err);
}

/* ---- edit ---- */

/* Runs the editor as git does: the variable holds words for a shell. */
static int run_editor(const char *editor, const char *file, struct act_error *err)
{
    ACT_AUTOFREE char *script = act_sprintf("%s \"$@\"", editor);
    char shell[] = "/bin/sh", option[] = "-c";
    ACT_AUTOFREE char *path = act_strdup(file);
    char *const argv[] = {shell, option, script, shell, path, NULL};
    const struct proc_start start = {.argv = argv, .in_fd = STDIN_FILENO, .out_fd = -1, .err_fd = -1};
    int status = 0;
    pid_t pid;

    cli_catch_signals(NULL); /* the editor's own matter */
    int rc = proc_start(&start, &pid, err);
    if (rc < 0)
        return rc;
    while (waitpid(pid, &status, 0) < 0)
        continue;
    cli_end_with(NULL);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return act_error_set(err, ACT_FAIL, "the editor '%s' failed: nothing was changed", editor);
}

static int read_edited(const char *file, char **out, struct act_error *err)
{
    enum { MAX_FILE = 1 << 20 };
    size_t len;
    int rc = act_file_read_regular(file, MAX_FILE, out, &len, err);

    return rc == 0 && strlen(*out) != len ? act_error_set(err, ACT_CONFIG, "'%s' is not a text", file) : rc;
}

/* Shows the mistakes, and asks whether to edit again. */
static bool wants_again(const struct act_strv *problems)
{
    for (size_t i = 0; i < problems->n; i++)
        fprintf(stderr, "%s\n", problems->v[i]);
    return isatty(STDIN_FILENO) && cli_ask("Edit it again?");
}

/* Edits the copy until it is right or the user gives up. *out NULL: nothing was changed. */
static int edit_copy(const struct flow_draft *draft, const char *editor, const char *copy, char **out,
                     struct act_error *err)
{
    for (;;) {
        ACT_AUTO(act_strv) problems = {0};
        ACT_AUTOFREE char *text = NULL;
        int rc = run_editor(editor, copy, err);
        if (rc == 0)
            rc = read_edited(copy, &text, err);
        if (rc == 0 && act_streq(text, draft->text))
            return 0;
        if (rc == 0)
            rc = flow_draft_check(draft, text, &problems, err);
        if (rc < 0)
            return rc;
        if (problems.n == 0) {
            *out = act_strdup(text);
            return 0;
        }
        if (!wants_again(&problems))
            return act_error_set(err, ACT_CONFIG, "'%s' stays as it was: %zu problem%s in what was typed", draft->file,
                                 problems.n, cli_plural(problems.n));
    }
}

static char *place_of_copy(const char *file)
{
    ACT_AUTOFREE char *dir = act_path_dirname(file);

    return act_sprintf("%s/.%d-%s", dir, (int)getpid(), act_path_basename(file));
}

static int cmd_cluster_own_edit(const struct flow_draft *draft, const char *editor, struct act_error *err)
{
    ACT_AUTOFREE char *copy = place_of_copy(draft->file);
    ACT_AUTOWIPE char *text = NULL;
    const char *before = draft->text ? draft->text : "";
    bool existed = false;
    int rc = act_file_create(copy, before, strlen(before), 0600, &existed, err);

    if (rc < 0)
        return rc;
    if (existed)
        return act_error_set(err, ACT_FAIL, "'%s' is in the way", copy);
    rc = edit_copy(draft, editor, copy, &text, err);
    if (rc == 0 && text)
        rc = flow_draft_save(draft, text, err);
    if (rc < 0)
        return act_error_hint(err, "what was typed is in '%s'", copy);
    if (unlink(copy) < 0)
        act_warn("cannot remove '%s'", copy);
    act_note(text ? "'%s' is saved" : "'%s' is unchanged", draft->file);
    return 0;
}

/* Finds the file of a name, or else that of the cluster that counts here. */
static int cmd_cluster_own_find_file(struct cli *cli, const char *name, char **out, struct act_error *err)
{
    ACT_AUTO(config_listing) all = {0};
    const struct config_named *named = NULL;
    ACT_AUTO(config_report) report = {0};
    struct cli_request request;
    int rc;

    config_list(NULL, &all);
    cli_request(cli, &request);
    if (name && (rc = flow_find_own(&all, name, true, &named, err)) < 0)
        return rc;
    rc = name ? 0 : config_check(&request.config, &report, err);
    const char *file = named ? named->file : report.file;
    if (rc == 0 && !file)
        return act_error_set(err, ACT_NOT_FOUND,
                             "the cluster '%s' is built in and has no file; 'a cluster add NAME "
                             "--kind local' makes one",
                             name ? name : report.cluster);
    *out = rc == 0 ? act_strdup(file) : NULL;
    return rc;
}

int cli_edit_cluster(struct cli *cli, const char *name, struct act_error *err)
{
    ACT_AUTO(flow_draft) draft = {0};
    ACT_AUTOFREE char *file = NULL;
    const char *editor = getenv("EDITOR");

    if (name && cli->options.cluster)
        return act_error_set(err, ACT_USAGE, "'a cluster edit' takes a name or -c, not both");
    int rc = cmd_cluster_own_find_file(cli, name, &file, err);
    if (rc == 0 && (!editor || !*editor))
        return act_error_set(err, ACT_USAGE, "EDITOR is not set; 'EDITOR=nano a cluster edit', or edit '%s'", file);
    if (rc == 0)
        rc = flow_draft_open(file, true, &draft, err);
    return rc < 0 ? rc : cmd_cluster_own_edit(&draft, editor, err);
}
