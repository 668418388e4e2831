/* devices.h - the GPUs of this machine that a run may have, and which of them it gets: those that nobody else uses. */
#ifndef ACT_NODE_DEVICES_H
#define ACT_NODE_DEVICES_H

#include "gpus/gpus.h"
#include "node/claims.h"
#include "node/slots.h"
#include "run/run.h"

struct devices {
    const struct run_spec *spec;
    const struct gpu_masks *masks; /* those of whoever has submitted the run */
    struct gpu_list list;
    struct claims claims; /* among all users of the machine */
    struct act_strv keys; /* one for each GPU: what it was called when they were found */
    int *places;          /* of each among those given when they were found, from 0; of others it means nothing */
    int most;             /* so many of those that are given may be used */
    int64_t asked_ms;     /* when the driver was asked; 0: not yet */
    enum gpus_answer answer;
    bool *free_then; /* of each, when it was asked */
};

/* Finds the GPUs that the run may have. spec and masks must outlive devices. GPUs that the run names and that are not
 * there: -ACT_CONFIG. */
int devices_open(struct devices *d, const struct run_spec *spec, const struct gpu_masks *masks, int most,
                 struct act_error *err) ACT_NODISCARD;
/* Has them shared, from now on, with the other users of the machine. */
void devices_share(struct devices *d);
void devices_close(struct devices *d);

/* Fits slots_request.choose, whose chooser is d. Asks the driver now and then, for a moment at most. */
bool devices_choose(void *d, const bool *free_slots, int need, bool *out_chosen, struct slots_lack *out_lack);

/* Returns the places of those of these slots among the GPUs that were given: "0,3". New string. */
char *devices_places(const struct devices *d, const struct slots *slots);
/* Tells all that this process starts, by its environment, that the GPUs of these slots are theirs. */
void devices_show(const struct devices *d, const struct slots *slots);

#endif
