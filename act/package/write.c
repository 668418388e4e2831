/* write.c - the zip of a scanned list: workers make its bytes, the loop puts them in order.
 *
 *   list ──► plan ──► tasks (workers) ──► libzip, which asks for the data of one entry after the other ──► sink
 *
 * The plan goes through the list once. Entries that the index knows become COPY tasks, as large as they lie
 * together in one block of the last package; small files, links and folders are batched; a large file goes
 * piece by piece. What is under way is bounded by memory; tasks start in order, so the one that everybody waits
 * for is always under way.
 *
 * What goes into the archive depends on the list and the files' content alone: neither on the number of workers
 * nor on what the last package had. Blocks end after an entry whose path says so, so that they fall the same way
 * again after a change. Their ids are computed on workers from the file that was written, unless the block is
 * one of the last package.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/temp.h"
#include "base/text.h"
#include "engine/engine.h"
#include "package/task.h"

enum {
    PIECE = PACKAGE_JUDGED,   /* files up to this size are compressed whole */
    BATCH = 256 << 10,        /* bytes of small files that one worker takes at once */
    BATCH_ENTRIES = 256,      /* the same for folders, links and tiny files */
    MEMORY = 32 << 20,        /* for tasks under way; compressors and the lists come on top */
    JOBS = 128,               /* under way */
    WIDE = 4 << 20,           /* larger files have blocks of their own */
    PIECES_PER_BLOCK = 4,     /* of these */
    BLOCK_MIN = 256 << 10,    /* no border before: little, as borders that are passed over move those after */
    BLOCK_SPREAD_BITS = 20,   /* then one within about a MiB */
    BLOCK_MAX = 4 << 20,      /* a border after the entry that reaches this */
    FIRST_PROGRESS_MS = 1000, /* what takes less is not reported */
    PROGRESS_MS = 200,
};

/* An archive without entries is a warning to unzip. */
static char empty_marker[] = ".act-empty";
static const struct package_entry marker = {.path = empty_marker, .mode = S_IFREG | 0644};

/* A task on its way through the build. */
struct write_step {
    struct package_task task;
    struct build *build;
    size_t first;    /* its first entry */
    uint64_t from;   /* where in that entry it begins: in the file (PIECE) or in its bytes (COPY) */
    bool is_part;    /* of one entry: a file in pieces, or a wide entry that is copied */
    bool ends_entry; /* the last of these */
    size_t memory;
    bool ready;
    struct write_step *next;
};

/* Where an entry lay in the last package. */
struct origin {
    bool copied;
    uint64_t data, head; /* its data, and the bytes in front of that */
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
    int root_fd, last_fd;

    /* the plan */
    size_t next;        /* the current entry */
    uint64_t next_from; /* what of it is in tasks already */

    /* under way */
    struct write_step *first, **end; /* in order */
    size_t tasks, running, digests;
    uint64_t memory;
    bool is_ready; /* the first task */
    bool is_idle;  /* the workers have nothing to do */
    struct package_deflaters *deflaters;
    bool *good_blocks; /* of the last package: verified */

    /* the entry that libzip reads */
    bool is_open;
    const char *data; /* what is left of the first task's share in it */
    size_t left;
    uint64_t given;      /* bytes of its data up to now */
    struct act_buf cuts; /* uint64_t: how much of its data is before a border */
    struct origin origin;

    /* the archive */
    struct package_item *items;
    atomic_bool *grew; /* of the entries */
    struct package_sink sink;
    struct package_summary *out;
    uint64_t block_start, entries_end;
    bool block_copied;   /* all of the block so far is one range of the last package, */
    int64_t block_shift; /* so many bytes further ahead there */

    struct package_progress progress;
    int64_t shown_ms;
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
static const struct package_block *write_find_block(const struct package_index *last, uint64_t offset)
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
    const struct package_block *block = write_find_block(&b->last, there);
    return block->offset == there && block->len == len ? block : NULL;
}

static void run_digest(void *arg)
{
    struct digest *d = arg;
    ACT_AUTOFREE char *data = act_alloc(d->range.len);

    if (act_pread_all(d->build->sink.fd, data, d->range.len, (off_t)d->range.offset) != (ssize_t)d->range.len)
        d->errnum = errno ? errno : EIO;
    package_block_sum(&d->range, data);
}

