/* logs.c - logs of a run: fetched into assets/<run id>/, or followed as they grow.
 *
 * The logs of the last attempt have their plain names, those of earlier ones are below attempts/<n>/: so the list of
 * logs tells which attempt is writing, whatever the scheduler says meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text.h"
#include "base/units.h"
#include "filter/filter.h"
#include "flow/data/data_internal.h"
#include "flow/flow_internal.h"
#include "flow/runs/logs_internal.h"
#include "flow/runs/runs_internal.h"
#include "flow/trust.h"
#include "platform/platform.h"
#include "run/run.h"
#include "transfer/transfer.h"

enum { CHUNK = 8 << 20, ATTEMPT_MAX = 1 << 24, REPLACED_TRIES = 3 };

static void forget_fetched(struct flow_logs *logs)
{
    for (size_t i = 0; i < logs->n; i++) {
        free(logs->v[i].name);
        free(logs->v[i].path);
    }
    free(logs->v);
    logs->v = NULL;
    logs->n = 0;
}

void flow_logs_release(struct flow_logs *logs)
{
    forget_fetched(logs);
    free(logs->folder);
    free(logs->root);
    logs->folder = logs->root = NULL;
}

/* "attempts/2/...": 2; 0 for other names. */
static int logs_attempt_of(const char *name)
{
    static const char prefix[] = RUN_DIR_ATTEMPTS "/";
    int64_t n;

    if (!act_starts_with(name, prefix))
        return 0;
    name += strlen(prefix);
    ACT_AUTOFREE char *number = act_strndup(name, strcspn(name, "/"));
    return act_int_from_text(number, &n) && n > 0 && n < ATTEMPT_MAX ? (int)n : 0;
}

static int logs_last_attempt(const struct store_page *logs)
{
    int last = 0;

    for (size_t i = 0; i < logs->n; i++)
        last = logs_attempt_of(logs->v[i].key) > last ? logs_attempt_of(logs->v[i].key) : last;
    return last + 1;
}

/* The logs of a run, of which some are wanted. */
struct listed_logs {
    struct store_page page;
    int attempt; /* that writes */
    bool all;    /* nothing was left out */
};

/* At or below the path that was asked for: what the filter knows it by; NULL: it lies elsewhere. */
static const char *below_path(const struct flow_fetch *what, const char *name)
{
    const char *path = what->path ? what->path : "";
    size_t len = strlen(path);

    if (len == 0)
        return name;
    if (path[len - 1] == '/')
        return act_starts_with(name, path) ? name + len : NULL;
    if (strcmp(name, path) == 0)
        return act_path_basename(name);
    return act_path_is_within(name, path) ? name + len + 1 : NULL;
}

/* Drops the others. Returns how many lie below the path, whether the filter takes them or not. */
static size_t keep_wanted(const struct flow_fetch *what, struct store_page *logs)
{
    size_t n = 0, below = 0;

    for (size_t i = 0; i < logs->n; i++) {
        const char *rel = below_path(what, logs->v[i].key);
        below += rel != NULL;
        if (rel && (!what->filter || filter_takes(what->filter, rel, false)))
            logs->v[n++] = logs->v[i];
        else
            store_entry_release(&logs->v[i]);
    }
    logs->n = n;
    return below;
}

static int list_wanted(const struct flow_log_source *from, const struct flow_run *run, const struct flow_fetch *what,
                       struct listed_logs *out, struct act_error *err)
{
    store_page_release(&out->page);
    int rc = flow_log_source_list(from, &out->page, err);
    size_t n = out->page.n;

    out->attempt = logs_last_attempt(&out->page);
    if (rc == 0 && keep_wanted(what, &out->page) == 0 && what->path && *what->path)
        rc = act_error_set(err, ACT_NOT_FOUND, "it has no log '%s'; 'a ls -r %s:' lists those it has", what->path,
                           run->row.id);
    out->all = out->page.n == n;
    return rc;
}

/* Tells how far it is, now and then. */
struct teller {
    const struct flow_fetch *what;
    struct transfer_progress *now;
    int64_t next_ms;
};

