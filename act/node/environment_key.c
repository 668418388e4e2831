/* environment_key.c - what an environment is made from, and its name, which follows from that. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "node/container.h"
#include "node/environment.h"
#include "node/inventory.h"
#include "proc/proc.h"

enum { SOURCE_MAX = 16 << 20 };

/* ---- which file counts: the first that is there */

/* Tells whether a text has only blank lines and comments, as pip defines them. */
static bool is_without_words(const char *text)
{
    for (const char *line = text; *line;) {
        line += strspn(line, " \t\r\n");
        if (*line && *line != '#')
            return false;
        line += strcspn(line, "\n");
    }
    return true;
}

/* What cannot be read is said to be there: its tool will complain. */
static bool source_is_there(const struct node *node, const char *name)
{
    ACT_AUTOFREE char *path = act_path_join(node->code, name);
    ACT_AUTOFREE char *text = NULL;

    return access(path, F_OK) == 0 &&
           (act_file_read(path, SOURCE_MAX, &text, NULL, NULL) < 0 || !is_without_words(text));
}

bool environment_source(const struct node *node, struct environment_source *out)
{
    if (node->spec.environment.none)
        return false;
    for (const struct environment_source *s = environment_sources; s->file; s++) {
        *out = *s;
        if (source_is_there(node, out->file) && (!out->also || source_is_there(node, out->also)))
            return true;
    }
    return false;
}

bool environment_sees_system(const struct node *node)
{
    unsigned packages = node->spec.environment.packages;

    if (packages != RUN_PACKAGES_USUAL)
        return packages == RUN_PACKAGES_SYSTEM;
    return node->spec.image || getenv("VIRTUAL_ENV") || getenv("CONDA_PREFIX");
}

/* ---- the key */

static void key_add(struct act_sha256 *h, const char *name, const char *value)
{
    act_sha256_add(h, name, strlen(name) + 1);
    act_sha256_add(h, value ? value : "", value ? strlen(value) + 1 : 1);
}

/* What a requirements file says beside the names of packages. */
struct requirements {
    struct act_sha256 *h;
    struct act_strv seen; /* files */
    bool has_local;       /* it names files or folders of the project */
    bool is_editable;     /* it links to folders of the project */
};

static void key_add_requirements(struct requirements *r, const char *path);

/* Returns the value behind an option in one of its forms ("-r x", "-rx", "--requirement=x"), or NULL: it is another. */
static const char *option_value(const char *line, const char *name)
{
    size_t n = strlen(name);

    if (strncmp(line, name, n) != 0 || (name[1] == '-' && line[n] != '=' && line[n] != ' '))
        return NULL;
    return line + n + strspn(line + n, "= \t");
}

static const char *option_of_two(const char *line, const char *short_name, const char *long_name)
{
    const char *value = option_value(line, long_name);

    return value ? value : line[1] == '-' ? NULL : option_value(line, short_name);
}

static bool is_local(const char *word)
{
    return !strstr(word, "://") || strstr(word, "file:");
}

static void requirements_take_option(struct requirements *r, const char *line, const char *dir)
{
    const char *file = option_of_two(line, "-r", "--requirement");

    file = file ? file : option_of_two(line, "-c", "--constraint");
    if (file) {
        ACT_AUTOFREE char *path = act_path_join(*file == '/' ? "" : dir, file);
        key_add_requirements(r, path);
    } else if (option_of_two(line, "-e", "--editable")) {
        r->is_editable = r->is_editable || is_local(line);
    } else if (option_of_two(line, "-f", "--find-links")) {
        r->has_local = r->has_local || is_local(line);
    }
}

static void requirements_take_line(struct requirements *r, char *line, const char *dir)
{
    line += strspn(line, " \t");
    char *comment = strstr(line, " #");
    size_t end = comment ? (size_t)(comment - line) : strlen(line);
    for (line[end] = '\0'; end > 0 && strchr(" \t\r", line[end - 1]); end--)
        line[end - 1] = '\0';
    if (*line == '-')
        requirements_take_option(r, line, dir);
    else if (*line != '#' && (*line == '.' || strchr(line, '/') || act_ends_with(line, ".whl")))
        r->has_local = r->has_local || is_local(line);
}

/* A file counts once, also where files name one another. */
static void key_add_requirements(struct requirements *r, const char *path)
{
    ACT_AUTOFREE char *text = NULL;
    ACT_AUTOFREE char *dir = act_path_dirname(path);

    if (act_strv_has(&r->seen, path))
        return;
    act_strv_push(&r->seen, path);
    if (act_file_read_regular(path, SOURCE_MAX, &text, NULL, NULL) < 0)
        return;
    key_add(r->h, "file", text);
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
        requirements_take_line(r, line, dir);
}

/* An environment with something of the project in it is for that code alone; one that links to its folders, for that
 * run. */
