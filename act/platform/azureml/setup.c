/* setup.c - a new cluster of Azure Machine Learning: what the user has in Azure (subscriptions, workspaces, their
 * computes, containers), and what the cluster file and the account file say of it.
 *
 * Source: learn.microsoft.com/rest/api/resources/subscriptions/list, azureml/workspaces/list-by-subscription,
 * azureml/compute/list, azureml/virtual-machine-sizes/list, storagerp/storage-accounts/list and blob-containers.
 */
#include "platform/setup.h"

#include <string.h>

#include "arm/arm.h"
#include "auth/cloud.h"
#include "auth/services.h"
#include "base/dirs.h"
#include "base/path.h"
#include "codec/json.h"
#include "config/config.h"
#include "platform/azureml/azureml_internal.h"

#define RESOURCES "2022-12-01"
#define AZUREML   "2024-10-01"
#define STORAGE   "2024-01-01"
#define IMAGE     "mcr.microsoft.com/azureml/openmpi4.1.0-cuda11.8-cudnn8-ubuntu22.04"

struct azureml_own {
    json_t *workspaces;  /* of the subscription; NULL: not asked yet */
    char *storage_id;    /* of the account, in Azure Resource Manager; NULL: it is not known */
    char *blob_endpoint; /* NULL: the usual one */
};

static struct azureml_own *own_of(const struct platform_setup *setup)
{
    return setup->own;
}

static void release_own(void *own)
{
    struct azureml_own *o = own;

    json_decref(o->workspaces);
    free(o->storage_id);
    free(o->blob_endpoint);
}

/* ---- reaching it ---- */

static int setup_open_arm(const struct platform_setup *setup, struct arm **out, struct act_error *err)
{
    const struct auth_cloud *cloud = NULL;
    ACT_AUTO(config) config = {0};
    int rc = platform_setup_load(setup, &config, err);
    const char *endpoint = rc == 0 ? azureml_keys(&config)->endpoint : NULL;

    *out = NULL;
    if (rc == 0)
        rc = auth_cloud_find(endpoint, &cloud, err);
    if (rc == 0)
        rc = arm_new(&(struct arm_options){.http = services_http(setup->services),
                                           .tokens = services_tokens(setup->services),
                                           .endpoint = endpoint,
                                           .cloud = cloud,
                                           .use_cli = config.use_cli_auth,
                                           .said_by = "'azureml.endpoint' of -p",
                                           .is_own = true},
                     out, err);
    return rc;
}

static int take_item(void *arg, const json_t *item, struct act_error *err)
{
    (void)err;
    json_array_append_new(arg, json_deep_copy(item));
    return 0;
}

/* All of a list, as an array: a new reference. */
static int get_list(const struct platform_setup *setup, const char *url, const char *version, const char *what,
                    json_t **out, struct act_error *err)
{
    json_t *items = json_array();
    struct arm *arm = NULL;
    int rc = setup_open_arm(setup, &arm, err);

    if (rc == 0)
        rc = arm_each(arm, url, version, false, "value", what, take_item, items, err);
    arm_free(arm);
    if (rc < 0) {
        json_decref(items);
        items = NULL;
    }
    *out = items;
    return rc;
}

static char *subscription_url(const struct platform_setup *setup, const char *below)
{
    ACT_AUTOFREE char *id = arm_segment(platform_said(setup, "subscription"));

    return act_sprintf("/subscriptions/%s/%s", id, below);
}

/* Returns "mygroup" of ".../resourceGroups/mygroup/...". New string, or NULL. */
static char *setup_azureml_group_of(const char *id)
{
    const char *at = id ? strcasestr(id, "/resourcegroups/") : NULL;

    at = at ? at + strlen("/resourcegroups/") : NULL;
    return at ? act_strndup(at, strcspn(at, "/")) : NULL;
}

/* ---- workspaces ---- */

