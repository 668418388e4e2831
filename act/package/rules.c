/* rules.c - what goes into a package: the configuration, the built-in list, .gitignore, .actignore and zip_options.
 *
 * A path is left out when any of three says so: the configuration (a mapped folder, a file with secrets); the
 * built-in list, as far as zip_options do not replace it, and what git ignores, unless .actignore takes it back, or
 * .actignore itself; zip_options. What is in a folder that the first two leave out is never asked for.
 */
#include "package/package_internal.h"

#include <string.h>
#include <sys/stat.h>

#include "base/glob.h"
#include "base/path.h"
#include "base/temp.h"
#include "base/text.h"
#include "filter/pattern.h"

#define IGNORE_FILE ".actignore"

enum { N_MARKS = 3 }; /* rows of the table of marks */

/* Holds a line in gitignore syntax. */
struct rules_line {
    struct filter_pattern pattern;
    int number; /* in .actignore; 0 for the built-in list */
};

/* The reason for which a path is left out, until a line of .actignore takes it back. */
struct rules_reason {
    const struct rules_line *line; /* NULL: none */
    char *gitignore;               /* the line of a .gitignore, new; NULL: none */
};

struct package_rules {
    struct act_strv kept_out;
    char *root;
    struct rules_line marked[N_MARKS];
    struct rules_line *lines; /* the built-in list, then .actignore */
    size_t n_lines, n_built_in;
    struct package_gitignore *gitignore; /* NULL: it does not count */
    struct act_strv excludes, includes;  /* the patterns of -x and -i */
};

/* Matches the name of a part file of the folder store, and nothing else. */
#define UNFINISHED ".act-part-" Q16 "-" Q16 Q16
#define Q16        "????????????????"

/* The built-in list: files that are of no use on a node, or dangerous there. The more general patterns come last. Some
 * do not count beside the zip_options of the user. */
static const struct {
    const char *pattern;
    bool is_option; /* patterns of zip_options replace it */
    enum package_rule_weight weight;
} built_in[] = {
    {".git", false, PACKAGE_RULE_PLAIN}, /* their settings may hold a token for the server */
    {".hg", false, PACKAGE_RULE_PLAIN},
    {".svn", false, PACKAGE_RULE_PLAIN},
    {"__pycache__/", true, PACKAGE_RULE_PLAIN},
    {"*.py[co]", true, PACKAGE_RULE_PLAIN},
    {"*.o", true, PACKAGE_RULE_SAID}, /* as the original: built for this machine */
    {"*.so", true, PACKAGE_RULE_SAID},
    {"venv/", true, PACKAGE_RULE_NOTED},
    {".venv/", true, PACKAGE_RULE_NOTED},
    {"node_modules/", true, PACKAGE_RULE_NOTED},
    {"wandb/", true, PACKAGE_RULE_SAID},
    {"mlruns/", true, PACKAGE_RULE_SAID},
    {"lightning_logs/", true, PACKAGE_RULE_SAID},
    {"/tmp_run/", true, PACKAGE_RULE_SAID},
    {"/visualization/", true, PACKAGE_RULE_SAID},
    {".ipynb_checkpoints/", true, PACKAGE_RULE_PLAIN},
    {".mypy_cache/", true, PACKAGE_RULE_PLAIN},
    {".pytest_cache/", true, PACKAGE_RULE_PLAIN},
    {"**/build/lib.*/", true, PACKAGE_RULE_SAID}, /* what setup.py leaves: built for this machine */
    {"**/build/temp.*/", true, PACKAGE_RULE_NOTED},
    {"/assets/", false, PACKAGE_RULE_PLAIN},           /* logs that were fetched */
    {UNFINISHED, false, PACKAGE_RULE_PLAIN},           /* downloads, */
    {UNFINISHED ".map", false, PACKAGE_RULE_PLAIN},    /* and which parts of them are there */
    {ACT_TEMP_PREFIX "*", false, PACKAGE_RULE_PLAIN},  /* unfinished files of ACT's own */
    {"/aux_data/configs/", false, PACKAGE_RULE_PLAIN}, /* account files: secrets */
    {"/.*", false, PACKAGE_RULE_NOTED},                /* the original packed '*' */
};

/* Marks of a folder that is a virtual environment or holds results of a tool, whatever its name is. They belong to the
 * built-in list, and do not count beside the zip_options of the user. */
static const struct {
    const char *pattern; /* the mark, as rules say it */
    const char *beside;  /* what is in such a folder, too, so that a template is none; NULL: nothing */
    enum package_rule_weight weight;
} marks[N_MARKS] = {
    {"*/pyvenv.cfg", "bin/python", PACKAGE_RULE_NOTED},
    {"*/conda-meta", "conda-meta/history", PACKAGE_RULE_NOTED},
    {"*/.hydra", NULL, PACKAGE_RULE_SAID},
};

