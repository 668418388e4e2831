/* logs.c - the logs of a run as a store. What the pods print is read from where the last reading ended, taken apart by
 * ranks (pod_log.c) and kept.
 *
 * What a pod prints that was made in the place of another one is another attempt. The pods count the attempts, as long
 * as one is there that knows the last one; where all were replaced, they begin at 1 again, and it is counted on here.
 * So the pods that others took the place of are read first, those of each index in the order in which they were made.
 *
 * Whoever asks a second time watches, or who says so: from then on what a running pod prints is followed, and comes
 * whenever the loop runs. Other things than the end of the log, such as its rotation, may end the stream that follows
 * it: then the last lines of the log are asked for, and if those are not the ones that came last, it is read once more
 * from their second on.
 *
 * Source: kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/ (read log).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "platform/kubernetes/kubernetes_internal.h"
#include "store/store.h"

/* LAST_WORDS_MS: so long may the stream that follows a log take to end when its pod has, or be ahead of it. */
enum { TEXTS_MAX = 1 << 20, LAST_WORDS_MS = 5000 };

/* What a request for a log is for. */
enum reading {
    READ,   /* what there is */
    FOLLOW, /* and what comes */
    PROVE,  /* that nothing was added to what was read */
};

struct logs;

/* A pod, and how far it was read. */
struct reader {
    struct logs *of;
    char *pod;
    int index;
    struct kubernetes_pod_log *log;
    struct reader *before; /* of the pod whose place it took; NULL: of none */
    int last_attempt;      /* that it has something of; 0: of none */
    int more;              /* what its count lacks; -1: not known yet */
    bool is_replaced, has_begun;
    bool is_whole; /* read to its end, which will not change */
    bool has_ended;
    bool was_missed; /* its log could not be had, which was said */
    int rc;          /* of the last reading */
    struct act_error why;
    bool was_read; /* as far as it was then */
    bool follows;  /* its stream does, and is under way, or nobody has looked yet at how it ended */
    bool awaited;
    bool has_news;    /* since the stream began */
    bool came_to_end; /* the stream that followed, at ended_ms; it is not known yet whether the log did */
    int64_t ended_ms;
    size_t last_kept; /* where the last text went */
    char *what;
    struct act_buf last_lines;
    struct kube_stream stream;
};

/* A text of the store. */
struct kept {
    int attempt, rank, index; /* rank -1: the words of the agent in the pod with this index */
};

struct logs {
    struct kubernetes *k;
    char *id, *name;
    bool ended; /* the run has */
    struct reader **readers;
    size_t n_readers;
    struct kept *kept; /* one for each of texts */
    size_t n_kept;
    json_t *places; /* of kept, by what they are of */
    struct store_texts texts;
    int attempt;    /* the last one */
    bool *news;     /* of who watches; NULL: nobody said so */
    size_t awaited; /* streams */
    bool idle;      /* none is awaited */
    int rc;         /* of the first text that could not be kept */
};

/* ---- the texts ---- */

/* The place of a text in both lists; -1: a pod says that there are more than a run can have. */
static int64_t find_kept(struct logs *l, int attempt, int rank, int index)
{
    char name[64];

    snprintf(name, sizeof(name), "%d/%d/%d", attempt, rank, rank < 0 ? index : 0);
    int64_t at = codec_json_int(l->places, name, -1);
    if (at >= 0 || l->n_kept == TEXTS_MAX)
        return at;
    ACT_PUSH(l->kept, l->n_kept, (struct kept){.attempt = attempt, .rank = rank, .index = index});
    at = (int64_t)store_texts_new(&l->texts);
    json_object_set_new(l->places, name, json_integer(at));
    return at;
}

/* The last attempt of those pods that others took the place of. */
static int last_replaced(const struct logs *l)
{
    int last = 0;

    for (size_t i = 0; i < l->n_readers; i++)
        if (l->readers[i]->is_replaced && l->readers[i]->last_attempt > last)
            last = l->readers[i]->last_attempt;
    return last;
}

/* Which attempt of the run a pod means. Its first words may come before anybody told it. */
static int attempt_of(struct reader *r, int attempt, int rank)
{
    const struct reader *before = r->before;

    while (before && before->last_attempt == 0) /* it said nothing */
        before = before->before;
    int had = before ? before->last_attempt : 0;
    if (r->more < 0 && had > 0 && rank < 0 && attempt <= 1)
        return last_replaced(r->of) + 1;
    if (r->more < 0)
        r->more = attempt <= had ? last_replaced(r->of) + 1 - attempt : 0;
    return attempt + r->more;
}

