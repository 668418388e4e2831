/* fetch.c - the logs of a run, fetched into assets/<run id>/.
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
#include "base/units.h"
#include "filter/filter.h"
#include "flow/data/data_internal.h"
#include "flow/flow_internal.h"
#include "flow/logs/logs.h"
#include "flow/runs/watch.h"
#include "flow/source/source.h"
#include "flow/trust.h"

enum { ATTEMPT_MAX = 1 << 24, REPLACED_TRIES = 3 };

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

/* The logs of a run, of which some are wanted. */
struct listed_logs {
    struct store_page page;
    int attempt; /* that writes */
    bool all;    /* nothing was left out */
    bool asked;  /* not all of their new parts came with the list */
};

/* Returns the name by which the filter knows a log at or below the path that was asked for; NULL: it lies elsewhere. */
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

static int list_wanted(const struct flow_source *from, const struct flow_run *run, const struct flow_fetch *what,
                       struct listed_logs *out, struct act_error *err)
{
    store_page_release(&out->page);
    int rc = flow_source_list(from, &out->page, err);
    size_t n = out->page.n;

    out->attempt = flow_last_attempt(&out->page);
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

static void fetch_tell(void *arg, const struct transfer_stretch *stretch, size_t bytes)
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

static int fetch_parts(struct flow *flow, const struct flow_source *from, const struct flow_fetch *what,
                       struct transfer_stretch *stretches, size_t n, struct transfer_progress *now,
                       struct act_error *err)
{
    struct teller teller = {.what = what, .now = now};

