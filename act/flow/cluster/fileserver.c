/* fileserver.c - reaches the service, lists file servers and removes them. */
#include <string.h>

#include "auth/services.h"
#include "base/log.h"
#include "codec/json.h"
#include "config/config.h"
#include "flow/cluster/fileserver_internal.h"
#include "http/http.h"

/* ---- reaching it ---- */

struct place {
    const char *subscription, *group;
    const char *endpoint, *key; /* of the resource manager, and the key of the cluster file that gives it */
};

static bool fileserver_is_set(const char *text)
{
    return text && *text;
}

/* Returns the place of the workspace of the cluster file, or of its AKS cluster if it names only that. */
static struct place usual_place(const struct config *c)
{
    const struct place workspace = {config_text(c, "aml_config.subscription_id"),
                                    config_text(c, "aml_config.resource_group"), config_text(c, "azureml.endpoint"),
                                    "azureml.endpoint"};
    const struct place aks = {config_text(c, "aks.subscription"), config_text(c, "aks.resource_group"),
                              config_text(c, "aks.endpoint"), "aks.endpoint"};

    return !fileserver_is_set(workspace.subscription) &&
                   (fileserver_is_set(aks.subscription) || fileserver_is_set(aks.endpoint))
               ? aks
               : workspace;
}

static int fileserver_check_place(const struct config *c, const struct place *place, struct act_error *err)
{
    const struct {
        const char *value, *option;
    } rows[] = {{place->subscription, "--subscription ID"}, {place->group, "--resource-group NAME"}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (!fileserver_is_set(rows[i].value))
            return act_error_set(err, ACT_USAGE,
                                 "where in Azure? add %s: the cluster '%s' has no workspace and no aks part to take it "
                                 "from",
                                 rows[i].option, c->cluster);
    return 0;
}

int flow_fileservers_open(struct flow *flow, const char *subscription, const char *resource_group,
                          struct flow_fileservers **out, struct act_error *err)
{
    const struct config *c = flow->config;
    struct place place = usual_place(c);
    ACT_AUTOFREE char *origin = config_origin(c, place.key);
    ACT_AUTOFREE char *said_by = act_sprintf("'%s' of '%s'", place.key, origin);
    const struct auth_cloud *cloud = NULL;
    struct arm *arm = NULL;

    *out = NULL;
    place.subscription = subscription ? subscription : place.subscription;
    place.group = resource_group ? resource_group : place.group;
    int rc = fileserver_check_place(c, &place, err);
    if (rc == 0)
        rc = auth_cloud_find(place.endpoint, &cloud, err);
    if (rc == 0)
        rc = arm_new(&(struct arm_options){.http = services_http(flow->services),
                                           .tokens = services_tokens(flow->services),
                                           .endpoint = place.endpoint,
                                           .cloud = cloud,
                                           .use_cli = c->use_cli_auth,
                                           .said_by = said_by,
                                           .is_own = config_is_said_by_user(c, place.key)},
                     &arm, err);
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *id = arm_segment(place.subscription);
    ACT_AUTOFREE char *group = arm_segment(place.group);
    *out = act_calloc(1, sizeof(**out));
    **out = (struct flow_fileservers){.arm = arm, .cloud = cloud, .group_name = act_strdup(place.group)};
    (*out)->subscription = act_sprintf("/subscriptions/%s", id);
    (*out)->group = act_sprintf("%s/resourceGroups/%s", (*out)->subscription, group);
    return 0;
}

void flow_fileservers_close(struct flow_fileservers *servers)
{
    if (!servers)
        return;
    arm_free(servers->arm);
    free(servers->subscription);
    free(servers->group);
    free(servers->group_name);
    free(servers);
}

char *fileserver_url(const struct flow_fileservers *servers, const char *name)
{
    ACT_AUTOFREE char *segment = arm_segment(name);

    return act_sprintf("%s/providers/Microsoft.Storage/storageAccounts/%s", servers->group, segment);
}

char *fileserver_host(const struct flow_fileservers *servers, const char *name, const json_t *account)
{
    const json_t *endpoints = json_object_get(json_object_get(account, "properties"), "primaryEndpoints");
    const char *url = codec_json_str(endpoints, "file", NULL);

    return url && strstr(url, "://") ? http_host(url) : act_sprintf("%s.file.%s", name, servers->cloud->suffix);
}

int fileserver_explain(int rc, const char *subnet, struct act_error *err)
{
    static const struct {
        const char *code, *hint;
    } rows[] = {
        {"StorageAccountAlreadyTaken", "somebody else in Azure has this name; choose another"},
        {"StorageAccountInAnotherResourceGroup", "--resource-group names that group"},
        {"InvalidResourceLocation", "it is there already, in another region; leave --location out to go on with it"},
        {"AuthorizationFailed", "the role 'Storage Account Contributor' on the resource group allows it"},
    };

    if (rc == 0)
        return 0;
    if (subnet && strstr(err->service_code, "NetworkAclsValidationFailure"))
        return act_error_hint(
            err,
            "'az network vnet subnet update --ids %s --service-endpoints Microsoft.Storage' gives the "
            "subnet the service endpoint that it needs",
            subnet);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(err->service_code, rows[i].code) == 0)
            return act_error_hint(err, "%s", rows[i].hint);
    return rc;
}

/* ---- what there is ---- */

static void share_release(struct flow_share *share)
{
    free(share->name);
}

void flow_fileserver_release(struct flow_fileserver *server)
{
    free(server->name);
    free(server->group);
    free(server->location);
    free(server->redundancy);
    free(server->state);
    free(server->host);
    act_strv_release(&server->subnets);
    for (size_t i = 0; i < server->n_shares; i++)
        share_release(&server->shares[i]);
    free(server->shares);
    *server = (struct flow_fileserver){0};
}

