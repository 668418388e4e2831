/* Messages between supervisor and ranks, and the records of ranks in them. */
#include "fuzz/fuzz.h"

#include "node/link.h"
#include "node/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct link link = {.fd = -1};
    struct node_record record;
    json_t *message = NULL;
    size_t half = size / 2;

    for (int part = 0; part < 2; part++) {
        act_buf_add(&link.in, part ? data + half : data, part ? size - half : half);
        while (link_take(&link, &message) == 1) {
            char said[256];
            if (record_from_json(message, &record, NULL) < 0)
                FUZZ_CHECK(record.rank == 0 && record.lines.n == 0);
            record_describe(&record, said, sizeof(said));
            json_decref(record_to_json(&record));
            record_release(&record);
            json_decref(message);
        }
    }
    act_buf_release(&link.in);
    return 0;
}
