/* pod_launch.c - starts programs on the pods of a run, through the first pod (see pod.h):
 *
 *   act-node rsh RUN_DIR HOST WORD...   as "ssh HOST WORD..." for mpirun, which starts its daemons by it
 *   act-node direct RUN_DIR             in the place of mpirun: starts the ranks themselves
 *
 * Both stay until what they have started has ended, print the end of its output if it failed, and return its status.
 * If they are ended themselves, so is what they have started. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "codec/json.h"
#include "node/launcher.h"
#include "node/pod.h"
#include "run/machines.h"

enum { EXIT_NOT_THERE = 255, SEND_MS = 60000 };

/* ---- the first pod ---- */

/* Returns where the first pod is reached from itself, secret, a new string; NULL with err. */
static char *launch_target(const struct node *node, struct act_error *err)
{
    enum { TOKEN_MAX = 256 };
    ACT_AUTOFREE char *path = node_path(node, POD_FILE_TOKEN);
    ACT_AUTO(run_machines) machines = {.port = POD_PORT};
    int rc = run_has_machines(node->dir) ? run_machines_read(node->dir, &machines, err)
                                         : act_file_read(path, TOKEN_MAX, &machines.token, NULL, err);

    return rc < 0 ? NULL : act_sprintf("%s tcp %d 127.0.0.1", machines.token, machines.port);
}

/* offset: see pod.h, "who is who". */
static int connect_to_pod(struct link *l, const struct node *node, int offset, struct act_error *err)
{
    int most = run_spec_is_elastic(&node->spec) ? node->spec.max_nodes : node->spec.nodes;
    CODEC_AUTOJSON json_t *hello =
        json_pack("{s:i, s:s, s:i}", "rank", most + offset, "node", node->name, "pid", (int)getpid());
    ACT_AUTOWIPE char *target = launch_target(node, err);
    bool stop;

    return target ? link_connect_once(l, target, hello, &stop, err) : -(int)err->code;
}

/* The end of the programs that were started. */
struct launch_outcome {
    int status;     /* the first that is not 0 */
    char last[256]; /* the last line that it printed, if it failed */
};

static void launch_take_end(struct launch_outcome *o, const json_t *done)
{
    ACT_AUTO(act_strv) lines = {0};

    if (o->status == 0)
        o->status = (int)codec_json_int(done, "status", 0);
    if (!codec_json_strv_get(json_object_get(done, "lines"), &lines))
        return;
    for (size_t i = 0; i < lines.n; i++)
        fprintf(stderr, "%s\n", lines.v[i]);
    if (lines.n > 0)
        snprintf(o->last, sizeof(o->last), "%.*s", (int)sizeof(o->last) - 1, lines.v[lines.n - 1]);
}

/* Waits for n ends, or for that of the connection. */
static void wait_for_ends(struct link *l, int n, struct launch_outcome *o)
{
    json_t *message = NULL;
    bool more = true;

    while (n > 0) {
        int got = link_take(l, &message);
        if (got < 0 || (got == 0 && !more))
            break;
        if (got == 0) {
            poll(&(struct pollfd){.fd = l->fd, .events = POLLIN}, 1, -1);
            more = link_fill(l);
            continue;
        }
        launch_take_end(o, message);
        json_decref(message);
        n--;
    }
    if (n > 0 && o->status == 0)
        o->status = EXIT_NOT_THERE;
}

static int launch_report(const struct act_error *err)
{
    fprintf(stderr, "act-node: %s\n", act_error_text(err));
    return EXIT_NOT_THERE;
}

/* ---- rsh ---- */

/* Returns the number of the host in the host file; -1: it is not there. mpirun may leave out the domain. */
static int find_host(const struct node *node, const char *host)
{
    ACT_AUTO(act_strv) hosts = {0};
    size_t len = strlen(host);

    launcher_read_hosts(node, &hosts);
    for (size_t i = 0; i < hosts.n; i++)
        if (act_starts_with(hosts.v[i], host) && (!hosts.v[i][len] || strcspn(hosts.v[i], ".") == len))
            return (int)i;
    return -1;
}

