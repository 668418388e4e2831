/* parts.h - for the files of flow/ only: the parts of a submission, each of which settles one thing. */
#ifndef ACT_FLOW_SUBMIT_PARTS_H
#define ACT_FLOW_SUBMIT_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "flow/flow.h"
#include "flow/submit/submit.h"
#include "run/run.h"

struct config;
struct platform;
struct platform_row;

/* ---- whether a run would be refused, for a check of the configuration */

/* Checks size, folders and the settings of the platform; contacts no host. */
int flow_check_run(struct flow *flow, struct act_error *err) ACT_NODISCARD;
/* Check the keys about hangs and about trying again: -ACT_CONFIG or -ACT_USAGE, by where they were said. */
int flow_check_hang(const struct config *c, struct act_error *err) ACT_NODISCARD;
int flow_check_retry(const struct config *c, struct act_error *err) ACT_NODISCARD;
/* The keys of what nodes set up, each with its check (-ACT_CONFIG); ends with a row without a name. */
struct flow_setup_key {
    const char *name;
    int (*check)(const struct config *c, struct act_error *err);
};
extern const struct flow_setup_key flow_setup_keys[];

/* ---- the folders */

/* Describes the mapped folders of a run on the platform of row, as they are in the stores. */
int flow_describe_folders(struct flow *flow, const struct platform_row *row, struct run_spec *spec,
                          struct act_error *err) ACT_NODISCARD;

/* ---- the size */

/* Sets nodes and processes, from what the configuration says and the platform has. */
int flow_take_shape(const struct config *c, struct platform *platform, struct run_spec *spec,
                    struct act_error *err) ACT_NODISCARD;

/* ---- what the nodes fetch */

struct flow_job_files {
    char *agent_key, *spec_key;
    /* With submit_with_url: URLs to read them without store access, secret. Otherwise NULL, as is package_url of a run
     * without code */
    char *agent_url, *spec_url, *package_url;
};
/* Stores the files that a run's nodes fetch from the store; package is a local file or NULL. Sets spec's package_key to
 * its key there. The caller releases out in every case. */
int flow_store_job(struct flow *flow, struct run_spec *spec, const char *package, struct flow_job_files *out,
                   struct act_error *err) ACT_NODISCARD;
void flow_job_files_release(struct flow_job_files *files);
/* Makes sure that a package, of which file is a copy, is in the store of this flow's code, and sets spec's package_key
 * to its key there. */
int flow_store_package(struct flow *flow, struct run_spec *spec, const char *file, struct act_error *err) ACT_NODISCARD;

/* ---- handing over */

/* A submission to a service in progress. */
struct flow_again {
    int fd; /* -1: none */
    char *path;
};
/* Begins a submission. True: the same one was begun before and its outcome is unknown; spec gets the id of that one. */
bool flow_again_begin(struct flow *flow, struct run_spec *spec, struct flow_again *out);
/* Ends it; known: it is known what became of it. */
void flow_again_end(struct flow_again *again, bool known);
/* Tells whether it is not known (yet) what became of the submission of this run. */
bool flow_again_is_open(const char *id);
/* Records a finished specification in the ledger, then hands it to the platform, so that no run goes unrecorded. */
int flow_start_run(struct flow *flow, struct platform *platform, struct run_spec *spec, const char *package,
                   struct act_error *err) ACT_NODISCARD;
/* Does the same without again.c, for an id that is remembered elsewhere. Sets *asked when the platform is asked for the
 * run. */
int flow_hand_over(struct flow *flow, struct platform *platform, struct run_spec *spec, const char *package,
                   bool *asked, struct act_error *err) ACT_NODISCARD;

#endif
