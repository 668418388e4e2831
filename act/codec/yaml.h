/* yaml.h - YAML (and so JSON) documents as a tree that remembers where every value stands.
 *
 * Bounded: 1 MiB of text, 64 levels, 100,000 values. Aliases and merge keys ("<<") are resolved by copying
 * within those bounds. Only one document per file. Scalars keep their text; what type it is, is the reader's
 * question (yaml_as_*), answered by the YAML 1.1 words that PyYAML takes (true/yes/on, ~, null, 0x10, 1_000),
 * unless the scalar was quoted.
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
    const char *file; /* owned by the root of the tree */
    int line, column; /* of the value, or of the key inside a map; from 1 */
};

/* name: for messages, "name:line:column: ...". An empty document is an empty map. Duplicate keys are errors.
 */
int yaml_parse(const char *text, size_t len, const char *name, struct yaml **out,
               struct act_error *err) ACT_NODISCARD;
int yaml_read(const char *path, struct yaml **out, struct act_error *err) ACT_NODISCARD;
void yaml_free(struct yaml *root);

/* The member of a map, or NULL. */
struct yaml *yaml_get(const struct yaml *map, const char *key);

bool yaml_is_null(const struct yaml *value); /* missing (NULL), empty, ~ or null */
bool yaml_as_bool(const struct yaml *value, bool *out);
bool yaml_as_int(const struct yaml *value, int64_t *out);

/* Sets err to "file:line:column: <formatted>" with ACT_CONFIG; returns -ACT_CONFIG. */
int yaml_error(const struct yaml *at, struct act_error *err, const char *fmt, ...) ACT_PRINTF(3, 4);

#endif
