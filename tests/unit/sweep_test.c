/* sweep_test.c - the points of a sweep, the words of their commands, and which of them is the best. */
#include "unit/test.h"

#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "flow/sweep/grid.h"
#include "flow/sweep/leaders.h"
#include "run/run.h"

/* ---- grids */

/* From texts between '|'. */
static struct act_strv sweep_test_split(const char *texts)
{
    struct act_strv out = {0};
    ACT_AUTOFREE char *copy = act_strdup(texts);

    for (char *at = copy, *text; *texts && (text = strsep(&at, "|"));)
        act_strv_push(&out, text);
    return out;
}

static int read_grids(const char *texts, struct flow_grids *out)
{
    ACT_AUTO(act_strv) list = sweep_test_split(texts);

    return flow_grids_read(&list, out, &err);
}

TEST(points_are_all_combinations)
{
    static const struct {
        const char *grids, *command, *lines;
    } rows[] = {
        {"a=1,2", "go|{a}", "go 1\ngo 2\n"},
        {"a=1,2|b=x,y", "go|{a}{b}", "go 1x\ngo 1y\ngo 2x\ngo 2y\n"},
        {"b=x,y|a=1,2", "go|{a}{b}", "go 1x\ngo 2x\ngo 1y\ngo 2y\n"},
        {"a=1|b=2|c=3", "{a}|{b}|{c}", "1 2 3\n"},
        {"a.b-c_1=v", "{a.b-c_1}", "v\n"},
        {"a=x y", "go|{a}", "go 'x y'\n"},
        {"a=1", "{{{a}}}|{{a}}|}}{{", "'{1}' '{a}' '}{'\n"},
        {"a=x=1,x=2", "go|{a}", "go x=1\ngo x=2\n"},
        {"a={b}|b=1", "{a}{b}", "'{b}1'\n"}, /* what a value holds is no placeholder */
        {"a=1|ab=2", "{a}|{ab}", "1 2\n"},
        {"a=1", "{a}||x", "1 '' x\n"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct flow_grids grids;
        ACT_AUTO(act_strv) command = sweep_test_split(rows[i].command);
        ACT_AUTO(act_buf) lines = {0};
        assert_ok(read_grids(rows[i].grids, &grids), err);
        assert_ok(flow_grids_check(&grids, &command, &err), err);
        for (int64_t point = 0; point < grids.points; point++) {
            ACT_AUTOFREE char *line = flow_grids_line(&grids, point, &command);
            act_buf_addf(&lines, "%s\n", line);
        }
        assert_string_equal(lines.data, rows[i].lines);
        flow_grids_release(&grids);
    }
}

TEST(grids_that_are_refused)
{
    static const struct {
        const char *grids, *says;
    } rows[] = {
        {"", "needs a grid"},
        {"a", "is not a grid"},
        {"=1", "is not a name"},
        {"-a=1", "is not a name"},
        {"a b=1", "is not a name"},
        {"sweep=1", "the tag of the sweep itself"},
        {"a=", "value 1 is empty"},
        {"a=1,", "value 2 is empty"},
        {"a=1,2,1", "has the value '1' twice"},
        {"a=1|a=2", "given twice"},
        {"a=\x01", "without control characters"},
        {"a=\xff", "UTF-8"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct flow_grids grids;
        assert_int_equal(read_grids(rows[i].grids, &grids), -ACT_USAGE);
        assert_contains(act_error_text(&err), rows[i].says);
        flow_grids_release(&grids);
    }
}

TEST(placeholders_that_are_refused)
{
    static const struct {
        const char *command, *says;
    } rows[] = {
        {"{a}", "'b' is not used: the command has no {b}"},
        {"{a}{b}{c}", "no grid 'c', only a, b; write '{{c}}'"},
        {"{a}{b", "write '{{' for the brace"},
        {"{a}{b}}", "write '}}' for the brace"},
        {"{a}{b}{", "a '{' that is not part"},
        {"{a}{b}|{}", "'{}': a '{'"},
        {"{a}{b}{a b}", "a '{' that is not part"},
        {"{a}{B}", "no grid 'B'"},
        {"{{a}}{b}", "'a' is not used"},
    };
    struct flow_grids grids;

    assert_ok(read_grids("a=1|b=2", &grids), err);
    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTO(act_strv) command = sweep_test_split(rows[i].command);
        assert_int_equal(flow_grids_check(&grids, &command, &err), -ACT_USAGE);
        assert_contains(act_error_text(&err), rows[i].says);
    }
    flow_grids_release(&grids);
}

/* "name=0,1,..." */
static void push_grid(struct act_strv *out, const char *name, int values)
{
    struct act_buf b = {0};

    act_buf_addf(&b, "%s=", name);
    for (int i = 0; i < values; i++)
        act_buf_addf(&b, "%s%d", i ? "," : "", i);
    act_strv_take(out, act_buf_steal(&b));
}

TEST(a_million_points_and_not_one_more)
{
    ACT_AUTO(act_strv) texts = {0};
    ACT_AUTO(act_strv) command = sweep_test_split("{a}|{b}");
    struct flow_grids grids;

    push_grid(&texts, "a", 1000);
    push_grid(&texts, "b", 1000);
    assert_ok(flow_grids_read(&texts, &grids, &err), err);
    assert_int_equal(grids.points, FLOW_POINTS_MAX);
    ACT_AUTOFREE char *line = flow_grids_line(&grids, FLOW_POINTS_MAX - 1, &command);
    assert_string_equal(line, "999 999");
    assert_string_equal(flow_grids_value(&grids, 123456, 0), "123");
    assert_string_equal(flow_grids_value(&grids, 123456, 1), "456");
    flow_grids_release(&grids);
    act_strv_push(&texts, "c=1,2");
    assert_int_equal(flow_grids_read(&texts, &grids, &err), -ACT_USAGE);
    flow_grids_release(&grids);
    for (int i = 0; i < 200; i++) { /* no number of 64 bits holds that many */
        ACT_AUTOFREE char *name = act_sprintf("d%d", i);
        push_grid(&texts, name, 100);
    }
    assert_int_equal(flow_grids_read(&texts, &grids, &err), -ACT_USAGE);
    flow_grids_release(&grids);
}

/* ---- the best one */

enum { RUNS = 5 };

/* Runs with these tags and logs, NULL: no log. */
struct board {
    struct flow_run runs[RUNS];
    struct numbers *numbers[RUNS];
};

static void make_board(struct board *b, const char *const (*rows)[2], size_t n)
{
    *b = (struct board){0};
    for (size_t i = 0; i < n; i++) {
        b->runs[i].row.id = act_sprintf("%zu", i);
        b->runs[i].row.tags = act_strdup(rows[i][0]);
        if (!rows[i][1])
            continue;
        b->numbers[i] = numbers_new();
        numbers_feed(b->numbers[i], rows[i][1], strlen(rows[i][1]));
        numbers_end(b->numbers[i]);
    }
}

static void release_board(struct board *b)
{
    for (size_t i = 0; i < RUNS; i++) {
        numbers_free(b->numbers[i]);
        free(b->runs[i].row.id);
        free(b->runs[i].row.tags);
    }
}

/* Compares the first n runs, which are added from the last to the first where they come so. */
static void sweep_test_lead(const struct board *b, size_t n, struct flow_leaders *leaders)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = leaders->newest_first ? n - 1 - i : i;
        flow_leaders_add(leaders, &b->runs[at], b->numbers[at]);
    }
    flow_leaders_end(leaders);
}

