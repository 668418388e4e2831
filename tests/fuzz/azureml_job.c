/* Jobs of Azure Machine Learning, also of other tools, and the same again. */
#include "fuzz/fuzz.h"

#include "config/config.h"
#include "platform/azureml/azureml_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config config = {.cluster = (char[]){"c"}, .platform = (char[]){"aml"}, .project_root = (char[]){"/p"}};
    const struct azureml azureml = {.config = &config};
    CODEC_AUTOJSON json_t *json = fuzz_json(data, size);
    struct run_spec spec = {0};
    struct act_error err = {0};

    if (!json)
        return 0;
    if (azureml_read_spec(&azureml, "x_1_00000000", json, &spec, &err) == 0) {
        FUZZ_CHECK(spec.argv.n > 0 && spec.nodes > 0 && spec.procs_per_node > 0);
        free(spec.resubmit_of);
        spec.resubmit_of = act_strdup("x_0_00000000");
        json_decref(azureml_repeated_body(json, &spec));
        free(azureml_job_command(&spec));
    }
    run_spec_release(&spec);
    return 0;
}
