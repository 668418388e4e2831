/* pod_group.h - what the parts of the first pod share. Only they use it.
 *
 *   pod_group.c            who is there, attempts, and what follows from their ends
 *   pod_group_link.c       what comes over the link, from the other pods and from launchers
 *   pod_group_machines.c   what is different where the members are machines behind ssh
 */
#ifndef ACT_NODE_POD_GROUP_H
#define ACT_NODE_POD_GROUP_H

#include "node/pod.h"
#include "run/run.h"

/* Another pod; the first one is always there. One that has just joined owes no reply. */
struct group_member {
    bool there, answered;
    bool taken; /* it is of the attempt */
};

struct pod_group {
    struct link_server *server;
    struct group_member *members;
    char *status_path;
    char *outcome_path; /* of what the supervisor says at its end */
    struct run_status status;
    pid_t supervisor;    /* 0: it does not run */
    bool stopped;        /* it was told to end */
    int lost;            /* a pod that was lost in this attempt; 0: none */
    const char *how;     /* it was */
    bool aborted;        /* by the user, as another machine says */
    int n_taken;         /* so many machines have their slots */
    bool is_asked;       /* the next one is to take them */
    bool grows;          /* the attempt ends because more pods have come */
    int *nodes;          /* the pods of the attempt, in the order of their ranks */
    int64_t changed_ms;  /* monotonic: when a pod last came or went */
    int known_attempt;   /* the last one that any pod knows, or of which there are logs */
    const char *awaited; /* the type of a reply */
    bool again;          /* the attempt has failed, and another one follows */
    int64_t begin_ms;    /* monotonic: no attempt begins before */
    int64_t waits_ms;    /* monotonic: since when it waits for pods */
    bool last;           /* no attempt follows */
    bool unsent;         /* folders of other pods could not be sent */
    int64_t farewell_ms; /* monotonic: the others have until then to end what is left there */
};

/* ---- pod_group.c ---- */

/* Returns how many of the other pods are not there. */
int group_count_missing(const struct pod *pod);
/* Returns the first pod that is not there; at least one must be missing. */
int group_first_missing(const struct pod *pod);
/* Has the supervisor end the attempt, by SIGTERM. */
void group_stop_supervisor(struct pod *pod);
/* Ends the attempt because pod i is gone, without which it cannot succeed. how: "was lost". It must outlive the
 * attempt. */
void group_lose(struct pod *pod, int i, const char *how);
/* Sets the state of the run and what follows from it; group_save_status() writes it down. */
void group_set_status(struct pod *pod, enum run_state state, int exit_status, const char *reason);
void group_save_status(struct pod *pod);
/* The attempt is over, and perhaps (last) the run. If this pod was told to end, the run may go on with a new one in its
 * place: then the others wait for that. */
void group_end_attempt(struct pod *pod, bool last);
/* Ends the run, which has failed for this reason and not by what its ranks did. */
void group_fail(struct pod *pod, const char *reason);
/* Says how many pods of an elastic run are there, and how many it needs. */
void group_say_wait(const struct pod *pod);

/* ---- pod_group_link.c ---- */

/* Listens for the other pods and for launchers; the loop of the pod serves them. */
int group_listen(struct pod *pod, struct act_error *err) ACT_NODISCARD;
/* Passes the message "done" of pod from on to the launcher that asked for it. */
void group_answer(struct pod *pod, int from, const json_t *done);

/* ---- pod_group_machines.c ---- */

/* Tells whether all machines have their slots, or the group needs none; else the next one is asked to take its own. */
bool group_has_slots(struct pod *pod);
/* Tells whether a machine has not come in the time that it takes: whoever starts the run starts all at once. */
bool group_is_interrupted(const struct pod *pod);
/* Fails the run, because its submission was interrupted. */
void group_say_interrupted(struct pod *pod);
/* Fails the run if it waits for its first attempt, because machine i is gone. how: as of group_lose(). */
void group_lose_waiting(struct pod *pod, int i, const char *how);
/* Fails the run, because machine i could not take its slots. message: "failed". */
void group_take_failure(struct pod *pod, int i, const json_t *message);
/* Pod i was told to end: this attempt ends, or the run if that is because its user aborts it. message: "leaving". */
void group_on_leaving(struct pod *pod, int i, const json_t *message);

#endif
