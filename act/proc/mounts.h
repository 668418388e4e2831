/* mounts.h - FUSE: finds the tools that mount a container of Blob Storage, finds what is mounted, and unmounts it.
 *
 * Sources: proc(5) for /proc/self/mountinfo; fusermount3(1), which also root may use.
 */
#ifndef ACT_PROC_MOUNTS_H
#define ACT_PROC_MOUNTS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"

/* The tools, the preferred one first. */
enum mounts_tool { MOUNTS_BLOBFUSE2, MOUNTS_RCLONE, MOUNTS_TOOLS };
const char *mounts_tool_name(enum mounts_tool tool); /* "blobfuse2", "rclone" */

/* Finds the tool that mounts here: that named wanted or, if that is NULL, the first that is there. *out_program: its
 * path, a new string; out_program may be NULL. Fails with -ACT_NOT_FOUND, and all that is missing, without a tool,
 * without fusermount3, or without a /dev/fuse that this user may open. */
int mounts_find_tool(const char *wanted, enum mounts_tool *out, char **out_program,
                     struct act_error *err) ACT_NODISCARD;

/* Lists the mount points at dir and below it, innermost first. */
void mounts_below(const char *dir, struct act_strv *out);
/* Tells whether something is mounted at exactly this path, whatever its state. */
bool mounts_is_one(const char *path);

/* Returns where the whole of a source, such as "10.0.0.4:/data", is mounted, a new string; NULL: nowhere. */
char *mounts_find_source(const char *source);

/* Unmounts what is at path, and with lazily also if it is in use or its server is gone. */
int mounts_end(const char *path, bool lazily, struct act_error *err) ACT_NODISCARD;
/* Unmounts all that is at dir and below it, lazily. Returns false if something is left. */
bool mounts_end_below(const char *dir);

#endif
