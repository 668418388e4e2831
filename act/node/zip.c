#include "node/zip.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "codec/zip_end.h"

enum {
    LOCAL_BYTES = 30,
    EXTRA_ZIP64 = 1,
    MADE_BY_UNIX = 3,
    FLAG_ENCRYPTED = 1,
    METHOD_STORED = 0,
    METHOD_DEFLATED = 8,
    RATIO_MAX = 1032, /* of deflate */
};
static const uint64_t table_max = 1 << 30;

int zip_refuse(const struct zip_entry *entry, const char *why, struct act_error *err)
{
    return act_error_set(err, ACT_FAIL, "entry '%s' %s", entry->name, why);
}

static int no_zip(struct act_error *err)
{
    return act_error_set(err, ACT_FAIL, "it is not a zip file, or a damaged one");
}

static int bad_table(struct act_error *err)
{
    return act_error_set(err, ACT_FAIL, "its table of contents is damaged");
}

static bool read_at(int fd, void *out, size_t len, uint64_t at)
{
    return act_pread_all(fd, out, len, (off_t)at) == (ssize_t)len;
}

/* ---- its entries ---- */

/* Returns permissions and type: those of the entry in a zip made on Unix, else those of a plain file or folder. */
static mode_t entry_mode(const uint8_t *record, const char *name)
{
    mode_t mode = record[5] == MADE_BY_UNIX ? (mode_t)(codec_zip_get32(record + 38) >> 16) : 0;
    bool folder = act_ends_with(name, "/");

    if ((mode & S_IFMT) == 0)
        mode |= folder ? S_IFDIR : S_IFREG;
    if ((mode & 0777) == 0)
        mode |= folder ? 0755 : 0644;
    return mode & (S_IFMT | 0777);
}

/* Takes the numbers that have no room in the record from its zip64 field, where they are in this order. */
static bool read_wide(struct zip_entry *e, const uint8_t *extra, size_t len)
{
    uint64_t *const wide[] = {&e->size, &e->packed_size, &e->offset};

    while (len >= 4 && codec_zip_get16(extra) != EXTRA_ZIP64) {
        size_t field = 4 + (size_t)codec_zip_get16(extra + 2);
        if (field > len)
            break;
        extra += field;
        len -= field;
    }
    size_t left = len >= 4 && codec_zip_get16(extra) == EXTRA_ZIP64 ? codec_zip_get16(extra + 2) : 0;
    if (left > 0 && left > len - 4)
        return false;
    extra += left > 0 ? 4 : 0;
    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++) {
        if (*wide[i] != UINT32_MAX)
            continue;
        if (left < 8)
            return false;
        *wide[i] = codec_zip_get64(extra);
        extra += 8;
        left -= 8;
    }
    return true;
}

static int check_entry(const struct zip *zip, const struct zip_entry *e, size_t name_len, const uint8_t *record,
                       struct act_error *err)
{
    if (strlen(e->name) != name_len || !act_path_is_safe(e->name, name_len))
        return zip_refuse(e, "has a name that leads out of the target, or is none", err);
    if (codec_zip_get16(record + 8) & FLAG_ENCRYPTED)
        return zip_refuse(e, "is encrypted", err);
    if (codec_zip_get16(record + 10) != METHOD_STORED && !e->deflated)
        return zip_refuse(e, "is packed in a way that is not known here", err);
    if (!S_ISREG(e->mode) && !S_ISDIR(e->mode) && !S_ISLNK(e->mode))
        return zip_refuse(e, "is neither a file nor a folder nor a link", err);
    if (S_ISDIR(e->mode) != act_ends_with(e->name, "/"))
        return zip_refuse(e, "does not know whether it is a folder", err);
    if (S_ISLNK(e->mode) && (e->size == 0 || e->size >= PATH_MAX))
        return zip_refuse(e, "is a link of impossible length", err);
    if (e->offset > zip->table_at || e->packed_size > zip->table_at - e->offset)
        return zip_refuse(e, "is damaged: its data is not in the file", err);
    if (e->size / RATIO_MAX > e->packed_size || (!e->deflated && e->size > e->packed_size))
        return zip_refuse(e, "is shorter than it says", err);
    if (!e->deflated && e->size < e->packed_size)
        return zip_refuse(e, "is longer than it says", err);
    return 0;
}

/* Reads one record, and moves *at past it. It moves the name over bytes already read, to make room for its NUL. */
static int zip_read_entry(struct zip *zip, uint64_t table_bytes, uint64_t *at, struct zip_entry *e,
                          struct act_error *err)
{
    char *start = zip->table + *at;
    uint8_t record[CODEC_ZIP_ENTRY_BYTES];
    uint64_t left = table_bytes - *at;

