/* The base library: errors, text, paths, files, hashes, units, time. */
#include "unit/killed.h"
#include "unit/test.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <locale.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc64.h"
#include "base/file.h"
#include "base/glob.h"
#include "base/hash.h"
#include "base/pages.h"
#include "base/path.h"
#include "base/secrets.h"
#include "base/temp.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/units.h"

TEST(error_keeps_cause_and_context)
{
    assert_int_equal(act_error_set(&err, ACT_DENIED, "HTTP %d\r\nX", 403), -ACT_DENIED);
    assert_string_equal(act_error_text(&err), "HTTP 403? X");
    assert_int_equal(act_error_prefix(&err, "cannot get '%s'", "a"), -ACT_DENIED);
    assert_int_equal(act_error_hint(&err, "log in"), -ACT_DENIED);
    assert_string_equal(act_error_text(&err), "cannot get 'a': HTTP 403? X; log in");
    act_error_set(&err, ACT_DENIED, "did you mean 'a'?");
    act_error_hint(&err, "there is 'b'");
    assert_string_equal(act_error_text(&err), "did you mean 'a'? there is 'b'");
    assert_int_equal(act_error_errno(&err, ENOENT, "cannot read '%s'", "b"), -ACT_NOT_FOUND);
    assert_string_equal(act_error_text(&err), "cannot read 'b': No such file or directory");
    assert_int_equal(act_error_set(NULL, ACT_FAIL, "x"), -ACT_FAIL);
}

/* Of a long name the middle goes; never a part of a character. */
TEST(error_keeps_the_cause_of_what_it_cuts)
{
    ACT_AUTO(act_buf) name = {0};

    for (int i = 0; i < 1700; i++)
        act_buf_adds(&name, "\xe4\xb8\xad");
    act_error_errno(&err, ENOENT, "cannot read '%s'", name.data);
    act_error_prefix(&err, "context");
    assert_true(act_starts_with(act_error_text(&err), "context: cannot read '\xe4\xb8\xad"));
    assert_true(act_ends_with(act_error_text(&err), "\xe4\xb8\xad': No such file or directory"));
    assert_non_null(strstr(act_error_text(&err), "\xe4\xb8\xad..."));
    assert_true(act_utf8_valid(act_error_text(&err), strlen(act_error_text(&err))));
    assert_true(act_utf8_valid(err.brief, strlen(err.brief)));
}

TEST(long_error_is_a_plain_value)
{
    struct act_error copy;

    assert_string_equal(act_error_text(&err), "");
    act_error_set(&err, ACT_FAIL, "%0300d", 1);
    copy = err;
    act_error_set(&err, ACT_FAIL, "short");
    assert_string_equal(act_error_text(&err), "short");
    assert_int_equal(strlen(act_error_text(&copy)), 300);
    act_error_set(&err, ACT_FAIL, "%0300d", 1);
    assert_ptr_equal(act_error_text(&err), act_error_text(&copy));
    act_error_prefix(&err, "ctx");
    assert_true(act_starts_with(act_error_text(&err), "ctx: 000"));
    assert_int_equal(strlen(act_error_text(&err)), 305);
}

