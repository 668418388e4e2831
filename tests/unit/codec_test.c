/* codec_test.c - JSON, YAML and XML: what is read, and that hostile text ends in an error with its place. */
#include "unit/test.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "codec/json.h"
#include "codec/xml.h"
#include "codec/yaml.h"

/* -- JSON -- */

TEST(json_round_trip)
{
    static const char text[] = "{\"b\": [1, 2.5, \"\\u00e9\"], \"a\": {\"x\": null}}";
    CODEC_AUTOJSON json_t *value = NULL;

    assert_ok(codec_json_parse(text, strlen(text), "t", &value, &err), err);
    ACT_AUTOFREE char *line = codec_json_line(value);
    assert_string_equal(line, "{\"b\":[1,2.5,\"\xc3\xa9\"],\"a\":{\"x\":null}}");
    assert_int_equal(codec_json_int(value, "a", -7), -7);
    assert_string_equal(codec_json_str(value, "b", "none"), "none");
    assert_null(codec_json_str(NULL, "b", NULL));
}

TEST(json_numbers_within_a_range)
{
    CODEC_AUTOJSON json_t *value = json_pack("{s:i, s:i, s:I}", "low", 1, "high", 4, "wide", (json_int_t)1 << 32 | 2);

    assert_int_equal(codec_json_int_in(value, "low", 1, 4, -7), 1);
    assert_int_equal(codec_json_int_in(value, "high", 1, 4, -7), 4);
    assert_int_equal(codec_json_int_in(value, "low", 2, 4, -7), -7);
    assert_int_equal(codec_json_int_in(value, "high", 1, 3, -7), -7);
    assert_int_equal(codec_json_int_in(value, "wide", 1, 4, -7), -7);
    assert_int_equal(codec_json_int_in(value, "none", 1, 4, -7), -7);
}

TEST(json_without_a_member)
{
    static const char *const rows[][2] = {
        {"{\"a\":1,\"config\":{\"x\":[2,{\"config\":3}]},\"b\":\"}\"}", "{\"a\":1,\"b\":\"}\"}"},
        {"{\"config\":\"a,\\\"}{\",\"b\":[1,2]}", "{\"b\":[1,2]}"},
        {" { \"a\" : \"config\" , \"config\" : null } ", "{\"a\" : \"config\" }"},
        {"{\"config\":1}", "{}"},
        {"{\"config2\":1}", "{\"config2\":1}"},
        {"{}", "{}"},
        {"[\"config\"]", "[\"config\"]"},
        {"{\"config", "{\"config"},
        {"{\"config\":{\"a\":1}", "{\"config\":{\"a\":1}"},
        {"{\"config\":1}]", "{\"config\":1}]"},
        {"{\"config\":\"\\", "{\"config\":\"\\"},
        {"{\"a\":\"\\\\\",\"config\":\"\\\"\"}", "{\"a\":\"\\\\\"}"},
        {"", ""},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *cut = codec_json_without(rows[i][0], "config");
        assert_string_equal(cut, rows[i][1]);
    }
}

TEST(json_with_some_members)
{
    static const char *const rows[][2] = {
        {"{\"a\":1,\"config\":{\"a\":[2,{\"b\":3}]},\"b\":\"}\"}", "{\"a\":1,\"b\":\"}\"}"},
        {"{\"b\":[1,2],\"ab\":1}", "{\"b\":[1,2]}"},
        {"{\"c\":1}", "{}"},
        {"{\"a\":1", "{\"a\":1"},
        {"[1]", "[1]"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *cut = codec_json_only(rows[i][0], (const char *const[]){"a", "b", NULL});
        assert_string_equal(cut, rows[i][1]);
    }
}

TEST(json_refuses)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"{\"a\": 1,\n \"a\": 2}", "t:2:"},
        {"{\"a\": \n\n}", "t:3:"},
        {"", "t:1:0"},
        {"{\"a\": \"\\u0000\"}", "t:1:"},
        {"{\"a\": \"\xff\"}", "t:1:"},
        {"[1] x", "t:1:"},
        {"[1, 2", "t:1:"},
        {"[NaN]", "t:1:"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        json_t *value = (json_t *)&err;
        assert_int_equal(codec_json_parse(rows[i].text, strlen(rows[i].text), "t", &value, &err), -ACT_FAIL);
        assert_null(value);
        assert_ptr_equal(strstr(act_error_text(&err), rows[i].error), act_error_text(&err));
    }
}

