/* write.c - the zip of a scanned list: workers make its bytes, the loop puts them in order.
 *
 *   list ──► plan ──► jobs (workers) ──► retire, in the order of the list: write, hash, cut into blocks
 *
 * The plan goes through the list once. Entries that the index knows become COPY jobs, as large as they lie
 * together in one block of the last package; small files, links and folders are batched; a large file goes
 * piece by piece. What is under way is bounded by memory; jobs start in order, so the one that everybody waits
 * for is always under way.
 *
 * What goes into the archive depends on the list and the files' content alone: neither on the number of workers
 * nor on what the last package had. Blocks end after an entry whose path says so, so that they fall the same way
 * again behind a change. Their ids are computed on workers from the file that was written, unless the block is
 * one of the last package.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "package/job.h"

enum {
    PIECE = PACKAGE_JUDGED, /* files up to this size are compressed whole */
    BATCH = 256 << 10,      /* bytes of small files that one worker takes at once */
    BATCH_ENTRIES = 256,    /* the same for folders, links and tiny files */
    MEMORY = 32 << 20,      /* for jobs under way; compressors and the lists come on top */
    JOBS = 128,             /* under way */
    WIDE = 4 << 20,         /* larger files have blocks of their own */
    PIECES_PER_BLOCK = 4,   /* of these */
    BLOCK_MIN = 256 << 10,  /* no border before: little, as borders that are passed over move those behind */
    BLOCK_SPREAD_BITS = 20, /* then one within about a MiB */
    BLOCK_MAX = 4 << 20,    /* a border after the entry that reaches this */
    DIRECTORY_CHUNK = 1 << 20,
    FIRST_PROGRESS_MS = 1000, /* what takes less is not worth a word */
    PROGRESS_MS = 200,
};

/* An archive without entries is a warning to unzip. */
static const char empty_marker[] = ".act-empty";

/* A job on its way through the build. */
struct step {
    struct package_job job;
    struct build *build;
    size_t first;    /* its first entry */
    uint64_t from;   /* where in that entry it begins: in the file (PIECE) or in its bytes (COPY) */
    bool ends_entry; /* the last of a file in pieces, or of a wide entry that is copied */
    size_t memory;
    bool ready;
    struct step *next;
};

struct digest {
    struct build *build;
    size_t block;
    struct package_block range;
    int errnum;
};

struct build {
    const struct package_options *options;
    const struct package_list *list;
    const struct package_output *output;
    struct package_index last;
    int root_fd, last_fd, fd;

    /* the plan */
    size_t next;        /* the entry at hand */
    uint64_t next_from; /* what of it is in jobs already */

    /* under way */
    struct step *first, **end; /* in order */
    size_t jobs, digests;
    uint64_t memory;
    struct package_deflaters *deflaters;
    bool *good_blocks; /* of the last package: verified */

    /* the archive */
    struct package_item *items;
    uint64_t at;
    struct act_sha256 sha;
    struct package_summary *out;
    size_t cap_blocks;
    uint64_t block_start;
    bool block_copied;   /* all of the block so far is one range of the last package, */
    int64_t block_shift; /* so many bytes further ahead there */

    struct package_progress progress;
    int64_t shown_ms;
    bool is_complete, is_over;
    bool is_damaged; /* the last package is */
    int rc;
    struct act_error error;
};

static bool is_piecewise(const struct package_entry *e)
{
    return S_ISREG(e->mode) && e->size > PIECE;
}

static bool is_wide(const struct package_entry *e)
{
    return S_ISREG(e->mode) && e->size > WIDE;
}

/* Blocks */

/* The last package's block that this one is, or NULL. */
static const struct package_block *find_block(const struct package_index *last, uint64_t offset)
{
    size_t low = 0, high = last->n_blocks;

    while (high - low > 1) {
        size_t mid = (low + high) / 2;
        if (last->blocks[mid].offset <= offset)
            low = mid;
        else
            high = mid;
    }
    return &last->blocks[low];
}

