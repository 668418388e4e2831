#include "codec/zip_end.h"

#include "base/file.h"
#include "base/text.h"

enum {
    SIGNATURE_END = 0x06054b50,
    SIGNATURE_END64 = 0x06064b50,
    SIGNATURE_LOCATOR64 = 0x07064b50,
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR64_BYTES = 20,
    COMMENT_MAX = 65535,
};

uint16_t codec_zip_get16(const void *at)
{
    const uint8_t *p = at;

    return (uint16_t)(p[0] | p[1] << 8);
}

uint32_t codec_zip_get32(const void *at)
{
    const uint8_t *p = at;

    return codec_zip_get16(p) | (uint32_t)codec_zip_get16(p + 2) << 16;
}

uint64_t codec_zip_get64(const void *at)
{
    const uint8_t *p = at;

    return codec_zip_get32(p) | (uint64_t)codec_zip_get32(p + 4) << 32;
}

static bool zip_end_read_at(int fd, void *out, size_t len, uint64_t at)
{
    return act_pread_all(fd, out, len, (off_t)at) == (ssize_t)len;
}

/* Reads the record that precedes the old one where a count, size or offset is too large for that. */
static bool zip_end_read64(int fd, struct codec_zip_end *end)
{
    uint8_t locator[LOCATOR64_BYTES], record[END64_BYTES];

    if (end->at < LOCATOR64_BYTES || !zip_end_read_at(fd, locator, sizeof(locator), end->at - LOCATOR64_BYTES) ||
        codec_zip_get32(locator) != SIGNATURE_LOCATOR64)
        return false;
    end->at = codec_zip_get64(locator + 8);
    if (end->at > INT64_MAX || !zip_end_read_at(fd, record, sizeof(record), end->at) ||
        codec_zip_get32(record) != SIGNATURE_END64)
        return false;
    end->entries = codec_zip_get64(record + 32);
    end->table_bytes = codec_zip_get64(record + 40);
    end->table_at = codec_zip_get64(record + 48);
    return true;
}

static bool zip_end_read(int fd, const uint8_t *record, uint64_t at, struct codec_zip_end *out)
{
    *out = (struct codec_zip_end){.entries = codec_zip_get16(record + 10),
                                  .table_bytes = codec_zip_get32(record + 12),
                                  .table_at = codec_zip_get32(record + 16),
                                  .at = at};
    bool is_64 = out->entries == UINT16_MAX || out->table_bytes == UINT32_MAX || out->table_at == UINT32_MAX;

    return codec_zip_get32(record + 4) == 0 && (!is_64 || zip_end_read64(fd, out)); /* one disk */
}

/* The end record comes last but for a comment, whose length it gives. */
bool codec_zip_find_end(int fd, uint64_t size, struct codec_zip_end *out)
{
    size_t len = size < END_BYTES + COMMENT_MAX ? (size_t)size : END_BYTES + COMMENT_MAX;
    ACT_AUTOFREE char *tail = act_alloc(len + 1);
    bool found = false;

    if (len >= END_BYTES && zip_end_read_at(fd, tail, len, size - len))
        for (size_t at = len - END_BYTES + 1; !found && at-- > 0;)
            found = codec_zip_get32(tail + at) == SIGNATURE_END &&
                    at + END_BYTES + codec_zip_get16(tail + at + 20) == len &&
                    zip_end_read(fd, (const uint8_t *)tail + at, size - len + at, out);
    return found;
}

bool codec_zip_end_is_sound(const struct codec_zip_end *end)
{
    return end->table_at <= end->at && end->table_bytes == end->at - end->table_at &&
           end->entries <= end->table_bytes / CODEC_ZIP_ENTRY_BYTES;
}
