/* Lists of the logs of a run of Azure Machine Learning: no name leads out of a folder. */
#include "fuzz/fuzz.h"

#include "base/path.h"
#include "platform/azureml/azureml_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CODEC_AUTOJSON json_t *json = fuzz_json(data, size);
    const char *name;
    json_t *url;

    if (!json)
        return 0;
    CODEC_AUTOJSON json_t *files = azureml_log_files(json);
    FUZZ_CHECK(azureml_last_retry(json) >= 0);
    json_object_foreach(files, name, url)
    {
        FUZZ_CHECK(act_path_is_safe(name, strlen(name)) && json_is_string(url));
        FUZZ_CHECK(run_log_rank(name, NULL) >= -1);
    }
    return 0;
}
