/* needle.c - the texts of which every match of a regular expression has one in it.
 *
 * Characters that stand next to each other, outside groups and for themselves, are such a text. Whatever may be there
 * or not ends it: when in doubt, a shorter one is right as well.
 */
#include "flow/logs/needle.h"

#include <string.h>

/* Text for itself; any one character or a place; what repeats the character before it; a group's ends; "or". */
enum needle_kind { NEEDLE_CHAR, NEEDLE_ANY, NEEDLE_REPEAT, NEEDLE_OPEN, NEEDLE_CLOSE, NEEDLE_OR };

static const char needle_special[] = "\\^$.[]|()*+?{}";

/* Returns the end of "[...]", in which a ']' may come first and "[:alpha:]" has one of its own. */
static const char *end_of_bracket(const char *p)
{
    p += 1 + (p[1] == '^');
    for (p += *p == ']'; *p && *p != ']'; p++) {
        char close[] = {p[1], ']', '\0'};
        const char *end = *p == '[' && p[1] && strchr(":.=", p[1]) ? strstr(p + 2, close) : NULL;
        p = end ? end + 1 : p;
    }
    return *p ? p + 1 : p;
}

static enum needle_kind needle_kind_of(char c)
{
    switch (c) {
    case '(':
        return NEEDLE_OPEN;
    case ')':
        return NEEDLE_CLOSE;
    case '|':
        return NEEDLE_OR;
    case '*':
    case '+':
    case '?':
    case '{':
        return NEEDLE_REPEAT;
    default:
        return strchr(needle_special, c) ? NEEDLE_ANY : NEEDLE_CHAR;
    }
}

/* Takes the next piece of the expression; *c is its character, if it stands for one. */
static enum needle_kind needle_next(const char **at, char *c)
{
    const char *p = *at;
    bool escaped = *p == '\\' && p[1], for_itself = escaped && strchr(needle_special, p[1]);
    enum needle_kind kind = for_itself ? NEEDLE_CHAR : escaped ? NEEDLE_ANY : needle_kind_of(*p);

    *c = p[escaped];
    if (*p == '[')
        *at = end_of_bracket(p);
    else if (*p == '{')
        *at = p + strcspn(p, "}") + (strchr(p, '}') != NULL);
    else
        *at = p + 1 + escaped;
    return kind;
}

/* Drops the last character; of those with several bytes all that stand at the end. */
static void needle_drop_last(struct act_buf *run)
{
    if (run->len > 0 && !(run->data[run->len - 1] & 0x80)) {
        run->len--;
        return;
    }
    while (run->len > 0 && run->data[run->len - 1] & 0x80)
        run->len--;
}

/* A text that goes on, and the longest one of this alternative. */
struct needle_search {
    struct act_buf run, best;
};

static void needle_end_run(struct needle_search *s)
{
    if (s->run.len > s->best.len) {
        s->best.len = 0;
        act_buf_add(&s->best, s->run.data, s->run.len);
    }
    s->run.len = 0;
}

/* Ends an alternative. Returns whether it has a text. */
static bool needle_end_branch(struct needle_search *s, struct act_strv *out)
{
    needle_end_run(s);
    if (s->best.len == 0 || out->n == NEEDLES_MAX)
        return false;
    act_strv_push(out, s->best.data);
    s->best.len = 0;
    return true;
}

void flow_needles(const char *pattern, struct act_strv *out)
{
    struct needle_search s = {0};
    bool fine = true;
    int depth = 0;

    for (char c; *pattern && fine;) {
        enum needle_kind kind = needle_next(&pattern, &c);
        if (kind == NEEDLE_CHAR && depth == 0) {
            act_buf_addc(&s.run, c);
            continue;
        }
        if (kind == NEEDLE_REPEAT)
            needle_drop_last(&s.run);
        needle_end_run(&s);
        if (kind == NEEDLE_OR && depth == 0)
            fine = needle_end_branch(&s, out);
        depth += (kind == NEEDLE_OPEN) - (kind == NEEDLE_CLOSE);
    }
    if (!fine || !needle_end_branch(&s, out))
        act_strv_release(out);
    act_buf_release(&s.run);
    act_buf_release(&s.best);
}
