/* job_build.h - for the files that make a run of a job file of Azure Batch AI.
 *
 *   format.c      what a job file may say
 *   text.c        times and sizes, as it writes them
 *   volumes.c     what stands where volumes were mounted
 *   jobfile.c     folders, environment, preparation, image: all but the command
 *   toolkit.c     the command that the settings of a toolkit come to, and how often it runs
 *   tensorflow.c  that of workers and parameter servers
 *   variables.c   variables of Batch AI that a job file uses
 *   cluster.c     what it asks of the cluster, told to the configuration
 */
#ifndef ACT_FLOW_JOB_BUILD_H
#define ACT_FLOW_JOB_BUILD_H

#include "flow/jobfile/jobfile.h"

struct job_build {
    const char *file; /* for messages */
    const struct config *config;
    json_t *job; /* its "properties", whose form is right */
    struct flow_job_file *out;
    struct act_buf line; /* becomes out->line */
    struct act_error *err;
};

/* Adds a line to out->notes. */
void job_note(struct job_build *b, const char *fmt, ...) ACT_PRINTF(2, 3);
/* The text of a member, or NULL. */
const char *job_text(const json_t *object, const char *member);
/* In double quotes, in which variables still stand for their values. */
void job_add_quoted(struct act_buf *line, const char *text);

/* "P7D", "PT1H30M", "7.00:00:00", "7 days, 0:00:00", "01:30:00": false for anything else, and for no time at all. */
bool job_seconds(const char *text, int64_t *out);
/* "16gb", "512M", "1.5g", "1024": powers of 1024, as docker takes them. */
bool job_bytes(const char *text, uint64_t *out);

/* Says what becomes of each volume: out->volumes, or a note. Before job_is_mapped() is asked. */
int job_take_volumes(struct job_build *b) ACT_NODISCARD;
/* Whether a path, relative to the code root, is in a mapped folder or a volume that is mounted; in the project. */
bool job_is_mapped(const struct job_build *b, const char *rel);
bool job_is_in_code(const struct config *config, const char *rel);

/* Adds the command to the line and says how many processes there are. */
int job_add_command(struct job_build *b) ACT_NODISCARD;
/* The settings of TensorFlow, when they are those of several processes. */
bool job_is_distributed(const struct job_build *b, const json_t *settings);
int job_add_distributed(struct job_build *b, const json_t *settings) ACT_NODISCARD;
/* The Python of the settings; that with their script, and with the arguments that a member of theirs has. */
void job_add_interpreter(struct act_buf *line, const json_t *settings);
void job_add_script(struct act_buf *line, const json_t *settings, const char *arguments);

/* Notes for all variables "$AZ_BATCHAI_..." that nothing sets. */
void job_note_variables(struct job_build *b);
/* Whether text refers to a variable of Batch AI. */
bool job_has_variable(const char *text);

#endif
