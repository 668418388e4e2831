#include "cli/page/rows.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "cli/runs/runs.h"
#include "codec/json.h"
#include "flow/sweep/grid.h"

enum { TERMS_MOST = 32 };

enum rows_test { ROWS_ANYWHERE, ROWS_FIELD, ROWS_EQUAL, ROWS_LESS, ROWS_MORE, ROWS_LESS_EQUAL, ROWS_MORE_EQUAL };

struct page_term {
    enum rows_test test;
    char *key; /* NULL: none */
    char *text;
};

void page_row_release(struct page_row *row)
{
    flow_run_release(&row->run);
    json_decref(row->note);
    row->note = NULL;
}

void page_rows_release(struct page_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        page_row_release(&rows->v[i]);
    free(rows->v);
    *rows = (struct page_rows){0};
}

/* ---- what is known of a row */

bool page_number_of(const char *text, double *out)
{
    char *end;

    if (!text || !*text || isspace((unsigned char)*text))
        return false;
    *out = strtod(text, &end);
    return *end == '\0' && isfinite(*out);
}

static char *rows_tag(const struct flow_run *run, const char *key)
{
    CODEC_AUTOJSON json_t *tags = run->row.tags ? run_tags_parse(run->row.tags) : NULL;

    return codec_json_strdup(tags, key);
}

/* Returns a field of a row as text, a new string; NULL: there is no such field. */
static char *rows_field(const struct page_row *row, const char *key)
{
    const struct ledger_run *r = &row->run.row;
    const char *why = codec_json_str(row->note, "why", NULL);
    const struct {
        const char *name, *text;
    } fields[] = {
        {"id", r->id},
        {"name", r->name},
        {"cluster", r->cluster},
        {"state", run_state_name(row->run.status.state)},
        {"platform", r->platform},
        {"project", r->project},
        {"command", r->command},
        {"why", why ? why : row->run.status.reason},
    };

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (strcasecmp(fields[i].name, key) == 0)
            return act_strdup(fields[i].text ? fields[i].text : "");
    if (strcasecmp(key, FLOW_SWEEP_TAG) != 0)
        return NULL;
    char *sweep = rows_tag(&row->run, FLOW_SWEEP_TAG);
    return sweep ? sweep : act_strdup("");
}

/* Returns the last value of a number in the log; false: it has none. */
static bool rows_last(const struct page_row *row, const char *key, double *out)
{
    const char *name;
    json_t *number;

    json_object_foreach(json_object_get(row->note, "numbers"), name, number)
    {
        const json_t *last = json_array_get(number, 0);
        if (strcasecmp(name, key) == 0 && json_is_number(last)) {
            *out = json_number_value(last);
            return true;
        }
    }
    return false;
}

/* ---- the words of a filter */

/* Splits "key<=text" at the first sign; without a key, or without a text, it is a text. */
static struct page_term rows_term(const char *word)
{
    static const struct {
        const char *sign;
        enum rows_test test;
    } signs[] = {{"<=", ROWS_LESS_EQUAL}, {">=", ROWS_MORE_EQUAL}, {"<", ROWS_LESS},
                 {">", ROWS_MORE},        {"=", ROWS_EQUAL},       {":", ROWS_FIELD}};
    size_t at = strcspn(word, "<>=:");

    for (size_t i = 0; at > 0 && i < sizeof(signs) / sizeof(signs[0]); i++) {
        size_t len = strlen(signs[i].sign);
        if (strncmp(word + at, signs[i].sign, len) == 0 && word[at + len])
            return (struct page_term){signs[i].test, act_strndup(word, at), act_strdup(word + at + len)};
    }
    return (struct page_term){.text = act_strdup(word)};
}

static bool rows_compares(enum rows_test test)
{
    return test == ROWS_LESS || test == ROWS_MORE || test == ROWS_LESS_EQUAL || test == ROWS_MORE_EQUAL;
}

/* A field that there is not, or a comparison with what is no number, is a text. */
static struct page_term rows_judged(const char *word)
{
    static const struct page_row empty;
    struct page_term term = rows_term(word);
    ACT_AUTOFREE char *field = term.test == ROWS_FIELD ? rows_field(&empty, term.key) : NULL;
    double ignored;

