/* lacking.c - warns of packages that the Python here has, the script imports, and the run's environment will not have.
 *
 * Python itself is not asked: what is installed here are folders. A module counts only where a package here brings it;
 * a package is in the environment where its file names it, or one that it names needs it here. Whoever has a doubt is
 * silent: where the environment sees other packages, too, or something else may install some.
 *
 * Sources: packaging.python.org/specifications/recording-installed-packages and core-metadata;
 * setuptools.pypa.io (top_level.txt).
 */
#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "config/config.h"
#include "flow/code/code_internal.h"
#include "proc/proc.h"
#include "run/environments.h"

enum { TIME_MS = 20, SOURCE_MAX_BYTES = 4 << 20, METADATA_BYTES = 64 * 1024, NAMED_MOST = 5 };

/* A package that is installed here. */
struct here_package {
    char *name;    /* as pip compares it */
    char *version; /* may be empty */
    char *info;    /* its folder ".dist-info" or ".egg-info" */
    bool is_named; /* the environment has it */
};

struct here_python {
    struct act_strv sites; /* the folders of packages */
    struct here_package *v;
    size_t n;
    int64_t until_ms; /* by then everything is done, or nothing is said */
};

static bool here_is_late(const struct here_python *here)
{
    return act_now_monotonic_ms() > here->until_ms;
}

static void here_release(struct here_python *here)
{
    for (size_t i = 0; i < here->n; i++) {
        free(here->v[i].name);
        free(here->v[i].version);
        free(here->v[i].info);
    }
    free(here->v);
    act_strv_release(&here->sites);
}

/* ---- what is installed */

static void here_add(struct here_python *here, const char *site, const char *entry)
{
    static const char *const endings[] = {".dist-info", ".egg-info"};
    const char *dash = strchr(entry, '-');

    for (size_t i = 0; dash && i < sizeof(endings) / sizeof(endings[0]); i++) {
        if (!act_ends_with(entry, endings[i]))
            continue;
        size_t len = strcspn(dash + 1, "-");
        size_t most = strlen(dash + 1) - strlen(endings[i]);
        struct here_package p = {.name = run_package_name(entry, (size_t)(dash - entry)),
                                 .version = act_strndup(dash + 1, len < most ? len : most),
                                 .info = act_path_join(site, entry)};
        ACT_PUSH(here->v, here->n, p);
        return;
    }
}

static void here_add_site(struct here_python *here, const char *site)
{
    ACT_AUTO(act_strv) entries = {0};

    act_folder_names(site, &entries);
    if (entries.n == 0)
        return;
    act_strv_push(&here->sites, site);
    for (size_t i = 0; i < entries.n; i++)
        here_add(here, site, entries.v[i]);
}

static void here_add_prefix(struct here_python *here, const char *prefix)
{
    static const char *const folders[] = {"site-packages", "dist-packages"};
    ACT_AUTOFREE char *lib = act_path_join(prefix, "lib");
    ACT_AUTO(act_strv) names = {0};

    act_folder_names(lib, &names);
    for (size_t i = 0; i < names.n; i++)
        for (size_t f = 0; act_starts_with(names.v[i], "python3") && f < sizeof(folders) / sizeof(folders[0]); f++) {
            ACT_AUTOFREE char *site = act_sprintf("%s/%s/%s", lib, names.v[i], folders[f]);
            here_add_site(here, site);
        }
}

static int here_by_name(const void *a, const void *b)
{
    return strcmp(((const struct here_package *)a)->name, ((const struct here_package *)b)->name);
}

/* Finds the Python that is active here, else the one in PATH. */
static void here_find(struct here_python *here)
{
    const char *active = getenv("VIRTUAL_ENV");
    ACT_AUTOFREE char *python = proc_find_in_path("python3");
    ACT_AUTOFREE char *bin = python ? act_path_dirname(python) : NULL;
    ACT_AUTOFREE char *prefix = bin ? act_path_dirname(bin) : NULL;

    if (!active || !*active)
        active = getenv("CONDA_PREFIX");
    if (!active || !*active)
        active = prefix;
    if (!active)
        return;
    here_add_prefix(here, active);
    if (strcmp(active, "/usr") == 0)
        here_add_prefix(here, "/usr/local");
    if (here->n)
        qsort(here->v, here->n, sizeof(*here->v), here_by_name);
}

static int here_is_called(const void *name, const void *package)
{
    return strcmp(name, ((const struct here_package *)package)->name);
}

static struct here_package *here_get(struct here_python *here, const char *name)
{
    return here->n ? bsearch(name, here->v, here->n, sizeof(*here->v), here_is_called) : NULL;
}

/* ---- which package brings a module */

