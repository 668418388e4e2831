/* site_test.c - the same cases on this machine, and through a connection to site_serve(); or, with ACT_TEST_LOGIN,
 * through ssh to that host, which must be this machine. Then what neither side may believe of the other. */
#include "unit/killed.h"
#include "unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/text.h"
#include "codec/deflate.h"
#include "codec/json.h"
#include "site/frame.h"
#include "site/site.h"
#include "site/site_internal.h"

static char *home, *root; /* of one case */
static struct site *site;
static pid_t server;

/* ---- the two ways ---- */

static int site_test_open_here(void **state)
{
    (void)state;
    assert_ok(site_open(&(struct site_options){.root = root}, &site, &err), err);
    return 0;
}

static int site_test_start_server(void)
{
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    server = fork();
    assert_true(server >= 0);
    if (server == 0) {
        close(ends[0]);
        _exit(site_serve(root, ends[1], ends[1]));
    }
    close(ends[1]);
    return ends[0];
}

static int open_wire(void **state)
{
    const char *login = getenv("ACT_TEST_LOGIN");

    (void)state;
    if (login) {
        assert_ok(site_open(&(struct site_options){.login = login, .root = root}, &site, &err), err);
        return 0;
    }
    int fd = site_test_start_server();
    site = act_calloc(1, sizeof(*site));
    assert_ok(wire_open_fds(fd, fd, site, &err), err);
    return 0;
}

static int site_test_setup(void **state)
{
    (void)state;
    home = act_strdup("/tmp/act-site-XXXXXX");
    assert_non_null(mkdtemp(home));
    root = act_path_join(home, "the root");
    return 0;
}

static int setup_here(void **state)
{
    return site_test_setup(state) || site_test_open_here(state);
}

static int setup_wire(void **state)
{
    return site_test_setup(state) || open_wire(state);
}

static int site_test_teardown(void **state)
{
    int status = 0;

    (void)state;
    site_free(site);
    site = NULL;
    if (server > 0) {
        assert_int_equal(waitpid(server, &status, 0), server);
        assert_int_equal(status, 0); /* the end of the input is a good end */
    }
    server = 0;
    assert_ok(act_remove_tree(home, &err), err);
    free(home);
    free(root);
    return 0;
}

static bool is_wire(void)
{
    return site->wire != NULL;
}

/* ---- helpers ---- */

static struct run_spec site_test_make_spec(void)
{
    struct run_spec spec = {
        .id = run_id_new("site", act_now_unix_s()),
        .experiment = act_strdup("site"),
        .cluster = act_strdup("lab"),
        .platform = act_strdup("slurm"),
        .created_unix_s = act_now_unix_s(),
        .nodes = 1,
        .procs_per_node = 1,
    };

    act_strv_push(&spec.argv, "echo");
    act_strv_push(&spec.argv, "\xff not UTF-8");
    run_spec_add_env(&spec, "PLAIN", "value");
    run_spec_add_env(&spec, "MY_TOKEN", "hush");
    return spec;
}

/* A run with nothing but what every run has. New string: its id. */
static char *site_test_make_run(void)
{
    ACT_AUTO(run_spec) spec = site_test_make_spec();
    bool existed = true;

    assert_ok(site_create_run(site, &(struct site_new){.spec = &spec}, &existed, &err), err);
    assert_false(existed);
    char *id = act_strdup(spec.id);
    return id;
}

static char *site_test_in_root(const char *name)
{
    return act_path_join(root, name);
}

static char *in_run(const char *id, const char *name)
{
    return act_sprintf("%s/runs/%s/%s", root, id, name);
}

static void site_test_put_file(const char *path, const char *text)
{
    assert_ok(act_file_write(path, text, strlen(text), 0600, &err), err);
}

static mode_t site_test_mode_of(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        fail_msg("%s: %s", path, strerror(errno));
    return st.st_mode & 07777;
}

static int site_test_count_in(const char *dir)
{
    DIR *d = opendir(dir);
    int n = 0;

    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

static char *site_test_text_of(const char *id, const char *name)
{
    char *text;

    assert_ok(site_read_text(site, id, name, &text, &err), err);
    return text;
}

/* ---- runs ---- */

/* A test of this machine, and the same over the wire. */
#define BOTH(name)                                                                                                     \
    static void name(void **state);                                                                                    \
    TEST_ADD(name, name, setup_here, site_test_teardown)                                                               \
    TEST_ADD(name##_wire, name, setup_wire, site_test_teardown)                                                        \
    static void name(__attribute__((unused)) void **state)

BOTH(test_names)
{
    ACT_AUTOFREE char *dir = site_run_dir(site, "a_1_00000000");
    ACT_AUTOFREE char *wanted = site_test_in_root("runs/a_1_00000000");

    assert_string_equal(site_root(site), root);
    assert_string_equal(dir, wanted);
}

BOTH(test_create)
{
    static const struct {
        const char *name;
        mode_t mode;
    } rows[] = {{"", 0700},
                {RUN_FILE_SPEC, 0600},
                {RUN_FILE_SECRETS, 0600},
                {RUN_FILE_STATUS, 0600},
                {RUN_DIR_SYSTEM, 0700},
                {"../../new", 0700}};
    ACT_AUTO(run_spec) spec = site_test_make_spec(), back = {0};
    struct site_state states;
    bool existed = true;

    assert_ok(site_create_run(site, &(struct site_new){.spec = &spec}, &existed, &err), err);
    assert_false(existed);
    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *path = in_run(spec.id, rows[i].name);
        assert_int_equal(site_test_mode_of(path), rows[i].mode);
    }
    ACT_AUTOFREE char *path = in_run(spec.id, RUN_FILE_SPEC);
    ACT_AUTOFREE char *secrets = in_run(spec.id, RUN_FILE_SECRETS);
    assert_ok(run_spec_read(path, &back, &err), err);
    assert_string_equal(back.argv.v[1], "\xff not UTF-8");
    assert_null(back.env[1].value);
    assert_ok(run_secrets_read(&back, secrets, &err), err);
    assert_string_equal(back.env[1].value, "hush");

    const char *id = spec.id;
    assert_ok(site_states(site, &id, 1, &states, &err), err);
    assert_true(states.there);
    assert_int_equal(states.status.state, RUN_QUEUED);
    assert_null(states.job);
    site_states_release(&states, 1);

    ACT_AUTOFREE char *mark = in_run(id, "mark");
    ACT_AUTOFREE char *fresh = site_test_in_root("new");
    site_test_put_file(mark, "x");
    assert_ok(site_create_run(site, &(struct site_new){.spec = &spec}, &existed, &err), err);
    assert_true(existed);
    assert_int_equal(access(mark, F_OK), 0);
    assert_int_equal(site_test_count_in(fresh), 0);
}

BOTH(test_create_badly)
{
    static const char *const ids[] = {"", "x", "../x", "..", "a/b_1_00000000"};
    ACT_AUTOFREE char *runs = site_test_in_root("runs");
    bool existed;

    for (size_t i = 0; i < COUNT(ids); i++) {
        struct run_spec spec = site_test_make_spec();
        free(spec.id);
        spec.id = act_strdup(ids[i]);
        assert_true(site_create_run(site, &(struct site_new){.spec = &spec}, &existed, &err) < 0);
        run_spec_release(&spec);
    }
    assert_int_equal(site_test_count_in(runs), 0);
}

/* A package of size bytes, which the specification names. New string: its path. */
static char *site_test_make_package(struct run_spec *spec, const char *dir, size_t size)
{
    ACT_AUTOFREE char *data = act_alloc(size);
    char *path = act_sprintf("%s/package-%d", dir, (int)getpid());

    for (size_t i = 0; i < size; i++)
        data[i] = (char)(i * 7 + i / 251);
    assert_ok(act_file_write(path, data, size, 0600, &err), err);
    assert_ok(act_sha256_file(path, spec->package_sha256, &err), err);
    spec->package_bytes = (int64_t)size;
    return path;
}

static void assert_same_file(const char *a, const char *b)
{
    char one[ACT_SHA256_HEX], other[ACT_SHA256_HEX];

    assert_ok(act_sha256_file(a, one, &err), err);
    assert_ok(act_sha256_file(b, other, &err), err);
    assert_string_equal(one, other);
}

static ino_t inode_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_ino;
}

