/* options.h - the options of verbs for clusters and their nodes. */
#ifndef ACT_CLI_CLUSTERS_OPTIONS_H
#define ACT_CLI_CLUSTERS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/* The answers of 'a cluster add'; 'a fileserver' has two of them. */
struct cli_add_options {
    char *kind, *login, *hosts, *partition, *context, *namespace_, *kubeconfig, *image;
    char *subscription, *resource_group, *workspace, *compute, *storage, *container;
    bool project;
};

/* Clusters and file servers that a service makes and changes. */
struct cli_managed_options {
    char *vm_size, *admin_user, *ssh_key, *location, *subnet, *node_image, *redundancy;
    struct act_strv identities;
    uint64_t size;      /* bytes; 0: not given */
    int64_t min, nodes; /* -1: not given */
    int64_t idle_s;     /* 0: not given */
    bool own, low_priority, no_public_ip, no_wait;
};

struct cli_nodes_options {
    bool bad, install;
    char *node;
    struct act_strv ports; /* beside a shell */
    bool keep;             /* the run goes on when its shell has ended */
    int64_t time_s;        /* 0: not given */
};

#endif
