/* look.h - looking at runs: a report on one of them, the files that it has written, and in what two of them differ.
 *
 *   report.c    gathers the report
 *   settings.c  its settings and what it ran with, beside those of another run
 *   use.c       what its nodes used
 *   events.c    the curves in its event files
 *   event_copies.c  copies of these, for TensorBoard
 *   outputs.c   what it wrote into its mapped folders
 *   here.c      the copies of its logs, which most of that is read from
 *   piece.c     a piece of a log
 *   whole.c     whole files, for whoever keeps them
 *   notes.c     what the ledger keeps of the numbers of runs
 *   files.c     the files that a run has written, where they are
 *   diff.c      in what two runs differ
 *   lines.c     in what two texts differ
 */
#ifndef ACT_FLOW_LOOK_LOOK_H
#define ACT_FLOW_LOOK_LOOK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "flow/flow.h"
#include "flow/run.h"
#include "flow/why/why.h"
#include "numbers/numbers.h"
#include "numbers/samples.h"
#include "transfer/transfer.h"

/* ---- a report: all that is known about a run, from its fetched logs, the ledger and its platform */

/* A value of the run's specification or configuration, or of what it ran with. A secret has the value "(secret)". */
struct flow_setting {
    char *name;   /* "nodes", "env.NCCL_DEBUG", "config.slurm.partition" */
    char *value;  /* NULL: the run has none */
    char *before; /* of the run it is compared with; NULL: that has none, or there is no such run */
};

/* What a node used, over all attempts: Unix seconds against values. */
struct flow_node_use {
    char *name;
    struct series curves[SAMPLES_CURVES]; /* by enum samples_what; sorted and reduced */
    int gpus;
    uint64_t bad; /* lines that were no samples */
};

struct flow_attempt {
    int number;
    struct run_status status;
};

struct flow_tail {
    char *log;
    struct act_strv lines;
};

struct flow_file {
    char *name;
    uint64_t size;
};

enum { FLOW_REPORT_NODES = 128 };

struct flow_report {
    const struct flow_run *run;
    char *compared; /* the id of the run that "before" is of; NULL: none */
    struct flow_setting *settings;
    size_t n_settings;
    struct flow_setting *software; /* what it ran with: "python", "packages.torch"; empty: not known */
    size_t n_software;
    struct flow_setting *compared_software; /* the same beside what compared ran with; empty: not both are known */
    size_t n_compared_software;
    struct numbers *numbers; /* the curves in a rank's log and in event files, sorted; never NULL */
    int numbers_rank;
    struct flow_node_use *nodes; /* by name, at most FLOW_REPORT_NODES */
    size_t n_nodes, n_all_nodes;
    struct series_range use_range; /* of what they used */
    struct flow_attempt *attempts; /* from the first; the last one is the run's own status */
    size_t n_attempts;
    struct flow_why why;
    bool has_why; /* why could be asked */
    struct flow_tail *tails;
    size_t n_tails;
    struct flow_file *files; /* the copies of logs, by name */
    size_t n_files;
    struct flow_file *outputs; /* what was written into its mapped folders while it ran: "output/model.pt", the biggest
                                  ones first */
    size_t n_outputs, n_all_outputs;
    uint64_t output_bytes;  /* of all */
    struct act_strv beyond; /* the names of folders that it wrote to and only its nodes reach */
};

/* Reports on run, which must live as long as out. rank: whose numbers are shown; -1: those of the first rank that has
 * any. compared: the run with which the settings are compared if run repeats none; may be NULL. Without fetched logs
 * the report has no curves. The caller releases out in every case. */
int flow_report(struct flow *flow, const struct flow_run *run, int rank, const struct flow_run *compared,
                struct flow_report *out, struct act_error *err) ACT_NODISCARD;
void flow_report_release(struct flow_report *report);

/* Reads only what the nodes of run used, in a range of Unix seconds. */
int flow_report_use(struct flow *flow, const struct flow_run *run, struct series_range range, struct flow_report *out,
                    struct act_error *err) ACT_NODISCARD;

/* Reads only the numbers of a rank's log, over all attempts, rank as above; with -1 and a flow (which may be NULL) also
 * those of event files. range: of the points that are kept. The fetched logs are read in pieces, whatever their size.
 * The caller frees *out, which is NULL after a failure. */
int flow_read_numbers(struct flow *flow, const struct flow_run *run, int rank, struct series_range range,
                      struct numbers **out, int *out_rank, struct act_error *err) ACT_NODISCARD;
/* Warns when a run has other names of numbers, for which there was no room; flow_report() does so by itself. */
void flow_say_more_numbers(const struct flow_run *run, const struct numbers *numbers);

/* ---- files */

#define FLOW_FILES_LOGS "logs" /* instead of the name of a folder: its logs and metrics */

struct flow_file_of_run {
    char *path; /* "<run id>:user_logs/...", or "output/model.pt" */
    uint64_t size;
    int64_t changed_unix_s; /* 0: not known */
    char *url;              /* secret; NULL: none was wanted, or it is a log */
};
struct flow_files {
    struct flow_file_of_run *v; /* by path */
    size_t n;
    size_t n_others; /* in the folder, and written at another time */
};
struct flow_files_wanted {
    const char *folder; /* a mapped folder of the run, by its name, or an output directory of its job file, by its id;
                         * NULL: FLOW_FILES_LOGS */
    bool all;           /* of a folder also what was written at another time, and does not have its id in its path */
    bool urls;          /* with URLs, as flow_url() makes them, of files in a folder */
    int64_t life_s;     /* of these: see struct flow_url */
    bool share_sas;
};
/* Lists the files where they are now: it asks the platform about logs, and the store about a folder, which is that of
 * the run's specification even if the project maps another one now. -ACT_NOT_FOUND: the run did not have the folder, or
 * the project has no account for its store any more. all, life_s or share_sas without a folder: -ACT_USAGE. The caller
 * releases out in every case. */
