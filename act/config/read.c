/* read.c - values of the tree to members of a struct, as the tables say. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "codec/json.h"
#include "config/config_internal.h"

enum { MAX_INT = 1000000000 };

/* ---- findings */

ACT_PRINTF(4, 0)
static void add_finding(struct config_findings *f, bool is_problem, const struct yaml *at, const char *fmt, va_list ap)
{
    struct act_error err;
    ACT_AUTOFREE char *text = act_vsprintf(fmt, ap);

    if (at)
        yaml_error(at, &err, "%s", text);
    else
        act_error_set(&err, ACT_CONFIG, "%s", text);
    ACT_PUSH(f->v, f->n,
             (struct config_finding){.is_problem = is_problem,
                                     .file = at ? act_strdup(at->file) : NULL,
                                     .line = at ? at->line : 0,
                                     .column = at ? at->column : 0,
                                     .text = act_strdup(act_error_text(&err))});
}

void config_problem(struct config_findings *f, const struct yaml *at, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add_finding(f, true, at, fmt, ap);
    va_end(ap);
}

void config_doubt(struct config_findings *f, const struct yaml *at, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add_finding(f, false, at, fmt, ap);
    va_end(ap);
}

void config_problem_text(struct config_findings *f, const char *text)
{
    ACT_PUSH(f->v, f->n, (struct config_finding){.is_problem = true, .text = act_strdup(text)});
}

void config_findings_release(struct config_findings *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->v[i].file);
        free(f->v[i].text);
    }
    free(f->v);
    *f = (struct config_findings){0};
}

/* Tells whether a finding of the same file, or none of either, comes after the other one. */
static bool finding_is_after(const struct config_finding *a, const struct config_finding *b)
{
    return act_streq(a->file, b->file) && (a->line != b->line ? a->line > b->line : a->column > b->column);
}

/* Tells where the findings of a file begin among n that are sorted; n: there are none. */
static size_t findings_of_file(const struct config_finding *v, size_t n, const char *file)
{
    size_t i = 0;

    while (i < n && !(file ? act_streq(v[i].file, file) : !v[i].file))
        i++;
    return i;
}

void config_findings_sort(struct config_findings *f)
{
    for (size_t i = 1; i < f->n; i++) {
        struct config_finding moved = f->v[i];
        size_t to = findings_of_file(f->v, i, moved.file);
        while (to < i && (moved.file ? act_streq(f->v[to].file, moved.file) : !f->v[to].file) &&
               !finding_is_after(&f->v[to], &moved))
            to++;
        memmove(f->v + to + 1, f->v + to, (i - to) * sizeof(*f->v));
        f->v[to] = moved;
    }
}

static bool is_faulty_at(const struct yaml *at, const struct config_findings *f)
{
    for (size_t i = 0; at && i < f->n; i++)
        if (f->v[i].is_problem && act_streq(f->v[i].file, at->file) && f->v[i].line == at->line &&
            f->v[i].column == at->column)
            return true;
    return false;
}

bool config_is_faulty(const struct config *config, const char *key, const struct config_findings *f)
{
    size_t n = 0;

    do {
        n += strcspn(key + n, ".");
        ACT_AUTOFREE char *outer = act_strndup(key, n);
        if (is_faulty_at(config_value(config, outer), f))
            return true;
    } while (key[n++] == '.');
    return false;
}

size_t config_count_problems(const struct config_findings *f, const char **out_first)
{
    size_t n = 0;

    *out_first = NULL;
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].is_problem && n++ == 0)
            *out_first = f->v[i].text;
    return n;
}

void config_warn(const struct config_findings *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (!f->v[i].is_problem)
            act_warn("%s", f->v[i].text);
}

/* ---- values */

/* Returns a value as messages show it: never a secret. New string. */
static char *config_read_shown(const struct config_key *key, const struct yaml *value)
{
    if (value->kind != YAML_SCALAR)
        return act_strdup(value->kind == YAML_MAP ? "a map" : "a list");
    return key->secret ? act_strdup("what is there") : act_sprintf("'%s'", value->text);
}

static void wrong_type(struct config_findings *f, const struct config_key *key, const struct yaml *value,
                       const char *wanted)
{
    ACT_AUTOFREE char *text = config_read_shown(key, value);

    config_problem(f, value, "'%s' must be %s, not %s", value->key ? value->key : key->path, wanted, text);
}

static int64_t most(const struct config_key *key)
{
    return key->max ? key->max : MAX_INT;
}

