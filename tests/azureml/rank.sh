#!/bin/bash
# One process of a job with MPI, on the node that it would have: rank.sh PROCESSES_PER_NODE FOLDER COMMAND LOG...
# The log of rank n is the nth name, in the folder.
set -eu
per_node=$1 folder=$2 command=$3
shift 3
logs=("$@")
rank=$OMPI_COMM_WORLD_RANK
export AZUREML_CR_NODE_RANK=$((rank / per_node))
export OMPI_COMM_WORLD_LOCAL_RANK=$((rank % per_node)) OMPI_COMM_WORLD_LOCAL_SIZE=$per_node
export OMPI_COMM_WORLD_NODE_RANK=$OMPI_COMM_WORLD_LOCAL_RANK
AZ_BATCH_IS_CURRENT_NODE_MASTER=$([[ $AZUREML_CR_NODE_RANK == 0 ]] && echo true || echo false)
export AZ_BATCH_IS_CURRENT_NODE_MASTER
exec bash -c "$command" >>"$folder/${logs[rank]}" 2>&1
