/* deflate.c - bytes on their way, compressed as raw deflate (RFC 1951). What a first look shows to be compressed
 * already is sent as it is: it would cost a processor and save nothing. */
#include "codec/deflate.h"

#include <libdeflate.h>
#include <string.h>

enum {
    LEVEL = 1,             /* hundreds of MB a second, which no login over a distance has */
    PART_LEAST = 4 << 10,  /* a smaller one fits into two packets */
    LOOK_BYTES = 16 << 10, /* from the middle, as beginnings may be tables of contents */
    WORTH = 8,             /* it is to become smaller by at least one of so many parts */
};

/* Returns the length of what came into out; 0: it is not worth it. */
static size_t deflate_try(struct libdeflate_compressor *c, const char *data, size_t len, char *out)
{
    return libdeflate_deflate_compress(c, data, len, out, len - len / WORTH);
}

bool codec_deflate(const void *data, size_t len, struct act_buf *out)
{
    const char *bytes = data;

    if (len < PART_LEAST)
        return false;
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(LEVEL);
    if (!c)
        return false;
    char *packed = act_alloc(len);
    size_t n = 0;
    if (len <= 2 * LOOK_BYTES || deflate_try(c, bytes + len / 2, LOOK_BYTES, packed) > 0)
        n = deflate_try(c, bytes, len, packed);
    if (n > 0)
        act_buf_add(out, packed, n);
    libdeflate_free_compressor(c);
    act_wipe_bytes(packed, len);
    return n > 0;
}

bool codec_gzip(const struct act_buf *bytes, struct act_buf *out)
{
    enum { GOOD_LEVEL = 6 };
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(GOOD_LEVEL);

    if (!c)
        return false;
    const size_t most = libdeflate_gzip_compress_bound(c, bytes->len);
    ACT_AUTOFREE char *packed = act_alloc(most);
    size_t n = libdeflate_gzip_compress(c, bytes->data, bytes->len, packed, most);
    act_buf_add(out, packed, n);
    libdeflate_free_compressor(c);
    return n > 0;
}

int codec_inflate(const struct act_buf *packed, size_t len, struct act_buf *out, struct act_error *err)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    char *plain = act_alloc(len + 1);
    bool is_good =
        d && libdeflate_deflate_decompress(d, packed->data, packed->len, plain, len, NULL) == LIBDEFLATE_SUCCESS;

    if (is_good)
        act_buf_add(out, plain, len);
    libdeflate_free_decompressor(d);
    act_wipe_bytes(plain, len + 1);
    return is_good ? 0 : act_error_set(err, ACT_FAIL, "the other side sent a part that is damaged");
}
