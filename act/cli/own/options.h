/* options.h - the options of verbs for logins and trust. */
#ifndef ACT_CLI_OWN_OPTIONS_H
#define ACT_CLI_OWN_OPTIONS_H

#include <stdbool.h>

struct cli_login_options {
    bool device_code;
    char *tenant;
};

struct cli_trust_options {
    bool list, remove;
};

#endif