enum package_rule_weight package_rule_weight(const char *rule)
{
    static const char prefix[] = "built-in rule '";

    for (size_t i = 0; act_starts_with(rule, prefix) && i < N_MARKS; i++) {
        size_t len = strlen(marks[i].pattern);
        if (strncmp(rule + strlen(prefix), marks[i].pattern, len) == 0 && rule[strlen(prefix) + len] == '\'')
            return marks[i].weight;
    }
    for (size_t i = 0; act_starts_with(rule, prefix) && i < sizeof(built_in) / sizeof(built_in[0]); i++) {
        size_t len = strlen(built_in[i].pattern);
        if (strncmp(rule + strlen(prefix), built_in[i].pattern, len) == 0 && rule[strlen(prefix) + len] == '\'')
            return built_in[i].weight;
    }
    return act_starts_with(rule, "the configuration's") ? PACKAGE_RULE_PLAIN : PACKAGE_RULE_NOTED;
}

/* gitignore lines */

static void rules_add_line(struct package_rules *rules, const char *text, int number)
{
    struct rules_line line = {.number = number};

    filter_pattern_init(&line.pattern, text);
    ACT_PUSH(rules->lines, rules->n_lines, line);
}

static int load_ignore_file(struct package_rules *rules, const char *root, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(root, IGNORE_FILE);
    ACT_AUTO(act_strv) lines = {0};
    struct act_error local = {0};
    int rc = filter_read_regular_lines(path, &lines, &local);

    for (size_t i = 0; i < lines.n; i++)
        if (*lines.v[i])
            rules_add_line(rules, lines.v[i], (int)i + 1);
    return rc == 0 || rc == -ACT_NOT_FOUND ? 0 : act_error_set(err, local.code, "%s", act_error_text(&local));
}

/* Sweeping lines such as "!*" and "!*" "/" are common below a "*" and do not mean .git or account files: what
 * the built-in list leaves out is taken back by a line without wildcards or with the very pattern of the
 * list. The top-level dot files are also taken back by a pattern that is more than wildcards ("!.*"). */
static bool takes_back(const struct rules_line *line, const struct rules_line *built)
{
    const char *pattern = line->pattern.text + 1;

    if (filter_pattern_is_plain(&line->pattern) || act_streq(pattern, built->pattern.text))
        return true;
    return act_streq(built->pattern.text, "/.*") && strspn(pattern, "*?/") != strlen(pattern);
}

static bool rules_matches(const struct rules_line *line, const struct filter_path *parts, bool is_folder)
{
    return filter_pattern_matches(&line->pattern, parts, parts->n, is_folder);
}

static const struct rules_line *ask_built_in(const struct package_rules *rules, const struct filter_path *parts,
                                             bool is_folder)
{
    for (size_t i = 0; i < rules->n_built_in; i++)
        if (rules_matches(&rules->lines[i], parts, is_folder))
            return &rules->lines[i];
    return NULL;
}

static bool rules_has(const char *folder, const char *name)
{
    ACT_AUTOFREE char *path = name ? act_path_join(folder, name) : NULL;
    struct stat st;

    return !path || lstat(path, &st) == 0; /* the Python of an environment is a link, and may be on nodes alone */
}

static const struct rules_line *rules_ask_marks(const struct package_rules *rules, const char *path)
{
    ACT_AUTOFREE char *folder = act_path_join(rules->root, path);

    for (size_t i = 0; i < N_MARKS; i++)
        if (rules_has(folder, act_path_basename(marks[i].pattern)) && rules_has(folder, marks[i].beside))
            return &rules->marked[i];
    return NULL;
}

/* Applies a line of .actignore that matches. */
static void apply_line(const struct rules_line *line, struct rules_reason *by)
{
    if (!line->pattern.take_back && !by->line && !by->gitignore) {
        by->line = line;
    } else if (line->pattern.take_back &&
               (by->gitignore || (by->line && (by->line->number > 0 || takes_back(line, by->line))))) {
        free(by->gitignore);
        *by = (struct rules_reason){0};
    }
}

/* Returns the reason for which the path is left out: the first line since the last that took it back. */
static struct rules_reason rules_ask_lines(const struct package_rules *rules, const char *path, bool is_folder)
{
    ACT_AUTO(filter_path) parts = {0};
    struct rules_reason by = {0};

