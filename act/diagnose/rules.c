/* rules.c - reads and checks rule files. */
#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "codec/yaml.h"
#include "diagnose/diagnose_internal.h"

enum { RULES_MAX = 1000, PATTERNS_MAX = 5000, TEXT_MAX = 400, LITERAL_MIN = 3 };

static const char *const retries[] = {"no", "yes", "other_node", "after_change", NULL};
static const char *const kinds[] = {"cause", "effect", "last_resort", NULL};

/* The words of "where". */
static const struct {
    const char *name;
    unsigned bits;
} places[] = {
    {"rank", DIAGNOSE_FAILED_RANK | DIAGNOSE_OTHER_RANK},
    {"failed_rank", DIAGNOSE_FAILED_RANK},
    {"prepare", DIAGNOSE_PREPARE},
    {"mpirun", DIAGNOSE_MPIRUN},
    {"slurm", DIAGNOSE_SLURM},
    {"agent", DIAGNOSE_AGENT},
    {"metrics", DIAGNOSE_METRICS},
};

const char *diagnose_retry_name(enum diagnose_retry retry)
{
    return retries[retry];
}

/* ---- patterns */

/* Forgets the last byte: a "*", "?" or "{" after it says that it need not be there. */
static void drop_last(struct act_buf *run)
{
    if (run->len > 0)
        run->data[--run->len] = '\0';
}

static void keep_longer(struct act_buf *best, struct act_buf *run)
{
    if (run->len > best->len) {
        act_buf_release(best);
        *best = *run;
        *run = (struct act_buf){0};
    }
    act_buf_release(run);
}

/* Returns the end of a bracket expression that begins at s. */
static const char *rules_skip_bracket(const char *s)
{
    s += s[1] == '^' ? 2 : 1;
    if (*s == ']')
        s++;
    for (; *s && *s != ']'; s++) {
        const char *class_end = s[0] == '[' && s[1] == ':' ? strstr(s, ":]") : NULL;
        if (class_end)
            s = class_end + 1;
    }
    return *s ? s : s - 1;
}

char *pattern_literal(const char *regex)
{
    struct act_buf best = {0}, run = {0};
    int depth = 0;

    for (const char *s = regex; *s; s++) {
        bool escaped = *s == '\\' && s[1] && !isalnum((unsigned char)s[1]);
        if (escaped)
            s++;
        if (depth == 0 && (escaped || !strchr("\\.^$*+?{()[|", *s))) {
            act_buf_addc(&run, *s);
            continue;
        }
        if (escaped)
            continue;
        if (*s == '|' && depth == 0) {
            act_buf_release(&run);
            act_buf_release(&best);
            return act_strdup("");
        }
        if (*s == '*' || *s == '?')
            drop_last(&run);
        depth += (*s == '(') - (*s == ')');
        keep_longer(&best, &run);
        if (*s == '[')
            s = rules_skip_bracket(s);
        else if (*s == '\\' && s[1])
            s++;
    }
    keep_longer(&best, &run);
    return act_buf_steal(&best);
}

/* Refuses back-references and counts, which can take any time and memory. */
static bool is_plain_regex(const char *regex)
{
    for (const char *s = regex; *s; s++) {
        if (*s == '{' || (*s == '\\' && isdigit((unsigned char)s[1])))
            return false;
        if (*s == '\\' && s[1])
            s++;
    }
    return true;
}

static void rules_to_lower(char *text)
{
    for (; *text; text++)
        *text = (char)tolower((unsigned char)*text);
}

static int rules_compile(const struct yaml *at, const char *text, struct pattern *p, struct act_error *err)
{
    char why[200];

    if (!is_plain_regex(text))
        return yaml_error(at, err, "back-references and '{' are not taken in a regex");
    int rc = regcomp(&p->regex, text, REG_EXTENDED | REG_NOSUB | (p->ignore_case ? REG_ICASE : 0));
    if (rc != 0) {
        regerror(rc, &p->regex, why, sizeof(why));
        return yaml_error(at, err, "not a regular expression: %s", why);
    }
    p->is_regex = true;
    p->text = pattern_literal(text);
    if (p->role == PATTERN_MATCH && strlen(p->text) < LITERAL_MIN)
        return yaml_error(at, err, "the regex needs at least %d characters in a row that always match as they are",
                          LITERAL_MIN);
    return 0;
}

