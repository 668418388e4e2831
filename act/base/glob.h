/* glob.h - shell patterns: one name or path against one pattern. */
#ifndef ACT_BASE_GLOB_H
#define ACT_BASE_GLOB_H

#include <stdbool.h>

enum act_glob_flags {
    ACT_GLOB_ESCAPES = 1, /* a backslash quotes the next character */
    ACT_GLOB_BYTES = 2,   /* every byte is a character: as git matches */
};

/* Tells whether the pattern matches the whole text: '*' stands for any characters, '/' too, '?' for one, "[a-z]",
 * "[!a-z]" and "[[:alpha:]]" for one of a set (POSIX.1-2017, XCU 2.13.1). Characters are those of UTF-8, and sets go by
 * code point, whatever the locale; a byte that is not UTF-8 is a character of its own. A '[' without its ']' stands for
 * itself.
 *
 * fnmatch() does the same, but needs a locale for UTF-8, which a static program cannot bring along. */
bool act_glob(const char *pattern, const char *text, enum act_glob_flags flags);

#endif
