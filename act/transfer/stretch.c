/* stretch.c - transfer_stretches(): many objects at once, each in its order.
 *
 * Slices of all objects share the connections and a fixed budget of memory. They arrive in any order; those of one
 * object are written in its order, each by a worker, one after the other:
 *
 *   written ─► being written ─► arrived ─► under way ... started
 *
 * So what was written is without a gap at every moment, whatever fails or is killed. The price is that a slice
 * may wait in memory for the one before it; also one of another object, if they are to be written in turn. Slices are
 * started in the same order, so that those that are waited for are always under way.
 */
#include <string.h>

#include "base/crc64.h"
#include "transfer/transfer_internal.h"

enum { SLICE = 4 << 20, SLICE_OF_DISK = 512 << 10, SPARES = 4 };

struct slice {
    struct store_call call;
    struct stretching *of;
    struct slice *next; /* of the same object */
    size_t before;      /* bytes at its beginning that are only compared */
    size_t len;         /* with them */
    bool arrived;
    struct store_sums sums;
    struct act_error error; /* of writing it */
    int rc;
};

/* A stretch under way. */
struct stretching {
    struct stretches *all;
    struct transfer_stretch *stretch;
    uint64_t started;    /* so many bytes are written or in slices */
    struct slice *first; /* those that are not written yet, in order */
    struct slice **last;
    bool writing;
    bool over; /* no more of it is wanted */
};

struct stretches {
    struct engine *engine;
    struct store *store;
    struct stretching *v;
    size_t n, at;         /* nothing of those before at is left to start */
    size_t turn;          /* those before it are written */
    size_t n_slices;      /* that there are */
    size_t memory;        /* in their buffers */
    char *spares[SPARES]; /* buffers that no slice has any more, of spare_len */
    size_t n_spares, spare_len;
    uint64_t limit;   /* of it */
    size_t under_way; /* calls */
    void (*moved)(void *arg, const struct transfer_stretch *stretch, size_t bytes);
    void *arg;
    bool done;
    int rc; /* the first failure */
    struct act_error *err;
};

static void continue_stretches(struct stretches *all);

static void fail_stretches(struct stretches *all, int rc, const struct act_error *error)
{
    if (all->rc == 0) {
        all->rc = rc;
        *all->err = *error;
    }
}

/* Tells whether all is read on this machine, one piece after the other: by small ones, which stay in the processor's
 * cache until they are written. */
static bool stretches_are_local(const struct stretches *all)
{
    return all->n > 0 && store_traits(all->store)->is_disk && store_window(all->store) == 1;
}

/* ---- slices ---- */

/* A buffer is used again, where it is: what the kernel gives anew, it clears first, page by page. */
static char *slice_take_buffer(struct stretches *all, size_t len)
{
    return all->n_spares > 0 && all->spare_len == len ? all->spares[--all->n_spares] : act_alloc(len);
}

static void slice_drop_spares(struct stretches *all)
{
    while (all->n_spares > 0)
        free(all->spares[--all->n_spares]);
}

static void slice_give_buffer(struct stretches *all, char *buffer, size_t len)
{
    if (all->spare_len != len)
        slice_drop_spares(all);
    all->spare_len = len;
    if (all->n_spares < SPARES)
        all->spares[all->n_spares++] = buffer;
    else
        free(buffer);
}

static void slice_drop_first(struct stretching *s)
{
    struct slice *slice = s->first;

    s->first = slice->next;
    if (!s->first)
        s->last = &s->first;
    s->all->memory -= slice->len;
    s->all->n_slices--;
    slice_give_buffer(s->all, slice->call.get.sink, slice->len);
    store_call_release(&slice->call);
    free(slice);
}

/* Compares what arrived of the next slice to write. */
static void compare_slice(struct stretching *s, const struct slice *slice)
{
    const struct store_call *call = &slice->call;
    bool differs = slice->before > 0 && call->get.got >= slice->before &&
                   memcmp(call->get.sink, s->stretch->before, slice->before) != 0;

    if (call->rc < 0 && (call->rc != -ACT_NOT_FOUND || s->stretch->if_match))
        fail_stretches(s->all, call->rc, &call->error);
    s->over = call->rc < 0 || call->get.got < slice->len || differs;
    s->stretch->replaced =
        differs || (call->rc == 0 && call->get.got < slice->len && call->entry.size < s->stretch->end);
}

static void write_work(void *arg)
{
    struct slice *slice = arg;
    const struct transfer_stretch *stretch = slice->of->stretch;

    slice->rc = stretch->write(stretch->arg, slice->call.get.offset + slice->before,
                               (const char *)slice->call.get.sink + slice->before, slice->call.get.got - slice->before,
                               &slice->error);
}

static void write_next_slice(struct stretching *s);

static void write_done(void *arg)
{
    struct slice *slice = arg;
    struct stretching *s = slice->of;
    struct stretches *all = s->all;

    s->writing = false;
    if (slice->rc < 0) {
        fail_stretches(all, slice->rc, &slice->error);
        s->over = true;
    } else {
        s->stretch->got += slice->call.get.got - slice->before;
        s->stretch->crc64 = act_crc64_combine(s->stretch->crc64, slice->sums.crc64, slice->call.get.got);
        if (all->moved)
            all->moved(all->arg, s->stretch, slice->call.get.got - slice->before);
    }
    slice_drop_first(s);
    write_next_slice(s);
    continue_stretches(all);
}

