/* yaml_edit.c - finds the places of values in a text, and changes the text there. */
#include "codec/yaml_edit.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "base/text.h"
#include "codec/json.h"

enum { STEP = 2 };

/* A value and where it stands: bytes of the text. */
struct edit_node {
    yaml_event_type_t
        type;            /* YAML_SCALAR_EVENT, YAML_ALIAS_EVENT, YAML_SEQUENCE_START_EVENT, YAML_MAPPING_START_EVENT */
    bool flow;           /* {...} or [...] */
    bool null;           /* a scalar that says nothing */
    char *text;          /* of a scalar */
    size_t start, end;   /* of a collection in block form: the end of its last value */
    struct edit_node *v; /* of a map: keys and values in turn */
    size_t n;
};

struct edit_reader {
    yaml_parser_t parser;
    yaml_event_t event;
    const char *text;
    size_t chars, bytes; /* the last place that was looked up */
};

/* ---- places ---- */

static size_t beginning(const char *text)
{
    return act_starts_with(text, "\xef\xbb\xbf") ? strlen("\xef\xbb\xbf") : 0;
}

/* libyaml counts characters, after the byte order mark. */
static size_t byte_of(struct edit_reader *r, yaml_mark_t mark)
{
    if (mark.index < r->chars) {
        r->chars = 0;
        r->bytes = beginning(r->text);
    }
    for (; r->chars < mark.index && r->text[r->bytes]; r->chars++) {
        r->bytes++;
        while (((unsigned char)r->text[r->bytes] & 0xc0) == 0x80)
            r->bytes++;
    }
    return r->bytes;
}

static void edit_node_release(struct edit_node *node)
{
    for (size_t i = 0; i < node->n; i++)
        edit_node_release(&node->v[i]);
    act_wipe(&node->text);
    free(node->v);
}

static bool yaml_edit_next(struct edit_reader *r)
{
    yaml_event_delete(&r->event);
    return yaml_parser_parse(&r->parser, &r->event);
}

static bool is_end(yaml_event_type_t type)
{
    return type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT;
}

static bool is_flow(const yaml_event_t *event)
{
    return event->type == YAML_SEQUENCE_START_EVENT
               ? event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE
               : event->type == YAML_MAPPING_START_EVENT && event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
}

static bool edit_says_nothing(const yaml_event_t *event)
{
    struct yaml scalar = {.text = (char *)event->data.scalar.value,
                          .quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE || event->data.scalar.tag};

    return yaml_is_null(&scalar);
}

/* Reads the value that begins with the event at hand. */
static bool edit_read_node(struct edit_reader *r, struct edit_node *out)
{
    bool ok = true;

    *out = (struct edit_node){.type = r->event.type,
                              .flow = is_flow(&r->event),
                              .start = byte_of(r, r->event.start_mark),
                              .end = byte_of(r, r->event.end_mark)};
    if (out->type == YAML_SCALAR_EVENT) {
        out->text = act_strdup((const char *)r->event.data.scalar.value);
        out->null = edit_says_nothing(&r->event);
    }
    if (out->type != YAML_SEQUENCE_START_EVENT && out->type != YAML_MAPPING_START_EVENT)
        return true;
    while ((ok = yaml_edit_next(r)) && !is_end(r->event.type)) {
        struct edit_node item;
        ok = edit_read_node(r, &item);
        ACT_PUSH(out->v, out->n, item);
        out->end = item.end > out->end ? item.end : out->end;
        if (!ok)
            break;
    }
    if (ok && out->flow)
        out->end = byte_of(r, r->event.end_mark);
    return ok;
}

/* Reads the document of a text that yaml_parse() has taken. A document without a value is a scalar that says nothing,
 * at its end. */
