/* azureml_cluster.c - nodes, shell, what the cluster is doing. */
#include "platform/azureml_internal.h"
