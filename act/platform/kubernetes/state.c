/* state.c - the state of a run, from its Job, the pods and what the cluster says of them. Pure.
 *
 * Source: kubernetes.io/docs/concepts/workloads/controllers/job/ (conditions, reasons),
 * .../concepts/workloads/pods/pod-lifecycle/ (phases, container states),
 * .../reference/kubernetes-api/cluster-resources/event-v1/; kueue.sigs.k8s.io/docs/concepts/workload/ (conditions).
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "platform/kubernetes/kubernetes_internal.h"

/* ---- words ---- */

/* The meaning of a reason of Kubernetes to a user, and what to do: "<meaning>: <the cluster's message>; <todo>". */
struct meaning {
    const char *reason, *text, *todo;
};

static const struct meaning waiting_meanings[] = {
    {"ErrImagePull", "the image cannot be pulled", "look at k8s.image, and docker.username and password"},
    {"ImagePullBackOff", "the image cannot be pulled", "look at k8s.image, and docker.username and password"},
    {"InvalidImageName", "the image's name is wrong", "look at k8s.image"},
    {"ErrImageNeverPull", "the node does not have the image and may not pull it", "look at imagePullPolicy"},
    {"CreateContainerConfigError", "a Secret or ConfigMap of the pod is missing", "look at k8s.volumes and k8s.pod"},
    {"CreateContainerError", "the container cannot be made", "'a doctor' looks at the image and the volumes"},
    {"RunContainerError", "the container cannot be started", "the image needs /bin/sh"},
    {"CrashLoopBackOff", "the container ends again and again", "'a logs' shows its last words"},
    {NULL, NULL, NULL},
};

static const struct meaning ended_meanings[] = {
    {"OOMKilled", "a pod used more memory than it may and was killed", "raise k8s.memory"},
    {"StartError", "the container cannot be started", "the image needs /bin/sh, for the processor of the node"},
    {"ContainerCannotRun", "the container cannot be started", "the image needs /bin/sh"},
    {"DeadlineExceeded", "the time limit is over", "k8s.time sets it"},
    {"Evicted", "its node ran out of something and evicted a pod", "k8s.memory reserves memory"},
    {"UnexpectedAdmissionError", "its node refused a pod", "submit it again"},
    {"NodeLost", "a node was lost", "submit it again"},
    {NULL, NULL, NULL},
};

static const struct meaning event_meanings[] = {
    {"FailedMount", "a volume cannot be mounted", "look at the Secret and the names in k8s.volumes or config_param"},
    {"FailedAttachVolume", "a volume cannot be attached", "look at k8s.volumes"},
    {"FailedCreatePodSandBox", "the node cannot make the pod", "it tries again"},
    {"FailedCreate", "no pod can be made", "look at the quota, k8s.priority_class and k8s.service_account"},
    {NULL, NULL, NULL},
};

/* Reasons why no pod can be made, by the words of what refuses it. Source: the API server's admission plugins
 * LimitRanger, ResourceQuota, PodSecurity, Priority and ServiceAccount. */
static const struct meaning refused_meanings[] = {
    {"violates PodSecurity", "the namespace's PodSecurity forbids its pods", "set securityContext in k8s.pod"},
    {"exceeded quota", "it waits for room in the namespace's quota", NULL},
    {"must specify", "the namespace's quota wants limits", "set k8s.cpu and k8s.memory"},
    {"memory usage per", "a LimitRange of the namespace forbids its memory", "set k8s.memory"},
    {"cpu usage per", "a LimitRange of the namespace forbids its processors", "set k8s.cpu"},
    {"no PriorityClass", "its priority class is missing", "look at k8s.priority_class"},
    {"service account", "its service account is missing", "look at k8s.service_account"},
    {"usage per", "a LimitRange of the namespace forbids what it asks for",
     "set gpu_per_node, or resources in k8s.pod"},
    {"denied the request", "a webhook of the cluster forbids its pods", "set in k8s.pod what it wants"},
    {"failed calling webhook", "a webhook of the cluster does not answer", "tell whoever runs the cluster"},
    {NULL, NULL, NULL},
};

static const struct meaning scaler_meanings[] = {
    {"NotTriggerScaleUp", "the cluster does not grow for it: look at k8s.node_selector and its node pools", NULL},
    {"TriggeredScaleUp", "the cluster adds nodes for it", NULL},
    {NULL, NULL, NULL},
};

