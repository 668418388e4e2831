/* json.h - JSON documents. The in-memory form is Jansson's json_t, used directly; this header adds bounded
 * reading, atomic writing and short typed access. Jansson functions that end in _new take their reference.
 */
#ifndef ACT_CODEC_JSON_H
#define ACT_CODEC_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/* Lets Jansson overwrite whatever it frees, because any value may be a secret. A program calls this once, before it uses
 * JSON. */
void codec_json_wipe_memory(void);

/* Drops the reference when the variable leaves its scope. */
static inline void codec_json_decref_at_exit(json_t **j)
{
    json_decref(*j);
}
#define CODEC_AUTOJSON __attribute__((cleanup(codec_json_decref_at_exit)))

/* Parses len bytes (at most 2048 levels deep, duplicate keys refused). name is used in the error:
 * "name:line:column: ...". A new reference. */
int codec_json_parse(const char *text, size_t len, const char *name, json_t **out, struct act_error *err) ACT_NODISCARD;
int codec_json_read(const char *path, size_t max_bytes, json_t **out, struct act_error *err) ACT_NODISCARD;

/* Indented, keys in insertion order, final newline; replaced atomically with the mode. */
int codec_json_write(const char *path, const json_t *value, unsigned mode, struct act_error *err) ACT_NODISCARD;

/* One line, no final newline. New string. */
char *codec_json_line(const json_t *value);

/* The string at the key, new; NULL when it is missing or of another type. */
char *codec_json_strdup(const json_t *object, const char *key);
/* The member, or the fallback when it is missing or of another type. Strings stay owned by object. */
const char *codec_json_str(const json_t *object, const char *key, const char *fallback);
int64_t codec_json_int(const json_t *object, const char *key, int64_t fallback);
/* Likewise; also the fallback when it is not within min to max. */
int codec_json_int_in(const json_t *object, const char *key, int min, int max, int fallback);

/* The first member of an array that has this string at the key (no string counts as ""); NULL: none. It stays owned by
 * the array. */
json_t *codec_json_find(const json_t *array, const char *key, const char *text);

/* Text that may be any bytes: a JSON string when it is UTF-8 without NUL, else {"base64": "..."}.
 * bytes_get returns a new string, NULL when value is neither. */
json_t *codec_json_bytes_new(const char *text);
char *codec_json_bytes_get(const json_t *value);

/* Arrays of such text. strv_get appends to out; false when a member is neither form. */
json_t *codec_json_strv_new(const struct act_strv *strings);
bool codec_json_strv_get(const json_t *array, struct act_strv *out);

#endif
