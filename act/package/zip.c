/* zip.c - the records of a zip archive (PKWARE's APPNOTE.TXT 6.3, sections 4.3 to 4.5).
 *
 * Of our own, as libzip copies entry by entry through a callback and stdio, hashes nothing on the way, and does
 * not say where an entry lies; here ranges of the last package are copied as they are, whatever entries they
 * hold, and the archive is hashed while it is written. The bytes of an entry do not depend on its place.
 *
 * A file that comes in pieces has its CRC and size behind its data (a data descriptor), so that nothing is
 * written twice. Times are 1980-01-01; zip64 records only where a size, an offset or the count needs them.
 */
#include "package/package_internal.h"

#include <string.h>
#include <sys/stat.h>

#include "base/text.h"

enum {
    LOCAL = 0x04034b50,
    CENTRAL = 0x02014b50,
    DESCRIPTOR = 0x08074b50,
    END = 0x06054b50,
    END64 = 0x06064b50,
    END64_LOCATOR = 0x07064b50,
    FLAG_DESCRIPTOR = 1 << 3,
    FLAG_UTF8 = 1 << 11,
    UNIX = 3 << 8,
    VERSION_STORED = 10,
    VERSION_DEFLATE = 20, /* also folders */
    VERSION_ZIP64 = 45,
    DOS_DATE_1980 = 33, /* year 0, month 1, day 1 */
    DOS_FOLDER = 0x10,  /* the folder bit of the lower, DOS half of the attributes */
    EXTRA_ZIP64 = 1,
    END64_REST = 44, /* bytes of the zip64 end record behind its length */
};

#define MAX16 0xffffu
#define MAX32 0xffffffffu
/* What may need more than 32 bits when it comes in pieces: deflate makes nothing larger by a 16th. */
#define LARGE (MAX32 / 16 * 15)

static void add(struct act_buf *b, uint64_t value, size_t bytes)
{
    uint8_t le[8];

    for (size_t i = 0; i < bytes; i++)
        le[i] = (uint8_t)(value >> (8 * i));
    act_buf_add(b, le, bytes);
}

static void add16(struct act_buf *b, uint64_t value)
{
    add(b, value, 2);
}

static void add32(struct act_buf *b, uint64_t value)
{
    add(b, value, 4);
}

static void add64(struct act_buf *b, uint64_t value)
{
    add(b, value, 8);
}

static uint64_t cap32(uint64_t value)
{
    return value < MAX32 ? value : MAX32;
}

static bool is_zip64(const struct package_item *item)
{
    return item->size >= LARGE;
}

static bool is_ascii(const char *s)
{
    while (*s && !(*s & 0x80))
        s++;
    return !*s;
}

/* From "version needed" to the length of the name: the same in both headers. */
static void add_common(struct act_buf *b, const char *path, const struct package_item *item, bool zip64,
                       bool known)
{
    bool sizes64 = is_zip64(item), sizes = known && !sizes64;

    add16(b, zip64                                                          ? VERSION_ZIP64
             : item->method == PACKAGE_DEFLATED || act_ends_with(path, "/") ? VERSION_DEFLATE
                                                                            : VERSION_STORED);
    add16(b, (item->streamed ? FLAG_DESCRIPTOR : 0) | (is_ascii(path) ? 0 : FLAG_UTF8));
    add16(b, item->method);
    add16(b, 0);
    add16(b, DOS_DATE_1980);
    add32(b, known ? item->crc : 0);
    add32(b, sizes ? item->packed : sizes64 ? MAX32 : 0);
    add32(b, sizes ? item->size : sizes64 ? MAX32 : 0);
    add16(b, strlen(path));
}

void package_zip_local(struct act_buf *b, const char *path, const struct package_item *item)
{
    bool zip64 = is_zip64(item);

    add32(b, LOCAL);
    add_common(b, path, item, zip64, !item->streamed);
    add16(b, zip64 ? 20 : 0);
    act_buf_adds(b, path);
    if (!zip64)
        return;
    add16(b, EXTRA_ZIP64);
    add16(b, 16);
    add64(b, item->streamed ? 0 : item->size);
    add64(b, item->streamed ? 0 : item->packed);
}

void package_zip_descriptor(struct act_buf *b, const struct package_item *item)
{
    size_t width = is_zip64(item) ? 8 : 4;

    add32(b, DESCRIPTOR);
    add32(b, item->crc);
    add(b, item->packed, width);
    add(b, item->size, width);
}

void package_zip_central(struct act_buf *b, const char *path, unsigned mode, const struct package_item *item)
{
    bool sizes64 = is_zip64(item), offset64 = item->offset >= MAX32;
    size_t extra = (sizes64 ? 16u : 0u) + (offset64 ? 8u : 0u);

    add32(b, CENTRAL);
    add16(b, UNIX | (extra ? VERSION_ZIP64 : VERSION_DEFLATE));
    add_common(b, path, item, extra > 0, true);
    add16(b, extra ? 4 + extra : 0);
    add16(b, 0); /* comment */
    add16(b, 0); /* disk */
    add16(b, 0); /* internal attributes */
    add32(b, (uint64_t)mode << 16 | (S_ISDIR(mode) ? DOS_FOLDER : 0));
    add32(b, cap32(item->offset));
    act_buf_adds(b, path);
    if (!extra)
        return;
    add16(b, EXTRA_ZIP64);
    add16(b, extra);
    if (sizes64) {
        add64(b, item->size);
        add64(b, item->packed);
    }
    if (offset64)
        add64(b, item->offset);
}

static void add_end64(struct act_buf *b, uint64_t n, uint64_t offset, uint64_t len)
{
    add32(b, END64);
    add64(b, END64_REST);
    add16(b, UNIX | VERSION_ZIP64);
    add16(b, VERSION_ZIP64);
    add32(b, 0); /* disks */
    add32(b, 0);
    add64(b, n);
    add64(b, n);
    add64(b, len);
    add64(b, offset);
    add32(b, END64_LOCATOR);
    add32(b, 0);
    add64(b, offset + len);
    add32(b, 1);
}

void package_zip_end(struct act_buf *b, uint64_t n, uint64_t offset, uint64_t len)
{
    if (n >= MAX16 || offset >= MAX32 || len >= MAX32)
        add_end64(b, n, offset, len);
    add32(b, END);
    add16(b, 0); /* disks */
    add16(b, 0);
    add16(b, n < MAX16 ? n : MAX16);
    add16(b, n < MAX16 ? n : MAX16);
    add32(b, cap32(len));
    add32(b, cap32(offset));
    add16(b, 0); /* comment */
}
