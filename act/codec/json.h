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

/* Lets Jansson overwrite whatever it frees, because any value may be a secret. A program calls this once, before it
 * uses JSON. */
void codec_json_wipe_memory(void);

/* Drops the reference when the variable leaves its scope. */
static inline void codec_json_decref_at_exit(json_t **j)
{
    json_decref(*j);
}
#define CODEC_AUTOJSON __attribute__((cleanup(codec_json_decref_at_exit)))

/* Parses len bytes (at most 2048 levels deep, without duplicate keys). The error begins with name: "name:line:column:
 * ...". *out is a new reference. */
int codec_json_parse(const char *text, size_t len, const char *name, json_t **out, struct act_error *err) ACT_NODISCARD;
/* Does the same with a file of at most max_bytes. */
int codec_json_read(const char *path, size_t max_bytes, json_t **out, struct act_error *err) ACT_NODISCARD;

/* Writes value to path, with that mode, as act_file_write() does: indented, with keys in the order in which they were
 * inserted. */
int codec_json_write(const char *path, const json_t *value, unsigned mode, struct act_error *err) ACT_NODISCARD;

/* Returns value as one line without an end. New string. */
char *codec_json_line(const json_t *value);

/* Returns the text of an object without one of its members, much quicker than to parse it; a text that is no object
 * stays as it is. New string. */
char *codec_json_without(const char *text, const char *name);
/* Does the same with all members but those of these names, which end with NULL. */
char *codec_json_only(const char *text, const char *const *names);

/* Returns a copy of the string at key, or NULL if it is missing or of another type. */
char *codec_json_strdup(const json_t *object, const char *key);
/* Return the member at key, or the fallback if it is missing or of another type. A string stays owned by object. */
const char *codec_json_str(const json_t *object, const char *key, const char *fallback);
int64_t codec_json_int(const json_t *object, const char *key, int64_t fallback);
/* Does what codec_json_int() does, and also returns the fallback for a number that is not within min to max. */
int codec_json_int_in(const json_t *object, const char *key, int min, int max, int fallback);

/* Returns the first member of array that has text at key (a member without a string there has ""), or NULL. It stays
 * owned by the array. */
json_t *codec_json_find(const json_t *array, const char *key, const char *text);

/* Makes JSON of a text that may be any bytes: a string if it is UTF-8, else {"base64": "..."}. */
json_t *codec_json_bytes_new(const char *text);
/* Returns the text of such a value, a new string, or NULL if value is neither. */
char *codec_json_bytes_get(const json_t *value);

/* Makes an array of such values. */
json_t *codec_json_strv_new(const struct act_strv *strings);
/* Appends the texts of such an array to out; false if a member is neither. */
bool codec_json_strv_get(const json_t *array, struct act_strv *out);

#endif
