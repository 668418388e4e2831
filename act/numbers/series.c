#include "numbers/series.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/text.h"

static void note_value(struct series *s, double x, double y)
{
    s->low = s->count == 0 || y < s->low ? y : s->low;
    s->high = s->count == 0 || y > s->high ? y : s->high;
    s->last = (struct series_point){x, y};
    s->count++;
}

static bool is_in_range(const struct series *s, double x)
{
    return s->range.from >= s->range.to || (x >= s->range.from && x <= s->range.to);
}

void series_add(struct series *s, double x, double y)
{
    if (!isfinite(x))
        return;
    s->ended_y = y;
    if (!isfinite(y)) {
        s->odd++;
        if (is_in_range(s, x) && s->n_odd < SERIES_ODD)
            s->odd_x[s->n_odd++] = x;
        return;
    }
    note_value(s, x, y);
    if (!is_in_range(s, x))
        return;
    if (s->n == SERIES_MAX) {
        series_end(s);
        series_reduce(s, SERIES_MAX / 2);
    }
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 1;
        s->v = act_realloc(s->v, s->cap * sizeof(*s->v));
    }
    s->v[s->n++] = (struct series_point){x, y};
}

/* ---- order */

static bool is_sorted(const struct series *s)
{
    for (size_t i = 1; i < s->n; i++)
        if (s->v[i].x <= s->v[i - 1].x)
            return false;
    return true;
}

/* A stable merge sort: what came later stays behind what came before. */
static void sort(struct series_point *v, struct series_point *room, size_t n)
{
    size_t half = n / 2, a = 0, b = half;

    if (n < 2)
        return;
    sort(v, room, half);
    sort(v + half, room, n - half);
    for (size_t i = 0; i < n; i++)
        room[i] = b >= n || (a < half && v[a].x <= v[b].x) ? v[a++] : v[b++];
    for (size_t i = 0; i < n; i++)
        v[i] = room[i];
}

static int by_place(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

void series_end(struct series *s)
{
    size_t n = 0;

    qsort(s->odd_x, s->n_odd, sizeof(s->odd_x[0]), by_place);
    if (is_sorted(s))
        return;
    ACT_AUTOFREE struct series_point *room = act_calloc(s->n, sizeof(*room));
    sort(s->v, room, s->n);
    for (size_t i = 0; i < s->n; i++) {
        if (n > 0 && s->v[n - 1].x == s->v[i].x)
            n--;
        s->v[n++] = s->v[i];
    }
    s->n = n;
}

/* ---- fewer points */

static struct series_point mean(const struct series_point *v, size_t n)
{
    struct series_point sum = {0};

    for (size_t i = 0; i < n; i++) {
        sum.x += v[i].x / (double)n;
        sum.y += v[i].y / (double)n;
    }
    return sum;
}

static size_t series_largest(const struct series_point *v, size_t from, size_t to, struct series_point before,
                             struct series_point after)
{
    double best = -1;
    size_t found = from;

    for (size_t i = from; i < to; i++) {
        double area = fabs((before.x - after.x) * (v[i].y - before.y) - (before.x - v[i].x) * (after.y - before.y));
        if (area > best) {
            best = area;
            found = i;
        }
    }
    return found;
}

void series_reduce(struct series *s, size_t n)
{
    struct series_point *v = s->v;
    size_t kept = 1;

    if (n < 2 || s->n <= n)
        return;
    size_t inner = s->n - 2, stretches = n - 2;
    for (size_t i = 0; i < stretches; i++) {
        size_t from = 1 + i * inner / stretches, to = 1 + (i + 1) * inner / stretches;
        size_t next = i + 1 < stretches ? 1 + (i + 2) * inner / stretches : s->n;
        v[kept] = v[series_largest(v, from, to, v[kept - 1], mean(v + to, next - to))];
        kept++;
    }
    v[kept++] = v[s->n - 1];
    s->n = kept;
}

void series_release(struct series *s)
{
    free(s->v);
    *s = (struct series){0};
}
