/* logs.c - logs of a run: fetched into assets/<run id>/, or followed as they grow. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "flow/flow_internal.h"

enum { CHUNK = 1 << 20 };

void flow_logs_release(struct flow_logs *logs)
{
    for (size_t i = 0; i < logs->n; i++) {
        free(logs->v[i].name);
        free(logs->v[i].path);
    }
    free(logs->v);
    free(logs->folder);
    *logs = (struct flow_logs){0};
}

/* A log of one run at its platform. */
struct source {
    struct platform *platform;
    const char *id, *name;
    char *chunk; /* CHUNK bytes */
};

/* Appends the bytes of the log from offset up to end to fd. */
static int append_log(const struct source *s, int fd, const char *path, uint64_t offset, uint64_t end,
                      struct act_error *err)
{
    while (offset < end) {
        size_t want = end - offset < CHUNK ? end - offset : CHUNK, got;
        int rc = platform_read_log(s->platform, s->id, s->name, offset, s->chunk, want, &got, err);
        if (rc < 0 || got == 0)
            return rc;
        if (act_pwrite_all(fd, s->chunk, got, (off_t)offset) < 0)
            return act_error_errno(err, errno, "cannot write '%s'", path);
        offset += got;
    }
    return 0;
}

/* Brings the local copy up to date. A log that is shorter than the copy began anew: so does the copy. */
static int fetch_log(const struct source *s, struct flow_log *log, uint64_t max_bytes, struct act_error *err)
{
    ACT_AUTOFREE char *dir = act_path_dirname(log->path);
    struct stat st;
    int rc = act_mkdir_all(dir, 0777, err);

    if (rc < 0)
        return rc;
    int fd = open(log->path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0 || fstat(fd, &st) < 0)
        return act_error_errno(err, errno, "cannot write '%s'", log->path);
    if ((uint64_t)st.st_size > log->size && ftruncate(fd, 0) == 0)
        st.st_size = 0;
    uint64_t have = (uint64_t)st.st_size, end = log->size;
    if (max_bytes && end - have > max_bytes)
        end = have + max_bytes;
    rc = append_log(s, fd, log->path, have, end, err);
    log->fetched = end - have;
    close(fd);
    return rc;
}

static int fetch_all(struct platform *platform, const struct flow_run *run, const struct platform_logs *logs,
                     uint64_t max_bytes, struct flow_logs *out, struct act_error *err)
{
    struct source s = {.platform = platform, .id = run->row.id, .chunk = act_alloc(CHUNK)};
    int rc = 0;

    out->v = act_calloc(logs->n, sizeof(*out->v));
    for (size_t i = 0; i < logs->n && rc == 0; i++) {
        s.name = logs->v[i].name;
        if (!act_path_is_safe(s.name, strlen(s.name))) {
            rc = act_error_set(err, ACT_FAIL, "'%s' is not a safe name for a log", s.name);
            break;
        }
        out->v[i] = (struct flow_log){
            .name = act_strdup(s.name), .path = act_path_join(out->folder, s.name), .size = logs->v[i].size};
        out->n = i + 1;
        rc = fetch_log(&s, &out->v[i], max_bytes, err);
    }
    free(s.chunk);
    return rc;
}

int flow_fetch_logs(struct flow *flow, const struct flow_run *run, uint64_t max_bytes, struct flow_logs *out,
                    struct act_error *err)
{
    ACT_AUTOFREE char *assets = act_path_join(run->row.project, "assets");
    struct platform_logs logs = {0};
    struct platform *platform;
    int rc = flow_platform_of(&run->row, &platform, err);

    (void)flow;
    *out = (struct flow_logs){.folder = act_path_join(assets, run->row.id)};
    if (rc == 0) {
        rc = platform_logs(platform, run->row.id, &logs, err);
        if (rc == 0)
            rc = fetch_all(platform, run, &logs, max_bytes, out, err);
        platform_logs_release(&logs);
        platform_free(platform);
    }
    if (rc < 0) {
        act_error_prefix(err, "cannot fetch the logs of '%s'", run->row.id);
        flow_logs_release(out);
    }
    return rc;
}

