/* Logs, in pieces: the numbers in them. */
#include "fuzz/fuzz.h"

#include <math.h>

#include "numbers/numbers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct numbers *numbers = numbers_new();

    for (size_t at = 0, n; at < size; at += n) {
        n = 1 + data[at] % 64U < size - at ? 1 + data[at] % 64U : size - at;
        numbers_feed(numbers, (const char *)data + at, n);
    }
    numbers_end(numbers);
    numbers_sort(numbers, 1.7e9, 1.8e9);
    FUZZ_CHECK(numbers_count(numbers) <= NUMBERS_KEYS);
    for (size_t i = 0; i < numbers_count(numbers); i++) {
        struct series *s = &numbers_key(numbers, i)->series;
        series_reduce(s, 10);
        for (size_t k = 1; k < s->n; k++)
            FUZZ_CHECK(s->v[k].x > s->v[k - 1].x && isfinite(s->v[k].y));
    }
    numbers_free(numbers);
    return 0;
}
