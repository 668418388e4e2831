/* What sbatch and others of Slurm say. */
#include "fuzz/fuzz.h"

#include "platform/slurm/slurm_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *text = fuzz_text(data, size);
    ACT_AUTOFREE char *complaint = slurm_complaint(text);
    struct act_error err = {0};

    FUZZ_CHECK(slurm_id_from_sbatch(text) >= 0 && !strchr(complaint, '\n'));
    free(slurm_node_state(text));
    free(slurm_job_value(text, "Nodes"));
    (void)slurm_state_of(text);
    FUZZ_CHECK(slurm_refuse("sbatch", text, &err) < 0 && *act_error_text(&err));
    return 0;
}
