/* path.h - file names as text. Nothing here touches the file system. */
#ifndef ACT_BASE_PATH_H
#define ACT_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Returns "a/b" with one slash between, or the other one if a or b is empty. New string. */
char *act_path_join(const char *a, const char *b);

/* Returns "dir/rel" with both exactly as they are: a rel that begins with a slash keeps it, so "a" and "/b" become
 * "a//b". If one is empty, returns the other one. New string. */
char *act_path_below(const char *dir, const char *rel);

/* Returns the part before the last slash ("." if there is none, "/" for the root). New string. */
char *act_path_dirname(const char *path);

/* Returns the part of path after the last slash. */
const char *act_path_basename(const char *path);

/* Removes "." and empty segments, and resolves ".." as far as the text allows. "" becomes ".". New string. */
char *act_path_clean(const char *path);

/* Tells whether a segment of path is "..". */
bool act_path_has_parent(const char *path);
/* Tells whether a segment of path is "." or "..". */
bool act_path_has_dots(const char *path);

/* Tells whether a name from outside may be used below a target folder: it is not empty or absolute, has no empty, "."
 * or ".." segment and no NUL within len. A final slash is allowed (a folder). */
bool act_path_is_safe(const char *name, size_t len);

/* Tells whether path is dir or lies below it; both are cleaned. "data/voc2012" is not within "data/voc2". */
bool act_path_is_within(const char *path, const char *dir);

#endif
