/* jobfile.h - the job files of Azure Batch AI, as runs of ACT: for the files of flow/ and their tests.
 *
 * Batch AI's mount root is the code root here, which contains the mapped folders: $AZ_BATCHAI_MOUNT_ROOT/data is the
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
#include "platform/platform.h"
#include "run/run.h"

struct config;
struct config_folder;

struct flow_job_file {
    char *line;                /* for bash -c, on every process */
    char *title;               /* the toolkit and what the user wrote: "pyTorch: python train.py --lr 1" */
    char *image;               /* with its registry; NULL: none requested */
    char *registry;            /* the host of the image's registry; NULL: Docker Hub */
    char *username, *password; /* at the registry; NULL: none are given */
    char *shm_size;            /* "16g", "1023b"; NULL: none requested */
    int64_t limit_s;           /* after which the run is ended; 0: never */
    int nodes, procs_per_node;
    bool fixed_size;               /* the line works for this size only */
    bool has_secrets;              /* of any kind: the file must not be seen */
    struct act_strv env, secrets;  /* "NAME=value" */
    struct config_folder *volumes; /* volumes mounted with a key from the file */
    size_t n_volumes;
    struct run_output *outputs; /* output directories */
    size_t n_outputs;
    struct act_strv notes; /* what has no counterpart, or a different one; a line each */
};

/* The values for "<AZURE_BATCHAI_STORAGE_ACCOUNT>" and "<AZURE_BATCHAI_STORAGE_KEY>" in the volumes of a job file, by
 * options; NULL: the environment variables of these names. */
struct flow_job_storage {
    const char *account, *key;
};

/* Reads a file of Azure Batch AI, which is JSON, perhaps after a byte order mark; a new reference. One that does not
 * begin as an object is -ACT_CONFIG: "'FILE' is not " and is_not. */
int flow_batch_file_read(const char *path, const char *is_not, json_t **out, struct act_error *err) ACT_NODISCARD;
/* Reads a job file. Not JSON, unknown members, or missing ones: -ACT_CONFIG with file and place. Uses the mapped
 * folders, project and platform of config. A share on a host that may not be sent its key: -ACT_DENIED. Release out. */
int flow_job_file_read(const char *path, const struct config *config, const struct flow_job_storage *storage,
                       struct flow_job_file *out, struct act_error *err) ACT_NODISCARD;
/* Reads a job file from parsed JSON; name is for messages. */
int flow_job_file_parse(json_t *json, const char *name, const struct config *config,
                        const struct flow_job_storage *storage, struct flow_job_file *out,
                        struct act_error *err) ACT_NODISCARD;
/* Checks that it is a valid job file (format.c). Renames members from the Python SDK's spelling and removes
 * comments. */
int flow_job_file_check(json_t *json, const char *name, struct act_error *err) ACT_NODISCARD;
/* Checks that it is a valid file that describes a cluster of Batch AI. */
int flow_batch_cluster_check(json_t *json, const char *name, struct act_error *err) ACT_NODISCARD;
/* Sets in config the image, shared memory, time limit and volumes that the job asks for, as far as its platform
 * supports them and this command says nothing else, and adds to the job's notes what is not used. Returns the limit in
 * seconds for the command itself if the platform has none; 0: not needed. */
int64_t flow_job_file_apply(struct flow_job_file *job, struct config *config);
/* Returns the toolkit that the title of a run (run_spec.title) names, "pyTorch", as a new string; NULL: it is no job
 * file's. */
char *flow_job_tool(const char *title);
/* Refuses (-ACT_CONFIG) a job file's run, known by its title, that needs a shared folder which its nodes do not
 * have. */
int flow_check_shared_temp(struct platform *platform, const struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
void flow_job_file_release(struct flow_job_file *job);

#endif