/* ---- follow */

/* How large the log is now; 0 when it is not there yet. */
static int log_size(const struct source *s, uint64_t *out, struct act_error *err)
{
    struct platform_logs logs = {0};
    int rc = platform_logs(s->platform, s->id, &logs, err);

    *out = 0;
    for (size_t i = 0; i < logs.n; i++)
        if (strcmp(logs.v[i].name, s->name) == 0)
            *out = logs.v[i].size;
    platform_logs_release(&logs);
    return rc;
}

/* The offset of the last n lines among the len bytes at text; len when there are fewer. found: how many there
 * were. */
static size_t tail_start(const char *text, size_t len, int64_t n, int64_t *found)
{
    for (size_t i = len; i > 0; i--)
        if (text[i - 1] == '\n' && (*found)++ == n)
            return i;
    return 0;
}

/* Where the last n lines begin. Looks backwards, chunk by chunk. */
static int find_tail(const struct source *s, int64_t n, uint64_t *out, struct act_error *err)
{
    uint64_t end;
    int64_t found = 0;
    int rc = log_size(s, &end, err);

    *out = 0;
    if (rc < 0 || end == 0)
        return rc;
    char last;
    size_t got;
    rc = platform_read_log(s->platform, s->id, s->name, end - 1, &last, 1, &got, err);
    if (rc < 0)
        return rc;
    if (last != '\n')
        found = 1; /* the line that has no end yet counts as one */
    while (end > 0) {
        uint64_t start = end > CHUNK ? end - CHUNK : 0;
        rc = platform_read_log(s->platform, s->id, s->name, start, s->chunk, end - start, &got, err);
        if (rc < 0)
            return rc;
        size_t at = tail_start(s->chunk, got, n, &found);
        if (at > 0) {
            *out = start + at;
            return 0;
        }
        end = start;
    }
    return 0;
}

/* Gives everything that is there from *offset on. */
static int drain(const struct source *s, const struct flow_sink *sink, uint64_t *offset,
                 struct act_error *err)
{
    size_t got = 1;
    int rc = 0;

    while (rc == 0 && got > 0) {
        rc = platform_read_log(s->platform, s->id, s->name, *offset, s->chunk, CHUNK, &got, err);
        if (rc == -ACT_NOT_FOUND)
            return 0; /* not there yet */
        if (rc == 0 && got > 0)
            rc = sink->write(sink->arg, s->chunk, got, err);
        *offset += got;
    }
    return rc;
}

static int follow(struct flow *flow, const struct source *s, struct flow_run *run,
                  const struct flow_follow *what, struct act_error *err)
{
    enum { SHORTEST_MS = 10, LONGEST_MS = 500 };
    int64_t pause_ms = SHORTEST_MS;
    uint64_t offset = 0;
    int rc = what->tail >= 0 ? find_tail(s, what->tail, &offset, err) : 0;

    for (;;) {
        bool ended = run_state_is_final(run->status.state);
        uint64_t before = offset;
        if (rc == 0)
            rc = drain(s, &what->sink, &offset, err);
        if (rc < 0 || ended || !what->follow || (what->interrupted && *what->interrupted))
            return rc;
        pause_ms = offset > before                 ? SHORTEST_MS
                   : pause_ms * 3 / 2 < LONGEST_MS ? pause_ms * 3 / 2
                                                   : LONGEST_MS;
        usleep((useconds_t)pause_ms * 1000);
        rc = flow_refresh(flow, s->platform, run, err);
    }
}

int flow_follow_log(struct flow *flow, struct flow_run *run, const struct flow_follow *what,
                    struct act_error *err)
{
    ACT_AUTOFREE char *rank0 = run_rank_log(0);
    ACT_AUTOFREE char *chunk = act_alloc(CHUNK);
    struct source s = {.id = run->row.id, .name = what->name ? what->name : rank0, .chunk = chunk};
    int rc = flow_platform_of(&run->row, &s.platform, err);

    if (rc < 0)
        return rc;
    rc = follow(flow, &s, run, what, err);
    platform_free(s.platform);
    return rc;
}
