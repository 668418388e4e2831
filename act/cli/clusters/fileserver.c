/* fileserver.c - file servers in Azure: looking at them, making and removing them. */
#include "flow/cluster/fileserver.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/clusters/clusters.h"
#include "cli/clusters/options.h"
#include "cli/command/verbs.h"
#include "cli/print/ask.h"
#include "cli/print/print.h"
#include "cli/print/table.h"
#include "cli/runs/runs.h"
#include "codec/json.h"

#define GOES_ON "it goes on at the service; the same command goes on with it, 'a fileserver show' shows its state"

static int open_servers(struct cli *cli, struct flow_fileservers **out, struct act_error *err)
{
    *out = NULL;
    int rc = cli_open(cli, err);

    return rc < 0 ? rc
                  : flow_fileservers_open(&cli->flow, CLI_OPTIONS(cli, add)->subscription,
                                          CLI_OPTIONS(cli, add)->resource_group, out, err);
}

/* ---- printing ---- */

static json_t *cmd_fileserver_share_json(const struct flow_fileserver *s, const struct flow_share *share)
{
    bool mounts = flow_fileserver_mounts(s, share);
    ACT_AUTOFREE char *address = mounts ? flow_fileserver_address(s->host, s->name, share->name) : NULL;
    ACT_AUTOFREE char *mount = mounts ? flow_fileserver_mount(s->host, s->name, share->name) : NULL;

    return json_pack("{s:s, s:s, s:o, s:o, s:s?, s:s?}", "name", share->name, "protocol", share->is_nfs ? "nfs" : "smb",
                     "gib", cli_count_json(share->gib), "used", cli_count_json(share->used), "address", address,
                     "mount", mount);
}

static json_t *server_json(const struct flow_fileserver *s)
{
    json_t *shares = json_array();

    for (size_t i = 0; i < s->n_shares; i++)
        json_array_append_new(shares, cmd_fileserver_share_json(s, &s->shares[i]));
    return json_pack("{s:s, s:s?, s:s?, s:s?, s:s?, s:b, s:o, s:I, s:b, s:o}", "name", s->name, "resource_group",
                     s->group, "location", s->location, "redundancy", s->redundancy, "state", s->state, "made_by_act",
                     s->is_ours, "networks", codec_json_strv_new(&s->subnets), "private_endpoints",
                     (json_int_t)s->endpoints, "open", s->is_open, "shares", shares);
}

/* Writes "1.0 TiB", or "-" where it is not known. */
static void gib_text(int64_t gib, char out[ACT_UNIT_TEXT])
{
    if (gib < 0)
        snprintf(out, ACT_UNIT_TEXT, "-");
    else
        act_size_to_text((uint64_t)gib << 30, out);
}

/* Returns "data (NFS, 1.0 TiB, 12.3 GiB used)". New string. */
static char *share_text(const struct flow_share *share)
{
    char gib[ACT_UNIT_TEXT], used[ACT_UNIT_TEXT] = "";
    ACT_AUTOFREE char *name = cli_name(share->name);

    gib_text(share->gib, gib);
    if (share->used >= 0)
        act_size_to_text((uint64_t)share->used, used);
    return act_sprintf("%s (%s, %s%s%s%s)", name, share->is_nfs ? "NFS" : "SMB", gib, *used ? ", " : "", used,
                       *used ? " used" : "");
}

/* Returns "a, b" for all shares. New string; NULL: there are none. */
static char *shares_text(const struct flow_fileserver *s)
{
    struct act_buf out = {0};

    for (size_t i = 0; i < s->n_shares; i++) {
        ACT_AUTOFREE char *text = share_text(&s->shares[i]);
        act_buf_addf(&out, "%s%s", i ? ", " : "", text);
    }
    return out.data ? act_buf_steal(&out) : NULL;
}

/* Prints how a share is used. */
static void print_use(const char *host, const char *name, const char *share)
{
    ACT_AUTOFREE char *address = flow_fileserver_address(host, name, share);
    ACT_AUTOFREE char *mount = flow_fileserver_mount(host, name, share);
    ACT_AUTOFREE char *lines = flow_fileserver_lines(name, share);

    cli_print_fact("address", address);
    cli_print_fact("mount", mount);
    printf("cluster file, where the nodes have mounted it:\n%s", lines);
}

