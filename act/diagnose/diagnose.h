/* diagnose.h - explains log text: rules, which are data, and a scanner that applies them.
 *
 * The rules are config/diagnosis.yaml, which is built in, and a file of the user, whose rules come first and replace
 * those of the same id. A rule file is a map with "version: 1" and "rules", a list of maps:
 *
 *   id           its name, of a-z, 0-9 and _
 *   code         what 'a parse' prints; default: the id. Several rules may have one code
 *   title        the class of the failure in a few words
 *   patterns     a line that holds one of them matches: a text, or {regex: a POSIX extended regular expression}
 *   unless       the line does not match when it holds one of these
 *   after        ... when this text is not in one of the 100 lines before it
 *   not_after    ... when it is
 *   traceback    the exception that a Python traceback ends with matches too, whatever its name (default false)
 *   times        so many lines must match (default 1); one that "unless" takes out begins the count anew
 *   ignore_case  of the patterns (default false)
 *   where        in which texts: rank, failed_rank, prepare, mpirun, slurm, agent, metrics (default: rank, prepare)
 *   kind         cause (default); effect: what a rank says because another one failed; last_resort: only when no other
 *                rule says anything of the line
 *   compare      what all ranks said last tells more, as of one that hangs (default false)
 *   retry        no, yes, other_node, after_change
 *   bad_node     the node that it happened on is to blame, and better left alone for a while (default false)
 *   summary      what it means
 *   advice       what to do next; {run}, {node} and {rank} are replaced
 *
 * The earlier rule is the better explanation. Log text is hostile: lines are scanned in pieces of DIAGNOSE_LINE
 * bytes, regular expressions are tried only where a literal part of them is found, back-references and counts are
 * refused.
 */
#ifndef ACT_DIAGNOSE_DIAGNOSE_H
#define ACT_DIAGNOSE_DIAGNOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

enum { DIAGNOSE_LINE = 4096 };

/* The kinds of text, a set of bits. */
enum diagnose_where {
    DIAGNOSE_FAILED_RANK = 1,
    DIAGNOSE_OTHER_RANK = 2,
    DIAGNOSE_PREPARE = 4,
    DIAGNOSE_MPIRUN = 8,
    DIAGNOSE_SLURM = 16,
    DIAGNOSE_AGENT = 32,
    DIAGNOSE_METRICS = 64,
};
/* Returns the kind of a log from its name in a run's folder; 0: such a log tells nothing. */
unsigned diagnose_where_of(const char *log_name, int failed_rank);

enum diagnose_kind { DIAGNOSE_CAUSE, DIAGNOSE_EFFECT, DIAGNOSE_LAST_RESORT };
enum diagnose_retry { DIAGNOSE_RETRY_NO, DIAGNOSE_RETRY_YES, DIAGNOSE_RETRY_OTHER_NODE, DIAGNOSE_RETRY_AFTER_CHANGE };
const char *diagnose_retry_name(enum diagnose_retry retry); /* "no", "yes", "other_node", "after_change" */

struct diagnose_rule {
    char *id, *code, *title, *summary, *advice;
    enum diagnose_kind kind;
    enum diagnose_retry retry;
    unsigned where; /* enum diagnose_where */
    bool compare;   /* what all ranks said last tells more */
    bool bad_node;  /* its node is to blame */
    size_t order;   /* from 0 */
};

struct diagnose;
/* Reads the rules of own_file (NULL, or not there: none) and those of the program. A fault in a file is -ACT_CONFIG,
 * "file:line:column: ...". */
int diagnose_open(const char *own_file, struct diagnose **out, struct act_error *err) ACT_NODISCARD;
/* Reads the rules of a text, and no others. */
int diagnose_parse(const char *text, size_t len, const char *name, struct diagnose **out,
                   struct act_error *err) ACT_NODISCARD;
void diagnose_free(struct diagnose *d);
size_t diagnose_count(const struct diagnose *d);
const struct diagnose_rule *diagnose_rule(const struct diagnose *d, size_t i);
/* Returns the rule of this id; NULL: there is none. */
const struct diagnose_rule *diagnose_find(const struct diagnose *d, const char *id);
/* Does what diagnose_open() does with the text of the user's own file; NULL: there is none. */
int diagnose_open_text(const char *own, struct diagnose **out, struct act_error *err) ACT_NODISCARD;

/* A rule that matched in a text, and where. */
struct diagnose_hit {
    const struct diagnose_rule *rule;
    char *line;       /* the last one that matched, without colours and prefixes, printable */
    uint64_t line_no; /* of it, from 1; empty lines do not count */
    bool is_replaced; /* it belongs to an exception that another one followed, "During handling of the above ..." */
};
struct diagnose_hits {
    struct diagnose_hit *v; /* in the order of the rules */
    size_t n;
    uint64_t lines; /* of the text, without empty ones */
};
void diagnose_hits_release(struct diagnose_hits *hits);