bool config_read_int(const struct config_key *key, const struct yaml *value, int64_t *out)
{
    if (!value || value->kind != YAML_SCALAR)
        return false;
    bool ok = value->quoted ? act_int_from_text(value->text, out) : yaml_as_int(value, out);
    return ok && *out >= key->min && *out <= most(key);
}

static void put_bool(const struct config_key *key, const struct yaml *value, bool *out, struct config_findings *f)
{
    int64_t number;

    if (yaml_is_null(value))
        *out = key->fallback && strcmp(key->fallback, "true") == 0;
    else if (yaml_as_int(value, &number) && (number == 0 || number == 1))
        *out = number;
    else if (!yaml_as_bool(value, out))
        wrong_type(f, key, value, "true or false");
}

static void put_int(const struct config_key *key, const struct yaml *value, int64_t *out, struct config_findings *f)
{
    char wanted[80];

    *out = -1;
    if (yaml_is_null(value)) {
        if (key->fallback)
            act_int_from_text(key->fallback, out);
    } else if (!config_read_int(key, value, out)) {
        snprintf(wanted, sizeof(wanted), "a whole number from %d to %d", (int)key->min, (int)most(key));
        wrong_type(f, key, value, wanted);
    }
}

static void read_refuse_form(const struct config_key *key, const struct yaml *value, struct config_findings *f)
{
    ACT_AUTOFREE char *readings = key->form->readings ? key->form->readings(value->text) : NULL;

    config_problem(f, value, "'%s' must be %s, not '%s'%s%s", key->path, key->form->wanted, value->text,
                   readings ? ", which may mean " : "", readings ? readings : "");
}

static void config_read_put_text(const struct config_key *key, const struct yaml *value, char **out,
                                 struct config_findings *f)
{
    bool is_text = !yaml_is_null(value) && value->kind == YAML_SCALAR;

    if (!is_text && !yaml_is_null(value))
        wrong_type(f, key, value, "text");
    *out = act_strdup(is_text ? value->text : key->fallback);
    if (is_text && key->form && !key->form->fits(value->text))
        read_refuse_form(key, value, f);
}

static struct act_strv split_choices(const char *choices)
{
    struct act_strv list = {0};

    for (size_t n; *choices; choices += n + (choices[n] == '|')) {
        n = strcspn(choices, "|");
        act_strv_take(&list, act_strndup(choices, n));
    }
    return list;
}