TEST(utf8_table)
{
    static const struct {
        const char *text;
        bool valid;
    } rows[] = {
        {"", true},
        {"abc", true},
        {"h\xc3\xa9", true},
        {"\xe4\xb8\xad", true},
        {"\xf0\x9f\x98\x80", true},
        {"\xff", false},
        {"\xc3", false},
        {"\xc0\x80", false},
        {"\xed\xa0\x80", false},
        {"\x80", false},
        {"\xf4\x90\x80\x80", false},
        {"\xe0\x80\x80", false},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(act_utf8_valid(rows[i].text, strlen(rows[i].text)), rows[i].valid);
}

/* step: bytes in a piece. */
static char *base_test_shown(const char *text, size_t len, unsigned allow, size_t step)
{
    struct act_harmless h = {.allow = allow};
    struct act_buf out = {0};

    for (size_t i = 0; i < len; i += step)
        act_harmless_add(&h, text + i, len - i < step ? len - i : step, &out);
    act_harmless_end(&h, &out);
    return act_buf_steal(&out);
}

TEST(the_last_state_of_a_line)
{
    static const struct {
        const char *line, *state;
    } rows[] = {{"", ""},
                {"\n", ""},
                {"\r", ""},
                {"plain\n", "plain"},
                {"plain\r\n", "plain"},
                {" 1%\r 2%", " 2%"},
                {"\r 1%\r 2%\r\r\n", " 2%"}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t len = strlen(rows[i].line);
        const char *last = act_last_state(rows[i].line, &len);
        ACT_AUTOFREE char *text = act_strndup(last, len);
        assert_string_equal(text, rows[i].state);
    }
}

TEST(harmless_table)
{
    enum { LINES = ACT_SHOW_LINES, LOG = ACT_SHOW_LINES | ACT_SHOW_COLOURS };
    static const struct {
        const char *text;
        size_t len;
        unsigned allow;
        const char *shown;
    } rows[] = {
#define ROW(text, allow, base_test_shown) {text, sizeof(text) - 1, allow, base_test_shown}
        ROW("plain\ttext\n", LINES, "plain\ttext\n"),
        ROW("a\nb", 0, "a?b"),
        ROW("a\0b\x01\x7f", LOG, "a?b??"),
        ROW("\x1b[2J\x1b]0;t\x07", LOG, "?[2J?]0;t?"),
        ROW("\x1b[31mred\x1b[0m", LINES, "?[31mred?[0m"),
        ROW("\x1b[31;1mred\x1b[0m.", LOG, "\x1b[31;1mred\x1b[0m.\x1b[0m"),
        ROW("\x1b[?25lx", LOG, "?[?25lx"),
        ROW("\x1b[31", LOG, "?[31"),
        ROW("\x1b[1111111111111111111111111111111111111111111111111111111111111111111m", LOG,
            "?[1111111111111111111111111111111111111111111111111111111111111111111m"),
        ROW("\x1b", LOG, "?"),
        ROW("one\r\ntwo\r\n\r\nthree", LOG, "one\ntwo\n\nthree"),
        ROW("\r 1%\r 2%\r\r\n\n.", LOG, " 1%\n 2%\n\n."),
        ROW("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82", LINES, "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82"),
        ROW("a\x9b"
            "2Jb\xc2\x9b"
            "2J",
            LOG, "a?2Jb?2J"),
        ROW("x\xe2\x80\xaegpj.exe\xe2\x81\xa6\xe2\x81\xa9\xe2\x80\x8e\xd8\x9c", LINES, "x?gpj.exe????"),
        ROW("a\xe2\x80\x8b\xef\xbb\xbf\xe2\x80\xa8\xe2\x80\xa9"
            "b",
            LINES, "a????b"),
        ROW("\xf3\xa0\x81\xa1", LINES, "?"),
        ROW("\xff\xc0\xaf\xed\xa0\x80", LINES, "??????"),
        ROW("cut \xe2\x82", LINES, "cut ??"),
        ROW("\xe2\x82x\xe2\x1b", LINES, "??x??"),
        ROW("e\xcc\x81", LINES, "e\xcc\x81"),
#undef ROW
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t step = 1; step <= rows[i].len; step++) {
            ACT_AUTOFREE char *text = base_test_shown(rows[i].text, rows[i].len, rows[i].allow, step);
            assert_string_equal(text, rows[i].shown);
        }
}

TEST(marks_are_few)
{
    static const char mark[] = "\xcc\x81";
    struct act_buf text = {0}, wanted = {0};

    for (size_t letter = 0; letter < 2; letter++) {
        act_buf_adds(&text, "e");
        act_buf_adds(&wanted, "e");
        for (size_t i = 0; i < 1000; i++)
            act_buf_adds(&text, mark);
        for (size_t i = 0; i < 6; i++)
            act_buf_adds(&wanted, mark);
        act_buf_adds(&wanted, "?");
    }
    ACT_AUTOFREE char *out = base_test_shown(text.data, text.len, ACT_SHOW_LINES, 7);
    assert_string_equal(out, wanted.data);
    act_buf_release(&text);
    act_buf_release(&wanted);
    assert_true(act_is_mark(0x300) && act_is_mark(0xe0100) && act_is_mark(0x20dd));
    assert_false(act_is_mark('a') || act_is_mark(0x2ff) || act_is_mark(0x10ffff));
}

TEST(text_takes_columns)
{
    static const struct {
        const char *text;
        int columns, room, fit, bytes;
    } rows[] = {
        {"", 0, 5, 0, 0},
        {"abc", 3, 2, 2, 2},
        {"訓練", 4, 3, 2, 3},
        {"e\xcc\x81x", 2, 1, 1, 3}, /* the mark stays with its letter */
        {"\xf0\x9f\x98\x80!", 3, 1, 0, 0},
        {"\xff\xe8\xa8", 3, 2, 2, 2},
        {"\xef\xbc\xa1\xef\xbd\xa1", 3, 2, 2, 3}, /* full and half width */
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        int fit;
        assert_int_equal(act_columns(rows[i].text), rows[i].columns);
        assert_int_equal(act_columns_fit(rows[i].text, rows[i].room, &fit), rows[i].bytes);
        assert_int_equal(fit, rows[i].fit);
    }
}

TEST(nearest_finds_slips_only)
{
    static const char *const verbs[] = {"submit", "query", "abort", NULL};

    assert_string_equal(act_nearest("sumbit", verbs), "submit");
    assert_string_equal(act_nearest("Query", verbs), "query");
    assert_null(act_nearest("zzzz", verbs));
    static const char *const clusters[] = {"bad", "lab", NULL};
    assert_string_equal(act_nearest("lba", clusters), "lab");
    static const char *const begun[] = {"ui", "upload", "update", NULL};
    assert_string_equal(act_nearest("up", begun), "upload");
    assert_string_equal(act_nearest("u", begun), "ui"); /* one letter begins too much */
    static const char *const keys[] = {"modules_purge", "modules", NULL};
    assert_string_equal(act_nearest("modules_", keys), "modules");
    assert_string_equal(act_nearest("modules_p", keys), "modules_purge");
}

TEST(buffers_and_vectors_grow)
{
    ACT_AUTO(act_buf) b = {0};
    ACT_AUTO(act_strv) v = {0};

    for (int i = 0; i < 1000; i++) {
        act_buf_addf(&b, "%d,", i % 10);
        act_strv_pushf(&v, "%03d", 999 - i);
    }
    assert_int_equal(b.len, 2000);
    assert_int_equal(b.data[2000], 0);
    act_strv_sort(&v);
    assert_string_equal(v.v[0], "000");
    assert_string_equal(v.v[999], "999");
    assert_null(v.v[1000]);
    assert_true(act_strv_has(&v, "123"));
}

TEST(vectors_grow_and_shrink)
{
    struct pair {
        int a, b;
    } *v = NULL;
    size_t n = 0;

    for (int i = 0; i < 100; i++)
        ACT_PUSH(v, n, (struct pair){i, -i});
    for (int i = 0; i < 100; i++)
        assert_int_equal(v[i].a + v[i].b, 0);
    n = 3;
    for (int i = 0; i < 30; i++)
        ACT_PUSH(v, n, (struct pair){.a = i});
    assert_int_equal(n, 33);
    assert_int_equal(v[2].a, 2);
    assert_int_equal(v[32].a, 29);
    free(v);
}

TEST(text_from_outside_table)
{
    static const struct {
        const char *in, *masked, *line;
        bool has_control;
    } rows[] = {
        {"", "", "", false},
        {"plain \xc3\xbc", "plain \xc3\xbc", "plain \xc3\xbc", false},
        {"a\tb\r\n", "a\tb?\n", "a b  ", true},
        {"\033[2J\x7f", "?[2J?", "?[2J?", true},
        {"\xc2\x9b"
         "2J",
         "\xc2\x9b"
         "2J",
         "?2J", true},
        {"a\xff\xc3", "a\xff\xc3", "a??", false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char *masked = act_strdup(rows[i].in), *line = act_one_line(rows[i].in, strlen(rows[i].in));
        act_mask_controls(masked, "\n\t", '?');
        assert_string_equal(masked, rows[i].masked);
        assert_string_equal(line, rows[i].line);
        assert_int_equal(act_has_control(rows[i].in), rows[i].has_control);
        free(masked);
        free(line);
    }
}

TEST(shells_read_quoted_words)
{
    static const char *const words[] = {"", "a b", "it's", "''", "$HOME `id` \\ \"x\" !y\n", "-n"};

    for (size_t i = 0; i < COUNT(words); i++) {
        struct act_buf b = {0};
        char said[100] = "";
        act_buf_adds(&b, "printf %s ");
        act_buf_add_quoted(&b, words[i]);
        FILE *shell = popen(b.data, "r");
        assert_non_null(shell);
        said[fread(said, 1, sizeof(said) - 1, shell)] = '\0';
        assert_int_equal(pclose(shell), 0);
        assert_string_equal(said, words[i]);
        act_buf_release(&b);
    }
}

TEST(path_clean_table)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"", "."},
        {".", "."},
        {"a", "a"},
        {"a/", "a"},
        {"./a//b/.", "a/b"},
        {"a/../b", "b"},
        {"a/..", "."},
        {"../a", "../a"},
        {"../../a", "../../a"},
        {"a/../../b", "../b"},
        {"/", "/"},
        {"/..", "/"},
        {"/a/../../b", "/b"},
        {"a/b/../..", "."},
        {"..", ".."},
        {"a/../..", ".."},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char *clean = act_path_clean(rows[i].in);
        assert_string_equal(clean, rows[i].out);
        free(clean);
    }
}