BOTH(test_package)
{
    enum { SIZE = 3000001 };
    ACT_AUTO(run_spec) spec = site_test_make_spec(), second = site_test_make_spec();
    ACT_AUTOFREE char *package = site_test_make_package(&spec, home, SIZE);
    ACT_AUTOFREE char *in_first = in_run(spec.id, RUN_FILE_PACKAGE);
    ACT_AUTOFREE char *in_second = in_run(second.id, RUN_FILE_PACKAGE);
    bool existed;

    memcpy(second.package_sha256, spec.package_sha256, sizeof(spec.package_sha256));
    assert_ok(site_create_run(site, &(struct site_new){.spec = &spec, .package = package}, &existed, &err), err);
    assert_same_file(package, in_first);
    if (!is_wire()) /* a second name of the same file */
        assert_int_equal(inode_of(package), inode_of(in_first));
    assert_ok(site_create_run(site, &(struct site_new){.spec = &second, .package = package}, &existed, &err), err);
    assert_int_equal(inode_of(in_second), inode_of(in_first)); /* it was not brought again */
}

static bool on_another_disk(const char *dir)
{
    struct stat a, b;

    return stat(dir, &a) == 0 && stat(home, &b) == 0 && a.st_dev != b.st_dev;
}

BOTH(test_package_of_another_disk)
{
    bool existed;

    if (!on_another_disk("/dev/shm"))
        skip();
    ACT_AUTO(run_spec) spec = site_test_make_spec(), second = site_test_make_spec();
    ACT_AUTOFREE char *package = site_test_make_package(&spec, "/dev/shm", 100000);
    ACT_AUTOFREE char *in_first = in_run(spec.id, RUN_FILE_PACKAGE);
    ACT_AUTOFREE char *in_second = in_run(second.id, RUN_FILE_PACKAGE);
    ACT_AUTOFREE char *kept = act_sprintf("%s/packages/%s.zip", root, spec.package_sha256);
    memcpy(second.package_sha256, spec.package_sha256, sizeof(spec.package_sha256));
    assert_ok(site_create_run(site, &(struct site_new){.spec = &spec, .package = package}, &existed, &err), err);
    assert_ok(site_create_run(site, &(struct site_new){.spec = &second, .package = package}, &existed, &err), err);
    unlink(package);
    assert_int_equal(inode_of(in_first), inode_of(kept));
    assert_int_equal(inode_of(in_second), inode_of(kept));
    assert_int_equal(site_test_mode_of(kept), 0600);
}

/* A package that is not what its name says never becomes one. */
TEST_IN(test_package_is_checked, setup_wire, site_test_teardown)
{
    ACT_AUTO(run_spec) spec = site_test_make_spec();
    ACT_AUTOFREE char *package = site_test_make_package(&spec, home, 1000);
    ACT_AUTOFREE char *packages = site_test_in_root("packages");
    ACT_AUTOFREE char *runs = site_test_in_root("runs");
    ACT_AUTOFREE char *fresh = site_test_in_root("new");
    bool existed;

    site_test_put_file(package, "something else");
    assert_int_equal(site_create_run(site, &(struct site_new){.spec = &spec, .package = package}, &existed, &err),
                     -ACT_TEMPORARY);
    assert_int_equal(site_test_count_in(packages) + site_test_count_in(runs) + site_test_count_in(fresh), 0);
    free(site_test_make_run()); /* the connection is still of use */
}

/* The disk becomes full, the quota is reached: here the limit of a file's size. */
BOTH(test_no_space)
{
    const struct rlimit small = {4096, RLIM_INFINITY}, any = {RLIM_INFINITY, RLIM_INFINITY};
    bool existed;

    if (!on_another_disk("/dev/shm") || getenv("ACT_TEST_LOGIN"))
        skip();
    ACT_AUTO(run_spec) spec = site_test_make_spec();
    ACT_AUTOFREE char *package = site_test_make_package(&spec, "/dev/shm", 100000);
    ACT_AUTOFREE char *runs = site_test_in_root("runs");
    ACT_AUTOFREE char *fresh = site_test_in_root("new");
    ACT_AUTOFREE char *packages = site_test_in_root("packages");
    assert_int_equal(prlimit(server, RLIMIT_FSIZE, &small, NULL), 0);
    int rc = site_create_run(site, &(struct site_new){.spec = &spec, .package = package}, &existed, &err);
    assert_int_equal(prlimit(server, RLIMIT_FSIZE, &any, NULL), 0);
    unlink(package);
    assert_fails(rc, err, ACT_FAIL, strerror(EFBIG));
    assert_int_equal(site_test_count_in(runs) + site_test_count_in(fresh) + site_test_count_in(packages), 0);
    free(site_test_make_run()); /* and later there is room again */
}

BOTH(test_leftovers)
{
    static const char *const names[] = {"new/old_1_00000000.abcdef", "new/young_1_00000000.abcdef"};
    const struct timespec old[2] = {{.tv_sec = act_now_unix_s() - 7200}, {.tv_sec = act_now_unix_s() - 7200}};
    ACT_AUTOFREE char *fresh = site_test_in_root("new");

    for (size_t i = 0; i < COUNT(names); i++) {
        ACT_AUTOFREE char *dir = site_test_in_root(names[i]);
        ACT_AUTOFREE char *file = act_path_join(dir, "file");
        assert_ok(act_mkdir_all(dir, 0700, &err), err);
        site_test_put_file(file, "x");
        if (i == 0)
            assert_int_equal(utimensat(AT_FDCWD, dir, old, 0), 0);
    }
    free(site_test_make_run());
    ACT_AUTOFREE char *young = site_test_in_root(names[1]);
    assert_int_equal(site_test_count_in(fresh), 1);
    assert_int_equal(access(young, F_OK), 0);
}

/* ---- killed at each system call ---- */

/* Files called name in the folders of new/. */
static int count_left(const char *name)
{
    ACT_AUTOFREE char *fresh = site_test_in_root("new");
    DIR *d = opendir(fresh);
    int n = 0;

    for (struct dirent *e; d && (e = readdir(d));) {
        ACT_AUTOFREE char *path = act_sprintf("%s/%s/%s", fresh, e->d_name, name);
        n += e->d_name[0] != '.' && access(path, F_OK) == 0;
    }
    if (d)
        closedir(d);
    return n;
}

/* The child does this with the run. */
static pid_t site_test_traced_child(int (*act)(const struct run_spec *), const struct run_spec *spec)
{
    pid_t pid = fork();

    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) || raise(SIGSTOP))
            _exit(2);
        _exit(act(spec) < 0);
    }
    return pid;
}

static int site_test_create(const struct run_spec *spec)
{
    bool existed;

    return site_create_run(site, &(struct site_new){.spec = spec}, &existed, &err);
}

static int delete (const struct run_spec *spec)
{
    return site_remove_run(site, spec->id, &err);
}

/* What a killed submission left is gone when any other run has been submitted, and when it is removed itself. */
TEST_IN(test_create_is_killed_at_every_step, setup_here, site_test_teardown)
{
    bool killed = true;
    int with_secrets = 0;

    if (!can_trace())
        skip();
    for (int n = 1; killed; n++) {
        ACT_AUTO(run_spec) spec = site_test_make_spec();
        killed = kill_at(site_test_traced_child(site_test_create, &spec), n);
        with_secrets += count_left(RUN_FILE_SECRETS);
        if (n % 2) {
            free(site_test_make_run());
            assert_int_equal(count_left(""), 0);
        }
        ACT_AUTOFREE char *dir = in_run(spec.id, "");
        assert_ok(site_remove_run(site, spec.id, &err), err);
        assert_int_equal(count_left(""), 0);
        assert_int_equal(access(dir, F_OK), -1);
    }
    assert_true(with_secrets > 3);
}