bool pattern_matches(const struct pattern *p, const char *line, size_t len)
{
    regmatch_t all = {.rm_so = 0, .rm_eo = (regoff_t)len};

    if (p->is_regex)
        return regexec(&p->regex, line, 1, &all, REG_STARTEND) == 0;
    if (!p->ignore_case)
        return memmem(line, len, p->text, strlen(p->text)) != NULL;
    ACT_AUTOFREE char *folded = act_strndup(line, len);
    rules_to_lower(folded);
    return strstr(folded, p->text) != NULL;
}

/* ---- reading */

struct rules_reader {
    struct diagnose *d;
    size_t n_own; /* rules of the user's file, which replace */
    struct act_error *err;
};

static int one_of(const struct yaml *value, const char *const *words, int *out, struct act_error *err)
{
    *out = 0;
    if (!value)
        return 0;
    for (int i = 0; words[i]; i++)
        if (value->kind == YAML_SCALAR && strcmp(value->text, words[i]) == 0) {
            *out = i;
            return 0;
        }
    ACT_AUTO(act_buf) list = {0};
    for (int i = 0; words[i]; i++)
        act_buf_addf(&list, "%s%s", i ? ", " : "", words[i]);
    return yaml_error(value, err, "'%s' must be one of: %s", value->key, list.data);
}

/* Takes a line of text; fallback NULL: the key must be there. */
static int rules_take_text(const struct yaml *rule, const char *key, const char *fallback, char **out,
                           struct act_error *err)
{
    const struct yaml *value = yaml_get(rule, key);

    if (!value && fallback) {
        *out = act_strdup(fallback);
        return 0;
    }
    if (!value)
        return yaml_error(rule, err, "a rule without '%s'", key);
    if (value->kind != YAML_SCALAR || !*value->text || strlen(value->text) > TEXT_MAX || strpbrk(value->text, "\n\r\t"))
        return yaml_error(value, err, "'%s' must be one line of at most %d characters", key, TEXT_MAX);
    *out = act_strdup(value->text);
    return 0;
}

static struct pattern *new_pattern(struct rules_reader *r, enum pattern_role role, bool ignore_case)
{
    struct diagnose *d = r->d;

    ACT_GROW(d->patterns, d->n_patterns);
    struct pattern *p = &d->patterns[d->n_patterns++];
    *p = (struct pattern){.role = role, .rule = d->n_rules - 1, .ignore_case = ignore_case};
    return p;
}

static int take_pattern(struct rules_reader *r, const struct yaml *value, enum pattern_role role, bool ignore_case)
{
    const struct yaml *regex = value->kind == YAML_MAP && value->n == 1 ? yaml_get(value, "regex") : NULL;
    const struct yaml *text = regex ? regex : value;

    if (text->kind != YAML_SCALAR)
        return yaml_error(value, r->err, "a pattern must be a text or {regex: ...}");
    if (strlen(text->text) < LITERAL_MIN || strlen(text->text) > TEXT_MAX)
        return yaml_error(value, r->err, "a pattern must have %d to %d characters", LITERAL_MIN, TEXT_MAX);
    if (r->d->n_patterns == PATTERNS_MAX)
        return yaml_error(value, r->err, "more than %d patterns", PATTERNS_MAX);
    struct pattern *p = new_pattern(r, role, ignore_case);
    if (regex)
        return rules_compile(value, text->text, p, r->err);
    p->text = act_strdup(text->text);
    if (ignore_case)
        rules_to_lower(p->text);
    return 0;
}

