#include "http/bucket.h"

void bucket_init(struct bucket *b, uint64_t rate, int64_t now_ms)
{
    *b = (struct bucket){.rate = rate, .at_ms = now_ms};
}

int64_t bucket_wait_ms(struct bucket *b, int64_t now_ms)
{
    double per_ms = (double)b->rate / 1000, most = per_ms * 100;

    if (b->rate == 0)
        return 0;
    b->level += per_ms * (double)(now_ms - b->at_ms);
    if (b->level > most)
        b->level = most;
    b->at_ms = now_ms;
    return b->level > 0 ? 0 : (int64_t)(-b->level / per_ms) + 1;
}

void bucket_take(struct bucket *b, double bytes)
{
    if (b->rate > 0)
        b->level -= bytes;
}

size_t bucket_piece(const struct bucket *b, size_t low, size_t high)
{
    uint64_t piece = b->rate / 20;

    return piece < low ? low : piece > high ? high : (size_t)piece;
}
