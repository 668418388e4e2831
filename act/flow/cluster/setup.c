/* setup.c - the questions about a new cluster, and writing its files. */
#include "flow/cluster/setup.h"
#include "config/config.h"
#include "config/kind.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "codec/yaml.h"
#include "flow/cluster/own.h"
#include "platform/platform.h"

/* Says where the files of a cluster of that name go. */
static void setup_place_files(struct platform_setup *setup, const char *name)
{
    free(setup->file);
    free(setup->account_file);
    setup->file = setup->in_project ? config_project_cluster_file(NULL, name) : config_users_cluster_file(name);
    ACT_AUTOFREE char *clusters = act_path_dirname(setup->file);
    ACT_AUTOFREE char *above = act_path_dirname(clusters);
    setup->account_file = act_sprintf("%s/%s/%s.yaml", above, setup->in_project ? "configs" : "accounts", name);
}

void flow_setup_init(struct platform_setup *setup, struct services *services, bool in_project)
{
    *setup = (struct platform_setup){.services = services, .in_project = in_project, .gpu_per_node = -1};
    setup_place_files(setup, "new");
}

/* ---- which platform ---- */

static int setup_look_kinds(struct platform_setup *setup, struct platform_choices *out, struct act_error *err)
{
    (void)setup;
    (void)err;
    for (const struct platform_row *row = NULL; (row = platform_setup_next(row));)
        platform_offer(out, row->kind->name, NULL, act_strdup(row->setup->text), false);
    return 0;
}

const struct platform_question flow_question_kind = {
    .option = "kind", .text = "Kind of cluster", .look = setup_look_kinds};

/* ---- which name ---- */

/* Returns what a cluster may be called after an answer, a new string: "gpu_a100", "lab" of me@lab.example.org, "gpu1"
 * of me@gpu1,me@gpu2. */
static char *setup_name_of(const char *answer, bool whole)
{
    const char *at = strchr(answer, '@'), *from = at ? at + 1 : answer;
    char *name = act_strndup(from, whole ? strlen(from) : strcspn(from, ".,"));

    for (char *c = name; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *c))
            *c = '-';
    return name;
}

/* Returns a name that follows from the last answer that may give one, else from this machine; a new string. */
static char *setup_usual_name(const struct platform_setup *setup)
{
    char host[256] = "here";
    const char *answer = NULL;
    bool whole = false;

    for (const struct platform_question *q = setup->row->setup->questions; q->option; q++)
        if (q->names && platform_said(setup, q->option)) {
            answer = platform_said(setup, q->option);
            whole = q->names == PLATFORM_NAMES;
        }
    if (!answer)
        (void)!gethostname(host, sizeof(host) - 1);
    return setup_name_of(answer ? answer : host, whole);
}

static int setup_check_free(const struct platform_setup *setup, const char *name, struct act_error *err)
{
    ACT_AUTO(platform_setup) named = {.in_project = setup->in_project};
    int rc = config_check_name(name, err);

    if (rc < 0)
        return rc;
    setup_place_files(&named, name);
    if (access(named.file, F_OK) == 0)
        return act_error_set(
            err, ACT_USAGE,
            "there is a cluster '%s' already: '%s'; 'a cluster edit %s' changes it, 'a cluster remove %s' "
            "removes it",
            name, named.file, name, name);
    if (strcmp(name, CONFIG_BUILT_IN_CLUSTER) == 0 && !setup->in_project)
        return act_error_set(err, ACT_USAGE, "'local' is the built-in cluster of every project: take another name");
    return 0;
}

/* Before the kind is known there is no usual name. */
static int setup_look_names(struct platform_setup *setup, struct platform_choices *out, struct act_error *err)
{
    ACT_AUTOFREE char *name = setup->row ? setup_usual_name(setup) : NULL;
    struct act_error ignored;

    if (name && setup_check_free(setup, name, &ignored) == 0)
        platform_offer(out, name, NULL, NULL, true);
    return platform_look_nowhere(setup, out, err);
}

const struct platform_question flow_question_name = {
    .option = "name", .text = "Name, for 'a -c NAME'", .look = setup_look_names};

/* ---- questions ---- */

const struct platform_question *flow_next_question(const struct platform_setup *setup,
                                                   const struct platform_question *question)
{
    if (!question)
        return &flow_question_kind;
    if (question == &flow_question_name)
        return NULL;
    const struct platform_question *next =
        question == &flow_question_kind ? setup->row->setup->questions : question + 1;
    return next->option ? next : &flow_question_name;
}

bool flow_has_question(const struct platform_setup *setup, const char *option)
{
    const struct platform_question *question = setup->row->setup->questions;

    while (question->option && strcmp(question->option, option) != 0)
        question++;
    return question->option;
}

int flow_question_look(const struct platform_question *question, struct platform_setup *setup,
                       struct platform_choices *out, struct act_error *err)
{
    *out = (struct platform_choices){0};
    return question->look(setup, out, err);
}

static bool is_of_all_kinds(const struct platform_question *question)
{
    return question == &flow_question_kind || question == &flow_question_name;
}

