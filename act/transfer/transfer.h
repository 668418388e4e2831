/* transfer.h - moves objects from one store to another, and removes them.
 *
 * An upload, a download and a copy between clusters are the same: a local folder is a folder store. Objects
 * go in parts: a part is read into a buffer of a fixed memory budget, hashed on a worker and written. An
 * object of one part is one request on each side; a larger one is committed when all its parts have arrived
 * and the whole agrees with the MD5 that its source knows. Until then the old object at the destination
 * stays. The source's ETag, as listed, guards every read: a source that changes meanwhile is an error for
 * that object.
 *
 *   list both sides ──► sync ──► object ──► part: GET ──► hash (in order) ──► PUT / BLOCK ──► COMMIT
 *
 * One object that fails does not stop the others; the report counts and names it. When the credentials are
 * refused no further object is started.
 */
#ifndef ACT_TRANSFER_TRANSFER_H
#define ACT_TRANSFER_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "store/store.h"

/* A path in a store: a file or a folder, found out by transfer_resolve(). "data/voc2" never means
 * "data/voc2012". */
struct transfer_path {
    struct store *store;
    char *path; /* without a trailing slash; "" is the whole store */
    bool is_folder;
};

/* Finds out what path is. A trailing slash asks for the folder. When both exist the file is taken and a
 * warning says how to get the folder. Neither: -ACT_NOT_FOUND. */
int transfer_resolve(struct store *store, const char *path, struct transfer_path *out,
                     struct act_error *err) ACT_NODISCARD;
void transfer_path_release(struct transfer_path *path);

struct transfer_progress {
    uint64_t found_objects, found_bytes; /* what has to be moved, as far as it is known */
    bool listing_done;
    uint64_t done_objects, done_bytes;
    uint64_t same_objects; /* already the same */
    uint64_t failed_objects;
};

enum { TRANSFER_MAX_FAILURES = 20 };

struct transfer_report {
    struct transfer_progress total;
    struct act_strv failures; /* the first TRANSFER_MAX_FAILURES texts */
    int64_t next_tick_ms;     /* internal: when progress is called again */
};
void transfer_report_release(struct transfer_report *report);

struct transfer_options {
    int max_parts;      /* under way at once; 0: 32 */
    uint64_t part_size; /* 0: 8 MiB: more than 4 MiB keeps Azure off its partition limits */
    uint64_t memory;    /* for part buffers; 0: 64 MiB */
    /* With dry_run nothing is written; plan is called for every object that would be. */
    bool dry_run;
    void (*plan)(void *arg, const struct store_entry *from, const char *to_key);
    /* Called on the loop about five times a second, and at the end. */
    void (*progress)(void *arg, const struct transfer_progress *now);
    void *arg;
};

/* Copies from (resolved) to the path to_path of the store to: a file becomes that file, a folder's content
 * goes below it. Both stores must be of one engine. 0 when everything is at the destination; -ACT_PARTIAL
 * when a part failed; the first error's code when nothing could be done; what happened is in report in every
 * case (release it). */
int transfer_copy(struct engine *engine, const struct transfer_path *from, struct store *to,
                  const char *to_path, const struct transfer_options *options, struct transfer_report *report,
                  struct act_error *err) ACT_NODISCARD;

/* Removes the file, or everything below the folder, as it was listed (If-Match). Objects that are gone
 * already count as done. With dry_run only counts. Result as for transfer_copy(). */
int transfer_remove(struct engine *engine, const struct transfer_path *what,
                    const struct transfer_options *options, struct transfer_report *report,
                    struct act_error *err) ACT_NODISCARD;

/* Calls each(arg, entry, rel) for every object of a file or below a folder, page by page; recursive false:
 * one level. A negative result of each stops and is returned. */
int transfer_list(const struct transfer_path *what, bool recursive,
                  int (*each)(void *arg, const struct store_entry *entry, const char *rel,
                              struct act_error *err),
                  void *arg, struct act_error *err) ACT_NODISCARD;

#endif
