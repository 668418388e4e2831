#include "numbers/samples.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "codec/json.h"
#include "numbers/numbers_internal.h"

/* The numbers that are read from a line; the curves follow from them. */
enum raw {
    RAW_TIME,
    RAW_CPU,
    RAW_MEMORY_TOTAL,
    RAW_MEMORY_FREE,
    RAW_CODE_TOTAL,
    RAW_CODE_FREE,
    RAW_RUN_TOTAL,
    RAW_RUN_FREE,
    RAW_RATES, /* in the order of enum samples_what, from SAMPLES_DISK_READ */
    RAW_GPUS = RAW_RATES + SAMPLES_GPU_BUSY - SAMPLES_DISK_READ, /* GPU_PARTS for each */
    GPU_BUSY = 0,
    GPU_USED,
    GPU_TOTAL,
    GPU_PARTS,
    RAW_N = RAW_GPUS + GPU_PARTS * SAMPLES_GPUS,
    RAW_NONE = RAW_N, /* a number that is read for nothing */
};

static const struct {
    const char *path;
    int raw;
} places[] = {
    {"time", RAW_TIME},
    {"cpu.busy", RAW_CPU},
    {"memory.total", RAW_MEMORY_TOTAL},
    {"memory.available", RAW_MEMORY_FREE},
    {"disk.code.total", RAW_CODE_TOTAL},
    {"disk.code.free", RAW_CODE_FREE},
    {"disk.run.total", RAW_RUN_TOTAL},
    {"disk.run.free", RAW_RUN_FREE},
    {"disk.read_per_s", RAW_RATES},
    {"disk.written_per_s", RAW_RATES + 1},
    {"network.received_per_s", RAW_RATES + 2},
    {"network.sent_per_s", RAW_RATES + 3},
    {"infiniband.received_per_s", RAW_RATES + 4},
    {"infiniband.sent_per_s", RAW_RATES + 5},
};

static const char *const gpu_parts[] = {[GPU_BUSY] = "busy", [GPU_USED] = "memory_used", [GPU_TOTAL] = "memory_total"};

/* A line as a sequence of a fixed text and a number (or null), again and again. */
struct samples_piece {
    size_t from, len; /* of the text, in the pattern line */
    int raw;          /* what the number behind it is */
};
enum { PIECES = 512 };

struct samples {
    char line[SAMPLES_LINE + 1], pattern[SAMPLES_LINE + 1];
    size_t len, pattern_len;
    bool too_long;
    struct samples_piece pieces[PIECES];
    size_t n_pieces; /* 0: there is no pattern */
    size_t rest;     /* where the text behind the last number begins */
    double raw[RAW_N + 1];
    struct series curves[SAMPLES_CURVES];
    int gpus;
    uint64_t lines, bad;
};

struct samples *samples_new(void)
{
    return act_calloc(1, sizeof(struct samples));
}

void samples_set_range(struct samples *s, struct series_range range)
{
    for (size_t i = 0; i < SAMPLES_CURVES; i++)
        s->curves[i].range = range;
}

void samples_free(struct samples *s)
{
    for (size_t i = 0; s && i < SAMPLES_CURVES; i++)
        series_release(&s->curves[i]);
    free(s);
}

struct series *samples_curve(struct samples *s, int what)
{
    return &s->curves[what];
}

int samples_gpus(const struct samples *s)
{
    return s->gpus;
}

uint64_t samples_lines(const struct samples *s)
{
    return s->lines;
}

uint64_t samples_bad(const struct samples *s)
{
    return s->bad;
}

/* ---- from raw numbers to curves */

static void samples_add(struct samples *s, int what, double y)
{
    if (!isnan(y)) /* null: not known */
        series_add(&s->curves[what], s->raw[RAW_TIME], y);
}

static double share_used(double total, double unused)
{
    return total > 0 ? (total - unused) / total : NAN;
}

static void samples_add_gpu(struct samples *s, int gpu)
{
    const double *raw = &s->raw[RAW_GPUS + GPU_PARTS * gpu];

    if (isnan(raw[GPU_BUSY]) && isnan(raw[GPU_TOTAL]))
        return;
    s->gpus = gpu >= s->gpus ? gpu + 1 : s->gpus;
    samples_add(s, SAMPLES_GPU_BUSY + gpu, raw[GPU_BUSY]);
    samples_add(s, SAMPLES_GPU_MEMORY + gpu, raw[GPU_TOTAL] > 0 ? raw[GPU_USED] / raw[GPU_TOTAL] : NAN);
}