static void key_add_all_requirements(struct act_sha256 *h, const struct node *node, const char *file)
{
    ACT_AUTOFREE char *path = act_path_join(node->code, file);
    struct requirements r = {.h = h};

    key_add_requirements(&r, path);
    key_add(h, "code", r.has_local ? node->spec.package_sha256 : "");
    key_add(h, "run", r.is_editable ? node->spec.id : "");
    act_strv_release(&r.seen);
}

static void key_add_source(struct act_sha256 *h, const struct node *node, const struct environment_source *source)
{
    const char *const names[] = {source->file, source->also};

    key_add(h, "tool", source->tool);
    if (act_streq(source->tool, "requirements"))
        key_add_all_requirements(h, node, source->file);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && names[i]; i++) {
        ACT_AUTOFREE char *path = act_path_join(node->code, names[i]);
        ACT_AUTOFREE char *text = NULL;
        if (act_file_read_regular(path, SOURCE_MAX, &text, NULL, NULL) == 0)
            key_add(h, names[i], text);
    }
}

static void key_add_stat(struct act_sha256 *h, const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return;
    ACT_AUTOFREE char *text =
        act_sprintf("%s %lld %lld", path, S_ISDIR(st.st_mode) ? 0LL : (long long)st.st_size, (long long)st.st_mtime);
    key_add(h, "stat", text);
}

/* Adds what the environment sees of the Python's own packages: folders change when packages come and go. */
static void key_add_packages(struct act_sha256 *h, const char *python)
{
    ACT_AUTOFREE char *bin = act_path_dirname(python);
    ACT_AUTOFREE char *prefix = act_path_dirname(bin);
    ACT_AUTOFREE char *lib = act_path_join(prefix, "lib");
    ACT_AUTO(act_strv) names = {0};

    act_folder_names(lib, &names);
    for (size_t i = 0; i < names.n; i++) {
        ACT_AUTOFREE char *site = act_sprintf("%s/%s/site-packages", lib, names.v[i]);
        ACT_AUTOFREE char *dist = act_sprintf("%s/%s/dist-packages", lib, names.v[i]);
        if (!act_starts_with(names.v[i], "python"))
            continue;
        key_add_stat(h, site);
        key_add_stat(h, dist);
    }
}

/* A script such as those of pyenv chooses a Python only when it runs. */
static void key_add_script(struct act_sha256 *h, const char *python)
{
    enum { ANSWER_S = 60, ANSWER_MAX = 4096 };
    ACT_AUTO(act_strv) words = {0};
    ACT_AUTOFREE char *answer = NULL;
    struct act_error ignored;
    int status;

    ACT_STRV_PUSH(&words, python, "-I", "-c", "import sys; print(sys.executable, sys.version)");
    if (proc_run(words.v, ANSWER_S, ANSWER_MAX, &answer, &status, &ignored) == 0)
        key_add(h, "answer", answer);
}

static void key_add_python(struct act_sha256 *h, bool sees_system)
{
    ACT_AUTOFREE char *python3 = proc_find_in_path("python3");
    ACT_AUTOFREE char *python = python3 ? act_strdup(python3) : proc_find_in_path("python");
    ACT_AUTOFREE char *real = python ? realpath(python, NULL) : NULL;

    key_add(h, "python", python);
    if (!real)
        return;
    key_add_stat(h, real);
    if (inventory_is_script(python))
        key_add_script(h, python);
    if (sees_system)
        key_add_packages(h, python);
}

/* Adds the system, whose libraries compiled packages use; in a container those of the image. */
static void key_add_platform(struct act_sha256 *h)
{
    ACT_AUTOFREE char *release = node_read_text("/etc/os-release");
    struct utsname machine;

    key_add(h, "processor", uname(&machine) == 0 ? machine.machine : "");
    key_add(h, "system", release);
}

static void key_add_setup(struct act_sha256 *h, const struct run_setup *setup)
{
    for (size_t i = 0; i < setup->modules.n; i++)
        key_add(h, "module", setup->modules.v[i]);
    key_add(h, "conda", setup->conda);
    key_add(h, "venv", setup->venv);
}

void environment_key(const struct node *node, const struct environment_source *source, char out[ENVIRONMENT_KEY])
{
    bool sees_system = environment_sees_system(node);
    ACT_AUTOFREE char *user = act_sprintf("%u", (unsigned)getuid());
    struct act_sha256 h;
    char hex[ACT_SHA256_HEX];

    act_sha256_init(&h);
    key_add(&h, "user", user); /* who shares the place never gets what somebody else made */
    key_add_source(&h, node, source);
    key_add(&h, "packages", sees_system ? "system" : "own");
    key_add(&h, "wheels", node->spec.environment.wheels);
    key_add_setup(&h, &node->spec.setup);
    key_add(&h, "image", node->spec.image);
    if (container_is_used(node) && *node->spec.image == '/')
        key_add_stat(&h, node->spec.image);
    if (!container_is_used(node))
        key_add_python(&h, sees_system);
    key_add_platform(&h);
    act_sha256_done(&h, hex);
    memcpy(out, hex, ENVIRONMENT_KEY - 1);
    out[ENVIRONMENT_KEY - 1] = '\0';
}
