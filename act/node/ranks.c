/* ranks.c - what the supervisor knows of its ranks. Messages, besides those of link.h:
 *   rank -> supervisor   {"type": "record", ...}             see record.h; whenever something has happened
 *                        {"type": "pulse", ...}, {"type": "stacks", ...}   see pulse.h; if the run is watched
 *                        {"type": "bye"}                     all its processes are gone
 *   supervisor -> rank   {"type": "stop", "grace_ms": N}     end the command: SIGTERM, and after N ms SIGKILL
 *                        {"type": "signal", "signal": N}     for those of its processes that catch it
 *                        {"type": "stacks"}                  see pulse.h
 * Which rank failed first is decided by the order of arrival here: the clocks of nodes differ. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "codec/json.h"
#include "node/supervisor.h"
#include "run/shell.h"

enum { CUT_AFTER_MS = 3000 };

/* ---- what they say ---- */

static void on_failure(struct supervisor *s, const struct node_record *r)
{
    char reason[440];

    if (s->first_failed >= 0)
        return;
    s->first_failed = r->rank;
    record_describe(r, reason, sizeof(reason));
    node_say("%s", reason);
    attempt_save_failure(s, r, reason);
    if (r->kept || s->phase == RANKS_STOPPING || node_world_size(&s->node) == 1)
        return;
    node_say("the other ranks are told to end");
    ranks_stop(s, node_abort_grace_ms());
}

static void tell_kept(struct supervisor *s, const struct node_record *r)
{
    char what[400], reason[440];

    record_describe(r, what, sizeof(what));
    snprintf(reason, sizeof(reason), "kept after %s", what);
    attempt_set_reason(s, reason);
    attempt_save_status(s);
}

/* The status says what a preparation does that takes long, and no more when it is over. */
static void tell_doing(struct supervisor *s, const char *before, const char *now)
{
    if (strcmp(before, now) == 0 || (!*now && strcmp(s->status.reason, before) != 0))
        return;
    attempt_set_reason(s, now);
    attempt_save_status(s);
}

static void on_record(struct supervisor *s, struct rank_state *state, const json_t *message)
{
    struct node_record news, *r = &state->record;
    int rank = r->rank;
    bool started = r->started_unix_ns, ended = r->ended_unix_ns;
    struct act_error why;

    if (ended) /* nothing more can happen to it */
        return;
    if (record_from_json(message, &news, &why) < 0) {
        node_say("rank %d: %s", rank, act_error_text(&why));
        return;
    }
    tell_doing(s, r->doing, news.doing);
    record_release(r);
    *r = news;
    r->rank = rank;
    if (!started && r->started_unix_ns)
        attempt_note(s, "started", r);
    if (r->ended_unix_ns)
        attempt_note(s, "ended", r);
    hang_on_record(s, rank);
    if (record_failed(r))
        on_failure(s, r);
    else if (r->ended_unix_ns && rank == 0 && run_shell_is(&s->node.spec.argv))
        ranks_stop(s, node_abort_grace_ms()); /* the keepers on the other nodes have nothing more to wait for */
    if (r->kept)
        tell_kept(s, r);
    if (r->stopped && s->phase != RANKS_STOPPING) {
        node_say("rank %d was told to end by somebody else: all are told", rank);
        ranks_stop(s, node_abort_grace_ms());
    }
}

static bool ranks_on_hello(void *arg, int rank, const json_t *message)
{
    struct supervisor *s = arg;
    struct rank_state *state = &s->ranks[rank];

    if (state->presence != RANK_AWAITED)
        return false;
    state->presence = RANK_CAME;
    state->record.rank = rank;
    snprintf(state->record.node, sizeof(state->record.node), "%s", codec_json_str(message, "node", ""));
    return true;
}

static void on_unsent(struct supervisor *s, const json_t *message)
{
    ACT_AUTOFREE char *reason = codec_json_bytes_get(json_object_get(message, "reason"));

    judge_note_unsent(s, reason ? reason : "");
}

static void ranks_on_message(void *arg, int rank, const json_t *message)
{
    struct supervisor *s = arg;
    const char *type = codec_json_str(message, "type", "");

    if (strcmp(type, "record") == 0)
        on_record(s, &s->ranks[rank], message);
    else if (strcmp(type, "unsent") == 0)
        on_unsent(s, message);
    else if (strcmp(type, "bye") == 0)
        s->ranks[rank].presence = RANK_SAID_BYE;
    else if (strcmp(type, "pulse") == 0)
        hang_on_pulse(s, rank, message);
    else if (strcmp(type, "stacks") == 0)
        hang_on_stacks(s, rank, message);
}

