/* jobfile.h - the job files of Azure Batch AI, as runs of ACT: for the files of flow/ and their tests.
 *
 * Where Batch AI mounted volumes is the code root here, in which mapped folders are: $AZ_BATCHAI_MOUNT_ROOT/data is the
 * mapped folder data.
 *
 * Source: github.com/Azure/azure-rest-api-specs, specification/batchai (2018-05-01, JobCreateParameters), and
 * github.com/Azure/BatchAI, documentation and schemas.
 */
#ifndef ACT_FLOW_JOB_FILE_H
#define ACT_FLOW_JOB_FILE_H

#include <jansson.h>

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "platform/platform.h"

struct flow_job_file {
    char *line;                /* for bash -c, on every process */
    char *title;               /* the toolkit and what the user wrote: "pyTorch: python train.py --lr 1" */
    char *image;               /* with its registry; NULL: none is asked for */
    char *registry;            /* the host of the image's registry; NULL: Docker Hub */
    char *username, *password; /* at the registry; NULL: none are given */
    char *shm_size;            /* "16g", "1023b"; NULL: none is asked for */
    int64_t limit_s;           /* when the run is ended; 0: never */
    int nodes, procs_per_node;
    bool fixed_size;               /* the line is right for that size only */
    bool has_secrets;              /* of any kind: the file must not be seen */
    struct act_strv env, secrets;  /* "NAME=value" */
    struct config_folder *volumes; /* what is mounted by a key of the file */
    size_t n_volumes;
    struct act_strv notes; /* what has no counterpart, or another one, a line each */
};

/* Reads one. What is not JSON, has members that the format has not, or lacks what it needs: -ACT_CONFIG with file and
 * place. Of config the mapped folders, the project and the platform are looked at. A share on a host that may not have
 * its key: -ACT_DENIED. Release out. */
int flow_job_file_read(const char *path, const struct config *config, struct flow_job_file *out,
                       struct act_error *err) ACT_NODISCARD;
/* The same of JSON that is read already; name is for messages. */
int flow_job_file_parse(json_t *json, const char *name, const struct config *config,
                        struct flow_job_file *out, struct act_error *err) ACT_NODISCARD;
/* Whether it has the form of one: format.c. Members in the Python SDK's spelling become those of the format, and
 * comments go. */
int flow_job_file_check(json_t *json, const char *name, struct act_error *err) ACT_NODISCARD;
/* Tells config the image, the shared memory, the time and the volumes that the job asks for, where its platform has
 * them, and adds to the notes of the job what it has not. Returns how many seconds the command itself has to be limited
 * to, because the platform limits nothing; 0: no need. */
int64_t flow_job_file_apply(struct flow_job_file *job, struct config *config);
/* Whether the run of a job file, as its title tells, needs a folder that its nodes do not share: -ACT_CONFIG. */
int flow_check_shared_temp(struct platform *platform, const struct run_spec *spec,
                           struct act_error *err) ACT_NODISCARD;
void flow_job_file_release(struct flow_job_file *job);

#endif
