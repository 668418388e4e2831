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

/* Returns the path of an account, as a new string. */
char *fileserver_url(const struct flow_fileservers *servers, const char *name);
/* Gets an account as the service has it, a new reference; *out is NULL if the resource group has none of that name. */
int fileserver_get(const struct flow_fileservers *servers, const char *name, json_t **out,
                   struct act_error *err) ACT_NODISCARD;
/* Adds what to do about an error that the service explains with a code only. Returns rc. */
int fileserver_explain(int rc, const char *subnet, struct act_error *err);
/* Returns "myserver.file.core.windows.net" of an account, or of one that is still to be made (NULL): a new string. */
char *fileserver_host(const struct flow_fileservers *servers, const char *name, const json_t *account);

/* Returns the SKU of a redundancy, "Premium_LRS" for "lrs" or NULL; NULL: there is none. */
const char *fileserver_sku(const char *redundancy);
/* Make the bodies of requests, new references. */
json_t *fileserver_account_json(const struct flow_new_fileserver *wanted, const char *location);
json_t *fileserver_share_json(int64_t gib);
/* Makes the body with all tags that an account shall have, as an update replaces them; NULL: it has those wanted. */
json_t *fileserver_tags_json(const struct flow_new_fileserver *wanted, const json_t *account);
/* Reads an account, without its shares, and a share. The caller releases both. */
struct flow_fileserver fileserver_read(const struct flow_fileservers *servers, const json_t *account);
struct flow_share fileserver_read_share(const json_t *share);

#endif
