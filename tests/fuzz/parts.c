/* A zip as the entries of a package: those of a base, and those of a package that is made of it. */
#include "fuzz/fuzz.h"

#include "site/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *dir = fuzz_dir();
    ACT_AUTOFREE char *path = fuzz_file(dir, "input.zip", data, size);
    struct parts_step *steps = NULL;
    struct act_buf ids = {0};
    struct parts parts;
    size_t n = 0;

    if (!parts_open(path, &parts))
        return 0;
    parts_add_ids(&parts, &ids);
    FUZZ_CHECK(parts.n > 0 && ids.len == parts.n * PARTS_ID_BYTES);
    FUZZ_CHECK(parts.v[parts.n].at <= size && parts.v[parts.n].record == parts.table_len);
    FUZZ_CHECK(parts_plan(&parts, &ids, &steps, &n) == parts.n && n > 0);
    free(steps);
    act_buf_release(&ids);
    parts_release(&parts);
    return 0;
}