TEST(names_below_folders_stay_as_they_are)
{
    static const char *const rows[][3] = {{"a", "b", "a/b"}, {"a", "/b", "a//b"}, {"a/", "b", "a//b"},
                                          {"", "/b", "/b"},  {"", "b", "b"},      {"a", "", "a"},
                                          {"", "", ""},      {"a", "b/", "a/b/"}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *path = act_path_below(rows[i][0], rows[i][1]);
        assert_string_equal(path, rows[i][2]);
    }
}

TEST(path_safety_table)
{
    static const struct {
        const char *name;
        size_t len; /* 0: strlen */
        bool safe;
    } rows[] = {
        {"a", 0, true},     {"a/b", 0, true},     {"a/", 0, true},    {"", 0, false},      {"/a", 0, false},
        {"..", 0, false},   {"a/../b", 0, false}, {"a/..", 0, false}, {"./a", 0, false},   {"a//b", 0, false},
        {"a\0b", 3, false}, {"..a/b..", 0, true}, {"...", 0, true},   {"a/./b", 0, false},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(act_path_is_safe(rows[i].name, rows[i].len ? rows[i].len : strlen(rows[i].name)),
                         rows[i].safe);
    assert_false(act_path_is_within("data/voc2012", "data/voc2"));
    assert_true(act_path_is_within("data/voc2/x", "data/voc2"));
    assert_true(act_path_is_within("data", "."));
    assert_false(act_path_is_within("../data", "."));
    assert_true(act_path_has_parent("..") && act_path_has_parent("a/../b") && act_path_has_parent("a/.."));
    assert_false(act_path_has_parent("a/./b") || act_path_has_parent("...") || act_path_has_parent("..a/a.."));
    assert_true(act_path_has_dots(".") && act_path_has_dots("a/./b") && act_path_has_dots("a//.."));
    assert_false(act_path_has_dots("") || act_path_has_dots("a//b") || act_path_has_dots(".a/a./...") ||
                 act_path_has_dots("/"));
}

TEST(path_parts)
{
    static const struct {
        const char *path, *dir, *base;
    } rows[] = {{"a", ".", "a"}, {"/a", "/", "a"}, {"a/b", "a", "b"}, {"/a//b", "/a", "b"}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        char *dir = act_path_dirname(rows[i].path);
        assert_string_equal(dir, rows[i].dir);
        assert_string_equal(act_path_basename(rows[i].path), rows[i].base);
        free(dir);
    }
}

static char scratch[64];

static int make_scratch(void **state)
{
    (void)state;
    strcpy(scratch, "/tmp/act-base-XXXXXX");
    return mkdtemp(scratch) ? 0 : -1;
}

static int drop_scratch(void **state)
{
    (void)state;
    return act_remove_tree(scratch, NULL);
}

TEST(file_write_replaces_whole)
{
    char *path = act_path_join(scratch, "deep/er/file"), *text;
    struct stat st;
    size_t len;

    assert_ok(act_file_write(path, "one", 3, 0644, &err), err);
    assert_ok(act_file_write(path, "two!", 4, 0600, &err), err);
    assert_ok(act_file_read(path, 100, &text, &len, &err), err);
    assert_string_equal(text, "two!");
    assert_int_equal(len, 4);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    free(text);
    assert_int_equal(act_file_read(path, 3, &text, &len, &err), -ACT_FAIL);
    assert_int_equal(act_file_read("/nonexistent/file", 3, &text, &len, &err), -ACT_NOT_FOUND);
    assert_ok(act_file_read_regular(path, 100, &text, &len, &err), err);
    assert_string_equal(text, "two!");
    free(text);
    assert_int_equal(act_file_read_regular(path, 3, &text, &len, &err), -ACT_FAIL);
    assert_int_equal(act_file_read_regular("/nonexistent/file", 3, &text, &len, &err), -ACT_NOT_FOUND);
    assert_fails(act_file_read_regular("/dev/zero", 3, &text, &len, &err), err, ACT_FAIL,
                 "cannot read '/dev/zero': it is not a regular file");
    assert_fails(act_file_read_regular(scratch, 3, &text, &len, &err), err, ACT_FAIL, "directory");
    assert_int_equal(act_file_write("/proc/x/y", "", 0, 0600, &err), -ACT_NOT_FOUND);
    assert_ok(act_file_write_quickly(path, "three", 5, 0640, &err), err);
    assert_ok(act_file_read(path, 100, &text, NULL, &err), err);
    assert_string_equal(text, "three");
    free(text);
    free(path);
}

/* Writes over it in a child that is killed at its nth system call. False: it ended before. */
static bool write_killed(const char *path, int n)
{
    pid_t pid = fork();

    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) || raise(SIGSTOP))
            _exit(2);
        _exit(act_file_write(path, "new", 3, 0600, &err) < 0);
    }
    return kill_at(pid, n);
}