TEST(json_depth_is_bounded)
{
    ACT_AUTOFREE char *text = malloc(100000);
    json_t *value;

    memset(text, '[', 100000);
    assert_int_equal(codec_json_parse(text, 100000, "t", &value, &err), -ACT_FAIL);
}

TEST(json_files)
{
    char dir[] = "/tmp/codec-test-XXXXXX";
    CODEC_AUTOJSON json_t *value = json_pack("{s:i, s:[]}", "z", 1, "a"), *again = NULL;
    ACT_AUTOFREE char *text = NULL;

    assert_non_null(mkdtemp(dir));
    ACT_AUTOFREE char *path = act_sprintf("%s/x.json", dir);
    assert_ok(codec_json_write(path, value, 0600, &err), err);
    assert_ok(act_file_read(path, 100, &text, NULL, &err), err);
    assert_string_equal(text, "{\n  \"z\": 1,\n  \"a\": []\n}\n");
    assert_ok(codec_json_read(path, 100, &again, &err), err);
    assert_true(json_equal(value, again));
    json_decref(again);
    assert_int_equal(codec_json_read(path, 5, &again, &err), -ACT_FAIL);
    assert_null(again);
    assert_int_equal(codec_json_write(path, NULL, 0600, &err), -ACT_FAIL);
    assert_ok(act_remove_tree(dir, &err), err);
    assert_int_equal(codec_json_read(path, 100, &again, &err), -ACT_NOT_FOUND);
}

TEST(json_bytes)
{
    static const char *const texts[] = {"", "plain", "\xc3\xa9", "\xff\xfe\x01", "tab\tnew\nline", "a\xc3"};
    struct act_strv strings = {0}, again = {0};

    for (size_t i = 0; i < COUNT(texts); i++)
        act_strv_push(&strings, texts[i]);
    CODEC_AUTOJSON json_t *array = codec_json_strv_new(&strings);
    assert_true(json_is_string(json_array_get(array, 2)));
    assert_true(json_is_object(json_array_get(array, 3)));
    assert_true(codec_json_strv_get(array, &again));
    assert_int_equal(again.n, strings.n);
    for (size_t i = 0; i < again.n; i++)
        assert_string_equal(again.v[i], texts[i]);
    act_strv_release(&strings);
    act_strv_release(&again);
}

TEST(json_bytes_refuses)
{
    static const char *const rows[] = {
        "[1]",
        "[null]",
        "[{}]",
        "[{\"base64\": 1}]",
        "[{\"base64\": \"*\"}]",
        "[{\"base64\": \"QQA=\"}]",
        "[{\"base64\": \"QQ==\", \"more\": 1}]",
        "[[]]",
        "{}",
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CODEC_AUTOJSON json_t *value = NULL;
        struct act_strv out = {0};
        assert_ok(codec_json_parse(rows[i], strlen(rows[i]), "t", &value, &err), err);
        assert_false(codec_json_strv_get(value, &out));
        act_strv_release(&out);
    }
}

/* -- YAML -- */

/* The tree as text: strings in quotes, other scalars as they are, with the place of members when wanted. */
static void render(const struct yaml *value, struct act_buf *out)
{
    if (value->kind == YAML_SCALAR) {
        act_buf_addf(out, value->quoted ? "'%s'" : "%s", value->text);
        return;
    }
    act_buf_addc(out, value->kind == YAML_MAP ? '{' : '[');
    for (size_t i = 0; i < value->n; i++) {
        act_buf_adds(out, i ? ", " : "");
        if (value->kind == YAML_MAP)
            act_buf_addf(out, "%s: ", value->items[i]->key);
        render(value->items[i], out);
    }
    act_buf_addc(out, value->kind == YAML_MAP ? '}' : ']');
}

static struct yaml *codec_test_parse(const char *text)
{
    struct yaml *root = NULL;

    assert_ok(yaml_parse(text, strlen(text), "t", &root, &err), err);
    return root;
}