static const struct meaning job_meanings[] = {
    {"DeadlineExceeded", "the time limit is over", "k8s.time sets it"},
    {"BackoffLimitExceeded", "too many of its pods failed", "'a logs' shows their last words"},
    {"PodFailurePolicy", "one of its pods failed", "'a logs' shows its last words"},
    {NULL, NULL, NULL},
};

#define NO_SHELL "the image has no /bin/sh", "use an image with /bin/sh, gzip and sha256sum"

/* Words of container runtimes, or of the container itself, about an image that cannot start; in any case. */
static const struct meaning image_meanings[] = {
    {"/bin/sh: no such file or directory", NO_SHELL},
    {"\"/bin/sh\": executable file not found", NO_SHELL},
    {"`/bin/sh` not found", NO_SHELL},
    {"exec format error", "the image is for another processor than the node's",
     "use an image for it, or choose nodes by k8s.node_selector (kubernetes.io/arch)"},
    {"act: the image has no gzip", "the image has no gzip, which unpacks the agent", "add it to the image"},
    {"act: the image has no sha256sum", "the image has no sha256sum, which verifies the agent", "add it to the image"},
    {NULL, NULL, NULL},
};

/* Finds a meaning by a part of the message instead of the reason. */
static const struct meaning *find_in_message(const struct meaning *table, const char *message)
{
    while (table->reason && !strcasestr(message, table->reason))
        table++;
    return table->reason ? table : NULL;
}

static const struct meaning *find_image_meaning(const char *message)
{
    return find_in_message(image_meanings, message);
}

static const struct meaning *find_meaning(const struct meaning *table, const char *reason)
{
    for (; table->reason; table++)
        if (strcmp(table->reason, reason) == 0)
            return table;
    return NULL;
}

char *kubernetes_refusal(const char *words)
{
    const struct meaning *m = find_in_message(refused_meanings, words);

    return m ? act_sprintf("%s: %s%s%s", m->text, words, m->todo ? "; " : "", m->todo ? m->todo : "")
             : act_strdup(words);
}

static bool has_reason(const struct run_status *status)
{
    return status->reason[0] != '\0';
}

static void k8s_state_say(struct run_status *out, const struct meaning *m, const char *message)
{
    enum { MESSAGE_MAX = 330 };
    const struct meaning *image = find_image_meaning(message);
    ACT_AUTOFREE char *line = act_one_line(image ? "" : message, image ? 0 : strlen(message));
    int len = strlen(line) < MESSAGE_MAX ? (int)strlen(line) : MESSAGE_MAX;

    m = image ? image : m;
    bool cut = line[len];

    while (len > 0 && (strchr(". ", line[len - 1]) || (cut && line[len] != ' ')))
        len--;
    snprintf(out->reason, sizeof(out->reason), "%s%s%.*s%s%s%s", m->text, len ? ": " : "", len, line,
             cut && len ? " ..." : "", m->todo ? "; " : "", m->todo ? m->todo : "");
}

/* ---- the pods ---- */

static bool is_up(const json_t *pod)
{
    return strcmp(kubernetes_phase(pod), "Running") == 0 || strcmp(kubernetes_phase(pod), "Succeeded") == 0;
}

/* Reads the last words of the agent in pod 0, which are the run's status. */
static bool read_last_words(const json_t *pods, struct run_status *out)
{
    struct act_error ignored;
    ACT_AUTOFREE const json_t **first = kubernetes_pods_of(pods, 1);
    const char *text = codec_json_str(kubernetes_container_state(*first, "terminated"), "message", "");
    CODEC_AUTOJSON json_t *json = NULL;

    return codec_json_parse(text, strlen(text), "status", &json, &ignored) == 0 &&
           run_status_from_json(json, out, &ignored) == 0 && run_state_is_final(out->state);
}

/* Returns when the first of the pods began; 0: none has. */
static int64_t began_at(const json_t *pods)
{
    int64_t first = 0;
    size_t i;
    json_t *pod;

    json_array_foreach(pods, i, pod)
    {
        int64_t at = kubernetes_time(kubernetes_container_state(pod, "running"), "startedAt");
        if (!at)
            at = kubernetes_time(kubernetes_container_state(pod, "terminated"), "startedAt");
        first = at && (!first || at < first) ? at : first;
    }
    return first;
}

