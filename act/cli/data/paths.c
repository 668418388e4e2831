/* paths.c - shared by the verbs that transfer data: their options, and their results. */
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/units.h"
#include "cli/data/data.h"
#include "cli/data/options.h"
#include "cli/print/print.h"
#include "codec/json.h"
#include "filter/filter.h"
#include "flow/data/data.h"
#include "flow/flow.h"
#include "flow/logs/logs.h"
#include "flow/runs/runs.h"

static int check_links(const struct cli *cli, struct act_error *err)
{
    const struct cli_transfer_options *o = CLI_OPTIONS(cli, transfer);

    if (o->follow_links && o->skip_links)
        return act_error_set(err, ACT_USAGE, "--follow and --skip-links exclude each other");
    if (o->follow_links && o->from_cluster)
        return act_error_set(err, ACT_USAGE, "--follow is for the folder here, not for the store of cluster '%s'",
                             o->from_cluster);
    return 0;
}

static int check_budget(const struct cli *cli, struct act_error *err)
{
    const struct cli_transfer_options *o = CLI_OPTIONS(cli, transfer);
    uint64_t memory = o->memory ? o->memory : TRANSFER_MEMORY, part = o->part_size ? o->part_size : TRANSFER_PART_SIZE;
    char m[ACT_UNIT_TEXT], p[ACT_UNIT_TEXT];

    if (o->max_delete >= 0 && !o->delete_extra)
        return act_error_set(err, ACT_USAGE, "--max-delete says nothing without --delete");
    if (memory >= part)
        return 0;
    act_size_to_text(memory, m);
    act_size_to_text(part, p);
    return act_error_set(err, ACT_USAGE,
                         "%s of memory cannot hold one part of %s; give more --memory or a smaller --part-size", m, p);
}

int cli_transfer_options(struct cli *cli, struct transfer_options *out, struct act_error *err)
{
    const struct cli_transfer_options *o = CLI_OPTIONS(cli, transfer);
    const struct filter_options patterns = {
        .files = &o->filter_files, .excludes = &o->excludes, .includes = &o->includes};
    int rc = check_budget(cli, err);

    if (rc == 0)
        rc = check_links(cli, err);
    if (rc == 0)
        rc = filter_new(&patterns, &cli->filter, err);
    *out = (struct transfer_options){.part_size = o->part_size,
                                     .memory = o->memory,
                                     .filter = cli->filter,
                                     .checksum = o->checksum,
                                     .keep_newer = !o->overwrite,
                                     .no_sync = o->no_sync,
                                     .md5_max = o->md5 ? UINT64_MAX : 0,
                                     .delete_extra = o->delete_extra,
                                     .max_delete = o->max_delete,
                                     .dry_run = cli->options.dry_run};
    return rc;
}

int cli_with_source(struct cli *cli, int (*act)(struct cli *cli, struct flow *from, struct act_error *err),
                    struct act_error *err)
{
    const char *cluster = CLI_OPTIONS(cli, transfer)->from_cluster;
    struct flow from = {0};
    int rc = cluster ? cli_open_flow(cli, cluster, &from, err) : 0;

    if (rc == 0)
        rc = act(cli, cluster ? &from : NULL, err);
    flow_close(&from);
    return rc;
}

void cli_warn_idle_patterns(const struct cli *cli, const struct cli_outcome *outcome)
{
    ACT_AUTO(act_strv) idle = {0};

    if (outcome->n_failed == outcome->n)
        return;
    filter_idle(cli->filter, &idle);
    for (size_t i = 0; i < idle.n; i++)
        act_warn("%s matched nothing", idle.v[i]);
}

static json_t *failure_group_json(const struct transfer_failure *f)
{
    return json_pack("{s:o,s:I,s:o}", "text", codec_json_bytes_new(f->text), "count", (json_int_t)f->n, "also",
                     codec_json_strv_new(&f->also));
}

json_t *cli_failures_json(const struct transfer_report *report)
{
    return CLI_JSON_LIST(report->failures, report->n_failures, failure_group_json);
}

static json_t *path_error_json(const struct act_error *err)
{
    return json_pack("{s:o,s:i}", "text", codec_json_bytes_new(act_error_text(err)), "status", err->code);
}

json_t *cli_errors_json(const struct cli_outcome *outcome)
{
    return CLI_JSON_LIST(outcome->failed, outcome->n_failed, path_error_json);
}

static int paths_check_idle(const struct cli *cli, const char *word, const char *what, struct act_error *err)
{
    const struct cli_option *idle = cli_given_beyond(cli, cli->command->run_options);

    if (idle)
        return act_error_set(err, ACT_USAGE, "'a %s' takes no '--%s' for '%s', %s", cli->command->name, idle->long_name,
                             word, what);
    return 1;
}

