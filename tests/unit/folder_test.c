/* The folder store where its contract does not reach: what it leaves on disk, and what it believes of what it
 * finds there. Every test has a root of its own; the store is opened anew as a later process would. */
#define TEST_SETUP    folder_test_setup
#define TEST_TEARDOWN folder_test_teardown
#include "unit/killed.h"
#include "unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/crc64.h"
#include "base/file.h"
#include "base/text.h"
#include "engine/engine.h"
#include "http/http.h"
#include "store/store.h"

enum { BLOCK = 1000, BLOCKS = 3, TOTAL = 2500 };

static struct {
    struct engine *engine;
    struct http *http;
    struct store *store;
    char root[64];
    char data[TOTAL];
} t;

static const struct store_upload_id id = {{1}}, other_id = {{2}};

/* ---- short forms */

static void folder_test_open_store(void)
{
    t.engine = engine_new(NULL);
    t.http = http_new(t.engine, &(struct http_options){0});
    assert_ok(store_folder_open(t.http, t.root, true, &t.store, &err), err);
}

static void close_store(void)
{
    store_free(t.store);
    http_free(t.http);
    engine_free(t.engine);
    t.store = NULL;
}

static void folder_test_reopen(void)
{
    close_store();
    folder_test_open_store();
}

static struct store_call folder_call(enum store_op op, const char *key, const struct store_upload_id *upload)
{
    struct store_call call = {.op = op, .key = key};

    if (op == STORE_PUT)
        call.put.attr.mode = -1;
    else if (op == STORE_BLOCKS)
        call.blocks = (struct store_blocks){.upload_id = *upload, .total = TOTAL};
    else if (op == STORE_BLOCK)
        call.block.upload_id = *upload;
    else if (op == STORE_COMMIT)
        call.commit = (struct store_commit){.upload_id = *upload, .total = TOTAL, .attr.mode = -1};
    else if (op == STORE_DROP)
        call.drop.upload_id = *upload;
    return call;
}

static int folder_test_run(struct store_call *call)
{
    int rc = store_do(t.store, call, &err);

    store_call_release(call);
    return rc;
}

static int begin_upload(const char *key, const struct store_upload_id *upload)
{
    struct store_call call = folder_call(STORE_BLOCKS, key, upload);

    return folder_test_run(&call);
}

static size_t block_len(int64_t index)
{
    return index + 1 < BLOCKS ? BLOCK : TOTAL - BLOCK * (BLOCKS - 1);
}

static int folder_test_send_block(const char *key, const struct store_upload_id *upload, uint32_t index)
{
    struct store_call call = folder_call(STORE_BLOCK, key, upload);

    call.block.index = index;
    call.block.offset = index * BLOCK;
    call.block.data.bytes = t.data + call.block.offset;
    call.block.data.len = block_len(index);
    return folder_test_run(&call);
}

/* Begins an upload and sends its first n blocks. */
static void begin_with(const char *key, const struct store_upload_id *upload, uint32_t n)
{
    assert_ok(begin_upload(key, upload), err);
    for (uint32_t i = 0; i < n; i++)
        assert_ok(folder_test_send_block(key, upload, i), err);
}

static int folder_test_commit(const char *key, const struct store_upload_id *upload)
{
    struct store_call call = folder_call(STORE_COMMIT, key, upload);

    call.commit.n_blocks = BLOCKS;
    return folder_test_run(&call);
}

static int folder_test_put(const char *key, const void *data, size_t len)
{
    struct store_call call = folder_call(STORE_PUT, key, &id);

    call.put.data.bytes = data;
    call.put.data.len = len;
    return folder_test_run(&call);
}

/* Begins the upload; a bit for each block that is there. What is there must be right. */
static unsigned blocks_of(const char *key, const struct store_upload_id *upload)
{
    ACT_AUTO(store_call) call = folder_call(STORE_BLOCKS, key, upload);
    unsigned seen = 0;

    assert_ok(store_do(t.store, &call, &err), err);
    for (size_t i = 0; i < call.blocks.n_found; i++) {
        int64_t index = store_block_index(upload, &call.blocks.found[i]);
        assert_in_range(index, 0, BLOCKS - 1);
        size_t len = block_len(index);
        assert_int_equal(call.blocks.found[i].len, len);
        assert_int_equal(call.blocks.found[i].crc64, act_crc64(0, t.data + index * BLOCK, len));
        seen |= 1U << index;
    }
    return seen;
}