/* Which runs they are, "20134". */
static char *sweep_test_order_of(const struct flow_leaders *leaders)
{
    struct act_buf order = {0};

    for (size_t i = 0; i < leaders->n; i++)
        act_buf_adds(&order, leaders->v[i].id);
    return act_buf_steal(&order);
}

TEST(the_best_comes_first)
{
    static const char *const rows[RUNS][2] = {
        {"{\"lr\":\"1\",\"sweep\":\"s\"}", "step 1 loss 3\nstep 2 loss 1\nstep 3 loss 2\n"},
        {"{\"lr\":\"2\",\"sweep\":\"s\"}", NULL},
        {"{\"lr\":\"3\",\"sweep\":\"s\"}", "step 1 loss 5\nstep 2 loss 0.5\nstep 3 loss 0.5\n"},
        {"{\"lr\":\"4\",\"sweep\":\"s\"}", "step 1 loss 0.1\nstep 2 loss nan\n"},
        {"{\"lr\":\"5\",\"sweep\":\"s\"}", "step 1 loss 3\nstep 2 loss 1\n"},
    };
    static const struct {
        const char *key;
        enum flow_best best;
        const char *order;
    } ways[] = {
        {"loss", FLOW_LOWEST, "20431"}, {"loss", FLOW_HIGHEST, "20431"}, {"LOSS", FLOW_LOWEST, "20431"},
        {NULL, FLOW_LOWEST, "01234"},   {"acc", FLOW_LOWEST, "01234"},
    };
    struct board b;

    make_board(&b, rows, RUNS);
    for (size_t i = 0; i < 2 * COUNT(ways); i++) {
        struct flow_leaders leaders = {.key = ways[i / 2].key, .best = ways[i / 2].best, .newest_first = i % 2 > 0};
        sweep_test_lead(&b, RUNS, &leaders);
        ACT_AUTOFREE char *order = sweep_test_order_of(&leaders);
        assert_string_equal(order, ways[i / 2].order);
        assert_int_equal(leaders.parameters.n, 1);
        assert_string_equal(leaders.parameters.v[0], "lr");
        flow_leaders_release(&leaders);
    }
    release_board(&b);
}