    filter_path_set(&parts, path);
    by.line = ask_built_in(rules, &parts, is_folder);
    if (!by.line && is_folder && rules->root)
        by.line = rules_ask_marks(rules, path);
    if (!by.line && rules->gitignore)
        by.gitignore = package_gitignore_ask(rules->gitignore, path, is_folder);
    for (const struct rules_line *line = rules->lines + rules->n_built_in, *end = rules->lines + rules->n_lines;
         line < end; line++)
        if (rules_matches(line, &parts, is_folder))
            apply_line(line, &by);
    return by;
}

/* zip_options */

/* Options that change nothing here: how zip walks, links, updates, compresses and talks. */
static const char harmless_letters[] = "qryuvoX0123456789";
static const char *const harmless_words[] = {
    "--quiet", "--recurse-paths", "--symlinks", "--update", "--verbose", "--no-extra",
};

static bool rules_is_harmless(const char *option)
{
    for (size_t i = 0; i < sizeof(harmless_words) / sizeof(harmless_words[0]); i++)
        if (act_streq(option, harmless_words[i]))
            return true;
    return option[1] != '\0' && strspn(option + 1, harmless_letters) == strlen(option + 1);
}

/* Makes of a word what a shell and zip would: no backslashes, no quotes around it, no leading "./" or "/". */
static char *clean_pattern(const char *word)
{
    size_t len = strlen(word);
    bool quoted = len >= 2 && (word[0] == '"' || word[0] == '\'') && word[len - 1] == word[0];
    struct act_buf out = {0};

    for (size_t i = quoted; i < len - quoted; i++)
        if (word[i] != '\\')
            act_buf_addc(&out, word[i]);
    char *text = act_buf_steal(&out), *start = text;
    while (*start == '/' || act_starts_with(start, "./"))
        start += *start == '/' ? 1 : 2;
    memmove(text, start, strlen(start) + 1);
    return text;
}

/* Returns the list that an option opens, NULL for others; *out_pattern: the pattern that is attached to it
 * ("-x*.ckpt"). */
static struct act_strv *list_of_option(struct package_rules *rules, const char *option, const char **out_pattern)
{
    *out_pattern = NULL;
    if (act_streq(option, "--exclude"))
        return &rules->excludes;
    if (act_streq(option, "--include"))
        return &rules->includes;
    if (option[1] != 'x' && option[1] != 'i')
        return NULL;
    if (option[2] != '\0')
        *out_pattern = option + 2;
    return option[1] == 'x' ? &rules->excludes : &rules->includes;
}

static int no_pattern(const char *option, struct act_error *err)
{
    return act_error_set(err, ACT_CONFIG, "zip_options: '%s' is not followed by a pattern", option);
}

static int parse_zip_words(struct package_rules *rules, const struct act_strv *words, struct act_error *err)
{
    struct act_strv *list = NULL;
    const char *open = NULL; /* the option that still lacks a pattern */

    for (size_t i = 0; i < words->n; i++) {
        const char *word = words->v[i], *pattern = word;
        if (act_streq(word, "@")) { /* zip's end of a list */
            list = NULL;
            continue;
        }
        if (word[0] == '-') {
            if (open)
                return no_pattern(open, err);
            list = list_of_option(rules, word, &pattern);
            if (!list && !rules_is_harmless(word))
                return act_error_set(err, ACT_CONFIG,
                                     "zip_options: '%s' is not supported; '-x PATTERN' leaves files out, '-i "
                                     "PATTERN' takes only these",
                                     word);
            open = list && !pattern ? word : NULL;
            if (!pattern || !list)
                continue;
        }
        if (!list)
            return act_error_set(err, ACT_CONFIG, "zip_options: '%s' does not follow '-x' or '-i'", word);
        if (pattern[0] == '@')
            return act_error_set(err, ACT_CONFIG, "zip_options: lists in files ('%s') are not supported", word);
        act_strv_take(list, clean_pattern(pattern));
        open = NULL;
    }
    return open ? no_pattern(open, err) : 0;
}

static void split_words(const char *text, struct act_strv *words)
{
    static const char blanks[] = " \t";

    for (const char *p = text + strspn(text, blanks); *p; p += strspn(p, blanks)) {
        size_t len = strcspn(p, blanks);
        act_strv_take(words, act_strndup(p, len));
        p += len;
    }
}

/* "-x *.ckpt" as one word of the list is an option and its patterns, as it was for the shell that once read
 * it. */
static int load_zip_options(struct package_rules *rules, const struct act_strv *options, struct act_error *err)
{
    ACT_AUTO(act_strv) words = {0};

    for (size_t i = 0; options && i < options->n; i++) {
        const char *p = options->v[i];
        if (p[0] != '-' || !strpbrk(p, " \t"))
            act_strv_push(&words, p);
        else
            split_words(p, &words);
    }
    return parse_zip_words(rules, &words, err);
}

