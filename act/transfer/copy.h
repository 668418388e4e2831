/* copy.h - for the files that copy or compare whole trees: a walk through both sides, and one object of it.
 *
 * A walk lists both sides, merges them (sync) and gives each item to its own take(): transfer_copy() copies what
 * differs, mirror.c deletes what is left over, verify.c reports. struct object is one object under way, struct
 * object_part one part of it:
 *
 *   PLAN ──► ASK ──► MOVE: each part READ ──► (CHAIN) ──► WRITE ──► SIGN ──► COMMIT ──► END
 *
 * The phase of an object says what it does next, and object_settle() is the switch over them.
 *
 * Parts proceed in any order, each with its CRC-64; the checksum of the whole is combined from those. Only an MD5 of a
 * large object needs all bytes in order (CHAIN, on a worker, one part after the other): then parts wait for their turn
 * in memory. No deadlock: parts of an object start in order, so the one whose turn is next always has its buffer.
 *
 * Everything runs on the engine's loop.
 */
#ifndef ACT_TRANSFER_COPY_H
#define ACT_TRANSFER_COPY_H

#include "sync/sync.h"
#include "transfer/transfer_internal.h"

struct walk;
struct object_part;

/* Takes over an item of the merge. */
typedef void walk_take(struct walk *walk, struct sync_item *item);

/* All that is known of a part. */
struct part_state {
    uint64_t crc64;
    bool has_crc64;
    bool present; /* at the destination already, from an interrupted transfer */
};

enum object_way {
    OBJECT_BUFFERED,   /* a part is read into memory, then written */
    OBJECT_IN_PIECES,  /* a part is summed and written while it arrives (pieces.c) */
    OBJECT_BY_SERVICE, /* the destination's service fetches each part: it is only a request here */
    OBJECT_READ_ONLY,  /* for its checksums */
};

/* Which checksums of its bytes are computed, and where. From ON_READ on they are known before a part is written. */
enum object_sums {
    OBJECT_NO_SUMS,
    OBJECT_SUMS_ON_WRITE, /* the CRC-64 of each part */
    OBJECT_SUMS_ON_READ,  /* the same */
    OBJECT_SUMS_AND_MD5,  /* and the MD5 of the whole: with several parts, in the chain */
};

/* The step that an object is at, or takes next. A failure skips to DROP. */
enum object_phase {
    OBJECT_PLAN, /* how it is moved; once more where the service turns out to be unable to fetch it */
    OBJECT_ASK,  /* for the blocks that are there already */
    OBJECT_MOVE, /* its parts */
    OBJECT_SIGN, /* a URL of the source, by which the service reads the properties that COMMIT gives it */
    OBJECT_COMMIT,
    OBJECT_LOOK, /* the destination is not as it was listed, or blocks are gone: is it the same already? If blocks are
                    * gone and it is not, back to ASK, once */
    OBJECT_DROP, /* the blocks that were sent, unless a later transfer can use them */
    OBJECT_END,  /* it is counted and freed */
};

enum object_outcome {
    OBJECT_ARRIVES, /* as long as nothing else is known */
    OBJECT_SAME,    /* not replaced, but the same is there */
    OBJECT_IN_VAIN, /* a folder whose mode is not ours to change */
    OBJECT_FAILED,  /* a later transfer can go on with what was sent */
    OBJECT_USELESS, /* failed, and what was sent can never be finished */
};

struct object {
    struct walk *walk;
    struct store *source;
    struct store_entry from;
    struct {
        char *key;             /* NULL: the object is only read */
        char etag[STORE_ETAG]; /* of what is replaced, as it was listed; "": any */
        bool absent;           /* there was nothing to replace */
    } to;
    struct {
        void (*done)(struct object *object); /* called at the end, also when it failed; NULL: the object is copied */
        void *arg;
    } only_read;
    struct {
        struct object *next;            /* in walk->waiting */
        struct object *younger, **link; /* in walk->oldest */
        int64_t begun_ms;
    } queue;
    struct {
        enum object_way way;
        enum object_sums sums;
        struct store_upload_id upload_id;
        bool resumable; /* the upload id identifies the source */
        uint64_t part_size;
        uint32_t n_parts;
    } plan;

