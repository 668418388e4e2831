/* unzip_test.c - packages that come back as they were, and packages that want to do harm. Python makes them. */
#define TEST_SETUP    unzip_test_set_up
#define TEST_TEARDOWN unzip_test_tear_down
#include "unit/temp_dir.h"
#include "unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/text.h"
#include "node/child.h"
#include "node/confine.h"
#include "node/launcher.h"
#include "node/unzip.h"
#include "proc/proc.h"
#include "run/run.h"

static char *zip, *target;

static int unzip_test_set_up(void **state)
{
    int rc = make_dir(state);

    zip = act_path_join(dir, "p.zip");
    target = act_path_join(dir, "target");
    return rc;
}

static int unzip_test_tear_down(void **state)
{
    free(zip);
    free(target);
    return remove_dir(state);
}

/* Runs Python with add(name, data, mode), patch(at, bytes) for the finished file, and find(bytes). */
static void make_zip_only(const char *python)
{
    static const char before[] = "import zipfile, sys, struct, warnings\n"
                                 "warnings.simplefilter('ignore')\n"
                                 "path = sys.argv[1]\n"
                                 "z = zipfile.ZipFile(path, 'w')\n"
                                 "def add(name, data='', mode=0o100644, system=3, method=8):\n"
                                 "    i = zipfile.ZipInfo(); i.filename = name; i.create_system = system\n"
                                 "    i.external_attr = mode << 16; i.compress_type = method; z.writestr(i, data)\n"
                                 "def link(name, to): add(name, to, 0o120777)\n"
                                 "def done():\n"
                                 "    z.close(); return bytearray(open(path, 'rb').read())\n"
                                 "def save(b): open(path, 'wb').write(b)\n";
    ACT_AUTO(act_strv) argv = {0};
    int status;

    unlink(zip);
    act_strv_push(&argv, "/usr/bin/python3");
    act_strv_push(&argv, "-c");
    act_strv_pushf(&argv, "%s%s\nz.close()\n", before, python);
    act_strv_push(&argv, zip);
    assert_ok(proc_run(argv.v, PATIENCE_S, 1 << 16, NULL, &status, &err), err);
    assert_int_equal(status, 0);
}

static void make_zip(const char *python)
{
    assert_ok(act_remove_tree(target, &err), err);
    make_zip_only(python);
}

static mode_t unzip_test_mode_of(const char *name)
{
    ACT_AUTOFREE char *path = act_path_join(target, name);
    struct stat st;

    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode;
}

static void assert_file(const char *name, const char *text)
{
    ACT_AUTOFREE char *path = act_path_join(target, name);
    ACT_AUTOFREE char *found = NULL;

    assert_ok(act_file_read(path, 1 << 24, &found, NULL, &err), err);
    assert_string_equal(found, text);
}

TEST(test_tree_comes_back)
{
    char to[100], sha256[ACT_SHA256_HEX];

    make_zip("add('a.txt', 'hello')\n"
             "add('deep/er/b.sh', '#!/bin/sh', 0o100755)\n"
             "add('stored', 'plain', method=0)\n"
             "add('empty', '')\n"
             "add('no-folder-entry/x', 'y')\n"
             "add('ro/', '', 0o40555)\n"
             "add('ro/file', 'in', 0o100444)\n"
             "link('deep/up', '../a.txt')\n"
             "link('deep/er/far', '../../ro/file')\n"
             "link('dangling', 'data/later')\n"
             "link('self', '.')\n"
             "link('venv/bin/python3', '/usr/bin/python3')\n"
             "link('out', '../../elsewhere')\n"
             "add('dos', 'x', 0, 0)\n"
             "add('setuid', 'x', 0o104755)\n"
             "add('new\\nline \\'q\\' \\u00e4', 'odd')\n"
             "add('big', 'z' * 3000000)");
    assert_ok(act_sha256_file(zip, sha256, &err), err);
    assert_ok(node_unzip(zip, sha256, target, false, &err), err);
    assert_file("a.txt", "hello");
    assert_file("stored", "plain");
    assert_file("empty", "");
    assert_file("no-folder-entry/x", "y");
    assert_file("ro/file", "in");
    assert_file("deep/up", "hello");
    assert_file("deep/er/far", "in");
    assert_file("new\nline 'q' \xc3\xa4", "odd");
    assert_int_equal(unzip_test_mode_of("a.txt"), S_IFREG | 0644);
    assert_int_equal(unzip_test_mode_of("deep/er/b.sh"), S_IFREG | 0755);
    assert_int_equal(unzip_test_mode_of("ro"), S_IFDIR | 0755);
    assert_int_equal(unzip_test_mode_of("ro/file"), S_IFREG | 0444);
    assert_int_equal(unzip_test_mode_of("dos"), S_IFREG | 0644);
    assert_int_equal(unzip_test_mode_of("setuid"), S_IFREG | 0755);
    assert_true(S_ISLNK(unzip_test_mode_of("dangling")));
    assert_true(S_ISLNK(unzip_test_mode_of("venv/bin/python3")));
    assert_true(S_ISLNK(unzip_test_mode_of("out")));
    ACT_AUTOFREE char *link = act_path_join(target, "dangling");
    ssize_t n = readlink(link, to, sizeof(to));
    assert_int_equal(n, 10);
    ACT_AUTOFREE char *big = act_path_join(target, "big");
    struct stat st;
    assert_int_equal(stat(big, &st), 0);
    assert_int_equal(st.st_size, 3000000);
}

