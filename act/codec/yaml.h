/* yaml.h - YAML (and so JSON) documents as a tree that remembers the position of every value.
 *
 * Bounded: 1 MiB of text, 64 levels, 100,000 values, 4,096 keys in one map, 16 "%TAG". Aliases and merge keys ("<<")
 * are resolved by copying within those bounds (and 8 MiB of text). A file has only one document. A scalar keeps its
 * text; the reader asks for its type (yaml_as_*), which follows from the YAML 1.1 words that PyYAML takes (true/yes/on,
 * ~, null, 0x10, 1_000; not the sexagesimal 1:30), unless the scalar was quoted.
 */
#ifndef ACT_CODEC_YAML_H
#define ACT_CODEC_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum yaml_kind { YAML_SCALAR, YAML_LIST, YAML_MAP };

struct yaml {
    enum yaml_kind kind;
    char *key;           /* inside a map: the key, always a string; else NULL */
    char *text;          /* YAML_SCALAR: the text, "" when empty */
    bool quoted;         /* YAML_SCALAR: was quoted, so it is a string */
    struct yaml **items; /* YAML_LIST, YAML_MAP: n of them */
    size_t n;
    char *file;       /* the file it was read from; read only; lives as long as the value, wherever that is moved to */
    int line, column; /* of the value, or of the key inside a map; from 1; 0: not read from text */
};

/* Parses len bytes. An empty document is an empty map; duplicate keys are errors. Errors begin with name,
 * "name:line:column: ...", and never quote a value, which may be secret. All are -ACT_CONFIG. */
int yaml_parse(const char *text, size_t len, const char *name, struct yaml **out, struct act_error *err) ACT_NODISCARD;
/* Does the same with a regular file; name NULL: its path. An error of reading has the code of its cause. */
int yaml_read(const char *path, const char *name, struct yaml **out, struct act_error *err) ACT_NODISCARD;
/* Frees a value, and wipes its texts. (The plain name yaml_free belongs to libyaml.) */
void yaml_tree_free(struct yaml *value);

/* Returns the member of map at key, or NULL. */
struct yaml *yaml_get(const struct yaml *map, const char *key);

/* Make values that were not read from text, of the file name: an empty map, a string, and a scalar that yaml_as_* may
 * read. */
struct yaml *yaml_new_map(const char *name);
struct yaml *yaml_new_text(const char *name, const char *text);
struct yaml *yaml_new_word(const char *name, const char *text);

/* Put value into a map, in the place of a member of that key, or at the end of a list. They take ownership of it. */
void yaml_put(struct yaml *map, const char *key, struct yaml *value);
void yaml_push(struct yaml *list, struct yaml *value);

/* Moves the members of the map over into the map base and frees over: a map in both is merged in turn, else
 * the value of over wins, as a nested dict update does. */
void yaml_merge(struct yaml *base, struct yaml *over);

bool yaml_is_null_word(const struct yaml *value);
static inline bool yaml_is_null(const struct yaml *value) /* missing (NULL), empty, ~ or null */
{
    return !value || yaml_is_null_word(value);
}
/* Read a scalar as a bool or a number; false if it is none. */
bool yaml_as_bool(const struct yaml *value, bool *out);
bool yaml_as_int(const struct yaml *value, int64_t *out);

/* Tells whether a scalar is a text: it is none of these words, or was quoted. */
bool yaml_is_text(const struct yaml *value);
/* Tells whether two values mean the same, wherever they stand and however they are quoted; maps in any order. */
bool yaml_is_same(const struct yaml *a, const struct yaml *b);

/* Sets err to "file:line:column: <formatted>" (or "file: ...") with ACT_CONFIG; returns -ACT_CONFIG. */
int yaml_error(const struct yaml *at, struct act_error *err, const char *fmt, ...) ACT_PRINTF(3, 4);

#endif
