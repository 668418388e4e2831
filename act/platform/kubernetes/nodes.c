/* nodes.c - the nodes of a run, which are its pods, and shells on them. */
#include <string.h>

#include "base/clock.h"
#include "platform/kubernetes/kubernetes_internal.h"
#include "proc/proc.h"

static int k8s_nodes_find(struct kubernetes *k, const char *id, json_t **out_job, json_t **out_pods,
                          struct act_error *err)
{
    int rc = kubernetes_find_job(k, id, out_job, err);

    *out_pods = NULL;
    if (rc == 0 && !*out_job)
        rc = kubernetes_no_run(k, id, err);
    return rc < 0 ? rc : kubernetes_find_pods(k, kubernetes_name_of(*out_job), out_pods, err);
}

/* Returns the address of a pod. New string; NULL: it has none yet. */
static char *k8s_nodes_address_of(const json_t *pod)
{
    const char *ip = codec_json_str(json_object_get(pod, "status"), "podIP", "");

    return *ip ? act_strdup(ip) : NULL;
}

/* Returns "Running on a", or "Unreachable since 2026-11-28T10:00:00Z on a". New string. */
static char *k8s_nodes_state_of(const json_t *pod, int64_t ahead_s)
{
    ACT_AUTOFREE char *state = kubernetes_pod_state(pod);
    int64_t since = kubernetes_silent_since(pod);
    char text[ACT_TIME_TEXT] = "";

    if (since)
        act_time_to_iso(since - ahead_s, text);
    return act_sprintf("%s%s%s on %s", state, since ? " since " : "", text, kubernetes_node_of(pod));
}

/* Adds a pod. Those of an elastic run that are there have the ranks. */
static void k8s_nodes_add_node(const json_t *pod, const struct run_spec *spec, int64_t ahead_s,
                               struct platform_nodes *out)
{
    int index = kubernetes_index(pod), place = run_spec_is_elastic(spec) ? (int)out->n : index;

    ACT_PUSH(out->v, out->n,
             (struct platform_node){.name = act_strdup(kubernetes_name_of(pod)),
                                    .state = k8s_nodes_state_of(pod, ahead_s),
                                    .rank = index,
                                    .first_rank = place * spec->procs_per_node,
                                    .n_ranks = spec->procs_per_node,
                                    .gpus = spec->gpus_per_node,
                                    .address = k8s_nodes_address_of(pod)});
}

int kubernetes_nodes(struct platform *p, const char *id, struct platform_nodes *out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *job = NULL, *pods = NULL;
    ACT_AUTO(run_spec) spec = {0};
    int rc = k8s_nodes_find(kubernetes_of(p), id, &job, &pods, err);

    if (rc == 0)
        rc = kubernetes_spec(p, id, &spec, err);
    int n = kubernetes_completions(job);
    ACT_AUTOFREE const json_t **nodes = kubernetes_pods_of(pods, n);
    for (int i = 0; rc == 0 && i < n; i++)
        if (nodes[i] && *kubernetes_node_of(nodes[i]))
            k8s_nodes_add_node(nodes[i], &spec, kube_ahead_s(kubernetes_of(p)->kube), out);
    return rc;
}

/* ---- shells ---- */

/* Returns the pod called node, or the first one (NULL); NULL: there is none. */
static const json_t *find_pod(const json_t *pods, int n, const char *node)
{
    ACT_AUTOFREE const json_t **nodes = kubernetes_pods_of(pods, n);

    for (int i = 0; i < n; i++)
        if (nodes[i] && (!node || strcmp(node, kubernetes_name_of(nodes[i])) == 0))
            return nodes[i];
    return NULL;
}

static int k8s_nodes_check_pod(const json_t *pod, const char *id, const char *node, struct act_error *err)
{
    ACT_AUTOFREE char *state = pod ? kubernetes_pod_state(pod) : NULL;

    if (!pod)
        return act_error_set(err, ACT_NOT_FOUND, "run '%s' has no %s'%s'; 'a nodes %s' lists its nodes", id,
                             node ? "node " : "pod yet", node ? node : "", id);
    if (strcmp(state, "Running") != 0)
        return act_error_set(err, ACT_FAIL, "the pod '%s' of run '%s' is %s: a shell needs one that runs",
                             kubernetes_name_of(pod), id, state);
    return 0;
}

