/* notes.c - what is kept in the ledger about the numbers of runs, so that a list of many need not read their logs:
 *
 *     {"numbers": {"loss": [0.1, "ZTPKG...("]}, "why": "...", "busy": 0.93,
 *      "looked": {"state": "Completed", "attempt": 1, "at": 1790000000, "failed": false}}
 *
 * Of a number it has the last value and a small curve, a character for each point: thousands are read for a list.
 * Whoever reads the numbers of a run anyway writes it down; a few runs at a time are looked at for nothing else.
 */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "codec/json.h"
#include "diagnose/diagnose.h"
#include "flow/flow_internal.h"
#include "flow/look/parts.h"
#include "flow/source/source.h"

enum {
    KEYS = 16,          /* of a run */
    SPARK = 24,         /* points of a curve */
    LOG_END = 4 << 20,  /* read of a log */
    RANKS = 4,          /* looked at until one has numbers */
    NODES = 16,         /* of which samples are read */
    SAMPLES_END = 8192, /* of each */
    LIVE_S = 30,        /* until a run that goes on is looked at again, */
    SETTLED_S = 60,     /* (also if it ended less than this before) */
    FAILED_S = 600,     /* and one whose logs could not be read */
};

/* ---- numbers as JSON */

static json_t *notes_number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* Returns how high a value stands between the lowest and the highest one. */
static int notes_height(double y, double low, double high)
{
    double part = high > low ? y / (high - low) - low / (high - low) : 0.5;

    return isfinite(part) ? (int)lround(fmin(fmax(part, 0), 1) * FLOW_NOTE_HIGH) : 0;
}

/* Returns a curve as text, a new string. */
static char *notes_spark(const struct series *s)
{
    struct series few = {.n = s->n, .v = act_calloc(s->n + 1, sizeof(*few.v))};
    ACT_AUTO(act_buf) out = {0};

    if (s->n > 0)
        memcpy(few.v, s->v, s->n * sizeof(*few.v));
    series_end(&few);
    series_reduce(&few, SPARK);
    for (size_t i = 0; i < few.n; i++)
        act_buf_addc(&out, (char)(FLOW_NOTE_LOW + notes_height(few.v[i].y, s->low, s->high)));
    series_release(&few);
    return out.len ? act_buf_steal(&out) : act_strdup("");
}

static json_t *notes_key_json(const struct numbers_key *key)
{
    ACT_AUTOFREE char *spark = notes_spark(&key->series);

    return json_pack("[o,s]", notes_number_json(key->series.ended_y), spark);
}

/* Returns how much people look for a key: that of "loss" the most. */
static int notes_weight(const struct numbers_key *key)
{
    return strcasecmp(key->name, "loss") == 0 ? 3 : strcasestr(key->name, "loss") ? 2 : key->is_measure ? 1 : 0;
}

static json_t *notes_numbers_json(struct numbers *numbers)
{
    json_t *object = json_object();

    for (int weight = 3; weight >= 0; weight--)
        for (size_t i = 0; i < numbers_count(numbers) && json_object_size(object) < KEYS; i++) {
            const struct numbers_key *key = numbers_key(numbers, i);
            if (notes_weight(key) == weight)
                json_object_set_new(object, key->name, notes_key_json(key));
        }
    return object;
}

/* ---- the ledger */

int flow_read_notes(struct flow *flow, const struct flow_run *runs, size_t n, json_t **out, struct act_error *err)
{
    ACT_AUTOFREE const char **ids = act_calloc(n + 1, sizeof(const char *));
    ACT_AUTOFREE char **texts = act_calloc(n + 1, sizeof(char *));
    struct act_error ignored;
    int rc = 0;

    for (size_t i = 0; i < n; i++)
        ids[i] = runs[i].row.id;
    for (struct ledger *ledger = NULL; flow_next_ledger(flow, &ledger, &rc, err);)
        rc = ledger_get_notes(ledger, ids, n, texts, err);
    for (size_t i = 0; i < n; i++) {
        out[i] = NULL;
        if (texts[i] && codec_json_parse(texts[i], strlen(texts[i]), "note", &out[i], &ignored) < 0)
            out[i] = NULL; /* it is found out again */
        free(texts[i]);
    }
    return rc;
}

