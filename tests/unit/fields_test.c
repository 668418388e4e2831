/* fields_test.c - records by tables of their members. */
#include "unit/test.h"

#include <stdio.h>

#include "codec/json.h"
#include "unit/fields_record.h"

static char *written(const struct sample *sample)
{
    CODEC_AUTOJSON json_t *json = fields_to_json(&sample_fields, sample);

    return codec_json_line(json);
}

/* What is read, and how it is written again; NULL: as it was. */
TEST(what_is_read_is_written)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"{\"version\":2,\"id\":\"a\",\"count\":0,\"port\":null,\"at\":0,\"volume\":\"quiet\",\"colour\":\"green\","
         "\"points\":[]}",
         NULL},
        {"{\"version\":2,\"id\":\"a\",\"token\":{\"base64\":\"/w==\"},\"note\":\"short\",\"count\":3,\"port\":0,"
         "\"at\":-9223372036854775808,\"odd\":true,\"volume\":\"loud\",\"colour\":\"red\",\"words\":[\"b\",\"c\"],"
         "\"more\":{},\"limits\":{\"most\":9,\"warn\":2},\"points\":[{\"x\":-1,\"label\":\"p\"},{\"x\":0}],"
         "\"ends\":[{\"x\":1}]}",
         NULL},
        /* older, with an unknown member, an unknown word, too long a text, too many records, and a hidden token */
        {"{\"id\":\"a\",\"x\":1,\"note\":\"123456\\u00e4\\n\",\"count\":7,\"token\":\"t\",\"odd\":false,"
         "\"colour\":\"blue\",\"ends\":[{},{},{}]}",
         "{\"version\":2,\"id\":\"a\",\"note\":\"123456\",\"count\":7,\"port\":null,\"at\":0,\"volume\":\"quiet\","
         "\"colour\":\"green\",\"points\":[],\"ends\":[{\"x\":0},{\"x\":0}]}"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CODEC_AUTOJSON json_t *json = json_loads(rows[i].in, 0, NULL);
        struct sample sample;
        assert_ok(fields_from_json(&sample_fields, json, &sample, &err), err);
        ACT_AUTOFREE char *line = written(&sample);
        assert_string_equal(line, rows[i].out ? rows[i].out : rows[i].in);
        fields_release(&sample_fields, &sample);
        assert_int_equal(sample.port, -1);
        assert_int_equal(sample.colour, GREEN);
        assert_null(sample.id);
    }
}

TEST(what_is_wrong_is_named)
{
    static const struct {
        const char *in, *says;
    } rows[] = {
        {"7", "the sample is malformed: it is not an object"},
        {"{}", "the sample is malformed: 'id' must be an id"},
        {"{\"id\":\"-\"}", "'id' must be an id"},
        {"{\"id\":null}", "'id' must be an id"},
        {"{\"version\":3,\"id\":7}", "the sample has version 3, this program knows version 2; update ACT"},
        {"{\"version\":0,\"id\":\"a\"}", "'version' must be a number from 1"},
        {"{\"version\":null,\"id\":\"a\"}", "'version' must be a number from 1"},
        {"{\"id\":\"a\",\"token\":7}", "'token' must be a text"},
        {"{\"id\":\"a\",\"note\":[]}", "'note' must be a text"},
        {"{\"id\":\"a\",\"count\":-1}", "'count' must be a whole number from 0 to 2147483647"},
        {"{\"id\":\"a\",\"count\":2147483648}", "'count' must be a whole number from 0 to 2147483647"},
        {"{\"id\":\"a\",\"port\":65536}", "'port' must be a whole number from 0 to 65535"},
        {"{\"id\":\"a\",\"at\":1.5}", "'at' must be a whole number"},
        {"{\"id\":\"a\",\"odd\":1}", "'odd' must be true or false"},
        {"{\"id\":\"a\",\"volume\":\"high\"}", "'volume' must be one of quiet, loud"},
        {"{\"id\":\"a\",\"colour\":1}", "'colour' must be one of red, green"},
        {"{\"id\":\"a\",\"words\":[]}", "'words' must be a list of texts"},
        {"{\"id\":\"a\",\"words\":[\"-\"]}", "'words' must be a list of texts"},
        {"{\"id\":\"a\",\"more\":[]}", "'more' must be an object"},
        {"{\"id\":\"a\",\"limits\":7}", "'limits' must be an object"},
        {"{\"id\":\"a\",\"limits\":{}}", "'most' must be a whole number"},
        {"{\"id\":\"a\",\"limits\":{\"most\":1,\"warn\":2}}", "'warn' must be less than 'limit'"},
        {"{\"id\":\"a\",\"points\":{}}", "'points' must be a list"},
        {"{\"id\":\"a\",\"points\":[{},{\"x\":10}]}", "the sample is malformed: point 2: 'x' must be a whole number"},
        {"{\"id\":\"a\",\"ends\":[7]}", "point 1: it is not an object"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CODEC_AUTOJSON json_t *json = json_loads(rows[i].in, JSON_DECODE_ANY, NULL);
        struct sample sample;
        int rc = fields_from_json(&sample_fields, json, &sample, &err);
        if (rc != -ACT_FAIL || !strstr(act_error_text(&err), rows[i].says))
            fail_msg("%s: %d %s", rows[i].in, rc, act_error_text(&err));
        assert_true(!sample.id && sample.port == -1 && sample.n_points == 0 && sample.n_ends == 0);
    }
}

TEST(lists_of_records)
{
    struct point *points = NULL;
    size_t n = 0;

    for (int i = 0; i < 3; i++)
        ACT_PUSH(points, n, (struct point){.x = i, .label = act_sprintf("p%d", i)});
    CODEC_AUTOJSON json_t *array = fields_list_to_json(&point_fields, points, n);
    ACT_AUTOFREE char *line = codec_json_line(array);
    assert_string_equal(line, "[{\"x\":0,\"label\":\"p0\"},{\"x\":1,\"label\":\"p1\"},{\"x\":2,\"label\":\"p2\"}]");
    fields_list_release(&point_fields, points, n);
}

TEST_MAIN(NULL, NULL)
