/* gitignore.c - what git ignores: by the .gitignore files of the project's folders, and those above the project up to
 * the top of the repository it lies in; by .git/info/exclude of that; and by the user's own excludes (gitconfig.c).
 *
 * As git does it (gitignore(5)): the file nearest to a path comes first, in it the last line that matches, and
 * nothing in an excluded folder is looked at. What is in the index does not count: a file that was added in spite of a
 * pattern is left out all the same.
 */
#include "package/package_internal.h"

#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "filter/pattern.h"

#define GITIGNORE ".gitignore"

/* Holds the lines of one file. Paths are relative to its folder: without their first `drop` bytes, after `add`. */
struct gitignore_level {
    char *folder; /* its folder below the root, "" for the root and above */
    size_t drop;
    char *add;   /* of a file above the root: the way to the root, "exp/proj/"; else "" */
    char *shown; /* "src/.gitignore" */
    struct filter_pattern *patterns;
    int *numbers; /* of their lines */
    size_t n;
};

struct package_gitignore {
    char *root;
    struct gitignore_level *v; /* those that apply at this point of the walk, the nearest last */
    size_t n;
    struct filter_path parts; /* the current path; kept to reuse its memory */
};

static void release_level(struct gitignore_level *level)
{
    for (size_t i = 0; i < level->n; i++)
        filter_pattern_release(&level->patterns[i]);
    free(level->patterns);
    free(level->numbers);
    free(level->folder);
    free(level->add);
    free(level->shown);
}

static void gitignore_take_lines(struct gitignore_level *level, const struct act_strv *lines)
{
    level->patterns = act_calloc(lines->n + 1, sizeof(*level->patterns));
    level->numbers = act_calloc(lines->n + 1, sizeof(*level->numbers));
    for (size_t i = 0; i < lines->n; i++)
        if (*lines->v[i]) {
            filter_pattern_init(&level->patterns[level->n], lines->v[i]);
            level->patterns[level->n].bytes = true;
            level->numbers[level->n++] = (int)i + 1;
        }
}

/* Reads a file, if there is one. Takes level's strings. */
static int push_file(struct package_gitignore *g, const char *path, struct gitignore_level level, struct act_error *err)
{
    ACT_AUTO(act_strv) lines = {0};
    struct stat st;
    int rc = 0;

    if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
        rc = filter_read_regular_lines(path, &lines, err);
    if (lines.n > 0) {
        gitignore_take_lines(&level, &lines);
        ACT_PUSH(g->v, g->n, level);
    } else {
        release_level(&level);
    }
    return rc;
}

/* Reads the file of a folder; like git, not through a link. */
static int push_level(struct package_gitignore *g, const char *dir, struct gitignore_level level, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(dir, GITIGNORE);
    struct stat st;

    if (lstat(path, &st) == 0 && S_ISREG(st.st_mode))
        return push_file(g, path, level, err);
    release_level(&level);
    return 0;
}

/* Tells whether `dir` is the top of a repository. A folder that others may write to, such as /tmp, may be above the
 * project: other users' files there are ignored. */
static bool is_top(const char *dir, const char *root)
{
    ACT_AUTOFREE char *git = act_path_join(dir, ".git");
    struct stat st;

    return lstat(git, &st) == 0 && (act_streq(dir, root) || !act_is_foreign(git, NULL));
}

/* Returns the top of the repository in which root lies, or NULL. */
static char *find_top(const char *root)
{
    char *dir = act_strdup(root);

    while (!is_top(dir, root)) {
        char *up = act_path_dirname(dir);
        bool is_last = act_streq(up, dir);
        free(dir);
        dir = up;
        if (!is_last)
            continue;
        free(dir);
        return NULL;
    }
    return dir;
}

/* Reads the first line of a small file of git's, without a prefix, a new string; NULL: there is none. */
static char *read_pointer(const char *path, const char *prefix)
{
    enum { MOST = 64 << 10 };
    ACT_AUTOFREE char *text = NULL;
    struct act_error ignored;
    size_t len;

    if (act_file_read_regular(path, MOST, &text, &len, &ignored) < 0 || !act_starts_with(text, prefix))
        return NULL;
    const char *value = text + strlen(prefix);
    return act_strndup(value, strcspn(value, "\r\n"));
}

/* Returns the folder with the configuration of the repository: .git, or where it points to, as in a second work tree
 * (gitrepository-layout(5)). NULL: there is none. New string. */
static char *find_git_dir(const char *top)
{
    ACT_AUTOFREE char *git = act_path_join(top, ".git");
    ACT_AUTOFREE char *pointer = read_pointer(git, "gitdir: ");
    ACT_AUTOFREE char *dir = pointer ? package_path_from(top, pointer) : act_strdup(git);
    ACT_AUTOFREE char *common_file = act_path_join(dir, "commondir");
    ACT_AUTOFREE char *common = read_pointer(common_file, "");

    return common ? package_path_from(dir, common) : act_strdup(dir);
}

