/* watch.h - for the files of flow/ only: the state of runs, asked for once or again and again. */
#ifndef ACT_FLOW_RUNS_WATCH_H
#define ACT_FLOW_RUNS_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"

struct platform;

/* ---- find.c */

/* Finds the one run that piece means, as out->row and the status in that. asked: it may be taken into the ledger from
 * elsewhere. The caller releases out. */
int flow_find_row(struct flow *flow, const char *piece, bool asked, struct flow_run *out,
                  struct act_error *err) ACT_NODISCARD;
/* Returns 0 if piece means one run, or why it does not. */
int flow_knows_run(struct flow *flow, const char *piece, bool asked, struct act_error *err) ACT_NODISCARD;

/* ---- named.c */

/* Finds the run whose name at the service is or contains piece, among the newest of the experiment; *out_id is a new
 * string. If there is none, *out_id is piece itself if that could be a whole name, else NULL. Several: -ACT_USAGE,
 * which lists them. */
int flow_find_named(struct platform *platform, const char *piece, char **out_id, struct act_error *err) ACT_NODISCARD;

/* ---- bad.c */

/* Remembers the nodes that the status of a run blames. */
int flow_note_bad_nodes(struct flow *flow, const struct flow_run *run, struct act_error *err) ACT_NODISCARD;

/* ---- state.c */

/* Reads the status of a run from its row. */
void flow_status_of_row(const struct ledger_run *row, struct run_status *out);
/* Takes over a status that was just received. If the platform no longer knows the run, the known status is kept. */
void flow_take_status(struct flow_run *run, struct run_status *now);
/* Counts an attempt that the logs have and the platform may not know of, because it began in the same processes. */
int flow_saw_attempt(struct flow *flow, struct flow_run *run, int attempt, struct act_error *err) ACT_NODISCARD;
/* Writes the runs that have changed to the ledger. */
int flow_store_changes(struct flow *flow, struct flow_run *runs, size_t n, struct act_error *err) ACT_NODISCARD;
/* Asks the ranks of a failed run which of them failed first, where the service does not tell. A table, which shows many
 * runs, does not do that. */
int flow_ask_ranks(struct flow *flow, struct flow_run *run, struct act_error *err) ACT_NODISCARD;
/* Fills in a run's specification from its row; of a damaged row it is {0}. */
int flow_load_spec(struct flow_run *run, struct act_error *err) ACT_NODISCARD;
/* Frees the specification, and the text that it was read from. */
void flow_drop_spec(struct flow_run *run);
/* Gets a fresh status of one run, and writes it to the ledger if it has changed. */
int flow_refresh(struct flow *flow, struct platform *platform, struct flow_run *run,
                 struct act_error *err) ACT_NODISCARD;
/* Gets fresh statuses of n runs of the platform, in one request to it. */
int flow_refresh_all(struct flow *flow, struct platform *platform, struct flow_run *const *runs, size_t n,
                     struct act_error *err) ACT_NODISCARD;

/* ---- watch.c */

/* Tells whether an error is transient: the platform may answer later, and may have carried out the request. */
bool flow_may_pass(int rc);

/* Watches a run until it ends; {0} begins. */
struct flow_watch {
    int64_t begun_ms;        /* of the first check */
    int64_t due_ms, look_ms; /* when the state is checked next (monotonic), and the delay that led to it */
    int64_t asked_ms;        /* when it was checked */
    int64_t wake_ms;         /* when news are looked at that came too early; 0: there are none */
    int64_t pause_ms;        /* between rounds */
    int64_t trial_ms;        /* between rounds while the platform cannot be reached; 0: it can */
    int64_t round_ms;        /* duration of a round, if it is many requests to a service; else 0 */
    bool tells, news;        /* what is watched says itself that there is something new: that ends a pause */
    bool by_news;            /* and began this round */
};
/* Lets a platform that can watch tell what is new, until flow_watch_end(), which comes before w goes. */
void flow_watch_begin(struct flow_watch *w, struct platform *platform);
void flow_watch_end(struct platform *platform);
/* Does flow_refresh_all() if it is due, and otherwise nothing. */
int flow_watch_look(struct flow_watch *w, struct flow *flow, struct platform *platform, struct flow_run *const *runs,
                    size_t n, struct act_error *err) ACT_NODISCARD;
/* Handles the result of a round. A transient failure is reported to the user once, and becomes 0. */
int flow_watch_took(struct flow_watch *w, int rc, const struct act_error *err) ACT_NODISCARD;
/* Waits for the next round, at most until until_ms (0: no limit); moved: this round brought something new. */
void flow_watch_pause(struct flow_watch *w, struct flow *flow, bool moved, int64_t until_ms);

#endif
