/* services.h - what the parts of one command share to speak to the network: one loop, one HTTP client, whose limits
 * then hold for the whole command, and one set of tokens, each opened when it is first asked for; and which machines
 * could not be reached.
 */
#ifndef ACT_AUTH_SERVICES_H
#define ACT_AUTH_SERVICES_H

#include <pthread.h>

#include "base/error.h"
#include "http/http.h"

struct engine;
struct services_away;
struct tokens;

/* Begins as {0} with the limits. The functions below open the rest and return it. */
struct services {
    struct http_options network; /* before the first use; {0}: the defaults */
    struct engine *engine;
    struct http *http;
    struct tokens *tokens;
    pthread_mutex_t lock; /* of what follows */
    struct services_away *away;
    size_t n_away;
};

/* Return what belongs to the services, and open it first. It stays until services_close(), which must come after
 * whatever uses it. */
struct engine *services_engine(struct services *services);
struct http *services_http(struct services *services);
struct tokens *services_tokens(struct services *services);
void services_close(struct services *services);

/* A machine that could not be reached is not tried again at once: whoever goes through many things of it, or through
 * several clusters that name it, would wait as many times. For any thread. */

/* Returns 0, or the error by which that login could not be reached in the last 20 seconds. */
int services_check_away(struct services *services, const char *login, struct act_error *err) ACT_NODISCARD;
/* Notes that it could not be reached just now, and why. */
void services_note_away(struct services *services, const char *login, const struct act_error *why);

#endif
