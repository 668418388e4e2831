/* transfer_internal.h - for the files of transfer/ only. */
#ifndef ACT_TRANSFER_TRANSFER_INTERNAL_H
#define ACT_TRANSFER_TRANSFER_INTERNAL_H

#include "engine/engine.h"
#include "store/store.h"
#include "transfer/transfer.h"

/* Pages of what lies below a prefix, in order of keys. Some are fetched ahead, in bounded memory; the folders of a long
 * listing are listed side by side where the store gains by that (lister.c). All runs on the loop. */
struct transfer_lister;
/* Starts to fetch what lies below `prefix` ("" for all) at once. */
struct transfer_lister *transfer_lister_new(struct engine *engine, struct store *store, const char *prefix,
                                            enum transfer_scope scope);
/* Asks for a page. done() is called once, later. It may take entries out of `page`, which may be empty; what it
 * leaves is freed. `last`: there are no more pages. `error` is not NULL if the listing failed: then the page is
 * empty, and nothing more may be asked for. */
void transfer_lister_next(struct transfer_lister *lister,
                          void (*done)(void *arg, struct store_page *page, bool last, const struct act_error *error),
                          void *arg);
/* Frees the lister at any time, also inside done() and while a page is asked for: then done() is not called. Requests
 * under way need the store until the engine has run dry. */
void transfer_lister_free(struct transfer_lister *lister);

/* Returns the prefix of what lies below a folder: of "a" it is "a/", of "" it is "". New string. */
char *transfer_prefix(const char *path);

/* Returns whether a leftover with this key lies at or below `path`. */
bool transfer_is_leftover_of(const char *key, const char *path);

/* Counts and names a failure. */
void transfer_report_failure(struct transfer_report *report, const struct act_error *error);

/* Counts and names an entry that is STORE_UNREADABLE. */
void transfer_report_unreadable(struct transfer_report *report, const struct store_entry *entry);

/* Adds the failures of a part of the work, and counts them. */
void transfer_report_add(struct transfer_report *report, const struct transfer_report *part);

/* Returns the result of a finished walk: 0, -ACT_PARTIAL, or the first failure when nothing was done. */
int transfer_report_result(const struct transfer_report *report, struct act_error *err);

/* Returns whether further objects would meet the same error: refused credentials, an unreachable service. */
bool transfer_is_hopeless(const struct act_error *error);

/* Calls the progress callback if it is due, or now in any case. */
void transfer_progress_tick(const struct transfer_options *options, struct transfer_report *report, bool now);

/* ---- batch.c: deletions, many in one call, several calls at once, each as it was listed (If-Match) */

struct transfer_deleter {
    struct store *store;
    bool leftovers; /* clears leftovers instead of deleting objects */
    /* For every entry; error NULL: it is gone. */
    void (*deleted)(void *arg, const struct store_entry *entry, const struct act_error *error);
    void (*more)(void *arg); /* called after every call: there may be room again */
    void *arg;
    struct transfer_batch *open; /* internal: being filled */
    int under_way;               /* internal: calls */
};
bool transfer_deleter_has_room(const struct transfer_deleter *deleter);
/* Takes the entry over, also where there is no room. */
void transfer_deleter_add(struct transfer_deleter *deleter, struct store_entry *entry);
/* Sends what was added and does not fill a call yet. */
void transfer_deleter_flush(struct transfer_deleter *deleter);
/* Drops what was not flushed. No call may be under way. */
void transfer_deleter_release(struct transfer_deleter *deleter);

/* ---- pool.c: the buffers of parts, within a fixed budget */

struct transfer_pool {
    uint64_t limit, used; /* bytes */
    uint64_t part_size;
    char **spare; /* of part_size bytes each */
    size_t n_spare;
};
void transfer_pool_init(struct transfer_pool *pool, uint64_t limit, uint64_t part_size);
void transfer_pool_release(struct transfer_pool *pool);
/* Returns whether a buffer of `len` bytes (at most a part) may be taken now. One always may. */
bool transfer_pool_has_room(const struct transfer_pool *pool, size_t len);
char *transfer_pool_take(struct transfer_pool *pool, size_t len);
void transfer_pool_give(struct transfer_pool *pool, char *buffer, size_t len);

#endif
