/* sweep.c - see sweep.h.
 *
 * Points are submitted in their order, in steps: one run, or as many as the platform takes at once. A step is written
 * down before it begins, with the time that the ids of its runs have: whoever goes on after an interruption submits the
 * same ids again. One that was refused for certain gets new ids. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "codec/fields.h"
#include "codec/json.h"
#include "flow/data/data_internal.h"
#include "flow/flow_internal.h"
#include "flow/runs/watch.h"
#include "flow/submit/parts.h"
#include "flow/submit/passage.h"
#include "flow/sweep/sweep.h"

/* The file of a sweep, which says how far it has come. */
struct record {
    int64_t done;    /* points before this one are submitted */
    int64_t step;    /* so many from there on are being submitted; 0: none */
    int64_t created; /* the time in their ids */
    int64_t tries;   /* how often steps were refused: the ids of the next one are new */
    int64_t row_of;  /* how many points have ids of one row */
    char *last;      /* a run of the step before; NULL: there was none */
};

struct sweep {
    struct flow *flow;
    struct flow_sweep *io;
    struct passage passage; /* of the first point, which all others follow */
    struct record record;
    char *record_path;
    int64_t first; /* point of the step */
    uint32_t row;  /* of the first ids */
    int lock_fd;
    struct act_strv active; /* with max_parallel: ids of runs that may not have ended */
};

/* ---- what it is called */

/* Returns the specification without what differs from one run of the sweep, or from one try, to the next. */
static char *identity_of(const struct flow_sweep *io)
{
    static const char *const own[] = {"id",      "created",     "package_key", "package_store", "logs_path",
                                      "command", "avoid_nodes", "needs",       "needs_any"};
    CODEC_AUTOJSON json_t *json = run_spec_to_json(&io->spec);

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        json_object_del(json, own[i]);
    json_object_set_new(json, "sweep_command", codec_json_strv_new(io->argv));
    for (size_t i = 0; i < io->grids->n; i++) {
        ACT_AUTOFREE char *key = act_sprintf("sweep_grid_%zu_%s", i, io->grids->v[i].name);
        json_object_set_new(json, key, codec_json_strv_new(&io->grids->v[i].values));
    }
    return json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
}

static void sweep_identify(struct sweep *s)
{
    ACT_AUTOFREE char *text = identity_of(s->io);
    struct act_sha256 h;
    char hex[ACT_SHA256_HEX];

    act_sha256_init(&h);
    act_sha256_add(&h, text, strlen(text));
    act_sha256_done(&h, hex);
    snprintf(s->io->id, sizeof(s->io->id), "%.*s", FLOW_SWEEP_ID - 1, hex);
    s->row = (uint32_t)strtoul(s->io->id, NULL, 16);
}

/* Makes spec that of a point. */
static void become(struct sweep *s, int64_t point)
{
    enum { TRY_STEP = 7919 }; /* tries do not share rows */
    struct flow_sweep *io = s->io;
    struct run_spec *spec = &io->spec;
    const struct record *r = &s->record;
    uint32_t row = s->row + (uint32_t)(point / r->row_of + r->tries * TRY_STEP);

    free(spec->id);
    spec->id = run_id_in_row(spec->experiment, r->created, row, (int)(point % r->row_of));
    spec->created_unix_s = r->created;
    free(spec->name);
    spec->name = io->labels.name ? act_sprintf("%s.%lld", io->labels.name, (long long)point + 1)
                                 : act_sprintf("sweep-%s.%lld", io->id, (long long)point + 1);
    for (size_t i = 0; i < io->grids->n; i++)
        json_object_set_new(spec->tags, io->grids->v[i].name, json_string(flow_grids_value(io->grids, point, i)));
    json_object_set_new(spec->tags, FLOW_SWEEP_TAG, json_string(io->id));
    act_strv_release(&spec->argv);
    flow_grids_words(io->grids, point, io->argv, &spec->argv);
}

static void sweep_turn(void *arg, size_t i)
{
    struct sweep *s = arg;

    become(s, s->first + (int64_t)i);
}

/* ---- the record */

static char *sweep_path_of(const char *id, const char *end)
{
    ACT_AUTOFREE char *dir = act_state_dir();

    return act_sprintf("%s/sweeps/%s%s", dir, id, end);
}

