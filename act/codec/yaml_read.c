/* yaml_read.c - libyaml's events to a tree.
 *
 * libyaml reads ahead at most 1 KiB for a simple key, so the bounds on depth and number stop it while the text is
 * read, not afterwards.
 */
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"
#include "base/text.h"
#include "codec/yaml_internal.h"

enum {
    MAX_TEXT_BYTES = 1 << 20,
    MAX_TREE_BYTES = 8 << 20,
    MAX_VALUES = 100000,
    MAX_KEYS = 4096,
    MAX_DEPTH = 64,
    MAX_TAGS = 16,
};

/* The last definition of its name, as in YAML 1.1. */
struct anchor {
    char *name;
    const struct yaml *value; /* it stands in the unfinished tree */
    bool open;                /* its end has not been read yet */
};

struct yaml_reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; type YAML_NO_EVENT when consumed */
    const char *text;
    size_t len;
    void *anchors;       /* tsearch(3), of struct anchor */
    struct yaml *merged; /* has what followed "<<", and the name of the document */
    size_t values_left, bytes_left;
    struct act_error *err;
};

/* -- errors and events -- */

static int refuse_at(struct yaml_reader *r, yaml_mark_t mark, const char *why)
{
    return act_error_set(r->err, ACT_CONFIG, "%s:%zu:%zu: %s", r->merged->file, mark.line + 1, mark.column + 1, why);
}

static int refuse_yaml(struct yaml_reader *r, const char *why)
{
    return refuse_at(r, r->event.start_mark, why);
}

/* Returns the line and column of a byte of the text. */
static yaml_mark_t yaml_mark_of(const struct yaml_reader *r, size_t offset)
{
    yaml_mark_t mark = {.index = offset};

    for (size_t i = 0; i < offset && i < r->len; i++) {
        mark.column += ((unsigned char)r->text[i] & 0xc0) != 0x80; /* characters, not bytes */
        if (r->text[i] == '\n') {
            mark.line++;
            mark.column = 0;
        }
    }
    return mark;
}

static bool is_tab_at(const struct yaml_reader *r, yaml_mark_t mark)
{
    const char *line = r->text, *end = r->text + r->len;

    for (size_t i = 0; i < mark.line && line; i++) {
        line = memchr(line, '\n', (size_t)(end - line));
        line = line ? line + 1 : NULL;
    }
    size_t blank = 0;
    while (line && line + blank < end && line[blank] == ' ')
        blank++;
    return line && line + blank < end && line[blank] == '\t';
}

static int refuse_syntax(struct yaml_reader *r)
{
    const yaml_parser_t *p = &r->parser;
    const char *why = p->problem ? p->problem : "not YAML";
    yaml_mark_t mark = p->error == YAML_READER_ERROR ? yaml_mark_of(r, p->problem_offset) : p->problem_mark;

    refuse_at(r, mark, why);
    if (is_tab_at(r, mark))
        act_error_hint(r->err, "the line is indented with a tab, YAML takes only spaces");
    return -ACT_CONFIG;
}

static int next_event(struct yaml_reader *r)
{
    yaml_event_delete(&r->event);
    return yaml_parser_parse(&r->parser, &r->event) ? 0 : refuse_syntax(r);
}

/* Takes one value with len bytes of text from what is left. */
static int yaml_charge(struct yaml_reader *r, size_t len)
{
    if (r->values_left == 0)
        return refuse_yaml(r, "too many values (limit: 100000, aliases counted)");
    if (len > r->bytes_left)
        return refuse_yaml(r, "too much text (limit: 8 MiB, aliases counted)");
    r->values_left--;
    r->bytes_left -= len;
    return 0;
}

static struct yaml *value_at_event(struct yaml_reader *r, enum yaml_kind kind)
{
    struct yaml *value = yaml_new_beside(r->merged, kind);

    value->line = (int)r->event.start_mark.line + 1;
    value->column = (int)r->event.start_mark.column + 1;
    return value;
}

/* -- anchors and aliases -- */

static void anchor_free(void *anchor)
{
    free(((struct anchor *)anchor)->name);
    free(anchor);
}

