/* pod_test.c - what a pod prints of its ranks' logs, and the names that it looks up. */
#include "unit/temp_dir.h"
#include "unit/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "node/pod.h"
#include "node/resolve.h"
#include "run/machines.h"

static struct pod_framer new_framer(int rank)
{
    return (struct pod_framer){.rank = rank, .marked = -1};
}

/* What is printed of a log that comes in these pieces. New string. */
static char *framed(const char *const *pieces)
{
    struct pod_framer f = new_framer(3);
    struct act_buf out = {0};

    for (; *pieces; pieces++)
        pod_framer_add(&f, *pieces, strlen(*pieces), &out);
    pod_framer_end(&f, &out);
    pod_framer_release(&f);
    return act_buf_steal(&out);
}

TEST(test_lines)
{
    static const struct {
        const char *pieces[5], *printed;
    } rows[] = {
        {{"a\nb\n"}, "[3] a\n[3] b\nact: log 3 at 4\n"},
        {{"a", "b", "\nc", "\n"}, "[3] ab\n[3] c\nact: log 3 at 5\n"},
        {{"\n\n"}, "[3] \n[3] \nact: log 3 at 2\n"},
        {{"a\nno end"}, "[3] a\n[3+] no end\nact: log 3 at 8\n"},
        {{""}, "act: log 3 at 0\n"},
        {{"10 %\r", "20 %\r", "done\n"}, "[3] 10 %\r20 %\rdone\nact: log 3 at 15\n"},
        {{"[0] x\nact: log 3 at 7\n"}, "[3] [0] x\n[3] act: log 3 at 7\nact: log 3 at 22\n"},
        {{"\xff\x1b[0m\n"}, "[3] \xff\x1b[0m\nact: log 3 at 6\n"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *printed = framed(rows[i].pieces);
        assert_string_equal(printed, rows[i].printed);
    }
}

TEST(test_long_lines_come_in_pieces)
{
    static char text[2 * POD_PIECE_MAX + 2];
    struct pod_framer f = new_framer(0);
    ACT_AUTO(act_buf) out = {0};
    ACT_AUTO(act_buf) wanted = {0};

    memset(text, 'x', sizeof(text));
    text[POD_PIECE_MAX] = '\n'; /* a line that just fits */
    pod_framer_add(&f, text, POD_PIECE_MAX + 1, &out);
    act_buf_addf(&wanted, "[0] %.*s\n", POD_PIECE_MAX, text);
    text[POD_PIECE_MAX] = 'x';
    text[2 * POD_PIECE_MAX + 1] = '\n';
    for (size_t i = 0; i < sizeof(text); i++)
        pod_framer_add(&f, text + i, 1, &out);
    act_buf_addf(&wanted, "[0+] %.*s\n[0+] %.*s\n[0] x\n", POD_PIECE_MAX, text, POD_PIECE_MAX, text);
    pod_framer_release(&f);
    assert_string_equal(out.data, wanted.data);
}

/* A reader puts the pieces together; NUL bytes are bytes, too. */
static void pod_test_take_apart(const struct act_buf *out, struct act_buf *log, long long *last_mark)
{
    for (const char *line = out->data, *end = out->data + out->len; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        assert_non_null(newline);
        if (sscanf(line, "act: log 12 at %lld\n", last_mark) == 1) {
            assert_int_equal(*last_mark, log->len);
        } else {
            bool whole = act_starts_with(line, "[12] ");
            size_t skipped = whole ? 5 : 6;
            assert_true(whole || act_starts_with(line, "[12+] "));
            act_buf_add(log, line + skipped, (size_t)(newline - line) - skipped + whole);
        }
        line = newline + 1;
    }
}

TEST(test_any_bytes_come_back_however_they_are_cut)
{
    enum { BYTES = 300 * 1000 };
    ACT_AUTOFREE char *text = act_alloc(BYTES);

    for (unsigned seed = 1; seed < 20; seed++) {
        struct pod_framer f = new_framer(12);
        ACT_AUTO(act_buf) out = {0};
        ACT_AUTO(act_buf) log = {0};
        long long last_mark = -1;
        unsigned random = seed, newlines = seed % 4 * 300 + 1;
        for (size_t i = 0; i < BYTES; i++) {
            random = random * 1103515245U + 12345U;
            text[i] = (random >> 16) % 3000 < newlines ? '\n' : (char)(random >> 20);
        }
        for (size_t i = 0, n; i < BYTES; i += n) {
            random = random * 1103515245U + 12345U;
            n = (random >> 16) % 20000 + 1;
            n = n < BYTES - i ? n : BYTES - i;
            pod_framer_add(&f, text + i, n, &out);
        }
        pod_framer_end(&f, &out);
        pod_framer_release(&f);
        pod_test_take_apart(&out, &log, &last_mark);
        assert_int_equal(log.len, BYTES);
        assert_memory_equal(log.data, text, BYTES);
        assert_int_equal(last_mark, BYTES);
    }
}

TEST(test_marks_come_every_so_often)
{
    struct pod_framer f = new_framer(0);
    ACT_AUTO(act_buf) out = {0};
    int marks = 0;

    for (int i = 0; i < 10 * POD_MARK_BYTES / 64; i++)
        pod_framer_add(&f, "123456789 123456789 123456789 123456789 123456789 123456789 123\n", 64, &out);
    pod_framer_release(&f);
    for (const char *at = out.data; (at = strstr(at, "act: log 0 at ")); at++)
        assert_int_equal(strtol(at + strlen("act: log 0 at "), NULL, 10), (long)POD_MARK_BYTES * ++marks);
    assert_int_equal(marks, 10);
}

/* ---- the logs of a pod ---- */

static void pod_test_append(const char *name, const char *text)
{
    ACT_AUTOFREE char *path = act_path_join(dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(act_write_all(fd, text, strlen(text)), 0);
    close(fd);
}

/* Standard output goes to a file meanwhile. */
TEST_IN(test_logs_of_two_ranks_as_they_grow, make_dir, remove_dir)
{
    ACT_AUTOFREE char *logs = act_path_join(dir, "user_logs");
    ACT_AUTOFREE char *to = act_path_join(dir, "printed");
    ACT_AUTOFREE char *printed = NULL;
    ACT_AUTOFREE char *system = act_path_join(dir, "system_logs");
    struct pod_output o = {0};
    struct node node = {.dir = dir, .name = "n1"};

    assert_int_equal(act_mkdir_all(logs, 0700, &err), 0);
    assert_int_equal(act_mkdir_all(system, 0700, &err), 0);
    fflush(stdout);
    int fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), saved = dup(STDOUT_FILENO);
    dup2(fd, STDOUT_FILENO);
    pod_output_begin(&o, &node, 2, 2, 2);
    bool more = pod_output_follow(&o);
    pod_test_append("user_logs/std_log_process_3.txt", "three, ");
    pod_test_append("user_logs/std_log_process_2.txt", "two\n");
    while (pod_output_follow(&o))
        continue;
    pod_test_append("user_logs/std_log_process_3.txt", "the rest\n");
    pod_test_append("system_logs/stacks_n1.txt", "==== rank 2\n[3] act: attempt 7\n");
    pod_output_end(&o);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(fd);
    assert_false(more);
    assert_int_equal(act_file_read(to, 4096, &printed, NULL, &err), 0);
    assert_string_equal(printed, "act: attempt 2\n[2] two\n[3] three, the rest\nact: stacks: ==== rank 2\n"
                                 "act: stacks: [3] act: attempt 7\nact: log 2 at 4\nact: log 3 at 16\n");
}

/* ---- what is started ---- */

/* A message that no launcher sends starts nothing, and is answered. */
TEST_IN(test_what_cannot_be_started, make_dir, remove_dir)
{
    static const char *const bad[] = {
        "{\"argv\":[\"true\"],\"count\":-1}",
        "{\"argv\":[\"true\"],\"count\":0}",
        "{\"argv\":[\"true\"],\"count\":3}",
        "{\"argv\":[\"true\"],\"count\":4294967297}",
        "{\"argv\":[\"true\"],\"count\":\"1\"}",
        "{\"argv\":[\"true\"],\"count\":2,\"first\":5,\"world\":6}",
        "{\"argv\":{\"a\":1}}",
        "{\"argv\":[]}",
        "{\"argv\":[1]}",
        "{}",
    };
    struct pod pod = {.node = {.dir = dir, .spec = {.nodes = 3, .procs_per_node = 2}}};

    for (size_t i = 0; i < COUNT(bad); i++) {
        CODEC_AUTOJSON json_t *message = NULL;
        assert_ok(codec_json_parse(bad[i], strlen(bad[i]), "message", &message, &err), err);
        CODEC_AUTOJSON json_t *done = pod_programs_start(&pod, message);
        assert_non_null(done);
        assert_int_equal(codec_json_int(done, "status", 0), ACT_WRAPPER);
        assert_int_equal(pod.n_tasks, 0);
    }
    pod_programs_release(&pod);
}

/* ---- machines ---- */

TEST(test_hosts)
{
    static const struct {
        const char *job;
        int i;
        const char *host;
    } rows[] = {
        {"me-1", 2, "me-1-2.me-1"},
        {"10.0.0.1,10.0.0.2", 0, "10.0.0.1"},
        {"10.0.0.1,10.0.0.2", 1, "10.0.0.2"},
        {"fd00::1,fd00::2", 1, "fd00::2"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *host = pod_host(rows[i].job, rows[i].i);
        assert_string_equal(host, rows[i].host);
    }
}

#define TOKEN "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a"
#define LISTS ",\"names\":[\"a\",\"b\"],\"addresses\":[\"10.0.0.1\",\"10.0.0.2\"],\"order\":[\"x\",\"y\"]}"

TEST_IN(test_records_of_machines, make_dir, remove_dir)
{
    static const struct {
        const char *text;
        bool good;
    } rows[] = {
        {"{\"version\":1,\"index\":1,\"port\":20000,\"token\":\"" TOKEN "\"" LISTS, true},
        {"{\"version\":1,\"index\":2,\"port\":20000,\"token\":\"" TOKEN "\"" LISTS, false},
        {"{\"version\":1,\"index\":0,\"port\":0,\"token\":\"" TOKEN "\"" LISTS, false},
        {"{\"version\":1,\"index\":0,\"port\":65536,\"token\":\"" TOKEN "\"" LISTS, false},
        {"{\"version\":1,\"index\":0,\"port\":20000,\"token\":\"5a\"" LISTS, false},
        {"{\"version\":1,\"index\":0,\"port\":20000,\"token\":\"" TOKEN "\",\"names\":[\"a\"],"
         "\"addresses\":[\"10.0.0.1\"],\"order\":[\"x\"]}",
         false},
        {"{\"version\":1,\"index\":0,\"port\":20000,\"token\":\"" TOKEN "\",\"names\":[\"a\",\"b\"],"
         "\"addresses\":[\"10.0.0.1\"],\"order\":[\"x\",\"y\"]}",
         false},
        {"[]", false},
    };
    ACT_AUTOFREE char *path = act_path_join(dir, RUN_FILE_MACHINES);

    assert_false(run_has_machines(dir));
    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTO(run_machines) machines = {0};
        assert_ok(act_file_write_quickly(path, rows[i].text, strlen(rows[i].text), 0600, &err), err);
        assert_true(run_has_machines(dir));
        assert_int_equal(run_machines_read(dir, &machines, &err) == 0, rows[i].good);
    }
}

/* ---- names ---- */

TEST(test_names_in_hosts)
{
    static const char hosts[] = "# a comment\n127.0.0.1\tlocalhost\n::1 localhost ip6-localhost\n\n"
                                "10.1.2.3\tme-1-0.me-1.ns.svc.cluster.local me-1-0 # me-9\n10.1.2.4 other me-1-0\r\n"
                                "10.1.2.5\n10.1.2.3 ME-1-0";
    static const struct {
        const char *name, *first;
        size_t n;
    } rows[] = {{"localhost", "127.0.0.1", 2},
                {"me-1-0", "10.1.2.3", 2},
                {"me-1", NULL, 0},
                {"me-9", NULL, 0},
                {"10.1.2.5", NULL, 0}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTO(act_strv) found = {0};
        resolve_in_hosts(hosts, rows[i].name, &found);
        assert_int_equal(found.n, rows[i].n);
        if (found.n > 0)
            assert_string_equal(found.v[0], rows[i].first);
    }
}

TEST_MAIN(NULL, NULL)
