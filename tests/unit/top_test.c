/* What 'a top' shows: facts in, lines out; and which keys bytes are. */
#include "unit/test.h"

#include <math.h>
#include <stdio.h>

#include "base/terminal.h"
#include "cli/screen/live.h"
#include "cli/screen/screen.h"
#include "cli/top/text.h"
#include "codec/json.h"

enum { NOW = 1795572000, RUNS = 4 };

/* A view of four runs on two clusters. */
struct fixture {
    struct flow_board_run runs[RUNS];
    struct flow_board_run *shown[RUNS];
    struct flow_live live;
    struct series_point points[4];
    struct flow_board_cluster clusters[2], *of_view[2];
    struct flow_board_view view;
};

static struct flow_board_run run_of(char *id, enum run_state state, char *cluster, char *command)
{
    struct flow_board_run run = {
        .run = {.row = {.id = id, .cluster = cluster, .command = command, .created_unix_s = NOW - 60},
                .status = {.state = state}}};

    run.run.status.started_unix_s = state == RUN_QUEUED ? 0 : NOW - 45;
    run.run.status.ended_unix_s = run_state_is_final(state) ? NOW - 5 : 0;
    return run;
}

static void top_test_set_up(struct fixture *f)
{
    static char line[] = "step 4 loss 0.5", reason[] = "exit status 3", tags[] = "{\"sweep\":\"7\"}",
                error[] = "no route";
    static char lab[] = "lab", away[] = "away";
    static char ids[RUNS][32] = {"exp_1795571940_aaaaaaaa", "exp_1795571940_bbbbbbbb", "exp_1795571940_cccccccc",
                                 "exp_1795571940_dddddddd"};
    static char commands[RUNS][16] = {"python a.py", "python b.py", "python c.py", "python d.py"};

    *f = (struct fixture){
        .points = {{1, 4}, {2, 3}, {3, 2}, {4, 0.5}},
        .clusters = {{.name = lab, .asked = true, .has_summary = true, .running = 1, .queued = 1},
                     {.name = away, .asked = true, .error = error}},
        .live = {.line = line, .spoke_unix_s = NOW - 3, .held_up_by = -1, .has_gpus = true, .busy = 0.8, .memory = 0.4},
    };
    f->clusters[0].summary = (struct platform_summary){
        .total = {.nodes = 8, .nodes_idle = 3, .gpus = 64, .gpus_idle = 24, .jobs_queued = 2}, .has_gpus = true};
    f->runs[0] = run_of(ids[0], RUN_FAILED, lab, commands[0]);
    f->runs[1] = run_of(ids[1], RUN_QUEUED, away, commands[1]);
    f->runs[2] = run_of(ids[2], RUN_RUNNING, lab, commands[2]);
    f->runs[3] = run_of(ids[3], RUN_COMPLETED, lab, commands[3]);
    snprintf(f->runs[0].run.status.reason, sizeof(f->runs[0].run.status.reason), "%s", reason);
    f->runs[2].run.row.tags = tags;
    f->runs[2].live = &f->live;
    f->live.n_numbers = 1;
    f->live.numbers[0] = (struct flow_live_number){.name = "loss", .last = 0.5, .curve = {.v = f->points, .n = 4}};
    for (size_t i = 0; i < RUNS; i++)
        f->shown[i] = &f->runs[i];
    for (size_t i = 0; i < 2; i++)
        f->of_view[i] = &f->clusters[i];
    f->view = (struct flow_board_view){.runs = f->shown,
                                       .n = RUNS,
                                       .total = RUNS,
                                       .clusters = f->of_view,
                                       .n_clusters = 2,
                                       .listed = true,
                                       .settled = true};
}

static void top_test_release(struct top_look *look)
{
    act_strv_release(&look->unfolded);
    free(look->chosen);
    free(look->sweep);
}

static char *top_test_text_of(const struct fixture *f, struct top_look *look, struct act_strv *seen)
{
    ACT_AUTO(act_strv) lines = {0};
    struct act_buf text = {0};

    look->now_unix_s = NOW;
    top_lines(&f->view, look, &lines, seen);
    if (look->rows > 0)
        assert_int_equal(lines.n, look->rows);
    for (size_t i = 0; i < lines.n; i++)
        act_buf_addf(&text, "%s\n", lines.v[i]);
    return act_buf_steal(&text);
}

