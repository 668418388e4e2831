/* fileserver_make.c - plans what is left to do for a new file server, and does it. */
#include <string.h>

#include "codec/json.h"
#include "flow/cluster/fileserver_internal.h"

#define GROUP_VERSION "2021-04-01"

/* ---- what there is ---- */

static int fileserver_make_find_location(const struct flow_fileservers *servers, char **out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *group = NULL;
    ACT_AUTOFREE char *what = act_sprintf("look at the resource group '%s'", servers->group_name);
    int rc = arm_get(servers->arm, servers->group, GROUP_VERSION, what, &group, err);

    *out = rc == 0 ? codec_json_strdup(group, "location") : NULL;
    if (rc == 0 && !*out)
        rc = act_error_set(err, ACT_FAIL, "the service does not say where the resource group '%s' is; see --location",
                           servers->group_name);
    return fileserver_explain(rc, NULL, err);
}

/* "East US" and "eastus" are the same region. */
static bool is_same_region(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += strspn(a, " ");
        b += strspn(b, " ");
        if ((*a | 0x20) != (*b | 0x20))
            return false;
        if (!*a)
            return true;
    }
}

struct region {
    const char *name, *sku;
    bool has_sku, has_other, is_restricted;
};

/* Each entry of the list of SKUs is about some regions, mostly about one. */
static int take_sku(void *arg, const json_t *item, struct act_error *err)
{
    struct region *region = arg;
    const json_t *location;
    size_t i;

    (void)err;
    if (strcmp(codec_json_str(item, "kind", ""), ACCOUNT_KIND) != 0)
        return 0;
    bool is_wanted = strcmp(codec_json_str(item, "name", ""), region->sku) == 0;
    json_array_foreach(json_object_get(item, "locations"), i, location)
    {
        if (!json_is_string(location) || !is_same_region(json_string_value(location), region->name))
            continue;
        region->has_sku |= is_wanted;
        region->has_other |= act_starts_with(codec_json_str(item, "name", ""), "Premium_");
        region->is_restricted |= is_wanted && json_array_size(json_object_get(item, "restrictions")) > 0;
    }
    return 0;
}

static int check_region(const struct flow_fileservers *servers, const char *location, const char *sku,
                        struct act_error *err)
{
    struct region region = {.name = location, .sku = sku};
    ACT_AUTOFREE char *url = act_sprintf("%s/providers/Microsoft.Storage/skus", servers->subscription);
    int rc = arm_each(servers->arm, url, STORAGE_VERSION, false, "value", "list what storage accounts there are",
                      take_sku, &region, err);

    if (rc < 0)
        return fileserver_explain(rc, NULL, err);
    if (!region.has_sku)
        return act_error_set(err, ACT_USAGE, "the region '%s' has no premium files of the kind %s; see --location%s",
                             location, sku, region.has_other ? ", --redundancy" : "");
    return region.is_restricted ? act_error_set(err, ACT_NO_CAPACITY,
                                                "your subscription may have no premium files of the kind %s in '%s'; "
                                                "see --location",
                                                sku, location)
                                : 0;
}

/* Checks that nobody in Azure has the name, as all accounts share one space of names. */
static int fileserver_make_check_name(const struct flow_fileservers *servers, const char *name, struct act_error *err)
{
    ACT_AUTOFREE char *what = act_sprintf("see whether the name '%s' is free", name);
    struct arm_call call = {
        .method = "POST",
        .what = what,
        .url = act_sprintf("%s/providers/Microsoft.Storage/checkNameAvailability", servers->subscription),
        .api_version = STORAGE_VERSION,
        .body = json_pack("{s:s, s:s}", "name", name, "type", "Microsoft.Storage/storageAccounts")};
    int rc = arm_do(servers->arm, &call, err);

    if (rc == 0 && json_is_false(json_object_get(call.response, "nameAvailable")))
        rc = act_error_set(err, ACT_FAIL,
                           "the name '%s' is taken: names of file servers are those of storage accounts, of which "
                           "there is one in all of Azure; choose another",
                           name);
    arm_call_release(&call);
    return fileserver_explain(rc, NULL, err);
}

/* ---- the plan ---- */

