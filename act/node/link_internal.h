/* link_internal.h - what the files of the link share. */
#ifndef ACT_NODE_LINK_INTERNAL_H
#define ACT_NODE_LINK_INTERNAL_H

#include <stdint.h>
#include <sys/socket.h>

#include "node/link.h"

/* Tokens and nonces: random bytes as hex. */
enum { LINK_SECRET_BYTES = 32, LINK_SECRET_TEXT = 2 * LINK_SECRET_BYTES + 1 };

/* Keep-alive and time limits of a connection over TCP; nothing else has them. */
void link_tune(int fd);
/* Reads an address of numbers. Returns its length; 0: it is not an address. */
socklen_t link_parse_address(const char *text, uint16_t port, struct sockaddr_storage *out);

/* ---- link_proof.c: who knows the token ---- */

enum link_role { LINK_RANK, LINK_SUPERVISOR };

void link_make_secret(char out[LINK_SECRET_TEXT]);
/* Proves that this side knows the token, for this rank and connection only: it contains both nonces. The role keeps
 * one side's proof from being reused by the other. New string. */
char *link_proof(enum link_role role, const char *token, const char *supervisor_nonce, const char *rank_nonce,
                 int64_t rank);
/* Tells whether the message has a valid nonce and the role's proof. */
bool link_is_proved(const json_t *message, enum link_role role, const char *token, const char *supervisor_nonce,
                    const char *rank_nonce, int64_t rank);
bool link_is_secret(const char *text);

/* ---- link_listen.c: where the supervisor can be reached ---- */

struct link_listeners {
    int *fds;
    size_t n;
    int dir_fd;    /* of the folder with the Unix socket; -1: it is TCP */
    char *address; /* "unix <dir>", or "tcp <port> <address> <address> ..." */
};

int link_listen_on(struct link_listeners *l, const struct link_where *where, struct act_error *err) ACT_NODISCARD;
void link_listeners_release(struct link_listeners *l);

/* The Unix socket in the folder of this descriptor, as its own path may be too long for an address. Lives as long as
 * the descriptor. */
struct sockaddr_un;
void link_unix_address(int dir_fd, struct sockaddr_un *out);

#endif