/* Without the first line, which has the time of this machine. */
static const char *body(const char *text)
{
    return strchr(text, '\n') + 1;
}

TEST(a_frame_has_all_that_there_is_room_for)
{
    struct fixture f;
    struct top_look look = {.rows = 16, .columns = 100, .plain = true};
    ACT_AUTO(act_strv) seen = {0};

    top_test_set_up(&f);
    ACT_AUTOFREE char *text = top_test_text_of(&f, &look, &seen);
    assert_true(act_starts_with(text, "1 running, 1 queued, 1 failed  "));
    assert_string_equal(
        body(text),
        "CLUSTER  IDLE NODES  IDLE GPUS  QUEUE  YOURS  NOTE\n"
        "lab             3/8      24/64      2    1+1  -\n"
        "away              -          -      -    0+0  no route\n"
        "\n"
        "RUN        STATE         AGE  CLUSTER  GPU          MEM  NUMBERS         NAME      SAYS\n"
        "\033[7m>cccccccc  Running       45s  lab      ####.  80%   40%  loss 0.5  #+~_  c.py      3s ago: step 4..."
        "\033[0m\n"
        " bbbbbbbb  Queued      1m00s  away     -              -  -               b.py      -\n"
        " aaaaaaaa  Failed         5s  lab      -              -  -               a.py      exit status 3\n"
        " dddddddd  Completed      5s  lab      -              -  -               d.py      -\n"
        "\n"
        "exp_1795571940_cccccccc  on lab  sweep=7\n"
        "python c.py\n"
        "loss 0.5  #+~_\n"
        "3s ago: step 4 loss 0.5\n"
        "q quit  h help  l log  w why  a abort  s sort  / filter  f fold\n");
    assert_int_equal(seen.n, 1);
    assert_string_equal(look.chosen, f.runs[2].run.row.id);
    top_test_release(&look);
}

/* The GPUs of a machine, of which the users are as their names say. */
static void top_test_add_gpus(struct fixture *f, struct platform_gpu *gpus, size_t n)
{
    static char names[3][8] = {"GPU 0", "GPU 1", "GPU 2"}, model[] = "H100", nobody[] = "",
                users[] = "alice, python, 31 GiB, 4 h";

    for (size_t i = 0; i < n; i++)
        gpus[i] = (struct platform_gpu){.name = names[i],
                                        .model = model,
                                        .users = i == 1 ? users : nobody,
                                        .memory = INT64_C(80) << 30,
                                        .used = i == 1 ? INT64_C(31) << 30 : 0,
                                        .is_given = i != 2};
    f->clusters[0].gpus = (struct platform_gpus){.v = gpus, .n = n};
}

TEST(the_gpus_of_this_machine_where_there_is_room)
{
    struct fixture f;
    struct platform_gpu gpus[3];
    struct top_look look = {.columns = 80, .plain = true};
    ACT_AUTO(act_strv) seen = {0};

    top_test_set_up(&f);
    top_test_add_gpus(&f, gpus, 3);
    ACT_AUTOFREE char *text = top_test_text_of(&f, &look, &seen);
    assert_contains(text, "\n\n"
                          "GPU               MODEL            MEMORY  USED BY\n"
                          "GPU 0             H100    0.0 of 80.0 GiB  -\n"
                          "GPU 1             H100   31.0 of 80.0 GiB  alice, python, 31 GiB, 4 h\n"
                          "GPU 2, not given  H100    0.0 of 80.0 GiB  -\n"
                          "\n"
                          "RUN ");
    look.rows = 19;
    ACT_AUTOFREE char *small = top_test_text_of(&f, &look, &seen);
    assert_null(strstr(small, "GPU 0"));
    f.clusters[0].gpus.note = "nvidia-smi hangs";
    look.rows = 40;
    ACT_AUTOFREE char *noted = top_test_text_of(&f, &look, &seen);
    assert_contains(noted, "\nnvidia-smi hangs\n");
    top_test_release(&look);
}