static void take_raw(struct samples *s)
{
    const double *raw = s->raw;

    samples_add(s, SAMPLES_CPU_BUSY, raw[RAW_CPU]);
    samples_add(s, SAMPLES_MEMORY, share_used(raw[RAW_MEMORY_TOTAL], raw[RAW_MEMORY_FREE]));
    samples_add(s, SAMPLES_DISK_FULL, share_used(raw[RAW_CODE_TOTAL], raw[RAW_CODE_FREE]));
    samples_add(s, SAMPLES_RUN_FULL, share_used(raw[RAW_RUN_TOTAL], raw[RAW_RUN_FREE]));
    for (int what = SAMPLES_DISK_READ; what < SAMPLES_GPU_BUSY; what++)
        samples_add(s, what, raw[RAW_RATES + what - SAMPLES_DISK_READ]);
    for (int gpu = 0; gpu < SAMPLES_GPUS; gpu++)
        samples_add_gpu(s, gpu);
    s->lines++;
}

/* ---- a line for people */

/* Reads "35 %" as 0.35, and "-" as not known. Returns what is behind it. */
static const char *read_share(const char *s, double *out)
{
    int n = 0;

    *out = NAN;
    if (sscanf(s, "%lf %%%n", out, &n) == 1 && n > 0)
        *out /= 100;
    else
        *out = NAN;
    return n > 0 ? s + n : s + strcspn(s, " ,");
}

/* Reads "12.1/251.0 GiB", of which 12.1 are used; s NULL: nothing. */
static void read_room(const char *s, double *out_total, double *out_free)
{
    double used, total;

    if (!s || sscanf(s, " %lf/%lf GiB", &used, &total) != 2)
        return;
    *out_total = total;
    *out_free = total - used;
}

static const char *behind(const char *line, const char *name)
{
    const char *at = strstr(line, name);

    return at ? at + strlen(name) : NULL;
}

static void read_gpus(struct samples *s, const char *line)
{
    for (const char *at = line; (at = behind(at, ", gpu "));) {
        double total = NAN, unused = NAN;
        char *end;
        long gpu = strtol(at, &end, 10);
        if (end == at || *end != ' ' || gpu < 0 || gpu >= SAMPLES_GPUS)
            continue;
        double *raw = &s->raw[RAW_GPUS + GPU_PARTS * gpu];
        read_room(read_share(end + 1, &raw[GPU_BUSY]), &total, &unused);
        raw[GPU_TOTAL] = total;
        raw[GPU_USED] = total - unused;
    }
}

static void forget_raw(struct samples *s)
{
    for (int i = 0; i < RAW_N; i++)
        s->raw[i] = NAN;
}

bool samples_take_text(struct samples *s, const char *line, char **out_node)
{
    static const char node[] = "node ";
    const char *cpu = behind(line, ", cpu "), *at = strrchr(line, ' ');
    int64_t ns;

    if (!act_starts_with(line, node) || !cpu || !at || !act_time_from_iso_ns(at + 1, &ns) || ns <= 0) {
        s->bad++;
        return false;
    }
    forget_raw(s);
    s->raw[RAW_TIME] = (double)ns / 1e9;
    read_share(cpu, &s->raw[RAW_CPU]);
    read_room(behind(line, ", memory"), &s->raw[RAW_MEMORY_TOTAL], &s->raw[RAW_MEMORY_FREE]);
    read_room(behind(line, ", disk"), &s->raw[RAW_CODE_TOTAL], &s->raw[RAW_CODE_FREE]);
    read_gpus(s, line);
    take_raw(s);
    *out_node = act_strndup(line + strlen(node), strcspn(line + strlen(node), ","));
    return true;
}

/* ---- a line like the one before */

static const char *samples_read_number(const char *s, double *out)
{
    if (*s != 'n')
        return numbers_decimal(s, out);
    *out = NAN;
    return act_starts_with(s, "null") ? s + 4 : NULL;
}

/* Returns what is behind a number that nobody wants. */
static const char *skip_number(const char *s)
{
    const char *begin = s;

    if (*s == 'n')
        return act_starts_with(s, "null") ? s + 4 : NULL;
    while ((*s >= '0' && *s <= '9') || *s == '.' || *s == '-' || *s == '+' || *s == 'e' || *s == 'E')
        s++;
    return s > begin ? s : NULL;
}

static bool read_like_before(struct samples *s)
{
    const char *at = s->line;

    for (size_t i = 0; i < s->n_pieces; i++) {
        const struct samples_piece *p = &s->pieces[i];
        if ((size_t)(s->line + s->len - at) < p->len || memcmp(at, s->pattern + p->from, p->len) != 0)
            return false;
        at = p->raw == RAW_NONE ? skip_number(at + p->len) : samples_read_number(at + p->len, &s->raw[p->raw]);
        if (!at)
            return false;
    }
    return s->n_pieces > 0 && (size_t)(s->line + s->len - at) == s->pattern_len - s->rest &&
           memcmp(at, s->pattern + s->rest, s->pattern_len - s->rest) == 0;
}

/* ---- a line that is not like it */

static int raw_of(const char *path)
{
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (strcmp(places[i].path, path) == 0)
            return places[i].raw;
    return RAW_NONE;
}

static int raw_of_gpu(int gpu, const char *key)
{
    for (int part = 0; part < GPU_PARTS && gpu >= 0 && gpu < SAMPLES_GPUS; part++)
        if (strcmp(gpu_parts[part], key) == 0)
            return RAW_GPUS + GPU_PARTS * gpu + part;
    return RAW_NONE;
}

