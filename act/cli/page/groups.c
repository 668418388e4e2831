#include "cli/page/groups.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "cli/print/print.h"
#include "cli/runs/runs.h"
#include "codec/json.h"
#include "flow/sweep/grid.h"

enum {
    DAY_TEXT = 10, /* of "2026-11-29 12:34:56" */
    GROUPS_STATES = RUN_UNKNOWN + 1,
};

struct page_group {
    char *name; /* a sweep, a day or the value of a tag */
    size_t runs, states[GROUPS_STATES];
    int64_t gpus, created_unix_s; /* of those that run; of the youngest */
    char *cluster, *stem;         /* of all of them; NULL: they differ, or have none */
    bool is_open, is_shown;       /* shown: it has a line on the page */
};

/* ---- which value is better */

static bool groups_is_among(const char *word, size_t len, const char *const *words, size_t n, bool may_go_on)
{
    for (size_t i = 0; i < n; i++) {
        size_t n_word = strlen(words[i]);
        if (len >= n_word && strncasecmp(word, words[i], n_word) == 0 && (len == n_word || may_go_on))
            return true;
    }
    return false;
}

#define GROUPS_AMONG(word, len, words, may_go_on)                                                                      \
    groups_is_among(word, len, words, sizeof(words) / sizeof((words)[0]), may_go_on)

/* Tells whether a part of a name says that more is better. */
static bool groups_is_high(const char *word, size_t len)
{
    static const char *const whole[] = {"acc", "auc", "bleu", "f1", "iou", "map", "mrr", "psnr"};
    static const char *const begun[] = {"accuracy", "precision", "recall", "reward", "rouge", "score", "throughput"};

    return GROUPS_AMONG(word, len, whole, false) || GROUPS_AMONG(word, len, begun, true);
}

/* Tells whether a name has "lr" or "learning rate" as a word. */
static bool groups_is_setting(const char *key)
{
    static const char *const settings[] = {"learning_rate", "learning-rate", "learning rate", "learningrate", "lr"};

    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        for (const char *at = key; (at = strcasestr(at, settings[i])); at++)
            if ((at == key || !isalpha((unsigned char)at[-1])) && !isalpha((unsigned char)at[strlen(settings[i])]))
                return true;
    return false;
}

enum page_better page_better(const char *key)
{
    if (groups_is_setting(key))
        return PAGE_NONE_BEST;
    if (strcasestr(key, "per_s"))
        return PAGE_HIGH_BEST;
    for (const char *at = key; *at;) {
        size_t len = 0;
        while (isalnum((unsigned char)at[len]))
            len++;
        if (groups_is_high(at, len))
            return PAGE_HIGH_BEST;
        at += len > 0 ? len : 1;
    }
    return PAGE_LOW_BEST;
}

json_t *page_better_json(const char *key)
{
    static const char *const names[] = {[PAGE_LOW_BEST] = "low", [PAGE_HIGH_BEST] = "high"};

    return cli_text_json(names[page_better(key)]);
}

/* ---- the groups */

bool page_groups_read(const char *text, struct page_groups *out)
{
    static const char tag[] = "tag:";
    bool is_tag = act_starts_with(text, tag) && text[strlen(tag)];

    *out = (struct page_groups){.tag = is_tag ? text + strlen(tag) : NULL,
                                .by_day = strcmp(text, "day") == 0,
                                .is_of_sweeps = strcmp(text, FLOW_SWEEP_TAG) == 0};
    if (out->is_of_sweeps)
        out->tag = FLOW_SWEEP_TAG;
    return out->tag || out->by_day;
}

void page_groups_release(struct page_groups *groups)
{
    for (size_t i = 0; i < groups->n; i++) {
        free(groups->v[i].name);
        free(groups->v[i].cluster);
        free(groups->v[i].stem);
    }
    free(groups->v);
    json_decref(groups->places);
    *groups = (struct page_groups){0};
}

