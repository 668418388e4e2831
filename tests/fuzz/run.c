/* run.json and secrets.json: what is read is written again as it was. */
#include "fuzz/fuzz.h"

#include "run/run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CODEC_AUTOJSON json_t *json = fuzz_json(data, size);
    struct run_spec spec = {0}, again = {0};
    struct act_error err = {0};

    if (json && run_spec_from_json(json, &spec, &err) == 0) {
        FUZZ_CHECK(run_name_valid(spec.id));
        run_secrets_from_json(&spec, json);
        json_decref(run_secrets_to_json(&spec));
        CODEC_AUTOJSON json_t *written = run_spec_to_json(&spec);
        FUZZ_CHECK(run_spec_from_json(written, &again, &err) == 0);
        CODEC_AUTOJSON json_t *twice = run_spec_to_json(&again);
        FUZZ_CHECK(json_equal(written, twice));
    }
    run_spec_release(&spec);
    run_spec_release(&again);
    return 0;
}
