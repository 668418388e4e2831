/* format.c - what the files of Azure Batch AI may say: those of jobs, and those of clusters. */
#include <ctype.h>
#include <string.h>

#include "flow/jobfile/jobfile.h"

enum { COUNT_MAX = 1 << 16 };

/* ---- the format ---- */

enum kind {
    ANYTHING, /* nothing is taken from it */
    TEXT,
    NUMBER, /* a whole number from 0 */
    COUNT,  /* and from 1 */
    YES_NO,
    OBJECT,
    LIST, /* of objects */
};

struct member {
    const char *name;
    enum kind kind;
    bool required;
    const struct member *of; /* of an OBJECT, or of the items of a LIST */
};

static const struct member id_members[] = {{"id", TEXT, true, NULL}, {0}};
static const struct member pair_members[] = {{"name", TEXT, true, NULL}, {"value", TEXT, true, NULL}, {0}};
static const struct member secret_members[] = {
    {"name", TEXT, true, NULL}, {"value", TEXT, false, NULL}, {"valueSecretReference", ANYTHING, false, NULL}, {0}};
static const struct member input_members[] = {{"id", TEXT, true, NULL}, {"path", TEXT, true, NULL}, {0}};
static const struct member output_members[] = {{"id", TEXT, true, NULL},           {"pathPrefix", TEXT, true, NULL},
                                               {"pathSuffix", TEXT, false, NULL},  {"type", ANYTHING, false, NULL},
                                               {"createNew", YES_NO, false, NULL}, {0}};
static const struct member login_members[] = {{"username", TEXT, false, NULL},
                                              {"password", TEXT, false, NULL},
                                              {"passwordSecretReference", ANYTHING, false, NULL},
                                              {0}};
static const struct member registry_members[] = {
    {"serverUrl", TEXT, false, NULL}, {"image", TEXT, true, NULL}, {"credentials", OBJECT, false, login_members}, {0}};
static const struct member container_members[] = {
    {"imageSourceRegistry", OBJECT, true, registry_members}, {"shmSize", TEXT, false, NULL}, {0}};
static const struct member preparation_members[] = {{"commandLine", TEXT, true, NULL}, {0}};
static const struct member constraint_members[] = {{"maxWallClockTime", TEXT, false, NULL}, {0}};

static const struct member share_members[] = {{"accountName", TEXT, false, NULL},
                                              {"azureFileUrl", TEXT, false, NULL},
                                              {"credentials", ANYTHING, false, NULL},
                                              {"relativeMountPath", TEXT, true, NULL},
                                              {"fileMode", TEXT, false, NULL},
                                              {"directoryMode", TEXT, false, NULL},
                                              {0}};
static const struct member blob_members[] = {
    {"accountName", TEXT, false, NULL},     {"containerName", TEXT, false, NULL},
    {"credentials", ANYTHING, false, NULL}, {"relativeMountPath", TEXT, true, NULL},
    {"mountOptions", TEXT, false, NULL},    {0}};
static const struct member server_members[] = {{"fileServer", OBJECT, false, id_members},
                                               {"sourceDirectory", TEXT, false, NULL},
                                               {"relativeMountPath", TEXT, true, NULL},
                                               {"mountOptions", TEXT, false, NULL},
                                               {0}};
static const struct member unmanaged_members[] = {
    {"mountCommand", TEXT, false, NULL}, {"relativeMountPath", TEXT, true, NULL}, {0}};
static const struct member volume_members[] = {{"azureFileShares", LIST, false, share_members},
                                               {"azureBlobFileSystems", LIST, false, blob_members},
                                               {"fileServers", LIST, false, server_members},
                                               {"unmanagedFileSystems", LIST, false, unmanaged_members},
                                               {0}};

static const struct member toolkit_members[] = {{"commandLine", TEXT, true, NULL}, {0}};
static const struct member mpi_members[] = {
    {"commandLine", TEXT, true, NULL}, {"processCount", COUNT, false, NULL}, {0}};
