/* stores.c - where a job reads and writes: datastores of the workspace, and URLs.
 *
 * Source: learn.microsoft.com/rest/api/azureml/datastores/create-or-update; learn.microsoft.com/azure/machine-learning/
 * reference-yaml-datastore-blob (the form of a SAS); a datastore's response, by the recorded traffic that arm.h
 * names.
 */
#include <string.h>

#include "auth/trusted.h"
#include "base/log.h"
#include "codec/json.h"
#include "config/config.h"
#include "platform/azureml/azureml_internal.h"

/* The tag by which ACT knows what it wrote into a datastore of the user's name. */
#define MARK_TAG "act.credential"

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

/* Returns the container, or the share. */
static const char *account_place(const struct config_folder *row, const struct config_account *account)
{
    return config_is_share(row) ? row->file_share : account->container_name;
}

/* A hash of all that the service is sent, including the credential. */
static void datastore_mark(const struct config_folder *row, const struct config_account *account,
                           char out[AZUREML_MARK])
{
    const char *secrets[] = {
        [CREDENTIAL_NONE] = "", [CREDENTIAL_KEY] = account->account_key, [CREDENTIAL_SAS] = account->sas_token};
    ACT_AUTOWIPE char *all =
        act_sprintf("%s\n%s\n%s%s\n%s", account->endpoint, account->account_name, config_is_share(row) ? "share:" : "",
                    account_place(row, account), secrets[credential_of(account)]);

    azureml_mark(all, out);
}

/* Returns the name that the original gave it: a rotated key makes a new one. The mark also tells apart names that
 * differ in '-' only. */
char *azureml_datastore_name(const struct config_folder *row, const struct config_account *account)
{
    enum { PART_SHOWN = 100 };
    char mark[AZUREML_MARK];

    if (row->datastore_name)
        return act_strdup(row->datastore_name);
    datastore_mark(row, account, mark);
    char *name = act_sprintf("%s%.*s_%.*s_%s", config_is_share(row) ? "file_" : "", PART_SHOWN, account->account_name,
                             PART_SHOWN, account_place(row, account), mark);
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

    *out_protocol = at ? act_strndup(account->endpoint, (size_t)(at - account->endpoint)) : act_strdup("https");
    *out_suffix = act_strndup(host + skip, strcspn(host + skip, "/"));
}

static json_t *credentials(const struct config_account *account)
{
    switch (credential_of(account)) {
    case CREDENTIAL_SAS:
        return json_pack("{s:s, s:{s:s, s:s+}}", "credentialsType", "Sas", "secrets", "secretsType", "Sas", "sasToken",
                         "?", account->sas_token); /* with '?', as all examples have it */
    case CREDENTIAL_KEY:
        return json_pack("{s:s, s:{s:s, s:s}}", "credentialsType", "AccountKey", "secrets", "secretsType", "AccountKey",
                         "key", account->account_key);
    default:
        return json_pack("{s:s}", "credentialsType", "None");
    }
}

json_t *azureml_datastore_body(const struct config_folder *row, const struct config_account *account)
{
    bool is_share = config_is_share(row);
    ACT_AUTOFREE char *protocol = NULL;
    ACT_AUTOFREE char *suffix = NULL;
    char mark[AZUREML_MARK];

    split_endpoint(account, &protocol, &suffix);
    datastore_mark(row, account, mark);
    return json_pack("{s:{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:{s:s}}}", "properties", "datastoreType",
                     is_share ? "AzureFile" : "AzureBlob", "description", "created by act", "accountName",
                     account->account_name, is_share ? "fileShareName" : "containerName", account_place(row, account),
                     "endpoint", suffix, "protocol", protocol, "credentials", credentials(account), "tags", MARK_TAG,
                     mark);
}

/* A row of the configuration as a datastore of the workspace. */
struct datastore {
    const struct config_folder *row;
    const struct config_account *account;
    const char *name;
    const char *what; /* for errors */
};

static char *datastore_url(const struct azureml *a, const struct datastore *d, const char *query)
{
    ACT_AUTOFREE char *name = http_encode(d->name, false);

    return azureml_url(a, "/datastores/%s%s", name, query);
}

