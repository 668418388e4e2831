/* fetch.c - many logs at once into files.
 *
 * Slices of all logs share the connections and a fixed budget of memory. They arrive in any order; those of one log are
 * written in its order, each by a worker, one after the other:
 *
 *   in the file ─► being written ─► arrived ─► under way ... started
 *
 * So a file is the beginning of its log at every moment, whatever fails and whoever is killed: there is nothing to
 * mend, and its length says where to go on. The price is that a slice may wait in memory for the one before it.
 *
 * A job that is started again may write another log under the same name. It is known by being shorter; or, where a file
 * is gone on with, by other bytes before those that are new: a few of them are asked for too, and compared.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "platform/azureml/azureml_internal.h"

enum { SLICE = 4 << 20, MEMORY = 64 << 20, SPARES = MEMORY / SLICE, COMPARED = 256 };

struct fetching;

struct slice {
    struct http_call http;
    struct copying *log;
    struct slice *next; /* of the same log */
    char *buffer;
    size_t before;   /* bytes at its beginning that the file has already */
    size_t len, got; /* with them */
    bool arrived, differs;
    struct act_error error; /* of writing it */
    int rc;
};

/* A log on its way into a file. */
struct copying {
    struct fetching *f;
    struct platform_part *part;
    const char *url;
    char *what;
    uint64_t started;    /* so many bytes of the part are in the file or in slices */
    struct slice *first; /* those that are not in the file yet, in the order of the log */
    struct slice **last;
    bool writing;
    bool over;   /* no more of it is wanted */
    bool denied; /* its URL is no longer good */
};

struct fetching {
    struct azureml *a;
    const struct platform_fetch *io;
    struct copying *logs;
    size_t n, at;     /* nothing of the logs before at is left to start */
    size_t n_slices;  /* that there are */
    size_t memory;    /* in their buffers */
    size_t under_way; /* requests */
    char *spare[SPARES];
    size_t n_spare;
    bool done;
    int rc; /* the first failure */
    struct act_error *err;
};

static void go_on(struct fetching *f);

static void fail(struct fetching *f, int rc, const struct act_error *error)
{
    if (f->rc == 0) {
        f->rc = rc;
        *f->err = *error;
    }
}

/* ---- slices ---- */

static char *take_buffer(struct fetching *f, size_t len)
{
    f->memory += len;
    return len == SLICE && f->n_spare > 0 ? f->spare[--f->n_spare] : act_alloc(len);
}

static void give_buffer(struct fetching *f, char *buffer, size_t len)
{
    f->memory -= len;
    if (len == SLICE && f->n_spare < SPARES)
        f->spare[f->n_spare++] = buffer;
    else
        free(buffer);
}

static void drop_first(struct copying *log)
{
    struct slice *s = log->first;

    log->first = s->next;
    if (!log->first)
        log->last = &log->first;
    give_buffer(log->f, s->buffer, s->len);
    http_call_release(&s->http);
    log->f->n_slices--;
    free(s);
}

/* What came of the slice behind those that are in the file. */
static void judge(struct copying *log, struct slice *s)
{
    uint64_t offset = log->part->offset + log->part->got - s->before, size = azureml_log_size(&s->http);
    struct act_error error;
    int rc = azureml_log_answer(&s->http, offset, &s->got, &error);

    log->denied = rc == 0 && s->http.status == 403;
    if (rc == 0 && (s->http.status == 416 || (size > 0 && size < log->part->end)))
        log->part->replaced = true;
    if (rc < 0 && rc != -ACT_NOT_FOUND)
        fail(log->f, rc, &error);
    log->over = s->got < s->len || log->part->replaced;
}

/* Whether what came before the new bytes is what the file has there. */
static int compare(struct slice *s, struct act_error *err)
{
    const struct platform_part *part = s->log->part;
    char have[COMPARED];
    int fd = act_open_below(part->root, part->path, O_RDONLY, err), rc = 0;

    if (fd < 0)
        return fd;
    ssize_t n = act_pread_all(fd, have, s->before, (off_t)(part->offset - s->before));
    if (n < 0)
        rc = act_error_errno(err, errno, "cannot read '%s'", part->path);
    s->differs = n == (ssize_t)s->before && memcmp(have, s->buffer, s->before) != 0;
    close(fd);
    return rc;
}

static void write_work(void *arg)
{
    struct slice *s = arg;

    s->rc = s->before > 0 ? compare(s, &s->error) : 0;
    if (s->rc == 0 && !s->differs)
        s->rc = platform_part_write(s->log->part, s->buffer + s->before, s->got - s->before, &s->error);
}

static void write_next(struct copying *log);

