/* pattern.h - one pattern in gitignore syntax (git's manual, gitignore(5)).
 *
 * A pattern without a slash, or with one only at its end, is matched with the last segment of a path; any other
 * with the whole path from the root. "**" as a segment stands for any number of segments, at the end of a
 * pattern for at least one. A slash at the end: only folders. "!" before it: takes back what an earlier pattern
 * left out. '*', '?' and '[...]' never match a slash; a backslash protects the character after it. Letters
 * are compared with case.
 *
 * The characters of '?' and '[...]' are those of act_glob(). Any thread; nothing is shared.
 */
#ifndef ACT_FILTER_PATTERN_H
#define ACT_FILTER_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

/* A path cut at its slashes, once for many patterns. {0} is an empty one; reuse it for the next path. */
struct filter_path {
    char *text; /* the path with NUL for each slash */
    char **v;   /* the segments, into text */
    size_t n, text_cap, v_cap;
};
void filter_path_set(struct filter_path *path, const char *text);
void filter_path_release(struct filter_path *path);

struct filter_part;

struct filter_pattern {
    char *text; /* as it was given */
    struct filter_part *parts;
    size_t n_parts;
    bool take_back, folder_only, anchored;
    bool bytes; /* '?' and '[...]' stand for a byte, as git has it; set it when it is initialised */
};

/* Makes a pattern of any text, though perhaps one that matches nothing. */
void filter_pattern_init(struct filter_pattern *pattern, const char *text);
void filter_pattern_release(struct filter_pattern *pattern);

/* Says why no path can match, or returns NULL: a sentence without a subject, such as "has no ']' for its '['". */
const char *filter_pattern_problem(const struct filter_pattern *pattern);

/* Tells whether the path of the first depth (at least one) segments matches. It does not look at matching parent
 * folders: see filter.h. */
bool filter_pattern_matches(const struct filter_pattern *pattern, const struct filter_path *path, size_t depth,
                            bool is_folder);

/* Tells whether the pattern has neither wildcards nor backslashes. */
bool filter_pattern_is_plain(const struct filter_pattern *pattern);

/* Reads the lines of a gitignore file of at most 1 MiB, the n-th into v[n - 1]: without line ends, and without blanks
 * at the end that no backslash protects; comments become empty. -ACT_NOT_FOUND: there is no such file. -ACT_CONFIG: it
 * is not UTF-8 text. */
int filter_read_lines(const char *file, struct act_strv *out, struct act_error *err) ACT_NODISCARD;
/* Does the same, but only with a regular file: in a project it may be a FIFO. */
int filter_read_regular_lines(const char *file, struct act_strv *out, struct act_error *err) ACT_NODISCARD;

#endif