/* Returns the name of the group of a run, a new string; NULL: it is in none. */
static char *groups_name(const struct page_groups *groups, const struct ledger_run *row)
{
    char created[ACT_TIME_TEXT];

    if (groups->by_day) {
        act_time_to_local(row->created_unix_s, created);
        return act_strndup(created, DAY_TEXT);
    }
    if (!groups->tag)
        return NULL;
    CODEC_AUTOJSON json_t *tags = row->tags && strstr(row->tags, groups->tag) ? run_tags_parse(row->tags) : NULL;
    return codec_json_strdup(tags, groups->tag);
}

/* Returns what the names of a sweep's runs have before ".1", a new string; NULL: this one has no such name. */
static char *groups_stem(const char *name)
{
    const char *dot = name ? strrchr(name, '.') : NULL;

    if (!dot || dot == name || !dot[1] || strspn(dot + 1, "0123456789") != strlen(dot + 1))
        return NULL;
    return act_strndup(name, (size_t)(dot - name));
}

/* Returns the place of the group of this name, which is made if there is none. */
static size_t groups_find(struct page_groups *groups, const char *name)
{
    json_t *place;

    groups->places = groups->places ? groups->places : json_object();
    place = json_object_get(groups->places, name);
    if (place)
        return (size_t)json_integer_value(place);
    struct page_group group = {.name = act_strdup(name), .is_open = groups->open && act_strv_has(groups->open, name)};
    ACT_PUSH(groups->v, groups->n, group);
    json_object_set_new(groups->places, name, json_integer((json_int_t)groups->n - 1));
    return groups->n - 1;
}

/* Keeps a text as long as all runs have the same one. */
static void groups_join(char **text, const char *more, bool is_first)
{
    if (is_first)
        *text = act_strdup(more);
    else if (!act_streq(*text, more))
        act_str_replace(text, NULL);
}

static void groups_add(struct page_group *group, const struct flow_run *run)
{
    ACT_AUTOFREE char *stem = groups_stem(run->row.name);

    groups_join(&group->cluster, run->row.cluster, group->runs == 0);
    groups_join(&group->stem, stem, group->runs == 0);
    group->runs++;
    group->states[run->status.state]++;
    group->gpus += run->status.state == RUN_RUNNING ? cli_gpus(run) : 0;
    if (run->row.created_unix_s > group->created_unix_s)
        group->created_unix_s = run->row.created_unix_s;
}

bool page_groups_take(struct page_groups *groups, struct page_row *row)
{
    ACT_AUTOFREE char *name = groups_name(groups, &row->run.row);
    size_t place = name ? groups_find(groups, name) : 0;
    struct page_group *group = name ? &groups->v[place] : NULL;
    bool is_line = !group || group->runs == 0 || group->is_open;

    row->group = group ? place + 1 : 0;
    row->is_line = is_line && groups->lines >= groups->first && groups->lines - groups->first < groups->max;
    groups->lines += is_line;
    groups->runs++;
    if (!group)
        return row->is_line;
    groups_add(group, &row->run);
    group->is_shown = group->is_shown || row->is_line;
    return group->is_shown || group->is_open;
}

const char *page_groups_of(const struct page_groups *groups, const struct page_row *row)
{
    const struct page_group *group = row->group ? &groups->v[row->group - 1] : NULL;

    return group && group->runs > 1 ? group->name : NULL;
}

/* ---- the best of a group */

/* The best run of a group by a number. */
struct groups_best {
    const struct page_row *row; /* NULL: none */
    bool is_set;                /* the number is a tag of some: it was set rather than found */
};

static const json_t *groups_last(const struct page_row *row, const char *key)
{
    const json_t *last = row ? json_array_get(json_object_get(json_object_get(row->note, "numbers"), key), 0) : NULL;

    return json_is_number(last) ? last : NULL;
}

