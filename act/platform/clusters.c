/* clusters.c - the clusters of platforms that have some. */
#include "platform/clusters.h"
#include "config/config.h"
#include "config/kind.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arm/arm.h"
#include "base/file.h"
#include "codec/fields.h"
#include "platform/platform_internal.h"

const struct platform_clusters_words *platform_clusters_words(const char *platform)
{
    const struct platform_row *own = platform_find(platform);

    for (const struct platform_row *const *row = platform_table; !own->clusters && *row; row++)
        if ((*row)->clusters)
            own = *row;
    return own->clusters ? &own->clusters->words : NULL;
}

bool platform_has_clusters(const struct config *config)
{
    const struct platform_clusters_ops *ops = platform_find(config->platform)->clusters;

    return ops && (!ops->has || ops->has(config));
}

/* Returns "'aml' or 'k8s'": new string. */
static char *those_with_clusters(void)
{
    struct act_buf out = {0};

    for (const struct platform_row *const *row = platform_table; *row; row++)
        if ((*row)->clusters)
            act_buf_addf(&out, "%s'%s'", out.len ? " or " : "", (*row)->kind->name);
    return act_buf_steal(&out);
}

/* Returns the operations of a platform; NULL, with err set: it has none. */
static const struct platform_clusters_ops *clusters_ops_of(const struct platform *p, struct act_error *err)
{
    if (!p->row->clusters) {
        ACT_AUTOFREE char *others = those_with_clusters();
        act_error_set(err, ACT_CONFIG,
                      "platform '%s' has no managed clusters: choose a cluster file of platform %s with -c",
                      p->row->kind->name, others);
    }
    return p->row->clusters;
}

/* ---- what the platforms share ---- */

int platform_check_scale(const char *noun, const char *name, const struct platform_scale *scale, struct act_error *err)
{
    if (scale->min_nodes > scale->max_nodes)
        return act_error_set(err, ACT_USAGE,
                             "%s '%s' cannot have at least %lld and at most %lld nodes; see --min, --max", noun, name,
                             (long long)scale->min_nodes, (long long)scale->max_nodes);
    return 0;
}

int platform_is_there(const char *noun, const char *name, const char *state, struct act_error *err)
{
    if (strcmp(state, "Failed") == 0)
        return act_error_set(err, ACT_FAIL, "%s '%s' is there already, and '%s'; 'a cluster delete %s' removes it",
                             noun, name, state, name);
    return act_error_set(err, ACT_FAIL, "%s '%s' is there already; 'a cluster autoscale %s' changes its size", noun,
                         name, name);
}

int platform_change(struct arm *arm, struct arm_call *call, const struct platform_follow *follow, struct act_error *err)
{
    bool follows = !follow->no_wait && !follow->dry_run;
    int rc = follow->dry_run ? 0 : arm_do(arm, call, err);

    if (rc == 0 && follows && follow->progress)
        follow->progress(follow->arg, "Accepted", -1);
    if (rc == 0 && follows)
        rc = arm_follow(arm, call, 0, follow->progress, follow->arg, NULL, err);
    arm_call_release(call);
    return rc;
}

/* ---- the operations ---- */

int platform_list_clusters(struct platform *p, struct platform_clusters *out, struct act_error *err)
{
    const struct platform_clusters_ops *ops = clusters_ops_of(p, err);

    *out = (struct platform_clusters){0};
    int rc = ops ? ops->list(p, out, err) : -ACT_CONFIG;
    if (rc < 0)
        platform_clusters_release(out);
    return rc;
}

int platform_list_all_clusters(struct platform *p, struct platform_clusters *out, struct act_error *err)
{
    const struct platform_clusters_ops *ops = clusters_ops_of(p, err);

    *out = (struct platform_clusters){0};
    if (ops && !ops->list_all)
        return act_error_set(err, ACT_USAGE, "--all lists the clusters of all workspaces: platform '%s' has none",
                             p->row->kind->name);
    int rc = ops ? ops->list_all(p, out, err) : -ACT_CONFIG;
    if (rc < 0)
        platform_clusters_release(out);
    return rc;
}

int platform_get_cluster(struct platform *p, const char *name, struct platform_cluster *out, struct act_error *err)
{
    const struct platform_clusters_ops *ops = clusters_ops_of(p, err);

    *out = (struct platform_cluster){0};
    return ops ? ops->get(p, name, out, err) : -ACT_CONFIG;
}

int platform_prepare_cluster(struct platform *p, struct platform_new_cluster *cluster, char **out_setup,
                             struct act_error *err)
{
    const struct platform_clusters_ops *ops = clusters_ops_of(p, err);

    *out_setup = NULL;
    return ops ? ops->prepare(p, cluster, out_setup, err) : -ACT_CONFIG;
}

int platform_create_cluster(struct platform *p, const struct platform_new_cluster *cluster,
                            const struct platform_follow *follow, struct act_error *err)
{
    const struct platform_clusters_ops *ops = clusters_ops_of(p, err);

    return ops ? ops->create(p, cluster, follow, err) : -ACT_CONFIG;
}

int platform_scale_cluster(struct platform *p, const char *name, const struct platform_scale *scale,
                           const struct platform_follow *follow, struct act_error *err)
{
    const struct platform_clusters_ops *ops = clusters_ops_of(p, err);

    return ops ? ops->scale(p, name, scale, follow, err) : -ACT_CONFIG;
}

int platform_delete_cluster(struct platform *p, const char *name, const struct platform_follow *follow,
                            struct act_error *err)
{
    const struct platform_clusters_ops *ops = clusters_ops_of(p, err);

    return ops ? ops->remove(p, name, follow, err) : -ACT_CONFIG;
}

