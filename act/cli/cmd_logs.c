#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

/* How the lines of all ranks are shown: "[ 3] ...". */
struct lines {
    int width; /* of the largest rank */
    bool terminal, colour;
};

static void print_prefix(const struct lines *lines, int rank)
{
    static const char *const colours[] = {"36", "33", "32", "35", "34", "31"};
    size_t n = sizeof(colours) / sizeof(colours[0]);

    if (lines->colour)
        printf("\033[%sm[%*d]\033[0m ", colours[(size_t)rank % n], lines->width, rank);
    else
        printf("[%*d] ", lines->width, rank);
}

static int print_line(void *arg, int rank, const char *text, size_t len, struct act_error *err)
{
    const struct lines *lines = arg;

    print_prefix(lines, rank);
    if (lines->terminal) {
        ACT_AUTOFREE char *shown = act_alloc(len + 1);
        memcpy(shown, text, len);
        cli_sanitize(shown, len);
        fwrite(shown, 1, len, stdout);
    } else {
        fwrite(text, 1, len, stdout);
    }
    putchar('\n');
    return cli_check_stdout(err);
}

static int check_options(const struct cli_options *o, const struct flow_run *run, struct act_error *err)
{
    int world = run->spec.nodes * run->spec.procs_per_node;

    if (o->all && (o->rank >= 0 || o->log_name))
        return act_error_set(err, ACT_USAGE, "--all is every rank's log: it does not go with --%s",
                             o->rank >= 0 ? "rank" : "name");
    if (o->rank >= world)
        return act_error_set(err, ACT_USAGE, "run '%s' has ranks 0 to %d, not %lld", run->row.id, world - 1,
                             (long long)o->rank);
    if (o->attempt == 0 || o->attempt > INT32_MAX)
        return act_error_set(err, ACT_USAGE, "attempts are counted from 1, not %lld", (long long)o->attempt);
    return 0;
}

static int follow(struct cli *cli, struct flow_run *run, struct act_error *err)
{
    const struct cli_options *o = &cli->options;
    int world = run->spec.nodes * run->spec.procs_per_node;
    struct lines lines = {.width = snprintf(NULL, 0, "%d", world - 1),
                          .terminal = isatty(STDOUT_FILENO),
                          .colour = cli_colour(stdout)};
    struct flow_follow what = {.name = o->log_name,
                               .rank = o->rank >= 0 ? (int)o->rank : 0,
                               .all = o->all,
                               .line = print_line,
                               .attempt = o->attempt > 0 ? (int)o->attempt : 0,
                               .must_exist = true,
                               .tail = o->tail,
                               .follow = o->follow,
                               .sink = {.write = cli_write_stdout, .arg = &lines}};

    return flow_follow_log(&cli->flow, run, &what, err);
}

int cmd_logs(struct cli *cli, struct act_error *err)
{
    struct flow_run run;
    const char *piece = cli->words.v[0];
    int rc = cli->options.follow ? flow_find_watched(&cli->flow, piece, &run, err)
                                 : flow_find_run(&cli->flow, piece, &run, err);

    if (rc < 0)
        return rc;
    rc = check_options(&cli->options, &run, err);
    if (rc == 0)
        rc = follow(cli, &run, err);
    flow_run_release(&run);
    return rc;
}