/* Remembers a value under its anchor, if it has one; NULL: it has none. */
static struct anchor *anchor_open(struct yaml_reader *r, const yaml_char_t *name, const struct yaml *value)
{
    if (!name)
        return NULL;
    struct anchor *anchor = act_calloc(1, sizeof(*anchor));
    anchor->name = act_strdup((const char *)name);
    struct anchor **slot = tsearch(anchor, &r->anchors, act_by_text);
    if (slot && *slot != anchor) /* there is one of that name */
        anchor_free(anchor);
    if (!slot)
        abort(); /* no memory for a node of the tree */
    (*slot)->value = value;
    (*slot)->open = true;
    return *slot;
}

/* Notes that the end of the value was read. Inside it the name may have been given to another value. */
static void anchor_close(struct anchor *anchor, const struct yaml *value)
{
    if (anchor && anchor->value == value)
        anchor->open = false;
}

static const struct anchor *anchor_find(const struct yaml_reader *r, char *name)
{
    struct anchor **slot = tfind(&(struct anchor){.name = name}, &r->anchors, act_by_text);

    return slot ? *slot : NULL;
}

static int copy_value(struct yaml_reader *r, const struct yaml *from, int depth, struct yaml **out)
{
    struct yaml *to = NULL;
    int rc = yaml_charge(r, (from->text ? strlen(from->text) : 0) + (from->key ? strlen(from->key) : 0));

    if (rc == 0 && depth > MAX_DEPTH)
        rc = refuse_yaml(r, "nested too deeply (limit: 64 levels)");
    if (rc < 0)
        return rc;
    to = yaml_new_beside(from, from->kind);
    to->line = from->line;
    to->column = from->column;
    to->key = act_strdup(from->key);
    to->text = act_strdup(from->text);
    to->quoted = from->quoted;
    for (size_t i = 0; i < from->n && rc == 0; i++) {
        struct yaml *item = NULL;
        rc = copy_value(r, from->items[i], depth + 1, &item);
        if (item)
            yaml_push(to, item);
    }
    if (rc < 0) {
        yaml_tree_free(to);
        to = NULL;
    }
    *out = to;
    return rc;
}

static int read_alias(struct yaml_reader *r, int depth, struct yaml **out)
{
    const struct anchor *anchor = anchor_find(r, (char *)r->event.data.alias.anchor);

    if (!anchor)
        return refuse_yaml(r, "an alias (*...) to something that was not defined before; quote text that starts "
                              "with '*'");
    if (anchor->open)
        return refuse_yaml(r, "an alias inside of what it stands for");
    int rc = copy_value(r, anchor->value, depth, out);
    if (rc == 0) {
        free((*out)->key);
        (*out)->key = NULL;
    }
    return rc;
}

/* -- scalars, lists, maps -- */

/* Returns the meaning of a scalar's tag: 1: the scalar is text; 0: none; -1: YAML's words count although it is quoted;
 * -2: the tag is not supported. */
static int tag_meaning(const yaml_char_t *tag)
{
    static const struct {
        const char *tag;
        int meaning;
    } tags[] = {
        {"!", 1}, {YAML_STR_TAG, 1}, {YAML_NULL_TAG, -1}, {YAML_BOOL_TAG, -1}, {YAML_INT_TAG, -1}, {YAML_FLOAT_TAG, -1},
    };

    if (!tag)
        return 0;
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
        if (strcmp((const char *)tag, tags[i].tag) == 0)
            return tags[i].meaning;
    return -2;
}

static int read_scalar(struct yaml_reader *r, struct yaml **out)
{
    const char *text = (const char *)r->event.data.scalar.value;
    size_t len = r->event.data.scalar.length;
    int meaning = tag_meaning(r->event.data.scalar.tag);
    int rc = yaml_charge(r, len);

    if (rc < 0)
        return rc;
    if (strlen(text) != len)
        return refuse_yaml(r, "text with a NUL character");
    if (meaning == -2)
        return refuse_yaml(r, "a tag (!...) that is not supported; quote text that starts with '!'");
    struct yaml *value = value_at_event(r, YAML_SCALAR);
    value->text = act_strndup(text, len);
    value->quoted = meaning ? meaning > 0 : r->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    anchor_close(anchor_open(r, r->event.data.scalar.anchor, value), value);
    *out = value;
    return 0;
}

static int yaml_read_value(struct yaml_reader *r, int depth, struct yaml **out);

static int read_list(struct yaml_reader *r, int depth, struct yaml *list)
{
    int rc;

    while ((rc = next_event(r)) == 0 && r->event.type != YAML_SEQUENCE_END_EVENT) {
        struct yaml *item = NULL;
        rc = yaml_read_value(r, depth + 1, &item);
        if (rc < 0)
            return rc;
        yaml_push(list, item);
    }
    return rc;
}

