/* program.c - refuses a command that cannot work, before anything is uploaded or queued.
 *
 * It refuses only what is certain to fail: a file that is not in the package counts as missing unless something can
 * still create it (compile.aml.sh, the lines of 'setup') or it lies in a mapped folder; a program, unless something can
 * bring it (requirements.txt, 'modules', an image).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "config/config.h"
#include "flow/code/code_internal.h"
#include "platform/platform.h"
#include "proc/proc.h"
#include "run/environments.h"
#include "run/starter.h"

/* The places where a command can be looked up. */
struct place {
    const struct config *config;
    const struct package_list *list;
};

static const struct package_entry *find_packed(const struct package_list *list, const char *path)
{
    return list->n ? bsearch(&path, list->v, list->n, sizeof(*list->v), act_by_text) : NULL;
}

static bool has_folder(const struct package_list *list, const char *path)
{
    ACT_AUTOFREE char *folder = act_sprintf("%s/", path);

    return find_packed(list, folder) != NULL;
}

/* Something prepares the node before the command runs, and may make any file in the code. */
static bool may_make_files(const struct place *p)
{
    return p->config->setup.lines || find_packed(p->list, "compile.aml.sh");
}

/* Something may bring programs, but touches none of the project's files. */
static bool may_bring_programs(const struct place *p)
{
    const struct config_setup *setup = &p->config->setup;

    for (const struct environment_source *s = environment_sources; s->file; s++)
        if (find_packed(p->list, s->file))
            return true;
    return setup->modules.n > 0 || setup->conda || setup->venv;
}

static bool is_mapped(const struct config *config, const char *path)
{
    for (size_t i = 0; i < config->n_folders; i++)
        if (act_streq(path, config->folders[i].name) || act_path_is_within(path, config->folders[i].name))
            return true;
    return false;
}

static bool program_is_outside(const char *clean)
{
    return act_streq(clean, "..") || act_starts_with(clean, "../");
}

