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

/* Tells whether a source is there. One that cannot be read counts as there, so that its tool complains. */
static bool source_is_there(const struct node *node, const char *name)
{
    ACT_AUTOFREE char *path = act_path_join(node->code, name);
    ACT_AUTOFREE char *text = NULL;

    return access(path, F_OK) == 0 &&
           (act_file_read(path, SOURCE_MAX, &text, NULL, NULL) < 0 || !is_without_words(text));
}

bool environment_source(const struct node *node, struct environment_source *out)
{
    const struct environment_source *named = environment_source_named(node->spec.setup.conda);

    if (node->spec.environment.none)
        return false;
    if (named) {
        *out = *named;
        return true;
    }
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

/* ---- whether a source says all that its environment is made of: then runs of whatever code share it */

enum share {
    SHARE_ALL,
    SHARE_CODE, /* it may take files of the project, which change with the code */
    SHARE_NONE, /* it may link to folders of the project: those of this run */
};

static enum share share_least(enum share a, enum share b)
{
    return a > b ? a : b;
}

/* "name", "name[extra]>=1,<2", "name @ https://...", a URL: what an index or a server has. What may be a path, or what
 * pip reads in ways of its own, is not. */
static bool is_of_index(const char *word)
{
    static const char *const archives[] = {".whl", ".zip", ".tar", ".tgz", ".tbz", ".txz", ".tlz"};
    bool is_url = strstr(word, "://") && !strstr(word, "file:");

    for (size_t i = 0; i < sizeof(archives) / sizeof(archives[0]) && !is_url; i++)
        if (strcasestr(word, archives[i]))
            return false;
    return word[0] != '.' && !strpbrk(word, "$\\`") && (is_url || !strpbrk(word, "/:"));
}

/* Reads the words of a requirement: its name, version, marker, hashes. */
static enum share share_of_requirement(char *line)
{
    char *rest = line;

    for (char *word; (word = strsep(&rest, " \t"));)
        if (!act_starts_with(word, "--hash=") && (word[0] == '-' || !is_of_index(word)))
            return SHARE_CODE;
    return SHARE_ALL;
}

/* Reads an option that names nothing of the project: one word, and its value, which may be a URL. */
static enum share share_of_option(char *line)
{
    static const char *const harmless[] = {"-i",           "--index-url",     "--extra-index-url", "--no-index",
                                           "--pre",        "--prefer-binary", "--no-binary",       "--only-binary",
                                           "-f",           "--find-links",    "--trusted-host",    "--require-hashes",
                                           "--use-feature"};
    size_t len = strcspn(line, "= \t");
    const char *value = line + len + strspn(line + len, "= \t");
    bool is_plain = !*value || (!strpbrk(value, "$\\` \t") && (!strchr(value, '/') || is_of_index(value)));
    bool names_place = act_starts_with(line, "-f") || act_starts_with(line, "--find-links");

    if (strstr(line, "-e") && (act_starts_with(line, "-e") || strstr(line, " -e") || strstr(line, "--edit")))
        return SHARE_NONE;
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
        if (strlen(harmless[i]) == len && strncmp(line, harmless[i], len) == 0)
            return is_plain && (!names_place || strstr(value, "://")) ? SHARE_ALL : SHARE_CODE;
    return SHARE_CODE;
}

/* Returns the file that a line includes ("-r x", "-rx", "--requirement=x", also of constraints), or NULL: it includes
 * none whose name can be read without pip. Points into line. */
static const char *requirements_included(const char *line)
{
    static const char *const options[] = {"--requirement", "--constraint", "-r", "-c"};

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        const char *value = line + strlen(options[i]);
        if (!act_starts_with(line, options[i]) || (line[1] == '-' && !strchr("= \t", *value)))
            continue;
        value += strspn(value, "= \t");
        return *value && !strpbrk(value, " \t\"'$\\`") ? value : NULL;
    }
    return NULL;
}

/* The requirements files as they are read. */
struct requirements {
    struct act_sha256 *h;
    struct act_strv seen; /* files */
    enum share share;
};

static void key_add_requirements(struct requirements *r, const char *path);

static void requirements_take_line(struct requirements *r, char *line, const char *dir)
{
    line += strspn(line, " \t");
    char *comment = strstr(line, " #");
    size_t end = comment ? (size_t)(comment - line) : strlen(line);
    for (line[end] = '\0'; end > 0 && strchr(" \t\r", line[end - 1]); end--)
        line[end - 1] = '\0';
    if (!*line || *line == '#')
        return;
    const char *file = requirements_included(line);
    if (file) {
        ACT_AUTOFREE char *path = act_path_join(*file == '/' ? "" : dir, file);
        key_add_requirements(r, path);
        return;
    }
    r->share = share_least(r->share, *line == '-' ? share_of_option(line) : share_of_requirement(line));
}

