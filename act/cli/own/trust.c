/* trust.c - what a project reaches outside its folder, and whether it is allowed to. */
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/terminal.h"
#include "cli/own/options.h"
#include "cli/own/own.h"
#include "cli/print/ask.h"
#include "cli/print/print.h"
#include "codec/json.h"
#include "config/config.h"
#include "flow/flow.h"
#include "flow/trust.h"

static void print_items(FILE *out, const char *project, const struct act_strv *items)
{
    ACT_AUTOFREE char *name = cli_name(project);

    fprintf(out, "The project '%s' reaches out of its folder:\n", name);
    for (size_t i = 0; i < items->n; i++) {
        ACT_AUTOFREE char *item = cli_name(items->v[i]);
        ACT_AUTO(act_buf) lines = {0};
        act_wrap(item, 2, 4, act_terminal_width(fileno(out)), &lines);
        fprintf(out, "  %s\n", lines.len ? lines.data : "");
    }
}

int cli_ask_trust(const char *project, const struct act_strv *items, struct act_error *err)
{
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return 1;
    fflush(stdout);
    print_items(stderr, project, items);
    if (cli_ask("Do you trust it to? ACT remembers it until one of these changes."))
        return 0;
    return act_error_set(err, ACT_DENIED, "'%s' is not trusted: nothing was done", project);
}

static int cmd_trust_print_list(struct cli *cli, struct act_error *err)
{
    CODEC_AUTOJSON json_t *projects = NULL;
    size_t i;
    json_t *row;
    int rc = flow_trust_list(&projects, err);

    if (rc < 0)
        return rc;
    if (cli->options.json)
        return cli_print_pack(err, "{s:O}", "projects", projects);
    json_array_foreach(projects, i, row)
    {
        ACT_AUTOFREE char *path = codec_json_bytes_get(json_object_get(row, "path"));
        struct act_strv items = {0};
        cli_put_name(path ? path : "?");
        putchar_unlocked('\n');
        codec_json_strv_get(json_object_get(row, "trusted"), &items);
        for (size_t k = 0; k < items.n; k++) {
            fputs("  ", stdout);
            cli_put_name(items.v[k]);
            putchar_unlocked('\n');
        }
        act_strv_release(&items);
    }
    if (json_array_size(projects) == 0)
        act_note("no project is trusted to reach out of its folder");
    return 0;
}

/* Forgets the project at path, which need not exist any more; without a path, the current one. */
static int cmd_trust_forget(struct cli *cli, struct act_error *err)
{
    struct flow flow = {0};
    bool had = false;
    const char *path = cli->words.n ? cli->words.v[0] : NULL;
    int rc = path ? 0 : cli_open_to_look(cli, &flow, err);

    if (rc == 0)
        rc = flow_trust_forget(path ? path : flow.config->project_root, &had, err);
    if (rc == 0)
        act_note("%s", had ? "it is not trusted any more" : "nothing of it was trusted");
    flow_close(&flow);
    return rc;
}

static int print_reach_json(const char *project, const struct act_strv *all, const struct act_strv *unknown,
                            struct act_error *err)
{
    return cli_print_pack(err, "{s:o, s:o, s:o}", "path", codec_json_bytes_new(project), "reaches",
                          codec_json_strv_new(all), "untrusted", codec_json_strv_new(unknown));
}

/* Lists what leads out, then asks as every verb does, or with -y trusts what was listed. */
static int list_and_trust(struct cli *cli, const struct config *config, const struct act_strv *all,
                          const struct act_strv *unknown, struct act_error *err)
{
    const char *project = config->project_root;

    if (cli->options.json)
        return print_reach_json(project, all, unknown, err);
    if (all->n == 0) {
        act_note("'%s' does not reach out of its folder with cluster '%s': there is nothing to trust", project,
                 config->cluster);
        return 0;
    }
    if (unknown->n == 0 || cli->options.yes || cli->options.dry_run)
        print_items(stdout, project, unknown->n ? unknown : all);
    if (unknown->n == 0) {
        act_note("it is trusted");
        return 0;
    }
    if (cli->options.dry_run)
        return 0;
    int rc = cli->options.yes ? flow_trust_keep(project, unknown, err) : flow_trust(config, err);
    if (rc == 0)
        act_note("it is trusted now");
    return rc;
}

/* Names the other clusters of the project that reach out: each file may lead somewhere else. What is trusted already
 * is not said again. */
static void mention_others(const struct config *config)
{
    ACT_AUTO(act_strv) names = {0};
    struct act_error ignored;

    config_clusters(NULL, &names);
    for (size_t i = 0; i < names.n; i++) {
        const struct config_request request = {.cluster = names.v[i]};
        ACT_AUTO(act_strv) items = {0}, unknown = {0};
        ACT_AUTO(config) other = {0};
        if (strcmp(names.v[i], config->cluster) == 0 || config_load(&request, &other, &ignored) < 0)
            continue;
        flow_reach(&other, &items);
        if (flow_untrusted(other.project_root, &items, &unknown, &ignored) == 0 && unknown.n > 0)
            act_note("cluster '%s' reaches out of it: 'a -c %s trust' shows how", names.v[i], names.v[i]);
    }
}

int cmd_trust(struct cli *cli, struct act_error *err)
{
    const struct cli_trust_options *o = CLI_OPTIONS(cli, trust);
    ACT_AUTO(act_strv) all = {0}, unknown = {0};
    struct flow flow = {0};

    if (o->list && (o->remove || cli->words.n))
        return act_error_set(err, ACT_USAGE, "--list goes with nothing else");
    if (cli->words.n && !o->remove)
        return act_error_set(err, ACT_USAGE,
                             "'a trust' is about the project of the current folder; a path goes with --remove");
    if (o->list)
        return cmd_trust_print_list(cli, err);
    if (o->remove)
        return cmd_trust_forget(cli, err);
    int rc = cli_open_to_look(cli, &flow, err);
    if (rc == 0) {
        flow_reach(flow.config, &all);
        rc = flow_untrusted(flow.config->project_root, &all, &unknown, err);
    }
    if (rc == 0)
        rc = list_and_trust(cli, flow.config, &all, &unknown, err);
    if (rc == 0 && !cli->options.json)
        mention_others(flow.config);
    flow_close(&flow);
    return rc;
}
