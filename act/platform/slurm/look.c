/* look.c - the state of runs: one query of their folders, one of Slurm's queue, and one of its accounting if the queue
 * has forgotten a job whose agent could not record its end. */
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "codec/json.h"
#include "platform/slurm/slurm_internal.h"

void slurm_views_release(struct slurm_view *views, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(views[i].nodes);
}

int slurm_write_status(struct slurm *s, const char *id, const struct run_status *status, struct act_error *err)
{
    CODEC_AUTOJSON json_t *json = run_status_to_json(status);
    ACT_AUTOFREE char *line = codec_json_line(json);
    struct site *site;
    int rc = slurm_site(s, &site, err);

    return rc < 0 ? rc : site_write(site, id, RUN_FILE_STATUS, line, NULL, err);
}

/* ---- querying Slurm */

/* The output, and the jobs that point into it. */
struct answer {
    char *text;
    struct slurm_jobs jobs, tasks; /* those of arrays also one by one: each may be a run */
};

static void release_answer(struct answer *a)
{
    slurm_jobs_release(&a->jobs);
    slurm_jobs_release(&a->tasks);
    free(a->text);
}

/* a->text is what it was read from. */
static void sort_answer(struct answer *a)
{
    slurm_jobs_tasks(&a->jobs, &a->tasks);
    slurm_jobs_combine(&a->jobs);
}

static const struct slurm_job *slurm_look_find_in(const struct answer *a, const struct slurm_known *k)
{
    return k->task >= 0 ? slurm_jobs_find_task(&a->tasks, k->job, k->task) : slurm_jobs_find(&a->jobs, k->job);
}

static int ask_queue(struct slurm *s, struct answer *out, struct act_error *err)
{
    const char *const argv[] = {"squeue", "--noheader", "--array",           "--states=all",
                                "--me",   "-O",         slurm_squeue_fields, NULL};
    int rc = slurm_run(s, argv, &out->text, err);

    if (rc == 0) {
        slurm_jobs_from_squeue(out->text, &out->jobs);
        sort_answer(out);
    }
    return rc;
}

/* If accounting is off or does not answer, what the queue and the agents know must suffice. */
static void ask_past(struct slurm *s, const char *job_list, struct answer *out)
{
    static const char delimiter[] = "--delimiter=" SLURM_SEPARATOR;
    const char *const argv[] = {"sacct", "-n", "-X", "-P", delimiter, "-j", job_list, "-o", slurm_sacct_fields, NULL};
    struct act_error err;

    if (s->no_accounting)
        return;
    int rc = slurm_run(s, argv, &out->text, &err);
    if (rc < 0) {
        s->no_accounting = strstr(act_error_text(&err), "disabled"); /* else it may answer next time */
        return;
    }
    slurm_jobs_from_sacct(out->text, &out->jobs);
    sort_answer(out);
}

/* ---- one run among many */

/* Everything known; the arrays have n members. */
struct look {
    struct slurm *s;
    struct site *site;
    const char **ids; /* valid ones */
    size_t n;
    struct site_state *states;
    struct slurm_known *known;
    struct answer queue, past;
    char *steps; /* a line for each that goes on; NULL: not asked */
};

static void release_look(struct look *l)
{
    site_states_release(l->states, l->n);
    free(l->states);
    free(l->known);
    free(l->ids);
    release_answer(&l->queue);
    release_answer(&l->past);
    free(l->steps);
}

static bool is_array_text(const char *job)
{
    return job && strstr(job, "_[");
}

static bool needs_queue(const struct look *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->states[i].there && (!run_state_is_final(l->states[i].status.state) || is_array_text(l->states[i].job)))
            return true;
    return false;
}

/* A job that its submitting client could not record any more. */
static void adopt_job(struct look *l, size_t i)
{
    struct slurm_known *k = &l->known[i];
    const struct slurm_job *task = slurm_jobs_find_run(&l->queue.tasks, l->ids[i]);
    const struct slurm_job *job = task ? task : slurm_jobs_find_name(&l->queue.jobs, l->ids[i]);
    struct act_error ignored;
    bool existed;

    if (!job || run_state_is_final(k->said->state))
        return;
    k->job = job->id;
    k->task = task ? task->task : -1;
    ACT_AUTOFREE char *number = task ? slurm_task_text(job->id, k->task) : slurm_job_text(l->s, job->id);
    ACT_AUTOFREE char *text = run_job_text(number);
    if (site_write(l->site, l->ids[i], RUN_FILE_JOB, text, &existed, &ignored) < 0)
        return; /* the next query does it */
}

