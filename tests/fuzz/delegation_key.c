/* The key that a service gives a login to sign with, and what it signs. */
#include "fuzz/fuzz.h"

#include "store/azure_login.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct azure_delegation delegation = {0};
    struct azure azure = {.delegation = &delegation};
    struct azure_op op = {.azure = &azure};

    act_buf_add(&op.http.body_text, data, size);
    act_buf_addc(&op.http.body_text, '\n');
    if (login_take_key(&op)) {
        const struct auth_sas want = {.container = "c",
                                      .name = "a b",
                                      .permissions = "r",
                                      .expiry_s = delegation.key.expiry_s - 1,
                                      .https_only = true};
        free(auth_delegation_sas(&delegation.key, "acct", &want));
    }
    auth_delegation_release(&delegation.key);
    http_call_release(&op.http);
    return 0;
}
