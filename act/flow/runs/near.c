/* near.c - what may have been meant by a word that names no run: the names and tags of the runs that are known here. */
#include <string.h>

#include "codec/json.h"
#include "flow/flow_internal.h"
#include "flow/runs/runs.h"

enum { NEAR_RUNS = 1000 }; /* that are looked at, the newest */

static void near_add(struct act_strv *out, const char *text)
{
    if (text && !act_strv_has(out, text))
        act_strv_push(out, text);
}

void flow_known_labels(struct flow *flow, struct act_strv *names, struct act_strv *tags)
{
    struct flow_table table = {.max = NEAR_RUNS, .as_known = true};
    ACT_AUTO(flow_runs) runs = {0};
    struct act_error ignored;
    const char *key;
    json_t *value;

    if (flow_list_runs(flow, &table, &runs, &ignored) < 0)
        return;
    for (size_t i = 0; i < runs.n; i++) {
        CODEC_AUTOJSON json_t *its = run_tags_parse(runs.v[i].row.tags);
        near_add(names, runs.v[i].row.name);
        json_object_foreach(its, key, value)
        {
            ACT_AUTOFREE char *tag = act_sprintf("%s=%s", key, json_string_value(value));
            near_add(tags, tag);
        }
    }
}

/* Returns the first tag with this value; NULL: there is none. */
static const char *near_tag_of(const char *value, const struct act_strv *tags)
{
    for (size_t i = 0; i < tags->n; i++)
        if (act_streq(strchr(tags->v[i], '=') + 1, value))
            return tags->v[i];
    return NULL;
}

/* Returns the first name of a run of the sweep that word is the name of; NULL: it is none. */
static const char *near_in_sweep(const char *word, const struct act_strv *names)
{
    size_t len = strlen(word);

    for (size_t i = names->n; i-- > 0;)
        if (act_starts_with(names->v[i], word) && names->v[i][len] == '.')
            return names->v[i];
    return NULL;
}

char *flow_near_run(struct flow *flow, const char *word)
{
    ACT_AUTO(act_strv) names = {0};
    ACT_AUTO(act_strv) tags = {0};

    flow_known_labels(flow, &names, &tags);
    if (act_strv_has(&names, word))
        return act_strdup("; the runs of that name have ended");
    const char *tag = act_strv_has(&tags, word) ? word : near_tag_of(word, &tags);
    const char *point = near_in_sweep(word, &names);
    if (point)
        return act_sprintf("; it is a sweep: name one of its runs, such as '%s'; 'a q --tag sweep=%s' lists them",
                           point, word);
    const char *near = names.n ? act_nearest(word, (const char *const *)names.v) : NULL;
    if (tag)
        return act_sprintf("; it is a tag: 'a q --tag %s' lists the runs with it", tag);
    return near ? act_sprintf("; did you mean '%s'? 'a q' lists the runs", near) : act_strdup("; 'a q' lists the runs");
}
