/* source.h - for the files of flow/ only: where the logs of a run are read.
 *
 *   source.c      at its platform, or in assets/<run id>/ once all of them are there
 *   complete.c    the note beside the copies of an ended run which says that they are whole
 *   copies.c      the copy of one log in a file
 *   tail.c        the ends of logs, and small ones as a whole
 *   sent.c        the logs that nodes have sent to the store of the code
 *   last_words.c  the rank that failed first, by what the ranks wrote
 */
#ifndef ACT_FLOW_SOURCE_SOURCE_H
#define ACT_FLOW_SOURCE_SOURCE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "flow/data/of_run.h"
#include "flow/flow.h"
#include "flow/run.h"
#include "platform/platform.h"
#include "run/run.h"
#include "store/store.h"
#include "transfer/transfer.h"

/* ---- sent.c */

/* The place to which the nodes of a run have sent their logs. */
struct flow_sent {
    struct flow project; /* the run's */
    struct store *store; /* NULL: they do not send any */
    char *path;          /* in it */
};
/* Writes into spec where the run's nodes send their logs, if its code is in Blob Storage. */
void flow_describe_sent(const struct config *config, struct run_spec *spec);
/* Opens that place; out->store is NULL where nodes send nothing. The caller closes out. */
int flow_sent_open(struct flow *flow, const struct flow_run *run, struct flow_sent *out,
                   struct act_error *err) ACT_NODISCARD;
void flow_sent_close(struct flow_sent *sent);
/* Replaces *now, in which the platform does not know the run any more, by the end that its nodes have sent. */
void flow_add_sent_status(struct flow *flow, const struct flow_run *run, struct run_status *now);

/* ---- source.c */

/* The place from which the logs of a run are read. */
struct flow_source {
    struct platform *platform; /* NULL: it never had the run, so there are no logs */
    struct store *store;       /* the platform's, or the folder of the copies; NULL: none */
    bool is_copies;            /* the copies are read instead of the platform */
    bool with_outputs;         /* the outputs that are kept with the run are listed, too */
    struct flow_sent sent;     /* a part of store, or the project that store needs */
    char *only;                /* the one name that is listed; NULL: all are */
    struct store_page copies;
    bool by_news;     /* as of store_list: it is asked because its store has news */
    bool follows;     /* as of store_list: what its store has told is enough */
    bool with_ends;   /* as of store_list: what is listed is read next */
    int64_t whole_ns; /* when the copies of an ended run were complete; INT64_MAX: not known */
};
/* Opens the place for reading: where every question is a request to a service, the copies if they are whole. The caller
 * closes out, after a failure too. */
int flow_source_open(struct flow *flow, const struct flow_run *run, struct flow_source *out,
                     struct act_error *err) ACT_NODISCARD;
/* Opens the platform's logs, and never the copies. */
int flow_source_open_there(struct flow *flow, const struct flow_run *run, struct flow_source *out,
                           struct act_error *err) ACT_NODISCARD;
/* Opens an output in a mapped folder of the run, in place of a log. */
int flow_source_open_output(struct flow *flow, const struct flow_run *run, const struct flow_output *output,
                            struct flow_source *out, struct act_error *err) ACT_NODISCARD;
/* Opens the copies, whether or not they are whole. -ACT_NOT_FOUND: there are none. */
int flow_source_open_here(struct flow *flow, const struct flow_run *run, struct flow_source *out,
                          struct act_error *err) ACT_NODISCARD;
void flow_source_close(struct flow_source *source);
/* Tells whether the ends of logs are fetched with their list: of a run that goes on, or of which nothing is here. */
bool flow_wants_ends(const struct flow_run *run);
/* Asks ahead for the list of logs that is fetched next (platform_expect_logs()). */
int flow_expect_logs(struct platform *platform, const struct flow_run *run, struct act_error *err) ACT_NODISCARD;
/* Lists all logs, sorted by name. Outputs that the run keeps may be of any size, and are listed only if the caller has
 * set with_outputs. */
int flow_source_list(const struct flow_source *source, struct store_page *out, struct act_error *err) ACT_NODISCARD;
/* Reads len bytes of the log from offset; *out_got is less at its end, and 0 behind it. */
int flow_source_read(const struct flow_source *source, const char *name, uint64_t offset, void *data, size_t len,
                     size_t *out_got, struct act_error *err) ACT_NODISCARD;
