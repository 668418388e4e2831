/* why.h - why a run failed, waits, or what it is doing; what is known of the errors in its logs. */
#ifndef ACT_FLOW_RUNS_WHY_H
#define ACT_FLOW_RUNS_WHY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "diagnose/diagnose.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"

/* What a rank said last. */
struct flow_rank_line {
    int rank;
    char *line;       /* without the agent's own; empty: nothing yet; NULL: it has no log */
    int64_t silent_s; /* since its log changed, or between that and the run's end; -1: not known */
    bool longer;      /* than that: only the agent has written since */
};

struct flow_rank_lines {
    struct flow_rank_line *v; /* of ranks that are where few others are first, then the most silent ones */
    size_t n;                 /* rank 0 and at most 31 others */
    size_t ranks;             /* of the run */
};

/* Why a run failed, was cancelled, waits; or what it is doing. */
struct flow_why {
    int attempt;             /* the one that "failure" is about; 0: there is no failure to explain */
    int rank;                /* that failed first; -1: not one rank's failure, or not known */
    char *node;              /* of that rank; NULL: not known */
    int exit_status, signal; /* of that rank, or of the run; signal 0: none */
    char *reason;            /* in the words of the agent or of the scheduler; may be empty */
    int64_t failed_unix_s;   /* 0: not known */
    struct act_strv lines;   /* the last ones of that rank */

    const struct diagnose_rule *rule; /* the explanation; NULL: none was found */
    char *advice;                     /* of the rule, with the names of this run in it */
    char *log, *line;                 /* what the rule was found in; log NULL: in the reason */
    int cause_rank;                   /* whose log that is; -1: no rank's */
    struct act_strv notes;            /* what was nearly full at the end: "host memory 98% full on n2" */

    char *rank_log; /* of that rank, or of rank 0; NULL: not there */
    /* While it runs, and of one that ended in a way which only all ranks together explain; else empty. */
    struct flow_rank_lines said;
    struct diagnose *rules;
};
/* Reads the ends of a limited number of logs, whatever their size. The rules are those of the program and of
 * aux_data/diagnosis.yaml of the run's project. */
int flow_why(struct flow *flow, const struct flow_run *run, struct flow_why *out,
             struct act_error *err) ACT_NODISCARD;
void flow_why_release(struct flow_why *why);

/* What the rules find in the fetched logs of a run, all of them whole; each code once, in the order of the rules. What
 * is only a last resort is left out when there is anything else. No fetched logs: -ACT_NOT_FOUND. */
struct flow_code {
    const struct diagnose_rule *rule;
    char *log, *line; /* the first log that has it, and the last such line there */
};

struct flow_error_line {
    char *log, *line;
};

struct flow_codes {
    struct flow_code *v;
    size_t n;
    struct flow_error_line
        *errors; /* lines that hold "Error", but for some that mean nothing: 100 of each log */
    size_t n_errors;
    struct diagnose *rules;
};
int flow_parse(const struct flow_run *run, struct flow_codes *out, struct act_error *err) ACT_NODISCARD;
/* The same for a folder of logs from anywhere: one as assets/<run id>, or one whose files are the logs, each read as a
 * rank's unless its name says what it is. Own rules are those of the working directory. */
int flow_parse_folder(const char *folder, struct flow_codes *out, struct act_error *err) ACT_NODISCARD;
void flow_codes_release(struct flow_codes *codes);

#endif