/* Kinds of datastores, and what each calls the place in the account. */
static const struct {
    const char *type, *member, *word;
} datastore_kinds[] = {
    {"AzureBlob", "containerName", "container"},
    {"AzureDataLakeGen2", "filesystem", "container"}, /* another view of the same */
    {"AzureFile", "fileShareName", "share"},
};

/* Returns "the container 'data' of the account 'acct'"; of a kind that ACT does not know: "of the type 'X'". New
 * string. */
static char *place_text(const json_t *properties)
{
    const char *type = codec_json_str(properties, "datastoreType", "");

    for (size_t i = 0; i < sizeof(datastore_kinds) / sizeof(datastore_kinds[0]); i++)
        if (strcmp(type, datastore_kinds[i].type) == 0)
            return act_sprintf("the %s '%s' of the account '%s'", datastore_kinds[i].word,
                               codec_json_str(properties, datastore_kinds[i].member, ""),
                               codec_json_str(properties, "accountName", ""));
    return act_sprintf("of the type '%s'", type);
}

/* An existing datastore must lead to the place in the configuration. *out_put: ACT made it, with another credential
 * than the current one; those of others are left alone, and a login never replaces a credential. */
static int judge_datastore(const struct datastore *d, const json_t *have, bool *out_put, struct act_error *err)
{
    CODEC_AUTOJSON json_t *body = azureml_datastore_body(d->row, d->account);
    const json_t *is = json_object_get(have, "properties"), *wanted = json_object_get(body, "properties");
    ACT_AUTOFREE char *there = place_text(is);
    ACT_AUTOFREE char *here = place_text(wanted);
    const char *mark = codec_json_str(json_object_get(is, "tags"), MARK_TAG, NULL);
    const char *own = codec_json_str(json_object_get(wanted, "tags"), MARK_TAG, "");

    if (strcmp(there, here) != 0)
        return act_error_set(err, ACT_CONFIG,
                             "the datastore '%s' of the workspace is %s, but for '%s' '%s' has %s; give it another "
                             "datastore_name, or none",
                             d->name, there, d->row->name, d->account->file, here);
    *out_put = mark && strcmp(mark, own) != 0 && credential_of(d->account) != CREDENTIAL_NONE;
    return 0;
}

static int look_at_datastore(struct azureml *a, const struct datastore *d, bool *out_put, struct act_error *err)
{
    CODEC_AUTOJSON json_t *there = NULL;
    int rc = azureml_find(a, d->what, datastore_url(a, d, ""), &there, err);

    *out_put = rc == 0 && !there;
    return there ? judge_datastore(d, there, out_put, err) : rc;
}

static int put_datastore(struct azureml *a, const struct datastore *d, bool *out_conflict, struct act_error *err)
{
    json_t *body = azureml_datastore_body(d->row, d->account);
    ACT_AUTO(arm_call) put = azureml_put(a, d->what, datastore_url(a, d, "?skipValidation=true"), body);
    int rc = arm_do(a->arm, &put, err);

    *out_conflict = put.status == 409;
    if (put.status == 403)
        act_error_hint(err, "who may do that can register it for you: name it with datastore_name then");
    return rc;
}

/* Once for each content. If someone else makes it at the same moment, theirs is checked. */
static int register_datastore(struct azureml *a, const struct datastore *d, struct act_error *err)
{
    char mark[AZUREML_MARK];
    datastore_mark(d->row, d->account, mark);
    ACT_AUTOFREE char *known = act_sprintf("%s %s", d->name, mark);
    bool wanted = false, conflict = true;
    int rc = 0;

    if (act_strv_has(&a->datastores, known))
        return 0;
    for (int tries = 0; tries < 2 && conflict; tries++) {
        conflict = false;
        rc = look_at_datastore(a, d, &wanted, err);
        if (rc == 0 && wanted)
            rc = put_datastore(a, d, &conflict, err);
    }
    if (rc == 0)
        act_strv_push(&a->datastores, known);
    return rc;
}

