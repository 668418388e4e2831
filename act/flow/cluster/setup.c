/* setup.c - the questions about a new cluster, and writing its files. */
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/yaml.h"
#include "config/config.h"
#include "flow/cluster/own.h"
#include "flow/cluster/setup_internal.h"

#define ANSWER(member) offsetof(struct flow_setup, member)

void flow_setup_init(struct flow_setup *setup)
{
    *setup = (struct flow_setup){.gpu_per_node = -1};
}

void flow_choices_release(struct flow_choices *choices)
{
    for (size_t i = 0; i < choices->n; i++) {
        free(choices->v[i].value);
        free(choices->v[i].alias);
        free(choices->v[i].shown);
    }
    free(choices->v);
    *choices = (struct flow_choices){0};
}

void setup_offer(struct flow_choices *choices, const char *value, const char *alias, char *shown, bool usual)
{
    struct flow_choice choice = {
        .value = act_strdup(value), .alias = act_strdup(alias), .shown = shown, .usual = usual};

    ACT_PUSH(choices->v, choices->n, choice);
}

bool setup_has(const struct flow_choices *choices, const char *value)
{
    for (size_t i = 0; i < choices->n; i++)
        if (strcmp(choices->v[i].value, value) == 0)
            return true;
    return false;
}

const char *setup_answer(const char *answer)
{
    return answer && *answer ? answer : NULL;
}

/* ---- the kinds ---- */

static void put_local(struct act_buf *out, const struct flow_setup *setup)
{
    (void)setup;
    act_buf_adds(out, "\n# Without config_param code and data are in a folder of yours.\n"
                      "# env: {NCCL_DEBUG: WARN}\n");
}

/* In the order in which they are offered. */
static const struct setup_kind kinds[] = {
    {"local", "this machine", put_local, NULL},
    {"slurm", "a Slurm cluster, here or behind ssh", setup_put_slurm, setup_finish_slurm},
    {"ssh", "machines without a scheduler, behind ssh", setup_put_ssh, NULL},
    {"k8s", "a Kubernetes cluster of your kubeconfig", setup_put_kubernetes, setup_finish_kubernetes},
    {"aml", "a workspace of Azure Machine Learning", setup_put_azureml, setup_finish_azureml},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

const struct setup_kind *setup_find_kind(const char *name)
{
    for (size_t i = 0; i < KINDS; i++)
        if (act_streq(kinds[i].name, name))
            return &kinds[i];
    return NULL;
}

static int look_kinds(struct flow_setup *setup, struct flow_choices *out, struct act_error *err)
{
    (void)setup;
    (void)err;
    for (size_t i = 0; i < KINDS; i++)
        setup_offer(out, kinds[i].name, NULL, act_strdup(kinds[i].text), false);
    return 0;
}

/* What a name may be made of: "gpu_a100" of a partition, "lab" of me@lab.example.org. New string. */
static char *usual_name(const struct flow_setup *setup)
{
    const char *const from[] = {setup->compute, setup->context, setup->partition, setup->login, setup->hosts};
    char host[256] = "here";
    const char *name = NULL;

    for (size_t i = 0; i < sizeof(from) / sizeof(from[0]) && !name; i++)
        name = setup_answer(from[i]);
    if (!name && gethostname(host, sizeof(host) - 1) == 0)
        name = host;
    const char *at = name ? strchr(name, '@') : NULL;
    name = at ? at + 1 : name ? name : host;
    char *out = act_strndup(name, setup->context ? strlen(name) : strcspn(name, ".,"));
    for (char *c = out; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *c))
            *c = '-';
    return out;
}

static int setup_check_free(const struct flow_setup *setup, const char *name, struct act_error *err)
{
    ACT_AUTO(flow_setup) named = {.in_project = setup->in_project, .name = act_strdup(name)};
    ACT_AUTOFREE char *file = flow_setup_file(&named);
    int rc = config_check_name(name, err);

    if (rc < 0)
        return rc;
    if (access(file, F_OK) == 0)
        return act_error_set(err, ACT_USAGE, "there is a cluster '%s' already: '%s'; 'a cluster edit %s' changes it",
                             name, file, name);
    if (strcmp(name, CONFIG_BUILT_IN_CLUSTER) == 0 && !setup->in_project)
        return act_error_set(err, ACT_USAGE, "'local' is the built-in cluster of every project: take another name");
    return 0;
}

