/* api.h - runs, curves and clusters as data: what the pages of 'a ui' read, and what a report has inside. Rows are
 * those of 'a q --json', 'a why --json' and so on; what a page needs besides is added to them. */
#ifndef ACT_CLI_PAGE_API_H
#define ACT_CLI_PAGE_API_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "draw/draw.h"
#include "flow/look/look.h"
#include "flow/run.h"

struct diagnose;
struct page_job;

/* Returns a number with the digits that a picture shows, or a time; null where JSON cannot say it. */
json_t *api_number_json(double value);

/* ---- api_runs.c */

/* Returns the row of a run in a list. note: as of flow_read_notes(), may be NULL; keys: of small curves, NULL: none;
 * rules: by which the class of a failure has a title, NULL: none are known. */
json_t *api_row_json(const struct flow_run *run, const json_t *note, const struct act_strv *keys,
                     const struct diagnose *rules);

/* Lists the newest max runs (0: all) of those that were asked for by name and tag. with_data: makes also *out_data,
 * what api/runs answers to the first question of the page, and sets job->refresh_s. The caller releases both, in every
 * case. */
int api_newest(struct page_job *job, int64_t max, bool with_data, struct flow_runs *out, json_t **out_data,
               struct act_error *err) ACT_NODISCARD;

/* ---- api_log.c: pieces of logs */

/* Return where the first whole character (UTF-8) of a piece begins, and where the last one ends. */
size_t api_whole_begin(const char *bytes, size_t len);
size_t api_whole_end(const char *bytes, size_t len);
/* Returns a text of any bytes: what is no character becomes U+FFFD. */
json_t *api_text_json(const char *bytes, size_t len);

/* ---- api_series.c */

/* The uses of a node that are shown, in the order of the charts. */
struct api_use {
    int what; /* of enum samples_what */
    const char *name;
    enum draw_unit unit; /* DRAW_SHARE or DRAW_BYTES */
    const char *chart;   /* its title */
    const char *label;   /* NULL: a curve for each GPU, from the first one's */
};
enum { API_USES = 12 };
extern const struct api_use api_uses[API_USES];
/* Returns how many curves of it a node has. */
int api_use_curves(const struct api_use *use, const struct flow_node_use *node);
/* Returns the label of one of them, a new string. */
char *api_use_label(const struct api_use *use, int nth);

/* Adds the curve of each of the keys (none: of all), at most points points each (at least 2), to a list. */
void api_add_series(const struct flow_run *run, struct numbers *numbers, const struct act_strv *keys, size_t points,
                    json_t *list);

#endif
