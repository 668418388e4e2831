/* pod_reader.h - for logs.c and pod_reader.c only: the logs of a run, and how far that of each pod was read.
 *
 * Whoever asks a second time watches, or who says so: from then on what a running pod prints is followed, and comes
 * whenever the loop runs. Other things than the end of the log, such as its rotation, may end the stream that follows
 * it: then the last lines of the log are asked for, and if those are not the ones that came last, it is read once more
 * from their second on.
 *
 * Source: kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/ (read log).
 */
#ifndef ACT_PLATFORM_KUBERNETES_POD_READER_H
#define ACT_PLATFORM_KUBERNETES_POD_READER_H

#include "platform/kubernetes/kubernetes_internal.h"
#include "store/store.h"

struct logs;

/* How far a log was read. */
enum log_state {
    LOG_UNREAD,   /* not at all, or the last reading failed */
    LOG_READ,     /* as far as it was then */
    LOG_FOLLOWED, /* its stream is under way, or nobody has looked yet at how that ended */
    LOG_AT_END,   /* the stream came to its end, at ended_ms; nobody knows yet whether the log did */
    LOG_WHOLE,    /* to its end, which will not change */
};

/* A pod, and how far its log was read. */
struct pod_reader {
    struct logs *of;
    char *pod, *what;
    int index;
    enum { POD_WAITS, POD_RUNS, POD_HAS_ENDED, POD_IS_GONE } phase;
    bool is_listed;            /* the cluster has it yet */
    struct pod_reader *before; /* of the pod whose place it took; NULL: of none */
    bool is_replaced;          /* another pod took its place */
    int lives_before;          /* how many pods there were before it in its place, as far as the cluster says */
    bool sends;                /* the logs of such pods are elsewhere */
    bool said_gone;            /* that the logs of some of those are nowhere */

    /* the attempts that it tells of */
    int last_attempt; /* 0: none */
    int more;         /* what its count lacks; -1: not known yet */
    size_t last_kept; /* where the last text went */

    struct kubernetes_pod_log *log;
    enum log_state state;
    int64_t ended_ms;
    struct act_error why; /* the last reading failed; code 0: it did not */
    bool was_missed;      /* that was said */

    struct kube_stream stream;
    bool awaited;  /* somebody waits until it ends */
    bool has_news; /* it has brought something */
    struct act_buf last_lines;
};

/* A text of the store. */
struct kept {
    int attempt, rank, index; /* rank -1: the words of the agent in the pod with this index */
};

struct logs {
    struct kubernetes *k;
    char *id, *name;
    bool ended;       /* the run has */
    bool asked_kueue; /* whether it took pods away before */
    struct pod_reader **readers;
    size_t n_readers;
    struct kept *kept; /* one for each of texts */
    size_t n_kept;
    json_t *places; /* of kept, by what they are of */
    struct store_texts texts;
    int attempt;    /* the last one */
    bool *news;     /* of who watches; NULL: nobody said so */
    size_t awaited; /* streams */
    bool idle;      /* none is awaited */
    int rc;         /* of the first text that could not be kept */
};

/* Finds out how the streams have ended that followed the pods which the readers know, whose phases are those of now:
 * which logs are whole, and which have to be read again. Runs the engine where something has to be asked, or is about
 * to come. */
void pod_readers_settle(struct logs *logs);
/* Tells whether there may be more of a log than was read, and nothing is under way that brings it. */
bool pod_reader_is_behind(const struct pod_reader *reader);
/* Reads the logs of n pods, all at once, or begins to follow those that were read before. Returns how many it read. */
size_t pod_readers_read(struct logs *logs, struct pod_reader *const *readers, size_t n);
/* Follows the pods that go on: who watches is told at once what they print. */
void pod_readers_follow(struct logs *logs);
/* Ends all streams, and frees the readers. */
void pod_readers_free(struct logs *logs);
/* Tells who watches that there is something new. */
void pod_readers_tell(const struct logs *logs);

#endif
