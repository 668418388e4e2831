/* ssh.h - "act-node serve" behind OpenSSH, brought there if necessary. */
#ifndef ACT_SITE_SSH_H
#define ACT_SITE_SSH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "site/frame.h"
#include "site/site.h"

/* How commands share a connection. */
enum ssh_sharing {
    SSH_SHARES_OWN,    /* over a socket in ACT's own folder */
    SSH_SHARES_USERS,  /* as the user's ssh is configured */
    SSH_SHARES_NONE,   /* not: the user wants it so, */
    SSH_SHARES_NOWHERE /* or there is no folder for the socket */
};

struct ssh {
    char *login, *root;
    enum ssh_sharing sharing;
    char *agent; /* the local program for the machine there; NULL: not looked for yet */
    char agent_hash[ACT_SHA256_HEX];
    char *machine;     /* as "uname -m" says there, when it is another one than this; else NULL */
    pid_t pid;         /* of the ssh that holds the connection; 0: none */
    int err_fd;        /* its stderr: a file in memory */
    bool busy;         /* the last try failed because the other side was */
    bool only_look;    /* nothing is brought */
    bool never_asks;   /* nor is the user asked for anything */
    bool absent;       /* so the agent is not there, and there is no connection to one */
    char *store;       /* the folder that the connection is for; NULL: for requests */
    char *store_first; /* what the program is told that serves it; NULL: nothing */
    bool is_store;     /* it speaks as a store already, see SITE_STORE */
};

void ssh_init(struct ssh *ssh, const char *login, const char *root);
void ssh_release(struct ssh *ssh);

/* Starts the other side and reads its first line: the channel speaks frames from now on, unless ssh->absent or
 * ssh->is_store is set. */
int ssh_connect(struct ssh *ssh, struct channel *channel, struct act_error *err) ACT_NODISCARD;
/* Ends the connection. */
void ssh_disconnect(struct ssh *ssh, struct channel *channel);
/* Adds what ssh said, if it helps, to the error of a lost connection. */
int ssh_explain_loss(const struct ssh *ssh, struct act_error *err);

/* Ask by shells, because there is no agent: where the root is, a new string, and for a program as site_run() does. */
int ssh_find_root(struct ssh *ssh, char **out, struct act_error *err) ACT_NODISCARD;
int ssh_run(struct ssh *ssh, const struct site_command *command, struct site_result *result,
            struct act_error *err) ACT_NODISCARD;

/* Returns the program for the machine there, "act-node" or "act-node-<machine>", a new string; NULL: there is none. */
char *ssh_find_program(const struct ssh *ssh, const char *name);

/* ssh_words.c */
/* Asks ssh how it is configured for a login; port 0: its own. */
enum ssh_sharing ssh_find_sharing(const char *login, int port);
char *ssh_sharing_text(enum ssh_sharing sharing); /* new string */
/* Tells whether the user can be asked. */
bool ssh_may_ask(const struct ssh *ssh);
/* Returns the path of the file that is locked while a connection to this login is made, a new string; NULL: there is no
 * folder for it. */
char *ssh_lock_path(const struct ssh *ssh);
/* Makes the command that runs an sh script there with the arguments root, hash of the agent, last. The script is one
 * line without single quotes, which every login shell reads alike. */
void ssh_command_words(const struct ssh *ssh, const char *script, const char *last, struct act_strv *argv);
/* Makes the words of ssh with a terminal that run argv there, in a login shell if programs are only found with one.
 * port 0: as ssh is configured. */
void ssh_shell_words(const char *login, int port, bool in_login_shell, const struct act_strv *argv,
                     struct act_strv *out);

#endif
