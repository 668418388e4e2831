/* show.c - the configuration as JSON. Secrets leave this module only masked. */
#include <string.h>

#include "base/secrets.h"
#include "codec/json.h"
#include "config/config_internal.h"

/* -- values -- */

static json_t *config_show_text_or_null(const char *text, bool secret)
{
    if (!text)
        return json_null();
    return secret && !config_is_in_vault(text) ? json_string(CONFIG_MASK) : codec_json_bytes_new(text);
}

static json_t *env_json(const struct act_strv *env)
{
    json_t *object = json_object();

    for (size_t i = 0; i < env->n; i++) {
        const char *equals = strchr(env->v[i], '=');
        ACT_AUTOFREE char *name = act_strndup(env->v[i], (size_t)(equals - env->v[i]));
        json_object_set_new(object, name, codec_json_bytes_new(act_env_shown(name, equals + 1)));
    }
    return object;
}

static json_t *value_json(const struct config_key *key, const void *at)
{
    int64_t number;

    switch (key->type) {
    case CONFIG_BOOL:
        return json_boolean(*(const bool *)at);
    case CONFIG_INT:
        number = *(const int64_t *)at;
        return number < 0 ? json_null() : json_integer(number);
    case CONFIG_TEXT:
    case CONFIG_CHOICE:
        return config_show_text_or_null(*(char *const *)at, key->secret);
    case CONFIG_ENV:
        return env_json(at);
    case CONFIG_TEXTS:
    case CONFIG_INTS:
        return codec_json_strv_new(at);
    case CONFIG_OBJECT:
    case CONFIG_OBJECTS:
        return *(json_t *const *)at ? json_deep_copy(*(json_t *const *)at) : json_null();
    default:
        return json_null();
    }
}

static json_t *tree_text(const struct config *config, const char *key)
{
    const struct yaml *value = yaml_get(config->values->tree, key);

    return config_show_text_or_null(yaml_is_null(value) ? NULL : value->text, false);
}

static bool is_shown(const struct config_key *key)
{
    return key->type != CONFIG_ANY && key->type != CONFIG_MAP && key->type != CONFIG_MAP_FILE &&
           key->type != CONFIG_MAP_INT && key->type != CONFIG_MAP_NONE && !key->instead;
}

/* Returns the members of one level as an object; the caller adds the maps. */
static json_t *members_json(const struct config *config, const struct config_key *keys, const char *map,
                            const void *base)
{
    json_t *object = json_object();

    for (; keys->path; keys++) {
        const char *member = config_key_member(keys, map);
        if (!member || !is_shown(keys))
            continue;
        json_object_set_new(object, member,
                            keys->offset == CONFIG_NOWHERE ? tree_text(config, keys->path)
                                                           : value_json(keys, (const char *)base + keys->offset));
    }
    return object;
}

static json_t *config_show_row_json(const struct config *config, const struct config_folder *folder)
{
    json_t *row = members_json(config, config_general_keys, "config_param.*", folder);
    bool is_place = config_is_place(folder);

    for (const char *const *key = config_keys_of_stores; (is_place || folder->claim) && *key; key++)
        json_object_set_new(row, *key, json_null());
    if (is_place) {
        json_object_set_new(row, "path", config_show_text_or_null(folder->account_file, false));
    } else if (folder->claim) {
        ACT_AUTOFREE char *path = act_sprintf("pvc:%s%s%s", folder->claim, *folder->path ? "/" : "", folder->path);
        json_object_set_new(row, "path", config_show_text_or_null(path, false));
    } else if (folder->account_file) {
        json_object_set_new(
            row, "azure_blob_config_file",
            config_show_text_or_null(config_display(folder->account_file, config->project_root), false));
    }
    return row;
}

/* Returns the rows of config_param, the code first when there is one. */
static const struct config_folder *row_at(const struct config *config, size_t i)
{
    if (!config->code.path)
        i++;
    if (i == 0)
        return &config->code;
    return i - 1 < config->n_folders ? &config->folders[i - 1] : NULL;
}

json_t *config_resolved(const struct config *config)
{
    json_t *all = members_json(config, config_general_keys, "", config), *rows = json_object();
    const struct config_folder *folder;

    json_object_set_new(all, "cluster", config_show_text_or_null(config->cluster, false));
    for (const char *const *map = config_general_maps; *map; map++)
        json_object_set_new(all, *map, members_json(config, config_general_keys, *map, config));
    for (const struct config_part *const *part = config_parts(); *part; part++)
        json_object_set_new(all, (*part)->name,
                            members_json(config, (*part)->keys, (*part)->name, config_part(config, *part)));
    for (size_t i = 0; (folder = row_at(config, i)); i++) {
        ACT_AUTOFREE char *key = config_row_key(config, folder);
        json_object_set_new(rows, key, config_show_row_json(config, folder));
    }
    json_object_set_new(all, "config_param", rows);
    return all;
}

