/* text.c - parses the output of Slurm's programs. */
#include "platform/slurm/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/units.h"

enum { HOSTS_MAX = 65536, COUNT_MAX = 1000000, BRACKETS_MAX = 8, DIGITS_MAX = 18 };

/* ---- rows ---- */

/* Splits the line at its separators; returns the number of fields, at most n + 1. */
static size_t slurm_text_split(char *line, char **fields, size_t n)
{
    size_t found = 0;

    for (char *at = line; at && *at; found++) {
        char *end = strchr(at, SLURM_SEPARATOR[0]);
        if (found < n)
            fields[found] = at;
        else
            return n + 1;
        if (end)
            *end++ = '\0';
        at = end;
    }
    return found;
}

bool slurm_next_row(char **cursor, char **fields, size_t n)
{
    while (*cursor && **cursor) {
        char *line = *cursor, *end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        *cursor = end;
        if (slurm_text_split(line, fields, n) == n)
            return true;
    }
    return false;
}

static struct slurm_job *slurm_text_add_job(struct slurm_jobs *jobs)
{
    ACT_GROW(jobs->v, jobs->n);
    jobs->v[jobs->n] = (struct slurm_job){.uid = -1, .task = -1};
    return &jobs->v[jobs->n++];
}

void slurm_jobs_release(struct slurm_jobs *jobs)
{
    free(jobs->v);
    *jobs = (struct slurm_jobs){0};
}

/* Returns the digits at the beginning. */
static int64_t leading_number(const char *text)
{
    int64_t value = 0;

    for (int i = 0; i < DIGITS_MAX && isdigit((unsigned char)text[i]); i++)
        value = value * 10 + (text[i] - '0');
    return value;
}

int64_t slurm_task(const char *job)
{
    const char *mark = strchr(job, '_');

    return mark && isdigit((unsigned char)mark[1]) ? leading_number(mark + 1) : -1;
}

int64_t slurm_step(const char *job)
{
    const char *mark = strchr(job, '.');

    return mark && isdigit((unsigned char)mark[1]) ? leading_number(mark + 1) : -1;
}

/* "3:0" is status and signal; squeue before 23.02 prints the raw wait() status. */
static void read_exit(const char *text, struct slurm_job *job)
{
    const char *colon = strchr(text, ':');
    int number = (int)(leading_number(text) & 0xffff);

    job->exit_status = colon ? number : WEXITSTATUS(number);
    job->exit_signal = colon ? (int)(leading_number(colon + 1) & 0x7f) : WTERMSIG(number);
}

#define FIELD(name) name ":" SLURM_SEPARATOR ","
enum { Q_ID, Q_ARRAY, Q_STATE, Q_REASON, Q_START, Q_END, Q_EXIT, Q_RESTARTS, Q_NODES, Q_NAME, Q_COUNT };
// clang-format off
const char slurm_squeue_fields[] =
    FIELD("JobArrayID") FIELD("ArrayJobID") FIELD("State") FIELD("Reason") FIELD("StartTime") FIELD("EndTime")
    FIELD("exit_code") FIELD("RestartCnt") FIELD("NodeList") "Name:" SLURM_SEPARATOR;
// clang-format on

void slurm_jobs_from_squeue(char *text, struct slurm_jobs *out)
{
    char *f[Q_COUNT];

    *out = (struct slurm_jobs){0};
    while (slurm_next_row(&text, f, Q_COUNT)) {
        struct slurm_job *job = slurm_text_add_job(out);
        job->id = leading_number(f[Q_ARRAY]);
        job->in_array = strchr(f[Q_ID], '_');
        job->task = slurm_task(f[Q_ID]);
        job->state = f[Q_STATE];
        job->reason = f[Q_REASON];
        job->nodes = f[Q_NODES];
        job->name = f[Q_NAME];
        job->start_unix_s = slurm_time(f[Q_START]);
        job->end_unix_s = slurm_time(f[Q_END]);
        job->restarts = slurm_count(leading_number(f[Q_RESTARTS]));
        read_exit(f[Q_EXIT], job);
    }
}

enum { A_ID, A_STATE, A_EXIT, A_START, A_END, A_NODES, A_NAME, A_COUNT };
const char slurm_sacct_fields[] = "JobID,State,ExitCode,Start,End,NodeList,JobName";

void slurm_jobs_from_sacct(char *text, struct slurm_jobs *out)
{
    static const char by[] = " by ";
    char *f[A_COUNT];

    *out = (struct slurm_jobs){0};
    while (slurm_next_row(&text, f, A_COUNT)) {
        struct slurm_job *job = slurm_text_add_job(out);
        char *rest = f[A_STATE] + strcspn(f[A_STATE], " +");
        if (act_starts_with(rest, by) && isdigit((unsigned char)rest[sizeof(by) - 1]))
            job->uid = (int)leading_number(rest + sizeof(by) - 1);
        *rest = '\0';
        job->id = leading_number(f[A_ID]);
        job->in_array = strchr(f[A_ID], '_');
        job->task = slurm_task(f[A_ID]);
        job->state = f[A_STATE];
        job->reason = "";
        job->nodes = f[A_NODES];
        job->name = f[A_NAME];
        job->start_unix_s = slurm_time(f[A_START]);
        job->end_unix_s = slurm_time(f[A_END]);
        read_exit(f[A_EXIT], job);
    }
}

