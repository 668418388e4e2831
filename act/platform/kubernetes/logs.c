/* logs.c - the logs of a run as a store. What the pods print is read from where the last reading ended, taken apart by
 * ranks (pod_log.c) and kept.
 *
 * What a pod prints that was made in the place of another one is another attempt. The pods count the attempts, as long
 * as one is there that knows the last one; where all were replaced, they begin at 1 again, and it is counted on here.
 * So the pods that others took the place of are read first, those of each index in the order in which they were made.
 *
 * How the log of each pod is read is in pod_reader.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "platform/kubernetes/pod_reader.h"

enum { TEXTS_MAX = 1 << 20 };

/* ---- the texts ---- */

/* Returns the place of a text in both lists; -1: a pod says that there are more than a run can have. */
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

/* Returns the last attempt of the pods that others took the place of. */
static int last_replaced(const struct logs *l)
{
    int last = 0;

    for (size_t i = 0; i < l->n_readers; i++)
        if (l->readers[i]->is_replaced && l->readers[i]->last_attempt > last)
            last = l->readers[i]->last_attempt;
    return last;
}

/* Returns which attempt of the run a pod means by `attempt`. It may print its first words before anybody told it. */
static int reader_attempt(struct pod_reader *r, int attempt, int rank)
{
    const struct pod_reader *before = r->before;

    while (before && before->last_attempt == 0) /* it said nothing */
        before = before->before;
    int had = before ? before->last_attempt : 0;
    if (r->more < 0 && rank < 0 && attempt <= 1 && (had > 0 || r->lives_before > 0)) {
        int last = had > 0 ? last_replaced(r->of) : 0;
        return (last > r->lives_before ? last : r->lives_before) + 1;
    }
    if (r->more < 0)
        r->more = attempt <= had ? last_replaced(r->of) + 1 - attempt : 0;
    return attempt + r->more;
}

/* Returns the place of the text that a line belongs to. Mostly it is the one of the line before. */
static int64_t kept_for(struct pod_reader *r, int attempt, int rank)
{
    struct logs *l = r->of;
    const struct kept *last = r->last_kept < l->n_kept ? &l->kept[r->last_kept] : NULL;

    if (last && last->attempt == attempt && last->rank == rank && (rank >= 0 || last->index == r->index))
        return (int64_t)r->last_kept;
    int64_t at = find_kept(l, attempt, rank, r->index);
    r->last_kept = at < 0 ? 0 : (size_t)at;
    return at;
}

static void reader_take_text(void *arg, int counted, int rank, const char *text, size_t len)
{
    struct pod_reader *r = arg;
    struct logs *l = r->of;
    int attempt = reader_attempt(r, counted, rank);
    int64_t at = kept_for(r, attempt, rank);
    int rc = at < 0 ? -EFBIG : store_texts_add(&l->texts, (size_t)at, text, len);

    r->has_news = true;
    if (r->state == LOG_FOLLOWED) /* else somebody waits for it */
        pod_readers_tell(l);
    r->last_attempt = attempt > r->last_attempt ? attempt : r->last_attempt;
    l->attempt = attempt > l->attempt ? attempt : l->attempt;
    l->rc = rc < 0 ? rc : l->rc;
}

static char *logs_key(const struct logs *l, const struct kept *t)
{
    ACT_AUTOFREE char *plain =
        t->rank >= 0 ? run_rank_log(t->rank) : act_sprintf(RUN_DIR_SYSTEM "/agent_%d.txt", t->index);

    return t->attempt < l->attempt ? act_sprintf(RUN_DIR_ATTEMPTS "/%d/%s", t->attempt, plain) : act_strdup(plain);
}

static bool is_all_whole(const struct logs *l)
{
    for (size_t i = 0; i < l->n_readers; i++)
        if (l->readers[i]->state != LOG_WHOLE)
            return false;
    return true;
}

/* Names the texts as they are now: those of an attempt get other names when the next one begins. */
static int logs_publish(struct logs *l, struct act_error *err)
{
    int rc = l->rc < 0 ? l->rc : store_texts_flush(&l->texts);

    for (size_t i = 0; i < l->n_kept; i++) {
        free(l->texts.v[i].key);
        l->texts.v[i].key = logs_key(l, &l->kept[i]);
    }
    l->texts.is_whole = is_all_whole(l);
    return rc < 0 ? act_error_errno(err, -rc, "cannot keep the logs of '%s' in the folder for temporary files", l->id)
                  : 0;
}

/* ---- the pods ---- */

static struct pod_reader *find_reader(struct logs *l, const json_t *pod)
{
    const char *name = kubernetes_name_of(pod);

    for (size_t i = 0; i < l->n_readers; i++)
        if (strcmp(l->readers[i]->pod, name) == 0)
            return l->readers[i];
    struct pod_reader *r = act_calloc(1, sizeof(*r));
    *r = (struct pod_reader){.of = l, .pod = act_strdup(name), .index = kubernetes_index(pod), .more = -1};
    for (size_t i = l->n_readers; i-- > 0 && !r->before;)
        if (l->readers[i]->index == r->index && r->index >= 0)
            r->before = l->readers[i];
    if (r->before)
        r->before->is_replaced = true;
    r->log = kubernetes_pod_log_new(reader_take_text, r);
    r->what = act_sprintf("read the log of the pod '%s'", name);
    ACT_PUSH(l->readers, l->n_readers, r);
    return r;
}

