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
#include "flow/cluster/doctor.h"
#include "flow/cluster/setup.h"

static bool is_terminal(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

/* ---- asking ---- */

/* Tells whether there is more to say than the question does. */
static bool is_list(const struct flow_choices *choices)
{
    return choices->n > 1 || (choices->n == 1 && choices->v[0].shown);
}

/* Returns the word for a choice on the command line. */
static const char *word_of(const struct flow_choice *choice)
{
    return *choice->value ? choice->value : choice->alias;
}

static void show_choices(const struct flow_question *question, const struct flow_choices *choices)
{
    int width = 0;

    fprintf(stderr, "%s:\n", question->text);
    for (size_t i = 0; i < choices->n; i++) {
        int columns = act_columns(word_of(&choices->v[i]));
        width = columns > width ? columns : width;
    }
    for (size_t i = 0; i < choices->n; i++) {
        const struct flow_choice *c = &choices->v[i];
        ACT_AUTOFREE char *name = cli_name(word_of(c)), *shown = cli_name(c->shown ? c->shown : "");
        fprintf(stderr, "%4zu  %s%*s  %s\n", i + 1, name, width - act_columns(name), "", shown);
    }
}

static const struct flow_choice *usual_of(const struct flow_choices *choices)
{
    for (size_t i = 0; i < choices->n; i++)
        if (choices->v[i].usual)
            return &choices->v[i];
    return NULL;
}

/* Reads an answer: a number stands for a choice, nothing for the usual one. NULL: the input has ended. New string. */
static char *read_answer(const struct flow_question *question, const struct flow_choices *choices)
{
    const struct flow_choice *usual = usual_of(choices);
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
static int cmd_cluster_add_ask(struct flow_setup *setup, const struct flow_question *question,
                               const struct flow_choices *choices, struct act_error *err)
{
    if (is_list(choices))
        show_choices(question, choices);
    for (;;) {
        struct act_error wrong = {0};
        ACT_AUTOFREE char *answer = read_answer(question, choices);
        if (!answer)
            return act_error_set(err, ACT_FAIL, "no answer: nothing was written");
        if (flow_question_take(question, setup, choices, answer, &wrong) == 0)
            return 0;
        fprintf(stderr, "%s\n", act_error_text(&wrong));
    }
}

/* Says which option is missing, because nobody can be asked. */
static int name_missing(const struct flow_question *question, const struct flow_choices *choices, struct act_error *err)
{
    bool is_name = strcmp(question->option, "name") == 0;
    ACT_AUTO(act_buf) list = {0};

    for (size_t i = 0; i < choices->n; i++)
        act_buf_addf(&list, "%s%s", i ? ", " : "", word_of(&choices->v[i]));
    act_error_set(err, ACT_USAGE, "without a terminal nobody can be asked: %s%s is missing",
                  is_name ? "the name, 'a cluster add NAME'," : "--", is_name ? "" : question->option);
    if (list.len)
        act_error_hint(err, "there %s: %s%s", choices->n == 1 ? "is" : "are", list.data,
                       choices->open ? ", or another" : "");
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
    return *(char *const *)((const char *)&cli->options + row->offset);
}

/* Refuses options that are for another kind of cluster. */
static int refuse_strangers(const struct cli *cli, const struct flow_setup *setup, struct act_error *err)
{
    if (CLI_OPTIONS(cli, add)->kubeconfig && strcmp(setup->kind, "k8s") != 0)
        return act_error_set(err, ACT_USAGE, "--kubeconfig is not for a cluster of kind %s", setup->kind);
    for (const struct flow_question *q = flow_questions; q->option; q++) {
        bool taken = flow_question_is_for(q, setup);
        for (const struct flow_question *other = flow_questions; other->option && !taken; other++)
            taken = strcmp(other->option, q->option) == 0 && flow_question_is_for(other, setup);
        if (!taken && given_answer(cli, NULL, q->option))
            return act_error_set(err, ACT_USAGE, "--%s is not for a cluster of kind %s", q->option, setup->kind);
    }
    return 0;
}

static int cmd_cluster_add_answer(struct cli *cli, struct flow_setup *setup, const struct flow_question *question,
                                  const char *given, struct act_error *err)
{
    ACT_AUTO(flow_choices) choices = {0};
    int rc = flow_question_look(question, setup, &choices, err);
    const struct flow_choice *usual = usual_of(&choices);
    const struct flow_choice *only = question->is_quiet && !choices.open && choices.n == 1 ? choices.v : NULL;
    const struct flow_choice *taken = only ? only : cli->options.yes ? usual : NULL;

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

/* Names are looked at first: who asks for a wrong one should not answer the rest in vain. */
static int cmd_cluster_add_answer_all(struct cli *cli, struct flow_setup *setup, const char *name,
                                      struct act_error *err)
{
    const struct flow_question *question = flow_questions, *naming = flow_questions;
    int rc = 0;

    while (!act_streq(naming->option, "name"))
        naming++;
    if (name)
        rc = cmd_cluster_add_answer(cli, setup, naming, name, err);
    for (; question->option && rc == 0; question++) {
        if (!flow_question_is_for(question, setup) || *flow_question_answer(question, setup))
            continue;
        rc = cmd_cluster_add_answer(cli, setup, question, given_answer(cli, name, question->option), err);
        if (rc == 0 && question == flow_questions)
            rc = refuse_strangers(cli, setup, err);
    }
    return rc;
}

/* ---- the end ---- */

static int show_doctor(struct cli *cli, const struct flow_setup *setup, struct act_error *err)
{
    free(cli->options.cluster);
    cli->options.cluster = act_strdup(setup->name);
    return cmd_doctor(cli, err);
}

static int show_text(struct cli *cli, const struct flow_setup *setup, const char *file, struct act_error *err)
{
    ACT_AUTOFREE char *text = NULL;
    int rc = flow_setup_text(setup, &text, err);

    if (rc == 0 && !cli->options.json)
        fputs(text, stdout);
    act_note("would write '%s'", file);
    return rc;
}

static int print_added(struct cli *cli, const struct flow_setup *setup, const char *file, bool is_default,
                       struct act_error *err)
{
    return cli_print_json(json_pack("{s:i,s:s,s:s,s:s,s:s,s:b,s:b}", "version", 1, "action", "add", "name", setup->name,
                                    "kind", setup->kind, "file", file, "default", is_default, "dry_run",
                                    cli->options.dry_run),
                          err);
}

/* Fills in what can be found out. If something cannot, the answers keep their worth. */
static void cmd_cluster_add_finish(struct flow_setup *setup)
{
    struct act_error err = {0};

    if (flow_setup_finish(setup, &err) < 0)
        act_warn("the GPUs of a node could not be counted, 'a config set gpu_per_node N' says how many there are: %s",
                 act_error_text(&err));
}

static void note_added(const struct flow_setup *setup, const char *file, bool is_default)
{
    ACT_AUTO(config_listing) all = {0};
    bool hidden = false;

    config_list(NULL, &all);
    for (size_t i = 0; i < all.n; i++)
        hidden = hidden || (all.v[i].is_hidden && act_streq(all.v[i].file, file));
    if (setup->makes_container)
        act_note("the container '%s' is made", setup->container);
    act_note("'%s' is written; 'a %s%s%ssubmit COMMAND' runs a command there", file, is_default ? "" : "-c ",
             is_default ? "" : setup->name, is_default ? "" : " ");
    if (is_default)
        act_note("it is the default cluster now; 'a cluster use local' makes it this machine again");
    if (hidden)
        act_warn("the project here has a cluster '%s' too, which comes before it", setup->name);
}

static int cmd_cluster_add_add(struct cli *cli, struct flow_setup *setup, const char *name, struct act_error *err)
{
    bool is_default = false;
    int rc = cmd_cluster_add_answer_all(cli, setup, name, err);

    if (rc < 0)
        return rc;
    cmd_cluster_add_finish(setup);
    ACT_AUTOFREE char *file = flow_setup_file(setup);
    if (cli->options.dry_run)
        rc = show_text(cli, setup, file, err);
    else
        rc = flow_setup_save(setup, &is_default, err);
    if (rc < 0 || (cli->options.dry_run && !cli->options.json))
        return rc;
    if (cli->options.json)
        return print_added(cli, setup, file, is_default, err);
    note_added(setup, file, is_default);
    return show_doctor(cli, setup, err);
}

int cli_add_cluster(struct cli *cli, const char *name, struct act_error *err)
{
    const struct cli_add_options *o = CLI_OPTIONS(cli, add);
    struct flow_setup setup;

    flow_setup_init(&setup);
    setup.services = &cli->services;
    setup.in_project = o->project;
    act_strv_copy(&setup.params, cli->options.params.v, cli->options.params.n);
    if (o->kubeconfig) {
        ACT_AUTOFREE char *here = getcwd(NULL, 0);
        ACT_AUTOFREE char *path =
            *o->kubeconfig == '/' ? act_strdup(o->kubeconfig) : act_path_join(here, o->kubeconfig);
        setup.kubeconfig = act_path_clean(path);
    }
    int rc = cmd_cluster_add_add(cli, &setup, name, err);
    flow_setup_release(&setup);
    return rc;
}
