/* image.c - the image that a job runs in: an environment of the workspace, and a connection to its registry.
 *
 * Source: learn.microsoft.com/rest/api/azureml/environment-versions/create-or-update, workspace-connections/create.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "base/log.h"
#include "codec/json.h"
#include "config/config.h"
#include "platform/azureml/azureml_internal.h"

void azureml_mark(const char *text, char out[AZUREML_MARK])
{
    struct act_sha256 h;
    char hash[ACT_SHA256_HEX];

    act_sha256_init(&h);
    act_sha256_add(&h, text, strlen(text));
    act_sha256_done(&h, hash);
    snprintf(out, AZUREML_MARK, "%.*s", AZUREML_MARK - 1, hash);
}

/* ---- the registry ---- */

/* The name by which docker and kubelets know Docker Hub. */
#define HUB_TARGET "https://index.docker.io/v1/"

char *azureml_registry_target(const struct config_docker *docker)
{
    ACT_AUTOFREE char *registry = config_docker_registry(docker);
    bool plain = docker->address && act_starts_with(docker->address, "http://");

    return config_is_docker_hub(registry) ? act_strdup(HUB_TARGET)
                                          : act_sprintf("%s://%s", plain ? "http" : "https", registry);
}

static bool aml_image_is_given(const char *text)
{
    return text && *text;
}

int azureml_check_image(const struct azureml *a, struct act_error *err)
{
    const struct config_docker *d = &a->config->docker;
    ACT_AUTOFREE char *id = NULL;
    int rc = azureml_environment_id(a, &id, err);

    if (rc < 0)
        return rc;
    const char *missing = NULL;
    if (aml_image_is_given(d->username) && !aml_image_is_given(d->password))
        missing = "password";
    else if (aml_image_is_given(d->username) && id && !aml_image_is_given(d->address))
        missing = "address"; /* the environment determines the image, which is unknown here */
    if (!aml_image_is_given(d->username) && aml_image_is_given(d->password)) /* as in the original */
        act_warn("'docker.password' is not used without a 'docker.username'");
    return missing ? act_error_set(err, ACT_CONFIG, "a private registry needs 'docker.%s' too in '%s'", missing,
                                   a->config->file)
                   : 0;
}

/* Refuses a connection that is there and leads to another registry. What the service does not tell counts as right. */
static int judge_connection(const json_t *have, const char *name, const char *target, struct act_error *err)
{
    static const char category[] = "ContainerRegistry";
    const json_t *is = json_object_get(have, "properties");
    const char *kind = codec_json_str(is, "category", category), *to = codec_json_str(is, "target", target);
    const char *scheme = strstr(to, "://"), *host = scheme ? scheme + 3 : to, *wanted = strstr(target, "://") + 3;
    size_t n = strcspn(wanted, "/");

    if (strcmp(kind, category) == 0 && strncasecmp(host, wanted, n) == 0 && (!host[n] || host[n] == '/'))
        return 0;
    return act_error_set(err, ACT_CONFIG,
                         "the connection '%s' of the workspace is a %s to '%s', not what ACT made for the registry "
                         "'%s'; delete it, it is made again",
                         name, kind, to, target);
}

static int hint_registry(int rc, const char *action, struct act_error *err)
{
    return rc < 0 && err->http_status == 403
               ? act_error_hint(err,
                                "it takes the action 'Microsoft.MachineLearningServices/workspaces/connections/%s'; or "
                                "leave docker.username and docker.password out and give the identity of the compute "
                                "the role AcrPull on the registry",
                                action)
               : rc;
}

static int put_connection(struct azureml *a, const char *what, char *url, const char *target, struct act_error *err)
{
    const struct config_docker *d = &a->config->docker;
    json_t *body = json_pack("{s:{s:s, s:s, s:s, s:{s:s, s:s}}}", "properties", "authType", "UsernamePassword",
                             "category", "ContainerRegistry", "target", target, "credentials", "username", d->username,
                             "password", d->password);
    ACT_AUTO(arm_call) put = azureml_put(a, what, url, body);
    int rc = arm_do(a->arm, &put, err);

    return put.status == 409 ? 0 : hint_registry(rc, "write", err); /* 409: somebody else made it a moment ago */
}

/* An environment cannot hold the user and password of a private registry: a connection of the workspace does, which is
 * named by its content, so that another password makes another. */
