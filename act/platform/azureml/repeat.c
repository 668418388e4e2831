/* repeat.c - resubmits the job of another tool: its original body under a new name.
 *
 * Source: learn.microsoft.com/rest/api/azureml/jobs/get and create-or-update, which mark the service's own members.
 */
#include <string.h>

#include "codec/json.h"
#include "platform/azureml/azureml_internal.h"

/* Members that are not there are null in responses, and cannot be sent as that. */
static void drop_nulls(json_t *json)
{
    const char *key;
    void *next;
    size_t i;
    json_t *value;

    json_object_foreach_safe(json, next, key, value)
    {
        if (json_is_null(value))
            json_object_del(json, key);
        else
            drop_nulls(value);
    }
    json_array_foreach(json, i, value) drop_nulls(value);
}

static void aml_repeat_drop(json_t *object, const char *const *names)
{
    for (; *names; names++)
        json_object_del(object, *names);
}

static void drop_own_services(json_t *job)
{
    static const char *const own[] = {"Tracking", "Studio", NULL};
    static const char *const answered[] = {"status", "errorMessage", "endpoint", NULL};
    json_t *services = json_object_get(job, "services"), *service;
    const char *name;

    aml_repeat_drop(services, own);
    json_object_foreach(services, name, service) aml_repeat_drop(service, answered);
    if (json_object_size(services) == 0)
        json_object_del(job, "services");
}

static void drop_own_tags(json_t *job)
{
    json_t *tags = json_object_get(job, "tags"), *value;
    const char *name;
    void *next;

    json_object_foreach_safe(tags, next, name, value) if (act_starts_with(name, "_aml_system_"))
        json_object_del(tags, name);
}

/* Sets the size that this command asks for, and drops the properties that responses have although none were sent. */
static void aml_repeat_resize(json_t *job, const struct run_spec *spec)
{
    json_t *resources = json_object_get(job, "resources"), *distribution = json_object_get(job, "distribution");

    if (json_object_size(json_object_get(resources, "properties")) == 0)
        json_object_del(resources, "properties");
    if (json_is_object(resources) || spec->nodes > 1) {
        if (!resources)
            json_object_set_new(job, "resources", json_object());
        json_object_set_new(json_object_get(job, "resources"), "instanceCount", json_integer(spec->nodes));
    }
    if (json_object_get(distribution, "processCountPerInstance"))
        json_object_set_new(distribution, "processCountPerInstance", json_integer(spec->procs_per_node));
}

json_t *azureml_repeated_body(const json_t *response, const struct run_spec *spec)
{
    static const char *const own[] = {"status", "parameters", "isArchived", "properties", NULL};
    json_t *job = json_deep_copy(json_object_get(response, "properties"));

    drop_nulls(job);
    aml_repeat_drop(job, own);
    drop_own_services(job);
    json_object_del(json_object_get(job, "outputs"), "default");
    drop_own_tags(job);
    aml_repeat_resize(job, spec);
    if (strcmp(codec_json_str(job, "displayName", ""), spec->resubmit_of) == 0)
        json_object_set_new(job, "displayName", json_string(spec->id));
    json_object_set_new(job, "properties", json_pack("{s:s}", "act.resubmit_of", spec->resubmit_of));
    if (!json_object_get(job, "tags"))
        json_object_set_new(job, "tags", json_object());
    json_object_set_new(json_object_get(job, "tags"), "act", json_string("1"));
    return json_pack("{s:o}", "properties", job);
}
