/* source.c - where the logs of a run are read: at its platform, or in assets/<run id>/ once all of them are there.
 *
 * Where every question is a request to a service, the copies of an ended run answer instead of it, as soon as they are
 * whole (complete.c) and until the user asks for a fresh look.
 */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "base/units.h"
#include "flow/flow_internal.h"
#include "flow/source/source.h"

/* Opens the folder of the copies. */
static int source_open_folder(struct flow *flow, const struct flow_run *run, struct store **out, struct act_error *err)
{
    ACT_AUTOFREE char *folder = flow_assets(run);
    ACT_AUTOFREE char *root = flow_log_folder(run->row.project);
    int fd = act_folder_below(root, folder, false, err);

    if (fd < 0)
        return fd;
    ACT_AUTOFREE char *held = act_held_path(fd, ".");
    int rc = store_folder_open(flow_http(flow), held, false, out, err);
    close(fd);
    return rc;
}

/* Opens the copies, if they are all there. */
static int open_copies(struct flow *flow, const struct flow_run *run, struct flow_source *out, struct act_error *err)
{
    if (!flow_read_complete(run, &out->copies, &out->whole_ns) ||
        !platform_row(out->platform)->about.answers_by_request)
        return 0;
    int rc = source_open_folder(flow, run, &out->store, err);
    out->is_copies = rc == 0;
    return rc;
}

int flow_source_open_here(struct flow *flow, const struct flow_run *run, struct flow_source *out, struct act_error *err)
{
    *out = (struct flow_source){.whole_ns = INT64_MAX};
    return source_open_folder(flow, run, &out->store, err);
}

/* Returns the platform's store, and behind it what the nodes have sent. */
static struct store *source_open_logs(struct flow *flow, const struct flow_run *run, struct flow_source *out,
                                      bool ended)
{
    struct store *live = platform_open_logs(out->platform, run->row.id, ended);
    struct act_error err;

    if (flow_sent_open(flow, run, &out->sent, &err) < 0 && ended)
        act_warn("%s", act_error_text(&err));
    if (!out->sent.store)
        return live;
    struct store *sent = out->sent.store;
    out->sent.store = NULL;
    return store_sent_open(
        flow_http(flow),
        &(struct store_sent_options){
            .id = run->row.id, .live = live, .sent = sent, .path = out->sent.path, .attempt = run->status.attempt});
}

static int open_source(struct flow *flow, const struct flow_run *run, bool copies_do, struct flow_source *out,
                       struct act_error *err)
{
    bool ended = run_state_is_final(run->status.state);

    *out = (struct flow_source){.whole_ns = INT64_MAX};
    int rc = run->status.unsubmitted ? 0 : flow_platform_of(flow, &run->row, &out->platform, err);

    if (rc == 0 && out->platform && ended && copies_do)
        rc = open_copies(flow, run, out, err);
    if (rc == 0 && out->platform && !out->is_copies)
        out->store = source_open_logs(flow, run, out, ended);
    return rc;
}

int flow_source_open(struct flow *flow, const struct flow_run *run, struct flow_source *out, struct act_error *err)
{
    return open_source(flow, run, true, out, err);
}

int flow_source_open_there(struct flow *flow, const struct flow_run *run, struct flow_source *out,
                           struct act_error *err)
{
    return open_source(flow, run, false, out, err);
}

int flow_source_open_output(struct flow *flow, const struct flow_run *run, const struct flow_output *output,
                            struct flow_source *out, struct act_error *err)
{
    *out = (struct flow_source){.whole_ns = INT64_MAX, .only = act_path_join(output->folder->path, output->path)};
    int rc = flow_platform_of(flow, &run->row, &out->platform, err);

    if (rc == 0)
        rc = flow_open_project_of(flow, run, &out->sent.project, err);
    return rc < 0 ? rc : flow_open_folder_of_run(&out->sent.project, &run->spec, output->folder, &out->store, err);
}

void flow_source_close(struct flow_source *s)
{
    store_page_release(&s->copies);
    store_free(s->store);
    free(s->only);
    flow_sent_close(&s->sent);
    *s = (struct flow_source){0};
}

bool flow_wants_ends(const struct flow_run *run)
{
    ACT_AUTOFREE char *folder = flow_assets(run);

    return !run_state_is_final(run->status.state) || access(folder, F_OK) < 0;
}

int flow_expect_logs(struct platform *platform, const struct flow_run *run, struct act_error *err)
{
    return platform_expect_logs(platform, run->row.id, flow_wants_ends(run), err);
}

static void list_copies(const struct store_page *copies, struct store_page *out)
{
    for (size_t i = 0; i < copies->n; i++) {
        struct store_entry *entry = store_page_add(out);
        *entry = copies->v[i];
        entry->key = act_strdup(entry->key);
    }
}

/* ACT keeps outputs only where runs share a folder; elsewhere such a name is that of a log of the service. */
static void drop_outputs(const struct flow_source *s, struct store_page *logs)
{
    size_t n = 0;

    if (s->with_outputs || (s->platform && !platform_row(s->platform)->about.nodes_share_folder))
        return;
    for (size_t i = 0; i < logs->n; i++)
        if (act_starts_with(logs->v[i].key, RUN_DIR_OUTPUTS "/"))
            store_entry_release(&logs->v[i]);
        else
            logs->v[n++] = logs->v[i];
    logs->n = n;
}

int flow_source_list(const struct flow_source *s, struct store_page *out, struct act_error *err)
{
    struct store_call call = {.op = STORE_LIST,
                              .key = s->only ? s->only : "",
                              .list = {.by_news = s->by_news, .follows = s->follows, .with_ends = s->with_ends}};
    int rc = s->store && !s->is_copies ? store_do(s->store, &call, err) : 0;

    *out = call.list.page;
    call.list.page = (struct store_page){0};
    store_call_release(&call);
    if (s->is_copies)
        list_copies(&s->copies, out);
    if (!s->only)
        drop_outputs(s, out);
    return rc;
}

int flow_source_read(const struct flow_source *s, const char *name, uint64_t offset, void *data, size_t len,
                     size_t *out_got, struct act_error *err)
{
    struct store_call call = {.op = STORE_GET, .key = name, .get = {.offset = offset, .sink = data, .sink_cap = len}};
    int rc = store_do(s->store, &call, err);

    *out_got = call.get.got;
    store_call_release(&call);
    return rc;
}

const struct store_entry *flow_find_rank_log(const struct store_page *logs, const char *prefix, int rank)
{
    const struct store_entry *found = NULL;
    int best = 0, choice;

    for (size_t i = 0; i < logs->n; i++) {
        const char *name = logs->v[i].key;
        if (!act_starts_with(name, prefix) || run_log_rank(name + strlen(prefix), &choice) != rank)
            continue;
        if (!found || choice < best) {
            found = &logs->v[i];
            best = choice;
        }
    }
    return found;
}

int flow_log_attempt(const char *name)
{
    static const char prefix[] = RUN_DIR_ATTEMPTS "/";
    enum { ATTEMPT_MAX = 1 << 24 };
    int64_t n;

    if (!act_starts_with(name, prefix))
        return 0;
    name += strlen(prefix);
    ACT_AUTOFREE char *number = act_strndup(name, strcspn(name, "/"));
    return act_int_from_text(number, &n) && n > 0 && n < ATTEMPT_MAX ? (int)n : 0;
}

int flow_last_attempt(const struct store_page *logs)
{
    int last = 0;

    for (size_t i = 0; i < logs->n; i++) {
        int n = flow_log_attempt(logs->v[i].key);
        last = n > last ? n : last;
    }
    return last + 1;
}
