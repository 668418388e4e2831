/* packages.c - the packages of a Python, by the names of their folders. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/path.h"
#include "node/inventory.h"
#include "node/layer.h"

/* Returns "3.11", with which the name of the program behind all links ends, a new string; empty: it is not known. */
static char *version_of(const char *python)
{
    static const char stem[] = "python";
    ACT_AUTOFREE char *real = realpath(python, NULL);
    const char *name = act_path_basename(real ? real : python);

    return act_strdup(act_starts_with(name, stem) ? name + strlen(stem) : "");
}

char *inventory_package(const char *name)
{
    static const char *const endings[] = {".dist-info", ".egg-info"};
    const char *dash = strchr(name, '-'), *end = NULL;

    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
        if (act_ends_with(name, endings[i]))
            end = name + strlen(name) - strlen(endings[i]);
    if (!end || !dash || dash >= end || !isdigit((unsigned char)dash[1]))
        return NULL;
    const char *tag = strstr(dash, "-py");
    return act_sprintf("%.*s==%.*s", (int)(dash - name), name, (int)((tag && tag < end ? tag : end) - dash - 1),
                       dash + 1);
}

/* The packages found so far, and their names as pip compares them: Python takes the first of one name. */
struct finding {
    struct act_strv *packages, names;
};

static void add_packages(const char *dir, struct finding *out)
{
    ACT_AUTO(act_strv) entries = {0};

    act_folder_names(dir, &entries);
    for (size_t i = 0; i < entries.n; i++) {
        ACT_AUTOFREE char *package = inventory_package(entries.v[i]);
        ACT_AUTOFREE char *name = package ? run_package_name(package, strcspn(package, "=")) : NULL;
        if (!name || act_strv_has(&out->names, name))
            continue;
        act_strv_push(&out->names, name);
        act_strv_push(out->packages, package);
    }
}

/* Adds the packages of base/lib/python3.11, and of base/lib/python3, where Debian has those of all versions. */
static void packages_add_base(const char *base, const char *version, struct finding *out)
{
    static const char *const libraries[] = {"lib", "lib64"};
    static const char *const folders[] = {"site-packages", "dist-packages"};
    const char *const versions[] = {version, "3"};

    for (size_t l = 0; l < sizeof(libraries) / sizeof(libraries[0]); l++)
        for (size_t v = *version ? 0 : 1; v < sizeof(versions) / sizeof(versions[0]); v++)
            for (size_t f = 0; f < sizeof(folders) / sizeof(folders[0]); f++) {
                ACT_AUTOFREE char *dir = act_sprintf("%s/%s/python%s/%s", base, libraries[l], versions[v], folders[f]);
                add_packages(dir, out);
            }
}

/* Returns the value of a key of pyvenv.cfg ("home = /usr/bin"). New string; NULL: it has none. */
static char *venv_value(const char *text, const char *key)
{
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n"), n = strlen(key);
        const char *sign = memchr(line, '=', len);
        if (sign && strncmp(line, key, n) == 0 && strspn(line + n, " \t") + n == (size_t)(sign - line)) {
            const char *value = sign + 1 + strspn(sign + 1, " \t");
            size_t end = strcspn(value, "\r\n");
            while (end > 0 && (value[end - 1] == ' ' || value[end - 1] == '\t'))
                end--;
            return act_strndup(value, end);
        }
        line += len + (line[len] == '\n');
    }
    return NULL;
}

/* Adds in the order in which Python looks. */
static void add_installation(const char *prefix, const char *version, const char *home, struct finding *out)
{
    if (home && *home) {
        ACT_AUTOFREE char *own = act_path_join(home, ".local");
        packages_add_base(own, version, out);
    }
    if (strcmp(prefix, "/usr") == 0)
        packages_add_base("/usr/local", version, out);
    packages_add_base(prefix, version, out);
}

/* Adds what is in the folders of PYTHONPATH, where modules of a site put theirs. */
static void packages_add_path(const char *path, struct finding *out)
{
    while (path && *path) {
        size_t len = strcspn(path, ":");
        ACT_AUTOFREE char *dir = act_strndup(path, len);
        if (*dir == '/')
            add_packages(dir, out);
        path += len + (path[len] == ':');
    }
}

void inventory_packages(const char *python, const char *home, const char *python_path, struct act_strv *out)
{
    enum { CONFIG_MAX = 64 * 1024 };
    ACT_AUTOFREE char *bin = act_path_dirname(python);
    ACT_AUTOFREE char *prefix = act_path_dirname(bin);
    ACT_AUTOFREE char *config = act_path_join(prefix, "pyvenv.cfg");
    ACT_AUTOFREE char *version = version_of(python);
    ACT_AUTOFREE char *text = NULL;
    struct finding finding = {.packages = out};

    packages_add_path(python_path, &finding);
    if (act_file_read_regular(config, CONFIG_MAX, &text, NULL, NULL) < 0) {
        add_installation(prefix, version, home, &finding);
    } else {
        ACT_AUTOFREE char *sees_system = venv_value(text, "include-system-site-packages");
        ACT_AUTOFREE char *from = venv_value(text, "home");
        ACT_AUTOFREE char *system = from ? act_path_dirname(from) : NULL;
        ACT_AUTOFREE char *below = act_path_join(prefix, LAYER_BELOW);
        packages_add_base(prefix, version, &finding);
        packages_add_base(below, version, &finding);
        if (system && sees_system && strcasecmp(sees_system, "true") == 0)
            add_installation(system, version, home, &finding);
    }
    act_strv_release(&finding.names);
    act_strv_sort(out);
}
