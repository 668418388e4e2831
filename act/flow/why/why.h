/* why.h - why a run failed or waits, or what it is doing; known errors in its logs. */
#ifndef ACT_FLOW_WHY_WHY_H
#define ACT_FLOW_WHY_WHY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"

struct diagnose;
struct diagnose_rule;

/* The last output of a rank. */
struct flow_rank_line {
    int rank;
    char *line;       /* without the agent's own lines; empty: nothing yet; NULL: it has no log */
    int64_t silent_s; /* since its log last changed, or from then to the run's end; -1: not known */
    bool longer;      /* silent for longer than that: only the agent has written since */
};

struct flow_rank_lines {
    struct flow_rank_line *v; /* ranks whose position few others share first, then the most silent ones */
    size_t n;                 /* rank 0 and at most 31 others */
    size_t ranks;             /* of the run */
};

/* Why a run failed, was canceled or waits, or what it is doing. */
struct flow_why {
    int attempt;             /* the one that "failure" is about; 0: there is no failure to explain */
    int rank;                /* that failed first; -1: not one rank's failure, or not known */
    char *node;              /* of that rank; NULL: not known */
    int exit_status, signal; /* of that rank or of the run; signal 0: none */
    char class[48];          /* the id of the rule, if the agent ended the run by it; may be empty */
    char *reason;            /* as worded by the agent or the scheduler; may be empty */
    int64_t failed_unix_s;   /* 0: not known */
    struct act_strv lines;   /* the last ones of that rank */

    const struct diagnose_rule *rule; /* the explanation; NULL: none was found */
    char *advice;                     /* from the rule, with the names of this run filled in */
    char *log, *line;                 /* where the rule matched; log NULL: in the reason */
    int cause_rank;                   /* the rank of that log; -1: none */
    struct act_strv notes;            /* what was nearly full at the end: "host memory 98% full on n2" */

    char *rank_log; /* of that rank, or of rank 0; NULL: not there */
    /* For a running run, and for one whose end only all ranks together explain; otherwise empty. */
    struct flow_rank_lines said;
    struct diagnose *rules;
};
/* Reads the ends of a limited number of logs, whatever their size. The rules are the built-in ones and those of
 * aux_data/diagnosis.yaml in the run's project. */
int flow_why(struct flow *flow, const struct flow_run *run, struct flow_why *out, struct act_error *err) ACT_NODISCARD;
void flow_why_release(struct flow_why *why);

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
    struct flow_error_line *errors; /* lines with "Error", except some harmless ones: 100 of each log */
    size_t n_errors;
    struct diagnose *rules;
};
/* Finds the rules that match in the complete fetched logs of a run, each code once, in the order of the rules.
 * Last-resort rules are left out if any other matches. No fetched logs: -ACT_NOT_FOUND. The caller releases out. */
int flow_parse(const struct flow_run *run, struct flow_codes *out, struct act_error *err) ACT_NODISCARD;
/* Does the same with any folder of logs: one laid out like assets/<run id>, or one whose files are the logs, each read
 * as a rank's unless its name says otherwise. The project's own rules are those of the working directory. */
int flow_parse_folder(const char *folder, struct flow_codes *out, struct act_error *err) ACT_NODISCARD;
void flow_codes_release(struct flow_codes *codes);

#endif
