/* submit.c - one run, one job; or several runs, one array, of which each task is one of them.
 *
 * Several clients may submit the same id, each may die at any moment, and sbatch's response may be lost. So:
 *   - the folder of the run is made, complete or not at all;
 *   - the client that creates the file "submit.1" submits the run; others wait for job.json. When that client is gone,
 *     the next one creates "submit.2", and so on: a claim is never removed, so no two can hold the last one. The folder
 *     of a single run is made with it;
 *   - sbatch is called again, or after another client's claim, only when Slurm knows no job of the run's name.
 * Of several runs all folders are made first, and the claim is that of the first one. The array has the name that their
 * ids begin with, and the index of a task is the number that they end with (run_id_in_row()): so it is known whose task
 * it is even if no client could write that down.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/path.h"
#include "codec/fields.h"
#include "codec/json.h"
#include "platform/slurm/slurm_internal.h"
#include "proc/pidfd.h"

enum {
    CALL_S = 120,     /* no sbatch is started later than this after the claim, and one takes 60 s at most */
    CLAIM_S = 200,    /* after that another client may go on */
    HANDOVER_S = 600, /* all in all */
    WAIT_MS = 100,    /* between looks for another client's job */
    CLAIM_NAME = 32
};

#define CLAIM       "submit."
#define FIRST_CLAIM CLAIM "1"

/* ---- the claim ---- */

/* A run being submitted to Slurm, or several. */
struct handover {
    struct slurm *s;
    struct site *site;
    const struct run_spec *spec; /* of the first one */
    const char *name;            /* of the job */
    struct act_strv ids;         /* of all */
    struct slurm_array array;    /* if they are several */
    char *after;                 /* for which jobs it waits, "afterany:7:8_3,afterok:9"; NULL: none */
    char *agent, *claim;         /* what this client writes into its claim */
    int number;                  /* of the claim that it holds, or whose end it waits for */
    int64_t claimed_ms;
    bool has_run; /* an agent has been there, so Slurm got it, whatever clients could write down */
};

/* Returns the scope in which a process id is valid: this boot, this namespace. */
static char *process_world(void)
{
    ACT_AUTOFREE char *boot = NULL;
    char space[64] = "";
    size_t len = 0;

    if (act_file_read("/proc/sys/kernel/random/boot_id", 256, &boot, &len, NULL) < 0)
        return act_strdup("");
    boot[strcspn(boot, "\n")] = '\0';
    ssize_t n = readlink("/proc/self/ns/pid", space, sizeof(space) - 1);
    return n > 0 ? act_sprintf("%s %s", boot, space) : act_strdup("");
}

/* Which client submits a run. */
struct claim {
    char *run, *nonce, *world;
    int64_t pid, start; /* proc_began(); -1: not known */
};

static const struct field claim_rows[] = {
    FIELD_TEXT(struct claim, run, "run"),
    FIELD_TEXT(struct claim, nonce, "nonce"),
    FIELD_TEXT(struct claim, world, "world", .flags = FIELD_REQUIRED),
    FIELD_INT64(struct claim, pid, "pid", .flags = FIELD_REQUIRED, .min = 1, .max = INT32_MAX),
    FIELD_INT64(struct claim, start, "start", .flags = FIELD_REQUIRED, .min = -1),
};
static const struct fields claim_fields = FIELDS("the claim", struct claim, claim_rows, NULL);

static char *new_claim(const char *id)
{
    struct claim claim = {.run = act_strdup(id),
                          .nonce = run_id_new("claim", act_now_unix_s()),
                          .world = process_world(),
                          .pid = getpid(),
                          .start = proc_began(getpid())};
    CODEC_AUTOJSON json_t *json = fields_to_json(&claim_fields, &claim);

    fields_release(&claim_fields, &claim);
    return codec_json_line(json);
}

