/* list.c - one object, all items of a list, and what the user may do. */
#include <string.h>

#include "base/pages.h"
#include "codec/json.h"
#include "kube/kube_internal.h"

enum { PAGE = 500, PAGES_MAX = 10000 };

int kube_ask(struct kube *kube, struct kube_call call, json_t **out, struct act_error *err)
{
    int rc = kube_do(kube, &call, err);

    if (out)
        *out = rc == 0 ? json_incref(call.response) : NULL;
    kube_call_release(&call);
    return rc;
}

int kube_get(struct kube *kube, const char *path, const char *what, json_t **out, struct act_error *err)
{
    struct kube_call call = {.method = "GET", .what = what, .path = act_strdup(path)};
    int rc = kube_ask(kube, call, out, err);

    return rc < 0 || *out
               ? rc
               : act_error_set(err, ACT_FAIL, "cannot %s: the response is not JSON; is '%s' a Kubernetes server?", what,
                               kube_server(kube));
}

/* ---- lists ---- */

struct listing {
    const char *path, *what;
    int (*each)(void *arg, const json_t *item, struct act_error *err);
    void *arg;
    char *token;   /* of the page that comes; NULL: the first */
    char *version; /* of the list, as its last page says; NULL: none came */
    json_t *seen;  /* kube_key() of what was passed on */
};

char *kube_key(const json_t *item)
{
    const json_t *metadata = json_object_get(item, "metadata");

    return act_sprintf("%s/%s", codec_json_str(metadata, "namespace", ""), codec_json_str(metadata, "name", ""));
}

/* Returns the path of the page that comes. New string. */
static char *page_path(const struct listing *l)
{
    ACT_AUTOFREE char *coded = l->token ? http_encode(l->token, false) : NULL;

    return act_sprintf("%s%climit=%d%s%s", l->path, strchr(l->path, '?') ? '&' : '?', PAGE, coded ? "&continue=" : "",
                       coded ? coded : "");
}

static bool is_new(const struct listing *l, const json_t *item)
{
    ACT_AUTOFREE char *key = kube_key(item);
    bool is_known = json_object_get(l->seen, key), has_name = key[strlen(key) - 1] != '/';

    if (has_name && !is_known)
        json_object_set_new(l->seen, key, json_true());
    return !is_known;
}

/* Passes on the items of a page. Returns 1 if each has enough. */
static int kube_list_take_page(const struct listing *l, const json_t *page, struct act_error *err)
{
    const json_t *items = json_object_get(page, "items"), *item;
    size_t i;
    int rc = 0;

    if (!json_is_array(items) && !json_is_null(items))
        return act_error_set(err, ACT_FAIL, "cannot %s: the response is not a list", l->what);
    json_array_foreach(items, i, item)
    {
        if (is_new(l, item) && (rc = l->each(l->arg, item, err)))
            break;
    }
    return rc;
}

/* Reads a page, and replaces the token by that of the next one. All pages of a list have its version. */
static int one_page(struct kube *kube, struct listing *l, struct act_error *err)
{
    ACT_AUTOFREE char *path = page_path(l);
    CODEC_AUTOJSON json_t *page = NULL;
    int rc = kube_get(kube, path, l->what, &page, err);

    if (rc == 0)
        rc = kube_list_take_page(l, page, err);
    if (rc)
        return rc;
    const json_t *metadata = json_object_get(page, "metadata");
    const char *next = codec_json_str(metadata, "continue", "");
    act_str_replace(&l->version, codec_json_str(metadata, "resourceVersion", ""));
    act_str_replace(&l->token, *next ? next : NULL);
    return 0;
}

static int all_pages(struct kube *kube, struct listing *l, struct act_error *err)
{
    ACT_AUTO(act_pages) pages = {0};
    int rc;

    do {
        rc = one_page(kube, l, err);
        if (rc == 0 && l->token)
            rc = act_pages_next(&pages, l->token, PAGES_MAX, l->what, err);
    } while (rc == 0 && l->token);
    return rc;
}

int kube_list(struct kube *kube, const char *path, const char *what,
              int (*each)(void *arg, const json_t *item, struct act_error *err), void *arg, char **out_version,
              struct act_error *err)
{
    struct listing l = {.path = path, .what = what, .each = each, .arg = arg, .seen = json_object()};
    struct act_error why = {0};
    int rc = all_pages(kube, &l, &why);

    if (rc < 0 && why.http_status == 410 && l.token) {
        act_str_replace(&l.token, NULL);
        rc = all_pages(kube, &l, &why);
    }
    if (rc < 0 && err)
        *err = why;
    free(l.token);
    json_decref(l.seen);
    *out_version = l.version;
    return rc < 0 ? rc : 0;
}

int kube_each(struct kube *kube, const char *path, const char *what,
              int (*each)(void *arg, const json_t *item, struct act_error *err), void *arg, struct act_error *err)
{
    ACT_AUTOFREE char *version = NULL;

    return kube_list(kube, path, what, each, arg, &version, err);
}

/* ---- rights ---- */

/* Returns the body of the question whether the user may do it. New reference. */
static json_t *review(const struct kube *kube, const char *verb, const char *group, const char *resource)
{
    size_t n = strcspn(resource, "/");
    const char *part = resource[n] ? resource + n + 1 : "";
    ACT_AUTOFREE char *plural = act_strndup(resource, n);

    return json_pack("{s:s, s:s, s:{s:{s:s, s:s, s:s, s:s, s:s}}}", "apiVersion", "authorization.k8s.io/v1", "kind",
                     "SelfSubjectAccessReview", "spec", "resourceAttributes", "namespace", kube_namespace(kube), "verb",
                     verb, "group", group, "resource", plural, "subresource", part);
}

int kube_may(struct kube *kube, const char *verb, const char *group, const char *resource, bool *out_allowed,
             struct act_error *err)
{
    struct kube_call call = {.method = "POST",
                             .what = "ask the cluster for your rights",
                             .path =
                                 kube_cluster_path("authorization.k8s.io/v1", "selfsubjectaccessreviews", NULL, NULL),
                             .body = review(kube, verb, group, resource)};
    CODEC_AUTOJSON json_t *answer = NULL;
    int rc = kube_ask(kube, call, &answer, err);

    *out_allowed = json_is_true(json_object_get(json_object_get(answer, "status"), "allowed"));
    return rc;
}