#define SCRIPT_MEMBERS(required)                                                                                       \
    {"pythonScriptFilePath", TEXT, required, NULL}, {"pythonInterpreterPath", TEXT, false, NULL},                      \
    {                                                                                                                  \
        "commandLineArgs", TEXT, false, NULL                                                                           \
    }
#define PROCESSES                                                                                                      \
    {                                                                                                                  \
        "processCount", COUNT, false, NULL                                                                             \
    }
static const struct member script_members[] = {SCRIPT_MEMBERS(true), {0}};
static const struct member python_members[] = {SCRIPT_MEMBERS(true), PROCESSES, {0}};
static const struct member pytorch_members[] = {
    SCRIPT_MEMBERS(true), PROCESSES, {"communicationBackend", TEXT, false, NULL}, {0}};
static const struct member caffe_members[] = {
    SCRIPT_MEMBERS(false), PROCESSES, {"configFilePath", TEXT, false, NULL}, {0}};
static const struct member cntk_members[] = {
    SCRIPT_MEMBERS(false), PROCESSES, {"configFilePath", TEXT, false, NULL}, {"languageType", TEXT, false, NULL}, {0}};
static const struct member tensorflow_members[] = {{"pythonScriptFilePath", TEXT, true, NULL},
                                                   {"pythonInterpreterPath", TEXT, false, NULL},
                                                   {"masterCommandLineArgs", TEXT, false, NULL},
                                                   {"workerCommandLineArgs", TEXT, false, NULL},
                                                   {"parameterServerCommandLineArgs", TEXT, false, NULL},
                                                   {"workerCount", COUNT, false, NULL},
                                                   {"parameterServerCount", COUNT, false, NULL},
                                                   {0}};

static const struct member job_members[] = {
    {"nodeCount", COUNT, true, NULL},
    {"cluster", OBJECT, false, id_members},
    {"stdOutErrPathPrefix", TEXT, false, NULL},
    {"containerSettings", OBJECT, false, container_members},
    {"mountVolumes", OBJECT, false, volume_members},
    {"inputDirectories", LIST, false, input_members},
    {"outputDirectories", LIST, false, output_members},
    {"environmentVariables", LIST, false, pair_members},
    {"secrets", LIST, false, secret_members},
    {"jobPreparation", OBJECT, false, preparation_members},
    {"constraints", OBJECT, false, constraint_members},
    {"customToolkitSettings", OBJECT, false, toolkit_members},
    {"customMpiSettings", OBJECT, false, mpi_members},
    {"pyTorchSettings", OBJECT, false, pytorch_members},
    {"tensorFlowSettings", OBJECT, false, tensorflow_members},
    {"horovodSettings", OBJECT, false, python_members},
    {"cntkSettings", OBJECT, false, cntk_members},
    {"chainerSettings", OBJECT, false, python_members},
    {"caffeSettings", OBJECT, false, caffe_members},
    {"caffe2Settings", OBJECT, false, script_members},
    {"schedulingPriority", TEXT, false, NULL},
    {"priority", ANYTHING, false, NULL},
    {"experimentName", TEXT, false, NULL},
    /* what the service adds when it shows a job */
    {"toolType", ANYTHING, false, NULL},
    {"jobOutputDirectoryPathSegment", ANYTHING, false, NULL},
    {"creationTime", ANYTHING, false, NULL},
    {"provisioningState", ANYTHING, false, NULL},
    {"provisioningStateTransitionTime", ANYTHING, false, NULL},
    {"executionState", ANYTHING, false, NULL},
    {"executionStateTransitionTime", ANYTHING, false, NULL},
    {"executionInfo", ANYTHING, false, NULL},
    {0},
};
static const struct member file_members[] = {{"$schema", TEXT, false, NULL},  {"properties", OBJECT, true, job_members},
                                             {"location", TEXT, false, NULL}, {"id", ANYTHING, false, NULL},
                                             {"name", ANYTHING, false, NULL}, {"type", ANYTHING, false, NULL},
                                             {"tags", ANYTHING, false, NULL}, {0}};

static const struct member manual_members[] = {
    {"targetNodeCount", NUMBER, true, NULL}, {"nodeDeallocationOption", ANYTHING, false, NULL}, {0}};