static int look_names(struct flow_setup *setup, struct flow_choices *out, struct act_error *err)
{
    ACT_AUTOFREE char *name = usual_name(setup);
    struct act_error ignored;

    (void)err;
    out->open = true;
    if (setup_check_free(setup, name, &ignored) == 0)
        setup_offer(out, name, NULL, NULL, true);
    return 0;
}

// clang-format off
const struct flow_question flow_questions[] = {
    {.option = "kind", .text = "Kind of cluster", .answer = ANSWER(kind), .look = look_kinds},

    {.kind = "slurm", .option = "login", .text = "Login node, as user@host", .answer = ANSWER(login), .may_lack = true,
     .look = setup_look_login},
    {.kind = "slurm", .option = "partition", .text = "Partition", .answer = ANSWER(partition), .is_quiet = true,
     .look = setup_look_partitions},

    {.kind = "ssh", .option = "hosts", .text = "Machines, as user@host, with commas between them", .answer = ANSWER(hosts),
     .look = setup_look_hosts},

    {.kind = "k8s", .option = "context", .text = "Context of the kubeconfig", .answer = ANSWER(context),
     .is_quiet = true, .look = setup_look_contexts},
    {.kind = "k8s", .option = "namespace", .text = "Namespace", .answer = ANSWER(namespace_), .is_quiet = true,
     .look = setup_look_namespaces},
    {.kind = "k8s", .option = "image", .text = "Image that runs execute in", .answer = ANSWER(image),
     .look = setup_look_images},

    {.kind = "aml", .option = "subscription", .text = "Subscription", .answer = ANSWER(subscription), .is_quiet = true,
     .look = setup_look_subscriptions},
    {.kind = "aml", .option = "resource-group", .text = "Resource group of the workspace",
     .answer = ANSWER(resource_group), .is_quiet = true, .look = setup_look_groups},
    {.kind = "aml", .option = "workspace", .text = "Workspace", .answer = ANSWER(workspace), .is_quiet = true,
     .look = setup_look_workspaces},
    {.kind = "aml", .option = "compute", .text = "Compute", .answer = ANSWER(compute), .is_quiet = true,
     .look = setup_look_computes},
    {.kind = "aml", .option = "storage", .text = "Storage account for code and data", .answer = ANSWER(storage),
     .is_quiet = true, .look = setup_look_storage},
    {.kind = "aml", .option = "container", .text = "Container in it", .answer = ANSWER(container),
     .look = setup_look_containers},
    {.kind = "aml", .option = "image", .text = "Image that runs execute in", .answer = ANSWER(image),
     .look = setup_look_images},

    {.option = "name", .text = "Name, for 'a -c NAME'", .answer = ANSWER(name), .look = look_names},
    {0},
};
// clang-format on

void flow_setup_release(struct flow_setup *setup)
{
    act_strv_release(&setup->params);
    for (const struct flow_question *q = flow_questions; q->option; q++) {
        char **answer = flow_question_answer(q, setup);
        free(*answer);
        *answer = NULL;
    }
    free(setup->kubeconfig);
    json_decref(setup->workspaces);
    free(setup->storage_id);
    free(setup->blob_endpoint);
    *setup = (struct flow_setup){0};
}

/* ---- questions ---- */

bool flow_question_is_for(const struct flow_question *question, const struct flow_setup *setup)
{
    return !question->kind || act_streq(question->kind, setup->kind);
}

char **flow_question_answer(const struct flow_question *question, struct flow_setup *setup)
{
    return (char **)(void *)((char *)setup + question->answer);
}

int flow_question_look(const struct flow_question *question, struct flow_setup *setup, struct flow_choices *out,
                       struct act_error *err)
{
    *out = (struct flow_choices){0};
    return question->look(setup, out, err);
}

static int refuse_answer(const struct flow_question *question, const struct flow_choices *choices, const char *answer,
                         struct act_error *err)
{
    ACT_AUTO(act_strv) names = {0};
    ACT_AUTO(act_buf) list = {0};

    for (size_t i = 0; i < choices->n; i++) {
        act_strv_push(&names, choices->v[i].value);
        act_buf_addf(&list, "%s%s", i ? ", " : "", choices->v[i].value);
    }
    act_error_set(err, question->kind ? ACT_NOT_FOUND : ACT_USAGE, "no %s '%s'", question->option, answer);
    const char *near = names.n ? act_nearest(answer, (const char *const *)names.v) : NULL;
    if (near)
        act_error_hint(err, "did you mean '%s'?", near);
    return act_error_hint(err, "there are: %s", list.len ? list.data : "none");
}

