#include "node/job.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/units.h"
#include "node/launcher.h"
#include "proc/proc.h"

enum { OUTPUT_MAX = 16 * 1024 * 1024, ASK_S = 5, STEP_S = 60, KILL_WAIT_S = 30, PART_MAX = 64 * 1024 };

/* Returns the output of a Slurm program; NULL: it failed. New string. */
static char *ask_slurm(const char *const *argv, int timeout_s)
{
    ACT_AUTO(act_strv) words = {0};
    struct act_error err = {0};
    char *text = NULL;
    int status = 0;

    act_strv_add(&words, argv);
    int rc = proc_run(words.v, timeout_s, OUTPUT_MAX, &text, &status, &err);
    if (rc < 0)
        node_say("%s", act_error_text(&err));
    else if (status != 0)
        node_say("'%s %s' failed", argv[0], argv[1]);
    if (rc == 0 && status == 0)
        return text;
    free(text);
    return NULL;
}

static char *show_job(const struct job *job, int timeout_s)
{
    return ask_slurm((const char *const[]){"scontrol", "show", "job", job->id, NULL}, timeout_s);
}

/* ---- the job ---- */

static void job_add_lines(const char *text, struct act_strv *out)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        if (len > 0)
            act_strv_take(out, act_strndup(text, len));
        text += len;
        text += *text == '\n';
    }
}

int job_open(struct job *job, const struct node *node, bool within, struct act_error *err)
{
    const char *id = getenv("SLURM_JOB_ID"), *array = getenv("SLURM_ARRAY_JOB_ID");
    const char *task = getenv("SLURM_ARRAY_TASK_ID"), *step = getenv("SLURM_STEP_ID");
    const char *restarts = within ? NULL : getenv("SLURM_RESTART_COUNT");
    ACT_AUTOFREE char *output = node_path(node, RUN_FILE_SLURM);
    struct stat st;
    int64_t n;

    *job = (struct job){0};
    if (!id || (within && !step))
        return act_error_set(err, ACT_USAGE, "this is not a Slurm job: %s is not set",
                             id ? "SLURM_STEP_ID" : "SLURM_JOB_ID");
    /* the last task has the number of the whole array, which scontrol and scancel take for all of it */
    job->id = array && task ? act_sprintf("%s_%s", array, task) : act_strdup(id);
    job->step = within ? act_sprintf("%s.%s", id, step) : NULL;
    job->starts = restarts && act_int_from_text(restarts, &n) && n > 0 && n < INT_MAX ? (int)n + 1 : 1;
    job->output_from = stat(output, &st) == 0 ? st.st_size : 0;
    return 0;
}

static void job_set_number(const char *name, int n)
{
    ACT_AUTOFREE char *text = act_sprintf("%d", n);

    setenv(name, text, 1);
}

/* Says in the environment what a job of the run alone would say. Steps share the job's processors and GPUs, with the
 * shell in which the run was submitted, too. */
static void narrow_job(struct job *job, const struct run_spec *spec)
{
    ACT_AUTOFREE char *tasks = act_sprintf("%d(x%d)", spec->procs_per_node, spec->nodes);
    ACT_AUTO(act_buf) list = {0};

    while (job->hosts.n > (size_t)spec->nodes)
        free(job->hosts.v[--job->hosts.n]);
    for (size_t i = 0; i < job->hosts.n; i++)
        act_buf_addf(&list, "%s%s", i ? "," : "", job->hosts.v[i]);
    setenv("SLURM_JOB_NODELIST", list.data ? list.data : "", 1);
    setenv("SLURM_NODELIST", list.data ? list.data : "", 1);
    job_set_number("SLURM_JOB_NUM_NODES", spec->nodes);
    job_set_number("SLURM_NNODES", spec->nodes);
    job_set_number("SLURM_NTASKS", spec->nodes * spec->procs_per_node);
    job_set_number("SLURM_NPROCS", spec->nodes * spec->procs_per_node);
    setenv("SLURM_TASKS_PER_NODE", tasks, 1);
    setenv("SLURM_OVERLAP", "1", 1);
    setenv("SLURM_OVERCOMMIT", "1", 1);
}