static bool claim_is_of_dead(const struct claim *claim)
{
    ACT_AUTOFREE char *world = process_world();
    const pid_t pid = (pid_t)claim->pid;

    if (!*world || strcmp(claim->world, world) != 0)
        return false;
    int64_t start = proc_began(pid);
    bool is_hidden = start < 0 && (kill(pid, 0) == 0 || errno == EPERM); /* by hidepid (proc(5)) */
    return !is_hidden && start != claim->start;
}

/* Tells whether the claim's client is known to be gone; for one on another machine this is never known. */
static bool is_dead(const char *text)
{
    CODEC_AUTOJSON json_t *json = NULL;
    struct claim claim;

    if (codec_json_parse(text, strlen(text), "claim", &json, NULL) < 0 ||
        fields_from_json(&claim_fields, json, &claim, NULL) < 0)
        return false;
    bool dead = claim_is_of_dead(&claim);
    fields_release(&claim_fields, &claim);
    return dead;
}

/* Writes a file of a run, once more if the connection broke. */
static int slurm_submit_write(struct handover *h, const char *id, const char *name, const char *text, bool *out_existed,
                              struct act_error *err)
{
    int rc = site_write(h->site, id, name, text, out_existed, err);

    return rc == -ACT_TEMPORARY ? site_write(h->site, id, name, text, out_existed, err) : rc;
}

static int slurm_submit_claim(struct handover *h, bool *out_mine, bool *out_dead, struct act_error *err)
{
    char name[CLAIM_NAME];
    ACT_AUTOFREE char *text = NULL;
    bool existed = false;

    snprintf(name, sizeof(name), CLAIM "%d", h->number);
    int rc = slurm_submit_write(h, h->spec->id, name, h->claim, &existed, err);
    *out_mine = rc == 0 && !existed;
    *out_dead = false;
    if (rc < 0 || !existed)
        return rc;
    rc = site_read_text(h->site, h->spec->id, name, &text, err);
    if (rc < 0)
        return rc;
    *out_mine = strcmp(text, h->claim) == 0;
    *out_dead = !*out_mine && is_dead(text);
    return 0;
}

/* ---- Slurm ---- */

/* Finds the job with the run's name in the queue or the accounting; *out is 0 where there is none. */
static int slurm_submit_find_job(struct handover *h, int64_t *out, struct act_error *err)
{
    char since[ACT_TIME_TEXT];
    ACT_AUTOFREE char *name = act_sprintf("--name=%s", h->name);
    const char *const queue[] = {"squeue", "--noheader", "--states=all", "--me", name, "-o", "%F", NULL};
    const char *const past[] = {"sacct", "-n", "-X", "-P", name, "-S", since, "-o", "JobID", NULL};
    ACT_AUTOFREE char *text = NULL;
    ACT_AUTOFREE char *old = NULL;
    struct act_error ignored;
    int rc = slurm_run(h->s, queue, &text, err);

    *out = rc == 0 ? slurm_id_from_sbatch(text) : 0;
    if (rc < 0 || *out || h->s->no_accounting)
        return rc;
    act_time_to_iso(h->spec->created_unix_s - 86400, since); /* the clocks need not agree */
    since[strcspn(since, "Z")] = '\0';
    if (slurm_run(h->s, past, &old, &ignored) == 0)
        *out = slurm_job_number(old, NULL);
    return 0;
}

/* Adds the words of the call, and returns the script, a new string. */
static char *form_job(struct handover *h, struct act_strv *words)
{
    ACT_AUTOFREE char *dir = site_run_dir(h->site, h->spec->id);
    ACT_AUTOFREE char *runs = act_path_dirname(dir);

    if (h->array.row) {
        slurm_array_words(h->s, h->spec, runs, &h->array, h->after, words);
        return slurm_array_script(h->agent, runs, h->array.row);
    }
    slurm_sbatch_words(h->s, h->spec, dir, h->after, words);
    return slurm_job_script(h->agent, dir);
}