/* By its value, else by the other word for it. *out_n: how many there are of that. */
static const struct flow_choice *find_choice(const struct flow_choices *choices, const char *answer, size_t *out_n)
{
    const struct flow_choice *found = NULL;

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

int flow_question_take(const struct flow_question *question, struct flow_setup *setup,
                       const struct flow_choices *choices, const char *answer, struct act_error *err)
{
    size_t n;
    char **into = flow_question_answer(question, setup);

    if (question->may_lack && strcmp(answer, "none") == 0)
        answer = "";
    else if (!*answer || act_has_control(answer) || *answer == '-')
        return act_error_set(err, ACT_USAGE, "'%s' is no answer for --%s", answer, question->option);
    const struct flow_choice *found = find_choice(choices, answer, &n);
    if (n > 1)
        return act_error_set(err, ACT_USAGE, "there are %zu of the name '%s': choose by the id", n, answer);
    if (!found && !choices->open)
        return refuse_answer(question, choices, answer, err);
    if (question->answer == ANSWER(name)) {
        int rc = setup_check_free(setup, answer, err);
        if (rc < 0)
            return rc;
    }
    char *taken = act_strdup(found ? found->value : answer);
    free(*into);
    *into = taken;
    return 0;
}

int flow_setup_finish(struct flow_setup *setup, struct act_error *err)
{
    const struct setup_kind *kind = setup_find_kind(setup->kind);

    return kind->finish ? kind->finish(setup, err) : 0;
}

/* ---- the cluster as far as it is known ---- */

int setup_open(const struct flow_setup *setup, struct flow *out, struct act_error *err)
{
    ACT_AUTOFREE char *text = NULL, *file = flow_setup_file(setup);
    int rc = flow_setup_text(setup, &text, err);
    const struct config_request request = {.file = file, .text = text, .cluster = setup->name};

    *out = (struct flow){0};
    if (rc == 0)
        rc = flow_open_to_look(&request, out, err);
    out->services = setup->services;
    return rc;
}

/* ---- saving ---- */

char *flow_setup_file(const struct flow_setup *setup)
{
    const char *name = setup->name ? setup->name : "new";

    return setup->in_project ? config_project_cluster_file(NULL, name) : config_users_cluster_file(name);
}

char *flow_setup_account_file(const struct flow_setup *setup)
{
    ACT_AUTOFREE char *file = flow_setup_file(setup);
    ACT_AUTOFREE char *clusters = act_path_dirname(file);
    ACT_AUTOFREE char *above = act_path_dirname(clusters);

    return act_sprintf("%s/%s/%s", above, setup->in_project ? "configs" : "accounts", act_path_basename(file));
}

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

/* One of the project is for others to read, unless -p put a secret into it. */
static mode_t setup_mode_of(const struct flow_setup *setup, const char *text)
{
    struct yaml *tree = NULL;
    bool secret = yaml_parse(text, strlen(text), "", &tree, NULL) < 0 || config_find_secret(tree);

    yaml_tree_free(tree);
    return setup->in_project && !secret ? 0666 & ~act_umask() : 0600;
}

/* The container is made when nothing else can be wrong any more. */
static int write_files(struct flow_setup *setup, const char *text, struct act_error *err)
{
    ACT_AUTOFREE char *file = flow_setup_file(setup), *account = flow_setup_account(setup);
    ACT_AUTOFREE char *account_file = flow_setup_account_file(setup);
    mode_t dir_mode = setup->in_project ? 0777 & ~act_umask() : 0700;
    int rc = account ? setup_create(account_file, account, 0600, dir_mode, err) : 0;
    bool has_account = rc == 0 && account;

    if (rc == 0)
        rc = setup_check_text(file, text, err);
    if (rc == 0)
        rc = setup_make_container(setup, err);
    if (rc == 0)
        rc = setup_create(file, text, setup_mode_of(setup, text), dir_mode, err);
    if (rc < 0 && has_account)
        (void)!unlink(account_file);
    return rc;
}

/* Whether the user has chosen a default, or has another cluster of his own. */
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

int flow_setup_save(struct flow_setup *setup, bool *out_is_default, struct act_error *err)
{
    ACT_AUTOFREE char *text = NULL, *file = flow_setup_file(setup);
    int rc = flow_setup_text(setup, &text, err);
    bool first = !setup->in_project && !has_others();

    *out_is_default = false;
    if (rc == 0)
        rc = write_files(setup, text, err);
    if (rc < 0 || !first)
        return rc;
    rc = flow_use_first_cluster(setup->name, out_is_default, err);
    return rc < 0 ? act_error_prefix(err, "'%s' is written, but cannot be made the default", file) : 0;
}
