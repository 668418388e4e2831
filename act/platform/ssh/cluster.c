/* cluster.c - what the machines are doing: their load, their runs, the node of a run. */
#include <string.h>

#include "codec/fields.h"
#include "codec/json.h"
#include "platform/ssh/ssh_internal.h"

/* ---- summary ---- */

static struct platform_pool pool_of(const struct hosts_host *h)
{
    const struct hosts_facts *f = &h->facts;

    if (h->rc < 0)
        return (struct platform_pool){.name = act_strdup(h->login), .nodes = 1, .nodes_down = 1};
    return (struct platform_pool){
        .name = act_strdup(h->login),
        .nodes = 1,
        .nodes_idle = f->running == 0,
        .nodes_busy = f->running > 0,
        .gpus = f->slots,
        .gpus_idle = f->idle,
        .gpus_busy = f->slots - f->idle,
        .jobs_running = f->running,
        .jobs_queued = f->queued,
        .gpus_queued = f->slots_queued,
    };
}

static void add_pool(const struct platform_pool *pool, struct platform_pool *total)
{
    total->nodes += pool->nodes;
    total->nodes_idle += pool->nodes_idle;
    total->nodes_busy += pool->nodes_busy;
    total->nodes_down += pool->nodes_down;
    total->gpus += pool->gpus;
    total->gpus_idle += pool->gpus_idle;
    total->gpus_busy += pool->gpus_busy;
    total->jobs_running += pool->jobs_running;
    total->jobs_queued += pool->jobs_queued;
    total->gpus_queued += pool->gpus_queued;
}

/* Where some machines have GPUs, those without count as nodes, and their processors do not count. */
static void count_gpus_only(struct platform_summary *out, const struct hosts *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct platform_pool *pool = &out->pools[i];
        if (out->has_gpus && !s->v[i].facts.has_gpus)
            pool->gpus = pool->gpus_idle = pool->gpus_busy = pool->gpus_queued = 0;
    }
}

int hosts_summary(struct platform *p, struct platform_summary *out, struct act_error *err)
{
    struct hosts *s = hosts_of(p);
    int rc = hosts_look(s, true, err);

    if (rc < 0)
        return rc;
    out->pools = act_calloc(s->n, sizeof(*out->pools));
    out->n_pools = s->n;
    for (size_t i = 0; i < s->n; i++) {
        out->pools[i] = pool_of(&s->v[i]);
        out->has_gpus = out->has_gpus || s->v[i].facts.has_gpus;
    }
    count_gpus_only(out, s);
    for (size_t i = 0; i < s->n; i++)
        add_pool(&out->pools[i], &out->total);
    return 0;
}

/* ---- jobs ---- */

static int ask_jobs(struct hosts *s, struct hosts_host *h, void *arg, struct act_error *err)
{
    struct platform_jobs *jobs = &((struct platform_jobs *)arg)[h - s->v];
    CODEC_AUTOJSON json_t *out = NULL;
    int rc = hosts_call(s, h, &(struct hosts_request){.verb = "jobs", .in = json_object()}, &out, err);

    if (rc == 0)
        rc = fields_from_json(&hosts_jobs_fields, out, jobs, err);
    for (size_t i = 0; i < jobs->n; i++)
        act_str_replace(&jobs->v[i].nodes_text, h->login);
    return rc;
}

int hosts_jobs(struct platform *p, struct platform_jobs *out, struct act_error *err)
{
    struct hosts *s = hosts_of(p);
    struct platform_jobs *all = act_calloc(s->n, sizeof(*all));

    hosts_each(s, ask_jobs, all);
    int rc = hosts_warn(s, err);
    for (size_t i = 0; i < s->n; i++) {
        for (size_t k = 0; k < all[i].n; k++)
            ACT_PUSH(out->v, out->n, all[i].v[k]);
        free(all[i].v);
    }
    free(all);
    platform_jobs_sort(out);
    return rc;
}

/* ---- the node of a run ---- */

/* Adds the nodes of a run on one of its machines. */
static int add_nodes_of(struct hosts *s, struct hosts_host *h, const char *id, struct platform_nodes *out,
                        struct act_error *err)
{
    CODEC_AUTOJSON json_t *response = NULL;
    struct platform_nodes nodes = {0};
    int rc =
        hosts_call(s, h, &(struct hosts_request){.verb = "nodes", .in = json_pack("{s:s}", "id", id)}, &response, err);

    if (rc == 0)
        rc = fields_from_json(&hosts_nodes_fields, response, &nodes, err);
    for (size_t i = 0; rc == 0 && i < nodes.n; i++) {
        act_str_replace(&nodes.v[i].address, h->login);
        ACT_PUSH(out->v, out->n, nodes.v[i]);
    }
    free(nodes.v);
    return rc;
}

int hosts_nodes(struct platform *p, const char *id, struct platform_nodes *out, struct act_error *err)
{
    struct hosts *s = hosts_of(p);
    const struct hosts_run *run;
    int rc = hosts_find_all(s, id, &run, err);

    for (size_t i = 0; rc == 0 && i < run->n; i++)
        rc = add_nodes_of(s, run->v[i], id, out, err);
    return rc;
}

/* Finds the machine of a run that has this name as a node; without a name, the first one. */
static int find_node(struct hosts *s, const char *id, const char *node, struct hosts_host **out, struct act_error *err)
{
    ACT_AUTO(platform_nodes) nodes = {0};
    const struct hosts_run *run;
    int rc = hosts_find_all(s, id, &run, err);

    *out = rc < 0 ? NULL : run->v[0];
    for (size_t i = 0; rc == 0 && node && run->n > 1 && i < run->n; i++) {
        size_t n_before = nodes.n;
        rc = add_nodes_of(s, run->v[i], id, &nodes, err);
        if (nodes.n > n_before && strcmp(nodes.v[n_before].name, node) == 0) {
            *out = run->v[i];
            break;
        }
    }
    return rc;
}

int hosts_shell(struct platform *p, const char *id, const char *node, const struct act_strv *command,
                struct platform_shell *out, struct act_error *err)
{
    struct hosts *s = hosts_of(p);
    CODEC_AUTOJSON json_t *response = NULL;
    ACT_AUTO(act_strv) argv = {0};
    struct hosts_host *h;
    int rc = find_node(s, id, node, &h, err);

    if (rc < 0)
        return rc;
    json_t *in = json_pack("{s:s, s:s?, s:o}", "id", id, "node", node, "command", codec_json_strv_new(command));
    rc = hosts_call(s, h, &(struct hosts_request){.verb = "shell", .in = in}, &response, err);
    if (rc < 0)
        return rc;
    if (!codec_json_strv_get(json_object_get(response, "argv"), &argv) || argv.n == 0)
        return act_error_set(err, ACT_FAIL, "'%s' gave a wrong response: 'argv'", h->login);
    out->sees = OF_SSH;
    site_shell_words(h->site, &argv, &out->argv);
    return 0;
}

int hosts_agent(struct platform *p, const char *id, const char *node, char **out, struct act_error *err)
{
    struct hosts *s = hosts_of(p);
    struct hosts_host *h = NULL;
    struct site *site = NULL;
    int rc = find_node(s, id, node, &h, err);

    if (rc == 0)
        rc = hosts_site(s, h, &site, err);
    return rc < 0 ? rc : site_agent(site, out, err);
}
