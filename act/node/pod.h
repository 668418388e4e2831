/* pod.h - the parts of "act-node pod", the main process of each pod of a run on Kubernetes; and of "act-node supervise"
 * on each machine of a run that has several behind ssh, which is called a pod here, too.
 *
 *   pod.c            the program and its loop: signals, children, output
 *   pod_files.c      what the Secrets hold becomes the run folder of this pod
 *   pod_programs.c   what is started on this pod for the group
 *   pod_group*.c     the first pod: who is there, attempts, the supervisor (pod_group.h)
 *   pod_machine.c    a machine behind ssh in the place of a pod
 *   pod_member.c     the other pods: find the first one and do what it says
 *   pod_launch.c     "act-node rsh" and "act-node direct": start programs on other pods
 *   pod_output.c     what the pod prints
 *   pod_send.c       what the pod sends to stores: folders of mode upload, and its logs
 *
 * Nothing is shared between the pods: each has a run folder with the logs of its own ranks. The first pod also has the
 * supervisor. The others are connected to its port, with the run's token, by the protocol of link.h; so are
 * the launchers on the first pod. Who is who: 0 to nodes - 1 are the pods, nodes + i starts programs on pod i.
 * Messages, besides those of link.h:
 *
 *   first -> other   {"type": "begin", "attempt": N, "ran": T}   an attempt begins: what the last one left is put away;
 *                                                      the run has been going on for T ms; of an elastic run
 *                                                      also "pods": "0,2,3", which are the group
 *                    {"type": "start", "id", "argv", "env": {}, "count", "first", "world"}   see pod_programs.c
 *                    {"type": "stop", "id"}            SIGTERM for what was started with this id
 *                    {"type": "ping"}                  are you there?
 *                    {"type": "end", "over": bool}     the attempt is over: end everything; over: the run is, too;
 *                                                      to a machine also how it ended, "status"
 *                    {"type": "take"}                  a machine takes its slots; the reply is "taken", or
 *                                                      "failed" with a "reason"
 *   other -> first   {"type": "done", "id", "status", "lines"}   all of that start have ended; the end of their output
 *                    {"type": "pong"}, {"type": "ended"}
 *                    {"type": "unsent"}                the run is over, and folders of this pod could not be sent
 *                    {"type": "leaving", "aborted": bool}   this pod was told to end; aborted: the user aborts the run
 *   launcher -> first   {"type": "start", "pod", ...}, and likewise "done" with "pod" back; it is a node of the attempt
 *
 * hello has the last "attempt" that a pod knows, and for how long the run has "ran": so the count and the run's time go
 * on when the first pod is a new one. Where all pods are new, the count goes on after the logs that others have sent,
 * and after as many attempts as the cluster says that there were pods before.
 *
 * The group of an elastic run is what is there: once the least number of pods is, and no more have come for a while, or
 * all are, an attempt begins with them. Node i of the attempt is pod number i of those that are there, and run.json in
 * their run folders has that many nodes, so that programs started there need not be aware of it. Others wait; when they
 * have settled, or a pod of the group is lost, the attempt ends and the next one begins with another size.
 *
 * Machines take their slots one after the other, in an order that is the same for all runs (run/machines.h), before the
 * first attempt, and keep them until the end. One that was lost does not come back: that is the end of the run.
 */
#ifndef ACT_NODE_POD_H
#define ACT_NODE_POD_H

#include "node/child.h"
#include "node/link.h"
#include "node/node.h"
#include "node/pod_output.h"

enum {
    POD_PORT = 6427,
    POD_EXIT_ALONE = 123, /* this pod waited in vain for the others, and gives back what it holds */
    POD_EXIT_LOST = 121,  /* this pod has lost its group: Kubernetes should make a new pod */
    POD_END_MS = 5000,    /* for processes that are left when an attempt is over */
    POD_ATTEMPTS_MAX = 1 << 20,
};

#define POD_FILE_TOKEN "token" /* of the run folder, 0600 */

struct pod_options {
    const char *job; /* the name of the Job, and of the Service; or the addresses of machines, "10.0.0.1,10.0.0.2" */
    int nodes;
    int port;                  /* of the first one */
    const char *secret, *work; /* folders; of a pod */
};

enum pod_phase {
    POD_SEEKS,  /* not the first pod: looks for it */
    POD_WAITS,  /* for the group, or for the first pod's word */
    POD_RUNS,   /* an attempt */
    POD_CHECKS, /* the first pod: the attempt has failed; are the others still there? */
    POD_ENDS,   /* ends all that was started for the attempt */
    POD_LEAVES, /* sends what has to outlive this pod */
    POD_OVER,
};

/* Started on this pod by one message. */
struct pod_task {
    int id, left, status; /* status: the first that is not 0 */
    pid_t *pids;
    int n;
};

/* The things to send. */
enum { SEND_FOLDERS = 1, SEND_LOGS = 2 };

struct pod_send {
    int has;                  /* what there is to send, of SEND_... */
    int before;               /* the last attempt of earlier pods, as far as the first pod knows: each of them counts
                               * for one, and those whose logs they have sent are known */
    int sending, failed;      /* what is being sent, and what of the last sending of it could not be */
    int begun;                /* of what the last sending has begun */
    pid_t pid;                /* which sends it; 0: nobody */
    int64_t due_ms[2];        /* monotonic: when folders and logs are sent next */
    int64_t begun_ms, gap_ms; /* of the logs: between two sendings */
};

struct pod {
    struct pod_options options;
    int index;
    int place; /* which node of the attempt it is: its index, unless the run is elastic */
    struct node node;
    char *token;
    struct watch watch;
    struct pod_output output;
    enum pod_phase phase;
    int attempt;      /* the last one known; 0: none */
    bool over;        /* not the first pod: the run is */
    int told;         /* how often this pod was told to end */
    bool has_begun;   /* the run has, as far as this pod knows ... */
    int64_t began_ms; /* ... and when; monotonic */
    int exit_status;
    int64_t until_ms; /* monotonic; the end of the phase; 0: it has none */

