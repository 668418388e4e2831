/* managed.c - the managed clusters of a workspace, or the node pools of a Kubernetes cluster: looking at them and
 * changing them. The verbs for cluster files are in files.c and add.c, the login is in login.c. */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/clusters/clusters.h"
#include "cli/clusters/options.h"
#include "cli/command/verbs.h"
#include "cli/print/ask.h"
#include "cli/print/print.h"
#include "cli/print/table.h"
#include "cli/runs/runs.h"
#include "cli/start/options.h"
#include "codec/json.h"
#include "config/config.h"
#include "flow/cluster/cluster.h"
#include "flow/flow.h"
#include "flow/trust.h"
#include "platform/clusters.h"

/* ---- printing ---- */

static void print_clusters(const struct platform_clusters *clusters, bool with_owner)
{
    static const struct cli_column all_columns[] = {
        {"WORKSPACE", 'l', .rank = 1},
        {"NAME", 'l', .rank = 0},
        {"TYPE", 'l', .rank = 9},
        {"STATE", 'l', .rank = 1},
        {"VM SIZE", 'l', .rank = 7, .min = 10},
        {"MIN", 'r', .rank = 8},
        {"MAX", 'r', .rank = 6},
        {"NODES", 'r', .rank = 2},
        {"BUSY", 'r', .rank = 3},
        {"IDLE", 'r', .rank = 4},
        {"DOWN", 'r', .rank = 5},
    };
    const struct cli_column *columns = all_columns + !with_owner;
    size_t n_columns = sizeof(all_columns) / sizeof(all_columns[0]) - !with_owner;
    ACT_AUTO(act_strv) cells = {0};

    for (size_t i = 0; i < clusters->n; i++) {
        const struct platform_cluster *c = &clusters->v[i];
        bool counted = c->running >= 0;
        if (with_owner)
            cli_push_text(&cells, c->owner);
        act_strv_push(&cells, c->name);
        cli_push_text(&cells, c->type);
        cli_push_text(&cells, c->state);
        cli_push_text(&cells, c->vm_size);
        cli_push_count(&cells, c->min_nodes);
        cli_push_count(&cells, c->max_nodes);
        cli_push_count(&cells, c->nodes);
        cli_push_count(&cells, counted ? c->running + c->preparing : -1);
        cli_push_count(&cells, counted ? c->idle : -1);
        cli_push_count(&cells, counted ? c->unusable + c->leaving + c->preempted : -1);
    }
    cli_print_table(columns, n_columns, &cells);
}

static void print_states(const struct platform_cluster *c)
{
    const struct {
        const char *name;
        int64_t n;
    } rows[] = {{"running", c->running},   {"preparing", c->preparing}, {"idle", c->idle},
                {"unusable", c->unusable}, {"leaving", c->leaving},     {"preempted", c->preempted}};
    ACT_AUTO(act_buf) line = {0};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].n >= 0)
            act_buf_addf(&line, "%s%lld %s", line.len ? ", " : "", (long long)rows[i].n, rows[i].name);
    cli_print_fact("states", line.data);
}

static void print_sizes(const struct platform_cluster *c)
{
    const struct {
        const char *name;
        int64_t n;
    } rows[] = {{"", c->nodes}, {"at least ", c->min_nodes}, {"at most ", c->max_nodes}};
    ACT_AUTO(act_buf) line = {0};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].n >= 0)
            act_buf_addf(&line, "%s%s%lld", line.len ? ", " : "", rows[i].name, (long long)rows[i].n);
    cli_print_fact("nodes", line.data);
}

static void print_idle(int64_t idle_s)
{
    char idle[ACT_UNIT_TEXT];

    if (idle_s < 0)
        return;
    act_duration_to_text(idle_s, idle);
    cli_print_fact("idle time", idle);
}