/* Tells whether a relative path may be there when the command runs: the walk of the path may lead through a link. */
static bool may_exist(const struct place *p, const char *path)
{
    ACT_AUTOFREE char *clean = act_path_clean(path);

    if (program_is_outside(clean))
        return false;
    if (clean[0] == '/' || is_mapped(p->config, clean) || find_packed(p->list, clean) || has_folder(p->list, clean))
        return true;
    for (char *slash = strrchr(clean, '/'); slash; slash = strrchr(clean, '/')) {
        *slash = '\0';
        const struct package_entry *e = find_packed(p->list, clean);
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

/* Returns the file of the package that a path may mean; NULL: none is near. It points into the list. */
static const char *program_near_file(const struct package_list *list, const char *path)
{
    ACT_AUTOFREE const char **paths = act_calloc(list->n + 1, sizeof(*paths));
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++)
        if (S_ISREG(list->v[i].mode))
            paths[n++] = list->v[i].path;
    return n ? act_nearest(path, paths) : NULL;
}

/* Tells whether a word is a file of the package and what was meant as words behind it. */
static bool program_quoted_too_much(const struct package_list *list, const char *word)
{
    ACT_AUTOFREE char *first = act_strndup(word, strcspn(word, " "));

    return strchr(word, ' ') && find_packed(list, first);
}

static int missing(const struct place *p, const char *word, struct act_error *err)
{
    ACT_AUTOFREE char *clean = act_path_clean(word);
    const char *rule = rule_for(p->list, clean);

    if (rule)
        return act_error_set(err, ACT_NOT_FOUND,
                             "'%s' would not be there on the nodes: %s leaves it out of the package", word, rule);
    if (program_is_outside(clean))
        return act_error_set(err, ACT_NOT_FOUND,
                             "'%s' is outside the project '%s', where commands start: runs have only what is in it",
                             word, p->config->project_root);
    const char *near = program_near_file(p->list, clean);
    act_error_set(err, ACT_NOT_FOUND, "there is no '%s' in the project '%s'", word, p->config->project_root);
    if (near)
        act_error_hint(err, "did you mean '%s'?", near);
    else if (program_quoted_too_much(p->list, clean))
        act_error_hint(err, "leave out the quotes, which make one word of a script and its options");
    return -ACT_NOT_FOUND;
}

/* "./run.sh": a file of the package that may be executed. */
static int program_check_file(const struct place *p, const char *word, struct act_error *err)
{
    ACT_AUTOFREE char *clean = act_path_clean(word);
    const struct package_entry *e = find_packed(p->list, clean);

    if (!may_exist(p, word))
        return missing(p, word, err);
    if (e && S_ISREG(e->mode) && !(e->mode & 0111))
        return act_error_set(err, ACT_USAGE, "'%s' is not executable: chmod +x it, or name what runs it: %s %s", word,
                             act_ends_with(word, ".py") ? "python3" : "sh", word);
    return 0;
}

/* ---- what the first word starts */

struct started {
    enum { NOTHING, SCRIPT, MODULE } kind; /* NOTHING: or nobody knows */
    const char *word;
};

static const struct interpreter {
    const char *name;
    const char *alone; /* letters of options without a value */
} interpreters[] = {
    {"python", "bBdEiIOPqsSuvx"}, {"bash", "efluvx"}, {"sh", "efluvx"}, {"dash", "efluvx"}, {"perl", "tTwW"},
};

/* "python3.11" is "python". */
static const struct interpreter *find_interpreter(const char *word)
{
    const char *name = act_path_basename(word);

    for (size_t i = 0; i < sizeof(interpreters) / sizeof(interpreters[0]); i++) {
        const char *rest = name + strlen(interpreters[i].name);
        if (act_starts_with(name, interpreters[i].name) && strspn(rest, "0123456789.") == strlen(rest))
            return &interpreters[i];
    }
    return NULL;
}

static bool is_alone(const struct interpreter *interpreter, const char *word)
{
    return word[0] == '-' && word[1] && strspn(word + 1, interpreter->alone) == strlen(word + 1);
}

/* "python -u train.py", "python -m pkg.train", if only options without a value come before it. With -I or -P Python
 * does not import from the current folder. */
static struct started by_interpreter(const struct act_strv *argv)
{
    const struct interpreter *interpreter = find_interpreter(argv->v[0]);
    bool is_apart = false;
    size_t i = 1;

    for (; interpreter && i < argv->n && is_alone(interpreter, argv->v[i]); i++)
        is_apart = is_apart || strpbrk(argv->v[i], "IP");
    if (!interpreter || i == argv->n)
        return (struct started){0};
    if (i + 1 < argv->n && interpreter == interpreters && act_streq(argv->v[i], "-m") && !is_apart)
        return (struct started){MODULE, argv->v[i + 1]};
    return argv->v[i][0] == '-' ? (struct started){0} : (struct started){SCRIPT, argv->v[i]};
}

/* "torchrun train.py". Which of its options have a value may change with its version: only what looks like a script is
 * taken for one. */
static struct started by_starter(const struct run_starter *starter, const struct act_strv *argv)
{
    const char *word = starter->end < argv->n ? argv->v[starter->end] : "-";

    if (word[0] == '-' || run_starter_has(starter, argv, "h help"))
        return (struct started){0};
    if (run_starter_has(starter, argv, "m module"))
        return (struct started){MODULE, word};
    return act_ends_with(word, ".py") ? (struct started){SCRIPT, word} : (struct started){0};
}

static struct started what_starts(const struct act_strv *argv)
{
    struct run_starter starter;

    return run_starter_find(argv, true, &starter) ? by_starter(&starter, argv) : by_interpreter(argv);
}

/* Returns the file of "pkg.train", which "python -m" runs, below root. New string; NULL: the project has none. */
static char *program_file_of_module(const char *root, const char *module)
{
    static const char *const endings[] = {".py", "/__main__.py"};
    ACT_AUTOFREE char *path = act_strdup(module);

    for (char *c = path; *c; c++)
        *c = *c == '.' ? '/' : *c;
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        ACT_AUTOFREE char *file = act_sprintf("%s/%s%s", root, path, endings[i]);
        if (access(file, R_OK) == 0)
            return act_strdup(file + strlen(root) + 1);
    }
    return NULL;
}

char *flow_started_script(const char *root, const struct act_strv *argv)
{
    const struct started what = what_starts(argv);
    const char *word = what.kind == SCRIPT ? what.word : argv->v[0];

    if (what.kind == MODULE)
        return program_file_of_module(root, what.word);
    return *word != '/' && act_ends_with(word, ".py") ? act_path_clean(word) : NULL;
}

/* ---- modules of Python */

/* Python looks for a module of a regular package in that package only, unless the package itself does something about
 * it; folders without __init__.py may have parts elsewhere. */
static bool is_closed(const struct place *p, const char *package)
{
    static const char *const opened_by[] = {"__path__", "namespace", "sys.modules"};
    ACT_AUTOFREE char *name = act_sprintf("%s/__init__.py", package);
    ACT_AUTOFREE char *path = act_path_join(p->config->project_root, name);
    ACT_AUTOFREE char *file = act_sprintf("%s.py", package);
    ACT_AUTOFREE char *text = NULL;
    struct act_error ignored;
    size_t len;

    if (!find_packed(p->list, name))
        return find_packed(p->list, file) && !has_folder(p->list, package);
    if (act_file_read_regular(path, PACKAGE_JUDGED, &text, &len, &ignored) < 0)
        return false;
    for (size_t i = 0; i < sizeof(opened_by) / sizeof(opened_by[0]); i++)
        if (strstr(text, opened_by[i]))
            return false;
    return true;
}