static const struct member auto_members[] = {{"minimumNodeCount", NUMBER, true, NULL},
                                             {"maximumNodeCount", COUNT, true, NULL},
                                             {"initialNodeCount", ANYTHING, false, NULL},
                                             {0}};
static const struct member scale_members[] = {
    {"manual", OBJECT, false, manual_members}, {"autoScale", OBJECT, false, auto_members}, {0}};
static const struct member image_members[] = {{"publisher", TEXT, false, NULL},
                                              {"offer", TEXT, false, NULL},
                                              {"sku", TEXT, false, NULL},
                                              {"version", TEXT, false, NULL},
                                              {"id", TEXT, false, NULL},
                                              {"virtualMachineImageId", TEXT, false, NULL},
                                              {0}};
static const struct member machine_members[] = {{"imageReference", OBJECT, false, image_members}, {0}};
static const struct member setup_members[] = {{"setupTask", ANYTHING, false, NULL},
                                              {"mountVolumes", ANYTHING, false, NULL},
                                              {"performanceCountersSettings", ANYTHING, false, NULL},
                                              {0}};
static const struct member user_members[] = {{"adminUserName", TEXT, false, NULL},
                                             {"adminUserSshPublicKey", TEXT, false, NULL},
                                             {"adminUserPassword", ANYTHING, false, NULL},
                                             {0}};
static const struct member cluster_members[] = {
    {"vmSize", TEXT, false, NULL},
    {"vmPriority", TEXT, false, NULL},
    {"scaleSettings", OBJECT, false, scale_members},
    {"virtualMachineConfiguration", OBJECT, false, machine_members},
    {"nodeSetup", OBJECT, false, setup_members},
    {"userAccountSettings", OBJECT, false, user_members},
    {"subnet", OBJECT, false, id_members},
    /* what the service adds when it shows a cluster */
    {"allocationState", ANYTHING, false, NULL},
    {"allocationStateTransitionTime", ANYTHING, false, NULL},
    {"creationTime", ANYTHING, false, NULL},
    {"currentNodeCount", ANYTHING, false, NULL},
    {"errors", ANYTHING, false, NULL},
    {"nodeStateCounts", ANYTHING, false, NULL},
    {"provisioningState", ANYTHING, false, NULL},
    {"provisioningStateTransitionTime", ANYTHING, false, NULL},
    {0},
};
static const struct member cluster_file_members[] = {
    {"$schema", TEXT, false, NULL},  {"properties", OBJECT, true, cluster_members},
    {"location", TEXT, false, NULL}, {"id", ANYTHING, false, NULL},
    {"name", ANYTHING, false, NULL}, {"type", ANYTHING, false, NULL},
    {"tags", ANYTHING, false, NULL}, {0}};

/* ---- whether a file has that format ---- */

struct check {
    const char *file;
    const char *kind; /* "job file" */
    struct act_error *err;
};

static int wrong(const struct check *c, const char *place, const char *must)
{
    return act_error_set(c->err, ACT_CONFIG, "%s: '%s' must be %s", c->file, place, must);
}

static const struct member *jobfile_format_find_member(const struct member *members, const char *name)
{
    while (members->name && strcmp(members->name, name) != 0)
        members++;
    return members->name ? members : NULL;
}

static int unknown(const struct check *c, const char *place, const char *name, const struct member *members)
{
    enum { MEMBERS_MAX = 64 };
    const char *names[MEMBERS_MAX + 1] = {0};

    for (size_t i = 0; members[i].name; i++)
        names[i] = members[i].name;
    if (members == file_members && jobfile_format_find_member(job_members, name))
        return act_error_set(c->err, ACT_CONFIG, "%s: '%s' must be a member of 'properties'", c->file, name);
    const char *near = act_nearest(name, names);
    return act_error_set(c->err, ACT_CONFIG, "%s: '%s%s%s' is nothing that a %s has%s%s%s", c->file, place,
                         *place ? "." : "", name, c->kind, near ? "; did you mean '" : "", near ? near : "",
                         near ? "'?" : "");
}

