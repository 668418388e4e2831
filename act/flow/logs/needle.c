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
struct needle_pieces {
    struct act_buf run, best;
};

static void needle_end_run(struct needle_pieces *s)
{
    if (s->run.len > s->best.len) {
        s->best.len = 0;
        act_buf_add(&s->best, s->run.data, s->run.len);
    }
    s->run.len = 0;
}

/* Ends an alternative. Returns whether it has a text. */
static bool needle_end_branch(struct needle_pieces *s, struct act_strv *out)
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
    struct needle_pieces s = {0};
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

/* ---- looking for them */

enum { NEEDLE_BLOCK = 16 }; /* bytes that are compared at once */

typedef uint8_t needle_block __attribute__((vector_size(NEEDLE_BLOCK)));

/* Returns how often a byte stands in logs, by what is known of English, numbers and code: the less, the better. */
static size_t needle_frequency(char c)
{
    static const char from_often[] = " e0ta1onirs2ld.c3p4um5-6f7g8h9:_b=/,yvwk[]x";
    const char *at = c ? strchr(from_often, c) : NULL;

    return at ? sizeof(from_often) - (size_t)(at - from_often) : 0;
}

/* Chooses the two rarest bytes of a text; the only one twice. */
static void needle_choose(struct needle *n)
{
    for (size_t i = 1; i < n->len; i++)
        if (needle_frequency(n->text[i]) < needle_frequency(n->text[n->at[0]]))
            n->at[0] = i;
    n->at[1] = n->at[0] == 0 && n->len > 1;
    for (size_t i = 0; i < n->len; i++)
        if (i != n->at[0] && needle_frequency(n->text[i]) < needle_frequency(n->text[n->at[1]]))
            n->at[1] = i;
    for (size_t i = 0; i < 2; i++)
        n->byte[i] = (uint8_t)n->text[n->at[i]];
}

void flow_needles_prepare(const struct act_strv *needles, struct needle_search *out)
{
    *out = (struct needle_search){.n = needles->n};
    for (size_t i = 0; i < needles->n; i++) {
        struct needle *n = &out->v[i];
        *n = (struct needle){.text = needles->v[i], .len = strlen(needles->v[i])};
        needle_choose(n);
        out->longest = n->len > out->longest ? n->len : out->longest;
    }
}

static bool needle_is_at(const struct needle_search *s, const char *text, const char *end)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].len <= (size_t)(end - text) && memcmp(text, s->v[i].text, s->v[i].len) == 0)
            return true;
    return false;
}

/* Returns the first place before last where one of them is; last: none is. */
static const char *needle_look(const struct needle_search *s, const char *text, const char *last, const char *end)
{
    while (text < last && !needle_is_at(s, text, end))
        text++;
    return text;
}

static needle_block needle_compare(const char *text, uint8_t byte)
{
    needle_block block;

    memcpy(&block, text, sizeof(block));
    return (needle_block)(block == byte);
}

/* Tells whether one of them may begin in the block of text here. */
static bool needle_may_begin(const struct needle_search *s, const char *text)
{
    needle_block any = {0};
    uint64_t halves[NEEDLE_BLOCK / sizeof(uint64_t)];

    for (size_t i = 0; i < s->n; i++) {
        const struct needle *n = &s->v[i];
        any |= needle_compare(text + n->at[0], n->byte[0]) & needle_compare(text + n->at[1], n->byte[1]);
    }
    memcpy(halves, &any, sizeof(any));
    return (halves[0] | halves[1]) != 0;
}

const char *flow_needles_find(const struct needle_search *s, const char *text, const char *end)
{
    for (; (size_t)(end - text) >= NEEDLE_BLOCK + s->longest; text += NEEDLE_BLOCK) {
        if (!needle_may_begin(s, text))
            continue;
        const char *found = needle_look(s, text, text + NEEDLE_BLOCK, end);
        if (found < text + NEEDLE_BLOCK)
            return found;
    }
    return needle_look(s, text, end, end);
}