/* The names in a folder that are neither hidden nor temporary ones, and those of both. */
static void count_names(const char *folder, int *out_temp, int *out_other)
{
    DIR *d = opendir(folder);

    *out_temp = *out_other = 0;
    for (const struct dirent *e; d && (e = readdir(d));) {
        bool is_temp = act_starts_with(e->d_name, ACT_TEMP_PREFIX);
        *out_temp += is_temp;
        *out_other += !is_temp && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    }
    closedir(d);
}

/* What is left has a name of its own, and goes with a later write; what is young may be another machine's. */
TEST(a_write_that_is_killed_leaves_only_temporary_names)
{
    char folder[] = "/tmp/act-base-XXXXXX";
    const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    bool killed = true;
    int temp, other, left = 0;

    if (!can_trace())
        skip();
    assert_non_null(mkdtemp(folder));
    ACT_AUTOFREE char *path = act_path_join(folder, "file.yaml");
    assert_ok(act_file_write(path, "old", 3, 0600, &err), err);
    for (int n = 1; killed; n++) {
        killed = write_killed(path, n);
        ACT_AUTOFREE char *text = NULL;
        assert_ok(act_file_read(path, 100, &text, NULL, &err), err);
        assert_true(strcmp(text, "old") == 0 || strcmp(text, "new") == 0);
        count_names(folder, &temp, &other);
        assert_int_equal(other, 1);
        left += temp;
        DIR *d = opendir(folder);
        for (const struct dirent *e; (e = readdir(d));)
            if (act_starts_with(e->d_name, ACT_TEMP_PREFIX))
                assert_int_equal(utimensat(dirfd(d), e->d_name, old, 0), 0);
        closedir(d);
        assert_ok(act_file_write(path, "old", 3, 0600, &err), err);
        count_names(folder, &temp, &other);
        assert_int_equal(temp, 0);
    }
    assert_true(left > 2);
    ACT_AUTOFREE char *held = NULL;
    int fd = act_temp_open(folder, &held);
    assert_int_equal(futimens(fd, old), 0);
    assert_ok(act_file_write(path, "old", 3, 0600, &err), err);
    assert_int_equal(access(held, F_OK), 0);
    close(fd);
    assert_ok(act_remove_tree(folder, &err), err);
}

TEST(a_folder_that_a_killed_process_left_goes)
{
    static const struct timespec old[2];
    ACT_AUTOFREE char *prefix = act_path_join(scratch, "left-"), *first = NULL, *second = NULL, *third = NULL;
    int held[2] = {act_temp_folder(prefix, &first)};
    struct stat st;

    assert_int_equal(futimens(held[0], old), 0);
    held[1] = act_temp_folder(prefix, &second);
    assert_int_equal(stat(first, &st), 0); /* its process lives */
    assert_int_equal(st.st_mode & 0777, 0700);
    close(held[0]);
    close(held[1]);
    close(act_temp_folder(prefix, &third));
    assert_int_not_equal(access(first, F_OK), 0);
    assert_int_equal(access(second, F_OK), 0); /* it is young */
    assert_ok(act_remove_tree(second, &err), err);
    assert_ok(act_remove_tree(third, &err), err);
}

TEST(file_create_replaces_nothing)
{
    ACT_AUTOFREE char *dir = act_path_join(scratch, "claims"), *path = act_path_join(dir, "claim");
    char *text;
    bool existed;
    int fd, n = 0;

    assert_ok(act_file_create(path, "one", 3, 0600, &existed, &err), err);
    assert_false(existed);
    assert_ok(act_file_create(path, "two", 3, 0600, &existed, &err), err);
    assert_true(existed);
    assert_ok(act_file_read(path, 100, &text, NULL, &err), err);
    assert_string_equal(text, "one");
    free(text);

    fd = open(dir, O_RDONLY | O_DIRECTORY);
    assert_true(fd >= 0);
    assert_int_equal(symlinkat("nowhere", fd, "link"), 0);
    assert_int_equal(act_rename_new(fd, "claim", "link"), -1);
    assert_int_equal(errno, EEXIST);
    assert_int_equal(act_rename_new(fd, "claim", "new"), 0);
    assert_int_equal(act_rename_new(fd, "claim", "newer"), -1);
    assert_int_equal(errno, ENOENT);

    DIR *names = fdopendir(fd);
    while (readdir(names))
        n++;
    assert_int_equal(n, 4); /* ".", "..", "link" and "new": nothing temporary is left */
    closedir(names);
}

TEST(full_disk_leaves_the_old_file)
{
    assert_int_equal(act_file_copy("/dev/zero", "/dev/full", 0600, &err), -ACT_FAIL);
    assert_true(strstr(act_error_text(&err), "/dev/full") != NULL);
}

TEST(copy_and_remove_tree)
{
    char *from = act_path_join(scratch, "t/a"), *to = act_path_join(scratch, "t/b"), *text;
    char *link = act_path_join(scratch, "t/link"), *tree = act_path_join(scratch, "t");

    assert_ok(act_file_write(from, "data", 4, 0644, &err), err);
    assert_ok(act_file_copy(from, to, 0640, &err), err);
    assert_ok(act_file_read(to, 100, &text, NULL, &err), err);
    assert_string_equal(text, "data");
    free(text);
    assert_int_equal(symlink("/etc", link), 0);
    assert_ok(act_remove_tree(tree, &err), err);
    assert_int_equal(access(tree, F_OK), -1);
    assert_int_equal(access("/etc/passwd", F_OK), 0);
    assert_ok(act_remove_tree(tree, &err), err);
    free(from);
    free(to);
    free(link);
    free(tree);
}

TEST(lock_excludes)
{
    ACT_AUTOFREE char *path = act_path_join(scratch, "lock");
    int a = act_lock(path, true, &err);

    assert_true(a >= 0);
    assert_int_equal(act_lock(path, false, &err), -ACT_TEMPORARY);
    close(a);
    a = act_lock(path, false, &err);
    assert_true(a >= 0);
    close(a);
}