/* Reads a file that counts for all that is in the repository. */
static int push_whole(struct package_gitignore *g, const char *top, const char *path, struct act_error *err)
{
    size_t len = strlen(top);
    bool is_above = !act_streq(top, g->root);

    return push_file(g, path,
                     (struct gitignore_level){.folder = act_strdup(""),
                                              .add = is_above ? act_sprintf("%s/", g->root + (len > 1 ? len + 1 : 1))
                                                              : act_strdup(""),
                                              .shown = act_strdup(path)},
                     err);
}

/* Reads the files that do not travel with the repository, the nearer one last. */
static int push_own(struct package_gitignore *g, const char *top, struct act_error *err)
{
    const char *whole = top ? top : g->root ? g->root : "";
    ACT_AUTOFREE char *git_dir = top ? find_git_dir(top) : NULL;
    ACT_AUTOFREE char *excludes = package_git_excludes(git_dir, whole);
    ACT_AUTOFREE char *info = git_dir ? act_path_join(git_dir, "info/exclude") : NULL;
    int rc = excludes ? push_whole(g, whole, excludes, err) : 0;

    return rc == 0 && info ? push_whole(g, whole, info, err) : rc;
}

/* Reads the files from the top of the repository down to the folder above the root. */
static int push_above(struct package_gitignore *g, const char *top, struct act_error *err)
{
    size_t len = top ? strlen(top) : 0;
    int rc = 0;

    if (!top || act_streq(top, g->root))
        return 0;
    for (const char *slash = g->root + (len > 1 ? len : 0); rc == 0 && slash; slash = strchr(slash + 1, '/')) {
        ACT_AUTOFREE char *dir = slash == g->root ? act_strdup("/") : act_strndup(g->root, (size_t)(slash - g->root));
        ACT_AUTOFREE char *path = act_path_join(dir, GITIGNORE);
        if (!act_is_foreign(path, NULL))
            rc = push_level(g, dir,
                            (struct gitignore_level){.folder = act_strdup(""),
                                                     .add = act_sprintf("%s/", slash + 1),
                                                     .shown = act_strdup(path)},
                            err);
    }
    return rc;
}

int package_gitignore_new(const char *root, struct package_gitignore **out, struct act_error *err)
{
    struct package_gitignore *g = act_calloc(1, sizeof(*g));

    g->root = act_path_clean(root);
    ACT_AUTOFREE char *top = find_top(g->root);
    int rc = push_own(g, top, err);
    if (rc == 0)
        rc = push_above(g, top, err);
    if (rc < 0) {
        package_gitignore_free(g);
        g = NULL;
    }
    *out = g;
    return rc;
}

void package_gitignore_free(struct package_gitignore *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->n; i++)
        release_level(&g->v[i]);
    free(g->v);
    free(g->root);
    filter_path_release(&g->parts);
    free(g);
}

static bool applies(const struct gitignore_level *level, const char *folder)
{
    size_t len = strlen(level->folder);

    return len == 0 || (act_starts_with(folder, level->folder) && (folder[len] == '/' || folder[len] == '\0'));
}

int package_gitignore_enter(struct package_gitignore *g, const char *folder, struct act_error *err)
{
    ACT_AUTOFREE char *dir = *folder ? act_path_join(g->root, folder) : act_strdup(g->root);

    while (g->n > 0 && !applies(&g->v[g->n - 1], folder))
        release_level(&g->v[--g->n]);
    return push_level(g, dir,
                      (struct gitignore_level){.folder = act_strdup(folder),
                                               .drop = *folder ? strlen(folder) + 1 : 0,
                                               .add = act_strdup(""),
                                               .shown = act_path_join(folder, GITIGNORE)},
                      err);
}

/* Returns the last line of the level that matches, or -1. */
static ptrdiff_t gitignore_last_match(struct package_gitignore *g, const struct gitignore_level *level,
                                      const char *path, bool is_folder)
{
    ACT_AUTOFREE char *seen = act_sprintf("%s%s", level->add, path + level->drop);

    filter_path_set(&g->parts, seen);
    for (size_t i = level->n; i > 0; i--)
        if (filter_pattern_matches(&level->patterns[i - 1], &g->parts, g->parts.n, is_folder))
            return (ptrdiff_t)i - 1;
    return -1;
}

char *package_gitignore_ask(struct package_gitignore *g, const char *path, bool is_folder)
{
    for (size_t i = g->n; i > 0; i--) {
        const struct gitignore_level *level = &g->v[i - 1];
        ptrdiff_t line = gitignore_last_match(g, level, path, is_folder);
        if (line < 0)
            continue;
        const struct filter_pattern *pattern = &level->patterns[line];
        return pattern->take_back ? NULL : act_sprintf("%s:%d '%s'", level->shown, level->numbers[line], pattern->text);
    }
    return NULL;
}