void flow_fileserver_plan_release(struct flow_fileserver_plan *plan)
{
    free(plan->location);
    free(plan->host);
    free(plan->account_url);
    free(plan->share_url);
    json_decref(plan->account);
    json_decref(plan->share);
    json_decref(plan->tags);
    *plan = (struct flow_fileserver_plan){0};
}

static int plan_account(struct flow_fileservers *servers, const struct flow_new_fileserver *wanted,
                        struct flow_fileserver_plan *out, struct act_error *err)
{
    int rc = fileserver_make_check_name(servers, wanted->name, err);

    if (rc == 0 && wanted->location)
        out->location = act_strdup(wanted->location);
    else if (rc == 0)
        rc = fileserver_make_find_location(servers, &out->location, err);
    if (rc == 0)
        rc = check_region(servers, out->location, fileserver_sku(wanted->redundancy), err);
    if (rc == 0 && !(out->account = fileserver_account_json(wanted, out->location)))
        rc = act_error_set(err, ACT_USAGE, "--subnet must be UTF-8");
    return rc;
}

static bool has_subnet(const struct flow_fileserver *server, const char *subnet)
{
    for (size_t i = 0; i < server->subnets.n; i++)
        if (strcasecmp(server->subnets.v[i], subnet) == 0)
            return true;
    return false;
}

/* Going on with an account must not change one that is in use. */
static int compare_account(const struct flow_fileservers *servers, const struct flow_new_fileserver *wanted,
                           const json_t *account, struct act_error *err)
{
    ACT_AUTO(flow_fileserver) there = fileserver_read(servers, account);

    if (!there.is_ours)
        return act_error_set(err, ACT_FAIL, "'%s' is a storage account that ACT did not make; choose another name",
                             wanted->name);
    if (wanted->location && !is_same_region(wanted->location, there.location ? there.location : ""))
        return act_error_set(err, ACT_FAIL, "the file server '%s' is there already, in '%s'", wanted->name,
                             there.location ? there.location : "another region");
    if (wanted->redundancy && strcasecmp(there.redundancy, wanted->redundancy) != 0)
        return act_error_set(err, ACT_FAIL, "the file server '%s' is there already, with the redundancy %s",
                             wanted->name, there.redundancy);
    if (!has_subnet(&there, wanted->subnet))
        return act_error_set(err, ACT_FAIL,
                             "the file server '%s' is there already, for another network; 'az storage account "
                             "network-rule add --account-name %s --subnet %s' adds this one",
                             wanted->name, wanted->name, wanted->subnet);
    return 0;
}

static int compare_share(const struct flow_new_fileserver *wanted, const json_t *found, struct act_error *err)
{
    struct flow_share there = fileserver_read_share(found);
    int64_t gib = flow_fileserver_gib(wanted);
    int rc = 0;

    if (!there.is_nfs)
        rc = act_error_set(err, ACT_FAIL, "the share '%s' of '%s' is there already, and not of NFS", there.name,
                           wanted->name);
    else if (wanted->bytes && there.gib != gib)
        rc = act_error_set(err, ACT_FAIL,
                           "the file server '%s' is there already, with %lld GiB; 'az storage share-rm update "
                           "--storage-account %s --name %s --quota %lld' changes that",
                           wanted->name, (long long)there.gib, wanted->name, there.name, (long long)gib);
    free(there.name);
    return rc;
}

static int plan_share(const struct flow_fileservers *servers, const struct flow_new_fileserver *wanted,
                      struct flow_fileserver_plan *out, struct act_error *err)
{
    ACT_AUTOFREE char *what = act_sprintf("look at the share of '%s'", wanted->name);
    struct arm_call call = {.method = "GET",
                            .what = what,
                            .url = act_strdup(out->share_url),
                            .api_version = STORAGE_VERSION,
                            .missing_is_fine = true};
    int rc = out->account || out->waits ? 0 : arm_do(servers->arm, &call, err);

    if (rc == 0 && call.response)
        rc = compare_share(wanted, call.response, err);
    else if (rc == 0)
        out->share = fileserver_share_json(flow_fileserver_gib(wanted));
    arm_call_release(&call);
    return fileserver_explain(rc, NULL, err);
}

