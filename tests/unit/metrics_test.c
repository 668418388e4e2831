/* metrics_test.c - the lines of the sampler, with programs in the place of nvidia-smi that answer well, badly,
 * never. */
#define TEST_SETUP    metrics_test_set_up
#define TEST_TEARDOWN metrics_test_tear_down
#include "unit/temp_dir.h"
#include "unit/test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "node/gpu.h"
#include "node/metrics.h"
#include "proc/proc.h"

static char *old_path;

static int metrics_test_set_up(void **state)
{
    old_path = act_strdup(getenv("PATH"));
    return make_dir(state);
}

static int metrics_test_tear_down(void **state)
{
    setenv("PATH", old_path, 1);
    free(old_path);
    return remove_dir(state);
}

static void make_smi(const char *script)
{
    ACT_AUTOFREE char *path = act_path_join(dir, "nvidia-smi");
    ACT_AUTOFREE char *text = act_sprintf("#!/bin/sh\necho asked >>'%s/asked'\n%s\n", dir, script);
    ACT_AUTOFREE char *asked = act_path_join(dir, "asked");
    ACT_AUTOFREE char *search = act_sprintf("%s:%s", dir, old_path);

    unlink(asked);
    assert_ok(act_file_write(path, text, strlen(text), 0755, &err), err);
    setenv("PATH", search, 1);
}

static int count_asked(void)
{
    ACT_AUTOFREE char *path = act_path_join(dir, "asked");
    ACT_AUTOFREE char *text = NULL;
    int n = 0;

    if (act_file_read(path, 1 << 16, &text, NULL, &err) < 0)
        return 0;
    for (const char *c = text; *c; c++)
        n += *c == '\n';
    return n;
}

static struct node metrics_test_make_node(void)
{
    struct node node = {.dir = dir, .code = dir};

    strcpy(node.name, "n1");
    return node;
}

/* The next line, as JSON. */
static json_t *metrics_test_next(struct metrics *m)
{
    ACT_AUTOFREE char *line = metrics_line(m);
    json_t *json = NULL;
    size_t len = strlen(line);

    assert_true(len < 4096 && line[len - 1] == '\n' && strchr(line, '\n') == line + len - 1);
    assert_ok(codec_json_parse(line, len, "line", &json, &err), err);
    return json;
}

static json_t *metrics_test_at(json_t *json, const char *a, const char *b)
{
    json_t *found = json_object_get(json_object_get(json, a), b);

    if (!found)
        fail_msg("no %s.%s", a, b);
    return found;
}

static volatile unsigned long sum; /* so that nothing is left out */

static void burn(void)
{
    for (int64_t end = act_now_monotonic_ms() + 50; act_now_monotonic_ms() < end;)
        for (int i = 0; i < 10000; i++)
            sum += (unsigned long)i;
}

TEST(test_line)
{
    struct node node = metrics_test_make_node();

    struct metrics *m = metrics_new(&node);
    CODEC_AUTOJSON json_t *first = metrics_test_next(m);
    assert_true(json_is_null(metrics_test_at(first, "cpu", "busy")));
    assert_true(json_is_null(metrics_test_at(first, "disk", "read_per_s")));
    assert_null(json_object_get(first, "gpus"));
    burn();
    CODEC_AUTOJSON json_t *second = metrics_test_next(m);
    assert_string_equal(codec_json_str(second, "node", ""), "n1");
    assert_true(json_number_value(json_object_get(second, "time")) > json_number_value(json_object_get(first, "time")));
    double busy = json_number_value(metrics_test_at(second, "cpu", "busy"));
    assert_true(busy > 0 && busy <= 1);
    assert_int_equal(json_integer_value(metrics_test_at(second, "cpu", "cores")), sysconf(_SC_NPROCESSORS_ONLN));
    assert_true(json_integer_value(metrics_test_at(second, "memory", "total")) >
                json_integer_value(metrics_test_at(second, "memory", "available")));
    assert_true(json_integer_value(metrics_test_at(json_object_get(second, "disk"), "run", "total")) > 0);
    assert_true(json_is_integer(metrics_test_at(second, "disk", "written_per_s")));
    assert_true(json_is_integer(metrics_test_at(second, "network", "received_per_s")));
    metrics_free(m);
}

/* Used of total; what is not known is a dash. */
TEST(test_text)
{
    struct node node = metrics_test_make_node();

    make_smi("printf '0, 97, 30000, 40960, 61, 312.55, 0\\n1, [N/A], 12, 40960, 30, [N/A], [N/A]\\n'");
    struct metrics *m = metrics_new(&node);
    ACT_AUTOFREE char *text = metrics_text(m);
    double memory[2], disk[2];
    assert_int_equal(sscanf(text, "act: metrics: node n1, cpu -, memory %lf/%lf GiB, disk %lf/%lf GiB", &memory[0],
                            &memory[1], &disk[0], &disk[1]),
                     4);
    assert_true(memory[0] > 0 && memory[0] < memory[1] && disk[0] >= 0 && disk[0] <= disk[1]);
    assert_non_null(strstr(text, " GiB, gpu 0 97 % 29.3/40.0 GiB, gpu 1 - 0.0/40.0 GiB, at 20"));
    make_smi("exit 9");
    ACT_AUTOFREE char *second = metrics_text(m);
    assert_non_null(strstr(second, ", gpu -: nvidia-smi does not answer, at 20"));
    assert_null(strstr(second, "cpu -,"));
    metrics_free(m);
}