static bool groups_has_tag(const struct ledger_run *row, const char *key)
{
    CODEC_AUTOJSON json_t *tags = row->tags && strstr(row->tags, key) ? run_tags_parse(row->tags) : NULL;

    return json_object_get(tags, key) != NULL;
}

/* Looks whether a row is better by a number than the best one until now. */
static void groups_compare(const struct page_row *row, const char *key, enum page_better better,
                           struct groups_best *best)
{
    const json_t *last = groups_last(row, key), *before = groups_last(best->row, key);

    if (better == PAGE_NONE_BEST || !last)
        return;
    best->is_set = best->is_set || groups_has_tag(&row->run.row, key);
    double value = json_number_value(last), least = json_number_value(before);
    if (!before || (better == PAGE_HIGH_BEST ? value > least : value < least))
        best->row = row;
}

/* Returns the best of each group by each of the keys, one group after the other. */
static struct groups_best *groups_find_best(const struct page_groups *groups, const struct page_rows *rows,
                                            const struct act_strv *keys)
{
    struct groups_best *best = act_calloc(groups->n * keys->n + 1, sizeof(*best));
    ACT_AUTOFREE enum page_better *better = act_calloc(keys->n + 1, sizeof(*better));

    for (size_t k = 0; k < keys->n; k++)
        better[k] = page_better(keys->v[k]);
    for (size_t i = 0; i < rows->n; i++)
        for (size_t k = 0; rows->v[i].group && k < keys->n; k++)
            groups_compare(&rows->v[i], keys->v[k], better[k], &best[(rows->v[i].group - 1) * keys->n + k]);
    return best;
}

static json_t *groups_best_json(const struct groups_best *best, const struct act_strv *keys)
{
    json_t *json = json_object();

    for (size_t k = 0; k < keys->n; k++) {
        const struct ledger_run *run = best[k].row && !best[k].is_set ? &best[k].row->run.row : NULL;
        if (run)
            json_object_set_new(json, keys->v[k],
                                json_pack("{s:o,s:o,s:O}", "id", cli_text_json(run->id), "name",
                                          cli_text_json(run->name), "value", groups_last(best[k].row, keys->v[k])));
    }
    return json;
}

/* ---- groups as data */

static json_t *groups_states_json(const struct page_group *group)
{
    json_t *json = json_object();

    for (int i = 0; i < GROUPS_STATES; i++)
        if (group->states[i])
            json_object_set_new(json, run_state_name((enum run_state)i), json_integer((json_int_t)group->states[i]));
    return json;
}

/* Returns the name that its user gave a sweep; null: none. */
static json_t *groups_title_json(const struct page_groups *groups, const struct page_group *group)
{
    ACT_AUTOFREE char *usual = act_sprintf("%s-%s", FLOW_SWEEP_TAG, group->name);

    return groups->is_of_sweeps && !act_streq(group->stem, usual) ? cli_text_json(group->stem) : json_null();
}

json_t *page_groups_json(const struct page_groups *groups, const struct page_rows *rows, const struct act_strv *keys)
{
    ACT_AUTOFREE struct groups_best *best = groups_find_best(groups, rows, keys);
    json_t *list = json_array();

    for (size_t i = 0; i < groups->n; i++) {
        const struct page_group *group = &groups->v[i];
        if (!group->is_shown || group->runs < 2)
            continue;
        json_array_append_new(list, json_pack("{s:s,s:o,s:I,s:o,s:I,s:o,s:o,s:b,s:o}", "name", group->name, "title",
                                              groups_title_json(groups, group), "runs", (json_int_t)group->runs,
                                              "states", groups_states_json(group), "gpus", (json_int_t)group->gpus,
                                              "cluster", cli_text_json(group->cluster), "created_s",
                                              cli_count_json(group->created_unix_s), "open", group->is_open, "best",
                                              groups_best_json(&best[i * keys->n], keys)));
    }
    return list;
}
