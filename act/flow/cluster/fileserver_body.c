/* fileserver_body.c - checks what is asked for, makes the bodies of requests and reads those of responses; pure. */
#include <string.h>
#include <strings.h>

#include "base/units.h"
#include "codec/json.h"
#include "flow/cluster/fileserver_internal.h"

#define GIB (UINT64_C(1) << 30)

enum { LEAST_GIB = 100, MOST_GIB = 100 << 10, NAME_MIN = 3, NAME_MAX_LEN = 24 };

static const struct {
    const char *redundancy, *sku;
} skus[] = {{"lrs", "Premium_LRS"}, {"zrs", "Premium_ZRS"}};

/* ---- before it is made ---- */

const char *fileserver_sku(const char *redundancy)
{
    for (size_t i = 0; i < sizeof(skus) / sizeof(skus[0]); i++)
        if (!redundancy || strcasecmp(redundancy, skus[i].redundancy) == 0)
            return skus[i].sku;
    return NULL;
}

int64_t flow_fileserver_gib(const struct flow_new_fileserver *wanted)
{
    return wanted->bytes ? (int64_t)(wanted->bytes / GIB) : LEAST_GIB;
}

static bool fileserver_body_is_name(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789");

    return !name[len] && len >= NAME_MIN && len <= NAME_MAX_LEN;
}

static int fileserver_body_check_size(uint64_t bytes, struct act_error *err)
{
    char text[ACT_UNIT_TEXT];

    if (bytes == 0 || (bytes % GIB == 0 && bytes >= LEAST_GIB * GIB && bytes <= MOST_GIB * GIB))
        return 0;
    act_size_to_text(bytes, text);
    return act_error_set(err, ACT_USAGE, "a file server cannot hold %s: it has 100 GiB to 100 TiB, in whole GiB", text);
}

int flow_fileserver_check(const struct flow_new_fileserver *wanted, struct act_error *err)
{
    if (!fileserver_body_is_name(wanted->name))
        return act_error_set(err, ACT_USAGE,
                             "'%s' cannot be the name of a file server: it has %d to %d small letters and digits, and "
                             "nobody else in Azure may have it",
                             wanted->name, NAME_MIN, NAME_MAX_LEN);
    if (!fileserver_sku(wanted->redundancy))
        return act_error_set(err, ACT_USAGE, "--redundancy is lrs (in one place) or zrs (in several zones), not '%s'",
                             wanted->redundancy);
    if (!wanted->subnet)
        return act_error_set(err, ACT_USAGE,
                             "a file server needs --subnet, the resource id of the network that may use it: NFS knows "
                             "no login");
    return fileserver_body_check_size(wanted->bytes, err);
}

/* ---- what is sent ---- */

json_t *fileserver_account_json(const struct flow_new_fileserver *wanted, const char *location)
{
    json_t *tags = wanted->tags ? json_copy(wanted->tags) : json_object();

    json_object_set_new(tags, FLOW_FILESERVER_TAG, json_string(SHARE));
    return json_pack("{s:s, s:s, s:{s:s}, s:o, s:{s:b, s:s, s:b, s:{s:s, s:[{s:s, s:s}]}}}", "location", location,
                     "kind", ACCOUNT_KIND, "sku", "name", fileserver_sku(wanted->redundancy), "tags", tags,
                     "properties", "supportsHttpsTrafficOnly", 0, "minimumTlsVersion", "TLS1_2",
                     "allowBlobPublicAccess", 0, "networkAcls", "defaultAction", "Deny", "virtualNetworkRules", "id",
                     wanted->subnet, "action", "Allow");
}

/* Without root squash: in containers, runs are root. */
json_t *fileserver_share_json(int64_t gib)
{
    return json_pack("{s:{s:s, s:s, s:I}}", "properties", "enabledProtocols", "NFS", "rootSquash", "NoRootSquash",
                     "shareQuota", (json_int_t)gib);
}

json_t *fileserver_tags_json(const struct flow_new_fileserver *wanted, const json_t *account)
{
    json_t *there = json_object_get(account, "tags");
    json_t *all = json_is_object(there) ? json_copy(there) : json_object();

    json_object_update(all, wanted->tags);
    if (!json_equal(all, there))
        return json_pack("{s:o}", "tags", all);
    json_decref(all);
    return NULL;
}

