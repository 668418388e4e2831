#include "node/pod_output.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "node/node.h"

/* ---- one log ---- */

static void mark(struct pod_framer *f, struct act_buf *out)
{
    act_buf_addf(out, RUN_LOG_AGENT "log %d at %lld\n", f->rank, (long long)f->printed);
    f->marked = f->printed;
}

static void output_print_line(struct pod_framer *f, bool whole, struct act_buf *out)
{
    if (f->rank < 0)
        act_buf_adds(out, RUN_LOG_AGENT "stacks: ");
    else
        act_buf_addf(out, whole ? "[%d] " : "[%d+] ", f->rank);
    act_buf_add(out, f->line.data, f->line.len);
    act_buf_addc(out, '\n');
    f->printed += (int64_t)f->line.len + whole;
    f->line.len = 0;
    if (f->rank >= 0 && f->printed - (f->marked < 0 ? 0 : f->marked) >= POD_MARK_BYTES)
        mark(f, out);
}

void pod_framer_add(struct pod_framer *f, const char *data, size_t len, struct act_buf *out)
{
    while (len > 0) {
        size_t room = POD_PIECE_MAX - f->line.len;
        const char *newline = memchr(data, '\n', len > room ? room + 1 : len);
        size_t taken = newline ? (size_t)(newline - data) : len > room ? room : len;

        act_buf_add(&f->line, data, taken);
        if (newline || len > room)
            output_print_line(f, newline, out);
        taken += newline ? 1 : 0;
        data += taken;
        len -= taken;
    }
}

void pod_framer_end(struct pod_framer *f, struct act_buf *out)
{
    if (f->line.len > 0)
        output_print_line(f, false, out);
    if (f->rank >= 0 && f->marked != f->printed)
        mark(f, out);
}

void pod_framer_release(struct pod_framer *f)
{
    act_buf_release(&f->line);
}

/* ---- all logs ---- */

struct pod_log {
    char *path;
    int fd; /* -1: it does not exist yet */
    struct pod_framer framer;
};

/* The reader of our output may be gone; the run continues, and its logs are complete in the run folder. */
static void output_print(const struct act_buf *text)
{
    if (text->len > 0 && act_write_all(STDOUT_FILENO, text->data, text->len) < 0)
        node_say("cannot print: %m");
}

void pod_output_begin(struct pod_output *o, const struct node *node, int first_rank, int n, int attempt)
{
    ACT_AUTO(act_buf) text = {0};
    ACT_AUTOFREE char *stacks = act_sprintf(RUN_FILE_STACKS, node->name);

    o->logs = act_calloc((size_t)n + 1, sizeof(*o->logs));
    o->n = n + 1;
    for (int i = 0; i < n; i++) {
        ACT_AUTOFREE char *name = run_rank_log(first_rank + i);
        o->logs[i] =
            (struct pod_log){.path = node_path(node, name), .fd = -1, .framer = {.rank = first_rank + i, .marked = -1}};
    }
    o->logs[n] = (struct pod_log){.path = node_path(node, stacks), .fd = -1, .framer = {.rank = -1, .marked = -1}};
    if (attempt > 1)
        act_buf_addf(&text, RUN_LOG_AGENT "attempt %d\n", attempt);
    output_print(&text);
}

/* Prints what a log has got, but no more at once than leaves the other logs their turn. Returns the bytes read. */
static size_t output_follow(struct pod_log *log)
{
    enum { AT_ONCE = 256 * 1024, CHUNK = 64 * 1024 };
    ACT_AUTO(act_buf) text = {0};
    char chunk[CHUNK];
    size_t all = 0;
    ssize_t n = 0;

    if (log->fd < 0)
        log->fd = open(log->path, O_RDONLY | O_CLOEXEC);
    while (log->fd >= 0 && all < AT_ONCE && (n = read(log->fd, chunk, sizeof(chunk))) > 0) {
        pod_framer_add(&log->framer, chunk, (size_t)n, &text);
        all += (size_t)n;
    }
    output_print(&text);
    return n > 0 ? all : 0;
}

bool pod_output_follow(struct pod_output *o)
{
    bool more = false;

    for (int i = 0; i < o->n; i++)
        more = output_follow(&o->logs[i]) > 0 || more;
    return more;
}

static void output_end_log(struct pod_log *log)
{
    ACT_AUTO(act_buf) text = {0};

    if (log->fd >= 0) {
        pod_framer_end(&log->framer, &text);
        close(log->fd);
    }
    output_print(&text);
    pod_framer_release(&log->framer);
    free(log->path);
}

void pod_output_end(struct pod_output *o)
{
    while (pod_output_follow(o))
        continue;
    for (int i = 0; i < o->n; i++)
        output_end_log(&o->logs[i]);
    free(o->logs);
    *o = (struct pod_output){0};
}
