/* Account keys, shared access signatures, and requests that are signed with them. */
#include "fuzz/fuzz.h"

#include "auth/auth.h"
#include "http/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *text = fuzz_text(data, size);
    char *rest = text, *secret = fuzz_line(&rest), *sas = NULL;
    const struct auth_sas want = {
        .container = "c", .name = rest, .permissions = "rl", .expiry_s = 1700000000, .https_only = true};
    struct act_error err;

    for (int kind = 0; kind < 2; kind++) {
        struct auth *auth = NULL;
        struct http_call call = {.method = "GET", .url = act_sprintf("https://h/c/%s", rest)};
        http_header_set(&call.headers, "x-ms-meta-a", rest);
        if (auth_new("acct", kind ? NULL : secret, kind ? secret : NULL, AUTH_KEY, &auth, &err) == 0 &&
            auth_sign(auth, &call, 0, &err) == 0 && auth_service_sas(auth, &want, &sas, &err) == 0)
            free(sas);
        http_call_release(&call);
        auth_free(auth);
    }
    return 0;
}
