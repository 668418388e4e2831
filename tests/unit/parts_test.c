/* parts_test.c - packages that go over a connection as the parts that the site lacks. */
#define TEST_SETUP    parts_test_setup
#define TEST_TEARDOWN parts_test_teardown
#include "unit/killed.h"
#include "unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/text.h"
#include "codec/json.h"
#include "site/frame.h"
#include "site/parts.h"
#include "site/site.h"
#include "site/site_internal.h"

static char *home, *root; /* of one case */
static struct site *site;
static pid_t server;
static size_t sent; /* bytes of packages */

int __real_channel_write(struct channel *c, const void *data, size_t len, struct act_error *why);
int __wrap_channel_write(struct channel *c, const void *data, size_t len, struct act_error *why);
int __wrap_channel_write(struct channel *c, const void *data, size_t len, struct act_error *why)
{
    sent += len;
    return __real_channel_write(c, data, len, why);
}

/* Another connection to the root. */
static struct site *parts_test_connect(pid_t *out_server)
{
    struct site *made = act_calloc(1, sizeof(*made));
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    *out_server = fork();
    assert_true(*out_server >= 0);
    if (*out_server == 0) {
        close(ends[0]);
        _exit(site_serve(root, ends[1], ends[1]));
    }
    close(ends[1]);
    assert_ok(wire_open_fds(ends[0], ends[0], made, &err), err);
    return made;
}

static void parts_test_disconnect(struct site *from, pid_t its_server)
{
    int status;

    site_free(from);
    assert_int_equal(waitpid(its_server, &status, 0), its_server);
    assert_int_equal(status, 0);
}

static int parts_test_setup_alone(void **state)
{
    (void)state;
    home = act_strdup("/tmp/act-parts-XXXXXX");
    assert_non_null(mkdtemp(home));
    root = act_path_join(home, "root");
    return 0;
}

static int parts_test_setup(void **state)
{
    parts_test_setup_alone(state);
    site = parts_test_connect(&server);
    return 0;
}

static int parts_test_teardown(void **state)
{
    (void)state;
    if (site)
        parts_test_disconnect(site, server);
    site = NULL;
    assert_ok(act_remove_tree(home, &err), err);
    free(home);
    free(root);
    return 0;
}

/* ---- packages ---- */

enum { ENTRIES = 400, ENTRY_BYTES = 1000 };

static void parts_test_add(struct act_buf *out, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        act_buf_addc(out, (char)(value >> 8 * i));
}

/* Adds the fields that a header and a record of the table share, from the needed version to the name. */
static void parts_test_add_fields(struct act_buf *out, const char *name, uint32_t crc)
{
    parts_test_add(out, 20, 2);
    parts_test_add(out, 0, 8); /* flags, stored, time and date */
    parts_test_add(out, crc, 4);
    parts_test_add(out, ENTRY_BYTES, 4);
    parts_test_add(out, ENTRY_BYTES, 4);
    parts_test_add(out, (uint32_t)strlen(name), 2);
    parts_test_add(out, 0, 2);
}

/* Which version of each entry a package has; 0: none. */
struct parts_test_tree {
    int version[ENTRIES];
};

static struct parts_test_tree parts_test_tree(int version)
{
    struct parts_test_tree tree;

    for (size_t i = 0; i < ENTRIES; i++)
        tree.version[i] = version;
    return tree;
}

