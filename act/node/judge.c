/* judge.c - the outcome of a run when all ranks are gone, and what they left behind. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "node/launcher.h"
#include "node/supervisor.h"
#include "run/shell.h"

bool judge_only_terminated(const struct supervisor *s)
{
    return s->options.where == IN_SLURM && s->first_failed >= 0 &&
           s->ranks[s->first_failed].record.exit_status == 128 + SIGTERM;
}

/* Tells whether a rank was lost with its node, which happens before Slurm says that the node failed. */
static bool only_lost_its_node(const struct supervisor *s)
{
    return s->job.node_failed && s->ranks[s->first_failed].record.lost;
}

static bool ended_by_slurm(const struct supervisor *s)
{
    return s->job.end != JOB_GOES_ON && (s->first_failed < 0 || judge_only_terminated(s) || only_lost_its_node(s));
}

/* Tells whether srun has ended the ranks because others could not join the run. */
static bool ended_by_launcher(const struct supervisor *s)
{
    return judge_only_terminated(s) && judge_count_came(s) < node_world_size(&s->node);
}

int judge_count_came(const struct supervisor *s)
{
    int came = 0;

    for (int rank = 0; rank < node_world_size(&s->node); rank++)
        came += s->ranks[rank].presence != RANK_AWAITED;
    return came;
}

static void finish_by_slurm(struct supervisor *s)
{
    static const enum run_state states[] = {[JOB_TIME_LIMIT] = RUN_FAILED,
                                            [JOB_PREEMPTED] = RUN_FAILED,
                                            [JOB_REQUEUED] = RUN_QUEUED,
                                            [JOB_NODE_FAILED] = RUN_FAILED,
                                            [JOB_CANCELLED] = RUN_CANCELED};

    s->status.failed_rank = -1;
    attempt_finish(s, states[s->job.end], 128 + SIGTERM, job_end_text(&s->job));
    attempt_save_failure(s, NULL, s->status.reason);
    attempt_note_failed_nodes(&s->status, &s->job.failed);
}

/* An agent that was killed may have been the only one, or its node has failed, and the other end of the connection was
 * closed with it. */
static void look_for_node(struct supervisor *s, struct node_record *r)
{
    const char *node = s->job.id ? s->job.hosts.v[r->rank / s->node.spec.procs_per_node] : NULL;

    if (!r->lost || !node || strcmp(node, s->node.name) == 0 || strstr(r->reason, "does not answer") ||
        job_answers(node))
        return;
    snprintf(r->reason, sizeof(r->reason), "its node '%.64s' does not answer any more", node);
    record_describe(r, s->status.reason, sizeof(s->status.reason));
    attempt_save_failure(s, r, s->status.reason);
}

/* Tells whether all ranks succeeded. In a shell only the first counts, because its end ends the others. */
static bool all_succeeded(const struct supervisor *s)
{
    int n = run_shell_is(&s->node.spec.argv) ? 1 : node_world_size(&s->node);

    for (int rank = 0; rank < n; rank++)
        if (!record_succeeded(&s->ranks[rank].record))
            return false;
    return true;
}

/* Returns the nodes of the ranks for which test() is true, each once, separated by commas; *out_n: their number. New
 * string. */
static char *nodes_where(const struct supervisor *s, bool (*test)(const struct rank_state *), int *out_n)
{
    struct act_buf list = {0};
    int last = -1;

    *out_n = 0;
    for (int rank = 0; rank < node_world_size(&s->node); rank++) {
        int node_rank = rank / s->node.spec.procs_per_node;
        if (!test(&s->ranks[rank]) || node_rank == last)
            continue;
        act_buf_addf(&list, "%s%s", list.len ? "," : "", s->job.hosts.v[node_rank]);
        last = node_rank;
        (*out_n)++;
    }
    return act_buf_steal(&list);
}

static bool never_came(const struct rank_state *state)
{
    return state->presence == RANK_AWAITED;
}

