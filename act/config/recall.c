/* recall.c - configurations that are no file any more: what a run wrote down of the one it was submitted with. */
#include <string.h>

#include "codec/json.h"
#include "config/config_internal.h"

int config_recall(const struct config_recorded *recorded, struct config *out, struct act_error *err)
{
    ACT_AUTO(config_findings) ignored = {0}; /* it was judged when the run was submitted */
    const char *project = recorded->project ? recorded->project : "/";
    CODEC_AUTOJSON json_t *values = json_copy(recorded->values);
    struct yaml *tree = NULL;

    json_object_set_new(values, "platform", codec_json_bytes_new(recorded->platform));
    ACT_AUTOFREE char *text = codec_json_line(values);
    int rc = yaml_parse(text, strlen(text), CONFIG_RECORDED, &tree, err);

    *out = (struct config){0};
    if (rc < 0) {
        yaml_tree_free(tree);
        return rc;
    }
    *out = (struct config){.cluster = act_strdup(recorded->cluster), .project_root = act_strdup(project)};
    out->values = act_calloc(1, sizeof(*out->values));
    out->values->tree = tree;
    out->values->current_dir = act_strdup(project);
    out->values->cluster_origin = act_strdup(CONFIG_RECORDED);
    config_read_tree(out, &ignored);
    return 0;
}

/* Masked secrets are not known any more, and text that is not UTF-8 is no YAML. */
static void drop_unknown(json_t *object)
{
    const char *key;
    json_t *value;
    void *next;

    json_object_foreach_safe(object, next, key, value)
    {
        if (json_is_null(value) || act_streq(json_string_value(value), CONFIG_MASK))
            json_object_del(object, key);
        else if (json_is_object(value))
            drop_unknown(value);
    }
}

char *config_text_of(const json_t *resolved)
{
    static const char *const no_keys[] = {"cluster", "file"};
    CODEC_AUTOJSON json_t *values = json_deep_copy(resolved);

    for (size_t i = 0; i < sizeof(no_keys) / sizeof(no_keys[0]); i++)
        json_object_del(values, no_keys[i]);
    drop_unknown(values);
    return codec_json_line(values);
}
