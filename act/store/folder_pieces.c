/* folder_pieces.c - bytes are read and written in pieces, each summed while it is in the processor's cache.
 *
 * A part of an object is larger than the cache: summed as a whole and written after that, it would come from memory
 * twice.
 */
#include <string.h>

#include "base/crc64.h"
#include "base/file.h"
#include "store/folder.h"

enum { PIECE = 256 << 10 };

static size_t folder_piece_len(size_t left)
{
    return left < PIECE ? left : PIECE;
}

ssize_t folder_read(int fd, void *sink, size_t len, off_t offset, struct store_sums *sums)
{
    size_t done = 0;

    if (!sums)
        return act_pread_all(fd, sink, len, offset);
    while (done < len) {
        size_t want = folder_piece_len(len - done);
        ssize_t n = act_pread_all(fd, (char *)sink + done, want, offset + (off_t)done);
        if (n < 0)
            return -1;
        store_sums_add(sums, (char *)sink + done, (size_t)n);
        done += (size_t)n;
        if ((size_t)n < want)
            break;
    }
    return (ssize_t)done;
}

int folder_write(int fd, const struct store_put_block *block, struct store_sums *sums, bool *holes)
{
    const char *bytes = block->data.bytes;

    for (size_t n, at = 0; at < block->data.len; at += n) {
        n = folder_piece_len(block->data.len - at);
        store_sums_add(sums, bytes + at, n);
        if (folder_write_sparse(fd, bytes + at, n, (off_t)(block->offset + at), false, holes))
            return -1;
    }
    return 0;
}