/* The same of a removal; and the secrets are what goes first. */
TEST_IN(test_remove_is_killed_at_every_step, setup_here, site_test_teardown)
{
    bool killed = true;
    int left = 0;

    if (!can_trace())
        skip();
    for (int n = 1; killed; n++) {
        ACT_AUTO(run_spec) spec = site_test_make_spec();
        struct site_left found;
        assert_ok(site_test_create(&spec), err);
        killed = kill_at(site_test_traced_child(delete, &spec), n);
        assert_int_equal(count_left(RUN_FILE_SECRETS), 0);
        left += count_left("");
        if (n % 2 == 0) {
            assert_ok(site_clear(site, true, &found, &err), err);
            assert_int_equal(found.n, count_left(""));
            assert_ok(site_clear(site, false, &found, &err), err);
            assert_int_equal(count_left(""), 0);
        }
        ACT_AUTOFREE char *dir = in_run(spec.id, "");
        assert_ok(site_remove_run(site, spec.id, &err), err);
        assert_int_equal(count_left(""), 0);
        assert_int_equal(access(dir, F_OK), -1);
    }
    assert_true(left > 3);
}

uint64_t __real_act_tree_size(const char *path);
uint64_t __wrap_act_tree_size(const char *path);

static int measured, locked_meanwhile;

/* Somebody else begins to fill something just now. */
uint64_t __wrap_act_tree_size(const char *path)
{
    ACT_AUTOFREE char *folder = act_path_dirname(path);
    DIR *dir = opendir(folder);

    for (const struct dirent *e; dir && (e = readdir(dir));) {
        if (!act_starts_with(e->d_name, ".lock-"))
            continue;
        int fd = openat(dirfd(dir), e->d_name, O_RDWR | O_CLOEXEC);
        locked_meanwhile += fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0;
        close(fd);
    }
    if (dir)
        closedir(dir);
    measured++;
    return __real_act_tree_size(path);
}

/* However large that is which was left. */
TEST_IN(test_nobody_waits_while_it_is_measured, setup_here, site_test_teardown)
{
    for (int dry = 1; dry >= 0; dry--) {
        struct here_filling f;
        struct site_left found;
        assert_ok(here_fill(site, "x_1_00000000", &f, &err), err);
        assert_ok(act_mkdir_all(f.path, 0700, &err), err);
        ACT_AUTOFREE char *file = act_path_join(f.path, "big");
        site_test_put_file(file, "big");
        here_filling_release(&f);
        measured = locked_meanwhile = 0;
        assert_ok(site_clear(site, dry, &found, &err), err);
        assert_int_equal(found.n, dry ? 1 : 2);
        assert_int_equal(measured, found.n);
        assert_true(found.bytes > 0);
        assert_int_equal(locked_meanwhile, 0);
    }
    assert_int_equal(count_left(""), 0);
    measured = 0;
    free(site_test_make_run());
    assert_int_equal(measured, 0);
}

/* What is being filled belongs to somebody who lives: only this run's own removal ends it. The file server's clock is
 * behind. */
TEST_IN(test_clear_leaves_the_living, setup_here, site_test_teardown)
{
    const struct timespec old[2] = {{.tv_sec = act_now_unix_s() - 7200}, {.tv_sec = act_now_unix_s() - 7200}};
    struct here_filling f;
    struct site_left found;

    assert_ok(here_fill(site, "x_1_00000000", &f, &err), err);
    assert_ok(act_mkdir_all(f.path, 0700, &err), err);
    ACT_AUTOFREE char *secrets = act_path_join(f.path, RUN_FILE_SECRETS);
    site_test_put_file(secrets, "{}");
    assert_int_equal(utimensat(AT_FDCWD, f.path, old, 0), 0);
    free(site_test_make_run());
    assert_ok(site_clear(site, false, &found, &err), err);
    assert_int_equal(found.n, 0);
    assert_int_equal(access(secrets, F_OK), 0);
    close(f.lock_fd);
    f.lock_fd = -1;
    assert_ok(site_clear(site, true, &found, &err), err);
    assert_int_equal(found.n, 1);
    assert_true(found.bytes > 0);
    assert_ok(site_clear(site, false, &found, &err), err);
    assert_int_equal(count_left(""), 0);
    here_filling_release(&f);
}

