/* services.h - what the parts of one command share to speak to the network: one loop, one HTTP client, whose limits
 * then hold for the whole command, and one set of tokens. Each is opened when it is first asked for.
 */
#ifndef ACT_AUTH_SERVICES_H
#define ACT_AUTH_SERVICES_H

#include "http/http.h"

struct engine;
struct tokens;

/* Begins as {0} with the limits. The functions below open the rest and return it. */
struct services {
    struct http_options network; /* before the first use; {0}: the defaults */
    struct engine *engine;
    struct http *http;
    struct tokens *tokens;
};

/* Return what belongs to the services, and open it first. It stays until services_close(), which must come after
 * whatever uses it. */
struct engine *services_engine(struct services *services);
struct http *services_http(struct services *services);
struct tokens *services_tokens(struct services *services);
void services_close(struct services *services);

#endif