static bool read_places(const char *text, struct edit_node *out)
{
    struct edit_reader r = {.text = text, .bytes = beginning(text)};
    bool ok = yaml_parser_initialize(&r.parser);

    *out = (struct edit_node){0};
    if (!ok)
        return false;
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text + r.bytes, strlen(text) - r.bytes);
    ok = yaml_edit_next(&r); /* the start of the stream */
    ok = ok && yaml_edit_next(&r);
    if (ok && r.event.type == YAML_DOCUMENT_START_EVENT)
        ok = yaml_edit_next(&r) && edit_read_node(&r, out);
    else
        *out = (struct edit_node){.type = YAML_SCALAR_EVENT, .null = true, .start = strlen(text), .end = strlen(text)};
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    return ok;
}

/* Returns the index of a key in a map, or the number of its nodes if it is not there. */
static size_t find_key(const struct edit_node *map, const char *key)
{
    size_t i = 0;

    while (i < map->n && !(map->v[i].type == YAML_SCALAR_EVENT && strcmp(map->v[i].text, key) == 0))
        i += 2;
    return i;
}

/* ---- writing values ---- */

/* Tells whether YAML, in one version or another, takes the word for something else than text. */
static bool is_word(const char *text)
{
    static const char *const words[] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return false;
}

/* Tells whether a text can stand without quotes anywhere, and means nothing else then. */
static bool edit_is_plain(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_/";
    static const char more[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./@+-";
    const char *start = act_starts_with(text, "~/") ? text + 1 : text;

    return *start && strchr(letters, *start) && strspn(start, more) == strlen(start) && !is_word(text);
}

static bool is_fraction(const char *text)
{
    char *end = NULL;

    return strspn(text, "0123456789.eE+-") == strlen(text) && strtod(text, &end) != 0 && !*end;
}

/* Tells whether a scalar without quotes is what it looks like: a number, true, null. */
static bool edit_is_bare(const struct yaml *value)
{
    return !value->quoted && *value->text && (!yaml_is_text(value) || is_fraction(value->text));
}

/* Returns the bytes of the character at text if YAML takes it for the end of a line or refuses it, and JSON takes it as
 * it is; else 0. */
static size_t special_len(const char *text, unsigned *out_code)
{
    static const struct {
        const char *bytes;
        unsigned code;
    } few[] = {{"\x7f", 0x7f},           {"\xe2\x80\xa8", 0x2028}, {"\xe2\x80\xa9", 0x2029},
               {"\xef\xbb\xbf", 0xfeff}, {"\xef\xbf\xbe", 0xfffe}, {"\xef\xbf\xbf", 0xffff}};
    unsigned char second = *text ? (unsigned char)text[1] : 0;

    *out_code = second;
    if (*text == '\xc2' && second < 0xa0) /* U+0080 to U+009F */
        return 2;
    for (size_t i = 0; i < sizeof(few) / sizeof(few[0]); i++) {
        *out_code = few[i].code;
        if (act_starts_with(text, few[i].bytes))
            return strlen(few[i].bytes);
    }
    return 0;
}

bool yaml_has_special(const char *text)
{
    unsigned code;

    while (*text && special_len(text, &code) == 0)
        text++;
    return *text;
}

static bool edit_put_text(struct act_buf *out, const char *text)
{
    json_t *string = json_string(text);
    ACT_AUTOWIPE char *quoted = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    unsigned code;

    for (const char *at = quoted; at && *at;) {
        size_t n = special_len(at, &code);
        if (n > 0)
            act_buf_addf(out, "\\u%04x", code);
        else
            act_buf_addc(out, *at);
        at += n > 0 ? n : 1;
    }
    json_decref(string);
    return quoted != NULL;
}

static bool edit_put_scalar(struct act_buf *out, const struct yaml *value)
{
    if (!value->quoted && !*value->text)
        act_buf_adds(out, "null");
    else if (edit_is_bare(value) || edit_is_plain(value->text))
        act_buf_adds(out, value->text);
    else
        return edit_put_text(out, value->text);
    return true;
}

static bool edit_put_key(struct act_buf *out, const char *key)
{
    bool plain = edit_is_plain(key);

    if (plain)
        act_buf_adds(out, key);
    return plain || edit_put_text(out, key);
}

static bool edit_put_value(struct act_buf *out, const struct yaml *value)
{
    bool map = value->kind == YAML_MAP, ok = true;

    if (value->kind == YAML_SCALAR)
        return edit_put_scalar(out, value);
    act_buf_addc(out, map ? '{' : '[');
    for (size_t i = 0; i < value->n && ok; i++) {
        act_buf_adds(out, i ? ", " : "");
        ok = !map || edit_put_key(out, value->items[i]->key);
        act_buf_adds(out, map ? ": " : "");
        ok = ok && edit_put_value(out, value->items[i]);
    }
    act_buf_addc(out, map ? '}' : ']');
    return ok;
}

char *yaml_flow_text(const struct yaml *value)
{
    ACT_AUTO(act_buf) out = {0};

    return edit_put_value(&out, value) ? act_buf_steal(&out) : NULL;
}

/* ---- the change ---- */

struct edit {
    const char *text, *name, *path;
    struct act_strv keys;
    const char *key; /* the last name of the path */
    const char *newline;
    size_t from, to; /* the bytes that are replaced */
    struct act_buf by;
};

static void edit_release(struct edit *e)
{
    act_strv_release(&e->keys);
    act_buf_release(&e->by);
}

static int edit_refuse(const struct edit *e, const char *why, struct act_error *err)
{
    return act_error_set(err, ACT_CONFIG, "%s: cannot change '%s' here, %s: edit the file", e->name, e->path, why);
}

static int edit_begin(struct edit *e, struct act_error *err)
{
    ACT_AUTOFREE char *rest = act_strdup(e->path);
    const char *line = strchr(e->text, '\n');

    e->newline = line && line > e->text && line[-1] == '\r' ? "\r\n" : "\n";
    for (char *at = rest, *key; (key = strsep(&at, "."));)
        act_strv_push(&e->keys, key);
    bool whole = e->keys.n > 0;
    for (size_t i = 0; i < e->keys.n; e->key = e->keys.v[i], i++)
        whole = whole && *e->keys.v[i];
    if (!whole)
        return act_error_set(err, ACT_USAGE, "'%s' is not a key: a key is like 'num_gpu' or 'docker.image'", e->path);
    return 0;
}

/* Writes "a:\n  b: value" from the key at this depth on, in lines with that indentation. */
static void edit_put_lines(struct edit *e, size_t depth, const char *indent, size_t indent_len, const char *value)
{
    for (size_t i = depth; i < e->keys.n; i++) {
        act_buf_add(&e->by, indent, indent_len);
        act_buf_addf(&e->by, "%*s", (int)((i - depth) * STEP), "");
        edit_put_key(&e->by, e->keys.v[i]);
        act_buf_addf(&e->by, ":%s", i + 1 < e->keys.n ? e->newline : " ");
    }
    act_buf_adds(&e->by, value);
}

/* Writes "a: {b: value}" from the key at this depth on. */
static void put_members(struct edit *e, size_t depth, const char *value)
{
    for (size_t i = depth; i < e->keys.n; i++) {
        act_buf_adds(&e->by, i > depth ? "{" : "");
        edit_put_key(&e->by, e->keys.v[i]);
        act_buf_adds(&e->by, ": ");
    }
    act_buf_adds(&e->by, value);
    for (size_t i = depth; i + 1 < e->keys.n; i++)
        act_buf_addc(&e->by, '}');
}

static size_t edit_line_of(const char *text, size_t at)
{
    while (at > beginning(text) && text[at - 1] != '\n')
        at--;
    return at;
}

static size_t end_of_line(const char *text, size_t at)
{
    return at + strcspn(text + at, "\r\n");
}

static size_t edit_next_line(const char *text, size_t at)
{
    at = end_of_line(text, at);
    at += text[at] == '\r';
    return at + (text[at] == '\n');
}

/* Returns the column of the least comment that belongs to the value of a key, whatever the value's own is. */
static size_t column_below(const struct edit *e, const struct edit_node *key)
{
    return key->start - edit_line_of(e->text, key->start) + 1;
}

/* Returns where the lines end that are comments from this column on; at: where a line begins. */
static size_t behind_comments(const char *text, size_t at, size_t column)
{
    size_t end = at;

    for (size_t from; text[at]; at = edit_next_line(text, at)) {
        from = at + strspn(text + at, " ");
        if (text[from] == '#' && from - at >= column)
            end = edit_next_line(text, at);
        else if (!strchr("\r\n", text[from]))
            break;
    }
    return end;
}

/* Inserts a line behind the last value of a map in block form, and the comments that stand in the map from this column
 * on. */
static void insert_line(struct edit *e, const struct edit_node *map, size_t depth, size_t column, const char *value)
{
    size_t line = edit_line_of(e->text, map->v[0].start), indent = map->v[0].start - line, at = map->end;

    if (at == 0 || e->text[at - 1] != '\n') /* no text in lines of its own */
        at = edit_next_line(e->text, at);
    e->from = e->to = behind_comments(e->text, at, column);
    act_buf_adds(&e->by, e->text[e->to - 1] == '\n' ? "" : e->newline);
    edit_put_lines(e, depth, e->text + line, indent, value);
    act_buf_adds(&e->by, e->newline);
}

static void insert_member(struct edit *e, const struct edit_node *map, size_t depth, const char *value)
{
    e->from = e->to = map->n ? map->v[map->n - 1].end : map->end - 1;
    act_buf_adds(&e->by, map->n ? ", " : "");
    put_members(e, depth, value);
}

/* Appends the value to a document that says nothing yet. */
static void edit_append(struct edit *e, const char *value)
{
    size_t len = strlen(e->text);

    e->from = e->to = len;
    act_buf_adds(&e->by, len > beginning(e->text) && e->text[len - 1] != '\n' ? e->newline : "");
    edit_put_lines(e, 0, "", 0, value);
    act_buf_adds(&e->by, e->newline);
}

static bool has_comment(const char *text, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (text[i] == '#' && i > 0 && strchr(" \t\n", text[i - 1]))
            return true;
    return false;
}

/* Returns where the value of a key may begin: behind the ':'. */
static size_t behind_colon(const char *text, const struct edit_node *key)
{
    size_t at = key->end + strspn(text + key->end, " ");

    return text[at] == ':' ? at + 1 : key->end;
}

static int replace_value(struct edit *e, const struct edit_node *key, const struct edit_node *old, const char *value,
                         struct act_error *err)
{
    bool block = old->n > 0 && !old->flow;
    size_t colon = behind_colon(e->text, key);

    if (old->n > 0 && has_comment(e->text, colon, old->end))
        return edit_refuse(e, "where comments would be lost", err);
    e->from = block ? colon : old->start;
    e->to = old->end;
    if (e->from > 0 && e->text[e->from - 1] == ':')
        act_buf_addc(&e->by, ' ');
    act_buf_adds(&e->by, value);
    if (e->to > e->from && e->text[e->to - 1] == '\n')
        act_buf_adds(&e->by, e->newline);
    return 0;
}

/* Makes a map of a key whose value says nothing. */
static void edit_open_map(struct edit *e, const struct edit_node *key, const struct edit_node *old, bool in_flow,
                          size_t depth, const char *value)
{
    size_t column = column_below(e, key);
    ACT_AUTOFREE char *indent = act_sprintf("%*s", (int)column - 1 + STEP, "");

    e->from = in_flow ? old->start : behind_colon(e->text, key);
    e->to = in_flow ? old->end : behind_comments(e->text, edit_next_line(e->text, old->end), column);
    if (in_flow) {
        act_buf_adds(&e->by, e->text[e->from - 1] == ':' ? " {" : "{");
        put_members(e, depth, value);
        act_buf_addc(&e->by, '}');
        return;
    }
    act_buf_add(&e->by, e->text + old->end, e->to - old->end); /* the comments */
    act_buf_adds(&e->by, e->text[e->to - 1] == '\n' ? "" : e->newline);
    edit_put_lines(e, depth, indent, strlen(indent), value);
    act_buf_adds(&e->by, e->newline);
}

static int edit_change(struct edit *e, const struct edit_node *root, const char *value, struct act_error *err)
{
    const struct edit_node *map = root;
    size_t column = 0;

    if (root->type == YAML_SCALAR_EVENT && root->null) {
        edit_append(e, value);
        return 0;
    }
    for (size_t depth = 0;; depth++) {
        if (map->type != YAML_MAPPING_START_EVENT)
            return edit_refuse(
                e, map->type == YAML_ALIAS_EVENT ? "in what an alias stands for" : "in what is not a map", err);
        size_t at = find_key(map, e->keys.v[depth]);
        if (at == map->n) {
            if (map->flow || !map->n)
                insert_member(e, map, depth, value);
            else
                insert_line(e, map, depth, column, value);
            return 0;
        }
        const struct edit_node *key = &map->v[at], *old = &map->v[at + 1];
        if (depth + 1 == e->keys.n)
            return replace_value(e, key, old, value, err);
        if (old->type == YAML_SCALAR_EVENT && old->null) {
            edit_open_map(e, key, old, map->flow, depth + 1, value);
            return 0;
        }
        column = column_below(e, key);
        map = old;
    }
}

/* ---- what must come out ---- */

static struct yaml *edit_map_of(struct yaml *tree, const struct act_strv *keys, bool make)
{
    for (size_t i = 0; i + 1 < keys->n && tree; i++) {
        struct yaml *below = yaml_get(tree, keys->v[i]);
        if (make && yaml_is_null(below)) {
            below = yaml_new_map(tree->file);
            yaml_put(tree, keys->v[i], below);
        }
        tree = below && below->kind == YAML_MAP ? below : NULL;
    }
    return tree && tree->kind == YAML_MAP ? tree : NULL;
}

static void edit_drop(struct yaml *map, const char *key)
{
    for (size_t i = 0; i < map->n; i++)
        if (strcmp(map->items[i]->key, key) == 0) {
            yaml_tree_free(map->items[i]);
            memmove(&map->items[i], &map->items[i + 1], (map->n - i - 1) * sizeof(*map->items));
            map->n--;
            return;
        }
}

static char *spliced(const struct edit *e)
{
    return act_sprintf("%.*s%s%s", (int)e->from, e->text, e->by.data ? e->by.data : "", e->text + e->to);
}

/* Takes the change only if the new text means the same as wanted, which it frees. */
static int edit_finish(struct edit *e, struct yaml *wanted, char **out, struct act_error *err)
{
    char *text = spliced(e);
    struct yaml *now = NULL;
    bool same = yaml_parse(text, strlen(text), e->name, &now, NULL) == 0 && yaml_is_same(wanted, now);

    yaml_tree_free(now);
    yaml_tree_free(wanted);
    if (same) {
        *out = text;
        return 0;
    }
    act_wipe(&text);
    return edit_refuse(e, "in the form that it is written in", err);
}

static int edit_set(struct edit *e, struct yaml *wanted, const struct yaml *value, char **out, struct act_error *err)
{
    ACT_AUTOFREE char *text = yaml_flow_text(value);
    struct yaml *map = edit_map_of(wanted, &e->keys, true), *given = NULL;
    struct edit_node root = {0};
    int rc = 0;

    if (!text)
        rc = act_error_set(err, ACT_USAGE, "the value of '%s' is not UTF-8 text", e->path);
    else if (!map)
        rc = edit_refuse(e, "in what is not a map", err);
    else
        rc = yaml_parse(text, strlen(text), e->name, &given, err);
    if (rc == 0 && !read_places(e->text, &root))
        rc = edit_refuse(e, "in the form that it is written in", err);
    if (rc == 0)
        rc = edit_change(e, &root, text, err);
    edit_node_release(&root);
    if (rc == 0) {
        yaml_put(map, e->key, given);
        return edit_finish(e, wanted, out, err);
    }
    yaml_tree_free(given);
    yaml_tree_free(wanted);
    return rc;
}

int yaml_edit_set(const char *text, const char *name, const char *path, const struct yaml *value, char **out,
                  struct act_error *err)
{
    ACT_AUTO(edit) e = {.text = text, .name = name, .path = path};
    struct yaml *wanted = NULL;
    int rc = edit_begin(&e, err);

    *out = NULL;
    if (rc == 0)
        rc = yaml_parse(text, strlen(text), name, &wanted, err);
    return rc < 0 ? rc : edit_set(&e, wanted, value, out, err);
}

/* ---- removing ---- */

/* Cuts the lines of a member of a map in block form. */
static int cut_lines(struct edit *e, const struct edit_node *key, const struct edit_node *value, struct act_error *err)
{
    size_t line = edit_line_of(e->text, key->start), end = value->end;

    if (strspn(e->text + line, " ") < key->start - line)
        return edit_refuse(e, "in the form that it is written in", err);
    e->from = line;
    e->to = end > line && e->text[end - 1] == '\n' ? end : edit_next_line(e->text, end);
    return 0;
}

static void cut_member(struct edit *e, const struct edit_node *map, size_t at)
{
    bool last = at + 2 == map->n;

    e->from = last && at > 0 ? map->v[at - 1].end : map->v[at].start;
    e->to = last ? map->v[at + 1].end : map->v[at + 2].start;
}

/* A member of a map, and how many levels below the root it is. */
struct edit_member {
    const struct edit_node *map;
    size_t at, depth;
};

/* Finds the key, or the map above it that would be empty without it. Its nodes are NULL if it comes from an alias or
 * '<<'. */
static struct edit_member find_removed(const struct edit *e, const struct edit_node *root)
{
    struct edit_member found = {0};
    const struct edit_node *map = root;

    for (size_t depth = 0; depth < e->keys.n; depth++) {
        size_t at = map->type == YAML_MAPPING_START_EVENT ? find_key(map, e->keys.v[depth]) : map->n;
        if (at == map->n)
            return (struct edit_member){0};
        if (depth == 0 || map->n > 2)
            found = (struct edit_member){.map = map, .at = at, .depth = depth};
        map = &map->v[at + 1];
    }
    return found;
}

/* Cuts it out of the text, and drops it from the tree. */
static int edit_cut(struct edit *e, const struct edit_node *root, struct yaml *wanted, struct act_error *err)
{
    struct edit_member found = find_removed(e, root);
    struct act_strv above = {.v = e->keys.v, .n = found.depth + 1};

    if (!found.map || !found.map->v)
        return edit_refuse(e, "where an alias or '<<' gives it", err);
    const struct edit_node *key = &found.map->v[found.at];
    edit_drop(edit_map_of(wanted, &above, false), key->text);
    if (!found.map->flow)
        return cut_lines(e, key, key + 1, err);
    cut_member(e, found.map, found.at);
    return 0;
}

int yaml_edit_unset(const char *text, const char *name, const char *path, char **out, struct act_error *err)
{
    ACT_AUTO(edit) e = {.text = text, .name = name, .path = path};
    struct yaml *wanted = NULL, *map = NULL;
    struct edit_node root = {0};
    int rc = edit_begin(&e, err);

    *out = NULL;
    if (rc == 0)
        rc = yaml_parse(text, strlen(text), name, &wanted, err);
    if (rc == 0)
        map = edit_map_of(wanted, &e.keys, false);
    if (rc < 0 || !map || !yaml_get(map, e.key)) {
        yaml_tree_free(wanted);
        return rc;
    }
    rc = read_places(text, &root) ? edit_cut(&e, &root, wanted, err)
                                  : edit_refuse(&e, "in the form that it is written in", err);
    edit_node_release(&root);
    if (rc == 0)
        return edit_finish(&e, wanted, out, err);
    yaml_tree_free(wanted);
    return rc;
}
