/* table.c - the platforms. */
#include "platform/platform_internal.h"

const struct platform_row *const platform_table[] = {
    &platform_azureml[0], &platform_azureml[1], &platform_azureml[2], &platform_slurm,
    &platform_ssh,        &platform_kubernetes, &platform_local,      NULL,
};
