/* glob.h - patterns of shells: one name or path against one pattern. */
#ifndef ACT_BASE_GLOB_H
#define ACT_BASE_GLOB_H

#include <stdbool.h>

enum act_glob_flags {
    ACT_GLOB_ESCAPES = 1, /* a backslash takes what follows as it is */
};

/* Whether the whole text matches: '*' any characters, '/' too, '?' one, "[a-z]", "[!a-z]" and "[[:alpha:]]" one of a set
 * (POSIX.1-2017, XCU 2.13.1). Characters are those of UTF-8, and sets go by code point, whatever the locale; a byte that
 * is not UTF-8 is a character of its own. A '[' without its ']' stands for itself.
 *
 * As fnmatch(), which needs a locale for characters, and a static program cannot bring one along. */
bool act_glob(const char *pattern, const char *text, enum act_glob_flags flags);

#endif
