/* flow.h - one function for each thing a user can ask for; each in a file of its own. No terminal here:
 * results come back as data, words for the user go through act_note() and act_warn().
 */
#ifndef ACT_FLOW_FLOW_H
#define ACT_FLOW_FLOW_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "auth/token.h"
#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "ledger/ledger.h"
#include "package/package.h"
#include "platform/platform.h"
#include "run/run.h"
#include "store/store.h"
#include "transfer/transfer.h"

/* What the use cases share; everything but the configuration is opened when it is first needed. */
struct flow {
    struct config config;
    struct http_options network; /* before the first use; {0}: the defaults */
    struct engine *engine;
    struct http *http;
    struct tokens *tokens;
    struct ledger *ledger;
};

int flow_open(const struct config_request *request, struct flow *out, struct act_error *err) ACT_NODISCARD;
/* Without a configuration: for what only needs the ledger. */
void flow_open_bare(struct flow *out);
void flow_close(struct flow *flow);

/* ---- init */

struct flow_init {
    bool dry_run; /* only list, package as by package_forecast(), and is_stored */
    /* Called on the loop about five times a second; may be NULL. */
    void (*packing)(void *arg, const struct transfer_progress *now);
    void (*uploading)(void *arg, const struct transfer_progress *now);
    void *arg;
    struct package_list list;       /* what goes in and what stays out */
    struct package_summary package; /* with dry_run the sha256 is empty unless nothing changed */
    uint64_t sent_bytes;            /* of the package; 0: the store had it */
    bool published;                 /* code_path was replaced */
    enum { FLOW_UNKNOWN, FLOW_YES, FLOW_NO } is_stored; /* with dry_run */
};
/* Packs the project and stores it as "<code_path without .zip>/<sha256>.zip" and as code_path. */
int flow_init(struct flow *flow, struct flow_init *io, struct act_error *err) ACT_NODISCARD;
void flow_init_release(struct flow_init *io);

/* ---- submit, resubmit, local */

struct flow_submit {
    const struct act_strv *argv;
    bool dry_run; /* only fill spec */
    const char *resubmit_of;
    struct run_spec spec; /* out; release with run_spec_release() */
};
int flow_submit(struct flow *flow, struct flow_submit *io, struct act_error *err) ACT_NODISCARD;

/* Where text of a log goes. */
struct flow_sink {
    int (*write)(void *arg, const char *data, size_t len, struct act_error *err);
    void *arg;
};

/* Runs the command here, as a run of the platform local, with the folders and the image (in docker or podman)
 * of flow's cluster. What rank 0 prints goes to the sink until the run ends; when *interrupted becomes true
 * the run is aborted. */
struct flow_local {
    const struct act_strv *argv;
    bool no_container;
    struct flow_sink sink;
    const volatile sig_atomic_t *interrupted;
    int exit_status;      /* out: as flow_exit_status() */
    struct run_spec spec; /* out; release with run_spec_release() */
};
int flow_local(struct flow *flow, struct flow_local *io, struct act_error *err) ACT_NODISCARD;

/* ---- runs */

struct flow_run {
    struct ledger_run row;
    struct run_spec spec; /* only where it was asked for */
    struct run_status status;
    bool changed; /* internal: the ledger does not know this status yet */
};
struct flow_runs {
    struct flow_run *v;
    size_t n;
    size_t total; /* how many there are beyond a maximum */
};
void flow_run_release(struct flow_run *run);
void flow_runs_release(struct flow_runs *runs);

/* The one run that piece means, its status fresh from its platform. A run of this machine that the ledger does not
 * know, because the ledger was lost or never written, is taken into it. Ambiguous: -ACT_USAGE with the candidates. */
int flow_find_run(struct flow *flow, const char *piece, struct flow_run *out,
                  struct act_error *err) ACT_NODISCARD;

struct flow_table {
    const char *cluster; /* NULL: all */
    const char *state;   /* "Running", ...; NULL: all */
    int64_t max;         /* 0: all */
    bool with_spec;      /* fill in the specifications too */
};
/* The runs of the ledger, newest first, the active ones refreshed from their platforms (many in one call). A
 * platform that cannot be asked leaves its runs as they were, with a warning. */
int flow_list_runs(struct flow *flow, const struct flow_table *table, struct flow_runs *out,
                   struct act_error *err) ACT_NODISCARD;

struct flow_log {
    char *name; /* at the platform */
    char *path; /* of the fetched copy */
    uint64_t size, fetched;
};
struct flow_logs {
    char *folder; /* <project>/assets/<run id> */
    struct flow_log *v;
    size_t n;
};
void flow_logs_release(struct flow_logs *logs);
/* Fetches what is new of every log into assets/<run id>/ of the run's project; max_bytes of each log at most
 * (0: all). */
int flow_fetch_logs(struct flow *flow, const struct flow_run *run, uint64_t max_bytes, struct flow_logs *out,
                    struct act_error *err) ACT_NODISCARD;