/* A place in a text that is known to be JSON. */
struct samples_walk {
    struct samples *s;
    const char *at;
    char path[128];
    int gpu; /* the index in the present object of "gpus"; -1: none */
};

static void walk_value(struct samples_walk *w);

/* Copies the text between quotes as it stands there, and passes over it. */
static void walk_string(struct samples_walk *w, char *out, size_t size)
{
    size_t n = 0;

    for (w->at++; *w->at != '"'; w->at++) {
        if (*w->at == '\\')
            w->at++;
        if (n + 1 < size)
            out[n++] = *w->at;
    }
    out[n] = '\0';
    w->at++;
}

static void skip_blanks(struct samples_walk *w)
{
    while (isspace((unsigned char)*w->at))
        w->at++;
}

static void walk_object(struct samples_walk *w)
{
    size_t len = strlen(w->path);
    char key[64];

    for (w->at++, skip_blanks(w); *w->at != '}'; skip_blanks(w)) {
        if (*w->at == ',') {
            w->at++;
            continue;
        }
        walk_string(w, key, sizeof(key));
        skip_blanks(w);
        w->at++; /* ':' */
        skip_blanks(w);
        if (len + strlen(key) + 2 < sizeof(w->path))
            sprintf(w->path + len, "%s%s", len ? "." : "", key);
        walk_value(w);
        w->path[len] = '\0';
    }
    w->at++;
}

static void walk_array(struct samples_walk *w)
{
    for (w->at++, skip_blanks(w); *w->at != ']'; skip_blanks(w)) {
        if (*w->at == ',')
            w->at++;
        else
            walk_value(w);
    }
    w->at++;
}

/* Which GPU a number is of is a part of the text, as "index" comes before its numbers: one that changes there makes
 * another pattern. */
static bool is_gpu_index(struct samples_walk *w)
{
    char *end;

    if (strcmp(w->path, "gpus.index") != 0)
        return false;
    w->gpu = (int)strtol(w->at, &end, 10);
    return true;
}

static void walk_number(struct samples_walk *w)
{
    static const char gpus[] = "gpus.";
    struct samples *s = w->s;
    const char *begin = w->at;
    double value;

    bool is_fixed = is_gpu_index(w);
    w->at = samples_read_number(w->at, &value);
    if (is_fixed || s->n_pieces == PIECES)
        return;
    int raw = act_starts_with(w->path, gpus) ? raw_of_gpu(w->gpu, w->path + strlen(gpus)) : raw_of(w->path);
    size_t from = s->rest;
    s->pieces[s->n_pieces++] = (struct samples_piece){from, (size_t)(begin - s->line) - from, raw};
    s->rest = (size_t)(w->at - s->line);
    s->raw[raw] = value;
}

static void walk_value(struct samples_walk *w)
{
    char ignored[2];

    skip_blanks(w);
    if (*w->at == '{')
        walk_object(w);
    else if (*w->at == '[')
        walk_array(w);
    else if (*w->at == '"')
        walk_string(w, ignored, sizeof(ignored));
    else if (*w->at == 't' || *w->at == 'f')
        w->at += *w->at == 't' ? 4 : 5;
    else
        walk_number(w);
}

/* The pattern is a copy of the line. */
static bool read_as_json(struct samples *s)
{
    CODEC_AUTOJSON json_t *json = NULL;
    struct samples_walk w = {.s = s, .at = s->line, .gpu = -1};

    s->n_pieces = s->rest = 0;
    if (s->line[0] != '{' || memchr(s->line, '\0', s->len) ||
        codec_json_parse(s->line, s->len, "metrics", &json, NULL) < 0)
        return false;
    walk_value(&w);
    memcpy(s->pattern, s->line, s->len + 1);
    s->pattern_len = s->len;
    return true;
}

static void samples_end_line(struct samples *s)
{
    s->line[s->len] = '\0';
    if (s->len > 0) {
        forget_raw(s);
        bool is_read = !s->too_long && (read_like_before(s) || (forget_raw(s), read_as_json(s)));
        if (is_read && isfinite(s->raw[RAW_TIME]) && s->raw[RAW_TIME] > 0)
            take_raw(s);
        else
            s->bad++;
    }
    s->len = 0;
    s->too_long = false;
}

void samples_feed(struct samples *s, const char *text, size_t len)
{
    while (len > 0) {
        const char *end = memchr(text, '\n', len);
        size_t n = end ? (size_t)(end - text) : len, room = SAMPLES_LINE - s->len;
        s->too_long |= n > room;
        memcpy(s->line + s->len, text, n < room ? n : room);
        s->len += n < room ? n : room;
        if (!end)
            return;
        samples_end_line(s);
        text += n + 1;
        len -= n + 1;
    }
}

void samples_end(struct samples *s)
{
    uint64_t bad = s->bad;

    samples_end_line(s);
    s->bad = bad; /* the rest of a line that is cut may still come */
}