/* Counts how often pods were made in the place of others, of the n indexes of a run. Newer ones tell of what is
 * gone. */
static int replaced(const json_t *pods, int n)
{
    ACT_AUTOFREE int *of_index = act_calloc((size_t)n + 1, sizeof(int));
    int most = 0;
    size_t i;
    json_t *pod;

    json_array_foreach(pods, i, pod)
    {
        int index = kubernetes_index(pod), before = kubernetes_lives_before(pod);
        if (index < 0 || index >= n)
            continue;
        most = before > most ? before : most;
        if (++of_index[index] - 1 > most)
            most = of_index[index] - 1;
    }
    return most;
}

/* ---- the end ---- */

enum { KILLED = 137 }; /* the exit status of what SIGKILL ended */

/* A Job's rules know exit statuses and conditions. A deletion sets none, so that they cannot tell such a pod from one
 * that used too much memory, and end the run. */
static void say_deleted_pod(const char *pod, struct run_status *out)
{
    snprintf(out->reason, sizeof(out->reason),
             "pod '%s' was killed (exit status %d) and deleted: it had not ended in the time that whoever deleted it "
             "left it, as by 'kubectl delete pod --force'; 'a resubmit' tries again",
             pod, KILLED);
}

/* Explains why a pod ended, by the kubelet's reason. */
static bool explain_by_reason(const json_t *pod, struct run_status *out)
{
    const json_t *status = json_object_get(pod, "status"), *ended = kubernetes_container_state(pod, "terminated");
    const struct meaning *m = find_meaning(ended_meanings, codec_json_str(status, "reason", ""));

    if (m) {
        k8s_state_say(out, m, codec_json_str(status, "message", ""));
    } else if ((m = find_meaning(ended_meanings, codec_json_str(ended, "reason", "")))) {
        bool has_run = strcmp(m->reason, "OOMKilled") == 0; /* the message is the end of its log */
        k8s_state_say(out, m, has_run ? "" : codec_json_str(ended, "message", ""));
    }
    return has_reason(out);
}

/* Explains it by what the container said, and by its exit status. */
static bool explain_by_exit(const json_t *pod, struct run_status *out)
{
    const json_t *ended = kubernetes_container_state(pod, "terminated");
    int64_t exit_status = codec_json_int(ended, "exitCode", 0);
    const struct meaning *image = exit_status ? find_image_meaning(codec_json_str(ended, "message", "")) : NULL;

    if (image) {
        k8s_state_say(out, image, "");
    } else if (exit_status == KUBERNETES_NO_GZIP) {
        snprintf(out->reason, sizeof(out->reason),
                 "pod '%s' could not start the agent: the image needs gzip and sha256sum; 'a logs' shows its last "
                 "words",
                 kubernetes_name_of(pod));
    } else if (exit_status == KUBERNETES_NOT_OURS) {
        snprintf(out->reason, sizeof(out->reason),
                 "pod '%s' found another program than the submitted one in a Secret 'act-program-...' or "
                 "'act-client-...', which its log names: delete that",
                 kubernetes_name_of(pod));
    } else if (exit_status == KUBERNETES_ALONE) {
        snprintf(out->reason, sizeof(out->reason),
                 "pod '%s' waited for the first one as long as k8s.gang_wait allows, so the run gave back what it had; "
                 "'a resubmit' tries again, and with fewer nodes (-n) it needs less",
                 kubernetes_name_of(pod));
    } else if (exit_status == KUBERNETES_NO_CLIENT) {
        snprintf(out->reason, sizeof(out->reason),
                 "pod '%s' could not start: act, which moves files, does not run in the image; submit with a static "
                 "build of ACT (release)",
                 kubernetes_name_of(pod));
    } else if (exit_status != 0 && exit_status != KUBERNETES_LOST_GROUP) { /* that one was told to end */
        snprintf(out->reason, sizeof(out->reason), "pod '%s' ended with exit status %lld", kubernetes_name_of(pod),
                 (long long)exit_status);
    }
    return has_reason(out);
}

/* Tells whether a pod was killed because somebody deleted it and it did not end in the time that this left it. */
static bool explain_by_deletion(const json_t *pod, struct run_status *out)
{
    const json_t *ended = kubernetes_container_state(pod, "terminated");

    if (codec_json_int(ended, "exitCode", 0) != KILLED || !kubernetes_is_going(pod))
        return false;
    say_deleted_pod(kubernetes_name_of(pod), out);
    return true;
}

