/* text.h - strings, growing buffers and string vectors.
 *
 * Small allocations cannot fail: a tool that lacks 40 bytes ends with a message. Large buffers (data,
 * response bodies) are bounded by their owner.
 */
#ifndef ACT_BASE_TEXT_H
#define ACT_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/error.h"

/* Frees the variable when it leaves its scope. Not together with "goto out" in one function. */
static inline void act_free_at_exit(void *pointer_to_pointer)
{
    free(*(void **)pointer_to_pointer);
}
#define ACT_AUTOFREE __attribute__((cleanup(act_free_at_exit)))

/* As malloc, calloc, realloc, strdup, strndup, asprintf; they end the program when memory is exhausted.
 * The result is owned by the caller and released with free(). act_strdup(NULL) is NULL. */
void *act_alloc(size_t size);
void *act_calloc(size_t count, size_t size);
void *act_realloc(void *old, size_t size);
char *act_strdup(const char *s);
char *act_strndup(const char *s, size_t len);
char *act_sprintf(const char *fmt, ...) ACT_PRINTF(1, 2);

/* Frees what *text points to (NULL: nothing) and puts a copy of by (NULL: NULL) in its place. */
void act_str_replace(char **text, const char *by);

/* Whether s begins / ends with the other string. */
bool act_starts_with(const char *s, const char *prefix);
bool act_ends_with(const char *s, const char *suffix);
static inline bool act_streq(const char *a, const char *b)
{
    return a == b || (a && b && __builtin_strcmp(a, b) == 0);
}

/* The length of the UTF-8 character that len (not 0) bytes begin with, 0 when they begin with none. As act_utf8_valid(). */
size_t act_utf8_char(const char *s, size_t len);

/* Whether the len bytes are well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms). */
bool act_utf8_valid(const char *s, size_t len);

/* Whether it begins with a control character (C0, DEL, C1): what moves a terminal's cursor or ends a line. */
bool act_is_control(const char *s);

/* The text with what a terminal would not show as it is, control characters and bytes that are not UTF-8, as "\\xNN". New
 * string. */
char *act_printable(const char *s);

/* The number of single-character edits, and of neighbours that change places, from a to b, letters compared without case.
 * For "did you mean". */
int act_edit_distance(const char *a, const char *b);

/* The candidate that is near enough to word to be meant, or NULL. candidates ends with NULL. */
const char *act_nearest(const char *word, const char *const *candidates);

/* A growing buffer, always followed by a NUL byte that is not counted. {0} is an empty one. */
struct act_buf {
    char *data; /* NULL while nothing was added */
    size_t len;
    size_t cap;
};
void act_buf_add(struct act_buf *b, const void *data, size_t len);
void act_buf_adds(struct act_buf *b, const char *s);
void act_buf_addc(struct act_buf *b, char c);
void act_buf_addf(struct act_buf *b, const char *fmt, ...) ACT_PRINTF(2, 3);
/* Hands the text (never NULL) to the caller and leaves the buffer empty. */
char *act_buf_steal(struct act_buf *b);
void act_buf_release(struct act_buf *b);

/* A vector of owned strings, v[n] is NULL, so that v serves as an argument vector. {0} is an empty one; v is
 * NULL then. */
struct act_strv {
    char **v;
    size_t n;
};
void act_strv_push(struct act_strv *s, const char *text); /* copies */
void act_strv_take(struct act_strv *s, char *text);       /* takes ownership */
void act_strv_pushf(struct act_strv *s, const char *fmt, ...) ACT_PRINTF(2, 3);
void act_strv_copy(struct act_strv *s, char *const *v, size_t n); /* appends copies of n strings */
bool act_strv_has(const struct act_strv *s, const char *text);
void act_strv_sort(struct act_strv *s); /* by byte value */
void act_strv_release(struct act_strv *s);

#endif
