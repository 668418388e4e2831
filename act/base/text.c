#include "base/text.h"

#include <ctype.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistr.h>

static void *text_checked(void *p)
{
    if (!p) {
        fputs("act: out of memory\n", stderr);
        abort();
    }
    return p;
}

void *act_alloc(size_t size)
{
    return text_checked(malloc(size ? size : 1));
}

void *act_calloc(size_t count, size_t size)
{
    return text_checked(calloc(count ? count : 1, size ? size : 1));
}

void *act_realloc(void *old, size_t size)
{
    return text_checked(realloc(old, size ? size : 1));
}

void *act_grow(void *v, size_t n, size_t item_size)
{
    bool is_full = (n & (n - 1)) == 0; /* at 0 and every power of two */

    return is_full ? act_realloc(v, (n ? 2 * n : 1) * item_size) : v;
}

char *act_strdup(const char *s)
{
    return s ? text_checked(strdup(s)) : NULL;
}

void act_wipe_bytes(void *secret, size_t len)
{
    if (secret)
        explicit_bzero(secret, len);
    free(secret);
}

void act_wipe(char **secret)
{
    act_wipe_bytes(*secret, *secret ? strlen(*secret) : 0);
    *secret = NULL;
}

void act_free_wiping(void *block)
{
    act_wipe_bytes(block, block ? malloc_usable_size(block) : 0);
}

void *act_realloc_wiping(void *block, size_t size)
{
    size_t held = block ? malloc_usable_size(block) : 0;
    void *moved = malloc(size ? size : 1);

    if (moved && held)
        memcpy(moved, block, held < size ? held : size);
    if (moved)
        act_wipe_bytes(block, held);
    return moved;
}

void act_str_replace(char **text, const char *by)
{
    char *old = *text;

    *text = act_strdup(by);
    free(old);
}

char *act_strndup(const char *s, size_t len)
{
    return text_checked(strndup(s, len));
}

/* Returns the length that the text will have. */
ACT_PRINTF(1, 0)
static size_t text_measure(const char *fmt, va_list ap)
{
    va_list again;

    va_copy(again, ap);
    int len = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (len < 0)
        text_checked(NULL);
    return (size_t)len;
}

/* vasprintf() would leave a copy of the text in memory that it has freed. */
char *act_vsprintf(const char *fmt, va_list ap)
{
    size_t len = text_measure(fmt, ap);
    char *s = act_alloc(len + 1);

    vsnprintf(s, len + 1, fmt, ap);
    return s;
}

char *act_sprintf(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    char *s = act_vsprintf(fmt, ap);
    va_end(ap);
    return s;
}

bool act_starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool act_ends_with(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);

    return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

size_t act_utf8_char(const char *s, size_t len)
{
    ucs4_t c;
    int n = u8_mbtoucr(&c, (const uint8_t *)s, len);

    return n > 0 ? (size_t)n : 0;
}

bool act_utf8_valid(const char *s, size_t len)
{
    return !u8_check((const uint8_t *)s, len);
}

bool act_is_control(const char *s)
{
    const unsigned char *c = (const unsigned char *)s;

    return c[0] < 0x20 || c[0] == 0x7f || (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0);
}

bool act_has_control(const char *s)
{
    while (*s && !act_is_control(s))
        s++;
    return *s != '\0';
}

void act_mask_controls(char *text, const char *keep, char mask)
{
    for (; *text; text++)
        if (((unsigned char)*text < 0x20 || *text == 0x7f) && !strchr(keep, *text))
            *text = mask;
}

static size_t count_plain(const char *text, size_t len)
{
    size_t n = 0;

    while (n < len && text[n] >= 0x20 && text[n] < 0x7f)
        n++;
    return n;
}

char *act_one_line(const char *text, size_t len)
{
    struct act_buf out = {0};

    for (size_t n, plain; len > 0; text += n, len -= n) {
        plain = count_plain(text, len);
        n = plain ? plain : act_utf8_char(text, len);
        if (n == 0 || act_is_control(text))
            act_buf_addc(&out, n && isspace((unsigned char)*text) ? ' ' : '?');
        else
            act_buf_add(&out, text, n);
        n += n == 0;
    }
    return act_buf_steal(&out);
}

void act_copy_line(char *out, size_t size, const char *text)
{
    char *line = act_one_line(text, strlen(text));
    size_t len = strlen(line), n = 0, next;

    while (n < len && (next = act_utf8_char(line + n, len - n)) > 0 && n + next < size)
        n += next;
    snprintf(out, size, "%.*s", (int)n, line);
    free(line);
}

char *act_printable(const char *s)
{
    struct act_buf out = {0};

    for (size_t left = strlen(s), n; left > 0; s += n, left -= n) {
        size_t len = act_is_control(s) ? 0 : act_utf8_char(s, left);
        n = len ? len : 1;
        if (len)
            act_buf_add(&out, s, len);
        else
            act_buf_addf(&out, "\\x%02x", (unsigned char)*s);
    }
    return act_buf_steal(&out);
}

static int min3(int a, int b, int c)
{
    int m = a < b ? a : b;

    return m < c ? m : c;
}

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Tells whether both begin with the same two letters, in opposite orders. */
static bool are_swapped(const char *a, const char *b)
{
    return same_letter(a[0], b[1]) && same_letter(a[1], b[0]);
}