static const struct field progress_rows[] = {
    FIELD_VERSION(1, 0),
    FIELD_INT64(struct record, done, "done", .flags = FIELD_REQUIRED),
    FIELD_INT64(struct record, step, "step", .flags = FIELD_REQUIRED),
    FIELD_INT64(struct record, created, "created", .flags = FIELD_REQUIRED),
    FIELD_INT64(struct record, tries, "tries", .flags = FIELD_REQUIRED),
    FIELD_INT64(struct record, row_of, "row_of", .flags = FIELD_REQUIRED, .min = 1, .max = RUN_ROW_MAX),
    FIELD_TEXT(struct record, last, "last", .good = run_id_valid, .must = "the id of a run"),
};
static const struct fields progress_fields = FIELDS("the record", struct record, progress_rows, NULL);

static int write_record(const struct sweep *s, struct act_error *err)
{
    CODEC_AUTOJSON json_t *json = fields_to_json(&progress_fields, &s->record);
    ACT_AUTOFREE char *line = codec_json_line(json);

    return act_file_write(s->record_path, line, strlen(line), 0600, err);
}

static int check_record(const struct record *r, int64_t points, struct act_error *err)
{
    if (r->done <= points && r->step <= points - r->done && (r->step == 0 || r->created > 0))
        return 0;
    return act_error_set(err, ACT_FAIL, "its numbers do not fit this sweep");
}

/* Reads the record; if there is none, the sweep is new. */
static int sweep_read_record(struct sweep *s, struct act_error *err)
{
    enum { RECORD_MAX = 4096 };
    CODEC_AUTOJSON json_t *json = NULL;
    int rc = access(s->record_path, F_OK) < 0 ? 0 : codec_json_read(s->record_path, RECORD_MAX, &json, err);

    if (rc < 0 || !json)
        return rc;
    rc = fields_from_json(&progress_fields, json, &s->record, err);
    if (rc == 0)
        rc = check_record(&s->record, s->io->grids->points, err);
    if (rc == 0)
        return 0;
    act_error_prefix(err, "'%s' is damaged", s->record_path);
    return act_error_hint(err, "look with 'a q --tag " FLOW_SWEEP_TAG "=%s', and remove it to begin anew", s->io->id);
}

static int open_record(struct sweep *s, struct act_error *err)
{
    ACT_AUTOFREE char *lock = sweep_path_of(s->io->id, ".lock");
    ACT_AUTOFREE char *dir = act_path_dirname(lock);

    s->record_path = sweep_path_of(s->io->id, ".json");
    int rc = act_mkdir_all(dir, 0700, err);
    if (rc < 0)
        return rc;
    s->lock_fd = act_lock(lock, false, err);
    if (s->lock_fd == -ACT_TEMPORARY)
        return act_error_set(err, ACT_TEMPORARY, "another process is submitting sweep %s", s->io->id);
    return s->lock_fd < 0 ? s->lock_fd : sweep_read_record(s, err);
}

/* ---- its runs */

static int sweep_find_active(struct sweep *s, struct act_error *err)
{
    CODEC_AUTOJSON json_t *tags = json_pack("{s:s}", FLOW_SWEEP_TAG, s->io->id);
    const struct flow_table table = {.labels = {.tags = tags}, .own = true, .active = true};
    ACT_AUTO(flow_runs) runs = {0};
    int rc = flow_list_runs(s->flow, &table, &runs, err);

    for (size_t i = 0; rc == 0 && i < runs.n; i++)
        act_strv_push(&s->active, runs.v[i].row.id);
    return rc;
}

static void sweep_still_waits(void *arg, const struct flow_runs *runs, size_t n_ended)
{
    const struct sweep *s = arg;

    (void)runs;
    (void)n_ended;
    if (s->io->each)
        s->io->each(s->io->arg, s->record.done);
}

