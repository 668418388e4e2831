/* add.c - a new cluster: asking what cannot be found out, on the terminal, and writing its file. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/terminal.h"
#include "base/units.h"
#include "cli/clusters/clusters.h"
#include "cli/clusters/options.h"
#include "cli/own/own.h"
#include "cli/print/print.h"
#include "config/config.h"
#include "config/kind.h"
#include "flow/cluster/own.h"
#include "flow/cluster/setup.h"
#include "platform/platform.h"

static bool is_terminal(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

/* ---- asking ---- */

/* Tells whether there is more to say than the question does. */
static bool is_list(const struct platform_choices *choices)
{
    return choices->n > 1 || (choices->n == 1 && choices->v[0].shown);
}

/* Returns the word for a choice on the command line. */
static const char *word_of(const struct platform_choice *choice)
{
    return *choice->value ? choice->value : choice->alias;
}

static void show_choices(const struct platform_question *question, const struct platform_choices *choices)
{
    int width = 0;

    fprintf(stderr, "%s:\n", question->text);
    for (size_t i = 0; i < choices->n; i++) {
        int columns = act_columns(word_of(&choices->v[i]));
        width = columns > width ? columns : width;
    }
    for (size_t i = 0; i < choices->n; i++) {
        const struct platform_choice *c = &choices->v[i];
        ACT_AUTOFREE char *name = cli_name(word_of(c)), *shown = cli_name(c->shown ? c->shown : "");
        fprintf(stderr, "%4zu  %s%*s  %s\n", i + 1, name, width - act_columns(name), "", shown);
    }
}

static const struct platform_choice *usual_of(const struct platform_choices *choices)
{
    for (size_t i = 0; i < choices->n; i++)
        if (choices->v[i].usual)
            return &choices->v[i];
    return NULL;
}

/* Reads an answer: a number stands for a choice, nothing for the usual one. NULL: the input has ended. New string. */
static char *read_answer(const struct platform_question *question, const struct platform_choices *choices)
{
    const struct platform_choice *usual = usual_of(choices);
    ACT_AUTOFREE char *line = NULL;
    const char *shown = usual ? word_of(usual) : NULL;
    size_t size = 0;
    int64_t number;

    fprintf(stderr, "%s%s%s%s: ", is_list(choices) ? "which" : question->text, shown ? " [" : "", shown ? shown : "",
            shown ? "]" : "");
    if (getline(&line, &size, stdin) < 0)
        return NULL;
    line[strcspn(line, "\r\n")] = '\0';
    const char *word = line + strspn(line, " \t");
    size_t n = strlen(word);
    while (n && strchr(" \t", word[n - 1]))
        n--;
    char *answer = n || !shown ? act_strndup(word, n) : act_strdup(shown);
    if (act_int_from_text(answer, &number) && number >= 1 && (size_t)number <= choices->n) {
        free(answer);
        answer = act_strdup(word_of(&choices->v[number - 1]));
    }
    return answer;
}

/* Asks until an answer is right. */
static int cmd_cluster_add_ask(struct platform_setup *setup, const struct platform_question *question,
                               const struct platform_choices *choices, struct act_error *err)
{
    bool was_empty = false;

    if (is_list(choices))
        show_choices(question, choices);
    for (;;) {
        struct act_error wrong = {0};
        ACT_AUTOFREE char *answer = read_answer(question, choices);
        bool is_empty = answer && !*answer;
        if (!answer || (is_empty && was_empty))
            return act_error_set(err, ACT_FAIL, "no answer: nothing was written");
        if (is_empty)
            fprintf(stderr, "there is no usual answer for --%s: type one%s, or nothing again to stop\n",
                    question->option, question->may_lack ? ", 'none' if there is none" : "");
        else if (flow_question_take(question, setup, choices, answer, &wrong) == 0)
            return 0;
        else
            fprintf(stderr, "%s\n", act_error_text(&wrong));
        was_empty = is_empty;
    }
}

/* Says which option is missing, because nobody can be asked. */
static int name_missing(const struct platform_question *question, const struct platform_choices *choices,
                        struct act_error *err)
{
    bool is_name = strcmp(question->option, "name") == 0, is_own = !is_name && question != &flow_question_kind;
    ACT_AUTO(act_buf) list = {0};

    for (size_t i = 0; i < choices->n; i++)
        act_buf_addf(&list, "%s%s", i ? ", " : "", word_of(&choices->v[i]));
    bool is_told = is_own && (!list.len || choices->open); /* what it means, where no choices say that */
    act_error_set(err, ACT_USAGE, "without a terminal nobody can be asked: %s%s is missing%s%s",
                  is_name ? "the name, 'a cluster add NAME'," : "--", is_name ? "" : question->option,
                  is_told ? ": " : "", is_told ? question->text : "");
    if (list.len)
        act_error_hint(err, "%s: %s", choices->open ? "any name will do, such as" : "there are", list.data);
    return usual_of(choices) ? act_error_hint(err, "-y takes '%s'", word_of(usual_of(choices))) : -ACT_USAGE;
}

