/* stream.h - the bytes of a connection, plain or through TLS. Nothing blocks. */
#ifndef BLOBSERVER_STREAM_H
#define BLOBSERVER_STREAM_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "text.h"

struct stream {
    int fd;
    SSL *tls; /* NULL: plain */
};

/* Every stream that is opened from now on speaks TLS, with the certificates and the key of a PEM file. */
bool stream_use_tls(const char *pem);
/* "ACCEPTED RESUMED CIPHER": handshakes so far, those of them that went on with an earlier session, and the cipher of
 * the last one; empty without TLS. */
void stream_describe(struct text *out);

/* Takes the descriptor. */
void stream_open(struct stream *s, int fd);
void stream_close(struct stream *s);

/* As recv(): 0 is the end, -1 with EAGAIN nothing for now. drop: what comes is not looked at. */
ssize_t stream_recv(struct stream *s, void *to, size_t n, bool drop);
/* Whether something was received that no poll tells of. */
bool stream_has_more(const struct stream *s);
/* As send(); more: further bytes follow at once. They may stay here until stream_flush(). */
ssize_t stream_send(struct stream *s, const void *from, size_t n, bool more);
/* As sendfile() of a file that is mapped at bytes. */
ssize_t stream_send_file(struct stream *s, int file, const char *bytes, off_t at, size_t n);
/* Whether all is sent; false: wait until more can be, and call it again. */
bool stream_flush(struct stream *s);

#endif
