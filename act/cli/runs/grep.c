#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/terminal.h"
#include "cli/print/print.h"
#include "cli/runs/options.h"
#include "cli/runs/runs.h"
#include "codec/json.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"
#include "run/run.h"

enum { DEFAULT_MAX = 30 };

struct searching {
    const struct cli *cli;
    struct flow_grep *grep;
    bool terminal;
    size_t n_found;
};

static int cmd_grep_print_json(const struct flow_match *m, struct act_error *err)
{
    ACT_AUTOFREE char *text = act_strndup(m->text, strnlen(m->text, m->len)); /* JSON has no NUL bytes for us */

    cli_print_pack_line("{s:s,s:o,s:o,s:i,s:I,s:o,s:o,s:o}", "run", m->run->row.id, "log", codec_json_bytes_new(m->log),
                        "rank", m->rank >= 0 ? json_integer(m->rank) : json_null(), "attempt", m->attempt, "line",
                        (json_int_t)m->line, "time", cli_text_json(m->time), "log_changed",
                        cli_time_json(m->changed_unix_s), "text", codec_json_bytes_new(text));
    return cli_check_stdout(err);
}

/* Returns the time of the line, or "<" and the time when its log was last written. New string. */
static char *cmd_grep_time_of(const struct flow_match *m)
{
    char changed[ACT_TIME_TEXT];

    if (*m->time || !m->changed_unix_s)
        return act_strdup(*m->time ? m->time : "-");
    act_time_to_local(m->changed_unix_s, changed);
    return act_sprintf("<%s", changed);
}

/* Returns a time without the day if it is today's. */
static const char *short_time(const char *time)
{
    enum { DAY = sizeof("2026-11-24 ") - 1 };
    char today[ACT_TIME_TEXT];
    bool is_late = *time == '<';

    act_time_to_local(act_now_unix_s(), today);
    return strncmp(time + is_late, today, DAY) == 0 ? time + is_late + DAY : time;
}

/* Prints "60ce2fc7:12: "; the rank says which log it is, so that the line has room on a terminal. */
static void put_short_place(const struct flow_match *m)
{
    const char *file = strrchr(m->log, '/');
    bool was_before = act_starts_with(m->log, RUN_DIR_ATTEMPTS "/");

    cli_print_coloured(stdout, "35", "%s:", cli_short_id(m->run->row.id));
    if (was_before)
        printf("%s/%d:", RUN_DIR_ATTEMPTS, m->attempt);
    if (m->rank < 0) {
        cli_put_name(file ? file + 1 : m->log);
        putchar(':');
    }
    printf("%llu: ", (unsigned long long)m->line);
}

static void put_place(const struct flow_match *m)
{
    cli_print_coloured(stdout, "35", "%s:", m->run->row.id);
    cli_put_name(m->log);
    printf(":%llu: ", (unsigned long long)m->line);
}

static void cmd_grep_put_text(const struct searching *s, const struct flow_match *m)
{
    struct act_harmless line = {.allow = ACT_SHOW_COLOURS};
    size_t len = m->len > 0 && m->text[m->len - 1] == '\r' ? m->len - 1 : m->len;
    ACT_AUTO(act_buf) shown = {0};

    if (s->terminal) {
        act_harmless_add(&line, m->text, len, &shown);
        act_harmless_end(&line, &shown);
    }
    act_terminal_show(stdout, ACT_SHOW_LINES | ACT_SHOW_COLOURS);
    fwrite(s->terminal ? shown.data : m->text, 1, s->terminal ? shown.len : len, stdout);
    act_terminal_show(stdout, ACT_SHOW_LINES);
    putchar('\n');
}

static int print_match(void *arg, const struct flow_match *m, struct act_error *err)
{
    const struct searching *s = arg;

    if (s->cli->options.json)
        return cmd_grep_print_json(m, err);
    ACT_AUTOFREE char *time = cmd_grep_time_of(m);
    if (s->terminal)
        put_short_place(m);
    else
        put_place(m);
    if (m->rank >= 0)
        cli_print_coloured(stdout, "36", "[%d] ", m->rank);
    printf("%s ", s->terminal ? short_time(time) : time);
    cmd_grep_put_text(s, m);
    return cli_check_stdout(err);
}

static int grep_run(struct cli *cli, struct flow_run *run, json_t *list, struct act_error *err)
{
    struct searching *s = cli->arg;
    const struct flow_grep_sink sink = {.found = print_match, .arg = s};

    (void)list;
    return flow_grep_run(&cli->flow, run, s->grep, &sink, &s->n_found, err);
}

/* Searches the newest runs of the ledger, without asking for their states. */
static int grep_newest(struct cli *cli, const struct cli_each_run *each, struct act_error *err)
{
    struct flow_table table = {.cluster = cli->options.cluster,
                               .max = cli->options.max >= 0 ? cli->options.max : DEFAULT_MAX,
                               .as_known = true,
                               .with_spec = true};
    struct flow_rows_count count = {0};
    int rc = cli_labels(cli, &table.labels, err);

    if (rc == 0)
        rc = cli_runs_of_table(cli, each, &table, &count, err);
    if (rc == 0 && count.total == 0)
        cli_note_no_runs(&table);
    if (count.n < count.total)
        act_note("%zu of %zu runs were searched; --max 0 searches all", count.n, count.total);
    return rc;
}

static int cmd_grep_check_words(const struct cli *cli, struct act_error *err)
{

    if (cli->words.n > 1 && (cli->options.name || cli->options.tags.n || cli->options.max >= 0))
        return act_error_set(err, ACT_USAGE, "--name, --tag and --max say which runs: '%s' cannot be named as well",
                             cli->words.v[1]);
    return 0;
}

int cmd_grep(struct cli *cli, struct act_error *err)
{
    const struct cli_each_run each = {.act = grep_run, .first = 1};
    struct searching searching = {.cli = cli, .terminal = isatty(STDOUT_FILENO)};
    int rc = cmd_grep_check_words(cli, err);

    cli->arg = &searching;
    if (rc == 0)
        rc = flow_grep_open(cli->words.v[0], CLI_OPTIONS(cli, runs)->ignore_case, &searching.grep, err);
    if (rc == 0)
        cli_buffer_stdout();
    if (rc == 0)
        rc = cli->words.n > 1 ? cli_each_run(cli, &each, err) : grep_newest(cli, &each, err);
    flow_grep_close(searching.grep);
    return rc == 0 && searching.n_found == 0 ? 1 : rc;
}
