/* plan.c - says what workers do for a package, entry by entry of its list.
 *
 * Entries that the index knows become COPY tasks, as large as they lie together in one block of the last package; small
 * files, links and folders are batched; a large file goes piece by piece.
 */
#include <string.h>

#include "base/text.h"
#include "package/build.h"

enum {
    BATCH = 256 << 10,   /* bytes of small files that one worker takes at once */
    BATCH_ENTRIES = 256, /* the same for folders, links and tiny files */
};

static bool is_piecewise(const struct package_entry *e)
{
    return S_ISREG(e->mode) && e->size > PIECE;
}

static const struct package_known *known(const struct build *b, size_t i)
{
    return package_index_find(&b->last, &b->list->v[i]);
}

static uint64_t end_of(const struct package_known *k)
{
    return k->item.data + k->item.packed;
}

/* Copies whole entries that lie one after another in the same block, from k, the current one. */
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
    } while (k && !package_is_wide(&b->list->v[b->next]) && k->item.offset == s->task.offset + s->task.len &&
             end_of(k) <= end);
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
static uint64_t plan_start_of(const struct build *b, const struct package_known *k)
{
    return package_is_wide(&b->list->v[b->next]) ? k->item.data + b->next_from : k->item.offset;
}

static void plan_copy(struct build *b, struct write_step *s, const struct package_known *k)
{
    s->task.kind = PACKAGE_COPY;
    s->task.last_fd = b->last_fd;
    s->task.block = package_find_block(&b->last, plan_start_of(b, k));
    s->task.is_good = b->good_blocks[s->task.block - b->last.blocks];
    if (package_is_wide(&b->list->v[b->next]))
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

struct write_step *package_plan(struct build *b)
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