/* ---- sbatch ---- */

/* Returns the number of a job that a text begins with, and its digits; 0: none. Numbers have 32 bits, of which Slurm
 * keeps the last few for what is no job (MAX_VAL in slurm.h). */
static int64_t id_at(const char *text, size_t *out_digits)
{
    static const int64_t most = 0xfffffff0;
    size_t digits = 0;

    while (isdigit((unsigned char)text[digits]))
        digits++;
    *out_digits = digits;
    int64_t id = digits <= DIGITS_MAX ? leading_number(text) : 0;
    return id <= most ? id : 0;
}

/* A line of digits, optionally followed by ";<cluster>"; 0: it is not. */
static int64_t id_line(const char *line, size_t len)
{
    size_t digits;
    int64_t id = id_at(line, &digits);

    return digits == len || line[digits] == ';' ? id : 0;
}

int64_t slurm_id_from_sbatch(const char *text)
{
    int64_t id = 0;

    while (*text) {
        size_t len = strcspn(text, "\n");
        int64_t found = id_line(text, len);
        id = found ? found : id;
        text += len + (text[len] == '\n');
    }
    return id;
}

int64_t slurm_job_number(const char *text, bool *out_is_array)
{
    size_t digits;

    if (out_is_array)
        *out_is_array = text && strstr(text, "_[");
    int64_t id = text ? id_at(text, &digits) : 0;
    return id && strchr("\n_;.+", text[digits]) ? id : 0; /* its end, or what Slurm puts behind a number */
}

/* Returns the text after "<program>: error: " or "<program>: fatal: ". */
static const char *skip_program(const char *line, size_t *len)
{
    static const char *const words[] = {": error: ", ": fatal: "};
    size_t name = 0;

    while (name < *len && (isalnum((unsigned char)line[name]) || line[name] == '_'))
        name++;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (act_starts_with(line + name, words[i])) {
            *len -= name + strlen(words[i]);
            return line + name + strlen(words[i]);
        }
    return line;
}

char *slurm_complaint(const char *text)
{
    struct act_buf b = {0};

    while (*text) {
        size_t whole = strcspn(text, "\n"), len = whole;
        const char *line = skip_program(text, &len);
        while (len && isspace((unsigned char)line[len - 1]))
            len--;
        if (len && b.len)
            act_buf_adds(&b, "; ");
        act_buf_add(&b, line, len);
        text += whole + (text[whole] == '\n');
    }
    return act_buf_steal(&b);
}

/* ---- times ---- */

int64_t slurm_time(const char *text)
{
    struct tm tm = {0};
    int end = 0;

    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
               &tm.tm_sec, &end) != 6 ||
        text[end])
        return 0;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    time_t t = timegm(&tm);
    return t > 0 ? t : 0;
}

int64_t slurm_duration(const char *text)
{
    const char *dash = strchr(text, '-');
    int64_t days = dash ? leading_number(text) : 0, value = 0;
    int parts = 0;

    if (days > COUNT_MAX)
        return 0;

    text = dash ? dash + 1 : text;
    while (isdigit((unsigned char)*text) && parts < 4) {
        int64_t part = leading_number(text);
        if (part > COUNT_MAX)
            return 0;
        value = value * 60 + part;
        parts++;
        text += strspn(text, "0123456789");
        if (*text != ':')
            break;
        text++;
    }
    if (*text || parts < 2 || parts > 3)
        return 0;
    return days * 86400 + value;
}

int64_t slurm_limit(const char *text)
{
    const char *dash = text ? strchr(text, '-') : NULL;
    const char *colon = text ? strchr(text, ':') : NULL;
    ACT_AUTOFREE char *whole = NULL;

    if (!text || !isdigit((unsigned char)*text) || strspn(text, "0123456789:-") != strlen(text))
        return 0;
    if (!dash && colon) /* minutes and seconds, or with hours */
        return slurm_duration(text);
    whole = act_sprintf("%s%s", text, !dash ? ":00" : !colon ? ":00:00" : strchr(colon + 1, ':') ? "" : ":00");
    return slurm_duration(whole);
}

/* ---- generic resources ---- */

int slurm_count(int64_t n)
{
    return n < 0 ? 0 : n > COUNT_MAX ? COUNT_MAX : (int)n;
}

/* Returns the next resource of a list; commas in parentheses belong to it. */
static const char *next_resource(const char *text, size_t *len)
{
    int depth = 0;

    for (*len = 0; text[*len] && (depth || text[*len] != ','); (*len)++)
        depth += (text[*len] == '(') - (text[*len] == ')');
    return text[*len] ? text + *len + 1 : NULL;
}

static bool is_gpu(const char **text)
{
    if (act_starts_with(*text, "gres:") || act_starts_with(*text, "gres/"))
        *text += strlen("gres:");
    return act_starts_with(*text, "gpu") && strchr(":=(/,", (*text)[3]); /* also the end */
}

