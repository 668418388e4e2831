/* device.c - logs in with a code that the user types into a browser elsewhere, and gets tokens from that login.
 *
 * Source: RFC 8628, learn.microsoft.com/entra/identity-platform/v2-oauth2-device-code.
 */
#include <string.h>

#include "auth/token_internal.h"
#include "base/clock.h"
#include "base/dirs.h"
#include "base/log.h"
#include "codec/json.h"

/* The Azure CLI's application, which tenants know. */
#define CLIENT "04b07795-8ddb-461a-bbee-02f9e1bf7b46"
/* These are for the user's name, and for tokens that can be renewed. */
#define MORE_SCOPES "openid profile offline_access"

enum {
    DEFAULT_INTERVAL_S = 5,
    SLOW_DOWN_S = 5,
    MAX_INTERVAL_S = 60,
    DEFAULT_LIFE_S = 900,
    MAX_LIFE_S = 3600,
    MAX_MESSAGE = 1000,
};

/* Takes the refresh token, when there is a new one. */
static bool take_grant(const json_t *response, struct token_grant *grant)
{
    const char *text = codec_json_str(response, "refresh_token", NULL);

    if (!text || !*text)
        return false;
    act_wipe(&grant->refresh_token);
    grant->refresh_token = act_strdup(text);
    return true;
}

/* ---- a token from what a login left ---- */

static void read_grant(void *arg)
{
    struct token_ask *ask = arg;

    ask->rc = token_cache_get_grant(ask->authority, &ask->grant) ? 0 : -ACT_NOT_FOUND;
}

static void keep_grant(void *arg)
{
    struct token_ask *ask = arg;
    struct act_error err;

    if (token_cache_put_grant(ask->authority, &ask->grant, false, &err) < 0)
        act_trace("auth", "the renewed login is not kept: %s", act_error_text(&err));
}

static void grant_kept(void *arg)
{
    token_settle(arg);
}

/* Tells whether the login has ended, or was taken back. */
static bool is_login_over(const struct act_error *err)
{
    return strcmp(err->service_code, "invalid_grant") == 0 || strcmp(err->service_code, "interaction_required") == 0;
}

static void renewed(struct http_call *call)
{
    struct token_ask *ask = call->arg;
    CODEC_AUTOJSON json_t *response = token_json_of(call);

    act_buf_wipe(&ask->body);
    if (call->rc == 0 && call->status == 200 && take_grant(response, &ask->grant)) {
        engine_work(http_engine(ask->http), keep_grant, grant_kept, ask);
        return;
    }
    if (call->rc == 0 && call->status != 200) {
        token_describe_response(call, "the login has ended", &ask->error);
        if (is_login_over(&ask->error)) {
            act_error_hint(&ask->error, "run 'a login --device-code' again, or 'a logout'");
            token_failed(ask);
            return;
        }
    }
    token_settle(ask);
}

static void grant_read(void *arg)
{
    struct token_ask *ask = arg;
    ACT_AUTOFREE char *scope = act_sprintf("%s %s", ask->want.scope, MORE_SCOPES);

    if (ask->rc < 0) {
        token_absent(ask, "none");
        return;
    }
    token_form_add(&ask->body, "client_id", ask->grant.client);
    token_form_add(&ask->body, "scope", scope);
    token_form_add(&ask->body, "grant_type", "refresh_token");
    token_form_add(&ask->body, "refresh_token", ask->grant.refresh_token);
    token_post(ask, ask->want.tenant ? ask->want.tenant : ask->grant.tenant, "token", renewed);
}

static void ask_device(struct token_ask *ask)
{
    engine_work(http_engine(ask->http), read_grant, grant_read, ask);
}

static char *device_identity(const struct token_want *want)
{
    return act_sprintf("%s|", want->tenant ? want->tenant : "");
}

const struct token_source token_device = {
    .name = "device login", .credential = "DeviceCodeCredential", .identity = device_identity, .ask = ask_device};

/* ---- the login ---- */

struct device_login {
    struct token_ask ask; /* its grant is what comes of it */
    char *device_code;    /* secret */
    int64_t interval_s, until_ms;
    void (*show)(void *arg, const char *message);
    void *show_arg;
    bool finished;
};

static void end_login(struct device_login *login)
{
    login->finished = true;
}

static void fail_login(struct device_login *login, const char *why)
{
    act_error_set(&login->ask.error, ACT_DENIED, "%s", why);
    end_login(login);
}

static void device_poll(void *arg);

static void device_poll_later(struct device_login *login)
{
    if (act_now_monotonic_ms() + login->interval_s * 1000 > login->until_ms)
        fail_login(login, "the code was not typed in time");
    else
        engine_timer(http_engine(login->ask.http), login->interval_s * 1000, device_poll, login);
}

/* Tells whether the response is one of those of RFC 8628 section 3.5 that are not the end. */
static bool device_goes_on(struct device_login *login, const struct act_error *err)
{
    bool slow_down = strcmp(err->service_code, "slow_down") == 0;

    if (slow_down && login->interval_s < MAX_INTERVAL_S)
        login->interval_s += SLOW_DOWN_S;
    return slow_down || strcmp(err->service_code, "authorization_pending") == 0 || err->code == ACT_TEMPORARY ||
           err->code == ACT_TIMEOUT;
}

