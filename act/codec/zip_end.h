/* zip_end.h - where the table of contents of a zip file is, and its little-endian numbers.
 *
 * Source: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3 (zip64).
 */
#ifndef ACT_CODEC_ZIP_END_H
#define ACT_CODEC_ZIP_END_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CODEC_ZIP_ENTRY = 0x02014b50, /* the signature of an entry's record in the table */
    CODEC_ZIP_ENTRY_BYTES = 46    /* of that record, but for its name, extra fields and comment */
};

/* Read a little-endian number of the file. */
uint16_t codec_zip_get16(const void *at);
uint32_t codec_zip_get32(const void *at);
uint64_t codec_zip_get64(const void *at);

struct codec_zip_end {
    uint64_t entries, table_bytes, table_at;
    uint64_t at; /* of the end record, which follows the table */
};
/* Finds the end record of a file of size bytes. False: there is none. */
bool codec_zip_find_end(int fd, uint64_t size, struct codec_zip_end *out);
/* Tells whether the table lies just before the record, and is long enough for that many entries. */
bool codec_zip_end_is_sound(const struct codec_zip_end *end);

#endif
