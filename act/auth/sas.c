/* sas.c - makes a SAS with the key of the account, or with the delegation key of a login. */
#include "auth/auth.h"

#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "http/http.h"

/* The version fixes the lines of the string to sign: this one has 16. */
#define SAS_VERSION "2021-12-02"

/* The object that is signed for; name NULL: the container or share. */
struct sas_target {
    bool is_share;
    const char *container, *name;
};

/* The string of a share has neither a kind of resource nor a snapshot, nor a scope of encryption. */
static char *sas_string_to_sign(const char *account, const struct sas_target *t, const char *permissions,
                                const char *start, const char *expiry, const char *protocol)
{
    ACT_AUTOFREE char *resource = act_sprintf("/%s/%s/%s%s%s", t->is_share ? "file" : "blob", account, t->container,
                                              t->name ? "/" : "", t->name ? t->name : "");
    ACT_AUTOFREE char *common =
        act_sprintf("%s\n%s\n%s\n%s\n\n\n%s\n%s\n", permissions, start, expiry, resource, protocol, SAS_VERSION);

    return t->is_share ? act_sprintf("%s\n\n\n\n", common)
                       : act_sprintf("%s%s\n\n\n\n\n\n\n", common, t->name ? "b" : "c");
}

static void sas_add_field(struct act_buf *query, const char *name, const char *value)
{
    if (!*value)
        return;
    ACT_AUTOFREE char *encoded = http_encode(value, false);
    act_buf_addf(query, "%s%s=%s", query->len ? "&" : "", name, encoded);
}

static const char *resource_kind(const struct sas_target *t)
{
    if (t->is_share)
        return t->name ? "f" : "s";
    return t->name ? "b" : "c";
}

static int sas_make(const struct auth *auth, const struct sas_target *t, const char *permissions, int64_t start_s,
                    int64_t expiry_s, bool https_only, char **out, struct act_error *err)
{
    char start[ACT_TIME_TEXT] = "", expiry[ACT_TIME_TEXT];
    const char *protocol = https_only ? "https" : "";
    struct act_buf query = {0};

    if (auth_kind_of(auth) != AUTH_KEY)
        return act_error_set(err, ACT_DENIED, "a signed URL needs the key of account '%s'", auth_account(auth));
    if (start_s != 0)
        act_time_to_iso(start_s, start);
    act_time_to_iso(expiry_s, expiry);
    ACT_AUTOFREE char *text = sas_string_to_sign(auth_account(auth), t, permissions, start, expiry, protocol);
    ACT_AUTOFREE char *signature = auth_signature(auth, text);
    sas_add_field(&query, "sv", SAS_VERSION);
    sas_add_field(&query, "st", start);
    sas_add_field(&query, "se", expiry);
    sas_add_field(&query, "sr", resource_kind(t));
    sas_add_field(&query, "sp", permissions);
    sas_add_field(&query, "spr", protocol);
    sas_add_field(&query, "sig", signature);
    *out = act_buf_steal(&query);
    return 0;
}

int auth_service_sas(const struct auth *auth, const char *container, const char *blob, const char *permissions,
                     int64_t start_s, int64_t expiry_s, bool https_only, char **out, struct act_error *err)
{
    const struct sas_target target = {.container = container, .name = blob};

    return sas_make(auth, &target, permissions, start_s, expiry_s, https_only, out, err);
}

int auth_share_sas(const struct auth *auth, const char *share, const char *path, const char *permissions,
                   int64_t start_s, int64_t expiry_s, bool https_only, char **out, struct act_error *err)
{
    const struct sas_target target = {.is_share = true, .container = share, .name = path};

    return sas_make(auth, &target, permissions, start_s, expiry_s, https_only, out, err);
}

/* --- for a login ------------------------------------------------------------------------------------------- */

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

/* These lines are empty: saoid, suoid and scid before sip; sip; after sr the snapshot, ses and the five overrides. */
static char *delegation_string_to_sign(const struct auth_delegation *d, const char *account, const char *container,
                                       const char *blob, const char *permissions, const char *start, const char *expiry,
                                       const char *protocol)
{
    return act_sprintf("%s\n%s\n%s\n/blob/%s/%s%s%s\n%s\n%s\n%s\n%s\n%s\n%s\n\n\n\n\n%s\n%s\n%s\n\n\n\n\n\n\n",
                       permissions, start, expiry, account, container, blob ? "/" : "", blob ? blob : "", d->object_id,
                       d->tenant, d->start, d->expiry, d->service, d->version, protocol, SAS_VERSION, blob ? "b" : "c");
}

char *auth_delegation_sas(const struct auth_delegation *d, const char *account, const char *container, const char *blob,
                          const char *permissions, int64_t start_s, int64_t expiry_s, bool https_only)
{
    char start[ACT_TIME_TEXT] = "", expiry[ACT_TIME_TEXT];
    const char *protocol = https_only ? "https" : "";
    struct act_buf query = {0};

    if (start_s != 0)
        act_time_to_iso(start_s, start);
    act_time_to_iso(expiry_s, expiry);
    ACT_AUTOFREE char *text =
        delegation_string_to_sign(d, account, container, blob, permissions, start, expiry, protocol);
    ACT_AUTOFREE char *signature = act_hmac_sha256_base64(d->key, d->key_len, text, strlen(text));
    const struct {
        const char *name, *value;
    } fields[] = {
        {"sv", SAS_VERSION}, {"st", start},      {"se", expiry},          {"sr", blob ? "b" : "c"},
        {"sp", permissions}, {"spr", protocol},  {"skoid", d->object_id}, {"sktid", d->tenant},
        {"skt", d->start},   {"ske", d->expiry}, {"sks", d->service},     {"skv", d->version},
        {"sig", signature},
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        sas_add_field(&query, fields[i].name, fields[i].value);
    return act_buf_steal(&query);
}
