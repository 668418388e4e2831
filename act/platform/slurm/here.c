/* here.c - a run that is a step of the job in which it is submitted ('a submit --here'): nothing is queued. Its agent
 * is the step, on the first node of the job; it writes down which step it is, and starts the processes as further
 * steps. */
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "base/units.h"
#include "platform/slurm/slurm_internal.h"
#include "proc/proc.h"

/* ---- the job */

static int ask_job(struct slurm *s, const char *id, char **out, struct act_error *err)
{
    const char *const argv[] = {"scontrol", "show", "job", "-d", id, NULL};
    int rc = slurm_run(s, argv, out, err);

    if (rc < 0)
        return act_error_prefix(err, "cannot look at job %s (SLURM_JOB_ID)", id);
    ACT_AUTOFREE char *state = slurm_job_value(*out, "JobState");
    if (state && strcmp(state, "RUNNING") == 0)
        return 0;
    return act_error_set(err, ACT_USAGE, "job %s (SLURM_JOB_ID) is %s: --here is for a shell in a job that runs", id,
                         state ? state : "gone");
}

static int least_gpus(const struct platform_nodes *nodes)
{
    int least = nodes->n ? nodes->v[0].gpus : 0;

    for (size_t i = 0; i < nodes->n; i++)
        least = nodes->v[i].gpus < least ? nodes->v[i].gpus : least;
    return least;
}

static int count_processors_of(const char *text, size_t n_nodes)
{
    ACT_AUTOFREE char *value = slurm_job_value(text, "NumCPUs");
    int64_t all = 0;

    (void)act_int_from_text(value ? value : "", &all);
    return n_nodes && all > 0 && all < INT_MAX ? (int)(all / (int64_t)n_nodes) : 0;
}

/* Finds the job that this process runs in; *out belongs to s. None, or one that does not run: -ACT_USAGE. */
static int here_find_job(struct slurm *s, const struct slurm_here **out, struct act_error *err)
{
    struct slurm_here *here = &s->here;
    const char *id = act_env("SLURM_JOB_ID");
    ACT_AUTOFREE char *text = NULL;

    *out = here;
    if (here->job)
        return 0;
    if (s->config.login)
        return act_error_set(
            err, ACT_CONFIG,
            "--here uses Slurm's programs on this machine, and slurm.login is '%s': use a cluster file "
            "without it",
            s->config.login);
    if (!id || !slurm_job_number(id, NULL))
        return act_error_set(err, ACT_USAGE,
                             "--here is for a shell in a job of Slurm, and SLURM_JOB_ID is not set: 'salloc' or 'srun "
                             "--pty bash' begins one");
    int rc = ask_job(s, id, &text, err);
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *end = slurm_job_value(text, "EndTime");
    int64_t end_unix_s = end ? slurm_time(end) : 0, now = act_now_unix_s();
    slurm_nodes_from_scontrol(text, 1, &here->nodes);
    here->gpus = least_gpus(&here->nodes);
    here->processors = count_processors_of(text, here->nodes.n);
    here->left_s = !end_unix_s ? -1 : end_unix_s > now ? end_unix_s - now : 0;
    here->job = act_strdup(id);
    here->has = act_sprintf("job %s has %zu node%s", id, here->nodes.n, here->nodes.n == 1 ? "" : "s");
    return 0;
}

void slurm_here_release(struct slurm_here *here)
{
    platform_nodes_release(&here->nodes);
    free(here->job);
    free(here->has);
}

int slurm_here_limits(struct slurm *s, struct platform_limits *limits, struct act_error *err)
{
    const struct slurm_here *here;
    int rc = here_find_job(s, &here, err);

    if (rc < 0)
        return rc;
    if (limits->has_gpus && here->gpus == 0)
        return act_error_set(err, ACT_NO_CAPACITY,
                             "job %s has no GPUs, and runs on '%s' get some: begin a job with GPUs, or set slurm.gres "
                             "to none",
                             here->job, here->nodes.n ? here->nodes.v[0].name : "its nodes");
    if (limits->has_gpus) {
        limits->gpu_per_node = here->gpus;
        limits->num_gpu = here->gpus;
    }
    limits->max_nodes = (int)here->nodes.n;
    limits->why_not_all = here->has;
    return 0;
}

/* ---- a run */