int platform_list_cluster_nodes(struct platform *p, const char *name, struct platform_cluster_nodes *out,
                                struct act_error *err)
{
    const struct platform_clusters_ops *ops = clusters_ops_of(p, err);

    *out = (struct platform_cluster_nodes){0};
    int rc = ops ? ops->nodes(p, name, out, err) : -ACT_CONFIG;
    if (rc < 0)
        platform_cluster_nodes_release(out);
    return rc;
}

/* ---- logins ---- */

enum { LOGIN_MAX = 1 << 20 };

int platform_fetch_login(struct platform *p, struct platform_login *out, struct act_error *err)
{
    const struct platform_clusters_ops *ops = clusters_ops_of(p, err);

    *out = (struct platform_login){0};
    if (ops && !ops->login)
        return act_error_set(err, ACT_CONFIG, "the %ss of platform '%s' have no login of their own", ops->words.noun,
                             p->row->kind->name);
    return ops ? ops->login(p, out, err) : -ACT_CONFIG;
}

int platform_read_login_file(const char *file, char **out, struct act_error *err)
{
    size_t len;

    *out = NULL;
    return access(file, F_OK) < 0 && errno == ENOENT ? 0 : act_file_read_regular(file, LOGIN_MAX, out, &len, err);
}

/* Through a link, the file that it leads to is replaced, not the link. */
static int write_through(const char *file, const char *text, struct act_error *err)
{
    ACT_AUTOFREE char *real = realpath(file, NULL);

    return act_file_write(real ? real : file, text, strlen(text), 0600, err);
}

int platform_keep_login(const struct platform_login *login, struct act_error *err)
{
    char *now = NULL;
    int rc = platform_read_login_file(login->file, &now, err);
    bool is_same = act_streq(now, login->old_text) || (!now && !login->old_text);

    act_wipe(&now);
    if (rc == 0 && !is_same)
        rc = act_error_set(err, ACT_TEMPORARY, "'%s' was changed meanwhile, and is left as it is; do it again",
                           login->file);
    return rc < 0 ? rc : write_through(login->file, login->text, err);
}

void platform_login_release(struct platform_login *login)
{
    free(login->file);
    free(login->context);
    act_wipe(&login->old_text);
    act_wipe(&login->text);
    act_strv_release(&login->replaced);
    *login = (struct platform_login){0};
}

/* ---- their records ---- */

#define CLUSTER_TEXT(member)  FIELD_TEXT(struct platform_cluster, member, #member, .flags = FIELD_OR_NULL)
#define CLUSTER_COUNT(member) FIELD_INT64(struct platform_cluster, member, #member, .flags = FIELD_OR_NULL, .usual = -1)

static const struct field state_rows[] = {
    CLUSTER_COUNT(preparing), CLUSTER_COUNT(running), CLUSTER_COUNT(idle),
    CLUSTER_COUNT(unusable),  CLUSTER_COUNT(leaving), CLUSTER_COUNT(preempted),
};
static const struct fields state_fields = FIELDS("states", struct platform_cluster, state_rows, NULL);

static const struct field cluster_rows[] = {
    CLUSTER_TEXT(name),          CLUSTER_TEXT(owner),       CLUSTER_TEXT(type),
    CLUSTER_TEXT(location),      CLUSTER_TEXT(state),       CLUSTER_TEXT(error),
    CLUSTER_TEXT(vm_size),       CLUSTER_TEXT(vm_priority), CLUSTER_TEXT(allocation),
    CLUSTER_TEXT(admin_user),    CLUSTER_TEXT(autoscaler),  CLUSTER_TEXT(taints),
    CLUSTER_COUNT(min_nodes),    CLUSTER_COUNT(max_nodes),  CLUSTER_COUNT(nodes),
    CLUSTER_COUNT(target_nodes), CLUSTER_COUNT(idle_s),     FIELD_GROUP(&state_fields, "node_states"),
};
static const struct fields cluster_fields = FIELDS("cluster", struct platform_cluster, cluster_rows, NULL);

json_t *platform_cluster_to_json(const struct platform_cluster *c)
{
    return fields_to_json(&cluster_fields, c);
}

json_t *platform_clusters_to_json(const struct platform_clusters *clusters)
{
    return fields_list_to_json(&cluster_fields, clusters->v, clusters->n);
}

void platform_cluster_release(struct platform_cluster *c)
{
    fields_release(&cluster_fields, c);
}

void platform_clusters_release(struct platform_clusters *clusters)
{
    fields_list_release(&cluster_fields, clusters->v, clusters->n);
    *clusters = (struct platform_clusters){0};
}

#define NODE_TEXT(member) FIELD_TEXT(struct platform_cluster_node, member, #member, .flags = FIELD_OR_NULL)

static const struct field cluster_node_rows[] = {
    NODE_TEXT(id),
    NODE_TEXT(state),
    NODE_TEXT(public_address),
    NODE_TEXT(private_address),
    FIELD_INT64(struct platform_cluster_node, port, "port", .flags = FIELD_OR_NULL),
    NODE_TEXT(run),
};
static const struct fields cluster_node_fields = FIELDS("node", struct platform_cluster_node, cluster_node_rows, NULL);

json_t *platform_cluster_nodes_to_json(const struct platform_cluster_nodes *nodes)
{
    return fields_list_to_json(&cluster_node_fields, nodes->v, nodes->n);
}

void platform_cluster_nodes_release(struct platform_cluster_nodes *nodes)
{
    fields_list_release(&cluster_node_fields, nodes->v, nodes->n);
    *nodes = (struct platform_cluster_nodes){0};
}