/* "gpu:a100:8(S:0-1)", "gpu=4"; "gpu" alone is one. */
static int slurm_text_count_of(const char *gpu, size_t len)
{
    size_t end = 0, at;

    while (end < len && gpu[end] != '(')
        end++;
    for (at = end; at > 0 && gpu[at - 1] != ':' && gpu[at - 1] != '=';)
        at--;
    return at == 0 ? 1 : slurm_count(leading_number(gpu + at));
}

int slurm_gpus(const char *gres)
{
    int plain = 0, typed = 0;
    size_t len;

    for (const char *next = NULL; gres; gres = next) {
        next = next_resource(gres, &len);
        const char *gpu = gres;
        if (!is_gpu(&gpu))
            continue;
        len -= (size_t)(gpu - gres);
        /* "gres/gpu=4,gres/gpu:a100=4" counts the same GPUs twice */
        bool is_type = memchr(gpu, ':', len) && memchr(gpu, '=', len);
        int *sum = is_type ? &typed : &plain;
        *sum = slurm_count((int64_t)*sum + slurm_text_count_of(gpu, len));
    }
    return plain ? plain : typed;
}

/* "0-1,3" to "0,1,3". */
static void add_indexes(const char *ranges, size_t len, struct act_buf *out)
{
    for (const char *at = ranges; at < ranges + len && isdigit((unsigned char)*at);) {
        int64_t first = leading_number(at), last = first;
        at += strspn(at, "0123456789");
        if (*at == '-') {
            last = leading_number(at + 1);
            at += 1 + strspn(at + 1, "0123456789");
        }
        for (int64_t i = first; i <= last && i < first + 1024; i++)
            act_buf_addf(out, "%s%lld", out->len ? "," : "", (long long)i);
        at += *at == ',';
    }
}

char *slurm_gpu_ids(const char *gres)
{
    static const char mark[] = "(IDX:";
    struct act_buf b = {0};
    size_t len;

    for (const char *next = NULL; gres; gres = next) {
        next = next_resource(gres, &len);
        const char *at = is_gpu(&gres) ? strstr(gres, mark) : NULL;
        if (at && (!next || at < next)) {
            at += sizeof(mark) - 1;
            add_indexes(at, strcspn(at, ")"), &b);
        }
    }
    return b.len ? act_buf_steal(&b) : NULL;
}

/* ---- nodes ---- */

char *slurm_node_state(const char *text)
{
    return act_strndup(text, strcspn(text, "*~#!%$@^-"));
}

static void add_hosts(const char *before, const char *pattern, size_t len, int depth, struct act_strv *out);

/* One range of a bracket, "07-09" or "5"; the text before and after the bracket goes with every number. */
static void add_range(const char *before, const char *range, size_t len, const char *rest, size_t rest_len, int depth,
                      struct act_strv *out)
{
    const char *dash = memchr(range, '-', len);
    size_t digits = dash ? (size_t)(dash - range) : len;
    int width = digits < DIGITS_MAX ? (int)digits : DIGITS_MAX;
    int64_t first = leading_number(range), last = dash ? leading_number(dash + 1) : first;

    for (int64_t i = first; i <= last && out->n < HOSTS_MAX; i++) {
        ACT_AUTOFREE char *name = act_sprintf("%s%0*lld", before, width, (long long)i);
        add_hosts(name, rest, rest_len, depth + 1, out);
    }
}

static void add_hosts(const char *before, const char *pattern, size_t len, int depth, struct act_strv *out)
{
    const char *open = memchr(pattern, '[', len);
    const char *close = open ? memchr(open, ']', len - (size_t)(open - pattern)) : NULL;

    if (!close || depth == BRACKETS_MAX) {
        act_strv_pushf(out, "%s%.*s", before, (int)len, pattern);
        return;
    }
    ACT_AUTOFREE char *prefix = act_sprintf("%s%.*s", before, (int)(open - pattern), pattern);
    for (const char *at = open + 1; at < close;) {
        size_t range = strcspn(at, ",]");
        add_range(prefix, at, range, close + 1, len - (size_t)(close + 1 - pattern), depth, out);
        at += range + 1;
    }
}

void slurm_hosts(const char *list, struct act_strv *out)
{
    while (*list && out->n < HOSTS_MAX) {
        int depth = 0;
        size_t len = 0;
        for (; list[len] && (depth || list[len] != ','); len++)
            depth += (list[len] == '[') - (list[len] == ']');
        if (len)
            add_hosts("", list, len, 0, out);
        list += len + (list[len] == ',');
    }
}

char *slurm_job_value(const char *text, const char *key)
{
    size_t len = strlen(key);

    for (const char *at = text; (at = strstr(at, key)); at += len) {
        if ((at > text && !isspace((unsigned char)at[-1])) || at[len] != '=')
            continue;
        const char *value = at + len + 1;
        size_t n = strcspn(value, " \n");
        bool none = n == 0 || strncmp(value, "(null)", n) == 0;
        return none ? NULL : act_strndup(value, n);
    }
    return NULL;
}
