/* filter.h - which paths of a transfer are taken: --exclude, --include, --filter-from.
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

/* *out is NULL when there are no patterns. A pattern that can match nothing is -ACT_USAGE, or -ACT_CONFIG in a file;
 * the text names it with file:line. A file that cannot be read has the code of its cause. */
int filter_new(const struct filter_options *options, struct filter **out, struct act_error *err) ACT_NODISCARD;
void filter_free(struct filter *filter);

/* Whether the object is taken. rel: "a/b", a folder's with or without a final slash. */
bool filter_takes(struct filter *filter, const char *rel, bool is_folder);

/* Whether something below the folder may be taken. */
bool filter_enters(struct filter *filter, const char *rel);

/* The patterns that matched no path since filter_new(): "--exclude '*.tmp'", "rules.txt:3: '/old'". What lies in a
 * folder that is left out is not looked at. Pushes nothing for NULL. */
void filter_idle(const struct filter *filter, struct act_strv *out);

#endif
