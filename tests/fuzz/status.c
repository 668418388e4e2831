/* status.json, and the records of ranks. */
#include "fuzz/fuzz.h"

#include "node/record.h"
#include "run/run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CODEC_AUTOJSON json_t *json = fuzz_json(data, size);
    struct run_status status, again;
    struct node_record record;

    if (!json)
        return 0;
    if (run_status_from_json(json, &status, NULL) < 0)
        FUZZ_CHECK(status.state == RUN_UNKNOWN && status.n_bad == 0);
    CODEC_AUTOJSON json_t *written = run_status_to_json(&status);
    FUZZ_CHECK(run_status_from_json(written, &again, NULL) == 0);
    CODEC_AUTOJSON json_t *twice = run_status_to_json(&again);
    FUZZ_CHECK(json_equal(written, twice));
    if (record_from_json(json, &record, NULL) == 0)
        json_decref(record_to_json(&record));
    record_release(&record);
    return 0;
}
