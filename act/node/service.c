/* service.c - act-node job: one process of a run whose ranks a service starts, each as mpirun or a shell of the service
 * would start any program. What the command prints is this process's output, and its exit status this one's.
 *
 *   act-node job         what the service starts, signals and waits for
 *     act-node job       inside: prepares the node, runs the command (rank_work.c)
 *
 * There are two because the service may kill the outer one a moment after sending SIGTERM, as mpirun does: the inner
 * one sees it exit and ends everything it has started, with the time that takes.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/units.h"
#include "node/attempt.h"
#include "node/metrics.h"
#include "node/rank.h"

enum { GONE_GRACE_MS = 5000 };

static const char usage[] = "usage: act-node job --spec FILE [--package FILE] [--folder N=PATH]...\n"
                            "       one process of a run, started by a service; 'act submit' writes its command\n";

struct service {
    struct rank rank; /* the first member */
    const char *spec, *package;
    struct act_strv folders; /* "0=/mnt/data" */
    int life[2];             /* a pipe: its end tells the inner process that the outer one is gone */
};

/* ---- the run */

/* The client makes the arguments. */
static bool service_parse(int argc, char **argv, struct service *s)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--spec") == 0)
            s->spec = argv[i + 1];
        else if (strcmp(argv[i], "--package") == 0)
            s->package = argv[i + 1];
        else if (strcmp(argv[i], "--folder") == 0)
            act_strv_push(&s->folders, argv[i + 1]);
        else
            return false;
    }
    return argc % 2 == 1 && s->spec;
}

/* Returns the absolute path, a new string. */
static char *absolute(const char *path)
{
    ACT_AUTOFREE char *here = *path == '/' ? NULL : getcwd(NULL, 0);

    return here ? act_path_join(here, path) : act_strdup(path);
}

/* Links a mapped folder, where the service has put it, into the code root. */
static int service_take_folder(struct run_spec *spec, const char *word, struct act_error *err)
{
    size_t digits = strspn(word, "0123456789");
    ACT_AUTOFREE char *number = act_strndup(word, digits);
    int64_t i;

    if (word[digits] != '=' || !word[digits + 1] || !act_int_from_text(number, &i) || i >= (int64_t)spec->n_folders)
        return act_error_set(err, ACT_USAGE, "'--folder %s' is none of the run's %zu folders", word, spec->n_folders);
    free(spec->folders[i].link);
    spec->folders[i].link = absolute(word + digits + 1);
    return 0;
}

/* Launcher and containers are the service's own. */
static void forget_launcher(struct run_spec *spec)
{
    char **const texts[] = {&spec->launcher, &spec->mpi, &spec->container, &spec->scratch};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        free(*texts[i]);
        *texts[i] = NULL;
    }
}

static int take_data(struct service *s, struct act_error *err)
{
    struct run_spec *spec = &s->rank.node.spec;
    int rc = 0;

    for (size_t i = 0; i < s->folders.n && rc == 0; i++)
        rc = service_take_folder(spec, s->folders.v[i], err);
    for (size_t i = 0; i < spec->n_folders && rc == 0; i++)
        if (!spec->folders[i].link)
            rc = act_error_set(err, ACT_USAGE, "the job says nothing of folder '%s': '--folder %zu=PATH' is missing",
                               spec->folders[i].name, i);
    if (rc == 0 && spec->package_sha256[0] && !s->package)
        rc = act_error_set(err, ACT_USAGE, "the run has a package, and '--package FILE' is missing");
    s->rank.node.package = s->package ? absolute(s->package) : NULL;
    return rc;
}

/* Shared by all ranks that were started together, and by no others. New string. */
static char *find_launch(const struct rank_place *place)
{
    static const char *const names[] = {"PMIX_NAMESPACE", "OMPI_MCA_orte_precondition_transports", "PMIX_SERVER_URI2",
                                        "PMIX_SERVER_URI4"};
    enum { SHOWN = 12 };
    ACT_AUTOFREE char *now = act_sprintf("%lld %d", (long long)act_now_unix_ns(), (int)getpid());
    struct act_sha256 h;
    char hex[ACT_SHA256_HEX];

    act_sha256_init(&h);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);
        if (value)
            act_sha256_add(&h, value, strlen(value) + 1);
    }
    if (place->world_size == 1)
        act_sha256_add(&h, now, strlen(now));
    act_sha256_done(&h, hex);
    return act_strndup(hex, SHOWN);
}

static int service_join_run(struct service *s, struct act_error *err)
{
    static char who[RANK_WHO]; /* the log keeps it */
    struct rank *r = &s->rank;
    int rc = node_read(&r->node, s->spec, who, err);

    if (rc < 0)
        return rc;
    forget_launcher(&r->node.spec);
    rc = take_data(s, err);
    return rc < 0 ? rc : rank_find_place(r, who, err);
}

