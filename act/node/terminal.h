/* terminal.h - what the keeper of a run of 'a shell' or 'a notebook' and those who come to it say to each other. All
 * are on its first node and use a Unix socket in packets (SOCK_SEQPACKET). Its name is abstract, so it is reached
 * from a container too; each side looks whose process the other one is.
 *
 * The first byte of a packet says what it is.
 */
#ifndef ACT_NODE_TERMINAL_H
#define ACT_NODE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum terminal_packet {
    TERMINAL_HELLO = 'h',   /* to the keeper: struct terminal_hello; with three descriptors if it has no terminal */
    TERMINAL_LOOK = 'l',    /* to the keeper, and its answer: one byte, 1 if the shell runs */
    TERMINAL_STAY = 'w',    /* to the keeper: somebody is there, as long as this connection; it has no terminal */
    TERMINAL_OWN = 'o',     /* to the keeper: who started a command without a terminal is there, in the same way */
    TERMINAL_REACH = 'c',   /* to the keeper, after that: connect this to what the command serves */
    TERMINAL_REACHED = 'r', /* the answer: the token, with the descriptor of the connection; none: nothing serves yet */
    TERMINAL_SIZE = 's',    /* to the keeper: struct terminal_size */
    TERMINAL_DATA = 'd',    /* what was typed, what was printed */
    TERMINAL_STATUS = 'e',  /* to the session: one byte, the exit status of the shell */
    TERMINAL_PARTED = 'x',  /* to the session: why it is not connected any more, as text */
};

enum { TERMINAL_PIECE = 4096, TERMINAL_NAME = 64, TERMINAL_FILES = 3 };

struct terminal_size {
    uint16_t rows, columns;
};

struct terminal_hello {
    bool is_terminal;
    struct terminal_size size;
    char name[TERMINAL_NAME]; /* TERM */
};

/* Returns a socket that listens for the sessions of a run, under a name that nobody can take first; -1: errno says why
 * there is none. */
int terminal_listen(const char *run);
/* Returns a connection to what listens for the sessions of a run; -1: there is nothing of this user's, or root's. */
int terminal_connect(const char *run);
/* Tells whose process is at the other end. -1: it is not known. */
uid_t terminal_peer(int fd);
/* Sends a packet, waiting as the socket does; false: it is not sent, or is too long. */
bool terminal_send(int fd, enum terminal_packet type, const void *data, size_t len);
/* Sends one with n descriptors, at most TERMINAL_FILES. */
bool terminal_send_files(int fd, enum terminal_packet type, const void *data, size_t len, const int *files, size_t n);
/* Receives a packet, and at most n descriptors with it, which are the caller's; -1 in files: it did not come. Returns
 * the length of the packet, as recv(2). */
ssize_t terminal_receive(int fd, char *packet, size_t size, int *files, size_t n);

#endif
