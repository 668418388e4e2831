/* token.c - the single entry point: which source is asked, and which callers wait for it.
 *
 *   token_start -> look (worker: cache, lock) -> found ------------------------------------+
 *                    ^   |                                                                 v
 *                    |   +-> another process asks: again a little later              all waiting callers
 *                    |   +-> ours to ask: source after source -> keep (worker) ------------^
 *
 * A slot is one wanted token: for a scope, in a cloud, of a tenant.
 */
#include "auth/token.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "auth/token_internal.h"
#include "base/clock.h"
#include "base/dirs.h"
#include "base/log.h"

enum {
    LOOK_AGAIN_MS = 50,
    MAX_BUSY_MS = 120000,        /* then the owner of the lock is taken for dead */
    REMEMBER_FAILURE_MS = 10000, /* so that not every object of a transfer asks again */
    MAX_SOURCES = 8,
};

/* In the order in which they are looked at. */
static const struct token_source *const sources[] = {
    &token_secret, &token_federated, &token_app_service, &token_azureml, &token_device, &token_imds, &token_cli,
};

struct candidate {
    const struct token_source *source;
    char *key; /* in the cache */
};

struct slot {
    struct tokens *tokens;
    struct token_want want;
    char *scope, *tenant; /* those of want */
    char *authority;
    struct candidate candidates[MAX_SOURCES];
    size_t n_candidates;

    struct token token;
    const struct token_source *from;
    char *refused;     /* a token that a service did not take; secret */
    int64_t failed_ms; /* when it last failed; 0: it did not */
    struct act_error error;

    bool busy;
    struct token_call **waiting;
    size_t n_waiting;
    /* the refresh under way */
    enum { LOOK_FOUND, LOOK_BUSY, LOOK_OURS } look;
    struct token found;
    size_t at; /* candidate that is asked, or was found */
    int lock;  /* -1: none */
    int64_t began_ms;
    struct token_ask ask;
    struct act_buf absent; /* why there is none at those asked so far */

    struct slot *next;
};

struct tokens {
    struct http *http;
    struct slot *slots;
};

/* ---- what sources are for ---- */

void token_ask_release(struct token_ask *ask)
{
    act_buf_wipe(&ask->call.body_text); /* it had the token */
    http_call_release(&ask->call);
    act_buf_wipe(&ask->body);
    token_release(&ask->token);
    token_grant_release(&ask->grant);
    http_free(ask->probe);
    act_wipe_bytes(ask->program.out, ask->program.out_len);
    ask->program.out = NULL;
    proc_result_release(&ask->program);
    act_wipe(&ask->text);
    *ask = (struct token_ask){0};
}

void token_found(struct token_ask *ask)
{
    ask->result = TOKEN_FOUND;
    ask->done(ask);
}

void token_failed(struct token_ask *ask)
{
    ask->result = TOKEN_REFUSED;
    ask->done(ask);
}

ACT_PRINTF(2, 0)
static void set_denied(struct token_ask *ask, const char *fmt, va_list args)
{
    char text[1024];

    vsnprintf(text, sizeof(text), fmt, args);
    act_error_set(&ask->error, ACT_DENIED, "%s", text);
}

void token_absent(struct token_ask *ask, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    set_denied(ask, fmt, args);
    va_end(args);
    ask->result = TOKEN_ABSENT;
    ask->done(ask);
}

void token_denied(struct token_ask *ask, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    set_denied(ask, fmt, args);
    va_end(args);
    token_failed(ask);
}

/* ---- slots ---- */

static bool same_want(const struct token_want *a, const struct token_want *b)
{
    return a->cloud == b->cloud && a->use_cli == b->use_cli && act_streq(a->scope, b->scope) &&
           act_streq(a->tenant, b->tenant);
}

/* Tells whether AZURE_TOKEN_CREDENTIALS allows the source. */
static bool token_is_wanted(const struct token_source *source, const struct token_want *want)
{
    const char *limit = act_env("AZURE_TOKEN_CREDENTIALS");

    if (want->use_cli)
        return source == &token_cli;
    if (!limit)
        return true;
    if (strcasecmp(limit, "prod") == 0 || strcasecmp(limit, "dev") == 0)
        return source->is_for_jobs == (strcasecmp(limit, "prod") == 0);
    return strcasecmp(limit, source->credential) == 0;
}

static void add_candidate(struct slot *slot, const struct token_source *source)
{
    ACT_AUTOFREE char *identity = source->identity(&slot->want);

    slot->candidates[slot->n_candidates++] = (struct candidate){
        .source = source, .key = act_sprintf("%s|%s|%s|%s", source->name, slot->authority, identity, slot->want.scope)};
}

