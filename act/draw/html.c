/* html.c - turns text from outside into HTML. */
#include <string.h>

#include "base/terminal.h"
#include "draw/draw.h"

static const char *entity(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

void draw_escaped(struct act_buf *out, const char *text)
{
    struct act_harmless harmless = {.allow = ACT_SHOW_LINES};
    ACT_AUTO(act_buf) shown = {0};

    act_harmless_add(&harmless, text, strlen(text), &shown);
    act_harmless_end(&harmless, &shown);
    for (size_t i = 0; i < shown.len; i++) {
        const char *as = entity(shown.data[i]);
        if (as)
            act_buf_adds(out, as);
        else
            act_buf_addc(out, shown.data[i]);
    }
}
