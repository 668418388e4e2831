/* page.h - pages of HTML: a report as one file, and those that 'a ui' shows. They are complete without a script; the
 * one that they bring (assets/README.md) makes them live. Under their policy no other one runs, and nothing comes from
 * elsewhere. */
#ifndef ACT_CLI_PAGE_PAGE_H
#define ACT_CLI_PAGE_PAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "draw/draw.h"
#include "flow/look/look.h"

struct cli;

/* Runs by a number, as a table. */
struct page_leaders {
    const char *key;
    struct act_strv heads, cells;
};

/* The parts that only pages of 'a ui' have. Their links are relative to the table's address. */
struct page_live {
    const struct act_strv *said; /* what there was to say while it was made */
    bool changes;                /* it is renewed */
    const char *query;           /* of the page itself, encoded */
};

/* Appends the page of n runs (at least one). Their series get fewer points. leaders and live NULL: without. */
void page_write(struct flow_report *reports, size_t n, const struct page_leaders *leaders, const struct page_live *live,
                struct act_buf *out);

/* Makes the chart of one key of several runs; the runs without it have no curve. curves has room for n, and must
 * live as long as the chart. out->n 0: none has it. Each curve gets at most points points. */
void page_key_chart(struct numbers *const *numbers, const struct flow_run *const *runs, size_t n, const char *key,
                    size_t points, struct draw_curve *curves, struct draw_chart *out);

/* Which runs a table shows; not owned. */
struct page_filter {
    const char *cluster, *name; /* NULL: all */
    const struct act_strv *tags;
};
/* Appends the page of a table of runs. data: what api/runs answers of them, which saves the script a question; NULL: it
 * asks. */
void page_runs(const struct flow_runs *runs, const struct page_filter *filter, const struct page_live *live,
               const json_t *data, struct act_buf *out);

/* Appends the page of clusters, rows as in api/clusters. */
void page_clusters(const json_t *clusters, const struct page_live *live, struct act_buf *out);

/* Appends a page that says something. */
void page_message(const char *title, const char *text, struct act_buf *out);

/* Returns the policy of what 'a ui' serves, for a header. New string. */
char *page_policy(void);

/* The line before a page that "a __page" prints, with the seconds behind it. */
#define PAGE_REFRESH "refresh "

/* ---- parts.c: what pages are made of */

/* Which page it is, as the script needs to know. */
enum page_kind { PAGE_RUNS, PAGE_RUN, PAGE_COMPARE, PAGE_CLUSTERS, PAGE_REPORT, PAGE_MESSAGE };
struct page_head {
    enum page_kind kind;
    const char *title;
    int refresh_s; /* a browser without scripts is to ask again after so long; 0: it is not */
};
/* Appends everything before what a page shows, which is ended by page_end(). */
void page_begin(const struct page_head *head, struct act_buf *out);
void page_end(struct act_buf *out);
/* Appends the lines at the top of a page of 'a ui'; live NULL: none. */
void page_add_live(const struct page_live *live, struct act_buf *out);
/* Appends data for the script of the page. */
void page_add_data(struct act_buf *out, const json_t *data);
/* Appends the name of a state, which the sheet gives its colour and shape. */
void page_add_state(struct act_buf *out, enum run_state state);
/* Adds a value to the query of a URL; NULL: none. Not yet HTML: draw_escaped(). */
void page_add_query(struct act_buf *query, const char *name, const char *value);
/* Appends a text from outside, between pieces of HTML. */
void page_add_text(struct act_buf *out, const char *before, const char *text, const char *after);
/* Does the same with at most 500 bytes of the text, whole characters. */
void page_add_short(struct act_buf *out, const char *before, const char *text, const char *after);

/* ---- ui.c */

/* Refuses a --port that is none, that is taken (ACT_USAGE), or at which this user may not listen (ACT_DENIED), before
 * anything is started. */
int page_check_port(const struct cli *cli, struct act_error *err) ACT_NODISCARD;
/* Opens the browser by a file that leads to the address, because all users can read the words of programs; what: the
 * text of the link there. Returns its path, which page_close_browser() takes; NULL: there is none, and it was said. */
char *page_open_browser(const char *address, const char *what);
/* Removes that file. */
void page_close_browser(char *page);

/* ---- assets.c */

/* Returns the script of all pages; constant. */
const char *page_script(void);
/* Returns the sheet of all pages. New string. */
char *page_sheet(void);

#endif