/* A source that is set up is the only one that counts. */
static void choose_candidates(struct slot *slot)
{
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
        if (sources[i]->is_set && token_is_wanted(sources[i], &slot->want) && sources[i]->is_set()) {
            add_candidate(slot, sources[i]);
            return;
        }
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
        if (!sources[i]->is_set && token_is_wanted(sources[i], &slot->want))
            add_candidate(slot, sources[i]);
}

static struct slot *find_slot(const struct tokens *tokens, const struct token_want *want)
{
    struct slot *slot = tokens->slots;

    while (slot && !same_want(&slot->want, want))
        slot = slot->next;
    return slot;
}

static int add_slot(struct tokens *tokens, const struct token_want *want, struct slot **out, struct act_error *err)
{
    char *authority = NULL;
    int rc = auth_cloud_authority(want->cloud, &authority, err);

    if (rc < 0)
        return rc;
    struct slot *slot = act_calloc(1, sizeof(*slot));
    *slot = (struct slot){.tokens = tokens, .want = *want, .authority = authority, .lock = -1, .next = tokens->slots};
    slot->want.scope = slot->scope = act_strdup(want->scope);
    slot->want.tenant = slot->tenant = act_strdup(want->tenant);
    choose_candidates(slot);
    tokens->slots = slot;
    *out = slot;
    return 0;
}

static void forget_refused(struct slot *slot)
{
    act_wipe(&slot->refused);
}

static void free_slot(struct slot *slot)
{
    for (size_t i = 0; i < slot->n_candidates; i++)
        free(slot->candidates[i].key);
    token_release(&slot->token);
    token_release(&slot->found);
    token_ask_release(&slot->ask);
    forget_refused(slot);
    act_buf_release(&slot->absent);
    free(slot->scope);
    free(slot->tenant);
    free(slot->authority);
    free(slot);
}

struct tokens *tokens_new(struct http *http)
{
    struct tokens *tokens = act_calloc(1, sizeof(*tokens));

    tokens->http = http;
    return tokens;
}

void tokens_free(struct tokens *tokens)
{
    struct slot *next;

    for (struct slot *slot = tokens ? tokens->slots : NULL; slot; slot = next) {
        next = slot->next;
        free_slot(slot);
    }
    free(tokens);
}

/* ---- the end of a refresh ---- */

static void tell_all(struct slot *slot, int rc)
{
    struct token_call **waiting = slot->waiting;
    size_t n = slot->n_waiting;

    slot->waiting = NULL;
    slot->n_waiting = 0;
    slot->busy = false;
    for (size_t i = 0; i < n; i++) {
        waiting[i]->rc = rc;
        if (rc < 0)
            waiting[i]->error = slot->error;
        waiting[i]->done(waiting[i]);
    }
    free(waiting);
}

static void token_take_found(struct slot *slot)
{
    char until[ACT_TIME_TEXT];

    token_release(&slot->token);
    slot->token = slot->found;
    slot->found = (struct token){0};
    slot->from = slot->candidates[slot->at].source;
    slot->failed_ms = 0;
    forget_refused(slot);
    act_time_to_iso(slot->token.expires_s, until);
    act_trace("auth", "token for %s from %s until %s", slot->want.scope, slot->from->name, until);
    tell_all(slot, 0);
}

/* A token that could not be renewed is used for as long as it lasts. */
static void token_take_failure(struct slot *slot)
{
    bool may_pass = slot->error.code == ACT_TEMPORARY || slot->error.code == ACT_TIMEOUT;

    if (may_pass && slot->token.text && slot->token.expires_s > act_now_unix_s()) {
        act_trace("auth", "not renewed yet: %s", act_error_text(&slot->error));
        slot->token.refresh_s = act_now_unix_s() + REMEMBER_FAILURE_MS / 1000;
        tell_all(slot, 0);
        return;
    }
    slot->failed_ms = act_now_monotonic_ms();
    tell_all(slot, -(int)slot->error.code);
}

static void unlock(struct slot *slot)
{
    if (slot->lock >= 0)
        close(slot->lock);
    slot->lock = -1;
}

/* ---- keeping what was found (worker) ---- */

static void token_keep(void *arg)
{
    struct slot *slot = arg;

    /* A warning was given: the token can be used all the same. */
    if (token_cache_put(slot->candidates[slot->at].key, &slot->found, NULL) < 0)
        act_trace("auth", "the token is not kept");
    unlock(slot);
}

static void token_kept(void *arg)
{
    token_take_found(arg);
}

/* ---- asking ---- */

static void ask_next(struct slot *slot);

