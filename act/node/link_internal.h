/* link_internal.h - what both sides of the link share. */
#ifndef ACT_NODE_LINK_INTERNAL_H
#define ACT_NODE_LINK_INTERNAL_H

/* Keep-alive and time limits of a connection. */
void link_tune(int fd);

#endif
