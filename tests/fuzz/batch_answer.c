/* The multipart answer to a batch of deletions: its type is the first line. */
#include "fuzz/fuzz.h"

#include "store/azure_batch.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *text = fuzz_text(data, size);
    char *rest = text;
    struct azure_batch *batch = act_calloc(1, sizeof(*batch));
    struct azure_op op = {.batch = batch};

    batch->n_parts = 3;
    http_header_set(&op.http.response_headers, "Content-Type", fuzz_line(&rest));
    act_buf_adds(&op.http.body_text, rest);
    bool all = read_responses(&op);
    for (size_t i = 0; all && i < batch->n_parts; i++)
        FUZZ_CHECK(batch->answers[i].status != NO_ANSWER);
    release_batch(&op);
    http_call_release(&op.http);
    return 0;
}