    enum object_phase phase;
    enum object_outcome outcome;
    int under_way; /* calls, plus one while there are parts to start */
    struct store_call call;
    bool kept; /* the call only waits for the disk, and is not counted among those of the walk */

    struct {                       /* MOVE */
        struct part_state *states; /* of all parts */
        uint32_t started, written;
        uint64_t counted_bytes, resumed_bytes; /* of the object, in the report */
    } moved;
    struct { /* MOVE, of the MD5 in order */
        struct act_md5 md5;
        bool hashing;
        struct object_part *parts, **tail; /* not hashed yet, by index */
    } chain;
    struct {                      /* the whole, when all parts are known */
        char md5[ACT_MD5_BASE64]; /* "": not computed */
        uint64_t crc64;
        bool has_crc64;
    } whole;
    struct { /* COMMIT, LOOK */
        char *source_url;
        bool again;                /* blocks were gone, and are sent once more */
        struct act_error *refusal; /* why the destination was not replaced */
    } end;
};

struct side_listing {
    struct walk *walk;
    enum sync_side side;
    struct transfer_lister *lister;
    bool asked; /* for a page */
};

/* ahead.c: items listed before their turn. {0} is an empty queue. */
struct ahead_page;
struct ahead {
    struct ahead_page *first, *last;
    size_t n, bytes;
};
/* Takes over the item, which has a source. */
void ahead_put(struct ahead *ahead, struct sync_item *item, walk_take *begin);
/* Removes the first item, which the caller then owns. False: there is none. */
bool ahead_take(struct ahead *ahead, struct sync_item *item, walk_take **begin);
void ahead_release(struct ahead *ahead);

struct walk {
    struct engine *engine;
    const struct transfer_options *options;
    struct transfer_pool pool;
    struct store *from, *to;
    const char *to_path;
    bool single;     /* a single file; to_path is its name at the destination */
    bool by_service; /* the destination's service fetches by itself */
    struct sync *sync;
    struct side_listing listings[2];
    walk_take *take;
    void (*listed)(struct walk *walk);      /* when everything was taken; may be NULL */
    void *arg;                              /* for take and listed */
    bool full;                              /* take wants nothing more for now */
    uint64_t max_ahead;                     /* bytes */
    struct ahead ahead;                     /* items that are begun when nothing is waiting */
    struct object *waiting, **waiting_tail; /* objects with parts that are not started yet */
    struct object *oldest, **youngest;      /* all objects, in the order in which they were begun */
    int calls_under_way, objects_under_way;
    bool stop; /* start nothing more */
    struct {
        struct store_call call;
        bool begun;
        bool has_all; /* no call was begun behind it */
        bool *out;    /* of the setup */
    } syncing;
    enum { WALK_IDLE, WALK_PUMPING, WALK_PUMP_AGAIN } pump;
    struct transfer_report *report;
};

/* ---- walk.c */

struct walk_setup {
    struct engine *engine;
    const struct transfer_path *from;
    struct store *to;
    const char *to_path;
    const struct transfer_options *options;
    bool checksum, extras; /* as for sync */
    bool folder_modes;     /* non-empty folders are items too, where it matters */
    walk_take *take;
    void (*listed)(struct walk *walk);
    void *arg;
    struct transfer_report *report; /* added to */
    /* NULL, or set where a destination to which a question takes long has synced all that the walk wrote. */
    bool *out_synced;
};
/* Walks both sides to the end. 0, or an error if it could not start or came to a halt; failures are in the report. */
int walk_run(const struct walk_setup *setup, struct act_error *err);

