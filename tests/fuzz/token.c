/* Answers of token endpoints and of the Azure CLI, and the claims of tokens. */
#include "fuzz/fuzz.h"

#include "auth/token_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CODEC_AUTOJSON json_t *json = fuzz_json(data, size);
    ACT_AUTOFREE char *text = fuzz_text(data, size);
    struct token_identity who = {0};
    struct token token = {0};
    struct act_error err;

    if (json && token_take(json, &token_imds, 1700000000, 0, &token, &err) == 0)
        FUZZ_CHECK(token.text && token.expires_s > 1700000000 && token.refresh_s <= token.expires_s);
    (void)token_read_identity(text, &who);
    (void)token_tenant_is_valid(text);
    token_identity_release(&who);
    token_release(&token);
    return 0;
}
