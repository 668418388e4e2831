/* data.c - verbs for mapped folders, one row each. */
#include <unistd.h>

#include "cli/command/tables.h"
#include "cli/data/data.h"

#define TRANSFER_OPTIONS                                                                                               \
    "cluster param dry-run delete max-delete yes include exclude filter-from checksum overwrite json "                 \
    "transfers bwlimit memory part-size no-sync"

/* The details of verbs with run_options. */
#define RUN_PATHS                                                                                                      \
    "RUN:PATH is a log of a run, or a folder of logs, as its platform lists them. RUN is any unique\n"                 \
    "piece of the run's id, or @ for the last run; 'RUN:' is all of them. A file of such a name is './a:b'."

/* The details of verbs that copy. */
#define MOVED_JSON                                                                                                     \
    "ACT_MAX_TRANSFERS, ACT_MEMORY and ACT_BWLIMIT are the defaults of --transfers, --memory, --bwlimit.\n"            \
    "--json: one line with version (1), summary (the verb), dry_run, objects, bytes, resumed_bytes, same,\n"           \
    "newer, left (the paths of the first 20 of those), skipped_links, deleted, failed, folder_modes (of\n"             \
    "folders with something in them, no objects), seconds, failures (text, count, also: the names of the\n"            \
    "next 20 like it) and errors (text, status); --dry-run: before it one for each step, with action\n"                \
    "(copy, delete, leave), size, path and reason."

