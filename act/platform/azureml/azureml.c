/* azureml.c - Azure Machine Learning by its REST interface: what the platform can do, and how it is reached. */
#include <ctype.h>
#include <stdarg.h>
#include <string.h>

#include "codec/json.h"
#include "config/config.h"
#include "platform/azureml/azureml_internal.h"

enum { GPU_PER_NODE = 4 };

/* A stable version; virtual clusters exist only in a preview. */
#define API_VERSION             "2024-10-01"
#define API_VERSION_SINGULARITY "2023-04-01-preview"

char *azureml_url(const struct azureml *a, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    ACT_AUTOFREE char *path = act_vsprintf(fmt, ap);
    va_end(ap);
    return act_sprintf("%s%s", a->workspace, path);
}

struct arm_call azureml_put(const struct azureml *a, const char *what, char *url, json_t *body)
{
    return (struct arm_call){.method = "PUT", .what = what, .url = url, .api_version = a->api_version, .body = body};
}

/* ---- reaching it ---- */

int azureml_arm(struct azureml *a, struct arm **out, struct act_error *err)
{
    ACT_AUTOFREE char *origin = config_origin(a->config, "azureml.endpoint");
    ACT_AUTOFREE char *said_by = act_sprintf("'azureml.endpoint' of '%s'", origin);
    int rc = a->arm ? 0 : auth_cloud_find(azureml_keys(a->config)->endpoint, &a->cloud, err);

    if (rc == 0 && !a->arm)
        rc = arm_new(&(struct arm_options){.http = services_http(a->base.services),
                                           .tokens = services_tokens(a->base.services),
                                           .endpoint = azureml_keys(a->config)->endpoint,
                                           .cloud = a->cloud,
                                           .use_cli = a->config->use_cli_auth,
                                           .said_by = said_by,
                                           .is_own = config_is_said_by_user(a->config, "azureml.endpoint")},
                     &a->arm, err);
    *out = a->arm;
    return rc;
}

int azureml_find(struct azureml *a, const char *what, char *url, json_t **out, struct act_error *err)
{
    ACT_AUTOFREE char *path = url;
    struct arm *arm;
    int rc = azureml_arm(a, &arm, err);

    *out = NULL;
    return rc < 0 ? rc : arm_find(arm, path, a->api_version, what, out, err);
}

int azureml_each(struct azureml *a, char *url, const char *what, azureml_take_item *each, void *arg,
                 struct act_error *err)
{
    ACT_AUTOFREE char *path = url;
    struct arm *arm;
    int rc = azureml_arm(a, &arm, err);

    return rc < 0 ? rc : arm_each(arm, path, a->api_version, false, "value", what, each, arg, err);
}

int azureml_user_token(struct azureml *a, const char **out, struct act_error *err)
{
    struct arm *arm;
    int rc = azureml_arm(a, &arm, err);

    *out = NULL;
    if (rc != 0)
        return rc;
    struct token_want want = *arm_want(arm);
    want.scope = a->cloud->azureml_scope;
    rc = token_wait(services_tokens(a->base.services), &want, err);
    if (rc == 0)
        *out = token_now(services_tokens(a->base.services), &want);
    return rc < 0 ? act_error_prefix(err, "cannot get the token that 'azureml.identity: user' needs") : 0;
}

int azureml_workspace(struct azureml *a, const json_t **out, struct act_error *err)
{
    struct arm *arm;
    int rc = a->workspace_response ? 0 : azureml_arm(a, &arm, err);

    if (rc == 0 && !a->workspace_response) {
        ACT_AUTOFREE char *what = act_sprintf("open the workspace '%s'", aml_config_keys(a->config)->workspace_name);
        rc = arm_get(arm, a->workspace, a->api_version, what, &a->workspace_response, err);
    }
    *out = a->workspace_response;
    return rc;
}

/* ---- limits ---- */

static int azureml_limits(struct platform *p, struct platform_limits *out, struct act_error *err)
{
    const struct azureml *a = azureml_of(p);
    int per_node = a->config->gpu_per_node > 0 ? (int)a->config->gpu_per_node : GPU_PER_NODE;

    (void)err;
    *out = (struct platform_limits){.gpu_per_node = per_node, .num_gpu = per_node, .has_gpus = true};
    return 0;
}

/* ---- for people ---- */

