/* draw.h - draws curves as a part of an HTML page, as a picture (SVG) and as text for a terminal, and turns text from
 * outside into HTML that is nothing but text. Nothing here needs a script, an attribute "style", or anything from
 * elsewhere: a page with the sheet draw_style() works under "default-src 'none'; style-src <its hash>".
 */
#ifndef ACT_DRAW_DRAW_H
#define ACT_DRAW_DRAW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "numbers/series.h"

/* How numbers of an axis are written. */
enum draw_unit {
    DRAW_NUMBER,   /* 0.25 */
    DRAW_SHARE,    /* of 0 to 1: "25 %" */
    DRAW_BYTES,    /* per second: "2.0 MiB/s" */
    DRAW_DURATION, /* of seconds: "1h20m" */
};

enum { DRAW_COLOURS = 8, DRAW_NUMBER_TEXT = 40 };
/* Writes a number of an axis. */
void draw_number(double value, enum draw_unit unit, char out[DRAW_NUMBER_TEXT]);

struct draw_curve {
    const char *label;           /* any text */
    const struct series *series; /* sorted: series_end() */
};

/* Something that happened at an x. */
struct draw_mark {
    double x;
    const char *label;
};

struct draw_chart {
    const char *title;
    const char *x_name; /* "step" */
    const struct draw_curve *curves;
    size_t n;
    const struct draw_mark *marks;
    size_t n_marks;
    enum draw_unit x_unit, y_unit;
    double x_origin;      /* what is written as 0 */
    double x_low, x_high; /* both the same: as the curves need them */
    double y_low, y_high; /* both the same: as the curves need them, rounded outwards */
    double gap;           /* points farther apart than that are not joined; 0: all are. Only in pictures */
};

/* The ranges that are drawn, and the texts of the axes. */
struct draw_axes {
    double x_low, x_high, y_low, y_high;
    int steps;     /* of the y axis, all the same, 1 to 6 */
    bool is_empty; /* there is no point */
};
/* Chooses them for a chart. */
void draw_axes(const struct draw_chart *chart, struct draw_axes *out);
/* Returns what is written at a part, 0 to 1, of the x axis: where it counts steps, a whole number. */
double draw_x_at(const struct draw_axes *axes, double part);

/* Appends text from outside as HTML text or the value of an attribute in double quotes. Control characters, those that
 * change the direction of text and bytes that are not UTF-8 become '?'; line ends stay. */
void draw_escaped(struct act_buf *out, const char *text);

/* Returns the sheet for a figure: light or dark as the reader's system has it, light on paper. */
const char *draw_style(void);
/* Appends a <figure>, whose <svg> says the ranges of its axes, so that a script can read the values off its curves:
 * data-axes="X_LOW X_HIGH Y_LOW Y_HIGH". */
void draw_figure(const struct draw_chart *chart, struct act_buf *out);
/* Appends a picture of its own, with its sheet. */
void draw_svg(const struct draw_chart *chart, struct act_buf *out);
/* How a chart is drawn on a terminal. */
struct draw_text {
    int columns, rows;
    bool plain;    /* only ASCII, a mark for each curve, else braille */
    bool coloured; /* each curve in its colour, as "ESC [ 3N m"; without it several curves have marks, too */
};
/* Appends the lines of a chart for a terminal. */
void draw_text(const struct draw_chart *chart, const struct draw_text *how, struct act_buf *out);
/* Appends a curve in at most columns characters of one line, without axes, for a table. plain: only ASCII. */
void draw_spark(const struct series *series, size_t columns, bool plain, struct act_buf *out);

#endif
