/* A request to the pages of 'a ui', and its query. */
#include "fuzz/fuzz.h"

#include "web/web_internal.h"

#define KEY "0123456789abcdef0123456789abcdef"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *head = fuzz_text(data, size);
    ACT_AUTOFREE char *text = fuzz_text(data, size);
    size_t len = web_head_end(head, size);
    struct web_request request;

    head[len] = '\0';
    int status = web_read_head(head, len, KEY, &request);
    FUZZ_CHECK(status == 200 || status == 400 || status == 403 || status == 405 || status == 421 || status == 505);
    if (status == 200) {
        FUZZ_CHECK(memmem(data, size, "/" KEY "/", strlen(KEY) + 2));
        FUZZ_CHECK(request.path >= head && request.path < head + len && strlen(request.query) < len);
    }
    for (size_t i = 0; i < 4; i++) {
        ACT_AUTOFREE char *value = web_param(text, "id", i);
        FUZZ_CHECK(!value || strlen(value) < size);
    }
    web_params_are(text, (const char *const[]){"id", "a", NULL});
    return 0;
}
