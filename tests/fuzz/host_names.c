/* A file of host names, and what a name server answers. */
#include "fuzz/fuzz.h"

#include "node/resolve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { A = 1, AAAA = 28 };
    ACT_AUTOFREE char *text = fuzz_text(data, size);
    ACT_AUTO(act_strv) found = {0};

    resolve_in_hosts(text, "localhost", &found);
    resolve_in_answer(data, (int)size, A, &found);
    resolve_in_answer(data, (int)size, AAAA, &found);
    for (size_t i = 0; i < found.n; i++)
        FUZZ_CHECK(found.v[i]);
    return 0;
}
