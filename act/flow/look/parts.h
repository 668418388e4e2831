/* parts.h - for the files of flow/look/ only: the parts of a report. */
#ifndef ACT_FLOW_LOOK_PARTS_H
#define ACT_FLOW_LOOK_PARTS_H

#include "flow/look/look.h"
#include "store/store.h"

/* ---- lines.c */

/* Returns the lines in which two texts differ, in hunks with three lines around each as of diff -u, and "..." where
 * more than 200 would be shown. New string; NULL: there are none, or a text has more than 2000 lines. */
char *flow_changed_lines(const char *from, const char *to);

/* ---- here.c */

/* The copies of a run's logs, opened without following links below the folder. */
struct flow_here {
    char *root, *folder;
    struct store_page files; /* names and sizes, sorted by name */
    int attempt;             /* the last one */
};
/* Lists the copies. The caller closes out in every case. */
int flow_here_open(const struct flow_run *run, struct flow_here *out, struct act_error *err) ACT_NODISCARD;
void flow_here_close(struct flow_here *here);
/* Returns "attempts/<n>/", or "" for the last attempt, as a new string. */
char *flow_here_prefix(const struct flow_here *here, int attempt);
/* Returns the file of this name; NULL: there is none. */
const struct store_entry *flow_here_find(const struct flow_here *here, const char *name);
/* Reads a file in pieces. */
int flow_here_read(const struct flow_here *here, const char *name,
                   void (*take)(void *arg, const char *text, size_t len), void *arg,
                   struct act_error *err) ACT_NODISCARD;
/* Appends the last bytes of a file, at most max, from the beginning of a line. */
int flow_here_tail(const struct flow_here *here, const struct store_entry *file, size_t max, struct act_buf *out,
                   struct act_error *err) ACT_NODISCARD;

/* ---- files.c */

/* The time in which a run may have written, Unix time; the id is not owned. */
struct flow_span {
    const char *id;
    int64_t from_s, to_s;
    int64_t sent_to_s; /* of files of which a store tells only when they came: some may be sent after its end */
};
struct flow_span flow_span_of(const struct flow_run *run);
/* Tells whether a file at rel in a folder of the run is one that it wrote, as far as that can be known. */
bool flow_span_has(const struct flow_span *span, const struct store_entry *entry, const char *rel);

/* ---- events.c, event_copies.c */

/* The event files of TensorBoard in a folder. */
struct event_file {
    char *path; /* in the folder */
    uint64_t size;
};
struct event_search {
    const struct flow_span *span; /* only those of a run; NULL: all */
    size_t most;                  /* files are taken */
    size_t left;                  /* so many files are looked at; more is an error */
    struct event_file *v;
    size_t n;
};
/* For transfer_list(): arg is an event_search, which takes a file that it looks for. -ACT_PARTIAL: it has looked at as
 * many files as it may. */
int flow_take_event_file(void *arg, const struct store_entry *entry, const char *rel, struct act_error *err);
void flow_event_search_release(struct event_search *s);
/* A visit to the event files that a run has written into its mapped folders. */
struct event_visit {
    size_t most;                               /* files of a folder */
    bool (*takes)(const struct run_folder *f); /* NULL: each folder that can be looked into */
    int (*visit)(void *arg, struct store *store, const struct run_folder *f, const struct event_search *found,
                 struct act_error *err);
    void *arg;
};
/* Visits all folders; one that cannot be looked into does not stop that. Returns the first error. */
int flow_visit_events(struct flow *flow, const struct flow_run *run, const struct event_visit *how,
                      struct act_error *err);

/* ---- events.c, outputs.c, settings.c, use.c */

/* Adds the scalars of the event files that the run has written. Folders that cannot be looked into are a warning. */
void flow_add_events(struct flow *flow, const struct flow_run *run, struct numbers *numbers);
/* Lists what the run wrote. A store that cannot be asked is a warning. */
void flow_list_outputs(struct flow *flow, struct flow_report *out);
/* Tells whether a run writes into the folder. */
bool flow_is_written_to(const struct run_folder *f);
/* Lists the settings of a run beside those of another one (NULL: none). */
void flow_list_settings(const struct run_spec *spec, const struct run_spec *before, struct flow_report *out);
/* Lists what a run ran with, by name, beside that of another one; with that (not NULL) without what is not known of one
 * of them. The caller releases *out. */
void flow_list_software(const struct run_environment *environment, const struct run_environment *before,
                        struct flow_setting **out, size_t *out_n);
void flow_settings_release(struct flow_setting *settings, size_t n);
/* Returns a value of the JSON of a run as text, a new string. */
char *flow_setting_text(const json_t *value);
/* Reads what each node used, one node on each worker. */
int flow_read_use(struct flow *flow, const struct flow_here *here, struct flow_report *out,
                  struct act_error *err) ACT_NODISCARD;

#endif
