/* submit_internal.h - for the files of flow/ only: the steps of a submission. */
#ifndef ACT_FLOW_RUNS_SUBMIT_INTERNAL_H
#define ACT_FLOW_RUNS_SUBMIT_INTERNAL_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "flow/code/code_internal.h"
#include "flow/flow.h"
#include "flow/runs/submit.h"
#include "ledger/ledger.h"
#include "run/run.h"

struct platform;

/* Fills io->spec from the configuration and what the platform offers, and pins the package. */
int flow_describe_run(struct flow *flow, struct platform *platform, struct flow_submit *io,
                      struct flow_package *package, struct act_error *err) ACT_NODISCARD;
/* Whether a run would be refused for what the configuration says; nobody is asked. */
int flow_check_run(struct flow *flow, struct act_error *err) ACT_NODISCARD;
/* Once command and size of a run are known: where the command is a starter (run/starter.h), each node gets one, and a
 * note says so; a warning, where the user's words contradict the size. */
int flow_form_starter(struct platform *platform, struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
/* The id of the run whose name at the service is piece, or holds it, among the newest of the experiment: new string.
 * Piece itself where none does and it could be one's whole name; NULL: none. Several: -ACT_USAGE, which lists them. */
int flow_find_named(struct platform *platform, const char *piece, char **out_id,
                    struct act_error *err) ACT_NODISCARD;

/* What the nodes of a run fetch from the store, put there; package is a local file or NULL. Changes spec's package_key
 * to where it is there. */
struct flow_job_files {
    char *agent_key, *spec_key;
    /* With submit_with_url: how each of them is read without the store, secret. Else NULL, as package_url of a run
     * without code */
    char *agent_url, *spec_url, *package_url;
};
int flow_store_job(struct flow *flow, struct run_spec *spec, const char *package, struct flow_job_files *out,
                   struct act_error *err) ACT_NODISCARD;
void flow_job_files_release(struct flow_job_files *files);
/* Gives a run what the run has that it repeats, beyond command and size: on the same cluster image, environment,
 * folders and what prepares the code, unless this command itself says otherwise; elsewhere (moved) what no cluster file
 * had said. The image, and what else platforms read from there, goes into the configuration. -ACT_CONFIG: a folder is
 * no longer mapped, or the value of a secret is not known any more. */
void flow_repeat_config(struct config *config, const struct run_spec *old, bool moved);
int flow_repeat_settings(const struct config *config, const struct run_spec *old, bool moved,
                         struct run_spec *spec, struct act_error *err) ACT_NODISCARD;

/* A submission to a service while it is under way. */
struct flow_again {
    int fd; /* -1: none is kept */
    char *path;
};
/* The same submission may have been begun before, and nobody knows what became of it: then spec gets the id of that,
 * and this is true. */
bool flow_again_begin(struct flow *flow, struct run_spec *spec, struct flow_again *out);
void flow_again_end(struct flow_again *again, bool known);
/* Hands a finished specification to the platform and puts it into the ledger first, so that nothing that runs
 * is unknown. */
int flow_start_run(struct flow *flow, struct platform *platform, struct run_spec *spec, const char *package,
                   struct act_error *err) ACT_NODISCARD;
/* Warns of what config says and a run has no use for; here: it is a run of 'a local'; in_image: docker.image is
 * used. */
void flow_mention_unused(const struct config *config, bool here, bool in_image);

#endif
