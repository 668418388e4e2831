/* What py-spy prints. */
#include "fuzz/fuzz.h"

#include "node/stacks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *text = fuzz_text(data, size);
    char place[32] = "";

    FUZZ_CHECK(stacks_python_place(text, place, sizeof(place)) == (place[0] != '\0'));
    FUZZ_CHECK(strlen(place) < sizeof(place));
    return 0;
}
