/* cgroup_test.c - the cgroup of a run's processes: where it is, that nothing in it stays. */
#include "unit/temp_dir.h"
#include "unit/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "node/cgroup.h"
#include "node/child.h"
#include "node/memory.h"
#include "run/run.h"

#define RUN   "exp_1700000000_0123abcd"
#define OTHER "exp_1700000000_0123abce"

#define V1                                                                                                             \
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup c rw\n"
#define V2     "41 31 0:38 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
#define HYBRID V1 "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
#define PART   "41 31 0:38 /box/a /mnt/cg rw shared:9 - cgroup2 cgroup2 rw\n"

TEST(test_where)
{
    static const struct {
        const char *mounts, *groups, *found;
    } rows[] = {
        {V2, "0::/user.slice/x.scope\n", "/sys/fs/cgroup/user.slice/x.scope"},
        {V2, "0::/\n", "/sys/fs/cgroup"},
        {V2, "0::/no newline", "/sys/fs/cgroup/no newline"},
        {HYBRID, "4:memory:/m\n0::/a/b\n", "/sys/fs/cgroup/unified/a/b"},
        {HYBRID, "4:memory:/m\n", NULL},
        {V1, "4:memory:/m\n0::/a\n", NULL},
        {PART, "0::/box/a/b\n", "/mnt/cg/b"},
        {PART, "0::/box/a\n", "/mnt/cg"},
        {PART, "0::/box/ab\n", NULL},
        {PART V2, "0::/box/ab\n", "/sys/fs/cgroup/box/ab"},
        {V2, "0::/../other\n", NULL},
        {V2, "1:name=systemd:/x\n10:cpu:/y\n0::/z\n", "/sys/fs/cgroup/z"},
        {"41 31 0:38 / /mnt\\040x rw - cgroup2 cgroup2 rw\n", "0::/a\n", NULL},
        {"41 - cgroup2 \n\n", "0::/a\n", NULL},
        {"", "", NULL},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *found = cgroup_find(rows[i].mounts, rows[i].groups);
        if (rows[i].found)
            assert_string_equal(found, rows[i].found);
        else
            assert_null(found);
    }
}

#define V1_MEMORY "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"

TEST(test_where_memory_is_counted)
{
    static const struct {
        const char *mounts, *groups, *found;
    } rows[] = {
        {V1_MEMORY HYBRID, "4:memory:/m/n\n0::/a\n", "/sys/fs/cgroup/memory/m/n"},
        {V2, "0::/a\n", "/sys/fs/cgroup/a"},
        {HYBRID, "4:memory:/m\n0::/a\n", "/sys/fs/cgroup/unified/a"},
        {V1_MEMORY, "4:memory:/..\n", NULL},
        {V1_MEMORY, "4:cpu,memory:/x\n", NULL},
        {"", "", NULL},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *found = cgroup_find_memory(rows[i].mounts, rows[i].groups);
        if (rows[i].found)
            assert_string_equal(found, rows[i].found);
        else
            assert_null(found);
    }
}

static void cgroup_test_write_file(const char *folder, const char *name, const char *text)
{
    ACT_AUTOFREE char *path = act_path_join(folder, name);

    assert_ok(act_file_write(path, text, strlen(text), 0600, &err), err);
}

static pid_t start_sleeper(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        pause();
        _exit(0);
    }
    return pid;
}

static void expect_killed(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(child_exit_status(status), 128 + SIGKILL);
}

/* As far as the text goes: nobody else, and no group (0, -1) or init. */
TEST(test_one_by_one)
{
    pid_t pids[] = {start_sleeper(), start_sleeper(), start_sleeper()};
    ACT_AUTOFREE char *root = act_path_join(dir, "each");
    ACT_AUTOFREE char *top = act_sprintf("0\n-1\n");
    ACT_AUTOFREE char *above = act_sprintf("0\n%d\n", (int)pids[0]);
    ACT_AUTOFREE char *below = act_sprintf("%d\n1\n", (int)pids[1]);
    int status;

    cgroup_test_write_file(root, "cgroup.procs", top);
    cgroup_test_write_file(root, "a/cgroup.procs", above);
    cgroup_test_write_file(root, "a/b/cgroup.procs", below);
    cgroup_kill_each(root);
    expect_killed(pids[0]);
    expect_killed(pids[1]);
    assert_int_equal(waitpid(pids[2], &status, WNOHANG), 0);
    kill(pids[2], SIGKILL);
    expect_killed(pids[2]);
}

/* ---- a real one ---- */

static char *run_dir(const char *id)
{
    char *path = act_path_join(dir, id);

    assert_ok(act_mkdir_all(path, 0700, &err), err);
    return path;
}

/* A process that has left its parent, its session and its environment, once it runs; -1: it may not be there. */
static pid_t start_daemon(int cgroup)
{
    static const char script[] = "(setsid env -i sh -c 'trap \"\" TERM; echo $$; exec sleep 1000' &)";
    const char *const argv[] = {"sh", "-c", script, NULL};
    char text[32] = "";
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = child_start(&(struct child){.argv = argv, .out_fd = ends[1], .cgroup = cgroup});
    close(ends[1]);
    if (pid > 0)
        assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
    close(ends[0]);
    if (pid > 0)
        assert_int_equal(child_wait(pid), 0);
    return pid > 0 ? atoi(text) : -1;
}

