/* fields_record.h - a record with members of every kind, for the test and the harness of codec/fields.h. */
#ifndef TESTS_UNIT_FIELDS_RECORD_H
#define TESTS_UNIT_FIELDS_RECORD_H

#include "base/text.h"
#include "codec/fields.h"

enum colour { RED, GREEN };

struct point {
    int x;
    char *label;
};

struct sample {
    char *id, *token;
    char note[8];
    int count, port;
    int64_t at;
    bool odd, loud;
    enum colour colour;
    struct act_strv words;
    json_t *more;
    int limit, warn;
    struct point *points;
    size_t n_points;
    struct point ends[2];
    int n_ends;
};

static inline bool sample_is_id(const char *text)
{
    return *text && *text != '-';
}

static inline bool sample_hides_token(const void *record)
{
    return ((const struct sample *)record)->count == 7;
}

static inline int sample_check(const void *record, struct act_error *why)
{
    const struct sample *s = record;

    return s->warn <= s->limit ? 0 : act_error_set(why, ACT_FAIL, "'warn' must be less than 'limit'");
}

static const char *const sample_colours[] = {"red", "green"}, *const sample_volumes[] = {"quiet", "loud"};

static const struct field point_rows[] = {
    FIELD_INT(struct point, x, "x", .min = -9, .max = 9),
    FIELD_TEXT(struct point, label, "label"),
};
static const struct fields point_fields = FIELDS("point", struct point, point_rows, NULL);

static const struct field limit_rows[] = {
    FIELD_INT(struct sample, limit, "most", .flags = FIELD_REQUIRED),
    FIELD_INT(struct sample, warn, "warn"),
};
static const struct fields limit_fields = FIELDS("limits", struct sample, limit_rows, NULL);

static const struct field sample_rows[] = {
    FIELD_VERSION(2, 0),
    FIELD_TEXT(struct sample, id, "id", .flags = FIELD_REQUIRED, .good = sample_is_id, .must = "an id"),
    FIELD_TEXT(struct sample, token, "token", .flags = FIELD_SECRET, .left_out = sample_hides_token),
    FIELD_CHARS(struct sample, note, "note", .flags = FIELD_RARE),
    FIELD_INT(struct sample, count, "count"),
    FIELD_INT(struct sample, port, "port", .flags = FIELD_OR_NULL, .usual = -1, .max = 65535),
    FIELD_INT64(struct sample, at, "at", .min = INT64_MIN),
    FIELD_BOOL(struct sample, odd, "odd", .flags = FIELD_RARE),
    FIELD_BOOL(struct sample, loud, "volume", .words = sample_volumes, .n_words = 2),
    FIELD_WORD(struct sample, colour, sample_colours, "colour", .usual = GREEN, .flags = FIELD_ANY_WORD),
    FIELD_TEXTS(struct sample, words, "words", .flags = FIELD_RARE, .min = 1, .good = sample_is_id),
    FIELD_JSON(struct sample, more, "more"),
    FIELD_GROUP(&limit_fields, "limits", .flags = FIELD_RARE),
    FIELD_LIST(struct sample, points, n_points, struct point, &point_fields, "points"),
    FIELD_ARRAY(struct sample, ends, n_ends, struct point, &point_fields, "ends", .flags = FIELD_RARE),
};
static const struct fields sample_fields = FIELDS("the sample", struct sample, sample_rows, sample_check);

#endif
