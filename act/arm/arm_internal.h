/* arm_internal.h - for the files of arm/ only. */
#ifndef ACT_ARM_ARM_INTERNAL_H
#define ACT_ARM_ARM_INTERNAL_H

#include "arm/arm.h"
#include "auth/token.h"
#include "engine/engine.h"
#include "http/http.h"

struct arm {
    struct http *http;
    struct tokens *tokens;
    struct token_want want;
    char *endpoint;
    char *tenant;            /* that of want: as given, or as named by the service */
    struct act_strv trusted; /* base URLs without a final slash; the endpoint is the first */
};

/* error.c: sets call->error from an error response; returns its negative code. token: the one that the request carried,
 * for want. */
int arm_describe(struct arm_call *call, const struct http_call *http, const json_t *body, const struct token_want *want,
                 const char *token);
/* Adds to the error which tenant to log in to. */
void arm_hint_tenant(struct act_error *err, const char *tenant);

#endif
