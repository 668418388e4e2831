/* diagnose_test.c - rule files, the scanner, and the rules of the program on samples of real logs. */
#include "unit/test.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "diagnose/diagnose.h"
#include "diagnose/diagnose_internal.h"

#define RULE(id, more) "- {id: " id ", title: t, summary: s, advice: a, retry: no, " more "}\n"
#define FILE_OF        "version: 1\nrules:\n"

static struct diagnose *open_text(const char *text)
{
    struct diagnose *d = NULL;

    assert_ok(diagnose_parse(text, strlen(text), "rules", &d, &err), err);
    return d;
}

/* The codes of what a text holds, separated by blanks. New string. */
static char *codes_of(const struct diagnose *d, enum diagnose_where where, const char *text, size_t len, size_t piece)
{
    struct diagnose_scan *scan = diagnose_scan_new(d, where);
    ACT_AUTO(diagnose_hits) hits = {0};
    struct act_buf codes = {0};

    for (size_t i = 0; i < len; i += piece)
        diagnose_scan_feed(scan, text + i, len - i < piece ? len - i : piece);
    diagnose_scan_end(scan, &hits);
    for (size_t i = 0; i < hits.n; i++)
        act_buf_addf(&codes, "%s%s", i ? " " : "", hits.v[i].rule->id);
    return act_buf_steal(&codes);
}

static void diagnose_test_expect(const struct diagnose *d, enum diagnose_where where, const char *text,
                                 const char *wanted)
{
    static const size_t pieces[] = {1, 7, 1 << 20};

    for (size_t i = 0; i < COUNT(pieces); i++) {
        ACT_AUTOFREE char *found = codes_of(d, where, text, strlen(text), pieces[i]);
        if (strcmp(found, wanted) != 0)
            fail_msg("'%.300s' gives '%s', not '%s'", text, found, wanted);
    }
}

/* ---- words */

static void diagnose_test_add_found(void *arg, size_t word, const char *end)
{
    act_buf_addf(arg, "%zu%c ", word, end[-1]);
}

TEST(words_are_found_wherever_they_end)
{
    static const char *const words[] = {"she", "he", "HERS", "his", "he"};
    struct words *w = words_new(words, COUNT(words));
    struct act_buf found = {0};

    words_find(w, "uSHErs", 6, diagnose_test_add_found, &found);
    assert_string_equal(found.data, "0E 4E 1E 2s ");
    act_buf_release(&found);
    words_find(w, "hi h\xffs", 6, diagnose_test_add_found, &found);
    assert_null(found.data);
    words_free(w);
}

