/* gpus.h - the GPUs of a single machine, as 'a summary' and 'a top' show them. */
#ifndef ACT_CLI_PRINT_GPUS_H
#define ACT_CLI_PRINT_GPUS_H

#include <jansson.h>

#include "base/text.h"
#include "cli/print/table.h"
#include "platform/platform.h"

enum { CLI_GPU_COLUMNS = 4 };
extern const struct cli_column cli_gpu_columns[CLI_GPU_COLUMNS];
/* Adds the cells of a GPU: its name, model, memory, and who uses it. */
void cli_push_gpu(struct act_strv *cells, const struct platform_gpu *gpu);
/* Returns a GPU for programs, a new reference. */
json_t *cli_gpu_json(const struct platform_gpu *gpu);

#endif
