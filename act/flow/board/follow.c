/* follow.c - what a running run says and uses: the new part of rank 0's log, and the last samples of its nodes.
 *
 * Of a log that is long, or has grown by much, only the end is read, so that a log of any size costs the same.
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "flow/board/places.h"
#include "flow/runs/watch.h"
#include "flow/why/ranks.h"
#include "numbers/samples.h"

enum {
    END = 64 << 10,     /* of a log that is new to us */
    MOST = 256 << 10,   /* that is read of what a log has grown by; if that was more, its end */
    LINE = 16 << 10,    /* of a line that has no end yet */
    POINTS_MOST = 1024, /* of a curve in memory, */
    POINTS_LEFT = 256,  /* and how many stand for them then */
    LOGS_MS = 5000,     /* between looks that are requests to a service */
    METRICS_MS = 10000, /* how often nodes write samples */
    METRICS_NODES = 8,  /* of which samples are read */
    METRICS_END = 8 << 10,
    SILENT_S = 300,    /* then it is found out who holds up whom, */
    SILENT_MS = 60000, /* so often */
    SHOWN_LINE = 4 << 10,
};

struct board_follow {
    struct flow_run run;
    struct flow_source source;
    bool is_told; /* what is new comes by itself, and a look costs no request */
    bool news;
    int64_t due_ms; /* when to look again */
    struct numbers *numbers;
    int attempt;
    char *log;            /* its name */
    uint64_t offset;      /* what was read of it */
    struct act_buf begun; /* its last line, if that has no end yet */
    char *line;
    int64_t spoke_unix_s;
    int64_t metrics_ms, silent_ms; /* when to look again */
    int held_up_by;
    bool has_gpus;
    double busy, memory;
};

struct board_follow *board_follow_new(struct flow *flow, const char *id)
{
    struct board_follow *f = act_calloc(1, sizeof(*f));
    struct act_error ignored;

    f->held_up_by = -1;
    f->busy = f->memory = -1;
    if (flow_find_unasked(flow, id, &f->run, &ignored) < 0) {
        board_follow_free(f);
        return NULL;
    }
    (void)!flow_load_spec(&f->run, &ignored); /* of a damaged row how many ranks there are is not known */
    return f;
}

void board_follow_free(struct board_follow *f)
{
    flow_source_close(&f->source);
    flow_run_release(&f->run);
    numbers_free(f->numbers);
    act_buf_release(&f->begun);
    free(f->log);
    free(f->line);
    free(f);
}

const char *board_follow_id(const struct board_follow *f)
{
    return f->run.row.id;
}

void flow_live_free(struct flow_live *live)
{
    for (size_t i = 0; live && i < live->n_numbers; i++)
        series_release(&live->numbers[i].curve);
    if (live)
        free(live->line);
    free(live);
}

/* ---- the log */

static void begin_log(struct board_follow *f, const char *name)
{
    numbers_free(f->numbers);
    f->numbers = numbers_new();
    act_str_replace(&f->log, name);
    act_buf_release(&f->begun);
    act_str_replace(&f->line, NULL);
    f->offset = 0;
}

/* The last line of what is new that the program itself has written. */
static bool board_follow_take_line(struct board_follow *f, const struct act_buf *text)
{
    enum { LOOKED_AT = 64 };
    ACT_AUTO(act_strv) lines = {0};
    size_t i;

    flow_last_lines(text, LOOKED_AT, &lines);
    for (i = lines.n; i > 0 && act_starts_with(lines.v[i - 1], RUN_LOG_AGENT);)
        i--;
    if (i == 0)
        return false;
    free(f->line);
    f->line = act_strndup(lines.v[i - 1], SHOWN_LINE);
    return true;
}

/* Keeps what follows the last line end, for the next time. */
static void keep_begun(struct board_follow *f, const char *text, size_t len)
{
    const char *end = memrchr(text, '\n', len);
    size_t rest = end ? len - (size_t)(end + 1 - text) : len;

    if (end)
        f->begun.len = 0;
    act_buf_add(&f->begun, text + len - rest, rest);
    if (f->begun.len > LINE)
        f->begun.len = LINE;
}

static void reduce_curves(struct numbers *numbers)
{
    for (size_t i = 0; i < numbers_count(numbers); i++) {
        struct series *s = &numbers_key(numbers, i)->series;
        if (s->n < POINTS_MOST)
            continue;
        series_end(s);
        series_reduce(s, POINTS_LEFT);
    }
}

/* Takes what the node uses from lines of the log, which have it if a service starts the ranks. */
static void take_metrics_line(struct board_follow *f, const struct act_buf *text);

static void board_follow_take_text(struct board_follow *f, const struct store_entry *log, const char *data, size_t len)
{
    ACT_AUTO(act_buf) text = {0};

    act_buf_add(&text, f->begun.data ? f->begun.data : "", f->begun.len);
    act_buf_add(&text, data, len);
    if (board_follow_take_line(f, &text))
        f->spoke_unix_s = log->last_modified_s;
    take_metrics_line(f, &text);
    keep_begun(f, data, len);
    numbers_feed(f->numbers, data, len);
    reduce_curves(f->numbers);
}