/* Mostly it is the one of the line before. */
static int64_t kept_for(struct reader *r, int attempt, int rank)
{
    struct logs *l = r->of;
    const struct kept *last = r->last_kept < l->n_kept ? &l->kept[r->last_kept] : NULL;

    if (last && last->attempt == attempt && last->rank == rank && (rank >= 0 || last->index == r->index))
        return (int64_t)r->last_kept;
    int64_t at = find_kept(l, attempt, rank, r->index);
    r->last_kept = at < 0 ? 0 : (size_t)at;
    return at;
}

static void tell_news(struct logs *l)
{
    if (l->news)
        *l->news = true;
}

static void take_text(void *arg, int counted, int rank, const char *text, size_t len)
{
    struct reader *r = arg;
    struct logs *l = r->of;
    int attempt = attempt_of(r, counted, rank);
    int64_t at = kept_for(r, attempt, rank);
    int rc = at < 0 ? -EFBIG : store_texts_add(&l->texts, (size_t)at, text, len);

    r->has_news = true;
    tell_news(l);

    r->last_attempt = attempt > r->last_attempt ? attempt : r->last_attempt;
    l->attempt = attempt > l->attempt ? attempt : l->attempt;
    l->rc = rc < 0 ? rc : l->rc;
}

static char *key_of(const struct logs *l, const struct kept *t)
{
    ACT_AUTOFREE char *plain =
        t->rank >= 0 ? run_rank_log(t->rank) : act_sprintf(RUN_DIR_SYSTEM "/agent_%d.txt", t->index);

    return t->attempt < l->attempt ? act_sprintf(RUN_DIR_ATTEMPTS "/%d/%s", t->attempt, plain) : act_strdup(plain);
}

static bool is_all_whole(const struct logs *l)
{
    for (size_t i = 0; i < l->n_readers; i++)
        if (!l->readers[i]->is_whole)
            return false;
    return true;
}

/* The texts as they are now: those of an attempt get other names when the next one begins. */
static int publish(struct logs *l, struct act_error *err)
{
    int rc = l->rc < 0 ? l->rc : store_texts_flush(&l->texts);

    for (size_t i = 0; i < l->n_kept; i++) {
        free(l->texts.v[i].key);
        l->texts.v[i].key = key_of(l, &l->kept[i]);
    }
    l->texts.is_whole = is_all_whole(l);
    if (l->news)
        *l->news = false;
    return rc < 0 ? act_error_errno(err, -rc, "cannot keep the logs of '%s' in the folder for temporary files", l->id)
                  : 0;
}

/* ---- the pods ---- */

static struct reader *find_reader(struct logs *l, const json_t *pod)
{
    const char *name = kubernetes_name_of(pod);

    for (size_t i = 0; i < l->n_readers; i++)
        if (strcmp(l->readers[i]->pod, name) == 0)
            return l->readers[i];
    struct reader *r = act_calloc(1, sizeof(*r));
    *r = (struct reader){.of = l, .pod = act_strdup(name), .index = kubernetes_index(pod), .more = -1};
    for (size_t i = l->n_readers; i-- > 0 && !r->before;)
        if (l->readers[i]->index == r->index && r->index >= 0)
            r->before = l->readers[i];
    if (r->before)
        r->before->is_replaced = true;
    r->log = kubernetes_pod_log_new(take_text, r);
    r->what = act_sprintf("read the log of the pod '%s'", name);
    ACT_PUSH(l->readers, l->n_readers, r);
    return r;
}

static void take_bytes(struct kube_stream *stream, const char *data, size_t len)
{
    kubernetes_pod_log_take(((struct reader *)stream->arg)->log, data, len);
}

static void take_last_lines(struct kube_stream *stream, const char *data, size_t len)
{
    act_buf_add(&((struct reader *)stream->arg)->last_lines, data, len);
}

/* That a stream ended which brought something is news: the pod may have ended. */
static void reading_done(struct kube_stream *stream)
{
    struct reader *r = stream->arg;

    if (r->follows)
        r->ended_ms = act_now_monotonic_ms();
    if (r->follows && r->has_news)
        tell_news(r->of);
    if (r->awaited)
        r->of->awaited--;
    r->awaited = false;
    r->of->idle = r->of->awaited == 0;
}

