/* sas.c - makes a SAS with the key of the account, or with the delegation key of a login. */
#include "auth/auth.h"

#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "http/http.h"

/* The version fixes the lines of the string to sign: this one has 16. */
#define SAS_VERSION "2021-12-02"

static void sas_add_field(struct act_buf *query, const char *name, const char *value)
{
    if (!*value)
        return;
    ACT_AUTOFREE char *encoded = http_encode(value, false);
    act_buf_addf(query, "%s%s=%s", query->len ? "&" : "", name, encoded);
}

static const char *resource_kind(const struct auth_sas *sas)
{
    if (sas->is_share)
        return sas->name ? "f" : "s";
    return sas->name ? "b" : "c";
}

/* These lines are empty: saoid, suoid and scid of a login, else the identifier; sip; after sr the snapshot, ses and the
 * five overrides. The string of a share has neither a kind of resource nor a snapshot, nor a scope of encryption. */
static char *sas_string_to_sign(const struct auth_sas *sas, const char *account, const struct auth_delegation *d,
                                const char *start, const char *expiry, const char *protocol)
{
    ACT_AUTOFREE char *resource = act_sprintf("/%s/%s/%s%s%s", sas->is_share ? "file" : "blob", account, sas->container,
                                              sas->name ? "/" : "", sas->name ? sas->name : "");
    ACT_AUTOFREE char *signer = d ? act_sprintf("%s\n%s\n%s\n%s\n%s\n%s\n\n\n", d->object_id, d->tenant, d->start,
                                                d->expiry, d->service, d->version)
                                  : NULL;
    ACT_AUTOFREE char *rest =
        sas->is_share ? act_strdup("\n\n\n\n") : act_sprintf("%s\n\n\n\n\n\n\n", resource_kind(sas));

    return act_sprintf("%s\n%s\n%s\n%s\n%s\n\n%s\n%s\n%s", sas->permissions, start, expiry, resource,
                       signer ? signer : "", protocol, SAS_VERSION, rest);
}

/* Makes a SAS that is signed by auth, or with the key of a login. */
static char *sas_make(const struct auth_sas *sas, const char *account, const struct auth *auth,
                      const struct auth_delegation *d)
{
    char start[ACT_TIME_TEXT] = "", expiry[ACT_TIME_TEXT];
    const char *protocol = sas->https_only ? "https" : "";
    struct act_buf query = {0};

    if (sas->start_s != 0)
        act_time_to_iso(sas->start_s, start);
    act_time_to_iso(sas->expiry_s, expiry);
    ACT_AUTOFREE char *text = sas_string_to_sign(sas, account, d, start, expiry, protocol);
    ACT_AUTOFREE char *signature =
        d ? act_hmac_sha256_base64(d->key, d->key_len, text, strlen(text)) : auth_signature(auth, text);
    const struct {
        const char *name, *value; /* "": it is left out */
    } fields[] = {
        {"sv", SAS_VERSION},
        {"st", start},
        {"se", expiry},
        {"sr", resource_kind(sas)},
        {"sp", sas->permissions},
        {"spr", protocol},
        {"skoid", d ? d->object_id : ""},
        {"sktid", d ? d->tenant : ""},
        {"skt", d ? d->start : ""},
        {"ske", d ? d->expiry : ""},
        {"sks", d ? d->service : ""},
        {"skv", d ? d->version : ""},
        {"sig", signature},
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        sas_add_field(&query, fields[i].name, fields[i].value);
    return act_buf_steal(&query);
}

int auth_service_sas(const struct auth *auth, const struct auth_sas *sas, char **out, struct act_error *err)
{
    if (auth_kind_of(auth) != AUTH_KEY)
        return act_error_set(err, ACT_DENIED, "a signed URL needs the key of account '%s'", auth_account(auth));
    *out = sas_make(sas, auth_account(auth), auth, NULL);
    return 0;
}

char *auth_delegation_sas(const struct auth_delegation *d, const char *account, const struct auth_sas *sas)
{
    return sas_make(sas, account, NULL, d);
}

void auth_delegation_release(struct auth_delegation *d)
{
    act_wipe_bytes(d->key, d->key_len);
    free(d->object_id);
    free(d->tenant);
    free(d->start);
    free(d->expiry);
    free(d->service);
    free(d->version);
    *d = (struct auth_delegation){0};
}
