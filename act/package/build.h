/* build.h - a package on its way: shared by write.c (the archive, in order), plan.c (what workers do for it) and
 * blocks.c (where it is cut). All of it belongs to the loop; a worker has only the task of its step.
 */
#ifndef ACT_PACKAGE_BUILD_H
#define ACT_PACKAGE_BUILD_H

#include <stdatomic.h>
#include <sys/stat.h>

#include "package/task.h"

enum {
    PIECE = PACKAGE_JUDGED, /* files up to this size are compressed whole */
    BLOCK_MAX = 4 << 20,    /* a border after the entry that reaches this */
};

/* A task on its way through the build. */
struct write_step {
    struct package_task task;
    struct build *build;
    size_t first;    /* its first entry */
    uint64_t from;   /* where in that entry it begins: in the file (PIECE) or in its bytes (COPY) */
    bool is_part;    /* of one entry: a file in pieces, or a wide entry that is copied */
    bool ends_entry; /* the last of these */
    size_t memory;
    bool ready;
    struct write_step *next;
};

/* Where an entry lay in the last package. */
struct origin {
    bool copied;
    uint64_t data, head; /* its data, and the bytes in front of that */
};

struct build {
    const struct package_options *options;
    const struct package_list *list;
    const struct package_output *output;
    struct package_index last;
    int root_fd, last_fd;

    /* the plan */
    size_t next;        /* the current entry */
    uint64_t next_from; /* what of it is in tasks already */

    /* under way */
    struct write_step *first, **end; /* in order */
    size_t tasks, running, digests;
    uint64_t memory;
    bool is_ready; /* the first task */
    bool is_idle;  /* the workers have nothing to do */
    struct package_deflaters *deflaters;
    bool *good_blocks; /* of the last package: verified */

    /* the entry that libzip reads */
    bool is_open;
    const char *data; /* what is left of the first task's share in it */
    size_t left;
    uint64_t given;      /* bytes of its data up to now */
    struct act_buf cuts; /* uint64_t: how much of its data is before a border */
    struct origin origin;

    /* the archive */
    struct package_item *items;
    atomic_bool *grew; /* of the entries */
    struct package_sink sink;
    struct package_summary *out;
    uint64_t block_start, entries_end;
    bool block_copied;   /* all of the block so far is one range of the last package, */
    int64_t block_shift; /* so many bytes further ahead there */

    struct package_progress progress;
    int64_t shown_ms;
    bool is_damaged; /* the last package is */
    int rc;
    struct act_error error;
};

/* ---- write.c */

/* Sets the error of the build to that of its file. Returns its code. */
int package_fail_output(struct build *b, int errnum);
/* Does so with errno, unless the build has failed already. */
void package_fail_sink(struct build *b);
/* Looks what a worker has finished, so that whoever waits for that goes on. */
void package_look_around(struct build *b);
/* Tells whether an entry is so large that it has blocks of its own. */
bool package_is_wide(const struct package_entry *e);

/* ---- plan.c */

/* Returns the step that comes next in the list; the caller frees it. There must be an entry left. */
struct write_step *package_plan(struct build *b);

/* ---- blocks.c */

/* Returns the block of the last package that holds `offset`. */
const struct package_block *package_find_block(const struct package_index *last, uint64_t offset);
/* Ends a block at an offset up to which everything is settled. */
void package_cut(struct build *b, uint64_t at);
/* Takes note where the bytes of an entry, or of its part after a border, come from. */
void package_note_origin(struct build *b, const struct package_item *item);
/* Tells whether a block ends after the entry at `path` that has `entry_len` bytes and ends at `end`. */
bool package_is_border(const struct build *b, const char *path, uint64_t entry_len, uint64_t end);

#endif