/* Waits until another one may run. */
static int wait_for_room(struct sweep *s, struct act_error *err)
{
    const struct flow_waiting how = {.any = true, .each = sweep_still_waits, .arg = s};
    int rc = 0;

    while (rc == 0 && s->active.n >= (size_t)s->io->max_parallel) {
        ACT_AUTO(flow_runs) runs = {0};
        rc = flow_wait_for(s->flow, &s->active, &how, &runs, err);
        act_strv_release(&s->active);
        for (size_t i = 0; i < runs.n; i++)
            if (!run_state_is_final(runs.v[i].status.state))
                act_strv_push(&s->active, runs.v[i].row.id);
    }
    return rc;
}

/* ---- a step */

/* The rows of its runs in the ledger. */
static void make_rows(struct sweep *s, struct ledger_runs *out)
{
    for (int64_t i = 0; i < s->record.step; i++) {
        sweep_turn(s, (size_t)i);
        ACT_PUSH(out->v, out->n, flow_row_of(&s->io->spec));
    }
}

/* Removes the rows of a step that was refused: the user is told at once, and its runs never were. */
static int forget_rows(struct sweep *s, struct act_error *err)
{
    ACT_AUTO(act_strv) ids = {0};
    struct ledger *ledger;

    for (int64_t i = 0; i < s->record.step; i++) {
        sweep_turn(s, (size_t)i);
        act_strv_push(&ids, s->io->spec.id);
    }
    int rc = flow_ledger(s->flow, &ledger, err);
    return rc < 0 ? rc : ledger_remove(ledger, (const char *const *)ids.v, ids.n, err);
}

/* Notes that the runs are queued: by now a query may have concluded that they were never submitted. */
static void note_queued(struct sweep *s, const struct ledger_runs *rows)
{
    ACT_AUTOFREE struct ledger_update *updates = act_calloc(rows->n, sizeof(*updates));
    const struct run_status status = {.state = RUN_QUEUED, .failed_rank = -1, .attempt = 1};
    CODEC_AUTOJSON json_t *json = run_status_to_json(&status);
    ACT_AUTOFREE char *line = codec_json_line(json);
    struct act_error err;

    for (size_t i = 0; i < rows->n; i++)
        updates[i] = (struct ledger_update){rows->v[i].id, run_state_name(RUN_QUEUED), line};
    if (ledger_update(s->flow->ledger, updates, rows->n, &err) < 0)
        act_warn("%s", act_error_text(&err));
}

/* An array that may have only so many at once begins when the one before has ended. */
static void wait_for_last(struct sweep *s)
{
    struct act_strv *after = &s->io->spec.after;

    act_strv_release(after);
    if (s->io->max_parallel > 0 && s->record.last)
        act_strv_push(after, s->record.last);
}

static int submit_several(struct sweep *s, bool *asked, struct act_error *err)
{
    ACT_AUTO(ledger_runs) rows = {0};
    ACT_AUTOWIPE char *stores = NULL;
    struct ledger *ledger;
    int64_t begun_s = act_now_unix_s();

    wait_for_last(s);
    make_rows(s, &rows);
    int rc = flow_run_stores(s->flow, &s->io->spec, &stores, err);
    if (rc == 0)
        rc = flow_ledger(s->flow, &ledger, err);
    if (rc == 0)
        rc = ledger_add_all(ledger, &rows, err);
    if (rc == 0) {
        const struct platform_several several = {
            .submission = {.spec = &s->io->spec, .package = s->passage.package.file, .stores = stores, .asked = asked},
            .n = (size_t)s->record.step,
            .turn = sweep_turn,
            .arg = s,
            .max_parallel = s->io->max_parallel};
        rc = platform_submit_several(s->passage.platform, &several, err);
        if (rc == 0 && act_now_unix_s() > begun_s)
            note_queued(s, &rows);
    }
    return rc;
}

static int submit_one(struct sweep *s, bool *asked, struct act_error *err)
{
    act_strv_release(&s->io->spec.after);
    sweep_turn(s, 0);
    int rc = flow_hand_over(s->flow, s->passage.platform, &s->io->spec, s->passage.package.file, asked, err);
    if (rc == 0 && s->io->max_parallel > 0 && !act_strv_has(&s->active, s->io->spec.id))
        act_strv_push(&s->active, s->io->spec.id);
    return rc;
}

/* Notes that a step was refused: its runs get new ids the next time. */
static void note_refusal(struct sweep *s)
{
    struct act_error err;

    if (forget_rows(s, &err) < 0)
        act_warn("%s", act_error_text(&err));
    s->record.step = 0;
    s->record.tries++;
    if (write_record(s, &err) < 0)
        act_warn("%s", act_error_text(&err));
}

