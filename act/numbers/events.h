/* events.h - the scalars in TensorBoard's event files, "events.out.tfevents.<time>.<host>...".
 *
 * A file is records: the length (8 bytes, little endian), its checksum, the data, its checksum; each is the CRC-32C of
 * these bytes, rotated right by 15 bits plus 0xa282ead8. The data is an Event of Protocol Buffers (tensorboard/compat/
 * proto/event.proto, summary.proto, tensor.proto): wall_time (1), step (2) and a summary (5), whose values (1) have a
 * tag (1) and either simple_value (2) or a tensor (8) with one number. What else there is, as pictures and histograms,
 * is passed over.
 *
 * The bytes are hostile: a record of more than EVENTS_RECORD bytes is skipped unread. One whose checksum is wrong is
 * left out; after a length whose checksum is wrong nothing can be found any more. The last record of a file that is
 * being written may be a part.
 */
#ifndef ACT_NUMBERS_EVENTS_H
#define ACT_NUMBERS_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "numbers/numbers.h"

enum { EVENTS_RECORD = 1 << 20 };

struct events_scalar {
    char tag[NUMBERS_NAME + 1]; /* cut, and characters that no name of numbers has are '_' */
    int64_t step;
    double value;  /* perhaps not finite */
    double unix_s; /* when it was written; finite */
};

struct events;
/* Makes a reader that gives each scalar to take(). */
struct events *events_new(void (*take)(void *arg, const struct events_scalar *scalar), void *arg);
void events_free(struct events *e);
/* Takes a file in pieces of any size. */
void events_feed(struct events *e, const void *data, size_t len);
/* Ends a file; another one may follow. Returns how many of its records were damaged. */
uint64_t events_end(struct events *e);

/* Tells whether a file of this name is one. */
bool events_is_file(const char *path);

#endif
