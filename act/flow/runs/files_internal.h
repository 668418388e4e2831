/* files_internal.h - for the files of flow/runs/ only: what is in the mapped folders of a run. */
#ifndef ACT_FLOW_RUNS_FILES_INTERNAL_H
#define ACT_FLOW_RUNS_FILES_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"
#include "store/store.h"

/* When a run may have written; the id is not owned. */
struct flow_span {
    const char *id;
    int64_t from_s, to_s; /* Unix time */
};
struct flow_span flow_span_of(const struct flow_run *run);
/* Whether a file at rel in a folder of the run is one that it wrote, as far as that can be known. */
bool flow_span_has(const struct flow_span *span, const struct store_entry *entry, const char *rel);
/* Whether only its nodes reach the folder, which is in a claim. */
bool flow_is_of_nodes(const struct run_folder *f);
/* The project of a run; close it. */
int flow_open_project_of(struct flow *flow, const struct flow_run *run, struct flow *out,
                         struct act_error *err) ACT_NODISCARD;
/* The store where the folder was when the run was submitted. Free it before the project is closed. */
int flow_open_folder_of_run(struct flow *project, const struct run_spec *spec, const struct run_folder *f,
                            struct store **out, struct act_error *err) ACT_NODISCARD;
/* transfer_list() of all in it; a folder that is not there is empty. */
int flow_list_folder_of_run(struct flow *project, struct store *store, const struct run_folder *f,
                            int (*each)(void *arg, const struct store_entry *entry, const char *rel,
                                        struct act_error *err),
                            void *arg, struct act_error *err) ACT_NODISCARD;

/* Where something in an output directory of the run's job file is. */
struct flow_output {
    const struct run_folder *folder; /* the mapped folder; NULL: in the run's own */
    char *path;                      /* in it */
};
/* Whether a path such as "MODEL", "MODEL/model.pt" or "outputs/MODEL" begins with the id of one: 1, or 0. Where the id
 * is also the name of a folder of logs, only the last form means the output. -ACT_NOT_FOUND: it was on the nodes only.
 * Release out in any case. */
int flow_find_output(const struct flow_run *run, const char *path, struct flow_output *out,
                     struct act_error *err) ACT_NODISCARD;
/* Whether outputs are in the run's own folder. */
bool flow_keeps_outputs(const struct run_spec *spec);
void flow_output_release(struct flow_output *output);

#endif
