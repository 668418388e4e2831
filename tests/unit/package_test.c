/* Packages: which files go in, the archive as unzip and Python read it, the same bytes for the same tree. */
#define TEST_SETUP    package_test_make_dir
#define TEST_TEARDOWN package_test_remove_dir
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/temp.h"
#include "base/text.h"
#include "engine/engine.h"
#include "package/package_internal.h"

enum { NOBODY = 65534 };

static char *dir;     /* removed after each test */
static char *project; /* dir/project */
static char *out_dir; /* dir/out */
static char *zip;     /* dir/code.zip: the package that was packed last */
static struct engine *engine;

/* ---- the project */

static void package_test_sh(const char *fmt, ...) ACT_PRINTF(1, 2);

/* Runs a shell command, which must succeed. */
static void package_test_sh(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    ACT_AUTOFREE char *command = act_vsprintf(fmt, ap);
    va_end(ap);
    assert_int_equal(system(command), 0);
}

static int package_test_make_dir(void **state)
{
    const char *tmp = getenv("TMPDIR");

    (void)state;
    umask(022);
    dir = act_sprintf("%s/act-package-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return -1;
    project = act_path_join(dir, "project");
    out_dir = act_path_join(dir, "out");
    zip = act_path_join(dir, "code.zip");
    engine = engine_new(NULL);
    return chmod(dir, 0755) < 0 || mkdir(project, 0755) < 0 ? -1 : 0;
}

static int package_test_remove_dir(void **state)
{
    (void)state;
    package_test_sh("chmod -R u+rwX '%s' && rm -rf '%s'", dir, dir);
    engine_free(engine);
    free(zip);
    free(out_dir);
    free(project);
    free(dir);
    return 0;
}

static void start_again(void)
{
    assert_int_equal(package_test_remove_dir(NULL), 0);
    assert_int_equal(package_test_make_dir(NULL), 0);
}

static char *in_project(const char *name)
{
    return act_path_join(project, name);
}

/* "a/b/" is a folder, "a -> b" a link, anything else a file that holds its name. */
static void package_test_make(const char *what)
{
    const char *arrow = strstr(what, " -> ");
    ACT_AUTOFREE char *name = arrow ? act_strndup(what, (size_t)(arrow - what)) : act_strdup(what);
    ACT_AUTOFREE char *path = in_project(name);
    ACT_AUTOFREE char *parent = act_path_dirname(path);

    assert_ok(act_mkdir_all(act_ends_with(name, "/") ? path : parent, 0755, &err), err);
    if (arrow)
        assert_int_equal(symlink(arrow + 4, path), 0);
    else if (!act_ends_with(name, "/"))
        assert_ok(act_file_write(path, name, strlen(name), 0644, &err), err);
}

static void package_test_write_text(const char *name, const char *text)
{
    ACT_AUTOFREE char *path = in_project(name);

    assert_ok(act_file_write(path, text, strlen(text), 0644, &err), err);
}

static void make_all(const char *names)
{
    ACT_AUTO(act_strv) words = words_of(names);

    for (size_t i = 0; i < words.n; i++)
        package_test_make(words.v[i]);
}

static struct package_options plain(void)
{
    return (struct package_options){.root = project};
}

static struct package_list package_test_scan(void)
{
    struct package_options options = plain();
    struct package_list list;

    assert_ok(package_scan(&options, &list, &err), err);
    return list;
}

/* Into out_dir, without an index; takes_grown: with the first bytes of what grows. */
static int write_list(const struct package_list *list, bool takes_grown, struct package_summary *out)
{
    const struct package_options options = {.root = project, .takes_grown = takes_grown};

    return package_write(&options, list, &(struct package_output){.engine = engine, .folder = out_dir}, out, &err);
}

static int package_test_write_list(const struct package_list *list, struct package_summary *out)
{
    return write_list(list, false, out);
}

static struct package_summary package_test_pack(void)
{
    ACT_AUTO(package_list) list = package_test_scan();
    struct package_summary summary;

    assert_ok(package_test_write_list(&list, &summary), err);
    package_test_sh("ln -f '%s/%s.zip' '%s'", out_dir, summary.sha256, zip);
    free(summary.blocks);
    summary.blocks = NULL;
    return summary;
}

/* Both without the ignore file itself, which is a top-level dot file. */
static char *package_test_kept(const struct package_list *list)
{
    struct act_buf b = {0};

    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i].path, ".actignore") != 0)
            act_buf_addf(&b, "%s%s", b.len ? " " : "", list->v[i].path);
    return act_buf_steal(&b);
}

static char *left_out(const struct package_list *list)
{
    struct act_buf b = {0};

    for (size_t i = 0; i < list->n_left_out; i++)
        if (!act_streq(list->left_out[i].path, ".actignore") && !act_streq(list->left_out[i].path, ".gitignore"))
            act_buf_addf(&b, "%s%s: %s", b.len ? "; " : "", list->left_out[i].path, list->left_out[i].rule);
    return act_buf_steal(&b);
}

/* Has both readers of zip files check it, with an extra check in Python, where "z" is the archive. */
static void assert_good_zip(const char *python)
{
    package_test_sh("unzip -tqq '%s'", zip);
    package_test_sh("python3 -c 'import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\n"
                    "assert z.testzip() is None\n%s' '%s'",
                    python, zip);
}

static void assert_nothing_written(void)
{
    package_test_sh("test -z \"$(ls -A '%s/out' 2>/dev/null)\"", dir);
}

/* ---- rules */

#define PART ".act-part-0123456789abcdef-0123456789abcdef0123456789abcdef"
#define Q16  "????????????????"

