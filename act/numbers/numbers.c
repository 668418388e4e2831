/* numbers.c - judges names, knows where the program is, and keeps the curves. words.c takes lines apart. */
#include "numbers/numbers.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "codec/json.h"
#include "numbers/numbers_internal.h"
#include "run/run.h"

enum {
    UNKNOWN_KEYS = NUMBERS_KEYS * 3 / 4, /* the rest is for measures */
    NEAR_LINES = 3,                      /* a step stands for the values on so many lines behind it */
    JSON_DEPTH = 3,
};

const char *numbers_by_name(enum numbers_by by)
{
    static const char *const names[] = {
        [NUMBERS_BY_COUNT] = "value", [NUMBERS_BY_EPOCH] = "epoch", [NUMBERS_BY_STEP] = "step"};

    return names[by];
}

/* ---- what names mean, by their parts: letters between other characters */

static const char *const measures[] = {
    "loss",        "losses",  "nll",        "acc",   "accuracy",  "lr",     "ppl",    "perplexity", "bleu",
    "rouge",       "wer",     "cer",        "f1",    "auc",       "map",    "miou",   "iou",        "psnr",
    "ssim",        "fid",     "mse",        "mae",   "rmse",      "reward", "return", "score",      "error",
    "err",         "top1",    "top5",       "prec",  "precision", "recall", "dice",   "norm",       "gnorm",
    "grad_norm",   "rate",    "throughput", "speed", "fps",       "wps",    "ips",    "mfu",        "tflops",
    "temperature", "entropy", "kl",         "time",  "bpb",       "bpc",
};

/* Names that say who and where, not how much. */
static const char *const denied[] = {
    "pid", "tid", "port", "rank", "seed", "version", "line", "lineno", "timestamp", "ts", "uid", "gid", "id", "date",
};

static const struct {
    const char *name;
    enum numbers_by by;
} positions[] = {
    {"step", NUMBERS_BY_STEP},    {"iter", NUMBERS_BY_STEP},  {"iteration", NUMBERS_BY_STEP},
    {"it", NUMBERS_BY_STEP},      {"itr", NUMBERS_BY_STEP},   {"update", NUMBERS_BY_STEP},
    {"updates", NUMBERS_BY_STEP}, {"batch", NUMBERS_BY_STEP}, {"epoch", NUMBERS_BY_EPOCH},
    {"ep", NUMBERS_BY_EPOCH},
};

/* "max_steps", "steps_per_epoch", "ms/batch": an amount, not where the program is. */
static const char *const amounts[] = {"per",  "max",   "total", "warmup", "last", "best",
                                      "time", "every", "ms",    "s",      "sec"};

bool numbers_is_among(const char *const *list, size_t n, const char *word, size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(list[i]) == len && strncasecmp(list[i], word, len) == 0)
            return true;
    return false;
}

static size_t part_len(const char *name)
{
    size_t n = 0;

    while (isalnum((unsigned char)name[n]))
        n++;
    return n;
}

static void judge_part(struct numbers_meaning *m, const char *part, size_t len)
{
    m->is_measure |= NUMBERS_IS_AMONG(measures, part, len);
    m->is_denied |= NUMBERS_IS_AMONG(denied, part, len);
    m->is_amount |= NUMBERS_IS_AMONG(amounts, part, len);
    m->is_position = false;
    for (size_t i = 0; i < sizeof(positions) / sizeof(positions[0]) && !m->is_position; i++)
        if (strlen(positions[i].name) == len && strncasecmp(positions[i].name, part, len) == 0) {
            m->is_position = true;
            m->by = positions[i].by;
        }
}

static void judge_name(const char *name, struct numbers_meaning *out)
{
    for (const char *part = name; *part;) {
        size_t len = part_len(part);
        if (len > 0)
            judge_part(out, part, len);
        part += len ? len : 1;
    }
    out->is_time = strcasecmp(name, "ts") == 0 || strcasestr(name, "timestamp");
    out->is_position = out->is_position && !out->is_amount;
    out->is_denied = out->is_denied && !out->is_measure;
}

struct numbers_word *numbers_word(struct numbers_words *words, const char *text)
{
    uint32_t hash = 2166136261; /* FNV-1a */

