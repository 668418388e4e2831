/* svg.c - draws curves as SVG, alone and in a page. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/draw.h"

/* The lines of a curve are drawn in whole units of this box, which is then stretched. */
enum { BOX_WIDTH = 1000, BOX_HEIGHT = 400 };

/* The colours have a contrast of at least 3:1 to the background of their theme, and any two of a theme differ also for
 * who does not see red, green or blue: tests/e2e/test_pages.py. */
static const char style[] =
    ":root{color-scheme:light dark;--back:#fff;--text:#1c2430;--dim:#57606a;--line:#d0d7de;--box:#f6f8fa;"
    "--c0:#1207aa;--c1:#f26304;--c2:#41a469;--c3:#d156f2;--c4:#525301;--c5:#08719b;--c6:#c50557;--c7:#802dd5}"
    "@media(prefers-color-scheme:dark){:root{--back:#0d1117;--text:#e6edf3;--dim:#9198a1;--line:#3d444d;--box:#161b22;"
    "--c0:#7388fe;--c1:#fd830f;--c2:#1af7ad;--c3:#c40fa3;--c4:#f0f229;--c5:#29befa;--c6:#f3154e;--c7:#7c44ef}}"
    "@media print{:root{color-scheme:light;--back:#fff;--text:#000;--dim:#444;--line:#bbb;--box:#fff;"
    "--c0:#1207aa;--c1:#f26304;--c2:#41a469;--c3:#d156f2;--c4:#525301;--c5:#08719b;--c6:#c50557;--c7:#802dd5}}"
    ".plot path,.plot line{fill:none;vector-effect:non-scaling-stroke}"
    ".plot path{stroke-width:1.5;stroke-linejoin:round}.plot path.d{stroke-dasharray:5 3}"
    ".grid{stroke:var(--line);stroke-width:1}.mark{stroke:var(--text);stroke-width:1.5;stroke-dasharray:2 3}"
    ".c0{stroke:var(--c0)}.c1{stroke:var(--c1)}.c2{stroke:var(--c2)}.c3{stroke:var(--c3)}"
    ".c4{stroke:var(--c4)}.c5{stroke:var(--c5)}.c6{stroke:var(--c6)}.c7{stroke:var(--c7)}"
    "circle.c0{fill:var(--c0)}circle.c1{fill:var(--c1)}circle.c2{fill:var(--c2)}circle.c3{fill:var(--c3)}"
    "circle.c4{fill:var(--c4)}circle.c5{fill:var(--c5)}circle.c6{fill:var(--c6)}circle.c7{fill:var(--c7)}"
    "text{fill:var(--text);font:13px system-ui,sans-serif}";

const char *draw_style(void)
{
    return style;
}

/* ---- curves */

/* Returns where a value is in the box. */
static int scaled(double value, double low, double high, int size)
{
    double at = (value / 2 - low / 2) / (high / 2 - low / 2) * size; /* halves: the largest numbers do not overflow */

    return !(at > 0) ? 0 : at > size ? size : (int)lround(at);
}

struct pen {
    const struct draw_axes *axes;
    int x, y;
    size_t drawn;
};

static struct pen moved(const struct pen *pen, const struct series_point *p)
{
    const struct draw_axes *a = pen->axes;

    return (struct pen){.axes = a,
                        .drawn = pen->drawn,
                        .x = scaled(p->x, a->x_low, a->x_high, BOX_WIDTH),
                        .y = BOX_HEIGHT - scaled(p->y, a->y_low, a->y_high, BOX_HEIGHT)};
}

/* Appends a step as "x y", with the blank only where it is needed. */
static void add_step(struct act_buf *out, struct pen *pen, const struct pen *to)
{
    int dx = to->x - pen->x, dy = to->y - pen->y;

    if (pen->drawn == 0)
        act_buf_addf(out, "M%d %d", to->x, to->y);
    else if (dx || dy)
        act_buf_addf(out, "%s%d%s%d", pen->drawn == 1 ? "l" : dx < 0 ? "" : " ", dx, dy < 0 ? "" : " ", dy);
    else
        return;
    *pen = *to;
    pen->drawn++;
}

/* Ends a stroke; a point without neighbours becomes a dash. */
static void end_stroke(struct act_buf *out, struct pen *pen)
{
    if (pen->drawn == 1)
        act_buf_adds(out, "l4 0");
    pen->drawn = 0;
}