/* ---- the answers of the command line ---- */

static const char *given_answer(const struct cli *cli, const char *name, const char *option)
{
    const struct cli_option *row = cli_option_table;

    if (act_streq(option, "name"))
        return name;
    while (row->long_name && !act_streq(row->long_name, option))
        row++;
    return *(char *const *)cli_option_at(cli, row);
}

/* Refuses an option of another kind of cluster, and names those of this one. */
static int add_refuse_option(const struct platform_row *row, const char *option, struct act_error *err)
{
    ACT_AUTO(act_buf) own = {0};

    for (const struct platform_question *q = row->setup->questions; q->option; q++)
        act_buf_addf(&own, "%s--%s", own.len ? ", " : "", q->option);
    act_error_set(err, ACT_USAGE, "--%s is not for a cluster of kind %s", option, row->kind->name);
    return own.len ? act_error_hint(err, "it takes %s", own.data) : -ACT_USAGE;
}

static int add_refuse_strangers(const struct cli *cli, const struct platform_setup *setup, struct act_error *err)
{
    for (const struct platform_row *row = NULL; (row = platform_setup_next(row));)
        for (const struct platform_question *q = row->setup->questions; q->option; q++)
            if (given_answer(cli, NULL, q->option) && !flow_has_question(setup, q->option))
                return add_refuse_option(setup->row, q->option, err);
    return 0;
}

/* Takes a path, which only the command line gives. */
static void take_given_path(struct platform_setup *setup, const struct platform_question *question, const char *given)
{
    ACT_AUTOFREE char *here = getcwd(NULL, 0);
    ACT_AUTOFREE char *full = *given == '/' ? act_strdup(given) : act_path_join(here, given);
    ACT_AUTOFREE char *path = act_path_clean(full);

    platform_answer(setup, question->option, path);
}

static int cmd_cluster_add_answer(struct cli *cli, struct platform_setup *setup,
                                  const struct platform_question *question, const char *given, struct act_error *err)
{
    ACT_AUTO(platform_choices) choices = {0};
    int rc = flow_question_look(question, setup, &choices, err);
    const struct platform_choice *usual = usual_of(&choices);
    const struct platform_choice *only = question->is_quiet && !choices.open && choices.n == 1 ? choices.v : NULL;
    const struct platform_choice *taken = only ? only : cli->options.yes ? usual : NULL;

    if (rc < 0)
        return rc;
    if (given)
        return flow_question_take(question, setup, &choices, given, err);
    if (!taken)
        return (is_terminal() ? cmd_cluster_add_ask(setup, question, &choices, err)
                              : name_missing(question, &choices, err));
    rc = flow_question_take(question, setup, &choices, word_of(taken), err);
    if (rc == 0)
        act_note("%s: %s", question->text, word_of(taken));
    return rc;
}

/* Takes the answer to one question from the command line, or asks. */
static int answer_one(struct cli *cli, struct platform_setup *setup, const struct platform_question *question,
                      const char *name, struct act_error *err)
{
    const char *given = given_answer(cli, name, question->option);

    if (platform_answered(setup, question->option))
        return 0;
    if (question->text)
        return cmd_cluster_add_answer(cli, setup, question, given, err);
    if (given)
        take_given_path(setup, question, given);
    return 0;
}

/* Looks at the name first: who takes a wrong one should not answer the rest in vain. */
static int cmd_cluster_add_answer_all(struct cli *cli, struct platform_setup *setup, const char *name,
                                      struct act_error *err)
{
    int rc = name ? answer_one(cli, setup, &flow_question_name, name, err) : 0;

    for (const struct platform_question *q = NULL; rc == 0 && (q = flow_next_question(setup, q));) {
        rc = answer_one(cli, setup, q, name, err);
        if (rc == 0 && q == &flow_question_kind)
            rc = add_refuse_strangers(cli, setup, err);
    }
    return rc;
}

/* ---- the end ---- */

static int show_text(struct cli *cli, const struct platform_setup *setup, struct act_error *err)
{
    ACT_AUTOFREE char *text = NULL;
    int rc = platform_setup_text(setup, &text, err);

    if (rc == 0 && !cli->options.json)
        fputs(text, stdout);
    act_note("would write '%s'", setup->file);
    return rc;
}

