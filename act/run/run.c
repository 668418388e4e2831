/* run.c - states, ids, masks and the GPU arithmetic. run.json is in spec.c, status.json in status.c. */
#include "run/run_internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

const char *const run_state_names[] = {
    [RUN_QUEUED] = "Queued", [RUN_RUNNING] = "Running",   [RUN_COMPLETED] = "Completed",
    [RUN_FAILED] = "Failed", [RUN_CANCELED] = "Canceled", [RUN_UNKNOWN] = "Unknown",
};

const char *const run_folder_mode_names[] = {
    [RUN_FOLDER_RW_MOUNT] = "rw_mount", [RUN_FOLDER_RO_MOUNT] = "ro_mount", [RUN_FOLDER_PATH] = "path",
    [RUN_FOLDER_DOWNLOAD] = "download", [RUN_FOLDER_UPLOAD] = "upload",
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Returns the index of name in the table, or -1 if it is not there. */
static int run_index_of(const char *name, const char *const *table, size_t n)
{
    for (size_t i = 0; name && i < n; i++)
        if (strcmp(name, table[i]) == 0)
            return (int)i;
    return -1;
}

const char *run_state_name(enum run_state state)
{
    return (size_t)state < COUNT_OF(run_state_names) ? run_state_names[state] : run_state_names[RUN_UNKNOWN];
}

enum run_state run_state_from_name(const char *name)
{
    int i = run_index_of(name, run_state_names, COUNT_OF(run_state_names));

    return i < 0 ? RUN_UNKNOWN : (enum run_state)i;
}

const char *run_folder_mode_name(enum run_folder_mode mode)
{
    return run_folder_mode_names[mode];
}

bool run_folder_mode_from_name(const char *name, enum run_folder_mode *out)
{
    int i = run_index_of(name, run_folder_mode_names, COUNT_OF(run_folder_mode_names));

    if (i < 0)
        return false;
    *out = (enum run_folder_mode)i;
    return true;
}

enum { EXPERIMENT_MAX = 100, ID_MAX = 160, TAIL_HEX = 8 };

static bool is_id_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

static char *make_id(const char *experiment, int64_t now_unix_s, const char *tail)
{
    ACT_AUTOFREE char *name = act_strndup(*experiment ? experiment : "run", EXPERIMENT_MAX);

    for (char *c = name; *c; c++)
        if ((unsigned char)*c >= 0x80 || !is_id_char(*c))
            *c = '-';
    if (name[0] == '-') /* an id must never look like an option */
        name[0] = '_';
    return act_sprintf("%s_%lld_%s", name, (long long)now_unix_s, tail);
}

char *run_id_new(const char *experiment, int64_t now_unix_s)
{
    uint8_t random[TAIL_HEX / 2];
    char tail[TAIL_HEX + 1];

    act_random(random, sizeof(random));
    act_hex(random, sizeof(random), tail);
    return make_id(experiment, now_unix_s, tail);
}

enum { ROW_DIGITS = 3, ROW_MASK = 0xfffff };

char *run_id_in_row(const char *experiment, int64_t now_unix_s, uint32_t row, int number)
{
    char tail[2 * TAIL_HEX];

    snprintf(tail, sizeof(tail), "%05x%0*d", row & ROW_MASK, ROW_DIGITS, number % RUN_ROW_MAX);
    return make_id(experiment, now_unix_s, tail);
}

char *run_id_row(const char *id, int *out_number)
{
    size_t len = strlen(id);

    if (!run_id_valid(id) || strspn(id + len - ROW_DIGITS, "0123456789") != ROW_DIGITS)
        return NULL;
    if (out_number)
        *out_number = atoi(id + len - ROW_DIGITS);
    return act_strndup(id, len - ROW_DIGITS);
}

bool run_name_valid(const char *name)
{
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c >= 0x80 || !is_id_char(*c))
            return false;
    return *name && *name != '-' && strlen(name) <= ID_MAX;
}

int run_check_unpacked(uint64_t package_bytes, uint64_t unpacked_bytes, struct act_error *err)
{
    enum { TIMES = 100 }; /* text packs to a fifth, tables of numbers to a twentieth */
    static const uint64_t harmless = UINT64_C(1) << 30;
    char packed[ACT_UNIT_TEXT], unpacked[ACT_UNIT_TEXT];

    if (unpacked_bytes <= harmless || unpacked_bytes / TIMES <= package_bytes)
        return 0;
    act_size_to_text(package_bytes, packed);
    act_size_to_text(unpacked_bytes, unpacked);
    return act_error_set(err, ACT_FAIL,
                         "the package has %s and unpacks to %s, more than %d times as much, on each node: leave out of "
                         "the code what is empty, or make it in the run",
                         packed, unpacked, TIMES);
}

