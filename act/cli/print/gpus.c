#include "cli/print/gpus.h"

#include "cli/print/print.h"
#include "codec/json.h"

const struct cli_column cli_gpu_columns[CLI_GPU_COLUMNS] = {
    {"GPU", 'l', .rank = 0}, {"MODEL", 'l', .rank = 3}, {"MEMORY", 'r', .rank = 1}, {"USED BY", 'l', .rank = 2}};

static void gpus_push_memory(struct act_strv *cells, const struct platform_gpu *g)
{
    static const double gib = 1 << 30;

    if (g->used < 0 || g->memory < 0)
        act_strv_push(cells, "-");
    else
        act_strv_pushf(cells, "%.1f of %.1f GiB", (double)g->used / gib, (double)g->memory / gib);
}

void cli_push_gpu(struct act_strv *cells, const struct platform_gpu *gpu)
{
    act_strv_pushf(cells, "%s%s", gpu->name, gpu->is_given ? "" : ", not given");
    act_strv_push(cells, *gpu->model ? gpu->model : "-");
    gpus_push_memory(cells, gpu);
    act_strv_push(cells, *gpu->users ? gpu->users : "-");
}

json_t *cli_gpu_json(const struct platform_gpu *g)
{
    return json_pack("{s:s,s:o,s:o,s:o,s:o,s:b}", "name", g->name, "model", codec_json_bytes_new(g->model), "memory",
                     cli_count_json(g->memory), "used", cli_count_json(g->used), "users",
                     codec_json_bytes_new(g->users), "given", g->is_given);
}
