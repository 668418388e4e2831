/* platforms.c - the platforms of the runs, each opened once: clusters of several projects may be the same place, and a
 * connection to a login node is worth keeping. */
#include <string.h>

#include "config/config.h"
#include "config/kind.h"
#include "flow/flow_internal.h"
#include "flow/place.h"
#include "flow/trust.h"
#include "ledger/ledger.h"
#include "platform/platform.h"

struct flow_opened {
    char *cluster; /* which cluster of which project */
    char *where;   /* the place that it resolves to */
    struct platform *platform;
    struct config *config; /* that it was opened with, if made for this purpose; else NULL */
};

/* Clusters for which this is equal know the same runs, and say the same of themselves. */
static char *where_of(const struct config *config)
{
    const struct platform_row *row = platform_find(config->platform);
    ACT_AUTOFREE char *where = flow_where(config), *part = row->place.part ? row->place.part(config) : NULL;
    ACT_AUTOFREE char *place = where ? act_strdup(where) : flow_place_of_config(config);

    return act_sprintf("%s\n%s\n%s", config->platform, place ? place : "", part ? part : "");
}

static int open_cluster(struct flow *flow, const char *cluster, const struct config *config, struct platform **out,
                        struct act_error *err)
{
    ACT_AUTOFREE char *where = where_of(config);
    int rc = 0;

    *out = NULL;
    for (size_t i = 0; i < flow->n_opened && !*out; i++)
        if (strcmp(flow->opened[i].where, where) == 0)
            *out = flow->opened[i].platform;
    if (!*out)
        rc = platform_open(flow_services(flow), config, out, err);
    if (rc < 0)
        return rc;
    ACT_PUSH(flow->opened, flow->n_opened,
             (struct flow_opened){.cluster = act_strdup(cluster), .where = act_strdup(where), .platform = *out});
    return 0;
}

static bool find_opened(const struct flow *flow, const char *cluster, struct platform **out)
{
    for (size_t i = 0; i < flow->n_opened; i++)
        if (strcmp(flow->opened[i].cluster, cluster) == 0) {
            *out = flow->opened[i].platform;
            return true;
        }
    return false;
}

static char *cluster_key(const char *platform, const char *cluster, const char *project)
{
    return act_sprintf("%s\n%s\n%s", platform, cluster, project ? project : "");
}

int flow_platform(struct flow *flow, struct platform **out, struct act_error *err)
{
    const struct config *c = flow->config;
    ACT_AUTOFREE char *cluster = cluster_key(c->platform, c->cluster, c->project_root);

    return find_opened(flow, cluster, out) ? 0 : open_cluster(flow, cluster, c, out, err);
}

static void release_config(struct config *config)
{
    if (config)
        config_release(config);
    free(config);
}

/* Takes over the configuration, which lives as long as the platform. */
static int open_taken(struct flow *flow, const char *cluster, struct config *config, struct platform **out,
                      struct act_error *err)
{
    struct config *kept = act_alloc(sizeof(*kept));

    *kept = *config;
    flow_use_vaults(flow, kept);
    int rc = open_cluster(flow, cluster, kept, out, err);
    if (rc == 0)
        flow->opened[flow->n_opened - 1].config = kept;
    else
        release_config(kept);
    return rc;
}

char *flow_cluster_key(const struct ledger_run *row)
{
    ACT_AUTOFREE char *cluster = cluster_key(row->platform, row->cluster, row->project);

    return act_sprintf("%s\n%s", cluster, row->place ? row->place : "");
}

int flow_platform_of(struct flow *flow, const struct ledger_run *row, struct platform **out, struct act_error *err)
{
    ACT_AUTOFREE char *cluster = flow_cluster_key(row);
    struct config config;

    if (find_opened(flow, cluster, out))
        return 0;
    int rc = flow_config_at(row, &config, err);
    return rc < 0 ? rc : open_taken(flow, cluster, &config, out, err);
}

int flow_platform_named(struct flow *flow, const char *cluster, struct platform **out, struct act_error *err)
{
    const struct config_request request = {.cluster = cluster, .quiet = true};
    ACT_AUTOFREE char *key = act_sprintf("-c\n%s", cluster ? cluster : "");
    struct config config;

    if (find_opened(flow, key, out))
        return 0;
    int rc = config_load(&request, &config, err);
    if (rc == 0 && (rc = flow_trust(&config, err)) < 0)
        config_release(&config);
    return rc < 0 ? rc : open_taken(flow, key, &config, out, err);
}

int flow_place_of(const struct ledger_run *row, char **out, struct act_error *err)
{
    struct config config;
    int rc = flow_config_at(row, &config, err);

    if (rc < 0)
        return rc;
    *out = where_of(&config);
    config_release(&config);
    return 0;
}

int flow_platform_here(struct flow *flow, struct platform **out, struct act_error *err)
{
    ACT_AUTOFREE char *name = act_strdup(platform_here()->kind->name);

    return flow_platform_of(flow, &(struct ledger_run){.platform = name, .cluster = name}, out, err);
}

static bool is_last_of_its_platform(const struct flow *flow, size_t at)
{
    for (size_t i = at + 1; i < flow->n_opened; i++)
        if (flow->opened[i].platform == flow->opened[at].platform)
            return false;
    return true;
}

void flow_close_platforms(struct flow *flow)
{
    for (size_t i = 0; i < flow->n_opened; i++) {
        if (is_last_of_its_platform(flow, i))
            platform_free(flow->opened[i].platform);
        free(flow->opened[i].cluster);
        free(flow->opened[i].where);
    }
    for (size_t i = 0; i < flow->n_opened; i++)
        release_config(flow->opened[i].config);
    free(flow->opened);
    flow->opened = NULL;
    flow->n_opened = 0;
}

bool flow_watch_platforms(struct flow *flow, bool *news)
{
    bool any = false;

    for (size_t i = 0; i < flow->n_opened; i++) {
        struct platform *platform = flow->opened[i].platform;
        any = (platform_row(platform)->runs.watch && platform_watch(platform, news)) || any;
    }
    return any;
}
