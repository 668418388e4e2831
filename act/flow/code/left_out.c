/* left_out.c - what stayed out of a package and a command may miss: it is said when it is new, and noted beside the
 * package in the cache, so that a failure for the lack of it can name the rule. In the cache:
 *   <sha256>.left       {"version": 1, "left_out": [[PATH, RULE], ...]}
 *   index-<hash>.said   of a project: what was said last
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "codec/json.h"
#include "flow/code/code_internal.h"
#include "flow/flow_internal.h"

enum { NOTED = 2000, SAID = 3, NOTE_BYTES = 4 << 20, LARGE = 16 << 20, MAX_LOOKS = 2000 };

struct weight {
    uint64_t bytes;
    int looks; /* at an entry of a folder */
};

static char *note_path(const char *sha256)
{
    ACT_AUTOFREE char *packages = flow_packages_dir();

    return act_sprintf("%s/%s.left", packages, sha256);
}

/* ---- saying it */

/* Tells whether a rule is one of git's lists: "src/.gitignore:3 '*.bin'". */
static bool is_gits(const char *rule)
{
    return strstr(rule, ".gitignore:") || strstr(rule, "exclude:") || strstr(rule, "git/ignore:");
}

static bool has_name_of_data(const char *path)
{
    static const char *const names[] = {"data/",    "dataset/",     "datasets/",   "model/",     "models/",
                                        "weights/", "checkpoints/", "checkpoint/", "pretrained/"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(path, names[i]) == 0)
            return true;
    return false;
}

/* Adds up what is in a folder, until it is enough to tell. */
// NOLINTNEXTLINE(misc-no-recursion): MAX_LOOKS ends it
static void left_out_weigh(const char *folder, struct weight *w)
{
    DIR *dir = opendir(folder);
    struct stat st;

    for (struct dirent *e; dir && w->bytes < LARGE && w->looks < MAX_LOOKS && (e = readdir(dir));) {
        w->looks++;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        ACT_AUTOFREE char *below = S_ISDIR(st.st_mode) ? act_path_join(folder, e->d_name) : NULL;
        if (below)
            left_out_weigh(below, w);
        else
            w->bytes += S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    }
    if (dir)
        closedir(dir);
}

/* Tells whether a command may well want a folder that git ignores: at the top, where mapped folders are, of such a name
 * or with much in it. Data is in no repository, whether or not a run needs it. */
static bool is_wanted_folder(const char *project, const struct package_left_out *one)
{
    const char *slash = strchr(one->path, '/');
    struct weight w = {0};

    if (!slash || slash[1] || !is_gits(one->rule))
        return false;
    ACT_AUTOFREE char *folder = act_path_join(project, one->path);
    left_out_weigh(folder, &w);
    return w.bytes >= LARGE || (w.bytes > 0 && has_name_of_data(one->path));
}

/* "left out: 'pkg/_C.so' (built-in rule '*.so') and 3 more; ...". New string; NULL: none. */
static char *left_out_words_of(const char *project, const struct package_list *list)
{
    struct act_buf out = {0};
    bool any_folder = false;
    size_t n = 0;

    for (size_t i = 0; i < list->n_left_out; i++) {
        const struct package_left_out *one = &list->left_out[i];
        bool is_folder = is_wanted_folder(project, one);
        any_folder = any_folder || is_folder;
        if ((!is_folder && package_rule_weight(one->rule) < PACKAGE_RULE_SAID) || n++ >= SAID)
            continue;
        ACT_AUTOFREE char *name = act_printable(one->path);
        act_buf_addf(&out, "%s'%s' (%s)", n > 1 ? ", " : "left out: ", name, one->rule);
    }
    if (n > SAID)
        act_buf_addf(&out, " and %zu more", n - SAID);
    if (n > 0)
        act_buf_addf(&out, "; a line such as '!NAME' in .actignore takes it back, or %s",
                     any_folder ? "map the folder in config_param" : "zip_options of your own");
    return n > 0 ? act_buf_steal(&out) : NULL;
}

void flow_say_left_out(const char *project, const struct package_list *list)
{
    ACT_AUTOFREE char *index = flow_package_index(project), *words = left_out_words_of(project, list), *before = NULL;
    ACT_AUTOFREE char *said = act_sprintf("%s.said", index);
    const char *now = words ? words : "";
    struct act_error err;

    if (act_file_read(said, NOTE_BYTES, &before, NULL, &err) < 0)
        before = act_strdup("");
    if (act_streq(before, now))
        return;
    if (words)
        act_note("%s", words);
    if (act_file_write_quickly(said, now, strlen(now), 0600, &err) < 0)
        act_trace("package", "%s", act_error_text(&err));
}