static int call_sbatch(struct handover *h, int64_t *out, bool *out_unclear, struct act_error *err)
{
    ACT_AUTO(act_strv) words = {0};
    ACT_AUTOFREE char *script = form_job(h, &words);
    ACT_AUTOFREE char *text = NULL;

    int rc = slurm_feed(h->s, (const char *const *)words.v, script, &text, out_unclear, err);
    *out = rc == 0 ? slurm_id_from_sbatch(text) : 0;
    if (rc == 0 && !*out) {
        *out_unclear = true;
        rc = act_error_set(err, ACT_FAIL, "sbatch did not print a job's number but '%.200s'", text);
    }
    return rc < 0 && !*out_unclear ? slurm_hint(h->s, h->spec, err) : rc;
}

/* A submission reported as failed must not run later, whatever became of it. */
static int slurm_submit_give_up(struct handover *h, struct act_error *err)
{
    struct run_status status = {.state = RUN_FAILED, .failed_rank = -1, .attempt = 1, .exit_status = 1};
    struct act_error ignored;
    int rc = 0;

    snprintf(status.reason, sizeof(status.reason), "not submitted: %.480s", act_error_text(err));
    for (size_t i = 0; i < h->ids.n && rc == 0; i++) {
        rc = site_write(h->site, h->ids.v[i], RUN_FILE_ABORT, "", NULL, &ignored);
        if (rc == 0)
            rc = slurm_write_status(h->s, h->ids.v[i], &status, &ignored);
    }
    if (rc < 0)
        act_error_hint(err, "and its folder cannot be written either: %.300s", act_error_text(&ignored));
    return -(int)err->code;
}

/* Writes down the job of a run. */
static int remember_job_of(struct handover *h, int64_t job, size_t i, struct act_error *err)
{
    ACT_AUTOFREE char *number =
        h->array.row ? slurm_task_text(job, h->array.first + (int64_t)i) : slurm_job_text(h->s, job);
    ACT_AUTOFREE char *text = run_job_text(number);

    return slurm_submit_write(h, h->ids.v[i], RUN_FILE_JOB, text, NULL, err);
}

struct slurm_tasks {
    struct handover *h;
    int64_t job;
};

static int remember_task(void *arg, size_t i, struct act_error *err)
{
    const struct slurm_tasks *tasks = arg;

    return remember_job_of(tasks->h, tasks->job, i + 1, err);
}

/* Writes the jobs down, that of the first run last: by it others know that all is done. */
static int remember_job(struct handover *h, int64_t job, struct act_error *err)
{
    int rc = site_do_all(h->site, h->ids.n - 1, remember_task, &(struct slurm_tasks){h, job}, err);

    return rc < 0 ? rc : remember_job_of(h, job, 0, err);
}

/* A job that cannot be recorded would run unnoticed. */
static int keep_job(struct handover *h, int64_t job, struct act_error *err)
{
    ACT_AUTOFREE char *number = act_sprintf("%lld", (long long)job);
    const char *const argv[] = {"scancel", number, NULL};
    ACT_AUTOFREE char *out = NULL;
    struct act_error ignored;

    if (remember_job(h, job, err) == 0)
        return 0;
    if (slurm_run(h->s, argv, &out, &ignored) == 0)
        act_error_hint(err, "its job %s was canceled", number);
    else
        act_error_hint(err, "its job is there: 'scancel %s' ends it", number);
    return slurm_submit_give_up(h, err);
}

static int call_in_time(struct handover *h, int64_t *out, bool *out_unclear, struct act_error *err)
{
    if (act_now_monotonic_ms() - h->claimed_ms > CALL_S * 1000)
        return act_error_set(err, ACT_TEMPORARY, "Slurm answers too slowly: try again later");
    return call_sbatch(h, out, out_unclear, err);
}

