/* platforms.c - the platforms that runs are on, each opened once: clusters of several projects may be the same place, and
 * a connection to a login node is worth keeping. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "codec/json.h"
#include "config/config.h"
#include "flow/flow.h"
#include "flow/flow_internal.h"
#include "flow/trust.h"
#include "ledger/ledger.h"
#include "platform/platform.h"

struct flow_opened {
    char *cluster; /* which cluster of which project */
    char *where;   /* what it comes to */
    struct platform *platform;
    struct config *config; /* that it was opened with, when that was loaded for it; else NULL */
};

/* Clusters of which this is the same know the same runs. */
static char *where_of(const struct config *config)
{
    const char *login = config->slurm.login, *root = config->slurm.root;

    if (strcmp(config->platform, "local") == 0)
        return act_strdup("local");
    if (strcmp(config->platform, "slurm") == 0)
        return act_sprintf("slurm\n%s\n%s", login ? login : "", root ? root : "");
    return act_sprintf("%s\n%s", config->platform, config->file ? config->file : "");
}

static int open_cluster(struct flow *flow, const char *cluster, const struct config *config,
                        struct platform **out, struct act_error *err)
{
    ACT_AUTOFREE char *where = where_of(config);
    int rc = 0;

    *out = NULL;
    for (size_t i = 0; i < flow->n_opened && !*out; i++)
        if (strcmp(flow->opened[i].where, where) == 0)
            *out = flow->opened[i].platform;
    if (!*out)
        rc = platform_open(config, out, err);
    if (rc < 0)
        return rc;
    flow->opened = act_realloc(flow->opened, (flow->n_opened + 1) * sizeof(*flow->opened));
    flow->opened[flow->n_opened++] =
        (struct flow_opened){.cluster = act_strdup(cluster), .where = act_strdup(where), .platform = *out};
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
    if (strcmp(platform, "local") == 0)
        return act_strdup(platform);
    return act_sprintf("%s\n%s\n%s", platform, cluster, project);
}

int flow_platform(struct flow *flow, struct platform **out, struct act_error *err)
{
    const struct config *c = &flow->config;
    ACT_AUTOFREE char *cluster = cluster_key(c->platform, c->cluster, c->project_root);

    return find_opened(flow, cluster, out) ? 0 : open_cluster(flow, cluster, c, out, err);
}

static void release_config(struct config *config)
{
    if (config)
        config_release(config);
    free(config);
}

/* Takes the configuration, which lives as long as the platform. */
static int open_loaded(struct flow *flow, const char *cluster, struct config *config, struct platform **out,
                       struct act_error *err)
{
    struct config *kept = act_alloc(sizeof(*kept));

    *kept = *config;
    int rc = open_cluster(flow, cluster, kept, out, err);
    if (rc == 0)
        flow->opened[flow->n_opened - 1].config = kept;
    else
        release_config(kept);
    return rc;
}

/* A run on Slurm says itself where it is: the cluster file may say something else by now, or have been overridden. */
static int open_slurm(struct flow *flow, const struct ledger_run *row, struct platform **out,
                      struct act_error *err)
{
    CODEC_AUTOJSON json_t *json = NULL;
    int rc = codec_json_parse(row->slurm, strlen(row->slurm), row->id, &json, err);
    ACT_AUTOFREE char *login = act_strdup(codec_json_str(json, "login", NULL));
    ACT_AUTOFREE char *root = act_strdup(codec_json_str(json, "root", NULL));
    ACT_AUTOFREE char *gres = act_strdup(codec_json_str(json, "gres", NULL));
    struct config config = {.platform = row->platform,
                            .cluster = row->cluster,
                            .gpu_per_node = -1,
                            .num_gpu = -1,
                            .slurm = {.login = login, .root = root, .gres = gres}};

    return rc < 0 ? rc : open_cluster(flow, row->slurm, &config, out, err);
}

/* This machine needs no cluster file, which may be gone. */
static int open_local(struct flow *flow, const struct ledger_run *row, struct platform **out,
                      struct act_error *err)
{
    struct config config = {
        .platform = row->platform, .cluster = row->cluster, .gpu_per_node = -1, .num_gpu = -1};

    return open_cluster(flow, row->platform, &config, out, err);
}

static int open_configured(struct flow *flow, const struct ledger_run *row, const char *cluster,
                           struct platform **out, struct act_error *err)
{
    struct config_request request = {.cluster = row->cluster, .start_dir = row->project};
    struct config config;
    int rc = config_load(&request, &config, err);

    if (rc == 0 && (rc = flow_trust(&config, err)) < 0) {
        config_release(&config);
        return rc;
    }
    if (rc < 0)
        return act_error_prefix(err, "run '%s' is on cluster '%s' of '%s'", row->id, row->cluster,
                                row->project);
    return open_loaded(flow, cluster, &config, out, err);
}

int flow_platform_of(struct flow *flow, const struct ledger_run *row, struct platform **out,
                     struct act_error *err)
{
    bool is_slurm = strcmp(row->platform, "slurm") == 0 && row->slurm;
    ACT_AUTOFREE char *cluster =
        is_slurm ? act_strdup(row->slurm) : cluster_key(row->platform, row->cluster, row->project);

    if (find_opened(flow, cluster, out))
        return 0;
    if (is_slurm)
        return open_slurm(flow, row, out, err);
    if (strcmp(row->platform, "local") == 0)
        return open_local(flow, row, out, err);
    return open_configured(flow, row, cluster, out, err);
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