/* Makes its package, and returns the path, a new string. The CRC is whatever tells versions apart. */
static char *parts_test_make(const struct parts_test_tree *tree, char sha256[ACT_SHA256_HEX])
{
    static int made;
    struct act_buf zip = {0}, table = {0};
    uint32_t n = 0;
    char *path = act_sprintf("%s/package-%d.zip", home, made++);

    for (uint32_t i = 0; i < ENTRIES; i++) {
        char name[32];
        const uint32_t at = (uint32_t)zip.len, crc = i * 1000 + (uint32_t)tree->version[i];
        if (tree->version[i] == 0)
            continue;
        snprintf(name, sizeof(name), "folder/file_%04u", (unsigned)i);
        parts_test_add(&zip, 0x04034b50, 4);
        parts_test_add_fields(&zip, name, crc);
        act_buf_adds(&zip, name);
        for (uint32_t b = 0; b < ENTRY_BYTES; b++)
            act_buf_addc(&zip, (char)((b * (i + 3) + (uint32_t)tree->version[i] * 17) >> 2));
        parts_test_add(&table, 0x02014b50, 4);
        parts_test_add(&table, 0x314, 2);
        parts_test_add_fields(&table, name, crc);
        parts_test_add(&table, 0, 6); /* comment, disk, internal attributes */
        parts_test_add(&table, 0100644U << 16, 4);
        parts_test_add(&table, at, 4);
        act_buf_adds(&table, name);
        n++;
    }
    const uint32_t at = (uint32_t)zip.len;
    act_buf_add(&zip, table.data, table.len);
    parts_test_add(&zip, 0x06054b50, 4);
    parts_test_add(&zip, 0, 4);
    parts_test_add(&zip, n | n << 16, 4);
    parts_test_add(&zip, (uint32_t)table.len, 4);
    parts_test_add(&zip, at, 4);
    parts_test_add(&zip, 0, 2);
    assert_ok(act_file_write(path, zip.data, zip.len, 0600, &err), err);
    assert_ok(act_sha256_file(path, sha256, &err), err);
    act_buf_release(&zip);
    act_buf_release(&table);
    return path;
}

static char *parts_test_kept(const char *sha256)
{
    return act_sprintf("%s/packages/%s.zip", root, sha256);
}

/* Brings the package of a tree by a run that needs it. Returns how many bytes were sent. */
static size_t parts_test_run(struct site *to, const struct parts_test_tree *tree)
{
    struct run_spec spec = {.id = run_id_new("parts", act_now_unix_s()),
                            .experiment = act_strdup("parts"),
                            .cluster = act_strdup("lab"),
                            .platform = act_strdup("slurm"),
                            .nodes = 1,
                            .procs_per_node = 1};
    bool existed;

    act_strv_push(&spec.argv, "true");
    ACT_AUTOFREE char *package = parts_test_make(tree, spec.package_sha256);
    ACT_AUTOFREE char *there = act_sprintf("%s/runs/%s/" RUN_FILE_PACKAGE, root, spec.id);
    char sha256[ACT_SHA256_HEX] = "";
    sent = 0;
    assert_ok(site_create_run(to, &(struct site_new){.spec = &spec, .package = package}, &existed, &err), err);
    assert_ok(act_sha256_file(there, sha256, &err), err);
    assert_string_equal(sha256, spec.package_sha256);
    run_spec_release(&spec);
    return sent;
}

static size_t parts_test_count(const char *folder)
{
    ACT_AUTOFREE char *path = act_path_join(root, folder);
    DIR *d = opendir(path);
    size_t n = 0;

    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

/* ---- what is sent ---- */

TEST(test_only_what_the_site_lacks)
{
    static const struct {
        int at[4], to[4]; /* entries and their versions */
        size_t n, least, most;
    } rows[] = {
        {{7}, {2}, 1, ENTRY_BYTES, 2 * ENTRY_BYTES},
        {{0, 9, 200, ENTRIES - 1}, {2, 2, 2, 2}, 4, 4 * ENTRY_BYTES, 5 * ENTRY_BYTES},
        {{3, 4, 100}, {0, 0, 0}, 3, 0, 100},                           /* removed */
        {{3, 4, 100}, {1, 1, 5}, 3, 3 * ENTRY_BYTES, 4 * ENTRY_BYTES}, /* the last package lacks them */
        {{0}, {1}, 0, 0, 0},                                           /* nothing has changed */
    };
    struct parts_test_tree tree = parts_test_tree(1);
    size_t first = parts_test_run(site, &tree);

    assert_in_range(first, ENTRIES * ENTRY_BYTES, ENTRIES * (ENTRY_BYTES + 150));
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t k = 0; k < rows[i].n; k++)
            tree.version[rows[i].at[k]] = rows[i].to[k];
        size_t bytes = parts_test_run(site, &tree);
        if (bytes < rows[i].least || bytes > rows[i].most)
            fail_msg("row %zu: %zu bytes", i, bytes);
    }
}