int flow_list_files(struct flow *flow, const struct flow_run *run, const struct flow_files_wanted *what,
                    struct flow_files *out, struct act_error *err) ACT_NODISCARD;
void flow_files_release(struct flow_files *files);

/* ---- notes: the last numbers of runs, a small curve of each, and why a run failed, for lists of many runs */

/* The points of a small curve: characters from that of the lowest value to so many above it. */
enum { FLOW_NOTE_LOW = '(', FLOW_NOTE_HIGH = 50 };
/* Reads the notes of n runs into out[n]: new references to objects as notes.c describes them, NULL where there is none.
 */
int flow_read_notes(struct flow *flow, const struct flow_run *runs, size_t n, json_t **out,
                    struct act_error *err) ACT_NODISCARD;
/* Tells whether the logs of a run were not looked at since it has the state that it has. */
bool flow_is_unseen(const struct flow_run *run, const json_t *note);
/* Writes down the numbers of a run that were read for another reason. They are sorted. */
void flow_note_numbers(struct flow *flow, const struct flow_run *run, struct numbers *numbers);
/* Looks at the logs of runs that have changed since they were last looked at, the first ones first, until that has
 * taken time_ms. *out_more: others are left. What cannot be written down ends it. */
int flow_gather_notes(struct flow *flow, struct flow_runs *runs, int64_t time_ms, bool *out_more,
                      struct act_error *err) ACT_NODISCARD;

/* ---- a piece of a log */

struct flow_piece_wanted {
    const char *name; /* NULL: the log of this rank, whatever its name */
    int rank;
    int64_t from; /* a byte of it; negative: so many before its end */
    size_t max;   /* bytes */
};
struct flow_piece {
    char *name;
    uint64_t from, size; /* where the piece begins; of the log */
    struct act_buf bytes;
};
/* Reads a piece of a log where it is now; behind its end there is nothing. Where the log of a run that has ended cannot
 * be read any more, its copy here is, with a warning. No such log: -ACT_NOT_FOUND. The caller releases out in every
 * case. */
int flow_read_piece(struct flow *flow, const struct flow_run *run, const struct flow_piece_wanted *what,
                    struct flow_piece *out, struct act_error *err) ACT_NODISCARD;
void flow_piece_release(struct flow_piece *piece);

/* ---- whole files */

/* Gets a file: begin() is told its size in bytes first, then write() gets the bytes in order, perhaps on another
 * thread. Below 0 from either ends it. If fewer bytes come, the file is not whole, and what is returned says why. */
struct flow_file_sink {
    int (*begin)(void *arg, uint64_t size, struct act_error *err);
    int (*write)(void *arg, const void *data, size_t len, struct act_error *err);
    void *arg;
};
/* Reads a log of a run, or another file among them, as long as it is now; where it cannot be read any more, the copy.
 * No such log: -ACT_NOT_FOUND. */
int flow_read_log(struct flow *flow, const struct flow_run *run, const char *name, const struct flow_file_sink *sink,
                  struct act_error *err) ACT_NODISCARD;
/* Reads a file that a run has written into a mapped folder: "output/model.pt". -ACT_NOT_FOUND: there is none, or it is
 * not the run's. */
int flow_read_output(struct flow *flow, const struct flow_run *run, const char *path, const struct flow_file_sink *sink,
                     struct act_error *err) ACT_NODISCARD;

/* ---- event files of TensorBoard: *bytes grows by what was copied. Copies that are there already get what they lack. A
 * file that cannot be copied does not stop the others; the first error is returned. */

/* Copies those that a run has written into its mapped folders into the folder to. */
int flow_copy_events_of(struct flow *flow, const struct flow_run *run, const char *to, uint64_t *bytes,
                        struct act_error *err) ACT_NODISCARD;
/* Copies those of a folder of flow's store. */
int flow_copy_events_in(struct flow *flow, const struct transfer_path *path, const char *to, uint64_t *bytes,
                        struct act_error *err) ACT_NODISCARD;

/* ---- differences */

struct flow_difference {
    const char *part; /* "command", "code", "configuration", "environment", "nodes", "software" */
    char *name;       /* of a file, key, variable or package; empty: the part as a whole */
    char *from, *to;  /* NULL: the run does not have it */
    char *lines;      /* of the code: flow_changed_lines() of a text that both have; NULL: it is none, or large */
};
struct flow_diff {
    struct flow_difference *v; /* by part in that order, then by name */
    size_t n;
    struct flow_difference *same; /* what both have: from is to */
    size_t n_same;
};
/* Compares two runs, of which both need their specification. Code is compared by file if both packages can be had, else
 * as a whole, with a warning; the names of nodes where both platforms can tell them. Of secrets only the names are
 * known. What they ran with is compared if the last attempts of both have written it down. The caller releases out. */
void flow_diff(struct flow *flow, const struct flow_run *from, const struct flow_run *to, struct flow_diff *out);
void flow_diff_release(struct flow_diff *diff);

#endif