/* The service and the nodes send the credential to the endpoint, so the endpoint must be trusted. */
static int check_address(const struct config_account *account, struct act_error *err)
{
    ACT_AUTOFREE char *said_by = act_sprintf("'endpoint' of '%s'", account->file);
    struct auth_address address = {.url = account->endpoint,
                                   .said_by = said_by,
                                   .owner = credential_of(account) == CREDENTIAL_NONE ? AUTH_OF_NOBODY
                                            : account->secret_is_lent                 ? AUTH_OF_USER
                                                                                      : AUTH_OF_FILE,
                                   .is_own = account->is_own};

    return auth_check_address(&address, err);
}

/* The URI of a path in the store of a row of the configuration, registered where the workspace does not know it. */
static int aml_stores_find_place(struct azureml *a, const struct config_folder *row, const char *path,
                                 struct azureml_place *out, struct act_error *err)
{
    ACT_AUTO(config_account) account = {0};
    int rc = config_account(a->config, row, &account, err);

    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *name = azureml_datastore_name(row, &account);
    ACT_AUTOFREE char *what = act_sprintf("register the datastore '%s'", name);
    struct datastore d = {.row = row, .account = &account, .name = name, .what = what};
    rc = check_address(&account, err);
    if (rc == 0)
        rc = register_datastore(a, &d, err);
    if (rc == 0)
        out->uri = act_sprintf("azureml://datastores/%s/paths/%s", name, path);
    return rc;
}

/* ---- checks, before anything is asked of the service ---- */

static int check_datastore_name(const struct config_folder *row, struct act_error *err)
{
    enum { LONGEST = 255 };
    const char *name = row->datastore_name;
    size_t good = name ? strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") : 0;

    if (!name || (good && !name[good] && good <= LONGEST && *name != '_' && *name != '-'))
        return 0;
    return act_error_set(err, ACT_CONFIG,
                         "the datastore_name of '%s' is '%s': it must consist of letters, digits and '_', at most %d, "
                         "and begin with a letter or a digit",
                         row->name, name, LONGEST);
}

/* A share is mounted by its key or a SAS; no identity does for it. */
static int aml_stores_check_share(const struct config *config, const struct config_folder *row, struct act_error *err)
{
    ACT_AUTO(config_account) account = {0};
    int rc = config_account(config, row, &account, err);

    if (rc < 0)
        return rc;
    if (credential_of(&account) == CREDENTIAL_NONE)
        rc = act_error_set(err, ACT_CONFIG,
                           "'%s' is in a share of Azure Files, which is mounted with 'account_key' or 'sas_token': "
                           "'%s' has neither",
                           row->name, account.file);
    return rc;
}

/* A URL signed by ACT reads one file; one with the user's own SAS would give everybody who sees the job access to
 * everything. */
static int check_code(const struct config *config, struct act_error *err)
{
    const struct config_folder *code = &config->code;
    ACT_AUTO(config_account) account = {0};
    int rc = config_account(config, code, &account, err);

    if (rc < 0)
        return rc;
    if (account.folder)
        rc = act_error_set(err, ACT_CONFIG,
                           "'%s' is a folder store, which no node of Azure can reach: '%s' must be in Blob Storage",
                           account.file, code->name);
    else if (code->submit_with_url &&
             (credential_of(&account) == CREDENTIAL_SAS || act_streq(account.auth, "anonymous")))
        rc = act_error_set(err, ACT_CONFIG,
                           "'submit_with_url' of 'code_path' needs an 'account_key' in '%s', or a login, to sign URLs "
                           "that read one file; without 'submit_with_url' a sas_token will do",
                           account.file);
    return rc;
}

int azureml_check_stores(const struct azureml *a, struct act_error *err)
{
    const struct config *c = a->config;
    int rc = check_datastore_name(&c->code, err);

    if (rc == 0)
        rc = check_code(c, err);

    for (size_t i = 0; rc == 0 && i < c->n_folders; i++) {
        rc = check_datastore_name(&c->folders[i], err);
        if (rc == 0 && config_is_share(&c->folders[i]))
            rc = aml_stores_check_share(c, &c->folders[i], err);
    }
    return rc;
}