int64_t run_abort_grace_s(const char *text)
{
    enum { USUAL_S = 10, DAY_S = 86400 };
    int64_t seconds;

    return text && act_int_from_text(text, &seconds) && seconds >= 0 && seconds < DAY_S ? seconds : USUAL_S;
}

int64_t run_abort_wait_ms(void)
{
    enum { LEAST_S = 10, MORE_S = 5 };
    int64_t grace_s = run_abort_grace_s(getenv("ACT_ABORT_GRACE"));

    return ((grace_s > LEAST_S ? grace_s : LEAST_S) + MORE_S) * 1000;
}

bool run_id_valid(const char *id)
{
    size_t len = strlen(id), digits = 0;

    if (!run_name_valid(id) || len < TAIL_HEX + 4)
        return false;

    const char *tail = id + len - TAIL_HEX;
    if (!act_is_hex(tail, TAIL_HEX) || tail[-1] != '_')
        return false;
    const char *time_end = tail - 1;
    while (time_end - digits > id && isdigit((unsigned char)time_end[-1 - (ptrdiff_t)digits]))
        digits++;
    return digits > 0 && time_end - digits > id + 1 && time_end[-1 - (ptrdiff_t)digits] == '_';
}

static int not_a_multiple(int64_t num_gpu, int per_node, struct act_error *err)
{
    long long below = num_gpu / per_node * per_node;

    return act_error_set(err, ACT_USAGE,
                         "cannot use %lld GPUs with %d on each node: more than one node must be full; use "
                         "-n %lld or -n %lld",
                         (long long)num_gpu, per_node, below, below + per_node);
}

int run_shape_of(int64_t num_gpu, int gpu_per_node, bool multi_process, struct run_shape *out, struct act_error *err)
{
    enum { NUM_GPU_MAX = 1 << 20 };

    if (num_gpu < 0 || num_gpu > NUM_GPU_MAX)
        return act_error_set(err, ACT_USAGE, "cannot use %lld GPUs: the number must be from 0 to %d",
                             (long long)num_gpu, NUM_GPU_MAX);
    if (gpu_per_node < 1)
        return act_error_set(err, ACT_USAGE, "cannot use %d GPUs on each node: gpu_per_node must be at least 1",
                             gpu_per_node);
    if (num_gpu == 0) {
        *out = (struct run_shape){.nodes = 1, .procs_per_node = 1, .gpus_per_node = 0};
        return 0;
    }
    if (num_gpu > gpu_per_node && num_gpu % gpu_per_node != 0)
        return not_a_multiple(num_gpu, gpu_per_node, err);

    int gpus = num_gpu < gpu_per_node ? (int)num_gpu : gpu_per_node;
    *out = (struct run_shape){
        .nodes = (int)(num_gpu / gpus),
        .procs_per_node = multi_process ? gpus : 1,
        .gpus_per_node = gpus,
    };
    return 0;
}

char *run_rank_log(int rank)
{
    return act_sprintf(RUN_DIR_USER "/std_log_process_%d.txt", rank);
}

/* A row is the part before ".txt", and before the number if there is one. */
struct log_name {
    const char *stem;
    bool numbered;
    bool ends; /* the name only ends with it */
};

static const struct log_name log_names[] = {
    {RUN_DIR_USER "/std_log", false, false},
    {RUN_DIR_USER "/std_log_process_", true, false},
    {"70_driver_log_", true, true},
    {"70_driver_log_rank_", true, true},
    {"70_driver_log-worker-", true, true},
    {"70_driver_log", false, true},
    {"00_stdout", false, true},
    {"ps-0_stdout", false, true},
};

bool run_is_own_folder(const char *name, size_t len)
{
    static const char *const names[] = {RUN_DIR_USER,    RUN_DIR_SYSTEM, RUN_DIR_METRICS, RUN_DIR_ATTEMPTS,
                                        RUN_DIR_OUTPUTS, "logs",         "azureml-logs"};

    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
            return true;
    return false;
}

/* Returns the rank in the first len bytes of name, or -1. */
static int match_log(const struct log_name *row, const char *name, size_t len)
{
    enum { DIGITS_MAX = 8 };
    size_t stem = strlen(row->stem), digits = 0;

    while (row->numbered && digits < len && isdigit((unsigned char)name[len - digits - 1]))
        digits++;
    size_t rest = len - digits;
    if ((row->numbered && digits == 0) || digits > DIGITS_MAX || rest < stem || (rest > stem && !row->ends) ||
        memcmp(name + rest - stem, row->stem, stem) != 0)
        return -1;
    return digits ? atoi(name + rest) : 0;
}

int run_log_rank(const char *name, int *out_choice)
{
    static const char extension[] = ".txt";
    int rank = -1;

    for (size_t i = 0; act_ends_with(name, extension) && i < COUNT_OF(log_names) && rank < 0; i++) {
        rank = match_log(&log_names[i], name, strlen(name) - strlen(extension));
        if (rank >= 0 && out_choice)
            *out_choice = (int)i;
    }
    return rank;
}