static const struct package_block *same_block(const struct build *b, uint64_t len)
{
    if (!b->block_copied)
        return NULL;
    uint64_t there = (uint64_t)((int64_t)b->block_start - b->block_shift);
    const struct package_block *block = find_block(&b->last, there);
    return block->offset == there && block->len == len ? block : NULL;
}

static void run_digest(void *arg)
{
    struct digest *d = arg;
    char *data = act_alloc(d->range.len);

    if (act_pread_all(d->build->fd, data, d->range.len, (off_t)d->range.offset) != (ssize_t)d->range.len)
        d->errnum = errno ? errno : EIO;
    package_block_sum(&d->range, data);
    free(data);
}

static void go_on(struct build *b);

static int fail_output(struct build *b, int errnum)
{
    return act_error_errno(&b->error, errnum, "cannot write a package in '%s'", b->output->folder);
}

static void digest_done(void *arg)
{
    struct digest *d = arg;
    struct build *b = d->build;

    if (d->errnum && b->rc == 0)
        b->rc = fail_output(b, d->errnum);
    b->out->blocks[d->block] = d->range;
    b->digests--;
    free(d);
    go_on(b);
}

static void add_block(struct build *b, struct package_block block, bool has_id)
{
    struct package_summary *out = b->out;

    if (out->n_blocks == b->cap_blocks) {
        b->cap_blocks = b->cap_blocks ? 2 * b->cap_blocks : 64;
        out->blocks = act_realloc(out->blocks, b->cap_blocks * sizeof(*out->blocks));
    }
    out->blocks[out->n_blocks++] = block;
    if (has_id)
        return;
    struct digest *d = act_calloc(1, sizeof(*d));
    *d = (struct digest){.build = b, .block = out->n_blocks - 1, .range = block};
    b->digests++;
    engine_work(b->output->engine, run_digest, digest_done, d);
}

/* Ends a block at an offset up to which everything is written. */
static void cut(struct build *b, uint64_t at)
{
    struct package_block block = {.offset = b->block_start, .len = at - b->block_start};

    if (block.len == 0)
        return;
    const struct package_block *same = same_block(b, block.len);
    if (same) {
        block.crc64 = same->crc64;
        memcpy(block.id, same->id, sizeof(block.id));
    }
    add_block(b, block, same != NULL);
    b->block_start = at;
}

/* Says of the bytes at an offset where they come from; a job makes new ones or copies with one shift. */
static void note_origin(struct build *b, uint64_t at, const struct step *s)
{
    bool copied = s && s->job.kind == PACKAGE_COPY;
    int64_t shift = copied ? (int64_t)b->at - (int64_t)s->job.n_bytes - (int64_t)s->job.offset : 0;

    if (at == b->block_start)
        b->block_copied = copied;
    else
        b->block_copied = b->block_copied && copied && b->block_shift == shift;
    b->block_shift = shift;
}

/* FNV-1a, its bits mixed once more. */
static uint64_t hash_path(const char *path)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (; *path; path++)
        h = (h ^ (uint8_t)*path) * UINT64_C(0x100000001b3);
    h ^= h >> 32;
    return h * UINT64_C(0x9e3779b97f4a7c15);
}

/* The longer an entry, the likelier; so blocks have about the same size whatever the files have. */
static bool is_border(const struct build *b, const char *path, uint64_t entry_len, uint64_t end)
{
    uint64_t len = end - b->block_start;

    return len >= BLOCK_MAX || (len >= BLOCK_MIN && hash_path(path) >> (64 - BLOCK_SPREAD_BITS) < entry_len);
}

/* The archive, in order */

static void emit(struct build *b, const void *data, size_t len)
{
    if (b->rc < 0)
        return;
    if (act_write_all(b->fd, data, len) < 0) {
        b->rc = fail_output(b, errno);
        return;
    }
    act_sha256_add(&b->sha, data, len);
    b->at += len;
}

