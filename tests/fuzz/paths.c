/* Names of files as text: two lines, a path and a folder. */
#include "fuzz/fuzz.h"

#include "base/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *text = fuzz_text(data, size);
    char *rest = text, *name = fuzz_line(&rest);
    ACT_AUTOFREE char *clean = act_path_clean(name);
    ACT_AUTOFREE char *twice = act_path_clean(clean);
    ACT_AUTOFREE char *dir = act_path_clean(rest);
    ACT_AUTOFREE char *joined = act_path_join("/target", name);
    ACT_AUTOFREE char *there = act_path_clean(joined);

    FUZZ_CHECK(strcmp(clean, twice) == 0);
    FUZZ_CHECK(!act_path_is_safe(name, strlen(name)) || act_path_is_within(there, "/target"));
    FUZZ_CHECK(strchr(act_path_basename(name), '/') == NULL);
    free(act_path_dirname(name));
    (void)act_path_is_within(clean, dir);
    FUZZ_CHECK(act_edit_distance(name, name) == 0 || strlen(name) > 60);
    (void)act_utf8_valid((const char *)data, size);
    return 0;
}
