/* yaml_edit_test.c - one value of a YAML text changes, and nothing else does. */
#include "unit/test.h"

#include "codec/yaml_edit.h"

/* value: YAML; NULL: the key is removed. */
static int yaml_edit_test_edit(const char *text, const char *path, const char *value, char **out)
{
    struct yaml *tree = NULL;

    if (!value)
        return yaml_edit_unset(text, "t", path, out, &err);
    assert_ok(yaml_parse(value, strlen(value), "value", &tree, &err), err);
    int rc = yaml_edit_set(text, "t", path, tree, out, &err);
    yaml_tree_free(tree);
    return rc;
}

static void yaml_edit_test_expect(const char *text, const char *path, const char *value, const char *wanted)
{
    ACT_AUTOFREE char *out = NULL;

    assert_ok(yaml_edit_test_edit(text, path, value, &out), err);
    assert_non_null(out);
    assert_string_equal(out, wanted);
}

TEST(edit_replaces)
{
    static const struct {
        const char *text, *path, *value, *wanted;
    } rows[] = {
        {"# a\nnum_gpu: 4  # few\nb: 1\n", "num_gpu", "8", "# a\nnum_gpu: 8  # few\nb: 1\n"},
        {"a: 'x'\n", "a", "'y z'", "a: \"y z\"\n"},
        {"a: \"x\" # c", "a", "z", "a: z # c"},
        {"a:\nb: 1\n", "a", "2", "a: 2\nb: 1\n"},
        {"a:   # c\nb: 1\n", "a", "2", "a: 2   # c\nb: 1\n"},
        {"a: |\n  x\n  y\n# c\nb: 1\n", "a", "z", "a: z\n# c\nb: 1\n"},
        {"a: x\n  y # c\nb: 1\n", "a", "z", "a: z # c\nb: 1\n"},
        {"a:\n  b: 1 # one\n  c: 2\n", "a.b", "3", "a:\n  b: 3 # one\n  c: 2\n"},
        {"a: {b: 1, c: [2]}\n", "a.c", "[3, 4]", "a: {b: 1, c: [3, 4]}\n"},
        {"a:\n- 1\n- 2\nb: 1\n", "a", "[8, 16]", "a: [8, 16]\nb: 1\n"},
        {"a:\n  x: 1\n\n# of b\nb: 1\n", "a", "{z: 2}", "a: {z: 2}\n\n# of b\nb: 1\n"},
        {"é: 'ü'\nä: 1 # ö\nb: 2\n", "b", "3", "é: 'ü'\nä: 1 # ö\nb: 3\n"},
        {"\xef\xbb\xbf"
         "a: 1\r\nb: 2\r\n",
         "a", "3",
         "\xef\xbb\xbf"
         "a: 3\r\nb: 2\r\n"},
        {"{\n  \"a\": {\"b\": 1}\n}\n", "a.b", "true", "{\n  \"a\": {\"b\": true}\n}\n"},
        {"x: &x 1\na: *x\n", "a", "2", "x: &x 1\na: 2\n"},
        {"a: 1\n", "a", "'yes'", "a: \"yes\"\n"},
        {"a: 1\n", "a", "'12:00:00'", "a: \"12:00:00\"\n"},
        {"a: 1\n", "a", "me@host", "a: me@host\n"},
        {"a: 1\n", "a", "~/x", "a: ~/x\n"},
        {"a: 1\n", "a", "0.5", "a: 0.5\n"},
        {"a: 1\n", "a", "'8'", "a: \"8\"\n"},
        {"a: 1\n", "a", "", "a: {}\n"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        yaml_edit_test_expect(rows[i].text, rows[i].path, rows[i].value, rows[i].wanted);
}

/* What is read again is what was written, whatever YAML makes of a character as it stands. */
TEST(edit_keeps_every_character)
{
    static const char *const characters[] = {
        "\x7f",         "\xc2\x80",     "\xc2\x85",     "\xc2\x9f",     "\xc2\xa0",     "\xe2\x80\xa8",
        "\xe2\x80\xa9", "\xef\xbb\xbf", "\xef\xbf\xbe", "\xef\xbf\xbf", "\xef\xbf\xbd", "\x01",
        "\t",           "\n",           "\\\"'",        "\r",           ": # ",         "\xf0\x9f\x8e\x89"};

    for (size_t i = 0; i < COUNT(characters); i++) {
        ACT_AUTOFREE char *text = act_sprintf("a%sb %s", characters[i], characters[i]), *out = NULL;
        struct yaml *value = yaml_new_text("t", text), *tree = NULL;
        assert_ok(yaml_edit_set("# c\nk: 1\n", "t", "k", value, &out, &err), err);
        assert_ok(yaml_parse(out, strlen(out), "t", &tree, &err), err);
        assert_string_equal(yaml_get(tree, "k")->text, text);
        yaml_tree_free(value);
        yaml_tree_free(tree);
    }
    assert_true(yaml_has_special("x\xc2\x85"));
    assert_false(yaml_has_special("x\xc2\xa0\xc3\xbc\n"));
}

TEST(edit_inserts)
{
    static const struct {
        const char *text, *path, *value, *wanted;
    } rows[] = {
        {"", "a", "1", "a: 1\n"},
        {"# only this", "a.b", "1", "# only this\na:\n  b: 1\n"},
        {"---\n", "a", "1", "---\na: 1\n"},
        {"a: 1 # one", "b", "2", "a: 1 # one\nb: 2\n"},
        {"a: 1\r\n", "b.c", "2", "a: 1\r\nb:\r\n  c: 2\r\n"},
        {"a:\n    b: 1 # one\n\n# of d\nd: 1\n", "a.c", "2", "a:\n    b: 1 # one\n    c: 2\n\n# of d\nd: 1\n"},
        {"a:\n  b: |\n    x\nd: 1\n", "a.c", "2", "a:\n  b: |\n    x\n  c: 2\nd: 1\n"},
        {"a:\n  b: 1\n  # x: 2\n\n# of d\nd: 1\n", "a.c", "2", "a:\n  b: 1\n  # x: 2\n  c: 2\n\n# of d\nd: 1\n"},
        {"a:\n    b: 1\n\n  # of a\nd: 1\n", "a.c", "2", "a:\n    b: 1\n\n  # of a\n    c: 2\nd: 1\n"},
        {"a:\n  b:\n    c: 1\n    # of b\n  # of d\n  d: 1\n", "a.b.e", "2",
         "a:\n  b:\n    c: 1\n    # of b\n    e: 2\n  # of d\n  d: 1\n"},
        {"a:\n  b: 1\n  # of a\n", "c.d", "2", "a:\n  b: 1\n  # of a\nc:\n  d: 2\n"},
        {"a:\r\n  b: 1\r\n  # of a", "c", "2", "a:\r\n  b: 1\r\n  # of a\r\nc: 2\r\n"},
        {"a: 1\n\n# b: 2\n", "c", "3", "a: 1\n\n# b: 2\nc: 3\n"},
        {"a: 1\n# e\n...\n", "c", "3", "a: 1\n# e\nc: 3\n...\n"},
        {"a:\n  # x: 1\n\n# of b\nb: 1\n", "a.x", "2", "a:\n  # x: 1\n  x: 2\n\n# of b\nb: 1\n"},
        {"a: # c\n  # x", "a.x", "2", "a: # c\n  # x\n  x: 2\n"},
        {"a: {b: 1}\n", "a.c.d", "2", "a: {b: 1, c: {d: 2}}\n"},
        {"a: {}\n", "a.b", "2", "a: {b: 2}\n"},
        {"a: # c\nb: 1\n", "a.x", "2", "a: # c\n  x: 2\nb: 1\n"},
        {"a: null # c\nb: 1\n", "a.x", "2", "a: # c\n  x: 2\nb: 1\n"},
        {"{\"a\": 1}", "b", "text", "{\"a\": 1, b: text}"},
        {"x: &x {b: 1}\na:\n  <<: *x\n", "a.b", "2", "x: &x {b: 1}\na:\n  <<: *x\n  b: 2\n"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        yaml_edit_test_expect(rows[i].text, rows[i].path, rows[i].value, rows[i].wanted);
}

TEST(edit_removes)
{
    static const struct {
        const char *text, *path, *wanted;
    } rows[] = {
        {"# a\na: 1 # one\n# b\nb: 2\n", "a", "# a\n# b\nb: 2\n"},
        {"a: 1\nb: 2", "b", "a: 1\n"},
        {"a:\n  b: 1\n  c: 2\n", "a.b", "a:\n  c: 2\n"},
        {"a:\n  b: 1\n# d\nd: 2\n", "a.b", "# d\nd: 2\n"},
        {"a:\n- 1\n- 2\nb: 2\n", "a", "b: 2\n"},
        {"a: |\n  x\nb: 2\n", "a", "b: 2\n"},
        {"a: {b: 1, c: 2, d: 3}\n", "a.b", "a: {c: 2, d: 3}\n"},
        {"a: {b: 1, c: 2, d: 3}\n", "a.d", "a: {b: 1, c: 2}\n"},
        {"{\"a\": 1}\n", "a", "{}\n"},
        {"# c\na: 1\n", "a", "# c\n"},
    };
    char *out = NULL;

    for (size_t i = 0; i < COUNT(rows); i++)
        yaml_edit_test_expect(rows[i].text, rows[i].path, NULL, rows[i].wanted);
    assert_ok(yaml_edit_test_edit("a: 1\n", "b.c", NULL, &out), err);
    assert_null(out);
}

TEST(edit_refuses)
{
    static const struct {
        const char *text, *path, *value, *error;
    } rows[] = {
        {"a: 1\n", "a.b", "2", "not a map"},
        {"a: [1]\n", "a.b", "2", "not a map"},
        {"x: &x {b: 1}\na: *x\n", "a.b", "2", "alias"},
        {"x: &x {b: 1}\na: *x\n", "x.b", "2", "form"},
        {"a: &x 1\nb: *x\n", "a", "2", "form"},
        {"a: # why\n- 1\n", "a", "2", "comments"},
        {"a:\n- 1\n# why\n- 2\n", "a", "2", "comments"},
        {"x: &x {b: 1, c: 2}\na: {<<: *x}\n", "a.b", NULL, "alias"},
        {"a: 1\n", "a..b", "2", "not a key"},
        {"a: 1\n", "", "2", "not a key"},
        {"a: 1\na: 2\n", "a", "2", "twice"},
        {"a: [1\n", "a", "2", "t:"},
        {"- 1\n", "a", "2", "not a map"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char *out = NULL;
        assert_true(yaml_edit_test_edit(rows[i].text, rows[i].path, rows[i].value, &out) < 0);
        assert_null(out);
        if (!strstr(act_error_text(&err), rows[i].error))
            fail_msg("%s: %s", rows[i].text, act_error_text(&err));
    }
}

TEST_MAIN(NULL, NULL)