/* A lock is in the way of all ways to take it, and who waits for it is not in anybody's way. */
TEST(locks_of_files_and_folders)
{
    ACT_AUTOFREE char *path = act_path_join(scratch, "lock");
    int a = act_lock_shortly(path, &err), b = act_lock_folder(scratch, &err);

    assert_true(a >= 0 && b >= 0);
    assert_int_equal(act_lock(path, false, &err), -ACT_TEMPORARY);
    close(a);
    a = act_lock_told(path, "tests", &err);
    assert_true(a >= 0);
    close(a);
    close(b);
    ACT_AUTOFREE char *nowhere = act_path_join(scratch, "nowhere");
    assert_int_equal(act_lock_folder(nowhere, &err), -ACT_NOT_FOUND);
}

static void hear_alarm(int signal)
{
    (void)signal;
}

/* As by Ctrl-C. The error says what was waited for, not what the system calls it. */
TEST(who_waits_for_a_lock_can_be_interrupted)
{
    enum { EVERY_US = 20000 }; /* again and again: one may come before the wait */
    ACT_AUTOFREE char *path = act_path_join(scratch, "lock");
    const struct itimerval often = {.it_interval.tv_usec = EVERY_US, .it_value.tv_usec = EVERY_US}, never = {0};
    struct sigaction old;
    int held = act_lock(path, false, &err);

    sigaction(SIGALRM, &(struct sigaction){.sa_handler = hear_alarm}, &old);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(i ? act_lock(path, true, &err) : act_lock_shortly(path, &err), -ACT_INTERRUPTED);
        assert_contains(act_error_text(&err), "interrupted while process ");
        assert_null(strstr(act_error_text(&err), "Interrupted system call"));
    }
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &old, NULL);
    close(held);
}

TEST(digests_of_known_texts)
{
    struct act_sha256 s;
    uint8_t long_key[131];
    struct act_md5 m;
    char hex[ACT_SHA256_HEX], md5[ACT_MD5_BASE64];
    size_t len;

    act_sha256_init(&s);
    act_sha256_add(&s, "abc", 3);
    act_sha256_done(&s, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    act_md5_init(&m);
    act_md5_add(&m, "hello world", 11);
    act_md5_done(&m, md5);
    assert_string_equal(md5, "XrY7u+Ae7tCTyyK7j1rNww==");
    act_md5_add(&m, "hello ", 6);
    act_md5_add(&m, "world", 5);
    act_md5_done(&m, md5);
    assert_string_equal(md5, "XrY7u+Ae7tCTyyK7j1rNww==");
    char *mac = act_hmac_sha256_base64((const uint8_t *)"Jefe", 4, "what do ya want for nothing?", 28);
    assert_string_equal(mac, "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=");
    free(mac);
    /* RFC 4231, test case 6: a key of more than a block */
    memset(long_key, 0xaa, sizeof(long_key));
    mac = act_hmac_sha256_base64(long_key, sizeof(long_key), "Test Using Larger Than Block-Size Key - Hash Key First",
                                 54);
    assert_string_equal(mac, "YOQxWR7gtn8Niiaqy/W3f44LxiE3KMUUBUYEDw7jf1Q=");
    free(mac);
    assert_true(act_equal_secrets("", "") && act_equal_secrets("abc", "abc"));
    assert_false(act_equal_secrets("abc", "abd") || act_equal_secrets("abc", "ab") || act_equal_secrets("", "a"));
    uint8_t *raw = act_base64_decode("aGk=", &len);
    assert_int_equal(len, 2);
    assert_memory_equal(raw, "hi", 2);
    free(raw);
    assert_null(act_base64_decode("a", &len));
    assert_null(act_base64_decode("a*==", &len));
    assert_null(act_base64_decode("a===", &len));
    assert_null(act_base64_decode("aG=k", &len));
    assert_null(act_base64_decode("aG\nk=", &len));
    raw = act_base64_decode(" aGk=\r\n", &len);
    assert_true(raw && len == 2);
    free(raw);
}

static bool is_ascii(const char *text)
{
    while (*text && isascii((unsigned char)*text))
        text++;
    return !*text;
}

/* libc's fnmatch() in C.UTF-8 says the same of random patterns and texts; but it takes the bytes of a character for
 * characters too when that makes a match. */
TEST(globs_match_as_libc_says)
{
    static const char *const pieces[] = {
        "*", "?", "[", "]", "!", "-", "a", "b", "c", "\xc3\xa9", "\xe2\x82\xac", "/", "\\", "[:alpha:]"};
    enum { ROUNDS = 100000, PIECES = sizeof(pieces) / sizeof(pieces[0]) };
    locale_t before = uselocale(newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0));
    unsigned seed = 5;

    for (int round = 0; round < ROUNDS; round++) {
        char pattern[64] = "", text[32] = "";
        for (int n = rand_r(&seed) % 7; n > 0; n--)
            strcat(pattern, pieces[rand_r(&seed) % PIECES]);
        for (int n = rand_r(&seed) % 5; n > 0; n--)
            strcat(text, pieces[2 + rand_r(&seed) % (PIECES - 3)]);
        for (int flags = 0; flags <= ACT_GLOB_ESCAPES; flags++) {
            bool here = act_glob(pattern, text, flags);
            bool there = fnmatch(pattern, text, flags ? 0 : FNM_NOESCAPE) == 0;
            if (here != there && (here || is_ascii(text)))
                fail_msg("'%s' and '%s', flags %d: libc says otherwise", pattern, text, flags);
        }
    }
    freelocale(uselocale(before));
}

