#include "node/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "codec/json.h"
#include "node/child.h"
#include "node/counters.h"
#include "node/gpu.h"
#include "node/inventory.h"

enum { EVERY_MS = 10 * 1000, LINE_MAX_BYTES = 4096, DIGITS = 13 /* the time in milliseconds */ };

struct metrics {
    const struct node *node;
    struct watch watch;
    struct gpu_query gpu;
    struct counters last;
    int64_t last_ns;  /* 0: there was none */
    enum gpu_use use; /* in the last sample */
};

/* Returns the rate per second between two readings; null if not known. */
static json_t *rate(uint64_t now, uint64_t before, double seconds)
{
    return seconds <= 0 || now < before ? json_null() : json_integer((json_int_t)((double)(now - before) / seconds));
}

static json_t *rounded(double value)
{
    return isfinite(value) && value >= 0 ? json_real(round(value * 1000) / 1000) : json_null();
}

static json_t *make_cpu(const struct counters *now, const struct counters *before, double seconds)
{
    bool known = seconds > 0 && now->cpu_total > before->cpu_total && now->run_cpu >= before->run_cpu;
    double ticks = (double)(now->cpu_total - before->cpu_total);

    return json_pack("{s:I, s:o, s:o}", "cores", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "busy",
                     known ? rounded((double)(now->cpu_busy - before->cpu_busy) / ticks) : json_null(), "run",
                     known ? rounded((double)(now->run_cpu - before->run_cpu) / (double)sysconf(_SC_CLK_TCK) / seconds)
                           : json_null());
}

static json_t *make_memory(const struct counters *now)
{
    return json_pack("{s:I, s:I, s:I}", "total", (json_int_t)now->memory_total, "available",
                     (json_int_t)now->memory_available, "run", (json_int_t)now->run_memory);
}

static json_t *make_disk_room(const char *path)
{
    struct statvfs fs;

    if (statvfs(path, &fs) < 0)
        return json_null(); /* the code root is not there yet */
    return json_pack("{s:I, s:I}", "total", (json_int_t)fs.f_blocks * (json_int_t)fs.f_frsize, "free",
                     (json_int_t)fs.f_bavail * (json_int_t)fs.f_frsize);
}

static json_t *make_disk(const struct metrics *m, const struct counters *now, double seconds)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "code", make_disk_room(m->node->code), "run", make_disk_room(m->node->dir),
                     "read_per_s", rate(now->disk_read, m->last.disk_read, seconds), "written_per_s",
                     rate(now->disk_written, m->last.disk_written, seconds));
}

static json_t *make_network(uint64_t received, uint64_t received_before, uint64_t sent, uint64_t sent_before,
                            double seconds)
{
    return json_pack("{s:o, s:o}", "received_per_s", rate(received, received_before, seconds), "sent_per_s",
                     rate(sent, sent_before, seconds));
}

/* Returns a sample, a new reference. */
static json_t *take_sample(struct metrics *m)
{
    struct counters now;
    const struct counters *before = &m->last;
    int64_t now_ns = act_now_unix_ns();
    double seconds = m->last_ns ? (double)(now_ns - m->last_ns) / 1e9 : 0;

    counters_read(m->node->dir, &now);
    json_t *sample = json_pack(
        "{s:o, s:s, s:o, s:o, s:o, s:o}", "time", rounded((double)now_ns / 1e9), "node", m->node->name, "cpu",
        make_cpu(&now, before, seconds), "memory", make_memory(&now), "disk", make_disk(m, &now, seconds), "network",
        make_network(now.net_received, before->net_received, now.net_sent, before->net_sent, seconds));
    if (now.has_infiniband)
        json_object_set_new(sample, "infiniband",
                            make_network(now.ib_received, before->ib_received, now.ib_sent, before->ib_sent, seconds));
    m->last = now;
    m->last_ns = now_ns;
    json_t *gpus = gpu_ask(&m->gpu);
    m->use = gpu_use_of(gpus, getenv("CUDA_VISIBLE_DEVICES"));
    if (gpus)
        json_object_set_new(sample, "gpus", gpus);
    return sample;
}

char *metrics_line(struct metrics *m)
{
    CODEC_AUTOJSON json_t *sample = take_sample(m);
    ACT_AUTOFREE char *text = json_dumps(sample, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));

    return act_sprintf("%s\n", text);
}

/* ---- for people ---- */