static void write_done(void *arg)
{
    struct slice *s = arg;
    struct copying *log = s->log;
    struct fetching *f = log->f;

    log->writing = false;
    if (s->rc < 0) {
        fail(f, s->rc, &s->error);
        log->over = true;
    } else if (s->differs) {
        log->over = log->part->replaced = true;
    } else {
        log->part->got += s->got - s->before;
        if (f->io->moved)
            f->io->moved(f->io->arg, log->part, s->got - s->before);
    }
    drop_first(log);
    write_next(log);
    go_on(f);
}

static void write_next(struct copying *log)
{
    while (!log->writing && log->first && log->first->arrived) {
        struct slice *s = log->first;
        if (!log->over)
            judge(log, s);
        if (s->got > s->before && !log->part->replaced) {
            log->writing = true;
            engine_work(services_engine(log->f->a->services), write_work, write_done, s);
        } else {
            drop_first(log);
        }
    }
}

static void slice_done(struct http_call *http)
{
    struct slice *s = http->arg;
    struct fetching *f = s->log->f;

    s->arrived = true;
    f->under_way--;
    write_next(s->log);
    go_on(f);
}

/* ---- what is started when ---- */

/* How many bytes before the next slice are asked for too. */
static size_t next_before(const struct copying *log)
{
    uint64_t offset = log->part->offset;

    if (log->started > 0)
        return 0;
    return offset < COMPARED ? (size_t)offset : COMPARED;
}

/* The bytes of the next slice; 0: there is none. */
static size_t next_len(const struct copying *log)
{
    uint64_t left = log->part->end - log->part->offset - log->started, len = left + next_before(log);

    if (left == 0)
        return 0;
    return len < SLICE ? (size_t)len : SLICE;
}

static void start_slice(struct copying *log)
{
    struct fetching *f = log->f;
    struct slice *s = act_calloc(1, sizeof(*s));

    s->log = log;
    s->len = next_len(log);
    s->before = next_before(log);
    s->buffer = take_buffer(f, s->len);
    azureml_log_request(&s->http, log->url, log->what, log->part->offset + log->started - s->before,
                        s->buffer, s->len);
    s->http.done = slice_done;
    s->http.arg = s;
    *log->last = s;
    log->last = &s->next;
    log->started += s->len - s->before;
    f->n_slices++;
    f->under_way++;
    http_start(services_http(f->a->services), &s->http);
}

/* Whether there is room for the next slice of the log. */
static bool has_room(const struct fetching *f, const struct copying *log)
{
    return f->n_slices == 0 || (f->memory + next_len(log) <= MEMORY &&
                                f->under_way < (size_t)http_window(services_http(f->a->services), log->url));
}

/* Log after log, so that most of them are whole when this is interrupted. */
static void go_on(struct fetching *f)
{
    while (f->rc == 0 && f->at < f->n) {
        struct copying *log = &f->logs[f->at];
        if (log->over || next_len(log) == 0)
            f->at++;
        else if (has_room(f, log))
            start_slice(log);
        else
            break;
    }
    f->done = f->n_slices == 0;
}

/* ---- the whole ---- */

/* A log that is not there any more was moved away. */
static void find_urls(struct fetching *f)
{
    for (size_t i = 0; i < f->n; i++) {
        struct copying *log = &f->logs[i];
        log->url = azureml_log_url(f->a, log->part->name);
        log->started = log->part->got;
        log->last = &log->first;
        log->over = !log->denied || !log->url;
        log->denied = false;
    }
    f->at = 0;
}

static const struct copying *find_denied(const struct fetching *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->logs[i].denied)
            return &f->logs[i];
    return NULL;
}

/* Once more with new URLs where the old ones are no longer good. */
static void fetch(struct fetching *f, const char *id)
{
    for (int try = 0; try < 2 && f->rc == 0 && find_denied(f); try++) {
        f->rc = azureml_find_logs(f->a, id, try > 0, f->err);
        if (f->rc < 0)
            return;
        find_urls(f);
        go_on(f);
        if (!f->done)
            engine_run(services_engine(f->a->services), &f->done);
    }
    const struct copying *denied = f->rc == 0 ? find_denied(f) : NULL;
    if (denied)
        f->rc = azureml_log_denied(denied->what, f->err);
}

int azureml_fetch_logs(struct platform *p, const char *id, const struct platform_fetch *io,
                       struct act_error *err)
{
    struct fetching f = {.a = azureml_of(p), .io = io, .n = io->n, .err = err};

    f.logs = act_calloc(f.n, sizeof(*f.logs));
    for (size_t i = 0; i < f.n; i++)
        f.logs[i] = (struct copying){.f = &f,
                                     .part = &io->parts[i],
                                     .what = act_sprintf("read log '%s' of '%s'", io->parts[i].name, id),
                                     .denied = true}; /* as long as there is no URL */
    fetch(&f, id);
    for (size_t i = 0; i < f.n; i++)
        free(f.logs[i].what);
    while (f.n_spare > 0)
        free(f.spare[--f.n_spare]);
    free(f.logs);
    return f.rc;
}
