/* options.h - the options of verbs that make pages and pictures. */
#ifndef ACT_CLI_PAGE_OPTIONS_H
#define ACT_CLI_PAGE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct cli_page_options {
    char *output;
    bool svg, csv, open;
    int64_t port; /* -1: not given */
};

#endif