static bool is_candidate(const struct slot *slot, const struct token_source *source)
{
    for (size_t i = 0; i < slot->n_candidates; i++)
        if (slot->candidates[i].source == source)
            return true;
    return false;
}

/* Where the tenant is known, a login elsewhere would not help. */
static void token_hint_login(const struct slot *slot, struct act_error *err)
{
    bool cli = is_candidate(slot, &token_cli), device = is_candidate(slot, &token_device);
    const char *option = slot->tenant ? " --tenant " : "", *tenant = slot->tenant ? slot->tenant : "";
    ACT_AUTOFREE char *by_cli = act_sprintf("'az login%s%s'", option, tenant);
    ACT_AUTOFREE char *by_device = act_sprintf("'a login --device-code%s%s'", option, tenant);

    if (cli || device)
        act_error_hint(err, "run %s%s%s", cli ? by_cli : "", cli && device ? " or " : "", device ? by_device : "");
}

/* Says at which sources it has looked, and what to do. */
static void tell_absence(const struct slot *slot, struct act_error *err)
{
    static const char environment[] =
        "no AZURE_CLIENT_SECRET, AZURE_FEDERATED_TOKEN_FILE, IDENTITY_ENDPOINT or MSI_ENDPOINT is set; ";

    if (!slot->absent.len) {
        act_error_set(err, ACT_DENIED, "AZURE_TOKEN_CREDENTIALS is '%s', which leaves no source to ask",
                      act_env("AZURE_TOKEN_CREDENTIALS"));
        return;
    }
    act_error_set(err, ACT_DENIED, "you are not logged in to Azure: %s%s", slot->want.use_cli ? "" : environment,
                  slot->absent.data);
    token_hint_login(slot, err);
}

static void no_source(struct slot *slot)
{
    unlock(slot);
    tell_absence(slot, &slot->error);
    token_take_failure(slot);
}

static void token_asked(struct token_ask *ask)
{
    struct slot *slot = ask->arg;
    const char *name = ask->source->name;

    if (ask->result == TOKEN_FOUND) {
        slot->found = ask->token;
        ask->token = (struct token){0};
        token_ask_release(ask);
        engine_work(http_engine(slot->tokens->http), token_keep, token_kept, slot);
        return;
    }
    act_trace("auth", "%s: %s", name, act_error_text(&ask->error));
    if (ask->result == TOKEN_ABSENT) {
        act_buf_addf(&slot->absent, "%s%s: %s", slot->absent.len ? "; " : "", name, act_error_text(&ask->error));
        slot->at++;
        token_ask_release(ask);
        ask_next(slot);
        return;
    }
    slot->error = ask->error;
    act_error_prefix(&slot->error, "%s", name);
    token_ask_release(ask);
    unlock(slot);
    token_take_failure(slot);
}

static void ask_next(struct slot *slot)
{
    if (slot->at == slot->n_candidates) {
        no_source(slot);
        return;
    }
    slot->ask = (struct token_ask){.source = slot->candidates[slot->at].source,
                                   .http = slot->tokens->http,
                                   .want = slot->want,
                                   .authority = slot->authority,
                                   .done = token_asked,
                                   .arg = slot};
    slot->ask.source->ask(&slot->ask);
}

/* ---- looking (worker) ---- */

/* Tells whether to skip the sources after this one, which takes precedence even if its token has expired. */
static bool is_logged_in(const struct slot *slot)
{
    ACT_AUTO(token_grant) grant = {0};

    return slot->candidates[slot->at].source == &token_device && token_cache_get_grant(slot->authority, &grant);
}

static bool find_in_cache(struct slot *slot)
{
    for (slot->at = 0; slot->at < slot->n_candidates; slot->at++) {
        const char *key = slot->candidates[slot->at].key;
        if (slot->refused)
            token_cache_drop(key, slot->refused);
        if (token_cache_get(key, &slot->found) && slot->found.refresh_s > act_now_unix_s() &&
            !act_streq(slot->found.text, slot->refused))
            return true;
        if (is_logged_in(slot))
            break;
    }
    token_release(&slot->found);
    return false;
}

/* Takes the one lock for all processes that request the same token from the same sources. */
static int lock_refresh(const struct slot *slot, struct act_error *err)
{
    const struct token_want *want = &slot->want;
    ACT_AUTOFREE char *name = act_sprintf("%s|%s|%s|%s", slot->candidates[0].source->name, slot->authority,
                                          want->tenant ? want->tenant : "", want->scope);

    return token_cache_lock(name, err);
}

