/* words.c - takes a line of a log apart: words, numbers, and what stands between them. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "numbers/numbers_internal.h"

bool numbers_line_add(struct numbers_line *line, struct numbers_words *words, const char *name, double value)
{
    size_t len = strlen(name);

    if (len > NUMBERS_NAME || line->n == NUMBERS_PAIRS)
        return false;
    struct numbers_pair *pair = &line->v[line->n++];
    pair->meaning = numbers_word(words, name)->meaning;
    pair->value = value;
    memcpy(pair->name, name, len + 1);
    return true;
}

/* Returns the end of the escape sequence that begins at s ("ESC [ ... letter" or "ESC x"). */
static const char *behind_escape(const char *s, const char *end)
{
    s++;
    if (s < end && *s == '[')
        for (s++; s < end && !isalpha((unsigned char)*s);)
            s++;
    return s < end ? s + 1 : s;
}

size_t numbers_clean(char *text, size_t len)
{
    const char *from = text, *end = text + len;
    char *to = text;

    if (!memchr(text, '\033', len) && !memchr(text, '\0', len))
        return len;
    while (from < end) {
        if (*from == '\033')
            from = behind_escape(from, end);
        else
            *to++ = *from ? *from : ' ', from++;
    }
    *to = '\0';
    return (size_t)(to - text);
}

bool numbers_in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (c >= '-' && c <= '/') || c == '@'; /* "-./" */
}

/* ---- words that are not names by themselves */

/* "val loss" is "val_loss". */
static const char *const qualifiers[] = {
    "train",   "training", "val",      "valid",    "validation", "eval",     "evaluation", "test",
    "dev",     "avg",      "average",  "mean",     "total",      "learning", "global",     "top",
    "running", "grad",     "gradient", "smoothed", "epoch",      "batch",    "step",
};
/* "the loss is 2.31", "loss: tensor(2.31)". */
static const char *const fillers[] = {"is", "of", "was", "at", "no", "tensor", "array", "float32", "float64"};
/* The units that may stand behind a number without a blank. */
static const char *const units[] = {"s", "ms", "us", "sec", "it/s", "s/it", "x"};

#define IS_ONE_OF(list, word) NUMBERS_IS_AMONG(list, word, strlen(word))

void numbers_judge_word(const char *word, struct numbers_meaning *out)
{
    static const char *const odd[] = {"nan", "inf", "infinity"};

    out->is_qualifier = IS_ONE_OF(qualifiers, word);
    out->is_filler = IS_ONE_OF(fillers, word);
    out->is_odd = IS_ONE_OF(odd, word);
}

/* ---- numbers */

struct number {
    double value, total; /* total 0: no fraction */
    bool is_decimal;     /* it has a point or an exponent */
};

