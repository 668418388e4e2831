#include "filter/pattern.h"

#include <stdint.h>
#include <string.h>

#include "base/file.h"
#include "base/glob.h"

#define MAX_FILE_BYTES (1024 * 1024)

static const char specials[] = "*?[\\";

/* Most patterns are a name or "*.ending": these are compared, the rest is left to act_glob(). */
enum part_kind { PART_LITERAL, PART_ENDING, PART_GLOB, PART_ANY_DEPTH };

/* A segment of a pattern. */
struct filter_part {
    enum part_kind kind;
    char *text; /* as written */
    size_t len;
};

/* ---- paths */

void filter_path_set(struct filter_path *path, const char *text)
{
    size_t size = strlen(text) + 1;

    if (size > path->text_cap) {
        path->text_cap = size * 2;
        free(path->text);
        path->text = act_alloc(path->text_cap);
    }
    memcpy(path->text, text, size);
    path->n = 0;
    for (char *p = path->text, *slash; p; p = slash ? slash + 1 : NULL) {
        slash = strchr(p, '/');
        if (slash)
            *slash = '\0';
        if (path->n == path->v_cap) { /* kept from path to path */
            path->v_cap = path->v_cap ? path->v_cap * 2 : 16;
            path->v = act_realloc(path->v, path->v_cap * sizeof(*path->v));
        }
        path->v[path->n++] = p;
    }
}

void filter_path_release(struct filter_path *path)
{
    free(path->text);
    free(path->v);
    *path = (struct filter_path){0};
}

/* ---- patterns */

static enum part_kind pattern_kind_of(const char *part)
{
    size_t stars = strspn(part, "*");

    if (stars >= 2 && part[stars] == '\0')
        return PART_ANY_DEPTH;
    if (stars > 0 && !strpbrk(part + stars, specials))
        return PART_ENDING;
    return strpbrk(part, specials) ? PART_GLOB : PART_LITERAL;
}

static void pattern_add_part(struct filter_pattern *pattern, const char *text, size_t len)
{
    struct filter_part part = {.text = act_strndup(text, len), .len = len};

    part.kind = pattern_kind_of(part.text);
    ACT_PUSH(pattern->parts, pattern->n_parts, part);
}

/* Returns the position after the ']' that ends the bracket expression at p, or NULL. A ']' that comes first belongs to
 * the set, and so do those of "[:class:]". */
static const char *pattern_skip_bracket(const char *p)
{
    p++;
    p += *p == '!' || *p == '^';
    for (const char *first = p; *p && (*p != ']' || p == first); p++) {
        if (p[0] == '[' && p[1] == ':') {
            p = strstr(p + 2, ":]");
            if (!p)
                return NULL;
            p++;
        } else if (*p == '\\' && *++p == '\0') {
            return NULL;
        }
    }
    return *p ? p + 1 : NULL;
}

/* Returns the slash that ends the segment at p, or end. A slash in brackets is a character that never matches; for one
 * with a backslash before it, which is a slash like any other, it returns the backslash. */
static const char *segment_end(const char *p, const char *end)
{
    while (p < end && *p != '/') {
        const char *behind = *p == '[' ? pattern_skip_bracket(p) : NULL;
        if (*p == '\\' && p + 1 < end && p[1] == '/')
            return p;
        if (behind && behind <= end)
            p = behind;
        else
            p += *p == '\\' && p + 1 < end ? 2 : 1;
    }
    return p;
}

/* Cuts at every slash; two in a row give an empty part, which matches nothing, as in git. */
static void add_parts(struct filter_pattern *pattern, const char *text, size_t len)
{
    const char *end = text + len;

    while (len > 0 && text <= end) {
        const char *stop = segment_end(text, end);
        pattern_add_part(pattern, text, (size_t)(stop - text));
        text = stop + (*stop == '\\' ? 2 : 1);
    }
}

void filter_pattern_init(struct filter_pattern *pattern, const char *text)
{
    *pattern = (struct filter_pattern){.text = act_strdup(text)};
    pattern->take_back = *text == '!';
    text += pattern->take_back;
    pattern->anchored = *text == '/';
    text += pattern->anchored;
    size_t len = strlen(text);
    pattern->folder_only = len > 0 && text[len - 1] == '/';
    len -= pattern->folder_only;
    pattern->anchored = pattern->anchored || memchr(text, '/', len);
    add_parts(pattern, text, len);
}

void filter_pattern_release(struct filter_pattern *pattern)
{
    for (size_t i = 0; i < pattern->n_parts; i++)
        free(pattern->parts[i].text);
    free(pattern->parts);
    free(pattern->text);
    *pattern = (struct filter_pattern){0};
}

bool filter_pattern_is_plain(const struct filter_pattern *pattern)
{
    return !strpbrk(pattern->text, specials);
}

/* ---- patterns that cannot match */