static void print_cluster(const struct platform_cluster *c)
{
    cli_print_fact("name", c->name);
    cli_print_fact("type", c->type);
    cli_print_fact("location", c->location);
    cli_print_fact("state", c->state);
    cli_print_fact("error", c->error);
    if (!c->is_managed)
        return;
    cli_print_fact("vm size", c->vm_size);
    cli_print_fact("priority", c->vm_priority);
    cli_print_fact("allocation", c->allocation);
    print_sizes(c);
    cli_print_fact("autoscaler", c->autoscaler);
    print_states(c);
    cli_print_fact("taints", c->taints);
    print_idle(c->idle_s);
    cli_print_fact("admin user", c->admin_user);
}

static void print_nodes(const struct platform_cluster_nodes *nodes)
{
    static const struct cli_column columns[] = {
        {"NODE", 'l', .rank = 0},    {"STATE", 'l', .rank = 1}, {"PUBLIC", 'l', .rank = 3},
        {"PRIVATE", 'l', .rank = 5}, {"PORT", 'r', .rank = 4},  {"RUN", 'l', .rank = 2},
    };
    ACT_AUTO(act_strv) cells = {0};

    for (size_t i = 0; i < nodes->n; i++) {
        const struct platform_cluster_node *n = &nodes->v[i];
        cli_push_text(&cells, n->id);
        cli_push_text(&cells, n->state);
        cli_push_text(&cells, n->public_address);
        cli_push_text(&cells, n->private_address);
        cli_push_count(&cells, n->port ? n->port : -1);
        cli_push_text(&cells, n->run);
    }
    cli_print_table(columns, sizeof(columns) / sizeof(columns[0]), &cells);
}

/* ---- following a change ---- */

#define GOES_ON "the change goes on at the service; 'a cluster show' shows its state"

static const struct platform_clusters_words *cmd_cluster_words_of(const struct cli *cli)
{
    return platform_clusters_words(cli->flow.config->platform);
}

static const char *noun_of(const struct cli *cli)
{
    return cmd_cluster_words_of(cli)->noun;
}

/* ---- the verbs ---- */

/* Lists the clusters of the service of the cluster that is open. */
static int list_managed(struct cli *cli, struct act_error *err)
{
    ACT_AUTO(platform_clusters) clusters = {0};
    struct platform *platform;
    int rc = flow_platform(&cli->flow, &platform, err);

    if (rc == 0)
        rc = (cli->options.all ? platform_list_all_clusters : platform_list_clusters)(platform, &clusters, err);
    if (rc == 0 && cli->options.json) {
        rc = cli_print_pack(err, "{s:o}", "clusters", platform_clusters_to_json(&clusters));
    } else if (rc == 0 && clusters.n == 0) {
        act_note("the %s has no %ss; 'a cluster create' makes one", cmd_cluster_words_of(cli)->owner, noun_of(cli));
    } else if (rc == 0) {
        print_clusters(&clusters, cli->options.all);
    }
    return rc;
}

/* Tells whether the default cluster has clusters of a service to list; it is open then. A configuration that cannot
 * be read has none, and the list of files says what is wrong with it. */
static bool open_managed(struct cli *cli)
{
    struct flow flow = {0};
    struct act_error ignored;
    bool has = cli_open_to_look(cli, &flow, &ignored) == 0 && platform_has_clusters(flow.config);

    if (has) {
        flow.services = &cli->services;
        cli->flow = flow; /* which was bare */
    } else {
        flow_close(&flow);
    }
    return has;
}

/* Lists cluster files if there is no -c, unless the default cluster has something to list itself. */
static int cmd_cluster_list(struct cli *cli, const char *name, struct act_error *err)
{
    const struct cli_managed_options *o = CLI_OPTIONS(cli, managed);
    bool named = cli->options.cluster || cli->options.params.n;

    (void)name;
    if (o->own && named)
        return act_error_set(err, ACT_USAGE, "--own lists the clusters of all files, and takes no -c and no -p");
    if (o->own && cli->options.all)
        return act_error_set(err, ACT_USAGE, "--own lists cluster files, --all the clusters of a subscription");
    if (o->own || (!named && !cli->options.all && !open_managed(cli)))
        return cli_list_own(cli, err);
    int rc = named || cli->options.all ? cli_open(cli, err) : flow_trust(cli->flow.config, err);
    return rc < 0 ? rc : list_managed(cli, err);
}