static int fileserver_make_plan(struct flow_fileservers *servers, const struct flow_new_fileserver *wanted,
                                struct flow_fileserver_plan *out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *account = NULL;
    int rc = fileserver_get(servers, wanted->name, &account, err);

    if (rc == 0 && account)
        rc = compare_account(servers, wanted, account, err);
    else if (rc == 0)
        rc = plan_account(servers, wanted, out, err);
    if (rc < 0)
        return rc;
    const json_t *properties = json_object_get(account, "properties");
    if (account) {
        out->location = act_strdup(codec_json_str(account, "location", "its region"));
        out->tags = wanted->tags ? fileserver_tags_json(wanted, account) : NULL;
    }
    out->waits = strcmp(codec_json_str(properties, "provisioningState", "Succeeded"), "Succeeded") != 0;
    out->host = fileserver_host(servers, wanted->name, account);
    return plan_share(servers, wanted, out, err);
}

int flow_plan_fileserver(struct flow_fileservers *servers, const struct flow_new_fileserver *wanted,
                         struct flow_fileserver_plan *out, struct act_error *err)
{
    *out = (struct flow_fileserver_plan){.name = wanted->name};
    out->account_url = fileserver_url(servers, wanted->name);
    out->share_url = act_sprintf("%s/fileServices/default/shares/%s", out->account_url, SHARE);
    int rc = fileserver_make_plan(servers, wanted, out, err);
    if (rc < 0)
        flow_fileserver_plan_release(out);
    return rc;
}

/* ---- making it ---- */

static const char *subnet_of(const json_t *account)
{
    const json_t *rules = json_object_get(json_object_get(account, "properties"), "networkAcls");

    return codec_json_str(json_array_get(json_object_get(rules, "virtualNetworkRules"), 0), "id", "ID");
}

static int put_account(struct flow_fileservers *servers, const struct flow_fileserver_plan *plan,
                       const struct platform_follow *follow, struct act_error *err)
{
    ACT_AUTOFREE char *what = act_sprintf("make the file server '%s'", plan->name);
    struct arm_call call = {.method = plan->account ? "PUT" : "GET", /* one that was begun before is only waited for */
                            .what = what,
                            .url = act_strdup(plan->account_url),
                            .api_version = STORAGE_VERSION,
                            .body = plan->account ? json_incref(plan->account) : NULL};
    int rc = platform_change(servers->arm, &call, follow, err);

    return fileserver_explain(rc, plan->account ? subnet_of(plan->account) : NULL, err);
}

/* Makes a change that is done when the response comes. Takes body over. */
static int fileserver_make_change(struct flow_fileservers *servers, const char *method, const char *what,
                                  const char *url, json_t *body, struct act_error *err)
{
    struct arm_call call = {
        .method = method, .what = what, .url = act_strdup(url), .api_version = STORAGE_VERSION, .body = body};

    return fileserver_explain(platform_change(servers->arm, &call, &(struct platform_follow){0}, err), NULL, err);
}

static int patch_tags(struct flow_fileservers *servers, const struct flow_fileserver_plan *plan, struct act_error *err)
{
    ACT_AUTOFREE char *what = act_sprintf("tag the file server '%s'", plan->name);

    return fileserver_make_change(servers, "PATCH", what, plan->account_url, json_incref(plan->tags), err);
}

static int put_share(struct flow_fileservers *servers, const struct flow_fileserver_plan *plan, struct act_error *err)
{
    ACT_AUTOFREE char *what = act_sprintf("make the share of the file server '%s'", plan->name);

    return fileserver_make_change(servers, "PUT", what, plan->share_url, json_incref(plan->share), err);
}

int flow_make_fileserver(struct flow_fileservers *servers, const struct flow_fileserver_plan *plan,
                         const struct platform_follow *follow, struct act_error *err)
{
    int rc = plan->account || plan->waits ? put_account(servers, plan, follow, err) : 0;
    bool has_account = !follow->no_wait || !(plan->account || plan->waits);

    if (rc == 0 && plan->tags && has_account)
        rc = patch_tags(servers, plan, err);
    return rc == 0 && plan->share && has_account ? put_share(servers, plan, err) : rc;
}
