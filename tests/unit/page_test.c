/* page_test.c - what the data behind the pages is made of: which rows a list shows, and whole characters of logs. */
#include "unit/test.h"

#include <math.h>

#include "cli/page/api.h"
#include "cli/page/groups.h"
#include "cli/page/job.h"
#include "cli/page/rows.h"
#include "codec/json.h"

/* A run called "base" that has failed, with a number and a tag. */
static struct page_row row_of(json_t *note)
{
    static char id[] = "exp_1_0000000a", name[] = "base", cluster[] = "lab", platform[] = "slurm", project[] = "/p",
                command[] = "python train.py --wd 1e-2 --fp16 opt=adam 'x y'",
                tags[] = "{\"lr\": \"0.1\", \"sweep\": \"7a\"}";

    return (struct page_row){.run = {.row = {.id = id,
                                             .name = name,
                                             .cluster = cluster,
                                             .platform = platform,
                                             .project = project,
                                             .command = command,
                                             .tags = tags},
                                     .status = {.state = RUN_FAILED, .reason = "killed by signal 9"}},
                             .note = note};
}

TEST(filters_hold)
{
    static const struct {
        const char *words;
        bool passes;
    } rows[] = {
        {"", true},
        {"  \t ", true},
        {"BASE", true},
        {"train.py", true},
        {"0000000A lab failed", true},
        {"base other", false},
        {"memory", true},
        {"signal", false},
        {"state:fail", true},
        {"state:run", false},
        {"State:FAILED cluster:la", true},
        {"sweep:7", true},
        {"sweep:8", false},
        {"why:memory", true},
        {"nothing:here", false},
        {"lr=0.1", true},
        {"lr=1e-1", true},
        {"LR=0.1", false},
        {"lr=0.2", false},
        {"wd=0.01", true},
        {"wd=0.02", false},
        {"opt=ADAM", true},
        {"fp16=opt", false},
        {"loss=0.5", true},
        {"loss<0.51", true},
        {"loss<0.5", false},
        {"loss<=0.5", true},
        {"loss>=0.5", true},
        {"loss>0.5", false},
        {"LOSS>0", true},
        {"lr<1", true},
        {"acc>0", false},
        {"loss<", false},
        {"<5", false},
        {"loss<few", false},
        {"loss<nan", false},
        {"loss<inf", false},
        {"=", true},
    };
    json_t *note = json_pack("{s:{s:[f],s:[n]},s:s}", "numbers", "loss", 0.5, "acc", "why", "out of GPU memory");
    const struct page_row row = row_of(note);

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct page_filter_words filter;
        page_filter_read(rows[i].words, &filter);
        if (page_filter_passes(&filter, &row) != rows[i].passes)
            fail_msg("'%s'", rows[i].words);
        page_filter_words_release(&filter);
    }
    json_decref(note);
}

TEST(rows_are_sorted)
{
    static const struct {
        const char *by;
        bool descends;
        const char *order; /* by the last letters of the ids */
    } rows[] = {
        {"age", false, "abcd"},   {"age", true, "dcba"},     {"key:loss", false, "cabd"}, {"key:loss", true, "acbd"},
        {"key:no", true, "abcd"}, {"tag:lr", false, "bacd"}, {"tag:lr", true, "abcd"},    {"id", true, "dcba"},
        {"name", false, "dbac"},  {"gpus", false, "abcd"},   {"busy", false, "abcd"},     {"elapsed", true, "abcd"},
    };
    char ids[][2] = {"a", "b", "c", "d"}, *names[] = {(char[]){"y"}, (char[]){"X"}, NULL, (char[]){"10"}},
         *tags[] = {(char[]){"{\"lr\":\"1e-1\"}"}, (char[]){"{\"lr\":\"0.02\"}"}, NULL, NULL};
    static const double last[] = {3, 0, 2, 0};
    struct page_row v[COUNT(ids)];
    struct page_rows list = {.v = v, .n = COUNT(ids)};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct page_order order;
        char got[COUNT(ids) + 1] = "";
        for (size_t k = 0; k < COUNT(ids); k++)
            v[k] = (struct page_row){
                .run = {.row = {.id = ids[k], .name = names[k], .tags = tags[k], .created_unix_s = 9}},
                .note = last[k] > 0 ? json_pack("{s:{s:[f]}}", "numbers", "loss", last[k]) : NULL,
                .at = k};
        assert_true(page_order_read(rows[i].by, &order));
        order.descends = rows[i].descends;
        page_order_sort(&order, &list);
        for (size_t k = 0; k < COUNT(ids); k++) {
            got[k] = *v[k].run.row.id;
            json_decref(v[k].note);
        }
        if (strcmp(got, rows[i].order) != 0)
            fail_msg("by %s: %s, not %s", rows[i].by, got, rows[i].order);
    }
}