static void svg_add_path(struct act_buf *out, const struct draw_chart *chart, const struct draw_axes *axes, size_t i)
{
    const struct series *s = chart->curves[i].series;
    struct pen pen = {.axes = axes};

    if (s->n == 0)
        return;
    act_buf_addf(out, "<path class=\"c%zu%s\" d=\"", i % DRAW_COLOURS, i / DRAW_COLOURS % 2 ? " d" : "");
    for (size_t k = 0; k < s->n; k++) {
        if (k > 0 && chart->gap > 0 && s->v[k].x - s->v[k - 1].x > chart->gap)
            end_stroke(out, &pen);
        struct pen to = moved(&pen, &s->v[k]);
        add_step(out, &pen, &to);
    }
    end_stroke(out, &pen);
    act_buf_adds(out, "\"><title>");
    draw_escaped(out, chart->curves[i].label);
    act_buf_adds(out, "</title></path>");
}

static void add_marks(struct act_buf *out, const struct draw_chart *chart, const struct draw_axes *axes)
{
    for (size_t i = 0; i < chart->n_marks; i++) {
        const struct draw_mark *m = &chart->marks[i];
        if (m->x < axes->x_low || m->x > axes->x_high)
            continue;
        int x = scaled(m->x, axes->x_low, axes->x_high, BOX_WIDTH);
        act_buf_addf(out, "<line class=\"mark\" x1=\"%d\" x2=\"%d\" y1=\"0\" y2=\"%d\"><title>", x, x, BOX_HEIGHT);
        draw_escaped(out, m->label);
        act_buf_adds(out, "</title></line>");
    }
}

/* Appends the lines, marks and curves in the box. */
static void add_plot(struct act_buf *out, const struct draw_chart *chart, const struct draw_axes *axes)
{
    act_buf_adds(out, "<path class=\"grid\" d=\"");
    for (int i = 0; i <= axes->steps; i++)
        act_buf_addf(out, "M0 %dh%d", BOX_HEIGHT * i / axes->steps, BOX_WIDTH);
    act_buf_adds(out, "\"/>");
    add_marks(out, chart, axes);
    for (size_t i = 0; i < chart->n; i++)
        svg_add_path(out, chart, axes, i);
}

/* ---- texts */

static void y_text(const struct draw_chart *chart, const struct draw_axes *a, int i, char out[DRAW_NUMBER_TEXT])
{
    double part = (double)i / a->steps, value = a->y_low * (1 - part) + a->y_high * part;

    draw_number(fabs(value) < (a->y_high - a->y_low) * 1e-9 ? 0 : value, chart->y_unit, out);
}

static void x_text(const struct draw_chart *chart, const struct draw_axes *a, double part, char out[DRAW_NUMBER_TEXT])
{
    draw_number(draw_x_at(a, part) - chart->x_origin, chart->x_unit, out);
}

static void add_legend(struct act_buf *out, const struct draw_chart *chart)
{
    if (chart->n < 2)
        return;
    act_buf_adds(out, "<ul class=\"legend\">");
    for (size_t i = 0; i < chart->n; i++) {
        act_buf_addf(out,
                     "<li><svg class=\"plot\" viewBox=\"0 0 20 8\" aria-hidden=\"true\">"
                     "<path class=\"c%zu%s\" d=\"M0 4h20\"/></svg>",
                     i % DRAW_COLOURS, i / DRAW_COLOURS % 2 ? " d" : "");
        draw_escaped(out, chart->curves[i].label);
        act_buf_adds(out, "</li>");
    }
    act_buf_adds(out, "</ul>");
}

/* Appends a text for a reader who does not see the curves. */
static void add_summary(struct act_buf *out, const struct draw_chart *chart)
{
    char low[DRAW_NUMBER_TEXT], high[DRAW_NUMBER_TEXT], last[DRAW_NUMBER_TEXT];
    struct act_buf text = {0};

    act_buf_adds(&text, chart->title);
    for (size_t i = 0; i < chart->n; i++) {
        const struct series *s = chart->curves[i].series;
        draw_number(s->low, chart->y_unit, low);
        draw_number(s->high, chart->y_unit, high);
        draw_number(s->last.y, chart->y_unit, last);
        act_buf_addf(&text, "; %s: %s to %s, finally %s", chart->curves[i].label, low, high, last);
    }
    draw_escaped(out, text.data);
    act_buf_release(&text);
}

