/* Files that a package might get, judged whether they hold a secret. */
#include "fuzz/fuzz.h"

#include "base/text.h"
#include "flow/code/code_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const paths[] = {"aux_data/aml/a.yaml", "src/notes"};
    ACT_AUTOFREE char *text = fuzz_text(data, size);

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        ACT_AUTOFREE char *rule = flow_guard_judge(paths[i], text, size);
        FUZZ_CHECK(!rule || act_starts_with(rule, "holds a secret: "));
    }
    return 0;
}
