/* folder_pieces.c - bytes are read and written in pieces, each summed while it is in the processor's cache; holes stay
 * holes: what is all zeros is neither read from the disk nor written to it.
 *
 * A part of an object is larger than the cache: summed as a whole and written after that, it would come from memory
 * twice.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <unistd.h>

#include "base/crc64.h"
#include "base/file.h"
#include "store/folder.h"

enum {
    PIECE = 256 << 10, /* summed as one */
    CHUNK = 64 << 10,  /* looked at for zeros as one, at multiples of it in the file */
};

static bool sparse_is_zero(const char *data, size_t len)
{
    return data[0] == 0 && memcmp(data, data + 1, len - 1) == 0;
}

static size_t chunk_len(size_t len, off_t offset)
{
    size_t rest = CHUNK - (size_t)(offset % CHUNK);

    return rest < len ? rest : len;
}

/* Returns how many bytes from the start are zeros, or are not, which *zero says. */
static size_t run_len(const char *data, size_t len, off_t offset, bool *zero)
{
    size_t n = chunk_len(len, offset);

    *zero = sparse_is_zero(data, n);
    while (n < len) {
        size_t more = chunk_len(len - n, offset + (off_t)n);
        if (sparse_is_zero(data + n, more) != *zero)
            break;
        n += more;
    }
    return n;
}

int folder_write_sparse(int fd, const char *data, size_t len, off_t offset, bool fresh, bool *holes)
{
    for (size_t n, at = 0; at < len; at += n) {
        off_t to = offset + (off_t)at;
        bool zero;
        n = run_len(data + at, len - at, to, &zero);
        bool hole = zero && (fresh || fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, to, (off_t)n) == 0);
        *holes |= hole;
        if (!hole && act_pwrite_all(fd, data + at, n, to))
            return -1;
    }
    return 0;
}

void folder_give_back_holes(int fd, off_t size)
{
    for (off_t data, hole = 0; hole < size; hole = data) {
        hole = lseek(fd, hole, SEEK_HOLE);
        if (hole < 0 || hole >= size)
            return;
        data = lseek(fd, hole, SEEK_DATA);
        if (data < 0)
            data = size;
        if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, hole, data - hole))
            return;
    }
}

bool folder_is_hole(int fd, off_t offset, size_t len)
{
    off_t data = len >= CHUNK ? lseek(fd, offset, SEEK_DATA) : offset;

    return data < 0 ? errno == ENXIO : data - offset >= (off_t)len;
}

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
