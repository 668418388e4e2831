#include "codec/json.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"

void codec_json_wipe_memory(void)
{
    json_set_alloc_funcs(malloc, act_free_wiping);
}

int codec_json_parse(const char *text, size_t len, const char *name, json_t **out, struct act_error *err)
{
    json_error_t why;

    *out = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (!*out)
        return act_error_set(err, ACT_FAIL, "%s:%d:%d: %s", name, why.line, why.column, why.text);
    return 0;
}

int codec_json_read(const char *path, size_t max_bytes, json_t **out, struct act_error *err)
{
    ACT_AUTOWIPE char *text = NULL;
    size_t len;
    int rc = act_file_read(path, max_bytes, &text, &len, err);

    *out = NULL;
    return rc < 0 ? rc : codec_json_parse(text, len, path, out, err);
}

int codec_json_write(const char *path, const json_t *value, unsigned mode, struct act_error *err)
{
    ACT_AUTOWIPE char *dump = json_dumps(value, JSON_INDENT(2) | JSON_ENCODE_ANY);

    if (!dump)
        return act_error_set(err, ACT_FAIL, "cannot write '%s': the value is not JSON", path);
    ACT_AUTOWIPE char *text = act_sprintf("%s\n", dump);
    return act_file_write(path, text, strlen(text), (mode_t)mode, err);
}

char *codec_json_line(const json_t *value)
{
    char *line = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

    return line ? line : act_strdup("null");
}

const char *codec_json_str(const json_t *object, const char *key, const char *fallback)
{
    const json_t *member = json_object_get(object, key);

    return json_is_string(member) ? json_string_value(member) : fallback;
}

/* Returns what is behind a string, at whose first quote s is. */
static const char *json_behind_string(const char *s)
{
    for (s++; *s && *s != '"'; s++)
        s += *s == '\\' && s[1] ? 1 : 0;
    return s + (*s == '"');
}

/* Returns the comma or bracket behind a value. It looks at each character, as most texts between two of these are
 * short. */
static const char *json_behind_value(const char *s)
{
    for (int depth = 0;; s++) {
        switch (*s) {
        case '\0':
            return s;
        case '"':
            s = json_behind_string(s) - 1;
            break;
        case '[':
        case '{':
            depth++;
            break;
        case ']':
        case '}':
            if (depth-- == 0)
                return s;
            break;
        case ',':
            if (depth == 0)
                return s;
            break;
        default:
            break;
        }
    }
}

static bool json_is_named(const char *key, const char *const *names)
{
    for (; *names; names++) {
        size_t len = strlen(*names);
        if (strncmp(key, *names, len) == 0 && key[len] == '"')
            return true;
    }
    return false;
}

/* Returns the text of an object with only the members of these names, or with all others. */
static char *json_cut(const char *text, const char *const *names, bool keeps)
{
    static const char blanks[] = " \t\r\n";
    struct act_buf out = {0};
    const char *s = text + strspn(text, blanks);
    bool more = *s == '{';

    act_buf_adds(&out, "{");
    while (more) {
        const char *key = s + 1 + strspn(s + 1, blanks), *end = json_behind_value(key);
        if ((*key == '"' && json_is_named(key + 1, names)) == keeps) {
            act_buf_adds(&out, out.len > 1 ? "," : "");
            act_buf_add(&out, key, (size_t)(end - key));
        }
        more = *end == ',';
        s = end;
    }
    bool is_whole = *s == '}' && s[1 + strspn(s + 1, blanks)] == '\0';
    act_buf_adds(&out, "}");
    char *cut = act_buf_steal(&out);
    if (is_whole)
        return cut;
    free(cut);
    return act_strdup(text);
}

char *codec_json_without(const char *text, const char *name)
{
    return json_cut(text, (const char *const[]){name, NULL}, false);
}

char *codec_json_only(const char *text, const char *const *names)
{
    return json_cut(text, names, true);
}

char *codec_json_strdup(const json_t *object, const char *key)
{
    return act_strdup(codec_json_str(object, key, NULL));
}

json_t *codec_json_find(const json_t *array, const char *key, const char *text)
{
    size_t i;
    json_t *member;

    json_array_foreach(array, i, member)
    {
        if (strcmp(codec_json_str(member, key, ""), text) == 0)
            return member;
    }
    return NULL;
}

int64_t codec_json_int(const json_t *object, const char *key, int64_t fallback)
{
    const json_t *member = json_object_get(object, key);

    return json_is_integer(member) ? json_integer_value(member) : fallback;
}

int codec_json_int_in(const json_t *object, const char *key, int min, int max, int fallback)
{
    int64_t value = codec_json_int(object, key, fallback);

    return value >= min && value <= max ? (int)value : fallback;
}

json_t *codec_json_bytes_new(const char *text)
{
    size_t len = strlen(text);

    if (act_utf8_valid(text, len))
        return json_stringn(text, len);
    ACT_AUTOWIPE char *base64 = act_base64_encode(text, len);
    return json_pack("{s:s}", "base64", base64);
}

char *codec_json_bytes_get(const json_t *value)
{
    const char *base64 = json_object_size(value) == 1 ? codec_json_str(value, "base64", NULL) : NULL;
    size_t len;

    if (json_is_string(value)) {
        const char *text = json_string_value(value);
        return strlen(text) == json_string_length(value) ? act_strdup(text) : NULL;
    }
    if (!base64)
        return NULL;
    char *bytes = (char *)act_base64_decode(base64, &len);
    char *text = bytes && !memchr(bytes, '\0', len) ? act_strndup(bytes, len) : NULL;
    act_wipe_bytes(bytes, bytes ? len : 0);
    return text;
}

json_t *codec_json_strv_new(const struct act_strv *strings)
{
    json_t *array = json_array();

    for (size_t i = 0; i < strings->n; i++)
        json_array_append_new(array, codec_json_bytes_new(strings->v[i]));
    return array;
}

bool codec_json_strv_get(const json_t *array, struct act_strv *out)
{
    size_t i;
    json_t *member;

    if (!json_is_array(array))
        return false;
    json_array_foreach(array, i, member)
    {
        char *text = codec_json_bytes_get(member);
        if (!text)
            return false;
        act_strv_take(out, text);
    }
    return true;
}
