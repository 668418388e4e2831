/* here_parts.c - the site's side of parts.h: which package is a base for a new one, and how that is put together. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "site/parts.h"
#include "site/site_internal.h"

enum {
    LOOKED_AT = 16,   /* of the last packages: each costs reading its table of contents */
    IDS_WORTH = 8,    /* ids are at most one of so many parts of the package */
    SKETCH_ENOUGH = 2 /* a base with one of so many of the sketch is good: no other one is looked for */
};

/* ---- the base ---- */

/* A package that was brought. */
struct kept_package {
    char *path;
    int64_t brought_ns;
};

static int by_brought(const void *a, const void *b)
{
    const struct kept_package *x = a, *y = b;

    return (y->brought_ns > x->brought_ns) - (y->brought_ns < x->brought_ns);
}

/* Lists them, the last one first. New; so are the paths. */
static struct kept_package *list_packages(const struct site *site, size_t *out_n)
{
    ACT_AUTOFREE char *folder = act_path_join(site->root, "packages");
    struct kept_package *v = NULL;
    DIR *d = opendir(folder);
    struct stat st;

    *out_n = 0;
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (!act_ends_with(e->d_name, ".zip") || strlen(e->d_name) != ACT_SHA256_HEX - 1 + strlen(".zip") ||
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        struct kept_package package = {act_path_join(folder, e->d_name),
                                       st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec};
        ACT_PUSH(v, *out_n, package);
    }
    if (d)
        closedir(d);
    if (*out_n)
        qsort(v, *out_n, sizeof(*v), by_brought);
    return v;
}

/* Returns how many ids of the sketch are among the entries. */
static size_t parts_hits(const struct parts *parts, const struct act_buf *sketch)
{
    size_t hits = 0;

    for (size_t i = 0; i < parts->n; i++)
        for (size_t at = 0; at + PARTS_ID_BYTES <= sketch->len; at += PARTS_ID_BYTES)
            hits += memcmp(sketch->data + at, &parts->v[i].id, PARTS_ID_BYTES) == 0;
    return hits;
}

/* Takes the package as the base if that has more of the sketch than the best one before. Returns the most. */
static size_t offer_if_better(const char *path, const struct act_buf *sketch, int64_t bytes, size_t best,
                              json_t *answer, struct act_buf *out_ids)
{
    struct parts parts;

    if (!parts_open(path, &parts))
        return best;
    const size_t ids = parts.n * PARTS_ID_BYTES;
    const bool may_be = ids <= PARTS_IDS_MAX_BYTES && (int64_t)ids <= bytes / IDS_WORTH;
    const size_t hits = may_be ? parts_hits(&parts, sketch) : 0;
    const bool is_better = hits > best;
    if (is_better) {
        json_object_set_new(answer, "base", json_stringn(act_path_basename(path), ACT_SHA256_HEX - 1));
        out_ids->len = 0;
        parts_add_ids(&parts, out_ids);
    }
    parts_release(&parts);
    return is_better ? hits : best;
}

void here_offer_base(const struct site *site, const struct frame *request, json_t *answer, struct act_buf *out_ids)
{
    const int64_t bytes = codec_json_int(json_object_get(request->head, "package"), "bytes", 0);
    const struct act_buf *sketch = &request->parts[0];
    size_t n, best = 0;
    struct kept_package *packages = list_packages(site, &n);

    for (size_t i = 0; i < n; i++) {
        if (i < LOOKED_AT && best * SKETCH_ENOUGH * PARTS_ID_BYTES < sketch->len)
            best = offer_if_better(packages[i].path, sketch, bytes, best, answer, out_ids);
        free(packages[i].path);
    }
    free(packages);
}

/* ---- putting it together ---- */

/* A package that is being put together. */
struct assembly {
    struct channel *channel;
    int channel_rc; /* below 0: nothing more comes */
    struct parts base;
    const char *path; /* of what is written, for messages */
    int fd;
    uint64_t written, most;
    struct act_sha256 hash;
    struct act_buf table; /* the new one */
    int rc;               /* the first error, which err tells */
    bool is_wrong;        /* a step is not possible with this base */
    struct act_error *err;
};

static void assembly_write(struct assembly *a, const void *data, size_t len)
{
    a->is_wrong = a->is_wrong || len > a->most - a->written;
    if (a->rc < 0 || a->is_wrong || len == 0)
        return;
    act_sha256_add(&a->hash, data, len);
    a->written += len;
    if (act_write_all(a->fd, data, len) < 0)
        a->rc = act_error_errno(a->err, errno, "cannot write '%s'", a->path);
}

/* Takes len bytes of what was sent: into the table, or the file itself. */
static void assembly_receive(struct assembly *a, uint64_t len, bool into_table)
{
    ACT_AUTOFREE char *chunk = act_alloc(CHANNEL_BUFFER);
    struct act_error lost;

    while (len > 0 && a->channel_rc == 0) {
        size_t got = 0;
        a->channel_rc =
            channel_read_some(a->channel, chunk, len < CHANNEL_BUFFER ? (size_t)len : CHANNEL_BUFFER, &got, &lost);
        if (a->channel_rc < 0) {
            *a->err = lost;
            a->rc = a->channel_rc;
            return;
        }
        len -= got;
        if (into_table)
            act_buf_add(&a->table, chunk, got);
        else
            assembly_write(a, chunk, got);
    }
}

