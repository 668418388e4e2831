/* task.h - one task of a worker, which makes some of the archive's data. */
#ifndef ACT_PACKAGE_TASK_H
#define ACT_PACKAGE_TASK_H

#include <stdatomic.h>

#include "package/package_internal.h"

enum package_task_kind {
    PACKAGE_BATCH, /* data of whole entries, one after the other */
    PACKAGE_PIECE, /* compressed data of a range of one file */
    PACKAGE_COPY,  /* a range of the last package */
};

struct package_task {
    enum package_task_kind kind;

    /* in */
    const struct package_entry *entries;
    size_t n;
    atomic_bool
        *grew; /* BATCH, PIECE: of the entries: it is longer than it was scanned. Tasks may share one. NULL: that
                          is a change as any other */
    struct package_item *items; /* BATCH: of the entries, its own; data counts from its first byte */
    uint64_t offset;            /* PIECE, COPY: the range */
    size_t len;
    bool last;                                                      /* PIECE: of its file */
    char *(*judge)(const char *path, const void *data, size_t len); /* BATCH: as package_options */
    int root_fd;                                                    /* BATCH, PIECE */
    int last_fd;                                                    /* COPY */
    const struct package_block *block;                              /* COPY: the range lies in it */
    bool is_good;                                                   /* COPY: the block was verified before */
    struct package_deflaters *deflaters;                            /* BATCH, PIECE */

    /* out */
    const char *bytes; /* in buffer */
    size_t n_bytes;
    char *buffer;
    uint32_t crc;    /* PIECE: of the uncompressed bytes */
    bool is_damaged; /* COPY: the last package has changed; rc is set, error is not */
    int rc;
    struct act_error error;
};

/* Returns the bytes of memory that the task takes while under way. */
size_t package_task_memory(const struct package_task *task);
/* Runs the task, on a worker. */
void package_task_run(struct package_task *task);

/* Fills in the id and the checksum of a block from its bytes `data`. */
void package_block_sum(struct package_block *block, const void *data);

#endif
