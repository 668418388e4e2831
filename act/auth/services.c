/* services.c - the loop, the HTTP client and the tokens of a command. */
#include "auth/services.h"

#include "auth/token.h"
#include "engine/engine.h"

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
    *s = (struct services){0};
}
