/* commands.c - the verbs, one row each. */
#include <string.h>

#include "cli/cli.h"

#define ANY (-1)

#define TRANSFER_OPTIONS                                                                                               \
    "cluster param dry-run delete max-delete yes include exclude filter-from checksum overwrite json "                 \
    "transfers bwlimit memory part-size no-sync"

/* For verbs with run_options. */
#define RUN_PATHS                                                                                                      \
    "RUN:PATH is a log of a run, or a folder of logs, as its platform lists them. RUN is any unique\n"                 \
    "piece of the run's id, or @ for the last run; 'RUN:' is all of them. A file of such a name is './a:b'."

/* What the words of a command are. */
#define A_RUN    .min_words = 1, .max_words = 1, .complete = CLI_RUNS, .of_runs = true
#define RUNS     .min_words = 1, .max_words = ANY, .complete = CLI_RUNS, .of_runs = true
#define PATHS    .min_words = 1, .max_words = ANY, .complete = CLI_PATHS
#define A_CHOICE .min_words = 1, .max_words = 1, .complete = CLI_CHOICE

/* A command that prints a part of the table of runs. */
#define RUN_TABLE                                                                                                      \
    .details = "--json: version (1), total and runs, as of 'a q'.", .options = "cluster name tag max json",            \
    .of_runs = true

