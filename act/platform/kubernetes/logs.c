/* logs.c - the logs of a run as a store. What the pods print is read from where the last reading ended, taken apart by
 * ranks (pod_log.c) and kept in files without names.
 *
 * Who asks a second time watches: from then on what a running pod prints is followed, and comes whenever the loop runs.
 * What a pod has printed that has ended is read once more from the last second on: a following reader may be ended by
 * other things than the end of the log, such as its rotation.
 *
 * Source: kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/ (read log).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "platform/kubernetes/kubernetes_internal.h"
#include "store/store.h"

/* What follows a log is given so long to come to its end when the pod has. */
enum { LAST_WORDS_MS = 5000 };

struct logs;

/* A pod, and how far it was read. */
struct reader {
    struct logs *of;
    char *pod;
    int index;
    struct kubernetes_pod_log *log;
    bool is_whole; /* read to its end, which will not change */
    bool has_ended;
    bool was_read; /* as far as it was then */
    bool follows;  /* its stream does, and is under way, or nobody has looked yet at how it ended */
    bool awaited;
    char *what;
    struct kube_stream stream;
};

/* A text of the store. */
struct kept {
    int attempt, rank, index; /* rank -1: the words of the agent in the pod with this index */
    FILE *file;
    uint64_t size;
};

struct logs {
    struct kubernetes *k;
    char *id, *name;
    struct reader **readers;
    size_t n_readers;
    struct kept *kept;
    size_t n_kept;
    struct store_texts texts; /* one for each of kept */
    int attempt;              /* the last one */
    size_t awaited;           /* streams */
    bool idle;                /* none is awaited */
    int rc;                   /* of the first text that could not be kept */
};

/* ---- the texts ---- */

static struct kept *find_kept(struct logs *l, int attempt, int rank, int index)
{
    for (size_t i = 0; i < l->n_kept; i++) {
        struct kept *t = &l->kept[i];
        if (t->attempt == attempt && t->rank == rank && (rank >= 0 || t->index == index))
            return t;
    }
    ACT_PUSH(l->kept, l->n_kept, (struct kept){.attempt = attempt, .rank = rank, .index = index, .file = tmpfile()});
    return &l->kept[l->n_kept - 1];
}

static void take_text(void *arg, int attempt, int rank, const char *text, size_t len)
{
    struct reader *r = arg;
    struct kept *t = find_kept(r->of, attempt, rank, r->index);

    r->of->attempt = attempt > r->of->attempt ? attempt : r->of->attempt;
    if (!t->file || fwrite(text, 1, len, t->file) != len)
        r->of->rc = -(errno ? errno : EIO);
    t->size += len;
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
    for (size_t i = 0; i < l->n_kept; i++) {
        struct kept *t = &l->kept[i];
        if (t->file && fflush(t->file) != 0)
            l->rc = -errno;
        if (i == l->texts.n)
            ACT_PUSH(l->texts.v, l->texts.n, (struct store_text){.fd = t->file ? fileno(t->file) : -1});
        struct store_text *text = &l->texts.v[i];
        free(text->key);
        text->key = key_of(l, t);
        if (text->size != t->size)
            text->changed_unix_s = act_now_unix_s();
        text->size = t->size;
        text->is_whole = is_all_whole(l);
    }
    return l->rc < 0
               ? act_error_errno(err, -l->rc, "cannot keep the logs of '%s' in the folder for temporary files", l->id)
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
    *r = (struct reader){.of = l, .pod = act_strdup(name), .index = kubernetes_index(pod)};
    r->log = kubernetes_pod_log_new(take_text, r);
    r->what = act_sprintf("read the log of the pod '%s'", name);
    ACT_PUSH(l->readers, l->n_readers, r);
    return r;
}

static void take_bytes(struct kube_stream *stream, const char *data, size_t len)
{
    kubernetes_pod_log_take(((struct reader *)stream->arg)->log, data, len);
}