/* An entry is in the archive with all its bytes. */
static void close_entry(struct build *b, size_t i)
{
    const struct package_entry *entry = &b->list->v[i];
    uint64_t end = b->items[i].offset + b->items[i].len;

    b->progress.done_entries++;
    if (is_wide(entry) || is_border(b, entry->path, b->items[i].len, end))
        cut(b, end);
}

static void retire_batch(struct build *b, const struct step *s)
{
    uint64_t base = b->at;

    emit(b, s->job.bytes, s->job.n_bytes);
    for (size_t i = s->first; i < s->first + s->job.n && b->rc == 0; i++) {
        b->items[i].offset += base;
        note_origin(b, b->items[i].offset, s);
        close_entry(b, i);
        b->progress.done_bytes += S_ISREG(b->list->v[i].mode) ? b->list->v[i].size : 0;
    }
}

static void emit_buf(struct build *b, struct act_buf *buf)
{
    emit(b, buf->data, buf->len);
    act_buf_release(buf);
}

static void open_pieces(struct build *b, size_t i)
{
    const struct package_entry *entry = &b->list->v[i];
    struct act_buf header = {0};

    if (is_wide(entry))
        cut(b, b->at);
    b->items[i] = (struct package_item){
        .offset = b->at, .size = entry->size, .method = PACKAGE_DEFLATED, .streamed = true};
    package_zip_local(&header, entry->path, &b->items[i]);
    emit_buf(b, &header);
}

static void retire_piece(struct build *b, const struct step *s)
{
    struct package_item *item = &b->items[s->first];
    struct act_buf descriptor = {0};

    if (s->from == 0)
        open_pieces(b, s->first);
    note_origin(b, item->offset, s);
    item->crc = package_crc_join(item->crc, s->job.crc, s->job.len);
    item->packed += s->job.n_bytes;
    emit(b, s->job.bytes, s->job.n_bytes);
    b->progress.done_bytes += s->job.len;
    if (s->ends_entry) {
        package_zip_descriptor(&descriptor, item);
        emit_buf(b, &descriptor);
        item->len = b->at - item->offset;
        close_entry(b, s->first);
    } else if (is_wide(&b->list->v[s->first]) && (s->from / PIECE + 1) % PIECES_PER_BLOCK == 0) {
        cut(b, b->at);
    }
}

/* Wide entries come block by block, and keep their borders. */
static void retire_wide_copy(struct build *b, const struct step *s)
{
    if (s->from == 0) {
        cut(b, b->at);
        b->items[s->first].offset = b->at;
    }
    uint64_t at = b->at;
    emit(b, s->job.bytes, s->job.n_bytes);
    note_origin(b, at, s);
    if (!s->ends_entry) {
        cut(b, b->at);
        return;
    }
    close_entry(b, s->first);
    b->progress.done_bytes += b->list->v[s->first].size;
}

static void retire_copy(struct build *b, const struct step *s)
{
    if (is_wide(&b->list->v[s->first]))
        retire_wide_copy(b, s);
    else
        retire_batch(b, s);
}

static void show_progress(struct build *b)
{
    int64_t now = act_now_monotonic_ms();

    if (!b->output->progress || now - b->shown_ms < PROGRESS_MS)
        return;
    b->shown_ms = now;
    b->output->progress(b->output->arg, &b->progress);
}

static void retire(struct build *b, struct step *s)
{
    static void (*const how[])(struct build *, const struct step *) = {
        [PACKAGE_BATCH] = retire_batch, [PACKAGE_PIECE] = retire_piece, [PACKAGE_COPY] = retire_copy};

    if (b->rc == 0 && s->job.rc < 0) {
        b->rc = s->job.rc;
        b->error = s->job.error;
        b->is_damaged = s->job.is_damaged;
    }
    if (b->rc == 0)
        how[s->job.kind](b, s);
    b->memory -= s->memory;
    free(s->job.buffer);
    free(s);
    show_progress(b);
}