TEST(hex_and_uuids)
{
    char one[ACT_UUID_TEXT], other[ACT_UUID_TEXT];

    assert_true(act_is_hex("0af9", 4));
    assert_false(act_is_hex("0af", 4) || act_is_hex("0af90", 4) || act_is_hex("0AF9", 4) || act_is_hex("0ag9", 4));
    act_uuid(one);
    act_uuid(other);
    assert_true(act_is_uuid(one) && act_is_uuid(other));
    assert_string_not_equal(one, other);
    assert_int_equal(one[14], '4');
    assert_non_null(strchr("89ab", one[19]));
    assert_true(act_is_uuid("00000000-0000-0000-0000-00000000000A"));
    assert_false(act_is_uuid("00000000-0000-0000-0000-00000000000g") || act_is_uuid("") ||
                 act_is_uuid("00000000-0000-0000-0000-0000000000000"));
}

TEST(times_go_round)
{
    char text[ACT_TIME_TEXT];
    int64_t v;

    act_time_to_http(1795165200, text);
    assert_string_equal(text, "Fri, 20 Nov 2026 09:00:00 GMT");
    assert_true(act_time_from_http(text, &v));
    assert_int_equal(v, 1795165200);
    assert_false(act_time_from_http("Fri, 20 Foo 2026 09:00:00 GMT", &v));
    act_time_to_iso_ns(1795165200123456789, text);
    assert_string_equal(text, "2026-11-20T09:00:00.123456789Z");
    assert_true(act_time_from_iso_ns(text, &v));
    assert_int_equal(v, 1795165200123456789);
    assert_true(act_time_from_iso_ns("2026-11-20T10:00:00.5+01:00", &v));
    assert_int_equal(v, 1795165200500000000);
    assert_false(act_time_from_iso_ns("2026-11-20T10:00:00", &v));
    assert_false(act_time_from_iso_ns("yesterday", &v));
    assert_false(act_time_from_iso_ns("9999-12-31T23:59:59Z", &v)); /* beyond 64 bits of nanoseconds */
}

TEST(times_of_all_years_go_round)
{
    enum { STEP_S = 7 * 86400 + 3601 }; /* each day of the year comes, and each hour */
    static const char *const bad[] = {"",
                                      "2026-13-20T10:00:00Z",
                                      "2026-00-20T10:00:00Z",
                                      "2026-11-20",
                                      "2026-11-20X10:00:00Z",
                                      "20261-11-20T10:00:00Z",
                                      "2026-11-20T10:00:00+01",
                                      "2026-11-20T10:00:00Zz"};
    char text[ACT_TIME_TEXT];
    int64_t v;

    for (int64_t s = -9200000000; s < 9200000000; s += STEP_S) {
        act_time_to_iso_ns(s * 1000000000 + 5, text);
        assert_true(act_time_from_iso_ns(text, &v));
        assert_int_equal(v, s * 1000000000 + 5);
    }
    assert_true(act_time_from_iso_ns("2024-02-29 23:59:59z", &v));
    assert_int_equal(v, 1709251199000000000);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(act_time_from_iso_ns(bad[i], &v));
}

TEST(units_table)
{
    int64_t s;
    char text[ACT_UNIT_TEXT];

    act_size_to_text(1536, text);
    assert_string_equal(text, "1.5 KiB");
    act_size_to_text(512, text);
    assert_string_equal(text, "512 B");
    assert_true(act_duration_from_text("15m", &s) && s == 900);
    assert_true(act_duration_from_text("90", &s) && s == 90);
    assert_false(act_duration_from_text("1w", &s) || act_duration_from_text("99999999999999999999", &s));
    act_duration_to_text(3723, text);
    assert_string_equal(text, "1h02m");
    assert_true(act_int_from_text("-4", &s) && s == -4);
    assert_false(act_int_from_text("4x", &s) || act_int_from_text("", &s) || act_int_from_text(" 4", &s));
}

TEST(sizes_from_text)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"100", 100},
        {"0", 0},
        {"7B", 7},
        {"7b", 7},
        {"512 B", 512},
        {"500k", 512000},
        {"64M", 64 << 20},
        {"8MiB", 8 << 20},
        {"8mib", 8 << 20},
        {"8 MiB", 8 << 20},
        {"1.5G", UINT64_C(3) << 29},
        {"1.5 KiB", 1536},
        {"0.3k", 307},
        {"0.0009765625k", 1},
        {"2T", UINT64_C(2) << 40},
        {"3P", UINT64_C(3) << 50},
        {"18446744073709551615", UINT64_MAX},
        {"16383.9999999999999999999999P", UINT64_MAX},
    };
    static const char *const bad[] = {
        "",       " ",
        "k",      ".5k",
        "1.k",    "1.5",
        "1.5B",   "-1",
        "+1",     " 1",
        "1 ",     "1  k",
        "1k ",    "1e3",
        "0x10",   "10MB",
        "10MBit", "1i",
        "1iB",    "1KK",
        "1E",     "1,5k",
        "1.5.5k", "one",
        "16384P", "18446744073709551616",
        "inf",    "nan",
    };
    uint64_t bytes;

    for (size_t i = 0; i < COUNT(good); i++) {
        bytes = 1;
        if (!act_size_from_text(good[i].text, &bytes) || bytes != good[i].bytes)
            fail_msg("'%s' is %llu", good[i].text, (unsigned long long)bytes);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        bytes = 4711;
        if (act_size_from_text(bad[i], &bytes) || bytes != 4711)
            fail_msg("'%s' is taken for %llu", bad[i], (unsigned long long)bytes);
    }
}

TEST(crc64_of_known_texts)
{
    /* check value of the CRC catalogue; constants that other implementations test against */
    static const struct {
        const char *text;
        uint64_t crc;
        const char *base64, *hex;
    } rows[] = {
        {"", 0, "AAAAAAAAAAA=", "0000000000000000"},
        {"123456789", 0xae8b14860a799888, "iJh5CoYUi64=", "ae8b14860a799888"},
        {"hello world", 0x8d29d5c3f6ea8ebe, "vo7q9sPVKY0=", "8d29d5c3f6ea8ebe"},
        {"Hello World!", 208604604655264165, "peH8Xsgc5QI=", "02e51cc85efce1a5"},
        {"123456789!@#$%^&*()", 2153758901452455624, NULL, NULL},
    };
    char base64[ACT_CRC64_BASE64], hex[ACT_CRC64_HEX];
    uint64_t back;

    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t len = strlen(rows[i].text);
        assert_true(act_crc64(0, rows[i].text, len) == rows[i].crc);
        assert_true(act_crc64_portable(0, rows[i].text, len) == rows[i].crc);
        act_crc64_to_base64(rows[i].crc, base64);
        act_crc64_to_hex(rows[i].crc, hex);
        assert_true(act_crc64_from_base64(base64, &back) && back == rows[i].crc);
        assert_true(act_crc64_from_hex(hex, &back) && back == rows[i].crc);
        if (rows[i].base64) {
            assert_string_equal(base64, rows[i].base64);
            assert_string_equal(hex, rows[i].hex);
        }
    }
}

