/* azureml_prepare.c - what a job needs in the workspace before it can be made.
 *
 * Source: learn.microsoft.com/rest/api/azureml/datastores/create-or-update, environment-versions/create-or-update.
 */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "codec/json.h"
#include "platform/azureml_internal.h"

static void hash_of(const char *text, char out[ACT_SHA256_HEX])
{
    struct act_sha256 h;

    act_sha256_init(&h);
    act_sha256_add(&h, text, strlen(text));
    act_sha256_done(&h, out);
}

/* ---- datastores ---- */

/* The service takes letters, digits and '_' only. */
static void make_name(char *text)
{
    for (char *c = text; *c; c++)
        if (!((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z')))
            *c = '_';
}

/* Which credential nodes get. With a login none: they have the identity of the job. */
enum credential { CREDENTIAL_NONE, CREDENTIAL_KEY, CREDENTIAL_SAS };

static enum credential credential_of(const struct config_account *account)
{
    const char *auth = account->auth;

    if (act_streq(auth, "login") || act_streq(auth, "anonymous"))
        return CREDENTIAL_NONE;
    if (account->sas_token && (!account->account_key || act_streq(auth, "sas")))
        return CREDENTIAL_SAS;
    return account->account_key ? CREDENTIAL_KEY : CREDENTIAL_NONE;
}

/* As the original named it: a rotated key makes a new one. The hash is of all that the service is told, as names that
 * differ in '-' only become the same. */
char *azureml_datastore_name(const struct config_account *account)
{
    enum { HASH_SHOWN = 16, PART_SHOWN = 100 };
    const char *secrets[] = {[CREDENTIAL_NONE] = "",
                             [CREDENTIAL_KEY] = account->account_key,
                             [CREDENTIAL_SAS] = account->sas_token};
    ACT_AUTOFREE char *all = act_sprintf("%s\n%s\n%s\n%s", account->endpoint, account->account_name,
                                         account->container_name, secrets[credential_of(account)]);
    char hash[ACT_SHA256_HEX];

    hash_of(all, hash);
    explicit_bzero(all, strlen(all));
    char *name = act_sprintf("%.*s_%.*s_%.*s", PART_SHOWN, account->account_name, PART_SHOWN,
                             account->container_name, HASH_SHOWN, hash);
    make_name(name);
    return name;
}

/* "core.windows.net" of "https://acct.blob.core.windows.net", and the protocol; an emulator's is its host and port. */
static void split_endpoint(const struct config_account *account, char **out_protocol, char **out_suffix)
{
    const char *at = strstr(account->endpoint, "://");
    const char *host = at ? at + 3 : account->endpoint;
    ACT_AUTOFREE char *blob = act_sprintf("%s.blob.", account->account_name);
    size_t skip = act_starts_with(host, blob) ? strlen(blob) : 0;

    *out_protocol =
        at ? act_strndup(account->endpoint, (size_t)(at - account->endpoint)) : act_strdup("https");
    *out_suffix = act_strndup(host + skip, strcspn(host + skip, "/"));
}

static json_t *credentials(const struct config_account *account)
{
    switch (credential_of(account)) {
    case CREDENTIAL_SAS:
        return json_pack("{s:s, s:{s:s, s:s}}", "credentialsType", "Sas", "secrets", "secretsType", "Sas",
                         "sasToken", account->sas_token);
    case CREDENTIAL_KEY:
        return json_pack("{s:s, s:{s:s, s:s}}", "credentialsType", "AccountKey", "secrets", "secretsType",
                         "AccountKey", "key", account->account_key);
    default:
        return json_pack("{s:s}", "credentialsType", "None");
    }
}

json_t *azureml_datastore_body(const struct config_account *account)
{
    ACT_AUTOFREE char *protocol = NULL;
    ACT_AUTOFREE char *suffix = NULL;

    split_endpoint(account, &protocol, &suffix);
    return json_pack("{s:{s:s, s:s, s:s, s:s, s:s, s:s, s:o}}", "properties", "datastoreType", "AzureBlob",
                     "description", "created by act", "accountName", account->account_name, "containerName",
                     account->container_name, "endpoint", suffix, "protocol", protocol, "credentials",
                     credentials(account));
}

static bool is_known(const struct azureml *a, const char *name)
{
    return act_strv_has(&a->datastores, name);
}

static int register_datastore(struct azureml *a, const struct config_account *account, const char *name,
                              struct act_error *err)
{
    ACT_AUTOFREE char *what = act_sprintf("register the datastore '%s'", name);
    struct arm_call get = {.method = "GET",
                           .what = what,
                           .url = azureml_url(a, "/datastores/%s", name),
                           .api_version = a->api_version,
                           .missing_is_fine = true};
    int rc = is_known(a, name) ? 0 : arm_do(a->arm, &get, err);

    if (rc == 0 && !is_known(a, name) && get.status == 404) {
        struct arm_call put = {.method = "PUT",
                               .what = what,
                               .url = azureml_url(a, "/datastores/%s?skipValidation=true", name),
                               .api_version = a->api_version,
                               .body = azureml_datastore_body(account)};
        rc = arm_do(a->arm, &put, err);
        arm_call_release(&put);
    }
    arm_call_release(&get);
    if (rc == 0 && !is_known(a, name))
        act_strv_push(&a->datastores, name);
    return rc;
}

/* The URI of a path in the store of a row of the configuration, registered where the workspace does not know it. */
static int find_place(struct azureml *a, const struct config_folder *row, const char *path,
                      struct azureml_place *out, struct act_error *err)
{
    struct config_account account;
    ACT_AUTOFREE char *name = NULL;
    int rc = config_account(a->config, row, &account, err);

    if (rc < 0)
        return rc;
    if (account.folder) {
        rc = act_error_set(
            err, ACT_CONFIG,
            "'%s' is a folder store, which no node of Azure can reach: '%s' must be in Blob Storage",
            account.file, row->name);
    } else {
        name = row->datastore_name ? act_strdup(row->datastore_name) : azureml_datastore_name(&account);
        if (!row->datastore_name)
            rc = register_datastore(a, &account, name, err);
        if (rc == 0)
            out->uri = act_sprintf("azureml://datastores/%s/paths/%s", name, path);
    }
    config_account_release(&account);
    return rc;
}

static const struct config_folder *row_of(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->n_folders; i++)
        if (strcmp(config->folders[i].name, name) == 0)
            return &config->folders[i];
    return NULL;
}

static int find_folders(struct azureml *a, const struct run_spec *spec, struct azureml_job_places *out,
                        struct act_error *err)
{
    int rc = 0;

    out->folders = act_calloc(spec->n_folders, sizeof(*out->folders));
    for (size_t i = 0; rc == 0 && i < spec->n_folders; i++) {
        const struct config_folder *row = row_of(a->config, spec->folders[i].name);
        ACT_AUTOFREE char *path = act_sprintf("%s/", spec->folders[i].path);
        rc = row ? find_place(a, row, path, &out->folders[i], err)
                 : act_error_set(err, ACT_CONFIG, "the cluster '%s' has no folder '%s'", a->config->cluster,
                                 spec->folders[i].name);
    }
    return rc;
}

static int find_files(struct azureml *a, const struct platform_submission *submission,
                      struct azureml_job_places *out, struct act_error *err)
{
    const struct config_folder *code = &a->config->code;
    int rc = find_place(a, code, submission->agent_key, &out->agent, err);

    if (rc == 0)
        rc = find_place(a, code, submission->spec_key, &out->spec, err);
    if (rc == 0 && submission->spec->package_key)
        rc = find_place(a, code, submission->spec->package_key, &out->package, err);
    return rc;
}

/* ---- the environment ---- */

char *azureml_image(const struct config_docker *docker)
{
    const char *address = docker->address ? docker->address : "", *scheme = strstr(address, "://");
    const char *host = scheme ? scheme + 3 : address;
    size_t n = strlen(host);

    while (n && host[n - 1] == '/')
        n--;
    if (!n || (strncmp(docker->image, host, n) == 0 && docker->image[n] == '/'))
        return act_strdup(docker->image);
    return act_sprintf("%.*s/%s", (int)n, host, docker->image);
}

static int find_environment(struct azureml *a, struct azureml_job_places *out, struct act_error *err)
{
    enum { HASH_SHOWN = 16 };
    ACT_AUTOFREE char *image = azureml_image(&a->config->docker);
    char hash[ACT_SHA256_HEX];
    hash_of(image, hash);
    ACT_AUTOFREE char *id = azureml_url(a, "/environments/act-%.*s/versions/1", HASH_SHOWN, hash);
    ACT_AUTOFREE char *what = act_sprintf("make the environment of the image '%s'", image);
    struct arm_call get = {.method = "GET",
                           .what = what,
                           .url = act_strdup(id),
                           .api_version = a->api_version,
                           .missing_is_fine = true};
    int rc = arm_do(a->arm, &get, err);

    if (rc == 0 && get.status == 404) {
        struct arm_call put = {.method = "PUT",
                               .what = what,
                               .url = act_strdup(id),
                               .api_version = a->api_version,
                               .body = json_pack("{s:{s:s, s:s, s:b, s:s, s:{s:s}}}", "properties", "image",
                                                 image, "osType", "Linux", "isAnonymous", 1, "description",
                                                 "created by act", "tags", "act", "1")};
        rc = arm_do(a->arm, &put, err);
        if (rc < 0 && put.status == 409) /* somebody else made it a moment ago */
            rc = 0;
        arm_call_release(&put);
    }
    arm_call_release(&get);
    if (rc == 0)
        out->environment_id = act_strdup(id);
    return rc;
}

/* ---- the registry ---- */

/* What an environment cannot hold: the user and password of a private registry are a connection of the workspace. Named by
 * its content, so that another password makes another. */
static int connect_registry(struct azureml *a, struct act_error *err)
{
    enum { HASH_SHOWN = 16 };
    const struct config_docker *d = &a->config->docker;
    ACT_AUTOFREE char *all = d->username && d->password && d->address
                                 ? act_sprintf("%s\n%s\n%s", d->address, d->username, d->password)
                                 : NULL;
    char hash[ACT_SHA256_HEX];

    if (!all)
        return 0;
    hash_of(all, hash);
    explicit_bzero(all, strlen(all));
    ACT_AUTOFREE char *what = act_sprintf("connect the workspace to the registry '%s'", d->address);
    ACT_AUTOFREE char *target =
        strstr(d->address, "://") ? act_strdup(d->address) : act_sprintf("https://%s", d->address);
    struct arm_call get = {.method = "GET",
                           .what = what,
                           .url = azureml_url(a, "/connections/act-%.*s", HASH_SHOWN, hash),
                           .api_version = a->api_version,
                           .missing_is_fine = true};
    int rc = arm_do(a->arm, &get, err);
    if (rc == 0 && get.status == 404) {
        struct arm_call put = {.method = "PUT",
                               .what = what,
                               .url = act_strdup(get.url),
                               .api_version = a->api_version,
                               .body = json_pack("{s:{s:s, s:s, s:s, s:{s:s, s:s}}}", "properties",
                                                 "authType", "UsernamePassword", "category",
                                                 "ContainerRegistry", "target", target, "credentials",
                                                 "username", d->username, "password", d->password)};
        rc = arm_do(a->arm, &put, err);
        arm_call_release(&put);
    }
    arm_call_release(&get);
    return rc;
}

/* ---- the compute ---- */

/* A name is a compute of the workspace; on singularity a virtual cluster of its resource group; an ARM id is itself. */
char *azureml_compute_id(const struct azureml *a)
{
    const char *target = a->config->compute_target;

    if (!target || !*target || *target == '/')
        return act_strdup(target && *target ? target : NULL);
    ACT_AUTOFREE char *name = http_encode(target, false);
    if (a->kind != AZUREML_SINGULARITY)
        return azureml_url(a, "/computes/%s", name);
    const char *end = strstr(a->workspace, "/workspaces/");
    return act_sprintf("%.*s/virtualclusters/%s", (int)(end - a->workspace), a->workspace, name);
}

/* ---- all of it ---- */

int azureml_prepare(struct azureml *a, const struct platform_submission *submission,
                    struct azureml_job_places *out, struct act_error *err)
{
    struct arm *arm;
    int rc = azureml_arm(a, &arm, err);

    *out = (struct azureml_job_places){.compute_id = azureml_compute_id(a)};
    if (rc == 0)
        rc = find_files(a, submission, out, err);
    if (rc == 0)
        rc = find_folders(a, submission->spec, out, err);
    if (rc == 0)
        rc = connect_registry(a, err);
    return rc < 0 ? rc : find_environment(a, out, err);
}

void azureml_places_release(struct azureml_job_places *places, size_t n_folders)
{
    for (size_t i = 0; places->folders && i < n_folders; i++)
        free(places->folders[i].uri);
    free(places->folders);
    free(places->environment_id);
    free(places->compute_id);
    free(places->agent.uri);
    free(places->package.uri);
    free(places->spec.uri);
    *places = (struct azureml_job_places){0};
}