static void match_queue(struct look *l)
{
    for (size_t i = 0; i < l->n; i++) {
        if (!l->states[i].there)
            continue;
        if (!l->known[i].job)
            adopt_job(l, i);
        if (l->known[i].job && !l->known[i].is_step)
            l->known[i].queue = slurm_look_find_in(&l->queue, &l->known[i]);
        l->known[i].array_there = l->known[i].task >= 0 && slurm_jobs_find(&l->queue.jobs, l->known[i].job);
    }
}

static void slurm_look_add_job(struct act_buf *list, const struct slurm_known *k)
{
    ACT_AUTOFREE char *job = slurm_task_text(k->job, k->task);

    act_buf_addf(list, "%s%s", list->len ? "," : "", job);
}

static void match_past(struct look *l)
{
    ACT_AUTO(act_buf) list = {0};

    for (size_t i = 0; i < l->n; i++)
        if (l->states[i].there && slurm_needs_past(&l->known[i]))
            slurm_look_add_job(&list, &l->known[i]);
    if (list.len)
        ask_past(l->s, list.data, &l->past);
    for (size_t i = 0; i < l->n; i++)
        if (l->known[i].job && !l->known[i].is_step)
            l->known[i].past = slurm_look_find_in(&l->past, &l->known[i]);
}

/* Agents may have recorded the end of their runs during the query of Slurm. */
static int read_again(struct look *l, struct act_error *err)
{
    const char **ids = act_calloc(l->n, sizeof(*ids));
    size_t *index = act_calloc(l->n, sizeof(*index)), n = 0;
    int rc = 0;

    for (size_t i = 0; i < l->n; i++)
        if (l->states[i].there && slurm_needs_record(&l->known[i])) {
            index[n] = i;
            ids[n++] = l->ids[i];
        }
    ACT_AUTOFREE struct site_state *fresh = act_calloc(n, sizeof(*fresh));
    if (n)
        rc = site_states(l->site, ids, n, fresh, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (fresh[i].there)
            l->states[index[i]].status = fresh[i].status;
    site_states_release(fresh, n);
    free(index);
    free(ids);
    return rc;
}

/* ---- steps */

/* The name of a step is the run: its number is another one in a task of an array. */
static int match_steps(struct look *l, struct act_error *err)
{
    const char *const argv[] = {"squeue", "--noheader", "--steps", "--me", "-o", "%j", NULL};
    int rc = 0;

    for (size_t i = 0; i < l->n && rc == 0; i++) {
        if (!l->known[i].is_step || run_state_is_final(l->states[i].status.state))
            continue;
        if (!l->steps)
            rc = slurm_run(l->s, argv, &l->steps, err);
        l->known[i].step_there = rc == 0 && platform_has_line(l->steps, l->ids[i]);
    }
    return rc;
}

/* Asks for the folders and for the queue at the same time. The folders are looked at first: of a job that they name,
 * the queue knows. */
static void look_ahead(struct look *l)
{
    struct answer queue = {0};
    struct act_error ignored;

    if (!site_ahead(l->site))
        return;
    (void)!site_states(l->site, l->ids, l->n, l->states, &ignored); /* they are not known yet */
    (void)!ask_queue(l->s, &queue, &ignored);
    site_ahead_end(l->site);
}

static int slurm_look_gather(struct look *l, struct act_error *err)
{
    int rc = slurm_site(l->s, &l->site, err);

    if (rc == 0) {
        look_ahead(l);
        rc = site_states(l->site, l->ids, l->n, l->states, err);
    }
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < l->n; i++)
        l->known[i] = (struct slurm_known){.id = l->ids[i],
                                           .job = slurm_job_number(l->states[i].job, NULL),
                                           .task = l->states[i].job ? slurm_task(l->states[i].job) : -1,
                                           .is_step = l->states[i].job && slurm_step(l->states[i].job) >= 0,
                                           .said = &l->states[i].status,
                                           .now_unix_s = act_now_unix_s()};
    if (!needs_queue(l)) {
        site_ahead_drop(l->site);
        return 0;
    }
    rc = ask_queue(l->s, &l->queue, err);
    if (rc == 0)
        rc = match_steps(l, err);
    if (rc < 0)
        return rc;
    match_queue(l);
    match_past(l);
    return read_again(l, err);
}