    struct pod_send send;
    struct pod_task *tasks;
    size_t n_tasks;

    struct pod_machine *machine; /* NULL: it is a pod of Kubernetes */
    struct pod_group *group;     /* the first pod */
    struct link link;            /* the others */
    int64_t lost_ms, seek_ms;    /* monotonic: when the first pod was lost, when it is looked for again */
    char *why;                   /* it was not found the last time */
};

/* Prints "act: ..." and writes it to the agent's own log. */
void pod_say(const char *fmt, ...) ACT_PRINTF(1, 2);
/* Returns the host name of pod i, or its address. New string. */
char *pod_host(const char *job, int i);
/* Appends the names of all n pods, or of those in the list pods ("0,2,3"; NULL: all). A single pod has none, because
 * nobody needs its name. */
void pod_hosts(const char *job, int n, const char *pods, struct act_strv *out);
/* Becomes the first pod or another one, once its options, index, node and token are known. */
int pod_join(struct pod *pod, struct act_error *err) ACT_NODISCARD;
/* Does what a pod does until it is over. */
void pod_loop(struct pod *pod);
/* Frees all but the node. */
void pod_release(struct pod *pod);
/* Records that a run of this pod could not begin; this is the last thing before exit. */
void pod_leave_word(const struct run_status *status);
/* Begins an attempt on this pod. pods: see "begin" above, or NULL; earlier: the status of the last one, for its folder;
 * may be NULL. */
int pod_begin(struct pod *pod, int attempt, const char *pods, const struct run_status *earlier,
              struct act_error *err) ACT_NODISCARD;
/* Notes that the run has been going on for at least ms: all its attempts, and the time between them. */
void pod_has_run(struct pod *pod, int64_t ms);
/* Returns how long the run has run, as far as this pod knows; 0: it has not begun. */
int64_t pod_ran_ms(const struct pod *pod);
/* Tells whether a pod that has waited for the others since then is to give back what it holds. */
bool pod_waits_too_long(int64_t since_ms);
/* Ends all that was started on this pod, within grace_ms; poll pod_ended() to learn when. */
void pod_end(struct pod *pod, int64_t grace_ms);
/* Returns true, once, when nothing is left; then the output is complete. */
bool pod_ended(struct pod *pod);

/* ---- pod_files.c ---- */

/* Reads the index from the environment, makes the run folder from the Secrets, and opens pod->node. */
int pod_take_files(struct pod *pod, struct act_error *err) ACT_NODISCARD;

/* ---- pod_machine.c ---- */

struct supervisor;
/* Does the part of this machine in the run, whose folder and lock s has opened. Sets the final status in s. */
void pod_machine(struct supervisor *s);
/* Returns what the user calls a pod: "machine", or "pod". A constant. */
const char *pod_noun(const struct pod *pod);
/* Returns what the user knows pod i by, a new string: "'gpu2'", or "pod 2". */
char *pod_name(const struct pod *pod, int i);

/* The rest is for machines. Returns the i-th of those that take their slots. */
int pod_machine_turn(const struct pod *pod, int i);
/* Takes the slots of this one, waiting as long as necessary. -ACT_INTERRUPTED: it was told to end meanwhile. */
int pod_machine_take(struct pod *pod, struct act_error *err) ACT_NODISCARD;
/* Tells whether the user aborts the run. */
bool pod_machine_is_aborted(const struct pod *pod);
/* Records that an attempt begins; how the run ended, as the first machine says; now and then, that this one lives. */
void pod_machine_begin(struct pod *pod);
void pod_machine_judge(struct pod *pod, const json_t *status);
void pod_machine_step(struct pod *pod);
/* Writes down that the run fails because it has lost a machine. What its ranks said of their end follows from that. */
void pod_machine_note_loss(const struct pod *pod, int lost, const char *reason);

/* ---- pod_programs.c ---- */

/* Does what a message "start" says. Returns NULL, or the message "done" if nothing could be started (a new
 * reference). */
json_t *pod_programs_start(struct pod *pod, const json_t *message);
/* Sends SIGTERM to what was started with this id. */
void pod_programs_stop(struct pod *pod, int id);
/* Takes the end of a child. Returns the message "done" if it was the last one of its task, else NULL. */
json_t *pod_programs_done(struct pod *pod, pid_t pid, int wait_status);
void pod_programs_release(struct pod *pod);

/* ---- pod_send.c ---- */

/* Finds what this pod has to send, from what the run's Secret holds. */
void pod_send_open(struct pod *pod);
/* Begins, in every turn of the loop, to send what is due. */
void pod_send_step(struct pod *pod);
/* Tells whether pid was the sender. */
bool pod_send_ended(struct pod *pod, pid_t pid, int wait_status);
/* Sends what (of SEND_...) for the last time. Call it until it returns true; nothing else may run any more. */
bool pod_send_last(struct pod *pod, int what);

/* ---- pod_group.c ---- */

int group_open(struct pod *pod, struct act_error *err) ACT_NODISCARD;
void group_close(struct pod *pod);
/* Goes on with the group, in every turn of the loop. */
void group_step(struct pod *pod);
void group_child_ended(struct pod *pod, pid_t pid, int wait_status);
void group_on_signal(struct pod *pod, int sig);

/* ---- pod_member.c ---- */

void member_open(struct pod *pod);
void member_step(struct pod *pod);
void member_child_ended(struct pod *pod, pid_t pid, int wait_status);
void member_on_signal(struct pod *pod, int sig);

#endif
