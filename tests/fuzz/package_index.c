/* What the last package was made of, as it was kept: the checksum is right. */
#include "fuzz/fuzz.h"

#include "package/index.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *dir = fuzz_dir();
    struct package_index index;
    struct act_buf whole = {0};
    char sum[ACT_SHA256_HEX];

    act_buf_add(&whole, data, size);
    checksum(whole.data ? whole.data : "", whole.len, sum);
    act_buf_add(&whole, sum, CHECKSUM);
    ACT_AUTOFREE char *path = fuzz_file(dir, "index", whole.data, whole.len);
    package_index_load(path, &index);
    for (size_t i = 0; i < index.n; i++) {
        struct package_entry entry = {.path = (char *)(uintptr_t)index.v[i].path, .mode = index.v[i].mode};
        (void)package_index_find(&index, &entry);
    }
    package_index_release(&index);
    act_buf_release(&whole);
    return 0;
}