    for (const char *c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619;
    struct numbers_word *word = &words->v[hash % NUMBERS_WORDS];
    if (strcmp(word->text, text) != 0) {
        *word = (struct numbers_word){0};
        memcpy(word->text, text, strlen(text) + 1);
        judge_name(text, &word->meaning);
        numbers_judge_word(text, &word->meaning);
    }
    return word;
}

/* ---- keys */

struct numbers {
    char line[NUMBERS_LINE + 1];
    size_t len;
    struct numbers_key *keys;
    size_t n_keys;
    double step, epoch;   /* where the program is; NAN: not known */
    double lap, lap_end;  /* what is added to steps, which begin anew in each epoch; the last one as it was written */
    double lap_epoch;     /* of that */
    unsigned step_age;    /* in lines */
    double unix_s;        /* when the program was there; NAN: not known */
    unsigned time_age;    /* in lines */
    bool is_unzoned;      /* one of the times had no zone */
    struct series epochs; /* steps against epochs: where one was first seen */
    struct series_range range;
    bool has_more;       /* names than there is room for */
    bool is_below_place; /* the line before was one of a traceback */
    bool is_prepared;    /* what comes was printed by the preparation, up to the agent's next line */
    struct numbers_words words;
};

struct numbers *numbers_new(void)
{
    struct numbers *n = act_calloc(1, sizeof(*n));

    n->step = n->epoch = n->lap_end = n->lap_epoch = n->unix_s = NAN;
    return n;
}

void numbers_set_range(struct numbers *n, struct series_range range)
{
    n->range = range;
}

void numbers_free(struct numbers *n)
{
    if (!n)
        return;
    for (size_t i = 0; i < n->n_keys; i++) {
        series_release(&n->keys[i].series);
        series_release(&n->keys[i].times);
    }
    series_release(&n->epochs);
    free(n->keys);
    free(n);
}

size_t numbers_count(const struct numbers *n)
{
    return n->n_keys;
}

bool numbers_has_more(const struct numbers *n)
{
    return n->has_more;
}

struct numbers_key *numbers_key(struct numbers *n, size_t i)
{
    return &n->keys[i];
}

struct numbers_key *numbers_find(struct numbers *n, const char *name)
{
    size_t len = strlen(name), last = len > 0 ? len - 1 : 0;

    for (size_t i = 0; len <= NUMBERS_NAME && i < n->n_keys; i++) {
        const char *key = n->keys[i].name;
        if (key[last] && !key[len] && strcasecmp(key, name) == 0) /* most are of another length */
            return &n->keys[i];
    }
    return NULL;
}

static struct numbers_key *numbers_find_or_add(struct numbers *n, const struct numbers_pair *pair, enum numbers_by by)
{
    struct numbers_word *word = numbers_word(&n->words, pair->name);
    struct numbers_key *found = word->key > 0 ? &n->keys[word->key - 1] : numbers_find(n, pair->name);

    if (found)
        word->key = (size_t)(found - n->keys) + 1;
    if (found)
        return found;
    if (n->n_keys == NUMBERS_KEYS || (!pair->meaning.is_measure && n->n_keys >= UNKNOWN_KEYS)) {
        n->has_more = true;
        return NULL;
    }
    ACT_PUSH(n->keys, n->n_keys, (struct numbers_key){.by = by, .is_measure = pair->meaning.is_measure});
    found = &n->keys[n->n_keys - 1];
    memcpy(found->name, pair->name, sizeof(found->name));
    found->series.range = found->times.range = n->range;
    return found;
}

static double x_of(const struct numbers *n, const struct numbers_key *key)
{
    switch (key->by) {
    case NUMBERS_BY_STEP:
        return n->step;
    case NUMBERS_BY_EPOCH:
        return n->epoch;
    case NUMBERS_BY_COUNT:
        break;
    }
    return (double)(key->series.count + key->series.odd + 1);
}

static void numbers_take_value(struct numbers *n, const struct numbers_pair *pair, enum numbers_by by)
{
    struct numbers_key *key = numbers_find_or_add(n, pair, by);

    if (!key)
        return;
    if (isfinite(n->unix_s) && n->time_age <= NEAR_LINES)
        series_add(&key->times, x_of(n, key), n->unix_s);
    series_add(&key->series, x_of(n, key), pair->value);
}

void numbers_add(struct numbers *n, const char *name, double step, double value, double unix_s)
{
    struct numbers_pair pair = {.value = value};
    size_t before = n->n_keys, len = strlen(name);

    if (len == 0 || len > NUMBERS_NAME)
        return;
    memcpy(pair.name, name, len + 1);
    pair.meaning = numbers_word(&n->words, name)->meaning;
    struct numbers_key *key = numbers_find_or_add(n, &pair, NUMBERS_BY_STEP);
    if (!key)
        return;
    key->is_added = key->is_added || n->n_keys > before;
    if (pair.meaning.is_position && pair.meaning.by == NUMBERS_BY_EPOCH)
        series_add(&n->epochs, step, value);
    if (!key->is_added)
        return;
    series_add(&key->series, step, value);
    series_add(&key->times, step, unix_s);
}

/* ---- where the program is */

static void numbers_take_step(struct numbers *n, double step)
{
    bool is_new_epoch = n->epoch > n->lap_epoch;

    if (step < n->lap_end && is_new_epoch)
        n->lap += n->lap_end;
    n->lap_end = step;
    n->lap_epoch = n->epoch;
    n->step = n->lap + step;
    n->step_age = 0;
}

static bool numbers_is_whole(double x)
{
    return x == floor(x);
}

/* The place that one line names. */
struct numbers_place {
    double step, epoch, part; /* NAN: nothing; part: of the epoch */
};

static void numbers_take_place(struct numbers *n, const struct numbers_place *p)
{
    bool has_part = isfinite(p->part) && !isfinite(p->step) && isfinite(p->epoch) && numbers_is_whole(p->epoch);

    if (isfinite(p->epoch))
        n->epoch = has_part ? p->epoch + p->part : p->epoch;
    if (isfinite(p->step))
        numbers_take_step(n, p->step);
    if (isfinite(n->step) && isfinite(n->epoch) && (n->epochs.count == 0 || n->epochs.last.y != n->epoch))
        series_add(&n->epochs, n->step, n->epoch);
}

static struct numbers_place numbers_find_place(const struct numbers_line *line)
{
    struct numbers_place p = {NAN, NAN, NAN};