/* ---- inside */

/* 'a why' reads this line if it has nothing but the logs. */
static void service_print_failure(const struct rank *r)
{
    const struct node_record *record = &r->record;
    char when[ACT_TIME_TEXT];

    act_time_to_iso_ns(record->ended_unix_ns, when);
    dprintf(r->log_fd, "act: rank %d on node %s ", record->rank, record->node);
    if (record->signal)
        dprintf(r->log_fd, "was killed by signal %d (%s) at %s\n", record->signal,
                sigdescr_np(record->signal) ? sigdescr_np(record->signal) : "unknown", when);
    else
        dprintf(r->log_fd, "exited with status %d at %s\n", record->exit_status, when);
}

/* Fits struct rank. */
static void service_report_failure(struct rank *r)
{
    if (record_failed(&r->record))
        service_print_failure(r);
    if (r->record.kept)
        dprintf(r->log_fd, "act: the node is kept for a look; abort the run to release it\n");
}

/* Fits struct watch: nothing is ever written to the pipe. */
static bool outer_is_gone(void *arg)
{
    struct rank *r = arg;

    r->watch.extra_fd = -1;
    rank_stop(r, "the end of the process that the service knows");
    if (!r->kill_at_ms)
        r->kill_at_ms = act_now_monotonic_ms() + GONE_GRACE_MS;
    return true;
}

static int service_work(struct service *s)
{
    struct rank *r = &s->rank;
    struct act_error err;
    int rc = watch_open(&r->watch, &err);

    r->watch.extra_fd = s->life[0];
    r->watch.extra = outer_is_gone;
    r->watch.extra_arg = r;
    r->node.launch = find_launch(&r->place);
    if (rc == 0)
        rc = attempt_open_private(&r->node, &r->place, &err);
    if (rc == 0)
        rc = env_set_of_service(&r->node, &r->place, &err);
    if (rc == 0 && r->place.local_rank == 0)
        metrics_report(&r->node, r->log_fd);
    if (rc == 0)
        return rank_work(r);
    rank_fail(r, ACT_WRAPPER, act_error_text(&err));
    return ACT_WRAPPER;
}

/* Fits struct child. */
static int service_run_inside(void *arg)
{
    struct service *s = arg;

    close(s->life[1]);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGPIPE, SIG_IGN); /* the reader of our output may exit first */
    struct act_error err;
    int exit_status = service_work(s);
    int rc = rank_end(&s->rank, &err);
    return exit_status || rc == 0 ? exit_status : ACT_WRAPPER;
}

/* ---- outside */

static int watch_inside(struct service *s, struct act_error *err)
{
    struct watch watch;
    int sig = 0, status = 0, rc = watch_open(&watch, err);

    if (rc == 0 && pipe2(s->life, O_CLOEXEC) < 0)
        rc = act_error_errno(err, errno, "cannot make a pipe");
    if (rc < 0)
        return rc;
    pid_t pid = child_start(&(struct child){.run = service_run_inside, .arg = s, .out_fd = -1, .guarded = true});
    if (pid < 0)
        return act_error_errno(err, errno, "cannot start a process");
    close(s->life[0]);
    while (sig != SIGCHLD || !child_reap(pid, &status)) {
        if (watch_wait(&watch, -1, &sig) == WATCH_SIGNAL && sig != SIGCHLD)
            kill(pid, sig);
    }
    child_kill_all(); /* if the inner process was killed itself */
    return child_exit_status(status);
}

/* The job copies the agent to where it may be executed (see azureml_job_command()); once it runs, the name is not
 * needed. */
static void remove_copy(void)
{
    static const char copies[] = "/tmp/act-node.";
    char self[PATH_MAX] = "";

    if (readlink("/proc/self/exe", self, sizeof(self) - 1) > 0 && act_starts_with(self, copies))
        unlink(self);
}

int node_job(int argc, char **argv)
{
    struct service s = {.rank = {.log_fd = STDERR_FILENO,
                                 .out_fd = -1,
                                 .room.fd = -1,
                                 .grace_ms = node_abort_grace_ms(),
                                 .report = service_report_failure}};
    struct act_error err;

    if (!service_parse(argc, argv, &s)) {
        fputs(usage, stderr);
        return ACT_USAGE;
    }
    remove_copy();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int rc = service_join_run(&s, &err);
    if (rc == 0)
        rc = watch_inside(&s, &err);
    if (rc < 0)
        fprintf(stderr, "act: %s\n", act_error_text(&err));
    act_strv_release(&s.folders);
    record_release(&s.rank.record);
    node_release(&s.rank.node);
    return rc < 0 ? ACT_WRAPPER : rc;
}