TEST(literals_of_expressions)
{
    static const struct {
        const char *regex, *literal;
    } rows[] = {
        {"abc", "abc"},
        {"^[A-Z]+Error: .*", "Error: "},
        {"ab|cdef", ""},
        {"(abc|def) ghi", " ghi"},
        {"(long group)?xyz", "xyz"},
        {"abcd*", "abc"},
        {"abcd?ef", "abc"},
        {"abcd+ef", "abcd"},
        {"Xid \\(PCI:[^)]*\\): 79,", "Xid (PCI:"},
        {"[[:alpha:]]abc", "abc"},
        {"[]x]abc", "abc"},
        {"a\\bcde", "cde"},
        {".*", ""},
        {"((a)(bcd))e", "e"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *literal = pattern_literal(rows[i].regex);
        assert_string_equal(literal, rows[i].literal);
    }
}

/* ---- lines */

TEST(lines_are_cleaned)
{
    static const struct {
        const char *line, *clean;
    } rows[] = {
        {"plain", "plain"},
        {"\033[31mred\033[0m", "red"},
        {"[1,0]<stderr>:Killed", "Killed"},
        {"[rank3]: ValueError: x", "ValueError: x"},
        {"[1,12]<stdout>:[rank12]:   x", "  x"},
        {"[1,0] other", "[1,0] other"},
        {"[rank]: x", "x"},
        {"a\tb\001c \r", "a b c"},
        {"\033", ""},
        {"\033[", ""},
        {"x\033[1", "x"},
        {"", ""},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char line[64];
        snprintf(line, sizeof(line), "%s", rows[i].line);
        line[diagnose_clean(line, strlen(line))] = '\0';
        assert_string_equal(line, rows[i].clean);
    }
}

TEST(rules_match)
{
    struct diagnose *d = open_text(
        FILE_OF RULE("text", "patterns: ['Disk Full']") RULE("folded", "patterns: ['low MEM'], ignore_case: true")
            RULE("regex", "patterns: [{regex: '^exit [0-9]+ now$'}]")
                RULE("unless", "patterns: ['bad thing'], unless: ['not a bad', {regex: '^[0-9]+ '}]")
                    RULE("slurm", "patterns: ['Disk Full'], where: [slurm]")
                        RULE("last", "patterns: ['Disk', 'odd'], kind: last_resort"));

    diagnose_test_expect(d, DIAGNOSE_OTHER_RANK, "a\nthe Disk Full x\n", "text");
    diagnose_test_expect(d, DIAGNOSE_OTHER_RANK, "the disk full\n", "");
    diagnose_test_expect(d, DIAGNOSE_FAILED_RANK, "LOW mem", "folded");
    diagnose_test_expect(d, DIAGNOSE_PREPARE, "exit 12 now\n", "regex");
    diagnose_test_expect(d, DIAGNOSE_PREPARE, "exit 12 now \rexit x now\n\nexit 1 nowhere\n", "regex");
    diagnose_test_expect(d, DIAGNOSE_PREPARE, "so exit 12 now\n", "");
    diagnose_test_expect(d, DIAGNOSE_PREPARE, "[1,0]<stderr>:exit 12 now\n", "regex");
    diagnose_test_expect(d, DIAGNOSE_PREPARE, "a bad thing\n", "unless");
    diagnose_test_expect(d, DIAGNOSE_PREPARE, "not a bad thing\n3 bad thing\n", "");
    diagnose_test_expect(d, DIAGNOSE_SLURM, "Disk Full\n", "slurm");
    diagnose_test_expect(d, DIAGNOSE_AGENT, "Disk Full\n", "");
    diagnose_test_expect(d, DIAGNOSE_OTHER_RANK, "an odd thing\n", "last");
    diagnose_test_expect(d, DIAGNOSE_OTHER_RANK, "Disk Full\nDisk half full\n", "text last");
    diagnose_free(d);
}

TEST(rules_count_and_look_back)
{
    struct diagnose *d = open_text(FILE_OF RULE("often", "patterns: [busy 100], unless: [busy 1000], times: 3") RULE(
        "after", "patterns: [crash], after: barrier") RULE("alone", "patterns: [crash], not_after: barrier"));
    ACT_AUTO(act_buf) text = {0};

    diagnose_test_expect(d, DIAGNOSE_OTHER_RANK, "busy 100\nbusy 100\n", "");
    diagnose_test_expect(d, DIAGNOSE_OTHER_RANK, "busy 100\nx\nbusy 100\nbusy 100\n", "often");
    diagnose_test_expect(d, DIAGNOSE_OTHER_RANK, "busy 100\nbusy 100\nbusy 1000\nbusy 100\n", "");
    diagnose_test_expect(d, DIAGNOSE_OTHER_RANK, "crash\n", "alone");
    diagnose_test_expect(d, DIAGNOSE_OTHER_RANK, "barrier\ncrash\n", "after");
    diagnose_test_expect(d, DIAGNOSE_OTHER_RANK, "crash in barrier\n", "alone");
    act_buf_adds(&text, "barrier\n");
    for (int i = 0; i < 100; i++)
        act_buf_adds(&text, "line\n");
    act_buf_adds(&text, "crash\n");
    diagnose_test_expect(d, DIAGNOSE_OTHER_RANK, text.data, "alone");
    diagnose_test_expect(d, DIAGNOSE_OTHER_RANK, text.data + strlen("barrier\n"), "alone");
    text.data[8] = 'L'; /* still 100 lines between them */
    text.data[12] = ' ';
    diagnose_test_expect(d, DIAGNOSE_OTHER_RANK, text.data, "after");
    diagnose_free(d);
}

/* What the last match was, and bytes of any kind. */
TEST(hits_are_the_last_line)
{
    struct diagnose *d = open_text(FILE_OF RULE("odd", "patterns: [odd, {regex: 'a.*b.*c.*end'}]"));
    struct diagnose_scan *scan = diagnose_scan_new(d, DIAGNOSE_OTHER_RANK);
    static const char text[] = "odd one\n\033[1modd\001two\033[m\nlast\0 \xff\n";
    struct diagnose_hits hits;

    diagnose_scan_feed(scan, text, sizeof(text) - 1);
    diagnose_scan_end(scan, &hits);
    assert_int_equal(hits.n, 1);
    assert_int_equal(hits.lines, 3);
    assert_int_equal(hits.v[0].line_no, 2);
    assert_string_equal(hits.v[0].line, "odd two");
    diagnose_hits_release(&hits);

    /* a line without an end, ten times as long as a piece, made to keep an expression busy */
    ACT_AUTO(act_buf) big = {0};
    for (int i = 0; i < 10 * DIAGNOSE_LINE; i++)
        act_buf_addc(&big, "abc"[i % 3]);
    act_buf_adds(&big, "odd");
    scan = diagnose_scan_new(d, DIAGNOSE_OTHER_RANK);
    diagnose_scan_feed(scan, big.data, big.len);
    diagnose_scan_end(scan, &hits);
    assert_int_equal(hits.lines, 11);
    assert_int_equal(hits.n, 1);
    diagnose_hits_release(&hits);
    diagnose_free(d);
}

/* ---- rule files */

TEST(bad_rules_say_where)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "a rule file must say 'version: 1'"},
        {"version: 2\nrules: []\n", "rules:1:1: a rule file must say 'version: 1'"},
        {"version: 1\n", "'rules' must be a list"},
        {"version: 1\nrules: 3\n", "rules:2:1: 'rules' must be a list"},
        {"version: 1\nrules: [3]\n", "rules:2:9: a rule must be a map"},
        {FILE_OF "- {id: x}\n", "rules:3:3: a rule without 'title'"},
        {FILE_OF RULE("Bad", "patterns: [abc]"), "an id is made of a-z, 0-9 and _"},
        {FILE_OF RULE("x", "patterns: [abc]") RULE("x", "patterns: [abc]"), "rules:4:4: a second rule 'x'"},
        {FILE_OF RULE("x", "code: c"), "a rule without 'patterns'"},
        {FILE_OF RULE("x", "patterns: abc"), "'patterns' must be a list"},
        {FILE_OF RULE("x", "patterns: []"), "'patterns' must be a list"},
        {FILE_OF RULE("x", "patterns: [ab]"), "a pattern must have 3 to"},
        {FILE_OF RULE("x", "patterns: [{regexp: abc}]"), "a pattern must be a text or {regex: ...}"},
        {FILE_OF RULE("x", "patterns: [{regex: 'abc('}]"), "not a regular expression: "},
        {FILE_OF RULE("x", "patterns: [{regex: '[a-z]+x*'}]"), "at least 3 characters in a row"},
        {FILE_OF RULE("x", "patterns: [{regex: 'abc(.*)\\1'}]"), "back-references and '{' are not taken"},
        {FILE_OF RULE("x", "patterns: [{regex: 'abcd{999}'}]"), "back-references and '{' are not taken"},
        {FILE_OF RULE("x", "patterns: [abc], pattern: [abc]"),
         "'pattern' is not a key of a rule; is 'patterns' meant?"},
        {FILE_OF RULE("x", "patterns: [abc], where: [moon]"), "'where' takes rank, "},
        {FILE_OF RULE("x", "patterns: [abc], kind: odd"), "'kind' must be one of: cause, effect, last_resort"},
        {FILE_OF RULE("x", "patterns: [abc], times: 0"), "'times' must be a number from 1"},
        {FILE_OF RULE("x", "patterns: [abc], ignore_case: 7"), "'ignore_case' must be true or false"},
        {FILE_OF "- {id: x, title: t, summary: s, advice: a, patterns: [abc]}\n", "a rule without 'retry'"},
        {FILE_OF "- {id: x, title: \"a\\nb\", summary: s, advice: a, patterns: [abc]}\n", "'title' must be one line"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct diagnose *d = NULL;
        err = (struct act_error){0};
        assert_int_equal(diagnose_parse(rows[i].text, strlen(rows[i].text), "rules", &d, &err), -ACT_CONFIG);
        if (!strstr(act_error_text(&err), rows[i].message))
            fail_msg("row %zu: '%s' does not say '%s'", i, act_error_text(&err), rows[i].message);
        assert_true(act_starts_with(act_error_text(&err), "rules:"));
    }
}

