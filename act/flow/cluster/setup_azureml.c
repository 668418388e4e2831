/* setup_azureml.c - what the user has in Azure: subscriptions, workspaces, their computes, containers; and what the
 * file of a cluster there says.
 *
 * Source: learn.microsoft.com/rest/api/resources/subscriptions/list, azureml/workspaces/list-by-subscription,
 * azureml/compute/list, azureml/virtual-machine-sizes/list, storagerp/storage-accounts/list and blob-containers.
 */
#include <string.h>

#include "arm/arm.h"
#include "auth/cloud.h"
#include "auth/services.h"
#include "base/dirs.h"
#include "base/path.h"
#include "codec/json.h"
#include "config/config.h"
#include "flow/cluster/setup_internal.h"

#define RESOURCES "2022-12-01"
#define AZUREML   "2024-10-01"
#define STORAGE   "2024-01-01"
#define IMAGE     "mcr.microsoft.com/azureml/openmpi4.1.0-cuda11.8-cudnn8-ubuntu22.04"

/* ---- reaching it ---- */

static int setup_azureml_open_arm(const struct flow_setup *setup, struct arm **out, struct act_error *err)
{
    const struct auth_cloud *cloud = NULL;
    struct flow flow;
    int rc = setup_open(setup, &flow, err);
    const char *endpoint = config_text(&flow.config, "azureml.endpoint");

    *out = NULL;
    if (rc == 0)
        rc = auth_cloud_find(endpoint, &cloud, err);
    if (rc == 0)
        rc = arm_new(&(struct arm_options){.http = services_http(setup->services),
                                           .tokens = services_tokens(setup->services),
                                           .endpoint = endpoint,
                                           .cloud = cloud,
                                           .use_cli = flow.config.use_cli_auth,
                                           .said_by = "'azureml.endpoint' of -p",
                                           .is_own = true},
                     out, err);
    flow_close(&flow);
    return rc;
}

static int take_item(void *arg, const json_t *item, struct act_error *err)
{
    (void)err;
    json_array_append_new(arg, json_deep_copy(item));
    return 0;
}