/* Returns the reason, if nodes do not see the run folder; otherwise empty. New string. */
static char *blind_reason(const struct supervisor *s)
{
    ACT_AUTO(act_strv) blind = {0};
    struct act_buf text = {0};
    int n = 0;
    ACT_AUTOFREE char *nodes = s->job.id ? nodes_where(s, never_came, &n) : act_strdup("");

    if (*nodes && job_find_blind(&s->node, nodes, n, &blind) && blind.n > 0) {
        act_buf_addf(&text, "node '%s'", blind.v[0]);
        if (blind.n > 1)
            act_buf_addf(&text, " (and %zu more)", blind.n - 1);
        act_buf_addf(&text, " does not see '%s': the folder must be on a file system that all nodes share (slurm.root)",
                     s->node.dir);
    }
    return act_buf_steal(&text);
}

bool judge_is_blind(const struct supervisor *s)
{
    ACT_AUTOFREE char *reason = blind_reason(s);

    return *reason != '\0';
}

/* Returns the last words of an agent that could not join the run, or start a launcher's daemon, a new string; NULL:
 * there are none. Long messages of the launcher may follow them. */
static char *agent_words(const char *log)
{
    static const char agent[] = "act-node: ";
    enum { LOG_MAX = 4 * 1024 * 1024 };
    ACT_AUTOFREE char *text = NULL;
    const char *last = NULL;

    if (act_file_read(log, LOG_MAX, &text, NULL, NULL) < 0)
        return NULL;
    for (const char *line = text; line; line = (line = strchr(line, '\n')) ? line + 1 : NULL)
        if (act_starts_with(line, agent))
            last = line + strlen(agent);
    return last ? act_one_line(last, strcspn(last, "\n")) : NULL;
}

/* Returns the message of mpirun or srun, or of an agent below it: mpirun's messages are between lines of dashes, and
 * the first line of the last one is the most useful; otherwise the last line. New string. */
static char *launcher_words(const char *log)
{
    ACT_AUTO(act_strv) lines = {0};
    size_t from = 0, dashes = 0;
    char *words = agent_words(log);

    record_tail(log, &lines);
    for (size_t i = lines.n; i > 0 && dashes < 2; i--)
        if (act_starts_with(lines.v[i - 1], "-----") && ++dashes == 2)
            from = i;
    for (size_t i = from; dashes > 0 && !words && i < lines.n; i++)
        if (*lines.v[i] && !act_starts_with(lines.v[i], "-----"))
            words = act_strdup(lines.v[i]);
    if (!words)
        words = act_strdup(lines.n > 0 ? lines.v[lines.n - 1] : "");
    return words;
}

static void finish_without_record(struct supervisor *s)
{
    const char *name = launcher_name(&s->node);
    ACT_AUTOFREE char *log = act_sprintf("%s/" RUN_DIR_SYSTEM "/%s.txt", s->node.dir, name);
    ACT_AUTOFREE char *blind = blind_reason(s);
    ACT_AUTOFREE char *words = launcher_words(log);
    int exit_status = s->main_killed ? ACT_WRAPPER : child_exit_status(s->main_status);
    ACT_AUTOFREE char *how =
        s->main_killed ? act_strdup("ended the ranks") : act_sprintf("ended with status %d", exit_status);
    ACT_AUTOFREE char *reason =
        act_sprintf("%s %s%s%s", strcmp(name, "rank") == 0 ? "the rank's agent" : name, how, *words ? ": " : "", words);

    attempt_finish(s, RUN_FAILED, exit_status ? exit_status : 128 + SIGKILL, *blind ? blind : reason);
    attempt_save_failure(s, NULL, s->status.reason);
}

