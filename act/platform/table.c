/* table.c - the platforms, in the order in which they are offered. */
#include "platform/platform_internal.h"

const struct platform_row *const platform_table[] = {
    &platform_local,      &platform_slurm,      &platform_ssh,        &platform_kubernetes,
    &platform_azureml[0], &platform_azureml[1], &platform_azureml[2], NULL,
};
