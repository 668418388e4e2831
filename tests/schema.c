/* schema.c - prints the JSON Schema of a kind of file, as the tables of keys say it: act_schema cluster|account|user.
 * scripts/reference writes it to config/. */
#include <stdio.h>
#include <string.h>

#include "codec/json.h"
#include "config/config_internal.h"
#include "platform/platform.h"

#define ROW_NAMES "^(code_path|.+_folder)$"
#define WHOLE     "^[0-9]+$"
#define JSON_FORM (JSON_INDENT(2) | JSON_ENSURE_ASCII)

/* What YAML makes of text without quotes. */
static json_t *schema_text_types(void)
{
    return json_pack("[s, s, s, s]", "string", "number", "boolean", "null");
}

/* {"type": [one, other, "null"]}; other may be NULL. */
static json_t *schema_of_types(const char *one, const char *other)
{
    return other ? json_pack("{s:[s, s, s]}", "type", one, other, "null")
                 : json_pack("{s:[s, s]}", "type", one, "null");
}

static json_t *schema_whole(const struct config_key *key)
{
    json_t *out = json_pack("{s:[s, s], s:I, s:s}", "type", "integer", "string", "minimum", (json_int_t)key->min,
                            "pattern", WHOLE);

    if (key->max)
        json_object_set_new(out, "maximum", json_integer(key->max));
    return out;
}

static json_t *schema_int(const struct config_key *key)
{
    json_t *out = schema_whole(key);

    json_array_append_new(json_object_get(out, "type"), json_string("null"));
    return out;
}

static json_t *schema_text(const struct config_key *key)
{
    const struct config_form *form = key->form;

    if (!form)
        return json_pack("{s:o}", "type", schema_text_types());
    json_t *out = schema_of_types("string", form->takes_numbers ? "number" : NULL);
    json_object_set_new(out, "pattern", json_string(form->pattern));
    return out;
}

static json_t *schema_choice(const struct config_key *key)
{
    json_t *out = schema_of_types("string", NULL), *names = json_array();

    for (const char *name = key->choices; *name; name += strcspn(name, "|"), name += *name == '|')
        json_array_append_new(names, json_stringn(name, strcspn(name, "|")));
    json_array_append_new(names, json_null());
    json_object_set_new(out, "enum", names);
    return out;
}

static json_t *schema_list(json_t *items)
{
    json_t *out = schema_of_types("array", NULL);

    json_object_set_new(out, "items", items);
    return out;
}

static json_t *schema_env(void)
{
    json_t *out = schema_of_types("object", NULL);

    json_object_set_new(out, "additionalProperties", json_pack("{s:o}", "type", schema_text_types()));
    return out;
}

static json_t *schema_value(const struct config_key *key)
{
    switch (key->type) {
    case CONFIG_BOOL:
        return schema_of_types("boolean", "integer");
    case CONFIG_INT:
        return schema_int(key);
    case CONFIG_TEXT:
        return schema_text(key);
    case CONFIG_CHOICE:
        return schema_choice(key);
    case CONFIG_TEXTS:
        return schema_list(json_pack("{s:o}", "type", schema_text_types()));
    case CONFIG_INTS:
        return schema_list(schema_whole(key));
    case CONFIG_OBJECTS:
        return schema_list(json_pack("{s:s}", "type", "object"));
    case CONFIG_ENV:
        return schema_env();
    case CONFIG_MAP:
    case CONFIG_OBJECT:
        return schema_of_types("object", NULL);
    case CONFIG_MAP_FILE:
        return schema_of_types("object", "string");
    case CONFIG_MAP_INT:
        return schema_of_types("object", "integer");
    case CONFIG_MAP_NONE:
        return schema_of_types("object", "string");
    case CONFIG_ANY:
        break;
    }
    return json_object();
}

static json_t *schema_default(const struct config_key *key)
{
    if (key->type == CONFIG_BOOL)
        return json_boolean(strcmp(key->fallback, "true") == 0);
    return key->type == CONFIG_INT ? json_integer(strtoll(key->fallback, NULL, 10)) : json_string(key->fallback);
}

static json_t *schema_members(const struct config_key *keys, const char *map);

/* The members of a map have rows of their own, those of config_param for any row of it. */
static void schema_add_members(json_t *out, const struct config_key *keys, const struct config_key *key)
{
    ACT_AUTOFREE char *rows = act_sprintf("%s.*", key->path);
    json_t *members = schema_members(keys, key->path), *of_row = schema_members(keys, rows);

    if (json_object_size(of_row))
        json_object_set_new(out, "patternProperties",
                            json_pack("{s:{s:[{s:s}, {s:s}, {s:s, s:O, s:b}]}}", ROW_NAMES, "anyOf", "type", "string",
                                      "type", "null", "type", "object", "properties", of_row, "additionalProperties",
                                      0));
    else
        json_object_set(out, "properties", members);
    json_object_set_new(out, "additionalProperties", json_false());
    json_decref(members);
    json_decref(of_row);
}

static json_t *schema_key(const struct config_key *keys, const struct config_key *key)
{
    json_t *out = json_pack("{s:s}", "description", key->help), *value = schema_value(key);

    json_object_update_new(out, value);
    if (key->fallback)
        json_object_set_new(out, "default", schema_default(key));
    if (key->secret)
        json_object_set_new(out, "writeOnly", json_true());
    if (act_starts_with(key->help, "legacy"))
        json_object_set_new(out, "deprecated", json_true());
    if (key->type == CONFIG_MAP || key->type == CONFIG_MAP_FILE || key->type == CONFIG_MAP_INT ||
        key->type == CONFIG_MAP_NONE)
        schema_add_members(out, keys, key);
    return out;
}

static json_t *schema_members(const struct config_key *keys, const char *map)
{
    json_t *out = json_object();

    for (const struct config_key *key = keys; key->path; key++)
        if (config_key_member(key, map))
            json_object_set_new(out, config_key_member(key, map), schema_key(keys, key));
    return out;
}

int main(int argc, char **argv)
{
    const struct {
        const char *name, *title, *description;
        const struct config_key *keys;
    } files[] = {
        {"cluster", "ACT cluster file", "aux_data/aml/<cluster>.yaml", (platform_begin(), config_cluster_keys)},
        {"account", "ACT account file", "what azure_blob_config_file names", config_account_keys},
        {"user", "ACT user's settings", "config.yaml in the user's own folder", config_user_keys},
    };

    for (size_t i = 0; argc == 2 && i < sizeof(files) / sizeof(files[0]); i++) {
        if (strcmp(files[i].name, argv[1]) != 0)
            continue;
        CODEC_AUTOJSON json_t *schema =
            json_pack("{s:s, s:s, s:s, s:s, s:o, s:b}", "$schema", "https://json-schema.org/draft/2020-12/schema",
                      "title", files[i].title, "description", files[i].description, "type", "object", "properties",
                      schema_members(files[i].keys, ""), "additionalProperties", 0);
        return json_dumpf(schema, stdout, JSON_FORM) < 0 || putchar('\n') == EOF;
    }
    fprintf(stderr, "usage: act_schema cluster|account|user\n");
    return 2;
}