static int begin_step(struct sweep *s, int most, struct act_error *err)
{
    struct record *r = &s->record;

    s->first = r->done;
    if (r->step > 0) /* it was begun before, and may be submitted */
        return 0;
    int64_t left = s->io->grids->points - r->done, row_left = r->row_of - r->done % r->row_of;
    r->step = most < 2 ? 1 : left < row_left ? left : row_left;
    r->created = act_now_unix_s();
    return write_record(s, err);
}

static int end_step(struct sweep *s, bool together, struct act_error *err)
{
    struct record *r = &s->record;

    if (together)
        act_str_replace(&r->last, s->io->spec.id);
    s->io->submitted += r->step;
    r->done += r->step;
    r->step = 0;
    int rc = write_record(s, err);
    if (rc == 0 && s->io->each)
        s->io->each(s->io->arg, r->done);
    return rc;
}

static int take_step(struct sweep *s, int most, struct act_error *err)
{
    /* a step that was begun had its room, and may be what the others wait for: half of a run ends only when whole */
    bool asked = false, wants_room = s->record.step == 0 && most < 2 && s->io->max_parallel > 0;
    int rc = wants_room ? wait_for_room(s, err) : 0;

    if (rc == 0)
        rc = begin_step(s, most, err);
    if (rc < 0)
        return rc;
    bool together = s->record.step > 1;
    rc = together ? submit_several(s, &asked, err) : submit_one(s, &asked, err);
    if (rc == 0)
        return end_step(s, together, err);
    if (!asked || !flow_may_pass(rc))
        note_refusal(s);
    return rc;
}

static int submit_all(struct sweep *s, struct act_error *err)
{
    struct flow_sweep *io = s->io;
    int rc = open_record(s, err);

    if (rc < 0)
        return rc;
    io->kept = s->record.done;
    if (io->kept == io->grids->points)
        return 0;
    int most = platform_most_together(s->passage.platform);
    if (s->record.row_of == 0)
        s->record.row_of = most < 2 ? RUN_ROW_MAX : most;
    if (io->max_parallel > 0 && most < 2)
        rc = sweep_find_active(s, err);
    while (rc == 0 && s->record.done < io->grids->points)
        rc = take_step(s, most, err);
    return rc < 0 ? act_error_hint(err, "%lld of the %lld runs of sweep %s are submitted: the same command goes on",
                                   (long long)s->record.done, (long long)io->grids->points, io->id)
                  : 0;
}

/* ---- the whole */

static int check_labels(const struct flow_sweep *io, struct act_error *err)
{
    enum { NAME_MOST = 56 }; /* of 64, with ".1000000" */

    if (io->labels.name && strlen(io->labels.name) > NAME_MOST)
        return act_error_set(err, ACT_USAGE, "the name '%s' has no room for the numbers of the runs: at most %d bytes",
                             io->labels.name, NAME_MOST);
    if (json_object_get(io->labels.tags, FLOW_SWEEP_TAG))
        return act_error_set(err, ACT_USAGE, "the tag '" FLOW_SWEEP_TAG "' is the sweep's own");
    for (size_t i = 0; i < io->grids->n; i++)
        if (json_object_get(io->labels.tags, io->grids->v[i].name))
            return act_error_set(err, ACT_USAGE, "the tag '%s' is that of the grid", io->grids->v[i].name);
    return 0;
}

/* Makes once what all its runs share, and submits them. */
static int sweep_hand_over(void *arg, struct act_error *err)
{
    struct sweep *s = arg;
    int rc = platform_prepare(s->passage.platform, &s->io->spec, s->passage.package.file, err);

    return rc < 0 ? rc : submit_all(s, err);
}

