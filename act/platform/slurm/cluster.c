/* cluster.c - the nodes of a run, a shell on one of them, the load of the cluster, and the jobs of all users. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "platform/slurm/slurm_internal.h"

#define FIELD(name) name ":" SLURM_SEPARATOR ","
#define LAST(name)  name ":" SLURM_SEPARATOR

/* ---- nodes ---- */

static void slurm_cluster_add_node(struct platform_nodes *nodes, const char *name, int procs_per_node)
{
    int rank = (int)nodes->n;

    ACT_PUSH(
        nodes->v, nodes->n,
        (struct platform_node){
            .name = act_strdup(name), .rank = rank, .first_rank = rank * procs_per_node, .n_ranks = procs_per_node});
}

static struct platform_node *slurm_cluster_find_node(const struct platform_nodes *nodes, const char *name)
{
    for (size_t i = 0; i < nodes->n; i++)
        if (strcmp(nodes->v[i].name, name) == 0)
            return &nodes->v[i];
    return NULL;
}

static void slurm_cluster_add_nodes(const char *list, int procs_per_node, struct platform_nodes *out)
{
    ACT_AUTO(act_strv) names = {0};

    slurm_hosts(list, &names);
    for (size_t i = 0; i < names.n; i++)
        slurm_cluster_add_node(out, names.v[i], procs_per_node);
}

static int by_node_name(const void *a, const void *b)
{
    const struct platform_node *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

static int against_name(const void *name, const void *node)
{
    return strcmp(name, (*(const struct platform_node *const *)node)->name);
}

/* Returns the nodes sorted by name. New memory. */
static struct platform_node **sort_nodes(const struct platform_nodes *nodes)
{
    struct platform_node **sorted = act_calloc(nodes->n, sizeof(struct platform_node *));

    for (size_t i = 0; i < nodes->n; i++)
        sorted[i] = &nodes->v[i];
    qsort(sorted, nodes->n, sizeof(struct platform_node *), by_node_name);
    return sorted;
}

/* "     Nodes=n[1-2] CPU_IDs=6-7 Mem=128 GRES=gpu:2(IDX:0-1)": the same on each of these nodes. */
static void read_resources(const char *line, struct platform_node *const *by_name, size_t n)
{
    ACT_AUTOFREE char *list = slurm_job_value(line, "Nodes");
    ACT_AUTOFREE char *gres = slurm_job_value(line, "GRES");
    ACT_AUTO(act_strv) names = {0};

    if (!list || !gres)
        return;
    slurm_hosts(list, &names);
    for (size_t i = 0; i < names.n; i++) {
        struct platform_node **found = bsearch(names.v[i], by_name, n, sizeof(struct platform_node *), against_name);
        if (!found)
            continue;
        struct platform_node *node = *found;
        node->gpus = slurm_gpus(gres);
        free(node->gpu_ids);
        node->gpu_ids = slurm_gpu_ids(gres);
    }
}

void slurm_nodes_from_scontrol(const char *text, int procs_per_node, struct platform_nodes *out)
{
    ACT_AUTOFREE char *list = slurm_job_value(text, "NodeList");

    if (!list)
        return;
    slurm_cluster_add_nodes(list, procs_per_node, out);
    struct platform_node **sorted = sort_nodes(out);
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");
        ACT_AUTOFREE char *one = act_strndup(line, len);
        if (act_starts_with(one + strspn(one, " "), "Nodes="))
            read_resources(one, sorted, out->n);
        line += len + (line[len] == '\n');
    }
    free(sorted);
}

#define NODE_STATES(list)                                                                                              \
    {                                                                                                                  \
        "sinfo", "--noheader", "-N", "-n", list, "-O", FIELD("NodeList") FIELD("StateLong") LAST("NodeAddr"), NULL     \
    }

/* list: the nodes, as Slurm writes them; NULL: those in nodes. */
static int slurm_cluster_read_node_states(struct slurm *s, const char *list, struct platform_nodes *nodes,
                                          struct act_error *err)
{
    ACT_AUTO(act_buf) names = {0};
    char *f[3];