TEST(every_size_is_filled_and_no_line_is_too_wide)
{
    struct fixture f;
    struct platform_gpu gpus[3];

    top_test_set_up(&f);
    top_test_add_gpus(&f, gpus, 3);
    f.live.line = (char[]){"\033[2J\033]0;x\007 \xff \xe8\xae\xad\xe7\xbb\x83 \xe2\x80\xae end"};
    for (int rows = 1; rows < 40; rows++)
        for (int columns = 20; columns < 220; columns += 20) {
            struct top_look look = {.rows = rows, .columns = columns};
            ACT_AUTO(act_strv) lines = {0};
            ACT_AUTO(act_strv) seen = {0};
            look.now_unix_s = NOW;
            top_lines(&f.view, &look, &lines, &seen);
            assert_int_equal(lines.n, rows);
            for (size_t i = 0; i < lines.n; i++) {
                const char *line = lines.v[i];
                bool inverse = act_starts_with(line, "\033[7m");
                ACT_AUTOFREE char *bare = inverse ? act_strndup(line + 4, strlen(line) - 8) : act_strdup(line);
                assert_null(strchr(bare, '\033'));
                assert_true(act_utf8_valid(bare, strlen(bare)));
                assert_true(act_columns(bare) <= columns);
            }
            top_test_release(&look);
        }
}

TEST(without_gpus_processors_are_counted)
{
    struct fixture f;
    struct top_look look = {.rows = 16, .columns = 100, .plain = true};
    ACT_AUTO(act_strv) seen = {0};

    top_test_set_up(&f);
    f.clusters[0].summary.has_gpus = false;
    ACT_AUTOFREE char *text = top_test_text_of(&f, &look, &seen);
    assert_non_null(strstr(text, "CLUSTER  IDLE NODES  IDLE CPUS  QUEUE  YOURS  NOTE\n"
                                 "lab             3/8      24/64      2    1+1  -\n"));
    f.clusters[1].has_summary = f.clusters[1].summary.has_gpus = true;
    ACT_AUTOFREE char *mixed = top_test_text_of(&f, &look, &seen);
    assert_non_null(strstr(mixed, "IDLE GPUS"));
    assert_non_null(strstr(mixed, "1+1  CPUs\n"));
    top_test_release(&look);
}

TEST(what_is_cut_is_whole)
{
    struct fixture f;
    struct top_look look = {.rows = 24, .columns = 40, .plain = true};
    ACT_AUTO(act_strv) seen = {0};

    top_test_set_up(&f);
    f.live.has_gpus = false;
    f.live.busy = 1;
    ACT_AUTOFREE char *narrow = top_test_text_of(&f, &look, &seen);
    assert_non_null(strstr(narrow, ">cccccccc  Running       45s  c.py\033"));
    assert_non_null(strstr(narrow, "\nq quit  h help  l log  w why  a abort\n"));
    look.columns = 60;
    ACT_AUTOFREE char *wider = top_test_text_of(&f, &look, &seen);
    assert_non_null(strstr(wider, ">cccccccc  Running       45s  ##### 100%  c.py\033"));
    assert_non_null(strstr(wider, "AGE  CPU         NAME"));
    look.help = true;
    look.columns = 40;
    ACT_AUTOFREE char *help = top_test_text_of(&f, &look, &seen);
    assert_null(strstr(help, "..."));
    assert_non_null(strstr(help, "failed.\n"));
    top_test_release(&look);
}

TEST(no_number_is_cut)
{
    static const char *const whole[] = {"validation_loss 0.12345", "accuracy 0.98765"};
    struct fixture f;

    top_test_set_up(&f);
    f.live.n_numbers = 2;
    f.live.numbers[0] = (struct flow_live_number){.name = "validation_loss", .last = 0.12345};
    f.live.numbers[1] = (struct flow_live_number){.name = "accuracy", .last = 0.98765};
    f.live.line = (char[]){"training"};
    for (int columns = 20; columns < 160; columns++) {
        struct top_look look = {.rows = 12, .columns = columns, .plain = true};
        ACT_AUTO(act_strv) seen = {0};
        ACT_AUTOFREE char *text = top_test_text_of(&f, &look, &seen);
        const char *at = strstr(text, ">cccccccc");
        assert_non_null(at);
        ACT_AUTOFREE char *row = act_strndup(at, strcspn(at, "\n"));
        for (size_t i = 0; i < COUNT(whole); i++) {
            ACT_AUTOFREE char *name = act_strndup(whole[i], 6);
            assert_int_equal(strstr(row, whole[i]) != NULL, strstr(row, name) != NULL);
        }
        assert_int_equal(columns >= 75, strstr(row, whole[0]) != NULL);
        top_test_release(&look);
    }
}