    now->listing_done = true;
    now->found_objects += n;
    for (size_t i = 0; i < n; i++)
        now->found_bytes += stretches[i].end - stretches[i].offset;
    int rc = transfer_stretches(flow_engine(flow), from->store, stretches, n, what->memory, fetch_tell, &teller, err);
    int replaced = forget_replaced(stretches, n, rc < 0 ? NULL : err); /* whatever became of the others */
    return rc < 0 ? rc : replaced;
}

/* Brings the copies up to date with the logs as they were listed. Returns how many logs were replaced meanwhile. */
static int fetch_all(struct flow *flow, const struct flow_source *from, struct listed_logs *listed,
                     const struct flow_fetch *what, struct flow_logs *out, struct act_error *err)
{
    const struct store_page *logs = &listed->page;
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
        listed->asked = listed->asked || stretch->end - stretch->offset > logs->v[out->n].came;
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

/* Tells whether some of these logs are in a folder of an earlier attempt: attempts/1/user_logs. */
static bool fetch_is_there(const struct store_page *page, int attempt, const char *name)
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
        rc = put_away(folder, moved[i], fetch_is_there(&listed->page, copied, moved[i]) ? -1 : earlier, err);
    if (earlier >= 0)
        close(earlier);
    return rc < 0 ? rc : act_file_write(path, text, strlen(text), 0666, err);
}

static int fetch_begin_anew(const struct flow_logs *logs, const struct listed_logs *listed, struct act_error *err)
{
    int folder = act_folder_below(logs->root, logs->folder, listed->attempt > 1, err);

    if (folder < 0) /* where there is no folder yet there are no copies */
        return folder == -ACT_NOT_FOUND && listed->attempt == 1 ? 0 : folder;
    int rc = replace_copies(logs, listed, folder, err);
    close(folder);
    return rc;
}

/* Says what would be fetched. */
static int plan_all(const struct flow_source *from, const struct listed_logs *logs, const struct flow_fetch *what,
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
static int fetch_attempt(struct flow *flow, struct flow_source *from, struct flow_run *run,
                         const struct flow_fetch *what, struct flow_logs *out, struct act_error *err)
{
    struct listed_logs logs = {0};
    int attempt = 0, replaced = 0, tries = 0;

    from->with_ends = !what->path && !what->plan && flow_wants_ends(run);
    int rc = list_wanted(from, run, what, &logs, err);
    from->with_ends = false;
    if (rc == 0 && what->plan)
        rc = plan_all(from, &logs, what, out, err);
    while (rc == 0 && !what->plan && (attempt != logs.attempt || (replaced > 0 && tries++ < REPLACED_TRIES))) {
        forget_fetched(out);
        attempt = logs.attempt;
        rc = fetch_begin_anew(out, &logs, err);
        if (rc == 0)
            rc = replaced = fetch_all(flow, from, &logs, what, out, err);
        if (rc < 0 || (replaced == 0 && (run_state_is_final(run->status.state) || !logs.asked)))
            break;
        rc = list_wanted(from, run, what, &logs, err);
    }
    if (rc == 0 && logs.all && !what->plan)
        rc = flow_note_complete(from, run, &logs.page, err);
    if (rc == 0 && !what->plan)
        rc = flow_saw_attempt(flow, run, attempt, err);
    store_page_release(&logs.page);
    return rc;
}

/* Returns why nothing can be written into a folder or, if it does not exist yet, into the one that it would be made in;
 * 0: nothing speaks against it. */
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

/* Opens the logs. Only a path may ask for outputs; for logs alone their copies may do. */
static int open_wanted(struct flow *flow, const struct flow_run *run, const struct flow_fetch *wanted,
                       struct flow_source *out, struct act_error *err)
{
    bool outputs = wanted->path && flow_keeps_outputs(&run->spec);
    int rc = (outputs ? flow_source_open_there : flow_source_open)(flow, run, out, err);

    out->with_outputs = outputs;
    return rc;
}

/* Finds what the path names. An output in a mapped folder is to be downloaded as a file of that folder. */
static int fetch_find_wanted(const struct flow_run *run, struct flow_fetch *wanted, struct flow_output *output,
                             struct act_error *err)
{
    int rc = wanted->path ? flow_find_output(run, wanted->path, output, err) : 0;

    if (rc <= 0)
        return rc;
    wanted->path = output->path;
    return output->folder
               ? act_error_set(err, ACT_USAGE, "'%s' is not a log, but '%s/%s' in a mapped folder: download that",
                               run->row.id, output->folder->name, output->path)
               : 0;
}

/* Keeps the folder of the copies, which is new, out of the user's 'git status', and says where it is. */
static void introduce_copies(const char *root)
{
    static const char all[] = "# made by 'a': copies of the logs of runs\n*\n";
    ACT_AUTOFREE char *path = act_path_join(root, ".gitignore");
    struct act_error ignored;
    bool existed;

    (void)!act_file_create(path, all, sizeof(all) - 1, 0644, &existed, &ignored);
    act_note("logs of runs are copied to '%s'", root);
}

int flow_fetch_logs(struct flow *flow, struct flow_run *run, const struct flow_fetch *what, struct flow_logs *out,
                    struct act_error *err)
{
    struct flow_source from = {0};
    struct flow_fetch wanted = *what;
    ACT_AUTO(flow_output) output = {0};

    *out = (struct flow_logs){.folder = flow_assets(run), .root = flow_log_folder(run->row.project)};
    int rc = flow_trust_logs(run->row.project, err);
    if (rc == 0)
        rc = fetch_find_wanted(run, &wanted, &output, err);
    if (rc == 0 && what->refresh)
        rc = flow_forget_complete(run, err);
    if (rc == 0)
        rc = open_wanted(flow, run, &wanted, &from, err);
    if (rc == 0 && from.store)
        flow_mention_limits(flow, from.store, NULL);
    if (rc == 0)
        out->unkept_errno = why_not_kept(run->row.project, out->folder);
    bool is_first = rc == 0 && access(out->root, F_OK) < 0;
    if (rc == 0 && !out->unkept_errno)
        rc = fetch_attempt(flow, &from, run, &wanted, out, err);
    if (rc == 0 && is_first && access(out->root, F_OK) == 0)
        introduce_copies(out->root);
    flow_source_close(&from);
    if (rc < 0) {
        act_error_prefix(err, "cannot fetch the logs of '%s'", run->row.id);
        flow_logs_release(out);
    }
    return rc;
}

/* Whoever fetches them says why it cannot. */
void flow_expect_logs_of(struct flow *flow, const struct flow_run *runs, size_t n)
{
    struct platform *platform;
    struct act_error ignored;

    for (size_t i = 0; i < n; i++)
        if (runs[i].status.state != RUN_QUEUED && !runs[i].status.unsubmitted &&
            (flow_platform_of(flow, &runs[i].row, &platform, &ignored) < 0 ||
             flow_expect_logs(platform, &runs[i], &ignored) < 0))
            return;
}
