/* yaml.c - values in a tree, and what a scalar means. yaml_read.c makes trees of text.
 *
 * All values of a document share its file name and count who has it, so that values can be moved between trees.
 */
#include "codec/yaml_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct name {
    size_t refs;
    char text[];
};

/* -- values -- */

static struct name *yaml_name_of(char *text)
{
    return (struct name *)(void *)(text - offsetof(struct name, text));
}

static char *name_new(const char *text)
{
    size_t size = strlen(text) + 1;
    struct name *name = act_alloc(sizeof(*name) + size);

    name->refs = 1;
    memcpy(name->text, text, size);
    return name->text;
}

static char *name_ref(char *text)
{
    yaml_name_of(text)->refs++;
    return text;
}

static void name_unref(char *text)
{
    struct name *name = yaml_name_of(text);

    if (--name->refs == 0)
        free(name);
}

/* Makes a value, which takes over a reference to the shared name. */
static struct yaml *value_new(enum yaml_kind kind, char *shared_name)
{
    struct yaml *value = act_calloc(1, sizeof(*value));

    value->kind = kind;
    value->file = shared_name;
    return value;
}

void yaml_tree_free(struct yaml *value)
{
    if (!value)
        return;
    for (size_t i = 0; i < value->n; i++)
        yaml_tree_free(value->items[i]);
    name_unref(value->file);
    act_wipe(&value->text);
    free(value->items);
    free(value->key);
    free(value);
}

struct yaml *yaml_new_map(const char *name)
{
    return value_new(YAML_MAP, name_new(name));
}

struct yaml *yaml_new_beside(const struct yaml *other, enum yaml_kind kind)
{
    return value_new(kind, name_ref(other->file));
}

struct yaml *yaml_new_word(const char *name, const char *text)
{
    struct yaml *value = value_new(YAML_SCALAR, name_new(name));

    value->text = act_strdup(text);
    return value;
}

struct yaml *yaml_new_text(const char *name, const char *text)
{
    struct yaml *value = yaml_new_word(name, text);

    value->quoted = true;
    return value;
}

void yaml_push(struct yaml *list, struct yaml *value)
{
    ACT_PUSH(list->items, list->n, value);
}

static struct yaml **yaml_find(const struct yaml *map, const char *key)
{
    for (size_t i = 0; map && map->kind == YAML_MAP && i < map->n; i++)
        if (strcmp(map->items[i]->key, key) == 0)
            return &map->items[i];
    return NULL;
}

struct yaml *yaml_get(const struct yaml *map, const char *key)
{
    struct yaml **slot = yaml_find(map, key);

    return slot ? *slot : NULL;
}

void yaml_put(struct yaml *map, const char *key, struct yaml *value)
{
    struct yaml **slot = yaml_find(map, key);
    char *name = act_strdup(key);

    free(value->key);
    value->key = name;
    if (!slot) {
        yaml_push(map, value);
        return;
    }
    yaml_tree_free(*slot);
    *slot = value;
}

void yaml_merge(struct yaml *base, struct yaml *over)
{
    for (size_t i = 0; i < over->n; i++) {
        struct yaml *value = over->items[i];
        struct yaml *old = yaml_get(base, value->key);
        if (old && old->kind == YAML_MAP && value->kind == YAML_MAP)
            yaml_merge(old, value);
        else
            yaml_put(base, value->key, value);
    }
    over->n = 0;
    yaml_tree_free(over);
}

int yaml_error(const struct yaml *at, struct act_error *err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    ACT_AUTOFREE char *what = act_vsprintf(fmt, ap);
    va_end(ap);
    return at->line ? act_error_set(err, ACT_CONFIG, "%s:%d:%d: %s", at->file, at->line, at->column, what)
                    : act_error_set(err, ACT_CONFIG, "%s: %s", at->file, what);
}

/* -- what a scalar means -- */

static bool yaml_is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

static bool is_plain_scalar(const struct yaml *value)
{
    return value && value->kind == YAML_SCALAR && !value->quoted;
}

bool yaml_is_null_word(const struct yaml *value)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL", NULL};

    return is_plain_scalar(value) && yaml_is_one_of(value->text, words);
}

bool yaml_as_bool(const struct yaml *value, bool *out)
{
    static const char *const yes[] = {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", NULL};
    static const char *const no[] = {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", NULL};

    if (!is_plain_scalar(value))
        return false;
    *out = yaml_is_one_of(value->text, yes);
    return *out || yaml_is_one_of(value->text, no);
}

bool yaml_as_int(const struct yaml *value, int64_t *out)
{
    static const struct {
        const char *prefix, *digits;
        int base;
    } forms[] = {
        {"0x", "0123456789abcdefABCDEF", 16},
        {"0b", "01", 2},
        {"0", "01234567", 8},
        {"", "0123456789", 10},
    };
    char digits[80];
    size_t n = 0, f = 0;

    if (!is_plain_scalar(value) || strlen(value->text) >= sizeof(digits))
        return false;
    const char *c = value->text + (*value->text == '+' || *value->text == '-');
    if (*c < '0' || *c > '9')
        return false;
    if (*value->text == '-')
        digits[n++] = '-';
    while (!act_starts_with(c, forms[f].prefix) || (f == 2 && c[1] == '\0'))
        f++;
    for (c += strlen(forms[f].prefix); *c; c++)
        if (*c != '_' && !strchr(forms[f].digits, *c))
            return false;
        else if (*c != '_')
            digits[n++] = *c;
    digits[n] = '\0';
    if (n == 0 || digits[n - 1] == '-')
        return false;
    errno = 0;
    *out = strtoll(digits, NULL, forms[f].base);
    return errno == 0;
}

bool yaml_is_text(const struct yaml *value)
{
    bool truth;
    int64_t number;

    return !yaml_is_null_word(value) && !yaml_as_bool(value, &truth) && !yaml_as_int(value, &number);
}

static bool yaml_has_members_of(const struct yaml *a, const struct yaml *b)
{
    for (size_t i = 0; i < a->n; i++) {
        const struct yaml *other = a->kind == YAML_MAP ? yaml_get(b, a->items[i]->key) : b->items[i];
        if (!other || !yaml_is_same(a->items[i], other))
            return false;
    }
    return true;
}

bool yaml_is_same(const struct yaml *a, const struct yaml *b)
{
    if (a->kind != b->kind || a->n != b->n)
        return false;
    if (yaml_is_null_word(a) && yaml_is_null_word(b))
        return true;
    return a->kind == YAML_SCALAR ? strcmp(a->text, b->text) == 0 && yaml_is_text(a) == yaml_is_text(b)
                                  : yaml_has_members_of(a, b);
}
