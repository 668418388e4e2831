/* clusters.c - verbs for clusters and their nodes, one row each. */
#include "cli/clusters/clusters.h"
#include "cli/command/tables.h"
#include "cli/command/verbs.h"

const struct cli_command cli_cluster_commands[] = {
    {.group = "nodes and clusters",
     .name = "nodes",
     .synopsis = "[RUN] | --bad [--forget NODE...]",
     .summary = "the nodes of a run, or those that failed lately",
     .examples =
         "a nodes                        of the run submitted last\na nodes --json 60ce2fc7 | jq -r '.nodes[].name'\n"
         "a nodes --bad                  which were to blame for failures in the last week\n"
         "a -c eu nodes --bad --forget n7    it has been repaired\n",
     .details = "A node that was to blame for the failure of a run (an error of its GPU or network, or its own\n"
                "failure) is remembered for a week; later submits to that cluster avoid it where they can.\n"
                "--json: version (1), id, state and nodes, each with node (its number), name, state, first_rank,\n"
                "ranks, gpus, gpu_ids, address and port (of ssh); null: not known. Azure Machine Learning tells the\n"
                "port, of managed clusters; Slurm and Kubernetes tell addresses. With --bad: version (1) and nodes,\n"
                "each with node, cluster, class, run, time (Unix seconds).",
     .options = "cluster bad forget json",
     N_RUNS(0, ANY),
     .run = cmd_nodes},
    {.name = "shell",
     .synopsis = "[--] [COMMAND [ARGUMENT...]]",
     .summary = "ask the cluster for a node, or several, and open a shell there",
     .examples = "a -n 1 shell                         with one GPU, in the code, as a run has it\n"
                 "a -n 2 shell --time 2h -- python3 -m pdb train.py\n"
                 "a shell --keep                       the run goes on when the shell has ended\n"
                 "a attach @                           come back, when the connection broke\n",
     .details =
         "It is a run as any other: the code is packed, it waits in the queue, with the reason shown, 'a q' lists\n"
         "it, 'a abort' ends it. Its terminal is on the first node, with the run's environment, and all GPUs of\n"
         "the node that the run has. The run ends when the shell ends, and so does this command, with its exit\n"
         "status. Ctrl-C while it waits ends the run.\n"
         "When the connection breaks, shell and run go on for five more minutes, in which this command tries to\n"
         "come back; 'a ssh RUN' does so later.\n"
         "A shell that nobody uses is warned, and then ended (--idle).\n"
         "Without a terminal, COMMAND has the input and output of this command.\n"
         "On Azure Machine Learning there is none: nothing leads to ACT's agent there ('a ssh RUN' opens a shell).\n"
         "--dry-run prints the specification of the run as JSON and starts nothing.",
     .options = "cluster num-gpu param compile-args last-package name tag time idle keep use-bad-nodes dry-run yes",
     A_COMMAND,
     .own_status = true,
     .run = cmd_shell},
    {.name = "notebook",
     .synopsis = "[RUN]",
     .summary = "Jupyter on a node of the cluster, in the browser here",
     .examples = "a -n 1 notebook                      with one GPU; prints the address\n"
                 "a -n 1 notebook --open               and opens it in the browser\n"
                 "a notebook --keep --idle 8h          the run goes on when this command ends\n"
                 "a notebook @                         come back to it\n",
     .details =
         "It is a run as any other: the code is packed, it waits in the queue, with the reason shown, 'a q' lists\n"
         "it, 'a abort' ends it. In the environment of the project it starts JupyterLab, Notebook or Jupyter\n"
         "Server, whichever is there first; a line 'jupyterlab' in requirements.txt brings one. That listens at\n"
         "a socket that only you can open, and wants a token.\n"
         "This command leads there from a port of this machine, which takes only your own processes. When it ends,\n"
         "the run ends too, unless it was started with --keep. When the connection breaks, it is made anew; a run\n"
         "to which nobody is connected ends after five minutes.\n"
         "Kernels and terminals that do nothing are ended (--idle), and with the last one the run.\n"
         "On Azure Machine Learning there is none: nothing leads to ACT's agent there.\n"
         "--dry-run prints the specification of the run as JSON and starts nothing.",
     .options = "cluster num-gpu param compile-args last-package name tag time idle keep port open use-bad-nodes "
                "dry-run yes",
     N_RUNS(0, 1),
     .run = cmd_notebook},
    {.name = "attach",
     .synopsis = "RUN [--rank N]",
     .summary = "come back to the terminal of 'a shell', or to the output of any run, with Ctrl-C",
     .examples = "a attach @                           the run that was submitted last\n"
                 "a attach 60ce2fc7                    its rank 0; Ctrl-C interrupts that\n"
                 "a attach 60ce2fc7 --rank 3\n",
     .details =
         "Of 'a shell': the screen goes on where it was. One terminal at a time is connected: this one takes over\n"
         "from another. If the shell has ended and the run goes on (--keep), it is a new shell.\n"
         "Of any other run: the output of a rank, as it comes. Ctrl-C sends SIGINT to the command of that rank,\n"
         "with all that is in its process group. Ctrl-C twice quickly, or Ctrl-\\, leaves the run alone and ends\n"
         "this command; Ctrl-Z stops it here. On Azure Machine Learning Ctrl-C cannot be sent to a rank.\n"
         "The command of a run of 'a submit --stdin' reads what is typed here, line by line. Ctrl-D, or the end of\n"
         "a file or pipe, ends its input for good. While nobody is attached it waits for more, and so it does when\n"
         "a connection breaks.\n"
         "The exit status is that of the shell or the run; 0 when you leave.",
     .options = "cluster rank",
     N_RUNS(1, 1),
     .own_status = true,
     .run = cmd_attach},
    {.name = "__interrupt",
     .synopsis = "RUN RANK",
     .summary = "interrupt a rank on its node (called by 'a attach')",
     .examples = "a __interrupt 60ce2fc7 0\n",
     .options = "cluster",
     N_RUNS(2, 2),
     .hidden = true,
     .run = cmd_interrupt},
    {.name = "__input",
     .synopsis = "RUN RANK",
     .summary = "bring a rank on its node what is typed (called by 'a attach')",
     .examples = "a __input 60ce2fc7 0\n",
     .options = "cluster",
     N_RUNS(2, 2),
     .hidden = true,
     .run = cmd_input},
    {.name = "__session",
     .synopsis = "RUN [look|stay|service]",
     .summary = "connect with the terminal of a run (called by 'a shell' and 'a attach')",
     .examples = "a __session 60ce2fc7\n",
     .options = "cluster",
     N_RUNS(1, 2),
     .hidden = true,
     .run = cmd_session},
    {.name = "ssh",
     .synopsis = "RUN|ADDRESS [NODE] [-- COMMAND [ARGUMENT...]]",
     .summary = "open a shell, or run a command, on a node of a run",
     .examples = "a ssh 60ce2fc7                       a shell on its first node\n"
                 "a ssh 60ce2fc7 1                     on the second one; 'a nodes RUN' lists them\n"
                 "a ssh 60ce2fc7 n2 -- nvidia-smi\n"
                 "a ssh -L 8080:8080 60ce2fc7          and port 8080 of the node, here, beside the shell\n"
                 "a -c eu ssh 10.0.0.4                 on the node of the cluster that has this address\n"
                 "a ssh 60ce2fc7 -- py-spy dump --pid 4711\n",
     .details =
         "It starts in the folder of the code. On Slurm and Kubernetes it is a part of the run's job, and ends with\n"
         "that. The exit status is that of the shell or the command. On Azure Machine Learning, ssh may reach the\n"
         "host outside the run's container; then it starts in the home folder there.\n"
         "'a ssh RUN' of a run of 'a shell' comes back to its terminal, as 'a attach' does; with NODE or COMMAND\n"
         "it opens another one.\n"
         "-L leads to a port of the node for as long as the shell or command is there, as 'a forward' does; it may\n"
         "be given several times.\n"
         "ADDRESS, as 'a cluster nodes' shows it, is for managed clusters of Azure Machine Learning only.",
     .options = "cluster forward",
     N_RUNS(0, ANY),
     .run = cmd_ssh},
    {.name = "forward",
     .synopsis = "RUN [LOCAL:]PORT...",
     .summary = "reach a port of a run's node from this machine",
     .examples = "a forward 60ce2fc7 8888                  prints http://127.0.0.1:8888/, which leads there\n"
                 "a forward 60ce2fc7 9000:6006             port 6006 of the node, here 9000\n"
                 "a forward 60ce2fc7 0:8888                here one that is free\n"
                 "a forward --node n2 60ce2fc7 8888 6006\n",
     .details = "Only your processes on this machine can connect. They reach what listens on the node's loopback\n"
                "interface: a notebook, TensorBoard, a debugger. If others use the node, that must ask for a token of\n"
                "its own. It goes on until Ctrl-C or the end of the run. When the connection to the node is lost, it\n"
                "is made anew; connections that were open break.\n"
                "On Azure Machine Learning no port can be forwarded: ssh may reach only the host of the container.",
     .options = "cluster node",
     N_RUNS(0, ANY),
     .run = cmd_forward},
    {.name = "ssh-config",
     .synopsis = "",
     .summary = "the nodes of runs as hosts of ssh, scp, rsync and editors",
     .examples = "a ssh-config --install\n"
                 "ssh act-60ce2fc7                      the first node of a run\n"
                 "scp act-60ce2fc7.n2:/tmp/x .          node n2\n"
                 "code --remote ssh-remote+act-ddp /home/me/project\n",
     .details = "Prints what ssh is to read or, with --install, writes it to ~/.ssh/act_config and has ~/.ssh/config\n"
                "include it. Each connection has sshd start on the node, for itself alone: it runs as you, and takes\n"
                "only the key that ACT has made for you. So the node must have OpenSSH's server (openssh-server),\n"
                "which need not run there, and you type no password. On Azure Machine Learning it leads where\n"
                "'a ssh' does.",
     .options = "install",
     N_WORDS(0, 0, CLI_NOTHING),
     .bare = true,
     .run = cmd_ssh_config},
    {.name = "__sshd",
     .synopsis = "HOST USER",
     .summary = "a server of ssh on a node, by input and output (called by ssh, as 'a ssh-config' says)",
     .examples = "a __sshd act-60ce2fc7 me\n",
     .options = "cluster",
     N_RUNS(2, 2),
     .hidden = true,
     .run = cmd_sshd},
    {.name = "__tunnel",
     .synopsis = "RUN [NODE]",
     .summary = "carry connections to a node, by input and output (called by 'a forward')",
     .examples = "a __tunnel 60ce2fc7\n",
     .options = "cluster",
     N_RUNS(1, 2),
     .hidden = true,
     .run = cmd_tunnel},
    {.name = "summary",
     .aliases = "s",
     .synopsis = "",
     .summary = "what the cluster is doing: nodes, GPUs, queue, your runs",
     .examples = "a summary\na -c eu s\na s --json | jq .total.gpus.idle\n",
     .details = "In use: at least partly. Down: also drained or reserved. *: where your runs go. -: not known. On\n"
                "Azure Machine Learning, nodes that would be started on demand count as idle; a virtual cluster shows\n"
                "its quota: GPUS is the limit, IN USE how much is used.\n"
                "--json: version (1), cluster, platform, has_gpus (false: gpus are processors), load (of one\n"
                "machine), total and partitions (name, default, nodes and gpus: total, idle, busy, down; jobs:\n"
                "running, queued, queued_gpus; null: not known), node_states (how many nodes are in each state of the\n"
                "service; null: it does not say), devices (the GPUs of this machine: name, model, memory and used in\n"
                "bytes, users in words, given: whether runs of yours may have it), own_runs (running, queued: the\n"
                "runs of your ledger on this cluster).",
     .options = "cluster param json",
     .run = cmd_summary},
    {.name = "cluster",
     .synopsis =
         "[list | add | use | edit | rename | remove | show | create | resize | autoscale | delete | nodes | login "
         "[NAME [NEW_NAME]]]",
     .summary = "manage cluster files, the clusters of a workspace, and node pools of Kubernetes on Azure",
     .examples = "a cluster add                             asks what it cannot find out, and looks what is there\n"
                 "a cluster add lab --kind slurm --login me@lab.example.org --partition gpu\n"
                 "a cluster add box --kind ssh --hosts me@gpu1,me@gpu2\n"
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
     .details = "Cluster files are yours, in ~/.config/act/clusters, which every project finds, or the project's,\n"
                "which come first. add writes a new one (with --project: into the project), and never overwrites\n"
                "one. It ends with the checks of 'a doctor'. Without a terminal it names the option that is missing.\n"
                "The first cluster that you add becomes the default if its checks find nothing. list without -c lists\n"
                "cluster files unless the default cluster has a workspace; list --own always does. It looks at the\n"
                "files alone ('file ok'); 'a -c NAME doctor' tries the cluster.\n"
                "Clusters of a workspace need a cluster file of platform aml: NAME is one of them (default:\n"
                "compute_target). Node pools need one of platform k8s with an aks part (default: aks.pool). create\n"
                "and delete need NAME.\n"
                "Options that are not given leave values as they are. A new cluster or pool starts without nodes,\n"
                "dedicated, in the region of the workspace or of the Kubernetes cluster. Where there is no Kubernetes\n"
                "cluster, create makes it too, after asking.\n"
                "A change is followed to its end, with its status on stderr. If you interrupt that, the change goes\n"
                "on. delete asks first. login keeps everything else in the kubeconfig, and asks before it replaces\n"
                "anything.\n"
                "--json of cluster files: version (1) and own, each with name, kind, default, hidden (another of its\n"
                "name comes before it), file, ok and problems. Of a change: version, action, name, file, dry_run;\n"
                "of add also kind, default, ok and checks (as of 'a doctor').\n"
                "--json of clusters and node pools: version (1) and clusters, or cluster, each with name, owner (of\n"
                "list --all), type, location, state, error, vm_size, vm_priority, allocation, admin_user, autoscaler,\n"
                "taints, min_nodes, max_nodes, nodes, target_nodes, idle_s, node_states; null: not said.\n"
                "--json of nodes: id, state, public_address, private_address, port, run. Of login: file, context,\n"
                "changed.\n"
                "--dry-run --json: version, dry_run, action, name and, of create, cluster: what it would be.",
     .options =
         "cluster param own all " CLI_ADD_OPTIONS " file vm-size min max nodes idle low-priority admin-user ssh-key "
         "location identity subnet no-public-ip node-image tag no-wait dry-run yes json",
     N_WORDS(1, 3, CLI_CHOICE),
     .alone = "list",
     .then = CLI_CLUSTERS,
     .then_behind = "use edit rename remove",
     .bare = true,
     .verbs = cli_cluster_verbs,
     .run = cmd_cluster},
    {.name = "fileserver",
     .synopsis = "[create | list | show | delete [NAME]]",
     .summary = "manage file servers in Azure: a folder that all nodes of a network can mount",
     .examples = "a fileserver create teamdata --size 1T --subnet ID\n"
                 "a fileserver create teamdata --size 1T --subnet ID --dry-run\n"
                 "a fileserver create teamdata --subnet ID --redundancy zrs\n"
                 "a fileserver list --all            of the whole subscription\n"
                 "a fileserver show teamdata         how full it is, and how to mount it\n"
                 "a fileserver delete teamdata\n",
     .details = "A file server is an NFS 4.1 share of a premium file storage account, the successor of the NFS server\n"
                "of Azure Batch AI. NFS has no logins: the network decides who may use it, so create needs --subnet,\n"
                "the resource id of a subnet that has the service endpoint Microsoft.Storage. NAME is that of the\n"
                "account: 3 to 24 lower-case letters and digits, unique in all of Azure. The capacity is billed day\n"
                "and night, used or not, so create asks first. Run again after an interruption, it continues; it ends\n"
                "with the command that mounts the share and the lines for a cluster file of Slurm or of this machine.\n"
                "Subscription and resource group are those of the cluster of -c, where it has them. delete deletes\n"
                "all data too; what ACT did not make it deletes only after an answer on a terminal.\n"
                "--json: version (1), and servers, or server, each with name, resource_group, location, redundancy,\n"
                "state, made_by_act, networks (ids of subnets), private_endpoints, open (to all networks), and shares\n"
                "(name, protocol, gib, used (bytes; null: not known), address, mount (null: not NFS)). delete: name,\n"
                "deleted.\n"
                "--dry-run --json: version, dry_run, action, name and, of create, requests (method, url, body).",
     .options = "cluster param all size subnet location resource-group subscription redundancy tag no-wait dry-run yes "
                "json",
     N_WORDS(1, 2, CLI_CHOICE),
     .alone = "list",
     .bare = true,
     .verbs = cli_fileserver_verbs,
     .run = cmd_fileserver},
    {.name = "env",
     .synopsis = "[list | show | rm [KEY]]",
     .summary = "the environments that runs have made from requirements.txt or a lock file",
     .examples = "a env list\n"
                 "a -c lab env show 3f9a             its size, and where it is\n"
                 "a env rm 3f9a                      asks; a run that needs it makes it anew\n"
                 "a env list --json | jq '[.environments[].bytes] | add'\n",
     .details =
         "KEY is the beginning of one. What a run uses that has not ended stays. 'a prune' removes those that no\n"
         "run has used for as long as it is told.\n"
         "--json: version (1), cluster and environments, each with key, from (the file), node (that made it),\n"
         "image, made, packages, took_ms, bytes, used (when a run took it up last), runs (how many used it),\n"
         "in_use, being_made and path. rm: version, dry_run, key, bytes.",
     .options = "cluster param dry-run yes json",
     N_WORDS(1, 2, CLI_CHOICE),
     .alone = "list",
     .bare = true,
     .verbs = cli_env_verbs,
     .run = cmd_env},
    {.name = "blame",
     .synopsis = "[--max N]",
     .summary = "who has been running longest on the cluster, or in the workspace",
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
