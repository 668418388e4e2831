/* parts.h - for the files of flow/ only: the parts of a submission, each of which settles one thing. */
#ifndef ACT_FLOW_SUBMIT_PARTS_H
#define ACT_FLOW_SUBMIT_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "flow/flow.h"
#include "flow/submit/submit.h"
#include "run/run.h"

struct platform;
struct platform_row;

/* ---- whether a run would be refused, for a check of the configuration */

/* Checks size, folders and the settings of the platform; contacts no host. */
int flow_check_run(struct flow *flow, struct act_error *err) ACT_NODISCARD;
/* Check the keys about hangs and about trying again. */
int flow_check_hang(const struct config *c, const struct platform_row *row, struct act_error *err) ACT_NODISCARD;
int flow_check_retry(const struct config *c, const struct platform_row *row, struct act_error *err) ACT_NODISCARD;
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
/* How many GPUs, or processes where there are none, an elastic run may have. Both 0: the run has a fixed size. */
struct flow_range {
    int64_t least, most;
};
/* Reads the range from the configuration, where -n N gives a fixed size. -ACT_USAGE: a range was asked for on a
 * platform that has only fixed sizes. */
int flow_take_range(const struct config *c, struct platform *platform, struct flow_range *out,
                    struct act_error *err) ACT_NODISCARD;
/* Completes the shape of the largest size; a whole node has per_node. */
int flow_set_range(const struct flow_range *range, int per_node, struct run_spec *spec,
                   struct act_error *err) ACT_NODISCARD;
/* If the command is a starter (run/starter.h), has it started once on each node, tells the user, and warns if the
 * user's words contradict the size. Command and size must be known. */
int flow_form_starter(struct platform *platform, struct run_spec *spec, struct act_error *err) ACT_NODISCARD;

/* ---- hangs, and trying again: from the configuration; a repeated run keeps what the first one had */

/* Set whether and how the run is watched for hangs. -ACT_USAGE: on this platform no agent sees all ranks. */
int flow_take_hang(const struct config *c, const struct platform_row *row, struct run_spec *spec,
                   struct act_error *err) ACT_NODISCARD;
int flow_repeat_hang(const struct config *c, const struct platform_row *row, const struct run_spec *old,
                     struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
/* Takes what its nodes set up before the command (run_setup) from the configuration, for a repeated run from the first
 * one where this command does not say. Errors: -ACT_CONFIG. */
int flow_take_setup(const struct config *c, struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
int flow_repeat_setup(const struct config *c, const struct run_spec *old, struct run_spec *spec,
                      struct act_error *err) ACT_NODISCARD;
/* Set after what the run is tried again. What cannot be is -ACT_USAGE or -ACT_CONFIG, by where it was said. */
int flow_set_retry(const struct config *c, const struct platform_row *row, struct run_spec *spec,
                   struct act_error *err) ACT_NODISCARD;
int flow_repeat_retry(const struct config *c, const struct platform_row *row, const struct run_spec *old,
                      struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
/* Keeps the run off nodes that failed lately, if it fits without them, and says so. */
int flow_avoid_bad_nodes(struct flow *flow, struct platform *platform, struct run_spec *spec,
                         struct act_error *err) ACT_NODISCARD;

/* ---- what a repeated run keeps besides command and size */

/* Copies from old into the configuration: on the same cluster the image and other settings that platforms read there,
 * unless this command overrides them; on another one (moved) only what no cluster file had set. */
void flow_repeat_config(struct config *config, const struct run_spec *old, bool moved);
/* Copies from old into spec in the same way: environment, folders and preparation of the code. -ACT_CONFIG: a folder is
 * no longer mapped, or the value of a secret is no longer known. */
int flow_repeat_settings(const struct config *config, const struct run_spec *old, bool moved, struct run_spec *spec,
                         struct act_error *err) ACT_NODISCARD;

/* ---- other things to say */

/* Checks that this machine gets at the folders of a run that are in the stores of a cluster elsewhere. -ACT_USAGE:
 * there are none. */
int flow_check_stored(const struct config *c, const struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
/* Warns about settings in config that have no effect on the run; here: it is a run of 'a local'; in_image: docker.image
 * is used. */
void flow_mention_unused(const struct config *config, bool here, bool in_image);

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