static void logs_tell(void *arg, const struct transfer_stretch *stretch, size_t bytes)
{
    enum { EVERY_MS = 200 };
    struct teller *t = arg;
    int64_t ms = act_now_monotonic_ms();

    t->now->done_bytes += bytes;
    t->now->done_objects += stretch->offset + stretch->got == stretch->end;
    if (t->what->progress && ms >= t->next_ms) {
        t->what->progress(t->what->arg, t->now);
        t->next_ms = ms + EVERY_MS;
    }
}

/* Copies of logs whose place another one has taken meanwhile. Returns how many. */
static int forget_replaced(const struct transfer_stretch *stretches, size_t n, struct act_error *err)
{
    int replaced = 0;

    for (size_t i = 0; i < n; i++) {
        const struct flow_copy *copy = stretches[i].arg;
        if (!stretches[i].replaced)
            continue;
        int fd = act_open_below(copy->root, copy->path, O_WRONLY | O_TRUNC, err);
        if (fd < 0)
            return fd;
        close(fd);
        replaced++;
    }
    return replaced;
}

static int fetch_parts(struct flow *flow, const struct flow_log_source *from, const struct flow_fetch *what,
                       struct transfer_stretch *stretches, size_t n, struct transfer_progress *now,
                       struct act_error *err)
{
    struct teller teller = {.what = what, .now = now};

    now->listing_done = true;
    now->found_objects += n;
    for (size_t i = 0; i < n; i++)
        now->found_bytes += stretches[i].end - stretches[i].offset;
    int rc = transfer_stretches(flow_engine(flow), from->store, stretches, n, what->memory, logs_tell, &teller, err);
    int replaced = forget_replaced(stretches, n, rc < 0 ? NULL : err); /* whatever became of the others */
    return rc < 0 ? rc : replaced;
}

/* Brings the copies up to date with the logs as they were listed. Returns how many logs were replaced meanwhile. */
static int fetch_all(struct flow *flow, const struct flow_log_source *from, const struct store_page *logs,
                     const struct flow_fetch *what, struct flow_logs *out, struct act_error *err)
{
    ACT_AUTOFREE struct transfer_stretch *stretches = act_calloc(logs->n + 1, sizeof(*stretches));
    ACT_AUTOFREE struct flow_copy *copies = act_calloc(logs->n + 1, sizeof(*copies));
    size_t n = 0;
    int rc = 0;

    out->v = act_calloc(logs->n + 1, sizeof(*out->v));
    for (; out->n < logs->n && rc == 0; out->n++) {
        const char *name = logs->v[out->n].key;
        struct flow_log *log = &out->v[out->n];
        struct transfer_stretch *stretch = &stretches[n];
        *log = (struct flow_log){
            .name = act_strdup(name), .path = act_path_join(out->folder, name), .size = logs->v[out->n].size};
        copies[n] = (struct flow_copy){.path = log->path, .root = out->root};
        rc = act_path_is_safe(name, strlen(name))
                 ? flow_begin_copy(&copies[n], log->name, log->size, what->refresh ? 0 : from->whole_ns, stretch, err)
                 : act_error_set(err, ACT_FAIL, "'%s' is not a safe name for a log", name);
        if (what->max_bytes && stretch->end - stretch->offset > what->max_bytes)
            stretch->end = stretch->offset + what->max_bytes;
        n += rc == 0 && stretch->offset < stretch->end;
    }
    out->total.same_objects = logs->n - n;
    if (rc == 0)
        rc = fetch_parts(flow, from, what, stretches, n, &out->total, err);
    return rc;
}

/* The file in assets/<run id>/ that says of which attempt the copies are, where that is not the first. */
#define ATTEMPT_FILE ".attempt"