/* Returns "nodes, others; 1 private endpoint". New string. */
static char *network_text(const struct flow_fileserver *s)
{
    struct act_buf out = {0};

    if (s->is_open)
        act_buf_adds(&out, "open to all, with which NFS does not work");
    for (size_t i = 0; !s->is_open && i < s->subnets.n; i++)
        act_buf_addf(&out, "%s%s", i ? ", " : "", s->subnets.v[i]);
    if (s->endpoints)
        act_buf_addf(&out, "%s%lld private endpoint%s", out.len ? "; " : "", (long long)s->endpoints,
                     cli_plural(s->endpoints));
    return act_buf_steal(&out);
}

static void print_server(const struct flow_fileserver *s)
{
    ACT_AUTOFREE char *shares = shares_text(s), *network = network_text(s);

    cli_print_fact("name", s->name);
    cli_print_fact("state", s->state);
    cli_print_fact("location", s->location);
    cli_print_fact("redundancy", s->redundancy);
    cli_print_fact("network", *network ? network : "none: nobody can mount it");
    cli_print_fact("made by act", s->is_ours ? "yes" : "no");
    cli_print_fact("shares", shares ? shares : "none");
    if (s->is_encrypted_only)
        cli_print_fact("transfer", "secure transfer only: a plain mount of NFS does not work");
    for (size_t i = 0; i < s->n_shares; i++)
        if (flow_fileserver_mounts(s, &s->shares[i]))
            print_use(s->host, s->name, s->shares[i].name);
}

static void push_server(struct act_strv *cells, const struct flow_fileserver *s, bool with_group)
{
    char gib[ACT_UNIT_TEXT];
    int64_t sum = 0;

    for (size_t i = 0; i < s->n_shares; i++)
        sum += s->shares[i].gib > 0 ? s->shares[i].gib : 0;
    gib_text(sum, gib);
    if (with_group)
        cli_push_text(cells, s->group);
    act_strv_push(cells, s->name);
    cli_push_text(cells, s->state);
    act_strv_push(cells, s->n_shares ? gib : "-");
    cli_push_text(cells, s->location);
    act_strv_push(cells, s->redundancy);
    act_strv_push(cells, s->is_open ? "all" : s->subnets.n ? flow_fileserver_short(s->subnets.v[0]) : "-");
    act_strv_push(cells, s->is_ours ? "yes" : "no");
}

static void print_servers(const struct flow_fileserver_list *list, bool with_group)
{
    static const struct cli_column all_columns[] = {
        {"GROUP", 'l', .rank = 3},   {"NAME", 'l', .rank = 0},     {"STATE", 'l', .rank = 1},
        {"SIZE", 'r', .rank = 2},    {"LOCATION", 'l', .rank = 4}, {"REDUNDANCY", 'l', .rank = 6},
        {"NETWORK", 'l', .rank = 5}, {"BY ACT", 'l', .rank = 7},
    };
    ACT_AUTO(act_strv) cells = {0};

    for (size_t i = 0; i < list->n; i++)
        push_server(&cells, &list->v[i], with_group);
    cli_print_table(all_columns + !with_group, sizeof(all_columns) / sizeof(all_columns[0]) - !with_group, &cells);
}

/* ---- list, show ---- */

static int cmd_fileserver_print_list(const struct cli *cli, const struct flow_fileserver_list *list,
                                     struct act_error *err)
{
    if (cli->options.json)
        return cli_print_pack(err, "{s:o}", "servers", CLI_JSON_LIST(list->v, list->n, server_json));
    if (list->n == 0)
        act_note("there are no file servers in the %s; 'a fileserver create' makes one",
                 cli->options.all ? "subscription" : "resource group");
    else
        print_servers(list, cli->options.all);
    return 0;
}

static int cmd_fileserver_list(struct cli *cli, const char *name, struct act_error *err)
{
    ACT_AUTO(flow_fileserver_list) found = {0};
    struct flow_fileservers *servers;
    int rc = open_servers(cli, &servers, err);

    (void)name;
    if (rc == 0)
        rc = flow_list_fileservers(servers, cli->options.all, &found, err);
    flow_fileservers_close(servers);
    return rc < 0 ? rc : cmd_fileserver_print_list(cli, &found, err);
}