static void add_share(struct act_buf *text, const json_t *share)
{
    if (json_is_number(share))
        act_buf_addf(text, " %.0f %%", json_number_value(share) * 100);
    else
        act_buf_adds(text, " -");
}

static void add_size(struct act_buf *text, const json_t *used, const json_t *total)
{
    static const double gib = 1 << 30;

    if (json_is_number(used) && json_is_number(total))
        act_buf_addf(text, " %.1f/%.1f GiB", json_number_value(used) / gib, json_number_value(total) / gib);
    else
        act_buf_adds(text, " -");
}

/* Adds the used amount, from the total and the free one. */
static void add_rest(struct act_buf *text, const char *name, const json_t *room, const char *free_key)
{
    const json_t *total = json_object_get(room, "total"), *rest = json_object_get(room, free_key);
    CODEC_AUTOJSON json_t *used = json_is_integer(total) && json_is_integer(rest)
                                      ? json_integer(json_integer_value(total) - json_integer_value(rest))
                                      : json_null();

    act_buf_addf(text, ", %s", name);
    add_size(text, used, total);
}

static void metrics_add_gpus(struct act_buf *text, const json_t *gpus)
{
    const json_t *gpu;
    size_t i;

    if (json_is_null(gpus))
        act_buf_adds(text, ", gpu -: nvidia-smi does not answer");
    json_array_foreach(gpus, i, gpu)
    {
        act_buf_addf(text, ", gpu %lld", (long long)codec_json_int(gpu, "index", 0));
        add_share(text, json_object_get(gpu, "busy"));
        add_size(text, json_object_get(gpu, "memory_used"), json_object_get(gpu, "memory_total"));
    }
}

char *metrics_text(struct metrics *m)
{
    CODEC_AUTOJSON json_t *sample = take_sample(m);
    const json_t *disk = json_object_get(sample, "disk"), *code = json_object_get(disk, "code");
    struct act_buf text = {0};
    char now[ACT_TIME_TEXT];

    act_buf_addf(&text, RUN_LOG_METRICS "node %s, cpu", m->node->name);
    add_share(&text, json_object_get(json_object_get(sample, "cpu"), "busy"));
    add_rest(&text, "memory", json_object_get(sample, "memory"), "available");
    add_rest(&text, "disk", json_is_object(code) ? code : json_object_get(disk, "run"), "free");
    metrics_add_gpus(&text, json_object_get(sample, "gpus"));
    act_time_to_iso(act_now_unix_s(), now);
    act_buf_addf(&text, ", at %s\n", now);
    return text.data;
}

struct metrics *metrics_new(const struct node *node)
{
    struct metrics *m = act_calloc(1, sizeof(*m));
    struct act_error err;

    m->node = node;
    if (watch_open(&m->watch, &err) < 0) {
        node_say("no metrics: %s", act_error_text(&err));
        free(m);
        return NULL;
    }
    gpu_open(&m->gpu, &m->watch);
    return m;
}

void metrics_free(struct metrics *m)
{
    gpu_close(&m->gpu);
    close(m->watch.signal_fd);
    free(m);
}

/* ---- the sampler ---- */

/* Appends a sample; false if nothing can be written any more: a full disk must not also fill the agent's log. */
static bool metrics_append(int fd, struct metrics *m)
{
    ACT_AUTOFREE char *line = metrics_line(m);
    size_t len = strlen(line);

    if (len >= LINE_MAX_BYTES || act_write_all(fd, line, len) == 0)
        return true;
    node_say("no more metrics: cannot write them: %m");
    return false;
}

static bool metrics_wait_for_next(struct metrics *m, int64_t at_ms)
{
    int sig;

    for (;;) {
        int64_t left = at_ms - act_now_monotonic_ms();
        if (left <= 0)
            return true;
        if (watch_wait(&m->watch, left, &sig) == WATCH_SIGNAL && (sig == SIGTERM || sig == SIGINT))
            return false;
    }
}

static void sample(struct metrics *m, int fd, _Atomic(enum gpu_use) *use)
{
    int64_t next_ms = act_now_monotonic_ms();
    bool last = false;

    while (metrics_append(fd, m) && !last) {
        if (use)
            *use = m->use;
        next_ms += EVERY_MS;
        last = m->gpu.told_to_end || !metrics_wait_for_next(m, next_ms);
        m->gpu.told_to_end = last; /* do not wait for nvidia-smi any more */
    }
}

