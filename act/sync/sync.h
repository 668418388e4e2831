/* sync.h - compares two listings and says what to do with each object. Pure: no input or output.
 *
 * Both listings come in byte order of their keys, page by page, and are merged, so that memory does not grow
 * with the number of objects. Keys are compared without the prefix of their side. Where a service lists
 * slightly out of order, an object may be taken as absent at the destination and be copied again; never the
 * reverse.
 */
#ifndef ACT_SYNC_SYNC_H
#define ACT_SYNC_SYNC_H

#include <stdbool.h>

#include "store/store.h"

enum sync_action {
    SYNC_COPY, /* absent at the destination, or different */
    SYNC_SAME, /* nothing to do */
};

/* The same when kind and size agree, and the modification times do; where one side does not know the time,
 * when both know the MD5 and it agrees. to NULL: absent. */
enum sync_action sync_decide(const struct store_entry *from, const struct store_entry *to);

enum sync_side { SYNC_FROM, SYNC_TO };

struct sync;

/* The prefixes are cut off the keys of their side. */
struct sync *sync_new(const char *from_prefix, const char *to_prefix);
void sync_free(struct sync *sync);

/* Which side's next page is needed before sync_next() can go on. */
bool sync_wants(const struct sync *sync, enum sync_side side);
/* Takes the entries of a page (the page is empty afterwards). last: there is no further one. */
void sync_feed(struct sync *sync, enum sync_side side, struct store_page *page, bool last);

struct sync_item {
    struct store_entry from; /* owned by the item; key is still the full key */
    const char *rel;         /* into from.key: the key without the prefix */
    enum sync_action action;
};
/* The next object of the source. False: more pages are needed, or all is said (sync_finished). */
bool sync_next(struct sync *sync, struct sync_item *out);
bool sync_finished(const struct sync *sync);

#endif