TEST(crc64_rejects_other_texts)
{
    static const char *const bad_base64[] = {"",
                                             "AAAAAAAAAAA",
                                             "AAAAAAAAAAAA",
                                             "AAAAAAAAAA==",
                                             "AAAAAAAAAAA=A",
                                             "AAAA AAAAAA=",
                                             "AAAA*AAAAAA=",
                                             "=AAAAAAAAAAA"};
    static const char *const bad_hex[] = {"",
                                          "0",
                                          "ae8b14860a79988",
                                          "ae8b14860a7998888",
                                          "ae8b14860a79988g",
                                          "0xae8b14860a7998",
                                          " ae8b14860a79988",
                                          "-e8b14860a799888"};
    uint64_t crc = 4711;

    for (size_t i = 0; i < COUNT(bad_base64); i++)
        assert_false(act_crc64_from_base64(bad_base64[i], &crc));
    for (size_t i = 0; i < COUNT(bad_hex); i++)
        assert_false(act_crc64_from_hex(bad_hex[i], &crc));
    assert_int_equal(crc, 4711);
    assert_true(act_crc64_from_hex("AE8B14860A799888", &crc) && crc == 0xae8b14860a799888);
}

/* Over every length, place and cut that may matter: the fast way, the tables and combining agree. */
TEST(crc64_ways_agree)
{
    enum { SIZE = 8192, ROUNDS = 2000 };
    static uint8_t data[SIZE];
    unsigned seed = 1;

    for (size_t i = 0; i < SIZE; i++)
        data[i] = (uint8_t)rand_r(&seed);
    for (int i = 0; i < ROUNDS; i++) {
        size_t at = i < 1024 ? (size_t)i % 16 : (size_t)rand_r(&seed) % (SIZE / 2);
        size_t len = i < 1024 ? (size_t)i : (size_t)rand_r(&seed) % (SIZE / 2);
        size_t cut = len ? (size_t)rand_r(&seed) % (len + 1) : 0;
        uint64_t whole = act_crc64_portable(0, data + at, len);
        uint64_t first = act_crc64(0, data + at, cut), second = act_crc64(0, data + at + cut, len - cut);
        assert_true(act_crc64(0, data + at, len) == whole);
        assert_true(act_crc64(first, data + at + cut, len - cut) == whole);
        assert_true(act_crc64_combine(first, second, len - cut) == whole);
    }
    assert_true(act_crc64_combine(0x8892e33292ee8afb, 0xed1099dc656ba335, 6) == 0x02e51cc85efce1a5);
}

/* Lengths whose bits do not fit into 64: appending 2^k zero bytes twice is appending 2^(k+1). */
TEST(crc64_combines_any_length)
{
    const uint64_t a = act_crc64(0, "a", 1);
    uint64_t zeros = act_crc64(0, "", 1); /* of 2^k zero bytes */

    for (int k = 0; k < 63; k++) {
        uint64_t len = UINT64_C(1) << k, twice = act_crc64_combine(zeros, zeros, len);
        assert_true(act_crc64_combine(act_crc64_combine(a, zeros, len), zeros, len) ==
                    act_crc64_combine(a, twice, 2 * len));
        zeros = twice;
    }
}