/* Returns the store in the form of run_folder.store. New string. */
static char *aml_stores_store_of(const json_t *properties)
{
    bool is_share = strcmp(codec_json_str(properties, "datastoreType", ""), "AzureFile") == 0;

    return act_sprintf("%s%s/%s", is_share ? RUN_SHARE : "blob:", codec_json_str(properties, "accountName", ""),
                       codec_json_str(properties, is_share ? "fileShareName" : "containerName", ""));
}

/* Finds the datastore for a repeated run, whose key is gone: it must still exist and lead to the same place. */
static int find_volume(struct azureml *a, const struct run_folder *folder, const char *path, struct azureml_place *out,
                       struct act_error *err)
{
    ACT_AUTOFREE char *what = act_sprintf("look for the datastore '%s'", folder->datastore);
    struct datastore d = {.name = folder->datastore};
    CODEC_AUTOJSON json_t *there = NULL;
    int rc = azureml_find(a, what, datastore_url(a, &d, ""), &there, err);
    ACT_AUTOFREE char *store = aml_stores_store_of(json_object_get(there, "properties"));

    if (rc == 0 && (!there || strcmp(store, folder->store) != 0))
        rc = act_error_set(err, ACT_CONFIG,
                           "the workspace '%s' has no datastore '%s' for '%s', which the job file of the first run "
                           "mounted as '%s' by its key; submit the job file again",
                           aml_config_keys(a->config)->workspace_name, folder->datastore, folder->store, folder->name);
    if (rc == 0)
        out->uri = act_sprintf("azureml://datastores/%s/paths/%s", folder->datastore, path);
    return rc;
}

static int aml_stores_find_folder(struct azureml *a, const struct run_folder *folder, struct azureml_place *out,
                                  struct act_error *err)
{
    const struct config_folder *row = config_folder_named(a->config, folder->name);
    ACT_AUTOFREE char *path = act_sprintf("%s%s", folder->path, *folder->path ? "/" : "");

    if (row)
        return aml_stores_find_place(a, row, path, out, err);
    if (folder->datastore)
        return find_volume(a, folder, path, out, err);
    return act_error_set(err, ACT_CONFIG, "the cluster '%s' has no folder '%s'", a->config->cluster, folder->name);
}

/* Warns once of settings without effect on folders. With submit_with_url the original linked to a URL, which is no
 * folder; one of a folder would have to open the whole container. How long a mount caches was a member of datastores
 * that is gone. */
static void warn_of_settings(const struct config *config)
{
    const char *with_url = NULL, *cached = NULL;

    for (size_t i = config->n_folders; i-- > 0;) {
        if (config->folders[i].submit_with_url)
            with_url = config->folders[i].name;
        if (config->folders[i].blob_cache_timeout >= 0)
            cached = config->folders[i].name;
    }
    if (with_url)
        act_warn("'submit_with_url' is for 'code_path' only: '%s' is mounted", with_url);
    if (cached)
        act_warn("'blob_cache_timeout' of '%s' has no effect: datastores have no such setting any more", cached);
}

int azureml_find_folders(struct azureml *a, const struct run_spec *spec, struct azureml_job_places *out,
                         struct act_error *err)
{
    int rc = 0;

    warn_of_settings(a->config);
    out->folders = act_calloc(spec->n_folders, sizeof(*out->folders));
    for (size_t i = 0; rc == 0 && i < spec->n_folders; i++)
        rc = aml_stores_find_folder(a, &spec->folders[i], &out->folders[i], err);
    return rc;
}

/* Finds a file by its URL where there is one, else in the store of the code. */
static int aml_stores_find_file(struct azureml *a, const char *key, const char *url, struct azureml_place *out,
                                struct act_error *err)
{
    if (!url)
        return aml_stores_find_place(a, &a->config->code, key, out, err);
    out->uri = act_strdup(url);
    return 0;
}

int azureml_find_files(struct azureml *a, const struct platform_submission *s, struct azureml_job_places *out,
                       struct act_error *err)
{
    int rc = aml_stores_find_file(a, s->agent_key, s->agent_url, &out->agent, err);

    if (rc == 0)
        rc = aml_stores_find_file(a, s->spec_key, s->spec_url, &out->spec, err);
    if (rc == 0 && s->spec->package_key)
        rc = aml_stores_find_file(a, s->spec->package_key, s->package_url, &out->package, err);
    return rc;
}
