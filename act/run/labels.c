/* labels.c - the name and the tags that users give to their runs. */
#include <ctype.h>
#include <string.h>

#include "codec/json.h"
#include "run/run_internal.h"

enum { LABEL_MAX = 64, VALUE_MAX = 256 };

bool run_label_valid(const char *label)
{
    size_t n = strlen(label);

    return n > 0 && n <= LABEL_MAX && isalnum((unsigned char)label[0]) &&
           strspn(label, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == n;
}

int run_check_name(const char *name, struct act_error *err)
{
    if (run_label_valid(name))
        return 0;
    return act_error_set(
        err, ACT_USAGE,
        "'%s' is not a name of a run: a name has at most %d letters, digits, '.', '_' and '-', and begins "
        "with a letter or digit",
        name, LABEL_MAX);
}

static bool labels_is_value(const char *value)
{
    size_t n = strlen(value);

    return n <= VALUE_MAX && act_utf8_valid(value, n) && !act_has_control(value);
}

bool run_tag_valid(const char *key, const json_t *value)
{
    return run_label_valid(key) && json_is_string(value) && labels_is_value(json_string_value(value));
}

int run_tags_add(json_t *tags, const char *text, struct act_error *err)
{
    const char *equals = strchr(text, '=');
    ACT_AUTOFREE char *key = equals ? act_strndup(text, (size_t)(equals - text)) : act_strdup(text);

    if (!equals)
        return act_error_set(err, ACT_USAGE, "'%s' is not a tag: a tag is KEY=VALUE", text);
    if (!run_label_valid(key))
        return act_error_set(
            err, ACT_USAGE,
            "'%s' is not a tag: '%s' is not a key, which has at most %d letters, digits, '.', '_' and '-'", text, key,
            LABEL_MAX);
    if (!labels_is_value(equals + 1))
        return act_error_set(err, ACT_USAGE,
                             "the value of tag '%s' must be UTF-8 without control characters, at most %d bytes", key,
                             VALUE_MAX);
    const char *before = codec_json_str(tags, key, NULL);
    if (before && strcmp(before, equals + 1) != 0)
        return act_error_set(err, ACT_USAGE, "tag '%s' is given twice: '%s' and '%s'", key, before, equals + 1);
    json_object_set_new(tags, key, json_string(equals + 1));
    return 0;
}

json_t *run_tags_parse(const char *line)
{
    CODEC_AUTOJSON json_t *json = NULL;
    json_t *tags = json_object();
    const char *key;
    json_t *value;

    if (line && codec_json_parse(line, strlen(line), "tags", &json, NULL) < 0)
        json = NULL;
    json_object_foreach(json, key, value)
    {
        if (run_tag_valid(key, value))
            json_object_set(tags, key, value);
    }
    return tags;
}

char *run_tags_line(const json_t *tags)
{
    ACT_AUTOFREE char *line = json_object_size(tags) ? json_dumps(tags, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    return act_strdup(line);
}

bool run_tags_have(const json_t *tags, json_t *wanted)
{
    const char *key;
    json_t *value;

    json_object_foreach(wanted, key, value)
    {
        if (!json_equal(json_object_get(tags, key), value))
            return false;
    }
    return true;
}