static void put_choice(const struct config_key *key, const struct yaml *value, char **out, struct config_findings *f)
{
    config_read_put_text(key, value, out, f);
    if (!*out)
        return;
    ACT_AUTO(act_strv) choices = split_choices(key->choices);
    if (!act_strv_has(&choices, *out)) {
        const char *near = act_nearest(*out, (const char *const *)choices.v);
        struct act_buf list = {0};
        for (size_t i = 0; i < choices.n; i++)
            act_buf_addf(&list, "%s%s", i ? ", " : "", choices.v[i]);
        config_problem(f, value, "unknown %s '%s'; it is one of %s%s%s%s", value->key, *out, list.data,
                       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
        act_buf_release(&list);
        free(*out);
        *out = act_strdup(key->fallback);
    }
}

static void config_read_put_list(const struct config_key *key, const struct yaml *value, struct act_strv *out,
                                 struct config_findings *f)
{
    bool numbers = key->type == CONFIG_INTS;
    int64_t number;

    if (yaml_is_null(value))
        return;
    if (value->kind != YAML_LIST) {
        const char *what = numbers ? "whole numbers" : "texts";
        ACT_AUTOFREE char *list = value->kind == YAML_SCALAR
                                      ? act_sprintf("a list of %s, such as [%s]", what, value->text)
                                      : act_sprintf("a list of %s", what);
        wrong_type(f, key, value, list);
        return;
    }
    for (size_t i = 0; i < value->n; i++) {
        const struct yaml *item = value->items[i];
        if (numbers && config_read_int(key, item, &number))
            act_strv_pushf(out, "%lld", (long long)number);
        else if (!numbers && item->kind == YAML_SCALAR)
            act_strv_push(out, item->text);
        else
            config_problem(f, item, "'%s' must be a list of %s", key->path,
                           numbers ? "whole numbers above 0" : "texts");
    }
}

/* A variable without a value is set to nothing; one that is null or ~ is left out, so that -p can remove it. */
static void put_env(const struct config_key *key, const struct yaml *value, struct act_strv *out,
                    struct config_findings *f)
{
    if (yaml_is_null(value))
        return;
    if (value->kind != YAML_MAP) {
        wrong_type(f, key, value, "a map of names and values");
        return;
    }
    for (size_t i = 0; i < value->n; i++) {
        const struct yaml *item = value->items[i];
        if (item->kind != YAML_SCALAR)
            config_problem(f, item, "the environment variable '%s' must be text", item->key);
        else if (!*item->key || strpbrk(item->key, "= \t\r\n"))
            config_problem(f, item, "'%s' cannot be the name of an environment variable", item->key);
        else if (!*item->text || !yaml_is_null(item))
            act_strv_pushf(out, "%s=%s", item->key, item->text);
    }
}

/* Returns a number or a truth where YAML reads one without quotes, and text for everything else. */
static json_t *scalar_json(const struct yaml *value)
{
    int64_t number;
    bool truth;

    if (value->quoted)
        return codec_json_bytes_new(value->text);
    if (yaml_is_null(value))
        return json_null();
    if (yaml_as_int(value, &number))
        return json_integer(number);
    return yaml_as_bool(value, &truth) ? json_boolean(truth) : codec_json_bytes_new(value->text);
}

static json_t *tree_json(const struct yaml *value)
{
    if (value->kind == YAML_SCALAR)
        return scalar_json(value);
    json_t *out = value->kind == YAML_MAP ? json_object() : json_array();
    for (size_t i = 0; i < value->n; i++) {
        if (value->kind == YAML_MAP)
            json_object_set_new(out, value->items[i]->key, tree_json(value->items[i]));
        else
            json_array_append_new(out, tree_json(value->items[i]));
    }
    return out;
}

static void put_object(const struct config_key *key, const struct yaml *value, json_t **out, struct config_findings *f)
{
    if (yaml_is_null(value))
        return;
    if (value->kind == YAML_MAP)
        *out = tree_json(value);
    else
        wrong_type(f, key, value, "a map");
}

static void put_objects(const struct config_key *key, const struct yaml *value, json_t **out, struct config_findings *f)
{
    bool fits = value && value->kind == YAML_LIST;

    if (yaml_is_null(value))
        return;
    for (size_t i = 0; fits && i < value->n; i++)
        fits = value->items[i]->kind == YAML_MAP;
    if (fits)
        *out = tree_json(value);
    else
        config_problem(f, value, "'%s' must be a list of maps", key->path);
}

static void config_read_put_value(const struct config_key *key, const struct yaml *value, void *at,
                                  struct config_findings *f)
{
    switch (key->type) {
    case CONFIG_BOOL:
        put_bool(key, value, at, f);
        break;
    case CONFIG_INT:
        put_int(key, value, at, f);
        break;
    case CONFIG_TEXT:
        config_read_put_text(key, value, at, f);
        break;
    case CONFIG_CHOICE:
        put_choice(key, value, at, f);
        break;
    case CONFIG_TEXTS:
    case CONFIG_INTS:
        config_read_put_list(key, value, at, f);
        break;
    case CONFIG_ENV:
        put_env(key, value, at, f);
        break;
    case CONFIG_OBJECT:
        put_object(key, value, at, f);
        break;
    case CONFIG_OBJECTS:
        put_objects(key, value, at, f);
        break;
    case CONFIG_MAP:
    case CONFIG_MAP_FILE:
    case CONFIG_MAP_INT:
    case CONFIG_MAP_NONE:
    case CONFIG_ANY:
        break;
    }
}

/* A key that the struct does not hold: only its type is checked. */
static void check_only(const struct config_key *key, const struct yaml *value, struct config_findings *f)
{
    bool is_map = value && value->kind == YAML_MAP;

    if (yaml_is_null(value) || key->type == CONFIG_ANY)
        return;
    if (key->type == CONFIG_MAP && !is_map)
        wrong_type(f, key, value, "a map");
    if (key->type == CONFIG_MAP_FILE && value->kind == YAML_LIST)
        wrong_type(f, key, value, "a map or the name of a file");
    if (key->type == CONFIG_MAP_INT && !is_map)
        wrong_type(f, key, value, "a whole number from 0 to 100 or a map, {times: 3, on: [ecc]}");
    if (key->type == CONFIG_MAP_NONE && !is_map)
        wrong_type(f, key, value, "none or a map, {system_packages: true}");
    if (key->type == CONFIG_TEXT && value->kind != YAML_SCALAR)
        wrong_type(f, key, value, "text");
    if (key->type == CONFIG_BOOL)
        put_bool(key, value, &(bool){false}, f);
}

void config_read_keys(const struct config_key *keys, const char *map, const struct yaml *values, void *base,
                      struct config_findings *f)
{
    for (; keys->path; keys++) {
        const char *member = config_key_member(keys, map);
        const struct yaml *value = member ? yaml_get(values, member) : NULL;
        if (member && keys->offset == CONFIG_NOWHERE)
            check_only(keys, value, f);
        else if (member)
            config_read_put_value(keys, value, (char *)base + keys->offset, f);
    }
}

static const char *nearest_key(const struct config_key *keys, const char *map, const char *key)
{
    ACT_AUTO(act_strv) known = {0};

    for (const struct config_key *k = keys; k->path; k++)
        if (config_key_member(k, map) && k->type != CONFIG_ANY)
            act_strv_push(&known, config_key_member(k, map));
    const char *near = act_nearest(key, (const char *const *)known.v);
    return near ? config_key_member(config_key_find(keys, map, near), map) : NULL;
}

const struct yaml *config_misspelt_platform(const struct yaml *tree)
{
    for (size_t i = 0; yaml_is_null(yaml_get(tree, "platform")) && i < tree->n; i++) {
        const char *key = tree->items[i]->key;
        if (!config_key_find(config_cluster_keys, "", key) &&
            act_streq(nearest_key(config_cluster_keys, "", key), "platform"))
            return tree->items[i];
    }
    return NULL;
}

/* The platform is not guessed: all else would be judged, and carried out, as of the default one. */
void config_warn_unknown(const struct config_key *keys, const char *map, const struct yaml *values,
                         struct config_findings *f)
{
    for (size_t i = 0; values && values->kind == YAML_MAP && i < values->n; i++) {
        const struct yaml *item = values->items[i];
        if (config_key_find(keys, map, item->key))
            continue;
        const char *near = nearest_key(keys, map, item->key);
        bool is_platform = keys == config_cluster_keys && !*map && item == config_misspelt_platform(values);
        (is_platform ? config_problem : config_doubt)(f, item, "unknown key '%s'%s%s%s", item->key,
                                                      near ? "; did you mean '" : "", near ? near : "",
                                                      near ? "'?" : "");
    }
}

void config_warn_all_unknown(const struct yaml *tree, struct config_findings *f)
{
    config_warn_unknown(config_cluster_keys, "", tree, f);
    for (const char *const *map = config_general_maps; *map; map++)
        config_warn_unknown(config_cluster_keys, *map, yaml_get(tree, *map), f);
    for (const struct config_part *const *part = config_parts(); *part; part++)
        config_warn_unknown(config_cluster_keys, (*part)->name, yaml_get(tree, (*part)->name), f);
}

void config_release_keys(const struct config_key *keys, const char *map, void *base)
{
    for (; keys->path; keys++) {
        if (!act_starts_with(keys->path, map) || keys->offset == CONFIG_NOWHERE)
            continue;
        if (!*map && strchr(keys->path, '*'))
            continue;
        void *at = (char *)base + keys->offset;
        if (keys->type == CONFIG_TEXT || keys->type == CONFIG_CHOICE)
            act_wipe(at);
        else if (keys->type == CONFIG_TEXTS || keys->type == CONFIG_INTS || keys->type == CONFIG_ENV)
            act_strv_release(at);
        else if (keys->type == CONFIG_OBJECT || keys->type == CONFIG_OBJECTS)
            json_decref(*(json_t **)at);
    }
}

static const char *find_secret(const struct config_key *keys, const struct yaml *tree)
{
    for (; keys->path; keys++) {
        const struct yaml *value = keys->secret ? config_tree_value(tree, keys->path) : NULL;
        if (value && value->kind == YAML_SCALAR && *value->text && !yaml_is_null(value))
            return keys->path;
    }
    return NULL;
}

const char *config_find_secret(const struct yaml *tree)
{
    const char *key = find_secret(config_account_keys, tree);

    return key ? key : find_secret(config_cluster_keys, tree);
}

static bool ends_secret(const struct config_key *keys, const char *name)
{
    for (; keys->path; keys++) {
        const char *dot = strrchr(keys->path, '.');
        if (keys->secret && strcmp(dot ? dot + 1 : keys->path, name) == 0)
            return true;
    }
    return false;
}

bool config_is_secret(const char *name)
{
    return ends_secret(config_account_keys, name) || ends_secret(config_cluster_keys, name);
}

bool config_is_key(const char *key)
{
    return config_key_find(config_account_keys, "", key) || config_key_find(config_cluster_keys, "", key);
}
