/* build.h - for the files that turn a job file of Azure Batch AI into a run.
 *
 *   format.c      what a job file may say
 *   line.c        what the other files share: notes, texts, and how they are written into the line
 *   text.c        times and sizes, as it writes them
 *   volumes.c     what replaces the paths at which volumes were mounted
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
    const struct flow_job_storage *storage;
    json_t *job; /* its "properties", already checked by format.c */
    struct flow_job_file *out;
    struct act_buf line;     /* becomes out->line */
    struct act_strv missing; /* the paths of volumes that nothing mounts */
    struct act_error *err;
};

/* Adds a line to out->notes. */
void job_note(struct job_build *b, const char *fmt, ...) ACT_PRINTF(2, 3);
/* Returns the text of a member, or NULL. */
const char *job_text(const json_t *object, const char *member);
/* Returns the text of a secret or, if a reference to a key vault stands in its place, "keyvault:" and its URL, as a new
 * string; NULL: there is neither. */
char *job_secret(const json_t *object, const char *member, const char *reference);
/* Appends text in double quotes, in which variables are still expanded. */
void job_add_quoted(struct act_buf *line, const char *text);

/* Reads "P7D", "PT1H30M", "7.00:00:00", "7 days, 0:00:00" or "01:30:00". False: it is none of these, or 0. */
bool job_seconds(const char *text, int64_t *out);
/* Reads "16gb", "512M", "1.5g" or "1024" as bytes, in powers of 1024 like docker. False: it is no size, or 0. */
bool job_bytes(const char *text, uint64_t *out);

/* Turns each volume into an entry of out->volumes or a note. Call it before job_is_mapped(). */
int job_take_volumes(struct job_build *b) ACT_NODISCARD;
/* Tell whether a path relative to the code root is in a mapped folder or a mounted volume, and whether it is in the
 * project. */
bool job_is_mapped(const struct job_build *b, const char *rel);
bool job_is_in_code(const struct config *config, const char *rel);

/* Adds the command to the line and sets the number of processes. */
int job_add_command(struct job_build *b) ACT_NODISCARD;
/* Tells whether the TensorFlow settings are for several processes, for which job_add_distributed() adds the command. */
bool job_is_distributed(const struct job_build *b, const json_t *settings);
int job_add_distributed(struct job_build *b, const json_t *settings) ACT_NODISCARD;
/* Append the Python interpreter of the settings, and that with their script and the arguments in the named member. */
void job_add_interpreter(struct act_buf *line, const json_t *settings);
void job_add_script(struct act_buf *line, const json_t *settings, const char *arguments);

/* Adds a note for each variable "$AZ_BATCHAI_..." that nothing sets. */
void job_note_variables(struct job_build *b);
/* Tells whether text refers to a variable of Batch AI. */
bool job_has_variable(const char *text);

#endif