/* Slurm forgets its jobs within minutes: the end of a job whose agent could not record it is recorded here. If that
 * fails it is no error: the next query tries again. */
static void slurm_look_keep(struct look *l, size_t i, const struct run_status *status)
{
    struct act_error ignored;

    if (slurm_write_status(l->s, l->ids[i], status, &ignored) < 0)
        return;
}

/* Tells whether a run has just ended that Slurm has not started, and that waited for others when it was submitted. */
static bool may_be_unmet(const struct run_status *said, const struct run_status *status)
{
    return run_state_is_final(status->state) && !run_state_is_final(said->state) && !slurm_has_begun(said) &&
           *said->reason;
}

/* Says which run was to complete before this one: Slurm only says that this one is canceled, or knows it no more.
 * Returns whether there is such a run. Those that are looked at here were there before it, so this comes to an end. */
static bool explain_unmet(struct look *l, size_t i, struct run_status *status)
{
    ACT_AUTO(run_spec) spec = {0};
    struct act_error ignored;
    bool found = false;

    if (!may_be_unmet(l->known[i].said, status) || platform_site_spec(l->site, l->ids[i], &spec, &ignored) < 0 ||
        spec.needs_any)
        return false;
    const struct act_strv *needs = &spec.needs;
    ACT_AUTOFREE struct slurm_view *views = act_calloc(needs->n + 1, sizeof(*views));
    if (needs->n && slurm_look(l->s, (const char *const *)needs->v, needs->n, views, &ignored) < 0)
        return false;
    for (size_t k = 0; k < needs->n && !found; k++) {
        const struct run_status *other = &views[k].status;
        found = run_state_is_final(other->state) && other->state != RUN_COMPLETED;
        if (found)
            run_say_unmet(needs->v[k], other, status->reason, sizeof(status->reason));
    }
    slurm_views_release(views, needs->n);
    if (found) {
        status->state = RUN_CANCELED;
        status->exit_status = 128 + SIGTERM;
    }
    return found;
}

static void fill_view(struct look *l, size_t i, struct slurm_view *out)
{
    const struct slurm_known *k = &l->known[i];
    const struct slurm_job *job = k->queue ? k->queue : k->past;

    out->there = l->states[i].there;
    if (!out->there)
        return;
    out->job = k->job;
    out->task = k->task;
    out->step = k->is_step ? slurm_step(l->states[i].job) : -1;
    out->is_array = is_array_text(l->states[i].job) || (job && job->in_array);
    out->nodes = job && *job->nodes ? act_strdup(job->nodes) : NULL;
    out->by_slurm = slurm_merge(k, &out->status);
    out->by_slurm = explain_unmet(l, i, &out->status) || out->by_slurm;
    if (out->by_slurm)
        slurm_look_keep(l, i, &out->status);
}

int slurm_look(struct slurm *s, const char *const *ids, size_t n, struct slurm_view *out, struct act_error *err)
{
    struct look l = {.s = s,
                     .ids = act_calloc(n, sizeof(*l.ids)),
                     .states = act_calloc(n, sizeof(*l.states)),
                     .known = act_calloc(n, sizeof(*l.known))};
    int rc = 0;

    for (size_t i = 0; i < n; i++) {
        out[i] = (struct slurm_view){.status = {.state = RUN_UNKNOWN, .failed_rank = -1, .attempt = 1}};
        if (run_id_valid(ids[i]))
            l.ids[l.n++] = ids[i];
    }
    if (l.n)
        rc = slurm_look_gather(&l, err);
    for (size_t i = 0, at = 0; rc == 0 && i < n; i++)
        if (run_id_valid(ids[i]))
            fill_view(&l, at++, &out[i]);
    release_look(&l);
    return rc;
}

int slurm_look_one(struct slurm *s, const char *id, struct slurm_view *out, struct act_error *err)
{
    int rc = slurm_look(s, &id, 1, out, err);

    if (rc == 0 && !out->there)
        rc = act_error_set(err, ACT_NOT_FOUND, "there is no run '%s' in '%s'", id, site_root(s->site));
    return rc;
}
