/* history.c - where the run history of a workspace is: as it is set, as it was within the last day, or as the workspace
 * says, by one of several members of which not each leads to it everywhere (private links). A host that does not
 * answer, or does not know the workspace, is left for the next one that is named.
 */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "codec/json.h"
#include "config/config.h"
#include "platform/azureml/azureml_internal.h"

/* ---- what the workspace says ---- */

char *azureml_tracking_history(const json_t *workspace)
{
    static const char scheme[] = "azureml://";
    const char *uri = codec_json_str(json_object_get(workspace, "properties"), "mlFlowTrackingUri", "");

    if (!act_starts_with(uri, scheme))
        return NULL;
    const char *host = uri + strlen(scheme);
    size_t n = strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:");
    return n && (host[n] == '/' || !host[n]) ? act_sprintf("https://%.*s", (int)n, host) : NULL;
}

char *azureml_region_history(const json_t *workspace, const struct auth_cloud *cloud)
{
    const char *location = codec_json_str(workspace, "location", "");
    ACT_AUTOFREE char *region = act_calloc(1, strlen(location) + 1);
    size_t n = 0;

    for (const char *c = location; *c; c++)
        if (*c != ' ')
            region[n++] = *c >= 'A' && *c <= 'Z' ? (char)(*c + 'a' - 'A') : *c;
    return n ? act_sprintf("https://%s.%s", region, cloud->azureml_domain) : NULL;
}

char *azureml_discovered_history(const json_t *response)
{
    static const char *const members[] = {"api", "history"};

    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        const char *url = codec_json_str(response, members[i], "");
        size_t n = strlen(url);
        if (!http_is_private(url) || strpbrk(url, "?#@ "))
            continue;
        while (n && url[n - 1] == '/')
            n--;
        return act_strndup(url, n);
    }
    return NULL;
}

static void aml_history_set_flag(struct http_call *call)
{
    *(bool *)call->arg = true;
}

/* Asks the address that the workspace names for this. It gets no token. NULL: it does not tell. New string. */
static char *ask_discovery(const struct azureml *a, const char *url)
{
    enum { RESPONSE_MAX = 1 << 20 };
    bool finished = false;
    struct http_call call = {.method = "GET",
                             .url = act_strdup(url),
                             .max_body = RESPONSE_MAX,
                             .done = aml_history_set_flag,
                             .arg = &finished};
    CODEC_AUTOJSON json_t *response = NULL;

    http_start(services_http(a->base.services), &call);
    engine_run(services_engine(a->base.services), &finished);
    if (call.rc < 0)
        act_trace("azureml", "no discovery: %s", act_error_text(&call.error));
    else if (call.status != 200 || call.body_text.len == 0 ||
             codec_json_parse(call.body_text.data, call.body_text.len, "response", &response, NULL) < 0)
        act_trace("azureml", "no discovery: HTTP %d", call.status);
    http_call_release(&call);
    return azureml_discovered_history(response);
}

static char *by_tracking(const struct azureml *a)
{
    return azureml_tracking_history(a->workspace_response);
}

static char *by_discovery(const struct azureml *a)
{
    const json_t *properties = json_object_get(a->workspace_response, "properties");
    const char *url = codec_json_str(properties, "discoveryUrl", "");

    return http_is_private(url) ? ask_discovery(a, url) : NULL;
}

static char *by_region(const struct azureml *a)
{
    return azureml_region_history(a->workspace_response, a->cloud);
}

/* ---- the remembered host ---- */

/* <act_cache_dir()>/azureml-<hash of the workspace>.json: {"workspace", "history", "read" (Unix time), "tenant"}. It
 * saves a request for each command; what cannot be kept only costs that. */
static char *aml_history_memory_path(const struct azureml *a)
{
    enum { HASH_SHOWN = 16 };
    ACT_AUTOFREE char *dir = act_cache_dir();
    char hash[ACT_SHA256_HEX];
    struct act_sha256 h;

    act_sha256_init(&h);
    act_sha256_add(&h, arm_endpoint(a->arm), strlen(arm_endpoint(a->arm)));
    act_sha256_add(&h, a->workspace, strlen(a->workspace));
    act_sha256_done(&h, hash);
    return act_sprintf("%s/azureml-%.*s.json", dir, HASH_SHOWN, hash);
}

/* A new reference; NULL: nothing is known of this workspace. */
static json_t *aml_history_read_memory(const struct azureml *a)
{
    enum { MEMORY_MAX = 64 << 10 };
    ACT_AUTOFREE char *path = aml_history_memory_path(a);
    json_t *memory = NULL;
    struct act_error ignored;

    if (codec_json_read(path, MEMORY_MAX, &memory, &ignored) < 0)
        return NULL;
    if (strcmp(codec_json_str(memory, "workspace", ""), a->workspace) == 0)
        return memory;
    json_decref(memory);
    return NULL;
}