/* Explains a failure by a pod that is gone, which the Job names: "Container main for pod default/x-0-abcde failed with
 * exit code 137 matching ...". A failed pod stays, unless it is deleted. */
static bool explain_by_absence(const struct kubernetes_view *view, const json_t *failed, struct run_status *out)
{
    char name[256];
    int exit_status;
    size_t i;
    json_t *pod;

    if (!view->pods || sscanf(codec_json_str(failed, "message", ""),
                              "Container " KUBERNETES_MAIN " for pod %*[^/]/%255[^ ] failed with exit code %d ", name,
                              &exit_status) != 2)
        return false;
    json_array_foreach(view->pods, i, pod)
    {
        if (strcmp(kubernetes_name_of(pod), name) == 0)
            return false;
    }
    if (exit_status != KILLED)
        return false;
    out->exit_status = exit_status;
    say_deleted_pod(name, out);
    return true;
}

/* Explains by the first pod of which the explanation knows something. */
static bool explain_pods(const json_t *pods, bool (*explain)(const json_t *pod, struct run_status *out),
                         struct run_status *out)
{
    size_t i;
    json_t *pod;

    json_array_foreach(pods, i, pod)
    {
        int exit_status =
            codec_json_int_in(kubernetes_container_state(pod, "terminated"), "exitCode", 1, UINT8_MAX, ACT_FAIL);
        if (!explain(pod, out))
            continue;
        out->exit_status = exit_status;
        return true;
    }
    return false;
}

static void k8s_state_explain_failure(const struct kubernetes_view *view, const json_t *failed, struct run_status *out)
{
    const char *reason = codec_json_str(failed, "reason", "");
    const struct meaning *m = find_meaning(job_meanings, reason), other = {reason, "its Job failed", NULL};

    out->exit_status = ACT_FAIL;
    if (strcmp(reason, "DeadlineExceeded") != 0 &&
        (explain_pods(view->pods, explain_by_reason, out) || explain_pods(view->pods, explain_by_deletion, out) ||
         explain_by_absence(view, failed, out) || explain_pods(view->pods, explain_by_exit, out)))
        return;
    k8s_state_say(out, m ? m : &other, codec_json_str(failed, "message", ""));
}

/* Turns a time of the cluster into one of this machine's clock, so that ages are right. */
static int64_t here(const struct kubernetes_view *view, int64_t unix_s)
{
    return unix_s ? unix_s - view->ahead_s : 0;
}

/* Returns the node of the pod with this host name, "<job>-<index>", which its own name begins with; NULL: it is
 * gone. */
static const char *node_of_host(const json_t *pods, const char *host)
{
    const char *dash = strrchr(host, '-');
    const json_t *pod;
    size_t i;

    json_array_foreach(pods, i, pod)
    {
        const char *index = kubernetes_annotation(pod, KUBERNETES_INDEX);
        if (dash && act_streq(index, dash + 1) && act_starts_with(kubernetes_name_of(pod), host))
            return codec_json_str(json_object_get(pod, "spec"), "nodeName", NULL);
    }
    return NULL;
}

/* Names the nodes of pods, which the agent knows by their host names alone. */
static void name_bad_nodes(const struct kubernetes_view *view, struct run_status *status)
{
    int n = 0;

    for (int i = 0; i < status->n_bad; i++) {
        struct run_bad_node bad = status->bad[i];
        const char *node = node_of_host(view->pods, bad.node);
        if (!node || strlen(node) >= sizeof(bad.node))
            continue;
        snprintf(bad.node, sizeof(bad.node), "%s", node);
        status->bad[n++] = bad;
    }
    status->n_bad = n;
}

static void read_end(const struct kubernetes_view *view, const json_t *complete, const json_t *failed,
                     struct run_status *out)
{
    const json_t *status = json_object_get(view->job, "status");
    struct run_status words = {0};
    bool told = read_last_words(view->pods, &words);
    int64_t ended = complete ? kubernetes_time(status, "completionTime") : 0;