/* Appends the records of these entries, which are elsewhere now. */
static void assembly_add_records(struct assembly *a, size_t first, size_t n)
{
    const struct parts_entry *v = a->base.v;

    for (size_t i = first; i < first + n; i++) {
        const uint32_t offset = (uint32_t)(v[i].at - v[first].at + a->written);
        const uint8_t bytes[] = {(uint8_t)offset, (uint8_t)(offset >> 8), (uint8_t)(offset >> 16),
                                 (uint8_t)(offset >> 24)};
        const size_t at = a->table.len;
        act_buf_add(&a->table, a->base.table + v[i].record, v[i + 1].record - v[i].record);
        memcpy(a->table.data + at + PARTS_RECORD_OFFSET, bytes, sizeof(bytes));
    }
}

static void assembly_copy(struct assembly *a, uint64_t first, uint64_t n)
{
    ACT_AUTOFREE char *chunk = act_alloc(CHANNEL_BUFFER);

    a->is_wrong = a->is_wrong || first > a->base.n || n > a->base.n - first;
    if (a->rc < 0 || a->is_wrong || n == 0)
        return;
    assembly_add_records(a, (size_t)first, (size_t)n);
    uint64_t at = a->base.v[first].at, left = a->base.v[first + n].at - at;
    while (left > 0 && a->rc == 0 && !a->is_wrong) {
        const size_t len = left < CHANNEL_BUFFER ? (size_t)left : CHANNEL_BUFFER;
        a->is_wrong = act_pread_all(a->base.fd, chunk, len, (off_t)at) != (ssize_t)len;
        assembly_write(a, chunk, len);
        at += len;
        left -= len;
    }
}

static uint64_t number_of(const json_t *row, size_t i)
{
    const json_t *value = json_array_get(row, i);

    return json_is_integer(value) && json_integer_value(value) >= 0 ? (uint64_t)json_integer_value(value) : UINT64_MAX;
}

/* Carries out the steps, rows of [first of the base, how many, bytes of the own table, bytes of own entries]. */
static void assembly_steps(struct assembly *a, const json_t *steps, uint64_t end_bytes)
{
    const json_t *row;
    size_t i;

    json_array_foreach(steps, i, row)
    {
        assembly_copy(a, number_of(row, 0), number_of(row, 1));
        assembly_receive(a, number_of(row, 2), true);
        assembly_receive(a, number_of(row, 3), false);
        a->is_wrong = a->is_wrong || a->table.len > a->most - a->written; /* it must fit as well */
    }
    assembly_write(a, a->table.data, a->table.len);
    assembly_receive(a, end_bytes, false);
}

/* Tells whether the bytes that follow the request are what its steps say. Else nobody knows where the next one is. */
static bool is_order_sound(const json_t *request)
{
    const json_t *steps = json_object_get(request, "steps"), *row;
    const uint64_t whole = (uint64_t)codec_json_int(request, "bytes", 0);
    uint64_t end = (uint64_t)codec_json_int(request, "end", -1), left = whole;
    size_t i;

    if (whole > UINT32_MAX || end > left || !json_is_array(steps) ||
        !act_is_hex(codec_json_str(request, "sha256", ""), ACT_SHA256_HEX - 1) ||
        !act_is_hex(codec_json_str(request, "base", ""), ACT_SHA256_HEX - 1))
        return false;
    left -= end;
    json_array_foreach(steps, i, row)
    {
        for (size_t k = 2; k < 4; k++) {
            if (number_of(row, k) > left)
                return false;
            left -= number_of(row, k);
        }
    }
    return true;
}

/* Removes a base that is not what its name says, so that it is no base again. */
static void drop_damaged_base(const char *path, const char *sha256)
{
    char found[ACT_SHA256_HEX];
    struct act_error ignored;

    if (act_sha256_file(path, found, &ignored) == 0 && !act_streq(found, sha256))
        unlink(path);
}

static int assembly_run(struct assembly *a, const json_t *request, bool *out_whole)
{
    char sha256[ACT_SHA256_HEX];

    act_sha256_init(&a->hash);
    assembly_steps(a, json_object_get(request, "steps"), (uint64_t)codec_json_int(request, "end", 0));
    act_sha256_done(&a->hash, sha256);
    if (a->rc == 0 && !a->is_wrong && fsync(a->fd) < 0)
        a->rc = act_error_errno(a->err, errno, "cannot write '%s'", a->path);
    *out_whole = a->rc == 0 && (a->is_wrong || !act_streq(sha256, codec_json_str(request, "sha256", "")));
    return a->rc;
}

int here_put_together(const struct site *site, struct channel *channel, const json_t *request, bool *out_whole,
                      int *out_channel_rc, struct act_error *err)
{
    const char *base = codec_json_str(request, "base", "");

    *out_whole = false;
    if (!is_order_sound(request))
        return *out_channel_rc = act_error_set(err, ACT_USAGE, "the request has no valid 'steps'");
    ACT_AUTOFREE char *path = here_package_path(site, codec_json_str(request, "sha256", ""));
    ACT_AUTOFREE char *base_path = here_package_path(site, base);
    struct assembly a = {
        .channel = channel, .path = path, .err = err, .fd = -1, .most = (uint64_t)codec_json_int(request, "bytes", 0)};
    struct here_filling f;
    a.is_wrong = !parts_open(base_path, &a.base);
    a.rc = here_fill(site, act_path_basename(path), &f, err);
    if (a.rc == 0)
        a.fd = open(f.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (a.rc == 0 && a.fd < 0)
        a.rc = act_error_errno(err, errno, "cannot write '%s'", f.path);
    int rc = assembly_run(&a, request, out_whole);
    if (a.fd >= 0 && close(a.fd) < 0 && rc == 0)
        rc = act_error_errno(err, errno, "cannot write '%s'", path);
    *out_channel_rc = a.channel_rc;
    act_buf_release(&a.table);
    parts_release(&a.base);
    if (rc < 0 || !*out_whole)
        return here_publish(&f, path, rc, err);
    drop_damaged_base(base_path, base);
    unlink(f.path);
    here_filling_release(&f);
    return 0;
}
