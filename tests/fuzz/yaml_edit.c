/* Changing a value of a YAML text: a line with the path, one with the value, then the text. */
#include "fuzz/fuzz.h"

#include "codec/yaml_edit.h"

static const struct yaml *fuzz_yaml_edit_value_at(const struct yaml *tree, const char *path)
{
    ACT_AUTOFREE char *names = act_strdup(path);

    for (char *rest = names, *key; tree && (key = strsep(&rest, "."));)
        tree = yaml_get(tree, key);
    return tree;
}

/* What was edited is YAML, and has this value; NULL: it has none. */
static void fuzz_yaml_edit_check(const char *text, const char *path, const struct yaml *value)
{
    struct yaml *now = NULL;
    struct act_error err = {0};

    FUZZ_CHECK(yaml_parse(text, strlen(text), "edited", &now, &err) == 0);
    const struct yaml *found = fuzz_yaml_edit_value_at(now, path);
    FUZZ_CHECK(value ? found && yaml_is_same(found, value) : !found);
    yaml_tree_free(now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *input = act_strndup((const char *)data, size), *more = NULL, *less = NULL;
    char *text = input, *path = strsep(&text, "\n"), *word = text ? strsep(&text, "\n") : NULL;
    struct yaml *value = NULL;
    struct act_error err = {0};

    if (!text || yaml_parse(word, strlen(word), "value", &value, &err) < 0)
        return 0;
    if (yaml_edit_set(text, "input", path, value, &more, &err) == 0)
        fuzz_yaml_edit_check(more, path, value);
    if (yaml_edit_unset(text, "input", path, &less, &err) == 0 && less)
        fuzz_yaml_edit_check(less, path, NULL);
    yaml_tree_free(value);
    return 0;
}
