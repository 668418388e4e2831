/* Sizes, whole numbers, checksums and base64. */
#include "fuzz/fuzz.h"

#include "base/crc64.h"
#include "base/hash.h"
#include "base/units.h"
#include "flow/jobfile/build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *text = fuzz_text(data, size);
    char shown[ACT_UNIT_TEXT], crc[ACT_CRC64_HEX];
    uint64_t bytes = 0;
    int64_t number = 0;
    size_t len = 0;

    if (act_size_from_text(text, &bytes) || job_bytes(text, &bytes))
        act_size_to_text(bytes, shown);
    if (act_int_from_text(text, &number))
        FUZZ_CHECK(strtoll(text, NULL, 10) == number);
    if (act_crc64_from_base64(text, &bytes) || act_crc64_from_hex(text, &bytes))
        act_crc64_to_hex(bytes, crc);
    FUZZ_CHECK(act_crc64(7, data, size) == act_crc64_portable(7, data, size));
    ACT_AUTOFREE char *base64 = act_base64_encode(data, size);
    ACT_AUTOFREE uint8_t *back = act_base64_decode(base64, &len);
    FUZZ_CHECK(back && len == size && (size == 0 || memcmp(back, data, size) == 0));
    free(act_base64_decode(text, &len));
    return 0;
}
