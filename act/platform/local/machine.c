#include "platform/local/machine.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/path.h"
#include "base/units.h"
#include "base/user.h"
#include "platform/platform_internal.h"
#include "proc/mounts.h"
#include "proc/proc.h"
#include "run/machines.h"

/* ---- resources ---- */

static int count_processors(void)
{
    cpu_set_t *set = CPU_ALLOC(CPU_SETSIZE * 8);
    size_t size = CPU_ALLOC_SIZE(CPU_SETSIZE * 8);
    int n = 1;

    if (set && sched_getaffinity(0, size, set) == 0)
        n = CPU_COUNT_S(size, set);
    CPU_FREE(set);
    return n > 0 ? n : 1;
}

static char *machine_name(void)
{
    struct utsname machine;

    return act_strdup(uname(&machine) == 0 && machine.nodename[0] ? machine.nodename : "localhost");
}

/* Finds the GPUs that a run may have; it names some of them, or none. */
static int find_gpus(struct local_machine *m, const struct act_strv *named, struct gpu_list *out, struct act_error *err)
{
    gpus_find("", out);
    gpus_apply_masks(&m->masks, out);
    return gpus_take_named(named, out, err);
}

int local_machine_given(struct local_machine *m, const struct act_strv *named, int *out, struct act_error *err)
{
    struct gpu_list list;
    int rc = m->has_gpus || named->n ? find_gpus(m, named, &list, err) : 0;
    int given = rc == 0 && named->n ? (int)gpus_given(&list) : m->slots;

    if (m->has_gpus || named->n)
        gpu_list_release(&list);
    *out = given < m->slots ? given : m->slots;
    return rc;
}

/* Returns how many processors the job has in which this process runs, whether it is bound to them or not. */
static int own_processors(const struct local_machine *m)
{
    int n = count_processors();

    return m->job.processors > 0 && m->job.processors < n ? m->job.processors : n;
}

/* ACT_LOCAL_SLOTS takes the place of the processors, and is the most of the GPUs that are used. */
static int apply_slots(struct local_machine *m, struct act_error *err)
{
    enum { SLOTS_MAX = 4096 };
    const char *text = act_env("ACT_LOCAL_SLOTS");
    int64_t slots;

    if (!text)
        return 0;
    if (!act_int_from_text(text, &slots) || slots < 1 || slots > SLOTS_MAX)
        return act_error_set(err, ACT_CONFIG, "ACT_LOCAL_SLOTS is '%s': it must be a number from 1 to %d", text,
                             SLOTS_MAX);
    if (!m->has_gpus || slots < m->slots)
        m->slots = (int)slots;
    return 0;
}

static const char *machine_variable(const char *name)
{
    return act_env(name);
}

int local_machine_find(struct local_machine *out, struct act_error *err)
{
    struct gpu_list list;

    *out = (struct local_machine){.name = machine_name()};
    allocation_read(machine_variable, out->name, &out->job);
    gpu_masks_read(&out->masks);
    gpus_find("", &list);
    gpus_apply_masks(&out->masks, &list);
    out->slots = (int)gpus_given(&list);
    out->has_gpus = out->slots > 0;
    out->why_not_all = gpus_why_not_all(&out->masks, &list);
    gpu_list_release(&list);
    if (!out->has_gpus)
        out->slots = own_processors(out);
    int rc = apply_slots(out, err);
    if (rc < 0)
        local_machine_release(out);
    return rc;
}

void local_machine_release(struct local_machine *m)
{
    gpu_masks_release(&m->masks);
    free(m->name);
    free(m->why_not_all);
    *m = (struct local_machine){0};
}

static const char *run_around_us(const struct local_machine *m)
{
    const char *run = act_env("ACT_RUN_ID");

    return run && run_id_valid(run) && m->has_gpus ? run : NULL;
}

bool local_machine_is_whole(const struct local_machine *m)
{
    return !m->job.system && !run_around_us(m);
}

/* A job's part of a node, and the GPUs of a run that submits another, are machines of their own: who has given them out
 * has done so for all that runs there. */
char *local_machine_slots_dir(const struct local_machine *m, const char *root)
{
    const char *run = run_around_us(m);
    struct act_buf dir = {0};

    act_buf_addf(&dir, "%s/slots/%s", root, m->name);
    if (m->job.system)
        act_buf_addf(&dir, "/job-%s", m->job.job);
    if (run)
        act_buf_addf(&dir, "/run-%s", run);
    return act_buf_steal(&dir);
}

/* ---- the active runs ---- */