TEST(where_the_best_value_was_reached)
{
    static const char *const rows[RUNS][2] = {
        {"{}", "step 10 loss 5\nstep 20 loss 0.5\nstep 30 loss 0.5\nstep 40 loss 4\n"},
        {"{}", "step 1 loss 2\nstep 2 loss inf\n"},
        {"{}", "step 1 loss nan\nstep 2 loss 3\n"},
        {"{}", "step 1 loss nan\n"},
    };
    struct flow_leaders leaders = {.key = "loss", .best = FLOW_LOWEST};
    struct board b;

    make_board(&b, rows, 4);
    sweep_test_lead(&b, 4, &leaders);
    ACT_AUTOFREE char *order = sweep_test_order_of(&leaders);
    assert_string_equal(order, "0213");
    assert_float_equal(leaders.v[0].best, 0.5, 0);
    assert_float_equal(leaders.v[0].best_x, 20, 0); /* where it was first */
    assert_float_equal(leaders.v[0].last, 4, 0);
    assert_false(leaders.v[1].ends_odd);
    assert_true(leaders.v[2].ends_odd);
    assert_false(leaders.v[3].has_number);
    flow_leaders_release(&leaders);
    release_board(&b);
}

TEST(parameters_are_tags_that_differ)
{
    static const char *const rows[RUNS][2] = {
        {"{\"lr\":\"1\",\"who\":\"me\",\"sweep\":\"s\"}", NULL},
        {"{\"lr\":\"2\",\"who\":\"me\",\"sweep\":\"s\",\"more\":\"x\"}", NULL},
    };
    struct flow_leaders leaders = {0};
    struct board b;

    make_board(&b, rows, 2);
    sweep_test_lead(&b, 2, &leaders);
    assert_int_equal(leaders.parameters.n, 2);
    assert_string_equal(leaders.parameters.v[0], "lr");
    assert_string_equal(leaders.parameters.v[1], "more");
    flow_leaders_release(&leaders);
    sweep_test_lead(&b, 1, &leaders); /* one alone has nothing to differ from: all are shown */
    assert_int_equal(leaders.parameters.n, 2);
    flow_leaders_release(&leaders);
    sweep_test_lead(&b, 0, &leaders);
    assert_int_equal(leaders.n, 0);
    flow_leaders_release(&leaders);
    release_board(&b);
}

TEST_MAIN(NULL, NULL)