static int show_cluster(struct cli *cli, const char *name, struct act_error *err)
{
    ACT_AUTO(platform_cluster) cluster = {0};
    struct platform *platform;
    int rc = flow_platform(&cli->flow, &platform, err);

    if (rc == 0)
        rc = platform_get_cluster(platform, name, &cluster, err);
    if (rc == 0 && cli->options.json)
        rc = cli_print_pack(err, "{s:o}", "cluster", platform_cluster_to_json(&cluster));
    else if (rc == 0)
        print_cluster(&cluster);
    return rc;
}

/* Prints what a change has led to. */
static int finish_cluster(struct cli *cli, const char *name, const char *what, struct act_error *err)
{
    if (!CLI_OPTIONS(cli, managed)->no_wait)
        return show_cluster(cli, name, err);
    act_note("%s of %s '%s' is accepted; 'a cluster show %s' shows its state", what, noun_of(cli), name, name);
    return cli->options.json ? show_cluster(cli, name, err) : 0;
}

/* Reads a public key; a private one must not leave this machine. */
static int read_key(const char *path, char **out, struct act_error *err)
{
    enum { KEY_MAX = 16 << 10 };
    size_t len;
    int rc = act_file_read(path, KEY_MAX, out, &len, err);

    if (rc < 0)
        return rc;
    while (len && strchr(" \r\n", (*out)[len - 1]))
        (*out)[--len] = '\0';
    if (strlen(*out) == len && !strchr(*out, '\n') &&
        (act_starts_with(*out, "ssh-") || act_starts_with(*out, "ecdsa-") || act_starts_with(*out, "sk-")))
        return 0;
    act_wipe(out);
    return act_error_set(err, ACT_USAGE, "'%s' is not a public key; it is the file that ends with '.pub'", path);
}

/* Says what a change would do. */
static int would(struct cli *cli, const char *action, const char *name, const char *how, struct act_error *err)
{
    act_note("would %s %s '%s'%s", action, noun_of(cli), name, how);
    if (!cli->options.json)
        return 0;
    return cli_print_pack(err, "{s:b,s:s,s:s}", "dry_run", true, "action", action, "name", name);
}

/* Returns ", at least 1, at most 4, gone 5m after their work", as far as it is given. New string. */
static char *scale_text(const struct platform_scale *s)
{
    struct act_buf text = {0};
    char idle[ACT_UNIT_TEXT];

    if (s->min_nodes >= 0)
        act_buf_addf(&text, ", at least %lld", (long long)s->min_nodes);
    if (s->max_nodes >= 0)
        act_buf_addf(&text, ", at most %lld", (long long)s->max_nodes);
    if (s->idle_s > 0) {
        act_duration_to_text(s->idle_s, idle);
        act_buf_addf(&text, ", gone %s after their work", idle);
    }
    return act_buf_steal(&text);
}

/* Returns "a, b". New string; "" where there are none. */
static char *cmd_cluster_join(const struct act_strv *words)
{
    struct act_buf out = {0};

    for (size_t i = 0; words && i < words->n; i++)
        act_buf_addf(&out, "%s%s", i ? ", " : "", words->v[i]);
    return act_buf_steal(&out);
}

/* Returns "team=vision, cost=42". New string; "" where there are none. */
static char *tags_text(json_t *tags)
{
    struct act_buf out = {0};
    const char *key;
    json_t *value;

    json_object_foreach(tags, key, value)
        act_buf_addf(&out, "%s%s=%s", out.len ? ", " : "", key, json_is_string(value) ? json_string_value(value) : "?");
    return act_buf_steal(&out);
}

static int64_t cmd_cluster_least_of(const struct platform_new_cluster *c)
{
    return c->scale.min_nodes < 0 ? 0 : c->scale.min_nodes;
}

