/* URLs as text: secrets hidden, who is at the other end. */
#include "fuzz/fuzz.h"

#include "http/http_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *text = fuzz_text(data, size);
    ACT_AUTOFREE char *encoded = http_encode(text, size % 2);
    ACT_AUTOFREE char *decoded = http_decode(encoded);
    ACT_AUTOFREE char *other = http_decode(text);
    bool local = false;
    ACT_AUTOFREE char *peer = http_peer_name(text, &local);

    free(http_redact_url(text));
    free(http_redact_text(text));
    FUZZ_CHECK(strcmp(text, decoded) == 0);
    FUZZ_CHECK(strlen(other) <= strlen(text));
    FUZZ_CHECK(!http_is_private(text) || peer);
    return 0;
}
