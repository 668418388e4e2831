/* web_internal.h - for the files of web/ only: request.c reads requests, web.c has the connections. */
#ifndef ACT_WEB_WEB_INTERNAL_H
#define ACT_WEB_WEB_INTERNAL_H

#include "web/web.h"

enum { WEB_HEAD_BYTES = 8192, WEB_KEY_BYTES = 16, WEB_KEY_TEXT = 2 * WEB_KEY_BYTES + 1 };

struct web_request {
    bool is_head;      /* only the head of the answer is wanted */
    const char *path;  /* behind the key */
    const char *query; /* "": none */
};

/* Returns the length of the head at the beginning of len bytes, with its empty line; 0: it has not ended. */
size_t web_head_end(const char *data, size_t len);

/* Reads a head of len bytes, a NUL behind it, which is changed; out points into it. Returns the status to answer with:
 * 200, or what is wrong. */
int web_read_head(char *head, size_t len, const char *key, struct web_request *out);

#endif
