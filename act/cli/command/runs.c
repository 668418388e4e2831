/* runs.c - verbs for runs, one row each. */
#include <unistd.h>

#include "cli/command/tables.h"
#include "cli/page/verbs.h"
#include "cli/runs/runs.h"
#include "cli/start/start.h"
#include "cli/top/top.h"

/* A command that prints a part of the table of runs. */
#define RUN_TABLE                                                                                                      \
    .details = "--json: version (1), total and runs, as of 'a q'.", .options = "cluster name tag max json",            \
    .of_runs = true

const struct cli_command cli_run_commands[] = {
    {.group = "runs",
     .name = "query",
     .aliases = "q",
     .synopsis = "[RUN...]",
     .summary = "the table of runs; with RUN: its logs and state",
     .examples = "a q                          the runs, newest first\n"
                 "a q 60ce2fc7                 any unique piece of the id\n"
                 "a q @                        the run submitted last; @2 is the one before\n"
                 "a q @ @2                     fetches the logs of both, and shows in what they differ\n"
                 "a -no-wl q 60ce2fc7          without fetching logs\n"
                 "a q --refresh 60ce2fc7       fetch its logs again from their beginnings\n"
                 "a q --tag sweep=7            those tagged so\n"
                 "a -c slurm q --rebuild       take the runs of a cluster that a lost ledger lacks\n"
                 "a q --watch                  the table, redrawn in place; 'a top' shows more\n"
                 "a q --json --max 0 | jq -r '.runs[].id'\n",
     .details = "A run can be named by its id, any unique piece of it, the name that --name gave it, or @ for the run\n"
                "submitted last and @2 for the one before (with -c CLUSTER: on that cluster). The name or the id of a\n"
                "sweep means its runs, as with all verbs that take several, and so does --tag sweep=NAME.\n"
                "With a run: fetches what is new in its logs into assets/<run id>/, and prints the last 100 lines of\n"
                "rank 0, the paths of the logs (many that differ in numbers are one line, --json has them all) and\n"
                "what is known about the run. Where a service keeps the logs, they are not requested again once they\n"
                "are complete, that is when the run has ended and nothing has been added for 5 minutes\n"
                "(azureml.settle_seconds of the cluster).\n"
                "--json: version (1) and runs, each with id, state, name, tags, cluster, platform, project, command,\n"
                "title and tool (of a job file), param (what 'python src/....py -bp BASE64' was given, as YAML),\n"
                "num_gpu (0: without GPUs), created, started, ended, exit_status, failed_rank, reason, attempt,\n"
                "attempts (at most; null: it is not tried again), retry (why it was, or was not), package,\n"
                "package_key, resubmit_of, replaced_by (the run that took its place; null: none, or without a run),\n"
                "after (the runs that it was to run after), nodes, processes_per_node; null: not known. Without a run\n"
                "also total, with runs also logs and page of each.",
     .options =
         "cluster no-logs no-details no-full-logs refresh rebuild running queued failed name tag max watch interval "
         "json",
     N_RUNS(0, ANY),
     .sweeps = true,
     .run = cmd_query},
    {.name = "qr",
     .synopsis = "",
     .summary = "the runs that are running",
     .examples = "a qr\na qr --json\n",
     RUN_TABLE,
     .run = cmd_query_running},
    {.name = "qq",
     .synopsis = "",
     .summary = "the queued runs, and what they wait for",
     .examples = "a qq\na qq --json\n",
     RUN_TABLE,
     .run = cmd_query_queued},
    {.name = "qf",
     .aliases = "f, failed",
     .synopsis = "",
     .summary = "the failed runs, and why they failed",
     .examples = "a qf\na qf --max 5\n",
     RUN_TABLE,
     .run = cmd_query_failed},
    {.name = "top",
     .synopsis = "[-n TIME]",
     .summary = "all runs and clusters at a glance, live",
     .examples = "a top\n"
                 "a top -n 10s                 ask every ten seconds\n"
                 "a top --tag sweep=7          only runs that are tagged so\n"
                 "a top --once | cat           one frame, for a file or a pipe\n"
                 "a top --json | jq '.runs[] | select(.state == \"Running\") | .live.busy'\n",
     .details = "Shows the clusters that have active runs, and the one that a submit would use, with what is idle and\n"
                "how many jobs are queued. Shows the runs with their state, how long they have been running, waiting\n"
                "or over, how busy their GPUs are (cpu: processors), how full the memory of those is, the last\n"
                "values of the numbers that rank 0 keeps printing, and its last line with its age; after five minutes\n"
                "of silence also the rank that the others seem to wait for.\n"
                "Keys: up and down choose a run, l shows its log, w why it failed or waits, a aborts it (after\n"
                "asking), s sorts, / filters, f unfolds a sweep, r refreshes now, h helps, q quits.\n"
                "A sweep is one line, unless --tag or --name selects its runs: how many are done, running and failed\n"
                "(4d 6r 1f), the best value so far of a number whose name says which way is better (loss, acc), and\n"
                "the mean use of the machines.\n"
                "Each cluster is asked about all runs at once, and less often than --interval if it is slow to\n"
                "answer; only the logs of runs on the screen are read. For a cluster that cannot be asked the reason\n"
                "is shown. Nothing is asked on the terminal: a login that needs a password, or a project that is not\n"
                "trusted, is shown as an error. If the output is not a terminal, one frame is printed, as with\n"
                "--once.\n"
                "--json: one look: version (1), clusters (name, error, has_gpus, nodes, nodes_idle, gpus, gpus_idle,\n"
                "queue, and your own running and queued), total, runs as of 'a q', each with live (has_gpus, busy,\n"
                "memory from 0 to 1, last_line, log_changed, held_up_by, numbers: name, last; null: it does not run,\n"
                "or nothing is known), and sweeps (id, runs, states: how many in each, best: name, value); null: not\n"
                "known.",
     .options = "cluster name tag max interval once json",
     .of_runs = true,
     .run = cmd_top},
    {.name = "logs",
     .synopsis = "[-f] [--rank N | --all] [-n N] [--attempt N] [RUN]",
     .summary = "print a rank's log, or follow it until the run ends",
     .examples = "a logs 60ce2fc7              all that rank 0 has said\n"
                 "a logs -f 60ce2fc7           follow it\n"
                 "a logs -f @                  follow the run submitted last\n"
                 "a logs -f --all 60ce2fc7     all ranks: [3] before the lines of rank 3\n"
                 "a logs --rank 3 --tail 20 60ce2fc7\n"
                 "a logs --attempt 1 60ce2fc7  what it said before it was preempted\n"
                 "a logs --name system_logs/mpirun.txt 60ce2fc7\n",
     .details = "-f goes on through new attempts of the run, and while the cluster cannot be reached; Ctrl-C stops\n"
                "following, not the run. The last line (on stderr) says how the run ended, and the exit status is the\n"
                "run's, as with 'a wait'. --all prints whole lines; one of more than 64 KiB comes in pieces.\n"
                "'a -c CLUSTER logs' also finds runs that this machine did not submit.",
     .options = "cluster follow rank all tail attempt name",
     N_RUNS(0, 1),
     .last_run = true,
     .run = cmd_logs},
    {.name = "files",
     .synopsis = "[-d FOLDER] [--urls] [RUN]",
     .summary = "the files that a run has written, with their sizes",
     .examples = "a files 60ce2fc7                its logs and metrics; where its folders are\n"
                 "a files -d output 60ce2fc7      what it wrote into the folder output\n"
                 "a files -d output --urls @ | xargs -n 1 curl -O\n"
                 "a files --json @ | jq -r 'select(.size > 1e9) | .path'\n",
     .details = "RUN:PATH is a log, which 'a cat' prints and 'a d' fetches. Folders are those that the run had, even\n"
                "if the project maps others now. -d FOLDER lists the files in that folder that were written while the\n"
                "run was running, or have its id in their path; --all lists the others too. -d logs lists the logs,\n"
                "as without -d. Files that a run writes outside of its folders are in its own copy of the project,\n"
                "where it ran: no store has them, and they are not listed.\n"
                "--urls: a line for each file, its URL as by 'a url', with --expires and --share-sas; of a log, whose\n"
                "address is never shown, RUN:PATH.\n"
                "--json: a line each with version (1), kind (file, or without -d also folder), path, size, mtime, url\n"
                "(with --urls), and of folders mode, store and store_path; null: not known, or none.",
     .options = "cluster folder all urls expires share-sas bytes json",
     N_RUNS(0, 1),
     .last_run = true,
     .run = cmd_files},
    {.name = "wait",
     .synopsis = "[--any] [--timeout TIME] RUN... | --name NAME | --tag KEY=VALUE",
     .summary = "wait for runs; the exit status is the run's",
     .examples = "a wait 60ce2fc7 && a d output/model\n"
                 "a wait --timeout 2h 60ce2fc7\n"
                 "a wait @ @2 @3                until all three have ended\n"
                 "a wait --any @ @2             until one of them has\n"
                 "a wait 60ce2fc7              of a sweep, by id or name: until all of its runs have\n"
                 "a wait --notify 'echo $ACT_RUN_ID $ACT_RUN_STATE | mail -s ACT me' @\n",
     .details = "Exit status: 0 completed; the exit status of the rank that failed first; 143 canceled; 125 when ACT\n"
                "itself failed, or the time was up. Of several runs, it is the status of the first one named that did\n"
                "not complete; with --any, of the first one named that has ended.\n"
                "The command of --notify runs here once for each run that has ended. In its environment are also\n"
                "ACT_RUN_EXIT_STATUS, ACT_RUN_NAME, ACT_RUN_CLUSTER and ACT_RUN_REASON. If it fails, a warning says\n"
                "so.\n"
                "--json: version (1) and run, as one of 'a q --json'; with several words runs, those that have ended\n"
                "(with --any, one).",
     .options = "cluster any timeout notify name tag json",
     N_RUNS(0, ANY),
     .sweeps = true,
     .own_status = true,
     .run = cmd_wait},
    {.name = "why",
     .synopsis = "[RUN]",
     .summary = "which rank failed first, what it said, what that means, what to do",
     .examples = "a why 60ce2fc7\n"
                 "a why --json 60ce2fc7 | jq -r .diagnosis.code\n",
     .details =
         "Reads the agent's records and the ends of the logs; fetches nothing. For a run that has not failed,\n"
         "it says what the run waits for or is doing. Your own rules, in the same form as the built-in ones,\n"
         "can go into aux_data/diagnosis.yaml. Exit status 0: the question was answered.\n"
         "For a run that is running, or that hung, it shows what each rank said last and for how long it has\n"
         "been silent; ranks that are where few others are come first. On a service, the time is that of the\n"
         "log.\n"
         "--json: version (1), run, state, replaced_by (the run that took its place), reason, attempt, attempts,\n"
         "retry, heartbeat, last_line (of rank 0), ranks (rank, line, silent_s, longer: than that), failure\n"
         "(attempt, rank, node, exit_status, signal, reason, time, lines), diagnosis (id, code, class, summary,\n"
         "advice, rank, log, line; retry: no, yes, other_node, after_change) and notes; null: not known.",
     .options = "cluster json",
     N_RUNS(0, 1),
     .last_run = true,
     .run = cmd_why},
    {.name = "grep",
     .synopsis = "[-i] RE [RUN...]",
     .summary = "search the logs of runs for a regular expression",
     .examples = "a grep 'loss=nan' @               in all logs of the run submitted last\n"
                 "a grep -i 'out of memory'         of the newest 30 runs\n"
                 "a grep --tag sweep=7 'acc=0\\.9'  of the runs tagged so\n"
                 "a grep --json Error | jq -r '[.run, .rank] | @tsv' | sort -u\n",
     .details = "RE is an extended regular expression, as for 'grep -E'. Each matching line is printed after\n"
                "RUN:LOG:LINE: (RUN:LOG is a path for 'a cat'), [the rank], and its time: that in the line itself or\n"
                "in the nearest line above that has one; else < and the time when the log was last written. On a\n"
                "terminal, the id is cut to its last piece, [the rank] stands for the log, and today's date is left\n"
                "out. The logs are read where the run is or, where that is not possible, from the copies in\n"
                "assets/<run id>/. Without RUN, it searches the runs of your ledger that 'a q' lists, the newest 30\n"
                "unless --max says otherwise. Exit status: 0 if a line matches, 1 if none does.\n"
                "--json: a line each with version (1), run, log, rank (null: it is no rank's log), attempt, line,\n"
                "time, log_changed and text; null: not known.",
     .options = "cluster ignore-case name tag max json",
     N_RUNS(1, ANY),
     .sweeps = true,
     .sweeps_from = 1,
     .run = cmd_grep},
    {.name = "diff",
     .synopsis = "RUN RUN",
     .summary = "how two runs differ: command, code, configuration, environment, nodes, software",
     .examples = "a diff @2 @                     what is new in the run submitted last\n"
                 "a diff --json @2 @ | jq -r '.differences[].name'\n",
     .details = "Lines with - are of the first run, those with + of the second. Code is compared file by file: size,\n"
                "CRC-32 and mode, and of texts the changed lines as of diff -u (at most 200 of a file, which may have\n"
                "2000); a package that is not on this machine is fetched. Of secrets only the names are compared. The\n"
                "exit status is 0 whether the runs differ or not.\n"
                "--json: version (1), from, to (the ids) and differences, each with part, name (null: the part as a\n"
                "whole), from and to (null: that run does not have it), and lines (null: no changed lines are known).",
     .options = "cluster json",
     N_RUNS(2, 2),
     .run = cmd_diff},
    {.name = "parse",
     .synopsis = "[RUN|FOLDER]",
     .summary = "the error codes in the logs of a run, or in a folder of logs",
     .examples = "a parse 60ce2fc7\n"
                 "a -no-wl parse 60ce2fc7       only the logs that are here already\n"
                 "a parse old/logs              the logs in a folder\n",
     .details = "Fetches the logs as 'a q RUN' does and prints each code on a line; 'a why' says which one counts.\n"
                "A word that names a folder on this machine means the logs in it: those of a run, as in assets/, or\n"
                "any others. The lines with 'Error', at most 100 of each log, go to stderr.\n"
                "--json: version (1), run (or folder), codes (code, id, class, log, line) and errors (log, line). The\n"
                "exit status is 0 even if there are none.",
     .options = "cluster no-logs no-full-logs json",
     N_RUNS(0, 1),
     .last_run = true,
     .run = cmd_parse},
    {.name = "report",
     .synopsis = "[RUN...] | --tag KEY=VALUE > run.html",
     .summary = "everything known about runs, as one page for a browser",
     .examples = "a report 60ce2fc7 > run.html\n"
                 "a report -o run.html 60ce2fc7   the same; never half a page\n"
                 "a report 60ce2fc7 1f0a > both.html   the curves of both in one picture\n"
                 "a report --tag sweep=60ce2fc7 --metric loss --min > sweep.html   with the best ones first\n"
                 "a -no-wl report -o run.html 60ce2fc7   only from the logs that are here\n",
     .details = "The page has the command, package and configuration, what differs from the run that it repeats (with\n"
                "several runs: from the first), why it ended as it did, curves of the numbers in a rank's log (by\n"
                "default the first rank that prints any), what each node used, the ends of the logs, and all files\n"
                "with their sizes.\n"
                "Its curves can be read off and zoomed; it loads nothing from elsewhere, and can be printed. Fetches\n"
                "the logs as 'a q RUN' does.",
     .options = "cluster no-logs no-full-logs rank name tag metric lowest highest output",
     N_RUNS(0, ANY),
     .sweeps = true,
     .last_run = true,
     .run = cmd_report},
    {.name = "plot",
     .synopsis = "[KEY [RUN...]] | @... | [KEY] --tag NAME=VALUE",
     .summary = "plot a number from the logs of runs, such as the loss",
     .examples = "a plot                              which numbers the run submitted last has\n"
                 "a plot loss 60ce2fc7\n"
                 "a plot loss 60ce2fc7 1f0a           two runs in one picture\n"
                 "a plot lr --svg 60ce2fc7 > lr.svg\n"
                 "a plot loss --csv 60ce2fc7 > loss.csv\n",
     .details =
         "KEY is what stands before the number: 'loss 2.31', 'loss: 2.31', 'loss=2.31', {\"loss\": 2.31}.\n"
         "Without KEY ('a plot', 'a plot @2'; a first word without '@' is KEY), it lists the numbers that there\n"
         "are. x is the step in the same line or just before it (step, iter, iteration, batch, update), else the\n"
         "epoch, else the count of values. More than 32768 values are thinned out in a way that keeps the shape\n"
         "of the curve. Fetches the logs as 'a q' does. Exit status: 8 if the logs of some of the runs do not have\n"
         "it, 3 if none does.\n"
         "--csv: run, x, value. --json: version (1), key, by (step, epoch or value) and runs, each with run,\n"
         "values (how many), min, max, last, not_finite (how many) and points ([x, value]). Without KEY: keys,\n"
         "each with run, key, by, values, min, max, last and not_finite. What is not finite is null.",
     .options = "cluster no-logs no-full-logs rank name tag svg csv json",
     N_RUNS(0, ANY),
     .sweeps = true,
     .sweeps_from = 1,
     .last_run = true,
     .run = cmd_plot},
    {.name = "tensorboard",
     .synopsis = "[RUN|FOLDER...]",
     .summary = "TensorBoard of runs or mapped folders, on this machine",
     .examples = "a tensorboard                       of the run submitted last\n"
                 "a tensorboard 60ce2fc7 1f0a --open  two runs, each with its name\n"
                 "a tensorboard data/events           of a mapped folder\n",
     .details = "Shows the event files (*.tfevents.*) that the runs have written into their mapped folders, wherever\n"
                "these are stored, or those of a mapped folder. They are copied to this machine, and what is added to\n"
                "them is fetched every 10 seconds; with this command, the copies go. TensorBoard has to be installed\n"
                "here: it is taken from the Python of PATH (python3), and needs version 2.5 or newer. It listens on\n"
                "127.0.0.1, and its address has a path that only you are told.",
     .options = "cluster port open",
     N_RUNS(0, ANY),
     .last_run = true,
     .run = cmd_tensorboard},
    {.name = "ui",
     .synopsis = "[--port N] [--open]",
     .summary = "the runs, their curves and logs in a browser, kept up to date",
     .examples = "a ui                        prints the address; Ctrl-C ends it\n"
                 "a ui --open                 and opens it\n"
                 "a ui --tag sweep=7          begins with those tagged so\n"
                 "a ui --port 8080            for ssh -L 8080:localhost:8080 LOGIN_NODE, from where the browser is\n",
     .details = "All runs in a table to filter and sort; the page of each, with its curves and log; several side by\n"
                "side; the clusters. Nothing can be changed there. What is active is refreshed every 10 seconds,\n"
                "however many browsers are open. The pages can also be read without scripts.\n"
                "It listens on 127.0.0.1 only. The address contains a new key each time: whoever has it sees all that\n"
                "you see, so keep it to yourself. Runs of projects that are not trusted show what is known here, and\n"
                "name 'a trust'. Exit status 0 after Ctrl-C.",
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
     .details = "--all, --name and --tag select runs that you submitted from this machine, in any project; other\n"
                "people's runs on a shared service have to be named. They list the runs and ask first.\n"
                "All runs of a cluster are told to end before the first one is waited for.\n"
                "--forget is for a cluster that does not answer: here the run counts as Canceled, but if the cluster\n"
                "comes back, it continues the run. The run stays in the ledger. A run that has ended is left as it\n"
                "is, with a note and exit status 0; one whose cluster answers is refused, with status 2.\n"
                "--json: version (1) and runs, each with id, state and had_ended.",
     .options = "cluster all name tag forget yes dry-run json",
     N_RUNS(0, ANY),
     .sweeps = true,
     .run = cmd_abort},
    {.name = "scale",
     .synopsis = "RUN N",
     .summary = "change the size of an elastic run to N GPUs",
     .examples = "a -n 8:32 submit python3 train.py\na scale 60ce2fc7 16\na scale --dry-run 60ce2fc7 8\n",
     .details = "An elastic run (-n MIN:MAX, or elastic_num_gpu in the cluster file; on the platform k8s) works with\n"
                "the nodes that are there, as long as they have MIN to MAX GPUs. N is the number it should have,\n"
                "within that range. Each change of size ends the processes with SIGTERM and starts them again, as a\n"
                "new attempt.\n"
                "--json: version (1), id, num_gpu, nodes and dry_run.",
     .options = "cluster dry-run json",
     N_RUNS(2, 2),
     .run = cmd_scale},
    {.name = "prune",
     .synopsis = "--older TIME",
     .summary = "remove what ACT keeps of the project's old runs",
     .examples = "a prune --older 30d --dry-run   what would go\n"
                 "a prune --older 30d             counts it, and asks\n"
                 "a -c eu prune --older 12h -y    only runs on cluster eu\n",
     .details = "For the runs that you submitted from this project and that ended longer ago, it removes their\n"
                "folders where they ran (on Kubernetes and Azure Machine Learning: their jobs) with the logs there,\n"
                "the copies of logs in assets/ and those that their nodes sent to the store of the code, and their\n"
                "rows in the table of runs. It also removes packages that no remaining run uses, where the runs were,\n"
                "in the cache and in the built-in store, agents of other versions where every run has ended, and\n"
                "what commands that were killed have left where runs are. It does not touch runs that are active or\n"
                "of another user or project, nor a package that somebody else's run may need, and says what it\n"
                "leaves for such a reason. Packages stay in a store of the code that others may use. If it is\n"
                "interrupted, the next one continues.\n"
                "--json: version (1), dry_run, removed (how many), runs (id, bytes), packages, agents, leftovers,\n"
                "copies and sent (runs with logs here and in the store), bytes and left (active, others, service,\n"
                "unreachable).",
     .options = "cluster param older dry-run yes json",
     .run = cmd_prune},
    {.name = "resubmit",
     .synopsis = "RUN...",
     .summary = "submit the same run again; if it is still active, abort it then",
     .examples = "a resubmit 60ce2fc7\n"
                 "a resubmit --code 60ce2fc7     with today's code\n"
                 "a -rt eu resubmit 60ce2fc7     on another cluster\n",
     .details = "The new run has the command, package, size, name and tags of the old one, and goes to the same\n"
                "cluster unless -rt or -c names another. --name gives it another name, --tag adds or changes tags.\n"
                "--code packs the project's files as they are now, as a submit does. Prints the new ids.\n"
                "A run that is still active is aborted when the new one is sure to begin: if that is refused, the old\n"
                "one goes on. Where both are on the same machine or Slurm, the new one begins when the old one has\n"
                "ended. On a terminal it asks before it aborts a run that is running, unless -y is given. A run that\n"
                "another one has replaced, which goes on, is submitted once more only if you say so (-y), each time.\n"
                "A run that has not begun is still to run after those of its --after, unless this command names\n"
                "others; with --after-any also after one that failed.\n"
                "--json: version (1) and runs, each with version, id, cluster, platform, nodes, processes_per_node,\n"
                "package, resubmit_of, after, name and tags; --dry-run prints the specifications as JSON in any case.",
     .options = "cluster resubmit-to num-gpu param single compile-args code name tag after after-any hang retry "
                "retry-on use-bad-nodes here yes dry-run json",
     N_RUNS(1, ANY),
     .sweeps = true,
     .run = cmd_resubmit},
    {.next_table = cli_cluster_commands},
};