static void reading_done(struct kube_stream *stream)
{
    struct reader *r = stream->arg;

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

static void start_reading(struct reader *r, bool follow)
{
    struct logs *l = r->of;
    ACT_AUTOFREE char *since = kubernetes_pod_log_resume(r->log);
    ACT_AUTOFREE char *escaped = since ? http_encode(since, false) : NULL;
    ACT_AUTOFREE char *pod = kube_path(l->k->kube, "v1", "pods", r->pod, NULL);

    kube_stream_release(&r->stream);
    r->stream = (struct kube_stream){.path = act_sprintf("%s/log?container=" KUBERNETES_MAIN "&timestamps=true%s%s%s",
                                                         pod, follow ? "&follow=true" : "",
                                                         escaped ? "&sinceTime=" : "", escaped ? escaped : ""),
                                     .what = r->what,
                                     .take = take_bytes,
                                     .done = reading_done,
                                     .arg = r};
    r->follows = follow;
    if (!follow)
        await(r);
    kube_stream_start(l->k->kube, &r->stream);
}

/* A pod that is gone, or has not begun, has no log: that is no failure. */
static int end_reading(struct reader *r, struct act_error *err)
{
    int rc = r->stream.rc, status = r->stream.status;

    struct act_error why = r->stream.error;

    r->was_read = rc == 0;
    if (rc == 0 && r->has_ended && !r->follows) {
        kubernetes_pod_log_end(r->log);
        r->is_whole = true;
    }
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

/* How the readings have ended, of those that follow or of the others; the first failure. */
static int end_readings(struct logs *l, bool follow, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < l->n_readers; i++) {
        struct reader *r = l->readers[i];
        struct act_error one;
        if (!r->stream.path || r->stream.under_way || r->follows != follow)
            continue;
        int read = end_reading(r, &one);
        if (read < 0 && rc == 0) {
            rc = read;
            *err = one;
        }
    }
    return rc;
}

/* All pods at once. */
static int read_pods(struct logs *l, const json_t *pods, struct act_error *err)
{
    size_t i;
    json_t *pod;

    json_array_foreach(pods, i, pod) find_reader(l, pod)->has_ended = has_ended(pod);
    await_last_words(l);
    int rc = end_readings(l, true, err);
    json_array_foreach(pods, i, pod)
    {
        struct reader *r = find_reader(l, pod);
        if (!r->is_whole && has_begun(pod) && !r->stream.under_way)
            start_reading(r, r->was_read && !r->has_ended);
    }
    run_until_idle(l);
    return rc < 0 ? rc : end_readings(l, false, err);
}

static int check_run(struct logs *l, struct act_error *err)
{
    CODEC_AUTOJSON json_t *job = NULL;
    int rc = l->n_readers > 0 ? 0 : kubernetes_find_job(l->k, l->id, &job, err);

    if (rc == 0 && l->n_readers == 0 && !job)
        rc = act_error_set(err, ACT_NOT_FOUND, "there is no run '%s' in the namespace '%s'", l->id,
                           kube_namespace(l->k->kube));
    return rc;
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

static void close_logs(void *arg)
{
    struct logs *l = arg;

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
        kubernetes_pod_log_free(r->log);
        free(r->pod);
        free(r->what);
        free(r);
    }
    for (size_t i = 0; i < l->n_kept; i++)
        if (l->kept[i].file)
            fclose(l->kept[i].file);
    for (size_t i = 0; i < l->texts.n; i++)
        free(l->texts.v[i].key);
    free(l->texts.v);
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

    *l = (struct logs){.k = k, .id = act_strdup(id), .name = kubernetes_name(id), .attempt = 1, .idle = true};
    return store_texts_open(
        services_http(k->base.services),
        &(struct store_texts_options){
            .id = l->id, .gather = gather, .close = close_logs, .arg = l, .texts = &l->texts, .grow = !ended});
}