TEST(yaml_reads)
{
    static const struct {
        const char *text, *tree;
    } rows[] = {
        {"", "{}"},
        {"---\n", "{}"},
        {"# nothing\n", "{}"},
        {"~", "{}"},
        {"\xef\xbb\xbf"
         "a: 1\n",
         "{a: 1}"},
        {"a: 1\r\nb: 'x'\r\n", "{a: 1, b: 'x'}"},
        {"{\"a\": [1, \"2\", null]}", "{a: [1, '2', null]}"},
        {"a:\n  - x\n  -\n  - \"\"\n", "{a: [x, , '']}"},
        {"- [a, b]\n- {c: d}\n", "[[a, b], {c: d}]"},
        {"just text", "just text"},
        {"a: |\n  one\n  two\n", "{a: 'one\ntwo\n'}"},
        {"a: !!str 4\nb: !!int '4'\nc: ! 5\n", "{a: '4', b: 4, c: '5'}"},
        {"a: &x {k: 1}\nb: *x\n", "{a: {k: 1}, b: {k: 1}}"},
        {"a: &x 1\nb: &x 2\nc: *x\n", "{a: 1, b: 2, c: 2}"},
        {"d: &d {p: 1, q: 2}\nx:\n  <<: *d\n  q: 3\n", "{d: {p: 1, q: 2}, x: {q: 3, p: 1}}"},
        {"x:\n  <<: [{a: 1}, {a: 2, b: 3}]\n", "{x: {a: 1, b: 3}}"},
        {"x:\n  <<: &k {a: &v 1}\ny: [*k, *v]\n", "{x: {a: 1}, y: [{a: 1}, 1]}"},
        {"sas: ?sv=1&sig=a%3D\n", "{sas: ?sv=1&sig=a%3D}"},
        {"1: x\ntrue: y\n", "{1: x, true: y}"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct yaml *root = codec_test_parse(rows[i].text);
        struct act_buf out = {0};
        render(root, &out);
        assert_string_equal(out.data, rows[i].tree);
        act_buf_release(&out);
        yaml_tree_free(root);
    }
}

TEST(yaml_refuses)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"a: 1\nb: 2\na: 3\n", "t:3:1: the key is given twice; key 'a'"},
        {"a:\n  b: 1\n  b: 2\n", "t:3:3: the key is given twice; key 'b'"},
        {"a:\n\tb: 1\n", "t:2:1: found character that cannot start any token; the line is indented with a tab"},
        {"a: [1, 2\n", "t:2:1: "},
        {"a: 'x\n", "t:2:1: "},
        {"a: 1\n b: 2\n", "t:2:3: "},
        {"a: *nope\n", "t:1:4: an alias"},
        {"a: &x [*x]\n", "t:1:8: an alias inside"},
        {"a: 1\n---\nb: 2\n", "t:2:1: a second document"},
        {"a: !!python/object:os.system x\n", "t:1:4: a tag"},
        {"a: !!set {x}\n", "t:1:4: a tag"},
        {"? [a]\n: b\n", "t:1:3: a key must be plain text"},
        {"{a: 1, *x : 2}", "t:1:8: a key must be plain text"},
        {"a: 1\nb\xc3: 2\n", "t:2:1: the line is not UTF-8"},
        {"a: 1\nb: \"\x01\"\n", "t:2:5: control characters are not allowed"},
        {"a: \"x\\0y\"\n", "t:1:4: text with a NUL"},
        {"\"a\\0b\": 1\n", "t:1:1: a key must be plain text"},
        {"a:\n  <<: 3\n", "t:2:3: '<<' takes a map"},
        {"<<: {a: 1}\n<<: {b: 1}\n", "t:2:1: the key is given twice"},
        {"\xff\xfe"
         "a\0:\0",
         "t:1:1: the line is not UTF-8"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct yaml *root = (struct yaml *)&err;
        assert_int_equal(yaml_parse(rows[i].text, strlen(rows[i].text), "t", &root, &err), -ACT_CONFIG);
        assert_null(root);
        assert_int_equal(err.code, ACT_CONFIG);
        if (strstr(act_error_text(&err), rows[i].error) != act_error_text(&err))
            fail_msg("'%s' gives '%s', not '%s'", rows[i].text, act_error_text(&err), rows[i].error);
    }
}

