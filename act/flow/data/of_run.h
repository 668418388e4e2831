/* of_run.h - for the files of flow/ only: the mapped folders of a run, where they were when it was submitted, and the
 * outputs that its job file names. */
#ifndef ACT_FLOW_DATA_OF_RUN_H
#define ACT_FLOW_DATA_OF_RUN_H

#include <stdbool.h>

#include "base/error.h"
#include "flow/flow.h"
#include "flow/run.h"
#include "store/store.h"

/* Tells whether only the nodes reach the folder, because it is on a claim. */
bool flow_is_of_nodes(const struct run_folder *f);
/* Opens the project of a run, with the services of flow. The caller closes out. */
int flow_open_project_of(struct flow *flow, const struct flow_run *run, struct flow *out,
                         struct act_error *err) ACT_NODISCARD;
/* Opens the store where the folder was when the run was submitted. The caller frees it before it closes project. */
int flow_open_folder_of_run(struct flow *project, const struct run_spec *spec, const struct run_folder *f,
                            struct store **out, struct act_error *err) ACT_NODISCARD;
/* Calls each() with all that is in the folder, as transfer_list() does; a folder that is not there is empty. */
int flow_list_folder_of_run(struct flow *project, struct store *store, const struct run_folder *f,
                            int (*each)(void *arg, const struct store_entry *entry, const char *rel,
                                        struct act_error *err),
                            void *arg, struct act_error *err) ACT_NODISCARD;

/* The place of something in an output directory of the run's job file. */
struct flow_output {
    const struct run_folder *folder; /* the mapped folder; NULL: in the run's own */
    char *path;                      /* in it */
};
/* Returns 1 if a path such as "MODEL", "MODEL/model.pt" or "outputs/MODEL" begins with the id of an output, or 0. Where
 * the id is also the name of a folder of logs, only the last form means the output. -ACT_NOT_FOUND: the output was on
 * the nodes only. The caller releases out in every case. */
int flow_find_output(const struct flow_run *run, const char *path, struct flow_output *out,
                     struct act_error *err) ACT_NODISCARD;
/* Tells whether outputs are in the run's own folder. */
bool flow_keeps_outputs(const struct run_spec *spec);
void flow_output_release(struct flow_output *output);

#endif
