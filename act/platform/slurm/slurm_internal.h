/* slurm_internal.h - what the files of the platform "slurm" share: slurm.c (runs), submit.c, look.c (states),
 * cluster.c (nodes, summary, jobs), call.c (Slurm's programs and what they complain about). */
#ifndef ACT_PLATFORM_SLURM_INTERNAL_H
#define ACT_PLATFORM_SLURM_INTERNAL_H

#include "platform/platform_internal.h"
#include "platform/slurm/state.h"
#include "platform/slurm/text.h"
#include "site/site.h"

struct slurm {
    struct platform base;
    struct config_slurm config; /* own copy; partition: compute_target when nothing else was said */
    char *image;                /* docker.image */
    int64_t gpu_per_node;       /* -1: not given */
    bool preemption_allowed;
    struct site *site; /* opened when it is first needed */
    bool no_accounting;
    bool only_look; /* the site is not opened for more */
};

static inline struct slurm *slurm_of(struct platform *p)
{
    return (struct slurm *)p; /* the first member */
}

enum { SLURM_GPUS_DEFAULT = 4 }; /* on a node, as in the original */

/* Whether nodes have GPUs at all. */
bool slurm_has_gpus(const struct slurm *s);

/* ---- call.c */

/* Connects if need be. */
int slurm_site(struct slurm *s, struct site **out, struct act_error *err) ACT_NODISCARD;
/* Runs a program of Slurm (argv ends with NULL) that must succeed; its stdout is *out, a new string. What it complains
 * about is the error, whole, with a code that fits. */
int slurm_run(struct slurm *s, const char *const *argv, char **out, struct act_error *err) ACT_NODISCARD;
/* The same with an input, and an answer that may have been lost: *out_unclear tells that nobody knows whether it was
 * done. */
int slurm_feed(struct slurm *s, const char *const *argv, const char *input, char **out, bool *out_unclear,
               struct act_error *err) ACT_NODISCARD;
/* The error for what a program wrote to stderr. */
int slurm_refuse(const char *program, const char *complaint, struct act_error *err);

/* ---- look.c */

/* A run as it is now. */
struct slurm_view {
    struct run_status status;
    bool there;    /* has a folder */
    bool by_slurm; /* status is Slurm's word, and was written down */
    int64_t job;   /* 0: none */
    bool is_array;
    char *nodes; /* of the job, as Slurm lists them; NULL: not known */
};
int slurm_look(struct slurm *s, const char *const *ids, size_t n, struct slurm_view *out,
               struct act_error *err) ACT_NODISCARD;
void slurm_views_release(struct slurm_view *views, size_t n);
/* One run that must be there. */
int slurm_look_one(struct slurm *s, const char *id, struct slurm_view *out,
                   struct act_error *err) ACT_NODISCARD;
int slurm_write_status(struct slurm *s, const char *id, const struct run_status *status,
                       struct act_error *err) ACT_NODISCARD;
int slurm_spec(struct platform *p, const char *id, struct run_spec *out, struct act_error *err) ACT_NODISCARD;

/* ---- submit.c */

int slurm_check(struct platform *p, const struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
int slurm_submit(struct platform *p, const struct platform_submission *submission,
                 struct act_error *err) ACT_NODISCARD;
/* The words for sbatch, and the script it is given. */
void slurm_sbatch_words(const struct slurm *s, const struct run_spec *spec, const char *run_dir,
                        struct act_strv *out);
char *slurm_job_script(const char *agent, const char *run_dir); /* new string */
/* "5", of an array "5_[0-3]"; new string. And back. */
char *slurm_job_text(const struct slurm *s, int64_t job);
int64_t slurm_job_number(const char *text, bool *out_is_array);

/* ---- examine.c */

void slurm_examine(struct platform *p, struct platform_findings *findings);

/* ---- cluster.c */

int slurm_nodes(struct platform *p, const char *id, struct platform_nodes *out,
                struct act_error *err) ACT_NODISCARD;
int slurm_shell(struct platform *p, const char *id, const char *node, const struct act_strv *command,
                struct act_strv *out_argv, struct act_error *err) ACT_NODISCARD;
int slurm_summary(struct platform *p, struct platform_summary *out, struct act_error *err) ACT_NODISCARD;
int slurm_jobs(struct platform *p, struct platform_jobs *out, struct act_error *err) ACT_NODISCARD;
/* The nodes of a job, from "scontrol show job -d". */
void slurm_nodes_from_scontrol(const char *text, int procs_per_node, struct platform_nodes *out);
/* The nodes and partitions of "sinfo -O" with slurm_sinfo_fields, the jobs of "squeue -O" with slurm_queue_fields, and
 * those of everybody with slurm_running_fields; text is changed. */
extern const char slurm_sinfo_fields[], slurm_queue_fields[], slurm_running_fields[];
void slurm_summary_from_sinfo(char *text, bool has_gpus, struct platform_summary *out);
void slurm_summary_add_queue(char *text, struct platform_summary *out);
void slurm_jobs_of_all(char *text, struct platform_jobs *out);

#endif