TEST(what_explains_a_failure_comes_first)
{
    struct fixture f;
    struct top_look look = {.rows = 24, .columns = 80, .plain = true};
    ACT_AUTO(act_strv) seen = {0};

    top_test_set_up(&f);
    snprintf(f.runs[0].run.status.reason, sizeof(f.runs[0].run.status.reason),
             "rank 12 exited with status 1: KeyError: 'loss'");
    f.runs[2].live = NULL;
    ACT_AUTOFREE char *text = top_test_text_of(&f, &look, &seen);
    assert_non_null(strstr(text, "  KeyError: 'loss'\n"));
    assert_null(strstr(text, "rank 12"));
    top_test_release(&look);
    snprintf(f.runs[0].run.status.reason, sizeof(f.runs[0].run.status.reason), "rank 2 exited with status 1");
    look = (struct top_look){.rows = 24, .columns = 80, .plain = true};
    ACT_AUTOFREE char *bare = top_test_text_of(&f, &look, &seen);
    assert_non_null(strstr(bare, "rank 2 exited"));
    top_test_release(&look);
}

/* In one column, no use of processors is taken for that of GPUs, however narrow it is. */
TEST(use_of_processors_is_never_that_of_gpus)
{
    struct fixture f;
    ACT_AUTO(act_strv) seen = {0};

    top_test_set_up(&f);
    struct flow_live host = f.live;
    host.has_gpus = false;
    host.busy = 0.6;
    f.runs[3].run.status.state = RUN_RUNNING;
    f.runs[3].live = &host;
    for (int columns = 0; columns < 160; columns += 20) {
        struct top_look look = {.rows = columns ? 24 : 0, .columns = columns, .plain = true};
        ACT_AUTOFREE char *text = top_test_text_of(&f, &look, &seen);
        assert_int_equal(strstr(text, "####.  80%") != NULL, strstr(text, "cpu    60%") != NULL);
        assert_int_equal(columns == 0 || columns >= 60, strstr(text, "cpu    60%") != NULL);
        assert_null(strstr(text, "###..  60%"));
        top_test_release(&look);
    }
}

/* Ages grow, numbers come and samples fail to: what is shown beside them stays where it is. */
TEST(columns_stay)
{
    struct fixture f;
    struct top_look look = {.rows = 24, .columns = 80, .plain = true};
    ACT_AUTO(act_strv) seen = {0};
    ACT_AUTOFREE char *head = NULL;

    top_test_set_up(&f);
    for (int i = 0; i < 6; i++) {
        f.runs[2].run.status.started_unix_s = NOW - 1 - i * i * i * 300;
        f.live.busy = i % 2 ? -1 : 0.5;
        f.live.n_numbers = i == 3 ? 0 : 1;
        ACT_AUTOFREE char *text = top_test_text_of(&f, &look, &seen);
        char *begin = strstr(text, "RUN  ");
        assert_non_null(begin);
        begin[strcspn(begin, "\n")] = '\0';
        ACT_AUTO(act_buf) words = {0};
        for (char *rest = begin, *word; (word = strsep(&rest, " "));)
            act_buf_addf(&words, "%s%s", *word ? " " : "", word);
        if (head)
            assert_string_equal(words.data, head);
        else
            head = act_strdup(words.data);
    }
    top_test_release(&look);
}

