/* imports.c - the modules that a script of Python needs, read from the lines at the left margin of it and of the
 * modules of the project that it leads to. What stands in a function, a "try" or an "if" may not be needed, and is left
 * alone. Nothing is parsed for good: a module more or less is a hint more or less (lacking.c).
 */
#include <ctype.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "flow/code/code_internal.h"

enum { FILES_MOST = 48, FILE_MAX_BYTES = 256 * 1024 };

struct imports {
    const char *root;
    char *beside;          /* the folder of the script, where its modules are looked for first */
    struct act_strv files; /* that are read, or will be */
    struct act_strv *out;
    int64_t until_ms;
};

static bool imports_is_late(const struct imports *im)
{
    return act_now_monotonic_ms() >= im->until_ms;
}

static size_t import_name_len(const char *text)
{
    size_t n = 0;

    while (isalnum((unsigned char)text[n]) || text[n] == '_' || text[n] == '.' || (unsigned char)text[n] >= 0x80)
        n++;
    return n;
}

/* Adds the file of a module, "pkg/model", below a folder, if there is one. */
static bool imports_add_file(struct imports *im, const char *folder, const char *module)
{
    static const char *const endings[] = {".py", "/__init__.py"};

    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        ACT_AUTOFREE char *file = act_sprintf("%s/%s%s", folder, module, endings[i]);
        if (access(file, R_OK) < 0)
            continue;
        if (im->files.n < FILES_MOST && !act_strv_has(&im->files, file))
            act_strv_push(&im->files, file);
        return true;
    }
    return false;
}

/* Adds the files of a.b.c: those of a, a.b and a.b.c. False: the folder has no such module. */
static bool imports_add_below(struct imports *im, const char *folder, const char *name)
{
    ACT_AUTOFREE char *path = act_strdup(name);
    ACT_AUTOFREE char *top = act_path_join(folder, name);
    struct stat st;
    bool found = false;

    top[strlen(folder) + 1 + strcspn(name, ".")] = '\0';
    for (char *c = path;; c++)
        if (*c == '.' || !*c) {
            char end = *c;
            *c = '\0';
            found = imports_add_file(im, folder, path) || found;
            if (!end || imports_is_late(im))
                break;
            *c = '/';
        }
    return found || (stat(top, &st) == 0 && S_ISDIR(st.st_mode)); /* a package without __init__.py */
}

/* Takes a module by its full name, "torch.nn"; file is the one that imports it. Returns whether it is the project's. */
static bool imports_take(struct imports *im, const char *file, const char *name)
{
    ACT_AUTOFREE char *folder = act_path_dirname(file);

    if (strlen(name) >= PATH_MAX) /* no file is called so */
        return false;
    if (*name == '.') { /* each dot but the first is a folder upwards */
        while (*++name == '.') {
            char *above = act_path_dirname(folder);
            free(folder);
            folder = above;
        }
        if (*name && act_path_is_within(folder, im->root))
            imports_add_below(im, folder, name);
        return true;
    }
    if (imports_add_below(im, im->beside, name) || imports_add_below(im, im->root, name))
        return true;
    ACT_AUTOFREE char *top = act_strndup(name, strcspn(name, "."));
    if (!act_strv_has(im->out, top))
        act_strv_push(im->out, top);
    return false;
}

/* "a, b.c as d": takes each, below the module prefix where that is not NULL. */
static void imports_take_list(struct imports *im, const char *file, const char *prefix, const char *text)
{
    while (*text && !imports_is_late(im)) {
        text += strspn(text, " \t(");
        size_t len = import_name_len(text);
        if (len == 0)
            return;
        ACT_AUTOFREE char *name =
            prefix ? act_sprintf("%s%s%.*s", prefix, prefix[strlen(prefix) - 1] == '.' ? "" : ".", (int)len, text)
                   : act_strndup(text, len);
        imports_take(im, file, name);
        text += strcspn(text, ",;#");
        if (*text != ',')
            return;
        text++;
    }
}

static void imports_take_line(struct imports *im, const char *file, const char *line)
{
    static const char import[] = "import ", from[] = "from ";

    if (act_starts_with(line, import)) {
        imports_take_list(im, file, NULL, line + strlen(import));
    } else if (act_starts_with(line, from)) {
        const char *name = line + strlen(from) + strspn(line + strlen(from), " \t");
        ACT_AUTOFREE char *module = act_strndup(name, import_name_len(name));
        const char *rest = name + strlen(module) + strspn(name + strlen(module), " \t");
        if (!*module || !act_starts_with(rest, import))
            return;
        if (imports_take(im, file, module))
            imports_take_list(im, file, module, rest + strlen(import)); /* what it names may be a module itself */
    }
}

/* Counts how often a text is in a line. */
static int imports_count(const char *line, const char *text)
{
    int n = 0;

    for (const char *at = line; (at = strstr(at, text)); at += strlen(text))
        n++;
    return n;
}

static void imports_read(struct imports *im, const char *file)
{
    ACT_AUTOFREE char *text = NULL;
    bool in_text = false; /* of three quotes */

    if (act_file_read_regular(file, FILE_MAX_BYTES, &text, NULL, NULL) < 0)
        return;
    char *rest = text;
    for (char *line; !imports_is_late(im) && (line = strsep(&rest, "\n"));) {
        line[strcspn(line, "\r")] = '\0';
        if (!in_text)
            imports_take_line(im, file, line);
        if ((imports_count(line, "\"\"\"") + imports_count(line, "'''")) % 2)
            in_text = !in_text;
    }
}

void flow_imports_of(const char *root, const char *script, int64_t until_ms, struct act_strv *out)
{
    ACT_AUTOFREE char *path = act_path_join(root, script);
    struct imports im = {.root = root, .beside = act_path_dirname(path), .out = out, .until_ms = until_ms};

    act_strv_push(&im.files, path);
    for (size_t i = 0; i < im.files.n && !imports_is_late(&im); i++) {
        ACT_AUTOFREE char *file = act_strdup(im.files.v[i]); /* the vector grows */
        imports_read(&im, file);
    }
    act_strv_release(&im.files);
    free(im.beside);
}
