/* words.c - what sbatch is told of a run: the settings that cannot be right, the options, the script. */
#include <string.h>

#include "base/path.h"
#include "platform/slurm/slurm_internal.h"

enum { SIGNAL_MAX_S = 65535 }; /* sbatch(1), --signal */

/* The options that ACT gives itself: others of these would break what it relies on. */
static const char *const own_options[] = {"--job-name", "-J",        "--output",         "-o",       "--chdir",
                                          "-D",         "--comment", "--wrap",           "--wait",   "--test-only",
                                          "--parsable", "-W",        "--open-mode",      "--signal", "--export-file",
                                          "--nodes",    "-N",        "--ntasks-per-node"};

static bool is_option(const char *word, const char *option)
{
    size_t n = strlen(option);

    if (strncmp(word, option, n) != 0)
        return false;
    return option[1] != '-' || word[n] == '\0' || word[n] == '='; /* "-Jname", but not "--wait-all-nodes" */
}

static int slurm_words_check_options(const struct slurm *s, struct act_error *err)
{
    for (size_t i = 0; i < s->config.sbatch_options.n; i++)
        for (size_t k = 0; k < sizeof(own_options) / sizeof(own_options[0]); k++)
            if (is_option(s->config.sbatch_options.v[i], own_options[k]))
                return act_error_set(err, ACT_CONFIG,
                                     "slurm.sbatch_options holds '%s': ACT gives %s itself; take it out",
                                     s->config.sbatch_options.v[i], own_options[k]);
    return 0;
}

static int check_container(const struct slurm *s, struct act_error *err)
{
    const char *container = s->config.container;

    if (s->image && !container)
        return act_error_set(
            err, ACT_CONFIG,
            "docker.image is '%s', and slurm.container does not say what runs it: set it to apptainer, "
            "pyxis or none",
            s->image);
    if (act_streq(container, "pyxis") && s->image && !act_streq(s->config.launcher, "srun"))
        return act_error_set(err, ACT_CONFIG,
                             "slurm.container is pyxis, which is a part of srun: set slurm.launcher to srun, or use "
                             "apptainer");
    if (container && !act_streq(container, "none") && !s->image)
        return act_error_set(err, ACT_CONFIG, "slurm.container is '%s', and there is no docker.image for it to run",
                             container);
    return 0;
}

/* Refuses to wait for other runs where Slurm would not. */
static int slurm_check_needs(const struct slurm *s, const struct run_spec *spec, struct act_error *err)
{
    const char *others = slurm_site_option(s, "--dependency", "-d");

    if (spec->needs.n && s->config.here)
        return act_error_set(err, ACT_USAGE, "a step of the job that you are in begins at once: it waits for no run");
    if (spec->needs.n && others && strchr(others, '?'))
        return act_error_set(err, ACT_USAGE,
                             "'slurm.sbatch_options' has the dependency '%s', of which any is enough: no run can be "
                             "added to it",
                             others);
    return 0;
}

int slurm_check_settings(struct platform *p, const struct run_spec *spec, struct act_error *err)
{
    const struct slurm *s = slurm_of(p);

    if (spec->argv.n == 0)
        return act_error_set(err, ACT_USAGE, "there is no command to run");
    if (s->config.mpi && !act_streq(s->config.launcher, "srun"))
        return act_error_set(err, ACT_CONFIG,
                             "slurm.mpi is '%s', which is an option of srun: set slurm.launcher to srun",
                             s->config.mpi);
    if (s->config.warn_seconds > SIGNAL_MAX_S)
        return act_error_set(err, ACT_CONFIG, "slurm.warn_seconds is %lld: Slurm takes at most %d",
                             (long long)s->config.warn_seconds, SIGNAL_MAX_S);
    int rc = check_container(s, err);
    if (rc == 0)
        rc = slurm_words_check_options(s, err);
    if (rc == 0)
        rc = slurm_check_needs(s, spec, err);
    if (rc == 0)
        rc = platform_check_shares(spec, "the nodes of a Slurm cluster", err);
    return rc;
}

int slurm_check(struct platform *p, const struct run_spec *spec, struct act_error *err)
{
    struct slurm *s = slurm_of(p);

    return (s->config.here ? slurm_here_check : slurm_check_start)(s, spec, err);
}

