/* pod_reader.c - how the log of a pod is read: what there is of it, then what comes, to its end. See pod_reader.h. */
#include "platform/kubernetes/pod_reader.h"

#include "base/clock.h"
#include "base/log.h"

/* So long after its pod ended, or before, the stream that follows a log may end. */
enum { LAST_WORDS_MS = 5000 };

/* The purpose of a request to a log. */
enum reading {
    READ,   /* what there is */
    FOLLOW, /* and what the pod prints from now on */
    PROVE,  /* its last lines, which show whether anything was added to what was read */
};

static void reader_take_bytes(struct kube_stream *stream, const char *data, size_t len)
{
    kubernetes_pod_log_take(((struct pod_reader *)stream->arg)->log, data, len);
}

static void reader_take_last_lines(struct kube_stream *stream, const char *data, size_t len)
{
    act_buf_add(&((struct pod_reader *)stream->arg)->last_lines, data, len);
}

/* It is news when a stream has brought something and ends: the pod may have ended. */
static void reading_done(struct kube_stream *stream)
{
    struct pod_reader *r = stream->arg;

    if (r->state == LOG_FOLLOWED)
        r->ended_ms = act_now_monotonic_ms();
    if (r->state == LOG_FOLLOWED && r->has_news)
        pod_readers_tell(r->of);
    r->of->awaited -= r->awaited;
    r->awaited = false;
    r->of->idle = r->of->awaited == 0;
}

static void await(struct pod_reader *r)
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

/* Returns what the request adds to the query: "&sinceTime=...", or "&tailLines=2". New string. */
static char *reader_query(const struct pod_reader *r, enum reading reading)
{
    if (reading == PROVE)
        return act_sprintf("&tailLines=%lld", (long long)kubernetes_pod_log_proof(r->log));
    ACT_AUTOFREE char *since = kubernetes_pod_log_resume(r->log);
    ACT_AUTOFREE char *escaped = since ? http_encode(since, false) : act_strdup("");
    return act_sprintf("%s%s%s", reading == FOLLOW ? "&follow=true" : "", since ? "&sinceTime=" : "", escaped);
}

static void start_reading_pod(struct pod_reader *r, enum reading reading)
{
    struct logs *l = r->of;
    ACT_AUTOFREE char *query = reader_query(r, reading);
    ACT_AUTOFREE char *pod = kube_path(l->k->kube, "v1", "pods", r->pod, NULL);

    kube_stream_release(&r->stream);
    r->stream =
        (struct kube_stream){.path = act_sprintf("%s/log?container=" KUBERNETES_MAIN "&timestamps=true%s", pod, query),
                             .what = r->what,
                             .take = reading == PROVE ? reader_take_last_lines : reader_take_bytes,
                             .done = reading_done,
                             .arg = r};
    r->has_news = false;
    if (reading == FOLLOW)
        r->state = LOG_FOLLOWED;
    else
        await(r);
    if (reading == READ && r->state != LOG_UNREAD)
        r->state = LOG_READ;
    kube_stream_start(l->k->kube, &r->stream);
}

static void reader_end_log(struct pod_reader *r)
{
    kubernetes_pod_log_end(r->log);
    r->state = LOG_WHOLE;
}

/* A pod that is gone, or has not begun, has no log: that is no failure. A log that its node has removed is one. */
static void reader_end(struct pod_reader *r)
{
    int rc = r->stream.rc, status = r->stream.status;
    bool is_fine = rc == 0 || rc == -ACT_INTERRUPTED || status == 404 || status == 400;

    r->why = is_fine ? (struct act_error){0} : r->stream.error;
    if (rc < 0)
        r->state = LOG_UNREAD;
    else if (r->state == LOG_FOLLOWED)
        r->state = r->phase == POD_IS_GONE || kubernetes_pod_log_proof(r->log) > 0 ? LOG_AT_END : LOG_READ;
    else if (r->phase == POD_HAS_ENDED)
        reader_end_log(r);
    else
        r->state = LOG_READ;
    if (kubernetes_pod_log_is_gone(r->log))
        (void)act_error_set(&r->why, ACT_NOT_FOUND, "the node of the pod '%s' has removed its log", r->pod);
    kube_stream_release(&r->stream);
}

static void pod_reader_cut_off(void *arg)
{
    kube_stream_cancel(&((struct pod_reader *)arg)->stream);
}

static bool reader_is_over(const struct pod_reader *r)
{
    return r->phase == POD_HAS_ENDED || r->phase == POD_IS_GONE;
}

