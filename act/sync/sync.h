/* sync.h - compares two listings and says what to do with each object. Pure: no input or output.
 *
 * Both listings come in byte order of their keys, page by page, and are merged, so that memory does not grow
 * with the number of objects. Keys are compared without the prefix of their side. A listing that does not keep the
 * order is an error: with it, an object could be taken for missing, and be deleted at the other side.
 */
#ifndef ACT_SYNC_SYNC_H
#define ACT_SYNC_SYNC_H

#include <stdbool.h>

#include "store/store.h"

enum sync_action {
    SYNC_COPY,
    SYNC_SAME, /* nothing to do */
    SYNC_UNSURE, /* with checksum: the destination knows one that the source has to compute, or neither knows any */
    SYNC_EXTRA, /* only at the destination */
};

enum sync_reason {
    SYNC_NO_REASON,
    SYNC_NEW,  /* not at the destination */
    SYNC_KIND, /* a file here, a link there */
    SYNC_SIZE,
    SYNC_TIME,
    SYNC_CONTENT,
    SYNC_UNKNOWN, /* nothing is known that could show that they are the same */
};
/* "new", "kind", "size", "time", "content", "nothing known"; "" for none. */
const char *sync_reason_text(enum sync_reason reason);

/* The same when kind and size agree, and
 *  - the modification times do: to the nanosecond, but where one side keeps only whole seconds or 100 ns, as finely as
 *    that; or, where a side does not know the time, the checksums that both know;
 *  - with checksum: the checksums that both know. Times do not count then. Links and folders have none: for those the
 *    times count.
 * to NULL: absent. *out_reason (may be NULL) says why it is not the same. */
enum sync_action sync_decide(const struct store_entry *from, const struct store_entry *to, bool checksum,
                             enum sync_reason *out_reason);

enum sync_side { SYNC_FROM, SYNC_TO };

struct sync_options {
    const char *from_prefix, *to_prefix; /* cut off the keys of their side */
    bool checksum;
    bool extras; /* give SYNC_EXTRA items too */
    /* Whether an object takes part; what does not is not there, on either side. NULL: all. */
    bool (*takes)(void *arg, const char *rel, bool is_folder);
    void *arg;
};

struct sync;

struct sync *sync_new(const struct sync_options *options);
void sync_free(struct sync *sync);

/* Which side's next page is needed before sync_next() can go on. */
bool sync_wants(const struct sync *sync, enum sync_side side);
/* Takes the entries of a page (the page is empty afterwards). last: there is no further one. -ACT_FAIL: the listing is
 * out of order. */
int sync_feed(struct sync *sync, enum sync_side side, struct store_page *page, bool last,
              struct act_error *err) ACT_NODISCARD;

/* Entries are owned by the item; their keys are still the full ones. */
struct sync_item {
    enum sync_action action;
    enum sync_reason reason;
    struct store_entry from; /* key NULL with SYNC_EXTRA */
    struct store_entry to;   /* key NULL when absent */
    const char *rel;         /* the key without the prefix, into one of the keys */
};
void sync_item_release(struct sync_item *item);

/* The next object, in order. False: more pages are needed, or all is said (sync_finished). */
bool sync_next(struct sync *sync, struct sync_item *out);
bool sync_finished(const struct sync *sync);

#endif
