/* pod_log.c - the logs of the ranks, from what the agent in a pod prints. Pure.
 *
 * The agent frames the ranks' output (act/node/pod.h): "[3] text" is a line of rank 3, "[3+] text" a piece of one that
 * goes on, and its own words begin with "act: ". "act: attempt 2" begins an attempt, "act: log 3 at 65536" says how
 * many bytes of rank 3 were printed in this attempt, by which it is known what a rotation of the log swallowed.
 *
 * The service puts a timestamp with nanoseconds before each line, but can only begin at a whole second: what was there
 * already is told by the last timestamp, and by how many lines had it.
 *
 * Source: kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/ (read log: timestamps, sinceTime).
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "platform/kubernetes/kubernetes_internal.h"

enum { LINE_MAX_BYTES = 64 << 10, RANKS_MAX = 1 << 20, ATTEMPTS_MAX = 1 << 20 };

struct printed {
    uint64_t bytes, n_attempts; /* bytes: in the attempt before which so many have begun */
};

struct kubernetes_pod_log {
    kubernetes_log_text *text;
    void *arg;
    struct act_buf line; /* the beginning of one */
    int attempt;
    struct printed *printed; /* of each rank */
    size_t n_printed;
    uint64_t n_attempts; /* that have begun */
    int64_t last_ns;     /* the timestamp of the last line; 0: there was none */
    int64_t with_last;   /* how many lines had it */
    bool is_gone;        /* the node has removed it */
    int64_t to_skip;     /* of the lines with it, how many come again; -1: nothing comes again */
};

struct kubernetes_pod_log *kubernetes_pod_log_new(kubernetes_log_text *text, void *arg)
{
    struct kubernetes_pod_log *log = act_calloc(1, sizeof(*log));

    *log = (struct kubernetes_pod_log){.text = text, .arg = arg, .attempt = 1, .to_skip = -1};
    return log;
}

void kubernetes_pod_log_free(struct kubernetes_pod_log *log)
{
    if (!log)
        return;
    act_buf_release(&log->line);
    free(log->printed);
    free(log);
}

/* ---- frames ---- */

/* Returns the rank of "[3] text" or "[3+] text", and where the text begins; -1: it is no such line. */
static int k8s_pod_log_rank_of(const char *line, bool *out_goes_on, const char **out_text)
{
    const char *c = line + 1;
    long rank = 0;

    if (*line != '[' || *c < '0' || *c > '9')
        return -1;
    for (; *c >= '0' && *c <= '9' && rank < RANKS_MAX; c++)
        rank = rank * 10 + (*c - '0');
    *out_goes_on = *c == '+';
    c += *out_goes_on;
    if (c[0] != ']' || c[1] != ' ' || rank >= RANKS_MAX)
        return -1;
    *out_text = c + 2;
    return (int)rank;
}

static uint64_t *printed_of(struct kubernetes_pod_log *log, int rank)
{
    while (log->n_printed <= (size_t)rank)
        ACT_PUSH(log->printed, log->n_printed, (struct printed){0});
    struct printed *of = &log->printed[rank];
    if (of->n_attempts != log->n_attempts)
        *of = (struct printed){.n_attempts = log->n_attempts};
    return &of->bytes;
}

static void k8s_pod_log_take_text(struct kubernetes_pod_log *log, int rank, const char *text, size_t len)
{
    *printed_of(log, rank) += len;
    log->text(log->arg, log->attempt, rank, text, len);
}

/* Takes the agent's word of where a rank's log is: what is missing until there is gone. */
static void take_position(struct kubernetes_pod_log *log, int rank, uint64_t bytes)
{
    uint64_t *printed = printed_of(log, rank);

    if (bytes > *printed) {
        ACT_AUTOFREE char *gap =
            act_sprintf("[%llu bytes are gone: the node rotated its log]\n", (unsigned long long)(bytes - *printed));
        log->text(log->arg, log->attempt, rank, gap, strlen(gap));
    }
    *printed = bytes > *printed ? bytes : *printed;
}

static void begin_attempt(struct kubernetes_pod_log *log, int attempt)
{
    log->n_attempts++;
    log->attempt = attempt;
}

static void take_words(struct kubernetes_pod_log *log, char *line, size_t len)
{
    unsigned long long bytes;
    int rank, attempt;

    if (sscanf(line, RUN_LOG_AGENT "log %d at %llu", &rank, &bytes) == 2 && rank >= 0 && rank < RANKS_MAX) {
        take_position(log, rank, bytes);
        return;
    }
    if (sscanf(line, RUN_LOG_AGENT "attempt %d", &attempt) == 1 && attempt > 1 && attempt <= ATTEMPTS_MAX)
        begin_attempt(log, attempt);
    line[len] = '\n';
    log->text(log->arg, log->attempt, -1, line, len + 1);
    line[len] = '\0';
}

