/* cloud.h - the clouds of Azure: who issues tokens there, and for whom.
 *
 * Source: learn.microsoft.com/azure/azure-government/compare-azure-government-global-azure, the tables of the Azure
 * CLI ("az cloud list"); for DNS zones azcopy's --trusted-microsoft-suffixes.
 */
#ifndef ACT_AUTH_CLOUD_H
#define ACT_AUTH_CLOUD_H

#include <stdbool.h>

#include "base/error.h"

struct auth_cloud {
    const char *name;           /* as the Azure CLI has it */
    const char *other;          /* as the SDKs have it */
    const char *authority;      /* issues the tokens: "https://login.microsoftonline.com" */
    const char *arm_scope;      /* of a token for the resource manager */
    const char *azureml_scope;  /* of one by which a job of Azure Machine Learning is its user */
    const char *suffix;         /* of the hosts of storage accounts: "core.windows.net" */
    const char *arm_domain;     /* the resource manager's host, and in it those of its regions */
    const char *azureml_domain; /* of the run histories of the regions: "api.azureml.ms" */
    const char *vault_domain;   /* of the hosts of key vaults: "vault.azure.net" */
    const char *vault_scope;    /* of a token for them */
    const char *zone_suffix;    /* of storage accounts in DNS zones: "storage.azure.net"; NULL: none */
};

/* The scope of a token for Blob Storage, in every cloud. */
#define AUTH_STORAGE_SCOPE "https://storage.azure.com/.default"

/* Finds the cloud that AZURE_CLOUD names; else that of the host of endpoint (may be NULL), which may be a storage
 * account, the resource manager or a run history; else that whose authority is AZURE_AUTHORITY_HOST; else the public
 * one. An unknown AZURE_CLOUD, or one that contradicts the endpoint, is -ACT_CONFIG. */
int auth_cloud_find(const char *endpoint, const struct auth_cloud **out, struct act_error *err) ACT_NODISCARD;

/* Tells whether a host, as http_host() gives it, is one of the cloud's (NULL: of any cloud's). */
bool auth_cloud_has(const struct auth_cloud *cloud, const char *host);

/* Tells whether a host is that of a key vault of the cloud. */
bool auth_cloud_is_vault(const struct auth_cloud *cloud, const char *host);

/* Refuses a URL (may be NULL) whose host is known to belong to another cloud, with -ACT_CONFIG: a token must not go
 * there. */
int auth_cloud_check(const struct auth_cloud *cloud, const char *url, struct act_error *err) ACT_NODISCARD;

/* Returns the authority, AZURE_AUTHORITY_HOST or else the cloud's, in *out: a new string without a final slash. One
 * that is neither https nor on this machine, or belongs to another cloud, is -ACT_CONFIG. */
int auth_cloud_authority(const struct auth_cloud *cloud, char **out, struct act_error *err) ACT_NODISCARD;

#endif