static int copied_attempt(int folder)
{
    enum { NUMBER_MAX = 32 };
    ACT_AUTOFREE char *path = act_held_path(folder, ATTEMPT_FILE);
    ACT_AUTOFREE char *text = NULL;
    int64_t n;
    size_t len;

    if (act_file_read_regular(path, NUMBER_MAX, &text, &len, NULL) < 0 || len == 0)
        return 1;
    text[len - 1] = '\0'; /* the line's end */
    return act_int_from_text(text, &n) && n > 0 && n < ATTEMPT_MAX ? (int)n : 1;
}

/* Whether some of these logs are in a folder of an earlier attempt: attempts/1/user_logs. */
static bool logs_is_there(const struct store_page *page, int attempt, const char *name)
{
    ACT_AUTOFREE char *below = act_sprintf(RUN_DIR_ATTEMPTS "/%d/%s/", attempt, name);

    for (size_t i = 0; i < page->n; i++)
        if (act_starts_with(page->v[i].key, below))
            return true;
    return false;
}

/* Moves the copies of one folder into that of their attempt, or removes them. */
static int put_away(int folder, const char *name, int attempt_folder, struct act_error *err)
{
    ACT_AUTOFREE char *copies = act_held_path(folder, name);

    if (attempt_folder >= 0 && renameat(folder, name, attempt_folder, name) == 0)
        return 0;
    return act_remove_tree(copies, err);
}

/* Copies of another attempt's logs are no beginning of this one's: they go, and those below attempts/ are fetched in
 * their place. Where the platform has those no more, as it took the nodes away, the copies are all that is left of
 * them, and become theirs. */
static int replace_copies(const struct flow_logs *logs, const struct listed_logs *listed, int folder,
                          struct act_error *err)
{
    static const char *const moved[] = {RUN_DIR_USER, RUN_DIR_SYSTEM, RUN_DIR_METRICS};
    int copied = copied_attempt(folder), rc = 0;
    ACT_AUTOFREE char *path = act_held_path(folder, ATTEMPT_FILE);
    ACT_AUTOFREE char *text = act_sprintf("%d\n", listed->attempt);
    ACT_AUTOFREE char *below = act_sprintf("%s/" RUN_DIR_ATTEMPTS "/%d", logs->folder, copied);
    struct act_error ignored;

    if (copied == listed->attempt)
        return 0;
    int earlier = act_folder_below(logs->root, below, copied < listed->attempt, &ignored);
    for (size_t i = 0; i < sizeof(moved) / sizeof(moved[0]) && rc == 0; i++)
        rc = put_away(folder, moved[i], logs_is_there(&listed->page, copied, moved[i]) ? -1 : earlier, err);
    if (earlier >= 0)
        close(earlier);
    return rc < 0 ? rc : act_file_write(path, text, strlen(text), 0666, err);
}

static int logs_begin_anew(const struct flow_logs *logs, const struct listed_logs *listed, struct act_error *err)
{
    int folder = act_folder_below(logs->root, logs->folder, listed->attempt > 1, err);

    if (folder < 0) /* where there is no folder yet there are no copies */
        return folder == -ACT_NOT_FOUND && listed->attempt == 1 ? 0 : folder;
    int rc = replace_copies(logs, listed, folder, err);
    close(folder);
    return rc;
}

/* Says what would be fetched. */
static int plan_all(const struct flow_log_source *from, const struct listed_logs *logs, const struct flow_fetch *what,
                    struct flow_logs *out, struct act_error *err)
{
    struct transfer_progress *total = &out->total;
    int folder = act_folder_below(out->root, out->folder, false, err);
    bool any = folder >= 0 && copied_attempt(folder) == logs->attempt;

    if (folder < 0 && folder != -ACT_NOT_FOUND)
        return folder;
    if (folder >= 0)
        close(folder);
    for (size_t i = 0; i < logs->page.n; i++) {
        const struct store_entry *log = &logs->page.v[i];
        ACT_AUTOFREE char *path = act_path_join(out->folder, log->key);
        uint64_t have = any ? flow_copied(out->root, path, log->size, from->whole_ns) : 0;
        total->same_objects += have == log->size;
        if (have == log->size)
            continue;
        total->found_objects++;
        total->found_bytes += log->size - have;
        what->plan(what->arg, log->key, log->size - have, have == 0);
    }
    return 0;
}

