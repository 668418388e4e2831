/* series.h - a curve: points that come one by one, in bounded memory, and fewer of them that look the same. */
#ifndef ACT_NUMBERS_SERIES_H
#define ACT_NUMBERS_SERIES_H

#include <stddef.h>
#include <stdint.h>

enum {
    SERIES_MAX = 32768, /* points that are kept; when there would be more, half as many stand for them */
    SERIES_ODD = 32,    /* places of values that are not finite */
};

struct series_point {
    double x, y;
};

/* A part of x, with both ends. {0}: all of it. */
struct series_range {
    double from, to;
};

/* {0} begins. */
struct series {
    struct series_point *v; /* in the order they came; after series_end() by x, each x once */
    size_t n, cap;
    struct series_range range; /* only points in it are kept; all are counted. Set before the first one */
    uint64_t count;            /* of all finite values that were added */
    double low, high;          /* the smallest and the largest of these */
    struct series_point last;  /* the one that was added last */
    uint64_t odd;              /* values that are not finite: NaN, infinite. They are no points */
    double odd_x[SERIES_ODD];  /* of the first ones in the range; after series_end() ascending */
    size_t n_odd;              /* of these */
    double ended_y;            /* the value that came last, finite or not; 0: none */
};

/* Adds a point, unless its x is not finite. */
void series_add(struct series *s, double x, double y);
/* Sorts by x. Of points with the same x the one that was added last stays. */
void series_end(struct series *s);
/* After series_end(): leaves at most n points (at least 2), so that the curve looks the same: of each stretch the one
 * that makes the largest triangle with its neighbours (LTTB; Steinarsson, Downsampling Time Series for Visual
 * Representation, 2013). The first and the last one stay. */
void series_reduce(struct series *s, size_t n);
void series_release(struct series *s);

#endif