/* Returns the nodes of the job as Slurm lists them, "n[1-2]"; NULL: not known. To a step, srun says its own nodes
 * alone. New string. */
static char *job_node_list(const struct job *job)
{
    const char *list = getenv("SLURM_JOB_NODELIST");

    if (!job->step)
        return list ? act_strdup(list) : NULL;
    char *text = ask_slurm((const char *const[]){"squeue", "--noheader", "--jobs", job->id, "-o", "%N", NULL}, STEP_S);
    if (text)
        text[strcspn(text, "\n")] = '\0';
    return text;
}

int job_find_hosts(struct job *job, const struct node *node, struct act_error *err)
{
    ACT_AUTOFREE char *list = job_node_list(job);
    ACT_AUTOFREE char *names = NULL;

    if (!list)
        return act_error_set(err, ACT_FAIL, "cannot find out the nodes of job %s", job->id);
    names = ask_slurm((const char *const[]){"scontrol", "show", "hostnames", list, NULL}, STEP_S);
    if (!names)
        return act_error_set(err, ACT_FAIL, "cannot find out the nodes '%s': 'scontrol show hostnames' failed", list);
    job_add_lines(names, &job->hosts);
    if (job->step)
        narrow_job(job, &node->spec);
    if ((int)job->hosts.n != node->spec.nodes)
        return act_error_set(err, ACT_FAIL, "the run needs %d nodes, and job %s has %zu", node->spec.nodes, job->id,
                             job->hosts.n);
    return 0;
}

void job_release(struct job *job)
{
    act_strv_release(&job->hosts);
    act_strv_release(&job->failed);
    free(job->id);
    free(job->step);
    *job = (struct job){0};
}

/* ---- why it ends ---- */

/* Finds the value of Key=Value, up to a blank. False: it is missing. */
static bool get_value(const char *text, const char *key, char *out, size_t size)
{
    size_t len = strlen(key);

    for (const char *at = text; (at = strstr(at, key)); at += len) {
        if ((at != text && !strchr(" \n", at[-1])) || at[len] != '=')
            continue;
        size_t n = strcspn(at + len + 1, " \n");
        if (n >= size)
            return false;
        memcpy(out, at + len + 1, n);
        out[n] = '\0';
        return true;
    }
    return false;
}

enum job_end job_parse_end(const char *show_job, int starts)
{
    char state[64] = "", reason[64] = "", restarts[32] = "";
    int64_t n = 0;

    get_value(show_job, "JobState", state, sizeof(state));
    get_value(show_job, "Reason", reason, sizeof(reason));
    if (get_value(show_job, "Restarts", restarts, sizeof(restarts)) && act_int_from_text(restarts, &n) && n >= starts)
        return JOB_REQUEUED; /* it counts the next start already */
    if (strcmp(reason, "TimeLimit") == 0 || strcmp(state, "TIMEOUT") == 0)
        return JOB_TIME_LIMIT;
    if (strcmp(reason, "NodeDown") == 0 || strcmp(state, "NODE_FAIL") == 0)
        return JOB_NODE_FAILED;
    return strcmp(state, "PREEMPTED") == 0 ? JOB_PREEMPTED : JOB_CANCELLED;
}

int64_t job_parse_kill_wait(const char *show_config)
{
    const char *line = strstr(show_config, "KillWait");
    enum { MOST_S = 65533 }; /* slurm.conf(5) */
    char *end;

    line = line ? strchr(line, '=') : NULL;
    if (!line)
        return -1;
    long value = strtol(line + 1, &end, 10);
    return end == line + 1 || value < 0 || value > MOST_S ? -1 : value;
}