static void add_marker(struct build *b, struct act_buf *directory)
{
    const struct package_item item = {.method = PACKAGE_STORED};
    struct act_buf header = {0};

    package_zip_local(&header, empty_marker, &item);
    emit_buf(b, &header);
    package_zip_central(directory, empty_marker, S_IFREG | 0644, &item);
}

/* The table of contents, and with it the end. */
static void complete(struct build *b)
{
    const struct package_list *list = b->list;
    struct act_buf directory = {0};
    uint64_t start;

    if (list->n == 0)
        add_marker(b, &directory);
    cut(b, b->at);
    note_origin(b, b->at, NULL);
    start = b->at;
    for (size_t i = 0; i < list->n; i++) {
        package_zip_central(&directory, list->v[i].path, list->v[i].mode, &b->items[i]);
        if (directory.len >= DIRECTORY_CHUNK)
            emit_buf(b, &directory);
        if (b->at - b->block_start >= BLOCK_MAX)
            cut(b, b->at);
    }
    package_zip_end(&directory, list->n ? list->n : 1, start, b->at + directory.len - start);
    emit_buf(b, &directory);
    if (b->rc == 0)
        cut(b, b->at);
    b->is_complete = true;
}

/* The plan */

static const struct package_known *known(const struct build *b, size_t i)
{
    return package_index_find(&b->last, &b->list->v[i]);
}

/* Whole entries that lie one behind the other in the same block, from k, the one at hand. */
static void plan_copies(struct build *b, struct step *s, const struct package_known *k)
{
    uint64_t end = s->job.block->offset + s->job.block->len;

    s->job.offset = k->item.offset;
    do {
        b->items[b->next] = k->item;
        b->items[b->next].offset = s->job.len;
        s->job.len += k->item.len;
        s->job.n++;
        b->next++;
        k = b->next < b->list->n ? known(b, b->next) : NULL;
    } while (k && !is_wide(&b->list->v[b->next]) && k->item.offset == s->job.offset + s->job.len &&
             k->item.offset + k->item.len <= end);
}

static void plan_wide_copy(struct build *b, struct step *s, const struct package_known *k)
{
    uint64_t block_end = s->job.block->offset + s->job.block->len, end = k->item.offset + k->item.len;

    s->job.offset = k->item.offset + b->next_from;
    s->job.len = (end < block_end ? end : block_end) - s->job.offset;
    s->job.n = 1;
    if (b->next_from == 0)
        b->items[b->next] = k->item;
    b->next_from += s->job.len;
    s->ends_entry = end <= block_end;
}

static void plan_copy(struct build *b, struct step *s, const struct package_known *k)
{
    s->job.kind = PACKAGE_COPY;
    s->job.last_fd = b->last_fd;
    s->job.block = find_block(&b->last, k->item.offset + b->next_from);
    s->job.is_good = b->good_blocks[s->job.block - b->last.blocks];
    if (is_wide(&b->list->v[b->next]))
        plan_wide_copy(b, s, k);
    else
        plan_copies(b, s, k);
}

static void plan_piece(struct build *b, struct step *s)
{
    const struct package_entry *entry = &b->list->v[b->next];
    uint64_t left = entry->size - b->next_from;

    s->job.kind = PACKAGE_PIECE;
    s->job.n = 1;
    s->job.offset = b->next_from;
    s->job.len = left < PIECE ? left : PIECE;
    s->job.last = s->ends_entry = left <= PIECE;
    b->next_from += s->job.len;
}

static void plan_batch(struct build *b, struct step *s)
{
    uint64_t bytes = 0;

    s->job.kind = PACKAGE_BATCH;
    s->job.items = &b->items[b->next];
    do {
        bytes += b->list->v[b->next++].size;
        s->job.n++;
    } while (b->next < b->list->n && s->job.n < BATCH_ENTRIES && bytes + b->list->v[b->next].size <= BATCH &&
             !known(b, b->next));
}