static int run_on(const struct node *node, int pod, char *const *words, int n_words, struct launch_outcome *o,
                  struct act_error *err)
{
    struct link l = {.fd = -1};
    ACT_AUTO(act_buf) command = {0};
    int rc = connect_to_pod(&l, node, pod, err);

    if (rc < 0)
        return rc;
    for (int i = 0; i < n_words; i++) /* as ssh does */
        act_buf_addf(&command, "%s%s", i ? " " : "", words[i]);
    CODEC_AUTOJSON json_t *message = json_pack("{s:s, s:i, s:[s, s, o]}", "type", "start", "pod", pod, "argv",
                                               "/bin/sh", "-c", codec_json_bytes_new(command.data));
    if (!link_send(&l, message) || !link_drain(&l, SEND_MS))
        o->status = EXIT_NOT_THERE;
    else
        wait_for_ends(&l, 1, o);
    link_close(&l);
    return 0;
}

/* Says it for "a why": mpirun's own words are longer, and say less. */
static void launch_say_failure(const char *host, const struct launch_outcome *o)
{
    fprintf(stderr, "act-node: the daemon of mpirun on '%s' ended with status %d%s%s\n", host, o->status,
            o->last[0] ? ": " : "", o->last);
}

int node_rsh(int argc, char **argv)
{
    ACT_AUTO(node) node = {0};
    struct launch_outcome o = {0};
    struct act_error err;

    if (argc < 4)
        return ACT_USAGE;
    if (node_open(&node, argv[1], "rsh", &err) < 0)
        return launch_report(&err);
    int pod = find_host(&node, argv[2]);
    int rc = pod < 0 ? act_error_set(&err, ACT_NOT_FOUND, "'%s' is not a pod of this run", argv[2])
                     : run_on(&node, pod, argv + 3, argc - 3, &o, &err);
    if (rc < 0)
        return launch_report(&err);
    if (o.status != 0)
        launch_say_failure(argv[2], &o);
    return o.status;
}

/* ---- direct ---- */

/* Returns what a rank needs to know of the supervisor and its group. A new reference. */
static json_t *environment_of_ranks(void)
{
    json_t *env = json_object();

    for (const char *const *name = launcher_passed_on; *name; name++)
        if (getenv(*name))
            json_object_set_new(env, *name, codec_json_bytes_new(getenv(*name)));
    return env;
}

static bool launch_start_ranks(struct link *l, const struct node *node, const char *self)
{
    const struct run_spec *spec = &node->spec;
    ACT_AUTO(act_strv) words = {0};
    bool good = true;

    launcher_rank_words(node, self, &words);
    for (int i = 0; good && i < spec->nodes; i++) {
        CODEC_AUTOJSON json_t *message =
            json_pack("{s:s, s:i, s:o, s:o, s:i, s:i, s:i}", "type", "start", "pod", i, "argv",
                      codec_json_strv_new(&words), "env", environment_of_ranks(), "count", spec->procs_per_node,
                      "first", i * spec->procs_per_node, "world", node_world_size(node));
        good = link_send(l, message) && link_drain(l, SEND_MS);
    }
    return good;
}

int node_direct(int argc, char **argv)
{
    ACT_AUTO(node) node = {0};
    struct link l = {.fd = -1};
    struct launch_outcome o = {0};
    struct act_error err;
    char self[PATH_MAX] = "";

    if (argc != 2)
        return ACT_USAGE;
    int rc = node_open(&node, argv[1], "direct", &err);
    if (rc == 0 && readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        rc = act_error_errno(&err, errno, "cannot find this program");
    if (rc == 0)
        rc = connect_to_pod(&l, &node, 0, &err);
    if (rc < 0)
        return launch_report(&err);
    if (launch_start_ranks(&l, &node, self))
        wait_for_ends(&l, node.spec.nodes, &o);
    else
        o.status = EXIT_NOT_THERE;
    link_close(&l);
    return o.status;
}