    for (size_t i = 0; i < nodes->n; i++)
        act_buf_addf(&names, "%s%s", i ? "," : "", nodes->v[i].name);
    const char *const argv[] = NODE_STATES(list ? list : names.data);
    ACT_AUTOFREE char *text = NULL;
    int rc = slurm_run(s, argv, &text, err);
    for (char *at = text; rc == 0 && slurm_next_row(&at, f, 3);) {
        struct platform_node *node = slurm_cluster_find_node(nodes, f[0]);
        if (!node || node->state) /* it is in several partitions */
            continue;
        node->state = slurm_node_state(f[1]);
        node->address = *f[2] ? act_strdup(f[2]) : NULL;
    }
    for (size_t i = 0; i < nodes->n; i++)
        if (!nodes->v[i].state)
            nodes->v[i].state = act_strdup("unknown");
    return rc;
}

/* Asks for what these programs print at the same time. */
static void slurm_cluster_ask_ahead(struct slurm *s, const char *const *const *programs, size_t n)
{
    struct act_error ignored;
    struct site *site;

    if (slurm_site(s, &site, &ignored) < 0 || !site_ahead(site))
        return;
    for (size_t i = 0; i < n; i++) {
        ACT_AUTOFREE char *text = NULL;
        (void)!slurm_run(s, programs[i], &text, &ignored); /* it is not known yet */
    }
    site_ahead_end(site);
}

/* If Slurm has forgotten the job, or, while it ends, the nodes already released: the node list that it gave the
 * agent. */
static void nodes_from_hostfile(struct slurm *s, const char *id, int procs_per_node, struct platform_nodes *out)
{
    struct platform_nodes all = {0};
    ACT_AUTOFREE char *text = NULL;
    struct act_error ignored;

    if (site_read_text(s->site, id, RUN_FILE_HOSTS, &text, &ignored) < 0)
        return; /* it never started */
    for (char *at = text, *line; (line = strsep(&at, "\n"));) {
        line[strcspn(line, " \t")] = '\0';
        if (*line && !slurm_cluster_find_node(&all, line))
            slurm_cluster_add_node(&all, line, procs_per_node);
    }
    if (all.n > out->n) {
        platform_nodes_release(out);
        *out = all;
    } else {
        platform_nodes_release(&all);
    }
}

static int slurm_cluster_nodes_of(struct slurm *s, const char *id, const struct run_spec *spec,
                                  const struct slurm_view *view, struct platform_nodes *out, struct act_error *err)
{
    struct act_error ignored;
    ACT_AUTOFREE char *job = slurm_task_text(view->job, view->task);
    const char *const argv[] = {"scontrol", "show", "job", "-d", job, NULL};
    const char *list = view->nodes && strcmp(view->nodes, "None assigned") != 0 ? view->nodes : NULL;
    const char *const states[] = NODE_STATES(list);
    ACT_AUTOFREE char *text = NULL;
    if (view->job && view->step < 0 && list)
        slurm_cluster_ask_ahead(s, (const char *const *const[]){argv, states}, 2);
    if (view->job && view->step < 0 && slurm_run(s, argv, &text, &ignored) == 0)
        slurm_nodes_from_scontrol(text, spec->procs_per_node, out);
    if (out->n == 0 && list)
        slurm_cluster_add_nodes(list, spec->procs_per_node, out);
    if (out->n < (size_t)spec->nodes && view->status.state != RUN_QUEUED) {
        nodes_from_hostfile(s, id, spec->procs_per_node, out);
        list = NULL;
    }
    for (size_t i = 0; i < out->n; i++)
        if (!out->v[i].gpus && slurm_has_gpus(s))
            out->v[i].gpus = spec->gpus_per_node;
    return out->n ? slurm_cluster_read_node_states(s, list, out, err) : 0;
}

/* Sends the question for the specification of a run, which is under way while its state is asked for. */
static int slurm_spec_ahead(struct platform *p, const char *id, struct act_error *err)
{
    ACT_AUTO(run_spec) spec = {0};
    struct act_error ignored;
    int rc = platform_ahead(p, err);

    if (rc <= 0)
        return rc;
    (void)!slurm_spec(p, id, &spec, &ignored); /* it is not known yet */
    platform_ahead_end(p);
    return 0;
}

int slurm_nodes(struct platform *p, const char *id, struct platform_nodes *out, struct act_error *err)
{
    ACT_AUTO(run_spec) spec = {0};
    struct slurm_view view;
    int rc = slurm_spec_ahead(p, id, err);

    if (rc == 0)
        rc = slurm_look_one(slurm_of(p), id, &view, err);
    if (rc < 0)
        return rc;
    rc = slurm_spec(p, id, &spec, err);
    if (rc == 0)
        rc = slurm_cluster_nodes_of(slurm_of(p), id, &spec, &view, out, err);
    slurm_views_release(&view, 1);
    return rc;
}

