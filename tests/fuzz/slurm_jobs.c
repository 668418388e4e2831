/* What squeue and sacct print. */
#include "fuzz/fuzz.h"

#include "platform/slurm/slurm_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const parsers[])(char *, struct slurm_jobs *) = {slurm_jobs_from_squeue, slurm_jobs_from_sacct};

    for (size_t p = 0; p < sizeof(parsers) / sizeof(parsers[0]); p++) {
        ACT_AUTOFREE char *text = fuzz_text(data, size);
        struct slurm_jobs jobs;
        struct run_status status, merged;
        parsers[p](text, &jobs);
        slurm_jobs_combine(&jobs);
        (void)slurm_jobs_find_name(&jobs, "act");
        for (size_t i = 0; i < jobs.n; i++) {
            slurm_status_of(&jobs.v[i], &status);
            struct slurm_known known = {.id = "x_1_0", .job = jobs.v[i].id, .said = &status, .now_unix_s = 1};
            *(p ? &known.past : &known.queue) = slurm_jobs_find(&jobs, jobs.v[i].id);
            (void)slurm_merge(&known, &merged);
        }
        slurm_jobs_release(&jobs);
    }
    return 0;
}