/* Returns whether what has arrived may be written now, or dropped. */
static bool stretch_has_turn(const struct stretching *s)
{
    return !s->stretch->in_turn || s->all->rc < 0 || s == &s->all->v[s->all->turn];
}

static void write_next_slice(struct stretching *s)
{
    while (!s->writing && s->first && s->first->arrived && stretch_has_turn(s)) {
        struct slice *slice = s->first;
        bool wanted = !s->over && !(s->stretch->in_turn && s->all->rc < 0);
        if (wanted)
            compare_slice(s, slice);
        if (wanted && slice->call.get.got > slice->before && !s->stretch->replaced) {
            s->writing = true;
            engine_work(s->all->engine, write_work, write_done, slice);
        } else {
            slice_drop_first(s);
        }
    }
}

static void slice_done(struct store_call *call)
{
    struct slice *slice = call->arg;
    struct stretches *all = slice->of->all;

    slice->arrived = true;
    all->under_way--;
    write_next_slice(slice->of);
    continue_stretches(all);
}

/* ---- what is started when ---- */

static size_t next_before(const struct stretching *s)
{
    return s->started > 0 ? 0 : s->stretch->before_len;
}

/* Returns the bytes of the next slice; 0: there is none. */
static size_t next_len(const struct stretching *s)
{
    size_t before = next_before(s);
    uint64_t left = s->stretch->end - s->stretch->offset - s->started, most = s->stretch->slice;
    bool is_local = stretches_are_local(s->all);

    if (most == 0 || (is_local && most > SLICE_OF_DISK))
        most = is_local ? SLICE_OF_DISK : SLICE;
    if (s->stretch->slice == 0 && s->all->limit < most)
        most = before + s->all->limit;
    return left == 0 ? 0 : (size_t)(left + before < most ? left + before : most);
}

static void start_slice(struct stretching *s)
{
    struct stretches *all = s->all;
    struct slice *slice = act_calloc(1, sizeof(*slice));

    slice->of = s;
    slice->len = next_len(s);
    slice->before = next_before(s);
    slice->call = (struct store_call){.op = STORE_GET,
                                      .key = s->stretch->key,
                                      .get = {.sink = slice_take_buffer(all, slice->len),
                                              .sink_cap = slice->len,
                                              .sums = s->stretch->want_crc64 ? &slice->sums : NULL,
                                              .if_match = s->stretch->if_match,
                                              .offset = s->stretch->offset + s->started - slice->before},
                                      .done = slice_done,
                                      .arg = slice};
    *s->last = slice;
    s->last = &slice->next;
    s->started += slice->len - slice->before;
    all->n_slices++;
    all->memory += slice->len;
    all->under_way++;
    store_start(all->store, &slice->call);
}

/* Returns whether there is room for the next slice of the object. */
static bool stretches_have_room(const struct stretches *all, const struct stretching *s)
{
    return all->n_slices == 0 ||
           (all->memory + next_len(s) <= all->limit && all->under_way < (size_t)store_window(all->store));
}

/* Lets the next object be written when one is. After a failure all of them drop what has arrived. */
static void stretches_pass_turn(struct stretches *all)
{
    for (; all->turn < all->n; all->turn++) {
        struct stretching *s = &all->v[all->turn];
        write_next_slice(s);
        if (all->rc == 0 && (s->first || !(s->over || next_len(s) == 0)))
            return;
    }
}

/* Starts slices, object after object, so that most of them are whole when this is interrupted. */
static void continue_stretches(struct stretches *all)
{
    stretches_pass_turn(all);
    while (all->rc == 0 && all->at < all->n) {
        struct stretching *s = &all->v[all->at];
        if (s->over || next_len(s) == 0)
            all->at++;
        else if (stretches_have_room(all, s))
            start_slice(s);
        else
            break;
    }
    all->done = all->n_slices == 0;
}

int transfer_stretches(struct engine *engine, struct store *store, struct transfer_stretch *stretches, size_t n,
                       uint64_t memory, void (*moved)(void *arg, const struct transfer_stretch *stretch, size_t bytes),
                       void *arg, struct act_error *err)
{
    struct stretches all = {.engine = engine, .store = store, .n = n, .moved = moved, .arg = arg, .err = err};

    all.limit = memory ? memory : TRANSFER_MEMORY;
    if (stretches_are_local(&all) && all.limit > (uint64_t)SPARES * SLICE_OF_DISK)
        all.limit = (uint64_t)SPARES * SLICE_OF_DISK; /* to read further ahead of who writes gains nothing */
    all.v = act_calloc(n + 1, sizeof(*all.v));
    for (size_t i = 0; i < n; i++) {
        struct stretching *s = &all.v[i];
        *s = (struct stretching){.all = &all, .stretch = &stretches[i], .last = &s->first};
        stretches[i].got = stretches[i].crc64 = 0;
        stretches[i].replaced = false;
    }
    continue_stretches(&all);
    if (!all.done)
        engine_run(engine, &all.done);
    slice_drop_spares(&all);
    free(all.v);
    return all.rc;
}
