/* The command line: tables and parser. */
#include "unit/test.h"

#include "base/terminal.h"
#include "cli/command/command.h"
#include "cli/command/options.h"
#include "cli/command/outcome.h"
#include "cli/command/verbs.h"
#include "cli/data/options.h"
#include "cli/help/help.h"
#include "cli/options/options.h"
#include "cli/print/ask.h"
#include "cli/print/progress.h"
#include "cli/print/table.h"
#include "cli/runs/options.h"
#include "cli/start/options.h"

/* Parses words separated by '|'. */
static int cli_test_parse(const char *words, struct cli *cli, struct act_error *e)
{
    ACT_AUTO(act_strv) argv = {0};
    ACT_AUTOFREE char *copy = act_strdup(words);

    *cli = (struct cli){0};
    act_strv_push(&argv, "a");
    for (char *rest = copy, *word; *words && (word = strsep(&rest, "|"));)
        act_strv_push(&argv, word);
    return cli_parse((int)argv.n, argv.v, cli, e);
}

TEST(verbs_and_their_words)
{
    static const struct {
        const char *words, *verb, *rest;
    } rows[] = {
        {"submit|python|train.py", "submit", "python|train.py"},
        {"-n|8|submit|python|-n|4", "submit", "python|-n|4"},
        {"submit|-n|2|ls|-l", "submit", "ls|-l"},
        {"submit|--|-x|--help", "submit", "-x|--help"},
        {"submit|--|--|x", "submit", "--|x"},
        {"submit|sh|--|x", "submit", "sh|--|x"},
        {"submit||x", "submit", "|x"},
        {"local|--no-container|nvidia-smi", "local", "nvidia-smi"},
        {"q", "query", ""},
        {"q|id1|id2", "query", "id1|id2"},
        {"q|id1|--json", "query", "id1"},
        {"a|id1", "abort", "id1"},
        {"u|data", "upload", "data"},
        {"d|data", "download", "data"},
        {"f", "qf", ""},
        {"failed", "qf", ""},
        {"initic", "initc", ""},
        {"rm|--|-strange", "rm", "-strange"},
        {"-c|eu|-f|we|u|data", "upload", "data"},
        {"logs|-f|id", "logs", "id"},
        {"rm|-", "rm", "-"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        err = (struct act_error){0};
        struct act_buf rest = {0};
        struct cli cli;
        assert_ok(cli_test_parse(rows[i].words, &cli, &err), err);
        assert_string_equal(cli.command->name, rows[i].verb);
        for (size_t k = 0; k < cli.words.n; k++)
            act_buf_addf(&rest, "%s%s", k ? "|" : "", cli.words.v[k]);
        assert_string_equal(rest.data ? rest.data : "", rows[i].rest);
        act_buf_release(&rest);
        cli_release(&cli);
    }
}

TEST(options_reach_their_place)
{
    struct cli cli;

    assert_ok(
        cli_test_parse("-c|eu|-n|8|-p|a: 1|--param=b: 2|-single|-ca|x y|--resubmit_to|we|-no-s|resubmit|x", &cli, &err),
        err);
    assert_string_equal(cli.options.cluster, "eu");
    assert_int_equal(CLI_OPTIONS(&cli, settings)->num_gpu.most, 8);
    assert_int_equal(cli.options.params.n, 2);
    assert_string_equal(cli.options.params.v[1], "b: 2");
    assert_true(CLI_OPTIONS(&cli, settings)->single && cli.options.dry_run);
    assert_string_equal(CLI_OPTIONS(&cli, settings)->compile_args, "x y");
    assert_string_equal(CLI_OPTIONS(&cli, start)->resubmit_to, "we");
    cli_release(&cli);

    assert_ok(cli_test_parse("-no-wl|-no-dt|-no-lf|--max|5|-no-wg|-ic|x|q", &cli, &err), err);
    assert_true(CLI_OPTIONS(&cli, logs)->no_logs && CLI_OPTIONS(&cli, query)->no_details &&
                CLI_OPTIONS(&cli, logs)->no_full_logs);
    assert_int_equal(cli.options.max, 5);
    cli_release(&cli);

    assert_int_equal(cli_test_parse("--timeout=2h|wait|id", &cli, &err), -ACT_USAGE); /* it is wait's own: behind it */
    cli_release(&cli);
    assert_ok(cli_test_parse("-n16|submit|-n|8|x|-n|4", &cli, &err), err);
    assert_int_equal(CLI_OPTIONS(&cli, settings)->num_gpu.most, 8);
    assert_int_equal(CLI_OPTIONS(&cli, settings)->num_gpu.least, 8);
    cli_release(&cli);
    assert_ok(cli_test_parse("-n4:16|submit|x", &cli, &err), err);
    assert_int_equal(CLI_OPTIONS(&cli, settings)->num_gpu.least, 4);
    assert_int_equal(CLI_OPTIONS(&cli, settings)->num_gpu.most, 16);
    cli_release(&cli);
    assert_int_equal(cli_test_parse("-n|16:4|submit|x", &cli, &err), -ACT_USAGE);
    cli_release(&cli);
    assert_ok(cli_test_parse("wait|--timeout=2h|id", &cli, &err), err);
    assert_int_equal(CLI_OPTIONS(&cli, wait)->timeout_s, 7200);
    cli_release(&cli);

    assert_ok(cli_test_parse("logs|-f|--rank|3|-n5|id", &cli, &err), err);
    assert_true(CLI_OPTIONS(&cli, logs)->follow);
    assert_null(CLI_OPTIONS(&cli, transfer)->from_cluster);
    assert_int_equal(CLI_OPTIONS(&cli, logs)->rank, 3);
    assert_int_equal(CLI_OPTIONS(&cli, logs)->tail, 5); /* lines, as of tail; no GPUs */
    assert_int_equal(CLI_OPTIONS(&cli, settings)->num_gpu.most, -1);
    cli_release(&cli);

    assert_ok(cli_test_parse("-f|we|u|data", &cli, &err), err);
    assert_string_equal(CLI_OPTIONS(&cli, transfer)->from_cluster, "we");
    cli_release(&cli);
    assert_ok(cli_test_parse("ls|-lr|data", &cli, &err), err);
    assert_true(CLI_OPTIONS(&cli, list)->long_form && CLI_OPTIONS(&cli, list)->recursive);
    cli_release(&cli);
}

TEST(transfers_have_options)
{
    struct cli cli;

    assert_ok(cli_test_parse("u|--transfers|7|--memory|1.5G|--part-size=16MiB|--bwlimit|500k|--checksum|--md5|--delete|"
                             "--max-delete|0|--include|*.a|--exclude|b|--include|c|--filter-from|rules|data",
                             &cli, &err),
              err);
    const struct cli_transfer_options *o = CLI_OPTIONS(&cli, transfer);
    assert_int_equal(o->transfers, 7);
    assert_int_equal(o->memory, 1536 << 20);
    assert_int_equal(o->part_size, 16 << 20);
    assert_int_equal(o->bwlimit, 500 << 10);
    assert_true(o->checksum && o->md5 && o->delete_extra);
    assert_int_equal(o->max_delete, 0);
    assert_int_equal(o->includes.n, 2);
    assert_string_equal(o->includes.v[1], "c");
    assert_string_equal(o->excludes.v[0], "b");
    assert_string_equal(o->filter_files.v[0], "rules");
    cli_release(&cli);

    assert_ok(cli_test_parse("d|data", &cli, &err), err);
    assert_int_equal(CLI_OPTIONS(&cli, transfer)->transfers, -1);
    assert_int_equal(CLI_OPTIONS(&cli, transfer)->max_delete, -1);
    assert_int_equal(CLI_OPTIONS(&cli, transfer)->memory, 0);
    cli_release(&cli);
}

TEST(the_environment_is_a_default)
{
    struct cli cli;

    setenv("ACT_MEMORY", "32M", 1);
    setenv("ACT_BWLIMIT", "1M", 1);
    assert_ok(cli_test_parse("u|--memory|16M|data", &cli, &err), err);
    assert_int_equal(CLI_OPTIONS(&cli, transfer)->memory, 16 << 20);
    assert_int_equal(CLI_OPTIONS(&cli, transfer)->bwlimit, 1 << 20);
    cli_release(&cli);
    setenv("ACT_MEMORY", "lots", 1);
    assert_fails(cli_test_parse("u|data", &cli, &err), err, ACT_USAGE, "ACT_MEMORY takes a size");
    cli_release(&cli);
    assert_ok(cli_test_parse("q", &cli, &err), err); /* what does not concern a verb cannot break it */
    cli_release(&cli);
    unsetenv("ACT_MEMORY");
    unsetenv("ACT_BWLIMIT");
}

/* The numbers of a transfer second by second, until the last row's time. */
struct second {
    uint64_t bytes, resumed, objects;
};

static void cli_test_feed(struct cli_rate *rate, const struct second *v, size_t n, struct transfer_progress *now)
{
    *rate = (struct cli_rate){0};
    for (size_t i = 0; i < n; i++) {
        now->done_bytes = v[i].bytes;
        now->resumed_bytes = v[i].resumed;
        now->done_objects = v[i].objects;
        cli_rate_add(rate, (int64_t)i * 1000, now);
    }
}

TEST(the_rate_is_that_of_the_last_seconds)
{
    struct transfer_progress now = {.found_bytes = 100000, .found_objects = 2, .listing_done = true};
    struct cli_rate rate;
    struct second v[60];

    for (size_t i = 0; i < 60; i++) /* fast for half a minute, then a tenth of it */
        v[i] = (struct second){.bytes = i < 30 ? i * 1000 : 29000 + (i - 29) * 100};
    cli_test_feed(&rate, v, 2, &now);
    assert_true(cli_rate_bytes(&rate) < 0); /* too early */
    assert_int_equal(cli_rate_left_s(&rate, &now), -1);
    cli_test_feed(&rate, v, 4, &now);
    assert_int_equal((int)cli_rate_bytes(&rate), 1000);
    assert_int_equal(cli_rate_left_s(&rate, &now), 97);
    cli_test_feed(&rate, v, 60, &now);
    assert_int_equal((int)cli_rate_bytes(&rate), 100);
    assert_int_equal(cli_rate_left_s(&rate, &now), (100000 - 32000) / 100);
    now.listing_done = false;
    assert_int_equal(cli_rate_left_s(&rate, &now), -1);
}

TEST(the_rate_does_not_count_what_was_there)
{
    static const struct second v[] = {{0, 0, 0}, {500000, 500000, 0}, {501000, 500000, 0}, {502000, 500000, 0}};
    struct transfer_progress now = {.found_bytes = 602000, .found_objects = 1, .listing_done = true};
    struct cli_rate rate;

    cli_test_feed(&rate, v, COUNT(v), &now);
    assert_int_equal((int)(cli_rate_bytes(&rate) * 3), 2000);
    assert_int_equal(cli_rate_left_s(&rate, &now), 150);
}

TEST(small_files_are_bound_by_their_number)
{
    struct transfer_progress now = {.found_bytes = 100010, .found_objects = 10010, .listing_done = true};
    struct cli_rate rate;
    struct second v[11];

    for (size_t i = 0; i < COUNT(v); i++)
        v[i] = (struct second){.bytes = i * 10001, .objects = i};
    cli_test_feed(&rate, v, COUNT(v), &now); /* one large file is over, many tiny ones are left */
    assert_int_equal(cli_rate_left_s(&rate, &now), 10000);
    for (size_t i = 0; i < COUNT(v); i++) /* empty files only */
        v[i] = (struct second){.objects = i * 10};
    now.found_bytes = 0;
    cli_test_feed(&rate, v, COUNT(v), &now);
    assert_int_equal(cli_rate_left_s(&rate, &now), (10010 - 100) / 10);
    for (size_t i = 0; i < COUNT(v); i++) /* nothing moves: nobody knows */
        v[i] = (struct second){.bytes = 7};
    now.found_bytes = 100;
    cli_test_feed(&rate, v, COUNT(v), &now);
    assert_int_equal(cli_rate_left_s(&rate, &now), -1);
}

TEST(the_line_fits_the_terminal)
{
    static const struct second v[] = {{0, 0, 0}, {1 << 20, 0, 3}, {2 << 20, 0, 12}};
    struct transfer_progress now = {
        .found_bytes = 8 << 20, .found_objects = 40, .listing_done = true, .failed_objects = 2, .same_objects = 5};
    struct act_buf line = {0};
    struct cli_rate rate;

    cli_test_feed(&rate, v, COUNT(v), &now);
    cli_progress_line("uploading", &rate, &now, 0, &line);
    assert_string_equal(line.data, "uploading 25% 12/40 objects, 2.0 MiB/8.0 MiB, 1.0 MiB/s, 6s left, 2 failed, "
                                   "5 the same");
    act_buf_release(&line);
    cli_progress_line("uploading", &rate, &now, 20, &line);
    assert_string_equal(line.data, "uploading 25% 12/40 ");
    act_buf_release(&line);
    now.same_objects = now.failed_objects = 0;
    now.slow = "sub/\xc3\xbc\x1b.bin";
    cli_progress_line("uploading", &rate, &now, 100, &line);
    assert_string_equal(line.data,
                        "uploading 25% [#####................] 12/40 objects, 2.0 MiB/8.0 MiB, 1.0 MiB/s, 6s left, "
                        "sub/\xc3\xbc?.bin");
    assert_int_equal(act_columns(line.data), 100);
    act_buf_release(&line);
    cli_progress_line("uploading", &rate, &now, 70, &line);
    assert_int_equal(act_columns(line.data), 70);
    assert_null(strchr(line.data, '['));
    act_buf_release(&line);
    now.slow = NULL;
    cli_progress_line("uploading", &rate, &now, 200, &line);
    assert_int_equal(strcspn(line.data, "]") - strcspn(line.data, "["), 41);
    act_buf_release(&line);
    now.same_objects = 5;
    now.failed_objects = 2;
    now.listing_done = false;
    cli_progress_line("uploading", &rate, &now, 0, &line);
    assert_string_equal(line.data, "uploading 12/40+ objects, 2.0 MiB/8.0 MiB+, 1.0 MiB/s, 2 failed, 5 the same");
    act_buf_release(&line);
}

TEST(progress_is_that_of_bytes)
{
    static const struct {
        struct transfer_progress now;
        const char *line;
    } rows[] = {
        {{.listing_done = true, .found_objects = 1, .found_bytes = 100 << 20, .moving_bytes = 30 << 20},
         "up 30% 0/1 object, 30.0 MiB/100.0 MiB"}, /* one file, of which a part is on its way */
        {{.listing_done = true, .found_objects = 4, .found_bytes = 100, .done_objects = 1, .done_bytes = 90},
         "up 90% 1/4 objects, 90 B/100 B"}, /* small files are left */
        {{.listing_done = true, .found_objects = 4, .found_bytes = 100, .done_objects = 3, .done_bytes = 100},
         "up 99% 3/4 objects, 100 B/100 B"}, /* an empty one is left */
        {{.listing_done = true, .found_objects = 4, .done_objects = 2}, "up 50% 2/4 objects, 0 B/0 B"},
        {{.listing_done = true, .listed_objects = 1, .listed_bytes = 120 << 20}, "up, comparing 1 object, 120.0 MiB"},
        {{.listed_objects = 5000, .listed_bytes = 1 << 20, .same_objects = 7},
         "up, comparing 5000+ objects, 1.0 MiB+, 7 the same"},
        {{0}, "up, looking what there is"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTO(act_buf) line = {0};
        cli_progress_line("up", &(struct cli_rate){0}, &rows[i].now, 0, &line);
        assert_string_equal(line.data, rows[i].line);
    }
}

TEST(the_worst_of_several_paths)
{
    static const struct {
        int rc[3], whole;
    } rows[] = {
        {{0, 0, 0}, 0},
        {{0, -ACT_NOT_FOUND, 0}, -ACT_PARTIAL},
        {{-ACT_NOT_FOUND, -ACT_NOT_FOUND, -ACT_NOT_FOUND}, -ACT_NOT_FOUND},
        {{-ACT_DENIED, -ACT_NOT_FOUND, -ACT_NOT_FOUND}, -ACT_DENIED},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct cli_outcome outcome = {0};
        err = (struct act_error){0};
        for (size_t k = 0; k < 3; k++) {
            struct act_error one;
            act_error_set(&one, (enum act_code) - rows[i].rc[k], "path %zu", k);
            cli_outcome_add(&outcome, rows[i].rc[k], &one);
        }
        assert_int_equal(cli_outcome_end(&outcome, &err), rows[i].whole);
    }
}

TEST(mistakes_are_explained)
{
    static const struct {
        const char *words, *text;
    } rows[] = {
        {"sumbit|x", "did you mean 'submit'?"},
        {"zzzzzz", "unknown verb 'zzzzzz'; 'a help'"},
        {"q|--jsno", "'a query' takes no '--jsno'; did you mean '--json'? 'a query --help' has all options"},
        {"-sigle|submit|x", "did you mean '--single'?"},
        {"submit|--gpus|2|true", "'a submit' takes no '--gpus'; here it is -n N; 'a submit --help' has all options"},
        {"submit|--env|A=1|true", "'a submit' takes no '--env'; here it is -p 'env: {NAME: VALUE}'; 'a submit"},
        {"submit|--time|2|true", "'a submit' takes no '--time'; here it is -p 'slurm: {KEY: VALUE}'; 'a submit"},
        {"q|--status|failed", "'a query' takes no '--status'; here it is --running, --queued or --failed; 'a query"},
        {"logs|--gpus|1", "'a logs' takes no '--gpus'; it takes"},
        {"-n|x|submit|y", "-n takes a number, or MIN:MAX for an elastic run, not 'x'"},
        {"-n|-4|submit|y", "-n takes a number, or MIN:MAX for an elastic run, not '-4'"},
        {"-foo|q", "unknown option '-foo'"},
        {"-ceu|q", "unknown option '-ceu'"},
        {"ls|-lx|data", "'a ls' takes no '-lx'; it takes -r, --json, -l, --bytes, --leftovers"},
        {"-f|we|rm|data/w", "'a rm' takes no '-f'; it takes --dry-run, --json, --leftovers, -y"},
        {"-f|nosuch|d|x", "'a download' takes no '-f'; it takes"},
        {"-rt|eu|submit|x", "'a submit' takes no '-rt'; it takes -f, --name, --tag, --after"},
        {"-f|job.json|submit|x", "the '-f' of 'a submit' comes after the verb: a submit -f"},
        {"-n|5|logs|x", "the '-n' of 'a logs' comes after the verb"},
        {"--timeout|2h|wait|x", "'--timeout' comes after its verb"},
        {"-c|eu|logout", "'a logout' takes no '-c'; it takes --dry-run"},
        {"-n|2|help", "'a help' takes no '-n'; it takes no options but those of every verb"},
        {"q|-p|a: 1", "'a query' takes no '-p'"},
        {"ps", "'a q' is the table of runs"},
        {"cancel|x", "'a abort RUN'"},
        {"run|x", "'a submit COMMAND'"},
        {"version", "'a --version'"},
        {"-n", "-n needs a value: -n N"},
        {"q|--json=1", "takes no value"},
        {"u|--follow=1|data", "'--follow=1' takes no value"},
        {"-n=2|submit|true", "write '-n 2', not '-n=2'"},
        {"submit|-n=2|true", "write '-n 2', not '-n=2'"},
        {"ini", "unknown verb 'ini'; did you mean 'init'? 'a help' lists them"},
        {"qr|foo", "'a qr' does not take 'foo': a qr; 'a qr --help' has examples"},
        {"resubmit",
         "'a resubmit' needs more: a resubmit RUN..., where @ is the run submitted last; 'a resubmit --help' has "
         "examples"},
        {"why|a|b", "'a why' does not take 'b'"},
        {"init|x", "'a init' does not take 'x'"},
        {"wait|--timeout|soon|id", "such as 90s, 15m, 24h or 7d, not 'soon'"},
        {"u|--memory|much|data", "--memory takes a size such as 500k, 64M or 1G, not 'much'"},
        {"u|--memory|64MB|data", "not '64MB'"},
        {"u|--bwlimit=0|data", "not '0'"},
        {"u|--part-size|-1|data", "not '-1'"},
        {"u|--max-delete|-1|data", "takes a number, not '-1'"},
        {"d|--md5|data", "'a download' takes no '--md5'"},
        {"ls|--delete|data", "'a ls' takes no '--delete'; it takes"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        err = (struct act_error){0};
        struct cli cli;
        assert_int_equal(cli_test_parse(rows[i].words, &cli, &err), -ACT_USAGE);
        if (!strstr(act_error_text(&err), rows[i].text))
            fail_msg("'%s' gives '%s', not '%s'", rows[i].words, act_error_text(&err), rows[i].text);
        cli_release(&cli);
    }
}

/* Every verb names options that exist, each once, no two with one name; it has an example of itself, and says what its
 * JSON holds. */
TEST(tables_are_consistent)
{
    for (const struct cli_command *c = cli_next_command(NULL); c; c = cli_next_command(c)) {
        struct act_strv names = {0};
        assert_ptr_equal(cli_find_command(c->name), c);
        assert_null(cli_synonym(c->name));
        assert_true(act_starts_with(c->examples, "a "));
        assert_non_null(c->run);
        size_t named = 0, found = 0;
        for (const char *s = c->options; s && *s; s += strcspn(s, " ") + (s[strcspn(s, " ")] == ' '))
            named++;
        for (const struct cli_option *o = cli_option_table; o->long_name; o++) {
            if (!cli_takes(c, o))
                continue;
            found += o->place != CLI_EVERYWHERE;
            if (act_strv_has(&names, o->long_name) || (o->short_name && act_strv_has(&names, o->short_name)))
                fail_msg("'%s' has two options --%s", c->name, o->long_name);
            act_strv_push(&names, o->long_name);
            act_strv_push(&names, o->short_name ? o->short_name : o->long_name);
        }
        if (found != named)
            fail_msg("'%s' names %zu options, and %zu have a row", c->name, named, found);
        if (cli_names(c->options, "json") && !strstr(c->details ? c->details : "", "json"))
            fail_msg("'%s --help' does not say what its JSON holds", c->name);
        act_strv_release(&names);
    }
}

TEST(meanings_are_of_options_that_the_verbs_take)
{
    for (const struct cli_option_meaning *m = cli_option_meanings; m->option; m++)
        for (const char *verb = m->verbs; *verb; verb += strcspn(verb, " ") + (verb[strcspn(verb, " ")] == ' ')) {
            ACT_AUTOFREE char *name = act_strndup(verb, strcspn(verb, " "));
            const struct cli_command *command = cli_find_command(name);
            bool takes = false;
            for (const struct cli_option *o = cli_option_table; o->long_name && command; o++)
                takes = takes || (act_streq(o->long_name, m->option) && cli_takes(command, o) &&
                                  cli_option_help(command, o) == m->help);
            if (!takes)
                fail_msg("'%s' does not take --%s", name, m->option);
        }
}

TEST(lines_break_at_blanks)
{
    static const struct {
        const char *text;
        int at, indent, width;
        const char *lines;
    } rows[] = {
        {"a short line", 0, 0, 80, "a short line"},
        {"it is broken where it has to be, at a blank", 0, 0, 40, "it is broken where it has to be, at a\nblank"},
        {"it is broken where it has to be, at a blank", 5, 5, 40, "it is broken where it has to be, at\n     a blank"},
        {"see 'https://example.org/a/long/word/that/is/copied' there", 0, 0, 40,
         "see\n'https://example.org/a/long/word/that/is/copied'\nthere"},
        {"one\ntwo", 0, 2, 40, "one\ntwo"},
        {"narrower than any line that can be read, so as it is", 0, 0, 39,
         "narrower than any line that can be read, so as it is"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTO(act_buf) out = {0};
        act_wrap(rows[i].text, rows[i].at, rows[i].indent, rows[i].width, &out);
        assert_string_equal(out.data, rows[i].lines);
    }
}

TEST(only_yes_is_yes)
{
    static const struct {
        const char *answer;
        bool yes;
    } rows[] = {{"y\n", true},  {"Y", true},      {"yes\n", true}, {" YES \r\n", true}, {"", false},      {"\n", false},
                {"n\n", false}, {"yep\n", false}, {"yn\n", false}, {"yes no\n", false}, {"you?\n", false}};

    for (size_t i = 0; i < COUNT(rows); i++)
        if (cli_is_yes(rows[i].answer) != rows[i].yes)
            fail_msg("'%s'", rows[i].answer);
}

/* What a verb changes it can say beforehand, and what it prints it can print for programs. */
TEST(what_changes_something_has_a_dry_run)
{
    static const struct {
        const char *option, *verbs;
    } rows[] = {
        {"dry-run", "init submit local abort resubmit cluster upload download rm login logout"},
        {"json", "init submit query qr qq qf wait why parse abort resubmit nodes summary cluster blame upload "
                 "download ls rm du verify url login config doctor"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        for (const struct cli_command *c = cli_next_command(NULL); c; c = cli_next_command(c))
            if (cli_names(rows[i].verbs, c->name) && !cli_names(c->options, rows[i].option))
                fail_msg("'a %s' takes no --%s", c->name, rows[i].option);
}

static const char *value_for(const struct cli_option *o)
{
    static const char *const values[] = {
        [CLI_STRING] = "x",    [CLI_STRINGS] = "x",    [CLI_INT] = "7",  [CLI_RANGE] = "7:8",
        [CLI_DURATION] = "7s", [CLI_WITH_UNIT] = "7s", [CLI_SIZE] = "7M"};

    return values[o->type];
}

static char *help_of(const struct cli_command *c)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    cli_print_help(c, NULL, out);
    for (const struct cli_verb *v = c->verbs; v && v->name; v++)
        cli_print_help(c, v->name, out);
    fclose(out);
    return text;
}

/* Each pair is in the verb's help and reaches its place, or is refused with a line that names the verb, before and
 * behind it. */
static void check_pair(const struct cli_command *c, const struct cli_option *o, const char *help)
{
    ACT_AUTOFREE char *listed =
        act_sprintf("--%s%s%s\n", o->long_name, o->argument ? " " : "", o->argument ? o->argument : "");
    ACT_AUTOFREE char *described = act_sprintf("--%s ", o->long_name);
    ACT_AUTOFREE char *option =
        act_sprintf("--%s%s%s", o->long_name, o->argument ? "|" : "", o->argument ? value_for(o) : "");

    if (o->help && (strstr(help, described) || strstr(help, listed)) != cli_takes(c, o))
        fail_msg("the help of '%s' is wrong about --%s", c->name, o->long_name);
    for (int before = 0; before < 2; before++) {
        ACT_AUTOFREE char *words =
            before ? act_sprintf("%s|%s", option, c->name) : act_sprintf("%s|%s", c->name, option);
        struct act_buf line = {0};
        err = (struct act_error){0};
        struct cli cli;
        act_buf_adds(&line, words);
        for (int i = 0; i < c->min_words; i++)
            act_buf_adds(&line, "|word");
        int rc = cli_test_parse(line.data, &cli, &err);
        bool works = cli_takes(c, o) && !(before && o->place == CLI_BEHIND);
        if (works && rc < 0)
            fail_msg("'%s': %s", line.data, act_error_text(&err));
        if (works && o->type == CLI_FLAG)
            assert_true(*(bool *)cli_option_at(&cli, o));
        if (!works &&
            (rc != -ACT_USAGE || (!strstr(act_error_text(&err), c->name) && !strstr(act_error_text(&err), "its verb"))))
            fail_msg("'%s' gives %d: %s", line.data, rc, act_error_text(&err));
        cli_release(&cli);
        act_buf_release(&line);
    }
}

/* Whether the name is of another option of this verb. */
static bool means_another(const struct cli_command *c, const struct cli_option *o)
{
    ACT_AUTOFREE char *name = act_sprintf("--%s", o->long_name);

    for (const struct cli_option *other = cli_option_table; other->long_name; other++)
        if (cli_takes(c, other) && act_streq(other->short_name, name))
            return true;
    return false;
}

TEST(every_verb_with_every_option)
{
    for (const struct cli_command *c = cli_next_command(NULL); c; c = cli_next_command(c)) {
        ACT_AUTOFREE char *help = help_of(c);
        if (c->hidden)
            continue;
        for (const char *line = help; *line; line += strcspn(line, "\n") + 1)
            if (strcspn(line, "\n") > 100)
                fail_msg("the help of '%s' is too wide: %.60s...", c->name, line);
        for (const struct cli_option *o = cli_option_table; o->long_name; o++)
            if (!means_another(c, o))
                check_pair(c, o, help);
    }
}

/* ---- tables */

static const struct cli_column runs_like[] = {
    {"ID", 'l', .rank = 0},   {"STATUS", 'l', .is_state = true},     {"CLUSTER", 'l', .rank = 3, .min = 7},
    {"GPUS", 'r', .rank = 4}, {"COMMAND", 'l', .rank = 1, .min = 8},
};

static void assert_table(const struct cli_column *columns, size_t n_columns, const char *const *cells, size_t n_cells,
                         int room, const char *text)
{
    ACT_AUTO(act_strv) strv = {0};
    ACT_AUTO(act_buf) out = {0};

    for (size_t i = 0; i < n_cells; i++)
        act_strv_push(&strv, cells[i]);
    cli_table_text(columns, n_columns, &strv, room, false, &out);
    assert_string_equal(out.data, text);
}

static char *table_text(const struct act_strv *cells, int room, bool coloured)
{
    struct act_buf out = {0};

    cli_table_text(runs_like, COUNT(runs_like), cells, room, coloured, &out);
    return act_buf_steal(&out);
}

TEST(tables_fit_the_terminal)
{
    static const char *const cells[] = {
        "aml_17_0a", "Running", "western-europe", "8", "python train.py --lr 0.1", "aml_17_0b", "Failed", "eu",
        "16",        "sh",
    };
    static const struct {
        int room;
        const char *text;
    } rows[] = {
        {0, "ID         STATUS   CLUSTER         GPUS  COMMAND\n"
            "aml_17_0a  Running  western-europe     8  python train.py --lr 0.1\n"
            "aml_17_0b  Failed   eu                16  sh\n"},
        {66, "ID         STATUS   CLUSTER         GPUS  COMMAND\n"
             "aml_17_0a  Running  western-europe     8  python train.py --lr 0.1\n"
             "aml_17_0b  Failed   eu                16  sh\n"},
        {65, "ID         STATUS   CLUSTER        GPUS  COMMAND\n"
             "aml_17_0a  Running  western-eu...     8  python train.py --lr 0.1\n"
             "aml_17_0b  Failed   eu               16  sh\n"},
        {45, "ID         STATUS   CLUSTER  GPUS  COMMAND\n"
             "aml_17_0a  Running  west...     8  python ...\n"
             "aml_17_0b  Failed   eu         16  sh\n"},
        {40, "ID         STATUS   CLUSTER  COMMAND\n"
             "aml_17_0a  Running  west...  python t...\n"
             "aml_17_0b  Failed   eu       sh\n"},
        {30, "ID         STATUS   COMMAND\n"
             "aml_17_0a  Running  python ...\n"
             "aml_17_0b  Failed   sh\n"},
        {5, "ID         STATUS\n" /* what is never cut */
            "aml_17_0a  Running\n"
            "aml_17_0b  Failed\n"},
    };
    ACT_AUTO(act_strv) table = {0};

    for (size_t i = 0; i < COUNT(cells); i++)
        act_strv_push(&table, cells[i]);
    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *text = table_text(&table, rows[i].room, false);
        assert_string_equal(text, rows[i].text);
    }
    ACT_AUTOFREE char *coloured = table_text(&table, 30, true);
    assert_non_null(strstr(coloured, "  \033[31mFailed\033[0m   sh\n"));
}

TEST(numbers_are_shown_whole_or_not_at_all)
{
    static const struct cli_column columns[] = {
        {"ID", 'l', .rank = 0}, {"rate", 'r', .rank = 1, .min = 6}, {"MIN", 'r', .rank = 2}};
    static const char *const cells[] = {"run_1", "0.000123", "2.5", "run_2", "1e-05", "2.25"};
    static const struct {
        int room;
        const char *text;
    } rows[] = {
        {21, "ID         rate   MIN\n"
             "run_1  0.000123   2.5\n"
             "run_2     1e-05  2.25\n"},
        {20, "ID         rate\n"
             "run_1  0.000123\n"
             "run_2     1e-05\n"},
        {14, "ID\nrun_1\nrun_2\n"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_table(columns, COUNT(columns), cells, COUNT(cells), rows[i].room, rows[i].text);
}

TEST(the_script_of_a_command_is_seen)
{
    static const struct cli_column columns[] = {{"ID", 'l', .rank = 0},
                                                {"CREATED", 'l', .rank = 2},
                                                {"COMMAND", 'l', .rank = 1, .min = 8, .cut = CLI_CUT_COMMAND}};
    static const char *const cells[] = {
        "r1", "05:46", "python3 train.py --lr 0.1", "r2", "05:46", "torchrun --nproc_per_node 8 code/eval.py --all",
        "r3", "05:46", "python3 -m pkg.train",      "r4", "05:46", "./job.sh data/voc --epochs 90",
        "r5", "05:46", "nvidia-smi --query all",
    };
    static const struct {
        int room;
        const char *text;
    } rows[] = {
        {40, "ID  CREATED  COMMAND\n"
             "r1  05:46    python3 train.py --lr 0.1\n"
             "r2  05:46    ...eval.py --all\n"
             "r3  05:46    python3 -m pkg.train\n"
             "r4  05:46    ./job.sh data/voc...\n"
             "r5  05:46    nvidia-smi --query all\n"},
        {27, "ID  CREATED  COMMAND\n"
             "r1  05:46    ...train.py...\n"
             "r2  05:46    ...eval.py...\n"
             "r3  05:46    ...pkg.train\n"
             "r4  05:46    ./job.sh...\n"
             "r5  05:46    nvidia-smi...\n"},
        {25, "ID  CREATED  COMMAND\n"
             "r1  05:46    ...train.py\n"
             "r2  05:46    ...eval.py\n"
             "r3  05:46    ...pkg.train\n"
             "r4  05:46    ./job.sh...\n"
             "r5  05:46    nvidia-sm...\n"},
        {24, "ID  COMMAND\n"
             "r1  python3 train.py...\n"
             "r2  ...eval.py --all\n"
             "r3  python3 -m pkg.train\n"
             "r4  ./job.sh data/voc...\n"
             "r5  nvidia-smi...\n"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_table(columns, COUNT(columns), cells, COUNT(cells), rows[i].room, rows[i].text);
}

TEST(commands_that_differ_look_different)
{
    static const struct cli_column columns[] = {{"ID", 'l', .rank = 0},
                                                {"COMMAND", 'l', .rank = 1, .min = 8, .cut = CLI_CUT_COMMAND}};
    static const char *const cells[] = {"r1", "python3 train.py --epochs 90 --lr 0.1",
                                        "r2", "python3 train.py --epochs 90 --lr 0.2",
                                        "r3", "sh -c 'sleep 1; true'",
                                        "r4", "nvidia-smi"};
    static const struct {
        int room;
        const char *text;
    } rows[] = {
        {40, "ID  COMMAND\n"
             "r1  train.py --epochs 90 --lr 0.1\n"
             "r2  train.py --epochs 90 --lr 0.2\n"
             "r3  sh -c 'sleep 1; true'\n"
             "r4  nvidia-smi\n"},
        {24, "ID  COMMAND\n"
             "r1  train.py... --lr 0.1\n"
             "r2  train.py... --lr 0.2\n"
             "r3  sh -c 's... 1; true'\n"
             "r4  nvidia-smi\n"},
        {16, "ID  COMMAND\n"
             "r1  train... 0.1\n"
             "r2  train... 0.2\n"
             "r3  sh -c 'sl...\n"
             "r4  nvidia-smi\n"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_table(columns, COUNT(columns), cells, COUNT(cells), rows[i].room, rows[i].text);
}

TEST(commands_that_differ_in_their_middle_look_different)
{
    static const struct cli_column columns[] = {{"ID", 'l', .rank = 0},
                                                {"COMMAND", 'l', .rank = 1, .min = 8, .cut = CLI_CUT_COMMAND}};
    static const char *const cells[] = {
        "r1", "python3 train.py --model large --steps 100", "r2", "python3 train.py --model small --steps 100",
        "r3", "python3 train.py --model=tiny --steps 100",  "r4", "python3 train.py",
        "r5", "sh -c 'python3 -m http.server 8765'"};
    static const struct {
        int room;
        const char *text;
    } rows[] = {
        {30, "ID  COMMAND\n"
             "r1  train.py... large --ste...\n"
             "r2  train.py... small --ste...\n"
             "r3  train.py...=tiny --step...\n"
             "r4  python3 train.py\n"
             "r5  sh -c 'python3 -m...\n"},
        {18, "ID  COMMAND\n"
             "r1  trai... lar...\n"
             "r2  trai... sma...\n"
             "r3  trai...=tin...\n"
             "r4  train.py\n"
             "r5  sh -c 'pyth...\n"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_table(columns, COUNT(columns), cells, COUNT(cells), rows[i].room, rows[i].text);
}

TEST(reasons_have_lines_of_their_own)
{
    static const struct cli_column columns[] = {{"ID", 'l', .rank = 0},
                                                {"CLUSTER", 'l', .rank = 3, .min = 7},
                                                {"REASON", 'l', .rank = 1, .below = true},
                                                {"COMMAND", 'l', .rank = 2, .min = 8}};
    static const char *const cells[] = {"run_1", "eu", "no room on the disk", "python train.py --lr 0.1", "run_2", "eu",
                                        "-",     "sh"};
    static const struct {
        int room;
        const char *text;
    } rows[] = {
        {0, "ID     CLUSTER  REASON               COMMAND\n"
            "run_1  eu       no room on the disk  python train.py --lr 0.1\n"
            "run_2  eu       -                    sh\n"},
        {40, "ID     REASON               COMMAND\n"
             "run_1  no room on the disk  python tr...\n"
             "run_2  -                    sh\n"},
        {26, "ID     REASON\n"
             "run_1  no room on the disk\n"
             "run_2  -\n"},
        {25, "ID     CLUSTER  COMMAND\n"
             "run_1  eu       python...\n"
             "    no room on the disk\n"
             "run_2  eu       sh\n"},
        {14, "ID\n"
             "run_1\n"
             "    no room on\n"
             "    the disk\n"
             "run_2\n"},
        {7, "ID\n"
            "run_1\n"
            "no room\n"
            "on the\n"
            "disk\n"
            "run_2\n"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_table(columns, COUNT(columns), cells, COUNT(cells), rows[i].room, rows[i].text);
}

/* Wide characters, marks, emoji, what a terminal shows as '?', bytes that are not UTF-8: cut anywhere. */
TEST(what_is_cut_is_counted_in_columns)
{
    static const char *const commands[] = {
        "训练 python 模型.py",
        ("e\xcc\x81"
         "e\xcc\x81"
         "e\xcc\x81 eee eee"),
        "😀😀😀😀😀😀😀",
        ("a\xe2\x80\x8d"
         "b\x1b[31mc d e f g h"),
        "line\nand line\tand line",
        "\xff\xfe\xff not text",
    };
    static const int rooms[] = {40, 80, 100, 200};

    for (size_t i = 0; i < COUNT(commands); i++)
        for (int room = 24; room < 60; room++) {
            struct act_strv cells = {0};
            for (size_t k = 0; k < 5; k++)
                act_strv_push(&cells, (const char *const[]){"id", "Failed", "集群", "1", commands[i]}[k]);
            ACT_AUTOFREE char *text = table_text(&cells, room, false);
            assert_true(act_utf8_valid(text, strlen(text)));
            for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
                *end = '\0';
                if (act_columns(line) > room)
                    fail_msg("%d columns in %d: %s", act_columns(line), room, line);
            }
            act_strv_release(&cells);
        }
    for (size_t i = 0; i < COUNT(rooms); i++) {
        int widths[] = {24, 9, 14, 4, 500};
        cli_fit(runs_like, widths, COUNT(widths), rooms[i]);
        int used = -2;
        for (size_t k = 0; k < COUNT(widths); k++)
            used += widths[k] ? widths[k] + 2 : 0;
        assert_true(widths[0] == 24 && widths[1] == 9 && used <= rooms[i]);
        assert_true(rooms[i] == 40 || used == rooms[i]);
    }
}

TEST_MAIN(NULL, NULL)