const struct cli_command cli_commands[] = {
    {.name = "init",
     .aliases = "initi",
     .synopsis = "",
     .summary = "package the code and upload it",
     .examples = "a init                 pack the project and store it\n"
                 "a init --dry-run       what goes in, what stays out and why, the largest files, what is to be done\n"
                 "a -c eu init           for the cluster aux_data/aml/eu.yaml\n",
     .details = "The package is named by its content and stored once: nothing is uploaded when nothing changed.\n"
                "What stays out: zip_options of the cluster file, .gitignore and .actignore, mapped folders,\n"
                "top-level dot files and a built-in list. initi does the same: packing is always incremental.\n"
                "compile.aml.sh runs on the nodes. Files that have not changed are not read again,\n"
                "and of a large package only those parts are uploaded that the store lacks.\n"
                "--json: version (1), sha256, bytes, entries, files_read, bytes_sent and published. --dry-run --json:\n"
                "version (1), files, entries, bytes, content, folders, left_out (path, rule), rules, largest,\n"
                "files_to_compress, bytes_to_compress, sha256 (null: not known yet) and stored.",
     .options = "cluster param dry-run yes json",
     .run = cmd_init},
    {.name = "initc",
     .aliases = "initic",
     .synopsis = "",
     .summary = "the same, and compile it here in the cluster's image",
     .examples = "a initc                pack the project, store it, run its compile.aml.sh, store the result\n"
                 "a -ca --fast initc     with an argument for compile.aml.sh\n",
     .details = "requirements.txt is installed and compile.aml.sh runs in docker.image, in a container that docker or\n"
                "podman makes on this machine; without one of them nothing is done. Runs get the compiled package as\n"
                "long as neither the project nor the image has changed since, and run compile.aml.sh too, which then\n"
                "finds its work done.\n"
                "--json: what 'a init' prints, of the compiled package. --dry-run --json: the same as there.",
     .options = "cluster param compile-args dry-run yes json",
     .run = cmd_initc},
    {.name = "submit",
     .synopsis = "[--] COMMAND [ARGUMENT...] | -f FILE",
     .summary = "run a command on the cluster; prints the run id",
     .examples = "a submit python train.py --lr 0.1\n"
                 "a -n 8 submit python train.py     on 8 GPUs, one process each, under mpirun\n"
                 "a -n 2 submit -- hostname         everything behind -- is the command\n"
                 "a submit --dry-run nvidia-smi     print the run's specification, start nothing\n"
                 "id=$(a submit ./job.sh) && a wait $id\n"
                 "a submit --retry 3 --retry-on nccl_timeout,node_failure python train.py\n"
                 "a submit --name base --tag lr=0.1 python train.py   'a q --tag lr=0.1' finds it again\n"
                 "a submit --hang 20m python train.py   ended if it is silent and idle for 20 minutes\n"
                 "a -c eu submit -f job.json        what a job file of Azure Batch AI says\n"
                 "a submit --dry-run -f job.json    what that becomes, and what has no counterpart\n",
     .details = "The first word that is not an option begins the command; its words reach every process exactly as\n"
                "they are, without a shell. The code is packed as it is now; --last-package\n"
                "takes what 'a init' or a submit stored last.\n"
                "With -f the command, the environment, the nodes and processes (unless -n is given), the image and\n"
                "the time limit are those of the file. Its volumes are mapped folders: $AZ_BATCHAI_MOUNT_ROOT/data\n"
                "and $AZ_BATCHAI_JOB_MOUNT_ROOT/data are the folder data. What has no counterpart is reported.\n"
                "--name is what you call the run, wherever a run is named; several may have the same name, and then\n"
                "'a q --name NAME' lists them. Names and keys of tags are letters, digits, '.', '_' and '-'.\n"
                "--retry 3 tries a run that has failed again, at most so often, after a pause, also when this machine\n"
                "is off. --retry-on says after which failures; by default those of nodes, GPUs, networks and\n"
                "storage, and not those of the command. Nodes that failed lately are left out, unless\n"
                "--use-bad-nodes is given.\n"
                "With --hang (key hang) the run ends as failed, of class hang, if for so long no rank has written a\n"
                "line and all GPUs were idle, or no process computed where there are none; what every process was\n"
                "doing then is in system_logs/stacks_NODE.txt. -p 'hang_gpus: any' does not ask the GPUs, which are\n"
                "busy while kernels of NCCL wait. Not on Azure Machine Learning.\n"
                "--json: version (1), id, cluster, platform, nodes, processes_per_node, package, resubmit_of (null),\n"
                "name (null: none), tags;\n"
                "--dry-run prints the specification as JSON in any case; on Kubernetes, what kubectl would take.",
     .options = "cluster num-gpu param single compile-args file last-package name tag hang retry retry-on "
                "use-bad-nodes dry-run yes json",
     .max_words = ANY,
     .complete = CLI_COMMAND,
     .takes_command = true,
     .run = cmd_submit},
    {.name = "sweep",
     .synopsis = "--grid NAME=VALUE,... [--] COMMAND [ARGUMENT...] | --show SWEEP",
     .summary = "submit a command once for each combination of values, and compare",
     .examples = "a sweep --grid lr=1e-3,1e-4 --grid n=2,4 -- python train.py {lr} {n}\n"
                 "a sweep --grid seed=1,2,3 --max-parallel 2 --name seeds -- ./go {seed}\n"
                 "a sweep --dry-run --grid lr=1,2 -- ./go {lr}   the commands, one a line\n"
                 "a sweep --show @ --metric loss --min         the last sweep, the lowest loss first\n"
                 "a sweep --show 60ce2fc7 --metric acc --max --csv > acc.csv\n"
                 "s=$(a sweep --grid lr=1,2 -- ./go {lr}) && a wait --tag sweep=$s\n",
     .details =
         "Prints the id of the sweep. Each combination is a run of its own, of one package, with the tags\n"
         "sweep=ID and NAME=VALUE of each grid; --name N calls them N.1, N.2, ... The last grid changes first.\n"
         "{NAME} in a word of the command is the value, {{ and }} are braces; values have no commas. A name that\n"
         "has no grid, a grid that is not used and any other brace are refused, before anything is submitted.\n"
         "The same command with the same code goes on with the same sweep: what is submitted stays, what is\n"
         "missing is submitted, and nothing twice. --name, or other code, makes another sweep.\n"
         "More than 100 runs are asked about, a million are the most.\n"
         "On Slurm up to 1000 runs are one array, which --max-parallel limits there. On other platforms they are\n"
         "submitted one after another; with --max-parallel this command waits for room, until the last is submitted.\n"
         "--show with --metric: the best value of each run, where it was reached (step, epoch or value) and the\n"
         "last one; runs that end in NaN, and those without the number, come last. Fetches the logs as 'a q' does.\n"
         "--json: version (1), sweep (null in a dry run that has no package yet), cluster, points, kept,\n"
         "submitted and parameters. --show --json: version (1), sweep, metric, by (min or max) and runs, each\n"
         "with id, name, state, age_s, parameters, best, best_at and last (null: none).",
     .options = "cluster num-gpu param single compile-args grid max-parallel last-package name tag dry-run yes show "
                "metric lowest highest rank csv json no-logs no-full-logs",
     .max_words = ANY,
     .complete = CLI_COMMAND,
     .takes_command = true,
     .of_runs = true,
     .run = cmd_sweep},
    {.name = "local",
     .synopsis = "[--] COMMAND [ARGUMENT...]",
     .summary = "run a command on this machine, in the foreground",
     .examples = "a local python train.py --debug\n"
                 "a -c eu local python train.py             in the image of cluster eu\n"
                 "a -c eu local --no-container nvidia-smi   without the image\n",
     .details = "The output of rank 0 is shown as it comes; the exit status is the command's (125: ACT itself\n"
                "failed). Ctrl-C aborts the run. Mapped folders are the project's own, here; requirements.txt and\n"
                "compile.aml.sh come before the command, in docker.image by docker or podman where there is one.\n"
                "--dry-run prints the specification of the run as JSON and starts nothing.",
     .options = "cluster num-gpu param single compile-args no-container last-package dry-run yes",
     .max_words = ANY,
     .complete = CLI_COMMAND,
     .takes_command = true,
     .own_status = true,
     .run = cmd_local},
    {.name = "query",
     .aliases = "q",
     .synopsis = "[RUN...]",
     .summary = "with runs: their logs and state; without: the table of runs",
     .examples = "a q                          the runs, newest first\n"
                 "a q 60ce2fc7                 any unique piece of the id\n"
                 "a q @                        the run submitted last; @2 is the one before\n"
                 "a -no-wl q 60ce2fc7          without fetching logs\n"
                 "a q --refresh 60ce2fc7       fetch its logs again from their beginnings\n"
                 "a q --tag sweep=7            those tagged so\n"
                 "a -c slurm q --rebuild       take the runs of a cluster that a lost ledger lacks\n"
                 "a q --watch                  the table, redrawn in place; 'a top' shows more\n"
                 "a q --json --max 0 | jq -r '.runs[].id'\n",
     .details =
         "Wherever a run is named: its id, the name that --name gave it, any unique piece of its id, or @ for\n"
         "the one submitted last, @2 for the one before; with -c CLUSTER, of those on that cluster.\n"
         "With a run: fetches what is new of its logs into assets/<run id>/, prints the last 100 lines of\n"
         "rank 0, the paths of the logs and what is known about the run. Where a service keeps the logs, they\n"
         "are not asked for again once they are complete: the run ended, and for 5 minutes (the cluster's\n"
         "azureml.settle_seconds) nothing was added to them.\n"
         "--json: version (1) and runs, each with id, state, name, tags, cluster, platform, project, command, title\n"
         "(of a job file), param (what 'python src/....py -bp BASE64' was given, as YAML), num_gpu (0:\n"
         "without GPUs), created, started, ended, exit_status, failed_rank, reason, attempt, attempts (at most;\n"
         "null: it is not tried again), retry (why it was, or was not), package, package_key,\n"
         "resubmit_of, nodes, processes_per_node; null: not known. Without a run also total,\n"
         "with runs also logs and page of each.",
     .options = "cluster no-logs no-details no-full-logs refresh rebuild name tag max watch interval json",
     .max_words = ANY,
     .complete = CLI_RUNS,
     .of_runs = true,
     .run = cmd_query},
    {.name = "qr",
     .synopsis = "",
     .summary = "the runs that are running",
     .examples = "a qr\na qr --json\n",
     RUN_TABLE,
     .run = cmd_query_running},
    {.name = "qq",
     .synopsis = "",
     .summary = "the runs that wait in a queue, and for what",
     .examples = "a qq\na qq --json\n",
     RUN_TABLE,
     .run = cmd_query_queued},
    {.name = "qf",
     .aliases = "f, failed",
     .synopsis = "",
     .summary = "the runs that failed, and of what",
     .examples = "a qf\na qf --max 5\n",
     RUN_TABLE,
     .run = cmd_query_failed},
    {.name = "top",
     .synopsis = "[-n TIME]",
     .summary = "all runs and clusters at a glance, live",
     .examples = "a top\n"
                 "a top -n 10s                 ask every ten seconds\n"
                 "a top --tag sweep=7          only runs that are tagged so\n"
                 "a top --once | cat           one frame, for a file or a pipe\n",
     .details =
         "Clusters with what is idle and how many wait, of all that have a run that has not ended, and of the one\n"
         "that a submit would use. Runs with state, how long they run, wait or have been over, how busy their GPUs\n"
         "are (cpu: their processors), how full the memory of those is, the last values of the numbers that rank 0\n"
         "prints again and again, and its last line and how old that is. When it is silent for five minutes, also\n"
         "which rank the others seem to wait for.\n"
         "Keys: up and down choose a run, l shows its log, w why it failed or waits, a aborts it (asks), s sorts,\n"
         "/ filters, r asks now, h helps, q quits.\n"
         "Each cluster is asked for all runs at once, and less often than --interval says if it takes long to\n"
         "answer; only the logs of runs on the screen are read. A cluster that cannot be asked shows why. Nothing\n"
         "is asked on the terminal: where a login needs a password, or a project is not trusted, that is the error.\n"
         "If the output is no terminal, one frame is printed, as with --once.",
     .options = "cluster name tag max interval once",
     .of_runs = true,
     .run = cmd_top},
    {.name = "logs",
     .synopsis = "[-f] [--rank N | --all] [-n N] [--attempt N] RUN",
     .summary = "print a rank's log, or follow it until the run ends",
     .examples = "a logs 60ce2fc7              all that rank 0 has said\n"
                 "a logs -f 60ce2fc7           follow it\n"
                 "a logs -f @                  follow the run submitted last\n"
                 "a logs -f --all 60ce2fc7     all ranks: [3] before the lines of rank 3\n"
                 "a logs --rank 3 --tail 20 60ce2fc7\n"
                 "a logs --attempt 1 60ce2fc7  what it said before it was preempted\n"
                 "a logs --name system_logs/mpirun.txt 60ce2fc7\n",
     .details = "-f goes on through new attempts of the run, and while the cluster cannot be asked; Ctrl-C ends the\n"
                "watch and not the run. Its last line (stderr) says how the run ended, and the exit status is the\n"
                "run's, as that of 'a wait'. --all gives whole lines; one of more than 64 KiB comes in pieces.\n"
                "'a -c CLUSTER logs' also finds runs that this machine did not submit.",
     .options = "cluster follow rank all tail attempt name",
     A_RUN,
     .run = cmd_logs},
    {.name = "wait",
     .synopsis = "[--any] [--timeout TIME] RUN... | --tag KEY=VALUE",
     .summary = "wait for runs; the exit status is the run's",
     .examples = "a wait 60ce2fc7 && a d output/model\n"
                 "a wait --timeout 2h 60ce2fc7\n"
                 "a wait @ @2 @3                until all three have ended\n"
                 "a wait --any @ @2             until one of them has\n"
                 "a wait --tag sweep=60ce2fc7   until all that are tagged so now have\n"
                 "a wait --notify 'echo $ACT_RUN_ID $ACT_RUN_STATE | mail -s ACT me' @\n",
     .details =
         "Exit status: 0 completed; the exit status of the rank that failed first; 143 cancelled; 125 when ACT\n"
         "itself failed, or the time was up. Of several runs it is that of the first one named that did not\n"
         "complete; with --any, that of the first one named that has ended.\n"
         "The command of --notify runs here, once for each run that has ended, and also has\n"
         "ACT_RUN_EXIT_STATUS, ACT_RUN_NAME, ACT_RUN_CLUSTER and ACT_RUN_REASON. If it fails, a warning says so.\n"
         "--json: version (1) and run, as one of 'a q --json'; with several words runs, those that have ended.",
     .options = "cluster any timeout notify name tag json",
     .max_words = ANY,
     .complete = CLI_RUNS,
     .of_runs = true,
     .own_status = true,
     .run = cmd_wait},
    {.name = "why",
     .synopsis = "RUN",
     .summary = "which rank failed first, what it said, what that means, what to do",
     .examples = "a why 60ce2fc7\n"
                 "a why --json 60ce2fc7 | jq -r .diagnosis.code\n",
     .details = "Reads the agent's records and the ends of the logs; fetches nothing. Says why a run waits, or what\n"
                "it is doing. Your own rules, in the form of the program's, can go into aux_data/diagnosis.yaml. Exit\n"
                "status 0: the question was answered.\n"
                "What each rank said last and for how long it is silent is shown of a run that runs, or that\n"
                "hung: ranks that are where few others are first. At a service the time is the log's.\n"
                "--json: version (1), run, state, reason, attempt, attempts, retry, heartbeat,\n"
                "last_line (of rank 0), ranks (rank, line, silent_s, longer: than that), failure (attempt, rank,\n"
                "node, exit_status, signal, reason, time, lines), diagnosis (id, code, class, summary, advice, rank,\n"
                "log, line; retry: no, yes, other_node, after_change) and notes; null: not known.",
     .options = "cluster json",
     A_RUN,
     .run = cmd_why},
    {.name = "grep",
     .synopsis = "[-i] RE [RUN...]",
     .summary = "the lines of the logs of runs that match a regular expression",
     .examples = "a grep 'loss=nan' @             in all logs of the run submitted last\n"
                 "a grep -i 'out of memory'       of the newest 30 runs\n"
                 "a grep --tag sweep=7 'acc=0\\.9' of the runs tagged so\n"
                 "a grep --json Error | jq -r '[.run, .rank] | @tsv' | sort -u\n",
     .details =
         "RE is an extended regular expression of POSIX, as of 'grep -E'. Each line that matches is printed\n"
         "behind RUN:LOG:LINE: of it (RUN:LOG is a path, for 'a cat'), [the rank], and its time: the one in it,\n"
         "or in the last line before that has one, as it is written there; else < the time when the log was\n"
         "last written to. The logs are read where the run is; where that is not possible, the copies in\n"
         "assets/<run id>/ are. Without RUN, all runs that 'a q' lists of your ledger, 30 unless --max says\n"
         "otherwise. Exit status: 0 there is a line, 1 there is none.\n"
         "--json: a line each with version (1), run, log, rank (null: it is no rank's log), attempt, line,\n"
         "time, log_changed and text; null: not known.",
     .options = "cluster ignore-case name tag max json",
     .min_words = 1,
     .max_words = ANY,
     .complete = CLI_RUNS,
     .of_runs = true,
     .run = cmd_grep},
    {.name = "diff",
     .synopsis = "RUN RUN",
     .summary = "in what two runs differ: command, code, configuration, environment, nodes",
     .examples = "a diff @2 @                     what is new in the run submitted last\n"
                 "a diff --json @2 @ | jq -r '.differences[].name'\n",
     .details =
         "- is of the first run, + of the second. Code is compared by file: size, CRC-32 and mode of those that\n"
         "differ; a package that is not on this machine is fetched. Of secrets only the names are known. The\n"
         "exit status is 0 whether they differ or not.\n"
         "--json: version (1), from, to (the ids) and differences, each with part, name (null: the part as a\n"
         "whole), from and to (null: that run does not have it).",
     .options = "cluster json",
     .min_words = 2,
     .max_words = 2,
     .complete = CLI_RUNS,
     .of_runs = true,
     .run = cmd_diff},
    {.name = "parse",
     .synopsis = "RUN|FOLDER",
     .summary = "the codes of the errors in the logs of a run, or in a folder of logs",
     .examples = "a parse 60ce2fc7\n"
                 "a -no-wl parse 60ce2fc7       only the logs that are here already\n"
                 "a parse old/logs              the logs in a folder\n",
     .details = "Fetches the logs as 'a q RUN' does and prints each code on a line; 'a why' says which one counts.\n"
                "A word that names a folder here stands for the logs in it: of a run, as in assets/, or any others.\n"
                "On stderr: the lines with 'Error', 100 of each log at most.\n"
                "--json: version (1), run (or folder), codes (code, id, class, log, line) and errors (log, line).\n"
                "Exit status 0, also without any.",
     .options = "cluster no-logs no-full-logs json",
     A_RUN,
     .run = cmd_parse},
    {.name = "report",
     .synopsis = "RUN... | --tag KEY=VALUE > run.html",
     .summary = "all that is known about runs, as one page for a browser",
     .examples = "a report 60ce2fc7 > run.html\n"
                 "a report -o run.html 60ce2fc7   the same; never half a page\n"
                 "a report 60ce2fc7 1f0a > both.html   the curves of both in one picture\n"
                 "a report --tag sweep=60ce2fc7 --metric loss --min > sweep.html   with the best ones first\n"
                 "a -no-wl report -o run.html 60ce2fc7   only from the logs that are here\n",
     .details = "Command, package, configuration and what differs from the run that it repeats (of several runs: from\n"
                "the first), why it ended as it did, curves of the numbers in a rank's log (by default the first rank\n"
                "that prints any), what each node used, the ends of the logs, and all files with their sizes.\n"
                "The page has no scripts, asks for nothing from elsewhere, and can be printed. Fetches the logs as\n"
                "'a q RUN' does.",
     .options = "cluster no-logs no-full-logs rank name tag metric lowest highest output",
     .max_words = ANY,
     .complete = CLI_RUNS,
     .of_runs = true,
     .run = cmd_report},
    {.name = "plot",
     .synopsis = "KEY RUN... | KEY --tag NAME=VALUE",
     .summary = "draw a number from the logs of runs: the loss by steps",
     .examples = "a plot loss 60ce2fc7\n"
                 "a plot loss 60ce2fc7 1f0a           two runs in one picture\n"
                 "a plot lr --svg 60ce2fc7 > lr.svg\n"
                 "a plot loss --csv 60ce2fc7 > loss.csv\n",
     .details =
         "KEY is what stands before the number: 'loss 2.31', 'loss: 2.31', 'loss=2.31', {\"loss\": 2.31}. A name\n"
         "that is not there is answered with those that are. x is the step in the line or just before it\n"
         "(step, iter, iteration, batch, update), else the epoch, else how many values came before. Of more\n"
         "than 32768 values fewer are kept, so that the curve looks the same. Fetches the logs as 'a q' does.\n"
         "--csv: run, x, value. --json: version (1), key, by (step, epoch or value) and runs, each with run,\n"
         "values (how many), min, max, last, not_finite (how many) and points ([x, value]).",
     .options = "cluster no-logs no-full-logs rank name tag svg csv json",
     .min_words = 1,
     .max_words = ANY,
     .complete = CLI_RUNS,
     .of_runs = true,
     .run = cmd_plot},
    {.name = "ui",
     .synopsis = "[--port N] [--open]",
     .summary = "the runs and their reports in the browser, renewed as they go on",
     .examples = "a ui                        prints the address; Ctrl-C ends it\n"
                 "a ui --open                 and opens it\n"
                 "a ui --tag sweep=7          begins with those tagged so\n"
                 "a ui --port 8080            for ssh -L 8080:localhost:8080 LOGIN_NODE, from where the browser is\n",
     .details =
         "A table of all runs, from which one comes to the page of each, as 'a report' makes it, and to that of\n"
         "several in one picture. Nothing can be changed there. What goes on is asked for again every 10\n"
         "seconds, however many browsers look; the pages have no scripts.\n"
         "It listens on 127.0.0.1 alone. The address has a key of its own each time: whoever has it sees all\n"
         "that you see, so keep it to yourself. Runs of projects that are not trusted show what is known\n"
         "here, and name 'a trust'. Exit status 0 after Ctrl-C.",
     .options = "cluster name tag port open",
     .of_runs = true,
     .run = cmd_ui},
    {.name = "abort",
     .aliases = "a",
     .synopsis = "RUN... | --all | --name NAME | --tag KEY=VALUE",
     .summary = "cancel runs",
     .examples = "a abort 60ce2fc7\na a 60ce2fc7 1f0a\na abort --dry-run 60ce2fc7\n"
                 "a abort --tag sweep=7          all that are tagged so and have not ended; asks\n"
                 "a -c eu abort --all -y         all on cluster eu, without a question\n"
                 "a abort --forget 60ce2fc7      of a cluster that is gone for good\n",
     .details =
         "--all, --name and --tag are about the runs that you submitted from this machine, in any project; those\n"
         "of others, on a service that you share, have to be named. They count them and ask.\n"
         "--forget is for a cluster that does not answer: the run counts as Canceled here, and the cluster,\n"
         "if it comes back, goes on with it. The run stays in the ledger. One that has ended is left as it\n"
         "is, with a note and the exit status 0; one whose cluster answers is refused, with status 2.\n"
         "--json: version (1) and runs, each with id, state and had_ended.",
     .options = "cluster all name tag forget yes dry-run json",
     .max_words = ANY,
     .complete = CLI_RUNS,
     .of_runs = true,
     .run = cmd_abort},
    {.name = "scale",
     .synopsis = "RUN N",
     .summary = "change the size of an elastic run to N GPUs",
     .examples = "a -n 8:32 submit python train.py\na scale 60ce2fc7 16\na scale --dry-run 60ce2fc7 8\n",
     .details = "An elastic run (-n MIN:MAX, or elastic_num_gpu in the cluster file; on the platform k8s) works with\n"
                "the nodes that are there, from MIN to MAX. N is how many it shall have, within that range. Each\n"
                "change of size ends the processes by SIGTERM and starts them again: a new attempt.\n"
                "--json: version (1), id, num_gpu, nodes and dry_run.",
     .options = "cluster dry-run json",
     .min_words = 2,
     .max_words = 2,
     .complete = CLI_RUNS,
     .of_runs = true,
     .run = cmd_scale},
    {.name = "prune",
     .synopsis = "--older TIME",
     .summary = "remove what ACT keeps of the project's old runs",
     .examples = "a prune --older 30d --dry-run   what would go\n"
                 "a prune --older 30d             counts it, and asks\n"
                 "a -c eu prune --older 12h -y    only runs on cluster eu\n",
     .details =
         "Of the runs that you submitted from this project and that ended longer ago: their folders where they\n"
         "ran (on Kubernetes and Azure Machine Learning their jobs), with the logs there; the copies of logs in\n"
         "assets/, and those that their nodes sent to the store of the code; their rows in the table of runs.\n"
         "Packages where they ran, in the cache and in the built-in store here, if no run that stays has them\n"
         "and these runs had them, or they are that old; agents of other versions where every run has ended.\n"
         "Nothing that is another user's, or has not ended, is touched, no other project's run, and no package\n"
         "that the run of somebody else may need; what is left for such a reason is said. Packages stay in a\n"
         "store of the code that others may use. What an interrupted one left, the next one finds.\n"
         "--json: version (1), dry_run, removed (how many), runs (id, bytes), packages, agents, copies and sent\n"
         "(runs with logs here and in the store), bytes and left (active, others, service, unreachable).",
     .options = "cluster param older dry-run yes json",
     .run = cmd_prune},
    {.name = "resubmit",
     .synopsis = "RUN...",
     .summary = "abort when still active, then submit the same run again",
     .examples = "a resubmit 60ce2fc7\n"
                 "a -rt eu resubmit 60ce2fc7     on another cluster\n",
     .details = "The new run has the command, the package and the size of the old one, and goes to the same\n"
                "cluster unless -rt or -c names another. It has the old one's name and tags; --name gives it another\n"
                "one, --tag further tags or other values. Prints the new ids. On a terminal it asks before it\n"
                "aborts a run that is running, unless -y is given.\n"
                "--json: version (1) and runs, each with version, id, cluster, platform, nodes, processes_per_node,\n"
                "package, resubmit_of, name and tags; --dry-run prints the specifications as JSON in any case.",
     .options = "cluster resubmit-to num-gpu param single compile-args name tag hang retry retry-on "
                "use-bad-nodes yes dry-run json",
     RUNS,
     .run = cmd_resubmit},
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
         "ranks, gpus, gpu_ids; state and gpu_ids are null where they are not known. With --bad: version (1)\n"
         "and nodes, each with node, cluster, class, run, time (Unix seconds).",
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
         "context and changed; null: not said. --dry-run --json: version, dry_run, action and name. Of cluster\n"
         "files: own, each with name, kind, default, hidden (another of its name comes before it), file,\n"
         "ok and problems; of a change: version, action, name, file, dry_run.",
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
    {.name = "upload",
     .aliases = "u",
     .synopsis = "PATH...",
     .summary = "mapped local files and folders to the cluster's store",
     .examples = "a u data/voc20                   a file or a folder: found out\n"
                 "a -c eu u data/voc20             to the store of cluster eu\n"
                 "a -c eu -f we u data/voc20       from the store of we to that of eu\n"
                 "a u --dry-run --delete data      what would be copied and deleted, and why\n"
                 "a u --exclude '*.tmp' --exclude '/cache/' data\n",
     .details = "Files whose size and modification time match are skipped. After an interruption the same command\n"
                "continues where it stopped. Files that are newer in the store, and different, are left and named\n"
                "unless --overwrite is given. Nothing is deleted without --delete, which counts and asks first. Links\n"
                "inside the folder are kept; one that leads out of it is named, and the exit status is 8. --follow\n"
                "stores what it leads to, wherever that is, as files and folders; --skip-links leaves it out. Links\n"
                "that lead back to a folder that they are in, or nowhere, are named and not followed. So is what\n"
                "cannot be read, and names that are not UTF-8: the rest is stored, and --exclude leaves them out.\n"
                "--delete spares what the store has below such names.\n"
                "With several paths, a failure of one does not stop the others; the exit status is then 8.\n"
                "ACT_MAX_TRANSFERS, ACT_MEMORY and ACT_BWLIMIT are the defaults of --transfers, --memory, --bwlimit.\n"
                "--json: one line with version (1), summary (the verb), dry_run, objects, bytes, resumed_bytes, same,\n"
                "newer, left (the paths of the first 20 of those), skipped_links, deleted, failed, folder_modes (of\n"
                "folders with something in them, no objects), seconds, failures (text, count, also: the names of the\n"
                "next 20 like it) and errors (text, status); --dry-run: before it one for each step, with action\n"
                "(copy, delete, leave), size, path and reason.",
     .options = "from-cluster md5 follow-links skip-links " TRANSFER_OPTIONS,
     PATHS,
     .run = cmd_upload},
    {.name = "download",
     .aliases = "d",
     .synopsis = "PATH|RUN:[PATH]...",
     .summary = "from the cluster's store, or the logs of a run, to here",
     .examples = "a d output/model.npz\n"
                 "a d data/coco\n"
                 "a -c eu d output\n"
                 "a d --include '*.npz' --bwlimit 20M output\n"
                 "a d --delete data/coco           the local folder becomes what the store has\n"
                 "a d 60ce2fc7:                    the logs of a run, to assets/<run id>/\n"
                 "a d --include 'std_log*' 60ce2fc7:user_logs\n",
     .details =
         "Each file is verified, written beside its target and renamed into place. Files whose size and\n"
         "modification time match are skipped. After an interruption the same command continues where it\n"
         "stopped. Files that are newer here, and different, are left and named unless --overwrite is given.\n"
         "Nothing is deleted without --delete, which counts and asks first. With several paths, a failure of\n"
         "one does not stop the others; the exit status is then 8.\n"
         "Of the logs of a run, what is new goes to assets/<run id>/ of its project, as with 'a q'.\n" RUN_PATHS "\n"
         "ACT_MAX_TRANSFERS, ACT_MEMORY and ACT_BWLIMIT are the defaults of --transfers, --memory, --bwlimit.\n"
         "--json: one line with version (1), summary (the verb), dry_run, objects, bytes, resumed_bytes, same,\n"
         "newer, left (the paths of the first 20 of those), skipped_links, deleted, failed, folder_modes (of\n"
         "folders with something in them, no objects), seconds, failures (text, count, also: the names of the\n"
         "next 20 like it) and errors (text, status); --dry-run: before it one for each step, with action\n"
         "(copy, delete, leave), size, path and reason.",
     .options = TRANSFER_OPTIONS,
     .run_options = "cluster dry-run yes include exclude filter-from json transfers bwlimit memory",
     .min_words = 1,
     .max_words = ANY,
     .complete = CLI_PATHS,
     .run = cmd_download},
    {.name = "ls",
     .synopsis = "[-r] [-l] PATH|RUN:[PATH]...",
     .summary = "list a mapped path in the cluster's store, or the logs of a run",
     .examples = "a ls data                        names, one level; folders end in /\n"
                 "a ls -l data                     mode, size and time too\n"
                 "a ls -r data/voc20               everything below\n"
                 "a ls --json -r output | jq -r 'select(.size > 1e9) | .path'\n"
                 "a ls --leftovers data            what interrupted transfers left, in the store and here\n"
                 "a ls -r 60ce2fc7:                the logs of a run\n"
                 "a ls @:user_logs                 of the run submitted last\n",
     .details = "Names are sorted; control characters in them are shown as '?'. With --json each object is a line of\n"
                "its own: version (1), path, name, kind (file, symlink, folder, leftover), size, mtime, mode, md5;\n"
                "null: not known; of a leftover also place (store, here). The counts go to stderr.\n" RUN_PATHS,
     .options = "cluster param recursive long bytes leftovers json transfers",
     .run_options = "cluster recursive long bytes json transfers",
     .min_words = 1,
     .max_words = ANY,
     .complete = CLI_PATHS,
     .run = cmd_ls},
    {.name = "rm",
     .synopsis = "[-y] PATH...",
     .summary = "remove a file or a folder from the cluster's store",
     .examples = "a rm --dry-run data/coco         what would go\n"
                 "a rm data/coco\n"
                 "a rm -y output/old\n"
                 "a rm --include '*.tmp' output\n"
                 "a rm --leftovers data            what interrupted transfers left, in the store and here\n",
     .details = "Counts first and asks; without a terminal -y is needed. Objects that changed after they were listed\n"
                "stay and are named; the exit status is then 8. The local folder is not touched. --dry-run prints a\n"
                "path on each line, with --json an object: version (1), action (delete), size, path. --json ends with\n"
                "a line with version (1), summary (rm), dry_run, objects, bytes, failed, failures, errors: see 'a\n"
                "upload'.",
     .options = "cluster param dry-run yes include exclude filter-from leftovers json transfers",
     PATHS,
     .run = cmd_rm},
    {.name = "du",
     .synopsis = "[-d N] [PATH|RUN:[PATH]...]",
     .summary = "how much a path of the cluster's store holds, or the logs of a run, or ACT itself keeps",
     .examples = "a du                             what ACT keeps, here and where your runs are\n"
                 "a du data                        size, objects\n"
                 "a du -d 1 data                   for each folder in it too\n"
                 "a du --json -d 2 output | jq -s 'sort_by(-.bytes)[:10]'\n"
                 "a du 60ce2fc7:                   of the logs of a run\n",
     .details = "A folder's line comes behind those of its subfolders. With --json each is a line of its own: version\n"
                "(1), path, objects, bytes.\n" RUN_PATHS "\n"
                "Without a path: folders of runs, packages and agents, the cache, the ledger and copies of logs; 'a\n"
                "prune' removes old ones. With -c only where runs on that cluster are. --json: a line each with\n"
                "version (1), what, where, n and bytes.",
     .options = "cluster param depth bytes json transfers",
     .run_options = "cluster depth bytes json transfers",
     .max_words = ANY,
     .complete = CLI_PATHS,
     .run = cmd_du},
    {.name = "mount",
     .synopsis = "[--read-only] PATH DIR",
     .summary = "show a path of the cluster's store as a folder, until Ctrl-C",
     .examples = "a mount data /mnt/data              look at it, change it\n"
                 "a mount --read-only data/voc voc    only look at it\n",
     .details =
         "DIR is an empty folder. blobfuse2 or, where it is not installed, rclone mounts the container ('mount'\n"
         "in the cluster file chooses), with a signature for it alone. Ctrl-C waits until all that was written\n"
         "is in the store, and unmounts; a second one does not wait. What could not be sent stays in the\n"
         "cache, and the message says where.",
     .options = "cluster param read-only",
     .min_words = 2,
     .max_words = 2,
     .complete = CLI_PATHS,
     .run = cmd_mount},
    {.name = "cat",
     .synopsis = "PATH|RUN:PATH...",
     .summary = "print files of the cluster's store, or logs of a run",
     .examples = "a cat output/result.json | jq .accuracy\n"
                 "a cat --last 10k output/log.txt  the end of a log\n"
                 "a cat --first 1M data/big.csv | head\n"
                 "a cat 60ce2fc7:user_logs/std_log_process_3.txt\n",
     .details =
         "A whole file is verified at its end: if it does not match the store's checksum, the exit status is 1\n"
         "and the output must not be trusted. A growing log is printed up to its length at the start.\n" RUN_PATHS,
     .options = "cluster param first last memory transfers bwlimit",
     .run_options = "cluster first last memory transfers bwlimit",
     .min_words = 1,
     .max_words = ANY,
     .complete = CLI_PATHS,
     .run = cmd_cat},
    {.name = "verify",
     .synopsis = "[--deep] PATH...",
     .summary = "compare a mapped local path with the cluster's store, completely",
     .examples = "a verify data/voc20\n"
                 "a verify --deep output               reads all bytes on both sides\n"
                 "a -c eu -f we verify data/voc20      the store of we with that of eu\n"
                 "a verify data | grep '^content '\n",
     .details = "One line for each difference: a word, a blank, the path. missing: not in the store; extra: only in\n"
                "the store; kind: a file here, a link or folder there; size; content: the bytes, by a checksum that\n"
                "the store keeps, or read where it keeps none. --follow: as for 'a upload'. Exit status 0: no\n"
                "difference; 8: there are some.\n"
                "--json: a line each with version (1), difference, path, and from (the local side, or that of -f)\n"
                "and to (the store): kind, size and mtime, or null.",
     .options = "cluster param from-cluster deep follow-links include exclude filter-from json transfers bwlimit "
                "memory part-size",
     PATHS,
     .run = cmd_verify},
    {.name = "url",
     .synopsis = "[--expires TIME] [--share-sas] PATH...",
     .summary = "a URL that reads a file of the store without further credentials",
     .examples = "a url output/model.npz\ncurl -O \"$(a url --expires 1h output/model.npz)\"\n",
     .details = "It is valid for 24 hours unless --expires says otherwise. Whoever has it can read the file. It is\n"
                "signed with an account_key or a login. Where the account file has only a sas_token, --share-sas puts\n"
                "that into the URL, with everything it permits, until it expires; --expires is refused then, as it is\n"
                "for a file in a folder store.\n"
                "--json: a line for each with version (1), path and url.",
     .options = "cluster param expires share-sas json",
     PATHS,
     .run = cmd_url},
    {.name = "login",
     .synopsis = "[--device-code [--tenant TENANT]]",
     .summary = "who you are to Azure; or log in with a code",
     .examples = "a login                          who you are, and by which credential\n"
                 "a login --device-code            log in with a browser on any machine\n"
                 "a login --device-code --tenant contoso.onmicrosoft.com\n",
     .details = "Accounts without a key or SAS use the login that the environment has: a service principal, a managed\n"
                "identity, 'a login --device-code' or 'az login'. A login by --device-code is kept until 'a logout'.\n"
                "--json: version (1), name of a user, app_id, object_id, tenant, source and expires; null is what the\n"
                "token does not say.",
     .options = "cluster param device-code tenant dry-run json",
     .looks_only = true,
     .run = cmd_login},
    {.name = "logout",
     .synopsis = "",
     .summary = "forget all logins and tokens that ACT keeps",
     .examples = "a logout\na logout --dry-run\n",
     .details = "The logins of the Azure CLI and of the environment are not touched.",
     .options = "dry-run",
     .bare = true,
     .run = cmd_logout},
    {.name = "config",
     .synopsis = "show | check | get | set | unset [KEY [VALUE]]",
     .summary = "every value with its origin; what is wrong; one value, to read and to change",
     .examples = "a config show\n"
                 "a config show --all       keys without a value too\n"
                 "a -c eu -p 'num_gpu: 8' config show --json\n"
                 "a -c eu config check\n"
                 "a config get              which keys there are\n"
                 "a config get docker.image\n"
                 "a -c eu config set slurm.time 12:00:00\n"
                 "a config set env.NCCL_DEBUG INFO\n"
                 "a config set elastic_num_gpu '[8, 16]'\n"
                 "a -c eu config unset slurm.time\n",
     .details =
         "show leaves out keys without a value. set and unset change the cluster file where the value stands\n"
         "and keep all else in it, comments and order too; what would be worse for it, or cannot be done so, is\n"
         "refused. VALUE is YAML, of a key that is text the text itself. 'trusted_hosts' and 'default_cluster'\n"
         "are keys of your own settings. Secrets are not set here: 'a cluster edit' opens the file.\n"
         "--json: version (1), cluster, file, project_root and values,\n"
         "which are all keys, each with value and origin; of check version, cluster, file, ok and problems; of\n"
         "get version, key, value, origin, or without KEY version and keys; of set and unset version, key, file,\n"
         "changed, dry_run.",
     .options = "cluster num-gpu param single compile-args all dry-run json",
     .min_words = 1,
     .max_words = 3,
     .complete = CLI_CHOICE,
     .then = CLI_KEYS,
     .then_behind = "get set unset",
     .bare = true,
     .looks_only = true,
     .run = cmd_config},
    {.name = "trust",
     .synopsis = "[--list | --remove [PATH]]",
     .summary = "what the project reaches out of its folder; whether it may",
     .examples = "a trust                          shows it, and asks\n"
                 "a -c lab trust                   what the cluster lab leads to\n"
                 "a trust -y                       the same without a question, for scripts\n"
                 "a trust --list                   all that was trusted\n"
                 "a trust --remove                 this project is not trusted any more\n",
     .details = "The files of a project may come from anybody. Before they first make ACT reach out of the\n"
                "project, by a link ('data', 'assets'), a store or an account file elsewhere, 'slurm.login',\n"
                "'slurm.root' or a host that is not Azure's, every verb shows what, and asks; without a\n"
                "terminal it exits with 4. The answer is kept for the project's path and exactly what was\n"
                "shown. ACT_TRUSTED_PROJECTS (paths separated by ':', or '*') trusts without a question. Your\n"
                "credentials go to 'trusted_hosts' alone, whatever is trusted here.\n"
                "--json: version (1), path, reaches, untrusted; with --list: version and projects with path and\n"
                "trusted. A text that is not UTF-8 is {\"base64\": ...}.",
     .options = "cluster param list remove json yes dry-run",
     .max_words = 1,
     .bare = true,
     .looks_only = true,
     .run = cmd_trust},
    {.name = "doctor",
     .synopsis = "",
     .summary = "whether all that runs of the cluster need is there",
     .examples = "a doctor\na -c eu doctor\na doctor --json | jq -r '.checks[] | select(.ok | not) | .text'\n",
     .details = "One line for each check: what was found, or what is wrong and what to do. Exit status 0: all is\n"
                "well; 1: something is not. Changes nothing on the cluster. --json: version (1), ok, and checks, each\n"
                "with what, ok, text.",
     .options = "cluster param json",
     .bare = true,
     .run = cmd_doctor},
    {.name = "completion",
     .synopsis = "bash | zsh | fish",
     .summary = "a completion script for the shell",
     .examples = "a completion bash > ~/.local/share/bash-completion/completions/a\n"
                 "source <(a completion zsh)\n"
                 "a completion fish > ~/.config/fish/completions/a.fish\n",
     A_CHOICE,
     .bare = true,
     .run = cmd_completion},
    {.name = "help",
     .synopsis = "[VERB]",
     .summary = "this overview, or the manual page of a verb",
     .examples = "a help\na help submit\n",
     .details = "Where stdout is no terminal, or there is no man(1): what 'a VERB --help' says.",
     .max_words = 1,
     .complete = CLI_VERBS,
     .bare = true,
     .run = cmd_help},
    {.name = "transfer-folder",
     .synopsis = "RUN_FOLDER download|upload FOLDER DIR",
     .summary = "move a mapped folder of a run between its store and DIR (called by the agent)",
     .examples = "a transfer-folder /path/to/run download data /path/to/run/code/data\n",
     .min_words = 4,
     .max_words = 4,
     .bare = true,
     .hidden = true,
     .run = cmd_transfer_folder},
    {.name = "mount-folder",
     .synopsis = "RUN_FOLDER FOLDER NODE_FOLDER",
     .summary = "mount a mapped folder of a run on a node of it (called by the agent)",
     .examples = "a mount-folder /path/to/run data /tmp/act-1000/run/0\n",
     .min_words = 3,
     .max_words = 3,
     .bare = true,
     .hidden = true,
     .run = cmd_mount_folder},
    {.name = "__page",
     .synopsis = "[RUN...]",
     .summary = "print a page of 'a ui' (called by it)",
     .examples = "a __page\n",
     .options = "cluster name tag max",
     .max_words = ANY,
     .of_runs = true,
     .hidden = true,
     .run = cmd_page},
    {.name = "__complete",
     .synopsis = "WORD...",
     .summary = "what may follow (called by the completion scripts)",
     .examples = "a __complete qu\n",
     .max_words = ANY,
     .takes_command = true,
     .bare = true,
     .hidden = true,
     .run = cmd_complete},
    {.name = "__man",
     .synopsis = "FOLDER",
     .summary = "write the manual below a folder (called when ACT is built)",
     .examples = "a __man share/man\n",
     .min_words = 1,
     .max_words = 1,
     .bare = true,
     .hidden = true,
     .run = cmd_man},
    {0},
};

