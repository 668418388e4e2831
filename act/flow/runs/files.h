/* files.h - the files that a run has written, where they are. */
#ifndef ACT_FLOW_RUNS_FILES_H
#define ACT_FLOW_RUNS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"

#define FLOW_FILES_LOGS "logs" /* instead of the name of a folder: its logs and metrics */

struct flow_file_of_run {
    char *path; /* "<run id>:user_logs/...", or "output/model.pt" */
    uint64_t size;
    int64_t changed_unix_s; /* 0: not known */
    char *url;              /* secret; NULL: none was wanted, or it is a log */
};
struct flow_files {
    struct flow_file_of_run *v; /* by path */
    size_t n;
    size_t n_others; /* in the folder, and written at another time */
};
struct flow_files_wanted {
    const char *folder; /* a mapped folder of the run, by its name, or an output directory of its job file, by its id;
                         * NULL: FLOW_FILES_LOGS */
    bool all;           /* of a folder also what was written at another time, and does not have its id in its path */
    bool urls;          /* with URLs, as flow_url() makes them, of files in a folder */
    int64_t life_s;     /* of these: see struct flow_url */
    bool share_sas;
};
/* Asks where they are now: the platform about logs, the store about a folder, which is that of the run's specification
 * (run, with spec) even if the project maps another one now. A folder that the run did not have, or whose store the
 * project has no account for any more: -ACT_NOT_FOUND. all, life_s or share_sas without a folder: -ACT_USAGE. Release
 * *out in every case. */
int flow_list_files(struct flow *flow, const struct flow_run *run, const struct flow_files_wanted *what,
                    struct flow_files *out, struct act_error *err) ACT_NODISCARD;
void flow_files_release(struct flow_files *files);

#endif