/* The same as services.Studio of the job, plus the tenant, which guests need. */
static char *azureml_page(struct platform *p, const char *id)
{
    struct azureml *a = azureml_of(p);
    struct arm *arm;
    struct act_error ignored;

    if (azureml_arm(a, &arm, &ignored) < 0)
        return NULL;
    ACT_AUTOFREE char *tenant = azureml_tenant(a);
    ACT_AUTOFREE char *tid = tenant ? http_encode(tenant, false) : NULL;
    ACT_AUTOFREE char *site = act_strdup(a->cloud->azureml_scope); /* "https://ml.azure.com/.default" */
    *strrchr(site, '/') = '\0';
    return act_sprintf("%s/runs/%s?wsid=/subscriptions/%s/resourcegroups/%s/workspaces/%s%s%s", site, id,
                       aml_config_keys(a->config)->subscription_id, aml_config_keys(a->config)->resource_group,
                       aml_config_keys(a->config)->workspace_name, tid ? "&tid=" : "", tid ? tid : "");
}

/* ---- opening and closing ---- */

static void azureml_close(struct platform *p)
{
    struct azureml *a = azureml_of(p);

    arm_free(a->arm);
    json_decref(a->workspace_response);
    act_strv_release(&a->history_failed);
    act_strv_release(&a->datastores);
    free(a->history);
    free(a->workspace);
    free(a);
}

