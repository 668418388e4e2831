/* pod.c - act-node pod: the main process of a pod. It starts what the group needs, adopts and reaps what is left
 * behind, and prints the logs of the ranks as they grow.
 *
 *   first pod: waits for all -> attempt: supervisor -> Completed, Failed or Canceled: all end what is left -> over
 *                   ^---------- a pod was lost <-'
 *   others:    seek the first pod -> wait -> attempt -> end what is left -> wait ... until it is over
 *                   ^---------- the first pod was lost <-'
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "codec/json.h"
#include "node/attempt.h"
#include "node/launcher.h"
#include "node/pod.h"

#define TERMINATION_LOG "/dev/termination-log" /* terminationMessagePath, if the pod says nothing else */

enum { TICK_MS = 100, MESSAGE_MAX = 4096 };

static const char usage[] = "'act-node pod --job NAME --nodes N --secret DIR --work DIR' is the command of a pod; "
                            "'act submit' writes it";

/* ---- words ---- */

void pod_say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    ACT_AUTOFREE char *text = act_vsprintf(fmt, ap);
    va_end(ap);
    node_say("%s", text);
    act_mask_controls(text, "", '?');
    ACT_AUTOFREE char *line = act_sprintf(RUN_LOG_AGENT "%s\n", text);
    if (act_write_all(STDOUT_FILENO, line, strlen(line)) < 0)
        return; /* it is in the log */
}

char *pod_host(const char *job, int i)
{
    if (!strchr(job, ','))
        return act_sprintf("%s-%d.%s", job, i, job);
    for (; i > 0 && *job; i--)
        job += strcspn(job, ",") + 1;
    return act_strndup(job, strcspn(job, ","));
}

void pod_hosts(const char *job, int n, const char *pods, struct act_strv *out)
{
    for (int i = 0; n > 1 && i < n; i++) {
        act_strv_take(out, pod_host(job, pods ? atoi(pods) : i));
        pods = pods ? pods + strcspn(pods, ",") + 1 : NULL;
    }
}

/* Kubernetes makes the file before the pod runs. */
void pod_leave_word(const struct run_status *status)
{
    CODEC_AUTOJSON json_t *json = run_status_to_json(status);
    ACT_AUTOWIPE char *line = codec_json_line(json);
    int fd = open(TERMINATION_LOG, O_WRONLY | O_TRUNC | O_CLOEXEC);
    size_t len = strlen(line);

    if (fd < 0)
        return;
    if (len > MESSAGE_MAX || act_write_all(fd, line, len) < 0)
        node_say("cannot write '" TERMINATION_LOG "': %m");
    close(fd);
}

/* ---- an attempt on this pod ---- */

/* Finds the place of the pod in the list, and how many there are. */
static int pod_place_among(const char *pods, int index, int *out_n)
{
    int place = 0;

    *out_n = 1;
    for (const char *at = pods; at; at = strchr(at, ',')) {
        at += *at == ',';
        place += atoi(at) < index;
    }
    for (const char *c = pods; *c; c++)
        *out_n += *c == ',';
    return place;
}

/* The run folder is that of a run of the present size. */
static int pod_resize(struct pod *pod, const char *pods, struct act_error *err)
{
    ACT_AUTOFREE char *path = node_path(&pod->node, RUN_FILE_SPEC);

    pod->place = pod_place_among(pods, pod->index, &pod->node.spec.nodes);
    return run_spec_write(&pod->node.spec, path, err);
}

int pod_begin(struct pod *pod, int attempt, const char *pods, const struct run_status *earlier, struct act_error *err)
{
    const struct run_spec *spec = &pod->node.spec;
    ACT_AUTO(act_strv) hosts = {0};
    int rc = pod->attempt > 0 ? attempt_put_away(&pod->node, pod->attempt, earlier, err) : 0;

    if (rc == 0)
        rc = attempt_make_folders(&pod->node, err);
    if (rc == 0 && pods)
        rc = pod_resize(pod, pods, err);
    pod_hosts(pod->options.job, spec->nodes, pods, &hosts);
    if (rc == 0)
        rc = launcher_write_hosts(&pod->node, &hosts, err);
    node_own_log(&pod->node); /* the one of the last attempt was moved away */
    if (rc < 0)
        return rc;
    pod->attempt = attempt;
    pod_output_begin(&pod->output, &pod->node, pod->place * spec->procs_per_node,
                     pod->machine ? 0 : spec->procs_per_node,
                     attempt); /* the logs of a machine are read where they are */
    pod->phase = POD_RUNS;
    if (pod->machine)
        pod_machine_begin(pod);
    return 0;
}

void pod_has_run(struct pod *pod, int64_t ms)
{
    int64_t at = act_now_monotonic_ms() - ms;

    pod->began_ms = pod->has_begun && pod->began_ms < at ? pod->began_ms : at;
    pod->has_begun = true;
}

int64_t pod_ran_ms(const struct pod *pod)
{
    return pod->has_begun ? act_now_monotonic_ms() - pod->began_ms : 0;
}

