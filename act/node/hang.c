#include "node/hang.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "codec/json.h"
#include "node/supervisor.h"

/* ---- pure ---- */

int64_t hang_clock_step(struct hang_clock *clock, int64_t now_ms, int64_t most_ms)
{
    int64_t passed = clock->last_ms ? now_ms - clock->last_ms : 0;
    int64_t step = passed < 0 ? 0 : passed > most_ms ? most_ms : passed;

    clock->last_ms = now_ms;
    clock->counted_ms += step;
    return step;
}

int64_t hang_step_ms(const struct run_spec *spec)
{
    enum { SHARE = 8, MOST_MS = 10 * 1000 };
    int64_t step = (int64_t)spec->hang_s * 1000 / SHARE;

    return step > MOST_MS ? MOST_MS : step;
}

static int64_t hang_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The reports of a node's ranks; ranks that say nothing do not count. */
struct node_view {
    bool by_gpus;
    int64_t silent_ms, idle_ms, gpus_idle_ms;
};

static void take_view(struct node_view *view, const struct hang_rank *r)
{
    view->silent_ms = hang_least(view->silent_ms, r->silent_ms);
    if (r->by_gpus)
        view->gpus_idle_ms = hang_least(view->gpus_idle_ms, r->idle_ms);
    else
        view->idle_ms = hang_least(view->idle_ms, r->idle_ms);
    view->by_gpus = view->by_gpus || r->by_gpus;
}

static bool node_hangs(const struct run_spec *spec, const struct node_view *view)
{
    int64_t after_ms = (int64_t)spec->hang_s * 1000, idle_ms = view->by_gpus ? view->gpus_idle_ms : view->idle_ms;

    return view->silent_ms >= after_ms && (spec->hang_any_gpus || idle_ms >= after_ms);
}

/* Looks at the ranks of one node. */
static bool look_at_node(const struct run_spec *spec, const struct hang_rank *ranks, int first, int64_t now_ms,
                         int *longest)
{
    struct node_view view = {.silent_ms = INT64_MAX, .idle_ms = INT64_MAX, .gpus_idle_ms = INT64_MAX};

    for (int i = first; i < first + spec->procs_per_node; i++) {
        const struct hang_rank *r = &ranks[i];
        if (!r->started)
            return false;
        if (r->ended || !r->heard || now_ms - r->heard_ms >= (int64_t)spec->hang_s * 1000)
            continue;
        take_view(&view, r);
        if (*longest < 0 || r->silent_ms > ranks[*longest].silent_ms)
            *longest = i;
    }
    return node_hangs(spec, &view);
}

int hang_judge(const struct run_spec *spec, const struct hang_rank *ranks, int64_t now_ms, int64_t last_end_ms)
{
    int longest = -1;

    if (last_end_ms && now_ms - last_end_ms < (int64_t)spec->hang_s * 1000)
        return -1;
    for (int node = 0; node < spec->nodes; node++)
        if (!look_at_node(spec, ranks, node * spec->procs_per_node, now_ms, &longest))
            return -1;
    return longest;
}

/* ---- what is heard ---- */

void hang_open(struct supervisor *s)
{
    if (s->node.spec.hang_s)
        s->hang.ranks = act_calloc((size_t)node_world_size(&s->node), sizeof(*s->hang.ranks));
}

void hang_close(struct supervisor *s)
{
    free(s->hang.ranks);
    s->hang.ranks = NULL;
}

static void count_time(struct supervisor *s)
{
    hang_clock_step(&s->hang.clock, act_now_monotonic_ms(), 2 * hang_step_ms(&s->node.spec));
}

void hang_on_record(struct supervisor *s, int rank)
{
    struct hang_rank *r = s->hang.ranks ? &s->hang.ranks[rank] : NULL;
    const struct node_record *record = &s->ranks[rank].record;

    if (!r)
        return;
    count_time(s);
    r->started = record->started_unix_ns || record->ended_unix_ns;
    if (record->ended_unix_ns && !r->ended)
        s->hang.last_end_ms = s->hang.clock.counted_ms;
    r->ended = record->ended_unix_ns;
}

/* ---- what is done ---- */