/* findings: those of the check; NULL: none was made, as in a dry run. */
static int print_added(const struct platform_setup *setup, bool is_default, const struct platform_findings *findings,
                       bool ok, struct act_error *err)
{
    return cli_print_pack(err, "{s:s,s:s,s:s,s:s,s:b,s:b,s:o*,s:o*}", "action", "add", "name",
                          platform_said(setup, "name"), "kind", platform_said(setup, "kind"), "file", setup->file,
                          "default", is_default, "dry_run", !findings, "ok", findings ? json_boolean(ok) : NULL,
                          "checks", findings ? cli_findings_json(findings) : NULL);
}

/* Fills in what can be found out. If something cannot, the answers keep their worth. */
static void cmd_cluster_add_finish(struct platform_setup *setup)
{
    struct act_error err = {0};

    if (flow_setup_finish(setup, &err) < 0)
        act_warn("the GPUs of a node could not be counted, 'a config set gpu_per_node N' says how many there are: %s",
                 act_error_text(&err));
}

/* Says it where the folders of a project are not kept there: 'data' goes with the code then, at every submit. */
static void note_folders(const struct platform_setup *setup)
{
    struct config config = {0};
    struct act_error ignored;

    if (setup->row->kind->has_places && platform_setup_load(setup, &config, &ignored) == 0 && !config.n_folders &&
        !config.far)
        act_note("no folders are mapped: 'data' of a project goes with its code; where the machines have it, 'a -c %s "
                 "config set config_param.data_folder.mode=path config_param.data_folder.path=/WHERE/IT/IS' names it",
                 platform_said(setup, "name"));
    config_release(&config);
}

static void note_added(const struct platform_setup *setup)
{
    ACT_AUTO(config_listing) all = {0};
    const char *name = platform_said(setup, "name"), *file = setup->file;
    bool hidden = false;

    config_list(NULL, &all);
    for (size_t i = 0; i < all.n; i++)
        hidden = hidden || (all.v[i].is_hidden && act_streq(all.v[i].file, file));
    if (setup->made)
        act_note("%s is made", setup->made);
    act_note("'%s' is written; 'a -c %s submit COMMAND' runs a command there", file, name);
    if (hidden)
        act_warn("the project here has a cluster '%s' too, which comes before it", name);
}

static void add_note_default(const char *name, bool is_default, bool ok)
{
    if (is_default)
        act_note(
            "it is the default cluster now: 'a submit COMMAND' runs there, and 'a cluster use local' makes it this "
            "machine again");
    else if (!ok)
        act_note(
            "it is not the default cluster, as a check failed: when 'a -c %s doctor' finds nothing, 'a cluster use "
            "%s' makes it that",
            name, name);
}

/* Checks what was added. What a bare 'a submit' takes from now on is only a cluster that is known to work. */
static int add_check(struct cli *cli, const struct platform_setup *setup, bool is_first, struct act_error *err)
{
    ACT_AUTO(platform_findings) findings = {0};
    const char *name = platform_said(setup, "name");
    bool is_default = false;

    free(cli->options.cluster);
    cli->options.cluster = act_strdup(name);
    bool ok = cli_examine(cli, &findings);
    if (!cli->options.json)
        cli_print_findings(&findings);
    int rc = ok && is_first ? flow_use_first_cluster(name, &is_default, err) : 0;
    if (rc < 0)
        return act_error_prefix(err, "'%s' is written, but cannot be made the default", setup->file);
    if (is_first)
        add_note_default(name, is_default, ok);
    if (cli->options.json)
        rc = print_added(setup, is_default, &findings, ok, err);
    return rc < 0 ? rc : ok ? 0 : ACT_FAIL;
}

static int cmd_cluster_add_add(struct cli *cli, struct platform_setup *setup, const char *name, struct act_error *err)
{
    bool is_first = false;
    int rc = cmd_cluster_add_answer_all(cli, setup, name, err);

    if (rc < 0)
        return rc;
    cmd_cluster_add_finish(setup);
    if (cli->options.dry_run) {
        rc = show_text(cli, setup, err);
        return rc == 0 && cli->options.json ? print_added(setup, false, NULL, false, err) : rc;
    }
    rc = flow_setup_save(setup, &is_first, err);
    if (rc < 0)
        return rc;
    note_added(setup);
    note_folders(setup);
    return add_check(cli, setup, is_first, err);
}

int cli_add_cluster(struct cli *cli, const char *name, struct act_error *err)
{
    ACT_AUTO(platform_setup) setup = {0};

    flow_setup_init(&setup, &cli->services, CLI_OPTIONS(cli, add)->project);
    act_strv_copy(&setup.params, cli->options.params.v, cli->options.params.n);
    return cmd_cluster_add_add(cli, &setup, name, err);
}