/* Prints what a new cluster would be. */
static void print_wanted(const struct cli *cli, const struct platform_new_cluster *c)
{
    ACT_AUTOFREE char *identities = cmd_cluster_join(c->identities), *tags = tags_text(c->tags);
    ACT_AUTOFREE char *location = act_sprintf("that of the %s", cmd_cluster_words_of(cli)->owner);

    cli_print_fact("name", c->name);
    cli_print_fact("location", c->location ? c->location : location);
    cli_print_fact("vm size", c->vm_size);
    cli_print_fact("priority", c->low_priority ? "low: the nodes may be taken away" : "normal");
    print_sizes(
        &(struct platform_cluster){.nodes = -1, .min_nodes = cmd_cluster_least_of(c), .max_nodes = c->scale.max_nodes});
    print_idle(c->scale.idle_s ? c->scale.idle_s : -1);
    cli_print_fact("admin user", c->admin_user);
    cli_print_fact("ssh key", c->ssh_key);
    cli_print_fact("subnet", c->subnet);
    cli_print_fact("public ip", c->no_public_ip ? "none" : NULL);
    cli_print_fact("identities", identities);
    cli_print_fact("node image", c->node_image);
    cli_print_fact("tags", tags);
}

static json_t *wanted_json(const struct platform_new_cluster *c)
{
    static const struct act_strv none;

    return json_pack("{s:s, s:s?, s:s?, s:b, s:o, s:o, s:o, s:s?, s:s?, s:s?, s:b, s:o, s:s?, s:O?}", "name", c->name,
                     "location", c->location, "vm_size", c->vm_size, "low_priority", c->low_priority, "min_nodes",
                     cli_count_json(cmd_cluster_least_of(c)), "max_nodes", cli_count_json(c->scale.max_nodes), "idle_s",
                     cli_count_json(c->scale.idle_s ? c->scale.idle_s : -1), "admin_user", c->admin_user, "ssh_key",
                     c->ssh_key, "subnet", c->subnet, "no_public_ip", c->no_public_ip, "identities",
                     codec_json_strv_new(c->identities ? c->identities : &none), "node_image", c->node_image, "tags",
                     c->tags);
}

static int would_create(const struct cli *cli, const struct platform_new_cluster *c, const char *setup,
                        struct act_error *err)
{
    ACT_AUTOFREE char *nodes = scale_text(&c->scale);

    if (setup)
        act_note("%s", setup);
    act_note("would create %s '%s' of nodes %s%s", noun_of(cli), c->name, c->vm_size, nodes);
    if (cli->options.json)
        return cli_print_pack(err, "{s:b, s:s, s:s, s:o}", "dry_run", 1, "action", "create", "name", c->name, "cluster",
                              wanted_json(c));
    print_wanted(cli, c);
    return 0;
}

/* Asks before something is made besides it, because that costs money that nobody may expect. */
static int ask_setup(struct cli *cli, const char *setup, struct act_error *err)
{
    ACT_AUTOFREE char *question = act_sprintf("%s. Make it?", setup);

    return cli_confirm(cli, question, err);
}

static int cmd_cluster_make(struct cli *cli, struct platform_new_cluster *cluster, struct act_error *err)
{
    struct cli_told told = {.noun = noun_of(cli), .name = cluster->name, .goes_on = GOES_ON};
    struct platform_follow follow = cli_follow(cli, &told);
    ACT_AUTOFREE char *setup = NULL;
    struct platform *platform;
    int rc = flow_platform(&cli->flow, &platform, err);

    if (rc == 0)
        rc = platform_prepare_cluster(platform, cluster, &setup, err);
    if (rc == 0 && setup && !cli->options.dry_run)
        rc = ask_setup(cli, setup, err);
    if (rc == 0)
        rc = platform_create_cluster(platform, cluster, &follow, err);
    if (rc == 0 && cli->options.dry_run)
        return would_create(cli, cluster, setup, err);
    return rc < 0 ? rc : finish_cluster(cli, cluster->name, "the creation", err);
}

