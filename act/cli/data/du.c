/* du.c - the size of everything below a path, and below its subfolders.
 *
 * A listing is sorted by key, so the objects of a folder are adjacent: only the ancestors of the current object are
 * kept, and each is printed when the listing leaves it, as du does.
 */
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/data/data.h"
#include "cli/data/options.h"
#include "cli/print/print.h"
#include "cli/print/table.h"
#include "codec/json.h"
#include "flow/data/data.h"
#include "flow/flow.h"
#include "flow/keep/keep.h"

enum { MAX_DEPTH = 1024 }; /* no key has more folders */

struct sum {
    uint64_t bytes, objects;
    size_t len; /* of the folder's part of the path, with the slash; 0: the path itself */
};

struct usage {
    const struct cli *cli;
    const char *word;
    struct transfer_path *what;
    size_t depth;     /* of subfolders with their own line */
    struct sum *open; /* depth + 1 of them: the path itself, a subfolder, ... */
    size_t n_open;
    struct act_buf at; /* the current folder, relative to the path: "a/b/" */
};

static void print_sum(const struct usage *u, const struct sum *sum)
{
    ACT_AUTOFREE char *rel = act_strndup(u->at.data ? u->at.data : "", sum->len ? sum->len - 1 : 0);
    ACT_AUTOFREE char *path = sum->len ? cli_path_below(u->word, u->what, rel) : act_strdup(u->word);
    char size[ACT_UNIT_TEXT];

    if (u->cli->options.json) {
        cli_print_pack_line("{s:o,s:I,s:I}", "path", codec_json_bytes_new(path), "objects", (json_int_t)sum->objects,
                            "bytes", (json_int_t)sum->bytes);
        return;
    }
    cli_size(u->cli, sum->bytes, size);
    printf("%*s  %10llu  ", CLI_OPTIONS(u->cli, list)->bytes ? 15 : 10, size, (cli_count_t)sum->objects);
    cli_put_path(path);
    putchar_unlocked('\n');
}

/* Prints the innermost folder, and adds its sum to that of its parent. */
static void close_folder(struct usage *u)
{
    struct sum *sum = &u->open[--u->n_open];

    print_sum(u, sum);
    if (u->n_open == 0)
        return;
    sum[-1].bytes += sum->bytes;
    sum[-1].objects += sum->objects;
    u->at.len = sum[-1].len;
    u->at.data[u->at.len] = '\0';
}

/* Moves to the folder that contains rel, down to the depth that is printed. */
static void go_to(struct usage *u, const char *rel)
{
    const char *slash;

    while (u->n_open > 1 && !act_starts_with(rel, u->at.data))
        close_folder(u);
    while (u->n_open <= u->depth && (slash = strchr(rel + u->at.len, '/')) != NULL) {
        act_buf_add(&u->at, rel + u->at.len, (size_t)(slash - rel) + 1 - u->at.len);
        u->open[u->n_open++] = (struct sum){.len = u->at.len};
    }
}

static int count_object(void *arg, const struct store_entry *entry, const char *rel, struct act_error *err)
{
    struct usage *u = arg;

    go_to(u, rel);
    u->open[u->n_open - 1].bytes += entry->size;
    u->open[u->n_open - 1].objects += entry->kind != STORE_FOLDER;
    return cli_check_stdout(err);
}

static int cmd_du_measure(struct cli *cli, const char *word, struct act_error *err)
{
    int64_t asked = CLI_OPTIONS(cli, list)->depth > 0 ? CLI_OPTIONS(cli, list)->depth : 0;
    size_t depth = asked < MAX_DEPTH ? (size_t)asked : MAX_DEPTH;
    struct usage u = {.cli = cli, .word = word, .depth = depth, .n_open = 1};
    ACT_AUTO(flow_path) p = {0};
    int rc = cli_open_path(cli, word, &p, err);

    if (rc < 0)
        return rc;
    u.what = &p.path;
    u.open = act_calloc(depth + 1, sizeof(*u.open));
    rc = transfer_list(services_engine(&cli->services), &p.path, TRANSFER_TREE, count_object, &u, err);
    while (rc == 0 && u.n_open > 0)
        close_folder(&u);
    free(u.open);
    act_buf_release(&u.at);
    return rc;
}

/* Prints the heads of the columns for people; programs get lines alone. */
static void cmd_du_print_heads(const struct cli *cli, const char *counted, const char *rest)
{
    if (!cli->options.json && isatty(STDOUT_FILENO))
        printf("%*s  %10s  %s\n", CLI_OPTIONS(cli, list)->bytes ? 15 : 10, "SIZE", counted, rest);
}

/* ---- without a path: what ACT keeps */

/* Tells whether places go below their rows. */
static bool du_is_narrow(void)
{
    enum { BESIDE = 80 };

    return cli_width() > 0 && cli_width() < BESIDE;
}

static void print_kept(const struct cli *cli, const struct flow_kept *kept)
{
    char size[ACT_UNIT_TEXT];

    if (cli->options.json) {
        cli_print_pack_line("{s:s,s:o,s:I,s:I}", "what", kept->what, "where", codec_json_bytes_new(kept->where), "n",
                            (json_int_t)kept->n, "bytes", (json_int_t)kept->bytes);
        return;
    }
    cli_size(cli, kept->bytes, size);
    printf("%*s  %10zu  %-14s%s", CLI_OPTIONS(cli, list)->bytes ? 15 : 10, size, kept->n, kept->what,
           du_is_narrow() ? "\n    " : "  ");
    cli_put_path(kept->where);
    putchar_unlocked('\n');
}

static int measure_kept(struct cli *cli, struct act_error *err)
{
    struct flow_keeps keeps = {0};

    if (CLI_OPTIONS(cli, list)->depth >= 0)
        return act_error_set(err, ACT_USAGE, "--depth is about the folders of a path: which one?");
    int rc = flow_keeps(&cli->flow, cli->options.cluster, &keeps, err);
    if (rc == 0)
        cmd_du_print_heads(cli, "NUMBER", du_is_narrow() ? "WHAT" : "WHAT            WHERE");
    for (size_t i = 0; i < keeps.n; i++)
        print_kept(cli, &keeps.v[i]);
    flow_keeps_release(&keeps);
    return rc < 0 ? rc : cli_check_stdout(err);
}

int cmd_du(struct cli *cli, struct act_error *err)
{
    struct cli_outcome outcome = {0};

    cli_buffer_stdout();
    if (cli->words.n == 0)
        return measure_kept(cli, err);
    cmd_du_print_heads(cli, "OBJECTS", "PATH");
    for (size_t i = 0; i < cli->words.n; i++)
        cli_outcome_add(&outcome, cmd_du_measure(cli, cli->words.v[i], err), err);
    return cli_outcome_end(&outcome, err);
}
