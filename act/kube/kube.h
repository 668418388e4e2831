/* kube.h - the API of one Kubernetes cluster: who it is by a kubeconfig, JSON requests, errors, pages, streams.
 *
 * The kubeconfig is found as kubectl finds it: the named file, else those of KUBECONFIG, merged (the first file that
 * defines a name wins, missing ones are passed over), else ~/.kube/config, else the account of the pod that this runs
 * in. Credentials are a client certificate, a token, a token file (read again each minute), user and password, or what
 * an exec plugin prints, which runs with the first request and when its output expires. Paths are relative to the
 * file that has them.
 *
 * A request carries the credentials to the server of the kubeconfig and nowhere else, over https or to this machine. A
 * redirection is not followed. It is sent again as http.h says, except after a 500 in the server's own words. A 401
 * asks the plugin, or the token file, once more. No token, key or body goes into traces or error texts.
 *
 * Errors: "cannot <what>: <the server's message>". 401 and 403 are -ACT_DENIED, but -ACT_NO_CAPACITY where a quota is
 * exceeded, 404 -ACT_NOT_FOUND, 409 -ACT_FAIL, 422 -ACT_CONFIG, 408, 410, 429 and 5xx -ACT_TEMPORARY, else -ACT_FAIL;
 * err->http_status is set, and err->service_code is the Status' reason ("AlreadyExists"), "NoSuchApi" where the server
 * does not know the group or version at all, or one of the KUBE_... below.
 *
 * All runs on the loop of http; kube_do(), kube_do_all(), kube_get(), kube_each(), kube_watch_items() and kube_may()
 * run it themselves.
 *
 * Source: kubernetes.io/docs/reference/using-api/api-concepts, reference/config-api/kubeconfig.v1 and
 * client-authentication.v1; github.com/kubernetes/client-go tools/clientcmd (loader.go, client_config.go,
 * validation.go), plugin/pkg/client/auth/exec/exec.go, transport/token_source.go.
 */
#ifndef ACT_KUBE_KUBE_H
#define ACT_KUBE_KUBE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

#define KUBE_NOT_ADMITTED "NotAdmitted"   /* a policy of the cluster refuses the object; no right is missing */
#define KUBE_NO_QUOTA     "QuotaExceeded" /* likewise, until the quota has room */
#define KUBE_NO_WEBHOOK   "WebhookFailed" /* what decides on the object does not answer: nothing was done */

struct http;
struct kube; /* one cluster: server, credentials, namespace */

struct kube_options {
    struct http *http;                /* outlives it; NULL: it is only looked at, and no request made */
    const char *kubeconfig;           /* a file; NULL: as kubectl would */
    const char *context, *namespace_; /* NULL: as the kubeconfig says */
    const char *said_by;              /* who names the file and the context: "'k8s' in a.yaml"; may be NULL */
};

/* Opens a cluster. Reads files; contacts nobody and runs nothing. -ACT_CONFIG says which file and what to do,
 * -ACT_NOT_FOUND that there is no kubeconfig, or no such one. */
int kube_open(const struct kube_options *options, struct kube **out, struct act_error *err) ACT_NODISCARD;
/* Frees it, with nothing under way. NULL is fine. */
void kube_free(struct kube *kube);
/* Return what the kubeconfig, or an option, says. */
const char *kube_namespace(const struct kube *kube);
const char *kube_context(const struct kube *kube); /* "in-cluster" for a pod's account */
const char *kube_server(const struct kube *kube);
/* Returns the command of the plugin that its credentials come from, each word in quotes, for people and for asking
 * whether it may run; NULL: none. */
const char *kube_plugin(const struct kube *kube);
/* Returns the variables that the plugin gets besides those of this process, "NAME=value"; the values may be secret. */
const struct act_strv *kube_plugin_env(const struct kube *kube);
/* Returns how many seconds the clock of the server was ahead of ours at its last answer; 0: they agree within half a
 * minute. */
int64_t kube_ahead_s(const struct kube *kube);
/* Returns the absolute paths of the files that its certificates, key and token are in. */
const struct act_strv *kube_named_files(const struct kube *kube);

/* The contexts of a kubeconfig, each once, in the order of its files. */
struct kube_contexts {
    struct act_strv names;
    char *current; /* NULL: none is chosen */
};
/* Reads the contexts of kubeconfig, which is as in kube_options. -ACT_NOT_FOUND: there is none, or nothing in it.
 * Release out. */
