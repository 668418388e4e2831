/* pod_machine.c - "act-node supervise" on one of several machines that a run has behind ssh: what "act-node pod" is in
 * a pod. The lock, the status and the slots are those of a run on this machine alone; the run folder has a record of
 * the machines (run/machines.h), which is there before this program. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "codec/json.h"
#include "node/launcher.h"
#include "node/pod.h"
#include "node/supervisor.h"
#include "run/machines.h"

enum { BEAT_MS = 10 * 1000 };

struct pod_machine {
    struct supervisor *supervisor;
    struct run_machines all;
    char *addresses; /* of all, as pod_host() takes them */
    int *turns;      /* the machines, in the order in which their slots are taken */
    int64_t beat_ms; /* monotonic: when the status says next that we live */
    bool is_judged;  /* the first machine has said how the run ended: that is the status of the supervisor */
};

const char *pod_noun(const struct pod *pod)
{
    return pod->machine ? "machine" : "pod";
}

char *pod_name(const struct pod *pod, int i)
{
    return pod->machine ? act_sprintf("'%s'", pod->machine->all.names.v[i]) : act_sprintf("pod %d", i);
}

int pod_machine_turn(const struct pod *pod, int i)
{
    return pod->machine->turns[i];
}

int pod_machine_take(struct pod *pod, struct act_error *err)
{
    int rc = start_take_slots(pod->machine->supervisor, err);

    if (rc == -ACT_INTERRUPTED)
        pod->told++;
    return rc;
}

bool pod_machine_is_aborted(const struct pod *pod)
{
    return attempt_abort_is_asked(pod->machine->supervisor);
}

void pod_machine_begin(struct pod *pod)
{
    struct supervisor *s = pod->machine->supervisor;

    if (pod->index == 0) /* its supervisor says so */
        return;
    s->status.state = RUN_RUNNING;
    s->status.attempt = pod->attempt;
    s->status.started_unix_s = act_now_unix_s();
    attempt_set_reason(s, "");
    attempt_save_status(s);
}

void pod_machine_judge(struct pod *pod, const json_t *status)
{
    struct act_error ignored;

    pod->machine->is_judged = run_status_from_json(status, &pod->machine->supervisor->status, &ignored) == 0;
}

void pod_machine_step(struct pod *pod)
{
    struct supervisor *s = pod->machine->supervisor;

    if (act_now_monotonic_ms() < pod->machine->beat_ms)
        return;
    pod->machine->beat_ms = act_now_monotonic_ms() + BEAT_MS;
    claims_keep(&s->devices.claims);
    if (pod->index > 0)
        attempt_save_status(s);
}

void pod_machine_note_loss(const struct pod *pod, int lost, const char *reason)
{
    ACT_AUTOFREE char *path = node_path(&pod->node, RUN_FILE_FAILURE);
    ACT_AUTO(run_failure)
    failure = {
        .attempt = pod->attempt,
        .rank = -1,
        .node = act_strdup(pod->machine->all.names.v[lost]),
        .exit_status = ACT_WRAPPER,
        .reason = act_strdup(reason),
        .unix_s = act_now_unix_s(),
        .class = act_strdup(CLASS_NODE_FAILURE),
    };
    struct act_error err;

    if (run_failure_write(&failure, path, &err) < 0)
        node_say("%s", act_error_text(&err));
}

/* ---- the program ---- */

static int machine_compare(const void *a, const void *b, void *order)
{
    const struct act_strv *texts = order;

    return strcmp(texts->v[*(const int *)a], texts->v[*(const int *)b]);
}

static int machine_open(struct pod *pod, struct act_error *err)
{
    struct pod_machine *m = pod->machine;
    struct act_buf addresses = {0};
    char self[PATH_MAX] = "";
    int rc = run_machines_read(pod->node.dir, &m->all, err);

    if (rc == 0 && m->all.names.n != (size_t)pod->node.spec.nodes)
        rc = act_error_set(err, ACT_FAIL, "the run has %d nodes, and the record says %zu machines",
                           pod->node.spec.nodes, m->all.names.n);
    if (rc == 0 && readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        rc = act_error_errno(err, errno, "cannot find this program");
    if (rc < 0)
        return rc;
    m->turns = act_calloc(m->all.names.n, sizeof(*m->turns));
    for (int i = 0; i < pod->node.spec.nodes; i++) {
        m->turns[i] = i;
        act_buf_addf(&addresses, "%s%s", i ? "," : "", m->all.address.v[i]);
    }
    qsort_r(m->turns, m->all.names.n, sizeof(*m->turns), machine_compare, &m->all.order);
    m->addresses = act_buf_steal(&addresses);
    pod->options = (struct pod_options){.job = m->addresses, .nodes = pod->node.spec.nodes, .port = m->all.port};
    pod->token = act_strdup(m->all.token);
    setenv(LAUNCHER_ENV_PROGRAM, self, 1);
    setenv(LAUNCHER_ENV_DIR, pod->node.dir, 1);
    pod->index = pod->place = m->all.index;
    return 0;
}

/* The other machines have what the first one says, and know why they have not heard it. */
static void machine_finish(struct pod *pod)
{
    struct supervisor *s = pod->machine->supervisor;
    ACT_AUTOFREE char *first = pod_name(pod, 0);
    ACT_AUTOFREE char *reason = act_sprintf("%s was lost, which led the run", first);

    if (pod->index == 0) {
        (void)!run_status_read(s->status_path, &s->status, NULL);
        return;
    }
    if (pod->told)
        attempt_finish(s, RUN_CANCELED, 128 + SIGTERM, "aborted");
    else if (!pod->machine->is_judged)
        attempt_finish(s, RUN_FAILED, ACT_WRAPPER, pod->why ? pod->why : reason);
    attempt_save_status(s);
}

void pod_machine(struct supervisor *s)
{
    struct pod_machine machine = {.supervisor = s};
    struct pod pod = {.link.fd = -1, .node = s->node, .watch = s->watch, .machine = &machine};
    struct act_error err;
    int rc = machine_open(&pod, &err);

    signal(SIGPIPE, SIG_IGN);
    if (rc == 0)
        rc = pod_join(&pod, &err);
    if (rc == 0) {
        pod_loop(&pod);
        machine_finish(&pod);
    } else {
        attempt_finish(s, RUN_FAILED, ACT_WRAPPER, act_error_text(&err));
        attempt_save_status(s);
    }
    devices_close(&s->devices);
    pod_release(&pod);
    free(machine.addresses);
    free(machine.turns);
    run_machines_release(&machine.all);
}