TEST(test_gpu_output)
{
    static const char *const bad[] = {
        "garbage\n",
        "0, 1, 2, 3, 4, 5\n",
        "0, 1, 2, 3, 4, 5, 6, 7\n",
        "[N/A], 1, 2, 3, 4, 5, 6\n",
        "0, 1, 2, 3, 4, 5, 6x\n",
        "0, 1, nan, 3, 4, 5, 6\n",
        "0, -1, 2, 3, 4, 5, 6\n",
        "0, 1, 1e300, 3, 4, 5, 6\n",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
        "0, 1, 999999999999999, 3, 4, 5, 6\n",
        "0, 1, 2, 3, 4, 5, 6\nUnable to determine the device handle for GPU 0000:3B:00.0: Unknown Error\n",
    };

    CODEC_AUTOJSON json_t *good =
        gpu_parse("0, 97, 30000, 40960, 61, 312.55, 0\n1, [N/A], 12, 40960, 30, [Not Supported], [N/A]\r\n");
    CODEC_AUTOJSON json_t *expected = NULL;
    static const char text[] =
        "[{\"index\": 0, \"busy\": 0.97, \"memory_used\": 31457280000,"
        "  \"memory_total\": 42949672960, \"celsius\": 61, \"watts\": 312.55, \"ecc_errors\": 0},"
        " {\"index\": 1, \"busy\": null, \"memory_used\": 12582912,"
        "  \"memory_total\": 42949672960, \"celsius\": 30, \"watts\": null, \"ecc_errors\": null}]";
    assert_ok(codec_json_parse(text, strlen(text), "expected", &expected, &err), err);
    assert_true(json_equal(good, expected));
    for (size_t i = 0; i < COUNT(bad); i++)
        if (gpu_parse(bad[i]))
            fail_msg("accepted: %s", bad[i]);
}

/* Sixteen GPUs with long numbers fit into one write. */
TEST(test_many_gpus)
{
    struct node node = metrics_test_make_node();

    make_smi("i=0; while [ $i -lt 16 ]; do echo \"$i, 33, 123456, 234567, 61, 312.55, 123456789\"; i=$((i+1)); done");
    struct metrics *m = metrics_new(&node);
    CODEC_AUTOJSON json_t *first = metrics_test_next(m);
    assert_int_equal(json_array_size(json_object_get(first, "gpus")), 16);
    CODEC_AUTOJSON json_t *second = metrics_test_next(m);
    assert_int_equal(json_array_size(json_object_get(second, "gpus")), 16);
    assert_int_equal(count_asked(), 2);
    metrics_free(m);
}

TEST(test_bad_smi_is_given_up)
{
    static const char *const scripts[] = {
        "echo no devices were found; exit 6",
        "echo '\\001\\377 garbage'",
        "yes 0, 1, 2, 3, 4, 5, 6",
        "kill -9 $$",
    };
    struct node node = metrics_test_make_node();

    for (size_t i = 0; i < COUNT(scripts); i++) {
        make_smi(scripts[i]);
        struct metrics *m = metrics_new(&node);
        for (int line = 0; line < 5; line++) {
            CODEC_AUTOJSON json_t *json = metrics_test_next(m);
            assert_true(json_is_null(json_object_get(json, "gpus")));
        }
        assert_in_range(count_asked(), 1, 3); /* it is not asked again while a killed one is not gone */
        metrics_free(m);
    }
}

/* The line comes all the same, and nothing of the program is left. */
TEST(test_hanging_smi)
{
    struct node node = metrics_test_make_node();
    ACT_AUTOFREE char *pid_file = act_path_join(dir, "pid");
    ACT_AUTOFREE char *text = NULL;

    make_smi("echo $$ >\"${0%/*}/pid\"; trap '' TERM; while :; do sleep 1000; done");
    struct metrics *m = metrics_new(&node);
    CODEC_AUTOJSON json_t *json = metrics_test_next(m);
    assert_true(json_is_null(json_object_get(json, "gpus")));
    assert_true(json_is_object(json_object_get(json, "memory")));
    assert_ok(act_file_read(pid_file, 100, &text, NULL, &err), err);
    pid_t pid = (pid_t)strtol(text, NULL, 10);
    assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0); /* it was killed */
    make_smi("echo 0, 1, 2, 3, 4, 5, 6");
    CODEC_AUTOJSON json_t *later = metrics_test_next(m);
    assert_int_equal(json_array_size(json_object_get(later, "gpus")), 1);
    assert_int_equal(kill(pid, 0), -1);
    metrics_free(m);
}

TEST_MAIN(NULL, NULL)