static int check_ids(const struct cli *cli, struct act_error *err)
{
    const struct cli_managed_options *o = CLI_OPTIONS(cli, managed);
    int rc = cli_check_id("--subnet", o->subnet, "subnets", err);

    if (rc == 0)
        rc = cli_check_id("--node-image", o->node_image, "images", err);
    for (size_t i = 0; rc == 0 && i < o->identities.n; i++)
        if (strcmp(o->identities.v[i], "system") != 0)
            rc = cli_check_id("--identity", o->identities.v[i], "userAssignedIdentities", err);
    return rc;
}

/* Takes over what the options say, which goes before what a file says. */
static void take_options(const struct cli *cli, struct platform_new_cluster *c)
{
    const struct cli_managed_options *o = CLI_OPTIONS(cli, managed);
    const struct {
        const char *given, **at;
    } texts[] = {{o->vm_size, &c->vm_size},       {o->location, &c->location},     {o->subnet, &c->subnet},
                 {o->node_image, &c->node_image}, {o->admin_user, &c->admin_user}, {NULL, NULL}};

    for (size_t i = 0; texts[i].at; i++)
        if (texts[i].given)
            *texts[i].at = texts[i].given;
    c->low_priority |= o->low_priority;
    c->no_public_ip = o->no_public_ip;
    c->identities = &o->identities;
    if (o->min >= 0)
        c->scale.min_nodes = o->min;
    if (cli->options.max >= 0)
        c->scale.max_nodes = cli->options.max;
    c->scale.idle_s = o->idle_s;
    if (json_object_size(cli->tags))
        c->tags = cli->tags;
}

static int read_description(const struct cli *cli, struct flow_batch_cluster *out, struct act_error *err)
{
    *out = (struct flow_batch_cluster){.cluster.scale = {.min_nodes = -1, .max_nodes = -1}};
    int rc =
        CLI_OPTIONS(cli, batch)->job_file ? flow_read_batch_cluster(CLI_OPTIONS(cli, batch)->job_file, out, err) : 0;

    for (size_t i = 0; rc == 0 && i < out->notes.n; i++)
        act_note("%s", out->notes.v[i]);
    return rc;
}

static int cmd_cluster_create(struct cli *cli, const char *name, struct act_error *err)
{
    const struct cli_managed_options *o = CLI_OPTIONS(cli, managed);
    ACT_AUTO(flow_batch_cluster) description = {0};
    struct platform_new_cluster *c = &description.cluster;
    struct flow_labels labels;
    ACT_AUTOFREE char *key = NULL;
    int rc = read_description(cli, &description, err);

    if (rc == 0)
        rc = check_ids(cli, err);
    if (rc == 0)
        rc = cli_labels(cli, &labels, err);
    if (rc == 0 && o->ssh_key)
        rc = read_key(o->ssh_key, &key, err);
    if (rc < 0)
        return rc;
    c->name = name;
    take_options(cli, c);
    if (key)
        c->ssh_key = key;
    if (o->admin_user && !c->ssh_key)
        return act_error_set(err, ACT_USAGE, "--admin-user needs --ssh-key: nobody logs in with a password");
    if (CLI_OPTIONS(cli, batch)->job_file && !c->ssh_key)
        act_note("neither the file nor --ssh-key gives a public key: nobody can log in to the nodes");
    if (!c->ssh_key || !c->admin_user)
        c->admin_user = c->ssh_key ? "azureuser" : NULL;
    return cmd_cluster_make(cli, c, err);
}

static int scale(struct cli *cli, const char *name, const struct platform_scale *wanted, struct act_error *err)
{
    ACT_AUTOFREE char *how = scale_text(wanted);
    struct cli_told told = {.noun = noun_of(cli), .name = name, .goes_on = GOES_ON};
    struct platform_follow follow = cli_follow(cli, &told);
    struct platform *platform;
    int rc = flow_platform(&cli->flow, &platform, err);

    if (rc == 0)
        rc = platform_scale_cluster(platform, name, wanted, &follow, err);
    if (rc == 0 && cli->options.dry_run)
        return would(cli, "resize", name, how, err);
    return rc < 0 ? rc : finish_cluster(cli, name, "the new size", err);
}