/* Says "no rank has written a line for 20m00s, and all GPUs were idle". */
static void say_rule(const struct supervisor *s, char *out, size_t size)
{
    char time[ACT_UNIT_TEXT];
    bool by_gpus = false;

    for (int i = 0; i < node_world_size(&s->node); i++)
        by_gpus = by_gpus || s->hang.ranks[i].by_gpus;
    act_duration_to_text(s->node.spec.hang_s, time);
    snprintf(out, size, "no rank has written a line for %s%s", time,
             s->node.spec.hang_any_gpus ? ""
             : by_gpus                  ? ", and all GPUs were idle"
                                        : ", and no process has computed");
}

static void ask_for_stacks(struct supervisor *s, int longest)
{
    CODEC_AUTOJSON json_t *message = json_pack("{s:s}", "type", "stacks");
    char rule[128];

    say_rule(s, rule, sizeof(rule));
    node_say("the run hangs: %s; rank %d is silent longest; all agents are asked for stacks", rule, longest);
    s->hang.phase = HANG_ASKS;
    s->hang.rank = longest;
    s->hang.answers = link_connected(s->link);
    s->alarms_ms[ALARM_STACKS] = act_now_monotonic_ms() + HANG_STACKS_MS;
    link_tell_all(s->link, message);
}

void hang_on_pulse(struct supervisor *s, int rank, const json_t *message)
{
    struct hang_rank *r = s->hang.ranks ? &s->hang.ranks[rank] : NULL;

    if (!r)
        return;
    count_time(s);
    r->heard = true;
    r->heard_ms = s->hang.clock.counted_ms;
    r->silent_ms = codec_json_int(message, "silent_ms", 0);
    r->idle_ms = codec_json_int(message, "idle_ms", 0);
    r->by_gpus = json_is_true(json_object_get(message, "by_gpus"));
    if (s->hang.phase != HANG_NOT || s->phase == RANKS_STOPPING || s->first_failed >= 0)
        return;
    int longest = hang_judge(&s->node.spec, s->hang.ranks, s->hang.clock.counted_ms, s->hang.last_end_ms);
    if (longest >= 0)
        ask_for_stacks(s, longest);
}

void hang_on_stacks(struct supervisor *s, int rank, const json_t *message)
{
    if (s->hang.phase != HANG_ASKS)
        return;
    if (rank == s->hang.rank)
        snprintf(s->hang.where, sizeof(s->hang.where), "%s", codec_json_str(message, "where", ""));
    node_say("rank %d: %s", rank, codec_json_str(message, "where", ""));
    if (--s->hang.answers <= 0)
        hang_end_run(s);
}

/* Returns the log that has the stacks of a node: the pods print theirs. New string. */
static char *stacks_log(const struct supervisor *s, const struct node_record *r)
{
    int pod = r->rank / s->node.spec.procs_per_node;
    const char *at = s->options.group;

    if (s->options.where != IN_PODS)
        return act_sprintf(RUN_FILE_STACKS, r->node);
    for (int i = 0; at && i < pod; i++)
        at = strchr(at, ',') ? strchr(at, ',') + 1 : at;
    return act_sprintf(RUN_DIR_SYSTEM "/agent_%d.txt", at ? atoi(at) : pod);
}

static void make_reason(struct supervisor *s, const struct node_record *r)
{
    ACT_AUTOFREE char *log = stacks_log(s, r);
    char rule[128];

    say_rule(s, rule, sizeof(rule));
    snprintf(s->hang.reason, sizeof(s->hang.reason), "hang: %s; rank %d on %s is silent longest%s%s; stacks: %s", rule,
             r->rank, r->node, s->hang.where[0] ? ", in " : "", s->hang.where, log);
}

void hang_end_run(struct supervisor *s)
{
    struct node_record as_ended = s->ranks[s->hang.rank].record;

    s->alarms_ms[ALARM_STACKS] = 0;
    if (s->hang.phase != HANG_ASKS || s->phase == RANKS_STOPPING || s->phase == RANKS_GONE || s->first_failed >= 0)
        return;
    s->hang.phase = HANG_IS;
    make_reason(s, &as_ended);
    node_say("%s", s->hang.reason);
    snprintf(s->status.class, sizeof(s->status.class), HANG_CLASS);
    s->end_class = HANG_CLASS;
    as_ended.exit_status = 128 + SIGTERM;
    as_ended.lines = (struct act_strv){0};
    ranks_last_lines(s, as_ended.rank, &as_ended.lines);
    attempt_save_failure(s, &as_ended, s->hang.reason);
    record_release(&as_ended);
    ranks_stop(s, node_abort_grace_ms());
}
