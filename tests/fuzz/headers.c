/* Headers of answers: what is to be waited for, attributes of blobs, challenges. */
#include "fuzz/fuzz.h"

#include "auth/token.h"
#include "store/azure.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct token_want want = {.scope = "s"};
    ACT_AUTOFREE char *text = fuzz_text(data, size);
    struct http_headers headers = {0};
    struct store_entry entry = {0};
    struct token_challenge challenge;

    for (char *rest = text, *line; *rest;) {
        line = fuzz_line(&rest);
        size_t name = strcspn(line, ":"), at = name + strspn(line + name, ": ");
        http_header_add(&headers, line, name, line + at, strlen(line + at));
        token_read_challenge(line + at, &challenge);
        if (challenge.claims)
            free(token_claims_command(&challenge, &want));
        token_challenge_release(&challenge);
    }
    FUZZ_CHECK(http_retry_after_ms(&headers, 1700000000) >= -1);
    (void)http_clock_ahead_s(&headers, 1700000000);
    azure_fill(&entry, "a", size, 200, &headers);
    store_entry_release(&entry);
    http_headers_release(&headers);
    return 0;
}
