/* start.c - until the ranks run: slots, host file, their environment. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "node/launcher.h"
#include "node/pod.h"
#include "node/supervisor.h"

/* ---- slots ---- */

void start_tell_waiting(void *arg, const char *why)
{
    struct supervisor *s = arg;

    attempt_set_reason(s, why);
    node_say("%s", why);
    attempt_save_status(s);
}

/* Tells whether the GPUs can be found here, by which they get their names and are seen to be busy. Of a job it must be
 * as many as Slurm says; else they are numbers. */
static bool are_found(const struct supervisor *s)
{
    return !s->job.step || (int)gpus_given(&s->devices.list) == s->options.slots;
}

/* All runs of a job are on its first node, so what is taken there is taken on its other nodes, too. What the GPUs are
 * called differs between the nodes and steps of a job, but not their order. */
static void show_places(struct supervisor *s)
{
    ACT_AUTOFREE char *ours = are_found(s) ? devices_places(&s->devices, &s->slots) : slots_text(&s->slots);

    setenv(NODE_ENV_GPUS, ours, 1);
    node_say("GPUs, by their places in the job: %s", *ours ? ours : "none");
}

static int take_gpus(struct supervisor *s, struct slots_request *request, struct act_error *err)
{
    struct devices *d = &s->devices;
    int rc = devices_open(d, &s->node.spec, &s->masks, s->options.slots, err);

    if (s->options.shared)
        devices_share(d);
    request->unit = "GPUs";
    request->total = s->options.slots;
    if (are_found(s)) {
        request->total = (int)d->list.n;
        request->names = &d->keys;
        request->choose = devices_choose;
        request->chooser = d;
    }
    if (rc == 0)
        rc = slots_take(&s->slots, request, &s->watch, err);
    if (rc == 0 && s->job.step)
        show_places(s);
    else if (rc == 0)
        devices_show(d, &s->slots);
    return rc;
}

static int take_processors(struct supervisor *s, struct slots_request *request, struct act_error *err)
{
    request->unit = "processors";
    request->total = s->options.slots;
    int rc = slots_take(&s->slots, request, &s->watch, err);

    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *mine = slots_text(&s->slots);
    if (request->need == 0)
        setenv(gpus_mask_name(MASK_CUDA), "", 1);
    node_say("processors: %s", *mine ? mine : "none");
    return 0;
}

static int take_slots(struct supervisor *s, struct act_error *err)
{
    struct slots_request request = {.dir = s->options.slots_dir,
                                    .need = s->node.spec.gpus_per_node,
                                    .run = s->node.spec.id,
                                    .waiting = start_tell_waiting,
                                    .arg = s};

    return (s->options.gpus ? take_gpus : take_processors)(s, &request, err);
}

int start_take_slots(struct supervisor *s, struct act_error *err)
{
    int rc = others_wait(s, err);

    return rc < 0 ? rc : take_slots(s, err);
}

/* ---- start ---- */

/* Starts what runs the ranks, in a cgroup of its own unless Slurm or Kubernetes have made one. */
static pid_t start_main(struct supervisor *s, struct child *child)
{
    if (s->options.where == IN_SLOTS)
        cgroup_make(&s->cgroup, s->node.dir);
    child->cgroup = s->cgroup.fd;
    pid_t pid = child_start(child);
    if (pid > 0 || !child->cgroup)
        return pid;
    (void)cgroup_end(&s->cgroup); /* the kernel may refuse to add processes */
    child->cgroup = 0;
    return child_start(child);
}

static int start_ranks(struct supervisor *s, struct act_error *err)
{
    const char *name = launcher_name(&s->node);
    bool alone = strcmp(name, "rank") == 0;
    ACT_AUTOFREE char *log = act_sprintf(RUN_DIR_SYSTEM "/%s.txt", name);
    char self[PATH_MAX] = "";
    ACT_AUTO(act_strv) argv = {0};

    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        return act_error_errno(err, errno, "cannot find this program");
    if (s->options.where == IN_PODS)
        launcher_set_remote_start(&s->node, self);
    int rc = launcher_command(&s->node, self, &argv, err);
    if (rc == -ACT_NOT_FOUND && s->options.where == IN_PODS)
        return act_error_hint(err, "or set 'k8s.launcher' to direct");
    if (rc == 0) {
        int fd = alone ? -1 : node_open_log(&s->node, log);
        s->main_pid =
            start_main(s, &(struct child){.argv = (const char *const *)argv.v, .out_fd = fd, .guarded = alone});
        if (s->main_pid < 0)
            rc = act_error_errno(err, errno, "cannot start '%s'", argv.v[0]);
        if (fd >= 0)
            close(fd);
    }
    return rc;
}

static void log_spec(const struct node *node)
{
    const struct run_spec *spec = &node->spec;

    node_say("run %s: %d node(s), %d process(es) on each, %d GPU(s) on each, act-node %s", spec->id, spec->nodes,
             spec->procs_per_node, spec->gpus_per_node, ACT_VERSION);
    for (size_t i = 0; i < spec->n_env; i++)
        node_say("env %s=%s", spec->env[i].name, run_env_is_secret(&spec->env[i]) ? "***" : spec->env[i].value);
}

static int start_make_ready(struct supervisor *s, struct act_error *err)
{
    int rc = attempt_begin(s, err);

    node_own_log(&s->node); /* the one of an earlier attempt was moved away */
    log_spec(&s->node);
    if (rc == 0 && s->options.where == IN_SLURM)
        rc = job_find_hosts(&s->job, &s->node, err);
    if (rc == 0 && s->options.where == IN_PODS)
        pod_hosts(s->options.pods, s->node.spec.nodes, s->options.group, &s->job.hosts);
    if (rc == 0 && attempt_abort_is_asked(s))
        rc = act_error_set(err, ACT_INTERRUPTED, "canceled before it began");
    if (rc == 0 && (s->options.where == IN_SLOTS || s->job.step))
        rc = start_take_slots(s, err);
    if (rc == 0)
        rc = launcher_write_hosts(&s->node, &s->job.hosts, err);
    if (rc == 0)
        rc = ranks_open(s, err);
    return rc;
}

int start_run(struct supervisor *s, struct act_error *err)
{
    int rc = start_make_ready(s, err);

    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *attempt = act_sprintf("%d", s->status.attempt);
    setenv(NODE_ENV_ATTEMPT, attempt, 1);
    launcher_set_environment(s->job.hosts.n ? s->job.hosts.v[0] : "127.0.0.1", node_abort_grace_ms());
    s->status.state = RUN_RUNNING;
    s->status.started_unix_s = act_now_unix_s();
    attempt_set_reason(s, "");
    attempt_save_status(s); /* before the first line of the command can be seen */
    return start_ranks(s, err);
}
