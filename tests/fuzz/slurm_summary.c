/* What sinfo and squeue print of a cluster. */
#include "fuzz/fuzz.h"

#include "platform/slurm/slurm_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *nodes = fuzz_text(data, size);
    ACT_AUTOFREE char *queue = fuzz_text(data, size);
    ACT_AUTOFREE char *running = fuzz_text(data, size);
    struct platform_summary summary = {0};
    struct platform_jobs jobs = {0};

    slurm_summary_from_sinfo(nodes, size % 2, &summary);
    slurm_summary_add_queue(queue, &summary);
    slurm_jobs_of_all(running, &jobs);
    platform_summary_release(&summary);
    platform_jobs_release(&jobs);
    return 0;
}
