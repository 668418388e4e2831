/* main.c - act-node, the agent that runs on the nodes. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "codec/json.h"
#include "node/child.h"
#include "node/node.h"
#include "node/serving.h"
#include "node/unzip.h"
#include "proc/proc.h"
#include "site/site.h"
#include "tunnel/tunnel.h"

/* Started by the client on a machine behind ssh. */
static int main_serve(int argc, char **argv)
{
    const char *root = getenv("ACT_SITE_ROOT");

    (void)argc;
    (void)argv;
    return root ? site_serve(root, STDIN_FILENO, STDOUT_FILENO) : ACT_USAGE;
}

static int main_service(void *arg)
{
    return serving_connect(*(const int *)arg, NULL);
}

/* tunnel [RUN]: the far end of 'a forward', with the stream as its input and output. As long as it is there, somebody
 * is connected with the run. */
static int main_tunnel(int argc, char **argv)
{
    int keeper = argc > 1 ? serving_stay(argv[1]) : -1;
    struct act_error err;

    signal(SIGPIPE, SIG_IGN);
    int rc = tunnel_run(
        &(struct tunnel){.in = STDIN_FILENO, .out = STDOUT_FILENO, .service = main_service, .arg = &keeper}, &err);
    if (rc < 0)
        fprintf(stderr, "act-node: %s\n", act_error_text(&err));
    return -rc;
}

/* unzip ZIP SHA256 FOLDER: unpacks a local package into an empty folder. */
static int unzip(int argc, char **argv)
{
    struct act_error err;

    if (argc != 4)
        return ACT_USAGE;
    int rc = node_unzip_apart(argv[1], argv[2], argv[3], false, &err);
    if (rc < 0)
        fprintf(stderr, "act-node: %s\n", act_error_text(&err));
    return -rc;
}

/* The ways in which a process protects its secrets. */
enum privacy {
    OPEN, /* it has none */
    /* No core dump. Other agent processes read its /proc entry, which may be visible only for traceable processes
     * (hidepid in proc(5)); its secrets are also those of its command. */
    NO_CORE,
    HIDDEN, /* proc_hide() */
};

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    enum privacy privacy;
} verbs[] = {
    {"supervise", node_supervise, HIDDEN},
    {"rank", node_rank, NO_CORE},
    {"job", node_job, NO_CORE},
    {"pod", node_pod, HIDDEN},
    {"rsh", node_rsh, HIDDEN},
    {"direct", node_direct, HIDDEN},
    {"serve", main_serve, HIDDEN},
    {"sweep", node_sweep, OPEN},
    {"meet", node_meet, HIDDEN},
    {"environment", node_environment, HIDDEN},
    {"tunnel", main_tunnel, HIDDEN},
    {"unzip", unzip, OPEN},
    {"keep", node_keep, OPEN},
    {"host", node_keep, OPEN},
    {"session", node_session, OPEN},
    {"interrupt", node_interrupt, OPEN},
    {"input", node_input, OPEN},
};

static void keep_secrets(enum privacy privacy)
{
    if (privacy == HIDDEN)
        proc_hide();
    if (privacy == NO_CORE)
        child_own_limit(RLIMIT_CORE, 0);
}

int main(int argc, char **argv)
{
    signal(SIGCHLD, SIG_DFL); /* as in cli/main.c */
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return printf("act-node %s\n", ACT_VERSION) < 0;
    for (size_t i = 0; argc > 1 && i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (strcmp(argv[1], verbs[i].name) == 0) {
            keep_secrets(verbs[i].privacy);
            codec_json_wipe_memory();
            return verbs[i].run(argc - 1, argv + 1);
        }
    fputs("act-node: the part of ACT that runs on the nodes; 'act submit' starts it\n", stderr);
    return ACT_USAGE;
}