/* A scan of a text of one kind, which comes in pieces of any size. */
struct diagnose_scan;
struct diagnose_scan *diagnose_scan_new(const struct diagnose *d, enum diagnose_where where);
void diagnose_scan_feed(struct diagnose_scan *scan, const char *data, size_t len);
/* Ends the text, and frees the scan. */
void diagnose_scan_end(struct diagnose_scan *scan, struct diagnose_hits *out);

/* ---- verdict.c: finds the best explanation of a failure among all hits
 *
 * Hits compete, first by place (enum diagnose_quality), then by the order of the rules. */

/* Ranks explanations by the place where they were found; the first is the best. */
enum diagnose_quality {
    DIAGNOSE_NEAR,        /* near the end of the failed rank's log, or in the words of the agent, Slurm or mpirun */
    DIAGNOSE_REPLACED,    /* there, in an exception that another one followed, which is what ended the program */
    DIAGNOSE_UNEXPLAINED, /* an exception near the end of that log */
    DIAGNOSE_ENDING,      /* how the rank ended: a signal, an exit status */
    DIAGNOSE_OTHERS_NEAR, /* near the end of another rank's log */
    DIAGNOSE_OTHERS_UNEXPLAINED,
    DIAGNOSE_FAR,       /* earlier in the failed rank's log */
    DIAGNOSE_FOLLOWS,   /* it follows from another failure */
    DIAGNOSE_AFTERMATH, /* the abort of a rank that had said what it could not go on after */
    DIAGNOSE_OTHERS_FOLLOW,
    DIAGNOSE_NOTHING
};

/* Begins with the rules, how the failed rank ended (signal 0: by itself), and quality DIAGNOSE_NOTHING. */
struct diagnose_verdict {
    const struct diagnose *rules;
    int exit_status, signal;
    enum diagnose_quality quality;    /* of the rule */
    bool said_effect;                 /* the failed rank, near its end */
    const struct diagnose_rule *rule; /* NULL: none */
    char *log, *line;                 /* where it matched; log NULL: in no log */
    int rank;                         /* of that log; -1: of none */
};
void diagnose_verdict_release(struct diagnose_verdict *v);
/* Judge the end of a rank's log: text is any number of its last lines, log its name or NULL. */
void diagnose_judge_failed_rank(struct diagnose_verdict *v, const char *text, size_t len, const char *log, int rank);
void diagnose_judge_other_rank(struct diagnose_verdict *v, const char *text, size_t len, const char *log, int rank);
/* Judges a text in which the place does not matter. */
void diagnose_judge_text(struct diagnose_verdict *v, enum diagnose_where where, const char *text, size_t len,
                         const char *log);
/* Judges how the rank ended (-1: it was not one rank's failure), and the words of the agent. */
void diagnose_judge_end(struct diagnose_verdict *v, const char *reason, int rank);
/* Tells whether the logs of other ranks cannot tell more. */
bool diagnose_is_settled(const struct diagnose_verdict *v);

/* ---- attempt.c: the verdict on an attempt
 *
 * The agent has the logs of an attempt in a folder, 'a why' in a store; both read the same of them in the same
 * order. */

enum { DIAGNOSE_FAILED_TAIL = 256 << 10, DIAGNOSE_OTHER_TAIL = 64 << 10 }; /* so much of the end of a log is read */

struct diagnose_attempt {
    const char *reason;          /* in the words of the agent */
    int rank, ranks;             /* the one that failed first, -1: not one rank's failure; how many there are */
    const char *node;            /* that failed; NULL or "": not known */
    const struct act_buf *said;  /* by that rank, in the end */
    const char *said_log;        /* its name; NULL: it has none */
    const struct act_strv *logs; /* all names of logs that may be read; those that tell nothing are left out here */
    /* Append at most DIAGNOSE_OTHER_TAIL bytes of the end of a log, from the beginning of the attempt; if there is
     * none, nothing. */
    int (*read_log)(void *arg, const char *log, struct act_buf *out, struct act_error *err);
    int (*read_rank)(void *arg, int rank, struct act_buf *out, const char **out_log, struct act_error *err);
    void *arg;
};
/* Judges an attempt. It reads the logs of other ranks only if the failed one says nothing, or merely that it lost its
 * peer. */
int diagnose_judge_attempt(struct diagnose_verdict *v, const struct diagnose_attempt *a,
                           struct act_error *err) ACT_NODISCARD;

/* Removes escape sequences from a line, and the words of launchers before it ("[1,0]<stderr>:", "[rank3]: "); control
 * characters become blanks. Cuts in place, and returns the new length. */
size_t diagnose_clean(char *line, size_t len);

#endif