/* The job cannot be made longer for a run. */
static void say_end(const struct slurm_here *here, const struct run_spec *spec)
{
    char left[ACT_UNIT_TEXT], asked[ACT_UNIT_TEXT];

    if (here->left_s < 0) {
        act_note("a step of job %s, and ends with it", here->job);
        return;
    }
    act_duration_to_words(here->left_s, left);
    act_duration_to_words(spec->limit_s, asked);
    if (spec->limit_s > here->left_s)
        act_warn("job %s ends in %s, and the run with it: slurm.time is %s", here->job, left, asked);
    else
        act_note("a step of job %s, and ends with it at the latest, in %s", here->job, left);
}

/* Returns how many slots each node of the job has for runs: GPUs, or processors where it has none. */
static int here_slots(const struct slurm *s)
{
    return slurm_has_gpus(s) ? s->here.gpus : s->here.processors;
}

int slurm_here_check(struct slurm *s, const struct run_spec *spec, struct act_error *err)
{
    const struct slurm_here *here;
    int rc = here_find_job(s, &here, err);

    if (rc < 0)
        return rc;
    if (here->nodes.n < (size_t)spec->nodes)
        return act_error_set(err, ACT_NO_CAPACITY, "the run needs %d nodes, and %s", spec->nodes, here->has);
    if (spec->gpus_per_node > here_slots(s))
        return act_error_set(err, ACT_NO_CAPACITY, "the run needs %d %s on each node, and job %s has %d there",
                             spec->gpus_per_node, slurm_has_gpus(s) ? "GPUs" : "processors", here->job, here_slots(s));
    if (!s->here.said)
        say_end(here, spec);
    s->here.said = true;
    return 0;
}

/* The folder in which runs of 'local' in the same job, on that node, look too. New string. */
static char *here_slots_dir(const struct slurm_here *here)
{
    ACT_AUTOFREE char *state = act_state_dir();

    return act_sprintf("%s/slots/%s/job-%s", state, here->nodes.v[0].name, here->job);
}

/* Each step sees all GPUs of the job and overlaps the others, that of the shell too, which may hold all that there is:
 * then Slurm does not count who uses what. So the agent takes its part as on a machine without a scheduler. */
static void slurm_here_words(const struct slurm *s, const struct run_spec *spec, const char *agent, const char *run_dir,
                             struct act_strv *out)
{
    const struct slurm_here *here = &s->here;
    ACT_AUTOFREE char *slots_dir = here_slots_dir(here);

    act_strv_push(out, "srun");
    act_strv_pushf(out, "--jobid=%s", here->job);
    act_strv_push(out, "--overlap");
    act_strv_push(out, "--nodes=1");
    act_strv_push(out, "--ntasks=1");
    act_strv_pushf(out, "--nodelist=%s", here->nodes.v[0].name);
    slurm_push_gpus(s, here->gpus, out);
    act_strv_pushf(out, "--job-name=%s", spec->id);
    act_strv_push(out, "--cpu-bind=none");
    act_strv_push(out, "--mpi=none");
    act_strv_push(out, "--input=none");
    act_strv_pushf(out, "--chdir=%s", run_dir);
    act_strv_push(out, agent);
    act_strv_push(out, "supervise");
    act_strv_push(out, "--slurm");
    act_strv_pushf(out, "--within=job %s of Slurm", here->job);
    act_strv_pushf(out, "--slots-dir=%s", slots_dir);
    act_strv_pushf(out, "--slots=%d", here_slots(s));
    if (slurm_has_gpus(s))
        act_strv_push(out, "--gpus");
    act_strv_pushf(out, "--time-left=%lld", (long long)spec->limit_s);
    act_strv_push(out, run_dir);
}

int slurm_here_start(struct slurm *s, const struct run_spec *spec, const char *agent, const char *run_dir,
                     pid_t *out_srun, struct act_error *err)
{
    ACT_AUTOFREE char *log = act_path_join(run_dir, RUN_FILE_SLURM);
    ACT_AUTO(act_strv) words = {0};

    slurm_here_words(s, spec, agent, run_dir, &words);
    return proc_daemon(words.v, OF_JOB, log, -1, out_srun, err);
}

int slurm_here_refused(const char *run_dir, struct act_error *err)
{
    enum { SAID_MAX_BYTES = 64 * 1024 };
    ACT_AUTOFREE char *log = act_path_join(run_dir, RUN_FILE_SLURM);
    ACT_AUTOFREE char *said = NULL;

    if (act_file_read(log, SAID_MAX_BYTES, &said, NULL, NULL) < 0)
        said = act_strdup("");
    ACT_AUTOFREE char *complaint = slurm_complaint(said);
    return act_error_set(err, ACT_FAIL, "srun: %s", *complaint ? complaint : "it ended, and did not say why");
}
