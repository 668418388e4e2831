#include "node/gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "codec/json.h"
#include "node/node.h"
#include "proc/proc.h"

enum { TIMEOUT_MS = 5000, FAILURES_MAX = 3, GPUS_MAX = 16, OUTPUT_MAX = 16 * 1024 };

/* ---- its output ---- */

static const struct {
    const char *name;
    double unit; /* our units per unit of nvidia-smi */
} columns[] = {
    {"index", 1},   {"busy", 0.01}, {"memory_used", 1 << 20}, {"memory_total", 1 << 20},
    {"celsius", 1}, {"watts", 1},   {"ecc_errors", 1},
};
enum { N_COLUMNS = sizeof(columns) / sizeof(columns[0]) };

/* Reads a number; returns JSON null for "[N/A]" and the like, and NULL for anything else. */
static json_t *parse_value(const char *text, double unit)
{
    char *end;

    text += strspn(text, " ");
    if (act_starts_with(text, "[") || act_starts_with(text, "N/A"))
        return json_null();
    double value = strtod(text, &end) * unit;
    if (end == text || end[strspn(end, " \r")] || !isfinite(value) || value < 0 || value > 1e15)
        return NULL;
    return value == floor(value) ? json_integer((json_int_t)value) : json_real(value);
}

static json_t *parse_line(char *line)
{
    json_t *gpu = json_object();
    bool good = true;

    for (size_t i = 0; good && i < N_COLUMNS; i++) {
        const char *text = strsep(&line, ",");
        json_t *value = text ? parse_value(text, columns[i].unit) : NULL;
        good = value && json_object_set_new(gpu, columns[i].name, value) == 0;
    }
    if (good && !line && json_is_integer(json_object_get(gpu, "index")))
        return gpu;
    json_decref(gpu);
    return NULL;
}

json_t *gpu_parse(const char *text)
{
    ACT_AUTOFREE char *copy = act_strdup(text);
    char *rest, *line = strtok_r(copy, "\n", &rest);
    json_t *all = json_array(), *gpu;

    for (; line; line = strtok_r(NULL, "\n", &rest)) {
        gpu = json_array_size(all) < GPUS_MAX ? parse_line(line) : NULL;
        if (!gpu || json_array_append_new(all, gpu) < 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

/* ---- what they do ---- */

/* Tells whether the list "0,3" has the number; any other list has all. */
static bool is_visible(const char *visible, int64_t index)
{
    if (!visible || !*visible || visible[strspn(visible, "0123456789,")])
        return true;
    for (const char *at = visible; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strtoll(at, NULL, 10) == index)
            return true;
    }
    return false;
}

enum gpu_use gpu_use_of(const json_t *gpus, const char *visible)
{
    enum gpu_use use = GPU_UNKNOWN;
    const json_t *gpu;
    size_t i;

    json_array_foreach(gpus, i, gpu)
    {
        const json_t *busy = json_object_get(gpu, "busy");
        if (!is_visible(visible, codec_json_int(gpu, "index", -1)))
            continue;
        if (!json_is_number(busy))
            return GPU_UNKNOWN;
        if (json_number_value(busy) > 0)
            return GPU_BUSY;
        use = GPU_IDLE;
    }
    return use;
}

/* ---- the program ---- */

void gpu_open(struct gpu_query *q, struct watch *watch)
{
    *q = (struct gpu_query){.program = proc_find_in_path("nvidia-smi"), .watch = watch};
}

void gpu_close(struct gpu_query *q)
{
    if (q->pid > 0)
        kill(-q->pid, SIGKILL);
    free(q->program);
    q->program = NULL;
}

/* Waits for the next event. False if the time is over, or this process was told to end. */
static bool gpu_wait_on(struct gpu_query *q, int64_t deadline_ms)
{
    int64_t left = deadline_ms - act_now_monotonic_ms();
    int sig;

    if (left <= 0)
        return false;
    if (watch_wait(q->watch, left, &sig) == WATCH_SIGNAL && (sig == SIGTERM || sig == SIGINT))
        q->told_to_end = true;
    return !q->told_to_end;
}

/* Reads its output to the end. */
static bool gpu_read_all(struct gpu_query *q, int fd, struct act_buf *out, int64_t deadline_ms)
{
    char chunk[4096];

    q->watch->extra_fd = fd;
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n == 0)
            return true;
        if (n > 0)
            act_buf_add(out, chunk, (size_t)n);
        if (out->len > OUTPUT_MAX || (n < 0 && (errno != EAGAIN || !gpu_wait_on(q, deadline_ms))))
            return false;
    }
}

static bool gpu_reap(struct gpu_query *q, int *out_status)
{
    if (!child_reap(q->pid, out_status))
        return false;
    q->pid = 0;
    return true;
}

static bool start_query(struct gpu_query *q, int *out_fd)
{
    const char *const argv[] = {q->program,
                                "--query-gpu=index,utilization.gpu,memory.used,memory.total,temperature.gpu,power.draw,"
                                "ecc.errors.uncorrected.volatile.total",
                                "--format=csv,noheader,nounits", NULL};
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    q->pid = child_start(&(struct child){.argv = argv, .out_fd = ends[1]});
    close(ends[1]);
    *out_fd = ends[0];
    if (q->pid > 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0)
        return true;
    q->pid = q->pid > 0 ? q->pid : 0;
    close(ends[0]);
    return false;
}

/* Runs it. False if it fails, prints too much, or takes too long. */
static bool run_query(struct gpu_query *q, struct act_buf *out)
{
    int64_t deadline_ms = act_now_monotonic_ms() + TIMEOUT_MS;
    int fd, status = 0;

    if (!start_query(q, &fd))
        return false;
    bool good = gpu_read_all(q, fd, out, deadline_ms);
    q->watch->extra_fd = -1;
    close(fd);
    while (good && !gpu_reap(q, &status))
        good = gpu_wait_on(q, deadline_ms);
    if (good)
        return status == 0;
    kill(-q->pid, SIGKILL);
    return false;
}

json_t *gpu_ask(struct gpu_query *q)
{
    ACT_AUTO(act_buf) out = {0};
    json_t *gpus = NULL;
    int status;

    if (!q->program)
        return NULL;
    bool free_to_ask = q->pid == 0 || gpu_reap(q, &status); /* a killed one may still hang in the driver */
    if (q->failures >= FAILURES_MAX || q->told_to_end)
        return json_null();
    if (free_to_ask && run_query(q, &out))
        gpus = gpu_parse(out.data ? out.data : "");
    if (gpus)
        q->failures = 0;
    else if (!q->told_to_end && ++q->failures == FAILURES_MAX)
        node_say("nvidia-smi failed %d times in a row: it is not asked any more", FAILURES_MAX);
    return gpus ? gpus : json_null();
}