TEST(test_hostile)
{
    static const struct {
        const char *python, *text;
    } rows[] = {
        {"add('/tmp/act-evil', 'x')", "leads out of the target"},
        {"add('../evil', 'x')", "leads out of the target"},
        {"add('a/../../evil', 'x')", "leads out of the target"},
        {"add('a//b', 'x')", "leads out of the target"},
        {"add('./a', 'x')", "leads out of the target"},
        {"link('l', '/tmp'); add('l/act-evil', 'x')", "something else besides"},
        {"add('l/act-evil', 'x'); link('l', '/tmp')", "something else besides"},
        {"link('l', '..'); add('l/act-evil', 'x')", "something else besides"},
        {"link('l', '')", "impossible length"},
        {"link('l', 'x' * 5000)", "impossible length"},
        {"link('l', 'a\\0b')", "impossible name"},
        {"link('l', 'sub'); add('l/evil', 'x')", "something else besides"},
        {"add('l/evil', 'x'); link('l', 'sub')", "something else besides"},
        {"add('f', '1'); add('f', '2')", "appears twice"},
        {"add('f', '1'); add('f/g', '2')", "cannot make"},
        {"add('f/', '', 0o40755); add('f', '1')", "appears twice"},
        {"add('dev', '', 0o020666)", "neither a file nor a folder nor a link"},
        {"add('fifo', '', 0o010666)", "neither a file nor a folder nor a link"},
        {"add('x', '', 0o40755)", "does not know whether it is a folder"},
        {"add('x/', 'data', 0o100644)", "does not know whether it is a folder"},
        {"add('n' * 300, 'x')", "File name too long"},
        {"save(b'')", "not a zip file"},
        {"z.close(); save(b'not a zip at all, not at all')", "not a zip file"},
        {"add('a', 'x' * 1000); b = done(); save(b[:len(b) // 2])", "not a zip file"},
        {"add('enc', 'x'); b = done(); at = b.find(b'PK\\x01\\x02'); b[at + 8] |= 1; save(b)", "is encrypted"},
        {"add('crc', 'x' * 50, method=0); b = done(); b[b.find(b'xxx')] = 121; save(b)", "checksum"},
        {"add('bits', 'abc' * 5000); b = done(); b[45] ^= 0x55; b[50] ^= 0x55; save(b)", "is damaged"},
        {"add('bomb', 'x'); b = done(); at = b.find(b'PK\\x01\\x02')\n"
         "b[at + 24:at + 28] = struct.pack('<I', 0xfffffff0); save(b)",
         "bomb"},
        {"add('name', 'x'); b = done().replace(b'name', b'na\\0e'); save(b)", "leads out of the target"},
        {"add('m', 'x'); b = done(); at = b.find(b'PK\\x01\\x02'); b[8] = b[at + 10] = 99; save(b)", "not known here"},
        {"add('toc', 'x'); add('toc2', 'y'); b = done(); at = b.rfind(b'PK\\x01\\x02'); b[at] = 0; save(b)",
         "table of contents is damaged"},
        {"add('f/', '', 0o40755); add('f/', '', 0o40755)", "appears twice"},
        {"add('a', 'x' * 99); add('b', 'x' * 99); b = done(); at = b.rfind(b'PK\\x01\\x02')\n"
         "b[at + 42:at + 46] = bytes(4); save(b)",
         "shares its data"},
        {"add('a', 'x' * 99); add('b', 'x' * 99); b = done(); at = b.find(b'PK\\x01\\x02')\n"
         "b[at + 42:at + 46] = b[b.rfind(b'PK\\x01\\x02') + 42:][:4]\n"
         "save(b)",
         "shares its data"},
        {"add('a', 'x'); b = done(); b[30] = 98; save(b)", "is damaged"},
        {"add('far', 'x'); b = done(); at = b.find(b'PK\\x01\\x02'); b[at + 42:at + 46] = struct.pack('<I', 10**6)\n"
         "save(b)",
         "its data is not in the file"},
        {"add('ratio', 'x' * 9); b = done(); at = b.find(b'PK\\x01\\x02')\n"
         "b[22:26] = b[at + 24:at + 28] = struct.pack('<I', 10**9); save(b)",
         "is shorter than it says"},
        {"add('n', 'x'); b = done(); b[-14:-10] = struct.pack('<HH', 2, 2); save(b)", "table of contents is damaged"},
        {"add('n', 'x'); b = done(); b[-14:-10] = struct.pack('<HH', 0, 0); save(b)", "table of contents is damaged"},
        {"add('n', 'x'); b = done(); b[-12:-10] = bytes([255, 255]); save(b)", "not a zip file"},
        {"import os; add('large', os.urandom(5 << 20)); b = done(); b[2000] ^= 0x55; save(b)", "is damaged"},
        {"add('large', 'x' * (5 << 20), method=0); b = done(); b[2000] ^= 0x55; save(b)", "checksum"},
        {"z.close(); b = bytearray(open(path, 'rb').read()); b = b'junk' + b; save(b)", NULL},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        err = (struct act_error){0};
        make_zip(act_starts_with(rows[i].python, "save(b'')") ? "z.close = lambda: None\nsave(b'')" : rows[i].python);
        int rc = node_unzip(zip, NULL, target, false, &err);
        if (!rows[i].text)
            continue; /* either way, as long as nothing breaks */
        if (rc == 0 || !strstr(act_error_text(&err), rows[i].text))
            fail_msg("%s: %d %s", rows[i].python, rc, rc ? act_error_text(&err) : "");
        ACT_AUTOFREE char *evil = act_path_join(dir, "evil");
        assert_int_equal(access(evil, F_OK), -1);
        assert_int_equal(access("/tmp/act-evil", F_OK), -1);
    }
}

