/* zip_read.c - the data of one entry. A small one is read, unpacked and given on as a whole, with libdeflate, which is
 * several times as fast as zlib but needs all of it in memory; a large one goes through zlib in pieces. */
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/file.h"
#include "base/text.h"
#include "codec/zip_end.h"
#include "node/zip.h"

enum { SIGNATURE_LOCAL = 0x04034b50, LOCAL_BYTES = 30, WHOLE_MAX = 4 << 20, CHUNK = 256 << 10 };

struct zip_reader {
    struct libdeflate_decompressor *inflater;
    char *in, *out; /* WHOLE_MAX and a little more */
    size_t in_cap, out_cap;
};

struct zip_reader *zip_reader_new(void)
{
    struct zip_reader *r = act_calloc(1, sizeof(*r));

    r->inflater = libdeflate_alloc_decompressor();
    if (!r->inflater)
        abort(); /* as act_alloc() */
    return r;
}

void zip_reader_free(struct zip_reader *r)
{
    libdeflate_free_decompressor(r->inflater);
    free(r->in);
    free(r->out);
    free(r);
}

static char *sized_buffer(char **buffer, size_t *cap, size_t len)
{
    if (*cap < len) {
        free(*buffer);
        *buffer = act_alloc(len);
        *cap = len;
    }
    return *buffer;
}

static int damaged(const struct zip_entry *e, struct act_error *err)
{
    return zip_refuse(e, "is damaged", err);
}

/* Returns how many bytes precede the data; 0: the header before it is that of another entry. */
static size_t header_bytes(const struct zip_entry *e, const char *header, size_t len)
{
    size_t name = strlen(e->name);

    if (len < LOCAL_BYTES + name || codec_zip_get32(header) != SIGNATURE_LOCAL ||
        codec_zip_get16(header + 26) != name || memcmp(header + LOCAL_BYTES, e->name, name) != 0 ||
        codec_zip_get16(header + 8) != (e->deflated ? 8 : 0))
        return 0;
    return LOCAL_BYTES + name + codec_zip_get16(header + 28);
}

/* ---- whole ---- */

/* Returns the packed data, in memory of the reader; NULL: it is not there. */
static const char *read_packed(const struct zip *zip, const struct zip_entry *e, struct zip_reader *r)
{
    enum { EXTRA_USUALLY = 64 };
    size_t want = LOCAL_BYTES + strlen(e->name) + EXTRA_USUALLY + e->packed_size;
    char *in = sized_buffer(&r->in, &r->in_cap, want);
    ssize_t got = act_pread_all(zip->fd, in, want, (off_t)e->offset);
    size_t head = got > 0 ? header_bytes(e, in, (size_t)got) : 0;

    if (head == 0 || e->offset + head + e->packed_size > zip->table_at)
        return NULL;
    if (head + e->packed_size <= (size_t)got)
        return in + head;
    got = act_pread_all(zip->fd, in, e->packed_size, (off_t)(e->offset + head));
    return got == (ssize_t)e->packed_size ? in : NULL;
}

static int inflate_whole(const struct zip_entry *e, struct zip_reader *r, const char *packed, struct act_error *err)
{
    size_t used, made;
    char *out = sized_buffer(&r->out, &r->out_cap, e->size + 1);

    switch (libdeflate_deflate_decompress_ex(r->inflater, packed, e->packed_size, out, e->size, &used, &made)) {
    case LIBDEFLATE_SUCCESS:
        if (made < e->size)
            return zip_refuse(e, "is shorter than it says", err);
        return used == e->packed_size ? 0 : damaged(e, err);
    case LIBDEFLATE_INSUFFICIENT_SPACE:
        return zip_refuse(e, "is longer than it says", err);
    default:
        return damaged(e, err);
    }
}

static int bad_crc(const struct zip_entry *e, struct act_error *err)
{
    return zip_refuse(e, "is damaged: its checksum does not match", err);
}

static int read_whole(const struct zip *zip, const struct zip_entry *e, struct zip_reader *r, zip_sink *sink, void *arg,
                      struct act_error *err)
{
    const char *data = read_packed(zip, e, r);
    int rc = data ? 0 : damaged(e, err);

    if (rc == 0 && e->deflated) {
        rc = inflate_whole(e, r, data, err);
        data = r->out;
    }
    if (rc == 0 && libdeflate_crc32(0, data, e->size) != e->crc)
        rc = bad_crc(e, err);
    return rc == 0 && e->size > 0 ? sink(arg, data, e->size, err) : rc;
}

