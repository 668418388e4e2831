#include "platform/local/allocation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "proc/proc.h"

typedef const char *allocation_get(const char *name);

/* More than any machine has is not believed: the variables come from outside. */
enum { PROCESSORS_MOST = 1 << 16, MIB_MOST = 1 << 26, HOSTFILE_MAX_BYTES = 1 << 20 };

static int64_t allocation_number(allocation_get *get, const char *name, int64_t most)
{
    const char *text = get(name);
    int64_t n;

    return text && act_int_from_text(text, &n) && n > 0 && n <= most ? n : 0;
}

/* Tells whether a text has a name that is neither the beginning nor the end of a longer one. */
static bool has_name(const char *text, const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t n = strlen(name);

    for (const char *at = text; n > 0 && at && (at = strstr(at, name)); at++)
        if ((at == text || !strchr(letters, at[-1])) && (!at[n] || !strchr(letters, at[n])))
            return true;
    return false;
}

/* ---- Slurm */

/* Tells whether this is inside a job of Slurm, on its node. A process of slurmd has SLURMD_NODENAME; else the shell is
 * that of salloc, which may be elsewhere. */
static bool is_of_slurm(allocation_get *get, const char *node)
{
    return get("SLURM_JOB_ID") && (get("SLURMD_NODENAME") || has_name(get("SLURM_JOB_NODELIST"), node));
}

static void read_slurm(allocation_get *get, const char *node, struct allocation *out)
{
    static const int64_t mib = 1 << 20;

    (void)node;
    out->processors = (int)allocation_number(get, "SLURM_CPUS_ON_NODE", PROCESSORS_MOST);
    out->memory = allocation_number(get, "SLURM_MEM_PER_NODE", MIB_MOST) * mib;
    if (!out->memory)
        out->memory = allocation_number(get, "SLURM_MEM_PER_CPU", MIB_MOST) * out->processors * mib;
    out->end_unix_s = allocation_number(get, "SLURM_JOB_END_TIME", INT64_MAX);
}

/* ---- PBS, LSF, Grid Engine, Flux */

/* The tasks of an array have one id, and each its part of a node. Adds the number of the task, if this is one. */
static void allocation_add_task(allocation_get *get, const char *name, const char *open, const char *close,
                                struct allocation *out)
{
    int64_t task = allocation_number(get, name, INT32_MAX);
    size_t len = strlen(out->job);

    if (task)
        snprintf(out->job + len, sizeof(out->job) - len, "%s%lld%s", open, (long long)task, close);
}

static bool is_of_pbs(allocation_get *get, const char *node)
{
    (void)node;
    return get("PBS_JOBID") && get("PBS_ENVIRONMENT");
}

static void read_pbs(allocation_get *get, const char *node, struct allocation *out)
{
    (void)node;
    out->processors = (int)allocation_number(get, "NCPUS", PROCESSORS_MOST);
    if (!out->processors) /* Torque */
        out->processors = (int)allocation_number(get, "PBS_NUM_PPN", PROCESSORS_MOST);
}

static bool is_of_lsf(allocation_get *get, const char *node)
{
    const char *hosts = get("LSB_MCPU_HOSTS") ? get("LSB_MCPU_HOSTS") : get("LSB_HOSTS");

    return get("LSB_JOBID") && (!hosts || has_name(hosts, node));
}

/* LSB_MCPU_HOSTS, "n1 8 n2 4", has each host with its slots; LSB_HOSTS, "n1 n1 n2", a name for each slot. */
static void read_lsf(allocation_get *get, const char *node, struct allocation *out)
{
    bool counted = get("LSB_MCPU_HOSTS") != NULL;
    const char *list = counted ? get("LSB_MCPU_HOSTS") : get("LSB_HOSTS");
    ACT_AUTOFREE char *hosts = act_strdup(list ? list : "");
    char *rest = hosts;

    for (char *host; (host = strsep(&rest, " "));) {
        const char *slots = counted ? strsep(&rest, " ") : "1";
        int64_t n;
        if (slots && has_name(host, node) && act_int_from_text(slots, &n) && n > 0 && n <= PROCESSORS_MOST)
            out->processors += (int)n;
    }
    allocation_add_task(get, "LSB_JOBINDEX", "[", "]", out);
}

static bool is_of_grid_engine(allocation_get *get, const char *node)
{
    (void)node;
    return get("JOB_ID") && get("SGE_TASK_ID");
}

/* Returns the slots that the file PE_HOSTFILE gives this node: a line for each host, "n1 8 queue processors". */
static int grid_engine_slots(allocation_get *get, const char *node)
{
    ACT_AUTOFREE char *text = NULL;
    const char *path = get("PE_HOSTFILE");
    int slots = 0;

    if (!path || act_file_read_regular(path, HOSTFILE_MAX_BYTES, &text, NULL, NULL) < 0)
        return 0;
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        const char *host = strsep(&line, " "), *n_text = strsep(&line, " ");
        int64_t n;
        if (n_text && has_name(host, node) && act_int_from_text(n_text, &n) && n > 0 && n <= PROCESSORS_MOST)
            slots += (int)n;
    }
    return slots;
}

static void read_grid_engine(allocation_get *get, const char *node, struct allocation *out)
{
    bool is_alone = allocation_number(get, "NHOSTS", PROCESSORS_MOST) == 1;

    out->processors = is_alone ? (int)allocation_number(get, "NSLOTS", PROCESSORS_MOST) : grid_engine_slots(get, node);
    allocation_add_task(get, "SGE_TASK_ID", ".", "", out);
}