/* Many remove the same runs and clear at once; none minds the others. */
TEST_IN(test_removed_by_many, setup_here, site_test_teardown)
{
    enum { MANY = 8, RUNS = 12 };
    char *ids[RUNS];

    for (int i = 0; i < RUNS; i++) {
        ids[i] = site_test_make_run();
        for (int k = 0; k < 20; k++) {
            ACT_AUTOFREE char *name = act_sprintf("%s/d%d/e/f%d", RUN_DIR_USER, k, k);
            ACT_AUTOFREE char *path = in_run(ids[i], name);
            ACT_AUTOFREE char *dir = act_path_dirname(path);
            assert_ok(act_mkdir_all(dir, 0700, &err), err);
            assert_int_equal(close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
        }
    }
    for (int i = 0; i < MANY; i++)
        if (fork() == 0) {
            struct site_left found;
            int rc = 0;
            for (int k = 0; k < RUNS && rc == 0; k++)
                rc = site_remove_run(site, ids[k], &err);
            if (rc == 0)
                rc = site_clear(site, false, &found, &err);
            if (rc < 0)
                print_message("%s\n", act_error_text(&err));
            _exit(rc < 0);
        }
    for (int i = 0, status; i < MANY; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    ACT_AUTOFREE char *runs = site_test_in_root("runs");
    assert_int_equal(site_test_count_in(runs) + count_left(""), 0);
    for (int i = 0; i < RUNS; i++)
        free(ids[i]);
}

BOTH(test_remove)
{
    ACT_AUTOFREE char *id = site_test_make_run();
    ACT_AUTOFREE char *other = site_test_make_run();
    ACT_AUTOFREE char *dir = in_run(id, "");
    ACT_AUTOFREE char *fresh = site_test_in_root("new");
    ACT_AUTO(act_strv) ids = {0};

    assert_ok(site_remove_run(site, id, &err), err);
    assert_ok(site_remove_run(site, id, &err), err);
    assert_ok(site_remove_run(site, "..", &err), err);
    assert_int_equal(access(dir, F_OK), -1);
    assert_int_equal(site_test_count_in(fresh), 0);
    assert_ok(site_list(site, &ids, &err), err);
    assert_int_equal(ids.n, 1);
    assert_string_equal(ids.v[0], other);
}

TEST_IN(test_locked, setup_here, site_test_teardown)
{
    ACT_AUTO(run_spec) spec = site_test_make_spec();
    ACT_AUTOFREE char *lock = in_run(spec.id, RUN_FILE_LOCK);
    bool existed;
    int fd = -1;

    assert_ok(site_create_locked_run(site, &spec, NULL, &fd, &existed, &err), err);
    assert_int_equal(act_lock(lock, false, &err), -ACT_TEMPORARY);
    close(fd);
    int again = act_lock(lock, false, &err);
    assert_true(again >= 0);
    close(again);
}

BOTH(test_list)
{
    ACT_AUTOFREE char *other = site_test_in_root("runs/not a run/file");
    ACT_AUTO(act_strv) ids = {0};

    assert_ok(site_list(site, &ids, &err), err);
    assert_int_equal(ids.n, 0);
    ACT_AUTOFREE char *a = site_test_make_run();
    ACT_AUTOFREE char *b = site_test_make_run();
    site_test_put_file(other, "");
    assert_ok(site_list(site, &ids, &err), err);
    assert_int_equal(ids.n, 2);
    assert_true(strcmp(ids.v[0], ids.v[1]) < 0);
    assert_true(act_strv_has(&ids, a) && act_strv_has(&ids, b));
}

/* ---- files ---- */

/* What the user's command may have put into the folder, and what lies outside. */
static void make_traps(const char *id)
{
    static const struct {
        const char *link, *target;
    } links[] = {{"user_logs/link", "../run.json"},
                 {"user_logs/out", "/"},
                 {"metrics", "user_logs"},
                 {"status.link", "/etc/passwd"}};
    ACT_AUTOFREE char *log = in_run(id, "user_logs/a");
    ACT_AUTOFREE char *fifo = in_run(id, "user_logs/fifo");

    site_test_put_file(log, "0123456789");
    for (size_t i = 0; i < COUNT(links); i++) {
        ACT_AUTOFREE char *path = in_run(id, links[i].link);
        assert_int_equal(symlink(links[i].target, path), 0);
    }
    assert_int_equal(mkfifo(fifo, 0600), 0);
}

BOTH(test_read)
{
    static const struct {
        const char *name;
        uint64_t offset;
        size_t len;
        int rc;
        const char *got;
    } rows[] = {
        {"user_logs/a", 0, 100, 0, "0123456789"},
        {"user_logs/a", 3, 4, 0, "3456"},
        {"user_logs/a", 10, 4, 0, ""},
        {"user_logs/a", 1000, 4, 0, ""},
        {"user_logs/a", UINT64_MAX, 4, 0, ""},
        {"user_logs/a", 2, 0, 0, ""},
        {"user_logs/none", 0, 4, -ACT_NOT_FOUND, ""},
        {"none/a", 0, 4, -ACT_NOT_FOUND, ""},
        {"user_logs/a/b", 0, 4, -ACT_NOT_FOUND, ""},
        {"user_logs", 0, 4, -ACT_NOT_FOUND, ""},
        {"user_logs/", 0, 4, -ACT_NOT_FOUND, ""},
        {"user_logs/link", 0, 4, -ACT_NOT_FOUND, ""},
        {"user_logs/out/etc/passwd", 0, 4, -ACT_NOT_FOUND, ""},
        {"metrics/a", 0, 4, -ACT_NOT_FOUND, ""},
        {"user_logs/fifo", 0, 4, -ACT_NOT_FOUND, ""},
        {"user_logs/../run.json", 0, 4, -ACT_NOT_FOUND, ""},
        {"../../packages", 0, 4, -ACT_NOT_FOUND, ""},
        {"/etc/passwd", 0, 4, -ACT_NOT_FOUND, ""},
        {"", 0, 4, -ACT_NOT_FOUND, ""},
        {"user_logs/\xff", 0, 4, -ACT_NOT_FOUND, ""},
    };
    ACT_AUTOFREE char *id = site_test_make_run();

    make_traps(id);
    for (size_t i = 0; i < COUNT(rows); i++) {
        char data[101] = "";
        size_t got = 1;
        int rc = site_read(site, id, rows[i].name, rows[i].offset, data, rows[i].len, &got, &err);
        if (rc != rows[i].rc)
            fail_msg("'%s': %d %s", rows[i].name, rc, act_error_text(&err));
        assert_int_equal(got, strlen(rows[i].got));
        assert_memory_equal(data, rows[i].got, got);
        ACT_AUTOFREE char *text = NULL;
        rc = site_read_text(site, id, rows[i].name, &text, &err);
        assert_int_equal(rc, rows[i].rc);
    }
    size_t got;
    char byte;
    assert_int_equal(site_read(site, "none_1_00000000", "run.json", 0, &byte, 1, &got, &err), -ACT_NOT_FOUND);
    assert_int_equal(site_read(site, "../runs", "run.json", 0, &byte, 1, &got, &err), -ACT_NOT_FOUND);
}

BOTH(test_read_much)
{
    enum { SIZE = 9 * 1000 * 1000 + 7 };
    ACT_AUTOFREE char *id = site_test_make_run();
    ACT_AUTOFREE char *path = in_run(id, "user_logs/big");
    ACT_AUTOFREE char *data = act_alloc(SIZE);
    ACT_AUTOFREE char *back = act_alloc(SIZE + 10);
    size_t got;

    for (size_t i = 0; i < SIZE; i++)
        data[i] = (char)(i / 3 + i);
    assert_ok(act_file_write(path, data, SIZE, 0600, &err), err);
    assert_ok(site_read(site, id, "user_logs/big", 0, back, SIZE + 10, &got, &err), err);
    assert_int_equal(got, SIZE);
    assert_memory_equal(back, data, SIZE);
}

BOTH(test_read_parts)
{
    enum { SIZE = 5 << 20, TAIL = 100 };
    ACT_AUTOFREE char *id = site_test_make_run();
    ACT_AUTOFREE char *path = in_run(id, "user_logs/big");
    ACT_AUTOFREE char *data = act_alloc(SIZE);
    ACT_AUTOFREE char *back = act_alloc(SIZE + 1);
    char end[TAIL + 1], none[1], small[20], behind[4];
    struct site_part parts[] = {
        {.name = "user_logs/big", .data = back, .len = SIZE + 1},
        {.name = "user_logs/none", .data = none, .len = 1},
        {.name = "user_logs/a", .offset = 2, .data = small, .len = sizeof(small)},
        {.name = "user_logs/big", .offset = SIZE - TAIL, .data = end, .len = sizeof(end)},
        {.name = "user_logs/a", .data = NULL, .len = 0},
        {.name = "user_logs/a", .offset = UINT64_MAX, .data = behind, .len = sizeof(behind)},
    };
    static const size_t got[] = {SIZE, 0, 8, TAIL, 0, 0};

    make_traps(id);
    for (size_t i = 0; i < SIZE; i++)
        data[i] = (char)(i / 7 + i);
    assert_ok(act_file_write(path, data, SIZE, 0600, &err), err);
    site_read_parts(site, id, parts, COUNT(parts));
    for (size_t i = 0; i < COUNT(parts); i++) {
        assert_int_equal(parts[i].rc, i == 1 ? -ACT_NOT_FOUND : 0);
        assert_int_equal(parts[i].got, got[i]);
    }
    assert_non_null(strstr(act_error_text(&parts[1].error), "user_logs/none"));
    assert_memory_equal(back, data, SIZE);
    assert_memory_equal(end, data + SIZE - TAIL, TAIL);
    assert_memory_equal(small, "23456789", 8);
    site_read_parts(site, id, NULL, 0);
    assert_int_equal(site_read(site, id, "user_logs/a", 0, small, 1, &parts[0].got, &err), 0);
}

BOTH(test_write)
{
    ACT_AUTOFREE char *id = site_test_make_run();
    ACT_AUTOFREE char *dir = in_run(id, "");
    ACT_AUTOFREE char *job = in_run(id, "job.json");
    ACT_AUTOFREE char *target = act_path_join(home, "target");
    ACT_AUTOFREE char *link = in_run(id, "abort");
    bool existed = true;

    make_traps(id);
    int before = site_test_count_in(dir);
    assert_ok(site_write(site, id, "job.json", "{\"job\": \"1\"}", &existed, &err), err);
    assert_false(existed);
    assert_ok(site_write(site, id, "job.json", "{\"job\": \"2\"}", &existed, &err), err);
    assert_true(existed);
    ACT_AUTOFREE char *first = site_test_text_of(id, "job.json");
    assert_string_equal(first, "{\"job\": \"1\"}");
    assert_ok(site_write(site, id, "job.json", "", NULL, &err), err);
    ACT_AUTOFREE char *second = site_test_text_of(id, "job.json");
    assert_string_equal(second, "");
    assert_int_equal(site_test_mode_of(job), 0600);

    site_test_put_file(target, "outside");
    assert_int_equal(symlink(target, link), 0);
    assert_ok(site_write(site, id, "abort", "x", &existed, &err), err);
    assert_true(existed);
    assert_ok(site_write(site, id, "abort", "x", NULL, &err), err); /* replaces the link */
    ACT_AUTOFREE char *outside = NULL;
    assert_ok(act_file_read(target, 100, &outside, NULL, &err), err);
    assert_string_equal(outside, "outside");
    static const char *const bad[] = {"metrics/x", "user_logs/out/tmp/x", "../x", "", "/tmp/x", "none/x", "x/"};
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(site_write(site, id, bad[i], "x", NULL, &err), -ACT_NOT_FOUND);
    assert_int_equal(site_test_count_in(dir), before + 2); /* job.json, abort; no temporary name is left */
}

BOTH(test_files)
{
    static const char *const folders[] = {"user_logs", "metrics", "none", "system_logs", "../..", "user_logs/out"};
    static const char *const wanted[] = {"system_logs/x", "user_logs/a", "user_logs/b/c/d", "user_logs/n\xff"};
    ACT_AUTOFREE char *id = site_test_make_run();
    struct site_files files = {0};

    make_traps(id);
    for (size_t i = 0; i < COUNT(wanted); i++) {
        ACT_AUTOFREE char *path = in_run(id, wanted[i]);
        site_test_put_file(path, "12345");
    }
    assert_ok(site_files(site, id, folders, COUNT(folders), 0, &files, &err), err);
    assert_int_equal(files.n, COUNT(wanted));
    for (size_t i = 0; i < files.n; i++) {
        assert_string_equal(files.v[i].name, wanted[i]);
        assert_int_equal(files.v[i].size, 5);
    }
    site_files_release(&files);
    assert_int_equal(site_files(site, "none_1_00000000", folders, 1, 0, &files, &err), -ACT_NOT_FOUND);
}

/* The ends of files, of which the larger ones share what there is. */
BOTH(test_ends_of_files)
{
    enum { LARGE = 100 << 10, MANY = 24 };
    static const char *const folders[] = {"user_logs", "outputs"};
    ACT_AUTOFREE char *id = site_test_make_run();
    ACT_AUTOFREE char *data = act_alloc(LARGE + 1);
    struct site_files files = {0};

    for (size_t i = 0; i < LARGE; i++)
        data[i] = (char)('a' + i % 23);
    data[LARGE] = '\0';
    for (size_t i = 0; i < MANY + 3; i++) {
        ACT_AUTOFREE char *name = i < MANY        ? act_sprintf("user_logs/large%02zu", i)
                                  : i == MANY     ? act_strdup("user_logs/small")
                                  : i == MANY + 1 ? act_strdup("user_logs/empty")
                                                  : act_strdup("outputs/model");
        ACT_AUTOFREE char *path = in_run(id, name);
        site_test_put_file(path, i < MANY ? data : i == MANY + 1 ? "" : "0123456789");
    }
    assert_ok(site_files(site, id, folders, COUNT(folders), 1, &files, &err), err);
    assert_int_equal(files.n, MANY + 3);
    size_t all = 0;
    for (size_t i = 0; i < files.n; i++) {
        const struct site_file *file = &files.v[i];
        bool is_large = file->size == LARGE;
        all += file->end_len;
        if (!site_is_far(site) || file->size == 0 || act_starts_with(file->name, "outputs/")) {
            assert_null(file->end);
            continue;
        }
        assert_int_equal(file->end_len, is_large ? SITE_END_MAX_BYTES / 2 : 10);
        assert_memory_equal(file->end, is_large ? data + LARGE - file->end_len : "0123456789", file->end_len);
    }
    assert_true(all <= SITE_ENDS_MAX_BYTES);
    site_files_release(&files);
}

BOTH(test_states)
{
    ACT_AUTOFREE char *queued = site_test_make_run();
    ACT_AUTOFREE char *ended = site_test_make_run();
    ACT_AUTOFREE char *damaged = site_test_make_run();
    ACT_AUTOFREE char *linked = site_test_make_run();
    const char *const ids[] = {queued, "none_1_00000000", ended, damaged, "../..", linked};
    const struct run_status status = {
        .state = RUN_FAILED, .exit_status = 3, .failed_rank = 2, .attempt = 4, .reason = "why"};
    ACT_AUTOFREE char *path = in_run(ended, RUN_FILE_STATUS);
    ACT_AUTOFREE char *bad = in_run(damaged, RUN_FILE_STATUS);
    ACT_AUTOFREE char *link = in_run(linked, RUN_FILE_STATUS);
    struct site_state states[COUNT(ids)];

    assert_ok(run_status_write(path, &status, &err), err);
    site_test_put_file(bad, "{\"state\":");
    unlink(link);
    assert_int_equal(symlink(path, link), 0);
    assert_ok(site_write(site, ended, RUN_FILE_JOB, "{\"job\": \"4711\"}", NULL, &err), err);
    assert_ok(site_states(site, ids, COUNT(ids), states, &err), err);
    assert_true(states[0].there && !states[1].there && states[2].there && states[3].there && !states[4].there);
    assert_int_equal(states[0].status.state, RUN_QUEUED);
    assert_int_equal(states[1].status.state, RUN_UNKNOWN);
    assert_int_equal(states[2].status.state, RUN_FAILED);
    assert_int_equal(states[2].status.exit_status, 3);
    assert_int_equal(states[2].status.failed_rank, 2);
    assert_int_equal(states[2].status.attempt, 4);
    assert_string_equal(states[2].status.reason, "why");
    assert_string_equal(states[2].job, "4711");
    assert_int_equal(states[3].status.state, RUN_UNKNOWN);
    assert_int_equal(states[5].status.state, RUN_UNKNOWN);
    site_states_release(states, COUNT(ids));
    assert_ok(site_states(site, ids, 0, states, &err), err);
}

/* What somebody else wrote there is no failure of the question: the state is not known, and says why. */
BOTH(test_states_of_another_type)
{
    static const struct {
        const char *status, *job, *says;
    } rows[] = {
        {"{\"state\": \"Running\", \"exit_status\": \"x\"}", "{}", "'exit_status' must be a whole number"},
        {"{\"state\": \"Running\", \"attempt\": 1e10}", "{}", "'attempt' must be a whole number"},
        {"{\"version\": 7}", "{}", "the status has version 7"},
        {"{}", "{\"job\": 4711}", "'job' must be the number of a job"},
        {"{}", "{\"job\": \"1\\n2\"}", "'job' must be the number of a job"},
    };
    ACT_AUTOFREE char *made = site_test_make_run();
    const char *id = made;
    struct site_state now;

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_ok(site_write(site, id, RUN_FILE_STATUS, rows[i].status, NULL, &err), err);
        assert_ok(site_write(site, id, RUN_FILE_JOB, rows[i].job, NULL, &err), err);
        assert_ok(site_states(site, &id, 1, &now, &err), err);
        assert_int_equal(now.status.state, RUN_UNKNOWN);
        assert_contains(now.status.reason, rows[i].says);
        assert_null(now.job);
        site_states_release(&now, 1);
    }
}

/* ---- programs ---- */

static int site_test_run_words(const char *const *argv, struct site_result *result, struct act_error *e)
{
    return site_run(site, &(struct site_command){.argv = argv}, result, e);
}

BOTH(test_run)
{
    static const char *const awkward[] = {
        "printf", "[%s]\\n", "a b", "", "$HOME", "'\"`\\", "line\nbreak", "\xff\xfe", "{\"base64\": \"x\"}",
        "-n",     NULL};
    static const char wanted[] =
        "[a b]\n[]\n[$HOME]\n['\"`\\]\n[line\nbreak]\n[\xff\xfe]\n[{\"base64\": \"x\"}]\n[-n]\n";
    static const char *const both[] = {
        "sh", "-c", "pwd; echo $TZ; echo ${SQUEUE_FORMAT-none} ${SLURM_TIME_FORMAT-none}; echo no >&2; exit 7", NULL};
    static const char *const killed[] = {"sh", "-c", "kill -9 $$", NULL};
    static const char *const missing[] = {"no-such-program-here", NULL};
    struct site_result result;

    assert_ok(site_test_run_words(awkward, &result, &err), err);
    assert_int_equal(result.status, 0);
    assert_int_equal(result.out_len, sizeof(wanted) - 1);
    assert_memory_equal(result.out, wanted, result.out_len);
    site_result_release(&result);

    assert_ok(site_test_run_words(both, &result, &err), err);
    if (access(root, F_OK) < 0) /* nobody has brought the agent there */
        assert_string_equal(result.out, "/\nUTC\nnone none\n");
    site_result_release(&result);
    assert_ok(act_mkdir_all(root, 0700, &err), err);
    assert_ok(site_test_run_words(both, &result, &err), err);
    ACT_AUTOFREE char *text = act_sprintf("%s\nUTC\nnone none\n", root);
    assert_int_equal(result.status, 7);
    assert_string_equal(result.out, text);
    assert_string_equal(result.err, "no\n");
    site_result_release(&result);

    assert_ok(site_test_run_words(killed, &result, &err), err);
    assert_int_equal(result.status, 128 + SIGKILL);
    site_result_release(&result);
    assert_int_equal(site_test_run_words(missing, &result, &err), -ACT_NOT_FOUND);
    site_result_release(&result);
}

/* Much in, and as much out of both streams, at the same time. */
BOTH(test_run_much)
{
    enum { SIZE = 5 * 1000 * 1000 };
    static const char *const argv[] = {"sh", "-c", "tee /dev/stderr </dev/stdin", NULL};
    ACT_AUTOFREE char *input = act_alloc(SIZE);
    ACT_AUTO(site_result) result = {0};

    for (size_t i = 0; i < SIZE; i++)
        input[i] = (char)(i * 31);
    const struct site_command command = {.argv = argv, .input = input, .input_len = SIZE, .cwd = "/"};
    assert_ok(site_run(site, &command, &result, &err), err);
    assert_int_equal(result.out_len, SIZE);
    assert_int_equal(result.err_len, SIZE);
    assert_memory_equal(result.out, input, SIZE);
    assert_memory_equal(result.err, input, SIZE);
}

/* Until a process of somebody else's is gone, or is one whose end nobody has taken note of. */
static void wait_gone(int pid)
{
    enum { STEP_MS = 5 };
    char path[64], text[4096];

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    for (int ms = 0; ms < PATIENCE_MS; ms += STEP_MS) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? 0 : act_pread_all(fd, text, sizeof(text) - 1, 0);
        if (fd >= 0)
            close(fd);
        text[n > 0 ? n : 0] = '\0';
        if (n <= 0 || strstr(text, ") Z "))
            return;
        nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000}, NULL);
    }
    fail_msg("process %d is still there", pid);
}

