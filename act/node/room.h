/* room.h - whether the disk had room for what a command wrote to its log. The command writes there itself, so that its
 * agent sees no write fail: it looks at the disk meanwhile, and tries it at the end.
 */
#ifndef ACT_NODE_ROOM_H
#define ACT_NODE_ROOM_H

#include <stdint.h>

#include "node/node.h"

struct room {
    char *path; /* of a small file beside the logs, which is given up for the last line of a log */
    int fd;     /* -1: none */
    int errnum; /* ENOSPC or EDQUOT: there was no room; 0: there always was, as far as anybody saw */
    bool again; /* ... but at the end there was: the command may have written nothing meanwhile, or tried again */
    int64_t look_at_ms; /* monotonic; 0: never */
};

/* Begins to look, for a log that is on a disk here; for others {.fd = -1} never finds anything. */
void room_open(struct room *room, const struct node *node, int rank);
/* Looks whether the disk is full. Call it when look_at_ms has come. */
void room_look(struct room *room);
/* Tries the disk, gives the file up, and says at the end of the log that it is not whole, or may not be. Returns the
 * errno. */
int room_close(struct room *room, int log_fd);

#endif
