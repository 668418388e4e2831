/* gpus.h - the GPUs of this machine: which there are, which are given to this process, who uses them, and how a
 * process is told about its own.
 *
 * Each fact is read in one place: gpus_find() reads what the kernel and the drivers show, which takes no time,
 * gpus_ask() asks nvidia-smi, which may take seconds. All the rest are pure functions of these facts. This module gives
 * nothing out: node/slots.h does. */
#ifndef ACT_GPUS_GPUS_H
#define ACT_GPUS_GPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"

enum gpu_kind {
    GPU_NVIDIA,
    GPU_MIG, /* an instance of an NVIDIA card that is divided (Multi-Instance GPU) */
    GPU_AMD,
    GPU_INTEL,
    N_GPU_KINDS
};

/* A process that computes on a GPU. */
struct gpu_user {
    pid_t pid;            /* as the driver says, which may be that of another PID namespace */
    char *user;           /* NULL: the process cannot be seen here */
    char *program;        /* its name without folders; may be empty */
    int64_t memory_bytes; /* -1: not known */
    int64_t for_s;        /* how long it has been running; -1: not known */
    bool is_mine;         /* of the user of this process */
};

struct gpu {
    enum gpu_kind kind;
    /* As the tools of its vendor number those that this process may open, from 0; for an instance, that of its card;
     * -1: it may not be opened. */
    int index;
    int card; /* its number among the device files of its vendor, which is the same for everybody; -1: not known */
    int instance[2];      /* of MIG: the GPU instance, and the compute instance in it */
    char *uuid;           /* "GPU-...", "MIG-..."; empty: not known */
    char *bus;            /* "0000:3b:00.0"; empty: not known */
    char *model;          /* empty: not known */
    char *node_id;        /* of AMD: what the driver's files call it; else NULL */
    int numa;             /* the NUMA node; -1: not known */
    int64_t memory_bytes; /* -1: not known */
    int64_t used_bytes;   /* of it, by anybody; -1: not known */
    bool may_open;        /* its device file exists and this process may open it */
    bool is_given;        /* it may be used: it may be opened, and no variable hides it */
    struct gpu_user *users;
    size_t n_users;
};

struct gpu_list {
    struct gpu *v;
    size_t n;
    /* How near two cards are, by their indexes, as nvidia-smi says it: n_near rows of as many numbers, where less is
     * nearer. NULL: not known. */
    int *near;
    size_t n_near;
};
void gpu_list_release(struct gpu_list *list);

/* ---- facts.c */

/* Reads which GPUs there are, those of one vendor: that of the most, as a run cannot use several. They are in the order
 * of their indexes, and those that may not be opened have none. All that may be opened are given. root: "", or a folder
 * with a copy of the files of a system. */
void gpus_find(const char *root, struct gpu_list *out);

/* ---- masks.c */

/* The variables by which somebody who starts a process says which GPUs it has. NULL: not set. */
enum gpu_mask { MASK_CUDA, MASK_NVIDIA, MASK_ROCR, MASK_HIP, MASK_ORDINAL, MASK_ZE, MASK_ORDER, N_GPU_MASKS };
struct gpu_masks {
    char *v[N_GPU_MASKS];
};
/* Returns the name of the variable. */
const char *gpus_mask_name(enum gpu_mask mask);
/* Read them from the environment, and put them back there. */
void gpu_masks_read(struct gpu_masks *out);
void gpu_masks_restore(const struct gpu_masks *masks);
void gpu_masks_release(struct gpu_masks *masks);
/* Takes away what they hide, as CUDA, ROCm and Level Zero read them. */
void gpus_apply_masks(const struct gpu_masks *masks, struct gpu_list *list);

/* Leaves only the GPUs that are named, by their indexes or by UUIDs, of which the beginning is enough. One that is not
 * there, or not given, or named twice: -ACT_CONFIG. */
int gpus_take_named(const struct act_strv *names, struct gpu_list *list, struct act_error *err) ACT_NODISCARD;

/* Returns how many are given. */
size_t gpus_given(const struct gpu_list *list);
/* Returns why not all of a machine's GPUs are given: "CUDA_VISIBLE_DEVICES is '3'". New string; NULL: all are. */
char *gpus_why_not_all(const struct gpu_masks *masks, const struct gpu_list *list);

/* Returns what names a GPU for good, whatever is hidden: "3", "mig-MIG-...", "amd-128". Part of a file's name. New
 * string. */
char *gpus_key(const struct gpu *gpu);
/* Returns what people call it: "GPU 1", "GPU 1 (MIG-...)". New string. */
char *gpus_name(const struct gpu *gpu);

/* Tells programs by variables of this process that these GPUs are theirs; those that would say something else go.
 * mine: of each of the list. */
void gpus_show(const struct gpu_list *list, const bool *mine);
/* Returns the GPUs as the variable names them that a process is told by: "2,3". New string. */
char *gpus_text(const struct gpu_list *list, const bool *mine);
/* Leaves of the GPUs that the variables of this process name those at these positions, from 0: "0,3"; "": none. */
void gpus_narrow(const char *positions);
/* Returns what the local_rank-th process of a node sees of the GPUs that the node's processes have together, as the
 * value of CUDA_VISIBLE_DEVICES: one instance of MIG, because a process sees no more than one of a list. New string;
 * NULL: all of them. */
char *gpus_of_rank(const char *visible, int local_rank);

/* ---- ask.c, users.c */

enum gpus_answer {
    GPUS_TOLD,
    GPUS_UNTOLD,     /* nobody is there to ask: no nvidia-smi */
    GPUS_UNANSWERED, /* it took too long: the driver may hang */
    GPUS_FAILED,     /* it ended with an error */
};
/* Completes the list by what nvidia-smi or the driver's files say: memory, users, UUIDs, and how near the cards are.
 * Takes at most limit_ms, and leaves a program behind that does not even hear SIGKILL: as long as
 * that is there, GPUS_UNANSWERED is the answer, and no other is started. root as of gpus_find(). */
enum gpus_answer gpus_ask(const char *root, int limit_ms, struct gpu_list *list);
/* Returns that answer in words, for a person; NULL: it is as it should be. Not owned. */
const char *gpus_answer_text(enum gpus_answer answer);

/* Take what nvidia-smi printed into the list: of --query-gpu, --query-compute-apps, -L, and 'topo -m'. Lines that are
 * something else are left out. */
void gpus_take_memory(char *text, struct gpu_list *list);
void gpus_take_users(char *text, struct gpu_list *list);
void gpus_take_instances(char *text, struct gpu_list *list);
void gpus_take_topology(char *text, struct gpu_list *list);

/* Returns why a GPU is not free: "GPU 1 is used by another user (alice, python, 31 GiB, 4 h)". It is free if no
 * process of another user computes there, and at most free_percent of its memory is in use. New string; NULL: it is
 * free, as far as is known. */
char *gpus_why_busy(const struct gpu *gpu, int free_percent);
/* Returns who uses it, for a table: "alice: python 31 GiB, 4 h; ...". New string; empty: nobody, as far as is known. */
char *gpus_users_text(const struct gpu *gpu);

/* ---- choose.c */

/* Chooses need of those that can be had, the nearest to one another: out[i] for each of the list. Tells whether there
 * are so many. */
bool gpus_choose(const struct gpu_list *list, const bool *can, size_t need, bool *out);

#endif