/* An attempt that begins meanwhile takes the logs away from under the names they had: then all is done again. So it is
 * when another log has taken the place of one; where that happens again and again, it is left to the next time. */
static int fetch_attempt(struct flow *flow, const struct flow_log_source *from, struct flow_run *run,
                         const struct flow_fetch *what, struct flow_logs *out, struct act_error *err)
{
    struct listed_logs logs = {0};
    int rc = list_wanted(from, run, what, &logs, err), attempt = 0, replaced = 0, tries = 0;

    if (rc == 0 && what->plan)
        rc = plan_all(from, &logs, what, out, err);
    while (rc == 0 && !what->plan && (attempt != logs.attempt || (replaced > 0 && tries++ < REPLACED_TRIES))) {
        forget_fetched(out);
        attempt = logs.attempt;
        rc = logs_begin_anew(out, &logs, err);
        if (rc == 0)
            rc = replaced = fetch_all(flow, from, &logs.page, what, out, err);
        if (rc < 0 || (replaced == 0 && run_state_is_final(run->status.state)))
            break;
        rc = list_wanted(from, run, what, &logs, err);
    }
    if (rc == 0 && logs.all && !what->plan)
        rc = flow_log_source_complete(from, run, &logs.page, out, err);
    if (rc == 0 && !what->plan)
        rc = flow_saw_attempt(flow, run, attempt, err);
    store_page_release(&logs.page);
    return rc;
}

/* Why nothing can be written into a folder or, where it does not exist yet, into the one that it would be made in; 0:
 * nothing speaks against it. */
static int why_not_writable(const char *folder)
{
    ACT_AUTOFREE char *at = act_strdup(folder);

    while (access(at, F_OK) < 0 && errno == ENOENT && strcmp(at, "/") != 0) {
        char *parent = act_path_dirname(at);
        free(at);
        at = parent;
    }
    return access(at, W_OK | X_OK) < 0 && (errno == EROFS || errno == EACCES) ? errno : 0;
}

/* A project that was moved is not made again by a look at its runs. */
static int why_not_kept(const char *project, const char *folder)
{
    return act_path_is_within(folder, project) && access(project, F_OK) < 0 ? errno : why_not_writable(folder);
}

/* What was not asked for by a path is logs alone, whose copies may do. */
static int open_wanted(struct flow *flow, const struct flow_run *run, const struct flow_fetch *wanted,
                       struct flow_log_source *out, struct act_error *err)
{
    bool outputs = wanted->path && flow_keeps_outputs(&run->spec);
    int rc = (outputs ? flow_log_source_open_there : flow_log_source_open)(flow, run, out, err);

    out->with_outputs = outputs;
    return rc;
}

/* What is in a mapped folder has its place there, here too. */
static int logs_find_wanted(const struct flow_run *run, struct flow_fetch *wanted, struct flow_output *output,
                            struct act_error *err)
{
    int rc = wanted->path ? flow_find_output(run, wanted->path, output, err) : 0;

    if (rc <= 0)
        return rc;
    wanted->path = output->path;
    return output->folder
               ? act_error_set(err, ACT_USAGE, "'%s' is no log, but '%s/%s' in a mapped folder: download that",
                               run->row.id, output->folder->name, output->path)
               : 0;
}

int flow_fetch_logs(struct flow *flow, struct flow_run *run, const struct flow_fetch *what, struct flow_logs *out,
                    struct act_error *err)
{
    struct flow_log_source from = {0};
    struct flow_fetch wanted = *what;
    ACT_AUTO(flow_output) output = {0};