/* Decides how the run ended. A failure before the abort stays a failure. */
void judge_run(struct supervisor *s)
{
    char reason[440];

    if (s->hang.phase == HANG_IS) {
        s->status.failed_rank = s->hang.rank;
        attempt_finish(s, RUN_FAILED, 128 + SIGTERM, s->hang.reason);
    } else if (s->limit[0]) {
        s->status.failed_rank = -1;
        attempt_finish(s, RUN_FAILED, 128 + SIGTERM, s->limit);
    } else if (ended_by_slurm(s)) {
        finish_by_slurm(s);
    } else if (s->first_failed >= 0 && !ended_by_launcher(s)) {
        struct node_record *r = &s->ranks[s->first_failed].record;
        look_for_node(s, r);
        record_describe(r, reason, sizeof(reason));
        s->status.failed_rank = r->rank;
        attempt_finish(s, RUN_FAILED, r->exit_status, reason);
    } else if (all_succeeded(s) && (s->aborted || s->main_killed || child_exit_status(s->main_status) == 0)) {
        attempt_finish(s, RUN_COMPLETED, 0, "");
    } else if (s->aborted) {
        attempt_finish(s, RUN_CANCELED, 128 + SIGTERM, "aborted");
    } else {
        finish_without_record(s);
    }
}

/* ---- what is not in a log ---- */

/* Returns "the log of rank 3 (and of 2 others) is not whole: No space left on device", a new string; NULL: all are
 * whole. A log that surely is not whole is named before those that may not be. */
static char *words_of_cut_logs(const struct supervisor *s)
{
    const struct node_record *first = NULL;
    ACT_AUTOFREE char *others = NULL;
    int n = 0;

    for (int rank = 0; rank < node_world_size(&s->node); rank++) {
        const struct node_record *r = &s->ranks[rank].record;
        n += r->no_room != 0;
        if (r->no_room && (!first || (first->room_again && !r->room_again)))
            first = r;
    }
    if (!first)
        return NULL;
    others = n > 1 ? act_sprintf(" (and of %d others)", n - 1) : act_strdup("");
    return act_sprintf("the log of rank %d%s %s: %s%s", first->rank, others,
                       first->room_again ? "may not be whole" : "is not whole", strerror(first->no_room),
                       first->room_again ? " for a time" : "");
}

/* Adds to the reason which logs are not whole, which does not change how the run ended. */
void judge_cut_logs(struct supervisor *s)
{
    ACT_AUTOFREE char *words = words_of_cut_logs(s);

    if (!words)
        return;
    node_say("%s", words);
    ACT_AUTOFREE char *both = act_sprintf("%s%s%s", s->status.reason, s->status.reason[0] ? "; " : "", words);
    attempt_set_reason(s, both);
}

/* ---- what is not in the store ---- */

void judge_note_unsent(struct supervisor *s, const char *reason)
{
    node_say("%s", reason);
    if (!s->unsent[0])
        snprintf(s->unsent, sizeof(s->unsent), "%.*s", (int)sizeof(s->unsent) - 1, reason);
}

void judge_unsent(struct supervisor *s)
{
    if (!s->unsent[0])
        return;
    if (s->status.state == RUN_COMPLETED)
        return attempt_finish(s, RUN_FAILED, ACT_WRAPPER, s->unsent);
    ACT_AUTOFREE char *both = act_sprintf("%s; %s", s->status.reason, s->unsent);
    attempt_set_reason(s, both);
}

/* ---- what remains ---- */

static bool left_in_disorder(const struct rank_state *state)
{
    return state->presence == RANK_CAME;
}

void judge_sweep(struct supervisor *s)
{
    bool any = false;
    int n = 0;

    for (int rank = 0; rank < node_world_size(&s->node); rank++)
        any = any || left_in_disorder(&s->ranks[rank]);
    if (!any)
        return;
    if (!s->job.id) {
        sweep_processes(NODE_ENV_RUN, s->node.spec.id);
        return;
    }
    ACT_AUTOFREE char *nodes = nodes_where(s, left_in_disorder, &n);
    job_sweep(&s->node, nodes, n);
}
