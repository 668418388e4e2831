/* machines.h - the machines of a run that has several, each with a folder of its own, and with nobody who starts
 * anything on them: platform "ssh". Each has this record in the run's folder there. */
#ifndef ACT_RUN_MACHINES_H
#define ACT_RUN_MACHINES_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"

struct fields;

/* 0600, as it holds the token: {"version": 1, "index", "port", "token", "names", "addresses", "order"} */
#define RUN_FILE_MACHINES "machines.json"

/* The lists have one text for each machine, in the order of the node ranks. */
struct run_machines {
    int index;               /* of the one that has the record */
    int port;                /* of the first one, where the others find it */
    char *token;             /* of the run, by which they know one another; secret */
    struct act_strv names;   /* as the user calls them */
    struct act_strv address; /* numbers, at which the others reach them */
    /* Whoever waits for several machines waits for them in the order of these texts, which are the same for all users:
     * so no two runs wait for each other. */
    struct act_strv order;
};

extern const struct fields run_machines_fields;

/* Tells whether the run whose folder is dir has several machines. */
bool run_has_machines(const char *dir);
/* Reads the record in the run's folder; release it in any case. */
int run_machines_read(const char *dir, struct run_machines *out, struct act_error *err) ACT_NODISCARD;
void run_machines_release(struct run_machines *machines);

#endif
