/* follow.c - paging and long-running operations. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "arm/arm_internal.h"
#include "base/clock.h"
#include "base/pages.h"
#include "codec/json.h"

enum { PAGES_MAX = 10000, POLL_MS = 2000, POLL_MAX_MS = 30000 };

/* ---- pages ---- */

static int give_items(const json_t *page, const char *member, const char *what,
                      int (*each)(void *arg, const json_t *item, struct act_error *err), void *arg,
                      struct act_error *err)
{
    const json_t *list = json_object_get(page, member);
    size_t i;
    json_t *item;
    int rc = 0;

    if (list && !json_is_array(list) && !json_is_null(list))
        return act_error_set(err, ACT_FAIL, "cannot %s: '%s' in the response is not a list", what, member);
    json_array_foreach(list, i, item) if ((rc = each(arg, item, err)) != 0) break;
    return rc;
}

int arm_each(struct arm *arm, const char *url, const char *api_version, bool post, const char *member, const char *what,
             int (*each)(void *arg, const json_t *item, struct act_error *err), void *arg, struct act_error *err)
{
    ACT_AUTO(act_pages) pages = {0};
    ACT_AUTOFREE char *next = act_strdup(url);
    int rc = 0;

    while (rc == 0 && next) {
        bool is_first = pages.n == 0;
        struct arm_call call = {.method = post && is_first ? "POST" : "GET", /* a next link is for GET */
                                .what = what,
                                .url = act_strdup(next),
                                .api_version = is_first ? api_version : NULL}; /* a next link has all it needs */
        rc = arm_do(arm, &call, err);
        if (rc == 0)
            rc = give_items(call.response, member, what, each, arg, err);
        const char *link = codec_json_str(call.response, "nextLink", "");
        act_str_replace(&next, *link ? link : NULL);
        if (rc == 0 && next)
            rc = act_pages_next(&pages, next, PAGES_MAX, what, err);
        arm_call_release(&call);
    }
    return rc > 0 ? 0 : rc;
}

/* ---- long-running operations ---- */

struct follow {
    struct arm *arm;
    const struct arm_call *first;
    void (*progress)(void *arg, const char *status, int percent);
    void *arg;
    int64_t end_ms; /* 0: never */
};

static void follow_fire(void *stop)
{
    *(bool *)stop = true;
}

static int follow_pause_ms(const struct follow *f, int64_t ms, struct act_error *err)
{
    bool stop = false;

    if (ms < 0)
        ms = POLL_MS;
    if (ms > POLL_MAX_MS)
        ms = POLL_MAX_MS;
    if (f->end_ms && act_now_monotonic_ms() + ms > f->end_ms)
        return act_error_set(err, ACT_TIMEOUT, "cannot %s: it takes longer; it goes on at the service", f->first->what);
    engine_timer(http_engine(f->arm->http), ms, follow_fire, &stop);
    engine_run(http_engine(f->arm->http), &stop);
    return 0;
}

static bool is(const char *status, const char *word)
{
    return strcasecmp(status, word) == 0;
}

static bool has_failed(const char *status)
{
    return is(status, "Failed") || is(status, "Canceled") || is(status, "Cancelled");
}

static int fail_operation(const struct follow *f, const char *status, const json_t *body, struct act_error *err)
{
    char code[sizeof(err->service_code)];
    ACT_AUTOFREE char *text = arm_error_text(body, code, sizeof(code));

    int rc = act_error_set(err, strstr(code, "Quota") ? ACT_NO_CAPACITY : ACT_FAIL, "cannot %s: %s%s%s", f->first->what,
                           status, text ? ": " : "", text ? text : "");
    if (err)
        snprintf(err->service_code, sizeof(err->service_code), "%s", code);
    return rc;
}

static void tell_progress(const struct follow *f, const char *status, const json_t *body)
{
    const json_t *percent = json_object_get(body, "percentComplete");

    if (f->progress)
        f->progress(f->arg, status, json_is_number(percent) ? (int)json_number_value(percent) : -1);
}

