/* logs_internal.h - for the files of flow/ only: where logs are read from, and what is found in them. */
#ifndef ACT_FLOW_RUNS_LOGS_INTERNAL_H
#define ACT_FLOW_RUNS_LOGS_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "flow/flow.h"
#include "flow/runs/files_internal.h"
#include "flow/runs/logs.h"
#include "flow/runs/runs.h"
#include "flow/runs/why.h"
#include "platform/platform.h"
#include "run/run.h"
#include "store/store.h"
#include "transfer/transfer.h"

/* Where the nodes of a run have sent their logs. */
struct flow_sent {
    struct flow project; /* the run's */
    struct store *store; /* NULL: they do not send any */
    char *path;          /* in it */
};
int flow_sent_open(struct flow *flow, const struct flow_run *run, struct flow_sent *out,
                   struct act_error *err) ACT_NODISCARD;
void flow_sent_close(struct flow_sent *sent);
/* If the platform does not know the run any more: how it ended, when its nodes have sent that. */
void flow_add_sent_status(struct flow *flow, const struct flow_run *run, struct run_status *now);

/* Where the logs of a run are read from. */
struct flow_log_source {
    struct platform *platform; /* NULL: it never had the run, so there are no logs */
    struct store *store;       /* the platform's, or the folder of the copies; NULL: none */
    bool is_copies;            /* the copies are read instead of the platform */
    bool with_outputs;         /* the outputs that are kept with the run are listed, too */
    struct flow_sent sent;     /* a part of store, or the project that store needs */
    char *only;                /* the one name that is listed; NULL: all are */
    struct store_page copies;
    int64_t whole_ns; /* when the copies of an ended run were complete; INT64_MAX: not known */
};
int flow_log_source_open(struct flow *flow, const struct flow_run *run, struct flow_log_source *out,
                         struct act_error *err) ACT_NODISCARD;
/* Never the copies. */
int flow_log_source_open_there(struct flow *flow, const struct flow_run *run, struct flow_log_source *out,
                               struct act_error *err) ACT_NODISCARD;
/* Something in a mapped folder of the run, in place of a log. */
int flow_log_source_open_output(struct flow *flow, const struct flow_run *run, const struct flow_output *output,
                                struct flow_log_source *out, struct act_error *err) ACT_NODISCARD;
/* The copies, whether or not they are whole. -ACT_NOT_FOUND: there are none. */
int flow_log_source_open_here(struct flow *flow, const struct flow_run *run, struct flow_log_source *out,
                              struct act_error *err) ACT_NODISCARD;
void flow_log_source_close(struct flow_log_source *source);
/* All logs, sorted by name. Outputs that the run keeps are none, and may be of any size: they are listed only
 * where the caller sets with_outputs. */
int flow_log_source_list(const struct flow_log_source *source, struct store_page *out,
                         struct act_error *err) ACT_NODISCARD;
/* Bytes of one of them; *out_got 0 at its end. */
int flow_log_source_read(const struct flow_log_source *source, const char *name, uint64_t offset, void *data,
                         size_t len, size_t *out_got, struct act_error *err) ACT_NODISCARD;

/* The copy of a log in a file. */
struct flow_copy {
    const char *path;
    const char *root; /* path begins with it; no link below it is followed */
    char before[256]; /* its end, of which it is known whether it is of the same log */
};
/* Prepares a copy for the new part of its log, of this size, as out says. A file that is longer than the log is a copy
 * of another one, which began anew: so does the copy, and one that was changed after whole_ns. */
int flow_begin_copy(struct flow_copy *copy, const char *name, uint64_t size, int64_t whole_ns,
                    struct transfer_stretch *out, struct act_error *err) ACT_NODISCARD;
/* How many bytes of such a log its copy has, as above; 0 where there is none. Changes nothing. */
uint64_t flow_copied(const char *root, const char *path, uint64_t size, int64_t whole_ns);
/* Call it when the copies match the listed logs. If the run has ended and its logs are final, the platform is not asked
 * again until flow_forget_complete(). */
int flow_log_source_complete(const struct flow_log_source *source, const struct flow_run *run,
                             const struct store_page *listed, const struct flow_logs *copies,
                             struct act_error *err) ACT_NODISCARD;
int flow_forget_complete(const struct flow_run *run, struct act_error *err) ACT_NODISCARD;
/* At most the last max bytes of a log (NULL: nothing), from the beginning of a line; nothing if there is no such
 * log. */
int flow_log_tail(const struct flow_log_source *source, const struct store_entry *log, size_t max, struct act_buf *out,
                  struct act_error *err) ACT_NODISCARD;
/* Appends the last n lines that are not blank, cleaned, to out. */
void flow_last_lines(const struct act_buf *text, size_t n, struct act_strv *out);
/* The log of a rank among those whose names begin with prefix, whatever its name on the platform; NULL: there is
 * none. */
const struct store_entry *flow_find_rank_log(const struct store_page *logs, const char *prefix, int rank);

/* Which rank of a failed run failed first, as reported by the ranks' agents at the ends of their logs, when a service
 * keeps no other record. */
struct flow_last_words {
    int rank; /* -1: not reported */
    int exit_status, signal;
    char node[65];
    int64_t unix_ns;
    char *reason; /* why the command could not do its work; NULL: it did. The caller frees it */
};
int flow_find_last_words(const struct flow_log_source *source, const struct flow_run *run,
                         const struct store_page *logs, const char *prefix, struct flow_last_words *out,
                         struct act_error *err) ACT_NODISCARD;
/* Completes the status of a failed run with these last words, and records that the ranks were asked. Read errors change
 * nothing. */
void flow_add_last_words(struct flow *flow, const struct flow_run *run, struct run_status *status);

/* Adds the lines of a log that hold "Error" to out->errors. {0} begins. */
struct flow_error_scan {
    struct act_buf line; /* an incomplete line so far */
    const char *log;
    int shown;
    struct flow_codes *out;
};
void flow_error_lines_begin(struct flow_error_scan *s, const char *log, struct flow_codes *out);
void flow_error_lines_feed(struct flow_error_scan *s, const char *text, size_t len);
void flow_error_lines_end(struct flow_error_scan *s);
/* The last lines of the ranks in one attempt, until ended_unix_s (0: now). out (may be {0}) is replaced; release it in
 * every case. */
int flow_find_rank_lines(const struct flow_log_source *from, const struct flow_run *run, const struct store_page *logs,
                         const char *prefix, int64_t ended_unix_s, struct flow_rank_lines *out,
                         struct act_error *err) ACT_NODISCARD;
void flow_rank_lines_release(struct flow_rank_lines *lines);
/* The rules for the logs of a run. */
int flow_rules(const struct flow_run *run, struct diagnose **out, struct act_error *err) ACT_NODISCARD;

#endif
