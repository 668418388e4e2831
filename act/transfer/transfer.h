/* transfer.h - moves objects from one store to another, and removes them.
 *
 * An upload, a download and a copy between clusters are the same: a local folder is a folder store. Objects
 * are moved in parts: a part is read into a buffer of a fixed memory budget, hashed on a worker and written. An
 * object of one part is one request on each side; a larger one is committed when all its parts have arrived
 * and the whole agrees with the checksums that its source knows. The old object at the destination stays until
 * then. The source's ETag, as listed, guards every read: a source that changes meanwhile is an error for that
 * object.
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

struct engine;
struct filter;
struct store;
struct store_entry;

/* A path in a store: a file or a folder, found out by transfer_resolve(). "data/voc2" never means
 * "data/voc2012". */
struct transfer_path {
    struct store *store;
    char *path; /* without a trailing slash; "" is the whole store */
    bool is_folder;
    bool is_link; /* a symbolic link, which is a file whose content is its target */
};

/* Finds out what path is. A trailing slash asks for the folder. When both exist the file is taken and a
 * warning says how to get the folder. Neither: -ACT_NOT_FOUND. */
int transfer_resolve(struct store *store, const char *path, struct transfer_path *out,
                     struct act_error *err) ACT_NODISCARD;
void transfer_path_release(struct transfer_path *path);

struct transfer_progress {
    uint64_t listed_objects, listed_bytes; /* of the source, as far as it was listed: the same and what is left, too */
    uint64_t found_objects, found_bytes;   /* what has to be moved (removed, verified), as far as it is known */
    bool listing_done;
    uint64_t done_objects, done_bytes;
    int64_t moving_bytes;   /* of parts under way: what has moved over the network, and is not yet in done_bytes */
    uint64_t resumed_bytes; /* part of done_bytes: already at the destination from an interrupted transfer */
    uint64_t same_objects;  /* already the same */
    uint64_t newer_objects; /* different, but newer at the destination, and left there */
    uint64_t skipped_links; /* that lead out of the source */
    uint64_t deleted_objects;
    uint64_t failed_objects;
    uint64_t folder_modes; /* set on non-empty folders, which are not objects; in a dry run, to be set */
    /* The key of the object that has been under way longest, if for some seconds; NULL: none. Valid during the call of
     * progress. */
    const char *slow;
};

enum { TRANSFER_MAX_FAILURES = 20 };

/* Failures that differ only in the object they are about are one group. */
struct transfer_failure {
    char *text; /* of the first one */
    uint64_t n;
    struct act_strv also; /* the objects that the next TRANSFER_MAX_FAILURES are about */
};

struct transfer_report {
    struct transfer_progress total;
    uint64_t kept_extras;              /* of a mirror: not deleted because something failed */
    struct act_error first;            /* the first failure, whole, where total.failed_objects is not 0 */
    struct transfer_failure *failures; /* the first TRANSFER_MAX_FAILURES groups */
    size_t n_failures;
    bool is_plan;         /* of a dry run: what was found would be done */
    int64_t next_tick_ms; /* internal: when progress is called again */
};
void transfer_report_release(struct transfer_report *report);
/* Adds the failures, not the counts, of part to sum. */
void transfer_report_add_failures(struct transfer_report *sum, const struct transfer_report *part);

enum transfer_action { TRANSFER_COPY, TRANSFER_DELETE, TRANSFER_LEAVE };

/* Decides about links of the source that lead out of its folder (store_entry.leads_out). Where they are followed
 * (store_follow_links()) there are none. */
enum transfer_links {
    TRANSFER_KEEP_LINKS,   /* copied as links, as others are */
    TRANSFER_REFUSE_LINKS, /* each is a failure */
    TRANSFER_SKIP_LINKS,   /* left out, and counted */
};

/* One line of the plan, or what was left. Pointers are valid during the call. */
struct transfer_step {
    enum transfer_action action;
    const struct store_entry *entry; /* of the source; of the destination when it is to be deleted */
    const char *to_key;              /* NULL with TRANSFER_DELETE */
    const char *reason;              /* "new", "size", "time", "content", "not at the source", "newer", "a link" */
};