static const char *part_problem(const char *part)
{
    if (*part == '\0')
        return "has two slashes in a row, which no path has";
    if (act_streq(part, ".") || act_streq(part, ".."))
        return "has a segment '.' or '..', which no path has";
    for (const char *p = part; *p;) {
        if (*p == '\\' && p[1] == '\0')
            return "has a backslash that protects nothing";
        if (*p == '[') {
            p = pattern_skip_bracket(p);
            if (!p)
                return "has no ']' for its '[' (write '\\[' for the character itself)";
        } else {
            p += *p == '\\' ? 2 : 1;
        }
    }
    return NULL;
}

const char *filter_pattern_problem(const struct filter_pattern *pattern)
{
    if (!act_utf8_valid(pattern->text, strlen(pattern->text)))
        return "is not UTF-8 text";
    if (pattern->n_parts == 0)
        return "is empty";
    for (size_t i = 0; i < pattern->n_parts; i++) {
        const char *problem = part_problem(pattern->parts[i].text);
        if (problem)
            return problem;
    }
    return NULL;
}

/* ---- matching */

static bool ends_in(const char *segment, const struct filter_part *part)
{
    size_t stars = strspn(part->text, "*"), len = part->len - stars, have = strlen(segment);

    return have >= len && memcmp(segment + have - len, part->text + stars, len) == 0;
}

static bool part_matches(const struct filter_part *part, const char *segment, bool bytes)
{
    switch (part->kind) {
    case PART_LITERAL:
        return strcmp(part->text, segment) == 0;
    case PART_ENDING:
        return ends_in(segment, part);
    case PART_GLOB:
        return act_glob(part->text, segment, bytes ? ACT_GLOB_ESCAPES | ACT_GLOB_BYTES : ACT_GLOB_ESCAPES);
    case PART_ANY_DEPTH:
        return true;
    }
    return false;
}

/* It is enough to go back to the last "**", which can always do what those before it could. */
static bool parts_match(const struct filter_pattern *pattern, char *const *path, size_t n)
{
    size_t p = 0, s = 0, star = SIZE_MAX, star_s = 0;

    while (s < n) {
        if (p < pattern->n_parts && pattern->parts[p].kind == PART_ANY_DEPTH) {
            star = p++;
            star_s = p == pattern->n_parts ? s + 1 : s;
            s = star_s;
        } else if (p < pattern->n_parts && part_matches(&pattern->parts[p], path[s], pattern->bytes)) {
            p++;
            s++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            s = ++star_s;
        } else {
            return false;
        }
    }
    return p == pattern->n_parts && s == n;
}

bool filter_pattern_matches(const struct filter_pattern *pattern, const struct filter_path *path, size_t depth,
                            bool is_folder)
{
    if (pattern->n_parts == 0 || (pattern->folder_only && !is_folder))
        return false;
    if (!pattern->anchored)
        return part_matches(&pattern->parts[0], path->v[depth - 1], pattern->bytes);
    return parts_match(pattern, path->v, depth);
}

/* ---- files */

/* Cuts the line end, and unescaped blanks before it. */
static void trim_line(char *line)
{
    size_t len = strlen(line);
    char *end = line;

    if (len > 0 && line[len - 1] == '\r')
        line[len - 1] = '\0';
    for (char *p = line; *p;) {
        bool blank = *p == ' ';
        p += *p == '\\' && p[1] != '\0' ? 2 : 1;
        if (!blank)
            end = p;
    }
    *end = '\0';
}

static int pattern_take_lines(const char *file, const char *text, size_t len, struct act_strv *out,
                              struct act_error *err)
{
    if (strlen(text) != len || !act_utf8_valid(text, len))
        return act_error_set(err, ACT_CONFIG, "cannot use '%s': it is not UTF-8 text", file);
    const char *p = act_starts_with(text, "\xef\xbb\xbf") ? text + 3 : text;
    while (*p) {
        size_t n = strcspn(p, "\n");
        char *line = act_strndup(p, *p == '#' ? 0 : n);
        trim_line(line);
        act_strv_take(out, line);
        p += n + (p[n] == '\n');
    }
    return 0;
}

int filter_read_lines(const char *file, struct act_strv *out, struct act_error *err)
{
    ACT_AUTOFREE char *text = NULL;
    size_t len = 0;
    int rc = act_file_read(file, MAX_FILE_BYTES, &text, &len, err);

    return rc < 0 ? rc : pattern_take_lines(file, text, len, out, err);
}

int filter_read_regular_lines(const char *file, struct act_strv *out, struct act_error *err)
{
    ACT_AUTOFREE char *text = NULL;
    size_t len = 0;
    int rc = act_file_read_regular(file, MAX_FILE_BYTES, &text, &len, err);

    return rc < 0 ? rc : pattern_take_lines(file, text, len, out, err);
}