BOTH(test_run_bounds)
{
    static const char *const slow[] = {"sh", "-c", "sleep 1000 & echo $! >pid; sleep 1000", NULL};
    static const char *const much[] = {"sh", "-c", "while :; do echo yyyyyyyyyyyyyyyy; done", NULL};
    static const char *const fine[] = {"true", NULL};
    ACT_AUTOFREE char *pid_path = site_test_in_root("pid");
    ACT_AUTOFREE char *pid = NULL;
    struct site_result result;

    assert_ok(act_mkdir_all(root, 0700, &err), err);
    struct site_command command = {.argv = slow, .timeout_s = 1};
    assert_int_equal(site_run(site, &command, &result, &err), -ACT_TIMEOUT);
    site_result_release(&result);
    assert_ok(act_file_read(pid_path, 100, &pid, NULL, &err), err);
    wait_gone(atoi(pid)); /* nobody of its group is left */
    command = (struct site_command){.argv = much, .max_bytes = 100000};
    assert_int_equal(site_run(site, &command, &result, &err), -ACT_FAIL);
    site_result_release(&result);
    assert_ok(site_test_run_words(fine, &result, &err), err);
    site_result_release(&result);
}

BOTH(test_agent)
{
    ACT_AUTOFREE char *path = NULL;
    ACT_AUTOFREE char *again = NULL;
    ACT_AUTO(site_result) result = {0};

    assert_ok(site_agent(site, &path, &err), err);
    assert_true(act_starts_with(path, root));
    assert_int_equal(site_test_mode_of(path), 0700);
    ACT_AUTOFREE char *dir = act_path_dirname(path);
    ACT_AUTOFREE char *act = act_path_join(dir, "act");
    ACT_AUTOFREE char *fresh = site_test_in_root("new");
    ACT_AUTOFREE char *version = act_path_join(dir, "version"); /* comes with an agent that was brought by ssh */
    assert_int_equal(site_test_count_in(dir), access(version, F_OK) == 0 ? 3 : 2);
    assert_int_equal(site_test_count_in(fresh), 0);
    ino_t first = inode_of(path), first_act = inode_of(act);
    assert_ok(site_agent(site, &again, &err), err);
    assert_string_equal(again, path);
    assert_int_equal(inode_of(path), first);
    assert_int_equal(inode_of(act), first_act);
    const char *const argv[] = {path, "--version", NULL};
    assert_ok(site_test_run_words(argv, &result, &err), err);
    assert_int_equal(result.status, 0);
    assert_true(act_starts_with(result.out, "act-node "));

    assert_int_equal(truncate(act, 100), 0); /* a copy that is damaged is made again */
    ACT_AUTOFREE char *third = NULL;
    assert_ok(site_agent(site, &third, &err), err);
    assert_true(inode_of(act) != first_act);
}

