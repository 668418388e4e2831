/* write.c - the zip of a scanned list: workers make its bytes, the loop puts them in order.
 *
 *   list ──► plan ──► tasks (workers) ──► libzip, which asks for the data of one entry after the other ──► sink
 *
 * The plan (plan.c) goes through the list once. What is under way is bounded by memory; tasks start in order, so the
 * one that everybody waits for is always under way.
 *
 * The content of the archive depends on the list and the files' content alone: neither on the number of workers
 * nor on what the last package had. blocks.c cuts it.
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
#include "package/build.h"

enum {
    MEMORY = 32 << 20,        /* for tasks under way; compressors and the lists come on top */
    JOBS = 128,               /* under way */
    WIDE = 4 << 20,           /* larger files have blocks of their own */
    PIECES_PER_BLOCK = 4,     /* of these */
    FIRST_PROGRESS_MS = 1000, /* what takes less is not reported */
    PROGRESS_MS = 200,
};

/* An archive without entries is a warning to unzip. */
static char empty_marker[] = ".act-empty";
static const struct package_entry marker = {.path = empty_marker, .mode = S_IFREG | 0644};

int package_fail_output(struct build *b, int errnum)
{
    return act_error_errno(&b->error, errnum, "cannot write a package in '%s'", b->output->folder);
}

static int fail_libzip(struct build *b, const struct act_error *why)
{
    return act_error_set(&b->error, why->code, "cannot write a package in '%s': %s", b->output->folder,
                         act_error_text(why));
}

void package_look_around(struct build *b)
{
    b->is_ready = b->first && b->first->ready;
    b->is_idle = b->running == 0 && b->digests == 0;
}

void package_fail_sink(struct build *b)
{
    if (b->rc == 0)
        b->rc = package_fail_output(b, errno);
}

bool package_is_wide(const struct package_entry *e)
{
    return S_ISREG(e->mode) && e->size > WIDE;
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
    package_look_around(b);
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
        start_step(b, package_plan(b));
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
    package_look_around(b);
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
    return package_is_wide(&b->list->v[i]) &&
           (s->task.kind == PACKAGE_COPY || (s->from / PIECE + 1) % PIECES_PER_BLOCK == 0);
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

    package_cut(b, item->offset);
    for (size_t at = 0; at < b->cuts.len; at += sizeof(given)) {
        memcpy(&given, b->cuts.data + at, sizeof(given));
        package_note_origin(b, item);
        package_cut(b, item->data + given);
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
    if (package_is_wide(entry))
        cut_wide(b, item);
    package_note_origin(b, item);
    if (package_is_wide(entry) || package_is_border(b, entry->path, b->entries_end - item->offset, b->entries_end))
        package_cut(b, b->entries_end);
    close_entry(b, i);
}

/* The blocks of the table of contents, which follows the entries. */
static void cut_directory(struct build *b)
{
    package_cut(b, b->entries_end);
    b->block_copied = false;
    while (b->sink.end - b->block_start > BLOCK_MAX)
        package_cut(b, b->block_start + BLOCK_MAX);
    package_cut(b, b->sink.end);
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
        b->rc = b->sink.errnum ? package_fail_output(b, b->sink.errnum) : fail_libzip(b, &why);
    if (b->rc == 0)
        cut_directory(b);
}

/* Waits for everything that was started, even if it is not needed any more. */
static void wait_for_all(struct build *b)
{
    package_look_around(b);
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

/* Gives temp the name of its content, and lets the index say what it holds. */
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
        return package_fail_output(b, errno);
    package_sink_open(&b->sink, fd);
    run_build(b);
    if (package_sink_close(&b->sink, b->out->sha256) < 0)
        package_fail_sink(b);
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

/* Opens the file of the last package. Returns -1 if it is gone. */
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

/* Tells whether the list is what the last package holds. */
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
