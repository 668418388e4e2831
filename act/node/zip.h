/* zip.h - the table of contents of a zip file, and the bytes of its entries. Everything in it is treated as hostile
 * until checked.
 *
 * Source: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3 (zip64).
 */
#ifndef ACT_NODE_ZIP_H
#define ACT_NODE_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct zip_entry {
    const char *name; /* safe (act_path_is_safe); a folder's ends with '/' */
    uint64_t size, packed_size, offset;
    uint32_t crc;
    bool deflated; /* else stored */
    mode_t mode;   /* S_IFREG, S_IFDIR or S_IFLNK, and permissions */
};

struct zip {
    int fd;
    char *table; /* the names are in it */
    uint64_t table_at;
    struct zip_entry *v; /* sorted by name */
    size_t n;
};

/* Reads and checks the table of contents. Refused: names that are unsafe or appear twice, encrypted entries,
 * devices, unknown kinds of compression, entries that share data, links of impossible length, sizes that no
 * compression gives. */
int zip_open(const char *path, struct zip *out, struct act_error *err) ACT_NODISCARD;
void zip_close(struct zip *zip);

/* Gives the data of an entry to sink in pieces (at most len bytes of the declared size in all, in order), and checks
 * its length and CRC. sink returns 0, or an error that it has set. */
typedef int zip_sink(void *arg, const void *data, size_t len, struct act_error *err);
struct zip_reader; /* the memory for reading; each thread needs one */
struct zip_reader *zip_reader_new(void);
void zip_reader_free(struct zip_reader *reader);
int zip_read(const struct zip *zip, const struct zip_entry *entry, struct zip_reader *reader, zip_sink *sink, void *arg,
             struct act_error *err) ACT_NODISCARD;

/* Returns -ACT_FAIL, with the text "entry '<name>' <why>". */
int zip_refuse(const struct zip_entry *entry, const char *why, struct act_error *err);

#endif
