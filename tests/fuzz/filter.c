/* Files of patterns, and which paths they take. */
#include "fuzz/fuzz.h"

#include "filter/filter.h"
#include "filter/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const paths[] = {"a", "a/b", "a/b/c.txt", "b/.git/x", "\xc3\xa9/[z", "d e/*"};
    ACT_AUTOFREE char *dir = fuzz_dir();
    ACT_AUTOFREE char *file = fuzz_file(dir, "rules", data, size);
    struct act_strv files = {.v = &file, .n = 1}, lines = {0}, idle = {0};
    const struct filter_options options = {.files = &files};
    struct filter *filter = NULL;
    struct act_error err;

    if (filter_read_lines(file, &lines, &err) == 0 && filter_new(&options, &filter, &err) == 0)
        for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
            (void)filter_takes(filter, paths[i], i % 2);
    filter_idle(filter, &idle);
    FUZZ_CHECK(idle.n <= lines.n);
    filter_free(filter);
    act_strv_release(&lines);
    act_strv_release(&idle);
    return 0;
}
