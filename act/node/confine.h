/* confine.h - a process gives up what it does not need, for good: it handles bytes that somebody else made, and if they
 * take it over, there is nothing to do with it. */
#ifndef ACT_NODE_CONFINE_H
#define ACT_NODE_CONFINE_H

#include <stdbool.h>

/* From now on this thread, and what it starts, gains no rights by executing a program. Where the kernel has Landlock (Linux
 * 5.13, when it is switched on), it also changes and reads only what is in folder, which exists, and reads file; as far as
 * the version of Landlock goes, it opens no TCP connection and signals nobody else. Descriptors that are open stay as they
 * are. Call it before threads are started. Returns whether Landlock holds.
 *
 * Source: Documentation/userspace-api/landlock.rst of Linux 6.12. */
bool confine_to(const char *folder, const char *file);

#endif