TEST(own_rules_come_first_and_replace)
{
    static const char text[] =
        FILE_OF RULE("mine", "patterns: [strange device]") RULE("no_space", "patterns: ['No space'], code: Mine");
    char path[] = "/tmp/act-rules-XXXXXX";
    struct diagnose *d = NULL;
    int fd = mkstemp(path), same = 0;

    assert_int_equal(act_write_all(fd, text, sizeof(text) - 1), 0);
    close(fd);
    assert_ok(diagnose_open(path, &d, &err), err);
    unlink(path);
    assert_string_equal(diagnose_rule(d, 0)->id, "mine");
    assert_string_equal(diagnose_rule(d, 1)->code, "Mine");
    for (size_t i = 0; i < diagnose_count(d); i++)
        same += strcmp(diagnose_rule(d, i)->id, "no_space") == 0;
    assert_int_equal(same, 1);
    diagnose_test_expect(d, DIAGNOSE_OTHER_RANK, "No space left on device\n", "no_space");
    diagnose_free(d);
    assert_ok(diagnose_open("/nowhere/diagnosis.yaml", &d, &err), err);
    diagnose_free(d);
}

/* ---- the rules of the program */

static struct diagnose *open_builtin(void)
{
    struct diagnose *d = NULL;

    assert_ok(diagnose_open(NULL, &d, &err), err);
    return d;
}