/* A "\" at the end of a line joins the next one to it. */
static void requirements_join_lines(char *text)
{
    for (char *at = text; (at = strchr(at, '\\'));)
        if (at[1] == '\n')
            at[0] = at[1] = ' ';
        else
            at++;
}

/* A file counts once, also where files name one another. */
static void key_add_requirements(struct requirements *r, const char *path)
{
    ACT_AUTOFREE char *text = NULL;
    ACT_AUTOFREE char *dir = act_path_dirname(path);

    if (act_strv_has(&r->seen, path))
        return;
    act_strv_push(&r->seen, path);
    if (act_file_read_regular(path, SOURCE_MAX, &text, NULL, NULL) < 0) {
        r->share = share_least(r->share, SHARE_CODE);
        return;
    }
    key_add(r->h, "file", text);
    requirements_join_lines(text);
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
        requirements_take_line(r, line, dir);
}

static enum share key_add_all_requirements(struct act_sha256 *h, const struct node *node, const char *file)
{
    ACT_AUTOFREE char *path = act_path_join(node->code, file);
    struct requirements r = {.h = h};

    key_add_requirements(&r, path);
    act_strv_release(&r.seen);
    return r.share;
}

/* Tells whether a line names an archive, such as a wheel, without a URL. */
static bool has_local_archive(const char *text)
{
    ACT_AUTOFREE char *copy = act_strdup(text);
    char *rest = copy;

    for (char *line; (line = strsep(&rest, "\n"));)
        if (!strstr(line, "://") && !is_of_index(line) && strstr(line, ".whl"))
            return true;
    return false;
}

/* Returns how far an environment may be shared, as a lock file or environment.yml names files and folders of the
 * project. The project itself, ".", is not installed. */
static enum share share_of_lock(const char *file, const char *text)
{
    static const struct {
        const char *text;
        enum share share;
    } rows[] = {{"- -e", SHARE_NONE},           {"--editable", SHARE_NONE},
                {"develop = true", SHARE_NONE}, {"editable: true", SHARE_NONE},
                {"editable = \"", SHARE_NONE},  {"- -r", SHARE_CODE},
                {"--requirement", SHARE_CODE},  {"- -c", SHARE_CODE},
                {"file:", SHARE_CODE},          {"./", SHARE_CODE},
                {"path: ", SHARE_CODE},         {"path = \"", SHARE_CODE},
                {"directory = \"", SHARE_CODE}, {"type = \"directory\"", SHARE_CODE},
                {"type = \"file\"", SHARE_CODE}};
    static const char of_root[] = "editable = \".\"";
    enum share share = strcmp(file, "environment.yml") == 0 && has_local_archive(text) ? SHARE_CODE : SHARE_ALL;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (const char *at = text; (at = strstr(at, rows[i].text)); at++)
            if (!act_starts_with(at, of_root))
                share = share_least(share, rows[i].share);
    return share;
}

/* An environment with something of the project in it is for that code alone, or for that run. */
static enum share key_add_source(struct act_sha256 *h, const struct node *node, const struct environment_source *source)
{
    const char *const names[] = {source->file, source->also};
    bool is_pips = act_streq(source->tool, "requirements");
    enum share share = is_pips ? key_add_all_requirements(h, node, source->file) : SHARE_ALL;

    key_add(h, "tool", source->tool);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && names[i]; i++) {
        ACT_AUTOFREE char *path = act_path_join(node->code, names[i]);
        ACT_AUTOFREE char *text = NULL;
        if (act_file_read_regular(path, SOURCE_MAX, &text, NULL, NULL) < 0)
            continue;
        key_add(h, names[i], text);
        if (i == 0 && !is_pips)
            share = share_of_lock(names[i], text);
    }
    key_add(h, "code", share >= SHARE_CODE ? node->spec.package_sha256 : "");
    key_add(h, "run", share == SHARE_NONE ? node->spec.id : "");
    return share;
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

/* ---- a Python that is a script, which chooses one only when it runs */

/* Returns the first version that pyenv would look for: as PYENV_VERSION, or a file for this folder or all, says. New
 * string; NULL: none is said. */
static char *pyenv_version(const char *dir, const char *root)
{
    const char *set = getenv("PYENV_VERSION");
    ACT_AUTOFREE char *at = act_strdup(getenv("PYENV_DIR") ? getenv("PYENV_DIR") : dir);
    ACT_AUTOFREE char *text = act_strdup(set ? set : "");

    while (!*text && *at == '/') {
        ACT_AUTOFREE char *path = act_path_join(at, ".python-version");
        if (access(path, F_OK) == 0) {
            free(text);
            text = node_read_text(path);
        }
        *strrchr(at, '/') = '\0';
    }
    ACT_AUTOFREE char *path_of_all = act_path_join(root, "version");
    ACT_AUTOFREE char *global = node_read_text(path_of_all);
    const char *said = *text ? text : global;
    return strcspn(said, ": \t\r\n") ? act_strndup(said, strcspn(said, ": \t\r\n")) : NULL;
}

