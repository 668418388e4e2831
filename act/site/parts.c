#include "site/parts.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "codec/zip_end.h"

static const uint64_t table_max = 64 << 20;

/* ---- a zip as entries ---- */

/* Returns the id of the entry whose bytes are len: of its record, without where the entry is. */
static uint64_t parts_id(const char *record, size_t record_len, uint64_t len)
{
    struct act_sha256 hash;
    uint8_t bytes[PARTS_ID_BYTES];
    uint64_t id;

    act_sha256_init(&hash);
    act_sha256_add(&hash, record, PARTS_RECORD_OFFSET);
    act_sha256_add(&hash, record + CODEC_ZIP_ENTRY_BYTES, record_len - CODEC_ZIP_ENTRY_BYTES);
    act_sha256_add(&hash, &len, sizeof(len));
    act_sha256_bytes(&hash, bytes, sizeof(bytes));
    memcpy(&id, bytes, sizeof(id));
    return id;
}

/* Takes the next record of the table, and moves *at past it. */
static bool parts_take_record(struct parts *p, size_t *at)
{
    const char *record = p->table + *at;
    const size_t left = p->table_len - *at;

    if (left < CODEC_ZIP_ENTRY_BYTES || codec_zip_get32(record) != CODEC_ZIP_ENTRY)
        return false;
    const size_t len = CODEC_ZIP_ENTRY_BYTES + (size_t)codec_zip_get16(record + 28) + codec_zip_get16(record + 30) +
                       codec_zip_get16(record + 32);
    const uint64_t offset = codec_zip_get32(record + PARTS_RECORD_OFFSET);
    const bool follows = p->n == 0 ? offset == 0 : offset > p->v[p->n - 1].at && offset < p->table_at;
    if (len > left || !follows)
        return false;
    p->v[p->n++] = (struct parts_entry){.at = offset, .record = *at};
    *at += len;
    return true;
}

static bool parts_read(struct parts *p)
{
    struct codec_zip_end end;
    struct stat st;
    size_t at = 0;

    if (p->fd < 0 || fstat(p->fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size >= UINT32_MAX ||
        !codec_zip_find_end(p->fd, (uint64_t)st.st_size, &end) || !codec_zip_end_is_sound(&end) ||
        end.table_bytes > table_max)
        return false;
    p->size = (uint64_t)st.st_size;
    p->table_at = end.table_at;
    p->table_len = (size_t)end.table_bytes;
    p->table = act_alloc(p->table_len + 1);
    p->v = act_calloc(end.entries + 1, sizeof(*p->v));
    if (act_pread_all(p->fd, p->table, p->table_len, (off_t)p->table_at) != (ssize_t)p->table_len)
        return false;
    while (p->n < end.entries)
        if (!parts_take_record(p, &at))
            return false;
    p->v[p->n] = (struct parts_entry){.at = p->table_at, .record = at};
    for (size_t i = 0; i < p->n; i++)
        p->v[i].id =
            parts_id(p->table + p->v[i].record, p->v[i + 1].record - p->v[i].record, p->v[i + 1].at - p->v[i].at);
    return p->n > 0 && at == p->table_len;
}

bool parts_open(const char *path, struct parts *out)
{
    *out = (struct parts){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
    const bool is_one = parts_read(out);

    if (!is_one)
        parts_release(out);
    return is_one;
}

void parts_release(struct parts *parts)
{
    if (parts->fd >= 0)
        close(parts->fd);
    free(parts->table);
    free(parts->v);
    *parts = (struct parts){.fd = -1};
}

/* ---- ids ---- */

void parts_add_ids(const struct parts *parts, struct act_buf *out)
{
    for (size_t i = 0; i < parts->n; i++)
        act_buf_add(out, &parts->v[i].id, PARTS_ID_BYTES);
}

static int parts_by_id(const void *a, const void *b)
{
    uint64_t x, y;

    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

void parts_add_sketch(const struct parts *parts, struct act_buf *out)
{
    struct act_buf ids = {0};

    if (parts->n == 0) /* qsort() takes no NULL */
        return;
    parts_add_ids(parts, &ids);
    qsort(ids.data, parts->n, PARTS_ID_BYTES, parts_by_id);
    act_buf_add(out, ids.data, (parts->n < PARTS_SKETCH ? parts->n : PARTS_SKETCH) * PARTS_ID_BYTES);
    act_buf_release(&ids);
}

/* ---- what is copied, and what is sent ---- */

/* An entry of the base. */
struct parts_known {
    uint64_t id; /* first, for parts_by_id() */
    size_t i;
};

static struct parts_known *parts_sort_known(const struct act_buf *ids, size_t n)
{
    struct parts_known *known = act_calloc(n + 1, sizeof(*known));

    for (size_t i = 0; i < n; i++) {
        memcpy(&known[i].id, ids->data + i * PARTS_ID_BYTES, PARTS_ID_BYTES);
        known[i].i = i;
    }
    qsort(known, n, sizeof(*known), parts_by_id);
    return known;
}

/* Adds an entry to the steps: a copy of the one of the base, or of the package itself if that is NULL. */
static void parts_plan_add(size_t own, const struct parts_known *found, struct parts_step **steps, size_t *n)
{
    struct parts_step *last = *n ? &(*steps)[*n - 1] : NULL;

    if (last && !found) {
        last->own_first = last->own_n ? last->own_first : own;
        last->own_n++;
    } else if (last && found && last->own_n == 0 && last->base_first + last->base_n == found->i) {
        last->base_n++;
    } else {
        struct parts_step step = found ? (struct parts_step){.base_first = found->i, .base_n = 1}
                                       : (struct parts_step){.own_first = own, .own_n = 1};
        ACT_PUSH(*steps, *n, step);
    }
}

size_t parts_plan(const struct parts *own, const struct act_buf *base_ids, struct parts_step **out, size_t *out_n)
{
    const size_t n = base_ids->len / PARTS_ID_BYTES;
    ACT_AUTOFREE struct parts_known *known = parts_sort_known(base_ids, n);
    size_t copied = 0;

    *out = NULL;
    *out_n = 0;
    for (size_t i = 0; i < own->n; i++) {
        const struct parts_known *found = bsearch(&own->v[i].id, known, n, sizeof(*known), parts_by_id);
        parts_plan_add(i, found, out, out_n);
        copied += found != NULL;
    }
    return copied;
}
