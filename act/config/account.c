/* account.c - account files. No message quotes a secret. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/hash.h"
#include "base/host.h"
#include "base/log.h"
#include "base/path.h"
#include "config/config_internal.h"

#define BLOB_DOMAIN "blob.core.windows.net"

enum { MIN_CONTAINER = 3, MAX_CONTAINER = 63, MAX_ACCOUNT = 63 };

/* Returns the folder that the built-in store is in: beside the runs, which then see it, unless they are on a login
 * node, where this machine can neither read nor write. New string. */
static char *built_in_place(const struct config *config)
{
    const struct config_kind *kind = config_kind_named(config->platform);
    if (!kind->root_key || (kind->login_key && config_text(config, kind->login_key)))
        return act_state_dir();
    const char *root = config_text(config, kind->root_key);
    return act_strdup(root ? root : kind->root_fallback);
}

static struct yaml *built_in_tree(const struct config *config)
{
    ACT_AUTOFREE char *place = built_in_place(config);
    ACT_AUTOFREE char *below = act_path_join(place, "store");
    ACT_AUTOFREE char *folder = config_absolute(below, config->values->current_dir);
    struct yaml *tree = yaml_new_map(CONFIG_BUILT_IN);

    yaml_put(tree, "folder", yaml_new_text(CONFIG_DEFAULT, folder));
    return tree;
}

/* Returns an account as if it came from a separate file, so that the same checks apply. */
static struct yaml *tree_in_memory(const struct config_account *a, const char *file)
{
    const struct {
        const char *key, *value;
    } rows[] = {{"account_name", a->account_name},
                {"account_key", a->account_key},
                {"container_name", a->container_name},
                {"folder", a->folder},
                {"endpoint", a->endpoint}};
    struct yaml *tree = yaml_new_map(file);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].value)
            yaml_put(tree, rows[i].key, yaml_new_text(file, rows[i].value));
    return tree;
}

/* A file without secrets takes them from the environment, when that is not meant for another account. */
static void add_secrets_of_environment(struct yaml *tree)
{
    static const struct {
        const char *key, *variable, *auth;
    } rows[] = {
        {"account_key", "AZURE_STORAGE_KEY", "key"},
        {"sas_token", "AZURE_STORAGE_SAS_TOKEN", "sas"},
    };
    const struct yaml *name = yaml_get(tree, "account_name"), *auth = yaml_get(tree, "auth");
    const char *meant = act_env("AZURE_STORAGE_ACCOUNT");
    bool has_key = !yaml_is_null(yaml_get(tree, "account_key"));
    bool has_sas = !yaml_is_null(yaml_get(tree, "sas_token"));

    if (yaml_is_null(name) || name->kind != YAML_SCALAR || (meant && strcmp(meant, name->text) != 0))
        return;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *value = act_env(rows[i].variable);
        bool wanted = yaml_is_null(auth) ? !has_key && !has_sas
                                         : auth->kind == YAML_SCALAR && strcmp(auth->text, rows[i].auth) == 0;
        if (!value || !wanted || !yaml_is_null(yaml_get(tree, rows[i].key)))
            continue;
        ACT_AUTOFREE char *origin = act_sprintf("$%s", rows[i].variable);
        yaml_put(tree, rows[i].key, yaml_new_text(origin, value));
    }
}

static bool config_account_is_elsewhere(const struct yaml *secret)
{
    return *secret->file == '$' || (secret->kind == YAML_SCALAR && config_is_in_vault(secret->text));
}

/* Tells whether a credential comes from the environment or a key vault, or if not elsewhere, from the file itself. */
static bool has_credential(const struct yaml *tree, bool elsewhere)
{
    const struct yaml *key = yaml_get(tree, "account_key"), *sas = yaml_get(tree, "sas_token");

    return (!yaml_is_null(key) && config_account_is_elsewhere(key) == elsewhere) ||
           (!yaml_is_null(sas) && config_account_is_elsewhere(sas) == elsewhere);
}

/* -- checks -- */