    if ((term.test != ROWS_FIELD || field) && (!rows_compares(term.test) || page_number_of(term.text, &ignored)))
        return term;
    free(term.key);
    free(term.text);
    return (struct page_term){.text = act_strdup(word)};
}

void page_filter_read(const char *words, struct page_filter_words *out)
{
    *out = (struct page_filter_words){0};
    for (size_t n; out->n < TERMS_MOST && *(words += strspn(words, " \t\r\n")); words += n) {
        n = strcspn(words, " \t\r\n");
        ACT_AUTOFREE char *word = act_strndup(words, n);
        ACT_PUSH(out->v, out->n, rows_judged(word));
    }
}

void page_filter_words_release(struct page_filter_words *filter)
{
    for (size_t i = 0; i < filter->n; i++) {
        free(filter->v[i].key);
        free(filter->v[i].text);
    }
    free(filter->v);
    *filter = (struct page_filter_words){0};
}

bool page_filter_needs_notes(const struct page_filter_words *filter)
{
    for (size_t i = 0; i < filter->n; i++)
        if (filter->v[i].test != ROWS_FIELD || strcasecmp(filter->v[i].key, "why") == 0)
            return true;
    return false;
}

/* ---- whether a row passes */

static bool rows_same_value(const char *a, const char *b)
{
    double x, y;

    return strcasecmp(a, b) == 0 || (page_number_of(a, &x) && page_number_of(b, &y) && x == y);
}

/* Tells whether the words of a command have "--key=value", "--key value" or "key=value". */
static bool rows_has_argument(const char *command, const char *key, const char *value)
{
    ACT_AUTOFREE char *words = act_strdup(command ? command : "");
    size_t len = strlen(key);
    bool is_next = false;
    char *rest = words, *word;

    while ((word = strsep(&rest, " \t\n'\""))) {
        if (is_next && *word && rows_same_value(word, value))
            return true;
        word += strspn(word, "-");
        bool is_key = strncasecmp(word, key, len) == 0;
        if (is_key && word[len] == '=' && rows_same_value(word + len + 1, value))
            return true;
        is_next = *word ? is_key && word[len] == '\0' : is_next;
    }
    return false;
}

static bool rows_equals(const struct page_row *row, const struct page_term *term)
{
    ACT_AUTOFREE char *tag = rows_tag(&row->run, term->key);
    double last, wanted;

    if ((tag && rows_same_value(tag, term->text)) || rows_has_argument(row->run.row.command, term->key, term->text))
        return true;
    return rows_last(row, term->key, &last) && page_number_of(term->text, &wanted) && last == wanted;
}

static bool rows_is_so(const struct page_row *row, const struct page_term *term)
{
    ACT_AUTOFREE char *tag = rows_tag(&row->run, term->key);
    double value, limit;

    if (!page_number_of(term->text, &limit) || (!rows_last(row, term->key, &value) && !page_number_of(tag, &value)))
        return false;
    switch (term->test) {
    case ROWS_LESS:
        return value < limit;
    case ROWS_MORE:
        return value > limit;
    case ROWS_LESS_EQUAL:
        return value <= limit;
    default:
        return value >= limit;
    }
}

static bool rows_is_anywhere(const struct page_row *row, const char *text)
{
    static const char *const fields[] = {"id", "name", "cluster", "state", "command", "why"};
    ACT_AUTOFREE char *tags = cli_tags_text(&row->run.row);

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        ACT_AUTOFREE char *field = rows_field(row, fields[i]);
        if (strcasestr(field, text))
            return true;
    }
    return tags && strcasestr(tags, text);
}

static bool rows_holds(const struct page_row *row, const struct page_term *term)
{
    ACT_AUTOFREE char *field = term->test == ROWS_FIELD ? rows_field(row, term->key) : NULL;

    switch (term->test) {
    case ROWS_ANYWHERE:
        return rows_is_anywhere(row, term->text);
    case ROWS_FIELD:
        return field && strcasestr(field, term->text);
    case ROWS_EQUAL:
        return rows_equals(row, term);
    default:
        return rows_is_so(row, term);
    }
}

bool page_filter_passes(const struct page_filter_words *filter, const struct page_row *row)
{
    for (size_t i = 0; i < filter->n; i++)
        if (!rows_holds(row, &filter->v[i]))
            return false;
    return true;
}

