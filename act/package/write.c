/* write.c - the zip of a scanned list, with libzip.
 *
 * What goes into the archive is the list and the files' content, nothing else: times are 1980-01-01, the
 * order is the list's, modes are stored without set-user-id and the like, level and method are fixed. libzip
 * adds no extra fields to such entries; zip64 records only where a count or size needs them.
 *
 * Files are opened when their turn comes. Each is compared with the scan before and after it is read.
 */
#include "package/package_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "base/text.h"

enum {
    LEVEL = 6,          /* zlib's own default */
    DOS_DATE_1980 = 33, /* year 0, month 1, day 1 */
    DOS_FOLDER = 0x10,  /* the folder bit of the lower, DOS half of the attributes */
};

/* An archive without entries is a warning to unzip and cannot be written by libzip. */
static const char empty_marker[] = ".act-empty";

struct writer {
    int root_fd;
    zip_t *zip;
    struct act_error cause; /* of the first file that could not be read */
    int rc;                 /* its code */
};

/* One file on its way into the archive. */
struct source {
    struct writer *writer;
    const struct package_entry *entry;
    uint64_t left;
    int fd;
};

/* Changes */

static bool is_unchanged(const struct package_entry *entry, const struct stat *st)
{
    return (st->st_mode & (S_IFMT | 0777)) == entry->mode && (uint64_t)st->st_size == entry->size &&
           act_timespec_ns(st->st_mtim) == entry->mtime_ns &&
           act_timespec_ns(st->st_ctim) == entry->ctime_ns && st->st_ino == entry->inode;
}

static int fail(struct writer *writer, int rc)
{
    writer->rc = rc;
    return -1;
}

static int fail_changed(struct writer *writer, const struct package_entry *entry)
{
    ACT_AUTOFREE char *name = package_printable(entry->path);

    return fail(writer, act_error_set(
                            &writer->cause, ACT_TEMPORARY,
                            "'%s' changed while it was packaged; try again when nothing writes to it", name));
}

/* A file that is gone, or has become something else, has changed. */
static int fail_errno(struct writer *writer, const struct package_entry *entry, int errnum)
{
    if (errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP)
        return fail_changed(writer, entry);
    ACT_AUTOFREE char *name = package_printable(entry->path);
    return fail(writer, act_error_errno(&writer->cause, errnum, "cannot read '%s'", name));
}

/* Files, as libzip asks for them */

static int check_open(struct source *source)
{
    struct stat st;

    if (fstat(source->fd, &st) < 0)
        return fail_errno(source->writer, source->entry, errno);
    return is_unchanged(source->entry, &st) ? 0 : fail_changed(source->writer, source->entry);
}