int kube_contexts_read(const char *kubeconfig, struct kube_contexts *out, struct act_error *err) ACT_NODISCARD;
void kube_contexts_release(struct kube_contexts *contexts);

/* A request, for kube_do(), and its response; release it then. {0} but for what is set. */
struct kube_call {
    const char *method;       /* "GET", ...; not copied */
    char *path;               /* "/apis/batch/v1/namespaces/x/jobs?...", of kube_path(); owned by the call */
    json_t *body;             /* NULL: none; the reference is the call's */
    const char *content_type; /* NULL: application/json; not copied */
    const char *accept;       /* NULL: application/json; not copied */
    bool missing_is_fine;     /* a 404 is rc 0 without a response, unless the server does not know the API */
    bool exists_is_fine;      /* a 409 is rc 0 without a response */
    const char *what;         /* "create job 'x'": for errors, after "cannot "; not copied */
    size_t max_body;          /* of the response; 0: 64 MiB */

    int rc;
    struct act_error error; /* of a 404 or 409 that is fine, too */
    int status;
    json_t *response; /* NULL: none; owned by the call */
    char *text;       /* a 2xx body that is not JSON (a log); else NULL; owned by the call */
    bool ambiguous;   /* an earlier try may have taken effect though it failed */
};
/* Sends the request, and runs the engine until the response is there. */
int kube_do(struct kube *kube, struct kube_call *call, struct act_error *err) ACT_NODISCARD;
/* Sends n requests at once, and runs the engine until all responses are there: rc and error of each say how it went. */
void kube_do_all(struct kube *kube, struct kube_call *const *calls, size_t n);
void kube_call_release(struct kube_call *call);

/* Sends the request as kube_do() does, and releases it. *out (may be NULL) is the response, a new reference, or
 * NULL. */
int kube_ask(struct kube *kube, struct kube_call call, json_t **out, struct act_error *err) ACT_NODISCARD;

/* Gets one object: *out is a new reference. A 404 is an error. */
int kube_get(struct kube *kube, const char *path, const char *what, json_t **out, struct act_error *err) ACT_NODISCARD;

/* Calls each for every item of a list, page by page (500 items each), until it says stop (1) or fails (negative). When
 * the list has expired on the server (410) it begins again, once. No item of the same name comes twice. */
int kube_each(struct kube *kube, const char *path, const char *what,
              int (*each)(void *arg, const json_t *item, struct act_error *err), void *arg,
              struct act_error *err) ACT_NODISCARD;

/* Return the path of a list or, with a name, of an object in the namespace: kube_path(k, "batch/v1", "jobs", "x",
 * NULL). query ("labelSelector=...", encoded by http_encode()) may be NULL. kube_cluster_path() is for what is in no
 * namespace (nodes, namespaces). New strings. */
char *kube_path(const struct kube *kube, const char *group_version, const char *plural, const char *name,
                const char *query);
char *kube_cluster_path(const char *group_version, const char *plural, const char *name, const char *query);

/* A body without an end of its own: a pod's log that is followed, a watch. The request is sent once: the reader knows
 * where to continue. A body that ended early (a lost connection) has a negative rc with error.network. */
struct kube_stream {
    char *path;         /* owned by the stream */
    const char *what;   /* "read the log of 'x'"; not copied */
    const char *accept; /* NULL: anything; not copied */
    /* Bytes as they come; never inside kube_stream_start(). It may call kube_stream_cancel(). */
    void (*take)(struct kube_stream *stream, const char *data, size_t len);
    void (*done)(struct kube_stream *stream); /* on the loop, exactly once */
    void *arg;

    int rc; /* 0: it came to its end; -ACT_INTERRUPTED: it was cancelled */
    struct act_error error;
    int status;                 /* from the first byte on */
    struct kube_try *under_way; /* opaque; NULL: it is not */
};
/* Starts the stream, with done to come. */
void kube_stream_start(struct kube *kube, struct kube_stream *stream);
/* Cancels a stream: done comes later, from the loop. What is not under way is left alone. */
void kube_stream_cancel(struct kube_stream *stream);
void kube_stream_release(struct kube_stream *stream);

