/* Data first, then the name: every file that gets its place has its bytes on the disk before. The system calls that
 * write, sync and name pass through here, and each name is checked against what was written to that file last. */
#define TEST_SETUP    power_test_setup
#define TEST_TEARDOWN power_test_teardown
#include "unit/test.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "engine/engine.h"
#include "flow/logs/logs.h"
#include "flow/runs/runs.h"
#include "flow/source/source.h"
#include "http/http.h"
#include "node/supervisor.h"
#include "platform/platform.h"
#include "run/run.h"
#include "store/store.h"
#include "transfer/transfer.h"

enum { FILES = 200, PART = 4096, LARGE = 10 * PART + 100, MAX_SEEN = 4096 };

/* ---- what the disk has */

static struct {
    pthread_mutex_t lock;
    struct {
        ino_t ino;
        bool dirty;
    } seen[MAX_SEEN];
    size_t n;
    int names, early, data_syncs, folder_syncs, all_syncs;
    int others_dirty;   /* files whose bytes the disk did not have when the last name was given */
    bool folders_dirty; /* a name was given since the last sync of all, or of a folder */
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void power_test_forget_all(void)
{
    disk.n = 0;
    disk.names = disk.early = disk.others_dirty = disk.data_syncs = disk.folder_syncs = disk.all_syncs = 0;
    disk.folders_dirty = false;
}

static void power_test_note(int fd, bool dirty)
{
    struct stat st;
    size_t i = 0;

    if (fstat(fd, &st) || !S_ISREG(st.st_mode))
        return;
    pthread_mutex_lock(&disk.lock);
    while (i < disk.n && disk.seen[i].ino != st.st_ino)
        i++;
    if (i == disk.n && disk.n < MAX_SEEN)
        disk.seen[disk.n++].ino = st.st_ino;
    if (i < disk.n)
        disk.seen[i].dirty = dirty;
    pthread_mutex_unlock(&disk.lock);
}

/* Part files get their own names early. */
static void power_test_note_name(int dir, const char *name)
{
    struct stat st;

    if (strncmp(name, ".act-part-", strlen(".act-part-")) == 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) ||
        !S_ISREG(st.st_mode))
        return;
    pthread_mutex_lock(&disk.lock);
    disk.names++;
    disk.folders_dirty = true;
    disk.others_dirty = 0;
    for (size_t i = 0; i < disk.n; i++) {
        disk.early += disk.seen[i].ino == st.st_ino && disk.seen[i].dirty;
        disk.others_dirty += disk.seen[i].ino != st.st_ino && disk.seen[i].dirty;
    }
    pthread_mutex_unlock(&disk.lock);
}

ssize_t __real_write(int fd, const void *data, size_t len);
ssize_t __wrap_write(int fd, const void *data, size_t len);
ssize_t __real_pwrite64(int fd, const void *data, size_t len, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t len, off_t offset);
ssize_t __real_copy_file_range(int in, off_t *in_at, int out, off_t *out_at, size_t len, unsigned flags);
ssize_t __wrap_copy_file_range(int in, off_t *in_at, int out, off_t *out_at, size_t len, unsigned flags);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __real_syncfs(int fd);
int __wrap_syncfs(int fd);
int __real_fstatfs64(int fd, struct statfs *out);
int __wrap_fstatfs64(int fd, struct statfs *out);

ssize_t __wrap_write(int fd, const void *data, size_t len)
{
    power_test_note(fd, true);
    return __real_write(fd, data, len);
}

ssize_t __wrap_pwrite64(int fd, const void *data, size_t len, off_t offset)
{
    power_test_note(fd, true);
    return __real_pwrite64(fd, data, len, offset);
}

ssize_t __wrap_copy_file_range(int in, off_t *in_at, int out, off_t *out_at, size_t len, unsigned flags)
{
    ssize_t n = __real_copy_file_range(in, in_at, out, out_at, len, flags);

    if (n > 0)
        power_test_note(out, true);
    return n;
}

static void count_sync(int fd)
{
    struct stat st;
    bool folder = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);

    power_test_note(fd, false);
    pthread_mutex_lock(&disk.lock);
    if (folder)
        disk.folders_dirty = false;
    folder ? disk.folder_syncs++ : disk.data_syncs++;
    pthread_mutex_unlock(&disk.lock);
}

int __wrap_fsync(int fd)
{
    count_sync(fd);
    return __real_fsync(fd);
}

