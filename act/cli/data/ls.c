/* ls.c - lists the store: names, a table, or JSON lines, printed as the listing arrives. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/data/data.h"
#include "cli/data/options.h"
#include "cli/print/print.h"
#include "cli/print/table.h"
#include "codec/json.h"
#include "config/config.h"
#include "flow/data/data.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"

struct listing {
    struct cli *cli;
    const char *word; /* the path as typed */
    const struct transfer_path *what;
    void (*print)(const struct listing *l, const struct store_entry *entry, const char *rel);
    enum transfer_scope scope;
    enum flow_place place; /* of leftovers */
    int widths[4];         /* of the columns; 0: left out */
    int64_t now_s;
    uint64_t objects, folders, bytes;
};

/* Rows are printed as they arrive, so the widths depend on the terminal alone. The name is never cut. */
static const struct cli_column long_columns[] = {
    {"mode", 'l', .rank = 3}, {"size", 'r', .rank = 1}, {"time", 'l', .rank = 2}, {"name", 'l', .rank = 0}};
static const struct cli_column leftover_columns[] = {
    {"place", 'l', .rank = 3}, {"size", 'r', .rank = 1}, {"age", 'r', .rank = 2}, {"name", 'l', .rank = 0}};

static void fit(struct listing *l)
{
    enum { NAME = 24 };
    bool is_leftover = l->scope == TRANSFER_LEFTOVERS;

    memcpy(l->widths,
           (const int[]){is_leftover ? 5 : 10, CLI_OPTIONS(l->cli, list)->bytes ? 15 : 10, is_leftover ? 11 : 19, NAME},
           sizeof(l->widths));
    cli_fit(is_leftover ? leftover_columns : long_columns, l->widths, 4, cli_width());
}

static void print_columns(const struct listing *l, const struct cli_column *columns, const char *const *texts)
{
    for (size_t i = 0; i < 3; i++)
        if (l->widths[i] > 0)
            printf(columns[i].align == 'r' ? "%*s  " : "%-*s  ", l->widths[i], texts[i]);
}

static int64_t cmd_ls_time_of(const struct store_entry *e)
{
    return e->mtime_ns ? e->mtime_ns / 1000000000 : e->last_modified_s;
}

static bool is_folder(const struct store_entry *e)
{
    return e->kind == STORE_FOLDER || e->kind == STORE_PREFIX;
}

/* Writes "drwxr-xr-x", or "d" if the mode is not known. */
static void mode_text(const struct store_entry *e, char out[11])
{
    static const char letters[] = "rwxrwxrwx";

    out[0] = is_folder(e) ? 'd' : e->kind == STORE_SYMLINK ? 'l' : '-';
    for (int i = 0; i < 9; i++)
        out[1 + i] = e->mode & (0400 >> i) ? letters[i] : '-';
    out[e->mode < 0 ? 1 : 10] = '\0';
}

static void cmd_ls_print_name(const struct listing *l, const struct store_entry *entry, const char *rel)
{
    (void)l;
    (void)entry;
    cli_put_path(rel);
    putchar_unlocked('\n');
}

static void print_long(const struct listing *l, const struct store_entry *e, const char *rel)
{
    char mode[11], size[ACT_UNIT_TEXT] = "-", when[ACT_TIME_TEXT] = "-";

    mode_text(e, mode);
    if (!is_folder(e))
        cli_size(l->cli, e->size, size);
    if (cmd_ls_time_of(e))
        act_time_to_local(cmd_ls_time_of(e), when);
    print_columns(l, long_columns, (const char *const[]){mode, size, when});
    cmd_ls_print_name(l, e, rel);
}

static const char *const place_words[FLOW_PLACES] = {[FLOW_STORE] = "store", [FLOW_HERE] = "here"};

static void print_leftover(const struct listing *l, const struct store_entry *e, const char *rel)
{
    char size[ACT_UNIT_TEXT], time[ACT_UNIT_TEXT] = "-", age[ACT_UNIT_TEXT + 4];

    cli_size(l->cli, e->size, size);
    if (cmd_ls_time_of(e))
        act_duration_to_text(l->now_s > cmd_ls_time_of(e) ? l->now_s - cmd_ls_time_of(e) : 0, time);
    snprintf(age, sizeof(age), "%s old", time);
    print_columns(l, leftover_columns, (const char *const[]){place_words[l->place], size, age});
    cmd_ls_print_name(l, e, rel);
}