/* Where the names differ and the package does not say so in a file. */
static const struct {
    const char *module, *package;
} other_names[] = {
    {"PIL", "pillow"},
    {"attr", "attrs"},
    {"bs4", "beautifulsoup4"},
    {"cv2", "opencv-python"},
    {"cv2", "opencv-python-headless"},
    {"cv2", "opencv-contrib-python"},
    {"dateutil", "python-dateutil"},
    {"dotenv", "python-dotenv"},
    {"faiss", "faiss-cpu"},
    {"faiss", "faiss-gpu"},
    {"git", "gitpython"},
    {"jwt", "pyjwt"},
    {"pkg_resources", "setuptools"},
    {"pytorch_lightning", "pytorch-lightning"},
    {"serial", "pyserial"},
    {"skimage", "scikit-image"},
    {"sklearn", "scikit-learn"},
    {"tensorboardX", "tensorboardx"},
    {"usb", "pyusb"},
    {"wx", "wxpython"},
    {"yaml", "pyyaml"},
    {"zmq", "pyzmq"},
};

/* Names under which conda has packages that pip calls otherwise. */
static const struct {
    const char *conda, *package;
} conda_names[] = {
    {"faiss", "faiss-cpu"},      {"matplotlib-base", "matplotlib"},
    {"opencv", "opencv-python"}, {"py-opencv", "opencv-python"},
    {"pytables", "tables"},      {"pytorch", "torch"},
    {"pytorch-cpu", "torch"},    {"pytorch-gpu", "torch"},
};

/* Tells whether the packages here have such a module at all: the rest are of Python itself, or missing here, too. */
static bool here_has_module(const struct here_python *here, const char *module)
{
    for (size_t i = 0; i < here->sites.n; i++) {
        ACT_AUTOFREE char *folder = act_path_join(here->sites.v[i], module);
        ACT_AUTOFREE char *file = act_sprintf("%s.py", folder);
        if (access(folder, F_OK) == 0 || access(file, F_OK) == 0)
            return true;
    }
    return false;
}

/* Tells whether a line of its top_level.txt is the module. */
static bool here_brings(const struct here_package *p, const char *module)
{
    enum { LIST_MAX = 64 * 1024 };
    ACT_AUTOFREE char *path = act_path_join(p->info, "top_level.txt");
    ACT_AUTOFREE char *text = NULL;

    if (act_file_read_regular(path, LIST_MAX, &text, NULL, NULL) < 0)
        return false;
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (strncmp(line, module, strlen(module)) == 0 && line[strlen(module)] <= ' ')
            return true;
    return false;
}

/* Finds a package that brings the module, one that the environment has before others; NULL: it is not known. */
static struct here_package *here_bringing(struct here_python *here, const char *module)
{
    ACT_AUTOFREE char *same = run_package_name(module, strlen(module));
    struct here_package *found = here_get(here, same);

    for (size_t i = 0; i < sizeof(other_names) / sizeof(other_names[0]); i++) {
        struct here_package *p =
            strcmp(other_names[i].module, module) == 0 ? here_get(here, other_names[i].package) : NULL;
        found = p && (!found || p->is_named) ? p : found;
    }
    for (size_t i = 0; !found && i < here->n; i++) {
        if (here_is_late(here))
            return NULL;
        found = here_brings(&here->v[i], module) ? &here->v[i] : NULL;
    }
    return found ? here_get(here, found->name) : NULL; /* of several of that name the one that is marked */
}

/* ---- what the environment will have */

static void lacking_name(struct here_python *here, const char *word, size_t len)
{
    ACT_AUTOFREE char *name = run_package_name(word, len);
    struct here_package *p = here_get(here, name);

    if (p)
        p->is_named = true;
    for (size_t i = 0; i < sizeof(conda_names) / sizeof(conda_names[0]); i++)
        if (strcmp(conda_names[i].conda, name) == 0 && (p = here_get(here, conda_names[i].package)))
            p->is_named = true;
}

/* Any word of the file may be the name of a package: what it says beyond names is not read. */
static void lacking_read_words(struct here_python *here, const char *line)
{
    for (const char *at = line; *at && !here_is_late(here);) {
        size_t len = 0;
        if (*at == '#' && (at == line || at[-1] == ' ' || at[-1] == '\t'))
            return;
        while (isalnum((unsigned char)at[len]) || (len && at[len] && strchr("-_.", at[len])))
            len++;
        if (len)
            lacking_name(here, at, len);
        at += len ? len : 1;
    }
}

/* Returns the file that a line of requirements includes, or NULL. */
static const char *lacking_included(const char *line)
{
    static const char *const options[] = {"--requirement", "-r"};

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (act_starts_with(line, options[i]))
            return line + strlen(options[i]) + strspn(line + strlen(options[i]), " \t=");
    return NULL;
}

/* A path, a URL, "-e .": nobody knows here what that is called and needs. */
static bool lacking_is_nameless(const char *line)
{
    return strchr("./", *line) ? *line
                               : act_starts_with(line, "-e") || act_starts_with(line, "--editable") ||
                                     line[strspn(line, "abcdefghijklmnopqrstuvwxyz+")] == ':';
}

/* Reads a file of requirements or a lock file, and those that it names by -r. False: one cannot be read, or has what is
 * installed without its name, or there was no time. */