struct active_run {
    struct run_spec spec;
    struct run_status status;
};

struct active_runs {
    struct active_run *v;
    size_t n;
};

static void release_active(struct active_runs *runs)
{
    for (size_t i = 0; i < runs->n; i++)
        run_spec_release(&runs->v[i].spec);
    free(runs->v);
}

/* A run removed meanwhile is left out. */
static int load_active(struct platform *p, const struct act_strv *ids, const struct run_status *status,
                       struct active_runs *out, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < ids->n && rc == 0; i++) {
        struct active_run *run = &out->v[out->n];
        if (status[i].state != RUN_QUEUED && status[i].state != RUN_RUNNING)
            continue;
        *run = (struct active_run){.status = status[i]};
        rc = platform_spec(p, ids->v[i], &run->spec, err);
        if (rc == 0)
            out->n++;
        else if (rc == -ACT_NOT_FOUND)
            rc = 0;
    }
    return rc;
}

static int machine_find_active(struct platform *p, struct active_runs *out, struct act_error *err)
{
    ACT_AUTO(act_strv) ids = {0};
    int rc = platform_list(p, &ids, err);
    ACT_AUTOFREE struct run_status *status = act_calloc(ids.n + 1, sizeof(*status));

    *out = (struct active_runs){.v = act_calloc(ids.n + 1, sizeof(*out->v))};
    if (rc == 0)
        rc = platform_status(p, (const char *const *)ids.v, ids.n, status, err);
    if (rc == 0)
        rc = load_active(p, &ids, status, out, err);
    if (rc < 0)
        release_active(out);
    return rc;
}

/* ---- the environment of rank 0 ---- */

/* The variables set by the agent; secrets, which the environment contains too, must not appear in a program's
 * arguments. */
static const char *const shared_variables[] = {
    "ACT_RUN_ID",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "ROCR_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "NODE_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "AZ_BATCH_HOST_LIST",
    "AZ_BATCHAI_JOB_TEMP",
    "AZ_BATCHAI_JOB_MASTER_NODE_IP",
    "AZ_BATCHAI_NUM_GPUS",
    "AZ_BATCHAI_MPI_HOST_FILE",
    "AZ_BATCHAI_STDOUTERR_DIR",
};

/* An environment as the kernel shows it: each variable ends with NUL. */
struct environment {
    char *text;
    size_t len;
};

static const char *environment_get(const struct environment *e, const char *name)
{
    size_t n = strlen(name);

    for (size_t at = 0; at < e->len; at += strlen(e->text + at) + 1)
        if (strncmp(e->text + at, name, n) == 0 && e->text[at + n] == '=')
            return e->text + at + n + 1;
    return NULL;
}

static bool machine_read_environment(const char *pid, struct environment *out)
{
    enum { ENVIRONMENT_MAX = 16 << 20 };
    ACT_AUTOFREE char *path = act_sprintf("/proc/%s/environ", pid);

    *out = (struct environment){0};
    return act_file_read(path, ENVIRONMENT_MAX, &out->text, &out->len, NULL) == 0;
}

/* Finds the command of rank 0 among the processes of this user. Its children inherit the same. */
static bool find_rank0(const char *id, struct environment *out)
{
    bool found = false;
    DIR *d = opendir("/proc");

    for (struct dirent *e; d && !found && (e = readdir(d));) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9' || !machine_read_environment(e->d_name, out))
            continue;
        found = act_streq(environment_get(out, "ACT_RUN_ID"), id) && act_streq(environment_get(out, "RANK"), "0");
        if (!found)
            free(out->text);
    }
    if (d)
        closedir(d);
    return found;
}

/* ---- nodes ---- */

int local_nodes(struct platform *p, const char *id, struct platform_nodes *out, struct act_error *err)
{
    struct run_status status;
    ACT_AUTO(run_spec) spec = {0};
    struct environment rank0;
    int rc = platform_spec(p, id, &spec, err);

    if (rc == 0)
        rc = platform_status(p, &id, 1, &status, err);
    if (rc == 0 && status.started_unix_s) {
        out->v = act_calloc(1, sizeof(*out->v));
        out->n = 1;
        out->v[0] = (struct platform_node){
            .name = machine_name(),
            .state = act_strdup(status.state == RUN_RUNNING ? "running" : "ended"),
            .n_ranks = spec.procs_per_node,
            .gpus = local_machine_of(p)->has_gpus ? spec.gpus_per_node : 0,
        };
        if (out->v[0].gpus > 0 && find_rank0(id, &rank0)) {
            out->v[0].gpu_ids = act_strdup(environment_get(&rank0, "CUDA_VISIBLE_DEVICES"));
            free(rank0.text);
        }
    }
    return rc;
}