static bool config_account_consists_of(const char *text, const char *more)
{
    for (; *text; text++)
        if (!islower((unsigned char)*text) && !isdigit((unsigned char)*text) && !strchr(more, *text))
            return false;
    return true;
}

static void config_account_check_names(const struct config_account *a, const struct yaml *tree, bool is_share,
                                       struct config_findings *f)
{
    const struct yaml *account = yaml_get(tree, "account_name"), *container = yaml_get(tree, "container_name");
    size_t n = a->container_name ? strlen(a->container_name) : 0;

    if (!a->account_name || !*a->account_name)
        config_problem(f, account ? account : tree,
                       "'account_name' is missing (or 'folder', for a store that "
                       "is a folder)");
    else if (!config_account_consists_of(a->account_name, "-") || strlen(a->account_name) > MAX_ACCOUNT)
        config_problem(f, account,
                       "'%s' cannot be the name of a storage account, which consists of lower-case "
                       "letters and digits",
                       a->account_name);
    if (n == 0 && is_share)
        return;
    if (n == 0)
        config_problem(f, container ? container : tree, "'container_name' is missing");
    else if (!config_account_consists_of(a->container_name + (*a->container_name == '$'), "-") || n < MIN_CONTAINER ||
             n > MAX_CONTAINER)
        config_problem(f, container,
                       "'%s' cannot be the name of a container, which consists of %d to %d "
                       "lower-case letters, digits and '-'",
                       a->container_name, MIN_CONTAINER, MAX_CONTAINER);
}

static bool is_base64(const char *text)
{
    size_t len;
    uint8_t *bytes = act_base64_decode(text, &len);
    bool is = bytes && len > 0;

    act_wipe_bytes(bytes, len);
    return is;
}

static void config_account_check_key(char *key, const struct yaml *at, struct config_findings *f)
{
    if (!is_base64(key))
        config_problem(f, at, "'account_key' is not base64; copy it again, as a whole");
}

/* Checks a secret. One in a key vault is not known before it is fetched: so only the place is checked. */
static void check_secret(char *secret, const struct yaml *at,
                         void (*check)(char *, const struct yaml *, struct config_findings *),
                         struct config_findings *f)
{
    struct act_error err;

    if (config_is_in_vault(secret) && config_check_vault(secret, &err) < 0)
        config_problem(f, at, "%s", act_error_text(&err));
    else if (secret && !config_is_in_vault(secret))
        check(secret, at, f);
}

static void check_secrets(struct config_account *a, const struct yaml *tree, struct config_findings *f)
{
    check_secret(a->sas_token, yaml_get(tree, "sas_token"), config_check_sas, f);
    check_secret(a->account_key, yaml_get(tree, "account_key"), config_account_check_key, f);
    if (act_streq(a->auth, "key") && !a->account_key)
        config_problem(f, yaml_get(tree, "auth"), "'auth: key' without 'account_key' or $AZURE_STORAGE_KEY");
    if (act_streq(a->auth, "sas") && !a->sas_token)
        config_problem(f, yaml_get(tree, "auth"), "'auth: sas' without 'sas_token' or $AZURE_STORAGE_SAS_TOKEN");
}

