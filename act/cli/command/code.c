/* code.c - verbs for the code and for what runs it, one row each. */
#include <unistd.h>

#include "cli/command/tables.h"
#include "cli/start/start.h"

const struct cli_command cli_code_commands[] = {
    {.group = "code, and starting runs",
     .name = "init",
     .aliases = "initi",
     .synopsis = "",
     .summary = "package the code and upload it",
     .examples = "a init                 pack the project and store it\n"
                 "a init --dry-run       what goes in, what stays out and why, the largest files, what is to be done\n"
                 "a -c eu init           for the cluster aux_data/aml/eu.yaml\n",
     .details = "The package is named by its content and stored once: nothing is uploaded when nothing changed.\n"
                "What stays out: what zip_options of the cluster file, git or .actignore exclude, mapped folders, dot\n"
                "files at the top level, and, without patterns in zip_options, a built-in list.\n"
                "Packing is always incremental, so initi is\n"
                "the same as init: files that have not changed are not read again, and of a large package only the\n"
                "parts that the store lacks are uploaded. compile.aml.sh runs on the nodes.\n"
                "--json: version (1), sha256, bytes, entries, files_read, bytes_sent and published. --dry-run --json:\n"
                "version (1), files, entries, bytes, content, folders, left_out (path, rule), rules, largest,\n"
                "files_to_compress, bytes_to_compress, sha256 (null: not known yet) and stored.",
     .options = "cluster param dry-run yes json",
     .run = cmd_init},
    {.name = "initc",
     .aliases = "initic",
     .synopsis = "",
     .summary = "package the code, compile it here in the cluster's image, and upload it",
     .examples = "a initc                pack the project, store it, run its compile.aml.sh, store the result\n"
                 "a -ca --fast initc     with an argument for compile.aml.sh\n",
     .details = "requirements.txt is installed and compile.aml.sh runs in docker.image, in a container that docker or\n"
                "podman makes on this machine; where neither is installed, nothing is done. Runs get the compiled\n"
                "package as long as neither the project nor the image has changed since, and still run\n"
                "compile.aml.sh, which then finds its work done.\n"
                "--json, also with --dry-run: what 'a init' prints, of the compiled package.",
     .options = "cluster param compile-args dry-run yes json",
     .run = cmd_initc},
    {.name = "submit",
     .synopsis = "[--] COMMAND [ARGUMENT...] | -f FILE",
     .summary = "run a command on the cluster; prints the run id",
     .examples = "a submit python3 train.py --lr 0.1\n"
                 "a -n 8 submit python3 train.py    on 8 GPUs, one process each, under mpirun\n"
                 "a -n 2 submit -- hostname         everything behind -- is the command\n"
                 "a submit --dry-run nvidia-smi     print the run's specification, start nothing\n"
                 "id=$(a submit ./job.sh) && a wait $id\n"
                 "a submit --retry 3 --retry-on nccl_timeout,node_failure python3 train.py\n"
                 "a submit --name base --tag lr=0.1 python3 train.py   'a q --tag lr=0.1' finds it again\n"
                 "a -n 8 submit --here python3 train.py   on the nodes of the Slurm job that this shell is in\n"
                 "a submit --after prep,@ python3 train.py   when the run prep and the last one have completed\n"
                 "a submit --hang 20m python3 train.py   ended if it is silent and idle for 20 minutes\n"
                 "a submit --stdin python3 ask.py   'a attach' shows what it asks, and brings it the answers\n"
                 "a -c eu submit -f job.json        what a job file of Azure Batch AI says\n"
                 "a submit --dry-run -f job.json    what that becomes, and what has no counterpart\n",
     .details =
         "The first word that is not an option begins the command; its words reach every process exactly as\n"
         "they are, without a shell, also those that look like options of ACT: a note names such a word where no\n"
         "-- was typed and the script does not know it, and on a terminal --dry-run is asked about. The code\n"
         "is packed as it is now; --last-package takes what 'a init' or a submit stored last.\n"
         "With -f, the command, the environment, the nodes and processes (unless -n is given), the image and\n"
         "the time limit come from the file. Its volumes become mapped folders: $AZ_BATCHAI_MOUNT_ROOT/data\n"
         "and $AZ_BATCHAI_JOB_MOUNT_ROOT/data are the folder data. What has no counterpart is reported.\n"
         "A run can be named by its --name wherever its id can. Several may have the same name; 'a q --name\n"
         "NAME' lists them. Names and keys of tags are letters, digits, '.', '_' and '-'.\n"
         "--retry 3 tries a failed run again up to three times, after a pause, even if this machine is off by\n"
         "then. --retry-on says after which failures: by default those of nodes, GPUs, networks and storage,\n"
         "not those of the command itself. Nodes that failed lately are avoided unless --use-bad-nodes is\n"
         "given.\n"
         "--after RUN[,RUN...] begins when these runs have completed; if one does not, this one is canceled,\n"
         "with a reason that names it. --after-any: when they have ended, also if they failed. What has\n"
         "completed counts, wherever it was. What has not must be on the same machine or Slurm; on Kubernetes\n"
         "and Azure Machine Learning, 'a wait RUN && a submit ...' does it.\n"
         "With --hang (key hang) the run fails with class hang when for this long no rank has written a line\n"
         "and all GPUs (or, where there are none, all processes) have been idle; what every process was doing\n"
         "is then in system_logs/stacks_NODE.txt. -p 'hang_gpus: any' ignores the GPUs, which look busy while\n"
         "NCCL kernels wait. Not on Azure Machine Learning.\n"
         "With --stdin the command reads what is typed into 'a attach RUN', and waits while nobody is there.\n"
         "Without it, it has no input. 'a attach' says which rank it types to. Not on Azure Machine Learning.\n"
         "--here, in the shell of a Slurm job (salloc, srun --pty), starts the run as a step of that job, at\n"
         "once and on its first nodes; it ends with the job at the latest, and 'a abort' ends it alone.\n"
         "--json: version (1), id, cluster, platform, nodes, processes_per_node, package, resubmit_of (null),\n"
         "after (the runs that it waits for), name (null: none), tags;\n"
         "--dry-run prints the specification as JSON in any case; on Kubernetes, what kubectl would take.",
     .options = "cluster num-gpu param single compile-args file storage-account-name storage-account-key last-package "
                "name tag after after-any stdin hang retry retry-on use-bad-nodes here dry-run yes json",
     A_COMMAND,
     .run = cmd_submit},
    {.name = "sweep",
     .synopsis = "--grid NAME=VALUE,... [--] COMMAND [ARGUMENT...] | --show SWEEP",
     .summary = "submit a command once for each combination of values, and compare the runs",
     .examples = "a sweep --grid lr=1e-3,1e-4 --grid n=2,4 -- python3 train.py {lr} {n}\n"
                 "a sweep --grid seed=1,2,3 --max-parallel 2 --name seeds -- ./go {seed}\n"
                 "a sweep --retry 3 --hang 20m --grid lr=1,2 -- ./go {lr}   each is tried again by itself\n"
                 "a sweep --dry-run --grid lr=1,2 -- ./go {lr}   the commands, one a line\n"
                 "a sweep --show @ --metric loss --min         the last sweep, the lowest loss first\n"
                 "a sweep --show seeds --metric acc --max --csv > acc.csv\n"
                 "s=$(a sweep --grid lr=1,2 -- ./go {lr}) && a wait $s\n",
     .details =
         "Prints the id of the sweep. Each combination is a run of its own, all of one package, with the tags\n"
         "sweep=ID and NAME=VALUE of each grid; --name N calls them N.1, N.2, ... The last grid varies\n"
         "fastest. {NAME} in a word of the command stands for the value, {{ and }} for braces; values cannot\n"
         "contain commas. A name without a grid, an unused grid and any other brace are refused before\n"
         "anything is submitted. The same command with the same code continues the same sweep: only what is\n"
         "missing is submitted, and nothing twice. Another --name, or changed code, makes another sweep.\n"
         "It asks before it submits more than 100 runs; a million is the limit. --retry, --retry-on,\n"
         "--use-bad-nodes, --after and --hang work as in 'a submit', for each run separately.\n"
         "On Slurm, up to 1000 runs (or MaxArraySize, if that is less) are one job array, which --max-parallel\n"
         "limits; more runs are several arrays, with --max-parallel one after another. On other platforms runs\n"
         "are submitted one by one; with --max-parallel this command keeps waiting for room until the last is\n"
         "submitted.\n"
         "--show with --metric: the best value of each run, where it was reached (step, epoch or value) and\n"
         "the last value; runs that end in NaN, and those without the number, come last. Fetches the logs as\n"
         "'a q' does.\n"
         "--json: version (1), sweep (null in a dry run that has no package yet), cluster, points, kept,\n"
         "submitted and parameters. --show --json: version (1), sweep, metric, by (min or max), at (what best_at\n"
         "counts: step, epoch or value) and runs, each with id, name, state, age_s, parameters,\n"
         "best, best_at and last (null: none).",
     .options =
         "cluster num-gpu param single compile-args grid max-parallel last-package name tag after after-any hang "
         "retry retry-on use-bad-nodes dry-run yes show metric lowest highest rank csv json no-logs "
         "no-full-logs",
     A_COMMAND,
     .of_runs = true,
     .run = cmd_sweep},
    {.name = "local",
     .synopsis = "[--] COMMAND [ARGUMENT...]",
     .summary = "run a command on this machine, in the foreground",
     .examples = "a local python3 train.py --debug\n"
                 "a -c eu local python3 train.py            in the image of cluster eu\n"
                 "a -c eu local --no-container nvidia-smi   without the image\n"
                 "a -c eu local --mount ls data             with the folders that runs on eu have\n",
     .details = "The output of rank 0 is shown as it comes; the exit status is the command's (125: ACT itself\n"
                "failed). Ctrl-C aborts the run. Mapped folders are the project's own folders here, and nothing in a\n"
                "store changes; with --mount they are those of the stores, as a run on the platform local has them:\n"
                "mounted, copied or linked, as their modes say. What was written is in the store when the command\n"
                "has ended.\n"
                "requirements.txt is installed and compile.aml.sh runs before the command; where the cluster has a\n"
                "docker.image, all of it runs in that image, by docker or podman.\n"
                "--dry-run prints the specification of the run as JSON and starts nothing.",
     .options = "cluster num-gpu param single compile-args no-container mount last-package dry-run yes",
     A_COMMAND,
     .own_status = true,
     .run = cmd_local},
    {.next_table = cli_run_commands},
};
