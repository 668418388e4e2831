/* deflate.c - raw deflate (RFC 1951): small files with libdeflate, which is twice as fast as zlib but needs the
 * whole file at once; pieces of large files with zlib, so that they can be compressed in parallel and joined (as
 * pigz does: each piece knows the 32 KiB before it and ends on a byte).
 */
#include "package/package_internal.h"

#include <libdeflate.h>
#include <pthread.h>
#include <string.h>
#define ZLIB_CONST
#include <zlib.h>

#include "base/text.h"

enum {
    WHOLE_LEVEL = 6,
    PIECE_LEVEL = 5, /* zlib's 6 takes 1.6 times as long for 1.5 % */
    PROBE_LEVEL = 1,
    PROBE_BYTES = 64 << 10,
    STORED_MAX = 65535, /* bytes in a stored block */
    STORED_HEAD = 5,
    PIECE_SLACK = 64, /* the end of a piece, and the head of a stream */
};

struct package_deflater {
    struct libdeflate_compressor *whole, *probe;
    z_stream piece;
    bool has_piece;
    struct package_deflater *next;
};

struct package_deflaters {
    pthread_mutex_t lock;
    struct package_deflater *idle;
};

/* Running out of memory ends the program, as with any small allocation. */
static void *have(void *p)
{
    if (!p)
        abort();
    return p;
}

struct package_deflaters *package_deflaters_new(void)
{
    struct package_deflaters *all = act_calloc(1, sizeof(*all));

    pthread_mutex_init(&all->lock, NULL);
    return all;
}

static void free_deflater(struct package_deflater *d)
{
    libdeflate_free_compressor(d->whole);
    libdeflate_free_compressor(d->probe);
    if (d->has_piece)
        deflateEnd(&d->piece);
    free(d);
}

void package_deflaters_free(struct package_deflaters *all)
{
    while (all->idle) {
        struct package_deflater *d = all->idle;
        all->idle = d->next;
        free_deflater(d);
    }
    pthread_mutex_destroy(&all->lock);
    free(all);
}

struct package_deflater *package_deflater_take(struct package_deflaters *all)
{
    pthread_mutex_lock(&all->lock);
    struct package_deflater *d = all->idle;
    if (d)
        all->idle = d->next;
    pthread_mutex_unlock(&all->lock);
    return d ? d : act_calloc(1, sizeof(*d));
}

void package_deflater_give(struct package_deflaters *all, struct package_deflater *d)
{
    pthread_mutex_lock(&all->lock);
    d->next = all->idle;
    all->idle = d;
    pthread_mutex_unlock(&all->lock);
}

const char *package_deflate_version(void)
{
    return "libdeflate " LIBDEFLATE_VERSION_STRING " zlib " ZLIB_VERSION;
}

uint32_t package_crc(const void *data, size_t len)
{
    return libdeflate_crc32(0, data, len);
}

uint32_t package_crc_join(uint32_t first, uint32_t second, uint64_t second_len)
{
    return (uint32_t)crc32_combine64(first, second, (off_t)second_len);
}

size_t package_piece_bound(size_t len)
{
    return len + (len / STORED_MAX + 1) * STORED_HEAD + PIECE_SLACK;
}

/* Tells whether a sample from the middle shrinks: compressed or encrypted data does not. */
static bool looks_compressible(struct package_deflater *d, const uint8_t *data, size_t len, uint8_t *scratch)
{
    size_t n = len < PROBE_BYTES ? len : PROBE_BYTES;

    if (!d->probe)
        d->probe = have(libdeflate_alloc_compressor(PROBE_LEVEL));
    return n > 0 && libdeflate_deflate_compress(d->probe, data + (len - n) / 2, n, scratch, n - n / 64) > 0;
}

/* Writes stored blocks (RFC 1951 section 3.2.4). */
static size_t store_piece(const uint8_t *data, size_t len, bool last, uint8_t *out)
{
    uint8_t *p = out;

    do {
        uint16_t n = len < STORED_MAX ? (uint16_t)len : STORED_MAX;
        *p++ = last && n == len;
        *p++ = (uint8_t)n;
        *p++ = (uint8_t)(n >> 8);
        *p++ = (uint8_t)~n;
        *p++ = (uint8_t)(~n >> 8);
        memcpy(p, data, n);
        p += n;
        data += n;
        len -= n;
    } while (len > 0);
    return (size_t)(p - out);
}

size_t package_deflate_whole(struct package_deflater *d, const void *data, size_t len, void *out)
{
    if (!d->whole)
        d->whole = have(libdeflate_alloc_compressor(WHOLE_LEVEL));
    size_t n = libdeflate_deflate_compress(d->whole, data, len, out, len);
    return n ? n : store_piece(data, len, true, out); /* it does not get smaller */
}

static z_stream *piece_stream(struct package_deflater *d)
{
    enum { WINDOW_BITS = 15, MEMORY_LEVEL = 8 };

    if (d->has_piece)
        deflateReset(&d->piece);
    else if (deflateInit2(&d->piece, PIECE_LEVEL, Z_DEFLATED, -WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        abort(); /* out of memory */
    d->has_piece = true;
    return &d->piece;
}

size_t package_deflate_piece(struct package_deflater *d, const uint8_t *data, size_t len, size_t before, bool last,
                             uint8_t *out)
{
    size_t cap = package_piece_bound(len);

    if (!looks_compressible(d, data, len, out))
        return store_piece(data, len, last, out);
    z_stream *z = piece_stream(d);
    if (before > 0)
        deflateSetDictionary(z, data - before, (uInt)before);
    z->next_in = data;
    z->avail_in = (uInt)len;
    z->next_out = out;
    z->avail_out = (uInt)cap;
    int rc = deflate(z, last ? Z_FINISH : Z_SYNC_FLUSH);
    /* Full: it did not shrink after all. */
    bool fits = rc == (last ? Z_STREAM_END : Z_OK) && z->avail_in == 0 && z->avail_out > 0;
    return fits && cap - z->avail_out <= len ? cap - z->avail_out : store_piece(data, len, last, out);
}
