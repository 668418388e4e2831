/* One pattern in gitignore syntax, and in further lines the paths that it is matched with. */
#include "fuzz/fuzz.h"

#include "filter/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *text = fuzz_text(data, size);
    char *rest = text;
    struct filter_pattern pattern;
    struct filter_path path = {0};

    filter_pattern_init(&pattern, fuzz_line(&rest));
    (void)filter_pattern_problem(&pattern);
    (void)filter_pattern_is_plain(&pattern);
    while (*rest) {
        filter_path_set(&path, fuzz_line(&rest));
        for (size_t depth = 1; depth <= path.n; depth++)
            (void)filter_pattern_matches(&pattern, &path, depth, depth < path.n);
    }
    filter_path_release(&path);
    filter_pattern_release(&pattern);
    return 0;
}