/* Tells whether this is inside a job of Flux. In the shell of 'flux alloc' and the script of 'flux batch' it is that of
 * the instance around them. */
static bool is_of_flux(allocation_get *get, const char *node)
{
    (void)node;
    return get("FLUX_JOB_ID") || get("FLUX_ENCLOSING_ID");
}

/* It binds its processes to their processors. */
static void read_flux(allocation_get *get, const char *node, struct allocation *out)
{
    (void)node;
    if (!get("FLUX_JOB_ID"))
        snprintf(out->job, sizeof(out->job), "%s", get("FLUX_ENCLOSING_ID"));
}

/* ---- all */

static const struct batch_system {
    const char *name, *id;
    bool (*is_ours)(allocation_get *get, const char *node);
    void (*read)(allocation_get *get, const char *node, struct allocation *out);
    const char *const left[6]; /* prints how much time is left; "%" stands for the job's id. Empty: nothing does */
    const char *before;        /* what stands before the time in that; NULL: nothing */
    int plain_s;               /* what a number alone means there */
    int last_s;                /* the last one of several: "1:30" */
    enum environment_of sees;  /* of this process's environment */
} systems[] = {
    {"Slurm", "SLURM_JOB_ID", is_of_slurm, read_slurm, {"squeue", "-h", "-j", "%", "-o", "%L"}, NULL, 60, 1, OF_SLURM},
    {"PBS", "PBS_JOBID", is_of_pbs, read_pbs, {"qstat", "-f", "%"}, "Resource_List.walltime = ", 1, 1, OF_USER},
    {"LSF", "LSB_JOBID", is_of_lsf, read_lsf, {"bjobs", "-noheader", "-o", "time_left", "%"}, NULL, 60, 60, OF_USER},
    {"Grid Engine", "JOB_ID", is_of_grid_engine, read_grid_engine, {NULL}, NULL, 1, 1, OF_USER},
    {"Flux", "FLUX_JOB_ID", is_of_flux, read_flux, {"flux", "job", "timeleft"}, NULL, 1, 1, OF_USER},
};

static const struct batch_system *system_of(const struct allocation *a)
{
    const struct batch_system *system = systems;

    while (strcmp(system->name, a->system) != 0)
        system++;
    return system;
}

void allocation_read(const char *(*get)(const char *name), const char *node, struct allocation *out)
{
    *out = (struct allocation){0};
    for (size_t i = 0; i < sizeof(systems) / sizeof(systems[0]); i++) {
        if (!systems[i].is_ours(get, node))
            continue;
        out->system = systems[i].name;
        snprintf(out->job, sizeof(out->job), "%s", get(systems[i].id) ? get(systems[i].id) : "");
        systems[i].read(get, node, out);
        return;
    }
}

/* ---- its time */

int64_t allocation_time_s(const char *text, int plain_s, int last_s)
{
    enum { DAY_S = 86400, PARTS = 3 };
    const char *dash = memchr(text, '-', strcspn(text, " \n"));
    int64_t days = 0, sum = 0;
    char *end;
    int n = 0;

    if (dash && dash > text) {
        days = strtoll(text, &end, 10);
        if (end != dash || days < 0 || days > INT32_MAX)
            return -1;
        text = dash + 1;
    }
    for (; n < PARTS; n++) {
        int64_t part = strtoll(text, &end, 10);
        if (end == text || part < 0 || part > INT32_MAX)
            return -1;
        sum = sum * 60 + part;
        text = end;
        if (*text != ':')
            break;
        text++;
    }
    if (*text && !strchr(" \n.", *text))
        return -1;
    return days * DAY_S + sum * (n == 0 ? plain_s : last_s);
}

/* Returns the seconds that are left, less what is used of a walltime. */
static int64_t left_in(const struct batch_system *system, const char *text)
{
    const char *at = system->before ? strstr(text, system->before) : text;
    const char *used = system->before ? strstr(text, "resources_used.walltime = ") : NULL;

    if (!at)
        return -1;
    int64_t whole =
        allocation_time_s(at + (system->before ? strlen(system->before) : 0), system->plain_s, system->last_s);
    int64_t gone =
        used ? allocation_time_s(used + strlen("resources_used.walltime = "), system->plain_s, system->last_s) : 0;
    return whole < 0 || gone < 0 ? -1 : whole > gone ? whole - gone : 0;
}

int64_t allocation_left_s(const struct allocation *a, int limit_s)
{
    enum { MAX_BYTES = 256 * 1024 };
    const struct batch_system *system = system_of(a);
    ACT_AUTO(act_strv) words = {0};
    ACT_AUTO(proc_result) result = {0};
    struct act_error ignored;
    int64_t now = act_now_unix_s();

    if (a->end_unix_s)
        return a->end_unix_s > now ? a->end_unix_s - now : 0;
    for (size_t i = 0; i < sizeof(system->left) / sizeof(system->left[0]) && system->left[i]; i++)
        act_strv_push(&words, strcmp(system->left[i], "%") == 0 ? a->job : system->left[i]);
    if (words.n == 0)
        return -1;
    const struct proc_call call = {.argv = words.v, .sees = system->sees, .timeout_s = limit_s, .max_bytes = MAX_BYTES};
    int rc = proc_call(&call, &result, &ignored);
    return rc < 0 || result.status != 0 ? -1 : left_in(system, result.out);
}