/* ---- shell ---- */

static void push_environment(const char *id, const struct run_spec *spec, struct act_strv *argv)
{
    struct environment rank0;

    if (!find_rank0(id, &rank0)) { /* it is still preparing, or has just ended */
        act_strv_pushf(argv, "ACT_RUN_ID=%s", id);
    } else {
        for (size_t i = 0; i < sizeof(shared_variables) / sizeof(shared_variables[0]); i++) {
            const char *value = environment_get(&rank0, shared_variables[i]);
            if (value)
                act_strv_pushf(argv, "%s=%s", shared_variables[i], value);
        }
        free(rank0.text);
    }
    for (size_t i = 0; i < spec->n_env; i++)
        if (spec->env[i].value)
            act_strv_pushf(argv, "%s=%s", spec->env[i].name, spec->env[i].value);
}

/* Returns the code folder of the run on this machine, a new string. */
static char *machine_code_of(const char *dir)
{
    ACT_AUTO(run_machines) machines = {0};
    struct act_error ignored;

    if (run_has_machines(dir) && run_machines_read(dir, &machines, &ignored) == 0)
        return act_sprintf("%s/" RUN_DIR_NODES "/%d/" RUN_DIR_CODE, dir, machines.index);
    return act_path_join(dir, RUN_DIR_CODE);
}

int local_shell(struct platform *p, const char *id, const char *node, const struct act_strv *command,
                struct platform_shell *out, struct act_error *err)
{
    const char *shell = getenv("SHELL");
    ACT_AUTOFREE char *name = machine_name(), *dir = local_run_dir(p, id);
    ACT_AUTOFREE char *code = machine_code_of(dir);
    ACT_AUTO(run_spec) spec = {0};

    if (node && strcmp(node, name) != 0)
        return act_error_set(err, ACT_NOT_FOUND, "run '%s' has the node '%s' only, not '%s'", id, name, node);
    int rc = platform_spec(p, id, &spec, err);
    if (rc == 0) {
        out->sees = OF_RUN;
        act_strv_push(&out->argv, "env");
        if (access(code, F_OK) == 0) /* else it is being prepared */
            act_strv_pushf(&out->argv, "--chdir=%s", code);
        push_environment(id, &spec, &out->argv);
        act_strv_copy(&out->argv, command->v, command->n);
        if (command->n == 0)
            act_strv_push(&out->argv, shell && *shell ? shell : "/bin/sh");
    }
    return rc;
}

int local_agent(struct platform *p, const char *id, const char *node, char **out, struct act_error *err)
{
    (void)p;
    (void)id;
    (void)node;
    return proc_find_sibling("act-node", out, err);
}

/* ---- summary ---- */

/* Counts the slots whose lock files name a run: it has them, as runs here write that when they take them
 * (node/slots.h). */