/* Sets members of the note of a run, and takes the reference. */
static int notes_set(struct flow *flow, const struct flow_run *run, json_t *members, struct act_error *err)
{
    CODEC_AUTOJSON json_t *note = NULL, *more = members;
    struct ledger *ledger;
    int rc = flow_ledger(flow, &ledger, err);

    if (rc == 0)
        rc = flow_read_notes(flow, run, 1, &note, err);
    if (rc < 0)
        return rc;
    note = note ? note : json_object();
    json_object_update(note, more);
    ACT_AUTOFREE char *text = json_dumps(note, JSON_COMPACT | JSON_REAL_PRECISION(7));
    return ledger_set_notes(ledger, &(struct ledger_note){run->row.id, text}, 1, err);
}

/* Nobody waits for it: a ledger that cannot be written is no reason to show less. */
void flow_note_numbers(struct flow *flow, const struct flow_run *run, struct numbers *numbers)
{
    struct act_error ignored;

    if (numbers_count(numbers) > 0)
        (void)!notes_set(flow, run, json_pack("{s:o}", "numbers", notes_numbers_json(numbers)), &ignored);
}

/* ---- looking at a run */

static void notes_feed(const struct flow_source *source, const struct store_entry *log, struct numbers *numbers)
{
    ACT_AUTO(act_buf) text = {0};
    struct act_error ignored;

    if (flow_log_tail(source, log, LOG_END, &text, &ignored) == 0 && text.len > 0)
        numbers_feed(numbers, text.data, text.len);
    numbers_end(numbers);
}

/* Reads the ends of a rank's logs of all attempts, of the first rank that has numbers. */
static struct numbers *notes_read_numbers(const struct flow_source *source, const struct flow_run *run,
                                          const struct store_page *logs)
{
    int world = run->spec.nodes * run->spec.procs_per_node, last = flow_last_attempt(logs);
    struct numbers *numbers = numbers_new();

    for (int rank = 0; rank < RANKS && (rank == 0 || rank < world) && numbers_count(numbers) == 0; rank++)
        for (int attempt = 1; attempt <= last; attempt++) {
            ACT_AUTOFREE char *prefix =
                attempt == last ? act_strdup("") : act_sprintf(RUN_DIR_ATTEMPTS "/%d/", attempt);
            notes_feed(source, flow_find_rank_log(logs, prefix, rank), numbers);
        }
    return numbers;
}

/* Returns how busy the GPUs of the nodes are now; negative: not known. */
static double notes_busy(const struct flow_source *source, const struct store_page *logs)
{
    const struct store_entry *nodes[NODES];
    struct act_buf texts[NODES] = {0};
    struct act_error ignored;
    double sum = 0;
    size_t n = 0;
    int gpus = 0;

    for (size_t i = 0; i < logs->n && n < NODES; i++)
        if (act_starts_with(logs->v[i].key, RUN_DIR_METRICS "/") && logs->v[i].size > 0)
            nodes[n++] = &logs->v[i];
    bool good = flow_log_tails(source, nodes, n, SAMPLES_END, texts, &ignored) == 0;
    for (size_t i = 0; i < n; i++) {
        struct samples *s = samples_new();
        samples_feed(s, texts[i].data ? texts[i].data : "", texts[i].len);
        samples_end(s);
        for (int gpu = 0; gpu < samples_gpus(s); gpu++, gpus++)
            sum += samples_curve(s, SAMPLES_GPU_BUSY + gpu)->last.y;
        samples_free(s);
        act_buf_release(&texts[i]);
    }
    return good && gpus > 0 ? sum / gpus : -1;
}

/* Returns why it failed, in a few words; null: it did not, or nobody knows. */
static json_t *notes_why_json(struct flow *flow, const struct flow_run *run)
{
    struct act_error ignored;
    struct flow_why why;

    if (run->status.state != RUN_FAILED || flow_why(flow, run, &why, &ignored) < 0)
        return json_null();
    json_t *json = why.rule ? json_string(why.rule->title) : json_null();
    flow_why_release(&why);
    return json;
}

