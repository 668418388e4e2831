/* fields.c - one switch over the kinds of members for each thing that is done with a record. */
#include "codec/fields.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "codec/json.h"

/* ---- where members are ---- */

static const void *field_at(const struct field *f, const void *record)
{
    return (const char *)record + f->offset;
}

static void *field_in(const struct field *f, void *record)
{
    return (char *)record + f->offset;
}

static size_t field_count(const struct field *f, const void *record)
{
    const void *n = (const char *)record + f->offset_n;

    return f->kind == FIELD_KIND_LIST ? *(const size_t *)n : (size_t) * (const int *)n;
}

static int64_t field_number(const struct field *f, const void *record)
{
    const void *at = field_at(f, record);

    switch (f->kind) {
    case FIELD_KIND_INT:
        return *(const int *)at;
    case FIELD_KIND_BOOL:
        return *(const bool *)at;
    case FIELD_KIND_WORD:
        return *(const unsigned *)at;
    default:
        return *(const int64_t *)at;
    }
}

static void field_set_number(const struct field *f, void *record, int64_t value)
{
    void *at = field_in(f, record);

    switch (f->kind) {
    case FIELD_KIND_INT:
        *(int *)at = (int)value;
        break;
    case FIELD_KIND_BOOL:
        *(bool *)at = value != 0;
        break;
    case FIELD_KIND_WORD:
        *(unsigned *)at = (unsigned)value;
        break;
    default:
        *(int64_t *)at = value;
    }
}

/* ---- empty ---- */

static bool field_is_usual(const struct field *f, const void *record)
{
    switch (f->kind) {
    case FIELD_KIND_VERSION:
        return false;
    case FIELD_KIND_TEXT:
        return !*(char *const *)field_at(f, record);
    case FIELD_KIND_CHARS:
        return !*(const char *)field_at(f, record);
    case FIELD_KIND_TEXTS:
        return ((const struct act_strv *)field_at(f, record))->n == 0;
    case FIELD_KIND_JSON:
        return json_object_size(*(json_t *const *)field_at(f, record)) == 0;
    case FIELD_KIND_GROUP:
        return field_is_usual(&f->of->v[0], record);
    case FIELD_KIND_LIST:
    case FIELD_KIND_ARRAY:
        return field_count(f, record) == 0;
    default:
        return field_number(f, record) == f->usual;
    }
}

static void fields_make_usual(const struct fields *fields, void *record)
{
    for (size_t i = 0; i < fields->n; i++) {
        const struct field *f = &fields->v[i];
        if (f->kind == FIELD_KIND_GROUP)
            fields_make_usual(f->of, record);
        else if (f->usual)
            field_set_number(f, record, f->usual);
    }
}

void fields_init(const struct fields *fields, void *out)
{
    memset(out, 0, fields->size);
    fields_make_usual(fields, out);
}

static void fields_free(const struct fields *fields, void *record);

static void field_free(const struct field *f, void *record)
{
    void *at = field_in(f, record);

    switch (f->kind) {
    case FIELD_KIND_TEXT:
        if (f->flags & FIELD_SECRET)
            act_wipe(at);
        else
            free(*(char **)at);
        break;
    case FIELD_KIND_TEXTS:
        act_strv_release(at);
        break;
    case FIELD_KIND_JSON:
        json_decref(*(json_t **)at);
        break;
    case FIELD_KIND_GROUP:
        fields_free(f->of, record);
        break;
    case FIELD_KIND_LIST:
        fields_list_release(f->of, *(void **)at, field_count(f, record));
        break;
    case FIELD_KIND_ARRAY:
        for (size_t i = 0; i < field_count(f, record); i++)
            fields_free(f->of, (char *)at + i * f->of->size);
        break;
    default:
        break;
    }
}

static void fields_free(const struct fields *fields, void *record)
{
    for (size_t i = 0; i < fields->n; i++)
        field_free(&fields->v[i], record);
}

void fields_list_release(const struct fields *fields, void *records, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fields_free(fields, (char *)records + i * fields->size);
    free(records);
}

void fields_release(const struct fields *fields, void *record)
{
    fields_free(fields, record);
    fields_init(fields, record);
}

/* ---- out ---- */

static json_t *field_line_to_json(const char *text)
{
    ACT_AUTOFREE char *line = act_one_line(text, strlen(text));

    return json_string(line);
}