static int count_held(const char *slots_dir, const char *id)
{
    enum { LINE_MAX_BYTES = 1024 };
    ACT_AUTO(act_strv) names = {0};
    int n = 0;

    act_folder_names(slots_dir, &names);
    for (size_t i = 0; i < names.n; i++) {
        ACT_AUTOFREE char *path = act_path_join(slots_dir, names.v[i]);
        ACT_AUTOFREE char *line = NULL;
        if (act_file_read_regular(path, LINE_MAX_BYTES, &line, NULL, NULL) < 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        n += strcmp(line, id) == 0;
    }
    return n;
}

/* One of several machines may have its slots here while it waits for those of others. */
static void count_run(const struct active_run *run, const char *slots_dir, struct platform_pool *pool)
{
    bool runs = run->status.state == RUN_RUNNING;
    int held = runs ? run->spec.gpus_per_node : count_held(slots_dir, run->spec.id);

    pool->jobs_running += runs;
    pool->jobs_queued += !runs;
    pool->gpus_busy += held;
    pool->gpus_queued += run->spec.gpus_per_node - held;
}

int local_summary(struct platform *p, struct platform_summary *out, struct act_error *err)
{
    const struct local_machine *machine = local_machine_of(p);
    struct platform_pool *pool = &out->total;
    struct active_runs runs;
    int rc = machine_find_active(p, &runs, err);

    if (rc < 0)
        return rc;
    out->has_gpus = machine->has_gpus;
    out->has_load = getloadavg(&out->load, 1) == 1;
    *pool = (struct platform_pool){.name = machine_name(), .is_default = true, .nodes = 1, .gpus = machine->slots};
    for (size_t i = 0; i < runs.n; i++)
        count_run(&runs.v[i], local_slots_of(p), pool);
    /* ACT_LOCAL_SLOTS may be lower than when they started */
    pool->gpus_busy = pool->gpus_busy < pool->gpus ? pool->gpus_busy : pool->gpus;
    pool->gpus_idle = pool->gpus - pool->gpus_busy;
    pool->nodes_busy = pool->jobs_running > 0;
    pool->nodes_idle = !pool->nodes_busy;
    release_active(&runs);
    return 0;
}

/* ---- jobs ---- */

static char *command_text(const struct act_strv *argv)
{
    struct act_buf text = {0};

    for (size_t i = 0; i < argv->n; i++)
        act_buf_addf(&text, "%s%s", i ? " " : "", argv->v[i]);
    return act_buf_steal(&text);
}

int local_jobs(struct platform *p, struct platform_jobs *out, struct act_error *err)
{
    struct active_runs runs;
    int rc = machine_find_active(p, &runs, err);

    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *me = act_user_name(geteuid());
    out->v = act_calloc(runs.n + 1, sizeof(*out->v));
    for (size_t i = 0; i < runs.n; i++) {
        const struct active_run *run = &runs.v[i];
        if (run->status.state != RUN_RUNNING)
            continue;
        out->v[out->n++] = (struct platform_job){
            .id = act_strdup(run->spec.id),
            .user = act_strdup(me),
            .name = command_text(&run->spec.argv),
            .nodes_text = machine_name(),
            .running_s = run->status.started_unix_s ? act_now_unix_s() - run->status.started_unix_s : 0,
            .nodes = 1,
            .gpus = run->spec.on_processors ? -1 : run->spec.gpus_per_node,
        };
    }
    platform_jobs_sort(out);
    release_active(&runs);
    return 0;
}

/* ---- GPUs ---- */

/* How long the driver may take to say who uses them. */
enum { ASK_MS = 5000, JOB_ASK_S = 3 };

void local_gpus(struct platform *p, struct platform_gpus *out)
{
    struct gpu_list list;

    gpus_find("", &list);
    gpus_apply_masks(&local_machine_of(p)->masks, &list);
    out->v = act_calloc(list.n + 1, sizeof(*out->v));
    if (list.n > 0)
        out->note = gpus_answer_text(gpus_ask("", ASK_MS, &list));
    for (; out->n < list.n; out->n++) {
        const struct gpu *gpu = &list.v[out->n];
        out->v[out->n] = (struct platform_gpu){.name = gpu->index >= 0 ? gpus_name(gpu) : act_strdup("a GPU"),
                                               .model = act_strdup(gpu->model),
                                               .users = gpus_users_text(gpu),
                                               .memory = gpu->memory_bytes,
                                               .used = gpu->used_bytes,
                                               .is_given = gpu->is_given};
    }
    gpu_list_release(&list);
}

/* Returns the job that this machine is a part of, with what it has here: "in job 4711 on n3: 2 GPUs, 8 processors, 3 h
 * left". May ask the batch system, for a moment. New string; NULL: there is no such job. */
static char *machine_job_text(const struct local_machine *m)
{
    struct act_buf text = {0};
    char time[ACT_UNIT_TEXT];
    int processors = own_processors(m);

    if (!m->job.system)
        return NULL;
    act_buf_addf(&text, "in job %s on %s: ", m->job.job, m->name);
    if (m->has_gpus)
        act_buf_addf(&text, "%d GPU%s, ", m->slots, m->slots == 1 ? "" : "s");
    act_buf_addf(&text, "%d processor%s", processors, processors == 1 ? "" : "s");
    if (m->job.memory) {
        act_size_to_text((uint64_t)m->job.memory, time);
        act_buf_addf(&text, ", %s memory", time);
    }
    int64_t left = allocation_left_s(&m->job, JOB_ASK_S);
    if (left >= 0) {
        act_duration_to_words(left, time);
        act_buf_addf(&text, ", %s left", time);
    }
    return act_buf_steal(&text);
}

/* ---- doctor ---- */

static void examine_gpu(const struct platform_gpu *gpu, struct platform_findings *findings)
{
    static const double gib = 1 << 30;
    struct act_buf text = {0};

    act_buf_adds(&text, *gpu->model ? gpu->model : "a card");
    if (gpu->used >= 0 && gpu->memory >= 0)
        act_buf_addf(&text, ", %.1f of %.1f GiB in use", (double)gpu->used / gib, (double)gpu->memory / gib);
    if (*gpu->users)
        act_buf_addf(&text, ", by %s", gpu->users);
    if (!gpu->is_given)
        act_buf_adds(&text, ", not given to this process");
    platform_findings_add(findings, true, gpu->name, "%s", text.data);
    act_buf_release(&text);
}

static void examine_gpus(struct platform *p, struct platform_findings *findings)
{
    const struct local_machine *machine = local_machine_of(p);
    struct platform_gpus gpus;

    platform_gpus(p, &gpus);
    for (size_t i = 0; i < gpus.n; i++)
        examine_gpu(&gpus.v[i], findings);
    if (gpus.n && machine->why_not_all)
        platform_findings_add(findings, true, "GPUs", "not all are given: %s", machine->why_not_all);
    if (gpus.n && gpus.note)
        platform_findings_add(findings, false, "GPU driver", "%s", gpus.note);
    platform_gpus_release(&gpus);
}

static void examine_job(struct platform *p, struct platform_findings *findings)
{
    const struct local_machine *machine = local_machine_of(p);
    ACT_AUTOFREE char *text = machine_job_text(machine);
    ACT_AUTOFREE char *what = text ? act_sprintf("job of %s", machine->job.system) : NULL;

    if (text)
        platform_findings_add(findings, true, what, "%s", text);
}

static void examine_mpirun(struct platform_findings *findings)
{
    enum { SECONDS = 10, OUTPUT_MAX = 64 << 10 };
    static const char what[] = "mpirun";
    ACT_AUTOFREE char *path = proc_find_in_path(what);
    ACT_AUTOFREE char *out = NULL;
    char *const argv[] = {path, (char[]){"--version"}, NULL};
    struct act_error err;
    int status = -1;

    if (!path)
        platform_findings_add(findings, false, what,
                              "not found, so runs have one process at most; install Open MPI (Debian: "
                              "openmpi-bin)");
    else if (proc_run(argv, SECONDS, OUTPUT_MAX, &out, &status, &err) < 0)
        platform_findings_add(findings, false, what, "%s; install Open MPI again", act_error_text(&err));
    else if (status != 0)
        platform_findings_add(findings, false, what, "'%s --version' fails; install Open MPI again", path);
    else
        platform_findings_add(findings, true, what, "%.*s, '%s'", (int)strcspn(out, "\n"), out, path);
}

static void machine_examine_agent(struct platform_findings *findings)
{
    static const char what[] = "agent";
    ACT_AUTOFREE char *path = NULL;
    struct act_error err;

    if (proc_find_sibling("act-node", &path, &err) < 0)
        platform_findings_add(findings, false, what, "%s", act_error_text(&err));
    ACT_AUTOFREE char *shown = path ? act_path_clean(path) : NULL;
    if (shown)
        platform_findings_add(findings, true, what, "'%s'", shown);
}

static void examine_runs(struct platform *p, struct platform_findings *findings)
{
    static const char what[] = "folder of the runs";
    ACT_AUTOFREE char *below = local_run_dir(p, "");
    ACT_AUTOFREE char *runs = act_path_clean(below);
    struct act_error err;

    if (act_can_write_in(runs, &err) < 0)
        platform_findings_add(findings, false, what, "%s; ACT_HOME names another place", act_error_text(&err));
    else
        platform_findings_add(findings, true, what, "'%s'%s", runs,
                              access(runs, F_OK) == 0 ? "" : ", made with the first run");
}

void local_examine(struct platform *p, struct platform_findings *findings)
{
    const struct local_machine *machine = local_machine_of(p);

    examine_runs(p, findings);
    machine_examine_agent(findings);
    examine_mpirun(findings);
    examine_job(p, findings);
    examine_gpus(p, findings);
    platform_findings_add(findings, true, "room", "for %d process%s, one for each %s", machine->slots,
                          machine->slots == 1 ? "" : "es", machine->has_gpus ? "GPU" : "processor");
}

void local_examine_mounts(struct platform *p, const char *wanted, struct platform_findings *findings)
{
    static const char what[] = "mounts";
    ACT_AUTOFREE char *program = NULL;
    enum mounts_tool tool;
    struct act_error err;

    (void)p;
    if (mounts_find_tool(wanted, &tool, &program, &err) < 0)
        platform_findings_add(findings, false, what, "%s", act_error_text(&err));
    else
        platform_findings_add(findings, true, what, "by '%s'", program);
}