/* ---- frames ---- */

/* A channel at whose other end these bytes are, and then nothing. */
static void open_bytes(struct channel *c, const char *bytes, size_t len)
{
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(act_write_all(ends[1], bytes, len), 0);
    assert_int_equal(shutdown(ends[1], SHUT_WR), 0);
    close(ends[1]);
    *c = (struct channel){.in_fd = ends[0], .out_fd = ends[0]};
}

static int read_bytes(const char *bytes, size_t len, struct frame *frame, struct act_error *e)
{
    ACT_AUTOFREE struct channel *c = act_alloc(sizeof(*c));

    open_bytes(c, bytes, len);
    int rc = frame_read(c, 1000, frame, e);
    close(c->in_fd);
    return rc;
}

static const char good_frame[] = "{\"op\":\"write\",\"id\":\"a_1_00000000\",\"parts\":[5,3]}\nhelloyou";

TEST(test_frames)
{
    static const struct {
        const char *text;
        int rc;
    } rows[] = {
        {good_frame, 0},
        {"{}\n", 0},
        {"{\"parts\":[]}\n", 0},
        {"{\"parts\":7}\n", 0},
        {"", -ACT_TEMPORARY},
        {"{}", -ACT_TEMPORARY},
        {"\n", -ACT_FAIL},
        {"[]\n", -ACT_FAIL},
        {"{\"a\":1,\"a\":2}\n", -ACT_FAIL},
        {"{\"parts\":[1,2,3]}\nabcdef", -ACT_FAIL},
        {"{\"parts\":[-1]}\n", -ACT_FAIL},
        {"{\"parts\":[\"x\"]}\n", -ACT_FAIL},
        {"{\"parts\":[1001]}\n", -ACT_FAIL},
        {"{\"parts\":[600,600]}\n", -ACT_TEMPORARY},
        {"{\"parts\":[9223372036854775807]}\n", -ACT_FAIL},
        {"{\"parts\":[99999999999999999999]}\n", -ACT_FAIL},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct frame frame;
        int rc = read_bytes(rows[i].text, strlen(rows[i].text), &frame, &err);
        if (rc != rows[i].rc)
            fail_msg("%s: %d %s", rows[i].text, rc, act_error_text(&err));
        if (i == 0)
            assert_string_equal(frame.parts[1].data, "you");
        frame_release(&frame);
    }
}

static bool is_hurried; /* poll() never waits */

int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    return __real_poll(fds, n, is_hurried && timeout_ms > 0 ? 0 : timeout_ms);
}

/* Writes more than the socket holds to a side that takes nothing, and that sends without end or nothing. */
static int site_test_write_in_vain(bool sends, struct act_error *e)
{
    enum { LONG = 8 << 20 };
    ACT_AUTOFREE struct channel *c = act_calloc(1, sizeof(*c));
    ACT_AUTOFREE char *text = act_calloc(1, LONG);
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    pid_t pid = sends ? fork() : 0;
    assert_true(pid >= 0);
    if (sends && pid == 0) {
        close(ends[0]);
        while (send(ends[1], text, LONG, MSG_NOSIGNAL) > 0)
            ;
        _exit(0);
    }
    *c = (struct channel){.in_fd = ends[0], .out_fd = ends[0], .reads_early = true};
    is_hurried = !sends;
    int rc = channel_write(c, text, LONG, e);
    is_hurried = false;
    channel_close(c);
    close(ends[1]);
    if (sends)
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    return rc;
}

TEST(the_other_side_takes_nothing)
{
    assert_int_equal(site_test_write_in_vain(false, &err), -ACT_TEMPORARY);
    assert_string_equal(act_error_text(&err), "the connection was lost: the other side takes nothing");
    assert_true(err.network);
    assert_int_equal(site_test_write_in_vain(true, &err), -ACT_FAIL);
    assert_string_equal(act_error_text(&err), "the other side sent more than 64 MiB and took nothing");
}

