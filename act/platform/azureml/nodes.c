/* nodes.c - the nodes of a run, and a shell on one of them.
 *
 * Managed clusters list their nodes with address and port. Others do not: their nodes are only numbers, and how to log
 * in follows from a tag of the run (attached Kubernetes) or the ssh service of the job.
 *
 * Source: learn.microsoft.com/rest/api/azureml/compute (List Nodes); the run history as azure-ai-ml speaks to it
 * (service instances); the tag as the original read it; learn.microsoft.com/cli/azure/ml/job (connect-ssh).
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/units.h"
#include "codec/json.h"
#include "config/config.h"
#include "platform/azureml/azureml_internal.h"
#include "site/site.h"

static bool lists_nodes(const struct azureml *a)
{
    return a->kind == AZUREML_MANAGED && a->config->compute_target;
}

int azureml_each_node(struct azureml *a, const char *compute, const char *what, azureml_take_item *each, void *arg,
                      struct act_error *err)
{
    ACT_AUTOFREE char *url = act_sprintf("%s/listNodes", compute);
    struct arm *arm;
    int rc = azureml_arm(a, &arm, err);

    return rc < 0 ? rc : arm_each(arm, url, a->api_version, true, "nodes", what, each, arg, err);
}

static int each_node(struct azureml *a, azureml_take_item *each, void *arg, struct act_error *err)
{
    ACT_AUTOFREE char *compute = azureml_compute_id(a);

    return azureml_each_node(a, compute, "list the nodes", each, arg, err);
}

/* ---- nodes of a run ---- */

struct node_list {
    const struct run_spec *spec;
    struct platform_nodes *out;
};

/* Takes name and state. */
static struct platform_node *aml_nodes_add_node(struct node_list *l, char *name, char *state)
{
    struct platform_nodes *out = l->out;
    int rank = (int)out->n, per_node = l->spec->procs_per_node;

    ACT_PUSH(out->v, out->n,
             (struct platform_node){.name = name,
                                    .state = state,
                                    .rank = rank,
                                    .first_rank = rank * per_node,
                                    .n_ranks = per_node,
                                    .gpus = l->spec->gpus_per_node});
    return &out->v[rank];
}

static char *copy_nonempty(const json_t *object, const char *key)
{
    const char *text = codec_json_str(object, key, "");

    return *text ? act_strdup(text) : NULL;
}

/* The port leads to ssh on the node at the public address, which a cluster need not have. */
static void add_address(struct platform_node *node, const json_t *item)
{
    int64_t port = codec_json_int(item, "port", 0);

    node->address = copy_nonempty(item, "publicIpAddress");
    if (node->address && port > 0 && port <= UINT16_MAX)
        node->port = (int)port;
    if (!node->address)
        node->address = copy_nonempty(item, "privateIpAddress");
}

static int aml_nodes_take_node(void *arg, const json_t *item, struct act_error *err)
{
    struct node_list *l = arg;

    (void)err;
    if (strcmp(codec_json_str(item, "runId", ""), l->spec->id) == 0)
        add_address(aml_nodes_add_node(l, act_strdup(codec_json_str(item, "nodeId", "?")),
                                       act_strdup(codec_json_str(item, "nodeState", "unknown"))),
                    item);
    return 0;
}

/* Numbers the nodes by what the job asks for, while it runs. */
static int number_nodes(struct azureml *a, struct node_list *l, struct act_error *err)
{
    struct run_status status;
    int rc = azureml_status(&a->base, (const char *const[]){l->spec->id}, 1, &status, err);

    for (int i = 0; rc == 0 && status.state == RUN_RUNNING && i < l->spec->nodes; i++)
        aml_nodes_add_node(l, act_sprintf("%d", i), NULL);
    return rc;
}

int azureml_nodes(struct platform *p, const char *id, struct platform_nodes *out, struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    ACT_AUTO(run_spec) spec = {0};
    int rc = azureml_spec(p, id, &spec, err);

    if (rc < 0)
        return rc;
    struct node_list list = {.spec = &spec, .out = out};
    return lists_nodes(a) ? each_node(a, aml_nodes_take_node, &list, err) : number_nodes(a, &list, err);
}

/* ---- which node a shell is for ---- */

struct wanted {
    const char *id;   /* NULL: whatever runs there */
    const char *node; /* its name or number, without an id its address; NULL: the first */
    int seen;         /* nodes of the run so far */

    int number; /* of the node that was found, among those of the run; -1: none */
    char *run;  /* that it has; the rest may be NULL too */
    char *public_host, *private_host;
    int64_t port;
};

static void release_wanted(struct wanted *w)
{
    free(w->run);
    free(w->public_host);
    free(w->private_host);
}

static bool aml_nodes_is_wanted(const struct wanted *w, const json_t *item, int number)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", number);
    return !w->node || strcmp(w->node, codec_json_str(item, "nodeId", "")) == 0 || strcmp(w->node, text) == 0;
}