static int take_patterns(struct rules_reader *r, const struct yaml *rule, const char *key, enum pattern_role role,
                         bool ignore_case)
{
    const struct yaml *list = yaml_get(rule, key);
    int rc = 0;

    if (!list)
        return 0;
    if (list->kind != YAML_LIST || list->n == 0)
        return yaml_error(list, r->err, "'%s' must be a list", key);
    for (size_t i = 0; i < list->n && rc == 0; i++)
        rc = take_pattern(r, list->items[i], role, ignore_case);
    return rc;
}

static int take_where(const struct yaml *rule, unsigned *out, struct act_error *err)
{
    const struct yaml *list = yaml_get(rule, "where");

    *out = list ? 0 : DIAGNOSE_FAILED_RANK | DIAGNOSE_OTHER_RANK | DIAGNOSE_PREPARE;
    if (!list)
        return 0;
    if (list->kind != YAML_LIST || list->n == 0)
        return yaml_error(list, err, "'where' must be a list");
    for (size_t i = 0; i < list->n; i++) {
        unsigned bits = 0;
        for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++)
            if (list->items[i]->kind == YAML_SCALAR && strcmp(list->items[i]->text, places[k].name) == 0)
                bits = places[k].bits;
        if (!bits)
            return yaml_error(list->items[i], err,
                              "'where' takes rank, failed_rank, prepare, mpirun, slurm, agent, metrics");
        *out |= bits;
    }
    return 0;
}

static int take_context(struct rules_reader *r, const struct yaml *rule, const char *key, enum pattern_role role,
                        bool *out_has)
{
    const struct yaml *value = yaml_get(rule, key);

    *out_has = value != NULL;
    return value ? take_pattern(r, value, role, false) : 0;
}

static int rules_check_keys(const struct yaml *rule, struct act_error *err)
{
    static const char *const keys[] = {"id",        "code",   "title",       "patterns", "unless",    "after",
                                       "not_after", "times",  "ignore_case", "where",    "kind",      "retry",
                                       "summary",   "advice", "compare",     "bad_node", "traceback", NULL};

    for (size_t i = 0; i < rule->n; i++) {
        const char *key = rule->items[i]->key;
        size_t k = 0;
        while (keys[k] && strcmp(keys[k], key) != 0)
            k++;
        const char *near = keys[k] ? NULL : act_nearest(key, keys);
        if (!keys[k])
            return yaml_error(rule->items[i], err, "'%s' is not a key of a rule%s%s%s", key, near ? "; is '" : "",
                              near ? near : "", near ? "' meant?" : "");
    }
    return 0;
}

static int rules_check_id(const struct rules_reader *r, const struct yaml *rule, const char *id)
{
    const struct diagnose *d = r->d;

    if (strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(id))
        return yaml_error(yaml_get(rule, "id"), r->err, "an id is made of a-z, 0-9 and _");
    for (size_t i = r->n_own; i + 1 < d->n_rules; i++)
        if (strcmp(d->rules[i].shown.id, id) == 0)
            return yaml_error(yaml_get(rule, "id"), r->err, "a second rule '%s'", id);
    return 0;
}

/* Takes a switch; a missing key leaves the value unchanged. */
static int take_switch(const struct yaml *rule, const char *key, bool *out, struct act_error *err)
{
    const struct yaml *value = yaml_get(rule, key);

    return value && !yaml_as_bool(value, out) ? yaml_error(value, err, "'%s' must be true or false", key) : 0;
}

static int take_numbers(const struct yaml *rule, struct rule *out, bool *ignore_case, struct act_error *err)
{
    const struct yaml *times = yaml_get(rule, "times");
    int64_t n = 1;

    *ignore_case = false;
    if (times && (!yaml_as_int(times, &n) || n < 1))
        return yaml_error(times, err, "'times' must be a number from 1");
    out->times = (uint64_t)n;
    int rc = take_switch(rule, "ignore_case", ignore_case, err);
    if (rc == 0)
        rc = take_switch(rule, "compare", &out->shown.compare, err);
    if (rc == 0)
        rc = take_switch(rule, "traceback", &out->traceback, err);
    return rc < 0 ? rc : take_switch(rule, "bad_node", &out->shown.bad_node, err);
}