/* Called while this client holds the claim. Slurm may have forgotten a job that has run. */
static int slurm_submit_hand_over(struct handover *h, struct act_error *err)
{
    enum { TRIES = 2 };
    bool unclear = h->number > 1;
    int64_t job = 0;
    int rc = 0;

    for (int i = 0; i < TRIES && !job; i++) {
        if (unclear)
            rc = slurm_submit_find_job(h, &job, err);
        if (rc == 0 && !job && !h->has_run)
            rc = call_in_time(h, &job, &unclear, err);
        if (rc < 0 && !unclear)
            break;
    }
    if (rc < 0 && !job && unclear) {
        struct act_error ignored;
        if (slurm_submit_find_job(h, &job, &ignored) < 0)
            job = 0;
    }
    if (job)
        return keep_job(h, job, err);
    return h->has_run ? 0 : slurm_submit_give_up(h, err);
}

/* Finds out whether any client has handed the run over, or tried to. */
static int look_for_job(struct handover *h, bool *out_done, struct act_error *err)
{
    const char *id = h->spec->id;
    struct site_state state;
    int rc = site_states(h->site, &id, 1, &state, err);

    *out_done = false;
    if (rc < 0)
        return rc;
    *out_done = state.job;
    h->has_run = slurm_has_begun(&state.status);
    if (!state.job && !h->has_run && run_state_is_final(state.status.state))
        rc = act_error_set(err, ACT_FAIL, "'%s' was submitted before: %s", id,
                           *state.status.reason ? state.status.reason : run_state_name(state.status.state));
    site_states_release(&state, 1);
    return rc;
}

/* The step of a job that is there already; the run's job is known when its agent has said it. */
static int slurm_submit_start_step(struct handover *h, struct act_error *err)
{
    ACT_AUTOFREE char *dir = site_run_dir(h->site, h->spec->id);
    bool done = false;
    pid_t srun = 0;
    int rc = slurm_here_start(h->s, h->spec, h->agent, dir, &srun, err);

    while (rc == 0 && !done && !h->has_run) {
        bool is_over = kill(srun, 0) < 0;
        rc = look_for_job(h, &done, err);
        if (rc == 0 && !done && !h->has_run && is_over)
            rc = slurm_here_refused(dir, err);
        if (rc == 0 && !done && act_now_monotonic_ms() - h->claimed_ms > CALL_S * 1000) {
            kill(srun, SIGTERM);
            rc = act_error_set(err, ACT_TEMPORARY, "srun has not started it in %d s: try again later", CALL_S);
        }
        if (rc == 0 && !done)
            nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
    }
    return rc < 0 ? slurm_submit_give_up(h, err) : 0;
}

static int submit_claimed(struct handover *h, struct act_error *err)
{
    return (h->s->config.here ? slurm_submit_start_step : slurm_submit_hand_over)(h, err);
}

/* is_new: this client has made the folder of the first run, so that nobody has submitted it. */
static int submit_once(struct handover *h, bool is_new, struct act_error *err)
{
    int64_t start = act_now_monotonic_ms(), since = start, now = start;
    bool mine, dead, done = false;

    while (now - start < HANDOVER_S * 1000) {
        int rc = is_new ? 0 : look_for_job(h, &done, err);
        if (rc < 0 || done)
            return rc;
        is_new = false;
        h->claimed_ms = act_now_monotonic_ms();
        rc = slurm_submit_claim(h, &mine, &dead, err);
        if (rc < 0)
            return rc;
        if (mine)
            return submit_claimed(h, err);
        now = act_now_monotonic_ms();
        if (dead || now - since > CLAIM_S * 1000) {
            h->number++;
            since = now;
        } else {
            nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
        }
    }
    return act_error_set(err, ACT_TIMEOUT, "other clients have been submitting it for %d s", HANDOVER_S);
}

/* Makes the folder of one of the runs, complete, and in the one of a single run this client's claim. */
static int make_folder(struct handover *h, const struct platform_submission *submission, bool *out_existed,
                       struct act_error *err)
{
    struct site_text files[2];
    struct site_new run = {.spec = submission->spec, .package = submission->package, .files = files};

    if (submission->stores)
        files[run.n_files++] = (struct site_text){RUN_FILE_STORES, submission->stores};
    if (!h->array.row)
        files[run.n_files++] = (struct site_text){FIRST_CLAIM, h->claim};
    int rc = site_create_run(h->site, &run, out_existed, err);
    if (rc == -ACT_TEMPORARY)
        rc = site_create_run(h->site, &run, out_existed, err);
    if (rc == 0)
        act_strv_push(&h->ids, run.spec->id);
    return rc;
}