TEST(a_sweep_is_one_line_until_it_is_unfolded)
{
    static char tags[] = "{\"sweep\":\"0badcafe\",\"lr\":\"1\"}", name[] = "first.3";
    struct fixture f;
    struct top_look look = {.rows = 24, .columns = 100, .plain = true, .folds = true};
    ACT_AUTO(act_strv) seen = {0};

    top_test_set_up(&f);
    for (size_t i = 0; i < 3; i++) {
        f.runs[i].run.row.tags = tags;
        f.runs[i].run.row.name = name;
    }
    ACT_AUTOFREE char *folded = top_test_text_of(&f, &look, &seen);
    assert_non_null(strstr(folded, ">0badcafe  0d 1r 1f      45s  lab      ####.  80%   40%  loss 0.5  best  first"));
    assert_non_null(strstr(folded, "\n dddddddd  Completed"));
    assert_null(strstr(folded, "cccccccc  Running"));
    assert_non_null(strstr(folded, "\nsweep 0badcafe  first  3 runs  1 running  1 failed  1 queued\n"));
    assert_int_equal(look.folded, 3);
    assert_string_equal(look.sweep, "0badcafe");
    assert_string_equal(seen.v[0], f.runs[2].run.row.id);
    top_move(&f.view, &look, 1);
    assert_string_equal(look.chosen, f.runs[3].run.row.id);
    top_move(&f.view, &look, -1);
    top_toggle(&look, look.sweep);
    ACT_AUTOFREE char *unfolded = top_test_text_of(&f, &look, &seen);
    assert_non_null(strstr(unfolded, ">cccccccc  Running"));
    assert_non_null(strstr(unfolded, " aaaaaaaa  Failed"));
    assert_int_equal(look.folded, 0);
    assert_string_equal(look.sweep, "0badcafe");
    top_toggle(&look, look.sweep);
    look.filter = (char[]){"failed"};
    ACT_AUTOFREE char *alone = top_test_text_of(&f, &look, &seen);
    assert_non_null(strstr(alone, ">aaaaaaaa  Failed")); /* one run of a sweep is shown as that */
    look.filter = NULL;
    top_test_release(&look);
}

TEST(runs_pass_a_filter_of_words)
{
    static const struct {
        const char *filter;
        const char *ids; /* the first letters of what is left, in order */
    } rows[] = {
        {NULL, "cbad"},  {"lab", "cad"}, {"LAB failed", "a"}, {"d.py", "d"},   {"sweep=7", "c"},
        {"sweep=8", ""}, {"b", "cbad"},  {"bbbb", "b"},       {"   ", "cbad"}, {"zzz", ""},
    };
    struct fixture f;

    top_test_set_up(&f);
    for (size_t i = 0; i < COUNT(rows); i++) {
        char filter[32] = "", found[RUNS + 1] = "";
        snprintf(filter, sizeof(filter), "%s", rows[i].filter ? rows[i].filter : "");
        struct top_look look = {.filter = rows[i].filter ? filter : NULL};
        size_t n;
        ACT_AUTOFREE const struct flow_board_run **runs = top_order(&f.view, &look, &n);
        for (size_t k = 0; k < n; k++)
            found[k] = strrchr(runs[k]->run.row.id, '_')[1];
        assert_string_equal(found, rows[i].ids);
    }
}

TEST(runs_are_sorted)
{
    static const char *const orders[TOP_SORTS] = {
        [TOP_BY_STATE] = "cbad",   [TOP_BY_TIME] = "abcd",    [TOP_BY_USE] = "cabd",
        [TOP_BY_SILENCE] = "cabd", [TOP_BY_CLUSTER] = "bacd",
    };
    struct fixture f;

    top_test_set_up(&f);
    for (int sort = 0; sort < TOP_SORTS; sort++) {
        struct top_look look = {.sort = (enum top_sort)sort};
        char found[RUNS + 1] = "";
        size_t n;
        ACT_AUTOFREE const struct flow_board_run **runs = top_order(&f.view, &look, &n);
        for (size_t k = 0; k < n; k++)
            found[k] = strrchr(runs[k]->run.row.id, '_')[1];
        assert_string_equal(found, orders[sort]);
        assert_non_null(top_sort_name((enum top_sort)sort));
    }
}