/* Reads the beginning of a log of the run from some byte on, with a 0 at its end; nothing if there is no such log. */
static void job_read_part(const struct node *node, const char *log, off_t from, char *text, size_t size)
{
    ACT_AUTOFREE char *path = node_path(node, log);
    ACT_AUTOCLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : act_pread_all(fd, text, size - 1, from);

    text[n > 0 ? n : 0] = '\0';
}

/* While the job is being ended, its state hides the reason; Slurm's messages in its output give it. */
static bool output_says(const struct job *job, const struct node *node, const char *words)
{
    char text[PART_MAX];

    job_read_part(node, RUN_FILE_SLURM, job->output_from, text, sizeof(text));
    return strstr(text, words);
}

void job_parse_failed(const char *said, struct act_strv *out)
{
    static const char words[] = "Node failure on ";

    for (const char *at = said; (at = strstr(at, words));) {
        at += sizeof(words) - 1;
        ACT_AUTOFREE char *nodes = act_strndup(at, strcspn(at, " \n"));
        if (*nodes && !act_strv_has(out, nodes))
            act_strv_push(out, nodes);
    }
}

void job_parse_down(const char *sinfo, struct act_strv *out)
{
    static const char *const states[] = {"down", "fail", "powered_down", "powering_down", "reboot"};

    for (const char *line = sinfo; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t name = strcspn(line, " \n"), len = strcspn(line, "\n");
        const char *state = line + name + (line[name] == ' ');
        bool down = len > name && memchr(state, '*', len - name); /* it does not answer */
        for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
            down = down || act_starts_with(state, states[i]);
        ACT_AUTOFREE char *node = act_strndup(line, name);
        if (down && !act_strv_has(out, node))
            act_strv_push(out, node);
    }
}

void job_find_down(const struct act_strv *hosts, struct act_strv *out)
{
    ACT_AUTOFREE char *list = node_list_text(hosts, ",");
    const char *const argv[] = {"sinfo", "--noheader", "--Node", "--nodes", list, "--format", "%N %T", NULL};
    ACT_AUTOFREE char *text = hosts->n ? ask_slurm(argv, ASK_S) : NULL;
    if (text)
        job_parse_down(text, out);
}

void job_say_failed(const struct act_strv *failed, char *out, size_t size)
{
    ACT_AUTOFREE char *more = failed->n > 1 ? act_sprintf(" and %zu more", failed->n - 1) : act_strdup("");

    if (failed->n > 0)
        snprintf(out, size, "node '%.64s'%s of it failed (NODE_FAIL)", failed->v[0], more);
    else
        snprintf(out, size, "a node of it failed (NODE_FAIL)");
}

static void job_ask_lines(const char *const *argv, struct act_strv *out)
{
    ACT_AUTOFREE char *text = ask_slurm(argv, STEP_S);

    if (text)
        job_add_lines(text, out);
}

/* Every srun of the job names the nodes that it loses. They may be back already when sinfo is asked. */
static void find_named(struct job *job, const struct node *node)
{
    ACT_AUTOFREE char *launcher = act_sprintf(RUN_DIR_SYSTEM "/%s.txt", launcher_name(node));
    ACT_AUTO(act_strv) lists = {0};
    char text[PART_MAX];

    job_read_part(node, RUN_FILE_SLURM, job->output_from, text, sizeof(text));
    job_parse_failed(text, &lists);
    job_read_part(node, launcher, 0, text, sizeof(text));
    job_parse_failed(text, &lists);
    for (size_t i = 0; i < lists.n; i++)
        job_ask_lines((const char *const[]){"scontrol", "show", "hostnames", lists.v[i], NULL}, &job->failed);
}

/* Slurm's state does not tell: a job that is queued again after a failed node is one that is requeued. */
static void find_failed(struct job *job, const struct node *node)
{
    job->node_failed = job->end == JOB_NODE_FAILED || output_says(job, node, "DUE TO NODE FAILURE");
    if (!job->node_failed)
        return;
    if (job->end == JOB_CANCELLED)
        job->end = JOB_NODE_FAILED;
    find_named(job, node);
    if (job->failed.n == 0)
        job_find_down(&job->hosts, &job->failed);
    job_say_failed(&job->failed, job->failed_text, sizeof(job->failed_text));
}