static enum diagnose_where place_named(const char *name)
{
    static const struct {
        const char *name;
        enum diagnose_where where;
    } rows[] = {{"rank", DIAGNOSE_FAILED_RANK}, {"prepare", DIAGNOSE_PREPARE}, {"mpirun", DIAGNOSE_MPIRUN},
                {"slurm", DIAGNOSE_SLURM},      {"agent", DIAGNOSE_AGENT},     {"metrics", DIAGNOSE_METRICS}};

    for (size_t i = 0; i < COUNT(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].where;
    fail_msg("'%s' is no place", name);
    return DIAGNOSE_AGENT;
}

/* What is seen of the rules in the samples. */
struct seen {
    const struct diagnose *d;
    struct act_strv rules;
    bool *won; /* each pattern: its rule was the explanation of a text in which it matches */
};

/* The rule that explains a text of this place, as 'a why' judges it; NULL: none. */
static const struct diagnose_rule *winner(const struct diagnose *d, enum diagnose_where where, const char *text,
                                          size_t len)
{
    ACT_AUTO(diagnose_verdict) v = {.rules = d, .quality = DIAGNOSE_NOTHING, .rank = -1};

    if (where == DIAGNOSE_FAILED_RANK)
        diagnose_judge_failed_rank(&v, text, len, NULL, 0);
    else
        diagnose_judge_text(&v, where, text, len, NULL);
    return v.rule;
}

static void note_patterns(struct seen *seen, const struct diagnose_rule *rule, const char *text)
{
    ACT_AUTOFREE char *copy = act_strdup(text);
    char *rest = copy;

    for (char *line; (line = strsep(&rest, "\n"));) {
        size_t len = diagnose_clean(line, strlen(line));
        for (size_t i = 0; i < seen->d->n_patterns; i++) {
            const struct pattern *p = &seen->d->patterns[i];
            seen->won[i] |= p->role == PATTERN_MATCH && p->rule == rule->order && pattern_matches(p, line, len);
        }
    }
}

/* The text is explained by this rule. */
static void expect_winner(struct seen *seen, enum diagnose_where where, const char *text, const char *id)
{
    const struct diagnose_rule *rule = winner(seen->d, where, text, strlen(text));

    if (!rule || strcmp(rule->id, id) != 0)
        fail_msg("'%.300s' is explained by '%s', not '%s'", text, rule ? rule->id : "-", id);
    note_patterns(seen, rule, text);
}

/* A fixture is samples, each begun by a line "== <place> <rule ids>": what the sample must give, all of it and in this
 * order; "-" is nothing. A line ".. N" repeats the sample's text before it N times. Each line below "== each <place>
 * <rule id>" is a sample by itself, which that rule must explain best. */
static void diagnose_test_check_whole(struct seen *seen, enum diagnose_where where, const char *text, char *ids)
{
    const struct diagnose_rule *rule = winner(seen->d, where, text, strlen(text));

    diagnose_test_expect(seen->d, where, text, strcmp(ids, "-") == 0 ? "" : ids);
    for (char *word; (word = strsep(&ids, " "));)
        act_strv_push(&seen->rules, word);
    if (rule)
        note_patterns(seen, rule, text);
}

static void check_each(struct seen *seen, enum diagnose_where where, char *text, const char *id)
{
    for (char *line; (line = strsep(&text, "\n"));)
        if (*line)
            expect_winner(seen, where, line, id);
    act_strv_push(&seen->rules, id);
}

static void check_sample(struct seen *seen, char *head, struct act_buf *text)
{
    char *first = strsep(&head, " ");
    bool each = strcmp(first, "each") == 0;
    enum diagnose_where where = place_named(each ? strsep(&head, " ") : first);

    if (!text->data)
        act_buf_adds(text, "");
    if (each)
        check_each(seen, where, text->data, head);
    else
        diagnose_test_check_whole(seen, where, text->data, head);
}

static void take_fixture(struct seen *seen, char *content)
{
    struct act_buf text = {0};
    char *head = NULL;

    for (char *line; (line = strsep(&content, "\n"));) {
        bool is_head = act_starts_with(line, "== ");
        if (is_head && head)
            check_sample(seen, head, &text);
        if (is_head) {
            act_buf_release(&text);
            head = line + 3;
        } else if (act_starts_with(line, ".. ")) {
            ACT_AUTOFREE char *once = act_strdup(text.data);
            for (int i = atoi(line + 3); i > 1; i--)
                act_buf_adds(&text, once);
        } else {
            act_buf_addf(&text, "%s\n", line);
        }
    }
    if (head)
        check_sample(seen, head, &text);
    act_buf_release(&text);
}

/* No rule stands behind another one wherever it matches: there is a text for each of its patterns that it wins. */
static void check_all_win(const struct seen *seen)
{
    const struct diagnose *d = seen->d;
    int missing = 0;

    for (size_t i = 0; i < diagnose_count(d); i++)
        if (!act_strv_has(&seen->rules, diagnose_rule(d, i)->id) && ++missing)
            print_error("no sample for the rule '%s'\n", diagnose_rule(d, i)->id);
    for (size_t i = 0; i < d->n_patterns; i++)
        if (d->patterns[i].role == PATTERN_MATCH && !seen->won[i] && ++missing)
            print_error("no sample that is explained by '%s' because of '%s'\n",
                        diagnose_rule(d, d->patterns[i].rule)->id, d->patterns[i].text);
    assert_int_equal(missing, 0);
}

TEST(samples_of_logs)
{
    static const char dir[] = TEST_DATA "/fixtures/diagnosis";
    struct diagnose *d = open_builtin();
    struct seen seen = {.d = d, .won = act_calloc(d->n_patterns, sizeof(*seen.won))};
    DIR *folder = opendir(dir);

    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder));) {
        err = (struct act_error){0};
        char *content;
        size_t len;
        if (e->d_name[0] == '.')
            continue;
        ACT_AUTOFREE char *path = act_path_join(dir, e->d_name);
        assert_ok(act_file_read(path, 1 << 20, &content, &len, &err), err);
        take_fixture(&seen, content);
        free(content);
    }
    closedir(folder);
    check_all_win(&seen);
    act_strv_release(&seen.rules);
    free(seen.won);
    diagnose_free(d);
}

