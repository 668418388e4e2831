/* commands_runs.c - verbs for runs, one row each. */
#include "cli/commands_internal.h"

/* A command that prints a part of the table of runs. */
#define RUN_TABLE                                                                                                      \
    .details = "--json: version (1), total and runs, as of 'a q'.", .options = "cluster name tag max json",            \
    .of_runs = true

const struct cli_command cli_run_commands[] = {
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
         "and tool (of a job file), param (what 'python src/....py -bp BASE64' was given, as YAML), num_gpu (0:\n"
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
                 "a top --once | cat           one frame, for a file or a pipe\n"
                 "a top --json | jq '.runs[] | select(.state == \"Running\") | .live.busy'\n",
     .details =
         "Clusters with what is idle and how many wait, of all that have a run that has not ended, and of the one\n"
         "that a submit would use. Runs with state, how long they run, wait or have been over, how busy their GPUs\n"
         "are (cpu: their processors), how full the memory of those is, the last values of the numbers that rank 0\n"
         "prints again and again, and its last line and how old that is. When it is silent for five minutes, also\n"
         "which rank the others seem to wait for.\n"
         "Keys: up and down choose a run, l shows its log, w why it failed or waits, a aborts it (asks), s sorts,\n"
         "/ filters, f unfolds a sweep, r asks now, h helps, q quits.\n"
         "The runs of a sweep are one line, unless --tag or --name chose them: how many are done, run and failed\n"
         "(4d 6r 1f), the best value of a number whose name says what is better (loss, acc, as far as the runs are\n"
         "followed), the means of what they use.\n"
         "Each cluster is asked for all runs at once, and less often than --interval says if it takes long to\n"
         "answer; only the logs of runs on the screen are read. A cluster that cannot be asked shows why. Nothing\n"
         "is asked on the terminal: where a login needs a password, or a project is not trusted, that is the error.\n"
         "If the output is no terminal, one frame is printed, as with --once.\n"
         "--json: one look: version (1), clusters (name, error, has_gpus, nodes, nodes_idle, gpus, gpus_idle, queue,\n"
         "and your own running and queued), total, runs as of 'a q', each with live (has_gpus, busy, memory from 0\n"
         "to 1, last_line, log_changed, held_up_by, numbers: name, last; null: it does not run, or nothing is\n"
         "known), and sweeps (id, runs, states: how many in each, best: name, value); null: not known.",
     .options = "cluster name tag max interval once json",
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
    {.name = "files",
     .synopsis = "[-d FOLDER] [--urls] RUN",
     .summary = "the files that a run has written, with their sizes",
     .examples = "a files 60ce2fc7                its logs and metrics; where its folders are\n"
                 "a files -d output 60ce2fc7      what it wrote into the folder output\n"
                 "a files -d output --urls @ | xargs -n 1 curl -O\n"
                 "a files --json @ | jq -r 'select(.size > 1e9) | .path'\n",
     .details =
         "RUN:PATH is a log, which 'a cat' prints and 'a d' fetches. Folders are where the run had them, even if\n"
         "the project maps others now. With -d FOLDER: the files in that one that were written while the run ran,\n"
         "or have its id in their path; --all lists the others too. -d logs is what is listed without it.\n"
         "--urls: a line for each file, its URL as by 'a url', with --expires and --share-sas; of a log, whose\n"
         "address is never shown, RUN:PATH.\n"
         "--json: a line each with version (1), kind (file, or without -d also folder), path, size, mtime, url\n"
         "(with --urls), and of folders mode, store and store_path; null: not known, or none.",
     .options = "cluster folder all urls expires share-sas bytes json",
     A_RUN,
     .run = cmd_files},
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
         "last written to. On a terminal it is the last piece of the id, [the rank] in place of its log, and no day\n"
         "for today. The logs are read where the run is; where that is not possible, the copies in\n"
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
         "Exit status: 8 if the logs of some of the runs do not have it, 3 if none does.\n"
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
    {.next_table = cli_cluster_commands},
};
