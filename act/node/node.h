/* node.h - what the parts of the agent share.
 *
 *   act-node supervise   one for each run: waits for slots, starts mpirun (or the only rank), writes status.json
 *     mpirun             not there when the run has one process
 *       act-node rank    one for each rank: prepares the node (the first one), sets the environment, watches the
 *                        command
 *
 *   act-node job         the same as a rank, if a service starts the ranks itself and collects their output (service.c)
 *
 *   act-node pod           one for each pod of a run on Kubernetes (pod.h); the first one starts the supervisor
 *     act-node supervise
 *       mpirun             starts its daemons on the other pods by "act-node rsh"; or "act-node direct" in its place,
 *         act-node rsh     which has the ranks started by "act-node pod" of each pod
 *
 *   act-node meet          whether machines behind ssh reach one another (meet.c); on these "supervise" is what
 *                          "pod" is in a pod, where a run has several
 *
 * No process outlives the one above it: a rank is connected to the supervisor (link.h) and ends with the connection,
 * every other process that is started here dies with its parent, and both adopt and end whatever their commands
 * leave behind. On "local" all but the supervisor are in a cgroup (cgroup.h), where the user may make one.
 */
#ifndef ACT_NODE_NODE_H
#define ACT_NODE_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"
#include "run/run.h"

enum { NODE_NAME_MAX = 64 };

struct node {
    char *dir;                    /* the run folder, absolute; in a service's job the node's private folder */
    char *package;                /* the local path of the package */
    char *launch;                 /* identifies this start of the run in file names; NULL: use the attempt */
    char name[NODE_NAME_MAX + 1]; /* of this machine, fit for a file name */
    char *code;                   /* the code root; before place_open() that of a single-node run */
    int node_rank, attempt;       /* of this node in the run; from 1; both from place_open() */
    char *local;                  /* the node's private folder, see place.h; NULL before */
    char *site;                   /* the root of the site whose login node this is; NULL: it is a node of the run */
    int users_fd;                 /* its lock */
    struct run_spec spec;
};

/* Finds the name of this machine, fit for a file name. */
void node_find_name(char out[NODE_NAME_MAX + 1]);
/* Reads run.json in dir and opens the agent's own log; who ("supervisor", "rank 3") begins its lines. */
int node_open(struct node *node, const char *dir, const char *who, struct act_error *err) ACT_NODISCARD;
/* Reads run.json at path and finds the node's name, but no more, for a run that has no run folder yet. */
int node_read(struct node *node, const char *path, const char *who, struct act_error *err) ACT_NODISCARD;
/* Opens the agent's own log, perhaps again after the old one was put away. */
void node_own_log(const struct node *node);
void node_release(struct node *node);
/* Returns the path of this program, a new string. */
char *node_own_program(void);
/* Returns the path of a file of the run folder. New string. */
char *node_path(const struct node *node, const char *name);
/* The variable by which the supervisor tells the ranks the number of the attempt. */
#define NODE_ENV_ATTEMPT "ACT_ATTEMPT"
/* The variable by which it tells them which of the GPUs that they see are the run's: their positions, "0,3". */
#define NODE_ENV_GPUS "ACT_RUN_GPUS"
/* Returns how often the run was started, from 1, according to the supervisor. */
int node_attempt(void);
/* Returns how long a command may take to end when told to. */
int64_t node_abort_grace_ms(void);
static inline int node_world_size(const struct node *node)
{
    return node->spec.nodes * node->spec.procs_per_node;
}

/* Returns the words with separator between them. New string. */
char *node_list_text(const struct act_strv *words, const char *separator);

/* Writes one line into system_logs/node_<node>.txt. */
void node_say(const char *fmt, ...) ACT_PRINTF(1, 2);

/* Opens a log of the run folder for appending; -1 with errno. */
int node_open_log(const struct node *node, const char *name);
/* Returns a file of the system as a new string; empty: it cannot be read. */
char *node_read_text(const char *path);
/* Reads the last size bytes of a file, or fewer; returns how many: 0 where there is no such file. */
size_t node_read_tail(const char *path, char *out, size_t size);
/* Finds the last line of a file that is not blank, without control characters; empty: none. */
void node_last_line(const char *path, char *out, size_t size);
/* Tells whether the first line of a script names an interpreter and ends as on Windows: the carriage return is a
 * part of the name, which NODE_WINDOWS_LINES says. */
bool node_has_windows_lines(const char *path);
#define NODE_WINDOWS_LINES "its first line ends with a carriage return, as on Windows"
/* The rule (config/diagnosis.yaml) of a node that went down or does not answer. */
#define CLASS_NODE_FAILURE "node_failure"

/* Kills all processes of this user that were started with name=value in their environment, until none is left; agents
 * are not among them. Returns how often it killed one: one that takes its time to end counts again. */
int sweep_processes(const char *name, const char *value);
/* The variable that all processes of a run have. */
#define NODE_ENV_RUN "ACT_RUN_ID"

/* The programs (argc and argv after the verb). They return an exit status. */
int node_supervise(int argc, char **argv);
int node_rank(int argc, char **argv);
int node_job(int argc, char **argv);
int node_pod(int argc, char **argv);
int node_rsh(int argc, char **argv);
int node_direct(int argc, char **argv);
int node_sweep(int argc, char **argv);
int node_meet(int argc, char **argv);
int node_environment(int argc, char **argv);
int node_interrupt(int argc, char **argv);
int node_input(int argc, char **argv);
int node_keep(int argc, char **argv);
int node_session(int argc, char **argv);

#endif