    for (size_t i = 0; i < line->n; i++) {
        const struct numbers_meaning *m = &line->v[i].meaning;
        if (m->is_position && m->by == NUMBERS_BY_STEP)
            p.step = line->v[i].value;
        else if (m->is_position)
            p.epoch = line->v[i].value;
    }
    if (isfinite(p.epoch) && line->bare_total > 0)
        p.part = line->bare / line->bare_total;
    else if (!isfinite(p.step) && line->bare_total > 0 && line->bare_is_step)
        p.step = line->bare;
    return p;
}

/* Takes the time of a line, from its text or from a number in it, which may be in milliseconds. */
static void numbers_take_time(struct numbers *n, const char *text, const struct numbers_line *line)
{
    enum { EARLY = 1000000000, LATE = 4000000 }; /* seconds, thousands of seconds: 2001 to 2096 */
    bool is_zoned = true, is_known = numbers_read_time(text, &n->unix_s, &is_zoned);

    n->is_unzoned = n->is_unzoned || !is_zoned;
    for (size_t i = 0; i < line->n && !is_known; i++) {
        double value = line->v[i].value > LATE * 1e3 ? line->v[i].value / 1000 : line->v[i].value;
        is_known = line->v[i].meaning.is_time && value > EARLY && value < LATE * 1e3;
        n->unix_s = is_known ? value : n->unix_s;
    }
    n->time_age = is_known ? 0 : n->time_age + 1;
}

static void numbers_take_line(struct numbers *n, const struct numbers_line *line)
{
    struct numbers_place place = numbers_find_place(line);

    numbers_take_place(n, &place);
    enum numbers_by by = isfinite(place.step)                             ? NUMBERS_BY_STEP
                         : isfinite(place.epoch)                          ? NUMBERS_BY_EPOCH
                         : isfinite(n->step) && n->step_age <= NEAR_LINES ? NUMBERS_BY_STEP
                                                                          : NUMBERS_BY_COUNT;
    for (size_t i = 0; i < line->n; i++)
        if (!line->v[i].meaning.is_position && !line->v[i].meaning.is_denied)
            numbers_take_value(n, &line->v[i], by);
}

/* ---- lines of JSON */

/* Joins the name of a member to the one above it, as keys are named; false: that cannot be a key. */
static bool join_name(char out[NUMBERS_NAME + 1], const char *above, const char *name)
{
    int len = snprintf(out, NUMBERS_NAME + 1, "%s%s%s", above, *above ? "." : "", name);

    if (!*name || len < 0 || len > NUMBERS_NAME)
        return false;
    for (char *c = out; *c; c++) {
        if (*c == ' ')
            *c = '_';
        if (!numbers_in_name(*c))
            return false;
    }
    return true;
}

static void take_json(json_t *object, const char *above, int depth, struct numbers_words *words,
                      struct numbers_line *out)
{
    char name[NUMBERS_NAME + 1];
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        if (!join_name(name, above, key))
            continue;
        if (json_is_number(value))
            numbers_line_add(out, words, name, json_number_value(value));
        else if (json_is_object(value) && depth < JSON_DEPTH)
            take_json(value, name, depth + 1, words, out);
    }
}

static bool numbers_read_json(const char *text, size_t len, struct numbers_words *words, struct numbers_line *out)
{
    CODEC_AUTOJSON json_t *json = NULL;

    if (text[0] != '{' || text[len - 1] != '}' || codec_json_parse(text, len, "line", &json, NULL) < 0)
        return false;
    take_json(json, "", 1, words, out);
    return true;
}

