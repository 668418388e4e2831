/* azure_login.c - what differs when requests carry the token of a login: a token that is refused, and URLs.
 *
 * A URL that needs no further credential is signed with a key that the service gives to the login (Get User Delegation
 * Key). One key serves all URLs of the store; those that need it at the same time wait for one request.
 *
 * Source: learn.microsoft.com/rest/api/storageservices/get-user-delegation-key, create-user-delegation-sas.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "codec/xml.h"
#include "store/azure.h"

enum {
    EARLIER_S = 15 * 60, /* clocks differ */
    DAY_S = 24 * 3600,
    MAX_LIFE_S = 7 * DAY_S, /* of a key */
};

/* ---- a token that is refused ---- */

static struct token_challenge challenge_of(const struct azure_op *op)
{
    struct token_challenge challenge;

    token_read_challenge(http_header_get(&op->http.response_headers, "WWW-Authenticate"), &challenge);
    return challenge;
}

bool azure_renew_login(struct azure_op *op)
{
    struct auth *auth = op->azure->auth;
    const char *authorization = http_header_get(&op->http.headers, "Authorization");

    if (op->http.status != 401 || auth_kind_of(auth) != AUTH_LOGIN || op->login_renewed || !authorization)
        return false;
    ACT_AUTO(token_challenge) challenge = challenge_of(op);
    op->login_renewed = true;
    auth_refused(auth, authorization, &challenge);
    return !challenge.claims;
}

void azure_hint_login(const struct azure_op *op, struct act_error *err)
{
    const struct auth *auth = op->azure->auth;

    if (auth_kind_of(auth) != AUTH_LOGIN)
        return;
    ACT_AUTO(token_challenge) challenge = challenge_of(op);
    if (op->http.status == 401 && challenge.claims) {
        ACT_AUTOFREE char *command = token_claims_command(&challenge, auth_want(auth));
        act_error_hint(err, "further proof is required; run '%s'", command);
    } else if (op->http.status == 401) {
        act_error_hint(err, "the service rejects the login%s%s; log in again there",
                       challenge.tenant ? ", the account belongs to the tenant " : "",
                       challenge.tenant ? challenge.tenant : "");
    } else if (azure_has_code(&op->http, "AuthorizationPermissionMismatch")) {
        act_error_hint(err, "you need a role on the data, such as '%s'",
                       op->azure->files ? "Storage File Data Privileged Contributor" : "Storage Blob Data Contributor");
    }
}

/* ---- the key of URLs ---- */

struct azure_delegation {
    struct auth_delegation key;
    struct store_call call;   /* of the op that asks for a key, */
    int64_t life_s;           /* which is to sign URLs of this life */
    struct azure_op *waiting; /* NULL: nobody asks */
};

void azure_delegation_free(struct azure_delegation *delegation)
{
    if (!delegation)
        return;
    auth_delegation_release(&delegation->key);
    store_call_release(&delegation->call);
    free(delegation);
}

static int64_t now_s(const struct azure *azure)
{
    return act_now_unix_s() + azure->clock_offset_s;
}

static bool lasts(const struct azure *azure, int64_t life_s)
{
    const struct auth_delegation *key = &azure->delegation->key;

    return key->key && key->expiry_s >= now_s(azure) + life_s;
}

void azure_build_key(struct azure_op *op)
{
    char start[ACT_TIME_TEXT], expiry[ACT_TIME_TEXT];
    int64_t now = now_s(op->azure), life_s = op->azure->delegation->life_s + DAY_S;

    act_time_to_iso(now - EARLIER_S, start);
    act_time_to_iso(now + (life_s < MAX_LIFE_S ? life_s : MAX_LIFE_S), expiry);
    act_buf_addf(&op->body,
                 "<?xml version=\"1.0\" encoding=\"utf-8\"?><KeyInfo><Start>%s</Start><Expiry>%s</Expiry></KeyInfo>",
                 start, expiry);
    op->http.method = "POST";
    op->http.url = act_sprintf("%s/?restype=service&comp=userdelegationkey", op->azure->endpoint);
    http_header_set(&op->http.headers, "Content-Type", "application/xml");
    op->http.body = op->body.data;
    op->http.body_len = op->body.len;
}

static int take_member(void *arg, const char *path, const char *text, struct act_error *err)
{
    struct auth_delegation *key = arg;
    const struct {
        const char *path;
        char **member;
    } rows[] = {
        {"/UserDelegationKey/SignedOid", &key->object_id},   {"/UserDelegationKey/SignedTid", &key->tenant},
        {"/UserDelegationKey/SignedStart", &key->start},     {"/UserDelegationKey/SignedExpiry", &key->expiry},
        {"/UserDelegationKey/SignedService", &key->service}, {"/UserDelegationKey/SignedVersion", &key->version},
    };

    (void)err;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(path, rows[i].path) == 0 && !*rows[i].member)
            *rows[i].member = act_strdup(text);
    if (strcmp(path, "/UserDelegationKey/Value") == 0 && !key->key)
        key->key = act_base64_decode(text, &key->key_len);
    return 0;
}

static bool login_take_key(struct azure_op *op)
{
    static const struct xml_handler handler = {.end = take_member};
    const struct act_buf *body = &op->http.body_text;
    struct auth_delegation key = {0};
    int64_t ns = 0;

    if (xml_parse(body->data, body->len, "key", &handler, &key, NULL) < 0 || !key.object_id || !key.tenant ||
        !key.start || !key.expiry || !key.service || !key.version || !key.key || key.key_len == 0 ||
        !act_time_from_iso_ns(key.expiry, &ns)) {
        auth_delegation_release(&key);
        return false;
    }
    key.expiry_s = ns / 1000000000;
    auth_delegation_release(&op->azure->delegation->key);
    op->azure->delegation->key = key;
    return true;
}

