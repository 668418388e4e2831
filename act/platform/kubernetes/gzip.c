/* gzip.c - programs, compressed for Secrets. */
#include <libdeflate.h>
#include <stdlib.h>

#include "platform/kubernetes/kubernetes_internal.h"

enum { LEVEL = 7 }; /* smaller than zlib's best, in an eighth of the time */

void *kubernetes_gzip(const void *data, size_t len, size_t *out_len)
{
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(LEVEL);

    if (!compressor)
        abort(); /* no memory */
    size_t room = libdeflate_gzip_compress_bound(compressor, len);
    void *out = act_alloc(room);
    *out_len = libdeflate_gzip_compress(compressor, data, len, out, room); /* into the bound it always fits */
    libdeflate_free_compressor(compressor);
    return out;
}