static int look_subscriptions(struct platform_setup *setup, struct platform_choices *out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *items = NULL;
    const json_t *item;
    size_t i;
    int rc = get_list(setup, "/subscriptions", RESOURCES, "list your subscriptions", &items, err);

    json_array_foreach(items, i, item)
    {
        const char *id = codec_json_str(item, "subscriptionId", NULL), *name = codec_json_str(item, "displayName", "");
        if (id && strcmp(codec_json_str(item, "state", "Enabled"), "Enabled") == 0)
            platform_offer(out, id, name, act_one_line(name, strlen(name)), false);
    }
    return rc;
}

static int read_workspaces(struct platform_setup *setup, struct act_error *err)
{
    ACT_AUTOFREE char *url = subscription_url(setup, "providers/Microsoft.MachineLearningServices/workspaces");

    if (own_of(setup)->workspaces)
        return 0;
    return get_list(setup, url, AZUREML, "list the workspaces of the subscription", &own_of(setup)->workspaces, err);
}

static int look_groups(struct platform_setup *setup, struct platform_choices *out, struct act_error *err)
{
    const json_t *item;
    size_t i;
    int rc = read_workspaces(setup, err);

    json_array_foreach(own_of(setup)->workspaces, i, item)
    {
        ACT_AUTOFREE char *group = setup_azureml_group_of(codec_json_str(item, "id", NULL));
        if (group && !platform_offers(out, group))
            platform_offer(out, group, NULL, NULL, false);
    }
    return rc;
}

/* Tells whether a workspace is in the group that was chosen. */
static bool is_in_group(const struct platform_setup *setup, const json_t *item)
{
    ACT_AUTOFREE char *group = setup_azureml_group_of(codec_json_str(item, "id", NULL));

    return group && strcasecmp(group, platform_said(setup, "resource-group")) == 0;
}

static int look_workspaces(struct platform_setup *setup, struct platform_choices *out, struct act_error *err)
{
    const json_t *item;
    size_t i;
    int rc = read_workspaces(setup, err);

    json_array_foreach(own_of(setup)->workspaces, i, item)
    {
        const char *where = codec_json_str(item, "location", ""), *name = codec_json_str(item, "name", NULL);
        if (name && is_in_group(setup, item))
            platform_offer(out, name, NULL, act_one_line(where, strlen(where)), false);
    }
    return rc;
}

static const json_t *workspace_of(const struct platform_setup *setup)
{
    const json_t *item;
    size_t i;

    json_array_foreach(own_of(setup)->workspaces, i, item)
    {
        if (is_in_group(setup, item) &&
            act_streq(codec_json_str(item, "name", NULL), platform_said(setup, "workspace")))
            return item;
    }
    return NULL;
}

/* ---- computes ---- */

static char *compute_text(const json_t *item)
{
    const json_t *resource = json_object_get(item, "properties"), *own = json_object_get(resource, "properties");
    const char *type = codec_json_str(resource, "computeType", "?"), *size = codec_json_str(own, "vmSize", NULL);
    int64_t most = codec_json_int(json_object_get(own, "scaleSettings"), "maxNodeCount", -1);
    ACT_AUTO(act_buf) out = {0};

    act_buf_adds(&out, type);
    if (most >= 0)
        act_buf_addf(&out, ", up to %lld nodes", (long long)most);
    if (size)
        act_buf_addf(&out, ", %s", size);
    return act_one_line(out.data, out.len);
}

static int get_computes(const struct platform_setup *setup, json_t **out, struct act_error *err)
{
    ACT_AUTOFREE char *group = arm_segment(platform_said(setup, "resource-group")),
                      *workspace = arm_segment(platform_said(setup, "workspace"));
    ACT_AUTOFREE char *below = act_sprintf(
        "resourceGroups/%s/providers/Microsoft.MachineLearningServices/workspaces/%s/computes", group, workspace);
    ACT_AUTOFREE char *url = subscription_url(setup, below);

    return get_list(setup, url, AZUREML, "list the computes of the workspace", out, err);
}

