/* stamp.c - the time that a line begins with, as loggers write it. */
#include <ctype.h>
#include <string.h>
#include <time.h>

#include "numbers/numbers_internal.h"

enum { STAMP_NEAR = 40 /* bytes, in which it begins */ };

/* Reads as many digits; negative: they are not there. */
static int stamp_digits(const char **s, int n)
{
    int value = 0;

    for (; n > 0; n--, (*s)++) {
        if (!isdigit((unsigned char)**s))
            return -1;
        value = value * 10 + (**s - '0');
    }
    return value;
}

/* Reads a text whose small letters stand for digits: the year, month, day, hour, minute and second. Returns what is
 * behind it; NULL: it is another text. */
static const char *stamp_match(const char *s, const char *form, struct tm *out)
{
    int *const fields[] = {&out->tm_year, &out->tm_mon, &out->tm_mday, &out->tm_hour, &out->tm_min, &out->tm_sec};
    static const char letters[] = "ymdhis";

    while (*form) {
        const char *letter = strchr(letters, *form);
        int width = (int)strspn(form, (const char[]){*form, '\0'});
        int value = letter ? stamp_digits(&s, width) : 0;
        if (value < 0 || (!letter && *s++ != *form))
            return NULL;
        if (letter)
            *fields[letter - letters] = value;
        form += letter ? width : 1;
    }
    return s;
}

/* Reads ",789" or ".789012"; 0: there is none. */
static double stamp_fraction(const char **s)
{
    double value = 0, unit = 0.1;

    if (**s != ',' && **s != '.')
        return 0;
    for ((*s)++; isdigit((unsigned char)**s); (*s)++, unit /= 10)
        value += unit * (**s - '0');
    return value;
}

/* Reads "Z", "+02:00" or "+0200" as seconds; false: there is none. */
static bool stamp_zone(const char *s, int *out_s)
{
    const char *rest = s + 1;
    int hours = -1, minutes = -1;

    *out_s = 0;
    if (*s == 'Z')
        return true;
    if (*s != '+' && *s != '-')
        return false;
    hours = stamp_digits(&rest, 2);
    rest += hours >= 0 && *rest == ':';
    minutes = hours >= 0 ? stamp_digits(&rest, 2) : -1;
    *out_s = (*s == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
    return minutes >= 0;
}

static bool stamp_read(const char *text, double *out_unix_s, bool *out_zoned)
{
    static const char *const forms[] = {"yyyy-mm-dd hh:ii:ss", "yyyy-mm-ddThh:ii:ss", "yyyy/mm/dd hh:ii:ss",
                                        "mm/dd/yyyy hh:ii:ss"};
    const char *rest = NULL;
    struct tm tm = {0};
    int zone_s;

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]) && !rest; i++)
        rest = stamp_match(text, forms[i], &tm);
    if (!rest || tm.tm_year < 2000 || tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 || tm.tm_mday > 31)
        return false;
    double fraction = stamp_fraction(&rest);
    tm.tm_year -= 1900;
    tm.tm_mon--;
    *out_zoned = stamp_zone(rest, &zone_s);
    *out_unix_s = (double)(timegm(&tm) - zone_s) + fraction;
    return true;
}

bool numbers_read_time(const char *text, double *out_unix_s, bool *out_zoned)
{
    const char *end = text + strnlen(text, STAMP_NEAR);

    if (!memchr(text, ':', strnlen(text, STAMP_NEAR + sizeof("yyyy-mm-dd hh"))))
        return false;
    for (const char *s = text; s < end; s++)
        if (isdigit((unsigned char)*s) && (s == text || !isdigit((unsigned char)s[-1])) &&
            stamp_read(s, out_unix_s, out_zoned))
            return true;
    return false;
}
