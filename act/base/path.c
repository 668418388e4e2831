#include "base/path.h"

#include <string.h>

#include "base/text.h"

char *act_path_join(const char *a, const char *b)
{
    size_t n = strlen(a);

    if (n == 0 || *b == '\0')
        return act_strdup(n ? a : b);
    return act_sprintf("%s%s%s", a, a[n - 1] == '/' ? "" : "/", *b == '/' ? b + 1 : b);
}

char *act_path_below(const char *dir, const char *rel)
{
    return act_sprintf("%s%s%s", dir, *dir && *rel ? "/" : "", rel);
}

char *act_path_dirname(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return act_strdup(".");
    while (slash > path && slash[-1] == '/')
        slash--;
    return slash == path ? act_strdup("/") : act_strndup(path, (size_t)(slash - path));
}

const char *act_path_basename(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Drops the last segment of out; returns false if it must stay, as in "../..". */
static bool drop_last_segment(struct act_buf *out, bool absolute)
{
    const char *slash = out->len ? memrchr(out->data, '/', out->len) : NULL;
    const char *last = slash ? slash + 1 : out->data;

    if (out->len == 0)
        return absolute;
    if (strcmp(last, "..") == 0)
        return false;
    out->len = slash ? (size_t)(slash - out->data) : 0;
    out->data[out->len] = '\0';
    return true;
}

char *act_path_clean(const char *path)
{
    ACT_AUTO(act_buf) out = {0}, full = {0};
    bool absolute = *path == '/';

    for (const char *s = path; *s;) {
        size_t n = strcspn(s, "/");
        bool up = n == 2 && s[0] == '.' && s[1] == '.';
        bool skip = n == 0 || (n == 1 && s[0] == '.') || (up && drop_last_segment(&out, absolute));
        if (!skip) {
            if (out.len)
                act_buf_addc(&out, '/');
            act_buf_add(&out, s, n);
        }
        s += n + (s[n] == '/');
    }
    act_buf_addf(&full, "%s%s", absolute ? "/" : "", out.len ? out.data : absolute ? "" : ".");
    return act_buf_steal(&full);
}

static bool is_parent(const char *segment, size_t n)
{
    return n == 2 && segment[0] == '.' && segment[1] == '.';
}

static bool is_dots(const char *segment, size_t n)
{
    return is_parent(segment, n) || (n == 1 && segment[0] == '.');
}

static bool has_segment(const char *path, bool (*is)(const char *segment, size_t n))
{
    for (size_t n; *path; path += n + (path[n] == '/')) {
        n = strcspn(path, "/");
        if (is(path, n))
            return true;
    }
    return false;
}

bool act_path_has_parent(const char *path)
{
    return has_segment(path, is_parent);
}

bool act_path_has_dots(const char *path)
{
    return has_segment(path, is_dots);
}

bool act_path_is_safe(const char *name, size_t len)
{
    if (len == 0 || name[0] == '/' || memchr(name, '\0', len))
        return false;
    for (size_t i = 0; i < len;) {
        const char *slash = memchr(name + i, '/', len - i);
        size_t n = slash ? (size_t)(slash - name) - i : len - i;
        if (n == 0 || is_dots(name + i, n))
            return false;
        i += n + 1;
    }
    return true;
}

bool act_path_is_within(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    if (strcmp(dir, ".") == 0)
        return *path != '/' && strcmp(path, "..") != 0 && !act_starts_with(path, "../");
    if (n && dir[n - 1] == '/')
        return act_starts_with(path, dir);
    return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}