/* Slurm refuses to wait for a job that it does not know any more, as one that ended long ago. */
static void add_before(const struct handover *h, const struct site_state *old, struct act_buf *out)
{
    bool is_array;
    int64_t number = slurm_job_number(old->job, &is_array);

    if (number == 0 || run_state_is_final(old->status.state))
        return;
    act_buf_adds(out, out->len ? ":" : "afterany:");
    if (is_array || h->array.row)
        act_buf_addf(out, "%lld", (long long)number);
    else
        act_buf_adds(out, old->job);
}

/* Adds the job of a run that this one is to run after, unless that has ended as it should. */
static int add_need(const struct handover *h, const char *id, const struct site_state *other, struct act_buf *out,
                    struct act_error *err)
{
    bool is_array, any = h->spec->needs_any;
    int64_t number = slurm_job_number(other->job, &is_array);
    char why[256];

    if (other->status.state == RUN_COMPLETED || (any && run_state_is_final(other->status.state)))
        return 0;
    if (!other->there || run_state_is_final(other->status.state)) {
        run_say_unmet(id, other->there ? &other->status : NULL, why, sizeof(why));
        return act_error_set(err, ACT_FAIL, "%s", why);
    }
    if (number == 0)
        return act_error_set(err, ACT_TEMPORARY, "'%s' is still being handed to Slurm: try again in a moment", id);
    if (slurm_step(other->job) >= 0)
        return act_error_set(err, ACT_USAGE,
                             "'%s' is a step of job %lld, and Slurm waits for whole jobs; 'a wait %s && a submit ...' "
                             "waits for it here",
                             id, (long long)number, id);
    act_buf_adds(out, out->len ? ":" : any ? "afterany:" : "afterok:");
    if (is_array)
        act_buf_addf(out, "%lld", (long long)number);
    else
        act_buf_adds(out, other->job);
    return 0;
}

/* Finds the jobs for which this one waits: of the runs after which it begins, where several begin after all that those
 * were submitted with, and of those that it needs. */
static int find_before(struct handover *h, struct act_error *err)
{
    const struct act_strv *after = &h->spec->after, *needs = &h->spec->needs;
    ACT_AUTO(act_strv) ids = {0};
    ACT_AUTO(act_buf) before = {0}, needed = {0};

    act_strv_copy(&ids, after->v, after->n);
    act_strv_copy(&ids, needs->v, needs->n);
    ACT_AUTOFREE struct site_state *states = act_calloc(ids.n + 1, sizeof(*states));
    int rc = ids.n ? site_states(h->site, (const char *const *)ids.v, ids.n, states, err) : 0;
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < after->n; i++)
        add_before(h, &states[i], &before);
    for (size_t i = 0; i < needs->n && rc == 0; i++)
        rc = add_need(h, needs->v[i], &states[after->n + i], &needed, err);
    site_states_release(states, ids.n);
    if (before.len && needed.len)
        act_buf_adds(&before, ",");
    if (needed.len)
        act_buf_adds(&before, needed.data);
    h->after = rc == 0 && before.len ? act_buf_steal(&before) : NULL;
    return rc;
}

static int slurm_submit_begin(struct handover *h, struct act_error *err)
{
    int rc = platform_check(&h->s->base, h->spec, err);

    h->claim = new_claim(h->spec->id);
    h->number = 1;
    if (rc == 0)
        rc = slurm_site(h->s, &h->site, err);
    if (rc == 0)
        rc = site_agent(h->site, &h->agent, err);
    return rc == 0 ? find_before(h, err) : rc;
}

static void release_handover(struct handover *h)
{
    act_strv_release(&h->ids);
    free(h->claim);
    free(h->agent);
    free(h->after);
}