TEST(times_beyond_64_bits_are_the_last_ones)
{
    static const struct {
        struct timespec t;
        int64_t ns;
    } rows[] = {
        {{.tv_sec = 0, .tv_nsec = 1}, 1},
        {{.tv_sec = -1, .tv_nsec = 999999999}, -1},
        {{.tv_sec = 9223372036, .tv_nsec = 854775807}, INT64_MAX},
        {{.tv_sec = 9223372036, .tv_nsec = 854775808}, INT64_MAX},
        {{.tv_sec = 9223372037}, INT64_MAX},
        {{.tv_sec = INT64_MAX, .tv_nsec = 999999999}, INT64_MAX},
        {{.tv_sec = -9223372038}, INT64_MIN},
        {{.tv_sec = INT64_MIN}, INT64_MIN},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(act_timespec_ns(rows[i].t), rows[i].ns);
}

TEST(what_lies_below_is_reached_through_no_link)
{
    static const struct {
        const char *path;
        int flags, result; /* 0: a descriptor */
    } rows[] = {
        {"assets/run/log", O_RDONLY, 0},
        {"assets//run/log", O_RDONLY, 0},
        {"assets/new/deep/log", O_WRONLY, -ACT_NOT_FOUND},
        {"assets/new/deep/log", O_WRONLY | O_CREAT, 0},
        {"assets/out/log", O_RDONLY, -ACT_DENIED},
        {"assets/out/new/log", O_WRONLY | O_CREAT, -ACT_DENIED},
        {"assets/run/link", O_WRONLY | O_CREAT, -ACT_DENIED},
        {"assets/run/dangling", O_WRONLY | O_CREAT, -ACT_DENIED},
        {"assets/run/.", O_RDONLY | O_DIRECTORY, 0},
        {"assets/out/.", O_RDONLY | O_DIRECTORY, -ACT_DENIED},
    };
    char dir[] = "/tmp/act-test.XXXXXX";
    assert_non_null(mkdtemp(dir));
    ACT_AUTOFREE char *root = act_path_join(dir, "assets"), *real = act_path_join(dir, "real");
    ACT_AUTOFREE char *log = act_path_join(dir, "real/run/log"), *out = act_path_join(dir, "real/out");
    ACT_AUTOFREE char *link = act_path_join(dir, "real/run/link"), *dangling = act_path_join(dir, "real/run/dangling");

    assert_int_equal(act_file_write(log, "x", 1, 0600, &err), 0);
    assert_int_equal(symlink(real, root), 0); /* the root itself may be one */
    assert_int_equal(symlink("run", out), 0);
    assert_int_equal(symlink("log", link), 0);
    assert_int_equal(symlink("nothing", dangling), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ACT_AUTOFREE char *path = act_path_join(dir, rows[i].path);
        int fd = act_open_below(root, path, rows[i].flags, &err);
        assert_int_equal(fd < 0 ? fd : 0, rows[i].result);
        if (fd >= 0)
            close(fd);
        else if (fd == -ACT_DENIED)
            assert_contains(act_error_text(&err), "is a symbolic link");
    }
    assert_int_equal(act_remove_tree(dir, &err), 0);
}

TEST(names_and_looks_of_secrets)
{
    static const char *const secret[] = {
        "WANDB_API_KEY",
        "WANDB_KEY",
        "HF_TOKEN",
        "HUGGING_FACE_HUB_TOKEN",
        "my_password",
        "PGPASS",
        "PGPASSWORD",
        "SSHPASS",
        "MY_PASS",
        "DB_PASSWD",
        "DB_PWD",
        "MYSQL_PWD",
        "DB_PW",
        "MY_CREDS",
        "GITCREDS",
        "GIT_CREDENTIALS",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "AZURE_STORAGE_SAS",
        "CLIENT_SECRET",
        "CLIENTSECRETS",
        "GH_PAT",
        "AZURE_STORAGE_CONNECTION_STRING",
        "SLACK_WEBHOOK_URL",
        "SENTRY_DSN",
        "NPM_AUTH",
        "API_KEY_2",
        "apikey",
        "AWS_ACCESS_KEY_ID",
        "wandbApiKey",
        "MONKEY_KEY",
        "SESSION_COOKIE",
        "MY_JWT",
        "KEY",
        "TOKEN",
    };
    static const char *const harmless[] = {
        "PWD",
        "OLDPWD",
        "PATH",
        "PYTHONPATH",
        "PATTERN",
        "COMPAT",
        "BYPASS_CACHE",
        "PASSTHROUGH",
        "COMPASS",
        "KEYBOARD",
        "KEYWORDS",
        "MONKEY",
        "MONKEY_PATCH",
        "HOTKEY",
        "TOKENIZERS_PARALLELISM",
        "HF_TOKENIZER",
        "TOKENIZE",
        "AUTHOR",
        "GIT_ASKPASS",
        "SASHA",
        "OMP_NUM_THREADS",
        "NCCL_DEBUG",
        "LANG",
        "NUM_PASSES",
        "SPWDX",
        "",
    };

    for (size_t i = 0; i < COUNT(secret); i++)
        if (strcmp(act_env_shown(secret[i], "value"), "***") != 0)
            fail_msg("%s is shown", secret[i]);
    for (size_t i = 0; i < COUNT(harmless); i++)
        if (strcmp(act_env_shown(harmless[i], "value"), "value") != 0)
            fail_msg("%s is masked", harmless[i]);
}

TEST(what_gives_away_a_secret)
{
    static const struct {
        const char *name, *value;
        bool shown, given_away;
    } rows[] = {
        {"HTTPS_PROXY", "http://me:pass@proxy:3128", false, true},
        {"REDIS", "redis://:pass@host/0", false, true},
        {"DATA", "https://a.blob/c/b?sv=1&sig=abc%3D", false, true},
        {"STORE", "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=abc=", false, true},
        {"BUS", "Endpoint=sb://host/;SharedAccessKeyName=n;SharedAccessKey=abc=", false, true},
        {"REMOTE", "ssh://git@host/repo", true, false},
        {"PAGE", "https://host/a:b@c", true, false},
        {"TOKENIZERS_PARALLELISM", "false", true, false},
        {"MAX_TOKENS", "4096", false, false},
        {"USE_AUTH", "no", false, false},
        {"DB_PASSWORD", "12345", false, true},
        {"HF_TOKEN", "hf_abc", false, true},
        {"OMP_NUM_THREADS", "8", true, false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(act_env_shown(rows[i].name, rows[i].value) == rows[i].value, rows[i].shown);
        assert_int_equal(act_env_gives_away(rows[i].name, rows[i].value), rows[i].given_away);
    }
}

/* Last, because it leaves no room. */
TEST(many_long_errors_are_cut)
{
    struct act_error first;
    int i = 0;

    act_error_set(&first, ACT_FAIL, "%0300d", 1);
    do
        act_error_set(&err, ACT_FAIL, "%0300d", ++i);
    while (err.long_text && i < 100000);
    assert_true(i > 1000 && i < 100000);
    assert_true(act_starts_with(act_error_text(&err), "000"));
    assert_int_equal(atoi(strstr(act_error_text(&err), "...") + 3), i);
    assert_true(act_ends_with(act_error_text(&first), "001"));
}

/* How many pages of a service are read that begins a circle of so many after so many others. */
static int pages_read(int before, int circle, int most, int *out_rc)
{
    ACT_AUTO(act_pages) pages = {0};
    int n = 0;

    for (*out_rc = 0; *out_rc == 0; n++) {
        ACT_AUTOFREE char *token = act_sprintf("%d", n < before ? n : before + (n - before) % circle);
        *out_rc = act_pages_next(&pages, token, most, "list 'x'", &err);
    }
    return n;
}

TEST(pages_in_a_circle_come_to_an_end)
{
    enum { MOST = 10000 };
    int rc;

    for (int before = 0; before < 40; before += 3)
        for (int circle = 1; circle < 40; circle++) {
            int n = pages_read(before, circle, MOST, &rc);
            assert_fails(rc, err, ACT_FAIL, "cannot list 'x': the service names the same pages again and again");
            assert_in_range(n, before + circle + 1, 4 * (before + circle));
        }
}

TEST(pages_without_end_come_to_one)
{
    int rc;

    assert_int_equal(pages_read(1000, 1, 100, &rc), 100);
    assert_fails(rc, err, ACT_FAIL, "cannot list 'x': the list does not end after 100 pages");
}

TEST_MAIN(make_scratch, drop_scratch)
