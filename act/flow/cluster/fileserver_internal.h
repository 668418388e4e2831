/* fileserver_internal.h - for the files of file servers only. */
#ifndef ACT_FLOW_CLUSTER_FILESERVER_INTERNAL_H
#define ACT_FLOW_CLUSTER_FILESERVER_INTERNAL_H

#include "arm/arm.h"
#include "auth/cloud.h"
#include "flow/cluster/fileserver.h"

#define STORAGE_VERSION "2024-01-01"
#define ACCOUNT_KIND    "FileStorage"
#define SHARE           "data" /* of an account that ACT makes */

struct flow_fileservers {
    struct arm *arm;
    const struct auth_cloud *cloud;
    char *subscription, *group; /* paths: of the subscription, and of the resource group below it */
    char *group_name;
};

/* The path of an account. New string. */
char *fileserver_url(const struct flow_fileservers *servers, const char *name);
/* An account as the service has it. *out NULL: there is none in the resource group. A new reference. */
int fileserver_get(const struct flow_fileservers *servers, const char *name, json_t **out,
                   struct act_error *err) ACT_NODISCARD;
/* Adds what to do about an error that the service explains with a code only. Returns rc. */
int fileserver_explain(int rc, const char *subnet, struct act_error *err);
/* "myserver.file.core.windows.net" of an account, or of one that is still to be made (NULL). New string. */
char *fileserver_host(const struct flow_fileservers *servers, const char *name, const json_t *account);

/* The SKU of a redundancy: "Premium_LRS" of "lrs" (NULL: that); NULL: there is none. */
const char *fileserver_sku(const char *redundancy);
/* Bodies. New references. */
json_t *fileserver_account_json(const struct flow_new_fileserver *wanted, const char *location);
json_t *fileserver_share_json(int64_t gib);
/* All tags that an account shall have, as an update replaces those that it has; NULL: it has those that are wanted. */
json_t *fileserver_tags_json(const struct flow_new_fileserver *wanted, const json_t *account);
/* What an account is, without its shares. */
struct flow_fileserver fileserver_read(const struct flow_fileservers *servers, const json_t *account);
struct flow_share fileserver_read_share(const json_t *share);
bool fileserver_is_ours(const json_t *account);

#endif