/* Returns the log of a rank among those whose names begin with prefix, whatever its name on the platform; NULL: there
 * is none. */
const struct store_entry *flow_find_rank_log(const struct store_page *logs, const char *prefix, int rank);

/* Returns the attempt of a log by its name, "attempts/2/...": 2; 0 for the names of the last attempt. */
int flow_log_attempt(const char *name);
/* Returns the number of the last attempt, which follows from the names of the others. */
int flow_last_attempt(const struct store_page *logs);

/* ---- tail.c */

/* Appends at most the last max bytes of a log, from the beginning of a line. Nothing, if log is NULL or gone. */
int flow_log_tail(const struct flow_source *source, const struct store_entry *log, size_t max, struct act_buf *out,
                  struct act_error *err) ACT_NODISCARD;
/* Does so for n logs at once: out[i] gets the end of logs[i]. */
int flow_log_tails(const struct flow_source *source, const struct store_entry *const *logs, size_t n, size_t max,
                   struct act_buf *out, struct act_error *err) ACT_NODISCARD;
/* Reads a small JSON file among the logs into *out, a new reference; NULL: log is NULL or gone, or it is not whole or
 * larger than 1 MiB. */
int flow_log_json(const struct flow_source *source, const struct store_entry *log, json_t **out,
                  struct act_error *err) ACT_NODISCARD;
/* Appends the last n lines that are not blank, cleaned, to out; of a progress bar the state that was written last. */
void flow_last_lines(const struct act_buf *text, size_t n, struct act_strv *out);
/* Finds where the last n lines of the first end bytes of a log begin. It looks backwards, by chunks that become
 * larger. */
int flow_find_tail(const struct flow_source *from, const char *name, int64_t n, uint64_t end, uint64_t *out,
                   struct act_error *err) ACT_NODISCARD;

/* ---- complete.c */

/* Reads the names, sizes and ages of the copies of an ended run, and when they were whole. False: they are not all
 * there. */
bool flow_read_complete(const struct flow_run *run, struct store_page *out, int64_t *out_whole_ns);
/* Notes that the copies match the listed logs, if the run has ended and nothing is added to its logs any more: the
 * platform is not asked for them again until flow_forget_complete(). Otherwise removes such a note. */
int flow_note_complete(const struct flow_source *source, const struct flow_run *run, const struct store_page *listed,
                       struct act_error *err) ACT_NODISCARD;
int flow_forget_complete(const struct flow_run *run, struct act_error *err) ACT_NODISCARD;

/* ---- copies.c */

/* The copy of a log in a file. */
struct flow_copy {
    const char *path;
    const char *root; /* path begins with it; no link below it is followed */
    char before[256]; /* its end, of which it is known whether it is of the same log */
};
/* Prepares a copy for the new part of its log of this size, which out describes. A file that is longer than the log, or
 * was changed after whole_ns, is the copy of another one: it begins anew. */
int flow_begin_copy(struct flow_copy *copy, const char *name, uint64_t size, int64_t whole_ns,
                    struct transfer_stretch *out, struct act_error *err) ACT_NODISCARD;
/* Returns how many bytes of such a log its copy has; 0 where there is none. Changes nothing. */
uint64_t flow_copied(const char *root, const char *path, uint64_t size, int64_t whole_ns);

/* ---- last_words.c */

/* The rank that failed first, as the agents of the ranks say at the ends of their logs, where a service keeps no other
 * record. */
struct flow_last_words {
    int rank; /* -1: not reported */
    int exit_status, signal;
    char node[65];
    int64_t unix_ns;
    char *reason; /* why the command could not do its work; NULL: it did. The caller frees it */
};
int flow_find_last_words(const struct flow_source *source, const struct flow_run *run, const struct store_page *logs,
                         const char *prefix, struct flow_last_words *out, struct act_error *err) ACT_NODISCARD;
/* Completes the status of a failed run with these last words, and records that the ranks were asked. Read errors change
 * nothing. */
void flow_add_last_words(struct flow *flow, const struct flow_run *run, struct run_status *status);

#endif
