/* TensorBoard's event files: the bytes as a file, in pieces of as many bytes as the first one says, and as what a
 * record with the right checksum has. */
#include "fuzz/fuzz.h"

#include <math.h>

#include "numbers/events.c"

static void fuzz_take(void *numbers, const struct events_scalar *s)
{
    FUZZ_CHECK(s->tag[0] && strlen(s->tag) <= NUMBERS_NAME && isfinite(s->unix_s));
    numbers_add(numbers, s->tag, (double)s->step, s->value, s->unix_s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct numbers *numbers = numbers_new();
    struct events *e = events_new(fuzz_take, numbers);
    size_t piece = size > 0 && data[0] ? data[0] : 1;

    for (size_t i = 1; i < size; i += piece)
        events_feed(e, data + i, piece < size - i ? piece : size - i);
    events_end(e);
    events_take_record(e, data, size);
    events_free(e);
    numbers_free(numbers);
    return 0;
}
