/* setup_text.c - the files of a new cluster. */
#include <string.h>

#include "base/dirs.h"
#include "base/path.h"
#include "codec/yaml_edit.h"
#include "config/config.h"
#include "flow/cluster/setup_internal.h"

/* "key: value" and, behind it, what it is for. */
static void put(struct act_buf *out, const char *key, const char *value, const char *comment)
{
    struct yaml *text = yaml_new_text("", value);
    ACT_AUTOFREE char *quoted = yaml_flow_text(text);

    yaml_tree_free(text);
    act_buf_addf(out, "%s: %s%s%s\n", key, quoted ? quoted : "", comment ? "  # " : "", comment ? comment : "");
}

static void put_if(struct act_buf *out, const char *key, const char *value, const char *comment)
{
    if (setup_answer(value))
        put(out, key, value, comment);
}

static void put_gpus(struct act_buf *out, const struct flow_setup *setup)
{
    if (setup->gpu_per_node >= 0)
        act_buf_addf(out, "\ngpu_per_node: %lld  # %s\n", (long long)setup->gpu_per_node,
                     setup->no_gpus ? "processes on a node, which has no GPUs" : "'-n 16' is so many of them");
}

static void put_slurm(struct act_buf *out, const struct flow_setup *setup)
{
    act_buf_adds(out, "\nslurm:\n");
    put_if(out, "  login", setup->login, "reached with ssh, as your ~/.ssh/config says");
    put_if(out, "  partition", setup->partition, NULL);
    if (setup->no_gpus)
        put(out, "  gres", "none", "no GPUs are asked for");
    act_buf_adds(out, "  # root: ~/.act           a folder that the login node and all nodes share\n"
                      "  # account: myproject     who is charged\n"
                      "  # time: 1-00:00:00       the time limit of a run\n");
    put_gpus(out, setup);
}

static void put_kubernetes(struct act_buf *out, const struct flow_setup *setup)
{
    act_buf_adds(out, "\nk8s:\n");
    put_if(out, "  kubeconfig", setup->kubeconfig, NULL);
    put_if(out, "  context", setup->context, NULL);
    put_if(out, "  namespace", setup->namespace_, NULL);
    put_if(out, "  image", setup->image, "has Open MPI and what your code needs");
    if (setup->no_gpus)
        put(out, "  gpu_resource", "none", "no GPUs are asked for");
    act_buf_adds(out, "  # queue: myqueue         the local queue of Kueue\n"
                      "  # shm_size: 16Gi         of /dev/shm\n");
    put_gpus(out, setup);
}

/* "~/.config/act/accounts/x.yaml", or from the root of the project. New string. */
static char *shown_account_file(const struct flow_setup *setup)
{
    ACT_AUTOFREE char *file = flow_setup_account_file(setup), *home = act_home_dir();

    if (setup->in_project)
        return act_sprintf("aux_data/configs/%s", act_path_basename(file));
    if (act_path_is_within(file, home) && strcmp(home, "/") != 0)
        return act_sprintf("~%s", file + strlen(home));
    return act_strdup(file);
}

/* In a project it is for whoever has a copy of it, wherever that is. */
static void put_rows(struct act_buf *out, const struct flow_setup *setup)
{
    ACT_AUTOFREE char *file = flow_setup_file(setup);
    ACT_AUTOFREE char *aml = act_path_dirname(file);
    ACT_AUTOFREE char *aux_data = act_path_dirname(aml);
    ACT_AUTOFREE char *root = act_path_dirname(aux_data);
    ACT_AUTOFREE char *prefix = config_built_in_prefix(root);
    static const char *const rows[][2] = {
        {"code_path", "code.zip"}, {"data_folder", "data"}, {"output_folder", "output"}};

    *strrchr(prefix, '-') = '\0';
    act_buf_adds(out, "config_param:\n");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ACT_AUTOFREE char *path = act_path_join(prefix, rows[i][1]);
        act_buf_addf(out, "  %s:\n", rows[i][0]);
        put(out, "    path", path, NULL);
    }
}

