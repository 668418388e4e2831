/* rank.c - act-node rank RUN_DIR: one process of the run, which tells the supervisor how it ended. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "codec/json.h"
#include "node/link.h"
#include "node/metrics.h"
#include "node/pulse.h"
#include "node/rank.h"

enum { SEND_MS = 60000, GOODBYE_MS = 5000 };

/* A rank that reports to a supervisor. */
struct supervised {
    struct rank rank; /* the first member */
    struct link link;
    struct pulse pulse;
};

static struct link *link_of(struct rank *r)
{
    return &((struct supervised *)r)->link;
}

static struct pulse *pulse_of(struct rank *r)
{
    return &((struct supervised *)r)->pulse;
}

/* Fits struct rank. */
static void step_pulse(struct rank *r)
{
    pulse_step(pulse_of(r), r);
}

/* ---- the supervisor ---- */

/* The supervisor is gone: no process of this run may continue. */
__attribute__((noreturn)) static void end_with_supervisor(struct rank *r)
{
    (void)r;
    node_say("the supervisor is gone: the rank ends");
    child_kill_all();
    exit(ACT_WRAPPER);
}

static void tell_supervisor(struct rank *r, const json_t *message)
{
    if (!link_send(link_of(r), message) || !link_drain(link_of(r), SEND_MS))
        end_with_supervisor(r);
}

static void send_record(struct rank *r)
{
    ACT_AUTOFREE char *name = run_rank_log(r->place.rank);
    ACT_AUTOFREE char *log = node_path(&r->node, name);

    if (record_failed(&r->record) && r->record.lines.n == 0)
        record_tail(log, &r->record.lines);
    CODEC_AUTOJSON json_t *message = record_to_json(&r->record);
    json_object_set_new(message, "type", json_string("record"));
    tell_supervisor(r, message);
}

static void rank_on_message(struct rank *r, const json_t *message)
{
    const char *type = codec_json_str(message, "type", "");
    int sig = (int)codec_json_int(message, "signal", 0);

    if (strcmp(type, "stop") == 0) {
        r->kill_at_ms = act_now_monotonic_ms() + codec_json_int(message, "grace_ms", 0);
        rank_stop(r, "the supervisor");
    } else if (strcmp(type, "signal") == 0 && (sig == SIGUSR1 || sig == SIGUSR2)) {
        rank_warn(r, sig);
    } else if (strcmp(type, "stacks") == 0) {
        pulse_take_stacks(pulse_of(r), r);
    }
}

/* Fits struct watch. */
static bool rank_read_messages(void *arg)
{
    struct rank *r = arg;
    bool more = link_fill(link_of(r));
    json_t *message;
    int got;

    while ((got = link_take(link_of(r), &message)) > 0) {
        rank_on_message(r, message);
        json_decref(message);
    }
    return more && got == 0;
}

/* ---- all of it ---- */

static int connect_to_supervisor(struct rank *r, bool *out_stop, struct act_error *err)
{
    CODEC_AUTOJSON json_t *hello =
        json_pack("{s:i, s:s, s:i}", "rank", r->place.rank, "node", r->node.name, "pid", (int)getpid());
    int rc = link_connect(link_of(r), hello, out_stop, err);

    if (rc < 0) {
        node_say("%s", act_error_text(err)); /* and to mpirun's output, as the supervisor cannot be told */
        return act_error_prefix(err, "rank %d on node '%s'", r->place.rank, r->node.name);
    }
    r->watch.extra_fd = link_of(r)->fd;
    r->watch.extra = rank_read_messages;
    r->watch.extra_arg = r;
    return 0;
}

static int rank_join_run(struct rank *r, const char *dir, bool *out_stop, struct act_error *err)
{
    static char who[RANK_WHO]; /* the log keeps it */
    int rc = watch_open(&r->watch, err);

    if (rc == 0)
        rc = node_open(&r->node, dir, who, err);
    if (rc == 0)
        rc = rank_find_place(r, who, err);
    return rc < 0 ? rc : connect_to_supervisor(r, out_stop, err);
}

static int rank_open_place(struct rank *r, struct act_error *err)
{
    ACT_AUTOFREE char *log = run_rank_log(r->place.rank);

    r->log_fd = r->out_fd = node_open_log(&r->node, log);
    if (r->log_fd < 0)
        return act_error_errno(err, errno, "cannot open '%s'", log);
    return place_open(&r->node, &r->place, node_attempt(), err);
}

static int rank_work_on(struct rank *r)
{
    struct act_error err;

    if (rank_open_place(r, &err) < 0) {
        rank_fail(r, ACT_WRAPPER, act_error_text(&err));
        return ACT_WRAPPER;
    }
    env_set(&r->node, &r->place);
    pulse_open(pulse_of(r), r, tell_supervisor);
    if (r->place.local_rank == 0)
        metrics_start(&r->node, pulse_of(r)->shared ? &pulse_of(r)->shared->gpus : NULL);
    return rank_work(r);
}

/* Says the end outside of the record: how the command ended is another matter, and the supervisor may know that
 * already.
 */
static void rank_say_end(struct rank *r)
{
    struct act_error err;

    if (rank_end(r, &err) == 0)
        return;
    CODEC_AUTOJSON json_t *message =
        json_pack("{s:s, s:o}", "type", "unsent", "reason", codec_json_bytes_new(act_error_text(&err)));
    tell_supervisor(r, message);
}

static void say_goodbye(struct rank *r)
{
    CODEC_AUTOJSON json_t *bye = json_pack("{s:s}", "type", "bye");

    tell_supervisor(r, bye);
    r->watch.extra_fd = -1;
    link_finish(link_of(r), GOODBYE_MS);
}

int node_rank(int argc, char **argv)
{
    struct supervised all = {.rank = {.log_fd = -1,
                                      .out_fd = -1,
                                      .room.fd = -1,
                                      .grace_ms = -1,
                                      .report = send_record,
                                      .gone = end_with_supervisor,
                                      .tick = step_pulse},
                             .link.fd = -1};
    struct rank *r = &all.rank;
    struct act_error err;
    int exit_status = 128 + SIGTERM;
    bool stopping = false;

    if (argc != 2)
        return ACT_USAGE;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (rank_join_run(r, argv[1], &stopping, &err) < 0) {
        fprintf(stderr, "act-node: %s\n", act_error_text(&err));
        return ACT_WRAPPER;
    }
    if (!stopping)
        exit_status = rank_work_on(r);
    rank_say_end(r);
    say_goodbye(r);
    /* The record carries the result. mpirun and srun would end the other ranks at once when one fails; the supervisor
     * gives them time to save, and no more than they need. */
    if (r->place.world_size > 1)
        exit_status = 0;
    pulse_close(&all.pulse);
    record_release(&r->record);
    node_release(&r->node);
    if (r->log_fd >= 0)
        close(r->log_fd);
    return exit_status;
}
