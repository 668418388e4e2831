/* watch.c - when the items of a list are listed, and when they are watched.
 *
 * Source: kubernetes.io/docs/reference/using-api/api-concepts; github.com/kubernetes/client-go tools/cache/reflector.go
 * (for how long a watch is asked for, and that clients do not come back all at once). */
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "codec/json.h"
#include "engine/engine.h"
#include "kube/kube_internal.h"

enum {
    SHORTEST_S = 300, /* that a watch is asked to last; clients that began together do not end together */
    SPREAD_S = 300,
    GRACE_S = 30,     /* then it is ended here */
    LOOKS = 4,        /* in the time after which a silent one is given up */
    STEADY_MS = 5000, /* a watch that has lasted for so long did not fail */
    FIRST_MS = 1000,  /* after the second failure in a row; then twice as long each time */
    LONGEST_MS = 10000,
    SECOND = 2, /* failure: what follows the first one is done at once */
    TOLD = 4,   /* so many in a row are told of */
    FORBIDDEN = 403,
    NO_METHOD = 405,
};

int64_t kube_silent_ms = 150000; /* servers that send bookmarks do so about once a minute */

enum state {
    TO_LIST, /* by whoever wants the items */
    WATCHED,
    RESTING, /* then it is to be listed, or watched */
};

struct kube_watch {
    struct kube *kube;
    char *path, *to_list, *to_watch;
    void (*changed)(void *arg);
    void *arg;
    enum state state;
    bool lists_then;  /* after the rest */
    bool denied;      /* the user may list, and not watch */
    int failures;     /* in a row */
    int64_t began_ms; /* the stream, */
    int64_t ends_ms;  /* which ends then if not by itself, */
    int64_t heard_ms; /* and brought something */
    struct kube_mirror mirror;
    struct kube_stream stream;
    int rc; /* of the last list */
    struct act_error error;
    int wrong; /* of what the stream brought */
    struct act_error why;
    bool ends, has_ended; /* kube_watch_free() */
};

static struct engine *kube_watch_engine_of(const struct kube_watch *w)
{
    return http_engine(w->kube->http);
}

static int from_random(int most)
{
    uint32_t random;

    act_random(&random, sizeof(random));
    return (int)(random % (uint32_t)most);
}

/* ---- rests ---- */

static void start_stream(struct kube_watch *w);

static void kube_watch_go_on(void *arg)
{
    struct kube_watch *w = arg;

    if (!w->lists_then) {
        start_stream(w);
        return;
    }
    w->state = TO_LIST;
    w->changed(w->arg);
}

/* Returns how long to rest: ever longer, and not the same for all clients. */
static int64_t rest_ms(int failures)
{
    int64_t ms = failures < SECOND ? 0 : FIRST_MS;

    for (int i = SECOND; i < failures && ms < LONGEST_MS; i++)
        ms *= 2;
    ms = ms < LONGEST_MS ? ms : LONGEST_MS;
    return ms ? ms * 3 / 4 + from_random((int)ms / 4) : 0;
}

static void rest(struct kube_watch *w, bool lists_then)
{
    w->state = RESTING;
    w->lists_then = lists_then;
    engine_timer(kube_watch_engine_of(w), rest_ms(w->failures), kube_watch_go_on, w);
}

static void count_failure(struct kube_watch *w, int least)
{
    w->failures = w->failures + 1 > least ? w->failures + 1 : least;
}

static void kube_watch_tell(struct kube_watch *w)
{
    if (w->kube->told_of_lists || (!w->denied && w->failures < TOLD))
        return;
    w->kube->told_of_lists = true;
    if (w->denied)
        act_warn("%s; so the cluster is asked again and again, in the end every %d s ('a doctor' names the rights that "
                 "runs need)",
                 act_error_text(&w->why), LONGEST_MS / 1000);
    else
        act_warn("the cluster cannot be watched, so it is asked again and again, in the end every %d s: %s",
                 LONGEST_MS / 1000, act_error_text(&w->why));
}

/* ---- the stream ---- */

static void kube_watch_take(struct kube_stream *stream, const char *data, size_t len)
{
    struct kube_watch *w = stream->arg;

    if (w->wrong)
        return;
    w->heard_ms = act_now_monotonic_ms();
    w->wrong = kube_mirror_take(&w->mirror, data, len, &w->why);
    if (w->wrong)
        kube_stream_cancel(stream);
    if (!w->mirror.changed)
        return;
    w->mirror.changed = false;
    w->changed(w->arg);
}

/* Judges how the stream ended: 0 if it goes on from where it was, as long as that does not fail again and again; else
 * why it has to be listed anew. */
static int kube_watch_judge(struct kube_watch *w, bool lasted)
{
    const struct kube_stream *stream = &w->stream;
    bool was_there = stream->status >= 200 && stream->status <= 299;

    if (w->wrong)
        return w->wrong;
    if (stream->rc == 0 || stream->rc == -ACT_INTERRUPTED) {
        act_error_set(&w->why, ACT_TEMPORARY, "the server ends each watch at once");
        return 0;
    }
    w->why = stream->error;
    w->denied = stream->status == FORBIDDEN || stream->status == NO_METHOD;
    return was_there && lasted ? 0 : stream->rc;
}