/* Skips the test where this user may make none. */
static void need_cgroups(void)
{
    ACT_AUTOFREE char *where = run_dir(OTHER);
    struct cgroup c;

    cgroup_make(&c, where);
    pid_t pid = c.fd ? start_daemon(c.fd) : -1;
    assert_true(cgroup_end(&c));
    if (pid > 0) {
        expect_killed(pid);
        return;
    }
    act_str_replace(&where, NULL);
    print_message("skipped: no cgroup may be made here\n");
    skip();
}

static pid_t start_in(struct cgroup *c, const char *where)
{
    cgroup_make(c, where);
    assert_true(c->fd > 0);
    pid_t pid = start_daemon(c->fd);
    assert_true(pid > 1);
    return pid;
}

static void nothing_stays(void)
{
    ACT_AUTOFREE char *where = run_dir(RUN);
    ACT_AUTOFREE char *record = act_path_join(where, RUN_FILE_CGROUP);
    struct cgroup c;
    pid_t pid = start_in(&c, where);
    ACT_AUTOFREE char *path = act_strdup(c.path);
    ACT_AUTOFREE char *inner = act_path_join(path, "made by a command");

    assert_int_equal(mkdir(inner, 0755), 0);
    assert_int_equal(access(record, F_OK), 0);
    assert_true(cgroup_end(&c));
    expect_killed(pid);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(record, F_OK), -1);
    assert_true(cgroup_end(&c)); /* there is none any more */
    assert_false(cgroup_sweep(where));
}

static void sweep_after_supervisor(void)
{
    ACT_AUTOFREE char *where = run_dir(RUN);
    ACT_AUTOFREE char *other = run_dir(OTHER);
    ACT_AUTOFREE char *record = act_path_join(where, RUN_FILE_CGROUP);
    struct cgroup c;
    pid_t pid = start_in(&c, where);
    int status;

    cgroup_test_write_file(other, RUN_FILE_CGROUP, c.path);
    assert_false(cgroup_sweep(other)); /* it is not that run's */
    assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
    assert_true(cgroup_sweep(where));
    expect_killed(pid);
    assert_int_equal(access(c.path, F_OK), -1);
    cgroup_test_write_file(where, RUN_FILE_CGROUP, c.path);
    assert_true(cgroup_sweep(where)); /* the machine has restarted: it is gone */
    assert_int_equal(access(record, F_OK), -1);
    assert_true(cgroup_end(&c));
}

TEST(test_nothing_stays)
{
    need_cgroups();
    nothing_stays();
}

TEST(test_what_a_killed_supervisor_left)
{
    need_cgroups();
    sweep_after_supervisor();
}

/* A record may say anything. */
TEST(test_only_cgroups)
{
    ACT_AUTOFREE char *where = run_dir(RUN);
    ACT_AUTOFREE char *name = act_sprintf("act-%s", RUN);
    ACT_AUTOFREE char *folder = act_path_join(dir, name);
    const char *const texts[] = {folder, name, "", "/", "/sys/fs/cgroup", "\n"};

    assert_int_equal(mkdir(folder, 0700), 0);
    for (size_t i = 0; i < COUNT(texts); i++) {
        cgroup_test_write_file(where, RUN_FILE_CGROUP, texts[i]);
        assert_false(cgroup_sweep(where));
    }
    assert_int_equal(access(folder, F_OK), 0);
}

/* Both versions; what the cgroup itself does not have, those above it do. */
TEST(test_memory)
{
    ACT_AUTOFREE char *inner = act_path_join(dir, "a/b");

    assert_ok(act_mkdir_all(inner, 0755, &err), err);
    int64_t around = memory_limit_at(inner); /* of the machine on which this is tried */
    assert_int_equal(memory_kills_at(inner), -1);
    cgroup_test_write_file(dir, "memory.events", "low 0\noom 4\noom_kill 3\noom_group_kill 0\n");
    cgroup_test_write_file(dir, "memory.max", "1000\n");
    assert_int_equal(memory_kills_at(inner), 3);
    assert_int_equal(memory_limit_at(inner), 1000);
    cgroup_test_write_file(inner, "memory.events", "oom_kill 0\n");
    cgroup_test_write_file(inner, "memory.max", "max\n");
    assert_int_equal(memory_kills_at(inner), 0);
    assert_int_equal(memory_limit_at(inner), 1000);
    cgroup_test_write_file(inner, "memory.max", "900\n");
    assert_int_equal(memory_limit_at(inner), 900);

    ACT_AUTOFREE char *old = act_path_join(dir, "old");
    assert_ok(act_mkdir_all(old, 0755, &err), err);
    cgroup_test_write_file(dir, "memory.max", "max\n");
    cgroup_test_write_file(old, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n");
    cgroup_test_write_file(old, "memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(memory_kills_at(old), 7);
    assert_int_equal(memory_limit_at(old), around);
    cgroup_test_write_file(old, "memory.oom_control", "under_oom 0\n"); /* before Linux 4.13 */
    assert_int_equal(memory_kills_at(old), -1);
}

int main(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return tests_run(make_dir, remove_dir);
}
