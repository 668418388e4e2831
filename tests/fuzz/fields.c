/* Records by tables of their members: what is read is written again as it was. */
#include "fuzz/fuzz.h"

#include "unit/fields_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CODEC_AUTOJSON json_t *json = fuzz_json(data, size);
    struct sample sample, again;

    if (!json)
        return 0;
    if (fields_from_json(&sample_fields, json, &sample, NULL) == 0) {
        FUZZ_CHECK(sample_is_id(sample.id) && sample.count >= 0 && sample.n_ends <= 2 && sample.warn <= sample.limit);
        CODEC_AUTOJSON json_t *written = fields_to_json(&sample_fields, &sample);
        FUZZ_CHECK(fields_from_json(&sample_fields, written, &again, NULL) == 0);
        CODEC_AUTOJSON json_t *twice = fields_to_json(&sample_fields, &again);
        FUZZ_CHECK(json_equal(written, twice));
        fields_release(&sample_fields, &again);
    }
    FUZZ_CHECK(sample.port >= -1 && sample.port <= 65535);
    fields_release(&sample_fields, &sample);
    return 0;
}
