/* retry.c - decides whether and when a request is sent again. Pure. */
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "http/http_internal.h"

enum {
    FIRST_DELAY_MS = 500,
    MAX_DELAY_MS = 30000,
    MAX_ASKED_MS = 60000, /* the longest wait a service may ask for */
    LEAST_PARTS = 5,      /* the shortest is a fifth of the usual one, or */
    LEAST_MS = 1000,
};

bool http_may_pass(int status)
{
    static const int statuses[] = {408, 429, 500, 502, 503, 504};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        if (statuses[i] == status)
            return true;
    return false;
}

/* The delay doubles from try to try, spread over [0.8, 1.3) so that many clients do not come back as one. */
static int64_t backoff_ms(int tries, double random01)
{
    int64_t delay_ms = FIRST_DELAY_MS;

    for (int i = 1; i < tries && delay_ms < MAX_DELAY_MS; i++)
        delay_ms *= 2;
    if (delay_ms > MAX_DELAY_MS)
        delay_ms = MAX_DELAY_MS;
    return (int64_t)((double)delay_ms * (0.8 + 0.5 * random01));
}

static int64_t asked_ms(int64_t asked, int64_t least)
{
    least = least < LEAST_MS ? least : LEAST_MS;
    asked = asked > least ? asked : least;
    return asked < MAX_ASKED_MS ? asked : MAX_ASKED_MS;
}

int64_t http_retry_delay(int status, bool network_error, int tries, int max_retries, int64_t elapsed_ms,
                         int64_t give_up_ms, int64_t retry_after_ms, double random01)
{
    if (!network_error && !http_may_pass(status))
        return -1;
    if (tries > max_retries)
        return -1;
    int64_t delay_ms = backoff_ms(tries, random01);
    if (retry_after_ms >= 0)
        delay_ms = asked_ms(retry_after_ms, delay_ms / LEAST_PARTS);
    return elapsed_ms + delay_ms > give_up_ms ? -1 : delay_ms;
}

/* Both arguments are small enough not to overflow after the cap. */
static int64_t capped_ms(int64_t value, int64_t unit_ms)
{
    if (value < 0)
        return -1;
    return value > MAX_ASKED_MS / unit_ms ? MAX_ASKED_MS : value * unit_ms;
}

int64_t http_clock_ahead_s(const struct http_headers *response, int64_t now_unix_s)
{
    const char *date = http_header_get(response, "Date");
    int64_t theirs;

    return date && act_time_from_http(date, &theirs) ? theirs - now_unix_s : 0;
}

int64_t http_retry_after_ms(const struct http_headers *response, int64_t now_unix_s)
{
    static const struct {
        const char *name;
        int64_t unit_ms;
    } rows[] = {{"retry-after-ms", 1}, {"x-ms-retry-after-ms", 1}, {"Retry-After", 1000}};
    int64_t value;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *text = http_header_get(response, rows[i].name);
        if (text && act_int_from_text(text, &value) && value >= 0)
            return capped_ms(value, rows[i].unit_ms);
    }
    const char *asked = http_header_get(response, "Retry-After");
    if (!asked || !act_time_from_http(asked, &value))
        return -1;
    return capped_ms(value - now_unix_s - http_clock_ahead_s(response, now_unix_s), 1000);
}

bool http_is_throttled(int status, const struct http_headers *response)
{
    static const struct {
        int status;
        const char *code; /* NULL: any */
    } rows[] = {{429, NULL}, {503, "ServerBusy"}, {500, "OperationTimedOut"}};
    const char *code = http_header_get(response, "x-ms-error-code");

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (status == rows[i].status && (!rows[i].code || (code && strcmp(code, rows[i].code) == 0)))
            return true;
    return http_may_pass(status) && http_retry_after_ms(response, act_now_unix_s()) > 0;
}
