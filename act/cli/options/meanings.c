/* meanings.c - what an option means to some verbs, where one text for all would name verbs beside the reader's. */
#include <string.h>
#include <unistd.h>

#include "cli/command/command.h"

#define LABEL_VERBS "submit sweep resubmit shell notebook"
#define LOOK_VERBS  "sweep report plot"

const struct cli_option_meaning cli_option_meanings[] = {
    {"file", "submit", "run what this job file of Azure Batch AI describes, instead of a command"},
    {"file", "cluster", "create: what this cluster file of Azure Batch AI describes"},
    {"all", "logs", "the logs of all ranks, with the rank before each line"},
    {"all", "files", "also files that were written at another time"},
    {"all", "config", "show: keys without a value too"},
    {"all", "abort", "all your runs that have not ended"},
    {"all", "cluster", "list: those of all workspaces of the subscription"},
    {"all", "fileserver", "list: those of the whole subscription"},
    {"name", LABEL_VERBS, "the name of the run"},
    {"name", "logs", "the log of this name, as 'a q RUN' lists them"},
    {"tag", LABEL_VERBS, "tag the run (repeatable)"},
    {"tag", "cluster fileserver", "create: tag the resource (repeatable)"},
    {"rank", "attach", "show this rank, and interrupt it with Ctrl-C (default: 0)"},
    {"rank", LOOK_VERBS, "read the log of this rank (default: the first with numbers)"},
    {"forget", "nodes", "with --bad: the nodes that are named count as good again"},
    {"subscription", "fileserver", "the id of the subscription"},
    {"resource-group", "fileserver", "the resource group"},
    {"location", "fileserver", "create: the region (default: that of the resource group)"},
    {"subnet", "fileserver", "create: the resource id of the subnet whose machines may mount it"},
    {"max", "cluster", "create, autoscale: at most N nodes"},
    {"max", "blame", "at most N jobs (default 20; 0: all)"},
    {"idle", "shell", "end it when nothing was typed or printed for this long, and no GPU computed (default: 1h)"},
    {"idle", "notebook",
     "end kernels and terminals that did nothing for this long, and with the last the run (default: 1h)"},
    {"keep", "notebook", "the run goes on when this command ends, and when nobody is connected"},
    {"from-cluster", "verify", "compare this cluster's store instead of the local path"},
    {0},
};

const char *cli_option_help(const struct cli_command *command, const struct cli_option *option)
{
    for (const struct cli_option_meaning *m = cli_option_meanings; command && m->option; m++)
        if (strcmp(m->option, option->long_name) == 0 && cli_names(m->verbs, command->name))
            return m->help;
    return option->help;
}