/* ---- what there is ---- */

static bool fileserver_is_ours(const json_t *account)
{
    return json_object_get(json_object_get(account, "tags"), FLOW_FILESERVER_TAG) != NULL;
}

/* "mygroup" of ".../resourceGroups/mygroup/...". New string, or NULL. */
static char *fileserver_body_group_of(const char *id)
{
    static const char groups[] = "/resourceGroups/";
    const char *at = strcasestr(id, groups);

    at = at ? at + strlen(groups) : NULL;
    return at ? act_strndup(at, strcspn(at, "/")) : NULL;
}

/* "lrs" of "Premium_LRS"; another SKU as it is. New string. */
static char *redundancy_of(const char *sku)
{
    for (size_t i = 0; i < sizeof(skus) / sizeof(skus[0]); i++)
        if (strcasecmp(sku, skus[i].sku) == 0)
            return act_strdup(skus[i].redundancy);
    return act_strdup(sku);
}

struct flow_fileserver fileserver_read(const struct flow_fileservers *servers, const json_t *account)
{
    const json_t *p = json_object_get(account, "properties"), *rules = json_object_get(p, "networkAcls"), *rule;
    const char *name = codec_json_str(account, "name", "");
    struct flow_fileserver s = {
        .name = act_strdup(name),
        .group = fileserver_body_group_of(codec_json_str(account, "id", "")),
        .location = codec_json_strdup(account, "location"),
        .redundancy = redundancy_of(codec_json_str(json_object_get(account, "sku"), "name", "")),
        .state = codec_json_strdup(p, "provisioningState"),
        .host = fileserver_host(servers, name, account),
        .endpoints = (int64_t)json_array_size(json_object_get(p, "privateEndpointConnections")),
        .is_open = strcmp(codec_json_str(rules, "defaultAction", "Allow"), "Allow") == 0,
        .is_encrypted_only = json_is_true(json_object_get(p, "supportsHttpsTrafficOnly")),
        .is_ours = fileserver_is_ours(account),
    };
    size_t i;

    json_array_foreach(json_object_get(rules, "virtualNetworkRules"), i, rule)
        act_strv_push(&s.subnets, codec_json_str(rule, "id", ""));
    return s;
}

struct flow_share fileserver_read_share(const json_t *share)
{
    enum { SAID_MOST_GIB = 1 << 30 };
    const json_t *p = json_object_get(share, "properties");

    return (struct flow_share){
        .name = act_strdup(codec_json_str(share, "name", "")),
        .is_nfs = strcmp(codec_json_str(p, "enabledProtocols", "SMB"), "NFS") == 0,
        .gib = codec_json_int_in(p, "shareQuota", 0, SAID_MOST_GIB, -1),
        .used = codec_json_int(p, "shareUsageBytes", -1),
    };
}

/* ---- what is said of it ---- */

/* Tells whether Azure takes the text for a name. */
static bool is_plain(const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-";

    return text && *text && !strchr("-.", *text) && !text[strspn(text, plain)];
}

bool flow_fileserver_mounts(const struct flow_fileserver *server, const struct flow_share *share)
{
    return share->is_nfs && is_plain(server->host) && is_plain(server->name) && is_plain(share->name);
}

char *flow_fileserver_address(const char *host, const char *name, const char *share)
{
    return act_sprintf("%s:/%s/%s", host, name, share);
}

char *flow_fileserver_mount(const char *host, const char *name, const char *share)
{
    return act_sprintf("sudo mkdir -p /mnt/%s && sudo mount -t nfs -o vers=4,minorversion=1,sec=sys,nconnect=4 "
                       "%s:/%s/%s /mnt/%s",
                       name, host, name, share, name);
}

char *flow_fileserver_lines(const char *name, const char *share)
{
    return act_sprintf("config_param:\n  %s_folder:\n    mode: path\n    path: /mnt/%s\n", share, name);
}

const char *flow_fileserver_short(const char *id)
{
    const char *slash = strrchr(id, '/');

    return slash ? slash + 1 : id;
}