static int cmd_cluster_resize(struct cli *cli, const char *name, struct act_error *err)
{
    int64_t n = CLI_OPTIONS(cli, managed)->nodes;

    if (n < 0)
        return act_error_set(err, ACT_USAGE, "how many nodes? try: a cluster resize %s --nodes 2", name);
    return scale(cli, name, &(struct platform_scale){.min_nodes = n, .max_nodes = n, .is_fixed = true}, err);
}

static int autoscale(struct cli *cli, const char *name, struct act_error *err)
{
    const struct cli_managed_options *o = CLI_OPTIONS(cli, managed);

    if (o->min < 0 && cli->options.max < 0 && !o->idle_s)
        return act_error_set(err, ACT_USAGE, "nothing to change; try: a cluster autoscale %s --min 0 --max 4", name);
    return scale(cli, name,
                 &(struct platform_scale){.min_nodes = o->min, .max_nodes = cli->options.max, .idle_s = o->idle_s},
                 err);
}

static int delete (struct cli *cli, const char *name, struct act_error *err)
{
    struct cli_told told = {.noun = noun_of(cli), .name = name, .goes_on = GOES_ON};
    struct platform_follow follow = cli_follow(cli, &told);
    ACT_AUTOFREE char *question =
        act_sprintf("Delete the %s '%s' with all its nodes? Runs on it are lost.", noun_of(cli), name);
    struct platform *platform;
    int rc = cli->options.dry_run ? 0 : cli_confirm(cli, question, err);

    if (rc == 0)
        rc = flow_platform(&cli->flow, &platform, err);
    if (rc == 0)
        rc = platform_delete_cluster(platform, name, &follow, err);
    if (rc == 0 && cli->options.dry_run)
        return would(cli, "delete", name, " with all its nodes", err);
    if (rc == 0)
        act_note(CLI_OPTIONS(cli, managed)->no_wait ? "the deletion of %s '%s' is accepted" : "%s '%s' is deleted",
                 noun_of(cli), name);
    if (rc == 0 && cli->options.json)
        rc = cli_print_pack(err, "{s:s,s:b}", "name", name, "deleted", !CLI_OPTIONS(cli, managed)->no_wait);
    return rc;
}

static int nodes(struct cli *cli, const char *name, struct act_error *err)
{
    ACT_AUTO(platform_cluster_nodes) found = {0};
    struct platform *platform;
    int rc = flow_platform(&cli->flow, &platform, err);

    if (rc == 0)
        rc = platform_list_cluster_nodes(platform, name, &found, err);
    if (rc == 0 && cli->options.json) {
        rc = cli_print_pack(err, "{s:s,s:o}", "name", name, "nodes", platform_cluster_nodes_to_json(&found));
    } else if (rc == 0 && found.n == 0) {
        act_note("%s '%s' has no nodes now", noun_of(cli), name);
    } else if (rc == 0) {
        print_nodes(&found);
    }
    return rc;
}