static int metrics_open_file(const struct node *node)
{
    ACT_AUTOFREE char *dir = node_path(node, RUN_DIR_METRICS);
    ACT_AUTOFREE char *name = act_sprintf(RUN_DIR_METRICS "/%s.jsonl", node->name);
    struct act_error err;

    if (act_mkdir_all(dir, 0755, &err) < 0) {
        node_say("no metrics: %s", act_error_text(&err));
        return -1;
    }
    int fd = node_open_log(node, name);
    if (fd < 0)
        node_say("no metrics: cannot open '%s': %m", name);
    return fd;
}

struct metrics_begin {
    const struct node *node;
    _Atomic(enum gpu_use) *use; /* as of metrics_start() */
    int fd;                     /* of the rank's log */
    int64_t every_ms;           /* between two lines there */
    int ready[2];               /* a pipe: closed when the child hears signals */
};

static int run_sampler(void *arg)
{
    const struct metrics_begin *start = arg;
    int fd = metrics_open_file(start->node);
    struct metrics *m = fd < 0 ? NULL : metrics_new(start->node);

    close(start->ready[1]);
    if (m)
        sample(m, fd, start->use);
    if (start->use)
        *start->use = GPU_UNKNOWN;
    if (!m)
        return ACT_FAIL;
    metrics_free(m);
    close(fd);
    return 0;
}

/* From now on a signal to end is not lost: even the shortest run has two lines. */
static void wait_until_ready(int fd)
{
    char nothing;

    while (read(fd, &nothing, 1) < 0 && errno == EINTR)
        continue;
}

static void metrics_start_child(struct metrics_begin *start, int (*run)(void *))
{
    if (pipe2(start->ready, O_CLOEXEC) < 0) {
        node_say("no metrics: cannot start: %m");
        return;
    }
    ACT_AUTOCLOSE int ready = start->ready[0];
    if (child_start(&(struct child){.run = run, .arg = start, .out_fd = -1}) < 0)
        node_say("no metrics: cannot start: %m");
    close(start->ready[1]);
    wait_until_ready(ready); /* its end, if nobody has the other one */
}

void metrics_start(const struct node *node, _Atomic(enum gpu_use) *use)
{
    metrics_start_child(&(struct metrics_begin){.node = node, .use = use}, run_sampler);
}

/* ---- the reporter ---- */

/* Reports once what the node is; by now it is prepared. */
static void report_inventory(struct metrics *m, int fd)
{
    ACT_AUTO(act_strv) lines = {0};
    ACT_AUTO(act_buf) text = {0};

    inventory_of(m->node, &lines);
    for (size_t i = 0; i < lines.n; i++)
        act_buf_addf(&text, RUN_LOG_METRICS "%s\n", lines.v[i]);
    (void)!act_write_all(fd, text.data, text.len);
}

static void report_sample(struct metrics *m, int fd, int64_t every_ms)
{
    enum { FIRST_MS = 60 * 1000 };
    int64_t next_ms = act_now_monotonic_ms() + (every_ms < FIRST_MS ? every_ms : FIRST_MS);
    bool first = true;

    json_decref(take_sample(m)); /* shares are measured from here */
    for (; !m->gpu.told_to_end && metrics_wait_for_next(m, next_ms); first = false) {
        ACT_AUTOFREE char *text = metrics_text(m);
        if (first)
            report_inventory(m, fd);
        if (act_write_all(fd, text, strlen(text)) < 0)
            return;
        next_ms += every_ms;
    }
}

static int run_reporter(void *arg)
{
    const struct metrics_begin *start = arg;
    struct metrics *m = metrics_new(start->node);

    close(start->ready[1]);
    if (!m)
        return ACT_FAIL;
    report_sample(m, start->fd, start->every_ms);
    metrics_free(m);
    return 0;
}

void metrics_report(const struct node *node, int log_fd)
{
    enum { EVERY_S = 1800, LONGEST_S = 7 * 86400 };
    const char *text = getenv("ACT_METRICS_EVERY");
    int64_t seconds;

    if (!text || !act_int_from_text(text, &seconds) || seconds < 0 || seconds > LONGEST_S)
        seconds = EVERY_S;
    if (seconds > 0)
        metrics_start_child(&(struct metrics_begin){.node = node, .fd = log_fd, .every_ms = seconds * 1000},
                            run_reporter);
}