static int look_computes(struct platform_setup *setup, struct platform_choices *out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *items = NULL;
    const json_t *item;
    size_t i;
    int rc = get_computes(setup, &items, err);

    json_array_foreach(items, i, item)
    {
        const char *name = codec_json_str(item, "name", NULL);
        if (name)
            platform_offer(out, name, NULL, compute_text(item), false);
    }
    return rc < 0 || out->n ? rc
                            : act_error_set(err, ACT_NOT_FOUND,
                                            "the workspace '%s' has no compute; make one, as by 'az ml compute create'",
                                            platform_said(setup, "workspace"));
}

/* The VM size of the compute that was chosen, and its region; false: it has none. */
static bool find_size(const json_t *computes, const char *name, const char **size, const char **location)
{
    const json_t *item;
    size_t i;

    json_array_foreach(computes, i, item)
    {
        const json_t *resource = json_object_get(item, "properties");
        if (!act_streq(codec_json_str(item, "name", NULL), name))
            continue;
        *size = codec_json_str(json_object_get(resource, "properties"), "vmSize", NULL);
        *location = codec_json_str(resource, "computeLocation", codec_json_str(item, "location", NULL));
    }
    return *size && *location;
}

static int azureml_finish_setup(struct platform_setup *setup, struct act_error *err)
{
    CODEC_AUTOJSON json_t *computes = NULL, *sizes = NULL;
    const char *size = NULL, *location = NULL;
    const json_t *item;
    size_t i;
    int rc = get_computes(setup, &computes, err);

    if (rc < 0 || !find_size(computes, platform_said(setup, "compute"), &size, &location))
        return rc;
    ACT_AUTOFREE char *region = arm_segment(location);
    ACT_AUTOFREE char *below = act_sprintf("providers/Microsoft.MachineLearningServices/locations/%s/vmSizes", region);
    ACT_AUTOFREE char *url = subscription_url(setup, below);
    rc = get_list(setup, url, AZUREML, "list the sizes of nodes", &sizes, err);
    json_array_foreach(sizes, i, item)
    {
        if (strcasecmp(codec_json_str(item, "name", ""), size) != 0)
            continue;
        setup->gpu_per_node = codec_json_int(item, "gpus", -1);
        setup->no_gpus = setup->gpu_per_node == 0;
        if (setup->no_gpus)
            setup->gpu_per_node = 1;
    }
    return rc;
}

/* ---- storage ---- */

static int look_storage(struct platform_setup *setup, struct platform_choices *out, struct act_error *err)
{
    ACT_AUTOFREE char *url = subscription_url(setup, "providers/Microsoft.Storage/storageAccounts");
    const char *own = codec_json_str(json_object_get(workspace_of(setup), "properties"), "storageAccount", "");
    CODEC_AUTOJSON json_t *items = NULL;
    const json_t *item;
    size_t i;
    int rc = get_list(setup, url, STORAGE, "list the storage accounts of the subscription", &items, err);

    json_array_foreach(items, i, item)
    {
        const char *id = codec_json_str(item, "id", ""), *name = codec_json_str(item, "name", NULL);
        bool is_own = strcasecmp(id, own) == 0;
        if (name && strcmp(codec_json_str(item, "kind", ""), "FileStorage") != 0) /* which has no blobs */
            platform_offer(out, name, NULL, act_strdup(is_own ? "of the workspace" : NULL), is_own);
    }
    return rc;
}

/* Returns the URL of an account's blobs, where it is not the usual one. New string, or NULL. */
static char *unusual_endpoint(const char *name, const char *url)
{
    ACT_AUTOFREE char *usual = act_sprintf("https://%s.blob.core.windows.net/", name);

    return act_streq(url, usual) ? NULL : act_strdup(url);
}

