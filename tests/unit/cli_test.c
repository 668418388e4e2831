/* The command line: tables and parser. */
#include "unit/test.h"

#include "cli/cli.h"

/* Parses words separated by '|'. */
static int parse(const char *words, struct cli *cli, struct act_error *err)
{
    struct act_strv argv = {0};
    char *copy = act_strdup(words);

    *cli = (struct cli){0};
    cli_options_init(&cli->options);
    act_strv_push(&argv, "a");
    for (char *rest = copy, *word; *words && (word = strsep(&rest, "|"));)
        act_strv_push(&argv, word);
    int rc = cli_parse((int)argv.n, argv.v, cli, err);
    act_strv_release(&argv);
    free(copy);
    return rc;
}

static void verbs_and_their_words(void **state)
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
        {"initic", "init", ""},
        {"rm|--|-strange", "rm", "-strange"},
        {"-c|eu|-f|we|u|data", "upload", "data"},
        {"logs|-f|id", "logs", "id"},
        {"rm|-", "rm", "-"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct act_error err = {0};
        struct act_buf rest = {0};
        struct cli cli;
        assert_ok(parse(rows[i].words, &cli, &err), err);
        assert_string_equal(cli.command->name, rows[i].verb);
        for (size_t k = 0; k < cli.words.n; k++)
            act_buf_addf(&rest, "%s%s", k ? "|" : "", cli.words.v[k]);
        assert_string_equal(rest.data ? rest.data : "", rows[i].rest);
        act_buf_release(&rest);
        cli_release(&cli);
    }
}

static void options_reach_their_place(void **state)
{
    struct act_error err = {0};
    struct cli cli;

    (void)state;
    assert_ok(
        parse("-c|eu|-n|8|-p|a: 1|--param=b: 2|-single|-ca|x y|-rt|we|-no-wl|-no-dt|-no-lf|--max|5|-no-s|q",
              &cli, &err),
        err);
    assert_string_equal(cli.options.cluster, "eu");
    assert_int_equal(cli.options.num_gpu, 8);
    assert_int_equal(cli.options.params.n, 2);
    assert_string_equal(cli.options.params.v[1], "b: 2");
    assert_true(cli.options.single && cli.options.no_logs && cli.options.no_details &&
                cli.options.no_full_logs);
    assert_true(cli.options.dry_run);
    assert_string_equal(cli.options.compile_args, "x y");
    assert_string_equal(cli.options.resubmit_to, "we");
    assert_int_equal(cli.options.max, 5);
    cli_release(&cli);

    assert_int_equal(parse("--timeout=2h|wait|id", &cli, &err), -ACT_USAGE); /* it is wait's own: behind it */
    cli_release(&cli);
    assert_ok(parse("-n16|wait|--timeout=2h|id", &cli, &err), err);
    assert_int_equal(cli.options.num_gpu, 16);
    assert_int_equal(cli.options.timeout_s, 7200);
    cli_release(&cli);

    assert_ok(parse("-f|we|logs|-f|--rank|3|id", &cli, &err), err);
    assert_string_equal(cli.options.from_cluster, "we");
    assert_true(cli.options.follow);
    assert_int_equal(cli.options.rank, 3);
    cli_release(&cli);
}

static void mistakes_are_explained(void **state)
{
    static const struct {
        const char *words, *text;
    } rows[] = {
        {"sumbit|x", "did you mean 'submit'?"},
        {"zzzzzz", "unknown verb 'zzzzzz'; 'a help'"},
        {"q|--jsno", "did you mean '--json'?"},
        {"-sigle|q", "did you mean '-single'?"},
        {"-n|x|q", "-n takes a number, not 'x'"},
        {"-n|-4|q", "-n takes a number, not '-4'"},
        {"-n", "-n needs a value: -n N"},
        {"q|--json=1", "takes no value"},
        {"abort", "'a abort' needs more: a abort RUN..."},
        {"wait|a|b", "'a wait' does not take 'b'"},
        {"init|x", "'a init' does not take 'x'"},
        {"wait|--timeout|soon|id", "such as 90s, 15m, 24h or 7d, not 'soon'"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct act_error err = {0};
        struct cli cli;
        assert_int_equal(parse(rows[i].words, &cli, &err), -ACT_USAGE);
        if (!strstr(err.text, rows[i].text))
            fail_msg("'%s' gives '%s', not '%s'", rows[i].words, err.text, rows[i].text);
        cli_release(&cli);
    }
}

/* Every verb names options that exist, has an example of itself, and no name twice. */
static void tables_are_consistent(void **state)
{
    (void)state;
    for (const struct cli_command *c = cli_commands; c->name; c++) {
        assert_ptr_equal(cli_find_command(c->name), c);
        assert_true(act_starts_with(c->examples, "a "));
        assert_non_null(c->run);
        char *options = act_strdup(c->options ? c->options : ""), *save = NULL;
        for (char *name = strtok_r(options, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
            bool found = false;
            for (const struct cli_option *o = cli_option_table; o->long_name; o++)
                found = found || (!o->global && strcmp(o->long_name, name) == 0);
            if (!found)
                fail_msg("'%s' names the option '%s', which has no row", c->name, name);
        }
        free(options);
    }
}

static void text_for_terminals_is_harmless(void **state)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"plain\ttext\r\n", "plain\ttext\r\n"},
        {"\033[31mred\033[0m", "\033[31mred\033[0m"},
        {"\033[2Jx", "?[2Jx"},
        {"\033]0;title\007", "?]0;title?"},
        {"\033[1;", "?[1;"},
        {"a\033", "a?"},
        {"h\xc3\xa9", "h\xc3\xa9"},
        {"\x7f\x01", "??"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[64];
        strcpy(text, rows[i].in);
        cli_sanitize(text, strlen(text));
        assert_string_equal(text, rows[i].out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verbs_and_their_words),          cmocka_unit_test(options_reach_their_place),
        cmocka_unit_test(mistakes_are_explained),         cmocka_unit_test(tables_are_consistent),
        cmocka_unit_test(text_for_terminals_is_harmless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