/* Waits for the streams of pods that have ended: they end soon, or are cut off. */
static void await_last_words(struct logs *l)
{
    for (size_t i = 0; i < l->n_readers; i++) {
        struct pod_reader *r = l->readers[i];
        if (r->state != LOG_FOLLOWED || !reader_is_over(r) || !r->stream.under_way)
            continue;
        await(r);
        engine_timer(services_engine(l->k->base.services), LAST_WORDS_MS, pod_reader_cut_off, r);
    }
    run_until_idle(l);
    for (size_t i = 0; i < l->n_readers; i++)
        engine_forget(services_engine(l->k->base.services), l->readers[i]);
}

/* Looks how the streams that followed have ended. A log whose stream broke off is read anew at once, and the result of
 * that counts. */
static void end_following(struct logs *l)
{
    for (size_t i = 0; i < l->n_readers; i++) {
        struct pod_reader *r = l->readers[i];
        if (r->state == LOG_FOLLOWED && !r->stream.under_way)
            reader_end(r);
        r->why = (struct act_error){0};
    }
}

/* Finds out whether the logs whose streams came to their ends are read to their own ends. */
static void prove_ends(struct logs *l)
{
    for (size_t i = 0; i < l->n_readers; i++)
        if (l->readers[i]->state == LOG_AT_END && l->readers[i]->phase != POD_IS_GONE)
            start_reading_pod(l->readers[i], PROVE);
    run_until_idle(l);
    for (size_t i = 0; i < l->n_readers; i++) {
        struct pod_reader *r = l->readers[i];
        if (r->state != LOG_AT_END || r->phase == POD_IS_GONE)
            continue;
        bool proven = r->stream.rc == 0 && kubernetes_pod_log_proves(r->log, r->last_lines.data, r->last_lines.len);
        if (proven && r->phase == POD_HAS_ENDED)
            reader_end_log(r);
        else if (!proven)
            r->state = LOG_READ;
        act_buf_release(&r->last_lines);
        kube_stream_release(&r->stream);
    }
}

/* Nobody can read more of the log of a pod that is gone: it is whole if its stream came to its end, and else what there
 * is of it. */
static void end_gone(struct logs *l)
{
    for (size_t i = 0; i < l->n_readers; i++) {
        struct pod_reader *r = l->readers[i];
        if (r->phase != POD_IS_GONE || r->state == LOG_WHOLE)
            continue;
        if (r->state != LOG_AT_END && !r->sends)
            act_warn("the logs are not complete: the pod '%s' is gone, and with it whatever its log had after what was "
                     "read of it",
                     r->pod);
        reader_end_log(r);
    }
}

void pod_readers_settle(struct logs *l)
{
    await_last_words(l);
    end_following(l);
    prove_ends(l);
    end_gone(l);
}

/* A log may end a moment before the cluster says so of its pod. */
static bool is_about_to_end(const struct pod_reader *r)
{
    return r->state == LOG_AT_END && act_now_monotonic_ms() - r->ended_ms < LAST_WORDS_MS;
}

bool pod_reader_is_behind(const struct pod_reader *r)
{
    return r->phase != POD_WAITS && r->state != LOG_WHOLE && !r->stream.under_way && !is_about_to_end(r);
}

/* Tells whether the next reading only has to bring what the pod prints from now on. */
static bool can_be_followed(const struct pod_reader *r)
{
    return r->state != LOG_UNREAD && !reader_is_over(r);
}

void pod_readers_follow(struct logs *l)
{
    for (size_t i = 0; i < l->n_readers; i++) {
        struct pod_reader *r = l->readers[i];
        if (can_be_followed(r) && pod_reader_is_behind(r))
            start_reading_pod(r, FOLLOW);
    }
}

/* A pod whose log cannot be had made an attempt, too: the pods that come after it count on from there. */
size_t pod_readers_read(struct logs *l, struct pod_reader *const *readers, size_t n)
{
    size_t n_read = 0;

    for (size_t i = 0; i < n; i++)
        start_reading_pod(readers[i], can_be_followed(readers[i]) ? FOLLOW : READ);
    run_until_idle(l);
    for (size_t i = 0; i < n; i++) {
        struct pod_reader *r = readers[i];
        if (r->state == LOG_FOLLOWED)
            continue;
        reader_end(r);
        if (r->why.code && r->last_attempt == 0)
            r->last_attempt = 1;
        n_read++;
    }
    return n_read;
}

void pod_readers_tell(const struct logs *l)
{
    if (l->news)
        *l->news = true;
}

void pod_readers_free(struct logs *l)
{
    for (size_t i = 0; i < l->n_readers; i++) {
        if (!l->readers[i]->stream.under_way)
            continue;
        await(l->readers[i]);
        pod_reader_cut_off(l->readers[i]);
    }
    run_until_idle(l);
    for (size_t i = 0; i < l->n_readers; i++) {
        struct pod_reader *r = l->readers[i];
        kube_stream_release(&r->stream);
        act_buf_release(&r->last_lines);
        kubernetes_pod_log_free(r->log);
        free(r->pod);
        free(r->what);
        free(r);
    }
    free(l->readers);
}