static int rules_take_words(const struct yaml *rule, struct diagnose_rule *out, struct act_error *err)
{
    int kind = 0, retry = 0, rc = rules_take_text(rule, "id", NULL, &out->id, err);

    if (rc == 0)
        rc = rules_take_text(rule, "code", out->id, &out->code, err);
    if (rc == 0)
        rc = rules_take_text(rule, "title", NULL, &out->title, err);
    if (rc == 0)
        rc = rules_take_text(rule, "summary", NULL, &out->summary, err);
    if (rc == 0)
        rc = rules_take_text(rule, "advice", NULL, &out->advice, err);
    if (rc == 0 && !yaml_get(rule, "retry"))
        rc = yaml_error(rule, err, "a rule without 'retry'");
    if (rc == 0)
        rc = one_of(yaml_get(rule, "retry"), retries, &retry, err);
    if (rc == 0)
        rc = one_of(yaml_get(rule, "kind"), kinds, &kind, err);
    if (rc == 0)
        rc = take_where(rule, &out->where, err);
    out->kind = (enum diagnose_kind)kind;
    out->retry = (enum diagnose_retry)retry;
    return rc;
}

static bool is_replaced(const struct rules_reader *r, const struct yaml *rule)
{
    const struct yaml *id = yaml_get(rule, "id");

    for (size_t i = 0; i < r->n_own; i++)
        if (id && id->kind == YAML_SCALAR && strcmp(r->d->rules[i].shown.id, id->text) == 0)
            return true;
    return false;
}

static int rules_take_one(struct rules_reader *r, const struct yaml *rule)
{
    struct diagnose *d = r->d;
    bool ignore_case;

    if (rule->kind != YAML_MAP)
        return yaml_error(rule, r->err, "a rule must be a map");
    if (is_replaced(r, rule))
        return 0;
    if (d->n_rules == RULES_MAX)
        return yaml_error(rule, r->err, "more than %d rules", RULES_MAX);
    ACT_GROW(d->rules, d->n_rules);
    struct rule *new = &d->rules[d->n_rules];
    *new = (struct rule){.shown = {.order = d->n_rules}};
    d->n_rules++;
    int rc = rules_check_keys(rule, r->err);
    if (rc == 0)
        rc = rules_take_words(rule, &new->shown, r->err);
    if (rc == 0)
        rc = rules_check_id(r, rule, new->shown.id);
    if (rc == 0)
        rc = take_numbers(rule, new, &ignore_case, r->err);
    if (rc == 0 && !yaml_get(rule, "patterns"))
        rc = yaml_error(rule, r->err, "a rule without 'patterns'");
    if (rc == 0)
        rc = take_patterns(r, rule, "patterns", PATTERN_MATCH, ignore_case);
    if (rc == 0)
        rc = take_patterns(r, rule, "unless", PATTERN_UNLESS, ignore_case);
    if (rc == 0)
        rc = take_context(r, rule, "after", PATTERN_AFTER, &new->has_after);
    if (rc == 0)
        rc = take_context(r, rule, "not_after", PATTERN_NOT_AFTER, &new->has_not_after);
    if (rc == 0 && new->traceback)
        new_pattern(r, PATTERN_TRACEBACK, false)->text = act_strdup(TRACEBACK_HEAD);
    return rc;
}

static int rules_take_file(struct rules_reader *r, const struct yaml *tree)
{
    const struct yaml *rules = yaml_get(tree, "rules"), *version = yaml_get(tree, "version");
    int64_t number;
    int rc = 0;

    if (tree->kind != YAML_MAP)
        return yaml_error(tree, r->err, "a rule file must be a map with 'version' and 'rules'");
    if (!version || !yaml_as_int(version, &number) || number != 1)
        return yaml_error(version ? version : tree, r->err, "a rule file must say 'version: 1'");
    if (!rules || rules->kind != YAML_LIST)
        return yaml_error(rules ? rules : tree, r->err, "'rules' must be a list");
    for (size_t i = 0; i < rules->n && rc == 0; i++)
        rc = rules_take_one(r, rules->items[i]);
    return rc;
}