/* ---- shell ---- */

static int find_shell_node(const char *id, const char *name, const struct platform_nodes *nodes,
                           const struct platform_node **out, struct act_error *err)
{
    ACT_AUTO(act_buf) names = {0};

    if (nodes->n == 0 || !nodes->v)
        return act_error_set(err, ACT_TEMPORARY, "the nodes of run '%s' are not known yet", id);
    *out = name ? slurm_cluster_find_node(nodes, name) : nodes->v;
    for (size_t i = 0; !*out && i < nodes->n; i++)
        act_buf_addf(&names, "%s%s", i ? ", " : "", nodes->v[i].name);
    return *out ? 0 : act_error_set(err, ACT_NOT_FOUND, "run '%s' has no node '%s'; it has %s", id, name, names.data);
}

/* The agent's scratch folder is named after the user's uid, which only the node knows. There is no code root while the
 * node is prepared. */
static void push_code_root(const struct slurm *s, const struct run_spec *spec, const struct platform_node *node,
                           struct act_strv *out)
{
    ACT_AUTOFREE char *run = site_run_dir(s->site, spec->id);

    act_strv_push(out, "bash");
    act_strv_push(out, "-c");
    act_strv_push(out, spec->scratch ? "cd -- \"${0%%//*}/act-$UID/${0##*//}\" 2>/dev/null; exec \"$@\""
                                     : "cd -- \"$0\" 2>/dev/null; exec \"$@\"");
    if (spec->scratch)
        act_strv_pushf(out, "%s//%s/%d/%s", spec->scratch, spec->id, node->rank, RUN_DIR_CODE);
    else if (spec->nodes > 1)
        act_strv_pushf(out, "%s/%s/%d/%s", run, RUN_DIR_NODES, node->rank, RUN_DIR_CODE);
    else
        act_strv_pushf(out, "%s/%s", run, RUN_DIR_CODE);
}

static void slurm_cluster_shell_words(const struct slurm *s, const struct run_spec *spec, const char *job,
                                      const struct platform_node *node, const struct act_strv *command,
                                      struct act_strv *out)
{
    act_strv_push(out, "srun");
    act_strv_pushf(out, "--jobid=%s", job);
    act_strv_push(out, "--overlap");
    act_strv_push(out, "--nodes=1");
    act_strv_push(out, "--ntasks=1");
    act_strv_pushf(out, "--nodelist=%s", node->name);
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) /* else redirected output would get a terminal's line ends */
        act_strv_push(out, "--pty");
    else
        act_strv_push(out, "--unbuffered"); /* else srun holds back what does not end a line */
    push_code_root(s, spec, node, out);
    act_strv_push(out, "env");
    act_strv_pushf(out, "ACT_RUN_ID=%s", spec->id);
    for (size_t i = 0; i < spec->n_env; i++)
        if (spec->env[i].value)
            act_strv_pushf(out, "%s=%s", spec->env[i].name, spec->env[i].value);
    act_strv_copy(out, command->v, command->n);
    if (command->n == 0) {
        act_strv_push(out, "bash");
        act_strv_push(out, "-l");
    }
}

/* srun does not take "5_3": a task that runs has a number of its own. New string. */
static char *own_number(struct slurm *s, const struct slurm_view *view)
{
    ACT_AUTOFREE char *job = slurm_task_text(view->job, view->task);
    const char *const argv[] = {"scontrol", "show", "job", job, NULL};
    ACT_AUTOFREE char *text = NULL;
    struct act_error ignored;
    char *own = view->task >= 0 && slurm_run(s, argv, &text, &ignored) == 0 ? slurm_job_value(text, "JobId") : NULL;

    return own ? own : act_strdup(job);
}

static int shell_of(struct slurm *s, const struct run_spec *spec, const char *node, const struct act_strv *command,
                    struct act_strv *out_argv, struct act_error *err)
{
    const struct platform_node *where = NULL;
    ACT_AUTO(platform_nodes) nodes = {0};
    ACT_AUTO(act_strv) words = {0};
    struct slurm_view view;
    int rc = slurm_look_one(s, spec->id, &view, err);