static void push_option(struct act_strv *out, const char *option, const char *value)
{
    if (value && *value)
        act_strv_pushf(out, "%s=%s", option, value);
}

/* Adds the nodes not to use: those that the user excludes, and those that have failed lately. */
static void push_excluded(const struct slurm *s, const struct run_spec *spec, struct act_strv *out)
{
    ACT_AUTO(act_buf) list = {0};

    if (s->config.exclude)
        act_buf_adds(&list, s->config.exclude);
    for (size_t i = 0; spec && i < spec->avoid.n; i++)
        act_buf_addf(&list, "%s%s", list.len ? "," : "", spec->avoid.v[i]);
    push_option(out, "--exclude", list.data);
}

/* Slurm itself begins a job again only after these. */
static bool is_requeued(const struct slurm *s, const struct run_spec *spec)
{
    return s->preemption_allowed || (spec->retry_times && (act_strv_has(&spec->retry_on, "node_failure") ||
                                                           act_strv_has(&spec->retry_on, "preempted")));
}

void slurm_push_gpus(const struct slurm *s, int per_node, struct act_strv *out)
{
    if (per_node <= 0 || !slurm_has_gpus(s))
        return;
    if (s->config.gres)
        act_strv_pushf(out, "--gres=%s:%d", s->config.gres, per_node);
    else
        act_strv_pushf(out, "--gpus-per-node=%d", per_node);
}

/* The name of a job, and where its output goes. */
struct form {
    const char *name, *run_dir;
    const char *task; /* the rest of the name of a task's folder, for sbatch to fill in */
    const char *cwd;
    const char *after; /* the jobs that must have ended before, "7:8_3"; NULL: none */
};

/* sbatch expands "%j" and the like in the name of the output. */
static void push_output(const struct form *form, struct act_strv *out)
{
    struct act_buf b = {0};

    act_buf_adds(&b, "--output=");
    for (const char *c = form->run_dir; *c; c++)
        act_buf_adds(&b, *c == '%' ? "%%" : (char[2]){*c, '\0'});
    act_buf_addf(&b, "%s/" RUN_FILE_SLURM, form->task);
    act_strv_take(out, act_buf_steal(&b));
}

void slurm_push_places(const struct slurm *s, const struct run_spec *spec, struct act_strv *out)
{
    const struct slurm_keys *c = &s->config;

    push_option(out, "--partition", c->partition);
    push_option(out, "--account", c->account);
    push_option(out, "--qos", c->qos);
    push_option(out, "--constraint", c->constraint);
    push_option(out, "--reservation", c->reservation);
    push_excluded(s, spec, out);
    push_option(out, "--nodelist", c->nodelist);
}

const char *slurm_site_option(const struct slurm *s, const char *name, const char *letter)
{
    const struct act_strv *o = &s->config.sbatch_options;
    size_t len = strlen(name);

    for (size_t i = 0; i < o->n; i++) {
        if (act_starts_with(o->v[i], name) && o->v[i][len] == '=')
            return o->v[i] + len + 1;
        if (strcmp(o->v[i], name) == 0 || strcmp(o->v[i], letter) == 0)
            return i + 1 < o->n ? o->v[i + 1] : NULL;
        if (act_starts_with(o->v[i], letter))
            return o->v[i] + strlen(letter);
    }
    return NULL;
}

/* Adds the jobs to those that sbatch_options have it wait for, as sbatch takes the last such option alone. To a list of
 * which any is enough, separated by '?', nothing can be added. */
static void push_after(const struct slurm *s, const struct run_spec *spec, const char *after, struct act_strv *out)
{
    const char *others = slurm_site_option(s, "--dependency", "-d");

    if (!after || (others && strchr(others, '?')))
        return;
    act_strv_pushf(out, "--dependency=%s%s%s", others ? others : "", others ? "," : "", after);
    if (spec->needs.n)
        act_strv_push(out, "--kill-on-invalid-dep=yes");
}

/* Puts the options in their order, of which the last one counts: what this run says, a job file's time too, beats the
 * options of the cluster file. */
static void push_words(const struct slurm *s, const struct run_spec *spec, const struct form *form,
                       struct act_strv *out)
{
    const struct slurm_keys *c = &s->config;

