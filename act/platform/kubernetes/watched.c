/* watched.c - lists that are kept as the cluster has them, for who watches: the first time that one is asked for it is
 * listed, then the server says what changes. So whoever asks need not know whether anybody is asked. */
#include <string.h>

#include "base/clock.h"
#include "platform/kubernetes/kubernetes_internal.h"

enum { UNUSED_MS = 30000 };

static void k8s_watched_tell_news(void *arg)
{
    struct kubernetes *k = arg;

    k->changed = true;
    if (k->news)
        *k->news = true;
}

static struct watched *k8s_watched_find(const struct kubernetes *k, const char *path)
{
    for (size_t i = 0; i < k->n_watched; i++)
        if (strcmp(k->watched[i].path, path) == 0)
            return &k->watched[i];
    return NULL;
}

bool kubernetes_watches(const struct kubernetes *k, const char *version, const char *plural, const char *query)
{
    ACT_AUTOFREE char *path = k->news ? kube_path(k->kube, version, plural, NULL, query) : NULL;

    return path && k8s_watched_find(k, path);
}

static struct watched *find_watched(struct kubernetes *k, struct kube *kube, const char *path, const char *what)
{
    struct watched *found = k8s_watched_find(k, path);

    if (found)
        return found;
    ACT_PUSH(k->watched, k->n_watched,
             (struct watched){.path = act_strdup(path),
                              .watch = kube_watch_new(kube, path, what, k8s_watched_tell_news, k)});
    return &k->watched[k->n_watched - 1];
}

static int k8s_watched_keep(void *arg, const json_t *item, struct act_error *err)
{
    (void)err;
    json_array_append_new(arg, json_deep_copy(item));
    return 0;
}

static void k8s_watched_release(struct watched *watched)
{
    kube_watch_free(watched->watch);
    free(watched->path);
}

/* Drops the list of this path (NULL: none), and those that nobody has asked for since used_ms. */
static void k8s_watched_drop(struct kubernetes *k, const char *path, int64_t used_ms)
{
    size_t n = 0;

    for (size_t i = 0; i < k->n_watched; i++) {
        if (k->watched[i].used_ms < used_ms || act_streq(k->watched[i].path, path))
            k8s_watched_release(&k->watched[i]);
        else
            k->watched[n++] = k->watched[i];
    }
    k->n_watched = n;
}

int kubernetes_items_now(struct kubernetes *k, const char *path, const char *what, json_t **out, struct act_error *err)
{
    ACT_AUTOFREE char *to_list = act_sprintf("list %s", what);
    struct kube *kube;
    int rc = kubernetes_kube(k, &kube, err);

    k8s_watched_drop(k, path, INT64_MIN);
    *out = json_array();
    return rc < 0 ? rc : kube_each(kube, path, to_list, k8s_watched_keep, *out, err);
}

int kubernetes_items(struct kubernetes *k, const char *path, const char *what, json_t **out, struct act_error *err)
{
    struct kube *kube;
    int rc = kubernetes_kube(k, &kube, err);

    *out = NULL;
    if (rc == 0 && !k->news)
        return kubernetes_items_now(k, path, what, out, err);
    if (rc < 0)
        return rc;
    struct watched *watched = find_watched(k, kube, path, what);
    watched->used_ms = act_now_monotonic_ms();
    return kube_watch_items(watched->watch, out, err);
}

void kubernetes_drop_unused(struct kubernetes *k)
{
    k8s_watched_drop(k, NULL, act_now_monotonic_ms() - UNUSED_MS);
}

bool kubernetes_watch(struct platform *p, bool *news)
{
    struct kubernetes *k = kubernetes_of(p);

    k->changed = k->changed || (news && !k->news);
    k->news = news;
    if (news && !k->caught_up)
        k->caught_up = json_object();
    if (news)
        return k->changed;
    k8s_watched_drop(k, NULL, INT64_MAX);
    free(k->watched);
    json_decref(k->caught_up);
    k->watched = NULL;
    k->caught_up = NULL;
    return true;
}