/* ---- opening */

static void index_words(struct diagnose *d)
{
    const char **words = act_calloc(d->n_patterns + 1, sizeof(*words));

    for (size_t i = 0; i < d->n_patterns; i++) /* an empty word is never found */
        words[i] = d->patterns[i].role == PATTERN_UNLESS ? "" : d->patterns[i].text;
    d->words = words_new(words, d->n_patterns);
    free(words);
}

static int read_own(struct rules_reader *r, const char *path)
{
    struct yaml *tree;

    if (!path || access(path, F_OK) < 0)
        return 0;
    int rc = yaml_read(path, path, &tree, r->err);
    if (rc < 0)
        return rc;
    rc = rules_take_file(r, tree);
    yaml_tree_free(tree);
    r->n_own = r->d->n_rules;
    return rc;
}

static int rules_read_text(struct rules_reader *r, const char *text, size_t len, const char *name)
{
    struct yaml *tree;
    int rc = yaml_parse(text, len, name, &tree, r->err);

    if (rc < 0)
        return rc;
    rc = rules_take_file(r, tree);
    yaml_tree_free(tree);
    return rc;
}

static int finish_rules(struct diagnose *d, int rc, struct diagnose **out)
{
    if (rc < 0) {
        diagnose_free(d);
        return rc;
    }
    index_words(d);
    *out = d;
    return 0;
}

/* Adds the program's rules; rc: the result of reading the user's own. */
static int add_builtin(struct rules_reader *r, int rc, struct diagnose **out)
{
    if (rc == 0)
        rc = rules_read_text(r, diagnose_builtin, (size_t)(diagnose_builtin_end - diagnose_builtin),
                             "diagnosis.yaml of the program");
    return finish_rules(r->d, rc, out);
}

int diagnose_open(const char *own_file, struct diagnose **out, struct act_error *err)
{
    struct rules_reader r = {.d = act_calloc(1, sizeof(*r.d)), .err = err};

    return add_builtin(&r, read_own(&r, own_file), out);
}

int diagnose_open_text(const char *own, struct diagnose **out, struct act_error *err)
{
    struct rules_reader r = {.d = act_calloc(1, sizeof(*r.d)), .err = err};
    int rc = own ? rules_read_text(&r, own, strlen(own), "diagnosis.yaml of the project") : 0;

    r.n_own = r.d->n_rules;
    return add_builtin(&r, rc, out);
}

int diagnose_parse(const char *text, size_t len, const char *name, struct diagnose **out, struct act_error *err)
{
    struct rules_reader r = {.d = act_calloc(1, sizeof(*r.d)), .err = err};

    return finish_rules(r.d, rules_read_text(&r, text, len, name), out);
}

void diagnose_free(struct diagnose *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->n_rules; i++) {
        struct diagnose_rule *rule = &d->rules[i].shown;
        free(rule->id);
        free(rule->code);
        free(rule->title);
        free(rule->summary);
        free(rule->advice);
    }
    for (size_t i = 0; i < d->n_patterns; i++) {
        if (d->patterns[i].is_regex)
            regfree(&d->patterns[i].regex);
        free(d->patterns[i].text);
    }
    words_free(d->words);
    free(d->rules);
    free(d->patterns);
    free(d);
}

size_t diagnose_count(const struct diagnose *d)
{
    return d->n_rules;
}

const struct diagnose_rule *diagnose_rule(const struct diagnose *d, size_t i)
{
    return &d->rules[i].shown;
}

const struct diagnose_rule *diagnose_find(const struct diagnose *d, const char *id)
{
    for (size_t i = 0; i < d->n_rules; i++)
        if (strcmp(d->rules[i].shown.id, id) == 0)
            return &d->rules[i].shown;
    return NULL;
}
