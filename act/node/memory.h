/* memory.h - whether the kernel killed processes here for want of memory, and what they may use: of the cgroup of this
 * process, version 2 or 1. A rank that is killed so says nothing itself; its agent is killed rarely.
 *
 * Source: Documentation/admin-guide/cgroup-v2.rst (memory.events, memory.max) and cgroup-v1/memory.rst
 * (memory.oom_control, memory.limit_in_bytes) of Linux 6.12.
 */
#ifndef ACT_NODE_MEMORY_H
#define ACT_NODE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Returns how many processes were killed so far; -1: it is not known. */
int64_t memory_kills(void);
/* Writes why the kernel has killed a process of a rank: "it used more memory than it may (2.0 GiB)". */
void memory_describe(char *out, size_t size);

/* Returns what memory_kills() does for the cgroup at path, or for the nearest one above it that counts them. */
int64_t memory_kills_at(const char *path);
/* Returns the least limit of the cgroup at path and those above it, in bytes; 0: there is none. */
int64_t memory_limit_at(const char *path);

#endif
