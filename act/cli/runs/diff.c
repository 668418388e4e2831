#include <string.h>

#include "base/log.h"
#include "cli/print/print.h"
#include "cli/runs/runs.h"
#include "codec/json.h"
#include "flow/flow.h"
#include "flow/look/look.h"
#include "flow/runs/runs.h"

/* A side that has the part, but nothing in it, is not null. */
static json_t *diff_side_json(const char *text)
{
    return text ? codec_json_bytes_new(text) : json_null();
}

static json_t *difference_json(const struct flow_difference *d)
{
    return json_pack("{s:s,s:o,s:o,s:o,s:o}", "part", d->part, "name", cli_text_json(d->name), "from",
                     diff_side_json(d->from), "to", diff_side_json(d->to), "lines", diff_side_json(d->lines));
}

json_t *cli_diff_json(const struct flow_diff *diff)
{
    return CLI_JSON_LIST(diff->v, diff->n, difference_json);
}

static void put_side(const char *sign, const char *colour, const char *name, const char *text)
{
    if (!text)
        return;
    ACT_AUTOFREE char *shown_name = cli_name(name), *shown = cli_name(text);
    cli_print_coloured(stdout, colour, "%s %s%s%s", sign, shown_name, *name ? ": " : "", shown);
    putchar('\n');
}

/* Prints the lines of a file that differ, further in than what differs of runs. */
static void put_lines_of_file(const char *lines)
{
    for (size_t n; lines && *lines; lines += n + 1) {
        n = strcspn(lines, "\n");
        ACT_AUTOFREE char *line = act_strndup(lines, n), *shown = cli_name(line);
        const char *colour = *line == '-' ? "31" : *line == '+' ? "32" : NULL;
        fputs("    ", stdout);
        if (colour)
            cli_print_coloured(stdout, colour, "%s", shown);
        else
            fputs(shown, stdout);
        putchar('\n');
    }
}

/* Prints the part that begins at a difference, and returns where the next one begins. */
static size_t put_part(const struct flow_diff *diff, size_t first)
{
    enum { PACKAGES_SHOWN = 100 }; /* another Python has hundreds of others */
    const char *part = diff->v[first].part;
    size_t most = strcmp(part, "software") == 0 ? PACKAGES_SHOWN : SIZE_MAX, i = first;

    printf("@@ %s\n", part);
    for (; i < diff->n && strcmp(diff->v[i].part, part) == 0; i++) {
        const struct flow_difference *d = &diff->v[i];
        if (i - first >= most)
            continue;
        put_side("-", "31", d->name, d->from);
        put_side("+", "32", d->name, d->to);
        put_lines_of_file(d->lines);
    }
    if (i - first > most)
        printf("  and %zu more, which --json has\n", i - first - most);
    return i;
}

static void cmd_diff_print_for_people(const struct flow_run *from, const struct flow_run *to,
                                      const struct flow_diff *diff)
{
    printf("--- %s\n+++ %s\n", from->row.id, to->row.id);
    for (size_t i = 0; i < diff->n;)
        i = put_part(diff, i);
}

int cmd_diff(struct cli *cli, struct act_error *err)
{
    ACT_AUTO(flow_run) from = {0}, to = {0};
    ACT_AUTO(flow_diff) diff = {0};
    int rc = flow_find_run(&cli->flow, cli->words.v[0], &from, err);

    if (rc == 0)
        rc = flow_find_run(&cli->flow, cli->words.v[1], &to, err);
    if (rc < 0)
        return rc;
    flow_diff(&cli->flow, &from, &to, &diff);
    if (cli->options.json)
        return cli_print_pack(err, "{s:s,s:s,s:o}", "from", from.row.id, "to", to.row.id, "differences",
                              cli_diff_json(&diff));
    if (diff.n == 0)
        act_note("the runs do not differ");
    else
        cmd_diff_print_for_people(&from, &to, &diff);
    return 0;
}