static void polled(struct http_call *call)
{
    struct device_login *login = ((struct token_ask *)call->arg)->arg;
    struct act_error *err = &login->ask.error;
    CODEC_AUTOJSON json_t *response = token_json_of(call);

    act_buf_wipe(&login->ask.body);
    if (call->rc < 0)
        *err = call->error;
    else if (call->status != 200)
        token_describe_response(call, "the login was refused", err);
    else if (!take_grant(response, &login->ask.grant))
        act_error_set(err, ACT_FAIL, "the login gave nothing that can be kept (no refresh token)");
    else
        *err = (struct act_error){0};
    if (err->code && device_goes_on(login, err)) {
        device_poll_later(login);
        return;
    }
    if (strcmp(err->service_code, "expired_token") == 0)
        fail_login(login, "the code was not typed in time");
    else if (strcmp(err->service_code, "authorization_declined") == 0 ||
             strcmp(err->service_code, "access_denied") == 0)
        fail_login(login, "the login was declined");
    else
        end_login(login);
}

static void device_poll(void *arg)
{
    struct device_login *login = arg;
    struct token_ask *ask = &login->ask;

    token_form_add(&ask->body, "grant_type", "urn:ietf:params:oauth:grant-type:device_code");
    token_form_add(&ask->body, "client_id", ask->grant.client);
    token_form_add(&ask->body, "device_code", login->device_code);
    token_post(ask, ask->grant.tenant, "token", polled);
}

static int64_t within(int64_t value, int64_t low, int64_t high, int64_t fallback)
{
    return value < 0 ? fallback : value < low ? low : value > high ? high : value;
}

/* Returns the service's message to the user or, if that is not readable, one of its own. New string. */
static char *message_of(const json_t *response)
{
    const char *message = codec_json_str(response, "message", ""), *code = codec_json_str(response, "user_code", NULL);
    const char *address = codec_json_str(response, "verification_uri", NULL);

    if (strlen(message) > MAX_MESSAGE || act_has_control(message))
        message = "";
    if (*message)
        return act_strdup(message);
    return code && address ? act_sprintf("open %s in a browser and type the code %s", address, code) : NULL;
}

static void got_code(struct http_call *call)
{
    struct device_login *login = ((struct token_ask *)call->arg)->arg;
    CODEC_AUTOJSON json_t *response = token_json_of(call);
    const char *code = codec_json_str(response, "device_code", NULL);
    ACT_AUTOFREE char *message = message_of(response);

    act_buf_wipe(&login->ask.body);
    if (call->rc < 0) {
        login->ask.error = call->error;
        end_login(login);
    } else if (call->status != 200) {
        token_describe_response(call, "no code to log in with", &login->ask.error);
        end_login(login);
    } else if (!code || !message) {
        fail_login(login, "the response has no code to log in with");
    } else {
        int64_t life_s = token_number(json_object_get(response, "expires_in"));
        int64_t interval_s = token_number(json_object_get(response, "interval"));
        login->device_code = act_strdup(code);
        login->interval_s = within(interval_s, 1, MAX_INTERVAL_S, DEFAULT_INTERVAL_S);
        login->until_ms = act_now_monotonic_ms() + within(life_s, 1, MAX_LIFE_S, DEFAULT_LIFE_S) * 1000;
        login->show(login->show_arg, message);
        device_poll_later(login);
    }
}

static int run_login(struct device_login *login, struct act_error *err)
{
    struct token_ask *ask = &login->ask;
    ACT_AUTOFREE char *scope = act_sprintf("%s %s", ask->want.scope, MORE_SCOPES);

    token_form_add(&ask->body, "client_id", ask->grant.client);
    token_form_add(&ask->body, "scope", scope);
    token_post(ask, ask->grant.tenant, "devicecode", got_code);
    engine_run(http_engine(ask->http), &login->finished);
    if (ask->error.code == 0)
        return token_cache_put_grant(ask->authority, &ask->grant, true, err);
    *err = ask->error;
    return -(int)err->code;
}

int token_device_login(struct http *http, const struct token_want *want, const char *tenant,
                       void (*show)(void *arg, const char *message), void *arg, struct act_error *err)
{
    const char *client = act_env("ACT_LOGIN_CLIENT_ID");
    struct device_login login = {.show = show, .show_arg = arg};
    char *authority = NULL;
    int rc;

    tenant = tenant ? tenant : act_env("AZURE_TENANT_ID");
    tenant = tenant ? tenant : "organizations";
    if (!token_tenant_is_valid(tenant))
        return act_error_set(err, ACT_USAGE, "'%s' is not a tenant: give its id or its domain name", tenant);
    rc = auth_cloud_authority(want->cloud, &authority, err);
    if (rc < 0)
        return rc;
    login.ask = (struct token_ask){.http = http, .want = *want, .authority = authority, .arg = &login};
    login.ask.grant.tenant = act_strdup(tenant);
    login.ask.grant.client = act_strdup(client ? client : CLIENT);
    rc = run_login(&login, err);
    token_ask_release(&login.ask);
    act_wipe(&login.device_code);
    free(authority);
    return rc < 0 ? act_error_prefix(err, "cannot log in") : 0;
}