void azure_answer_key(struct azure_op *op)
{
    struct act_error *err = &op->call->error;
    int rc = azure_succeeded(op) ? 0 : azure_answer_error(op);

    if (rc == -ACT_DENIED)
        act_error_hint(err, "a URL needs a key of the account, or a login that may have such keys made (a role on the "
                            "whole account)");
    else if (rc == 0 && !login_take_key(op))
        rc = act_error_set(err, ACT_FAIL, "%s: the service gave no key to sign URLs with", azure_what(op));
    azure_finish(op, rc);
}

static void mint(struct azure_op *op);

static void go_on_signing(struct azure_op *op)
{
    if (op->call->op == STORE_COPY)
        azure_send_phase(op, AZURE_COPY_LATER);
    else
        mint(op);
}

/* Lets the ops that waited go on, or ends them with the error of the question. */
static void key_known(struct store_call *call)
{
    struct azure_delegation *delegation = call->arg;
    struct azure_op *waiting = delegation->waiting, *op;

    delegation->waiting = NULL;
    while ((op = waiting)) {
        waiting = op->next_waiting;
        op->next_waiting = NULL;
        op->call->error = call->error;
        if (call->rc < 0)
            azure_finish(op, call->rc);
        else
            go_on_signing(op);
    }
}

static void login_ask_for_key(struct azure_op *op, int64_t life_s)
{
    struct azure_delegation *delegation = op->azure->delegation;

    store_call_release(&delegation->call);
    delegation->call = (struct store_call){.op = STORE_URL, .key = "", .done = key_known, .arg = delegation};
    delegation->life_s = life_s;
    struct azure_op *asks = azure_new_op(&op->azure->store, &delegation->call);
    asks->what = act_strdup(azure_what(op));
    azure_send_phase(asks, AZURE_KEY);
}

void azure_need_delegation(struct azure_op *op, int64_t life_s)
{
    struct azure *azure = op->azure;

    if (!azure->delegation)
        azure->delegation = act_calloc(1, sizeof(*azure->delegation));
    if (lasts(azure, life_s)) {
        go_on_signing(op);
        return;
    }
    bool is_asked = azure->delegation->waiting;
    op->next_waiting = azure->delegation->waiting;
    azure->delegation->waiting = op;
    if (!is_asked)
        login_ask_for_key(op, life_s);
}

/* ---- URLs ---- */

int azure_mint_url(const struct azure *azure, const char *blob, const char *permissions, int64_t life_s, char **out,
                   struct act_error *err)
{
    const struct azure_delegation *d = azure->delegation;
    struct auth_sas want = {.is_share = azure->files != NULL,
                            .container = azure->container,
                            .name = blob,
                            .permissions = permissions,
                            .start_s = now_s(azure) - EARLIER_S,
                            .expiry_s = now_s(azure) + life_s,
                            .https_only = act_starts_with(azure->endpoint, "https://")};
    enum auth_kind kind = auth_kind_of(azure->auth);
    ACT_AUTOWIPE char *minted = NULL;
    int rc = kind == AUTH_KEY ? auth_service_sas(azure->auth, &want, &minted, err) : 0;

    if (rc < 0)
        return rc;
    if (kind == AUTH_LOGIN && d && d->key.key) { /* it lasts no longer than its key */
        want.expiry_s = want.expiry_s < d->key.expiry_s ? want.expiry_s : d->key.expiry_s;
        minted = auth_delegation_sas(&d->key, auth_account(azure->auth), &want);
    }
    const char *sas = minted ? minted : azure->sas;
    ACT_AUTOFREE char *plain = azure_url(azure, blob);
    *out = act_sprintf("%s%s%s", plain, sas ? "?" : "", sas ? sas : "");
    return 0;
}

static void mint(struct azure_op *op)
{
    struct store_call *call = op->call;
    enum auth_kind kind = auth_kind_of(op->azure->auth);

    call->url.ends = kind == AUTH_KEY || kind == AUTH_LOGIN;
    azure_finish(op, azure_mint_url(op->azure, *call->key ? call->key : NULL, call->url.permissions, call->url.life_s,
                                    &call->url.text, &call->error));
}

/* Refuses to put the SAS into a URL: it may permit more, on more files and for longer, than the URL is made for. */
static int refuse_sas(struct store_call *call)
{
    call->url.only_sas = true;
    return act_error_set(&call->error, ACT_DENIED,
                         "the account has only a sas_token, which would be in the URL whole; an account_key, or a "
                         "login (neither of them), signs a URL that does just this");
}

static void make_login_url(void *arg)
{
    struct azure_op *op = arg;
    enum auth_kind kind = auth_kind_of(op->azure->auth);

    if (kind == AUTH_SAS && !op->call->url.share_sas)
        azure_finish(op, refuse_sas(op->call));
    else if (kind != AUTH_LOGIN)
        mint(op);
    else if (op->azure->files)
        azure_finish(op, act_error_set(&op->call->error, ACT_DENIED,
                                       "a URL of a share needs a key of the account: a login signs none"));
    else if (op->call->url.life_s > MAX_LIFE_S)
        azure_finish(
            op, act_error_set(&op->call->error, ACT_USAGE, "a URL that is made with a login lives for at most 7 days"));
    else
        azure_need_delegation(op, op->call->url.life_s);
}

void azure_make_url(struct azure_op *op)
{
    engine_timer(http_engine(op->azure->store.http), 0, make_login_url, op);
}