int flow_sweep(struct flow *flow, struct flow_sweep *io, struct act_error *err)
{
    ACT_AUTO(act_strv) first = {0};
    struct flow_submit asked = {.argv = &first,
                                .dry_run = io->dry_run,
                                .code = io->code,
                                .labels = io->labels,
                                .after = io->after,
                                .after_any = io->after_any,
                                .confirm = io->confirm,
                                .arg = io->arg};
    struct sweep s = {.flow = flow, .io = io, .lock_fd = -1};

    s.passage =
        (struct passage){.flow = flow, .io = &asked, .spec = &io->spec, .hand_over = sweep_hand_over, .arg = &s};
    flow_grids_words(io->grids, 0, io->argv, &first);
    int rc = check_labels(io, err);
    if (rc == 0)
        rc = flow_pass_checks(&s.passage, err);
    if (rc == 0 && (io->spec.package_key || !io->dry_run))
        sweep_identify(&s);
    if (rc == 0)
        rc = flow_pass_over(&s.passage, err);
    flow_passage_release(&s.passage);
    act_strv_release(&s.active);
    fields_release(&progress_fields, &s.record);
    free(s.record_path);
    if (s.lock_fd >= 0)
        close(s.lock_fd);
    return rc;
}

/* ---- which sweep */

char *flow_sweep_of(const struct ledger_run *row)
{
    CODEC_AUTOJSON json_t *tags = row->tags ? run_tags_parse(row->tags) : NULL;

    return codec_json_strdup(tags, FLOW_SWEEP_TAG);
}

/* The sweeps that a word may mean: the one with this id, those that are called so, and those whose ids begin so. The
 * first of these that are any are the ones that are meant. */
struct meant {
    struct act_strv is, called, begun;
};

static const struct act_strv *meant_best(const struct meant *m)
{
    return m->is.n > 0 ? &m->is : m->called.n > 0 ? &m->called : &m->begun;
}

static void meant_release(struct meant *m)
{
    act_strv_release(&m->is);
    act_strv_release(&m->called);
    act_strv_release(&m->begun);
}

/* Returns "3 sweeps: a, b, c", or "run" in the place of "sweep", as a new string. */
static char *sweep_list(const char *what, const struct act_strv *ids)
{
    enum { SHOWN = 5 };
    ACT_AUTO(act_buf) text = {0};

    act_buf_addf(&text, "%zu %s%s: ", ids->n, what, ids->n == 1 ? "" : "s");
    for (size_t i = 0; i < ids->n && i < SHOWN; i++)
        act_buf_addf(&text, "%s%s", i ? ", " : "", ids->v[i]);
    return act_sprintf("%s%s", text.data, ids->n > SHOWN ? ", ..." : "");
}

static int not_one(const char *piece, const struct act_strv *found, struct act_error *err)
{
    if (found->n > 1) {
        ACT_AUTOFREE char *sweeps = sweep_list("sweep", found);
        return act_error_set(err, ACT_USAGE, "'%s' could be any of %s", piece, sweeps);
    }
    return strcmp(piece, "@") == 0
               ? act_error_set(err, ACT_NOT_FOUND, "there are no sweeps yet; 'a sweep --help' says how to start one")
               : act_error_set(err, ACT_NOT_FOUND,
                               "no sweep '%s' was submitted from here; '@' is the last one that was, and 'a q --tag "
                               "sweep=ID' lists the runs of another machine's, where the service lists them",
                               piece);
}

static int sweep_or_run(const char *word, const struct act_strv *sweeps, const struct act_strv *named,
                        struct act_error *err)
{
    ACT_AUTOFREE char *of_runs = sweep_list("run", named);
    ACT_AUTOFREE char *of_sweeps = sweep_list("sweep", sweeps);

    return act_error_set(err, ACT_USAGE, "'%s' could be a run or a sweep: name it by its id; %s; %s", word, of_runs,
                         of_sweeps);
}

/* "first" of the run "first.12". */
static bool sweep_is_called(const struct ledger_run *row, const char *piece)
{
    size_t len = strlen(piece);
    const char *number = row->name && act_starts_with(row->name, piece) ? row->name + len : "";

    return len > 0 && *number == '.' && number[1] && !number[1 + strspn(number + 1, "0123456789")];
}

static void add_once(struct act_strv *ids, const char *id)
{
    if (!act_strv_has(ids, id))
        act_strv_push(ids, id);
}