/* ---- lines */

static bool may_have_number(const char *text)
{
    return text[strcspn(text, "0123456789")] || strcasestr(text, "nan") || strcasestr(text, "inf");
}

/* Tells whether a line is the source that stands, indented, below its place in a traceback of Python. */
static bool numbers_is_source(struct numbers *n, const char *text)
{
    enum { INDENT = 4 };
    bool is_source = n->is_below_place && text - n->line >= INDENT;

    n->is_below_place = act_starts_with(text, "File \"") && strstr(text, "\", line ");
    return is_source;
}

static void numbers_end_line(struct numbers *n)
{
    struct numbers_line line;
    char *text = n->line;

    n->line[n->len] = '\0';
    n->len = numbers_clean(n->line, n->len);
    for (; n->len > 0 && isspace((unsigned char)*text); n->len--)
        text++;
    if (act_starts_with(text, RUN_LOG_AGENT)) {
        n->is_prepared = strcmp(text, RUN_LOG_PREPARATION) == 0;
    } else if (n->len > 0 && !numbers_is_source(n, text) && !n->is_prepared) {
        n->step_age++;
        numbers_line_begin(&line);
        if (may_have_number(text) && !numbers_read_json(text, n->len, &n->words, &line))
            numbers_read_words(text, &n->words, &line);
        numbers_take_time(n, text, &line);
        if (line.n > 0 || line.bare_total > 0)
            numbers_take_line(n, &line);
    }
    n->len = 0;
}

/* Returns how many bytes come before the next end of a line; progress bars write only carriage returns. */
static size_t until_end(const char *text, size_t len)
{
    const char *end = memchr(text, '\n', len), *back = memchr(text, '\r', end ? (size_t)(end - text) : len);

    return back ? (size_t)(back - text) : end ? (size_t)(end - text) : len;
}

static void numbers_take_part(struct numbers *n, const char *text, size_t len)
{
    size_t room = NUMBERS_LINE - n->len, taken = len < room ? len : room;

    memcpy(n->line + n->len, text, taken);
    n->len += taken;
}

void numbers_feed(struct numbers *n, const char *text, size_t len)
{
    enum { BLOCK = 4096 }; /* so that a text of carriage returns is not searched for a newline again and again */

    while (len > 0) {
        size_t block = len < BLOCK ? len : BLOCK, until = until_end(text, block);
        numbers_take_part(n, text, until);
        if (until < block)
            numbers_end_line(n);
        until += until < block;
        text += until;
        len -= until;
    }
}

void numbers_end(struct numbers *n)
{
    numbers_end_line(n);
    n->is_prepared = false;
}

/* ---- the end */

static void numbers_find_times(const struct numbers *n, struct series_range *out)
{
    *out = (struct series_range){INFINITY, -INFINITY};
    for (size_t i = 0; i < n->n_keys; i++) {
        const struct series *times = &n->keys[i].times;
        if (times->count == 0 || n->keys[i].is_added)
            continue;
        out->from = fmin(out->from, times->low);
        out->to = fmax(out->to, times->high);
    }
}

/* Returns what has to be added to times without a zone. */
static double numbers_zone(struct series_range times, double from, double until)
{
    static const double steps[] = {3600, 900}, slack_s = 60;

    if (times.from > times.to || (times.from >= from - slack_s && times.to <= until + slack_s))
        return 0;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        double shift = ceil((from - slack_s - times.from) / steps[i]) * steps[i];
        if (times.to + shift <= until + slack_s)
            return shift;
    }
    return 0;
}

void numbers_sort(struct numbers *n, double from, double until)
{
    struct series_range times;

    numbers_find_times(n, &times);
    double zone = n->is_unzoned ? numbers_zone(times, from, until) : 0;
    series_end(&n->epochs);
    for (size_t i = 0; i < n->n_keys; i++) {
        struct numbers_key *key = &n->keys[i];
        series_end(&key->series);
        series_end(&key->times);
        for (size_t k = 0; k < key->times.n && !key->is_added; k++)
            key->times.v[k].y += zone;
    }
}

double numbers_epoch_at(const struct numbers *n, double step)
{
    const struct series_point *v = n->epochs.v;
    size_t i = 1, end = n->epochs.n;

    if (end < 2)
        return NAN;
    for (end--; i < end;) { /* behind the last one it goes on at the same pace */
        size_t middle = i + (end - i) / 2;
        i = v[middle].x < step ? middle + 1 : i;
        end = v[middle].x < step ? end : middle;
    }
    return v[i - 1].y + (step - v[i - 1].x) * (v[i].y - v[i - 1].y) / (v[i].x - v[i - 1].x);
}