static bool lacking_read(struct here_python *here, const char *root, const char *file, int depth)
{
    enum { DEPTH_MOST = 4 };
    ACT_AUTOFREE char *path = act_path_join(root, file);
    ACT_AUTOFREE char *folder = act_path_dirname(path);
    ACT_AUTOFREE char *text = NULL;

    if (depth > DEPTH_MOST || act_file_read_regular(path, SOURCE_MAX_BYTES, &text, NULL, NULL) < 0)
        return false;
    bool lists = depth > 0 || act_streq(file, environment_sources[0].file);
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        line[strcspn(line, "\r")] = '\0';
        line += strspn(line, " \t");
        const char *included = lists ? lacking_included(line) : NULL;
        if ((included && !lacking_read(here, folder, included, depth + 1)) || (lists && lacking_is_nameless(line)))
            return false;
        lacking_read_words(here, line);
        if (here_is_late(here))
            return false;
    }
    return true;
}

/* Adds what a package needs here, except for extras. */
static bool lacking_add_needs(struct here_python *here, const struct here_package *p)
{
    static const char key[] = "Requires-Dist:";
    ACT_AUTOFREE char *path = act_path_join(p->info, "METADATA");
    ACT_AUTOFREE char *text = act_calloc(1, METADATA_BYTES + 1);
    ACT_AUTOCLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* it may be a FIFO */
    struct stat st;
    bool grew = false;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || act_pread_all(fd, text, METADATA_BYTES, 0) < 0)
        return false;
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        if (!act_starts_with(line, key) || strstr(line, "extra =="))
            continue;
        const char *name = line + strlen(key) + strspn(line + strlen(key), " ");
        ACT_AUTOFREE char *clean = run_package_name(name, strcspn(name, " ;[(<>=!~"));
        struct here_package *needed = here_get(here, clean);
        grew = grew || (needed && !needed->is_named);
        if (needed)
            needed->is_named = true;
    }
    return grew;
}

/* Marks as named what the named ones need, since they bring it. Returns false if there was no time. */
static bool lacking_close(struct here_python *here)
{
    ACT_AUTOFREE bool *is_read = act_calloc(here->n + 1, sizeof(*is_read));

    for (bool grew = true; grew;) {
        grew = false;
        for (size_t i = 0; i < here->n; i++) {
            if (here_is_late(here))
                return false;
            if (!here->v[i].is_named || is_read[i])
                continue;
            is_read[i] = true;
            grew = lacking_add_needs(here, &here->v[i]) || grew;
        }
    }
    return true;
}

/* ---- the warning */

/* Finds the file from which the environment is made, if nothing else brings packages into it; else NULL. */
static const char *lacking_source(const struct config *c, const struct run_spec *spec)
{
    const struct run_setup *s = &spec->setup;
    ACT_AUTOFREE char *compile = act_path_join(c->project_root, "compile.aml.sh");

    bool sees_active = spec->is_here && (getenv("VIRTUAL_ENV") || getenv("CONDA_PREFIX"));
    if (spec->environment.none || sees_active || spec->environment.packages == RUN_PACKAGES_SYSTEM || spec->image ||
        s->lines || s->modules.n || s->conda || s->venv || access(compile, F_OK) == 0)
        return NULL;
    for (const struct environment_source *source = environment_sources; source->file; source++) {
        ACT_AUTOFREE char *path = act_path_join(c->project_root, source->file);
        if (access(path, F_OK) == 0)
            return source->file;
    }
    return NULL;
}

static void lacking_say(const char *script, const char *file, const struct act_strv *found)
{
    ACT_AUTO(act_buf) text = {0};

    for (size_t i = 0; i < found->n && i < NAMED_MOST; i++)
        act_buf_addf(&text, "%s%s", i == 0 ? "" : i + 1 == found->n ? " and " : ", ", found->v[i]);
    if (found->n > NAMED_MOST)
        act_buf_addf(&text, " and %zu more", found->n - NAMED_MOST);
    act_warn("%s imports what the Python here has and %s does not name: %s", script, file, text.data);
}

void flow_warn_lacking(const struct config *config, const struct run_spec *spec)
{
    const char *file = lacking_source(config, spec);
    ACT_AUTOFREE char *script = file ? flow_started_script(config->project_root, &spec->argv) : NULL;
    ACT_AUTO(act_strv) modules = {0}, found = {0};
    struct here_python here = {.until_ms = act_now_monotonic_ms() + TIME_MS};

    if (!script)
        return;
    flow_imports_of(config->project_root, script, here.until_ms, &modules);
    here_find(&here);
    bool is_known = lacking_read(&here, config->project_root, file, 0) && lacking_close(&here);
    for (size_t i = 0; is_known && i < modules.n; i++) {
        if (!here_has_module(&here, modules.v[i]))
            continue;
        const struct here_package *p = here_bringing(&here, modules.v[i]);
        if (p && !p->is_named)
            act_strv_pushf(&found, "%s (%s %s)", modules.v[i], p->name, p->version);
    }
    if (found.n)
        lacking_say(script, file, &found);
    here_release(&here);
}
