/* zip.c - libzip writes the archive: it asks for the data of one entry after the other, compressed as it is, and gives
 * the archive to a sink.
 *
 * Source: libzip's zip_source_function(3), and zip_close.c of 1.7.3. An entry's header is written before its data and
 * once more after it, when CRC and length are known: so libzip goes back, and when it is at the end again, the entry
 * is settled. Which method an entry has must be known before all that: what is not empty is a deflated file or a stored
 * link. Without a length before the data, a file of more than 4,293,656,963 bytes has zip64 fields, which depends on
 * its size alone.
 */
#include "package/package_internal.h"

#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <zip.h>

#include "base/text.h"

enum {
    DOS_FOLDER = 0x10, /* the folder bit of the lower, DOS half of the attributes */
    MODE_SHIFT = 16,
};

struct archive {
    const struct package_zip *zip;
    zip_error_t error; /* of the last call that failed: libzip asks for it */
    time_t time;       /* of all entries */
    struct archive_source *sources;
    size_t i;      /* the current entry */
    uint64_t data; /* where its data begins */
};

struct archive_source {
    struct archive *archive;
    size_t i;
};

const char *package_zip_version(void)
{
    return zip_libzip_version();
}

bool package_is_deflated(const struct package_entry *entry)
{
    return S_ISREG(entry->mode) && entry->size > 0;
}

static zip_int64_t fail_archive(struct archive *a, int code, int errnum)
{
    zip_error_set(&a->error, code, errnum);
    return -1;
}

/* An entry */

static zip_int64_t stat_entry(const struct archive_source *s, zip_stat_t *st)
{
    const struct package_zip *zip = s->archive->zip;

    zip_stat_init(st);
    st->valid = ZIP_STAT_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_CRC;
    st->size = zip->entries[s->i].size;
    st->comp_method = package_is_deflated(&zip->entries[s->i]) ? ZIP_CM_DEFLATE : ZIP_CM_STORE;
    st->crc = zip->items[s->i].crc; /* right when its data was read; the last value counts */
    return sizeof(*st);
}

static zip_int64_t archive_open_entry(const struct archive_source *s)
{
    s->archive->i = s->i;
    s->archive->data = s->archive->zip->sink->at;
    return 0;
}

static zip_int64_t archive_read_entry(const struct archive_source *s, void *data, zip_uint64_t len)
{
    int64_t n = s->archive->zip->read(s->archive->zip->arg, s->i, data, len);

    return n < 0 ? fail_archive(s->archive, ZIP_ER_READ, ECANCELED) : n;
}

static zip_int64_t serve_entry(void *arg, void *data, zip_uint64_t len, zip_source_cmd_t command)
{
    struct archive_source *s = arg;

    switch (command) {
    case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT,
                                              ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, -1);
    case ZIP_SOURCE_STAT:
        return stat_entry(s, data);
    case ZIP_SOURCE_OPEN:
        return archive_open_entry(s);
    case ZIP_SOURCE_READ:
        return archive_read_entry(s, data, len);
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE:
        return 0;
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&s->archive->error, data, len);
    default:
        return fail_archive(s->archive, ZIP_ER_OPNOTSUPP, 0);
    }
}

/* The archive */

static zip_int64_t archive_write(struct archive *a, const void *data, zip_uint64_t len)
{
    return package_sink_write(a->zip->sink, data, len) < 0 ? fail_archive(a, ZIP_ER_WRITE, errno) : (zip_int64_t)len;
}

static void archive_settle(struct archive *a)
{
    struct package_sink *sink = a->zip->sink;
    struct package_item *item = &a->zip->items[a->i];

    item->offset = sink->settled;
    item->data = a->data;
    item->packed = sink->end - a->data;
    package_sink_settle(sink);
    a->zip->settled(a->zip->arg, a->i);
}

static zip_int64_t seek_archive(struct archive *a, void *data, zip_uint64_t len)
{
    struct package_sink *sink = a->zip->sink;
    zip_int64_t to = zip_source_seek_compute_offset(sink->at, sink->end, data, len, &a->error);

    if (to < 0)
        return -1;
    sink->at = (uint64_t)to;
    if (sink->at == sink->end)
        archive_settle(a);
    return 0;
}