void ranks_last_lines(const struct supervisor *s, int rank, struct act_strv *out)
{
    ACT_AUTOFREE char *name = run_rank_log(rank);
    ACT_AUTOFREE char *log = node_path(&s->node, name);

    record_tail(log, out);
}

static void ranks_on_gone(void *arg, int rank, int errnum)
{
    struct supervisor *s = arg;
    struct node_record *r = &s->ranks[rank].record;

    if (s->ranks[rank].presence == RANK_SAID_BYE || r->ended_unix_ns)
        return;
    r->ended_unix_ns = act_now_unix_ns();
    r->exit_status = 128 + SIGKILL;
    r->signal = SIGKILL;
    r->lost = true;
    r->stopped = s->aborted || s->job.end != JOB_GOES_ON;
    if (errnum == 0 || errnum == ECONNRESET || errnum == EPIPE)
        snprintf(r->reason, sizeof(r->reason), "its agent was killed");
    else
        snprintf(r->reason, sizeof(r->reason), "its node '%s' does not answer any more (%s)", r->node,
                 strerror(errnum));
    attempt_note(s, "lost", r);
    hang_on_record(s, rank);
    ranks_last_lines(s, rank, &r->lines); /* it can no longer report them */
    if (record_failed(r))
        on_failure(s, r);
}

/* ---- open ---- */

static const struct link_events events = {.hello = ranks_on_hello, .message = ranks_on_message, .gone = ranks_on_gone};

static bool ranks_serve(void *arg)
{
    link_serve(((struct supervisor *)arg)->link);
    return true;
}

/* Makes room for a descriptor for each rank, for strangers, and some more. */
static void raise_file_limit(int n_ranks)
{
    enum { OTHERS = 128 };
    struct rlimit limit;
    rlim_t least = (rlim_t)n_ranks * 2 + OTHERS, need = least + LINK_STRANGERS_MORE;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= need)
        return;
    rlim_t now = child_own_limit(RLIMIT_NOFILE, need);
    if (now < least)
        node_say("only %llu files may be open; %d ranks need more", (unsigned long long)now, n_ranks);
}

int ranks_open(struct supervisor *s, struct act_error *err)
{
    int n = node_world_size(&s->node);

    raise_file_limit(n);
    s->ranks = act_calloc((size_t)n, sizeof(*s->ranks));
    hang_open(s);
    int rc = link_listen(n,
                         &(struct link_where){.dir = s->node.spec.nodes == 1 ? s->node.dir : NULL,
                                              .hosts = s->options.where == IN_SLURM ? &s->job.hosts : NULL},
                         &events, s, &s->link, err);
    if (rc < 0)
        return rc;
    setenv(LINK_ENV, link_address(s->link), 1);
    s->watch.extra_fd = link_fd(s->link);
    s->watch.extra = ranks_serve;
    s->watch.extra_arg = s;
    return 0;
}

void ranks_close(struct supervisor *s)
{
    for (int rank = 0; s->ranks && rank < node_world_size(&s->node); rank++)
        record_release(&s->ranks[rank].record);
    free(s->ranks);
    hang_close(s);
    link_server_free(s->link);
    s->ranks = NULL;
    s->link = NULL;
    s->watch.extra_fd = -1;
}

/* ---- to them ---- */

/* Tells the ranks to end, and not mpirun, which would kill them. Ranks that it starts from now on hear it when they say
 * hello. */
void ranks_stop(struct supervisor *s, int64_t grace_ms)
{
    CODEC_AUTOJSON json_t *message = json_pack("{s:s, s:I}", "type", "stop", "grace_ms", (json_int_t)grace_ms);
    int64_t end_ms = act_now_monotonic_ms() + grace_ms + CUT_AFTER_MS;

    if (s->phase == RANKS_STOPPING ? end_ms < s->alarms_ms[ALARM_PHASE] : s->phase != RANKS_GONE) {
        s->phase = RANKS_STOPPING;
        s->alarms_ms[ALARM_PHASE] = end_ms;
    }
    if (!s->link)
        return;
    link_set_stopping(s->link);
    link_tell_all(s->link, message);
    if (link_connected(s->link) == 0 && s->main_pid > 0)
        kill(s->main_pid, SIGTERM); /* it may be waiting for a node that never comes up */
}

void ranks_signal(struct supervisor *s, int sig)
{
    CODEC_AUTOJSON json_t *message = json_pack("{s:s, s:i}", "type", "signal", "signal", sig);

    if (s->link)
        link_tell_all(s->link, message);
}
