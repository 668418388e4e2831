/* The run history of Azure Machine Learning: states, workspaces. */
#include "fuzz/fuzz.h"

#include "platform/azureml/azureml_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct auth_cloud cloud = {.azureml_domain = "api.azureml.ms"};
    CODEC_AUTOJSON json_t *json = fuzz_json(data, size);
    struct run_status status;

    if (!json)
        return 0;
    azureml_read_run(json, &status);
    FUZZ_CHECK(status.exit_status >= 0 && status.exit_status < 256);
    FUZZ_CHECK(strlen(status.reason) < sizeof(status.reason));
    (void)azureml_time(json, "createdUtc");
    free(azureml_tracking_history(json));
    free(azureml_discovered_history(json));
    free(azureml_region_history(json, &cloud));
    return 0;
}
