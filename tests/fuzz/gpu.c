/* What nvidia-smi prints. */
#include "fuzz/fuzz.h"

#include "node/gpu.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *text = fuzz_text(data, size);
    CODEC_AUTOJSON json_t *gpus = gpu_parse(text);

    FUZZ_CHECK(!gpus || json_is_array(gpus));
    return 0;
}