/* Remembers where the account that was chosen is. */
static int find_storage(struct platform_setup *setup, struct act_error *err)
{
    ACT_AUTOFREE char *url = subscription_url(setup, "providers/Microsoft.Storage/storageAccounts");
    CODEC_AUTOJSON json_t *items = NULL;
    const json_t *item;
    size_t i;
    int rc = own_of(setup)->storage_id ? 0 : get_list(setup, url, STORAGE, "find the storage account", &items, err);

    json_array_foreach(items, i, item)
    {
        const json_t *places = json_object_get(json_object_get(item, "properties"), "primaryEndpoints");
        if (!act_streq(codec_json_str(item, "name", NULL), platform_said(setup, "storage")))
            continue;
        own_of(setup)->storage_id = act_strdup(codec_json_str(item, "id", NULL));
        own_of(setup)->blob_endpoint =
            unusual_endpoint(platform_said(setup, "storage"), codec_json_str(places, "blob", NULL));
    }
    if (rc == 0 && !own_of(setup)->storage_id)
        rc = act_error_set(err, ACT_NOT_FOUND, "no storage account '%s' in the subscription",
                           platform_said(setup, "storage"));
    return rc;
}

/* *out is NULL, too, where the user may not list them, but perhaps write into one. */
static int get_containers(struct platform_setup *setup, json_t **out, struct act_error *err)
{
    int rc = find_storage(setup, err);

    *out = NULL;
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *url = act_sprintf("%s/blobServices/default/containers", own_of(setup)->storage_id);
    rc = get_list(setup, url, STORAGE, "list the containers of the storage account", out, err);
    return rc == -ACT_DENIED && err->http_status == 403 ? 0 : rc;
}

static int look_containers(struct platform_setup *setup, struct platform_choices *out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *items = NULL;
    const json_t *item;
    size_t i;
    int rc = get_containers(setup, &items, err);

    out->open = true;
    json_array_foreach(items, i, item)
    {
        const char *name = codec_json_str(item, "name", NULL);
        if (name && !act_starts_with(name, "azureml") && !act_starts_with(name, "insights-"))
            platform_offer(out, name, NULL, NULL, strcmp(name, "act") == 0);
    }
    if (rc == 0 && items && !platform_offers(out, "act"))
        platform_offer(out, "act", NULL, act_strdup("new"), true);
    return rc;
}

static bool has_container(const json_t *items, const char *name)
{
    const json_t *item;
    size_t i;

    json_array_foreach(items, i, item)
    {
        if (act_streq(codec_json_str(item, "name", NULL), name))
            return true;
    }
    return false;
}

static int azureml_make_container(struct platform_setup *setup, struct act_error *err)
{
    CODEC_AUTOJSON json_t *items = NULL;
    struct arm *arm = NULL;
    const char *container = platform_said(setup, "container");
    int rc = container ? get_containers(setup, &items, err) : 0;

    if (rc < 0 || !items || has_container(items, container))
        return rc;
    ACT_AUTOFREE char *name = arm_segment(container);
    ACT_AUTOFREE char *what = act_sprintf("make the container '%s'", container);
    struct arm_call call = {.method = "PUT",
                            .what = what,
                            .url =
                                act_sprintf("%s/blobServices/default/containers/%s", own_of(setup)->storage_id, name),
                            .api_version = STORAGE,
                            .body = json_pack("{s:{}}", "properties")};
    rc = setup_open_arm(setup, &arm, err);
    if (rc == 0)
        rc = arm_do(arm, &call, err);
    arm_call_release(&call);
    arm_free(arm);
    if (rc == 0)
        setup->made = act_sprintf("the container '%s'", container);
    return rc;
}

static int look_images(struct platform_setup *setup, struct platform_choices *out, struct act_error *err)
{
    platform_offer(out, IMAGE, NULL, act_strdup("Open MPI and CUDA"), true);
    return platform_look_nowhere(setup, out, err);
}