    act_strv_push(out, "sbatch");
    act_strv_push(out, "--parsable");
    act_strv_pushf(out, "--job-name=%s", form->name);
    act_strv_pushf(out, "--comment=act:%s", form->name);
    act_strv_pushf(out, "--nodes=%d", spec->nodes);
    act_strv_pushf(out, "--ntasks-per-node=%d", run_spec_processes(spec));
    slurm_push_gpus(s, spec->gpus_per_node, out);
    push_output(form, out);
    act_strv_push(out, "--open-mode=append");
    if (c->warn_seconds > 0)
        act_strv_pushf(out, "--signal=B:USR1@%lld", (long long)c->warn_seconds);
    act_strv_push(out, is_requeued(s, spec) ? "--requeue" : "--no-requeue");
    act_strv_pushf(out, "--chdir=%s", form->cwd);
    if (!s->options_are_said)
        act_strv_copy(out, c->sbatch_options.v, c->sbatch_options.n);
    push_option(out, "--time", c->time);
    slurm_push_places(s, spec, out);
    if (s->options_are_said)
        act_strv_copy(out, c->sbatch_options.v, c->sbatch_options.n);
    push_after(s, spec, form->after, out);
}

void slurm_sbatch_words(const struct slurm *s, const struct run_spec *spec, const char *run_dir, const char *after,
                        struct act_strv *out)
{
    const struct form form = {.name = spec->id, .run_dir = run_dir, .task = "", .cwd = run_dir, .after = after};

    push_words(s, spec, &form, out);
    act_strv_push(out, "/dev/stdin");
}

void slurm_test_words(const struct slurm *s, const struct run_spec *spec, struct act_strv *out)
{
    push_words(s, spec, &(struct form){.name = "act", .run_dir = "/", .task = "", .cwd = "/"}, out);
    act_strv_push(out, "--test-only");
    act_strv_push(out, "/dev/stdin");
}

void slurm_array_words(const struct slurm *s, const struct run_spec *spec, const char *runs_dir,
                       const struct slurm_array *array, const char *after, struct act_strv *out)
{
    ACT_AUTOFREE char *row_dir = act_path_join(runs_dir, array->row);
    const struct form form = {.name = array->row, .run_dir = row_dir, .task = "%3a", .cwd = runs_dir, .after = after};

    push_words(s, spec, &form, out);
    if (array->most > 0)
        act_strv_pushf(out, "--array=%d-%d%%%d", array->first, array->last, array->most);
    else
        act_strv_pushf(out, "--array=%d-%d", array->first, array->last);
    act_strv_push(out, "/dev/stdin");
}

/* Returns the script of a job, a new string. more: the rest of the name of the run's folder, and what is done before
 * the agent begins. Sites may submit with --export=NONE: without the second line, the agent's processes would not find
 * their programs. */
static char *slurm_words_script_of(const char *agent, const char *dir, const char *more)
{
    struct act_buf b = {0};

    act_buf_adds(&b, "#!/bin/bash\nexport SLURM_EXPORT_ENV=ALL\nrun=");
    act_buf_add_quoted(&b, dir);
    act_buf_addf(&b, "%s\nexec ", more);
    act_buf_add_quoted(&b, agent);
    act_buf_adds(&b, " supervise --slurm \"$run\"\n");
    return act_buf_steal(&b);
}

char *slurm_array_script(const char *agent, const char *runs_dir, const char *row)
{
    ACT_AUTOFREE char *row_dir = act_path_join(runs_dir, row);

    return slurm_words_script_of(agent, row_dir, "$(printf %03d \"$SLURM_ARRAY_TASK_ID\")\ncd -- \"$run\" || exit");
}

char *slurm_job_script(const char *agent, const char *run_dir)
{
    return slurm_words_script_of(agent, run_dir, "");
}

char *slurm_job_text(const struct slurm *s, int64_t job)
{
    const char *array = slurm_site_option(s, "--array", "-a");

    return array ? act_sprintf("%lld_[%s]", (long long)job, array) : act_sprintf("%lld", (long long)job);
}

char *slurm_task_text(int64_t job, int64_t task)
{
    return task < 0 ? act_sprintf("%lld", (long long)job) : act_sprintf("%lld_%lld", (long long)job, (long long)task);
}
