/* server.h - connections: receives requests, has them served, sends the replies. */
#ifndef BLOBSERVER_SERVER_H
#define BLOBSERVER_SERVER_H

#include <stdbool.h>

struct server_options {
    int port;       /* 0: any free one */
    int threads;    /* loops, each with connections of its own */
    int latency_ms; /* before every answer */
    bool discard;   /* swallow large bodies of blobs, blocks and ranges */
    bool files;     /* be the File service */
};

/* Listens on the loopback address and starts the threads, which run until the program ends. Returns the port, or -1
 * with errno. */
int server_start(const struct server_options *options);

#endif