/* Behind any bytes, wherever a read ends. */
TEST(a_mark_behind_noise)
{
    static const char mark[] = "act-site/1 ", rest[] = "ready\nmore";
    ACT_AUTOFREE struct channel *c = act_alloc(sizeof(*c));

    for (size_t noise = CHANNEL_BUFFER - sizeof(mark) - 1; noise <= CHANNEL_BUFFER; noise++) {
        ACT_AUTO(act_buf) bytes = {0}, line = {0};
        for (size_t i = 0; i < noise; i++)
            act_buf_addc(&bytes, "act-site/\0"[i % 10]);
        act_buf_adds(&bytes, mark);
        act_buf_adds(&bytes, rest);
        open_bytes(c, bytes.data, bytes.len);
        assert_ok(channel_skip_to(c, mark, noise, &err), err);
        assert_ok(channel_read_line(c, 100, &line, &err), err);
        assert_string_equal(line.data, "ready");
        close(c->in_fd);
        open_bytes(c, bytes.data, bytes.len);
        assert_int_equal(channel_skip_to(c, mark, noise - 1, &err), -ACT_FAIL);
        close(c->in_fd);
        open_bytes(c, bytes.data, noise + strlen(mark) - 1);
        assert_int_equal(channel_skip_to(c, mark, noise, &err), -ACT_TEMPORARY);
        close(c->in_fd);
    }
}

/* Pseudo-random, the same each time. */
static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

static void mutate(char *bytes, size_t len, uint32_t *seed)
{
    for (uint32_t n = 1 + next_random(seed) % 4; n > 0; n--)
        bytes[next_random(seed) % len] = (char)next_random(seed);
}

TEST(test_damaged_frames)
{
    enum { ROUNDS = 3000 };
    const size_t len = sizeof(good_frame) - 1;
    uint32_t seed = 1;

    for (size_t cut = 0; cut < len; cut++) {
        struct frame frame;
        assert_int_equal(read_bytes(good_frame, cut, &frame, &err), -ACT_TEMPORARY);
        frame_release(&frame);
    }
    for (int i = 0; i < ROUNDS; i++) {
        char bytes[sizeof(good_frame)];
        struct frame frame;
        memcpy(bytes, good_frame, sizeof(bytes));
        mutate(bytes, len, &seed);
        int rc = read_bytes(bytes, len, &frame, &err);
        assert_true(rc == 0 || rc == -ACT_FAIL || rc == -ACT_TEMPORARY);
        frame_release(&frame);
    }
}

/* ---- asked ahead ---- */

/* Writes a file of a run that has len bytes of text. */
static void write_text(const char *id, const char *name, size_t len)
{
    ACT_AUTOFREE char *text = act_alloc(len + 1);

    for (size_t i = 0; i < len; i++)
        text[i] = "a line of a log\n"[i % 16];
    text[len] = '\0';
    assert_ok(site_write(site, id, name, text, NULL, &err), err);
}

static const char *made_id; /* of the run that the test has made */

static int read_long(void *arg, size_t i, struct act_error *e)
{
    ACT_AUTOFREE char *text = NULL;
    size_t *n = arg;
    int rc = site_read_text(site, made_id, i % 2 ? "one" : "two", &text, e);

    if (rc == 0) {
        assert_int_equal(i, *n); /* the answers come in order, each once */
        assert_int_equal(strlen(text), i % 2 ? 300000 : 200000);
        ++*n;
    }
    return rc;
}

static int write_long(void *arg, size_t i, struct act_error *e)
{
    ACT_AUTOFREE char *name = act_sprintf("file%zu", i);
    bool existed = true;
    int rc = site_write(site, made_id, name, arg, &existed, e);

    assert_false(rc == 0 && existed); /* it was written once */
    return rc;
}

static int write_until(void *arg, size_t i, struct act_error *e)
{
    return i == 3 ? act_error_set(e, ACT_FAIL, "that is enough") : write_long(arg, 1000 + i, e);
}

/* More than pipes hold goes both ways at the same time. */
TEST_IN(test_many_at_once, setup_wire, site_test_teardown)
{
    enum { MANY = 200, LONG = 100000 };
    ACT_AUTO(run_spec) spec = site_test_make_spec();
    ACT_AUTOFREE char *text = act_alloc(LONG + 1), *again = NULL;
    bool existed;
    size_t n = 0;

    made_id = spec.id;
    assert_ok(site_create_run(site, &(struct site_new){.spec = &spec}, &existed, &err), err);
    write_text(spec.id, "one", 300000);
    write_text(spec.id, "two", 200000);
    assert_ok(site_do_all(site, MANY, read_long, &n, &err), err);
    assert_int_equal(n, MANY);
    memset(text, 'x', LONG);
    text[LONG] = '\0';
    assert_ok(site_do_all(site, MANY, write_long, text, &err), err);
    assert_int_equal(site_do_all(site, MANY, write_until, text, &err), -ACT_FAIL);
    assert_ok(site_read_text(site, spec.id, "file7", &again, &err), err); /* what nobody took is passed over */
    assert_string_equal(again, text);
}

/* What was asked ahead is answered as it was then, once, unless it is dropped. */
TEST_IN(test_asked_ahead, setup_wire, site_test_teardown)
{
    ACT_AUTO(run_spec) spec = site_test_make_spec();
    const struct site_text file = {"word", "first"};
    static const char *const told[] = {"first", "second", "third"};
    bool existed;

    assert_ok(site_create_run(site, &(struct site_new){.spec = &spec, .files = &file, .n_files = 1}, &existed, &err),
              err);
    for (int dropped = 0; dropped < 2; dropped++) {
        char *text = NULL;
        assert_true(site_ahead(site));
        assert_int_equal(site_read_text(site, spec.id, "word", &text, &err), -ACT_INTERRUPTED);
        assert_int_equal(site_read_text(site, spec.id, "word", &text, &err), -ACT_INTERRUPTED); /* it is asked once */
        site_ahead_end(site);
        assert_ok(site_write(site, spec.id, "word", told[dropped + 1], NULL, &err), err);
        if (dropped)
            site_ahead_drop(site);
        for (int i = 0; i < 2; i++) {
            ACT_AUTOFREE char *now = NULL;
            assert_ok(site_read_text(site, spec.id, "word", &now, &err), err);
            assert_string_equal(now, told[dropped + (i || dropped)]);
        }
    }
}

/* Parts that are compressed, and those that are not worth it. */
TEST(test_deflate)
{
    enum { LEN = 1 << 20 };
    ACT_AUTOFREE char *text = act_alloc(LEN), *noise = act_alloc(LEN);
    ACT_AUTO(act_buf) packed = {0}, plain = {0};

    memset(text, 'a', LEN);
    act_random(noise, LEN);
    assert_false(codec_deflate(text, 100, &packed));
    assert_false(codec_deflate(noise, LEN, &packed));
    assert_int_equal(packed.len, 0);
    assert_true(codec_deflate(text, LEN, &packed));
    assert_true(packed.len < LEN / 100);
    assert_ok(codec_inflate(&packed, LEN, &plain, &err), err);
    assert_memory_equal(plain.data, text, LEN);
    assert_int_equal(codec_inflate(&packed, LEN - 1, &plain, &err), -ACT_FAIL);
    assert_int_equal(codec_inflate(&packed, LEN + 1, &plain, &err), -ACT_FAIL);
    packed.data[packed.len / 2] ^= 0x55;
    packed.len /= 2;
    assert_int_equal(codec_inflate(&packed, LEN, &plain, &err), -ACT_FAIL);
    assert_int_equal(plain.len, LEN);
}

