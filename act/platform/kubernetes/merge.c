/* merge.c - k8s.pod merged into the template of a run's pods, and what a server then dropped of it. Pure.
 *
 * Source: kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/; RFC 7396.
 */
#include "platform/kubernetes/kubernetes_internal.h"

bool kubernetes_has_names(const json_t *list)
{
    size_t i;
    json_t *item;

    json_array_foreach(list, i, item)
    {
        if (!*codec_json_str(item, "name", ""))
            return false;
    }
    return json_array_size(list) > 0;
}

static void merge_lists(json_t *list, json_t *patch)
{
    size_t i;
    json_t *item;

    json_array_foreach(patch, i, item)
    {
        json_t *own = codec_json_find(list, "name", codec_json_str(item, "name", ""));
        if (own)
            kubernetes_merge(own, item);
        else
            json_array_append_new(list, json_deep_copy(item));
    }
}

void kubernetes_merge(json_t *object, json_t *patch)
{
    const char *key;
    json_t *value;

    json_object_foreach(patch, key, value)
    {
        json_t *own = json_object_get(object, key);
        if (json_is_null(value)) {
            json_object_del(object, key);
        } else if (kubernetes_has_names(own) && kubernetes_has_names(value)) {
            merge_lists(own, value);
        } else if (json_is_object(value)) {
            if (!json_is_object(own))
                json_object_set_new(object, key, json_object());
            kubernetes_merge(json_object_get(object, key), value);
        } else {
            json_object_set_new(object, key, json_deep_copy(value));
        }
    }
}

/* Tells whether a server leaves the value out of its answer, because it is the same as nothing. */
static bool is_nothing(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return json_object_size(value) == 0;
    case JSON_ARRAY:
        return json_array_size(value) == 0;
    case JSON_STRING:
        return json_string_length(value) == 0;
    case JSON_INTEGER:
    case JSON_REAL:
        return json_number_value(value) == 0;
    case JSON_TRUE:
        return false;
    case JSON_FALSE:
    case JSON_NULL:
        return true;
    }
    return false;
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as a YAML file may be
const char *kubernetes_dropped(json_t *patch, const json_t *made)
{
    const char *key, *dropped = NULL;
    json_t *value;
    size_t i;

    json_object_foreach(patch, key, value)
    {
        const json_t *there = json_object_get(made, key);
        if (!dropped && !is_nothing(value))
            dropped = there ? kubernetes_dropped(value, there) : key;
    }
    json_array_foreach(patch, i, value)
    {
        const char *name = codec_json_str(value, "name", NULL);
        const json_t *there = name ? codec_json_find(made, "name", name) : json_array_get(made, i);
        if (!dropped)
            dropped = kubernetes_dropped(value, there);
    }
    return dropped;
}
