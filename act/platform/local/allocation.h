/* allocation.h - the job of a batch system in which this process runs, if it does: "local" is then that job's part of
 * this node. Slurm, PBS, LSF, Grid Engine and Flux say it by variables. */
#ifndef ACT_PLATFORM_LOCAL_ALLOCATION_H
#define ACT_PLATFORM_LOCAL_ALLOCATION_H

#include <stdint.h>

struct allocation {
    const char *system; /* "Slurm"; NULL: there is no such job */
    char job[128];      /* its id, with that of its task in an array */
    int processors;     /* that the job has on this node; 0: not known */
    int64_t memory;     /* likewise, in bytes; 0: not known */
    int64_t end_unix_s; /* when its time is over; 0: not known */
};

/* Reads it by get(), which is getenv(), for the node of this name. What a job leaves in the shell of another machine,
 * as in that of salloc on a login node, is none. */
void allocation_read(const char *(*get)(const char *name), const char *node, struct allocation *out);

/* Returns for how many seconds the job goes on; -1: not known, as when it has no limit. Asks the batch system where its
 * variables do not say it, which may take limit_s seconds. */
int64_t allocation_left_s(const struct allocation *a, int limit_s);
/* Reads such a time from what a batch system printed: "1-02:03:04", "59:59", "3600"; -1: it is none. plain_s: the
 * seconds of a number alone; last_s: those of the last number where colons are. */
int64_t allocation_time_s(const char *text, int plain_s, int last_s);

#endif