/* The last exception is what ended the program; where no rule knows it, the one before it explains more. */
TEST(the_last_of_chained_exceptions_counts)
{
#define HEAD   "Traceback (most recent call last):\n  File \"loop.py\", line 8, in f\n    g()\n"
#define DURING "\nDuring handling of the above exception, another exception occurred:\n\n"
#define CAUSE  "\nThe above exception was the direct cause of the following exception:\n\n"
#define MODULE HEAD "ModuleNotFoundError: No module named 'einops'\n"
#define FILE_  HEAD "FileNotFoundError: [Errno 2] No such file or directory: 'a'\n"
#define OTHER  HEAD "Unusable: a\n"
#define KEY    HEAD "KeyError: 'a'\n"
    static const struct {
        const char *text, *id;
    } rows[] = {
        {MODULE FILE_, "module_missing"},
        {MODULE DURING FILE_, "file_not_found"},
        {FILE_ CAUSE MODULE, "module_missing"},
        {MODULE CAUSE FILE_ DURING FILE_, "file_not_found"},
        {MODULE CAUSE OTHER, "module_missing"},
        {OTHER DURING OTHER, "python_exception"},
        {KEY, "key_missing"},
        {KEY DURING OTHER, "python_exception"},
        {KEY DURING FILE_, "file_not_found"},
        {MODULE DURING KEY, "module_missing"},
        {MODULE "the job goes on\n" OTHER DURING FILE_, "module_missing"},
        {"During handling of the above exception, another exception occurred:\n" MODULE, "module_missing"},
    };
    struct diagnose *d = open_builtin();

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct diagnose_rule *rule = winner(d, DIAGNOSE_FAILED_RANK, rows[i].text, strlen(rows[i].text));
        if (!rule || strcmp(rule->id, rows[i].id) != 0)
            fail_msg("row %zu is explained by '%s', not '%s'", i, rule ? rule->id : "-", rows[i].id);
    }
    diagnose_free(d);
}