void flow_fileserver_list_release(struct flow_fileserver_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        flow_fileserver_release(&list->v[i]);
    free(list->v);
    *list = (struct flow_fileserver_list){0};
}

int fileserver_get(const struct flow_fileservers *servers, const char *name, json_t **out, struct act_error *err)
{
    ACT_AUTOFREE char *what = act_sprintf("look at the account '%s'", name);
    struct arm_call call = {.method = "GET",
                            .what = what,
                            .url = fileserver_url(servers, name),
                            .api_version = STORAGE_VERSION,
                            .missing_is_fine = true};
    int rc = arm_do(servers->arm, &call, err);

    *out = rc == 0 ? json_incref(call.response) : NULL;
    if (rc == 0 && call.status == 404 && strcmp(call.error.service_code, "ResourceGroupNotFound") == 0)
        rc = act_error_set(err, ACT_NOT_FOUND,
                           "there is no resource group '%s'; 'az group create --name %s --location REGION' makes it",
                           servers->group_name, servers->group_name);
    else if (rc == 0 && !*out && call.status != 404)
        rc = act_error_set(err, ACT_FAIL, "cannot %s: the response is empty", what);
    arm_call_release(&call);
    return fileserver_explain(rc, NULL, err);
}

static int take_share(void *arg, const json_t *item, struct act_error *err)
{
    struct flow_fileserver *server = arg;

    (void)err;
    ACT_PUSH(server->shares, server->n_shares, fileserver_read_share(item));
    return 0;
}

/* url: the path of the account. */
static int list_shares(const struct flow_fileservers *servers, const char *url, struct flow_fileserver *server,
                       struct act_error *err)
{
    ACT_AUTOFREE char *below = act_sprintf("%s/fileServices/default/shares", url);
    ACT_AUTOFREE char *what = act_sprintf("list the shares of '%s'", server->name);

    return arm_each(servers->arm, below, STORAGE_VERSION, false, "value", what, take_share, server, err);
}

struct listing {
    const struct flow_fileservers *servers;
    struct flow_fileserver_list *out;
};

static int take_account(void *arg, const json_t *item, struct act_error *err)
{
    struct listing *listing = arg;
    struct act_error why = {0};

    (void)err;
    if (strcmp(codec_json_str(item, "kind", ""), ACCOUNT_KIND) != 0)
        return 0;
    struct flow_fileserver server = fileserver_read(listing->servers, item);
    if (list_shares(listing->servers, codec_json_str(item, "id", ""), &server, &why) < 0)
        act_warn("%s", act_error_text(&why));
    ACT_PUSH(listing->out->v, listing->out->n, server);
    return 0;
}

int flow_list_fileservers(struct flow_fileservers *servers, bool all, struct flow_fileserver_list *out,
                          struct act_error *err)
{
    struct listing listing = {.servers = servers, .out = out};
    ACT_AUTOFREE char *url =
        act_sprintf("%s/providers/Microsoft.Storage/storageAccounts", all ? servers->subscription : servers->group);

    *out = (struct flow_fileserver_list){0};
    int rc = arm_each(servers->arm, url, STORAGE_VERSION, false, "value", "list the storage accounts", take_account,
                      &listing, err);
    if (rc < 0)
        flow_fileserver_list_release(out);
    return fileserver_explain(rc, NULL, err);
}

/* Asks what is used of a share, which the service says of one at a time. On failure the share stays as listed. */
static void ask_use(const struct flow_fileservers *servers, const char *account, struct flow_share *share)
{
    CODEC_AUTOJSON json_t *found = NULL;
    struct act_error ignored = {0};
    ACT_AUTOFREE char *name = arm_segment(share->name);
    ACT_AUTOFREE char *url = act_sprintf("%s/fileServices/default/shares/%s?%%24expand=stats", account, name);
    ACT_AUTOFREE char *what = act_sprintf("look at the share '%s'", share->name);

    if (arm_get(servers->arm, url, STORAGE_VERSION, what, &found, &ignored) < 0)
        return;
    share_release(share);
    *share = fileserver_read_share(found);
}

int flow_get_fileserver(struct flow_fileservers *servers, const char *name, struct flow_fileserver *out,
                        struct act_error *err)
{
    CODEC_AUTOJSON json_t *account = NULL;
    ACT_AUTOFREE char *url = fileserver_url(servers, name);
    int rc = fileserver_get(servers, name, &account, err);

    *out = (struct flow_fileserver){0};
    if (rc < 0)
        return rc;
    if (!account)
        return act_error_set(err, ACT_NOT_FOUND,
                             "there is no file server '%s' in the resource group '%s'; 'a fileserver list --all' shows "
                             "those of the subscription",
                             name, servers->group_name);
    if (strcmp(codec_json_str(account, "kind", ""), ACCOUNT_KIND) != 0)
        return act_error_set(err, ACT_CONFIG, "'%s' is not a file server, but a storage account of the kind '%s'", name,
                             codec_json_str(account, "kind", "unknown"));
    *out = fileserver_read(servers, account);
    rc = list_shares(servers, url, out, err);
    for (size_t i = 0; rc == 0 && i < out->n_shares; i++)
        ask_use(servers, url, &out->shares[i]);
    if (rc < 0)
        flow_fileserver_release(out);
    return rc;
}

int flow_delete_fileserver(struct flow_fileservers *servers, const char *name, const struct platform_follow *follow,
                           struct act_error *err)
{
    ACT_AUTOFREE char *what = act_sprintf("delete the file server '%s'", name);
    struct arm_call call = {
        .method = "DELETE", .what = what, .url = fileserver_url(servers, name), .api_version = STORAGE_VERSION};

    return fileserver_explain(platform_change(servers->arm, &call, follow, err), NULL, err);
}