/* -- origins -- */

static char *origin_of(const struct yaml *value)
{
    if (yaml_is_null(value))
        return act_strdup(CONFIG_DEFAULT);
    return value->line ? act_sprintf(value->file[0] == '-' ? "%s" : "%s:%d", value->file, value->line)
                       : act_strdup(value->file);
}

const struct yaml *config_tree_value(const struct yaml *tree, const char *key)
{
    ACT_AUTOFREE char *rest = act_strdup(key);

    for (char *save, *name = strtok_r(rest, ".", &save); name && tree; name = strtok_r(NULL, ".", &save))
        tree = yaml_get(tree, name);
    return tree;
}

const struct yaml *config_value(const struct config *config, const char *key)
{
    return config->values ? config_tree_value(config->values->tree, key) : NULL;
}

bool config_is_said(const struct config *config, const char *key)
{
    const struct yaml *at = config_value(config, key);

    return !yaml_is_null(at) && (at->file[0] == '-' || at->file[0] == '$');
}

char *config_origin(const struct config *config, const char *key)
{
    return origin_of(config_value(config, key));
}

/* {"value": value, "origin": where}; takes the reference to value. */
static void config_show_add_row(json_t *out, const char *path, json_t *value, const char *origin)
{
    json_object_set_new(out, path, json_pack("{s:o, s:o}", "value", value, "origin", codec_json_bytes_new(origin)));
}

/* Every leaf of an object below path, with the place of the value in the tree beside it. */
static void config_show_flatten(json_t *out, const char *path, json_t *object, const struct yaml *tree)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        ACT_AUTOFREE char *full = act_sprintf("%s%s%s", path, *path ? "." : "", key);
        const struct yaml *at = yaml_get(tree, key);
        bool is_leaf = !json_is_object(value) || json_object_size(value) == 0;
        if (!is_leaf && !(at && at->kind == YAML_SCALAR)) { /* text that is not UTF-8 is an object as well */
            config_show_flatten(out, full, value, at);
            continue;
        }
        ACT_AUTOFREE char *origin = origin_of(at);
        config_show_add_row(out, full, json_incref(value), origin);
    }
}

static void config_show_add_account(json_t *out, const struct config *config, const struct config_folder *folder)
{
    ACT_AUTO(config_findings) f = {0};
    ACT_AUTO(config_account) account = {0};
    struct yaml *tree = NULL;
    struct act_error err;
    ACT_AUTOFREE char *key = config_row_key(config, folder);
    ACT_AUTOFREE char *path = act_sprintf("config_param.%s.account", key);

    if (config_account_read(config, folder, &account, &tree, &f, &err) < 0) {
        ACT_AUTOFREE char *origin = origin_of(config_account_origin(config, folder));
        config_show_add_row(out, path, json_null(), origin);
        json_object_set_new(json_object_get(out, path), "error", json_string(act_error_text(&err)));
    } else {
        CODEC_AUTOJSON json_t *members = members_json(config, config_account_keys, "", &account);
        config_show_flatten(out, path, members, tree);
    }
    yaml_tree_free(tree);
}

/* The account at the top level is used by rows that name no account file. */
static void point_at_top_level(json_t *out, const struct config *config, const struct config_folder *folder)
{
    static const char *const inherited[] = {"azure_blob_config_file", "datastore_name"};
    ACT_AUTOFREE char *key = config_row_key(config, folder);

    if (!yaml_is_null(config_row_value(config, folder, "azure_blob_config_file")))
        return;
    for (size_t i = 0; i < sizeof(inherited) / sizeof(inherited[0]); i++) {
        const struct yaml *top = yaml_get(config->values->tree, inherited[i]);
        ACT_AUTOFREE char *path = act_sprintf("config_param.%s.%s", key, inherited[i]);
        if (!yaml_is_null(config_row_value(config, folder, inherited[i])) || yaml_is_null(top))
            continue;
        ACT_AUTOFREE char *origin = origin_of(top);
        json_object_set_new(json_object_get(out, path), "origin", codec_json_bytes_new(origin));
    }
}

json_t *config_show(const struct config *config)
{
    CODEC_AUTOJSON json_t *all = config_resolved(config);
    json_t *out = json_object();
    const struct config_folder *folder;

    json_object_del(all, "cluster");
    config_show_add_row(out, "cluster", config_show_text_or_null(config->cluster, false),
                        config->values->cluster_origin);
    config_show_flatten(out, "", all, config->values->tree);
    for (size_t i = 0; (folder = row_at(config, i)); i++) {
        point_at_top_level(out, config, folder);
        config_show_add_account(out, config, folder);
    }
    return out;
}
