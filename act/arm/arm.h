/* arm.h - Azure Resource Manager and services with the same protocol (the run history of Azure Machine Learning, key
 * vaults): JSON requests with a token, errors of all shapes, pages, long-running operations.
 *
 * A request carries "Authorization: Bearer", x-ms-client-request-id (a fresh uuid), Accept and, with a body,
 * Content-Type. It is sent again as http.h says. A 401 drops the token and tries once more with a new one, of the
 * tenant that the response names if none is set; a claims challenge is not retried: its error names the command that
 * satisfies it. The token goes only to the hosts that were given to arm_new() and arm_trust(): a link to any other host
 * is an error. Responses are bounded.
 *
 * Errors: "cannot <what>: <code>: <message>" with the deepest inner code, the details that say more, and the ids that
 * support asks for (x-ms-correlation-request-id, else x-ms-request-id, else the body's correlation). 401 and 403 are
 * -ACT_DENIED (AuthorizationFailed names action and scope), 404 -ACT_NOT_FOUND, quota -ACT_NO_CAPACITY, 408, 429 and
 * 5xx -ACT_TEMPORARY, else -ACT_FAIL; err->http_status, service_code, request_id are set. A body that is not JSON, or
 * empty: the status and its first 500 bytes.
 *
 * Source: learn.microsoft.com/azure/azure-resource-manager/management/async-operations, request-limits-and-throttling;
 * github.com/microsoft/api-guidelines (nextLink, error); the recorded traffic of the tests of azure-ai-ml
 * (github.com/Azure/azure-sdk-for-python, sdk/ml/azure-ai-ml/tests/recordings): a body "null", 404 without a body, the
 * inner error in additionalInfo, operations that return "status" and "percentComplete" alone.
 */
#ifndef ACT_ARM_ARM_H
#define ACT_ARM_ARM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct auth_cloud;
struct http;
struct token_identity;
struct token_want;
struct tokens;
struct arm;

struct arm_options {
    struct http *http; /* both stay the caller's and outlive it */
    struct tokens *tokens;
    const char *endpoint; /* "https://management.azure.com"; NULL: the cloud's */
    const char *scope;    /* of its tokens; NULL: that of the cloud's resource manager; not copied */
    const struct auth_cloud *cloud;
    const char *tenant;  /* may be NULL */
    bool use_cli;        /* only the Azure CLI is asked for tokens */
    const char *said_by; /* who names the endpoint, for messages: "'azureml.endpoint' in ..." */
    bool is_own;         /* the user does, outside of all projects, so that it may be on this machine */
};
int arm_new(const struct arm_options *options, struct arm **out, struct act_error *err) ACT_NODISCARD;
void arm_free(struct arm *arm);
const char *arm_endpoint(const struct arm *arm);
/* Returns what the tokens of its requests are for; the first response may tell the tenant. */
const struct token_want *arm_want(const struct arm *arm);
/* Lets the token go to another base URL: the run history of a region. One that is neither https nor on this machine, or
 * lies in another cloud, is -ACT_CONFIG; one that is neither Azure's nor trusted by the user (auth/trusted.h) is
 * -ACT_DENIED, as in arm_new(). said_by, is_own: see struct arm_options. */
int arm_trust(struct arm *arm, const char *base_url, const char *said_by, bool is_own,
              struct act_error *err) ACT_NODISCARD;
/* Says whose token the requests carry. */
int arm_identify(struct arm *arm, struct token_identity *out, struct act_error *err) ACT_NODISCARD;

/* Encodes a part of a path as encodeURIComponent() does, which the official client uses for ids: names of resource
 * groups may have brackets. New string. */
char *arm_segment(const char *text);

/* A request, for arm_do(), and its response; release it then. */
struct arm_call {
    const char *method;      /* "GET", ...; not copied */
    const char *what;        /* "get job 'x'": for errors, after "cannot "; not copied */
    char *url;               /* "/subscriptions/..." after the endpoint, or a whole URL; owned by the call */
    const char *api_version; /* added as a query parameter; NULL: none */
    json_t *body;            /* NULL: none; the reference is the call's */
    char *user_token;        /* secret, for x-azureml-token; NULL: none; owned by the call */
    bool missing_is_fine;    /* a 404 is rc 0, with status 404, no response, and its code in error.service_code */
    size_t max_body;         /* of the response; 0: 16 MiB */

    int rc;
    struct act_error error;
    int status;
    json_t *response;       /* NULL: the body was empty; owned by the call */
    char *operation;        /* of a long-running operation: Azure-AsyncOperation or Operation-Location */
    char *location;         /* of one, too: Location */
    int64_t retry_after_ms; /* -1: not said */
};
/* Sends call, and runs the engine until the response is there. */
int arm_do(struct arm *arm, struct arm_call *call, struct act_error *err) ACT_NODISCARD;
/* Sends n calls at once, and runs the engine until all responses are there: rc and error of each say how it went. */
void arm_do_all(struct arm *arm, struct arm_call *calls, size_t n);
void arm_call_release(struct arm_call *call);

/* Gets one resource; *out is a new reference. */
int arm_get(struct arm *arm, const char *url, const char *api_version, const char *what, json_t **out,
            struct act_error *err) ACT_NODISCARD;
/* Does the same for a resource that need not be there: *out is NULL for a 404. */
int arm_find(struct arm *arm, const char *url, const char *api_version, const char *what, json_t **out,
             struct act_error *err) ACT_NODISCARD;

/* Calls each(arg, item, err) for every item of the list member ("value", "nodes") on all pages, in order, until it
 * returns 1 or fails. post: it asks by POST, as listNodes wants. It follows nextLink only on the same host; links that
 * lead round in a circle are an error. */
int arm_each(struct arm *arm, const char *url, const char *api_version, bool post, const char *member, const char *what,
             int (*each)(void *arg, const json_t *item, struct act_error *err), void *arg,
             struct act_error *err) ACT_NODISCARD;

/* Follows the long-running operation that call (done, not yet released) has started to its end: by its operation URL,
 * else its location, else, for a PUT (or a GET of what is being changed), by the provisioning state of the resource.
 * Calls progress, unless that is NULL, with every status. A resource in a failed state is an error, too. On success
 * *out (out may be NULL) is the resource, or the operation's result, or NULL. timeout_s 0: it waits without limit. */
int arm_follow(struct arm *arm, struct arm_call *call, int64_t timeout_s,
               void (*progress)(void *arg, const char *status, int percent /* -1: not said */), void *arg, json_t **out,
               struct act_error *err) ACT_NODISCARD;

/* Returns the text of an error body of any shape, also of a run's error, a new string; NULL: it is not an error. Writes
 * its deepest code into code, which has size bytes. */
char *arm_error_text(const json_t *body, char *code, size_t size);
/* Returns what such a code means without an HTTP status: ACT_NO_CAPACITY, else ACT_FAIL. */
enum act_code arm_meaning(const char *code);

#endif
