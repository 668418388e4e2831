/* metrics/<node>.jsonl, in pieces. */
#include "fuzz/fuzz.h"

#include "numbers/samples.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct samples *samples = samples_new();

    for (size_t at = 0, n; at < size; at += n) {
        n = 1 + data[at] % 200U < size - at ? 1 + data[at] % 200U : size - at;
        samples_feed(samples, (const char *)data + at, n);
    }
    samples_end(samples);
    char *text = fuzz_text(data, size), *node = NULL;
    samples_take_text(samples, text, &node);
    free(node);
    free(text);
    FUZZ_CHECK(samples_gpus(samples) <= SAMPLES_GPUS);
    for (int i = 0; i < SAMPLES_CURVES; i++)
        FUZZ_CHECK(samples_curve(samples, i)->count <= samples_lines(samples));
    samples_free(samples);
    return 0;
}
