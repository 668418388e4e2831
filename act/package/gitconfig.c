/* gitconfig.c - where the user's own excludes are: core.excludesFile in the files of git's configuration, as
 * git-config(1) describes them. [include] is followed; [includeIf], whose conditions are git's own affair, is not.
 */
#include "package/package_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/path.h"
#include "base/text.h"

/* A file that includes itself twice would otherwise be read 2^10 times, one that does so 100 times for ever. */
enum { MAX_BYTES = 1 << 20, MAX_DEPTH = 10, MAX_FILES = 200 };

/* ---- the syntax */

struct gitconfig_parser {
    const char *at;
    char section[32]; /* in lower case; "": one with a subsection, or a long one */
};

static void skip_line(struct gitconfig_parser *p)
{
    p->at += strcspn(p->at, "\n");
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Takes the name of a section, "core]", behind the bracket. False: it is malformed. */
static bool take_section(struct gitconfig_parser *p)
{
    size_t len = strcspn(p->at, "]\n"), n = strcspn(p->at, "] \t\"\n");

    p->section[0] = '\0';
    if (p->at[len] != ']')
        return false;
    if (n == len && n < sizeof(p->section)) {
        snprintf(p->section, sizeof(p->section), "%.*s", (int)n, p->at);
        for (char *c = p->section; *c; c++)
            *c = (char)tolower((unsigned char)*c);
    }
    p->at += len + 1;
    return true;
}

/* Returns what a backslash and this character stand for; 0: nothing. */
static char escaped(char c)
{
    static const char from[] = "nt\"\\b", to[] = "\n\t\"\\\b";
    const char *found = c ? strchr(from, c) : NULL;

    return found ? to[found - from] : '\0';
}

/* Takes the value up to the end of the line, which a backslash takes into the next one. New string; NULL: it is
 * malformed. */
static char *gitconfig_take_value(struct gitconfig_parser *p)
{
    struct act_buf out = {0};
    size_t end = 0; /* without the blanks behind it */
    bool quoted = false;

    for (; *p->at && *p->at != '\n'; p->at++) {
        if (!quoted && (*p->at == '#' || *p->at == ';')) {
            skip_line(p);
            break;
        }
        if (*p->at == '"') {
            quoted = !quoted;
            end = out.len;
        } else if (*p->at == '\\' && (p->at[1] == '\n' || (p->at[1] == '\r' && p->at[2] == '\n'))) {
            p->at += p->at[1] == '\r' ? 2 : 1;
        } else if (*p->at == '\\') {
            char c = escaped(*++p->at);
            if (!c) {
                act_buf_release(&out);
                return NULL;
            }
            act_buf_addc(&out, c);
            end = out.len;
        } else if (quoted || out.len > 0 || !is_blank(*p->at)) {
            act_buf_addc(&out, *p->at);
            end = quoted || !is_blank(*p->at) ? out.len : end;
        }
    }
    char *value = quoted ? NULL : act_strndup(out.data ? out.data : "", end);
    act_buf_release(&out);
    return value;
}

/* Takes a key and its value; without one *out_value is NULL. False: it is malformed. */
static bool gitconfig_take_key(struct gitconfig_parser *p, char key[32], char **out_value)
{
    size_t n = 0;

    for (; isalnum((unsigned char)*p->at) || *p->at == '-'; p->at++)
        if (n < 31)
            key[n++] = (char)tolower((unsigned char)*p->at);
    key[n] = '\0';
    *out_value = NULL;
    while (is_blank(*p->at))
        p->at++;
    if (n == 0)
        return false;
    if (*p->at != '=') {
        skip_line(p);
        return true;
    }
    p->at++;
    *out_value = gitconfig_take_value(p);
    return *out_value != NULL;
}

void package_gitconfig_parse(const char *text, void (*each)(void *arg, const char *name, const char *value), void *arg)
{
    static const char mark[] = "\xef\xbb\xbf";
    struct gitconfig_parser p = {.at = text + (act_starts_with(text, mark) ? strlen(mark) : 0)};
    bool good = true;

    while (good && *p.at) {
        if (is_blank(*p.at) || *p.at == '\n') {
            p.at++;
        } else if (*p.at == '#' || *p.at == ';') {
            skip_line(&p);
        } else if (*p.at == '[') {
            p.at++;
            good = take_section(&p);
        } else {
            char key[32];
            ACT_AUTOFREE char *value = NULL;
            good = gitconfig_take_key(&p, key, &value);
            ACT_AUTOFREE char *name = act_sprintf("%s.%s", p.section, key);
            if (good && value && p.section[0])
                each(arg, name, value);
        }
    }
}

/* ---- the files */

struct gitconfig_found {
    char *excludes; /* the last value wins */
    int files;      /* that were read */
};

struct gitconfig_reading {
    const char *file;
    int depth;
    struct gitconfig_found *found;
};

static void read_config(const char *file, int depth, struct gitconfig_found *found);

char *package_path_from(const char *dir, const char *path)
{
    ACT_AUTOFREE char *home = act_starts_with(path, "~/") ? act_home_dir() : NULL;

    if (home)
        return act_path_join(home, path + 2);
    return *path == '/' ? act_strdup(path) : act_path_join(dir, path);
}

static void take_setting(void *arg, const char *name, const char *value)
{
    const struct gitconfig_reading *r = arg;

    if (act_streq(name, "core.excludesfile")) {
        free(r->found->excludes);
        r->found->excludes = act_strdup(value);
    } else if (act_streq(name, "include.path") && r->depth < MAX_DEPTH) {
        ACT_AUTOFREE char *dir = act_path_dirname(r->file);
        ACT_AUTOFREE char *included = package_path_from(dir, value);
        read_config(included, r->depth + 1, r->found);
    }
}

/* One that is not there, or cannot be read, says nothing. */
static void read_config(const char *file, int depth, struct gitconfig_found *found)
{
    struct gitconfig_reading r = {.file = file, .depth = depth, .found = found};
    ACT_AUTOFREE char *text = NULL;
    struct act_error ignored;
    size_t len;

    if (found->files++ < MAX_FILES && act_file_read_regular(file, MAX_BYTES, &text, &len, &ignored) == 0)
        package_gitconfig_parse(text, take_setting, &r);
}

/* Returns $XDG_CONFIG_HOME/git/NAME. New string. */
static char *in_user_config(const char *name)
{
    const char *config = act_env("XDG_CONFIG_HOME");
    ACT_AUTOFREE char *home = act_home_dir();

    if (config)
        return act_sprintf("%s/git/%s", config, name);
    return act_sprintf("%s/.config/git/%s", home, name);
}

static void read_users(struct gitconfig_found *found)
{
    const char *instead = getenv("GIT_CONFIG_GLOBAL");
    ACT_AUTOFREE char *config = in_user_config("config"), *home = act_home_dir();
    ACT_AUTOFREE char *own = act_path_join(home, ".gitconfig");

    if (instead) {
        read_config(instead, 0, found);
        return;
    }
    read_config(config, 0, found);
    read_config(own, 0, found);
}

static void read_systems(struct gitconfig_found *found)
{
    const char *instead = getenv("GIT_CONFIG_SYSTEM"), *off = getenv("GIT_CONFIG_NOSYSTEM");

    if (!off || !*off || act_streq(off, "0") || strcasecmp(off, "false") == 0)
        read_config(instead ? instead : "/etc/gitconfig", 0, found);
}

char *package_git_excludes(const char *git_dir, const char *top)
{
    struct gitconfig_found found = {0};

    read_systems(&found);
    read_users(&found);
    if (git_dir) {
        ACT_AUTOFREE char *own = act_path_join(git_dir, "config");
        found.files = 0; /* whatever the user's own had */
        read_config(own, 0, &found);
    }
    ACT_AUTOFREE char *value = found.excludes;
    if (!value)
        return in_user_config("ignore");
    return *value ? package_path_from(top, value) : NULL;
}