    *out = (struct flow_logs){.folder = flow_assets(run), .root = flow_log_folder(run->row.project)};
    int rc = flow_trust_logs(run->row.project, err);
    if (rc == 0)
        rc = logs_find_wanted(run, &wanted, &output, err);
    if (rc == 0 && what->refresh)
        rc = flow_forget_complete(run, err);
    if (rc == 0)
        rc = open_wanted(flow, run, &wanted, &from, err);
    if (rc == 0 && from.store)
        flow_mention_limits(flow, from.store, NULL);
    if (rc == 0)
        out->unkept_errno = why_not_kept(run->row.project, out->folder);
    if (rc == 0 && !out->unkept_errno)
        rc = fetch_attempt(flow, &from, run, &wanted, out, err);
    flow_log_source_close(&from);
    if (rc < 0) {
        act_error_prefix(err, "cannot fetch the logs of '%s'", run->row.id);
        flow_logs_release(out);
    }
    return rc;
}

/* ---- follow */

/* The offset of the last n lines among the len bytes at text; len when there are fewer. found: how many there
 * were. */
static size_t tail_start(const char *text, size_t len, int64_t n, int64_t *found)
{
    for (size_t i = len; i > 0; i--)
        if (text[i - 1] == '\n' && (*found)++ == n)
            return i;
    return 0;
}

/* Where the last n lines of the first end bytes of a log begin. Looks backwards, chunk by chunk. */
static int find_tail(const struct flow_log_source *from, const char *name, int64_t n, uint64_t end, uint64_t *out,
                     struct act_error *err)
{
    ACT_AUTOFREE char *chunk = act_alloc(CHUNK);
    int64_t found = -1;

    *out = n == 0 ? end : 0;
    while (end > 0 && n > 0) {
        uint64_t start = end > CHUNK ? end - CHUNK : 0;
        size_t got;
        int rc = flow_log_source_read(from, name, start, chunk, end - start, &got, err);
        if (rc < 0)
            return rc;
        if (found < 0) /* the line that has no end yet counts as one */
            found = got > 0 && chunk[got - 1] != '\n';
        size_t at = tail_start(chunk, got, n, &found);
        if (at > 0) {
            *out = start + at;
            return 0;
        }
        end = start;
    }
    return 0;
}

/* A log that is followed. */
struct stream {
    int rank;   /* with flow_follow.all */
    char *name; /* in the last attempt */
    uint64_t offset;
    bool seen;           /* it is, or was, there */
    struct act_buf line; /* with flow_follow.all: what there is of a line that has no end yet */
};

struct follower {
    struct flow *flow;
    struct flow_run *run;
    const struct flow_follow *what;
    struct flow_log_source from;
    struct flow_watch watch; /* of which the source knows as long as it is open */
    struct store_page logs;
    int attempt; /* the one that is read; 0: not known yet */
    struct stream *v;
    size_t n;
    bool moved;   /* there was something new in this round */
    bool grew;    /* logs did, at some time */
    bool aborted; /* the run, by heed_signal() */
    bool lingers; /* that it takes long to end was said */
    bool waits;   /* what the run waits for was said */
};

static void add_stream(struct follower *f, size_t at, int rank, const char *name)
{
    ACT_GROW(f->v, f->n);
    memmove(f->v + at + 1, f->v + at, (f->n++ - at) * sizeof(*f->v));
    f->v[at] = (struct stream){.rank = rank, .name = act_strdup(name)};
}

/* Ranks come one after the other; their logs stay sorted. */
static void find_ranks(struct follower *f, const char *prefix)
{
    for (size_t i = 0; i < f->logs.n; i++) {
        const char *name = f->logs.v[i].key;
        if (!act_starts_with(name, prefix))
            continue;
        int rank = run_log_rank(name + strlen(prefix), NULL);
        size_t at = f->n;
        while (at > 0 && f->v[at - 1].rank > rank)
            at--;
        if (rank >= 0 && (at == 0 || f->v[at - 1].rank < rank))
            add_stream(f, at, rank, name + strlen(prefix));
    }
}

static int against_key(const void *key, const void *log)
{
    return strcmp(key, ((const struct store_entry *)log)->key);
}

static int give_line(const struct follower *f, struct stream *s, struct act_error *err)
{
    int rc = f->what->line(f->what->sink.arg, s->rank, s->line.data ? s->line.data : "", s->line.len, err);

    s->line.len = 0;
    return rc;
}

