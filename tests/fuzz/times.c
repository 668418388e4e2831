/* Points in time and lengths of it, as services, Slurm and people write them. */
#include "fuzz/fuzz.h"

#include "auth/token_internal.h"
#include "base/clock.h"
#include "base/units.h"
#include "flow/jobfile/build.h"
#include "platform/azureml/azureml_internal.h"
#include "platform/slurm/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *text = fuzz_text(data, size);
    char back[ACT_TIME_TEXT];
    int64_t t = 0, again = 0;

    if (act_time_from_http(text, &t)) {
        act_time_to_http(t, back);
        FUZZ_CHECK(act_time_from_http(back, &again) && again == t);
    }
    if (act_time_from_iso_ns(text, &t)) {
        act_time_to_iso_ns(t, back);
        FUZZ_CHECK(act_time_from_iso_ns(back, &again) && again == t);
        act_time_to_local(t / 1000000000, back);
    }
    if (act_duration_from_text(text, &t) || job_seconds(text, &t)) {
        FUZZ_CHECK(t >= 0);
        act_duration_to_text(t, back);
    }
    FUZZ_CHECK(slurm_time(text) >= 0 && slurm_duration(text) >= 0 && slurm_run_created(text) >= 0);
    (void)token_local_time(text);
    free(azureml_iso_duration(text));
    return 0;
}
