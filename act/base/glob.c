#include "base/glob.h"

#include <stdint.h>
#include <string.h>
#include <unictype.h>

#include "base/terminal.h"
#include "base/text.h"

/* A byte that is not UTF-8 sorts after all characters. */
#define RAW_BYTE UINT32_C(0x110000)

/* Returns the character at *at, and moves *at past it. */
static uint32_t next_char(const char **at, enum act_glob_flags flags)
{
    const char *s = *at;
    size_t n = flags & ACT_GLOB_BYTES && (unsigned char)*s >= 0x80 ? 0 : act_utf8_char(s, strnlen(s, 4));

    *at += n ? n : 1;
    return n ? act_utf8_decode(s, n) : RAW_BYTE + (unsigned char)*s;
}

/* Does the same in a pattern, where a backslash may quote the character. */
static uint32_t next_of_pattern(const char **at, enum act_glob_flags flags)
{
    if (**at == '\\' && (*at)[1] && (flags & ACT_GLOB_ESCAPES))
        ++*at;
    return next_char(at, flags);
}

static bool in_class(const char *name, size_t len, uint32_t c)
{
    static const struct {
        const char *name;
        bool (*has)(ucs4_t c);
    } classes[] = {
        {"alnum", uc_is_alnum}, {"alpha", uc_is_alpha}, {"blank", uc_is_blank}, {"cntrl", uc_is_cntrl},
        {"digit", uc_is_digit}, {"graph", uc_is_graph}, {"lower", uc_is_lower}, {"print", uc_is_print},
        {"punct", uc_is_punct}, {"space", uc_is_space}, {"upper", uc_is_upper}, {"xdigit", uc_is_xdigit},
    };

    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
        if (strlen(classes[i].name) == len && memcmp(classes[i].name, name, len) == 0)
            return classes[i].has(c);
    return false;
}

/* Tells whether the member of a set at *at, "[:class:]", "a-z" or "a", has c, and moves *at past the member. */
static bool member_has(const char **at, uint32_t c, enum act_glob_flags flags)
{
    const char *p = *at, *end = p[0] == '[' && p[1] == ':' ? strstr(p + 2, ":]") : NULL;

    if (end) {
        *at = end + 2;
        return in_class(p + 2, (size_t)(end - p) - 2, c);
    }
    uint32_t low = next_of_pattern(at, flags), high = low;
    if (**at == '-' && (*at)[1] && (*at)[1] != ']') {
        ++*at;
        high = next_of_pattern(at, flags);
    }
    return low <= c && c <= high;
}

/* Reads the set after the '[' at *at: moves *at past its ']' and tells in *out_has whether it has c. Returns false, and
 * leaves *at, if there is no ']'. */
static bool set_ends(const char **at, uint32_t c, enum act_glob_flags flags, bool *out_has)
{
    const char *p = *at + 1;
    bool others = *p == '!' || *p == '^', has = false;

    p += others;
    for (const char *first = p; *p && (*p != ']' || p == first);)
        has |= member_has(&p, c, flags);
    if (!*p)
        return false;
    *at = p + 1;
    *out_has = has != others;
    return true;
}

/* Tells whether the element at *pattern, which is not '*', matches c, and moves *pattern past it then. */
static bool one_matches(const char **pattern, uint32_t c, enum act_glob_flags flags)
{
    const char *p = *pattern;
    bool has = true;

    if (*p == '\\' && !p[1] && (flags & ACT_GLOB_ESCAPES))
        return false; /* it protects nothing */
    if (*p == '?')
        p++;
    else if (*p != '[' || !set_ends(&p, c, flags, &has))
        has = next_of_pattern(&p, flags) == c;
    if (has)
        *pattern = p;
    return has;
}

/* It is enough to go back to the last '*', which can always do what those before it could. */
bool act_glob(const char *pattern, const char *text, enum act_glob_flags flags)
{
    const char *star = NULL, *star_text = NULL;

    while (*text || *pattern == '*') {
        const char *behind = text;
        if (*pattern == '*') {
            star = ++pattern;
            star_text = text;
        } else if (*pattern && one_matches(&pattern, next_char(&behind, flags), flags)) {
            text = behind;
        } else if (star) {
            next_char(&star_text, flags);
            pattern = star;
            text = star_text;
        } else {
            return false;
        }
    }
    return !*pattern;
}