static json_t *field_to_json(const struct field *f, const void *record)
{
    const void *at = field_at(f, record);

    switch (f->kind) {
    case FIELD_KIND_VERSION:
        return json_integer(f->max);
    case FIELD_KIND_TEXT:
        return *(char *const *)at ? codec_json_bytes_new(*(char *const *)at) : NULL;
    case FIELD_KIND_CHARS:
        return field_line_to_json(at);
    case FIELD_KIND_BOOL:
        return f->words ? json_string(f->words[*(const bool *)at]) : json_boolean(*(const bool *)at);
    case FIELD_KIND_WORD:
        return json_string(f->words[field_number(f, record)]);
    case FIELD_KIND_TEXTS:
        return codec_json_strv_new(at);
    case FIELD_KIND_JSON:
        return json_incref(*(json_t *const *)at);
    case FIELD_KIND_GROUP:
        return fields_to_json(f->of, record);
    case FIELD_KIND_LIST:
        return fields_list_to_json(f->of, *(const void *const *)at, field_count(f, record));
    case FIELD_KIND_ARRAY:
        return fields_list_to_json(f->of, at, field_count(f, record));
    default:
        return json_integer(field_number(f, record));
    }
}

json_t *fields_to_json(const struct fields *fields, const void *record)
{
    json_t *json = json_object();

    for (size_t i = 0; i < fields->n; i++) {
        const struct field *f = &fields->v[i];
        const bool is_short = (f->flags & (FIELD_RARE | FIELD_OR_NULL)) && field_is_usual(f, record);
        if ((is_short && !(f->flags & FIELD_OR_NULL)) || (f->left_out && f->left_out(record)))
            continue;
        json_t *value = is_short ? json_null() : field_to_json(f, record);
        if (value)
            json_object_set_new(json, f->key, value);
    }
    return json;
}

json_t *fields_list_to_json(const struct fields *fields, const void *records, size_t n)
{
    json_t *array = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(array, fields_to_json(fields, (const char *)records + i * fields->size));
    return array;
}

/* ---- in ---- */

static int field_refuse(const struct field *f, const char *must, struct act_error *err)
{
    return act_error_set(err, ACT_FAIL, "'%s' must be %s", f->key, f->must ? f->must : must);
}

static int field_read_text(const struct field *f, const json_t *value, void *at, struct act_error *err)
{
    char *text = codec_json_bytes_get(value);

    if (!text || (f->good && !f->good(text))) {
        act_wipe(&text);
        return field_refuse(f, "a text", err);
    }
    *(char **)at = text;
    return 0;
}

static int field_read_chars(const struct field *f, const json_t *value, char *at, struct act_error *err)
{
    ACT_AUTOFREE char *text = NULL;
    int rc = field_read_text(f, value, &text, err);

    if (rc == 0)
        act_copy_line(at, f->size, text);
    return rc;
}

static int field_read_number(const struct field *f, const json_t *value, void *record, struct act_error *err)
{
    const int64_t most = f->max ? f->max : f->kind == FIELD_KIND_INT ? INT_MAX : INT64_MAX;
    const int64_t number = json_integer_value(value);

    if (!json_is_integer(value) || number < f->min || number > most) {
        char must[80];
        snprintf(must, sizeof(must), "a whole number from %lld to %lld", (long long)f->min, (long long)most);
        return field_refuse(f, must, err);
    }
    field_set_number(f, record, number);
    return 0;
}

static int field_refuse_word(const struct field *f, struct act_error *err)
{
    ACT_AUTO(act_buf) must = {0};

    for (size_t i = 0; i < f->n_words; i++)
        act_buf_addf(&must, "%s%s", i ? ", " : "one of ", f->words[i]);
    return field_refuse(f, must.data, err);
}

static int field_read_word(const struct field *f, const json_t *value, void *record, struct act_error *err)
{
    const char *word = json_string_value(value);
    size_t i = 0;

    while (word && i < f->n_words && strcmp(word, f->words[i]) != 0)
        i++;
    if (word && i < f->n_words)
        field_set_number(f, record, (int64_t)i);
    else if (!word || !(f->flags & FIELD_ANY_WORD))
        return field_refuse_word(f, err);
    return 0;
}

static int field_read_bool(const struct field *f, const json_t *value, void *record, struct act_error *err)
{
    if (f->words)
        return field_read_word(f, value, record, err);
    field_set_number(f, record, json_is_true(value));
    return json_is_boolean(value) ? 0 : field_refuse(f, "true or false", err);
}