static int cmd_fileserver_show(struct cli *cli, const char *name, struct act_error *err)
{
    ACT_AUTO(flow_fileserver) found = {0};
    struct flow_fileservers *servers;
    int rc = open_servers(cli, &servers, err);

    if (rc == 0)
        rc = flow_get_fileserver(servers, name, &found, err);
    flow_fileservers_close(servers);
    if (rc == 0 && cli->options.json)
        rc = cli_print_pack(err, "{s:o}", "server", server_json(&found));
    else if (rc == 0)
        print_server(&found);
    return rc;
}

/* ---- create ---- */

static void push_request(json_t *requests, const char *method, const char *url, json_t *body)
{
    if (body)
        json_array_append_new(requests, json_pack("{s:s, s:s, s:O}", "method", method, "url", url, "body", body));
}

static int print_plan(const struct flow_fileserver_plan *plan, struct act_error *err)
{
    json_t *requests = json_array();

    push_request(requests, "PUT", plan->account_url, plan->account);
    push_request(requests, "PATCH", plan->account_url, plan->tags);
    push_request(requests, "PUT", plan->share_url, plan->share);
    if (plan->account || plan->share)
        act_note("would create the file server '%s' in %s", plan->name, plan->location);
    else if (plan->tags)
        act_note("the file server '%s' is there already; would set its tags", plan->name);
    else
        act_note("the file server '%s' is there already", plan->name);
    return cli_print_pack(err, "{s:b, s:s, s:s, s:o}", "dry_run", 1, "action", "create", "name", plan->name, "requests",
                          requests);
}

static int ask_create(const struct cli *cli, const struct flow_new_fileserver *wanted,
                      const struct flow_fileserver_plan *plan, struct act_error *err)
{
    char size[ACT_UNIT_TEXT];

    if (!plan->account && !plan->share)
        return 0;
    gib_text(flow_fileserver_gib(wanted), size);
    ACT_AUTOFREE char *question =
        act_sprintf("Make the file server '%s' in %s? Its %s are paid for day and night, used or not.", plan->name,
                    plan->location, size);
    return cli_confirm(cli, question, err);
}

/* Prints the result as the service has it now. */
static int print_made(struct cli *cli, struct flow_fileservers *servers, const struct flow_fileserver_plan *plan,
                      struct act_error *err)
{
    ACT_AUTO(flow_fileserver) made = {0};
    bool is_accepted = CLI_OPTIONS(cli, managed)->no_wait && (plan->account || plan->waits);

    if (is_accepted)
        act_note("the creation of the file server '%s' is accepted; the same command makes its share when that is over",
                 plan->name);
    if (is_accepted && !cli->options.json)
        return 0;
    int rc = flow_get_fileserver(servers, plan->name, &made, err);
    if (rc == 0 && cli->options.json)
        rc = cli_print_pack(err, "{s:o}", "server", server_json(&made));
    else if (rc == 0)
        print_server(&made);
    return rc;
}

static int cmd_fileserver_make(struct cli *cli, struct flow_fileservers *servers,
                               const struct flow_new_fileserver *wanted, struct act_error *err)
{
    ACT_AUTO(flow_fileserver_plan) plan = {0};
    struct cli_told told = {.noun = FLOW_FILESERVER_NOUN, .name = wanted->name, .goes_on = GOES_ON};
    struct platform_follow follow = cli_follow(cli, &told);
    int rc = flow_plan_fileserver(servers, wanted, &plan, err);

    if (rc < 0)
        return rc;
    if (cli->options.dry_run)
        return print_plan(&plan, err);
    rc = ask_create(cli, wanted, &plan, err);
    if (rc == 0)
        rc = flow_make_fileserver(servers, &plan, &follow, err);
    return rc < 0 ? rc : print_made(cli, servers, &plan, err);
}