/* Gives a log to the sink, from its last tail lines (negative: from the start); with follow until the run
 * ends, or *interrupted (may be NULL) becomes true. */
struct flow_follow {
    const char *name; /* NULL: rank 0 */
    int64_t tail;
    bool follow;
    const volatile sig_atomic_t *interrupted;
    struct flow_sink sink;
};
int flow_follow_log(struct flow *flow, struct flow_run *run, const struct flow_follow *what,
                    struct act_error *err) ACT_NODISCARD;

/* Waits until the run has ended; timeout_s 0: for ever, else -ACT_TIMEOUT. */
int flow_wait(struct flow *flow, struct flow_run *run, int64_t timeout_s,
              struct act_error *err) ACT_NODISCARD;

/* Cancels. *out_was_final: it had ended before. */
int flow_abort(struct flow *flow, struct flow_run *run, bool *out_was_final,
               struct act_error *err) ACT_NODISCARD;

/* Aborts the run when it is still active and submits it again: command, package and size as they were. home is
 * the configuration it was submitted with, to the one it goes to now (they may be the same). With dry_run nothing is aborted and
 * nothing submitted. Release *out_spec in every case. */
int flow_resubmit(struct flow *flow, struct flow_run *old, struct flow *home, struct flow *to, bool dry_run,
                  struct run_spec *out_spec, struct act_error *err) ACT_NODISCARD;

/* What a shell would give for the run: 0, the exit status of the first failing rank, 143 when cancelled. */
int flow_exit_status(const struct run_status *status);

/* ---- data */

struct flow_data {
    struct transfer_options options;
    struct transfer_report report; /* out */
    /* internal: what is moved, as the user named it, and where that is on both sides */
    const char *path, *from_path, *to_path;
};
/* Local folder to this cluster's store; from another cluster's store when from is not NULL. Sizes that the store
 * cannot have, a destination that is the source or lies in it, a file where there is a folder: -ACT_USAGE or
 * -ACT_FAIL before anything is moved. */
int flow_upload(struct flow *flow, struct flow *from, const char *path, struct flow_data *io,
                struct act_error *err) ACT_NODISCARD;
int flow_download(struct flow *flow, const char *path, struct flow_data *io,
                  struct act_error *err) ACT_NODISCARD;
/* For options.plan: what a step is about, in the words of the user: "data/voc/a". New string. */
char *flow_step_path(const struct flow_data *io, const struct transfer_step *step);

/* Compares the local path, or with from what the other cluster's store has, with this cluster's store; as
 * transfer_verify(). */
struct flow_verify {
    struct transfer_options options;
    bool deep;
    void (*each)(void *arg, enum transfer_difference what, const char *rel, const struct store_entry *from,
                 const struct store_entry *to); /* arg is that of the options */
    struct transfer_report report;              /* out */
    const char *path;                           /* internal, as the next */
    bool is_folder;
};
int flow_verify(struct flow *flow, struct flow *from, const char *path, struct flow_verify *io,
                struct act_error *err) ACT_NODISCARD;
/* For each: rel in the words of the user. New string. */
char *flow_verify_path(const struct flow_verify *io, const char *rel);

/* A mapped path in this cluster's store, found out. Keep store open until the path is no longer used. */
struct flow_path {
    struct store *store;
    struct transfer_path path;
};
int flow_open_path(struct flow *flow, const char *path, struct flow_path *out,
                   struct act_error *err) ACT_NODISCARD;
/* The same without a look at whether there is anything, for what interrupted transfers left: in the store, or here in
 * the local folder (-ACT_NOT_FOUND: there is none). */
enum flow_place { FLOW_STORE, FLOW_HERE, FLOW_PLACES };
int flow_open_place(struct flow *flow, const char *path, enum flow_place place, struct flow_path *out,
                    struct act_error *err) ACT_NODISCARD;
void flow_path_release(struct flow_path *path);

/* A URL that reads the file for life_s seconds. */
int flow_url(struct flow *flow, const char *path, int64_t life_s, char **out,
             struct act_error *err) ACT_NODISCARD;

/* ---- login */

/* Who one is to Azure: the identity of a token for the storage of this cluster, from whatever issues one here. Asks when
 * the cache has none. -ACT_DENIED: there is no credential, the text says what was tried. */
int flow_identify(struct flow *flow, struct token_identity *out, struct act_error *err) ACT_NODISCARD;
/* Logs in with a code that is typed into a browser; show() gets the message for the user. As token_device_login(). */
int flow_login(struct flow *flow, const char *tenant, void (*show)(void *arg, const char *message), void *arg,
               struct act_error *err) ACT_NODISCARD;
/* Forgets all tokens and logins that ACT keeps. *out_had: there was something. */
int flow_logout(bool *out_had, struct act_error *err) ACT_NODISCARD;

/* Moves a mapped folder of a run between its store and the run's folder on this machine: what the agent asks
 * for where a folder is not mounted. download true: from the store. */
int flow_move_run_folder(const char *run_dir, const char *folder, bool download,
                         struct act_error *err) ACT_NODISCARD;

#endif
