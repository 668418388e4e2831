/* index.c - what the last package of a project was made of, in a file for this machine only.
 *
 *   head | blocks | records, in the order of the package | paths | SHA-256 of all before
 *
 * It is replaced atomically but not synced: the checksum shows whether a power cut tore it. Records of files that
 * were changed less than FRESH_NS before the tree was read are marked, because file systems' clocks tick slowly, and
 * a later change may have left the same time stamps.
 */
#include "package/package_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "base/temp.h"
#include "base/text.h"

enum { CHECKSUM = ACT_SHA256_HEX - 1 };

#define FRESH_NS  (2 * INT64_C(1000000000))
#define MAX_INDEX ((size_t)4 << 30)
#define MAGIC     "act package index 6" /* also another one when the judge knows more */

struct head {
    char magic[32], made_with[64];
    char sha256[ACT_SHA256_HEX];
    uint64_t bytes, n_blocks, n, path_bytes;
};

struct index_record {
    uint64_t size, inode, offset, data, packed;
    int64_t mtime_ns, ctime_ns;
    uint32_t mode, crc, path_len;
    uint32_t fresh;
};

static void begin_head(struct head *h)
{
    *h = (struct head){.magic = MAGIC};
    snprintf(h->made_with, sizeof(h->made_with), "%s libzip %s", package_deflate_version(), package_zip_version());
}

static void checksum(const void *data, size_t len, char out[ACT_SHA256_HEX])
{
    struct act_sha256 h;

    act_sha256_init(&h);
    act_sha256_add(&h, data, len);
    act_sha256_done(&h, out);
}

/* Reading */

static bool index_is_whole(const char *data, size_t len)
{
    char sum[ACT_SHA256_HEX];

    if (len < sizeof(struct head) + CHECKSUM)
        return false;
    checksum(data, len - CHECKSUM, sum);
    return memcmp(sum, data + len - CHECKSUM, CHECKSUM) == 0;
}

/* The checksum shows that we wrote it; the lengths are still checked. */
static bool index_fits(const struct head *h, size_t len)
{
    struct head ours;

    begin_head(&ours);
    return memcmp(h->magic, ours.magic, sizeof(ours.magic)) == 0 &&
           memcmp(h->made_with, ours.made_with, sizeof(ours.made_with)) == 0 && h->n_blocks < len && h->n < len &&
           h->path_bytes < len &&
           len == sizeof(*h) + h->n_blocks * sizeof(struct package_block) + h->n * sizeof(struct index_record) +
                      h->path_bytes + CHECKSUM;
}

static struct package_known known_of(const struct index_record *r, const char *path)
{
    return (struct package_known){.path = path,
                                  .size = r->size,
                                  .inode = r->inode,
                                  .mtime_ns = r->mtime_ns,
                                  .ctime_ns = r->ctime_ns,
                                  .mode = r->mode,
                                  .fresh = r->fresh,
                                  .item = {.offset = r->offset, .data = r->data, .packed = r->packed, .crc = r->crc}};
}

/* Checks that the blocks are all of the package, in order. */
static bool covers(const struct package_block *blocks, size_t n, uint64_t bytes)
{
    uint64_t at = 0;

    for (size_t i = 0; i < n; at += blocks[i++].len)
        if (blocks[i].offset != at || blocks[i].len > bytes - at)
            return false;
    return at == bytes;
}

/* data + at may not be aligned. */
static bool index_unpack(const char *data, const struct head *h, struct package_index *out)
{
    size_t at = sizeof(*h), path = 0;
    struct index_record r;

    out->blocks = act_calloc(h->n_blocks + 1, sizeof(*out->blocks));
    memcpy(out->blocks, data + at, h->n_blocks * sizeof(*out->blocks));
    out->n_blocks = h->n_blocks;
    at += h->n_blocks * sizeof(*out->blocks);
    out->text = act_alloc(h->path_bytes + 1);
    memcpy(out->text, data + at + h->n * sizeof(r), h->path_bytes);
    out->text[h->path_bytes] = '\0';
    out->v = act_calloc(h->n + 1, sizeof(*out->v));
    for (size_t i = 0; i < h->n; i++, at += sizeof(r)) {
        memcpy(&r, data + at, sizeof(r));
        if (path >= h->path_bytes || strlen(out->text + path) != r.path_len || r.offset > r.data || r.data > h->bytes ||
            r.packed > h->bytes - r.data)
            return false;
        out->v[out->n++] = known_of(&r, out->text + path);
        path += r.path_len + 1;
    }
    memcpy(out->sha256, h->sha256, sizeof(out->sha256));
    out->bytes = h->bytes;
    return covers(out->blocks, out->n_blocks, out->bytes);
}

void package_index_load(const char *path, struct package_index *out)
{
    char *data = NULL;
    size_t len = 0;
    struct head h;

    *out = (struct package_index){0};
    if (!path || act_file_read(path, MAX_INDEX, &data, &len, NULL) < 0)
        return;
    if (index_is_whole(data, len)) {
        memcpy(&h, data, sizeof(h));
        if (index_fits(&h, len) && !index_unpack(data, &h, out))
            package_index_release(out);
    }
    free(data);
}

void package_index_release(struct package_index *index)
{
    free(index->v);
    free(index->blocks);
    free(index->text);
    *index = (struct package_index){0};
}

static const struct package_known *index_find_known(const struct package_index *index, const char *path)
{
    return index->n ? bsearch(&path, index->v, index->n, sizeof(*index->v), act_by_text) : NULL;
}

