/* clusters.h - the verbs for clusters and their nodes. 'a cluster' is in managed.c (the clusters of a service), files.c
 * and add.c (cluster files), and login.c (the login to a Kubernetes cluster). */
#ifndef ACT_CLI_CLUSTERS_CLUSTERS_H
#define ACT_CLI_CLUSTERS_CLUSTERS_H

#include "cli/command/command.h"

/* The verbs of 'a cluster' that managed.c does not have; name is the word after the verb, or NULL. */
int cli_list_own(struct cli *cli, struct act_error *err);
int cli_use_cluster(struct cli *cli, const char *name, struct act_error *err);
int cli_edit_cluster(struct cli *cli, const char *name, struct act_error *err);
int cli_rename_cluster(struct cli *cli, const char *name, struct act_error *err);
int cli_remove_cluster(struct cli *cli, const char *name, struct act_error *err);
int cli_add_cluster(struct cli *cli, const char *name, struct act_error *err);
int cli_login_cluster(struct cli *cli, const char *name, struct act_error *err);

/* Does what a platform says of a command on a node, which may have run already: 'a ssh' becomes that program. */
struct platform_jobs;
struct platform_shell;
struct platform_summary;
int cli_run_shell(struct cli *cli, const struct platform_shell *shell, struct act_error *err);

/* Opens the terminal of a run of 'a shell' that is there. Returns the exit status of the shell. */
struct flow_run;
int cli_attend_shell(struct cli *cli, struct flow_run *run, struct act_error *err);

/* Adds the first words of a child that is this program with another verb, and options of this command that hold for it,
 * too. */
void cli_push_child(const struct cli *cli, const char *verb, struct act_strv *out);

/* Ports of a node (NULL: the first one) of a run, each "[LOCAL:]PORT", or as OpenSSH has it "LOCAL:localhost:PORT". */
struct cli_ports {
    const struct flow_run *run;
    const char *node;
    char *const *v;
    size_t n;
    void (*ready)(void *arg, uint16_t port); /* hears of the first one when the connection is there; may be NULL */
    bool (*is_over)(void *arg);              /* of what this goes on beside, as on its terminal: asked each second, and
                                              * after a signal; NULL: until Ctrl-C */
    void *arg;
};
/* Checks words that name ports. */
int cli_check_ports(char *const *words, size_t n, struct act_error *err);
/* Leads from ports of this machine to those of a node until it is over, or the run has ended: then 0. */
int cli_forward(struct cli *cli, const struct cli_ports *ports, struct act_error *err);

/* Leads from a port of this machine (0: one that is free) to what a run of 'a notebook' serves, until Ctrl-C or the end
 * of the run: then 0. ready() hears of the port when the connection is there. */
int cli_forward_service(struct cli *cli, const struct flow_run *run, uint16_t here,
                        void (*ready)(void *arg, uint16_t port), void *arg, struct act_error *err);

/* Return, as 'a blame --json' and 'a summary --json' print them, at most max jobs of a cluster, its partitions, and how
 * many nodes are in which state (null: not known): new references. */
json_t *cli_jobs_json(const struct platform_jobs *jobs, size_t max);
json_t *cli_pools_json(const struct platform_summary *s);
json_t *cli_node_states_json(const struct platform_summary *s);

/* The options of 'a cluster add' alone. */
#define CLI_ADD_OPTIONS                                                                                                \
    "kind project login hosts partition context namespace kubeconfig image subscription resource-group workspace "     \
    "compute storage container"

int cmd_blame(struct cli *cli, struct act_error *err);
int cmd_cluster(struct cli *cli, struct act_error *err);
int cmd_env(struct cli *cli, struct act_error *err);
int cmd_fileserver(struct cli *cli, struct act_error *err);
int cmd_forward(struct cli *cli, struct act_error *err);
int cmd_nodes(struct cli *cli, struct act_error *err);
int cmd_notebook(struct cli *cli, struct act_error *err);
int cmd_session(struct cli *cli, struct act_error *err);
int cmd_shell(struct cli *cli, struct act_error *err);
int cmd_attach(struct cli *cli, struct act_error *err);
int cmd_interrupt(struct cli *cli, struct act_error *err);
int cmd_input(struct cli *cli, struct act_error *err);
int cmd_ssh(struct cli *cli, struct act_error *err);
int cmd_ssh_config(struct cli *cli, struct act_error *err);
int cmd_sshd(struct cli *cli, struct act_error *err);
int cmd_summary(struct cli *cli, struct act_error *err);
int cmd_tunnel(struct cli *cli, struct act_error *err);

#endif