/* Returns the member that the Python SDK writes as name, "processCount" for "process_count", as a new string. */
static char *as_member(const char *name)
{
    char *camel = act_strdup(name), *end = camel;

    for (const char *c = name; *c; c++)
        *end++ = *c == '_' && c[1] ? (char)toupper((unsigned char)*++c) : *c;
    *end = '\0';
    return camel;
}

/* Calls the members by the names that the format has for them, and takes comments out. */
static void rename_members(json_t *object, const struct member *members)
{
    const char *name;
    json_t *value;
    void *next;

    json_object_foreach_safe(object, next, name, value)
    {
        ACT_AUTOFREE char *camel = as_member(name);
        if (act_starts_with(name, "$comment")) {
            json_object_del(object, name);
        } else if (!jobfile_format_find_member(members, name) && jobfile_format_find_member(members, camel) &&
                   !json_object_get(object, camel)) {
            json_object_set(object, camel, value);
            json_object_del(object, name);
        }
    }
}

static int check_object(const struct check *c, const char *place, json_t *object, const struct member *members);

static int check_list(const struct check *c, const char *place, const json_t *list, const struct member *members)
{
    size_t i;
    json_t *item;
    int rc = 0;

    json_array_foreach(list, i, item)
    {
        ACT_AUTOFREE char *at = act_sprintf("%s[%zu]", place, i);
        rc = json_is_object(item) ? check_object(c, at, item, members) : wrong(c, at, "an object");
        if (rc < 0)
            break;
    }
    return rc;
}

static bool jobfile_format_is_number(const json_t *value, json_int_t least)
{
    return json_is_integer(value) && json_integer_value(value) >= least && json_integer_value(value) <= COUNT_MAX;
}

static int check_value(const struct check *c, const char *place, json_t *value, const struct member *m)
{
    switch (m->kind) {
    case ANYTHING:
        return 0;
    case TEXT:
        return json_is_string(value) ? 0 : wrong(c, place, "a text");
    case NUMBER:
        return jobfile_format_is_number(value, 0) ? 0 : wrong(c, place, "a whole number from 0 to 65536");
    case COUNT:
        return jobfile_format_is_number(value, 1) ? 0 : wrong(c, place, "a whole number from 1 to 65536");
    case YES_NO:
        return json_is_boolean(value) ? 0 : wrong(c, place, "true or false");
    case OBJECT:
        return json_is_object(value) ? check_object(c, place, value, m->of) : wrong(c, place, "an object");
    case LIST:
        return json_is_array(value) ? check_list(c, place, value, m->of) : wrong(c, place, "a list");
    }
    return 0;
}

/* A member that is null is none: so the service's tools write what was not given. */
static int check_object(const struct check *c, const char *place, json_t *object, const struct member *members)
{
    const char *name;
    json_t *value;
    int rc = 0;

    rename_members(object, members);
    json_object_foreach(object, name, value)
    {
        ACT_AUTOFREE char *at = act_sprintf("%s%s%s", place, *place ? "." : "", name);
        const struct member *m = jobfile_format_find_member(members, name);
        if (!m)
            return unknown(c, place, name, members);
        if (!json_is_null(value))
            rc = check_value(c, at, value, m);
        if (rc < 0)
            return rc;
    }
    for (const struct member *m = members; m->name; m++) {
        value = json_object_get(object, m->name);
        if (m->required && (!value || json_is_null(value)))
            return act_error_set(c->err, ACT_CONFIG, "%s: '%s%s%s' is missing", c->file, place, *place ? "." : "",
                                 m->name);
    }
    return 0;
}

static int jobfile_format_check_file(const struct check *c, json_t *json, const struct member *members)
{
    if (!json_is_object(json))
        return act_error_set(c->err, ACT_CONFIG, "%s: a %s is a JSON object", c->file, c->kind);
    return check_object(c, "", json, members);
}

int flow_job_file_check(json_t *json, const char *name, struct act_error *err)
{
    return jobfile_format_check_file(&(struct check){name, "job file", err}, json, file_members);
}

int flow_batch_cluster_check(json_t *json, const char *name, struct act_error *err)
{
    return jobfile_format_check_file(&(struct check){name, "file of a cluster", err}, json, cluster_file_members);
}