/* The codes that 'a parse' of the original prints. */
TEST(codes_of_the_original_are_there)
{
    static const char *const codes[] = {"CodeNotAvail",
                                        "IBError",
                                        "InputSmall",
                                        "Init",
                                        "FileNotFound",
                                        "before",
                                        "waiting",
                                        "init",
                                        "NaN",
                                        "RegNaN",
                                        "ORTE_comm",
                                        "OOM",
                                        "DeprecatedNoIterInSampler",
                                        "ModuleErr",
                                        "copy_if",
                                        "connect",
                                        "cuda",
                                        "ECC",
                                        "init_access",
                                        "illegal_access",
                                        "BlobThrottle",
                                        "daemon",
                                        "mask compile",
                                        "blobIO",
                                        "TooMany",
                                        "NoSpace",
                                        "Loader",
                                        "NCCLTimeout",
                                        "Hang",
                                        "NCCLSocket",
                                        "IBVModifyQP",
                                        "ScaleNaN",
                                        "HuggingFaceConnect",
                                        "DSNaN"};
    struct diagnose *d = open_builtin();

    for (size_t i = 0; i < COUNT(codes); i++) {
        bool found = false;
        for (size_t k = 0; k < diagnose_count(d); k++)
            found |= strcmp(diagnose_rule(d, k)->code, codes[i]) == 0;
        if (!found)
            fail_msg("no rule with the code '%s'", codes[i]);
    }
    diagnose_free(d);
}