TEST(rules_table)
{
    static const struct {
        const char *tree, *zip_options, *ignore, *kept, *left_out;
    } rows[] = {
        {"a b/c d/", "", "", "a b/ b/c d/", ""},
        /* zip_options: the whole path, '*' matches '/' too */
        {"src/CMC/q src/CMC.txt", "-x src/CMC/*", "", "src/ src/CMC.txt", "src/CMC/: zip_options '-x src/CMC/*'"},
        {"a/src/CMC/q", "-x \\*src/CMC/\\*", "", "a/ a/src/", "a/src/CMC/: zip_options '-x *src/CMC/*'"},
        {"a.x b/c.x b/d.c", "-x *.x", "", "b/ b/d.c", "a.x: zip_options '-x *.x'; b/c.x: zip_options '-x *.x'"},
        {"a/b/f", "-x a/b", "", "a/ a/b/ a/b/f", ""},
        {"a/b/f", "-x a/b/", "", "a/ a/b/f", ""},
        {"a/b", "-x a/b", "", "a/", "a/b: zip_options '-x a/b'"},
        {"a b", "-x ./a", "", "b", "a: zip_options '-x a'"},
        {"a b", "-x /a", "", "b", "a: zip_options '-x a'"},
        {"a b c", "-x a b -q", "", "c", "a: zip_options '-x a'; b: zip_options '-x b'"},
        {"a b c", "-x a -x b", "", "c", "a: zip_options '-x a'; b: zip_options '-x b'"},
        {"a b c", "-xa --exclude b @ -q", "", "c", "a: zip_options '-x a'; b: zip_options '-x b'"},
        {"a b", "-x \"a\"", "", "b", "a: zip_options '-x a'"},
        {"a b", "-x 'a'", "", "b", "a: zip_options '-x a'"},
        {"a1 a2 ab", "-x a[0-9]", "", "ab", "a1: zip_options '-x a[0-9]'; a2: zip_options '-x a[0-9]'"},
        {"a1 ab", "-x a[!0-9]", "", "a1", "ab: zip_options '-x a[!0-9]'"},
        {"a1 abc", "-x a?", "", "abc", "a1: zip_options '-x a?'"},
        {"\xc3\xa9 ab", "-x ?", "", "ab", "\xc3\xa9: zip_options '-x ?'"},
        {"a A", "-x a", "", "A", "a: zip_options '-x a'"},
        {"a.py b.c d/e.py", "-i *.py", "", "a.py d/e.py", "b.c: zip_options '-i'"},
        {"a.py b.py", "-i *.py -x b*", "", "a.py", "b.py: zip_options '-x b*'"},
        /* patterns replace what the original left out by options of its own; secrets and ACT's own files stay out */
        {"a.pyc b.so wandb/x", "-i *", "", "a.pyc b.so wandb/ wandb/x", ""},
        {"a.so b/build/lib.x/y visualization/z c", "-x c", "",
         "a.so b/ b/build/ b/build/lib.x/ b/build/lib.x/y visualization/ visualization/z", "c: zip_options '-x c'"},
        {"a.so b", "-q", "", "b", "a.so: built-in rule '*.so'"},
        {"b/.git/config c/.hg/hgrc d/.svn/x", "-x c.x", "", "b/ c/ d/",
         "b/.git/: built-in rule '.git'; c/.hg/: built-in rule '.hg'; d/.svn/: built-in rule '.svn'"},
        {".env aux_data/configs/a assets/l d/" PART " d/.act-new-1 b", "-x c", "", "aux_data/ b d/",
         ".env: built-in rule '/.*'; assets/: built-in rule '/assets/'; aux_data/configs/: built-in rule "
         "'/aux_data/configs/'; d/.act-new-1: built-in rule '.act-new-*'; d/" PART ": built-in rule '.act-part-" Q16
         "-" Q16 Q16 "'"},
        {"a", "-qr -y -9 -u -v -ryq1 --quiet", "", "a", ""},
        /* .actignore */
        {"a b/a c", "", "a", "b/ c", "a: .actignore:1 'a'; b/a: .actignore:1 'a'"},
        {"a b/a", "", "/a", "b/ b/a", "a: .actignore:1 '/a'"},
        {"a/f b/a", "", "a/", "b/ b/a", "a/: .actignore:1 'a/'"},
        {"b/c/d c/d", "", "c/d", "b/ b/c/ b/c/d c/", "c/d: .actignore:1 'c/d'"},
        {"b/c/d c/d", "", "**/c/d", "b/ b/c/ c/", "b/c/d: .actignore:1 '**/c/d'; c/d: .actignore:1 '**/c/d'"},
        {"b/c/d b/d b/x/y/d", "", "b/**/d", "b/ b/c/ b/x/ b/x/y/",
         "b/c/d: .actignore:1 'b/**/d'; b/d: .actignore:1 'b/**/d'; b/x/y/d: .actignore:1 'b/**/d'"},
        {"b/c/d b/e", "", "b/**", "b/", "b/c/: .actignore:1 'b/**'; b/e: .actignore:1 'b/**'"},
        {"b/c/d b/c.d", "", "b/*d", "b/ b/c/ b/c/d", "b/c.d: .actignore:1 'b/*d'"},
        {"a.t b.t", "", "*.t\n!b.t", "b.t", "a.t: .actignore:1 '*.t'"},
        {"a.t b.t", "", "!b.t\n*.t", "", "a.t: .actignore:2 '*.t'; b.t: .actignore:2 '*.t'"},
        {"d/a d/b", "", "d/\n!d/a", "", "d/: .actignore:1 'd/'"},
        {"d/a d/b", "", "d/*\n!d/a", "d/ d/a", "d/b: .actignore:1 'd/*'"},
        {"a #b", "", "# a\n\n\\#b", "a", "#b: .actignore:3 '\\#b'"},
        {"!a b", "", "\\!a", "b", "!a: .actignore:1 '\\!a'"},
        {"a* ab", "", "a\\*", "ab", "a*: .actignore:1 'a\\*'"},
        {"a b", "",
         "\xef\xbb\xbf"
         "a  \r\nb\r",
         "", "a: .actignore:1 'a'; b: .actignore:2 'b'"},
        {"a/b", "", "/\n!\n//\na//b\n//a\na//", "a/ a/b", ""},
        {"x.c x.py d/y.py d/z.c .git/config", "", "*\n!*/\n!*.py", "d/ d/y.py x.py",
         ".git/: built-in rule '.git'; d/z.c: .actignore:1 '*'; x.c: .actignore:1 '*'"},
        /* the built-in list */
        {".git/x d/.git d/.hg/y .svn/x", "", "", "d/",
         ".git/: built-in rule '.git'; .svn/: built-in rule '.svn'; d/.git: built-in rule '.git'; d/.hg/: "
         "built-in rule '.hg'"},
        {"a.py a.pyc d/b.pyo d/__pycache__/x", "", "", "a.py d/",
         "a.pyc: built-in rule '*.py[co]'; d/__pycache__/: built-in rule '__pycache__/'; d/b.pyo: built-in "
         "rule "
         "'*.py[co]'"},
        {"build/lib.linux/x e/build/temp.1/y build/libs", "", "", "build/ build/libs e/ e/build/",
         "build/lib.linux/: built-in rule '**/build/lib.*/'; e/build/temp.1/: built-in rule "
         "'**/build/temp.*/'"},
        {"assets/x d/assets/x", "", "", "d/ d/assets/ d/assets/x", "assets/: built-in rule '/assets/'"},
        {"d/.act-part-7", "", "", "d/ d/.act-part-7", ""},
        {"d/" PART, "", "", "d/", "d/" PART ": built-in rule '.act-part-" Q16 "-" Q16 Q16 "'"},
        {"d/" PART ".map", "", "", "d/", "d/" PART ".map: built-in rule '.act-part-" Q16 "-" Q16 Q16 ".map'"},
        {".env .a/b c/.env", "", "", "c/ c/.env", ".a/: built-in rule '/.*'; .env: built-in rule '/.*'"},
        {".env .git/x", "", "!.env", ".env", ".git/: built-in rule '.git'"},
        {".env .git/x", "", "!.*", ".env", ".git/: built-in rule '.git'"},
        {".env", "", "!*", "", ".env: built-in rule '/.*'"},
        {".git/x", "", "!.git/", ".git/ .git/x", ""},
        {"a.pyc", "", "!*.py[co]", "a.pyc", ""},
        {"a.pyc", "", "!*", "", "a.pyc: built-in rule '*.py[co]'"},
        {"a.pyc b.pyc", "", "!a.pyc\n*.pyc", "", "a.pyc: .actignore:2 '*.pyc'; b.pyc: built-in rule '*.py[co]'"},
        {"aux_data/configs/acct.yaml aux_data/aml/c.yaml", "", "", "aux_data/ aux_data/aml/ aux_data/aml/c.yaml",
         "aux_data/configs/: built-in rule '/aux_data/configs/'"},
        {"aux_data/configs/acct.yaml", "", "*\n!*/\n!*.yaml\n!aux_data/**", "aux_data/",
         "aux_data/configs/: built-in rule '/aux_data/configs/'"},
        {"aux_data/configs/acct.yaml", "", "!aux_data/configs/",
         "aux_data/ aux_data/configs/ aux_data/configs/acct.yaml", ""},
        {"venv/x d/venv/x d/.venv/y lib.so d/a.o node_modules/x d/wandb/x tmp_run/x d/tmp_run/x", "", "",
         "d/ d/tmp_run/ d/tmp_run/x",
         "d/.venv/: built-in rule '.venv/'; d/a.o: built-in rule '*.o'; d/venv/: built-in rule 'venv/'; "
         "d/wandb/: built-in rule 'wandb/'; lib.so: built-in rule '*.so'; node_modules/: built-in rule "
         "'node_modules/'; tmp_run/: built-in rule '/tmp_run/'; venv/: built-in rule 'venv/'"},
        {"env39/pyvenv.cfg env39/bin/python env39/lib/x d/conda/conda-meta/history env/x.py mlruns/0/m "
         "lightning_logs/v/m",
         "", "", "d/ env/ env/x.py",
         "d/conda/: built-in rule '*/conda-meta'; env39/: built-in rule '*/pyvenv.cfg'; lightning_logs/: built-in rule "
         "'lightning_logs/'; mlruns/: built-in rule 'mlruns/'"},
        {"outputs/a/b/.hydra/c outputs/a/b/w outputs/train.json d/run/.hydra/c", "", "",
         "d/ outputs/ outputs/a/ outputs/train.json",
         "d/run/: built-in rule '*/.hydra'; outputs/a/b/: built-in rule '*/.hydra'"},
        {"outputs/a/w multirun/x.py", "", "", "multirun/ multirun/x.py outputs/ outputs/a/ outputs/a/w", ""},
        {"env/pyvenv.cfg env/bin/python mlruns/m", "", "!env/\n!mlruns/",
         "env/ env/bin/ env/bin/python env/pyvenv.cfg mlruns/ mlruns/m", ""},
        {"env/pyvenv.cfg env/bin/python", "-x nothing", "", "env/ env/bin/ env/bin/python env/pyvenv.cfg", ""},
        {"tmpl/pyvenv.cfg tmpl/readme pkg/conda-meta/x", "", "",
         "pkg/ pkg/conda-meta/ pkg/conda-meta/x tmpl/ tmpl/pyvenv.cfg tmpl/readme", ""},
        {"lib.so b.so", "", "!lib.so", "lib.so", "b.so: built-in rule '*.so'"},
        /* what the configuration keeps out, whatever they are, only at the top */
        {"data/x d/data/x", "", "!data", "d/ d/data/ d/data/x", "data/: the configuration's 'data'"},
        {"output", "", "", "", "output: the configuration's 'output'"},
    };
    ACT_AUTO(act_strv) kept_out = words_of("data output/");

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct package_list list;
        err = (struct act_error){0};
        struct act_strv options = words_of(rows[i].zip_options);

        start_again();
        make_all(rows[i].tree);
        if (*rows[i].ignore)
            package_test_write_text(".actignore", rows[i].ignore);
        struct package_options with = {.root = project, .zip_options = &options, .kept_out = &kept_out};
        assert_ok(package_scan(&with, &list, &err), err);
        ACT_AUTOFREE char *in = package_test_kept(&list);
        ACT_AUTOFREE char *out = left_out(&list);
        if (strcmp(in, rows[i].kept) != 0 || strcmp(out, rows[i].left_out) != 0)
            fail_msg("row %zu (%s | %s | %s): kept '%s', left out '%s'", i, rows[i].tree, rows[i].zip_options,
                     rows[i].ignore, in, out);
        package_list_release(&list);
        act_strv_release(&options);
    }
}

