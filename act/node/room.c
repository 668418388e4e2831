#include "node/room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

enum { OWN_BYTES = 8 << 10 /* for the line at the end of the log */, TRIED_BYTES = 64 << 10, LOOK_MS = 5000 };

static bool room_is_full(int errnum)
{
    return errnum == ENOSPC || errnum == EDQUOT;
}

/* Writes len more bytes at the end of the file, and no zeros, which file systems may not store. */
static void node_room_take(struct room *room, size_t len)
{
    ACT_AUTOFREE char *bytes = act_alloc(len);

    memset(bytes, 'r', len);
    if ((act_write_all(room->fd, bytes, len) < 0 || fsync(room->fd) < 0) && room_is_full(errno))
        room->errnum = errno;
}

void room_open(struct room *room, const struct node *node, int rank)
{
    ACT_AUTOFREE char *name = act_sprintf(RUN_DIR_TEMP "/room.%d", rank);

    *room = (struct room){.path = node_path(node, name), .look_at_ms = act_now_monotonic_ms() + LOOK_MS};
    room->fd = open(room->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (room->fd >= 0)
        node_room_take(room, OWN_BYTES);
}

/* Does not see quotas, and some file systems say nothing. */
void room_look(struct room *room)
{
    struct statvfs fs;

    room->look_at_ms = act_now_monotonic_ms() + LOOK_MS;
    if (fstatvfs(room->fd, &fs) == 0 && fs.f_blocks > 0 && (geteuid() == 0 ? fs.f_bfree : fs.f_bavail) == 0)
        room->errnum = ENOSPC;
}

int room_close(struct room *room, int log_fd)
{
    if (room->fd < 0)
        return 0;
    int seen = room->errnum;
    room->errnum = 0;
    node_room_take(room, TRIED_BYTES);
    room->again = seen && !room->errnum;
    if (room->again)
        room->errnum = seen;
    /* A process that began as a copy of this one may hold the file still: without this its room would stay taken. */
    if (ftruncate(room->fd, 0) < 0)
        node_say("cannot give up the room kept for the last line of the log: %m");
    close(room->fd);
    unlink(room->path);
    free(room->path);
    if (room->errnum && dprintf(log_fd, "\n" RUN_LOG_AGENT "this log %s: %s %s it was written\n",
                                room->again ? "may not be whole" : "is not whole", strerror(room->errnum),
                                room->again ? "for a time while" : "while") < 0)
        node_say("cannot write to the rank's log: %m");
    room->fd = -1;
    room->look_at_ms = 0;
    return room->errnum;
}