int __wrap_fdatasync(int fd)
{
    count_sync(fd);
    return __real_fdatasync(fd);
}

/* Bytes written meanwhile are not synced by it: so it counts for what was there when it began. */
int __wrap_syncfs(int fd)
{
    pthread_mutex_lock(&disk.lock);
    for (size_t i = 0; i < disk.n; i++)
        disk.seen[i].dirty = false;
    disk.folders_dirty = false;
    disk.all_syncs++;
    pthread_mutex_unlock(&disk.lock);
    return __real_syncfs(fd);
}

/* Defines a call that gives a name to a file in a folder. */
#define NAMES(call, dir, to, parameters, arguments)                                                                    \
    int __real_##call parameters;                                                                                      \
    int __wrap_##call parameters;                                                                                      \
    int __wrap_##call parameters                                                                                       \
    {                                                                                                                  \
        int rc = __real_##call arguments;                                                                              \
        if (rc == 0)                                                                                                   \
            power_test_note_name(dir, to);                                                                             \
        return rc;                                                                                                     \
    }

NAMES(linkat, b, to, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags))
NAMES(link, AT_FDCWD, to, (const char *from, const char *to), (from, to))
NAMES(renameat, b, to, (int a, const char *from, int b, const char *to), (a, from, b, to))
NAMES(renameat2, b, to, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags))
NAMES(rename, AT_FDCWD, to, (const char *from, const char *to), (from, to))

/* The folder of the tests may be in memory, where nothing is synced. */
int __wrap_fstatfs64(int fd, struct statfs *out)
{
    int rc = __real_fstatfs64(fd, out);

    if (rc == 0)
        out->f_type = EXT4_SUPER_MAGIC;
    return rc;
}

static void assert_in_order(int least_names)
{
    assert_true(disk.names >= least_names);
    assert_int_equal(disk.early, 0);
    assert_false(disk.folders_dirty);
}

/* ---- two folders */

static struct {
    char dir[64];
    struct engine *engine;
    struct http *http;
    struct store *from, *to;
    char root[1]; /* the path of all */
} t;

static void open_stores(void)
{
    ACT_AUTOFREE char *from = act_sprintf("%s/from", t.dir);
    ACT_AUTOFREE char *to = act_sprintf("%s/to", t.dir);

    t.engine = engine_new(NULL);
    t.http = http_new(t.engine, &(struct http_options){0});
    assert_ok(store_folder_open(t.http, from, true, &t.from, &err), err);
    assert_ok(store_folder_open(t.http, to, true, &t.to, &err), err);
}

static int power_test_setup(void **state)
{
    (void)state;
    strcpy(t.dir, "/tmp/act-power-XXXXXX");
    assert_non_null(mkdtemp(t.dir));
    open_stores();
    return 0;
}

static int power_test_teardown(void **state)
{
    (void)state;
    store_free(t.from);
    store_free(t.to);
    http_free(t.http);
    engine_free(t.engine);
    return act_remove_tree(t.dir, &err);
}

static void power_test_write_text(const char *side, const char *name, const void *data, size_t len)
{
    ACT_AUTOFREE char *path = act_sprintf("%s/%s/%s", t.dir, side, name);

    assert_ok(act_file_write(path, data, len, 0644, &err), err);
}

/* Small files in folders and one of many parts; every second one is at the destination already, and older. */
static void make_trees(void)
{
    ACT_AUTOFREE char *large = act_calloc(1, LARGE);

    memset(large, 'x', LARGE);
    for (int i = 0; i < FILES; i++) {
        ACT_AUTOFREE char *name = act_sprintf("in/%d/file-%d", i % 3, i);
        power_test_write_text("from", name, name, strlen(name));
        if (i % 2)
            power_test_write_text("to", name, "old", 3);
    }
    power_test_write_text("from", "large", large, LARGE);
    power_test_write_text("to", "large", "old", 3);
}

static void check_trees(void)
{
    for (int i = 0; i < FILES; i++) {
        ACT_AUTOFREE char *name = act_sprintf("in/%d/file-%d", i % 3, i);
        ACT_AUTOFREE char *path = act_sprintf("%s/to/%s", t.dir, name);
        ACT_AUTOFREE char *text = NULL;
        assert_ok(act_file_read(path, 100, &text, NULL, &err), err);
        assert_string_equal(text, name);
    }
}

