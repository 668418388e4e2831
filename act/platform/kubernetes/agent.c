/* agent.c - the agent act-node, compressed in a Secret that all runs of a namespace share.
 *
 * Whoever may write Secrets could have made it, and could make another one at any time: the pods check what they get of
 * it. Whoever may not look for it finds out by making it.
 */
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "platform/kubernetes/kubernetes_internal.h"
#include "proc/proc.h"

enum { AGENT_MAX = 64 << 20, SECRET_MAX = 1 << 20 };

/* Names the Secret by the hash of the agent beside this program, once. */
static int agent_name(struct kubernetes *k, struct act_error *err)
{
    ACT_AUTOFREE char *file = NULL;
    int rc = k->agent.name ? 0 : proc_find_sibling("act-node", &file, err);

    if (rc == 0 && file)
        rc = act_sha256_file(file, k->agent.sha256, err);
    if (rc == 0 && file)
        k->agent.name = kubernetes_program_name(k->agent.sha256);
    return rc;
}

static int agent_look(struct kubernetes *k, struct kube *kube, struct act_error *err)
{
    struct kube_call get = {.method = "GET",
                            .path = kube_path(kube, "v1", "secrets", k->agent.name, NULL),
                            .accept = KUBERNETES_METADATA_ONLY,
                            .what = "look for the agent's Secret",
                            .missing_is_fine = true};
    CODEC_AUTOJSON json_t *there = NULL;
    int rc = kube_ask(kube, get, &there, err);

    k->agent.is_there = there != NULL;
    if (there)
        rc = kubernetes_check_program(there, k->agent.sha256, err);
    if (rc == -ACT_DENIED && err->http_status == 403) {
        rc = 0;
        k->agent.is_there = kubernetes_is_name_taken(k, k->agent.name);
    }
    if (rc == 0)
        k->agent.seen_ms = act_now_monotonic_ms();
    return rc;
}

int kubernetes_look_for_agent(struct kubernetes *k, struct act_error *err)
{
    struct kube *kube;
    int rc = kubernetes_kube(k, &kube, err);

    if (rc == 0)
        rc = agent_name(k, err);
    return rc < 0 || k->agent.seen_ms ? rc : agent_look(k, kube, err);
}

/* Where there is no namespace, the server says so when something is to be created there; of what is looked for, it says
 * that this is not there. */
static int agent_make(struct kubernetes *k, struct act_error *err)
{
    ACT_AUTOFREE char *file = NULL, *bytes = NULL;
    size_t len = 0, gz_len = 0;
    int rc = proc_find_sibling("act-node", &file, err);

    if (rc == 0)
        rc = act_file_read(file, AGENT_MAX, &bytes, &len, err);
    if (rc < 0)
        return rc;
    ACT_AUTOFREE void *gz = kubernetes_gzip(bytes, len, &gz_len);
    if (gz_len >= SECRET_MAX)
        return act_error_set(err, ACT_FAIL, "the agent '%s' has %zu bytes compressed, but a Secret holds %d", file,
                             gz_len, SECRET_MAX);
    struct kube_call post = {.method = "POST",
                             .path = kube_path(k->kube, "v1", "secrets", NULL, NULL),
                             .body = kubernetes_program(k->agent.name, k->agent.sha256, "act-node.gz", gz, gz_len),
                             .what = "create the agent's Secret",
                             .exists_is_fine = true};
    rc = kube_ask(k->kube, post, NULL, err);
    k->agent.is_there = rc == 0;
    return rc == -ACT_NOT_FOUND && strcmp(err->service_code, "NoSuchApi") != 0 ? kubernetes_no_namespace(k, err) : rc;
}

int kubernetes_need_agent(struct kubernetes *k, struct act_error *err)
{
    int rc = kubernetes_look_for_agent(k, err);

    return rc < 0 || k->agent.is_there ? rc : agent_make(k, err);
}
