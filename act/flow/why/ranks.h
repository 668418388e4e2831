/* ranks.h - for the files of flow/ only: the last lines of ranks, the rules for their logs, and other parts of an
 * explanation. */
#ifndef ACT_FLOW_WHY_RANKS_H
#define ACT_FLOW_WHY_RANKS_H

#include "diagnose/diagnose.h"
#include "flow/source/source.h"
#include "flow/why/why.h"

/* Reads the last lines of the ranks in one attempt, until ended_unix_s (0: now). It replaces *out, which may be {0};
 * the caller releases it in every case. */
int flow_find_rank_lines(const struct flow_source *from, const struct flow_run *run, const struct store_page *logs,
                         const char *prefix, int64_t ended_unix_s, struct flow_rank_lines *out,
                         struct act_error *err) ACT_NODISCARD;
void flow_rank_lines_release(struct flow_rank_lines *lines);
/* Reads the rules for the logs of a run: the built-in ones and those of its project. The caller frees *out. */
int flow_rules(const struct flow_run *run, struct diagnose **out, struct act_error *err) ACT_NODISCARD;

/* ---- fullness.c */

/* Adds to notes what was nearly full at the end of a node's samples: "host memory 98% full on n2". */
void flow_note_fullness(const struct act_buf *metrics, const char *node, struct act_strv *notes);

/* ---- module.c */

/* Returns the module that a line of Python's says is missing, without those below it. New string; NULL: it says no such
 * thing. */
char *flow_missing_module(const char *line);
/* Adds to notes which packages of the environment have names near a missing module's: "the environment has torchvision
 * 0.17, not torchaudio"; nothing if there are none. */
void flow_note_near(const char *module, const struct run_environment *environment, struct act_strv *notes);

/* ---- error_lines.c */

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

#endif
