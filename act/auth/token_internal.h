/* token_internal.h - for the files of the token sources only. */
#ifndef ACT_AUTH_TOKEN_INTERNAL_H
#define ACT_AUTH_TOKEN_INTERNAL_H

#include <jansson.h>

#include "auth/token.h"
#include "base/text.h"
#include "engine/engine.h"
#include "http/http.h"
#include "proc/proc.h"

struct token {
    char *text; /* secret; NULL: none */
    int64_t expires_s, refresh_s;
};
void token_release(struct token *token); /* wipes it */

/* A login by device code: what a public client got for a user. */
struct token_grant {
    char *tenant, *client;
    char *refresh_token; /* secret; NULL: none */
};
void token_grant_release(struct token_grant *grant);

/* One question to one source. */
struct token_ask {
    const struct token_source *source;
    struct http *http;
    struct token_want want;
    const char *authority;
    void (*done)(struct token_ask *ask); /* later, on the loop */
    void *arg;

    /* out */
    enum { TOKEN_FOUND, TOKEN_ABSENT, TOKEN_REFUSED } result; /* ABSENT: the next source may have one */
    struct token token;
    struct act_error error; /* of the other two */

    /* of the source */
    struct http_call call;
    struct act_buf body; /* secret */
    struct http *probe;
    struct token_grant grant;
    struct proc_result program;
    char *text; /* secret */
    int rc, tries;
};
void token_ask_release(struct token_ask *ask);
void token_found(struct token_ask *ask); /* ask->token is set */
void token_absent(struct token_ask *ask, const char *fmt, ...) ACT_PRINTF(2, 3);
void token_denied(struct token_ask *ask, const char *fmt, ...) ACT_PRINTF(2, 3);
/* Ends an ask whose error is set. */
void token_failed(struct token_ask *ask);

struct token_source {
    const char *name;       /* for texts and the cache */
    const char *credential; /* what AZURE_TOKEN_CREDENTIALS calls it */
    bool is_for_jobs;       /* "prod", else "dev" */
    bool has_half_life;     /* its long tokens are renewed after half of their life */
    /* Whether the environment says that this source, and no other, is to be used; NULL: it never says so. */
    bool (*is_set)(void);
    /* Returns what distinguishes its tokens from others: tenant, client, machine. New string. */
    char *(*identity)(const struct token_want *want);
    void (*ask)(struct token_ask *ask);
};
extern const struct token_source token_secret, token_federated, token_app_service, token_azureml, token_device,
    token_imds, token_cli;

/* ---- response.c */

/* Tells whether tenant is an id or a domain name, in which nothing may change a URL. */
bool token_tenant_is_valid(const char *tenant);
/* Returns a number, also one that is written as a string; -1: it is neither. */
int64_t token_number(const json_t *value);
/* Reads a token from the JSON of any source: access_token with expires_on, expires_in or its own claim. now_s: when the
 * response came, by the clock of this machine, which all times of a token follow; ahead_s: how far the service's clock
 * is ahead of it. No token counts as longer-lived than its own claims say. -ACT_FAIL: there is no token, or one that
 * has ended. */
int token_take(const json_t *response, const struct token_source *source, int64_t now_s, int64_t ahead_s,
               struct token *out, struct act_error *err) ACT_NODISCARD;
/* Reads "2026-05-01 14:34:56.000000", in the time zone of this machine; -1: it is malformed. */
int64_t token_local_time(const char *text);
int64_t token_refresh_time(int64_t now_s, int64_t expires_s, bool half_life);
/* Sets the error that a token endpoint returned, in one line: "invalid_client: AADSTS7000215: ... (correlation id
 * ...)". The code is also in err->service_code. */
void token_describe_response(const struct http_call *call, const char *what, struct act_error *err);
/* Returns the scope as a resource, without "/.default". New string. */
char *token_resource(const char *scope);

/* ---- principal.c */

/* Sends the form to the token endpoint of a tenant; ended gets the response. */
void token_post(struct token_ask *ask, const char *tenant, const char *path, void (*ended)(struct http_call *));
void token_form_add(struct act_buf *form, const char *name, const char *value);
/* Ends the question with the endpoint's response. */
void token_settle(struct token_ask *ask);

/* ---- cache.c: blocking, for workers */

bool token_cache_get(const char *key, struct token *out);
int token_cache_put(const char *key, const struct token *token, struct act_error *err) ACT_NODISCARD;
/* Forgets the entry if it is this token. */
void token_cache_drop(const char *key, const char *text);
bool token_cache_get_grant(const char *authority, struct token_grant *out);
/* Stores a login; is_new: it is another one, and not the same one renewed. */
int token_cache_put_grant(const char *authority, const struct token_grant *grant, bool is_new,
                          struct act_error *err) ACT_NODISCARD;
/* Takes the lock of those who ask for the token what. Returns a descriptor, -ACT_TEMPORARY if another process has it,
 * or another error if there can be no lock. */
int token_cache_lock(const char *what, struct act_error *err) ACT_NODISCARD;

/* Returns the JSON of a response, a new reference; NULL: there is none. */
json_t *token_json_of(const struct http_call *call);

/* ---- managed.c */

/* Returns the milliseconds until the metadata service is asked again after this status; -1: it is not. tries: how often
 * it was asked. */
int64_t token_imds_delay_ms(int status, int tries);

#endif
