/* leaders.c - see leaders.h. */
#include "flow/sweep/leaders.h"

#include <string.h>

#include "codec/json.h"
#include "flow/sweep/grid.h"

const char *flow_leader_value(const struct flow_leader_row *row, const char *parameter)
{
    return codec_json_str(row->tags, parameter, NULL);
}

/* ---- which tags */

static bool tells_apart(const struct flow_leaders *leaders, const char *key)
{
    const char *first = flow_leader_value(&leaders->v[0], key);

    for (size_t i = 1; i < leaders->n; i++)
        if (!act_streq(flow_leader_value(&leaders->v[i], key), first))
            return true;
    return leaders->n == 1;
}

static void take_parameters(struct flow_leaders *leaders)
{
    ACT_AUTO(act_strv) keys = {0};
    const char *key;
    json_t *value;

    for (size_t i = 0; i < leaders->n; i++)
        json_object_foreach(leaders->v[i].tags, key, value)
        {
            if (strcmp(key, FLOW_SWEEP_TAG) != 0 && !act_strv_has(&keys, key))
                act_strv_push(&keys, key);
        }
    for (size_t i = 0; i < keys.n; i++)
        if (tells_apart(leaders, keys.v[i]))
            act_strv_push(&leaders->parameters, keys.v[i]);
}

/* ---- the number */

static void take_curve(const struct series *s, enum flow_best best, struct flow_leader_row *row)
{
    if (s->n == 0)
        return;
    row->curve = s;
    row->best = best == FLOW_LOWEST ? s->low : s->high;
    row->best_x = s->last.x;
    for (size_t i = s->n; i-- > 0;) /* where it was reached first, as far as points are kept */
        if (s->v[i].y == row->best)
            row->best_x = s->v[i].x;
    row->ends_odd = s->n_odd > 0 && s->odd_x[0] > s->last.x;
}

/* Sorts rows without the number last, and before them those that end in NaN. */
static int class_of(const struct flow_leader_row *row)
{
    return row->curve ? row->ends_odd : 2;
}

static int leaders_compare(const void *a, const void *b, void *arg)
{
    const struct flow_leader_row *x = a, *y = b;
    const enum flow_best *best = arg;
    int sign = *best == FLOW_LOWEST ? 1 : -1;

    if (class_of(x) != class_of(y))
        return class_of(x) - class_of(y);
    if (x->curve && x->best != y->best)
        return x->best < y->best ? -sign : sign;
    return x->run < y->run ? -1 : x->run > y->run; /* as they were */
}

void flow_leaders(const struct flow_runs *runs, struct numbers *const *numbers, const char *key, enum flow_best best,
                  struct flow_leaders *out)
{
    *out = (struct flow_leaders){.v = act_calloc(runs->n + 1, sizeof(*out->v)), .n = runs->n};
    for (size_t i = 0; i < runs->n; i++) {
        struct numbers_key *found = key && numbers[i] ? numbers_find(numbers[i], key) : NULL;
        out->v[i] = (struct flow_leader_row){.run = &runs->v[i], .tags = run_tags_parse(runs->v[i].row.tags)};
        if (found) {
            take_curve(&found->series, best, &out->v[i]);
            out->by = found->by;
        }
    }
    if (out->n > 0)
        take_parameters(out);
    if (key && out->n > 0)
        qsort_r(out->v, out->n, sizeof(*out->v), leaders_compare, &best);
}

void flow_leaders_release(struct flow_leaders *leaders)
{
    for (size_t i = 0; i < leaders->n; i++)
        json_decref(leaders->v[i].tags);
    free(leaders->v);
    act_strv_release(&leaders->parameters);
    *leaders = (struct flow_leaders){0};
}
