/* axis.c - chooses the range that is drawn, and writes its numbers. */
#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "draw/draw.h"

void draw_number(double value, enum draw_unit unit, char out[DRAW_NUMBER_TEXT])
{
    char text[ACT_UNIT_TEXT];

    switch (unit) {
    case DRAW_NUMBER:
        snprintf(out, DRAW_NUMBER_TEXT,
                 fabs(value) >= 1e4 && fabs(value) < 1e9 && value == floor(value) ? "%.0f" : "%.5g", value);
        return;
    case DRAW_SHARE:
        snprintf(out, DRAW_NUMBER_TEXT, "%.3g %%", value * 100);
        return;
    case DRAW_BYTES:
        act_size_to_text(value > 0 && value < 1e18 ? (uint64_t)value : 0, text);
        snprintf(out, DRAW_NUMBER_TEXT, "%s/s", text);
        return;
    case DRAW_DURATION:
        act_duration_to_text(value > 0 && value < 1e15 ? (int64_t)value : 0, text);
        snprintf(out, DRAW_NUMBER_TEXT, "%s", text);
        return;
    }
}

/* Tells whether x may be the number of a step. */
static bool axis_counts(double x)
{
    return x == floor(x) && fabs(x) < 1e15;
}

double draw_x_at(const struct draw_axes *axes, double part)
{
    double value = axes->x_low * (1 - part) + axes->x_high * part;

    return axis_counts(axes->x_low) && axis_counts(axes->x_high) ? round(value) : value;
}

static void find_ranges(const struct draw_chart *chart, struct draw_axes *out)
{
    *out = (struct draw_axes){.is_empty = true};
    for (size_t i = 0; i < chart->n; i++) {
        const struct series *s = chart->curves[i].series;
        if (s->n == 0)
            continue;
        double first = s->v[0].x, last = s->v[s->n - 1].x;
        out->x_low = out->is_empty || first < out->x_low ? first : out->x_low;
        out->x_high = out->is_empty || last > out->x_high ? last : out->x_high;
        out->y_low = out->is_empty || s->low < out->y_low ? s->low : out->y_low;
        out->y_high = out->is_empty || s->high > out->y_high ? s->high : out->y_high;
        out->is_empty = false;
    }
}

/* Returns 1, 2, 2.5 or 5 times a power of ten or, for bytes, of two. */
static double nice_step(double range, enum draw_unit unit)
{
    enum { STEPS = 4 };
    static const double nice[] = {1, 2, 2.5, 5, 10};
    double raw = range / STEPS, power;

    if (unit == DRAW_BYTES)
        return raw > 1 ? exp2(ceil(log2(raw))) : 1;
    power = pow(10, floor(log10(raw)));
    for (size_t i = 0; i < sizeof(nice) / sizeof(nice[0]); i++)
        if (nice[i] * power >= raw * (1 - 1e-9))
            return nice[i] * power;
    return 10 * power;
}

/* Makes room around a single value. by: on each side; 0: as much as it is itself. */
static void widen(double *low, double *high, double by)
{
    by = by > 0 ? by : *low == 0 ? 1 : fabs(*low) / 2;

    if (*high > *low)
        return;
    *low -= by;
    *high += by;
}

static void round_outwards(struct draw_axes *axes, enum draw_unit unit)
{
    enum { MOST = 6, BYTES_LEAST = 4 /* so that each step is at least one */ };

    if (unit == DRAW_BYTES) {
        axes->y_low = 0;
        axes->y_high = fmax(axes->y_high, BYTES_LEAST);
    }
    widen(&axes->y_low, &axes->y_high, 0);
    double step = nice_step(axes->y_high - axes->y_low, unit);
    double low = floor(axes->y_low / step * (1 + 1e-12)) * step, high = ceil(axes->y_high / step * (1 - 1e-12)) * step;
    double steps = round((high - low) / step);

    axes->steps = 1;
    if (!isfinite(step) || step <= 0 || !isfinite(high - low) || low > axes->y_low + step || steps < 1 || steps > MOST)
        return; /* numbers that are too large, or too close to each other, stay as they are */
    axes->y_low = low;
    axes->y_high = high;
    axes->steps = (int)steps;
}

void draw_axes(const struct draw_chart *chart, struct draw_axes *out)
{
    enum { FIXED_STEPS = 4 };

    find_ranges(chart, out);
    if (chart->x_low < chart->x_high) {
        out->x_low = chart->x_low;
        out->x_high = chart->x_high;
    }
    widen(&out->x_low, &out->x_high, axis_counts(out->x_low) ? 1 : 0);
    if (chart->y_low < chart->y_high) {
        out->y_low = chart->y_low;
        out->y_high = chart->y_high;
        out->steps = FIXED_STEPS;
    } else {
        round_outwards(out, chart->y_unit);
    }
}
