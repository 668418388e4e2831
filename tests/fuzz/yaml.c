/* YAML documents, and what their scalars mean. */
#include "fuzz/fuzz.h"

#include "codec/yaml.h"

static void fuzz_yaml_read_all(const struct yaml *value)
{
    bool truth;
    int64_t number;

    (void)(yaml_is_null(value) || yaml_as_bool(value, &truth) || yaml_as_int(value, &number));
    FUZZ_CHECK(value->line > 0 && value->column > 0);
    for (size_t i = 0; i < value->n; i++)
        fuzz_yaml_read_all(value->items[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct yaml *root = NULL;
    struct act_error err = {0};
    int rc = yaml_parse((const char *)data, size, "input", &root, &err);

    FUZZ_CHECK(rc == 0 ? root != NULL : rc == -ACT_CONFIG && !root && *act_error_text(&err));
    if (rc == 0)
        fuzz_yaml_read_all(root);
    yaml_tree_free(root);
    return 0;
}
