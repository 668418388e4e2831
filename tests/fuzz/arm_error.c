/* Errors of Azure Resource Manager. */
#include "fuzz/fuzz.h"

#include "arm/arm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CODEC_AUTOJSON json_t *json = fuzz_json(data, size);
    char code[64] = "";

    if (!json)
        return 0;
    free(arm_error_text(json, code, sizeof(code)));
    FUZZ_CHECK(strlen(code) < sizeof(code) && arm_meaning(code) > 0);
    return 0;
}