/* Adds copies of the members of one map after "<<" that are not there already. */
static int merge_defaults(struct yaml_reader *r, int depth, struct yaml *map, const struct yaml *from)
{
    int rc = from->kind == YAML_MAP ? 0 : yaml_error(from, r->err, "'<<' takes a map or a list of maps");

    for (size_t i = 0; i < from->n && rc == 0; i++) {
        struct yaml *value = NULL;
        rc = map->n < MAX_KEYS ? yaml_charge(r, 0) : refuse_yaml(r, "too many keys in one map (limit: 4096)");
        if (rc < 0 || yaml_get(map, from->items[i]->key))
            continue;
        rc = copy_value(r, from->items[i], depth + 1, &value);
        if (rc == 0)
            yaml_push(map, value);
    }
    return rc;
}

/* Applies the value of "<<"; if it has several maps, the first one wins. The source lives on until the document is
 * read, because anchors may point into it. */
static int apply_merge_key(struct yaml_reader *r, int depth, struct yaml *map, struct yaml *source)
{
    int rc = 0;

    yaml_push(r->merged, source);
    if (source->kind != YAML_LIST)
        return merge_defaults(r, depth, map, source);
    for (size_t i = 0; i < source->n && rc == 0; i++)
        rc = merge_defaults(r, depth, map, source->items[i]);
    return rc;
}

static int yaml_read_key(struct yaml_reader *r, const struct yaml *map, bool seen_merge, char **out)
{
    const char *key = (const char *)r->event.data.scalar.value;

    if (r->event.type != YAML_SCALAR_EVENT || strlen(key) != r->event.data.scalar.length)
        return refuse_yaml(r, "a key must be plain text");
    if (yaml_get(map, key) || (seen_merge && strcmp(key, "<<") == 0)) {
        refuse_yaml(r, "the key is given twice");
        return act_error_hint(r->err, "key '%s'", key);
    }
    if (map->n >= MAX_KEYS)
        return refuse_yaml(r, "too many keys in one map (limit: 4096)");
    *out = act_strdup(key);
    return yaml_charge(r, strlen(key));
}

/* Reads the value of a key and puts it into the map, or into merge when the key is "<<". */
static int read_member(struct yaml_reader *r, int depth, struct yaml *map, struct yaml **merge)
{
    char *key = NULL;
    struct yaml *value = NULL;
    yaml_mark_t mark = r->event.start_mark;
    int rc = yaml_read_key(r, map, *merge != NULL, &key);

    if (rc == 0)
        rc = next_event(r);
    if (rc == 0)
        rc = yaml_read_value(r, depth + 1, &value);
    if (!value) {
        free(key);
        return rc;
    }
    value->line = (int)mark.line + 1;
    value->column = (int)mark.column + 1;
    value->key = key;
    if (strcmp(key, "<<") == 0)
        *merge = value;
    else
        yaml_push(map, value);
    return 0;
}

static int yaml_read_map(struct yaml_reader *r, int depth, struct yaml *map)
{
    struct yaml *merge = NULL;
    int rc;

    while ((rc = next_event(r)) == 0 && r->event.type != YAML_MAPPING_END_EVENT) {
        rc = read_member(r, depth, map, &merge);
        if (rc < 0)
            break;
    }
    if (rc == 0 && merge)
        return apply_merge_key(r, depth, map, merge);
    yaml_tree_free(merge);
    return rc;
}

static int read_collection(struct yaml_reader *r, int depth, struct yaml **out)
{
    bool is_map = r->event.type == YAML_MAPPING_START_EVENT;
    const yaml_char_t *tag = is_map ? r->event.data.mapping_start.tag : r->event.data.sequence_start.tag;
    const char *plain_tag = is_map ? YAML_MAP_TAG : YAML_SEQ_TAG;

    if (depth > MAX_DEPTH)
        return refuse_yaml(r, "nested too deeply (limit: 64 levels)");
    if (tag && strcmp((const char *)tag, plain_tag) != 0)
        return refuse_yaml(r, "a tag (!...) that is not supported");
    int rc = yaml_charge(r, 0);
    if (rc < 0)
        return rc;
    struct yaml *value = value_at_event(r, is_map ? YAML_MAP : YAML_LIST);
    struct anchor *anchor =
        anchor_open(r, is_map ? r->event.data.mapping_start.anchor : r->event.data.sequence_start.anchor, value);
    rc = is_map ? yaml_read_map(r, depth, value) : read_list(r, depth, value);
    anchor_close(anchor, value);
    if (rc < 0)
        yaml_tree_free(value);
    else
        *out = value;
    return rc;
}

