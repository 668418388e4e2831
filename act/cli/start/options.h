/* options.h - the options of verbs that start runs. */
#ifndef ACT_CLI_START_OPTIONS_H
#define ACT_CLI_START_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

struct cli_start_options {
    char *resubmit_to;
    bool last_package, code; /* the package stored last; the code as it is now */
    bool no_container, mount;
    struct act_strv after; /* RUN[,RUN...] each */
    bool after_any;
    bool takes_input;
};

/* Files of Azure Batch AI. */
struct cli_batch_options {
    char *job_file, *storage_account, *storage_key;
};

struct cli_sweep_options {
    struct act_strv grids;
    int64_t max_parallel; /* -1: not given */
    char *show;
};

#endif