/* Goes to the end of the log, where the first bytes are perhaps half a line. */
static int skip_to_end(struct board_follow *f, const struct store_entry *log, struct act_error *err)
{
    ACT_AUTO(act_buf) text = {0};
    int rc = flow_log_tail(&f->source, log, END, &text, err);

    if (rc < 0)
        return rc;
    numbers_end(f->numbers);
    f->begun.len = 0;
    f->offset = log->size;
    if (text.len > 0)
        board_follow_take_text(f, log, text.data, text.len);
    return 0;
}

static int read_new(struct board_follow *f, const struct store_entry *log, struct act_error *err)
{
    if (log->size <= f->offset)
        return 0;
    if (f->offset == 0 || log->size - f->offset > MOST)
        return skip_to_end(f, log, err);
    size_t len = (size_t)(log->size - f->offset), got = 0;
    ACT_AUTOFREE char *data = act_alloc(len);
    int rc = flow_source_read(&f->source, log->key, f->offset, data, len, &got, err);
    if (rc < 0 || got == 0)
        return rc;
    f->offset += got;
    board_follow_take_text(f, log, data, got);
    return 0;
}

static int look_at_log(struct board_follow *f, const struct store_page *logs, struct act_error *err)
{
    const struct store_entry *log = flow_find_rank_log(logs, "", 0);

    if (!log)
        return 0;
    if (!act_streq(f->log, log->key) || log->size < f->offset)
        begin_log(f, log->key);
    return read_new(f, log, err);
}

/* ---- what the nodes use */

struct mean {
    double sum;
    size_t n;
};

/* What all nodes use: the GPUs, or the processors if there are no GPUs. */
struct use {
    struct mean gpu_busy, gpu_memory, cpu_busy, memory;
};

static void add_last(struct samples *s, int what, struct mean *mean)
{
    const struct series *curve = samples_curve(s, what);

    if (curve->count == 0)
        return;
    mean->sum += curve->last.y;
    mean->n++;
}

static void add_use(struct samples *s, struct use *use)
{
    for (int i = 0; i < samples_gpus(s); i++) {
        add_last(s, SAMPLES_GPU_BUSY + i, &use->gpu_busy);
        add_last(s, SAMPLES_GPU_MEMORY + i, &use->gpu_memory);
    }
    add_last(s, SAMPLES_CPU_BUSY, &use->cpu_busy);
    add_last(s, SAMPLES_MEMORY, &use->memory);
}

static void take_mean(const struct mean *mean, double *out)
{
    if (mean->n > 0)
        *out = mean->sum / (double)mean->n;
}

static void take_use(struct board_follow *f, const struct use *use)
{
    f->has_gpus = f->has_gpus || use->gpu_busy.n + use->gpu_memory.n > 0;
    take_mean(f->has_gpus ? &use->gpu_busy : &use->cpu_busy, &f->busy);
    take_mean(f->has_gpus ? &use->gpu_memory : &use->memory, &f->memory);
}

static void take_metrics_line(struct board_follow *f, const struct act_buf *text)
{
    const char *found = NULL, *at = text->data;
    struct use use = {0};

    while (at && (at = memmem(at, text->len - (size_t)(at - text->data), RUN_LOG_METRICS, strlen(RUN_LOG_METRICS)))) {
        found = at + strlen(RUN_LOG_METRICS);
        at = found;
    }
    const char *end = found ? memchr(found, '\n', text->len - (size_t)(found - text->data)) : NULL;
    if (!end)
        return;
    ACT_AUTOFREE char *line = act_strndup(found, (size_t)(end - found));
    ACT_AUTOFREE char *node = NULL;
    struct samples *s = samples_new();
    if (samples_take_text(s, line, &node)) {
        add_use(s, &use);
        take_use(f, &use);
    }
    samples_free(s);
}

static void add_samples(const struct act_buf *text, struct use *use)
{
    if (text->len == 0)
        return;
    struct samples *s = samples_new();
    samples_feed(s, text->data, text->len);
    samples_end(s);
    add_use(s, use);
    samples_free(s);
}

static int look_at_nodes(struct board_follow *f, const struct store_page *logs, struct act_error *err)
{
    const struct store_entry *nodes[METRICS_NODES] = {0};
    struct act_buf texts[METRICS_NODES] = {0};
    int64_t now_ms = act_now_monotonic_ms();
    struct use use = {0};
    size_t n = 0;

    if (now_ms < f->metrics_ms)
        return 0;
    for (size_t i = 0; i < logs->n && n < METRICS_NODES; i++)
        if (act_starts_with(logs->v[i].key, RUN_DIR_METRICS "/") && logs->v[i].size > 0)
            nodes[n++] = &logs->v[i];
    int rc = flow_log_tails(&f->source, nodes, n, METRICS_END, texts, err);
    for (size_t i = 0; i < n; i++) {
        add_samples(&texts[i], &use);
        act_buf_release(&texts[i]);
    }
    if (use.memory.n + use.gpu_memory.n > 0)
        f->metrics_ms = now_ms + METRICS_MS;
    take_use(f, &use);
    return rc;
}