/* Takes a line without its end, with room for it after the text. */
static void take_content(struct kubernetes_pod_log *log, char *line, size_t len)
{
    const char *text;
    bool goes_on;
    int rank = k8s_pod_log_rank_of(line, &goes_on, &text);

    if (rank < 0) {
        take_words(log, line, len);
        return;
    }
    line[len] = '\n';
    k8s_pod_log_take_text(log, rank, text, len - (size_t)(text - line) + !goes_on);
    line[len] = '\0';
}

/* ---- lines ---- */

/* Tells whether a line came before the connection was lost, as all did until the last one. Where that one is gone,
 * nothing comes again. */
static bool comes_again(struct kubernetes_pod_log *log, int64_t ns)
{
    if (log->to_skip < 0)
        return false;
    if (ns == log->last_ns)
        log->to_skip--;
    if (ns > log->last_ns || log->to_skip == 0)
        log->to_skip = -1;
    return ns <= log->last_ns;
}

/* Returns the timestamp before a line, *out_text behind it; 0: there is none. */
static int64_t k8s_pod_log_time_of(const char *line, size_t len, const char **out_text)
{
    const char *blank = memchr(line, ' ', len);
    char stamp[ACT_TIME_TEXT];
    int64_t ns = 0;

    *out_text = line;
    if (!blank || (size_t)(blank - line) >= sizeof(stamp))
        return 0;
    memcpy(stamp, line, (size_t)(blank - line));
    stamp[blank - line] = '\0';
    if (!act_time_from_iso_ns(stamp, &ns) || !ns)
        return 0;
    *out_text = blank + 1;
    return ns;
}

static void k8s_pod_log_take_line(struct kubernetes_pod_log *log, char *line, size_t len)
{
    const char *text;
    int64_t ns = k8s_pod_log_time_of(line, len, &text);

    if (ns) {
        if (comes_again(log, ns))
            return;
        log->with_last = ns == log->last_ns ? log->with_last + 1 : 1;
        log->last_ns = ns;
    }
    if (!ns && !log->last_ns && act_starts_with(line, "unable to retrieve container logs for ")) {
        log->is_gone = true; /* by a kubelet, which answers with success: it has lines without timestamps alone */
        return;
    }
    take_content(log, line + (text - line), len - (size_t)(text - line));
}

static void k8s_pod_log_end_line(struct kubernetes_pod_log *log)
{
    k8s_pod_log_take_line(log, log->line.data, log->line.len);
    log->line.len = 0;
    log->line.data[0] = '\0';
}

void kubernetes_pod_log_take(struct kubernetes_pod_log *log, const char *bytes, size_t len)
{
    while (len > 0) {
        const char *end = memchr(bytes, '\n', len);
        size_t n = end ? (size_t)(end - bytes) : len;
        act_buf_add(&log->line, bytes, n);
        if (end || log->line.len >= LINE_MAX_BYTES)
            k8s_pod_log_end_line(log);
        bytes += n + (end != NULL);
        len -= n + (end != NULL);
    }
}

void kubernetes_pod_log_end(struct kubernetes_pod_log *log)
{
    if (log->line.len > 0)
        k8s_pod_log_end_line(log);
}

bool kubernetes_pod_log_is_gone(const struct kubernetes_pod_log *log)
{
    return log->is_gone;
}

char *kubernetes_pod_log_resume(struct kubernetes_pod_log *log)
{
    char text[ACT_TIME_TEXT];

    log->line.len = 0;
    if (!log->last_ns)
        return NULL;
    log->to_skip = log->with_last;
    act_time_to_iso(log->last_ns / 1000000000, text);
    return act_strdup(text);
}

/* ---- the end of the log ---- */

int64_t kubernetes_pod_log_proof(const struct kubernetes_pod_log *log)
{
    enum { MOST = 100 };

    return log->last_ns && log->line.len == 0 && log->with_last < MOST ? log->with_last + 1 : 0;
}

/* Wants a line from before the last timestamp, and then all lines that had it. */
bool kubernetes_pod_log_proves(const struct kubernetes_pod_log *log, const char *bytes, size_t len)
{
    const char *text, *end;
    int64_t n = 0;

    for (; len > 0; n++) {
        int64_t ns = k8s_pod_log_time_of(bytes, len, &text);
        end = memchr(bytes, '\n', len);
        if (!ns || !end || (n == 0 ? ns >= log->last_ns : ns != log->last_ns))
            return false;
        len -= (size_t)(end + 1 - bytes);
        bytes = end + 1;
    }
    return n == log->with_last + 1;
}
