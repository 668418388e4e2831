/* serving.h - what the command of a run of 'a notebook' serves: it listens at a Unix socket in a folder that only this
 * user can enter, and asks whoever comes for a token. The keeper (keeper.c) tells the command both, in variables, and
 * hands connections to those who come to it (terminal.h); they may be outside the container, where the path is not. */
#ifndef ACT_NODE_SERVING_H
#define ACT_NODE_SERVING_H

enum { SERVING_TOKEN = 48 };

struct serving {
    char *folder, *path; /* NULL: nothing is served */
    int lock; /* of the folder; one without it was left by an agent that was killed, and the next removes it */
    char token[SERVING_TOKEN + 1];
};

/* Makes the folder and the token, and sets ACT_SERVICE_SOCKET and ACT_SERVICE_TOKEN. -1: errno says why it cannot. */
int serving_open(struct serving *serving);
/* Removes the folder with all that is in it. */
void serving_close(struct serving *serving);
/* Answers TERMINAL_REACH, in the keeper. */
void serving_answer(const struct serving *serving, int fd);

/* Returns a connection to the keeper of a run, for those who come: the keeper counts them as present while it is open.
 * -1: there is no keeper. */
int serving_stay(const char *run);
/* Returns a connection to what the command serves, the caller's, and fills in the token (SERVING_TOKEN + 1 bytes), if
 * that is not NULL. -ECONNREFUSED: nothing serves yet; another negative errno: the keeper is gone. */
int serving_connect(int keeper, char *token);

#endif