/* "python -m pkg.train", where the project has pkg. */
static int check_module(const struct place *p, const char *module, struct act_error *err)
{
    ACT_AUTOFREE char *package = act_strndup(module, strcspn(module, "."));
    ACT_AUTOFREE char *path = act_strdup(module);

    for (char *c = path; *c; c++)
        *c = *c == '.' ? '/' : *c;
    ACT_AUTOFREE char *file = act_sprintf("%s.py", path);
    ACT_AUTOFREE char *compiled = act_sprintf("%s.pyc", path);
    if (!strchr(module, '.') || may_exist(p, path) || may_exist(p, file) || may_exist(p, compiled) ||
        !is_closed(p, package))
        return 0;
    return missing(p, file, err);
}

static int check_started(const struct place *p, const struct started *what, struct act_error *err)
{
    if (what->kind == MODULE)
        return check_module(p, what->word, err);
    return what->kind == NOTHING || may_exist(p, what->word) ? 0 : missing(p, what->word, err);
}

/* ---- the tree itself */

/* An absolute path to a file of the package: on the node it names a later version of that file, or nothing. */
static int check_live(const struct place *p, const char *word, struct act_error *err)
{
    ACT_AUTOFREE char *root = realpath(p->config->project_root, NULL);
    ACT_AUTOFREE char *path = word && word[0] == '/' ? realpath(word, NULL) : NULL;

    if (!root || !path || act_streq(path, root) || !act_path_is_within(path, root) ||
        !find_packed(p->list, path + strlen(root) + 1))
        return 0;
    return act_error_set(err, ACT_USAGE,
                         "'%s' is the file here, which may change, and the run has its own copy: write './%s'", word,
                         path + strlen(root) + 1);
}

/* ---- the first word */

/* A word without a slash, which the shell would look up in PATH. Only of this machine is PATH known. */
static int program_check_name(const struct place *p, const char *word, struct act_error *err)
{
    static const char *const usual[] = {"python3", "torchrun", "accelerate", "deepspeed", "bash", "make", NULL};
    const struct package_entry *e = find_packed(p->list, word);
    ACT_AUTOFREE char *program = proc_find_in_path(word);
    bool here = platform_find(p->config->platform)->about.is_here && !p->config->docker.image;

    if (program)
        return 0;
    if (e && S_ISREG(e->mode))
        return act_error_set(err, ACT_USAGE,
                             "'%s' is a file of the project, not a program: name what runs it, as in 'python3 %s'%s",
                             word, word, e->mode & 0111 ? ", or write './' before it" : "");
    for (size_t i = 0; here && i < p->config->env.n; i++)
        here = !act_starts_with(p->config->env.v[i], "PATH=");
    if (!here || may_bring_programs(p))
        return 0;
    const char *near = act_nearest(word, usual);
    ACT_AUTOFREE char *found = near ? proc_find_in_path(near) : NULL;
    act_error_set(err, ACT_NOT_FOUND, "there is no program '%s' in PATH", word);
    if (found)
        act_error_hint(err, "did you mean '%s'?", near);
    return -ACT_NOT_FOUND;
}

static int program_check_word(const char *word, struct act_error *err)
{
    if (!*word)
        return act_error_set(err, ACT_USAGE, "the command is an empty word");
    return act_error_set(
        err, ACT_USAGE,
        "'%s' is one word, and there is no program of that name: leave out the quotes around the whole command, or "
        "let a shell read it: sh -c '...'",
        word);
}

int flow_check_program(const struct config *config, const struct package_list *list, const struct act_strv *argv,
                       struct act_error *err)
{
    const struct place p = {.config = config, .list = list};
    const struct started what = what_starts(argv);
    const char *word = argv->v[0];

    if (!*word || (argv->n == 1 && strpbrk(word, " \t\n") && !may_exist(&p, word)))
        return program_check_word(word, err);
    int rc = check_live(&p, word, err);
    if (rc == 0)
        rc = check_live(&p, what.word, err);
    if (rc < 0 || may_make_files(&p))
        return rc;
    rc = strchr(word, '/') ? program_check_file(&p, word, err) : program_check_name(&p, word, err);
    return rc == 0 ? check_started(&p, &what, err) : rc;
}
