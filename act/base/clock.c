#include "base/clock.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* As in RFC 9110: the names are those of the C locale, which the program never leaves for LC_TIME. */
#define HTTP_TIME "%a, %d %b %Y %H:%M:%S GMT"

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return act_timespec_ns(t);
}

int64_t act_now_unix_s(void)
{
    return clock_ns(CLOCK_REALTIME) / 1000000000;
}

int64_t act_now_unix_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

int64_t act_now_monotonic_ms(void)
{
    return clock_ns(CLOCK_MONOTONIC) / 1000000;
}

void act_time_to_http(int64_t unix_s, char out[ACT_TIME_TEXT])
{
    time_t t = unix_s;
    struct tm tm;

    gmtime_r(&t, &tm);
    strftime(out, ACT_TIME_TEXT, HTTP_TIME, &tm);
}

bool act_time_from_http(const char *text, int64_t *out_unix_s)
{
    struct tm tm = {0};
    const char *end = strptime(text, HTTP_TIME, &tm);

    if (!end)
        return false;
    *out_unix_s = timegm(&tm);
    return true;
}

/* "2026-11-20T09:00:00" and the ending. */
static void date_and_time(int64_t unix_s, const char *ending, char out[ACT_TIME_TEXT])
{
    time_t t = unix_s;
    struct tm tm;
    char text[24];

    gmtime_r(&t, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out, ACT_TIME_TEXT, "%s%s", text, ending);
}

void act_time_to_iso(int64_t unix_s, char out[ACT_TIME_TEXT])
{
    date_and_time(unix_s, "Z", out);
}

void act_time_to_iso_ns(int64_t unix_ns, char out[ACT_TIME_TEXT])
{
    struct timespec t = act_ns_timespec(unix_ns);
    char ending[12];

    snprintf(ending, sizeof(ending), ".%09uZ", (unsigned)t.tv_nsec % 1000000000);
    date_and_time(t.tv_sec, ending, out);
}

/* The decimals at s as nanoseconds; *end is moved past them. */
static int64_t parse_decimals(const char *s, const char **end)
{
    int64_t ns = 0, unit = 100000000;

    for (; isdigit((unsigned char)*s); s++, unit /= 10)
        ns += (*s - '0') * unit;
    *end = s;
    return ns;
}

bool act_time_from_iso_ns(const char *text, int64_t *out_unix_ns)
{
    struct tm tm = {0};
    int end = 0, hours, minutes;
    int64_t ns = 0, offset_s = 0;
    char sign[2];

    if (sscanf(text, "%4d-%2d-%2d%*1[Tt ]%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
               &tm.tm_sec, &end) != 6 ||
        end == 0)
        return false;
    const char *rest = text + end;
    if (*rest == '.')
        ns = parse_decimals(rest + 1, &rest);
    if (sscanf(rest, "%1[+-]%2d:%2d", sign, &hours, &minutes) == 3)
        offset_s = (sign[0] == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
    else if (strcmp(rest, "Z") != 0 && strcmp(rest, "z") != 0)
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    /* 64 bits of nanoseconds end in the year 2262; the text may come from anywhere */
    return !__builtin_mul_overflow((int64_t)timegm(&tm) - offset_s, (int64_t)1000000000, out_unix_ns) &&
           !__builtin_add_overflow(*out_unix_ns, ns, out_unix_ns);
}

void act_time_to_local(int64_t unix_s, char out[ACT_TIME_TEXT])
{
    time_t t = unix_s;
    struct tm tm;

    localtime_r(&t, &tm);
    strftime(out, ACT_TIME_TEXT, "%Y-%m-%d %H:%M:%S", &tm);
}