static json_t *notes_look(struct flow *flow, const struct flow_run *run)
{
    struct flow_source source = {0};
    ACT_AUTO(store_page) logs = {0};
    struct act_error ignored;
    double busy = -1;
    json_t *note = json_object();

    int rc = flow_source_open(flow, run, &source, &ignored);
    if (rc == 0 && source.store)
        rc = flow_source_list(&source, &logs, &ignored);
    if (rc == 0 && logs.n > 0) {
        struct numbers *numbers = notes_read_numbers(&source, run, &logs);
        if (numbers_count(numbers) == 0)
            flow_add_events(flow, run, numbers);
        if (numbers_count(numbers) > 0)
            json_object_set_new(note, "numbers", notes_numbers_json(numbers));
        numbers_free(numbers);
    }
    if (rc == 0 && run->status.state == RUN_RUNNING)
        busy = notes_busy(&source, &logs);
    flow_source_close(&source);
    json_object_set_new(note, "why", notes_why_json(flow, run));
    json_object_set_new(note, "busy", busy >= 0 ? json_real(busy) : json_null());
    json_object_set_new(note, "looked",
                        json_pack("{s:s,s:i,s:I,s:b}", "state", run_state_name(run->status.state), "attempt",
                                  run->status.attempt, "at", (json_int_t)act_now_unix_s(), "failed", rc < 0));
    return note;
}

bool flow_is_unseen(const struct flow_run *run, const json_t *note)
{
    const json_t *looked = json_object_get(note, "looked");

    return run->status.state != RUN_QUEUED && !run->status.unsubmitted &&
           (!act_streq(codec_json_str(looked, "state", NULL), run_state_name(run->status.state)) ||
            codec_json_int(looked, "attempt", 0) != run->status.attempt);
}

/* Tells whether a run should be looked at again. A service has the last lines of a log some time after its run ended.
 */
static bool notes_is_old(const struct flow_run *run, const json_t *note)
{
    const json_t *looked = json_object_get(note, "looked");
    int64_t at = codec_json_int(looked, "at", 0), age_s = act_now_unix_s() - at;
    bool is_settled = run_state_is_final(run->status.state) && at - run->status.ended_unix_s > SETTLED_S;

    if (run->status.state == RUN_QUEUED || run->status.unsubmitted)
        return false;
    if (flow_is_unseen(run, note) || age_s < 0)
        return true;
    if (json_is_true(json_object_get(looked, "failed")))
        return age_s > FAILED_S;
    return !is_settled && age_s > LIVE_S;
}

/* Looks at a run, and writes down what there is. */
static int notes_keep(struct flow *flow, const struct flow_run *run, struct act_error *err)
{
    int rc = notes_set(flow, run, notes_look(flow, run), err);

    return rc < 0 ? act_error_prefix(err, "the numbers of runs cannot be kept for this list") : 0;
}

int flow_gather_notes(struct flow *flow, struct flow_runs *runs, int64_t time_ms, bool *out_more, struct act_error *err)
{
    ACT_AUTOFREE json_t **notes = act_calloc(runs->n + 1, sizeof(json_t *));
    int64_t end_ms = act_now_monotonic_ms() + time_ms;
    int rc = flow_read_notes(flow, runs->v, runs->n, notes, err);

    *out_more = false;
    for (size_t i = 0; i < runs->n; i++) {
        bool wanted = rc == 0 && notes_is_old(&runs->v[i], notes[i]), in_time = act_now_monotonic_ms() < end_ms;
        *out_more = *out_more || (wanted && !in_time);
        json_decref(notes[i]);
        if (!wanted || !in_time)
            continue;
        struct flow_runs one = {.v = &runs->v[i], .n = 1};
        rc = flow_load_specs(flow, &one, err);
        if (rc == 0)
            rc = notes_keep(flow, &runs->v[i], err);
    }
    return rc;
}
