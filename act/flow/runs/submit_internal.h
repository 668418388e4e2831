/* submit_internal.h - for the files of flow/ only: the steps of a submission. */
#ifndef ACT_FLOW_RUNS_SUBMIT_INTERNAL_H
#define ACT_FLOW_RUNS_SUBMIT_INTERNAL_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "flow/code/code_internal.h"
#include "flow/flow.h"
#include "flow/jobfile/jobfile.h"
#include "flow/runs/submit.h"
#include "ledger/ledger.h"
#include "run/run.h"

struct platform;
struct platform_row;

/* Nodes and processes, from what the configuration says and the platform has. */
int flow_take_shape(const struct config *c, struct platform *platform, struct run_spec *spec,
                    struct act_error *err) ACT_NODISCARD;
/* Whether this machine gets at the folders of a run that are in the stores of a cluster elsewhere. There are none:
 * -ACT_USAGE. */
int flow_check_stored(const struct config *c, const struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
/* What an elastic run may have of GPUs, or of processes where there are none. Both 0: the run has a fixed size. */
struct flow_range {
    int64_t least, most;
};
/* From the configuration, where -n N gives a fixed size. A range that was asked for, on a platform that has only fixed
 * sizes: -ACT_USAGE. */
int flow_take_range(const struct config *c, struct platform *platform, struct flow_range *out,
                    struct act_error *err) ACT_NODISCARD;
/* Completes the shape of the largest size; per_node: what a whole node has. */
int flow_set_range(const struct flow_range *range, int per_node, struct run_spec *spec,
                   struct act_error *err) ACT_NODISCARD;
/* Whether and how the run is watched for hangs, from the configuration, and for a repeated run from the first one. A
 * platform where no agent sees all ranks: -ACT_USAGE. */
struct platform_row;
int flow_take_hang(const struct config *c, const struct platform_row *row, struct run_spec *spec,
                   struct act_error *err) ACT_NODISCARD;
int flow_repeat_hang(const struct config *c, const struct platform_row *row, const struct run_spec *old,
                     struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
/* The same, without a run: whether the configuration is valid there. */
int flow_check_hang(const struct config *c, const struct platform_row *row, struct act_error *err) ACT_NODISCARD;
/* Checks what its nodes set up before the command (run_setup), and takes it from the configuration, for a repeated run
 * from the first one. Errors: -ACT_CONFIG. */
int flow_check_setup(const struct config *c, struct act_error *err) ACT_NODISCARD;
int flow_take_setup(const struct config *c, struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
int flow_repeat_setup(const struct config *c, const struct run_spec *old, struct run_spec *spec,
                      struct act_error *err) ACT_NODISCARD;
int flow_check_retry(const struct config *c, const struct platform_row *row, struct act_error *err) ACT_NODISCARD;
/* Whether a run would be refused because of its size, its folders or its platform's settings; contacts no host. */
int flow_check_run(struct flow *flow, struct act_error *err) ACT_NODISCARD;
/* Call it when the run's command and size are known: if the command is a starter (run/starter.h), it is started once
 * per node, and the user is told; warns if the user's words contradict the size. */
int flow_form_starter(struct platform *platform, struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
/* The id (new string) of the run whose name at the service is or contains piece, among the newest of the experiment. If
 * there is none, piece itself if it could be a whole name, else NULL. Several: -ACT_USAGE, which lists them. */
int flow_find_named(struct platform *platform, const char *piece, char **out_id, struct act_error *err) ACT_NODISCARD;

/* Stores the files that a run's nodes fetch from the store; package is a local file or NULL. Sets spec's package_key to
 * its key there. */
struct flow_job_files {
    char *agent_key, *spec_key;
    /* With submit_with_url: URLs to read them without store access, secret. Otherwise NULL, as is package_url of a run
     * without code */
    char *agent_url, *spec_url, *package_url;
};
int flow_store_job(struct flow *flow, struct run_spec *spec, const char *package, struct flow_job_files *out,
                   struct act_error *err) ACT_NODISCARD;
void flow_job_files_release(struct flow_job_files *files);
/* Copies from the old run what a repeated run keeps besides command and size: on the same cluster image, environment,
 * folders and preparation of the code, unless this command overrides them; on another one (moved) only what no cluster
 * file had set. The image, and other settings that platforms read there, go into the configuration. -ACT_CONFIG: a
 * folder is no longer mapped, or the value of a secret is no longer known. */
void flow_repeat_config(struct config *config, const struct run_spec *old, bool moved);
int flow_repeat_settings(const struct config *config, const struct run_spec *old, bool moved, struct run_spec *spec,
                         struct act_error *err) ACT_NODISCARD;

/* Says in spec where the run's nodes send their logs, if its code is in Blob Storage. */
void flow_describe_sent(const struct config *config, struct run_spec *spec);
/* Makes sure that a package, of which file is a copy, is in the store of this flow's code, and sets spec's package_key
 * to its key there. */
int flow_store_package(struct flow *flow, struct run_spec *spec, const char *file, struct act_error *err) ACT_NODISCARD;

/* A submission to a service in progress. */
struct flow_again {
    int fd; /* -1: none */
    char *path;
};
/* True if the same submission was begun before and its outcome is unknown: then spec gets the id of that one. */
bool flow_again_begin(struct flow *flow, struct run_spec *spec, struct flow_again *out);
void flow_again_end(struct flow_again *again, bool known);
/* Whether it is not known (yet) what became of the submission of this run. */
bool flow_again_is_open(const char *id);
/* The same without again.c, for an id that is remembered elsewhere. Sets *asked when the platform is asked for the
 * run. */
int flow_hand_over(struct flow *flow, struct platform *platform, struct run_spec *spec, const char *package,
                   bool *asked, struct act_error *err) ACT_NODISCARD;
/* What the run is tried again after, from the configuration; a repeated run keeps what the first one had. What cannot
 * be: -ACT_USAGE or -ACT_CONFIG, by where it was said. */
int flow_set_retry(const struct config *c, const struct platform_row *row, struct run_spec *spec,
                   struct act_error *err) ACT_NODISCARD;
int flow_repeat_retry(const struct config *c, const struct platform_row *row, const struct run_spec *old,
                      struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
/* Keeps the run off nodes that failed lately, if it fits without them, and says so. */
int flow_avoid_bad_nodes(struct flow *flow, struct platform *platform, struct run_spec *spec,
                         struct act_error *err) ACT_NODISCARD;
/* Records a finished specification in the ledger, then hands it to the platform, so that no run goes unrecorded. */
int flow_start_run(struct flow *flow, struct platform *platform, struct run_spec *spec, const char *package,
                   struct act_error *err) ACT_NODISCARD;
/* Warns about settings in config that have no effect on the run; here: it is a run of 'a local'; in_image: docker.image
 * is used. */
void flow_mention_unused(const struct config *config, bool here, bool in_image);

#endif
