/* board.c - the view of a board: the runs of the ledger, merged with what their places say, and the thread that lists
 * them. */
#include "flow/board/board.h"
#include "config/config.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/engine.h"
#include "flow/board/places.h"
#include "flow/flow_internal.h"
#include "flow/trust.h"
#include "site/site.h"

/* END_MS: how long threads have to end. NEWS_MS: so soon, at most, the runs are listed again. DEAF_MS: see
 * board_wait(). */
enum { END_MS = 500, NEWS_MS = 250, DEAF_MS = 100 };

/* ---- threads */

static struct board_bell new_bell(void)
{
    return (struct board_bell){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
}

static void board_ring(const struct board_bell *bell)
{
    const uint64_t one = 1;

    while (write(bell->fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

static void board_hear(void *arg)
{
    struct board_bell *bell = arg;
    uint64_t times;

    bell->rung = read(bell->fd, &times, sizeof(times)) > 0 || bell->rung;
}

static void end_wait(void *arg)
{
    ((struct board_bell *)arg)->rung = true;
}

/* Waits. A thread without a bell, for want of descriptors, looks now and then. */
void board_wait(struct flow_board *board, struct flow *flow, struct board_bell *bell, int64_t due_ms)
{
    struct engine *engine = flow_engine(flow);

    pthread_mutex_unlock(&board->lock);
    bool hears = bell->fd >= 0 && engine_watch(engine, bell->fd, false, board_hear, bell);
    int64_t rest_ms = due_ms - act_now_monotonic_ms();
    rest_ms = rest_ms > 0 ? rest_ms : 0;
    engine_timer(engine, hears || rest_ms < DEAF_MS ? rest_ms : DEAF_MS, end_wait, bell);
    engine_run(engine, &bell->rung);
    engine_forget(engine, bell);
    if (hears)
        engine_unwatch(engine, bell->fd);
    bell->rung = false;
    pthread_mutex_lock(&board->lock);
}

void board_changed(struct flow_board *board)
{
    pthread_mutex_lock(&board->lock);
    if (board->options.changed && !board->stop)
        board->options.changed(board->options.arg);
    pthread_mutex_unlock(&board->lock);
}

/* Signals are for the thread that shows the view. */
static bool start_thread(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(thread, NULL, run, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* ---- places */

static struct board_place *board_find_place(const struct flow_board *board, const char *where)
{
    for (size_t i = 0; i < board->n_places; i++)
        if (strcmp(board->places[i]->where, where) == 0)
            return board->places[i];
    return NULL;
}

static bool board_has_name(const char *names, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = names; *at; at += strcspn(at, ",") + strspn(at + strcspn(at, ","), ", "))
        if (strncmp(at, name, len) == 0 && (at[len] == ',' || !at[len]))
            return true;
    return false;
}

static void add_name(struct flow_board_cluster *cluster, const char *name)
{
    char *before = cluster->name;

    if (board_has_name(before, name))
        return;
    cluster->name = act_sprintf("%s, %s", before, name);
    free(before);
}

static struct ledger_run copy_sample(const struct ledger_run *row)
{
    return (struct ledger_run){.id = act_strdup(row->id),
                               .platform = act_strdup(row->platform),
                               .cluster = act_strdup(row->cluster),
                               .project = act_strdup(row->project),
                               .place = act_strdup(row->place)};
}

/* why: it cannot even be said where the cluster is, or NULL. */
static struct board_place *board_add_place(struct flow_board *board, const struct ledger_run *row, const char *where,
                                           const struct act_error *why)
{
    struct board_place *place = act_calloc(1, sizeof(*place));

    *place = (struct board_place){.board = board,
                                  .where = act_strdup(where),
                                  .sample = copy_sample(row),
                                  .bell = new_bell(),
                                  .index = board->n_places,
                                  .shown = {.name = act_strdup(row->cluster), .asked = why != NULL}};
    if (why)
        place->shown.error = act_strdup(act_error_text(why));
    ACT_PUSH(board->places, board->n_places, place);
    ACT_PUSH(board->view.clusters, board->view.n_clusters, &place->shown);
    return place;
}

/* The places of the runs that were listed last, so that each cluster is looked up once. */
struct known_place {
    char *key;
    struct board_place *place;
};
struct known_places {
    struct known_place *v;
    size_t n;
};

static struct board_place *board_place_of(struct flow_board *board, struct known_places *known,
                                          const struct ledger_run *row)
{
    ACT_AUTOFREE char *key = flow_cluster_key(row);
    ACT_AUTOFREE char *where = NULL;
    struct act_error err;

    for (size_t i = 0; i < known->n; i++)
        if (strcmp(known->v[i].key, key) == 0)
            return known->v[i].place;
    int rc = flow_place_of(row, &where, &err);
    if (rc < 0)
        where = act_sprintf("?\n%s", key);
    pthread_mutex_lock(&board->lock);
    struct board_place *place = board_find_place(board, where);
    if (place)
        add_name(&place->shown, row->cluster);
    else
        place = board_add_place(board, row, where, rc < 0 ? &err : NULL);
    pthread_mutex_unlock(&board->lock);
    ACT_PUSH(known->v, known->n, (struct known_place){act_strdup(key), place});
    return place;
}

static void release_known(struct known_places *known)
{
    for (size_t i = 0; i < known->n; i++)
        free(known->v[i].key);
    free(known->v);
}

static void start_places(struct flow_board *board)
{
    for (size_t i = 0; i < board->n_places; i++) {
        struct board_place *place = board->places[i];
        if (!place->has_thread && !place->shown.error)
            place->has_thread = start_thread(&place->thread, board_ask_place, place);
    }
}

/* ---- the view */

static void free_entry(struct board_entry *entry)
{
    flow_run_release(&entry->shown.run);
    flow_live_free(entry->shown.live);
    free(entry);
}

static int board_by_id(const void *a, const void *b)
{
    struct board_entry *const *x = a, *const *y = b;

    return strcmp((*x)->shown.run.row.id, (*y)->shown.run.row.id);
}

static int board_compare_id(const void *id, const void *entry)
{
    return strcmp(id, (*(struct board_entry *const *)entry)->shown.run.row.id);
}

struct board_entry *board_find(struct flow_board *board, const char *id)
{
    struct board_entry **found =
        board->view.n ? bsearch(id, board->by_id, board->view.n, sizeof(*board->by_id), board_compare_id) : NULL;

    return found ? *found : NULL;
}

bool board_follows(const struct flow_board *board, const struct board_entry *entry)
{
    return entry->shown.run.status.state == RUN_RUNNING && (entry->followed || !board->chosen);
}

/* Another process may have seen the end of a run; else what its platform said just now is newer than the ledger. */
static void keep_newer(struct board_entry *entry, const struct flow_run *listed)
{
    bool ended = run_state_is_final(entry->shown.run.status.state);

    if (!entry->fresh || (!ended && run_state_is_final(listed->status.state)))
        entry->shown.run.status = listed->status;
}

static struct board_entry *new_entry(struct flow_run *listed, size_t cluster)
{
    struct board_entry *entry = act_calloc(1, sizeof(*entry));

    entry->shown = (struct flow_board_run){.run = *listed, .cluster = cluster};
    *listed = (struct flow_run){0};
    return entry;
}

static void free_unlisted(struct board_entry *const *old, size_t n, const struct flow_board *board)
{
    for (size_t i = 0; i < n; i++)
        if (!bsearch(old[i]->shown.run.row.id, board->by_id, board->view.n, sizeof(*board->by_id), board_compare_id))
            free_entry(old[i]);
}

/* Takes over the runs. With the lock held. */
static void board_merge(struct flow_board *board, struct flow_runs *listed, const size_t *clusters)
{
    struct board_entry **old = board->by_id, **now = act_calloc(listed->n + 1, sizeof(struct board_entry *));
    struct flow_board_run **shown = act_calloc(listed->n + 1, sizeof(struct flow_board_run *));
    size_t n_old = board->view.n;

    for (size_t i = 0; i < listed->n; i++) {
        struct board_entry *entry = board_find(board, listed->v[i].row.id);
        if (entry)
            keep_newer(entry, &listed->v[i]);
        else
            entry = new_entry(&listed->v[i], clusters[i]);
        now[i] = entry;
        shown[i] = &entry->shown;
    }
    free(board->view.runs);
    board->by_id = now;
    board->view.runs = shown;
    board->view.n = listed->n;
    board->view.total = listed->total;
    qsort(now, listed->n, sizeof(*now), board_by_id);
    free_unlisted(old, n_old, board);
    free(old);
}

static void board_count_runs(struct flow_board_view *view)
{
    for (size_t i = 0; i < view->n_clusters; i++)
        view->clusters[i]->running = view->clusters[i]->queued = 0;
    for (size_t i = 0; i < view->n && view->n_clusters; i++) {
        struct flow_board_cluster *cluster = view->clusters[view->runs[i]->cluster];
        cluster->running += view->runs[i]->run.status.state == RUN_RUNNING;
        cluster->queued += view->runs[i]->run.status.state == RUN_QUEUED;
    }
}

static bool is_settled(const struct flow_board_view *view)
{
    bool settled = view->listed;

    for (size_t i = 0; i < view->n_clusters; i++)
        settled = settled && view->clusters[i]->asked;
    return settled;
}

const struct flow_board_view *flow_board_lock(struct flow_board *board)
{
    pthread_mutex_lock(&board->lock);
    board_count_runs(&board->view);
    board->view.settled = is_settled(&board->view);
    return &board->view;
}

void flow_board_unlock(struct flow_board *board)
{
    pthread_mutex_unlock(&board->lock);
}

/* ---- listing */

struct lister {
    struct flow_board *board;
    struct flow flow;
    struct known_places known;
    struct stat ledger;
};

/* The cluster that a submit would use, even if it has no run. */
static void add_own_cluster(struct lister *l)
{
    struct config_request request = {.cluster = l->board->options.cluster};
    ACT_AUTO(config) config = {0};
    struct act_error err;

    if (config_load(&request, &config, &err) < 0)
        return; /* there is none; 'a config check' reports a broken one */
    board_place_of(
        l->board, &l->known,
        &(struct ledger_run){.platform = config.platform, .cluster = config.cluster, .project = config.project_root});
}

/* Finds the places of runs. The cluster of an ended run is not asked, and need not be known any more. */
static size_t *find_places(struct lister *l, const struct flow_runs *runs)
{
    size_t *clusters = act_calloc(runs->n + 1, sizeof(*clusters));

    for (size_t i = 0; i < runs->n && !l->board->options.table_only; i++)
        if (!run_state_is_final(runs->v[i].status.state))
            clusters[i] = board_place_of(l->board, &l->known, &runs->v[i].row)->index;
    return clusters;
}

static void take_list(struct flow_board *board, struct flow_runs *runs, const size_t *clusters, int rc,
                      const struct act_error *err)
{
    pthread_mutex_lock(&board->lock);
    if (rc == 0)
        board_merge(board, runs, clusters);
    free(board->view.error);
    board->view.error = rc < 0 ? act_strdup(act_error_text(err)) : NULL;
    board->view.listed = true;
    start_places(board);
    pthread_mutex_unlock(&board->lock);
}

static void board_list(struct lister *l)
{
    struct flow_board *board = l->board;
    ACT_AUTO(flow_runs) runs = {0};
    struct act_error err;

    if (!flow_ledger_changed(&l->ledger) && !board->options.table_only)
        return;
    int rc = flow_list_runs(&l->flow, &board->options.table, &runs, &err);
    ACT_AUTOFREE size_t *clusters = rc == 0 ? find_places(l, &runs) : NULL;
    take_list(board, &runs, clusters, rc, &err);
    board_changed(board);
}

/* Returns when the runs are to be listed again. The caller holds the lock. */
static int64_t board_when_due(struct lister *l, int64_t listed_ms)
{
    bool news = l->board->options.table_only && flow_watch_platforms(&l->flow, &l->board->bell.rung);

    return l->board->hurry ? 0 : listed_ms + (news ? NEWS_MS : l->board->options.interval_ms);
}

/* Waits until the runs are to be listed again. False: the board stops. */
static bool wait_to_list(struct lister *l)
{
    struct flow_board *board = l->board;
    int64_t listed_ms = act_now_monotonic_ms(), due_ms;

    pthread_mutex_lock(&board->lock);
    while (!board->stop && act_now_monotonic_ms() < (due_ms = board_when_due(l, listed_ms)))
        board_wait(board, &l->flow, &board->bell, due_ms);
    board->hurry = false;
    bool stop = board->stop;
    board->lister_ended = stop;
    pthread_mutex_unlock(&board->lock);
    return !stop;
}

static void *list_runs(void *arg)
{
    struct lister l = {.board = arg};

    flow_open_bare(l.board->options.table.cluster, &l.flow);
    if (!l.board->options.table_only)
        add_own_cluster(&l);
    do
        board_list(&l);
    while (wait_to_list(&l));
    release_known(&l.known);
    flow_close(&l.flow);
    return NULL;
}

/* ---- the board */

struct flow_board *flow_board_new(const struct flow_board_options *options)
{
    struct flow_board *board = act_calloc(1, sizeof(*board));

    mallopt(M_ARENA_MAX, 1); /* a heap for each of many threads, which mostly wait, would be mostly empty */
    site_never_ask();
    flow_trust_asks(NULL);
    board->options = *options;
    board->options.table.as_known = !options->table_only;
    pthread_mutex_init(&board->lock, NULL);
    board->bell = new_bell();
    board->lister_ended = !start_thread(&board->lister, list_runs, board);
    return board;
}

void flow_board_hurry(struct flow_board *board)
{
    pthread_mutex_lock(&board->lock);
    board->hurry = true;
    board_ring(&board->bell);
    for (size_t i = 0; i < board->n_places; i++) {
        board->places[i]->hurry = true;
        board_ring(&board->places[i]->bell);
    }
    pthread_mutex_unlock(&board->lock);
}

void flow_board_follow(struct flow_board *board, const char *const *ids, size_t n)
{
    pthread_mutex_lock(&board->lock);
    board->chosen = true;
    for (size_t i = 0; i < board->view.n; i++)
        board->by_id[i]->followed = false;
    for (size_t i = 0; i < n && i < FLOW_BOARD_FOLLOWED; i++) {
        struct board_entry *entry = board_find(board, ids[i]);
        if (!entry)
            continue;
        entry->followed = true;
        if (board->n_places > 0 && !entry->shown.live && entry->shown.run.status.state == RUN_RUNNING) {
            struct board_place *place = board->places[entry->shown.cluster];
            place->look_at_logs = true;
            board_ring(&place->bell);
        }
    }
    pthread_mutex_unlock(&board->lock);
}

void flow_board_abort(struct flow_board *board, const char *id)
{
    pthread_mutex_lock(&board->lock);
    struct board_entry *entry = board_find(board, id);
    struct board_place *place = entry && board->n_places ? board->places[entry->shown.cluster] : NULL;
    if (place && place->has_thread) {
        act_strv_push(&place->aborts, id);
        board_ring(&place->bell);
    }
    free(board->view.said);
    board->view.said = place && place->has_thread ? act_sprintf("aborting %s ...", id)
                                                  : act_sprintf("cannot abort %s: its cluster cannot be asked", id);
    pthread_mutex_unlock(&board->lock);
    board_changed(board);
}

/* Tells whether all threads have ended. The caller holds the lock. */
static bool have_ended(const struct flow_board *board)
{
    bool ended = board->lister_ended;

    for (size_t i = 0; i < board->n_places; i++)
        ended = ended && (!board->places[i]->has_thread || board->places[i]->ended);
    return ended;
}

static void stop_threads(struct flow_board *board)
{
    int64_t until_ms = act_now_monotonic_ms() + END_MS;

    board->stop = true;
    board_ring(&board->bell);
    for (size_t i = 0; i < board->n_places; i++)
        board_ring(&board->places[i]->bell);
    while (!have_ended(board) && act_now_monotonic_ms() < until_ms) {
        pthread_mutex_unlock(&board->lock);
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        pthread_mutex_lock(&board->lock);
    }
}

static void free_place(struct board_place *place)
{
    if (place->has_thread)
        pthread_join(place->thread, NULL);
    close(place->bell.fd);
    free(place->where);
    free(place->shown.name);
    free(place->shown.error);
    platform_summary_release(&place->shown.summary);
    platform_gpus_release(&place->shown.gpus);
    ledger_run_release(&place->sample);
    act_strv_release(&place->aborts);
    free(place);
}

bool flow_board_free(struct flow_board *board)
{
    if (!board)
        return true;
    pthread_mutex_lock(&board->lock);
    stop_threads(board);
    bool ended = have_ended(board);
    pthread_mutex_unlock(&board->lock);
    if (!ended)
        return false;
    pthread_join(board->lister, NULL);
    for (size_t i = 0; i < board->n_places; i++)
        free_place(board->places[i]);
    for (size_t i = 0; i < board->view.n; i++)
        free_entry(board->by_id[i]);
    free(board->view.runs);
    free(board->view.clusters);
    free(board->view.error);
    free(board->view.said);
    free(board->by_id);
    free(board->places);
    close(board->bell.fd);
    pthread_mutex_destroy(&board->lock);
    free(board);
    return true;
}
