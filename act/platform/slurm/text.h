/* text.h - parses the output of Slurm's programs. Pure: no program is started here.
 *
 * All lists are requested with "-O 'Field:<sep>,...'", which prints whole fields, each followed by the separator, in
 * every version since 20.02 (squeue(1), sinfo(1), "--Format"), or with sacct's --delimiter. Field texts point into the
 * text that was parsed.
 */
#ifndef ACT_PLATFORM_SLURM_TEXT_H
#define ACT_PLATFORM_SLURM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

#define SLURM_SEPARATOR "\x1f" /* in no state, reason or node list, and hardly in a job's name */

/* A job, or one task of an array. */
struct slurm_job {
    int64_t id;    /* of the whole array; 0: none */
    int64_t task;  /* its index in the array; -1: it is none, or several that wait */
    bool in_array; /* one of several */
    const char *state, *reason, *nodes, *name;
    int64_t start_unix_s, end_unix_s; /* also expected times; 0: not known */
    int exit_status, exit_signal;
    int restarts;
    int uid; /* who cancelled it; -1: not known */
};
struct slurm_jobs {
    struct slurm_job *v;
    size_t n;
};
void slurm_jobs_release(struct slurm_jobs *jobs);

/* The fields of "squeue -O" that slurm_jobs_from_squeue() reads, and of "sacct -o" that slurm_jobs_from_sacct() reads.
 * Rows with a different number of fields are skipped: a name may contain a newline. text is modified, and must outlive
 * jobs. */
extern const char slurm_squeue_fields[], slurm_sacct_fields[];
void slurm_jobs_from_squeue(char *text, struct slurm_jobs *out);
void slurm_jobs_from_sacct(char *text, struct slurm_jobs *out);

/* The next line of *cursor that has n fields, each ended by the separator (the last one perhaps by the end of the
 * line). */
bool slurm_next_row(char **cursor, char **fields, size_t n);

/* Returns the index of a task, "5_3": 3; -1: it is no task, but a job "5" or several tasks, "5_[0-3]". */
int64_t slurm_task(const char *job);
/* Returns the number of a step, "5.3": 3; -1: it is none. */
int64_t slurm_step(const char *job);
/* Returns the id that sbatch --parsable printed: the last line "<number>" or "<number>;<cluster>"; 0: none. */
int64_t slurm_id_from_sbatch(const char *text);
/* Returns the number that "5", "5_3" or "5_[0-3]" begins with; 0: it is that of no job. text and out_is_array may be
 * NULL. */
int64_t slurm_job_number(const char *text, bool *out_is_array);
/* A program's message, on one line without its "sbatch: error: ". New string. */
char *slurm_complaint(const char *text);

/* Returns the Unix time of "2026-11-20T09:31:20", printed with TZ=UTC; 0 for anything else, such as "N/A" and
 * "Unknown". */
int64_t slurm_time(const char *text);
/* Returns the seconds of "0:03", "1:02:03", "2-03:04:05"; 0 for anything else, such as "UNLIMITED". */
int64_t slurm_duration(const char *text);
/* A time limit, as sbatch takes it and scontrol shows it: "30", "1:30", "1:30:00", "2-12", "2-12:00"; 0 for anything
 * else, such as "UNLIMITED" and NULL. */
int64_t slurm_limit(const char *text);
/* An untrusted count, clamped to 0 to a million: nothing has more, and sums do not overflow. */
int slurm_count(int64_t n);
/* The GPUs of "gpu:4", "gpu:a100:8(S:0-1)", "gres:gpu:2", "gpu:a100:2(IDX:0-1),gpu:h100:1", "gres/gpu=4". */
int slurm_gpus(const char *gres);
/* Returns the indexes of "gpu:a100:2(IDX:0-1,3)": "0,1,3"; NULL: none. New string. */
char *slurm_gpu_ids(const char *gres);
/* A state without its suffix flags: "down*" is "down". New string. */
char *slurm_node_state(const char *text);

/* The names of "n[1-2,07-09],gpu3": n1 n2 n07 n08 n09 gpu3; also with several brackets per name. At most 65536. */
void slurm_hosts(const char *list, struct act_strv *out);

/* Returns the value of "Key=Value" in what "scontrol show job" printed, for keys whose values contain no blanks. New
 * string; NULL: missing, "(null)" or empty. */
char *slurm_job_value(const char *text, const char *key);

#endif
