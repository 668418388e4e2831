/* kube_internal.h - for the files of kube/ only. */
#ifndef ACT_KUBE_KUBE_INTERNAL_H
#define ACT_KUBE_KUBE_INTERNAL_H

#include <stdint.h>

#include "base/text.h"
#include "http/http.h"
#include "kube/kube.h"

/* ---- config.c: what the kubeconfig says of one context ---- */

enum kube_interactive { KUBE_NEVER, KUBE_IF_AVAILABLE, KUBE_ALWAYS };

/* The user's "exec". */
struct kube_exec {
    struct act_strv argv; /* empty: none. argv[0] is absolute, or a name to be found in PATH */
    struct act_strv env;  /* "NAME=value" */
    char *api_version;
    char *install_hint;
    bool provide_cluster;
    json_t *cluster_config; /* that the cluster has for plugins; NULL: none */
    enum kube_interactive interactive;
};

struct kube_config {
    char *context, *namespace_;
    char *server;      /* without a final slash */
    char *server_name; /* NULL: that of the server's address */
    char *proxy;
    bool insecure;
    char *ca, *cert, *key; /* PEM; the key is secret */
    char *token;           /* secret */
    char *token_file;
    struct act_strv files;  /* the certificates, key and token that it has by their path */
    char *user, *password;  /* the password is secret */
    struct http_headers as; /* whom to act as: Impersonate-... */
    struct kube_exec exec;
};

extern const char *kube_account_dir; /* what a pod has of its account; changed by tests only */

/* Reads the context that the options choose. -ACT_CONFIG, -ACT_NOT_FOUND as kube_open(). */
int kube_config_read(const struct kube_options *options, struct kube_config *out, struct act_error *err) ACT_NODISCARD;
void kube_config_release(struct kube_config *config); /* wipes it */

/* ---- login.c: the credentials of the next request ---- */

enum kube_source { KUBE_CONFIG, KUBE_FILE, KUBE_PLUGIN };
/* Says where the credentials of a request come from. */
enum kube_source kube_source_of(const struct kube_config *config);

/* The credentials that are sent now. */
struct kube_login {
    char *authorization; /* "Bearer ..."; NULL: none; secret */
    struct http_tls tls; /* its cert and key may be the plugin's */
    char *cert, *key;    /* the plugin's */
    int64_t ends_s;      /* of a plugin's output; 0: it holds until it is refused */
    int64_t read_ms;     /* when the token file was read; 0: never */
    bool ready;
    unsigned number; /* changes when they do */
};

struct kube {
    struct http *http;
    struct kube_config config;
    char *base;       /* the beginning of every URL */
    char *host;       /* for the header, where the URL has another name; NULL: it has not */
    char *connect_to; /* likewise */
    char *plugin;     /* for people */
    struct kube_login login;
    struct kube_try *waiting; /* for the plugin */
    int64_t ahead_s;          /* as kube_ahead_s() */
    struct act_strv warned;   /* what the server has warned of, each once */
    bool told_of_lists;       /* that what cannot be watched is listed again and again */
};

/* One request and what it is for. */
struct kube_try {
    struct kube *kube;
    struct kube_call *call; /* one of these three */
    struct kube_stream *stream;
    struct kube_command *command;
    struct http_call http;
    const char *what;
    char *cannot;   /* "cannot <what>" */
    char *body;     /* secret, perhaps */
    unsigned login; /* its number when this was sent */
    bool renewed, cancelled;
    bool *finished;        /* of a call */
    struct kube_try *next; /* in kube->waiting */
};

/* Goes on with kube_have_login() when there are credentials, or none can be obtained; perhaps at once. */
void kube_need_login(struct kube_try *t);
void kube_have_login(struct kube_try *t, int rc, const struct act_error *err);
/* Notes that the server refused the login of this number. Tells whether another try may have another one. */
bool kube_login_refused(struct kube *kube, unsigned number);
void kube_login_release(struct kube_login *login);

/* ---- kube.c ---- */

/* Begins a request, which goes on from the loop; what is not copied. */
struct kube_try *kube_try_new(struct kube *kube, const char *what);
void kube_try_free(struct kube_try *t);
/* Adds the headers that each request has. */
void kube_add_headers(struct kube_try *t, const char *accept);
/* Tells whether refused credentials are renewed, for the request to be made again. */
bool kube_renew(struct kube_try *t);

/* ---- list.c ---- */

/* Returns what tells an object from the others of a list: "namespace/name". New string. */
char *kube_key(const json_t *item);
/* Does what kube_each() does. *out_version is the version that the list has, a new string, "" or NULL where the server
 * gives none. */
int kube_list(struct kube *kube, const char *path, const char *what,
              int (*each)(void *arg, const json_t *item, struct act_error *err), void *arg, char **out_version,
              struct act_error *err) ACT_NODISCARD;

/* ---- mirror.c: the items of a list as a watch changes them ---- */

/* {0} is empty. */
struct kube_mirror {
    json_t *items;       /* by kube_key() */
    char *version;       /* up to which it has seen all changes; NULL or "": not known */
    bool has_bookmarks;  /* the server sends some */
    bool changed;        /* an item did; the reader's to clear */
    struct act_buf line; /* what there is of one that has no end yet */
};
/* Takes over the items of a list, and its version. */
void kube_mirror_begin(struct kube_mirror *mirror, json_t *items, char *version);
/* A stream begins: what another one left of a line is no part of it. */
void kube_mirror_begin_stream(struct kube_mirror *mirror);
/* Bytes of a watch. Negative: it has to be listed anew, as the server says (err->http_status 410: it has forgotten what
 * changed since), or as this is no watch. */
int kube_mirror_take(struct kube_mirror *mirror, const char *data, size_t len, struct act_error *err) ACT_NODISCARD;
void kube_mirror_release(struct kube_mirror *mirror);

/* ---- watch.c ---- */

extern int64_t kube_silent_ms; /* then a watch that brought bookmarks before is dead; changed by tests only */

/* ---- command.c ---- */

/* Send a command once there are credentials, and end it. */
void kube_command_send(struct kube_try *t);
void kube_command_end(struct kube_try *t, int rc);

/* ---- plugin.c ---- */

/* Tells whether the plugin's last output holds. */
bool kube_plugin_is_fresh(const struct kube *kube);
/* Asks the plugin, or waits with the others who did; then kube_have_login(). */
void kube_plugin_ask(struct kube_try *t);

/* ---- error.c ---- */

/* Sets err from a response that is not 2xx; body NULL: it is not JSON; authorization: what was sent,
 * which is masked. Returns its negative code. */
int kube_describe(struct act_error *err, const char *what, const struct http_call *http, const json_t *body,
                  const char *authorization);

#endif
