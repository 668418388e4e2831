/* confine.h - a process that handles foreign bytes gives up for good what it does not need, so that there is nothing
 * to gain from taking it over. */
#ifndef ACT_NODE_CONFINE_H
#define ACT_NODE_CONFINE_H

#include <stdbool.h>

/* From now on this thread, and what it starts, gains no rights by executing a program. If the kernel has Landlock
 * (Linux 5.13, if enabled), it can also change and read only what is in folder, which must exist, and read file;
 * depending on the version of Landlock it cannot open TCP connections or signal other processes. Open descriptors stay
 * usable. Call it before threads are started. Returns whether Landlock is in force.
 *
 * Source: Documentation/userspace-api/landlock.rst of Linux 6.12. */
bool confine_to(const char *folder, const char *file);

#endif