static void note_phase(struct pod_reader *r, const json_t *pod)
{
    const char *phase = kubernetes_phase(pod);
    bool has_ended = strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;

    r->is_listed = true;
    r->phase = has_ended ? POD_HAS_ENDED : !*phase || strcmp(phase, "Pending") == 0 ? POD_WAITS : POD_RUNS;
}

/* Notes which pods the cluster has no more. Of one that never began nothing is missing. */
static void note_gone_pods(struct logs *l)
{
    for (size_t i = 0; i < l->n_readers; i++) {
        struct pod_reader *r = l->readers[i];
        if (!r->is_listed && r->phase == POD_WAITS)
            r->state = LOG_WHOLE;
        if (!r->is_listed)
            r->phase = POD_IS_GONE;
    }
}

/* Says, once for each pod, that its log cannot be had: its node may be lost, while those of other pods go on. */
static void miss(struct pod_reader *r)
{
    if (!r->was_missed)
        act_warn("the logs are not complete: %s", act_error_text(&r->why));
    r->was_missed = true;
}

/* Judges the readings of n pods: when all failed and nothing was read before, the first error is the result. */
static int end_readings(struct logs *l, size_t n, struct act_error *err)
{
    const struct pod_reader *first = NULL;
    size_t failed = 0;

    for (size_t i = l->n_readers; i-- > 0;) {
        failed += l->readers[i]->why.code != 0;
        first = l->readers[i]->why.code ? l->readers[i] : first;
    }
    if (first && failed == n && l->n_kept == 0) {
        *err = first->why;
        return -(int)first->why.code;
    }
    for (size_t i = 0; i < l->n_readers; i++)
        if (l->readers[i]->why.code)
            miss(l->readers[i]);
    if (n > 0)
        l->texts.incomplete = failed > 0;
    return 0;
}

static int pods_by_age(const void *a, const void *b)
{
    const json_t *one = *(json_t *const *)a, *other = *(json_t *const *)b;

    if (kubernetes_index(one) != kubernetes_index(other))
        return kubernetes_index(one) < kubernetes_index(other) ? -1 : 1;
    if (kubernetes_is_newer(one, other) != kubernetes_is_newer(other, one))
        return kubernetes_is_newer(one, other) ? 1 : -1;
    return strcmp(kubernetes_name_of(one), kubernetes_name_of(other));
}

/* Returns the readers of the pods, those of one index in the order in which the pods were made. New memory. */
static struct pod_reader **find_readers(struct logs *l, const json_t *pods)
{
    size_t n = json_array_size(pods), i;
    ACT_AUTOFREE json_t **sorted = act_calloc(n + 1, sizeof(json_t *));
    struct pod_reader **readers = act_calloc(n + 1, sizeof(struct pod_reader *));

    for (i = 0; i < n; i++)
        sorted[i] = json_array_get(pods, i);
    qsort(sorted, n, sizeof(json_t *), pods_by_age);
    for (i = 0; i < l->n_readers; i++)
        l->readers[i]->is_listed = false;
    for (i = 0; i < n; i++) {
        readers[i] = find_reader(l, sorted[i]);
        readers[i]->lives_before = kubernetes_lives_before(sorted[i]);
        readers[i]->sends = kubernetes_annotation(sorted[i], KUBERNETES_SENDS) != NULL;
        note_phase(readers[i], sorted[i]);
    }
    note_gone_pods(l);
    return readers;
}

/* Returns how many pods were there before it in its place. */
static size_t reader_age(const struct pod_reader *r)
{
    size_t age = 0;

    for (; r->before; r = r->before)
        age++;
    return age;
}

static bool has_attempt(const struct logs *l, int attempt)
{
    for (size_t i = 0; i < l->n_kept; i++)
        if (l->kept[i].attempt == attempt)
            return true;
    return false;
}

/* Keeps a line for each attempt of which nothing is left, so that the names of the logs tell which one is the last. */
static void note_gone(struct logs *l, int lives)
{
    enum { MOST = 100 };
    static const char text[] = RUN_LOG_AGENT "the pod of this attempt took its log along\n";

    for (int attempt = lives > MOST ? lives - MOST : 1; attempt <= lives; attempt++) {
        int64_t at = has_attempt(l, attempt) ? -1 : find_kept(l, attempt, -1, 0);
        int rc = at < 0 ? 0 : store_texts_add(&l->texts, (size_t)at, text, strlen(text));
        l->rc = rc < 0 ? rc : l->rc;
    }
    l->attempt = lives + 1 > l->attempt ? lives + 1 : l->attempt;
}

/* Says, once for each place, that pods that are gone took their logs along. The newest one knows how many there
 * were. */
