/* interrupt.c - act-node interrupt RUN RANK: does to a rank of a run here what Ctrl-C does on a terminal: SIGINT goes
 * to the process group of its command, which is known by the environment it began with. The log of the rank says so, as
 * nobody sees by what the command prints then where the signal came from. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "node/node.h"
#include "node/processes.h"

enum { ENVIRONMENT_MOST = 256 * 1024, PATH_MOST = 4096 };

/* Tells whether a process began with a variable: "NAME=value", or "NAME=" for any value. */
static bool interrupt_has(const char *environment, size_t len, const char *variable)
{
    size_t n = strlen(variable);
    bool is_any = n > 0 && variable[n - 1] == '=';

    for (const char *at = environment; at < environment + len; at += strlen(at) + 1)
        if (is_any ? act_starts_with(at, variable) : strcmp(at, variable) == 0)
            return true;
    return false;
}

/* The command of a rank has its number; the agent that started it has none. */
static bool interrupt_is_command(const struct process *p, const char *run, const char *rank, char *space)
{
    size_t n = processes_read(p->pid, "environ", space, ENVIRONMENT_MOST);

    if (!interrupt_has(space, n, run) || !interrupt_has(space, n, rank))
        return false;
    n = processes_read(p->parent, "environ", space, ENVIRONMENT_MOST);
    return !interrupt_has(space, n, "RANK=");
}

/* The agent that started the command was told where the run's folder is. */
static void interrupt_say(pid_t agent, const char *rank)
{
    char words[PATH_MOST + 64];
    size_t n = processes_read(agent, "cmdline", words, sizeof(words));
    const char *verb = words + strnlen(words, n) + 1, *folder = verb < words + n ? verb + strlen(verb) + 1 : NULL;

    if (!folder || folder >= words + n || strcmp(verb, "rank") != 0)
        return;
    ACT_AUTOFREE char *name = run_rank_log(atoi(rank));
    ACT_AUTOFREE char *path = act_path_join(folder, name);
    ACT_AUTOCLOSE int log = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (log >= 0)
        dprintf(log, RUN_LOG_AGENT "Ctrl-C (SIGINT) came from 'a attach'\n");
}

int node_interrupt(int argc, char **argv)
{
    if (argc != 3)
        return ACT_USAGE;
    ACT_AUTOFREE char *run = act_sprintf("ACT_RUN_ID=%s", argv[1]), *rank = act_sprintf("RANK=%s", argv[2]);
    ACT_AUTOFREE char *space = act_alloc(ENVIRONMENT_MOST);
    ACT_AUTO(processes) list = {0};
    int told = 0;

    processes_list(&list);
    for (size_t i = 0; i < list.n; i++) {
        pid_t group = getpgid(list.v[i].pid);
        if (group <= 1 || group == getpgrp() || !interrupt_is_command(&list.v[i], run, rank, space))
            continue;
        interrupt_say(list.v[i].parent, argv[2]);
        told += kill(-group, SIGINT) == 0;
    }
    if (told > 0)
        return 0;
    fprintf(stderr, "act-node: rank %s of run '%s' has no command at work on this node\n", argv[2], argv[1]);
    return ACT_NOT_FOUND;
}
