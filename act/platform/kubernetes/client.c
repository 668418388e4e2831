/* client.c - the program act for pods that move files, as Secrets that all runs of a namespace share. Compressed, it is
 * larger than one Secret: it is in parts, made from the last to the first, so that the first one proves all, and says
 * how many there are.
 */
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/units.h"
#include "platform/kubernetes/kubernetes_internal.h"
#include "proc/proc.h"

#define PARTS "act/parts"

enum { PART = 1000000, ACT_MAX = 256 << 20, HASH_SHOWN = 12, PARTS_MAX = 99 };

bool kubernetes_is_name_taken(struct kubernetes *k, const char *name)
{
    struct kube_call post = {
        .method = "POST",
        .path = kube_path(k->kube, "v1", "secrets", NULL, "dryRun=All"),
        .body = json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "v1", "kind", "Secret", "metadata", "name", name),
        .what = "look whether a Secret is there",
        .exists_is_fine = true};
    CODEC_AUTOJSON json_t *made = NULL;
    struct act_error ignored;

    return kube_ask(k->kube, post, &made, &ignored) == 0 && !made;
}

/* Counts the Secrets of act that the namespace has: 0 where it has none, or where this user may not look; *taken: then
 * they are there nevertheless. */
static int k8s_client_count_parts(struct kubernetes *k, size_t *out, bool *taken, struct act_error *err)
{
    ACT_AUTOFREE char *name = act_sprintf("%s-0", k->client.name);
    struct kube_call get = {.method = "GET",
                            .path = kube_path(k->kube, "v1", "secrets", name, NULL),
                            .accept = KUBERNETES_METADATA_ONLY,
                            .what = "look for the Secrets of act",
                            .missing_is_fine = true};
    CODEC_AUTOJSON json_t *there = NULL;
    int rc = kube_ask(k->kube, get, &there, err);
    if (there)
        rc = kubernetes_check_program(there, k->client.sha256, err);
    const char *text = rc == 0 ? kubernetes_annotation(there, PARTS) : NULL;
    int64_t n = 0;

    if (text && (!act_int_from_text(text, &n) || n < 1 || n > PARTS_MAX))
        rc = act_error_set(err, ACT_FAIL, "the Secret '%s' is not one of ACT's: its " PARTS " is '%s'", name, text);
    if (rc == -ACT_DENIED && err->http_status == 403) {
        rc = 0;
        *taken = kubernetes_is_name_taken(k, name);
    }
    *out = (size_t)n;
    return rc;
}

static int make_part(struct kubernetes *k, size_t i, size_t n, const char *bytes, size_t len, struct act_error *err)
{
    ACT_AUTOFREE char *name = act_sprintf("%s-%zu", k->client.name, i);
    ACT_AUTOFREE char *key = act_sprintf("act.gz.%02zu", i);
    ACT_AUTOFREE char *all = act_sprintf("%zu", n);
    json_t *secret = kubernetes_program(name, k->client.sha256, key, bytes, len);

    json_object_set_new(json_object_get(secret, "metadata"), "annotations", json_pack("{s:s}", PARTS, all));
    struct kube_call post = {.method = "POST",
                             .path = kube_path(k->kube, "v1", "secrets", NULL, NULL),
                             .body = secret,
                             .what = "create the Secrets of act",
                             .exists_is_fine = true};
    return kube_ask(k->kube, post, NULL, err);
}

static int k8s_client_take_apart(struct kubernetes *k, const char *file, bool make, struct act_error *err)
{
    ACT_AUTOFREE char *bytes = NULL;
    size_t len = 0, gz_len = 0;
    int rc = act_file_read(file, ACT_MAX, &bytes, &len, err);

    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *gz = kubernetes_gzip(bytes, len, &gz_len);
    size_t n = (gz_len + PART - 1) / PART;
    if (n > PARTS_MAX)
        return act_error_set(err, ACT_FAIL, "'%s' has %zu bytes compressed, too many to bring it to pods", file,
                             gz_len);
    for (size_t i = n; make && rc == 0 && i-- > 0;)
        rc = make_part(k, i, n, gz + i * PART, i == n - 1 ? gz_len - i * PART : PART, err);
    k->client.parts = n;
    return rc;
}

bool kubernetes_needs_client(const struct run_spec *spec)
{
    for (size_t i = 0; i < spec->n_folders; i++)
        if (kubernetes_is_moved(&spec->folders[i]))
            return true;
    return spec->logs_path != NULL;
}

/* Names the Secrets by the hash of the program beside this one, once. */
static int client_name(struct kubernetes *k, const char *file, struct act_error *err)
{
    int rc = k->client.name ? 0 : act_sha256_file(file, k->client.sha256, err);

    if (rc == 0 && !k->client.name)
        k->client.name = act_sprintf("act-client-%.*s", HASH_SHOWN, k->client.sha256);
    return rc;
}

int kubernetes_need_client(struct kubernetes *k, bool make, struct act_error *err)
{
    ACT_AUTOFREE char *file = NULL;
    bool taken = false;
    struct kube *kube;
    int rc = k->client.seen_ms ? 0 : kubernetes_kube(k, &kube, err);

    if (rc < 0 || k->client.seen_ms)
        return rc;
    rc = proc_find_sibling("act", &file, err);
    if (rc == 0)
        rc = client_name(k, file, err);
    if (rc == 0)
        rc = k8s_client_count_parts(k, &k->client.parts, &taken, err);
    if (rc < 0)
        return rc;
    k->client.seen_ms = act_now_monotonic_ms();
    return k->client.parts ? 0 : k8s_client_take_apart(k, file, make && !taken, err);
}