int cli_names_run(struct cli *cli, const char *word, struct act_error *err)
{
    const char *verb = cli->command->name;
    int rc = flow_names_run(&cli->flow, word, err);

    if (rc > 0 && !cli->command->run_options)
        return act_error_set(err, ACT_USAGE,
                             "'%s' names the logs of a run, which are only read: by 'a ls', 'a cat', "
                             "'a du' and 'a d', not by 'a %s' ('./%s' is a file of that name)",
                             word, verb, word);
    return rc > 0 ? paths_check_idle(cli, word, "the logs of a run", err) : rc;
}

int cli_names_whole_run(struct cli *cli, const char *word, char **out_piece, struct act_error *err)
{
    int rc = flow_names_whole_run(&cli->flow, word, out_piece, err);

    return rc > 0 ? paths_check_idle(cli, word, "a run", err) : rc;
}

int cli_open_path(struct cli *cli, const char *word, struct flow_path *out, struct act_error *err)
{
    int rc = cli_names_run(cli, word, err);

    *out = (struct flow_path){0};
    return rc < 0 ? rc : (rc > 0 ? flow_open_run_path : flow_open_path)(&cli->flow, word, out, err);
}

/* Appends the place of each word; what is in no mapped folder, which is said later, stands for itself. */
static void paths_find_places(struct cli *cli, struct act_strv *out)
{
    for (size_t i = 0; i < cli->words.n; i++) {
        char *place = flow_path_place(&cli->flow, cli->words.v[i]);
        act_strv_take(out, place ? place : act_sprintf("\n%s", cli->words.v[i]));
    }
}

/* Returns the word in which another one is as a whole, and of words for the same path the first; NULL: none. The
 * patterns of a filter begin at each word: then only the same path counts. firsts: the first word of each place. */
static const char *paths_around(const struct cli *cli, const json_t *firsts, const char *place, size_t at)
{
    ACT_AUTOFREE char *outer = act_strdup(place);
    json_int_t first = json_integer_value(json_object_get(firsts, place));
    const json_t *found = NULL;
    char *slash;

    if (first != (json_int_t)at)
        return cli->words.v[first];
    while (!cli->filter && !found && (slash = strrchr(outer, '/'))) {
        *slash = '\0';
        found = json_object_get(firsts, outer);
    }
    return found ? cli->words.v[json_integer_value(found)] : NULL;
}

void cli_paths_once(struct cli *cli, bool are_here)
{
    struct act_strv once = {0};
    ACT_AUTO(act_strv) places = {0};
    json_t *firsts = json_object();

    paths_find_places(cli, &places);
    for (size_t i = places.n; i-- > 0;)
        json_object_set_new_nocheck(firsts, places.v[i], json_integer((json_int_t)i));
    for (size_t i = 0; i < cli->words.n; i++) {
        const char *around = paths_around(cli, firsts, places.v[i], i);
        if (!around || (are_here && access(cli->words.v[i], F_OK) < 0))
            act_strv_push(&once, cli->words.v[i]);
        else if (!act_streq(around, cli->words.v[i]))
            act_note("'%s' is in '%s', and counts once", cli->words.v[i], around);
    }
    json_decref(firsts);
    act_strv_release(&cli->words);
    cli->words = once;
}

bool cli_check_paths(struct cli *cli, struct flow *from, cli_path_check *check, const char *hint,
                     struct cli_outcome *outcome)
{
    const struct act_strv *words = &cli->words;

    for (size_t i = 0; i < words->n; i++) {
        struct act_error err = {0};
        int rc = cli_names_run(cli, words->v[i], &err);
        if (rc == 0)
            rc = check(&cli->flow, words->v[i], &err);
        if (rc == 0 && from)
            rc = flow_check_path(from, words->v[i], &err);
        if (rc < 0)
            cli_outcome_add(outcome, rc, &err);
    }
    if (words->n > 1)
        cli_outcome_hint(outcome, hint);
    return outcome->n_failed == 0;
}

int cli_each_place(struct cli *cli, const char *word, cli_place_fn *each, void *arg, struct act_error *err)
{
    struct flow_path p;
    int rc = 0;

    if (!CLI_OPTIONS(cli, list)->leftovers) {
        rc = cli_open_path(cli, word, &p, err);
        return rc < 0 ? rc : each(arg, word, FLOW_STORE, &p, err);
    }
    rc = cli_names_run(cli, word, err);
    for (enum flow_place place = FLOW_STORE; rc == 0 && place < FLOW_PLACES; place++) {
        rc = flow_open_place(&cli->flow, word, place, &p, err);
        if (rc == 0)
            rc = each(arg, word, place, &p, err);
        else if (rc == -ACT_NOT_FOUND && place == FLOW_HERE)
            rc = 0;
    }
    return rc;
}