/* Sends what is missing and commits. */
static void folder_test_finish(const char *key, const struct store_upload_id *upload)
{
    unsigned there = blocks_of(key, upload);

    for (uint32_t i = 0; i < BLOCKS; i++)
        if (!(there & 1U << i))
            assert_ok(folder_test_send_block(key, upload, i), err);
    assert_ok(folder_test_commit(key, upload), err);
}

static char *folder_test_in_root(const char *name)
{
    return act_sprintf("%s/%s", t.root, name);
}

/* The files of the root whose names contain piece. */
static struct act_strv files_with(const char *piece)
{
    struct act_strv names = {0};
    struct dirent *entry;
    DIR *dir = opendir(t.root);

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL)
        if (entry->d_type == DT_REG && strstr(entry->d_name, piece))
            act_strv_push(&names, entry->d_name);
    closedir(dir);
    return names;
}

static void assert_files(const char *piece, size_t n)
{
    ACT_AUTO(act_strv) names = files_with(piece);

    assert_int_equal(names.n, n);
}

/* The path of the only file whose name ends so, after ".act-part-". */
static char *only_file(const char *suffix)
{
    ACT_AUTO(act_strv) names = files_with(".act-part-");
    char *path = NULL;

    for (size_t i = 0; i < names.n; i++)
        if (act_ends_with(names.v[i], ".map") == act_ends_with(suffix, ".map")) {
            assert_null(path);
            path = folder_test_in_root(names.v[i]);
        }
    assert_non_null(path);
    return path;
}

static char *slurp(const char *path, size_t *len)
{
    char *data = NULL;

    assert_ok(act_file_read(path, 1 << 20, &data, len, &err), err);
    return data;
}

static void spill(const char *path, const void *data, size_t len)
{
    assert_ok(act_file_write(path, data, len, 0644, &err), err);
}

static bool has_content(const char *key, const void *data, size_t len)
{
    ACT_AUTOFREE char *path = folder_test_in_root(key);
    size_t got = 0;
    ACT_AUTOFREE char *seen = slurp(path, &got);

    return got == len && memcmp(seen, data, len) == 0;
}

static void folder_test_run_shell(const char *command)
{
    ACT_AUTOFREE char *line = act_sprintf("cd '%s' && %s", t.root, command);

    assert_int_equal(system(line), 0); /* NOLINT(cert-env33-c): a test's own words */
}

/* Counts what interrupted uploads left and nobody has; removes it if that is asked for. */
static size_t each_leftover(bool clear)
{
    ACT_AUTO(store_call) call = folder_call(STORE_LIST, "", &id);

    call.list.leftovers = true;
    assert_ok(store_do(t.store, &call, &err), err);
    for (size_t i = 0; clear && i < call.list.page.n; i++) {
        struct store_call one = folder_call(STORE_CLEAR, call.list.page.v[i].key, &id);
        assert_ok(folder_test_run(&one), err);
    }
    return call.list.page.n;
}

static size_t count_leftovers(void)
{
    return each_leftover(false);
}

/* ---- the map */

static void upload_without_commit(void)
{
    begin_with("x", &id, BLOCKS);
    close_store();
}

