/* services.c - the loop, the HTTP client and the tokens of a command, and the machines that it could not reach. */
#include "auth/services.h"

#include <string.h>

#include "auth/token.h"
#include "base/clock.h"
#include "base/text.h"
#include "engine/engine.h"

struct services_away {
    char *login;
    int64_t since_ms; /* monotonic */
    struct act_error why;
};

struct engine *services_engine(struct services *s)
{
    if (!s->engine)
        s->engine = engine_new(&(struct engine_options){0});
    return s->engine;
}

struct http *services_http(struct services *s)
{
    if (!s->http)
        s->http = http_new(services_engine(s), &s->network);
    return s->http;
}

struct tokens *services_tokens(struct services *s)
{
    if (!s->tokens)
        s->tokens = tokens_new(services_http(s));
    return s->tokens;
}

void services_close(struct services *s)
{
    tokens_free(s->tokens);
    http_free(s->http);
    engine_free(s->engine);
    for (size_t i = 0; i < s->n_away; i++)
        free(s->away[i].login);
    free(s->away);
    *s = (struct services){0};
}

static struct services_away *services_find_away(struct services *s, const char *login)
{
    for (size_t i = 0; i < s->n_away; i++)
        if (strcmp(s->away[i].login, login) == 0)
            return &s->away[i];
    return NULL;
}

int services_check_away(struct services *s, const char *login, struct act_error *err)
{
    enum { AGAIN_MS = 20000 };
    int rc = 0;

    pthread_mutex_lock(&s->lock);
    const struct services_away *away = services_find_away(s, login);
    if (away && act_now_monotonic_ms() - away->since_ms < AGAIN_MS) {
        *err = away->why;
        rc = -(int)err->code;
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

void services_note_away(struct services *s, const char *login, const struct act_error *why)
{
    pthread_mutex_lock(&s->lock);
    struct services_away *away = services_find_away(s, login);
    if (!away) {
        ACT_PUSH(s->away, s->n_away, (struct services_away){.login = act_strdup(login)});
        away = &s->away[s->n_away - 1];
    }
    away->since_ms = act_now_monotonic_ms();
    away->why = *why;
    pthread_mutex_unlock(&s->lock);
}