static int field_read_texts(const struct field *f, const json_t *value, struct act_strv *at, struct act_error *err)
{
    bool good = codec_json_strv_get(value, at) && at->n >= (size_t)f->min;

    for (size_t i = 0; good && f->good && i < at->n; i++)
        good = f->good(at->v[i]);
    return good ? 0 : field_refuse(f, "a list of texts", err);
}

static int fields_read(const struct fields *fields, const json_t *json, void *out, struct act_error *err);

/* Makes room for record i of a list, which becomes its last; NULL: an array has no room for it. */
static void *field_add_record(const struct field *f, void *record, size_t i)
{
    void *n = (char *)record + f->offset_n, *v = field_in(f, record);

    if (f->kind == FIELD_KIND_ARRAY && i >= f->size)
        return NULL;
    if (f->kind == FIELD_KIND_ARRAY) {
        *(int *)n = (int)i + 1;
    } else {
        *(void **)v = act_grow(*(void **)v, i, f->of->size);
        *(size_t *)n = i + 1;
    }
    void *added = (f->kind == FIELD_KIND_ARRAY ? (char *)v : *(char **)v) + i * f->of->size;
    fields_init(f->of, added);
    return added;
}

static int field_read_list(const struct field *f, const json_t *value, void *record, struct act_error *err)
{
    if (!json_is_array(value))
        return field_refuse(f, "a list", err);
    for (size_t i = 0; i < json_array_size(value); i++) {
        void *added = field_add_record(f, record, i);
        if (added && fields_read(f->of, json_array_get(value, i), added, err) < 0)
            return act_error_prefix(err, "%s %zu", f->of->what, i + 1);
    }
    return 0;
}

static int field_read(const struct field *f, json_t *value, void *record, struct act_error *err)
{
    void *at = field_in(f, record);

    switch (f->kind) {
    case FIELD_KIND_VERSION:
        return 0;
    case FIELD_KIND_TEXT:
        return field_read_text(f, value, at, err);
    case FIELD_KIND_CHARS:
        return field_read_chars(f, value, at, err);
    case FIELD_KIND_BOOL:
        return field_read_bool(f, value, record, err);
    case FIELD_KIND_WORD:
        return field_read_word(f, value, record, err);
    case FIELD_KIND_TEXTS:
        return field_read_texts(f, value, at, err);
    case FIELD_KIND_JSON:
        *(json_t **)at = json_is_object(value) ? json_incref(value) : NULL;
        return json_is_object(value) ? 0 : field_refuse(f, "an object", err);
    case FIELD_KIND_GROUP:
        return json_is_object(value) ? fields_read(f->of, value, record, err) : field_refuse(f, "an object", err);
    case FIELD_KIND_LIST:
    case FIELD_KIND_ARRAY:
        return field_read_list(f, value, record, err);
    default:
        return field_read_number(f, value, record, err);
    }
}

static int fields_read(const struct fields *fields, const json_t *json, void *out, struct act_error *err)
{
    int rc = json_is_object(json) ? 0 : act_error_set(err, ACT_FAIL, "it is not an object");

    for (size_t i = 0; rc == 0 && i < fields->n; i++) {
        const struct field *f = &fields->v[i];
        json_t *value = json_object_get(json, f->key);
        const bool is_there = value && !json_is_null(value);
        if (is_there || (f->flags & FIELD_REQUIRED))
            rc = field_read(f, value, out, err);
    }
    return rc == 0 && fields->check ? fields->check(out, err) : rc;
}

/* A version says what all other members mean, so it is read before them. */
static int fields_check_version(const struct fields *fields, const json_t *json, struct act_error *err)
{
    const struct field *f = &fields->v[0];
    const json_t *value = json_object_get(json, f->key);
    const int64_t version = json_integer_value(value);

    if (f->kind != FIELD_KIND_VERSION || (!value && !(f->flags & FIELD_REQUIRED)))
        return 0;
    if (version > f->max)
        return act_error_set(err, ACT_FAIL, "%s has version %lld, this program knows version %lld; update ACT",
                             fields->what, (long long)version, (long long)f->max);
    return version >= f->min ? 0 : field_refuse(f, "a number from 1", err);
}

int fields_from_json(const struct fields *fields, const json_t *json, void *out, struct act_error *err)
{
    fields_init(fields, out);
    int rc = fields_check_version(fields, json, err);
    if (rc < 0)
        return rc;
    rc = fields_read(fields, json, out, err);
    if (rc < 0) {
        fields_release(fields, out);
        return act_error_prefix(err, "%s is malformed", fields->what);
    }
    return 0;
}