    if (rc == 0 && view.status.state != RUN_RUNNING)
        rc = act_error_set(err, ACT_FAIL, "run '%s' is not running: it is %s", spec->id,
                           run_state_name(view.status.state));
    if (rc == 0)
        rc = slurm_cluster_nodes_of(s, spec->id, spec, &view, &nodes, err);
    if (rc == 0)
        rc = find_shell_node(spec->id, node, &nodes, &where, err);
    if (rc == 0 && where) {
        ACT_AUTOFREE char *job = own_number(s, &view);
        slurm_cluster_shell_words(s, spec, job, where, command, &words);
        site_shell_words(s->site, &words, out_argv);
    }
    slurm_views_release(&view, 1);
    return rc;
}

int slurm_shell(struct platform *p, const char *id, const char *node, const struct act_strv *command,
                struct platform_shell *out, struct act_error *err)
{
    struct slurm *s = slurm_of(p);
    ACT_AUTO(run_spec) spec = {0};
    int rc = slurm_spec(p, id, &spec, err);

    out->sees = s->config.login ? OF_SSH : OF_JOB; /* srun would take what another job says of itself for the step */
    if (rc == 0)
        rc = shell_of(s, &spec, node, command, &out->argv, err);
    return rc;
}

int slurm_agent(struct platform *p, const char *id, const char *node, char **out, struct act_error *err)
{
    (void)id;
    (void)node;
    return site_agent(slurm_of(p)->site, out, err);
}

/* ---- summary ---- */

enum use { IDLE, BUSY, DOWN };

static const struct {
    const char *state;
    enum use use;
} uses[] = {
    {"idle", IDLE},       {"planned", IDLE},    {"allocated", BUSY}, {"mixed", BUSY},
    {"completing", BUSY}, {"allocating", BUSY}, {"comp", BUSY},      {"alloc", BUSY},
};

/* Returns the use of a node. All states that are not listed are unusable: down, drained, maint, reserved, ... */
static enum use slurm_cluster_use_of(const char *state)
{
    ACT_AUTOFREE char *word = slurm_node_state(state);

    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
        if (strcmp(word, uses[i].state) == 0)
            return uses[i].use;
    return DOWN;
}

enum { N_NAME, N_STATE, N_CPUS, N_GRES, N_USED, N_PARTITION, N_COUNT };
static const char sinfo_fields[] =
    FIELD("NodeList") FIELD("StateLong") FIELD("CPUsState") FIELD("Gres") FIELD("GresUsed") LAST("Partition");

/* A node, from one row. */
struct seen {
    const char *name;
    enum use use;
    int all, busy, idle;
};

/* CPUsState is allocated/idle/other/total. */
static struct seen read_seen(char *const *f, bool has_gpus)
{
    struct seen n = {.name = f[N_NAME], .use = slurm_cluster_use_of(f[N_STATE])};
    int other = 0;

    if (has_gpus) {
        n.all = slurm_gpus(f[N_GRES]);
        n.busy = slurm_gpus(f[N_USED]);
    } else if (sscanf(f[N_CPUS], "%9d/%9d/%9d/%9d", &n.busy, &n.idle, &other, &n.all) != 4) {
        n.busy = n.all = 0;
    }
    n.all = slurm_count(n.all);
    n.busy = n.busy < n.all ? slurm_count(n.busy) : n.all;
    n.idle = n.use == DOWN ? 0 : n.all - n.busy;
    return n;
}

static void slurm_cluster_add(int *sum, int n)
{
    if (__builtin_add_overflow(*sum, n, sum))
        *sum = INT_MAX;
}

static void count_seen(const struct seen *n, struct platform_pool *pool)
{
    pool->nodes++;
    pool->nodes_idle += n->use == IDLE;
    pool->nodes_busy += n->use == BUSY;
    pool->nodes_down += n->use == DOWN;
    slurm_cluster_add(&pool->gpus, n->all);
    slurm_cluster_add(&pool->gpus_busy, n->busy);
    slurm_cluster_add(&pool->gpus_idle, n->idle);
    slurm_cluster_add(&pool->gpus_down, n->all - n->busy - n->idle);
}

static struct platform_pool *slurm_cluster_find_pool(const struct platform_summary *summary, const char *name,
                                                     size_t len)
{
    for (size_t i = 0; i < summary->n_pools; i++)
        if (strlen(summary->pools[i].name) == len && strncmp(summary->pools[i].name, name, len) == 0)
            return &summary->pools[i];
    return NULL;
}

/* Returns the pool of a partition, and makes it if it is not there; "main*" is Slurm's own default. */
static struct platform_pool *slurm_cluster_pool_of(struct platform_summary *summary, const char *partition)
{
    size_t len = strlen(partition);
    bool is_default = len && partition[len - 1] == '*';
    struct platform_pool *pool = slurm_cluster_find_pool(summary, partition, len - is_default);

