/* slots.h - the GPUs (or processors) of this machine, shared among runs by file locks: one file each, locked
 * while a run holds it, whose id is in it. Locks end with the process that holds them, however it ends. */
#ifndef ACT_NODE_SLOTS_H
#define ACT_NODE_SLOTS_H

#include "base/text.h"
#include "node/child.h"

struct slots {
    int *fd; /* of each slot, -1 when it is not ours */
    int total, need;
};

/* What a run that has to wait lacks. */
struct slots_lack {
    int can_be_had; /* of the slots that nobody holds */
    char *held;     /* ", held by 'RUN'": who has the others; may be empty */
    char *why;      /* why others cannot, for people; NULL: nothing but that runs hold them */
};

struct slots_request {
    const char *dir; /* of the lock files */
    int total, need;
    const struct act_strv *names; /* of their files, for each slot; NULL: their numbers */
    /* Chooses need of the slots that nobody holds, or says what is lacking. NULL: the first ones. */
    bool (*choose)(void *chooser, const bool *free_slots, int need, bool *out_chosen, struct slots_lack *out_lack);
    void *chooser;
    const char *run, *unit; /* whose they will be, and what they are: "GPUs" */
    /* Tells why the run waits: called if nothing is free at once, and whenever the reason changes. */
    void (*waiting)(void *arg, const char *why);
    void *arg;
};
/* Takes so many slots, waiting as long as necessary; runs are served in order of arrival. A SIGTERM or SIGINT ends the
 * wait with -ACT_INTERRUPTED. */
int slots_take(struct slots *s, const struct slots_request *request, struct watch *w,
               struct act_error *err) ACT_NODISCARD;
void slots_release(struct slots *s);

/* Tells whether a slot is ours. */
bool slots_has(const struct slots *s, int slot);
/* Returns the slots that are ours, "0,3". New string. */
char *slots_text(const struct slots *s);

#endif