/* Returns the Python that a script of pyenv would start, without running it, which takes a third of a second. New
 * string; NULL: it is no such script, or what it does is not that simple. */
static char *pyenv_python(const char *script, const char *dir)
{
    static const char says_root[] = "export PYENV_ROOT=\"";
    ACT_AUTOFREE char *text = node_read_text(script);
    char *root = strstr(text, says_root);

    if (!root)
        return NULL;
    root += sizeof(says_root) - 1;
    root[strcspn(root, "\"\n")] = '\0';
    ACT_AUTOFREE char *version = pyenv_version(dir, root);
    if (!version || strchr(version, '/') || *version == '.')
        return NULL;
    char *python = act_sprintf("%s/versions/%s/bin/%s", root, version, act_path_basename(script));
    if (access(python, X_OK) < 0)
        act_str_replace(&python, NULL);
    return python;
}

static void key_add_answer(struct act_sha256 *h, const char *python, const char *dir)
{
    enum { ANSWER_S = 60, ANSWER_MAX = 4096 };
    const char *const argv[] = {python, "-I", "-c", "import sys; print(sys.executable, sys.version)", NULL};
    ACT_AUTO(act_strv) words = {0};
    ACT_AUTO(proc_result) result = {0};
    struct act_error ignored;

    act_strv_add(&words, argv);
    const struct proc_call call = {.argv = words.v, .cwd = dir, .timeout_s = ANSWER_S, .max_bytes = ANSWER_MAX};
    if (proc_call(&call, &result, &ignored) == 0)
        key_add(h, "answer", result.out);
}

static void key_add_python(struct act_sha256 *h, const char *dir, bool sees_system)
{
    ACT_AUTOFREE char *python3 = proc_find_in_path("python3");
    ACT_AUTOFREE char *python = python3 ? act_strdup(python3) : proc_find_in_path("python");
    ACT_AUTOFREE char *real = python ? realpath(python, NULL) : NULL;

    key_add(h, "python", python);
    if (!real)
        return;
    key_add_stat(h, real);
    bool is_script = inventory_is_script(python);
    ACT_AUTOFREE char *chosen = is_script ? pyenv_python(python, dir) : NULL;
    if (chosen)
        key_add_stat(h, chosen);
    else if (is_script)
        key_add_answer(h, python, dir);
    if (sees_system)
        key_add_packages(h, chosen ? chosen : python);
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

/* Adds an archive: its end, where zip and gzip have the checksums of what is in them, stands for its content. */
static void key_add_archive(struct act_sha256 *h, const char *dir, const char *name)
{
    enum { END_BYTES = 64 * 1024 };
    ACT_AUTOFREE char *path = act_path_join(dir, name);
    ACT_AUTOFREE char *end = act_alloc(END_BYTES);
    struct stat st;

    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    ACT_AUTOFREE char *size = act_sprintf("%lld", (long long)st.st_size);
    key_add(h, name, size);
    act_sha256_add(h, end, node_read_tail(path, end, END_BYTES));
}

/* Adds the folder of wheels, which may get others, and of the same names. */
static void key_add_wheels(struct act_sha256 *h, const struct node *node)
{
    const char *wheels = node->spec.environment.wheels;
    ACT_AUTOFREE char *dir = wheels ? act_path_join(*wheels == '/' ? "" : node->code, wheels) : NULL;
    ACT_AUTO(act_strv) names = {0};

    key_add(h, "wheels", wheels);
    if (dir)
        act_folder_names(dir, &names);
    act_strv_sort(&names);
    for (size_t i = 0; i < names.n; i++)
        key_add_archive(h, dir, names.v[i]);
}

bool environment_key(const struct node *node, const struct environment_source *source, char out[ENVIRONMENT_KEY])
{
    bool sees_system = environment_sees_system(node);
    ACT_AUTOFREE char *user = act_sprintf("%u", (unsigned)getuid());
    struct act_sha256 h;
    char hex[ACT_SHA256_HEX];

    act_sha256_init(&h);
    key_add(&h, "user", user); /* who shares the place never gets what somebody else made */
    enum share share = key_add_source(&h, node, source);
    key_add(&h, "packages", sees_system ? "system" : "own");
    key_add_wheels(&h, node);
    key_add_setup(&h, &node->spec.setup);
    key_add(&h, "image", node->spec.image);
    if (container_is_used(node) && *node->spec.image == '/')
        key_add_stat(&h, node->spec.image);
    if (!container_is_used(node))
        key_add_python(&h, node->code, sees_system);
    key_add_platform(&h);
    act_sha256_done(&h, hex);
    memcpy(out, hex, ENVIRONMENT_KEY - 1);
    out[ENVIRONMENT_KEY - 1] = '\0';
    return share != SHARE_NONE;
}