int azureml_connect_registry(struct azureml *a, struct act_error *err)
{
    const struct config_docker *d = &a->config->docker;
    char mark[AZUREML_MARK];

    if (!aml_image_is_given(d->username))
        return 0;
    ACT_AUTOFREE char *target = azureml_registry_target(d);
    ACT_AUTOWIPE char *all = act_sprintf("%s\n%s\n%s", target, d->username, d->password);
    azureml_mark(all, mark);
    ACT_AUTOFREE char *what = act_sprintf("connect the workspace to the registry '%s'", target);
    ACT_AUTOFREE char *name = act_sprintf("act-%s", mark);
    CODEC_AUTOJSON json_t *there = NULL;
    int rc = azureml_find(a, what, azureml_url(a, "/connections/%s", name), &there, err);
    if (rc < 0)
        return hint_registry(rc, "read", err);
    return there ? judge_connection(there, name, target, err)
                 : put_connection(a, what, azureml_url(a, "/connections/%s", name), target, err);
}

/* ---- an environment that is there ---- */

static bool aml_image_consists_of(const char *text, size_t n, const char *more)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr(more, text[i]))
            return false;
    return n > 0;
}

/* "/subscriptions/..." or "//registries/..." of a version */
static bool is_version_id(const char *text)
{
    return (act_starts_with(text, "/subscriptions/") || act_starts_with(text, "//registries/")) &&
           strstr(text, "/environments/") && strstr(text, "/versions/") && !strstr(text, "..") &&
           aml_image_consists_of(text, strlen(text), "-_.()/");
}

int azureml_environment_id(const struct azureml *a, char **out, struct act_error *err)
{
    static const char prefix[] = "azureml:";
    const char *image = a->config->docker.image;
    bool named = act_starts_with(image, prefix);
    const char *rest = named ? image + strlen(prefix) : image, *colon = strchr(rest, ':');

    *out = NULL;
    if (!named && *image != '/')
        return 0;
    if (is_version_id(rest))
        *out = act_strdup(act_starts_with(rest, "//") ? image : rest);
    else if (colon && aml_image_consists_of(rest, (size_t)(colon - rest), "-_.") &&
             aml_image_consists_of(colon + 1, strlen(colon + 1), "-_."))
        *out = azureml_url(a, "/environments/%.*s/versions/%s", (int)(colon - rest), rest, colon + 1);
    return *out ? 0
                : act_error_set(err, ACT_CONFIG,
                                "docker.image is '%s': an environment that is there is azureml:NAME:VERSION, "
                                "azureml://registries/REGISTRY/environments/NAME/versions/VERSION, or an id of that "
                                "form which begins with /subscriptions/",
                                image);
}

/* An environment of this workspace can be checked; for others the service will report errors. Archived ones can be
 * used. */
static int look_at_environment(struct azureml *a, const char *id, struct act_error *err)
{
    ACT_AUTOFREE char *what = act_sprintf("look for the environment '%s'", a->config->docker.image);

    if (!act_starts_with(id, a->workspace) || id[strlen(a->workspace)] != '/')
        return 0;
    CODEC_AUTOJSON json_t *there = NULL;
    int rc = azureml_find(a, what, act_strdup(id), &there, err);
    if (rc == 0 && !there)
        rc = act_error_set(err, ACT_NOT_FOUND, "the workspace '%s' has no environment '%s' (docker.image)",
                           aml_config_keys(a->config)->workspace_name, a->config->docker.image);
    return rc;
}

/* ---- one of ACT's own ---- */

static int put_environment(struct azureml *a, const char *what, const char *id, const char *image,
                           struct act_error *err)
{
    json_t *body = json_pack("{s:{s:s, s:s, s:b, s:s, s:{s:s}}}", "properties", "image", image, "osType", "Linux",
                             "isAnonymous", 1, "description", "created by act", "tags", "act", "1");
    ACT_AUTO(arm_call) put = azureml_put(a, what, act_strdup(id), body);
    int rc = arm_do(a->arm, &put, err);

    return rc < 0 && put.status == 409 ? 0 : rc; /* somebody else made it a moment ago */
}

/* Named after the image, so that it is created only once. An archived one can still be used. */
static int make_environment(struct azureml *a, char **out_id, struct act_error *err)
{
    ACT_AUTOFREE char *image = config_docker_image(&a->config->docker);
    char mark[AZUREML_MARK];
    azureml_mark(image, mark);
    ACT_AUTOFREE char *id = azureml_url(a, "/environments/act-%s/versions/1", mark);
    ACT_AUTOFREE char *what = act_sprintf("make the environment of the image '%s'", image);
    CODEC_AUTOJSON json_t *there = NULL;
    int rc = azureml_find(a, what, act_strdup(id), &there, err);

    if (rc == 0 && !there)
        rc = put_environment(a, what, id, image, err);
    if (rc == 0)
        *out_id = act_strdup(id);
    return rc;
}

int azureml_find_environment(struct azureml *a, struct azureml_job_places *out, struct act_error *err)
{
    int rc = azureml_environment_id(a, &out->environment_id, err);

    if (rc < 0)
        return rc;
    return out->environment_id ? look_at_environment(a, out->environment_id, err)
                               : make_environment(a, &out->environment_id, err);
}