static int open_source(struct source *source)
{
    source->fd = openat(source->writer->root_fd, source->entry->path,
                        O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (source->fd < 0)
        return fail_errno(source->writer, source->entry, errno);
    source->left = source->entry->size;
    return check_open(source);
}

static zip_int64_t read_source(struct source *source, void *data, zip_uint64_t len)
{
    size_t want = len < source->left ? len : source->left;
    ssize_t n;

    if (want == 0)
        return check_open(source);
    do
        n = read(source->fd, data, want);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return fail_errno(source->writer, source->entry, errno);
    if (n == 0)
        return fail_changed(source->writer, source->entry);
    source->left -= (size_t)n;
    return n;
}

static void close_source(struct source *source)
{
    if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
}

static zip_int64_t stat_source(const struct source *source, void *data)
{
    zip_stat_t *st = data;

    zip_stat_init(st);
    st->size = source->entry->size; /* known beforehand: no zip64 records in case it were large */
    st->valid = ZIP_STAT_SIZE;
    return sizeof(*st);
}

static zip_int64_t say_error(void *data, zip_uint64_t len)
{
    const int codes[2] = {ZIP_ER_READ, 0}; /* the real cause is in the writer */

    if (len < sizeof(codes))
        return -1;
    memcpy(data, codes, sizeof(codes));
    return sizeof(codes);
}

static zip_int64_t on_source(void *state, void *data, zip_uint64_t len, zip_source_cmd_t command)
{
    struct source *source = state;

    switch (command) {
    case ZIP_SOURCE_OPEN:
        return open_source(source);
    case ZIP_SOURCE_READ:
        return read_source(source, data, len);
    case ZIP_SOURCE_CLOSE:
        close_source(source);
        return 0;
    case ZIP_SOURCE_STAT:
        return stat_source(source, data);
    case ZIP_SOURCE_ERROR:
        return say_error(data, len);
    case ZIP_SOURCE_FREE:
        close_source(source);
        free(source);
        return 0;
    case ZIP_SOURCE_SUPPORTS:
        return ZIP_SOURCE_SUPPORTS_READABLE;
    default:
        return -1;
    }
}

/* Entries */

static int fail_zip(struct writer *writer, const char *path)
{
    ACT_AUTOFREE char *name = package_printable(path);

    return fail(writer, act_error_set(&writer->cause, ACT_FAIL, "cannot package '%s': %s", name,
                                      zip_strerror(writer->zip)));
}

static int set_facts(struct writer *writer, zip_int64_t index, const char *path, mode_t mode, bool deflate)
{
    zip_uint32_t attributes = (zip_uint32_t)mode << 16 | (S_ISDIR(mode) ? DOS_FOLDER : 0);
    zip_uint64_t at = (zip_uint64_t)index;

    if (zip_file_set_external_attributes(writer->zip, at, 0, ZIP_OPSYS_UNIX, attributes) < 0 ||
        zip_file_set_dostime(writer->zip, at, 0, DOS_DATE_1980, 0) < 0)
        return fail_zip(writer, path);
    if (S_ISDIR(mode)) /* libzip stores folders, and cannot be told to */
        return 0;
    if (zip_set_file_compression(writer->zip, at, deflate ? ZIP_CM_DEFLATE : ZIP_CM_STORE,
                                 deflate ? LEVEL : 0) < 0)
        return fail_zip(writer, path);
    return 0;
}

static int add_source(struct writer *writer, const char *path, mode_t mode, zip_source_t *source,
                      bool deflate)
{
    zip_int64_t index = source ? zip_file_add(writer->zip, path, source, ZIP_FL_ENC_UTF_8) : -1;

    if (index < 0) {
        fail_zip(writer, path);
        zip_source_free(source);
        return -1;
    }
    return set_facts(writer, index, path, mode, deflate);
}

static int add_file(struct writer *writer, const struct package_entry *entry)
{
    struct source *state = act_calloc(1, sizeof(*state));

    *state = (struct source){.writer = writer, .entry = entry, .fd = -1};
    zip_source_t *source = zip_source_function(writer->zip, on_source, state);
    if (!source)
        free(state);
    return add_source(writer, entry->path, entry->mode, source, entry->size > 0);
}

static int add_link(struct writer *writer, const struct package_entry *entry)
{
    char target[PATH_MAX];
    struct stat st;
    ssize_t len = readlinkat(writer->root_fd, entry->path, target, sizeof(target));

    if (len < 0)
        return errno == EINVAL ? fail_changed(writer, entry) : fail_errno(writer, entry, errno);
    if (fstatat(writer->root_fd, entry->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return fail_errno(writer, entry, errno);
    if (!is_unchanged(entry, &st))
        return fail_changed(writer, entry);
    char *copy = act_strndup(target, (size_t)len);
    zip_source_t *source = zip_source_buffer(writer->zip, copy, (zip_uint64_t)len, 1);
    if (!source)
        free(copy);
    return add_source(writer, entry->path, entry->mode, source, false);
}

static int add_folder(struct writer *writer, const struct package_entry *entry)
{
    zip_int64_t index = zip_dir_add(writer->zip, entry->path, ZIP_FL_ENC_UTF_8);

    return index < 0 ? fail_zip(writer, entry->path)
                     : set_facts(writer, index, entry->path, entry->mode, false);
}

static int add_marker(struct writer *writer)
{
    return add_source(writer, empty_marker, S_IFREG | 0644, zip_source_buffer(writer->zip, "", 0, 0), false);
}

static int add_all(struct writer *writer, const struct package_list *list)
{
    if (list->n == 0)
        return add_marker(writer);
    for (size_t i = 0; i < list->n; i++) {
        const struct package_entry *entry = &list->v[i];
        int rc = S_ISDIR(entry->mode)   ? add_folder(writer, entry)
                 : S_ISLNK(entry->mode) ? add_link(writer, entry)
                                        : add_file(writer, entry);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* The archive */

/* After a failed zip_close(): the file's fault, or that of the disk the archive goes to. */
static int fail_close(struct writer *writer, const char *path)
{
    if (writer->rc < 0)
        return -1;
    const zip_error_t *error = zip_get_error(writer->zip);
    if (zip_error_system_type(error) == ZIP_ET_SYS && zip_error_code_system(error) != 0)
        return fail(writer,
                    act_error_errno(&writer->cause, zip_error_code_system(error), "cannot write '%s'", path));
    return fail(writer, act_error_set(&writer->cause, ACT_FAIL, "cannot write '%s': %s", path,
                                      zip_strerror(writer->zip)));
}

static int write_zip(struct writer *writer, const struct package_list *list, const char *temp,
                     const char *path)
{
    int code = 0, rc;

    writer->zip = zip_open(temp, ZIP_CREATE | ZIP_TRUNCATE, &code);
    if (!writer->zip)
        return fail(writer, act_error_set(&writer->cause, ACT_FAIL, "cannot write '%s': libzip error %d",
                                          path, code));
    rc = add_all(writer, list);
    if (rc == 0 && zip_close(writer->zip) == 0)
        return 0;
    if (rc == 0)
        fail_close(writer, path);
    zip_discard(writer->zip);
    return -1;
}

/* Makes temp durable, says what it is and gives it its name. */
static int publish(const char *temp, const char *path, struct package_summary *out, struct act_error *err)
{
    struct stat st;
    int rc = act_sha256_file(temp, out->sha256, err);

    if (rc < 0)
        return rc;
    int fd = open(temp, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || fsync(fd) < 0 || rename(temp, path) < 0)
        rc = act_error_errno(err, errno, "cannot write '%s'", path);
    else
        out->bytes = (uint64_t)st.st_size;
    if (fd >= 0)
        close(fd);
    return rc;
}

/* Code may hold what is not for everybody on this machine: 0600. libzip gives the file that it puts in the
 * place of this one the same mode. */
static int make_temp(char *temp, const char *path, struct act_error *err)
{
    ACT_AUTOFREE char *dir = act_path_dirname(path);
    int rc = act_mkdir_all(dir, 0777, err);

    if (rc < 0)
        return rc;
    int fd = mkostemp(temp, O_CLOEXEC);
    if (fd < 0)
        return act_error_errno(err, errno, "cannot write '%s'", path);
    close(fd);
    return 0;
}

static int write_and_publish(struct writer *writer, const struct package_list *list, const char *path,
                             struct package_summary *out, struct act_error *err)
{
    ACT_AUTOFREE char *dir = act_path_dirname(path);
    ACT_AUTOFREE char *temp = act_sprintf("%s/.act-part-XXXXXX", dir);
    int rc = make_temp(temp, path, err);

    if (rc < 0)
        return rc;
    if (write_zip(writer, list, temp, path) < 0) {
        if (err)
            *err = writer->cause;
        rc = writer->rc;
    } else {
        rc = publish(temp, path, out, err);
    }
    if (rc < 0)
        unlink(temp);
    return rc;
}

int package_write(const struct package_options *options, const struct package_list *list, const char *path,
                  struct package_summary *out, struct act_error *err)
{
    struct writer writer = {.root_fd = open(options->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};

    *out = (struct package_summary){0};
    if (writer.root_fd < 0)
        return act_error_errno(err, errno, "cannot read the project folder '%s'", options->root);
    int rc = write_and_publish(&writer, list, path, out, err);
    close(writer.root_fd);
    return rc;
}