static int give_lines(const struct follower *f, struct stream *s, const char *text, size_t len, struct act_error *err)
{
    enum { LINE_MAX_BYTES = 64 << 10 };
    int rc = 0;

    while (len > 0 && rc == 0) {
        const char *end = memchr(text, '\n', len);
        size_t n = end ? (size_t)(end - text) : len;
        bool too_long = n > LINE_MAX_BYTES - s->line.len;
        if (too_long)
            n = LINE_MAX_BYTES - s->line.len;
        act_buf_add(&s->line, text, n);
        if (too_long || end)
            rc = give_line(f, s, err);
        n += !too_long && end;
        text += n;
        len -= n;
    }
    return rc;
}

struct draining {
    const struct follower *f;
    struct stream *s;
};

static int logs_give(void *arg, uint64_t at, const void *data, size_t len, struct act_error *err)
{
    const struct draining *d = arg;
    const struct flow_follow *what = d->f->what;

    d->s->offset = at + len;
    return what->all ? give_lines(d->f, d->s, data, len, err) : what->sink.write(what->sink.arg, data, len, err);
}

/* Gives what the log has between the stream's offset and end. A log that is gone was moved by a new attempt, which the
 * next round finds. */
static int logs_drain(struct follower *f, struct stream *s, const char *name, uint64_t end, struct act_error *err)
{
    struct draining draining = {.f = f, .s = s};
    struct transfer_stretch stretch = {
        .key = name, .offset = s->offset, .end = end, .write = logs_give, .arg = &draining};
    int rc =
        s->offset < end ? transfer_stretches(flow_engine(f->flow), f->from.store, &stretch, 1, 0, NULL, NULL, err) : 0;

    f->moved = f->moved || stretch.got > 0;
    return rc;
}

/* The rank's log has the name that its platform gives it. */
static void find_rank(struct follower *f, const char *prefix)
{
    struct stream *s = &f->v[0];
    const struct store_entry *log = flow_find_rank_log(&f->logs, prefix, f->what->rank);

    if (s->offset > 0 || !log)
        return;
    free(s->name);
    s->name = act_strdup(log->key + strlen(prefix));
}

/* A service that starts a run anew under the same names lets the log begin anew. A size of 0 may be one that is not
 * known. */
static int notice_restart(const struct follower *f, struct stream *s, const struct store_entry *log,
                          struct act_error *err)
{
    if (!log || log->size == 0 || log->size >= s->offset)
        return 0;
    act_note("log '%s' begins anew", log->key);
    s->offset = 0;
    return s->line.len > 0 ? give_line(f, s, err) : 0;
}

/* A round over all streams, as the logs of an attempt stand. */
static int drain_attempt(struct follower *f, int attempt, int last, bool from_tail, struct act_error *err)
{
    ACT_AUTOFREE char *prefix = attempt < last ? act_sprintf(RUN_DIR_ATTEMPTS "/%d/", attempt) : act_strdup("");
    int rc = 0;

    if (f->what->all)
        find_ranks(f, prefix);
    else if (!f->what->name)
        find_rank(f, prefix);
    for (size_t i = 0; i < f->n && rc == 0; i++) {
        struct stream *s = &f->v[i];
        ACT_AUTOFREE char *name = act_sprintf("%s%s", prefix, s->name);
        const struct store_entry *log =
            f->logs.n ? bsearch(name, f->logs.v, f->logs.n, sizeof(*f->logs.v), against_key) : NULL;
        s->seen = s->seen || log;
        rc = notice_restart(f, s, log, err);
        if (rc == 0 && log && from_tail)
            rc = find_tail(&f->from, name, f->what->tail, log->size, &s->offset, err);
        if (log && rc == 0)
            rc = logs_drain(f, s, name, log->size, err);
    }
    return rc;
}

/* Lines that will never have an end. */
static int give_rest(struct follower *f, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < f->n && rc == 0; i++)
        if (f->v[i].line.len > 0)
            rc = give_line(f, &f->v[i], err);
    return rc;
}

