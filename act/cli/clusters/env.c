/* env.c - the environments that runs have made on a cluster. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/clusters/clusters.h"
#include "cli/command/verbs.h"
#include "cli/print/ask.h"
#include "cli/print/print.h"
#include "cli/print/table.h"
#include "codec/json.h"
#include "config/config.h"
#include "platform/platform.h"

static int cmd_env_open(struct cli *cli, struct platform_environments *out, struct act_error *err)
{
    struct platform *platform = NULL;
    int rc = cli_open(cli, err);

    *out = (struct platform_environments){0};
    if (rc == 0)
        rc = flow_platform(&cli->flow, &platform, err);
    return rc < 0 ? rc : platform_list_environments(platform, out, err);
}

/* Keeps those whose key begins so, and which must be one: on each of several machines, perhaps. */
static int cmd_env_choose(struct platform_environments *all, const char *key, struct act_error *err)
{
    struct platform_environments found = {0}, others = {0};
    bool is_one = true;

    for (size_t i = 0; i < all->n; i++) {
        struct platform_environments *to = act_starts_with(all->v[i].key, key) ? &found : &others;
        is_one = is_one && (to == &others || to->n == 0 || strcmp(all->v[i].key, to->v[0].key) == 0);
        ACT_PUSH(to->v, to->n, all->v[i]);
    }
    free(all->v);
    *all = found;
    platform_environments_release(&others);
    if (found.n == 0)
        return act_error_set(err, ACT_NOT_FOUND, "there is no environment '%s'; 'a env list' lists them", key);
    return is_one ? 0 : act_error_set(err, ACT_USAGE, "'%s' is the beginning of several environments", key);
}

/* ---- printing */

static json_t *cmd_env_json(const struct platform_environment *e)
{
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:I, s:b, s:b, s:o}", "key", e->key, "from",
                     cli_text_json(e->about.file), "node", cli_text_json(e->about.node), "image",
                     cli_text_json(e->about.image), "made", cli_time_json(e->about.made_unix_s), "packages",
                     cli_count_json(e->about.packages), "took_ms", (json_int_t)e->about.took_ms, "bytes",
                     (json_int_t)e->bytes, "used", cli_time_json(e->used_unix_s), "runs", (json_int_t)e->n_runs,
                     "in_use", e->state == ENVIRONMENT_IN_USE, "being_made", e->state == ENVIRONMENT_IN_THE_MAKING,
                     "path", codec_json_bytes_new(e->path));
}

/* Returns "now", or "2d3h ago", or "being made for 1m12s". New string. */
static char *last_use(const struct platform_environment *e)
{
    char text[ACT_UNIT_TEXT];
    bool is_whole = e->state != ENVIRONMENT_IN_THE_MAKING;
    int64_t since_s = act_now_unix_s() - (is_whole ? e->used_unix_s : e->about.made_unix_s);

    if (e->state == ENVIRONMENT_IN_USE)
        return act_strdup("now");
    act_duration_to_text(since_s > 0 ? since_s : 0, text);
    return is_whole ? act_sprintf("%s ago", text) : act_sprintf("being made for %s", text);
}

static void print_environments(const struct platform_environments *all)
{
    static const struct cli_column columns[] = {
        {"KEY", 'l', .rank = 0},      {"FROM", 'l', .rank = 1}, {"PACKAGES", 'r', .rank = 4}, {"SIZE", 'r', .rank = 2},
        {"LAST USE", 'r', .rank = 3}, {"RUNS", 'r', .rank = 5}, {"NODE", 'l', .rank = 6},
    };
    ACT_AUTO(act_strv) cells = {0};

    for (size_t i = 0; i < all->n; i++) {
        const struct platform_environment *e = &all->v[i];
        ACT_AUTOFREE char *used = last_use(e);
        char size[ACT_UNIT_TEXT];
        act_size_to_text(e->bytes, size);
        act_strv_push(&cells, e->key);
        cli_push_text(&cells, e->about.file);
        cli_push_count(&cells, e->about.packages);
        ACT_STRV_PUSH(&cells, size, used);
        cli_push_count(&cells, (int64_t)e->n_runs);
        cli_push_text(&cells, e->about.node);
    }
    cli_print_table(columns, sizeof(columns) / sizeof(columns[0]), &cells);
}

static void print_environment(const struct platform_environment *e)
{
    ACT_AUTOFREE char *used = last_use(e), *runs = act_sprintf("%zu", e->n_runs);
    ACT_AUTOFREE char *packages = act_sprintf("%d", e->about.packages);
    char size[ACT_UNIT_TEXT], took[ACT_UNIT_TEXT];

    act_size_to_text(e->bytes, size);
    act_duration_to_text(e->about.took_ms / 1000, took);
    cli_print_fact("key", e->key);
    cli_print_fact("from", e->about.file);
    cli_print_fact("image", e->about.image);
    cli_print_fact("packages", packages);
    cli_print_fact("size", size);
    cli_print_fact("made on", e->about.node);
    cli_print_fact("made in", took);
    cli_print_fact("runs", runs);
    cli_print_fact("last use", used);
    cli_print_fact("path", e->path);
}

