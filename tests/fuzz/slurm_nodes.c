/* What scontrol prints of a job, lists of hosts, GPUs. */
#include "fuzz/fuzz.h"

#include "node/job.h"
#include "platform/slurm/slurm_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *text = fuzz_text(data, size);
    struct platform_nodes nodes = {0};
    struct act_strv hosts = {0};
    bool is_array;

    slurm_nodes_from_scontrol(text, 2, &nodes);
    platform_nodes_release(&nodes);
    slurm_hosts(text, &hosts);
    FUZZ_CHECK(hosts.n <= 65536 && slurm_gpus(text) >= 0);
    act_strv_release(&hosts);
    free(slurm_gpu_ids(text));
    (void)slurm_job_number(text, &is_array);
    (void)job_parse_end(text, 1);
    FUZZ_CHECK(job_parse_kill_wait(text) >= -1);
    return 0;
}