static void print_entry_json(const struct listing *l, const struct store_entry *e, const char *rel)
{
    ACT_AUTOFREE char *path = cli_path_of(l->word, l->what, e->key);
    char when[ACT_TIME_TEXT], mode[8];

    act_time_to_iso(cmd_ls_time_of(e), when);
    snprintf(mode, sizeof(mode), "%04o", (unsigned)e->mode & 07777U);
    bool leftover = l->scope == TRANSFER_LEFTOVERS;
    cli_print_pack_line("{s:o,s:o,s:s,s:I,s:s?,s:s?,s:s?,s:s*}", "path", codec_json_bytes_new(path), "name",
                        codec_json_bytes_new(rel), "kind", leftover ? "leftover" : cli_kind(e->kind), "size",
                        (json_int_t)e->size, "mtime", cmd_ls_time_of(e) ? when : NULL, "mode",
                        e->mode < 0 ? NULL : mode, "md5", e->md5[0] ? e->md5 : NULL, "place",
                        leftover ? place_words[l->place] : NULL);
}

static int print_entry(void *arg, const struct store_entry *entry, const char *rel, struct act_error *err)
{
    struct listing *l = arg;

    l->folders += is_folder(entry);
    l->objects += !is_folder(entry);
    l->bytes += entry->size;
    l->print(l, entry, rel);
    return cli_check_stdout(err);
}

static int cmd_ls_list(void *arg, const char *word, enum flow_place place, struct flow_path *p, struct act_error *err)
{
    struct listing *l = arg;

    l->word = word;
    l->place = place;
    l->what = &p->path;
    int rc = transfer_list(services_engine(&l->cli->services), &p->path, l->scope, print_entry, l, err);
    flow_path_release(p);
    return rc;
}

/* Says that a word may be a run, which is a path with a colon. */
static void hint_run(struct cli *cli, const char *word, struct act_error *err)
{
    ACT_AUTO(flow_run) run = {0};
    struct act_error ignored;

    if (!strpbrk(word, ":/") && flow_find_unasked(&cli->flow, word, &run, &ignored) == 0)
        act_error_hint(err, "it is a piece of the id of a run, whose logs 'a ls %s:' lists", word);
}

static int list_word(struct cli *cli, const char *word, struct listing *l, struct act_error *err)
{
    if (cli->words.n > 1 && !cli->options.json)
        printf("%s%s\n", word, act_ends_with(word, ":") ? "" : ":");
    int rc = cli_each_place(cli, word, cmd_ls_list, l, err);
    if (rc == -ACT_NOT_FOUND)
        hint_run(cli, word, err);
    return rc;
}

static void cmd_ls_print_summary(const struct listing *l)
{
    char size[ACT_UNIT_TEXT], folders[48] = "";

    act_size_to_text(l->bytes, size);
    if (l->folders)
        snprintf(folders, sizeof(folders), "%llu folder%s, ", (cli_count_t)l->folders, cli_plural(l->folders));
    act_note("%s%llu %s%s, %s", folders, (cli_count_t)l->objects,
             l->scope == TRANSFER_LEFTOVERS ? "leftover" : "object", cli_plural(l->objects), size);
}

/* ---- without a path: the mapped folders */

static void cmd_ls_print_mapped(const struct cli *cli, const char *name)
{
    if (cli->options.json) {
        cli_print_pack_line("{s:s,s:s,s:s,s:n,s:n,s:n,s:n}", "path", name, "name", name, "kind", "folder", "size",
                            "mtime", "mode", "md5");
        return;
    }
    cli_put_path(name);
    puts("/");
}

static int cmd_ls_mapped(struct cli *cli, struct act_error *err)
{
    const struct cli_list_options *o = CLI_OPTIONS(cli, list);
    const struct config *c = cli->flow.config;

    if (o->leftovers || o->recursive || o->long_form)
        return cli_needs_more(cli, err);
    for (size_t i = 0; i < c->n_folders; i++)
        cmd_ls_print_mapped(cli, c->folders[i].name);
    for (size_t i = 0; i < c->n_far; i++)
        cmd_ls_print_mapped(cli, c->far[i].name);
    act_note("%zu mapped folder%s of cluster '%s'", c->n_folders + c->n_far, cli_plural(c->n_folders + c->n_far),
             c->cluster);
    return cli_check_stdout(err);
}

int cmd_ls(struct cli *cli, struct act_error *err)
{
    const struct cli_list_options *o = CLI_OPTIONS(cli, list);
    struct listing l = {.cli = cli, .now_s = act_now_unix_s()};
    struct cli_outcome outcome = {0};

    if (cli->words.n == 0)
        return cmd_ls_mapped(cli, err);
    l.scope = o->leftovers ? TRANSFER_LEFTOVERS : o->recursive ? TRANSFER_TREE : TRANSFER_LEVEL;
    l.print = cli->options.json ? print_entry_json
              : o->leftovers    ? print_leftover
              : o->long_form    ? print_long
                                : cmd_ls_print_name;
    fit(&l);
    cli_buffer_stdout();
    for (size_t i = 0; i < cli->words.n; i++)
        cli_outcome_add(&outcome, list_word(cli, cli->words.v[i], &l, err), err);
    if (!cli->options.json && outcome.n_failed < outcome.n)
        cmd_ls_print_summary(&l);
    return cli_outcome_end(&outcome, err);
}