/* ---- the verbs */

static int cmd_env_list(struct cli *cli, const char *key, struct act_error *err)
{
    ACT_AUTO(platform_environments) all;
    int rc = cmd_env_open(cli, &all, err);

    (void)key;
    if (rc < 0)
        return rc;
    if (cli->options.json)
        return cli_print_pack(err, "{s:s, s:o}", "cluster", cli->flow.config->cluster, "environments",
                              CLI_JSON_LIST(all.v, all.n, cmd_env_json));
    if (all.n == 0)
        act_note("there are no environments on the cluster '%s'", cli->flow.config->cluster);
    else
        print_environments(&all);
    return 0;
}

static int cmd_env_show(struct cli *cli, const char *key, struct act_error *err)
{
    ACT_AUTO(platform_environments) all;
    int rc = cmd_env_open(cli, &all, err);

    if (rc == 0)
        rc = cmd_env_choose(&all, key, err);
    if (rc < 0)
        return rc;
    if (cli->options.json)
        return cli_print_pack(err, "{s:s, s:o}", "cluster", cli->flow.config->cluster, "environments",
                              CLI_JSON_LIST(all.v, all.n, cmd_env_json));
    for (size_t i = 0; i < all.n; i++)
        print_environment(&all.v[i]);
    return 0;
}

static int env_refuse_in_use(const struct platform_environment *e, struct act_error *err)
{
    return act_error_set(err, ACT_FAIL, "the environment '%s' is %s", e->key,
                         e->state == ENVIRONMENT_IN_THE_MAKING ? "being made" : "used by a run that has not ended");
}

static int ask_and_remove(const struct cli *cli, const struct platform_environment *e, struct act_error *err)
{
    char size[ACT_UNIT_TEXT];
    bool gone = false;

    act_size_to_text(e->bytes, size);
    ACT_AUTOFREE char *question = act_sprintf(
        "Remove the environment '%s' (%s, %s)? A run that needs it makes it anew.", e->key, e->about.file, size);
    int rc = cli_confirm(cli, question, err);
    if (rc == 0)
        rc = platform_remove_environment(e, &gone, err);
    return rc < 0 || gone ? rc : env_refuse_in_use(e, err);
}

static int remove_one(const struct cli *cli, const struct platform_environment *e, struct act_error *err)
{
    bool dry_run = cli->options.dry_run;
    int rc = e->state != ENVIRONMENT_IDLE ? env_refuse_in_use(e, err) : dry_run ? 0 : ask_and_remove(cli, e, err);

    if (rc < 0)
        return rc;
    act_note("%s the environment '%s'", dry_run ? "would remove" : "removed", e->key);
    if (cli->options.json)
        cli_print_pack_line("{s:b, s:s, s:I}", "dry_run", dry_run, "key", e->key, "bytes", (json_int_t)e->bytes);
    return 0;
}

/* On several machines there may be several. */
static int cmd_env_rm(struct cli *cli, const char *key, struct act_error *err)
{
    ACT_AUTO(platform_environments) all;
    int rc = cmd_env_open(cli, &all, err);

    if (rc == 0)
        rc = cmd_env_choose(&all, key, err);
    for (size_t i = 0; rc == 0 && i < all.n; i++)
        rc = remove_one(cli, &all.v[i], err);
    return rc;
}

const struct cli_verb cli_env_verbs[] = {
    {.name = "list",
     .summary = "all of the cluster",
     .run = cmd_env_list,
     .options = "cluster param json",
     .takes_no_name = true},
    {.name = "show",
     .summary = "one, with its size and where it is",
     .run = cmd_env_show,
     .options = "cluster param json",
     .needs_name = true},
    {.name = "rm",
     .summary = "remove one; a run that needs it makes it anew",
     .run = cmd_env_rm,
     .options = "cluster param json yes dry-run",
     .needs_name = true},
    {.name = NULL},
};

int cmd_env(struct cli *cli, struct act_error *err)
{
    const struct cli_verb *verb = cli_find_verb(cli, cli_env_verbs, err);
    const char *key = cli->words.n > 1 ? cli->words.v[1] : NULL;

    if (!verb)
        return -ACT_USAGE;
    int rc = cli_check_verb(cli, verb, "environment", err);
    return rc < 0 ? rc : verb->run(cli, key, err);
}