    if (left < CODEC_ZIP_ENTRY_BYTES || codec_zip_get32(start) != CODEC_ZIP_ENTRY)
        return bad_table(err);
    memcpy(record, start, sizeof(record));
    size_t name = codec_zip_get16(record + 28), extra = codec_zip_get16(record + 30),
           comment = codec_zip_get16(record + 32);
    if (left - CODEC_ZIP_ENTRY_BYTES < name + extra + comment)
        return bad_table(err);
    *e = (struct zip_entry){.size = codec_zip_get32(record + 24),
                            .packed_size = codec_zip_get32(record + 20),
                            .offset = codec_zip_get32(record + 42),
                            .crc = codec_zip_get32(record + 16),
                            .deflated = codec_zip_get16(record + 10) == METHOD_DEFLATED};
    if (!read_wide(e, (const uint8_t *)start + CODEC_ZIP_ENTRY_BYTES + name, extra))
        return bad_table(err);
    memmove(start, start + CODEC_ZIP_ENTRY_BYTES, name);
    start[name] = '\0';
    e->name = start;
    e->mode = entry_mode(record, e->name);
    *at += CODEC_ZIP_ENTRY_BYTES + name + extra + comment;
    return check_entry(zip, e, name, record, err);
}

/* ---- what only all of them together show ---- */

/* Compares by name, so that a folder and a file of the same name are next to each other. */
static int by_entry_name(const void *a, const void *b)
{
    const struct zip_entry *x = a, *y = b;
    size_t n = strlen(x->name), m = strlen(y->name);

    n -= S_ISDIR(x->mode);
    m -= S_ISDIR(y->mode);
    int order = memcmp(x->name, y->name, n < m ? n : m);
    return order ? order : (n > m) - (n < m);
}

static int by_offset(const void *a, const void *b)
{
    const struct zip_entry *const *x = a, *const *y = b;

    return ((*x)->offset > (*y)->offset) - ((*x)->offset < (*y)->offset);
}

static int zip_check_names(const struct zip *zip, struct act_error *err)
{
    for (size_t i = 1; i < zip->n; i++)
        if (by_entry_name(&zip->v[i - 1], &zip->v[i]) == 0)
            return zip_refuse(&zip->v[i], "appears twice", err);
    return 0;
}

/* A small file can unpack to any size when its entries have the same data. */
static int check_overlap(const struct zip *zip, struct act_error *err)
{
    const struct zip_entry **order = act_alloc((zip->n + 1) * sizeof(*order));
    int rc = 0;

    for (size_t i = 0; i < zip->n; i++)
        order[i] = &zip->v[i];
    if (zip->n > 0)
        qsort(order, zip->n, sizeof(*order), by_offset);
    for (size_t i = 1; rc == 0 && i < zip->n; i++)
        if (order[i]->offset - order[i - 1]->offset < LOCAL_BYTES + order[i - 1]->packed_size)
            rc = zip_refuse(order[i], "is damaged: it shares its data with another entry", err);
    free(order);
    return rc;
}

/* ---- all of it ---- */

static int read_table(struct zip *zip, const struct codec_zip_end *end, struct act_error *err)
{
    uint64_t at = 0;
    int rc = 0;

    zip->table = act_alloc(end->table_bytes + 1);
    zip->table_at = end->table_at;
    if (!read_at(zip->fd, zip->table, end->table_bytes, end->table_at))
        return no_zip(err);
    zip->v = act_calloc(end->entries + 1, sizeof(*zip->v));
    for (; rc == 0 && zip->n < end->entries; zip->n++)
        rc = zip_read_entry(zip, end->table_bytes, &at, &zip->v[zip->n], err);
    if (rc == 0 && at != end->table_bytes)
        rc = bad_table(err);
    if (rc == 0 && zip->n > 0)
        qsort(zip->v, zip->n, sizeof(*zip->v), by_entry_name);
    if (rc == 0)
        rc = zip_check_names(zip, err);
    return rc == 0 ? check_overlap(zip, err) : rc;
}

static int open_table(struct zip *zip, struct act_error *err)
{
    struct stat st;
    struct codec_zip_end end;

    if (fstat(zip->fd, &st) < 0)
        return act_error_errno(err, errno, "cannot look at it");
    if (!S_ISREG(st.st_mode) || !codec_zip_find_end(zip->fd, (uint64_t)st.st_size, &end))
        return no_zip(err);
    if (!codec_zip_end_is_sound(&end) || end.table_bytes > table_max)
        return bad_table(err);
    return read_table(zip, &end, err);
}

int zip_open(const char *path, struct zip *out, struct act_error *err)
{
    *out = (struct zip){.fd = open(path, O_RDONLY | O_CLOEXEC)};
    if (out->fd < 0)
        return act_error_errno(err, errno, "cannot read '%s'", path);
    int rc = open_table(out, err);
    if (rc < 0)
        zip_close(out);
    return rc;
}

void zip_close(struct zip *zip)
{
    if (zip->fd >= 0)
        close(zip->fd);
    free(zip->table);
    free(zip->v);
    *zip = (struct zip){.fd = -1};
}