TEST(places_of_logs)
{
    assert_int_equal(diagnose_where_of("user_logs/std_log_process_3.txt", 3), DIAGNOSE_FAILED_RANK);
    assert_int_equal(diagnose_where_of("user_logs/std_log_process_3.txt", -1), DIAGNOSE_OTHER_RANK);
    assert_int_equal(diagnose_where_of("system_logs/prepare_n1.txt", 0), DIAGNOSE_PREPARE);
    assert_int_equal(diagnose_where_of("system_logs/mpirun.txt", 0), DIAGNOSE_MPIRUN);
    assert_int_equal(diagnose_where_of("system_logs/srun.txt", 0), DIAGNOSE_MPIRUN);
    assert_int_equal(diagnose_where_of("system_logs/slurm.txt", 0), DIAGNOSE_SLURM);
    assert_int_equal(diagnose_where_of("metrics/n1.jsonl", 0), 0);
    assert_int_equal(diagnose_where_of("user_logs/std_log.txt", 0), DIAGNOSE_FAILED_RANK);
    assert_int_equal(diagnose_where_of("user_logs/std_log_process_03.txt", 3), DIAGNOSE_FAILED_RANK);
    assert_int_equal(diagnose_where_of("azureml-logs/70_driver_log_1.txt", 0), DIAGNOSE_OTHER_RANK);
    assert_int_equal(diagnose_where_of("azureml-logs/65_job_prep-x_d.txt", 0), DIAGNOSE_PREPARE);
    assert_int_equal(diagnose_where_of("user_logs/mpi_log.txt", 0), DIAGNOSE_MPIRUN);
}

/* The log of the ninth node says what failed. */
static int diagnose_test_read_log(void *arg, const char *log, struct act_buf *out, struct act_error *read_err)
{
    (void)arg;
    (void)read_err;
    act_buf_adds(out, strstr(log, "_n9.") ? "ERROR: No matching distribution found for torch==99\n" : "all is well\n");
    return 0;
}

static int diagnose_test_read_rank(void *arg, int rank, struct act_buf *out, const char **out_log,
                                   struct act_error *read_err)
{
    (void)arg;
    (void)rank;
    (void)out;
    (void)read_err;
    *out_log = NULL;
    return 0;
}

/* Each node has two of them, and not all are read. */
TEST(the_logs_of_many_preparations_do_not_hide_that_of_the_node_that_failed)
{
    struct diagnose *rules = NULL;
    struct act_error e;
    ACT_AUTO(act_strv) logs = {0};
    const struct act_buf said = {0};
    const struct diagnose_attempt attempt = {.reason = "the preparation failed",
                                             .rank = -1,
                                             .ranks = 9,
                                             .node = "n9",
                                             .said = &said,
                                             .logs = &logs,
                                             .read_log = diagnose_test_read_log,
                                             .read_rank = diagnose_test_read_rank};

    for (int n = 1; n <= 9; n++) {
        act_strv_pushf(&logs, "system_logs/prepare_n%d.out", n);
        act_strv_pushf(&logs, "system_logs/prepare_n%d.txt", n);
    }
    assert_ok(diagnose_open(NULL, &rules, &e), e);
    ACT_AUTO(diagnose_verdict)
    verdict = {.rules = rules, .exit_status = 1, .quality = DIAGNOSE_NOTHING, .rank = -1};
    assert_ok(diagnose_judge_attempt(&verdict, &attempt, &e), e);
    assert_non_null(verdict.rule);
    assert_string_equal(verdict.rule->id, "pip");
    diagnose_free(rules);
}

TEST_MAIN(NULL, NULL)