/* Looks once more with the lock: its last owner may just have stored the token. */
static void token_look(void *arg)
{
    struct slot *slot = arg;
    struct act_error err;

    slot->look = LOOK_FOUND;
    if (slot->n_candidates == 0 || find_in_cache(slot)) {
        slot->look = slot->n_candidates ? LOOK_FOUND : LOOK_OURS;
        return;
    }
    slot->lock = lock_refresh(slot, &err);
    if (slot->lock == -ACT_TEMPORARY && act_now_monotonic_ms() - slot->began_ms < MAX_BUSY_MS) {
        slot->look = LOOK_BUSY;
    } else if (slot->lock < 0) {
        slot->look = LOOK_OURS; /* without a lock, which the user need not know */
    } else if (find_in_cache(slot)) {
        unlock(slot);
    } else {
        slot->look = LOOK_OURS;
    }
}

static void token_looked(void *arg);

static void token_look_again(void *arg)
{
    struct slot *slot = arg;

    engine_work(http_engine(slot->tokens->http), token_look, token_looked, slot);
}

static void token_looked(void *arg)
{
    struct slot *slot = arg;

    if (slot->look == LOOK_BUSY) {
        engine_timer(http_engine(slot->tokens->http), LOOK_AGAIN_MS, token_look_again, slot);
    } else if (slot->look == LOOK_FOUND) {
        token_take_found(slot);
    } else {
        slot->at = 0;
        ask_next(slot);
    }
}

static void refresh(struct slot *slot)
{
    slot->busy = true;
    slot->began_ms = act_now_monotonic_ms();
    act_buf_release(&slot->absent);
    token_look_again(slot);
}

/* ---- calls ---- */

static bool token_still_fresh(const struct slot *slot)
{
    return slot && slot->token.text && slot->token.refresh_s > act_now_unix_s();
}

bool token_is_fresh(struct tokens *tokens, const struct token_want *want)
{
    return token_still_fresh(find_slot(tokens, want));
}

const char *token_now(struct tokens *tokens, const struct token_want *want)
{
    const struct slot *slot = find_slot(tokens, want);

    return slot && slot->token.text && slot->token.expires_s > act_now_unix_s() ? slot->token.text : NULL;
}

static void answer_now(void *arg)
{
    struct token_call *call = arg;

    call->rc = -(int)call->error.code;
    call->done(call);
}

static bool failed_lately(const struct slot *slot)
{
    return slot->failed_ms && act_now_monotonic_ms() - slot->failed_ms < REMEMBER_FAILURE_MS;
}

void token_start(struct tokens *tokens, struct token_call *call)
{
    struct slot *slot = find_slot(tokens, &call->want);

    call->rc = 0;
    call->error = (struct act_error){0};
    if (!slot && add_slot(tokens, &call->want, &slot, &call->error) < 0) {
        engine_timer(http_engine(tokens->http), 0, answer_now, call);
    } else if (!slot->busy && (token_still_fresh(slot) || failed_lately(slot))) {
        if (!token_still_fresh(slot))
            call->error = slot->error;
        engine_timer(http_engine(tokens->http), 0, answer_now, call);
    } else {
        ACT_PUSH(slot->waiting, slot->n_waiting, call);
        if (!slot->busy)
            refresh(slot);
    }
}

static void token_set_flag(struct token_call *call)
{
    *(bool *)call->arg = true;
}

int token_wait(struct tokens *tokens, const struct token_want *want, struct act_error *err)
{
    bool finished = false;
    struct token_call call = {.want = *want, .done = token_set_flag, .arg = &finished};

    token_start(tokens, &call);
    engine_run(http_engine(tokens->http), &finished);
    if (call.rc < 0 && err)
        *err = call.error;
    return call.rc;
}

void token_refused(struct tokens *tokens, const struct token_want *want, const char *text)
{
    struct slot *slot = find_slot(tokens, want);

    if (!slot || !act_streq(slot->token.text, text))
        return;       /* it was replaced meanwhile */
    if (slot->busy) { /* a worker may be reading what was refused, and another token is on its way */
        token_release(&slot->token);
        return;
    }
    forget_refused(slot);
    slot->refused = slot->token.text;
    slot->token = (struct token){0};
    act_trace("auth", "a service did not take the token from %s", slot->from->name);
}

int token_identify(struct tokens *tokens, const struct token_want *want, struct token_identity *out,
                   struct act_error *err)
{
    int rc = token_wait(tokens, want, err);

    *out = (struct token_identity){0};
    if (rc < 0)
        return rc;
    const struct slot *slot = find_slot(tokens, want);
    if (!token_read_identity(slot->token.text, out))
        act_trace("auth", "the token does not say whose it is");
    out->source = act_strdup(slot->from->name);
    out->expires_s = slot->token.expires_s;
    return 0;
}