static void copy_all(bool no_sync)
{
    struct transfer_path from = {.store = t.from, .path = t.root, .is_folder = true};
    struct transfer_options options = {.part_size = PART, .no_sync = no_sync, .max_delete = -1};
    ACT_AUTO(transfer_report) report = {0};

    make_trees();
    power_test_forget_all();
    assert_ok(transfer_copy(t.engine, &from, t.to, "", &options, &report, &err), err);
    assert_int_equal(report.total.done_objects, FILES + 1);
    check_trees();
}

TEST(test_many_wait_together)
{
    copy_all(false);
    assert_in_order(FILES + 1);
    assert_true(disk.all_syncs >= 1);
    assert_true(disk.all_syncs + disk.data_syncs + disk.folder_syncs < FILES / 2);
}

TEST(test_no_sync)
{
    copy_all(true);
    assert_int_equal(disk.all_syncs + disk.data_syncs + disk.folder_syncs, 0);
}

/* Who does not let a call be kept has the object when it is done. */
TEST(test_each_alone)
{
    struct store_call put = {
        .op = STORE_PUT, .key = "a/b", .put = {.data.bytes = "text", .data.len = 4, .attr.mode = -1}};
    ACT_AUTO(store_call) copy = {.op = STORE_COPY, .copy.source = "a/b", .key = "a/c"};

    power_test_forget_all();
    assert_ok(store_do(t.to, &put, &err), err);
    assert_in_order(1);
    store_call_release(&put);
    assert_ok(store_do(t.to, &put, &err), err); /* replaced */
    assert_in_order(2);
    store_call_release(&put);
    assert_ok(store_do(t.to, &copy, &err), err);
    assert_in_order(3);
}

TEST(test_blocks_alone)
{
    struct store_upload_id id = {0};

    for (int begun = 0; begun < 2; begun++) {
        power_test_forget_all();
        id.bytes[0]++;
        struct store_call calls[] = {
            {.op = STORE_BLOCKS, .key = "large", .blocks = {.upload_id = id, .total = 8}},
            {.op = STORE_BLOCK, .key = "large", .block = {.upload_id = id, .data = {.bytes = "12345678", .len = 8}}},
            {.op = STORE_COMMIT,
             .key = "large",
             .commit = {.upload_id = id, .n_blocks = 1, .total = 8, .attr.mode = -1}},
        };
        for (size_t i = !begun; i < COUNT(calls); i++) {
            assert_ok(store_do(t.to, &calls[i], &err), err);
            store_call_release(&calls[i]);
        }
        assert_in_order(1);
    }
}

TEST(test_state_files)
{
    ACT_AUTOFREE char *path = act_sprintf("%s/state", t.dir);
    ACT_AUTOFREE char *copy = act_sprintf("%s/copy", t.dir);

    power_test_forget_all();
    assert_ok(act_file_write(path, "text", 4, 0600, &err), err);
    assert_in_order(1);
    assert_ok(act_file_copy(path, copy, 0600, &err), err);
    assert_ok(rename(copy, path) ? -1 : 0, err);
    assert_int_equal(disk.early, 0);
}

/* The file that says that the copies of a run's logs are whole. */
TEST(test_copies_of_logs)
{
    struct platform *platform = (void *)&t; /* it is not asked */
    char id[] = "run", name[] = "user_logs/0.txt";
    struct flow_run run = {.row = {.id = id, .project = t.dir}, .status.state = RUN_COMPLETED};
    ACT_AUTOFREE char *path = act_sprintf("%s/assets/%s/%s", t.dir, id, name);
    struct store_entry log = {.key = name, .size = strlen("text")};

    power_test_forget_all();
    int fd = act_open_below(t.dir, path, O_WRONLY | O_CREAT, &err);
    assert_true(fd >= 0 && act_pwrite_all(fd, "text", strlen("text"), 0) == 0);
    close(fd);
    assert_ok(flow_note_complete(&(struct flow_source){.platform = platform}, &run,
                                 &(struct store_page){.v = &log, .n = 1}, &err),
              err);
    assert_in_order(1);
    assert_int_equal(disk.others_dirty, 0);
}

/* A requeued job believes it. */
TEST(test_claim)
{
    struct supervisor s = {.node.dir = t.dir, .job.id = (char[]){"12"}};

    power_test_forget_all();
    assert_ok(attempt_claim(&s, &err), err);
    assert_int_equal(disk.names, 1);
    assert_int_equal(disk.early, 0);
}

TEST_MAIN(NULL, NULL)