#define FOR_SERVICES "cluster param json "
const struct cli_verb cli_cluster_verbs[] = {
    {.group = "cluster files",
     .name = "list",
     .summary = "the clusters that -c can name; with -c: the managed ones of its workspace",
     .run = cmd_cluster_list,
     .options = "cluster param json own all",
     .takes_no_name = true,
     .own = true},
    {.name = "add",
     .summary = "write a new cluster file; asks what it cannot find out",
     .run = cli_add_cluster,
     .options = "param json dry-run yes " CLI_ADD_OPTIONS,
     .own = true},
    {.name = "use",
     .summary = "make a cluster your default",
     .run = cli_use_cluster,
     .options = "json dry-run",
     .needs_name = true,
     .own = true},
    {.name = "edit",
     .summary = "open a cluster file in $EDITOR, and check it",
     .run = cli_edit_cluster,
     .options = "cluster",
     .own = true},
    {.name = "rename",
     .summary = "rename a cluster file",
     .run = cli_rename_cluster,
     .options = "json dry-run",
     .needs_name = true,
     .own = true},
    {.name = "remove",
     .summary = "remove a cluster file",
     .run = cli_remove_cluster,
     .options = "json dry-run yes",
     .needs_name = true,
     .own = true},
    {.group = "clusters of a workspace, node pools of Kubernetes on Azure",
     .name = "show",
     .summary = "one managed cluster, or node pool",
     .run = show_cluster,
     .options = FOR_SERVICES},
    {.name = "create",
     .summary = "make a managed cluster, or a node pool",
     .run = cmd_cluster_create,
     .options = FOR_SERVICES "file vm-size min max idle low-priority admin-user ssh-key location identity subnet "
                             "no-public-ip node-image tag no-wait yes dry-run",
     .needs_name = true},
    {.name = "resize",
     .summary = "set how many nodes there are",
     .run = cmd_cluster_resize,
     .options = FOR_SERVICES "nodes no-wait dry-run"},
    {.name = "autoscale",
     .summary = "set how few and how many nodes there may be",
     .run = autoscale,
     .options = FOR_SERVICES "min max idle no-wait dry-run"},
    {.name = "delete",
     .summary = "delete a managed cluster, or a node pool",
     .run = delete,
     .options = FOR_SERVICES "no-wait yes dry-run",
     .needs_name = true},
    {.name = "nodes", .summary = "its nodes, their addresses and runs", .run = nodes, .options = FOR_SERVICES},
    {.name = "login",
     .summary = "put the login to a Kubernetes cluster into the kubeconfig",
     .run = cli_login_cluster,
     .options = FOR_SERVICES "yes dry-run",
     .takes_no_name = true},
    {.name = NULL},
};

/* Finds the name that is meant: the one that was given, or else that of the cluster file (compute_target, aks.pool). */
static int cmd_cluster_name_of(const struct cli *cli, const char *name, const char **out, struct act_error *err)
{
    const struct config *config = cli->flow.config;
    const struct platform_clusters_words *words = cmd_cluster_words_of(cli);

    *out = name ? name : words->usual(config);
    if (*out && **out)
        return 0;
    return act_error_set(err, ACT_USAGE, "the cluster '%s' has no %s: name the %s that is meant", config->cluster,
                         words->key, words->noun);
}

/* Runs a verb on the clusters of a service, which a cluster file names. */
static int run_managed(struct cli *cli, const struct cli_verb *verb, const char *given, struct act_error *err)
{
    const char *name = NULL;
    int rc = cli_open(cli, err);

    if (rc == 0 && verb->needs_name && !given)
        rc = act_error_set(err, ACT_USAGE, "which %s? 'a cluster %s NAME'", noun_of(cli), verb->name);
    if (rc == 0 && !verb->takes_no_name)
        rc = cmd_cluster_name_of(cli, given, &name, err);
    return rc < 0 ? rc : verb->run(cli, name, err);
}

int cmd_cluster(struct cli *cli, struct act_error *err)
{
    const struct cli_verb *verb = cli_find_verb(cli, cli_cluster_verbs, err);
    const char *given = cli->words.n > 1 ? cli->words.v[1] : NULL;

    if (!verb)
        return -ACT_USAGE;
    if (cli->words.n > 2 && verb->run != cli_rename_cluster)
        return act_error_set(err, ACT_USAGE, "'a cluster %s' takes one name, not '%s' as well", verb->name,
                             cli->words.v[2]);
    int rc = cli_check_verb(cli, verb, verb->own ? "cluster" : NULL, err);
    if (rc < 0)
        return rc;
    return verb->own ? verb->run(cli, given, err) : run_managed(cli, verb, given, err);
}