static bool has_address(const struct wanted *w, const json_t *item)
{
    return strcmp(codec_json_str(item, "privateIpAddress", ""), w->node) == 0 ||
           strcmp(codec_json_str(item, "publicIpAddress", ""), w->node) == 0;
}

static int take_wanted(void *arg, const json_t *item, struct act_error *err)
{
    struct wanted *w = arg;
    const char *run = codec_json_str(item, "runId", "");

    (void)err;
    if (w->id ? strcmp(run, w->id) != 0 || !aml_nodes_is_wanted(w, item, w->seen++) : !has_address(w, item))
        return 0;
    w->number = w->id ? w->seen - 1 : 0;
    w->run = copy_nonempty(item, "runId");
    w->public_host = copy_nonempty(item, "publicIpAddress");
    w->private_host = copy_nonempty(item, "privateIpAddress");
    w->port = codec_json_int(item, "port", 0);
    return 1;
}

static int aml_nodes_find_wanted(struct azureml *a, struct wanted *w, struct act_error *err)
{
    int64_t number = 0;
    int rc = 0;

    if (lists_nodes(a)) {
        rc = each_node(a, take_wanted, w, err);
    } else if (w->id && (!w->node || act_int_from_text(w->node, &number))) {
        w->number = (int)number;
        w->run = act_strdup(w->id);
    }
    if (rc < 0 || w->number >= 0)
        return rc;
    if (w->id)
        return act_error_set(err, ACT_NOT_FOUND, "run '%s' has no node%s%s now; 'a nodes' lists them", w->id,
                             w->node ? " " : "", w->node ? w->node : "");
    return lists_nodes(a)
               ? act_error_set(err, ACT_NOT_FOUND,
                               "cluster '%s' has no node with the address %s now; 'a cluster nodes' lists them",
                               a->config->cluster, w->node)
               : act_error_set(err, ACT_NOT_FOUND, "platform '%s' does not tell the addresses of its nodes: name a run",
                               a->base.row->kind->name);
}

/* ---- how one logs in there ---- */

struct login {
    char *user; /* NULL: as ssh is configured */
    char *host; /* NULL: it is not known */
    int64_t port;
};

static void release_login(struct login *l)
{
    free(l->user);
    free(l->host);
}

/* The characters allowed in an address or user name, which become arguments of ssh. */
static bool is_safe_for_ssh(const char *text)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._";

    return text && *text && *text != '-' && strspn(text, letters) == strlen(text);
}

static bool is_usable(const struct login *l)
{
    return is_safe_for_ssh(l->host) && (!l->user || is_safe_for_ssh(l->user)) && l->port >= 0 && l->port < 65536;
}

/* "ssh://user@host:port", also without scheme, user or port. Anything else leaves *out empty. */
static void parse_login(const char *text, struct login *out)
{
    static const char scheme[] = "ssh://";
    const char *rest = act_starts_with(text, scheme) ? text + strlen(scheme) : text;
    size_t n = strcspn(rest, "/");
    ACT_AUTOFREE char *line = rest[n] && rest[n + 1] ? act_strdup("") : act_strndup(rest, n);
    char *at = strrchr(line, '@'), *host = at ? at + 1 : line, *colon = strrchr(host, ':');
    struct login login = {0};

    if (at)
        *at = '\0';
    if (colon)
        *colon = '\0';
    if (colon && !act_int_from_text(colon + 1, &login.port))
        return;
    login.user = at ? act_strdup(line) : NULL;
    login.host = act_strdup(host);
    if (is_usable(&login))
        *out = login;
    else
        release_login(&login);
}

/* Attached Kubernetes puts that of the first node into a tag of the run. */
static int ask_tag(struct azureml *a, const struct wanted *w, struct login *out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *details = NULL;
    int rc = azureml_details(a, w->run, &details, err);

    if (rc == 0 && w->number == 0)
        parse_login(codec_json_str(json_object_get(details, "tags"), "ssh", ""), out);
    return rc;
}

static int refer_to_az(const struct azureml *a, const struct wanted *w, struct act_error *err)
{
    const struct config *c = a->config;

    return act_error_set(err, ACT_FAIL,
                         "node %d of run '%s' is behind a websocket of the service, for which there is a "
                         "program; run: az ml job connect-ssh --name %s --node-index %d "
                         "--private-key-file-path ~/.ssh/id_rsa --workspace-name %s --resource-group %s "
                         "--subscription %s",
                         w->number, w->run, w->run, w->number, aml_config_keys(c)->workspace_name,
                         aml_config_keys(c)->resource_group, aml_config_keys(c)->subscription_id);
}

