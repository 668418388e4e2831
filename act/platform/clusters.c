/* clusters.c - the clusters of platforms that have some. */
#include "platform/clusters.h"

#include "platform/platform_internal.h"

/* The first platform that has clusters. */
static const char *example(void)
{
    for (const struct platform_row *const *row = platform_table; *row; row++)
        if ((*row)->clusters)
            return (*row)->name;
    return "";
}

static int find_cluster(const struct platform *p, const struct platform_clusters_ops **out, struct act_error *err)
{
    *out = p->row->clusters;
    if (*out)
        return 0;
    return act_error_set(err, ACT_CONFIG,
                         "platform '%s' has no managed clusters: only a cluster file of platform '%s' has",
                         p->row->name, example());
}

int platform_list_clusters(struct platform *p, struct platform_clusters *out, struct act_error *err)
{
    const struct platform_clusters_ops *ops;
    int rc = find_cluster(p, &ops, err);

    *out = (struct platform_clusters){0};
    return rc < 0 ? rc : ops->list(p, out, err);
}

int platform_get_cluster(struct platform *p, const char *name, struct platform_cluster *out, struct act_error *err)
{
    const struct platform_clusters_ops *ops;
    int rc = find_cluster(p, &ops, err);

    *out = (struct platform_cluster){0};
    return rc < 0 ? rc : ops->get(p, name, out, err);
}

int platform_create_cluster(struct platform *p, const struct platform_new_cluster *cluster,
                            const struct platform_follow *follow, struct act_error *err)
{
    const struct platform_clusters_ops *ops;
    int rc = find_cluster(p, &ops, err);

    return rc < 0 ? rc : ops->create(p, cluster, follow, err);
}

int platform_scale_cluster(struct platform *p, const char *name, const struct platform_scale *scale,
                           const struct platform_follow *follow, struct act_error *err)
{
    const struct platform_clusters_ops *ops;
    int rc = find_cluster(p, &ops, err);

    return rc < 0 ? rc : ops->scale(p, name, scale, follow, err);
}

int platform_delete_cluster(struct platform *p, const char *name, const struct platform_follow *follow,
                            struct act_error *err)
{
    const struct platform_clusters_ops *ops;
    int rc = find_cluster(p, &ops, err);

    return rc < 0 ? rc : ops->remove(p, name, follow, err);
}

int platform_list_cluster_nodes(struct platform *p, const char *name, struct platform_cluster_nodes *out,
                                struct act_error *err)
{
    const struct platform_clusters_ops *ops;
    int rc = find_cluster(p, &ops, err);

    *out = (struct platform_cluster_nodes){0};
    return rc < 0 ? rc : ops->nodes(p, name, out, err);
}

void platform_cluster_release(struct platform_cluster *c)
{
    free(c->name);
    free(c->type);
    free(c->location);
    free(c->state);
    free(c->error);
    free(c->vm_size);
    free(c->vm_priority);
    free(c->allocation);
    free(c->admin_user);
    *c = (struct platform_cluster){0};
}

void platform_clusters_release(struct platform_clusters *clusters)
{
    for (size_t i = 0; i < clusters->n; i++)
        platform_cluster_release(&clusters->v[i]);
    free(clusters->v);
    *clusters = (struct platform_clusters){0};
}

void platform_cluster_nodes_release(struct platform_cluster_nodes *nodes)
{
    for (size_t i = 0; i < nodes->n; i++) {
        free(nodes->v[i].id);
        free(nodes->v[i].state);
        free(nodes->v[i].public_address);
        free(nodes->v[i].private_address);
        free(nodes->v[i].run);
    }
    free(nodes->v);
    *nodes = (struct platform_cluster_nodes){0};
}