/* Adds the words that run a command in the code root, which several nodes have below "nodes/". */
static void add_command(const struct act_strv *command, struct act_strv *out)
{
    act_strv_push(out, "/bin/sh");
    act_strv_push(out, "-c");
    act_strv_push(out,
                  "cd " KUBERNETES_NODE "/run/code 2>/dev/null || cd " KUBERNETES_NODE "/run/nodes/*/code 2>/dev/null\n"
                  "[ $# -gt 0 ] || set -- \"$(command -v bash || echo /bin/sh)\"\n"
                  /* the agent is unpacked in a pod that is Running already */
                  "n=0\n"
                  "while [ \"$1\" = " KUBERNETES_NODE "/act-node ] && ! [ -x \"$1\" ] && [ $n -lt 60 ]; do\n"
                  "  sleep 1; n=$((n + 1))\n"
                  "done\n"
                  "exec \"$@\"");
    act_strv_push(out, "sh");
    act_strv_copy(out, command->v, command->n);
}

/* Adds the words of kubectl, for servers that cannot be told by WebSocket that an input has ended. */
static void add_kubectl(struct kubernetes *k, const char *kubectl, const char *pod, struct act_strv *out)
{
    act_strv_push(out, kubectl);
    if (k8s_keys(k->config)->kubeconfig)
        act_strv_pushf(out, "--kubeconfig=%s", k8s_keys(k->config)->kubeconfig);
    if (strcmp(kube_context(k->kube), "in-cluster") != 0)
        act_strv_pushf(out, "--context=%s", kube_context(k->kube));
    act_strv_pushf(out, "--namespace=%s", kube_namespace(k->kube));
    act_strv_push(out, "exec");
    act_strv_push(out, "--stdin");
    if (kubernetes_has_terminal())
        act_strv_push(out, "--tty");
    act_strv_pushf(out, "pod/%s", pod); /* whatever the server calls it, it is no option */
    act_strv_push(out, "--container=" KUBERNETES_MAIN);
    act_strv_push(out, "--");
}

/* Tells whether kubectl may do what was denied: a WebSocket begins with a GET, kubectl with a POST, which is another
 * right. */
static bool may_post(struct kubernetes *k, int rc, const struct act_error *err)
{
    struct act_error ignored;
    bool allowed = false;

    return rc == -ACT_DENIED && err->http_status == 403 &&
           kube_may(k->kube, "create", "", "pods/exec", &allowed, &ignored) == 0 && allowed;
}

static int run_in(struct kubernetes *k, const char *pod, const struct act_strv *command, struct platform_shell *out,
                  struct act_error *err)
{
    ACT_AUTOFREE char *kubectl = proc_find_in_path("kubectl");
    ACT_AUTO(act_strv) words = {0};
    bool not_spoken = false;

    add_command(command, &words);
    int rc = kubernetes_run_in(k, pod, &words, &out->status, &not_spoken, err);
    bool only_post = rc < 0 && !not_spoken && may_post(k, rc, err);

    if (rc == 0 || (!not_spoken && !only_post))
        return rc;
    if (!kubectl && only_post)
        return act_error_hint(err,
                              "you may create 'pods/exec', which is enough with kubectl in PATH: 'a ssh' uses that");
    if (!kubectl)
        return act_error_hint(err, "the server, or a proxy before it, does not take commands by WebSocket, as "
                                   "Kubernetes 1.30 and later do; with kubectl in PATH, 'a ssh' uses that");
    out->sees = OF_PLUGIN; /* which it runs */
    add_kubectl(k, kubectl, pod, &out->argv);
    act_strv_copy(&out->argv, words.v, words.n);
    return 0;
}

int kubernetes_shell(struct platform *p, const char *id, const char *node, const struct act_strv *command,
                     struct platform_shell *out, struct act_error *err)
{
    struct kubernetes *k = kubernetes_of(p);
    CODEC_AUTOJSON json_t *job = NULL, *pods = NULL;
    int rc = k8s_nodes_find(k, id, &job, &pods, err);

    if (rc < 0)
        return rc;
    const json_t *pod = find_pod(pods, kubernetes_completions(job), node);
    rc = k8s_nodes_check_pod(pod, id, node, err);
    return rc < 0 ? rc : run_in(k, kubernetes_name_of(pod), command, out, err);
}

int kubernetes_agent_in(struct platform *p, const char *id, const char *node, char **out, struct act_error *err)
{
    (void)p;
    (void)id;
    (void)node;
    (void)err;
    *out = act_strdup(KUBERNETES_NODE "/act-node");
    return 0;
}