static void count_read(struct build *b, const struct step *s)
{
    for (size_t i = s->first; i < s->first + s->job.n; i++)
        if (S_ISREG(b->list->v[i].mode) && s->from == 0) {
            b->out->read_files++;
            b->out->read_bytes += b->list->v[i].size;
        }
}

static struct step *plan(struct build *b)
{
    struct step *s = act_calloc(1, sizeof(*s));
    const struct package_known *k = known(b, b->next);

    *s = (struct step){.build = b, .first = b->next, .from = b->next_from};
    s->job.entries = &b->list->v[b->next];
    s->job.judge = b->options->judge;
    s->job.root_fd = b->root_fd;
    s->job.deflaters = b->deflaters;
    if (k)
        plan_copy(b, s, k);
    else if (is_piecewise(&b->list->v[b->next]))
        plan_piece(b, s);
    else
        plan_batch(b, s);
    if (!k)
        count_read(b, s);
    if (s->ends_entry) {
        b->next++;
        b->next_from = 0;
    }
    s->memory = package_job_memory(&s->job);
    return s;
}

/* The loop */

static void run_step(void *arg)
{
    struct step *s = arg;

    package_job_run(&s->job);
}

static void step_done(void *arg)
{
    struct step *s = arg;
    struct build *b = s->build;

    s->ready = true;
    b->jobs--;
    if (s->job.kind == PACKAGE_COPY && s->job.rc == 0)
        b->good_blocks[s->job.block - b->last.blocks] = true;
    go_on(b);
}

static void start(struct build *b, struct step *s)
{
    *b->end = s;
    b->end = &s->next;
    b->jobs++;
    b->memory += s->memory;
    engine_work(b->output->engine, run_step, step_done, s);
}

static void go_on(struct build *b)
{
    while (b->first && b->first->ready) {
        struct step *s = b->first;
        b->first = s->next;
        if (!b->first)
            b->end = &b->first;
        retire(b, s);
    }
    while (b->rc == 0 && b->next < b->list->n && b->jobs < JOBS && b->memory < MEMORY)
        start(b, plan(b));
    if (b->rc == 0 && b->next == b->list->n && !b->first && !b->is_complete)
        complete(b);
    b->is_over = !b->first && b->digests == 0 && (b->is_complete || b->rc < 0);
}

static void run(struct build *b)
{
    b->end = &b->first;
    b->items = act_calloc(b->list->n + 1, sizeof(*b->items));
    b->good_blocks = act_calloc(b->last.n_blocks + 1, sizeof(*b->good_blocks));
    b->deflaters = package_deflaters_new();
    b->progress = (struct package_progress){.entries = b->list->n, .bytes = b->list->bytes};
    b->shown_ms = act_now_monotonic_ms() + FIRST_PROGRESS_MS - PROGRESS_MS;
    act_sha256_init(&b->sha);
    go_on(b);
    engine_run(b->output->engine, &b->is_over);
    package_deflaters_free(b->deflaters);
    act_sha256_done(&b->sha, b->out->sha256);
    b->out->bytes = b->at;
    free(b->good_blocks);
}

/* All together */

/* temp gets the name of its content, and the index says what it holds. */
static int publish(struct build *b, const char *temp)
{
    ACT_AUTOFREE char *path = act_sprintf("%s/%s.zip", b->output->folder, b->out->sha256);

    if (fdatasync(b->fd) < 0 || rename(temp, path) < 0)
        return act_error_errno(&b->error, errno, "cannot write '%s'", path);
    return b->output->index ? package_index_save(b->output->index, b->list, b->items, b->out, &b->error) : 0;
}

static int build_into_temp(struct build *b)
{
    ACT_AUTOFREE char *temp = NULL;

    b->fd = package_temp(b->output->folder, &temp);
    if (b->fd < 0)
        return fail_output(b, errno);
    run(b);
    int rc = b->rc == 0 ? publish(b, temp) : b->rc;
    if (rc == 0)
        package_index_compare(&b->last, b->list, b->items, b->out);
    if (rc < 0)
        unlink(temp);
    close(b->fd);
    free(b->items);
    return rc;
}