/* Reads the value that begins with the current event. Sets *out only on success. */
static int yaml_read_value(struct yaml_reader *r, int depth, struct yaml **out)
{
    switch (r->event.type) {
    case YAML_ALIAS_EVENT:
        return read_alias(r, depth, out);
    case YAML_SCALAR_EVENT:
        return read_scalar(r, out);
    default:
        return read_collection(r, depth, out);
    }
}

/* -- the document -- */

static int read_root(struct yaml_reader *r, struct yaml **out)
{
    int rc = next_event(r); /* the start of the stream */

    if (rc == 0)
        rc = next_event(r);
    if (rc == 0 && r->event.type == YAML_DOCUMENT_START_EVENT) {
        rc = next_event(r);
        if (rc == 0)
            rc = yaml_read_value(r, 1, out);
        if (rc == 0)
            rc = next_event(r); /* the end of the document */
        if (rc == 0)
            rc = next_event(r);
        if (rc == 0 && r->event.type != YAML_STREAM_END_EVENT)
            rc = refuse_yaml(r, "a second document ('---'); only one is allowed");
    }
    if (rc == 0 && yaml_is_null(*out)) {
        yaml_tree_free(*out);
        *out = yaml_new_beside(r->merged, YAML_MAP);
        (*out)->line = (*out)->column = 1;
    }
    return rc;
}

/* libyaml compares each directive "%TAG" with all before it. */
static int check_tags(struct yaml_reader *r)
{
    static const char word[] = "%TAG";
    const char *at = r->text, *end = r->text + r->len;

    for (int n = 0; (at = memmem(at, (size_t)(end - at), word, strlen(word))); at += strlen(word))
        if (++n > MAX_TAGS)
            return refuse_at(r, yaml_mark_of(r, (size_t)(at - r->text)), "too many '%TAG' (limit: 16)");
    return 0;
}

static int read_document(struct yaml_reader *r, struct yaml **out)
{
    if (r->len > MAX_TEXT_BYTES)
        return act_error_set(r->err, ACT_CONFIG, "%s: larger than 1 MiB", r->merged->file);
    for (size_t at = 0, n; at < r->len; at += n) {
        const char *end = memchr(r->text + at, '\n', r->len - at);
        n = end ? (size_t)(end - r->text) + 1 - at : r->len - at;
        if (!act_utf8_valid(r->text + at, n))
            return refuse_at(r, yaml_mark_of(r, at), "the line is not UTF-8 text");
    }
    if (check_tags(r) < 0)
        return -ACT_CONFIG;
    if (!yaml_parser_initialize(&r->parser))
        return act_error_set(r->err, ACT_FAIL, "%s: not enough memory", r->merged->file);
    yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)r->text, r->len);
    int rc = read_root(r, out);
    yaml_event_delete(&r->event);
    yaml_parser_delete(&r->parser);
    return rc;
}

int yaml_parse(const char *text, size_t len, const char *name, struct yaml **out, struct act_error *err)
{
    bool bom = len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0;
    struct yaml_reader r = {
        .text = text + (bom ? 3 : 0),
        .len = len - (bom ? 3 : 0),
        .merged = yaml_new_map(name),
        .values_left = MAX_VALUES,
        .bytes_left = MAX_TREE_BYTES,
        .err = err,
    };

    *out = NULL;
    int rc = read_document(&r, out);
    if (rc < 0) {
        yaml_tree_free(*out);
        *out = NULL;
    }
    tdestroy(r.anchors, anchor_free);
    yaml_tree_free(r.merged);
    return rc;
}

int yaml_read(const char *path, const char *name, struct yaml **out, struct act_error *err)
{
    ACT_AUTOFREE char *text = NULL;
    size_t len = 0;
    int rc = act_file_read_regular(path, MAX_TEXT_BYTES, &text, &len, err);

    *out = NULL;
    if (rc < 0)
        return rc;
    rc = yaml_parse(text, len, name ? name : path, out, err);
    explicit_bzero(text, len);
    return rc;
}
