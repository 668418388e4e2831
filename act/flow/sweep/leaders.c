/* leaders.c - see leaders.h. */
#include "flow/sweep/leaders.h"

#include <string.h>

#include "codec/json.h"
#include "flow/sweep/grid.h"

/* ---- which tags */

/* A key of the tags of some runs. */
struct leaders_key {
    char *name, *first; /* first: its value in the first run that has it */
    size_t n;           /* runs that have it */
    bool differs;
};

struct leaders_keys {
    struct leaders_key *v;
    size_t n;
};

static void leaders_note_tag(struct leaders_keys *keys, const char *name, const char *value)
{
    size_t i = 0;

    while (i < keys->n && strcmp(keys->v[i].name, name) != 0)
        i++;
    if (i == keys->n)
        ACT_PUSH(keys->v, keys->n, (struct leaders_key){.name = act_strdup(name), .first = act_strdup(value)});
    keys->v[i].n++;
    keys->v[i].differs = keys->v[i].differs || strcmp(keys->v[i].first, value) != 0;
}

static void leaders_note_tags(struct leaders_keys *keys, const struct flow_leader_row *row)
{
    CODEC_AUTOJSON json_t *tags = run_tags_parse(row->tags);
    const char *key;
    json_t *value;

    json_object_foreach(tags, key, value)
    {
        if (strcmp(key, FLOW_SWEEP_TAG) != 0 && json_is_string(value))
            leaders_note_tag(keys, key, json_string_value(value));
    }
}

static void leaders_take_parameters(struct flow_leaders *leaders)
{
    struct leaders_keys keys = {0};

    for (size_t i = 0; i < leaders->n; i++)
        leaders_note_tags(&keys, &leaders->v[i]);
    for (size_t i = 0; i < keys.n; i++) {
        struct leaders_key *key = &keys.v[i];
        if (key->differs || key->n < leaders->n || leaders->n == 1)
            act_strv_push(&leaders->parameters, key->name);
        free(key->name);
        free(key->first);
    }
    free(keys.v);
}

/* ---- the number */

static void take_curve(const struct series *s, enum flow_best best, struct flow_leader_row *row)
{
    if (s->n == 0)
        return;
    row->has_number = true;
    row->best = best == FLOW_LOWEST ? s->low : s->high;
    row->best_x = s->last.x;
    for (size_t i = s->n; i-- > 0;) /* where it was reached first, as far as points are kept */
        if (s->v[i].y == row->best)
            row->best_x = s->v[i].x;
    row->last = s->last.y;
    row->ends_odd = s->n_odd > 0 && s->odd_x[0] > s->last.x;
}

/* Sorts rows without the number last, and before them those that end in NaN. */
static int class_of(const struct flow_leader_row *row)
{
    return row->has_number ? row->ends_odd : 2;
}

static int leaders_as_added(const void *a, const void *b, void *arg)
{
    const struct flow_leader_row *x = a, *y = b;
    const struct flow_leaders *leaders = arg;
    int order = x->at < y->at ? -1 : x->at > y->at;

    return leaders->newest_first ? -order : order;
}

static int leaders_best_first(const void *a, const void *b, void *arg)
{
    const struct flow_leader_row *x = a, *y = b;
    const struct flow_leaders *leaders = arg;
    int sign = leaders->best == FLOW_LOWEST ? 1 : -1;

    if (class_of(x) != class_of(y))
        return class_of(x) - class_of(y);
    if (x->has_number && x->best != y->best)
        return x->best < y->best ? -sign : sign;
    return leaders_as_added(a, b, arg);
}

void flow_leaders_add(struct flow_leaders *leaders, const struct flow_run *run, struct numbers *numbers)
{
    const struct numbers_key *found = leaders->key && numbers ? numbers_find(numbers, leaders->key) : NULL;
    struct flow_leader_row row = {.id = act_strdup(run->row.id),
                                  .name = act_strdup(run->row.name),
                                  .tags = act_strdup(run->row.tags),
                                  .state = run->status.state,
                                  .created_unix_s = run->row.created_unix_s,
                                  .at = leaders->n};

    if (found) {
        take_curve(&found->series, leaders->best, &row);
        leaders->by = found->by;
    }
    ACT_PUSH(leaders->v, leaders->n, row);
}

void flow_leaders_end(struct flow_leaders *leaders)
{
    if (leaders->n == 0)
        return;
    qsort_r(leaders->v, leaders->n, sizeof(*leaders->v), leaders_as_added, leaders);
    leaders_take_parameters(leaders);
    if (leaders->key)
        qsort_r(leaders->v, leaders->n, sizeof(*leaders->v), leaders_best_first, leaders);
}

void flow_leaders_release(struct flow_leaders *leaders)
{
    for (size_t i = 0; i < leaders->n; i++) {
        free(leaders->v[i].id);
        free(leaders->v[i].name);
        free(leaders->v[i].tags);
    }
    free(leaders->v);
    act_strv_release(&leaders->parameters);
    *leaders = (struct flow_leaders){0};
}