static int fail_output(struct build *b, int errnum)
{
    return act_error_errno(&b->error, errnum, "cannot write a package in '%s'", b->output->folder);
}

static int fail_libzip(struct build *b, const struct act_error *why)
{
    return act_error_set(&b->error, why->code, "cannot write a package in '%s': %s", b->output->folder,
                         act_error_text(why));
}

/* Goes on when a worker has finished something. */
static void look_around(struct build *b)
{
    b->is_ready = b->first && b->first->ready;
    b->is_idle = b->running == 0 && b->digests == 0;
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
    look_around(b);
}

static void fail_sink(struct build *b)
{
    if (b->rc == 0)
        b->rc = fail_output(b, errno);
}

static void write_add_block(struct build *b, struct package_block block, bool has_id)
{
    struct package_summary *out = b->out;

    ACT_PUSH(out->blocks, out->n_blocks, block);
    if (has_id)
        return;
    if (package_sink_flush(&b->sink) < 0) {
        fail_sink(b);
        return;
    }
    struct digest *d = act_calloc(1, sizeof(*d));
    *d = (struct digest){.build = b, .block = out->n_blocks - 1, .range = block};
    b->digests++;
    engine_work(b->output->engine, run_digest, digest_done, d);
}

/* Ends a block at an offset up to which everything is settled. */
static void write_cut(struct build *b, uint64_t at)
{
    struct package_block block = {.offset = b->block_start, .len = at - b->block_start};

    if (block.len == 0)
        return;
    const struct package_block *same = same_block(b, block.len);
    if (same) {
        block.crc64 = same->crc64;
        memcpy(block.id, same->id, sizeof(block.id));
    }
    write_add_block(b, block, same != NULL);
    b->block_start = at;
}

/* Says of an entry, or of its part after a border, where its bytes come from. Its header follows from what the index
 * was asked for and the versions that made the last package; its length is looked at all the same. */