/* What is left of an attempt that has ended, then the next one from its start. */
static int change_attempt(struct follower *f, int last, struct act_error *err)
{
    int rc = drain_attempt(f, f->attempt, last, false, err);

    if (rc == 0)
        rc = give_rest(f, err);
    if (rc < 0)
        return rc;
    act_note("attempt %d begins", ++f->attempt);
    for (size_t i = 0; i < f->n; i++)
        f->v[i].offset = 0;
    return 0;
}

static bool is_follow_over(const struct follower *f)
{
    return f->what->attempt > 0 && f->attempt == f->what->attempt && f->attempt < logs_last_attempt(&f->logs);
}

static int choose_attempt(struct follower *f, int last, struct act_error *err)
{
    if (f->what->attempt > last)
        return act_error_set(err, ACT_NOT_FOUND, "run '%s' has had %d attempt%s, not %d", f->run->row.id, last,
                             last == 1 ? "" : "s", f->what->attempt);
    f->attempt = f->what->attempt > 0 ? f->what->attempt : last;
    return drain_attempt(f, f->attempt, last, f->what->tail >= 0, err);
}

/* A round over what was listed. */
static int follow_round(struct follower *f, struct act_error *err)
{
    int last = logs_last_attempt(&f->logs), rc = flow_saw_attempt(f->flow, f->run, last, err);

    if (rc == 0 && f->attempt == 0)
        return choose_attempt(f, last, err);
    while (rc == 0 && f->attempt < last && f->what->attempt == 0)
        rc = change_attempt(f, last, err);
    return rc < 0 ? rc : drain_attempt(f, f->attempt, last, false, err);
}

/* When logs that grew grow no more, the run has ended, or is about to. */
static void look_at_growth(struct follower *f)
{
    bool grows = false;

    for (size_t i = 0; i < f->logs.n && !grows; i++)
        grows = f->logs.v[i].grows;
    if (f->grew && !grows)
        f->watch.due_ms = 0;
    if (f->grew && !grows && f->watch.tells)
        f->watch.round_ms = 0; /* as at the beginning */
    f->grew = f->grew || grows;
}

/* So that a sink that collects lines gives them out. */
static int end_round(const struct follower *f, struct act_error *err)
{
    return f->what->all && f->moved ? f->what->sink.write(f->what->sink.arg, "", 0, err) : 0;
}

/* Every log is asked for in every round, but those of a source that tells are there when they are listed. */
static int timed_round(struct follower *f, struct act_error *err)
{
    int64_t start = act_now_monotonic_ms();
    bool by_request = f->from.platform && platform_row(f->from.platform)->about.answers_by_request;

    store_page_release(&f->logs);
    f->moved = false;
    int rc = flow_log_source_list(&f->from, &f->logs, err);
    int64_t listed = act_now_monotonic_ms();
    if (rc == 0)
        rc = follow_round(f, err);
    int64_t end = f->watch.tells ? listed : act_now_monotonic_ms();
    f->watch.round_ms = by_request ? end - start : 0;
    return rc;
}

/* At the first signal; what the command prints at its end is followed as well, however long it takes: what it wrote may
 * be on its way to a store. */
static int heed_signal(struct follower *f, struct act_error *err)
{
    bool ignored;

    if (f->aborted || !f->what->interrupted || !*f->what->interrupted)
        return 0;
    int rc = flow_abort(f->flow, f->run, &ignored, err);
    f->aborted = rc != -ACT_TIMEOUT;
    if (f->aborted)
        return rc;
    if (!f->lingers)
        act_note("run %s was told to end and has not ended yet: what it wrote may be on its way to its store",
                 f->run->row.id);
    f->lingers = true;
    return 0;
}

static bool has_seen_any(const struct follower *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].seen)
            return true;
    return false;
}

