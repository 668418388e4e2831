#include "filter/filter.h"

#include <stdint.h>
#include <string.h>

#include "filter/pattern.h"

struct filter_rule {
    struct filter_pattern pattern;
    char *name; /* its origin and text, for messages */
    uint64_t matches;
};

struct rules {
    struct filter_rule *v;
    size_t n;
};

/* The verdict of the rules on one folder of the last path. */
struct filter_level {
    bool left_out;
    bool included;
};

struct filter {
    struct rules list, includes;
    struct filter_path path;     /* the last one asked about */
    struct filter_level *levels; /* of its folders, from the root */
    size_t n_levels, cap;
};

static int add_rule(struct rules *rules, const char *pattern, char *name, enum act_code code, struct act_error *err)
{
    struct filter_rule rule = {.name = name};

    filter_pattern_init(&rule.pattern, pattern);
    const char *problem = filter_pattern_problem(&rule.pattern);
    ACT_PUSH(rules->v, rules->n, rule);
    return problem ? act_error_set(err, code, "%s %s", name, problem) : 0;
}

static int filter_add_file(struct filter *f, const char *file, struct act_error *err)
{
    ACT_AUTO(act_strv) lines = {0};
    int rc = filter_read_lines(file, &lines, err);

    for (size_t i = 0; rc == 0 && i < lines.n; i++)
        if (*lines.v[i])
            rc = add_rule(&f->list, lines.v[i], act_sprintf("%s:%zu: '%s'", file, i + 1, lines.v[i]), ACT_CONFIG, err);
    return rc;
}

static int add_excludes(struct filter *f, const struct act_strv *patterns, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && patterns && i < patterns->n; i++)
        rc = add_rule(&f->list, patterns->v[i], act_sprintf("--exclude '%s'", patterns->v[i]), ACT_USAGE, err);
    return rc;
}

static int add_includes(struct filter *f, const struct act_strv *patterns, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && patterns && i < patterns->n; i++) {
        const char *text = patterns->v[i];
        if (*text == '!')
            rc = act_error_set(err, ACT_USAGE,
                               "--include '%s' begins with '!'; leave files out with --exclude, or write '\\!' for "
                               "the character itself",
                               text);
        else
            rc = add_rule(&f->includes, text, act_sprintf("--include '%s'", text), ACT_USAGE, err);
    }
    return rc;
}

static int filter_load(struct filter *f, const struct filter_options *options, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && options->files && i < options->files->n; i++)
        rc = filter_add_file(f, options->files->v[i], err);
    if (rc == 0)
        rc = add_excludes(f, options->excludes, err);
    if (rc == 0)
        rc = add_includes(f, options->includes, err);
    return rc;
}

int filter_new(const struct filter_options *options, struct filter **out, struct act_error *err)
{
    struct filter *f = act_calloc(1, sizeof(*f));
    int rc = filter_load(f, options, err);

    if (rc < 0 || f->list.n + f->includes.n == 0) {
        filter_free(f);
        f = NULL;
    }
    *out = f;
    return rc;
}

static void release_rules(struct rules *rules)
{
    for (size_t i = 0; i < rules->n; i++) {
        filter_pattern_release(&rules->v[i].pattern);
        free(rules->v[i].name);
    }
    free(rules->v);
}

void filter_free(struct filter *f)
{
    if (!f)
        return;
    release_rules(&f->list);
    release_rules(&f->includes);
    filter_path_release(&f->path);
    free(f->levels);
    free(f);
}

/* Returns the last rule that matches the path of the first depth segments, or NULL. It tries rules that have matched
 * nothing yet even if they cannot decide, for filter_idle(). */
static const struct filter_rule *filter_last_match(struct rules *rules, const struct filter_path *path, size_t depth,
                                                   bool is_folder)
{
    const struct filter_rule *by = NULL;

    for (size_t i = rules->n; i-- > 0;) {
        struct filter_rule *rule = &rules->v[i];
        if (by && rule->matches > 0)
            continue;
        if (!filter_pattern_matches(&rule->pattern, path, depth, is_folder))
            continue;
        rule->matches++;
        if (!by)
            by = rule;
    }
    return by;
}

/* Returns the verdict on the path of the first depth segments, given that on its parent. */
static struct filter_level judge_path(struct filter *f, struct filter_level parent, size_t depth, bool is_folder)
{
    struct filter_level level = parent;

    if (level.left_out)
        return level;
    const struct filter_rule *by = filter_last_match(&f->list, &f->path, depth, is_folder);
    level.left_out = by && !by->pattern.take_back;
    if (!level.left_out && filter_last_match(&f->includes, &f->path, depth, is_folder))
        level.included = true;
    return level;
}

/* Counts the folders that the path has in common with the last one. */
static size_t known_levels(const struct filter *f, const char *rel)
{
    size_t i;

    for (i = 0; i < f->n_levels; i++) {
        size_t len = strlen(f->path.v[i]);
        if (strncmp(rel, f->path.v[i], len) != 0 || rel[len] != '/')
            break;
        rel += len + 1;
    }
    return i;
}

/* Makes the path the last one, with the state of its folders. */
static void filter_enter(struct filter *f, const char *rel)
{
    f->n_levels = known_levels(f, rel);
    filter_path_set(&f->path, rel);
    if (f->path.n > 1 && f->path.v[f->path.n - 1][0] == '\0')
        f->path.n--; /* of a folder with its slash */
    if (f->n_levels >= f->path.n)
        f->n_levels = f->path.n - 1;
    if (f->path.n > f->cap) {
        f->cap = f->path.n * 2;
        f->levels = act_realloc(f->levels, f->cap * sizeof(*f->levels));
    }
}

static struct filter_level ask_patterns(struct filter *f, const char *rel, bool is_folder)
{
    struct filter_level level = {.included = f->includes.n == 0};
    filter_enter(f, rel);
    if (f->n_levels > 0)
        level = f->levels[f->n_levels - 1];
    for (; f->n_levels + 1 < f->path.n; f->n_levels++)
        level = f->levels[f->n_levels] = judge_path(f, level, f->n_levels + 1, true);
    level = judge_path(f, level, f->path.n, is_folder);
    return level;
}

bool filter_takes(struct filter *f, const char *rel, bool is_folder)
{
    if (!f)
        return true;
    struct filter_level level = ask_patterns(f, rel, is_folder);
    return !level.left_out && level.included;
}

bool filter_enters(struct filter *f, const char *rel)
{
    return !f || !ask_patterns(f, rel, true).left_out;
}

static void push_idle(const struct rules *rules, struct act_strv *out)
{
    for (size_t i = 0; i < rules->n; i++)
        if (rules->v[i].matches == 0)
            act_strv_push(out, rules->v[i].name);
}

void filter_idle(const struct filter *f, struct act_strv *out)
{
    if (!f)
        return;
    push_idle(&f->list, out);
    push_idle(&f->includes, out);
}