const struct cli_command cli_data_commands[] = {
    {.group = "data",
     .name = "upload",
     .aliases = "u",
     .synopsis = "PATH...",
     .summary = "copy mapped local files and folders to the cluster's store",
     .examples = "a u data/voc20                   a file or a folder: found out\n"
                 "a -c eu u data/voc20             to the store of cluster eu\n"
                 "a -c eu -f we u data/voc20       from the store of we to that of eu\n"
                 "a u --dry-run --delete data      what would be copied and deleted, and why\n"
                 "a u --exclude '*.tmp' --exclude '/cache/' data\n",
     .details =
         "Files whose size and modification time match are skipped. After an interruption the same command\n"
         "continues where it stopped. Files that differ and are newer in the store are left alone and named,\n"
         "unless --overwrite is given. Nothing is deleted without --delete, which counts and asks first. Links\n"
         "that stay inside the folder are stored as links; one that leads out of it is named, and the exit\n"
         "status is 8. --follow stores what it leads to as files and folders; --skip-links leaves it out.\n"
         "Links that lead nowhere, or back to a folder that they are in, are named and not followed. What\n"
         "cannot be read, and names that are not UTF-8, are named too: the rest is stored, and --exclude\n"
         "leaves them out.\n"
         "--delete spares what the store has below such names.\n"
         "With several paths, a failure of one does not stop the others; the exit status is then 8.\n" MOVED_JSON,
     .options = "from-cluster md5 follow-links skip-links " TRANSFER_OPTIONS,
     PATHS,
     .run = cmd_upload},
    {.name = "download",
     .aliases = "d",
     .synopsis = "PATH|RUN:[PATH]...",
     .summary = "copy files from the cluster's store, or the logs of a run, to this machine",
     .examples = "a d output/model.npz\n"
                 "a d data/coco\n"
                 "a -c eu d output\n"
                 "a d --include '*.npz' --bwlimit 20M output\n"
                 "a d --delete data/coco           the local folder becomes what the store has\n"
                 "a d 60ce2fc7:                    the logs of a run, to assets/<run id>/\n"
                 "a d --include 'std_log*' 60ce2fc7:user_logs\n",
     .details = "Each file is verified, written beside its target and renamed into place. Files whose size and\n"
                "modification time match are skipped. After an interruption the same command continues where it\n"
                "stopped. Files that differ and are newer here are left alone and named, unless --overwrite is given.\n"
                "Nothing is deleted without --delete, which counts and asks first. With several paths, a failure of\n"
                "one does not stop the others; the exit status is then 8.\n"
                "What is new in the logs of a run goes to assets/<run id>/ of its project, as with 'a q'.\n" RUN_PATHS
                "\n" MOVED_JSON,
     .options = TRANSFER_OPTIONS,
     .run_options = "cluster dry-run yes include exclude filter-from json transfers bwlimit memory",
     PATHS,
     .run = cmd_download},
    {.name = "ls",
     .synopsis = "[-r] [-l] [PATH|RUN:[PATH]...]",
     .summary = "list a mapped path in the cluster's store, or the logs of a run",
     .examples = "a ls                             the mapped folders\n"
                 "a ls data                        names, one level; folders end in /\n"
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
     N_WORDS(0, ANY, CLI_PATHS),
     .run = cmd_ls},
    {.name = "rm",
     .synopsis = "[-y] PATH|RUN:...",
     .summary = "remove a file or a folder from the cluster's store, or a whole run",
     .examples = "a rm --dry-run data/coco         what would go\n"
                 "a rm data/coco\n"
                 "a rm -y output/old\n"
                 "a rm --include '*.tmp' output\n"
                 "a rm --leftovers data            what interrupted transfers left, in the store and here\n"
                 "a rm 60ce2fc7:                   a run that has ended, with its logs\n"
                 "a rm --force 60ce2fc7:           one whose cluster is gone: what is left of it here\n",
     .details =
         "Counts first and asks; without a terminal -y is needed. Objects that changed after they were listed\n"
         "stay and are named; the exit status is then 8. The local folder is not touched. --dry-run prints a\n"
         "path on each line, with --json an object: version (1), action (delete), size, path. --json ends with\n"
         "a line with version (1), summary (rm), dry_run, runs, objects, bytes, failed, failures, errors: see\n"
         "'a upload'.\n"
         "'RUN:' is a run: what is left of it where it ran (its folder, job or pods), its logs there, in the\n"
         "store of the code and in assets/, and finally its row in the table of runs. One that goes on is\n"
         "refused: 'a abort' ends it. What it wrote into mapped folders stays, and packages, which 'a prune'\n"
         "removes. RUN is any unique piece of the id, the name, or @; a whole id needs no colon. If its cluster\n"
         "cannot be reached, or its file is gone, it is refused; --force then removes the rest, and says what\n"
         "stays. --dry-run --json: a line each with version (1), action (delete), run, size, copies, sent\n"
         "(whether logs are here, and in the store) and unreached (why its cluster cannot be, or null).",
     .options = "cluster param dry-run yes force include exclude filter-from leftovers json transfers",
     .run_options = "cluster dry-run yes force json",
     .whole_runs = true,
     PATHS,
     .run = cmd_rm},
    {.name = "du",
     .synopsis = "[-d N] [PATH|RUN:[PATH]...]",
     .summary = "the size of a path in the cluster's store, of a run's logs, or of all that ACT keeps",
     .examples = "a du                             what ACT keeps, here and where your runs are\n"
                 "a du data                        size, objects\n"
                 "a du -d 1 data                   for each folder in it too\n"
                 "a du --json -d 2 output | jq -s 'sort_by(-.bytes)[:10]'\n"
                 "a du 60ce2fc7:                   of the logs of a run\n",
     .details =
         "A folder's line comes behind those of its subfolders. With --json each is a line of its own: version\n"
         "(1), path, objects, bytes.\n" RUN_PATHS "\n"
         "Without a path: folders of runs, packages and agents, what killed commands have left there (leftovers),\n"
         "copies of logs, the built-in store with its data of all projects, the package cache and the ledger;\n"
         "'a prune' removes what old runs and killed commands have left. With -c only what runs on that\n"
         "cluster have. --json: a line each with version (1), what, where, n and bytes.",
     .options = "cluster param depth bytes json transfers",
     .run_options = "cluster depth bytes json transfers",
     N_WORDS(0, ANY, CLI_PATHS),
     .run = cmd_du},
    {.name = "mount",
     .synopsis = "[--read-only] PATH DIR",
     .summary = "mount a path of the cluster's store as a folder, until Ctrl-C",
     .examples = "a mount data /mnt/data              look at it, change it\n"
                 "a mount --read-only data/voc voc    only look at it\n",
     .details = "DIR is an empty folder. The container is mounted by blobfuse2 or, where that is not installed, by\n"
                "rclone ('mount' in the cluster file chooses), with a signature for that container alone. Ctrl-C\n"
                "waits until everything written is in the store, then unmounts; a second Ctrl-C does not wait. What\n"
                "could not be sent stays in the cache, and the message says where. A store that is a folder needs no\n"
                "mount; the error says where that folder is.",
     .options = "cluster param read-only",
     N_WORDS(2, 2, CLI_PATHS),
     .run = cmd_mount},
    {.name = "cat",
     .synopsis = "[-f] PATH|RUN:PATH...",
     .summary = "print files of the cluster's store, or logs of a run",
     .examples = "a cat output/result.json | jq .accuracy\n"
                 "a cat --last 10k output/log.txt  the end of a log\n"
                 "a cat --first 1M data/big.csv | head\n"
                 "a cat 60ce2fc7:user_logs/std_log_process_3.txt\n"
                 "a cat -f @:user_logs/std_log_process_3.txt   as it grows, until the run ends\n",
     .details =
         "A whole file is verified at its end: if it does not match the store's checksum, the exit status is 1\n"
         "and the output must not be trusted. A growing log is printed up to its length at the start.\n"
         "With -f a log that is not there yet is waited for, and followed until the run ends; the exit status is\n"
         "then the run's, as of 'a logs -f'.\n" RUN_PATHS,
     .options = "cluster param follow first last memory transfers bwlimit",
     .run_options = "cluster follow first last memory transfers bwlimit",
     PATHS,
     .run = cmd_cat},
    {.name = "verify",
     .synopsis = "[--deep] PATH...",
     .summary = "check that a mapped local path and the cluster's store have the same content",
     .examples = "a verify data/voc20\n"
                 "a verify --deep output               reads all bytes on both sides\n"
                 "a -c eu -f we verify data/voc20      the store of we with that of eu\n"
                 "a verify data | grep '^content '\n",
     .details = "Prints a line for each difference: a word, a blank and the path. missing: not in the store; extra:\n"
                "only in the store; kind: a file on one side, a link or folder on the other; size; content: the\n"
                "bytes, by the store's checksum or, where it keeps none, by reading them. --follow and --skip-links\n"
                "work as in 'a upload'. Exit status: 0 if there is no difference, 8 if there are any.\n"
                "--json: a line each with version (1), difference, path, and from (the local side, or that of -f) and\n"
                "to (the store): kind, size and mtime, or null.",
     .options =
         "cluster param from-cluster deep follow-links skip-links include exclude filter-from json transfers bwlimit "
         "memory part-size",
     PATHS,
     .run = cmd_verify},
    {.name = "url",
     .synopsis = "[--expires TIME] [--share-sas] PATH...",
     .summary = "a URL from which a file of the store can be read without credentials",
     .examples = "a url output/model.npz\ncurl -O \"$(a url --expires 1h output/model.npz)\"   of Blob Storage\n",
     .details = "It is valid for 24 hours unless --expires says otherwise. Whoever has it can read the file. It is\n"
                "signed with an account_key or a login. Where the account file has only a sas_token, --share-sas puts\n"
                "that into the URL, with everything it permits, until it expires; --expires is refused then, as it is\n"
                "for a file in a folder store.\n"
                "--json: a line for each with version (1), path and url.",
     .options = "cluster param expires share-sas json",
     PATHS,
     .run = cmd_url},
    {.next_table = cli_own_commands},
};
