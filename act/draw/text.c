/* text.c - draws curves on a terminal: a character of braille is two dots wide and four high. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/terminal.h"
#include "draw/draw.h"

enum { DOTS_X = 2, DOTS_Y = 4, LABEL = 11, LEAST_COLUMNS = 10 };

/* The dots of a chart, and which curve each cell belongs to. */
struct canvas {
    int columns, rows;
    uint8_t *dots;
    unsigned char *curve; /* 0: none, else one more than its number */
};

static void set_dot(struct canvas *c, int x, int y, size_t curve)
{
    /* Unicode 15, block 2800: the bits of the left and the right column, from the top */
    static const uint8_t bits[DOTS_Y][DOTS_X] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    int cell = y / DOTS_Y * c->columns + x / DOTS_X;

    c->dots[cell] |= bits[y % DOTS_Y][x % DOTS_X];
    c->curve[cell] = (unsigned char)(curve % DRAW_COLOURS + 1);
}

static int dot(double value, double low, double high, int dots)
{
    double at = (value / 2 - low / 2) / (high / 2 - low / 2) * (dots - 1);

    return !(at > 0) ? 0 : at > dots - 1 ? dots - 1 : (int)lround(at);
}

static void draw_line(struct canvas *c, int x, int y, int to_x, int to_y, size_t curve)
{
    int steps = abs(to_x - x) > abs(to_y - y) ? abs(to_x - x) : abs(to_y - y);

    for (int i = 0; i <= steps; i++)
        set_dot(c, x + (to_x - x) * i / (steps ? steps : 1), y + (to_y - y) * i / (steps ? steps : 1), curve);
}

static void draw_curve(struct canvas *c, const struct draw_axes *axes, const struct series *s, size_t curve)
{
    int width = c->columns * DOTS_X, height = c->rows * DOTS_Y, x = 0, y = 0;

    for (size_t i = 0; i < s->n; i++) {
        int to_x = dot(s->v[i].x, axes->x_low, axes->x_high, width);
        int to_y = height - 1 - dot(s->v[i].y, axes->y_low, axes->y_high, height);
        draw_line(c, i ? x : to_x, i ? y : to_y, to_x, to_y, curve);
        x = to_x;
        y = to_y;
    }
}

static void draw_text_add_cell(struct act_buf *out, const struct canvas *c, const struct draw_text *how, int cell)
{
    static const char marks[] = "*+x#o%@&";
    unsigned char curve = c->curve[cell];

    if (curve == 0) {
        act_buf_addc(out, ' ');
        return;
    }
    if (how->coloured)
        act_buf_addf(out, "\033[3%dm", 1 + (curve + 4) % 6);
    if (how->plain)
        act_buf_addc(out, marks[curve - 1]);
    else
        act_buf_addf(out, "\xe2%c%c", 0xa0 | c->dots[cell] >> 6, 0x80 | (c->dots[cell] & 0x3f));
    if (how->coloured)
        act_buf_adds(out, "\033[0m");
}

/* Appends the label of a row, if a step of the axis is there. */
static void add_label(struct act_buf *out, const struct draw_chart *chart, const struct draw_axes *axes, int row,
                      int rows)
{
    char text[DRAW_NUMBER_TEXT] = "";

    for (int i = 0; i <= axes->steps && rows > 1; i++) {
        double part = (double)i / axes->steps;
        if ((int)lround((rows - 1) * (1 - part)) == row)
            draw_number(axes->y_low * (1 - part) + axes->y_high * part, chart->y_unit, text);
    }
    act_buf_addf(out, "%*.*s %s", LABEL - 2, LABEL - 2, text, *text ? "|" : ":");
}

static void draw_text_add_rows(struct act_buf *out, const struct draw_chart *chart, const struct draw_axes *axes,
                               const struct canvas *c, const struct draw_text *how)
{
    for (int row = 0; row < c->rows; row++) {
        add_label(out, chart, axes, row, c->rows);
        for (int column = 0; column < c->columns; column++)
            draw_text_add_cell(out, c, how, row * c->columns + column);
        while (out->data[out->len - 1] == ' ')
            out->data[--out->len] = '\0';
        act_buf_addc(out, '\n');
    }
}

