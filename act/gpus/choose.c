/* choose.c - which of the free GPUs a run gets: those that are near one another. Pure. */
#include <stdlib.h>
#include <string.h>

#include "gpus/gpus.h"

/* Distances as gpus_take_topology() numbers them. */
enum { SAME_NUMA = 4, OTHER_NUMA = 6 };

static int distance(const struct gpu_list *list, size_t a, size_t b)
{
    const struct gpu *one = &list->v[a], *other = &list->v[b];
    size_t i = (size_t)one->index, k = (size_t)other->index;

    if (one->index == other->index)
        return 0;
    if (list->near && one->index >= 0 && other->index >= 0 && i < list->n_near && k < list->n_near)
        return list->near[i * list->n_near + k];
    return one->numa == other->numa ? SAME_NUMA : OTHER_NUMA;
}

static int64_t distance_to(const struct gpu_list *list, const bool *chosen, size_t from)
{
    int64_t sum = 0;

    for (size_t i = 0; i < list->n; i++)
        if (chosen[i])
            sum += distance(list, i, from);
    return sum;
}

/* The one that is nearest to those that are chosen; of several, the first. */
static size_t nearest(const struct gpu_list *list, const bool *can, const bool *chosen)
{
    size_t best = list->n;
    int64_t least = INT64_MAX;

    for (size_t i = 0; i < list->n; i++) {
        int64_t sum = can[i] && !chosen[i] ? distance_to(list, chosen, i) : INT64_MAX;
        if (sum < least) {
            least = sum;
            best = i;
        }
    }
    return best;
}

/* Goes from one to those near it. Returns the sum of all distances. */
static int64_t grow(const struct gpu_list *list, const bool *can, size_t from, size_t need, bool *out)
{
    int64_t sum = 0;

    memset(out, 0, list->n * sizeof(bool));
    out[from] = true;
    for (size_t n = 1; n < need; n++) {
        size_t next = nearest(list, can, out);
        sum += distance_to(list, out, next);
        out[next] = true;
    }
    return sum;
}

bool gpus_choose(const struct gpu_list *list, const bool *can, size_t need, bool *out)
{
    ACT_AUTOFREE bool *tried = act_calloc(list->n + 1, sizeof(bool));
    int64_t least = INT64_MAX;
    size_t n = 0;

    memset(out, 0, list->n * sizeof(bool));
    for (size_t i = 0; i < list->n; i++)
        n += can[i];
    if (n < need)
        return false;
    for (size_t i = 0; need > 0 && i < list->n; i++) {
        int64_t sum = can[i] ? grow(list, can, i, need, tried) : INT64_MAX;
        if (sum < least) {
            least = sum;
            memcpy(out, tried, list->n * sizeof(bool));
        }
    }
    return true;
}
