/* draw_test.c - curves as SVG, HTML and text, and text from outside as HTML. */
#include "unit/test.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "draw/draw.h"

static struct series curve_of(const double (*points)[2], size_t n)
{
    struct series s = {0};

    for (size_t i = 0; i < n; i++)
        series_add(&s, points[i][0], points[i][1]);
    series_end(&s);
    return s;
}
#define CURVE(...)                                                                                                     \
    curve_of((const double[][2]){__VA_ARGS__}, sizeof((const double[][2]){__VA_ARGS__}) / sizeof(double[2]))

/* A chart of one curve. */
static struct draw_chart chart_of(struct draw_curve *curve, const struct series *s)
{
    *curve = (struct draw_curve){.label = "a <b>", .series = s};
    return (struct draw_chart){.title = "t & u", .x_name = "step", .curves = curve, .n = 1};
}

TEST(text_from_outside_is_only_text)
{
    static const struct {
        const char *text, *wanted;
    } rows[] = {
        {"a\nb", "a\nb"},
        {"<script>\"&'", "&lt;script&gt;&quot;&amp;&#39;"},
        {"\033[31mred\a", "?[31mred?"},
        {"\xff\xc0\x80", "???"},
        {"\xe2\x80\xae"
         "exe",
         "?exe"},
        {"\xc3\xa4", "\xc3\xa4"},
        {"", ""},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct act_buf out = {0};
        draw_escaped(&out, rows[i].text);
        assert_string_equal(out.data ? out.data : "", rows[i].wanted);
        act_buf_release(&out);
    }
}