/* Not the last package, but the one that has the most of it. */
TEST(test_of_two_projects)
{
    struct parts_test_tree one = parts_test_tree(1), other = parts_test_tree(2);

    parts_test_run(site, &one);
    parts_test_run(site, &other);
    one.version[5] = 9;
    assert_in_range(parts_test_run(site, &one), ENTRY_BYTES, 2 * ENTRY_BYTES);
}

TEST(test_several_at_once)
{
    struct parts_test_tree tree = parts_test_tree(1);
    pid_t others[2];
    struct site *two[] = {parts_test_connect(&others[0]), parts_test_connect(&others[1])};

    parts_test_run(site, &tree);
    tree.version[5] = 2;
    for (size_t i = 0; i < 2; i++)
        parts_test_run(two[i], &tree);
    for (size_t i = 2; i-- > 0;) /* a server has the ends of the connections before its own, too */
        parts_test_disconnect(two[i], others[i]);
    assert_int_equal(parts_test_count("packages"), 2);
    assert_int_equal(parts_test_count("new"), 0);
}

/* By itself, as machines without a scheduler get it. */
TEST(test_brought_alone)
{
    struct parts_test_tree tree = parts_test_tree(1);
    char sha256[ACT_SHA256_HEX], kept[ACT_SHA256_HEX];

    for (int version = 1; version < 4; version++) {
        tree.version[50] = version;
        ACT_AUTOFREE char *path = parts_test_make(&tree, sha256);
        ACT_AUTOFREE char *there = parts_test_kept(sha256);
        for (int again = 0; again < 2; again++) {
            sent = 0;
            assert_ok(site_bring_package(site, path, sha256, &err), err);
            assert_ok(act_sha256_file(there, kept, &err), err);
            assert_string_equal(kept, sha256);
            assert_true(again ? sent == 0 : version == 1 ? sent > ENTRIES * ENTRY_BYTES : sent < 2 * ENTRY_BYTES);
        }
    }
}

/* ---- what goes wrong ---- */

/* A base of which a byte is another one: the package comes whole, and that base is gone. */
TEST(test_damaged_base)
{
    struct parts_test_tree tree = parts_test_tree(1);
    char sha256[ACT_SHA256_HEX];
    ACT_AUTOFREE char *same = parts_test_make(&tree, sha256);
    ACT_AUTOFREE char *kept = parts_test_kept(sha256);

    parts_test_run(site, &tree);
    int fd = open(kept, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "damage", 6, 5000), 6);
    close(fd);
    tree.version[300] = 2;
    assert_true(parts_test_run(site, &tree) > ENTRIES * ENTRY_BYTES);
    assert_int_equal(access(kept, F_OK), -1);
    tree.version[300] = 3;
    assert_true(parts_test_run(site, &tree) < 2 * ENTRY_BYTES);
}

/* A request that brings a package by a base, with the file that follows it. */
struct parts_test_order {
    json_t *request;
    char *path, *sha256;
};

static struct parts_test_order parts_test_order(const char *base, const char *sha256, const char *path,
                                                const char *steps, int end)
{
    ACT_AUTOFREE char *text = act_sprintf(
        "{\"base\":\"%s\",\"sha256\":\"%s\",\"bytes\":500000,\"end\":%d,\"steps\":%s}", base, sha256, end, steps);
    struct parts_test_order order = {.path = act_strdup(path), .sha256 = act_strdup(sha256)};

    assert_ok(codec_json_parse(text, strlen(text), "order", &order.request, &err), err);
    return order;
}

static void parts_test_order_release(struct parts_test_order *order)
{
    json_decref(order->request);
    free(order->path);
    free(order->sha256);
}

/* Carries it out here. Returns its result; *out_left: bytes that were not taken. */
static int parts_test_carry_out(const struct parts_test_order *order, bool *out_whole, long *out_left)
{
    struct site here = {.root = root};
    struct channel *channel = act_calloc(1, sizeof(*channel));
    struct stat st;
    int channel_rc = 0;

    channel->out_fd = -1;
    channel->in_fd = open(order->path, O_RDONLY | O_CLOEXEC);
    int rc = here_put_together(&here, channel, order->request, out_whole, &channel_rc, &err);
    assert_int_equal(fstat(channel->in_fd, &st), 0);
    *out_left = (long)(st.st_size - lseek(channel->in_fd, 0, SEEK_CUR)) + (long)(channel->len - channel->pos);
    channel_close(channel);
    free(channel);
    return rc;
}

