/* options.h - the options of verbs for mapped folders and the store. */
#ifndef ACT_CLI_DATA_OPTIONS_H
#define ACT_CLI_DATA_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

struct cli_transfer_options {
    char *from_cluster;
    struct act_strv includes, excludes, filter_files;
    int64_t transfers, max_delete;       /* -1: not given */
    uint64_t memory, part_size, bwlimit; /* 0: not given */
    bool checksum, md5, deep, delete_extra, overwrite, skip_links, follow_links, no_sync;
};

/* The options of lists and of printing. */
struct cli_list_options {
    bool recursive, long_form, bytes, leftovers;
    int64_t depth;        /* -1: not given */
    uint64_t first, last; /* bytes; 0: not given */
};

/* Options that one verb has alone: rm, mount, url and files. */
struct cli_store_options {
    bool force, read_only, share_sas;
    int64_t expires_s; /* 0: not given */
};

#endif