#define TRANSFER_PART_SIZE (8U << 20) /* more than 4 MiB keeps Azure off its partition limits */
#define TRANSFER_MEMORY    (64U << 20)
#define TRANSFER_MD5_MAX   (256U << 20) /* less than half a second of one processor */

struct transfer_options {
    uint64_t part_size;    /* 0: TRANSFER_PART_SIZE; more where an object would need too many parts */
    uint64_t memory;       /* for part buffers; 0: TRANSFER_MEMORY. At least one part */
    struct filter *filter; /* NULL: everything */
    bool checksum;         /* compare content, not times */
    /* Objects up to this size that go in several parts get an MD5 too, for tools that know no other checksum. It needs
     * all bytes in order, on one processor. 0: TRANSFER_MD5_MAX */
    uint64_t md5_max;
    /* Mirror: once everything was copied without a failure, what is only at the destination is deleted, as it was
     * listed (If-Match). It is counted before anything is changed; more than max_delete (negative: no limit), or an
     * empty source, is an error that changes nothing. confirm (may be NULL) is asked if there is anything to delete;
     * its error ends the transfer before it starts. */
    bool delete_extra;
    int64_t max_delete;
    int (*confirm)(void *arg, uint64_t objects, uint64_t bytes, struct act_error *err);
    /* Keeps what is newer and different at the destination, or a link that leads out of it where the source has a file;
     * left (may be NULL) is called for each, in a dry run too. Without keep_newer, the destination becomes what the
     * source is. */
    bool keep_newer;
    /* Which destination is newer; NULL: by the times of the originals (sync_is_newer()). */
    bool (*is_newer)(void *arg, const struct store_entry *source, const struct store_entry *destination);
    /* Returns whether an object of the source takes part; NULL: all do. For copies without delete_extra. */
    bool (*wants)(void *arg, const struct store_entry *source);
    enum transfer_links links; /* what lies below the name of such a link is never deleted */
    void (*left)(void *arg, const struct transfer_step *step);
    /* Existing objects at the destination are not opened to anyone but their owner; see sync_mode(). New ones on a disk
     * are subject to the umask in any case. */
    bool stay_closed;
    bool no_sync; /* a power cut may take what is written now (a folder) */
    /* With dry_run nothing is written; plan (may be NULL otherwise) is called for every step. */
    bool dry_run;
    void (*plan)(void *arg, const struct transfer_step *step);
    /* Called on the loop about five times a second, and at the end. */
    void (*progress)(void *arg, const struct transfer_progress *now);
    void *arg; /* for confirm, wants, left, plan and progress */
};

/* Copies from (resolved) to the path to_path of the store to: a file becomes that file, a folder's content goes below
 * it. Both stores must use the same engine. 0 when everything is at the destination; -ACT_PARTIAL when a part failed;
 * the first error's code when nothing could be done. report always says what happened (release it).
 *
 * Repeating an interrupted transfer resumes it: blocks that arrived are not sent again. Between two Azure stores the
 * service itself copies, where it can. */
int transfer_copy(struct engine *engine, const struct transfer_path *from, struct store *to, const char *to_path,
                  const struct transfer_options *options, struct transfer_report *report,
                  struct act_error *err) ACT_NODISCARD;

enum transfer_difference {
    TRANSFER_MISSING, /* not at the destination */
    TRANSFER_EXTRA,   /* only at the destination */
    TRANSFER_KIND,
    TRANSFER_SIZE,
    TRANSFER_CONTENT,
    TRANSFER_DIFFERENCES
};

/* Compares both sides completely, by content: by stored checksum where the store has one (deep: never; all bytes are
 * read on both sides). Calls each for every difference, in key order, except that those found by reading come when the
 * read ends. 0 when there is none, -ACT_PARTIAL with differences or when something could not be compared
 * (report->failures). Uses part_size, memory, filter, progress and arg of the options; done_objects counts what was
 * compared. */