    /* A Job that fails ends its other pods. The first one then says "aborted", which explains nothing. */
    if (told && words.state == (complete ? RUN_COMPLETED : RUN_FAILED)) {
        *out = words;
        name_bad_nodes(view, out);
    } else if (failed) {
        out->attempt = told ? words.attempt : out->attempt;
        k8s_state_explain_failure(view, failed, out);
    }
    if (kubernetes_completions(view->job) == 1 && out->attempt <= replaced(view->pods, 1))
        out->attempt = replaced(view->pods, 1) + 1; /* nobody told the pod of those before it */
    if (out->state == RUN_UNKNOWN)
        out->state = complete ? RUN_COMPLETED : RUN_FAILED;
    if (!out->started_unix_s)
        out->started_unix_s =
            here(view, began_at(view->pods) ? began_at(view->pods) : kubernetes_time(status, "startTime"));
    if (!out->ended_unix_s)
        out->ended_unix_s =
            here(view, ended ? ended : kubernetes_time(complete ? complete : failed, "lastTransitionTime"));
}

/* ---- before the end ---- */

static bool k8s_state_is_of(const json_t *event, const char *kind, const char *name)
{
    const json_t *object = json_object_get(event, "involvedObject");

    return strcmp(codec_json_str(object, "kind", ""), kind) == 0 &&
           strcmp(codec_json_str(object, "name", ""), name) == 0;
}

/* Returns the latest event of an object that has a meaning. Those of the scheduler have only an eventTime. */
static const json_t *last_event(const json_t *events, const struct meaning *table, const char *kind, const char *name)
{
    const json_t *last = NULL;
    int64_t last_s = -1;
    size_t i;
    json_t *event;

    json_array_foreach(events, i, event)
    {
        int64_t at = kubernetes_time(event, "lastTimestamp");
        if (!at)
            at = kubernetes_time(event, "eventTime");
        if (k8s_state_is_of(event, kind, name) && at >= last_s &&
            find_meaning(table, codec_json_str(event, "reason", ""))) {
            last = event;
            last_s = at;
        }
    }
    return last;
}

static void explain_by_events(const json_t *events, const char *kind, const char *name, struct run_status *out)
{
    const json_t *last = last_event(events, event_meanings, kind, name);
    const char *reason = codec_json_str(last, "reason", ""), *message = codec_json_str(last, "message", "");
    const struct meaning *refused =
        strcmp(reason, "FailedCreate") == 0 ? find_in_message(refused_meanings, message) : NULL;

    if (last)
        k8s_state_say(out, refused ? refused : find_meaning(event_meanings, reason), message);
}