/* Files of ignore lines, in folders of the tree, come first to last. */
TEST(gitignore_table)
{
    static const struct {
        const char *tree, *root, *sub, *actignore, *kept, *left_out;
    } rows[] = {
        {"a.pt d/a.pt", "*.pt", NULL, NULL, "d/", "a.pt: .gitignore:1 '*.pt'; d/a.pt: .gitignore:1 '*.pt'"},
        {"a.pt d/a.pt d/e/a.pt", "*.pt", "!a.pt", NULL, "d/ d/.gitignore d/a.pt d/e/ d/e/a.pt",
         "a.pt: .gitignore:1 '*.pt'"},
        {"a d/a d/e/a", NULL, "/a", NULL, "a d/ d/.gitignore d/e/ d/e/a", "d/a: d/.gitignore:1 '/a'"},
        {"x d/x de/x", NULL, "x", NULL, "d/ d/.gitignore de/ de/x x", "d/x: d/.gitignore:1 'x'"},
        {"a.pt b.pt", "*.pt", NULL, "!a.pt", "a.pt", "b.pt: .gitignore:1 '*.pt'"},
        {"a.pt b.pt", "*.pt\n!a.pt", NULL, "a.pt", "", "a.pt: .actignore:1 'a.pt'; b.pt: .gitignore:1 '*.pt'"},
        /* only .actignore takes back what the built-in list leaves out */
        {"l.so", "!l.so", NULL, NULL, "", "l.so: built-in rule '*.so'"},
        {"aux_data/configs/a", "!aux_data/configs/", NULL, NULL, "aux_data/",
         "aux_data/configs/: built-in rule '/aux_data/configs/'"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct package_list list;
        err = (struct act_error){0};

        start_again();
        make_all(rows[i].tree);
        if (rows[i].root)
            package_test_write_text(".gitignore", rows[i].root);
        if (rows[i].sub)
            package_test_write_text("d/.gitignore", rows[i].sub);
        if (rows[i].actignore)
            package_test_write_text(".actignore", rows[i].actignore);
        for (int off = 0; off < 2; off++) {
            struct package_options with = {.root = project, .no_gitignore = off};
            assert_ok(package_scan(&with, &list, &err), err);
            ACT_AUTOFREE char *in = package_test_kept(&list);
            ACT_AUTOFREE char *out = left_out(&list);
            if (off ? strstr(out, ".gitignore:") != NULL
                    : strcmp(in, rows[i].kept) != 0 || strcmp(out, rows[i].left_out) != 0)
                fail_msg("row %zu: kept '%s', left out '%s'", i, in, out);
            package_list_release(&list);
        }
    }
}

/* The last value of core.excludesFile. */
static void keep_excludes(void *arg, const char *name, const char *value)
{
    char **out = arg;

    if (strcmp(name, "core.excludesfile") != 0)
        return;
    free(*out);
    *out = act_strdup(value);
}

TEST(gitconfig_table)
{
    static const struct {
        const char *text, *excludes;
    } rows[] = {
        {"[core]\nexcludesFile = a\n", "a"},
        {"[CORE]excludesfile=a", "a"},
        {"\xef\xbb\xbf[core]\r\n\texcludesFile = a b \t\r\n", "a b"},
        {"[core]\nexcludesFile = a # b\n", "a"},
        {"[core]\nexcludesFile = a;b\n", "a"},
        {"[core]\nexcludesFile = \"a # b \" \n", "a # b "},
        {"[core]\nexcludesFile = a\"b\"c\n", "abc"},
        {"[core]\nexcludesFile = a\\\\b\\\"c\n", "a\\b\"c"},
        {"[core]\nexcludesFile = a\\\nb\n", "ab"},
        {"[core]\nexcludesFile = a\nexcludesFile = b\n", "b"},
        {"[core]\nexcludesFile =\n", ""},
        {"[core]\nexcludesFile\nother = x\n", NULL},
        {"[core \"x\"]\nexcludesFile = a\n", NULL},
        {"[other]\nexcludesFile = a\n", NULL},
        {"# [core]\n; [core]\nexcludesFile = a\n", NULL},
        {"excludesFile = a\n", NULL},
        /* what is malformed ends it */
        {"[core]\nexcludesFile = a\n[core\nexcludesFile = b\n", "a"},
        {"[core]\nexcludesFile = a\nexcludesFile = \"b\n", "a"},
        {"[core]\nexcludesFile = a\nexcludesFile = \\q\n", "a"},
        {"[core]\nexcludesFile = a\n?\nexcludesFile = b\n", "a"},
        {"[core]\nexcludesFile = a\\", NULL},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *got = NULL;
        package_gitconfig_parse(rows[i].text, keep_excludes, &got);
        if (!act_streq(got, rows[i].excludes))
            fail_msg("row %zu: %s", i, got ? got : "none");
    }
}

/* git itself gives up. */
TEST(gitconfig_that_includes_itself_often_ends)
{
    ACT_AUTOFREE char *path = act_path_join(project, ".git/config");
    ACT_AUTO(act_buf) text = {0};

    act_buf_adds(&text, "[core]\nexcludesFile = a\n[include]\n");
    for (int i = 0; i < 100; i++)
        act_buf_adds(&text, "path = config\n");
    assert_ok(act_file_write(path, text.data, text.len, 0644, &err), err);
    ACT_AUTOFREE char *git_dir = act_path_dirname(path);
    ACT_AUTOFREE char *excludes = package_git_excludes(git_dir, "/top");
    assert_string_equal(excludes, "/top/a");
}

TEST(ignore_files_that_are_fifos_are_not_waited_for)
{
    struct package_options with = {.root = project};
    ACT_AUTOFREE char *path = act_path_join(project, ".actignore");
    struct package_list list;

    package_test_make("a");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_fails(package_scan(&with, &list, &err), err, ACT_FAIL, ".actignore': it is not a regular file");
}

/* Files that others put into a folder above the project, such as /tmp, do not count. */
TEST(only_own_gitignore_files_above_count)
{
    static const char *const foreign[] = {NULL, "up/.git", "up/.gitignore"};

    if (geteuid() != 0)
        skip();
    for (size_t i = 0; i < COUNT(foreign); i++) {
        start_again();
        ACT_AUTOFREE char *root = act_path_join(project, "up/project");
        ACT_AUTOFREE char *path = foreign[i] ? act_path_join(project, foreign[i]) : NULL;
        struct package_options with = {.root = root};
        struct package_list list;
        err = (struct act_error){0};

        make_all("up/.git/config up/project/a");
        package_test_write_text("up/.gitignore", "a");
        if (path)
            assert_int_equal(lchown(path, 65534, 65534), 0);
        assert_ok(package_scan(&with, &list, &err), err);
        ACT_AUTOFREE char *in = package_test_kept(&list);
        assert_string_equal(in, foreign[i] ? "a" : "");
        package_list_release(&list);
    }
}

TEST(one_word_may_hold_option_and_patterns)
{
    ACT_AUTO(act_strv) options = {0};
    struct package_options with = {.root = project, .zip_options = &options};
    ACT_AUTO(package_list) list = {0};

    make_all("a b c d");
    package_test_make("e f");
    act_strv_push(&options, "-x a  b");
    act_strv_push(&options, "e f");
    act_strv_push(&options, "d");
    assert_ok(package_scan(&with, &list, &err), err);
    ACT_AUTOFREE char *in = package_test_kept(&list);
    assert_string_equal(in, "c");
}

TEST(zip_options_that_cannot_be_used_are_named)
{
    static const struct {
        const char *options, *named;
    } rows[] = {
        {"-j", "'-j'"},
        {"-x a -P secret", "'-P'"},
        {"a", "'a'"},
        {"-x", "'-x'"},
        {"-x -q", "'-x'"},
        {"-i", "'-i'"},
        {"-q foo", "'foo'"},
        {"-x a -q foo", "'foo'"},
        {"-x @list", "'@list'"},
        {"--encrypt", "'--encrypt'"},
        {"-", "'-'"},
        {"-x a @ b", "'b'"},
        {"-qj", "'-qj'"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct act_strv options = words_of(rows[i].options);
        struct package_options with = {.root = project, .zip_options = &options};
        struct package_list list;
        err = (struct act_error){0};

        assert_fails(package_scan(&with, &list, &err), err, ACT_CONFIG, "zip_options");
        if (!strstr(act_error_text(&err), rows[i].named))
            fail_msg("row %zu: %s", i, act_error_text(&err));
        assert_int_equal(list.n, 0);
        act_strv_release(&options);
    }
}

TEST(a_broken_ignore_file_is_an_error)
{
    struct package_options options = plain();
    struct package_list list;
    ACT_AUTOFREE char *path = in_project(".actignore");

    assert_ok(act_file_write(path, "a\0b", 3, 0644, &err), err);
    assert_fails(package_scan(&options, &list, &err), err, ACT_CONFIG, ".actignore");
    assert_ok(act_file_write(path, "\xff", 1, 0644, &err), err);
    assert_int_equal(package_scan(&options, &list, &err), -ACT_CONFIG);
    assert_int_equal(unlink(path), 0);
    package_test_make(".actignore/");
    assert_fails(package_scan(&options, &list, &err), err, ACT_FAIL, ".actignore");
}

/* ---- the walk */

TEST(bad_names_are_named_before_anything_is_written)
{
    static const struct {
        const char *name, *said;
    } rows[] = {
        {"a\nb", "'a\\x0ab' (line break or control character"},
        {"d/a\033[2J", "'d/a\\x1b[2J' (line break or control"},
        {"\x7f", "'\\x7f'"},
        {"x\xc2\x9b", "'x\\xc2\\x9b'"},
        {"caf\xe9", "'caf\\xe9' (the name is not UTF-8)"},
        {"\xff/", "'\\xff' (the name is not UTF-8)"},
        {"ok\xe4\xb8\xad\xc0\x80 -> x", "'ok\xe4\xb8\xad\\xc0\\x80' (the name is not UTF-8)"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct package_list list;
        err = (struct act_error){0};

        start_again();
        struct package_options options = plain();
        package_test_make(rows[i].name);
        package_test_make("good");
        assert_int_equal(package_scan(&options, &list, &err), -ACT_FAIL);
        if (!strstr(act_error_text(&err), rows[i].said) || strstr(act_error_text(&err), "good"))
            fail_msg("row %zu: %s", i, act_error_text(&err));
        assert_int_equal(list.n, 0);
    }
}

/* Runs work() as an ordinary user; the result is its exit status. */
static int run_as_nobody(int (*work)(void))
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(getuid() == 0 && seteuid(NOBODY) < 0 ? 99 : work());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

TEST(a_missing_project_is_not_found)
{
    struct package_options options = {.root = "/nonexistent/project"};
    struct package_list list;

    assert_fails(package_scan(&options, &list, &err), err, ACT_NOT_FOUND, "/nonexistent/project");
}

#define DEEPER "a-deeper-folder" /* so many characters that few levels make a long path */

/* Makes a chain of folders below the project. */
static void make_deep(int levels)
{
    int fd = open(project, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (int i = 0; i < levels; i++) {
        assert_int_equal(mkdirat(fd, DEEPER, 0755), 0);
        int next = openat(fd, DEEPER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(fd);
        fd = next;
    }
    close(fd);
}

TEST(deep_trees_are_packaged_up_to_what_a_path_holds)
{
    struct package_options options = plain();
    struct package_list list = {0};

    make_deep(200);
    list = package_test_scan();
    assert_int_equal(list.n, 200);
    package_list_release(&list);
    package_test_pack();
    assert_good_zip("assert len(z.infolist()) == 200");
    package_test_sh("rm -rf '%s/" DEEPER "'", project);
    make_deep(300);
    assert_fails(package_scan(&options, &list, &err), err, ACT_FAIL, "File name too long");
}

TEST(links_out_of_the_project_are_warned_of)
{
    static const struct {
        const char *tree, *warning; /* NULL: none */
    } rows[] = {
        {"d/l -> ../x", NULL},
        {"l -> .", NULL},
        {"l -> nowhere", NULL},
        {"d/l -> ..", NULL},
        {"l -> ..", "link 'l' leads out of the project"},
        {"d/l -> ../../x", "link 'd/l' leads out of the project"},
        {"l -> /etc/passwd", "link 'l' leads out of the project"},
    };
    ACT_AUTOFREE char *said_path = act_path_join(dir, "stderr");

    for (size_t i = 0; i < COUNT(rows); i++) {
        char *said = NULL;
        err = (struct act_error){0};

        package_test_make(rows[i].tree);
        fflush(stderr);
        int keep = dup(STDERR_FILENO), fd = open(said_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        dup2(fd, STDERR_FILENO);
        struct package_list list = package_test_scan();
        dup2(keep, STDERR_FILENO);
        close(keep);
        close(fd);
        assert_ok(act_file_read(said_path, 4096, &said, NULL, &err), err);
        if (rows[i].warning ? !strstr(said, rows[i].warning) : *said)
            fail_msg("row %zu: '%s'", i, said);
        free(said);
        package_list_release(&list);
        package_test_sh("rm -rf '%s'/*", project);
    }
}

/* ---- the archive */

TEST(unzip_restores_the_tree)
{
    make_all("a.sh empty d/sub/f d/none/ h\xc3\xa9llo/\xe4\xb8\xad.txt ro/f");
    package_test_make("with space/and 'quotes' \"x\"");
    package_test_make("d/link -> ../a.sh");
    package_test_make("loop -> loop");
    package_test_make("d/up -> .");
    package_test_make("dangling -> no/such \xc3\xa9");
    package_test_sh("cd '%s' && : >empty && chmod 755 a.sh && chmod 4711 d/sub/f && chmod 1770 d/none && "
                    "chmod 600 empty && chmod 555 ro && ln a.sh hard && truncate -s 3M sparse && "
                    "head -c 1000003 /dev/urandom >random",
                    project);
    package_test_pack();
    assert_good_zip("");
    package_test_sh("mkdir '%s/un' && cd '%s/un' && umask 077 && unzip -qq '%s'", dir, dir, zip);
    package_test_sh("chmod u-s '%s/d/sub/f' && chmod -t '%s/d/none' && cd '%s' && "
                    "for d in project un; do (cd $d && find . -mindepth 1 -printf '%%P %%y %%m %%l\\n' | sort"
                    " && find . -type f -print0 | sort -z | xargs -0 sha256sum) >$d.txt; done && "
                    "diff -u project.txt un.txt",
                    project, project, dir);
}

TEST(python_sees_what_is_promised)
{
    make_all("a.sh empty d/sub/f d/none/ h\xc3\xa9llo z");
    package_test_make("l -> a.sh");
    package_test_sh("cd '%s' && : >empty && chmod 4755 a.sh && chmod 750 d/none && seq 100 >text", project);
    struct package_summary summary = package_test_pack();
    assert_good_zip("i = z.infolist()\nn = [e.filename for e in i]\n"
                    "assert n == sorted(n, key=str.encode), n\n"
                    "m = {e.filename: e.external_attr >> 16 for e in i}\n"
                    "assert m[\"a.sh\"] == 0o100755 and m[\"d/none/\"] == 0o40750 and m[\"l\"] == 0o120777, m\n"
                    "assert z.read(\"l\") == b\"a.sh\"\n"
                    "for e in i:\n"
                    "  assert e.date_time == (1980, 1, 1, 0, 0, 0) and e.extra == b\"\" and e.create_system == 3, e\n"
                    "  f = open(sys.argv[1], \"rb\")\n"
                    "  f.seek(e.header_offset + 28)\n" /* the length of the extra fields of the local header */
                    "  assert f.read(2) == bytes(2) and e.extract_version <= 20, e\n"
                    "  assert bool(e.flag_bits & 0x800) == (not e.filename.isascii()), e\n"
                    "  assert e.compress_type == (8 if (e.external_attr >> 28) == 8 and e.file_size else 0), e\n");
    package_test_sh("test \"$(sha256sum <'%s')\" = '%s  -'", zip, summary.sha256);
    package_test_sh("test $(stat -c '%%s %%a' '%s' | tr ' ' :) = %ju:600", zip, (uintmax_t)summary.bytes);
    package_test_sh("test \"$(ls -A '%s')\" = %s.zip", out_dir, summary.sha256);
}

TEST(the_same_tree_gives_the_same_bytes)
{
    struct package_summary summaries[3];

    make_all("a b c/d c/e.txt c/f/ x.py");
    package_test_make("l -> c/d");
    summaries[0] = package_test_pack();
    package_test_sh("cp '%s' '%s/first.zip'", zip, dir);

    package_test_sh("rm -rf '%s' && mkdir -m 700 '%s'", project, project);
    setlocale(LC_ALL, "C.UTF-8");
    setenv("TZ", "Asia/Tokyo", 1);
    package_test_make("l -> c/d"); /* another order, times, owner, zone, locale, umask */
    make_all("x.py c/f/ c/e.txt c/d b a");
    package_test_sh("cd '%s' && find . | TZ=UTC xargs touch -h -d '2001-02-03 04:05:06'", project);
    if (getuid() == 0)
        package_test_sh("chown -hR 65534:65534 '%s'", project);
    umask(077);
    summaries[1] = package_test_pack();
    umask(022);
    unsetenv("TZ");
    setlocale(LC_ALL, "C");
    assert_string_equal(summaries[1].sha256, summaries[0].sha256);
    package_test_sh("cmp '%s' '%s/first.zip'", zip, dir);

    package_test_sh("chmod +x '%s/a'", project);
    summaries[2] = package_test_pack();
    assert_string_not_equal(summaries[2].sha256, summaries[0].sha256);
}

/* ---- changes and faults */

TEST(what_changed_since_the_scan_is_named)
{
    static const struct {
        const char *change, *named;
    } rows[] = {
        {"echo more >>f; chmod 600 f", "'f'"},
        {"cp f g; echo more >>g; mv g f", "'f'"},
        {"echo more >>f; touch -d 2001-01-01 f", "'f'"},
        {"touch -d 2001-01-01 f", "'f'"},
        {"cp -p f g && mv g f", "'f'"},
        {"rm f", "'f'"},
        {"rm f && mkfifo f", "'f'"},
        {"rm f && mkdir f", "'f'"},
        {"rm f && ln -s x f", "'f'"},
        {"chmod 600 f", "'f'"},
        {": >f", "'f'"},
        {"mv d e", "'d/g'"},
        {"ln -sfn other l", "'l'"},
        {"rm l", "'l'"},
        {"rm l && echo >l", "'l'"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct package_summary summary;
        err = (struct act_error){0};

        start_again();
        make_all("f d/g");
        package_test_make("l -> f");
        struct package_list list = package_test_scan();
        package_test_sh("cd '%s' && %s", project, rows[i].change);
        int rc = package_test_write_list(&list, &summary);
        if (rc != -ACT_TEMPORARY || !strstr(act_error_text(&err), rows[i].named) ||
            !strstr(act_error_text(&err), "changed") || !strstr(act_error_text(&err), "'.actignore'"))
            fail_msg("row %zu (%s): %d %s", i, rows[i].change, rc, act_error_text(&err));
        assert_nothing_written();
        package_list_release(&list);
    }
}

TEST(of_a_file_that_grew_its_first_bytes_are_taken)
{
    for (size_t size = 3; size < 40 << 20; size *= 1000) {
        struct package_summary summary;

        start_again();
        ACT_AUTOFREE char *path = in_project("f");
        package_test_sh("head -c %zu /dev/zero | tr '\\0' y >'%s'", size, path);
        ACT_AUTO(package_list) list = package_test_scan();
        package_test_sh("echo more >>'%s'", path);
        assert_int_equal(package_test_write_list(&list, &summary),
                         -ACT_TEMPORARY); /* it may have been saved in place */
        assert_ok(write_list(&list, true, &summary), err);
        package_test_sh("unzip -p '%s'/%s.zip f | head -c %zu | cmp -n %zu - '%s' && "
                        "test $(unzip -p '%s'/%s.zip f | wc -c) = %zu",
                        out_dir, summary.sha256, size, size, path, out_dir, summary.sha256, size);
        package_summary_release(&summary);
    }
}

/* Truncates the file by a byte as soon as somebody has opened it. */
static void *truncate_when_opened(void *inotify_fd)
{
    char event[4096];
    ACT_AUTOFREE char *path = in_project("big");

    if (read(*(int *)inotify_fd, event, sizeof(event)) > 0 && truncate(path, (256 << 20) - 1) == 0)
        return NULL;
    return inotify_fd;
}

TEST(a_change_while_a_file_is_read_is_noticed)
{
    struct package_summary summary;
    ACT_AUTOFREE char *path = in_project("big");
    int fd = inotify_init1(IN_CLOEXEC);
    pthread_t thread;
    void *failed;

    package_test_sh("truncate -s 256M '%s'", path); /* takes long enough to compress */
    ACT_AUTO(package_list) list = package_test_scan();
    assert_true(inotify_add_watch(fd, path, IN_ACCESS) >= 0);
    assert_int_equal(pthread_create(&thread, NULL, truncate_when_opened, &fd), 0);
    assert_int_equal(package_test_write_list(&list, &summary), -ACT_TEMPORARY);
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_contains(act_error_text(&err), "'big' changed");
    assert_nothing_written();
    close(fd);
}

/* In a child: packs, which must fail so and name the target. 0: it does. */
static int pack_in_vain(enum act_code code, const char *text)
{
    const struct package_options options = plain();
    ACT_AUTO(package_list) list = {0};
    struct package_summary summary;

    err = (struct act_error){0};
    engine = engine_new(NULL); /* threads do not come along */
    if (package_scan(&options, &list, &err) < 0)
        return 1;
    int rc = package_test_write_list(&list, &summary);
    return rc == -(int)code && strstr(act_error_text(&err), out_dir) && strstr(act_error_text(&err), text) ? 0 : 2;
}

/* Files may not grow over 64 KiB, which stands for a disk that is full. */
static int pack_on_small_disk(void)
{
    const struct rlimit limit = {65536, 65536};

    signal(SIGXFSZ, SIG_IGN);
    return setrlimit(RLIMIT_FSIZE, &limit) < 0 ? 1 : pack_in_vain(ACT_FAIL, strerror(EFBIG));
}

static int pack_into_locked_folder(void)
{
    return pack_in_vain(ACT_DENIED, "");
}

TEST(a_full_disk_leaves_the_old_package)
{
    int status = 0;

    package_test_make("a");
    struct package_summary before = package_test_pack();
    package_test_sh("head -c 300000 /dev/urandom >'%s/r'", project);
    engine_free(engine); /* the child shall have threads, and the thread sanitizer wants none before */
    engine = NULL;
    pid_t pid = fork();
    if (pid == 0)
        _exit(pack_on_small_disk());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    package_test_sh("test \"$(ls -A '%s')\" = %s.zip", out_dir, before.sha256);
    package_test_sh("test \"$(sha256sum <'%s')\" = '%s  -'", zip, before.sha256);
}

TEST(a_target_that_cannot_be_written_is_named)
{
    ACT_AUTO(package_list) list = {0};
    struct package_summary summary;

    package_test_make("a");
    struct package_summary before = package_test_pack();
    package_test_sh("rm -r '%s' && mkdir -m 555 '%s'", out_dir, out_dir);
    assert_int_equal(run_as_nobody(pack_into_locked_folder), 0);
    assert_nothing_written();

    package_test_sh("chmod 755 '%s' && mkdir '%s/%s.zip'", out_dir, out_dir, before.sha256);
    list = package_test_scan(); /* a folder has the name */
    assert_true(package_test_write_list(&list, &summary) < 0);
    assert_contains(act_error_text(&err), before.sha256);
    package_test_sh("test \"$(ls -A '%s')\" = %s.zip", out_dir, before.sha256);
}

/* ---- unchanged files come from the last package */

static char *index_of_project(void)
{
    return act_path_join(out_dir, "index");
}

/* With the index, as if the files had been written age_s seconds before they were scanned. The result holds
 * blocks: release it. */
static struct package_summary pack_aged(int64_t age_s)
{
    struct package_options options = plain();
    ACT_AUTO(package_list) list = package_test_scan();
    struct package_summary summary;
    ACT_AUTOFREE char *index = index_of_project();

    list.started_ns += age_s * 1000000000;
    assert_ok(package_write(&options, &list,
                            &(struct package_output){.engine = engine, .folder = out_dir, .index = index}, &summary,
                            &err),
              err);
    return summary;
}

static struct package_summary pack_again(void)
{
    return pack_aged(60);
}

static void assert_blocks_are_right(const struct package_summary *s)
{
    uint64_t at = 0;

    for (size_t i = 0; i < s->n_blocks; at += s->blocks[i++].len) {
        char hex[2 * PACKAGE_BLOCK_ID + 1];
        act_hex(s->blocks[i].id, PACKAGE_BLOCK_ID, hex);
        assert_int_equal(s->blocks[i].offset, at);
        package_test_sh("dd if='%s/%s.zip' bs=1M iflag=skip_bytes,count_bytes skip=%ju count=%ju status=none | "
                        "sha256sum | grep -q '^%s'",
                        out_dir, s->sha256, (uintmax_t)at, (uintmax_t)s->blocks[i].len, hex);
    }
    assert_int_equal(at, s->bytes);
}

/* The package that was just made is the one that is made from nothing, byte for byte and block for block. */
static void assert_same_as_from_nothing(const struct package_summary *again)
{
    ACT_AUTO(package_list) list = package_test_scan();
    ACT_AUTO(package_summary) fresh = {0};

    assert_blocks_are_right(again);
    assert_ok(package_test_write_list(&list, &fresh), err);
    assert_string_equal(again->sha256, fresh.sha256);
    assert_int_equal(again->bytes, fresh.bytes);
    assert_int_equal(again->n_blocks, fresh.n_blocks);
    for (size_t i = 0; i < fresh.n_blocks; i++) {
        assert_memory_equal(again->blocks[i].id, fresh.blocks[i].id, PACKAGE_BLOCK_ID);
        assert_true(again->blocks[i].crc64 == fresh.blocks[i].crc64);
    }
}

/* 150 files, text and noise, from nothing to 7 MiB, and links and folders. */
static void make_varied_tree(void)
{
    package_test_sh(
        "cd '%s' && mkdir -p e/f && ln -s e/f link && for i in $(seq 100 240); do d=d$((i %% 7)); mkdir -p $d; "
        "head -c $((i * i)) /dev/urandom >$d/noise$i; seq $i 1000 | head -n $i >$d/text$i; done; "
        "for mib in 1 3 7; do head -c ${mib}M /dev/urandom >d1/large$mib; seq 1 ${mib}00000 >d2/long$mib; done",
        project);
}

TEST(unchanged_files_come_from_the_last_package)
{
    static const struct {
        const char *change;
        size_t read_files;
    } rows[] = {
        {"true", 0},
        {"echo more >>d1/text120", 1},
        {"echo new >a; echo new >d3/new; echo new >z", 3},
        {"rm -r d5 d3/noise150 d4/text123", 0},
        {"mv d6 d8", 0}, /* a new name is a new file */
        {"touch d2/text100; chmod +x d2/text107", 2},
        {"mkdir d0/empty; rmdir e/f; ln -sfn e link", 0},
        {"dd if=/dev/urandom of=d1/large7 bs=1k count=1 seek=3000 conv=notrunc status=none", 1},
        {"rm d1/large3; echo x >>d2/long7; cp d1/large7 d2/large7", 2},
    };

    make_varied_tree();
    struct package_summary s = pack_again();
    assert_int_equal(s.read_files, 288);
    assert_same_as_from_nothing(&s);
    package_summary_release(&s);
    for (size_t i = 0; i < COUNT(rows); i++) {
        package_test_sh("cd '%s' && %s", project, rows[i].change);
        s = pack_again();
        if (s.read_files != rows[i].read_files && strncmp(rows[i].change, "mv", 2) != 0)
            fail_msg("row %zu (%s): %zu files were read", i, rows[i].change, s.read_files);
        assert_same_as_from_nothing(&s);
        assert_int_equal(s.unchanged, i == 0);
        package_summary_release(&s);
    }
}

/* A second change within one tick of the file system's clock leaves the same size and times. */
TEST(files_that_had_just_been_written_are_read_again)
{
    make_all("a b d/c");
    package_test_make("l -> a");
    struct package_summary s = pack_aged(0);
    assert_int_equal(s.read_files, 3);
    package_summary_release(&s);
    s = pack_aged(60);
    assert_int_equal(s.read_files, 3);
    package_summary_release(&s);
    s = pack_aged(60);
    assert_int_equal(s.read_files, 0);
    assert_true(s.unchanged);
    package_summary_release(&s);
}

/* Each of these spoils what is remembered; no byte of it may get into a package. */
TEST(a_damaged_cache_is_not_used)
{
    static const char *const damages[] = {
        "printf X | dd of=\"$(echo *.zip)\" bs=1 seek=40 conv=notrunc status=none",
        "printf X | dd of=\"$(echo *.zip)\" bs=1 seek=20000 conv=notrunc status=none",
        "truncate -s -1 *.zip",
        "truncate -s +1 *.zip",
        ": >\"$(echo *.zip)\"",
        "rm *.zip",
        "printf X | dd of=index bs=1 seek=300 conv=notrunc status=none",
        "truncate -s -1 index",
        "truncate -s 5 index",
        ": >index",
        "rm index",
    };

    for (size_t i = 0; i < COUNT(damages); i++) {
        start_again();
        make_all("a b d/c");
        package_test_sh("seq 300000 >'%s/long'; seq 20000 >'%s/short'", project, project);
        struct package_summary s = pack_again();
        package_summary_release(&s);
        package_test_make("z");
        package_test_sh("cd '%s' && %s", out_dir, damages[i]);
        s = pack_again();
        if (s.read_files != 6)
            fail_msg("row %zu (%s): only %zu files were read", i, damages[i], s.read_files);
        assert_same_as_from_nothing(&s);
        package_summary_release(&s);
        s = pack_again();
        assert_true(s.unchanged);
        package_summary_release(&s);
    }
}

TEST(any_number_of_workers_gives_the_same_bytes)
{
    static const int workers[] = {1, 2, 7, 64};
    char first[ACT_SHA256_HEX] = "";

    make_varied_tree();
    for (size_t i = 0; i < COUNT(workers); i++) {
        engine_free(engine);
        engine = engine_new(&(struct engine_options){.workers = workers[i]});
        struct package_summary s = package_test_pack();
        if (i > 0)
            assert_string_equal(s.sha256, first);
        memcpy(first, s.sha256, sizeof(first));
    }
    assert_good_zip("");
}

TEST(what_a_killed_process_left_is_swept)
{
    int held;

    package_test_sh("mkdir '%s' && cd '%s' && echo x >.act-new-abcdef && echo x >.act-new-123 && "
                    "echo x >other.zip && mkdir .act-new-folder",
                    out_dir, out_dir);
    ACT_AUTOFREE char *live = act_path_join(out_dir, ".act-new-live00");
    held = open(live, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(flock(held, LOCK_EX), 0);
    act_temp_sweep(out_dir, 0);
    package_test_sh("cd '%s' && test \"$(ls -A | tr '\\n' ' ')\" = '.act-new-folder .act-new-live00 other.zip '",
                    out_dir);
    close(held);
    act_temp_sweep(out_dir, 0);
    package_test_sh("cd '%s' && test ! -e .act-new-live00", out_dir);
}

/* Sizes, offsets and counts beyond 32 and 16 bits, in a file that begins with a hole. */

enum { PIECES = 5 << 10, SMALL_FILES = 70000 };

struct zeros {
    uint8_t *middle, *last;
    size_t middle_len, last_len, pieces, at;
    struct package_item *items;
    size_t settled;
};

static struct zeros compressed_zeros(struct package_item *items)
{
    const size_t len = 1 << 20;
    ACT_AUTOFREE uint8_t *data = act_calloc(1, len);
    struct package_deflaters *all = package_deflaters_new();
    struct package_deflater *d = package_deflater_take(all);
    struct zeros z = {
        .middle = act_alloc(package_piece_bound(len)), .last = act_alloc(package_piece_bound(len)), .items = items};

    z.middle_len = package_deflate_piece(d, data, len, 0, false, z.middle);
    z.last_len = package_deflate_piece(d, data, len, 0, true, z.last);
    package_deflater_give(all, d);
    package_deflaters_free(all);
    for (int i = 0; i < PIECES; i++)
        items[0].crc = package_crc_join(items[0].crc, package_crc(data, len), len);
    return z;
}

static int64_t read_zeros(void *arg, size_t i, void *data, size_t len)
{
    struct zeros *z = arg;
    bool last = z->pieces == PIECES - 1;
    size_t left = (last ? z->last_len : z->middle_len) - z->at, n = left < len ? left : len;

    if (i > 0 || z->pieces == PIECES)
        return 0;
    memcpy(data, (last ? z->last : z->middle) + z->at, n);
    z->at += n;
    if (n == left) {
        z->pieces++;
        z->at = 0;
    }
    return (int64_t)n;
}

static void count_settled(void *arg, size_t i)
{
    struct zeros *z = arg;

    assert_int_equal(i, z->settled++);
}

TEST(sizes_beyond_four_gib)
{
    const uint64_t begin = (uint64_t)5 << 30;
    ACT_AUTOFREE struct package_entry *entries = act_calloc(SMALL_FILES + 1, sizeof(*entries));
    ACT_AUTOFREE struct package_item *items = act_calloc(SMALL_FILES + 1, sizeof(*items));
    struct zeros zeros = compressed_zeros(items);
    struct package_sink sink;
    char sum[ACT_SHA256_HEX];
    int fd = open(zip, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    for (int i = 0; i <= SMALL_FILES; i++)
        entries[i] = (struct package_entry){.path = i ? act_sprintf("small%d", i - 1) : act_strdup("large"),
                                            .size = i ? 0 : (uint64_t)PIECES << 20,
                                            .mode = S_IFREG | 0644};
    package_sink_open(&sink, fd);
    sink.at = sink.end = sink.start = sink.settled = sink.hashed = begin;
    assert_ok(package_zip_write(&(struct package_zip){.entries = entries,
                                                      .n = SMALL_FILES + 1,
                                                      .items = items,
                                                      .sink = &sink,
                                                      .read = read_zeros,
                                                      .settled = count_settled,
                                                      .arg = &zeros},
                                &err),
              err);
    assert_int_equal(package_sink_close(&sink, sum), 0);
    close(fd);
    assert_int_equal(zeros.settled, SMALL_FILES + 1);
    assert_true(items[0].offset == begin && items[1].offset == items[0].data + items[0].packed);
    package_test_sh("test \"$(tail -c +%ju '%s' | sha256sum)\" = '%s  -'", (uintmax_t)begin + 1, zip, sum);
    package_test_sh("unzip -p '%s' small69999", zip);
    package_test_sh("python3 -c 'import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\n"
                    "assert len(z.infolist()) == 70001 and z.getinfo(\"large\").file_size == 5 << 30\n"
                    "assert z.getinfo(\"small69999\").header_offset > 5 << 30\n"
                    "assert z.open(\"large\").read(3 << 20) == bytes(3 << 20)\n"
                    "assert z.read(\"small69999\") == b\"\"' '%s'",
                    zip);
    for (int i = 0; i <= SMALL_FILES; i++)
        free(entries[i].path);
    free(zeros.middle);
    free(zeros.last);
}

TEST_MAIN(NULL, NULL)