/* Polls a URL; ended says of each response whether it is the last: 1, 0, or an error. */
static int poll_url(const struct follow *f, const char *url, const char *api_version,
                    int (*ended)(const struct follow *f, const struct arm_call *call, struct act_error *err),
                    json_t **out, struct act_error *err)
{
    int64_t wait_ms = f->first->retry_after_ms;
    int rc = 0;

    while (rc == 0) {
        struct arm_call call = {
            .method = "GET", .what = f->first->what, .url = act_strdup(url), .api_version = api_version};
        rc = follow_pause_ms(f, wait_ms, err);
        if (rc == 0)
            rc = arm_do(f->arm, &call, err);
        if (rc == 0)
            rc = ended(f, &call, err);
        if (rc == 1 && out)
            *out = json_incref(call.response);
        wait_ms = call.retry_after_ms;
        arm_call_release(&call);
    }
    return rc < 0 ? rc : 0;
}

/* Reads an Azure-AsyncOperation: {"status": ...}. */
static int operation_ended(const struct follow *f, const struct arm_call *call, struct act_error *err)
{
    const char *status = codec_json_str(call->response, "status", call->status == 202 ? "InProgress" : "");

    if (!*status)
        return act_error_set(err, ACT_FAIL, "cannot %s: the service does not say what state it is in", f->first->what);
    tell_progress(f, status, call->response);
    if (has_failed(status))
        return fail_operation(f, status, call->response, err);
    return is(status, "Succeeded");
}

/* Reads a Location, which answers 202 until the operation has ended. */
static int location_ended(const struct follow *f, const struct arm_call *call, struct act_error *err)
{
    const char *status = codec_json_str(call->response, "status", "");

    if (has_failed(status)) /* of storage accounts, with 200 */
        return fail_operation(f, status, call->response, err);
    tell_progress(f, call->status == 202 ? "InProgress" : "Succeeded", call->response);
    return call->status != 202;
}

static const char *follow_state_of(const json_t *resource)
{
    return codec_json_str(json_object_get(resource, "properties"), "provisioningState", "Succeeded");
}

static int check_resource(const struct follow *f, const json_t *resource, struct act_error *err)
{
    const json_t *properties = json_object_get(resource, "properties"),
                 *first = json_array_get(json_object_get(properties, "provisioningErrors"), 0);

    return has_failed(follow_state_of(resource))
               ? fail_operation(f, follow_state_of(resource), first ? first : properties, err)
               : 0;
}

/* Reads a resource, which is there once its properties.provisioningState says so, or if it has none. */
static int resource_ended(const struct follow *f, const struct arm_call *call, struct act_error *err)
{
    tell_progress(f, follow_state_of(call->response), call->response);
    int rc = check_resource(f, call->response, err);
    return rc < 0 ? rc : is(follow_state_of(call->response), "Succeeded");
}

/* Tells whether the call began a change of the resource, or saw one under way. */
static bool is_of_resource(const struct arm_call *call)
{
    return strcmp(call->method, "DELETE") != 0 && strcmp(call->method, "POST") != 0;
}

int arm_follow(struct arm *arm, struct arm_call *call, int64_t timeout_s,
               void (*progress)(void *arg, const char *status, int percent), void *arg, json_t **out,
               struct act_error *err)
{
    struct follow f = {.arm = arm,
                       .first = call,
                       .progress = progress,
                       .arg = arg,
                       .end_ms = timeout_s ? act_now_monotonic_ms() + timeout_s * 1000 : 0};
    json_t *last = NULL;
    int rc = 0;

    if (call->operation) {
        rc = poll_url(&f, call->operation, NULL, operation_ended, is_of_resource(call) ? NULL : &last, err);
    } else if (call->location) {
        rc = poll_url(&f, call->location, NULL, location_ended, &last, err);
    } else {
        rc = is_of_resource(call) ? resource_ended(&f, call, err) : 1;
        if (rc == 0)
            rc = poll_url(&f, call->url, call->api_version, resource_ended, &last, err);
        else if (rc == 1)
            last = json_incref(call->response);
        rc = rc == 1 ? 0 : rc;
    }
    if (rc == 0 && !last && is_of_resource(call))
        rc = arm_get(arm, call->url, call->api_version, call->what, &last, err);
    if (rc == 0 && is_of_resource(call))
        rc = check_resource(&f, last, err);
    if (rc == 0 && out)
        *out = json_incref(last);
    json_decref(last);
    return rc;
}
