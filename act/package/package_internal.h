/* package_internal.h - shared by the files of this module. */
#ifndef ACT_PACKAGE_PACKAGE_INTERNAL_H
#define ACT_PACKAGE_PACKAGE_INTERNAL_H

#include "package/package.h"

/* The rules of one project: what the configuration keeps out, built-in list, .actignore, zip_options. */
struct package_rules;

int package_rules_new(const struct package_options *options, struct package_rules **out,
                      struct act_error *err) ACT_NODISCARD;
void package_rules_free(struct package_rules *rules);

enum package_verdict {
    PACKAGE_KEEP,
    PACKAGE_SKIP,  /* left out; of a folder only its own entry, what is in it is asked for itself */
    PACKAGE_PRUNE, /* a folder that is left out with all that is in it */
};

/* path is relative to the root, without a final slash. *out_rule says by which rule, a new string, and is
 * NULL when it is kept and for the mere entry of a folder. */
enum package_verdict package_rules_ask(const struct package_rules *rules, const char *path, bool is_folder,
                                       char **out_rule);

/* A name for an error text: at most a line's worth, control characters and bytes that are not UTF-8 as \xNN. */
char *package_printable(const char *path);

#endif