/* What a client might send that is no client of ours: the server goes on, or ends. */
TEST_IN(test_damaged_requests, setup_here, site_test_teardown)
{
    static const char *const requests[] = {
        "{\"op\":\"states\",\"ids\":[\"a_1_00000000\",{\"base64\":\"eA==\"}]}\n",
        "{\"op\":\"files\",\"id\":\"a_1_00000000\",\"folders\":[\"user_logs\"]}\n",
        "{\"op\":\"read\",\"id\":\"a_1_00000000\",\"name\":\"run.json\",\"offset\":0,\"len\":10}\n",
        "{\"op\":\"agent\",\"hash\":\"0123456789abcdef\",\"programs\":{\"act\":7}}\n",
        "{\"op\":\"create\",\"spec\":{\"id\":\"a_1_00000000\"},\"secrets\":[]}\n",
        "{\"op\":\"put\",\"sha256\":\"x\",\"bytes\":5}\nhello",
        "{\"op\":\"run\",\"argv\":[],\"timeout\":1,\"max\":1}\n",
    };
    enum { ROUNDS = 300 };
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    uint32_t seed = 7;

    for (int i = 0; i < ROUNDS; i++) {
        struct act_buf bytes = {0};
        struct channel *c = act_alloc(sizeof(*c));
        const size_t which = (size_t)i % COUNT(requests);
        act_buf_adds(&bytes, requests[which]);
        if (i >= (int)COUNT(requests)) /* first as they are */
            mutate(bytes.data, bytes.len, &seed);
        open_bytes(c, bytes.data, bytes.len);
        int rc = site_serve(root, c->in_fd, null);
        assert_true(rc >= 0 && rc < 20);
        close(c->in_fd);
        free(c);
        act_buf_release(&bytes);
    }
    close(null);
}

/* What a server might answer that is no server of ours. */
static int ask_liar(const char *answer, int (*ask)(struct site *liar, struct act_error *e), struct act_error *e)
{
    ACT_AUTO(act_buf) bytes = {0};
    struct site *liar = act_calloc(1, sizeof(*liar));
    ACT_AUTOFREE struct channel *c = act_alloc(sizeof(*c));

    act_buf_addf(&bytes, SITE_BANNER "ready\n{\"root\":\"/r\"}\n%s", answer);
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(act_write_all(ends[1], bytes.data, bytes.len), 0);
    assert_int_equal(shutdown(ends[1], SHUT_WR), 0);
    assert_ok(wire_open_fds(ends[0], ends[0], liar, e), *e);
    int rc = ask(liar, e);
    site_free(liar);
    close(ends[1]);
    return rc;
}

static int site_test_ask_states(struct site *liar, struct act_error *e)
{
    static const char *const ids[] = {"a_1_00000000", "b_1_00000000"};
    struct site_state states[2];
    int rc = site_states(liar, ids, 2, states, e);

    site_states_release(states, 2);
    return rc;
}

static int ask_files(struct site *liar, struct act_error *e)
{
    static const char *const folders[] = {"user_logs"};
    ACT_AUTO(site_files) files = {0};

    return site_files(liar, "a_1_00000000", folders, 1, 1, &files, e);
}

static int ask_read(struct site *liar, struct act_error *e)
{
    char data[8];
    size_t got;

    return site_read(liar, "a_1_00000000", "x", 0, data, sizeof(data), &got, e);
}

/* The first part is there, unless both are not understood. */
static int ask_parts(struct site *liar, struct act_error *e)
{
    char data[2][8];
    struct site_part parts[] = {{.name = "x", .data = data[0], .len = sizeof(data[0])},
                                {.name = "y", .data = data[1], .len = sizeof(data[1])}};

    site_read_parts(liar, "a_1_00000000", parts, COUNT(parts));
    *e = parts[1].error;
    assert_int_equal(parts[0].rc, parts[1].rc == -ACT_FAIL ? -ACT_FAIL : 0);
    assert_int_equal(parts[0].got, parts[0].rc < 0 ? 0 : sizeof(data[0]));
    return parts[1].rc;
}

static int ask_agent(struct site *liar, struct act_error *e)
{
    ACT_AUTOFREE char *path = NULL;

    return site_agent(liar, &path, e);
}

static int ask_list(struct site *liar, struct act_error *e)
{
    ACT_AUTO(act_strv) ids = {0};
    int rc = site_list(liar, &ids, e);

    if (rc == 0 && ids.n)
        rc = 1;
    return rc;
}

TEST(test_wrong_answers)
{
    static const struct {
        const char *answer;
        int (*ask)(struct site *liar, struct act_error *err);
        int rc;
    } rows[] = {
        {"", ask_list, -ACT_TEMPORARY},
        {"{\"parts\":[100]}\nshort", ask_list, -ACT_FAIL},
        {"no JSON\n", ask_list, -ACT_FAIL},
        {"{\"code\":3,\"error\":\"gone\"}\n", ask_list, -ACT_NOT_FOUND},
        {"{\"code\":-77,\"error\":\"odd\"}\n", ask_list, -ACT_FAIL},
        {"{\"code\":0,\"error\":\"odd\"}\n", ask_list, -ACT_FAIL},
        {"{\"code\":1}\n", ask_list, -ACT_FAIL},
        {"{\"ids\":[\"../../etc\", 7, {}]}\n", ask_list, 0},
        {"{\"ids\":{}}\n", ask_list, 0},
        {"{\"states\":[{}]}\n", site_test_ask_states, -ACT_FAIL},
        {"{\"states\":[{},7]}\n", site_test_ask_states, -ACT_FAIL},
        {"{\"states\":[{\"status\":{}},{\"status\":{},\"job\":\"7\"}]}\n", site_test_ask_states, 0},
        {"{\"states\":[{\"status\":{}},{\"status\":{},\"job\":7}]}\n", site_test_ask_states, -ACT_FAIL},
        {"{\"files\":[[\"../x\",1]]}\n", ask_files, -ACT_FAIL},
        {"{\"files\":[[\"x\",-1]]}\n", ask_files, -ACT_FAIL},
        {"{\"files\":[\"x\"]}\n", ask_files, -ACT_FAIL},
        {"{\"files\":[[\"x\",3,0,3]],\"parts\":[2]}\nab", ask_files, -ACT_FAIL},
        {"{\"files\":[[\"x\",2,0,3]],\"parts\":[3]}\nabc", ask_files, -ACT_FAIL},
        {"{\"files\":[[\"x\",3,0,-3]],\"parts\":[3]}\nabc", ask_files, -ACT_FAIL},
        {"{\"files\":[[\"x\",3,0,2],[\"y\",1,0,1]],\"parts\":[3]}\nabc", ask_files, 0},
        {"{\"parts\":[8]}\n12345678{\"parts\":[1]}\nx", ask_parts, 0},
        {"{\"parts\":[8]}\n12345678{\"parts\":[1]}\n", ask_parts, -ACT_TEMPORARY},
        {"{\"parts\":[8]}\n12345678{\"code\":3,\"error\":\"gone\"}\n", ask_parts, -ACT_NOT_FOUND},
        {"{\"parts\":[9]}\n123456789", ask_parts, -ACT_FAIL},
        {"{\"parts\":[9]}\n123456789", ask_read, -ACT_FAIL},
        {"{\"parts\":[8]}\n12345678", ask_read, 0},
        {"{\"path\":\"relative\"}\n", ask_agent, -ACT_FAIL},
        {"{\"path\":\"/x\",\"missing\":[\"/etc/shadow\"]}\n", ask_agent, -ACT_FAIL},
        {"{\"path\":\"/x\",\"missing\":[]}\n", ask_agent, 0},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        err = (struct act_error){0};
        int rc = ask_liar(rows[i].answer, rows[i].ask, &err);
        if (rc != rows[i].rc)
            fail_msg("%s: %d %s", rows[i].answer, rc, act_error_text(&err));
    }
}

/* ---- main ---- */

/* The agent is in the build folder, not beside this program. */
static void site_test_find_programs(void)
{
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

    exe[n > 0 ? n : 0] = '\0';
    ACT_AUTOFREE char *tests = act_path_dirname(exe);
    ACT_AUTOFREE char *path = act_sprintf("%s/../act:%s", tests, getenv("PATH"));
    setenv("PATH", path, 1);
}

int main(void)
{
    site_test_find_programs();
    signal(SIGXFSZ, SIG_IGN); /* for test_no_space, also in the servers that are forked */
    setenv("SQUEUE_FORMAT", "%i", 1);
    setenv("SLURM_TIME_FORMAT", "relative", 1);
    return tests_run(NULL, NULL);
}
