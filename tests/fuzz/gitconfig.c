/* A file of git's configuration. */
#include "fuzz/fuzz.h"

#include "package/package_internal.h"

static void fuzz_gitconfig_look(void *arg, const char *name, const char *value)
{
    *(size_t *)arg += strlen(name) + strlen(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *text = fuzz_text(data, size);
    size_t sum = 0;

    package_gitconfig_parse(text, fuzz_gitconfig_look, &sum);
    return 0;
}
