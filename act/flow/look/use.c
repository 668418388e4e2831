/* use.c - what the nodes of a run used, from the copies of metrics/<node>.jsonl of all attempts, or of their logs. */
#include <string.h>

#include "engine/engine.h"
#include "flow/flow_internal.h"
#include "flow/look/parts.h"
#include "flow/source/source.h"

/* Points of all curves together: what a page of less than 1 MB can hold. */
enum { ALL_POINTS = 120000, LEAST_POINTS = 16, MOST_POINTS = 1000, CURVES_OF_A_NODE = 24 };

/* The name of the node whose metrics a file has. New string; NULL: it has none. */
static char *use_node_of(const struct flow_here *here, const char *file)
{
    static const char folder[] = RUN_DIR_METRICS "/", end[] = ".jsonl";
    const char *name = strrchr(file, '/');

    for (int attempt = 1; name && attempt <= here->attempt; attempt++) {
        ACT_AUTOFREE char *prefix = flow_here_prefix(here, attempt);
        const char *rest = act_starts_with(file, prefix) ? file + strlen(prefix) : "";
        if (act_starts_with(rest, folder) && rest + strlen(folder) == name + 1 && act_ends_with(name, end))
            return act_strndup(name + 1, strlen(name + 1) - strlen(end));
    }
    return NULL;
}

static void use_list_nodes(const struct flow_here *here, struct act_strv *out)
{
    for (size_t i = 0; i < here->files.n; i++) {
        char *node = use_node_of(here, here->files.v[i].key);
        if (node && !act_strv_has(out, node))
            act_strv_take(out, node);
        else
            free(node);
    }
    act_strv_sort(out);
}

static void use_take(void *samples, const char *text, size_t len)
{
    samples_feed(samples, text, len);
}

static int read_node(const struct flow_here *here, const char *node, struct samples *s, struct act_error *err)
{
    int rc = 0;

    for (int attempt = 1; attempt <= here->attempt && rc == 0; attempt++) {
        ACT_AUTOFREE char *prefix = flow_here_prefix(here, attempt);
        ACT_AUTOFREE char *name = act_sprintf("%s" RUN_DIR_METRICS "/%s.jsonl", prefix, node);
        rc = flow_here_read(here, name, use_take, s, err);
        samples_end(s);
        rc = rc == -ACT_NOT_FOUND ? 0 : rc; /* it was not in this attempt */
    }
    return rc;
}

/* Returns how many points each curve keeps when there are so many nodes. */
static size_t use_points_of(size_t nodes)
{
    size_t points = ALL_POINTS / CURVES_OF_A_NODE / (nodes ? nodes : 1);

    return points < LEAST_POINTS ? LEAST_POINTS : points > MOST_POINTS ? MOST_POINTS : points;
}

/* Takes over the curves. */
static void use_keep(struct samples *s, size_t points, struct flow_node_use *out)
{
    out->gpus = samples_gpus(s);
    out->bad = samples_bad(s);
    for (int i = 0; i < SAMPLES_CURVES; i++) {
        struct series *curve = samples_curve(s, i);
        series_end(curve);
        series_reduce(curve, points);
        out->curves[i] = *curve;
        *curve = (struct series){0};
    }
}

/* ---- where nodes keep no such files: lines in the logs of the first rank of each */

struct lines {
    struct samples *samples;
    char *node; /* of the first line */
    char text[4096];
    size_t len;
};

static void use_take_line(struct lines *l)
{
    static const char mark[] = RUN_LOG_METRICS;
    char *node = NULL;

    l->text[l->len] = '\0';
    l->len = 0;
    if (!act_starts_with(l->text, mark) || !samples_take_text(l->samples, l->text + strlen(mark), &node))
        return;
    if (l->node)
        free(node);
    else
        l->node = node;
}

static void take_lines(void *arg, const char *text, size_t len)
{
    struct lines *l = arg;

    while (len > 0) {
        const char *end = memchr(text, '\n', len);
        size_t n = end ? (size_t)(end - text) : len, room = sizeof(l->text) - 1 - l->len;
        memcpy(l->text + l->len, text, n < room ? n : room);
        l->len += n < room ? n : room;
        if (end)
            use_take_line(l);
        n += end != NULL;
        text += n;
        len -= n;
    }
}

static int use_read_rank(const struct flow_here *here, int rank, struct lines *l, struct act_error *err)
{
    int rc = 0;

    for (int attempt = 1; attempt <= here->attempt && rc == 0; attempt++) {
        ACT_AUTOFREE char *prefix = flow_here_prefix(here, attempt);
        const struct store_entry *log = flow_find_rank_log(&here->files, prefix, rank);
        rc = log ? flow_here_read(here, log->key, take_lines, l, err) : 0;
        use_take_line(l);
    }
    return rc;
}

static int read_logs(const struct flow_here *here, struct flow_report *out, struct act_error *err)
{
    const struct run_spec *spec = &out->run->spec;
    int step = spec->procs_per_node > 0 ? spec->procs_per_node : 1, rc = 0;
    size_t n = spec->nodes > FLOW_REPORT_NODES ? FLOW_REPORT_NODES : spec->nodes > 0 ? (size_t)spec->nodes : 1;

    out->nodes = act_calloc(n + 1, sizeof(*out->nodes));
    for (size_t i = 0; i < n && rc == 0; i++) {
        ACT_AUTOFREE struct lines *l = act_calloc(1, sizeof(*l));
        l->samples = samples_new();
        samples_set_range(l->samples, out->use_range);
        rc = use_read_rank(here, (int)i * step, l, err);
        if (l->node) {
            struct flow_node_use *use = &out->nodes[out->n_nodes++];
            use->name = l->node;
            use_keep(l->samples, use_points_of(n), use);
        }
        samples_free(l->samples);
    }
    out->n_all_nodes = out->n_nodes;
    return rc;
}

/* ---- all of them */

/* The work on one node, which a worker does. */
struct node_work {
    const struct flow_here *here;
    struct flow_node_use *use;
    size_t points;
    struct series_range range;
    int rc;
    struct act_error err;
};

static void work(void *arg)
{
    struct node_work *w = arg;
    struct samples *s = samples_new();

    samples_set_range(s, w->range);
    w->rc = read_node(w->here, w->use->name, s, &w->err);
    use_keep(s, w->points, w->use);
    samples_free(s);
}

static void worked(void *arg)
{
    (void)arg;
}

int flow_read_use(struct flow *flow, const struct flow_here *here, struct flow_report *out, struct act_error *err)
{
    ACT_AUTO(act_strv) names = {0};
    int rc = 0;

    use_list_nodes(here, &names);
    if (names.n == 0)
        return read_logs(here, out, err);
    size_t n = names.n < FLOW_REPORT_NODES ? names.n : FLOW_REPORT_NODES;
    size_t points = use_points_of(n);
    out->n_all_nodes = names.n;
    out->nodes = act_calloc(n + 1, sizeof(*out->nodes));
    ACT_AUTOFREE struct node_work *works = act_calloc(n + 1, sizeof(*works));
    for (; out->n_nodes < n; out->n_nodes++) {
        struct flow_node_use *use = &out->nodes[out->n_nodes];
        use->name = act_strdup(names.v[out->n_nodes]);
        works[out->n_nodes] = (struct node_work){.here = here, .use = use, .points = points, .range = out->use_range};
        engine_work(flow_engine(flow), work, worked, &works[out->n_nodes]);
    }
    engine_run(flow_engine(flow), NULL);
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = works[i].rc;
        *err = rc < 0 ? works[i].err : *err;
    }
    return rc;
}