/* The items of a list, kept as the server has them: listed once, and then watched while the loop runs, so that nothing
 * is asked as long as nothing changes. A watch that ends goes on from the last version that it has seen; one whose
 * version the server has forgotten (410), or that brings what is no watch, begins anew with a list. One that fails
 * again and again, or that the user may not have, becomes a list every now and then, ever more rarely, at most every
 * ten seconds; that is said once.
 *
 * Source: kubernetes.io/docs/reference/using-api/api-concepts (efficient detection of changes, watch bookmarks). */
struct kube_watch;
/* Begins to watch the list of this path, of kube_path(), called what ("the pods"). Asks nothing yet. Calls changed on
 * the loop when kube_watch_items() has something new to say. */
struct kube_watch *kube_watch_new(struct kube *kube, const char *path, const char *what, void (*changed)(void *arg),
                                  void *arg);
/* Gives the items now, a new array of items that must not be changed. Runs the engine where they have to be listed. */
int kube_watch_items(struct kube_watch *watch, json_t **out, struct act_error *err) ACT_NODISCARD;
/* Ends the watch, for which it runs the engine. NULL is fine. */
void kube_watch_free(struct kube_watch *watch);

/* A command in a container, by WebSocket. {0} but for what is set; release it after done.
 *
 * Only servers that speak v5.channel.k8s.io (Kubernetes 1.30 and later) can be told that the input has ended.
 *
 * Source: kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1 (exec);
 * github.com/kubernetes/apimachinery pkg/util/remotecommand/constants.go, k8s.io/client-go
 * tools/remotecommand/websocket.go and resize.go. */
struct kube_command {
    char *path;       /* of kube_command_path(); owned by the command */
    const char *what; /* "run a command in 'x'"; not copied */
    bool ends_input;  /* kube_command_end_input() will be called: an older server is refused */
    void (*opened)(struct kube_command *command);
    /* It printed something: fd 1 or 2. */
    void (*output)(struct kube_command *command, int fd, const char *data, size_t len);
    void (*drained)(struct kube_command *command); /* all input is on its way */
    void (*done)(struct kube_command *command);    /* on the loop, exactly once */
    void *arg;

    int rc;
    struct act_error error;
    int exit_status; /* with rc 0 */
    bool not_spoken; /* the server, or what is before it, does not speak this: rc is negative */
    struct kube_try *under_way;
    struct kube_socket *socket; /* opaque */
};
/* Returns the path for a command in a container of a pod. terminal: it has one. New string. */
char *kube_command_path(const struct kube *kube, const char *pod, const char *container, const struct act_strv *command,
                        bool terminal);
/* Starts the command, with done to come. */
void kube_command_start(struct kube *kube, struct kube_command *command);
/* Send input, its end, and the size of the terminal; from opened() on. */
void kube_command_input(struct kube_command *command, const char *data, size_t len);
void kube_command_end_input(struct kube_command *command);
void kube_command_resize(struct kube_command *command, int columns, int rows);
/* Returns how many bytes of input wait to be sent. */
size_t kube_command_unsent(const struct kube_command *command);
/* Cancels the command: done comes later, with -ACT_INTERRUPTED. */
void kube_command_cancel(struct kube_command *command);
void kube_command_release(struct kube_command *command);

/* A kubeconfig with the entries of another one. */
struct kube_addition {
    char *text;               /* secret */
    char *context;            /* the current one of what was added */
    struct act_strv replaced; /* what had these names and said something else: "user 'x'" */
    bool is_new;              /* false: all was there already */
};
/* Adds the clusters, contexts and users of added to the text (NULL: none) of the kubeconfig called name. All
 * else stays as it is, comments included; entries of the same names are replaced. The current context is set where
 * there is none. -ACT_CONFIG: one of them is no kubeconfig, or the text is in a form that cannot be edited. */
int kube_config_add(const char *text, const char *name, const char *added, struct kube_addition *out,
                    struct act_error *err) ACT_NODISCARD;
void kube_addition_release(struct kube_addition *addition); /* wipes secrets */
/* Returns the file that kubectl adds entries to: the named one (may be NULL), else the first of KUBECONFIG, else
 * ~/.kube/config. New string. */
char *kube_config_file(const char *named);

/* Asks whether the user may do it in the namespace (SelfSubjectAccessReview). group "": the core; resource "pods/log":
 * a subresource. */
int kube_may(struct kube *kube, const char *verb, const char *group, const char *resource, bool *out_allowed,
             struct act_error *err) ACT_NODISCARD;

#endif