/* ---- its file ---- */

/* Returns the account file as the cluster file names it, a new string: "~/.config/act/accounts/x.yaml", or from the
 * root of the project. */
static char *shown_account_file(const struct platform_setup *setup)
{
    ACT_AUTOFREE char *home = act_home_dir();
    const char *file = setup->account_file;

    if (setup->in_project)
        return act_sprintf("aux_data/configs/%s", act_path_basename(file));
    if (act_path_is_within(file, home) && strcmp(home, "/") != 0)
        return act_sprintf("~%s", file + strlen(home));
    return act_strdup(file);
}

/* The paths in the container. The file of a project is for whoever has a copy of it, wherever that is. */
static void put_rows(struct act_buf *out, const struct platform_setup *setup)
{
    ACT_AUTOFREE char *aml = act_path_dirname(setup->file);
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
        platform_put(out, "    path", path, NULL);
    }
}

static void azureml_put_setup(struct act_buf *out, const struct platform_setup *setup)
{
    ACT_AUTOFREE char *account = shown_account_file(setup);

    act_buf_adds(out, "\naml_config:\n");
    platform_put_if(out, "  subscription_id", platform_said(setup, "subscription"), NULL);
    platform_put_if(out, "  resource_group", platform_said(setup, "resource-group"), NULL);
    platform_put_if(out, "  workspace_name", platform_said(setup, "workspace"), NULL);
    platform_put_if(out, "compute_target", platform_said(setup, "compute"), NULL);
    if (platform_said(setup, "image")) {
        act_buf_adds(out, "docker:\n");
        platform_put(out, "  image", platform_said(setup, "image"), "or an environment: azureml:NAME:VERSION");
    }
    platform_put_gpus(out, setup);
    if (!platform_said(setup, "container"))
        return;
    act_buf_adds(out, setup->in_project ? "\n# Where code and data are.\n"
                                        : "\n# Each project has a folder of its own in it.\n");
    platform_put(out, "azure_blob_config_file", account, NULL);
    if (setup->in_project)
        put_rows(out, setup);
}

static char *azureml_account(const struct platform_setup *setup)
{
    ACT_AUTO(act_buf) text = {0};

    if (!platform_said(setup, "container"))
        return NULL;
    act_buf_adds(&text, "# A container in Azure Blob Storage. Your own login is used: 'a login' tells whose.\n");
    platform_put(&text, "account_name", platform_said(setup, "storage"), NULL);
    platform_put(&text, "container_name", platform_said(setup, "container"), NULL);
    platform_put_if(&text, "endpoint", own_of(setup)->blob_endpoint, NULL);
    platform_put(&text, "auth", "login", "account_key or sas_token instead: chmod 600 this file");
    return act_buf_steal(&text);
}

// clang-format off
static const struct platform_question questions[] = {
    {.option = "subscription", .text = "Subscription", .is_quiet = true, .look = look_subscriptions},
    {.option = "resource-group", .text = "Resource group of the workspace", .is_quiet = true, .look = look_groups},
    {.option = "workspace", .text = "Workspace", .is_quiet = true, .look = look_workspaces},
    {.option = "compute", .text = "Compute", .is_quiet = true, .names = PLATFORM_NAMES_IN_PART, .look = look_computes},
    {.option = "storage", .text = "Storage account for code and data", .is_quiet = true, .look = look_storage},
    {.option = "container", .text = "Container in it", .look = look_containers},
    {.option = "image", .text = "Image that runs execute in", .look = look_images},
    {0},
};
// clang-format on

const struct platform_setup_ops azureml_setup = {
    .text = "a workspace of Azure Machine Learning",
    .questions = questions,
    .put = azureml_put_setup,
    .finish = azureml_finish_setup,
    .account = azureml_account,
    .make = azureml_make_container,
    .own_size = sizeof(struct azureml_own),
    .release = release_own,
};