/* Says what to do, by the scheduler's words; the first row fits best. */
static const char *todo_of_scheduler(const char *message)
{
    static const struct {
        const char *words, *todo;
    } rows[] = {
        {"persistentvolumeclaim", "create or look at the claim ('kubectl get pvc'), or change what names it"},
        {"Insufficient", "'a summary' shows what is free"},
        {"affinity/selector", "look at k8s.node_selector"},
        {"taint", "look at k8s.tolerations"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcasestr(message, rows[i].words))
            return rows[i].todo;
    return "'a summary' shows what is free";
}

/* Explains by the scheduler's words, and whether the cluster grows. */
static void explain_unscheduled(const json_t *pod, const json_t *scheduled, const json_t *events,
                                struct run_status *out)
{
    const char *said = codec_json_str(scheduled, "message", "");
    const char *more = strstr(said, ". preemption: "); /* why evicting others would not help */
    ACT_AUTOFREE char *message = act_strndup(said, more ? (size_t)(more - said) : strlen(said));
    struct meaning no_node = {NULL, "no node takes it", todo_of_scheduler(message)};
    const json_t *scaler = last_event(events, scaler_meanings, "Pod", kubernetes_name_of(pod));

    if (scaler)
        no_node.todo = find_meaning(scaler_meanings, codec_json_str(scaler, "reason", ""))->text;
    k8s_state_say(out, &no_node, message);
}

static void k8s_state_explain_waiting(const json_t *pod, const json_t *events, struct run_status *out)
{
    static const struct meaning gated = {NULL, "scheduling gates hold it back", NULL};
    const json_t *waiting = kubernetes_told_state(pod, "waiting"),
                 *scheduled = kubernetes_any_condition(pod, "PodScheduled");
    const struct meaning *m = find_meaning(waiting_meanings, codec_json_str(waiting, "reason", ""));
    const char *unscheduled = kubernetes_is_true(scheduled) ? "" : codec_json_str(scheduled, "reason", "");

    if (m)
        k8s_state_say(out, m, codec_json_str(waiting, "message", ""));
    else if (strcmp(unscheduled, "Unschedulable") == 0)
        explain_unscheduled(pod, scheduled, events, out);
    else if (strcmp(unscheduled, "SchedulingGated") == 0)
        k8s_state_say(out, &gated, "");
    else
        explain_by_events(events, "Pod", kubernetes_name_of(pod), out);
}

/* Source: kueue.sigs.k8s.io/docs/concepts/workload/ (Evicted and its reasons; it is False once admitted again). */
static void explain_suspension(const struct kubernetes_view *view, struct run_status *out)
{
    const char *queue = kubernetes_label(view->job, KUBERNETES_QUEUE);
    const json_t *quota = kubernetes_any_condition(view->workload, "QuotaReserved");
    const json_t *evicted = kubernetes_condition(view->workload, "Evicted");
    ACT_AUTOFREE char *again = evicted ? act_sprintf(" again, as Kueue took its pods away (%s); it begins anew",
                                                     codec_json_str(evicted, "reason", "Evicted"))
                                       : act_strdup("");
    ACT_AUTOFREE char *text = act_sprintf("it waits in the queue '%s'%s", queue ? queue : "", again);
    const struct meaning waits = {NULL, text, NULL};
    static const struct meaning half = {NULL, "its Job is suspended",
                                        "where 'a submit' was interrupted, the same command again completes it"};

    if (queue)
        k8s_state_say(out, &waits, kubernetes_is_true(quota) ? "" : codec_json_str(quota, "message", ""));
    else
        k8s_state_say(out, &half, "");
}

static bool is_suspended(const json_t *job)
{
    return json_is_true(json_object_get(json_object_get(job, "spec"), "suspend"));
}

/* Tells whether a pod runs, and nothing ends it. */
static bool k8s_state_is_there(const json_t *pod)
{
    return is_up(pod) && !kubernetes_is_going(pod);
}

/* Counts the pods that are up, of which *out_there stay, and finds the first one that is not. */
static int count_up(const json_t *pods, int n, int *out_there, const json_t **out_waits)
{
    ACT_AUTOFREE const json_t **newest = kubernetes_pods_of(pods, n);
    int up = 0;

    *out_there = 0;
    *out_waits = NULL;
    for (int i = 0; i < n; i++) {
        up += is_up(newest[i]);
        *out_there += k8s_state_is_there(newest[i]);
        if (!is_up(newest[i]) && !*out_waits)
            *out_waits = newest[i];
    }
    return up;
}

static void k8s_state_add_count(int up, int n, struct run_status *out)
{
    ACT_AUTOFREE char *why = act_strdup(out->reason);

    if (up > 0 && up < n)
        snprintf(out->reason, sizeof(out->reason), "%d of its %d pods run%s%.440s", up, n, *why ? "; " : "", why);
}

/* Returns how many pods the run needs of its n. */
static int k8s_state_least_of(const json_t *job, int n)
{
    const char *text = kubernetes_annotation(job, KUBERNETES_MIN_NODES);
    int64_t least;

    return text && act_int_from_text(text, &least) && least > 0 && least < n ? (int)least : n;
}

/* Returns how many GPUs each pod of an elastic run has, or processes where there are none; 0: it is not elastic. */
static int per_node_of(const json_t *job)
{
    const char *text = kubernetes_annotation(job, KUBERNETES_PER_NODE);
    enum { MOST = 10000 };
    int64_t n;

    return text && act_int_from_text(text, &n) && n > 0 && n <= MOST ? (int)n : 0;
}

/* Tells whether a pod that is not up was made long after the Job began, when others ran: it takes the place of one that
 * is gone. */
static bool is_late(const struct kubernetes_view *view, const json_t *pod)
{
    enum { BEGINNING_S = 60 }; /* for as long the pods of a large Job may be made one after the other */
    int64_t made = kubernetes_time(kubernetes_metadata(pod), "creationTimestamp"), began = began_at(view->pods);
    int64_t start = kubernetes_time(json_object_get(view->job, "status"), "startTime");

    return start && made > start + BEGINNING_S && began && began < made;
}

/* Adds what the cluster has taken from the run, and what it knows no more. */
static void add_loss(const struct kubernetes_view *view, int n, struct run_status *out)
{
    ACT_AUTOFREE char *silent = kubernetes_silent_node(view->pods, false, view->ahead_s);
    ACT_AUTOFREE char *last = kubernetes_loss(view->pods, n, false), *now = kubernetes_loss(view->pods, n, true);
    ACT_AUTOFREE char *why = act_strdup(out->reason);

    if (last)
        snprintf(out->retry, sizeof(out->retry), "%.300s", last);
    if (silent)
        snprintf(out->reason, sizeof(out->reason), "%.380s%s%.120s", silent, *why ? "; " : "", why);
    else if (now)
        snprintf(out->reason, sizeof(out->reason), "%.250s; another attempt follows%s%.200s", now, *why ? "; " : "",
                 why);
}

static void read_course(const struct kubernetes_view *view, struct run_status *out)
{
    const json_t *waits;
    int n = kubernetes_completions(view->job);
    int lost = replaced(view->pods, n), there;

    out->state = RUN_QUEUED;
    if (is_suspended(view->job)) {
        explain_suspension(view, out);
        return;
    }
    int up = count_up(view->pods, n, &there, &waits);
    out->attempt = lost + 1 + (waits && kubernetes_is_over(waits));
    if (up >= k8s_state_least_of(view->job, n) || (up > 0 && (lost > 0 || is_late(view, waits))))
        out->state = RUN_RUNNING;
    if (out->state == RUN_RUNNING)
        out->started_unix_s = here(view, began_at(view->pods));
    out->has_size = per_node_of(view->job) > 0;
    out->num_gpu = there * per_node_of(view->job);
    if (waits)
        k8s_state_explain_waiting(waits, view->events, out);
    else if (up < n)
        explain_by_events(view->events, "Job", kubernetes_name_of(view->job), out);
    k8s_state_add_count(there, n, out);
    add_loss(view, n, out);
}

/* Says that the cluster is ending it, at someone's request. What runs goes on until it is gone; where no pod runs any
 * more, or ever did, nothing begins any more: that is the end. The Job's startTime is when it was let go, not when a
 * pod began.
 */
static void say_deletion(const struct kubernetes_view *view, struct run_status *out)
{
    int64_t deleted = kubernetes_time(kubernetes_metadata(view->job), "deletionTimestamp");

    if (!deleted)
        return;
    out->started_unix_s = here(view, began_at(view->pods));
    if (!out->started_unix_s && (view->pods || is_suspended(view->job))) {
        out->state = RUN_CANCELED;
        out->ended_unix_s = here(view, deleted);
        out->reason[0] = '\0';
        return;
    }
    if (kubernetes_time(json_object_get(view->job, "status"), "startTime"))
        out->state = RUN_RUNNING;
    ACT_AUTOFREE char *silent = kubernetes_silent_node(view->pods, true, view->ahead_s);
    snprintf(out->reason, sizeof(out->reason), "it is being ended%s%.400s", silent ? "; " : "", silent ? silent : "");
}

void kubernetes_read_status(const struct kubernetes_view *view, struct run_status *out)
{
    *out = (struct run_status){.state = RUN_UNKNOWN, .failed_rank = -1, .attempt = 1};
    if (!view->job)
        return;
    const json_t *complete = kubernetes_condition(view->job, "Complete");
    const json_t *failed = kubernetes_condition(view->job, "Failed");
    if (complete || failed) {
        read_end(view, complete, failed, out);
        return;
    }
    read_course(view, out);
    say_deletion(view, out);
}

/* ---- what else to ask ---- */

bool kubernetes_wants_pods(const json_t *job)
{
    return !kubernetes_condition(job, "Complete") && !is_suspended(job);
}

const json_t *kubernetes_waits_for(const struct kubernetes_view *view)
{
    int n = kubernetes_completions(view->job), there;
    const json_t *waits;
    int up = count_up(view->pods, n, &there, &waits);

    return waits ? waits : up < n ? view->job : NULL;
}

bool kubernetes_wants_events(const json_t *job, const struct run_status *status)
{
    return status->state == RUN_QUEUED && !is_suspended(job);
}

bool kubernetes_wants_workload(const json_t *job)
{
    return is_suspended(job) && kubernetes_label(job, KUBERNETES_QUEUE);
}
