/* Which paths are taken: tables, and git itself over random patterns. */
#define TEST_SETUP    make_dir
#define TEST_TEARDOWN remove_dir
#include "unit/temp_dir.h"
#include "unit/test.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "filter/filter.h"
#include "filter/pattern.h"

/* Not act_file_write(): that waits for the disk, a thousand times here. */
static void filter_test_put(const char *file, const char *data, size_t len)
{
    FILE *f = fopen(file, "we");

    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static char *write_rules(const char *text)
{
    char *file = act_path_join(dir, "rules.txt");

    filter_test_put(file, text, strlen(text));
    return file;
}

struct texts {
    const char *file, *excludes, *includes; /* "": none; patterns are separated by blanks */
};

/* file may be NULL. */
static int filter_with(const char *file, const struct texts *texts, struct filter **out, struct act_error *e)
{
    struct act_strv files = {0}, excludes = words_of(texts->excludes), includes = words_of(texts->includes);
    struct filter_options options = {.files = &files, .excludes = &excludes, .includes = &includes};

    if (file)
        act_strv_push(&files, file);
    int rc = filter_new(&options, out, e);
    act_strv_release(&files);
    act_strv_release(&excludes);
    act_strv_release(&includes);
    return rc;
}

static int try_filter(const struct texts *texts, struct filter **out, struct act_error *e)
{
    ACT_AUTOFREE char *file = *texts->file ? write_rules(texts->file) : NULL;

    return filter_with(file, texts, out, e);
}

static struct filter *new_filter(const struct texts *texts)
{
    struct filter *filter;

    assert_ok(try_filter(texts, &filter, &err), err);
    return filter;
}

static bool filter_test_takes(struct filter *filter, const char *path)
{
    return filter_takes(filter, path, act_ends_with(path, "/"));
}

static char *filter_test_taken(struct filter *filter, const char *paths)
{
    ACT_AUTO(act_strv) words = words_of(paths);
    struct act_buf out = {0};

    for (size_t i = 0; i < words.n; i++)
        if (filter_test_takes(filter, words.v[i]))
            act_buf_addf(&out, "%s%s", out.len ? " " : "", words.v[i]);
    return act_buf_steal(&out);
}

TEST(takes_table)
{
    static const struct {
        struct texts texts;
        const char *paths, *taken;
    } rows[] = {
        {{"", "", ""}, "a a/b c/", "a a/b c/"},
        /* excludes */
        {{"", "*.tmp", ""}, "a.tmp d/b.tmp c", "c"},
        {{"", "/a", ""}, "a a/x d/a d/a/x", "d/a d/a/x"},
        {{"", "a/", ""}, "a a/x d/a d/a/x", "a d/a"},
        {{"", "a/b", ""}, "a/b a/c x/a/b", "a/c x/a/b"},
        {{"", "**/a/b", ""}, "a/b a/c x/a/b", "a/c"},
        {{"", "a/**/z", ""}, "a/z a/b/z a/b/c/z b/z a/z/y", "b/z"},
        {{"", "a/**", ""}, "a a/ a/b a/b/c", "a a/"},
        {{"", "cache", ""}, "cache/ cache/x d/cache/y/z cached", "cached"},
        {{"", "*.d", ""}, "a.d/keep b.d/ c", "c"},
        {{"", "[ab]? *.o", ""}, "ax b1 c1 a x.o", "c1 a"},
        {{"", "?", ""}, "\xc3\xa9 ab", "ab"},
        {{"", "#x", ""}, "#x x", "x"},
        {{"", "a/[b/]", ""}, "a/b a/c a/[b/]", "a/c a/[b/]"},
        {{"", "a\\/b", ""}, "a/b a/c", "a/c"},
        {{"", "*.log !keep.log", ""}, "a.log keep.log d/keep.log", "keep.log d/keep.log"},
        {{"", "d !d/keep", ""}, "d/keep d/x", ""},
        {{"", "d/* !d/keep", ""}, "d/keep d/x", "d/keep"},
        /* includes */
        {{"", "", "*.txt"}, "a.txt b.c d/e.txt d/ x.txt/y", "a.txt d/e.txt x.txt/y"},
        {{"", "", "data/"}, "data data/x data/y/z d/data/z", "data/x data/y/z d/data/z"},
        {{"", "", "/a/b *.c"}, "a/b/x a/c a.c z/q.c b", "a/b/x a.c z/q.c"},
        {{"", "*.tmp", "a"}, "a/x a/x.tmp b/x", "a/x"},
        {{"", "a/old", "a"}, "a/x a/old/x b/x", "a/x"},
        /* files, before the excludes */
        {{"# no logs\n\n*.log\r\n!keep.log  \n\\#c\n", "", ""}, "a.log keep.log #c", "keep.log"},
        {{"a\\ \nb", "", ""}, "a b c", "a c"},
        {{"\xef\xbb\xbf"
          "a",
          "", ""},
         "a b",
         "b"},
        {{"*.log", "!a.log", ""}, "a.log b.log", "a.log"},
        {{"!a.log", "*.log", ""}, "a.log b.log", ""},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct filter *filter = new_filter(&rows[i].texts);
        ACT_AUTOFREE char *result = filter_test_taken(filter, rows[i].paths);
        if (strcmp(result, rows[i].taken) != 0)
            fail_msg("row %zu: of '%s' took '%s'", i, rows[i].paths, result);
        filter_free(filter);
    }
}

TEST(patterns_that_can_match_nothing_are_named)
{
    static const struct {
        struct texts texts;
        enum act_code code;
        const char *text;
    } rows[] = {
        {{"", "a[b", ""}, ACT_USAGE, "--exclude 'a[b' has no ']' for its '['"},
        {{"", "x []a", ""}, ACT_USAGE, "--exclude '[]a' has no ']'"},
        {{"", "[[:alpha:]", ""}, ACT_USAGE, "has no ']'"},
        {{"", "[a/b", ""}, ACT_USAGE, "has no ']'"},
        {{"", "a\\", ""}, ACT_USAGE, "--exclude 'a\\' has a backslash"},
        {{"", "a//b", ""}, ACT_USAGE, "two slashes"},
        {{"", "./a", ""}, ACT_USAGE, "segment '.'"},
        {{"", "a/../b", ""}, ACT_USAGE, "'..'"},
        {{"", "!", ""}, ACT_USAGE, "--exclude '!' is empty"},
        {{"", "/", ""}, ACT_USAGE, "--exclude '/' is empty"},
        {{"", "\xff", ""}, ACT_USAGE, "UTF-8"},
        {{"", "", "!a"}, ACT_USAGE, "--include '!a' begins with '!'"},
        {{"", "", "a["}, ACT_USAGE, "--include 'a[' has no ']'"},
        {{"a\n\nb[\n", "", ""}, ACT_CONFIG, "/rules.txt:3: 'b[' has no ']'"},
        {{"\xff\n", "", ""}, ACT_CONFIG, "rules.txt': it is not UTF-8 text"},
    };
    static const char *const good = "[]] [!]a] [[:alpha:]b] [\\]] a\\[ [a-c]*.[!x] ***/a a**b";

    for (size_t i = 0; i < COUNT(rows); i++) {
        err = (struct act_error){0};
        struct filter *filter;
        if (try_filter(&rows[i].texts, &filter, &err) != -(int)rows[i].code ||
            !strstr(act_error_text(&err), rows[i].text))
            fail_msg("row %zu: %d '%s'", i, err.code, act_error_text(&err));
        assert_null(filter);
    }
    ACT_AUTO(act_strv) words = words_of(good);
    for (size_t i = 0; i < words.n; i++)
        filter_free(new_filter(&(struct texts){"", words.v[i], ""}));
}

TEST(a_missing_file_is_an_error)
{
    ACT_AUTO(act_strv) files = {0};
    struct filter_options options = {.files = &files};
    struct filter *filter;

    act_strv_push(&files, "/nonexistent/rules");
    assert_int_equal(filter_new(&options, &filter, &err), -ACT_NOT_FOUND);
    assert_string_equal(act_error_text(&err), "cannot read '/nonexistent/rules': No such file or directory");
}

TEST(without_patterns_everything_is_taken)
{
    struct filter_options none = {0};
    struct act_strv idle = {0};
    struct filter *filter;

    assert_ok(filter_new(&none, &filter, &err), err);
    assert_null(filter);
    assert_true(filter_takes(NULL, "a", false));
    filter_idle(NULL, &idle);
    assert_int_equal(idle.n, 0);
    filter_free(NULL);
}

TEST(patterns_that_matched_nothing_are_known)
{
    static const struct {
        struct texts texts;
        const char *paths, *idle;
    } rows[] = {
        {{"", "*.a *.b", ""}, "x.a y", "--exclude '*.b'"},
        {{"", "*.a x.a", ""}, "x.a", ""},              /* both match, though the last decides */
        {{"", "a a/b", ""}, "a/b", "--exclude 'a/b'"}, /* a is not looked into */
        {{"", "a/", ""}, "a", "--exclude 'a/'"},
        {{"", "a/", ""}, "a/b/c", ""},
        {{"", "*.a !x.a !y.a", ""}, "x.a z.a", "--exclude '!y.a'"},
        {{"", "", "a a/b c"}, "a/b", "--include 'c'"},
        {{"# nothing\n\nold\nnew\n", "", ""}, "new", "rules.txt:3: 'old'"},
        {{"", "*.a", ""}, "", "--exclude '*.a'"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct filter *filter = new_filter(&rows[i].texts);
        struct act_strv idle = {0};
        free(filter_test_taken(filter, rows[i].paths));
        filter_idle(filter, &idle);
        if (idle.n != (*rows[i].idle ? 1 : 0) || (idle.n && !act_ends_with(idle.v[0], rows[i].idle)))
            fail_msg("row %zu: %zu '%s'", i, idle.n, idle.n ? idle.v[0] : "");
        act_strv_release(&idle);
        filter_free(filter);
    }
}

/* ---- random patterns */

/* A small world, so that random patterns often match: every folder holds these as files and two as folders. */
static const char *const names[] = {"a", "b", "ab", "a.b", ".a", "b[", "a b"};
static const char *const folder_names[] = {"a", "c"};

static void list_world(const char *prefix, int depth, struct act_strv *out)
{
    for (size_t i = 0; i < COUNT(names); i++)
        if (depth == 0 || strcmp(names[i], "a") != 0)
            act_strv_pushf(out, "%s%s", prefix, names[i]);
    for (size_t i = 0; depth > 0 && i < COUNT(folder_names); i++) {
        ACT_AUTOFREE char *folder = act_sprintf("%s%s/", prefix, folder_names[i]);
        act_strv_push(out, folder);
        list_world(folder, depth - 1, out);
    }
}

/* "a**" and the like: its manual says that these asterisks are regular ones, but git compares what is before
 * the first wildcard by itself, and then takes "**" for the beginning of the pattern. */
static bool git_misreads(const char *pattern)
{
    const char *stars = strstr(pattern, "**");

    for (; stars; stars = strstr(stars + strspn(stars, "*"), "**"))
        if (stars > pattern && stars[-1] != '/' && stars[-1] != '!')
            return true;
    return false;
}

static char *random_pattern(unsigned *seed)
{
    static const char *const pieces[] = {"a",  "b",    "ab",   "c",    "*",   "?",     "**",          "/",  "/",  "/",
                                         "**", "[ab]", "[!a]", "[^b]", "\\a", "\\[",   "a*",          "*b", "/*", "/**",
                                         "[",  "]",    "\\",   "***",  ".",   "[a-c]", "[[:alpha:]]", " ",  "\\ "};
    struct act_buf b = {0};
    int n = 1 + rand_r(seed) % 5;

    if (rand_r(seed) % 4 == 0)
        act_buf_addc(&b, '!');
    for (int i = 0; i < n; i++)
        act_buf_adds(&b, pieces[(size_t)rand_r(seed) % COUNT(pieces)]);
    if (rand_r(seed) % 4 == 0)
        act_buf_addc(&b, '/');
    return act_buf_steal(&b);
}

static char *random_rules(unsigned *seed)
{
    struct act_buf b = {0};
    int n = 1 + rand_r(seed) % 6;

    for (int i = 0; i < n; i++) {
        ACT_AUTOFREE char *pattern = random_pattern(seed);
        if (!git_misreads(pattern))
            act_buf_addf(&b, "%s\n", pattern);
    }
    return act_buf_steal(&b);
}

/* The rules without those lines that we refuse: they must match nothing in git either. */
static char *usable_rules(const char *text)
{
    ACT_AUTOFREE char *file = write_rules(text);
    ACT_AUTO(act_strv) lines = {0};
    struct act_buf b = {0};

    assert_ok(filter_read_lines(file, &lines, &err), err);
    for (size_t i = 0; i < lines.n; i++) {
        struct filter_pattern pattern;
        filter_pattern_init(&pattern, lines.v[i]);
        if (!filter_pattern_problem(&pattern))
            act_buf_addf(&b, "%s\n", lines.v[i]);
        filter_pattern_release(&pattern);
    }
    return act_buf_steal(&b);
}

static int in_dir(const char *command)
{
    ACT_AUTOFREE char *line = act_sprintf("cd '%s' && %s", dir, command);
    int status = system(line);

    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

enum { WORLDS = 300 };

/* World number `world`: its rules and its folders. Whether a file is there makes no difference to git. Adds to `asked`
 * the paths as git is asked about them, without the slash of a folder: behind that git sees an empty name. */
static void filter_test_make_world(int world, const char *rules, const struct act_strv *paths, struct act_buf *asked)
{
    ACT_AUTOFREE char *folder = act_sprintf("%s/worlds/%d", dir, world);
    ACT_AUTOFREE char *file = act_path_join(folder, ".gitignore");

    for (size_t i = 0; i < paths->n; i++) {
        ACT_AUTOFREE char *path = act_path_join(folder, paths->v[i]);
        if (act_ends_with(path, "/"))
            assert_ok(act_mkdir_all(path, 0755, &err), err);
        act_buf_addf(asked, "%d/%.*s", world, (int)(strlen(paths->v[i]) - act_ends_with(path, "/")), paths->v[i]);
        act_buf_addc(asked, '\0');
    }
    filter_test_put(file, rules, strlen(rules));
}

/* Asks git about all paths at once: whether its rules ignore it, in the same order. */
static void ask_git(const struct act_buf *asked, bool *ignored)
{
    ACT_AUTOFREE char *question = act_path_join(dir, "question");
    ACT_AUTOFREE char *answer = act_path_join(dir, "answer");
    ACT_AUTOFREE char *text = NULL;
    size_t len, at = 0;

    filter_test_put(question, asked->data, asked->len);
    int status = in_dir("GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 "
                        "git -C worlds check-ignore --no-index -z --stdin <question >answer");
    assert_true(status == 0 || status == 1);
    assert_ok(act_file_read(answer, 8 << 20, &text, &len, &err), err);
    for (const char *path = asked->data; path < asked->data + asked->len; path += strlen(path) + 1) {
        *ignored = at < len && strcmp(text + at, path) == 0;
        at += *ignored++ ? strlen(path) + 1 : 0;
    }
    assert_int_equal(at, len);
}

TEST(agrees_with_git)
{
    ACT_AUTO(act_strv) paths = {0}, rules = {0};
    ACT_AUTO(act_buf) asked = {0};
    unsigned seed = 7;

    if (system("git --version >/dev/null 2>&1") != 0)
        skip();
    assert_int_equal(in_dir("git init -q worlds"), 0);
    list_world("", 3, &paths);
    for (int world = 0; world < WORLDS; world++) {
        act_strv_take(&rules, random_rules(&seed));
        filter_test_make_world(world, rules.v[world], &paths, &asked);
    }
    ACT_AUTOFREE bool *ignored = calloc(WORLDS * paths.n, sizeof *ignored);
    ask_git(&asked, ignored);
    for (size_t world = 0; world < WORLDS; world++) {
        ACT_AUTOFREE char *usable = usable_rules(rules.v[world]);
        struct filter *filter = new_filter(&(struct texts){usable, "", ""});
        for (size_t i = 0; i < paths.n; i++)
            if (filter_test_takes(filter, paths.v[i]) == ignored[world * paths.n + i])
                fail_msg("git and we differ on '%s' by\n%s", paths.v[i], rules.v[world]);
        filter_free(filter);
    }
}

/* The state kept of the last path never changes an answer. */
TEST(order_does_not_matter)
{
    enum { ROUNDS = 200, ASKED = 100 };
    ACT_AUTO(act_strv) paths = {0};
    unsigned seed = 11;

    list_world("", 3, &paths);
    for (int round = 0; round < ROUNDS; round++) {
        ACT_AUTOFREE char *rules = random_rules(&seed);
        ACT_AUTOFREE char *usable = usable_rules(rules);
        ACT_AUTOFREE char *file = write_rules(usable);
        struct texts texts = {.excludes = "", .includes = round % 2 ? "a/a/ c" : ""};
        struct filter *all, *fresh;
        assert_ok(filter_with(file, &texts, &all, &err), err);
        for (int i = 0; i < ASKED; i++) {
            const char *path = paths.v[(size_t)rand_r(&seed) % paths.n];
            assert_ok(filter_with(file, &texts, &fresh, &err), err);
            if (filter_test_takes(all, path) != filter_test_takes(fresh, path))
                fail_msg("round %d: two answers on '%s' by\n%s", round, path, rules);
            filter_free(fresh);
        }
        filter_free(all);
    }
}

TEST_MAIN(NULL, NULL)
