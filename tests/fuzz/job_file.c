/* Job files of Azure Batch AI. */
#include "fuzz/fuzz.h"

#include "config/config.h"
#include "flow/jobfile/jobfile.h"
#include "platform/azureml/keys.h"
#include "platform/slurm/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config_folder folders[] = {{.name = (char[]){"data"}}, {.name = (char[]){"output"}}};
    struct azureml_keys azureml = {0};
    struct slurm_keys slurm = {0};
    struct config config = {
        .platform = size % 2 ? (char[]){"aml"} : (char[]){"slurm"},
        .parts = (struct config_part_values[]){{&azureml_keys_part, &azureml}, {&slurm_keys_part, &slurm}},
        .n_parts = 2,
        .folders = folders,
        .n_folders = 2};
    CODEC_AUTOJSON json_t *json = fuzz_json(data, size);
    struct flow_job_file job = {0};
    struct act_error err;

    if (json && flow_job_file_parse(json, "input", &config, NULL, &job, &err) == 0) {
        FUZZ_CHECK(job.line && job.nodes > 0 && job.procs_per_node > 0);
        flow_job_file_apply(&job, &config);
        free(config.docker.image);
        free(config.docker.address);
        free(config.docker.username);
        free(config.docker.password);
        free(azureml.shm_size);
        free(azureml.timeout);
        free(slurm.time);
    }
    flow_job_file_release(&job);
    return 0;
}
