/* environments.h - the folder of environments beside the runs, as the agent makes it (node/environment.h). */
#ifndef ACT_RUN_ENVIRONMENTS_H
#define ACT_RUN_ENVIRONMENTS_H

#include <stdint.h>

#define ENVIRONMENTS_DIR   "environments"
#define ENVIRONMENTS_ENV   "env"
#define ENVIRONMENTS_RUNS  "runs"
#define ENVIRONMENTS_MAKER "maker"
#define ENVIRONMENTS_ABOUT "about.json"
#define ENVIRONMENTS_CACHE "cache"

/* What about.json says. */
struct environment_about {
    char *file, *node, *image; /* what it was made from, where, and in which image; image may be NULL */
    int64_t made_unix_s, took_ms;
    int packages;
};

#endif