static void await(struct reader *r)
{
    r->awaited = true;
    r->of->awaited++;
    r->of->idle = false;
}

static void run_until_idle(struct logs *l)
{
    if (l->awaited > 0)
        engine_run(services_engine(l->k->base.services), &l->idle);
}

/* "&sinceTime=...", or "&tailLines=2". New string. */
static char *query_of(const struct reader *r, enum reading reading)
{
    if (reading == PROVE)
        return act_sprintf("&tailLines=%lld", (long long)kubernetes_pod_log_proof(r->log));
    ACT_AUTOFREE char *since = kubernetes_pod_log_resume(r->log);
    ACT_AUTOFREE char *escaped = since ? http_encode(since, false) : act_strdup("");
    return act_sprintf("%s%s%s", reading == FOLLOW ? "&follow=true" : "", since ? "&sinceTime=" : "", escaped);
}

static void start_reading(struct reader *r, enum reading reading)
{
    struct logs *l = r->of;
    ACT_AUTOFREE char *query = query_of(r, reading);
    ACT_AUTOFREE char *pod = kube_path(l->k->kube, "v1", "pods", r->pod, NULL);

    kube_stream_release(&r->stream);
    r->stream =
        (struct kube_stream){.path = act_sprintf("%s/log?container=" KUBERNETES_MAIN "&timestamps=true%s", pod, query),
                             .what = r->what,
                             .take = reading == PROVE ? take_last_lines : take_bytes,
                             .done = reading_done,
                             .arg = r};
    r->follows = reading == FOLLOW;
    r->came_to_end = r->came_to_end && reading == PROVE;
    r->has_news = false;
    if (!r->follows)
        await(r);
    kube_stream_start(l->k->kube, &r->stream);
}

static void end_log(struct reader *r)
{
    kubernetes_pod_log_end(r->log);
    r->is_whole = true;
}

/* A pod that is gone, or has not begun, has no log: that is no failure. */
static int end_reading(struct reader *r, struct act_error *err)
{
    int rc = r->stream.rc, status = r->stream.status;
    struct act_error why = r->stream.error;

    r->was_read = rc == 0;
    if (rc == 0 && r->has_ended && !r->follows)
        end_log(r);
    r->came_to_end = rc == 0 && r->follows && kubernetes_pod_log_proof(r->log) > 0;
    r->follows = false;
    kube_stream_release(&r->stream);
    if (rc == 0 || rc == -ACT_INTERRUPTED || status == 404 || status == 400)
        return 0;
    *err = why;
    return rc;
}

static bool has_begun(const json_t *pod)
{
    return strcmp(codec_json_str(json_object_get(pod, "status"), "phase", "Pending"), "Pending") != 0;
}

static bool has_ended(const json_t *pod)
{
    const char *phase = codec_json_str(json_object_get(pod, "status"), "phase", "");

    return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
}

/* The log of a pod whose node is lost cannot be had, those of the others can. Said once for each pod. */
static void miss(struct reader *r)
{
    if (!r->was_missed)
        act_warn("the logs are not complete: %s", act_error_text(&r->why));
    r->was_missed = true;
}

/* What was read, of n pods. Nothing of what was asked for: the first error. */
static int end_readings(struct logs *l, size_t n, struct act_error *err)
{
    const struct reader *first = NULL;
    size_t failed = 0;

    for (size_t i = l->n_readers; i-- > 0;) {
        failed += l->readers[i]->rc < 0;
        first = l->readers[i]->rc < 0 ? l->readers[i] : first;
    }
    if (first && failed == n && l->n_kept == 0) {
        *err = first->why;
        return first->rc;
    }
    for (size_t i = 0; i < l->n_readers; i++)
        if (l->readers[i]->rc < 0)
            miss(l->readers[i]);
    if (n > 0)
        l->texts.incomplete = failed > 0;
    return 0;
}

static int by_age(const void *a, const void *b)
{
    const json_t *one = *(json_t *const *)a, *other = *(json_t *const *)b;

    if (kubernetes_index(one) != kubernetes_index(other))
        return kubernetes_index(one) < kubernetes_index(other) ? -1 : 1;
    if (kubernetes_is_newer(one, other) != kubernetes_is_newer(other, one))
        return kubernetes_is_newer(one, other) ? 1 : -1;
    return strcmp(kubernetes_name_of(one), kubernetes_name_of(other));
}