TEST(yaml_places)
{
    struct yaml *root = codec_test_parse("a: 1\n\xc3\xa9: {b: 2,\n  c: 3}\n");
    struct yaml *second = yaml_get(root, "\xc3\xa9");

    assert_int_equal(second->line, 2);
    assert_int_equal(second->column, 1);
    assert_int_equal(yaml_get(second, "c")->column, 3);
    assert_null(yaml_get(second, "d"));
    assert_null(yaml_get(NULL, "d"));
    assert_null(yaml_get(yaml_get(root, "a"), "d"));
    assert_int_equal(yaml_error(second, &err, "no '%s'", "x"), -ACT_CONFIG);
    assert_string_equal(act_error_text(&err), "t:2:1: no 'x'");
    yaml_tree_free(root);
}

static void expect_refused(struct act_buf *text, const char *what)
{
    struct yaml *root = NULL;

    assert_int_equal(yaml_parse(text->data, text->len, "t", &root, &err), -ACT_CONFIG);
    assert_null(root);
    assert_contains(act_error_text(&err), what);
    act_buf_release(text);
}

TEST(yaml_bounds)
{
    struct act_buf text = {0};

    for (int i = 0; i < 500000; i++)
        act_buf_addc(&text, '[');
    expect_refused(&text, "nested too deeply");
    for (int i = 0; i < 65; i++)
        act_buf_addf(&text, "%*sk:\n", i, "");
    act_buf_addf(&text, "%*sk: 1\n", 65, "");
    expect_refused(&text, "nested too deeply");
    for (int i = 0; i < 100; i++)
        act_buf_addf(&text, "%s%c", i ? "" : "[", 'a');
    while (text.len < (1 << 20) + 1)
        act_buf_addc(&text, ' ');
    expect_refused(&text, "larger than 1 MiB");
    for (int i = 0; i < 100001; i++)
        act_buf_adds(&text, "- 1\n");
    expect_refused(&text, "too many values");
    for (int i = 0; i < 4097; i++)
        act_buf_addf(&text, "k%d: 1\n", i);
    expect_refused(&text, "too many keys");
}

/* The last definition before an alias counts, and one inside of another of the same name. */
TEST(yaml_anchors)
{
    struct yaml *root = codec_test_parse("a: &x 1\nb: *x\nc: &x 2\nd: *x\ne: &x [&x 3, *x]\nf: *x\n");

    assert_string_equal(yaml_get(root, "b")->text, "1");
    assert_string_equal(yaml_get(root, "d")->text, "2");
    assert_string_equal(yaml_get(root, "e")->items[1]->text, "3");
    assert_string_equal(yaml_get(root, "f")->text, "3");
    yaml_tree_free(root);
}

/* A text of many names costs what its length costs: in time of the processor, which other programs do not change. */
static void expect_quick(struct act_buf *text, int expected)
{
    struct yaml *root = NULL;
    clock_t before = clock();

    assert_int_equal(yaml_parse(text->data, text->len, "t", &root, &err), expected);
    assert_true((clock() - before) / CLOCKS_PER_SEC < 8);
    yaml_tree_free(root);
    act_buf_release(text);
}

TEST(yaml_many_names)
{
    struct act_buf text = {0};

    for (int i = 0; i < 49000; i++)
        act_buf_addf(&text, "- &n%d x\n", i);
    for (int i = 0; i < 49000; i++)
        act_buf_addf(&text, "- *n%d\n", i % 10);
    expect_quick(&text, 0);
    for (int i = 0; i < 60000; i++)
        act_buf_addf(&text, "%%TAG !%x! b\n", i);
    expect_quick(&text, -ACT_CONFIG);
    assert_contains(act_error_text(&err), "t:17:1: too many '%TAG'");
}

