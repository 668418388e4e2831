/* keys.h - the parts 'aml_config' and 'azureml' of a cluster file, and what the platforms' names there mean. */
#ifndef ACT_PLATFORM_AZUREML_KEYS_H
#define ACT_PLATFORM_AZUREML_KEYS_H

#include "config/kind.h"

/* The workspace; members may be NULL. */
struct aml_config_keys {
    char *subscription_id, *resource_group, *workspace_name;
};

extern const struct config_part aml_config_keys_part;
static inline struct aml_config_keys *aml_config_keys(const struct config *config)
{
    return config_part(config, &aml_config_keys_part);
}

/* How runs are handed to Azure Machine Learning; members may be NULL, what they mean is in keys.c. */
struct azureml_keys {
    char *endpoint, *history_endpoint;
    char *api_version;
    char *shm_size, *timeout, *docker_args, *instance_type, *identity;
    int64_t priority;       /* -1: not given */
    int64_t scale_interval; /* minutes */
    bool ssh;
    int64_t settle_seconds; /* after a run's end */
};

extern const struct config_part azureml_keys_part;
static inline struct azureml_keys *azureml_keys(const struct config *config)
{
    return config_part(config, &azureml_keys_part);
}

extern const struct config_kind azureml_kinds[]; /* by enum azureml_kind */

#endif