TEST(only_known_orders_are_read)
{
    static const char *const wrong[] = {"", "luck", "key", "key:", "tag:", "age2", "AGE"};
    struct page_order ignored;

    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_false(page_order_read(wrong[i], &ignored));
}

/* Takes rows into groups, and returns the ids of the lines of the page. */
static const char *page_test_lines(struct page_groups *groups, struct page_row *v, size_t n, bool *needed)
{
    static char ids[16];
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        needed[i] = page_groups_take(groups, &v[i]);
        if (v[i].is_line)
            ids[len++] = *v[i].run.row.id;
    }
    ids[len] = '\0';
    return ids;
}

/* Runs of two sweeps, one that is alone in its own, and one of none. */
TEST(runs_are_grouped)
{
    static const struct {
        const char *by;
        const char *open; /* a group */
        size_t first, max, all;
        const char *lines, *needed;
    } rows[] = {
        {"sweep", NULL, 0, 9, 4, "abdf", "abcdefg"}, {"sweep", "7", 0, 9, 6, "abcdef", "abcdefg"},
        {"sweep", NULL, 0, 2, 4, "ab", "abceg"},     {"sweep", NULL, 2, 9, 4, "df", "df"},
        {"sweep", "7", 0, 3, 6, "abc", "abceg"},     {"tag:lr", NULL, 0, 9, 7, "abcdefg", "abcdefg"},
        {"day", NULL, 0, 9, 1, "a", "abcdefg"},      {"tag:sweep", "8", 0, 9, 5, "abdfg", "abcdefg"},
    };
    char ids[][2] = {"a", "b", "c", "d", "e", "f", "g"}, seven[] = "{\"sweep\":\"7\"}", eight[] = "{\"sweep\":\"8\"}",
         nine[] = "{\"sweep\":\"9\",\"lr\":\"1\"}";
    char *tags[COUNT(ids)] = {eight, seven, seven, nine, seven, NULL, eight};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct page_row v[COUNT(ids)];
        bool needed[COUNT(ids)];
        char got[COUNT(ids) + 1] = "";
        struct page_groups groups;
        ACT_AUTO(act_strv) open = {0};
        for (size_t k = 0; k < COUNT(ids); k++)
            v[k] = (struct page_row){.run = {.row = {.id = ids[k], .tags = tags[k], .created_unix_s = 1790000000}}};
        if (rows[i].open)
            act_strv_push(&open, rows[i].open);
        assert_true(page_groups_read(rows[i].by, &groups));
        groups.open = &open;
        groups.first = rows[i].first;
        groups.max = rows[i].max;
        assert_string_equal(page_test_lines(&groups, v, COUNT(v), needed), rows[i].lines);
        for (size_t k = 0, n = 0; k < COUNT(ids); k++)
            if (needed[k])
                got[n++] = *ids[k];
        assert_string_equal(got, rows[i].needed);
        assert_int_equal(groups.lines, rows[i].all);
        assert_int_equal(groups.runs, COUNT(ids));
        page_groups_release(&groups);
    }
}

TEST(a_group_says_what_its_runs_have)
{
    char ids[][2] = {"a", "b", "c"}, *names[] = {(char[]){"wide.1"}, (char[]){"wide.2"}, (char[]){"wide.10"}},
         lab[] = "lab", tags[] = "{\"sweep\":\"7\",\"width\":\"64\"}";
    static const double loss[] = {3, 1, 2}, acc[] = {0.1, 0.2, 0.9};
    struct page_row v[COUNT(ids)];
    struct page_groups groups;
    ACT_AUTO(act_strv) keys = {0};
    bool needed[COUNT(ids)];

    ACT_STRV_PUSH(&keys, "loss", "val/acc", "lr", "width", "none");
    for (size_t k = 0; k < COUNT(ids); k++)
        v[k] = (struct page_row){.run = {.row = {.id = ids[k],
                                                 .name = names[k],
                                                 .cluster = lab,
                                                 .tags = tags,
                                                 .created_unix_s = 1790000000 + (int64_t)k,
                                                 .num_gpu = 8},
                                         .status = {.state = k == 1 ? RUN_FAILED : RUN_RUNNING}},
                                 .note = json_pack("{s:{s:[f],s:[f],s:[f],s:[f]}}", "numbers", "loss", loss[k],
                                                   "val/acc", acc[k], "lr", 0.1, "width", 64.0)};
    assert_true(page_groups_read("sweep", &groups));
    groups.max = 1;
    assert_string_equal(page_test_lines(&groups, v, COUNT(v), needed), "a");
    CODEC_AUTOJSON json_t *json = page_groups_json(&groups, &(struct page_rows){.v = v, .n = COUNT(v)}, &keys);
    ACT_AUTOFREE char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(3) | JSON_SORT_KEYS);
    assert_string_equal(text, "[{\"best\":{\"loss\":{\"id\":\"b\",\"name\":\"wide.2\",\"value\":1.0},"
                              "\"val/acc\":{\"id\":\"c\",\"name\":\"wide.10\",\"value\":0.9}},\"cluster\":\"lab\","
                              "\"created_s\":1790000002,\"gpus\":16,\"name\":\"7\",\"open\":false,\"runs\":3,"
                              "\"states\":{\"Failed\":1,\"Running\":2},\"title\":\"wide\"}]");
    for (size_t k = 0; k < COUNT(ids); k++)
        json_decref(v[k].note);
    page_groups_release(&groups);
}

