/* cloud.h - the clouds of Azure: who issues tokens there, and for whom.
 *
 * Source: learn.microsoft.com/azure/azure-government/compare-azure-government-global-azure, the tables of the Azure
 * CLI ("az cloud list").
 */
#ifndef ACT_AUTH_CLOUD_H
#define ACT_AUTH_CLOUD_H

#include "base/error.h"

struct auth_cloud {
    const char *name;          /* as the Azure CLI has it */
    const char *other;         /* as the SDKs have it */
    const char *authority;     /* issues the tokens: "https://login.microsoftonline.com" */
    const char *arm_scope;     /* of a token for the resource manager */
    const char *azureml_scope; /* of one by which a job of Azure Machine Learning is its user */
    const char *suffix;        /* of the hosts of storage accounts: "core.windows.net" */
};

/* Of a token for Blob Storage, in every cloud. */
#define AUTH_STORAGE_SCOPE "https://storage.azure.com/.default"

/* The cloud that the host of an account's endpoint (may be NULL) lies in; else the one that AZURE_CLOUD names or whose
 * authority AZURE_AUTHORITY_HOST is; else the public one. An unknown AZURE_CLOUD is -ACT_CONFIG. */
int auth_cloud_find(const char *endpoint, const struct auth_cloud **out, struct act_error *err) ACT_NODISCARD;

/* The authority to ask, without a final slash: AZURE_AUTHORITY_HOST, else the cloud's. One that is neither https nor on
 * this machine is -ACT_CONFIG. New string. */
int auth_cloud_authority(const struct auth_cloud *cloud, char **out, struct act_error *err) ACT_NODISCARD;

#endif
