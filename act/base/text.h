/* text.h - strings, growing buffers and string vectors.
 *
 * Small allocations cannot fail: a tool that lacks 40 bytes ends with a message. Large buffers (data,
 * response bodies) are bounded by their owner.
 */
#ifndef ACT_BASE_TEXT_H
#define ACT_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/error.h"

/* Frees the variable when it leaves its scope. Do not mix it with "goto out" in one function. */
static inline void act_free_at_exit(void *pointer_to_pointer)
{
    free(*(void **)pointer_to_pointer);
}
#define ACT_AUTOFREE __attribute__((cleanup(act_free_at_exit)))

/* A struct that its <name>_release() empties when it leaves its scope: ACT_AUTO(act_strv) words = {0}; It holds for
 * every variable of the declaration, as ACT_AUTOFREE does, so each must have a value there. */
#define ACT_AUTO(name) __attribute__((cleanup(name##_release))) struct name

/* Secrets: whoever frees memory that held a key, a token or a signed URL overwrites it first, so that neither a core
 * nor a later use of the memory shows it.
 *
 * - The program overwrites its own texts by act_wipe(), act_wipe_bytes(), ACT_AUTOWIPE and act_buf_wipe(). A buffer
 *   that grows leaves no copy behind.
 * - Jansson and libcurl overwrite all that they hold by act_free_wiping(), which codec_json_wipe_memory() and the
 *   engine give to them. A text of json_dumps() is the program's own.
 * - OpenSSL overwrites keys and the secrets of its sessions, but not the last record that a connection has received.
 * - libyaml overwrites nothing: pieces of a secret of a YAML file may stay in free memory. */

/* Overwrites len bytes at secret and frees them; secret may be NULL. */
void act_wipe_bytes(void *secret, size_t len);
/* Does the same with a text, and leaves NULL in its place. */
void act_wipe(char **secret);
/* free() and realloc() for libraries: they overwrite all of a block that is given up. */
void act_free_wiping(void *block);
void *act_realloc_wiping(void *block, size_t size);
/* Marks a text that is wiped when it leaves its scope, as ACT_AUTOFREE frees one. */
#define ACT_AUTOWIPE __attribute__((cleanup(act_wipe)))

/* These are malloc, calloc, realloc, strdup, strndup, asprintf and vasprintf, but end the program when memory is
 * exhausted. The caller frees the result with free(). act_strdup(NULL) is NULL. */
void *act_alloc(size_t size);
void *act_calloc(size_t count, size_t size);
void *act_realloc(void *old, size_t size);
char *act_strdup(const char *s);
char *act_strndup(const char *s, size_t len);
char *act_sprintf(const char *fmt, ...) ACT_PRINTF(1, 2);
char *act_vsprintf(const char *fmt, va_list ap) ACT_PRINTF(1, 0);

/* A growing vector is a pointer and a count, NULL and 0 at first. Its capacity is the power of two that the count
 * needs, so it is not stored, and a vector that was allocated in another way must not grow. ACT_PUSH appends an item;
 * ACT_GROW only makes room for one more. */
#define ACT_GROW(v, n)      ((v) = act_grow((v), (n), sizeof(*(v))))
#define ACT_PUSH(v, n, ...) (ACT_GROW(v, n), (v)[(n)++] = __VA_ARGS__)
void *act_grow(void *v, size_t n, size_t item_size);

/* Frees *text and replaces it by a copy of by. Both may be NULL. */
void act_str_replace(char **text, const char *by);

/* Tells whether s begins with prefix. */
bool act_starts_with(const char *s, const char *prefix);
/* Tells whether s ends with suffix. */
bool act_ends_with(const char *s, const char *suffix);
/* Tells whether both are the same text, or both NULL. */
static inline bool act_streq(const char *a, const char *b)
{
    return a == b || (a && b && __builtin_strcmp(a, b) == 0);
}

/* Returns the length of the UTF-8 character that begins the len (not 0) bytes, or 0 if that is none to
 * act_utf8_valid(). */
size_t act_utf8_char(const char *s, size_t len);

/* Tells whether the len bytes are well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms). */
bool act_utf8_valid(const char *s, size_t len);

/* Tells whether s begins with a control character (C0, DEL, C1), which may move a terminal's cursor or end a line. */
bool act_is_control(const char *s);
/* Tells whether s has one anywhere. */
bool act_has_control(const char *s);

/* Replaces every control character (C0, DEL) of text that is not one of keep by mask. */
void act_mask_controls(char *text, const char *keep, char mask);

/* Returns len bytes from outside as one line of UTF-8, a new string: line ends and tabs become blanks, other control
 * characters and bytes that are not UTF-8 become '?'. */
char *act_one_line(const char *text, size_t len);

/* Copies such a line of text into out, and leaves out whole characters at its end if it has no room for them. */
void act_copy_line(char *out, size_t size, const char *text);

/* Returns s with control characters and bytes that are not UTF-8 as "\\xNN". New string. */
char *act_printable(const char *s);

/* Counts the single-character edits and swaps of neighbours from a to b, ignoring case. For "did you mean". */
int act_edit_distance(const char *a, const char *b);

/* Returns the candidate that is near enough to word to be meant, or NULL. candidates ends with NULL. */
const char *act_nearest(const char *word, const char *const *candidates);

/* Compares texts, or structs whose first member is one, by byte value, for qsort() and bsearch(). */
int act_by_text(const void *a, const void *b);

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
/* Appends a word in single quotes, as every shell reads it. */
void act_buf_add_quoted(struct act_buf *b, const char *word);
/* Hands the text (never NULL) to the caller and leaves the buffer empty. */
char *act_buf_steal(struct act_buf *b);
void act_buf_release(struct act_buf *b);
void act_buf_wipe(struct act_buf *b); /* releases secrets */

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
void act_strv_add(struct act_strv *s, const char *const *words);  /* appends copies of words, which end with NULL */
#define ACT_STRV_PUSH(s, ...) act_strv_add((s), (const char *const[]){__VA_ARGS__, NULL})
bool act_strv_has(const struct act_strv *s, const char *text);
void act_strv_sort(struct act_strv *s); /* by byte value */
void act_strv_release(struct act_strv *s);

#endif
