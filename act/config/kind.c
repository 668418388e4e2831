/* kind.c - the kinds that the program has, and the values of their parts. */
#include "config/kind.h"

#include <stdlib.h>
#include <string.h>

#include "config/config_internal.h"

enum { MOST_PARTS = 16, MOST_BYTES = 512 };

static const struct config_kind *const no_kinds[] = {NULL};
static const struct config_kind *const *kinds = no_kinds;
static const struct config_part *parts[MOST_PARTS + 1];

const struct config_key *config_cluster_keys = config_general_keys;

/* ---- making them known */

static void add_part(const struct config_part *part)
{
    size_t n = 0;

    while (parts[n] && parts[n] != part)
        n++;
    if (n == MOST_PARTS || part->size > MOST_BYTES)
        abort(); /* the limits above are this file's own */
    parts[n] = part;
}

static void collect_parts(void)
{
    memset(parts, 0, sizeof(parts));
    for (size_t i = 0; kinds[i]; i++)
        for (const struct config_part *const *part = kinds[i]->parts; part && *part; part++)
            add_part(*part);
}

/* The row of "platform", with the names that there are. */
static void fill_in_platform(struct config_key *key)
{
    struct act_buf names = {0};

    for (size_t i = 0; kinds[i]; i++) {
        act_buf_addf(&names, "%s%s", i ? "|" : "", kinds[i]->name);
        if (kinds[i]->is_default)
            key->fallback = kinds[i]->name;
    }
    key->choices = names.data ? names.data : "";
}

static void collect_keys(void)
{
    struct config_key *all = NULL; /* lives as long as the program */
    size_t n = 0;

    for (const struct config_key *key = config_general_keys; key->path; key++)
        ACT_PUSH(all, n, *key);
    for (size_t i = 0; parts[i]; i++)
        for (const struct config_key *key = parts[i]->keys; key->path; key++)
            ACT_PUSH(all, n, *key);
    ACT_PUSH(all, n, (struct config_key){0});
    for (struct config_key *key = all; key->path; key++)
        if (strcmp(key->path, "platform") == 0)
            fill_in_platform(key);
    config_cluster_keys = all;
}

void config_use_kinds(const struct config_kind *const *all)
{
    kinds = all;
    collect_parts();
    collect_keys();
}

/* ---- asking for them */

const struct config_kind *config_kind_named(const char *name)
{
    static const struct config_kind none = {.name = ""};

    for (size_t i = 0; kinds[i]; i++)
        if (act_streq(kinds[i]->name, name))
            return kinds[i];
    return &none;
}

static const struct config_kind *kind_by_flag(const struct yaml *tree)
{
    for (size_t i = 0; kinds[i]; i++) {
        bool is_set = false;
        if (kinds[i]->legacy_flag && yaml_as_bool(yaml_get(tree, kinds[i]->legacy_flag), &is_set) && is_set)
            return kinds[i];
    }
    return NULL;
}

const struct config_kind *config_kind_of(const struct yaml *tree)
{
    const struct config_kind *kind = kind_by_flag(tree);
    const struct yaml *said = yaml_get(tree, "platform");

    if (kind)
        return kind;
    for (size_t i = 0; yaml_is_null(said) && kinds[i]; i++)
        if (kinds[i]->is_default)
            return kinds[i];
    return config_kind_named(yaml_is_null(said) || said->kind != YAML_SCALAR ? NULL : said->text);
}

const struct config_kind *const *config_kinds(void)
{
    return kinds;
}

const struct config_kind *config_kind_built_in(void)
{
    size_t i = 0;

    while (kinds[i] && !kinds[i]->is_built_in)
        i++;
    return kinds[i] ? kinds[i] : config_kind_named(NULL);
}

const struct config_part *const *config_parts(void)
{
    return parts;
}

/* Tells whether the part at the head of a key is one of these. */
static bool kind_has_key(const struct config_part *const *of, const char *key)
{
    size_t len = strcspn(key, ".");

    for (; of && *of; of++)
        if (strncmp((*of)->name, key, len) == 0 && !(*of)->name[len])
            return true;
    return false;
}

bool config_is_for_others(const struct config *config, const char *key)
{
    const struct config_key *row = config_key_find(config_cluster_keys, "", key);

    if (row && act_starts_with(row->help, "legacy"))
        return true;
    return kind_has_key(parts, key) && !kind_has_key(config_kind_named(config->platform)->parts, key);
}

char *config_kinds_that(size_t flag)
{
    struct act_buf names = {0};

    for (size_t i = 0; kinds[i]; i++)
        if (*(const bool *)((const char *)kinds[i] + flag))
            act_buf_addf(&names, "%s'%s'", names.len ? " and " : "", kinds[i]->name);
    return names.data ? names.data : act_strdup("none");
}

/* ---- the values of parts */

void *config_part(const struct config *config, const struct config_part *part)
{
    static union {
        char bytes[MOST_BYTES];
        void *aligned;
        int64_t too;
    } zeros;

    for (size_t i = 0; i < config->n_parts; i++)
        if (config->parts[i].part == part)
            return config->parts[i].values;
    return &zeros;
}

/* Where the value of a row is. */
static const void *config_kind_place_of(const struct config *config, const struct config_key *key)
{
    for (size_t i = 0; parts[i]; i++) {
        size_t len = strlen(parts[i]->name);
        if (act_starts_with(key->path, parts[i]->name) && key->path[len] == '.')
            return (const char *)config_part(config, parts[i]) + key->offset;
    }
    return (const char *)config + key->offset;
}

const char *config_text(const struct config *config, const char *name)
{
    const struct config_key *key = config_cluster_keys;

    while (key->path && strcmp(key->path, name) != 0)
        key++;
    if (!key->path || key->offset == CONFIG_NOWHERE || (key->type != CONFIG_TEXT && key->type != CONFIG_CHOICE))
        return NULL;
    return *(char *const *)config_kind_place_of(config, key);
}

void config_make_absolute(const struct config *config, char **path)
{
    char *named = *path;

    if (!named)
        return;
    *path = config_absolute(named, config->project_root);
    free(named);
}

void config_read_parts(struct config *c, struct config_findings *f)
{
    for (size_t i = 0; parts[i]; i++) {
        const char *name = parts[i]->name;
        struct config_part_values values = {parts[i], act_calloc(1, parts[i]->size)};
        config_read_keys(parts[i]->keys, name, yaml_get(c->values->tree, name), values.values, f);
        ACT_PUSH(c->parts, c->n_parts, values);
    }
}

void config_release_parts(struct config *c)
{
    for (size_t i = 0; i < c->n_parts; i++) {
        config_release_keys(c->parts[i].part->keys, c->parts[i].part->name, c->parts[i].values);
        free(c->parts[i].values);
    }
    free(c->parts);
}