bool pod_waits_too_long(int64_t since_ms)
{
    const char *text = getenv("ACT_POD_GANG_WAIT"); /* seconds, which job.c of the platform sets */
    int64_t s;

    return text && act_int_from_text(text, &s) && s > 0 && s < INT32_MAX &&
           act_now_monotonic_ms() - since_ms >= s * 1000;
}

void pod_end(struct pod *pod, int64_t grace_ms)
{
    child_signal_all(SIGTERM);
    pod->phase = POD_ENDS;
    pod->until_ms = act_now_monotonic_ms() + grace_ms;
}

static bool pod_has_children(void)
{
    return waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

bool pod_ended(struct pod *pod)
{
    if (pod_has_children()) {
        if (act_now_monotonic_ms() >= pod->until_ms)
            child_signal_all(SIGKILL);
        return false;
    }
    pod_output_end(&pod->output);
    return true;
}

/* ---- the loop ---- */

static void pod_reap(struct pod *pod)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0 || (pid < 0 && errno == EINTR)) {
        if (pid > 0 && pod_send_ended(pod, pid, status))
            continue;
        if (pid > 0 && pod->group)
            group_child_ended(pod, pid, status);
        else if (pid > 0)
            member_child_ended(pod, pid, status);
    }
}

static void pod_on_signal(struct pod *pod, int sig)
{
    if (sig == SIGTERM || sig == SIGINT)
        pod->told++;
    if (sig == SIGCHLD || sig == 0)
        return;
    if (pod->group)
        group_on_signal(pod, sig);
    else
        member_on_signal(pod, sig);
}

void pod_loop(struct pod *pod)
{
    bool more = false;
    int sig;

    while (pod->phase != POD_OVER) {
        watch_wait(&pod->watch, more ? 0 : TICK_MS, &sig);
        pod_on_signal(pod, sig);
        pod_reap(pod);
        more = pod_output_follow(&pod->output);
        pod_send_step(pod);
        if (pod->machine)
            pod_machine_step(pod);
        if (pod->group)
            group_step(pod);
        else
            member_step(pod);
    }
}

int pod_join(struct pod *pod, struct act_error *err)
{
    pod_send_open(pod);
    if (pod->index == 0)
        return group_open(pod, err);
    member_open(pod);
    return 0;
}

void pod_release(struct pod *pod)
{
    group_close(pod);
    link_close(&pod->link);
    pod_programs_release(pod);
    act_wipe(&pod->token);
    free(pod->why);
}

/* ---- the program ---- */

static int pod_parse_options(int argc, char **argv, struct pod_options *o, struct act_error *err)
{
    static const struct option table[] = {{"job", required_argument, NULL, 'j'},
                                          {"nodes", required_argument, NULL, 'n'},
                                          {"secret", required_argument, NULL, 's'},
                                          {"work", required_argument, NULL, 'w'},
                                          {NULL, 0, NULL, 0}};
    enum { NODES_MAX = 100000 };
    int64_t nodes = 0;
    int c;

    opterr = 0;
    while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (c == 'j')
            o->job = optarg;
        else if (c == 'n' && act_int_from_text(optarg, &nodes) && nodes > 0 && nodes < NODES_MAX)
            o->nodes = (int)nodes;
        else if (c == 's')
            o->secret = optarg;
        else if (c == 'w')
            o->work = optarg;
        else
            return act_error_set(err, ACT_USAGE, "%s", usage);
    }
    return optind == argc && o->job && o->nodes && o->secret && o->work ? 0
                                                                        : act_error_set(err, ACT_USAGE, "%s", usage);
}

static int open_pod(struct pod *pod, int argc, char **argv, struct act_error *err)
{
    int rc = watch_open(&pod->watch, err); /* first: what comes before is lost for a process with pid 1 */

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGPIPE, SIG_IGN);
    if (rc == 0)
        rc = pod_parse_options(argc, argv, &pod->options, err);
    if (rc == 0)
        rc = pod_take_files(pod, err);
    return rc < 0 ? rc : pod_join(pod, err);
}

static void pod_fail(struct pod *pod, const struct act_error *err)
{
    struct run_status status = {.state = RUN_FAILED,
                                .exit_status = ACT_WRAPPER,
                                .failed_rank = -1,
                                .attempt = 1,
                                .ended_unix_s = act_now_unix_s()};

    pod_say("%s", act_error_text(err));
    snprintf(status.reason, sizeof(status.reason), "%.*s", (int)sizeof(status.reason) - 1, act_error_text(err));
    pod_leave_word(&status);
    pod->exit_status = ACT_WRAPPER;
}

int node_pod(int argc, char **argv)
{
    struct pod pod = {.link.fd = -1, .options.port = POD_PORT};
    struct act_error err;

    if (open_pod(&pod, argc, argv, &err) < 0)
        pod_fail(&pod, &err);
    else
        pod_loop(&pod);
    pod_release(&pod);
    node_release(&pod.node);
    return pod.exit_status;
}
