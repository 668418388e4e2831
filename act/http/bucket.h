/* bucket.h - a limit of bytes per second. Pure: the caller brings the clock.
 *
 * Permission to move bytes grows with time, up to what a tenth of a second gives, so that a pause is not followed by a
 * burst. Taking more than there is (libcurl hands over data in pieces that cannot be cut) leaves a debt: over seconds
 * the rate is exact.
 */
#ifndef ACT_HTTP_BUCKET_H
#define ACT_HTTP_BUCKET_H

#include <stddef.h>
#include <stdint.h>

struct bucket {
    uint64_t rate; /* bytes per second; 0: no limit */
    double level;  /* bytes that may move now; negative: debt */
    int64_t at_ms; /* time of level */
};

void bucket_init(struct bucket *bucket, uint64_t rate, int64_t now_ms);

/* Brings the bucket to now_ms, and returns how long it is until bytes may move; 0: now. */
int64_t bucket_wait_ms(struct bucket *bucket, int64_t now_ms);

/* Takes bytes; negative: gives them back. */
void bucket_take(struct bucket *bucket, double bytes);

/* Returns the largest piece, from low to high, that keeps the flow smooth: what a twentieth of a second gives. */
size_t bucket_piece(const struct bucket *bucket, size_t low, size_t high);

#endif
