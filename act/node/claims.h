/* claims.h - the GPUs of this machine, shared among its users, who do not trust one another.
 *
 * In the folders that everybody may write to and where nobody can remove the files of others, each run has a file
 * that says which GPUs it claims: in all of them, so that whoever cleans up one of them takes nothing away. Its holder
 * has a write lock on it (fcntl(2), of the open file): only he can have one, as nobody else may open his file for
 * writing, and it ends with him. So a claim is alive or not, whoever looks, and nobody can end, extend or forge one of
 * another user. The head of claims.c says how two that want the same decide.
 *
 * Who claims what he does not use keeps it from others, as if he ran something there: they are told his name. */
#ifndef ACT_NODE_CLAIMS_H
#define ACT_NODE_CLAIMS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/text.h"

struct claims {
    struct claims_place {
        char *dir;
        int fd; /* of our own claim there, locked; -1: there is none */
    } places[3];
    size_t n;            /* 0: there is no such folder, and nobody is asked */
    const char *flooded; /* the folder of one that has too many files for all of them to be read; NULL: none has */
    char name[48];       /* of its file, in each of them; empty: nothing is claimed */
    char *text;          /* what it says */
};

/* dirs: up to three, which end with NULL; NULL: those of the usual folders that belong to root and that all may write
 * to. Removes what dead runs of this user have left there. */
void claims_open(struct claims *c, const char *const *dirs);
void claims_close(struct claims *c);

/* Finds out which of the keys live claims of others have: out_holders[i] is the user of one, or (uid_t)-1. */
void claims_look(const struct claims *c, const struct act_strv *keys, uid_t *out_holders);

/* Claims those of the keys that are wanted. False: somebody else was there first; then nothing is claimed. */
bool claims_take(struct claims *c, const struct act_strv *keys, const bool *wanted);
/* Gives the claim up. */
void claims_drop(struct claims *c);
/* Makes its file again where somebody has removed it, who cleaned up. Call it now and then. */
void claims_keep(struct claims *c);

#endif
