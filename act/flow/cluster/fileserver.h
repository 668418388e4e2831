/* fileserver.h - file servers: NFS shares of premium file storage accounts, made through Azure Resource Manager. They
 * are what a file server of Azure Batch AI was: a folder that all nodes of a virtual network mount.
 *
 *   fileserver.c       reaches the service, lists file servers and removes them
 *   fileserver_body.c  checks what is asked for, makes the bodies of requests, reads those of responses; pure
 *   fileserver_make.c  plans what is left to do for a new one, and does it
 *
 * Source: learn.microsoft.com/rest/api/storagerp (2024-01-01): storage-accounts/create, check-name-availability,
 * get-properties, list, update, delete; file-shares/create, get ($expand=stats), list; skus/list;
 * srp_error_codes_common.
 * learn.microsoft.com/azure/storage/files: create-classic-file-share (kind FileStorage, Premium_LRS and Premium_ZRS),
 * storage-files-scale-targets (100 GiB to 100 TiB, in steps of 1 GiB), files-nfs-protocol (no authentication but the
 * network), storage-files-how-to-mount-nfs-shares (secure transfer is off, the options of mount).
 * learn.microsoft.com/azure/azure-resource-manager/management/async-operations: an account is made with 202 and
 * Location; .../troubleshooting/error-storage-account-name: the codes of names that are taken. */
#ifndef ACT_FLOW_CLUSTER_FILESERVER_H
#define ACT_FLOW_CLUSTER_FILESERVER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "flow/flow.h"
#include "platform/clusters.h"

#define FLOW_FILESERVER_NOUN "file server"
#define FLOW_FILESERVER_TAG  "act:fileserver" /* of an account that ACT made: the name of its share */

/* Where file servers are. */
struct flow_fileservers;
/* Opens a subscription and resource_group (NULL: those of the cluster file; -ACT_USAGE if it has none). The caller
 * closes *out before it closes flow. */
int flow_fileservers_open(struct flow *flow, const char *subscription, const char *resource_group,
                          struct flow_fileservers **out, struct act_error *err) ACT_NODISCARD;
void flow_fileservers_close(struct flow_fileservers *servers);

struct flow_share {
    char *name;
    bool is_nfs;
    int64_t gib;  /* what it may hold, and what is paid for; -1: not said */
    int64_t used; /* bytes; -1: not known */
};
struct flow_fileserver { /* members may be NULL */
    char *name, *group, *location, *redundancy, *state;
    char *host;              /* "myserver.file.core.windows.net" */
    struct act_strv subnets; /* that may use it, by their resource ids */
    int64_t endpoints;       /* how many private ones it has */
    bool is_open;            /* to all networks: then NFS does not work */
    bool is_encrypted_only;  /* secure transfer is on: then only mounts with TLS work */
    bool is_ours;            /* ACT made it */
    struct flow_share *shares;
    size_t n_shares;
};
void flow_fileserver_release(struct flow_fileserver *server);
struct flow_fileserver_list {
    struct flow_fileserver *v;
    size_t n;
};
void flow_fileserver_list_release(struct flow_fileserver_list *list);

/* Lists the premium file accounts of the resource group, or with all of the subscription, without what is used. Warns
 * about shares that cannot be listed. The caller releases out. */
int flow_list_fileservers(struct flow_fileservers *servers, bool all, struct flow_fileserver_list *out,
                          struct act_error *err) ACT_NODISCARD;
/* Gets one, with what is used of its shares. No such account: -ACT_NOT_FOUND; one of another kind: -ACT_CONFIG. */
int flow_get_fileserver(struct flow_fileservers *servers, const char *name, struct flow_fileserver *out,
                        struct act_error *err) ACT_NODISCARD;
/* Deletes the whole account, with all that is in it. */
int flow_delete_fileserver(struct flow_fileservers *servers, const char *name, const struct platform_follow *follow,
                           struct act_error *err) ACT_NODISCARD;

/* ---- making one ---- */

struct flow_new_fileserver {
    const char *name;       /* of the account: nobody else in Azure may have it */
    uint64_t bytes;         /* 0: the least */
    const char *subnet;     /* its resource id */
    const char *location;   /* NULL: where the resource group is */
    const char *redundancy; /* "lrs", "zrs"; NULL: lrs */
    json_t *tags;           /* {"key": "value"}; NULL: none; the caller's */
};
/* Checks, without asking anyone, that it can be asked for at all; else -ACT_USAGE with what it would need. */
int flow_fileserver_check(const struct flow_new_fileserver *wanted, struct act_error *err) ACT_NODISCARD;
/* Returns how many whole GiB it shall hold. */
int64_t flow_fileserver_gib(const struct flow_new_fileserver *wanted);

/* The steps that are left to do. */
struct flow_fileserver_plan {
    const char *name;
    char *location;                /* where it is, or will be */
    char *host;                    /* as above */
    char *account_url, *share_url; /* paths */
    json_t *account, *share;       /* bodies of PUTs; NULL: it is there already */
    json_t *tags;                  /* body of a PATCH of an account that is there without them; else NULL */
    bool waits;                    /* the account is there, and still being made */
};
/* Asks the service what there is, whether the region has such accounts and whether the name is free. The caller
 * releases out after success. */
int flow_plan_fileserver(struct flow_fileservers *servers, const struct flow_new_fileserver *wanted,
                         struct flow_fileserver_plan *out, struct act_error *err) ACT_NODISCARD;
/* Does what the plan says. With follow->no_wait, the same call later makes the share of an account still to be made. */
int flow_make_fileserver(struct flow_fileservers *servers, const struct flow_fileserver_plan *plan,
                         const struct platform_follow *follow, struct act_error *err) ACT_NODISCARD;
void flow_fileserver_plan_release(struct flow_fileserver_plan *plan);

/* ---- what is said of one: new strings ---- */

/* Tells whether a share can be mounted: it is of NFS, and each name in it is one word of a command that somebody may
 * copy. */
bool flow_fileserver_mounts(const struct flow_fileserver *server, const struct flow_share *share);
/* Returns what is mounted, "myserver.file.core.windows.net:/myserver/data". */
char *flow_fileserver_address(const char *host, const char *name, const char *share);
/* Return the command for a node, and the lines of a cluster file for a folder that is mounted so. */
char *flow_fileserver_mount(const char *host, const char *name, const char *share);
char *flow_fileserver_lines(const char *name, const char *share);
/* Returns the last part of a resource id, which points into id. */
const char *flow_fileserver_short(const char *id);

#endif