/* The readers of the pods, those of each index in the order in which the pods were made. New memory. */
static struct reader **find_readers(struct logs *l, const json_t *pods)
{
    size_t n = json_array_size(pods), i;
    ACT_AUTOFREE json_t **sorted = act_calloc(n + 1, sizeof(json_t *));
    struct reader **readers = act_calloc(n + 1, sizeof(struct reader *));

    for (i = 0; i < n; i++)
        sorted[i] = json_array_get(pods, i);
    qsort(sorted, n, sizeof(json_t *), by_age);
    for (i = 0; i < n; i++) {
        readers[i] = find_reader(l, sorted[i]);
        readers[i]->has_begun = has_begun(sorted[i]);
        readers[i]->has_ended = has_ended(sorted[i]);
    }
    return readers;
}

static void cut_off(void *arg)
{
    kube_stream_cancel(&((struct reader *)arg)->stream);
}

/* Those whose pods have ended come to their end soon. */
static void await_last_words(struct logs *l)
{
    for (size_t i = 0; i < l->n_readers; i++) {
        struct reader *r = l->readers[i];
        if (!r->follows || !r->has_ended || !r->stream.under_way)
            continue;
        await(r);
        engine_timer(services_engine(l->k->base.services), LAST_WORDS_MS, cut_off, r);
    }
    run_until_idle(l);
    for (size_t i = 0; i < l->n_readers; i++)
        engine_forget(services_engine(l->k->base.services), l->readers[i]);
}

/* How those that followed have ended. One that broke off is read anew at once, and what becomes of that counts. */
static void end_following(struct logs *l)
{
    for (size_t i = 0; i < l->n_readers; i++) {
        struct reader *r = l->readers[i];
        if (r->follows && !r->stream.under_way)
            end_reading(r, &r->why);
        r->rc = 0;
    }
}

/* Whether those whose streams came to their ends are read to the ends of their logs. */
static void prove_ends(struct logs *l)
{
    for (size_t i = 0; i < l->n_readers; i++)
        if (l->readers[i]->came_to_end)
            start_reading(l->readers[i], PROVE);
    run_until_idle(l);
    for (size_t i = 0; i < l->n_readers; i++) {
        struct reader *r = l->readers[i];
        if (!r->came_to_end)
            continue;
        bool proven = r->stream.rc == 0 && kubernetes_pod_log_proves(r->log, r->last_lines.data, r->last_lines.len);
        r->came_to_end = proven && !r->has_ended;
        if (proven && r->has_ended)
            end_log(r);
        act_buf_release(&r->last_lines);
        kube_stream_release(&r->stream);
    }
}

/* A log may end a moment before the cluster says so of its pod. */
static bool is_about_to_end(const struct reader *r)
{
    return r->came_to_end && act_now_monotonic_ms() - r->ended_ms < LAST_WORDS_MS;
}

static bool has_to_be_read(const struct reader *r)
{
    return r->has_begun && !r->is_whole && !r->stream.under_way && !is_about_to_end(r);
}

/* Who watches is told at once what those print that go on. */
static void follow_on(struct logs *l)
{
    for (size_t i = 0; i < l->n_readers; i++) {
        struct reader *r = l->readers[i];
        if (r->was_read && !r->has_ended && has_to_be_read(r))
            start_reading(r, FOLLOW);
    }
}

/* A pod whose log cannot be had has an attempt nevertheless: those that come after it count on from there. Returns how
 * many were read; the others are followed. */
static size_t read_all(struct logs *l, struct reader *const *readers, size_t n)
{
    size_t n_read = 0;

    for (size_t i = 0; i < n; i++)
        start_reading(readers[i], readers[i]->was_read && !readers[i]->has_ended ? FOLLOW : READ);
    run_until_idle(l);
    for (size_t i = 0; i < n; i++) {
        struct reader *r = readers[i];
        if (r->follows)
            continue;
        r->rc = end_reading(r, &r->why);
        if (r->rc < 0 && r->last_attempt == 0)
            r->last_attempt = 1;
        n_read++;
    }
    return n_read;
}

