/* Tables of contents of zip files, and the data of their entries. */
#include "fuzz/fuzz.h"

#include "node/zip.h"

static int fuzz_zip_count(void *arg, const void *data, size_t len, struct act_error *err)
{
    (void)err;
    FUZZ_CHECK(data && len > 0);
    *(uint64_t *)arg += len;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *dir = fuzz_dir();
    ACT_AUTOFREE char *path = fuzz_file(dir, "input.zip", data, size);
    struct act_error err = {0};
    struct zip zip;

    if (zip_open(path, &zip, &err) < 0)
        return 0;
    struct zip_reader *reader = zip_reader_new();
    for (size_t i = 0; i < zip.n; i++) {
        uint64_t got = 0;
        int rc = zip_read(&zip, &zip.v[i], reader, fuzz_zip_count, &got, &err);
        FUZZ_CHECK(rc == 0 ? got == zip.v[i].size : got <= zip.v[i].size);
    }
    zip_reader_free(reader);
    zip_close(&zip);
    return 0;
}