/* ---- noting it */

void flow_note_left_out(const char *sha256, const struct package_list *list)
{
    json_t *rows = json_array();
    struct act_error err;

    for (size_t i = 0; i < list->n_left_out && json_array_size(rows) < NOTED; i++)
        if (package_rule_weight(list->left_out[i].rule) >= PACKAGE_RULE_NOTED)
            json_array_append_new(rows, json_pack("[o,o]", codec_json_bytes_new(list->left_out[i].path),
                                                  codec_json_bytes_new(list->left_out[i].rule)));
    ACT_AUTOFREE char *path = note_path(sha256);
    if (json_array_size(rows) == 0) {
        unlink(path);
        json_decref(rows);
        return;
    }
    CODEC_AUTOJSON json_t *note = json_pack("{s:i,s:o}", "version", 1, "left_out", rows);
    ACT_AUTOFREE char *text = codec_json_line(note);
    if (act_file_write_quickly(path, text, strlen(text), 0600, &err) < 0)
        act_trace("package", "%s", act_error_text(&err));
}

/* ---- finding it */

static bool is_edge(char c)
{
    return c == '\0' || strchr(" '\"`/:,;()=.", c) != NULL;
}

/* Tells whether the name stands in the line by itself. */
static bool left_out_has_name(const char *line, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = len ? strstr(line, name) : NULL; at; at = strstr(at + 1, name))
        if ((at == line || is_edge(at[-1])) && is_edge(at[len]))
            return true;
    return false;
}

/* Tells whether a line says that something is missing. */
static bool is_about_missing(const char *line)
{
    static const char *const words[] = {"No module named", "cannot import name", "No such file",  "not found",
                                        "cannot open",     "can't open",         "does not exist"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(line, words[i]))
            return true;
    return false;
}

/* The name of a module: "pkg/_C.cpython-311.so" is "pkg._C". New string. */
static char *module_of(const char *path)
{
    char *name = act_strdup(path), *slash = strrchr(name, '/');
    char *dot = strchr(slash ? slash : name, '.');

    if (dot)
        *dot = '\0';
    for (char *c = name; *c; c++)
        if (*c == '/')
            *c = '.';
    return name;
}

static bool is_missed(const char *line, const char *left_out)
{
    ACT_AUTOFREE char *path = act_strndup(left_out, strlen(left_out) - act_ends_with(left_out, "/"));
    ACT_AUTOFREE char *module = module_of(path);
    const char *last = strrchr(module, '.');

    if (left_out_has_name(line, path) || left_out_has_name(line, act_path_basename(path)) ||
        left_out_has_name(line, module))
        return true;
    if (!last || !strstr(line, "cannot import name"))
        return false;
    ACT_AUTOFREE char *from = act_strndup(module, (size_t)(last - module));
    return left_out_has_name(line, last + 1) && left_out_has_name(line, from);
}

static void add_note(struct act_strv *notes, const char *path, const char *rule)
{
    bool is_line = act_starts_with(rule, "built-in rule") || strchr(rule, ':'); /* else no other one takes it back */
    ACT_AUTOFREE char *back =
        is_line ? act_sprintf("; a line '!%s' in .actignore takes it back", path) : act_strdup("");
    ACT_AUTOFREE char *note = act_sprintf("'%s' is not in the package: %s leaves it out%s", path, rule, back);

    if (!act_strv_has(notes, note))
        act_strv_push(notes, note);
}

void flow_find_left_out(const char *sha256, const char *line, struct act_strv *notes)
{
    ACT_AUTOFREE char *path = note_path(sha256);
    CODEC_AUTOJSON json_t *note = NULL;
    struct act_error ignored;
    const json_t *row;
    size_t i, before = notes->n;

    if (!*sha256 || !is_about_missing(line) || access(path, F_OK) < 0 ||
        codec_json_read(path, NOTE_BYTES, &note, &ignored) < 0)
        return;
    json_array_foreach(json_object_get(note, "left_out"), i, row)
    {
        ACT_AUTOFREE char *name = codec_json_bytes_get(json_array_get(row, 0));
        ACT_AUTOFREE char *rule = codec_json_bytes_get(json_array_get(row, 1));
        if (name && rule && *name && notes->n < before + SAID && is_missed(line, name))
            add_note(notes, name, rule);
    }
}
