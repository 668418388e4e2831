/* own.c - verbs for logins, settings and ACT itself, and those that programs call, one row each. */
#include <unistd.h>

#include "cli/command/tables.h"
#include "cli/data/data.h"
#include "cli/help/help.h"
#include "cli/own/own.h"
#include "cli/page/verbs.h"

const struct cli_command cli_own_commands[] = {
    {.group = "what is yours: login, configuration, help",
     .name = "login",
     .synopsis = "[--device-code [--tenant TENANT]]",
     .summary = "show who you are to Azure, or log in with a code",
     .examples = "a login                          who you are, and by which credential\n"
                 "a login --device-code            log in with a browser on any machine\n"
                 "a login --device-code --tenant contoso.onmicrosoft.com\n",
     .details = "Accounts without a key or SAS use the login that the environment has: a service principal, a managed\n"
                "identity, 'a login --device-code' or 'az login'. A login by --device-code is kept until 'a logout'.\n"
                "--json: version (1), name of a user, app_id, object_id, tenant, source and expires; null: the token\n"
                "does not say.",
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
     .synopsis = "[show | check | get | set | unset [KEY [VALUE] | KEY=VALUE...]]",
     .summary = "show, check and change the configuration",
     .examples = "a config show\n"
                 "a config show --all       keys without a value too\n"
                 "a -c eu -p 'num_gpu: 8' config show --json\n"
                 "a -c eu config check\n"
                 "a config get              which keys there are\n"
                 "a config get docker.image\n"
                 "a -c eu config set slurm.time 12:00:00\n"
                 "a config set env.NCCL_DEBUG=INFO num_gpu=8   several at once\n"
                 "a config set elastic_num_gpu '[8, 16]'\n"
                 "a -c eu config unset slurm.time\n",
     .details = "show prints every value with its origin, and leaves out keys without a value and defaults of other\n"
                "platforms. check says what is wrong. set and unset change values in the cluster file that they come\n"
                "from, and keep everything else there, comments and order included. Keys that need each other, as\n"
                "those of a new folder, are set in one call: KEY=VALUE for each. A change that would make the file\n"
                "invalid is refused. VALUE is YAML or, for a key whose value is text, the text itself.\n"
                "'trusted_hosts' and 'default_cluster' are keys of your own settings. Secrets are not set here:\n"
                "'a cluster edit' opens the file.\n"
                "--json: version (1), cluster, file, project_root and values, which are all keys, each with value and\n"
                "origin; of check version, cluster, file, ok and problems; of get version, key, value, origin, or\n"
                "without KEY version and keys; of set and unset version, key (null: several), keys, file,\n"
                "changed, dry_run.",
     .options = "cluster num-gpu param single compile-args all dry-run json",
     N_WORDS(1, ANY, CLI_CHOICE),
     .alone = "show",
     .then = CLI_KEYS,
     .then_behind = "get set unset",
     .bare = true,
     .looks_only = true,
     .run = cmd_config},
    {.name = "trust",
     .synopsis = "[--list | --remove [PATH]]",
     .summary = "show what a project reaches outside its folder, and allow it",
     .examples = "a trust                          shows it, and asks\n"
                 "a -c lab trust                   what the cluster lab leads to\n"
                 "a trust -y                       the same without a question, for scripts\n"
                 "a trust --list                   all that was trusted\n"
                 "a trust --remove                 this project is not trusted any more\n",
     .details = "The files of a project may come from anybody. Before they make ACT reach outside the project for the\n"
                "first time, by a link ('data', 'assets'), a store or an account file elsewhere, 'slurm.login',\n"
                "'slurm.root' or a host that is not Azure's, every verb shows what it is and asks; without a terminal\n"
                "it exits with 4. The answer is kept for this path of the project and exactly what was shown.\n"
                "ACT_TRUSTED_PROJECTS (paths separated by ':', or '*') trusts without a question. Your credentials go\n"
                "only to Azure and your 'trusted_hosts', whatever is trusted here.\n"
                "--json: version (1), path, reaches, untrusted; with --list: version and projects with path and\n"
                "trusted. A text that is not UTF-8 is {\"base64\": ...}.",
     .options = "cluster param list remove json yes dry-run",
     .max_words = 1,
     .bare = true,
     .looks_only = true,
     .run = cmd_trust},
    {.name = "doctor",
     .synopsis = "",
     .summary = "check that all that runs on the cluster need is there",
     .examples = "a doctor\na -c eu doctor\na doctor --json | jq -r '.checks[] | select(.ok | not) | .text'\n",
     .details = "One line for each check: what was found, or what is wrong and what to do. Exit status: 0 if all is\n"
                "well, 1 if something is not. Changes nothing on the cluster. --json: version (1), ok, and checks,\n"
                "each with what, ok, text.",
     .options = "cluster param json",
     .bare = true,
     .run = cmd_doctor},
    {.name = "completion",
     .synopsis = "bash | zsh | fish",
     .summary = "a completion script for the shell",
     .examples = "a completion fish | source       for ~/.config/fish/config.fish\n"
                 "source <(a completion bash)      for ~/.bashrc\n"
                 "source <(a completion zsh)       for ~/.zshrc, after compinit\n",
     N_WORDS(1, 1, CLI_CHOICE),
     .bare = true,
     .run = cmd_completion},
    {.name = "help",
     .synopsis = "[VERB [VERB] | OPTION | act.yaml]",
     .summary = "this overview, or the manual page of a verb, or of the configuration files",
     .examples = "a help\n"
                 "a help submit\n"
                 "a help cluster create\n"
                 "a help retry-on                 the verbs that take this option\n"
                 "a help act.yaml                 the keys of each file, that of the project first\n",
     .details = "Where stdout is not a terminal, or man(1) is missing, it prints what 'a VERB --help' does.",
     N_WORDS(0, 2, CLI_VERBS),
     .bare = true,
     .run = cmd_help},
    {.name = "transfer-folder",
     .synopsis = "RUN_FOLDER download|upload FOLDER DIR",
     .summary = "move a mapped folder of a run between its store and DIR (called by the agent)",
     .examples = "a transfer-folder /path/to/run download data /path/to/run/code/data\n",
     HIDDEN(4, 4),
     .run = cmd_transfer_folder},
    {.name = "mount-folder",
     .synopsis = "RUN_FOLDER FOLDER NODE_FOLDER",
     .summary = "mount a mapped folder of a run on a node of it (called by the agent)",
     .examples = "a mount-folder /path/to/run data /tmp/act-1000/run/0\n",
     HIDDEN(3, 3),
     .run = cmd_mount_folder},
    {.name = "__host",
     .synopsis = "VERB ROOT",
     .summary = "do here, with the runs below ROOT, what another machine asks (called by its 'platform: ssh')",
     .examples = "a __host look /home/me/.act\n",
     HIDDEN(2, 2),
     .run = cmd_host},
    {.name = "__store",
     .synopsis = "FOLDER create|find [KEY]",
     .summary = "serve FOLDER to another machine, which asks on stdin, about KEY first (called by it)",
     .examples = "a __store /home/me/.act/store create data\n",
     HIDDEN(2, 3),
     .run = cmd_store},
    {.name = "__page",
     .synopsis = "PATH [NAME=VALUE...]",
     .summary = "print a page of 'a ui', or its data (called by it)",
     .examples = "a __page api/runs max=20\n",
     .options = "cluster",
     .min_words = 1,
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
     HIDDEN(1, 1),
     .run = cmd_man},
    {0},
};
