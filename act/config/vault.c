/* vault.c - secrets that a file does not hold: it says in which key vault they are. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_internal.h"

enum { MAX_NAME = 127, MAX_HOST = 260 /* with a port */ };

/* Returns what follows "https://HOST", or "http://HOST" for what is on this machine, which whoever asks the vault
 * checks; NULL: it is neither. */
static const char *after_host(const char *url)
{
    const char *host = strstr(url, "://");

    if (!host || (!act_starts_with(url, "https://") && !act_starts_with(url, "http://")))
        return NULL;
    host += strlen("://");
    size_t n = strcspn(host, "/?#@\\ \t\r\n");
    return n > 0 && n <= MAX_HOST && host[n] == '/' ? host + n : NULL;
}

/* Returns the length of a name of a secret or a version. */
static size_t config_vault_name_length(const char *text)
{
    size_t n = 0;

    while (isalnum((unsigned char)text[n]) || text[n] == '-')
        n++;
    return n <= MAX_NAME ? n : 0;
}

/* The names of secrets: learn.microsoft.com/azure/key-vault/general/about-keys-secrets-certificates. */
static bool is_vault_url(const char *url)
{
    static const char folder[] = "/secrets/";
    const char *path = after_host(url);
    size_t n = path && act_starts_with(path, folder) ? config_vault_name_length(path + strlen(folder)) : 0;

    if (n == 0)
        return false;
    path += strlen(folder) + n;
    return *path == '\0' || (*path == '/' && (n = config_vault_name_length(path + 1)) > 0 && path[1 + n] == '\0');
}

int config_check_vault(const char *secret, struct act_error *err)
{
    return is_vault_url(secret + strlen(CONFIG_KEYVAULT))
               ? 0
               : act_error_set(err, ACT_CONFIG,
                               "'%.200s' is not a secret of a key vault: it must be "
                               "'" CONFIG_KEYVAULT "https://NAME.vault.azure.net/secrets/SECRET', and may end with "
                               "'/VERSION'",
                               secret);
}

void config_use_vault(struct config *config, struct config_vault vault)
{
    if (config->values)
        config->values->vault = vault;
}

int config_fetch_secret(const struct config *config, char **secret, struct act_error *err)
{
    const struct config_vault *vault = config->values ? &config->values->vault : NULL;
    char *fetched = NULL;

    if (!config_is_in_vault(*secret))
        return 0;
    if (!vault || !vault->get)
        return 0;
    int rc = config_check_vault(*secret, err);
    if (rc == 0)
        rc = vault->get(vault->arg, *secret + strlen(CONFIG_KEYVAULT), &fetched, err);
    if (rc < 0)
        return rc;
    free(*secret);
    *secret = fetched;
    return 0;
}

int config_fetch_credential(const struct config *config, char **secret, struct act_error *err)
{
    bool is_there = *secret && config_is_in_vault(*secret);
    int rc = config_fetch_secret(config, secret, err);
    size_t n = rc == 0 && is_there && *secret ? strlen(*secret) : 0;

    while (n > 0 && strchr("\r\n", (*secret)[n - 1]))
        (*secret)[--n] = '\0';
    return rc;
}