    if (pool)
        return pool;
    ACT_GROW(summary->pools, summary->n_pools);
    pool = &summary->pools[summary->n_pools++];
    *pool = (struct platform_pool){.name = act_strndup(partition, len - is_default), .is_default = is_default};
    return pool;
}

void slurm_summary_from_sinfo(char *text, bool has_gpus, struct platform_summary *out)
{
    ACT_AUTOFREE struct seen *nodes = NULL;
    size_t n = 0;
    char *f[N_COUNT];

    out->has_gpus = has_gpus;
    while (slurm_next_row(&text, f, N_COUNT)) {
        ACT_GROW(nodes, n);
        nodes[n] = read_seen(f, has_gpus);
        count_seen(&nodes[n++], slurm_cluster_pool_of(out, f[N_PARTITION]));
    }
    if (n) /* a node is listed once per partition */
        qsort(nodes, n, sizeof(*nodes), act_by_text);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || strcmp(nodes[i - 1].name, nodes[i].name) != 0)
            count_seen(&nodes[i], &out->total);
}

enum { Q_STATE, Q_NODES, Q_CPUS, Q_PER_NODE, Q_PER_JOB, Q_ALLOCATED, Q_PARTITION, Q_COUNT };
static const char queue_fields[] = FIELD("State") FIELD("NumNodes") FIELD("NumCPUs") FIELD("tres-per-node")
    FIELD("tres-per-job") FIELD("tres-alloc") LAST("Partition");

/* The GPUs that a job has or requests. Slurm counts GPUs in "tres-alloc" only if the site has configured that. */
static int job_gpus(const char *nodes, const char *per_node, const char *per_job, const char *allocated)
{
    int counted = slurm_gpus(allocated), on_each = slurm_gpus(per_node);

    if (counted)
        return counted;
    return on_each ? slurm_count(on_each * (int64_t)slurm_count(strtol(nodes, NULL, 10))) : slurm_gpus(per_job);
}

static void slurm_cluster_count_job(bool runs, int gpus, struct platform_pool *pool)
{
    pool->jobs_running += runs;
    pool->jobs_queued += !runs;
    slurm_cluster_add(&pool->gpus_queued, runs ? 0 : gpus);
}

/* A pending job may name several partitions. */
void slurm_summary_add_queue(char *text, struct platform_summary *out)
{
    char *f[Q_COUNT];

    while (slurm_next_row(&text, f, Q_COUNT)) {
        bool runs = slurm_state_of(f[Q_STATE]) == RUN_RUNNING;
        int gpus = out->has_gpus ? job_gpus(f[Q_NODES], f[Q_PER_NODE], f[Q_PER_JOB], f[Q_ALLOCATED])
                                 : slurm_count(strtol(f[Q_CPUS], NULL, 10));
        slurm_cluster_count_job(runs, gpus, &out->total);
        for (const char *at = f[Q_PARTITION]; *at;) {
            size_t len = strcspn(at, ",");
            struct platform_pool *pool = slurm_cluster_find_pool(out, at, len);
            if (pool)
                slurm_cluster_count_job(runs, gpus, pool);
            at += len + (at[len] == ',');
        }
    }
}

/* Marks the partition that runs of this configuration go to. */
static void slurm_cluster_mark_default(const struct slurm *s, struct platform_summary *summary)
{
    for (size_t i = 0; s->config.partition && i < summary->n_pools; i++)
        summary->pools[i].is_default = strcmp(summary->pools[i].name, s->config.partition) == 0;
}

int slurm_summary(struct platform *p, struct platform_summary *out, struct act_error *err)
{
    const char *const nodes[] = {"sinfo", "--noheader", "-N", "-O", sinfo_fields, NULL};
    const char *const jobs[] = {"squeue", "--noheader", "--array", "--states=PENDING,RUNNING",
                                "-O",     queue_fields, NULL};
    struct slurm *s = slurm_of(p);
    ACT_AUTOFREE char *node_text = NULL;
    ACT_AUTOFREE char *job_text = NULL;

    slurm_cluster_ask_ahead(s, (const char *const *const[]){nodes, jobs}, 2);
    int rc = slurm_run(s, nodes, &node_text, err);

    if (rc == 0)
        rc = slurm_run(s, jobs, &job_text, err);
    if (rc < 0)
        return rc;
    slurm_summary_from_sinfo(node_text, slurm_has_gpus(s), out);
    slurm_summary_add_queue(job_text, out);
    slurm_cluster_mark_default(s, out);
    out->total.name = act_strdup("all");
    return 0;
}