static void say_gone(struct logs *l)
{
    for (size_t i = 0; i < l->n_readers; i++) {
        struct pod_reader *r = l->readers[i];
        int gone = r->is_replaced || r->sends || r->said_gone ? 0 : r->lives_before - (int)reader_age(r);
        if (gone <= 0)
            continue;
        r->said_gone = true;
        if (r->index == 0) /* whose lives the agent counts */
            note_gone(l, r->lives_before);
        act_warn("the logs are not complete: pod %d of the run is the %d. in its place, and %d of those before it took "
                 "their logs along; of later runs they stay, if the code is in Blob Storage ('code_path')",
                 r->index, r->lives_before + 1, gone);
    }
}

/* Says that the pods before those that there are went with their logs, as Kueue took all of them away. */
static void say_evicted(struct logs *l, const json_t *pods)
{
    const json_t *pod = json_array_get(pods, 0);
    const json_t *owner = json_array_get(json_object_get(json_object_get(pod, "metadata"), "ownerReferences"), 0);
    CODEC_AUTOJSON json_t *workloads = NULL;
    struct act_error ignored;

    if (l->asked_kueue || !kubernetes_annotation(pod, KUBERNETES_QUEUED) ||
        kubernetes_annotation(pod, KUBERNETES_SENDS))
        return;
    l->asked_kueue = true;
    if (kubernetes_list_workloads(l->k, true, &workloads, &ignored) < 0)
        return;
    ACT_AUTOFREE char *why = kubernetes_eviction(kubernetes_workload_of(workloads, codec_json_str(owner, "uid", "")));
    if (why)
        act_warn("the logs are not complete: Kueue took the pods of this run away before, and their logs with them: %s",
                 why);
}

/* Moves the readers whose turn it is from `readers`, of which *io_n are left, to `out`; returns how many these are. */
static size_t k8s_logs_take_turn(struct pod_reader **readers, size_t *io_n, size_t age, struct pod_reader **out)
{
    size_t n = *io_n, n_out = 0;
    bool any_replaced = false;

    for (size_t i = 0; i < n; i++)
        any_replaced |= readers[i]->is_replaced;
    *io_n = 0;
    for (size_t i = 0; i < n; i++)
        if (!any_replaced || (readers[i]->is_replaced && reader_age(readers[i]) <= age))
            out[n_out++] = readers[i];
        else
            readers[(*io_n)++] = readers[i];
    return n_out;
}

/* Reads the first pods of all indexes at once, then those that took their places, and so on. The pods that nobody
 * replaced come last, all at once. */
static int read_pods(struct logs *l, const json_t *pods, struct act_error *err)
{
    size_t n = json_array_size(pods), left = 0, n_read = 0;
    ACT_AUTOFREE struct pod_reader **readers = find_readers(l, pods);
    ACT_AUTOFREE struct pod_reader **now = act_calloc(n + 1, sizeof(struct pod_reader *));

    pod_readers_settle(l);
    for (size_t i = 0; i < n; i++)
        if (pod_reader_is_behind(readers[i]))
            readers[left++] = readers[i];
    for (size_t age = 0; left > 0; age++) {
        size_t n_now = k8s_logs_take_turn(readers, &left, age, now);
        n_read += pod_readers_read(l, now, n_now);
    }
    if (l->news)
        pod_readers_follow(l);
    say_gone(l);
    say_evicted(l, pods);
    return end_readings(l, n_read, err);
}

static int logs_check_run(struct logs *l, struct act_error *err)
{
    CODEC_AUTOJSON json_t *job = NULL;
    int rc = l->n_readers > 0 ? 0 : kubernetes_know_job(l->k, l->id, &job, err);

    if (rc < 0 || l->n_readers > 0 || job)
        return rc;
    return l->ended ? act_error_set(err, ACT_NOT_FOUND,
                                    "the logs of run '%s' went with its pods: its Job is not in the namespace '%s' any "
                                    "more; of later runs they stay, if the code is in Blob Storage ('code_path')",
                                    l->id, kube_namespace(l->k->kube))
                    : kubernetes_no_run(l->k, l->id, err);
}

static int logs_gather(void *arg, struct act_error *err)
{
    struct logs *l = arg;
    CODEC_AUTOJSON json_t *pods = NULL;

    int rc = kubernetes_find_pods(l->k, l->name, &pods, err);

    if (rc == 0 && json_array_size(pods) == 0)
        rc = logs_check_run(l, err);
    if (rc == 0)
        rc = read_pods(l, pods, err);
    return rc < 0 ? rc : logs_publish(l, err);
}

static void logs_watch(void *arg, bool *news)
{
    ((struct logs *)arg)->news = news;
}

static void k8s_logs_close(void *arg)
{
    struct logs *l = arg;

    l->news = NULL;
    pod_readers_free(l);
    store_texts_release(&l->texts);
    json_decref(l->places);
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
                                                                                           .gather = logs_gather,
                                                                                           .watch = logs_watch,
                                                                                           .close = k8s_logs_close,
                                                                                           .arg = l,
                                                                                           .texts = &l->texts,
                                                                                           .grow = !ended});
}
