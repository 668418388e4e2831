/* Changing a value of a YAML text: a line with the path, one with the value, then the text. */
#include "fuzz/fuzz.h"

#include "codec/yaml_edit.h"

static const struct yaml *value_at(const struct yaml *tree, char *path)
{
    for (char *key; tree && (key = strsep(&path, "."));)
        tree = yaml_get(tree, key);
    return tree;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *path = act_strndup((const char *)data, size), *out = NULL, *less = NULL;
    char *rest = path, *at = strsep(&rest, "\n"), *word = rest ? strsep(&rest, "\n") : NULL;
    struct yaml *value = NULL, *now = NULL;
    struct act_error err = {0};

    if (!rest || yaml_parse(word, strlen(word), "value", &value, &err) < 0)
        return 0;
    if (yaml_edit_set(rest, "input", at, value, &out, &err) == 0) {
        FUZZ_CHECK(yaml_parse(out, strlen(out), "out", &now, &err) == 0);
        FUZZ_CHECK(yaml_edit_unset(out, "out", at, &less, &err) < 0 || less);
        const struct yaml *found = value_at(now, at);
        FUZZ_CHECK(found && yaml_is_same(found, value));
    } else {
        FUZZ_CHECK(!out && *act_error_text(&err));
    }
    yaml_tree_free(now);
    yaml_tree_free(value);
    return 0;
}