static char *remembered_history(const struct azureml *a)
{
    enum { KEEP_S = 24 * 3600 };
    CODEC_AUTOJSON json_t *memory = aml_history_read_memory(a);
    int64_t now = act_now_unix_s(), read = codec_json_int(memory, "read", 0);
    const char *history = codec_json_str(memory, "history", "");
    return *history && read <= now && now - read < KEEP_S ? act_strdup(history) : NULL;
}

static void remember_history(const struct azureml *a)
{
    ACT_AUTOFREE char *path = aml_history_memory_path(a);
    const char *tenant = codec_json_str(json_object_get(a->workspace_response, "properties"), "tenantId", NULL);
    CODEC_AUTOJSON json_t *memory = json_pack("{s:s, s:s, s:I, s:s*}", "workspace", a->workspace, "history", a->history,
                                              "read", (json_int_t)act_now_unix_s(), "tenant", tenant);

    platform_remember("azureml", path, memory);
}

static void forget_history(const struct azureml *a)
{
    ACT_AUTOFREE char *path = aml_history_memory_path(a);

    if (unlink(path) == 0)
        act_trace("azureml", "'%s' is no longer taken for the run history", a->history);
}

char *azureml_tenant(const struct azureml *a)
{
    CODEC_AUTOJSON json_t *memory = aml_history_read_memory(a);

    return codec_json_strdup(memory, "tenant");
}

/* ---- which it is ---- */

/* The first host named by the workspace that has not failed. */
static int find_history(struct azureml *a, struct act_error *err)
{
    static char *(*const ways[])(const struct azureml *) = {by_tracking, by_discovery, by_region};
    const json_t *workspace;
    int rc = azureml_workspace(a, &workspace, err);

    for (size_t i = 0; rc == 0 && i < sizeof(ways) / sizeof(ways[0]); i++) {
        char *history = ways[i](a);
        if (history && !act_strv_has(&a->history_failed, history)) {
            free(a->history);
            a->history = history;
            remember_history(a);
            return 0;
        }
        free(history);
    }
    return rc < 0 ? rc
                  : act_error_set(err, ACT_FAIL,
                                  "the workspace '%s' does not say where its run history is; set "
                                  "'azureml.history_endpoint'",
                                  aml_config_keys(a->config)->workspace_name);
}

static int trust_history(struct azureml *a, struct act_error *err)
{
    ACT_AUTOFREE char *origin = config_origin(a->config, "azureml.history_endpoint");
    ACT_AUTOFREE char *said_by = azureml_keys(a->config)->history_endpoint
                                     ? act_sprintf("'azureml.history_endpoint' of '%s'", origin)
                                     : act_strdup("the run history that the workspace names");
    int rc = a->history_trusted ? 0
                                : arm_trust(a->arm, a->history, said_by,
                                            config_is_said_by_user(a->config, "azureml.history_endpoint"), err);

    a->history_trusted = rc == 0;
    return rc;
}

int azureml_history(struct azureml *a, const char **out, struct act_error *err)
{
    struct arm *arm;
    int rc = a->history ? 0 : azureml_arm(a, &arm, err);

    if (rc == 0 && !a->history)
        a->history = azureml_keys(a->config)->history_endpoint ? act_strdup(azureml_keys(a->config)->history_endpoint)
                                                               : remembered_history(a);
    if (rc == 0 && !a->history)
        rc = find_history(a, err);
    if (rc == 0)
        rc = trust_history(a, err);
    *out = a->history;
    return rc;
}

/* ---- asking it ---- */

/* Tells whether this host does not know the workspace. A host that gave any other response does. */
static bool aml_history_is_elsewhere(struct azureml *a, const struct arm_call *call)
{
    const char *code = call->error.service_code;
    bool unknown = call->status == 404 && (!*code || strstr(code, "Workspace"));

    if (azureml_keys(a->config)->history_endpoint || a->history_answered)
        return false;
    a->history_answered = call->status != 0 && !unknown;
    return unknown || call->error.network;
}

/* To the same path at the host that is taken now. */
static void turn_to(const struct azureml *a, struct arm_call *call, size_t base_len)
{
    char *url = act_sprintf("%s%s", a->history, call->url + base_len);
    struct arm_call again = {.method = call->method,
                             .what = call->what,
                             .url = url,
                             .api_version = call->api_version,
                             .body = json_incref(call->body),
                             .missing_is_fine = call->missing_is_fine,
                             .max_body = call->max_body};

    arm_call_release(call);
    *call = again;
}

int azureml_ask_history(struct azureml *a, struct arm_call *call, struct act_error *err)
{
    struct act_error ignored;
    int rc = arm_do(a->arm, call, err);

    while (aml_history_is_elsewhere(a, call)) {
        size_t base_len = strlen(a->history);
        act_strv_push(&a->history_failed, a->history);
        forget_history(a);
        if (find_history(a, &ignored) < 0)
            return rc;
        a->history_trusted = false;
        rc = trust_history(a, err);
        if (rc < 0)
            return rc;
        turn_to(a, call, base_len);
        rc = arm_do(a->arm, call, err);
    }
    return rc;
}
