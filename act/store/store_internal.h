/* store_internal.h - for the files of store/ only: what a store implements. */
#ifndef ACT_STORE_STORE_INTERNAL_H
#define ACT_STORE_STORE_INTERNAL_H

#include "store/store.h"

#define STORE_BIT(operation) (1U << (operation))
#define STORE_READS          (STORE_BIT(STORE_HEAD) | STORE_BIT(STORE_GET) | STORE_BIT(STORE_LIST))

struct store_ops {
    unsigned operations; /* STORE_BIT() of each one that it has */
    /* Must lead to exactly one store_finish(), later, on the loop. */
    void (*start)(struct store *store, struct store_call *call);
    /* Only for store_read_on_loop(). */
    int (*get)(struct store *store, struct store_call *call);
    int (*list)(struct store *store, struct store_call *call, struct store_page *out); /* for HEAD and LIST */
    bool (*is_busy)(const struct store *store);            /* whether a call has to wait; NULL: never */
    const char *(*key_problem)(const char *key);           /* NULL: the store is only read */
    const char *(*alias_problem)(const char *key);         /* why a request for this key would mean another one, as
                                                              key_problem says it; NULL: none ever does */
    void (*close)(struct store *store);                    /* frees all but store->name */
    int (*window)(const struct store *store);              /* store_window(); NULL: always 1 */
    void (*hurry)(struct store *store);                    /* store_hurry(); NULL: no call is ever kept */
    void (*open_up)(struct store *store, const char *key); /* store_open_up(); NULL: no folder needs it */
    int (*may_read)(struct store *store, const char *key, struct act_error *err); /* store_may_read(); may be NULL */
    bool (*watch)(struct store *store, bool *news);                               /* store_watch(); may be NULL */
    struct store_traits traits;
};

/* The common head of every store struct. */
struct store {
    const struct store_ops *ops;
    struct http *http;
    char *name;     /* owned */
    unsigned lacks; /* STORE_BIT() of each operation that only this one does not have */
    bool no_sync, follow;
};

/* Sets call->rc (the error is in call->error already) and calls call->done. */
void store_finish(struct store_call *call, int rc);
/* Does so later, on the loop. */
void store_finish_later(struct store *store, struct store_call *call, int rc);

/* Returns the name of a store of a run's logs, a new string, and in *out_id the run's id in it. */
char *store_logs_name(const char *id, const char **out_id);

/* Returns what is wrong with a segment of a key that is a path: it is empty, "." or "..". NULL: nothing is. */
const char *store_segment_problem(const char *segment, size_t len);

/* Compares two entries by key, for qsort(). */
int store_by_key(const void *a, const void *b);

/* Ends a LIST or HEAD of a store that lists everything at once: takes the page's entries (if rc is 0), all of which
 * begin with the key of the call, in any order, and turns them into what the call asks for. */
void store_finish_listed(struct store *store, struct store_call *call, int rc, struct store_page *page);

/* The .start of a store that is only read and carries each call out on the loop, one after the other: with .list, then
 * store_finish_listed(), or with .get. */
void store_read_on_loop(struct store *store, struct store_call *call);

/* Returns the bytes of a PUT or BLOCK; NULL for any other operation. */
const struct store_data *store_data_of(const struct store_call *call);

/* Returns "put", for error texts: "cannot put 'container/key'". */
const char *store_verb(enum store_op op);

#define STORE_PAGE_MAX 5000 /* entries per page, the most that Blob Storage gives */

#endif