bool job_is_gone(const char *id)
{
    bool is_step = strchr(id, '.') != NULL;
    ACT_AUTOFREE char *text = ask_slurm(
        (const char *const[]){"squeue", "--noheader", "--me", "--array", "-o%i", is_step ? "--steps" : NULL, NULL},
        ASK_S);
    ACT_AUTO(act_strv) there = {0};

    if (text)
        job_add_lines(text, &there);
    return text && !act_strv_has(&there, id);
}

bool job_is_requeued(const struct job *job)
{
    ACT_AUTOFREE char *show = show_job(job, ASK_S);
    char requeue[8] = "";

    return show && get_value(show, "Requeue", requeue, sizeof(requeue)) && strcmp(requeue, "1") == 0;
}

void job_find_end(struct job *job, const struct node *node)
{
    ACT_AUTOFREE char *config = ask_slurm((const char *const[]){"scontrol", "show", "config", NULL}, ASK_S);
    ACT_AUTOFREE char *show = show_job(job, ASK_S);
    int64_t wait_s = config ? job_parse_kill_wait(config) : -1;

    job->kill_wait_ms = (wait_s < 0 ? KILL_WAIT_S : wait_s) * 1000;
    job->end = show ? job_parse_end(show, job->starts) : JOB_CANCELLED;
    job->preempted = job->end == JOB_PREEMPTED || output_says(job, node, "DUE TO PREEMPTION");
    if (job->end == JOB_CANCELLED && job->preempted)
        job->end = JOB_PREEMPTED;
    find_failed(job, node);
}

const char *job_end_text(const struct job *job)
{
    static const char *const texts[] = {[JOB_TIME_LIMIT] = "time limit reached",
                                        [JOB_PREEMPTED] = "preempted",
                                        [JOB_REQUEUED] = "requeued by Slurm or an administrator",
                                        [JOB_NODE_FAILED] = "a node of it failed (NODE_FAIL)",
                                        [JOB_CANCELLED] = "canceled by Slurm or an administrator"};

    if (job->failed_text[0])
        return job->failed_text;
    return texts[job->preempted ? JOB_PREEMPTED : job->end];
}

/* ---- steps of the job ---- */

/* Runs a program once on each of the nodes (separated by commas), alongside what runs there. Returns the output of all;
 * NULL: it failed somewhere. It shares the job's GPUs: srun takes --gpus-per-node from the job's environment, and
 * refuses --gres=none with it. New string. */
static char *run_on_nodes(const char *nodes, int n_nodes, const char *const *argv)
{
    ACT_AUTO(act_strv) words = {0};

    ACT_STRV_PUSH(&words, "srun", "--overlap", "--mem=0", "--immediate=30", "--chdir=/", "--ntasks-per-node=1",
                  "--mpi=none");
    act_strv_pushf(&words, "--nodelist=%s", nodes);
    act_strv_pushf(&words, "--nodes=%d", n_nodes);
    act_strv_pushf(&words, "--ntasks=%d", n_nodes);
    act_strv_add(&words, argv);
    return ask_slurm((const char *const *)words.v, STEP_S);
}

bool job_answers(const char *node)
{
    const char *const argv[] = {"true", NULL};
    ACT_AUTOFREE char *said = run_on_nodes(node, 1, argv);

    return said != NULL;
}

bool job_find_blind(const struct node *node, const char *nodes, int n_nodes, struct act_strv *out_blind)
{
    ACT_AUTOFREE char *spec = node_path(node, RUN_FILE_SPEC);
    const char *const argv[] = {"/bin/sh", "-c", "test -r \"$1\" || echo \"$SLURMD_NODENAME\"", "sh", spec, NULL};
    ACT_AUTOFREE char *blind = run_on_nodes(nodes, n_nodes, argv);

    if (!blind)
        return false;
    job_add_lines(blind, out_blind);
    act_strv_sort(out_blind);
    return true;
}