static int cmd_fileserver_create(struct cli *cli, const char *name, struct act_error *err)
{
    const struct cli_managed_options *o = CLI_OPTIONS(cli, managed);
    struct flow_new_fileserver wanted = {
        .name = name, .bytes = o->size, .subnet = o->subnet, .location = o->location, .redundancy = o->redundancy};
    struct flow_fileservers *servers = NULL;
    struct flow_labels labels;
    int rc = flow_fileserver_check(&wanted, err);

    if (rc == 0)
        rc = cli_check_id("--subnet", o->subnet, "subnets", err);
    if (rc == 0)
        rc = cli_labels(cli, &labels, err);
    if (rc == 0)
        rc = open_servers(cli, &servers, err);
    wanted.tags = cli->tags;
    if (rc == 0)
        rc = cmd_fileserver_make(cli, servers, &wanted, err);
    flow_fileservers_close(servers);
    return rc;
}

/* ---- delete ---- */

/* -y is an answer about what ACT made, and about nothing else. */
static int ask_delete(const struct cli *cli, const struct flow_fileserver *s, struct act_error *err)
{
    ACT_AUTOFREE char *shares = shares_text(s);

    if (!s->is_ours && cli->options.yes)
        return act_error_set(err, ACT_DENIED,
                             "'%s' was not made by ACT, and has %s: it is deleted only without -y, by an answer on a "
                             "terminal",
                             s->name, shares ? shares : "no shares");
    ACT_AUTOFREE char *question =
        act_sprintf("%sDelete the file server '%s' with all data of %s? Nothing brings them back.",
                    s->is_ours ? "" : "ACT did not make it. ", s->name, shares ? shares : "no shares");
    return cli_confirm(cli, question, err);
}

static int delete_it(struct cli *cli, struct flow_fileservers *servers, const char *name, struct act_error *err)
{
    ACT_AUTO(flow_fileserver) found = {0};
    struct cli_told told = {.noun = FLOW_FILESERVER_NOUN, .name = name, .goes_on = GOES_ON};
    struct platform_follow follow = cli_follow(cli, &told);
    int rc = flow_get_fileserver(servers, name, &found, err);

    if (rc < 0)
        return rc;
    if (cli->options.dry_run) {
        ACT_AUTOFREE char *shares = shares_text(&found);
        act_note("would delete the file server '%s' with %s", name, shares ? shares : "no shares");
        return cli->options.json
                   ? cli_print_pack(err, "{s:b, s:s, s:s}", "dry_run", 1, "action", "delete", "name", name)
                   : 0;
    }
    rc = ask_delete(cli, &found, err);
    if (rc == 0)
        rc = flow_delete_fileserver(servers, name, &follow, err);
    if (rc == 0)
        act_note("the file server '%s' is deleted", name);
    if (rc == 0 && cli->options.json)
        rc = cli_print_pack(err, "{s:s, s:b}", "name", name, "deleted", 1);
    return rc;
}

static int delete (struct cli *cli, const char *name, struct act_error *err)
{
    struct flow_fileservers *servers;
    int rc = open_servers(cli, &servers, err);

    if (rc == 0)
        rc = delete_it(cli, servers, name, err);
    flow_fileservers_close(servers);
    return rc;
}

/* ---- the verbs ---- */

#define EVERYWHERE "cluster param subscription resource-group json "
const struct cli_verb cli_fileserver_verbs[] = {
    {.name = "create",
     .summary = "make a file server, or go on making it",
     .run = cmd_fileserver_create,
     .options = EVERYWHERE "size subnet location redundancy tag no-wait yes dry-run",
     .needs_name = true},
    {.name = "list",
     .summary = "those of the resource group",
     .run = cmd_fileserver_list,
     .options = EVERYWHERE "all",
     .takes_no_name = true},
    {.name = "show",
     .summary = "how full one is, and how to mount it",
     .run = cmd_fileserver_show,
     .options = EVERYWHERE,
     .needs_name = true},
    {.name = "delete",
     .summary = "delete one with all its data",
     .run = delete,
     .options = EVERYWHERE "yes dry-run",
     .needs_name = true},
    {.name = NULL},
};

int cmd_fileserver(struct cli *cli, struct act_error *err)
{
    const struct cli_verb *verb = cli_find_verb(cli, cli_fileserver_verbs, err);
    const char *name = cli->words.n > 1 ? cli->words.v[1] : NULL;

    if (!verb)
        return -ACT_USAGE;
    int rc = cli_check_verb(cli, verb, "file server", err);
    return rc < 0 ? rc : verb->run(cli, name, err);
}
