#include "base/clock.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* RFC 9110 wants these names, which are those of the C locale; the program never leaves it for LC_TIME. */
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

/* Writes "2026-11-20T09:00:00" and the ending. */
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

/* Reads the decimals at s as nanoseconds, and moves *end past them. */
static int64_t parse_decimals(const char *s, const char **end)
{
    int64_t ns = 0, unit = 100000000;

    for (; isdigit((unsigned char)*s); s++, unit /= 10)
        ns += (*s - '0') * unit;
    *end = s;
    return ns;
}

/* Reads a number of at most so many digits and the character behind it, which is one of ends; '\0' stands for the end
 * of the text. Moves *s past both. */
static bool clock_parse_part(const char **s, int digits, const char *ends, int *out)
{
    const char *start = *s;

    for (*out = 0; isdigit((unsigned char)**s) && *s - start < digits; (*s)++)
        *out = *out * 10 + (**s - '0');
    bool good = *s > start && (!*ends || (**s && strchr(ends, **s)));
    *s += good && *ends;
    return good;
}

/* Counts the days since 1970. Source: howardhinnant.github.io/date_algorithms.html (days_from_civil). */
static int64_t days_of(int64_t year, int month, int day)
{
    enum { YEARS = 400, DAYS = 146097 /* of so many years */, FROM_YEAR_0 = 719468 };
    int64_t y = month <= 2 ? year - 1 : year, era = y / YEARS, of_era = y % YEARS;
    int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

    return era * DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - FROM_YEAR_0;
}

/* Reads the offset of a time zone, in seconds, with which the text ends. */
static bool parse_zone(const char *s, int *out_s)
{
    int hours, minutes, sign = *s == '-' ? -1 : 1;

    *out_s = 0;
    if (strcmp(s, "Z") == 0 || strcmp(s, "z") == 0)
        return true;
    if (*s != '-' && *s != '+')
        return false;
    s++;
    if (!clock_parse_part(&s, 2, ":", &hours) || !clock_parse_part(&s, 2, "", &minutes))
        return false;
    *out_s = sign * (hours * 3600 + minutes * 60);
    return true;
}

/* Each line of a log may have a time, so this avoids sscanf(), which takes ten times as long. */
bool act_time_from_iso_ns(const char *text, int64_t *out_unix_ns)
{
    int year, month, day, hour, minute, second, offset_s;
    int64_t ns = 0;

    if (!clock_parse_part(&text, 4, "-", &year) || !clock_parse_part(&text, 2, "-", &month) ||
        !clock_parse_part(&text, 2, "Tt ", &day) || !clock_parse_part(&text, 2, ":", &hour) ||
        !clock_parse_part(&text, 2, ":", &minute) || !clock_parse_part(&text, 2, "", &second))
        return false;
    if (month < 1 || month > 12)
        return false;
    if (*text == '.')
        ns = parse_decimals(text + 1, &text);
    if (!parse_zone(text, &offset_s))
        return false;
    int64_t unix_s = ((days_of(year, month, day) * 24 + hour) * 60 + minute) * 60 + second - offset_s;
    /* 64 bits of nanoseconds end in the year 2262; the text may come from anywhere */
    return !__builtin_mul_overflow(unix_s, (int64_t)1000000000, out_unix_ns) &&
           !__builtin_add_overflow(*out_unix_ns, ns, out_unix_ns);
}

void act_time_to_local(int64_t unix_s, char out[ACT_TIME_TEXT])
{
    time_t t = unix_s;
    struct tm tm;

    localtime_r(&t, &tm);
    strftime(out, ACT_TIME_TEXT, "%Y-%m-%d %H:%M:%S", &tm);
}