TEST(the_chosen_run_stays_on_the_screen)
{
    struct fixture f;
    struct top_look look = {.rows = 4, .columns = 40};

    top_test_set_up(&f);
    for (int i = 0; i < RUNS + 2; i++) {
        ACT_AUTO(act_strv) seen = {0};
        ACT_AUTOFREE char *text = top_test_text_of(&f, &look, &seen);
        ACT_AUTOFREE char *mark = act_sprintf("\033[7m>%s", strrchr(look.chosen, '_') + 1);
        assert_non_null(strstr(text, mark));
        top_move(&f.view, &look, 1);
    }
    assert_string_equal(look.chosen, f.runs[3].run.row.id);
    top_move(&f.view, &look, -100);
    assert_string_equal(look.chosen, f.runs[2].run.row.id);
    f.view.n = 0;
    top_move(&f.view, &look, 1);
    ACT_AUTO(act_strv) seen = {0};
    ACT_AUTOFREE char *chosen_by_tag = top_test_text_of(&f, &look, &seen);
    assert_non_null(strstr(chosen_by_tag, "no run has this name or tag"));
    look.folds = true;
    ACT_AUTOFREE char *text = top_test_text_of(&f, &look, &seen);
    assert_non_null(strstr(text, "no runs yet"));
    assert_null(look.chosen);
}

TEST(clocks_that_go_back_and_odd_numbers_are_shown)
{
    struct fixture f;
    struct top_look look = {.plain = true};
    ACT_AUTO(act_strv) seen = {0};

    top_test_set_up(&f);
    f.live.spoke_unix_s = NOW + 1000;
    f.live.held_up_by = 5;
    f.live.busy = 12;
    f.runs[2].run.status.started_unix_s = NOW + 50;
    f.live.numbers[0].last = -INFINITY;
    ACT_AUTOFREE char *text = top_test_text_of(&f, &look, &seen);
    assert_non_null(strstr(text, "exp_1795571940_cccccccc  Running       0s"));
    assert_non_null(strstr(text, "#####"));
    assert_non_null(strstr(text, "loss -inf  #+~_"));
    assert_non_null(strstr(text, "0s ago, rank 5 holds it up: step 4"));
    top_test_release(&look);
    look.chosen = look.sweep = NULL;
    f.live.spoke_unix_s = NOW - 600;
    f.live.numbers[0].last = NAN;
    ACT_AUTOFREE char *other = top_test_text_of(&f, &look, &seen);
    assert_non_null(strstr(other, "loss NaN"));
    assert_non_null(strstr(other, "silent for 10m00s, rank 5"));
    top_test_release(&look);
}

/* A reason is cut where its room ends, an error may quote a path of any bytes. */
TEST(what_is_no_text_is_in_the_json_all_the_same)
{
    static char error[] = "cannot read '/home/\xff/config'", project[] = "/home/\xff";
    struct fixture f;

    top_test_set_up(&f);
    f.clusters[1].error = error;
    f.runs[0].run.row.project = project;
    snprintf(f.runs[0].run.status.reason, sizeof(f.runs[0].run.status.reason), "%s", "d\xc3\xa9j\xc3");
    CODEC_AUTOJSON json_t *json = top_json(&f.view);
    const json_t *clusters = json_object_get(json, "clusters"), *run = json_array_get(json_object_get(json, "runs"), 0);
    assert_int_equal(json_array_size(clusters), 2);
    assert_string_equal(codec_json_str(json_array_get(clusters, 1), "error", ""), "cannot read '/home/?/config'");
    assert_string_equal(codec_json_str(run, "reason", ""), "d\xc3\xa9j?");
    assert_true(json_is_object(json_object_get(run, "project")));
}

TEST(bytes_are_keys)
{
    static const struct {
        const char *bytes;
        int key;
        size_t taken;
    } rows[] = {
        {"q", 'q', 1},
        {"\033[A", SCREEN_UP, 3},
        {"\033OBx", SCREEN_DOWN, 3},
        {"\033[6~", SCREEN_PAGE_DOWN, 4},
        {"\033", SCREEN_ESCAPE, 1},
        {"\033[1;5C", 0, 6}, /* Ctrl and right */
        {"\033[", 0, 2},
        {"\r", SCREEN_ENTER, 1},
        {"\177", SCREEN_BACKSPACE, 1},
        {"\001", 0, 1},
        {"\025", SCREEN_ERASE_ALL, 1},
        {"\027", SCREEN_ERASE_WORD, 1},
        {"\xc3\xa9", 0xc3, 1},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        int key = -1;
        assert_int_equal(screen_read_key(rows[i].bytes, strlen(rows[i].bytes), &key), rows[i].taken);
        assert_int_equal(key, rows[i].key);
    }
}

TEST_MAIN(NULL, NULL)
