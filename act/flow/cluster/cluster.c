/* cluster.c - where a run is, and what a cluster is doing. */
#include <string.h>

#include "base/units.h"
#include "config/config.h"
#include "flow/cluster/cluster.h"
#include "flow/flow_internal.h"

int flow_nodes(struct flow *flow, const struct flow_run *run, struct platform_nodes *out, struct act_error *err)
{
    struct platform *platform;
    int rc = flow_platform_of(flow, &run->row, &platform, err);

    *out = (struct platform_nodes){0};
    if (rc == 0)
        rc = platform_nodes(platform, run->row.id, out, err);
    return rc < 0 ? act_error_prefix(err, "cannot find out the nodes of '%s'", run->row.id) : 0;
}

/* ---- shell */

static int no_such_node(const struct flow_run *run, const char *node, const struct platform_nodes *nodes,
                        struct act_error *err)
{
    enum { SHOWN = 8 };
    ACT_AUTO(act_buf) names = {0};

    for (size_t i = 0; i < nodes->n && i < SHOWN; i++)
        act_buf_addf(&names, "%s%s", i ? ", " : "", nodes->v[i].name);
    return act_error_set(err, ACT_NOT_FOUND, "run '%s' has no node '%s'; it has %zu: %s%s", run->row.id, node, nodes->n,
                         names.data ? names.data : "none yet", nodes->n > SHOWN ? ", ..." : "");
}

/* The name of the node that has this name or number. New string. */
static int cluster_find_node(struct flow *flow, const struct flow_run *run, const char *node, char **out,
                             struct act_error *err)
{
    ACT_AUTO(platform_nodes) nodes = {0};
    int64_t number = -1;
    int rc = flow_nodes(flow, run, &nodes, err);

    if (rc < 0)
        return rc;
    *out = NULL;
    for (size_t i = 0; i < nodes.n && !*out; i++)
        if (strcmp(nodes.v[i].name, node) == 0)
            *out = act_strdup(node);
    if (!*out && act_int_from_text(node, &number) && number >= 0 && (size_t)number < nodes.n)
        *out = act_strdup(nodes.v[number].name);
    if (!*out)
        rc = no_such_node(run, node, &nodes, err);
    return rc;
}

/* Finds where a running run is, and the name of its node; NULL: the first. */
static int cluster_reach_node(struct flow *flow, const struct flow_run *run, const char *node,
                              struct platform **platform, char **out_name, struct act_error *err)
{
    *out_name = NULL;
    if (run->status.state != RUN_RUNNING)
        return act_error_set(err, ACT_FAIL, "run '%s' is %s: only the nodes of a running run can be reached",
                             run->row.id, run_state_name(run->status.state));
    int rc = node ? cluster_find_node(flow, run, node, out_name, err) : 0;
    return rc < 0 ? rc : flow_platform_of(flow, &run->row, platform, err);
}

int flow_shell(struct flow *flow, const struct flow_run *run, const char *node, const struct act_strv *command,
               struct platform_shell *out, struct act_error *err)
{
    ACT_AUTOFREE char *name = NULL;
    struct platform *platform = NULL;
    int rc = cluster_reach_node(flow, run, node, &platform, &name, err);

    return rc < 0 ? rc : platform_shell(platform, run->row.id, name, command, out, err);
}

int flow_agent(struct flow *flow, const struct flow_run *run, const char *node, const struct act_strv *command,
               struct platform_shell *out, struct act_error *err)
{
    ACT_AUTO(act_strv) words = {0};
    ACT_AUTOFREE char *name = NULL;
    struct platform *platform = NULL;
    char *agent = NULL;
    int rc = cluster_reach_node(flow, run, node, &platform, &name, err);

    if (rc == 0)
        rc = platform_agent(platform, run->row.id, name, &agent, err);
    if (rc < 0)
        return rc;
    act_strv_take(&words, agent);
    act_strv_copy(&words, command->v, command->n);
    return platform_shell(platform, run->row.id, name, &words, out, err);
}

int flow_shell_at(struct flow *flow, const char *address, const struct act_strv *command, struct platform_shell *out,
                  struct act_error *err)
{
    struct platform *platform;
    int rc = flow_platform(flow, &platform, err);

    return rc < 0 ? rc : platform_shell(platform, NULL, address, command, out, err);
}

/* ---- what the cluster is doing */

static int count_own(struct flow *flow, struct flow_summary *out, struct act_error *err)
{
    const struct config *c = flow->config;
    /* this machine is one place, whatever the clusters are called that use it */
    struct flow_table table = {.platform = c->platform,
                               .cluster = platform_find(c->platform)->about.is_here ? NULL : c->cluster,
                               .own = true,
                               .active = true};
    struct flow_runs runs;
    int rc = flow_list_runs(flow, &table, &runs, err);

    for (size_t i = 0; rc == 0 && i < runs.n; i++) {
        out->running += runs.v[i].status.state == RUN_RUNNING;
        out->queued += runs.v[i].status.state == RUN_QUEUED;
    }
    if (rc == 0)
        flow_runs_release(&runs);
    return rc;
}

int flow_summary(struct flow *flow, struct flow_summary *out, struct act_error *err)
{
    struct platform *platform;
    int rc = flow_platform(flow, &platform, err);

    *out = (struct flow_summary){0};
    if (rc == 0)
        rc = platform_summary(platform, &out->cluster, err);
    if (rc == 0)
        rc = count_own(flow, out, err);
    if (rc == 0)
        platform_gpus(platform, &out->gpus);
    if (rc < 0)
        platform_summary_release(&out->cluster);
    return rc < 0 ? act_error_prefix(err, "cannot find out what cluster '%s' is doing", flow->config->cluster) : 0;
}

int flow_jobs(struct flow *flow, struct platform_jobs *out, struct act_error *err)
{
    struct platform *platform;
    int rc = flow_platform(flow, &platform, err);

    *out = (struct platform_jobs){0};
    if (rc == 0)
        rc = platform_jobs(platform, out, err);
    return rc < 0 ? act_error_prefix(err, "cannot list the jobs of cluster '%s'", flow->config->cluster) : 0;
}
