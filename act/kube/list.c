/* list.c - one object, all items of a list, and what the user may do. */
#include <string.h>

#include "codec/json.h"
#include "kube/kube_internal.h"

enum { PAGE = 500, PAGES_MAX = 100000 };

int kube_get(struct kube *kube, const char *path, const char *what, json_t **out, struct act_error *err)
{
    struct kube_call call = {.method = "GET", .what = what, .path = act_strdup(path)};
    int rc = kube_do(kube, &call, err);

    if (rc == 0 && !call.response)
        rc = act_error_set(err, ACT_FAIL, "cannot %s: the response is not JSON; is '%s' a Kubernetes server?", what,
                           kube_server(kube));
    if (rc == 0)
        *out = json_incref(call.response);
    kube_call_release(&call);
    return rc;
}

/* ---- lists ---- */

/* token: of the page before; NULL: this is the first. New string. */
static char *page_path(const char *path, const char *token)
{
    ACT_AUTOFREE char *coded = token ? http_encode(token, false) : NULL;

    return act_sprintf("%s%climit=%d%s%s", path, strchr(path, '?') ? '&' : '?', PAGE, coded ? "&continue=" : "",
                       coded ? coded : "");
}

/* 1: each has enough. */
static int take_page(const json_t *page, const char *what, int (*each)(void *, const json_t *, struct act_error *),
                     void *arg, struct act_error *err)
{
    const json_t *items = json_object_get(page, "items"), *item;
    size_t i;
    int rc = 0;

    if (!json_is_array(items) && !json_is_null(items))
        return act_error_set(err, ACT_FAIL, "cannot %s: the response is no list", what);
    json_array_foreach(items, i, item)
    {
        if ((rc = each(arg, item, err)))
            break;
    }
    return rc;
}

/* *token: of the page; replaced by that of the next, NULL: there is none. */
static int one_page(struct kube *kube, const char *path, char **token, const char *what,
                    int (*each)(void *, const json_t *, struct act_error *), void *arg, struct act_error *err)
{
    ACT_AUTOFREE char *whole = page_path(path, *token);
    CODEC_AUTOJSON json_t *page = NULL;
    int rc = kube_get(kube, whole, what, &page, err);

    if (rc == 0)
        rc = take_page(page, what, each, arg, err);
    if (rc)
        return rc;
    const char *next = codec_json_str(json_object_get(page, "metadata"), "continue", "");
    act_str_replace(token, *next ? next : NULL);
    return 0;
}

/* Whether the server leads round in a circle: the mark is an earlier token, and moves on ever more rarely, so that the
 * way round any circle comes to lie between two moves. */
static bool is_circle(const char *token, int pages, char **mark)
{
    if (act_streq(token, *mark))
        return true;
    if ((pages & (pages - 1)) == 0)
        act_str_replace(mark, token);
    return false;
}

int kube_each(struct kube *kube, const char *path, const char *what,
              int (*each)(void *arg, const json_t *item, struct act_error *err), void *arg, struct act_error *err)
{
    ACT_AUTOFREE char *token = NULL, *mark = NULL;
    struct act_error why = {0};
    bool again = false;
    int rc = 0;

    for (int pages = 1; rc == 0 && pages <= PAGES_MAX; pages++) {
        rc = one_page(kube, path, &token, what, each, arg, &why);
        if (rc < 0 && why.http_status == 410 && token && !again) {
            again = true;
            act_str_replace(&token, NULL);
            act_str_replace(&mark, NULL);
            rc = 0;
        } else if (!token) {
            break;
        } else if (rc == 0 && is_circle(token, pages, &mark)) {
            rc = act_error_set(&why, ACT_FAIL, "cannot %s: the server names the same page again", what);
        }
    }
    if (rc == 0 && token)
        rc = act_error_set(&why, ACT_FAIL, "cannot %s: the list does not end after %d pages", what, PAGES_MAX);
    if (rc < 0 && err)
        *err = why;
    return rc < 0 ? rc : 0;
}

/* ---- rights ---- */

/* New reference. */
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
    int rc = kube_do(kube, &call, err);

    *out_allowed = rc == 0 && json_is_true(json_object_get(json_object_get(call.response, "status"), "allowed"));
    kube_call_release(&call);
    return rc;
}
