#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char prefixes[] = "KMGTP";

void act_size_to_text(uint64_t bytes, char out[ACT_UNIT_TEXT])
{
    double v = (double)bytes;
    int unit = -1;

    for (; v >= 1024.0 && prefixes[unit + 1]; unit++)
        v /= 1024.0;
    if (unit < 0)
        snprintf(out, ACT_UNIT_TEXT, "%llu B", (unsigned long long)bytes);
    else
        snprintf(out, ACT_UNIT_TEXT, "%.1f %ciB", v, prefixes[unit]);
}

/* Returns how many powers of 1024 "", "B", "K", "KiB", "m", "MIB", ... stand for; -1 for anything else. */
static int unit_from_text(const char *text)
{
    if (*text == '\0' || strcasecmp(text, "b") == 0)
        return 0;
    const char *prefix = strchr(prefixes, toupper((unsigned char)*text));
    if (!prefix || (text[1] != '\0' && strcasecmp(text + 1, "ib") != 0))
        return -1;
    return (int)(prefix - prefixes) + 1;
}

bool act_size_from_text(const char *text, uint64_t *out_bytes)
{
    size_t digits = strspn(text, "0123456789"), decimals = 0;
    const char *rest = text + digits, *fraction = rest;
    uint64_t bytes, part = 0;

    if (*rest == '.') {
        fraction = rest + 1;
        decimals = strspn(fraction, "0123456789");
        rest = fraction + decimals;
    }
    int unit = unit_from_text(rest[0] == ' ' && rest[1] != '\0' ? rest + 1 : rest);
    if (digits == 0 || (fraction > text + digits && (decimals == 0 || unit == 0)) || unit < 0)
        return false;
    uint64_t scale = UINT64_C(1) << (10 * unit);
    errno = 0;
    if (__builtin_mul_overflow(strtoull(text, NULL, 10), scale, &bytes) || errno)
        return false;
    for (size_t i = decimals; i-- > 0;)
        part = (part + (uint64_t)(fraction[i] - '0') * scale) / 10;
    *out_bytes = bytes + part; /* part is less than scale, and bytes a multiple of it */
    return true;
}

void act_duration_to_text(int64_t s, char out[ACT_UNIT_TEXT])
{
    long long v = s < 0 ? 0 : s;

    if (v < 60)
        snprintf(out, ACT_UNIT_TEXT, "%llds", v);
    else if (v < 3600)
        snprintf(out, ACT_UNIT_TEXT, "%lldm%02llds", v / 60, v % 60);
    else if (v < 86400)
        snprintf(out, ACT_UNIT_TEXT, "%lldh%02lldm", v / 3600, v / 60 % 60);
    else
        snprintf(out, ACT_UNIT_TEXT, "%lldd%02lldh", v / 86400, v / 3600 % 24);
}

void act_duration_to_words(int64_t seconds, char out[ACT_UNIT_TEXT])
{
    enum { MINUTE = 60, HOUR = 3600, DAY = 86400 };

    if (seconds >= 2 * DAY)
        snprintf(out, ACT_UNIT_TEXT, "%lld d", (long long)seconds / DAY);
    else if (seconds >= HOUR)
        snprintf(out, ACT_UNIT_TEXT, "%lld h", (long long)seconds / HOUR);
    else
        snprintf(out, ACT_UNIT_TEXT, "%lld min", (long long)seconds / MINUTE);
}

bool act_duration_from_text(const char *text, int64_t *out_seconds)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'\0', 1}, {'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    char *end;

    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || errno || v < 0 || (*end && end[1]))
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (*end == units[i].unit)
            return !__builtin_mul_overflow(v, units[i].seconds, out_seconds);
    return false;
}

bool act_int_from_text(const char *text, int64_t *out)
{
    char *end;

    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end || errno || isspace((unsigned char)*text))
        return false;
    *out = v;
    return true;
}

int64_t act_quantity_from_text(const char *text)
{
    static const struct {
        const char *suffix;
        double factor;
    } units[] = {{"", 1},
                 {"m", 1e-3},
                 {"k", 1e3},
                 {"M", 1e6},
                 {"G", 1e9},
                 {"T", 1e12},
                 {"P", 1e15},
                 {"Ki", 1024},
                 {"Mi", 1048576.0},
                 {"Gi", 1073741824.0},
                 {"Ti", 1099511627776.0},
                 {"Pi", 1125899906842624.0}};
    static const char digits[] = "0123456789";
    size_t n = strspn(text, "0123456789.");
    size_t sign = n > 0 && (text[n] == 'e' || text[n] == 'E') ? 1 + strspn(text + n + 1, "+-") : 0;

    if (sign > 0 && sign <= 2 && strspn(text + n + sign, digits) > 0)
        n += sign + strspn(text + n + sign, digits);
    char *unit;
    double value = strtod(text, &unit) * 1000;

    for (size_t i = 0; n > 0 && unit == text + n && i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(unit, units[i].suffix) == 0)
            return value * units[i].factor < 9e18 ? (int64_t)(value * units[i].factor) : INT64_MAX;
    return -1;
}