static void add_x(struct act_buf *out, const struct draw_chart *chart, const struct draw_axes *axes, int columns)
{
    char low[DRAW_NUMBER_TEXT], high[DRAW_NUMBER_TEXT];

    draw_number(axes->x_low - chart->x_origin, chart->x_unit, low);
    draw_number(axes->x_high - chart->x_origin, chart->x_unit, high);
    int rest = columns - (int)strlen(low);
    act_buf_addf(out, "%*s%s%*s\n%*s%s\n", LABEL, "", low, rest > 0 ? rest : 1, high, LABEL, "", chart->x_name);
}

static void add_names(struct act_buf *out, const struct draw_chart *chart, const struct draw_text *how)
{
    uint8_t full = 0xff;

    for (size_t i = 0; i < chart->n; i++) {
        unsigned char curve = (unsigned char)(i % DRAW_COLOURS + 1);
        struct canvas key = {.dots = &full, .curve = &curve};
        const struct series *s = chart->curves[i].series;
        char low[DRAW_NUMBER_TEXT], high[DRAW_NUMBER_TEXT], last[DRAW_NUMBER_TEXT];
        draw_number(s->low, chart->y_unit, low);
        draw_number(s->high, chart->y_unit, high);
        draw_number(s->last.y, chart->y_unit, last);
        act_buf_addf(out, "%*s", LABEL, "");
        draw_text_add_cell(out, &key, how, 0);
        act_buf_addf(out, " %s: %s to %s, finally %s", chart->curves[i].label, low, high, last);
        if (s->odd > 0)
            act_buf_addf(out, "; %llu not finite, the first at %.10g", (unsigned long long)s->odd, s->odd_x[0]);
        act_buf_addc(out, '\n');
    }
}

void draw_text(const struct draw_chart *chart, const struct draw_text *wanted, struct act_buf *out)
{
    struct canvas c = {.rows = wanted->rows, .columns = wanted->columns - LABEL};
    struct draw_text told_apart = *wanted, *how = &told_apart;
    struct draw_axes axes;

    if (c.columns < LEAST_COLUMNS)
        c.columns = LEAST_COLUMNS;
    ACT_AUTOFREE uint8_t *dots = act_calloc((size_t)c.rows, (size_t)c.columns);
    ACT_AUTOFREE unsigned char *curve = act_calloc((size_t)c.rows, (size_t)c.columns);
    c.dots = dots;
    c.curve = curve;
    draw_axes(chart, &axes);
    how->plain = wanted->plain || (!wanted->coloured && chart->n > 1);
    for (size_t i = 0; i < chart->n; i++)
        draw_curve(&c, &axes, chart->curves[i].series, i);
    act_buf_addf(out, "%*s%s\n", LABEL, "", chart->title);
    draw_text_add_rows(out, chart, &axes, &c, how);
    add_x(out, chart, &axes, c.columns);
    add_names(out, chart, how);
}

void draw_spark(const struct series *series, size_t columns, bool plain, struct act_buf *out)
{
    static const char *const blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char *const marks[] = {"_", ".", "-", "~", "=", "+", "*", "#"};
    enum { LEVELS = sizeof(blocks) / sizeof(blocks[0]) };
    struct series s = {.v = act_calloc(series->n + 1, sizeof(*s.v)), .n = series->n};

    if (series->n > 0)
        memcpy(s.v, series->v, series->n * sizeof(*s.v));
    series_reduce(&s, columns);
    size_t first = s.n > columns ? s.n - columns : 0;
    double low = first < s.n ? s.v[first].y : 0, high = low;
    for (size_t i = first; i < s.n; i++) {
        low = fmin(low, s.v[i].y);
        high = fmax(high, s.v[i].y);
    }
    for (size_t i = first; i < s.n; i++)
        act_buf_adds(out, (plain ? marks : blocks)[low < high ? dot(s.v[i].y, low, high, LEVELS) : 0]);
    series_release(&s);
}