/* Compares name and mode alone of a folder: the package has nothing else of it. */
static bool looks_same(const struct package_known *k, const struct package_entry *e)
{
    return k->mode == e->mode && (S_ISDIR(e->mode) || (k->size == e->size && k->inode == e->inode &&
                                                       k->mtime_ns == e->mtime_ns && k->ctime_ns == e->ctime_ns));
}

const struct package_known *package_index_find(const struct package_index *index, const struct package_entry *entry)
{
    const struct package_known *k = index_find_known(index, entry->path);

    return k && looks_same(k, entry) && (!k->fresh || S_ISDIR(entry->mode)) ? k : NULL;
}

static bool is_file_below(const struct package_known *k, const char *root)
{
    ACT_AUTOFREE char *path = act_path_join(root, k->path);
    struct stat st;

    return S_ISREG(k->mode) && lstat(path, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_ino == k->inode &&
           (uint64_t)st.st_size == k->size && act_timespec_ns(st.st_mtim) == k->mtime_ns;
}

bool package_index_is_of(const char *index, const char *root)
{
    struct package_index known;
    bool found = false;

    package_index_load(index, &known);
    for (size_t i = 0; i < known.n && !found; i++)
        found = is_file_below(&known.v[i], root);
    package_index_release(&known);
    return found;
}

/* Comparing */

static void add_change(struct package_summary *out, const char *path, bool is_gone)
{
    if (out->n_changed++ < PACKAGE_NAMED)
        act_strv_pushf(&out->changed, is_gone ? "%s (gone)" : "%s", path);
}

static bool index_has_changed(const struct package_index *index, const struct package_entry *e,
                              const struct package_item *item)
{
    const struct package_known *k = index_find_known(index, e->path);

    if (!k || k->mode != e->mode)
        return true;
    return item ? k->item.crc != item->crc || k->size != e->size : !looks_same(k, e);
}

/* Both are in order. Folders are not counted: their files are. */
void package_index_compare(const struct package_index *index, const struct package_list *list,
                           const struct package_item *items, struct package_summary *out)
{
    size_t gone = 0;

    out->is_first = index->n_blocks == 0;
    out->changed_bytes = out->is_first ? list->bytes : 0;
    for (size_t i = 0; !out->is_first && i <= list->n; i++) {
        const struct package_entry *e = i < list->n ? &list->v[i] : NULL;
        for (; gone < index->n && (!e || strcmp(index->v[gone].path, e->path) < 0); gone++)
            if (!S_ISDIR(index->v[gone].mode))
                add_change(out, index->v[gone].path, true);
        if (!e)
            continue;
        if (gone < index->n && act_streq(index->v[gone].path, e->path))
            gone++;
        if (S_ISDIR(e->mode) || !index_has_changed(index, e, items ? &items[i] : NULL))
            continue;
        add_change(out, e->path, false);
        out->changed_bytes += e->size;
    }
}

/* Writing */

static void add_record(struct act_buf *b, const struct package_entry *e, const struct package_item *item,
                       int64_t started_ns)
{
    struct index_record r = {.size = e->size,
                             .inode = e->inode,
                             .offset = item->offset,
                             .data = item->data,
                             .packed = item->packed,
                             .mtime_ns = e->mtime_ns,
                             .ctime_ns = e->ctime_ns,
                             .mode = e->mode,
                             .crc = item->crc,
                             .path_len = (uint32_t)strlen(e->path),
                             .fresh = e->mtime_ns > started_ns - FRESH_NS || e->ctime_ns > started_ns - FRESH_NS};

    act_buf_add(b, &r, sizeof(r));
}

static void pack_index(struct act_buf *b, const struct package_list *list, const struct package_item *items,
                       const struct package_summary *summary)
{
    struct head h;
    char sum[ACT_SHA256_HEX];

    begin_head(&h);
    memcpy(h.sha256, summary->sha256, sizeof(h.sha256));
    h.bytes = summary->bytes;
    h.n_blocks = summary->n_blocks;
    h.n = list->n;
    for (size_t i = 0; i < list->n; i++)
        h.path_bytes += strlen(list->v[i].path) + 1;
    act_buf_add(b, &h, sizeof(h));
    act_buf_add(b, summary->blocks, summary->n_blocks * sizeof(*summary->blocks));
    for (size_t i = 0; i < list->n; i++)
        add_record(b, &list->v[i], &items[i], list->started_ns);
    for (size_t i = 0; i < list->n; i++)
        act_buf_add(b, list->v[i].path, strlen(list->v[i].path) + 1);
    checksum(b->data, b->len, sum);
    act_buf_add(b, sum, CHECKSUM);
}

int package_index_save(const char *path, const struct package_list *list, const struct package_item *items,
                       const struct package_summary *summary, struct act_error *err)
{
    ACT_AUTO(act_buf) b = {0};
    ACT_AUTOFREE char *folder = act_path_dirname(path);
    ACT_AUTOFREE char *temp = NULL;
    int fd = act_temp_open(folder, &temp), rc = 0;

    if (fd < 0)
        return act_error_errno(err, errno, "cannot write '%s'", path);
    pack_index(&b, list, items, summary);
    if (act_write_all(fd, b.data, b.len) < 0 || rename(temp, path) < 0) {
        rc = act_error_errno(err, errno, "cannot write '%s'", path);
        unlink(temp);
    }
    close(fd);
    return rc;
}