/* ---- the order */

enum rows_by { BY_AGE, BY_ELAPSED, BY_GPUS, BY_BUSY, BY_KEY, BY_TAG, BY_FIELD };

static const struct {
    const char *name;
    enum rows_by by;
    bool has_name; /* behind a ':' */
} orders[] = {
    {"age", BY_AGE, false},   {"elapsed", BY_ELAPSED, false}, {"gpus", BY_GPUS, false},
    {"busy", BY_BUSY, false}, {"key:", BY_KEY, true},         {"tag:", BY_TAG, true},
    {"id", BY_FIELD, false},  {"name", BY_FIELD, false},      {"state", BY_FIELD, false},
    {"why", BY_FIELD, false}, {"cluster", BY_FIELD, false},   {"command", BY_FIELD, false},
};

bool page_order_read(const char *text, struct page_order *out)
{
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        size_t len = strlen(orders[i].name);
        bool fits = orders[i].has_name ? strncmp(text, orders[i].name, len) == 0 && text[len]
                                       : strcmp(text, orders[i].name) == 0;
        if (!fits)
            continue;
        *out = (struct page_order){.by = orders[i].by, .name = orders[i].has_name ? text + len : text};
        return true;
    }
    return false;
}

bool page_order_needs_notes(const struct page_order *order)
{
    return order->by == BY_KEY || order->by == BY_BUSY || act_streq(order->name, "why");
}

/* The value of a row in an order: a number, or else a text. */
struct rows_value {
    bool is_known, is_number;
    double number;
    char *text;
    struct page_row row;
};

static bool rows_take_number(const struct page_row *row, enum rows_by by, const char *name, double *out)
{
    const json_t *busy = json_object_get(row->note, "busy");

    switch (by) {
    case BY_AGE:
        *out = (double)row->at; /* the list has the newest ones first */
        return true;
    case BY_ELAPSED:
        *out = (double)cli_elapsed_s(&row->run.status);
        return *out >= 0;
    case BY_GPUS:
        *out = (double)cli_gpus(&row->run);
        return true;
    case BY_BUSY:
        *out = json_number_value(busy);
        return json_is_number(busy);
    case BY_KEY:
        return rows_last(row, name, out);
    default:
        return false;
    }
}

static void rows_take_value(const struct page_order *order, const struct page_row *row, struct rows_value *out)
{
    *out = (struct rows_value){.row = *row};
    if (order->by == BY_FIELD)
        out->text = rows_field(row, order->name);
    else if (order->by == BY_TAG)
        out->text = rows_tag(&row->run, order->name);
    out->is_number = out->text ? page_number_of(out->text, &out->number)
                               : rows_take_number(row, (enum rows_by)order->by, order->name, &out->number);
    out->is_known = out->is_number || (out->text && *out->text);
}

/* Numbers come before texts. */
static int rows_compare_values(const struct rows_value *a, const struct rows_value *b)
{
    if (a->is_number != b->is_number)
        return a->is_number ? -1 : 1;
    if (a->is_number)
        return a->number < b->number ? -1 : a->number > b->number;
    return strcasecmp(a->text, b->text);
}

static int rows_compare(const void *x, const void *y, void *order)
{
    const struct rows_value *a = x, *b = y;
    int by = 0;

    if (a->is_known != b->is_known)
        return a->is_known ? -1 : 1;
    if (a->is_known)
        by = rows_compare_values(a, b) * (((const struct page_order *)order)->descends ? -1 : 1);
    return by != 0 ? by : a->row.at < b->row.at ? -1 : a->row.at > b->row.at;
}

void page_order_sort(const struct page_order *order, struct page_rows *rows)
{
    ACT_AUTOFREE struct rows_value *values = act_calloc(rows->n + 1, sizeof(*values));
    struct page_order copy = *order;

    for (size_t i = 0; i < rows->n; i++)
        rows_take_value(order, &rows->v[i], &values[i]);
    qsort_r(values, rows->n, sizeof(*values), rows_compare, &copy);
    for (size_t i = 0; i < rows->n; i++) {
        rows->v[i] = values[i].row;
        free(values[i].text);
    }
}