const char *numbers_decimal(const char *s, double *out)
{
    static const double tenths[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
    enum { EXACT = 15, WHOLE = 18 }; /* digits that a double holds, and that digits does: it is rounded once */
    const char *begin = s, *point = NULL;
    uint64_t digits = 0;
    char *end;

    for (;; s++) {
        if (*s >= '0' && *s <= '9')
            digits = digits * 10 + (uint64_t)(*s - '0');
        else if (*s == '.' && !point)
            point = s + 1;
        else
            break;
    }
    size_t decimals = point ? (size_t)(s - point) : 0;
    bool is_plain = s > begin && s - begin <= (point ? EXACT : WHOLE) && decimals < sizeof(tenths) / sizeof(tenths[0]);
    if (!is_plain || *s == 'e' || *s == 'E') {
        *out = strtod(begin, &end);
        return end == begin ? NULL : end;
    }
    *out = (double)digits / tenths[decimals];
    return s;
}

/* Reads a decimal number; NULL: there is none. strtod() would take "0x1f" and "infinite" too. */
static const char *words_read_number(const char *s, struct number *out)
{
    bool is_negative = *s == '-';
    const char *end;

    s += *s == '+' || *s == '-';
    if (!isdigit((unsigned char)*s) && !(*s == '.' && isdigit((unsigned char)s[1])))
        return NULL;
    if (*s == '0' && (s[1] == 'x' || s[1] == 'X'))
        return NULL;
    *out = (struct number){0};
    end = numbers_decimal(s, &out->value);
    out->value = is_negative ? -out->value : out->value;
    for (; s < end; s++)
        out->is_decimal |= *s == '.' || *s == 'e' || *s == 'E';
    return end;
}

/* Returns what is behind a number that nothing speaks against; NULL: it is a part of something else, as of a date, an
 * address or "1,024". */
static const char *read_rest(const char *s)
{
    char unit[8];
    size_t n = 0;

    if (*s && strchr(".,:-_", *s) && isalnum((unsigned char)s[1]))
        return NULL;
    if (*s == '%')
        return s + 1;
    while (n < sizeof(unit) - 1 && (isalpha((unsigned char)s[n]) || s[n] == '/')) {
        unit[n] = s[n];
        n++;
    }
    unit[n] = '\0';
    bool is_alone = !isalnum((unsigned char)s[n]) && s[n] != '_' && s[n] != '/';
    return is_alone && (n == 0 || IS_ONE_OF(units, unit)) ? s + n : NULL;
}

/* Reads "100" or "100/1000". Returns what is behind it; NULL: it is neither. */
static const char *read_amount(const char *s, struct number *out)
{
    struct number total;
    const char *end = words_read_number(s, out), *behind;

    if (!end)
        return NULL;
    const char *below = *end == '/' ? end + 1 + strspn(end + 1, " ") : end; /* "200/ 2983" */
    if (below == end || !isdigit((unsigned char)*below))
        return read_rest(end);
    behind = words_read_number(below, &total);
    if (!behind || *behind == '/' || !(behind = read_rest(behind)))
        return NULL;
    out->total = total.value;
    return behind;
}

/* ---- a line */

struct words_reader {
    struct numbers_line *out;
    struct numbers_words *words;
    char name[NUMBERS_NAME + 1];
    char sep;          /* behind the name: ' ', ':' or '='; 0: there is no name */
    bool glued;        /* nothing between ':' and what follows */
    bool is_qualifier; /* the name may be the beginning of one */
    bool in_brackets;
};

static void forget_name(struct words_reader *r)
{
    r->sep = 0;
}

/* Tells whether a number behind the name is its value. */
static bool words_is_value(const struct words_reader *r, const struct numbers_meaning *m, const struct number *number)
{
    if (m->is_position || m->is_measure || r->sep == '=')
        return true;
    return r->sep == ':' && (!r->glued || number->is_decimal);
}

static void words_take_number(struct words_reader *r, const struct number *number)
{
    struct numbers_meaning m = {0};

    if (r->sep)
        m = numbers_word(r->words, r->name)->meaning;
    bool fits = m.is_position ? number->value >= 0 && isfinite(number->value) : number->total == 0;
    if (r->sep && fits && words_is_value(r, &m, number))
        numbers_line_add(r->out, r->words, r->name, number->value);
    forget_name(r);
}

/* Takes a fraction without a name: "45/100 [00:12<00:15", "1875/1875 [=====]", "[100/1000]". */
static void take_bare(struct words_reader *r, const struct number *number, const char *behind)
{
    bool is_bar = act_starts_with(behind, " [");

    if (r->out->bare_total > 0 || number->value > number->total || number->is_decimal)
        return;
    r->out->bare = number->value;
    r->out->bare_total = number->total;
    r->out->bare_is_step = is_bar || (r->in_brackets && *behind == ']');
}

static void take_amount(struct words_reader *r, const struct number *number, const char *behind)
{
    if (number->total > 0 && !r->sep)
        take_bare(r, number, behind);
    else
        words_take_number(r, number);
}

static void words_take_name(struct words_reader *r, const char *word, bool is_qualifier)
{
    size_t before = r->sep == ' ' && r->is_qualifier ? strlen(r->name) : 0, len = strlen(word);

    if (before + 1 + len > NUMBERS_NAME)
        before = 0;
    if (before > 0)
        r->name[before++] = '_';
    memcpy(r->name + before, word, len + 1);
    r->sep = ' ';
    r->is_qualifier = is_qualifier;
}

static void words_take_any(struct words_reader *r, const char *word)
{
    const struct numbers_meaning m = numbers_word(r->words, word)->meaning;

    if (r->sep && m.is_odd)
        words_take_number(
            r, &(struct number){.value = tolower((unsigned char)*word) == 'n' ? NAN : INFINITY, .is_decimal = true});
    else if (!(r->sep && m.is_filler))
        words_take_name(r, word, m.is_qualifier);
}

/* Reads a word. One that is too long for a name is not one, and ends the name before it. */
static const char *read_word(struct words_reader *r, const char *s)
{
    char word[NUMBERS_NAME + 1];
    size_t n = 0;

    while (numbers_in_name(s[n]))
        n++;
    size_t len = n;
    while (len > 1 && strchr("./@-", s[len - 1]))
        len--;
    if (len > NUMBERS_NAME) {
        forget_name(r);
        return s + n;
    }
    memcpy(word, s, len);
    word[len] = '\0';
    words_take_any(r, word);
    return s + n;
}

/* Skips a text that only begins like a number, to its end. */
static const char *skip_junk(struct words_reader *r, const char *s)
{
    forget_name(r);
    s++;
    while (isalnum((unsigned char)*s) || (*s && strchr(".:,_-/", *s) && isalnum((unsigned char)s[1])))
        s++;
    return s;
}

static const char *take_colon(struct words_reader *r, const char *s)
{
    if (act_starts_with(s, "://")) {
        forget_name(r);
        return s + strcspn(s, " \t");
    }
    if (r->sep)
        r->sep = ':';
    r->glued = s[1] != ' ' && s[1] != '\t';
    return s + 1;
}

/* Tells whether brackets may follow the name: "Epoch [3/10]", "lr=[0.0001, 0.0002]", of which the first one counts. */
static bool may_be_listed(const struct words_reader *r)
{
    const struct numbers_meaning *m = &numbers_word(r->words, r->name)->meaning;

    return m->is_position || (m->is_measure && r->sep != ' ');
}

static const char *take_mark(struct words_reader *r, const char *s)
{
    static const char between[] = " \t'\"`#"; /* a name and its value */

    switch (*s) {
    case ':':
        return take_colon(r, s);
    case '=':
        r->sep = r->sep && s[1] != '=' ? '=' : 0;
        return s + 1;
    case '[':
        r->in_brackets = true;
        if (r->sep && !may_be_listed(r))
            forget_name(r);
        return s + 1;
    case ']':
        r->in_brackets = false;
        break;
    case '(': /* "tensor(2.31" */
        if (r->sep == ':' || r->sep == '=')
            return s + 1;
        break;
    case '-': /* "-inf" */
        if (isalpha((unsigned char)s[1]))
            return s + 1;
        break;
    default:
        break;
    }
    if (!strchr(between, *s))
        forget_name(r);
    return s + 1;
}

void numbers_read_words(const char *text, struct numbers_words *words, struct numbers_line *out)
{
    struct words_reader r = {.out = out, .words = words};
    struct number number;

    for (const char *s = text; *s;) {
        const char *end = read_amount(s, &number);
        if (end) {
            take_amount(&r, &number, end);
            s = end;
        } else if (isdigit((unsigned char)*s)) {
            s = skip_junk(&r, s);
        } else if (isalpha((unsigned char)*s) || *s == '_') {
            s = read_word(&r, s);
        } else {
            s = take_mark(&r, s);
        }
    }
}
