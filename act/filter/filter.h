/* filter.h - says which paths of a transfer are taken: --exclude, --include, --filter-from.
 *
 * The lines of the files, in order, followed by the excludes are one list in gitignore syntax (pattern.h): the last
 * pattern that matches a path decides, and leaving out a folder leaves out everything below it. If there are includes,
 * only paths that match one of them, or lie in a folder that does, are taken; what the list leaves out stays out.
 *
 * A path is relative to the folder that is transferred. Asking is cheap when paths come in the order of a listing,
 * because the results for the last path's folders are kept.
 *
 * One thread at a time. A filter of NULL takes everything.
 */
#ifndef ACT_FILTER_FILTER_H
#define ACT_FILTER_FILTER_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"

struct filter;

struct filter_options {
    const struct act_strv *files;    /* of --filter-from: gitignore files; may be NULL */
    const struct act_strv *excludes; /* patterns; may be NULL */
    const struct act_strv *includes; /* patterns without "!"; may be NULL */
};

/* Reads the patterns; *out is NULL if there are none. A pattern that can match nothing is -ACT_USAGE, or in a file
 * -ACT_CONFIG, and the text names it with file:line. A file that cannot be read has the code of its cause. */
int filter_new(const struct filter_options *options, struct filter **out, struct act_error *err) ACT_NODISCARD;
void filter_free(struct filter *filter);

/* Tells whether the object is taken. rel: "a/b", a folder's with or without a final slash. */
bool filter_takes(struct filter *filter, const char *rel, bool is_folder);

/* Tells whether something below the folder may be taken. */
bool filter_enters(struct filter *filter, const char *rel);

/* Appends to out the patterns that matched no path since filter_new(): "--exclude '*.tmp'", "rules.txt:3: '/old'".
 * Paths in a folder that is left out are not looked at. A filter of NULL has no patterns. */
void filter_idle(const struct filter *filter, struct act_strv *out);

#endif