static int read_service(const struct azureml *a, const struct wanted *w, const json_t *service, struct login *out,
                        struct act_error *err)
{
    const char *status = codec_json_str(service, "status", "Running"),
               *endpoint = codec_json_str(service, "endpoint", ""),
               *proxy = codec_json_str(json_object_get(service, "properties"), "ProxyEndpoint", "");

    if (strcasecmp(status, "Running") != 0)
        return act_error_set(err, ACT_TEMPORARY, "the ssh service of node %d of run '%s' is '%s'", w->number, w->run,
                             status);
    parse_login(endpoint, out);
    return !out->host && (*proxy || act_starts_with(endpoint, "ws")) ? refer_to_az(a, w, err) : 0;
}

/* The ssh service that the job has on this node. */
static int ask_services(struct azureml *a, const struct wanted *w, struct login *out, struct act_error *err)
{
    const char *history, *name;
    json_t *service;
    int rc = azureml_history(a, &history, err);

    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *run = http_encode(w->run, false);
    struct arm_call call = {.method = "GET",
                            .what = "ask for the services of the run",
                            .url = azureml_history_url(a, "/runs/%s/serviceinstances/%d", run, w->number),
                            .missing_is_fine = true};
    rc = azureml_ask_history(a, &call, err);
    json_object_foreach(json_object_get(call.response, "instances"), name, service)
    {
        if (rc == 0 && !out->host && strcasecmp(codec_json_str(service, "type", ""), "SSH") == 0)
            rc = read_service(a, w, service, out, err);
    }
    arm_call_release(&call);
    return rc;
}

/* Logs in as the cluster's administrator, with the key that the cluster was created with. */
static int log_in_as_admin(struct azureml *a, const char *host, int64_t port, struct login *out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *compute = NULL;
    int rc = azureml_compute(a, &compute, err);

    if (rc < 0)
        return rc;
    const json_t *cluster = json_object_get(json_object_get(compute, "properties"), "properties"),
                 *account = json_object_get(cluster, "userAccountCredentials");
    *out = (struct login){.user = act_strdup(codec_json_str(account, "adminUserName", "azureuser")),
                          .host = act_strdup(host),
                          .port = port};
    return is_usable(out) ? 0
                          : act_error_set(err, ACT_FAIL, "the node has no address that ssh can use: '%s@%s'", out->user,
                                          out->host);
}

static int find_login(struct azureml *a, const struct wanted *w, struct login *out, struct act_error *err)
{
    int rc = 0;

    if (w->public_host)
        return log_in_as_admin(a, w->public_host, w->port, out, err);
    if (w->run && a->kind == AZUREML_ITP)
        rc = ask_tag(a, w, out, err);
    if (rc == 0 && w->run && !out->host)
        rc = ask_services(a, w, out, err);
    if (rc == 0 && !out->host && w->private_host) {
        act_note("the node has no public address: %s is reached only from the network of the cluster", w->private_host);
        return log_in_as_admin(a, w->private_host, 0, out, err);
    }
    if (rc == 0 && !out->host)
        rc = act_error_set(
            err, ACT_FAIL, "nobody can log in to node %d of run '%s': %s", w->number, w->run ? w->run : "-",
            a->kind == AZUREML_ITP ? "it has no tag 'ssh', and its job has no ssh service on that node; see azureml.ssh"
                                   : "its job has no ssh service on that node; see azureml.ssh");
    return rc;
}

/* Pushes the command, to be run in the code root (node/place.c) where that is there: ssh into a container finds it, ssh
 * to the machine around one does not. */
static void push_command(const struct wanted *w, const struct act_strv *command, struct act_strv *out)
{
    act_strv_push(out, "sh");
    act_strv_push(out, "-c");
    act_strv_push(out, "for d in \"${TMPDIR:-/tmp}/act-$(id -u)/$0/$1\"-*/code; do cd \"$d\" 2>/dev/null; done; "
                       "shift; [ $# -gt 0 ] || set -- \"${SHELL:-sh}\" -l; exec \"$@\"");
    act_strv_push(out, w->run ? w->run : "-");
    act_strv_pushf(out, "%d", w->number);
    act_strv_copy(out, command->v, command->n);
}

int azureml_shell(struct platform *p, const char *id, const char *node, const struct act_strv *command,
                  struct platform_shell *out, struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    struct wanted wanted = {.id = id, .node = node, .number = -1};
    ACT_AUTO(act_strv) words = {0};
    struct login login = {0};
    int rc = aml_nodes_find_wanted(a, &wanted, err);

    if (rc == 0)
        rc = find_login(a, &wanted, &login, err);
    if (rc == 0) {
        ACT_AUTOFREE char *whom =
            act_sprintf("%s%s%s", login.user ? login.user : "", login.user ? "@" : "", login.host);
        push_command(&wanted, command, &words);
        out->sees = OF_SSH;
        site_ssh_words(whom, (int)login.port, &words, &out->argv);
    }
    release_login(&login);
    release_wanted(&wanted);
    return rc;
}
