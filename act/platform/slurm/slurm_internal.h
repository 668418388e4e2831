/* slurm_internal.h - what the files of the platform "slurm" share: slurm.c (runs), abort.c (their ends), submit.c,
 * words.c (of sbatch), start.c (whether one could start), here.c (a run in a job that runs already), look.c (states),
 * cluster.c (nodes, summary, jobs), call.c (Slurm's programs and their errors). */
#ifndef ACT_PLATFORM_SLURM_INTERNAL_H
#define ACT_PLATFORM_SLURM_INTERNAL_H

#include "platform/platform_internal.h"
#include "platform/slurm/keys.h"
#include "platform/slurm/state.h"
#include "platform/slurm/text.h"
#include "site/site.h"

/* The job in which a run is submitted with --here. */
struct slurm_here {
    char *job; /* its id; NULL: it is not known yet */
    char *has; /* "job 5 has 2 nodes" */
    struct platform_nodes nodes;
    int gpus;       /* on each of its nodes, at least */
    int processors; /* likewise, on average */
    int64_t left_s; /* of its time; -1: it has no end */
    bool said;      /* that the run ends with it */
};

struct slurm {
    struct platform base;
    struct slurm_keys config; /* own copy; partition: compute_target unless set */
    char *image;              /* docker.image */
    int64_t gpu_per_node;     /* -1: not given */
    bool preemption_allowed;
    bool options_are_said; /* sbatch_options are this command's */
    struct site *site;     /* opened on first use */
    bool no_accounting;
    bool only_look;    /* opening the site copies nothing there */
    char *could_start; /* what was asked of Slurm, and could */
    char *no_index;    /* the node that has reached no index of packages; NULL: none is known */
    struct slurm_here here;
};

static inline struct slurm *slurm_of(struct platform *p)
{
    return (struct slurm *)p; /* the first member */
}

enum { SLURM_GPUS_DEFAULT = 4 }; /* per node, as in the original */

/* Tells whether nodes have GPUs at all. */
bool slurm_has_gpus(const struct slurm *s);

/* ---- call.c */

/* Connects if necessary. */
int slurm_site(struct slurm *s, struct site **out, struct act_error *err) ACT_NODISCARD;
/* Runs a program of Slurm (argv ends with NULL) that must succeed; *out: its stdout, a new string. Its full complaint
 * becomes the error, with a matching code. */
int slurm_run(struct slurm *s, const char *const *argv, char **out, struct act_error *err) ACT_NODISCARD;
/* Likewise with stdin, for a request whose response may be lost: *out_unclear: whether it was carried out is
 * unknown. */
int slurm_feed(struct slurm *s, const char *const *argv, const char *input, char **out, bool *out_unclear,
               struct act_error *err) ACT_NODISCARD;
/* Sets the error for what a program wrote to stderr. */
int slurm_refuse(const char *program, const char *complaint, struct act_error *err);

/* Adds what only Slurm knows about its refusal of a run: which partitions there are, what GPUs nodes have. Returns the
 * error. */
int slurm_hint(struct slurm *s, const struct run_spec *spec, struct act_error *err);

/* ---- look.c */

/* The current view of a run. */
struct slurm_view {
    struct run_status status;
    bool there;    /* has a folder */
    bool by_slurm; /* status is from Slurm, and was recorded */
    int64_t job;   /* 0: none */
    int64_t task;  /* which one of an array; -1: the job is the run's alone */
    int64_t step;  /* which step of somebody's job, that is not the run's; -1: it is none */
    bool is_array;
    char *nodes; /* of the job, as Slurm lists them; NULL: not known */
};
int slurm_look(struct slurm *s, const char *const *ids, size_t n, struct slurm_view *out,
               struct act_error *err) ACT_NODISCARD;
void slurm_views_release(struct slurm_view *views, size_t n);
/* One run, which must exist. */
int slurm_look_one(struct slurm *s, const char *id, struct slurm_view *out, struct act_error *err) ACT_NODISCARD;
int slurm_write_status(struct slurm *s, const char *id, const struct run_status *status,
                       struct act_error *err) ACT_NODISCARD;
int slurm_spec(struct platform *p, const char *id, struct run_spec *out, struct act_error *err) ACT_NODISCARD;

/* ---- submit.c */

int slurm_prepare(struct platform *p, struct run_spec *spec, const char *package, struct act_error *err) ACT_NODISCARD;
int slurm_submit(struct platform *p, const struct platform_submission *submission, struct act_error *err) ACT_NODISCARD;
int slurm_most_together(struct platform *p);
int slurm_submit_several(struct platform *p, const struct platform_several *several,
                         struct act_error *err) ACT_NODISCARD;

/* ---- words.c */