static void put_azureml(struct act_buf *out, const struct flow_setup *setup)
{
    ACT_AUTOFREE char *account = shown_account_file(setup);

    act_buf_adds(out, "\naml_config:\n");
    put_if(out, "  subscription_id", setup->subscription, NULL);
    put_if(out, "  resource_group", setup->resource_group, NULL);
    put_if(out, "  workspace_name", setup->workspace, NULL);
    put_if(out, "compute_target", setup->compute, NULL);
    if (setup_answer(setup->image)) {
        act_buf_adds(out, "docker:\n");
        put(out, "  image", setup->image, "or an environment: azureml:NAME:VERSION");
    }
    put_gpus(out, setup);
    if (!setup_answer(setup->container))
        return;
    act_buf_adds(out, setup->in_project ? "\n# Where code and data are.\n"
                                        : "\n# Each project has a folder of its own in it.\n");
    put(out, "azure_blob_config_file", account, NULL);
    if (setup->in_project)
        put_rows(out, setup);
}

static void put_local(struct act_buf *out, const struct flow_setup *setup)
{
    (void)setup;
    act_buf_adds(out, "\n# Without config_param code and data are in a folder of yours.\n"
                      "# env: {NCCL_DEBUG: WARN}\n");
}

static const struct kind {
    const char *name, *what;
    void (*put)(struct act_buf *out, const struct flow_setup *setup);
} kinds[] = {
    {"local", "this machine", put_local},
    {"slurm", "a Slurm cluster", put_slurm},
    {"k8s", "a Kubernetes cluster", put_kubernetes},
    {"aml", "a workspace of Azure Machine Learning", put_azureml},
};

/* ---- what -p adds ---- */

static int set(char **text, const char *path, const struct yaml *value, struct act_error *err)
{
    char *out = NULL;
    int rc = yaml_edit_set(*text, "-p", path, value, &out, err);

    if (rc < 0)
        return rc;
    free(*text);
    *text = out;
    return 0;
}

/* Maps are merged, as those of -p are. */
// NOLINTNEXTLINE(misc-no-recursion): as deep as a YAML text may be
static int set_all(char **text, const char *above, const struct yaml *map, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < map->n && rc == 0; i++) {
        const struct yaml *item = map->items[i];
        ACT_AUTOFREE char *path = act_sprintf("%s%s%s", above, *above ? "." : "", item->key);
        rc = item->kind == YAML_MAP && item->n ? set_all(text, path, item, err) : set(text, path, item, err);
    }
    return rc;
}

static int add_params(const struct flow_setup *setup, char **text, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < setup->params.n && rc == 0; i++) {
        const char *param = setup->params.v[i];
        struct yaml *tree = NULL;
        rc = yaml_parse(param, strlen(param), "-p", &tree, err);
        if (rc == 0 && tree->kind != YAML_MAP)
            rc = act_error_set(err, ACT_USAGE, "-p takes keys and values, as in -p 'num_gpu: 8'");
        if (rc == 0)
            rc = set_all(text, "", tree, err);
        yaml_tree_free(tree);
    }
    return rc;
}

/* ---- all of it ---- */

int flow_setup_text(const struct flow_setup *setup, char **out, struct act_error *err)
{
    ACT_AUTO(act_buf) text = {0};

    *out = NULL;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (!act_streq(kinds[i].name, setup->kind))
            continue;
        act_buf_addf(&text, "# A cluster: %s. 'a config set KEY VALUE' changes it, 'man act.yaml' lists all keys.\n",
                     kinds[i].what);
        put(&text, "platform", kinds[i].name, NULL);
        kinds[i].put(&text, setup);
    }
    char *whole = act_buf_steal(&text);
    int rc = add_params(setup, &whole, err);
    if (rc == 0)
        *out = whole;
    else
        free(whole);
    return rc;
}

char *flow_setup_account(const struct flow_setup *setup)
{
    ACT_AUTO(act_buf) text = {0};

    if (!setup_answer(setup->container))
        return NULL;
    act_buf_adds(&text, "# A container in Azure Blob Storage. Your own login is used: 'a login' tells whose.\n");
    put(&text, "account_name", setup->storage, NULL);
    put(&text, "container_name", setup->container, NULL);
    put_if(&text, "endpoint", setup->blob_endpoint, NULL);
    put(&text, "auth", "login", "account_key or sas_token instead: chmod 600 this file");
    return act_buf_steal(&text);
}