static bool is_alias(const char *aliases, const char *name)
{
    size_t len = strlen(name);

    for (const char *s = aliases; s && *s;) {
        size_t n = strcspn(s, ",");
        if (n == len && strncmp(s, name, n) == 0)
            return true;
        s += n;
        s += strspn(s, ", ");
    }
    return false;
}

const struct cli_command *cli_find_command(const char *name)
{
    for (const struct cli_command *c = cli_commands; c->name; c++)
        if (strcmp(c->name, name) == 0 || is_alias(c->aliases, name))
            return c;
    return NULL;
}

/* The names of verbs in other tools. */
static const struct {
    const char *names, *advice;
} synonyms[] = {
    {"run exec start sbatch srun launch",
     "'a submit COMMAND' runs a command on the cluster, 'a local COMMAND' on this machine"},
    {"ps status list jobs squeue show", "'a q' is the table of runs, 'a q RUN' one of them"},
    {"cancel stop kill scancel end", "'a abort RUN' cancels a run"},
    {"cp copy sync rsync mv", "'a u PATH' copies to the store, 'a d PATH' from it"},
    {"push put send", "'a u PATH' copies to the store"},
    {"pull get fetch", "'a d PATH' copies from the store, 'a q RUN' fetches the logs of a run"},
    {"tail log attach follow watch", "'a logs -f RUN' follows a run, 'a logs --tail 20 RUN' is the end of its log"},
    {"rerun retry restart", "'a resubmit RUN' runs it again"},
    {"remove delete del", "'a rm PATH' removes from the store"},
    {"sinfo", "'a summary' tells what the cluster is doing"},
    {"htop monitor dashboard", "'a top' shows all runs and clusters, live"},
    {"gc clean cleanup", "'a prune --older 30d' removes what ACT keeps of old runs"},
    {"dashboard web gui serve browse", "'a ui' shows the runs in the browser"},
    {"search", "'a grep RE' searches the logs of runs"},
    {"compare", "'a diff RUN RUN' compares two runs"},
    {"clusters", "'a cluster list' lists your clusters, or the managed clusters of a workspace"},
    {"pack build package", "'a init' packs the code"},
    {"whoami", "'a login' tells who you are to Azure"},
    {"version", "'a --version' shows it"},
};

const char *cli_synonym(const char *name)
{
    for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++)
        if (cli_names(synonyms[i].names, name))
            return synonyms[i].advice;
    return NULL;
}
