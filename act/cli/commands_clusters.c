/* commands_clusters.c - verbs for clusters and their nodes, one row each. */
#include "cli/commands_internal.h"

const struct cli_command cli_cluster_commands[] = {
    {.name = "nodes",
     .synopsis = "RUN | --bad [--forget NODE...]",
     .summary = "the nodes of a run, or those that failed lately",
     .examples = "a nodes 60ce2fc7\na nodes --json 60ce2fc7 | jq -r '.nodes[].name'\n"
                 "a nodes --bad                  which were to blame for failures in the last week\n"
                 "a -c eu nodes --bad --forget n7    it has been repaired\n",
     .details =
         "A node that was to blame for the failure of a run (an error of its GPU, its network, or its own end) is\n"
         "remembered for a week; later submits to that cluster leave it out where they can.\n"
         "--json: version (1), id, state and nodes, each with node (its number), name, state, first_rank,\n"
         "ranks, gpus, gpu_ids, address and port (of ssh); null: not known. Azure Machine Learning tells the\n"
         "port, of managed clusters; Slurm and Kubernetes tell addresses. With --bad: version (1) and nodes, each\n"
         "with node, cluster, class, run, time (Unix seconds).",
     .options = "cluster bad forget json",
     .max_words = ANY,
     .complete = CLI_RUNS,
     .of_runs = true,
     .run = cmd_nodes},
    {.name = "ssh",
     .synopsis = "RUN|ADDRESS [NODE] [-- COMMAND [ARGUMENT...]]",
     .summary = "a shell, or a command, on a node of a running run",
     .examples = "a ssh 60ce2fc7                       a shell on its first node\n"
                 "a ssh 60ce2fc7 1                     on the second one; 'a nodes RUN' lists them\n"
                 "a ssh 60ce2fc7 n2 -- nvidia-smi\n"
                 "a -c eu ssh 10.0.0.4                 on the node of the cluster that has this address\n"
                 "a ssh 60ce2fc7 -- py-spy dump --pid 4711\n",
     .details = "It starts in the folder of the code and ends with the run at the latest. The exit status is that\n"
                "of the shell or the command. On Azure Machine Learning ssh may lead to the machine around the\n"
                "container of the run: then it starts in the home there.\n"
                "ADDRESS, as 'a cluster nodes' shows it, is for managed clusters of Azure Machine Learning only.",
     .options = "cluster",
     .max_words = ANY,
     .complete = CLI_RUNS,
     .of_runs = true,
     .run = cmd_ssh},
    {.name = "summary",
     .aliases = "s",
     .synopsis = "",
     .summary = "what the cluster is doing: nodes, GPUs, queue, your runs",
     .examples = "a summary\na -c eu s\na s --json | jq .total.gpus.idle\n",
     .details = "In use: at least partly. Down: also drained or reserved. *: where your runs go. -: not known. On\n"
                "Azure Machine Learning nodes that would be started count as idle; a virtual cluster shows its quota:\n"
                "GPUS is the limit, IN USE how much is used.\n"
                "--json: version (1), cluster, platform, has_gpus (false: gpus are processors), load (of one\n"
                "machine), total and partitions (name, default, nodes and gpus: total, idle, busy, down; jobs:\n"
                "running, queued, queued_gpus; null: not known),\n"
                "node_states (how many nodes are in each state of the service; null: it does not say),\n"
                "own_runs (running, queued: the runs of your ledger on this cluster).",
     .options = "cluster param json",
     .run = cmd_summary},
    {.name = "cluster",
     .synopsis =
         "list | add | use | edit | rename | remove | show | create | resize | autoscale | delete | nodes | login "
         "[NAME [NEW_NAME]]",
     .summary = "your clusters: add, list, choose; and those of a workspace, or node pools of Kubernetes on Azure",
     .examples = "a cluster add                             asks what it cannot find out, and looks what is there\n"
                 "a cluster add lab --kind slurm --login me@lab.example.org --partition gpu\n"
                 "a cluster add here --kind local --project\n"
                 "a cluster list                            all that -c can name\n"
                 "a cluster use lab                         the default, where the project has none\n"
                 "a cluster edit lab                        with $EDITOR, checked before it is saved\n"
                 "a cluster rename lab big\n"
                 "a cluster remove big\n"
                 "a -c aml cluster list                     the managed clusters of its workspace\n"
                 "a -c aml cluster list --all               of all workspaces of the subscription\n"
                 "a cluster create gpu --vm-size STANDARD_NC6 --max 4 --idle 5m\n"
                 "a cluster create gpu --vm-size STANDARD_NC6 --ssh-key ~/.ssh/id_rsa.pub\n"
                 "a cluster create gpu -f cluster.json      as a file of Azure Batch AI describes it\n"
                 "a cluster create gpu --vm-size STANDARD_NC6 --max 4 --identity system\n"
                 "a cluster resize gpu --nodes 2            exactly two nodes from now on\n"
                 "a cluster autoscale gpu --min 0 --max 8   as many as there is work for\n"
                 "a cluster nodes gpu                       with addresses, and whose run they have\n"
                 "a cluster delete -y --no-wait gpu\n"
                 "a -c aks cluster login                    the login to the cluster, into the kubeconfig\n",
     .details =
         "add, list, use, edit, rename and remove are about cluster files: yours in ~/.config/act/clusters,\n"
         "which every project finds, and those of the project, which come before them. add writes one (--project:\n"
         "into the project), nothing over what is there, and ends with what 'a doctor' says. Without a terminal\n"
         "it names the option that is missing. The first one becomes the default. list without -c lists them\n"
         "where the default cluster has no workspace, --own in any case.\n"
         "The other verbs need a cluster file of platform aml, of which NAME is a managed cluster (by default\n"
         "its compute_target), or of platform k8s with an aks part, of which it is a node pool (by default\n"
         "aks.pool); create and delete need it. --max N: at most N nodes. Options that are not given keep\n"
         "their values; new ones start without nodes, are dedicated and are in the workspace's, or\n"
         "the cluster's, region. create makes the Kubernetes cluster too where there is none, and asks first.\n"
         "A change is followed to its end, with its status on stderr; if that is interrupted, the change goes\n"
         "on. delete asks first. login keeps all else in the kubeconfig, and asks before it replaces.\n"
         "--json: version (1), and clusters, a cluster (name, owner (with list --all), type, location, state,\n"
         "error, vm_size,\n"
         "vm_priority, allocation, admin_user, autoscaler, taints, min_nodes, max_nodes, nodes, target_nodes,\n"
         "idle_s and node_states), nodes (id, state, public_address, private_address, port, run), or file,\n"
         "context and changed; null: not said. --dry-run --json: version, dry_run, action, name and, of create,\n"
         "cluster: what it would be. Of cluster files: own, each with name, kind, default, hidden (another of its\n"
         "name comes before it), file, ok and problems; of a change: version, action, name, file, dry_run.",
     .options =
         "cluster param own all " CLI_ADD_OPTIONS " file vm-size min max nodes idle low-priority admin-user ssh-key "
         "location identity subnet no-public-ip node-image tag no-wait dry-run yes json",
     .min_words = 1,
     .max_words = 3,
     .complete = CLI_CHOICE,
     .then = CLI_CLUSTERS,
     .then_behind = "use edit rename remove",
     .bare = true,
     .run = cmd_cluster},
    {.name = "fileserver",
     .synopsis = "create | list | show | delete [NAME]",
     .summary = "file servers in Azure: a folder that all nodes of a network mount",
     .examples = "a fileserver create teamdata --size 1T --subnet ID\n"
                 "a fileserver create teamdata --size 1T --subnet ID --dry-run\n"
                 "a fileserver create teamdata --subnet ID --redundancy zrs\n"
                 "a fileserver list --all            of the whole subscription\n"
                 "a fileserver show teamdata         how full it is, and how to mount it\n"
                 "a fileserver delete teamdata\n",
     .details =
         "A file server is an NFS 4.1 share of a premium file storage account, which is what the NFS server of\n"
         "Azure Batch AI is today. NFS knows no login: who may use it is the network, so create wants --subnet, the\n"
         "resource id of one that has the service endpoint Microsoft.Storage. NAME is that of the account: 3 to 24\n"
         "small letters and digits that nobody else in Azure has. What it may hold is paid for day and night, used\n"
         "or not; create asks first. It goes on where it was interrupted, and ends with the command that mounts the\n"
         "share and the lines of a cluster file of Slurm or of this machine. Subscription and resource group are\n"
         "those of the cluster of -c, where it has some. delete takes all data with it; what ACT did not make it\n"
         "deletes only for somebody who answers on a terminal.\n"
         "--json: version (1), and servers, or server, each with name, resource_group, location, redundancy, state,\n"
         "made_by_act, networks (ids of subnets), private_endpoints, open (to all networks), and shares (name,\n"
         "protocol, gib, used (bytes; null: not known), address, mount (null: not NFS)). delete: name, deleted.\n"
         "--dry-run --json: version, dry_run, action, name and, of create, requests (method, url, body).",
     .options = "cluster param all size subnet location resource-group subscription redundancy tag no-wait dry-run yes "
                "json",
     .min_words = 1,
     .max_words = 2,
     .complete = CLI_CHOICE,
     .bare = true,
     .run = cmd_fileserver},
    {.name = "blame",
     .synopsis = "[--max N]",
     .summary = "who runs longest on the cluster, or in the workspace",
     .examples = "a blame                 the 20 jobs of everybody that run longest\n"
                 "a -c eu blame --max 0   all running jobs\n"
                 "a blame --json | jq -r '.jobs[] | [.user, .gpus] | @tsv'\n",
     .details = "On Azure Machine Learning: on all computes of the workspace.\n"
                "--json: version (1), cluster, platform, total and jobs, each with job, user, experiment, name,\n"
                "node_names, nodes, gpus, running_s, limit_s (null: not known, or none).",
     .options = "cluster param max json",
     .run = cmd_blame},
    {.next_table = cli_data_commands},
};
