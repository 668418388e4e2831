/* JSON, and texts of any bytes in it. */
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CODEC_AUTOJSON json_t *json = fuzz_json(data, size);
    struct act_strv texts = {0};

    if (!json)
        return 0;
    ACT_AUTOFREE char *line = codec_json_line(json);
    CODEC_AUTOJSON json_t *again = fuzz_json((const uint8_t *)line, strlen(line));
    FUZZ_CHECK(again && json_equal(json, again));
    free(codec_json_bytes_get(json));
    (void)codec_json_int(json, "n", 0);
    (void)codec_json_str(json, "s", "");
    if (codec_json_strv_get(json, &texts)) {
        CODEC_AUTOJSON json_t *back = codec_json_strv_new(&texts);
        FUZZ_CHECK(json_array_size(back) == texts.n);
    }
    act_strv_release(&texts);
    return 0;
}
