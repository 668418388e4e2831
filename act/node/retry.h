/* retry.h - whether a failed attempt is followed by another one (run_spec.retry_times), and what is known of those
 * before it.
 *
 *   what an attempt left -> retry_classify() -> class -> retry_decide() -> run_status.retry, retry.json
 *
 * What begins the next attempt is not here: the supervisor itself on one machine, Slurm, the first pod. */
#ifndef ACT_NODE_RETRY_H
#define ACT_NODE_RETRY_H

#include "node/node.h"

/* The facts of an attempt that has failed. */
struct retry_facts {
    int attempt;
    int rank; /* that failed first; -1: not one rank's failure */
    int exit_status, signal;
    const char *reason;             /* in the words of the agent */
    const struct act_strv *lines;   /* the last ones of that rank, for one whose log is elsewhere */
    int64_t slurm_from;             /* where the attempt's part of Slurm's output begins */
    int64_t seconds;                /* it ran so long */
    const char *node;               /* that failed; "": not known */
    const struct act_strv *hosts;   /* the nodes of the run, by the names that errors have for them; may be NULL */
    bool is_requeued;               /* whatever retry says, it begins again when a node fails, as Slurm promises */
    const char *class_of_elsewhere; /* known without the logs: "hang"; NULL: they say it */
};

/* The class of a failure. */
struct retry_class {
    char id[sizeof(((struct run_bad_node *)0)->class)]; /* of a rule; "": none fits */
    char title[80];
    char line[200]; /* what says so */
    bool line_is_cut;
    char peer[sizeof(((struct run_bad_node *)0)->node)]; /* the node of the run that the line names; "": none */
    bool blames_node;
};
/* Finds the class of a failed attempt by its logs, unless facts has it. */
void retry_classify(const struct node *node, const struct retry_facts *facts, struct retry_class *out);

/* An attempt after which another one was begun. */
struct retry_try {
    int attempt;
    int64_t seconds;
    char class[sizeof(((struct run_bad_node *)0)->class)];
    char node[sizeof(((struct run_bad_node *)0)->node)];
    char words[200];
};
struct retry_history {
    struct retry_try v[RUN_RETRY_MOST];
    int n;
};
/* Read retry.json, which is empty where there is none or only a part of one, and add a try to it, which replaces one of
 * the same attempt. */
void retry_history_read(const struct node *node, struct retry_history *out);
int retry_history_add(const struct node *node, struct retry_history *history, const struct retry_try *try,
                      struct act_error *err) ACT_NODISCARD;

enum retry_verdict {
    RETRY_AGAIN,
    RETRY_NOT_ASKED, /* the run has no retries */
    RETRY_OTHER,     /* the class is not one of those it is for */
    RETRY_USED_UP,
    RETRY_FUTILE, /* it failed like this at once, three times in a row */
};
/* Decides whether another attempt follows. Pure. is_requeued: see retry_facts. */
enum retry_verdict retry_decide(const struct run_spec *spec, bool is_requeued, const struct retry_history *history,
                                const struct retry_try *failed);
/* Puts the same words for what differs only in numbers: addresses, times, process ids. In place. */
void retry_same_words(char *text);

/* Returns the seconds between two attempts after n_tries tries. ACT_RETRY_PAUSE of the environment, in seconds, is the
 * first pause. */
int64_t retry_pause_s(int n_tries);

/* Does all of that: sets status->retry, ->attempts and ->bad, and writes retry.json. Returns the next attempt, or 0:
 * there is none. */
int retry_consider(const struct node *node, const struct retry_facts *facts, struct run_status *status);

/* Removes the last try if it is of this attempt, which has no result and so does not count. */
void retry_forget(const struct node *node, int attempt);

/* Tells whether retry.json says that this attempt is followed by another one. */
bool retry_follows(const struct node *node, int attempt, int *out_tries);
/* Returns how many attempts there are at most, this one included; 0: the run is not tried again. */
int retry_attempts(const struct node *node, int attempt);

#endif
