/* options.h - the options that override keys of the configuration, for verbs that start runs or show what holds. */
#ifndef ACT_CLI_COMMAND_OPTIONS_H
#define ACT_CLI_COMMAND_OPTIONS_H

#include "cli/options/options.h"

struct cli_settings_options {
    struct cli_range num_gpu;
    char *compile_args;
    int64_t hang_s; /* 0: not given */
    int64_t retry;  /* -1: not given */
    char *retry_on; /* classes, separated by commas */
    bool single, use_bad_nodes, here;
};

#endif
