/* main.c - act-node, the agent: what runs on the nodes. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node/node.h"
#include "site/site.h"

/* What the client of a machine behind ssh starts on it. */
static int serve(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return site_serve(STDIN_FILENO, STDOUT_FILENO);
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} verbs[] = {
    {"supervise", node_supervise}, {"rank", node_rank}, {"job", node_job}, {"serve", serve},
    {"sweep", node_sweep},
};

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return printf("act-node %s\n", ACT_VERSION) < 0;
    for (size_t i = 0; argc > 1 && i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (strcmp(argv[1], verbs[i].name) == 0)
            return verbs[i].run(argc - 1, argv + 1);
    fputs("act-node: the part of ACT that runs on the nodes; 'act submit' starts it\n", stderr);
    return ACT_USAGE;
}
