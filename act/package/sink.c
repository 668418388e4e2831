/* sink.c - the file of an archive whose maker returns to the header of an entry after writing its data. So only
 * settled bytes are hashed: mostly from the buffer, longer ones from the file, where they have just been written. */
#include "package/package_internal.h"

#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

enum { BUFFER = 1 << 20, READ_BACK = 256 << 10 };

void package_sink_open(struct package_sink *sink, int fd)
{
    *sink = (struct package_sink){.fd = fd, .buffer = act_alloc(BUFFER)};
    act_sha256_init(&sink->sha);
}

static int hash_from_file(struct package_sink *sink, uint64_t end)
{
    ACT_AUTOFREE char *data = act_alloc(READ_BACK);

    while (sink->hashed < end) {
        size_t len = end - sink->hashed < READ_BACK ? (size_t)(end - sink->hashed) : READ_BACK;
        ssize_t n = act_pread_all(sink->fd, data, len, (off_t)sink->hashed);
        if (n != (ssize_t)len) {
            errno = n < 0 ? errno : EIO;
            return -1;
        }
        act_sha256_add(&sink->sha, data, len);
        sink->hashed += len;
    }
    return 0;
}

static int hash_settled(struct package_sink *sink)
{
    uint64_t in_file = sink->settled < sink->start ? sink->settled : sink->start;

    if (sink->hashed < in_file && hash_from_file(sink, in_file) < 0)
        return -1;
    if (sink->hashed < sink->settled)
        act_sha256_add(&sink->sha, sink->buffer + (sink->hashed - sink->start), sink->settled - sink->hashed);
    sink->hashed = sink->settled;
    return 0;
}

int package_sink_flush(struct package_sink *sink)
{
    size_t len = sink->end - sink->start;

    if (hash_settled(sink) < 0 || act_pwrite_all(sink->fd, sink->buffer, len, (off_t)sink->start) < 0)
        return -1;
    sink->start = sink->end;
    return 0;
}

/* Returns how much of it was written, or -1 with errno. */
static ssize_t write_some(struct package_sink *sink, const void *data, size_t len)
{
    uint64_t limit = sink->at < sink->start ? sink->start : sink->start + BUFFER;
    size_t n = limit - sink->at < len ? (size_t)(limit - sink->at) : len;

    if (sink->at >= sink->start)
        memcpy(sink->buffer + (sink->at - sink->start), data, n);
    else if (act_pwrite_all(sink->fd, data, n, (off_t)sink->at) < 0)
        return -1;
    return (ssize_t)n;
}

static int write_all(struct package_sink *sink, const void *data, size_t len)
{
    for (const char *p = data; len > 0;) {
        if (sink->at == sink->start + BUFFER && package_sink_flush(sink) < 0)
            return -1;
        ssize_t n = write_some(sink, p, len);
        if (n < 0)
            return -1;
        p += n;
        len -= (size_t)n;
        sink->at += (uint64_t)n;
        if (sink->at > sink->end)
            sink->end = sink->at;
    }
    return 0;
}

int package_sink_write(struct package_sink *sink, const void *data, size_t len)
{
    int rc = write_all(sink, data, len);

    if (rc < 0)
        sink->errnum = errno;
    return rc;
}

void package_sink_settle(struct package_sink *sink)
{
    sink->settled = sink->end;
}

int package_sink_close(struct package_sink *sink, char out[ACT_SHA256_HEX])
{
    int rc = package_sink_flush(sink);

    act_sha256_done(&sink->sha, out);
    free(sink->buffer);
    return rc;
}