TEST(yaml_alias_bombs)
{
    struct act_buf text = {0};

    act_buf_adds(&text, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 12; i++)
        act_buf_addf(&text, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i, i - 1, i - 1,
                     i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    expect_refused(&text, "too many values");

    act_buf_adds(&text, "a: &a ");
    for (int i = 0; i < 500000; i++)
        act_buf_addc(&text, 'x');
    act_buf_adds(&text, "\nb:\n");
    for (int i = 0; i < 100; i++)
        act_buf_adds(&text, "- *a\n");
    expect_refused(&text, "too much text");

    act_buf_adds(&text, "m0: &m0 [0]\n");
    for (int i = 1; i < 70; i++)
        act_buf_addf(&text, "m%d: &m%d [*m%d]\n", i, i, i - 1);
    expect_refused(&text, "nested too deeply");
}

TEST(yaml_words)
{
    static const struct {
        const char *text;
        int boolean; /* -1: none */
        bool null, is_int;
        int64_t number;
    } rows[] = {
        {"true", 1, false, false, 0},
        {"Yes", 1, false, false, 0},
        {"ON", 1, false, false, 0},
        {"off", 0, false, false, 0},
        {"No", 0, false, false, 0},
        {"FALSE", 0, false, false, 0},
        {"y", -1, false, false, 0},
        {"tRUE", -1, false, false, 0},
        {"'true'", -1, false, false, 0},
        {"~", -1, true, false, 0},
        {"null", -1, true, false, 0},
        {"", -1, true, false, 0},
        {"''", -1, false, false, 0},
        {"'null'", -1, false, false, 0},
        {"0", -1, false, true, 0},
        {"-12", -1, false, true, -12},
        {"+3", -1, false, true, 3},
        {"0x10", -1, false, true, 16},
        {"010", -1, false, true, 8},
        {"08", -1, false, false, 0},
        {"1_000", -1, false, true, 1000},
        {"0b101", -1, false, true, 5},
        {"-0x1F", -1, false, true, -31},
        {"0x", -1, false, false, 0},
        {"1.0", -1, false, false, 0},
        {"1e3", -1, false, false, 0},
        {"'4'", -1, false, false, 0},
        {"9223372036854775807", -1, false, true, INT64_MAX},
        {"9223372036854775808", -1, false, false, 0},
        {"1:30", -1, false, false, 0},
        {"--1", -1, false, false, 0},
        {"_1", -1, false, false, 0},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *text = act_sprintf("- %s\n", rows[i].text);
        struct yaml *root = codec_test_parse(text);
        bool b = false;
        int64_t n = 0;
        assert_int_equal(yaml_as_bool(root->items[0], &b), rows[i].boolean >= 0);
        assert_int_equal(b, rows[i].boolean == 1);
        assert_int_equal(yaml_is_null(root->items[0]), rows[i].null);
        if (yaml_as_int(root->items[0], &n) != rows[i].is_int)
            fail_msg("'%s' as a number", rows[i].text);
        if (rows[i].is_int)
            assert_int_equal(n, rows[i].number);
        yaml_tree_free(root);
    }
    assert_true(yaml_is_null(NULL));
}

TEST(yaml_merges)
{
    struct yaml *base = codec_test_parse("a: 1\nm: {x: 1, y: {z: 1}}\nl: [1, 2]\n");
    struct yaml *over = NULL;
    ACT_AUTO(act_buf) out = {0};

    static const char text[] = "m: {y: {w: 2}, x: 3}\nl: [9]\nn: 5\na: {b: 1}\n";
    assert_ok(yaml_parse(text, strlen(text), "over", &over, &err), err);
    yaml_merge(base, over);
    yaml_put(base, "q", yaml_new_text("mine", "v"));
    yaml_put(base, "q", yaml_new_word("mine", "7"));
    render(base, &out);
    assert_string_equal(out.data, "{a: {b: 1}, m: {x: 3, y: {z: 1, w: 2}}, l: [9], n: 5, q: 7}");
    assert_string_equal(yaml_get(base, "n")->file, "over");
    assert_string_equal(yaml_get(base, "m")->file, "t");
    yaml_error(yaml_get(base, "q"), &err, "bad");
    assert_string_equal(act_error_text(&err), "mine: bad");
    yaml_tree_free(base);
}

TEST(yaml_files)
{
    struct yaml *root = NULL;

    assert_int_equal(yaml_read("/nonexistent/x.yaml", NULL, &root, &err), -ACT_NOT_FOUND);
    assert_int_equal(yaml_read("/tmp", NULL, &root, &err), -ACT_FAIL);
    assert_int_equal(yaml_read("/dev/zero", NULL, &root, &err), -ACT_FAIL);
    assert_null(root);
}

/* -- XML -- */

struct seen {
    struct act_buf log;
    const char *fail_at;
};

static int see_start(void *arg, const char *path, xml_attributes attributes, struct act_error *e)
{
    struct seen *seen = arg;

    act_buf_addf(&seen->log, "<%s", path);
    for (; attributes[0]; attributes += 2)
        act_buf_addf(&seen->log, " %s=%s", attributes[0], attributes[1]);
    act_buf_addc(&seen->log, '>');
    if (seen->fail_at && strcmp(seen->fail_at, path) == 0)
        return act_error_set(e, ACT_DENIED, "enough");
    return 0;
}

static int see_end(void *arg, const char *path, const char *text, struct act_error *e)
{
    struct seen *seen = arg;

    (void)e;
    act_buf_addf(&seen->log, "[%s=%s]", path, text);
    return 0;
}

static const struct xml_handler see = {see_start, see_end};

TEST(xml_reads)
{
    static const char text[] = "\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?>"
                               "<R a=\"1\" b='&lt;'><N>x&amp;y<I/>z&#xe9;</N><E></E></R>";
    struct seen seen = {0};

    assert_ok(xml_parse(text, strlen(text), "t", &see, &seen, &err), err);
    assert_string_equal(seen.log.data, "</R a=1 b=<></R/N></R/N/I>[/R/N/I=][/R/N=x&yz\xc3\xa9]</R/E>[/R/E=][/R=]");
    act_buf_release(&seen.log);
    assert_ok(xml_parse("<a/>", 4, "t", &(struct xml_handler){0}, NULL, &err), err);
}

TEST(xml_refuses)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"", "t:1:1: no element found"},
        {"<a><b></b>", "t:1:11: no element found"},
        {"<a></b>", "t:1:6: mismatched tag"},
        {"<a>&x;</a>", "t:1:4: undefined entity"},
        {"<a/><b/>", "t:1:5: junk after document element"},
        {"<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", "a document type declaration is not allowed"},
        {"<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>", "a document type declaration is not allowed"},
        {"not xml", "t:1:1: "},
        {"<a>\n\xff</a>", "t:2:1: "},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(xml_parse(rows[i].text, strlen(rows[i].text), "t", &(struct xml_handler){0}, NULL, &err),
                         -ACT_FAIL);
        if (!strstr(act_error_text(&err), rows[i].error))
            fail_msg("'%s' gives '%s'", rows[i].text, act_error_text(&err));
    }
}