static void note_origin(struct build *b, const struct package_item *item)
{
    bool copied = b->origin.copied && item->data - item->offset == b->origin.head;
    int64_t shift = (int64_t)item->data - (int64_t)b->origin.data;

    if (b->block_start >= item->offset)
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

/* A block ends the likelier the longer an entry is, so that blocks have about the same size whatever the files have. */
static bool is_border(const struct build *b, const char *path, uint64_t entry_len, uint64_t end)
{
    uint64_t len = end - b->block_start;

    return len >= BLOCK_MAX || (len >= BLOCK_MIN && hash_path(path) >> (64 - BLOCK_SPREAD_BITS) < entry_len);
}

/* The plan */

static const struct package_known *known(const struct build *b, size_t i)
{
    return package_index_find(&b->last, &b->list->v[i]);
}

static uint64_t end_of(const struct package_known *k)
{
    return k->item.data + k->item.packed;
}

/* Whole entries that lie one after another in the same block, from k, the current one. */
static void plan_copies(struct build *b, struct write_step *s, const struct package_known *k)
{
    uint64_t end = s->task.block->offset + s->task.block->len;

    s->task.offset = k->item.offset;
    do {
        b->items[b->next] = k->item;
        b->items[b->next].data -= s->task.offset;
        s->task.len = end_of(k) - s->task.offset;
        s->task.n++;
        b->next++;
        k = b->next < b->list->n ? known(b, b->next) : NULL;
    } while (k && !is_wide(&b->list->v[b->next]) && k->item.offset == s->task.offset + s->task.len && end_of(k) <= end);
}

static void plan_wide_copy(struct build *b, struct write_step *s, const struct package_known *k)
{
    uint64_t block_end = s->task.block->offset + s->task.block->len, end = end_of(k);

    s->is_part = true;
    s->task.offset = k->item.data + b->next_from;
    s->task.len = (end < block_end ? end : block_end) - s->task.offset;
    s->task.n = 1;
    if (b->next_from == 0)
        b->items[b->next] = k->item;
    b->next_from += s->task.len;
    s->ends_entry = end <= block_end;
}

/* Returns where an entry begins; of a wide entry, where its data does. */
static uint64_t write_start_of(const struct build *b, const struct package_known *k)
{
    return is_wide(&b->list->v[b->next]) ? k->item.data + b->next_from : k->item.offset;
}

static void plan_copy(struct build *b, struct write_step *s, const struct package_known *k)
{
    s->task.kind = PACKAGE_COPY;
    s->task.last_fd = b->last_fd;
    s->task.block = write_find_block(&b->last, write_start_of(b, k));
    s->task.is_good = b->good_blocks[s->task.block - b->last.blocks];
    if (is_wide(&b->list->v[b->next]))
        plan_wide_copy(b, s, k);
    else
        plan_copies(b, s, k);
}

static void plan_piece(struct build *b, struct write_step *s)
{
    const struct package_entry *entry = &b->list->v[b->next];
    uint64_t left = entry->size - b->next_from;

    s->task.kind = PACKAGE_PIECE;
    s->task.n = 1;
    s->task.offset = b->next_from;
    s->task.len = left < PIECE ? left : PIECE;
    s->is_part = true;
    s->task.last = s->ends_entry = left <= PIECE;
    b->next_from += s->task.len;
}

static void plan_batch(struct build *b, struct write_step *s)
{
    uint64_t bytes = 0;

    s->task.kind = PACKAGE_BATCH;
    do {
        bytes += b->list->v[b->next++].size;
        s->task.n++;
    } while (b->next < b->list->n && s->task.n < BATCH_ENTRIES && bytes + b->list->v[b->next].size <= BATCH &&
             !known(b, b->next));
    s->task.items = act_calloc(s->task.n, sizeof(*s->task.items));
}

static void count_read(struct build *b, const struct write_step *s)
{
    for (size_t i = s->first; i < s->first + s->task.n; i++)
        if (S_ISREG(b->list->v[i].mode) && s->from == 0) {
            b->out->read_files++;
            b->out->read_bytes += b->list->v[i].size;
        }
}

static struct write_step *plan(struct build *b)
{
    struct write_step *s = act_calloc(1, sizeof(*s));
    const struct package_known *k = known(b, b->next);

    *s = (struct write_step){.build = b, .first = b->next, .from = b->next_from};
    s->task.entries = &b->list->v[b->next];
    s->task.grew = b->options->takes_grown ? &b->grew[b->next] : NULL;
    s->task.judge = b->options->judge;
    s->task.root_fd = b->root_fd;
    s->task.deflaters = b->deflaters;
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
    s->memory = package_task_memory(&s->task);
    return s;
}

/* The loop */

static void write_run_step(void *arg)
{
    struct write_step *s = arg;

    package_task_run(&s->task);
}

static void step_done(void *arg)
{
    struct write_step *s = arg;
    struct build *b = s->build;

    s->ready = true;
    b->running--;
    if (s->task.items) /* libzip looks at those of entries that workers still read */
        memcpy(&b->items[s->first], s->task.items, s->task.n * sizeof(*s->task.items));
    if (s->task.kind == PACKAGE_COPY && s->task.rc == 0)
        b->good_blocks[s->task.block - b->last.blocks] = true;
    look_around(b);
}

static void start_step(struct build *b, struct write_step *s)
{
    *b->end = s;
    b->end = &s->next;
    b->tasks++;
    b->running++;
    b->memory += s->memory;
    engine_work(b->output->engine, write_run_step, step_done, s);
}

static void start_more(struct build *b)
{
    while (b->rc == 0 && b->next < b->list->n && b->tasks < JOBS && b->memory < MEMORY)
        start_step(b, plan(b));
}

/* The archive, in order */

static void write_show_progress(struct build *b)
{
    int64_t now = act_now_monotonic_ms();

    if (!b->output->progress || now - b->shown_ms < PROGRESS_MS)
        return;
    b->shown_ms = now;
    b->output->progress(b->output->arg, &b->progress);
}

/* Waits for the next task, whose data is wanted now. */
static void wait_for_first(struct build *b)
{
    start_more(b);
    look_around(b);
    if (!b->is_ready)
        engine_run(b->output->engine, &b->is_ready);
}

static void write_drop_first(struct build *b)
{
    ACT_AUTOFREE struct write_step *s = b->first;

    b->first = s->next;
    if (!b->first)
        b->end = &b->first;
    b->tasks--;
    b->memory -= s->memory;
    free(s->task.buffer);
    free(s->task.items);
}

static int fail_task(struct build *b, const struct package_task *task)
{
    b->error = task->error;
    b->is_damaged = task->is_damaged;
    return task->rc;
}

/* Takes what the first task has of entry i. */
static void write_take_share(struct build *b, size_t i)
{
    const struct write_step *s = b->first;
    struct package_item *item = &b->items[i];

    b->data = s->task.bytes + (s->is_part ? 0 : item->data);
    b->left = s->is_part ? s->task.n_bytes : item->packed;
    if (s->task.kind != PACKAGE_PIECE)
        return;
    item->crc = package_crc_join(item->crc, s->task.crc, s->task.len);
    b->progress.done_bytes += s->task.len;
}

static void next_share(struct build *b, size_t i)
{
    wait_for_first(b);
    if (b->rc == 0 && b->first->task.rc < 0)
        b->rc = fail_task(b, &b->first->task);
    if (b->rc == 0)
        write_take_share(b, i);
    write_show_progress(b);
}

static void write_open_entry(struct build *b, size_t i)
{
    next_share(b, i);
    b->is_open = true;
    b->given = 0;
    if (b->rc < 0)
        return;
    const struct package_task *task = &b->first->task;
    uint64_t data = task->offset + (b->first->is_part ? 0 : b->items[i].data);
    b->origin = (struct origin){.copied = task->kind == PACKAGE_COPY, .data = data, .head = data - b->items[i].offset};
}

/* Blocks of a wide entry are so many pieces, or as they were. */
static bool is_inner_border(const struct build *b, size_t i, const struct write_step *s)
{
    return is_wide(&b->list->v[i]) && (s->task.kind == PACKAGE_COPY || (s->from / PIECE + 1) % PIECES_PER_BLOCK == 0);
}

static void go_on_in_entry(struct build *b, size_t i)
{
    if (is_inner_border(b, i, b->first))
        act_buf_add(&b->cuts, &b->given, sizeof(b->given));
    write_drop_first(b);
    next_share(b, i);
}

static int64_t write_read_entry(void *arg, size_t i, void *data, size_t len)
{
    struct build *b = arg;

    if (i >= b->list->n)
        return 0;
    if (!b->is_open)
        write_open_entry(b, i);
    while (b->rc == 0 && b->left == 0 && b->first->is_part && !b->first->ends_entry)
        go_on_in_entry(b, i);
    if (b->rc < 0)
        return -1;
    size_t n = b->left < len ? b->left : len;
    memcpy(data, b->data, n);
    b->data += n;
    b->left -= n;
    b->given += n;
    return (int64_t)n;
}

static void cut_wide(struct build *b, const struct package_item *item)
{
    uint64_t given;

    write_cut(b, item->offset);
    for (size_t at = 0; at < b->cuts.len; at += sizeof(given)) {
        memcpy(&given, b->cuts.data + at, sizeof(given));
        note_origin(b, item);
        write_cut(b, item->data + given);
    }
}

static void count_entry(struct build *b, size_t i)
{
    b->progress.done_entries++;
    if (S_ISREG(b->list->v[i].mode) && b->first->task.kind != PACKAGE_PIECE)
        b->progress.done_bytes += b->list->v[i].size;
}

static void close_entry(struct build *b, size_t i)
{
    const struct write_step *s = b->first;

    count_entry(b, i);
    if (s->is_part || i + 1 == s->first + s->task.n)
        write_drop_first(b);
    b->cuts.len = 0;
    b->is_open = false;
}

static void entry_settled(void *arg, size_t i)
{
    struct build *b = arg;
    const struct package_item *item = &b->items[i];

    b->entries_end = item->data + item->packed;
    if (i >= b->list->n)
        return;
    const struct package_entry *entry = &b->list->v[i];
    if (is_wide(entry))
        cut_wide(b, item);
    note_origin(b, item);
    if (is_wide(entry) || is_border(b, entry->path, b->entries_end - item->offset, b->entries_end))
        write_cut(b, b->entries_end);
    close_entry(b, i);
}

/* The blocks of the table of contents, which follows the entries. */
static void cut_directory(struct build *b)
{
    write_cut(b, b->entries_end);
    b->block_copied = false;
    while (b->sink.end - b->block_start > BLOCK_MAX)
        write_cut(b, b->block_start + BLOCK_MAX);
    write_cut(b, b->sink.end);
}

/* rc has the reason; libzip need not know it. */
static void write_zip_file(struct build *b)
{
    bool is_empty = b->list->n == 0;
    const struct package_zip zip = {.entries = is_empty ? &marker : b->list->v,
                                    .n = is_empty ? 1 : b->list->n,
                                    .items = b->items,
                                    .sink = &b->sink,
                                    .read = write_read_entry,
                                    .settled = entry_settled,
                                    .arg = b};
    struct act_error why = {0};

    start_more(b); /* while libzip is told of the entries */
    if (package_zip_write(&zip, &why) < 0 && b->rc == 0)
        b->rc = b->sink.errnum ? fail_output(b, b->sink.errnum) : fail_libzip(b, &why);
    if (b->rc == 0)
        cut_directory(b);
}

/* Waits for everything that was started, even if it is not needed any more. */
static void wait_for_all(struct build *b)
{
    look_around(b);
    if (!b->is_idle)
        engine_run(b->output->engine, &b->is_idle);
    while (b->first)
        write_drop_first(b);
}

static void run_build(struct build *b)
{
    b->end = &b->first;
    b->items = act_calloc(b->list->n + 1, sizeof(*b->items));
    b->grew = act_calloc(b->list->n + 1, sizeof(*b->grew));
    b->good_blocks = act_calloc(b->last.n_blocks + 1, sizeof(*b->good_blocks));
    b->deflaters = package_deflaters_new();
    b->progress = (struct package_progress){.entries = b->list->n, .bytes = b->list->bytes};
    b->shown_ms = act_now_monotonic_ms() + FIRST_PROGRESS_MS - PROGRESS_MS;
    write_zip_file(b);
    wait_for_all(b);
    package_deflaters_free(b->deflaters);
    b->out->bytes = b->sink.end;
    free(b->good_blocks);
    act_buf_release(&b->cuts);
}

/* All together */

/* temp gets the name of its content, and the index says what it holds. */
static int write_publish(struct build *b, const char *temp)
{
    ACT_AUTOFREE char *path = act_sprintf("%s/%s.zip", b->output->folder, b->out->sha256);

    if (fdatasync(b->sink.fd) < 0 || rename(temp, path) < 0)
        return act_error_errno(&b->error, errno, "cannot write '%s'", path);
    return b->output->index ? package_index_save(b->output->index, b->list, b->items, b->out, &b->error) : 0;
}

static void warn_of_growth(const struct build *b)
{
    const struct package_entry *first = NULL;
    size_t n = 0;

    for (size_t i = 0; i < b->list->n; i++)
        if (atomic_load(&b->grew[i])) {
            first = first ? first : &b->list->v[i];
            n++;
        }
    if (!first)
        return;
    ACT_AUTOFREE char *name = package_printable(first->path);
    ACT_AUTOFREE char *more = n > 1 ? act_sprintf(" (and %zu more)", n - 1) : act_strdup("");
    act_warn("'%s'%s grew while it was packaged: the package has its first %" PRIu64 " bytes; '.actignore' leaves out "
             "what the nodes do not need",
             name, more, first->size);
}

static int build_into_temp(struct build *b)
{
    ACT_AUTOFREE char *temp = NULL;
    int fd = act_temp_open(b->output->folder, &temp);

    if (fd < 0)
        return fail_output(b, errno);
    package_sink_open(&b->sink, fd);
    run_build(b);
    if (package_sink_close(&b->sink, b->out->sha256) < 0)
        fail_sink(b);
    int rc = b->rc == 0 ? write_publish(b, temp) : b->rc;
    if (rc == 0)
        package_index_compare(&b->last, b->list, b->items, b->out);
    if (rc < 0)
        unlink(temp);
    else
        warn_of_growth(b);
    close(fd);
    free(b->grew);
    free(b->items);
    return rc;
}

/* The file of the last package, or -1 if it is gone. */
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

static int write_build_once(struct build *b)
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

static int write_build(struct build *b)
{
    const struct build fresh = *b;
    int rc = write_build_once(b);

    if (rc < 0 && b->is_damaged) { /* a copy is only faster: go on without it */
        package_summary_release(b->out);
        unlink(b->output->index);
        *b = fresh;
        rc = write_build_once(b);
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
    rc = write_build(&b);
    close(b.root_fd);
    malloc_trim(0); /* what tasks held is for the upload now */
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
    ACT_AUTO(package_index) last = {0};
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
}

void package_summary_release(struct package_summary *summary)
{
    free(summary->blocks);
    act_strv_release(&summary->changed);
    *summary = (struct package_summary){0};
}
