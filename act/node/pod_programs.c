/* pod_programs.c - starts programs on this pod for the group. A message "start" has
 *   "id"      names the task
 *   "argv"    the words of the program
 *   "env"     what it gets besides our environment
 *   "count"   so many processes, each with the numbers of a rank in the variables of Open MPI, as mpirun gives them:
 *   "first"   the rank of the first one
 *   "world"   how many ranks there are; 0: it is no rank, and gets no numbers
 * Their output goes to one file; when a task fails, the end of that file goes back with "done". */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "codec/json.h"
#include "node/env.h"
#include "node/pod.h"
#include "node/record.h"

#define FILE_OUTPUT RUN_DIR_SYSTEM "/daemon.txt"

enum { EXIT_NOT_FOUND = 127 };

/* The things that a child needs to become the program. */
struct programs_start {
    char *const *argv;
    json_t *env;                 /* may be NULL */
    int rank, world, local_rank; /* of the next process */
};

/* Runs in the child. */
static int programs_become(void *arg)
{
    struct programs_start *start = arg;
    const char *name;
    json_t *value;

    json_object_foreach(start->env, name, value)
    {
        ACT_AUTOFREE char *text = codec_json_bytes_get(value);
        setenv(name, text ? text : "", 1);
    }
    if (start->world > 0) {
        env_set_int("OMPI_COMM_WORLD_RANK", start->rank);
        env_set_int("OMPI_COMM_WORLD_SIZE", start->world);
        env_set_int("OMPI_COMM_WORLD_LOCAL_RANK", start->local_rank);
    }
    execvp(start->argv[0], start->argv);
    fprintf(stderr, "act-node: cannot start '%s': %s\n", start->argv[0], strerror(errno));
    return EXIT_NOT_FOUND;
}

/* Starts all; one that cannot be started ends the others. */
static void start_all(struct pod *pod, struct pod_task *task, struct programs_start *start)
{
    ACT_AUTOCLOSE int fd = node_open_log(&pod->node, FILE_OUTPUT);

    for (int i = 0; i < task->n && task->status == 0; i++) {
        start->local_rank = i;
        task->pids[i] = child_start(&(struct child){.run = programs_become, .arg = start, .out_fd = fd});
        if (task->pids[i] > 0) {
            task->left++;
            start->rank++;
            continue;
        }
        node_say("cannot start '%s': %m", start->argv[0]);
        task->status = ACT_WRAPPER;
    }
    node_say("started %d process(es) of '%s'", task->left, start->argv[0]);
}

static void programs_stop(const struct pod_task *task)
{
    for (int i = 0; i < task->n; i++)
        if (task->pids[i] > 0)
            kill(task->pids[i], SIGTERM);
}

static json_t *programs_done(struct pod *pod, struct pod_task *task)
{
    ACT_AUTOFREE char *log = node_path(&pod->node, FILE_OUTPUT);
    ACT_AUTO(act_strv) lines = {0};

    if (task->status != 0)
        record_tail(log, &lines);
    json_t *message = json_pack("{s:s, s:i, s:i, s:o}", "type", "done", "id", task->id, "status", task->status, "lines",
                                codec_json_strv_new(&lines));
    free(task->pids);
    *task = pod->tasks[--pod->n_tasks];
    return message;
}

/* Reads the counts; false: a pod would have more processes than the run says, or a rank would be beyond the last. */
static bool read_counts(const struct pod *pod, const json_t *message, struct programs_start *start,
                        struct pod_task *task)
{
    const struct node *node = &pod->node;

    task->n =
        json_object_get(message, "count") ? codec_json_int_in(message, "count", 1, node->spec.procs_per_node, 0) : 1;
    start->world = codec_json_int_in(message, "world", 0, node_world_size(node), 0);
    start->rank = codec_json_int_in(message, "first", 0, start->world, 0);
    return task->n > 0 && (start->world == 0 || start->rank + task->n <= start->world);
}

json_t *pod_programs_start(struct pod *pod, const json_t *message)
{
    struct programs_start start = {.env = json_object_get(message, "env")};
    struct pod_task task = {.id = codec_json_int_in(message, "id", 0, INT_MAX, -1)};
    ACT_AUTO(act_strv) argv = {0};

    if (read_counts(pod, message, &start, &task) && codec_json_strv_get(json_object_get(message, "argv"), &argv) &&
        argv.n > 0) {
        start.argv = argv.v;
        task.pids = act_calloc((size_t)task.n, sizeof(*task.pids));
        start_all(pod, &task, &start);
    } else {
        node_say("told to start what this pod cannot start");
        task.n = 0;
        task.status = ACT_WRAPPER;
    }
    ACT_PUSH(pod->tasks, pod->n_tasks, task);
    if (task.status != 0)
        programs_stop(&task);
    return task.left == 0 ? programs_done(pod, &pod->tasks[pod->n_tasks - 1]) : NULL;
}

void pod_programs_stop(struct pod *pod, int id)
{
    for (size_t i = 0; i < pod->n_tasks; i++)
        if (pod->tasks[i].id == id)
            programs_stop(&pod->tasks[i]);
}

/* Takes the end of one of the task's children; false: pid is not one of them. */
static bool programs_take_end(struct pod_task *task, pid_t pid, int wait_status)
{
    for (int i = 0; i < task->n; i++) {
        if (task->pids[i] != pid)
            continue;
        task->pids[i] = 0;
        task->left--;
        if (task->status == 0)
            task->status = child_exit_status(wait_status);
        return true;
    }
    return false;
}

json_t *pod_programs_done(struct pod *pod, pid_t pid, int wait_status)
{
    for (size_t i = 0; i < pod->n_tasks; i++)
        if (programs_take_end(&pod->tasks[i], pid, wait_status))
            return pod->tasks[i].left == 0 ? programs_done(pod, &pod->tasks[i]) : NULL;
    return NULL;
}

void pod_programs_release(struct pod *pod)
{
    for (size_t i = 0; i < pod->n_tasks; i++)
        free(pod->tasks[i].pids);
    free(pod->tasks);
    pod->tasks = NULL;
    pod->n_tasks = 0;
}