static int refuse_answer(const struct platform_question *question, const struct platform_choices *choices,
                         const char *answer, struct act_error *err)
{
    ACT_AUTO(act_strv) names = {0};
    ACT_AUTO(act_buf) list = {0};

    for (size_t i = 0; i < choices->n; i++) {
        act_strv_push(&names, choices->v[i].value);
        act_buf_addf(&list, "%s%s", i ? ", " : "", choices->v[i].value);
    }
    act_error_set(err, is_of_all_kinds(question) ? ACT_USAGE : ACT_NOT_FOUND, "no %s '%s'", question->option, answer);
    const char *near = names.n ? act_nearest(answer, (const char *const *)names.v) : NULL;
    if (near)
        act_error_hint(err, "did you mean '%s'?", near);
    return act_error_hint(err, "there are: %s", list.len ? list.data : "none");
}

/* Finds a choice by its value, else by the other word for it. *out_n: how many there are of that. */
static const struct platform_choice *find_choice(const struct platform_choices *choices, const char *answer,
                                                 size_t *out_n)
{
    const struct platform_choice *found = NULL;

    *out_n = 0;
    for (size_t i = 0; i < choices->n; i++) {
        if (strcmp(choices->v[i].value, answer) == 0) {
            *out_n = 1;
            return &choices->v[i];
        }
        if (act_streq(choices->v[i].alias, answer) && (*out_n)++ == 0)
            found = &choices->v[i];
    }
    return found;
}

int flow_question_take(const struct platform_question *question, struct platform_setup *setup,
                       const struct platform_choices *choices, const char *answer, struct act_error *err)
{
    size_t n;
    int rc = 0;

    if (question->may_lack && strcmp(answer, "none") == 0)
        answer = "";
    else if (!*answer || act_has_control(answer) || *answer == '-')
        return act_error_set(err, ACT_USAGE, "'%s' is not an answer for --%s", answer, question->option);
    const struct platform_choice *found = find_choice(choices, answer, &n);
    if (n > 1)
        return act_error_set(err, ACT_USAGE, "there are %zu of the name '%s': choose by the id", n, answer);
    if (!found && !choices->open)
        return refuse_answer(question, choices, answer, err);
    if (question == &flow_question_kind)
        platform_setup_choose(setup, platform_find(answer));
    if (question == &flow_question_name)
        rc = setup_check_free(setup, answer, err);
    if (rc < 0)
        return rc;
    if (question == &flow_question_name)
        setup_place_files(setup, answer);
    platform_answer(setup, question->option, found ? found->value : answer);
    return 0;
}

int flow_setup_finish(struct platform_setup *setup, struct act_error *err)
{
    const struct platform_setup_ops *ops = setup->row->setup;

    return ops->finish ? ops->finish(setup, err) : 0;
}

/* ---- saving ---- */

static int setup_check_text(const char *file, const char *text, struct act_error *err)
{
    ACT_AUTO(config_report) report = {0};
    int rc = config_check(&(struct config_request){.file = file, .text = text}, &report, err);

    return rc == 0 && report.problems.n ? act_error_set(err, ACT_CONFIG, "%s", report.problems.v[0]) : rc;
}

static int setup_create(const char *file, const char *text, mode_t mode, mode_t dir_mode, struct act_error *err)
{
    ACT_AUTOFREE char *dir = act_path_dirname(file);
    bool existed = false;
    int rc = act_mkdir_all(dir, dir_mode, err);

    if (rc == 0)
        rc = act_file_create(file, text, strlen(text), mode, &existed, err);
    return rc == 0 && existed ? act_error_set(err, ACT_USAGE, "'%s' is there already: nothing was written", file) : rc;
}

/* Others may read a file of the project, unless -p put a secret into it. */
static mode_t mode_of(const struct platform_setup *setup, const char *text)
{
    struct yaml *tree = NULL;
    bool secret = yaml_parse(text, strlen(text), "", &tree, NULL) < 0 || config_find_secret(tree);

    yaml_tree_free(tree);
    return setup->in_project && !secret ? 0666 & ~act_umask() : 0600;
}

/* Writes the files of the cluster, and makes what it needs only once nothing else can go wrong. */
static int write_files(struct platform_setup *setup, const char *text, struct act_error *err)
{
    const struct platform_setup_ops *ops = setup->row->setup;
    ACT_AUTOFREE char *account = ops->account ? ops->account(setup) : NULL;
    mode_t dir_mode = setup->in_project ? 0777 & ~act_umask() : 0700;
    int rc = account ? setup_create(setup->account_file, account, 0600, dir_mode, err) : 0;
    bool has_account = rc == 0 && account;

    if (rc == 0)
        rc = setup_check_text(setup->file, text, err);
    if (rc == 0 && ops->make)
        rc = ops->make(setup, err);
    if (rc == 0)
        rc = setup_create(setup->file, text, mode_of(setup, text), dir_mode, err);
    if (rc < 0 && has_account)
        (void)!unlink(setup->account_file);
    return rc;
}

/* Tells whether the user has chosen a default, or has another cluster of his own. */
static bool has_others(void)
{
    ACT_AUTO(config_listing) all = {0};
    ACT_AUTO(config_user) user = {0};
    struct act_error ignored;
    bool has = config_user_read(&user, &ignored) < 0 || user.default_cluster;

    config_list(NULL, &all);
    for (size_t i = 0; i < all.n && !has; i++)
        has = all.v[i].is_users;
    return has;
}

int flow_setup_save(struct platform_setup *setup, bool *out_is_first, struct act_error *err)
{
    ACT_AUTOFREE char *text = NULL;
    int rc = platform_setup_text(setup, &text, err);

    *out_is_first = !setup->in_project && !has_others();
    return rc < 0 ? rc : write_files(setup, text, err);
}