int transfer_verify(struct engine *engine, const struct transfer_path *from, struct store *to, const char *to_path,
                    const struct transfer_options *options, bool deep,
                    void (*each)(void *arg, enum transfer_difference what, const char *rel,
                                 const struct store_entry *from, const struct store_entry *to),
                    struct transfer_report *report, struct act_error *err) ACT_NODISCARD;

/* Removes the file, or everything below the folder, as it was listed (If-Match), in batches. Objects that are gone
 * already count as done. Folders left empty are removed too; with a filter, only those it accepts. Uses filter,
 * dry_run, plan, progress and arg. Result as for transfer_copy(). */
int transfer_remove(struct engine *engine, const struct transfer_path *what, const struct transfer_options *options,
                    struct transfer_report *report, struct act_error *err) ACT_NODISCARD;

/* Removes what interrupted uploads left at or below path (which need not exist otherwise), and no visible object. An
 * upload in progress elsewhere loses what it has sent, if the store cannot tell it from a leftover. Uses dry_run, plan,
 * progress and arg. Result as for transfer_copy(). */
int transfer_clear(struct engine *engine, struct store *store, const char *path, const struct transfer_options *options,
                   struct transfer_report *report, struct act_error *err) ACT_NODISCARD;

enum transfer_scope {
    TRANSFER_LEVEL,     /* one level: folders are one entry */
    TRANSFER_TREE,      /* everything below */
    TRANSFER_WHOLE,     /* and folders with something in them that the store knows by themselves */
    TRANSFER_LEFTOVERS, /* what interrupted uploads left at or below the path, size is what they hold */
};

/* Calls each(arg, entry, rel) for every object of a file or below a folder, in order of keys and while the listing
 * goes on, in constant memory. rel is the key after the folder; a file's name for the file itself. A negative
 * result of each stops and is returned. */
int transfer_list(struct engine *engine, const struct transfer_path *what, enum transfer_scope scope,
                  int (*each)(void *arg, const struct store_entry *entry, const char *rel, struct act_error *err),
                  void *arg, struct act_error *err) ACT_NODISCARD;

struct transfer_range {
    uint64_t first; /* only so many bytes from the start; 0: all */
    uint64_t last;  /* of these only so many at their end; 0: all */
};

/* Reads a file and gives the bytes to write, in order, on a worker, one call at a time. A whole file is verified
 * against the checksum that the store has, which can only be said at the end: -ACT_FAIL then, and what was written is
 * not to be trusted. An append blob is read as long as it is at the start, while it may grow. range: NULL for
 * everything. memory as in the options. A negative result of write stops and is returned. */
int transfer_read(struct engine *engine, const struct transfer_path *what, const struct transfer_range *range,
                  uint64_t memory, int (*write)(void *arg, const void *data, size_t len, struct act_error *err),
                  void *arg, struct act_error *err) ACT_NODISCARD;

/* The bytes from offset to end of an object that may grow. */
struct transfer_stretch {
    const char *key;
    uint64_t offset, end;
    const char *if_match; /* the ETag that it must have, so it must exist; NULL: any */
    const void *before;   /* what it had just before offset; another object in its place may differ there */
    size_t before_len;
    size_t slice;    /* the most bytes of a request; 0: 4 MiB, or memory */
    bool want_crc64; /* without before */
    bool in_turn;    /* it is written when all those before it are, although it may be read earlier */
    /* Gets the bytes in order, on a worker, one call at a time. at: their offset in the object. */
    int (*write)(void *arg, uint64_t at, const void *data, size_t len, struct act_error *err);
    void *arg;
    /* out */
    uint64_t got, crc64; /* how many were written, and their CRC64 if it is wanted */
    bool replaced;       /* it is another object: it ends before end, or differs before offset */
};

/* Reads stretches of many objects, many parts at once, and has each written in its order. An object that does not exist
 * is no failure. memory as in the options. moved (may be NULL) is called on the loop when got has grown by bytes. Stops
 * at the first failure. */
int transfer_stretches(struct engine *engine, struct store *store, struct transfer_stretch *stretches, size_t n,
                       uint64_t memory, void (*moved)(void *arg, const struct transfer_stretch *stretch, size_t bytes),
                       void *arg, struct act_error *err) ACT_NODISCARD;

#endif
