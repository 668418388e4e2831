/* path.h - file names as text. Nothing here touches the file system. */
#ifndef ACT_BASE_PATH_H
#define ACT_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* "a/b"; one slash between, b alone when a is empty, a alone when b is empty. New string. */
char *act_path_join(const char *a, const char *b);

/* "dir/rel" with both exactly as they are: a rel that begins with a slash keeps it, so "a" and "/b" are "a//b". If one
 * is empty it is the other one. New string. */
char *act_path_below(const char *dir, const char *rel);

/* The part before the last slash ("." when there is none, "/" for the root). New string. */
char *act_path_dirname(const char *path);

/* Points at the part after the last slash. */
const char *act_path_basename(const char *path);

/* Removes ".", empty segments and resolves ".." as far as the text allows. "" becomes ".". New string. */
char *act_path_clean(const char *path);

/* Whether a segment is "..", and whether one is "." or "..". */
bool act_path_has_parent(const char *path);
bool act_path_has_dots(const char *path);

/* Whether a name from outside may be used below a target folder: not empty, not absolute, no empty, "." or
 * ".." segment, no NUL within len. A final slash is allowed (a folder). */
bool act_path_is_safe(const char *name, size_t len);

/* Whether path is dir or lies below it. Both cleaned. "data/voc2012" is not within "data/voc2". */
bool act_path_is_within(const char *path, const char *dir);

#endif