int act_edit_distance(const char *a, const char *b)
{
    enum { LIMIT = 64 };
    int d[LIMIT + 1][LIMIT + 1]; /* from the first i letters of a to the first j of b */
    size_t na = strlen(a), nb = strlen(b);

    if (na > LIMIT || nb > LIMIT)
        return LIMIT;
    for (size_t j = 0; j <= nb; j++)
        d[0][j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        d[i][0] = (int)i;
        for (size_t j = 1; j <= nb; j++) {
            int other = d[i - 1][j - 1] + !same_letter(a[i - 1], b[j - 1]);
            d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1, other);
            if (i > 1 && j > 1 && are_swapped(a + i - 2, b + j - 2))
                d[i][j] = min3(d[i][j], d[i - 2][j - 2] + 1, d[i][j]);
        }
    }
    return d[na][nb];
}

/* Returns the first candidate that word is the beginning of; one letter is none. NULL: there is none. */
static const char *text_begun(const char *word, const char *const *candidates)
{
    size_t len = strlen(word);

    for (; len > 1 && *candidates; candidates++)
        if (strncasecmp(word, *candidates, len) == 0)
            return *candidates;
    return NULL;
}

/* Returns the candidate behind which only one mark stands, as in "modules_". */
static const char *text_marked(const char *word, const char *const *candidates)
{
    size_t len = strlen(word);

    for (; len > 2 && !isalnum((unsigned char)word[len - 1]) && *candidates; candidates++)
        if (strlen(*candidates) == len - 1 && strncasecmp(word, *candidates, len - 1) == 0)
            return *candidates;
    return NULL;
}

const char *act_nearest(const char *word, const char *const *candidates)
{
    const char *marked = text_marked(word, candidates), *best = marked ? marked : text_begun(word, candidates);
    int best_distance = 1 + (int)strlen(word) / 3; /* one slip in a short word, more in a long one */

    if (best)
        return best;
    for (; *candidates; candidates++) {
        int d = act_edit_distance(word, *candidates);
        if (d < best_distance || (d == best_distance && !best)) {
            best = *candidates;
            best_distance = d;
        }
    }
    return best;
}

static void reserve(struct act_buf *b, size_t more)
{
    size_t need = b->len + more + 1;

    if (b->data && need <= b->cap)
        return;
    b->cap = need < 2 * b->cap ? 2 * b->cap : need < 64 ? 64 : need;
    b->data = text_checked(act_realloc_wiping(b->data, b->cap));
}

void act_buf_add(struct act_buf *b, const void *data, size_t len)
{
    reserve(b, len);
    if (len)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = '\0';
}

void act_buf_adds(struct act_buf *b, const char *s)
{
    act_buf_add(b, s, strlen(s));
}

void act_buf_addc(struct act_buf *b, char c)
{
    act_buf_add(b, &c, 1);
}

void act_buf_addf(struct act_buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    size_t len = text_measure(fmt, ap);
    reserve(b, len);
    vsnprintf(b->data + b->len, len + 1, fmt, ap);
    b->len += len;
    va_end(ap);
}

/* A backslash quotes nothing in the single quotes of some shells, so a quote goes into double ones. */
void act_buf_add_quoted(struct act_buf *b, const char *word)
{
    act_buf_addc(b, '\'');
    for (size_t n; *word; word += n) {
        n = strcspn(word, "'");
        act_buf_add(b, word, n);
        if (word[n]) {
            act_buf_adds(b, "'\"'\"'");
            n++;
        }
    }
    act_buf_addc(b, '\'');
}

char *act_buf_steal(struct act_buf *b)
{
    char *s = b->data ? b->data : act_strdup("");

    *b = (struct act_buf){0};
    return s;
}

void act_buf_release(struct act_buf *b)
{
    free(b->data);
    *b = (struct act_buf){0};
}

void act_buf_wipe(struct act_buf *b)
{
    act_wipe_bytes(b->data, b->cap);
    *b = (struct act_buf){0};
}

void act_strv_take(struct act_strv *s, char *text)
{
    ACT_GROW(s->v, s->n + 1); /* the NULL counts */
    s->v[s->n++] = text;
    s->v[s->n] = NULL;
}

void act_strv_push(struct act_strv *s, const char *text)
{
    act_strv_take(s, act_strdup(text));
}

void act_strv_pushf(struct act_strv *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    act_strv_take(s, act_vsprintf(fmt, ap));
    va_end(ap);
}

void act_strv_add(struct act_strv *s, const char *const *words)
{
    for (; *words; words++)
        act_strv_push(s, *words);
}

void act_strv_copy(struct act_strv *s, char *const *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        act_strv_push(s, v[i]);
}

bool act_strv_has(const struct act_strv *s, const char *text)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->v[i], text) == 0)
            return true;
    return false;
}

int act_by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void act_strv_sort(struct act_strv *s)
{
    if (s->n > 1)
        qsort(s->v, s->n, sizeof(*s->v), act_by_text);
}

void act_strv_release(struct act_strv *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->v[i]);
    free(s->v);
    *s = (struct act_strv){0};
}
