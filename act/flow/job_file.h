/* job_file.h - the job files of Azure Batch AI, as runs of ACT: for the files of flow/ and their tests.
 *
 * Where Batch AI mounted volumes is the code root here, in which mapped folders are: $AZ_BATCHAI_MOUNT_ROOT/data is the
 * mapped folder data.
 *
 * Source: github.com/Azure/azure-rest-api-specs, specification/batchai (2018-05-01, JobCreateParameters).
 */
#ifndef ACT_FLOW_JOB_FILE_H
#define ACT_FLOW_JOB_FILE_H

#include <jansson.h>

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"

struct flow_job_file {
    char *line;    /* for bash -c, on every process */
    char *image;   /* NULL: none is asked for */
    char *timeout; /* as it is written there: "P7D", "7.00:00:00"; NULL: none */
    int nodes, procs_per_node;
    struct act_strv env;   /* "NAME=value" */
    struct act_strv notes; /* what has no counterpart, or another one, a line each */
};

/* Reads one. What is not JSON, has members that the format has not, or lacks what it needs: -ACT_CONFIG with file and
 * place. Of config only the mapped folders are looked at. Release out. */
int flow_job_file_read(const char *path, const struct config *config, struct flow_job_file *out,
                       struct act_error *err) ACT_NODISCARD;
/* The same of JSON that is read already; name is for messages. */
int flow_job_file_parse(json_t *json, const char *name, const struct config *config,
                        struct flow_job_file *out, struct act_error *err) ACT_NODISCARD;
/* Whether it has the form of one: job_format.c. */
int flow_job_file_check(json_t *json, const char *name, struct act_error *err) ACT_NODISCARD;
void flow_job_file_release(struct flow_job_file *job);

#endif
