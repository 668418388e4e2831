/* Answers of Blob Storage that are no success: status, headers, an empty line, XML. */
#include "fuzz/fuzz.h"

#include "store/azure.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *text = fuzz_text(data, size);
    char *rest = text;
    struct azure azure = {.container = (char[]){"c"}};
    struct http_headers headers = {0};
    struct azure_refusal refusal;
    struct act_error err = {0};
    int status = 100 + abs(atoi(fuzz_line(&rest)) % 500);

    for (char *line; *(line = fuzz_line(&rest));)
        http_header_add(&headers, line, strcspn(line, ":"), strchrnul(line, ':'), strlen(strchrnul(line, ':')));
    azure_read_refusal(&refusal, status, &headers, rest, strlen(rest));
    FUZZ_CHECK(azure_describe(&azure, "cannot do it", &refusal, &err) < 0 && *act_error_text(&err));
    http_headers_release(&headers);
    return 0;
}