/* ---- jobs ---- */

enum { J_ID, J_USER, J_LIST, J_USED, J_LIMIT, J_NODES, J_PER_NODE, J_PER_JOB, J_ALLOCATED, J_NAME, J_COUNT };
static const char running_fields[] = FIELD("JobArrayID") FIELD("UserName") FIELD("NodeList") FIELD("TimeUsed")
    FIELD("TimeLimit") FIELD("NumNodes") FIELD("tres-per-node") FIELD("tres-per-job") FIELD("tres-alloc") LAST("Name");

void slurm_jobs_of_all(char *text, struct platform_jobs *out)
{
    char *f[J_COUNT];

    while (slurm_next_row(&text, f, J_COUNT)) {
        ACT_PUSH(out->v, out->n,
                 (struct platform_job){
                     .id = act_strdup(f[J_ID]),
                     .user = act_strdup(f[J_USER]),
                     .name = act_strdup(f[J_NAME]),
                     .nodes_text = act_strdup(f[J_LIST]),
                     .running_s = slurm_duration(f[J_USED]),
                     .limit_s = slurm_duration(f[J_LIMIT]),
                     .nodes = slurm_count(strtol(f[J_NODES], NULL, 10)),
                     .gpus = job_gpus(f[J_NODES], f[J_PER_NODE], f[J_PER_JOB], f[J_ALLOCATED]),
                 });
    }
    platform_jobs_sort(out);
}

int slurm_jobs(struct platform *p, struct platform_jobs *out, struct act_error *err)
{
    const char *const argv[] = {"squeue", "--noheader", "--array", "--states=RUNNING", "-O", running_fields, NULL};
    ACT_AUTOFREE char *text = NULL;
    int rc = slurm_run(slurm_of(p), argv, &text, err);

    if (rc == 0)
        slurm_jobs_of_all(text, out);
    return rc;
}

/* ---- what a run may be placed on ---- */

static bool has_partition(const char *list, const char *name)
{
    size_t len = strlen(name);

    for (; *list; list += strcspn(list, ","), list += *list == ',')
        if (strncmp(list, name, len) == 0 && (list[len] == ',' || list[len] == '\0'))
            return true;
    return false;
}

void slurm_nodes_of_partition(char *text, const char *partition, struct act_strv *out)
{
    for (char *at = text, *line; (line = strsep(&at, "\n"));) {
        char *name = strsep(&line, " ");
        if (!line || act_strv_has(out, name))
            continue;
        size_t len = strlen(line);
        bool is_default = len > 0 && line[len - 1] == '*';
        line[len - is_default] = '\0';
        if (partition ? has_partition(partition, line) : is_default)
            act_strv_push(out, name);
    }
}

/* Adds the names in a list such as "n[1-3,5]". */
static int slurm_cluster_expand(struct slurm *s, const char *list, struct act_strv *out, struct act_error *err)
{
    const char *const argv[] = {"scontrol", "show", "hostnames", list, NULL};
    ACT_AUTOFREE char *text = NULL;
    int rc = list ? slurm_run(s, argv, &text, err) : 0;

    for (char *at = text, *line; rc == 0 && (line = strsep(&at, "\n"));)
        if (*line)
            act_strv_push(out, line);
    return rc;
}

int slurm_usable_nodes(struct platform *p, const struct run_spec *spec, struct act_strv *out, struct act_error *err)
{
    static const char *const argv[] = {"sinfo",    "--noheader", "--Node", "--states", "idle,alloc,mix,comp",
                                       "--format", "%N %P",      NULL};
    struct slurm *s = slurm_of(p);
    ACT_AUTO(act_strv) excluded = {0}, all = {0};
    ACT_AUTOFREE char *text = NULL;

    (void)spec;
    if (s->config.nodelist) /* it must have these */
        return 0;
    int rc = slurm_run(s, argv, &text, err);
    if (rc == 0)
        rc = slurm_cluster_expand(s, s->config.exclude, &excluded, err);
    if (rc == 0)
        slurm_nodes_of_partition(text, s->config.partition, &all);
    for (size_t i = 0; i < all.n; i++)
        if (!act_strv_has(&excluded, all.v[i]))
            act_strv_push(out, all.v[i]);
    return rc;
}