static zip_int64_t serve_archive(void *arg, void *data, zip_uint64_t len, zip_source_cmd_t command)
{
    struct archive *a = arg;

    switch (command) {
    case ZIP_SOURCE_SUPPORTS: /* what is read is never asked for: there is no archive yet */
        return ZIP_SOURCE_SUPPORTS_WRITABLE;
    case ZIP_SOURCE_STAT:
        return fail_archive(a, ZIP_ER_READ, ENOENT);
    case ZIP_SOURCE_WRITE:
        return archive_write(a, data, len);
    case ZIP_SOURCE_SEEK_WRITE:
        return seek_archive(a, data, len);
    case ZIP_SOURCE_TELL_WRITE:
        return (zip_int64_t)a->zip->sink->at;
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&a->error, data, len);
    case ZIP_SOURCE_BEGIN_WRITE:
    case ZIP_SOURCE_ROLLBACK_WRITE: /* the creator of the file removes it */
    case ZIP_SOURCE_FREE:
        return 0;
    case ZIP_SOURCE_COMMIT_WRITE:
        package_sink_settle(a->zip->sink);
        return 0;
    default:
        return fail_archive(a, ZIP_ER_OPNOTSUPP, 0);
    }
}

/* All of it */

/* Returns the first moment that a zip can express, in the local time that libzip writes. */
static time_t first_time(void)
{
    struct tm tm = {.tm_year = 80, .tm_mday = 1, .tm_isdst = -1};

    return mktime(&tm);
}

static int archive_describe(zip_t *za, zip_uint64_t i, const struct package_entry *entry, time_t time)
{
    zip_uint32_t attributes = (zip_uint32_t)entry->mode << MODE_SHIFT | (S_ISDIR(entry->mode) ? DOS_FOLDER : 0);
    int method = package_is_deflated(entry) ? ZIP_CM_DEFLATE : ZIP_CM_STORE;

    return zip_set_file_compression(za, i, method, 0) < 0 || zip_file_set_mtime(za, i, time, 0) < 0 ||
                   zip_file_set_external_attributes(za, i, 0, ZIP_OPSYS_UNIX, attributes) < 0
               ? -1
               : 0;
}

static int archive_add_entry(zip_t *za, struct archive_source *s, const struct package_entry *entry)
{
    zip_source_t *source = zip_source_function(za, serve_entry, s);
    zip_int64_t i = source ? zip_file_add(za, entry->path, source, ZIP_FL_ENC_UTF_8) : -1;

    if (i < 0) {
        zip_source_free(source);
        return -1;
    }
    return archive_describe(za, (zip_uint64_t)i, entry, s->archive->time);
}

static zip_t *open_archive(struct archive *a, zip_error_t *error)
{
    zip_source_t *target = zip_source_function_create(serve_archive, a, error);
    zip_t *za = target ? zip_open_from_source(target, ZIP_CREATE | ZIP_TRUNCATE, error) : NULL;

    if (!za)
        zip_source_free(target);
    return za;
}

static int fill_archive(zip_t *za, struct archive *a)
{
    const struct package_zip *zip = a->zip;

    for (size_t i = 0; i < zip->n; i++) {
        a->sources[i] = (struct archive_source){.archive = a, .i = i};
        if (archive_add_entry(za, &a->sources[i], &zip->entries[i]) < 0)
            return -1;
    }
    return zip_close(za);
}

static int fail_zip(zip_error_t *error, struct act_error *err)
{
    return act_error_set(err, ACT_FAIL, "%s", zip_error_strerror(error));
}

static int write_archive_of(struct archive *a, struct act_error *err)
{
    zip_error_t error;

    zip_error_init(&error);
    zip_t *za = open_archive(a, &error);
    int rc = za ? 0 : fail_zip(&error, err);
    zip_error_fini(&error);
    if (za && fill_archive(za, a) < 0) {
        rc = fail_zip(zip_get_error(za), err);
        zip_discard(za);
    }
    return rc;
}

int package_zip_write(const struct package_zip *zip, struct act_error *err)
{
    struct archive a = {.zip = zip, .time = first_time(), .sources = act_calloc(zip->n, sizeof(*a.sources))};

    zip_error_init(&a.error);
    int rc = write_archive_of(&a, err);
    zip_error_fini(&a.error);
    free(a.sources);
    return rc;
}
