/* mounts.h - FUSE: the tools that mount a container of Blob Storage, what is mounted, and its end.
 *
 * Sources: proc(5) for /proc/self/mountinfo; fusermount3(1), which also root may use.
 */
#ifndef ACT_PROC_MOUNTS_H
#define ACT_PROC_MOUNTS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"

/* In the order in which they are preferred. */
enum mounts_tool { MOUNTS_BLOBFUSE2, MOUNTS_RCLONE, MOUNTS_TOOLS };
const char *mounts_tool_name(enum mounts_tool tool); /* "blobfuse2", "rclone" */

/* The tool that mounts here. wanted: its name; NULL: the first that is there. out_program: its path, a new string; may
 * be NULL. Without one, without fusermount3, or without a /dev/fuse that this user may open: -ACT_NOT_FOUND, with all
 * that is missing. */
int mounts_find_tool(const char *wanted, enum mounts_tool *out, char **out_program,
                     struct act_error *err) ACT_NODISCARD;

/* The mount points at dir and below it, innermost first. */
void mounts_below(const char *dir, struct act_strv *out);
/* Whether something is mounted at exactly this path, whatever its state. */
bool mounts_is_one(const char *path);

/* Where the whole of a source, such as "10.0.0.4:/data", is mounted. New string; NULL: nowhere. */
char *mounts_find_source(const char *source);

/* Unmounts what is at path; lazily: also if it is in use or its server is gone. */
int mounts_end(const char *path, bool lazily, struct act_error *err) ACT_NODISCARD;
/* Unmounts all that is at dir and below it, lazily. False: something is left. */
bool mounts_end_below(const char *dir);

#endif