static void sweep_note_meant(struct meant *m, const struct ledger_run *row, const char *word)
{
    ACT_AUTOFREE char *id = flow_sweep_of(row);

    if (!id)
        return;
    if (strcmp(id, word) == 0)
        add_once(&m->is, id);
    if (sweep_is_called(row, word))
        add_once(&m->called, id);
    if (*word && act_starts_with(id, word))
        add_once(&m->begun, id);
}

/* The sweep that a word means, as the runs of the ledger tell. */
struct sweep_look {
    const char *word;
    struct meant meant;
    struct act_strv named; /* the runs of that name */
};

static void sweep_look_release(struct sweep_look *look)
{
    meant_release(&look->meant);
    act_strv_release(&look->named);
}

static int sweep_visit_meant(void *arg, struct flow_run *runs, size_t n, struct act_error *err)
{
    struct sweep_look *look = arg;

    (void)err;
    for (size_t i = 0; i < n; i++) {
        sweep_note_meant(&look->meant, &runs[i].row, look->word);
        if (act_streq(runs[i].row.name, look->word))
            act_strv_push(&look->named, runs[i].row.id);
    }
    return 0;
}

static int sweep_visit_last(void *arg, struct flow_run *runs, size_t n, struct act_error *err)
{
    struct sweep_look *look = arg;

    (void)err;
    for (size_t i = 0; i < n && look->meant.is.n == 0; i++) {
        ACT_AUTOFREE char *id = flow_sweep_of(&runs[i].row);
        if (id)
            add_once(&look->meant.is, id);
    }
    return 0;
}

int flow_find_sweep(struct flow *flow, const char *piece, char **out, struct act_error *err)
{
    const struct flow_table table = {.cluster = flow->cluster, .own = true, .as_known = true};
    ACT_AUTO(sweep_look) look = {.word = piece};
    struct flow_rows *runs;
    int rc = flow_rows_open(flow, &table, &runs, err);

    *out = NULL;
    if (rc == 0)
        rc = flow_rows_each(runs, strcmp(piece, "@") == 0 ? sweep_visit_last : sweep_visit_meant, &look, NULL, err);
    flow_rows_close(runs);
    const struct act_strv *found = meant_best(&look.meant);
    if (rc == 0 && found->n != 1)
        return not_one(piece, found, err);
    *out = rc == 0 ? act_strdup(found->v[0]) : NULL;
    return rc;
}

/* The runs of a sweep, newest first. */
struct sweep_members {
    const char *sweep;
    struct act_strv ids;
};

static int sweep_visit_members(void *arg, struct flow_run *runs, size_t n, struct act_error *err)
{
    struct sweep_members *members = arg;

    (void)err;
    for (size_t i = 0; i < n; i++) {
        ACT_AUTOFREE char *id = flow_sweep_of(&runs[i].row);
        if (act_streq(id, members->sweep))
            act_strv_push(&members->ids, runs[i].row.id);
    }
    return 0;
}

/* Adds the runs of the one sweep that look means, the oldest first; none: it means none. */
static int sweep_add_members(struct flow_rows *runs, struct sweep_look *look, struct act_strv *ids,
                             struct act_error *err)
{
    const struct act_strv *found = meant_best(&look->meant);

    if (found->n == 0)
        return 0;
    if (look->named.n > 0)
        return sweep_or_run(look->word, found, &look->named, err);
    if (found->n > 1)
        return not_one(look->word, found, err);
    struct sweep_members members = {.sweep = found->v[0]};
    int rc = flow_rows_each(runs, sweep_visit_members, &members, NULL, err);
    for (size_t i = members.ids.n; i-- > 0;)
        act_strv_push(ids, members.ids.v[i]);
    act_strv_release(&members.ids);
    return rc;
}

int flow_runs_of_sweep(struct flow *flow, const char *word, struct act_strv *ids, struct act_error *err)
{
    const struct flow_table table = {.own = true, .as_known = true};
    ACT_AUTO(sweep_look) look = {.word = word};
    struct flow_rows *runs;
    int rc = flow_rows_open(flow, &table, &runs, err);

    if (rc == 0)
        rc = flow_rows_each(runs, sweep_visit_meant, &look, NULL, err);
    act_strv_release(&look.meant.begun); /* a piece of an id is that of a run */
    if (rc == 0)
        rc = sweep_add_members(runs, &look, ids, err);
    flow_rows_close(runs);
    return rc;
}