int slurm_submit(struct platform *p, const struct platform_submission *submission, struct act_error *err)
{
    struct handover h = {.s = slurm_of(p), .spec = submission->spec, .name = submission->spec->id};
    bool existed = true;
    int rc = slurm_submit_begin(&h, err);

    if (rc == 0)
        rc = make_folder(&h, submission, &existed, err);
    h.claimed_ms = act_now_monotonic_ms();
    if (rc == 0) {
        *submission->asked = true;
        rc = existed ? submit_once(&h, false, err) : submit_claimed(&h, err);
    }
    release_handover(&h);
    return rc < 0 ? act_error_prefix(err, "cannot submit '%s'", submission->spec->id) : 0;
}

/* ---- before it ---- */

/* Tells whether the login node makes the environment of the run; it starts no containers. */
static bool slurm_makes_ahead(const struct slurm *s, const struct run_spec *spec)
{
    const struct run_needs *e = &spec->environment;

    if (e->none || e->key || !spec->package_sha256[0])
        return false;
    return e->where == RUN_MAKES_LOGIN || (e->where == RUN_MAKES_USUAL && s->no_index && !spec->image && !e->wheels);
}

int slurm_prepare(struct platform *p, struct run_spec *spec, const char *package, struct act_error *err)
{
    struct slurm *s = slurm_of(p);
    struct site *site;

    if (!package || !slurm_makes_ahead(s, spec))
        return 0;
    if (spec->environment.where == RUN_MAKES_USUAL)
        act_note("the login node makes the environment, as node '%s' has reached no index of packages; "
                 "'environment: {where: nodes}' tries it there again",
                 s->no_index);
    int rc = slurm_site(s, &site, err);
    return rc < 0 ? rc : platform_make_ahead(site, spec, package, &spec->environment.key, err);
}

/* ---- several runs ---- */

int slurm_most_together(struct platform *p)
{
    static const char key[] = "MaxArraySize";
    const char *const argv[] = {"scontrol", "show", "config", NULL};
    struct slurm *s = slurm_of(p);
    ACT_AUTOFREE char *text = NULL;
    struct act_error ignored;

    if (s->config.here || slurm_site_option(s, "--array", "-a") || slurm_run(s, argv, &text, &ignored) < 0)
        return 1;
    const char *at = strstr(text, key);
    at = at ? strchr(at, '=') : NULL;
    long most = at ? strtol(at + 1, NULL, 10) : 0;
    return most < 1 ? 1 : most > RUN_ROW_MAX ? RUN_ROW_MAX : (int)most;
}

struct folders {
    struct handover *h;
    const struct platform_several *several;
};

/* Makes the folder of one of those behind the first. */
static int make_next_folder(void *arg, size_t i, struct act_error *err)
{
    const struct folders *f = arg;
    bool existed;

    f->several->turn(f->several->arg, i + 1);
    return make_folder(f->h, &f->several->submission, &existed, err);
}

int slurm_submit_several(struct platform *p, const struct platform_several *several, struct act_error *err)
{
    const struct platform_submission *submission = &several->submission;
    struct handover h = {.s = slurm_of(p), .spec = submission->spec};
    bool existed = true;

    several->turn(several->arg, 0);
    ACT_AUTOFREE char *row = run_id_row(submission->spec->id, &h.array.first);
    h.name = h.array.row = row;
    h.array.last = h.array.first + (int)several->n - 1;
    h.array.most = several->max_parallel;
    int rc = slurm_submit_begin(&h, err);
    if (rc == 0)
        rc = make_folder(&h, submission, &existed, err); /* which brings the package for all */
    if (rc == 0)
        rc = site_do_all(h.site, several->n - 1, make_next_folder, &(struct folders){&h, several}, err);
    several->turn(several->arg, 0);
    if (rc == 0) {
        *submission->asked = true;
        rc = submit_once(&h, !existed, err);
    }
    release_handover(&h);
    return rc < 0 ? act_error_prefix(err, "cannot submit %zu runs as one array", several->n) : 0;
}