/* Declared sizes that lie, in the entry and in the table of contents alike. */
TEST(test_sizes_that_lie)
{
    static const long lies[] = {1, 999, 1001, 100000};

    for (size_t i = 0; i < COUNT(lies); i++) {
        ACT_AUTOFREE char *python = act_sprintf("add('lie', 'x' * 1000); b = done(); at = b.find(b'PK\\x01\\x02')\n"
                                                "b[22:26] = b[at + 24:at + 28] = struct.pack('<I', %ld); save(b)",
                                                lies[i]);
        make_zip(python);
        if (node_unzip(zip, NULL, target, false, &err) == 0 || !strstr(act_error_text(&err), "'lie' is "))
            fail_msg("%ld: %s", lies[i], act_error_text(&err));
    }
}

/* What goes through zlib in pieces. */
TEST(test_large_files)
{
    static const long lies[] = {(5 << 20) - 1, (5 << 20) + 1};
    struct stat st;

    make_zip("import random\n"
             "random.seed(1)\n"
             "data = random.randbytes(5 << 20)\n"
             "add('packed', data); add('stored', data, method=0); add('zeros', bytes(30 << 20))");
    assert_ok(node_unzip(zip, NULL, target, false, &err), err);
    char sums[3][ACT_SHA256_HEX];
    static const char *const names[] = {"packed", "stored", "zeros"};
    for (size_t i = 0; i < COUNT(names); i++) {
        ACT_AUTOFREE char *path = act_path_join(target, names[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, i < 2 ? 5 << 20 : 30 << 20);
        assert_ok(act_sha256_file(path, sums[i], &err), err);
    }
    assert_string_equal(sums[0], sums[1]);

    for (size_t i = 0; i < COUNT(lies); i++) {
        ACT_AUTOFREE char *python = act_sprintf("add('lie', bytes(5 << 20)); b = done(); at = b.find(b'PK\\x01\\x02')\n"
                                                "b[22:26] = b[at + 24:at + 28] = struct.pack('<I', %ld); save(b)",
                                                lies[i]);
        make_zip(python);
        if (node_unzip(zip, NULL, target, false, &err) == 0 || !strstr(act_error_text(&err), "'lie' is "))
            fail_msg("%ld: %s", lies[i], act_error_text(&err));
    }
}

/* More entries than one thread takes at once, in folders without entries of their own; numbers of 64 bits. */
TEST(test_many_files)
{
    make_zip("for i in range(3000): add('d%d/e%d/f%d' % (i % 7, i % 3, i), str(i))\n"
             "with z.open(zipfile.ZipInfo('wide'), 'w', force_zip64=True) as f: f.write(b'w')\n"
             "i = z.getinfo('wide')\n"
             "i.external_attr = 0o100644 << 16");
    assert_ok(node_unzip(zip, NULL, target, false, &err), err);
    assert_file("d4/e2/f11", "11");
    assert_file("wide", "w");
}

/* What a run left in its code root stays when it starts anew, and what belongs to the package comes back. */
TEST(test_over)
{
    make_zip("add('train.py', 'new'); add('lib/a.py', 'a'); add('to/be/b', 'b', 0o100444); link('now', 'lib')");
    ACT_AUTOFREE char *elsewhere = act_path_join(dir, "elsewhere");
    ACT_AUTOFREE char *shell = act_sprintf(
        "cd %s && mkdir -p elsewhere target/lib target/checkpoints && cd target && echo changed >train.py && "
        "echo ten >checkpoints/10 && echo own >lib/own && ln -s ../elsewhere to && ln -s ../elsewhere lib/a.py && "
        "echo plain >now",
        dir);
    char sh[] = "/bin/sh", c[] = "-c";
    char *const argv[] = {sh, c, shell, NULL};
    int status;
    assert_ok(proc_run(argv, PATIENCE_S, 1 << 16, NULL, &status, &err), err);
    assert_int_equal(status, 0);
    for (int i = 0; i < 2; i++) {
        assert_ok(node_unzip(zip, NULL, target, true, &err), err);
        assert_file("train.py", "new");
        assert_file("lib/a.py", "a");
        assert_file("to/be/b", "b");
        assert_file("now/own", "own\n");
        assert_file("checkpoints/10", "ten\n");
        assert_true(S_ISDIR(unzip_test_mode_of("to")));
    }
    assert_int_equal(rmdir(elsewhere), 0); /* nothing was written through a link */

    assert_ok(node_unzip(zip, NULL, target, true, &err), err);
    make_zip_only("add('checkpoints', 'a file')");
    assert_true(node_unzip(zip, NULL, target, true, &err) < 0);
    assert_contains(act_error_text(&err), "cannot make 'checkpoints'");
    assert_file("checkpoints/10", "ten\n");
}

/* The names in the folder of the test, with blanks. New string. */
static char *names_in_dir(void)
{
    ACT_AUTO(act_strv) names = {0};
    struct act_buf text = {0};
    DIR *d = opendir(dir);

    for (const struct dirent *e; d && (e = readdir(d));)
        act_strv_push(&names, e->d_name);
    if (d)
        closedir(d);
    act_strv_sort(&names);
    for (size_t i = 0; i < names.n; i++)
        act_buf_addf(&text, "%s ", names.v[i]);
    return act_buf_steal(&text);
}

static void write_zip(const char *data, size_t len)
{
    int fd = open(zip, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(act_write_all(fd, data, len), 0);
    close(fd);
}

/* Some bytes are changed, mostly where they mean something, or the end is missing: any outcome is right as long as
 * nothing breaks and nothing is written elsewhere. */
TEST(test_changed_bytes)
{
    enum { ROUNDS = 1000, CHANGES = 4 };
    ACT_AUTOFREE char *data = NULL;
    size_t len, good = 0;

    make_zip("add('a', 'abc' * 50); add('b/', '', 0o40755); add('b/c', 'stored', method=0); link('l', '../..')\n"
             "add('b/d/e', 'x' * 3000); z.comment = b'comment'\n"
             "with z.open(zipfile.ZipInfo('wide'), 'w', force_zip64=True) as f: f.write(b'w')");
    assert_ok(act_file_read(zip, 1 << 20, &data, &len, &err), err);
    srandom(1);
    for (int round = 0; round < ROUNDS; round++) {
        ACT_AUTOFREE char *changed = act_alloc(len);
        size_t n = round % 10 ? len : (size_t)random() % len;
        memcpy(changed, data, len);
        for (int i = 0; i <= round % CHANGES; i++)
            changed[(size_t)random() % len] = random() % 2 ? (char)random() : (char)(random() % 3 - 1);
        write_zip(changed, n);
        good += node_unzip(zip, NULL, target, false, &err) == 0;
        ACT_AUTOFREE char *names = names_in_dir();
        if (strcmp(names, ". .. p.zip ") != 0)
            assert_string_equal(names, ". .. p.zip target ");
        assert_ok(act_remove_tree(target, &err), err);
    }
    assert_in_range(good, 1, ROUNDS / 2);
}

TEST(test_disk_is_too_small)
{
    make_zip("import io\n"
             "for i in range(300): add('f%d' % i, '')\n"
             "b = done(); at = b.find(b'PK\\x01\\x02')\n"
             "while at >= 0:\n"
             "    b[at + 24:at + 28] = struct.pack('<I', 0xfffffff0); at = b.find(b'PK\\x01\\x02', at + 1)\n"
             "save(b)");
    int rc = node_unzip(zip, NULL, target, false, &err);
    assert_true(rc < 0); /* 1.2 TiB declared; where that fits, the first entry is found out */
}

/* The first has 1 MiB and would unpack to a GiB and more; what is no more than that is nobody's disk full. */
TEST(test_bomb)
{
    make_zip("i = zipfile.ZipInfo('zeros'); i.compress_type = zipfile.ZIP_DEFLATED\n"
             "with z.open(i, 'w') as f:\n"
             "    for _ in range(1025): f.write(bytes(1 << 20))");
    assert_fails(node_unzip(zip, NULL, target, false, &err), err, ACT_FAIL,
                 "and unpacks to 1.0 GiB, more than 100 times");
    ACT_AUTOFREE char *path = act_path_join(target, "zeros");
    assert_int_equal(access(path, F_OK), -1);
    assert_ok(run_check_unpacked(1, UINT64_C(1) << 30, &err), err);
    assert_ok(run_check_unpacked(UINT64_C(1) << 30, UINT64_C(100) << 30, &err), err);
    assert_int_equal(run_check_unpacked(UINT64_C(1) << 30, UINT64_C(101) << 30, &err), -ACT_FAIL);
    assert_int_equal(run_check_unpacked(0, UINT64_MAX, &err), -ACT_FAIL);
}

TEST(test_checksum)
{
    char wrong[ACT_SHA256_HEX];

    make_zip("add('a', 'b')");
    memset(wrong, '0', ACT_SHA256_HEX - 1);
    wrong[ACT_SHA256_HEX - 1] = '\0';
    assert_true(node_unzip(zip, wrong, target, false, &err) < 0);
    assert_contains(act_error_text(&err), "cannot unpack 'p.zip': its SHA-256 is ");
    assert_int_equal(access(target, F_OK), -1);
    assert_int_equal(mkdir(target, 0755), 0);
    assert_true(node_unzip(zip, wrong, target, true, &err) < 0);
    assert_int_equal(rmdir(target), 0); /* nothing was written over what is there */
    unlink(zip);
    assert_int_equal(node_unzip(zip, wrong, target, false, &err), -ACT_NOT_FOUND);
}

/* ---- in a process of its own ---- */

static int unzip_test_use_file(const char *in, const char *name, int flags)
{
    ACT_AUTOFREE char *path = act_path_join(in, name);
    int fd = open(path, flags | O_CLOEXEC, 0600);

    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

/* In a process of its own; the exit status names the first line that is not as it should be. */
static int live_confined(void *arg)
{
    bool held = confine_to(target, zip);

    (void)arg;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return 1;
    if (unzip_test_use_file(target, "in", O_WRONLY | O_CREAT) != 0 ||
        unzip_test_use_file(target, "in", O_WRONLY | O_TRUNC) != 0)
        return 2;
    if (unzip_test_use_file(dir, "p.zip", O_RDONLY) != 0)
        return 3;
    if (!held)
        return 77; /* the kernel cannot: what follows does not hold */
    if (unzip_test_use_file(dir, "out", O_WRONLY | O_CREAT) != EACCES)
        return 4;
    return unzip_test_use_file(dir, "p.zip", O_WRONLY) == EACCES &&
                   unzip_test_use_file("/etc", "passwd", O_RDONLY) == EACCES
               ? 0
               : 5;
}

TEST(test_confined)
{
    make_zip("add('a', 'x')");
    assert_ok(act_mkdir_all(target, 0755, &err), err);
    int got = child_exit_status(child_wait(child_start(&(struct child){.run = live_confined, .out_fd = -1})));
    assert_int_equal(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0); /* it is that process only */
    assert_int_equal(unzip_test_use_file(dir, "out", O_WRONLY | O_CREAT), 0);
    if (got == 77)
        print_message("not tested: this kernel has no Landlock\n");
    else
        assert_int_equal(got, 0);
}

TEST(test_apart)
{
    char sha256[ACT_SHA256_HEX];

    make_zip("for i in range(99): add(f'd{i % 7}/f{i}', str(i) * i, 0o100640)\n"
             "link('d1/l', '../d2/f2')\n"
             "add('ro/', '', 0o40555)");
    assert_ok(act_sha256_file(zip, sha256, &err), err);
    assert_ok(node_unzip_apart(zip, sha256, target, false, &err), err);
    assert_file("d1/l", "22");
    assert_ok(node_unzip_apart(zip, sha256, target, true, &err), err); /* over what is there */
    assert_file("d6/f6", "666666");
    assert_int_equal(unzip_test_mode_of("d6/f6"), S_IFREG | 0640);

    assert_ok(act_remove_tree(target, &err), err);
    sha256[0] = sha256[0] == '0' ? '1' : '0';
    assert_true(node_unzip_apart(zip, sha256, target, false, &err) < 0);
    assert_contains(act_error_text(&err), "cannot unpack 'p.zip': its SHA-256 is ");
    assert_int_equal(access(target, F_OK), -1); /* nothing stays */
    make_zip("add('../evil', 'x')");
    assert_true(node_unzip_apart(zip, NULL, target, false, &err) < 0);
    assert_contains(act_error_text(&err), "leads out of the target");
    unlink(zip);
    assert_int_equal(node_unzip_apart(zip, NULL, target, false, &err), -ACT_NOT_FOUND);
}

static int wait_at_pipe(void *arg)
{
    (void)arg;
    return node_unzip_apart(zip, "?", target, true, &err) < 0 ? 0 : 1;
}

static pid_t child_of(pid_t parent)
{
    ACT_AUTOFREE char *path = act_sprintf("/proc/%d/task/%d/children", (int)parent, (int)parent);
    char text[32] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

    if (fd >= 0)
        close(fd);
    return n > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

/* The process that unpacks is caught while it reads a zip that is a pipe. */
TEST(test_apart_is_confined)
{
    enum { TRIES = 20000 };
    int writer = -1;

    unlink(zip);
    assert_int_equal(mkfifo(zip, 0600), 0);
    pid_t parent = child_start(&(struct child){.run = wait_at_pipe, .out_fd = -1});
    for (int i = 0; i < TRIES && writer < 0; i++) {
        writer = open(zip, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        if (writer < 0)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_true(writer >= 0);
    ACT_AUTOFREE char *path = act_sprintf("/proc/%d/status", (int)child_of(parent));
    ACT_AUTOFREE char *text = NULL;
    assert_ok(act_file_read(path, 1 << 16, &text, NULL, &err), err);
    close(writer);
    assert_int_equal(child_exit_status(child_wait(parent)), 0);
    assert_non_null(strstr(text, "\nNoNewPrivs:\t1\n"));
    unlink(zip);
}

TEST(test_mpirun_version)
{
    static const struct {
        const char *text;
        int major;
    } rows[] = {
        {"mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/\n", 4},
        {"mpirun (Open MPI) 5.0.3\n", 5},
        {"mpiexec (OpenRTE) 3.1.0\n", 3},
        {"HYDRA build details:\n    Version: 4.0\n", 0},
        {"", 0},
        {"mpirun (Open MPI) x", 0},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(launcher_mpirun_version(rows[i].text), rows[i].major);
}

TEST_MAIN(NULL, NULL)