/* ---- silence */

static int look_for_silent(struct board_follow *f, const struct store_page *logs, struct act_error *err)
{
    int64_t now_ms = act_now_monotonic_ms();
    ACT_AUTO(flow_rank_lines) said = {0};

    if (f->spoke_unix_s == 0 || act_now_unix_s() - f->spoke_unix_s < SILENT_S) {
        f->held_up_by = -1;
        return 0;
    }
    if (now_ms < f->silent_ms)
        return 0;
    f->silent_ms = now_ms + SILENT_MS;
    int rc = flow_find_rank_lines(&f->source, &f->run, logs, "", 0, &said, err);
    bool differs = said.n > 1 && !act_streq(said.v[0].line, said.v[1].line);
    f->held_up_by = rc == 0 && differs ? said.v[0].rank : -1;
    return rc;
}

/* ---- what is known */

static int board_follow_rank_of(const struct numbers_key *key)
{
    static const char *const first[] = {"loss", "train_loss", "train/loss"};

    if (key->series.count + key->series.odd < 2)
        return 0;
    for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++)
        if (strcasecmp(key->name, first[i]) == 0)
            return 4;
    return strcasestr(key->name, "loss") ? 3 : key->is_measure ? 2 : 1;
}

static void show_number(struct numbers_key *key, struct flow_live *live)
{
    struct flow_live_number *out = &live->numbers[live->n_numbers++];

    *out = (struct flow_live_number){.last = key->series.ended_y, .curve = key->series};
    memcpy(out->name, key->name, sizeof(out->name));
    out->curve.v = act_calloc(key->series.n, sizeof(*out->curve.v));
    out->curve.cap = key->series.n;
    if (key->series.n > 0)
        memcpy(out->curve.v, key->series.v, key->series.n * sizeof(*out->curve.v));
    series_end(&out->curve);
    series_reduce(&out->curve, FLOW_LIVE_POINTS);
}

/* Shows the numbers that people look for first, then the others in the order in which they are printed. */
static void show_numbers(struct numbers *numbers, struct flow_live *live)
{
    for (int rank = 4; rank > 0; rank--)
        for (size_t i = 0; i < numbers_count(numbers) && live->n_numbers < FLOW_LIVE_NUMBERS; i++)
            if (board_follow_rank_of(numbers_key(numbers, i)) == rank)
                show_number(numbers_key(numbers, i), live);
}

static struct flow_live *live_of(const struct board_follow *f)
{
    struct flow_live *live = act_calloc(1, sizeof(*live));

    *live = (struct flow_live){.line = act_strdup(f->line),
                               .spoke_unix_s = f->spoke_unix_s,
                               .held_up_by = f->held_up_by,
                               .has_gpus = f->has_gpus,
                               .busy = f->busy,
                               .memory = f->memory};
    if (f->numbers)
        show_numbers(f->numbers, live);
    return live;
}

static int board_follow_look_at(struct board_follow *f, struct act_error *err)
{
    ACT_AUTO(store_page) logs = {0};

    f->source.with_ends = f->offset == 0;
    int rc = flow_source_list(&f->source, &logs, err);
    if (rc == 0)
        rc = look_at_log(f, &logs, err);
    if (rc == 0)
        rc = look_at_nodes(f, &logs, err);
    return rc < 0 ? rc : look_for_silent(f, &logs, err);
}

/* Where nodes send their logs to a store, that one is asked each time. */
static int board_follow_open(struct board_follow *f, struct flow *flow, int attempt, struct act_error *err)
{
    flow_source_close(&f->source);
    f->attempt = attempt;
    f->due_ms = 0;
    int rc = flow_source_open_there(flow, &f->run, &f->source, err);
    bool tells = f->source.store && store_watch(f->source.store, &f->news);
    f->is_told = tells && !f->run.spec.logs_path;
    return rc;
}

static bool board_follow_costs(const struct board_follow *f)
{
    return !f->is_told && f->source.platform && platform_row(f->source.platform)->about.answers_by_request;
}

struct flow_live *board_follow_look(struct board_follow *f, struct flow *flow, const struct run_status *status,
                                    bool in_hurry)
{
    struct act_error ignored;
    int rc = 0;

    f->run.status = *status;
    if (status->attempt != f->attempt)
        rc = board_follow_open(f, flow, status->attempt, &ignored);
    if (rc == 0 && f->source.store && (in_hurry || act_now_monotonic_ms() >= f->due_ms)) {
        rc = board_follow_look_at(f, &ignored);
        f->due_ms = act_now_monotonic_ms() + (board_follow_costs(f) ? LOGS_MS : 0);
    }
    if (rc < 0 && !f->source.store)
        f->attempt = 0; /* it is opened again */
    return live_of(f);
}