void draw_figure(const struct draw_chart *chart, struct act_buf *out)
{
    static const double parts[] = {0, 0.5, 1};
    char text[DRAW_NUMBER_TEXT] = "", before[DRAW_NUMBER_TEXT] = "";
    struct draw_axes axes;

    draw_axes(chart, &axes);
    act_buf_adds(out, "<figure><figcaption>");
    draw_escaped(out, chart->title);
    act_buf_adds(out, "</figcaption><div class=\"chart\"><div class=\"y\" aria-hidden=\"true\">");
    for (int i = axes.steps; i >= 0; i--) {
        y_text(chart, &axes, i, text);
        act_buf_addf(out, "<span>%s</span>", text);
    }
    act_buf_addf(out,
                 "</div><svg class=\"plot\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
                 "data-axes=\"%.12g %.12g %.12g %.12g\" role=\"img\" aria-label=\"",
                 BOX_WIDTH, BOX_HEIGHT, axes.x_low, axes.x_high, axes.y_low, axes.y_high);
    add_summary(out, chart);
    act_buf_adds(out, "\">");
    add_plot(out, chart, &axes);
    act_buf_adds(out, "</svg><div class=\"x\" aria-hidden=\"true\">");
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        x_text(chart, &axes, parts[i], text);
        act_buf_addf(out, "<span>%s%s%s</span>", i == 0 ? chart->x_name : "", i == 0 && *chart->x_name ? " " : "",
                     strcmp(text, before) == 0 ? "" : text); /* two seconds have no half of whole ones */
        memcpy(before, text, sizeof(before));
    }
    act_buf_adds(out, "</div></div>");
    add_legend(out, chart);
    act_buf_adds(out, "</figure>\n");
}

/* ---- alone */

enum { WIDTH = 800, HEIGHT = 400, LEFT = 90, TOP = 40, RIGHT = 20, BOTTOM = 60, ROW = 18 };

static void svg_add_text(struct act_buf *out, int x, int y, const char *anchor, const char *text)
{
    act_buf_addf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\">", x, y, anchor);
    draw_escaped(out, text);
    act_buf_adds(out, "</text>");
}

static void add_axis_texts(struct act_buf *out, const struct draw_chart *chart, const struct draw_axes *axes)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    int height = HEIGHT - TOP - BOTTOM, width = WIDTH - LEFT - RIGHT, baseline = 4;
    char text[DRAW_NUMBER_TEXT];

    for (int i = 0; i <= axes->steps; i++) {
        y_text(chart, axes, i, text);
        svg_add_text(out, LEFT - 8, HEIGHT - BOTTOM - height * i / axes->steps + baseline, "end", text);
    }
    for (int i = 0; i <= 2; i++) {
        x_text(chart, axes, i / 2.0, text);
        svg_add_text(out, LEFT + width * i / 2, HEIGHT - BOTTOM + ROW, anchors[i], text);
    }
    svg_add_text(out, LEFT + width / 2, HEIGHT - BOTTOM + 2 * ROW, "middle", chart->x_name);
}

void draw_svg(const struct draw_chart *chart, struct act_buf *out)
{
    int legend = chart->n > 1 ? (int)chart->n * ROW : 0;
    struct draw_axes axes;

    draw_axes(chart, &axes);
    act_buf_addf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\">"
        "<title>",
        WIDTH, HEIGHT + legend, WIDTH, HEIGHT + legend);
    add_summary(out, chart);
    act_buf_addf(
        out, "</title><style>%s.back{fill:var(--back)}</style><rect class=\"back\" width=\"100%%\" height=\"100%%\"/>",
        style);
    svg_add_text(out, LEFT, TOP / 2 + 4, "start", chart->title);
    add_axis_texts(out, chart, &axes);
    act_buf_addf(out,
                 "<svg class=\"plot\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
                 "preserveAspectRatio=\"none\">",
                 LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM, BOX_WIDTH, BOX_HEIGHT);
    add_plot(out, chart, &axes);
    act_buf_adds(out, "</svg>");
    for (size_t i = 0; chart->n > 1 && i < chart->n; i++) {
        int y = HEIGHT + (int)i * ROW;
        act_buf_addf(out, "<g class=\"plot\"><path class=\"c%zu%s\" d=\"M%d %dh20\"/></g>", i % DRAW_COLOURS,
                     i / DRAW_COLOURS % 2 ? " d" : "", LEFT, y - 4);
        svg_add_text(out, LEFT + 28, y, "start", chart->curves[i].label);
    }
    act_buf_adds(out, "</svg>\n");
}