TEST(xml_handler_stops)
{
    struct seen seen = {.fail_at = "/a/b"};

    assert_int_equal(xml_parse("<a><b/><c/></a>", 15, "t", &see, &seen, &err), -ACT_DENIED);
    assert_string_equal(act_error_text(&err), "enough");
    assert_string_equal(seen.log.data, "</a></a/b>");
    act_buf_release(&seen.log);
}

static void expect_xml_refused(struct act_buf *text, const char *what)
{
    assert_fails(xml_parse(text->data, text->len, "t", &(struct xml_handler){0}, NULL, &err), err, ACT_FAIL, what);
    act_buf_release(text);
}

TEST(xml_bounds)
{
    struct act_buf text = {0};

    for (int i = 0; i < 65; i++)
        act_buf_adds(&text, "<a>");
    expect_xml_refused(&text, "nested too deeply");
    act_buf_adds(&text, "<a>");
    for (int i = 0; i < (64 << 10) + 1; i++)
        act_buf_addc(&text, 'x');
    act_buf_adds(&text, "</a>");
    expect_xml_refused(&text, "the text of an element is too long");
    act_buf_adds(&text, "<");
    for (int i = 0; i < 5000; i++)
        act_buf_addc(&text, 'n');
    act_buf_adds(&text, "/>");
    expect_xml_refused(&text, "an element name is too long");
}

static int codec_test_count_end(void *arg, const char *path, const char *text, struct act_error *e)
{
    (void)path;
    (void)e;
    *(size_t *)arg += strlen(text);
    return 0;
}

/* Longer than what expat is fed at once. */
TEST(xml_long_document)
{
    ACT_AUTO(act_buf) text = {0};
    size_t bytes = 0;

    act_buf_adds(&text, "<a>");
    for (int i = 0; i < 300000; i++)
        act_buf_adds(&text, "<b>123</b>");
    act_buf_adds(&text, "</a>");
    assert_ok(xml_parse(text.data, text.len, "t", &(struct xml_handler){.end = codec_test_count_end}, &bytes, &err),
              err);
    assert_int_equal(bytes, 900000);
}

TEST_MAIN(NULL, NULL)
