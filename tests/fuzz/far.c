/* What both ends of a far store say to each other: requests, results and first words. */
#include "fuzz/fuzz.h"

#include "store/far.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *text = fuzz_text(data, size), *root = NULL;
    struct store_deletion deletions[2] = {{.key = "a"}, {.key = "b"}};
    struct far_request request;
    struct far_result result;
    struct act_error err;

    if (far_request_of_words(text, size, &request)) {
        struct act_buf words = {0};
        far_words_of_request(&request, &words);
        FUZZ_CHECK(words.len > 0);
        act_buf_release(&words);
        far_request_release(&request);
    }
    for (enum store_op op = 0; op < STORE_OPS; op++) {
        struct store_call call = {.op = op, .key = ""};
        if (op == STORE_DELETE_MANY)
            call.delete_many = (struct store_delete_many){.v = deletions, .n = 2};
        if (far_result_of_words(text, size, &call, &result))
            FUZZ_CHECK(call.rc <= 0);
        store_call_release(&call);
    }
    FUZZ_CHECK(far_hello_of_words(text, size, &root, &err) == 0 ? root != NULL : *act_error_text(&err) != '\0');
    return 0;
}
