/* program.c - refuses a command that cannot work, before anything is uploaded or queued.
 *
 * Only what is certain is refused: files that the package does not have count as missing unless something can still
 * make them (compile.aml.sh, requirements.txt), or they lie in a mapped folder.
 */
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "flow/flow_internal.h"
#include "proc/proc.h"

/* What a command can be looked up in. */
struct place {
    const struct config *config;
    const struct package_list *list;
};

static int by_path(const void *path, const void *entry)
{
    return strcmp(path, ((const struct package_entry *)entry)->path);
}

static const struct package_entry *find(const struct package_list *list, const char *path)
{
    return list->n ? bsearch(path, list->v, list->n, sizeof(*list->v), by_path) : NULL;
}

static bool has_folder(const struct package_list *list, const char *path)
{
    ACT_AUTOFREE char *folder = act_sprintf("%s/", path);

    return find(list, folder) != NULL;
}

/* Something prepares the node before the command runs, and may make what it needs. */
static bool is_prepared(const struct package_list *list)
{
    return find(list, "compile.aml.sh") || find(list, "requirements.txt");
}

static bool is_mapped(const struct config *config, const char *path)
{
    for (size_t i = 0; i < config->n_folders; i++)
        if (act_streq(path, config->folders[i].name) || act_path_is_within(path, config->folders[i].name))
            return true;
    return false;
}

/* Whether a relative path may be there when the command runs: the walk of the path may lead through a link. */
static bool may_exist(const struct place *p, const char *path)
{
    ACT_AUTOFREE char *clean = act_path_clean(path);

    if (clean[0] == '/' || act_streq(clean, "..") || act_starts_with(clean, "../") ||
        is_mapped(p->config, clean) || find(p->list, clean) || has_folder(p->list, clean))
        return true;
    for (char *slash = strrchr(clean, '/'); slash; slash = strrchr(clean, '/')) {
        *slash = '\0';
        const struct package_entry *e = find(p->list, clean);
        if (e && S_ISLNK(e->mode))
            return true;
    }
    return false;
}

/* The rule that left the file out, or NULL. */
static const char *rule_for(const struct package_list *list, const char *path)
{
    for (size_t i = 0; i < list->n_left_out; i++) {
        const char *out = list->left_out[i].path;
        size_t len = strlen(out);
        if (act_streq(out, path) || (len > 0 && out[len - 1] == '/' && strncmp(path, out, len) == 0))
            return list->left_out[i].rule;
    }
    return NULL;
}

static int missing(const struct place *p, const char *word, struct act_error *err)
{
    ACT_AUTOFREE char *clean = act_path_clean(word);
    const char *rule = rule_for(p->list, clean);

    if (rule)
        return act_error_set(err, ACT_NOT_FOUND,
                             "'%s' would not be there on the nodes: %s leaves it out of the package", word,
                             rule);
    return act_error_set(err, ACT_NOT_FOUND, "there is no '%s' in the project '%s'", word,
                         p->config->project_root);
}

/* "./run.sh": a file of the package that may be executed. */
static int check_file(const struct place *p, const char *word, struct act_error *err)
{
    ACT_AUTOFREE char *clean = act_path_clean(word);
    const struct package_entry *e = find(p->list, clean);

    if (!may_exist(p, word))
        return missing(p, word, err);
    if (e && S_ISREG(e->mode) && !(e->mode & 0111))
        return act_error_set(err, ACT_USAGE,
                             "'%s' is not executable: chmod +x it, or name what runs it: sh %s", word, word);
    return 0;
}

/* "python3.11" is "python". */
static bool is_interpreter(const char *word)
{
    static const char *const names[] = {"python", "bash", "sh", "dash", "perl"};
    const char *name = act_path_basename(word);

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t len = strlen(names[i]);
        if (strncmp(name, names[i], len) == 0 && strspn(name + len, "0123456789.") == strlen(name + len))
            return true;
    }
    return false;
}

/* "python -u train.py": the script, when there is no option before it but those of Python that stand alone. */
static int check_script(const struct place *p, const struct act_strv *argv, struct act_error *err)
{
    size_t i = 1;

    while (i < argv->n && argv->v[i][0] == '-' && argv->v[i][1] &&
           strspn(argv->v[i] + 1, "uOBsSEIqv") == strlen(argv->v[i] + 1))
        i++;
    if (i == argv->n || argv->v[i][0] == '-' || may_exist(p, argv->v[i]))
        return 0;
    return missing(p, argv->v[i], err);
}

/* A word without a slash, which the shell would look up in PATH. Only of this machine is PATH known. */
static int check_name(const struct place *p, const char *word, struct act_error *err)
{
    const struct package_entry *e = find(p->list, word);
    ACT_AUTOFREE char *program = proc_find_in_path(word);
    bool here = act_streq(p->config->platform, "local") && !p->config->docker.image;

    if (program)
        return 0;
    if (e && S_ISREG(e->mode))
        return act_error_set(
            err, ACT_USAGE,
            "'%s' is a file of the project, not a program: name what runs it, as in 'python3 %s'%s", word,
            word, e->mode & 0111 ? ", or write './' before it" : "");
    for (size_t i = 0; here && i < p->config->env.n; i++)
        here = !act_starts_with(p->config->env.v[i], "PATH=");
    if (!here)
        return 0;
    ACT_AUTOFREE char *python3 = act_streq(word, "python") ? proc_find_in_path("python3") : NULL;
    return act_error_set(err, ACT_NOT_FOUND, "there is no program '%s' in PATH%s", word,
                         python3 ? "; did you mean 'python3'?" : "");
}

static int check_word(const char *word, struct act_error *err)
{
    if (!*word)
        return act_error_set(err, ACT_USAGE, "the command is an empty word");
    return act_error_set(
        err, ACT_USAGE,
        "'%s' is one word, and no program is called so: leave out the quotes around the whole command, or "
        "let a shell read it: sh -c '...'",
        word);
}

int flow_check_program(const struct config *config, const struct package_list *list,
                       const struct act_strv *argv, struct act_error *err)
{
    const struct place p = {.config = config, .list = list};
    const char *word = argv->v[0];

    if (!*word || (argv->n == 1 && strpbrk(word, " \t\n") && !may_exist(&p, word)))
        return check_word(word, err);
    if (is_prepared(list))
        return 0;
    if (strchr(word, '/'))
        return check_file(&p, word, err);
    int rc = check_name(&p, word, err);
    return rc == 0 && is_interpreter(word) ? check_script(&p, argv, err) : rc;
}