void job_sweep(const struct node *node, const char *nodes, int n_nodes)
{
    char program[4096] = "";
    const char *const argv[] = {program, "sweep", node->dir, NULL};

    if (readlink("/proc/self/exe", program, sizeof(program) - 1) < 0)
        return;
    node_say("what is left on %s is ended", nodes);
    free(run_on_nodes(nodes, n_nodes, argv));
}

/* ---- again ---- */

/* Reads a list of nodes of "scontrol show job". */
static void get_nodes(const char *show, const char *key, struct act_strv *out)
{
    char list[4096] = "";

    if (get_value(show, key, list, sizeof(list)) && *list && strcmp(list, "(null)") != 0)
        job_ask_lines((const char *const[]){"scontrol", "show", "hostnames", list, NULL}, out);
}

/* Lists the nodes of the job's partition that work, but for those that it excludes already. */
static void get_usable(const char *show, const struct act_strv *excluded, struct act_strv *out)
{
    char partition[256] = "";
    ACT_AUTO(act_strv) all = {0};

    if (!get_value(show, "Partition", partition, sizeof(partition)))
        return;
    job_ask_lines((const char *const[]){"sinfo", "--noheader", "--Node", "--partition", partition, "--states",
                                        "idle,alloc,mix,comp", "--format", "%N", NULL},
                  &all);
    for (size_t i = 0; i < all.n; i++)
        if (!act_strv_has(excluded, all.v[i]) && !act_strv_has(out, all.v[i]))
            act_strv_push(out, all.v[i]);
}

void job_choose_excluded(const struct job *job, const struct node *node, const struct act_strv *nodes,
                         struct act_strv *out, bool *out_short)
{
    ACT_AUTOFREE char *show = show_job(job, STEP_S);
    ACT_AUTO(act_strv) before = {0}, wanted = {0}, usable = {0};

    if (!show)
        return;
    get_nodes(show, "ExcNodeList", &before);
    get_nodes(show, "ReqNodeList", &wanted);
    get_usable(show, &before, &usable);
    size_t left = wanted.n ? 0 : usable.n;
    act_strv_copy(out, before.v, before.n);
    *out_short = false;
    for (size_t i = nodes->n; i-- > 0;) {
        if (act_strv_has(out, nodes->v[i]))
            continue;
        if (left <= (size_t)node->spec.nodes) {
            *out_short = *out_short || i == nodes->n - 1;
            continue;
        }
        left -= act_strv_has(&usable, nodes->v[i]);
        act_strv_push(out, nodes->v[i]);
    }
}

/* Slurm signals everything in the job as soon as the first command has worked. */
int job_requeue(const struct job *job, const struct act_strv *excluded, int64_t pause_s, struct act_error *err)
{
    static const char script[] = "trap '' TERM INT USR1 USR2\n"
                                 "scontrol update JobId=\"$1\" Requeue=1 || exit 1\n"
                                 "scontrol requeue \"$1\" || exit 1\n"
                                 "scontrol update JobId=\"$1\" StartTime=\"now+$2\"\n"
                                 "test -z \"$3\" || scontrol update JobId=\"$1\" ExcNodeList=\"$3\"\n"
                                 "exit 0\n";
    ACT_AUTOFREE char *pause = act_sprintf("%lld", (long long)pause_s);
    ACT_AUTOFREE char *list = node_list_text(excluded, ",");
    const char *const argv[] = {"/bin/sh", "-c", script, "sh", job->id, pause, list, NULL};
    ACT_AUTOFREE char *said = ask_slurm(argv, STEP_S);
    return said ? 0 : act_error_set(err, ACT_FAIL, "Slurm does not put job %s into the queue again", job->id);
}

void job_cancel(const struct job *job)
{
    free(ask_slurm((const char *const[]){"scancel", job->id, NULL}, STEP_S));
}