/* Returns the host of a URL: "[::1]" of "http://[::1]:10000/account". New string. */
static char *host_of(const char *url)
{
    const char *host = strstr(url, "://") + strlen("://");

    return act_strndup(host, *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/"));
}

/* Checks a URL, and takes the slashes off its end. */
static void check_url(char *url, const char *key, const struct config_account *a, const struct yaml *tree,
                      struct config_findings *f)
{
    const struct yaml *at = yaml_get(tree, key);
    bool plain = act_starts_with(url, "http://");
    const char *host = strstr(url, "://");

    if ((!plain && !act_starts_with(url, "https://")) || strpbrk(url, "?#@ \t\r\n\\") || host[3] == '\0' ||
        host[3] == '/') {
        config_problem(f, at, "'%s' must be a URL as 'https://host' or 'http://127.0.0.1:10000/account'", key);
        return;
    }
    for (size_t n = strlen(url); url[n - 1] == '/';)
        url[--n] = '\0';
    ACT_AUTOFREE char *name = host_of(url);
    bool open = plain && !act_host_is_loopback(name);
    if (open && act_streq(a->auth, "login"))
        config_problem(f, at, "'auth: login' needs an '%s' that is encrypted (https)", key);
    else if (open && (a->account_key || a->sas_token))
        config_doubt(f, at, "'%s' is not encrypted (http), everybody on the way can read the data; use https", key);
}

/* Returns the URL of Azure Files of the same account as "https://acct.blob.core.windows.net"; NULL: it is not known.
 * New string. */
static char *neighbour(const struct config_account *a)
{
    static const char service[] = ".blob.";
    ACT_AUTOFREE char *host = act_sprintf("https://%s%s", a->account_name ? a->account_name : "", service);

    return act_starts_with(a->endpoint, host)
               ? act_sprintf("https://%s.file.%s", a->account_name, a->endpoint + strlen(host))
               : NULL;
}

static void check_endpoints(struct config_account *a, const struct yaml *tree, struct config_findings *f)
{
    if (a->endpoint && *a->endpoint) {
        check_url(a->endpoint, "endpoint", a, tree, f);
    } else {
        free(a->endpoint);
        a->endpoint = act_sprintf("https://%s." BLOB_DOMAIN, a->account_name ? a->account_name : "");
    }
    if (a->file_endpoint && *a->file_endpoint) {
        check_url(a->file_endpoint, "file_endpoint", a, tree, f);
    } else {
        free(a->file_endpoint);
        a->file_endpoint = neighbour(a);
    }
}

static void check_folder_store(struct config_account *a, const struct config *config, const struct yaml *tree,
                               struct config_findings *f)
{
    static const char *const others[] = {"account_name", "account_key",   "sas_token", "container_name",
                                         "endpoint",     "file_endpoint", "auth"};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (!yaml_is_null(yaml_get(tree, others[i])))
            config_problem(f, yaml_get(tree, others[i]),
                           "'%s' beside 'folder': a store is either a folder or "
                           "a storage account",
                           others[i]);
    char *folder = config_absolute(a->folder, config->project_root);
    free(a->folder);
    a->folder = folder;
}

/* Warns of a file that others can read, once. */
static void check_mode(const struct config *config, const struct config_account *a, const struct yaml *tree,
                       struct config_findings *f)
{
    struct stat st;

    if (!has_credential(tree, false) || act_strv_has(&config->values->warned, a->file) || stat(a->file, &st) < 0 ||
        (st.st_mode & (S_IRGRP | S_IROTH)) == 0)
        return;
    act_strv_push(&config->values->warned, a->file);
    config_doubt(f, &(struct yaml){.file = tree->file},
                 "holds secrets and can be read by other users; run 'chmod 600 %s'", a->file);
}

/* -- reading -- */

static int config_account_read_tree(const struct config *config, const struct config_folder *folder, struct yaml **out,
                                    struct act_error *err)
{
    const struct yaml *origin = config_account_origin(config, folder);
    const char *file = folder->account_file;

    if (config_is_built_in(folder)) {
        *out = built_in_tree(config);
        return 0;
    }
    if (folder->account) {
        *out = tree_in_memory(folder->account, config_display(file, config->project_root));
        return 0;
    }
    int rc = yaml_read(file, config_display(file, config->project_root), out, err);
    if (rc < 0 && rc != -ACT_CONFIG) {
        act_error_prefix(err, "'azure_blob_config_file' of '%s'", folder->name);
        act_error_prefix(err, "%s:%d:%d", origin->file, origin->line, origin->column);
    }
    if (rc == 0 && (*out)->kind != YAML_MAP)
        rc = yaml_error(*out, err, "must be a map of keys and values, as 'account_name: ...'");
    return rc;
}

static int check_asked(const struct config *config, const struct config_folder *folder, struct act_error *err)
{
    const char *where = config->file ? config_display(config->file, config->project_root) : CONFIG_BUILT_IN;

    if (!folder->path || !folder->account_file)
        return act_error_set(err, ACT_CONFIG,
                             "%s: no 'code_path' in 'config_param', so there is no place for the code; add "
                             "'code_path: {azure_blob_config_file: ..., path: .../code.zip}'",
                             where);
    return 0;
}

int config_account_read(const struct config *config, const struct config_folder *folder, struct config_account *out,
                        struct yaml **out_tree, struct config_findings *f, struct act_error *err)
{
    int rc = check_asked(config, folder, err);

    *out = (struct config_account){0};
    *out_tree = NULL;
    if (rc == 0)
        rc = config_account_read_tree(config, folder, out_tree, err);
    if (rc < 0) {
        yaml_tree_free(*out_tree);
        *out_tree = NULL;
        return rc;
    }
    struct yaml *tree = *out_tree;
    if (yaml_is_null(yaml_get(tree, "folder")))
        add_secrets_of_environment(tree);
    config_read_keys(config_account_keys, "", tree, out, f);
    config_warn_unknown(config_account_keys, "", tree, f);
    out->file = act_strdup(folder->account_file);
    out->secret_is_lent = has_credential(tree, true);
    out->is_own = config_is_users(out->file) || config_account_is_own(config, folder);
    if (out->folder) {
        check_folder_store(out, config, tree, f);
        if (config_is_share(folder))
            config_problem(f, yaml_get(tree, "folder"),
                           "'folder' cannot be the store of '%s', which has the storage_type 'file': a share "
                           "is in a storage account",
                           folder->name);
    } else {
        config_account_check_names(out, tree, config_is_share(folder), f);
        check_secrets(out, tree, f);
        check_endpoints(out, tree, f);
    }
    if (!folder->account || !folder->account->secret_is_lent) /* else the file does not hold it */
        check_mode(config, out, tree, f);
    return 0;
}

/* Replaces a secret by the one in the key vault, and checks that. */
static int config_account_fetch(const struct config *config, const struct yaml *at, const char *name, char **secret,
                                void (*check)(char *, const struct yaml *, struct config_findings *),
                                struct config_findings *f, struct act_error *err)
{
    if (!config_is_in_vault(*secret))
        return 0;
    int rc = config_fetch_credential(config, secret, err);
    if (rc < 0)
        return act_error_prefix(err, "%s:%d:%d: '%s'", at->file, at->line, at->column, name);
    if (!config_is_in_vault(*secret))
        check(*secret, at, f);
    return 0;
}

/* Fetches both secrets, or the only one that 'auth' says is used. */
static int config_account_fetch_secrets(const struct config *config, const struct yaml *tree, struct config_account *a,
                                        struct config_findings *f, struct act_error *err)
{
    int rc = 0;

    if (act_streq(a->auth, "login") || act_streq(a->auth, "anonymous"))
        return 0;
    if (!act_streq(a->auth, "sas"))
        rc = config_account_fetch(config, yaml_get(tree, "account_key"), "account_key", &a->account_key,
                                  config_account_check_key, f, err);
    if (rc == 0 && !act_streq(a->auth, "key"))
        rc = config_account_fetch(config, yaml_get(tree, "sas_token"), "sas_token", &a->sas_token, config_check_sas, f,
                                  err);
    return rc;
}

int config_account(const struct config *config, const struct config_folder *folder, struct config_account *out,
                   struct act_error *err)
{
    ACT_AUTO(config_findings) f = {0};
    struct yaml *tree = NULL;
    const char *problem;
    int rc = config_account_read(config, folder, out, &tree, &f, err);

    if (rc == 0 && config_count_problems(&f, &problem) == 0)
        rc = config_account_fetch_secrets(config, tree, out, &f, err);
    yaml_tree_free(tree);
    config_warn(&f);
    if (rc == 0 && config_count_problems(&f, &problem))
        rc = act_error_set(err, ACT_CONFIG, "%s", problem);
    if (rc < 0)
        config_account_release(out);
    return rc;
}

void config_account_release(struct config_account *account)
{
    config_release_keys(config_account_keys, "", account);
    free(account->file);
    *account = (struct config_account){0};
}