static int folder_test_setup(void **state)
{
    const char *tmp = getenv("TMPDIR");

    (void)state;
    snprintf(t.root, sizeof(t.root), "%.40s/act-folder-XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
    for (size_t i = 0; i < TOTAL; i++)
        t.data[i] = (char)(i * 2654435761U >> 13);
    if (!mkdtemp(t.root))
        return -1;
    folder_test_open_store();
    return 0;
}

static int folder_test_teardown(void **state)
{
    (void)state;
    if (t.store)
        close_store();
    return act_remove_tree(t.root, &err);
}

TEST(map_is_torn_at_every_byte)
{
    size_t len = 0;

    upload_without_commit();
    ACT_AUTOFREE char *map = only_file(".map");
    ACT_AUTOFREE char *records = slurp(map, &len);
    assert_int_equal(len % BLOCKS, 0);
    for (size_t cut = 0; cut <= len; cut++) {
        spill(map, records, cut);
        folder_test_open_store();
        assert_int_equal(blocks_of("x", &id), (1U << (cut / (len / BLOCKS))) - 1);
        assert_ok(folder_test_send_block("x", &id, 2), err); /* and what is added next is in its place */
        folder_test_reopen();
        assert_true(blocks_of("x", &id) & 4);
        close_store();
    }
    folder_test_open_store();
    folder_test_finish("x", &id);
    assert_true(has_content("x", t.data, TOTAL));
    assert_files(".act-part-", 0);
}

TEST(map_is_damaged_at_every_byte)
{
    size_t len = 0;

    upload_without_commit();
    ACT_AUTOFREE char *map = only_file(".map");
    ACT_AUTOFREE char *records = slurp(map, &len);
    for (size_t at = 0; at < len; at++) {
        records[at] ^= 0x55;
        spill(map, records, len);
        folder_test_open_store();
        assert_int_equal(blocks_of("x", &id), 7U & ~(1U << (at / (len / BLOCKS))));
        close_store();
        records[at] ^= 0x55;
    }
    folder_test_open_store();
}

TEST(part_is_damaged_or_cut)
{
    static const struct {
        size_t len; /* of the part file; then this byte is changed */
        size_t changed;
        unsigned there;
    } rows[] = {
        {TOTAL, 0, 6},         {TOTAL, 1500, 5}, {TOTAL, TOTAL - 1, 3}, {TOTAL - 1, TOTAL, 3}, {BLOCK, TOTAL, 1},
        {BLOCK + 1, TOTAL, 1}, {0, TOTAL, 0},    {TOTAL, TOTAL, 7},     {TOTAL + 1, TOTAL, 7},
    };
    char bytes[TOTAL + 1] = "";
    size_t len = 0;

    upload_without_commit();
    ACT_AUTOFREE char *part = only_file("");
    ACT_AUTOFREE char *map = only_file(".map");
    ACT_AUTOFREE char *records = slurp(map, &len);
    for (size_t i = 0; i < COUNT(rows); i++) {
        memcpy(bytes, t.data, TOTAL);
        bytes[rows[i].changed] ^= 1;
        spill(part, bytes, rows[i].len);
        spill(map, records, len);
        folder_test_open_store();
        assert_int_equal(blocks_of("x", &id), rows[i].there);
        close_store();
    }
    folder_test_open_store();
    folder_test_finish("x", &id);
    assert_true(has_content("x", t.data, TOTAL));
}

/* Nobody writes zeros: a part file whose last blocks are zeros ends before them. */
TEST(zeros_at_the_end_are_there)
{
    memset(t.data + BLOCK, 0, TOTAL - BLOCK);
    upload_without_commit();
    ACT_AUTOFREE char *part = only_file("");
    spill(part, t.data, BLOCK);
    folder_test_open_store();
    assert_int_equal(blocks_of("x", &id), 7);
    assert_ok(folder_test_commit("x", &id), err);
    assert_true(has_content("x", t.data, TOTAL));
}

/* ---- whose upload it is */

TEST(stale_uploads_go)
{
    begin_with("x", &id, 1);
    assert_ok(begin_upload("y", &id), err);
    folder_test_reopen();
    assert_files(".act-part-", 4);
    assert_int_equal(count_leftovers(), 2);
    assert_ok(begin_upload("x", &other_id), err); /* the source is another now */
    assert_files(".act-part-", 4);
    assert_int_equal(count_leftovers(), 1); /* that of y; ours is in use */
    assert_int_equal(blocks_of("x", &other_id), 0);
    folder_test_finish("x", &other_id);
    folder_test_reopen();
    assert_int_equal(blocks_of("x", &id), 0);
}

/* Killed before it had a map, or a link before it was in its place. */
TEST(leftovers_of_other_kinds_go)
{
    struct store_call clear = folder_call(STORE_CLEAR, NULL, &id);

    assert_ok(folder_test_send_block("x", &other_id, 0), err);
    assert_files(".act-part-", 1);
    assert_int_equal(count_leftovers(), 1);
    assert_ok(begin_upload("x", &id), err);
    assert_files(".act-part-", 2); /* ours, with its map */
    folder_test_finish("x", &id);

    folder_test_run_shell("ln -s target .act-part-0123456789abcdef-0123456789abcdef0123456789abcdef");
    assert_int_equal(count_leftovers(), 1);
    clear.key = ".act-part-0123456789abcdef-0123456789abcdef0123456789abcdef";
    assert_ok(folder_test_run(&clear), err);
    assert_int_equal(count_leftovers(), 0);
}

TEST(dropped_upload_leaves_nothing)
{
    struct store_call drop = folder_call(STORE_DROP, "x", &id);

    begin_with("x", &id, 1);
    assert_ok(folder_test_run(&drop), err);
    assert_files(".act-part-", 0);
    assert_ok(begin_upload("x", &id), err);
    folder_test_reopen();
    assert_ok(folder_test_run(&drop), err); /* also by who did not begin it */
    assert_files(".act-part-", 0);
}

TEST(kept_upload_is_let_go_of)
{
    struct store_call keep = folder_call(STORE_DROP, "x", &id);

    keep.drop.keep = true;
    assert_ok(begin_upload("x", &id), err);
    assert_ok(folder_test_run(&keep), err); /* without a block there is nothing to keep */
    assert_files(".act-part-", 0);
    begin_with("x", &id, 1);
    assert_int_equal(count_leftovers(), 0);
    assert_ok(folder_test_run(&keep), err);
    assert_int_equal(count_leftovers(), 1);
    assert_ok(folder_test_run(&keep), err);
    assert_int_equal(count_leftovers(), 1);
    assert_int_equal(blocks_of("x", &id), 1);
    folder_test_finish("x", &id);
    assert_true(has_content("x", t.data, TOTAL));
}

TEST(uncommitted_bytes_can_be_read)
{
    ACT_AUTO(store_call) call = folder_call(STORE_GET, "x", &id);
    char sink[TOTAL];

    call.get.upload = &id;
    call.get.sink = sink;
    call.get.sink_cap = BLOCK;
    assert_int_equal(folder_test_run(&call), -ACT_NOT_FOUND); /* not ours */
    assert_ok(begin_upload("x", &id), err);
    assert_ok(folder_test_send_block("x", &id, 1), err);
    assert_ok(folder_test_send_block("x", &id, 2), err);
    assert_int_equal(folder_test_run(&call), -ACT_NOT_FOUND); /* not there */
    call.get.offset = BLOCK + 10;
    call.get.sink_cap = TOTAL;
    assert_ok(store_do(t.store, &call, &err), err);
    assert_int_equal(call.get.got, TOTAL - BLOCK - 10);
    assert_memory_equal(sink, t.data + BLOCK + 10, call.get.got);
}

TEST(part_of_a_secret_is_secret)
{
    struct store_call call = folder_call(STORE_BLOCKS, "x", &id);
    struct stat st;

    call.blocks.mode = 0600;
    assert_ok(folder_test_run(&call), err);
    ACT_AUTOFREE char *part = only_file("");
    assert_int_equal(stat(part, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

/* Runs in a child what ends only with the child. */
static pid_t child_that(void (*act)(void), int *out)
{
    int fds[2];
    char ready = 0;

    assert_int_equal(pipe(fds), 0);
    close_store(); /* no threads while it forks */
    pid_t pid = fork();
    if (pid == 0) {
        folder_test_open_store();
        act();
        if (write(fds[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    close(fds[1]);
    assert_int_equal(read(fds[0], &ready, 1), 1);
    *out = fds[0];
    folder_test_open_store();
    return pid;
}

static void begin_and_send(void)
{
    if (begin_upload("x", &id) || folder_test_send_block("x", &id, 0))
        _exit(1);
}

TEST(upload_of_another_process_is_let_be)
{
    int fd = -1;

    pid_t pid = child_that(begin_and_send, &fd);
    ACT_AUTOFREE char *part = only_file("");
    struct store_call clear = folder_call(STORE_CLEAR, strrchr(part, '/') + 1, &id);
    struct store_call drop = folder_call(STORE_DROP, "x", &id);

    assert_fails(begin_upload("x", &id), err, ACT_TEMPORARY, "another process");
    assert_int_equal(folder_test_run(&clear), -ACT_TEMPORARY);
    assert_int_equal(folder_test_run(&drop), -ACT_TEMPORARY);
    assert_int_equal(count_leftovers(), 0);
    assert_ok(begin_upload("x", &other_id), err); /* a newer source does not wait, nor does it take it away */
    folder_test_finish("x", &other_id);
    assert_files(".act-part-", 2);

    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(fd);
    assert_int_equal(count_leftovers(), 1);
    assert_int_equal(blocks_of("x", &id), 1);
    folder_test_finish("x", &id);
    assert_files(".act-part-", 0);
}

static void upload_until_done(void)
{
    for (int round = 0; round < 40; round++) {
        struct store_upload_id own = {{3, (uint8_t)round}};
        char key[32];
        snprintf(key, sizeof(key), "both/%d", round);
        int rc = begin_upload(key, &own);
        if (rc == -(int)ACT_TEMPORARY) /* the other one has it */
            act_random(own.bytes, sizeof(own.bytes));
        else if (rc)
            _exit(1);
        for (uint32_t i = 0; i < BLOCKS; i++)
            if (folder_test_send_block(key, &own, i))
                _exit(2);
        if (folder_test_commit(key, &own))
            _exit(3);
        if (folder_test_put("both/small", t.data, (size_t)(TOTAL - round)))
            _exit(4);
    }
}

TEST(two_processes_upload_the_same)
{
    char key[32];
    int status = 0;

    close_store();
    for (int i = 0; i < 2; i++)
        if (fork() == 0) {
            folder_test_open_store();
            upload_until_done();
            _exit(0);
        }
    while (wait(&status) > 0)
        assert_int_equal(status, 0);
    folder_test_open_store();
    for (int round = 0; round < 40; round++) {
        snprintf(key, sizeof(key), "both/%d", round);
        assert_true(has_content(key, t.data, TOTAL));
    }
    assert_int_equal(count_leftovers(), 0);
}

/* ---- killed at each system call */

/* The child stops itself when the store is open: what comes next is counted. */
static pid_t folder_test_traced_child(void (*act)(void))
{
    pid_t pid = fork();

    if (pid == 0) {
        folder_test_open_store();
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) || raise(SIGSTOP))
            _exit(2);
        act();
        _exit(0);
    }
    return pid;
}

static void folder_test_upload_whole(void)
{
    if (begin_upload("x", &id) || folder_test_send_block("x", &id, 0) || folder_test_send_block("x", &id, 1) ||
        folder_test_send_block("x", &id, 2) || folder_test_commit("x", &id))
        _exit(1);
}

static void folder_test_put_whole(void)
{
    if (folder_test_put("x", t.data, TOTAL))
        _exit(1);
}

static void finish_and_clear(void)
{
    folder_test_finish("x", &id);
    each_leftover(true);
}

static void put_again(void)
{
    assert_ok(folder_test_put("x", t.data, TOTAL), err);
}

/* Kills the work at each of its steps. After each the old object is there or the new one is, and what is done then
 * leaves the new one, and nothing else. */
static void kill_at_every_step(void (*act)(void), void (*then)(void))
{
    bool killed = true;
    int steps = 0;

    if (!can_trace()) {
        print_message("skipped: no process may be traced here\n");
        skip();
    }
    for (int n = 1; killed; n++, steps++) {
        assert_ok(folder_test_put("x", "old", 3), err);
        close_store();
        killed = kill_at(folder_test_traced_child(act), n);
        folder_test_open_store();
        assert_true(has_content("x", t.data, TOTAL) || (killed && has_content("x", "old", 3)));
        then();
        assert_true(has_content("x", t.data, TOTAL));
        assert_files("", 1);
    }
    assert_true(steps > 20);
}

TEST(upload_is_killed_at_every_step)
{
    kill_at_every_step(folder_test_upload_whole, finish_and_clear);
}

TEST(put_is_killed_at_every_step)
{
    kill_at_every_step(folder_test_put_whole, finish_and_clear);
}

/* Whoever replaces a file needs a name for the new one for a moment. The same again finds it. */
TEST(put_again_leaves_nothing)
{
    kill_at_every_step(folder_test_put_whole, put_again);
}

/* Lets a system call fail where the flags in its argument have these bits, as on other systems. */
static void deny(int number, unsigned argument, uint32_t bits, int errnum)
{
    const uint32_t at = (uint32_t)offsetof(struct seccomp_data, args) + 8 * argument;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, bits, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)errnum),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = COUNT(code), .filter = code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        _exit(3);
}

static void put_whole_without_tmpfile(void)
{
    deny(SYS_openat, 2, O_TMPFILE, EOPNOTSUPP);
    if (open(t.root, O_TMPFILE | O_WRONLY, 0600) >= 0 || errno != EOPNOTSUPP)
        _exit(4);
    folder_test_put_whole();
}

TEST(put_without_tmpfile_is_killed_at_every_step)
{
    kill_at_every_step(put_whole_without_tmpfile, finish_and_clear);
}

static void put_whole_through_proc(void)
{
    deny(SYS_linkat, 4, AT_EMPTY_PATH, ENOENT);
    if (linkat(-1, "", -1, "", AT_EMPTY_PATH) == 0 || errno != ENOENT)
        _exit(4);
    folder_test_put_whole();
}

TEST(put_through_proc_is_killed_at_every_step)
{
    kill_at_every_step(put_whole_through_proc, finish_and_clear);
}

/* ---- folders that stay open */

static int folder_test_get(const char *key, char sink[TOTAL])
{
    struct store_call call = folder_call(STORE_GET, key, &id);

    call.get.sink = sink;
    call.get.sink_cap = TOTAL;
    memset(sink, 0, TOTAL);
    return folder_test_run(&call);
}

TEST(folders_are_found_again)
{
    struct store_call remove = folder_call(STORE_DELETE, "a/x", &id);
    char sink[TOTAL];

    assert_ok(folder_test_put("a/b/x", "one", 3), err);
    assert_ok(folder_test_put("a/x", "one", 3), err);
    folder_test_run_shell("rm -r a");
    assert_ok(folder_test_put("a/b/x", "two", 3), err);
    assert_ok(folder_test_get("a/b/x", sink), err);
    assert_string_equal(sink, "two");
    folder_test_run_shell("rm -r a/b && mkdir a/b && printf three >a/b/y && printf four >a/x");
    assert_ok(folder_test_get("a/b/y", sink), err);
    assert_string_equal(sink, "three");
    assert_int_equal(folder_test_get("a/b/x", sink), -ACT_NOT_FOUND);
    assert_ok(folder_test_get("a/x", sink), err);
    assert_string_equal(sink, "four");
    folder_test_run_shell("rm -r a && mkdir c a && printf five >a/x");
    assert_ok(folder_test_run(&remove), err);
    assert_int_equal(folder_test_run(&remove), -ACT_NOT_FOUND);
    folder_test_run_shell("rmdir a && ln -s c a");
    assert_fails(folder_test_put("a/x", "six", 3), err, ACT_FAIL, "symbolic link");
    folder_test_run_shell("test ! -e c/x");
}

static void folder_test_count_done(struct store_call *call)
{
    assert_ok(call->rc, call->error);
    ++*(int *)call->arg;
}

/* Enough for all workers, whatever their number is. */
TEST(window_follows_the_workers)
{
    for (int workers = 1; workers <= 8; workers *= 2) {
        close_store();
        t.engine = engine_new(&(struct engine_options){.workers = workers});
        t.http = http_new(t.engine, &(struct http_options){0});
        assert_ok(store_folder_open(t.http, t.root, true, &t.store, &err), err);
        assert_int_equal(engine_workers(t.engine), workers);
        assert_int_equal(store_window(t.store), 2 * workers);
    }
}

TEST(many_folders_at_once)
{
    enum { N = 600, FOLDERS = 150 };
    static char keys[N][32];
    ACT_AUTOFREE struct store_call *calls = act_calloc(N, sizeof(*calls));
    int done = 0;

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++) {
            snprintf(keys[i], sizeof(keys[i]), "f%03d/x%d", i * 7 % FOLDERS, i);
            calls[i] = folder_call(round ? STORE_DELETE : STORE_PUT, keys[i], &id);
            if (round == 0)
                calls[i].put.data = (struct store_data){.bytes = keys[i], .len = 5};
            calls[i].done = folder_test_count_done;
            calls[i].arg = &done;
            store_start(t.store, &calls[i]);
        }
        engine_run(t.engine, NULL);
        for (int i = 0; i < N; i++)
            store_call_release(&calls[i]);
    }
    assert_int_equal(done, 2 * N);
}

/* ---- a full disk */

/* Puts the store, with an object, on a file system of 1 MiB. */
static void mount_small(void)
{
    if (geteuid() != 0 || mount("tmpfs", t.root, "tmpfs", 0, "size=1m")) {
        print_message("skipped: mounting a file system needs root\n");
        skip();
    }
    folder_test_reopen();
    assert_ok(folder_test_put("x", "old", 3), err);
}

static void unmount_small(void)
{
    close_store();
    assert_int_equal(umount2(t.root, MNT_DETACH), 0);
    folder_test_open_store();
}

TEST(full_disk_is_said_early)
{
    ACT_AUTOFREE char *big = act_calloc(1, 4 << 20);
    struct store_call call = folder_call(STORE_BLOCKS, "x", &id);
    struct store_call block = folder_call(STORE_BLOCK, "y", &id);

    memset(big, 'x', 4 << 20); /* zeros would be a hole */
    mount_small();
    call.blocks.total = 4 << 20;
    assert_fails(folder_test_run(&call), err, ACT_FAIL, "No space left");
    assert_fails(folder_test_put("x", big, 4 << 20), err, ACT_FAIL, "No space left");
    assert_true(has_content("x", "old", 3));
    assert_files(".act-part-", 0);
    assert_ok(folder_test_put("x", big, 512 << 10), err); /* and the room was given back */

    block.block.data.bytes = big;
    block.block.data.len = 4 << 20;
    assert_ok(begin_upload("y", &id), err);
    assert_int_equal(folder_test_run(&block), -ACT_FAIL);
    assert_int_equal(blocks_of("y", &id), 0);
    unmount_small();
}

/* ---- targets that cannot be written */

/* Becomes a user who is not root, to whom the modes of files apply, or root again. */
static void as_nobody(bool nobody)
{
    if (geteuid() == 0 || !nobody)
        assert_int_equal(seteuid(nobody ? 65534 : getuid()), 0);
}

TEST(folder_that_cannot_be_written)
{
    assert_ok(folder_test_put("ro/x", "old", 3), err);
    begin_with("ro/y", &other_id, 1);
    assert_int_equal(chmod(t.root, 0755), 0);
    folder_test_run_shell("chmod 555 ro");
    as_nobody(true);
    int rc_put = folder_test_put("ro/x", "new", 3), rc_new = folder_test_put("ro/z", "new", 3),
        rc_begin = begin_upload("ro/x", &id);
    as_nobody(false);
    folder_test_run_shell("chmod 755 ro");
    assert_int_equal(rc_put, -ACT_DENIED);
    assert_int_equal(rc_new, -ACT_DENIED);
    assert_int_equal(rc_begin, -ACT_DENIED);
    assert_true(has_content("ro/x", "old", 3));
    folder_test_run_shell("test \"$(ls -A ro | wc -l)\" = 3"); /* x, and the upload of y with its map */
    folder_test_finish("ro/y", &other_id);
}

TEST(file_system_that_is_read_only)
{
    mount_small();
    close_store();
    assert_int_equal(mount("tmpfs", t.root, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
    folder_test_open_store();
    static const char *const keys[] = {"x", "y", "dir/z"};
    for (size_t i = 0; i < COUNT(keys); i++) {
        assert_int_not_equal(folder_test_put(keys[i], "new", 3), 0);
        assert_contains(act_error_text(&err), "Read-only file system");
        assert_int_not_equal(begin_upload(keys[i], &id), 0);
        assert_contains(act_error_text(&err), "Read-only file system");
    }
    assert_true(has_content("x", "old", 3));
    unmount_small();
}

/* An object that cannot be put in place now is not lost: its blocks are there when the place is free. */
TEST(place_that_is_taken)
{
    begin_with("x", &id, BLOCKS);
    folder_test_run_shell("mkdir x && touch x/inside");
    assert_fails(folder_test_commit("x", &id), err, ACT_FAIL, "folder of this name");
    folder_test_run_shell("test -e x/inside");
    folder_test_reopen();
    assert_int_equal(blocks_of("x", &id), 7);
    folder_test_run_shell("rm -r x");
    assert_ok(folder_test_commit("x", &id), err);
    assert_true(has_content("x", t.data, TOTAL));
    assert_fails(begin_upload("x/below", &id), err, ACT_FAIL, "is a file, not a folder");
    assert_true(has_content("x", t.data, TOTAL));
    assert_files("", 1);
}

/* Holes of a file are zeros. */
TEST(holes_are_zeros)
{
    ACT_AUTO(store_call) call = folder_call(STORE_GET, "sparse", &id);
    char sink[100], zeros[99] = "";

    folder_test_run_shell(
        "truncate -s 1G sparse && printf x | dd of=sparse bs=1 seek=500000000 conv=notrunc 2>/dev/null");
    call.get.offset = 499999901;
    call.get.sink = sink;
    call.get.sink_cap = sizeof(sink);
    assert_ok(store_do(t.store, &call, &err), err);
    assert_int_equal(call.get.got, sizeof(sink));
    assert_int_equal(call.entry.size, 1 << 30);
    assert_memory_equal(sink, zeros, sizeof(zeros));
    assert_int_equal(sink[99], 'x');
}

/* ---- names and kinds */

TEST(names_that_do_not_fit)
{
    char longest[NAME_MAX + 2];

    memset(longest, 'n', sizeof(longest));
    longest[NAME_MAX] = '\0';
    assert_ok(folder_test_put(longest, "x", 1), err);
    assert_ok(begin_upload(longest, &id), err);
    folder_test_finish(longest, &id);
    assert_true(has_content(longest, t.data, TOTAL));
    longest[NAME_MAX] = 'n';
    longest[NAME_MAX + 1] = '\0';
    assert_fails(folder_test_put(longest, "x", 1), err, ACT_FAIL, "255 bytes");
    assert_int_equal(begin_upload(longest, &id), -ACT_FAIL);
    assert_files("", 1);
}

TEST(clear_takes_nothing_else)
{
    static const char *const keys[] = {
        "x",
        ".act-part-",
        ".act-part-0123456789abcdef-0123456789abcdef0123456789abcde",
        ".act-part-0123456789abcdef-0123456789abcdef0123456789abcdef0",
        ".act-part-0123456789abcdef-0123456789abcdef0123456789abcdef.map",
        "../.act-part-0123456789abcdef-0123456789abcdef0123456789abcdef",
    };

    for (size_t i = 0; i < COUNT(keys); i++) {
        struct store_call clear = folder_call(STORE_CLEAR, keys[i], &id);
        ACT_AUTOFREE char *path = folder_test_in_root(keys[i]);
        struct stat st;
        spill(path, "x", 1);
        assert_int_equal(folder_test_run(&clear), -ACT_FAIL);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(unlink(path), 0);
    }
}

TEST_MAIN(NULL, NULL)
