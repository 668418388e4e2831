/* sync.h - compares two listings and says what to do with each object. Pure: no input or output.
 *
 * Both listings come in byte order of their keys, page by page, and are merged, so that memory does not grow with the
 * number of objects: one page of each side and what was handed out. Keys are compared without the prefix of their side.
 * A listing out of order is an error, because an object might be taken for missing and be deleted on the other side.
 * Items before the error are good for copies, not for deletions: delete nothing before sync_finished(), that is, before
 * both listings have ended.
 *
 * A store lists a folder only if it is empty, or (store_entry.filled) if it keeps folders itself. So a folder that is
 * empty on one side and has contents on the other is on both: it is not extra and, if the contents stay, not new. Of a
 * folder with something in it only the mode matters, and only where it is not the one that it gets by itself.
 *
 * One thread at a time.
 */
#ifndef ACT_SYNC_SYNC_H
#define ACT_SYNC_SYNC_H

#include <stdbool.h>

#include "store/store.h"

enum sync_action {
    SYNC_COPY,
    SYNC_SAME,       /* nothing to do */
    SYNC_UNSURE,     /* the content decides, and the listings do not know enough of it: compute the checksums that are
                    missing and compare. Without checksum it is as right to copy, where that is cheaper */
    SYNC_EXTRA,      /* only at the destination. A folder that is filled there may be empty once the others are gone */
    SYNC_UNREADABLE, /* one side has only a name that could not be read: nothing is known */
};

enum sync_reason {
    SYNC_NO_REASON,
    SYNC_NEW,  /* not at the destination */
    SYNC_KIND, /* a file here, a link there */
    SYNC_SIZE,
    SYNC_TIME,
    SYNC_CONTENT, /* checksums differ */
    SYNC_MODE,    /* permission bits differ, the rest does not or is not known */
    SYNC_UNKNOWN, /* nothing is known that would show that they are the same */
};
/* "new", "kind", "size", "time", "content", "mode", "nothing known"; "" for none. */
const char *sync_reason_text(enum sync_reason reason);

/* Compares two entries. They are the same if kind, size and, where both sides know it, mode agree, no checksum that
 * both know differs, and
 *  - the modification times agree. A side that keeps them less finely (whole seconds to 100 ns, as its time tells by
 *    its zeros) is compared as finely as it can. A source that knows only when the store last wrote the object, in
 *    whole seconds, agrees with a copy that has this time and was itself written in a later second;
 *  - or, where a side does not know the time, a checksum that both know does;
 *  - with checksum: a checksum that both know does. Times do not count then.
 * Only the modes of folders are compared: a disk changes the time of a folder with whatever happens in it.
 * to NULL: absent. *out_reason (may be NULL) says why it is not the same. */
enum sync_action sync_decide(const struct store_entry *from, const struct store_entry *to, bool checksum,
                             enum sync_reason *out_reason);

/* Returns the time to give a copy, so that it counts as the same next time: that of the original or, if it is not
 * known, that at which the store last wrote it. 0: neither is known. */
int64_t sync_mtime_ns(const struct store_entry *entry);

/* Tells whether the destination is newer than the source, by those times, at the coarser resolution of the two. False
 * if a time is not known, and for folders, whose times mean nothing. */
bool sync_is_newer(const struct store_entry *from, const struct store_entry *to);
/* Tells the same by the times at which the stores wrote them. */
bool sync_is_written_later(const struct store_entry *from, const struct store_entry *to);

/* How open copies may be. {0}: as open as their originals. */
struct sync_modes {
    unsigned umask; /* bits that a copy has only where what it replaces has them; not on a disk: 0 */
    unsigned lost;  /* bits that the original may have lost to the umask: what is there keeps them */
    /* Existing objects are opened up to their owner alone, except that those who may read a file may execute it. */
    bool stay_closed;
};
/* Returns the permission bits of a copy; -1: the source knows none. to NULL or without a key: the copy is new. */
int sync_mode(const struct sync_modes *modes, const struct store_entry *from, const struct store_entry *to);

enum sync_side { SYNC_FROM, SYNC_TO };

struct sync_options {
    const char *from_prefix, *to_prefix; /* cut off the keys of their side */
    bool checksum;
    bool extras;     /* give SYNC_EXTRA items too */
    int folder_mode; /* that a folder of the destination has by itself; 0: whatever it is, it will do */
    struct sync_modes modes;
    /* Tells whether an object takes part; one that does not is never given, from neither side. rel of a folder ends in
     * '/'. NULL: all take part. */
    bool (*takes)(void *arg, const char *rel, bool is_folder);
    /* Tells of a folder that cannot be read whether anything below it may take part. NULL: it may. */
    bool (*enters)(void *arg, const char *rel);
    void *arg;
};

struct sync;

struct sync *sync_new(const struct sync_options *options);
void sync_free(struct sync *sync);

/* Tells whether the next page of a side is needed before sync_next() can go on. */
bool sync_wants(const struct sync *sync, enum sync_side side);
/* Takes the entries of a page (the page is empty afterwards). last: there is no further one. -ACT_FAIL, and the page
 * stays the caller's: a key is not greater than the one before it, or not below the prefix. */
int sync_feed(struct sync *sync, enum sync_side side, struct store_page *page, bool last,
              struct act_error *err) ACT_NODISCARD;

/* Entries are owned by the item; their keys are still the full ones. */
struct sync_item {
    enum sync_action action;
    enum sync_reason reason;
    struct store_entry from; /* key NULL with SYNC_EXTRA, and when absent. Its mode: sync_mode() */
    struct store_entry to;   /* key NULL when absent */
    const char *rel;         /* the key without the prefix, into one of the keys */
    /* With SYNC_EXTRA: lies below a name of the source that may hide the same, such as a link that leads out of it
     * or a folder that could not be read, so no mirror deletes it. Whether that name itself takes part makes no
     * difference. */
    bool is_protected;
};
void sync_item_release(struct sync_item *item);

/* Gives the next object, in order. False: more pages are needed, or this was the end (sync_finished()). */
bool sync_next(struct sync *sync, struct sync_item *out);
bool sync_finished(const struct sync *sync);

#endif
