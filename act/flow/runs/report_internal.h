/* report_internal.h - for the files of flow/runs/ only: the parts of a report. */
#ifndef ACT_FLOW_RUNS_REPORT_INTERNAL_H
#define ACT_FLOW_RUNS_REPORT_INTERNAL_H

#include "flow/runs/report.h"
#include "store/store.h"

/* The copies of a run's logs, opened without following links below the folder. */
struct flow_here {
    char *root, *folder;
    struct store_page files; /* names and sizes, sorted by name */
    int attempt;             /* the last one */
};
int flow_here_open(const struct flow_run *run, struct flow_here *out, struct act_error *err) ACT_NODISCARD;
void flow_here_close(struct flow_here *here);
/* "attempts/<n>/", or "" for the last attempt. New string. */
char *flow_here_prefix(const struct flow_here *here, int attempt);
const struct store_entry *flow_here_find(const struct flow_here *here, const char *name); /* NULL: there is none */
/* Reads a file in pieces. */
int flow_here_read(const struct flow_here *here, const char *name,
                   void (*take)(void *arg, const char *text, size_t len), void *arg,
                   struct act_error *err) ACT_NODISCARD;
/* Its last bytes, at most max. */
int flow_here_tail(const struct flow_here *here, const struct store_entry *file, size_t max, struct act_buf *out,
                   struct act_error *err) ACT_NODISCARD;

/* outputs.c: a store that cannot be asked is a warning */
void flow_list_outputs(struct flow *flow, struct flow_report *out);
/* settings.c */
void flow_list_settings(const struct run_spec *spec, const struct run_spec *before, struct flow_report *out);
/* use.c */
int flow_read_use(struct flow *flow, const struct flow_here *here, struct flow_report *out,
                  struct act_error *err) ACT_NODISCARD;

#endif