/* All of a list, as an array: a new reference. */
static int get_list(const struct flow_setup *setup, const char *url, const char *version, const char *what,
                    json_t **out, struct act_error *err)
{
    json_t *items = json_array();
    struct arm *arm = NULL;
    int rc = setup_azureml_open_arm(setup, &arm, err);

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

static char *subscription_url(const struct flow_setup *setup, const char *below)
{
    ACT_AUTOFREE char *id = arm_segment(setup->subscription);

    return act_sprintf("/subscriptions/%s/%s", id, below);
}

/* "mygroup" of ".../resourceGroups/mygroup/...". New string, or NULL. */
static char *setup_azureml_group_of(const char *id)
{
    const char *at = id ? strcasestr(id, "/resourcegroups/") : NULL;

    at = at ? at + strlen("/resourcegroups/") : NULL;
    return at ? act_strndup(at, strcspn(at, "/")) : NULL;
}

/* ---- workspaces ---- */

int setup_look_subscriptions(struct flow_setup *setup, struct flow_choices *out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *items = NULL;
    const json_t *item;
    size_t i;
    int rc = get_list(setup, "/subscriptions", RESOURCES, "list your subscriptions", &items, err);

    json_array_foreach(items, i, item)
    {
        const char *id = codec_json_str(item, "subscriptionId", NULL), *name = codec_json_str(item, "displayName", "");
        if (id && strcmp(codec_json_str(item, "state", "Enabled"), "Enabled") == 0)
            setup_offer(out, id, name, act_one_line(name, strlen(name)), false);
    }
    return rc;
}

static int read_workspaces(struct flow_setup *setup, struct act_error *err)
{
    ACT_AUTOFREE char *url = subscription_url(setup, "providers/Microsoft.MachineLearningServices/workspaces");

    if (setup->workspaces)
        return 0;
    return get_list(setup, url, AZUREML, "list the workspaces of the subscription", &setup->workspaces, err);
}

int setup_look_groups(struct flow_setup *setup, struct flow_choices *out, struct act_error *err)
{
    const json_t *item;
    size_t i;
    int rc = read_workspaces(setup, err);

    json_array_foreach(setup->workspaces, i, item)
    {
        ACT_AUTOFREE char *group = setup_azureml_group_of(codec_json_str(item, "id", NULL));
        if (group && !setup_has(out, group))
            setup_offer(out, group, NULL, NULL, false);
    }
    return rc;
}

/* Whether a workspace is in the group that was chosen. */
static bool is_in_group(const struct flow_setup *setup, const json_t *item)
{
    ACT_AUTOFREE char *group = setup_azureml_group_of(codec_json_str(item, "id", NULL));

    return group && strcasecmp(group, setup->resource_group) == 0;
}

int setup_look_workspaces(struct flow_setup *setup, struct flow_choices *out, struct act_error *err)
{
    const json_t *item;
    size_t i;
    int rc = read_workspaces(setup, err);

    json_array_foreach(setup->workspaces, i, item)
    {
        const char *where = codec_json_str(item, "location", ""), *name = codec_json_str(item, "name", NULL);
        if (name && is_in_group(setup, item))
            setup_offer(out, name, NULL, act_one_line(where, strlen(where)), false);
    }
    return rc;
}

static const json_t *workspace_of(const struct flow_setup *setup)
{
    const json_t *item;
    size_t i;

    json_array_foreach(setup->workspaces, i, item)
    {
        if (is_in_group(setup, item) && act_streq(codec_json_str(item, "name", NULL), setup->workspace))
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

static int get_computes(const struct flow_setup *setup, json_t **out, struct act_error *err)
{
    ACT_AUTOFREE char *group = arm_segment(setup->resource_group), *workspace = arm_segment(setup->workspace);
    ACT_AUTOFREE char *below = act_sprintf(
        "resourceGroups/%s/providers/Microsoft.MachineLearningServices/workspaces/%s/computes", group, workspace);
    ACT_AUTOFREE char *url = subscription_url(setup, below);

    return get_list(setup, url, AZUREML, "list the computes of the workspace", out, err);
}

int setup_look_computes(struct flow_setup *setup, struct flow_choices *out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *items = NULL;
    const json_t *item;
    size_t i;
    int rc = get_computes(setup, &items, err);

    json_array_foreach(items, i, item)
    {
        const char *name = codec_json_str(item, "name", NULL);
        if (name)
            setup_offer(out, name, NULL, compute_text(item), false);
    }
    return rc < 0 || out->n ? rc
                            : act_error_set(err, ACT_NOT_FOUND,
                                            "the workspace '%s' has no compute; make one, as by 'az ml compute create'",
                                            setup->workspace);
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

int setup_finish_azureml(struct flow_setup *setup, struct act_error *err)
{
    CODEC_AUTOJSON json_t *computes = NULL, *sizes = NULL;
    const char *size = NULL, *location = NULL;
    const json_t *item;
    size_t i;
    int rc = get_computes(setup, &computes, err);

    if (rc < 0 || !find_size(computes, setup->compute, &size, &location))
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

int setup_look_storage(struct flow_setup *setup, struct flow_choices *out, struct act_error *err)
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
            setup_offer(out, name, NULL, act_strdup(is_own ? "of the workspace" : NULL), is_own);
    }
    return rc;
}

/* The URL of an account's blobs, where it is not the usual one. New string, or NULL. */
static char *unusual_endpoint(const char *name, const char *url)
{
    ACT_AUTOFREE char *usual = act_sprintf("https://%s.blob.core.windows.net/", name);

    return act_streq(url, usual) ? NULL : act_strdup(url);
}

/* Remembers where the account that was chosen is. */
static int find_storage(struct flow_setup *setup, struct act_error *err)
{
    ACT_AUTOFREE char *url = subscription_url(setup, "providers/Microsoft.Storage/storageAccounts");
    CODEC_AUTOJSON json_t *items = NULL;
    const json_t *item;
    size_t i;
    int rc = setup->storage_id ? 0 : get_list(setup, url, STORAGE, "find the storage account", &items, err);

    json_array_foreach(items, i, item)
    {
        const json_t *places = json_object_get(json_object_get(item, "properties"), "primaryEndpoints");
        if (!act_streq(codec_json_str(item, "name", NULL), setup->storage))
            continue;
        setup->storage_id = act_strdup(codec_json_str(item, "id", NULL));
        setup->blob_endpoint = unusual_endpoint(setup->storage, codec_json_str(places, "blob", NULL));
    }
    if (rc == 0 && !setup->storage_id)
        rc = act_error_set(err, ACT_NOT_FOUND, "no storage account '%s' in the subscription", setup->storage);
    return rc;
}

/* *out is NULL, too, where the user may not list them, but perhaps write into one. */
static int get_containers(struct flow_setup *setup, json_t **out, struct act_error *err)
{
    int rc = find_storage(setup, err);

    *out = NULL;
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *url = act_sprintf("%s/blobServices/default/containers", setup->storage_id);
    rc = get_list(setup, url, STORAGE, "list the containers of the storage account", out, err);
    return rc == -ACT_DENIED && err->http_status == 403 ? 0 : rc;
}

int setup_look_containers(struct flow_setup *setup, struct flow_choices *out, struct act_error *err)
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
            setup_offer(out, name, NULL, NULL, strcmp(name, "act") == 0);
    }
    if (rc == 0 && items && !setup_has(out, "act"))
        setup_offer(out, "act", NULL, act_strdup("new"), true);
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

int setup_make_container(struct flow_setup *setup, struct act_error *err)
{
    CODEC_AUTOJSON json_t *items = NULL;
    struct arm *arm = NULL;
    int rc;

    if (!setup_answer(setup->container))
        return 0;
    rc = get_containers(setup, &items, err);
    if (rc < 0 || !items || has_container(items, setup->container))
        return rc;
    ACT_AUTOFREE char *name = arm_segment(setup->container);
    ACT_AUTOFREE char *what = act_sprintf("make the container '%s'", setup->container);
    struct arm_call call = {.method = "PUT",
                            .what = what,
                            .url = act_sprintf("%s/blobServices/default/containers/%s", setup->storage_id, name),
                            .api_version = STORAGE,
                            .body = json_pack("{s:{}}", "properties")};
    rc = setup_azureml_open_arm(setup, &arm, err);
    if (rc == 0)
        rc = arm_do(arm, &call, err);
    arm_call_release(&call);
    arm_free(arm);
    setup->makes_container = rc == 0;
    return rc;
}

int setup_look_images(struct flow_setup *setup, struct flow_choices *out, struct act_error *err)
{
    (void)err;
    out->open = true;
    if (act_streq(setup->kind, "aml"))
        setup_offer(out, IMAGE, NULL, act_strdup("Open MPI and CUDA"), true);
    return 0;
}

/* ---- its file ---- */

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
        setup_put(out, "    path", path, NULL);
    }
}

void setup_put_azureml(struct act_buf *out, const struct flow_setup *setup)
{
    ACT_AUTOFREE char *account = shown_account_file(setup);

    act_buf_adds(out, "\naml_config:\n");
    setup_put_if(out, "  subscription_id", setup->subscription, NULL);
    setup_put_if(out, "  resource_group", setup->resource_group, NULL);
    setup_put_if(out, "  workspace_name", setup->workspace, NULL);
    setup_put_if(out, "compute_target", setup->compute, NULL);
    if (setup_answer(setup->image)) {
        act_buf_adds(out, "docker:\n");
        setup_put(out, "  image", setup->image, "or an environment: azureml:NAME:VERSION");
    }
    setup_put_gpus(out, setup);
    if (!setup_answer(setup->container))
        return;
    act_buf_adds(out, setup->in_project ? "\n# Where code and data are.\n"
                                        : "\n# Each project has a folder of its own in it.\n");
    setup_put(out, "azure_blob_config_file", account, NULL);
    if (setup->in_project)
        put_rows(out, setup);
}
