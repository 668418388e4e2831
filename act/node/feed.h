/* feed.h - the input of the commands of a run of 'a submit --stdin'. Beside the agent of each rank a process of it
 * holds the end of a pipe that the command reads from. 'act-node input', by which 'a attach' comes, brings it what was
 * typed:
 *
 *   a attach  -frames, through ssh and the like->  act-node input  -packets (terminal.h)->  the feeder  ->  command
 *
 * A frame is the length of what follows (2 bytes, big-endian), at most TERMINAL_PIECE, and that many bytes; 0: the
 * input ends here. So a connection that breaks is no end: the command waits until somebody comes back. Several may come
 * at once. Nobody but this user is let in. */
#ifndef ACT_NODE_FEED_H
#define ACT_NODE_FEED_H

#include "node/node.h"

/* Starts the feeder of a rank, a child of this process. Returns what its command reads from, the caller's; -1: errno
 * says why there is none. */
int feed_start(const struct node *node, int rank);

#endif