TEST(test_wrong_orders)
{
    static const char none[] = "0000000000000000000000000000000000000000000000000000000000000000";
    static const struct {
        const char *base, *steps; /* base NULL: the one that is there */
        int end, rc;
        long left; /* of 1000 bytes */
    } rows[] = {
        {NULL, "[[0,1,0,0]]", 0, 0, 1000},
        {NULL, "[[0,1,100,200]]", 50, 0, 650},
        {none, "[[0,1,100,200]]", 50, 0, 650}, /* it was removed meanwhile */
        {NULL, "[[399,2,100,200]]", 50, 0, 650},
        {NULL, "[[-1,2,100,200]]", 50, 0, 650},
        {NULL, "[[9223372036854775807,9223372036854775807,1,1]]", 1, 0, 997},
        {NULL, "[[0,400,0,0],[0,400,0,0],[0,400,100,0]]", 0, 0, 900}, /* more than it is to be */
        {NULL, "[[0,0,600,600]]", 0, -ACT_TEMPORARY, 0},              /* the connection ends before */
        {NULL, "[[0,1,-1,0]]", 0, -ACT_USAGE, 1000},
        {NULL, "[[0,1,0,500001]]", 0, -ACT_USAGE, 1000},
        {NULL, "[[0,1,0,500000]]", 1, -ACT_USAGE, 1000},
        {NULL, "[[0,1]]", 0, -ACT_USAGE, 1000},
        {NULL, "7", 0, -ACT_USAGE, 1000},
        {NULL, "[]", -1, -ACT_USAGE, 1000},
        {"../../etc/passwd", "[]", 0, -ACT_USAGE, 1000},
    };
    struct parts_test_tree tree = parts_test_tree(1);
    char sha256[ACT_SHA256_HEX], data[1000] = "";
    ACT_AUTOFREE char *same = parts_test_make(&tree, sha256);
    ACT_AUTOFREE char *file = act_path_join(home, "file");

    parts_test_run(site, &tree);
    assert_ok(act_file_write(file, data, sizeof(data), 0600, &err), err);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct parts_test_order order =
            parts_test_order(rows[i].base ? rows[i].base : sha256, none, file, rows[i].steps, rows[i].end);
        bool whole;
        long left;
        int rc = parts_test_carry_out(&order, &whole, &left);
        if (rc != rows[i].rc || whole != (rc == 0) || left != rows[i].left)
            fail_msg("row %zu: %d, %d, %ld", i, rc, whole, left);
        parts_test_order_release(&order);
        assert_int_equal(parts_test_count("packages"), 1);
        assert_int_equal(parts_test_count("new"), 0);
    }
}

/* The disk becomes full: one clear error, nothing half, and later it works. */
TEST(test_no_space_for_parts)
{
    const struct rlimit small = {4096, RLIM_INFINITY}, any = {RLIM_INFINITY, RLIM_INFINITY};
    struct parts_test_tree tree = parts_test_tree(1);
    char sha256[ACT_SHA256_HEX];

    parts_test_run(site, &tree);
    tree.version[9] = 2;
    ACT_AUTOFREE char *path = parts_test_make(&tree, sha256);
    assert_int_equal(prlimit(server, RLIMIT_FSIZE, &small, NULL), 0);
    int rc = site_bring_package(site, path, sha256, &err);
    assert_int_equal(prlimit(server, RLIMIT_FSIZE, &any, NULL), 0);
    assert_fails(rc, err, ACT_FAIL, strerror(EFBIG));
    assert_int_equal(parts_test_count("packages"), 1);
    assert_int_equal(parts_test_count("new"), 0);
    assert_true(parts_test_run(site, &tree) < 2 * ENTRY_BYTES);
}

