/* fullness.c - which resources of a node were nearly full, by the samples in metrics/<node>.jsonl. */
#include <string.h>

#include "codec/json.h"
#include "flow/why/ranks.h"

enum {
    METRICS_LINES = 6, /* the last minute */
    MEMORY_FULL_PERCENT = 95,
    DISK_FULL_PERCENT = 99,
};

enum resource { HOST_MEMORY, CODE_DISK, RUN_DISK, RESOURCES };
enum { GPUS = 64 };

struct fullness {
    int percent[RESOURCES], gpu[GPUS];
};

static void raise_to(int *percent, double used, double total)
{
    int now = total > 0 && used >= 0 && used <= total ? (int)(used / total * 100) : 0;

    if (now > *percent)
        *percent = now;
}

static double fullness_number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_number(value) ? json_number_value(value) : -1;
}

static void raise_by_free(int *percent, const json_t *object, const char *free_key)
{
    double total = fullness_number_of(object, "total"), unused = fullness_number_of(object, free_key);

    if (total >= 0 && unused >= 0)
        raise_to(percent, total - unused, total);
}

/* Takes a line of metrics/<node>.jsonl, as node/metrics.h describes it. */
static void take_metrics(const char *line, struct fullness *full)
{
    CODEC_AUTOJSON json_t *json = NULL;
    struct act_error ignored;
    const json_t *gpu;
    size_t i;

    if (codec_json_parse(line, strlen(line), "metrics", &json, &ignored) < 0)
        return;
    const json_t *disk = json_object_get(json, "disk");
    raise_by_free(&full->percent[HOST_MEMORY], json_object_get(json, "memory"), "available");
    raise_by_free(&full->percent[CODE_DISK], json_object_get(disk, "code"), "free");
    raise_by_free(&full->percent[RUN_DISK], json_object_get(disk, "run"), "free");
    json_array_foreach(json_object_get(json, "gpus"), i, gpu)
    {
        int64_t index = codec_json_int(gpu, "index", (int64_t)i);
        if (index >= 0 && index < GPUS)
            raise_to(&full->gpu[index], fullness_number_of(gpu, "memory_used"),
                     fullness_number_of(gpu, "memory_total"));
    }
}

static void note_fullness(struct act_strv *notes, const struct fullness *full, const char *node)
{
    static const struct {
        const char *name;
        int full_percent;
    } rows[] = {[HOST_MEMORY] = {"host memory", MEMORY_FULL_PERCENT},
                [CODE_DISK] = {"disk of the code", DISK_FULL_PERCENT},
                [RUN_DISK] = {"disk of the run's folder", DISK_FULL_PERCENT}};

    for (int i = 0; i < RESOURCES; i++)
        if (full->percent[i] >= rows[i].full_percent)
            act_strv_pushf(notes, "%s %d%% full on %s", rows[i].name, full->percent[i], node);
    for (int i = 0; i < GPUS; i++)
        if (full->gpu[i] >= MEMORY_FULL_PERCENT)
            act_strv_pushf(notes, "memory of GPU %d %d%% full on %s", i, full->gpu[i], node);
}

void flow_note_fullness(const struct act_buf *metrics, const char *node, struct act_strv *notes)
{
    struct fullness full = {0};
    ACT_AUTO(act_strv) lines = {0};

    if (metrics->len > 0)
        flow_last_lines(metrics, METRICS_LINES, &lines);
    for (size_t i = 0; i < lines.n; i++)
        take_metrics(lines.v[i], &full);
    note_fullness(notes, &full, node);
}
