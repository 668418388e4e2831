/* environments.h - the folder of environments beside the runs, as the agent makes it (node/environment.h). */
#ifndef ACT_RUN_ENVIRONMENTS_H
#define ACT_RUN_ENVIRONMENTS_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"

#define ENVIRONMENTS_DIR   "environments"
#define ENVIRONMENTS_ENV   "env"
#define ENVIRONMENTS_RUNS  "runs"
#define ENVIRONMENTS_MAKER "maker"
#define ENVIRONMENTS_ABOUT "about.json"
#define ENVIRONMENTS_CACHE "cache"
/* The name of a node that has reached no index. */
#define ENVIRONMENTS_NO_INDEX "no-index"

/* The files by which a project says what it needs. The first of them that is there counts. */
struct environment_source {
    const char *file; /* in the code root */
    const char *also; /* must be there as well, and counts for the key; NULL: nothing */
    const char *tool; /* what environment.sh calls it */
};
extern const struct environment_source environment_sources[]; /* ends with one without a file */
/* Returns the file of the project that the key 'conda' names, which counts then, whatever else is there; NULL: it names
 * an environment that exists, or is not said. */
const struct environment_source *environment_source_named(const char *conda);

/* The members of about.json. */
struct environment_about {
    char *file, *node, *image; /* what it was made from, where, and in which image; image may be NULL */
    int64_t made_unix_s, took_ms;
    int packages;
};
void environment_about_release(struct environment_about *about);
/* Write and read it. Release *out in any case. */
json_t *environment_about_to_json(const struct environment_about *about);
int environment_about_from_json(const json_t *json, struct environment_about *out, struct act_error *err) ACT_NODISCARD;

#endif
