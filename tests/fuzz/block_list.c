/* The blocks of a blob. */
#include "fuzz/fuzz.h"

#include "store/azure_blocks.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct azure azure = {.container = (char[]){"c"}};
    struct store_call call = {.op = STORE_BLOCKS, .key = "a"};
    struct azure_op op = {.azure = &azure, .call = &call};

    act_buf_add(&op.http.body_text, data, size);
    read_blocks(&op);
    FUZZ_CHECK(call.blocks.n_found == 0 || call.blocks.found);
    store_call_release(&call);
    http_call_release(&op.http);
    free(op.what);
    return 0;
}