static int aml_check_workspace(const struct config *c, struct act_error *err)
{
    const struct {
        const char *name, *value;
    } rows[] = {{"aml_config.subscription_id", aml_config_keys(c)->subscription_id},
                {"aml_config.resource_group", aml_config_keys(c)->resource_group},
                {"aml_config.workspace_name", aml_config_keys(c)->workspace_name}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (!rows[i].value || !*rows[i].value)
            return act_error_set(err, ACT_CONFIG, "the platform '%s' needs '%s' in the cluster file '%s'", c->platform,
                                 rows[i].name, c->file ? c->file : c->cluster);
    return 0;
}

static int azureml_open(const struct config *config, struct platform **out, struct act_error *err)
{
    int rc = aml_check_workspace(config, err);

    *out = NULL;
    if (rc < 0)
        return rc;
    struct azureml *a = act_calloc(1, sizeof(*a));
    ACT_AUTOFREE char *subscription = arm_segment(aml_config_keys(config)->subscription_id);
    ACT_AUTOFREE char *group = arm_segment(aml_config_keys(config)->resource_group);
    ACT_AUTOFREE char *name = arm_segment(aml_config_keys(config)->workspace_name);

    a->config = config;
    while (strcmp(azureml_kinds[a->kind].name, config->platform) != 0)
        a->kind++;
    a->base.row = &platform_azureml[a->kind];
    a->api_version = azureml_keys(config)->api_version ? azureml_keys(config)->api_version
                     : a->kind == AZUREML_SINGULARITY  ? API_VERSION_SINGULARITY
                                                       : API_VERSION;
    a->workspace = act_sprintf("/subscriptions/%s/resourceGroups/%s/providers/"
                               "Microsoft.MachineLearningServices/workspaces/%s",
                               subscription, group, name);
    *out = &a->base;
    return 0;
}

/* ---- what a configuration means ---- */

/* Returns the endpoint, which follows from the environment where none is given. New string; NULL: no such cloud. */
static char *endpoint_of(const struct config *config)
{
    const struct auth_cloud *cloud;
    struct act_error ignored;

    if (auth_cloud_find(azureml_keys(config)->endpoint, &cloud, &ignored) < 0)
        return NULL;
    const char *said = azureml_keys(config)->endpoint, *scope = cloud->arm_scope, *end = strstr(scope, "/.default");
    size_t n = said ? strlen(said) : end ? (size_t)(end - scope) : strlen(scope);
    const char *endpoint = said ? said : scope;
    while (n > 0 && endpoint[n - 1] == '/')
        n--;
    return act_strndup(endpoint, n);
}

/* Azure's names know no capitals. */
static char *azureml_place(const struct config *config)
{
    const struct aml_config_keys *w = aml_config_keys(config);
    ACT_AUTOFREE char *endpoint = endpoint_of(config);

    if (!endpoint || !w->subscription_id || !w->resource_group || !w->workspace_name)
        return NULL;
    ACT_AUTOFREE char *names =
        act_sprintf("'%s' of '%s' in %s", w->workspace_name, w->resource_group, w->subscription_id);
    for (char *c = names; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return act_sprintf("workspace %s, %s", names, endpoint);
}

/* Returns the compute and the experiment: the load of a workspace is that of a compute, and its runs are listed by
 * experiment. */
static char *azureml_part(const struct config *config)
{
    return act_sprintf("%s\n%s", config->compute_target ? config->compute_target : "",
                       config->experiment_name ? config->experiment_name : "");
}

static const char *const place_keys[] = {"aml_config.subscription_id",
                                         "aml_config.resource_group",
                                         "aml_config.workspace_name",
                                         "azureml.endpoint",
                                         "azureml.history_endpoint",
                                         "azureml.api_version",
                                         "azureml.settle_seconds",
                                         "compute_target",
                                         "experiment_name",
                                         "gpu_per_node",
                                         "singularity_sla_tier",
                                         "use_cli_auth",
                                         NULL};

static void azureml_record_place(const struct config *config, json_t *resolved)
{
    ACT_AUTOFREE char *endpoint = endpoint_of(config);

    if (endpoint)
        json_object_set_new(json_object_get(resolved, "azureml"), "endpoint", codec_json_bytes_new(endpoint));
}

static bool azureml_runs_images(const struct config *config)
{
    (void)config;
    return true;
}

static void azureml_reach(const struct config *config, struct platform_reaches *out)
{
    platform_reaches_add(out, PLATFORM_HOST, "azureml.endpoint", azureml_keys(config)->endpoint);
    platform_reaches_add(out, PLATFORM_HOST, "azureml.history_endpoint", azureml_keys(config)->history_endpoint);
}

static void azureml_set_time_limit(struct config *config, int64_t seconds)
{
    ACT_AUTOFREE char *iso = act_sprintf("PT%lldS", (long long)seconds);

    act_str_replace(&azureml_keys(config)->timeout, iso);
}

static void azureml_set_shm_size(struct config *config, const char *size)
{
    act_str_replace(&azureml_keys(config)->shm_size, size);
}

static void azureml_describe(const struct config *config, const struct platform_asked *asked, struct run_spec *spec)
{
    if (config->docker.image)
        spec->image = config_docker_image(&config->docker);
    if (asked->time_limit)
        spec->timeout = act_strdup(azureml_keys(config)->timeout);
    if (asked->shm_size)
        spec->shm_size = act_strdup(azureml_keys(config)->shm_size);
}

static void azureml_repeat(struct config *config, const struct run_spec *old)
{
    if (old->timeout && !config_is_said(config, "azureml.timeout"))
        act_str_replace(&azureml_keys(config)->timeout, old->timeout);
    if (old->shm_size && !config_is_said(config, "azureml.shm_size"))
        act_str_replace(&azureml_keys(config)->shm_size, old->shm_size);
}

/* ---- the rows ---- */

const struct platform_row platform_azureml[] = {
#define ROW(...)                                                                                                       \
    {                                                                                                                  \
        .about = {.answers_by_request = true,                                                                          \
                  .keeps_list = true,                                                                                  \
                  .nodes_fetch = true,                                                                                 \
                  .nodes_have_addresses = true,                                                                        \
                  .logs_in_to_registry = true},                                                                        \
        .place = {.words = azureml_place, .part = azureml_part, .keys = place_keys, .record = azureml_record_place},   \
        .settings = {.runs_images = azureml_runs_images,                                                               \
                     .reach = azureml_reach,                                                                           \
                     .datastore = azureml_datastore_name,                                                              \
                     .time_limit = {.key = "azureml.timeout", .set = azureml_set_time_limit},                          \
                     .shm_size = {.key = "azureml.shm_size", .set = azureml_set_shm_size},                             \
                     .describe = azureml_describe,                                                                     \
                     .repeat = azureml_repeat},                                                                        \
        .open = azureml_open, .close = azureml_close,                                                                  \
        .submit = {.check_settings = azureml_check_settings, .check = azureml_check, .one = azureml_submit},           \
        .runs = {.status = azureml_status,                                                                             \
                 .abort = azureml_abort,                                                                               \
                 .open_logs = azureml_open_logs,                                                                       \
                 .page = azureml_page,                                                                                 \
                 .spec = azureml_spec,                                                                                 \
                 .list = azureml_list,                                                                                 \
                 .recent = azureml_recent},                                                                            \
        .nodes = {.limits = azureml_limits,                                                                            \
                  .of_run = azureml_nodes,                                                                             \
                  .shell = azureml_shell,                                                                              \
                  .summary = azureml_summary,                                                                          \
                  .jobs = azureml_jobs,                                                                                \
                  .examine = azureml_examine},                                                                         \
        .keep = {.remove = azureml_remove}, __VA_ARGS__                                                                \
    }
    [AZUREML_MANAGED] =
        ROW(.kind = &azureml_kinds[AZUREML_MANAGED], .clusters = &azureml_clusters, .setup = &azureml_setup),
    [AZUREML_ITP] = ROW(.kind = &azureml_kinds[AZUREML_ITP], .about.is_elastic = true),
    [AZUREML_SINGULARITY] = ROW(.kind = &azureml_kinds[AZUREML_SINGULARITY]),
};