/* Once: while a run is queued there is nothing else to see of it. */
static void say_what_it_waits_for(struct follower *f, int64_t begun_ms)
{
    enum { PATIENCE_MS = 2000 }; /* as long as it may be no more than on its way */
    const struct run_status *s = &f->run->status;
    bool is_new = !*s->reason && act_now_monotonic_ms() - begun_ms < PATIENCE_MS;

    if (f->waits || !f->what->follow || s->state != RUN_QUEUED || is_new || has_seen_any(f))
        return;
    f->waits = true;
    act_note("run '%s' is queued%s%s", f->run->row.id, *s->reason ? ": " : "", s->reason);
}

static int logs_follow(struct follower *f, struct act_error *err)
{
    const struct flow_follow *what = f->what;
    struct flow_watch *watch = &f->watch;
    int64_t begun_ms = act_now_monotonic_ms();

    watch->tells = what->follow && f->from.store && store_watch(f->from.store, &watch->news);
    if (what->follow && f->from.platform)
        flow_watch_begin(watch, f->from.platform);
    for (;;) {
        /* the state was asked for just before this began */
        int rc = f->attempt ? flow_watch_look(watch, f->flow, f->from.platform, &f->run, 1, err) : 0;
        bool ended = run_state_is_final(f->run->status.state);
        if (rc == 0)
            rc = timed_round(f, err);
        look_at_growth(f);
        if (rc == 0)
            rc = end_round(f, err);
        if (what->follow)
            rc = flow_watch_took(watch, rc, err);
        if (rc < 0 || !what->follow || (ended && !watch->trial_ms) || is_follow_over(f))
            return rc;
        rc = heed_signal(f, err);
        if (rc < 0)
            return rc;
        say_what_it_waits_for(f, begun_ms);
        flow_watch_pause(watch, f->flow, f->moved, 0);
    }
}

/* A log that is not there yet, or that a run has ended without. */
static int check_seen(const struct follower *f, struct act_error *err)
{
    const struct flow_run *run = f->run;
    bool seen = false;

    for (size_t i = 0; i < f->n; i++)
        seen = seen || f->v[i].seen;
    if (seen)
        return 0;
    ACT_AUTOFREE char *what = f->what->all ? act_strdup("log of a rank") : act_sprintf("log '%s'", f->v[0].name);
    if (!run_state_is_final(run->status.state)) {
        act_note("run '%s' is %s and has no %s yet", run->row.id, run_state_name(run->status.state), what);
        return 0;
    }
    return act_error_set(err, ACT_NOT_FOUND, "run '%s' is %s and has no %s; 'a q %s' lists those it has", run->row.id,
                         run_state_name(run->status.state), what, run->row.id);
}

static void release_follower(struct follower *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->v[i].name);
        act_buf_release(&f->v[i].line);
    }
    free(f->v);
    store_page_release(&f->logs);
    if (f->what->follow && f->from.platform)
        flow_watch_end(f->from.platform);
    flow_log_source_close(&f->from);
}

int flow_follow_log(struct flow *flow, struct flow_run *run, const struct flow_follow *what, struct act_error *err)
{
    ACT_AUTOFREE char *rank_log = run_rank_log(what->rank);
    struct follower f = {.flow = flow, .run = run, .what = what};
    ACT_AUTO(flow_output) output = {0};
    int rc = what->name ? flow_find_output(run, what->name, &output, err) : 0;

    if (rc >= 0)
        rc = output.folder ? flow_log_source_open_output(flow, run, &output, &f.from, err)
             : output.path ? flow_log_source_open_there(flow, run, &f.from, err)
                           : flow_log_source_open(flow, run, &f.from, err);
    f.from.with_outputs = output.path && !output.folder;
    const char *name = f.from.only ? f.from.only : output.path ? output.path : what->name;
    if (!what->all)
        add_stream(&f, 0, 0, name ? name : rank_log);
    if (rc == 0)
        rc = logs_follow(&f, err);
    if (rc == 0)
        rc = give_rest(&f, err);
    if (rc == 0 && what->must_exist)
        rc = check_seen(&f, err);
    release_follower(&f);
    return rc;
}
