/* columns.c - counts the columns that text takes on a terminal. wcwidth() knows only ASCII in the C locale, although
 * terminals show UTF-8 there, too, and a static program cannot bring a locale along. */
#include "base/terminal.h"

#include <limits.h>
#include <string.h>
#include <unictype.h>
#include <unistr.h>
#include <uniwidth.h>

bool act_is_mark(uint32_t character)
{
    return uc_is_general_category_withtable(character, UC_CATEGORY_MASK_Mn | UC_CATEGORY_MASK_Me);
}

uint32_t act_utf8_decode(const char *s, size_t len)
{
    ucs4_t c;

    u8_mbtouc_unsafe(&c, (const uint8_t *)s, len);
    return c;
}

static int columns_of(uint32_t character)
{
    int columns = uc_width(character, "UTF-8");

    return columns < 0 ? 1 : columns;
}

size_t act_columns_fit(const char *text, int room, int *out_columns)
{
    size_t len = strlen(text), at = 0;

    *out_columns = 0;
    while (at < len) {
        size_t n = act_utf8_char(text + at, len - at);
        int columns = n ? columns_of(act_utf8_decode(text + at, n)) : 1;
        if (columns > room - *out_columns)
            break;
        *out_columns += columns;
        at += n ? n : 1;
    }
    return at;
}

int act_columns(const char *text)
{
    int columns;

    act_columns_fit(text, INT_MAX, &columns);
    return columns;
}