int slurm_check_settings(struct platform *p, const struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
int slurm_check(struct platform *p, const struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
/* Adds the words that submit a run. after: for which jobs it waits, "afterany:7:8_3,afterok:9"; NULL: none. */
void slurm_sbatch_words(const struct slurm *s, const struct run_spec *spec, const char *run_dir, const char *after,
                        struct act_strv *out);
/* Returns the script that sbatch is given, a new string. */
char *slurm_job_script(const char *agent, const char *run_dir);
/* Returns the value of an option in sbatch_options; NULL: it is not there. */
const char *slurm_site_option(const struct slurm *s, const char *name, const char *letter);
/* Adds the words that ask whether such a run could start. */
void slurm_test_words(const struct slurm *s, const struct run_spec *spec, struct act_strv *out);
/* An array: a task for each of several runs. */
struct slurm_array {
    const char *row; /* what their ids begin with; NULL: it is none */
    int first, last; /* the numbers that they end with */
    int most;        /* so many run at once; 0: all */
};
/* Add the words, and return the script, of an array whose runs have their folders in runs_dir. */
void slurm_array_words(const struct slurm *s, const struct run_spec *spec, const char *runs_dir,
                       const struct slurm_array *array, const char *after, struct act_strv *out);
char *slurm_array_script(const char *agent, const char *runs_dir, const char *row); /* new string */
/* Adds the option that says how many GPUs of each node. */
void slurm_push_gpus(const struct slurm *s, int per_node, struct act_strv *out);
/* Adds the options that say which nodes, and on whose account. spec NULL: of no run. */
void slurm_push_places(const struct slurm *s, const struct run_spec *spec, struct act_strv *out);
/* Returns "5", for an array "5_[0-3]". New string; slurm_job_number() is the inverse. */
char *slurm_job_text(const struct slurm *s, int64_t job);
/* Returns what Slurm's programs call a run's job: "5_3", or for task -1 "5". New string. */
char *slurm_task_text(int64_t job, int64_t task);

/* ---- abort.c */

/* Does what the row's abort() does. */
void slurm_abort(struct platform *p, struct platform_end *ends, size_t n);

/* ---- here.c */

void slurm_here_release(struct slurm_here *here);
/* Sets the limits of a run in it. */
int slurm_here_limits(struct slurm *s, struct platform_limits *limits, struct act_error *err) ACT_NODISCARD;
/* Refuses a run that the job has no room for, and says when it ends. */
int slurm_here_check(struct slurm *s, const struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
/* Starts the step, whose agent writes RUN_FILE_JOB. *out_srun: the process that has started it. */
int slurm_here_start(struct slurm *s, const struct run_spec *spec, const char *agent, const char *run_dir,
                     pid_t *out_srun, struct act_error *err) ACT_NODISCARD;
/* Sets the error for an srun that has ended before the agent began. */
int slurm_here_refused(const char *run_dir, struct act_error *err);

/* ---- start.c */

/* Asks Slurm whether a run could ever start: -ACT_NO_CAPACITY and the like, with its words. What may pass is a warning;
 * where nobody answers, a note. */
int slurm_check_start(struct slurm *s, const struct run_spec *spec, struct act_error *err) ACT_NODISCARD;

/* ---- examine.c */

void slurm_examine_mounts(struct platform *p, const char *wanted, struct platform_findings *findings);
void slurm_examine_place(struct platform *p, const char *name, const char *path, struct platform_findings *findings);
void slurm_examine_setup(struct platform *p, const struct platform_trial *trial, struct platform_findings *findings);
void slurm_examine(struct platform *p, struct platform_findings *findings);

/* ---- cluster.c */

int slurm_nodes(struct platform *p, const char *id, struct platform_nodes *out, struct act_error *err) ACT_NODISCARD;
int slurm_shell(struct platform *p, const char *id, const char *node, const struct act_strv *command,
                struct platform_shell *out, struct act_error *err) ACT_NODISCARD;
int slurm_agent(struct platform *p, const char *id, const char *node, char **out, struct act_error *err) ACT_NODISCARD;
int slurm_summary(struct platform *p, struct platform_summary *out, struct act_error *err) ACT_NODISCARD;
int slurm_jobs(struct platform *p, struct platform_jobs *out, struct act_error *err) ACT_NODISCARD;
int slurm_usable_nodes(struct platform *p, const struct run_spec *spec, struct act_strv *out,
                       struct act_error *err) ACT_NODISCARD;
/* From "sinfo --Node -o '%N %P'", where a star marks the default partition: the nodes of a partition, or of the default
 * one (NULL); text is modified. */
void slurm_nodes_of_partition(char *text, const char *partition, struct act_strv *out);
/* The nodes of a job, from "scontrol show job -d". */
void slurm_nodes_from_scontrol(const char *text, int procs_per_node, struct platform_nodes *out);
/* Read the nodes and partitions of "sinfo -O", the jobs of "squeue -O", and all users' running jobs, each with the
 * fields that cluster.c asks for; text is modified. */
void slurm_summary_from_sinfo(char *text, bool has_gpus, struct platform_summary *out);
void slurm_summary_add_queue(char *text, struct platform_summary *out);
void slurm_jobs_of_all(char *text, struct platform_jobs *out);

#endif
