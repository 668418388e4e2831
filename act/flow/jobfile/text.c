/* text.c - times and sizes, as job files of Azure Batch AI write them. */
#include <string.h>

#include "base/units.h"
#include "flow/jobfile/build.h"

#define DIGITS "0123456789"

/* Takes at most nine digits, so that a sum of products stays far from any limit. */
static bool take_number(const char **at, int64_t *out)
{
    enum { DIGITS_MAX = 9 };
    size_t n = strspn(*at, DIGITS);

    if (n == 0 || n > DIGITS_MAX)
        return false;
    *out = 0;
    for (; n > 0; n--)
        *out = *out * 10 + (*(*at)++ - '0');
    return true;
}

/* Parts of a second count for nothing. */
static void skip_fraction(const char **at)
{
    if (**at == '.')
        *at += 1 + strspn(*at + 1, DIGITS);
}

/* ISO 8601, without years and months, which have no length. */
static bool iso_seconds(const char *at, int64_t *out)
{
    static const struct {
        char part, unit;
        int seconds;
    } units[] = {{'P', 'W', 604800}, {'P', 'D', 86400}, {'T', 'H', 3600}, {'T', 'M', 60}, {'T', 'S', 1}};
    enum { N = sizeof(units) / sizeof(units[0]) };
    size_t next = 0;
    char part = 'P';
    int64_t n;

    for (*out = 0, at++; *at; at++) {
        if (*at == 'T' && part == 'P') {
            part = 'T';
            at++;
        }
        if (!take_number(&at, &n))
            return false;
        skip_fraction(&at);
        while (next < N && (units[next].part != part || units[next].unit != *at))
            next++;
        if (next == N)
            return false;
        *out += n * units[next++].seconds;
    }
    return true;
}

/* "7.", as .NET writes days before a time, or "7 days, ", as Python does. Where there are none, nothing is taken. */
static bool take_days(const char **at, int64_t *out)
{
    static const char *const words[] = {".", " days, ", " day, "};
    const char *behind = *at + strspn(*at, DIGITS);

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (act_starts_with(behind, words[i])) {
            bool taken = take_number(at, out);
            *at = behind + strlen(words[i]);
            return taken;
        }
    return true;
}

/* A TimeSpan of .NET or a timedelta of Python: [days]hours:minutes[:seconds[.fraction]] */
static bool timespan_seconds(const char *at, int64_t *out)
{
    int64_t days = 0, hours, minutes, seconds = 0;

    if (!take_days(&at, &days))
        return false;
    if (!take_number(&at, &hours) || *at++ != ':' || !take_number(&at, &minutes))
        return false;
    if (*at == ':' && (at++, !take_number(&at, &seconds)))
        return false;
    skip_fraction(&at);
    *out = ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
    return *at == '\0' && hours < 24 && minutes < 60 && seconds < 60;
}

bool job_seconds(const char *text, int64_t *out)
{
    return (*text == 'P' ? iso_seconds(text, out) : timespan_seconds(text, out)) && *out > 0;
}

/* docker takes "16g", "16gb" and "16GiB" for the same. */
bool job_bytes(const char *text, uint64_t *out)
{
    size_t n = strlen(text);
    ACT_AUTOFREE char *number = act_strdup(text);

    if (n > 1 && strchr("bB", text[n - 1]) && strchr("kKmMgGtTpP", text[n - 2]))
        number[n - 1] = '\0';
    return act_size_from_text(number, out) && *out > 0;
}
