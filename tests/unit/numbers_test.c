/* numbers_test.c - the numbers in lines of logs, curves of them, and what nodes used. */
#include "unit/test.h"

#include <math.h>
#include <stdio.h>

#include "numbers/numbers.h"
#include "numbers/numbers_internal.h"
#include "numbers/samples.h"
#include "numbers/series.h"

/* "loss=2.31@100 lr=0.001@100": each key with its points, in the order of the keys. New string. */
static char *found_in(const char *text, size_t piece)
{
    struct numbers *n = numbers_new();
    struct act_buf found = {0};
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i += piece)
        numbers_feed(n, text + i, len - i < piece ? len - i : piece);
    numbers_end(n);
    for (size_t i = 0; i < numbers_count(n); i++) {
        struct numbers_key *key = numbers_key(n, i);
        series_end(&key->series);
        act_buf_addf(&found, "%s%s", i ? " " : "", key->name);
        for (size_t k = 0; k < key->series.n; k++)
            act_buf_addf(&found, "%c%g@%g", k ? ',' : '=', key->series.v[k].y, key->series.v[k].x);
        if (key->series.odd)
            act_buf_addf(&found, "!%d", (int)key->series.odd);
    }
    numbers_free(n);
    return act_buf_steal(&found);
}

TEST(progress_is_read_from_bars_and_words)
{
    static const struct {
        const char *line, *progress;
    } rows[] = {
        {" 30%|###       | 3/10 [00:03<00:07,  1.00it/s, loss=2.3]", "3/10, 1.00it/s, 00:07 left"},
        {"Epoch 3:  45%|####5     | 45/100 [00:10<00:12,  4.32it/s, v_num=0]", "45/100, 4.32it/s, 00:12 left"},
        {"  0%|          | 0/500 [00:00<?, ?it/s]", "0/500, ?it/s"},
        {"{'loss': 2.1}  12%|#2        | 61/500 [1:02:11<7:12:40, 59.1s/it]", "61/500, 59.1s/it, 7:12:40 left"},
        {"45/100 [=====>......] - ETA: 12s - loss: 0.5", "45/100, 12s left"},
        {"45/100 \u2501\u2501\u2501\u2501 12s 20ms/step - loss: 0.5", "45/100, 20ms/step, 12s left"},
        {"Epoch 3/10", "3/10"},
        {"Epoch [3/10], Step [45/100], Loss: 0.2", "45/100"},
        {"step=100/1000 loss 2.31", "100/1000"},
        {"loss 2.31", NULL},
        {"2026/11/29 step", NULL},
        {"wrote checkpoints 3/10", NULL},
        {"step 11/10", NULL},
        {"", NULL},
        {"epoch 1/99999999999999999999999999", NULL},
        {"1/2 [", NULL},
        {"1/2 [00:01<", "1/2"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *progress = numbers_progress(rows[i].line);
        if (rows[i].progress)
            assert_string_equal(progress, rows[i].progress);
        else
            assert_null(progress);
    }
}

static void numbers_test_expect(const char *text, const char *wanted)
{
    static const size_t pieces[] = {1, 7, 1 << 20};

    for (size_t i = 0; i < COUNT(pieces); i++) {
        ACT_AUTOFREE char *found = found_in(text, pieces[i]);
        if (strcmp(found, wanted) != 0)
            fail_msg("'%.300s' gives '%s', not '%s'", text, found, wanted);
    }
}

/* ---- numbers */

TEST(times_are_read_from_lines)
{
    static const struct {
        const char *line;
        double unix_s; /* 0: none */
        bool is_zoned;
    } rows[] = {
        {"2026-11-29 12:34:56,789 INFO loss 1", 1795955696.789, false},
        {"[2026-11-29 12:34:56.5][rank0] loss 1", 1795955696.5, false},
        {"INFO 2026-11-29T12:34:56Z loss 1", 1795955696, true},
        {"2026-11-29T12:34:56+02:00 loss 1", 1795948496, true},
        {"2026-11-29T12:34:56.25-0130 loss 1", 1795961096.25, true},
        {"2026/11/29 12:34:56 loss 1", 1795955696, false},
        {"11/29/2026 12:34:56 - INFO - loss 1", 1795955696, false},
        {"2026-13-29 12:34:56 loss 1", 0, false},
        {"2026-11-29 loss 1", 0, false},
        {"12:34:56 loss 1", 0, false},
        {"20261-11-29 12:34:56", 0, false},
        {"2026-11-29 12:34", 0, false},
        {"", 0, false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        double found = 0;
        bool is_zoned = false;
        bool is_there = numbers_read_time(rows[i].line, &found, &is_zoned);
        if (is_there != (rows[i].unix_s > 0) || fabs(found - rows[i].unix_s) > 1e-4 || is_zoned != rows[i].is_zoned)
            fail_msg("'%s' is %.6f", rows[i].line, found);
    }
}

TEST(times_are_those_of_the_values)
{
    static const struct {
        const char *log;
        double from, until; /* of the run */
        double times[3];    /* NAN: ends */
    } rows[] = {
        {"2026-11-29 12:00:00 step 1 loss 2\n2026-11-29 12:00:05 step 2 loss 1\n",
         1795953590,
         1795953700,
         {1795953600, 1795953605, NAN}},
        {"2026-11-29 14:00:00 step 1 loss 2\n2026-11-29 14:00:05 step 2 loss 1\n",
         1795953590,
         1795953700,
         {1795953600, 1795953605, NAN}}, /* east of Greenwich */
        {"2026-11-29 06:30:00 step 1 loss 2\n", 1795953590, 1795953700, {1795953600, NAN, NAN}},
        {"2026-11-29T14:00:00+02:00 step 1\nloss 2\n", 1795953590, 1795953700, {1795953600, NAN, NAN}},
        {"{\"step\": 1, \"loss\": 2, \"timestamp\": 1795953601.5}\n{\"step\": 2, \"loss\": 2, \"ts\": 1795953602500}\n",
         1795953590,
         1795953700,
         {1795953601.5, 1795953602.5, NAN}},
        {"2026-11-29 12:00:00 begun\nx\nx\nx\nx\nstep 1 loss 2\n", 1795953590, 1795953700, {NAN, NAN, NAN}},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct numbers *n = numbers_new();
        numbers_feed(n, rows[i].log, strlen(rows[i].log));
        numbers_end(n);
        numbers_sort(n, rows[i].from, rows[i].until);
        const struct series *times = &numbers_find(n, "loss")->times;
        for (size_t k = 0; k < 3 && !isnan(rows[i].times[k]); k++)
            if (k >= times->n || fabs(times->v[k].y - rows[i].times[k]) > 1e-3)
                fail_msg("'%s': time %zu of %zu is %.3f", rows[i].log, k, times->n, k < times->n ? times->v[k].y : 0);
        if (isnan(rows[i].times[0]))
            assert_int_equal(times->n, 0);
        numbers_free(n);
    }
}

TEST(epochs_of_steps)
{
    static const char log[] = "Epoch 1/4\nstep 10 loss 3\nstep 20 loss 2\nEpoch 2/4\nstep 30 loss 1\n";
    static const char parts[] = "{'loss': 2.1, 'epoch': 0.5, 'step': 50}\n{'loss': 2.0, 'epoch': 1.0, 'step': 100}\n";
    struct numbers *n = numbers_new();

    numbers_feed(n, log, strlen(log));
    numbers_end(n);
    numbers_sort(n, 0, 0);
    assert_true(numbers_epoch_at(n, 10) == 1 && numbers_epoch_at(n, 15) == 1.5 && numbers_epoch_at(n, 20) == 2);
    assert_true(numbers_epoch_at(n, 30) == 3);
    numbers_free(n);
    n = numbers_new();
    assert_true(isnan(numbers_epoch_at(n, 1)));
    numbers_feed(n, parts, strlen(parts));
    numbers_end(n);
    numbers_sort(n, 0, 0);
    assert_true(numbers_epoch_at(n, 75) == 0.75);
    numbers_free(n);
    n = numbers_new();
    for (int i = 1; i <= 9; i++) { /* an epoch takes longer each time */
        ACT_AUTOFREE char *line = act_sprintf("step %d loss 1\nEpoch %d/10\n", i * i, i + 1);
        numbers_feed(n, line, strlen(line));
    }
    numbers_end(n);
    numbers_sort(n, 0, 0);
    for (int i = 1; i < 9; i++) {
        assert_true(numbers_epoch_at(n, i * i) == i + 1);
        assert_true(numbers_epoch_at(n, i * i + i + 0.5) == i + 1.5);
    }
    numbers_free(n);
}

TEST(decimals_are_those_of_strtod)
{
    static const char *const rows[] = {"0",
                                       "7",
                                       "0.1",
                                       ".5",
                                       "5.",
                                       "1790000010.123",
                                       "30000000000",
                                       "1125899906842624",
                                       "9007199254740993",
                                       "999999999999999999",
                                       "9999999999999999999",
                                       "18446744073709551617",
                                       "123456789012345.6",
                                       "0.12345678901234567",
                                       "1e-3",
                                       "2.5E+10",
                                       "1e",
                                       "1.2.3",
                                       "0000000000000000000000001"};
    double value;

    for (size_t i = 0; i < COUNT(rows); i++) {
        char *end;
        double wanted = strtod(rows[i], &end);
        const char *behind = numbers_decimal(rows[i], &value);
        if (behind != end || value != wanted)
            fail_msg("'%s' is %.17g up to '%s'", rows[i], value, behind);
    }
    assert_null(numbers_decimal("x", &value));
    assert_null(numbers_decimal("", &value));
}

/* ---- lines */

TEST(lines_of_many_programs)
{
    static const struct {
        const char *line, *wanted;
    } rows[] = {
        {"loss 2.31", "loss=2.31@1"},
        {"loss: 2.31", "loss=2.31@1"},
        {"loss=2.31", "loss=2.31@1"},
        {"Loss:2.31", "Loss=2.31@1"},
        {"step 100/1000 loss 2.31 lr 1e-3", "loss=2.31@100 lr=0.001@100"},
        {"step=100, loss=2.31", "loss=2.31@100"},
        {"Step: 100 | Loss: 2.31 | Acc: 93.5%", "Loss=2.31@100 Acc=93.5@100"},
        {"{'loss': 2.31, 'grad_norm': 1.5, 'learning_rate': 5e-05, 'epoch': 0.1}",
         "loss=2.31@0.1 grad_norm=1.5@0.1 learning_rate=5e-05@0.1"},
        {"{\"step\": 7, \"train\": {\"loss\": 2.5}, \"note\": \"x 1\"}", "train.loss=2.5@7"},
        {"{\"step\": 7, \"loss\": NaN, \"lr\": 0.5}", "loss!1 lr=0.5@7"},
        {"Epoch 3 train loss 0.5", "train_loss=0.5@3"},
        {"Epoch 3 [640/60000 (1%)]\tLoss: 0.5", "Loss=0.5@3.01067"},
        {"Train Epoch: 3 [30000/60000 (50%)]\tLoss: 0.5", "Loss=0.5@3.5"},
        {"Epoch: [3][ 10/100]\tTime  0.120 ( 0.130)\tLoss 2.3e+00 (2.4e+00)\tAcc@1  50.00 ( 45.00)",
         "Time=0.12@3.1 Loss=2.3@3.1 Acc@1=50@3.1"},
        {"Epoch [3/10], Step [100/600], Loss: 0.5", "Loss=0.5@100"},
        {"1875/1875 [==============================] - 4s 2ms/step - loss: 0.29 - accuracy: 0.91 - val_loss: 0.3",
         "loss=0.29@1875 accuracy=0.91@1875 val_loss=0.3@1875"},
        {"Epoch 3:  45%|####5     | 45/100 [00:12<00:15,  3.60it/s, loss=0.5, v_num=2]", "loss=0.5@3.45 v_num=2@3.45"},
        {" 45%|####5     | 45/100 [00:12<00:15,  3.60it/s, loss=0.5]", "loss=0.5@45"},
        {"[100/1000] loss: tensor(2.31, device='cuda:0')", "loss=2.31@100"},
        {"2026-11-24 22:28:08,123 INFO trainer: iter 5 the loss is 2.5", "loss=2.5@5"},
        {"I1124 22:28:08.123456 12345 train.py:45] iteration 5, loss = 2.5", "loss=2.5@5"},
        {"| epoch   1 |   200/ 2983 batches | lr 20.00 | ms/batch 12.5 | loss  7.63 | ppl  2050.1",
         "lr=20@1.06705 loss=7.63@1.06705 ppl=2050.1@1.06705"},
        {"iter 5: loss 2.5, time 120.5ms, mfu 30.1%", "loss=2.5@5 time=120.5@5 mfu=30.1@5"},
        {"\033[32mstep 4\033[0m loss \033[1m2.5\033[0m", "loss=2.5@4"},
        {"[2026-01-01 00:00:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[0.0001, 2], "
         "mom=[(0.9)]",
         "skipped=0@10 lr=0.0001@10"},
        {" iteration       10/  100 | learning rate: 1.0E-04 | global batch size: 8 | lm loss: 1.05E+01 | grad norm: "
         "5.1 |",
         "learning_rate=0.0001@10 global_batch_size=8@10 loss=10.5@10 grad_norm=5.1@10"},
        {"epoch 001:    100 / 1000 loss=10.5, ppl=1448.15, num_updates=100", "loss=10.5@100 ppl=1448.15@100"},
        {"completed step: 10, seconds: 0.5, TFLOP/s/device: 100.0, loss: 3.2",
         "seconds=0.5@10 TFLOP/s/device=100@10 loss=3.2@10"},
        {"loss -2.5 reward +3", "loss=-2.5@1 reward=3@1"},
        {"loss nan", "loss!1"},
        {"loss: inf lr: -inf", "loss!1 lr!1"},
        {"samples_per_s: 12.5", "samples_per_s=12.5@1"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        numbers_test_expect(rows[i].line, rows[i].wanted);
}

TEST(what_is_no_number_of_that_kind)
{
    static const char *const lines[] = {
        "",
        "\n\n",
        "loss",
        "loss:",
        "loss = ",
        "listening on port 8080",
        "http://10.0.0.1:8080/loss",
        "localhost:29500",
        "10.0.0.1:8080",
        "2026-11-24 22:28:08",
        "version 1.2.3",
        "loss 1,234",
        "loss 0x1f",
        "rank: 3, pid=77",
        "train.py:45",
        "took 35 minutes",
        "loss 3rd",
        "max_steps: ",
        "File \"x.py\", line 12, in f",
        "act: loss 3",
        "loss 1-2",
        "a/b 3/4/5",
        "=3",
        ": 3",
        "'': 3",
        "seed=42",
        "loss loss loss",
        "[1,0]<stdout>",
        "\"loss\"",
    };

    for (size_t i = 0; i < COUNT(lines); i++)
        numbers_test_expect(lines[i], "");
}

TEST(where_the_program_is_follows_from_lines_before)
{
    numbers_test_expect("step 10\nloss 1\nlr 2\n", "loss=1@10 lr=2@10");
    numbers_test_expect("step 10\nx\nx\nx\nx\nloss 1\nloss 2\n", "loss=1@1,2@2");
    numbers_test_expect("loss 1\nloss 2\n", "loss=1@1,2@2");
    numbers_test_expect("step 1 loss 1\nstep 2 loss 2\nlosses are fine\nstep 2 LOSS 3\n", "loss=1@1,3@2");
    numbers_test_expect("steps_per_epoch: 5 max_steps: 7\nstep 1 loss 1\n",
                        "steps_per_epoch=5@1 max_steps=7@1 loss=1@1");
}

TEST(steps_that_begin_anew)
{
    numbers_test_expect("Epoch 1\nstep 1/2 loss 4\nstep 2/2 loss 3\nEpoch 2\nstep 1/2 loss 2\nstep 2/2 loss 1\n",
                        "loss=4@1,3@2,2@3,1@4");
    /* resumed from a checkpoint */
    numbers_test_expect("step 1 loss 4\nstep 2 loss 3\nstep 3 loss 9\nstep 2 loss 2\nstep 3 loss 1\n",
                        "loss=4@1,2@2,1@3");
}

TEST(what_a_preparation_printed_is_no_number)
{
    numbers_test_expect("act: the preparation has printed:\n"
                        "WARNING: Retrying (Retry(total=4, connect=None)) after connection broken\n"
                        "WARNING: Retrying (Retry(total=3, connect=None)) after connection broken\n"
                        "act: preparation failed: compile.aml.sh ended with status 3\nloss=2\n",
                        "loss=2@1");
}

TEST(progress_bars_overwrite_their_line)
{
    numbers_test_expect("\r 1/3 [00:01<00:02, loss=3]\r 2/3 [00:02<00:01, loss=2]\r\n", "loss=3@1,2@2");
}

TEST(source_in_a_traceback_has_no_numbers)
{
    numbers_test_expect("Traceback (most recent call last):\n"
                        "  File \"train.py\", line 18, in <module>\n"
                        "    optimizer = SGD(lr=0.1, momentum=0.9)\n"
                        "                       ^^^^^^\n"
                        "  File \"<string>\", line 1, in step\n"
                        "loss=2\n",
                        "loss=2@1");
}

TEST(keys_and_lines_are_bounded)
{
    struct numbers *n = numbers_new();
    ACT_AUTOFREE char *longest = act_calloc(1, 3 * NUMBERS_LINE);

    memset(longest, 'a', 3 * NUMBERS_LINE - 1);
    numbers_feed(n, longest, strlen(longest));
    numbers_feed(n, "\nkey0: 1\n", strlen("\nkey0: 1\n"));
    assert_false(numbers_has_more(n));
    for (int i = 0; i < 2 * NUMBERS_KEYS; i++) {
        ACT_AUTOFREE char *line = act_sprintf("\nkey%d: 1\n", i);
        numbers_feed(n, line, strlen(line));
    }
    assert_true(numbers_count(n) < NUMBERS_KEYS && numbers_has_more(n));
    numbers_feed(n, "loss: 1\n", strlen("loss: 1\n")); /* there is room for measures */
    assert_non_null(numbers_find(n, "LOSS"));
    for (int i = 0; i < 2 * NUMBERS_KEYS; i++) {
        ACT_AUTOFREE char *line = act_sprintf("loss_%d: 1\n", i);
        numbers_feed(n, line, strlen(line));
    }
    assert_int_equal(numbers_count(n), NUMBERS_KEYS);
    numbers_free(n);
}

/* ---- curves */

TEST(series_keeps_the_extremes_of_a_long_curve)
{
    enum { N = 10 * SERIES_MAX };
    struct series s = {0};

    for (int i = 0; i < N; i++)
        series_add(&s, i, i == N / 2 ? 1000 : sin(i / 1000.0));
    assert_true(s.n <= SERIES_MAX);
    assert_int_equal(s.count, N);
    series_end(&s);
    series_reduce(&s, 100);
    assert_int_equal(s.n, 100);
    assert_true(s.v[0].x == 0 && s.v[99].x == N - 1);
    double highest = 0;
    for (size_t i = 0; i < s.n; i++) {
        assert_true(i == 0 || s.v[i].x > s.v[i - 1].x);
        highest = s.v[i].y > highest ? s.v[i].y : highest;
    }
    assert_true(highest == 1000 && s.high == 1000);
    series_release(&s);
}

TEST(series_of_odd_numbers)
{
    struct series s = {0};

    series_add(&s, NAN, 1);
    series_add(&s, INFINITY, 1);
    series_add(&s, 3, NAN);
    series_add(&s, 4, -INFINITY);
    assert_true(s.n == 0 && s.odd == 2 && s.n_odd == 2 && s.odd_x[0] == 3);
    assert_false(isfinite(s.ended_y));
    for (int i = 0; i < 100; i++) /* differences that are too large for a number */
        series_add(&s, i % 2 ? 1e308 : -1e308, i % 3 ? 1e308 : -1e308);
    series_end(&s);
    assert_int_equal(s.n, 2);
    series_reduce(&s, 2);
    assert_int_equal(s.n, 2);
    series_release(&s);
    series_end(&s);
    series_reduce(&s, 10);
    assert_int_equal(s.n, 0);
}

TEST(series_of_a_range)
{
    struct series s = {.range = {10, 20}};

    for (int i = 0; i < 100; i++)
        series_add(&s, i, i % 7 ? i : NAN);
    series_end(&s);
    assert_int_equal(s.n, 10); /* all but 14 */
    assert_true(s.v[0].x == 10 && s.v[9].x == 20 && s.n_odd == 1 && s.odd_x[0] == 14);
    assert_true(s.count == 85 && s.odd == 15 && s.high == 99 && s.last.x == 99);
    series_release(&s);
}

TEST(odd_numbers_are_kept_in_order)
{
    struct series s = {0};

    for (int i = 100; i > 0; i--)
        series_add(&s, i, NAN);
    series_end(&s);
    assert_int_equal(s.n_odd, SERIES_ODD);
    assert_true(s.odd == 100 && s.odd_x[0] == 100 - SERIES_ODD + 1 && s.odd_x[SERIES_ODD - 1] == 100);
    series_release(&s);
}

TEST(series_of_times_that_go_backwards)
{
    static const double times[] = {5, 6, 7, 3, 4, 5, 7};
    struct series s = {0};

    for (size_t i = 0; i < COUNT(times); i++)
        series_add(&s, times[i], (double)i);
    series_end(&s);
    static const double wanted[][2] = {{3, 3}, {4, 4}, {5, 5}, {6, 1}, {7, 6}};
    assert_int_equal(s.n, COUNT(wanted));
    for (size_t i = 0; i < s.n; i++)
        assert_true(s.v[i].x == wanted[i][0] && s.v[i].y == wanted[i][1]);
    series_release(&s);
}

/* ---- what nodes used */

static void add_sample(struct act_buf *out, double time, const char *gpus)
{
    act_buf_addf(
        out,
        "{\"time\":%.3f,\"node\":\"n1\",\"cpu\":{\"cores\":8,\"busy\":0.25,\"run\":1.5},\"memory\":{\"total\":1000,"
        "\"available\":250,\"run\":1},\"disk\":{\"code\":null,\"run\":{\"total\":10,\"free\":5},\"read_per_s\":"
        "null,\"written_per_s\":2048},\"network\":{\"received_per_s\":1,\"sent_per_s\":2},\"gpus\":%s}\n",
        time, gpus);
}

TEST(samples_of_a_node)
{
    static const char gpus[] = "[{\"index\":1,\"busy\":0.5,\"memory_used\":30,\"memory_total\":40,\"watts\":null},"
                               "{\"index\":0,\"busy\":1,\"memory_used\":20,\"memory_total\":40,\"watts\":-1e2}]";
    static const size_t pieces[] = {1, 7, 1 << 20};
    struct act_buf text = {0};

    add_sample(&text, 1000.5, gpus);
    add_sample(&text, 1010.5, gpus);
    act_buf_adds(&text, "not JSON\n{\"time\":\"now\"}\n[1]\n\n{\"time\":1015,\"cp");
    act_buf_addc(&text, '\n');
    add_sample(&text, 1020.5, "null");
    add_sample(&text, 1030, gpus);
    act_buf_adds(&text, "{\"time\":1040,\"node\":\"n1\",\"cpu\":{\"co"); /* cut */
    for (size_t i = 0; i < COUNT(pieces); i++) {
        struct samples *s = samples_new();
        for (size_t at = 0; at < text.len; at += pieces[i])
            samples_feed(s, text.data + at, text.len - at < pieces[i] ? text.len - at : pieces[i]);
        samples_end(s);
        assert_int_equal(samples_lines(s), 4);
        assert_int_equal(samples_bad(s), 4); /* one that is cut is none yet */
        assert_int_equal(samples_gpus(s), 2);
        assert_int_equal(samples_curve(s, SAMPLES_CPU_BUSY)->n, 4);
        assert_true(samples_curve(s, SAMPLES_CPU_BUSY)->v[1].x == 1010.5);
        assert_true(samples_curve(s, SAMPLES_CPU_BUSY)->v[1].y == 0.25);
        assert_true(samples_curve(s, SAMPLES_MEMORY)->v[3].y == 0.75);
        assert_true(samples_curve(s, SAMPLES_RUN_FULL)->v[0].y == 0.5);
        assert_int_equal(samples_curve(s, SAMPLES_DISK_FULL)->n, 0);
        assert_int_equal(samples_curve(s, SAMPLES_DISK_READ)->n, 0);
        assert_true(samples_curve(s, SAMPLES_DISK_WRITTEN)->v[0].y == 2048);
        assert_int_equal(samples_curve(s, SAMPLES_GPU_BUSY)->n, 3);
        assert_true(samples_curve(s, SAMPLES_GPU_BUSY + 1)->v[2].y == 0.5);
        assert_true(samples_curve(s, SAMPLES_GPU_MEMORY)->v[0].y == 0.5);
        assert_true(samples_curve(s, SAMPLES_GPU_MEMORY + 1)->v[0].y == 0.75);
        samples_free(s);
    }
    act_buf_release(&text);
}

TEST(samples_that_want_too_much)
{
    struct samples *s = samples_new();
    struct act_buf text = {0};

    act_buf_adds(&text, "{\"time\":1,\"gpus\":[");
    for (int i = 0; i < 200; i++)
        act_buf_addf(&text, "%s{\"index\":%d,\"busy\":0.5}", i ? "," : "", i * 1000 - 5000);
    act_buf_adds(&text, "],\"x\":{\"y\":[[[1,true,false,null,\"a\\\"b\"]]]}}\n");
    samples_feed(s, text.data, text.len);
    text.len = 0;
    for (int i = 0; i < 2 * SAMPLES_LINE; i++)
        act_buf_addc(&text, 'x');
    act_buf_adds(&text, "\n{\"time\":1e3,\"cpu\":{\"busy\":0.5}}\n{\"time\":-1,\"cpu\":{\"busy\":0.5}}\n");
    samples_feed(s, text.data, text.len);
    static const char nul[] = "{\"time\":1,\"\":[{\"index\":0\0,\"busy\":2}]}\n";
    samples_feed(s, nul, sizeof(nul) - 1);
    samples_end(s);
    assert_int_equal(samples_lines(s), 2);
    assert_int_equal(samples_bad(s), 3);
    assert_int_equal(samples_curve(s, SAMPLES_CPU_BUSY)->n, 1);
    samples_free(s);
    act_buf_release(&text);
}

TEST(samples_in_lines_for_people)
{
    static const char *const no_samples[] = {"", "node n1", "node n1, cpu 3 %, at noon", "cpu 3 % 2026-01-01T00:00:00Z",
                                             "node n1, cpu 3 %, at 1926-01-01T00:00:00Z"};
    struct samples *s = samples_new();
    char *node;

    assert_true(
        samples_take_text(s,
                          "node n1, cpu 35 %, memory 12.5/250.0 GiB, disk 100.0/1000.0 GiB, gpu 0 97 % 10.0/40.0 "
                          "GiB, gpu 1 - 20.0/40.0 GiB, gpu 2 50 % -, gpu 77 1 % 1/2 GiB, at 2026-01-01T00:00:00Z",
                          &node));
    assert_string_equal(node, "n1");
    free(node);
    assert_true(samples_curve(s, SAMPLES_CPU_BUSY)->v[0].x == 1767225600);
    assert_true(samples_curve(s, SAMPLES_CPU_BUSY)->v[0].y == 0.35);
    assert_true(samples_curve(s, SAMPLES_MEMORY)->v[0].y == 0.05);
    assert_true(samples_curve(s, SAMPLES_DISK_FULL)->v[0].y == 0.1);
    assert_true(samples_curve(s, SAMPLES_GPU_BUSY)->v[0].y == 0.97);
    assert_true(samples_curve(s, SAMPLES_GPU_MEMORY)->v[0].y == 0.25);
    assert_true(samples_curve(s, SAMPLES_GPU_MEMORY + 1)->v[0].y == 0.5);
    assert_int_equal(samples_curve(s, SAMPLES_GPU_BUSY + 1)->n, 0);
    assert_true(samples_curve(s, SAMPLES_GPU_BUSY + 2)->v[0].y == 0.5);
    assert_int_equal(samples_gpus(s), 3);
    assert_true(samples_take_text(s,
                                  "node a, cpu -, memory -, gpu -: nvidia-smi does not answer, at "
                                  "2026-01-01T00:30:00Z",
                                  &node));
    free(node);
    for (size_t i = 0; i < COUNT(no_samples); i++)
        assert_false(samples_take_text(s, no_samples[i], &node));
    assert_int_equal(samples_lines(s), 2);
    samples_free(s);
}

TEST_MAIN(NULL, NULL)
