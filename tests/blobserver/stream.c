#include "stream.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdatomic.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER = 128 << 10 }; /* some records of 16 KiB go through one system call */

static SSL_CTX *context;
static _Atomic(const char *) last_cipher = "";

static void note_cipher(const SSL *tls, int where, int result)
{
    (void)result;
    if (where & SSL_CB_HANDSHAKE_DONE)
        last_cipher = SSL_get_cipher_name(tls);
}

/* The server chooses among the ciphers, as that of Azure does, so that all clients have the same. */
bool stream_use_tls(const char *pem)
{
    context = SSL_CTX_new(TLS_server_method());
    if (!context || SSL_CTX_use_certificate_chain_file(context, pem) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, pem, SSL_FILETYPE_PEM) != 1)
        return false;
    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_default_read_buffer_len(context, BUFFER);
    SSL_CTX_set_info_callback(context, note_cipher);
    return true;
}

void stream_describe(struct text *out)
{
    if (context)
        text_addf(out, "%ld %ld %s", SSL_CTX_sess_accept_good(context), SSL_CTX_sess_hits(context), last_cipher);
}

void stream_open(struct stream *s, int fd)
{
    *s = (struct stream){.fd = fd};
    if (!context)
        return;
    BIO *buffer = need(BIO_new(BIO_f_buffer()));
    BIO_set_write_buffer_size(buffer, BUFFER);
    s->tls = need(SSL_new(context));
    SSL_set_accept_state(s->tls);
    SSL_set0_rbio(s->tls, need(BIO_new_socket(fd, BIO_NOCLOSE)));
    SSL_set0_wbio(s->tls, BIO_push(buffer, need(BIO_new_socket(fd, BIO_NOCLOSE))));
}

void stream_close(struct stream *s)
{
    if (s->tls && SSL_is_init_finished(s->tls)) {
        SSL_shutdown(s->tls);
        stream_flush(s);
    }
    SSL_free(s->tls);
    ERR_clear_error();
    close(s->fd);
}

/* What a function of OpenSSL returned, as a system call would say it. */
static ssize_t result_of(const struct stream *s, int n)
{
    if (n > 0)
        return n;
    int error = SSL_get_error(s->tls, n);
    ERR_clear_error();
    if (error == SSL_ERROR_ZERO_RETURN)
        return 0;
    errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : EPIPE;
    return -1;
}

ssize_t stream_recv(struct stream *s, void *to, size_t n, bool drop)
{
    if (s->tls)
        return result_of(s, SSL_read(s->tls, to, (int)n));
    return recv(s->fd, to, n, drop ? MSG_TRUNC : 0);
}

bool stream_has_more(const struct stream *s)
{
    return s->tls && SSL_has_pending(s->tls);
}

ssize_t stream_send(struct stream *s, const void *from, size_t n, bool more)
{
    if (s->tls)
        return result_of(s, SSL_write(s->tls, from, (int)n));
    return send(s->fd, from, n, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
}

ssize_t stream_send_file(struct stream *s, int file, const char *bytes, off_t at, size_t n)
{
    if (s->tls)
        return stream_send(s, bytes + at, n, true);
    return sendfile(s->fd, file, &at, n);
}

bool stream_flush(struct stream *s)
{
    return !s->tls || BIO_flush(SSL_get_wbio(s->tls)) > 0;
}