int package_check_options(const struct act_strv *options, struct act_error *err)
{
    struct package_rules rules = {0};
    int rc = load_zip_options(&rules, options, err);

    act_strv_release(&rules.excludes);
    act_strv_release(&rules.includes);
    return rc;
}

/* zip matches the whole path, a folder's with a slash after it; '*' stands for slashes too. */
static const char *match_any(const struct act_strv *patterns, const char *name)
{
    for (size_t i = 0; i < patterns->n; i++)
        if (act_glob(patterns->v[i], name, 0))
            return patterns->v[i];
    return NULL;
}

static enum package_verdict ask_zip_options(const struct package_rules *rules, const char *path, bool is_folder,
                                            char **out_rule)
{
    ACT_AUTOFREE char *name = act_sprintf("%s%s", path, is_folder ? "/" : "");
    const char *pattern = match_any(&rules->excludes, name);

    if (pattern) {
        /* A final '*' that matches the folder matches all that is in it. */
        bool all = is_folder && act_ends_with(pattern, "*");
        if (all || !is_folder)
            *out_rule = act_sprintf("zip_options '-x %s'", pattern);
        return all ? PACKAGE_PRUNE : PACKAGE_SKIP;
    }
    if (rules->includes.n == 0 || match_any(&rules->includes, name))
        return PACKAGE_KEEP;
    if (!is_folder)
        *out_rule = act_strdup("zip_options '-i'");
    return PACKAGE_SKIP;
}

/* All together */

static void rules_add_built_in(struct package_rules *rules, const char *root)
{
    bool replaced = rules->excludes.n + rules->includes.n > 0;

    for (size_t i = 0; i < sizeof(built_in) / sizeof(built_in[0]); i++)
        if (!replaced || !built_in[i].is_option)
            rules_add_line(rules, built_in[i].pattern, 0);
    for (size_t i = 0; i < N_MARKS && !replaced; i++)
        filter_pattern_init(&rules->marked[i].pattern, marks[i].pattern);
    if (!replaced)
        rules->root = act_strdup(root);
    rules->n_built_in = rules->n_lines;
}

static char *rules_say_line(const struct rules_line *line)
{
    const char *text = line->pattern.text;

    return line->number ? act_sprintf(IGNORE_FILE ":%d '%s'", line->number, text)
                        : act_sprintf("built-in rule '%s'", text);
}

enum package_verdict package_rules_ask(const struct package_rules *rules, const char *path, bool is_folder,
                                       char **out_rule)
{
    *out_rule = NULL;
    if (act_strv_has(&rules->kept_out, path)) {
        *out_rule = act_sprintf("the configuration's '%s'", path);
        return PACKAGE_PRUNE;
    }
    struct rules_reason by = rules_ask_lines(rules, path, is_folder);
    if (by.line || by.gitignore) {
        *out_rule = by.line ? rules_say_line(by.line) : by.gitignore;
        return PACKAGE_PRUNE;
    }
    return ask_zip_options(rules, path, is_folder, out_rule);
}

int package_rules_enter(struct package_rules *rules, const char *folder, struct act_error *err)
{
    return rules->gitignore ? package_gitignore_enter(rules->gitignore, folder, err) : 0;
}

int package_rules_new(const struct package_options *options, struct package_rules **out, struct act_error *err)
{
    struct package_rules *rules = act_calloc(1, sizeof(*rules));

    for (size_t i = 0; options->kept_out && i < options->kept_out->n; i++)
        act_strv_take(&rules->kept_out, act_path_clean(options->kept_out->v[i]));
    if (options->as_it_is) {
        *out = rules;
        return 0;
    }
    int rc = load_zip_options(rules, options->zip_options, err);
    if (rc == 0)
        rules_add_built_in(rules, options->root);
    if (rc == 0)
        rc = load_ignore_file(rules, options->root, err);
    if (rc == 0 && !options->no_gitignore)
        rc = package_gitignore_new(options->root, &rules->gitignore, err);
    if (rc < 0) {
        package_rules_free(rules);
        rules = NULL;
    }
    *out = rules;
    return rc;
}

void package_rules_free(struct package_rules *rules)
{
    if (!rules)
        return;
    for (size_t i = 0; i < rules->n_lines; i++)
        filter_pattern_release(&rules->lines[i].pattern);
    for (size_t i = 0; i < N_MARKS; i++)
        filter_pattern_release(&rules->marked[i].pattern);
    free(rules->root);
    free(rules->lines);
    package_gitignore_free(rules->gitignore);
    act_strv_release(&rules->kept_out);
    act_strv_release(&rules->excludes);
    act_strv_release(&rules->includes);
    free(rules);
}