static pid_t parts_test_traced(const struct parts_test_order *order)
{
    bool whole;
    long left;
    pid_t pid = fork();

    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) || raise(SIGSTOP))
            _exit(2);
        _exit(parts_test_carry_out(order, &whole, &left) < 0 || whole);
    }
    return pid;
}

/* Killed at each system call, it has left the whole package or none; and what is left goes. There is no server, as
 * kill_at() waits for all children. */
TEST_IN(test_killed_at_every_step, parts_test_setup_alone, parts_test_teardown)
{
    struct parts_test_tree tree = parts_test_tree(1);
    char sha256[ACT_SHA256_HEX], other[ACT_SHA256_HEX], found[ACT_SHA256_HEX];
    ACT_AUTOFREE char *same = parts_test_make(&tree, sha256);
    struct site here = {.root = root};
    bool killed = true;
    size_t none = 0;

    if (!can_trace())
        skip();
    assert_ok(site_bring_package(&here, same, sha256, &err), err);
    memset(tree.version + ENTRIES / 2, 0, sizeof(tree.version) / 2); /* an end of the table that is sent alone */
    ACT_AUTOFREE char *half = parts_test_make(&tree, other);
    ACT_AUTOFREE char *kept = parts_test_kept(other);
    ACT_AUTOFREE char *end = act_path_join(home, "end");
    ACT_AUTOFREE char *bytes = NULL;
    size_t len;
    assert_ok(act_file_read(half, 1 << 20, &bytes, &len, &err), err);
    assert_ok(act_file_write(end, bytes + len - 22, 22, 0600, &err), err);
    struct parts_test_order order = parts_test_order(sha256, other, end, "[[0,200,0,0]]", 22);
    for (int n = 1; killed; n++) {
        struct site_left left;
        killed = kill_at(parts_test_traced(&order), n);
        if (access(kept, F_OK) == 0) {
            assert_ok(act_sha256_file(kept, found, &err), err);
            assert_string_equal(found, other);
            unlink(kept);
        } else {
            none++;
        }
        assert_ok(site_clear(&here, false, &left, &err), err);
        assert_int_equal(parts_test_count("new"), 0);
        assert_int_equal(parts_test_count("packages"), 1);
    }
    assert_true(none > 5);
    parts_test_order_release(&order);
}

/* ---- zips that are no packages ---- */

TEST(test_other_files)
{
    struct parts_test_tree tree = parts_test_tree(1);
    char sha256[ACT_SHA256_HEX];
    ACT_AUTOFREE char *path = parts_test_make(&tree, sha256);
    ACT_AUTOFREE char *bytes = NULL;
    struct parts parts;
    size_t len;

    assert_ok(act_file_read(path, 1 << 20, &bytes, &len, &err), err);
    assert_true(parts_open(path, &parts));
    const size_t table = (size_t)parts.table_at;
    assert_int_equal(parts.n, ENTRIES);
    parts_release(&parts);
    static const struct {
        size_t at; /* behind the begin of the table */
        const char *bytes;
    } rows[] = {
        {0, "XX"}, {42, "\x01"}, {28, "\xff\xff"}, {62 + 42, "\xff\xff\xff\x7f"}, {62 + 28, "\x01"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *wrong = act_sprintf("%s/wrong", home);
        char *copy = act_alloc(len);
        memcpy(copy, bytes, len);
        memcpy(copy + table + rows[i].at, rows[i].bytes, strlen(rows[i].bytes));
        assert_ok(act_file_write(wrong, copy, len, 0600, &err), err);
        free(copy);
        if (parts_open(wrong, &parts))
            fail_msg("row %zu", i);
    }
    for (size_t short_by = 1; short_by < len; short_by += 997) {
        ACT_AUTOFREE char *wrong = act_sprintf("%s/wrong", home);
        assert_ok(act_file_write(wrong, bytes, len - short_by, 0600, &err), err);
        assert_false(parts_open(wrong, &parts));
    }
    assert_false(parts_open("/dev/null", &parts) || parts_open("/nowhere", &parts) || parts_open("/tmp", &parts));
}

int main(void)
{
    signal(SIGXFSZ, SIG_IGN); /* for test_no_space_for_parts, also in the servers that are forked */
    return tests_run(NULL, NULL);
}
