/* lines.c - the lines in which two texts differ, as diff -u shows them: the longest common run of lines stays, and all
 * else is taken out or put in. Pure. */
#include <stdint.h>
#include <string.h>

#include "flow/look/parts.h"

enum {
    MAX_LINES = 2000, /* of each text: all pairs of them are compared */
    CONTEXT = 3,
    MAX_SHOWN = 200,
};

struct diff_line {
    char sign; /* ' ', '-' or '+' */
    const char *text;
};
struct diff_script {
    struct diff_line *v;
    size_t n;
};

static void lines_split(const char *text, struct act_strv *out)
{
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        act_strv_take(out, act_strndup(text, n));
    }
}

static void script_add(struct diff_script *script, char sign, const char *text)
{
    ACT_PUSH(script->v, script->n, (struct diff_line){sign, text});
}

/* Adds how n lines become m others, which begin and end differently. */
static void script_between(char *const *a, size_t n, char *const *b, size_t m, struct diff_script *script)
{
    size_t width = m + 1, i = 0, j = 0;
    ACT_AUTOFREE uint16_t *common = act_calloc((n + 1) * width, sizeof(*common)); /* how many from a[i], b[j] on */

    for (size_t k = n; k-- > 0;)
        for (size_t l = m; l-- > 0;) {
            uint16_t *at = &common[k * width + l];
            at[0] = strcmp(a[k], b[l]) == 0 ? (uint16_t)(at[width + 1] + 1) : at[width] > at[1] ? at[width] : at[1];
        }
    while (i < n || j < m) {
        bool same = i < n && j < m && strcmp(a[i], b[j]) == 0;
        bool gone = !same && i < n && (j == m || common[(i + 1) * width + j] >= common[i * width + j + 1]);
        script_add(script, same ? ' ' : gone ? '-' : '+', same || gone ? a[i] : b[j]);
        i += same || gone;
        j += same || !gone;
    }
}

static void script_make(const struct act_strv *a, const struct act_strv *b, struct diff_script *script)
{
    size_t least = a->n < b->n ? a->n : b->n, before = 0, after = 0;

    while (before < least && strcmp(a->v[before], b->v[before]) == 0)
        before++;
    while (after < least - before && strcmp(a->v[a->n - 1 - after], b->v[b->n - 1 - after]) == 0)
        after++;
    for (size_t i = 0; i < before; i++)
        script_add(script, ' ', a->v[i]);
    if (a->n + b->n > 2 * (before + after))
        script_between(a->v + before, a->n - before - after, b->v + before, b->n - before - after, script);
    for (size_t i = a->n - after; i < a->n; i++)
        script_add(script, ' ', a->v[i]);
}

/* Tells whether a line has changed, or is beside one that has. */
static bool script_shows(const struct diff_script *script, size_t i)
{
    size_t first = i > CONTEXT ? i - CONTEXT : 0;

    for (size_t k = first; k <= i + CONTEXT && k < script->n; k++)
        if (script->v[k].sign != ' ')
            return true;
    return false;
}

/* Appends "@@ -3,7 +3,8 @@" and the lines from first to end, before which there are as many of each text. */
static void script_add_hunk(const struct diff_script *script, size_t first, size_t end, const size_t before[2],
                            struct act_buf *out)
{
    size_t n[2] = {0};

    for (size_t i = first; i < end; i++) {
        n[0] += script->v[i].sign != '+';
        n[1] += script->v[i].sign != '-';
    }
    act_buf_addf(out, "@@ -%zu,%zu +%zu,%zu @@\n", before[0] + (n[0] > 0), n[0], before[1] + (n[1] > 0), n[1]);
    for (size_t i = first; i < end; i++)
        act_buf_addf(out, "%c%s\n", script->v[i].sign, script->v[i].text);
}

static char *script_text(const struct diff_script *script)
{
    size_t before[2] = {0}, shown = 0;
    struct act_buf out = {0};

    for (size_t i = 0, end; i < script->n; i = end + (end == i)) {
        for (end = i; end < script->n && script_shows(script, end) && shown < MAX_SHOWN; end++)
            shown++;
        if (end > i)
            script_add_hunk(script, i, end, before, &out);
        if (shown == MAX_SHOWN) {
            act_buf_adds(&out, "...\n");
            break;
        }
        for (size_t k = i; k < end + (end == i); k++) {
            before[0] += script->v[k].sign != '+';
            before[1] += script->v[k].sign != '-';
        }
    }
    return out.len ? act_buf_steal(&out) : NULL;
}

char *flow_changed_lines(const char *from, const char *to)
{
    ACT_AUTO(act_strv) a = {0};
    ACT_AUTO(act_strv) b = {0};
    struct diff_script script = {0};
    char *text = NULL;

    lines_split(from, &a);
    lines_split(to, &b);
    if (a.n <= MAX_LINES && b.n <= MAX_LINES) {
        script_make(&a, &b, &script);
        text = script_text(&script);
    }
    free(script.v);
    return text;
}