static void kube_watch_ended(struct kube_stream *stream)
{
    struct kube_watch *w = stream->arg;

    engine_forget(kube_watch_engine_of(w), w);
    w->has_ended = true;
    if (w->ends)
        return;
    bool lasted = act_now_monotonic_ms() - w->began_ms >= STEADY_MS;
    int rc = kube_watch_judge(w, lasted);
    w->failures = lasted ? 0 : w->failures;
    if (!lasted || rc < 0)
        count_failure(w, w->denied ? SECOND : 0);
    kube_watch_tell(w);
    rest(w, rc < 0 || w->failures >= SECOND);
}

/* Ends a stream that should have ended by itself, or whose connection is dead, as after this machine slept. */
static void look_whether_it_lives(void *arg)
{
    struct kube_watch *w = arg;
    int64_t now = act_now_monotonic_ms();
    bool is_silent = w->mirror.has_bookmarks && now - w->heard_ms > kube_silent_ms;

    if (is_silent || now > w->ends_ms)
        kube_stream_cancel(&w->stream);
    else
        engine_timer(kube_watch_engine_of(w), kube_silent_ms / LOOKS, look_whether_it_lives, w);
}

/* New string. */
static char *stream_path(const struct kube_watch *w, int seconds)
{
    ACT_AUTOFREE char *version = http_encode(w->mirror.version ? w->mirror.version : "", false);

    return act_sprintf("%s%cwatch=1&resourceVersion=%s&allowWatchBookmarks=true&timeoutSeconds=%d", w->path,
                       strchr(w->path, '?') ? '&' : '?', version, seconds);
}

static void start_stream(struct kube_watch *w)
{
    int seconds = SHORTEST_S + from_random(SPREAD_S);

    w->state = WATCHED;
    w->wrong = 0;
    w->has_ended = false;
    w->began_ms = w->heard_ms = act_now_monotonic_ms();
    w->ends_ms = w->began_ms + (int64_t)(seconds + GRACE_S) * 1000;
    kube_mirror_begin_stream(&w->mirror);
    kube_stream_release(&w->stream);
    w->stream = (struct kube_stream){.path = stream_path(w, seconds),
                                     .what = w->to_watch,
                                     .accept = "application/json",
                                     .take = kube_watch_take,
                                     .done = kube_watch_ended,
                                     .arg = w};
    engine_timer(kube_watch_engine_of(w), kube_silent_ms / LOOKS, look_whether_it_lives, w);
    kube_stream_start(w->kube, &w->stream);
}

/* ---- the list ---- */

static int kube_watch_keep(void *arg, const json_t *item, struct act_error *err)
{
    ACT_AUTOFREE char *key = kube_key(item);

    (void)err;
    json_object_set_new(arg, key, json_deep_copy(item));
    return 0;
}

static void list_anew(struct kube_watch *w)
{
    json_t *items = json_object();
    char *version = NULL;

    w->rc = kube_list(w->kube, w->path, w->to_list, kube_watch_keep, items, &version, &w->error);
    if (w->rc < 0) {
        json_decref(items);
        free(version);
        count_failure(w, SECOND);
        rest(w, true);
        return;
    }
    kube_mirror_begin(&w->mirror, items, version);
    if (w->denied) {
        count_failure(w, SECOND);
        rest(w, true);
    } else {
        start_stream(w);
    }
}

int kube_watch_items(struct kube_watch *w, json_t **out, struct act_error *err)
{
    const char *key;
    json_t *item;

    *out = json_array();
    if (w->state == TO_LIST)
        list_anew(w);
    if (w->rc < 0) {
        *err = w->error;
        return w->rc;
    }
    json_object_foreach(w->mirror.items, key, item)
    {
        json_array_append(*out, item);
    }
    return 0;
}

struct kube_watch *kube_watch_new(struct kube *kube, const char *path, const char *what, void (*changed)(void *arg),
                                  void *arg)
{
    struct kube_watch *w = act_calloc(1, sizeof(*w));

    *w = (struct kube_watch){.kube = kube,
                             .path = act_strdup(path),
                             .to_list = act_sprintf("list %s", what),
                             .to_watch = act_sprintf("watch %s", what),
                             .changed = changed,
                             .arg = arg,
                             .has_ended = true};
    return w;
}

void kube_watch_free(struct kube_watch *w)
{
    if (!w)
        return;
    w->ends = true;
    engine_forget(kube_watch_engine_of(w), w);
    kube_stream_cancel(&w->stream);
    if (!w->has_ended)
        engine_run(kube_watch_engine_of(w), &w->has_ended);
    kube_stream_release(&w->stream);
    kube_mirror_release(&w->mirror);
    free(w->path);
    free(w->to_list);
    free(w->to_watch);
    free(w);
}