TEST(numbers_of_axes)
{
    char text[DRAW_NUMBER_TEXT];
    static const struct {
        double value;
        enum draw_unit unit;
        const char *wanted;
    } rows[] = {
        {0.25, DRAW_NUMBER, "0.25"},    {12345678, DRAW_NUMBER, "12345678"},
        {-1e-5, DRAW_NUMBER, "-1e-05"}, {DBL_MAX, DRAW_NUMBER, "1.7977e+308"},
        {0.5, DRAW_SHARE, "50 %"},      {2048, DRAW_BYTES, "2.0 KiB/s"},
        {-1, DRAW_BYTES, "0 B/s"},      {DBL_MAX, DRAW_BYTES, "0 B/s"},
        {90, DRAW_DURATION, "1m30s"},   {NAN, DRAW_DURATION, "0s"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        draw_number(rows[i].value, rows[i].unit, text);
        assert_string_equal(text, rows[i].wanted);
    }
}

TEST(ranges_are_round)
{
    struct series s = CURVE({0, 0.31}, {10, 1.9});
    struct draw_curve curve;
    struct draw_chart chart = chart_of(&curve, &s);
    struct draw_axes axes;

    draw_axes(&chart, &axes);
    assert_true(axes.x_low == 0 && axes.x_high == 10 && axes.y_low == 0 && axes.y_high == 2 && axes.steps == 4);
    chart.y_high = 1;
    draw_axes(&chart, &axes);
    assert_true(axes.y_low == 0 && axes.y_high == 1 && axes.steps == 4);
    series_release(&s);
}

/* A path has a point for each of the curve's: "M0 400l1000-400". */
TEST(labels_of_an_axis_differ)
{
    static const double highs[] = {0, 0.3, 1, 3, 5, 1000, 5e9};

    for (size_t i = 0; i < COUNT(highs); i++) {
        struct series s = CURVE({0, 0}, {1, highs[i]});
        struct draw_curve curve;
        struct draw_chart chart = chart_of(&curve, &s);
        struct draw_axes axes;
        char before[DRAW_NUMBER_TEXT] = "";
        chart.y_unit = DRAW_BYTES;
        draw_axes(&chart, &axes);
        for (int k = 0; k <= axes.steps; k++) {
            char text[DRAW_NUMBER_TEXT];
            draw_number(axes.y_low + (axes.y_high - axes.y_low) * k / axes.steps, DRAW_BYTES, text);
            assert_string_not_equal(text, before);
            memcpy(before, text, sizeof(before));
        }
        series_release(&s);
    }
}

TEST(steps_are_whole_numbers)
{
    static const struct {
        double low, high, part, wanted;
    } rows[] = {{1, 200, 0.5, 101}, {0, 3, 0.5, 2},      {7, 7, 0, 6},
                {7, 7, 1, 8},       {0.5, 1, 0.5, 0.75}, {2.5, 2.5, 0, 1.25}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct series s = CURVE({rows[i].low, 1}, {rows[i].high, 2});
        struct draw_curve curve;
        struct draw_chart chart = chart_of(&curve, &s);
        struct draw_axes axes;
        draw_axes(&chart, &axes);
        assert_true(draw_x_at(&axes, rows[i].part) == rows[i].wanted);
        series_release(&s);
    }
}

TEST(curves_of_any_numbers_are_drawn)
{
    struct series curves[] = {
        CURVE({0, 0}, {1, 1}),
        CURVE({5, 3}),
        CURVE({0, -DBL_MAX}, {1, DBL_MAX}),
        CURVE({-DBL_MAX, 1}, {DBL_MAX, 1}),
        CURVE({0, 1}, {1, 1 + DBL_EPSILON}),
        CURVE({0, DBL_MIN}, {1, 5e-324}),
        {0},
    };
    static const struct draw_text plain = {.columns = 1, .rows = 1, .plain = true},
                                  usual = {.columns = 80, .rows = 18, .coloured = true};

    for (size_t i = 0; i < COUNT(curves); i++)
        for (enum draw_unit unit = DRAW_NUMBER; unit <= DRAW_DURATION; unit++) {
            struct draw_curve curve;
            struct draw_chart chart = chart_of(&curve, &curves[i]);
            struct act_buf svg = {0}, html = {0}, text = {0};
            chart.y_unit = unit;
            draw_svg(&chart, &svg);
            draw_figure(&chart, &html);
            draw_text(&chart, &plain, &text);
            draw_text(&chart, &usual, &text);
            assert_contains(svg.data, "t &amp; u");
            assert_contains(html.data, "a &lt;b&gt;");
            assert_lacks(html.data, "<b>");
            assert_lacks(html.data, "style=");
            assert_lacks(svg.data, "\"nan");
            if (unit == DRAW_NUMBER) { /* a range may be wider than the largest number */
                assert_lacks(text.data, "inf");
                assert_lacks(html.data, "inf");
            }
            if (i == 0 && unit == DRAW_NUMBER)
                assert_contains(svg.data, "d=\"M0 400l1000-400\"");
            act_buf_release(&svg);
            act_buf_release(&html);
            act_buf_release(&text);
        }
    for (size_t i = 0; i < COUNT(curves); i++)
        series_release(&curves[i]);
}

TEST(a_gap_is_not_drawn_over)
{
    struct series s = CURVE({0, 0}, {1, 0}, {5, 0}, {9, 0}, {10, 0});
    struct draw_curve curve;
    struct draw_chart chart = chart_of(&curve, &s);
    struct act_buf html = {0};

    chart.gap = 2;
    chart.y_high = 1;
    draw_figure(&chart, &html);
    assert_contains(html.data, "d=\"M0 400l100 0M500 400l4 0M900 400l100 0\"");
    act_buf_release(&html);
    series_release(&s);
}

TEST(a_picture_has_marks_and_a_legend)
{
    static const struct draw_mark marks[] = {{5, "attempt 2"}, {50, "later"}};
    struct series one = CURVE({0, 1}, {10, 2}), two = CURVE({0, 3}, {10, 4});
    struct draw_curve curves[] = {{"one", &one}, {"two", &two}};
    struct draw_chart chart = {.title = "t", .x_name = "", .curves = curves, .n = 2, .marks = marks, .n_marks = 2};
    struct act_buf html = {0};

    draw_figure(&chart, &html);
    assert_contains(html.data, "class=\"mark\" x1=\"500\"");
    assert_contains(html.data, "attempt 2");
    assert_lacks(html.data, "later");
    assert_contains(html.data, "<ul class=\"legend\">");
    act_buf_release(&html);
    series_release(&one);
    series_release(&two);
}

TEST(a_curve_fits_into_a_line)
{
    static const struct {
        double points[6][2];
        size_t n, columns;
        bool plain;
        const char *text;
    } rows[] = {
        {{{0, 0}, {1, 7}}, 2, 8, true, "_#"},
        {{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 5}, {5, 7}}, 6, 8, true, "_.-~+#"},
        {{{0, 3}, {1, 3}, {2, 3}}, 3, 8, true, "___"},
        {{{0, 0}, {1, 9}, {2, 0}, {3, 0}, {4, 0}, {5, 0}}, 6, 3, true, "_#_"},
        {{{0, -DBL_MAX}, {1, DBL_MAX}}, 2, 8, true, "_#"},
        {{{0, 0}, {1, 7}}, 2, 8, false, "\u2581\u2588"},
        {{{0, 5}, {1, 7}}, 2, 1, true, "_"},
        {{{0, 0}}, 0, 8, true, ""},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct series s = curve_of(rows[i].points, rows[i].n);
        ACT_AUTO(act_buf) text = {0};
        draw_spark(&s, rows[i].columns, rows[i].plain, &text);
        assert_string_equal(text.len ? text.data : "", rows[i].text);
        series_release(&s);
    }
}

TEST_MAIN(NULL, NULL)
