/* events.c - the curves in TensorBoard's event files that a run has written into its mapped folders, where these are on
 * this machine or on its site: elsewhere it would be a download. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/path.h"
#include "flow/data/of_run.h"
#include "flow/look/parts.h"
#include "numbers/events.h"

enum {
    FILES = 64,            /* of a run */
    FILE_BYTES = 64 << 20, /* of each, and of all together */
    CHUNK = 256 << 10,
    LOOKED_AT = 50000, /* files, in each folder */
};

int flow_take_event_file(void *arg, const struct store_entry *entry, const char *rel, struct act_error *err)
{
    struct event_search *s = arg;

    if (s->left == 0)
        return act_error_set(err, ACT_PARTIAL, "it has more files than are looked through");
    s->left--;
    if (entry->kind == STORE_FILE && events_is_file(rel) && s->n < s->most &&
        (!s->span || flow_span_has(s->span, entry, rel)))
        ACT_PUSH(s->v, s->n, (struct event_file){act_strdup(rel), entry->size});
    return 0;
}

static int event_files_by_path(const void *a, const void *b)
{
    return strcmp(((const struct event_file *)a)->path, ((const struct event_file *)b)->path);
}

/* ---- the values */

struct event_values {
    struct numbers *numbers;
    const char *writer; /* before each name; "": none */
};

static void event_files_take(void *arg, const struct events_scalar *scalar)
{
    const struct event_values *v = arg;
    char name[NUMBERS_NAME + 1];

    if (snprintf(name, sizeof(name), "%s%s%s", v->writer, *v->writer ? "/" : "", scalar->tag) <= NUMBERS_NAME)
        numbers_add(v->numbers, name, (double)scalar->step, scalar->value, scalar->unix_s);
}

/* Reads a file, at most max bytes. Returns how many. */
static uint64_t event_files_read(struct store *store, const char *key, struct events *e, uint64_t max)
{
    ACT_AUTOFREE char *chunk = act_alloc(CHUNK);
    uint64_t at = 0;
    size_t got = CHUNK;
    int rc = 0;

    while (rc == 0 && got == CHUNK && at + CHUNK <= max) {
        struct act_error ignored;
        struct store_call call = {.op = STORE_GET, .key = key, .get = {.offset = at, .sink = chunk, .sink_cap = CHUNK}};
        rc = store_do(store, &call, &ignored);
        got = rc == 0 ? call.get.got : 0;
        store_call_release(&call);
        events_feed(e, chunk, got);
        at += got;
    }
    return at;
}

/* Returns what tells the writers of a run apart: the folder of a file, without those above it. New string. */
static char *event_files_writer(const char *path)
{
    ACT_AUTOFREE char *folder = act_path_dirname(path);
    const char *slash = strrchr(folder, '/'), *name = slash ? slash + 1 : folder;
    char *writer = act_strdup(strcmp(name, ".") == 0 ? "" : name);

    for (char *c = writer; *c; c++)
        if (!strchr("-_.", *c) && !((*c >= '0' && *c <= '9') || ((*c | 0x20) >= 'a' && (*c | 0x20) <= 'z')))
            *c = '_';
    return writer;
}

/* Tells whether all files are of one writer, so that names need not say whose they are. */
static bool event_files_are_of_one(const struct event_search *s)
{
    ACT_AUTOFREE char *first = s->n > 0 ? act_path_dirname(s->v[0].path) : NULL;

    for (size_t i = 1; i < s->n; i++) {
        ACT_AUTOFREE char *other = act_path_dirname(s->v[i].path);
        if (strcmp(first, other) != 0)
            return false;
    }
    return true;
}

static void event_files_read_all(struct store *store, const struct run_folder *f, const struct event_search *s,
                                 struct numbers *numbers)
{
    bool is_one = event_files_are_of_one(s);
    uint64_t left = FILE_BYTES, damaged = 0;

    for (size_t i = 0; i < s->n; i++) {
        ACT_AUTOFREE char *writer = is_one ? act_strdup("") : event_files_writer(s->v[i].path);
        ACT_AUTOFREE char *key = act_path_join(f->path, s->v[i].path);
        struct event_values values = {numbers, writer};
        struct events *e = events_new(event_files_take, &values);
        left -= event_files_read(store, key, e, left);
        damaged += events_end(e);
        events_free(e);
    }
    if (damaged > 0)
        act_warn("%llu records of event files in '%s' are damaged", (unsigned long long)damaged, f->name);
}

/* ---- the folders */

void flow_event_search_release(struct event_search *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->v[i].path);
    free(s->v);
    *s = (struct event_search){0};
}

static int event_files_look_into(struct flow *project, const struct flow_run *run, const struct run_folder *f,
                                 const struct event_visit *how, struct act_error *err)
{
    struct flow_span span = flow_span_of(run);
    struct event_search s = {.span = &span, .left = LOOKED_AT, .most = how->most};
    struct store *store = NULL;
    struct act_error later;
    int rc = flow_open_folder_of_run(project, &run->spec, f, &store, err);

    if (rc == 0)
        rc = flow_list_folder_of_run(project, store, f, flow_take_event_file, &s, err);
    if (s.n > 0) {
        qsort(s.v, s.n, sizeof(*s.v), event_files_by_path);
        int visited = how->visit(how->arg, store, f, &s, rc < 0 ? &later : err);
        rc = rc < 0 ? rc : visited;
    }
    store_free(store);
    flow_event_search_release(&s);
    return rc;
}

/* Tells whether the run may have written into a folder that can be looked into from here. */
static bool event_files_are_there(const struct run_folder *f)
{
    bool is_written = f->mode == RUN_FOLDER_RW_MOUNT || f->mode == RUN_FOLDER_UPLOAD;

    return is_written && !flow_is_of_nodes(f) && f->store;
}

int flow_visit_events(struct flow *flow, const struct flow_run *run, const struct event_visit *how,
                      struct act_error *err)
{
    struct flow project = {0};
    struct act_error later;
    bool is_open = false;
    int first = 0;

    for (size_t i = 0; i < run->spec.n_folders; i++) {
        const struct run_folder *f = &run->spec.folders[i];
        struct act_error *why = first < 0 ? &later : err;
        if (!event_files_are_there(f) || (how->takes && !how->takes(f)))
            continue;
        int rc = is_open ? 0 : flow_open_project_of(flow, run, &project, why);
        is_open = is_open || rc == 0;
        if (rc == 0)
            rc = event_files_look_into(&project, run, f, how, why);
        if (rc < 0 && first == 0)
            first = act_error_prefix(why, "in '%s'", f->name);
    }
    if (is_open)
        flow_close(&project);
    return first;
}

/* ---- the curves */

/* Tells whether reading a folder costs no download. */
static bool event_files_are_near(const struct run_folder *f)
{
    static const char folder[] = "folder:";

    return act_starts_with(f->store, folder);
}

static int event_files_add(void *arg, struct store *store, const struct run_folder *f, const struct event_search *found,
                           struct act_error *err)
{
    (void)err;
    event_files_read_all(store, f, found, arg);
    return 0;
}

void flow_add_events(struct flow *flow, const struct flow_run *run, struct numbers *numbers)
{
    const struct event_visit how = {
        .most = FILES, .takes = event_files_are_near, .visit = event_files_add, .arg = numbers};
    struct act_error err;

    if (flow_visit_events(flow, run, &how, &err) < 0)
        act_warn("not all event files of '%s' were read: %s", run->row.id, act_error_text(&err));
}