/* Does whatever can be done now. Call it after every event; a nested call makes the outer one check again. */
void walk_pump(struct walk *walk);
/* Counts a call that begins. */
void walk_begin_call(struct walk *walk);
/* Queues the item; begin takes it over when its turn comes. */
void walk_later(struct walk *walk, struct sync_item *item, walk_take *begin);
/* Queues an object whose next step needs its turn; first: ahead of the others. */
void walk_enqueue(struct walk *walk, struct object *object, bool first);
void walk_fail(struct walk *walk, const struct act_error *error);
/* Counts and names a failure of an item that is SYNC_UNREADABLE. */
void walk_fail_unreadable(struct walk *walk, const struct sync_item *item);

/* ---- object.c */

/* Returns an object that is not started yet. It takes over `from` and `to_key`. `to` is the destination's entry there
 * (key NULL: none), the only one that will be replaced. */
struct object *object_new(struct walk *walk, struct store_entry *from, char *to_key, const struct store_entry *to);
/* Returns an object that is only read, for its checksums: it takes over `entry`. `read` is called at its end. */
struct object *object_new_read(struct walk *walk, struct store *source, struct store_entry *entry, bool want_md5,
                               void (*read)(struct object *object), void *arg);
bool object_has_failed(const struct object *object);
/* Returns the bytes of memory that the next step needs. */
size_t object_needs(const struct object *object);
/* Takes the next step: asks for the existing blocks, or starts a part. False: no step for now, and the caller must not
 * touch the object again: it ends or is enqueued again by itself. */
bool object_step(struct object *object);
/* Instead of a step: starts nothing more of it. */
void object_give_up(struct object *object);

/* ---- pieces.c: a part that is written while it comes */

struct pieces;
struct pieces_setup {
    const char *key; /* the block: what STORE_BLOCK takes. All of it lives until pieces_free() */
    struct store_upload_id upload_id;
    uint32_t block;
    uint64_t offset;
    char *buffer; /* of len bytes, the length of the block */
    size_t len;
    uint64_t *crc64; /* 0; in the end that of the block */
    /* Called after pieces_end(), possibly inside it, when nothing is in flight any more. error: the store's; NULL if
     * all that came was written. */
    void (*done)(void *arg, const struct act_error *error);
    void *arg;
};
struct pieces *pieces_new(struct store *to, const struct pieces_setup *setup);
/* Takes bytes at offset `at`; skips those already taken. */
void pieces_take(struct pieces *pieces, size_t at, const char *data, size_t len);
/* No more bytes will come. good: the response was what was asked for; only then is the last piece written, which
 * completes the block. An incomplete piece is not written. */
void pieces_end(struct pieces *pieces, bool good);
/* Nothing may be under way. NULL is fine. */
void pieces_free(struct pieces *pieces);

/* ---- plan.c */

/* Decides how the object is moved, from the start; ASK or MOVE comes next. */
void object_plan(struct object *object);
/* Cuts it into parts of about this size; nothing is known of them yet. */
void object_cut(struct object *object, uint64_t part_size);
/* Resets it: no part has been moved, summed in order or counted. */
void object_start_over(struct object *object);

/* ---- compare.c */

/* Compares both sides of the item by content; done(walk, item, rc) is called later: 1 the same, 0 different, negative:
 * not known, and the failure was reported. Takes over the item until done, which releases it. deep: reads both sides;
 * otherwise a store's checksum counts, and only the other side is read. */
void compare_start(struct walk *walk, struct sync_item *item, bool deep,
                   void (*done)(struct walk *walk, struct sync_item *item, int rc));

/* ---- mirror.c */

/* Counts what is only at the destination and asks, before anything is changed. */
int mirror_check(const struct walk_setup *setup, uint64_t *out_agreed, struct act_error *err) ACT_NODISCARD;
/* Deletes it, unless it is now more than was agreed. */
int mirror_run(const struct walk_setup *setup, uint64_t agreed, struct act_error *err) ACT_NODISCARD;

#endif