/* ---- in pieces ---- */

struct zip_stream {
    const struct zip *zip;
    const struct zip_entry *entry;
    z_stream z;
    uint64_t at, packed_left, left;
    uint32_t crc;
    char *in;
    zip_sink *sink;
    void *arg;
    struct act_error *err;
};

static int fill_stream(struct zip_stream *s)
{
    size_t len = s->packed_left < CHUNK ? (size_t)s->packed_left : CHUNK;

    if (act_pread_all(s->zip->fd, s->in, len, (off_t)s->at) != (ssize_t)len)
        return damaged(s->entry, s->err);
    s->at += len;
    s->packed_left -= len;
    s->z.next_in = (Bytef *)s->in;
    s->z.avail_in = (unsigned)len;
    return 0;
}

static int zip_give(struct zip_stream *s, const char *data, size_t len)
{
    if (len > s->left)
        return zip_refuse(s->entry, "is longer than it says", s->err);
    s->left -= len;
    s->crc = libdeflate_crc32(s->crc, data, len);
    return len > 0 ? s->sink(s->arg, data, len, s->err) : 0;
}

static int copy_stored(struct zip_stream *s)
{
    int rc = 0;

    while (rc == 0 && s->packed_left > 0) {
        rc = fill_stream(s);
        if (rc == 0)
            rc = zip_give(s, s->in, s->z.avail_in);
    }
    return rc;
}

static int inflate_stream(struct zip_stream *s, char *out)
{
    int rc = 0, state = Z_OK;

    while (rc == 0 && state == Z_OK) {
        if (s->z.avail_in == 0 && s->packed_left > 0)
            rc = fill_stream(s);
        s->z.next_out = (Bytef *)out;
        s->z.avail_out = CHUNK;
        if (rc == 0)
            state = inflate(&s->z, Z_NO_FLUSH); /* Z_BUF_ERROR: there is no more */
        if (rc == 0)
            rc = zip_give(s, out, CHUNK - s->z.avail_out);
    }
    if (rc == 0 && (state != Z_STREAM_END || s->z.avail_in > 0 || s->packed_left > 0))
        rc = damaged(s->entry, s->err);
    return rc;
}

static int run_stream(struct zip_stream *s, struct zip_reader *r)
{
    int rc;

    s->in = sized_buffer(&r->in, &r->in_cap, CHUNK);
    if (!s->entry->deflated) {
        rc = copy_stored(s);
    } else if (inflateInit2(&s->z, -MAX_WBITS) != Z_OK) {
        rc = act_error_set(s->err, ACT_FAIL, "not enough memory to unpack '%s'", s->entry->name);
    } else {
        rc = inflate_stream(s, sized_buffer(&r->out, &r->out_cap, CHUNK));
        inflateEnd(&s->z);
    }
    if (rc == 0 && s->left > 0)
        rc = zip_refuse(s->entry, "is shorter than it says", s->err);
    return rc == 0 && s->crc != s->entry->crc ? bad_crc(s->entry, s->err) : rc;
}

static int zip_read_stream(const struct zip *zip, const struct zip_entry *e, struct zip_reader *r, zip_sink *sink,
                           void *arg, struct act_error *err)
{
    size_t want = LOCAL_BYTES + strlen(e->name);
    char *header = sized_buffer(&r->in, &r->in_cap, want);
    ssize_t got = act_pread_all(zip->fd, header, want, (off_t)e->offset);
    size_t head = got > 0 ? header_bytes(e, header, (size_t)got) : 0;

    if (head == 0 || e->offset + head + e->packed_size > zip->table_at)
        return damaged(e, err);
    struct zip_stream s = {.zip = zip,
                           .entry = e,
                           .at = e->offset + head,
                           .packed_left = e->packed_size,
                           .left = e->size,
                           .sink = sink,
                           .arg = arg,
                           .err = err};
    return run_stream(&s, r);
}

int zip_read(const struct zip *zip, const struct zip_entry *entry, struct zip_reader *reader, zip_sink *sink, void *arg,
             struct act_error *err)
{
    bool whole = entry->size <= WHOLE_MAX && entry->packed_size <= WHOLE_MAX;

    return (whole ? read_whole : zip_read_stream)(zip, entry, reader, sink, arg, err);
}