/* How many pods were there before it in its place. */
static size_t age_of(const struct reader *r)
{
    size_t age = 0;

    for (; r->before; r = r->before)
        age++;
    return age;
}

/* Of each index the oldest at once, then the next ones; those that nobody replaced are the last. */
static int read_pods(struct logs *l, const json_t *pods, struct act_error *err)
{
    size_t n = json_array_size(pods), left = 0;
    ACT_AUTOFREE struct reader **readers = find_readers(l, pods);
    ACT_AUTOFREE struct reader **now = act_calloc(n + 1, sizeof(struct reader *));
    size_t n_read = 0;

    await_last_words(l);
    end_following(l);
    prove_ends(l);
    for (size_t i = 0; i < n; i++)
        if (has_to_be_read(readers[i]))
            readers[left++] = readers[i];
    for (size_t age = 0; left > 0; age++) {
        size_t n_now = 0, later = 0;
        bool any_replaced = false;
        for (size_t i = 0; i < left; i++)
            any_replaced = any_replaced || readers[i]->is_replaced;
        for (size_t i = 0; i < left; i++) {
            bool turn = !any_replaced || (readers[i]->is_replaced && age_of(readers[i]) <= age);
            if (turn)
                now[n_now++] = readers[i];
            else
                readers[later++] = readers[i];
        }
        left = later;
        n_read += read_all(l, now, n_now);
    }
    if (l->news)
        follow_on(l);
    return end_readings(l, n_read, err);
}

static int check_run(struct logs *l, struct act_error *err)
{
    CODEC_AUTOJSON json_t *job = NULL;
    int rc = l->n_readers > 0 ? 0 : kubernetes_know_job(l->k, l->id, &job, err);

    if (rc < 0 || l->n_readers > 0 || job)
        return rc;
    return l->ended ? act_error_set(err, ACT_NOT_FOUND,
                                    "the logs of run '%s' went with its pods: its Job is not in the namespace '%s' any "
                                    "more; of later runs they stay, if the code is in Blob Storage ('code_path')",
                                    l->id, kube_namespace(l->k->kube))
                    : act_error_set(err, ACT_NOT_FOUND, "there is no run '%s' in the namespace '%s'", l->id,
                                    kube_namespace(l->k->kube));
}

static int gather(void *arg, struct act_error *err)
{
    struct logs *l = arg;
    CODEC_AUTOJSON json_t *pods = NULL;

    int rc = kubernetes_find_pods(l->k, l->name, &pods, err);

    if (rc == 0 && json_array_size(pods) == 0)
        rc = check_run(l, err);
    if (rc == 0)
        rc = read_pods(l, pods, err);
    return rc < 0 ? rc : publish(l, err);
}

static void watch(void *arg, bool *news)
{
    ((struct logs *)arg)->news = news;
}

static void close_logs(void *arg)
{
    struct logs *l = arg;

    l->news = NULL;
    for (size_t i = 0; i < l->n_readers; i++) {
        if (!l->readers[i]->stream.under_way)
            continue;
        await(l->readers[i]);
        cut_off(l->readers[i]);
    }
    run_until_idle(l);
    for (size_t i = 0; i < l->n_readers; i++) {
        struct reader *r = l->readers[i];
        kube_stream_release(&r->stream);
        act_buf_release(&r->last_lines);
        kubernetes_pod_log_free(r->log);
        free(r->pod);
        free(r->what);
        free(r);
    }
    store_texts_release(&l->texts);
    json_decref(l->places);
    free(l->readers);
    free(l->kept);
    free(l->id);
    free(l->name);
    free(l);
}

struct store *kubernetes_open_logs(struct platform *p, const char *id, bool ended)
{
    struct kubernetes *k = kubernetes_of(p);
    struct logs *l = act_calloc(1, sizeof(*l));

    *l = (struct logs){.k = k,
                       .id = act_strdup(id),
                       .name = kubernetes_name(id),
                       .ended = ended,
                       .places = json_object(),
                       .attempt = 1,
                       .idle = true};
    return store_texts_open(services_http(k->base.services), &(struct store_texts_options){.id = l->id,
                                                                                           .gather = gather,
                                                                                           .watch = watch,
                                                                                           .close = close_logs,
                                                                                           .arg = l,
                                                                                           .texts = &l->texts,
                                                                                           .grow = !ended});
}
