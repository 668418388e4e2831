/* gzip.c - the agent, compressed for a Secret.
 *
 * Source: zlib.net/manual.html (deflateInit2: windowBits 31 is gzip).
 */
#define ZLIB_CONST
#include <zlib.h>

#include "platform/kubernetes/kubernetes_internal.h"

enum { GZIP_BITS = 31, MEMORY_LEVEL = 9 };

void *kubernetes_gzip(const void *data, size_t len, size_t *out_len)
{
    z_stream z = {0};

    if (deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        abort(); /* no memory */
    size_t room = deflateBound(&z, len);
    void *out = act_alloc(room);
    z.next_in = data;
    z.avail_in = (unsigned)len;
    z.next_out = out;
    z.avail_out = (unsigned)room;
    deflate(&z, Z_FINISH); /* into deflateBound() bytes it always ends */
    *out_len = z.total_out;
    deflateEnd(&z);
    return out;
}
