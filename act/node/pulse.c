#include "node/pulse.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "codec/json.h"
#include "node/processes.h"
#include "node/stacks.h"

enum { LOOK_MS = 100, TAKER_MS = HANG_STACKS_MS - 5000 };

void pulse_open(struct pulse *p, struct rank *r, void (*tell)(struct rank *r, const json_t *message))
{
    *p = (struct pulse){.tell = tell};
    if (!r->node.spec.hang_s)
        return;
    void *shared = mmap(NULL, sizeof(*p->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        node_say("nobody will see if the rank hangs: %m");
        return;
    }
    p->shared = shared;
    r->tick_at_ms = act_now_monotonic_ms();
}

void pulse_close(struct pulse *p)
{
    if (p->shared)
        munmap(p->shared, sizeof(*p->shared));
    p->shared = NULL;
}

/* ---- signs of life ---- */

static bool has_written(struct pulse *p, int log_fd)
{
    struct stat st;
    off_t bytes = fstat(log_fd, &st) < 0 ? 0 : st.st_size;
    bool has = bytes != p->log_bytes;

    p->log_bytes = bytes;
    return has;
}

bool pulse_computed(uint64_t ticks, int64_t passed_ms, int64_t ticks_per_s)
{
    enum { BUSY_PERCENT = 5 }; /* of one processor: threads that only look now and then use less */

    return (int64_t)ticks * 100 * 1000 > BUSY_PERCENT * passed_ms * ticks_per_s;
}

/* Tells whether the processes have computed, or somebody holds one of them, as a debugger does. When one ends that
 * nobody waits for, ticks are lost, so something has happened. */
static bool has_computed(struct pulse *p, int64_t passed_ms)
{
    struct processes list;
    uint64_t before = p->ticks;
    bool held = false;

    processes_list(&list);
    processes_mark_commands(&list, getpid());
    p->ticks = 0;
    for (size_t i = 0; i < list.n; i++)
        if (list.v[i].ours) {
            p->ticks += list.v[i].ticks;
            held = held || list.v[i].state == 'T' || list.v[i].state == 't';
        }
    processes_release(&list);
    return held || p->ticks < before || pulse_computed(p->ticks - before, passed_ms, sysconf(_SC_CLK_TCK));
}

static bool is_running(const struct rank *r)
{
    return r->record.started_unix_ns && !r->record.ended_unix_ns;
}

static void pulse_report(struct pulse *p, struct rank *r, int64_t step_ms)
{
    int64_t passed_ms = p->clock.last_ms ? act_now_monotonic_ms() - p->clock.last_ms : step_ms;
    bool written = has_written(p, r->log_fd), computed = has_computed(p, passed_ms);
    enum gpu_use gpus = r->place.local_rank == 0 ? p->shared->gpus : GPU_UNKNOWN;
    bool by_gpus = gpus != GPU_UNKNOWN;
    int64_t step = hang_clock_step(&p->clock, act_now_monotonic_ms(), 2 * step_ms);

    p->silent_ms = written ? 0 : p->silent_ms + step;
    p->idle_ms = (by_gpus ? gpus != GPU_IDLE : computed) ? 0 : p->idle_ms + step;
    CODEC_AUTOJSON json_t *message =
        json_pack("{s:s, s:I, s:I, s:b}", "type", "pulse", "silent_ms", (json_int_t)p->silent_ms, "idle_ms",
                  (json_int_t)p->idle_ms, "by_gpus", by_gpus);
    p->tell(r, message);
}

/* ---- stacks ---- */

static void pulse_answer(struct pulse *p, struct rank *r)
{
    CODEC_AUTOJSON json_t *message = json_pack("{s:s, s:s}", "type", "stacks", "where",
                                               p->shared && p->shared->stacks_taken ? p->shared->where : "");

    p->taker = 0;
    p->tell(r, message);
}

void pulse_take_stacks(struct pulse *p, struct rank *r)
{
    struct stacks_task task = {.node = &r->node,
                               .rank = r->place.rank,
                               .agent = getpid(),
                               .where = p->shared ? p->shared->where : NULL,
                               .where_size = sizeof(p->shared->where)};

    if (!p->shared || p->taker > 0)
        return;
    task.done = &p->shared->stacks_taken;
    p->taker = is_running(r) ? child_start(&(struct child){.run = stacks_take, .arg = &task, .out_fd = -1}) : 0;
    if (p->taker <= 0) {
        pulse_answer(p, r);
        return;
    }
    p->taker_killed_ms = act_now_monotonic_ms() + TAKER_MS;
    r->tick_at_ms = act_now_monotonic_ms() + LOOK_MS;
}

/* Answers once the stacks are taken or their time is over: a process that hangs in the kernel may hold up whoever looks
 * at it. */
static void look_after_taker(struct pulse *p, struct rank *r)
{
    if (!p->shared->stacks_taken && act_now_monotonic_ms() < p->taker_killed_ms)
        return;
    if (!p->shared->stacks_taken) {
        node_say("the stacks could not be taken in time");
        kill(-p->taker, SIGKILL);
    }
    pulse_answer(p, r);
}

void pulse_step(struct pulse *p, struct rank *r)
{
    int64_t step_ms = hang_step_ms(&r->node.spec);

    if (p->taker > 0)
        look_after_taker(p, r);
    else if (is_running(r))
        pulse_report(p, r, step_ms);
    r->tick_at_ms = act_now_monotonic_ms() + (p->taker > 0 ? LOOK_MS : step_ms);
}