TEST(what_is_better_is_known_by_its_name)
{
    static const struct {
        const char *key;
        enum page_better better;
    } rows[] = {
        {"loss", PAGE_LOW_BEST},
        {"val_loss", PAGE_LOW_BEST},
        {"acc", PAGE_HIGH_BEST},
        {"eval/Accuracy@1", PAGE_HIGH_BEST},
        {"top1_acc", PAGE_HIGH_BEST},
        {"accumulated", PAGE_LOW_BEST},
        {"mapping", PAGE_LOW_BEST},
        {"rougeL", PAGE_HIGH_BEST},
        {"samples_per_s", PAGE_HIGH_BEST},
        {"lr", PAGE_NONE_BEST},
        {"opt/lr-0", PAGE_NONE_BEST},
        {"learning rate", PAGE_NONE_BEST},
        {"lrs", PAGE_LOW_BEST},
        {"all", PAGE_LOW_BEST},
        {"", PAGE_LOW_BEST},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (page_better(rows[i].key) != rows[i].better)
            fail_msg("%s", rows[i].key);
}

TEST(only_known_groups_are_read)
{
    static const char *const wrong[] = {"", "tag:", "days", "tag", "SWEEP"};
    struct page_groups groups;

    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_false(page_groups_read(wrong[i], &groups));
}

TEST(characters_stay_whole)
{
    static const struct {
        const char *bytes;
        size_t begin, end;
    } rows[] = {
        {"", 0, 0},
        {"abc", 0, 3},
        {"\xa4 a\xc3\xa4", 1, 5},
        {"a\xc3", 0, 1},
        {"a\xe2\x82", 0, 1},
        {"a\xf0\x9f\x98", 0, 1},
        {"a\xf0\x9f\x98\x80", 0, 5},
        {"\x80\x80\x80\x80\x80", 3, 5},
        {"\xff", 0, 0},
        {"a\xff\xff\xff\xff", 0, 4},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t len = strlen(rows[i].bytes);
        assert_int_equal(api_whole_begin(rows[i].bytes, len), rows[i].begin);
        assert_int_equal(api_whole_end(rows[i].bytes, len), rows[i].end);
    }
}

TEST(any_bytes_become_a_text)
{
    static const char bytes[] = "a\0\xff\xc3\xa4\x1b";
    json_t *json = api_text_json(bytes, sizeof(bytes) - 1), *none = api_text_json(NULL, 0);

    assert_int_equal(json_string_length(json), 8);
    assert_memory_equal(json_string_value(json), "a\0\xef\xbf\xbd\xc3\xa4\x1b", 8);
    assert_string_equal(json_string_value(none), "");
    json_decref(json);
    json_decref(none);
}

TEST(numbers_are_json)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {{NAN, "null"}, {INFINITY, "null"}, {0.5, "0.5"}, {-3, "-3"}, {0, "0"}, {1e300, "1e300"}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        CODEC_AUTOJSON json_t *json = api_number_json(rows[i].value);
        ACT_AUTOFREE char *text = json_dumps(json, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        assert_string_equal(text, rows[i].text);
    }
}

TEST(routes_are_found)
{
    assert_non_null(page_route(""));
    assert_true(page_route("api/runs")->form == MADE_JSON);
    assert_null(page_route("api/"));
    assert_null(page_route("run/"));
}

TEST_MAIN(NULL, NULL)