/* The last package's file, or -1 when it is gone. */
static int open_last(const struct package_index *last, const char *folder)
{
    ACT_AUTOFREE char *path = act_sprintf("%s/%s.zip", folder, last->sha256);
    struct stat st;
    int fd = last->n_blocks ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;

    if (fd >= 0 && (fstat(fd, &st) < 0 || (uint64_t)st.st_size != last->bytes)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Loads the index and opens its package; both or none. */
static int load_last(const char *index, const char *folder, struct package_index *last)
{
    package_index_load(index, last);
    int fd = open_last(last, folder);
    if (fd < 0)
        package_index_release(last);
    return fd;
}

/* Whether the list is what the last package holds. */
static bool is_last(const struct package_list *list, const struct package_index *last)
{
    size_t i = 0;

    if (last->n_blocks == 0 || list->n != last->n)
        return false;
    while (i < list->n && package_index_find(last, &list->v[i]))
        i++;
    return i == list->n;
}

static void take_last(struct package_index *last, struct package_summary *out)
{
    *out = (struct package_summary){
        .bytes = last->bytes, .blocks = last->blocks, .n_blocks = last->n_blocks, .unchanged = true};
    memcpy(out->sha256, last->sha256, sizeof(out->sha256));
    last->blocks = NULL;
}

static int build_once(struct build *b)
{
    int rc = 0;

    b->last_fd = load_last(b->output->index, b->output->folder, &b->last);
    if (b->last_fd >= 0 && is_last(b->list, &b->last)) {
        futimens(b->last_fd, NULL); /* used: kept for longer */
        take_last(&b->last, b->out);
    } else {
        rc = build_into_temp(b);
    }
    if (b->last_fd >= 0)
        close(b->last_fd);
    package_index_release(&b->last);
    return rc;
}

static int build(struct build *b)
{
    const struct build fresh = *b;
    int rc = build_once(b);

    if (rc < 0 && b->is_damaged) { /* a copy of what can be made again: without it */
        package_summary_release(b->out);
        unlink(b->output->index);
        *b = fresh;
        rc = build_once(b);
    }
    return rc;
}

int package_write(const struct package_options *options, const struct package_list *list,
                  const struct package_output *output, struct package_summary *out, struct act_error *err)
{
    struct build b = {.options = options, .list = list, .output = output, .out = out};
    int rc = act_mkdir_all(output->folder, 0700, err);

    *out = (struct package_summary){0};
    if (rc < 0)
        return rc;
    b.root_fd = open(options->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (b.root_fd < 0)
        return act_error_errno(err, errno, "cannot read the project folder '%s'", options->root);
    rc = build(&b);
    close(b.root_fd);
    malloc_trim(0); /* what jobs held is for the upload now */
    if (rc < 0) {
        package_summary_release(out);
        if (err)
            *err = b.error;
    }
    return rc;
}

void package_forecast(const struct package_list *list, const char *folder, const char *index,
                      struct package_summary *out)
{
    struct package_index last;
    int fd = load_last(index, folder, &last);

    *out = (struct package_summary){0};
    if (is_last(list, &last))
        take_last(&last, out);
    for (size_t i = 0; i < list->n; i++)
        if (S_ISREG(list->v[i].mode) && !package_index_find(&last, &list->v[i])) {
            out->read_files++;
            out->read_bytes += list->v[i].size;
        }
    if (!out->unchanged)
        package_index_compare(&last, list, NULL, out);
    if (fd >= 0)
        close(fd);
    package_index_release(&last);
}

void package_summary_release(struct package_summary *summary)
{
    free(summary->blocks);
    act_strv_release(&summary->changed);
    *summary = (struct package_summary){0};
}
