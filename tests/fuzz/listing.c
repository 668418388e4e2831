/* Listings of blobs: pages of keys in order. */
#include "fuzz/fuzz.h"

#include "store/azure_list.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool delimiter = size && data[0] & 1;
    struct azure azure = {.container = (char[]){"c"}};
    struct store_call call = {.key = size && data[0] & 2 ? "a/" : "", .list.delimiter = delimiter};
    struct azure_op op = {.azure = &azure, .call = &call, .list = act_calloc(1, sizeof(*op.list))};

    read_marker(op.list, size && data[0] & 4 ? "m|a/0|a/b/,1,493" : NULL);
    op.list->entry.mode = -1;
    act_buf_add(&op.http.body_text, data + (size > 0), size - (size > 0));
    list_work(&op);
    for (size_t i = 1; i < call.list.page.n; i++)
        FUZZ_CHECK(strcmp(call.list.page.v[i - 1].key, call.list.page.v[i].key) <= 0);
    store_page_release(&call.list.page);
    release_list(&op);
    http_call_release(&op.http);
    free(op.what);
    return 0;
}
